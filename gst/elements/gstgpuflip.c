/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpuflip
 * @title: gpuflip
 * @short_description: Flips and turns video frames on the device
 *
 * Flips and turns frames in device memory, with the properties of videoflip. A quarter turn exchanges width and height
 * and inverts the pixel-aspect-ratio.
 *
 * With `video-direction=auto` the image-orientation tag of the stream, else the global one, says what to do; the tag
 * goes on as "rotate-0", since the picture is upright then, and is forgotten when another stream starts.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! gpuupload ! gpuflip video-direction=90r ! gpudownload ! \
 *   videoconvert ! pngenc ! filesink location=flip.png
 * ]|
 */
#include "gstgpubasetransform.h"
#include "gstgpuelements.h"

GST_DEBUG_CATEGORY_STATIC (gst_gpu_flip_debug);
#define GST_CAT_DEFAULT gst_gpu_flip_debug

enum {
  PROP_0,
  PROP_METHOD,
  PROP_VIDEO_DIRECTION,
};

#define DEFAULT_METHOD GST_VIDEO_ORIENTATION_IDENTITY

struct _GstGpuFlip {
  GstGpuBaseTransform parent;

  /* Under the object lock. */
  GstVideoOrientationMethod method;
  GstVideoOrientationMethod stream_tag, global_tag; /* GST_VIDEO_ORIENTATION_AUTO: there is none */

  /* Changes of the above wait here for their turn, so that all of a negotiation sees one of them. */
  GstVideoOrientationMethod active; /* under the object lock, too: caps queries come from any thread */

  /* Of the streaming thread. */
  gboolean rewrites_tags;
  gchar *stream_id;
};

static void gst_gpu_flip_direction_init (GstVideoDirectionInterface *iface);

#define GST_TYPE_GPU_FLIP (gst_gpu_flip_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuFlip, gst_gpu_flip, GST, GPU_FLIP, GstGpuBaseTransform)
G_DEFINE_TYPE_WITH_CODE (GstGpuFlip, gst_gpu_flip, GST_TYPE_GPU_BASE_TRANSFORM,
                         G_IMPLEMENT_INTERFACE (GST_TYPE_VIDEO_DIRECTION, gst_gpu_flip_direction_init))
#define parent_class gst_gpu_flip_parent_class
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpuflip, "gpuflip", GST_RANK_NONE, GST_TYPE_GPU_FLIP,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_flip_debug, "gpuflip", 0, "gpuflip"))

/* The same values as GstVideoOrientationMethod, with the nicks that videoflip's property of this name has. */
#define GST_TYPE_GPU_FLIP_METHOD (gst_gpu_flip_method_get_type ())
static GType
gst_gpu_flip_method_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
      {GST_VIDEO_ORIENTATION_IDENTITY, "Identity (no rotation)", "none"},
      {GST_VIDEO_ORIENTATION_90R, "Rotate clockwise 90 degrees", "clockwise"},
      {GST_VIDEO_ORIENTATION_180, "Rotate 180 degrees", "rotate-180"},
      {GST_VIDEO_ORIENTATION_90L, "Rotate counter-clockwise 90 degrees", "counterclockwise"},
      {GST_VIDEO_ORIENTATION_HORIZ, "Flip horizontally", "horizontal-flip"},
      {GST_VIDEO_ORIENTATION_VERT, "Flip vertically", "vertical-flip"},
      {GST_VIDEO_ORIENTATION_UL_LR, "Flip across upper left/lower right diagonal", "upper-left-diagonal"},
      {GST_VIDEO_ORIENTATION_UR_LL, "Flip across upper right/lower left diagonal", "upper-right-diagonal"},
      {GST_VIDEO_ORIENTATION_AUTO, "Select flip method based on image-orientation tag", "automatic"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstGpuFlipMethod", values));
  return type;
}

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_CAPS "; " GST_GPU_BATCH_CAPS));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_CAPS "; " GST_GPU_BATCH_CAPS));

