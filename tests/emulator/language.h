/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Stands for the CUDA language where the host's C++ compiler takes a kernel: words, types and functions that nvcc knows
 * by itself, as far as the kernels use them. What they do is what CUDA's documentation says.
 *
 * Shared memory is a static variable: grid.c runs one block at a time, and knows where such variables lie.
 */
#pragma once

#include "grid.h"

#include <type_traits>

#define __global__
#define __device__
#define __grid_constant__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)

#define threadIdx (emulated_thread.threadIdx)
#define blockIdx (emulated_thread.blockIdx)
#define blockDim (emulated_thread.blockDim)
#define gridDim (emulated_thread.gridDim)

struct alignas (8) uint2 {
  unsigned x, y;
};

struct alignas (16) uint4 {
  unsigned x, y, z, w;
};

static inline uint2
make_uint2 (unsigned x, unsigned y)
{
  return uint2{x, y};
}

static inline uint4
make_uint4 (unsigned x, unsigned y, unsigned z, unsigned w)
{
  return uint4{x, y, z, w};
}

template <typename A, typename B>
static inline std::common_type_t<A, B>
min (A a, B b)
{
  const std::common_type_t<A, B> first = a, second = b;

  return second < first ? second : first;
}

template <typename A, typename B>
static inline std::common_type_t<A, B>
max (A a, B b)
{
  const std::common_type_t<A, B> first = a, second = b;

  return first < second ? second : first;
}

template <typename T>
static inline T
__ldg (const T *p)
{
  return *p;
}

static inline unsigned
__byte_perm (unsigned x, unsigned y, unsigned selector)
{
  const uint64_t bytes = (uint64_t)y << 32 | x;
  unsigned result = 0;

  for (unsigned i = 0; i < 4; i++)
    result |= (unsigned)(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  return result;
}

static inline unsigned
__funnelshift_r (unsigned low, unsigned high, unsigned shift)
{
  return (unsigned)(((uint64_t)high << 32 | low) >> (shift & 31));
}

static inline unsigned
__funnelshift_rc (unsigned low, unsigned high, unsigned shift)
{
  return (unsigned)(((uint64_t)high << 32 | low) >> min (shift, 32u));
}

static inline unsigned
__funnelshift_l (unsigned low, unsigned high, unsigned shift)
{
  return (unsigned)(((uint64_t)high << 32 | low) << (shift & 31) >> 32);
}

static inline unsigned
__dp2a_lo (unsigned pair, unsigned bytes, unsigned sum)
{
  return sum + (pair & 0xffff) * (bytes & 0xff) + (pair >> 16) * (bytes >> 8 & 0xff);
}

static inline unsigned
__dp2a_hi (unsigned pair, unsigned bytes, unsigned sum)
{
  return __dp2a_lo (pair, bytes >> 16, sum);
}

static inline unsigned
__dp4a (unsigned a, unsigned b, unsigned sum)
{
  for (unsigned i = 0; i < 32; i += 8)
    sum += (a >> i & 0xff) * (b >> i & 0xff);
  return sum;
}

/* The place is that of the kernel that has the call. */
#define EMULATED_HERE (EmulatedPlace{__FILE__, __LINE__})
#define EMULATED_ALL_LANES 0xffffffffu

#define __syncthreads() emulated_sync_threads (EMULATED_HERE)
#define __syncwarp() emulated_sync_warp (EMULATED_ALL_LANES, EMULATED_HERE)
#define __shfl_sync(mask, value, lane) emulated_shuffle_from (mask, value, (unsigned)(lane), EMULATED_HERE)
#define __shfl_up_sync(mask, value, delta)                                                                             \
  emulated_shuffle_from (mask, value, emulated_lane_below (delta), EMULATED_HERE)
#define __shfl_down_sync(mask, value, delta)                                                                           \
  emulated_shuffle_from (mask, value, emulated_lane_above (delta), EMULATED_HERE)

/* Beyond the warp's ends a lane gets its own value. */
static inline unsigned
emulated_lane_below (unsigned delta)
{
  return emulated_lane () < delta ? emulated_lane () : emulated_lane () - delta;
}

static inline unsigned
emulated_lane_above (unsigned delta)
{
  return emulated_lane () + delta < EMULATED_WARP ? emulated_lane () + delta : emulated_lane ();
}

template <typename T>
static inline T
emulated_shuffle_from (unsigned mask, T value, unsigned lane, EmulatedPlace place)
{
  static_assert (sizeof (T) == 4 && std::is_integral_v<T>, "the kernels shuffle integers of 32 bits");
  return (T)emulated_shuffle (mask, (uint32_t)value, lane % EMULATED_WARP, place);
}

template <typename Arg, void (*kernel) (Arg)>
static void
emulated_call (const void *arg)
{
  kernel (*(const Arg *)arg);
}

template <typename Arg>
static constexpr size_t
emulated_arg_size (void (*) (Arg))
{
  return sizeof (Arg);
}

template <auto kernel> struct EmulatedCall;

template <typename Arg, void (*kernel) (Arg)> struct EmulatedCall<kernel> {
  static constexpr void (*call) (const void *) = emulated_call<Arg, kernel>;
};

/* Enters a kernel in the list that emulated_kernel() gives out. @...: its __launch_bounds__. */
#define EMULATED_KERNEL(kernel, ...)                                                                                   \
  static constexpr unsigned kernel##_bounds[] = {__VA_ARGS__};                                                         \
  static constexpr EmulatedKernel kernel##_kernel = {#kernel, EmulatedCall<kernel>::call, emulated_arg_size (kernel),  \
                                                     kernel##_bounds[0]};                                              \
  __attribute__ ((section ("emulated_kernels"), used)) static const EmulatedKernel *const kernel##_entry =             \
      &kernel##_kernel;
