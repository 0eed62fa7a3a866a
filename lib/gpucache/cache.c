/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The cache of a device: acquire and release (rules 3 to 7 and 9). The hot path, an exact match that is ordered on the
 * consumer stream, takes one lock, compares numbers and calls no driver; everything else is further down.
 */
#include "cache-priv.h"

/* Who writes next: nobody that counts if the host does, since it gets the memory complete (rule 5). */
static GpuStream *
consumer (const GpuRequest *request)
{
  return request->host ? NULL : request->stream;
}

void
gpu_cache_begin (GpuAllocation *allocation, GpuStream *stream)
{
  const GpuPoint present = {stream, stream ? gpu_stream_present (stream) : 0};
  gpu_history_set (&allocation->history, &present);
  atomic_store_explicit (&allocation->image.refs, 1, memory_order_relaxed);
}

bool
gpu_cache_reserve (GpuCache *cache, GpuAccount account, uint64_t bytes, bool force)
{
  atomic_fetch_add (&cache->carried[account], bytes);
  uint64_t ceiling = gpu_cache_ceiling (cache, account), now = atomic_load (&cache->bytes[account]);
  do {
    if (!force && (bytes > ceiling || now > ceiling - bytes)) {
      atomic_fetch_sub (&cache->carried[account], bytes);
      return false;
    }
  } while (!atomic_compare_exchange_weak (&cache->bytes[account], &now, now + bytes));
  return true;
}

void
gpu_cache_raise_peak (GpuCache *cache, GpuAccount account)
{
  uint64_t now = atomic_load (&cache->bytes[account]), peak = atomic_load (&cache->peak[account]);
  while (peak < now && !atomic_compare_exchange_weak (&cache->peak[account], &peak, now))
    ;
}

void
gpu_cache_unreserve (GpuCache *cache, GpuAccount account, uint64_t bytes)
{
  atomic_fetch_sub (&cache->bytes[account], bytes);
  atomic_fetch_sub (&cache->carried[account], bytes);
}

/* Exact and ordered, exact and idle, best fit; in this order (rule 7). The scope is locked. */
static GpuAllocation *
take (GpuScope *scope, const GpuRequest *request, size_t most)
{
  GpuAllocation *taken = gpu_scope_take_ordered (scope, request);
  if (!taken)
    taken = gpu_scope_take_idle (scope, request);
  if (!taken)
    taken = gpu_scope_take_fit (scope, request, most);
  return taken;
}

/* What is new, or the shared index gave, goes on in the scope of its user. */
static void
move_to (GpuScope *scope, GpuAllocation *allocation)
{
  gpu_scope_lock (scope);
  gpu_scope_adopt (scope, allocation);
  gpu_scope_count_hit (scope, allocation);
  gpu_scope_unlock (scope);
}

GpuAllocation *
gpu_cache_search (GpuCache *cache, GpuScope *scope, const GpuRequest *request, bool pressure)
{
  size_t need = request->spec->size, ratio = atomic_load_explicit (&cache->fit_ratio, memory_order_relaxed);
  size_t most = pressure || need > SIZE_MAX / ratio ? SIZE_MAX : need * ratio;
  unsigned most_lanes = pressure ? UINT_MAX : POLL_BUDGET;
  GpuAllocation *doomed = NULL;

  gpu_scope_lock (scope);
  gpu_scope_retire (scope, most_lanes, &doomed);
  GpuAllocation *taken = take (scope, request, most);
  if (taken)
    gpu_scope_count_hit (scope, taken);
  gpu_scope_unlock (scope);

  gpu_cache_absorb_orphans (cache);
  GpuScope *shared = cache->shared;
  if (!taken && scope != shared) {
    gpu_scope_lock (shared);
    gpu_scope_retire (shared, most_lanes, &doomed);
    taken = take (shared, request, most);
    if (taken)
      gpu_scope_disown (shared, taken);
    gpu_scope_unlock (shared);
    if (taken)
      move_to (scope, taken);
  }
  gpu_cache_free_chain (cache, doomed, false);
  if (taken)
    gpu_cache_begin (taken, consumer (request));
  return taken;
}

