/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The frame in a buffer; see the header.
 */
#include "gstgpuframe.h"

GstMemory *
gst_gpu_frame_memory (GstBuffer *buffer)
{
  GstMemory *memory;

  if (gst_buffer_n_memory (buffer) != 1)
    return NULL;
  memory = gst_buffer_peek_memory (buffer, 0);
  return gst_is_gpu_memory (memory) ? memory : NULL;
}

void
gst_gpu_frame_rectangle (GstBuffer *buffer, const GstGpuFrameInfo *info, GstVideoRectangle *rectangle)
{
  const GstVideoCropMeta *crop = gst_buffer_get_video_crop_meta (buffer);

  *rectangle = (GstVideoRectangle){.w = (gint)info->spec.width, .h = (gint)info->spec.height};
  if (crop && !gst_gpu_frame_info_is_tensor (info))
    *rectangle = (GstVideoRectangle){(gint)crop->x, (gint)crop->y, (gint)crop->width, (gint)crop->height};
}

static gboolean
check_rectangle (const GstVideoRectangle *rectangle, guint width, guint height, GError **error)
{
  if (rectangle->x >= 0 && rectangle->y >= 0 && rectangle->w > 0 && rectangle->h > 0 &&
      (guint64)rectangle->x + (guint64)rectangle->w <= width && (guint64)rectangle->y + (guint64)rectangle->h <= height)
    return TRUE;

  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "The rectangle %dx%d at (%d, %d) does not lie in the frame of %ux%u: check caps and GstVideoCropMeta of "
               "the element upstream.",
               rectangle->w, rectangle->h, rectangle->x, rectangle->y, width, height);
  return FALSE;
}

static gboolean
check_layout (GstBuffer *buffer, GstMemory *memory, const GpuImageSpec *spec, GError **error)
{
  const GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);

  if (memory->offset > 0) {
    g_set_error_literal (
        error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
        "A part of a frame's memory was sent as a frame: send the whole memory with a GstVideoCropMeta "
        "instead.");
    return FALSE;
  }
  if (!meta)
    return TRUE;
  for (guint i = 0; i < meta->n_planes; i++) {
    if (meta->stride[i] >= 0 && (gsize)meta->stride[i] == spec->stride[i] && meta->offset[i] == spec->offset[i])
      continue;
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "The GstVideoMeta says that plane %u has stride %d at offset %" G_GSIZE_FORMAT
                 ", but its memory was laid out with stride %" G_GSIZE_FORMAT " at offset %" G_GSIZE_FORMAT
                 ": allocate the frame with the layout that it is to have.",
                 i, meta->stride[i], meta->offset[i], spec->stride[i], spec->offset[i]);
    return FALSE;
  }
  return TRUE;
}

/* A tensor has no layout but its own. */
static GpuImage *
ref_tensor (GpuImage *image, const GpuImageSpec *wanted, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (image);

  if (spec->width == wanted->width && spec->height == wanted->height && spec->channels == wanted->channels)
    return gpu_image_ref (image);
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "A tensor's memory holds %u channels of %ux%u although its caps say %u of %ux%u: allocate it for the "
               "dimensions of the caps.",
               spec->channels, spec->width, spec->height, wanted->channels, wanted->width, wanted->height);
  return NULL;
}

static GpuImage *
ref_picture (GstBuffer *buffer, GpuImage *image, const GstGpuFrameInfo *info, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (image);
  GstVideoRectangle rectangle;

  gst_gpu_frame_rectangle (buffer, info, &rectangle);
  if (!check_rectangle (&rectangle, spec->width, spec->height, error))
    return NULL;
  if ((guint)rectangle.w == spec->width && (guint)rectangle.h == spec->height)
    return gpu_image_ref (image);
  return gpu_image_view (image, (guint)rectangle.x, (guint)rectangle.y, (guint)rectangle.w, (guint)rectangle.h, error);
}

GpuImage *
gst_gpu_frame_ref_image (GstBuffer *buffer, const GstGpuFrameInfo *info, GError **error)
{
  GstMemory *memory = gst_gpu_frame_memory (buffer);
  GpuImage *image;
  const GpuImageSpec *spec;

  if (!memory) {
    g_set_error_literal (error, GPU_ERROR, GPU_ERROR_INVALID,
                         "A frame came in system memory although its caps say " GST_CAPS_FEATURE_MEMORY_GPU_CACHE
                         ": put gpuupload in front.");
    return NULL;
  }
  image = gst_gpu_memory_get_image (memory);
  spec = gpu_image_spec (image);
  if (spec->format != info->spec.format) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A frame's memory holds %s although its caps say %s: allocate it for the format of the caps.",
                 gpu_format_info (spec->format)->name, gpu_format_info (info->spec.format)->name);
    return NULL;
  }
  if (!check_layout (buffer, memory, spec, error))
    return NULL;
  return gst_gpu_frame_info_is_tensor (info) ? ref_tensor (image, &info->spec, error)
                                             : ref_picture (buffer, image, info, error);
}

