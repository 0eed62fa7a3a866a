/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuBatchMeta: the frames of several streams in one buffer.
 */
#pragma once

#include <gpucache/gpucache.h>

#include <gst/gst.h>
#include <gst/video/video.h>

G_BEGIN_DECLS

/**
 * GST_GPU_BATCH_NAME:
 *
 * The name of caps of batches. They have the feature %GST_CAPS_FEATURE_MEMORY_GPU_CACHE and the fields `batch-size`,
 * how many frames there are at most, and `format`, `width`, `height` and `pixel-aspect-ratio` where an element has
 * given all frames the same, or `types` where it has made tensors of one type of all; a field that is not there says
 * nothing.
 *
 * Since: 0.1
 */
#define GST_GPU_BATCH_NAME "video/x-gpu-batch"

/**
 * GstGpuBatchFrame:
 * @pad: the number of the pad that it came in on: of gpubatch's `sink_%u`, and gpuunbatch's `src_%u`
 * @buffer: (nullable): the frame with its own timestamps, flags and metas, in one memory of the device; %NULL if the
 *   stream has none this time, which is a gap, or, with @eos, its end
 * @stream_id: (nullable): of its stream
 * @caps: (nullable): of @buffer; there if that is
 * @segment: that the buffer's timestamps are in
 * @tags: (nullable): all tags of its stream so far
 * @crop: the part of the picture that @caps speak of: of @buffer's #GstVideoCropMeta, else 0, 0 and the size in @caps;
 *   of tensors, 0
 * @pts: presentation time in the segment, of @buffer or of the gap
 * @dts: decoding time, or %GST_CLOCK_TIME_NONE
 * @duration: of @buffer or of the gap, or %GST_CLOCK_TIME_NONE
 * @eos: nothing comes after this one, unless the stream begins again
 * @released: with @eos and nothing else: the pad that it came in on is no more
 * @segment_seqnum: of the event with @segment, or %GST_SEQNUM_INVALID
 * @eos_seqnum: of the event that said @eos, or %GST_SEQNUM_INVALID
 *
 * One frame of a batch. It owns what it points to.
 *
 * Since: 0.1
 */
typedef struct {
  guint pad;
  GstBuffer *buffer;
  gchar *stream_id;
  GstCaps *caps;
  GstSegment segment;
  GstTagList *tags;
  GstVideoRectangle crop;
  GstClockTime pts;
  GstClockTime dts;
  GstClockTime duration;
  gboolean eos;
  gboolean released;
  guint32 segment_seqnum;
  guint32 eos_seqnum;

  /*< private >*/
  gpointer reserved[GST_PADDING];
} GstGpuBatchFrame;

/**
 * GstGpuBatchMeta:
 * @meta: the parent
 * @n_frames: how many frames there are
 * @frames: the frames
 * @batch: (nullable): what the images of the frames were taken from the cache as, so that they can be taken whole again
 *
 * On a buffer of caps %GST_GPU_BATCH_NAME, which has no memory of its own: a #GstBuffer merges its memories if they are
 * more than 16. Each frame is a buffer by itself, so that there may be any number of them, of any size and format, and
 * none is copied or mapped together with others.
 *
 * A dense tensor of caps `other/tensors` that was made of a batch has the meta, too, so that its parts have names:
 * frame i, which has no buffer, is part i, and the parts beyond the frames are zeros. Gaps and ends are left out there.
 *
 * Copying the buffer copies the meta, with references to the same frames: those are written to only if the batch's
 * buffer and they are writable. The batch's buffer has the running time of its earliest frame.
 *
 * Since: 0.1
 */
typedef struct {
  GstMeta meta;

  guint n_frames;
  GstGpuBatchFrame *frames;
  GpuBatch *batch;

  /*< private >*/
  gpointer reserved[GST_PADDING];
} GstGpuBatchMeta;

#define GST_GPU_BATCH_META_API_TYPE (gst_gpu_batch_meta_api_get_type ())
#define GST_GPU_BATCH_META_INFO (gst_gpu_batch_meta_get_info ())
GPU_API GType gst_gpu_batch_meta_api_get_type (void);
GPU_API const GstMetaInfo *gst_gpu_batch_meta_get_info (void);

/**
 * gst_buffer_add_gpu_batch_meta:
 * @buffer: a writable buffer
 * @n_frames: how many frames
 *
 * Returns: (transfer none): the new meta, whose frames are for the caller to fill: they have no buffer, and times that
 *   are not set
 *
 * Since: 0.1
 */
GPU_API GstGpuBatchMeta *gst_buffer_add_gpu_batch_meta (GstBuffer *buffer, guint n_frames);

/**
 * gst_buffer_get_gpu_batch_meta:
 * @buffer: a buffer
 *
 * Returns: (transfer none) (nullable): its meta
 *
 * Since: 0.1
 */
GPU_API GstGpuBatchMeta *gst_buffer_get_gpu_batch_meta (GstBuffer *buffer);

/**
 * gst_gpu_batch_frame_copy:
 * @dst: (out): an empty frame
 * @src: a frame
 *
 * Makes @dst the same as @src, with references of its own.
 *
 * Since: 0.1
 */
GPU_API void gst_gpu_batch_frame_copy (GstGpuBatchFrame *dst, const GstGpuBatchFrame *src);

/**
 * gst_gpu_batch_frame_clear:
 * @frame: a frame
 *
 * Lets go of what @frame owns, and empties it.
 *
 * Since: 0.1
 */
GPU_API void gst_gpu_batch_frame_clear (GstGpuBatchFrame *frame);

G_END_DECLS
