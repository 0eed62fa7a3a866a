/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What caps say of their frames; see the header.
 */
#include <gpucache/gstgpuframeinfo.h>

#include <gpucache/gstgpumemory.h>

/* NNStreamer's largest rank. */
#define MAX_RANK 16

/* How many dimensions are written where the others are 1: older versions of NNStreamer know no other number. */
#define USUAL_RANK 4

void
gst_gpu_frame_info_init (GstGpuFrameInfo *info)
{
  g_return_if_fail (info != NULL);

  info->spec = (GpuImageSpec){0};
  gst_video_info_init (&info->video);
}

gboolean
gst_gpu_frame_info_is_tensor (const GstGpuFrameInfo *info)
{
  const GpuFormatInfo *format = gpu_format_info (info->spec.format);

  return format && format->is_tensor;
}

/* Caps of video. */

static gboolean
video_from_caps (GstGpuFrameInfo *info, const GstCaps *caps, GError **error)
{
  const GstStructure *structure = gst_caps_get_structure (caps, 0);
  const gchar *format = gst_structure_get_string (structure, "format");
  gint width = 0, height = 0;

  if (gst_video_info_from_caps (&info->video, caps))
    return gst_gpu_image_spec_from_video_info (&info->spec, &info->video, error);
  gst_structure_get_int (structure, "width", &width);
  gst_structure_get_int (structure, "height", &height);
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "No %s frame of %dx%d fits in memory: choose another format or size.", format ? format : "raw", width,
               height);
  return FALSE;
}

/* Caps of tensors. */

static gboolean
element_from_types (GpuElement *element, const gchar *types, GError **error)
{
  for (guint i = 0; types && i < GPU_N_ELEMENTS; i++)
    if (g_str_equal (types, gpu_element_name ((GpuElement)i))) {
      *element = (GpuElement)i;
      return TRUE;
    }
  g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
               "Caps have types=%s, but tensors of uint8, float16 and float32 can be kept in device memory: convert to "
               "one of these.",
               types ? types : "(none)");
  return FALSE;
}

/* From the innermost on; those that are not named are 1. */
static gboolean
parse_dimensions (guint32 dimension[MAX_RANK], const gchar *text)
{
  g_auto (GStrv) parts = g_strsplit (text, ":", MAX_RANK + 1);
  const guint n = g_strv_length (parts);

  if (n < 1 || n > MAX_RANK)
    return FALSE;
  for (guint i = 0; i < MAX_RANK; i++) {
    guint64 value = 1;

    if (i < n && !g_ascii_string_to_unsigned (g_strstrip (parts[i]), 10, 1, G_MAXINT32, &value, NULL))
      return FALSE;
    dimension[i] = (guint32)value;
  }
  return TRUE;
}

static gboolean
layout_from_dimensions (GpuLayout *layout, const guint32 dimension[MAX_RANK], const gchar *name, GError **error)
{
  const gboolean may_be_hwc = dimension[0] <= GPU_MAX_CHANNELS, may_be_chw = dimension[2] <= GPU_MAX_CHANNELS;

  if (name && !g_str_equal (name, "HWC") && !g_str_equal (name, "CHW")) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Caps have layout=%s: use HWC or CHW, or leave it out.", name);
    return FALSE;
  }
  *layout = (name ? g_str_equal (name, "CHW") : !may_be_hwc) ? GPU_LAYOUT_CHW : GPU_LAYOUT_HWC;
  return *layout == GPU_LAYOUT_HWC ? may_be_hwc : may_be_chw;
}

static gboolean
is_batch (const guint32 dimension[MAX_RANK])
{
  for (guint i = 3; i < MAX_RANK; i++)
    if (dimension[i] != 1)
      return TRUE;
  return FALSE;
}

gboolean
gst_gpu_tensor_spec_from_structure (GpuImageSpec *spec, const GstStructure *structure, GError **error)
{
  const gchar *text, *name;
  guint32 dimension[MAX_RANK];
  g_autoptr (GError) layout_error = NULL;
  GpuElement element;
  GpuLayout layout;

  g_return_val_if_fail (spec != NULL, FALSE);
  g_return_val_if_fail (structure != NULL, FALSE);

  text = gst_structure_get_string (structure, "dimensions");
  name = gst_structure_get_string (structure, "layout");
  if (!element_from_types (&element, gst_structure_get_string (structure, "types"), error))
    return FALSE;
  if (!text || !parse_dimensions (dimension, text)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Caps have dimensions=%s, which is no list of whole numbers: write them as in \"3:640:480:1\".",
                 text ? text : "(none)");
    return FALSE;
  }
  if (is_batch (dimension)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "Caps have dimensions=%s, but a tensor here is one picture: those after the third must be 1.", text);
    return FALSE;
  }
  if (!layout_from_dimensions (&layout, dimension, name, &layout_error)) {
    if (layout_error)
      g_propagate_error (error, g_steal_pointer (&layout_error));
    else
      g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                   "Caps have dimensions=%s, in which 1 to %d channels must come first (HWC) or third (CHW).", text,
                   GPU_MAX_CHANNELS);
    return FALSE;
  }
  if (layout == GPU_LAYOUT_HWC)
    return gpu_image_spec_init_tensor (spec, element, layout, dimension[0], dimension[1], dimension[2], error);
  return gpu_image_spec_init_tensor (spec, element, layout, dimension[2], dimension[0], dimension[1], error);
}

