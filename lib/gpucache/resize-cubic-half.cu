/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling on the GPU, antialiased bicubic, to exactly half in both directions: see resize-filter-half.h. A thread walks
 * down some rows and makes 8 bytes, or four pixels of 3, of each. It filters every row of the source that it comes to,
 * once, with each channel's samples four in a word, of which dot products make sums. What lies beside comes from the
 * lanes beside it: a warp's first and last lane are there for that alone.
 */
#include "ptx.cuh"
#include "resize-filter-half.h"
#include "resize-half.cuh"
#include "resize.cuh"
#include "table.cuh"

/* Lanes of a warp that make something. */
#define LANES GPU_CUBIC_HALF_LANES

/* Of eight samples the first four and the last: -3, -9, 29, 111, and 111, 29, -9, -3. */
#define BEFORE 0x6f1df7fdu
#define AFTER 0xfdf71d6fu

/* Of two rows above another two, which come first. */
#define ABOVE 0xf7fd6f1du
#define BELOW 0x1d6ffdf7u

#define ROUNDING 128

/* What a lane reads of a row, and makes of two: of each channel some words of four samples, and half as many samples.
 */
template <unsigned bytes> constexpr unsigned words_of = gpu_half_words<bytes>;
template <unsigned bytes> constexpr unsigned groups_of = words_of<bytes> / bytes;
template <unsigned bytes> constexpr unsigned samples_of = 2 * words_of<bytes>;

/* What is the same for all rows of a lane. */
struct Lane {
  bool exists;
  bool is_first; /* of the row */
  bool is_last;
  bool has_edges; /* the warp, any of the two */
};

template <unsigned bytes>
static __device__ __forceinline__ void
load_row (const uint8_t *p, const Lane &lane, bool exists, uint32_t word[words_of<bytes>])
{
#pragma unroll
  for (unsigned i = 0; i < words_of<bytes>; i++)
    word[i] = 0;
  if (exists && lane.exists)
    gpu_load_words<words_of<bytes>> (p, word);
}

/* Four pixels of three bytes. */
static __device__ __forceinline__ void
split_three (const uint32_t word[3], uint32_t &first, uint32_t &second, uint32_t &third)
{
  first = __byte_perm (__byte_perm (word[0], word[1], 0x0630), word[2], 0x5210);
  second = __byte_perm (__byte_perm (word[0], word[1], 0x0741), word[2], 0x6210);
  third = __byte_perm (__byte_perm (word[0], word[1], 0x0052), word[2], 0x7410);
}

/* Each channel by itself. */
template <unsigned bytes, bool premultiplied>
static __device__ __forceinline__ void
split_channels (const uint32_t word[words_of<bytes>], uint32_t alpha, uint32_t out[bytes][groups_of<bytes>])
{
  if constexpr (bytes == 1) {
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      out[0][i] = word[i];
  } else if constexpr (bytes == 2) {
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
      out[0][i] = __byte_perm (word[2 * i], word[2 * i + 1], 0x6420);
      out[1][i] = __byte_perm (word[2 * i], word[2 * i + 1], 0x7531);
    }
  } else if constexpr (bytes == 3) {
#pragma unroll
    for (unsigned i = 0; i < 2; i++)
      split_three (word + 3 * i, out[0][i], out[1][i], out[2][i]);
  } else if constexpr (premultiplied) {
    uint32_t sample[4][4];

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      premultiply_apart (word[i], alpha, sample[i]);
#pragma unroll
    for (unsigned c = 0; c < 4; c++)
      out[c][0] = __byte_perm (__byte_perm (sample[0][c], sample[1][c], 0x0062),
                               __byte_perm (sample[2][c], sample[3][c], 0x0062), 0x5410);
  } else {
    uint32_t channel[4];

    gpu_transpose_bytes (word, channel);
#pragma unroll
    for (unsigned c = 0; c < 4; c++)
      out[c][0] = channel[c];
  }
}

