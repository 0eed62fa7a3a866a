/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Colorimetry; see the header.
 */
#include "gstgpucolor.h"

/* Caps can say that the matrix is unknown, or RGB's; the default of the format and size then stands in for it. */
static GstVideoColorMatrix
definite_matrix (const GstVideoInfo *info)
{
  GstVideoInfo defaults;

  if (info->colorimetry.matrix != GST_VIDEO_COLOR_MATRIX_UNKNOWN &&
      info->colorimetry.matrix != GST_VIDEO_COLOR_MATRIX_RGB)
    return info->colorimetry.matrix;
  if (!gst_video_info_set_format (&defaults, GST_VIDEO_INFO_FORMAT (info), (guint)GST_VIDEO_INFO_WIDTH (info),
                                  (guint)GST_VIDEO_INFO_HEIGHT (info)))
    return GST_VIDEO_COLOR_MATRIX_BT601;
  return defaults.colorimetry.matrix;
}

static gboolean
set_matrix (GpuColorimetry *colorimetry, const GstVideoInfo *info, GError **error)
{
  g_autofree gchar *text = NULL;

  switch (definite_matrix (info)) {
  case GST_VIDEO_COLOR_MATRIX_BT709:
    colorimetry->matrix = GPU_MATRIX_BT709;
    return TRUE;
  case GST_VIDEO_COLOR_MATRIX_BT601:
    colorimetry->matrix = GPU_MATRIX_BT601;
    return TRUE;
  case GST_VIDEO_COLOR_MATRIX_BT2020:
    colorimetry->matrix = GPU_MATRIX_BT2020;
    return TRUE;
  default:
    text = gst_video_colorimetry_to_string (&info->colorimetry);
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "%s frames with colorimetry=%s cannot be converted: use a matrix of bt601, bt709 or bt2020.",
                 GST_VIDEO_INFO_NAME (info), text ? text : "unknown");
    return FALSE;
  }
}

static gboolean
set_chroma_site (GpuColorimetry *colorimetry, const GstVideoInfo *info, GError **error)
{
  switch ((guint)GST_VIDEO_INFO_CHROMA_SITE (info)) {
  case GST_VIDEO_CHROMA_SITE_UNKNOWN:
  case GST_VIDEO_CHROMA_SITE_JPEG:
    colorimetry->chroma_site = GPU_CHROMA_SITE_CENTER;
    return TRUE;
  case GST_VIDEO_CHROMA_SITE_MPEG2:
    colorimetry->chroma_site = GPU_CHROMA_SITE_LEFT;
    return TRUE;
  case GST_VIDEO_CHROMA_SITE_COSITED:
    colorimetry->chroma_site = GPU_CHROMA_SITE_TOP_LEFT;
    return TRUE;
  default: {
    g_autofree gchar *text = gst_video_chroma_site_to_string (GST_VIDEO_INFO_CHROMA_SITE (info));

    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "%s frames with chroma-site=%s cannot be converted: use jpeg, mpeg2 or cosited.",
                 GST_VIDEO_INFO_NAME (info), text ? text : "unknown");
    return FALSE;
  }
  }
}

gboolean
gst_gpu_colorimetry_from_video_info (GpuColorimetry *colorimetry, const GstVideoInfo *info, GError **error)
{
  *colorimetry = (GpuColorimetry){.range = GPU_RANGE_DEFAULT};
  if (info->colorimetry.range == GST_VIDEO_COLOR_RANGE_0_255)
    colorimetry->range = GPU_RANGE_FULL;
  else if (info->colorimetry.range == GST_VIDEO_COLOR_RANGE_16_235)
    colorimetry->range = GPU_RANGE_LIMITED;

  if (GST_VIDEO_INFO_IS_RGB (info))
    return TRUE;
  return set_matrix (colorimetry, info, error) &&
         (!GST_VIDEO_INFO_IS_YUV (info) || set_chroma_site (colorimetry, info, error));
}
