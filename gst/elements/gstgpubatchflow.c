/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Batches in a GstGpuBaseTransform; see the header. A frame of a batch becomes what it would become alone: its caps go
 * through the class' functions for frames, restricted to what the batch's caps ask for.
 */
#include "gstgpubatchflow.h"

#include "gstgpubasetransform-priv.h"
#include "gstgpuframe.h"

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

/* What a frame with certain caps becomes. */
typedef struct {
  GstGpuFrameInfo in, out;
  GstCaps *in_caps, *out_caps;
} Mapping;

/* So many caps of frames are remembered from one batch to the next. */
#define MAX_MAPPINGS 256

/* The fields that caps of batches and of their frames have in common. */
static const gchar *const fields[] = {"format", "width", "height", "pixel-aspect-ratio", "colorimetry", "chroma-site"};

static void
mapping_free (gpointer data)
{
  Mapping *mapping = data;

  gst_clear_caps (&mapping->in_caps);
  gst_clear_caps (&mapping->out_caps);
  g_free (mapping);
}

gboolean
gst_gpu_caps_are_batch (const GstCaps *caps)
{
  return gst_caps_get_size (caps) > 0 && gst_structure_has_name (gst_caps_get_structure (caps, 0), GST_GPU_BATCH_NAME);
}

/* Caps. */

/* Copies the fields that are there, and have one value if @fixed. */
static void
copy_fields (GstStructure *to, const GstStructure *from, gboolean fixed)
{
  for (guint i = 0; i < G_N_ELEMENTS (fields); i++) {
    const GValue *value = gst_structure_get_value (from, fields[i]);

    if (value && (!fixed || gst_value_is_fixed (value)))
      gst_structure_set_value (to, fields[i], value);
  }
}

/* Returns: (transfer full): @structure's fields as caps of pictures or, of pictures' caps, as those of a batch. */
static GstCaps *
with_name (const gchar *name, const GstStructure *structure, gboolean fixed)
{
  GstCaps *caps = gst_caps_new_empty_simple (name);

  copy_fields (gst_caps_get_structure (caps, 0), structure, fixed);
  gst_caps_set_features_simple (caps, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
  return caps;
}

static GstCaps *
transform_frame_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps)
{
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (trans);

  return klass->transform_frame_caps ? klass->transform_frame_caps (trans, direction, caps, NULL) : gst_caps_ref (caps);
}

/* The tensors that all frames of a batch may become together: planar first, as most models take them. */
static void
append_tensors (GstCaps *caps, const GstStructure *batch)
{
  const gchar *name = gst_structure_get_string (batch, "format");
  const GpuFormatInfo *info = name ? gpu_format_info (gpu_format_from_name (name)) : NULL;
  const guint channels = info ? info->n_channels : 3;
  GstStructure *tensor = gst_structure_from_string (GST_GPU_TENSOR_NAME ", " GST_GPU_TENSOR_FIELDS, NULL);
  GValue list = G_VALUE_INIT, types = G_VALUE_INIT;
  gint width, height, size;

  g_value_init (&types, GST_TYPE_LIST);
  for (guint element = GPU_N_ELEMENTS; element > 0; element--) {
    GValue type = G_VALUE_INIT;

    g_value_init (&type, G_TYPE_STRING);
    g_value_set_static_string (&type, gpu_element_name ((GpuElement)(element - 1)));
    gst_value_list_append_and_take_value (&types, &type);
  }
  gst_structure_take_value (tensor, "types", &types);

  if (gst_structure_get_int (batch, "width", &width) && gst_structure_get_int (batch, "height", &height) &&
      gst_structure_get_int (batch, "batch-size", &size)) {
    g_value_init (&list, GST_TYPE_LIST);
    for (guint c = channels; c >= 3 || c == channels; c--) {
      GValue planar = G_VALUE_INIT, packed = G_VALUE_INIT;

      g_value_init (&planar, G_TYPE_STRING);
      g_value_take_string (&planar, g_strdup_printf ("%d:%d:%u:%d", width, height, c, size));
      gst_value_list_append_and_take_value (&list, &planar);
      g_value_init (&packed, G_TYPE_STRING);
      g_value_take_string (&packed, g_strdup_printf ("%u:%d:%d:%d", c, width, height, size));
      gst_value_list_append_and_take_value (&list, &packed);
    }
    gst_structure_take_value (tensor, "dimensions", &list);
  }
  gst_caps_append_structure_full (caps, tensor, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
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

  if (g_strv_length (parts) != 4 || !g_ascii_string_to_unsigned (parts[3], 10, 1, GPU_MAX_BATCH, &count, NULL)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Caps have dimensions=%s, but a batch becomes a tensor of four, the last of which is the number of "
                 "frames, as in \"640:640:3:4\".",
                 text ? text : "(none)");
    return FALSE;
  }
  part = g_strdup_printf ("%s:%s:%s:1", parts[0], parts[1], parts[2]);
  gst_structure_set (one, "dimensions", G_TYPE_STRING, part, NULL);
  *n = (guint)count;
  return gst_gpu_tensor_spec_from_structure (spec, one, error);
}

