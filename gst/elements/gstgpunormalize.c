/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpunormalize
 * @title: gpunormalize
 * @short_description: Normalises the channels of video frames on the device, to 8 bits or to tensors
 *
 * Computes `(x - base) * scale * global-scale + shift` for each sample of a frame in device memory. With
 * `scale-is-stddev` the scale is a standard deviation, and the factor is `1 / sqrt (scale * scale + epsilon)`.
 *
 * What comes out is decided by the caps downstream:
 *
 * - `video/x-raw(memory:GPUCache)`: the same format, rounded and saturated to 8 bits. This is what is made where caps
 *   leave the choice.
 * - `other/tensors(memory:GPUCache)`: a tensor with NNStreamer's fields; of NV12 and I420 it has R, G and B, which
 * saves a gpuconvert. `types` is `float32`, `float16` or `uint8`, in this order where caps leave the choice.
 * `dimensions` say whether it is interleaved (HWC), as in `3:640:480:1`, or planar (CHW), as in `640:480:3:1`; where
 * caps leave that open, `layout` does, else it is HWC. The channels are R, G, B, A, or, with `channel-order=stored`, as
 * they lie in the picture. The alpha channel is left out if caps say so, or if they leave the choice and `base` or
 * `scale` have three values.
 *
 * gpudownload gives the tensor in system memory, without any padding.
 *
 * `base` and `scale` have one value for all channels, or one for each channel in the order R, G, B, A whatever their
 * order in memory (Y, U, V where YUV formats stay pictures; the x of RGBx is no channel). An alpha channel is treated
 * like the others.
 *
 * A change of properties that does not fit while frames flow is a warning, and the values before it stay in use.
 *
 * The element implements #GstPreset. The preset `imagenet` sets what PyTorch's and others' models that were trained on
 * ImageNet expect: means of 0.485, 0.456, 0.406 and standard deviations of 0.229, 0.224, 0.225, for samples of 0 to 1,
 * which are those of 8 bits divided by 255.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=640,height=640 ! gpuupload ! \
 *   gpunormalize base="<123.675,116.28,103.53>" scale="<58.395,57.12,57.375>" scale-is-stddev=true layout=chw ! \
 *   "other/tensors(memory:GPUCache),types=float32" ! gpudownload ! filesink location=tensor.raw
 * ]|
 * A file of 3x640x640 floats, as `numpy.fromfile ("tensor.raw", "float32").reshape (3, 640, 640)` reads it.
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=RGB ! gpuupload ! \
 *   gpunormalize base="<123.7,116.3,103.5>" scale="<58.4,57.1,57.4>" scale-is-stddev=true global-scale=64 shift=128 ! \
 *   gpudownload ! videoconvert ! pngenc ! filesink location=normalize.png
 * ]|
 */
#include "gstgpubasetransform.h"
#include "gstgpucolor.h"
#include "gstgpuelements.h"
#include "gstgputensor.h"

#include <math.h>

GST_DEBUG_CATEGORY_STATIC (gst_gpu_normalize_debug);
#define GST_CAT_DEFAULT gst_gpu_normalize_debug

enum {
  PROP_0,
  PROP_BASE,
  PROP_SCALE,
  PROP_GLOBAL_SCALE,
  PROP_SHIFT,
  PROP_SCALE_IS_STDDEV,
  PROP_EPSILON,
  PROP_LAYOUT,
  PROP_CHANNEL_ORDER,
};

#define DEFAULT_BASE 0.0
#define DEFAULT_SCALE 1.0
#define DEFAULT_GLOBAL_SCALE 1.0
#define DEFAULT_SHIFT 0.0
#define DEFAULT_SCALE_IS_STDDEV FALSE
#define DEFAULT_EPSILON 0.0
#define DEFAULT_LAYOUT GST_GPU_TENSOR_LAYOUT_ANY
#define DEFAULT_CHANNEL_ORDER GPU_CHANNEL_ORDER_RGB

/* The properties as they were set: anything that their types allow. */
typedef struct {
  GArray *base, *scale;   /* of gdouble */
  gchar *not_a_number[2]; /* the first item of base, of scale, that is none */
  gdouble global_scale, shift, epsilon;
  gboolean scale_is_stddev;
  GstGpuTensorLayout layout;
  GpuChannelOrder order;
} Settings;

struct _GstGpuNormalize {
  GstGpuBaseTransform parent;

