/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Frames under system caps in memory of the library's; see the header.
 */
#include "gstgpuhostframe.h"

/* Where planes begin in the memory's root, and how far their rows are apart. */
typedef struct {
  gsize width, height;
  gsize offset[GST_VIDEO_MAX_PLANES];
  gint stride[GST_VIDEO_MAX_PLANES];
} Layout;

static void
get_layout (GstBuffer *buffer, GstMemory *memory, const GstGpuFrameInfo *info, Layout *layout)
{
  const GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);
  const GpuImageSpec *spec = &info->spec;

  layout->width = meta ? meta->width : spec->width;
  layout->height = meta ? meta->height : spec->height;
  for (guint i = 0; i < gpu_format_info (spec->format)->n_planes; i++) {
    layout->offset[i] = memory->offset + (meta ? meta->offset[i] : spec->offset[i]);
    layout->stride[i] = meta ? meta->stride[i] : (gint)spec->stride[i];
  }
}

/* As gst_gpu_frame_map_host(): a rectangle's planes begin at its first samples, and the lowest one at the image's
 * address. */
static gboolean
describe (const Layout *layout, const GstVideoRectangle *rectangle, GpuFormat format, gsize *base, GpuImageSpec *spec)
{
  const GpuFormatInfo *format_info = gpu_format_info (format);
  gsize stride[GPU_MAX_PLANES] = {0}, offset[GPU_MAX_PLANES] = {0};

  if (rectangle->x < 0 || rectangle->y < 0 || rectangle->w <= 0 || rectangle->h <= 0 ||
      (gsize)rectangle->x + (gsize)rectangle->w > layout->width ||
      (gsize)rectangle->y + (gsize)rectangle->h > layout->height)
    return FALSE;
  *base = G_MAXSIZE;
  for (guint i = 0; i < format_info->n_planes; i++) {
    const GpuPlaneInfo *plane = &format_info->plane[i];

    if (layout->stride[i] < 0)
      return FALSE;
    stride[i] = (gsize)layout->stride[i];
    offset[i] = layout->offset[i] + ((gsize)rectangle->y >> plane->h_shift) * stride[i] +
                ((gsize)rectangle->x >> plane->w_shift) * plane->pixel_bytes;
    *base = MIN (*base, offset[i]);
  }
  for (guint i = 0; i < format_info->n_planes; i++)
    offset[i] -= *base;
  return gpu_image_spec_init_full (spec, format, (guint)rectangle->w, (guint)rectangle->h, stride, offset, 0, NULL);
}

static GpuImage *
ref_picture (GstBuffer *buffer, GstMemory *memory, const GstGpuFrameInfo *info)
{
  const GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);
  GstVideoRectangle rectangle;
  GpuImageSpec spec;
  Layout layout;
  gsize base;

  if (meta ? meta->format != GST_VIDEO_INFO_FORMAT (&info->video) : memory->size < info->spec.size)
    return NULL;
  get_layout (buffer, memory, info, &layout);
  gst_gpu_frame_rectangle (buffer, info, &rectangle);
  if (!describe (&layout, &rectangle, info->spec.format, &base, &spec) || base - memory->offset > memory->size ||
      spec.size > memory->size - (base - memory->offset))
    return NULL;
  return gpu_image_view_as (gst_gpu_memory_get_image (memory), base, &spec, NULL);
}

GpuImage *
gst_gpu_host_frame_ref_image (GstBuffer *buffer, const GstGpuFrameInfo *info, GpuDevice *device)
{
  GstMemory *memory = gst_gpu_frame_memory (buffer);

  if (!memory || !gst_gpu_memory_is_host_addressable (memory) ||
      (device && gpu_image_device (gst_gpu_memory_get_image (memory)) != device))
    return NULL;
  if (!gst_gpu_frame_info_is_tensor (info))
    return ref_picture (buffer, memory, info);
  return memory->size < info->spec.size
             ? NULL
             : gpu_image_view_as (gst_gpu_memory_get_image (memory), memory->offset, &info->spec, NULL);
}

gboolean
gst_gpu_host_frame_is_image (GstBuffer *buffer, const GstGpuFrameInfo *info, const GpuImage *image)
{
  GpuImage *described = gst_gpu_host_frame_ref_image (buffer, info, NULL);
  const GpuImageSpec *spec = gpu_image_spec (image), *wanted;
  gboolean same;

  if (!described)
    return FALSE;
  wanted = gpu_image_spec (described);
  same = spec->width == wanted->width && spec->height == wanted->height;
  for (guint i = 0; same && i < gpu_format_info (spec->format)->n_planes; i++)
    same = spec->stride[i] == wanted->stride[i] && (guint8 *)gpu_image_data (image) + spec->offset[i] ==
                                                       (guint8 *)gpu_image_data (described) + wanted->offset[i];
  gpu_image_unref (described);
  return same;
}

gboolean
gst_gpu_host_frame_is_plain (GstBuffer *buffer, const GstGpuFrameInfo *info, gboolean takes_meta)
{
  GstMemory *memory = gst_gpu_frame_memory (buffer);
  const GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);

  if (!memory || !gst_gpu_memory_is_host_addressable (memory) || gst_buffer_get_video_crop_meta (buffer))
    return FALSE;
  if (takes_meta && meta)
    return TRUE;
  if (memory->size != info->spec.size)
    return FALSE;
  for (guint i = 0; meta && i < meta->n_planes; i++)
    if (meta->stride[i] != (gint)info->spec.stride[i] || meta->offset[i] != info->spec.offset[i])
      return FALSE;
  return TRUE;
}

gboolean
gst_gpu_host_frame_mark (GpuStream *stream, GError **error)
{
  GpuPoint point = {0};
  gboolean marked = gpu_point_mark (&point, stream, error);

  gpu_point_clear (&point);
  return marked;
}
