/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpunormalize
 * @title: gpunormalize
 * @short_description: Normalises the channels of video frames on the device
 *
 * Computes `(x - base) * scale * global-scale + shift` for each sample of a frame in device memory, rounded and
 * saturated to 8 bits. With `scale-is-stddev` the scale is a standard deviation, and the factor is
 * `1 / sqrt (scale * scale + epsilon)`.
 *
 * `base` and `scale` have one value for all channels, or one for each channel of the format in the order R, G, B, A
 * whatever their order in memory (Y, U, V for YUV formats; the x of RGBx is no channel). An alpha channel is treated
 * like the others.
 *
 * A change of properties that does not fit while frames flow is a warning, and the values before it stay in use.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=RGB ! gpuupload ! \
 *   gpunormalize base="<123.7,116.3,103.5>" scale="<58.4,57.1,57.4>" scale-is-stddev=true global-scale=64 shift=128 ! \
 *   gpudownload ! videoconvert ! pngenc ! filesink location=normalize.png
 * ]|
 */
#include "gstgpubasetransform.h"
#include "gstgpuelements.h"

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
};

#define DEFAULT_BASE 0.0
#define DEFAULT_SCALE 1.0
#define DEFAULT_GLOBAL_SCALE 1.0
#define DEFAULT_SHIFT 0.0
#define DEFAULT_SCALE_IS_STDDEV FALSE
#define DEFAULT_EPSILON 0.0

/* The properties as they were set: anything that their types allow. */
typedef struct {
  GArray *base, *scale;   /* of gdouble */
  gchar *not_a_number[2]; /* the first item of base, of scale, that is none */
  gdouble global_scale, shift, epsilon;
  gboolean scale_is_stddev;
} Settings;

struct _GstGpuNormalize {
  GstGpuBaseTransform parent;

  /* Under the object lock. */
  Settings settings;
  gboolean changed;

  GpuNormalize params; /* of the streaming thread; what the frames get */
};

#define GST_TYPE_GPU_NORMALIZE (gst_gpu_normalize_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuNormalize, gst_gpu_normalize, GST, GPU_NORMALIZE, GstGpuBaseTransform)
G_DEFINE_TYPE (GstGpuNormalize, gst_gpu_normalize, GST_TYPE_GPU_BASE_TRANSFORM)
#define parent_class gst_gpu_normalize_parent_class
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpunormalize, "gpunormalize", GST_RANK_NONE, GST_TYPE_GPU_NORMALIZE,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_normalize_debug, "gpunormalize", 0,
                                                                "gpunormalize"))

/* The operation works on samples of 8 bits. */
#define NORMALIZE_CAPS                                                                                                 \
  GST_VIDEO_CAPS_MAKE_WITH_FEATURES (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, "{ " GST_GPU_8_BIT_FORMATS " }")

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (NORMALIZE_CAPS));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (NORMALIZE_CAPS));

/* From settings to parameters. */

static gboolean
check_number (const gchar *property, gdouble value, GError **error)
{
  if (isfinite (value) && fabs (value) <= G_MAXFLOAT)
    return TRUE;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "%s: %g cannot be used: give a finite number.", property, value);
  return FALSE;
}

/* One value is for all channels. */
static gboolean
fill_channels (const gchar *property, const GArray *array, const gchar *not_a_number, const GstVideoInfo *info,
               gfloat *channels, GError **error)
{
  const guint n = gpu_format_info (gst_gpu_format_from_video_format (GST_VIDEO_INFO_FORMAT (info)))->n_channels;

  if (array->len != 1 && array->len != n) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "%s: %u values were given, but %s has %u channels: give one for all, or one for each.", property,
                 array->len, gst_video_format_to_string (GST_VIDEO_INFO_FORMAT (info)), n);
    return FALSE;
  }
  if (not_a_number) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "%s: \"%s\" is not a number: give numbers, as in %s=\"<1.5,2,3>\".", property, not_a_number, property);
    return FALSE;
  }
  for (guint i = 0; i < n; i++) {
    gdouble value = g_array_index (array, gdouble, array->len == 1 ? 0 : i);

    if (!check_number (property, value, error))
      return FALSE;
    channels[i] = (gfloat)value;
  }
  return TRUE;
}

/* Under the object lock. */
static gboolean
make_params (const Settings *settings, const GstVideoInfo *info, GpuNormalize *params, GError **error)
{
  gpu_normalize_init (params);
  if (!fill_channels ("base", settings->base, settings->not_a_number[0], info, params->base, error) ||
      !fill_channels ("scale", settings->scale, settings->not_a_number[1], info, params->scale, error) ||
      !check_number ("global-scale", settings->global_scale, error) ||
      !check_number ("shift", settings->shift, error) || !check_number ("epsilon", settings->epsilon, error))
    return FALSE;

  params->global_scale = (gfloat)settings->global_scale;
  params->shift = (gfloat)settings->shift;
  params->epsilon = (gfloat)settings->epsilon;
  params->scale_is_stddev = settings->scale_is_stddev;

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
    gfloat scale = params->scale[i];

    if (params->scale_is_stddev)
      scale = 1 / sqrtf (scale * scale + params->epsilon);
    if (params->base[i] != 0 || scale != 1)
      return FALSE;
  }
  return params->global_scale == 1 && params->shift == 0;
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
  made = make_params (&self->settings, &in->video, &params, error);
  GST_OBJECT_UNLOCK (self);
  if (!made)
    return FALSE;

  self->params = params;
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self), changes_nothing (&params));
  return TRUE;
}

static gboolean
gst_gpu_normalize_update (GstGpuBaseTransform *base)
{
  GstGpuNormalize *self = GST_GPU_NORMALIZE (base);
  const GstVideoInfo *info = gst_gpu_base_transform_in_info (base);
  g_autoptr (GError) error = NULL;
  gboolean made = FALSE;
  GpuNormalize params;

  if (GST_VIDEO_INFO_FORMAT (info) == GST_VIDEO_FORMAT_UNKNOWN)
    return FALSE;

  GST_OBJECT_LOCK (self);
  if (self->changed)
    made = make_params (&self->settings, info, &params, &error);
  self->changed = FALSE;
  GST_OBJECT_UNLOCK (self);

  if (error)
    gst_gpu_base_transform_post_warning (base, error);
  if (!made)
    return FALSE;

  /* Caps stay what they are, so nobody asks again whether there is anything to do. */
  self->params = params;
  if (changes_nothing (&params) == gst_base_transform_is_passthrough (GST_BASE_TRANSFORM (self)))
    return FALSE;
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self), changes_nothing (&params));
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

  g_array_unref (self->settings.base);
  g_array_unref (self->settings.scale);
  g_free (self->settings.not_a_number[0]);
  g_free (self->settings.not_a_number[1]);
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

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "GPU normaliser", "Filter/Effect/Video/Hardware",
                                         "Normalises the channels of video frames in cached device memory",
                                         GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=RGB ! gpuupload ! gpunormalize "
      "base=\"<123.7,116.3,103.5>\" scale=\"<58.4,57.1,57.4>\" scale-is-stddev=true global-scale=64 "
      "shift=128 ! gpudownload ! videoconvert ! pngenc ! filesink location=normalize.png");

  base_class->in_place = TRUE;
  base_class->update = gst_gpu_normalize_update;
  base_class->set_info = gst_gpu_normalize_set_info;
  base_class->process = gst_gpu_normalize_process;
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
  gpu_normalize_init (&self->params);
}
