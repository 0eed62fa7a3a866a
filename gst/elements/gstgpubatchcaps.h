/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Caps of batches in a GstGpuBaseTransform, and what the frames of a batch become.
 */
#pragma once

#include "gstgpubasetransform.h"

G_BEGIN_DECLS

/** Whether @caps are a batch's. */
gboolean gst_gpu_caps_are_batch (const GstCaps *caps);

/** GstBaseTransform's functions, for frames and batches alike, by way of the class' for frames. */
GstCaps *gst_gpu_base_transform_transform_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps,
                                                GstCaps *filter);

/** Decides what a batch's caps say. A field that nobody asks for is left out, so that each frame keeps its own; but
 * where nothing at all is asked for, frames stay what they are, and so does what was known of them. */
GstCaps *gst_gpu_batch_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others);

/** Caps of batches are decided. FALSE if @error is set. */
gboolean gst_gpu_base_transform_set_batch_caps (GstGpuBaseTransform *self, GstCaps *in, GstCaps *out, GError **error);

/**
 * GstGpuBatchMapping:
 * @in, @in_caps: a frame of a batch
 * @out, @out_caps: what it becomes
 */
typedef struct {
  GstGpuFrameInfo in, out;
  GstCaps *in_caps, *out_caps;
} GstGpuBatchMapping;

/** Returns: (transfer none): what @frame becomes; it stays until the next batch. NULL if @error is set. */
const GstGpuBatchMapping *
gst_gpu_batch_find_mapping (GstGpuBaseTransform *self, const GstGpuBatchFrame *frame, GError **error);

/** A new batch: bounds what is remembered of the caps of frames. */
void gst_gpu_batch_trim_mappings (GstGpuBaseTransform *self);

/** Forgets what the frames of a batch become. */
void gst_gpu_base_transform_forget_batch (GstGpuBaseTransform *self);

G_END_DECLS
