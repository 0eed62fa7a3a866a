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

/** gpu_half_from_float() of two numbers that are no NaNs, the first one lower. */
static __device__ __forceinline__ uint32_t
gpu_pack_halves (float low, float high)
{
#ifndef __CUDACC__
  return (uint32_t)gpu_half_from_float (high) << 16 | gpu_half_from_float (low);
#elif __CUDA_ARCH__ >= 800
  uint32_t packed;

  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
#else
  uint16_t half[2];

  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half[0]) : "f"(low));
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half[1]) : "f"(high));
  return (uint32_t)half[1] << 16 | half[0];
#endif
}

/** gpu_float_from_half(), but for the bits of a NaN. */
static __device__ __forceinline__ float
gpu_float_of_half (uint16_t half)
{
#ifdef __CUDACC__
  float value;

  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
  return value;
#else
  return gpu_float_from_half (half);
#endif
}

/** Adds to @sum the products of two numbers of 16 bits, without a sign, with the lower two of four bytes. */
static __device__ __forceinline__ uint32_t
gpu_unsigned_dp2a_lower (uint32_t pair, uint32_t bytes, uint32_t sum)
{
#ifdef __CUDACC__
  asm("dp2a.lo.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(pair), "r"(bytes));
  return sum;
#else
  return sum + (pair & 0xffff) * (bytes & 0xff) + (pair >> 16) * (bytes >> 8 & 0xff);
#endif
}

/** The same with the upper two. */
static __device__ __forceinline__ uint32_t
gpu_unsigned_dp2a_upper (uint32_t pair, uint32_t bytes, uint32_t sum)
{
#ifdef __CUDACC__
  asm("dp2a.hi.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(pair), "r"(bytes));
  return sum;
#else
  return gpu_unsigned_dp2a_lower (pair, bytes >> 16, sum);
#endif
}

/** 1 / @value, to the last bit or the one beside it, of what is neither too small for that nor too large. */
static __device__ __forceinline__ float
gpu_rough_reciprocal (float value)
{
#ifdef __CUDACC__
  float result;

  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
#else
  return 1 / value;
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

/** Adds to @sum the products of four bytes with four signed ones. */
static __device__ __forceinline__ int32_t
gpu_dp4a (uint32_t bytes, uint32_t factors, int32_t sum)
{
#ifdef __CUDACC__
  asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(bytes), "r"(factors));
  return sum;
#else
  for (unsigned i = 0; i < 32; i += 8)
    sum += (int32_t)(bytes >> i & 0xff) * (int8_t)(factors >> i);
  return sum;
#endif
}

/** @p as it is. The compiler cannot see that, and so adds what comes to it to this very address: of a base and a
 * product of row and stride it would otherwise make two additions of 64 bits for each row. */
template <typename T>
static __device__ __forceinline__ T *
gpu_base (T *p)
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

/** Adds to @add the product of 16 lines of 32 bytes by 8 columns of 32 signed bytes, all lanes of a warp together. Lane
 * l has of lines l / 4 and l / 4 + 8 bytes 4 (l % 4) and following, and 16 beyond those: @lines in this order, first of
 * both lines, then further on; of column l / 4 the same bytes; and of the sums those of both lines in columns 2 (l % 4)
 * and following. */
static __device__ __forceinline__ void
gpu_multiply_lines (int32_t sum[4], const uint32_t lines[4], uint2 columns, const int32_t add[4])
{
#ifndef __CUDACC__
  /* What each warp's lanes have, put together. */
  __shared__ uint8_t all_lines[32][16][32];
  __shared__ int8_t all_columns[32][8][32];
  const unsigned warp = (threadIdx.y * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  const unsigned first = lane / 4, at = lane % 4 * 4;
  uint8_t (*line)[32] = all_lines[warp];
  int8_t (*column)[32] = all_columns[warp];

  for (unsigned i = 0; i < 4; i++)
    memcpy (&line[first + i % 2 * 8][at + i / 2 * 16], &lines[i], 4);
  memcpy (&column[first][at], &columns.x, 4);
  memcpy (&column[first][at + 16], &columns.y, 4);
  __syncwarp ();
  for (unsigned i = 0; i < 4; i++) {
    const uint8_t *bytes = line[first + i / 2 * 8];
    const int8_t *factors = column[lane % 4 * 2 + i % 2];
    int32_t total = 0;

    for (unsigned k = 0; k < 32; k++)
      total += bytes[k] * factors[k];
    sum[i] = (int32_t)((uint32_t)add[i] + (uint32_t)total);
  }
  __syncwarp ();
#elif __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%10, %11, %12, %13};"
               : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
               : "r"(lines[0]), "r"(lines[1]), "r"(lines[2]), "r"(lines[3]), "r"(columns.x), "r"(columns.y),
                 "r"(add[0]), "r"(add[1]), "r"(add[2]), "r"(add[3]));
#else
  int32_t half[4];

#pragma unroll
  for (unsigned i = 0; i < 2; i++) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0, %1}, {%2}, {%3}, {%4, %5};"
                 : "=r"(half[2 * i]), "=r"(half[2 * i + 1])
                 : "r"(lines[i]), "r"(columns.x), "r"(add[2 * i]), "r"(add[2 * i + 1]));
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32 {%0, %1}, {%2}, {%3}, {%4, %5};"
                 : "=r"(sum[2 * i]), "=r"(sum[2 * i + 1])
                 : "r"(lines[2 + i]), "r"(columns.y), "r"(half[2 * i]), "r"(half[2 * i + 1]));
  }
