/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The way of a frame through a GstGpuBaseTransform: which stream its work goes on, where the output comes from, and the
 * operation itself.
 */
#include "gstgpubasetransform-priv.h"

#include "gstgpubatchflow.h"
#include "gstgpuframe.h"
#include "gstgpurefusal.h"

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

void
gst_gpu_base_transform_before_transform (GstBaseTransform *trans, GstBuffer *buffer)
{
  GstClockTime time = GST_CLOCK_TIME_NONE;

  if (trans->segment.format == GST_FORMAT_TIME)
    time = gst_segment_to_stream_time (&trans->segment, GST_FORMAT_TIME, GST_BUFFER_TIMESTAMP (buffer));
  if (GST_CLOCK_TIME_IS_VALID (time))
    gst_object_sync_values (GST_OBJECT (trans), time);
}

GstFlowReturn
gst_gpu_base_transform_submit_input_buffer (GstBaseTransform *trans, gboolean is_discont, GstBuffer *buffer)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstMemory *memory = priv->batch_caps ? gst_gpu_batch_first_memory (buffer) : gst_gpu_frame_memory (buffer);
  GstFlowReturn result;

  if (gst_gpu_base_transform_update (self))
    gst_base_transform_reconfigure_src (trans);
  /* Who is behind would never learn of an end that was dropped for being late. Frames of time 0 are a nanosecond early:
   * then none is late until downstream says so again. */
  if (priv->batch_caps && gst_gpu_batch_has_end (buffer))
    gst_base_transform_update_qos (trans, 1.0, -1, 0);
  if (memory && priv->in_is_gpu) {
    GpuDevice *device = gpu_image_device (gst_gpu_memory_get_image (memory));

    if (device != priv->device && gst_gpu_base_transform_adopts_device (self))
      gst_gpu_base_transform_adopt_device (self, device);
  }
  g_atomic_int_set (&priv->negotiating, TRUE);
  result = gst_gpu_base_transform_parent ()->submit_input_buffer (trans, is_discont, buffer);
  g_atomic_int_set (&priv->negotiating, FALSE);
  /* Downstream wants other frames now than at the last caps event. */
  if (result == GST_FLOW_NOT_NEGOTIATED)
    gst_gpu_refusal_log (trans, GST_LEVEL_WARNING, GST_PAD_SINK, priv->caps);
  return result;
}

/* Refuses a frame of another device: nothing goes over in silence (rule 26). */
static gboolean
check_device (GstGpuBaseTransform *self, GstMemory *memory)
{
  GpuDevice *device = gst_gpu_base_transform_priv (self)->device;
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

/* Where this frame's work goes: in the stream that it came on (nullable), else in the element's own. Copies have one of
 * their own, so that they and the kernels of other frames go on at the same time. */
static gboolean
choose_stream (GstGpuBaseTransform *self, GpuStream *its, GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  gboolean inherit = g_atomic_int_get (&priv->stream_mode) == GST_GPU_STREAM_INHERIT;
  GpuStream *stream = NULL;

  if (inherit && !GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->copies)
    stream = its;
  if (!stream || gpu_stream_device (stream) != priv->device) {
    if (!priv->own)
      priv->own = gpu_stream_new (priv->device, true, error);
    stream = priv->own;
  }
  if (stream != priv->stream) {
    g_clear_pointer (&priv->stream, gpu_stream_unref);
    priv->stream = stream ? gpu_stream_ref (stream) : NULL;
  }
  return stream != NULL;
}

/* A writable buffer can share its memory with another branch (G6). */
static gboolean
may_work_in_place (GstGpuBaseTransform *self, GstBuffer *buffer, GstMemory *memory)
{
  const GpuImageSpec *out = &gst_gpu_base_transform_priv (self)->out.spec, *spec;

  if (!GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->in_place || !memory || memory->parent)
    return FALSE;
  spec = gpu_image_spec (gst_gpu_memory_get_image (memory));
  return spec->format == out->format && spec->width == out->width && spec->height == out->height &&
         gst_buffer_is_all_memory_writable (buffer) && !gst_buffer_get_video_crop_meta (buffer);
}

/* Frames of several streams meet on the element's own. */
static GstFlowReturn
prepare_batch (GstGpuBaseTransform *self, GstBuffer *in, GstBuffer **out)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  g_autoptr (GError) error = NULL;

  if (!gst_gpu_base_transform_check_batch (self, in))
    return GST_FLOW_ERROR;
  if (choose_stream (self, gst_gpu_batch_stream (in), &error))
    *out = gst_gpu_base_transform_new_batch (self, priv->stream, in, &error);
  if (!error)
    return *out ? GST_FLOW_OK : GST_BASE_TRANSFORM_FLOW_DROPPED;
  gst_gpu_base_transform_post_error (self, error);
  return GST_FLOW_ERROR;
}

GstFlowReturn
gst_gpu_base_transform_prepare_output_buffer (GstBaseTransform *trans, GstBuffer *in, GstBuffer **out)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  GstMemory *memory = gst_gpu_frame_memory (in);
  g_autoptr (GError) error = NULL;
  GstFlowReturn result;

  if (gst_base_transform_is_passthrough (trans)) {
    gst_clear_object (&priv->pool);
    return gst_gpu_base_transform_parent ()->prepare_output_buffer (trans, in, out);
  }

  if (!gst_gpu_base_transform_ensure_device (self) || !check_device (self, memory))
    return GST_FLOW_ERROR;
  if (priv->batch_caps)
    return prepare_batch (self, in, out);
  if (klass->forwards && klass->forwards (self, in)) {
    *out = in;
    return GST_FLOW_OK;
  }
  if (!choose_stream (self, memory ? gst_gpu_memory_get_stream (memory) : NULL, &error)) {
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

gboolean
gst_gpu_base_transform_process_buffer (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, GstBuffer *out,
                                       GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GpuImage *src, *dst = NULL;
  gboolean result = FALSE;

  src = gst_gpu_frame_ref_image (in, &priv->in, error);
  if (src)
    dst = in == out ? gpu_image_ref (src) : gst_gpu_frame_ref_image (out, &priv->out, error);
  if (dst)
    result = GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->process (self, stream, src, dst, error);

  if (src)
    gpu_image_unref (src);
  if (dst)
    gpu_image_unref (dst);
  return result;
}

static gboolean
process (GstGpuBaseTransform *self, GstBuffer *in, GstBuffer *out, GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  if (priv->batch_caps)
    return gst_gpu_base_transform_process_batch (self, priv->stream, in, out, error);
  return GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->process_buffer (self, priv->stream, in, out, error);
}

GstFlowReturn
gst_gpu_base_transform_transform (GstBaseTransform *trans, GstBuffer *in, GstBuffer *out)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  g_autoptr (GError) error = NULL;
  GstMemory *memory;

  if (in == out && !klass->in_place)
    return GST_FLOW_OK; /* forwarded */

  gpu_throttle_set_depth (priv->throttle, (guint)g_atomic_int_get (&priv->frames_in_flight));

  if (!gpu_throttle_begin (priv->throttle, &error) || !process (self, in, out, &error) ||
      !gpu_throttle_end (priv->throttle, priv->stream, &error)) {
    gst_gpu_base_transform_post_error (self, error);
    return GST_FLOW_ERROR;
  }

  memory = klass->copies ? NULL : gst_gpu_frame_memory (out);
  if (memory && gst_gpu_memory_get_stream (memory) != priv->stream)
    gst_gpu_memory_set_stream (memory, priv->stream);
  return GST_FLOW_OK;
}
