/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling on the GPU, antialiased bilinear, to exactly half in both directions: see resize-filter-half.h. A thread
 * walks down some rows and makes 8 bytes, or four pixels of 3, of each. It filters every row of the source that it
 * comes to, once, and keeps of those what the next row of the destination takes of them. A pixel to the left and one to
 * the right are what the lanes beside it have read.
 *
 * Two samples lie in a word, of 16 bits each, which are enough for their sums.
 */
#include "ptx.cuh"
#include "resize-filter-half.h"
#include "resize-half.cuh"
#include "resize.cuh"
#include "table.cuh"

/* What a lane has of a row: words side by side, and, of a warp's first and last lane, the word beside the warp's. Zeros
 * where the row has nothing. */
template <unsigned bytes> struct Row {
  uint32_t word[gpu_half_words<bytes>];
  uint32_t beside;
};

/* What is the same for all rows of a lane. */
struct Lane {
  int32_t beside; /* from its words to the word beside the warp's */
  bool exists;
  bool has_beside;
  bool is_first; /* of the row */
  bool is_last;
  bool has_edges; /* the warp, any of the two */
};

/* Words of the destination, each as bytes 0 and 2, and 1 and 3. */
template <unsigned bytes> using Pairs = uint32_t[gpu_half_words<bytes> / 2][2];

/* Leaves @row as it is if that is not to be read. */
template <unsigned bytes>
static __device__ __forceinline__ void
load_row (const uint8_t *p, const Lane &lane, bool is_read, Row<bytes> &row)
{
  if (is_read && lane.exists)
    gpu_load_words<gpu_half_words<bytes>> (p, row.word);
  if (is_read && lane.has_beside)
    row.beside = *(const uint32_t *)(p + lane.beside);
}

template <bool premultiplied>
static __device__ __forceinline__ void
split_pixel (uint32_t pixel, uint32_t alpha, uint32_t pairs[2])
{
  if constexpr (premultiplied) {
    uint32_t sample[4];

    premultiply_apart (pixel, alpha, sample);
    pairs[0] = __byte_perm (sample[0], sample[2], 0x7632);
    pairs[1] = __byte_perm (sample[1], sample[3], 0x7632);
  } else {
    gpu_split_bytes (pixel, pairs);
  }
}

/* Both of two sums by themselves, which have 4 more than is to be divided by 7. */
static __device__ __forceinline__ uint32_t
edges_of (uint32_t sums)
{
  return gpu_filter_half_edge ((sums & 0xffff) - 4) | gpu_filter_half_edge ((sums >> 16) - 4) << 16;
}

/* Where a word's pairs @i have those of its four bytes that are in @mask. */
static __device__ __forceinline__ uint32_t
pairs_mask (uint32_t mask, unsigned i)
{
  return (mask >> i & 1 ? 0xffff : 0) | (mask >> i & 4 ? 0xffff0000 : 0);
}

