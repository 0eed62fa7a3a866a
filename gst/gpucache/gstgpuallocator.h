/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuAllocator: makes GstGpuMemory from a device's cache. It holds the device, so memory may outlive everything.
 */
#pragma once

#include <gpucache/gstgpumemory.h>

G_BEGIN_DECLS

/**
 * GstGpuAllocator:
 *
 * Makes #GstGpuMemory. gst_allocator_alloc() on it gives rows of bytes (GRAY8, one row high); frames come from
 * gst_gpu_allocator_alloc_video() or a #GstGpuBufferPool.
 *
 * The signal `failed`, with a #GError, says why memory of it could not be mapped on the host when its device has
 * failed, which who maps it is not told. It is emitted in the thread that maps.
 *
 * Since: 0.1
 */
#define GST_TYPE_GPU_ALLOCATOR (gst_gpu_allocator_get_type ())
GPU_API
G_DECLARE_FINAL_TYPE (GstGpuAllocator, gst_gpu_allocator, GST, GPU_ALLOCATOR, GstAllocator)

/**
 * gst_gpu_allocator_new:
 * @device: (transfer none): a device
 *
 * Returns: (transfer full): an allocator of @device
 *
 * Since: 0.1
 */
GPU_API GstAllocator *gst_gpu_allocator_new (GpuDevice *device);

/**
 * gst_gpu_allocator_new_with_kind:
 * @device: (transfer none): a device
 * @kind: the kind of memory that gst_allocator_alloc() gives
 *
 * With %GPU_MEMORY_HOST it is an allocator of pinned memory for software: what it gives is system memory that @device
 * reads and writes by itself, so that gpuupload need not copy it first.
 *
 * Returns: (transfer full): an allocator of @device
 *
 * Since: 0.1
 */
GPU_API GstAllocator *gst_gpu_allocator_new_with_kind (GpuDevice *device, GpuMemoryKind kind);

/**
 * gst_gpu_allocator_get_device:
 * @allocator: an allocator
 *
 * Returns: (transfer none): its device
 *
 * Since: 0.1
 */
GPU_API GpuDevice *gst_gpu_allocator_get_device (GstGpuAllocator *allocator);

/**
 * gst_gpu_allocator_alloc_video:
 * @allocator: an allocator
 * @info: format and size
 * @keep_layout: whether @info's strides and offsets are taken, too; else they are the cache's
 * @kind: the kind of memory
 * @stream: (nullable): the stream that writes first; %NULL for one of the allocator's own
 * @error: (nullable): as gpu_image_acquire(), and %GPU_ERROR_UNSUPPORTED if the library has no such format
 *
 * The bytes of the frame are undefined. Thread-safe.
 *
 * Returns: (transfer full): one memory for the frame, or %NULL with @error set. Its layout is
 *   gst_gpu_memory_get_video_info().
 *
 * Since: 0.1
 */
GPU_API GstMemory *
gst_gpu_allocator_alloc_video (GstGpuAllocator *allocator, const GstVideoInfo *info, gboolean keep_layout,
                               GpuMemoryKind kind, GpuStream *stream, GError **error);

/**
 * gst_gpu_allocator_take_image:
 * @allocator: an allocator of @image's device
 * @image: (transfer full): an image, such as one of a batch
 * @info: (nullable): of pictures, how @image is laid out
 * @stream: (transfer none): the stream that work on it goes on
 *
 * Returns: (transfer full): a memory over @image
 *
 * Since: 0.1
 */
GPU_API GstMemory *
gst_gpu_allocator_take_image (GstGpuAllocator *allocator, GpuImage *image, const GstVideoInfo *info, GpuStream *stream);

G_END_DECLS
