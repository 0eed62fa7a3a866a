/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The way of a batch through a GstGpuBaseTransform; see the header. What its frames become is in gstgpubatchcaps.c.
 */
#include "gstgpubatchflow.h"

#include "gstgpubasetransform-priv.h"
#include "gstgpubatchcaps.h"
#include "gstgpuframe.h"

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

static GstMemory *
frame_memory (const GstGpuBatchFrame *frame)
{
  return frame->buffer ? gst_gpu_frame_memory (frame->buffer) : NULL;
}

GstMemory *
gst_gpu_batch_first_memory (GstBuffer *buffer)
{
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);
  GstMemory *memory = NULL;

  for (guint i = 0; meta && i < meta->n_frames && !memory; i++)
    memory = frame_memory (&meta->frames[i]);
  return memory;
}

gboolean
gst_gpu_batch_has_end (GstBuffer *buffer)
{
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);

  for (guint i = 0; meta && i < meta->n_frames; i++)
    if (meta->frames[i].eos)
      return TRUE;
  return FALSE;
}

GpuStream *
gst_gpu_batch_stream (GstBuffer *buffer)
{
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);
  GpuStream *stream = NULL;

  for (guint i = 0; meta && i < meta->n_frames; i++) {
    GstMemory *memory = frame_memory (&meta->frames[i]);
    GpuStream *its = memory ? gst_gpu_memory_get_stream (memory) : stream;

    if (stream && its != stream)
      return NULL;
    stream = its;
  }
  return stream;
}

gboolean
gst_gpu_base_transform_check_batch (GstGpuBaseTransform *self, GstBuffer *buffer)
{
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);
  GpuDevice *device = gst_gpu_base_transform_priv (self)->device;

  if (!meta) {
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
                       ("A buffer came without a GstGpuBatchMeta although its caps say " GST_GPU_BATCH_NAME
                        ": put gpubatch in front."),
                       (NULL));
    return FALSE;
  }
  for (guint i = 0; i < meta->n_frames; i++) {
    GstMemory *memory = frame_memory (&meta->frames[i]);
    GpuDevice *its = memory ? gpu_image_device (gst_gpu_memory_get_image (memory)) : device;

    if (its == device)
      continue;
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
                       ("A frame of device %s, of pad %u, cannot be used on device %s: give all elements the same "
                        "device.",
                        gpu_device_name (its), meta->frames[i].pad, gpu_device_name (device)),
                       (NULL));
    return FALSE;
  }
  return TRUE;
}

static GstAllocator *
get_allocator (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  if (priv->allocator && gst_gpu_allocator_get_device (GST_GPU_ALLOCATOR (priv->allocator)) != priv->device)
    gst_clear_object (&priv->allocator);
  if (!priv->allocator)
    priv->allocator = gst_gpu_allocator_new (priv->device);
  return priv->allocator;
}

/* A picture's image as memory of @buffer, with its strides. */
static void
append_picture (GstGpuBaseTransform *self, GstBuffer *buffer, GpuImage *image, GpuStream *stream, GstVideoInfo info)
{
  const GpuImageSpec *spec = gpu_image_spec (image);

  for (guint i = 0; i < GST_VIDEO_INFO_N_PLANES (&info); i++) {
    GST_VIDEO_INFO_PLANE_STRIDE (&info, i) = (gint)spec->stride[i];
    GST_VIDEO_INFO_PLANE_OFFSET (&info, i) = spec->offset[i];
  }
  GST_VIDEO_INFO_SIZE (&info) = spec->size;
  gst_buffer_append_memory (buffer, gst_gpu_allocator_take_image (GST_GPU_ALLOCATOR (get_allocator (self)),
                                                                  gpu_image_ref (image), &info, stream));
  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT (&info),
                                  (guint)GST_VIDEO_INFO_WIDTH (&info), (guint)GST_VIDEO_INFO_HEIGHT (&info),
                                  GST_VIDEO_INFO_N_PLANES (&info), info.offset, info.stride);
}

static void
append_tensor (GstGpuBaseTransform *self, GstBuffer *buffer, GpuImage *image, GpuStream *stream)
{
  gst_buffer_append_memory (buffer, gst_gpu_allocator_take_image (GST_GPU_ALLOCATOR (get_allocator (self)),
                                                                  gpu_image_ref (image), NULL, stream));
}

