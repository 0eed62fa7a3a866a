/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels share: four pixels of a row at once, packed or planar, of elements of 1, 2 or 4 bytes. A
 * warp makes 128 pixels of one row. Addresses that vectors cannot have are read and written element by element; nothing
 * outside a row's pixels is touched.
 *
 * Four packed pixels are `group * size` words, and a warp's are contiguous: they go through shared memory, so that
 * whatever the group, 16 bytes a thread are written side by side.
 */
#pragma once

#include "chunk.cuh"
#include "ptx.cuh"

#define GPU_QUAD 4u

/** Rows that a thread takes at a time where all of a warp's quads are whole: their loads come first, so that enough of
 * them are on their way. */
#define GPU_QUAD_ROWS 4u

/** A block's threads, as op-priv.h has them: a warp for each of its rows. */
#define GPU_QUAD_BLOCK_X 32
#define GPU_QUAD_BLOCK_Y 8

/** Element @i of those that @words hold, lowest first. */
template <unsigned size>
static __device__ __forceinline__ uint32_t
gpu_quad_element (const uint32_t *words, unsigned i)
{
  if (size == 4)
    return words[i];
  return words[i * size / 4] >> (8 * (i * size % 4)) & (size == 1 ? 0xffu : 0xffffu);
}

template <unsigned size>
static __device__ __forceinline__ uint32_t
gpu_load_element (const uint8_t *p)
{
  return size == 1 ? *p : size == 2 ? *(const uint16_t *)p : *(const uint32_t *)p;
}

template <unsigned size>
static __device__ __forceinline__ void
gpu_store_element (uint8_t *p, uint32_t value)
{
  if (size == 1)
    *p = (uint8_t)value;
  else if (size == 2)
    *(uint16_t *)p = (uint16_t)value;
  else
    *(uint32_t *)p = value;
}

/** Words that begin at a multiple of their own number of bytes, or of 16 if they are more than that. */
template <unsigned n>
static __device__ __forceinline__ void
gpu_load_words (const uint8_t *p, uint32_t words[n])
{
#pragma unroll
  for (unsigned i = 0; i < n;) {
    if (n % 4 == 0) {
      const uint4 v = *(const uint4 *)(p + 4 * i);
      words[i] = v.x, words[i + 1] = v.y, words[i + 2] = v.z, words[i + 3] = v.w;
      i += 4;
    } else if (n % 2 == 0) {
      const uint2 v = *(const uint2 *)(p + 4 * i);
      words[i] = v.x, words[i + 1] = v.y;
      i += 2;
    } else {
      words[i] = *(const uint32_t *)(p + 4 * i);
      i += 1;
    }
  }
}

template <unsigned n>
static __device__ __forceinline__ void
gpu_store_words (uint8_t *p, const uint32_t words[n])
{
#pragma unroll
  for (unsigned i = 0; i < n;) {
    if (n % 4 == 0) {
      *(uint4 *)(p + 4 * i) = make_uint4 (words[i], words[i + 1], words[i + 2], words[i + 3]);
      i += 4;
    } else if (n % 2 == 0) {
      *(uint2 *)(p + 4 * i) = make_uint2 (words[i], words[i + 1]);
      i += 2;
    } else {
      *(uint32_t *)(p + 4 * i) = words[i];
      i += 1;
    }
  }
}

/** The four pixels at @p, of which @n exist; the others are 0. @p is where gpu_load_words() takes it if @vector. */
template <unsigned size, unsigned group>
static __device__ __forceinline__ void
gpu_load_quad (const uint8_t *p, unsigned n, bool vector, uint32_t words[size * group])
{
  if (vector && n == GPU_QUAD) {
    gpu_load_words<size * group> (p, words);
    return;
  }
#pragma unroll
  for (unsigned i = 0; i < size * group; i++)
    words[i] = 0;
#pragma unroll
  for (unsigned i = 0; i < GPU_QUAD * group; i++)
    if (i < n * group)
      words[i * size / 4] |= gpu_load_element<size> (p + i * size) << (8 * (i * size % 4));
}

/** Writes the warp's four pixels a lane. All lanes call it, those with none (@n 0) too. @row is the pixel of lane 0, at
 * a multiple of 16 bytes if @vector, and @width what there are from there on. @stage is the warp's own, and is not
 * used where the four pixels are 1, 2 or 4 words. With @whole the caller knows that @vector is true and @n 0 or 4. */
