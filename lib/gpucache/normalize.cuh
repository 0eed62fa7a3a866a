/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels to tensors share: what a byte becomes by its channel's line, and elements side by side.
 */
#pragma once

#include "normalize-pixel.h"
#include "quad.cuh"

static __device__ __forceinline__ float
byte_on_line (const GpuNormalizeLine &line, uint32_t word, uint32_t above, uint32_t selector)
{
  return gpu_normalize_on_line (line, gpu_float_from_bits (__byte_perm (word, above, selector)));
}

/* Elements of @size bytes side by side. */
template <unsigned size, unsigned n>
static __device__ __forceinline__ void
pack_elements (const float element[n], uint32_t words[n * size / 4])
{
#pragma unroll
  for (unsigned i = 0; i < n; i += 4 / size)
    if constexpr (size == 1)
      words[i / 4] = gpu_pack_saturated (
          gpu_round_to_integer (element[i]), gpu_round_to_integer (element[i + 1]),
          gpu_pack_saturated (gpu_round_to_integer (element[i + 2]), gpu_round_to_integer (element[i + 3]), 0));
    else
      words[i * size / 4] = size == 2 ? gpu_pack_halves (element[i], element[i + 1]) : gpu_float_bits (element[i]);
}
