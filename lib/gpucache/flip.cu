/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Flips on the GPU. Where rows stay rows, a thread makes one 16-byte line of the destination; where they become
 * columns, a block turns a square tile in shared memory. Both take any address and stride.
 */
#include "chunk.cuh"
#include "flip-pixel.h"

/* The byte of the destination's row that comes @offset bytes after its first. */
template <unsigned bytes>
static __device__ __forceinline__ uint8_t
flipped_byte (const uint8_t *first, int64_t step_x, int64_t offset)
{
  return first[offset / bytes * step_x + offset % bytes];
}

/* 16 bytes of a reversed row from @offset on. @first is the source of the row's first pixel: the last one in memory. */
template <unsigned bytes>
static __device__ __forceinline__ GpuChunk
reversed_chunk (const uint8_t *first, const uint8_t *low, int64_t offset)
{
  const uint8_t *high = first + bytes;
  const unsigned phase = offset % bytes;
  GpuChunk out;

  if (bytes != 3 && !phase) {
    const GpuChunk in = gpu_load_chunk (high - offset - 16, low, high);
    const unsigned order = bytes == 1 ? 0x0123 : bytes == 2 ? 0x1032 : 0x3210;

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      out.word[i] = __byte_perm (in.word[3 - i], 0, order);
    return out;
  }

  if (bytes == 3) {
    /* The six pixels, 18 bytes, that the chunk has parts of. */
    const uint8_t *p = high - (offset - phase) - 18;
    const unsigned skip = (unsigned)(uintptr_t)p & 3;
    const uint8_t *line = p - skip;

    if (line >= low && line + 24 <= high) {
      uint32_t w[6], in[5], r[5];

#pragma unroll
      for (unsigned i = 0; i < 6; i++)
        w[i] = ((const uint32_t *)line)[i];
#pragma unroll
      for (unsigned i = 0; i < 5; i++)
        in[i] = __funnelshift_r (w[i], w[i + 1], 8 * skip);
      /* Bytes 15 16 17 12, 13 14 9 10, 11 6 7 8, 3 4 5 0, 1 2. */
      r[0] = __byte_perm (in[3], in[4], 0x0543);
      r[1] = __byte_perm (in[2], in[3], 0x2165);
      r[2] = __byte_perm (in[1], in[2], 0x4327);
      r[3] = __byte_perm (in[0], in[1], 0x0543);
      r[4] = in[0] >> 8;
#pragma unroll
      for (unsigned i = 0; i < 4; i++)
        out.word[i] = __funnelshift_r (r[i], r[i + 1], 8 * phase);
      return out;
    }
  }

#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    out.word[i] = 0;
#pragma unroll
    for (unsigned k = 0; k < 4; k++)
      out.word[i] |= (uint32_t)flipped_byte<bytes> (first, -(int64_t)bytes, offset + 4 * i + k) << (8 * k);
  }
  return out;
}

