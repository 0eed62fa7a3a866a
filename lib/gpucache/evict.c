/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What leaves the cache, and when (rules 10 to 12): retirement by bounded polling, eviction of the least recently used
 * across all scopes, and clearing. The driver is called with no lock held: entries leave their scope first.
 */
#include "cache-priv.h"

#define POINTS_AT_ONCE 8

static void
free_memory (GpuCache *cache, GpuAllocation *allocation)
{
  GError *error = NULL;
  atomic_fetch_add_explicit (&cache->n_frees, 1, memory_order_relaxed);
  /* Rule 6: the driver may wait for the device to free what is not stream-ordered. */
  if (allocation->kind != GPU_MEMORY_STREAM_ORDERED)
    atomic_fetch_add_explicit (&cache->device->host_waits, 1, memory_order_relaxed);
  if (!gpu_device_free_idle (cache->device, allocation->kind, allocation->data, allocation->capacity, &error)) {
    /* A lost device takes no calls, and its memory goes with it. */
    if (gpu_device_is_lost (cache->device))
      gpu_device_abandon (cache->device, allocation->kind, allocation->data, allocation->capacity);
    else
      g_warning ("%s: %zu bytes could not be freed: %s", cache->device->name, allocation->capacity, error->message);
    g_error_free (error);
  }
}

/* Its memory is not there any more: what was live at a clear has left the count before (rule 12). */
static void
forget (GpuCache *cache, GpuAllocation *allocation)
{
  GpuAccount account = gpu_memory_kind_account (allocation->kind);
  uint64_t capacity = allocation->capacity;
  bool detached = allocation->detached;
  gpu_allocation_recycle (cache, allocation);
  if (detached) {
    atomic_fetch_sub (&cache->detached_bytes[account], capacity);
    return;
  }
  atomic_fetch_sub (&cache->bytes[account], capacity);
  atomic_fetch_sub (&cache->carried[account], capacity);
}

static bool
has_detached (GpuCache *cache)
{
  gpu_scope_lock (cache->detached);
  bool has = cache->detached->n_pending_lanes > 0;
  gpu_scope_unlock (cache->detached);
  return has;
}

void
gpu_cache_trim (GpuCache *cache)
{
  atomic_store (&cache->has_freed, false);
  if (gpu_device_wait_for_frees (cache->device))
    atomic_store (&cache->held[GPU_ACCOUNT_DEVICE], gpu_device_trim (cache->device, 0));
}

void
gpu_cache_measure_held (GpuCache *cache, bool in_the_way)
{
  const uint64_t limit = atomic_load (&cache->limit[GPU_ACCOUNT_DEVICE]), share = limit / GPU_CACHE_HELD_SHARE;
  uint64_t held = gpu_device_trim (cache->device, in_the_way ? 0 : limit - share);
  /* Among that may be pieces that are wholly free, and that the pool may keep; frames of other kinds may have taken
   * their place under the limit. */
  if (held > share && !in_the_way)
    held = gpu_device_trim (cache->device, 0);
  atomic_store (&cache->held[GPU_ACCOUNT_DEVICE], held);
}

void
gpu_cache_trim_to_limit (GpuCache *cache)
{
  if (!atomic_load (&cache->has_freed) && !atomic_load (&cache->device->freed_is_due))
    return;
  if (!gpu_device_see_frees (cache->device, atomic_exchange (&cache->has_freed, false)))
    return;
  gpu_cache_measure_held (cache, false);
  gpu_cache_evict (cache, GPU_ACCOUNT_DEVICE, gpu_cache_ceiling (cache, GPU_ACCOUNT_DEVICE));
}

void
gpu_cache_free_chain (GpuCache *cache, GpuAllocation *chain, bool evicted)
{
  bool detached = false;
  for (GpuAllocation *allocation = chain, *next; allocation; allocation = next) {
    next = allocation->next;
    if (evicted)
      atomic_fetch_add_explicit (&cache->evictions[gpu_memory_kind_account (allocation->kind)], 1,
                                 memory_order_relaxed);
    detached |= allocation->detached;
    const bool stays_with_pool = allocation->kind == GPU_MEMORY_STREAM_ORDERED;
    free_memory (cache, allocation);
    /* After it: a trim that comes in between takes the mark away, and would not have seen the memory. */
    if (stays_with_pool)
      atomic_store (&cache->has_freed, true);
    forget (cache, allocation);
  }
  if (detached && !has_detached (cache))
    gpu_cache_trim (cache); /* rule 10: after a clear other processes get the memory */
}

