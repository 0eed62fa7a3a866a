/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a frame's numbers mean: colorimetry and chroma-site of caps as the library's GpuColorimetry.
 */
#pragma once

#include <gpucache/gstgpucache.h>

#include <gst/video/video.h>

G_BEGIN_DECLS

/**
 * gst_gpu_colorimetry_from_video_info:
 * @colorimetry: (out): filled in
 * @info: of caps; what they leave open has the default that GStreamer gave it, by format and height
 * @error: (nullable): names the field of the caps whose value the library cannot convert
 *
 * Primaries and transfer function are not looked at: the library leaves them as they are.
 *
 * Returns: FALSE if @error is set
 */
gboolean gst_gpu_colorimetry_from_video_info (GpuColorimetry *colorimetry, const GstVideoInfo *info, GError **error);

G_END_DECLS