#endif
}

#ifndef __CUDACC__
/** As a GPU does, where a host would not mind. */
static __device__ __forceinline__ void
gpu_check_aligned (const uint8_t *p, unsigned n)
{
  if ((uintptr_t)p % n)
    __builtin_trap ();
}
#endif

/** Loads what gpu_multiply_lines() takes of lines from shared memory, all lanes of a warp together: lane l says where
 * line l % 16 begins, from byte 16 (l / 16) on, a multiple of 16 each. */
static __device__ __forceinline__ void
gpu_load_lines (uint32_t lines[4], const uint8_t *p)
{
#ifndef __CUDACC__
  __shared__ const uint8_t *all[32][32];
  const unsigned warp = (threadIdx.y * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;

  gpu_check_aligned (p, 16);
  emulated_check_read (p, 16);
  all[warp][lane] = p;
  __syncwarp ();
  for (unsigned i = 0; i < 4; i++)
    memcpy (&lines[i], all[warp][8 * i + lane / 4] + lane % 4 * 4, 4);
  __syncwarp ();
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(lines[0]), "=r"(lines[1]), "=r"(lines[2]), "=r"(lines[3])
               : "r"((uint32_t)__cvta_generic_to_shared (p))
               : "memory");
#endif
}

/** Begins to copy 16 bytes to shared memory; both places are multiples of 16. */
static __device__ __forceinline__ void
gpu_copy_async (uint8_t *dst, const uint8_t *src)
{
#ifndef __CUDACC__
  gpu_check_aligned (dst, 16);
  gpu_check_aligned (src, 16);
  emulated_begin_copy (dst, src, 16);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"((uint32_t)__cvta_generic_to_shared (dst)), "l"(src)
               : "memory");
#else
  *(uint4 *)dst = __ldg ((const uint4 *)src);
#endif
}

/** The same with 4 bytes; both places are multiples of 4. */
static __device__ __forceinline__ void
gpu_copy_word_async (uint8_t *dst, const uint8_t *src)
{
#ifndef __CUDACC__
  gpu_check_aligned (dst, 4);
  gpu_check_aligned (src, 4);
  emulated_begin_copy (dst, src, 4);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :
               : "r"((uint32_t)__cvta_generic_to_shared (dst)), "l"(src)
               : "memory");
#else
  *(uint32_t *)dst = __ldg ((const uint32_t *)src);
#endif
}

/** What was begun before, and not been ended, is one set of copies, which may be none. */
static __device__ __forceinline__ void
gpu_end_copies (void)
{
#ifndef __CUDACC__
  emulated_end_copies ();
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

/** Until this thread's copies are there, but those of the last set. */
static __device__ __forceinline__ void
gpu_wait_for_copies (void)
{
#ifndef __CUDACC__
  emulated_wait_for_copies (1);
#elif __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group 1;" : : : "memory");
#endif
}
