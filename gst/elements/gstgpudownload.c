/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpudownload
 * @title: gpudownload
 * @short_description: Copies video frames into system memory
 *
 * Takes frames in device memory (`memory:GPUCache`) of any device and gives them in system memory. Frames in system
 * memory go through as they are, so the element can stand in a pipeline whose device part is left out.
 *
 * Each frame is pushed at once, in pinned memory that the device is still writing to: who maps it waits until that
 * frame is there, and for nothing else. With a `queue` behind the element the copies, the work of the device and that
 * of the elements downstream go on at the same time. Copies are on a stream of the element's own; `frames-in-flight`
 * bounds how many are under way. Only where downstream insists on a pool of its own (a display's memory, padded frames)
 * does the element wait for each copy. Its memory is pinned in place when it comes for the third time, and the device
 * then copies into it by itself. Frames that the CPU can read where they are, those of the CPU device and managed
 * ones, go on as they are if downstream can take their strides.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=1 ! gpuupload ! gpudownload ! videoconvert ! pngenc ! \
 *   filesink location=frame.png
 * ]|
 */
#include "gstgpubasetransform-priv.h"
#include "gstgpuelements.h"
#include "gstgpuhostframe.h"
#include "gstgpuplainframe.h"

GST_DEBUG_CATEGORY_STATIC (gst_gpu_download_debug);
#define GST_CAT_DEFAULT gst_gpu_download_debug

struct _GstGpuDownload {
  GstGpuBaseTransform parent;

  /* What downstream said when memory was negotiated; of the streaming thread. */
  gboolean takes_meta;
  gboolean insists;
};

#define GST_TYPE_GPU_DOWNLOAD (gst_gpu_download_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuDownload, gst_gpu_download, GST, GPU_DOWNLOAD, GstGpuBaseTransform)
G_DEFINE_TYPE (GstGpuDownload, gst_gpu_download, GST_TYPE_GPU_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpudownload, "gpudownload", GST_RANK_NONE, GST_TYPE_GPU_DOWNLOAD,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_download_debug, "gpudownload", 0,
                                                                "gpudownload"))

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_ANY_CAPS));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_SYSTEM_CAPS "; " GST_GPU_SYSTEM_TENSOR_CAPS));

/* Device caps are not offered downstream, or a sink that takes anything would get device memory. */
static GstCaps *
gst_gpu_download_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstCaps *result = gst_gpu_caps_with_feature (caps, GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY);

  if (direction == GST_PAD_SRC)
    result = gst_caps_merge (gst_gpu_caps_with_feature (caps, GST_CAPS_FEATURE_MEMORY_GPU_CACHE), result);
  return gst_gpu_caps_filter (result, filter);
}

static gboolean
gst_gpu_download_set_info (GstGpuBaseTransform *base, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out,
                           GError **error)
{
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (base), !gst_gpu_base_transform_in_is_gpu (base));
  return TRUE;
}

static gboolean
gst_gpu_download_decide_allocation (GstBaseTransform *trans, GstQuery *query)
{
  GstGpuDownload *self = GST_GPU_DOWNLOAD (trans);

  self->takes_meta = gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  self->insists = gst_gpu_base_transform_is_insisted (query);
  return GST_BASE_TRANSFORM_CLASS (gst_gpu_download_parent_class)->decide_allocation (trans, query);
}

static gboolean
gst_gpu_download_forwards (GstGpuBaseTransform *base, GstBuffer *buffer)
{
  GstGpuDownload *self = GST_GPU_DOWNLOAD (base);
  GstMemory *memory = gst_gpu_frame_memory (buffer);

  if (self->insists ||
      !gst_gpu_host_frame_is_plain (buffer, gst_gpu_base_transform_out_frame_info (base), self->takes_meta))
    return FALSE;
  if (!gpu_image_prefetch (gst_gpu_memory_get_stream (memory), gst_gpu_memory_get_image (memory), GPU_SIDE_HOST, NULL))
    GST_WARNING_OBJECT (self, "a frame's pages are not moved before they are touched");
  return TRUE;
}

/* A pool of somebody else's has no way to say when a frame is there, so it is waited for. */
static gboolean
download_frame (GstGpuBaseTransform *base, GpuStream *stream, GpuImage *src, GstBuffer *out, GError **error)
{
  const GstGpuFrameInfo *info = gst_gpu_base_transform_out_frame_info (base);
  GpuImage *dst = gst_gpu_host_frame_ref_image (out, info, gpu_stream_device (stream));
  gboolean result;

  if (dst) {
    result = gpu_image_copy (stream, src, dst, error);
    gpu_image_unref (dst);
    return result;
  }
  return gst_gpu_plain_frame_download (stream, src, out, info, error);
}

static gboolean
gst_gpu_download_process_buffer (GstGpuBaseTransform *base, GpuStream *stream, GstBuffer *in, GstBuffer *out,
                                 GError **error)
{
  GpuImage *image = gst_gpu_frame_ref_image (in, gst_gpu_base_transform_in_frame_info (base), error);
  gboolean result;

  if (!image)
    return FALSE;
  result = download_frame (base, stream, image, out, error) && gst_gpu_host_frame_mark (stream, error);
  gpu_image_unref (image);
  return result;
}

static void
gst_gpu_download_class_init (GstGpuDownloadClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);
  GstGpuBaseTransformClass *base_class = GST_GPU_BASE_TRANSFORM_CLASS (klass);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "GPU downloader", "Filter/Video/Hardware",
                                         "Copies video frames from cached device memory into system memory",
                                         GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 videotestsrc num-buffers=1 ! gpuupload ! gpudownload ! videoconvert ! pngenc ! "
      "filesink location=frame.png");

  trans_class->transform_caps = GST_DEBUG_FUNCPTR (gst_gpu_download_transform_caps);
  trans_class->decide_allocation = GST_DEBUG_FUNCPTR (gst_gpu_download_decide_allocation);
  base_class->copies = TRUE;
  base_class->follows = TRUE;
  base_class->set_info = gst_gpu_download_set_info;
  base_class->forwards = gst_gpu_download_forwards;
  base_class->process_buffer = gst_gpu_download_process_buffer;
}

static void
gst_gpu_download_init (GstGpuDownload *self)
{
}
