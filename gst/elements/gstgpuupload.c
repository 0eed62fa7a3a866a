/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpuupload
 * @title: gpuupload
 * @short_description: Copies video frames into device memory
 *
 * Takes frames in system memory and gives them in device memory (`memory:GPUCache`) from the device's cache. Frames
 * that are on the device already go through as they are. Frames of another device are copied from there, with no wait
 * on the host: directly where the driver lets the two see each other's memory, else through pinned memory, which the
 * log says once.
 *
 * Upstream is offered a pool of pinned memory (page-locked: the device reads it by itself). Frames that come in it are
 * copied in the background, and their memory is used again when that is over, without anybody waiting; they may be let
 * go of and written again at once. Frames in other memory go through pinned memory in slices, until the same memory
 * comes for the third time, as that of a pool of upstream's own does: then it is pinned in place, frames in it are
 * copied in the background, too, and each is held until it has been read. On the CPU device frames of the pool go on as
 * they are.
 *
 * Copies are on a stream of the element's own. Elements downstream adopt another one, which waits for each frame's
 * copy, so that copies and kernels of different frames go on at the same time. Strides of upstream's GstVideoMeta and
 * the rectangle of a GstVideoCropMeta are read where they are.
 *
 * With `host-memory=managed` upstream is offered managed memory instead, which the CPU and the GPU both address: frames
 * in it are not copied, their pages move. That is for frames that both sides touch in turn, parts of them above all.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=100 ! gpuupload ! gpuflip video-direction=90r ! gpudownload ! \
 *   fakesink
 * ]|
 * From one device to another:
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=100 ! gpuupload device=cpu:0 ! gpuflip video-direction=90r ! \
 *   gpuupload device=cpu:1 ! gpuresize ! "video/x-raw(memory:GPUCache),width=120,height=160" ! gpudownload ! fakesink
 * ]|
 */
#include "gstgpubasetransform-priv.h"
#include "gstgpuelements.h"
#include "gstgpuframe.h"
#include "gstgpuhostframe.h"
#include "gstgpupeer.h"
#include "gstgpuplainframe.h"

GST_DEBUG_CATEGORY_STATIC (gst_gpu_upload_debug);
#define GST_CAT_DEFAULT gst_gpu_upload_debug

/* The memory that is offered upstream. */
typedef enum {
  GST_GPU_HOST_MEMORY_PINNED,
  GST_GPU_HOST_MEMORY_MANAGED,
} GstGpuHostMemory;

enum {
  PROP_0,
  PROP_HOST_MEMORY,
};

#define DEFAULT_HOST_MEMORY GST_GPU_HOST_MEMORY_PINNED

struct _GstGpuUpload {
  GstGpuBaseTransform parent;

  gint host_memory; /* atomic */

  /* Of the streaming thread. */
  GpuStream *work;       /* what the frames are given on for; made when first needed */
  gboolean said_the_way; /* that frames of another device come through the host */
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

/* Not every device has managed memory: whether there is any is seen when a frame of it is asked for, which then is the
 * first one of the pool. */
static GpuMemoryKind
choose_kind (GstGpuUpload *self, GpuDevice *device, const GstGpuFrameInfo *info)
{
  g_autoptr (GstAllocator) allocator = NULL;
  g_autoptr (GstMemory) memory = NULL;
  g_autoptr (GError) error = NULL;

  if (g_atomic_int_get (&self->host_memory) != GST_GPU_HOST_MEMORY_MANAGED || gst_gpu_frame_info_is_tensor (info))
    return GPU_MEMORY_HOST;
  allocator = gst_gpu_allocator_new (device);
  memory = gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info->video, TRUE, GPU_MEMORY_MANAGED, NULL,
                                          &error);
  if (memory)
    return GPU_MEMORY_MANAGED;
  gst_gpu_base_transform_post_warning (GST_GPU_BASE_TRANSFORM (self), error);
  return GPU_MEMORY_HOST;
}

static GstBufferPool *
new_host_pool (GstGpuUpload *self, GstCaps *caps, const GstGpuFrameInfo *info)
{
  GpuDevice *device = gst_gpu_base_transform_device (GST_GPU_BASE_TRANSFORM (self));
  GstBufferPool *pool = gst_gpu_buffer_pool_new_with_kind (device, choose_kind (self, device, info));
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, caps, (guint)info->spec.size, 0, 0);
  if (!gst_gpu_frame_info_is_tensor (info))
    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config))
    gst_clear_object (&pool);
  return pool;
}