/* Several pictures in one tensor, which lie in memory as one with as many more rows, as gpu_batch_dense_image() has it.
 * The fourth dimension is their number. */
static gboolean
dense_spec_from_structure (GpuImageSpec *spec, const GstStructure *structure, GError **error)
{
  const gchar *text = gst_structure_get_string (structure, "dimensions");
  g_autoptr (GstStructure) one = gst_structure_copy (structure);
  guint32 dimension[MAX_RANK];
  const GpuFormatInfo *info;
  g_autofree gchar *part = NULL;
  gboolean is_hwc;
  guint64 rows;

  if (!text || !parse_dimensions (dimension, text) || !is_batch (dimension))
    return gst_gpu_tensor_spec_from_structure (spec, structure, error);
  for (guint i = USUAL_RANK; i < MAX_RANK; i++)
    if (dimension[i] != 1)
      return gst_gpu_tensor_spec_from_structure (spec, structure, error);

  part = g_strdup_printf ("%u:%u:%u:1", dimension[0], dimension[1], dimension[2]);
  gst_structure_set (one, "dimensions", G_TYPE_STRING, part, NULL);
  if (!gst_gpu_tensor_spec_from_structure (spec, one, error))
    return FALSE;
  info = gpu_format_info (spec->format);
  is_hwc = info->layout == GPU_LAYOUT_HWC && spec->channels > 1;
  rows = (guint64)dimension[USUAL_RANK - 1] * spec->height * (is_hwc ? 1 : spec->channels);
  if (rows > G_MAXINT32) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "Caps have dimensions=%s, which come to %" G_GUINT64_FORMAT
                 " rows, more than the %d that one image can have: use fewer pictures.",
                 text, rows, G_MAXINT32);
    return FALSE;
  }
  return gpu_image_spec_init_tensor (spec, info->element, is_hwc ? GPU_LAYOUT_HWC : GPU_LAYOUT_CHW,
                                     is_hwc ? spec->channels : 1, spec->width, (guint32)rows, error);
}

/* A list of texts, the first of which is preferred. */
static void
append_dimensions (GValue *list, const guint32 dimension[USUAL_RANK], guint rank)
{
  g_autoptr (GString) text = g_string_new (NULL);
  GValue item = G_VALUE_INIT;

  for (guint i = 0; i < rank; i++)
    g_string_append_printf (text, i ? ":%u" : "%u", dimension[i]);
  g_value_init (&item, G_TYPE_STRING);
  g_value_set_string (&item, text->str);
  gst_value_list_append_and_take_value (list, &item);
}

void
gst_gpu_tensor_spec_to_structure (const GpuImageSpec *spec, GstStructure *structure)
{
  const GpuFormatInfo *format = gpu_format_info (spec->format);
  GValue list = G_VALUE_INIT;

  g_return_if_fail (format && format->is_tensor);

  const gboolean is_chw = format->layout == GPU_LAYOUT_CHW;
  const guint32 dimension[USUAL_RANK] = {is_chw ? spec->width : spec->channels, is_chw ? spec->height : spec->width,
                                         is_chw ? spec->channels : spec->height, 1};

  g_value_init (&list, GST_TYPE_LIST);
  for (guint rank = USUAL_RANK; rank > 0; rank--) {
    append_dimensions (&list, dimension, rank);
    if (dimension[rank - 1] != 1)
      break;
  }

  gst_structure_set (structure, "format", G_TYPE_STRING, "static", "num_tensors", G_TYPE_INT, 1, "types", G_TYPE_STRING,
                     gpu_element_name (format->element), NULL);
  gst_structure_take_value (structure, "dimensions", &list);
  gst_structure_remove_field (structure, "layout");
  if (is_chw && dimension[0] <= GPU_MAX_CHANNELS)
    gst_structure_set (structure, "layout", G_TYPE_STRING, "CHW", NULL);
}

static gboolean
tensor_from_caps (GstGpuFrameInfo *info, const GstStructure *structure, GError **error)
{
  const gchar *format = gst_structure_get_string (structure, "format");
  gint n = 0;

  if (g_strcmp0 (format, "static")) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "Caps have format=%s, but tensors here have a constant shape: use format=static.",
                 format ? format : "(none)");
    return FALSE;
  }
  if (!gst_structure_get_int (structure, "num_tensors", &n) || n != 1) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "Caps have num_tensors=%d, but one tensor a buffer can be taken: use num_tensors=1.", n);
    return FALSE;
  }
  if (!dense_spec_from_structure (&info->spec, structure, error))
    return FALSE;
  if (info->spec.size > G_MAXUINT) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "Caps have dimensions=%s, which come to %" G_GSIZE_FORMAT
                 " bytes, more than a buffer pool can describe: use smaller ones.",
                 gst_structure_get_string (structure, "dimensions"), info->spec.size);
    return FALSE;
  }
  return TRUE;
}

gboolean
gst_gpu_frame_info_from_caps (GstGpuFrameInfo *info, const GstCaps *caps, GError **error)
{
  const GstStructure *structure;

  g_return_val_if_fail (info != NULL, FALSE);
  g_return_val_if_fail (caps && gst_caps_get_size (caps) > 0, FALSE);

  gst_gpu_frame_info_init (info);
  structure = gst_caps_get_structure (caps, 0);
  return gst_structure_has_name (structure, GST_GPU_TENSOR_NAME) ? tensor_from_caps (info, structure, error)
                                                                 : video_from_caps (info, caps, error);
}
