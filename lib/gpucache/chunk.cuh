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

/** The first @n bytes at @p, at most 16; what comes after them is of no use. For where speed does not matter: it is a
 * loop, so that it takes few instructions and registers from what is beside it. */
static __device__ __forceinline__ GpuChunk
gpu_load_bytes (const uint8_t *p, unsigned n)
{
  GpuChunk chunk = {};

#pragma unroll 1
  for (unsigned i = n; i-- > 0;) {
#pragma unroll
    for (unsigned k = 3; k > 0; k--)
      chunk.word[k] = __funnelshift_l (chunk.word[k - 1], chunk.word[k], 8);
    chunk.word[0] = chunk.word[0] << 8 | p[i];
  }
  return chunk;
}

static __device__ __forceinline__ void
gpu_store_bytes (uint8_t *p, GpuChunk chunk, unsigned n)
{
#pragma unroll 1
  for (unsigned i = 0; i < n; i++) {
    p[i] = (uint8_t)chunk.word[0];
#pragma unroll
    for (unsigned k = 0; k < 3; k++)
      chunk.word[k] = __funnelshift_r (chunk.word[k], chunk.word[k + 1], 8);
    chunk.word[3] >>= 8;
  }
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

  return gpu_load_bytes (p, 16);
}

/** The same of a row that ends at @high, which may be before the 16 bytes end. */
static __device__ __forceinline__ GpuChunk
gpu_load_part (const uint8_t *p, const uint8_t *low, const uint8_t *high)
{
  return p + 16 <= high ? gpu_load_chunk (p, low, high) : gpu_load_bytes (p, (unsigned)(high - p));
}

/** @p is a multiple of 16. */
static __device__ __forceinline__ void
gpu_store_chunk (uint8_t *p, const GpuChunk &chunk)
{
  *(uint4 *)p = make_uint4 (chunk.word[0], chunk.word[1], chunk.word[2], chunk.word[3]);
}

/** The first @n bytes of @chunk, or all of them, to @p, a multiple of 16. */
static __device__ __forceinline__ void
gpu_store_part (uint8_t *p, const GpuChunk &chunk, int n)
{
  if (n >= 16)
    gpu_store_chunk (p, chunk);
  else
    gpu_store_bytes (p, chunk, (unsigned)n);
}

/** Bytes 4 i + k become bytes 4 k + i. */
static __device__ __forceinline__ void
gpu_transpose_bytes (const uint32_t in[4], uint32_t out[4])
{
  const uint32_t even0 = __byte_perm (in[0], in[1], 0x5140), even1 = __byte_perm (in[2], in[3], 0x5140);
  const uint32_t odd0 = __byte_perm (in[0], in[1], 0x7362), odd1 = __byte_perm (in[2], in[3], 0x7362);

  out[0] = __byte_perm (even0, even1, 0x5410);
  out[1] = __byte_perm (even0, even1, 0x7632);
  out[2] = __byte_perm (odd0, odd1, 0x5410);
  out[3] = __byte_perm (odd0, odd1, 0x7632);
}
