/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The cache from inside: allocations, the scopes that keep them while nobody uses them, and a device's totals.
 *
 * A scope files what it keeps three ways:
 *
 *   shelf   all entries of one exact match (rule 4): its idle ones and its pending ones, in order of release
 *   lane    the pending entries whose accesses lie on one stream, by number: their retirement is a comparison of the
 *           first one's; one more lane, without a stream, keeps those on several streams
 *   slot    where a shelf and a lane meet: the entries of that shape last used on that stream, idle or pending. The
 *           newest of the consumer stream's slot is what the hot path takes, since stream order makes it safe.
 *
 * and its idle entries in two trees, by capacity for best fit and by age for eviction. Shelves, slots and lanes live
 * while an allocation is bound to them, also while that is live, so that giving it back looks nothing up.
 *
 * Locks (rule 25) are taken in the order of their ranks, see lock.h.
 */
#pragma once

#include "list.h"
#include "stream-priv.h"
#include "tree.h"

#include <gpucache/batch.h>
#include <gpucache/cache.h>
#include <gpucache/image.h>

typedef struct GpuAllocation GpuAllocation;
typedef struct GpuShelf GpuShelf;
typedef struct GpuSlot GpuSlot;
typedef struct GpuLane GpuLane;
typedef struct GpuReleaser GpuReleaser;

struct GpuImage {
  atomic_uint refs;
  GpuAllocation *allocation;
  GpuImageSpec spec;
  uint8_t *data;
  GpuImage *next_spare; /* of views */
};

typedef enum {
  GPU_ENTRY_LIVE,
  GPU_ENTRY_PENDING,
  GPU_ENTRY_IDLE,
} GpuEntryState;

#define GPU_N_ENTRY_STATES 3

/** How a lookup was answered. */
typedef enum {
  GPU_HIT_NONE, /* new memory */
  GPU_HIT_EXACT,
  GPU_HIT_FIT,
  GPU_HIT_PENDING,
  GPU_HIT_WAITING,
} GpuHit;

#define GPU_N_HITS 5

/** What the tree of best fits is ordered by. */
typedef struct {
  GpuTreeNode node;
  uint32_t match; /* memory kind and format */
  size_t capacity;
  uint64_t stamp; /* the newest first */
} GpuFitNode;

struct GpuAllocation {
  _Alignas(GPU_CACHE_LINES) GpuImage image; /* the root descriptor: the allocation is live while it has a reference */
  GpuDevice *device;
  GpuMemoryKind kind;
  bool owned;
  void *data;
  size_t capacity;
  size_t alignment;

  pthread_mutex_t lock; /* for the history while the allocation is live */
  GpuHistory history;

  /* The rest is under the lock of the scope that it came from. */
  GpuScope *scope;
  GpuEntryState state;
  GpuHit hit;          /* how it was handed out */
  bool detached;       /* live at a clear: freed when it is let go of (rule 12), and in detached_bytes until then */
  bool leaving;        /* pending when its scope ended, or detached: freed when complete */
  uint64_t generation; /* how often its scope had been cleared when it was handed out */
  uint64_t stamp;      /* when it was released: scope.c */
  uint64_t number;     /* of its last access on its lane's stream */
  GpuShelf *shelf;
  GpuSlot *slot;
  bool early;      /* in its lane's tree, not in the list */
  GpuBatch *batch; /* let go of, and to be reused whole; see batch-priv.h */
  GpuLink by_slot, by_shelf, by_lane;
  GpuTreeNode by_number;
  GpuFitNode by_fit;
  GpuTreeNode by_age;
  GpuAllocation *next; /* in a chain that somebody carries away */

  /* Wrapped memory only. */
  GpuReleaseFunc release;
  void *user_data;
  unsigned calls_left; /* accesses that nobody has said yet are complete; under the releaser's lock */
};

static inline GpuAccount
gpu_memory_kind_account (GpuMemoryKind kind)
{
  return kind == GPU_MEMORY_HOST ? GPU_ACCOUNT_HOST : GPU_ACCOUNT_DEVICE;
}

/** Whether the host may touch the memory without our knowing, so that stream order never makes its reuse safe. */
static inline bool
gpu_memory_kind_is_host (GpuMemoryKind kind)
{
  return kind == GPU_MEMORY_HOST || kind == GPU_MEMORY_MANAGED;
}

