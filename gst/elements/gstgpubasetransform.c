/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuBaseTransform; see the header. Here: properties, device and states; the way of a frame through the element.
 * Which memory frames are in is in gstgpuallocation.c, what becomes of metas in gstgpumeta.c.
 *
 * The device is decided as late as possible, so that `auto` finds the one of its neighbours: when memory is negotiated,
 * by a context, or by the first frame. Until the element goes to NULL it stays, unless a frame brings another.
 */
#include "gstgpubasetransform-priv.h"

#include "gstgpuframe.h"

GST_DEBUG_CATEGORY (gst_gpu_base_transform_debug);
#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

enum {
  PROP_0,
  PROP_DEVICE,
  PROP_STREAM,
  PROP_CACHE_LIMIT,
  PROP_CACHE_STATS,
  PROP_FRAMES_IN_FLIGHT,
};

#define DEFAULT_DEVICE "auto"
#define DEFAULT_STREAM GST_GPU_STREAM_INHERIT
#define DEFAULT_CACHE_LIMIT G_MAXINT64
#define DEFAULT_FRAMES_IN_FLIGHT 8
#define MAX_FRAMES_IN_FLIGHT 1024

typedef struct {
  /* Under the object lock. */
  gchar *device_name; /* NULL: not set, so the environment's or auto */
  GstGpuStreamMode stream_mode;
  gint64 limit;
  gboolean limit_is_set;
  guint frames_in_flight;
  GpuDevice *device; /* NULL until decided; atomic, as contexts set it without the lock, once */

  /* Of the streaming thread. */
  GstVideoInfo in_info, out_info;
  gboolean in_is_gpu, out_is_gpu;
  GstCaps *caps;     /* that came in last, taken or refused */
  GpuStream *own;    /* made when first needed */
  GpuStream *stream; /* of the frame at hand */
  GpuThrottle *throttle;

  gint negotiating;
} GstGpuBaseTransformPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GstGpuBaseTransform, gst_gpu_base_transform, GST_TYPE_BASE_TRANSFORM)
#define parent_class gst_gpu_base_transform_parent_class

#define PRIVATE(self) ((GstGpuBaseTransformPrivate *)gst_gpu_base_transform_get_instance_private (self))

GType
gst_gpu_stream_mode_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
      {GST_GPU_STREAM_INHERIT, "The stream of the frame that came in", "inherit"},
      {GST_GPU_STREAM_OWN, "A stream of the element's own", "own"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstGpuStreamMode", values));
  return type;
}

/* The device. */

GpuDevice *
gst_gpu_base_transform_device (GstGpuBaseTransform *self)
{
  return g_atomic_pointer_get (&PRIVATE (self)->device);
}

static GpuDevice *
ref_device (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GpuDevice *device;

  GST_OBJECT_LOCK (self);
  device = g_atomic_pointer_get (&priv->device);
  if (device)
    gpu_device_ref (device);
  GST_OBJECT_UNLOCK (self);
  return device;
}

static gchar *
dup_device_name (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  gchar *name;

  GST_OBJECT_LOCK (self);
  name = g_strdup (priv->device_name);
  GST_OBJECT_UNLOCK (self);
  return name;
}

/* Called without the object lock, whenever a device or a limit may be new. One that is in force is not set again, which
 * would repeat the library's warning about one that is above the device's memory. */
static void
apply_limit (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GpuDevice *device = ref_device (self);
  g_autoptr (GError) error = NULL;
  gboolean is_set;
  gint64 limit;

  GST_OBJECT_LOCK (self);
  is_set = priv->limit_is_set;
  limit = priv->limit;
  GST_OBJECT_UNLOCK (self);

  if (device && is_set && gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE) != (guint64)limit &&
      !gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, limit, &error))
    gst_gpu_base_transform_post_warning (self, error);
  if (device)
    gpu_device_unref (device);
}

