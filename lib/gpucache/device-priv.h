/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The seam between the library and its devices: a struct of functions that stands for a GPU. device.c checks, counts
 * and fails calls once for all devices; a device only implements the struct. A new device is one file.
 */
#pragma once

#include "crew.h"
#include "lock.h"

#include <gpucache/device.h>
#include <gpucache/kernel.h>
#include <gpucache/testing.h>

#include <pthread.h>
#include <stdatomic.h>

/** What threads write to for themselves begins on a pair of cache lines of its own: processors fetch them in pairs. */
#define GPU_CACHE_LINES 128

/** Rows of bytes in device or pinned host memory. */
typedef struct {
  void *dst;
  size_t dst_stride;
  const void *src;
  size_t src_stride;
  size_t row_bytes;
  size_t rows;
} GpuCopy;

typedef enum {
  GPU_STATUS_COMPLETE,
  GPU_STATUS_PENDING,
  GPU_STATUS_FAILED,
} GpuStatus;

/** Where the other side of a copy lies. */
typedef enum {
  GPU_COPY_DEVICE,    /* device to device, pinned memory counting as device */
  GPU_COPY_FROM_HOST, /* src is pageable host memory: returns when it has been read */
  GPU_COPY_TO_HOST,   /* dst is pageable host memory: returns when it has been written */
} GpuCopyKind;

/**
 * GpuDeviceFuncs:
 *
 * Native streams and events are opaque handles of the device; a stream handle may be NULL (CUDA's NULL stream). The
 * caller serialises calls on one stream (it holds that stream's lock); everything else is called from any thread.
 * No function waits for the device but those that say so. A function that returns false has set @error, to
 * GPU_ERROR_OUT_OF_MEMORY for a refusal of memory, else to GPU_ERROR_DEVICE_LOST, or to GPU_ERROR_UNSUPPORTED where
 * that is so; its message names call, code and device.
 */
typedef struct {
  void (*destroy) (GpuDevice *device); /* frees what the device's file allocated, @device itself included */
  bool (*memory_info) (GpuDevice *device, uint64_t *free_bytes, uint64_t *total_bytes, GError **error);

  /* Memory of @size bytes at a multiple of @alignment (a power of two, at least 256). Stream-ordered memory may be used
   * by work on @stream submitted later, and elsewhere after an event recorded on @stream later; the other kinds ignore
   * @stream, may be used at once, and may make alloc and free wait for the device. Stream-ordered free: the memory may
   * be handed out again once the work submitted to @stream so far is complete. */
  bool (*alloc) (GpuDevice *device, GpuMemoryKind kind, size_t size, size_t alignment, void *stream, void **data,
                 GError **error);
  bool (*free) (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size, void *stream, GError **error);
  /* Gives memory that the device's own pool keeps and nobody uses back to the system, down to @keep bytes in all.
   * Returns: the bytes that it holds all the same beyond what is in use, as pieces of it are in use in part; 0 if there
   * is no more of that than any use of the pool brings. */
  uint64_t (*trim) (GpuDevice *device, uint64_t keep);
  /* Locks whole pages of the host's own memory, which then count as pinned, until unpin, when no work on them is left.
   * May wait for the device. A refusal is GPU_ERROR_OUT_OF_MEMORY or GPU_ERROR_UNSUPPORTED. NULL if the device has no
   * use for it. */
  bool (*pin) (GpuDevice *device, void *data, size_t size, GError **error);
  void (*unpin) (GpuDevice *device, void *data);

  bool (*stream_create) (GpuDevice *device, void **stream, GError **error);
  /* Work that is pending goes on. */
  void (*stream_destroy) (GpuDevice *device, void *stream);
  /* Waits. */
  bool (*stream_synchronize) (GpuDevice *device, void *stream, GError **error);

  /* Waits for everything, what others submitted included. */
  bool (*synchronize) (GpuDevice *device, GError **error);

  bool (*event_create) (GpuDevice *device, void **event, GError **error);
  void (*event_destroy) (GpuDevice *device, void *event);
  bool (*event_record) (GpuDevice *device, void *event, void *stream, GError **error);
  GpuStatus (*event_query) (GpuDevice *device, void *event, GError **error);
  /* Waits. */
  bool (*event_synchronize) (GpuDevice *device, void *event, GError **error);
  /* @event may be of another device of the same kind. */
  bool (*stream_wait) (GpuDevice *device, void *stream, void *event, GError **error);

  bool (*copy) (GpuDevice *device, const GpuCopy *copy, GpuCopyKind kind, void *stream, GError **error);
  /* A hint, for managed memory: @size bytes at @data are touched by the host next, or by the device. NULL if the device
   * has no use for it. */
  bool (*prefetch) (GpuDevice *device, void *data, size_t size, bool to_host, void *stream, GError **error);
  /* Between devices of one kind, @device being the one whose stream works. Opening, once for each @source, makes
   * @source's device memory readable to @device; GPU_ERROR_UNSUPPORTED if that is not to be had. Streams wait for the
   * other device's events in any case. Then a copy between device memory of both; src is @source's. */
  bool (*peer_open) (GpuDevice *device, GpuDevice *source, GError **error);
  bool (*peer_copy) (GpuDevice *device, GpuDevice *source, const GpuCopy *copy, void *stream, GError **error);
  bool (*fill) (GpuDevice *device, const GpuCopy *dst_only, uint8_t value, void *stream, GError **error);
  bool (*launch) (GpuDevice *device, const GpuKernel *kernel, const void *args, GpuExtent extent, void *stream,
                  GError **error);
  /* The same for each of the @n arguments' structs that lie one after the other in device memory at @table, and, until
   * this returns, at @args. Of a kernel with a @param_size a GPU is given the first parts only. */
  bool (*launch_table) (GpuDevice *device, const GpuKernel *kernel, const void *args, const void *table, uint32_t n,
                        GpuExtent extent, void *stream, GError **error);
  /* Calls @func on some thread once the work so far is complete; it must be short and call nothing of the device's. */
  bool (*host_call) (GpuDevice *device, void (*func) (void *data), void *data, void *stream, GError **error);

  /* Gates, for tests. Closing and opening is the host's; hold makes @stream wait for it. */
  bool (*gate_create) (GpuDevice *device, void **gate, GError **error);
  bool (*gate_hold) (GpuDevice *device, void *gate, void *stream, GError **error);
  void (*gate_open) (GpuDevice *device, void *gate);
  void (*gate_destroy) (GpuDevice *device, void *gate); /* no stream waits for it any more */
} GpuDeviceFuncs;

