/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion on the GPU: a thread makes four pixels of a row, or of two rows where the chroma below them is one sample
 * for four.
 */
#include "convert-pixel.h"
#include "quad.cuh"
#include "table.cuh"

/** Four pixels' numbers, before or after the matrix. */
struct Quad {
  int32_t value[3][GPU_QUAD];
};

static __device__ __forceinline__ int32_t
load_sample (const GpuConvertSide &side, const uint8_t *p)
{
  return side.pixels.size == 1 ? (int32_t)*p : (int32_t)(*(const uint16_t *)p >> side.down);
}

static __device__ __forceinline__ int32_t
load_chroma (const GpuConvertSide &side, unsigned c, uint32_t x, uint32_t y)
{
  return load_sample (side, side.chroma.data[c] + y * side.chroma.stride[c] + (uint64_t)x * side.chroma.step);
}

/* Luma from @x on, of which @n exist. */
static __device__ __forceinline__ void
load_luma (const GpuConvertSide &side, uint32_t x, uint32_t y, unsigned n, int32_t value[GPU_QUAD])
{
  const uint8_t *p = side.pixels.data[0] + y * side.pixels.stride[0] + (uint64_t)x * side.pixels.size;
  uint32_t words[2];

  if (side.pixels.size == 1) {
    gpu_load_quad<1, 1> (p, n, side.pixels.vector, words);
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      value[k] = (int32_t)gpu_quad_element<1> (words, k) << GPU_CONVERT_SUB_BITS;
  } else {
    gpu_load_quad<2, 1> (p, n, side.pixels.vector, words);
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      value[k] = (int32_t)(gpu_quad_element<2> (words, k) >> side.down) << GPU_CONVERT_SUB_BITS;
  }
}

/* Chroma of the four pixels from @x, a multiple of 4, on: of the columns that lie around them, first between two rows,
 * then between two columns. */
static __device__ __forceinline__ void
load_chroma_quad (const GpuConvertSide &side, uint32_t x, uint32_t y, Quad &quad)
{
  const GpuConvertTap v = gpu_convert_tap (y, side.chroma_height, side.site_y);
  const uint32_t last = side.chroma_width - 1, i = x / 2;
  const uint32_t index[4] = {i ? i - 1 : 0, min (i, last), min (i + 1, last), min (i + 2, last)};
  const int32_t even0 = side.site_x ? 0 : 1, even1 = side.site_x ? 4 : 3;
  const int32_t odd0 = side.site_x ? 2 : 3, odd1 = side.site_x ? 2 : 1;

#pragma unroll
  for (unsigned c = 0; c < 2; c++) {
    int32_t column[4];

#pragma unroll
    for (unsigned k = 0; k < 4; k++)
      column[k] = (int32_t)(4 - v.w1) * load_chroma (side, c, index[k], v.i0) +
                  (int32_t)v.w1 * load_chroma (side, c, index[k], v.i1);
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      quad.value[1 + c][k] = k & 1 ? odd0 * column[k / 2 + 1] + odd1 * column[k / 2 + 2]
                                   : even0 * column[k / 2] + even1 * column[k / 2 + 1];
  }
}

/* Reads four pixels from @x on, of which @n exist, applies the matrix, and repeats the last one beyond the edge. Where
 * @n is 0 nothing is read. */
static __device__ __forceinline__ void
load_mixed (const GpuConvertArgs &args, uint32_t x, uint32_t y, unsigned n, Quad &out, uint32_t alpha[GPU_QUAD])
{
  Quad in = {};

#pragma unroll
  for (unsigned k = 0; k < GPU_QUAD; k++)
    alpha[k] = 0;
  if (n && args.src.chroma.channels) {
    load_luma (args.src, x, y, n, in.value[0]);
    load_chroma_quad (args.src, x, y, in);
  } else if (n) {
    uint32_t pixel[GPU_QUAD];

    gpu_load_byte_pixels (args.src.pixels, x, y, n, pixel);
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++) {
      in.value[0][k] = (int32_t)(pixel[k] & 0xff);
      in.value[1][k] = (int32_t)(pixel[k] >> 8 & 0xff);
      in.value[2][k] = (int32_t)(pixel[k] >> 16 & 0xff);
      alpha[k] = pixel[k] & 0xff000000;
    }
  }