/* The stream that waits where no consumer is named, which may be for long: memory that is allocated where none is named
 * is not to be behind that, so it is not the device's internal one. */
static GpuStream *
get_waiter (GpuCache *cache, GError **error)
{
  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  GpuStream *waiter = cache->waiter;
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
  if (waiter)
    return waiter;

  GpuStream *fresh = gpu_stream_new_internal (cache->device, error);
  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  if (!cache->waiter)
    cache->waiter = g_steal_pointer (&fresh);
  waiter = cache->waiter;
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
  gpu_stream_unref (fresh);
  return waiter;
}

GpuAllocation *
gpu_cache_take_waiting (GpuCache *cache, GpuScope *scope, const GpuRequest *request, GError **error)
{
  if (request->complete)
    return NULL; /* rule 5: stream order never licenses the host */

  gpu_scope_lock (scope);
  GpuAllocation *taken = gpu_scope_take_pending (scope, request);
  if (taken)
    gpu_scope_count_hit (scope, taken);
  gpu_scope_unlock (scope);

  GpuScope *shared = cache->shared;
  if (!taken && scope != shared) {
    gpu_scope_lock (shared);
    taken = gpu_scope_take_pending (shared, request);
    if (taken)
      gpu_scope_disown (shared, taken);
    gpu_scope_unlock (shared);
    if (taken)
      move_to (scope, taken);
  }
  if (!taken)
    return NULL;

  GpuStream *stream = request->stream ? request->stream : get_waiter (cache, error);
  if (!stream || !gpu_history_wait (&taken->history, stream, error)) {
    gpu_cache_release (taken);
    return NULL;
  }
  gpu_cache_begin (taken, stream);
  return taken;
}

static bool
allocate_on_stream (GpuDevice *device, void *native, void *data, GError **error)
{
  GpuAllocation *fresh = data;
  return gpu_device_alloc (device, fresh->kind, fresh->capacity, fresh->alignment, native, &fresh->data, error);
}

bool
gpu_cache_ask_driver (GpuCache *cache, const GpuRequest *request, GpuAllocation *fresh, GError **error)
{
  GpuStream *stream = consumer (request);
  atomic_fetch_add_explicit (&cache->misses[request->account], 1, memory_order_relaxed);
  if (fresh->kind == GPU_MEMORY_STREAM_ORDERED && request->host) {
    if (!gpu_device_alloc_complete (cache->device, fresh->capacity, fresh->alignment, &fresh->data, error))
      return false;
  } else if (fresh->kind == GPU_MEMORY_STREAM_ORDERED) {
    /* The allocation is work on the stream: others may use the memory after a wait for its point. */
    stream = stream ? stream : cache->device->internal;
    if (!gpu_stream_submit (stream, allocate_on_stream, fresh, error))
      return false;
  } else if (!gpu_device_alloc (cache->device, fresh->kind, fresh->capacity, fresh->alignment, NULL, &fresh->data,
                                error)) {
    return false;
  }
  fresh->image.data = fresh->data;
  gpu_cache_begin (fresh, stream);
  /* What was freed and did not suit this request would stay with the device's pool, beyond the limit. */
  if (fresh->kind == GPU_MEMORY_STREAM_ORDERED)
    gpu_cache_trim_to_limit (cache);
  return true;
}

/* Whether @bytes more would not fit even if the device's own pool held nothing besides. */
static bool
is_over_limit (const GpuCache *cache, GpuAccount account, uint64_t bytes)
{
  const uint64_t limit = atomic_load (&cache->limit[account]), now = atomic_load (&cache->bytes[account]);

  return bytes > limit || now > limit - bytes;
}

/* Makes room or finds something to reuse while the limit is in the way (rule 7). Returns: what to reuse, or NULL with
 * the bytes of the request reserved, or NULL with @error set. */
