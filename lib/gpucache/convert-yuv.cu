/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion on the GPU from RGB formats to 4:2:0 and GRAY8, where four pixels can be read and written at once: a
 * thread takes four rows of them.
 */
#include "convert.cuh"
#include "table.cuh"

#define ROWS GPU_CONVERT_ROWS

/* Four packed pixels of @group bytes, or four of each of three planes if that is 1. GRAY8's one plane stands for the
 * other two, of which the matrix takes nothing. */
template <unsigned group> struct Quads {
  static constexpr unsigned n = group == 4 ? 4 : 3;
  uint32_t word[n];
};

static __device__ __forceinline__ Rows
plane_at (const GpuPixels &pixels, unsigned c, uint32_t x)
{
  return c < pixels.channels ? make_rows (pixels.data[c] + x, pixels.stride[c])
                             : make_rows (pixels.data[0] + x, pixels.stride[0]);
}

template <unsigned group>
static __device__ __forceinline__ void
load_rows (const GpuConvertArgs &args, uint32_t x, uint32_t y, Quads<group> quads[ROWS])
{
  const GpuPixels &pixels = args.src.pixels;
  Rows rows[3];

#pragma unroll
  for (unsigned c = 0; c < (group == 1 ? 3 : 1); c++)
    rows[c] = group == 1 ? plane_at (pixels, c, x)
                         : make_rows (pixels.data[0] - pixels.at[0] + (size_t)x * group, pixels.stride[0]);
#pragma unroll
  for (unsigned r = 0; r < ROWS; r++) {
    /* An odd picture's last row stands for the one below it, too. */
    const uint32_t row = min (y + r, args.height - 1);

    if constexpr (group > 1) {
      gpu_load_words<group> (row_at (rows[0], row), quads[r].word);
    } else {
#pragma unroll
      for (unsigned c = 0; c < 3; c++)
        quads[r].word[c] = *(const uint32_t *)row_at (rows[c], row);
    }
  }
}

/* The pixels before the rows' first ones, or those again where there are none, as the last ones of otherwise empty
 * quads. */
template <unsigned group>
static __device__ __forceinline__ void
load_before (const GpuConvertArgs &args, uint32_t x, uint32_t y, Quads<group> quads[ROWS])
{
  const GpuPixels &pixels = args.src.pixels;
  /* Packed pixels before a quad end at a multiple of 4. */
  const uint32_t shift = group == 3 && !x ? 8 : 0;
  Rows rows[3];

#pragma unroll
  for (unsigned c = 0; c < (group == 1 ? 3 : 1); c++)
    rows[c] = group == 1
                  ? plane_at (pixels, c, x ? x - 1 : 0)
                  : make_rows (pixels.data[0] - pixels.at[0] + (x ? (size_t)x * group - 4 : 0), pixels.stride[0]);
#pragma unroll
  for (unsigned r = 0; r < ROWS; r++) {
    const uint32_t row = min (y + r, args.height - 1);

    if constexpr (group > 1) {
      quads[r].word[group - 1] = *(const uint32_t *)row_at (rows[0], row) << shift;
    } else {
#pragma unroll
      for (unsigned c = 0; c < 3; c++)
        quads[r].word[c] = (uint32_t)*row_at (rows[c], row) << 24;
    }
  }
}

/* Where the numbers of a pixel lie, and the matrix with its columns in the same order. */
struct Order {
  uint32_t select[3]; /* for __byte_perm(), of pixels of 4 bytes */
  int32_t m[3][3];
};

template <unsigned group>
static __device__ __forceinline__ Order
make_order (const GpuConvertArgs &args)
{
  const uint32_t *at = args.src.pixels.at;
  const bool swapped = group > 1 && at[0] > at[2];
  Order order;

#pragma unroll
  for (unsigned i = 0; i < 3; i++) {
    order.select[i] = gpu_once (0x4440 + min (at[0], at[2]) + i);
    order.m[i][0] = swapped ? args.matrix[i][2] : args.matrix[i][0];
    order.m[i][1] = args.matrix[i][1];
    order.m[i][2] = swapped ? args.matrix[i][0] : args.matrix[i][2];
  }
  return order;
}

/* The three numbers of pixel @k. */
template <unsigned group>
static __device__ __forceinline__ void
split_pixel (const Order &order, const Quads<group> &quad, unsigned k, int32_t value[3])
{
#pragma unroll
  for (unsigned i = 0; i < 3; i++) {
    if constexpr (group == 4)
      value[i] = (int32_t)__byte_perm (quad.word[k], 0, order.select[i]);
    else if constexpr (group == 3)
      value[i] = byte_at (quad.word[(3 * k + i) / 4], (3 * k + i) % 4);
    else
      value[i] = byte_at (quad.word[i], k);
  }
}

static __device__ __forceinline__ int32_t
mix (const Order &order, unsigned c, const int32_t value[3], int32_t offset, uint32_t shift)
{
  return (order.m[c][0] * value[0] + (order.m[c][1] * value[1] + (order.m[c][2] * value[2] + offset))) >> (int)shift;
}

/* Numbers are shifted once, with both roundings in the offset, which gives the same as two shifts do. */
static __device__ __forceinline__ int32_t
mix_luma (const GpuConvertArgs &args, const Order &order, const int32_t value[3])
{
  return mix (order, 0, value, args.offset[0] + (1 << (GPU_CONVERT_BITS - 1 + args.shift)),
              args.shift + GPU_CONVERT_BITS);
}

