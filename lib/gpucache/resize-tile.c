/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a GPU needs to scale with filters in tiles: how large these can be, and the weights in the order of the products
 * of matrices that are made of them.
 */
#include "resize-tile.h"

#include "resize-priv.h"

/* What a block makes, the largest first: groups across, as a power of two, and rows. */
static const struct {
  uint32_t shift;
  uint32_t height;
} shapes[] = {{2, 32}, {2, 16}, {1, 16}, {1, 8}, {0, 8}};

/* Numbers of spans come in multiples of so many, so that weights are where vectors can be. */
#define SPAN_ALIGNMENT 64

/* Steps of all groups: the kernel counts their weights in 32 bits. */
#define MAX_STEPS (UINT32_MAX / GPU_TILE_STEP_WORDS)

static const int32_t *
entry (const GpuFilterTable *table, uint32_t i)
{
  return table->numbers + (size_t)i * (table->taps + 2);
}

/* The first sample of the source that group @group needs, or one a little before it, and the one after the last. */
static void
find_span (const GpuFilterTable *table, uint32_t offset, uint32_t group, int32_t span[2])
{
  const uint32_t begin = group * GPU_TILE_GROUP, end = MIN (begin + GPU_TILE_GROUP, offset + table->out);
  const int32_t *first = entry (table, MAX (begin, offset) - offset), *last = entry (table, end - 1 - offset);

  span[0] = first[0] & ~(GPU_TILE_ALIGNMENT - 1);
  span[1] = last[0] + last[1];
}

/* How many samples of the source a tile of @n groups takes at most, if what it takes begins at a multiple of
 * @alignment. */
static uint32_t
longest_span (const GpuFilterTable *table, uint32_t offset, const GpuTileGroups *groups, uint32_t n, uint32_t alignment)
{
  const uint32_t end = groups->first + groups->n;
  uint32_t longest = 0;

  for (uint32_t group = groups->first; group < end; group += n - group % n) {
    int32_t first[2], last[2];

    find_span (table, offset, group, first);
    find_span (table, offset, MIN (group + n - group % n, end) - 1, last);
    longest = MAX (longest, (uint32_t)last[1] - ((uint32_t)first[0] & ~(alignment - 1)));
  }
  return longest;
}

static bool
plan_groups (const GpuFilterTable *table, uint32_t offset, GpuTileGroups *groups)
{
  groups->first = offset / GPU_TILE_GROUP;
  groups->n = (offset + table->out - 1) / GPU_TILE_GROUP - groups->first + 1;
  if (groups->n > MAX_STEPS)
    return false;
  groups->steps = (longest_span (table, offset, groups, 1, GPU_TILE_ALIGNMENT) - 1) / GPU_TILE_STEP + 1;
  return groups->steps <= MAX_STEPS / groups->n;
}

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

  if (!plan_groups (across, left, &plan->x) || !plan_groups (down, top, &plan->y))
    return false;
  /* Beyond its samples a step may look at what comes next. */
  const uint64_t beyond = (uint64_t)MAX (plan->x.steps, plan->y.steps) * (GPU_TILE_STEP / 4);
  for (unsigned i = 0; i < G_N_ELEMENTS (shapes); i++) {
    const uint32_t pixels = longest_span (across, left, &plan->x, 1u << shapes[i].shift, unit);
    const uint32_t rows = longest_span (down, top, &plan->y, shapes[i].height / GPU_TILE_GROUP, GPU_TILE_ALIGNMENT);
    const uint32_t all = round_up (rows, GPU_TILE_LINES);

    if ((width - 1) / (GPU_TILE_GROUP << shapes[i].shift) >= GPU_TILE_MAX_ACROSS)
      break;
    plan->shift = shapes[i].shift;
    plan->height = shapes[i].height;
    plan->line_words = round_up (round_up (pixels, unit) / 4 + 2, 4) - 2;
    plan->column_words = all / 4 + 3;
    const uint64_t taken = (uint64_t)GPU_TILE_SIZE * bytes * plan->column_words + beyond;
    if (taken >= GPU_TILE_WORDS)
      continue;
    const uint64_t lines = (GPU_TILE_WORDS - taken) / bytes / plan->line_words;
    plan->chunk = MIN (all, (uint32_t)lines / GPU_TILE_LINES * GPU_TILE_LINES);
    if (plan->chunk)
      return true;
  }
  return false;
}

size_t
gpu_tile_table_size (const GpuTileGroups *groups)
{
  return gpu_tile_weights_at (groups) + (size_t)groups->n * groups->steps * GPU_TILE_STEP_WORDS;
}

size_t
gpu_tile_weights_at (const GpuTileGroups *groups)
{
  return ((size_t)groups->n * 2 + SPAN_ALIGNMENT - 1) / SPAN_ALIGNMENT * SPAN_ALIGNMENT;
}

/* Puts a weight for sample @k of a group's span where the product of matrices takes it from. */
static void
put_weight (uint8_t *group, uint32_t sample, uint32_t k, int32_t weight)
{
  const uint32_t step = k / GPU_TILE_STEP, word = k % GPU_TILE_STEP / 16, lane = sample * 4 + k % 16 / 4;

  /* Less than 2: the sum of a sample's weights is 1, and those that are negative are small. */
  g_assert (weight > -(1 << 23) + (1 << 15) && weight < (1 << 23) - (1 << 15));
  for (unsigned digit = 0; digit < GPU_TILE_DIGITS; digit++) {
    const int32_t value = (int8_t)(weight & 0xff);

    group[(((size_t)step * GPU_TILE_DIGITS + digit) * 64 + lane * 2 + word) * 4 + k % 4] = (uint8_t)value;
    weight = (weight - value) / 256;
  }
}

void
gpu_tile_make_table (const GpuFilterTable *table, uint32_t offset, const GpuTileGroups *groups, int32_t *out)
{
  const size_t group_bytes = (size_t)groups->steps * GPU_TILE_STEP_WORDS * 4;
  uint8_t *weights = (uint8_t *)(out + gpu_tile_weights_at (groups));

  memset (out, 0, gpu_tile_table_size (groups) * sizeof *out);
  for (uint32_t i = 0; i < groups->n; i++)
    find_span (table, offset, groups->first + i, out + 2 * i);
  for (uint32_t i = 0; i < table->out; i++) {
    const uint32_t group = (offset + i) / GPU_TILE_GROUP - groups->first;
    const int32_t *numbers = entry (table, i);

    for (int32_t k = 0; k < numbers[1]; k++)
      put_weight (weights + group * group_bytes, (offset + i) % GPU_TILE_GROUP,
                  (uint32_t)(numbers[0] + k - out[2 * group]), numbers[2 + k]);
  }
}