/* A row's samples, eight times each. */
template <unsigned bytes, bool premultiplied>
static __device__ __forceinline__ void
filter_row (const Row<bytes> &row, const Lane &lane, uint32_t alpha, Pairs<bytes> &out)
{
  constexpr unsigned n = gpu_half_words<bytes>, n_out = n / 2;
  const uint32_t *word = row.word;
  /* The pixels beside: of the first one the upper bytes, of the other the lower. */
  const uint32_t low = __shfl_up_sync (0xffffffff, word[n - 1], 1), high = __shfl_down_sync (0xffffffff, word[0], 1);
  const uint32_t first = threadIdx.x == 0 ? row.beside : low, last = threadIdx.x == 31 ? row.beside : high;
  Pairs<bytes> before, left, right, after;

  if constexpr (bytes == 4) {
    const uint32_t pixel[6] = {first, word[0], word[1], word[2], word[3], last};
    uint32_t pairs[6][2];

#pragma unroll
    for (unsigned i = 0; i < 6; i++)
      split_pixel<premultiplied> (pixel[i], alpha, pairs[i]);
#pragma unroll
    for (unsigned i = 0; i < n_out; i++)
#pragma unroll
      for (unsigned k = 0; k < 2; k++) {
        before[i][k] = pairs[2 * i][k];
        left[i][k] = pairs[2 * i + 1][k];
        right[i][k] = pairs[2 * i + 2][k];
        after[i][k] = pairs[2 * i + 3][k];
      }
  } else {
    uint32_t even[n_out], odd[n_out];

    gpu_split_pairs<bytes> (word, even, odd);
#pragma unroll
    for (unsigned i = 0; i < n_out; i++) {
      gpu_split_bytes (__funnelshift_l (i ? odd[i - 1] : first, odd[i], 8 * bytes), before[i]);
      gpu_split_bytes (even[i], left[i]);
      gpu_split_bytes (odd[i], right[i]);
      gpu_split_bytes (__funnelshift_r (even[i], i + 1 < n_out ? even[i + 1] : last, 8 * bytes), after[i]);
    }
  }

  uint32_t sum[n_out][2];
#pragma unroll
  for (unsigned i = 0; i < n_out; i++)
#pragma unroll
    for (unsigned k = 0; k < 2; k++) {
      sum[i][k] = (left[i][k] + right[i][k]) * 3 + (before[i][k] + after[i][k] + 0x40004);
      out[i][k] = sum[i][k] & 0x7f807f8;
    }
  if (lane.has_edges) {
#pragma unroll
    for (unsigned k = 0; k < 2; k++) {
      const uint32_t begin = lane.is_first ? pairs_mask ((1u << bytes) - 1, k) : 0;
      const uint32_t end = lane.is_last ? pairs_mask (0xf0u >> bytes, k) : 0;

      out[0][k] = (out[0][k] & ~begin) | (edges_of (sum[0][k]) << 3 & begin);
      out[n_out - 1][k] = (out[n_out - 1][k] & ~end) | (edges_of (sum[n_out - 1][k]) << 3 & end);
    }
  }
}

/* From rows of the source that a lane has filtered to what it makes of a row. @sums: what the rows before these two
 * come to, and then what these come to for the next row. */
template <unsigned bytes, bool premultiplied>
static __device__ __forceinline__ void
filter_columns (const Pairs<bytes> &third, const Pairs<bytes> &fourth, bool is_first, bool is_last, uint32_t alpha,
                Pairs<bytes> &sums, uint32_t out[gpu_half_words<bytes> / 2])
{
  constexpr unsigned n_out = gpu_half_words<bytes> / 2;
  uint32_t sum[n_out][2];

#pragma unroll
  for (unsigned i = 0; i < n_out; i++) {
#pragma unroll
    for (unsigned k = 0; k < 2; k++) {
      sum[i][k] = third[i][k] * 3 + fourth[i][k] + sums[i][k];
      sums[i][k] = fourth[i][k] * 3 + third[i][k] + 0x200020;
    }
    out[i] = (sum[i][0] >> 6 & 0xff00ff) | (sum[i][1] << 2 & 0xff00ff00);
  }
  if (is_first || is_last)
#pragma unroll
    for (unsigned i = 0; i < n_out; i++) {
      uint32_t pairs[2];

      /* Below the last row there is none. */
#pragma unroll
      for (unsigned k = 0; k < 2; k++)
        pairs[k] = edges_of ((is_last ? sum[i][k] - fourth[i][k] : sum[i][k]) >> 3 & 0x1fff1fff);
      out[i] = pairs[0] | pairs[1] << 8;
    }
  if constexpr (premultiplied)
#pragma unroll
    for (unsigned i = 0; i < n_out; i++)
      out[i] = unpremultiply (out[i], alpha);
}

