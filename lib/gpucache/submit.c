/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Accesses: what is submitted on an image waits for what it conflicts with, and is entered in its history
 * (rules 19 to 22).
 */
#include "cache-priv.h"
#include "image-priv.h"

/* The accesses that conflict and are not ordered on @stream, held; NULL if there are none, which costs nothing. */
static GArray *
list_conflicts (GpuAllocation *allocation, GpuStream *stream, GpuAccessFlags flags)
{
  GArray *conflicts = NULL;
  gpu_lock (&allocation->lock, GPU_LOCK_ALLOCATION);
  const GpuHistory *history = &allocation->history;
  for (unsigned i = 0; i < gpu_history_n_points (history, flags); i++) {
    if (gpu_stream_is_ordered (stream, gpu_history_point (history, flags, i)))
      continue;
    if (!conflicts)
      conflicts = g_array_new (false, false, sizeof (GpuPoint));
    const GpuPoint held = gpu_point_hold (gpu_history_point (history, flags, i));
    g_array_append_val (conflicts, held);
  }
  gpu_unlock (&allocation->lock, GPU_LOCK_ALLOCATION);
  return conflicts;
}

static bool
check_device (const GpuImage *image, GpuStream *stream, GError **error)
{
  if (image->allocation->device == gpu_stream_device (stream))
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "the image is in memory of %s and the stream is %s's; copy the image to that device first",
               gpu_device_name (image->allocation->device), gpu_device_name (gpu_stream_device (stream)));
  return false;
}

static bool
wait_for_others (GpuImage *image, GpuStream *stream, GpuAccessFlags flags, GError **error)
{
  /* Each is waited for once: a clock is bounded, so asking again what is ordered might never end. */
  GArray *conflicts = list_conflicts (image->allocation, stream, flags);
  bool ok = true;
  for (unsigned i = 0; conflicts && i < conflicts->len; i++) {
    GpuPoint *conflict = &g_array_index (conflicts, GpuPoint, i);
    ok = ok && gpu_stream_wait_point (stream, conflict, NULL, error);
    gpu_stream_release (conflict->stream);
  }
  if (conflicts)
    g_array_unref (conflicts);
  return ok;
}

/* Whichever device the accesses were made on. */
static inline bool
wait_for_conflicts (GpuImage *image, GpuStream *stream, GpuAccessFlags flags, GError **error)
{
  return gpu_history_is_on (&image->allocation->history, stream) || wait_for_others (image, stream, flags, error);
}

/* The stream's device has been checked. */
static bool
begin (GpuImage *image, GpuStream *stream, GpuAccessFlags flags, GError **error)
{
  return check_device (image, stream, error) && wait_for_conflicts (image, stream, flags, error);
}

bool
gpu_image_begin_access (GpuImage *image, GpuStream *stream, GpuAccessFlags flags, GError **error)
{
  g_return_val_if_fail (image != NULL && stream != NULL && flags != 0, false);

  return gpu_device_check (gpu_stream_device (stream), error) && begin (image, stream, flags, error);
}

/* Enters an access; an event goes with it where rule 22 says so, if another device's cache will ask for it, and to
 * wrapped memory: its owner waits for each point (rule 11), and is not to wait for what the stream does after it. */
static bool
enter (GpuImage *image, GpuStream *stream, uint64_t number, GpuAccessFlags flags, GError **error)
{
  GpuAllocation *allocation = image->allocation;
  const GpuPoint point = {stream, number};
  GpuPoint last;
  gpu_lock (&allocation->lock, GPU_LOCK_ALLOCATION);
  gpu_history_add (&allocation->history, &point, flags);
  bool mark = !allocation->owned || gpu_stream_is_foreign (stream) ||
              gpu_stream_device (stream) != allocation->device ||
              (!gpu_history_is_on (&allocation->history, stream) &&
               gpu_history_kind (&allocation->history, &last) == GPU_HISTORY_MIXED);
  gpu_unlock (&allocation->lock, GPU_LOCK_ALLOCATION);
  return !mark || gpu_stream_mark (stream, error);
}

bool
gpu_image_end_access (GpuImage *image, GpuStream *stream, GpuAccessFlags flags, GError **error)
{
  g_return_val_if_fail (image != NULL && stream != NULL && flags != 0, false);
  g_return_val_if_fail (image->allocation->device == gpu_stream_device (stream), false);

  bool ok = enter (image, stream, gpu_stream_advance (stream), flags, error);
  gpu_cache_tick (gpu_stream_device (stream)->cache, stream);
  return ok;
}

/* For the whole device, and for streams of others that were named: nothing of theirs may meet the next owner's work. */
static bool
wait_for_export (GpuImage *image, GpuStream *const *streams, unsigned n_streams, GError **error)
{
  bool ok = gpu_device_synchronize (image->allocation->device, error);
  for (unsigned i = 0; i < n_streams; i++)
    ok = gpu_stream_synchronize (streams[i], ok ? error : NULL) && ok;
  return ok;
}

