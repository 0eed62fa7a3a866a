/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Caps of batches in a GstGpuBaseTransform; see the header. A frame of a batch becomes what it would become alone: its
 * caps go through the class' functions for frames, restricted to what the batch's caps ask for.
 */
#include "gstgpubatchcaps.h"

#include "gstgpubasetransform-priv.h"
#include "gstgputensor.h"

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

/* So many caps of frames are remembered from one batch to the next. */
#define MAX_MAPPINGS 256

/* The fields that caps of batches and of their frames have in common: of tensors, then of pictures. */
static const gchar *const fields[] = {"types",       "format",      "width", "height", "pixel-aspect-ratio",
                                      "colorimetry", "chroma-site", NULL};
static const gchar *const tensor_fields[] = {"types", NULL};
static const gchar *const *const picture_fields = fields + 1;

gboolean
gst_gpu_caps_are_batch (const GstCaps *caps)
{
  return gst_caps_get_size (caps) > 0 && gst_structure_has_name (gst_caps_get_structure (caps, 0), GST_GPU_BATCH_NAME);
}

/* Fields. */

static gboolean
has_one_of (const GstStructure *structure, const gchar *const *names)
{
  for (guint i = 0; names[i]; i++)
    if (gst_structure_has_field (structure, names[i]))
      return TRUE;
  return FALSE;
}

/* Whether @structure says of a field what @other does not. */
static gboolean
says_more (const GstStructure *structure, const GstStructure *other, const gchar *field)
{
  const GValue *value = gst_structure_get_value (structure, field);
  const GValue *known = gst_structure_get_value (other, field);

  return value && !(known && gst_value_compare (value, known) == GST_VALUE_EQUAL);
}

gboolean
gst_gpu_batch_asks_for (const GstCaps *in, const GstCaps *out, const gchar *const *names)
{
  for (guint i = 0; names[i]; i++)
    if (says_more (gst_caps_get_structure (out, 0), gst_caps_get_structure (in, 0), names[i]))
      return TRUE;
  return FALSE;
}

/* Returns: (transfer full): caps in device memory with those fields of @names that @structure has, and that have one
 * value if @fixed. */
static GstCaps *
with_fields (const gchar *name, const GstStructure *structure, const gchar *const *names, gboolean fixed)
{
  GstCaps *caps = gst_caps_new_empty_simple (name);

  for (guint i = 0; names[i]; i++) {
    const GValue *value = gst_structure_get_value (structure, names[i]);

    if (value && (!fixed || gst_value_is_fixed (value)))
      gst_caps_set_value (caps, names[i], value);
  }
  gst_caps_set_features_simple (caps, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
  return caps;
}

/* Returns: (transfer full): what frames of a batch with the caps @batch can be: pictures, unless it speaks of tensors
 * alone, and the other way round. */
static GstCaps *
frames_of (GstBaseTransform *trans, const GstStructure *batch)
{
  const gboolean of_pictures = has_one_of (batch, picture_fields), of_tensors = has_one_of (batch, tensor_fields);
  GstCaps *frames = gst_caps_new_empty (), *tensors;

  if (of_pictures || !of_tensors)
    gst_caps_append (frames, with_fields ("video/x-raw", batch, picture_fields, FALSE));
  if (GST_GPU_BASE_TRANSFORM_GET_CLASS (trans)->batch_of_tensors && (of_tensors || !of_pictures)) {
    tensors = with_fields (GST_GPU_TENSOR_NAME, batch, tensor_fields, FALSE);
    gst_caps_set_simple (tensors, "format", G_TYPE_STRING, "static", "num_tensors", G_TYPE_INT, 1, NULL);
    gst_caps_append (frames, tensors);
  }
  return frames;
}

static GstCaps *
transform_frame_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps)
{
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (trans);

  return klass->transform_frame_caps ? klass->transform_frame_caps (trans, direction, caps, NULL) : gst_caps_ref (caps);
}

/* Dense tensors. */

/* The tensor of one frame becomes that of @n of them, or of any number if that is 0. Its dimensions may be a list, the
 * first of which are four. */
