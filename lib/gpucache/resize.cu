/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling on the GPU, nearest and bilinear: a thread makes four pixels of a row, or, bilinear and where addresses allow
 * that, four bytes, or one larger pixel, of several rows.
 */
#include "resize-pixel.h"
#include "resize.cuh"
#include "table.cuh"

/* Where a pixel of the destination comes from: the index in the scaled part, or none. */
static __device__ __forceinline__ bool
is_inside (uint32_t i, uint32_t first, const GpuResizeAxis &axis)
{
  return i - first < axis.dst;
}

template <unsigned bytes>
static __device__ __forceinline__ uint32_t
nearest_pixel (const GpuResizePlane &plane, const uint8_t *row, uint32_t x)
{
  return load_pixel<bytes> (row + (uint64_t)gpu_resize_nearest (&plane.x, x) * bytes, plane.aligned);
}

template <unsigned bytes, bool wide>
static __device__ __forceinline__ uint32_t
bilinear_pixel (const GpuResizePlane &plane, const uint8_t *upper, const uint8_t *lower, uint32_t weight, uint32_t x)
{
  const GpuResizeTap h = gpu_resize_linear (&plane.x, x);
  const uint64_t left = (uint64_t)h.i0 * bytes, right = (uint64_t)h.i1 * bytes;
  const uint32_t a = load_pixel<bytes> (upper + left, plane.aligned);
  const uint32_t b = load_pixel<bytes> (upper + right, plane.aligned);
  const uint32_t c = load_pixel<bytes> (lower + left, plane.aligned);
  const uint32_t d = load_pixel<bytes> (lower + right, plane.aligned);
  uint32_t pixel = 0;

  if constexpr (wide) {
#pragma unroll
    for (unsigned i = 0; i < 8 * bytes; i += 16) {
      const uint32_t above = gpu_resize_mix_wide (a >> i & 0xffff, b >> i & 0xffff, h.weight);
      const uint32_t below = gpu_resize_mix_wide (c >> i & 0xffff, d >> i & 0xffff, h.weight);

      pixel |= gpu_resize_mix_rows_wide (above, below, weight) << i;
    }
  } else {
#pragma unroll
    for (unsigned i = 0; i < bytes; i++) {
      const uint32_t above = gpu_resize_mix (gpu_byte (a, i), gpu_byte (b, i), h.weight);
      const uint32_t below = gpu_resize_mix (gpu_byte (c, i), gpu_byte (d, i), h.weight);

      pixel |= (uint32_t)gpu_resize_mix_rows (above, below, weight) << (8 * i);
    }
  }
  return pixel;
}

template <bool linear, unsigned bytes, bool wide>
static __device__ __forceinline__ void
resize_row (const GpuResizePlane &plane, uint32_t x0, uint32_t y)
{
  const unsigned n = min (GPU_RESIZE_PIXELS, plane.width - x0);
  const bool inside = is_inside (y, plane.top, plane.y);
  GpuResizeTap v = {0, 0, 0};
  uint32_t pixel[GPU_RESIZE_PIXELS];

  if (inside && linear)
    v = gpu_resize_linear (&plane.y, y - plane.top);
  else if (inside)
    v.i0 = gpu_resize_nearest (&plane.y, y - plane.top);

#pragma unroll
  for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++) {
    const uint32_t x = k < n ? x0 + k : x0;

    if (!inside || !is_inside (x, plane.left, plane.x))
      pixel[k] = plane.border;
    else if (linear)
      pixel[k] = bilinear_pixel<bytes, wide> (plane, plane.src + v.i0 * plane.src_stride,
                                              plane.src + v.i1 * plane.src_stride, v.weight, x - plane.left);
    else
      pixel[k] = nearest_pixel<bytes> (plane, plane.src + v.i0 * plane.src_stride, x - plane.left);
  }
  store_pixels<bytes> (plane.dst + y * plane.dst_stride + (uint64_t)x0 * bytes, pixel, n, plane.aligned);
}