/* An image of the batch as a frame, with all that belongs to the one that it is made of. */
static GstBuffer *
new_frame (GstGpuBaseTransform *self, GpuImage *image, GpuStream *stream, const GstGpuBatchMapping *mapping,
           GstBuffer *in)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstBuffer *buffer = gst_buffer_new ();

  if (gst_gpu_frame_info_is_tensor (&mapping->out))
    append_tensor (self, buffer, image, stream);
  else
    append_picture (self, buffer, image, stream, mapping->out.video);

  /* Where regions go depends on the sizes. */
  priv->in = mapping->in;
  priv->out = mapping->out;
  if (!GST_BASE_TRANSFORM_GET_CLASS (self)->copy_metadata (GST_BASE_TRANSFORM (self), in, buffer))
    GST_WARNING_OBJECT (self, "metas of %" GST_PTR_FORMAT " were not copied", (gpointer)in);
  return buffer;
}

static void
replace_frame (GstGpuBatchFrame *frame, GstBuffer *buffer, const GstGpuBatchMapping *mapping)
{
  gst_buffer_unref (frame->buffer);
  frame->buffer = buffer;
  gst_caps_replace (&frame->caps, mapping->out_caps);
  frame->crop = (GstVideoRectangle){0};
  if (!gst_gpu_frame_info_is_tensor (&mapping->out))
    frame->crop = (GstVideoRectangle){.w = (gint)mapping->out.spec.width, .h = (gint)mapping->out.spec.height};
}

/* The output with everything but its images. */
static GstBuffer *
copy_batch (GstBuffer *in)
{
  GstBuffer *out = gst_buffer_new ();

  gst_buffer_copy_into (out, in, GST_BUFFER_COPY_METADATA, 0, -1);
  g_clear_pointer (&gst_buffer_get_gpu_batch_meta (out)->batch, gpu_batch_unref);
  return out;
}

/* Only those that are parts of the tensor stay, in their order, without buffers. */
static void
keep_parts (GstGpuBatchMeta *meta)
{
  guint n = 0;

  for (guint i = 0; i < meta->n_frames; i++) {
    GstGpuBatchFrame frame = meta->frames[i];

    if (!frame.buffer) {
      gst_gpu_batch_frame_clear (&frame);
      continue;
    }
    gst_clear_buffer (&frame.buffer);
    gst_clear_caps (&frame.caps);
    meta->frames[n++] = frame;
  }
  meta->n_frames = n;
}

/* One memory for all frames. */
static GstBuffer *
new_tensor (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, guint n, GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GpuBatch *batch;
  GstGpuBatchMeta *meta;
  GstBuffer *out;

  if (n > priv->tensor_size) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A batch of %u frames does not fit in a tensor of %u: set gpubatch's max-batch-size.", n,
                 priv->tensor_size);
    return NULL;
  }
  /* One frame alone is a tensor like any other, which is described by its own shape. */
  if (priv->tensor_size > 1)
    batch = gpu_batch_acquire_dense (priv->device, &priv->tensor, priv->tensor_size, GPU_MEMORY_STREAM_ORDERED, stream,
                                     error);
  else
    batch = gpu_batch_acquire (priv->device, &priv->tensor, 1, GPU_MEMORY_STREAM_ORDERED, stream, error);
  if (!batch)
    return NULL;
  out = copy_batch (in);
  meta = gst_buffer_get_gpu_batch_meta (out);
  meta->batch = batch;
  keep_parts (meta);
  append_tensor (self, out, priv->tensor_size > 1 ? gpu_batch_dense_image (batch) : gpu_batch_image (batch, 0), stream);
  return out;
}