static void
set_number (GstStructure *tensor, gint n)
{
  const GValue *value = gst_structure_get_value (tensor, "dimensions");
  const GValue *first = value && GST_VALUE_HOLDS_LIST (value) ? gst_value_list_get_value (value, 0) : value;
  g_auto (GStrv) parts = NULL;
  g_autofree gchar *text = NULL;

  if (!first || n == 0) {
    gst_structure_remove_field (tensor, "dimensions");
    return;
  }
  parts = g_strsplit (g_value_get_string (first), ":", 4);
  text = g_strdup_printf ("%s:%s:%s:%d", parts[0], parts[1], parts[2], n);
  gst_structure_set (tensor, "dimensions", G_TYPE_STRING, text, NULL);
}

static gboolean
is_planar (const GstStructure *tensor)
{
  GpuImageSpec shapes[2];

  return gst_gpu_tensor_shapes (GST_PAD_SINK, tensor, shapes, G_N_ELEMENTS (shapes)) > 0 &&
         gpu_format_info (shapes[0].format)->layout == GPU_LAYOUT_CHW;
}

/* Of what one of @frames becomes, the tensors, as those of @n frames: planar ones first, as most models take them. */
static GstCaps *
append_numbered (GstBaseTransform *trans, GstCaps *caps, GstCaps *frames, gint n)
{
  g_autoptr (GstCaps) all = transform_frame_caps (trans, GST_PAD_SINK, frames);

  for (guint turn = 0; turn < 2; turn++)
    for (guint i = 0; i < gst_caps_get_size (all); i++) {
      const GstStructure *its = gst_caps_get_structure (all, i);
      GstStructure *tensor;

      if (!gst_gpu_structure_is_tensor (its) || is_planar (its) != (turn == 0))
        continue;
      tensor = gst_structure_copy (its);
      set_number (tensor, n);
      caps =
          gst_caps_merge_structure_full (caps, tensor, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
    }
  return caps;
}

/* Takes @caps over; adds the tensors that all frames of a batch may become together. Frames whose format is not known
 * mostly have three channels. */
static GstCaps *
append_tensors (GstBaseTransform *trans, GstCaps *caps, const GstStructure *batch)
{
  g_autoptr (GstCaps) frames = frames_of (trans, batch);
  gint n = 0;

  gst_structure_get_int (batch, "batch-size", &n);
  if (!has_one_of (batch, tensor_fields) && !gst_structure_has_field (batch, "format")) {
    g_autoptr (GstCaps) usual = with_fields ("video/x-raw", batch, picture_fields, TRUE);

    gst_caps_set_simple (usual, "format", G_TYPE_STRING, gpu_format_info (GPU_FORMAT_RGB)->name, NULL);
    caps = append_numbered (trans, caps, usual, n);
  }
  return append_numbered (trans, caps, frames, n);
}

/* The shape of one part of a dense tensor, and how many there are. FALSE with @error set if there is no such tensor. */
static gboolean
parse_tensor (const GstStructure *tensor, GpuImageSpec *spec, guint *n, GError **error)
{
  g_autoptr (GstStructure) one = gst_structure_copy (tensor);
  const gchar *text = gst_structure_get_string (tensor, "dimensions");
  g_auto (GStrv) parts = g_strsplit (text ? text : "", ":", 5);
  g_autofree gchar *part = NULL;
  guint64 count = 0;

  if (!text) {
    g_set_error_literal (error, GPU_ERROR, GPU_ERROR_INVALID,
                         "A tensor needs frames of one size, and those of the batch may have any: put gpuresize in "
                         "front, with caps of that size behind it, or write out the tensor's dimensions, as in "
                         "\"640:640:3:4\" for four frames.");
    return FALSE;
  }
  if (g_strv_length (parts) != 4 || !g_ascii_string_to_unsigned (parts[3], 10, 1, GPU_MAX_BATCH, &count, NULL)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Caps have dimensions=%s, but a batch becomes a tensor of four, the last of which is the number of "
                 "frames, as in \"640:640:3:4\".",
                 text);
    return FALSE;
  }
  part = g_strdup_printf ("%s:%s:%s:1", parts[0], parts[1], parts[2]);
  gst_structure_set (one, "dimensions", G_TYPE_STRING, part, NULL);
  *n = (guint)count;
  return gst_gpu_tensor_spec_from_structure (spec, one, error);
}

