/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For tests of programs that use the library: gates that hold a stream, a CPU device whose work runs as late as the
 * rules allow, and device calls that fail on demand. Not for production.
 */
#pragma once

#include <gpucache/types.h>

G_BEGIN_DECLS

/** Holds streams until it is opened. Works on every device. */
typedef struct GpuGate GpuGate;

/** Returns: (transfer full): a closed gate, or NULL with @error set. */
GPU_API GpuGate *gpu_gate_new (GpuDevice *device, GError **error);

/** Work submitted to @stream after this runs only when @gate is open. Counts as a submission. */
GPU_API bool gpu_gate_hold (GpuGate *gate, GpuStream *stream, GError **error);
GPU_API void gpu_gate_open (GpuGate *gate);

/** Opens the gate, waits until no stream needs it any more, frees it. */
GPU_API void gpu_gate_free (GpuGate *gate);

/**
 * GpuCpuExecutor:
 * @GPU_CPU_THREADS: one worker thread a stream
 * @GPU_CPU_LAZY: no threads: work runs only when something must wait for it, as late as its waits allow, and only what
 *   that wait needs
 */
typedef enum {
  GPU_CPU_THREADS,
  GPU_CPU_LAZY,
} GpuCpuExecutor;

/**
 * gpu_cpu_device_new:
 * @name: such as "cpu:7"; not looked up and not shared
 * @memory_bytes: what the device says it has in all; allocations beyond it are refused. 0 means the host's memory.
 *
 * Memory is filled with 0xA5 in stream order when it is allocated and when it is freed, so that a use that comes too
 * early or too late reads or leaves wrong bytes.
 *
 * Returns: (transfer full): a new CPU device of its own
 */
GPU_API GpuDevice *gpu_cpu_device_new (const char *name, GpuCpuExecutor executor, uint64_t memory_bytes);

/** On the lazy executor: runs up to @steps commands that could run now, picked by @seed. Returns how many ran. */
GPU_API unsigned gpu_cpu_device_run (GpuDevice *device, unsigned steps, uint32_t seed);

/**
 * GpuCall:
 *
 * A device call that can be made to fail. ALLOC includes pinning in place; EVENT_WAIT is every wait of the host, for an
 * event or a whole stream; STREAM_WAIT one stream's wait for another; COPY includes fills, LAUNCH host functions.
 */
typedef enum {
  GPU_CALL_ALLOC,
  GPU_CALL_FREE,
  GPU_CALL_STREAM_CREATE,
  GPU_CALL_EVENT_CREATE,
  GPU_CALL_EVENT_RECORD,
  GPU_CALL_EVENT_QUERY,
  GPU_CALL_EVENT_WAIT,
  GPU_CALL_STREAM_WAIT,
  GPU_CALL_COPY,
  GPU_CALL_LAUNCH,
} GpuCall;

#define GPU_N_CALLS 10

/**
 * gpu_device_fail:
 *
 * Any device: after @skip more calls of that sort, the next @count ones fail, allocation as a refusal
 * (GPU_ERROR_OUT_OF_MEMORY), others as GPU_ERROR_DEVICE_LOST. The driver is not called for them.
 */
GPU_API void gpu_device_fail (GpuDevice *device, GpuCall call, unsigned skip, unsigned count);

/** How many calls of that sort the device has been given so far: what "no driver call" is asserted with. */
GPU_API uint64_t gpu_device_calls (GpuDevice *device, GpuCall call);

/** From now on @device acts as if the driver let it read no other device's memory: images come through pinned memory.
 */
GPU_API void gpu_device_forbid_peer_access (GpuDevice *device, bool forbid);

/** Walks every structure of the device's cache and asserts its invariants; aborts with a message on the first that is
 * broken. Slow. */
GPU_API void gpu_cache_check (GpuDevice *device);

G_END_DECLS
