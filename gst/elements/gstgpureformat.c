/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpureformat
 * @title: gpureformat
 * @short_description: Changes layout and element type of tensors on the device
 *
 * Makes a tensor of a tensor in device memory: interleaved (HWC, `dimensions=3:640:480:1`) or planar (CHW,
 * `dimensions=640:480:3:1`), of `types` uint8, float16 or float32. The caps downstream decide; where they leave the
 * choice, `layout` does, and else layout and type stay what they are. Channels keep their order.
 *
 * Each element may be multiplied by `scale` and added to `offset`, in single precision; to 8 bits the result is rounded
 * to nearest and saturated. So `scale=0.00392156862745098` makes numbers of 0 to 1 of 8 bits. This is where element
 * types are converted; gpunormalize makes the first tensor of a picture, with a scale for each channel.
 *
 * A picture of an RGB format or GRAY8 counts as an 8-bit tensor with the channels R, G, B, A: it becomes a uint8
 * tensor, or such a tensor a picture. Pictures become other pictures of the same channels, packed (RGB, BGRx, ...) or
 * planar (RGBP, GBR); for the planar ones, `layout=chw`. `scale` and `offset` are for tensors only. Colours are
 * converted by gpuconvert.
 *
 * It takes batches, too, of pictures and tensors mixed. Behind it, `format` in a batch's caps makes pictures of all
 * frames, and `types` tensors; caps of tensors make one dense uint8 tensor of pictures of one size.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=640,height=480 ! gpuupload ! \
 *   gpureformat ! "other/tensors(memory:GPUCache),dimensions=3:640:480:1" ! \
 *   gpureformat layout=chw scale=0.00392156862745098 ! "other/tensors(memory:GPUCache),types=float32" ! \
 *   gpudownload ! filesink location=tensor.raw
 * ]|
 */
#include "gstgpubasetransform.h"
#include "gstgpuelements.h"
#include "gstgputensor.h"

#include <math.h>

GST_DEBUG_CATEGORY_STATIC (gst_gpu_reformat_debug);
#define GST_CAT_DEFAULT gst_gpu_reformat_debug

enum {
  PROP_0,
  PROP_LAYOUT,
  PROP_SCALE,
  PROP_OFFSET,
};

#define DEFAULT_LAYOUT GST_GPU_TENSOR_LAYOUT_ANY
#define DEFAULT_SCALE 1.0
#define DEFAULT_OFFSET 0.0

struct _GstGpuReformat {
  GstGpuBaseTransform parent;

  /* Under the object lock. */
  GstGpuTensorLayout layout;
  gdouble scale, offset;
  gboolean changed;

  /* Of the streaming thread. */
  GpuConvert params; /* what the frames get */
  gboolean same;     /* frames go out in the layout and type that they came in */
};

#define GST_TYPE_GPU_REFORMAT (gst_gpu_reformat_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuReformat, gst_gpu_reformat, GST, GPU_REFORMAT, GstGpuBaseTransform)
G_DEFINE_TYPE (GstGpuReformat, gst_gpu_reformat, GST_TYPE_GPU_BASE_TRANSFORM)
#define parent_class gst_gpu_reformat_parent_class
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpureformat, "gpureformat", GST_RANK_NONE, GST_TYPE_GPU_REFORMAT,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_reformat_debug, "gpureformat", 0,
                                                                "gpureformat"))

/* Formats that are tensors of 8 bits in all but name. */
#define REFORMAT_CAPS                                                                                                  \
  GST_GPU_TENSOR_CAPS "; " GST_GPU_BATCH_CAPS "; " GST_VIDEO_CAPS_MAKE_WITH_FEATURES (                                 \
      GST_CAPS_FEATURE_MEMORY_GPU_CACHE,                                                                               \
      "{ RGBA, BGRA, ARGB, ABGR, RGBx, BGRx, xRGB, xBGR, RGB, BGR, RGBP, GBR, GRAY8 }")

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (REFORMAT_CAPS));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (REFORMAT_CAPS));

/* Caps. */

/* A picture as a tensor: its channels, 0 if it cannot be one, and its layout. GRAY8 has both. */
static guint
picture_channels (const GpuFormatInfo *info, GpuLayout *layout)
{
  const guint channels = gst_gpu_tensor_channels (info);

  *layout = channels && info->n_planes > 1 ? GPU_LAYOUT_CHW : GPU_LAYOUT_HWC;
  return channels;
}