static gboolean
gst_gpu_upload_propose_allocation (GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query)
{
  GstGpuUpload *self = GST_GPU_UPLOAD (trans);
  const GstAllocationParams params = {.align = GPU_DEFAULT_ALIGNMENT - 1};
  g_autoptr (GstBufferPool) pool = NULL;
  g_autoptr (GstAllocator) allocator = NULL;
  GstGpuFrameInfo info;
  GstCaps *caps;
  gboolean need_pool;

  if (!GST_BASE_TRANSFORM_CLASS (gst_gpu_upload_parent_class)->propose_allocation (trans, decide_query, query))
    return FALSE;
  gst_query_parse_allocation (query, &caps, &need_pool);
  if (!decide_query || gst_gpu_caps_are_gpu (caps) || !gst_gpu_frame_info_from_caps (&info, caps, NULL))
    return TRUE;

  if (!gst_gpu_base_transform_ensure_device (GST_GPU_BASE_TRANSFORM (self)))
    return FALSE;
  if (need_pool)
    pool = new_host_pool (self, caps, &info);
  if (pool)
    gst_gpu_base_transform_offer_pool (GST_GPU_BASE_TRANSFORM (self), query, pool, (guint)info.spec.size);
  allocator =
      gst_gpu_allocator_new_with_kind (gst_gpu_base_transform_device (GST_GPU_BASE_TRANSFORM (self)), GPU_MEMORY_HOST);
  gst_query_add_allocation_param (query, allocator, &params);
  return TRUE;
}

/* What is on the device goes on as it is, and so does what the device reads where it is: managed memory, and on the CPU
 * device frames of the pool. */
static gboolean
gst_gpu_upload_forwards (GstGpuBaseTransform *base, GstBuffer *buffer)
{
  const GstGpuFrameInfo *info = gst_gpu_base_transform_in_frame_info (base);
  GstMemory *memory = gst_gpu_frame_memory (buffer);
  GpuDevice *device = gst_gpu_base_transform_device (base);
  gboolean is_managed;
  GpuImage *image;

  if (!memory || gpu_image_device (gst_gpu_memory_get_image (memory)) != device)
    return FALSE;
  is_managed = gst_gpu_memory_get_kind (memory) == GPU_MEMORY_MANAGED;
  if (!gst_gpu_base_transform_in_is_gpu (base) && !is_managed && !gpu_device_is_host (device))
    return FALSE;
  image = gst_gpu_frame_ref_image (buffer, info, NULL);
  if (!image)
    return FALSE;
  if (!gst_gpu_base_transform_in_is_gpu (base) && !gst_gpu_host_frame_is_image (buffer, info, image)) {
    gpu_image_unref (image);
    return FALSE;
  }
  if (is_managed && !gpu_image_prefetch (gst_gpu_memory_get_stream (memory), image, GPU_SIDE_DEVICE, NULL))
    GST_WARNING_OBJECT (base, "a frame's pages are not moved before they are touched");
  gpu_image_unref (image);
  return TRUE;
}

/* Nothing goes over from one device to another in silence (rule 26). */
static void
say_the_way (GstGpuUpload *self, GstBuffer *in, GpuDevice *device)
{
  GstMemory *memory = gst_gpu_frame_memory (in);
  GpuDevice *source = memory ? gpu_image_device (gst_gpu_memory_get_image (memory)) : device;

  if (source == device || self->said_the_way)
    return;
  self->said_the_way = TRUE;
  /* As the library does for the ways that it takes. */
  g_log ("gpucache", G_LOG_LEVEL_MESSAGE,
         "%s: frames of %s that cannot be copied from there go to %s through the host, which waits for each",
         GST_OBJECT_NAME (self), gpu_device_name (source), gpu_device_name (device));
}

static gboolean
upload_frame (GstGpuBaseTransform *base, GpuStream *stream, GstBuffer *in, GpuImage *dst, GError **error)
{
  const GstGpuFrameInfo *info = gst_gpu_base_transform_in_frame_info (base);
  GpuImage *src;
  gboolean result, copied = FALSE;

  if (!gst_gpu_frame_copy_across (stream, in, info, gst_gpu_base_transform_in_is_gpu (base), dst, &copied, error) ||
      copied)
    return copied;
  src = gst_gpu_host_frame_ref_image (in, info, gpu_stream_device (stream));
  /* Its memory is not used again before it has been read, whoever lets go of it and when. */
  if (src) {
    result = gpu_image_copy (stream, src, dst, error);
    gpu_image_unref (src);
    return result;
  }
  say_the_way (GST_GPU_UPLOAD (base), in, gpu_stream_device (stream));
  return gst_gpu_plain_frame_upload (stream, in, info, dst, error);
}

