/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuBaseTransform; see the header. Here: properties, states, queries and events. Devices are in gstgpudevice.c,
 * caps in gstgpucaps.c, memory in gstgpuallocation.c, the way of a frame in gstgpuflow.c, metas in gstgpumeta.c.
 */
#include "gstgpubasetransform-priv.h"

#include "gstgpubatchcaps.h"
#include "gstgpurefusal.h"

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

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (GstGpuBaseTransform, gst_gpu_base_transform, GST_TYPE_BASE_TRANSFORM)
#define parent_class gst_gpu_base_transform_parent_class

GstGpuBaseTransformPrivate *
gst_gpu_base_transform_priv (GstGpuBaseTransform *self)
{
  return gst_gpu_base_transform_get_instance_private (self);
}

GstBaseTransformClass *
gst_gpu_base_transform_parent (void)
{
  return GST_BASE_TRANSFORM_CLASS (parent_class);
}

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

/* States. */

static gboolean
gst_gpu_base_transform_start (GstBaseTransform *trans)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  gst_gpu_frame_info_init (&priv->in);
  gst_gpu_frame_info_init (&priv->out);
  priv->throttle = gpu_throttle_new ((guint)g_atomic_int_get (&priv->frames_in_flight));
  return TRUE;
}

/* The element looks for another when it starts. */
static void
drop_lost_device (GstGpuBaseTransform *self)
{
  GpuDevice *device = gst_gpu_base_transform_device (self);

  if (device && gpu_device_is_lost (device))
    gst_gpu_base_transform_replace_device (self, NULL);
}

static gboolean
gst_gpu_base_transform_stop (GstBaseTransform *trans)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (GST_GPU_BASE_TRANSFORM (trans));

  if (priv->device)
    gst_gpu_cache_log (GST_ELEMENT (trans), priv->device);
  gst_gpu_base_transform_forget_error (GST_GPU_BASE_TRANSFORM (trans));
  gst_clear_caps (&priv->caps);
  gst_gpu_refusal_forget (trans);
  gst_clear_caps (&priv->batch_caps);
  g_clear_pointer (&priv->mappings, g_ptr_array_unref);
  gst_clear_object (&priv->allocator);
  g_clear_pointer (&priv->throttle, gpu_throttle_free);
  gst_clear_object (&priv->pool);
  g_clear_pointer (&priv->stream, gpu_stream_unref);
  g_clear_pointer (&priv->own, gpu_stream_unref);
  drop_lost_device (GST_GPU_BASE_TRANSFORM (trans));
  return TRUE;
}

static GstStateChangeReturn
gst_gpu_base_transform_change_state (GstElement *element, GstStateChange transition)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (element);
  GstStateChangeReturn result;

  if (transition == GST_STATE_CHANGE_READY_TO_PAUSED)
    drop_lost_device (self);
  if ((transition == GST_STATE_CHANGE_NULL_TO_READY || transition == GST_STATE_CHANGE_READY_TO_PAUSED) &&
      !gst_gpu_base_transform_open_named_device (self))
    return GST_STATE_CHANGE_FAILURE;

  result = GST_ELEMENT_CLASS (parent_class)->change_state (element, transition);

  if (transition == GST_STATE_CHANGE_READY_TO_NULL)
    gst_gpu_base_transform_replace_device (self, NULL);
  return result;
}

/* Queries and events. */

static gboolean
gst_gpu_base_transform_query (GstBaseTransform *trans, GstPadDirection direction, GstQuery *query)
{
  if (direction == GST_PAD_SINK && GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION)
    return gst_gpu_base_transform_allocation_query (GST_GPU_BASE_TRANSFORM (trans), query);
  if (GST_QUERY_TYPE (query) == GST_QUERY_CONTEXT) {
    GpuDevice *device = gst_gpu_base_transform_ref_device (GST_GPU_BASE_TRANSFORM (trans));
    gboolean answered = device && gst_gpu_handle_context_query (GST_ELEMENT (trans), query, device);

    if (device)
      gpu_device_unref (device);
    if (answered)
      return TRUE;
  }
  if (!GST_BASE_TRANSFORM_CLASS (parent_class)->query (trans, direction, query))
    return FALSE;
  if (GST_QUERY_TYPE (query) == GST_QUERY_CAPS)
    gst_gpu_refusal_log_answer (trans, direction, query);
  return TRUE;
}

