/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The frames of several streams in one buffer; see the header.
 */
#include <gpucache/gstgpubatchmeta.h>

static void
init_frame (GstGpuBatchFrame *frame)
{
  *frame = (GstGpuBatchFrame){.pts = GST_CLOCK_TIME_NONE, .dts = GST_CLOCK_TIME_NONE, .duration = GST_CLOCK_TIME_NONE};
  gst_segment_init (&frame->segment, GST_FORMAT_TIME);
}

void
gst_gpu_batch_frame_copy (GstGpuBatchFrame *dst, const GstGpuBatchFrame *src)
{
  g_return_if_fail (dst != NULL && src != NULL);

  *dst = *src;
  if (src->buffer)
    gst_buffer_ref (src->buffer);
  if (src->caps)
    gst_caps_ref (src->caps);
  if (src->tags)
    gst_tag_list_ref (src->tags);
  dst->stream_id = g_strdup (src->stream_id);
}

void
gst_gpu_batch_frame_clear (GstGpuBatchFrame *frame)
{
  g_return_if_fail (frame != NULL);

  gst_clear_buffer (&frame->buffer);
  gst_clear_caps (&frame->caps);
  gst_clear_tag_list (&frame->tags);
  g_free (frame->stream_id);
  init_frame (frame);
}

static gboolean
init_meta (GstMeta *meta, gpointer params, GstBuffer *buffer)
{
  GstGpuBatchMeta *batch = (GstGpuBatchMeta *)meta;

  batch->n_frames = 0;
  batch->frames = NULL;
  batch->batch = NULL;
  return TRUE;
}

static void
free_meta (GstMeta *meta, GstBuffer *buffer)
{
  GstGpuBatchMeta *batch = (GstGpuBatchMeta *)meta;

  for (guint i = 0; i < batch->n_frames; i++)
    gst_gpu_batch_frame_clear (&batch->frames[i]);
  g_free (batch->frames);
  gpu_batch_unref (batch->batch);
}

static gboolean
transform_meta (GstBuffer *dst, GstMeta *meta, GstBuffer *src, GQuark type, gpointer data)
{
  const GstGpuBatchMeta *from = (const GstGpuBatchMeta *)meta;
  GstGpuBatchMeta *to;

  if (!GST_META_TRANSFORM_IS_COPY (type))
    return FALSE;
  to = gst_buffer_add_gpu_batch_meta (dst, from->n_frames);
  for (guint i = 0; i < from->n_frames; i++)
    gst_gpu_batch_frame_copy (&to->frames[i], &from->frames[i]);
  to->batch = from->batch ? gpu_batch_ref (from->batch) : NULL;
  return TRUE;
}

GType
gst_gpu_batch_meta_api_get_type (void)
{
  static gsize type = 0;
  static const gchar *tags[] = {NULL};

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, gst_meta_api_type_register ("GstGpuBatchMetaAPI", tags));
  return type;
}

const GstMetaInfo *
gst_gpu_batch_meta_get_info (void)
{
  static const GstMetaInfo *info = NULL;

  if (g_once_init_enter ((GstMetaInfo **)&info)) {
    const GstMetaInfo *registered = gst_meta_register (GST_GPU_BATCH_META_API_TYPE, "GstGpuBatchMeta",
                                                       sizeof (GstGpuBatchMeta), init_meta, free_meta, transform_meta);

    g_once_init_leave ((GstMetaInfo **)&info, (GstMetaInfo *)registered);
  }
  return info;
}

GstGpuBatchMeta *
gst_buffer_add_gpu_batch_meta (GstBuffer *buffer, guint n_frames)
{
  GstGpuBatchMeta *meta;

  g_return_val_if_fail (GST_IS_BUFFER (buffer), NULL);

  meta = (GstGpuBatchMeta *)gst_buffer_add_meta (buffer, GST_GPU_BATCH_META_INFO, NULL);
  if (!meta)
    return NULL;
  meta->n_frames = n_frames;
  meta->frames = g_new (GstGpuBatchFrame, n_frames);
  for (guint i = 0; i < n_frames; i++)
    init_frame (&meta->frames[i]);
  return meta;
}

GstGpuBatchMeta *
gst_buffer_get_gpu_batch_meta (GstBuffer *buffer)
{
  return (GstGpuBatchMeta *)gst_buffer_get_meta (buffer, GST_GPU_BATCH_META_API_TYPE);
}
