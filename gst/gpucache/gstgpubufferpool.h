/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuBufferPool: buffers whose memory comes from the device's cache at each acquire and goes back at each release.
 */
#pragma once

#include <gpucache/gstgpuallocator.h>

#include <gst/video/gstvideopool.h>

G_BEGIN_DECLS

/**
 * GstGpuBufferPool:
 *
 * Configure it like any video pool: caps, size, min and max buffers, allocation params and these options:
 *
 * - %GST_BUFFER_POOL_OPTION_VIDEO_META: buffers carry a #GstVideoMeta with the strides used in any case
 * - %GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT: padding and alignment are kept exactly; what they came to is in the config
 *   afterwards
 *
 * The size is decided by the layout and is in the config afterwards. Without VIDEO_ALIGNMENT, device memory is laid out
 * with rows at multiples of %GPU_DEFAULT_ALIGNMENT, pinned memory as #GstVideoInfo lays it out, and so managed memory
 * under caps of system memory. Tensors (other/tensors, see #GstGpuFrameInfo) have neither padding nor a #GstVideoMeta.
 * Other caps give rows of bytes of the size in the config.
 *
 * Who acquires a buffer, or maps it on the host, is not told why it cannot be had when there is no memory or the device
 * has failed. The signal `failed`, with a #GError, tells whoever offered or chose the pool. It is emitted in the thread
 * that asked, and not for gst_gpu_buffer_pool_acquire_on().
 *
 * The maximum counts buffers that are in use. The minimum is a number of frames that starting the pool makes sure the
 * cache has at hand; none of them is reserved for the pool.
 *
 * Since: 0.1
 */
#define GST_TYPE_GPU_BUFFER_POOL (gst_gpu_buffer_pool_get_type ())
GPU_API
G_DECLARE_FINAL_TYPE (GstGpuBufferPool, gst_gpu_buffer_pool, GST, GPU_BUFFER_POOL, GstBufferPool)

/**
 * GST_GPU_BUFFER_POOL_ACQUIRE_STREAM:
 *
 * The params are a #GstGpuBufferPoolAcquireParams whose stream counts.
 *
 * Since: 0.1
 */
#define GST_GPU_BUFFER_POOL_ACQUIRE_STREAM GST_BUFFER_POOL_ACQUIRE_FLAG_LAST

/**
 * GstGpuBufferPoolAcquireParams:
 * @parent: its flags must have %GST_GPU_BUFFER_POOL_ACQUIRE_STREAM
 * @stream: (nullable): the stream that writes the frame first; %NULL for one of the pool's own
 * @error: (nullable): set if the cache has no memory
 *
 * Since: 0.1
 */
typedef struct {
  GstBufferPoolAcquireParams parent;
  GpuStream *stream;
  GError **error;
} GstGpuBufferPoolAcquireParams;

/**
 * gst_gpu_buffer_pool_new:
 * @device: (transfer none): a device
 *
 * Returns: (transfer full): a pool of @device
 *
 * Since: 0.1
 */
GPU_API GstBufferPool *gst_gpu_buffer_pool_new (GpuDevice *device);

/**
 * gst_gpu_buffer_pool_new_with_kind:
 * @device: (transfer none): a device
 * @kind: the kind of memory, unless a config names another
 *
 * With %GPU_MEMORY_HOST it is a pool of system memory for software, which any element may use: frames lie in pinned
 * memory that @device reads and writes by itself, laid out exactly as software asks. gpuupload offers such a pool and
 * gpudownload fills one. A frame that is let go of while the device still reads it is handed out again only when that
 * is over, without anybody waiting.
 *
 * Returns: (transfer full): a pool of @device
 *
 * Since: 0.1
 */
GPU_API GstBufferPool *gst_gpu_buffer_pool_new_with_kind (GpuDevice *device, GpuMemoryKind kind);

/**
 * gst_gpu_buffer_pool_get_kind:
 * @pool: a pool
 *
 * Returns: the kind of memory that its config came to, or what it was made with before there is one
 *
 * Since: 0.1
 */
GPU_API GpuMemoryKind gst_gpu_buffer_pool_get_kind (GstGpuBufferPool *pool);

/**
 * gst_gpu_buffer_pool_get_device:
 * @pool: a pool
 *
 * Returns: (transfer none): its device
 *
 * Since: 0.1
 */
GPU_API GpuDevice *gst_gpu_buffer_pool_get_device (GstGpuBufferPool *pool);

/**
 * gst_gpu_buffer_pool_config_set_memory_kind:
 * @config: a pool's config
 * @kind: the kind of memory; unless set, what the pool was made with
 *
 * Since: 0.1
 */
GPU_API void gst_gpu_buffer_pool_config_set_memory_kind (GstStructure *config, GpuMemoryKind kind);

/**
 * gst_gpu_buffer_pool_config_get_memory_kind:
 * @config: a pool's config
 *
 * Returns: the kind of memory
 *
 * Since: 0.1
 */
GPU_API GpuMemoryKind gst_gpu_buffer_pool_config_get_memory_kind (const GstStructure *config);

/**
 * gst_gpu_buffer_pool_acquire_on:
 * @pool: an active pool
 * @stream: (nullable): the stream that writes the frame first
 * @buffer: (out) (transfer full): the buffer
 * @error: why the cache has no memory
 *
 * Acquires for work on @stream, so that a frame last used there can be had while the device is still busy with it.
 *
 * Returns: as gst_buffer_pool_acquire_buffer(); #GST_FLOW_ERROR with @error set if the cache has no memory
 *
 * Since: 0.1
 */
GPU_API GstFlowReturn gst_gpu_buffer_pool_acquire_on (GstGpuBufferPool *pool, GpuStream *stream, GstBuffer **buffer,
                                                      GError **error);

G_END_DECLS
