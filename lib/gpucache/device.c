/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What all devices have in common: their life, and the seam's functions with the checks, counts and injected failures
 * that no device needs to repeat. An error that leaves work unknown makes the device lost (rule 24), and a device is of
 * no use in a child process that fork() made after it was opened (G10).
 */
#include "device-priv.h"

#include "cache-priv.h"
#include "stream-priv.h"

#include <limits.h>

/* Threads that count calls apart; more of them share. */
#define N_CALL_COUNTS 32

/* Which process this is, counted in forks since the first device: cheaper to look at than getpid(). */
static atomic_uint fork_generation;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void
count_fork (void)
{
  atomic_fetch_add_explicit (&fork_generation, 1, memory_order_relaxed);
}

static void
watch_forks (void)
{
  pthread_atfork (NULL, NULL, count_fork);
}

unsigned
gpu_fork_generation (void)
{
  pthread_once (&fork_once, watch_forks);
  return atomic_load_explicit (&fork_generation, memory_order_relaxed);
}

static bool
is_forked (const GpuDevice *device)
{
  return device->fork_generation != atomic_load_explicit (&fork_generation, memory_order_relaxed);
}

typedef struct {
  GpuMemoryKind kind;
  void *data;
  size_t size;
} Abandoned;

void
gpu_device_abandon (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size)
{
  const Abandoned memory = {kind, data, size};

  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  g_array_append_val (device->abandoned, memory);
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
}

/* What made the device lost need not have reached the driver's context: where that still tells that all is complete,
 * nothing uses the memory. Else it is the driver's until the process ends. */
static void
free_abandoned (GpuDevice *device)
{
  GArray *abandoned = device->abandoned;
  bool complete = abandoned->len > 0 && gpu_peers_settle (device) && device->funcs->synchronize (device, NULL);

  for (unsigned i = 0; complete && i < abandoned->len; i++) {
    const Abandoned *memory = &g_array_index (abandoned, Abandoned, i);
    device->funcs->free (device, memory->kind, memory->data, memory->size, device->idle_stream, NULL);
  }
  g_array_unref (abandoned);
}

/* Everything that gpu_device_init() made, last first; members that it did not get to are NULL. */
static void
tear_down (GpuDevice *device)
{
  if (device->cache)
    gpu_cache_free (device->cache); /* which still finds itself there */
  device->cache = NULL;
  GpuCrew *crew = atomic_exchange (&device->crew, NULL);
  if (crew)
    gpu_crew_free (crew);
  g_clear_pointer (&device->internal, gpu_stream_unref);
  gpu_stream_unref (atomic_exchange (&device->staging, NULL));
  free_abandoned (device);
  gpu_peers_part (device);
  g_clear_pointer (&device->events, gpu_event_pool_free);
  if (device->freed_event)
    gpu_device_event_destroy (device, device->freed_event);
  device->freed_event = NULL;
  if (device->idle_stream)
    gpu_device_stream_destroy (device, device->idle_stream);
  device->idle_stream = NULL;
  g_clear_pointer (&device->lost_reason, g_free);
  g_clear_pointer (&device->calls, g_aligned_free);
  pthread_mutex_destroy (&device->idle_lock);
  pthread_mutex_destroy (&device->lock);
}

