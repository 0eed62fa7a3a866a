/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpuupload
 * @title: gpuupload
 * @short_description: Copies video frames into device memory
 *
 * Takes frames in system memory and gives them in device memory (`memory:GPUCache`) from the device's cache. Frames
 * that are on the device already go through as they are; frames of another device are copied.
 *
 * The copy is on the element's own stream, which the elements downstream adopt, so a chain behind it shares one stream
 * and its memory is found again as early as possible. Strides of upstream's GstVideoMeta and the rectangle of a
 * GstVideoCropMeta are read where they are.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=100 ! gpuupload ! gpuflip video-direction=90r ! gpudownload ! \
 *   fakesink
 * ]|
 */
#include "gstgpubasetransform.h"
#include "gstgpuelements.h"
#include "gstgpuframe.h"

GST_DEBUG_CATEGORY_STATIC (gst_gpu_upload_debug);
#define GST_CAT_DEFAULT gst_gpu_upload_debug

struct _GstGpuUpload {
  GstGpuBaseTransform parent;
};

#define GST_TYPE_GPU_UPLOAD (gst_gpu_upload_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuUpload, gst_gpu_upload, GST, GPU_UPLOAD, GstGpuBaseTransform)
G_DEFINE_TYPE (GstGpuUpload, gst_gpu_upload, GST_TYPE_GPU_BASE_TRANSFORM)
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpuupload, "gpuupload", GST_RANK_NONE, GST_TYPE_GPU_UPLOAD,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_upload_debug, "gpuupload", 0, "gpuupload"))

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_ANY_CAPS));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_CAPS "; " GST_GPU_TENSOR_CAPS));

static GstCaps *
gst_gpu_upload_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter)
{
  GstCaps *result = gst_gpu_caps_with_feature (caps, GST_CAPS_FEATURE_MEMORY_GPU_CACHE);

  if (direction == GST_PAD_SRC)
    result = gst_caps_merge (result, gst_gpu_caps_with_feature (caps, GST_CAPS_FEATURE_MEMORY_SYSTEM_MEMORY));
  return gst_gpu_caps_filter (result, filter);
}

static gboolean
gst_gpu_upload_set_info (GstGpuBaseTransform *base, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out,
                         GError **error)
{
  /* With a device of its own, each frame is looked at. */
  gst_base_transform_set_passthrough (GST_BASE_TRANSFORM (base), gst_gpu_base_transform_in_is_gpu (base) &&
                                                                     gst_gpu_base_transform_adopts_device (base));
  return TRUE;
}

static gboolean
gst_gpu_upload_forwards (GstGpuBaseTransform *base, GstBuffer *buffer)
{
  GstMemory *memory = gst_gpu_frame_memory (buffer);
  GpuImage *image;

  if (!memory || gpu_image_device (gst_gpu_memory_get_image (memory)) != gst_gpu_base_transform_device (base))
    return FALSE;
  image = gst_gpu_frame_ref_image (buffer, gst_gpu_base_transform_in_frame_info (base), NULL);
  if (image)
    gpu_image_unref (image);
  return image != NULL;
}

/* Waits until the frame has been read, so that upstream may write it again at once. */
static gboolean
gst_gpu_upload_process_buffer (GstGpuBaseTransform *base, GpuStream *stream, GstBuffer *in, GstBuffer *out,
                               GError **error)
{
  GstGpuHostFrame frame;
  GpuImage *image;
  gboolean result = FALSE;

  if (!gst_gpu_frame_map_host (&frame, gst_gpu_base_transform_in_frame_info (base), in, GST_MAP_READ, error))
    return FALSE;
  image = gst_gpu_frame_ref_image (out, gst_gpu_base_transform_out_frame_info (base), error);
  if (image) {
    result = gpu_image_copy_from_host (stream, image, frame.data, &frame.spec, error);
    gpu_image_unref (image);
  }
  gst_gpu_frame_unmap_host (&frame);
  return result;
}

static void
gst_gpu_upload_class_init (GstGpuUploadClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);
  GstGpuBaseTransformClass *base_class = GST_GPU_BASE_TRANSFORM_CLASS (klass);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "GPU uploader", "Filter/Video/Hardware",
                                         "Copies video frames from system memory into cached device memory",
                                         GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 videotestsrc num-buffers=100 ! gpuupload ! gpuflip video-direction=90r ! "
      "gpudownload ! fakesink");

  trans_class->transform_caps = GST_DEBUG_FUNCPTR (gst_gpu_upload_transform_caps);
  base_class->copies = TRUE;
  base_class->set_info = gst_gpu_upload_set_info;
  base_class->forwards = gst_gpu_upload_forwards;
  base_class->process_buffer = gst_gpu_upload_process_buffer;
}

static void
gst_gpu_upload_init (GstGpuUpload *self)
{
}
