/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Frames of another device.
 */
#pragma once

#include "gstgpuframe.h"

G_BEGIN_DECLS

/**
 * gst_gpu_frame_copy_across:
 * @stream: of the device that @dst is on
 * @in: a buffer with a frame of @info, which may be in any memory
 * @is_gpu: whether its caps say device memory, so that the memory says how it is laid out; else caps and metas do
 * @copied: (out): whether the frame was on another device of the same kind, and @stream copies it from there to @dst
 *
 * Does not wait on the host; @in may be let go of at once. What is not copied so, system memory or a device of another
 * kind, is for the caller to copy through the host.
 *
 * Returns: FALSE if @error is set
 */
gboolean gst_gpu_frame_copy_across (GpuStream *stream, GstBuffer *in, const GstGpuFrameInfo *info, gboolean is_gpu,
                                    GpuImage *dst, gboolean *copied, GError **error);

G_END_DECLS