/* Planes may be in several memories, so offsets are counted from the lowest address. */
static gboolean
describe_host (const GstVideoFrame *frame, GpuFormat format, const GstVideoRectangle *rectangle, GpuImageSpec *spec,
               guint8 **data, GError **error)
{
  const GpuFormatInfo *format_info = gpu_format_info (format);
  guintptr address[GPU_MAX_PLANES], base = UINTPTR_MAX;
  gsize stride[GPU_MAX_PLANES] = {0}, offset[GPU_MAX_PLANES] = {0};

  for (guint i = 0; i < format_info->n_planes; i++) {
    const GpuPlaneInfo *plane = &format_info->plane[i];

    if (GST_VIDEO_FRAME_PLANE_STRIDE (frame, i) < 0) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                   "Plane %u has the negative stride %d: put videoconvert in front to turn its rows around.", i,
                   GST_VIDEO_FRAME_PLANE_STRIDE (frame, i));
      return FALSE;
    }
    stride[i] = (gsize)GST_VIDEO_FRAME_PLANE_STRIDE (frame, i);
    address[i] = (guintptr)GST_VIDEO_FRAME_PLANE_DATA (frame, i) + ((gsize)rectangle->y >> plane->h_shift) * stride[i] +
                 ((gsize)rectangle->x >> plane->w_shift) * plane->pixel_bytes;
    base = MIN (base, address[i]);
  }
  for (guint i = 0; i < format_info->n_planes; i++)
    offset[i] = address[i] - base;

  *data = (guint8 *)base;
  return gpu_image_spec_init_full (spec, format, (guint)rectangle->w, (guint)rectangle->h, stride, offset, 0, error);
}

static gboolean
map_tensor (GstGpuHostFrame *host, const GstGpuFrameInfo *info, GstMapFlags flags, GError **error)
{
  if (gst_buffer_get_size (host->buffer) != info->spec.size) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A buffer of %" G_GSIZE_FORMAT " bytes is no %s of %u channels of %ux%u, which has %" G_GSIZE_FORMAT
                 ": check the caps' types and dimensions.",
                 gst_buffer_get_size (host->buffer), gpu_format_info (info->spec.format)->name, info->spec.channels,
                 info->spec.width, info->spec.height, info->spec.size);
    return FALSE;
  }
  if (!gst_buffer_map (host->buffer, &host->map, flags)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A tensor of %" G_GSIZE_FORMAT " bytes could not be mapped: its buffer does not allow it.",
                 info->spec.size);
    return FALSE;
  }
  host->data = host->map.data;
  host->spec = info->spec;
  return TRUE;
}

static gboolean
map_picture (GstGpuHostFrame *host, const GstGpuFrameInfo *info, GstMapFlags flags, GError **error)
{
  GstVideoFrame *frame = &host->video;
  GstVideoRectangle rectangle;

  /* The video library says so with a critical warning only. */
  if (!gst_buffer_get_video_meta (host->buffer) &&
      gst_buffer_get_size (host->buffer) < GST_VIDEO_INFO_SIZE (&info->video)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A buffer of %" G_GSIZE_FORMAT " bytes is too small for a frame of %" G_GSIZE_FORMAT
                 " bytes: is the input truncated?",
                 gst_buffer_get_size (host->buffer), GST_VIDEO_INFO_SIZE (&info->video));
    return FALSE;
  }
  if (!gst_video_frame_map (frame, &info->video, host->buffer, flags)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A frame of %dx%d could not be mapped: its buffer of %" G_GSIZE_FORMAT
                 " bytes is too small or does not allow it.",
                 GST_VIDEO_INFO_WIDTH (&info->video), GST_VIDEO_INFO_HEIGHT (&info->video),
                 gst_buffer_get_size (host->buffer));
    return FALSE;
  }
  gst_gpu_frame_rectangle (host->buffer, info, &rectangle);
  if (check_rectangle (&rectangle, (guint)GST_VIDEO_FRAME_WIDTH (frame), (guint)GST_VIDEO_FRAME_HEIGHT (frame),
                       error) &&
      describe_host (frame, gst_gpu_format_from_video_format (GST_VIDEO_FRAME_FORMAT (frame)), &rectangle, &host->spec,
                     &host->data, error))
    return TRUE;

  gst_video_frame_unmap (frame);
  return FALSE;
}

gboolean
gst_gpu_frame_map_host (GstGpuHostFrame *frame, const GstGpuFrameInfo *info, GstBuffer *buffer, GstMapFlags flags,
                        GError **error)
{
  frame->buffer = buffer;
  return gst_gpu_frame_info_is_tensor (info) ? map_tensor (frame, info, flags, error)
                                             : map_picture (frame, info, flags, error);
}

void
gst_gpu_frame_unmap_host (GstGpuHostFrame *frame)
{
  if (gpu_format_info (frame->spec.format)->is_tensor)
    gst_buffer_unmap (frame->buffer, &frame->map);
  else
    gst_video_frame_unmap (&frame->video);
}
