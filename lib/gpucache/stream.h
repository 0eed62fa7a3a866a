/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Streams: work in issue order on a device. The cache compares positions in streams instead of asking the device.
 */
#pragma once

#include <gpucache/types.h>

G_BEGIN_DECLS

/**
 * gpu_stream_new:
 * @device: a device
 * @own_scope: whether images acquired on the stream form a scope of the cache of their own (rule 14), which ends with
 *   the stream; else they belong to the acquiring thread's
 *
 * Returns: (transfer full): a new stream that does not synchronise with the NULL stream, or NULL with @error set
 */
GPU_API GpuStream *gpu_stream_new (GpuDevice *device, bool own_scope, GError **error);

/**
 * gpu_stream_wrap_cuda:
 * @cuda_stream: a CUstream of @device's context, NULL for the NULL stream; the per-thread default stream is refused
 *
 * A stream on which others submit too. It must stay valid until the last reference is dropped; wrapping one handle
 * twice while the first wrap lives gives the same stream. An event is recorded at each access (rule 22).
 *
 * Returns: (transfer full): the stream, or NULL with @error set
 */
GPU_API GpuStream *gpu_stream_wrap_cuda (GpuDevice *device, void *cuda_stream, GError **error);

GPU_API GpuStream *gpu_stream_ref (GpuStream *stream);

/**
 * gpu_stream_unref:
 *
 * The last reference records a last event and destroys the stream (one that was wrapped is only let go of). Memory
 * that was used on it stays safe: what is pending there is reused or freed when it is complete.
 */
GPU_API void gpu_stream_unref (GpuStream *stream);

GPU_API GpuDevice *gpu_stream_device (GpuStream *stream);

/** A number that no other stream of the process ever has or had (rule 23); never 0. */
GPU_API uint64_t gpu_stream_id (GpuStream *stream);

/** The CUstream of a CUDA device's stream; NULL of another device's. */
GPU_API void *gpu_stream_cuda_stream (GpuStream *stream);

/** Waits on the host until all that was submitted is complete (counted as a host wait). False if @error is set. */
GPU_API bool gpu_stream_synchronize (GpuStream *stream, GError **error);

/** Makes later work of @stream wait for what has been submitted to @other so far. False if @error is set. */
GPU_API bool gpu_stream_wait_stream (GpuStream *stream, GpuStream *other, GError **error);

/**
 * GpuPoint:
 *
 * A position in a stream: after its @number-th submission. Zero-initialised it stands for "nothing to wait for".
 * It holds its stream's record, not the stream itself.
 */
typedef struct {
  GpuStream *stream;
  uint64_t number;
} GpuPoint;

/** Sets @point, which is zero-initialised or holds an earlier one, to what @stream has been given so far, and records
 * an event there, so that waiting for it does not wait for later work. False if @error is set. */
GPU_API bool gpu_point_mark (GpuPoint *point, GpuStream *stream, GError **error);

/** Lets go of what @point holds and zeroes it. */
GPU_API void gpu_point_clear (GpuPoint *point);

/** Whether all work up to @point is known to be complete; asks the device if need be; never waits. */
GPU_API bool gpu_point_is_complete (const GpuPoint *point);

/** Waits on the host for the work up to @point. False if @error is set. */
GPU_API bool gpu_point_wait (const GpuPoint *point, GError **error);

/**
 * GpuThrottle:
 *
 * Bounds how far the host runs ahead of the device (rule 27): one for each user of streams, not thread-safe.
 */
typedef struct GpuThrottle GpuThrottle;

/** @depth: frames in flight, at least 1. Returns: (transfer full): the throttle. */
GPU_API GpuThrottle *gpu_throttle_new (unsigned depth);
GPU_API void gpu_throttle_free (GpuThrottle *throttle);
GPU_API void gpu_throttle_set_depth (GpuThrottle *throttle, unsigned depth);

/** Before submitting a frame: waits (counted in throttle-waits) for the work of the depth-th last one; from a depth of
 * 4 on perhaps for the one after it, too, with which it may share an event. If the device of that is lost, there is
 * nothing to wait for; submitting more to it fails. */
GPU_API bool gpu_throttle_begin (GpuThrottle *throttle, GError **error);

/** After submitting a frame to @stream. */
GPU_API bool gpu_throttle_end (GpuThrottle *throttle, GpuStream *stream, GError **error);

G_END_DECLS