static gboolean
is_allowed (GstGpuTensorLayout choice, guint channels, GpuLayout layout)
{
  return channels > 0 && (channels == 1 || gst_gpu_tensor_layout_allows (choice, layout));
}

/* Its format becomes a list of the pictures with so many channels (0: any number) and a layout of @choice. */
static void
set_formats (GstStructure *video, guint channels, GstGpuTensorLayout choice)
{
  GValue list = G_VALUE_INIT;

  g_value_init (&list, GST_TYPE_LIST);
  for (guint format = 1; format <= GPU_LAST_PICTURE_FORMAT; format++) {
    const GpuFormatInfo *info = gpu_format_info ((GpuFormat)format);
    GpuLayout layout;
    const guint n = picture_channels (info, &layout);
    GValue item = G_VALUE_INIT;

    if (!is_allowed (choice, n, layout) || (channels && n != channels))
      continue;
    g_value_init (&item, G_TYPE_STRING);
    g_value_set_static_string (&item, info->name);
    gst_value_list_append_and_take_value (&list, &item);
  }
  gst_structure_take_value (video, "format", &list);
}

/* Adds tensors of @shape with a layout of @choice. */
static void
append_tensors (GstCaps *caps, const GstStructure *from, const GpuImageSpec *shape, guint types,
                GstGpuTensorLayout choice)
{
  for (guint layout = 0; layout < GPU_N_LAYOUTS; layout++) {
    GpuImageSpec spec;

    if (gst_gpu_tensor_layout_allows (choice, (GpuLayout)layout) &&
        gpu_image_spec_init_tensor (&spec, GPU_ELEMENT_U8, (GpuLayout)layout, shape->channels, shape->width,
                                    shape->height, NULL))
      gst_gpu_tensor_append (caps, &spec, types, from);
  }
}

/* Adds pictures of @shape (NULL: any). */
static void
append_pictures (GstCaps *caps, const GstStructure *from, const GpuImageSpec *shape, GstGpuTensorLayout choice)
{
  GstStructure *video = gst_gpu_structure_like (from, "video/x-raw");

  set_formats (video, shape ? shape->channels : 0, choice);
  if (shape)
    gst_structure_set (video, "width", G_TYPE_INT, (gint)shape->width, "height", G_TYPE_INT, (gint)shape->height, NULL);
  if (gst_value_list_get_size (gst_structure_get_value (video, "format")) > 0)
    gst_caps_append_structure_full (caps, video, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
  else
    gst_structure_free (video);
}

static gboolean
may_be_bytes (const GstStructure *tensor)
{
  const GValue *types = gst_structure_get_value (tensor, "types");
  GValue bytes = G_VALUE_INIT;
  gboolean result;

  if (!types)
    return TRUE;
  g_value_init (&bytes, G_TYPE_STRING);
  g_value_set_static_string (&bytes, gpu_element_name (GPU_ELEMENT_U8));
  result = gst_value_intersect (NULL, types, &bytes);
  g_value_unset (&bytes);
  return result;
}

/* @own: what the layout of the pad that @tensor belongs to can be; @choice: that of the other one. */
static void
transform_tensor (GstCaps *result, GstPadDirection direction, const GstStructure *tensor, GstGpuTensorLayout own,
                  GstGpuTensorLayout choice)
{
  GpuImageSpec shapes[16];
  const gint n = gst_gpu_tensor_shapes (direction, tensor, shapes, G_N_ELEMENTS (shapes));

  if (n < 0) {
    gst_gpu_tensor_append (result, NULL, GST_GPU_TENSOR_ANY_TYPE, tensor);
    if (may_be_bytes (tensor))
      append_pictures (result, tensor, NULL, choice);
  }
  for (gint i = 0; i < n; i++) {
    if (!gst_gpu_tensor_layout_allows (own, gpu_format_info (shapes[i].format)->layout))
      continue;
    append_tensors (result, tensor, &shapes[i], GST_GPU_TENSOR_ANY_TYPE, choice);
    if (may_be_bytes (tensor))
      append_pictures (result, tensor, &shapes[i], choice);
  }
}

/* The same picture in other formats of the same channels. */
static void
transform_picture (GstCaps *result, const GstStructure *video, const GpuFormatInfo *info, GstGpuTensorLayout own,
                   GstGpuTensorLayout choice)
{
  GstStructure *other = gst_structure_copy (video);
  GpuLayout layout;
  const guint channels = picture_channels (info, &layout);
  gint width, height;

  if (info && !is_allowed (own, channels, layout)) {
    gst_structure_free (other);
    return;
  }
  set_formats (other, channels, choice);
  gst_caps_append_structure_full (result, other, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));

  if (info && gst_structure_get_int (video, "width", &width) && gst_structure_get_int (video, "height", &height)) {
    GpuImageSpec shape = {.channels = channels, .width = (guint32)width, .height = (guint32)height};

    append_tensors (result, video, &shape, GST_GPU_TENSOR_BYTES, choice);
  } else {
    gst_gpu_tensor_append (result, NULL, GST_GPU_TENSOR_BYTES, video);
  }
}

