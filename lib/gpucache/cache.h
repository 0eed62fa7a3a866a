/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The cache of a device as its users see it: limits, counts, clearing, and the state as a table.
 */
#pragma once

#include <gpucache/types.h>

G_BEGIN_DECLS

/**
 * GpuAccount:
 *
 * Pinned host memory is limited and counted apart from all other kinds (rule 8).
 */
typedef enum {
  GPU_ACCOUNT_DEVICE,
  GPU_ACCOUNT_HOST,
} GpuAccount;

#define GPU_N_ACCOUNTS 2

/**
 * GpuCacheScope:
 * @GPU_CACHE_ALL: every scope of the device and the shared index
 * @GPU_CACHE_LOCAL: the calling thread's scope
 */
typedef enum {
  GPU_CACHE_ALL,
  GPU_CACHE_LOCAL,
} GpuCacheScope;

/**
 * GpuCacheStats:
 *
 * Entries and bytes at present, then counts since the device was opened (rule 16). Plain memory that is pinned in place
 * (pin.h) counts as live pinned memory, and in no thread's scope. For GPU_CACHE_LOCAL, hits are those
 * of lookups by the scope, also if they were answered from the shared index; the limit, the peak, the detached bytes
 * and the counts after the hits are the device's.
 */
typedef struct {
  uint64_t live, pending, idle;
  uint64_t live_bytes, pending_bytes, idle_bytes;
  uint64_t detached_bytes; /* live at a clear and not yet freed; not part of the limit */
  uint64_t peak_bytes;     /* highest live + pending + idle */
  uint64_t limit_bytes;
  uint64_t held_bytes;   /* what the device's own pool held besides when last trimmed; the limit is for that, too */
  uint64_t exact_hits;   /* idle, same shape */
  uint64_t fit_hits;     /* idle, another shape that fits */
  uint64_t pending_hits; /* still in use, ordered already: no wait added */
  uint64_t waiting_hits; /* still in use, waits added to the consumer stream */
  uint64_t misses;       /* the device was asked for memory */
  uint64_t evictions;
  uint64_t oom_retries;
  uint64_t host_waits;
  uint64_t throttle_waits;
} GpuCacheStats;

/**
 * gpu_cache_set_limit:
 * @bytes: 0 retains nothing that is complete
 *
 * Takes effect at once, also while pipelines play: idle memory over the limit is freed, pending as it completes, live
 * memory is never touched. A limit above the device's memory is taken with a warning. Up to an eighth of the limit of
 * the device's memory stays free for what the device's own pool holds besides (held_bytes of the statistics).
 *
 * Returns: false if @error is set, for a negative value; the old limit stays
 */
GPU_API bool gpu_cache_set_limit (GpuDevice *device, GpuAccount account, int64_t bytes, GError **error);
GPU_API uint64_t gpu_cache_get_limit (GpuDevice *device, GpuAccount account);

/**
 * gpu_cache_parse_bytes:
 * @text: a whole number of bytes, or one with the suffix KiB, MiB or GiB
 *
 * Returns: false if @error is set, for what is negative, too large or cannot be read
 */
GPU_API bool gpu_cache_parse_bytes (const char *text, int64_t *bytes, GError **error);

/** Below the limit, an idle allocation of up to this many times the need may serve another shape; at least 1,
 * default 4. */
GPU_API void gpu_cache_set_fit_ratio (GpuDevice *device, unsigned ratio);

/** Retires what is complete, then fills in @stats. */
GPU_API void gpu_cache_get_stats (GpuDevice *device, GpuAccount account, GpuCacheScope scope, GpuCacheStats *stats);

/**
 * gpu_cache_clear:
 *
 * Waits for what is pending now and frees everything that is not live. What is live leaves the count and is freed
 * instead of retained when it is let go of (rule 12). False if @error is set.
 */
GPU_API bool gpu_cache_clear (GpuDevice *device, GpuCacheScope scope, GError **error);

/** The whole state as a table for a person to read. Returns: (transfer full): free with g_free(). */
GPU_API char *gpu_cache_dump (GpuDevice *device);

G_END_DECLS
