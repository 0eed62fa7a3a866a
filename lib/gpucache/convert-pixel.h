/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion, per pixel, in integers.
 *
 * A pixel is read as three numbers: its R, G, B as they are, or Y and the interpolated U, V in sixteenths. One matrix
 * with an offset takes them to three numbers of the destination, which are averaged where the destination's chroma is
 * subsampled, and then rounded. They are in units of 1/64; or, from R, G, B to samples of 8 bits other than these, in
 * whatever units the matrix has 16 bits for.
 */
#pragma once

#include "pixel.h"

/** Fraction bits of interpolated chroma: two from each direction; and of what the matrix gives, unless it has 16 bits.
 */
#define GPU_CONVERT_SUB_BITS 4
#define GPU_CONVERT_BITS 6

/** Rows of 16 samples, and quads of tensors' elements, that a thread takes at a time. */
#define GPU_CONVERT_LINE_ROWS 2
#define GPU_CONVERT_QUADS 2

/** Rows that a thread takes between 4:2:0, or GRAY8, and RGB formats, four pixels of each: twice an even number. Where
 * it takes eight pixels it takes half the rows, and half a warp the other ones; of 16 pixels it takes a quarter. */
#define GPU_CONVERT_ROWS 4

/**
 * GpuConvertSide:
 * @pixels: of RGB formats and GRAY8; of 4:2:0 formats the luma plane
 * @chroma: of 4:2:0 formats U and V, in planes of their own or in one; channels is 0 for other formats
 * @down: what a sample of 16 bits is shifted right by to get its value; 0 for 8 bits
 * @site_x, @site_y: whether chroma lies on a pixel in this direction, and not between two
 * @chroma_width, @chroma_height: of the chroma planes
 */
typedef struct {
  GpuPixels pixels;
  GpuPixels chroma;
  uint32_t down;
  uint32_t site_x;
  uint32_t site_y;
  uint32_t chroma_width;
  uint32_t chroma_height;
  uint32_t reserved;
} GpuConvertSide;

/**
 * GpuConvertArgs:
 * @matrix: from the source's numbers to the destination's, after shifting right by @shift
 * @offset: added before that; the rounding is in it
 * @max: the largest value of a sample of the destination
 * @opaque: or'ed to the alpha channel: 255 if the source has none
 * @bits: of fraction of what the matrix gives
 * @pair: the matrix, if it is of 16 bits, for numbers as they lie in memory: of the first two and the other two
 * @wide: whether eight pixels can be read and written at once
 */
typedef struct {
  GpuConvertSide src;
  GpuConvertSide dst;
  int32_t matrix[3][3];
  int32_t offset[3];
  uint32_t shift;
  int32_t max;
  uint32_t width;
  uint32_t height;
  uint32_t opaque;
  uint32_t rows; /* of pixels, or pairs of rows */
  uint32_t wide;
  uint32_t bits;
  uint32_t pair[3][2];
} GpuConvertArgs;

/**
 * GpuConvert420Param:
 * @luma, @chroma: the first samples, of U and V in this order; of one plane for both, that plane's
 * @dst: the first pixel of a packed format, whatever its first channel, or of each plane
 * @last_column, @last_row: of the chroma planes
 * @src_size, @src_group: bytes of a sample, and how many components the chroma planes have
 * @between: whether chroma lies between two pixels of a row
 * @quads: how often four pixels of a row a thread takes: 4, 2 or 1
 * @dst_group: bytes of the destination's packed pixel, or 1 if each channel has a plane
 * @rotated: whether the destination's padding or alpha channel is a pixel's first byte
 * @luma_factor, @shift: of even and odd pixels. Where chroma lies on even pixels, those take all of one column; odd
 * ones add two, and so are worked out at twice the scale
 * @upper, @lower: what a column's second component, and its first, gives to the pixel's first number, or its third, and
 *   to the middle one, in the order of memory; the first component is U, unless @select and @weights say otherwise
 * @offset: of these, a column's share of it; both roundings are in it
 * @weights: of U, V above and U, V below, bytes, in a row with an even or odd number: to the lower and upper component
 * @above, @below: the same as numbers
 * @select: of two halves of a word, as bytes by which they are multiplied, the lower and upper component
 *
 * All that a kernel from 4:2:0 to RGB needs, worked out once and not by each thread. Chroma's two components are taken
 * the other way round where the first byte of a pixel is blue, which makes BGR of what would be RGB.
 */