bool
gpu_device_init (GpuDevice *device, GError **error)
{
  atomic_init (&device->refs, 1);
  atomic_init (&device->lost, false);
  atomic_init (&device->failing, false);
  for (unsigned i = 0; i < GPU_N_CALLS; i++) {
    atomic_init (&device->fail_skip[i], 0);
    atomic_init (&device->fail_count[i], 0);
  }
  device->calls = g_aligned_alloc0 (N_CALL_COUNTS, sizeof *device->calls, _Alignof(GpuCallCounts));
  device->fork_generation = gpu_fork_generation ();
  device->lost_reason = NULL;
  device->abandoned = g_array_new (false, false, sizeof (Abandoned));
  device->events = NULL;
  device->cache = NULL;
  device->internal = NULL;
  device->idle_stream = NULL;
  device->freed_event = NULL;
  atomic_init (&device->freed_is_due, false);
  pthread_mutex_init (&device->lock, NULL);
  pthread_mutex_init (&device->idle_lock, NULL);
  gpu_peers_init (device);

  g_autoptr (GError) reason = NULL;
  if (gpu_device_stream_create (device, &device->idle_stream, &reason)) {
    device->events = gpu_event_pool_new (device);
    device->cache = gpu_cache_new (device);
    device->internal = gpu_stream_new_internal (device, &reason);
    if (device->internal)
      return true;
  }
  /* What was never open is not lost: the driver's words alone. */
  g_set_error_literal (error, GPU_ERROR, reason->code, device->lost_reason ? device->lost_reason : reason->message);
  tear_down (device);
  return false;
}

GpuDevice *
gpu_device_ref (GpuDevice *device)
{
  g_return_val_if_fail (device != NULL, NULL);
  atomic_fetch_add_explicit (&device->refs, 1, memory_order_relaxed);
  return device;
}

/* A device lives while somebody holds a reference or an image is live. The first is counted here, the second by the
 * cache's scopes, so that handing images out and taking them back touches nothing that threads share. Whoever drops the
 * last reference, or the last image after that, takes the device down. */
static pthread_mutex_t teardown_lock = PTHREAD_MUTEX_INITIALIZER;

/* The last reference goes: whether nothing else is left. An image's release takes a reference first once it sees that
 * the cache is orphaned, so one that is not counted as live any more shows in the references. */
static bool
drop_last (GpuDevice *device)
{
  gpu_lock (&teardown_lock, GPU_LOCK_TEARDOWN);
  atomic_store (&device->cache->orphaned, true);
  bool last = atomic_fetch_sub (&device->refs, 1) == 1 && gpu_cache_is_unused (device->cache) &&
              atomic_load (&device->refs) == 0;
  gpu_unlock (&teardown_lock, GPU_LOCK_TEARDOWN);
  return last;
}

void
gpu_device_unref (GpuDevice *device)
{
  g_return_if_fail (device != NULL);

  unsigned refs = atomic_load (&device->refs);
  while (refs > 1)
    if (atomic_compare_exchange_weak (&device->refs, &refs, refs - 1))
      return;
  /* The parent's threads and driver state do not exist here: there is nothing that could be given back safely. */
  if (is_forked (device) || !drop_last (device))
    return;

  /* What is taken down below may take and drop references of its own: they must not come down to the last one again. */
  atomic_store_explicit (&device->refs, UINT_MAX / 2, memory_order_relaxed);
  /* Users' streams and images held references: what is left of their work, the cache waits for. */
  gpu_stream_synchronize (device->internal, NULL);
  tear_down (device);
  device->funcs->destroy (device);
}

const char *
gpu_device_name (const GpuDevice *device)
{
  g_return_val_if_fail (device != NULL, NULL);
  return device->name;
}

const char *
gpu_device_description (const GpuDevice *device)
{
  g_return_val_if_fail (device != NULL, NULL);
  return device->description;
}

bool
gpu_device_is_host (const GpuDevice *device)
{
  g_return_val_if_fail (device != NULL, false);
  return device->is_host;
}

bool
gpu_device_is_lost (GpuDevice *device)
{
  g_return_val_if_fail (device != NULL, true);
  return atomic_load_explicit (&device->lost, memory_order_acquire);
}

void
gpu_device_set_lost (GpuDevice *device, const GError *error)
{
  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  if (!device->lost_reason)
    device->lost_reason = g_strdup (error ? error->message : "unknown error");
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
  atomic_store_explicit (&device->lost, true, memory_order_release);
}