/* Puts @device, which may be NULL, in the place of the one that is there. Takes the reference over. */
static void
replace_device (GstGpuBaseTransform *self, GpuDevice *device)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GpuDevice *old;

  GST_OBJECT_LOCK (self);
  old = g_atomic_pointer_get (&priv->device);
  g_atomic_pointer_set (&priv->device, device);
  GST_OBJECT_UNLOCK (self);

  if (old)
    gpu_device_unref (old);
}

gboolean
gst_gpu_base_transform_ensure_device (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  g_autofree gchar *name = NULL;
  g_autoptr (GError) error = NULL;

  if (gst_gpu_base_transform_device (self))
    return TRUE;

  name = dup_device_name (self);
  if (!gst_gpu_ensure_device (GST_ELEMENT (self), name, &priv->device, &error)) {
    gst_gpu_base_transform_post_error (self, error);
    return FALSE;
  }
  GST_INFO_OBJECT (self, "uses device %s", gpu_device_name (gst_gpu_base_transform_device (self)));
  apply_limit (self);
  return TRUE;
}

gboolean
gst_gpu_base_transform_adopts_device (GstGpuBaseTransform *self)
{
  g_autofree gchar *name = dup_device_name (self);

  return GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->follows || !name || g_str_equal (name, "auto");
}

/* Lets go of what belongs to the old device; memory of the new one is negotiated before the next frame. */
static void
adopt_device (GstGpuBaseTransform *self, GpuDevice *device)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);

  g_clear_pointer (&priv->own, gpu_stream_unref);
  g_clear_pointer (&priv->stream, gpu_stream_unref);
  replace_device (self, gpu_device_ref (device));
  GST_INFO_OBJECT (self, "goes over to device %s", gpu_device_name (device));
  apply_limit (self);
  gst_base_transform_reconfigure_src (GST_BASE_TRANSFORM (self));
}

/* A name that was asked for is looked up at once, so that a wrong one fails where it can be corrected. */
static gboolean
open_named_device (GstGpuBaseTransform *self)
{
  g_autofree gchar *name = dup_device_name (self);
  const gchar *wanted = name ? name : g_getenv ("GPUCACHE_DEVICE");

  return !wanted || g_str_equal (wanted, "auto") || gst_gpu_base_transform_ensure_device (self);
}

static void
set_device_name (GstGpuBaseTransform *self, const gchar *name)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  gboolean taken;

  GST_OBJECT_LOCK (self);
  taken = GST_STATE (self) <= GST_STATE_READY;
  if (taken) {
    g_free (priv->device_name);
    priv->device_name = g_strdup (name);
  }
  GST_OBJECT_UNLOCK (self);

  if (taken)
    replace_device (self, NULL);
  else
    GST_WARNING_OBJECT (self, "device can be changed in NULL and READY only; \"%s\" is ignored", name);
}

static void
gst_gpu_base_transform_set_context (GstElement *element, GstContext *context)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (element);
  g_autofree gchar *name = dup_device_name (self);

  if (gst_gpu_handle_set_context (element, context, name, &PRIVATE (self)->device))
    apply_limit (self);
  GST_ELEMENT_CLASS (parent_class)->set_context (element, context);
}

static gboolean update (GstGpuBaseTransform *self);

/* Upstream asks for memory in its streaming thread, and the base class may decide caps again to answer. */
static gboolean
query_allocation (GstGpuBaseTransform *self, GstQuery *query)
{
  gboolean result;

  if (update (self))
    gst_base_transform_reconfigure_src (GST_BASE_TRANSFORM (self));
  g_atomic_int_set (&PRIVATE (self)->negotiating, TRUE);
  result = GST_BASE_TRANSFORM_CLASS (parent_class)->query (GST_BASE_TRANSFORM (self), GST_PAD_SINK, query);
  g_atomic_int_set (&PRIVATE (self)->negotiating, FALSE);
  return result;
}

