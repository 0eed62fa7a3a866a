/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling to exactly half with an antialiased bilinear filter, for nvcc and the C compiler alike: what weights come to,
 * and the arguments of the kernel.
 *
 * Samples 2 i - 1 to 2 i + 2 of the source have weights of 1/8, 3/8, 3/8 and 1/8 for sample i: multiples of what
 * weights are counted in, so that sums of eighths, halves up, are what a table gives. At the edges, where three are
 * left, the weights are 3/7, 3/7 and 1/7. A table has them rounded, and sums of it are off by less than 1/10000; sums
 * of sevenths are at least 1/14 from where rounding changes, so that they, too, give the same.
 */
#pragma once

#include "pixel.h"

/** Rows of the destination that a thread makes a part of: few where there would not be enough threads for the GPU, as
 * each reads two more of the source, and filters them, than it makes half of. */
#define GPU_FILTER_HALF_LINES 4u
#define GPU_FILTER_HALF_FEW_LINES 2u

/**
 * GpuFilterHalfPlane:
 * @src, @dst: first samples, at multiples of 16 bytes, as all rows are
 * @width, @height: of the destination's plane, at least 2; the source has twice as many
 * @bytes: of a pixel; a sample has one
 * @alpha: the byte of alpha in a pixel that is multiplied by it; 4 if none is
 */
typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  uint64_t src_stride;
  uint64_t dst_stride;
  uint32_t width;
  uint32_t height;
  uint32_t bytes;
  uint32_t alpha;
} GpuFilterHalfPlane;

/**
 * GpuFilterHalfArgs:
 * @lines: rows that a thread makes a part of
 */
typedef struct {
  GpuFilterHalfPlane plane[GPU_PIXEL_PLANES];
  GpuPixelRows rows;
  uint32_t lines;
  uint32_t reserved;
} GpuFilterHalfArgs;

/** From three samples, of weights 3, 3 and 1, to one. @sum: less than 10000. */
GPU_PIXEL_FUNC uint32_t
gpu_filter_half_edge (uint32_t sum)
{
  return (sum + 3) * 9363 >> 16; /* a seventh, rounded: 9363 is 2^16 / 7, rounded up */
}
