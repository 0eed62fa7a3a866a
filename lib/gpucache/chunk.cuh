/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels share: rows in 16-byte chunks at aligned addresses of the destination, whatever the
 * alignment of the source; nothing outside a row's samples is read or written.
 */
#pragma once

#include "pixel.h"

typedef struct {
  uint32_t word[4];
} GpuChunk;

static __device__ __forceinline__ unsigned
gpu_plane_of_row (const GpuPixelRows &rows, uint64_t row)
{
  return (row >= rows.first[1]) + (row >= rows.first[2]) + (row >= rows.first[3]);
}

/** The byte of @value at @i. */
static __device__ __forceinline__ uint32_t
gpu_byte (uint32_t value, unsigned i)
{
  return (value >> (8 * i)) & 0xff;
}

/** Four bytes at @p, of which those from @low to before @high exist. @p is a multiple of 4. */
static __device__ __forceinline__ uint32_t
gpu_load_word (const uint8_t *p, const uint8_t *low, const uint8_t *high)
{
  uint32_t value = 0;

  if (p >= low && p + 4 <= high)
    return *(const uint32_t *)p;
#pragma unroll
  for (unsigned i = 0; i < 4; i++)
    if (p + i >= low && p + i < high)
      value |= (uint32_t)p[i] << (8 * i);
  return value;
}

/** The 16 bytes at @p, which has any alignment; all of them lie between @low and @high. */
static __device__ __forceinline__ GpuChunk
gpu_load_chunk (const uint8_t *p, const uint8_t *low, const uint8_t *high)
{
  unsigned skip = (unsigned)(uintptr_t)p & 15;
  const uint8_t *line = p - skip;
  GpuChunk chunk;

  if (!skip) {
    const uint4 v = *(const uint4 *)p;
    return GpuChunk{{v.x, v.y, v.z, v.w}};
  }

  if (line >= low && line + 32 <= high) {
    const uint4 a = ((const uint4 *)line)[0];
    const uint4 b = ((const uint4 *)line)[1];
    const uint32_t w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    uint32_t h[6], q[5];

    /* Whole words first, by two and by one, then bytes. */
#pragma unroll
    for (unsigned i = 0; i < 6; i++)
      h[i] = skip & 8 ? w[i + 2] : w[i];
#pragma unroll
    for (unsigned i = 0; i < 5; i++)
      q[i] = skip & 4 ? h[i + 1] : h[i];
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      chunk.word[i] = __funnelshift_r (q[i], q[i + 1], 8 * (skip & 3));
    return chunk;
  }

#pragma unroll
  for (unsigned i = 0; i < 4; i++)
    chunk.word[i] =
        p[4 * i] | (uint32_t)p[4 * i + 1] << 8 | (uint32_t)p[4 * i + 2] << 16 | (uint32_t)p[4 * i + 3] << 24;
  return chunk;
}

/** @p is a multiple of 16. */
static __device__ __forceinline__ void
gpu_store_chunk (uint8_t *p, const GpuChunk &chunk)
{
  *(uint4 *)p = make_uint4 (chunk.word[0], chunk.word[1], chunk.word[2], chunk.word[3]);
}