/* What properties and tags ask for now. Under the object lock. */
static GstVideoOrientationMethod
wanted (GstGpuFlip *self)
{
  if (self->method != GST_VIDEO_ORIENTATION_AUTO)
    return self->method;
  if (self->stream_tag != GST_VIDEO_ORIENTATION_AUTO)
    return self->stream_tag;
  return self->global_tag != GST_VIDEO_ORIENTATION_AUTO ? self->global_tag : GST_VIDEO_ORIENTATION_IDENTITY;
}

static GpuOrientation
active_orientation (GstGpuFlip *self)
{
  GstVideoOrientationMethod method;

  GST_OBJECT_LOCK (self);
  method = self->active;
  GST_OBJECT_UNLOCK (self);
  return (GpuOrientation)method;
}

/* Caps. */

static void
invert_fraction (GValue *value)
{
  if (GST_VALUE_HOLDS_FRACTION (value)) {
    gint n = gst_value_get_fraction_numerator (value), d = gst_value_get_fraction_denominator (value);

    /* 0/1 stands for as small as can be. */
    gst_value_set_fraction (value, n ? d : G_MAXINT, n ? n : 1);
  } else if (GST_VALUE_HOLDS_FRACTION_RANGE (value)) {
    GValue min = G_VALUE_INIT, max = G_VALUE_INIT;

    g_value_init (&min, GST_TYPE_FRACTION);
    g_value_init (&max, GST_TYPE_FRACTION);
    g_value_copy (gst_value_get_fraction_range_max (value), &min);
    g_value_copy (gst_value_get_fraction_range_min (value), &max);
    invert_fraction (&min);
    invert_fraction (&max);
    gst_value_set_fraction_range (value, &min, &max);
    g_value_unset (&min);
    g_value_unset (&max);
  } else if (GST_VALUE_HOLDS_LIST (value)) {
    GValue list = G_VALUE_INIT;

    g_value_init (&list, GST_TYPE_LIST);
    for (guint i = 0; i < gst_value_list_get_size (value); i++) {
      GValue item = G_VALUE_INIT;

      g_value_init (&item, G_VALUE_TYPE (gst_value_list_get_value (value, i)));
      g_value_copy (gst_value_list_get_value (value, i), &item);
      invert_fraction (&item);
      gst_value_list_append_and_take_value (&list, &item);
    }
    g_value_unset (value);
    *value = list;
  }
}

static void
set_or_remove (GstStructure *structure, const gchar *field, const GValue *value)
{
  if (value)
    gst_structure_set_value (structure, field, value);
  else
    gst_structure_remove_field (structure, field);
}

static void
transpose_structure (GstStructure *structure)
{
  g_autoptr (GstStructure) old = gst_structure_copy (structure);
  const GValue *par = gst_structure_get_value (old, "pixel-aspect-ratio");

  set_or_remove (structure, "width", gst_structure_get_value (old, "height"));
  set_or_remove (structure, "height", gst_structure_get_value (old, "width"));
  if (par) {
    GValue inverse = G_VALUE_INIT;

    g_value_init (&inverse, G_VALUE_TYPE (par));
    g_value_copy (par, &inverse);
    invert_fraction (&inverse);
    gst_structure_take_value (structure, "pixel-aspect-ratio", &inverse);
  }
}

static GstCaps *
gst_gpu_flip_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstGpuFlip *self = GST_GPU_FLIP (trans);
  gboolean negotiating = gst_gpu_base_transform_is_negotiating (GST_GPU_BASE_TRANSFORM (self));
  GstCaps *result = gst_caps_copy (caps);
  GstVideoOrientationMethod method;

  GST_OBJECT_LOCK (self);
  method = negotiating ? self->active : wanted (self);
  GST_OBJECT_UNLOCK (self);

  if (gpu_orientation_is_transposed ((GpuOrientation)method)) {
    for (guint i = 0; i < gst_caps_get_size (result); i++)
      transpose_structure (gst_caps_get_structure (result, i));
  }
  return gst_gpu_caps_filter (result, filter);
}

