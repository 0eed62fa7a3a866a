/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Copies between the device and frames in memory that is not the library's.
 *
 * Memory of a pool comes again and again: once it has come a few times it is pinned where it is, for as long as it
 * lives, and from then on the device copies from and to it by itself. Where memory often went soon after that it has to
 * come more often first. Other memory, and what cannot be pinned, goes through pinned memory in slices.
 */
#pragma once

#include "gstgpuframe.h"

G_BEGIN_DECLS

/**
 * gst_gpu_plain_frame_upload:
 * @buffer: what @info speaks of, mapped and held until it has been read, which may be after this function
 *
 * Returns: FALSE if @error is set
 */
gboolean gst_gpu_plain_frame_upload (GpuStream *stream, GstBuffer *buffer, const GstGpuFrameInfo *info, GpuImage *dst,
                                     GError **error);

/** Copies @src, and returns when @buffer holds it. FALSE if @error is set. */
gboolean gst_gpu_plain_frame_download (GpuStream *stream, GpuImage *src, GstBuffer *buffer, const GstGpuFrameInfo *info,
                                       GError **error);

G_END_DECLS
