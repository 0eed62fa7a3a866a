/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels share: one launch for many images, each of which has its arguments in a table.
 */
#pragma once

#include "pixel.h"

/** The arguments of this block's image, the one that blockIdx.z says, in shared memory: all threads read the same words
 * again and again. For all threads of the block to call, once.
 *
 * The grid is that of the largest image: blocks can lie to the right of, or below, all that theirs has. */
template <typename Args>
static __device__ __forceinline__ const Args &
gpu_table_args (const Args *table)
{
  static_assert (sizeof (Args) % sizeof (uint64_t) == 0, "a table's entries are whole words, one after the other");
  __shared__ uint64_t words[sizeof (Args) / sizeof (uint64_t)];
  const uint64_t *entry = (const uint64_t *)(table + blockIdx.z);
  const unsigned threads = blockDim.x * blockDim.y;

  for (unsigned i = threadIdx.y * blockDim.x + threadIdx.x; i < sizeof (Args) / sizeof (uint64_t); i += threads)
    words[i] = entry[i];
  __syncthreads ();
  return *(const Args *)words;
}
