/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Between images and memory of the host's that nobody pinned, and hints about memory that both sides touch.
 */
#pragma once

#include <gpucache/image.h>
#include <gpucache/pin.h>

G_BEGIN_DECLS

/**
 * gpu_image_upload:
 * @stream: a stream of @image's device
 * @image: the destination
 * @host: memory laid out as @host_spec says: same format, width and height
 *
 * Copies the visible samples and returns when @host may be written or freed. On a GPU they go through pinned memory of
 * the cache in slices, some on their way over the bus while others are being copied to there, by several threads: the
 * device is not waited for. If no pinned memory can be had, or where the device is the host, it is
 * gpu_image_copy_from_host(). Memory that is pinned already goes faster by gpu_image_copy().
 *
 * Returns: false if @error is set
 */
GPU_API bool
gpu_image_upload (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec, GError **error);

/**
 * gpu_image_download:
 *
 * The other way: returns when @host holds the samples, which is one host wait (counted).
 *
 * Returns: false if @error is set
 */
GPU_API bool
gpu_image_download (GpuStream *stream, GpuImage *image, void *host, const GpuImageSpec *host_spec, GError **error);

/**
 * gpu_image_upload_pinned:
 * @host: memory that its owner lets nobody write to until @release is called
 * @pin: the pages of it that are pinned for @image's device
 * @release: called once: when @host has been read, on some thread, or at once if nothing comes of the copy
 *
 * gpu_image_upload() straight from @host, in the background: nobody waits. What lies in other pages goes through a
 * little pinned memory of the cache.
 *
 * Returns: false if @error is set
 */
GPU_API bool
gpu_image_upload_pinned (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec,
                         GpuPin *pin, GpuReleaseFunc release, void *user_data, GError **error);

/**
 * gpu_image_download_pinned:
 * @release: called once: before this returns, unless the device is lost and may still be writing to @host
 *
 * gpu_image_download() straight to @host, likewise; returns when @host holds the samples, which is one host wait
 * (counted).
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_image_download_pinned (GpuStream *stream, GpuImage *image, void *host, const GpuImageSpec *host_spec,
                                        GpuPin *pin, GpuReleaseFunc release, void *user_data, GError **error);

/**
 * GpuSide:
 *
 * Who touches memory next.
 */
typedef enum {
  GPU_SIDE_DEVICE,
  GPU_SIDE_HOST,
} GpuSide;

/**
 * gpu_image_prefetch:
 * @stream: a stream of @image's device: what is on it so far comes first
 * @side: who touches the image next
 *
 * Has the pages of managed memory moved there, so that they are not fetched one by one when they are touched. A hint:
 * memory of other kinds stays where it is. No host wait.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_image_prefetch (GpuStream *stream, GpuImage *image, GpuSide side, GError **error);

G_END_DECLS
