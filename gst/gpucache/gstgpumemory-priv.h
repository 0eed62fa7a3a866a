/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What memory, allocator and pool know of each other.
 */
#pragma once

#include <gpucache/gstgpuallocator.h>

G_BEGIN_DECLS

/** Sets the memory type and GstAllocator's functions on memories, from its instance initialiser. */
void gst_gpu_memory_init_allocator (GstAllocator *allocator);

/**
 * gst_gpu_memory_new:
 * @image: (transfer full): the image
 * @stream: (transfer none): the stream that work on it goes on
 * @info: (nullable): the layout if it is video, which is @image's
 * @maxsize: bytes, of which @size from @offset on are valid
 */
GstMemory *gst_gpu_memory_new (GstGpuAllocator *allocator, GpuImage *image, GpuStream *stream, const GstVideoInfo *info,
                               gsize maxsize, gsize align, gsize offset, gsize size);
void gst_gpu_memory_free (GstMemory *memory);

/** For a pool, which keeps the memory's descriptor with its empty buffer: making one costs as much as the image. The
 * buffer is handed out with the memory as it is now. */
void gst_gpu_memory_hand_out (GstMemory *memory);
/** Gives the image back to the cache; the stream stays. FALSE if somebody else has the memory, has it mapped or left
 * something on it: then it cannot be used again. */
gboolean gst_gpu_memory_empty (GstMemory *memory);
/** The opposite, with another @image (transfer full) of the same shape. */
void gst_gpu_memory_fill (GstMemory *memory, GpuImage *image, GpuStream *stream, gsize size);

/** The memory counts as written from now on: a map on the host copies it in. */
void gst_gpu_memory_set_touched (GstMemory *memory);

/** Returns: (transfer full): an allocator of @device, the same one for all who hold it at a time. */
GstGpuAllocator *gst_gpu_allocator_ref_shared (GpuDevice *device);

/** Emits `failed`. */
void gst_gpu_allocator_failed (GstGpuAllocator *allocator, const GError *error);

/** Returns: (transfer none): the stream that stands in where none is given, or NULL with @error set. */
GpuStream *gst_gpu_allocator_get_stream (GstGpuAllocator *allocator, GError **error);

/** As gst_gpu_allocator_alloc_video() for a shape that was worked out already; @info's layout is @spec's. */
GstMemory *gst_gpu_allocator_alloc_spec (GstGpuAllocator *allocator, const GpuImageSpec *spec, const GstVideoInfo *info,
                                         GpuMemoryKind kind, GpuStream *stream, GError **error);

/** @size bytes in a row, or NULL with @error set. */
GstMemory *gst_gpu_allocator_alloc_bytes (GstGpuAllocator *allocator, gsize size, GpuMemoryKind kind, GpuStream *stream,
                                          GError **error);

/** The shape of @size bytes in a row. FALSE if @error is set. */
gboolean gst_gpu_bytes_spec (GpuImageSpec *spec, gsize size, gsize alignment, GError **error);

/** The shape that the cache gives to frames as @info describes, its own strides and offsets aside. */
gboolean
gst_gpu_image_spec_for_video_info (GpuImageSpec *spec, const GstVideoInfo *info, gsize alignment, GError **error);

/** Takes strides, offsets and size over from @spec. FALSE with @error set if a stride is more than GstVideoInfo takes.
 */
gboolean gst_gpu_video_info_take_layout (GstVideoInfo *info, const GpuImageSpec *spec, GError **error);

G_END_DECLS