static __device__ __forceinline__ void
store_luma (const GpuConvertArgs &args, const Rows &rows, uint32_t y, const int32_t luma[GPU_QUAD])
{
  if (y < args.height)
    *(uint32_t *)row_at (rows, y) = pack_bytes (luma[0], luma[1], luma[2], luma[3]);
}

/* Two samples of both components in row @y: in a plane that they share, or in two. */
static __device__ __forceinline__ void
store_chroma (const Rows rows[2], bool shared, uint32_t y, const int32_t sample[2][2])
{
  if (shared) {
    *(uint32_t *)row_at (rows[0], y) = pack_bytes (sample[0][0], sample[1][0], sample[0][1], sample[1][1]);
  } else {
#pragma unroll
    for (unsigned c = 0; c < 2; c++)
      *(uint16_t *)row_at (rows[c], y) = (uint16_t)gpu_pack_saturated (sample[c][0], sample[c][1], 0);
  }
}

/* To 4:2:0 where chroma lies between two rows, as it does by default. */
template <unsigned group>
static __device__ __forceinline__ void
convert_to_420 (const GpuConvertArgs &args, uint32_t x, uint32_t y)
{
  /* Of a sample's four quarters in its row, one or none are the pixel's to the left, two its own, and the others the
   * pixel's to the right. */
  const int32_t before = (int32_t)gpu_once (args.dst.site_x), after = 2 - before;
  const GpuPixels &chroma = args.dst.chroma;
  const bool shared = chroma.group == 2;
  const Order order = make_order<group> (args);
  Quads<group> quads[ROWS], left[ROWS];

  load_rows<group> (args, x, y, quads);
  load_before<group> (args, x, y, left);

  const Rows out = make_rows (args.dst.pixels.data[0] + x, args.dst.pixels.stride[0]);
  const Rows chroma_out[2] = {make_rows (chroma.data[0] + (shared ? x : x / 2), chroma.stride[0]),
                              make_rows (chroma.data[1] + x / 2, chroma.stride[1])};
#pragma unroll
  for (unsigned pair = 0; pair < ROWS / 2; pair++) {
    int32_t sum[2][1 + GPU_QUAD] = {}, sample[2][2];

#pragma unroll
    for (unsigned r = 2 * pair; r < 2 * pair + 2; r++) {
      int32_t luma[GPU_QUAD];

#pragma unroll
      for (unsigned k = 0; k < 1 + GPU_QUAD; k++) {
        int32_t value[3];

        split_pixel<group> (order, k ? quads[r] : left[r], k ? k - 1 : GPU_QUAD - 1, value);
        if (k)
          luma[k - 1] = mix_luma (args, order, value);
#pragma unroll
        for (unsigned c = 0; c < 2; c++)
          sum[c][k] += mix (order, 1 + c, value, args.offset[1 + c], args.shift);
      }
      store_luma (args, out, y + r, luma);
    }
    /* In 1/64, of which there are eight quarters now. */
#pragma unroll
    for (unsigned c = 0; c < 2; c++)
#pragma unroll
      for (unsigned i = 0; i < 2; i++)
        sample[c][i] = (before * sum[c][2 * i] + 2 * sum[c][2 * i + 1] + after * sum[c][2 * i + 2] +
                        (1 << (GPU_CONVERT_BITS + 2))) >>
                       (GPU_CONVERT_BITS + 3);
    if (y + 2 * pair < args.height)
      store_chroma (chroma_out, shared, y / 2 + pair, sample);
  }
}

template <unsigned group>
static __device__ __forceinline__ void
convert_to_gray (const GpuConvertArgs &args, uint32_t x, uint32_t y)
{
  const Order order = make_order<group> (args);
  Quads<group> quads[ROWS];

  load_rows<group> (args, x, y, quads);

  const Rows out = make_rows (args.dst.pixels.data[0] + x, args.dst.pixels.stride[0]);
#pragma unroll
  for (unsigned r = 0; r < ROWS; r++) {
    int32_t value[3], luma[GPU_QUAD];

#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++) {
      split_pixel<group> (order, quads[r], k, value);
      luma[k] = mix_luma (args, order, value);
    }
    store_luma (args, out, y + r, luma);
  }
}

static __device__ __forceinline__ void
run_convert_to_yuv (const GpuConvertArgs &args)
{
  const uint32_t x = (blockIdx.x * GPU_QUAD_BLOCK_X + threadIdx.x) * GPU_QUAD;
  const uint32_t y = (blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y) * ROWS;

  if (x >= args.width || y >= args.height)
    return;
  if (args.src.pixels.group == 4)
    convert_to_420<4> (args, x, y);
  else if (args.src.pixels.group == 3)
    convert_to_420<3> (args, x, y);
  else
    convert_to_420<1> (args, x, y);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_convert_to_yuv (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_to_yuv (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_convert_to_yuv_table (const __grid_constant__ GpuTable<GpuConvertArgs> table)
{
  run_convert_to_yuv (gpu_table_args (table));
}

static __device__ __forceinline__ void
run_convert_to_gray (const GpuConvertArgs &args)
{
  const uint32_t x = (blockIdx.x * GPU_QUAD_BLOCK_X + threadIdx.x) * GPU_QUAD;
  const uint32_t y = (blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y) * ROWS;

  if (x >= args.width || y >= args.height)
    return;
  if (args.src.pixels.group == 4)
    convert_to_gray<4> (args, x, y);
  else if (args.src.pixels.group == 3)
    convert_to_gray<3> (args, x, y);
  else
    convert_to_gray<1> (args, x, y);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_convert_to_gray (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_to_gray (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_convert_to_gray_table (const __grid_constant__ GpuTable<GpuConvertArgs> table)
{
  run_convert_to_gray (gpu_table_args (table));
}
