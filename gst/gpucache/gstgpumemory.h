/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuMemory: a GstMemory whose bytes are a GpuImage's.
 */
#pragma once

#include <gpucache/gpucache.h>

#include <gst/gst.h>
#include <gst/video/video.h>

G_BEGIN_DECLS

/**
 * GST_CAPS_FEATURE_MEMORY_GPU_CACHE:
 *
 * The caps feature of buffers whose memory is #GstGpuMemory.
 *
 * Since: 0.1
 */
#define GST_CAPS_FEATURE_MEMORY_GPU_CACHE "memory:GPUCache"

/**
 * GST_MAP_GPU:
 *
 * Map for work on the device: the pointer is a device address. Work on it goes on the memory's stream, between map and
 * unmap; neither of them waits on the host. One bit above %GST_MAP_FLAG_LAST, which is the video library's
 * %GST_VIDEO_FRAME_MAP_FLAG_NO_REF.
 *
 * Since: 0.1
 */
#define GST_MAP_GPU ((GstMapFlags)(GST_MAP_FLAG_LAST << 1))
#define GST_MAP_READ_GPU ((GstMapFlags)(GST_MAP_READ | GST_MAP_GPU))
#define GST_MAP_WRITE_GPU ((GstMapFlags)(GST_MAP_WRITE | GST_MAP_GPU))

/**
 * GST_GPU_MEMORY_TYPE:
 *
 * The memory type name of #GstGpuAllocator.
 *
 * Since: 0.1
 */
#define GST_GPU_MEMORY_TYPE "GpuCacheMemory"

/**
 * GST_GPU_HOST_MEMORY_TYPE:
 *
 * The memory type name of allocators of pinned memory.
 *
 * Since: 0.1
 */
#define GST_GPU_HOST_MEMORY_TYPE "GpuCacheHostMemory"

/**
 * GstGpuMemory:
 *
 * One video frame, one tensor, or a row of bytes, in cached device memory, or in pinned or managed memory of the same
 * cache. Get at it with the functions below, which are thread-safe. Its last reference gives the memory back to the
 * cache, on any thread.
 *
 * Pinned memory is ordinary system memory to whoever maps it, and its bytes are there when the map returns: a map waits
 * for the copy that fills it, and for nothing else. Its last reference may go while the device still reads it.
 *
 * A map without %GST_MAP_GPU gives a host address and waits until the frame may be touched there. Where the host cannot
 * address the memory it goes through one pinned copy of the frame, which is filled at the first map, unless nothing can
 * have been written yet, and copied back when the last map for writing ends. Strides and offsets are the same on both
 * sides; what rows hold beyond their samples is undefined.
 *
 * While one side (host or device) has the memory mapped for writing the other side's maps are refused, and while one
 * has it mapped for reading the other's maps for writing are. Map bits that are not known are ignored.
 *
 * Since: 0.1
 */
typedef struct _GstGpuMemory GstGpuMemory;

/**
 * gst_is_gpu_memory:
 * @memory: (nullable): a #GstMemory
 *
 * Returns: whether @memory is a #GstGpuMemory or a share of one
 *
 * Since: 0.1
 */
GPU_API gboolean gst_is_gpu_memory (GstMemory *memory);

/**
 * gst_gpu_memory_get_image:
 * @memory: a #GstGpuMemory
 *
 * The image for work on the device, which orders its own accesses. From then on the memory counts as written.
 *
 * Returns: (transfer none): the image, valid while @memory is. Shares of a memory give their root's image.
 *
 * Since: 0.1
 */
GPU_API GpuImage *gst_gpu_memory_get_image (GstMemory *memory);

/**
 * gst_gpu_memory_get_kind:
 * @memory: a #GstGpuMemory
 *
 * Returns: the kind of memory that it is
 *
 * Since: 0.1
 */
GPU_API GpuMemoryKind gst_gpu_memory_get_kind (GstMemory *memory);

/**
 * gst_gpu_memory_is_host_addressable:
 * @memory: a #GstGpuMemory
 *
 * Returns: whether maps on the host give the memory itself and not a copy: it is pinned, managed, or the CPU device's
 *
 * Since: 0.1
 */
GPU_API gboolean gst_gpu_memory_is_host_addressable (GstMemory *memory);