/* From a sum of products, and what rounds it, to a sample, not saturated: @distance from an edge. */
static __device__ __forceinline__ int32_t
edge_of (int32_t sum, unsigned distance)
{
  return (int32_t)gpu_cubic_half_edge (sum - ROUNDING, distance);
}

/* A row's samples, not saturated. */
template <unsigned bytes, bool premultiplied>
static __device__ __forceinline__ void
filter_row (const uint32_t word[words_of<bytes>], const Lane &lane, uint32_t alpha, int32_t out[samples_of<bytes>])
{
  constexpr unsigned groups = groups_of<bytes>;
  uint32_t channel[bytes][groups];
  int32_t sum[samples_of<bytes>];

  split_channels<bytes, premultiplied> (word, alpha, channel);
#pragma unroll
  for (unsigned c = 0; c < bytes; c++) {
    const uint32_t low = __shfl_up_sync (0xffffffff, channel[c][groups - 1], 1);
    const uint32_t high = __shfl_down_sync (0xffffffff, channel[c][0], 1);

#pragma unroll
    for (unsigned i = 0; i < groups; i++) {
      const uint32_t before = i ? channel[c][i - 1] : low, here = channel[c][i];
      const uint32_t after = i + 1 < groups ? channel[c][i + 1] : high;

#pragma unroll
      for (unsigned k = 0; k < 2; k++) {
        const unsigned from = k ? 0x6543 : 0x4321;

        sum[(2 * i + k) * bytes + c] = gpu_dp4a (__byte_perm (here, after, from), AFTER,
                                                 gpu_dp4a (__byte_perm (before, here, from), BEFORE, ROUNDING));
      }
    }
  }
#pragma unroll
  for (unsigned i = 0; i < samples_of<bytes>; i++)
    out[i] = sum[i] >> 8;
  if (lane.has_edges) {
#pragma unroll
    for (unsigned i = 0; i < 2 * bytes; i++) {
      constexpr unsigned last = samples_of<bytes> - 1;

      if (lane.is_first)
        out[i] = edge_of (sum[i], i / bytes);
      if (lane.is_last)
        out[last - i] = edge_of (sum[last - i], i / bytes);
    }
  }
}

/* What a warp's lanes make of a row, side by side: three words each go through @stage, to be written side by side. */
template <unsigned n_out>
static __device__ __forceinline__ void
store_units (uint8_t *row, uint32_t first, uint32_t units, bool writes, const uint32_t out[n_out], uint32_t *stage)
{
  uint8_t *p = row + (uint64_t)first * 4 * n_out;

  if constexpr (n_out == 3) {
    const uint32_t words = 3 * min (LANES, units - first);

    if (writes)
      gpu_store_words<3> ((uint8_t *)(stage + 3 * (threadIdx.x - 1)), out);
    __syncwarp ();
#pragma unroll
    for (unsigned i = 0; i < 3; i++)
      if (threadIdx.x + 32 * i < words)
        ((uint32_t *)p)[threadIdx.x + 32 * i] = stage[threadIdx.x + 32 * i];
    __syncwarp ();
  } else if (writes) {
    gpu_store_words<n_out> (p + (threadIdx.x - 1) * 4 * n_out, out);
  }
}

