/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The way of a batch through a GstGpuBaseTransform.
 */
#pragma once

#include "gstgpubasetransform.h"

G_BEGIN_DECLS

/** Returns: (transfer none) (nullable): the memory of the first frame in @buffer's batch. */
GstMemory *gst_gpu_batch_first_memory (GstBuffer *buffer);

/** Whether one of the streams in @buffer's batch ends there. */
gboolean gst_gpu_batch_has_end (GstBuffer *buffer);

/** Whether all frames of the batch in @buffer are of the element's device; posts an error if not. */
gboolean gst_gpu_base_transform_check_batch (GstGpuBaseTransform *self, GstBuffer *buffer);

/** Returns: (transfer none) (nullable): the stream that all frames of the batch come on, if it is one. */
GpuStream *gst_gpu_batch_stream (GstBuffer *buffer);

/** Makes the output for a batch on @stream, with frames as they are to be. NULL if @error is set. */
GstBuffer *
gst_gpu_base_transform_new_batch (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, GError **error);

/** The operation, on all frames. FALSE if @error is set. */
gboolean gst_gpu_base_transform_process_batch (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in,
                                               GstBuffer *out, GError **error);

G_END_DECLS