/* @count rows from row @y on. */
template <unsigned bytes, bool premultiplied>
static __device__ __forceinline__ void
filter_lines (const GpuFilterHalfPlane &plane, uint32_t y, uint32_t count, uint4 *stage)
{
  constexpr unsigned n = gpu_half_words<bytes>, n_out = n / 2, pixels = 2 * n / bytes;
  const uint32_t warp_x = blockIdx.x * 32 * pixels, x = warp_x + threadIdx.x * pixels;
  const uint32_t width = plane.width, height = plane.height, alpha = plane.alpha;
  const uint64_t src_stride = plane.src_stride, dst_stride = plane.dst_stride;
  Lane lane;

  lane.exists = x < width;
  lane.is_first = x == 0;
  lane.is_last = x + pixels == width;
  lane.has_edges = warp_x == 0 || warp_x + 32 * pixels >= width;
  lane.beside = threadIdx.x == 0 ? -4 : (int32_t)(4 * n);
  lane.has_beside = (threadIdx.x == 0 && x > 0) || (threadIdx.x == 31 && x + pixels < width);

  /* Two rows are on their way: as soon as one is filtered, the one after the next takes its place. */
  const uint8_t *src = gpu_base ((uint8_t *)plane.src) + 2 * y * src_stride + (uint64_t)x * 2 * bytes;
  uint8_t *dst = gpu_base (plane.dst) + y * dst_stride + (uint64_t)warp_x * bytes;
  /* The last row that there is and that is needed, counted from the one that is read next. */
  int32_t last = (int32_t)min (2 * (height - y) - 1, 2 * count);
  Row<bytes> rows[4] = {};
  Pairs<bytes> upper, lower, sums;

  load_row<bytes> (src - src_stride, lane, y > 0, rows[2]);
  load_row<bytes> (src, lane, true, rows[3]);
  load_row<bytes> (src + src_stride, lane, true, rows[0]);
  load_row<bytes> (src + 2 * src_stride, lane, last >= 2, rows[1]);
  filter_row<bytes, premultiplied> (rows[2], lane, alpha, upper);
  filter_row<bytes, premultiplied> (rows[3], lane, alpha, lower);
#pragma unroll
  for (unsigned i = 0; i < n_out; i++)
#pragma unroll
    for (unsigned k = 0; k < 2; k++)
      sums[i][k] = lower[i][k] * 3 + upper[i][k] + 0x200020;

  src += 3 * src_stride;
  last -= 3;
#pragma unroll 1
  for (const uint32_t end = y + count; y < end; y++) {
    uint32_t out[n_out];

    filter_row<bytes, premultiplied> (rows[0], lane, alpha, upper);
    load_row<bytes> (src, lane, last >= 0, rows[0]);
    filter_row<bytes, premultiplied> (rows[1], lane, alpha, lower);
    load_row<bytes> (src + src_stride, lane, last >= 1, rows[1]);
    filter_columns<bytes, premultiplied> (upper, lower, y == 0, y == height - 1, alpha, sums, out);
    if constexpr (bytes == 3)
      gpu_store_quads<1, 3, true> (dst, width - warp_x, lane.exists ? GPU_QUAD : 0, true, out, stage);
    else if (lane.exists)
      gpu_store_words<n_out> (dst + threadIdx.x * 4 * n_out, out);
    dst += dst_stride;
    src += 2 * src_stride;
    last -= 2;
  }
}

static __device__ __forceinline__ void
run_resize_filter_half (const GpuFilterHalfArgs &args)
{
  const uint32_t lines = args.lines, rows = lines * GPU_RESIZE_BLOCK_Y;
  __shared__ uint4 stage[GPU_RESIZE_BLOCK_Y][8 * 3];

  for (uint64_t row = (uint64_t)blockIdx.y * rows; row < args.rows.total; row += (uint64_t)gridDim.y * rows) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuFilterHalfPlane &plane = args.plane[i];
    const uint32_t y = (uint32_t)(row - args.rows.first[i]) + threadIdx.y * lines;
    const uint32_t bytes = GPU_RESIZE_BLOCK_X * gpu_resize_half_bytes (plane.bytes);

    if (y >= plane.height || blockIdx.x * bytes >= plane.width * plane.bytes)
      continue;
    const uint32_t count = min (lines, plane.height - y);

    if (plane.bytes == 1)
      filter_lines<1, false> (plane, y, count, NULL);
    else if (plane.bytes == 2)
      filter_lines<2, false> (plane, y, count, NULL);
    else if (plane.bytes == 3)
      filter_lines<3, false> (plane, y, count, stage[threadIdx.y]);
    else if (plane.alpha < 4)
      filter_lines<4, true> (plane, y, count, NULL);
    else
      filter_lines<4, false> (plane, y, count, NULL);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, GPU_FILTER_HALF_BLOCKS)
    gpu_resize_filter_half (const __grid_constant__ GpuFilterHalfArgs args)
{
  run_resize_filter_half (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, GPU_FILTER_HALF_BLOCKS)
    gpu_resize_filter_half_table (const __grid_constant__ GpuTable<GpuFilterHalfArgs> table)
{
  run_resize_filter_half (gpu_table_args (table));
}
