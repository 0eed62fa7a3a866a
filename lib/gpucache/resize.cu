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
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y) gpu_resize_nearest_rows_table (const GpuResizeArgs *table)
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
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y) gpu_resize_bilinear_rows_table (const GpuResizeArgs *table)
{
  resize<true> (gpu_table_args (table));
}

/* Bilinear, the fast way: pictures of 8 bits, scaled whole, whose rows are whole words. A thread makes 4 bytes of each
 * of some rows, or a pixel of 3 or 4; all it reads is asked for before any of it is looked at. */

/* Where a pixel of the destination comes from: bytes in the source's row, and the weights of both samples. */
struct Column {
  uint32_t left;
  uint32_t right;
  uint32_t weights;
};

#define MOST_PIXELS 4
#define BLOCK_ROWS (GPU_RESIZE_LINES * GPU_RESIZE_BLOCK_Y)

/* Where the columns and rows of a block come from, worked out once for all that are in the same. */
struct Taps {
  alignas (16) uint32_t left[MOST_PIXELS * GPU_RESIZE_BLOCK_X];
  alignas (16) uint32_t right[MOST_PIXELS * GPU_RESIZE_BLOCK_X];
  alignas (16) uint32_t weights[MOST_PIXELS * GPU_RESIZE_BLOCK_X];
  GpuResizeTap row[BLOCK_ROWS];
};

/* For @columns columns from @x on, and BLOCK_ROWS rows from @y on. For all threads of the block to call. */
static __device__ __forceinline__ void
make_taps (const GpuResizePlane &plane, uint32_t x, uint32_t columns, uint32_t y, Taps &taps)
{
  static_assert ((MOST_PIXELS + 1) * GPU_RESIZE_BLOCK_X <= GPU_RESIZE_BLOCK_X * GPU_RESIZE_BLOCK_Y &&
                     BLOCK_ROWS <= GPU_RESIZE_BLOCK_X,
                 "a thread has one column or one row");
  const unsigned thread = threadIdx.y * GPU_RESIZE_BLOCK_X + threadIdx.x;

  if (thread < columns) {
    const GpuResizeTap tap = gpu_resize_linear_fast (&plane.x, min (x + thread, plane.width - 1));

    taps.left[thread] = tap.i0 * plane.bytes;
    taps.right[thread] = tap.i1 * plane.bytes;
    taps.weights[thread] = (GPU_RESIZE_ONE - tap.weight) | tap.weight << 16;
  } else if (thread - columns < BLOCK_ROWS) {
    taps.row[thread - columns] = gpu_resize_linear_fast (&plane.y, min (y + thread - columns, plane.height - 1));
  }
  __syncthreads ();
}

template <unsigned pixels>
static __device__ __forceinline__ void
load_columns (const Taps &taps, Column column[pixels])
{
#pragma unroll
  for (unsigned k = 0; k < pixels; k++) {
    const unsigned i = threadIdx.x * pixels + k;

    column[k] = Column{taps.left[i], taps.right[i], taps.weights[i]};
  }
}

/* Of two pixels in a row, the same byte of both side by side: bytes 0 and 1 in the first word, 2 and 3 in the second.
 */
template <unsigned bytes> struct Neighbours {
  uint32_t word[bytes > 2 ? 2 : 1];
};

/* What is read for them, before it is put in order. */
template <unsigned bytes> struct Raw {
  uint32_t word[bytes == 3 ? 3 : 2];
};

template <unsigned bytes>
static __device__ __forceinline__ Raw<bytes>
load_raw (const uint8_t *row, uint32_t row_bytes, const Column &column)
{
  Raw<bytes> raw = {};

  if constexpr (bytes == 4) {
    raw.word[0] = *(const uint32_t *)(row + column.left);
    raw.word[1] = *(const uint32_t *)(row + column.right);
  } else if constexpr (bytes == 3) {
    const uint32_t at = column.left & ~3u;

    raw.word[0] = *(const uint32_t *)(row + at);
    if (at + 4 < row_bytes)
      raw.word[1] = *(const uint32_t *)(row + at + 4);
    if (at + 8 < row_bytes && (column.left & 3) == 3)
      raw.word[2] = *(const uint32_t *)(row + at + 8);
  } else if constexpr (bytes == 2) {
    raw.word[0] = *(const uint16_t *)(row + column.left);
    raw.word[1] = *(const uint16_t *)(row + column.right);
  } else {
    raw.word[0] = row[column.left];
    raw.word[1] = row[column.right];
  }
  return raw;
}

template <unsigned bytes>
static __device__ __forceinline__ Neighbours<bytes>
pair_up (const Raw<bytes> &raw, const Column &column)
{
  Neighbours<bytes> out;

  if constexpr (bytes == 3) {
    const uint32_t skip = 8 * (column.left & 3);
    const uint32_t lower = __funnelshift_r (raw.word[0], raw.word[1], skip);
    const uint32_t upper = __funnelshift_r (raw.word[1], raw.word[2], skip);

    out.word[0] = __byte_perm (lower, upper, 0x4130);
    out.word[1] = __byte_perm (lower, upper, 0x5252);
  } else {
    out.word[0] = __byte_perm (raw.word[0], raw.word[1], 0x5140);
    if constexpr (bytes == 4)
      out.word[1] = __byte_perm (raw.word[0], raw.word[1], 0x7362);
  }
  return out;
}

