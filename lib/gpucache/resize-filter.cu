/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling with filters on the GPU, in two passes, for what resize-tile.cu does not do: samples of 16 bits, and pictures
 * that shrink by very much. Of rows, a thread makes four pixels of a column, for which it reads each weight once. Of
 * columns, a thread makes four pixels of a row, whose weights are the same.
 */
#include "ptx.cuh"
#include "resize-pixel.h"
#include "resize.cuh"
#include "table.cuh"

/* Sample @i of a pixel: bits @i of @pixel, or those of the upper 10 that count of 16. */
template <bool wide>
static __device__ __forceinline__ int32_t
sample_of (uint32_t pixel, unsigned i)
{
  return (int32_t)(wide ? pixel >> (16 * i) & 0xffff : gpu_byte (pixel, i));
}

/* Filters of 8 bits, the fast way. Weights of up to 23 bits go in two parts of 11 and 12 bits, two taps at a time, of
 * which one instruction makes the sum with two samples. */

struct Weights {
  uint32_t low;
  uint32_t high;
};

#define LOW_BITS 11

static __device__ __forceinline__ Weights
split_weights (int32_t first, int32_t second)
{
  const uint32_t mask = (1u << LOW_BITS) - 1;

  return Weights{((uint32_t)first & mask) | ((uint32_t)second & mask) << 16,
                 ((uint32_t)(first >> LOW_BITS) & 0xffff) | (uint32_t)(second >> LOW_BITS) << 16};
}

/* Sums of a pixel's samples, in both parts. */
template <unsigned samples> struct Sums {
  int32_t low[samples];
  int32_t high[samples];
};

/* Two pixels of 3 or 4 bytes. */
template <unsigned samples>
static __device__ __forceinline__ void
add_pixels (Sums<samples> &sums, const Weights &weights, uint32_t first, uint32_t second)
{
  const uint32_t lower = __byte_perm (first, second, 0x5140), upper = __byte_perm (first, second, 0x7362);

  sums.low[0] = gpu_dp2a_lower (weights.low, lower, sums.low[0]);
  sums.high[0] = gpu_dp2a_lower (weights.high, lower, sums.high[0]);
  if constexpr (samples > 1) {
    sums.low[1] = gpu_dp2a_upper (weights.low, lower, sums.low[1]);
    sums.high[1] = gpu_dp2a_upper (weights.high, lower, sums.high[1]);
  }
  if constexpr (samples > 2) {
    sums.low[2] = gpu_dp2a_lower (weights.low, upper, sums.low[2]);
    sums.high[2] = gpu_dp2a_lower (weights.high, upper, sums.high[2]);
  }
  if constexpr (samples > 3) {
    sums.low[3] = gpu_dp2a_upper (weights.low, upper, sums.low[3]);
    sums.high[3] = gpu_dp2a_upper (weights.high, upper, sums.high[3]);
  }
}

template <unsigned samples>
static __device__ __forceinline__ uint32_t
round_sums (const Sums<samples> &sums)
{
  uint32_t pixel = 0;

#pragma unroll
  for (unsigned c = 0; c < samples; c++)
    pixel |= gpu_filter_round ((int32_t)((uint32_t)sums.high[c] << LOW_BITS) + sums.low[c], 0) << (8 * c);
  return pixel;
}

/* Four rows of column @x, from row @y on. */
template <unsigned bytes, bool wide>
static __device__ __forceinline__ void
filter_rows (const GpuFilterPlane &plane, uint32_t x, uint32_t y)
{
  const unsigned samples = wide ? bytes / 2 : bytes, mid_bytes = bytes == 3 ? 4 : bytes;
  const unsigned n = min (GPU_RESIZE_ROWS, plane.height - y);
  const int32_t *table = plane.table + (uint64_t)x * (plane.taps + 2);
  const int32_t taps = table[1];
  const uint8_t *src = plane.src + ((uint64_t)plane.first + y) * plane.src_stride + (uint64_t)table[0] * bytes;
  int32_t sum[GPU_RESIZE_ROWS][samples];

#pragma unroll
  for (unsigned r = 0; r < GPU_RESIZE_ROWS; r++)
#pragma unroll
    for (unsigned c = 0; c < samples; c++)
      sum[r][c] = 0;

  for (int32_t k = 0; k < taps; k++) {
    const int32_t weight = table[2 + k];

#pragma unroll
    for (unsigned r = 0; r < GPU_RESIZE_ROWS; r++) {
      uint32_t pixel =
          load_pixel<bytes> (src + (r < n ? r : 0) * plane.src_stride + (uint64_t)k * bytes, plane.aligned);

      if (bytes == 4 && !wide && plane.alpha < 4)
        pixel = premultiply (pixel, plane.alpha);
#pragma unroll
      for (unsigned c = 0; c < samples; c++)
        sum[r][c] += (wide ? sample_of<wide> (pixel, c) >> 6 : sample_of<wide> (pixel, c)) * weight;
    }
  }

#pragma unroll
  for (unsigned r = 0; r < GPU_RESIZE_ROWS; r++) {
    uint8_t *dst = plane.dst + (y + r) * plane.dst_stride + (uint64_t)x * mid_bytes;
    uint32_t pixel = 0;

#pragma unroll
    for (unsigned c = 0; c < samples; c++)
      pixel |= gpu_filter_round (sum[r][c], wide) << (wide ? 16 * c : 8 * c);
    if (r >= n)
      break;
    if (mid_bytes == 1)
      *dst = (uint8_t)pixel;
    else if (mid_bytes == 2)
      *(uint16_t *)dst = (uint16_t)pixel;
    else
      *(uint32_t *)dst = pixel;
  }
}

