/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpuresize
 * @title: gpuresize
 * @short_description: Scales video frames on the device
 *
 * Scales frames in device memory to the size that the caps downstream ask for, as videoscale does: the display aspect
 * ratio is kept by way of size and pixel-aspect-ratio where the caps leave a choice, and by borders where they do not,
 * as with width, height and pixel-aspect-ratio=1/1, unless `add-borders` is off. Frames of the right size go through as
 * they are. All formats are scaled directly, chroma planes like pictures of their own size. Interlaced frames are
 * scaled as whole frames.
 *
 * `method` is one of Pillow's filters. With `antialias`, the default, filters are made wider when the picture shrinks,
 * so that each pixel that comes in counts, and the result is that of Pillow's resize(), give or take one level.
 * Without, nearest-neighbour and bilinear are what videoscale has by these names. nearest-neighbour never antialiases.
 *
 * Of formats with alpha, the colour of transparent pixels does not count, as in Pillow: filters work on colours that
 * are multiplied by alpha. With nearest-neighbour, and with bilinear without antialias, channels are scaled one by one,
 * and so are those of RGBx and its like always, whose fourth byte is a channel without a meaning.
 *
 * The rectangle of a GstVideoCropMeta is what is scaled, as if it had been cut out before, also where it begins between
 * two chroma samples; frames come out without the meta. Regions of interest and navigation events follow the picture.
 *
 * ## Example launch lines
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,width=640,height=480 ! gpuupload ! \
 *   gpuresize method=bilinear ! "video/x-raw(memory:GPUCache),width=224,height=224" ! gpudownload ! \
 *   videoconvert ! pngenc ! filesink location=resize.png
 * ]|
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,width=1280,height=720 ! gpuupload ! \
 *   gpuresize method=lanczos border-color=0xff727272 ! \
 *   "video/x-raw(memory:GPUCache),width=640,height=640,pixel-aspect-ratio=1/1" ! gpudownload ! \
 *   videoconvert ! pngenc ! filesink location=letterbox.png
 * ]|
 */
#include "gstgpubasetransform.h"
#include "gstgpucolor.h"
#include "gstgpuelements.h"
#include "gstgpuframe.h"
#include "gstgpusize.h"

GST_DEBUG_CATEGORY_STATIC (gst_gpu_resize_debug);
#define GST_CAT_DEFAULT gst_gpu_resize_debug

enum {
  PROP_0,
  PROP_METHOD,
  PROP_ANTIALIAS,
  PROP_ADD_BORDERS,
  PROP_BORDER_COLOR,
};

#define DEFAULT_METHOD GPU_RESIZE_BILINEAR
#define DEFAULT_ANTIALIAS TRUE
#define DEFAULT_ADD_BORDERS TRUE
#define DEFAULT_BORDER_COLOR 0xff000000

struct _GstGpuResize {
  GstGpuBaseTransform parent;

  /* Under the object lock. */
  GpuResizeFilter filter;
  gboolean antialias;
  gboolean add_borders;
  guint border_color;      /* 0xAARRGGBB */
  GpuResizeRectangle part; /* of what goes out: where the picture is */

  /* Of the streaming thread. */
  gboolean borders; /* add_borders, when its turn has come */
  GpuResizer *resizer;
  GArray *boxes; /* of GpuResizeBox: the parts that are scaled of the frames of a batch */
};

#define GST_TYPE_GPU_RESIZE (gst_gpu_resize_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuResize, gst_gpu_resize, GST, GPU_RESIZE, GstGpuBaseTransform)
G_DEFINE_TYPE (GstGpuResize, gst_gpu_resize, GST_TYPE_GPU_BASE_TRANSFORM)
#define parent_class gst_gpu_resize_parent_class
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
      {GPU_RESIZE_BOX, "Box: the mean of the pixels that a pixel covers", "box"},
      {GPU_RESIZE_HAMMING, "Hamming (2-tap): sharper than bilinear", "hamming"},
      {GPU_RESIZE_BICUBIC, "Bicubic (4-tap)", "bicubic"},
      {GPU_RESIZE_LANCZOS, "Lanczos (6-tap)", "lanczos"},
      {GPU_RESIZE_NEAREST, "Nearest neighbour, by Pillow's name", "nearest"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstGpuResizeMethod", values));
  return type;
}

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_CAPS "; " GST_GPU_BATCH_CAPS));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_CAPS "; " GST_GPU_BATCH_CAPS));

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
  return gst_gpu_base_transform_fixate_frame_caps (trans, direction, caps, others);
}