/* Returns: (transfer full) (nullable): the batches that a tensor downstream can be made of. */
static GstCaps *
tensor_sources (const GstStructure *tensor)
{
  GstCaps *caps;
  GpuImageSpec spec;
  guint n;

  if (!gst_gpu_structure_is_tensor (tensor))
    return NULL;
  caps = gst_caps_new_empty_simple (GST_GPU_BATCH_NAME);
  gst_caps_set_features_simple (caps, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
  if (parse_tensor (tensor, &spec, &n, NULL))
    gst_caps_set_simple (caps, "width", G_TYPE_INT, (gint)spec.width, "height", G_TYPE_INT, (gint)spec.height, NULL);
  else if (gst_structure_get_string (tensor, "dimensions"))
    gst_clear_caps (&caps);
  return caps;
}

/* Transforming. */

/* Caps that leave a format out are fixed, and nobody would ask downstream for one. */
static void
offer_formats (GstBaseTransform *trans, GstCaps *batch)
{
  g_autoptr (GstCaps) all = gst_pad_get_pad_template_caps (GST_BASE_TRANSFORM_SRC_PAD (trans));

  if (GST_GPU_BASE_TRANSFORM_GET_CLASS (trans)->any_format &&
      !gst_structure_has_field (gst_caps_get_structure (batch, 0), "format"))
    gst_caps_set_value (batch, "format", gst_structure_get_value (gst_caps_get_structure (all, 0), "format"));
}

/* Likewise of tensors, which frames of every batch may be. */
static void
offer_types (GstCaps *batches)
{
  g_autoptr (GstCaps) any = gst_caps_new_empty ();
  g_autoptr (GstStructure) none = gst_structure_new_empty (GST_GPU_BATCH_NAME);

  gst_gpu_tensor_append (any, NULL, GST_GPU_TENSOR_ANY_TYPE, none);
  gst_caps_set_value (batches, "types", gst_structure_get_value (gst_caps_get_structure (any, 0), "types"));
}

/* Returns: (transfer full): what frames of caps @frames are as batches. Towards the sink pad, a field that may have any
 * of a number of values is none of the batch's: each frame has its own. The other way it is what can be asked for; see
 * gst_gpu_batch_fixate_caps(). */
static GstCaps *
batches_of (GstBaseTransform *trans, GstPadDirection direction, GstCaps *frames)
{
  const gboolean of_tensors = GST_GPU_BASE_TRANSFORM_GET_CLASS (trans)->batch_of_tensors;
  GstCaps *batches = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (frames); i++) {
    const GstStructure *its = gst_caps_get_structure (frames, i);
    GstCaps *batch;

    if (gst_gpu_structure_is_tensor (its))
      continue;
    batch = with_fields (GST_GPU_BATCH_NAME, its, picture_fields, direction == GST_PAD_SRC);
    if (direction == GST_PAD_SINK)
      offer_formats (trans, batch);
    batches = gst_caps_merge (batches, batch);
  }
  /* Tensors alone. */
  if (of_tensors && gst_caps_is_empty (batches) && !gst_caps_is_empty (frames))
    gst_caps_append_structure_full (batches, gst_structure_new_empty (GST_GPU_BATCH_NAME),
                                    gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
  if (of_tensors && direction == GST_PAD_SINK)
    offer_types (batches);
  return batches;
}

static GstCaps *
transform_batch_caps (GstBaseTransform *trans, GstPadDirection direction, const GstStructure *structure)
{
  const GValue *size = gst_structure_get_value (structure, "batch-size");
  g_autoptr (GstCaps) before = frames_of (trans, structure);
  g_autoptr (GstCaps) frames = transform_frame_caps (trans, direction, before);
  GstCaps *result = batches_of (trans, direction, frames);

  if (size)
    gst_caps_set_value (result, "batch-size", size);
  if (direction == GST_PAD_SINK && GST_GPU_BASE_TRANSFORM_GET_CLASS (trans)->batch_to_tensor)
    result = append_tensors (trans, result, structure);
  return result;
}

GstCaps *
gst_gpu_base_transform_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps,
                                       GstCaps *filter)
{
  const gboolean from_tensor = direction == GST_PAD_SRC && GST_GPU_BASE_TRANSFORM_GET_CLASS (trans)->batch_to_tensor;
  GstCaps *result = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    const GstStructure *structure = gst_caps_get_structure (caps, i);
    g_autoptr (GstCaps) one = NULL;
    GstCaps *sources;

    if (gst_structure_has_name (structure, GST_GPU_BATCH_NAME)) {
      result = gst_caps_merge (result, transform_batch_caps (trans, direction, structure));
      continue;
    }
    one = gst_caps_copy_nth (caps, i);
    result = gst_caps_merge (result, transform_frame_caps (trans, direction, one));
    sources = from_tensor ? tensor_sources (structure) : NULL;
    if (sources)
      result = gst_caps_merge (result, sources);
  }
  return gst_gpu_caps_filter (result, filter);
}