/** What somebody wants from the cache. */
typedef struct {
  const GpuImageSpec *spec;
  GpuMemoryKind kind;
  GpuAccount account;
  GpuStream *stream; /* nullable: without one, pending memory is reused under pressure only */
  bool complete;     /* pending memory never will do, although new memory may be work on the stream */
  bool host;         /* the host touches it next, so that it has to be @complete, and to be there at once */
} GpuRequest;

typedef enum {
  GPU_SCOPE_THREAD,
  GPU_SCOPE_STREAM,
  GPU_SCOPE_SHARED,
  GPU_SCOPE_DETACHED,
} GpuScopeType;

typedef struct {
  uint64_t entries[GPU_N_ENTRY_STATES];
  uint64_t bytes[GPU_N_ENTRY_STATES];
  uint64_t hits[GPU_N_HITS]; /* of those who asked here, also if the shared index had it */
} GpuScopeCounts;

struct GpuScope {
  _Alignas(GPU_CACHE_LINES) atomic_uint refs;
  GpuScopeType type;
  uint64_t owner;             /* the thread's or stream's id, for people */
  _Atomic (GpuCache *) cache; /* NULL once the device is gone */
  GpuScope *next_orphan;

  pthread_mutex_t lock;
  bool ended;
  uint64_t generation;        /* how often it was cleared: what was handed out before that is not retained */
  uint64_t shared_generation; /* the shared index's when the scope ended */
  uint64_t n_out;             /* live, detached ones included */
  uint64_t n_bound;           /* allocations that refer to a shelf here */
  uint64_t changes;           /* for the validity function: whether anything happened meanwhile */
  uint64_t last_stamp;
  GHashTable *shelves;   /* set of GpuShelf */
  GHashTable *slots;     /* set of GpuSlot */
  GHashTable *lanes;     /* set of GpuLane */
  GpuList pending_lanes; /* those with pending entries, the one looked at longest ago first */
  unsigned n_pending_lanes;
  GpuShelf *recent_shelf;
  GpuList batches; /* whole ones, the last to be let go of last */
  GpuTree fit;
  GpuTree age[GPU_N_ACCOUNTS];
  GpuScopeCounts counts[GPU_N_ACCOUNTS];
};

static inline GpuLockRank
gpu_scope_rank (const GpuScope *scope)
{
  return scope->type == GPU_SCOPE_THREAD || scope->type == GPU_SCOPE_STREAM ? GPU_LOCK_SCOPE : GPU_LOCK_SHARED;
}

static inline void
gpu_scope_lock (GpuScope *scope)
{
  gpu_lock (&scope->lock, gpu_scope_rank (scope));
}

static inline void
gpu_scope_unlock (GpuScope *scope)
{
  gpu_unlock (&scope->lock, gpu_scope_rank (scope));
}

/** All entries of one exact match. */
struct GpuShelf {
  _Alignas(GPU_CACHE_LINES) GpuImageSpec spec;
  GpuMemoryKind kind;
  unsigned hash;
  uint64_t n_bound;
  GpuList idle, pending; /* by release, the newest last */
  GpuLink *recent_idle;  /* in the idle list: what was entered last, or something near it */
  GpuSlot *recent_slot;
};

/** The pending entries of one stream. */
struct GpuLane {
  _Alignas(GPU_CACHE_LINES) GpuStream *stream; /* held; NULL for entries with accesses on several */
  uint64_t id;                                 /* the stream's, or 0 */
  uint64_t n_slots;
  uint64_t n_pending;
  GpuList pending; /* by number: nearly always memory is released in the order in which it was used */
  GpuTree early;   /* by number: entries released after one that was used later and was in the list then */
  GpuLink by_scope;
};

struct GpuSlot {
  _Alignas(GPU_CACHE_LINES) GpuShelf *shelf;
  GpuLane *lane;
  uint64_t n_bound;
  GpuList entries; /* by release, the newest last */
};

