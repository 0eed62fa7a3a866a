/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Wrapped memory goes back to its owner (rules 1 and 11): at once if every access is complete, else from one release
 * thread a device. The owner may be a bounded pool that is unable to go on until then, so nobody's next call can be
 * waited for: helper streams wait for the accesses' events and call. The accesses' own streams would call too late,
 * after what was submitted to them since, and would stand still meanwhile.
 */
#include "cache-priv.h"

/* A stream that waits for points of another one. */
typedef struct Helper Helper;
struct Helper {
  GpuStream *stream;
  uint64_t id, number; /* the last point that it was made to wait for */
  unsigned n_calls;    /* that have not come yet */
  Helper *next;
};

typedef struct {
  GpuReleaser *releaser;
  GpuAllocation *allocation;
  Helper *helper;
} Call;

struct GpuReleaser {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t woken;
  GpuList waiting; /* calls have not come yet */
  Helper *helpers;
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

/* The allocation's device is lost and about to go, but others may still be reading. */
static void
hand_back_lost (GpuAllocation *allocation)
{
  g_autoptr (GArray) points = g_array_new (false, false, sizeof (GpuPoint));
  gpu_history_list_pending (&allocation->history, points);
  for (unsigned i = 0; i < points->len; i++) {
    GpuPoint *point = &g_array_index (points, GpuPoint, i);
    gpu_point_wait (point, NULL);
    gpu_stream_release (point->stream);
  }
  hand_back (allocation);
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

/* All calls have come. While the device is there: the release thread may end after it. */
static void
drop_helpers (GpuReleaser *releaser)
{
  for (Helper *helper = releaser->helpers, *next; helper; helper = next) {
    next = helper->next;
    gpu_stream_unref (helper->stream);
    g_free (helper);
  }
  releaser->helpers = NULL;
}

/* Nothing of the device's work is left, so that every helper has called, or, if it is lost, none will any more. */
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
    hand_back_lost (gpu_container (link, GpuAllocation, by_slot));
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
  settled = gpu_peers_settle (device) && settled;
  if (cache->releaser) {
    hand_back_all (cache->releaser, !settled);
    drop_helpers (cache->releaser);
    stop (cache->releaser);
    cache->releaser = NULL;
  }
  for (GpuAllocation *allocation = cache->abandoned, *next; allocation; allocation = next) {
    next = allocation->next;
    hand_back_lost (allocation);
  }
  cache->abandoned = NULL;
}

/* An access is complete, or never to be waited for; the lock is held. */
static void
count_down (GpuReleaser *releaser, GpuAllocation *allocation)
{
  if (--allocation->calls_left > 0)
    return;
  gpu_list_remove (&releaser->waiting, &allocation->by_slot);
  allocation->next = releaser->ready;
  releaser->ready = allocation;
  pthread_cond_broadcast (&releaser->woken);
}

/* Called by the device: only wakes. */
static void
on_complete (void *data)
{
  Call *call = data;
  GpuReleaser *releaser = call->releaser;
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  call->helper->n_calls--;
  count_down (releaser, call->allocation);
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
  g_free (call);
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

static GpuReleaser *
get_releaser (GpuCache *cache)
{
  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  if (!cache->releaser)
    cache->releaser = releaser_new ();
  GpuReleaser *releaser = cache->releaser;
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
  return releaser;
}

/* One that has nothing to wait for, or waits for an earlier point of the same stream: it would not call too late. */
static Helper *
find_helper (GpuReleaser *releaser, const GpuPoint *point)
{
  uint64_t id = gpu_stream_id (point->stream);
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  Helper *helper = releaser->helpers;
  while (helper && helper->n_calls > 0 && !(helper->id == id && helper->number <= point->number))
    helper = helper->next;
  if (helper) {
    helper->id = id;
    helper->number = point->number;
    helper->n_calls++;
  }
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
  return helper;
}

/* Returns: a helper that counts one call more; NULL with @error set. */
static Helper *
get_helper (GpuCache *cache, GpuReleaser *releaser, const GpuPoint *point, GError **error)
{
  Helper *helper = find_helper (releaser, point);
  if (helper)
    return helper;
  GpuStream *stream = gpu_stream_new_internal (cache->device, error);
  if (!stream)
    return NULL;
  helper = g_new0 (Helper, 1);
  *helper = (Helper){.stream = stream, .id = gpu_stream_id (point->stream), .number = point->number, .n_calls = 1};
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  helper->next = releaser->helpers;
  releaser->helpers = helper;
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
  return helper;
}

static bool
call_at (GpuCache *cache, GpuReleaser *releaser, const GpuPoint *point, GpuAllocation *allocation)
{
  Helper *helper = get_helper (cache, releaser, point, NULL);
  if (!helper)
    return false;
  Call *call = g_new (Call, 1);
  *call = (Call){releaser, allocation, helper};
  if (gpu_stream_wait_point (helper->stream, point, NULL, NULL) &&
      gpu_stream_call (helper->stream, on_complete, call, NULL))
    return true;
  g_free (call);
  return false;
}

/* Has somebody say when each access is complete. */
static void
call_when_complete (GpuCache *cache, GpuAllocation *allocation, GArray *points)
{
  GpuReleaser *releaser = get_releaser (cache);
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  gpu_list_append (&releaser->waiting, &allocation->by_slot);
  /* One more than there are calls, so that none of them is the last one before all are made. */
  allocation->calls_left = points->len + 1;
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);

  bool ok = true;
  for (unsigned i = 0; i < points->len; i++)
    ok = call_at (cache, releaser, &g_array_index (points, GpuPoint, i), allocation) && ok;
  if (!ok) {
    abandon (cache, allocation);
    return;
  }
  gpu_lock (&releaser->lock, GPU_LOCK_LEAF);
  count_down (releaser, allocation);
  gpu_unlock (&releaser->lock, GPU_LOCK_LEAF);
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
