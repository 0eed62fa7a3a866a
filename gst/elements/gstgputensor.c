/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Caps of tensors; see the header.
 */
#include "gstgputensor.h"

GType
gst_gpu_tensor_layout_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
      {GST_GPU_TENSOR_LAYOUT_ANY, "What caps ask for", "any"},
      {GST_GPU_TENSOR_LAYOUT_HWC, "Interleaved: the channels of a pixel are neighbours", "hwc"},
      {GST_GPU_TENSOR_LAYOUT_CHW, "Planar: one channel after the other", "chw"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstGpuTensorLayout", values));
  return type;
}

gboolean
gst_gpu_tensor_layout_allows (GstGpuTensorLayout choice, GpuLayout layout)
{
  return choice == GST_GPU_TENSOR_LAYOUT_ANY || (choice == GST_GPU_TENSOR_LAYOUT_CHW) == (layout == GPU_LAYOUT_CHW);
}

gboolean
gst_gpu_structure_is_tensor (const GstStructure *structure)
{
  return gst_structure_has_name (structure, GST_GPU_TENSOR_NAME);
}

GstStructure *
gst_gpu_structure_like (const GstStructure *from, const gchar *name)
{
  GstStructure *structure = gst_structure_new_empty (name);
  const GValue *framerate = gst_structure_get_value (from, "framerate");

  if (framerate)
    gst_structure_set_value (structure, "framerate", framerate);
  return structure;
}

guint
gst_gpu_tensor_channels (const GpuFormatInfo *info)
{
  if (!info || info->is_tensor || info->bits != 8 || (info->is_yuv && info->n_channels > 1))
    return 0;
  return info->n_channels;
}

/* What @text means with the layout of that name; NULL: the usual one. */
static guint
read_shape (const gchar *text, const gchar *layout, GpuImageSpec *shape)
{
  g_autoptr (GstStructure) structure =
      gst_structure_new (GST_GPU_TENSOR_NAME, "types", G_TYPE_STRING, "uint8", "dimensions", G_TYPE_STRING, text, NULL);

  if (layout)
    gst_structure_set (structure, "layout", G_TYPE_STRING, layout, NULL);
  return gst_gpu_tensor_spec_from_structure (shape, structure, NULL);
}

gint
gst_gpu_tensor_shapes (GstPadDirection direction, const GstStructure *structure, GpuImageSpec *shapes, guint max)
{
  const GValue *value = gst_structure_get_value (structure, "dimensions");
  const gchar *layout = gst_structure_get_string (structure, "layout");
  gboolean is_list;
  guint n = 0;

  if (!value)
    return -1;
  is_list = GST_VALUE_HOLDS_LIST (value);
  for (guint i = 0; i < (is_list ? gst_value_list_get_size (value) : 1) && n + 2 <= max; i++) {
    const GValue *item = is_list ? gst_value_list_get_value (value, i) : value;
    const gchar *text = G_VALUE_HOLDS_STRING (item) ? g_value_get_string (item) : "";

    if (layout || direction == GST_PAD_SINK) {
      n += read_shape (text, layout, &shapes[n]);
    } else {
      n += read_shape (text, "HWC", &shapes[n]);
      n += read_shape (text, "CHW", &shapes[n]);
    }
  }
  return (gint)n;
}

static void
set_types (GstStructure *structure, guint types)
{
  GValue list = G_VALUE_INIT;

  g_value_init (&list, GST_TYPE_LIST);
  for (guint i = GPU_N_ELEMENTS; i > 0; i--) {
    GValue item = G_VALUE_INIT;

    if (!(types & 1u << (i - 1)))
      continue;
    g_value_init (&item, G_TYPE_STRING);
    g_value_set_static_string (&item, gpu_element_name ((GpuElement)(i - 1)));
    gst_value_list_append_and_take_value (&list, &item);
  }
  gst_structure_take_value (structure, "types", &list);
}

void
gst_gpu_tensor_append (GstCaps *caps, const GpuImageSpec *spec, guint types, const GstStructure *from)
{
  GstStructure *structure = gst_gpu_structure_like (from, GST_GPU_TENSOR_NAME);

  gst_structure_set (structure, "format", G_TYPE_STRING, "static", "num_tensors", G_TYPE_INT, 1, NULL);
  if (spec)
    gst_gpu_tensor_spec_to_structure (spec, structure);
  set_types (structure, types);
  gst_caps_append_structure_full (caps, structure, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
}

GstCaps *
gst_gpu_tensor_fixate (GstCaps *others, const GpuImageSpec *candidates, guint n)
{
  for (guint i = 0; i < n; i++) {
    g_autoptr (GstCaps) candidate = gst_caps_new_empty ();
    GstStructure *structure = gst_structure_new_empty (GST_GPU_TENSOR_NAME);
    GstCaps *result;

    gst_gpu_tensor_spec_to_structure (&candidates[i], structure);
    gst_caps_append_structure_full (candidate, structure,
                                    gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
    result = gst_caps_intersect_full (candidate, others, GST_CAPS_INTERSECT_FIRST);
    if (!gst_caps_is_empty (result)) {
      gst_caps_unref (others);
      return result;
    }
    gst_caps_unref (result);
  }
  return NULL;
}