/* Whether @structure is of tensors, and not of those of single frames. */
static gboolean
may_be_of_batch (const GstStructure *structure)
{
  const gchar *text = gst_structure_get_string (structure, "dimensions");
  GpuImageSpec spec;

  return gst_structure_has_name (structure, GST_GPU_TENSOR_NAME) &&
         (!text || !gst_gpu_tensor_spec_from_structure (&spec, structure, NULL));
}

/* The batches that a tensor downstream is made of. */
static GstCaps *
tensor_sources (const GstStructure *tensor)
{
  g_autoptr (GstStructure) none = gst_structure_new_empty (GST_GPU_BATCH_NAME);
  GstCaps *caps = with_name (GST_GPU_BATCH_NAME, none, TRUE);
  GpuImageSpec spec;
  guint n;

  if (parse_tensor (tensor, &spec, &n, NULL))
    gst_caps_set_simple (caps, "width", G_TYPE_INT, (gint)spec.width, "height", G_TYPE_INT, (gint)spec.height, NULL);
  return caps;
}

/* Caps that leave a format out are fixed, and nobody would ask downstream for one. */
static void
offer_formats (GstBaseTransform *trans, GstCaps *batch)
{
  g_autoptr (GstCaps) all = gst_pad_get_pad_template_caps (GST_BASE_TRANSFORM_SRC_PAD (trans));

  if (GST_GPU_BASE_TRANSFORM_GET_CLASS (trans)->any_format &&
      !gst_structure_has_field (gst_caps_get_structure (batch, 0), "format"))
    gst_caps_set_value (batch, "format", gst_structure_get_value (gst_caps_get_structure (all, 0), "format"));
}

/* Towards the sink pad, a field that may have any of a number of values is none of the batch's: each frame has its own.
 * The other way it is what can be asked for; see gst_gpu_batch_fixate_caps(). */
static GstCaps *
transform_batch_caps (GstBaseTransform *trans, GstPadDirection direction, const GstStructure *structure)
{
  g_autoptr (GstCaps) frame = with_name ("video/x-raw", structure, FALSE);
  g_autoptr (GstCaps) frames = transform_frame_caps (trans, direction, frame);
  GstCaps *result = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (frames); i++) {
    const GstStructure *its = gst_caps_get_structure (frames, i);

    GstCaps *batch;

    if (!gst_structure_has_name (its, "video/x-raw"))
      continue;
    batch = with_name (GST_GPU_BATCH_NAME, its, direction == GST_PAD_SRC);
    if (direction == GST_PAD_SINK)
      offer_formats (trans, batch);
    if (gst_structure_has_field (structure, "batch-size"))
      gst_caps_set_value (batch, "batch-size", gst_structure_get_value (structure, "batch-size"));
    result = gst_caps_merge (result, batch);
  }
  if (direction == GST_PAD_SINK && GST_GPU_BASE_TRANSFORM_GET_CLASS (trans)->batch_to_tensor)
    append_tensors (result, structure);
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

    if (gst_structure_has_name (structure, GST_GPU_BATCH_NAME)) {
      result = gst_caps_merge (result, transform_batch_caps (trans, direction, structure));
      continue;
    }
    one = gst_caps_copy_nth (caps, i);
    result = gst_caps_merge (result, transform_frame_caps (trans, direction, one));
    if (from_tensor && may_be_of_batch (structure))
      result = gst_caps_merge (result, tensor_sources (structure));
  }
  return gst_gpu_caps_filter (result, filter);
}

