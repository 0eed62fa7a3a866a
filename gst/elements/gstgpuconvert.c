/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpuconvert
 * @title: gpuconvert
 * @short_description: Converts video frames between colour formats on the device
 *
 * Converts frames in device memory to the format, the colorimetry and the chroma-site that the caps downstream ask for,
 * as videoconvert does. Where they leave a choice, what comes in stays as it is, else the format that loses least is
 * taken. Caps that do not say a colorimetry or chroma-site have GStreamer's defaults: BT.601 and chroma in the middle
 * of four pixels up to 576 rows, BT.709 and chroma on every second column above, full range for RGB and GRAY8.
 *
 * The matrix (BT.601, BT.709 or BT.2020) and the range (full or limited) are converted; primaries and transfer function
 * are not, as with videoconvert's defaults. Each sample is the exact result, rounded, without dithering. Chroma is
 * interpolated linearly to where its pixels are, and averaged to where the samples of 4:2:0 formats lie. Alpha is
 * dropped, kept, or made opaque.
 *
 * Frames are taken as progressive: caps of another interlace-mode are refused where chroma would be interpolated across
 * the lines of both fields. They pass where nothing changes, and convert between RGB formats, between 4:2:0 formats of
 * one matrix and chroma-site, and from and to GRAY8.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=NV12 ! gpuupload ! gpuconvert ! \
 *   "video/x-raw(memory:GPUCache),format=RGB" ! gpudownload ! pngenc ! filesink location=convert.png
 * ]|
 */
#include "gstgpubasetransform.h"
#include "gstgpucolor.h"
#include "gstgpuelements.h"

GST_DEBUG_CATEGORY_STATIC (gst_gpu_convert_debug);
#define GST_CAT_DEFAULT gst_gpu_convert_debug

struct _GstGpuConvert {
  GstGpuBaseTransform parent;

  /* Of the streaming thread. */
  GpuConvert params;
  GstVideoChromaSite in_site, out_site; /* that caps say; unknown if they do not */
};

#define GST_TYPE_GPU_CONVERT (gst_gpu_convert_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuConvert, gst_gpu_convert, GST, GPU_CONVERT, GstGpuBaseTransform)
G_DEFINE_TYPE (GstGpuConvert, gst_gpu_convert, GST_TYPE_GPU_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpuconvert, "gpuconvert", GST_RANK_NONE, GST_TYPE_GPU_CONVERT,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_convert_debug, "gpuconvert", 0, "gpuconvert"))

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_CAPS "; " GST_GPU_BATCH_CAPS));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_CAPS "; " GST_GPU_BATCH_CAPS));

/* Caps. */

static GstCaps *
gst_gpu_convert_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstCaps *result = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    GstStructure *structure = gst_structure_copy (gst_caps_get_structure (caps, i));

    gst_structure_remove_fields (structure, "format", "colorimetry", "chroma-site", NULL);
    result =
        gst_caps_merge_structure_full (result, structure, gst_caps_features_copy (gst_caps_get_features (caps, i)));
  }
  return gst_gpu_caps_filter (result, filter);
}

/* What goes from @in to @out, the worst first: colours, the chroma's rows and columns, alpha, bits, exactness. Among
 * those that lose the same, the one that changes least. */
