/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which memory a GstGpuBaseTransform's frames are in: pools of the device under the device's caps, whatever downstream
 * says (G5), and the peer's or an ordinary video pool under system caps.
 */
#include "gstgpubasetransform-priv.h"

#include <gst/video/gstvideopool.h>

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

gboolean
gst_gpu_caps_are_gpu (GstCaps *caps)
{
  return gst_caps_get_size (caps) > 0 &&
         gst_caps_features_contains (gst_caps_get_features (caps, 0), GST_CAPS_FEATURE_MEMORY_GPU_CACHE);
}

GstCaps *
gst_gpu_caps_with_feature (GstCaps *caps, const gchar *feature)
{
  GstCaps *result = gst_caps_copy (caps);

  gst_caps_set_features_simple (result, gst_caps_features_new (feature, NULL));
  return result;
}

GstCaps *
gst_gpu_caps_filter (GstCaps *caps, GstCaps *filter)
{
  GstCaps *result;

  if (!filter)
    return caps;
  result = gst_caps_intersect_full (filter, caps, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (caps);
  return result;
}

/* Caps that say nothing about colours have a default that depends on the size. Where that would change, the colours of
 * what came in are written down. */
static void
keep_colorimetry (GstCaps *in, GstCaps *out)
{
  GstVideoInfo in_info, out_info;
  g_autofree gchar *colorimetry = NULL;

  if (gst_structure_has_field (gst_caps_get_structure (out, 0), "colorimetry") ||
      !gst_video_info_from_caps (&in_info, in) || !gst_video_info_from_caps (&out_info, out) ||
      gst_video_colorimetry_is_equal (&in_info.colorimetry, &out_info.colorimetry))
    return;
  colorimetry = gst_video_colorimetry_to_string (&in_info.colorimetry);
  if (colorimetry)
    gst_caps_set_simple (out, "colorimetry", G_TYPE_STRING, colorimetry, NULL);
}

GstCaps *
gst_gpu_base_transform_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others)
{
  others = gst_caps_make_writable (gst_caps_fixate (others));
  if (direction == GST_PAD_SINK && gst_caps_get_size (others) > 0)
    keep_colorimetry (caps, others);
  return others;
}

static gboolean
is_pool_of (GstBufferPool *pool, GpuDevice *device)
{
  return GST_IS_GPU_BUFFER_POOL (pool) && gst_gpu_buffer_pool_get_device (GST_GPU_BUFFER_POOL (pool)) == device;
}

static GstBufferPool *
new_pool (GstGpuBaseTransform *self)
{
  return gst_gpu_base_transform_out_is_gpu (self) ? gst_gpu_buffer_pool_new (gst_gpu_base_transform_device (self))
                                                  : gst_video_buffer_pool_new ();
}

/* Takes over @pool; NULL if it does not like the config. */
static GstBufferPool *
configure (GstBufferPool *pool, GstCaps *caps, guint size, guint min, guint max, gboolean video_meta)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, caps, size, min, max);
  if (video_meta)
    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config))
    gst_clear_object (&pool);
  return pool;
}

/* The base class configures the pool once more, and puts one of system memory in its place if that is refused. */
static gboolean
keep_device_memory (GstGpuBaseTransform *self, GstQuery *query, GstCaps *caps)
{
  g_autoptr (GstBufferPool) decided = NULL;
  g_autoptr (GstBufferPool) own = NULL;
  guint size, min, max;

  gst_query_parse_nth_allocation_pool (query, 0, &decided, &size, &min, &max);
  if (is_pool_of (decided, gst_gpu_base_transform_device (self)))
    return TRUE;
  own = configure (new_pool (self), caps, size, min, 0, TRUE);
  if (own)
    gst_query_set_nth_allocation_pool (query, 0, own, size, min, 0);
  return own != NULL;
}