#pragma unroll
  for (unsigned c = 0; c < 3; c++)
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++) {
      out.value[c][k] = gpu_convert_mix (&args, c, in.value[0][k], in.value[1][k], in.value[2][k]);
      if (k && k >= n)
        out.value[c][k] = out.value[c][k - 1];
    }
}

static __device__ __forceinline__ unsigned
pixels_left (const GpuConvertArgs &args, uint64_t x)
{
  return x >= args.width ? 0 : (unsigned)min ((uint64_t)GPU_QUAD, args.width - x);
}

/* The fast ways, for whole quads of 8 bits a sample to RGB formats and GRAY8, and P010 as a source. */

/* The matrix with what comes after it: numbers are shifted once, with both roundings in the offset, which gives the
 * same as two shifts do. */
struct Matrix {
  int32_t m[3][3];
  int32_t offset[3];
  uint32_t shift;
};

/* @luma_bits: of fraction that the source's other numbers have more than the first. */
static __device__ __forceinline__ Matrix
matrix_to_samples (const GpuConvertArgs &args, unsigned luma_bits)
{
  Matrix matrix;

#pragma unroll
  for (unsigned c = 0; c < 3; c++) {
    matrix.m[c][0] = args.matrix[c][0] << luma_bits;
    matrix.m[c][1] = args.matrix[c][1];
    matrix.m[c][2] = args.matrix[c][2];
    matrix.offset[c] = args.offset[c] + (1 << (GPU_CONVERT_BITS - 1 + args.shift));
  }
  matrix.shift = args.shift + GPU_CONVERT_BITS;
  return matrix;
}

static __device__ __forceinline__ int32_t
apply (const Matrix &matrix, unsigned c, int32_t x, int32_t y, int32_t z)
{
  return (matrix.m[c][0] * x + matrix.m[c][1] * y + matrix.m[c][2] * z + matrix.offset[c]) >> (int)matrix.shift;
}

/* Two neighbouring chroma samples at @u, and @v where they have planes of their own: U in the lower half of each word,
 * V in the upper one. */
template <unsigned size, unsigned group>
static __device__ __forceinline__ void
load_chroma_pair (const uint8_t *u, const uint8_t *v, uint32_t column[2])
{
  if constexpr (size == 2) {
    const uint2 both = *(const uint2 *)u;

    column[0] = both.x >> 6 & 0x03ff03ff;
    column[1] = both.y >> 6 & 0x03ff03ff;
  } else if constexpr (group == 2) {
    const uint32_t both = *(const uint32_t *)u;

    column[0] = __byte_perm (both, 0, 0x4140);
    column[1] = __byte_perm (both, 0, 0x4342);
  } else {
    const uint32_t first = *(const uint16_t *)u, second = *(const uint16_t *)v;

    column[0] = __byte_perm (first, second, 0x2420);
    column[1] = __byte_perm (first, second, 0x2521);
  }
}

/* One sample. */
template <unsigned size, unsigned group>
static __device__ __forceinline__ uint32_t
load_chroma_one (const uint8_t *u, const uint8_t *v)
{
  if constexpr (size == 2)
    return *(const uint32_t *)u >> 6 & 0x03ff03ff;
  else if constexpr (group == 2)
    return u[0] | (uint32_t)u[1] << 16;
  else
    return *u | (uint32_t)*v << 16;
}

/* What two rows of quads are made of: luma, and of the chroma rows above, at and below them two columns each, and one
 * beside those for the lanes that have no neighbour. */
struct Pair {
  uint2 luma[2];
  uint32_t column[3][2];
  uint32_t edge[3];
};