  /* Under the object lock. */
  Settings settings;
  gboolean changed;

  /* Of the streaming thread. */
  GpuNormalize params; /* what the frames get */
  Settings of_batches; /* what the frames of batches get; without arrays before the first batch */
};

#define GST_TYPE_GPU_NORMALIZE (gst_gpu_normalize_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuNormalize, gst_gpu_normalize, GST, GPU_NORMALIZE, GstGpuBaseTransform)
G_DEFINE_TYPE_WITH_CODE (GstGpuNormalize, gst_gpu_normalize, GST_TYPE_GPU_BASE_TRANSFORM,
                         G_IMPLEMENT_INTERFACE (GST_TYPE_PRESET, NULL))
#define parent_class gst_gpu_normalize_parent_class
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpunormalize, "gpunormalize", GST_RANK_NONE, GST_TYPE_GPU_NORMALIZE,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_normalize_debug, "gpunormalize", 0,
                                                                "gpunormalize"))

/* The operation works on samples of 8 bits. */
#define NORMALIZE_CAPS                                                                                                 \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, "{ " GST_GPU_8_BIT_FORMATS " }")

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (NORMALIZE_CAPS "; " GST_GPU_BATCH_CAPS));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS,
                             GST_STATIC_CAPS (NORMALIZE_CAPS "; " GST_GPU_BATCH_CAPS "; " GST_GPU_TENSOR_CAPS));

#define GST_TYPE_GPU_CHANNEL_ORDER (gst_gpu_channel_order_get_type ())
static GType
gst_gpu_channel_order_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
      {GPU_CHANNEL_ORDER_RGB, "R, G, B, A", "rgb"},
      {GPU_CHANNEL_ORDER_STORED, "As in the picture's memory: B, G, R for BGR", "stored"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstGpuChannelOrder", values));
  return type;
}

/* Caps. */

/* A tensor has R, G, B of it. */
static gboolean
is_420 (const GpuFormatInfo *info)
{
  return info && info->is_yuv && info->n_channels > 1 && info->bits == 8;
}

/* The numbers of channels that a tensor of @format can have; 0 if there can be none of it. */
static guint
tensor_channels (const gchar *format, guint channels[2])
{
  const GpuFormatInfo *info = gpu_format_info (gpu_format_from_name (format));

  channels[0] = is_420 (info) ? 3 : gst_gpu_tensor_channels (info);
  channels[1] = 3;
  return !channels[0] ? 0 : info->has_alpha ? 2 : 1;
}

/* Whether an alpha channel that may be left out is. */
static gboolean
leaves_alpha_out (GstGpuNormalize *self)
{
  gboolean result;

  GST_OBJECT_LOCK (self);
  result = self->settings.base->len == 3 || self->settings.scale->len == 3;
  GST_OBJECT_UNLOCK (self);
  return result;
}

static void
append_tensors (GstGpuNormalize *self, GstCaps *caps, const GstStructure *video, GstGpuTensorLayout choice)
{
  const gchar *format = gst_structure_get_string (video, "format");
  const gboolean opaque = leaves_alpha_out (self);
  guint channels[2], n;
  gint width, height;

  if (!format || !gst_structure_get_int (video, "width", &width) || !gst_structure_get_int (video, "height", &height)) {
    gst_gpu_tensor_append (caps, NULL, GST_GPU_TENSOR_ANY_TYPE, video);
    return;
  }
  n = tensor_channels (format, channels);
  for (guint layout = 0; layout < GPU_N_LAYOUTS; layout++)
    for (guint i = 0; i < n; i++) {
      GpuImageSpec spec;

      if (gst_gpu_tensor_layout_allows (choice, (GpuLayout)layout) &&
          gpu_image_spec_init_tensor (&spec, GPU_ELEMENT_U8, (GpuLayout)layout, channels[opaque ? n - 1 - i : i],
                                      (guint32)width, (guint32)height, NULL))
        gst_gpu_tensor_append (caps, &spec, GST_GPU_TENSOR_ANY_TYPE, video);
    }
}

