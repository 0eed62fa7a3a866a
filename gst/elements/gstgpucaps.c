/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the frames of a GstGpuBaseTransform are: caps, and what is decided with them.
 */
#include "gstgpubasetransform-priv.h"

#include "gstgpubatchcaps.h"
#include "gstgpurefusal.h"

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

/* For elements. */

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

static gboolean
is_tensor (GstCaps *caps)
{
  return gst_structure_has_name (gst_caps_get_structure (caps, 0), GST_GPU_TENSOR_NAME);
}

/* Caps that say nothing about colours have a default that depends on the size. Where that would change, the colours of
 * what came in are written down. */
static void
keep_colorimetry (GstCaps *in, GstCaps *out)
{
  const GstStructure *structure = gst_caps_get_structure (out, 0);
  const gboolean colorimetry_said = gst_structure_has_field (structure, "colorimetry");
  const gboolean site_said = gst_structure_has_field (structure, "chroma-site");
  GstVideoInfo in_info, out_info;
  g_autofree gchar *colorimetry = NULL;
  g_autofree gchar *site = NULL;

  if (is_tensor (in) || is_tensor (out) || !gst_video_info_from_caps (&in_info, in) ||
      !gst_video_info_from_caps (&out_info, out))
    return;
  if (!colorimetry_said && !gst_video_colorimetry_is_equal (&in_info.colorimetry, &out_info.colorimetry))
    colorimetry = gst_video_colorimetry_to_string (&in_info.colorimetry);
  if (colorimetry)
    gst_caps_set_simple (out, "colorimetry", G_TYPE_STRING, colorimetry, NULL);
  if (!site_said && GST_VIDEO_INFO_IS_YUV (&in_info) && in_info.chroma_site != out_info.chroma_site)
    site = gst_video_chroma_site_to_string (in_info.chroma_site);
  if (site)
    gst_caps_set_simple (out, "chroma-site", G_TYPE_STRING, site, NULL);
}

GstCaps *
gst_gpu_base_transform_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others)
{
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (trans);

  if (gst_gpu_caps_are_batch (caps))
    return gst_gpu_batch_fixate_caps (trans, direction, caps, others);
  if (klass->fixate_frame_caps)
    return klass->fixate_frame_caps (trans, direction, caps, others);
  return gst_gpu_base_transform_fixate_frame_caps (trans, direction, caps, others);
}

GstCaps *
gst_gpu_base_transform_fixate_frame_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps,
                                          GstCaps *others)
{
  others = gst_caps_make_writable (gst_caps_fixate (others));
  if (direction == GST_PAD_SINK && gst_caps_get_size (others) > 0)
    keep_colorimetry (caps, others);
  return others;
}

const GstGpuFrameInfo *
gst_gpu_base_transform_in_frame_info (GstGpuBaseTransform *self)
{
  return &gst_gpu_base_transform_priv (self)->in;
}

const GstGpuFrameInfo *
gst_gpu_base_transform_out_frame_info (GstGpuBaseTransform *self)
{
  return &gst_gpu_base_transform_priv (self)->out;
}

const GstVideoInfo *
gst_gpu_base_transform_in_info (GstGpuBaseTransform *self)
{
  return &gst_gpu_base_transform_priv (self)->in.video;
}

const GstVideoInfo *
gst_gpu_base_transform_out_info (GstGpuBaseTransform *self)
{
  return &gst_gpu_base_transform_priv (self)->out.video;
}

gboolean
gst_gpu_base_transform_in_is_gpu (GstGpuBaseTransform *self)
{
  return gst_gpu_base_transform_priv (self)->in_is_gpu;
}

gboolean
gst_gpu_base_transform_out_is_gpu (GstGpuBaseTransform *self)
{
  return gst_gpu_base_transform_priv (self)->out_is_gpu;
}

gboolean
gst_gpu_base_transform_is_negotiated (GstGpuBaseTransform *self)
{
  const GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  return priv->batch_caps || priv->out.spec.format != GPU_FORMAT_UNKNOWN;
}