static gboolean
gst_gpu_flip_set_batch (GstGpuBaseTransform *base, const GstCaps *in, const GstCaps *out, GError **error)
{
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (base),
                                      active_orientation (GST_GPU_FLIP (base)) == GPU_ORIENTATION_IDENTITY);
  return TRUE;
}

static gboolean
gst_gpu_flip_set_info (GstGpuBaseTransform *base, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, GError **error)
{
  return gst_gpu_flip_set_batch (base, NULL, NULL, error);
}

/* Frames. */

static gboolean
gst_gpu_flip_process_batch (GstGpuBaseTransform *base, GpuStream *stream, GpuBatch *src, GpuBatch *dst,
                            const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, GError **error)
{
  const GpuOrientation orientation = active_orientation (GST_GPU_FLIP (base));

  return gpu_flip_batch (stream, src, dst, &orientation, 1, error);
}

static gboolean
gst_gpu_flip_process (GstGpuBaseTransform *base, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  return gpu_flip (stream, src, dst, active_orientation (GST_GPU_FLIP (base)), error);
}

static void
gst_gpu_flip_map_rectangle (GstGpuBaseTransform *base, gint width, gint height, GstVideoRectangle *rectangle)
{
  const GstVideoRectangle old = *rectangle;
  gint right = width - old.x - old.w, below = height - old.y - old.h;

  switch (active_orientation (GST_GPU_FLIP (base))) {
  case GPU_ORIENTATION_90R:
    *rectangle = (GstVideoRectangle){below, old.x, old.h, old.w};
    break;
  case GPU_ORIENTATION_180:
    *rectangle = (GstVideoRectangle){right, below, old.w, old.h};
    break;
  case GPU_ORIENTATION_90L:
    *rectangle = (GstVideoRectangle){old.y, right, old.h, old.w};
    break;
  case GPU_ORIENTATION_HORIZONTAL:
    rectangle->x = right;
    break;
  case GPU_ORIENTATION_VERTICAL:
    rectangle->y = below;
    break;
  case GPU_ORIENTATION_UL_LR:
    *rectangle = (GstVideoRectangle){old.y, old.x, old.h, old.w};
    break;
  case GPU_ORIENTATION_UR_LL:
    *rectangle = (GstVideoRectangle){below, right, old.h, old.w};
    break;
  case GPU_ORIENTATION_IDENTITY:
    break;
  }
}

static void
gst_gpu_flip_unmap_point (GstGpuBaseTransform *base, gdouble *x, gdouble *y)
{
  const GstVideoInfo *out = gst_gpu_base_transform_out_info (base);
  const gdouble old_x = *x, old_y = *y, right = out->width - *x, below = out->height - *y;

  switch (active_orientation (GST_GPU_FLIP (base))) {
  case GPU_ORIENTATION_90R:
    *x = old_y;
    *y = right;
    break;
  case GPU_ORIENTATION_180:
    *x = right;
    *y = below;
    break;
  case GPU_ORIENTATION_90L:
    *x = below;
    *y = old_x;
    break;
  case GPU_ORIENTATION_HORIZONTAL:
    *x = right;
    break;
  case GPU_ORIENTATION_VERTICAL:
    *y = below;
    break;
  case GPU_ORIENTATION_UL_LR:
    *x = old_y;
    *y = old_x;
    break;
  case GPU_ORIENTATION_UR_LL:
    *x = below;
    *y = right;
    break;
  case GPU_ORIENTATION_IDENTITY:
    break;
  }
}

/* Tags. */

/* Takes @event over. */
static GstEvent *
rewrite_tag (GstEvent *event)
{
  GstTagList *tags, *upright;
  GstEvent *result;

  gst_event_parse_tag (event, &tags);
  if (gst_tag_list_get_tag_size (tags, GST_TAG_IMAGE_ORIENTATION) == 0)
    return event;

  upright = gst_tag_list_copy (tags);
  gst_tag_list_add (upright, GST_TAG_MERGE_REPLACE, GST_TAG_IMAGE_ORIENTATION, "rotate-0", NULL);
  result = gst_event_new_tag (upright);
  gst_event_set_seqnum (result, gst_event_get_seqnum (event));
  gst_event_unref (event);
  return result;
}