/* Formats of which a tensor of so many channels can be made; of any number if that is 0. */
static void
set_formats (GstStructure *video, guint wanted)
{
  GValue list = G_VALUE_INIT;

  g_value_init (&list, GST_TYPE_LIST);
  for (guint format = 1; format <= GPU_LAST_PICTURE_FORMAT; format++) {
    const gchar *name = gpu_format_info ((GpuFormat)format)->name;
    guint channels[2];
    guint n = tensor_channels (name, channels);
    GValue item = G_VALUE_INIT;

    if (n == 0 || (wanted && channels[0] != wanted && (n == 1 || channels[1] != wanted)))
      continue;
    g_value_init (&item, G_TYPE_STRING);
    g_value_set_static_string (&item, name);
    gst_value_list_append_and_take_value (&list, &item);
  }
  gst_structure_take_value (video, "format", &list);
}

static void
append_video (GstCaps *caps, const GstStructure *tensor, const GpuImageSpec *shape)
{
  GstStructure *video = gst_gpu_structure_like (tensor, "video/x-raw");

  set_formats (video, shape ? shape->channels : 0);
  if (shape)
    gst_structure_set (video, "width", G_TYPE_INT, (gint)shape->width, "height", G_TYPE_INT, (gint)shape->height, NULL);
  gst_caps_append_structure_full (caps, video, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
}

/* The pictures that tensors downstream can be made of. */
static void
append_sources (GstCaps *caps, const GstStructure *tensor, GstGpuTensorLayout choice)
{
  GpuImageSpec shapes[16];
  const gint n = gst_gpu_tensor_shapes (GST_PAD_SRC, tensor, shapes, G_N_ELEMENTS (shapes));

  if (n < 0)
    append_video (caps, tensor, NULL);
  for (gint i = 0; i < n; i++)
    if (gst_gpu_tensor_layout_allows (choice, gpu_format_info (shapes[i].format)->layout))
      append_video (caps, tensor, &shapes[i]);
}

static GstGpuTensorLayout
get_layout (GstGpuNormalize *self)
{
  GstGpuTensorLayout layout;

  GST_OBJECT_LOCK (self);
  layout = self->settings.layout;
  GST_OBJECT_UNLOCK (self);
  return layout;
}

static GstCaps *
gst_gpu_normalize_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstGpuNormalize *self = GST_GPU_NORMALIZE (trans);
  const GstGpuTensorLayout layout = get_layout (self);
  GstCaps *result = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    const GstStructure *structure = gst_caps_get_structure (caps, i);

    if (!gst_gpu_structure_is_tensor (structure))
      gst_caps_append_structure_full (result, gst_structure_copy (structure),
                                      gst_caps_features_copy (gst_caps_get_features (caps, i)));
    else if (direction == GST_PAD_SRC)
      append_sources (result, structure, layout);
  }
  for (guint i = 0; direction == GST_PAD_SINK && i < gst_caps_get_size (caps); i++)
    append_tensors (self, result, gst_caps_get_structure (caps, i), layout);
  return gst_gpu_caps_filter (result, filter);
}

/* The tensors that can be made of @video, the best first. */
static guint
list_candidates (GstGpuNormalize *self, const GstVideoInfo *video, GpuImageSpec candidates[2 * 6])
{
  const GstGpuTensorLayout choice = get_layout (self);
  const gboolean opaque = leaves_alpha_out (self);
  guint channels[2], count = 0;
  const guint n = tensor_channels (GST_VIDEO_INFO_NAME (video), channels);

  for (guint element = GPU_N_ELEMENTS; element > 0; element--)
    for (guint i = 0; i < n; i++)
      for (guint layout = 0; layout < GPU_N_LAYOUTS; layout++)
        if (gst_gpu_tensor_layout_allows (choice, (GpuLayout)layout))
          count += gpu_image_spec_init_tensor (&candidates[count], (GpuElement)(element - 1), (GpuLayout)layout,
                                               channels[opaque ? n - 1 - i : i], (guint32)GST_VIDEO_INFO_WIDTH (video),
                                               (guint32)GST_VIDEO_INFO_HEIGHT (video), NULL);
  return count;
}

static GstCaps *
gst_gpu_normalize_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others)
{
  GstGpuNormalize *self = GST_GPU_NORMALIZE (trans);
  GpuImageSpec candidates[2 * 6];
  GstGpuFrameInfo info;

  if (direction == GST_PAD_SINK && !gst_caps_is_empty (others) &&
      gst_gpu_structure_is_tensor (gst_caps_get_structure (others, 0)) &&
      gst_gpu_frame_info_from_caps (&info, caps, NULL)) {
    GstCaps *best = gst_gpu_tensor_fixate (others, candidates, list_candidates (self, &info.video, candidates));

    others = best ? best : others;
  }
  return gst_gpu_base_transform_fixate_frame_caps (trans, direction, caps, others);
}

