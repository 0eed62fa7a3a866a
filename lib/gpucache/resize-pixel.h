/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling, per pixel, in integers.
 *
 * Sample i of a destination of n lies at (i + 1/2) * m / n - 1/2 in a source of m. Nearest takes sample
 * floor ((i + 1/2) * m / n). Bilinear rounds the position to 1/4096, halves up, and clamps it to 0 .. m - 1; the four
 * samples around it are weighted without further rounding, and the sum of weight 4096 * 4096 is rounded, halves up.
 */
#pragma once

#include "pixel.h"

#define GPU_RESIZE_BLOCK_X 32
#define GPU_RESIZE_BLOCK_Y 8

/** Pixels of a row that one thread of the GPU makes. */
#define GPU_RESIZE_PIXELS 4

#define GPU_RESIZE_BITS 12
#define GPU_RESIZE_ONE (1u << GPU_RESIZE_BITS)

/**
 * GpuResizeAxis:
 * @src: samples of the source in this direction
 * @dst: samples of the destination
 * @reciprocal: 2^64 / (2 * dst), rounded up, with which dividing by 2 * dst is a multiplication; 0 where the result
 *   would not be exact, and division is needed
 */
typedef struct {
  uint32_t src;
  uint32_t dst;
  uint64_t reciprocal;
} GpuResizeAxis;

typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  uint64_t src_stride;
  uint64_t dst_stride;
  GpuResizeAxis x;
  GpuResizeAxis y;
  uint32_t bytes;
  uint32_t aligned; /* each pixel of the source, and each fourth one of the destination, is where a vector can be */
} GpuResizePlane;

typedef struct {
  GpuResizePlane plane[GPU_PIXEL_PLANES];
  GpuPixelRows rows;
} GpuResizeArgs;

/**
 * GpuResizeTap:
 * @i0, @i1: the samples on both sides of a position
 * @weight: of the second one, in 1/4096; less than 4096
 */
typedef struct {
  uint32_t i0;
  uint32_t i1;
  uint32_t weight;
} GpuResizeTap;

/** The sample that is nearest to sample @i of the destination. */
GPU_PIXEL_FUNC uint32_t
gpu_resize_nearest (const GpuResizeAxis *axis, uint32_t i)
{
  uint64_t n = (2 * (uint64_t)i + 1) * axis->src;

  return (uint32_t)(axis->reciprocal ? gpu_mul_high (n, axis->reciprocal) : n / (2 * (uint64_t)axis->dst));
}

/** The samples around sample @i of the destination. */
GPU_PIXEL_FUNC GpuResizeTap
gpu_resize_linear (const GpuResizeAxis *axis, uint32_t i)
{
  const uint64_t d = 2 * (uint64_t)axis->dst;
  uint64_t n = (2 * (uint64_t)i + 1) * axis->src;
  GpuResizeTap tap = {0, 0, 0};

  if (n <= axis->dst)
    return tap;
  n -= axis->dst;

  if (axis->reciprocal) {
    uint64_t position = gpu_mul_high (n * GPU_RESIZE_ONE + axis->dst, axis->reciprocal);

    tap.i0 = (uint32_t)(position >> GPU_RESIZE_BITS);
    tap.weight = (uint32_t)position & (GPU_RESIZE_ONE - 1);
  } else {
    uint64_t part = (n % d * GPU_RESIZE_ONE + axis->dst) / d;

    tap.i0 = (uint32_t)(n / d + (part >> GPU_RESIZE_BITS));
    tap.weight = (uint32_t)part & (GPU_RESIZE_ONE - 1);
  }
  if (tap.i0 >= axis->src - 1) {
    tap.i0 = axis->src - 1;
    tap.weight = 0;
  }
  tap.i1 = tap.weight ? tap.i0 + 1 : tap.i0;
  return tap;
}

/** Between two samples of a row; @weight is the second one's. */
GPU_PIXEL_FUNC uint32_t
gpu_resize_mix (uint8_t a, uint8_t b, uint32_t weight)
{
  return a * (GPU_RESIZE_ONE - weight) + b * weight;
}

/** Between two rows, from what gpu_resize_mix() gave for each. */
GPU_PIXEL_FUNC uint8_t
gpu_resize_mix_rows (uint32_t a, uint32_t b, uint32_t weight)
{
  return (uint8_t)((a * (GPU_RESIZE_ONE - weight) + b * weight + (1u << (2 * GPU_RESIZE_BITS - 1))) >>
                   (2 * GPU_RESIZE_BITS));
}