static GpuAllocation *
search_under_pressure (GpuCache *cache, GpuScope *scope, const GpuRequest *request, uint64_t bytes, GError **error)
{
  GpuAccount account = request->account;
  gpu_cache_retire_all (cache);
  /* What the pool held may be long gone: it is asked before that counts as pressure. */
  const bool is_over = is_over_limit (cache, account, bytes);
  GpuAllocation *taken = gpu_cache_search (cache, scope, request, is_over);
  if (taken || gpu_cache_reserve (cache, account, bytes, false))
    return taken;
  if (account == GPU_ACCOUNT_DEVICE && atomic_load (&cache->held[account]) > 0) {
    gpu_cache_measure_held (cache, true);
    if (gpu_cache_reserve (cache, account, bytes, false))
      return NULL;
  }
  if (!is_over) {
    taken = gpu_cache_search (cache, scope, request, true);
    if (taken)
      return taken;
  }

  uint64_t ceiling = gpu_cache_ceiling (cache, account);
  uint64_t counted = atomic_load (&cache->bytes[account]), idle = gpu_cache_idle_bytes (cache, account);
  bool evicting_suffices = bytes <= ceiling && counted - MIN (idle, counted) <= ceiling - bytes;
  if (!evicting_suffices) {
    GError *failure = NULL;
    taken = gpu_cache_take_waiting (cache, scope, request, &failure);
    if (failure)
      g_propagate_error (error, failure);
    if (taken || failure)
      return taken;
  }
  gpu_cache_evict (cache, account, bytes <= ceiling ? ceiling - bytes : 0);
  gpu_cache_reserve (cache, account, bytes, true);
  return NULL;
}

/* The one that a lookup searches (rule 14). */
static GpuScope *
scope_of (GpuCache *cache, const GpuRequest *request)
{
  GpuScope *scope = request->stream ? gpu_stream_scope (request->stream) : NULL;
  return scope ? scope : gpu_thread_scope (cache);
}

GpuAllocation *
gpu_cache_take_ready (GpuCache *cache, const GpuRequest *request)
{
  if (!gpu_device_check (cache->device, NULL))
    return NULL;
  GpuScope *scope = scope_of (cache, request);

  /* What is idle is ordered, too: nothing has to be asked for that (rule 7). */
  gpu_scope_lock (scope);
  GpuAllocation *taken = gpu_scope_take_ordered (scope, request);
  if (!taken)
    taken = gpu_scope_take_idle (scope, request);
  if (taken)
    gpu_scope_count_hit (scope, taken);
  gpu_scope_unlock (scope);
  if (taken)
    gpu_cache_begin (taken, consumer (request));
  return taken;
}

GpuAllocation *
gpu_cache_acquire (GpuCache *cache, const GpuRequest *request, GError **error)
{
  if (!gpu_device_check (cache->device, error))
    return NULL;
  GpuScope *scope = scope_of (cache, request);
  GpuAccount account = request->account;
  gpu_cache_retire (cache, scope, POLL_BUDGET);
  gpu_cache_retire (cache, cache->shared, POLL_BUDGET);
  GpuAllocation *taken = gpu_cache_search (cache, scope, request, false);
  if (taken)
    return taken;

  uint64_t bytes = request->spec->size;
  if (!gpu_cache_reserve (cache, account, bytes, false)) {
    GError *failure = NULL;
    taken = search_under_pressure (cache, scope, request, bytes, &failure);
    if (failure)
      g_propagate_error (error, failure);
    if (taken || failure)
      return taken;
  }

  GpuAllocation *fresh = gpu_allocation_new (cache);
  fresh->kind = request->kind;
  fresh->owned = true;
  fresh->hit = GPU_HIT_NONE;
  fresh->capacity = bytes;
  fresh->alignment = MAX (request->spec->alignment, GPU_DEFAULT_ALIGNMENT);
  fresh->image.spec = *request->spec;

  GError *refusal = NULL;
  bool ok = gpu_cache_ask_driver (cache, request, fresh, &refusal);
  if (!ok && g_error_matches (refusal, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY)) {
    g_clear_error (&refusal);
    ok = gpu_cache_handle_refusal (cache, scope, request, fresh, &taken, &refusal);
  }
  if (!ok)
    g_propagate_error (error, refusal);
  if (!ok || taken) {
    gpu_cache_unreserve (cache, account, bytes);
    gpu_allocation_recycle (cache, fresh);
    return taken;
  }
  gpu_cache_raise_peak (cache, account);
  move_to (scope, fresh);
  return fresh;
}

/* Release */