/* From settings to parameters. */

static gboolean
check_number (const gchar *property, gdouble value, GError **error)
{
  if (isfinite (value) && fabs (value) <= G_MAXFLOAT)
    return TRUE;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "%s: %g cannot be used: give a finite number from %g to %g, as single precision has them.", property,
               value, -G_MAXFLOAT, G_MAXFLOAT);
  return FALSE;
}

/* One value is for all channels. */
static gboolean
fill_channels (const gchar *property, const GArray *array, const gchar *not_a_number, const GstGpuFrameInfo *out,
               gdouble *channels, GError **error)
{
  const GpuFormatInfo *info = gpu_format_info (out->spec.format);
  const guint n = info->is_tensor ? out->spec.channels : info->n_channels;

  if (array->len != 1 && array->len != n) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "%s: %u values were given, but %s has %u channels: give one for all, or one for each.", property,
                 array->len, info->is_tensor ? "the tensor" : info->name, n);
    return FALSE;
  }
  if (not_a_number) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "%s: \"%s\" is not a number: give numbers, as in %s=\"<1.5,2,3>\".", property, not_a_number, property);
    return FALSE;
  }
  for (guint i = 0; i < n; i++) {
    channels[i] = g_array_index (array, gdouble, array->len == 1 ? 0 : i);
    if (!check_number (property, channels[i], error))
      return FALSE;
  }
  return TRUE;
}

/* Under the object lock. */
static gboolean
make_params (const Settings *settings, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, GpuNormalize *params,
             GError **error)
{
  gpu_normalize_init (params);
  if (gst_gpu_frame_info_is_tensor (out) && is_420 (gpu_format_info (in->spec.format)) &&
      !gst_gpu_colorimetry_from_video_info (&params->color, &in->video, error))
    return FALSE;
  if (!fill_channels ("base", settings->base, settings->not_a_number[0], out, params->base, error) ||
      !fill_channels ("scale", settings->scale, settings->not_a_number[1], out, params->scale, error) ||
      !check_number ("global-scale", settings->global_scale, error) ||
      !check_number ("shift", settings->shift, error) || !check_number ("epsilon", settings->epsilon, error))
    return FALSE;

  params->global_scale = settings->global_scale;
  params->shift = settings->shift;
  params->epsilon = settings->epsilon;
  params->scale_is_stddev = settings->scale_is_stddev;
  params->order = settings->order;

  for (guint i = 0; i < GPU_MAX_CHANNELS; i++) {
    gdouble factor = params->scale[i];

    if (params->scale_is_stddev && factor * factor + params->epsilon == 0) {
      g_set_error_literal (error, GPU_ERROR, GPU_ERROR_INVALID,
                           "scale: a standard deviation of 0 cannot be divided by: give another one, or an epsilon "
                           "above 0.");
      return FALSE;
    }
    if (params->scale_is_stddev)
      factor = 1 / sqrt (factor * factor + params->epsilon);
    if (!check_number ("scale times global-scale", factor * params->global_scale, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
changes_nothing (const GpuNormalize *params)
{
  for (guint i = 0; i < GPU_MAX_CHANNELS; i++) {
    gdouble scale = params->scale[i];

    if (params->scale_is_stddev)
      scale = 1 / sqrt (scale * scale + params->epsilon);
    if (params->base[i] != 0 || scale != 1)
      return FALSE;
  }
  return params->global_scale == 1 && params->shift == 0;
}

static gboolean
may_pass_through (const GstGpuFrameInfo *out, const GpuNormalize *params)
{
  return !gst_gpu_frame_info_is_tensor (out) && changes_nothing (params);
}

static gboolean
gst_gpu_normalize_set_info (GstGpuBaseTransform *base, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out,
                            GError **error)
{
  GstGpuNormalize *self = GST_GPU_NORMALIZE (base);
  GpuNormalize params;
  gboolean made;

  GST_OBJECT_LOCK (self);
  self->changed = FALSE;
  made = make_params (&self->settings, in, out, &params, error);
  GST_OBJECT_UNLOCK (self);
  if (!made)
    return FALSE;

  self->params = params;
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self), may_pass_through (out, &params));
  return TRUE;
}

static gboolean
gst_gpu_normalize_update (GstGpuBaseTransform *base)
{
  GstGpuNormalize *self = GST_GPU_NORMALIZE (base);
  const GstGpuFrameInfo *in = gst_gpu_base_transform_in_frame_info (base);
  const GstGpuFrameInfo *out = gst_gpu_base_transform_out_frame_info (base);
  g_autoptr (GError) error = NULL;
  gboolean made = FALSE;
  GpuNormalize params;

  if (out->spec.format == GPU_FORMAT_UNKNOWN)
    return FALSE;

  GST_OBJECT_LOCK (self);
  if (self->changed)
    made = make_params (&self->settings, in, out, &params, &error);
  self->changed = FALSE;
  GST_OBJECT_UNLOCK (self);

  if (error)
    gst_gpu_base_transform_post_warning (base, error);
  if (!made)
    return FALSE;

  /* Caps stay what they are, so nobody asks again whether there is anything to do. */
  self->params = params;
  if (may_pass_through (out, &params) == gst_base_transform_is_passthrough (GST_BASE_TRANSFORM (self)))
    return FALSE;
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self), may_pass_through (out, &params));
  return TRUE;
}