/* Fixating. */

/* Whether @structure asks for something that the element does not choose, which has no part in @full. */
static gboolean
asks_for_more (const GstStructure *structure, const GstStructure *full)
{
  for (guint i = 0; fields[i] && gst_structure_has_name (structure, GST_GPU_BATCH_NAME); i++)
    if (gst_structure_has_field (structure, fields[i]) && !(full && gst_structure_has_field (full, fields[i])))
      return TRUE;
  return FALSE;
}

/* Of what is left, the first that the frames can become: an element further down that converts would like best what it
 * need not convert. Returns: (transfer full): caps of one structure. */
static GstCaps *
choose_structure (GstCaps *others, const GstStructure *full)
{
  guint i = 0;
  GstCaps *result;

  while (i < gst_caps_get_size (others) && asks_for_more (gst_caps_get_structure (others, i), full))
    i++;
  result = gst_caps_copy_nth (others, i < gst_caps_get_size (others) ? i : 0);
  gst_caps_unref (others);
  return result;
}

/* Leaves a field out that may still be anything. Returns: whether it is asked for anew. */
static gboolean
settle_field (GstStructure *structure, const GstStructure *in, const GstStructure *full, const gchar *field)
{
  const GValue *value = gst_structure_get_value (structure, field), *any = gst_structure_get_value (full, field);

  if (!value || (any && gst_value_is_fixed (any)))
    return FALSE;
  if (any && !gst_value_is_fixed (value) && gst_value_compare (value, any) == GST_VALUE_EQUAL) {
    gst_structure_remove_field (structure, field);
    return FALSE;
  }
  return says_more (structure, in, field);
}

/* What is known of the frames that come in, and may stay so. */
static void
keep_field (GstStructure *structure, const GstStructure *in, const GstStructure *full, const gchar *field)
{
  const GValue *known = gst_structure_get_value (in, field), *any = gst_structure_get_value (full, field);

  if (known && gst_value_is_fixed (known) && !gst_structure_has_field (structure, field) &&
      (!any || gst_value_is_subset (known, any)))
    gst_structure_set_value (structure, field, known);
}

GstCaps *
gst_gpu_batch_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others)
{
  const GstStructure *in = gst_caps_get_structure (caps, 0);
  g_autoptr (GstCaps) all = transform_batch_caps (trans, direction, in);
  const GstStructure *full = gst_caps_is_empty (all) ? NULL : gst_caps_get_structure (all, 0);
  gboolean asked = FALSE;
  GstStructure *structure;

  if (gst_caps_is_empty (others))
    return others;
  others = choose_structure (others, full);
  if (!full || !gst_gpu_caps_are_batch (others))
    return gst_caps_fixate (others);
  structure = gst_caps_get_structure (others, 0);
  for (guint i = 0; fields[i]; i++)
    asked |= settle_field (structure, in, full, fields[i]);
  for (guint i = 0; fields[i] && !asked && direction == GST_PAD_SINK; i++)
    keep_field (structure, in, full, fields[i]);
  return gst_caps_fixate (others);
}

/* Frames. */

static void
mapping_free (gpointer data)
{
  GstGpuBatchMapping *mapping = data;

  gst_clear_caps (&mapping->in_caps);
  gst_clear_caps (&mapping->out_caps);
  g_free (mapping);
}

void
gst_gpu_base_transform_forget_batch (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  if (priv->mappings)
    g_ptr_array_set_size (priv->mappings, 0);
}