/* Byte @c of the pixel between both. */
template <unsigned bytes>
static __device__ __forceinline__ uint32_t
mix_byte (const Neighbours<bytes> &pixels, unsigned c, uint32_t weights)
{
  return c & 1 ? __dp2a_hi (weights, pixels.word[c / 2], 0u) : __dp2a_lo (weights, pixels.word[c / 2], 0u);
}

/* The pixels of one row; bytes from the first on. */
template <unsigned bytes, unsigned pixels>
static __device__ __forceinline__ uint32_t
mix_pixels (const Raw<bytes> (&upper)[pixels], const Raw<bytes> (&lower)[pixels], const Column (&column)[pixels],
            uint32_t weight)
{
  uint32_t sum[4] = {};

#pragma unroll
  for (unsigned k = 0; k < pixels; k++) {
    const Neighbours<bytes> above = pair_up<bytes> (upper[k], column[k]), below = pair_up<bytes> (lower[k], column[k]);

#pragma unroll
    for (unsigned c = 0; c < bytes; c++)
      sum[k * bytes + c] = mix_byte<bytes> (above, c, column[k].weights) * (GPU_RESIZE_ONE - weight) +
                           mix_byte<bytes> (below, c, column[k].weights) * weight + (1u << (2 * GPU_RESIZE_BITS - 1));
  }
  /* Each sum's uppermost byte is the sample. */
  return __byte_perm (__byte_perm (sum[0], sum[1], 0x0073), __byte_perm (sum[2], sum[3], 0x0073), 0x5410);
}

/* Pixels of 3 bytes of a warp, one a lane, to the row from @dst on, which @n bytes are left of, as words. */
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
    *(uint32_t *)(dst + 4 * lane) = word;
}

/* Of pixels that lie near each other in a row, all in words: 8 bytes from the first one's left sample on, and which of
 * these are both samples of bytes 0 and 1, and of bytes 2 and 3, of the destination. */
struct Window {
  uint32_t first;
  uint32_t skip;
  bool has[2]; /* words beyond the first one */
  uint32_t order[2];
};

template <unsigned bytes>
static __device__ __forceinline__ Window
make_window (const Column *column, uint32_t row_bytes)
{
  const uint32_t first = column[0].left & ~3u;
  Window window = {first, 8 * (column[0].left & 3), {first + 4 < row_bytes, first + 8 < row_bytes}, {0, 0}};

#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    const uint32_t left = column[i / bytes].left - column[0].left + i % bytes;
    const uint32_t right = column[i / bytes].right - column[0].left + i % bytes;

    window.order[i / 2] |= (left | right << 4) << (i % 2 * 8);
  }
  return window;
}

struct WindowWords {
  uint32_t word[3];
};

static __device__ __forceinline__ WindowWords
load_window (const uint8_t *row, const Window &window)
{
  const uint32_t *p = (const uint32_t *)(row + window.first);
  WindowWords words = {{p[0], 0, 0}};

  if (window.has[0])
    words.word[1] = p[1];
  if (window.has[1])
    words.word[2] = p[2];
  return words;
}

/* The four bytes of one row; each has its pixel's weights. */
template <unsigned bytes>
static __device__ __forceinline__ uint32_t
mix_window (const WindowWords &upper, const WindowWords &lower, const Window &window, const Column *column,
            uint32_t weight)
{
  uint32_t pair[2][2], sum[4];

#pragma unroll
  for (unsigned i = 0; i < 2; i++) {
    const uint32_t *word = i ? lower.word : upper.word;
    const uint32_t low = __funnelshift_r (word[0], word[1], window.skip);
    const uint32_t high = __funnelshift_r (word[1], word[2], window.skip);

    pair[i][0] = __byte_perm (low, high, window.order[0]);
    pair[i][1] = __byte_perm (low, high, window.order[1]);
  }
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    const uint32_t weights = column[i / bytes].weights;
    const uint32_t above = i % 2 ? __dp2a_hi (weights, pair[0][i / 2], 0u) : __dp2a_lo (weights, pair[0][i / 2], 0u);
    const uint32_t below = i % 2 ? __dp2a_hi (weights, pair[1][i / 2], 0u) : __dp2a_lo (weights, pair[1][i / 2], 0u);

    sum[i] = above * (GPU_RESIZE_ONE - weight) + below * weight + (1u << (2 * GPU_RESIZE_BITS - 1));
  }
  return __byte_perm (__byte_perm (sum[0], sum[1], 0x0073), __byte_perm (sum[2], sum[3], 0x0073), 0x5410);
}

/* Four bytes of each of some rows, of a picture that shrinks to no less than half its width: what four bytes come from
 * then lies within 8. */
