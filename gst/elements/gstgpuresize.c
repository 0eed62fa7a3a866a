/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpuresize
 * @title: gpuresize
 * @short_description: Scales video frames on the device
 *
 * Scales frames in device memory to the size that the caps downstream ask for, as videoscale does: the display aspect
 * ratio is kept by way of size and pixel-aspect-ratio where the caps leave a choice. Frames of the right size go
 * through as they are. The rectangle of a GstVideoCropMeta is what is scaled. Interlaced frames are scaled as whole
 * frames.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,width=640,height=480 ! gpuupload ! \
 *   gpuresize method=bilinear ! "video/x-raw(memory:GPUCache),width=224,height=224" ! gpudownload ! \
 *   videoconvert ! pngenc ! filesink location=resize.png
 * ]|
 */
#include "gstgpubasetransform.h"
#include "gstgpuelements.h"
#include "gstgpusize.h"

GST_DEBUG_CATEGORY_STATIC (gst_gpu_resize_debug);
#define GST_CAT_DEFAULT gst_gpu_resize_debug

enum {
  PROP_0,
  PROP_METHOD,
};

#define DEFAULT_METHOD GPU_RESIZE_BILINEAR

struct _GstGpuResize {
  GstGpuBaseTransform parent;

  GpuResizeFilter filter; /* under the object lock */
};

#define GST_TYPE_GPU_RESIZE (gst_gpu_resize_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuResize, gst_gpu_resize, GST, GPU_RESIZE, GstGpuBaseTransform)
G_DEFINE_TYPE (GstGpuResize, gst_gpu_resize, GST_TYPE_GPU_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpuresize, "gpuresize", GST_RANK_NONE, GST_TYPE_GPU_RESIZE,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_resize_debug, "gpuresize", 0, "gpuresize"))

#define GST_TYPE_GPU_RESIZE_METHOD (gst_gpu_resize_method_get_type ())
static GType
gst_gpu_resize_method_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
      {GPU_RESIZE_NEAREST, "Nearest neighbour", "nearest-neighbour"},
      {GPU_RESIZE_BILINEAR, "Bilinear (2-tap)", "bilinear"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstGpuResizeMethod", values));
  return type;
}

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_CAPS));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_CAPS));

static GstCaps *
gst_gpu_resize_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  return gst_gpu_caps_filter (gst_gpu_caps_of_any_size (caps), filter);
}

static GstCaps *
gst_gpu_resize_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others)
{
  others = gst_caps_make_writable (gst_caps_truncate (others));
  gst_gpu_size_fixate (direction, gst_caps_get_structure (caps, 0), gst_caps_get_structure (others, 0));
  return GST_BASE_TRANSFORM_CLASS (gst_gpu_resize_parent_class)->fixate_caps (trans, direction, caps, others);
}

static gboolean
gst_gpu_resize_process (GstGpuBaseTransform *base, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  GstGpuResize *self = GST_GPU_RESIZE (base);
  GpuResizeFilter filter;

  GST_OBJECT_LOCK (self);
  filter = self->filter;
  GST_OBJECT_UNLOCK (self);
  return gpu_resize (stream, src, dst, filter, error);
}

/* The corners are scaled, so that what covers the whole input covers the whole output. */
static void
gst_gpu_resize_map_rectangle (GstGpuBaseTransform *base, gint width, gint height, GstVideoRectangle *rectangle)
{
  const GstVideoInfo *out = gst_gpu_base_transform_out_info (base);
  gint x1 = (gint)gst_util_uint64_scale_int_round (rectangle->x + rectangle->w, out->width, width);
  gint y1 = (gint)gst_util_uint64_scale_int_round (rectangle->y + rectangle->h, out->height, height);

  rectangle->x = (gint)gst_util_uint64_scale_int_round (rectangle->x, out->width, width);
  rectangle->y = (gint)gst_util_uint64_scale_int_round (rectangle->y, out->height, height);
  rectangle->x = MIN (rectangle->x, out->width - 1);
  rectangle->y = MIN (rectangle->y, out->height - 1);
  rectangle->w = MAX (x1 - rectangle->x, 1);
  rectangle->h = MAX (y1 - rectangle->y, 1);
}

static void
gst_gpu_resize_unmap_point (GstGpuBaseTransform *base, gdouble *x, gdouble *y)
{
  const GstVideoInfo *in = gst_gpu_base_transform_in_info (base), *out = gst_gpu_base_transform_out_info (base);

  *x = *x * in->width / out->width;
  *y = *y * in->height / out->height;
}

static void
gst_gpu_resize_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstGpuResize *self = GST_GPU_RESIZE (object);

  switch (id) {
  case PROP_METHOD:
    GST_OBJECT_LOCK (self);
    self->filter = g_value_get_enum (value);
    GST_OBJECT_UNLOCK (self);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
}

static void
gst_gpu_resize_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstGpuResize *self = GST_GPU_RESIZE (object);

  switch (id) {
  case PROP_METHOD:
    GST_OBJECT_LOCK (self);
    g_value_set_enum (value, self->filter);
    GST_OBJECT_UNLOCK (self);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
}

static void
gst_gpu_resize_class_init (GstGpuResizeClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);
  GstGpuBaseTransformClass *base_class = GST_GPU_BASE_TRANSFORM_CLASS (klass);

  object_class->set_property = gst_gpu_resize_set_property;
  object_class->get_property = gst_gpu_resize_get_property;
  g_object_class_install_property (
      object_class, PROP_METHOD,
      g_param_spec_enum ("method", "Method", "How samples are interpolated; none of them antialiases when shrinking",
                         GST_TYPE_GPU_RESIZE_METHOD, DEFAULT_METHOD,
                         G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_CONTROLLABLE |
                             GST_PARAM_MUTABLE_PLAYING));

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "GPU scaler", "Filter/Converter/Video/Scaler/Hardware",
                                         "Scales video frames in cached device memory", GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,width=640,height=480 ! gpuupload ! "
      "gpuresize method=bilinear ! \"video/x-raw(memory:GPUCache),width=224,height=224\" ! "
      "gpudownload ! videoconvert ! pngenc ! filesink location=resize.png");

  trans_class->passthrough_on_same_caps = TRUE;
  trans_class->transform_caps = GST_DEBUG_FUNCPTR (gst_gpu_resize_transform_caps);
  trans_class->fixate_caps = GST_DEBUG_FUNCPTR (gst_gpu_resize_fixate_caps);
  base_class->process = gst_gpu_resize_process;
  base_class->map_rectangle = gst_gpu_resize_map_rectangle;
  base_class->unmap_point = gst_gpu_resize_unmap_point;

  gst_type_mark_as_plugin_api (GST_TYPE_GPU_RESIZE_METHOD, 0);
}

static void
gst_gpu_resize_init (GstGpuResize *self)
{
  self->filter = DEFAULT_METHOD;
}
