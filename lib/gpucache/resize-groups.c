/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Weights of filters in the order of the products of matrices that a GPU makes of them: see resize-groups.h.
 */
#include "resize-groups.h"

#include "resize-priv.h"

/* Numbers of spans come in multiples of so many, so that weights are where vectors can be. */
#define SPAN_ALIGNMENT 64

/* Steps of all groups: the kernels count their weights in 32 bits. */
#define MAX_STEPS (UINT32_MAX / GPU_GROUP_STEP_WORDS)

static const int32_t *
entry (const GpuFilterTable *table, uint32_t i)
{
  return table->numbers + (size_t)i * (table->taps + 2);
}

/* The first entry of the table of which group @group has a sample. */
static uint32_t
first_entry (const GpuGroups *groups, uint32_t group)
{
  return MAX (group * GPU_GROUP_SIZE / groups->bytes, groups->offset) - groups->offset;
}

/* The first sample of the source that group @group needs, or one a little before it, and the one after the last. */
static void
find_span (const GpuFilterTable *table, const GpuGroups *groups, uint32_t group, int32_t span[2])
{
  const uint32_t end = ((group + 1) * GPU_GROUP_SIZE - 1) / groups->bytes + 1;
  const int32_t *first = entry (table, first_entry (groups, group));
  const int32_t *last = entry (table, MIN (end, groups->offset + table->out) - 1 - groups->offset);
  const int32_t bytes = (int32_t)groups->bytes;
  int32_t base = 0;

  if (groups->together)
    base = entry (table, first_entry (groups, MAX (group - group % groups->together, groups->first)))[0];
  span[0] = base + ((first[0] * bytes - base) & ~((int32_t)groups->unit - 1));
  span[1] = (last[0] + last[1]) * bytes;
}

uint32_t
gpu_groups_longest_span (const GpuFilterTable *table, const GpuGroups *groups, uint32_t n, uint32_t unit)
{
  const uint32_t end = groups->first + groups->n;
  uint32_t longest = 0;

  for (uint32_t group = groups->first; group < end; group += n - group % n) {
    int32_t first[2], last[2];

    find_span (table, groups, group, first);
    find_span (table, groups, MIN (group + n - group % n, end) - 1, last);
    longest = MAX (longest, (uint32_t)last[1] - ((uint32_t)first[0] & ~(unit - 1)));
  }
  return longest;
}

bool
gpu_groups_plan (GpuGroups *groups, const GpuFilterTable *table)
{
  const uint64_t begin = (uint64_t)groups->offset * groups->bytes, end = begin + (uint64_t)table->out * groups->bytes;

  if ((end - begin - 1) / GPU_GROUP_SIZE >= MAX_STEPS || end > UINT32_MAX - GPU_GROUP_SIZE)
    return false;
  const int32_t *last = entry (table, table->out - 1);
  if (((int64_t)last[0] + last[1]) * groups->bytes > INT32_MAX)
    return false;
  groups->first = (uint32_t)begin / GPU_GROUP_SIZE;
  groups->n = ((uint32_t)end - 1) / GPU_GROUP_SIZE - groups->first + 1;
  groups->steps = (gpu_groups_longest_span (table, groups, 1, 1) - 1) / GPU_GROUP_STEP + 1;
  return groups->steps <= MAX_STEPS / groups->n;
}

size_t
gpu_groups_table_size (const GpuGroups *groups)
{
  return gpu_groups_weights_at (groups) + (size_t)groups->n * groups->steps * GPU_GROUP_STEP_WORDS;
}

size_t
gpu_groups_weights_at (const GpuGroups *groups)
{
  return ((size_t)groups->n * 2 + SPAN_ALIGNMENT - 1) / SPAN_ALIGNMENT * SPAN_ALIGNMENT;
}

/* Puts a weight for sample @k of a group's span where the product of matrices takes it from. */
static void
put_weight (uint8_t *group, uint32_t sample, uint32_t k, int32_t weight)
{
  const uint32_t step = k / GPU_GROUP_STEP, word = k % GPU_GROUP_STEP / 16, lane = sample * 4 + k % 16 / 4;

  /* Less than 2: the sum of a sample's weights is 1, and those that are negative are small. */
  g_assert (weight > -(1 << 23) + (1 << 15) && weight < (1 << 23) - (1 << 15));
  for (unsigned digit = 0; digit < GPU_GROUP_DIGITS; digit++) {
    const int32_t value = (int8_t)(weight & 0xff);

    group[(((size_t)step * GPU_GROUP_DIGITS + digit) * 64 + lane * 2 + word) * 4 + k % 4] = (uint8_t)value;
    weight = (weight - value) / 256;
  }
}

void
gpu_groups_make_table (const GpuGroups *groups, const GpuFilterTable *table, int32_t *out)
{
  const size_t group_bytes = (size_t)groups->steps * GPU_GROUP_STEP_WORDS * 4;
  const uint32_t bytes = groups->bytes;
  uint8_t *weights = (uint8_t *)(out + gpu_groups_weights_at (groups));

  memset (out, 0, gpu_groups_table_size (groups) * sizeof *out);
  for (uint32_t i = 0; i < groups->n; i++)
    find_span (table, groups, groups->first + i, out + 2 * i);
  for (uint32_t i = groups->offset * bytes; i < (groups->offset + table->out) * bytes; i++) {
    const uint32_t group = i / GPU_GROUP_SIZE - groups->first;
    const int32_t *numbers = entry (table, i / bytes - groups->offset);

    for (int32_t k = 0; k < numbers[1]; k++) {
      const uint32_t sample = (uint32_t)(numbers[0] + k) * bytes + i % bytes - (uint32_t)out[2 * group];

      put_weight (weights + group * group_bytes, i % GPU_GROUP_SIZE,
                  groups->together ? gpu_group_interleaved (sample) : sample, numbers[2 + k]);
    }
  }
}