static gboolean
gst_gpu_base_transform_query (GstBaseTransform *trans, GstPadDirection direction, GstQuery *query)
{
  if (direction == GST_PAD_SINK && GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION)
    return query_allocation (GST_GPU_BASE_TRANSFORM (trans), query);
  if (GST_QUERY_TYPE (query) == GST_QUERY_CONTEXT) {
    GpuDevice *device = ref_device (GST_GPU_BASE_TRANSFORM (trans));
    gboolean answered = device && gst_gpu_handle_context_query (GST_ELEMENT (trans), query, device);

    if (device)
      gpu_device_unref (device);
    if (answered)
      return TRUE;
  }
  return GST_BASE_TRANSFORM_CLASS (parent_class)->query (trans, direction, query);
}

/* States. */

static gboolean
gst_gpu_base_transform_start (GstBaseTransform *trans)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);

  gst_video_info_init (&priv->in_info);
  gst_video_info_init (&priv->out_info);
  priv->throttle = gpu_throttle_new (priv->frames_in_flight);
  return TRUE;
}

static gboolean
gst_gpu_base_transform_stop (GstBaseTransform *trans)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (GST_GPU_BASE_TRANSFORM (trans));

  if (priv->device)
    gst_gpu_cache_log (GST_ELEMENT (trans), priv->device);
  gst_gpu_base_transform_forget_error (GST_GPU_BASE_TRANSFORM (trans));
  gst_clear_caps (&priv->caps);
  g_clear_pointer (&priv->throttle, gpu_throttle_free);
  g_clear_pointer (&priv->stream, gpu_stream_unref);
  g_clear_pointer (&priv->own, gpu_stream_unref);
  return TRUE;
}

static GstStateChangeReturn
gst_gpu_base_transform_change_state (GstElement *element, GstStateChange transition)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (element);
  GstStateChangeReturn result;

  if ((transition == GST_STATE_CHANGE_NULL_TO_READY || transition == GST_STATE_CHANGE_READY_TO_PAUSED) &&
      !open_named_device (self))
    return GST_STATE_CHANGE_FAILURE;

  result = GST_ELEMENT_CLASS (parent_class)->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_READY_TO_NULL)
    replace_device (self, NULL);
  return result;
}

/* Negotiation. */

const GstVideoInfo *
gst_gpu_base_transform_in_info (GstGpuBaseTransform *self)
{
  return &PRIVATE (self)->in_info;
}

const GstVideoInfo *
gst_gpu_base_transform_out_info (GstGpuBaseTransform *self)
{
  return &PRIVATE (self)->out_info;
}

gboolean
gst_gpu_base_transform_in_is_gpu (GstGpuBaseTransform *self)
{
  return PRIVATE (self)->in_is_gpu;
}

gboolean
gst_gpu_base_transform_out_is_gpu (GstGpuBaseTransform *self)
{
  return PRIVATE (self)->out_is_gpu;
}

gboolean
gst_gpu_base_transform_is_negotiating (GstGpuBaseTransform *self)
{
  return g_atomic_int_get (&PRIVATE (self)->negotiating);
}

static gboolean
update (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);

  return klass->update && klass->update (self);
}

static gboolean
gst_gpu_base_transform_get_unit_size (GstBaseTransform *trans, GstCaps *caps, gsize *size)
{
  GstVideoInfo info;

  if (!gst_video_info_from_caps (&info, caps))
    return FALSE;
  *size = GST_VIDEO_INFO_SIZE (&info);
  return TRUE;
}

static gboolean
parse_caps (GstVideoInfo *info, GstCaps *caps, GError **error)
{
  const GstStructure *structure = gst_caps_get_structure (caps, 0);
  const gchar *format = gst_structure_get_string (structure, "format");
  gint width = 0, height = 0;

  if (gst_video_info_from_caps (info, caps))
    return TRUE;
  gst_structure_get_int (structure, "width", &width);
  gst_structure_get_int (structure, "height", &height);
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "No %s frame of %dx%d fits in memory: choose another format or size.", format ? format : "raw", width,
               height);
  return FALSE;
}

