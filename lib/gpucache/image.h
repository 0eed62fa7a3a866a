/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Images: descriptors over allocations of the cache or over memory of someone else's, views of them, and the access
 * protocol that keeps work on different streams in order.
 */
#pragma once

#include <gpucache/format.h>
#include <gpucache/stream.h>
#include <gpucache/types.h>

G_BEGIN_DECLS

/**
 * GpuAcquireFlags:
 * @GPU_ACQUIRE_HOST: the host touches the memory next, so it is handed out complete (rule 5). Implied by managed and
 *   pinned memory.
 */
typedef enum {
  GPU_ACQUIRE_DEFAULT = 0,
  GPU_ACQUIRE_HOST = 1 << 0,
} GpuAcquireFlags;

/**
 * gpu_image_acquire:
 * @device: where
 * @spec: the shape
 * @kind: the kind of memory
 * @stream: (nullable): the consumer stream: the one that will write first
 * @flags: see there
 * @error: (nullable): GPU_ERROR_OUT_OF_MEMORY, GPU_ERROR_INVALID (a stream of another device, an invalid spec),
 *   GPU_ERROR_DEVICE_LOST
 *
 * Takes an image from the cache by rules 4 to 7; its bytes are undefined. Never waits for the device, except by
 * rule 13 when the driver refuses memory.
 *
 * Returns: (transfer full): the image, or NULL. The last gpu_image_unref() gives the memory back to the cache.
 */
GPU_API GpuImage *gpu_image_acquire (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, GpuStream *stream,
                                     GpuAcquireFlags flags, GError **error);

/** Called once, with no lock held, when a wrapped image has no observer and every access to it is complete. */
typedef void (*GpuReleaseFunc) (void *user_data);

/**
 * gpu_image_wrap:
 * @data: an address of @device's, valid until @release is called
 * @stream: (nullable): the stream that its owner last wrote on; without one the device is waited for on the host
 *   (counted)
 * @release: (nullable): see GpuReleaseFunc; on failure of this function it is not called
 *
 * An image over memory of someone else's. It is not counted, limited or retained (rule 1).
 *
 * Returns: (transfer full): the image, or NULL with @error set
 */
GPU_API GpuImage *gpu_image_wrap (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, void *data,
                                  GpuStream *stream, GpuReleaseFunc release, void *user_data, GError **error);

/**
 * gpu_image_view:
 *
 * A rectangle of @image as an image of its own, which keeps the memory live. For subsampled formats an
 * odd @x or @y takes the chroma sample that the first pixel lies in, which then counts for that pixel and the next: the
 * view's chroma lies a pixel off, as if the picture had been cut by GStreamer's videocrop.
 *
 * Returns: (transfer full): the view, or NULL with @error set
 */
GPU_API GpuImage *
gpu_image_view (GpuImage *image, uint32_t x, uint32_t y, uint32_t width, uint32_t height, GError **error);

/**
 * gpu_image_view_as:
 * @image: an image
 * @offset: where in its memory, in bytes from gpu_image_data()
 * @spec: what is there, inside @image's own size
 *
 * The same memory taken for something else, for frames of a layout that their memory was not acquired with. The view
 * keeps the memory live and shares its history.
 *
 * Returns: (transfer full): the view, or NULL with @error set
 */
GPU_API GpuImage *gpu_image_view_as (GpuImage *image, size_t offset, const GpuImageSpec *spec, GError **error);

GPU_API GpuImage *gpu_image_ref (GpuImage *image);
GPU_API void gpu_image_unref (GpuImage *image);

GPU_API GpuDevice *gpu_image_device (const GpuImage *image);
GPU_API GpuMemoryKind gpu_image_kind (const GpuImage *image);

/** The image's shape; offsets are from gpu_image_data(). Owned by the image. */
GPU_API const GpuImageSpec *gpu_image_spec (const GpuImage *image);

/** The device address of the image's memory: add a plane's offset to reach its first sample. Touch it on the device
 * between gpu_image_begin_access() and gpu_image_end_access() only. */
GPU_API void *gpu_image_data (const GpuImage *image);

/** Bytes of the allocation behind the image, which may be more than its spec's size; what rule 9 counts. */
GPU_API size_t gpu_image_capacity (const GpuImage *image);

/**
 * gpu_image_begin_access:
 *
 * Makes later work of @stream wait for every access to @image that conflicts: the last write, and for a write the reads
 * since (rule 19). No host wait. Work on the image may then be submitted to @stream.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_image_begin_access (GpuImage *image, GpuStream *stream, GpuAccessFlags flags, GError **error);

/**
 * gpu_image_end_access:
 *
 * Enters what the caller submitted to @stream since gpu_image_begin_access() in the image's history. Call it also if
 * the submission failed halfway.
 *
 * Returns: false if @error is set; the access is entered all the same
 */
GPU_API bool gpu_image_end_access (GpuImage *image, GpuStream *stream, GpuAccessFlags flags, GError **error);

/**
 * gpu_image_end_export:
 * @image: (transfer full): the reference that somebody who knows nothing of this library had, through a native handle
 *   (DLPack, a CUDA array interface)
 * @streams: the streams that it was used on, wrapped; none means that nobody knows
 * @flags: what was done with it
 *
 * Ends an export (rule 2): enters its accesses on @streams, or, since a handle names no stream, waits on the host for
 * the whole device (counted), and drops the reference. Until then the export keeps the image live.
 *
 * Returns: false if @error is set, also for a stream of another device, which is waited for on the host; the reference
 * is dropped all the same
 */
GPU_API bool gpu_image_end_export (GpuImage *image, GpuStream *const *streams, unsigned n_streams, GpuAccessFlags flags,
                                   GError **error);

/**
 * gpu_image_wait:
 *
 * Waits on the host until the image may be touched there: for the last write, and before writing for all accesses.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_image_wait (GpuImage *image, GpuAccessFlags flags, GError **error);

/** Whether gpu_image_wait() would return at once; asks the device if need be. */
GPU_API bool gpu_image_is_complete (GpuImage *image, GpuAccessFlags flags);

/**
 * gpu_image_copy:
 *
 * Copies the visible samples of @src to @dst on @stream, plane by plane; same format, width and height, any strides and
 * memory kinds. Both may be in pinned host memory; neither may be touched by the host until it is complete.
 *
 * @src may be of another device than @stream and @dst (rule 26). The copy then waits for the other device's events,
 * goes directly where the driver allows that, else through pinned memory of @src's device, which is said once in the
 * log, and keeps @src's memory from reuse until it is complete. No host wait either way. Copies between devices of
 * different kinds are refused with GPU_ERROR_UNSUPPORTED; a loss of @src's device is an error here, but no loss of
 * @stream's.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_image_copy (GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error);

/** Fills the samples of @image with the byte @value on @stream. False if @error is set. */
GPU_API bool gpu_image_fill (GpuStream *stream, GpuImage *image, uint8_t value, GError **error);

/**
 * gpu_image_copy_from_host: / gpu_image_copy_to_host:
 * @host: memory of the host's laid out as @host_spec says; pageable or pinned
 *
 * Copies the visible samples and returns when @host may be reused or read: this is a host wait (counted), for callers
 * with plain memory. Use gpu_image_copy() with pinned memory to avoid it.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_image_copy_from_host (GpuStream *stream, GpuImage *image, const void *host,
                                       const GpuImageSpec *host_spec, GError **error);
GPU_API bool
gpu_image_copy_to_host (GpuStream *stream, GpuImage *image, void *host, const GpuImageSpec *host_spec, GError **error);

G_END_DECLS