/* Whether @structure asks for something that the element does not choose, which has no part in @full. */
static gboolean
asks_for_more (const GstStructure *structure, const GstStructure *full)
{
  for (guint i = 0; i < G_N_ELEMENTS (fields) && gst_structure_has_name (structure, GST_GPU_BATCH_NAME); i++)
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

GstCaps *
gst_gpu_batch_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others)
{
  g_autoptr (GstCaps) all = transform_batch_caps (trans, direction, gst_caps_get_structure (caps, 0));
  const GstStructure *full = gst_caps_is_empty (all) ? NULL : gst_caps_get_structure (all, 0);
  GstStructure *structure;

  if (gst_caps_is_empty (others))
    return others;
  others = choose_structure (others, full);
  if (!gst_gpu_caps_are_batch (others))
    return gst_caps_fixate (others);
  structure = gst_caps_get_structure (others, 0);
  for (guint i = 0; full && i < G_N_ELEMENTS (fields); i++) {
    const GValue *value = gst_structure_get_value (structure, fields[i]);
    const GValue *any = gst_structure_get_value (full, fields[i]);

    if (value && any && !gst_value_is_fixed (value) && gst_value_compare (value, any) == GST_VALUE_EQUAL)
      gst_structure_remove_field (structure, fields[i]);
  }
  return gst_caps_fixate (others);
}

void
gst_gpu_base_transform_forget_batch (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  if (priv->mappings)
    g_ptr_array_set_size (priv->mappings, 0);
}

gboolean
gst_gpu_base_transform_set_batch_caps (GstGpuBaseTransform *self, GstCaps *out, GError **error)
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
  return !klass->set_batch || klass->set_batch (self, out, error);
}

/* What the caps of a frame become, by the element and what the batch's caps ask for. */
static GstCaps *
decide_frame_caps (GstGpuBaseTransform *self, GstCaps *caps)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  GstBaseTransform *trans = GST_BASE_TRANSFORM (self);
  g_autoptr (GstStructure) none = gst_structure_new_empty ("video/x-raw");
  g_autoptr (GstCaps) wanted =
      with_name ("video/x-raw", priv->tensor_size ? none : gst_caps_get_structure (priv->batch_caps, 0), FALSE);
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

static Mapping *
make_mapping (GstGpuBaseTransform *self, const GstGpuBatchFrame *frame, GError **error)
{
  g_autoptr (GstCaps) caps = decide_frame_caps (self, frame->caps);
  Mapping *mapping;

  if (gst_caps_is_empty (caps)) {
    g_autofree gchar *from = gst_caps_to_string (frame->caps);
    g_autofree gchar *to = gst_caps_to_string (gst_gpu_base_transform_priv (self)->batch_caps);

    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "A frame of pad %u, %s, cannot become part of %s: put an element in front that converts it.",
                 frame->pad, from, to);
    return NULL;
  }
  mapping = g_new0 (Mapping, 1);
  mapping->in_caps = gst_caps_ref (frame->caps);
  mapping->out_caps = gst_caps_ref (caps);
  if (read_frame_caps (&mapping->in, frame->caps, error) && read_frame_caps (&mapping->out, caps, error))
    return mapping;
  mapping_free (mapping);
  return NULL;
}