static void
take_tag (GstGpuFlip *self, GstEvent *event)
{
  GstVideoOrientationMethod method = GST_VIDEO_ORIENTATION_AUTO;
  GstTagList *tags;

  gst_event_parse_tag (event, &tags);
  if (!gst_video_orientation_from_tag (tags, &method))
    method = GST_VIDEO_ORIENTATION_AUTO;

  GST_OBJECT_LOCK (self);
  if (gst_tag_list_get_scope (tags) == GST_TAG_SCOPE_STREAM)
    self->stream_tag = method;
  else
    self->global_tag = method;
  GST_OBJECT_UNLOCK (self);
}

static void
forget_tags (GstGpuFlip *self)
{
  GST_OBJECT_LOCK (self);
  self->stream_tag = self->global_tag = GST_VIDEO_ORIENTATION_AUTO;
  GST_OBJECT_UNLOCK (self);
}

static gboolean
gst_gpu_flip_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  GstGpuFlip *self = GST_GPU_FLIP (trans);
  const gchar *stream_id;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_STREAM_START:
    gst_event_parse_stream_start (event, &stream_id);
    if (g_strcmp0 (stream_id, self->stream_id) != 0) {
      forget_tags (self);
      g_free (self->stream_id);
      self->stream_id = g_strdup (stream_id);
    }
    break;
  case GST_EVENT_TAG:
    take_tag (self, event);
    if (self->rewrites_tags)
      event = rewrite_tag (event);
    break;
  default:
    break;
  }
  return GST_BASE_TRANSFORM_CLASS (parent_class)->sink_event (trans, event);
}

static gboolean
push_tag_again (GstPad *sinkpad, GstEvent **event, gpointer user_data)
{
  GstGpuFlip *self = user_data;

  if (GST_EVENT_TYPE (*event) == GST_EVENT_TAG) {
    GstEvent *copy = gst_event_ref (*event);

    gst_pad_push_event (GST_BASE_TRANSFORM_SRC_PAD (self), self->rewrites_tags ? rewrite_tag (copy) : copy);
  }
  return TRUE;
}

static gboolean
gst_gpu_flip_update (GstGpuBaseTransform *base)
{
  GstGpuFlip *self = GST_GPU_FLIP (base);
  gboolean changed, rewrites_tags;

  GST_OBJECT_LOCK (self);
  changed = self->active != wanted (self);
  self->active = wanted (self);
  rewrites_tags = self->method == GST_VIDEO_ORIENTATION_AUTO;
  GST_OBJECT_UNLOCK (self);

  /* Where caps stay what they are, nobody asks again. */
  if (changed)
    gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self),
                                        active_orientation (self) == GPU_ORIENTATION_IDENTITY);

  /* What downstream was told about the orientation is no longer so. */
  if (rewrites_tags != self->rewrites_tags) {
    self->rewrites_tags = rewrites_tags;
    gst_pad_sticky_events_foreach (GST_BASE_TRANSFORM_SINK_PAD (self), push_tag_again, self);
  }
  return changed;
}

static gboolean
gst_gpu_flip_start (GstBaseTransform *trans)
{
  GstGpuFlip *self = GST_GPU_FLIP (trans);

  GST_OBJECT_LOCK (self);
  self->rewrites_tags = self->method == GST_VIDEO_ORIENTATION_AUTO;
  GST_OBJECT_UNLOCK (self);
  return GST_BASE_TRANSFORM_CLASS (parent_class)->start (trans);
}

static gboolean
gst_gpu_flip_stop (GstBaseTransform *trans)
{
  GstGpuFlip *self = GST_GPU_FLIP (trans);

  forget_tags (self);
  g_clear_pointer (&self->stream_id, g_free);
  return GST_BASE_TRANSFORM_CLASS (parent_class)->stop (trans);
}

