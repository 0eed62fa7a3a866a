/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the cache holds and did, as numbers and as a table for people (rule 16).
 */
#include "cache-priv.h"

static void
add (GpuCacheStats *stats, GpuScope *scope, GpuAccount account)
{
  gpu_scope_lock (scope);
  const GpuScopeCounts *counts = &scope->counts[account];
  stats->live += counts->entries[GPU_ENTRY_LIVE];
  stats->pending += counts->entries[GPU_ENTRY_PENDING];
  stats->idle += counts->entries[GPU_ENTRY_IDLE];
  stats->live_bytes += counts->bytes[GPU_ENTRY_LIVE];
  stats->pending_bytes += counts->bytes[GPU_ENTRY_PENDING];
  stats->idle_bytes += counts->bytes[GPU_ENTRY_IDLE];
  stats->exact_hits += counts->hits[GPU_HIT_EXACT];
  stats->fit_hits += counts->hits[GPU_HIT_FIT];
  stats->pending_hits += counts->hits[GPU_HIT_PENDING];
  stats->waiting_hits += counts->hits[GPU_HIT_WAITING];
  gpu_scope_unlock (scope);
}

void
gpu_cache_get_stats (GpuDevice *device, GpuAccount account, GpuCacheScope which, GpuCacheStats *stats)
{
  g_return_if_fail (device != NULL && stats != NULL);
  g_return_if_fail ((unsigned)account < GPU_N_ACCOUNTS);

  GpuCache *cache = device->cache;
  gpu_cache_retire_all (cache);
  gpu_cache_settle (cache, account);

  memset (stats, 0, sizeof *stats);
  if (which == GPU_CACHE_LOCAL) {
    add (stats, gpu_thread_scope (cache), account);
  } else {
    g_autoptr (GPtrArray) scopes = gpu_cache_list_scopes (cache);
    for (unsigned i = 0; i < scopes->len; i++)
      add (stats, g_ptr_array_index (scopes, i), account);
  }
  if (account == GPU_ACCOUNT_HOST && which == GPU_CACHE_ALL) {
    stats->live += atomic_load (&cache->n_pins);
    stats->live_bytes += atomic_load (&cache->pinned_bytes);
  }
  stats->detached_bytes = atomic_load (&cache->detached_bytes[account]);
  stats->peak_bytes = atomic_load (&cache->peak[account]);
  stats->limit_bytes = atomic_load (&cache->limit[account]);
  stats->held_bytes = atomic_load (&cache->held[account]);
  stats->misses = atomic_load (&cache->misses[account]);
  stats->evictions = atomic_load (&cache->evictions[account]);
  stats->oom_retries = atomic_load (&cache->oom_retries[account]);
  stats->host_waits = atomic_load (&device->host_waits);
  stats->throttle_waits = atomic_load (&device->throttle_waits);
}

static const char *const account_names[GPU_N_ACCOUNTS] = {"device", "pinned host"};

static void
dump_account (GString *text, GpuDevice *device, GpuAccount account)
{
  GpuCacheStats s;
  gpu_cache_get_stats (device, account, GPU_CACHE_ALL, &s);
  g_autofree char *now = g_format_size_full (s.live_bytes + s.pending_bytes + s.idle_bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree char *limit = g_format_size_full (s.limit_bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree char *peak = g_format_size_full (s.peak_bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree char *detached = g_format_size_full (s.detached_bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_autofree char *held = g_format_size_full (s.held_bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_string_append_printf (text, "%s memory: %s of %s, peak %s, detached %s, held by the device's pool %s\n",
                          account_names[account], now, limit, peak, detached, held);
  g_string_append_printf (text,
                          "  hits: %" G_GUINT64_FORMAT " exact, %" G_GUINT64_FORMAT " fit, %" G_GUINT64_FORMAT
                          " pending, %" G_GUINT64_FORMAT " waiting; misses: %" G_GUINT64_FORMAT
                          "; evictions: %" G_GUINT64_FORMAT "; refusals retried: %" G_GUINT64_FORMAT "\n",
                          s.exact_hits, s.fit_hits, s.pending_hits, s.waiting_hits, s.misses, s.evictions,
                          s.oom_retries);
}

static void
dump_shelf (GString *text, const GpuShelf *shelf)
{
  unsigned idle = 0, pending = 0;
  uint64_t bytes = 0;
  for (const GpuLink *link = shelf->idle.first; link; link = link->next, idle++)
    bytes += gpu_container (link, GpuAllocation, by_shelf)->capacity;
  for (const GpuLink *link = shelf->pending.first; link; link = link->next, pending++)
    bytes += gpu_container (link, GpuAllocation, by_shelf)->capacity;
  uint64_t live = shelf->n_bound - idle - pending;
  g_autofree char *shape =
      g_strdup_printf ("%s %ux%u", gpu_format_info (shelf->spec.format)->name, shelf->spec.width, shelf->spec.height);
  g_autofree char *size = g_format_size_full (bytes, G_FORMAT_SIZE_IEC_UNITS);
  g_string_append_printf (text, "  %-20s %-15s %6" G_GUINT64_FORMAT " %8u %6u %12s\n", shape,
                          gpu_memory_kind_name (shelf->kind), live, pending, idle, size);
}

static void
dump_scope (GString *text, GpuScope *scope)
{
  static const char *const names[] = {
      [GPU_SCOPE_THREAD] = "thread", [GPU_SCOPE_STREAM] = "stream", [GPU_SCOPE_SHARED] = "shared index"};
  GHashTableIter iter;
  void *shelf;
  gpu_scope_lock (scope);
  if (scope->type == GPU_SCOPE_SHARED)
    g_string_append_printf (text, "%s\n", names[scope->type]);
  else
    g_string_append_printf (text, "%s %" G_GUINT64_FORMAT "\n", names[scope->type], scope->owner);
  g_string_append_printf (text, "  %-20s %-15s %6s %8s %6s %12s\n", "shape", "kind", "live", "pending", "idle",
                          "not in use");
  g_hash_table_iter_init (&iter, scope->shelves);
  while (g_hash_table_iter_next (&iter, &shelf, NULL))
    dump_shelf (text, shelf);
  gpu_scope_unlock (scope);
}

char *
gpu_cache_dump (GpuDevice *device)
{
  g_return_val_if_fail (device != NULL, NULL);

  GString *text = g_string_new (NULL);
  g_string_append_printf (text, "%s: %s\n", device->name, device->description);
  for (int account = 0; account < GPU_N_ACCOUNTS; account++)
    dump_account (text, device, account);
  g_autofree char *pinned = g_format_size_full (atomic_load (&device->cache->pinned_bytes), G_FORMAT_SIZE_IEC_UNITS);
  g_string_append_printf (text, "pinned in place: %s\n", pinned);
  g_string_append_printf (text, "host waits: %" G_GUINT64_FORMAT ", of frames in flight: %" G_GUINT64_FORMAT "\n",
                          (uint64_t)atomic_load (&device->host_waits), (uint64_t)atomic_load (&device->throttle_waits));

  g_autoptr (GPtrArray) scopes = gpu_cache_list_scopes (device->cache);
  for (unsigned i = 0; i < scopes->len; i++)
    dump_scope (text, g_ptr_array_index (scopes, i));
  return g_string_free (text, false);
}