template <unsigned size, unsigned group, bool whole = false>
static __device__ __forceinline__ void
gpu_store_quads (uint8_t *row, uint64_t width, unsigned n, bool vector, const uint32_t words[size * group],
                 uint4 stage[8 * size * group])
{
  const unsigned lane = threadIdx.x;
  uint8_t *p = row + lane * 4 * size * group;

  if ((!whole && !vector) || size * group <= 2 || size * group == 4) {
    if ((whole || vector) && n == GPU_QUAD) {
      gpu_store_words<size * group> (p, words);
    } else if (!whole) {
#pragma unroll
      for (unsigned i = 0; i < GPU_QUAD * group; i++)
        if (i < n * group)
          gpu_store_element<size> (p + i * size, gpu_quad_element<size> (words, i));
    }
    return;
  }

  const uint64_t bytes = width * size * group;

  gpu_store_words<size * group> ((uint8_t *)stage + lane * 4 * size * group, words);
  __syncwarp ();
#pragma unroll
  for (unsigned i = lane; i < 8 * size * group; i += 32) {
    if (16 * i + 16 <= bytes) {
      ((uint4 *)row)[i] = stage[i];
    } else {
      /* What whole quads leave of a chunk is whole words. */
      const unsigned step = whole && size < 4 ? 4 : size;
#pragma unroll 1
      for (unsigned at = 16 * i; at < 16 * i + 16 && at < bytes; at += step)
        gpu_store_element<step> (row + at, gpu_load_element<step> ((const uint8_t *)stage + at));
    }
  }
  __syncwarp ();
}

/** Four pixels of one channel that has a plane of its own. */
template <unsigned size, bool whole = false>
static __device__ __forceinline__ void
gpu_store_plane_quad (uint8_t *p, unsigned n, bool vector, const uint32_t element[GPU_QUAD])
{
  if ((whole || vector) && n == GPU_QUAD) {
    uint32_t words[size];

#pragma unroll
    for (unsigned i = 0; i < size; i++)
      words[i] = 0;
#pragma unroll
    for (unsigned i = 0; i < GPU_QUAD; i++)
      words[i * size / 4] |= element[i] << (8 * (i * size % 4));
    gpu_store_words<size> (p, words);
  } else if (!whole) {
#pragma unroll
    for (unsigned i = 0; i < GPU_QUAD; i++)
      if (i < n)
        gpu_store_element<size> (p + i * size, element[i]);
  }
}

/** The first byte of a packed pixel. */
static __device__ __forceinline__ uint8_t *
gpu_packed_pixel (const GpuPixels &pixels, uint64_t x, uint64_t y)
{
  return pixels.data[0] - pixels.at[0] * pixels.size + y * pixels.stride[0] + x * pixels.step;
}

/** Whether quads from @x0 on are either whole or not there, and may be read and written at once. The same for all of a
 * warp. */
static __device__ __forceinline__ bool
gpu_quads_are_whole (const GpuPixels &src, const GpuPixels &dst, uint64_t x0, uint64_t width)
{
  return src.vector && dst.vector && (!(width & (GPU_QUAD - 1)) || x0 + GPU_QUAD_BLOCK_X * GPU_QUAD <= width);
}

/** The bytes of whole quads of @group bytes, or planes, in row @y and the ones @step rows after one another, as they
 * lie in memory: of one plane after another if they are planar. What is not there, nor @exists, is left. */
template <unsigned group, unsigned rows>
static __device__ __forceinline__ void
gpu_load_group (const GpuPixels &pixels, uint64_t x, uint64_t y, uint32_t step, uint64_t height, bool exists,
                uint32_t words[rows][4])
{
  if (!exists)
    return;
  if constexpr (group > 1) {
    const uint8_t *p = pixels.data[0] - pixels.at[0] + y * pixels.stride[0] + x * group;
    const uint64_t down = step * pixels.stride[0];

#pragma unroll
    for (unsigned r = 0; r < rows; r++)
      if (y + r * step < height)
        gpu_load_words<group> (p + r * down, words[r]);
  } else {
#pragma unroll
    for (unsigned c = 0; c < GPU_PIXEL_CHANNELS; c++)
      if (c < pixels.channels) {
        const uint8_t *p = pixels.data[c] + y * pixels.stride[c] + x;
        const uint64_t down = step * pixels.stride[c];

#pragma unroll
        for (unsigned r = 0; r < rows; r++)
          if (y + r * step < height)
            words[r][c] = *(const uint32_t *)(p + r * down);
      }
  }
}