static gboolean
gst_gpu_base_transform_sink_event (GstBaseTransform *trans, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_CAPS)
    return gst_gpu_base_transform_caps_event (GST_GPU_BASE_TRANSFORM (trans), event);
  return GST_BASE_TRANSFORM_CLASS (parent_class)->sink_event (trans, event);
}

static gboolean
gst_gpu_base_transform_src_event (GstBaseTransform *trans, GstEvent *event)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  gdouble x, y;

  if (GST_EVENT_TYPE (event) == GST_EVENT_NAVIGATION && klass->unmap_point &&
      GST_VIDEO_INFO_WIDTH (&gst_gpu_base_transform_priv (self)->out.video) > 0 &&
      gst_navigation_event_get_coordinates (event, &x, &y)) {
    event = gst_event_make_writable (event);
    klass->unmap_point (self, &x, &y);
    gst_navigation_event_set_coordinates (event, x, y);
  }
  return GST_BASE_TRANSFORM_CLASS (parent_class)->src_event (trans, event);
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
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  switch (id) {
  case PROP_DEVICE:
    gst_gpu_base_transform_set_device_name (self, g_value_get_string (value));
    break;
  case PROP_STREAM:
    g_atomic_int_set (&priv->stream_mode, g_value_get_enum (value));
    break;
  case PROP_CACHE_LIMIT:
    GST_OBJECT_LOCK (self);
    priv->limit = g_value_get_int64 (value);
    priv->limit_is_set = TRUE;
    GST_OBJECT_UNLOCK (self);
    gst_gpu_base_transform_apply_limit (self);
    break;
  case PROP_FRAMES_IN_FLIGHT:
    g_atomic_int_set (&priv->frames_in_flight, (gint)g_value_get_uint (value));
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
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GpuDevice *device = gst_gpu_base_transform_ref_device (self);
  const gchar *environment = g_getenv ("GPUCACHE_DEVICE");

  switch (id) {
  case PROP_DEVICE:
    g_value_take_string (value, gst_gpu_base_transform_dup_device_name (self));
    if (!g_value_get_string (value))
      g_value_set_string (value, environment ? environment : DEFAULT_DEVICE);
    break;
  case PROP_STREAM:
    g_value_set_enum (value, g_atomic_int_get (&priv->stream_mode));
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
    g_value_set_uint (value, (guint)g_atomic_int_get (&priv->frames_in_flight));
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
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (GST_GPU_BASE_TRANSFORM (object));

  g_clear_pointer (&priv->device, gpu_device_unref);
  gst_clear_caps (&priv->refused);
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
                                   g_param_spec_enum ("stream", "Stream",
                                                      "Which stream work is submitted to; gpuupload and gpudownload "
                                                      "copy on their own in any case",
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
  trans_class->transform_caps = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_transform_caps);
  trans_class->fixate_caps = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_fixate_caps);
  trans_class->set_caps = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_set_caps);
  trans_class->accept_caps = GST_DEBUG_FUNCPTR (gst_gpu_refusal_accept_caps);
  trans_class->sink_event = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_sink_event);
  trans_class->src_event = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_src_event);
  trans_class->decide_allocation = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_decide_allocation);
  trans_class->propose_allocation = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_propose_allocation);
  trans_class->before_transform = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_before_transform);
  trans_class->submit_input_buffer = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_submit_input_buffer);
  trans_class->prepare_output_buffer = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_prepare_output_buffer);
  trans_class->transform = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_transform);
  trans_class->copy_metadata = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_copy_metadata);
  trans_class->transform_meta = GST_DEBUG_FUNCPTR (gst_gpu_base_transform_transform_meta);

  klass->process_buffer = gst_gpu_base_transform_process_buffer;

  gst_type_mark_as_plugin_api (GST_TYPE_GPU_STREAM_MODE, 0);
  gst_type_mark_as_plugin_api (GST_TYPE_GPU_BASE_TRANSFORM, 0);
}

static void
gst_gpu_base_transform_init (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  priv->stream_mode = DEFAULT_STREAM;
  priv->limit = DEFAULT_CACHE_LIMIT;
  priv->frames_in_flight = DEFAULT_FRAMES_IN_FLIGHT;
  gst_base_transform_set_qos_enabled (GST_BASE_TRANSFORM (self), TRUE);
}