bool
gpu_device_check (GpuDevice *device, GError **error)
{
  if (G_UNLIKELY (is_forked (device))) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_FORKED,
                 "device %s was opened before fork() and cannot be used in the child process; "
                 "open it in the child only, or start the child with exec",
                 device->name);
    return false;
  }
  if (G_UNLIKELY (gpu_device_is_lost (device))) {
    /* The reason is written once, before the flag. */
    g_set_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST,
                 "%s; device %s is lost by that and takes no more work: stop the pipelines that use it and start new "
                 "ones, or restart the program if the device does not open again",
                 device->lost_reason, device->name);
    return false;
  }
  return true;
}

static const char *
call_name (GpuCall call)
{
  static const char *const names[GPU_N_CALLS] = {
      [GPU_CALL_ALLOC] = "alloc",
      [GPU_CALL_FREE] = "free",
      [GPU_CALL_STREAM_CREATE] = "stream-create",
      [GPU_CALL_EVENT_CREATE] = "event-create",
      [GPU_CALL_EVENT_RECORD] = "event-record",
      [GPU_CALL_EVENT_QUERY] = "event-query",
      [GPU_CALL_EVENT_WAIT] = "event-wait",
      [GPU_CALL_STREAM_WAIT] = "stream-wait",
      [GPU_CALL_COPY] = "copy",
      [GPU_CALL_LAUNCH] = "launch",
  };
  return names[call];
}

static bool
take_failure (GpuDevice *device, GpuCall call)
{
  bool fails = false;

  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  unsigned skip = atomic_load_explicit (&device->fail_skip[call], memory_order_relaxed);
  unsigned count = atomic_load_explicit (&device->fail_count[call], memory_order_relaxed);
  if (count > 0 && skip > 0) {
    atomic_store_explicit (&device->fail_skip[call], skip - 1, memory_order_relaxed);
  } else if (count > 0) {
    atomic_store_explicit (&device->fail_count[call], count - 1, memory_order_relaxed);
    fails = true;
  }
  bool failing = false;
  for (unsigned i = 0; i < GPU_N_CALLS; i++)
    failing |= atomic_load_explicit (&device->fail_count[i], memory_order_relaxed) > 0;
  atomic_store_explicit (&device->failing, failing, memory_order_relaxed);
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
  return fails;
}

/* Where the calling thread counts. */
static unsigned
call_counts_index (void)
{
  static atomic_uint n_threads;
  static _Thread_local unsigned thread; /* 0: has no number yet */

  if (G_UNLIKELY (thread == 0))
    thread = atomic_fetch_add_explicit (&n_threads, 1, memory_order_relaxed) + 1;
  return thread % N_CALL_COUNTS;
}

bool
gpu_device_begin_call (GpuDevice *device, GpuCall call, GError **error)
{
  atomic_fetch_add_explicit (&device->calls[call_counts_index ()].n[call], 1, memory_order_relaxed);
  if (G_LIKELY (!atomic_load_explicit (&device->failing, memory_order_relaxed)))
    return true;
  if (!take_failure (device, call))
    return true;
  g_set_error (error, GPU_ERROR, call == GPU_CALL_ALLOC ? GPU_ERROR_OUT_OF_MEMORY : GPU_ERROR_DEVICE_LOST,
               "call %s on device %s was made to fail, as gpu_device_fail() asked", call_name (call), device->name);
  return false;
}

void
gpu_device_fail (GpuDevice *device, GpuCall call, unsigned skip, unsigned count)
{
  g_return_if_fail (device != NULL);
  g_return_if_fail ((unsigned)call < GPU_N_CALLS);

  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  atomic_store_explicit (&device->fail_skip[call], skip, memory_order_relaxed);
  atomic_store_explicit (&device->fail_count[call], count, memory_order_relaxed);
  /* take_failure() clears it once nothing is left to fail. */
  atomic_store_explicit (&device->failing, true, memory_order_relaxed);
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
}