static gboolean
gst_gpu_base_transform_set_caps (GstBaseTransform *trans, GstCaps *in, GstCaps *out)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  g_autoptr (GError) error = NULL;
  GstVideoInfo in_info, out_info;
  GpuImageSpec spec;

  if (!parse_caps (&in_info, in, &error) || !parse_caps (&out_info, out, &error)) {
    gst_gpu_base_transform_post_error (self, error);
    return FALSE;
  }
  priv->in_info = in_info;
  priv->out_info = out_info;
  priv->in_is_gpu = gst_gpu_caps_are_gpu (in);
  priv->out_is_gpu = gst_gpu_caps_are_gpu (out);

  if (!gst_gpu_image_spec_from_video_info (&spec, &in_info, &error) ||
      !gst_gpu_image_spec_from_video_info (&spec, &out_info, &error) ||
      (klass->set_info && !klass->set_info (self, &in_info, &out_info, &error))) {
    gst_gpu_base_transform_post_error (self, error);
    return FALSE;
  }
  gst_gpu_base_transform_forget_error (self);
  return TRUE;
}

/* The caps event that was refused comes again before each frame. */
static void
forget_error_of_other_caps (GstGpuBaseTransform *self, GstEvent *event)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GstCaps *caps;

  gst_event_parse_caps (event, &caps);
  if (!priv->caps || !gst_caps_is_equal (priv->caps, caps))
    gst_gpu_base_transform_forget_error (self);
  gst_caps_replace (&priv->caps, caps);
}

static gboolean
gst_gpu_base_transform_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  gboolean result;

  if (GST_EVENT_TYPE (event) != GST_EVENT_CAPS)
    return GST_BASE_TRANSFORM_CLASS (parent_class)->sink_event (trans, event);

  forget_error_of_other_caps (self, event);
  update (self);
  g_atomic_int_set (&PRIVATE (self)->negotiating, TRUE);
  result = GST_BASE_TRANSFORM_CLASS (parent_class)->sink_event (trans, event);
  g_atomic_int_set (&PRIVATE (self)->negotiating, FALSE);
  return result;
}

static gboolean
gst_gpu_base_transform_src_event (GstBaseTransform *trans, GstEvent *event)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  gdouble x, y;

  if (GST_EVENT_TYPE (event) == GST_EVENT_NAVIGATION && klass->unmap_point &&
      GST_VIDEO_INFO_WIDTH (&PRIVATE (self)->out_info) > 0 && gst_navigation_event_get_coordinates (event, &x, &y)) {
    event = gst_event_make_writable (event);
    klass->unmap_point (self, &x, &y);
    gst_navigation_event_set_coordinates (event, x, y);
  }
  return GST_BASE_TRANSFORM_CLASS (parent_class)->src_event (trans, event);
}

/* Frames. */

static void
gst_gpu_base_transform_before_transform (GstBaseTransform *trans, GstBuffer *buffer)
{
  GstClockTime time = gst_segment_to_stream_time (&trans->segment, GST_FORMAT_TIME, GST_BUFFER_TIMESTAMP (buffer));

  if (GST_CLOCK_TIME_IS_VALID (time))
    gst_object_sync_values (GST_OBJECT (trans), time);
}

static GstFlowReturn
gst_gpu_base_transform_submit_input_buffer (GstBaseTransform *trans, gboolean is_discont, GstBuffer *buffer)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GstMemory *memory = gst_gpu_frame_memory (buffer);
  GstFlowReturn result;

  if (update (self))
    gst_base_transform_reconfigure_src (trans);
  if (memory && priv->in_is_gpu) {
    GpuDevice *device = gpu_image_device (gst_gpu_memory_get_image (memory));

    if (device != priv->device && gst_gpu_base_transform_adopts_device (self))
      adopt_device (self, device);
  }
  g_atomic_int_set (&priv->negotiating, TRUE);
  result = GST_BASE_TRANSFORM_CLASS (parent_class)->submit_input_buffer (trans, is_discont, buffer);
  g_atomic_int_set (&priv->negotiating, FALSE);
  return result;
}