/* Batches. */

static void
settings_clear (Settings *settings)
{
  g_clear_pointer (&settings->base, g_array_unref);
  g_clear_pointer (&settings->scale, g_array_unref);
  g_clear_pointer (&settings->not_a_number[0], g_free);
  g_clear_pointer (&settings->not_a_number[1], g_free);
}

static void
settings_copy (Settings *to, const Settings *from)
{
  settings_clear (to);
  *to = *from;
  to->base = g_array_copy (from->base);
  to->scale = g_array_copy (from->scale);
  to->not_a_number[0] = g_strdup (from->not_a_number[0]);
  to->not_a_number[1] = g_strdup (from->not_a_number[1]);
}

/* Frames of a batch may be of several formats, whose channels the values are for. */
static gboolean
make_batch_params (const Settings *settings, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, guint n,
                   GpuNormalize *params, GError **error)
{
  for (guint i = 0; i < n; i++)
    if (!make_params (settings, &in[i], &out[i], &params[i], error))
      return FALSE;
  return TRUE;
}

/* Takes over settings that were changed. FALSE with @error set if they do not fit. */
static gboolean
take_settings (GstGpuNormalize *self, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, guint n,
               GpuNormalize *params, GError **error)
{
  gboolean is_new, fits;

  GST_OBJECT_LOCK (self);
  is_new = self->changed || !self->of_batches.base;
  fits = !is_new || make_batch_params (&self->settings, in, out, n, params, error);
  if (is_new && fits)
    settings_copy (&self->of_batches, &self->settings);
  self->changed = FALSE;
  GST_OBJECT_UNLOCK (self);
  return fits;
}

static gboolean
gst_gpu_normalize_process_batch (GstGpuBaseTransform *base, GpuStream *stream, GpuBatch *src, GpuBatch *dst,
                                 const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, GError **error)
{
  GstGpuNormalize *self = GST_GPU_NORMALIZE (base);
  const guint n = gpu_batch_size (src);
  g_autofree GpuNormalize *params = g_new (GpuNormalize, n);
  g_autoptr (GError) failure = NULL;

  if (!take_settings (self, in, out, n, params, &failure)) {
    if (!self->of_batches.base) {
      g_propagate_error (error, g_steal_pointer (&failure));
      return FALSE;
    }
    gst_gpu_base_transform_post_warning (base, failure);
  }
  return make_batch_params (&self->of_batches, in, out, n, params, error) &&
         gpu_normalize_batch (stream, src, dst, params, n, error);
}

static gboolean
gst_gpu_normalize_set_batch (GstGpuBaseTransform *base, const GstCaps *in, const GstCaps *out, GError **error)
{
  settings_clear (&GST_GPU_NORMALIZE (base)->of_batches);
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (base), FALSE);
  return TRUE;
}

static gboolean
gst_gpu_normalize_process (GstGpuBaseTransform *base, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  return gpu_normalize (stream, src, dst, &GST_GPU_NORMALIZE (base)->params, error);
}

/* Properties. */

