/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels share: one launch for many images, each of which has its arguments in a table.
 */
#pragma once

#include "pixel.h"
#include "table.h"

/** See table.h. */
template <typename Args> struct GpuTable {
  const Args *entries;
  uint64_t reserved;
  Args first[GPU_TABLE_FIRST (sizeof (Args))];
};

/** The arguments of this block's image, the one that blockIdx.z says, in shared memory: all threads read the same words
 * again and again. For all threads of the block to call, once.
 *
 * The grid is that of the largest image: blocks can lie to the right of, or below, all that theirs has. */
template <typename Args>
static __device__ __forceinline__ const Args &
gpu_table_args (const GpuTable<Args> &table)
{
  constexpr unsigned n = sizeof (Args) / sizeof (uint64_t);
  static_assert (sizeof (Args) % sizeof (uint64_t) == 0, "a table's entries are whole words, one after the other");
  static_assert (offsetof (GpuTable<Args>, first) == GPU_TABLE_HEAD_BYTES, "as the host fills it in");
  __shared__ uint64_t words[n];
  const unsigned threads = blockDim.x * blockDim.y, thread = threadIdx.y * blockDim.x + threadIdx.x;

  if (blockIdx.z < GPU_TABLE_FIRST (sizeof (Args)))
    for (unsigned i = thread; i < n; i += threads)
      words[i] = ((const uint64_t *)table.first)[blockIdx.z * n + i];
  else
    for (unsigned i = thread; i < n; i += threads)
      words[i] = ((const uint64_t *)(table.entries + blockIdx.z))[i];
  __syncthreads ();
  return *(const Args *)words;
}

/** @run with the arguments of this block's image, where they are if that is among the parameters. For kernels whose
 * threads do so little that it would not pay to bring all of the arguments to shared memory first, and to wait for it.
 */
template <typename Args, typename Run>
static __device__ __forceinline__ void
gpu_with_table_args (const GpuTable<Args> &table, Run run)
{
  if (blockIdx.z < GPU_TABLE_FIRST (sizeof (Args)))
    run (table.first[blockIdx.z]);
  else
    run (gpu_table_args (table));
}

/** The same for kernels without a table: a launch has no more images than there are arguments among its parameters,
 * which all threads read from there, as they do those of a launch for one image. */
template <typename Param>
static __device__ __forceinline__ const Param &
gpu_table_param (const GpuTable<Param> &table)
{
  return table.first[blockIdx.z];
}
