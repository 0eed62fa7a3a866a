/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation on the GPU. To a picture: a thread makes one 16-byte line of the destination, at any address and
 * stride. Source and destination may be the same: then each thread reads what it writes, and nothing else. To a tensor:
 * a block works out what each value becomes, in shared memory, and its threads then look up four pixels at a time.
 */
#include "chunk.cuh"
#include "normalize-pixel.h"
#include "quad.cuh"

template <unsigned bytes>
static __device__ __forceinline__ void
normalize_row (const GpuNormalizePlane &plane, uint32_t y, uint64_t thread)
{
  const int64_t row_bytes = (int64_t)plane.row_bytes;
  const uint8_t *src = plane.src + y * plane.src_stride;
  uint8_t *dst = plane.dst + y * plane.dst_stride;
  const int64_t offset = 16 * (int64_t)thread - (int64_t)((uintptr_t)dst & 15);

  if (offset >= row_bytes)
    return;
  if (offset < 0 || offset + 16 > row_bytes) {
    for (int64_t i = offset < 0 ? 0 : offset; i < offset + 16 && i < row_bytes; i++)
      dst[i] = gpu_normalize_sample (plane.channel[i % bytes], src[i]);
    return;
  }

  /* The channels in the order in which the chunk's bytes take turns. */
  const unsigned phase = offset % bytes;
  GpuNormalizeChannel channel[bytes];

#pragma unroll
  for (unsigned c = 0; c < bytes; c++) {
    channel[c] = plane.channel[c];
#pragma unroll
    for (unsigned k = 1; k < bytes; k++)
      if (phase == k)
        channel[c] = plane.channel[(c + k) % bytes];
  }

  GpuChunk chunk = gpu_load_chunk (src + offset, src, src + row_bytes);

#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    const uint32_t in = chunk.word[i];

    chunk.word[i] = 0;
#pragma unroll
    for (unsigned k = 0; k < 4; k++)
      chunk.word[i] |= (uint32_t)gpu_normalize_sample (channel[(4 * i + k) % bytes], (uint8_t)gpu_byte (in, k))
                       << (8 * k);
  }
  gpu_store_chunk (dst + offset, chunk);
}

extern "C" __global__ void
__launch_bounds__ (GPU_NORMALIZE_BLOCK_X *GPU_NORMALIZE_BLOCK_Y)
    gpu_normalize_rows (const __grid_constant__ GpuNormalizeArgs args)
{
  const uint64_t thread = (uint64_t)blockIdx.x * GPU_NORMALIZE_BLOCK_X + threadIdx.x;

  for (uint64_t row = (uint64_t)blockIdx.y * GPU_NORMALIZE_BLOCK_Y + threadIdx.y; row < args.rows.total;
       row += (uint64_t)gridDim.y * GPU_NORMALIZE_BLOCK_Y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuNormalizePlane &plane = args.plane[i];
    const uint64_t y = row - args.rows.first[i];

    if (y >= plane.height)
      continue;
    if (plane.bytes == 1)
      normalize_row<1> (plane, (uint32_t)y, thread);
    else if (plane.bytes == 2)
      normalize_row<2> (plane, (uint32_t)y, thread);
    else if (plane.bytes == 3)
      normalize_row<3> (plane, (uint32_t)y, thread);
    else
      normalize_row<4> (plane, (uint32_t)y, thread);
  }
}

template <unsigned size, unsigned channels>
static __device__ __forceinline__ void
normalize_quad (const GpuNormalizeTensorArgs &args, uint64_t x0, uint64_t y, unsigned n, const uint32_t pixel[GPU_QUAD],
                const uint32_t table[][256], uint4 *stage)
{
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  uint32_t words[size * channels] = {};

#pragma unroll
  for (unsigned c = 0; c < channels; c++) {
    uint32_t element[GPU_QUAD];

#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      element[k] = table[c][pixel[k] >> (8 * args.at[c]) & 0xff];
    if (args.dst.group == 1) {
      gpu_store_plane_quad<size> (args.dst.data[c] + y * args.dst.stride[c] + x * size, n, args.dst.vector, element);
      continue;
    }
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++) {
      const unsigned i = k * channels + c;

      words[i * size / 4] |= element[k] << (8 * (i * size % 4));
    }
  }
  if (args.dst.group > 1)
    gpu_store_quads<size, channels> (gpu_packed_pixel (args.dst, x0, y), args.width - x0, n, args.dst.vector, words,
                                     stage);
}

template <unsigned size>
static __device__ __forceinline__ void
normalize_rows (const GpuNormalizeTensorArgs &args, const uint32_t table[][256], uint4 *stage)
{
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = x >= args.width ? 0 : (unsigned)min ((uint64_t)GPU_QUAD, args.width - x);

  for (uint64_t y = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y; y < args.height;
       y += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y) {
    uint32_t pixel[GPU_QUAD] = {};

    if (n)
      gpu_load_byte_pixels (args.src, x, y, n, pixel);
    if (args.dst.channels == 1)
      normalize_quad<size, 1> (args, x0, y, n, pixel, table, stage);
    else if (args.dst.channels == 3)
      normalize_quad<size, 3> (args, x0, y, n, pixel, table, stage);
    else
      normalize_quad<size, 4> (args, x0, y, n, pixel, table, stage);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_normalize_tensor (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  __shared__ uint32_t table[GPU_PIXEL_CHANNELS][256];
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][128];
  const unsigned value = threadIdx.y * GPU_QUAD_BLOCK_X + threadIdx.x;

  for (unsigned c = 0; c < args.dst.channels; c++)
    table[c][value] = gpu_normalize_element (args.channel[c], value, args.dst.size);
  __syncthreads ();

  if (args.dst.size == 1)
    normalize_rows<1> (args, table, stage[threadIdx.y]);
  else if (args.dst.size == 2)
    normalize_rows<2> (args, table, stage[threadIdx.y]);
  else
    normalize_rows<4> (args, table, stage[threadIdx.y]);
}