typedef struct {
  const uint8_t *luma;
  const uint8_t *chroma[2];
  uint8_t *dst[3];
  uint32_t luma_stride;
  uint32_t chroma_stride[2];
  uint32_t dst_stride[3];
  uint32_t width;
  uint32_t height;
  uint32_t last_column;
  uint32_t last_row;
  uint32_t src_size;
  uint32_t src_group;
  uint32_t between;
  uint32_t quads;
  uint32_t dst_group;
  uint32_t rotated;
  uint32_t luma_factor[2];
  uint32_t shift[2];
  uint32_t upper[2];
  uint32_t lower[2];
  uint32_t offset[3];
  uint32_t weights[2][2];
  uint32_t above[2];
  uint32_t below[2];
  uint32_t select[2];
} GpuConvert420Param;

/** Of which a GPU's kernel takes the first part. */
typedef struct {
  GpuConvert420Param param;
  GpuConvertArgs whole;
} GpuConvert420Args;

/**
 * GpuConvertToYuvParam:
 * @src: the first pixel of a packed format, whatever its first channel, or of each plane; GRAY8's one plane stands for
 * the other two, of which the matrix takes nothing
 * @luma, @chroma: the first samples, of U and V in this order
 * @shared: whether those lie in one plane
 * @sited: whether they lie on a pixel of a row, and not between two
 * @src_group: bytes of the source's packed pixel, or 1 if each channel has a plane
 * @offset: with the rounding in it; chroma's four times, since a sample is worked out as twice the sum of four pixels
 * @wide, @bits, @pair: as in GpuConvertArgs
 *
 * All that a kernel from RGB to 4:2:0 and GRAY8 needs.
 */
typedef struct {
  const uint8_t *src[3];
  uint8_t *luma;
  uint8_t *chroma[2];
  uint32_t src_stride[3];
  uint32_t luma_stride;
  uint32_t chroma_stride[2];
  uint32_t width;
  uint32_t height;
  uint32_t shared;
  uint32_t sited;
  uint32_t src_group;
  uint32_t wide;
  uint32_t bits;
  int32_t offset[3];
  uint32_t pair[3][2];
} GpuConvertToYuvParam;

/** Of which a GPU's kernel takes the first part. */
typedef struct {
  GpuConvertToYuvParam param;
  GpuConvertArgs whole;
} GpuConvertToYuvArgs;

/** Between two neighbouring chroma samples: @i0 has the weight 4 - @w1. */
typedef struct {
  uint32_t i0;
  uint32_t i1;
  uint32_t w1;
} GpuConvertTap;

/** The chroma samples around luma position @x, in one direction. @n: samples that there are. */
GPU_PIXEL_FUNC GpuConvertTap
gpu_convert_tap (uint32_t x, uint32_t n, uint32_t sited)
{
  const uint32_t i = x / 2;
  const uint32_t before = sited || (x & 1) ? i : i ? i - 1 : 0;
  const uint32_t after = x & 1 ? (i + 1 < n ? i + 1 : n - 1) : i;
  GpuConvertTap tap;

  tap.i0 = before;
  tap.i1 = after;
  tap.w1 = sited ? (x & 1) * 2 : x & 1 ? 1 : 3;
  return tap;
}

/** Component @k of the destination, with its fraction. */
GPU_PIXEL_FUNC int32_t
gpu_convert_mix (const GpuConvertArgs *args, unsigned k, int32_t a, int32_t b, int32_t c)
{
  return (args->matrix[k][0] * a + args->matrix[k][1] * b + args->matrix[k][2] * c + args->offset[k]) >>
         (int)args->shift;
}

