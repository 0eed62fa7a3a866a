/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What becomes of a frame's metas: what only belongs to the picture goes on, regions follow the picture, and what
 * depends on memory, or on a size, orientation or colours that change, does not.
 */
#include "gstgpubasetransform-priv.h"

#include "gstgpuframe.h"

#include <string.h>

static gboolean
may_be_copied (GType api, gboolean geometry_changes, gboolean colours_change)
{
  const gchar *const *tags = gst_meta_api_type_get_tags (api);

  for (; tags && *tags; tags++) {
    if (!strcmp (*tags, GST_META_TAG_VIDEO_STR) ||
        (!colours_change && !strcmp (*tags, GST_META_TAG_VIDEO_COLORSPACE_STR)))
      continue;
    if (!geometry_changes &&
        (!strcmp (*tags, GST_META_TAG_VIDEO_SIZE_STR) || !strcmp (*tags, GST_META_TAG_VIDEO_ORIENTATION_STR)))
      continue;
    return FALSE;
  }
  return TRUE;
}

static gboolean
colours_change (GstGpuBaseTransform *self)
{
  const GstVideoInfo *in = gst_gpu_base_transform_in_info (self), *out = gst_gpu_base_transform_out_info (self);

  return GST_VIDEO_INFO_FORMAT (in) != GST_VIDEO_INFO_FORMAT (out) || in->chroma_site != out->chroma_site ||
         !gst_video_colorimetry_is_equal (&in->colorimetry, &out->colorimetry);
}

/* The rectangle lies in the input's whole picture; of that only the crop rectangle goes on. */
static void
add_region (GstGpuBaseTransform *self, GstBuffer *out, const GstVideoRegionOfInterestMeta *region, GstBuffer *in)
{
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  GstVideoRegionOfInterestMeta *copy;
  GstVideoRectangle crop, picked;
  gint64 x0, y0, x1, y1;

  gst_gpu_frame_rectangle (in, gst_gpu_base_transform_in_frame_info (self), &crop);
  x0 = MAX ((gint64)region->x - crop.x, 0);
  y0 = MAX ((gint64)region->y - crop.y, 0);
  x1 = MIN ((gint64)region->x + region->w - crop.x, crop.w);
  y1 = MIN ((gint64)region->y + region->h - crop.y, crop.h);
  if (x1 <= x0 || y1 <= y0)
    return;

  picked = (GstVideoRectangle){(gint)x0, (gint)y0, (gint)(x1 - x0), (gint)(y1 - y0)};
  if (klass->map_rectangle)
    klass->map_rectangle (self, crop.w, crop.h, &picked);

  copy = gst_buffer_add_video_region_of_interest_meta_id (out, region->roi_type, (guint)picked.x, (guint)picked.y,
                                                          (guint)picked.w, (guint)picked.h);
  copy->id = region->id;
  copy->parent_id = region->parent_id;
  copy->params = g_list_copy_deep (region->params, (GCopyFunc)(void (*) (void))gst_structure_copy, NULL);
}

/* A GstVideoMeta describes memory, so it is never copied. GStreamer finds that out by a look-up of the type's tags,
 * under a lock that all threads of the process share. */
static gboolean
has_more_than_layout (GstBuffer *buffer)
{
  gpointer state = NULL;
  GstMeta *meta;

  while ((meta = gst_buffer_iterate_meta (buffer, &state)))
    if (meta->info->api != GST_VIDEO_META_API_TYPE)
      return TRUE;
  return FALSE;
}

gboolean
gst_gpu_base_transform_copy_metadata (GstBaseTransform *trans, GstBuffer *in, GstBuffer *out)
{
  if (has_more_than_layout (in) || !gst_buffer_is_writable (out))
    return gst_gpu_base_transform_parent ()->copy_metadata (trans, in, out);
  if (!gst_buffer_copy_into (out, in, GST_BUFFER_COPY_FLAGS | GST_BUFFER_COPY_TIMESTAMPS, 0, (gsize)-1))
    return FALSE;
  /* As the base class does for who knows nothing of gaps: what is made of one has something in it. */
  GST_BUFFER_FLAG_UNSET (out, GST_BUFFER_FLAG_TAG_MEMORY | GST_BUFFER_FLAG_GAP);
  return TRUE;
}

gboolean
gst_gpu_base_transform_transform_meta (GstBaseTransform *trans, GstBuffer *out, GstMeta *meta, GstBuffer *in)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GType api = meta->info->api;

  if (api == GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE) {
    add_region (self, out, (const GstVideoRegionOfInterestMeta *)meta, in);
    return FALSE;
  }
  /* A crop rectangle changes the geometry, so its own meta stays behind, too. */
  return may_be_copied (api,
                        GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->map_rectangle != NULL ||
                            gst_buffer_get_video_crop_meta (in) != NULL,
                        colours_change (self));
}