void
gpu_cache_retire (GpuCache *cache, GpuScope *scope, unsigned budget)
{
  unsigned stale = 0; /* lanes looked at since something was complete */
  while (budget > 0) {
    GpuPoint points[POINTS_AT_ONCE];
    unsigned lanes;
    gpu_scope_lock (scope);
    unsigned all = scope->n_pending_lanes;
    unsigned n = gpu_scope_pending_points (scope, points, MIN (budget, POINTS_AT_ONCE), &lanes);
    gpu_scope_unlock (scope);

    bool progress = lanes > 0 && n == 0; /* complete already, not retired */
    for (unsigned i = 0; i < n; i++) {
      progress |= gpu_point_query (&points[i], NULL) == GPU_STATUS_COMPLETE;
      gpu_stream_release (points[i].stream);
    }
    budget -= n;

    GpuAllocation *doomed = NULL;
    gpu_scope_lock (scope);
    gpu_scope_retire (scope, lanes, &doomed);
    gpu_scope_unlock (scope);
    gpu_cache_free_chain (cache, doomed, false);

    stale = progress ? 0 : stale + lanes;
    if (stale >= all)
      return;
  }
}

/* The points of the entries in @scope that were used on several streams, which no order relates; held. */
static GArray *
list_mixed_points (GpuScope *scope)
{
  GArray *points = g_array_new (false, false, sizeof (GpuPoint));
  gpu_scope_lock (scope);
  for (GpuLink *link = scope->pending_lanes.first; link; link = link->next) {
    const GpuLane *lane = gpu_container (link, GpuLane, by_scope);
    for (GpuLink *entry = lane->stream ? NULL : lane->pending.first; entry; entry = entry->next)
      gpu_history_list_pending (&gpu_container (entry, GpuAllocation, by_lane)->history, points);
  }
  gpu_scope_unlock (scope);
  return points;
}

void
gpu_cache_retire_all (GpuCache *cache)
{
  gpu_cache_absorb_orphans (cache);
  g_autoptr (GPtrArray) scopes = gpu_cache_list_scopes (cache);
  g_ptr_array_add (scopes, gpu_scope_ref (cache->detached));
  for (unsigned i = 0; i < scopes->len; i++) {
    GpuScope *scope = g_ptr_array_index (scopes, i);
    GArray *points = list_mixed_points (scope);
    for (unsigned j = 0; j < points->len; j++) {
      GpuPoint *point = &g_array_index (points, GpuPoint, j);
      gpu_point_query (point, NULL);
      gpu_stream_release (point->stream);
    }
    g_array_unref (points);

    GpuAllocation *doomed = NULL;
    gpu_scope_lock (scope);
    gpu_scope_retire (scope, UINT_MAX, &doomed);
    gpu_scope_unlock (scope);
    gpu_cache_free_chain (cache, doomed, false);
    gpu_cache_retire (cache, scope, UINT_MAX);
  }
}

uint64_t
gpu_cache_idle_bytes (GpuCache *cache, GpuAccount account)
{
  uint64_t bytes = 0;
  g_autoptr (GPtrArray) scopes = gpu_cache_list_scopes (cache);
  for (unsigned i = 0; i < scopes->len; i++) {
    GpuScope *scope = g_ptr_array_index (scopes, i);
    gpu_scope_lock (scope);
    bytes += scope->counts[account].bytes[GPU_ENTRY_IDLE];
    gpu_scope_unlock (scope);
  }
  return bytes;
}

/* Merges the scopes' ages by their heads, one lock at a time. */
static GpuScope *
scope_of_oldest (GPtrArray *scopes, GpuAccount account)
{
  GpuScope *found = NULL;
  uint64_t oldest = UINT64_MAX;
  for (unsigned i = 0; i < scopes->len; i++) {
    GpuScope *scope = g_ptr_array_index (scopes, i);
    gpu_scope_lock (scope);
    const GpuTreeNode *node = gpu_tree_first (&scope->age[account]);
    if (node && gpu_container (node, GpuAllocation, by_age)->stamp < oldest) {
      oldest = gpu_container (node, GpuAllocation, by_age)->stamp;
      found = scope;
    }
    gpu_scope_unlock (scope);
  }
  return found;
}

void
gpu_cache_evict (GpuCache *cache, GpuAccount account, uint64_t target)
{
  if (atomic_load (&cache->bytes[account]) <= target)
    return;
  gpu_cache_absorb_orphans (cache);
  g_autoptr (GPtrArray) scopes = gpu_cache_list_scopes (cache);
  GpuScope *scope;
  while (atomic_load (&cache->bytes[account]) > target && (scope = scope_of_oldest (scopes, account))) {
    gpu_scope_lock (scope);
    GpuAllocation *oldest = gpu_scope_remove_oldest (scope, account);
    gpu_scope_unlock (scope);
    gpu_cache_free_chain (cache, oldest, true);
  }
}