bool
gpu_image_end_export (GpuImage *image, GpuStream *const *streams, unsigned n_streams, GpuAccessFlags flags,
                      GError **error)
{
  g_return_val_if_fail (image != NULL && flags != 0 && (streams != NULL || n_streams == 0), false);

  bool ok = true;
  for (unsigned i = 0; i < n_streams && ok; i++)
    ok = check_device (image, streams[i], error);
  if (n_streams == 0 || !ok)
    ok = wait_for_export (image, streams, n_streams, ok ? error : NULL) && ok;
  else
    for (unsigned i = 0; i < n_streams; i++)
      ok = gpu_image_end_access (image, streams[i], flags, ok ? error : NULL) && ok;
  gpu_image_unref (image);
  return ok;
}

/* A lost device's work is never waited for, and its cache hands nothing out again. But memory that it may be using of
 * another device, or of somebody else, must not be used again before it has gone (rule 24). */
static void
enter_foreign (GpuStream *stream, GpuImage *const *images, unsigned n, uint64_t number, GpuAccessFlags flags)
{
  for (unsigned i = 0; i < n; i++) {
    const GpuAllocation *allocation = images[i]->allocation;
    if (!allocation->owned || allocation->device != gpu_stream_device (stream))
      enter (images[i], stream, number, flags, NULL);
  }
}

/* Every conflict has been waited for. */
static bool
submit (GpuStream *stream, GpuImage *const *reads, unsigned n_reads, GpuImage *const *writes, unsigned n_writes,
        GpuSubmitFunc func, void *data, GError **error)
{
  uint64_t number = gpu_stream_submit (stream, func, data, error);
  bool ok = number != 0;
  if (!ok) {
    /* Refused halfway: what was submitted before that runs all the same. */
    number = gpu_stream_advance (stream);
    if (gpu_device_is_lost (gpu_stream_device (stream))) {
      enter_foreign (stream, reads, n_reads, number, GPU_ACCESS_READ);
      enter_foreign (stream, writes, n_writes, number, GPU_ACCESS_WRITE);
      return false;
    }
  }
  for (unsigned i = 0; i < n_reads; i++)
    ok = enter (reads[i], stream, number, GPU_ACCESS_READ, ok ? error : NULL) && ok;
  for (unsigned i = 0; i < n_writes; i++)
    ok = enter (writes[i], stream, number, GPU_ACCESS_WRITE, ok ? error : NULL) && ok;
  gpu_cache_tick (gpu_stream_device (stream)->cache, stream);
  return ok;
}

bool
gpu_images_submit (GpuStream *stream, GpuImage *const *reads, unsigned n_reads, GpuImage *const *writes,
                   unsigned n_writes, GpuSubmitFunc func, void *data, GError **error)
{
  if (!gpu_device_check (gpu_stream_device (stream), error))
    return false;
  for (unsigned i = 0; i < n_reads; i++)
    if (!begin (reads[i], stream, GPU_ACCESS_READ, error))
      return false;
  for (unsigned i = 0; i < n_writes; i++)
    if (!begin (writes[i], stream, GPU_ACCESS_WRITE, error))
      return false;
  return submit (stream, reads, n_reads, writes, n_writes, func, data, error);
}

bool
gpu_images_cross (GpuStream *stream, GpuImage *src, GpuImage *dst, GpuSubmitFunc func, void *data, GError **error)
{
  GpuDevice *source = src->allocation->device;
  if (!gpu_device_check (source, error) || !wait_for_conflicts (src, stream, GPU_ACCESS_READ, error) ||
      !gpu_image_begin_access (dst, stream, GPU_ACCESS_WRITE, error))
    return false;
  bool ok = submit (stream, &src, 1, &dst, 1, func, data, error);
  /* The source's device may get no other calls: what was let go of there retires here, too (rule 11). */
  if (gpu_cache_is_to_shrink (source->cache))
    gpu_cache_shrink (source->cache, gpu_thread_scope (source->cache));
  return ok;
}

/* An access that has not been observed complete and that the host has to wait for; held. */
static bool
find_pending (GpuAllocation *allocation, GpuAccessFlags flags, GpuPoint *pending)
{
  bool found = false;
  gpu_lock (&allocation->lock, GPU_LOCK_ALLOCATION);
  const GpuHistory *history = &allocation->history;
  for (unsigned i = 0; i < gpu_history_n_points (history, flags) && !found; i++) {
    if (gpu_point_observed (gpu_history_point (history, flags, i)))
      continue;
    *pending = gpu_point_hold (gpu_history_point (history, flags, i));
    found = true;
  }
  gpu_unlock (&allocation->lock, GPU_LOCK_ALLOCATION);
  return found;
}

bool
gpu_image_wait (GpuImage *image, GpuAccessFlags flags, GError **error)
{
  g_return_val_if_fail (image != NULL && flags != 0, false);

  if (!gpu_device_check (image->allocation->device, error))
    return false;
  GpuPoint pending;
  bool ok = true;
  while (ok && find_pending (image->allocation, flags, &pending)) {
    ok = gpu_point_wait (&pending, error);
    gpu_stream_release (pending.stream);
  }
  return ok;
}

bool
gpu_image_is_complete (GpuImage *image, GpuAccessFlags flags)
{
  g_return_val_if_fail (image != NULL && flags != 0, false);

  GpuPoint pending;
  while (find_pending (image->allocation, flags, &pending)) {
    GpuStatus status = gpu_point_query (&pending, NULL);
    gpu_stream_release (pending.stream);
    if (status != GPU_STATUS_COMPLETE)
      return false;
  }
  return true;
}