/* Where the picture goes. */

/* The nearest multiple of a chroma sample's @step up to the image's @size, of which there is at least one. */
static guint
round_size (guint value, guint size, guint step)
{
  return value >= size ? size : CLAMP ((value + step / 2) / step * step, MIN (step, size), size);
}

/* The part of @out that has @in's display aspect ratio, in the middle. */
static GpuResizeRectangle
find_part (const GstVideoInfo *in, const GstVideoInfo *out, gboolean add_borders)
{
  const guint width = (guint)GST_VIDEO_INFO_WIDTH (out), height = (guint)GST_VIDEO_INFO_HEIGHT (out);
  const guint x_step = 1u << GST_VIDEO_FORMAT_INFO_W_SUB (out->finfo, 1);
  const guint y_step = 1u << GST_VIDEO_FORMAT_INFO_H_SUB (out->finfo, 1);
  GpuResizeRectangle part = {0, 0, width, height};
  gint n, d;

  /* The width of the picture for each row of it, in pixels of what goes out. */
  if (!add_borders || !gst_util_fraction_multiply (in->width, in->height, in->par_n, in->par_d, &n, &d) ||
      !gst_util_fraction_multiply (n, d, out->par_d, out->par_n, &n, &d))
    return part;
  if ((guint64)width * (guint)d <= (guint64)height * (guint)n)
    part.height = round_size ((guint)gst_util_uint64_scale_int_round (width, d, n), height, y_step);
  else
    part.width = round_size ((guint)gst_util_uint64_scale_int_round (height, n, d), width, x_step);
  part.x = (width - part.width) / 2 / x_step * x_step;
  part.y = (height - part.height) / 2 / y_step * y_step;
  return part;
}

static gboolean
is_whole (const GpuResizeRectangle *part, const GstVideoInfo *info)
{
  return part->width == (guint)GST_VIDEO_INFO_WIDTH (info) && part->height == (guint)GST_VIDEO_INFO_HEIGHT (info);
}

static void
place (GstGpuResize *self, const GstVideoInfo *in, const GstVideoInfo *out)
{
  const GpuResizeRectangle part = find_part (in, out, self->borders);

  GST_OBJECT_LOCK (self);
  self->part = part;
  GST_OBJECT_UNLOCK (self);
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self),
                                      in->width == out->width && in->height == out->height && is_whole (&part, out));
}

static gboolean
gst_gpu_resize_set_info (GstGpuBaseTransform *base, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out,
                         GError **error)
{
  place (GST_GPU_RESIZE (base), &in->video, &out->video);
  return TRUE;
}

static gboolean
gst_gpu_resize_update (GstGpuBaseTransform *base)
{
  GstGpuResize *self = GST_GPU_RESIZE (base);
  const GstVideoInfo *in = gst_gpu_base_transform_in_info (base), *out = gst_gpu_base_transform_out_info (base);
  const gboolean borders = self->borders;
  gboolean passed;

  GST_OBJECT_LOCK (self);
  self->borders = self->add_borders;
  GST_OBJECT_UNLOCK (self);
  if (self->borders == borders || GST_VIDEO_INFO_WIDTH (out) <= 0)
    return FALSE;

  passed = gst_base_transform_is_passthrough (GST_BASE_TRANSFORM (self));
  place (self, in, out);
  /* Whoever passed frames on has no memory for others. */
  return gst_base_transform_is_passthrough (GST_BASE_TRANSFORM (self)) != passed;
}

/* Frames. */

/* What of a frame is scaled. Returns: (transfer full): an image that begins at a chroma sample, so that chroma is where
 * it belongs, and in @box the part of it, all zero for the whole. */
