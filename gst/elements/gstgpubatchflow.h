/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Batches in a GstGpuBaseTransform: what the caps of a batch and of its frames become, and the way of a batch through
 * the element.
 */
#pragma once

#include "gstgpubasetransform.h"

G_BEGIN_DECLS

/** Whether @caps are a batch's. */
gboolean gst_gpu_caps_are_batch (const GstCaps *caps);

/** Returns: (transfer none) (nullable): the memory of the first frame in @buffer's batch. */
GstMemory *gst_gpu_batch_first_memory (GstBuffer *buffer);

/** GstBaseTransform's functions, for frames and batches alike, by way of the class' for frames. */
GstCaps *gst_gpu_base_transform_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps,
                                                GstCaps *filter);

/** Decides what a batch's caps say: fields that nobody asks for are left out, so that each frame keeps its own. */
GstCaps *gst_gpu_batch_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others);

/** Caps of batches are decided. FALSE if @error is set. */
gboolean gst_gpu_base_transform_set_batch_caps (GstGpuBaseTransform *self, GstCaps *out, GError **error);

/** Forgets what the frames of a batch become. */
void gst_gpu_base_transform_forget_batch (GstGpuBaseTransform *self);

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