static guint
loss (const GstVideoFormatInfo *in, const GstVideoFormatInfo *out)
{
  const guint kinds = GST_VIDEO_FORMAT_FLAG_YUV | GST_VIDEO_FORMAT_FLAG_RGB | GST_VIDEO_FORMAT_FLAG_GRAY;
  guint lost = 0, changed = 1;

  if (in == out)
    return 0;
  if ((in->flags & kinds) != (out->flags & kinds)) {
    lost += 2;
    if (GST_VIDEO_FORMAT_INFO_IS_GRAY (out))
      lost += 128;
  }
  if (GST_VIDEO_FORMAT_INFO_H_SUB (in, 1) != GST_VIDEO_FORMAT_INFO_H_SUB (out, 1)) {
    changed++;
    if (GST_VIDEO_FORMAT_INFO_H_SUB (in, 1) < GST_VIDEO_FORMAT_INFO_H_SUB (out, 1))
      lost += 32;
  }
  if (GST_VIDEO_FORMAT_INFO_W_SUB (in, 1) != GST_VIDEO_FORMAT_INFO_W_SUB (out, 1)) {
    changed++;
    if (GST_VIDEO_FORMAT_INFO_W_SUB (in, 1) < GST_VIDEO_FORMAT_INFO_W_SUB (out, 1))
      lost += 16;
  }
  if (GST_VIDEO_FORMAT_INFO_HAS_ALPHA (in) != GST_VIDEO_FORMAT_INFO_HAS_ALPHA (out)) {
    changed++;
    if (GST_VIDEO_FORMAT_INFO_HAS_ALPHA (in))
      lost += 8;
  }
  if (GST_VIDEO_FORMAT_INFO_BITS (in) != GST_VIDEO_FORMAT_INFO_BITS (out)) {
    changed++;
    if (GST_VIDEO_FORMAT_INFO_BITS (in) > GST_VIDEO_FORMAT_INFO_BITS (out))
      lost += 4;
  }
  return lost + changed;
}

static void
consider (const GValue *value, const GstVideoFormatInfo *in, guint *least, GstVideoFormat *best)
{
  const GstVideoFormat format = G_VALUE_HOLDS_STRING (value) ? gst_video_format_from_string (g_value_get_string (value))
                                                             : GST_VIDEO_FORMAT_UNKNOWN;

  if (format != GST_VIDEO_FORMAT_UNKNOWN && loss (in, gst_video_format_get_info (format)) < *least) {
    *least = loss (in, gst_video_format_get_info (format));
    *best = format;
  }
}

/* Leaves the structure of @caps that has the format nearest to @in's, and of its formats that one. */
static GstCaps *
choose_format (GstCaps *caps, const GstVideoFormatInfo *in)
{
  GstVideoFormat best = GST_VIDEO_FORMAT_UNKNOWN;
  guint least = G_MAXUINT, chosen = 0;
  GstCaps *result;

  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    const GValue *formats = gst_structure_get_value (gst_caps_get_structure (caps, i), "format");
    const guint before = least;

    if (formats && GST_VALUE_HOLDS_LIST (formats)) {
      for (guint k = 0; k < gst_value_list_get_size (formats); k++)
        consider (gst_value_list_get_value (formats, k), in, &least, &best);
    } else if (formats) {
      consider (formats, in, &least, &best);
    }
    if (least < before)
      chosen = i;
  }
  result = gst_caps_copy_nth (caps, chosen);
  if (best != GST_VIDEO_FORMAT_UNKNOWN)
    gst_caps_set_simple (result, "format", G_TYPE_STRING, gst_video_format_to_string (best), NULL);
  gst_caps_unref (caps);
  return result;
}

static void
keep_string (GstStructure *out, const GstStructure *in, const gchar *field)
{
  const gchar *value = gst_structure_get_string (in, field);

  if (value && gst_structure_has_field (out, field))
    gst_structure_fixate_field_string (out, field, value);
}

/* Writes down what the input's caps say about colours and the output's leave open: as it is between formats of one
 * kind, else what conversion does not change. */
static void
carry_colours_over (GstStructure *in, GstCaps *out_caps, const GstVideoInfo *in_info)
{
  GstStructure *out = gst_caps_get_structure (out_caps, 0);
  const GValue *colorimetry = gst_structure_get_value (in, "colorimetry");
  const GValue *site = gst_structure_get_value (in, "chroma-site");
  GstVideoInfo info;

  if (!gst_video_info_from_caps (&info, out_caps))
    return;
  if (colorimetry && !gst_structure_has_field (out, "colorimetry")) {
    if (GST_VIDEO_INFO_IS_RGB (&info) == GST_VIDEO_INFO_IS_RGB (in_info) &&
        GST_VIDEO_INFO_IS_GRAY (&info) == GST_VIDEO_INFO_IS_GRAY (in_info)) {
      gst_structure_set_value (out, "colorimetry", colorimetry);
    } else {
      g_autofree gchar *text = NULL;

      info.colorimetry.primaries = in_info->colorimetry.primaries;
      info.colorimetry.transfer = in_info->colorimetry.transfer;
      text = gst_video_colorimetry_to_string (&info.colorimetry);
      if (text)
        gst_structure_set (out, "colorimetry", G_TYPE_STRING, text, NULL);
    }
  }
  if (site && GST_VIDEO_INFO_IS_YUV (&info) && GST_VIDEO_INFO_IS_YUV (in_info) &&
      !gst_structure_has_field (out, "chroma-site"))
    gst_structure_set_value (out, "chroma-site", site);
}

