/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the per-pixel headers need, for nvcc and the C compiler alike. Operations give the same bytes on every device:
 * integers, or single floats whose every step rounds by itself (no contraction, see the build files).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define GPU_PIXEL_FUNC static __device__ __forceinline__
#else
#define GPU_PIXEL_FUNC static inline
#endif

/** As GPU_MAX_PLANES and GPU_MAX_CHANNELS, which nvcc does not see. */
#define GPU_PIXEL_PLANES 4
#define GPU_PIXEL_CHANNELS 4

/**
 * GpuPixelRows:
 * @first: the row at which each plane starts, UINT64_MAX for planes that there are not
 * @total: rows in all
 *
 * The rows (of pixels or tiles) of all planes, one below the other, so that one launch does the whole image. Planes
 * start at multiples of a block's height: a block has one plane only.
 */
typedef struct {
  uint64_t first[GPU_PIXEL_PLANES];
  uint64_t total;
} GpuPixelRows;

/** The upper half of the product. */
GPU_PIXEL_FUNC uint64_t
gpu_mul_high (uint64_t a, uint64_t b)
{
#ifdef __CUDACC__
  return __umul64hi (a, b);
#else
  __extension__ typedef unsigned __int128 Product;

  return (uint64_t)((Product)a * b >> 64);
#endif
}

/** Rounds to nearest, ties to even, and saturates to 0 .. 255. @value is not a NaN. */
GPU_PIXEL_FUNC uint8_t
gpu_round_to_byte (float value)
{
  uint32_t bits;

  value = value > 0.0f ? value : 0.0f;
  value = value < 255.0f ? value : 255.0f;
  /* At 2^23 a float's last bit is worth 1, so that the addition rounds, and the sum's low bits are the integer. */
  value += 8388608.0f;
  memcpy (&bits, &value, sizeof bits);
  return (uint8_t)bits;
}
