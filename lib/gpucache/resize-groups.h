/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Weights of filters for products of matrices that a warp makes, for nvcc and the C compiler alike: how they lie.
 *
 * A product takes 16 lines of 32 samples each, one after the other, by the weights of 8 samples of the destination. A
 * weight of 22 bits of fraction goes in three signed digits to the base of 256, which have a product each.
 */
#pragma once

#include "pixel.h"

/** Bits of fraction of a weight. */
#define GPU_GROUP_BITS 22

/** Samples of the destination whose weights lie together: group i has those of 8 i to 8 i + 7 of a plane. */
#define GPU_GROUP_SIZE 8u

/** Samples of the source that one product takes in, and lines of them. */
#define GPU_GROUP_STEP 32u
#define GPU_GROUP_LINES 16u

/** Words of weights of one step of a group: for each digit and lane of a warp two. */
#define GPU_GROUP_DIGITS 3u
#define GPU_GROUP_STEP_WORDS (GPU_GROUP_DIGITS * 64)

/**
 * GpuGroupAxis:
 * @spans: for each group the first sample of the source that it needs, or one a little before it, and the one after the
 *   last
 * @weights: for each group @steps times GPU_GROUP_STEP_WORDS words: byte i of word r of lane l of a digit is that of
 *   sample l / 4 of the group for sample 16 r + 4 (l % 4) + i of the source, from where the step begins
 * @first: the first group that has any sample of the destination's part
 * @n: groups
 */
typedef struct {
  const int32_t *spans;
  const uint32_t *weights;
  uint32_t first;
  uint32_t n;
  uint32_t steps;
  uint32_t reserved;
} GpuGroupAxis;

/** Where sample @sample of a group's span is among lines that interleave the halves of each GPU_GROUP_LINES samples: a
 * product gives a lane two lines that are half as many apart, which are best written side by side. */
GPU_PIXEL_FUNC uint32_t
gpu_group_interleaved (uint32_t sample)
{
  const uint32_t half = GPU_GROUP_LINES / 2;

  return (sample & ~(GPU_GROUP_LINES - 1)) | (sample % half) << 1 | sample / half % 2;
}
