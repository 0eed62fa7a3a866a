/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Clocks: what a stream has waited for, as the highest number of each other stream. A clock never changes; a wait
 * replaces the stream's clock by a merged one, and events recorded before keep the old one (rule 21).
 */
#include "stream-priv.h"

/* Streams come and go for as long as a process lives; a clock only remembers those that are likely to matter. */
#define MAX_ENTRIES 64

GpuClock *
gpu_clock_ref (GpuClock *clock)
{
  if (clock)
    atomic_fetch_add_explicit (&clock->refs, 1, memory_order_relaxed);
  return clock;
}

void
gpu_clock_unref (GpuClock *clock)
{
  if (clock && atomic_fetch_sub_explicit (&clock->refs, 1, memory_order_acq_rel) == 1)
    g_free (clock);
}

uint64_t
gpu_clock_get (const GpuClock *clock, uint64_t id)
{
  if (!clock)
    return 0;
  unsigned low = 0, high = clock->n;
  while (low < high) {
    unsigned mid = (low + high) / 2;
    if (clock->entry[mid].id < id)
      low = mid + 1;
    else
      high = mid;
  }
  return low < clock->n && clock->entry[low].id == id ? clock->entry[low].number : 0;
}

/* Appends in order of ids; the highest number of an id counts. */
static void
append (GpuClock *clock, GpuClockEntry entry)
{
  if (clock->n > 0 && clock->entry[clock->n - 1].id == entry.id)
    clock->entry[clock->n - 1].number = MAX (clock->entry[clock->n - 1].number, entry.number);
  else
    clock->entry[clock->n++] = entry;
}

/* What was just waited for, @id, stays in any case. */
static void
forget_past (GpuClock *clock, uint64_t id)
{
  unsigned kept = 0;
  for (unsigned i = 0; i < clock->n; i++)
    if (clock->entry[i].id == id || !gpu_stream_is_past (clock->entry[i].id, clock->entry[i].number))
      clock->entry[kept++] = clock->entry[i];
  clock->n = kept;
}

/* Ids grow, so the lowest are the oldest streams. */
static void
forget_oldest (GpuClock *clock, uint64_t id)
{
  unsigned forget = clock->n - MAX_ENTRIES, kept = 0;
  for (unsigned i = 0; i < clock->n; i++) {
    if (forget && clock->entry[i].id != id)
      forget--;
    else
      clock->entry[kept++] = clock->entry[i];
  }
  clock->n = kept;
}

GpuClock *
gpu_clock_merge (const GpuClock *clock, const GpuClock *other, uint64_t id, uint64_t number, uint64_t self)
{
  const GpuClockEntry point = {id, number};
  const GpuClockEntry *from[3] = {clock ? clock->entry : NULL, other ? other->entry : NULL, &point};
  unsigned left[3] = {clock ? clock->n : 0, other ? other->n : 0, 1};
  GpuClock *merged = g_malloc (sizeof *merged + (left[0] + left[1] + 1) * sizeof merged->entry[0]);
  atomic_init (&merged->refs, 1);
  merged->n = 0;

  for (;;) {
    int lowest = -1;
    for (int i = 0; i < 3; i++)
      if (left[i] && (lowest < 0 || from[i]->id < from[lowest]->id))
        lowest = i;
    if (lowest < 0)
      break;
    if (from[lowest]->id != self)
      append (merged, *from[lowest]);
    from[lowest]++;
    left[lowest]--;
  }

  if (merged->n > MAX_ENTRIES)
    forget_past (merged, id);
  if (merged->n > MAX_ENTRIES)
    forget_oldest (merged, id);
  return merged;
}
