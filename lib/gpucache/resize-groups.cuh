/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels share which filter by products of matrices: see resize-groups.h.
 */
#pragma once

#include "resize-groups.h"

/** Groups of a block in one direction, and what they take of the source: from @low to @high - 1 those that have
 * weights, which are for samples @start to @end - 1. */
struct GpuBlockGroups {
  uint32_t first;
  uint32_t low;
  uint32_t high;
  uint32_t start;
  uint32_t end;
};

static __device__ __forceinline__ GpuBlockGroups
gpu_make_groups (const GpuGroupAxis &axis, uint32_t first, uint32_t n)
{
  const uint32_t low = max (first, axis.first), high = min (first + n, axis.first + axis.n);

  if (low >= high)
    return GpuBlockGroups{first, 0, 0, 0, 0};
  return GpuBlockGroups{first, low, high, (uint32_t)__ldg (axis.spans + 2 * (low - axis.first)),
                        (uint32_t)__ldg (axis.spans + 2 * (high - axis.first) - 1)};
}

/** Where in the source group @group begins, or the nearest one that has weights. */
static __device__ __forceinline__ uint32_t
gpu_group_start (const GpuGroupAxis &axis, uint32_t group)
{
  const uint32_t known = min (max (group, axis.first), axis.first + axis.n - 1);

  return (uint32_t)__ldg (axis.spans + 2 * (known - axis.first));
}

/** Sum @i of all digits as a sample, not saturated. */
static __device__ __forceinline__ int32_t
gpu_group_sample (const int32_t sum[GPU_GROUP_DIGITS][4], unsigned i)
{
  return (int32_t)((uint32_t)sum[2][i] * 65536 + ((uint32_t)sum[1][i] * 256 + (uint32_t)sum[0][i])) >> GPU_GROUP_BITS;
}