/* Returns: (transfer full): @value as it was written. */
static gchar *
describe (const GValue *value)
{
  return G_VALUE_HOLDS_STRING (value) ? g_strdup (g_value_get_string (value)) : g_strdup_value_contents (value);
}

/* Numbers of any type; what is none is remembered, and refused when it is used. */
static void
set_array (GArray *array, gchar **not_a_number, const GValue *value)
{
  g_clear_pointer (not_a_number, g_free);
  g_array_set_size (array, 0);
  for (guint i = 0; i < gst_value_array_get_size (value); i++) {
    GValue item = G_VALUE_INIT;
    gdouble number = NAN;

    g_value_init (&item, G_TYPE_DOUBLE);
    if (g_value_transform (gst_value_array_get_value (value, i), &item))
      number = g_value_get_double (&item);
    else if (!*not_a_number)
      *not_a_number = describe (gst_value_array_get_value (value, i));
    g_array_append_val (array, number);
  }
}

static void
get_array (const GArray *array, GValue *value)
{
  for (guint i = 0; i < array->len; i++) {
    GValue item = G_VALUE_INIT;

    g_value_init (&item, G_TYPE_DOUBLE);
    g_value_set_double (&item, g_array_index (array, gdouble, i));
    gst_value_array_append_and_take_value (value, &item);
  }
}

