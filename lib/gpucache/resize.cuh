/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels of scaling share: pixels of 1 to 4 bytes, one by one and four at once.
 */
#pragma once

#include "chunk.cuh"
#include "ptx.cuh"
#include "resize-pixel.h"

/** The bytes of a pixel, the first one lowest. */
template <unsigned bytes>
static __device__ __forceinline__ uint32_t
load_pixel (const uint8_t *p, bool aligned)
{
  if (bytes == 4 && aligned)
    return *(const uint32_t *)p;
  if (bytes == 2 && aligned)
    return *(const uint16_t *)p;

  uint32_t value = p[0];
#pragma unroll
  for (unsigned i = 1; i < bytes; i++)
    value |= (uint32_t)p[i] << (8 * i);
  return value;
}

template <unsigned bytes>
static __device__ __forceinline__ void
store_pixels (uint8_t *p, const uint32_t pixel[GPU_RESIZE_PIXELS], unsigned n, bool aligned)
{
  if (aligned && n == GPU_RESIZE_PIXELS) {
    if (bytes == 1) {
      *(uint32_t *)p = pixel[0] | pixel[1] << 8 | pixel[2] << 16 | pixel[3] << 24;
    } else if (bytes == 2) {
      *(uint2 *)p = make_uint2 (pixel[0] | pixel[1] << 16, pixel[2] | pixel[3] << 16);
    } else if (bytes == 3) {
      ((uint32_t *)p)[0] = pixel[0] | pixel[1] << 24;
      ((uint32_t *)p)[1] = pixel[1] >> 8 | pixel[2] << 16;
      ((uint32_t *)p)[2] = pixel[2] >> 16 | pixel[3] << 8;
    } else {
      *(uint4 *)p = make_uint4 (pixel[0], pixel[1], pixel[2], pixel[3]);
    }
    return;
  }

#pragma unroll
  for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
    if (k < n)
#pragma unroll
      for (unsigned i = 0; i < bytes; i++)
        p[k * bytes + i] = (uint8_t)gpu_byte (pixel[k], i);
}

/** Samples multiplied by the pixel's byte @alpha, in pairs: byte 1 and 3 of @even are samples 0 and 2, of @odd 1 and 3.
 */
static __device__ __forceinline__ void
premultiply_pairs (uint32_t pixel, unsigned alpha, uint32_t &even, uint32_t &odd)
{
  const uint32_t weight = __byte_perm (pixel, 0, 0x4440 | alpha);
  /* Alpha itself stays if it is multiplied by one. */
  const uint32_t straight = pixel | 0xffu << (8 * alpha);

  even = (straight & 0xff00ff) * weight + 0x800080;
  odd = __byte_perm (straight, 0, 0x4341) * weight + 0x800080;
  even += __byte_perm (even, 0, 0x4341);
  odd += __byte_perm (odd, 0, 0x4341);
}

static __device__ __forceinline__ uint32_t
premultiply (uint32_t pixel, unsigned alpha)
{
  uint32_t even, odd;

  premultiply_pairs (pixel, alpha, even, odd);
  return __byte_perm (even, odd, 0x7351);
}

/** The same, of each sample by itself: byte 2 of @out[c] is sample c, and byte 3 is 0. Of the product with 257 times
 * alpha, and 257 times the half that rounds, it is what premultiply_pairs() adds up. */
static __device__ __forceinline__ void
premultiply_apart (uint32_t pixel, unsigned alpha, uint32_t out[4])
{
  const uint32_t low = __byte_perm (pixel, 0, 0x4400 | alpha * 0x11), high = low << 16;
  const uint32_t straight = pixel | 0xffu << (8 * alpha);

  out[0] = gpu_unsigned_dp2a_lower (low, straight, 0x8080);
  out[1] = gpu_unsigned_dp2a_lower (high, straight, 0x8080);
  out[2] = gpu_unsigned_dp2a_upper (low, straight, 0x8080);
  out[3] = gpu_unsigned_dp2a_upper (high, straight, 0x8080);
}

/** The same of a pixel whose alpha is its last byte. */
static __device__ __forceinline__ uint32_t
premultiply_last (uint32_t pixel)
{
  const uint32_t low = __byte_perm (pixel, 0, 0x4433), high = low << 16;
  const uint32_t first = gpu_unsigned_dp2a_lower (low, pixel, 0x8080);
  const uint32_t second = gpu_unsigned_dp2a_lower (high, pixel, 0x8080);
  const uint32_t third = gpu_unsigned_dp2a_upper (low, pixel, 0x8080);

  return __byte_perm (__byte_perm (first, second, 0x0062), __byte_perm (third, pixel, 0x0072), 0x5410);
}

/** The other way, with one division for all samples: gpu_filter_unpremultiply(). */
static __device__ __forceinline__ uint32_t
unpremultiply (uint32_t pixel, unsigned alpha)
{
  const uint32_t weight = __byte_perm (pixel, 0, 0x4440 | alpha);
  /* 255 times 2^24 / weight, where this is rounded up, or to a little more: what that adds to a sample stays below the
   * 1 / weight that it would take to reach the next integer, up to 255, and whatever is more is saturated. The 16
   * above 2^24 make up for what the reciprocal may lack, which may be three times its last bit. */
  const uint32_t reciprocal = 255 * (uint32_t)(gpu_rough_reciprocal ((float)max (weight, 1u)) * 16777232.0f) + 255;
  const uint32_t mask = weight ? 0xffu << (8 * alpha) : 0xffffffff;
  int32_t sample[4];

#pragma unroll
  for (unsigned i = 0; i < 4; i++)
    sample[i] = (int32_t)((uint64_t)__byte_perm (pixel, 0, 0x4404 | i << 4) * reciprocal >> 32);
  return (gpu_pack_saturated (sample[0], sample[1], gpu_pack_saturated (sample[2], sample[3], 0)) & ~mask) |
         (pixel & mask);
}