template <unsigned bytes>
static __device__ __forceinline__ void
flip_row (const GpuFlipPlane &plane, uint32_t y, uint64_t thread)
{
  const int64_t row_bytes = (int64_t)plane.width * bytes;
  const uint8_t *first = gpu_flip_source (&plane, 0, y);
  uint8_t *dst = plane.dst + y * plane.dst_stride;
  const int64_t offset = 16 * (int64_t)thread - (int64_t)((uintptr_t)dst & 15);

  if (offset >= row_bytes)
    return;
  if (offset < 0 || offset + 16 > row_bytes) {
    for (int64_t i = offset < 0 ? 0 : offset; i < offset + 16 && i < row_bytes; i++)
      dst[i] = flipped_byte<bytes> (first, plane.step_x, i);
  } else if (plane.step_x > 0) {
    gpu_store_chunk (dst + offset, gpu_load_chunk (first + offset, first, first + row_bytes));
  } else {
    gpu_store_chunk (dst + offset, reversed_chunk<bytes> (first, first + bytes - row_bytes, offset));
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y) gpu_flip_rows (const __grid_constant__ GpuFlipArgs args)
{
  const uint64_t thread = (uint64_t)blockIdx.x * GPU_FLIP_BLOCK_X + threadIdx.x;

  for (uint64_t row = (uint64_t)blockIdx.y * GPU_FLIP_BLOCK_Y + threadIdx.y; row < args.rows.total;
       row += (uint64_t)gridDim.y * GPU_FLIP_BLOCK_Y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuFlipPlane plane = args.plane[i];
    const uint64_t y = row - args.rows.first[i];

    if (y >= plane.height)
      continue;
    if (plane.bytes == 1)
      flip_row<1> (plane, (uint32_t)y, thread);
    else if (plane.bytes == 2)
      flip_row<2> (plane, (uint32_t)y, thread);
    else if (plane.bytes == 3)
      flip_row<3> (plane, (uint32_t)y, thread);
    else
      flip_row<4> (plane, (uint32_t)y, thread);
  }
}

/* A tile's rows in shared memory are the source's, as aligned words, and an odd number of words apart, so that reading
 * a column meets no bank twice. */
template <unsigned bytes, unsigned edge>
static __device__ __forceinline__ void
turn_tile (const GpuFlipPlane &plane, uint32_t *tile, uint32_t x0, uint32_t y0)
{
  const unsigned pitch = edge * bytes / 4 + 1;
  const unsigned thread = threadIdx.y * GPU_FLIP_BLOCK_X + threadIdx.x;
  const unsigned width = min (edge, plane.width - x0);
  const unsigned height = min (edge, plane.height - y0);
  const bool upwards = plane.step_y < 0;
  /* The lowest address of the source's row that becomes the tile's first column. */
  const uint8_t *src = gpu_flip_source (&plane, x0, upwards ? y0 + height - 1 : y0);
  uint8_t *dst = plane.dst + y0 * plane.dst_stride + (uint64_t)x0 * bytes;
  const unsigned src_low = (unsigned)(uintptr_t)src, src_step = (unsigned)plane.step_x;
  const bool src_words = !((src_low | src_step) & 3);
  const bool dst_words = !(((unsigned)(uintptr_t)dst | (unsigned)plane.dst_stride) & 3);

#pragma unroll 4
  for (unsigned t = thread; t < width * (src_words ? pitch - 1 : pitch); t += GPU_FLIP_BLOCK_X * GPU_FLIP_BLOCK_Y) {
    const unsigned column = src_words ? t / (pitch - 1) : t / pitch;
    const unsigned word = src_words ? t % (pitch - 1) : t % pitch;
    const uint8_t *low = src + (int64_t)column * plane.step_x;
    const uint8_t *high = low + height * bytes;
    const uint8_t *p = low - ((src_low + column * src_step) & 3) + 4 * word;

    if (p < high)
      tile[column * pitch + word] = gpu_load_word (p, low, high);
  }
  __syncthreads ();

#pragma unroll 4
  for (unsigned t = thread; t < height * (dst_words ? pitch - 1 : pitch); t += GPU_FLIP_BLOCK_X * GPU_FLIP_BLOCK_Y) {
    const unsigned row = dst_words ? t / (pitch - 1) : t / pitch;
    const unsigned word = dst_words ? t % (pitch - 1) : t % pitch;
    uint8_t *line = dst + row * plane.dst_stride;
    const int offset = (int)(4 * word) - (dst_words ? 0 : (int)((uintptr_t)line & 3));
    const int end = (int)(width * bytes);
    const unsigned column = (upwards ? height - 1 - row : row) * bytes;
    uint32_t value = 0;

    if (bytes == 4 && src_words && dst_words) {
      if (offset < end)
        *(uint32_t *)(line + offset) = tile[(offset / 4) * pitch + column / 4];
      continue;
    }

#pragma unroll
    for (int k = 0; k < 4; k++) {
      const int at = offset + k;
      const unsigned x = (unsigned)at / bytes, part = (unsigned)at % bytes;

      if (at >= 0 && at < end)
        value |= (uint32_t)((const uint8_t *)(tile + x * pitch))[((src_low + x * src_step) & 3) + column + part]
                 << (8 * k);
    }
    if (offset >= 0 && offset + 4 <= end) {
      *(uint32_t *)(line + offset) = value;
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (offset + k >= 0 && offset + k < end)
          line[offset + k] = (uint8_t)gpu_byte (value, k);
    }
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y) gpu_flip_tiles (const __grid_constant__ GpuFlipArgs args)
{
  __shared__ uint32_t tile[64 * (64 * 2 / 4 + 1)];

  for (uint64_t row = blockIdx.y; row < args.rows.total; row += gridDim.y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuFlipPlane plane = args.plane[i];
    const uint32_t edge = gpu_flip_tile (plane.bytes);
    const uint64_t x0 = (uint64_t)blockIdx.x * edge;
    const uint32_t y0 = (uint32_t)(row - args.rows.first[i]) * edge;

    if (x0 >= plane.width)
      continue;
    if (plane.bytes == 1)
      turn_tile<1, 64> (plane, tile, (uint32_t)x0, y0);
    else if (plane.bytes == 2)
      turn_tile<2, 64> (plane, tile, (uint32_t)x0, y0);
    else if (plane.bytes == 3)
      turn_tile<3, 32> (plane, tile, (uint32_t)x0, y0);
    else
      turn_tile<4, 32> (plane, tile, (uint32_t)x0, y0);
    __syncthreads ();
  }
}