GstBuffer *
gst_gpu_base_transform_new_batch (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, GError **error)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  const GstGpuBatchMeta *from = gst_buffer_get_gpu_batch_meta (in);
  g_autofree GpuImageSpec *specs = g_new (GpuImageSpec, from->n_frames);
  g_autofree const GstGpuBatchMapping **mappings = g_new (const GstGpuBatchMapping *, from->n_frames);
  GstGpuBatchMeta *to;
  GstBuffer *out;
  guint n = 0;

  gst_gpu_batch_trim_mappings (self);
  for (guint i = 0; i < from->n_frames; i++) {
    const GpuImageSpec *spec;

    if (!from->frames[i].buffer)
      continue;
    mappings[n] = gst_gpu_batch_find_mapping (self, &from->frames[i], error);
    if (!mappings[n])
      return NULL;
    spec = &mappings[n]->out.spec;
    specs[n++] = *spec;
    /* Pictures as the device likes them. */
    if (!gst_gpu_frame_info_is_tensor (&mappings[n - 1]->out) &&
        !gpu_image_spec_init (&specs[n - 1], spec->format, spec->width, spec->height, 0, error))
      return NULL;
  }
  /* Ends of streams alone are nothing that a model is to look at. */
  if (priv->tensor_size > 0)
    return n > 0 ? new_tensor (self, stream, in, n, error) : NULL;

  out = copy_batch (in);
  if (n == 0)
    return out;
  to = gst_buffer_get_gpu_batch_meta (out);
  to->batch = gpu_batch_acquire (priv->device, specs, n, GPU_MEMORY_STREAM_ORDERED, stream, error);
  if (!to->batch) {
    gst_buffer_unref (out);
    return NULL;
  }
  for (guint i = 0, k = 0; i < to->n_frames; i++) {
    GstGpuBatchFrame *frame = &to->frames[i];

    if (!frame->buffer)
      continue;
    replace_frame (frame, new_frame (self, gpu_batch_image (to->batch, k), stream, mappings[k], frame->buffer),
                   mappings[k]);
    k++;
  }
  gst_gpu_frame_info_init (&priv->in);
  gst_gpu_frame_info_init (&priv->out);
  return out;
}

static void
unref_images (GpuImage **images, guint n)
{
  for (guint i = 0; i < n; i++)
    gpu_image_unref (images[i]);
}

/* Parts of a tensor that there are no frames for become zeros: they are the rest of its memory. */
static gboolean
clear_parts (GpuStream *stream, GpuBatch *batch, guint first, GError **error)
{
  GpuImage *all = gpu_batch_dense_image (batch), *rest;
  const GpuImageSpec *part = gpu_image_spec (gpu_batch_image (batch, 0));
  const guint64 rows = (gpu_batch_size (batch) - first) * (part->size / part->stride[0]);
  GpuImageSpec spec;
  gboolean cleared;

  if (first == gpu_batch_size (batch))
    return TRUE;
  /* As bytes, which are as many rows as before. */
  if (!gpu_image_spec_init (&spec, GPU_FORMAT_GRAY8, (guint32)part->stride[0], (guint32)rows, 1, error))
    return FALSE;
  rest = gpu_image_view_as (all, first * part->size, &spec, error);
  if (!rest)
    return FALSE;
  cleared = gpu_image_fill (stream, rest, 0, error);
  gpu_image_unref (rest);
  return cleared;
}

gboolean
gst_gpu_base_transform_process_batch (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, GstBuffer *out,
                                      GError **error)
{
  const GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GstGpuBaseTransformClass *klass = GST_GPU_BASE_TRANSFORM_GET_CLASS (self);
  const GstGpuBatchMeta *from = gst_buffer_get_gpu_batch_meta (in), *to = gst_buffer_get_gpu_batch_meta (out);
  g_autofree GpuImage **images = g_new (GpuImage *, from->n_frames);
  g_autofree GstGpuFrameInfo *in_infos = g_new (GstGpuFrameInfo, from->n_frames);
  g_autofree GstGpuFrameInfo *out_infos = g_new (GstGpuFrameInfo, from->n_frames);
  g_autoptr (GpuBatch) src = NULL;
  guint n = 0;

  for (guint i = 0; i < from->n_frames; i++) {
    const GstGpuBatchFrame *frame = &from->frames[i];
    const GstGpuBatchMapping *mapping;

    if (!frame->buffer)
      continue;
    mapping = gst_gpu_batch_find_mapping (self, frame, error);
    images[n] = !mapping            ? NULL
                : klass->ref_source ? klass->ref_source (self, n, frame->buffer, &mapping->in, error)
                                    : gst_gpu_frame_ref_image (frame->buffer, &mapping->in, error);
    if (!images[n]) {
      unref_images (images, n);
      return FALSE;
    }
    in_infos[n] = mapping->in;
    out_infos[n] = mapping->out;
    if (priv->tensor_size > 0) {
      gst_gpu_frame_info_init (&out_infos[n]);
      out_infos[n].spec = priv->tensor;
    }
    n++;
  }
  if (n == 0)
    return TRUE;
  src = gpu_batch_new (images, n, error);
  unref_images (images, n);
  return src && (priv->tensor_size == 0 || clear_parts (stream, to->batch, n, error)) &&
         klass->process_batch (self, stream, src, to->batch, in_infos, out_infos, error);
}