uint64_t
gpu_device_calls (GpuDevice *device, GpuCall call)
{
  g_return_val_if_fail (device != NULL, 0);
  g_return_val_if_fail ((unsigned)call < GPU_N_CALLS, 0);

  uint64_t n = 0;
  for (unsigned i = 0; i < N_CALL_COUNTS; i++)
    n += atomic_load_explicit (&device->calls[i].n[call], memory_order_relaxed);
  return n;
}

/* Says so as it is said from then on, so that an element that meets it again has nothing new to post. */
static void
lose (GpuDevice *device, const GError *failure, GError **error)
{
  gpu_device_set_lost (device, failure);
  gpu_device_check (device, error);
}

/* The start of each wrapped call. */
static bool
begin (GpuDevice *device, GpuCall call, GError **error)
{
  gpu_locks_check_driver ();
  if (!gpu_device_check (device, error))
    return false;
  g_autoptr (GError) failure = NULL;
  if (G_LIKELY (gpu_device_begin_call (device, call, &failure)))
    return true;
  if (g_error_matches (failure, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY))
    g_propagate_error (error, g_steal_pointer (&failure));
  else
    lose (device, failure, error);
  return false;
}

static bool
is_refusal (const GError *failure)
{
  return g_error_matches (failure, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY) ||
         g_error_matches (failure, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
}

/* The end of each wrapped call: @failure is what the device's function set. */
static bool
end (GpuDevice *device, bool ok, GError *failure, GError **error)
{
  if (G_LIKELY (ok))
    return true;
  if (is_refusal (failure)) {
    g_propagate_error (error, failure);
    return false;
  }
  lose (device, failure, error);
  g_error_free (failure);
  return false;
}

/* The same for a call of @device's that has to do with @other, too. The error names the one that was called; whose it
 * is, each can tell for itself: a device that is lost answers nothing any more. */
static bool
end_between (GpuDevice *device, GpuDevice *other, bool ok, GError *failure, GError **error)
{
  uint64_t free_bytes, total_bytes;

  if (G_LIKELY (ok) || other == device || is_refusal (failure) ||
      other->funcs->memory_info (other, &free_bytes, &total_bytes, NULL))
    return end (device, ok, failure, error);
  return end (other, ok, failure, error);
}

bool
gpu_device_memory_info (GpuDevice *device, uint64_t *free_bytes, uint64_t *total_bytes, GError **error)
{
  GError *failure = NULL;
  uint64_t free_now = 0, total = 0;

  g_return_val_if_fail (device != NULL, false);
  gpu_locks_check_driver ();
  if (!gpu_device_check (device, error))
    return false;
  bool ok = device->funcs->memory_info (device, &free_now, &total, &failure);
  if (free_bytes)
    *free_bytes = free_now;
  if (total_bytes)
    *total_bytes = total;
  return end (device, ok, failure, error);
}

bool
gpu_device_alloc (GpuDevice *device, GpuMemoryKind kind, size_t size, size_t alignment, void *stream, void **data,
                  GError **error)
{
  GError *failure = NULL;

  *data = NULL;
  if (size == 0 || (alignment & (alignment - 1)) != 0) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "cannot allocate %zu bytes at a multiple of %zu on device %s; "
                 "the size must not be 0 and the alignment must be a power of two",
                 size, alignment, device->name);
    return false;
  }
  if (!begin (device, GPU_CALL_ALLOC, error))
    return false;
  bool ok = device->funcs->alloc (device, kind, size, MAX (alignment, 256), stream, data, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_free (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size, void *stream, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_FREE, error))
    return false;
  bool ok = device->funcs->free (device, kind, data, size, stream, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_free_idle (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size, GError **error)
{
  /* The driver may wait to free the other kinds, which nobody else has to wait for. */
  if (kind != GPU_MEMORY_STREAM_ORDERED)
    return gpu_device_free (device, kind, data, size, NULL, error);
  gpu_lock (&device->idle_lock, GPU_LOCK_STREAM);
  bool ok = gpu_device_free (device, kind, data, size, device->idle_stream, error);
  gpu_unlock (&device->idle_lock, GPU_LOCK_STREAM);
  return ok;
}

bool
gpu_device_alloc_complete (GpuDevice *device, size_t size, size_t alignment, void **data, GError **error)
{
  gpu_lock (&device->idle_lock, GPU_LOCK_STREAM);
  bool ok = gpu_device_alloc (device, GPU_MEMORY_STREAM_ORDERED, size, alignment, device->idle_stream, data, error);
  if (ok && !gpu_device_stream_synchronize (device, device->idle_stream, error)) {
    gpu_device_free (device, GPU_MEMORY_STREAM_ORDERED, *data, size, device->idle_stream, NULL);
    ok = false;
  }
  gpu_unlock (&device->idle_lock, GPU_LOCK_STREAM);
  return ok;
}

bool
gpu_device_wait_for_frees (GpuDevice *device)
{
  gpu_locks_check_driver ();
  if (!gpu_device_check (device, NULL))
    return false;
  /* What is idle was freed on this stream, which has no other work, and drivers give back only what the host has seen
   * freed. */
  gpu_lock (&device->idle_lock, GPU_LOCK_STREAM);
  const bool seen = !device->idle_stream || gpu_device_stream_synchronize (device, device->idle_stream, NULL);
  gpu_unlock (&device->idle_lock, GPU_LOCK_STREAM);
  return seen;
}

uint64_t
gpu_device_trim (GpuDevice *device, uint64_t keep)
{
  gpu_locks_check_driver ();
  return gpu_device_check (device, NULL) ? device->funcs->trim (device, keep) : 0;
}

bool
gpu_device_see_frees (GpuDevice *device, bool more)
{
  bool seen = false;

  if (!gpu_device_check (device, NULL))
    return false;
  gpu_lock (&device->idle_lock, GPU_LOCK_STREAM);
  if (atomic_load (&device->freed_is_due))
    seen = gpu_device_event_query (device, device->freed_event, NULL) == GPU_STATUS_COMPLETE;
  if (seen)
    atomic_store (&device->freed_is_due, false);
  /* Not before that: where each call is one with more, none would be seen complete. */
  if (more && (device->freed_event || gpu_device_event_create (device, &device->freed_event, NULL)) &&
      gpu_device_event_record (device, device->freed_event, device->idle_stream, NULL))
    atomic_store (&device->freed_is_due, true);
  gpu_unlock (&device->idle_lock, GPU_LOCK_STREAM);
  return seen;
}

bool
gpu_device_pin (GpuDevice *device, void *data, size_t size, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_ALLOC, error))
    return false;
  bool ok = !device->funcs->pin || device->funcs->pin (device, data, size, &failure);
  return end (device, ok, failure, error);
}

