/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation, per sample: to 8 bits by three steps in single floats, each of which rounds, or by one that gives the
 * same bytes; to a tensor's element by three in doubles, which are done once for each of the 256 values that a sample
 * can have, or by three in single floats where these have been seen to give the same bits for all 256.
 */
#pragma once

#include "pixel.h"

#include <math.h>

#define GPU_NORMALIZE_BLOCK_X 32
#define GPU_NORMALIZE_BLOCK_Y 8

/** Rows that a thread takes of a picture that is done by steps. */
#define GPU_NORMALIZE_ROWS 2u

/** (in - base) * factor + shift. A padding byte has the factor 0 and the shift 255. */
typedef struct {
  float base;
  float factor;
  float shift;
} GpuNormalizeChannel;

/** The same as (in - origin) * factor + shift, of which the difference is exact and the rest rounds once. */
typedef struct {
  float origin;
  float factor;
  float shift;
} GpuNormalizeStep;

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

/** A plane whose rows are chunks of 16 bytes at multiples of 16, where a step gives the same bytes for all values.
 * @step: for each byte of a pixel; @across: chunks of a row; @inverse: as of GpuNormalizeTensorArgs. */
typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  uint32_t src_stride;
  uint32_t dst_stride;
  uint32_t row_bytes;
  uint32_t height;
  uint32_t bytes;
  uint32_t across;
  uint32_t inverse;
  uint32_t reserved;
  GpuNormalizeStep step[GPU_PIXEL_CHANNELS];
} GpuNormalizeStepPlane;

/** @first: the block at which each plane starts, UINT32_MAX for planes that there are not */
typedef struct {
  GpuNormalizeStepPlane plane[GPU_PIXEL_PLANES];
  uint32_t first[GPU_PIXEL_PLANES];
} GpuNormalizeStepArgs;

/** How many blocks those may take, for threads to have numbers of 32 bits. */
#define GPU_NORMALIZE_MAX_BLOCKS (1u << 23)

/** @n / @across, if @inverse is 2^32 / @across, rounded up, or 0 if that is 2^32. */
GPU_PIXEL_FUNC uint32_t
gpu_normalize_row_of (uint32_t across, uint32_t inverse, uint32_t n)
{
  const uint32_t row = inverse ? (uint32_t)((uint64_t)n * inverse >> 32) : n;

  return row - (row * across > n);
}

/** Not rounded yet. */
GPU_PIXEL_FUNC float
gpu_normalize_value (GpuNormalizeChannel channel, float value)
{
  float centred = value - channel.base;
  float scaled = centred * channel.factor;

  return scaled + channel.shift;
}

GPU_PIXEL_FUNC uint8_t
gpu_normalize_sample (GpuNormalizeChannel channel, uint8_t value)
{
  return gpu_round_to_byte (gpu_normalize_value (channel, (float)value));
}

/** What is added to a sample for the two below, and to their origins: in this float the second byte counts ones. */
#define GPU_NORMALIZE_ABOVE 32768.0f
#define GPU_NORMALIZE_ABOVE_BITS 0x47000000u
/** How __byte_perm() puts byte @i of a word there: the word first, then GPU_NORMALIZE_ABOVE_BITS. */
#define GPU_NORMALIZE_SELECTOR(i) (0x7404u | (i) << 4)

GPU_PIXEL_FUNC float
gpu_normalize_in_one (GpuNormalizeStep step, float above)
{
  return fmaf (above - step.origin, step.factor, step.shift);
}

typedef struct {
  double base;
  double factor;
  double shift;
} GpuNormalizeTensorChannel;

/** The same as (in - origin) * (high + low) + rest: @high and @low are the factor, @origin is close to where the result
 * is 0, so that @rest is small, and has few enough bits for the difference to be exact. */
typedef struct {
  float origin;
  float high;
  float low;
  float rest;
} GpuNormalizeLine;

/**
 * GpuNormalizeTensorArgs:
 * @channel: for each channel of the tensor
 * @line: the same, for kernels that compute
 * @at: which channel of the picture, as GpuPixels has them, it is
 * @selector: which byte of a packed pixel that is, or which plane, as GPU_NORMALIZE_SELECTOR()
 * @straight: whether a packed tensor's elements lie as the samples of pixels of three bytes do
 * @spans: of GPU_NORMALIZE_SPAN pixels in a row
 * @inverse: 2^32 / @spans, rounded up, or 0 if that is 2^32
 */
typedef struct {
  GpuPixels src;
  GpuPixels dst;
  GpuNormalizeTensorChannel channel[GPU_PIXEL_CHANNELS];
  GpuNormalizeLine line[GPU_PIXEL_CHANNELS];
  uint32_t at[GPU_PIXEL_CHANNELS];
  uint32_t selector[GPU_PIXEL_CHANNELS];
  uint32_t width;
  uint32_t height;
  uint32_t straight;
  uint32_t spans;
  uint32_t inverse;
  uint32_t reserved;
} GpuNormalizeTensorArgs;

/** Pixels of a row that a warp makes where it computes; and how wide pictures may be, and of how many of these, for
 * offsets in a row, and numbers of threads, to have 32 bits. */
#define GPU_NORMALIZE_SPAN 128u
#define GPU_NORMALIZE_MAX_WIDTH (1u << 27)
#define GPU_NORMALIZE_MAX_SPANS (1u << 29)

/** The bits of the element of @size bytes that @value becomes. */
GPU_PIXEL_FUNC uint32_t
gpu_normalize_element (GpuNormalizeTensorChannel channel, uint32_t value, uint32_t size)
{
  double centred = (double)value - channel.base;
  double scaled = centred * channel.factor;
  double result = scaled + channel.shift;

  if (size == 1) {
    /* At 2^52 a double's last bit is worth 1. */
    result = result > 0.0 ? result : 0.0;
    result = result < 255.0 ? result : 255.0;
    return (uint32_t)((result + 4503599627370496.0) - 4503599627370496.0);
  }
  return size == 2 ? gpu_half_from_double (result) : gpu_float_bits ((float)result);
}

GPU_PIXEL_FUNC float
gpu_normalize_on_line (GpuNormalizeLine line, float above)
{
  float centred = above - line.origin;

  return fmaf (centred, line.high, fmaf (centred, line.low, line.rest));
}