template <unsigned size, unsigned group>
static __device__ __forceinline__ void
load_pair (const GpuConvertArgs &args, uint32_t x, uint32_t pair, Pair &out)
{
  const GpuPixels &chroma = args.src.chroma;
  const uint32_t last = args.src.chroma_width - 1, i = x / 2;
  const uint8_t *luma = args.src.pixels.data[0] + 2 * pair * args.src.pixels.stride[0] + (uint64_t)x * size;
  const uint8_t *u = chroma.data[0] + pair * chroma.stride[0] + (uint64_t)i * (size * group);
  const uint8_t *v = group == 2 ? u : chroma.data[1] + pair * chroma.stride[1] + i;
  const unsigned lane = threadIdx.x;

#pragma unroll
  for (unsigned r = 0; r < 2; r++)
    if (2 * pair + r < args.height) {
      if constexpr (size == 1)
        out.luma[r].x = *(const uint32_t *)(luma + r * args.src.pixels.stride[0]);
      else
        out.luma[r] = *(const uint2 *)(luma + r * args.src.pixels.stride[0]);
    }

  const int64_t beside = lane ? min (i + 2, last) - (int64_t)i : i ? -1 : 0;
#pragma unroll
  for (unsigned r = 0; r < 3; r++) {
    const bool moves = r == 0 ? pair > 0 : r == 2 ? pair + 1 < args.src.chroma_height : false;
    const int64_t du = moves ? ((int64_t)r - 1) * (int64_t)chroma.stride[0] : 0;
    const int64_t dv = moves ? ((int64_t)r - 1) * (int64_t)chroma.stride[1] : 0;

    load_chroma_pair<size, group> (u + du, v + dv, out.column[r]);
    if (lane == 0 || lane == 31)
      out.edge[r] = load_chroma_one<size, group> (u + du + beside * (int)(size * group), v + dv + beside);
  }
}

/* Of RGB's three numbers, red has no share of U and blue none of V, and luma's share of all is the same. */
template <unsigned size, unsigned dst_group>
static __device__ __forceinline__ void
convert_pair (const GpuConvertArgs &args, const Matrix &matrix, uint64_t x0, uint32_t pair, unsigned n, const Pair &in,
              uint4 *stage)
{
  const unsigned lane = threadIdx.x;
  /* The last quad of a row repeats its own column. */
  const bool is_last = x0 + GPU_QUAD * lane + GPU_QUAD >= args.width;
  const uint32_t near = args.src.site_x ? 4 : 3, far = args.src.site_x ? 0 : 1;
  const uint32_t same = args.src.site_x ? 2 : 3, other = args.src.site_x ? 2 : 1;

#pragma unroll
  for (unsigned r = 0; r < 2; r++) {
    /* Between two rows; both components at once, in 16 bits each. */
    const uint32_t upper = args.src.site_y ? (r ? 2 : 0) : (r ? 3 : 1), lower = 4 - upper;
    uint32_t column[4], pixel[GPU_QUAD];

    column[1] = upper * in.column[r][0] + lower * in.column[r + 1][0];
    column[2] = upper * in.column[r][1] + lower * in.column[r + 1][1];
    column[0] = __shfl_up_sync (0xffffffff, column[2], 1);
    column[3] = __shfl_down_sync (0xffffffff, column[1], 1);
    const uint32_t edge = upper * in.edge[r] + lower * in.edge[r + 1];
    column[0] = lane == 0 ? edge : column[0];
    column[3] = lane == 31 ? edge : column[3];
    column[3] = is_last ? column[2] : column[3];

    if (2 * pair + r >= args.height)
      break;
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++) {
      /* And between two columns. */
      const unsigned c = k / 2 + 1;
      const uint32_t chroma = k & 1 ? same * column[c] + other * column[c + 1] : far * column[c - 1] + near * column[c];
      const int32_t u = (int32_t)(chroma & 0xffff), v = (int32_t)(chroma >> 16);
      int32_t luma;

      if constexpr (size == 1)
        luma = (int32_t)(in.luma[r].x >> (8 * k) & 0xff);
      else
        luma = (int32_t)((k & 2 ? in.luma[r].y : in.luma[r].x) >> (16 * (k & 1) + 6) & 0x3ff);
      const int32_t red = (matrix.m[0][0] * luma + matrix.offset[0] + matrix.m[0][2] * v) >> (int)matrix.shift;
      const int32_t blue = (matrix.m[2][0] * luma + matrix.offset[2] + matrix.m[2][1] * u) >> (int)matrix.shift;

      pixel[k] = gpu_pack_saturated (red, apply (matrix, 1, luma, u, v), gpu_pack_saturated (blue, 255, 0));
    }
    gpu_store_group<dst_group> (args.dst.pixels, x0, 2 * pair + r, args.width, n, pixel, stage);
  }
}

