/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling, per pixel, in integers.
 *
 * Sample i of a destination of n lies at (i + 1/2) * m / n - 1/2 in a source of m. Nearest takes sample
 * floor ((i + 1/2) * m / n). Bilinear rounds the position to 1/4096, halves up, and clamps it to 0 .. m - 1; the four
 * samples around it are weighted without further rounding, and the sum of weight 4096 * 4096 is rounded, halves up.
 *
 * Filters with weights from a table work as Pillow's: rows first, then columns, each sum rounded, halves up, to a
 * sample's bits. Weights have 30 bits less those of a sample, so that a sum fits.
 */
#pragma once

#include "pixel.h"

#define GPU_RESIZE_BLOCK_X 32
#define GPU_RESIZE_BLOCK_Y 8

/** Pixels of a row that one thread of the GPU makes. */
#define GPU_RESIZE_PIXELS 4

/** Rows of one pixel that one thread makes, when filtering rows. */
#define GPU_RESIZE_ROWS 4

/** Rows that one thread makes a part of, when that is 4 bytes or a pixel of 3, and when scaling to half. */
#define GPU_RESIZE_LINES 2
#define GPU_RESIZE_HALF_LINES 1

/** Times as many in a launch for many images: there is enough for all threads to do, and more to be done once. */
#define GPU_RESIZE_TABLE_LINES 2

/** Bytes of a row that one thread makes of pixels of @bytes, when scaling to half. */
GPU_PIXEL_FUNC uint32_t
gpu_resize_half_bytes (uint32_t bytes)
{
  return bytes == 3 ? 12 : 8;
}

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

/**
 * GpuResizePlane:
 * @src: the first sample of the part that is scaled
 * @dst: the plane's first sample
 * @x, @y: from part to part
 * @left, @top: where the destination's part begins
 * @width, @height: of the destination's plane
 * @border: the pixel around the part
 * @bytes: of a pixel
 * @wide: whether samples have 16 bits, of which the upper 10 count
 * @aligned: each pixel of the source, and each fourth one of the destination, is where a vector can be
 */
typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  uint64_t src_stride;
  uint64_t dst_stride;
  GpuResizeAxis x;
  GpuResizeAxis y;
  uint32_t left;
  uint32_t top;
  uint32_t width;
  uint32_t height;
  uint32_t border;
  uint32_t bytes;
  uint32_t wide;
  uint32_t aligned;
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

/** The tap at @position, in 1/4096. */
GPU_PIXEL_FUNC GpuResizeTap
gpu_resize_tap (const GpuResizeAxis *axis, uint64_t position)
{
  GpuResizeTap tap = {(uint32_t)(position >> GPU_RESIZE_BITS), 0, (uint32_t)position & (GPU_RESIZE_ONE - 1)};

  if (tap.i0 >= axis->src - 1) {
    tap.i0 = axis->src - 1;
    tap.weight = 0;
  }
  tap.i1 = tap.weight ? tap.i0 + 1 : tap.i0;
  return tap;
}

/** The samples around sample @i of the destination, where @axis has a reciprocal. */
GPU_PIXEL_FUNC GpuResizeTap
gpu_resize_linear_fast (const GpuResizeAxis *axis, uint32_t i)
{
  const uint64_t n = (2 * (uint64_t)i + 1) * axis->src;

  return gpu_resize_tap (
      axis, n <= axis->dst ? 0 : gpu_mul_high ((n - axis->dst) * GPU_RESIZE_ONE + axis->dst, axis->reciprocal));
}

/** The samples around sample @i of the destination. */
GPU_PIXEL_FUNC GpuResizeTap
gpu_resize_linear (const GpuResizeAxis *axis, uint32_t i)
{
  const uint64_t d = 2 * (uint64_t)axis->dst, n = (2 * (uint64_t)i + 1) * axis->src;

  if (axis->reciprocal)
    return gpu_resize_linear_fast (axis, i);
  if (n <= axis->dst)
    return gpu_resize_tap (axis, 0);
  const uint64_t part = ((n - axis->dst) % d * GPU_RESIZE_ONE + axis->dst) / d;
  return gpu_resize_tap (axis, (n - axis->dst) / d * GPU_RESIZE_ONE + part);
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

/** The same for samples of 16 bits, in 10 bits and back. */
GPU_PIXEL_FUNC uint32_t
gpu_resize_mix_wide (uint32_t a, uint32_t b, uint32_t weight)
{
  return (a >> 6) * (GPU_RESIZE_ONE - weight) + (b >> 6) * weight;
}

GPU_PIXEL_FUNC uint32_t
gpu_resize_mix_rows_wide (uint32_t a, uint32_t b, uint32_t weight)
{
  const uint64_t sum = (uint64_t)a * (GPU_RESIZE_ONE - weight) + (uint64_t)b * weight;

  return (uint32_t)((sum + (1u << (2 * GPU_RESIZE_BITS - 1))) >> (2 * GPU_RESIZE_BITS)) << 6;
}

/**
 * GpuFilterPlane:
 * @src, @dst: first samples; between the two passes lies a picture of pixels of @mid_bytes
 * @table: for each sample of the destination in the pass' direction @taps + 2 numbers: the first sample of the source,
 *   how many, their weights
 * @width, @height: what the pass makes: of rows, the part's width and the rows that the next pass needs; of columns,
 * the destination's plane
 * @left, @top, @part_width, @part_height: of columns: the part of the plane; the rest is @border
 * @first: the source's row that is the first one: of rows, the one to begin with; of columns, the one in @src
 * @bytes: of a pixel of a picture, and @mid_bytes: of the one between: 4 instead of 3
 * @alpha: the byte of alpha in a pixel that is multiplied by it; 4 if none is
 */
typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  const int32_t *table;
  uint64_t src_stride;
  uint64_t dst_stride;
  uint32_t taps;
  uint32_t width;
  uint32_t height;
  uint32_t left;
  uint32_t top;
  uint32_t part_width;
  uint32_t part_height;
  uint32_t first;
  uint32_t border;
  uint32_t bytes;
  uint32_t mid_bytes;
  uint32_t wide;
  uint32_t alpha;
  uint32_t aligned;
} GpuFilterPlane;

typedef struct {
  GpuFilterPlane plane[GPU_PIXEL_PLANES];
  GpuPixelRows rows;
} GpuFilterArgs;

/** Bits of fraction that weights have. */
GPU_PIXEL_FUNC int
gpu_filter_bits (uint32_t wide)
{
  return wide ? 20 : 22;
}

/** From a weighted sum to a sample of 8 or 10 bits. */
GPU_PIXEL_FUNC uint32_t
gpu_filter_round (int32_t sum, uint32_t wide)
{
  const int bits = gpu_filter_bits (wide);
  const int32_t max = wide ? 1023 : 255;
  const int32_t value = (sum + (1 << (bits - 1))) >> bits;

  return (uint32_t)(value < 0 ? 0 : value > max ? max : value);
}

/** @value * @alpha / 255, rounded. */
GPU_PIXEL_FUNC uint32_t
gpu_filter_premultiply (uint32_t value, uint32_t alpha)
{
  const uint32_t product = value * alpha + 128;

  return ((product >> 8) + product) >> 8;
}

/** The other way, as Pillow does it: rounded down. */
GPU_PIXEL_FUNC uint32_t
gpu_filter_unpremultiply (uint32_t value, uint32_t alpha)
{
  uint32_t straight;

  if (alpha == 0 || alpha == 255)
    return value;
  straight = 255 * value / alpha;
  return straight > 255 ? 255 : straight;
}
