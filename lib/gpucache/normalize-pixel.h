/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation, per sample: three steps in single floats, each of which rounds.
 */
#pragma once

#include "pixel.h"

#define GPU_NORMALIZE_BLOCK_X 32
#define GPU_NORMALIZE_BLOCK_Y 8

/** (in - base) * factor + shift. A padding byte has the factor 0 and the shift 255. */
typedef struct {
  float base;
  float factor;
  float shift;
} GpuNormalizeChannel;

/** @channel: for each byte of a pixel; @row_bytes: of samples, padding excluded. */
typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  uint64_t src_stride;
  uint64_t dst_stride;
  uint64_t row_bytes;
  uint32_t height;
  uint32_t bytes;
  GpuNormalizeChannel channel[GPU_PIXEL_CHANNELS];
} GpuNormalizePlane;

typedef struct {
  GpuNormalizePlane plane[GPU_PIXEL_PLANES];
  GpuPixelRows rows;
} GpuNormalizeArgs;

GPU_PIXEL_FUNC uint8_t
gpu_normalize_sample (GpuNormalizeChannel channel, uint8_t value)
{
  float centred = (float)value - channel.base;
  float scaled = centred * channel.factor;

  return gpu_round_to_byte (scaled + channel.shift);
}