/* Refuses a frame of another device: nothing goes over in silence (rule 26). */
static gboolean
check_device (GstGpuBaseTransform *self, GstMemory *memory)
{
  GpuDevice *device = PRIVATE (self)->device;
  GpuDevice *other = memory ? gpu_image_device (gst_gpu_memory_get_image (memory)) : NULL;

  if (!other || other == device || GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->copies)
    return TRUE;

  GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
                     ("A frame of device %s cannot be used on device %s: give both elements the same device, or put "
                      "gpuupload device=%s between them.",
                      gpu_device_name (other), gpu_device_name (device), gpu_device_name (device)),
                     (NULL));
  return FALSE;
}

/* Where this frame's work goes: in the stream that it came on, else in the element's own. */
static gboolean
choose_stream (GstGpuBaseTransform *self, GstMemory *memory, GError **error)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GpuStream *stream = NULL;
  gboolean inherit;

  GST_OBJECT_LOCK (self);
  inherit = priv->stream_mode == GST_GPU_STREAM_INHERIT;
  GST_OBJECT_UNLOCK (self);

  if (inherit && memory)
    stream = gst_gpu_memory_get_stream (memory);
  if (!stream || gpu_stream_device (stream) != priv->device) {
    if (!priv->own)
      priv->own = gpu_stream_new (priv->device, true, error);
    stream = priv->own;
  }
  g_clear_pointer (&priv->stream, gpu_stream_unref);
  priv->stream = stream ? gpu_stream_ref (stream) : NULL;
  return stream != NULL;
}

/* A writable buffer can share its memory with another branch (G6). */
static gboolean
may_work_in_place (GstGpuBaseTransform *self, GstBuffer *buffer, GstMemory *memory)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);

  return GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->in_place && memory && !memory->parent &&
         gst_buffer_is_all_memory_writable (buffer) && !gst_buffer_get_video_crop_meta (buffer) &&
         gpu_image_spec (gst_gpu_memory_get_image (memory))->width == (guint)GST_VIDEO_INFO_WIDTH (&priv->out_info) &&
         gpu_image_spec (gst_gpu_memory_get_image (memory))->height == (guint)GST_VIDEO_INFO_HEIGHT (&priv->out_info);
}

static GstFlowReturn
gst_gpu_base_transform_prepare_output_buffer (GstBaseTransform *trans, GstBuffer *in, GstBuffer **out)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  GstMemory *memory = gst_gpu_frame_memory (in);
  g_autoptr (GError) error = NULL;
  GstFlowReturn result;

  if (gst_base_transform_is_passthrough (trans))
    return GST_BASE_TRANSFORM_CLASS (parent_class)->prepare_output_buffer (trans, in, out);

  if (!gst_gpu_base_transform_ensure_device (self) || !check_device (self, memory))
    return GST_FLOW_ERROR;
  if (klass->forwards && klass->forwards (self, in)) {
    *out = in;
    return GST_FLOW_OK;
  }
  if (!choose_stream (self, memory, &error)) {
    gst_gpu_base_transform_post_error (self, error);
    return GST_FLOW_ERROR;
  }
  if (may_work_in_place (self, in, memory)) {
    *out = in;
    return GST_FLOW_OK;
  }

  result = gst_gpu_base_transform_acquire (self, priv->stream, out);
  if (result == GST_FLOW_OK && !GST_BASE_TRANSFORM_GET_CLASS (trans)->copy_metadata (trans, in, *out))
    GST_WARNING_OBJECT (self, "metas of %" GST_PTR_FORMAT " were not copied", (gpointer)in);
  return result;
}

static gboolean
default_process_buffer (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, GstBuffer *out, GError **error)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GpuImage *src = gst_gpu_frame_ref_image (in, &priv->in_info, error);
  GpuImage *dst = NULL;
  gboolean result = FALSE;

  if (src)
    dst = in == out ? gpu_image_ref (src) : gst_gpu_frame_ref_image (out, &priv->out_info, error);
  if (dst)
    result = GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->process (self, stream, src, dst, error);

  if (src)
    gpu_image_unref (src);
  if (dst)
    gpu_image_unref (dst);
  return result;
}