static GstCaps *
gst_gpu_reformat_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstGpuReformat *self = GST_GPU_REFORMAT (trans);
  GstCaps *result = gst_caps_new_empty ();
  GstGpuTensorLayout out, own, other;

  GST_OBJECT_LOCK (self);
  out = self->layout;
  GST_OBJECT_UNLOCK (self);
  own = direction == GST_PAD_SRC ? out : GST_GPU_TENSOR_LAYOUT_ANY;
  other = direction == GST_PAD_SINK ? out : GST_GPU_TENSOR_LAYOUT_ANY;

  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    const GstStructure *structure = gst_caps_get_structure (caps, i);
    const gchar *format = gst_structure_get_string (structure, "format");

    if (gst_gpu_structure_is_tensor (structure))
      transform_tensor (result, direction, structure, own, other);
    else
      transform_picture (result, structure, format ? gpu_format_info (gpu_format_from_name (format)) : NULL, own,
                         other);
  }
  return gst_gpu_caps_filter (result, filter);
}

/* The tensors that @in can become, the one that changes least first. */
static guint
list_candidates (const GpuImageSpec *in, GpuImageSpec candidates[GPU_N_ELEMENTS * GPU_N_LAYOUTS])
{
  const GpuFormatInfo *info = gpu_format_info (in->format);
  GpuLayout layout = info->layout;
  const guint channels = info->is_tensor ? in->channels : picture_channels (info, &layout);
  guint n = 0;

  /* A picture becomes bytes only. */
  for (guint i = 0; i < (info->is_tensor ? GPU_N_ELEMENTS : 1); i++)
    for (guint k = 0; k < GPU_N_LAYOUTS; k++)
      n +=
          gpu_image_spec_init_tensor (&candidates[n], (GpuElement)((info->element + i) % GPU_N_ELEMENTS),
                                      (GpuLayout)((layout + k) % GPU_N_LAYOUTS), channels, in->width, in->height, NULL);
  return n;
}

/* The frames as they are, if they may stay so; else of the same kind, if they may; else what the other side prefers. */
static GstCaps *
gst_gpu_reformat_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others)
{
  GpuImageSpec candidates[GPU_N_ELEMENTS * GPU_N_LAYOUTS];
  GstCaps *same = gst_caps_intersect_full (caps, others, GST_CAPS_INTERSECT_FIRST);
  GstGpuFrameInfo info;

  if (!gst_caps_is_empty (same)) {
    gst_caps_unref (others);
    others = same;
  } else {
    gst_caps_unref (same);
    if (!gst_caps_is_empty (others) && gst_gpu_structure_is_tensor (gst_caps_get_structure (others, 0)) &&
        gst_gpu_frame_info_from_caps (&info, caps, NULL)) {
      GstCaps *best = gst_gpu_tensor_fixate (others, candidates, list_candidates (&info.spec, candidates));

      others = best ? best : others;
    }
  }
  return gst_gpu_base_transform_fixate_frame_caps (trans, direction, caps, others);
}

/* Parameters. */

static gboolean
check_number (const gchar *property, gdouble value, GError **error)
{
  if (isfinite ((gfloat)value))
    return TRUE;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "%s: %g cannot be used: give a finite number from %g to %g, as single precision has them.", property,
               value, -G_MAXFLOAT, G_MAXFLOAT);
  return FALSE;
}