/** How many calls of each sort some of the threads made: counted apart from other threads', since they would take the
 * cache lines from each other with every call. */
typedef struct {
  _Alignas(GPU_CACHE_LINES) atomic_uint_least64_t n[GPU_N_CALLS];
} GpuCallCounts;

typedef struct GpuCache GpuCache;
typedef struct GpuStreamHooks GpuStreamHooks;
typedef struct GpuEventPool GpuEventPool;

/** Embedded at the start of each device's own struct, which gpu_device_init() completes. */
struct GpuDevice {
  const GpuDeviceFuncs *funcs;
  char *name;
  char *description;
  bool is_host;
  unsigned fork_generation; /* of the process that opened it */
  atomic_bool lost;
  atomic_bool failing; /* whether any of fail_skip and fail_count is not zero */

  /* What the layers above hang on the device; each is made on first use by gpu_device_init() and owned by it. */
  GpuEventPool *events;
  GpuCache *cache;
  const GpuStreamHooks *stream_hooks; /* the cache's; see stream-priv.h */
  GpuStream *internal;                /* stands in where no consumer stream is given */
  void *idle_stream;                  /* native; has no work: idle memory is freed on it */
  void *freed_event;                  /* behind frees there; made when first needed */
  atomic_bool freed_is_due;           /* it has been recorded, and not been seen complete */
  _Atomic (GpuCrew *) crew;           /* helps to copy memory of the host's; made when first needed */
  GpuCallCounts *calls;               /* an array; see device.c */

  /* Every thread reads what is above, and some write what is below: it lies on other cache lines. */
  char apart[GPU_CACHE_LINES];
  atomic_uint refs;
  pthread_mutex_t idle_lock;

  /* The first error that made the device lost; every later one begins with its text. */
  pthread_mutex_t lock;
  char *lost_reason;
  GArray *abandoned; /* memory that nobody holds any more and that was not freed; under lock */

  /* Failure injection, by GpuCall. */
  atomic_uint fail_skip[GPU_N_CALLS];
  atomic_uint fail_count[GPU_N_CALLS];

  /* How often the host waited for the device: at all, and because it ran ahead (rules 6, 27). */
  atomic_uint_least64_t host_waits;
  atomic_uint_least64_t throttle_waits;

  /* Other devices (peer.c). */
  uint64_t id;            /* never reused in the process */
  GArray *peers;          /* of what other devices are known; under lock */
  bool no_peer_access;    /* for tests; under lock */
  atomic_uint n_visitors; /* threads that use an event of this device and hold no reference on it */
  pthread_cond_t unvisited;
  _Atomic (GpuStream *) staging; /* copies to pinned memory for devices that cannot read this one's; made when needed */
};

/** Counts the forks between this process and the one that opened its first device: equal numbers, same process. */
unsigned gpu_fork_generation (void);

/** Completes a device whose funcs, name, description and is_host are set. On failure the caller destroys it. */
bool gpu_device_init (GpuDevice *device, GError **error);

/** The devices, each in its file. Returns: (transfer full): a device with one reference, not yet in the registry. */
GpuDevice *gpu_device_cpu_new (const char *name, GpuCpuExecutor executor, uint64_t memory_bytes, GError **error);
GpuDevice *gpu_device_cuda_new (unsigned ordinal, GError **error);
GpuDevice *gpu_device_cuda_new_for_context (void *context, GError **error);
/** How many GPUs there are; 0 with @error set if there is no driver, and 0 without one if it finds none. */
unsigned gpu_device_cuda_count (GError **error);
/** Whether @stream is the per-thread default stream's handle. */
bool gpu_device_cuda_is_per_thread (void *stream);

