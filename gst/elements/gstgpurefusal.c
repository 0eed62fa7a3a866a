/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Why caps were refused; see the header. Core and base class only say that they were.
 */
#include "gstgpurefusal.h"

#include "gstgpubasetransform-priv.h"

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

/* Structures of another media type, or of other memory, are further apart than any fields of the same. */
#define KIND 64

typedef struct {
  const GstStructure *other;
  GString *text;
  guint distance;
} Comparison;

static void
begin_clause (Comparison *comparison, guint distance)
{
  if (comparison->distance > 0)
    g_string_append (comparison->text, ", and ");
  comparison->distance += distance;
}

static gboolean
compare_field (GQuark field, const GValue *value, gpointer data)
{
  Comparison *comparison = data;
  const GValue *other = gst_structure_id_get_value (comparison->other, field);
  g_autofree gchar *have = NULL;
  g_autofree gchar *want = NULL;

  if (!other || gst_value_intersect (NULL, value, other))
    return TRUE;
  have = gst_value_serialize (value);
  want = gst_value_serialize (other);
  begin_clause (comparison, 1);
  g_string_append_printf (comparison->text, "the field %s=%s is not in %s", g_quark_to_string (field), have, want);
  return TRUE;
}

/* Returns: (transfer full): what keeps two structures apart, and how far. */
static gchar *
compare (GstCaps *caps, guint i, GstCaps *others, guint k, guint *distance)
{
  const GstStructure *structure = gst_caps_get_structure (caps, i), *other = gst_caps_get_structure (others, k);
  Comparison comparison = {.other = other, .text = g_string_new (NULL)};

  if (!gst_structure_has_name (other, gst_structure_get_name (structure))) {
    begin_clause (&comparison, KIND);
    g_string_append_printf (comparison.text, "the media type %s is not %s", gst_structure_get_name (structure),
                            gst_structure_get_name (other));
  }
  if (!gst_caps_features_is_equal (gst_caps_get_features (caps, i), gst_caps_get_features (others, k))) {
    g_autofree gchar *have = gst_caps_features_to_string (gst_caps_get_features (caps, i));
    g_autofree gchar *want = gst_caps_features_to_string (gst_caps_get_features (others, k));

    begin_clause (&comparison, KIND);
    g_string_append_printf (comparison.text, "the caps feature %s is not %s", have, want);
  }
  gst_structure_foreach (structure, compare_field, &comparison);
  *distance = comparison.distance;
  return g_string_free (comparison.text, FALSE);
}

/* Returns: (transfer full) (nullable): why @caps and @others have nothing in common, by the two of their structures
 * that are nearest to it; NULL if they have. @distance: (out): how far they are apart. */
static gchar *
difference (GstCaps *caps, GstCaps *others, guint *distance)
{
  guint least = G_MAXUINT;
  gchar *result = NULL;

  *distance = 0;
  if (gst_caps_can_intersect (caps, others))
    return NULL;
  if (gst_caps_is_empty (others))
    return g_strdup ("nothing is taken");
  for (guint i = 0; i < gst_caps_get_size (caps); i++)
    for (guint k = 0; k < gst_caps_get_size (others); k++) {
      guint apart;
      gchar *text = compare (caps, i, others, k, &apart);

      if (apart < least) {
        least = *distance = apart;
        g_free (result);
        result = text;
      } else {
        g_free (text);
      }
    }
  return result;
}

/* What the element makes, on the other side, of @caps that are at @pad. */
static GstCaps *
transform (GstBaseTransform *trans, GstPad *pad, GstCaps *caps)
{
  return GST_BASE_TRANSFORM_GET_CLASS (trans)->transform_caps (trans, GST_PAD_DIRECTION (pad), caps, NULL);
}

/* Returns: (transfer full): why the element makes nothing at all of @caps. */
static gchar *
nothing_made (GstCaps *caps)
{
  g_autoptr (GError) error = NULL;
  GstGpuFrameInfo info;

  if (gst_caps_is_fixed (caps) && !gst_gpu_frame_info_from_caps (&info, caps, &error))
    return g_strdup (error->message);
  return g_strdup ("it makes nothing of them");
}

/* Returns: (transfer full) (nullable): why what the element makes of @caps, which are at @pad, is not taken at
 * @other_pad; NULL if it is. */
