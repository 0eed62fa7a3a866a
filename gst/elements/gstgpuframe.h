/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The frame in a buffer: as an image of the library's where its memory is the device's, else as mapped host memory.
 */
#pragma once

#include <gpucache/gstgpucache.h>

#include <gst/video/video.h>

G_BEGIN_DECLS

/** Returns: (transfer none) (nullable): the one memory of @buffer if it is the library's. */
GstMemory *gst_gpu_frame_memory (GstBuffer *buffer);

/** The part of @buffer that its caps' @info speak of: the rectangle of its GstVideoCropMeta, else the whole picture. */
void gst_gpu_frame_rectangle (GstBuffer *buffer, const GstVideoInfo *info, GstVideoRectangle *rectangle);

/** Returns: (transfer full): that part as an image, or NULL with @error set. Its GstVideoMeta must say what the
 * memory's own layout is. */
GpuImage *gst_gpu_frame_ref_image (GstBuffer *buffer, const GstVideoInfo *info, GError **error);

/** Maps @buffer for the host and describes that part of it: sample (0, 0) of plane i is at *data + spec->offset[i].
 * Ends with gst_video_frame_unmap(). FALSE if @error is set. */
gboolean gst_gpu_frame_map_host (GstVideoFrame *frame, const GstVideoInfo *info, GstBuffer *buffer, GstMapFlags flags,
                                 GpuImageSpec *spec, void **data, GError **error);

G_END_DECLS