/* A live allocation whose scope ended goes on in the shared index, which has been counting it since then. */
static GpuScope *
go_home (GpuCache *cache, GpuAllocation *allocation)
{
  GpuScope *scope = allocation->scope;
  gpu_scope_lock (scope);
  if (!scope->ended)
    return scope;

  bool detached = allocation->generation < scope->generation;
  uint64_t generation = scope->shared_generation;
  bool was_last = gpu_scope_unbind (scope, allocation);
  gpu_scope_unlock (scope);
  if (was_last)
    gpu_scope_unref (scope);

  GpuScope *shared = cache->shared;
  gpu_scope_lock (shared);
  gpu_scope_bind (shared, allocation, detached ? 0 : generation);
  if (detached)
    allocation->detached = true;
  return shared;
}

void
gpu_cache_release (GpuAllocation *allocation)
{
  if (!allocation->owned) {
    gpu_release_wrapped (allocation);
    return;
  }

  GpuDevice *device = allocation->device;
  GpuCache *cache = device->cache;
  GpuAccount account = gpu_memory_kind_account (allocation->kind);

  /* The live allocation keeps the device. Once it is filed another thread may take the device down, so what is done
   * after that needs a reference; the hot path does nothing then and touches nothing that threads share. */
  bool busy = false;
  GpuScope *scope;
  for (;;) {
    scope = go_home (cache, allocation);
    bool detached = allocation->detached || allocation->generation < scope->generation;
    bool over = atomic_load_explicit (&cache->bytes[account], memory_order_relaxed) >
                atomic_load_explicit (&cache->limit[account], memory_order_relaxed);
    if (busy || !(over || detached || atomic_load (&cache->orphaned) || atomic_load (&cache->n_leaving) > 0))
      break;
    gpu_scope_unlock (scope);
    gpu_device_ref (device);
    busy = true;
  }

  if (!busy) {
    gpu_scope_put (scope, allocation, NULL);
    gpu_scope_unlock (scope);
    return;
  }

  GpuAllocation *doomed = NULL;
  bool detached = allocation->detached || allocation->generation < scope->generation;
  if (detached)
    gpu_scope_drop (scope, allocation);
  else
    gpu_scope_put (scope, allocation, &doomed);
  gpu_scope_ref (scope);
  gpu_scope_unlock (scope);

  if (detached) {
    gpu_scope_lock (cache->detached);
    gpu_scope_put_detached (cache->detached, allocation, &doomed);
    gpu_scope_unlock (cache->detached);
  }
  gpu_cache_free_chain (cache, doomed, false);
  gpu_cache_shrink (cache, scope);
  gpu_scope_unref (scope);
  gpu_device_unref (device);
}

/* Descriptors */

GpuAllocation *
gpu_allocation_new (GpuCache *cache)
{
  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  GpuAllocation *allocation = cache->spare;
  if (allocation)
    cache->spare = allocation->next;
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);

  if (!allocation) {
    allocation = g_aligned_alloc0 (1, sizeof *allocation, _Alignof(GpuAllocation));
    pthread_mutex_init (&allocation->lock, NULL);
    gpu_history_init (&allocation->history);
    allocation->device = cache->device;
    allocation->image.allocation = allocation;
  }
  allocation->next = NULL;
  return allocation;
}

static void
allocation_free (GpuAllocation *allocation)
{
  gpu_history_clear (&allocation->history);
  pthread_mutex_destroy (&allocation->lock);
  g_aligned_free (allocation);
}

void
gpu_allocation_recycle (GpuCache *cache, GpuAllocation *allocation)
{
  gpu_history_clear (&allocation->history);
  allocation->data = allocation->image.data = NULL;
  allocation->scope = NULL;
  allocation->batch = NULL;
  allocation->leaving = allocation->detached = false;
  allocation->release = NULL;
  allocation->user_data = NULL;

  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  allocation->next = cache->spare;
  cache->spare = allocation;
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
}

GpuImage *
gpu_view_new (GpuCache *cache)
{
  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  GpuImage *view = cache->spare_views;
  if (view)
    cache->spare_views = view->next_spare;
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
  if (!view)
    view = g_new0 (GpuImage, 1);
  atomic_store_explicit (&view->refs, 1, memory_order_relaxed);
  return view;
}