static __device__ __forceinline__ void
run_resize_filter_rows (const GpuFilterArgs &args)
{
  const uint64_t x = (uint64_t)blockIdx.x * GPU_RESIZE_BLOCK_X + threadIdx.x;

  for (uint64_t row = (uint64_t)blockIdx.y * GPU_RESIZE_BLOCK_Y + threadIdx.y; row < args.rows.total;
       row += (uint64_t)gridDim.y * GPU_RESIZE_BLOCK_Y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuFilterPlane &plane = args.plane[i];
    const uint64_t y = (row - args.rows.first[i]) * GPU_RESIZE_ROWS;

    if (x >= plane.width || y >= plane.height)
      continue;
    if (plane.wide && plane.bytes == 2)
      filter_rows<2, true> (plane, (uint32_t)x, (uint32_t)y);
    else if (plane.wide)
      filter_rows<4, true> (plane, (uint32_t)x, (uint32_t)y);
    else if (plane.bytes == 1)
      filter_rows<1, false> (plane, (uint32_t)x, (uint32_t)y);
    else if (plane.bytes == 2)
      filter_rows<2, false> (plane, (uint32_t)x, (uint32_t)y);
    else if (plane.bytes == 3)
      filter_rows<3, false> (plane, (uint32_t)x, (uint32_t)y);
    else
      filter_rows<4, false> (plane, (uint32_t)x, (uint32_t)y);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_filter_rows (const __grid_constant__ GpuFilterArgs args)
{
  run_resize_filter_rows (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_filter_rows_table (const __grid_constant__ GpuTable<GpuFilterArgs> table)
{
  run_resize_filter_rows (gpu_table_args (table));
}

/* Four pixels of a row of the picture between, from @x on: at once if @whole, which is where all of them exist and
 * begin at a multiple of their size. */
template <unsigned bytes>
static __device__ __forceinline__ void
load_between (const uint8_t *row, uint32_t x, uint32_t width, bool whole, uint32_t pixel[GPU_RESIZE_PIXELS])
{
  if (whole) {
    const uint8_t *p = row + (uint64_t)x * bytes;

    if (bytes == 1) {
      const uint32_t v = *(const uint32_t *)p;
      pixel[0] = v & 0xff, pixel[1] = v >> 8 & 0xff, pixel[2] = v >> 16 & 0xff, pixel[3] = v >> 24;
    } else if (bytes == 2) {
      const uint2 v = *(const uint2 *)p;
      pixel[0] = v.x & 0xffff, pixel[1] = v.x >> 16, pixel[2] = v.y & 0xffff, pixel[3] = v.y >> 16;
    } else {
      const uint4 v = *(const uint4 *)p;
      pixel[0] = v.x, pixel[1] = v.y, pixel[2] = v.z, pixel[3] = v.w;
    }
    return;
  }
#pragma unroll
  for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
    pixel[k] = x + k < width ? load_pixel<bytes> (row + (uint64_t)(x + k) * bytes, true) : 0;
}

/* The sums of 8-bit pixels, two taps at a time; the last of an odd number of them is taken with a weight of 0. */
template <unsigned bytes>
static __device__ __forceinline__ void
filter_column_pairs (const GpuFilterPlane &plane, const int32_t *table, const uint8_t *row, uint32_t x, bool whole,
                     uint32_t pixel[GPU_RESIZE_PIXELS])
{
  const unsigned mid_bytes = bytes == 3 ? 4 : bytes;
  const int32_t taps = table[1];
  Sums<bytes> sums[GPU_RESIZE_PIXELS] = {};

  for (int32_t t = 0; t < taps; t += 2) {
    const bool two = t + 1 < taps;
    const Weights weights = split_weights (table[2 + t], two ? table[3 + t] : 0);
    uint32_t first[GPU_RESIZE_PIXELS], second[GPU_RESIZE_PIXELS];

    load_between<mid_bytes> (row, x, plane.part_width, whole, first);
    load_between<mid_bytes> (row + (two ? plane.src_stride : 0), x, plane.part_width, whole, second);
    row += 2 * plane.src_stride;
#pragma unroll
    for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
      add_pixels<bytes> (sums[k], weights, first[k], second[k]);
  }
#pragma unroll
  for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
    pixel[k] = round_sums<bytes> (sums[k]);
}

/* The same of 16 bits, of which the upper 10 count. */
template <unsigned bytes>
static __device__ __forceinline__ void
filter_column_wide (const GpuFilterPlane &plane, const int32_t *table, const uint8_t *row, uint32_t x, bool whole,
                    uint32_t pixel[GPU_RESIZE_PIXELS])
{
  const unsigned samples = bytes / 2;
  int32_t sum[GPU_RESIZE_PIXELS][samples] = {};

  for (int32_t t = 0; t < table[1]; t++, row += plane.src_stride) {
    const int32_t weight = table[2 + t];
    uint32_t in[GPU_RESIZE_PIXELS];

    load_between<bytes> (row, x, plane.part_width, whole, in);
#pragma unroll
    for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
#pragma unroll
      for (unsigned c = 0; c < samples; c++)
        sum[k][c] += sample_of<true> (in[k], c) * weight;
  }
#pragma unroll
  for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++) {
    pixel[k] = 0;
#pragma unroll
    for (unsigned c = 0; c < samples; c++)
      pixel[k] |= gpu_filter_round (sum[k][c], true) << (16 * c + 6);
  }
}

/* Four pixels of row @y of the destination, from @x0 on. */
template <unsigned bytes, bool wide>
static __device__ __forceinline__ void
filter_columns (const GpuFilterPlane &plane, uint32_t x0, uint32_t y)
{
  const unsigned n = min (GPU_RESIZE_PIXELS, plane.width - x0);
  const uint32_t x = x0 - plane.left; /* in the part, or a number too large for it */
  uint32_t pixel[GPU_RESIZE_PIXELS];

#pragma unroll
  for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
    pixel[k] = plane.border;

  if (y - plane.top < plane.part_height && x0 + GPU_RESIZE_PIXELS > plane.left && x0 < plane.left + plane.part_width) {
    const int32_t *table = plane.table + (uint64_t)(y - plane.top) * (plane.taps + 2);
    const uint8_t *row = plane.src + (uint64_t)(table[0] - (int64_t)plane.first) * plane.src_stride;
    const bool whole = !(x & 3) && x < plane.part_width && plane.part_width - x >= GPU_RESIZE_PIXELS;
    uint32_t value[GPU_RESIZE_PIXELS];

    if constexpr (wide)
      filter_column_wide<bytes> (plane, table, row, x, whole, value);
    else
      filter_column_pairs<bytes> (plane, table, row, x, whole, value);
#pragma unroll
    for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
      if (x + k < plane.part_width)
        pixel[k] = bytes == 4 && !wide && plane.alpha < 4 ? unpremultiply (value[k], plane.alpha) : value[k];
  }
  store_pixels<bytes> (plane.dst + y * plane.dst_stride + (uint64_t)x0 * bytes, pixel, n, plane.aligned);
}

static __device__ __forceinline__ void
run_resize_filter_columns (const GpuFilterArgs &args)
{
  const uint64_t x0 = ((uint64_t)blockIdx.x * GPU_RESIZE_BLOCK_X + threadIdx.x) * GPU_RESIZE_PIXELS;

  for (uint64_t row = (uint64_t)blockIdx.y * GPU_RESIZE_BLOCK_Y + threadIdx.y; row < args.rows.total;
       row += (uint64_t)gridDim.y * GPU_RESIZE_BLOCK_Y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuFilterPlane &plane = args.plane[i];
    const uint64_t y = row - args.rows.first[i];

    if (x0 >= plane.width || y >= plane.height)
      continue;
    if (plane.wide && plane.bytes == 2)
      filter_columns<2, true> (plane, (uint32_t)x0, (uint32_t)y);
    else if (plane.wide)
      filter_columns<4, true> (plane, (uint32_t)x0, (uint32_t)y);
    else if (plane.bytes == 1)
      filter_columns<1, false> (plane, (uint32_t)x0, (uint32_t)y);
    else if (plane.bytes == 2)
      filter_columns<2, false> (plane, (uint32_t)x0, (uint32_t)y);
    else if (plane.bytes == 3)
      filter_columns<3, false> (plane, (uint32_t)x0, (uint32_t)y);
    else
      filter_columns<4, false> (plane, (uint32_t)x0, (uint32_t)y);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_filter_columns (const __grid_constant__ GpuFilterArgs args)
{
  run_resize_filter_columns (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_filter_columns_table (const __grid_constant__ GpuTable<GpuFilterArgs> table)
{
  run_resize_filter_columns (gpu_table_args (table));
}
