/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * When the driver refuses memory (rule 13). A refusal is pressure: what is idle is given back, then an exact match that
 * is pending will do, then pending work is waited for, until a round frees nothing. One thread of a device does this at
 * a time, since two would free under each other's hands; the others wait for it and use what it freed.
 */
#include "cache-priv.h"

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

/* Waits on the host for the first pending entry of each lane of every scope, and for what was detached. */
static void
wait_for_pending (GpuCache *cache)
{
  g_autoptr (GPtrArray) scopes = gpu_cache_list_scopes (cache);
  for (unsigned i = 0; i < scopes->len; i++) {
    GpuScope *scope = g_ptr_array_index (scopes, i);
    GpuPoint points[8];
    unsigned lanes;
    gpu_scope_lock (scope);
    unsigned n = gpu_scope_pending_points (scope, points, G_N_ELEMENTS (points), &lanes);
    gpu_scope_unlock (scope);
    for (unsigned j = 0; j < n; j++) {
      gpu_point_wait (&points[j], NULL);
      gpu_stream_release (points[j].stream);
    }
  }
  gpu_cache_wait_detached (cache, NULL);
}

/* Asks once more, for what has been freed since. Returns: whether the matter is decided: memory, or an error
 * other than another refusal. */
static bool
ask_again (GpuCache *cache, const GpuRequest *request, GpuAllocation *fresh, bool *ok, GError **error)
{
  GError *refusal = NULL;
  gpu_device_trim (cache->device);
  atomic_fetch_add_explicit (&cache->oom_retries[request->account], 1, memory_order_relaxed);
  *ok = gpu_cache_ask_driver (cache, request, fresh, &refusal);
  if (*ok)
    return true;
  if (!g_error_matches (refusal, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY)) {
    g_propagate_error (error, refusal);
    return true;
  }
  g_error_free (refusal);
  return false;
}

static void
set_final_error (GpuCache *cache, const GpuRequest *request, GError **error)
{
  GpuDevice *device = cache->device;
  uint64_t free_bytes = 0, total_bytes = 0;
  gpu_device_memory_info (device, &free_bytes, &total_bytes, NULL);
  g_set_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY,
               "%s refused %zu bytes of %s memory although everything idle was given back: %" G_GUINT64_FORMAT
               " bytes are counted, the cache limit is %" G_GUINT64_FORMAT ", the device has %" G_GUINT64_FORMAT
               " of %" G_GUINT64_FORMAT " free; keep fewer or smaller frames alive",
               device->name, request->spec->size, gpu_memory_kind_name (request->kind),
               (uint64_t)atomic_load (&cache->bytes[request->account]) - request->spec->size,
               (uint64_t)atomic_load (&cache->limit[request->account]), free_bytes, total_bytes);
}

bool
gpu_cache_handle_refusal (GpuCache *cache, GpuScope *scope, const GpuRequest *request, GpuAllocation *fresh,
                          GpuAllocation **reused, GError **error)
{
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
    if ((round == 0 || atomic_load (&cache->n_frees) != frees) && ask_again (cache, request, fresh, &ok, error))
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
    wait_for_pending (cache);
    if (!gpu_device_check (cache->device, error))
      break;
    gpu_cache_retire_all (cache);
    bool more = atomic_load (&cache->n_frees) != frees || gpu_cache_idle_bytes (cache, request->account) > 0;
    if (!more || round == MAX_ROUNDS) {
      set_final_error (cache, request, error);
      break;
    }
  }
  end_refusal (cache);
  return ok;
}
