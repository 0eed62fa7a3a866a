/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * When the driver refuses memory (rule 13). A refusal is pressure: what is idle is given back, then an exact match that
 * is pending will do, then pending work is waited for, until a round frees nothing. One thread of a device does this at
 * a time, since two would free under each other's hands; the others wait for it and use what it freed.
 */
#include "cache-priv.h"

/* A round mostly waits for little. The last one waits for all that is pending, so that it ends in an error only if that
 * was not enough, or if others took what was freed. */
#define MAX_ROUNDS 16

/* Waits until no other thread is at it. */
static void
begin_refusal (GpuCache *cache)
{
  gpu_lock (&cache->refusal_lock, GPU_LOCK_LEAF);
  while (cache->refusal)
    pthread_cond_wait (&cache->refusal_ended, &cache->refusal_lock);
  cache->refusal = true;
  gpu_unlock (&cache->refusal_lock, GPU_LOCK_LEAF);
}

static void
end_refusal (GpuCache *cache)
{
  gpu_lock (&cache->refusal_lock, GPU_LOCK_LEAF);
  cache->refusal = false;
  pthread_cond_broadcast (&cache->refusal_ended);
  gpu_unlock (&cache->refusal_lock, GPU_LOCK_LEAF);
}

/* What is to be waited for in @scope: all that is pending, or the first entries of a few lanes; held. */
static GArray *
list_points (GpuScope *scope, bool all)
{
  GArray *points = g_array_new (false, false, sizeof (GpuPoint));
  gpu_scope_lock (scope);
  if (all) {
    gpu_scope_list_pending (scope, points);
  } else {
    GpuPoint first[8];
    unsigned lanes, n = gpu_scope_pending_points (scope, first, G_N_ELEMENTS (first), &lanes);
    g_array_append_vals (points, first, n);
  }
  gpu_scope_unlock (scope);
  return points;
}

/* Waits on the host for pending entries of every scope, and for what was detached. */
static void
wait_for_pending (GpuCache *cache, bool all)
{
  g_autoptr (GPtrArray) scopes = gpu_cache_list_scopes (cache);
  for (unsigned i = 0; i < scopes->len; i++) {
    g_autoptr (GArray) points = list_points (g_ptr_array_index (scopes, i), all);
    for (unsigned j = 0; j < points->len; j++) {
      GpuPoint *point = &g_array_index (points, GpuPoint, j);
      gpu_point_wait (point, NULL);
      gpu_stream_release (point->stream);
    }
  }
  gpu_cache_wait_detached (cache, NULL);
}

/* Asks once more, for what has been freed since. Returns: whether the matter is decided: memory, or an error
 * other than another refusal, which is put into @refused. */
static bool
ask_again (GpuCache *cache, const GpuRequest *request, GpuAllocation *fresh, bool *ok, GError **refused, GError **error)
{
  GError *refusal = NULL;
  gpu_cache_trim (cache);
  atomic_fetch_add_explicit (&cache->oom_retries[request->account], 1, memory_order_relaxed);
  *ok = gpu_cache_ask_driver (cache, request, fresh, &refusal);
  if (*ok)
    return true;
  if (!g_error_matches (refusal, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY)) {
    g_propagate_error (error, refusal);
    return true;
  }
  g_clear_error (refused);
  *refused = refusal;
  return false;
}

/* @refused: the driver's last answer */
static void
set_final_error (GpuCache *cache, const GpuRequest *request, const GError *refused, GError **error)
{
  GpuDevice *device = cache->device;
  const GpuImageSpec *spec = request->spec;
  bool pinned = request->kind == GPU_MEMORY_HOST;
  uint64_t free_bytes = 0, total_bytes = 0;
  gpu_device_memory_info (device, &free_bytes, &total_bytes, NULL);
  g_set_error (
      error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY,
      "%s; device %s refused %zu bytes of %s memory for a %s of %ux%u although everything idle was given back: "
      "%" G_GUINT64_FORMAT " bytes are counted, the cache limit is %" G_GUINT64_FORMAT
      ", the device has %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
      " free; use smaller frames or keep fewer of them alive%s",
      refused->message, device->name, spec->size, pinned ? "pinned host" : gpu_memory_kind_name (request->kind),
      gpu_format_info (spec->format)->name, spec->width, spec->height,
      (uint64_t)atomic_load (&cache->bytes[request->account]) - spec->size,
      (uint64_t)atomic_load (&cache->limit[request->account]), free_bytes, total_bytes,
      /* Of that the system lets a process lock only so much. */
      pinned ? ", or let the process lock more memory" : "");
}

bool
gpu_cache_handle_refusal (GpuCache *cache, GpuScope *scope, const GpuRequest *request, GpuAllocation *fresh,
                          GpuAllocation **reused, GError **error)
{
  g_autoptr (GError) refused = NULL;
  bool ok = false;
  begin_refusal (cache);
  for (unsigned round = 0;; round++) {
    uint64_t frees = atomic_load (&cache->n_frees);
    gpu_cache_retire_all (cache);
    *reused = gpu_cache_search (cache, scope, request, true);
    if (*reused) {
      ok = true;
      break;
    }
    gpu_cache_evict (cache, request->account, 0);
    if ((round == 0 || atomic_load (&cache->n_frees) != frees) &&
        ask_again (cache, request, fresh, &ok, &refused, error))
      break;

    GError *failure = NULL;
    *reused = gpu_cache_take_waiting (cache, scope, request, &failure);
    if (failure)
      g_propagate_error (error, failure);
    if (*reused || failure) {
      ok = *reused != NULL;
      break;
    }

    /* The end: a round that freed nothing, or so many that others take what is freed. */
    wait_for_pending (cache, round + 1 == MAX_ROUNDS);
    if (!gpu_device_check (cache->device, error))
      break;
    gpu_cache_retire_all (cache);
    bool more = atomic_load (&cache->n_frees) != frees || gpu_cache_idle_bytes (cache, request->account) > 0;
    if (!more || round == MAX_ROUNDS) {
      set_final_error (cache, request, refused, error);
      break;
    }
  }
  end_refusal (cache);
  return ok;
}