template <bool linear>
static __device__ __forceinline__ void
resize (const GpuResizeArgs &args)
{
  const uint64_t x0 = ((uint64_t)blockIdx.x * GPU_RESIZE_BLOCK_X + threadIdx.x) * GPU_RESIZE_PIXELS;

  for (uint64_t row = (uint64_t)blockIdx.y * GPU_RESIZE_BLOCK_Y + threadIdx.y; row < args.rows.total;
       row += (uint64_t)gridDim.y * GPU_RESIZE_BLOCK_Y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuResizePlane plane = args.plane[i];
    const uint64_t y = row - args.rows.first[i];

    if (x0 >= plane.width || y >= plane.height)
      continue;
    if (linear && plane.wide && plane.bytes == 2)
      resize_row<linear, 2, true> (plane, (uint32_t)x0, (uint32_t)y);
    else if (linear && plane.wide)
      resize_row<linear, 4, true> (plane, (uint32_t)x0, (uint32_t)y);
    else if (plane.bytes == 1)
      resize_row<linear, 1, false> (plane, (uint32_t)x0, (uint32_t)y);
    else if (plane.bytes == 2)
      resize_row<linear, 2, false> (plane, (uint32_t)x0, (uint32_t)y);
    else if (plane.bytes == 3)
      resize_row<linear, 3, false> (plane, (uint32_t)x0, (uint32_t)y);
    else
      resize_row<linear, 4, false> (plane, (uint32_t)x0, (uint32_t)y);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_nearest_rows (const __grid_constant__ GpuResizeArgs args)
{
  resize<false> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_nearest_rows_table (const __grid_constant__ GpuTable<GpuResizeArgs> table)
{
  resize<false> (gpu_table_args (table));
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_bilinear_rows (const __grid_constant__ GpuResizeArgs args)
{
  resize<true> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_bilinear_rows_table (const __grid_constant__ GpuTable<GpuResizeArgs> table)
{
  resize<true> (gpu_table_args (table));
}

/* Bilinear, the fast way: pictures of 8 bits, scaled whole, whose rows are whole words. A thread makes 4 bytes of each
 * of some rows, or a pixel of 3 or 4; what two rows need is asked for before any of it is looked at. */

#define MOST_PIXELS 4

/* Rows whose samples a thread has at a time. */
#define AT_ONCE 2

/* Where a row of the destination comes from: the upper row of the source, and what is added for the lower one. */
struct alignas (16) RowTap {
  uint8_t *upper;
  uint32_t down;
  uint32_t weight; /* of the lower one */
};

/* Where the columns and rows of a block come from, worked out once for all that are in the same: bytes in the source's
 * row, and the weights of both samples. */
template <unsigned lines> struct Taps {
  alignas (16) uint32_t left[MOST_PIXELS * GPU_RESIZE_BLOCK_X];
  alignas (16) uint32_t weights[MOST_PIXELS * GPU_RESIZE_BLOCK_X];
  RowTap row[lines * GPU_RESIZE_BLOCK_Y];
};

/* For @columns columns from @x on, and the block's rows from @y on. For all threads of the block to call. */
template <unsigned lines>
static __device__ __forceinline__ void
make_taps (const GpuResizePlane &plane, uint32_t x, uint32_t columns, uint32_t y, Taps<lines> &taps)
{
  static_assert (MOST_PIXELS * GPU_RESIZE_BLOCK_X + lines * GPU_RESIZE_BLOCK_Y <=
                     GPU_RESIZE_BLOCK_X * GPU_RESIZE_BLOCK_Y,
                 "a thread has one column or one row");
  const unsigned thread = threadIdx.y * GPU_RESIZE_BLOCK_X + threadIdx.x;

  if (thread < columns) {
    const GpuResizeTap tap = gpu_resize_linear_fast (&plane.x, min (x + thread, plane.width - 1));

    taps.left[thread] = tap.i0 * plane.bytes;
    taps.weights[thread] = (GPU_RESIZE_ONE - tap.weight) | tap.weight << 16;
  } else if (thread - columns < lines * GPU_RESIZE_BLOCK_Y) {
    const GpuResizeTap tap = gpu_resize_linear_fast (&plane.y, min (y + thread - columns, plane.height - 1));

    taps.row[thread - columns] = RowTap{(uint8_t *)plane.src + tap.i0 * plane.src_stride,
                                        (tap.i1 - tap.i0) * (uint32_t)plane.src_stride, tap.weight};
  }
  __syncthreads ();
}

/* How a thread's samples are read:
 * Pairs: two pixels of a byte that come from no more than 8 bytes at a multiple of 4, twice
 * Bytes: four pixels of a byte, however far apart
 * Couples: two pixels of two bytes
 * Triples, Quads: a pixel of three or four bytes */
enum Way { Pairs, Bytes, Couples, Triples, Quads };

template <Way way> struct Shape {
  static constexpr unsigned bytes = way == Couples ? 2 : way == Triples ? 3 : way == Quads ? 4 : 1;
  static constexpr unsigned pixels = bytes > 2 ? 1 : 4 / bytes;
  /* Places in a row, each of which words, or bytes, one after the other are read at. */
  static constexpr unsigned places = way == Bytes ? 4 : way == Pairs || way == Couples ? 2 : 1;
  static constexpr unsigned words = way == Triples ? 3 : 2;
};

/* Of all of a thread's rows. Whatever beyond a place's first word, or byte, is not read has no weight. */
template <Way way> struct Columns {
  uint32_t at[Shape<way>::places];
  bool has[Shape<way>::places][Shape<way>::words - 1];
  uint32_t order[Shape<way>::places]; /* for bytes of a place's words to be side by side */
  uint32_t weights[Shape<way>::pixels];
};

template <Way way, unsigned lines>
static __device__ __forceinline__ Columns<way>
load_columns (const Taps<lines> &taps)
{
  constexpr unsigned bytes = Shape<way>::bytes, pixels = Shape<way>::pixels;
  const unsigned first = threadIdx.x * pixels;
  uint32_t left[pixels], right[pixels];
  Columns<way> columns;

#pragma unroll
  for (unsigned k = 0; k < pixels; k++) {
    columns.weights[k] = taps.weights[first + k];
    left[k] = taps.left[first + k];
    right[k] = left[k] + (columns.weights[k] >> 16 ? bytes : 0);
  }
#pragma unroll
  for (unsigned i = 0; i < Shape<way>::places; i++) {
    const uint32_t at = columns.at[i] = left[way == Pairs ? 2 * i : i] & (way == Bytes ? ~0u : ~3u);

    if constexpr (way == Pairs) {
      columns.order[i] =
          (left[2 * i] - at) | (right[2 * i] - at) << 4 | (left[2 * i + 1] - at) << 8 | (right[2 * i + 1] - at) << 12;
      columns.has[i][0] = right[2 * i + 1] - at > 3;
    } else if constexpr (way == Couples) {
      columns.order[i] = (left[i] - at) * 0x101 + (right[i] - at) * 0x1010 + 0x1100;
      columns.has[i][0] = right[i] - at > 3;
    } else if constexpr (way == Triples) {
      columns.order[i] = 8 * (left[i] - at);
      columns.has[i][0] = right[i] + 2 - at > 3;
      columns.has[i][1] = right[i] + 2 - at > 7;
    } else {
      columns.order[i] = 0;
      columns.has[i][0] = right[i] != left[i];
    }
  }
  return columns;
}

/* What is read of a row, before it is put in order. */
template <Way way> struct Raw {
  uint32_t word[Shape<way>::places][Shape<way>::words];
};

template <Way way>
static __device__ __forceinline__ Raw<way>
load_raw (const uint8_t *row, const Columns<way> &columns)
{
  Raw<way> raw = {};

#pragma unroll
  for (unsigned i = 0; i < Shape<way>::places; i++) {
    const uint8_t *p = row + columns.at[i];

    raw.word[i][0] = way == Bytes ? *p : *(const uint32_t *)p;
#pragma unroll
    for (unsigned k = 1; k < Shape<way>::words; k++)
      if (columns.has[i][k - 1])
        raw.word[i][k] = way == Bytes ? p[k] : ((const uint32_t *)p)[k];
  }
  return raw;
}

/* Both samples that each of four bytes of the destination comes from side by side: of bytes 0 and 1 in the first word,
 * 2 and 3 in the second. */
template <Way way>
static __device__ __forceinline__ uint2
pair_up (const Raw<way> &raw, const Columns<way> &columns)
{
  if constexpr (way == Pairs || way == Couples) {
    return make_uint2 (__byte_perm (raw.word[0][0], raw.word[0][1], columns.order[0]),
                       __byte_perm (raw.word[1][0], raw.word[1][1], columns.order[1]));
  } else if constexpr (way == Bytes) {
    return make_uint2 (__byte_perm (__byte_perm (raw.word[0][0], raw.word[0][1], 0x40),
                                    __byte_perm (raw.word[1][0], raw.word[1][1], 0x40), 0x5410),
                       __byte_perm (__byte_perm (raw.word[2][0], raw.word[2][1], 0x40),
                                    __byte_perm (raw.word[3][0], raw.word[3][1], 0x40), 0x5410));
  } else if constexpr (way == Triples) {
    const uint32_t low = __funnelshift_r (raw.word[0][0], raw.word[0][1], columns.order[0]);
    const uint32_t high = __funnelshift_r (raw.word[0][1], raw.word[0][2], columns.order[0]);

    return make_uint2 (__byte_perm (low, high, 0x4130), __byte_perm (low, high, 0x5252));
  } else {
    return make_uint2 (__byte_perm (raw.word[0][0], raw.word[0][1], 0x5140),
                       __byte_perm (raw.word[0][0], raw.word[0][1], 0x7362));
  }
}

/* The pixels of one row; bytes from the first on. */
template <Way way>
static __device__ __forceinline__ uint32_t
mix (const Raw<way> &upper, const Raw<way> &lower, const Columns<way> &columns, uint32_t weight)
{
  const uint2 above = pair_up<way> (upper, columns), below = pair_up<way> (lower, columns);
  uint32_t sum[4] = {};

#pragma unroll
  for (unsigned i = 0; i < Shape<way>::pixels * Shape<way>::bytes; i++) {
    const uint32_t weights = columns.weights[i / Shape<way>::bytes];
    const uint32_t a = i < 2 ? above.x : above.y, b = i < 2 ? below.x : below.y;
    const uint32_t first = i % 2 ? __dp2a_hi (weights, a, 0u) : __dp2a_lo (weights, a, 0u);
    const uint32_t second = i % 2 ? __dp2a_hi (weights, b, 0u) : __dp2a_lo (weights, b, 0u);

    sum[i] = first * (GPU_RESIZE_ONE - weight) + second * weight + (1u << (2 * GPU_RESIZE_BITS - 1));
  }
  /* Each sum's uppermost byte is the sample. */
  return __byte_perm (__byte_perm (sum[0], sum[1], 0x0073), __byte_perm (sum[2], sum[3], 0x0073), 0x5410);
}

/* Pixels of 3 bytes of a warp, one a lane, to its row, which @n bytes are left of, as words; @dst is the lane's. */
static __device__ __forceinline__ void
store_triples (uint8_t *dst, uint32_t pixel, uint32_t n)
{
  const unsigned lane = threadIdx.x, first = 4 * lane / 3;
  const uint32_t a = __shfl_sync (0xffffffff, pixel, (int)(first & 31));
  const uint32_t b = __shfl_sync (0xffffffff, pixel, (int)((first + 1) & 31));
  const unsigned skip = 4 * lane % 3;
  /* From byte 0, 1 or 2 on of both; four bytes of six. */
  const uint32_t word = __funnelshift_r (a | b << 24, b >> 8, 8 * skip);

  if (lane < 24 && 4 * lane < n)
    *(uint32_t *)dst = word;
}

template <Way way, unsigned lines>
static __device__ __forceinline__ void
resize_lines (const GpuResizePlane &plane, const Taps<lines> &taps, uint32_t y)
{
  constexpr unsigned bytes = Shape<way>::bytes, pixels = Shape<way>::pixels;
  const uint32_t warp_x = blockIdx.x * GPU_RESIZE_BLOCK_X * pixels, x = warp_x + threadIdx.x * pixels;
  const uint32_t width = plane.width, height = plane.height;
  const uint64_t step = plane.dst_stride * GPU_RESIZE_BLOCK_Y;
  uint8_t *dst = gpu_base (plane.dst) + y * plane.dst_stride + warp_x * bytes + threadIdx.x * 4;

  /* Beyond the right edge taps are those of the last column. */
  if (way != Triples && x >= width)
    return;
  const Columns<way> columns = load_columns<way> (taps);
#pragma unroll 1
  for (unsigned first = 0; first < lines; first += AT_ONCE) {
    Raw<way> upper[AT_ONCE], lower[AT_ONCE];
    uint32_t weight[AT_ONCE];

#pragma unroll
    for (unsigned r = 0; r < AT_ONCE; r++) {
      const RowTap row = taps.row[threadIdx.y + (first + r) * GPU_RESIZE_BLOCK_Y];
      const uint8_t *base = gpu_base (row.upper);

      weight[r] = row.weight;
      upper[r] = load_raw<way> (base, columns);
      lower[r] = load_raw<way> (base + row.down, columns);
    }
#pragma unroll
    for (unsigned r = 0; r < AT_ONCE; r++) {
      const uint32_t out = mix<way> (upper[r], lower[r], columns, weight[r]);
      const bool exists = y + (first + r) * GPU_RESIZE_BLOCK_Y < height;

      if (way == Triples)
        store_triples (dst, out, exists ? (width - warp_x) * bytes : 0);
      else if (exists)
        *(uint32_t *)dst = out;
      dst += step;
    }
  }
}

/* @lines: of the rows that a block makes a part of, those of one thread. */
template <unsigned lines>
static __device__ __forceinline__ void
run_resize_bilinear_lines (const GpuResizeArgs &args)
{
  const unsigned rows = lines * GPU_RESIZE_BLOCK_Y;
  __shared__ Taps<lines> taps;

  for (uint64_t row = (uint64_t)blockIdx.y * rows; row < args.rows.total; row += (uint64_t)gridDim.y * rows) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuResizePlane &plane = args.plane[i];
    const uint32_t first = (uint32_t)(row - args.rows.first[i]), y = first + threadIdx.y;
    const uint32_t columns = GPU_RESIZE_BLOCK_X * (plane.bytes > 2 ? 1 : plane.bytes == 2 ? 2 : 4);

    if (blockIdx.x * columns >= plane.width)
      continue;
    make_taps<lines> (plane, blockIdx.x * columns, columns, first, taps);
    if (y >= plane.height)
      ;
    else if (plane.bytes == 1 && plane.x.src <= 3 * (uint64_t)plane.x.dst)
      /* Left samples are at most 3 apart, and at most 3 beyond a multiple of 4. */
      resize_lines<Pairs> (plane, taps, y);
    else if (plane.bytes == 1)
      resize_lines<Bytes> (plane, taps, y);
    else if (plane.bytes == 2)
      resize_lines<Couples> (plane, taps, y);
    else if (plane.bytes == 3)
      resize_lines<Triples> (plane, taps, y);
    else
      resize_lines<Quads> (plane, taps, y);
    __syncthreads ();
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, 5)
    gpu_resize_bilinear_lines (const __grid_constant__ GpuResizeArgs args)
{
  run_resize_bilinear_lines<GPU_RESIZE_LINES> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, 5)
    gpu_resize_bilinear_lines_table (const __grid_constant__ GpuTable<GpuResizeArgs> table)
{
  run_resize_bilinear_lines<GPU_RESIZE_TABLE_LINES * GPU_RESIZE_LINES> (gpu_table_args (table));
}
