/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Wrapped memory goes back to its owner (rules 1 and 11): at once if every access is complete, else from one release
 * thread a device, woken by calls that the accesses' streams make. The owner may be a bounded pool that is unable to
 * go on until then, so nobody's next call can be waited for.
 */
#include "cache-priv.h"

struct GpuReleaser {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t woken;
  GpuList waiting;      /* streams have not said yet that they are done */
  GpuAllocation *ready; /* every access is complete */
  bool stop;
  bool detached; /* stopped from its own thread, which frees it */
};

static void
releaser_free (GpuReleaser *releaser)
{
  pthread_cond_destroy (&releaser->woken);
  pthread_mutex_destroy (&releaser->lock);
  g_free (releaser);
}

/* Calls the owner, with none of our locks held. */
static void
hand_back (GpuAllocation *allocation)
{
  GpuReleaseFunc release = allocation->release;
  void *user_data = allocation->user_data;
  gpu_allocation_recycle (allocation->device->cache, allocation);
  gpu_locks_check_none ();
  if (release)
    release (user_data);
}

/* Hands one back if there is one; the lock is held, and let go of meanwhile. */
static bool
hand_back_ready (GpuReleaser *releaser)
{
  GpuAllocation *allocation = releaser->ready;
  if (!allocation)
    return false;
  releaser->ready = allocation->next;
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
  hand_back (allocation); /* may drop the last reference to the device, and with it stop this thread */
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  return true;
}

static void *
run_releaser (void *data)
{
  GpuReleaser *releaser = data;
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  while (!releaser->stop)
    if (!hand_back_ready (releaser) && !releaser->stop)
      pthread_cond_wait (&releaser->woken, &releaser->lock);
  bool detached = releaser->detached;
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
  if (detached)
    releaser_free (releaser);
  return NULL;
}

static GpuReleaser *
releaser_new (void)
{
  GpuReleaser *releaser = g_new0 (GpuReleaser, 1);
  pthread_mutex_init (&releaser->lock, NULL);
  pthread_cond_init (&releaser->woken, NULL);
  int failure = pthread_create (&releaser->thread, NULL, run_releaser, releaser);
  if (failure)
    g_error ("no thread for releasing wrapped memory: %s", g_strerror (failure));
  return releaser;
}

/* Nothing of the device's work is left, so that every stream has called, or, if it is lost, none will any more. */
static void
hand_back_all (GpuReleaser *releaser, bool lost)
{
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  for (;;) {
    GpuLink *link = releaser->waiting.first;
    if (hand_back_ready (releaser))
      continue;
    if (!link)
      break;
    if (!lost) {
      pthread_cond_wait (&releaser->woken, &releaser->lock);
      continue;
    }
    gpu_list_remove (&releaser->waiting, link);
    gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
    hand_back (gpu_container (link, GpuAllocation, by_slot));
    gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  }
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
}

static void
stop (GpuReleaser *releaser)
{
  bool own = pthread_equal (releaser->thread, pthread_self ());
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  releaser->stop = true;
  releaser->detached = own;
  pthread_cond_broadcast (&releaser->woken);
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
  if (own) {
    pthread_detach (releaser->thread);
    return;
  }
  pthread_join (releaser->thread, NULL);
  releaser_free (releaser);
}

void
gpu_cache_release_all_wrapped (GpuCache *cache)
{
  GpuDevice *device = cache->device;
  bool settled = device->funcs->synchronize (device, NULL);
  if (cache->releaser) {
    hand_back_all (cache->releaser, !settled);
    stop (cache->releaser);
    cache->releaser = NULL;
  }
  for (GpuAllocation *allocation = cache->abandoned, *next; allocation; allocation = next) {
    next = allocation->next;
    hand_back (allocation);
  }
  cache->abandoned = NULL;
}

/* One of the streams came to where the allocation is not used any more. Called by the device: only wakes. */
static void
on_complete (void *data)
{
  GpuAllocation *allocation = data;
  if (atomic_fetch_sub (&allocation->calls_left, 1) != 1)
    return;
  GpuReleaser *releaser = allocation->device->cache->releaser;
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  gpu_list_remove (&releaser->waiting, &allocation->by_slot);
  allocation->next = releaser->ready;
  releaser->ready = allocation;
  pthread_cond_broadcast (&releaser->woken);
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
}

/* Nobody can say any more when the allocation is complete (rule 24): its owner gets it back when the device goes. */
static void
abandon (GpuCache *cache, GpuAllocation *allocation)
{
  GpuReleaser *releaser = cache->releaser;
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  gpu_list_remove (&releaser->waiting, &allocation->by_slot);
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);

  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  allocation->next = cache->abandoned;
  cache->abandoned = allocation;
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
}

/* Has every stream that uses the allocation say when it is done. */
static void
call_when_complete (GpuCache *cache, GpuAllocation *allocation, GArray *points)
{
  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  if (!cache->releaser)
    cache->releaser = releaser_new ();
  GpuReleaser *releaser = cache->releaser;
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);

  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  gpu_list_append (&releaser->waiting, &allocation->by_slot);
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);

  /* One more than there are calls, so that none of them is the last one before all are made. */
  atomic_store (&allocation->calls_left, points->len + 1);
  bool ok = true;
  for (unsigned i = 0; i < points->len; i++)
    ok = gpu_stream_call (&g_array_index (points, GpuPoint, i), on_complete, allocation, NULL) && ok;
  if (ok)
    on_complete (allocation);
  else
    abandon (cache, allocation);
}

void
gpu_release_wrapped (GpuAllocation *allocation)
{
  GpuDevice *device = allocation->device;
  g_autoptr (GArray) points = g_array_new (false, false, sizeof (GpuPoint));
  gpu_history_list_pending (&allocation->history, points);

  bool complete = true;
  for (unsigned i = 0; i < points->len && complete; i++)
    complete = gpu_point_query (&g_array_index (points, GpuPoint, i), NULL) == GPU_STATUS_COMPLETE;
  if (complete)
    hand_back (allocation);
  else
    call_when_complete (device->cache, allocation, points);
  for (unsigned i = 0; i < points->len; i++)
    gpu_stream_release (g_array_index (points, GpuPoint, i).stream);
  /* What waits does not keep the device: that waits for its work before it goes. */
  gpu_device_unref (device);
}