struct GpuCache {
  GpuDevice *device;
  atomic_uint_least64_t limit[GPU_N_ACCOUNTS];
  /* What the device's own pool held beyond what was in use of it when it was last trimmed: no frame can have it, and
   * the limit is for that, too (rule 10). 0 for pinned memory. */
  atomic_uint_least64_t held[GPU_N_ACCOUNTS];
  atomic_uint_least64_t bytes[GPU_N_ACCOUNTS]; /* reserved before the driver is called, until after it took them back */
  atomic_uint_least64_t peak[GPU_N_ACCOUNTS];
  atomic_uint_least64_t detached_bytes[GPU_N_ACCOUNTS];
  atomic_uint_least64_t misses[GPU_N_ACCOUNTS];
  atomic_uint_least64_t evictions[GPU_N_ACCOUNTS];
  atomic_uint_least64_t oom_retries[GPU_N_ACCOUNTS];
  /* Bytes that are counted and in no scope: on their way from or to the driver, or between scopes. */
  atomic_uint_least64_t carried[GPU_N_ACCOUNTS];
  atomic_uint_least64_t n_pins, pinned_bytes; /* memory of the host's own, pinned in place (pin.c) */
  GpuList pins;                               /* under pin.c's lock */
  atomic_bool refused_pin;
  atomic_uint fit_ratio;
  atomic_bool orphaned;  /* only images keep the device */
  atomic_uint n_leaving; /* pending entries that are freed when complete (rules 12 and 15) */
  atomic_uint_least64_t n_frees;
  unsigned next_scope;                  /* whose turn it is to be polled by somebody else */
  atomic_bool trim_due[GPU_N_ACCOUNTS]; /* the limit was lowered: give memory back to the system once it is met */
  atomic_bool has_freed;                /* stream-ordered memory, which the device's own pool may have kept */
  _Atomic (GpuScope *) orphans;         /* scopes of threads that ended (thread.c) */

  GpuScope *shared;
  GpuScope *detached; /* let go of after a clear, not complete yet: counted apart, and no lookup comes here */

  pthread_mutex_t lock;
  GPtrArray *scopes;    /* of threads and streams; a reference each */
  GpuAllocation *spare; /* descriptors for the next allocation or wrapped image */
  GpuImage *spare_views;

  GpuStream *waiter; /* made when first needed; see cache.c */

  pthread_mutex_t refusal_lock;
  pthread_cond_t refusal_ended;
  bool refusal; /* one thread deals with a refusal of memory (rule 13) */

  GpuReleaser *releaser;
  GpuAllocation *abandoned; /* wrapped, let go of, and nobody can say when complete (release.c) */
};

/* limit.c */
/** Half of the host's memory, in bytes. */
uint64_t gpu_cache_default_host_limit (void);

/* cache.c */
GpuCache *gpu_cache_new (GpuDevice *device);
/** Nothing is live any more. Waits for pending work, frees everything. */
void gpu_cache_free (GpuCache *cache);
/** Whether no image is live. */
bool gpu_cache_is_unused (GpuCache *cache);
/** The hot path: an exact match in the scope that is ordered or idle, by numbers alone. Returns: (transfer full)
 * (nullable): a live allocation with request->spec as its descriptor. */
GpuAllocation *gpu_cache_take_ready (GpuCache *cache, const GpuRequest *request);
/** The rest of rules 4 to 7 and 13, if gpu_cache_take_ready() has found nothing. Returns: (transfer full): the same, or
 * NULL with @error set. */
GpuAllocation *gpu_cache_acquire (GpuCache *cache, const GpuRequest *request, GError **error);
/** Starts the history of memory that was handed out: all that was before is ordered before @stream's present point
 * (rule 19), or complete if there is none. The descriptor gets its one reference. */
void gpu_cache_begin (GpuAllocation *allocation, GpuStream *stream);
/** What nobody observes any more goes back to its scope. */
void gpu_cache_release (GpuAllocation *allocation);
/** A descriptor without memory, recycled if there is one. It stays while the cache does: an image that is released
 * twice is still there to say so. */
GpuAllocation *gpu_allocation_new (GpuCache *cache);
void gpu_allocation_recycle (GpuCache *cache, GpuAllocation *allocation);
/** The same for views. */
GpuImage *gpu_view_new (GpuCache *cache);
void gpu_view_recycle (GpuCache *cache, GpuImage *view);
/** References to all scopes, the shared one last. Returns: (transfer full) (element-type GpuScope). */
GPtrArray *gpu_cache_list_scopes (GpuCache *cache);

/** Counts @bytes, and has them carried, unless that is more than the limit; with @force whatever the limit. */
bool gpu_cache_reserve (GpuCache *cache, GpuAccount account, uint64_t bytes, bool force);
void gpu_cache_unreserve (GpuCache *cache, GpuAccount account, uint64_t bytes);
void gpu_cache_raise_peak (GpuCache *cache, GpuAccount account);

