/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Frames under system caps that are in memory of the library's: pinned, managed, or the CPU device's.
 */
#pragma once

#include "gstgpuframe.h"

G_BEGIN_DECLS

/**
 * gst_gpu_host_frame_ref_image:
 *
 * What gst_gpu_frame_map_host() describes, as an image for work on @device, or where that is NULL on whatever device it
 * is of, without waiting for what is still being written there.
 *
 * Returns: (transfer full) (nullable): the image; NULL if @buffer is in other memory or cannot be taken as it is
 */
GpuImage *gst_gpu_host_frame_ref_image (GstBuffer *buffer, const GstGpuFrameInfo *info, GpuDevice *device);

/** Whether @image, which gst_gpu_frame_ref_image() gave for @buffer, is what caps and metas of system memory describe.
 * Who leaves the GstVideoMeta away means the caps' layout, whatever that of the memory is. */
gboolean gst_gpu_host_frame_is_image (GstBuffer *buffer, const GstGpuFrameInfo *info, const GpuImage *image);

/** Whether plain software can take the memory of @buffer, a frame on the device, as @info says or, with @takes_meta, as
 * its GstVideoMeta says. */
gboolean gst_gpu_host_frame_is_plain (GstBuffer *buffer, const GstGpuFrameInfo *info, gboolean takes_meta);

/** Records an event after what @stream was given so far: who waits for that waits for nothing that comes later. FALSE
 * if
 * @error is set. */
gboolean gst_gpu_host_frame_mark (GpuStream *stream, GError **error);

G_END_DECLS