static GpuImage *
ref_source (GstBuffer *buffer, const GstGpuFrameInfo *info, GpuResizeBox *box, GError **error)
{
  const GstVideoFormatInfo *format = info->video.finfo;
  GpuImage *image = gst_gpu_frame_ref_image (buffer, info, error), *around;
  GstVideoRectangle crop;
  guint left, top;

  if (!image)
    return NULL;
  gst_gpu_frame_rectangle (buffer, info, &crop);
  left = (guint)crop.x & ((1u << GST_VIDEO_FORMAT_INFO_W_SUB (format, 1)) - 1);
  top = (guint)crop.y & ((1u << GST_VIDEO_FORMAT_INFO_H_SUB (format, 1)) - 1);
  if (left == 0 && top == 0)
    return image;

  gpu_image_unref (image);
  around = gst_gpu_memory_get_image (gst_gpu_frame_memory (buffer));
  *box = (GpuResizeBox){left, top, crop.w, crop.h};
  return gpu_image_view (around, (guint)crop.x - left, (guint)crop.y - top, (guint)crop.w + left, (guint)crop.h + top,
                         error);
}

/* The border's colour in the format that goes out. Scaling does not depend on what numbers mean; where that is not
 * known, a border has a default's. */
static void
set_border (GpuResize *params, guint color, const GstVideoInfo *info)
{
  const guint8 rgba[GPU_MAX_CHANNELS] = {(guint8)(color >> 16), (guint8)(color >> 8), (guint8)color,
                                         (guint8)(color >> 24)};
  GpuColorimetry colorimetry;

  if (!gst_gpu_colorimetry_from_video_info (&colorimetry, info, NULL))
    colorimetry = (GpuColorimetry){.range = GPU_RANGE_DEFAULT};
  gpu_convert_color (rgba, gst_gpu_format_from_video_format (GST_VIDEO_INFO_FORMAT (info)), &colorimetry,
                     params->border);
}

static gboolean
gst_gpu_resize_process_buffer (GstGpuBaseTransform *base, GpuStream *stream, GstBuffer *in, GstBuffer *out,
                               GError **error)
{
  GstGpuResize *self = GST_GPU_RESIZE (base);
  const GstGpuFrameInfo *out_info = gst_gpu_base_transform_out_frame_info (base);
  GpuResize params = {.clip = true};
  GpuImage *src = ref_source (in, gst_gpu_base_transform_in_frame_info (base), &params.src, error);
  GpuImage *dst = src ? gst_gpu_frame_ref_image (out, out_info, error) : NULL;
  guint border_color;
  gboolean result;

  GST_OBJECT_LOCK (self);
  params.filter = self->filter;
  params.antialias = self->antialias;
  params.dst = self->part;
  border_color = self->border_color;
  GST_OBJECT_UNLOCK (self);
  if (!is_whole (&params.dst, &out_info->video))
    set_border (&params, border_color, &out_info->video);
  result = dst && gpu_resizer_run (self->resizer, stream, src, dst, &params, error);

  if (src)
    gpu_image_unref (src);
  if (dst)
    gpu_image_unref (dst);
  return result;
}

static GpuImage *
gst_gpu_resize_ref_source (GstGpuBaseTransform *base, guint i, GstBuffer *buffer, const GstGpuFrameInfo *info,
                           GError **error)
{
  GstGpuResize *self = GST_GPU_RESIZE (base);
  GpuResizeBox *box;

  if (self->boxes->len <= i)
    g_array_set_size (self->boxes, i + 1);
  box = &g_array_index (self->boxes, GpuResizeBox, i);
  *box = (GpuResizeBox){0};
  return ref_source (buffer, info, box, error);
}

/* Frames stay what they are where no size is asked for. */
static gboolean
gst_gpu_resize_set_batch (GstGpuBaseTransform *base, const GstCaps *in, const GstCaps *out, GError **error)
{
  static const gchar *const fields[] = {"width", "height", "pixel-aspect-ratio", NULL};

  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (base), !gst_gpu_batch_asks_for (in, out, fields));
  return TRUE;
}