/* The object. */

static void
set_method (GstGpuFlip *self, GstVideoOrientationMethod method)
{
  if (method == GST_VIDEO_ORIENTATION_CUSTOM) {
    GST_WARNING_OBJECT (self, "video-direction=custom is not supported; the old value stays");
    return;
  }
  GST_OBJECT_LOCK (self);
  self->method = method;
  GST_OBJECT_UNLOCK (self);
}

static void
gst_gpu_flip_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  switch (id) {
  case PROP_METHOD:
  case PROP_VIDEO_DIRECTION:
    set_method (GST_GPU_FLIP (object), g_value_get_enum (value));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
}

static void
gst_gpu_flip_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstGpuFlip *self = GST_GPU_FLIP (object);

  switch (id) {
  case PROP_METHOD:
  case PROP_VIDEO_DIRECTION:
    GST_OBJECT_LOCK (self);
    g_value_set_enum (value, self->method);
    GST_OBJECT_UNLOCK (self);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
}

static void
gst_gpu_flip_finalize (GObject *object)
{
  g_free (GST_GPU_FLIP (object)->stream_id);
  G_OBJECT_CLASS (parent_class)->finalize (object);
}

static void
gst_gpu_flip_direction_init (GstVideoDirectionInterface *iface)
{
  /* It has a property and no functions. */
}

static void
gst_gpu_flip_class_init (GstGpuFlipClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);
  GstGpuBaseTransformClass *base_class = GST_GPU_BASE_TRANSFORM_CLASS (klass);

  object_class->set_property = gst_gpu_flip_set_property;
  object_class->get_property = gst_gpu_flip_get_property;
  object_class->finalize = gst_gpu_flip_finalize;

  /* Not set at construction, or its default would undo video-direction=, or the other way round. */
  g_object_class_install_property (object_class, PROP_METHOD,
                                   g_param_spec_enum ("method", "Method",
                                                      "The same as video-direction, with videoflip's older names",
                                                      GST_TYPE_GPU_FLIP_METHOD, DEFAULT_METHOD,
                                                      G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS |
                                                          GST_PARAM_CONTROLLABLE | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_override_property (object_class, PROP_VIDEO_DIRECTION, "video-direction");
  g_object_class_find_property (object_class, "video-direction")->flags |= GST_PARAM_MUTABLE_PLAYING;

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "GPU video flipper", "Filter/Effect/Video/Hardware",
                                         "Flips and turns video frames in cached device memory", GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 videotestsrc num-buffers=1 ! gpuupload ! gpuflip video-direction=90r ! "
      "gpudownload ! videoconvert ! pngenc ! filesink location=flip.png");

  trans_class->start = GST_DEBUG_FUNCPTR (gst_gpu_flip_start);
  trans_class->stop = GST_DEBUG_FUNCPTR (gst_gpu_flip_stop);
  trans_class->sink_event = GST_DEBUG_FUNCPTR (gst_gpu_flip_sink_event);
  base_class->update = gst_gpu_flip_update;
  base_class->transform_frame_caps = gst_gpu_flip_transform_caps;
  base_class->set_info = gst_gpu_flip_set_info;
  base_class->set_batch = gst_gpu_flip_set_batch;
  base_class->process_batch = gst_gpu_flip_process_batch;
  base_class->process = gst_gpu_flip_process;
  base_class->map_rectangle = gst_gpu_flip_map_rectangle;
  base_class->unmap_point = gst_gpu_flip_unmap_point;

  gst_type_mark_as_plugin_api (GST_TYPE_GPU_FLIP_METHOD, 0);
}

static void
gst_gpu_flip_init (GstGpuFlip *self)
{
  self->method = self->active = DEFAULT_METHOD;
  self->stream_tag = self->global_tag = GST_VIDEO_ORIENTATION_AUTO;
}
