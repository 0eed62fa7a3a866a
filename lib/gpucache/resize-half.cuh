/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels share which scale to exactly half: what a thread reads of a row, as pixels in pairs.
 */
#pragma once

#include "quad.cuh"
#include "resize-pixel.h"

/** Words of the source to make half as many from. */
template <unsigned bytes> constexpr unsigned gpu_half_words = bytes == 3 ? 6 : 4;

/** Pixels 0, 2, 4, .. of a row, and 1, 3, 5, .., both packed. */
template <unsigned bytes>
static __device__ __forceinline__ void
gpu_split_pairs (const uint32_t word[gpu_half_words<bytes>], uint32_t left[gpu_half_words<bytes> / 2],
                 uint32_t right[gpu_half_words<bytes> / 2])
{
  if constexpr (bytes == 3) {
    const uint32_t across = __byte_perm (word[3], word[4], 0x7643); /* bytes 15, 16, 18, 19 */

    left[0] = __byte_perm (word[0], word[1], 0x6210);
    left[1] = __byte_perm (__byte_perm (word[1], word[2], 0x0043), word[3], 0x5410);
    left[2] = __byte_perm (__byte_perm (word[3], across, 0x0762), word[5], 0x4210);
    right[0] = __byte_perm (__byte_perm (word[0], word[1], 0x0543), word[2], 0x5210);
    right[1] = __byte_perm (word[2], across, 0x5432);
    right[2] = __byte_perm (word[4], word[5], 0x7651);
  } else {
#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
      const uint32_t a = word[2 * i], b = word[2 * i + 1];

      left[i] = bytes == 4 ? a : __byte_perm (a, b, bytes == 1 ? 0x6420 : 0x5410);
      right[i] = bytes == 4 ? b : __byte_perm (a, b, bytes == 1 ? 0x7531 : 0x7632);
    }
  }
}

/** Bytes 0 and 2 of a word, and bytes 1 and 3, as two numbers of 16 bits each. */
static __device__ __forceinline__ void
gpu_split_bytes (uint32_t word, uint32_t pairs[2])
{
  pairs[0] = word & 0xff00ff;
  pairs[1] = __byte_perm (word, 0, 0x4341);
}
