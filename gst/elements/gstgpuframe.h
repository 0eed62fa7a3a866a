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
void gst_gpu_frame_rectangle (GstBuffer *buffer, const GstGpuFrameInfo *info, GstVideoRectangle *rectangle);

/** Returns: (transfer full): that part, or the tensor, as an image, or NULL with @error set. Its GstVideoMeta must say
 * what the memory's own layout is. */
GpuImage *gst_gpu_frame_ref_image (GstBuffer *buffer, const GstGpuFrameInfo *info, GError **error);

/**
 * GstGpuHostFrame:
 * @data: sample (0, 0) of plane i is at data + spec.offset[i]
 * @spec: how what @info speaks of is laid out there
 *
 * A frame in host memory.
 */
typedef struct {
  guint8 *data;
  GpuImageSpec spec;
  /*< private >*/
  GstBuffer *buffer;
  GstVideoFrame video; /* of pictures */
  GstMapInfo map;      /* of tensors */
} GstGpuHostFrame;

/** Maps that part of @buffer for the host. Ends with gst_gpu_frame_unmap_host(). FALSE if @error is set. */
gboolean gst_gpu_frame_map_host (GstGpuHostFrame *frame, const GstGpuFrameInfo *info, GstBuffer *buffer,
                                 GstMapFlags flags, GError **error);
void gst_gpu_frame_unmap_host (GstGpuHostFrame *frame);

G_END_DECLS
