/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Instructions of the GPU that CUDA C has no function for, each beside the same in C++: a compiler for the host takes
 * the kernels, too, for tests where there is no GPU.
 */
#pragma once

#include "pixel.h"

/** Two numbers, saturated to bytes, with the lower half of @above above them. */
static __device__ __forceinline__ uint32_t
gpu_pack_saturated (int32_t low, int32_t high, uint32_t above)
{
#ifdef __CUDACC__
  uint32_t packed;

  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(packed) : "r"(high), "r"(low), "r"(above));
  return packed;
#else
  return (uint32_t)min (max (low, 0), 255) | (uint32_t)min (max (high, 0), 255) << 8 | above << 16;
#endif
}

/** Adds to @sum the products of two signed numbers of 16 bits with the lower two of four bytes. */
static __device__ __forceinline__ int32_t
gpu_dp2a_lower (uint32_t pair, uint32_t bytes, int32_t sum)
{
#ifdef __CUDACC__
  asm("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(pair), "r"(bytes));
  return sum;
#else
  const int32_t first = (int16_t)pair * (int32_t)(bytes & 0xff);
  const int32_t second = (int16_t)(pair >> 16) * (int32_t)(bytes >> 8 & 0xff);

  return (int32_t)((uint32_t)sum + (uint32_t)first + (uint32_t)second);
#endif
}

/** The same with the upper two. */
static __device__ __forceinline__ int32_t
gpu_dp2a_upper (uint32_t pair, uint32_t bytes, int32_t sum)
{
#ifdef __CUDACC__
  asm("dp2a.hi.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(pair), "r"(bytes));
  return sum;
#else
  return gpu_dp2a_lower (pair, bytes >> 16, sum);
#endif
}

/** @p as it is. The compiler cannot see that, and so adds what comes to it to this very address: of a base and a
 * product of row and stride it would otherwise make two additions of 64 bits for each row. */
static __device__ __forceinline__ uint8_t *
gpu_base (uint8_t *p)
{
#ifdef __CUDACC__
  asm("" : "+l"(p));
  __builtin_assume (__isGlobal (p));
#endif
  return p;
}

/** @value as it is. The compiler cannot see that, and so works it out once, and not again wherever it is used. */
static __device__ __forceinline__ uint32_t
gpu_once (uint32_t value)
{
#ifdef __CUDACC__
  asm volatile("" : "+r"(value));
#endif
  return value;
}

/** The same, in a register of each thread. An instruction takes only one operand from the registers of the warp, where
 * the compiler would keep what all threads have in common. Blocks are 32 threads wide, which it cannot see. */
static __device__ __forceinline__ int32_t
gpu_own (int32_t value)
{
  return (int32_t)gpu_once ((uint32_t)value + (threadIdx.x >> 5));
}

/** @value as it is, and what is added to it is added to it, not to one of its parts: a product and an addition are one
 * instruction, and the compiler would rather share a part, by additions of their own. */
static __device__ __forceinline__ int32_t
gpu_sum (int32_t value)
{
#ifdef __CUDACC__
  asm("" : "+r"(value));
#endif
  return value;
}

/** @value, which is no NaN, rounded to an integer, ties to even; what is less than 0 or more than 2^23 stays that.
 * Below 2^-126 a float's last bit is worth 2^-149, so that the product rounds, and its bits are the integer. */
static __device__ __forceinline__ int32_t
gpu_round_to_integer (float value)
{
  return (int32_t)gpu_float_bits (value * gpu_float_from_bits (1));
}