/* Under the object lock. */
static gboolean
make_params (GstGpuReformat *self, GpuConvert *params, GError **error)
{
  gpu_convert_init (params);
  if (!check_number ("scale", self->scale, error) || !check_number ("offset", self->offset, error))
    return FALSE;
  params->scale = (gfloat)self->scale;
  params->offset = (gfloat)self->offset;
  return TRUE;
}

static gboolean
is_scaled (const GpuConvert *params)
{
  return params->scale != 1 || params->offset != 0;
}

static gboolean
check_frame (const GpuConvert *params, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, GError **error)
{
  if (!is_scaled (params) || (gst_gpu_frame_info_is_tensor (in) && gst_gpu_frame_info_is_tensor (out)))
    return TRUE;

  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "%s: %g cannot be used between %s and %s, as it is for tensors only: use gpunormalize for pictures.",
               params->scale != 1 ? "scale" : "offset", (gdouble)(params->scale != 1 ? params->scale : params->offset),
               gpu_format_info (in->spec.format)->name, gpu_format_info (out->spec.format)->name);
  return FALSE;
}

static gboolean
set_params (GstGpuReformat *self, GError **error)
{
  GpuConvert params;
  gboolean made;

  GST_OBJECT_LOCK (self);
  self->changed = FALSE;
  made = make_params (self, &params, error);
  GST_OBJECT_UNLOCK (self);
  if (made)
    self->params = params;
  return made;
}

/* Whether frames stay as they are where nothing is multiplied or added. */
static void
set_same (GstGpuReformat *self, gboolean same)
{
  self->same = same;
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self), same && !is_scaled (&self->params));
}

static gboolean
gst_gpu_reformat_set_info (GstGpuBaseTransform *base, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out,
                           GError **error)
{
  GstGpuReformat *self = GST_GPU_REFORMAT (base);

  if (!set_params (self, error) || !check_frame (&self->params, in, out, error))
    return FALSE;
  set_same (self, in->spec.format == out->spec.format);
  return TRUE;
}

static gboolean
gst_gpu_reformat_set_batch (GstGpuBaseTransform *base, const GstCaps *in, const GstCaps *out, GError **error)
{
  static const gchar *const fields[] = {"format", "types", NULL};
  GstGpuReformat *self = GST_GPU_REFORMAT (base);
  gboolean any;

  GST_OBJECT_LOCK (self);
  any = self->layout == GST_GPU_TENSOR_LAYOUT_ANY;
  GST_OBJECT_UNLOCK (self);

  if (!set_params (self, error))
    return FALSE;
  set_same (self, any && gst_structure_has_name (gst_caps_get_structure (out, 0), GST_GPU_BATCH_NAME) &&
                      !gst_gpu_batch_asks_for (in, out, fields));
  return TRUE;
}

static gboolean
gst_gpu_reformat_update (GstGpuBaseTransform *base)
{
  GstGpuReformat *self = GST_GPU_REFORMAT (base);
  const GstGpuFrameInfo *in = gst_gpu_base_transform_in_frame_info (base);
  const GstGpuFrameInfo *out = gst_gpu_base_transform_out_frame_info (base);
  const gboolean passed = gst_base_transform_is_passthrough (GST_BASE_TRANSFORM (self));
  const GpuConvert before = self->params;
  g_autoptr (GError) error = NULL;
  gboolean changed;

  GST_OBJECT_LOCK (self);
  changed = self->changed;
  GST_OBJECT_UNLOCK (self);
  if (!changed || !gst_gpu_base_transform_is_negotiated (base))
    return FALSE;

  /* Each frame of a batch is looked at when it comes. */
  if (!set_params (self, &error) ||
      (in->spec.format != GPU_FORMAT_UNKNOWN && !check_frame (&self->params, in, out, &error))) {
    self->params = before;
    gst_gpu_base_transform_post_warning (base, error);
    return FALSE;
  }
  /* Caps stay what they are, so nobody asks again whether there is anything to do. */
  set_same (self, self->same);
  return gst_base_transform_is_passthrough (GST_BASE_TRANSFORM (self)) != passed;
}