static GstCaps *
gst_gpu_convert_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others)
{
  GstCaps *unchanged = gst_caps_intersect (others, caps);
  GstStructure *in = gst_caps_get_structure (caps, 0);
  GstVideoInfo info;

  if (gst_caps_is_empty (unchanged)) {
    gst_caps_unref (unchanged);
  } else {
    gst_caps_unref (others);
    others = unchanged;
  }
  if (gst_caps_is_empty (others) || !gst_video_info_from_caps (&info, caps))
    return gst_caps_fixate (others);

  others = choose_format (others, info.finfo);
  keep_string (gst_caps_get_structure (others, 0), in, "colorimetry");
  keep_string (gst_caps_get_structure (others, 0), in, "chroma-site");
  others = gst_caps_fixate (others);
  if (direction == GST_PAD_SINK)
    carry_colours_over (in, others, &info);

  /* Nothing need change. */
  if (gst_caps_is_subset (caps, others))
    gst_caps_replace (&others, caps);
  GST_DEBUG_OBJECT (trans, "%" GST_PTR_FORMAT " becomes %" GST_PTR_FORMAT, (gpointer)caps, (gpointer)others);
  return others;
}

/* Whether chroma is interpolated: all formats of Y, U and V here are 4:2:0. */
static gboolean
moves_chroma (const GpuConvert *params, const GstVideoInfo *in, const GstVideoInfo *out)
{
  if (GST_VIDEO_INFO_IS_GRAY (in) || GST_VIDEO_INFO_IS_GRAY (out))
    return FALSE;
  if (GST_VIDEO_INFO_IS_YUV (in) != GST_VIDEO_INFO_IS_YUV (out))
    return TRUE;
  return GST_VIDEO_INFO_IS_YUV (in) &&
         (params->src.matrix != params->dst.matrix || params->src.chroma_site != params->dst.chroma_site);
}

static GstVideoChromaSite
chroma_site_of (GstCaps *caps)
{
  const gchar *site = gst_structure_get_string (gst_caps_get_structure (caps, 0), "chroma-site");

  return site ? gst_video_chroma_site_from_string (site) : GST_VIDEO_CHROMA_SITE_UNKNOWN;
}

/* GstVideoInfo of 1.22 forgets a chroma-site that stands without a colorimetry. */
static gboolean
gst_gpu_convert_set_caps (GstBaseTransform *trans, GstCaps *in, GstCaps *out)
{
  GstGpuConvert *self = GST_GPU_CONVERT (trans);

  self->in_site = chroma_site_of (in);
  self->out_site = chroma_site_of (out);
  return GST_BASE_TRANSFORM_CLASS (gst_gpu_convert_parent_class)->set_caps (trans, in, out);
}

static GstVideoInfo
with_chroma_site (const GstVideoInfo *info, GstVideoChromaSite site)
{
  GstVideoInfo result = *info;

  if (site != GST_VIDEO_CHROMA_SITE_UNKNOWN)
    result.chroma_site = site;
  return result;
}