/** The sample that @value, which has @bits of fraction, rounds to. */
GPU_PIXEL_FUNC int32_t
gpu_convert_round (int32_t value, int32_t max, int bits)
{
  value = (value + (1 << (bits - 1))) >> bits;
  return value < 0 ? 0 : value > max ? max : value;
}

/**
 * GpuPlanesArgs:
 *
 * The samples of up to two planes, each by itself: (value * factor + offset) >> shift, with the rounding in the offset.
 */
typedef struct {
  GpuPixels src[2];
  GpuPixels dst[2];
  int32_t factor[2];
  int32_t offset[2];
  uint32_t shift[2];
  uint32_t width[2];
  uint32_t height[2];
  uint32_t src_down;
  uint32_t dst_up;
  int32_t max;
  uint32_t first; /* row of the second plane, after those of the first */
  uint32_t rows;
  uint32_t reserved;
} GpuPlanesArgs;

/** Threads of a block next to each other, and one above the other, for lines of 16 samples: as many lines are the 128
 * bytes that memory is read in. */
#define GPU_CONVERT_LINES_X 8
#define GPU_CONVERT_LINES_Y 32

/**
 * GpuPlaneLines:
 * @src, @dst: of both components of chroma, in this order; of one plane for both, or luma, that plane's first sample
 * @height: 0 if there is none
 * @is_same: whether samples become what they are, and only their order is another one
 *
 * What one of the planes is for lines of 16 samples.
 */
typedef struct {
  const uint8_t *src[2];
  uint8_t *dst[2];
  uint32_t src_stride[2];
  uint32_t dst_stride[2];
  uint32_t height;
  int32_t factor;
  int32_t offset;
  uint32_t shift;
  uint32_t is_same;
  uint32_t reserved;
} GpuPlaneLines;

/**
 * GpuPlaneLinesParam:
 * @plane: luma; both components of chroma together
 * @lines: of a row
 * @first: the row of blocks at which chroma begins
 * @src_apart, @dst_apart: whether chroma's components have planes of their own
 */
typedef struct {
  GpuPlaneLines plane[2];
  uint32_t lines;
  uint32_t first;
  uint32_t src_apart;
  uint32_t dst_apart;
} GpuPlaneLinesParam;

/** Of which a GPU's kernel takes the first part. */
typedef struct {
  GpuPlaneLinesParam param;
  GpuPlanesArgs whole;
} GpuPlaneLinesArgs;

GPU_PIXEL_FUNC uint32_t
gpu_convert_sample (const GpuPlanesArgs *args, unsigned plane, uint32_t sample)
{
  int32_t value =
      ((int32_t)(sample >> args->src_down) * args->factor[plane] + args->offset[plane]) >> (int)args->shift[plane];

  value = value < 0 ? 0 : value > args->max ? args->max : value;
  return (uint32_t)value << args->dst_up;
}

/** Between tensors: @n elements one after the other. */
typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  uint64_t n;
  float scale;
  float offset;
  uint32_t src_size;
  uint32_t dst_size;
  uint32_t vector;
  uint32_t reserved;
} GpuElementsArgs;

/** Bits of an element of @size bytes to a number. */
GPU_PIXEL_FUNC float
gpu_element_value (uint32_t bits, uint32_t size)
{
  return size == 1 ? (float)bits : size == 2 ? gpu_float_from_half ((uint16_t)bits) : gpu_float_from_bits (bits);
}

GPU_PIXEL_FUNC uint32_t
gpu_element_bits (float value, uint32_t size)
{
  return size == 1 ? gpu_round_to_byte (value) : size == 2 ? gpu_half_from_float (value) : gpu_float_bits (value);
}

/** in * scale + offset, each step rounded. */
GPU_PIXEL_FUNC uint32_t
gpu_convert_element (uint32_t bits, uint32_t src_size, uint32_t dst_size, float scale, float offset)
{
  const float scaled = gpu_element_value (bits, src_size) * scale;

  return gpu_element_bits (scaled + offset, dst_size);
}
