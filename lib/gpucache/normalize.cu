/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation on the GPU: a thread makes one 16-byte line of the destination, at any address and stride. Source and
 * destination may be the same: then each thread reads what it writes, and nothing else.
 */
#include "chunk.cuh"
#include "normalize-pixel.h"

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