/* Caps are mostly the same object from batch to batch. */
static const Mapping *
find_mapping (GstGpuBaseTransform *self, const GstGpuBatchFrame *frame, GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  Mapping *mapping;

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

/* Frames. */

static GstMemory *
frame_memory (const GstGpuBatchFrame *frame)
{
  return frame->buffer ? gst_gpu_frame_memory (frame->buffer) : NULL;
}

GstMemory *
gst_gpu_batch_first_memory (GstBuffer *buffer)
{
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);
  GstMemory *memory = NULL;

  for (guint i = 0; meta && i < meta->n_frames && !memory; i++)
    memory = frame_memory (&meta->frames[i]);
  return memory;
}

GpuStream *
gst_gpu_batch_stream (GstBuffer *buffer)
{
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);
  GpuStream *stream = NULL;

  for (guint i = 0; meta && i < meta->n_frames; i++) {
    GstMemory *memory = frame_memory (&meta->frames[i]);
    GpuStream *its = memory ? gst_gpu_memory_get_stream (memory) : stream;

    if (stream && its != stream)
      return NULL;
    stream = its;
  }
  return stream;
}

gboolean
gst_gpu_base_transform_check_batch (GstGpuBaseTransform *self, GstBuffer *buffer)
{
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);
  GpuDevice *device = gst_gpu_base_transform_priv (self)->device;

  if (!meta) {
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
                       ("A buffer came without a GstGpuBatchMeta although its caps say " GST_GPU_BATCH_NAME
                        ": put gpubatch in front."),
                       (NULL));
    return FALSE;
  }
  for (guint i = 0; i < meta->n_frames; i++) {
    GstMemory *memory = frame_memory (&meta->frames[i]);
    GpuDevice *its = memory ? gpu_image_device (gst_gpu_memory_get_image (memory)) : device;

    if (its == device)
      continue;
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
                       ("A frame of device %s, of pad %u, cannot be used on device %s: give all elements the same "
                        "device.",
                        gpu_device_name (its), meta->frames[i].pad, gpu_device_name (device)),
                       (NULL));
    return FALSE;
  }
  return TRUE;
}

static GstAllocator *
get_allocator (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  if (priv->allocator && gst_gpu_allocator_get_device (GST_GPU_ALLOCATOR (priv->allocator)) != priv->device)
    gst_clear_object (&priv->allocator);
  if (!priv->allocator)
    priv->allocator = gst_gpu_allocator_new (priv->device);
  return priv->allocator;
}

/* An image of the batch as a frame, with all that belongs to the one that it is made of. */
static GstBuffer *
new_frame (GstGpuBaseTransform *self, GpuImage *image, GpuStream *stream, const Mapping *mapping, GstBuffer *in)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  const GpuImageSpec *spec = gpu_image_spec (image);
  GstVideoInfo info = mapping->out.video;
  GstBuffer *buffer = gst_buffer_new ();

  for (guint i = 0; i < GST_VIDEO_INFO_N_PLANES (&info); i++) {
    GST_VIDEO_INFO_PLANE_STRIDE (&info, i) = (gint)spec->stride[i];
    GST_VIDEO_INFO_PLANE_OFFSET (&info, i) = spec->offset[i];
  }
  GST_VIDEO_INFO_SIZE (&info) = spec->size;
  gst_buffer_append_memory (buffer, gst_gpu_allocator_take_image (GST_GPU_ALLOCATOR (get_allocator (self)),
                                                                  gpu_image_ref (image), &info, stream));
  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT (&info),
                                  (guint)GST_VIDEO_INFO_WIDTH (&info), (guint)GST_VIDEO_INFO_HEIGHT (&info),
                                  GST_VIDEO_INFO_N_PLANES (&info), info.offset, info.stride);

  /* Where regions go depends on the sizes. */
  priv->in = mapping->in;
  priv->out = mapping->out;
  if (!GST_BASE_TRANSFORM_GET_CLASS (self)->copy_metadata (GST_BASE_TRANSFORM (self), in, buffer))
    GST_WARNING_OBJECT (self, "metas of %" GST_PTR_FORMAT " were not copied", (gpointer)in);
  return buffer;
}

