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

/**
 * GpuPixels:
 * @data: the first element of each channel
 * @stride: bytes from row to row, for each channel
 * @at: in packed pixels, which element of the pixel the channel is
 * @step: bytes from a pixel to the next one of its row
 * @size: bytes of an element: 1, 2 or 4
 * @channels: 1 to GPU_PIXEL_CHANNELS
 * @group: elements of a packed pixel, padding included; 1 if each channel has a plane of its own
 * @vector: whether four pixels can be read and written at once
 *
 * Where the channels of a picture or tensor lie, packed or planar.
 */
typedef struct {
  uint8_t *data[GPU_PIXEL_CHANNELS];
  uint64_t stride[GPU_PIXEL_CHANNELS];
  uint32_t at[GPU_PIXEL_CHANNELS];
  uint32_t step;
  uint32_t size;
  uint32_t channels;
  uint32_t group;
  uint32_t vector;
  uint32_t reserved;
} GpuPixels;

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

/** Rounds to nearest, ties to even, and saturates to 0 .. 255, in the lowest byte. @value is not a NaN. */
GPU_PIXEL_FUNC uint32_t
gpu_round_to_byte_bits (float value)
{
  uint32_t bits;

  value = value > 0.0f ? value : 0.0f;
  value = value < 255.0f ? value : 255.0f;
  /* At 2^23 a float's last bit is worth 1, so that the addition rounds, and the sum's low bits are the integer. */
  value += 8388608.0f;
  memcpy (&bits, &value, sizeof bits);
  return bits;
}

GPU_PIXEL_FUNC uint8_t
gpu_round_to_byte (float value)
{
  return (uint8_t)gpu_round_to_byte_bits (value);
}

GPU_PIXEL_FUNC uint32_t
gpu_float_bits (float value)
{
  uint32_t bits;

  memcpy (&bits, &value, sizeof bits);
  return bits;
}

GPU_PIXEL_FUNC float
gpu_float_from_bits (uint32_t bits)
{
  float value;

  memcpy (&value, &bits, sizeof value);
  return value;
}

/** The half-precision number that is nearest to @value, ties to even, as bits. */
GPU_PIXEL_FUNC uint16_t
gpu_half_from_float (float value)
{
  const uint32_t bits = gpu_float_bits (value);
  const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;

  if (size > 0x7f800000) /* NaN */
    return (uint16_t)(sign | 0x7e00);
  if (size >= 0x477ff000) /* 65520 and more */
    return (uint16_t)(sign | 0x7c00);
  if (size < 0x38800000) /* below 2^-14 a half's last bit is worth 2^-24, as is that of a float from 1/2 on */
    return (uint16_t)(sign | (gpu_float_bits (gpu_float_from_bits (size) + 0.5f) - 0x3f000000));
  return (uint16_t)(sign | ((size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13));
}

/** The same from a double, rounded once: by way of a float whose last bit says whether anything was cut off. */
GPU_PIXEL_FUNC uint16_t
gpu_half_from_double (double value)
{
  const float near = (float)value;
  uint32_t bits = gpu_float_bits (near);

  if (value == value && (double)near != value) {
    bits -= value > 0 ? (double)near > value : (double)near < value;
    bits |= 1;
  }
  return gpu_half_from_float (gpu_float_from_bits (bits));
}

GPU_PIXEL_FUNC float
gpu_float_from_half (uint16_t half)
{
  const uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;

  if (size < 0x400) {
    const float value = (float)size * (1.0f / 16777216.0f);
    return sign ? -value : value;
  }
  return gpu_float_from_bits (sign | (size < 0x7c00 ? (size << 13) + 0x38000000 : 0x7f800000 | (size & 0x3ff) << 13));
}