/* pin.c: no work of the device's is left, and it goes. */
void gpu_cache_unpin_all (GpuCache *cache);

/* evict.c: what leaves the cache, and when. */
/** How many questions to the device one submission, acquire or release may ask (rule 11). */
#define POLL_BUDGET 4
/** Frees a chain of complete allocations that no scope has any more; @evicted: they had been idle there, and count as
 * evictions. */
void gpu_cache_free_chain (GpuCache *cache, GpuAllocation *chain, bool evicted);

/* How much of a limit may be for what the device's own pool holds besides: one part in so many. */
#define GPU_CACHE_HELD_SHARE 8

/** How many bytes may be counted for new memory to be had: the limit, less what the device's own pool holds besides. */
static inline uint64_t
gpu_cache_ceiling (const GpuCache *cache, GpuAccount account)
{
  const uint64_t limit = atomic_load_explicit (&cache->limit[account], memory_order_relaxed);
  const uint64_t held = atomic_load_explicit (&cache->held[account], memory_order_relaxed);
  return limit - MIN (held, limit / GPU_CACHE_HELD_SHARE);
}

/** Frees idle entries, the least recently used of all scopes first, until no more than @target bytes are counted or
 * none is left. */
void gpu_cache_evict (GpuCache *cache, GpuAccount account, uint64_t target);
/** Polls and retires in @scope, asking the device at most @budget times. */
void gpu_cache_retire (GpuCache *cache, GpuScope *scope, unsigned budget);
/** Whether there is anything to be gained by polling: more bytes than the limit, or what is to be freed when complete.
 */
bool gpu_cache_is_to_shrink (GpuCache *cache);
/** Polls and retires, a bounded amount in @scope, in another one in turn and in the shared index; then settles. */
void gpu_cache_shrink (GpuCache *cache, GpuScope *scope);
/** After a submission to @stream or a wait for it: retires, a bounded amount, if the cache is to shrink (rule 11). */
void gpu_cache_tick (GpuCache *cache, GpuStream *stream);
/** The same in every scope, until nothing more is complete. */
void gpu_cache_retire_all (GpuCache *cache);
/** Bytes of idle entries in all scopes. */
uint64_t gpu_cache_idle_bytes (GpuCache *cache, GpuAccount account);
/** Brings the account under its limit as far as idle entries allow; once a lowered limit is met, trims the device's
 * own pool (rule 10). */
void gpu_cache_settle (GpuCache *cache, GpuAccount account);
/** Gives what the device's own pool keeps back to the system. */
void gpu_cache_trim (GpuCache *cache);
/** The same as far as the limit asks for, after a new allocation, and evicts for what the pool holds all the same:
 * waits for nothing, so what was freed just before it goes back with one of the next allocations. */
void gpu_cache_trim_to_limit (GpuCache *cache);
/** The same for what is known to have been freed, and learns what the pool holds all the same. @in_the_way: of new
 * memory: nothing that is wholly free is kept then. */
void gpu_cache_measure_held (GpuCache *cache, bool in_the_way);
/** Waits for all that was detached and let go of, and frees it. False if @error is set. */
bool gpu_cache_wait_detached (GpuCache *cache, GError **error);

/* refusal.c: when the driver refuses memory (rule 13). Frees, searches again, waits, until @fresh has memory or
 * *@reused is a live allocation to be taken instead. */
bool gpu_cache_handle_refusal (GpuCache *cache, GpuScope *scope, const GpuRequest *request, GpuAllocation *fresh,
                               GpuAllocation **reused, GError **error);
/** Asks the driver for memory of @fresh's size; on success its history starts with a write. */
bool gpu_cache_ask_driver (GpuCache *cache, const GpuRequest *request, GpuAllocation *fresh, GError **error);
/** Takes what rules 4 to 7 allow without new memory: with @pressure any fit, else by the fit ratio. */
GpuAllocation *gpu_cache_search (GpuCache *cache, GpuScope *scope, const GpuRequest *request, bool pressure);
/** Takes an exact match that is pending and adds the waits; NULL without @error if there is none. */
GpuAllocation *gpu_cache_take_waiting (GpuCache *cache, GpuScope *scope, const GpuRequest *request, GError **error);

/* thread.c: the calling thread's scope. Returns: (transfer none); the shared index once the thread's scope has ended.
 */