/* Also if the device is lost: the driver would take other memory at these addresses for what it has pinned. */
void
gpu_device_unpin (GpuDevice *device, void *data)
{
  gpu_locks_check_driver ();
  if (!is_forked (device) && device->funcs->unpin)
    device->funcs->unpin (device, data);
}

bool
gpu_device_stream_create (GpuDevice *device, void **stream, GError **error)
{
  GError *failure = NULL;

  *stream = NULL;
  if (!begin (device, GPU_CALL_STREAM_CREATE, error))
    return false;
  bool ok = device->funcs->stream_create (device, stream, &failure);
  return end (device, ok, failure, error);
}

/* Handles are given back even if the device is lost. */
void
gpu_device_stream_destroy (GpuDevice *device, void *stream)
{
  gpu_locks_check_driver ();
  if (!is_forked (device))
    device->funcs->stream_destroy (device, stream);
}

bool
gpu_device_stream_synchronize (GpuDevice *device, void *stream, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_EVENT_WAIT, error))
    return false;
  bool ok = device->funcs->stream_synchronize (device, stream, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_synchronize (GpuDevice *device, GError **error)
{
  GError *failure = NULL;

  gpu_locks_check_driver ();
  if (!gpu_device_check (device, error))
    return false;
  atomic_fetch_add_explicit (&device->host_waits, 1, memory_order_relaxed);
  bool ok = device->funcs->synchronize (device, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_event_create (GpuDevice *device, void **event, GError **error)
{
  GError *failure = NULL;

  *event = NULL;
  if (!begin (device, GPU_CALL_EVENT_CREATE, error))
    return false;
  bool ok = device->funcs->event_create (device, event, &failure);
  return end (device, ok, failure, error);
}

void
gpu_device_event_destroy (GpuDevice *device, void *event)
{
  gpu_locks_check_driver ();
  if (!is_forked (device))
    device->funcs->event_destroy (device, event);
}

bool
gpu_device_event_record (GpuDevice *device, void *event, void *stream, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_EVENT_RECORD, error))
    return false;
  bool ok = device->funcs->event_record (device, event, stream, &failure);
  return end (device, ok, failure, error);
}

GpuStatus
gpu_device_event_query (GpuDevice *device, void *event, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_EVENT_QUERY, error))
    return GPU_STATUS_FAILED;
  GpuStatus status = device->funcs->event_query (device, event, &failure);
  end (device, status != GPU_STATUS_FAILED, failure, error);
  return status;
}