static void
gst_gpu_normalize_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstGpuNormalize *self = GST_GPU_NORMALIZE (object);
  Settings *settings = &self->settings;

  GST_OBJECT_LOCK (self);
  self->changed = TRUE;
  switch (id) {
  case PROP_BASE:
    set_array (settings->base, &settings->not_a_number[0], value);
    break;
  case PROP_SCALE:
    set_array (settings->scale, &settings->not_a_number[1], value);
    break;
  case PROP_GLOBAL_SCALE:
    settings->global_scale = g_value_get_double (value);
    break;
  case PROP_SHIFT:
    settings->shift = g_value_get_double (value);
    break;
  case PROP_SCALE_IS_STDDEV:
    settings->scale_is_stddev = g_value_get_boolean (value);
    break;
  case PROP_EPSILON:
    settings->epsilon = g_value_get_double (value);
    break;
  case PROP_LAYOUT:
    settings->layout = g_value_get_enum (value);
    break;
  case PROP_CHANNEL_ORDER:
    settings->order = g_value_get_enum (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_gpu_normalize_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstGpuNormalize *self = GST_GPU_NORMALIZE (object);
  const Settings *settings = &self->settings;

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_BASE:
    get_array (settings->base, value);
    break;
  case PROP_SCALE:
    get_array (settings->scale, value);
    break;
  case PROP_GLOBAL_SCALE:
    g_value_set_double (value, settings->global_scale);
    break;
  case PROP_SHIFT:
    g_value_set_double (value, settings->shift);
    break;
  case PROP_SCALE_IS_STDDEV:
    g_value_set_boolean (value, settings->scale_is_stddev);
    break;
  case PROP_EPSILON:
    g_value_set_double (value, settings->epsilon);
    break;
  case PROP_LAYOUT:
    g_value_set_enum (value, settings->layout);
    break;
  case PROP_CHANNEL_ORDER:
    g_value_set_enum (value, settings->order);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_gpu_normalize_finalize (GObject *object)
{
  GstGpuNormalize *self = GST_GPU_NORMALIZE (object);

  settings_clear (&self->settings);
  settings_clear (&self->of_batches);
  G_OBJECT_CLASS (parent_class)->finalize (object);
}

static void
gst_gpu_normalize_class_init (GstGpuNormalizeClass *klass)
{
  const GParamFlags array_flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;
  const GParamFlags flags = array_flags | GST_PARAM_CONTROLLABLE;
  /* What is no finite number is refused when it is used, with a message on the bus. */
  const GParamFlags lax_flags = flags | G_PARAM_LAX_VALIDATION;
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstGpuBaseTransformClass *base_class = GST_GPU_BASE_TRANSFORM_CLASS (klass);

  object_class->set_property = gst_gpu_normalize_set_property;
  object_class->get_property = gst_gpu_normalize_get_property;
  object_class->finalize = gst_gpu_normalize_finalize;

  g_object_class_install_property (
      object_class, PROP_BASE,
      gst_param_spec_array (
          "base", "Base",
          "What is subtracted from each channel, such as its mean: one value, or one for each channel in the "
          "order R, G, B, A or Y, U, V (default: <0>)",
          NULL, array_flags));
  g_object_class_install_property (
      object_class, PROP_SCALE,
      gst_param_spec_array (
          "scale", "Scale",
          "What each channel is multiplied by, or its standard deviation if scale-is-stddev is set: one value, "
          "or one for each channel (default: <1>)",
          NULL, array_flags));
  g_object_class_install_property (object_class, PROP_GLOBAL_SCALE,
                                   g_param_spec_double ("global-scale", "Global scale",
                                                        "What all channels are multiplied by", -G_MAXDOUBLE,
                                                        G_MAXDOUBLE, DEFAULT_GLOBAL_SCALE, lax_flags));
  g_object_class_install_property (object_class, PROP_SHIFT,
                                   g_param_spec_double ("shift", "Shift", "What is added to all channels", -G_MAXDOUBLE,
                                                        G_MAXDOUBLE, DEFAULT_SHIFT, lax_flags));
  g_object_class_install_property (
      object_class, PROP_SCALE_IS_STDDEV,
      g_param_spec_boolean ("scale-is-stddev", "Scale is standard deviation",
                            "Whether channels are divided by sqrt (scale * scale + epsilon) instead of multiplied by "
                            "scale",
                            DEFAULT_SCALE_IS_STDDEV, flags));
  g_object_class_install_property (object_class, PROP_EPSILON,
                                   g_param_spec_double ("epsilon", "Epsilon",
                                                        "What is added to the square of each standard deviation", 0,
                                                        G_MAXFLOAT, DEFAULT_EPSILON, flags));
  g_object_class_install_property (
      object_class, PROP_LAYOUT,
      g_param_spec_enum ("layout", "Layout",
                         "Which tensors are made where caps leave the choice; any is hwc then. Others are not offered",
                         GST_TYPE_GPU_TENSOR_LAYOUT, DEFAULT_LAYOUT,
                         G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (object_class, PROP_CHANNEL_ORDER,
                                   g_param_spec_enum ("channel-order", "Channel order",
                                                      "In which order a tensor has the channels",
                                                      GST_TYPE_GPU_CHANNEL_ORDER, DEFAULT_CHANNEL_ORDER, array_flags));

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (
      element_class, "GPU normaliser", "Filter/Effect/Video/Hardware",
      "Normalises the channels of video frames in cached device memory, to 8 bits or "
      "to tensors",
      GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=640,height=640 ! gpuupload ! "
      "gpunormalize base=\"<123.675,116.28,103.53>\" scale=\"<58.395,57.12,57.375>\" scale-is-stddev=true layout=chw ! "
      "\"other/tensors(memory:GPUCache),types=float32\" ! gpudownload ! filesink location=tensor.raw");

  base_class->transform_frame_caps = gst_gpu_normalize_transform_caps;
  base_class->fixate_frame_caps = gst_gpu_normalize_fixate_caps;
  base_class->batch_to_tensor = TRUE;
  base_class->set_batch = gst_gpu_normalize_set_batch;
  base_class->process_batch = gst_gpu_normalize_process_batch;
  base_class->in_place = TRUE;
  base_class->update = gst_gpu_normalize_update;
  base_class->set_info = gst_gpu_normalize_set_info;
  base_class->process = gst_gpu_normalize_process;

  gst_type_mark_as_plugin_api (GST_TYPE_GPU_TENSOR_LAYOUT, 0);
  gst_type_mark_as_plugin_api (GST_TYPE_GPU_CHANNEL_ORDER, 0);
}

static void
gst_gpu_normalize_init (GstGpuNormalize *self)
{
  const gdouble base = DEFAULT_BASE, scale = DEFAULT_SCALE;

  self->settings.base = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_array_append_val (self->settings.base, base);
  self->settings.scale = g_array_new (FALSE, FALSE, sizeof (gdouble));
  g_array_append_val (self->settings.scale, scale);
  self->settings.global_scale = DEFAULT_GLOBAL_SCALE;
  self->settings.shift = DEFAULT_SHIFT;
  self->settings.scale_is_stddev = DEFAULT_SCALE_IS_STDDEV;
  self->settings.epsilon = DEFAULT_EPSILON;
  self->settings.layout = DEFAULT_LAYOUT;
  self->settings.order = DEFAULT_CHANNEL_ORDER;
  gpu_normalize_init (&self->params);
}
