/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A kernel for each tool of compute-sanitizer that does what that tool is there to find, and one that does nothing
 * wrong. Each is launched as one block of BROKEN_THREADS threads, with as many words of fresh memory.
 */
#include "broken.h"

/* Writes behind the end. */
extern "C" __global__ void
broken_memcheck (unsigned *words)
{
  words[BROKEN_THREADS + threadIdx.x] = threadIdx.x;
}

/* Reads what a thread of the other warp may not have written yet. */
extern "C" __global__ void
broken_racecheck (unsigned *words)
{
  __shared__ unsigned shared[BROKEN_THREADS];

  shared[threadIdx.x] = threadIdx.x;
  words[threadIdx.x] = shared[BROKEN_THREADS - 1 - threadIdx.x];
}

/* Reads what nobody has written. */
extern "C" __global__ void
broken_initcheck (unsigned *words)
{
  words[threadIdx.x] += 1;
}

/* A part of a warp waits for the block, and the other part does not. */
extern "C" __global__ void
broken_synccheck (unsigned *words)
{
  __shared__ unsigned shared[BROKEN_THREADS];

  shared[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < BROKEN_THREADS - 8)
    __syncthreads ();
  words[threadIdx.x] = shared[threadIdx.x];
}

/* Nothing is wrong with it. */
extern "C" __global__ void
broken_nothing (unsigned *words)
{
  __shared__ unsigned shared[BROKEN_THREADS];

  shared[threadIdx.x] = threadIdx.x;
  __syncthreads ();
  words[threadIdx.x] = shared[BROKEN_THREADS - 1 - threadIdx.x];
}
