/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How large the tiles can be in which a GPU scales.
 */
#include "resize-tile.h"

#include "resize-priv.h"

/* What a block makes, the largest first: groups across, as a power of two, and rows. */
static const struct {
  uint32_t shift;
  uint32_t height;
} shapes[] = {{2, 32}, {2, 16}, {1, 16}, {1, 8}, {0, 8}};

static uint32_t
round_up (uint32_t value, uint32_t step)
{
  return (value + step - 1) / step * step;
}

bool
gpu_tile_plan (GpuTilePlan *plan, const GpuFilterTable *across, uint32_t left, uint32_t width,
               const GpuFilterTable *down, uint32_t top, uint32_t bytes)
{
  const uint32_t unit = gpu_tile_unit (bytes);

  plan->x = (GpuGroups){.bytes = 1, .unit = GPU_TILE_ALIGNMENT, .offset = left};
  plan->y = (GpuGroups){.bytes = 1, .unit = GPU_TILE_ALIGNMENT, .offset = top};
  if (!gpu_groups_plan (&plan->x, across) || !gpu_groups_plan (&plan->y, down))
    return false;
  /* Beyond its samples a step may look at what comes next. */
  const uint64_t beyond = (uint64_t)MAX (plan->x.steps, plan->y.steps) * (GPU_GROUP_STEP / 4);
  for (unsigned i = 0; i < G_N_ELEMENTS (shapes); i++) {
    const uint32_t pixels = gpu_groups_longest_span (across, &plan->x, 1u << shapes[i].shift, unit);
    const uint32_t rows =
        gpu_groups_longest_span (down, &plan->y, shapes[i].height / GPU_GROUP_SIZE, GPU_TILE_ALIGNMENT);
    const uint32_t all = round_up (rows, GPU_GROUP_LINES);

    if ((width - 1) / (GPU_GROUP_SIZE << shapes[i].shift) >= GPU_TILE_MAX_ACROSS)
      break;
    plan->shift = shapes[i].shift;
    plan->height = shapes[i].height;
    plan->line_words = round_up (round_up (pixels, unit) / 4 + 2, 4) - 2;
    plan->column_words = all / 4 + 3;
    const uint64_t taken = (uint64_t)GPU_TILE_SIZE * bytes * plan->column_words + beyond;
    if (taken >= GPU_TILE_WORDS)
      continue;
    const uint64_t lines = (GPU_TILE_WORDS - taken) / bytes / plan->line_words;
    plan->chunk = MIN (all, (uint32_t)lines / GPU_GROUP_LINES * GPU_GROUP_LINES);
    if (plan->chunk)
      return true;
  }
  return false;
}