template <unsigned size, unsigned group, unsigned dst_group>
static __device__ __forceinline__ void
convert_pairs (const GpuConvertArgs &args, uint4 *stage)
{
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;
  const uint32_t x = (uint32_t)x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = pixels_left (args, x0 + GPU_QUAD * threadIdx.x);
  const Matrix matrix = matrix_to_samples (args, GPU_CONVERT_SUB_BITS);
  const uint32_t pairs = (args.height - 1) / 2 + 1;

  if (x0 >= args.width)
    return;
  for (uint32_t pair = blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y; pair < pairs;
       pair += gridDim.y * GPU_QUAD_BLOCK_Y) {
    Pair in = {};

    if (n)
      load_pair<size, group> (args, x, pair, in);
    convert_pair<size, dst_group> (args, matrix, x0, pair, n, in, stage);
  }
}

template <unsigned dst_group>
static __device__ __forceinline__ void
convert_pairs_from (const GpuConvertArgs &args, uint4 *stage)
{
  if (args.src.pixels.size == 2)
    convert_pairs<2, 2, dst_group> (args, stage);
  else if (args.src.chroma.group == 2)
    convert_pairs<1, 2, dst_group> (args, stage);
  else
    convert_pairs<1, 1, dst_group> (args, stage);
}

/* From 4:2:0 to RGB formats: pairs of rows, which share chroma. */
static __device__ __forceinline__ void
run_convert_pairs_to_rgb (const GpuConvertArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][32];

  if (args.dst.pixels.group == 4)
    convert_pairs_from<4> (args, stage[threadIdx.y]);
  else if (args.dst.pixels.group == 3)
    convert_pairs_from<3> (args, stage[threadIdx.y]);
  else
    convert_pairs_from<1> (args, stage[threadIdx.y]);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_convert_pairs_to_rgb (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_pairs_to_rgb (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5) gpu_convert_pairs_to_rgb_table (const GpuConvertArgs *table)
{
  run_convert_pairs_to_rgb (gpu_table_args (table));
}

/* From RGB formats to RGB formats and GRAY8. */
static __device__ __forceinline__ void
run_convert_quads (const GpuConvertArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][32];
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = pixels_left (args, x);
  const Matrix matrix = matrix_to_samples (args, 0);
  const uint32_t order = gpu_channel_order (args.src.pixels);
  const bool gray = args.dst.pixels.channels == 1;

  if (x0 >= args.width)
    return;
  for (uint64_t y = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y * GPU_QUAD_ROWS + threadIdx.y; y < args.height;
       y += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y * GPU_QUAD_ROWS) {
    uint32_t words[GPU_QUAD_ROWS][4] = {}, pixel[GPU_QUAD];

    gpu_load_quads<GPU_QUAD_ROWS> (args.src.pixels, x, y, GPU_QUAD_BLOCK_Y, args.height, n > 0, words);
#pragma unroll
    for (unsigned r = 0; r < GPU_QUAD_ROWS; r++) {
      if (y + r * GPU_QUAD_BLOCK_Y >= args.height)
        break;
      gpu_split_quad (args.src.pixels, order, words[r], pixel);
#pragma unroll
      for (unsigned k = 0; k < GPU_QUAD; k++) {
        const int32_t a = (int32_t)(pixel[k] & 0xff), b = (int32_t)(pixel[k] >> 8 & 0xff);
        const int32_t c = (int32_t)(pixel[k] >> 16 & 0xff);
        const uint32_t alpha = pixel[k] >> 24 | args.opaque;

        if (gray)
          pixel[k] = gpu_pack_saturated (apply (matrix, 0, a, b, c), 0, 0);
        else
          pixel[k] = gpu_pack_saturated (apply (matrix, 0, a, b, c), apply (matrix, 1, a, b, c),
                                         gpu_pack_saturated (apply (matrix, 2, a, b, c), (int32_t)alpha, 0));
      }
      gpu_store_byte_pixels<true> (args.dst.pixels, x0, y + r * GPU_QUAD_BLOCK_Y, args.width, n, pixel,
                                   stage[threadIdx.y]);
    }
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_convert_quads (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_quads (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4) gpu_convert_quads_table (const GpuConvertArgs *table)
{
  run_convert_quads (gpu_table_args (table));
}

/* To RGB formats and GRAY8, at any address, stride and width. */
static __device__ __forceinline__ void
run_convert_rows (const GpuConvertArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][32];
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = pixels_left (args, x);

  if (x0 >= args.width)
    return;
  for (uint64_t y = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y; y < args.rows;
       y += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y) {
    uint32_t pixel[GPU_QUAD];
    Quad out;

    load_mixed (args, (uint32_t)x, (uint32_t)y, n, out, pixel);
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++) {
      pixel[k] |= args.opaque << 24;
#pragma unroll
      for (unsigned c = 0; c < 3; c++)
        pixel[k] |= (uint32_t)gpu_convert_round (out.value[c][k], args.max, GPU_CONVERT_BITS) << (8 * c);
    }
    gpu_store_byte_pixels (args.dst.pixels, x0, y, args.width, n, pixel, stage[threadIdx.y]);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y) gpu_convert_rows (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_rows (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y) gpu_convert_rows_table (const GpuConvertArgs *table)
{
  run_convert_rows (gpu_table_args (table));
}

/* The channels of one pixel, as gpu_load_byte_pixels() gives them. */
template <unsigned group>
static __device__ __forceinline__ uint32_t
load_one_pixel (const GpuPixels &pixels, uint32_t order, uint64_t x, uint64_t y)
{
  uint32_t pixel = 0;

  if constexpr (group == 1) {
#pragma unroll
    for (unsigned c = 0; c < GPU_PIXEL_CHANNELS; c++)
      if (c < pixels.channels)
        pixel |= (uint32_t)pixels.data[c][y * pixels.stride[c] + x] << (8 * c);
    return pixel;
  } else {
    const uint8_t *p = pixels.data[0] - pixels.at[0] + y * pixels.stride[0] + x * group;

    if constexpr (group == 4)
      pixel = *(const uint32_t *)p;
    else
      pixel = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
    return __byte_perm (pixel, 0, order);
  }
}

static __device__ __forceinline__ void
store_luma (const GpuConvertArgs &args, uint64_t x, uint64_t y, unsigned n, const Quad &quad)
{
  const GpuPixels &pixels = args.dst.pixels;
  uint8_t *p = pixels.data[0] + y * pixels.stride[0] + x * pixels.size;
  uint32_t sample[GPU_QUAD];

#pragma unroll
  for (unsigned k = 0; k < GPU_QUAD; k++)
    sample[k] = (uint32_t)gpu_convert_round (quad.value[0][k], args.max, GPU_CONVERT_BITS) << args.dst.down;
  if (pixels.size == 1)
    gpu_store_plane_quad<1> (p, n, pixels.vector, sample);
  else
    gpu_store_plane_quad<2> (p, n, pixels.vector, sample);
}

/* Two pixels of chroma: both components of one in a plane, or each in its own. */
template <unsigned size>
static __device__ __forceinline__ void
store_chroma (const GpuPixels &chroma, uint64_t x, uint64_t y, unsigned n, const uint32_t sample[2][2])
{
  uint8_t *p = chroma.data[0] + y * chroma.stride[0] + x * chroma.step;

  if (chroma.group == 2 && chroma.vector && n == 2) {
    uint32_t words[size] = {};

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      words[i * size / 4] |= sample[i % 2][i / 2] << (8 * (i * size % 4));
    gpu_store_words<size> (p, words);
    return;
  }
#pragma unroll
  for (unsigned c = 0; c < 2; c++) {
    p = chroma.data[c] + y * chroma.stride[c] + x * chroma.step;
    if (size == 1 && chroma.group == 1 && chroma.vector && n == 2) {
      *(uint16_t *)p = (uint16_t)(sample[c][0] | sample[c][1] << 8);
      continue;
    }
#pragma unroll
    for (unsigned k = 0; k < 2; k++)
      if (k < n)
        gpu_store_element<size> (p + k * chroma.step, sample[c][k]);
  }
}

/* The same of whole quads of an RGB format, where chroma lies between two rows, as it does by default. */
template <unsigned group>
static __device__ __forceinline__ void
convert_quad_pairs (const GpuConvertArgs &args)
{
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = pixels_left (args, x), lane = threadIdx.x;
  const Matrix matrix = matrix_to_samples (args, 0);
  const uint32_t order = gpu_channel_order (args.src.pixels);
  const bool sited = args.dst.site_x;

  if (x0 >= args.width)
    return;
  for (uint64_t pair = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y; pair < args.rows;
       pair += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y) {
    const bool two = 2 * pair + 1 < args.height;
    uint32_t words[2][4] = {}, beside[2] = {};
    int32_t sum[2][5] = {}; /* of both rows: the pixel to the left, and the four */

    gpu_load_group<group, 2> (args.src.pixels, x, 2 * pair, 1, args.height, n > 0, words);
    if (sited && lane == 0 && n && x) {
      beside[0] = load_one_pixel<group> (args.src.pixels, order, x - 1, 2 * pair);
      beside[1] = two ? load_one_pixel<group> (args.src.pixels, order, x - 1, 2 * pair + 1) : beside[0];
    }
    /* An odd picture's last row stands for the one below it, too. */
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      words[1][i] = two ? words[1][i] : words[0][i];

#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
      uint32_t pixel[GPU_QUAD];
      int32_t luma[GPU_QUAD];

      gpu_split_group<group> (order, words[r], pixel);
#pragma unroll
      for (unsigned k = 0; k < GPU_QUAD; k++) {
        const int32_t red = (int32_t)(pixel[k] & 0xff), green = (int32_t)(pixel[k] >> 8 & 0xff);
        const int32_t blue = (int32_t)(pixel[k] >> 16 & 0xff);

        luma[k] = apply (matrix, 0, red, green, blue);
#pragma unroll
        for (unsigned c = 0; c < 2; c++)
          sum[c][k + 1] += gpu_convert_mix (&args, 1 + c, red, green, blue);
      }
      if (sited && lane == 0 && x) {
        const uint32_t p = beside[r];

#pragma unroll
        for (unsigned c = 0; c < 2; c++)
          sum[c][0] +=
              gpu_convert_mix (&args, 1 + c, (int32_t)(p & 0xff), (int32_t)(p >> 8 & 0xff), (int32_t)(p >> 16 & 0xff));
      }
      if (n && (!r || two))
        *(uint32_t *)(args.dst.pixels.data[0] + (2 * pair + r) * args.dst.pixels.stride[0] + x) =
            gpu_pack_saturated (luma[0], luma[1], gpu_pack_saturated (luma[2], luma[3], 0));
    }

    uint32_t sample[2][2];
#pragma unroll
    for (unsigned c = 0; c < 2; c++) {
      const int32_t left = __shfl_up_sync (0xffffffff, sum[c][4], 1);
      const int32_t before = lane ? left : x ? sum[c][0] : sum[c][1];
      const int32_t *value = sum[c] + 1;
      const int32_t first = sited ? before + 2 * value[0] + value[1] : 2 * (value[0] + value[1]);
      const int32_t second = sited ? value[1] + 2 * value[2] + value[3] : 2 * (value[2] + value[3]);

      sample[c][0] = (uint32_t)gpu_convert_round (2 * first, 255, GPU_CONVERT_BITS + GPU_CONVERT_SUB_BITS);
      sample[c][1] = (uint32_t)gpu_convert_round (2 * second, 255, GPU_CONVERT_BITS + GPU_CONVERT_SUB_BITS);
    }
    if (n)
      store_chroma<1> (args.dst.chroma, x / 2, pair, 2, sample);
  }
}

static __device__ __forceinline__ void
run_convert_quad_pairs (const GpuConvertArgs &args)
{
  if (args.src.pixels.group == 4)
    convert_quad_pairs<4> (args);
  else if (args.src.pixels.group == 3)
    convert_quad_pairs<3> (args);
  else
    convert_quad_pairs<1> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_convert_quad_pairs (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_quad_pairs (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4) gpu_convert_quad_pairs_table (const GpuConvertArgs *table)
{
  run_convert_quad_pairs (gpu_table_args (table));
}

/* To 4:2:0: two rows of luma, and the chroma row of both. */
static __device__ __forceinline__ void
run_convert_row_pairs (const GpuConvertArgs &args)
{
  const uint64_t x = ((uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X + threadIdx.x) * GPU_QUAD;
  const unsigned n = pixels_left (args, x);
  const int32_t column0 = args.dst.site_x ? 1 : 0, column2 = args.dst.site_x ? 1 : 2;

  for (uint64_t pair = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y; pair < args.rows;
       pair += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y) {
    int32_t sum[2][2] = {};

#pragma unroll
    for (unsigned r = 0; r < 3; r++) {
      const int32_t weight = args.dst.site_y ? (r == 1 ? 2 : 1) : (r == 0 ? 0 : 2);
      const uint64_t below = 2 * pair + r;
      const uint32_t y = (uint32_t)min (below ? below - 1 : 0, (uint64_t)args.height - 1);
      uint32_t alpha[GPU_QUAD];
      Quad quad;

      if (!weight)
        continue;
      load_mixed (args, (uint32_t)x, y, n, quad, alpha);
      if (r && below - 1 < args.height && n)
        store_luma (args, x, y, n, quad);

      /* The pixel to the left is the neighbour's last one. */
      Quad left;
#pragma unroll
      for (unsigned c = 1; c < 3; c++)
        left.value[c][0] = __shfl_up_sync (0xffffffff, quad.value[c][3], 1);
      if (args.dst.site_x && threadIdx.x == 0 && n) {
        if (x) {
          load_mixed (args, (uint32_t)x - 4, y, GPU_QUAD, left, alpha);
#pragma unroll
          for (unsigned c = 1; c < 3; c++)
            left.value[c][0] = left.value[c][3];
        } else {
#pragma unroll
          for (unsigned c = 1; c < 3; c++)
            left.value[c][0] = quad.value[c][0];
        }
      }
#pragma unroll
      for (unsigned c = 0; c < 2; c++) {
        const int32_t *value = quad.value[1 + c];

        sum[c][0] += weight * (column0 * left.value[1 + c][0] + 2 * value[0] + column2 * value[1]);
        sum[c][1] += weight * (column0 * value[1] + 2 * value[2] + column2 * value[3]);
      }
    }

    if (!n)
      continue;
    uint32_t sample[2][2];
#pragma unroll
    for (unsigned c = 0; c < 2; c++)
#pragma unroll
      for (unsigned k = 0; k < 2; k++)
        sample[c][k] = (uint32_t)gpu_convert_round (sum[c][k], args.max, GPU_CONVERT_BITS + GPU_CONVERT_SUB_BITS)
                       << args.dst.down;
    if (args.dst.pixels.size == 1)
      store_chroma<1> (args.dst.chroma, x / 2, pair, (n + 1) / 2, sample);
    else
      store_chroma<2> (args.dst.chroma, x / 2, pair, (n + 1) / 2, sample);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_convert_row_pairs (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_row_pairs (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y) gpu_convert_row_pairs_table (const GpuConvertArgs *table)
{
  run_convert_row_pairs (gpu_table_args (table));
}
