/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the files of GstGpuBaseTransform have in common.
 */
#pragma once

#include "gstgpubasetransform.h"

G_BEGIN_DECLS

GST_DEBUG_CATEGORY_EXTERN (gst_gpu_base_transform_debug);

typedef struct {
  /* Under the object lock. */
  gchar *device_name; /* NULL: not set, so the environment's or auto */
  gint64 limit;
  gboolean limit_is_set;
  GpuDevice *device; /* NULL until decided; atomic, as contexts set it without the lock, once */

  /* Atomic. */
  gint stream_mode;
  gint frames_in_flight;

  /* Of the streaming thread. */
  GstGpuFrameInfo in, out;
  gboolean in_is_gpu, out_is_gpu;
  GstCaps *caps;     /* that came in last, taken or refused */
  GstCaps *refused;  /* under the object lock: those that the log has said so of */
  GpuStream *own;    /* made when first needed */
  GpuStream *stream; /* of the frame at hand */
  GpuThrottle *throttle;
  GstBufferPool *pool; /* that output frames come from, NULL in passthrough */

  /* Of batches. */
  GstCaps *batch_caps;     /* of those that go out; NULL where single frames do */
  guint tensor_size;       /* parts of the dense tensor that a batch becomes; 0 if it stays a batch */
  GpuImageSpec tensor;     /* one of them */
  GPtrArray *mappings;     /* what frames become; see gstgpubatchcaps.c */
  GstAllocator *allocator; /* made when first needed */

  gint negotiating;
} GstGpuBaseTransformPrivate;

GstGpuBaseTransformPrivate *gst_gpu_base_transform_priv (GstGpuBaseTransform *self);

/** GstBaseTransform's functions, to chain up to. */
GstBaseTransformClass *gst_gpu_base_transform_parent (void);

/* gstgpudevice.c */

/** Decides the device if it is not decided; FALSE if an error was posted. */
gboolean gst_gpu_base_transform_ensure_device (GstGpuBaseTransform *self);

/** Does so if one was asked for by name, so that a wrong one fails where it can be corrected. */
gboolean gst_gpu_base_transform_open_named_device (GstGpuBaseTransform *self);

/** Lets go of what belongs to the old device; memory of the new one is negotiated before the next frame. */
void gst_gpu_base_transform_adopt_device (GstGpuBaseTransform *self, GpuDevice *device);

/** Puts @device (transfer full) (nullable) in the place of the one that is there. */
void gst_gpu_base_transform_replace_device (GstGpuBaseTransform *self, GpuDevice *device);

/** Returns: (transfer full) (nullable): the device in use; on any thread. */
GpuDevice *gst_gpu_base_transform_ref_device (GstGpuBaseTransform *self);

/** The property; NULL if it is not set. */
gchar *gst_gpu_base_transform_dup_device_name (GstGpuBaseTransform *self);
void gst_gpu_base_transform_set_device_name (GstGpuBaseTransform *self, const gchar *name);

/** Sets the limit that the property names. Called without the object lock, whenever a device or a limit may be new. */
void gst_gpu_base_transform_apply_limit (GstGpuBaseTransform *self);

void gst_gpu_base_transform_set_context (GstElement *element, GstContext *context);

/* gstgpucaps.c */

/** Takes over properties; whether that makes a new negotiation necessary. */
gboolean gst_gpu_base_transform_update (GstGpuBaseTransform *self);

gboolean gst_gpu_base_transform_get_unit_size (GstBaseTransform *trans, GstCaps *caps, gsize *size);
GstCaps *
gst_gpu_base_transform_fixate_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others);
gboolean gst_gpu_base_transform_set_caps (GstBaseTransform *trans, GstCaps *in, GstCaps *out);

/** Takes over @event, which is one of caps. */
gboolean gst_gpu_base_transform_caps_event (GstGpuBaseTransform *self, GstEvent *event);

/** Upstream asks for memory. */
gboolean gst_gpu_base_transform_allocation_query (GstGpuBaseTransform *self, GstQuery *query);

/* gstgpuallocation.c */

/** Whether the element downstream wants frames in memory of its own kind, and not in whatever is good for us. */
gboolean gst_gpu_base_transform_is_insisted (GstQuery *query);

/** Takes an output frame from the pool; device memory is acquired for @stream. Errors are posted. */
GstFlowReturn gst_gpu_base_transform_acquire (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer **out);

gboolean gst_gpu_base_transform_decide_allocation (GstBaseTransform *trans, GstQuery *query);
gboolean gst_gpu_base_transform_propose_allocation (GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query);

/* gstgpuflow.c */

void gst_gpu_base_transform_before_transform (GstBaseTransform *trans, GstBuffer *buffer);
GstFlowReturn
gst_gpu_base_transform_submit_input_buffer (GstBaseTransform *trans, gboolean is_discont, GstBuffer *buffer);
GstFlowReturn gst_gpu_base_transform_prepare_output_buffer (GstBaseTransform *trans, GstBuffer *in, GstBuffer **out);
GstFlowReturn gst_gpu_base_transform_transform (GstBaseTransform *trans, GstBuffer *in, GstBuffer *out);

/** The class' default. */
gboolean gst_gpu_base_transform_process_buffer (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in,
                                                GstBuffer *out, GError **error);

/* gstgpumeta.c */

gboolean gst_gpu_base_transform_copy_metadata (GstBaseTransform *trans, GstBuffer *in, GstBuffer *out);
gboolean gst_gpu_base_transform_transform_meta (GstBaseTransform *trans, GstBuffer *out, GstMeta *meta, GstBuffer *in);

/* gstgpumessage.c */

/** The next error is posted even if it is the last one again. */
void gst_gpu_base_transform_forget_error (GstGpuBaseTransform *self);

G_END_DECLS