static gchar *
difference_beyond (GstBaseTransform *trans, GstPad *pad, GstPad *other_pad, GstCaps *caps, const gchar **who)
{
  g_autoptr (GstCaps) any = transform (trans, pad, caps);
  g_autoptr (GstCaps) template = gst_pad_get_pad_template_caps (other_pad);
  g_autoptr (GstCaps) made = NULL;
  g_autoptr (GstCaps) peer = NULL;
  g_autoptr (GstCaps) taken = NULL;
  g_autoptr (GstCaps) wanted = NULL;
  g_autofree gchar *nearer = NULL;
  guint distance, other_distance;
  gchar *why;

  *who = "the element";
  if (gst_caps_is_empty (any))
    return nothing_made (caps);
  why = difference (any, template, &distance);
  if (why)
    return why;
  *who = GST_PAD_DIRECTION (pad) == GST_PAD_SINK ? "downstream" : "upstream";
  made = gst_caps_intersect (any, template);
  peer = gst_pad_peer_query_caps (other_pad, NULL);
  why = difference (made, peer, &distance);
  if (distance < KIND)
    return why;

  /* Nothing of that kind can be made of these caps. Of which could it be? */
  taken = gst_caps_intersect (peer, template);
  wanted = transform (trans, other_pad, taken);
  nearer = gst_caps_is_empty (wanted) ? NULL : difference (caps, wanted, &other_distance);
  if (nearer && other_distance < distance) {
    g_free (why);
    return g_steal_pointer (&nearer);
  }
  return why;
}

/* A negotiation asks more than once, and a caps event that was refused comes again with each frame. */
static gboolean
was_said (GstGpuBaseTransform *self, GstCaps *caps)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  gboolean result;

  GST_OBJECT_LOCK (self);
  result = priv->refused && gst_caps_is_equal (priv->refused, caps);
  gst_caps_replace (&priv->refused, caps);
  GST_OBJECT_UNLOCK (self);
  return result;
}

void
gst_gpu_refusal_forget (GstBaseTransform *trans)
{
  GST_OBJECT_LOCK (trans);
  gst_clear_caps (&gst_gpu_base_transform_priv (GST_GPU_BASE_TRANSFORM (trans))->refused);
  GST_OBJECT_UNLOCK (trans);
}

void
gst_gpu_refusal_log (GstBaseTransform *trans, GstDebugLevel level, GstPadDirection direction, GstCaps *caps)
{
  GstPad *pad = direction == GST_PAD_SINK ? trans->sinkpad : trans->srcpad;
  GstPad *other_pad = direction == GST_PAD_SINK ? trans->srcpad : trans->sinkpad;
  g_autoptr (GstCaps) template = NULL;
  g_autofree gchar *why = NULL;
  const gchar *who = "the element";
  guint distance;

  if (!caps || gst_debug_category_get_threshold (GST_CAT_DEFAULT) < level)
    return;
  if (level <= GST_LEVEL_WARNING && was_said (GST_GPU_BASE_TRANSFORM (trans), caps))
    return;
  template = gst_pad_get_pad_template_caps (pad);
  why = difference (caps, template, &distance);
  if (!why)
    why = difference_beyond (trans, pad, other_pad, caps, &who);
  if (why)
    GST_CAT_LEVEL_LOG (GST_CAT_DEFAULT, level, trans, "%" GST_PTR_FORMAT " was refused because of %s: %s",
                       (gpointer)caps, who, why);
}

/* Nothing will do whatever is asked for, because of what the other pad's peer has. */
static void
log_other_side (GstBaseTransform *trans, GstPadDirection direction)
{
  const gboolean is_sink = direction == GST_PAD_SINK;
  g_autoptr (GstCaps) caps = gst_pad_peer_query_caps (is_sink ? trans->srcpad : trans->sinkpad, NULL);

  if (!gst_caps_is_empty (caps))
    gst_gpu_refusal_log (trans, GST_LEVEL_WARNING, is_sink ? GST_PAD_SRC : GST_PAD_SINK, caps);
}

void
gst_gpu_refusal_log_answer (GstBaseTransform *trans, GstPadDirection direction, GstQuery *query)
{
  GstCaps *filter, *answer;

  gst_query_parse_caps (query, &filter);
  gst_query_parse_caps_result (query, &answer);
  if (!answer || !gst_caps_is_empty (answer) || (filter && gst_caps_is_empty (filter)) ||
      gst_debug_category_get_threshold (GST_CAT_DEFAULT) < GST_LEVEL_WARNING)
    return;
  if (filter)
    gst_gpu_refusal_log (trans, GST_LEVEL_WARNING, direction, filter);
  else
    log_other_side (trans, direction);
}

gboolean
gst_gpu_refusal_accept_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps)
{
  const gboolean result = gst_gpu_base_transform_parent ()->accept_caps (trans, direction, caps);

  if (!result)
    gst_gpu_refusal_log (trans, GST_LEVEL_DEBUG, direction, caps);
  return result;
}