static gboolean
gst_gpu_reformat_process_batch (GstGpuBaseTransform *base, GpuStream *stream, GpuBatch *src, GpuBatch *dst,
                                const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, GError **error)
{
  const GpuConvert *params = &GST_GPU_REFORMAT (base)->params;

  for (guint i = 0; i < gpu_batch_size (src); i++)
    if (!check_frame (params, &in[i], &out[i], error))
      return FALSE;
  return gpu_reformat_batch (stream, src, dst, params, 1, error);
}

static gboolean
gst_gpu_reformat_process (GstGpuBaseTransform *base, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  return gpu_reformat (stream, src, dst, &GST_GPU_REFORMAT (base)->params, error);
}

/* Properties. */

static void
gst_gpu_reformat_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstGpuReformat *self = GST_GPU_REFORMAT (object);

  GST_OBJECT_LOCK (self);
  self->changed = TRUE;
  switch (id) {
  case PROP_LAYOUT:
    self->layout = g_value_get_enum (value);
    break;
  case PROP_SCALE:
    self->scale = g_value_get_double (value);
    break;
  case PROP_OFFSET:
    self->offset = g_value_get_double (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_gpu_reformat_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstGpuReformat *self = GST_GPU_REFORMAT (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_LAYOUT:
    g_value_set_enum (value, self->layout);
    break;
  case PROP_SCALE:
    g_value_set_double (value, self->scale);
    break;
  case PROP_OFFSET:
    g_value_set_double (value, self->offset);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_gpu_reformat_class_init (GstGpuReformatClass *klass)
{
  /* What is no finite number is refused when it is used, with a message on the bus. */
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING |
                            GST_PARAM_CONTROLLABLE | G_PARAM_LAX_VALIDATION;
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstGpuBaseTransformClass *base_class = GST_GPU_BASE_TRANSFORM_CLASS (klass);

  object_class->set_property = gst_gpu_reformat_set_property;
  object_class->get_property = gst_gpu_reformat_get_property;

  g_object_class_install_property (
      object_class, PROP_LAYOUT,
      g_param_spec_enum ("layout", "Layout",
                         "Which tensors, or pictures, are made; any is what caps ask for, else what came in",
                         GST_TYPE_GPU_TENSOR_LAYOUT, DEFAULT_LAYOUT,
                         G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (object_class, PROP_SCALE,
                                   g_param_spec_double ("scale", "Scale", "What elements of tensors are multiplied by",
                                                        -G_MAXDOUBLE, G_MAXDOUBLE, DEFAULT_SCALE, flags));
  g_object_class_install_property (object_class, PROP_OFFSET,
                                   g_param_spec_double ("offset", "Offset", "What is then added to them", -G_MAXDOUBLE,
                                                        G_MAXDOUBLE, DEFAULT_OFFSET, flags));

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "GPU tensor converter", "Filter/Converter/Tensor/Hardware",
                                         "Changes layout and element type of tensors in cached device memory",
                                         GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=640,height=480 ! gpuupload ! "
      "gpureformat ! \"other/tensors(memory:GPUCache),dimensions=3:640:480:1\" ! "
      "gpureformat layout=chw scale=0.00392156862745098 ! \"other/tensors(memory:GPUCache),types=float32\" ! "
      "gpudownload ! filesink location=tensor.raw");

  base_class->batch_of_tensors = TRUE;
  base_class->batch_to_tensor = TRUE;
  base_class->transform_frame_caps = gst_gpu_reformat_transform_caps;
  base_class->fixate_frame_caps = gst_gpu_reformat_fixate_caps;
  base_class->set_batch = gst_gpu_reformat_set_batch;
  base_class->process_batch = gst_gpu_reformat_process_batch;
  base_class->update = gst_gpu_reformat_update;
  base_class->set_info = gst_gpu_reformat_set_info;
  base_class->process = gst_gpu_reformat_process;

  gst_type_mark_as_plugin_api (GST_TYPE_GPU_TENSOR_LAYOUT, 0);
}

static void
gst_gpu_reformat_init (GstGpuReformat *self)
{
  self->layout = DEFAULT_LAYOUT;
  self->scale = DEFAULT_SCALE;
  self->offset = DEFAULT_OFFSET;
  gpu_convert_init (&self->params);
}