/* Whoever works on the frame adopts its stream. If that were the copies', the next copy would wait for the work. */
static gboolean
give_stream (GstGpuUpload *self, GstBuffer *out, GError **error)
{
  GpuDevice *device = gst_gpu_base_transform_device (GST_GPU_BASE_TRANSFORM (self));

  if (self->work && gpu_stream_device (self->work) != device)
    g_clear_pointer (&self->work, gpu_stream_unref);
  if (!self->work)
    self->work = gpu_stream_new (device, true, error);
  if (!self->work)
    return FALSE;
  gst_gpu_memory_set_stream (gst_buffer_peek_memory (out, 0), self->work);
  return TRUE;
}

static gboolean
gst_gpu_upload_process_buffer (GstGpuBaseTransform *base, GpuStream *stream, GstBuffer *in, GstBuffer *out,
                               GError **error)
{
  GpuImage *image = gst_gpu_frame_ref_image (out, gst_gpu_base_transform_out_frame_info (base), error);
  gboolean result;

  if (!image)
    return FALSE;
  result = upload_frame (base, stream, in, image, error) && gst_gpu_host_frame_mark (stream, error) &&
           give_stream (GST_GPU_UPLOAD (base), out, error);
  gpu_image_unref (image);
  return result;
}

static gboolean
gst_gpu_upload_stop (GstBaseTransform *trans)
{
  GstGpuUpload *self = GST_GPU_UPLOAD (trans);

  g_clear_pointer (&self->work, gpu_stream_unref);
  self->said_the_way = FALSE;
  return GST_BASE_TRANSFORM_CLASS (gst_gpu_upload_parent_class)->stop (trans);
}

static GType
gst_gpu_host_memory_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
      {GST_GPU_HOST_MEMORY_PINNED, "Pinned memory, which is copied to the device", "pinned"},
      {GST_GPU_HOST_MEMORY_MANAGED, "Managed memory, whose pages move to the device", "managed"},
      {0, NULL, NULL},
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GstGpuHostMemory", values));
  return type;
}

static void
gst_gpu_upload_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstGpuUpload *self = GST_GPU_UPLOAD (object);

  if (id != PROP_HOST_MEMORY) {
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    return;
  }
  g_atomic_int_set (&self->host_memory, g_value_get_enum (value));
  /* Upstream asks again. */
  gst_base_transform_reconfigure_sink (GST_BASE_TRANSFORM (self));
}

static void
gst_gpu_upload_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  if (id == PROP_HOST_MEMORY)
    g_value_set_enum (value, g_atomic_int_get (&GST_GPU_UPLOAD (object)->host_memory));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
gst_gpu_upload_class_init (GstGpuUploadClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstBaseTransformClass *trans_class = GST_BASE_TRANSFORM_CLASS (klass);
  GstGpuBaseTransformClass *base_class = GST_GPU_BASE_TRANSFORM_CLASS (klass);
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->set_property = gst_gpu_upload_set_property;
  object_class->get_property = gst_gpu_upload_get_property;
  g_object_class_install_property (
      object_class, PROP_HOST_MEMORY,
      g_param_spec_enum ("host-memory", "Host memory", "Which memory the element upstream is offered for its frames",
                         gst_gpu_host_memory_get_type (), DEFAULT_HOST_MEMORY,
                         G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING));

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
  trans_class->propose_allocation = GST_DEBUG_FUNCPTR (gst_gpu_upload_propose_allocation);
  trans_class->stop = GST_DEBUG_FUNCPTR (gst_gpu_upload_stop);
  base_class->copies = TRUE;
  base_class->set_info = gst_gpu_upload_set_info;
  base_class->forwards = gst_gpu_upload_forwards;
  base_class->process_buffer = gst_gpu_upload_process_buffer;

  gst_type_mark_as_plugin_api (gst_gpu_host_memory_get_type (), 0);
}

static void
gst_gpu_upload_init (GstGpuUpload *self)
{
  self->host_memory = DEFAULT_HOST_MEMORY;
}