GpuScope *gpu_thread_scope (GpuCache *cache);
/** Moves what ended threads left into the shared index. */
void gpu_cache_absorb_orphans (GpuCache *cache);
/** Before the cache is freed: no thread refers to it through @scopes any more. */
void gpu_thread_scopes_forget (GpuCache *cache, GPtrArray *scopes);

/* release.c: wrapped memory goes back to its owner (rules 1 and 11). */
void gpu_release_wrapped (GpuAllocation *allocation);
/** Waits for all work of the device, then gives back to its owners what still waits for that; stops the thread. */
void gpu_cache_release_all_wrapped (GpuCache *cache);

/* scope.c */
GpuScope *gpu_scope_new (GpuCache *cache, GpuScopeType type, uint64_t owner);
GpuScope *gpu_scope_ref (GpuScope *scope);
void gpu_scope_unref (GpuScope *scope);
/** Moves everything to the shared index (rule 15). */
void gpu_scope_end (GpuScope *scope);

/* With the scope's lock held. What is taken is live and counted so; the hit counts where it was asked for. */
/** The newest exact match that is ordered on request->stream, by numbers alone. */
GpuAllocation *gpu_scope_take_ordered (GpuScope *scope, const GpuRequest *request);
GpuAllocation *gpu_scope_take_idle (GpuScope *scope, const GpuRequest *request);
/** The smallest idle one of at most @most bytes that fits. */
GpuAllocation *gpu_scope_take_fit (GpuScope *scope, const GpuRequest *request, size_t most);
/** One of a batch that is reused whole, which was looked up already. */
void gpu_scope_take_member (GpuScope *scope, GpuAllocation *allocation);
/** The exact match that has been pending for longest. */
GpuAllocation *gpu_scope_take_pending (GpuScope *scope, const GpuRequest *request);
/** Removes the least recently used idle entry from the scope altogether. */
GpuAllocation *gpu_scope_remove_oldest (GpuScope *scope, GpuAccount account);
/** Retires by numbers alone, on at most @most_lanes streams; UINT_MAX is a full sweep. What is not to be retained is
 * added to *@doomed, no longer in the scope. */
void gpu_scope_retire (GpuScope *scope, unsigned most_lanes, GpuAllocation **doomed);
/** Counts the hit for the scope that asked. */
void gpu_scope_count_hit (GpuScope *scope, const GpuAllocation *taken);
/** Enters a live allocation of no scope. */
void gpu_scope_adopt (GpuScope *scope, GpuAllocation *allocation);
/** The opposite: a live allocation leaves the scope. */
void gpu_scope_disown (GpuScope *scope, GpuAllocation *allocation);
/** A live allocation of a scope that ended, which is counted here since, gets its place here. */
void gpu_scope_bind (GpuScope *scope, GpuAllocation *allocation, uint64_t generation);
/** A live allocation that was detached leaves for good. */
void gpu_scope_drop (GpuScope *scope, GpuAllocation *allocation);
/** It goes on in cache->detached until it is complete; if it is by now, it is added to *@doomed. */
void gpu_scope_put_detached (GpuScope *scope, GpuAllocation *allocation, GpuAllocation **doomed);
/** A live allocation gets another shape. */
void gpu_scope_reshape (GpuScope *scope, GpuAllocation *allocation, const GpuImageSpec *spec);
/** A live allocation is let go of: pending or idle from now on, or, with @doomed, not retained if its limit says so. */
void gpu_scope_put (GpuScope *scope, GpuAllocation *allocation, GpuAllocation **doomed);
/** The next points to ask the device about: those of the first pending entry of each lane, the one looked at
 * longest ago first. Held for the caller. @lanes: (out): how many lanes they are of, for gpu_scope_retire(). */
unsigned gpu_scope_pending_points (GpuScope *scope, GpuPoint *points, unsigned most, unsigned *lanes);
/** Appends every access of its pending entries that has not been observed complete to @points, an array of GpuPoint;
 * held for the caller. */
void gpu_scope_list_pending (GpuScope *scope, GArray *points);
/** Removes all entries from the scope, idle and pending, and detaches the live ones (rule 12): their bytes leave the
 * count. */
GpuAllocation *gpu_scope_clear (GpuScope *scope);
/** Removes the reference to shelf and slot; true if that was the scope's last, and a reference on it is to be dropped
 * once it is unlocked. */
bool gpu_scope_unbind (GpuScope *scope, GpuAllocation *allocation);
