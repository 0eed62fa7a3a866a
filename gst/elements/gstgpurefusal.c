/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Why caps were refused; see the header. Core and base class only say that they were.
 */
#include "gstgpurefusal.h"

#include "gstgpubasetransform-priv.h"

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

typedef struct {
  const GstStructure *other;
  GString *text;
  guint n;
} Comparison;

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
  g_string_append_printf (comparison->text, "%s%s=%s is not in %s", comparison->n ? ", and " : "",
                          g_quark_to_string (field), have, want);
  comparison->n++;
  return TRUE;
}

/* Returns: (transfer full): what keeps two structures apart, and how many things that are. */
static gchar *
compare (GstCaps *caps, guint i, GstCaps *others, guint k, guint *n)
{
  const GstStructure *structure = gst_caps_get_structure (caps, i), *other = gst_caps_get_structure (others, k);
  Comparison comparison = {.other = other, .text = g_string_new (NULL)};

  if (!gst_structure_has_name (other, gst_structure_get_name (structure))) {
    g_string_append_printf (comparison.text, "the media type %s is not %s", gst_structure_get_name (structure),
                            gst_structure_get_name (other));
    comparison.n++;
  }
  if (!gst_caps_features_is_equal (gst_caps_get_features (caps, i), gst_caps_get_features (others, k))) {
    g_autofree gchar *have = gst_caps_features_to_string (gst_caps_get_features (caps, i));
    g_autofree gchar *want = gst_caps_features_to_string (gst_caps_get_features (others, k));

    g_string_append_printf (comparison.text, "%sthe caps feature %s is not %s", comparison.n ? ", and " : "", have,
                            want);
    comparison.n++;
  }
  gst_structure_foreach (structure, compare_field, &comparison);
  *n = comparison.n;
  return g_string_free (comparison.text, FALSE);
}

/* Returns: (transfer full) (nullable): why @caps and @others have nothing in common, by the two of their structures
 * that are nearest to it; NULL if they have. */
static gchar *
difference (GstCaps *caps, GstCaps *others)
{
  guint least = G_MAXUINT;
  gchar *result = NULL;

  if (gst_caps_can_intersect (caps, others))
    return NULL;
  if (gst_caps_is_empty (others))
    return g_strdup ("nothing is taken");
  for (guint i = 0; i < gst_caps_get_size (caps); i++)
    for (guint k = 0; k < gst_caps_get_size (others); k++) {
      guint n;
      gchar *text = compare (caps, i, others, k, &n);

      if (n < least) {
        least = n;
        g_free (result);
        result = text;
      } else {
        g_free (text);
      }
    }
  return result;
}

void
gst_gpu_refusal_log (GstBaseTransform *trans, GstDebugLevel level, GstPadDirection direction, GstCaps *caps)
{
  GstPad *pad = direction == GST_PAD_SINK ? trans->sinkpad : trans->srcpad;
  GstPad *other_pad = direction == GST_PAD_SINK ? trans->srcpad : trans->sinkpad;
  g_autoptr (GstCaps) template = NULL;
  g_autoptr (GstCaps) result = NULL;
  g_autoptr (GstCaps) peer = NULL;
  g_autofree gchar *why = NULL;
  const gchar *who = "the element";

  if (!caps || gst_debug_category_get_threshold (GST_CAT_DEFAULT) < level)
    return;
  template = gst_pad_get_pad_template_caps (pad);
  why = difference (caps, template);
  if (!why) {
    g_autoptr (GstCaps) other_template = gst_pad_get_pad_template_caps (other_pad);

    g_autoptr (GstCaps) any = GST_BASE_TRANSFORM_GET_CLASS (trans)->transform_caps (trans, direction, caps, NULL);

    why = difference (any, other_template);
    result = gst_caps_intersect (any, other_template);
  }
  if (!why) {
    who = direction == GST_PAD_SINK ? "downstream" : "upstream";
    peer = gst_pad_peer_query_caps (other_pad, NULL);
    why = difference (result, peer);
  }
  if (why)
    GST_CAT_LEVEL_LOG (GST_CAT_DEFAULT, level, trans, "%" GST_PTR_FORMAT " was refused because of %s: %s",
                       (gpointer)caps, who, why);
}

gboolean
gst_gpu_refusal_accept_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps)
{
  const gboolean result = gst_gpu_base_transform_parent ()->accept_caps (trans, direction, caps);

  if (!result)
    gst_gpu_refusal_log (trans, GST_LEVEL_DEBUG, direction, caps);
  return result;
}