static void
replace_frame (GstGpuBatchFrame *frame, GstBuffer *buffer, const Mapping *mapping)
{
  gst_buffer_unref (frame->buffer);
  frame->buffer = buffer;
  gst_caps_replace (&frame->caps, mapping->out_caps);
  frame->crop = (GstVideoRectangle){.w = (gint)mapping->out.spec.width, .h = (gint)mapping->out.spec.height};
}

/* The output with everything but its images. */
static GstBuffer *
copy_batch (GstBuffer *in)
{
  GstBuffer *out = gst_buffer_new ();

  gst_buffer_copy_into (out, in, GST_BUFFER_COPY_METADATA, 0, -1);
  g_clear_pointer (&gst_buffer_get_gpu_batch_meta (out)->batch, gpu_batch_unref);
  return out;
}

/* Only those that are parts of the tensor stay, in their order, without buffers. */
static void
keep_parts (GstGpuBatchMeta *meta)
{
  guint n = 0;

  for (guint i = 0; i < meta->n_frames; i++) {
    GstGpuBatchFrame frame = meta->frames[i];

    if (!frame.buffer) {
      gst_gpu_batch_frame_clear (&frame);
      continue;
    }
    gst_clear_buffer (&frame.buffer);
    gst_clear_caps (&frame.caps);
    meta->frames[n++] = frame;
  }
  meta->n_frames = n;
}

/* One memory for all frames. */
static GstBuffer *
new_tensor (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, guint n, GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GpuBatch *batch;
  GstGpuBatchMeta *meta;
  GstBuffer *out;

  if (n > priv->tensor_size) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A batch of %u frames does not fit in a tensor of %u: set gpubatch's max-batch-size.", n,
                 priv->tensor_size);
    return NULL;
  }
  batch = gpu_batch_acquire_dense (priv->device, &priv->tensor, priv->tensor_size, GPU_MEMORY_STREAM_ORDERED, stream,
                                   error);
  if (!batch)
    return NULL;
  out = copy_batch (in);
  meta = gst_buffer_get_gpu_batch_meta (out);
  meta->batch = batch;
  keep_parts (meta);
  gst_buffer_append_memory (out,
                            gst_gpu_allocator_take_image (GST_GPU_ALLOCATOR (get_allocator (self)),
                                                          gpu_image_ref (gpu_batch_dense_image (batch)), NULL, stream));
  return out;
}

GstBuffer *
gst_gpu_base_transform_new_batch (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  const GstGpuBatchMeta *from = gst_buffer_get_gpu_batch_meta (in);
  g_autofree GpuImageSpec *specs = g_new (GpuImageSpec, from->n_frames);
  g_autofree const Mapping **mappings = g_new (const Mapping *, from->n_frames);
  GstGpuBatchMeta *to;
  GstBuffer *out;
  guint n = 0;

  if (priv->mappings && priv->mappings->len > MAX_MAPPINGS)
    gst_gpu_base_transform_forget_batch (self);
  for (guint i = 0; i < from->n_frames; i++) {
    const GpuImageSpec *spec;

    if (!from->frames[i].buffer)
      continue;
    mappings[n] = find_mapping (self, &from->frames[i], error);
    if (!mappings[n])
      return NULL;
    spec = &mappings[n]->out.spec;
    if (!gpu_image_spec_init (&specs[n++], spec->format, spec->width, spec->height, 0, error))
      return NULL;
  }
  /* Ends of streams alone are nothing that a model is to look at. */
  if (priv->tensor_size > 0)
    return n > 0 ? new_tensor (self, stream, in, n, error) : NULL;

  out = copy_batch (in);
  if (n == 0)
    return out;
  to = gst_buffer_get_gpu_batch_meta (out);
  to->batch = gpu_batch_acquire (priv->device, specs, n, GPU_MEMORY_STREAM_ORDERED, stream, error);
  if (!to->batch) {
    gst_buffer_unref (out);
    return NULL;
  }
  for (guint i = 0, k = 0; i < to->n_frames; i++) {
    GstGpuBatchFrame *frame = &to->frames[i];

    if (!frame->buffer)
      continue;
    replace_frame (frame, new_frame (self, gpu_batch_image (to->batch, k), stream, mappings[k], frame->buffer),
                   mappings[k]);
    k++;
  }
  gst_gpu_frame_info_init (&priv->in);
  gst_gpu_frame_info_init (&priv->out);
  return out;
}