static gboolean
gst_gpu_resize_process_batch (GstGpuBaseTransform *base, GpuStream *stream, GpuBatch *src, GpuBatch *dst,
                              const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, GError **error)
{
  GstGpuResize *self = GST_GPU_RESIZE (base);
  const guint n = gpu_batch_size (src);
  g_autofree GpuResize *params = g_new0 (GpuResize, n);
  GpuResize common = {.clip = true};
  guint border_color;

  GST_OBJECT_LOCK (self);
  common.filter = self->filter;
  common.antialias = self->antialias;
  border_color = self->border_color;
  GST_OBJECT_UNLOCK (self);
  for (guint i = 0; i < n; i++) {
    params[i] = common;
    params[i].src = g_array_index (self->boxes, GpuResizeBox, i);
    params[i].dst = find_part (&in[i].video, &out[i].video, self->borders);
    set_border (&params[i], border_color, &out[i].video);
  }
  return gpu_resizer_run_batch (self->resizer, stream, src, dst, params, n, error);
}

static GpuResizeRectangle
get_part (GstGpuResize *self)
{
  GpuResizeRectangle part;

  GST_OBJECT_LOCK (self);
  part = self->part;
  GST_OBJECT_UNLOCK (self);
  return part;
}

/* Scales an edge's distance from the first pixel. */
static gint
scale_edge (gint edge, guint to, gint from)
{
  return (gint)gst_util_uint64_scale_int_round ((guint64)edge, (gint)to, from);
}

/* The corners are scaled, so that what covers the whole input covers all of the picture in the output. */
static void
gst_gpu_resize_map_rectangle (GstGpuBaseTransform *base, gint width, gint height, GstVideoRectangle *rectangle)
{
  /* Not the part that is in use for single frames: each of a batch has its own. */
  const GpuResizeRectangle part = find_part (gst_gpu_base_transform_in_info (base),
                                             gst_gpu_base_transform_out_info (base), GST_GPU_RESIZE (base)->borders);
  const gint x0 = MIN (scale_edge (rectangle->x, part.width, width), (gint)part.width - 1);
  const gint y0 = MIN (scale_edge (rectangle->y, part.height, height), (gint)part.height - 1);

  rectangle->w = MAX (scale_edge (rectangle->x + rectangle->w, part.width, width) - x0, 1);
  rectangle->h = MAX (scale_edge (rectangle->y + rectangle->h, part.height, height) - y0, 1);
  rectangle->x = (gint)part.x + x0;
  rectangle->y = (gint)part.y + y0;
}

/* A border is as much as the picture's edge. */
static void
gst_gpu_resize_unmap_point (GstGpuBaseTransform *base, gdouble *x, gdouble *y)
{
  const GstVideoInfo *in = gst_gpu_base_transform_in_info (base);
  const GpuResizeRectangle part = get_part (GST_GPU_RESIZE (base));

  if (part.width == 0 || part.height == 0)
    return;
  *x = CLAMP ((*x - part.x) * in->width / part.width, 0, in->width);
  *y = CLAMP ((*y - part.y) * in->height / part.height, 0, in->height);
}

/* The object. */

static gboolean
gst_gpu_resize_start (GstBaseTransform *trans)
{
  GST_GPU_RESIZE (trans)->resizer = gpu_resizer_new ();
  GST_GPU_RESIZE (trans)->boxes = g_array_new (FALSE, TRUE, sizeof (GpuResizeBox));
  return GST_BASE_TRANSFORM_CLASS (parent_class)->start (trans);
}

static gboolean
gst_gpu_resize_stop (GstBaseTransform *trans)
{
  g_clear_pointer (&GST_GPU_RESIZE (trans)->resizer, gpu_resizer_free);
  g_clear_pointer (&GST_GPU_RESIZE (trans)->boxes, g_array_unref);
  return GST_BASE_TRANSFORM_CLASS (parent_class)->stop (trans);
}