static GstFlowReturn
gst_gpu_base_transform_transform (GstBaseTransform *trans, GstBuffer *in, GstBuffer *out)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  g_autoptr (GError) error = NULL;
  GstMemory *memory;

  if (in == out && !klass->in_place)
    return GST_FLOW_OK; /* forwarded */

  GST_OBJECT_LOCK (self);
  gpu_throttle_set_depth (priv->throttle, priv->frames_in_flight);
  GST_OBJECT_UNLOCK (self);

  if (!gpu_throttle_begin (priv->throttle, &error) || !klass->process_buffer (self, priv->stream, in, out, &error) ||
      !gpu_throttle_end (priv->throttle, priv->stream, &error)) {
    gst_gpu_base_transform_post_error (self, error);
    return GST_FLOW_ERROR;
  }

  memory = gst_gpu_frame_memory (out);
  if (memory && gst_gpu_memory_get_stream (memory) != priv->stream)
    gst_gpu_memory_set_stream (memory, priv->stream);
  return GST_FLOW_OK;
}

/* The object. */

static void
gst_gpu_base_transform_notify (GObject *object, GParamSpec *pspec)
{
  gst_gpu_base_transform_forget_error (GST_GPU_BASE_TRANSFORM (object));
  if (G_OBJECT_CLASS (parent_class)->notify)
    G_OBJECT_CLASS (parent_class)->notify (object, pspec);
}

static void
gst_gpu_base_transform_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (object);
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);

  switch (id) {
  case PROP_DEVICE:
    set_device_name (self, g_value_get_string (value));
    break;
  case PROP_STREAM:
    GST_OBJECT_LOCK (self);
    priv->stream_mode = g_value_get_enum (value);
    GST_OBJECT_UNLOCK (self);
    break;
  case PROP_CACHE_LIMIT:
    GST_OBJECT_LOCK (self);
    priv->limit = g_value_get_int64 (value);
    priv->limit_is_set = TRUE;
    GST_OBJECT_UNLOCK (self);
    apply_limit (self);
    break;
  case PROP_FRAMES_IN_FLIGHT:
    GST_OBJECT_LOCK (self);
    priv->frames_in_flight = g_value_get_uint (value);
    GST_OBJECT_UNLOCK (self);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
}

static void
gst_gpu_base_transform_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (object);
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);
  GpuDevice *device = ref_device (self);
  const gchar *environment = g_getenv ("GPUCACHE_DEVICE");

  switch (id) {
  case PROP_DEVICE:
    g_value_take_string (value, dup_device_name (self));
    if (!g_value_get_string (value))
      g_value_set_string (value, environment ? environment : DEFAULT_DEVICE);
    break;
  case PROP_STREAM:
    GST_OBJECT_LOCK (self);
    g_value_set_enum (value, priv->stream_mode);
    GST_OBJECT_UNLOCK (self);
    break;
  case PROP_CACHE_LIMIT:
    GST_OBJECT_LOCK (self);
    g_value_set_int64 (value, priv->limit);
    GST_OBJECT_UNLOCK (self);
    if (device)
      g_value_set_int64 (value, (gint64)MIN (gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE), (guint64)G_MAXINT64));
    break;
  case PROP_CACHE_STATS:
    if (device)
      g_value_take_boxed (value, gst_gpu_cache_stats_to_structure (device, GPU_ACCOUNT_DEVICE));
    break;
  case PROP_FRAMES_IN_FLIGHT:
    GST_OBJECT_LOCK (self);
    g_value_set_uint (value, priv->frames_in_flight);
    GST_OBJECT_UNLOCK (self);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  if (device)
    gpu_device_unref (device);
}

static void
gst_gpu_base_transform_finalize (GObject *object)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (GST_GPU_BASE_TRANSFORM (object));

  g_clear_pointer (&priv->device, gpu_device_unref);
  g_free (priv->device_name);
  G_OBJECT_CLASS (parent_class)->finalize (object);
}

