/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels of scaling share: pixels of 1 to 4 bytes, one by one and four at once.
 */
#pragma once

#include "chunk.cuh"
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