gboolean
gst_gpu_base_transform_set_batch_caps (GstGpuBaseTransform *self, GstCaps *in, GstCaps *out, GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);

  gst_gpu_base_transform_forget_batch (self);
  gst_gpu_frame_info_init (&priv->in);
  gst_gpu_frame_info_init (&priv->out);
  priv->in_is_gpu = priv->out_is_gpu = TRUE;
  gst_caps_replace (&priv->batch_caps, out);
  priv->tensor_size = 0;
  if (!gst_gpu_caps_are_batch (out) &&
      !parse_tensor (gst_caps_get_structure (out, 0), &priv->tensor, &priv->tensor_size, error))
    return FALSE;
  return !klass->set_batch || klass->set_batch (self, in, out, error);
}

/* What the caps of a frame become, by the element and what the batch's caps ask for. */
static GstCaps *
decide_frame_caps (GstGpuBaseTransform *self, GstCaps *caps)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  GstBaseTransform *trans = GST_BASE_TRANSFORM (self);
  g_autoptr (GstStructure) none = gst_structure_new_empty (GST_GPU_BATCH_NAME);
  g_autoptr (GstCaps) wanted =
      frames_of (trans, priv->tensor_size ? none : gst_caps_get_structure (priv->batch_caps, 0));
  GstCaps *others, *result;

  g_atomic_int_set (&priv->negotiating, TRUE);
  others = transform_frame_caps (trans, GST_PAD_SINK, caps);
  g_atomic_int_set (&priv->negotiating, FALSE);
  result = gst_caps_intersect_full (others, wanted, GST_CAPS_INTERSECT_FIRST);
  gst_caps_unref (others);
  if (gst_caps_is_empty (result))
    return result;
  /* Also of fixed caps: colours that a size stands for are written down where it changes. */
  return klass->fixate_frame_caps ? klass->fixate_frame_caps (trans, GST_PAD_SINK, caps, result)
                                  : gst_gpu_base_transform_fixate_frame_caps (trans, GST_PAD_SINK, caps, result);
}

/* GstVideoInfo of 1.22 forgets a chroma-site that stands without a colorimetry. */
static gboolean
read_frame_caps (GstGpuFrameInfo *info, const GstCaps *caps, GError **error)
{
  const gchar *site = gst_structure_get_string (gst_caps_get_structure (caps, 0), "chroma-site");

  if (!gst_gpu_frame_info_from_caps (info, caps, error))
    return FALSE;
  if (site)
    info->video.chroma_site = gst_video_chroma_site_from_string (site);
  return TRUE;
}

static GstGpuBatchMapping *
make_mapping (GstGpuBaseTransform *self, const GstGpuBatchFrame *frame, GError **error)
{
  g_autoptr (GstCaps) caps = decide_frame_caps (self, frame->caps);
  GstGpuBatchMapping *mapping;

  if (gst_caps_is_empty (caps)) {
    g_autofree gchar *from = gst_caps_to_string (frame->caps);
    g_autofree gchar *to = gst_caps_to_string (gst_gpu_base_transform_priv (self)->batch_caps);

    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "A frame of pad %u, %s, cannot become part of %s: put an element in front that converts it.",
                 frame->pad, from, to);
    return NULL;
  }
  mapping = g_new0 (GstGpuBatchMapping, 1);
  mapping->in_caps = gst_caps_ref (frame->caps);
  mapping->out_caps = gst_caps_ref (caps);
  if (read_frame_caps (&mapping->in, frame->caps, error) && read_frame_caps (&mapping->out, caps, error))
    return mapping;
  mapping_free (mapping);
  return NULL;
}

/* Caps are mostly the same object from batch to batch. */
const GstGpuBatchMapping *
gst_gpu_batch_find_mapping (GstGpuBaseTransform *self, const GstGpuBatchFrame *frame, GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstGpuBatchMapping *mapping;

  if (!priv->mappings)
    priv->mappings = g_ptr_array_new_with_free_func (mapping_free);
  for (guint i = 0; i < priv->mappings->len; i++) {
    mapping = g_ptr_array_index (priv->mappings, i);
    if (mapping->in_caps == frame->caps)
      return mapping;
  }
  mapping = make_mapping (self, frame, error);
  if (!mapping)
    return NULL;
  g_ptr_array_add (priv->mappings, mapping);
  return mapping;
}

void
gst_gpu_batch_trim_mappings (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  if (priv->mappings && priv->mappings->len > MAX_MAPPINGS)
    gst_gpu_base_transform_forget_batch (self);
}
