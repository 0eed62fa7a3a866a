/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion on the GPU: a thread makes four pixels of a row, or of two rows where the chroma below them is one sample
 * for four.
 */
#include "convert.cuh"
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

/* To RGB formats from RGB formats and GRAY8, whole quads. */
static __device__ __forceinline__ void
run_convert_quads (const GpuConvertArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][32];
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = pixels_left (args, x);
  const Matrix matrix = matrix_to_samples (args, 0);
  const uint32_t order = gpu_channel_order (args.src.pixels);

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

        pixel[k] = pack_bytes (apply (matrix, 0, a, b, c), apply (matrix, 1, a, b, c), apply (matrix, 2, a, b, c),
                               (int32_t)alpha);
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
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_convert_quads_table (const __grid_constant__ GpuTable<GpuConvertArgs> table)
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
        pixel[k] |= (uint32_t)gpu_convert_round (out.value[c][k], args.max, (int)args.bits) << (8 * c);
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
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_convert_rows_table (const __grid_constant__ GpuTable<GpuConvertArgs> table)
{
  run_convert_rows (gpu_table_args (table));
}

static __device__ __forceinline__ void
store_luma (const GpuConvertArgs &args, uint64_t x, uint64_t y, unsigned n, const Quad &quad)
{
  const GpuPixels &pixels = args.dst.pixels;
  uint8_t *p = pixels.data[0] + y * pixels.stride[0] + x * pixels.size;
  uint32_t sample[GPU_QUAD];

#pragma unroll
  for (unsigned k = 0; k < GPU_QUAD; k++)
    sample[k] = (uint32_t)gpu_convert_round (quad.value[0][k], args.max, (int)args.bits) << args.dst.down;
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
        sample[c][k] = (uint32_t)gpu_convert_round (sum[c][k], args.max, (int)args.bits + GPU_CONVERT_SUB_BITS)
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
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_convert_row_pairs_table (const __grid_constant__ GpuTable<GpuConvertArgs> table)
{
  run_convert_row_pairs (gpu_table_args (table));
}