void
gpu_view_recycle (GpuCache *cache, GpuImage *view)
{
  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  view->next_spare = cache->spare_views;
  cache->spare_views = view;
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
}

/* The cache itself: first what streams want of it */

static GpuScope *
new_stream_scope (GpuDevice *device, uint64_t stream_id)
{
  return gpu_scope_new (device->cache, GPU_SCOPE_STREAM, stream_id);
}

static void
end_stream_scope (GpuScope *scope)
{
  gpu_scope_end (scope);
  gpu_scope_unref (scope);
}

static void
on_synchronized (GpuStream *stream)
{
  gpu_cache_tick (gpu_stream_device (stream)->cache, stream);
}

static const GpuStreamHooks stream_hooks = {
    .scope_new = new_stream_scope, .scope_end = end_stream_scope, .synchronized = on_synchronized};

GpuCache *
gpu_cache_new (GpuDevice *device)
{
  GpuCache *cache = g_new0 (GpuCache, 1);
  cache->device = device;
  device->stream_hooks = &stream_hooks;
  cache->scopes = g_ptr_array_new ();
  pthread_mutex_init (&cache->lock, NULL);
  pthread_mutex_init (&cache->refusal_lock, NULL);
  pthread_cond_init (&cache->refusal_ended, NULL);
  atomic_store (&cache->fit_ratio, 4);
  cache->shared = gpu_scope_new (cache, GPU_SCOPE_SHARED, 0);
  cache->detached = gpu_scope_new (cache, GPU_SCOPE_DETACHED, 0);

  uint64_t free_bytes, total_bytes = 0;
  if (!gpu_device_memory_info (device, &free_bytes, &total_bytes, NULL))
    total_bytes = UINT64_MAX;
  atomic_store (&cache->limit[GPU_ACCOUNT_DEVICE], total_bytes / 2);
  atomic_store (&cache->limit[GPU_ACCOUNT_HOST], gpu_cache_default_host_limit ());
  return cache;
}

GPtrArray *
gpu_cache_list_scopes (GpuCache *cache)
{
  GPtrArray *list = g_ptr_array_new_with_free_func ((GDestroyNotify)gpu_scope_unref);
  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  for (unsigned i = 0; i < cache->scopes->len; i++)
    g_ptr_array_add (list, gpu_scope_ref (g_ptr_array_index (cache->scopes, i)));
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
  g_ptr_array_add (list, gpu_scope_ref (cache->shared));
  return list;
}

bool
gpu_cache_is_unused (GpuCache *cache)
{
  uint64_t n_out = 0;
  g_autoptr (GPtrArray) scopes = gpu_cache_list_scopes (cache);
  for (unsigned i = 0; i < scopes->len; i++) {
    GpuScope *scope = g_ptr_array_index (scopes, i);
    gpu_scope_lock (scope);
    n_out += scope->n_out;
    gpu_scope_unlock (scope);
  }
  return n_out == 0;
}

void
gpu_cache_free (GpuCache *cache)
{
  gpu_cache_release_all_wrapped (cache);
  gpu_cache_unpin_all (cache);
  gpu_cache_clear (cache->device, GPU_CACHE_ALL, NULL);

  GPtrArray *scopes = gpu_cache_list_scopes (cache);
  for (unsigned i = 0; i + 1 < scopes->len; i++)
    gpu_scope_end (g_ptr_array_index (scopes, i));
  gpu_thread_scopes_forget (cache, scopes);
  g_ptr_array_unref (scopes);
  gpu_scope_unref (cache->shared);
  gpu_scope_unref (cache->detached);
  gpu_stream_unref (cache->waiter);

  for (GpuAllocation *spare = cache->spare, *next; spare; spare = next) {
    next = spare->next;
    allocation_free (spare);
  }
  for (GpuImage *view = cache->spare_views, *next; view; view = next) {
    next = view->next_spare;
    g_free (view);
  }
  g_ptr_array_unref (cache->scopes);
  pthread_cond_destroy (&cache->refusal_ended);
  pthread_mutex_destroy (&cache->refusal_lock);
  pthread_mutex_destroy (&cache->lock);
  g_free (cache);
}