void
gpu_cache_settle (GpuCache *cache, GpuAccount account)
{
  uint64_t limit = atomic_load (&cache->limit[account]);
  gpu_cache_evict (cache, account, limit);
  if (atomic_load (&cache->trim_due[account]) && atomic_load (&cache->bytes[account]) <= limit &&
      atomic_exchange (&cache->trim_due[account], false))
    gpu_cache_trim (cache);
}

/* Threads that do nothing do not retire what is in their scopes: whoever does something looks at one of those, too. */
static void
retire_another (GpuCache *cache)
{
  GpuScope *scope = NULL;
  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  if (cache->scopes->len > 0)
    scope = gpu_scope_ref (g_ptr_array_index (cache->scopes, cache->next_scope++ % cache->scopes->len));
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
  if (!scope)
    return;
  gpu_cache_retire (cache, scope, POLL_BUDGET);
  gpu_scope_unref (scope);
}

void
gpu_cache_shrink (GpuCache *cache, GpuScope *scope)
{
  gpu_cache_retire (cache, scope, POLL_BUDGET);
  retire_another (cache);
  gpu_cache_retire (cache, cache->shared, POLL_BUDGET);
  gpu_cache_retire (cache, cache->detached, POLL_BUDGET);
  for (int account = 0; account < GPU_N_ACCOUNTS; account++)
    gpu_cache_settle (cache, account);
}

bool
gpu_cache_is_to_shrink (GpuCache *cache)
{
  bool over = atomic_load_explicit (&cache->n_leaving, memory_order_relaxed) > 0;
  for (int account = 0; account < GPU_N_ACCOUNTS; account++)
    over |= atomic_load_explicit (&cache->bytes[account], memory_order_relaxed) >
            atomic_load_explicit (&cache->limit[account], memory_order_relaxed);
  return over;
}

void
gpu_cache_tick (GpuCache *cache, GpuStream *stream)
{
  if (G_LIKELY (!gpu_cache_is_to_shrink (cache)))
    return;
  GpuScope *scope = gpu_stream_scope (stream);
  gpu_cache_shrink (cache, scope ? scope : gpu_thread_scope (cache));
}

/* Waits on the host for every access; false, with @error set, if the device cannot say when it is complete (rule 24).
 */
static bool
wait_for (const GpuHistory *history, GError **error)
{
  g_autoptr (GArray) points = g_array_new (false, false, sizeof (GpuPoint));
  gpu_history_list_pending (history, points);
  bool ok = true;
  for (unsigned i = 0; i < points->len; i++) {
    GpuPoint *point = &g_array_index (points, GpuPoint, i);
    ok = gpu_point_wait (point, error && !*error ? error : NULL) && ok;
    gpu_stream_release (point->stream);
  }
  return ok;
}

/* Frees what a clear took out of a scope. What a lost device may still be using is never given back: it goes when the
 * device goes. */
static bool
free_when_complete (GpuCache *cache, GpuAllocation *chain, GError **error)
{
  bool ok = true;
  for (GpuAllocation *allocation = chain, *next; allocation; allocation = next) {
    next = allocation->next;
    allocation->next = NULL;
    if (wait_for (&allocation->history, error)) {
      gpu_cache_free_chain (cache, allocation, false);
      continue;
    }
    ok = false;
    gpu_device_abandon (cache->device, allocation->kind, allocation->data, allocation->capacity);
    forget (cache, allocation);
  }
  return ok;
}

/* Empties a scope (rule 12). */
static bool
clear_scope (GpuCache *cache, GpuScope *scope, GError **error)
{
  gpu_scope_lock (scope);
  GpuAllocation *chain = scope->ended ? NULL : gpu_scope_clear (scope);
  gpu_scope_unlock (scope);
  return free_when_complete (cache, chain, error);
}

bool
gpu_cache_wait_detached (GpuCache *cache, GError **error)
{
  return clear_scope (cache, cache->detached, error);
}

bool
gpu_cache_clear (GpuDevice *device, GpuCacheScope which, GError **error)
{
  g_return_val_if_fail (device != NULL, false);

  GpuCache *cache = device->cache;
  GPtrArray *scopes;
  if (which == GPU_CACHE_LOCAL) {
    scopes = g_ptr_array_new_with_free_func ((GDestroyNotify)gpu_scope_unref);
    g_ptr_array_add (scopes, gpu_scope_ref (gpu_thread_scope (cache)));
  } else {
    gpu_cache_absorb_orphans (cache);
    scopes = gpu_cache_list_scopes (cache);
  }

  bool ok = true;
  for (unsigned i = 0; i < scopes->len; i++)
    ok = clear_scope (cache, g_ptr_array_index (scopes, i), error) && ok;
  g_ptr_array_unref (scopes);
  if (which == GPU_CACHE_ALL)
    ok = gpu_cache_wait_detached (cache, error) && ok;
  gpu_cache_trim (cache);
  return ok;
}