static void
unref_images (GpuImage **images, guint n)
{
  for (guint i = 0; i < n; i++)
    gpu_image_unref (images[i]);
}

/* Parts of a tensor that there are no frames for become zeros: they are the rest of its memory. */
static gboolean
clear_parts (GpuStream *stream, GpuBatch *batch, guint first, GError **error)
{
  GpuImage *all = gpu_batch_dense_image (batch), *rest;
  const GpuImageSpec *part = gpu_image_spec (gpu_batch_image (batch, 0));
  const guint64 rows = (gpu_batch_size (batch) - first) * (part->size / part->stride[0]);
  GpuImageSpec spec;
  gboolean cleared;

  if (first == gpu_batch_size (batch))
    return TRUE;
  /* As bytes, which are as many rows as before. */
  if (!gpu_image_spec_init (&spec, GPU_FORMAT_GRAY8, (guint32)part->stride[0], (guint32)rows, 1, error))
    return FALSE;
  rest = gpu_image_view_as (all, first * part->size, &spec, error);
  if (!rest)
    return FALSE;
  cleared = gpu_image_fill (stream, rest, 0, error);
  gpu_image_unref (rest);
  return cleared;
}

gboolean
gst_gpu_base_transform_process_batch (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, GstBuffer *out,
                                      GError **error)
{
  const GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  const GstGpuBatchMeta *from = gst_buffer_get_gpu_batch_meta (in), *to = gst_buffer_get_gpu_batch_meta (out);
  g_autofree GpuImage **images = g_new (GpuImage *, from->n_frames);
  g_autofree GstGpuFrameInfo *in_infos = g_new (GstGpuFrameInfo, from->n_frames);
  g_autofree GstGpuFrameInfo *out_infos = g_new (GstGpuFrameInfo, from->n_frames);
  g_autoptr (GpuBatch) src = NULL;
  guint n = 0;

  for (guint i = 0; i < from->n_frames; i++) {
    const GstGpuBatchFrame *frame = &from->frames[i];
    const Mapping *mapping;

    if (!frame->buffer)
      continue;
    mapping = find_mapping (self, frame, error);
    images[n] = !mapping            ? NULL
                : klass->ref_source ? klass->ref_source (self, n, frame->buffer, &mapping->in, error)
                                    : gst_gpu_frame_ref_image (frame->buffer, &mapping->in, error);
    if (!images[n]) {
      unref_images (images, n);
      return FALSE;
    }
    in_infos[n] = mapping->in;
    out_infos[n] = mapping->out;
    if (priv->tensor_size > 0) {
      gst_gpu_frame_info_init (&out_infos[n]);
      out_infos[n].spec = priv->tensor;
    }
    n++;
  }
  if (n == 0)
    return TRUE;
  src = gpu_batch_new (images, n, error);
  unref_images (images, n);
  return src && (priv->tensor_size == 0 || clear_parts (stream, to->batch, n, error)) &&
         klass->process_batch (self, stream, src, to->batch, in_infos, out_infos, error);
}