static void
gst_gpu_resize_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstGpuResize *self = GST_GPU_RESIZE (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_METHOD:
    self->filter = g_value_get_enum (value);
    break;
  case PROP_ANTIALIAS:
    self->antialias = g_value_get_boolean (value);
    break;
  case PROP_ADD_BORDERS:
    self->add_borders = g_value_get_boolean (value);
    break;
  case PROP_BORDER_COLOR:
    self->border_color = g_value_get_uint (value);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_gpu_resize_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstGpuResize *self = GST_GPU_RESIZE (object);

  GST_OBJECT_LOCK (self);
  switch (id) {
  case PROP_METHOD:
    g_value_set_enum (value, self->filter);
    break;
  case PROP_ANTIALIAS:
    g_value_set_boolean (value, self->antialias);
    break;
  case PROP_ADD_BORDERS:
    g_value_set_boolean (value, self->add_borders);
    break;
  case PROP_BORDER_COLOR:
    g_value_set_uint (value, self->border_color);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
  GST_OBJECT_UNLOCK (self);
}

static void
gst_gpu_resize_class_init (GstGpuResizeClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);
  GstGpuBaseTransformClass *base_class = GST_GPU_BASE_TRANSFORM_CLASS (klass);
  const GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING;

  object_class->set_property = gst_gpu_resize_set_property;
  object_class->get_property = gst_gpu_resize_get_property;
  g_object_class_install_property (
      object_class, PROP_METHOD,
      g_param_spec_enum ("method", "Method", "How samples are interpolated: see antialias, too",
                         GST_TYPE_GPU_RESIZE_METHOD, DEFAULT_METHOD, flags | GST_PARAM_CONTROLLABLE));
  g_object_class_install_property (
      object_class, PROP_ANTIALIAS,
      g_param_spec_boolean ("antialias", "Antialias",
                            "Whether filters are made wider when the picture shrinks, as Pillow does; if not, "
                            "nearest-neighbour and bilinear are as videoscale has them",
                            DEFAULT_ANTIALIAS, flags | GST_PARAM_CONTROLLABLE));
  g_object_class_install_property (
      object_class, PROP_ADD_BORDERS,
      g_param_spec_boolean ("add-borders", "Add borders",
                            "Whether borders keep the display aspect ratio where the caps do not; if not, the picture "
                            "is distorted",
                            DEFAULT_ADD_BORDERS, flags));
  g_object_class_install_property (object_class, PROP_BORDER_COLOR,
                                   g_param_spec_uint ("border-color", "Border colour",
                                                      "Colour of borders, as 0xAARRGGBB; alpha matters only in formats "
                                                      "that have it",
                                                      0, G_MAXUINT32, DEFAULT_BORDER_COLOR,
                                                      flags | GST_PARAM_CONTROLLABLE));

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "GPU scaler", "Filter/Converter/Video/Scaler/Hardware",
                                         "Scales video frames in cached device memory", GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,width=640,height=480 ! gpuupload ! "
      "gpuresize method=bilinear ! \"video/x-raw(memory:GPUCache),width=224,height=224\" ! "
      "gpudownload ! videoconvert ! pngenc ! filesink location=resize.png");

  trans_class->start = GST_DEBUG_FUNCPTR (gst_gpu_resize_start);
  trans_class->stop = GST_DEBUG_FUNCPTR (gst_gpu_resize_stop);
  base_class->transform_frame_caps = gst_gpu_resize_transform_caps;
  base_class->fixate_frame_caps = gst_gpu_resize_fixate_caps;
  base_class->set_batch = gst_gpu_resize_set_batch;
  base_class->ref_source = gst_gpu_resize_ref_source;
  base_class->process_batch = gst_gpu_resize_process_batch;
  base_class->update = gst_gpu_resize_update;
  base_class->set_info = gst_gpu_resize_set_info;
  base_class->process_buffer = gst_gpu_resize_process_buffer;
  base_class->map_rectangle = gst_gpu_resize_map_rectangle;
  base_class->unmap_point = gst_gpu_resize_unmap_point;

  gst_type_mark_as_plugin_api (GST_TYPE_GPU_RESIZE_METHOD, 0);
}

static void
gst_gpu_resize_init (GstGpuResize *self)
{
  self->filter = DEFAULT_METHOD;
  self->antialias = DEFAULT_ANTIALIAS;
  self->add_borders = self->borders = DEFAULT_ADD_BORDERS;
  self->border_color = DEFAULT_BORDER_COLOR;
}
