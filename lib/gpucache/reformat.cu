/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The order of dimensions on the GPU: a thread moves four pixels of a row; packed ones are written by way of shared
 * memory.
 */
#include "quad.cuh"
#include "reformat-pixel.h"
#include "table.cuh"

static __device__ __forceinline__ unsigned
pixels_left (const GpuReformatArgs &args, uint64_t x)
{
  return x >= args.width ? 0 : (unsigned)min ((uint64_t)GPU_QUAD, args.width - x);
}

template <bool whole>
static __device__ __forceinline__ void
store_pixels (const GpuReformatArgs &args, uint64_t x0, uint64_t y, unsigned n, uint32_t pixel[GPU_QUAD], uint4 *stage)
{
#pragma unroll
  for (unsigned k = 0; k < GPU_QUAD; k++)
    pixel[k] |= args.opaque << 24;
  gpu_store_byte_pixels<whole> (args.dst, x0, y, args.width, n, pixel, stage);
}

static __device__ __forceinline__ void
run_reformat_bytes (const GpuReformatArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][32];
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = pixels_left (args, x);
  const bool whole = gpu_quads_are_whole (args.src, args.dst, x0, args.width);
  const uint32_t order = gpu_channel_order (args.src);

  if (x0 >= args.width)
    return;
  for (uint64_t y = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y * GPU_QUAD_ROWS + threadIdx.y; y < args.height;
       y += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y * GPU_QUAD_ROWS) {
    uint32_t words[GPU_QUAD_ROWS][4] = {}, pixel[GPU_QUAD] = {};

    if (!whole) {
#pragma unroll 1
      for (uint64_t row = y; row < y + GPU_QUAD_ROWS * GPU_QUAD_BLOCK_Y && row < args.height; row += GPU_QUAD_BLOCK_Y) {
        if (n)
          gpu_load_byte_pixels (args.src, x, row, n, pixel);
        store_pixels<false> (args, x0, row, n, pixel, stage[threadIdx.y]);
      }
      continue;
    }
    gpu_load_quads<GPU_QUAD_ROWS> (args.src, x, y, GPU_QUAD_BLOCK_Y, args.height, n > 0, words);
#pragma unroll
    for (unsigned r = 0; r < GPU_QUAD_ROWS; r++) {
      if (y + r * GPU_QUAD_BLOCK_Y >= args.height)
        break;
      gpu_split_quad (args.src, order, words[r], pixel);
      store_pixels<true> (args, x0, y + r * GPU_QUAD_BLOCK_Y, n, pixel, stage[threadIdx.y]);
    }
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_reformat_bytes (const __grid_constant__ GpuReformatArgs args)
{
  run_reformat_bytes (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5) gpu_reformat_bytes_table (const GpuReformatArgs *table)
{
  run_reformat_bytes (gpu_table_args (table));
}

template <unsigned size, unsigned channels>
static __device__ __forceinline__ void
reformat_row (const GpuReformatArgs &args, uint64_t x0, uint64_t y, uint4 *stage)
{
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = pixels_left (args, x);
  uint32_t words[size * channels] = {};

  if (args.src.group > 1) {
    if (n)
      gpu_load_quad<size, channels> (gpu_packed_pixel (args.src, x, y), n, args.src.vector, words);
#pragma unroll
    for (unsigned c = 0; c < channels; c++) {
      uint32_t element[GPU_QUAD];

#pragma unroll
      for (unsigned k = 0; k < GPU_QUAD; k++)
        element[k] = gpu_quad_element<size> (words, k * channels + c);
      gpu_store_plane_quad<size> (args.dst.data[c] + y * args.dst.stride[c] + x * size, n, args.dst.vector, element);
    }
    return;
  }

#pragma unroll
  for (unsigned c = 0; c < channels; c++) {
    uint32_t plane[size] = {};

    if (n)
      gpu_load_quad<size, 1> (args.src.data[c] + y * args.src.stride[c] + x * size, n, args.src.vector, plane);
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++) {
      const unsigned i = k * channels + c;

      words[i * size / 4] |= gpu_quad_element<size> (plane, k) << (8 * (i * size % 4));
    }
  }
  gpu_store_quads<size, channels> (gpu_packed_pixel (args.dst, x0, y), args.width - x0, n, args.dst.vector, words,
                                   stage);
}

template <unsigned size>
static __device__ __forceinline__ void
reformat_rows (const GpuReformatArgs &args, uint4 *stage)
{
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;

  if (x0 >= args.width)
    return;
  for (uint64_t y = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y; y < args.height;
       y += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y) {
    if (args.src.channels == 1)
      reformat_row<size, 1> (args, x0, y, stage);
    else if (args.src.channels == 2)
      reformat_row<size, 2> (args, x0, y, stage);
    else if (args.src.channels == 3)
      reformat_row<size, 3> (args, x0, y, stage);
    else
      reformat_row<size, 4> (args, x0, y, stage);
  }
}

/* Elements of 2 and 4 bytes. */
static __device__ __forceinline__ void
run_reformat_elements (const GpuReformatArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][128];

  if (args.src.size == 2)
    reformat_rows<2> (args, stage[threadIdx.y]);
  else
    reformat_rows<4> (args, stage[threadIdx.y]);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_reformat_elements (const __grid_constant__ GpuReformatArgs args)
{
  run_reformat_elements (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y) gpu_reformat_elements_table (const GpuReformatArgs *table)
{
  run_reformat_elements (gpu_table_args (table));
}
