/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling to exactly half with an antialiased filter, for nvcc and the C compiler alike: what weights come to, and the
 * arguments of the kernels.
 *
 * Bilinear, samples 2 i - 1 to 2 i + 2 of the source have weights of 1/8, 3/8, 3/8 and 1/8 for sample i; bicubic,
 * samples 2 i - 3 to 2 i + 4 have -3, -9, 29, 111, 111, 29, -9 and -3, of 256. These are multiples of what weights are
 * counted in, so that their sums, rounded, halves up, are what a table gives. Near an edge some samples are missing,
 * and what is left is divided by the sum of the weights that are left: 7 of 8; 239 and 259 of 256. A table has such
 * weights rounded, and its sums are off by less than 1/4000; what is divided by 259 is at least 1/518 from where
 * rounding changes, so that this, too, gives the same.
 */
#pragma once

#include "pixel.h"

/** Lanes of a warp that make something of bicubic. */
#define GPU_CUBIC_HALF_LANES 30u

/** Blocks that a multiprocessor has room for, by the registers that their threads take. */
#define GPU_FILTER_HALF_BLOCKS 4u
#define GPU_CUBIC_HALF_BLOCKS 2u

/**
 * GpuFilterHalfPlane:
 * @src, @dst: first samples, at multiples of 16 bytes, as all rows are
 * @width, @height: of the destination's plane, at least 2, or bicubic 4; the source has twice as many
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

/** Bilinear, from three samples of weights 3, 3 and 1 to one at an edge. @sum: less than 10000. */
GPU_PIXEL_FUNC uint32_t
gpu_filter_half_edge (uint32_t sum)
{
  return (sum + 3) * 9363 >> 16; /* a seventh, rounded: 9363 is 2^16 / 7, rounded up */
}

/** Bicubic, from the sum of eight samples, of which those beyond an edge are 0, to one at @distance 0 or 1 from the
 * edge; not saturated above. */
GPU_PIXEL_FUNC uint32_t
gpu_cubic_half_edge (int32_t sum, uint32_t distance)
{
  const uint32_t divisor = distance ? 259 : 239; /* the sum of the weights that are left */
  const uint32_t reciprocal = distance ? UINT32_MAX / 259 + 1 : UINT32_MAX / 239 + 1;

  return (uint32_t)((uint64_t)((sum < 0 ? 0 : (uint32_t)sum) + divisor / 2) * reciprocal >> 32);
}