/* @count rows from row @y on. */
template <unsigned bytes, bool premultiplied>
static __device__ __forceinline__ void
filter_lines (const GpuFilterHalfPlane &plane, uint32_t y, uint32_t count, uint32_t *stage)
{
  constexpr unsigned n = words_of<bytes>, n_out = n / 2, n_samples = samples_of<bytes>;
  const uint32_t height = plane.height, alpha = plane.alpha, units = plane.width * bytes / (4 * n_out);
  const uint64_t src_stride = plane.src_stride;
  const int32_t first = (int32_t)(blockIdx.x * LANES), unit = first + (int32_t)threadIdx.x - 1;
  const bool writes = threadIdx.x - 1 < LANES && (uint32_t)unit < units;
  Lane lane;

  lane.exists = (uint32_t)unit < units;
  lane.is_first = unit == 0;
  lane.is_last = unit + 1 == (int32_t)units;
  lane.has_edges = first == 0 || (uint32_t)first + LANES >= units;

  /* Of row @row of the source, and the next one. Those above the picture are beyond its end, too. */
  uint32_t row = 2 * y - 3;
  const uint32_t end = min (2 * height, 2 * (y + count) + 3);
  const uint8_t *src =
      gpu_base ((uint8_t *)plane.src) + (2 * (int64_t)y - 3) * (int64_t)src_stride + (int64_t)unit * (int32_t)(4 * n);
  uint8_t *dst = gpu_base (plane.dst) + y * plane.dst_stride;
  uint32_t upper[n], lower[n], quad[n_samples] = {};
  int32_t sum[2][n_samples] = {};

  load_row<bytes> (src, lane, row < end, upper);
  load_row<bytes> (src + src_stride, lane, row + 1 < end, lower);
#pragma unroll 1
  for (int32_t i = -3; i < (int32_t)count; i++) {
    int32_t first_row[n_samples], second_row[n_samples];

    src += 2 * src_stride;
    row += 2;
    filter_row<bytes, premultiplied> (upper, lane, alpha, first_row);
    load_row<bytes> (src, lane, row < end, upper);
    filter_row<bytes, premultiplied> (lower, lane, alpha, second_row);
    load_row<bytes> (src + src_stride, lane, row + 1 < end, lower);
    /* The last two rows' samples, with those of the two before them above. */
#pragma unroll
    for (unsigned k = 0; k < n_samples; k++)
      quad[k] = gpu_pack_saturated (first_row[k], second_row[k], quad[k]);

    if (i >= 0) {
      int32_t value[n_samples];
      uint32_t out[n_out];
      const uint32_t from_edge = min (y, height - 1 - y);

#pragma unroll
      for (unsigned k = 0; k < n_samples; k++) {
        sum[0][k] = gpu_dp4a (quad[k], BELOW, sum[0][k]);
        value[k] = sum[0][k] >> 8;
      }
      if (from_edge < 2)
#pragma unroll
        for (unsigned k = 0; k < n_samples; k++)
          value[k] = edge_of (sum[0][k], from_edge);
#pragma unroll
      for (unsigned k = 0; k < n_out; k++) {
        out[k] = gpu_pack_saturated (value[4 * k], value[4 * k + 1],
                                     gpu_pack_saturated (value[4 * k + 2], value[4 * k + 3], 0));
        if constexpr (premultiplied)
          out[k] = unpremultiply (out[k], alpha);
      }
      store_units<n_out> (dst, (uint32_t)first, units, writes, out, stage);
      dst += plane.dst_stride;
      y++;
    }
#pragma unroll
    for (unsigned k = 0; k < n_samples; k++) {
      sum[0][k] = sum[1][k];
      sum[1][k] = gpu_dp4a (quad[k], ABOVE, ROUNDING);
    }
  }
}

static __device__ __forceinline__ void
run_resize_cubic_half (const GpuFilterHalfArgs &args)
{
  const uint32_t lines = args.lines, rows = lines * GPU_RESIZE_BLOCK_Y;
  __shared__ uint32_t stage[GPU_RESIZE_BLOCK_Y][32 * 3];

  for (uint64_t row = (uint64_t)blockIdx.y * rows; row < args.rows.total; row += (uint64_t)gridDim.y * rows) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuFilterHalfPlane &plane = args.plane[i];
    const uint32_t y = (uint32_t)(row - args.rows.first[i]) + threadIdx.y * lines;
    const uint32_t bytes = LANES * gpu_resize_half_bytes (plane.bytes);

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
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, GPU_CUBIC_HALF_BLOCKS)
    gpu_resize_cubic_half (const __grid_constant__ GpuFilterHalfArgs args)
{
  run_resize_cubic_half (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, GPU_CUBIC_HALF_BLOCKS)
    gpu_resize_cubic_half_table (const __grid_constant__ GpuTable<GpuFilterHalfArgs> table)
{
  run_resize_cubic_half (gpu_table_args (table));
}