gboolean
gst_gpu_base_transform_is_negotiating (GstGpuBaseTransform *self)
{
  return g_atomic_int_get (&gst_gpu_base_transform_priv (self)->negotiating);
}

/* Negotiation. */

gboolean
gst_gpu_base_transform_update (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);

  if (!klass->update || !klass->update (self))
    return FALSE;
  /* Caps of batches may stay what they are although their frames become something else. */
  gst_gpu_base_transform_forget_batch (self);
  return TRUE;
}

gboolean
gst_gpu_base_transform_get_unit_size (GstBaseTransform *trans, GstCaps *caps, gsize *size)
{
  GstGpuFrameInfo info;

  /* A batch has no memory of its own. */
  if (gst_gpu_caps_are_batch (caps)) {
    *size = 1;
    return TRUE;
  }
  if (!gst_gpu_frame_info_from_caps (&info, caps, NULL))
    return FALSE;
  *size = info.spec.size;
  return TRUE;
}

gboolean
gst_gpu_base_transform_set_caps (GstBaseTransform *trans, GstCaps *in, GstCaps *out)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  g_autoptr (GError) error = NULL;
  GstGpuFrameInfo in_info, out_info;

  if (gst_gpu_caps_are_batch (in)) {
    if (!gst_gpu_base_transform_set_batch_caps (self, in, out, &error)) {
      gst_gpu_base_transform_post_error (self, error);
      return FALSE;
    }
    gst_gpu_base_transform_forget_error (self);
    return TRUE;
  }
  gst_clear_caps (&priv->batch_caps);
  if (!gst_gpu_frame_info_from_caps (&in_info, in, &error) || !gst_gpu_frame_info_from_caps (&out_info, out, &error)) {
    gst_gpu_base_transform_post_error (self, error);
    return FALSE;
  }
  priv->in = in_info;
  priv->out = out_info;
  priv->in_is_gpu = gst_gpu_caps_are_gpu (in);
  priv->out_is_gpu = gst_gpu_caps_are_gpu (out);

  if (klass->set_info && !klass->set_info (self, &in_info, &out_info, &error)) {
    gst_gpu_base_transform_post_error (self, error);
    return FALSE;
  }
  gst_gpu_base_transform_forget_error (self);
  gst_gpu_refusal_forget (trans);
  return TRUE;
}

/* The caps event that was refused comes again before each frame. */
static void
forget_error_of_other_caps (GstGpuBaseTransform *self, GstEvent *event)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstCaps *caps;

  gst_event_parse_caps (event, &caps);
  if (!priv->caps || !gst_caps_is_equal (priv->caps, caps))
    gst_gpu_base_transform_forget_error (self);
  gst_caps_replace (&priv->caps, caps);
}

gboolean
gst_gpu_base_transform_caps_event (GstGpuBaseTransform *self, GstEvent *event)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  gboolean result;

  forget_error_of_other_caps (self, event);
  gst_gpu_base_transform_update (self);
  g_atomic_int_set (&priv->negotiating, TRUE);
  result = gst_gpu_base_transform_parent ()->sink_event (GST_BASE_TRANSFORM (self), event);
  g_atomic_int_set (&priv->negotiating, FALSE);
  if (!result)
    gst_gpu_refusal_log (GST_BASE_TRANSFORM (self), GST_LEVEL_WARNING, GST_PAD_SINK, priv->caps);
  return result;
}

/* The base class may decide caps again to answer. */
gboolean
gst_gpu_base_transform_allocation_query (GstGpuBaseTransform *self, GstQuery *query)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  gboolean result;

  if (gst_gpu_base_transform_update (self))
    gst_base_transform_reconfigure_src (GST_BASE_TRANSFORM (self));
  g_atomic_int_set (&priv->negotiating, TRUE);
  result = gst_gpu_base_transform_parent ()->query (GST_BASE_TRANSFORM (self), GST_PAD_SINK, query);
  g_atomic_int_set (&priv->negotiating, FALSE);
  return result;
}