/** Checks that the device may be used: not lost, same process. */
bool gpu_device_check (GpuDevice *device, GError **error);
/** Makes the device lost, for the reason that @error gives. */
void gpu_device_set_lost (GpuDevice *device, const GError *error);
/** Counts a call of this sort. The wrappers below do it: a device's own file calls it only for calls beyond the seam.
 * Returns: false with @error set if the call is to fail now, as gpu_device_fail() asked. */
bool gpu_device_begin_call (GpuDevice *device, GpuCall call, GError **error);

/* The seam's functions with checks, counts and injected failures; see GpuDeviceFuncs. An error other than a refusal of
 * memory or GPU_ERROR_UNSUPPORTED makes the device lost (rule 24). */
bool gpu_device_alloc (GpuDevice *device, GpuMemoryKind kind, size_t size, size_t alignment, void *stream, void **data,
                       GError **error);
bool gpu_device_free (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size, void *stream, GError **error);
/** Memory that nobody holds any more and that cannot be freed now, since the device, or another one that was reading
 * it, is lost: it goes with the device, if everything turns out to be complete then. */
void gpu_device_abandon (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size);
/** Stream-ordered memory that the host may touch at once: allocated where nothing else is, and waited for. */
bool gpu_device_alloc_complete (GpuDevice *device, size_t size, size_t alignment, void **data, GError **error);
bool gpu_device_free_idle (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size, GError **error);
/** Gives what the device's own pool has in reserve back to the system, down to @keep bytes in all, as far as nobody
 * uses it and its frees were seen complete. Returns: what the pool holds all the same beyond what is in use. */
uint64_t gpu_device_trim (GpuDevice *device, uint64_t keep);
/** Waits for frees of idle memory, which may be behind other streams' work where those share a queue. Returns: whether
 * they are complete. */
bool gpu_device_wait_for_frees (GpuDevice *device);
/** The same without a wait. Returns: whether those before a call with @more are complete, to the one call that finds
 * them so. */
bool gpu_device_see_frees (GpuDevice *device, bool more);
bool gpu_device_pin (GpuDevice *device, void *data, size_t size, GError **error);
void gpu_device_unpin (GpuDevice *device, void *data);
bool gpu_device_stream_create (GpuDevice *device, void **stream, GError **error);
void gpu_device_stream_destroy (GpuDevice *device, void *stream);
bool gpu_device_stream_synchronize (GpuDevice *device, void *stream, GError **error);
/** Waits for everything on the device; counted as a host wait. */
bool gpu_device_synchronize (GpuDevice *device, GError **error);
bool gpu_device_event_create (GpuDevice *device, void **event, GError **error);
void gpu_device_event_destroy (GpuDevice *device, void *event);
bool gpu_device_event_record (GpuDevice *device, void *event, void *stream, GError **error);
GpuStatus gpu_device_event_query (GpuDevice *device, void *event, GError **error);
bool gpu_device_event_synchronize (GpuDevice *device, void *event, GError **error);
/** @owner: the device of @event */
bool gpu_device_stream_wait (GpuDevice *device, void *stream, GpuDevice *owner, void *event, GError **error);
bool gpu_device_copy (GpuDevice *device, const GpuCopy *copy, GpuCopyKind kind, void *stream, GError **error);
bool gpu_device_prefetch (GpuDevice *device, void *data, size_t size, bool to_host, void *stream, GError **error);
bool gpu_device_peer_copy (GpuDevice *device, GpuDevice *source, const GpuCopy *copy, void *stream, GError **error);
bool gpu_device_fill (GpuDevice *device, const GpuCopy *dst_only, uint8_t value, void *stream, GError **error);
bool gpu_device_launch (GpuDevice *device, const GpuKernel *kernel, const void *args, GpuExtent extent, void *stream,
                        GError **error);
bool gpu_device_launch_table (GpuDevice *device, const GpuKernel *kernel, const void *args, const void *table,
                              uint32_t n, GpuExtent extent, void *stream, GError **error);
bool gpu_device_host_call (GpuDevice *device, void (*func) (void *data), void *data, void *stream, GError **error);

/* peer.c: devices among each other. */
void gpu_peers_init (GpuDevice *device);
/** Whether @device can read @source's memory; opens the way at the first question, and says once if there is none.
 * False with @error set if they cannot even wait for each other. */
bool gpu_device_peer_open (GpuDevice *device, GpuDevice *source, bool *direct, GError **error);
/** A thread that has no reference on @device uses one of its events; called where the device cannot go meanwhile. */
void gpu_device_visit (GpuDevice *device);
void gpu_device_leave (GpuDevice *device);
/** Before @device's memory goes: waits until lost devices, which nobody else waits for, are done with it. False if one
 * of them cannot say. */
bool gpu_peers_settle (GpuDevice *device);
/** @device, whose streams have no owners any more, is about to go: other devices' histories, which may name those
 * streams for ever, no longer need it. Waits for work and for visitors. */
void gpu_peers_part (GpuDevice *device);
