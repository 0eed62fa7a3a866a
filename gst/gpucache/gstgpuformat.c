/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Formats and layouts: GstVideoInfo on one side, GpuImageSpec on the other.
 */
#include "gstgpumemory-priv.h"

static const GstVideoFormat video_formats[GPU_N_FORMATS] = {
    [GPU_FORMAT_UNKNOWN] = GST_VIDEO_FORMAT_UNKNOWN,
    [GPU_FORMAT_GRAY8] = GST_VIDEO_FORMAT_GRAY8,
    [GPU_FORMAT_RGB] = GST_VIDEO_FORMAT_RGB,
    [GPU_FORMAT_BGR] = GST_VIDEO_FORMAT_BGR,
    [GPU_FORMAT_RGBA] = GST_VIDEO_FORMAT_RGBA,
    [GPU_FORMAT_BGRA] = GST_VIDEO_FORMAT_BGRA,
    [GPU_FORMAT_ARGB] = GST_VIDEO_FORMAT_ARGB,
    [GPU_FORMAT_ABGR] = GST_VIDEO_FORMAT_ABGR,
    [GPU_FORMAT_RGBX] = GST_VIDEO_FORMAT_RGBx,
    [GPU_FORMAT_BGRX] = GST_VIDEO_FORMAT_BGRx,
    [GPU_FORMAT_XRGB] = GST_VIDEO_FORMAT_xRGB,
    [GPU_FORMAT_XBGR] = GST_VIDEO_FORMAT_xBGR,
    [GPU_FORMAT_NV12] = GST_VIDEO_FORMAT_NV12,
    [GPU_FORMAT_I420] = GST_VIDEO_FORMAT_I420,
    [GPU_FORMAT_P010_10LE] = GST_VIDEO_FORMAT_P010_10LE,
    [GPU_FORMAT_RGBP] = GST_VIDEO_FORMAT_RGBP,
    [GPU_FORMAT_GBR] = GST_VIDEO_FORMAT_GBR,
};

GpuFormat
gst_gpu_format_from_video_format (GstVideoFormat format)
{
  for (guint i = 0; i < GPU_N_FORMATS; i++)
    if (video_formats[i] == format)
      return (GpuFormat)i;
  return GPU_FORMAT_UNKNOWN;
}

GstVideoFormat
gst_gpu_format_to_video_format (GpuFormat format)
{
  return (guint)format < GPU_N_FORMATS ? video_formats[format] : GST_VIDEO_FORMAT_UNKNOWN;
}

static gboolean
parse_video_info (const GstVideoInfo *info, GpuFormat *format, guint *width, guint *height, GError **error)
{
  *format = info->finfo ? gst_gpu_format_from_video_format (GST_VIDEO_INFO_FORMAT (info)) : GPU_FORMAT_UNKNOWN;
  if (*format == GPU_FORMAT_UNKNOWN) {
    g_set_error (
        error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
        "The video format %s cannot be kept in device memory: convert it to one that can, such as NV12 or RGBA",
        info->finfo ? GST_VIDEO_INFO_NAME (info) : "that was not set");
    return FALSE;
  }
  if (GST_VIDEO_INFO_WIDTH (info) < 1 || GST_VIDEO_INFO_FIELD_HEIGHT (info) < 1) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A frame of %dx%d pixels is empty: its width and height must be set", GST_VIDEO_INFO_WIDTH (info),
                 GST_VIDEO_INFO_FIELD_HEIGHT (info));
    return FALSE;
  }
  *width = (guint)GST_VIDEO_INFO_WIDTH (info);
  /* With interlace-mode=alternate a buffer is one field. */
  *height = (guint)GST_VIDEO_INFO_FIELD_HEIGHT (info);
  return TRUE;
}

gboolean
gst_gpu_image_spec_from_video_info (GpuImageSpec *spec, const GstVideoInfo *info, GError **error)
{
  GpuFormat format;
  guint width, height;
  gsize stride[GPU_MAX_PLANES] = {0}, offset[GPU_MAX_PLANES] = {0};

  g_return_val_if_fail (spec != NULL, FALSE);
  g_return_val_if_fail (info != NULL, FALSE);

  if (!parse_video_info (info, &format, &width, &height, error))
    return FALSE;
  for (guint i = 0; i < GST_VIDEO_INFO_N_PLANES (info); i++) {
    if (GST_VIDEO_INFO_PLANE_STRIDE (info, i) < 0) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                   "Plane %u has a stride of %d bytes: rows must follow each other downwards in memory", i,
                   GST_VIDEO_INFO_PLANE_STRIDE (info, i));
      return FALSE;
    }
    stride[i] = (gsize)GST_VIDEO_INFO_PLANE_STRIDE (info, i);
    offset[i] = GST_VIDEO_INFO_PLANE_OFFSET (info, i);
  }
  return gpu_image_spec_init_full (spec, format, width, height, stride, offset, GST_VIDEO_INFO_SIZE (info), error);
}

gboolean
gst_gpu_image_spec_for_video_info (GpuImageSpec *spec, const GstVideoInfo *info, gsize alignment, GError **error)
{
  GpuFormat format;
  guint width, height;

  return parse_video_info (info, &format, &width, &height, error) &&
         gpu_image_spec_init (spec, format, width, height, alignment, error);
}

gboolean
gst_gpu_bytes_spec (GpuImageSpec *spec, gsize size, gsize alignment, GError **error)
{
  if (size > G_MAXINT32) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A row of %" G_GSIZE_FORMAT " bytes is too long: a memory without a video format has at most %d", size,
                 G_MAXINT32);
    return FALSE;
  }
  /* There is no image of no pixels, but there are memories of no bytes. */
  return gpu_image_spec_init (spec, GPU_FORMAT_GRAY8, MAX ((guint32)size, 1), 1, alignment, error);
}

gboolean
gst_gpu_video_info_take_layout (GstVideoInfo *info, const GpuImageSpec *spec, GError **error)
{
  for (guint i = 0; i < GST_VIDEO_INFO_N_PLANES (info); i++) {
    if (spec->stride[i] > G_MAXINT) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                   "A frame %u pixels wide has rows of %" G_GSIZE_FORMAT " bytes, more than GStreamer can describe",
                   spec->width, spec->stride[i]);
      return FALSE;
    }
    GST_VIDEO_INFO_PLANE_STRIDE (info, i) = (gint)spec->stride[i];
    GST_VIDEO_INFO_PLANE_OFFSET (info, i) = spec->offset[i];
  }
  GST_VIDEO_INFO_SIZE (info) = spec->size;
  return TRUE;
}
