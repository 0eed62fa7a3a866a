/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the files of GstGpuBaseTransform have in common.
 */
#pragma once

#include "gstgpubasetransform.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_gpu_base_transform_debug);

/** Decides the device if it is not decided; FALSE if an error was posted. */
gboolean gst_gpu_base_transform_ensure_device (GstGpuBaseTransform *self);

/** The next error is posted even if it is the last one again. */
void gst_gpu_base_transform_forget_error (GstGpuBaseTransform *self);

/** Takes an output frame from the pool; device memory is acquired for @stream. Errors are posted. */
GstFlowReturn gst_gpu_base_transform_acquire (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer **out);

GstCaps *
gst_gpu_base_transform_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others);
gboolean gst_gpu_base_transform_decide_allocation (GstBaseTransform *trans, GstQuery *query);
gboolean gst_gpu_base_transform_propose_allocation (GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query);
gboolean gst_gpu_base_transform_transform_meta (GstBaseTransform *trans, GstBuffer *out, GstMeta *meta, GstBuffer *in);

G_END_DECLS