/* The pool that downstream offers, if it will do; else a new one. The query's other pools and allocators go. */
gboolean
gst_gpu_base_transform_decide_allocation (GstBaseTransform *trans, GstQuery *query)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  gboolean is_gpu = gst_gpu_base_transform_out_is_gpu (self);
  gboolean video_meta = is_gpu || gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  g_autoptr (GError) error = NULL;
  GstVideoInfo info;
  GstBufferPool *pool = NULL;
  GstCaps *caps;
  guint size = 0, min = 0, max = 0;

  if (!gst_gpu_base_transform_ensure_device (self))
    return FALSE;
  gst_query_parse_allocation (query, &caps, NULL);
  if (!caps || !gst_video_info_from_caps (&info, caps))
    return FALSE;

  if (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
  if (pool && (is_gpu ? !is_pool_of (pool, gst_gpu_base_transform_device (self)) : GST_IS_GPU_BUFFER_POOL (pool))) {
    GST_DEBUG_OBJECT (self, "%" GST_PTR_FORMAT " is not for these frames", (gpointer)pool);
    gst_clear_object (&pool);
    max = 0;
  }
  size = MAX (size, (guint)GST_VIDEO_INFO_SIZE (&info));
  if (pool && is_gpu) {
    /* One that is active for other frames, or in another way cannot serve, would end in system memory. */
    pool = configure (pool, caps, size, min, max, TRUE);
    if (!pool) {
      GST_DEBUG_OBJECT (self, "downstream's pool does not take the config");
      max = 0;
    }
  }
  if (!pool) {
    pool = configure (new_pool (self), caps, size, min, max, video_meta);
    if (!pool) {
      g_autofree gchar *text = gst_caps_to_string (caps);

      g_set_error (&error, GPU_ERROR, GPU_ERROR_INVALID, "No pool can be made for %s: choose another size.", text);
      gst_gpu_base_transform_post_error (self, error);
      return FALSE;
    }
  }

  while (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_remove_nth_allocation_pool (query, 0);
  gst_query_add_allocation_pool (query, pool, size, min, max);
  gst_object_unref (pool);
  if (is_gpu) {
    while (gst_query_get_n_allocation_params (query) > 0)
      gst_query_remove_nth_allocation_param (query, 0);
  }
  if (!GST_BASE_TRANSFORM_CLASS (g_type_class_peek (GST_TYPE_BASE_TRANSFORM))->decide_allocation (trans, query))
    return FALSE;
  return !is_gpu || keep_device_memory (self, query, caps);
}

gboolean
gst_gpu_base_transform_propose_allocation (GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstBaseTransformClass *base_class = g_type_class_peek (GST_TYPE_BASE_TRANSFORM);
  g_autoptr (GstBufferPool) pool = NULL;
  GstVideoInfo info;
  GstCaps *caps;
  gboolean need_pool;
  guint size;

  if (!base_class->propose_allocation (trans, decide_query, query))
    return FALSE;
  if (!decide_query)
    return TRUE; /* passthrough: downstream has answered */

  gst_query_parse_allocation (query, &caps, &need_pool);
  if (!caps || !gst_video_info_from_caps (&info, caps))
    return FALSE;
  size = (guint)GST_VIDEO_INFO_SIZE (&info);

  if (need_pool && gst_gpu_caps_are_gpu (caps)) {
    if (!gst_gpu_base_transform_ensure_device (self))
      return FALSE;
    pool = configure (gst_gpu_buffer_pool_new (gst_gpu_base_transform_device (self)), caps, size, 0, 0, TRUE);
    if (!pool)
      return FALSE;
  }
  gst_query_add_allocation_pool (query, pool, size, 0, 0);

  if (!gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL))
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  if (!gst_query_find_allocation_meta (query, GST_VIDEO_CROP_META_API_TYPE, NULL))
    gst_query_add_allocation_meta (query, GST_VIDEO_CROP_META_API_TYPE, NULL);
  return TRUE;
}

GstFlowReturn
gst_gpu_base_transform_acquire (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer **out)
{
  GpuDevice *device = gst_gpu_base_transform_device (self);
  const GstVideoInfo *info = gst_gpu_base_transform_out_info (self);
  g_autoptr (GstBufferPool) pool = gst_base_transform_get_buffer_pool (GST_BASE_TRANSFORM (self));
  GstFlowReturn result = GST_FLOW_ERROR;
  g_autoptr (GError) error = NULL;
  guint64 free_bytes, total_bytes;

  if (pool && gst_buffer_pool_set_active (pool, TRUE))
    result = GST_IS_GPU_BUFFER_POOL (pool) ? gst_gpu_buffer_pool_acquire_on (GST_GPU_BUFFER_POOL (pool), stream, out)
                                           : gst_buffer_pool_acquire_buffer (pool, out, NULL);
  if (result != GST_FLOW_ERROR)
    return result;

  /* The pool does not say why. A device that cannot be used does, here as everywhere. */
  if (!gpu_device_memory_info (device, &free_bytes, &total_bytes, &error))
    gst_gpu_base_transform_post_error (self, error);
  else
    GST_ELEMENT_ERROR (self, RESOURCE, NO_SPACE_LEFT,
                       ("No memory for a %s frame of %dx%d (%" G_GSIZE_FORMAT " bytes) could be had on %s, where "
                        "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " bytes are free: use smaller frames or hold "
                        "fewer of them.",
                        gst_video_format_to_string (GST_VIDEO_INFO_FORMAT (info)), GST_VIDEO_INFO_WIDTH (info),
                        GST_VIDEO_INFO_HEIGHT (info), GST_VIDEO_INFO_SIZE (info), gpu_device_name (device), free_bytes,
                        total_bytes),
                       (NULL));
  return GST_FLOW_ERROR;
}