bool
gpu_device_event_synchronize (GpuDevice *device, void *event, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_EVENT_WAIT, error))
    return false;
  bool ok = device->funcs->event_synchronize (device, event, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_stream_wait (GpuDevice *device, void *stream, GpuDevice *owner, void *event, GError **error)
{
  GError *failure = NULL;

  if (!gpu_device_check (owner, error) || !begin (device, GPU_CALL_STREAM_WAIT, error))
    return false;
  bool ok = device->funcs->stream_wait (device, stream, event, &failure);
  return end_between (device, owner, ok, failure, error);
}

bool
gpu_device_copy (GpuDevice *device, const GpuCopy *copy, GpuCopyKind kind, void *stream, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_COPY, error))
    return false;
  bool ok = device->funcs->copy (device, copy, kind, stream, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_prefetch (GpuDevice *device, void *data, size_t size, bool to_host, void *stream, GError **error)
{
  GError *failure = NULL;

  if (!device->funcs->prefetch)
    return true;
  if (!begin (device, GPU_CALL_COPY, error))
    return false;
  bool ok = device->funcs->prefetch (device, data, size, to_host, stream, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_peer_copy (GpuDevice *device, GpuDevice *source, const GpuCopy *copy, void *stream, GError **error)
{
  GError *failure = NULL;

  if (!gpu_device_check (source, error) || !begin (device, GPU_CALL_COPY, error))
    return false;
  bool ok = device->funcs->peer_copy (device, source, copy, stream, &failure);
  return end_between (device, source, ok, failure, error);
}

bool
gpu_device_fill (GpuDevice *device, const GpuCopy *dst_only, uint8_t value, void *stream, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_COPY, error))
    return false;
  bool ok = device->funcs->fill (device, dst_only, value, stream, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_launch (GpuDevice *device, const GpuKernel *kernel, const void *args, GpuExtent extent, void *stream,
                   GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_LAUNCH, error))
    return false;
  bool ok = device->funcs->launch (device, kernel, args, extent, stream, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_launch_table (GpuDevice *device, const GpuKernel *kernel, const void *args, const void *table, uint32_t n,
                         GpuExtent extent, void *stream, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_LAUNCH, error))
    return false;
  bool ok = device->funcs->launch_table (device, kernel, args, table, n, extent, stream, &failure);
  return end (device, ok, failure, error);
}

bool
gpu_device_host_call (GpuDevice *device, void (*func) (void *data), void *data, void *stream, GError **error)
{
  GError *failure = NULL;

  if (!begin (device, GPU_CALL_LAUNCH, error))
    return false;
  bool ok = device->funcs->host_call (device, func, data, stream, &failure);
  return end (device, ok, failure, error);
}
