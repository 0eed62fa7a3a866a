/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which pictures a GPU scales in strips, and how high these are.
 */
#include "resize-strip.h"

#include "resize-priv.h"

/* High strips need fewer rows of the source twice, but there are fewer of them: with less than so many in a launch, a
 * few for each multiprocessor of a large GPU, lower ones are faster. */
#define ENOUGH_STRIPS 400

/* Of lower ones too many rows are needed twice. */
#define LEAST_HEIGHT 16

/* Kernels. */
static const struct {
  uint32_t steps, room;
} kinds[GPU_STRIP_KINDS] = {{GPU_STRIP_FEW_STEPS, GPU_STRIP_FEW_BYTES},
                            {GPU_STRIP_MANY_STEPS, GPU_STRIP_MANY_BYTES},
                            {GPU_STRIP_MOST_STEPS, GPU_STRIP_MOST_BYTES}};

static uint32_t
round_up (uint32_t value, uint32_t step)
{
  return (value + step - 1) / step * step;
}

/* The least odd multiple of GPU_STRIP_UNIT that has room for @bytes. */
static uint32_t
odd_units (uint32_t bytes)
{
  return (round_up (bytes, GPU_STRIP_UNIT) / GPU_STRIP_UNIT | 1) * GPU_STRIP_UNIT;
}

/* Whether a strip of @plan's height has room in @room bytes for @rows rows of the source, of @bytes each, some at a
 * time. */
static bool
plan_chunk (GpuStripPlan *plan, uint32_t room, uint32_t bytes, uint32_t rows)
{
  /* Beyond what it needs a step may look at what comes next. */
  const uint64_t beyond = (uint64_t)MAX (plan->x.steps, plan->y.steps) * GPU_GROUP_STEP;
  const uint32_t gap = plan->x.steps * GPU_GROUP_STEP;

  if (bytes > room || rows > room)
    return false;
  plan->line_bytes = odd_units (bytes);
  plan->column_bytes = odd_units (round_up (rows, GPU_GROUP_LINES));
  plan->units = (bytes - 1) / GPU_STRIP_UNIT + 1;
  const uint64_t taken = gpu_strip_columns_bytes (plan->column_bytes) + gap + beyond;
  if (taken >= room || plan->units > 32 * GPU_STRIP_WARPS)
    return false;
  const uint32_t lines = (uint32_t)(room - taken) / plan->line_bytes;
  /* Two chunks at least, of which one is on its way while the other one is filtered. */
  plan->chunk = MIN (lines / 2 / GPU_GROUP_LINES * GPU_GROUP_LINES, round_up ((rows + 1) / 2, GPU_GROUP_LINES));
  plan->apart = plan->chunk * plan->line_bytes + gap;
  return plan->chunk > 0;
}

uint32_t
gpu_strip_choose_height (const GpuImageSpec *spec, unsigned n)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);
  uint32_t height = GPU_STRIP_HEIGHT;

  for (; height > LEAST_HEIGHT; height /= 2) {
    uint64_t strips = 0;

    for (unsigned i = 0; i < info->n_planes; i++) {
      const uint64_t bytes = (uint64_t)gpu_image_spec_plane_width (spec, i) * info->plane[i].pixel_bytes;

      strips += ((bytes - 1) / GPU_STRIP_WIDTH + 1) * ((gpu_image_spec_plane_height (spec, i) - 1) / height + 1);
    }
    if (strips * n >= ENOUGH_STRIPS)
      break;
  }
  return height;
}

bool
gpu_strip_plan (GpuStripPlan *plan, const GpuFilterTable *across, uint32_t left, uint32_t width,
                const GpuFilterTable *down, uint32_t top, uint32_t bytes, uint32_t height, unsigned kind)
{
  plan->x = (GpuGroups){.bytes = bytes, .unit = GPU_STRIP_UNIT, .offset = left};
  if ((uint64_t)width * bytes > INT32_MAX || !gpu_groups_plan (&plan->x, across) || plan->x.steps > kinds[kind].steps)
    return false;
  for (plan->height = height; plan->height >= GPU_GROUP_SIZE; plan->height /= 2) {
    const uint32_t groups = plan->height / GPU_GROUP_SIZE;

    plan->y = (GpuGroups){.bytes = 1, .unit = GPU_STRIP_UNIT, .together = groups, .offset = top};
    if (!gpu_groups_plan (&plan->y, down))
      return false;
    if (plan_chunk (plan, kinds[kind].room, gpu_groups_longest_span (across, &plan->x, GPU_STRIP_WARPS, 1),
                    gpu_groups_longest_span (down, &plan->y, groups, 1)))
      return true;
  }
  return false;
}