/**
 * gst_gpu_memory_get_stream:
 * @memory: a #GstGpuMemory
 *
 * Returns: (transfer none): the stream that work mapped with %GST_MAP_GPU goes on: the one it was acquired on, or the
 *   last one set
 *
 * Since: 0.1
 */
GPU_API GpuStream *gst_gpu_memory_get_stream (GstMemory *memory);

/**
 * gst_gpu_memory_set_stream:
 * @memory: a #GstGpuMemory that is not mapped
 * @stream: (transfer none): a stream of its device
 *
 * Names another stream for maps and for elements that adopt the frame's stream. Work on the new stream waits for what
 * was done on the old one as soon as it is mapped or submitted; this function itself orders nothing.
 *
 * Since: 0.1
 */
GPU_API void gst_gpu_memory_set_stream (GstMemory *memory, GpuStream *stream);

/**
 * gst_gpu_memory_get_video_info:
 * @memory: a #GstGpuMemory
 *
 * Returns: (transfer none) (nullable): how the frame is laid out, with its strides and offsets; %NULL if it was not
 *   allocated as video
 *
 * Since: 0.1
 */
GPU_API const GstVideoInfo *gst_gpu_memory_get_video_info (GstMemory *memory);

/**
 * gst_gpu_memory_map_on:
 * @memory: a #GstGpuMemory
 * @stream: the stream that the work goes on, of the memory's device
 * @flags: %GST_MAP_READ, %GST_MAP_WRITE or both
 * @data: (out): the device address of the memory's first byte
 *
 * As gst_memory_map() with %GST_MAP_GPU, but for work on @stream. Ends with gst_gpu_memory_unmap_on() with the same
 * arguments.
 *
 * Returns: %FALSE if it is mapped otherwise or waiting for earlier accesses failed; the log says why
 *
 * Since: 0.1
 */
GPU_API gboolean gst_gpu_memory_map_on (GstMemory *memory, GpuStream *stream, GstMapFlags flags, gpointer *data);

/**
 * gst_gpu_memory_unmap_on:
 * @memory: a #GstGpuMemory
 * @stream: the stream it was mapped on
 * @flags: the flags it was mapped with
 *
 * Ends gst_gpu_memory_map_on(): later accesses wait for what was submitted to @stream until now.
 *
 * Since: 0.1
 */
GPU_API void gst_gpu_memory_unmap_on (GstMemory *memory, GpuStream *stream, GstMapFlags flags);

/**
 * gst_gpu_memory_wrap:
 * @device: the device
 * @info: format, size, strides and offsets of the frame; its size in bytes is what may be touched from @data on
 * @data: (transfer none): device address that the offsets count from
 * @stream: (nullable): the stream that its owner last wrote on; without one the device is waited for on the host
 * @notify: (nullable): called when nothing uses it any more (see #GpuReleaseFunc); not if this function fails
 * @user_data: for @notify
 * @error: (nullable): %GPU_ERROR_INVALID or %GPU_ERROR_UNSUPPORTED if @info or @stream cannot be taken
 *
 * Returns: (transfer full): a memory over @data of an application's, laid out as @info says, or %NULL with @error set
 *
 * Since: 0.1
 */
GPU_API GstMemory *gst_gpu_memory_wrap (GpuDevice *device, const GstVideoInfo *info, gpointer data, GpuStream *stream,
                                        GDestroyNotify notify, gpointer user_data, GError **error);

/**
 * gst_gpu_image_spec_from_video_info:
 * @spec: (out): filled in
 * @info: format, size, strides and offsets
 * @error: (nullable): %GPU_ERROR_UNSUPPORTED if the library has no such format or a stride is negative,
 *   %GPU_ERROR_INVALID if strides, offsets and size do not fit together
 *
 * Takes the layout over as it is.
 *
 * Returns: %FALSE if @error is set
 *
 * Since: 0.1
 */
GPU_API gboolean gst_gpu_image_spec_from_video_info (GpuImageSpec *spec, const GstVideoInfo *info, GError **error);

/**
 * gst_gpu_format_from_video_format: / gst_gpu_format_to_video_format:
 *
 * Returns: the format of that name on the other side, or the unknown one
 *
 * Since: 0.1
 */
GPU_API GpuFormat gst_gpu_format_from_video_format (GstVideoFormat format);
GPU_API GstVideoFormat gst_gpu_format_to_video_format (GpuFormat format);

G_END_DECLS