template <unsigned bytes>
static __device__ __forceinline__ void
resize_near_lines (const GpuResizePlane &plane, const Taps &taps, uint32_t thread, uint32_t y)
{
  const uint32_t x0 = thread * (4 / bytes);
  Column column[4 / bytes];
  WindowWords upper[GPU_RESIZE_LINES], lower[GPU_RESIZE_LINES];
  uint32_t weight[GPU_RESIZE_LINES];

  if (x0 >= plane.width)
    return;
  load_columns<4 / bytes> (taps, column);
  const Window window = make_window<bytes> (column, plane.x.src * bytes);
#pragma unroll
  for (unsigned r = 0; r < GPU_RESIZE_LINES; r++) {
    const GpuResizeTap v = taps.row[threadIdx.y + r * GPU_RESIZE_BLOCK_Y];

    weight[r] = v.weight;
    upper[r] = load_window (plane.src + v.i0 * plane.src_stride, window);
    lower[r] = load_window (plane.src + v.i1 * plane.src_stride, window);
  }
#pragma unroll
  for (unsigned r = 0; r < GPU_RESIZE_LINES; r++) {
    const uint32_t row = y + r * GPU_RESIZE_BLOCK_Y;

    if (row < plane.height)
      *(uint32_t *)(plane.dst + row * plane.dst_stride + x0 * bytes) =
          mix_window<bytes> (upper[r], lower[r], window, column, weight[r]);
  }
}

template <unsigned bytes>
static __device__ __forceinline__ void
resize_lines (const GpuResizePlane &plane, const Taps &taps, uint32_t thread, uint32_t y)
{
  const unsigned pixels = bytes > 2 ? 1 : 4 / bytes;
  const uint32_t x0 = thread * pixels, row_bytes = plane.x.src * bytes;
  const bool exists = x0 < plane.width;
  Column column[pixels];
  Raw<bytes> upper[GPU_RESIZE_LINES][pixels] = {}, lower[GPU_RESIZE_LINES][pixels] = {};
  uint32_t weight[GPU_RESIZE_LINES] = {};

  if (bytes != 3 && !exists)
    return;
  load_columns<pixels> (taps, column);
#pragma unroll
  for (unsigned r = 0; r < GPU_RESIZE_LINES; r++) {
    const GpuResizeTap v = taps.row[threadIdx.y + r * GPU_RESIZE_BLOCK_Y];
    const uint8_t *above = plane.src + v.i0 * plane.src_stride, *below = plane.src + v.i1 * plane.src_stride;

    weight[r] = v.weight;
#pragma unroll
    for (unsigned k = 0; k < pixels; k++) {
      upper[r][k] = load_raw<bytes> (above, row_bytes, column[k]);
      lower[r][k] = load_raw<bytes> (below, row_bytes, column[k]);
    }
  }
#pragma unroll
  for (unsigned r = 0; r < GPU_RESIZE_LINES; r++) {
    const uint32_t row = y + r * GPU_RESIZE_BLOCK_Y;
    uint8_t *dst = plane.dst + row * plane.dst_stride;
    const uint32_t out = mix_pixels<bytes, pixels> (upper[r], lower[r], column, weight[r]);

    if (row >= plane.height)
      break;
    if (bytes == 3)
      store_triples (dst + (x0 - threadIdx.x) * 3, out, (plane.width - min (x0 - threadIdx.x, plane.width)) * 3);
    else
      *(uint32_t *)(dst + x0 * bytes) = out;
  }
}

static __device__ __forceinline__ void
run_resize_bilinear_lines (const GpuResizeArgs &args)
{
  __shared__ Taps taps;
  const uint32_t thread = blockIdx.x * GPU_RESIZE_BLOCK_X + threadIdx.x;

  for (uint64_t row = (uint64_t)blockIdx.y * BLOCK_ROWS; row < args.rows.total;
       row += (uint64_t)gridDim.y * BLOCK_ROWS) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuResizePlane &plane = args.plane[i];
    const uint32_t first = (uint32_t)(row - args.rows.first[i]), y = first + threadIdx.y;
    const uint32_t columns = GPU_RESIZE_BLOCK_X * (plane.bytes > 2 ? 1 : 4 / plane.bytes);
    const bool is_near = plane.x.src <= 2 * (uint64_t)plane.x.dst;

    if (blockIdx.x * columns >= plane.width)
      continue;
    make_taps (plane, blockIdx.x * columns, columns, first, taps);
    if (y >= plane.height)
      ;
    else if (plane.bytes == 1 && is_near)
      resize_near_lines<1> (plane, taps, thread, y);
    else if (plane.bytes == 1)
      resize_lines<1> (plane, taps, thread, y);
    else if (plane.bytes == 2 && is_near)
      resize_near_lines<2> (plane, taps, thread, y);
    else if (plane.bytes == 2)
      resize_lines<2> (plane, taps, thread, y);
    else if (plane.bytes == 3)
      resize_lines<3> (plane, taps, thread, y);
    else
      resize_lines<4> (plane, taps, thread, y);
    __syncthreads ();
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, 4)
    gpu_resize_bilinear_lines (const __grid_constant__ GpuResizeArgs args)
{
  run_resize_bilinear_lines (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, 4)
    gpu_resize_bilinear_lines_table (const GpuResizeArgs *table)
{
  run_resize_bilinear_lines (gpu_table_args (table));
}