template <unsigned rows>
static __device__ __forceinline__ void
gpu_load_quads (const GpuPixels &pixels, uint64_t x, uint64_t y, uint32_t step, uint64_t height, bool exists,
                uint32_t words[rows][4])
{
  if (pixels.group == 4)
    gpu_load_group<4, rows> (pixels, x, y, step, height, exists, words);
  else if (pixels.group == 3)
    gpu_load_group<3, rows> (pixels, x, y, step, height, exists, words);
  else if (pixels.group == 2)
    gpu_load_group<2, rows> (pixels, x, y, step, height, exists, words);
  else
    gpu_load_group<1, rows> (pixels, x, y, step, height, exists, words);
}

/** The order in which __byte_perm() takes the channels of a pixel in memory; zeros beyond them. */
static __device__ __forceinline__ uint32_t
gpu_channel_order (const GpuPixels &pixels)
{
  uint32_t order = 0;

#pragma unroll
  for (unsigned c = 0; c < GPU_PIXEL_CHANNELS; c++)
    order |= (c < pixels.channels ? pixels.group == 1 ? c : pixels.at[c] : 4) << (4 * c);
  return order;
}

/** From what gpu_load_group() gives to one word a pixel, with its bytes, or planes, as they lie in memory. What is
 * above them is of no use. */
template <unsigned group>
static __device__ __forceinline__ void
gpu_split_words (const uint32_t words[4], uint32_t pixel[GPU_QUAD])
{
  if constexpr (group == 4) {
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      pixel[k] = words[k];
  } else if constexpr (group == 3) {
    pixel[0] = words[0];
    pixel[1] = __byte_perm (words[0], words[1], 0x6543);
    pixel[2] = __byte_perm (words[1], words[2], 0x5432);
    pixel[3] = words[2] >> 8;
  } else if constexpr (group == 2) {
    pixel[0] = words[0], pixel[1] = words[0] >> 16, pixel[2] = words[1], pixel[3] = words[1] >> 16;
  } else {
    gpu_transpose_bytes (words, pixel);
  }
}

/** The same, to pixels as gpu_load_byte_pixels() has them. */
template <unsigned group>
static __device__ __forceinline__ void
gpu_split_group (uint32_t order, const uint32_t words[4], uint32_t pixel[GPU_QUAD])
{
  gpu_split_words<group> (words, pixel);
  if constexpr (group > 1) {
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      pixel[k] = __byte_perm (pixel[k], 0, order);
  }
}

static __device__ __forceinline__ void
gpu_split_quad (const GpuPixels &pixels, uint32_t order, const uint32_t words[4], uint32_t pixel[GPU_QUAD])
{
  if (pixels.group == 4)
    gpu_split_group<4> (order, words, pixel);
  else if (pixels.group == 3)
    gpu_split_group<3> (order, words, pixel);
  else if (pixels.group == 2)
    gpu_split_group<2> (order, words, pixel);
  else
    gpu_split_group<1> (order, words, pixel);
}

/** Four pixels of @group bytes, or of @group planes if that is 1: each as one word, with the channels that the picture
 * has in their order, lowest first, and zeros above. */
static __device__ __forceinline__ void
gpu_load_byte_pixels (const GpuPixels &pixels, uint64_t x, uint64_t y, unsigned n, uint32_t pixel[GPU_QUAD])
{
  uint32_t words[4];

  if (pixels.group == 1) {
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      pixel[k] = 0;
#pragma unroll
    for (unsigned c = 0; c < GPU_PIXEL_CHANNELS; c++) {
      if (c >= pixels.channels)
        break;
      gpu_load_quad<1, 1> (pixels.data[c] + y * pixels.stride[c] + x, n, pixels.vector, words);
#pragma unroll
      for (unsigned k = 0; k < GPU_QUAD; k++)
        pixel[k] |= gpu_quad_element<1> (words, k) << (8 * c);
    }
    return;
  }

  const uint8_t *p = gpu_packed_pixel (pixels, x, y);

  if (pixels.group == 4) {
    gpu_load_quad<1, 4> (p, n, pixels.vector, pixel);
  } else if (pixels.group == 3) {
    gpu_load_quad<1, 3> (p, n, pixels.vector, words);
    pixel[0] = words[0];
    pixel[1] = words[0] >> 24 | words[1] << 8;
    pixel[2] = words[1] >> 16 | words[2] << 16;
    pixel[3] = words[2] >> 8;
  } else {
    gpu_load_quad<1, 2> (p, n, pixels.vector, words);
    pixel[0] = words[0], pixel[1] = words[0] >> 16, pixel[2] = words[1], pixel[3] = words[1] >> 16;
  }

  /* From the order in memory to that of the channels. */
  unsigned order = 0;
#pragma unroll
  for (unsigned c = 0; c < GPU_PIXEL_CHANNELS; c++)
    order |= (c < pixels.channels ? pixels.at[c] : 4) << (4 * c);
#pragma unroll
  for (unsigned k = 0; k < GPU_QUAD; k++)
    pixel[k] = __byte_perm (pixel[k], 0, order);
}

