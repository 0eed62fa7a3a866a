/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Histories (rule 20): who touched an allocation, as far as somebody may still have to wait for it.
 */
#include "stream-priv.h"

static void
point_set (GpuPoint *point, const GpuPoint *value)
{
  if (point->stream != value->stream) {
    if (value->stream)
      gpu_stream_hold (value->stream);
    if (point->stream)
      gpu_stream_release (point->stream);
    point->stream = value->stream;
  }
  point->number = value->number;
}

static void
set_only (GpuHistory *history, GpuStream *stream)
{
  atomic_store_explicit (&history->only, stream, memory_order_release);
}

/* The last access on the write's stream. */
static const GpuPoint *
last_own (const GpuHistory *history)
{
  return gpu_history_point (history, GPU_ACCESS_WRITE, 0);
}

/* Reads that are left are of other streams. */
static void
set_write (GpuHistory *history, const GpuPoint *write)
{
  history->own_read = (GpuPoint){0};
  bool stays = gpu_history_is_on (history, write->stream);
  /* First of all: the stream that it names may go with the old write, and a new one get its address. */
  if (!stays)
    set_only (history, NULL);
  point_set (&history->write, write);
  if (!stays && history->n_reads == 0)
    set_only (history, write->stream);
}

void
gpu_history_init (GpuHistory *history)
{
  memset (history, 0, sizeof *history);
  history->reads = history->first_reads;
  history->reads_allocated = G_N_ELEMENTS (history->first_reads);
}

static void
drop_reads (GpuHistory *history)
{
  for (unsigned i = 0; i < history->n_reads; i++)
    gpu_stream_release (history->reads[i].stream);
  history->n_reads = 0;
}

void
gpu_history_clear (GpuHistory *history)
{
  const GpuPoint none = {0};
  set_write (history, &none);
  drop_reads (history);
  if (history->reads != history->first_reads)
    g_free (history->reads);
  gpu_history_init (history);
}

void
gpu_history_set (GpuHistory *history, const GpuPoint *write)
{
  drop_reads (history);
  set_write (history, write);
}

static void
append_read (GpuHistory *history, const GpuPoint *point)
{
  if (history->n_reads == history->reads_allocated) {
    unsigned n = history->reads_allocated * 2;
    GpuPoint *reads = g_new (GpuPoint, n);
    memcpy (reads, history->reads, history->n_reads * sizeof *reads);
    if (history->reads != history->first_reads)
      g_free (history->reads);
    history->reads = reads;
    history->reads_allocated = n;
  }
  history->reads[history->n_reads++] = gpu_point_hold (point);
}

/* Drops the reads that nobody has to wait for any more, and with @stream those that are ordered on it. */
static void
prune_reads (GpuHistory *history, GpuStream *stream)
{
  unsigned kept = 0;
  for (unsigned i = 0; i < history->n_reads; i++) {
    GpuPoint *read = &history->reads[i];
    if (gpu_point_observed (read) || (stream && gpu_stream_is_ordered (stream, read)))
      gpu_stream_release (read->stream);
    else
      history->reads[kept++] = *read;
  }
  history->n_reads = kept;
}

void
gpu_history_add (GpuHistory *history, const GpuPoint *point, GpuAccessFlags flags)
{
  if (flags & GPU_ACCESS_WRITE) {
    prune_reads (history, point->stream);
    if (!gpu_stream_is_ordered (point->stream, last_own (history)))
      append_read (history, last_own (history));
    set_write (history, point);
    return;
  }
  if (point->stream == history->write.stream) {
    history->own_read = (GpuPoint){point->stream, MAX (history->own_read.number, point->number)};
    return;
  }
  set_only (history, NULL);
  for (unsigned i = 0; i < history->n_reads; i++)
    if (history->reads[i].stream == point->stream) {
      history->reads[i].number = MAX (history->reads[i].number, point->number);
      return;
    }
  if (history->n_reads == history->reads_allocated)
    prune_reads (history, NULL);
  append_read (history, point);
}

bool
gpu_history_is_ordered (const GpuHistory *history, GpuStream *stream)
{
  for (unsigned i = 0; i < gpu_history_n_points (history, GPU_ACCESS_WRITE); i++)
    if (!gpu_stream_is_ordered (stream, gpu_history_point (history, GPU_ACCESS_WRITE, i)))
      return false;
  return true;
}

bool
gpu_history_observed (const GpuHistory *history)
{
  for (unsigned i = 0; i < gpu_history_n_points (history, GPU_ACCESS_WRITE); i++)
    if (!gpu_point_observed (gpu_history_point (history, GPU_ACCESS_WRITE, i)))
      return false;
  return true;
}

bool
gpu_history_is_reachable (const GpuHistory *history)
{
  for (unsigned i = 0; i < gpu_history_n_points (history, GPU_ACCESS_WRITE); i++) {
    const GpuPoint *point = gpu_history_point (history, GPU_ACCESS_WRITE, i);
    if (point->stream && !gpu_point_is_reachable (point))
      return false;
  }
  return true;
}

GpuHistoryKind
gpu_history_kind (const GpuHistory *history, GpuPoint *last)
{
  GpuPoint found = {0};
  for (unsigned i = 0; i < gpu_history_n_points (history, GPU_ACCESS_WRITE); i++) {
    const GpuPoint *point = gpu_history_point (history, GPU_ACCESS_WRITE, i);
    if (gpu_point_observed (point))
      continue;
    if (found.stream && found.stream != point->stream)
      return GPU_HISTORY_MIXED;
    if (!found.stream || point->number > found.number)
      found = *point;
  }
  if (!found.stream) {
    *last = history->n_reads ? history->reads[history->n_reads - 1] : *last_own (history);
    return GPU_HISTORY_COMPLETE;
  }
  *last = found;
  return GPU_HISTORY_ONE_STREAM;
}

void
gpu_history_list_pending (const GpuHistory *history, GArray *points)
{
  for (unsigned i = 0; i < gpu_history_n_points (history, GPU_ACCESS_WRITE); i++) {
    if (gpu_point_observed (gpu_history_point (history, GPU_ACCESS_WRITE, i)))
      continue;
    const GpuPoint held = gpu_point_hold (gpu_history_point (history, GPU_ACCESS_WRITE, i));
    g_array_append_val (points, held);
  }
}

bool
gpu_history_wait (const GpuHistory *history, GpuStream *stream, GError **error)
{
  for (unsigned i = 0; i < gpu_history_n_points (history, GPU_ACCESS_WRITE); i++)
    if (!gpu_stream_wait_point (stream, gpu_history_point (history, GPU_ACCESS_WRITE, i), NULL, error))
      return false;
  return true;
}
