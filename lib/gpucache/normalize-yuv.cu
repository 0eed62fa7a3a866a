/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation on the GPU of 4:2:0 to tensors: a thread makes four pixels of four rows, by conversion's matrix to R, G
 * and B of 8 bits, and by their lines to elements.
 */
#include "convert-420.cuh"
#include "normalize-yuv-pixel.h"
#include "normalize.cuh"
#include "table.cuh"

/* Four pixels of a row; @n of them exist, four or none. */
template <unsigned size, bool planar>
static __device__ __forceinline__ void
store_quad (const GpuNormalizeYuvParam &param, uint32_t x0, uint32_t y, unsigned n, const int32_t value[3][GPU_QUAD],
            uint4 *stage)
{
  const GpuPixels &dst = param.dst;
  const uint32_t above = (uint32_t)gpu_own (GPU_NORMALIZE_ABOVE_BITS);
  float element[3][GPU_QUAD];

#pragma unroll
  for (unsigned c = 0; c < 3; c++) {
    const uint32_t bytes = pack_bytes (value[c][0], value[c][1], value[c][2], value[c][3]);

#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      element[c][k] = byte_on_line (param.line[c], bytes, above, GPU_NORMALIZE_SELECTOR (k));
  }

  if constexpr (planar) {
#pragma unroll
    for (unsigned c = 0; c < 3; c++) {
      uint32_t words[size];

      pack_elements<size, GPU_QUAD> (element[c], words);
      if (n)
        gpu_store_words<size> (dst.data[c] + y * dst.stride[c] + (uint64_t)(x0 + GPU_QUAD * threadIdx.x) * size, words);
    }
  } else {
    float row[3 * GPU_QUAD];
    uint32_t words[3 * size];

#pragma unroll
    for (unsigned i = 0; i < 3 * GPU_QUAD; i++)
      row[i] = element[i % 3][i / 3];
    pack_elements<size, 3 * GPU_QUAD> (row, words);
    gpu_store_quads<size, 3, true> (gpu_packed_pixel (dst, x0, y), param.source.width - x0, n, true, words, stage);
  }
}

template <unsigned size, bool planar, unsigned group, bool between>
static __device__ __forceinline__ void
normalize_rows (const GpuNormalizeYuvParam &param, uint4 *stage)
{
  const GpuConvert420Param &source = param.source;
  const uint32_t x0 = blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD, x = x0 + GPU_QUAD * threadIdx.x;
  const uint32_t y = (blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y) * GPU_CONVERT_ROWS;
  Input<1, 1> in;

  if (x0 >= source.width || y >= source.height)
    return;
  /* All lanes of a warp stay: those beyond the edge read what the last one before it does. */
  load_input<1, group, 1, between> (source, min (x, source.width - GPU_QUAD), y, in);

  const Mix mix = make_mix (source, y);

#pragma unroll
  for (unsigned r = 0; r < GPU_CONVERT_ROWS; r++) {
    if (y + r >= source.height)
      break;

    int32_t value[3][GPU_QUAD];
    Shares shares = start_row<1, 1, between> (source, mix, in, r);

    mix_quad<1, 1, between> (source, mix, in, r, 0, shares, value);
    store_quad<size, planar> (param, x0, y + r, x < source.width ? GPU_QUAD : 0, value, stage);
  }
}

template <unsigned size, bool planar>
static __device__ __forceinline__ void
normalize_rows_of (const GpuNormalizeYuvParam &param, uint4 *stage)
{
  if (param.source.src_group == 2) {
    if (!param.source.between)
      normalize_rows<size, planar, 2, false> (param, stage);
    else
      normalize_rows<size, planar, 2, true> (param, stage);
  } else {
    if (!param.source.between)
      normalize_rows<size, planar, 1, false> (param, stage);
    else
      normalize_rows<size, planar, 1, true> (param, stage);
  }
}

template <unsigned size>
static __device__ __forceinline__ void
run_normalize_yuv (const GpuNormalizeYuvParam &param)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][32 * size];

  if (param.dst.group == 1)
    normalize_rows_of<size, true> (param, stage[threadIdx.y]);
  else
    normalize_rows_of<size, false> (param, stage[threadIdx.y]);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_yuv_1 (const __grid_constant__ GpuNormalizeYuvParam param)
{
  run_normalize_yuv<1> (param);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_yuv_1_table (const __grid_constant__ GpuTable<GpuNormalizeYuvParam> table)
{
  run_normalize_yuv<1> (gpu_table_args (table));
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_yuv_2 (const __grid_constant__ GpuNormalizeYuvParam param)
{
  run_normalize_yuv<2> (param);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_yuv_2_table (const __grid_constant__ GpuTable<GpuNormalizeYuvParam> table)
{
  run_normalize_yuv<2> (gpu_table_args (table));
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_yuv_4 (const __grid_constant__ GpuNormalizeYuvParam param)
{
  run_normalize_yuv<4> (param);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_yuv_4_table (const __grid_constant__ GpuTable<GpuNormalizeYuvParam> table)
{
  run_normalize_yuv<4> (gpu_table_args (table));
}