/** Writes whole quads of pixels of @group bytes or planes, as gpu_store_byte_pixels() does. */
template <unsigned group>
static __device__ __forceinline__ void
gpu_store_group (const GpuPixels &pixels, uint64_t x0, uint64_t y, uint64_t width, unsigned n,
                 const uint32_t pixel[GPU_QUAD], uint4 *stage)
{
  if constexpr (group == 1) {
    uint32_t plane[GPU_PIXEL_CHANNELS];

    gpu_transpose_bytes (pixel, plane);
#pragma unroll
    for (unsigned c = 0; c < GPU_PIXEL_CHANNELS; c++)
      if (c < pixels.channels && n)
        *(uint32_t *)(pixels.data[c] + y * pixels.stride[c] + x0 + GPU_QUAD * threadIdx.x) = plane[c];
  } else {
    unsigned order = 0x4444;
    uint32_t out[GPU_QUAD];

#pragma unroll
    for (unsigned c = 0; c < GPU_PIXEL_CHANNELS; c++)
      if (c < pixels.channels)
        order ^= (4 ^ c) << (4 * pixels.at[c]);
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      out[k] = __byte_perm (pixel[k], 0xff, order);

    uint8_t *row = pixels.data[0] - pixels.at[0] + y * pixels.stride[0] + x0 * group;
    if constexpr (group == 4) {
      gpu_store_quads<1, 4, true> (row, width - x0, n, true, out, stage);
    } else {
      const uint32_t words[3] = {__byte_perm (out[0], out[1], 0x4210), __byte_perm (out[1], out[2], 0x5421),
                                 __byte_perm (out[2], out[3], 0x6542)};

      gpu_store_quads<1, 3, true> (row, width - x0, n, true, words, stage);
    }
  }
}

/** Writes what gpu_load_byte_pixels() reads; bytes of a packed pixel that are no channel become 255. All lanes of a
 * warp call it, see gpu_store_quads(). */
template <bool whole = false>
static __device__ __forceinline__ void
gpu_store_byte_pixels (const GpuPixels &pixels, uint64_t x0, uint64_t y, uint64_t width, unsigned n,
                       const uint32_t pixel[GPU_QUAD], uint4 *stage)
{
  if (pixels.group == 1) {
    uint32_t plane[GPU_PIXEL_CHANNELS];

    gpu_transpose_bytes (pixel, plane);
#pragma unroll
    for (unsigned c = 0; c < GPU_PIXEL_CHANNELS; c++)
      if (c < pixels.channels) {
        uint8_t *p = pixels.data[c] + y * pixels.stride[c] + x0 + GPU_QUAD * threadIdx.x;

        if ((whole || pixels.vector) && n == GPU_QUAD) {
          *(uint32_t *)p = plane[c];
        } else if (!whole) {
#pragma unroll 1
          for (unsigned k = 0; k < n; k++)
            p[k] = (uint8_t)(plane[c] >> (8 * k));
        }
      }
    return;
  }

  unsigned order = 0x4444;
  uint32_t out[GPU_QUAD];
#pragma unroll
  for (unsigned c = 0; c < GPU_PIXEL_CHANNELS; c++)
    if (c < pixels.channels)
      order ^= (4 ^ c) << (4 * pixels.at[c]);
#pragma unroll
  for (unsigned k = 0; k < GPU_QUAD; k++)
    out[k] = __byte_perm (pixel[k], 0xff, order);

  uint8_t *row = gpu_packed_pixel (pixels, x0, y);
  if (pixels.group == 4) {
    gpu_store_quads<1, 4, whole> (row, width - x0, n, pixels.vector, out, stage);
  } else if (pixels.group == 3) {
    const uint32_t words[3] = {(out[0] & 0xffffff) | out[1] << 24, (out[1] >> 8 & 0xffff) | out[2] << 16,
                               (out[2] >> 16 & 0xff) | out[3] << 8};
    gpu_store_quads<1, 3, whole> (row, width - x0, n, pixels.vector, words, stage);
  } else {
    const uint32_t words[2] = {(out[0] & 0xffff) | out[1] << 16, (out[2] & 0xffff) | out[3] << 16};
    gpu_store_quads<1, 2, whole> (row, width - x0, n, pixels.vector, words, stage);
  }
}