static void
gst_gpu_base_transform_class_init (GstGpuBaseTransformClass *klass)
{
  const GParamFlags readwrite = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS;
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (gst_gpu_base_transform_debug, "gpubasetransform", 0, "base class of the gpucache elements");

  object_class->set_property = gst_gpu_base_transform_set_property;
  object_class->get_property = gst_gpu_base_transform_get_property;
  object_class->notify = gst_gpu_base_transform_notify;
  object_class->finalize = gst_gpu_base_transform_finalize;

  g_object_class_install_property (
      object_class, PROP_DEVICE,
      g_param_spec_string ("device", "Device",
                           "auto, cpu, cpu:N or cuda:N; auto takes the device of its neighbours or frames, else the "
                           "first GPU, else the CPU (GPUCACHE_DEVICE in the environment is used if this is not set)",
                           DEFAULT_DEVICE, readwrite | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (object_class, PROP_STREAM,
                                   g_param_spec_enum ("stream", "Stream", "Which stream work is submitted to",
                                                      GST_TYPE_GPU_STREAM_MODE, DEFAULT_STREAM,
                                                      readwrite | GST_PARAM_MUTABLE_READY));
  g_object_class_install_property (
      object_class, PROP_CACHE_LIMIT,
      g_param_spec_int64 ("cache-limit", "Cache limit",
                          "Bytes that the device's cache may hold, for all its users; 0 keeps nothing that is not in "
                          "use. If it is not set, the limit is GPUCACHE_LIMIT of the environment, else half of the "
                          "device's memory, and reads as the maximum until a device is open",
                          0, G_MAXINT64, DEFAULT_CACHE_LIMIT, readwrite | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (
      object_class, PROP_CACHE_STATS,
      g_param_spec_boxed ("cache-stats", "Cache statistics",
                          "Entries, bytes and counts of the device's cache as a structure gpucache-stats of uint64 "
                          "fields; NULL until a device is open",
                          GST_TYPE_STRUCTURE, G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
  g_object_class_install_property (
      object_class, PROP_FRAMES_IN_FLIGHT,
      g_param_spec_uint ("frames-in-flight", "Frames in flight",
                         "How many frames the element submits before it waits for the device to complete the oldest", 1,
                         MAX_FRAMES_IN_FLIGHT, DEFAULT_FRAMES_IN_FLIGHT, readwrite | GST_PARAM_MUTABLE_PLAYING));

  element_class->set_context = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_set_context);
  element_class->change_state = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_change_state);

  trans_class->start = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_start);
  trans_class->stop = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_stop);
  trans_class->query = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_query);
  trans_class->get_unit_size = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_get_unit_size);
  trans_class->fixate_caps = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_fixate_caps);
  trans_class->set_caps = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_set_caps);
  trans_class->sink_event = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_sink_event);
  trans_class->src_event = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_src_event);
  trans_class->decide_allocation = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_decide_allocation);
  trans_class->propose_allocation = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_propose_allocation);
  trans_class->before_transform = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_before_transform);
  trans_class->submit_input_buffer = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_submit_input_buffer);
  trans_class->prepare_output_buffer = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_prepare_output_buffer);
  trans_class->transform = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_transform);
  trans_class->transform_meta = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_transform_meta);

  klass->process_buffer = default_process_buffer;

  gst_type_mark_as_plugin_api (GST_TYPE_GPU_STREAM_MODE, 0);
  gst_type_mark_as_plugin_api (GST_TYPE_GPU_BASE_TRANSFORM, 0);
}

static void
gst_gpu_base_transform_init (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = PRIVATE (self);

  priv->stream_mode = DEFAULT_STREAM;
  priv->limit = DEFAULT_CACHE_LIMIT;
  priv->frames_in_flight = DEFAULT_FRAMES_IN_FLIGHT;
  gst_base_transform_set_qos_enabled (GST_BASE_TRANSFORM (self), TRUE);
}