/* From colours to parameters: those that change nothing, in @same, where nothing is to be changed. */
static gboolean
make_params (const GstVideoInfo *in, const GstVideoInfo *out, GpuConvert *params, gboolean *same, GError **error)
{
  /* What says the same need not be understood. */
  *same = GST_VIDEO_INFO_FORMAT (in) == GST_VIDEO_INFO_FORMAT (out) && in->chroma_site == out->chroma_site &&
          in->colorimetry.matrix == out->colorimetry.matrix && in->colorimetry.range == out->colorimetry.range;
  gpu_convert_init (params);
  if (*same)
    return TRUE;
  if (!gst_gpu_colorimetry_from_video_info (&params->src, in, error) ||
      !gst_gpu_colorimetry_from_video_info (&params->dst, out, error))
    return FALSE;
  /* A luma is the same luma in colours and without. */
  if (GST_VIDEO_INFO_IS_GRAY (out) && GST_VIDEO_INFO_IS_YUV (in))
    params->dst.matrix = params->src.matrix;
  if (GST_VIDEO_INFO_IS_GRAY (in) && GST_VIDEO_INFO_IS_YUV (out))
    params->src.matrix = params->dst.matrix;

  if (GST_VIDEO_INFO_IS_INTERLACED (in) && moves_chroma (params, in, out)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "Frames with interlace-mode=%s cannot be converted from %s to %s, which would mix the chroma of their "
                 "fields: put deinterlace in front of gpuupload.",
                 gst_video_interlace_mode_to_string (GST_VIDEO_INFO_INTERLACE_MODE (in)), GST_VIDEO_INFO_NAME (in),
                 GST_VIDEO_INFO_NAME (out));
    return FALSE;
  }
  return TRUE;
}

static gboolean
gst_gpu_convert_set_info (GstGpuBaseTransform *base, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out,
                          GError **error)
{
  GstGpuConvert *self = GST_GPU_CONVERT (base);
  const GstVideoInfo from = with_chroma_site (&in->video, self->in_site);
  const GstVideoInfo to = with_chroma_site (&out->video, self->out_site);
  GpuConvert params;
  gboolean same;

  if (!make_params (&from, &to, &params, &same, error))
    return FALSE;
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (self), same);
  self->params = params;
  return TRUE;
}

/* Frames stay what they are where nothing is asked for. */
static gboolean
gst_gpu_convert_set_batch (GstGpuBaseTransform *base, const GstCaps *in, const GstCaps *out, GError **error)
{
  static const gchar *const fields[] = {"format", "colorimetry", "chroma-site", NULL};

  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (base), !gst_gpu_batch_asks_for (in, out, fields));
  return TRUE;
}

static gboolean
gst_gpu_convert_process_batch (GstGpuBaseTransform *base, GpuStream *stream, GpuBatch *src, GpuBatch *dst,
                               const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, GError **error)
{
  const guint n = gpu_batch_size (src);
  g_autofree GpuConvert *params = g_new (GpuConvert, n);
  gboolean same;

  for (guint i = 0; i < n; i++)
    if (!make_params (&in[i].video, &out[i].video, &params[i], &same, error))
      return FALSE;
  return gpu_convert_batch (stream, src, dst, params, n, error);
}

static gboolean
gst_gpu_convert_process (GstGpuBaseTransform *base, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  return gpu_convert (stream, src, dst, &GST_GPU_CONVERT (base)->params, error);
}

static void
gst_gpu_convert_class_init (GstGpuConvertClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);
  GstGpuBaseTransformClass *base_class = GST_GPU_BASE_TRANSFORM_CLASS (klass);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (
      element_class, "GPU colour converter", "Filter/Converter/Video/Colorspace/Hardware",
      "Converts video frames between colour formats in cached device memory", GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 videotestsrc num-buffers=1 ! video/x-raw,format=NV12 ! gpuupload ! gpuconvert ! "
      "\"video/x-raw(memory:GPUCache),format=RGB\" ! gpudownload ! pngenc ! filesink location=convert.png");

  trans_class->set_caps = GST_DEBUG_FUNCPTR (gst_gpu_convert_set_caps);
  base_class->any_format = TRUE;
  base_class->transform_frame_caps = gst_gpu_convert_transform_caps;
  base_class->fixate_frame_caps = gst_gpu_convert_fixate_caps;
  base_class->set_batch = gst_gpu_convert_set_batch;
  base_class->process_batch = gst_gpu_convert_process_batch;
  base_class->set_info = gst_gpu_convert_set_info;
  base_class->process = gst_gpu_convert_process;
}

static void
gst_gpu_convert_init (GstGpuConvert *self)
{
  gpu_convert_init (&self->params);
}
