/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuBaseTransform: what the elements share. It decides device and stream, negotiates pools, finds memory for each
 * output frame, bounds the frames in flight, carries metas over and posts errors; an element says what its operation
 * is.
 */
#pragma once

#include <gpucache/gstgpucache.h>

#include <gst/base/gstbasetransform.h>
#include <gst/video/video.h>

G_BEGIN_DECLS

/** What the library takes, in the order in which elements offer it. */
#define GST_GPU_8_BIT_FORMATS "NV12, I420, RGBA, BGRA, ARGB, ABGR, RGBx, BGRx, xRGB, xBGR, RGB, BGR, RGBP, GBR, GRAY8"
#define GST_GPU_FORMATS "{ " GST_GPU_8_BIT_FORMATS ", P010_10LE }"

/** Caps of frames in device memory, and of frames in system memory. */
#define GST_GPU_CAPS GST_VIDEO_CAPS_MAKE_WITH_FEATURES (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, GST_GPU_FORMATS)
#define GST_GPU_SYSTEM_CAPS GST_VIDEO_CAPS_MAKE (GST_GPU_FORMATS)

/** The same for tensors. */
#define GST_GPU_TENSOR_CAPS GST_GPU_TENSOR_NAME "(" GST_CAPS_FEATURE_MEMORY_GPU_CACHE "), " GST_GPU_TENSOR_FIELDS
#define GST_GPU_SYSTEM_TENSOR_CAPS GST_GPU_TENSOR_NAME ", " GST_GPU_TENSOR_FIELDS

/** Caps of batches. */
#define GST_GPU_BATCH_CAPS GST_GPU_BATCH_NAME "(" GST_CAPS_FEATURE_MEMORY_GPU_CACHE ")"

/** Any of these. */
#define GST_GPU_ANY_CAPS GST_GPU_CAPS "; " GST_GPU_SYSTEM_CAPS "; " GST_GPU_TENSOR_CAPS "; " GST_GPU_SYSTEM_TENSOR_CAPS

/**
 * GstGpuStreamMode:
 * @GST_GPU_STREAM_INHERIT: work goes on the stream of each frame that comes in, so that a chain shares one
 * @GST_GPU_STREAM_OWN: work goes on a stream of the element's own
 */
typedef enum {
  GST_GPU_STREAM_INHERIT,
  GST_GPU_STREAM_OWN,
} GstGpuStreamMode;

#define GST_TYPE_GPU_STREAM_MODE (gst_gpu_stream_mode_get_type ())
GType gst_gpu_stream_mode_get_type (void);

#define GST_TYPE_GPU_BASE_TRANSFORM (gst_gpu_base_transform_get_type ())
G_DECLARE_DERIVABLE_TYPE (GstGpuBaseTransform, gst_gpu_base_transform, GST, GPU_BASE_TRANSFORM, GstBaseTransform)

/**
 * GstGpuBaseTransformClass:
 * @in_place: the operation may write over its input; it is then given the same image twice
 * @copies: the element is there for copying: frames of another device are taken, too. It works on a stream of its own,
 *   and what its output's stream is it sets itself.
 * @follows: the element always works on the device of its frames, whatever its property says
 * @any_format: the format of what goes out can be chosen, so that caps of a batch do not have to say one
 * @batch_of_tensors: frames of a batch may be tensors, too, and pictures may become some and tensors pictures
 * @batch_to_tensor: a batch may become one dense tensor: the destination's images are its parts then
 * @update: in the streaming thread, before each frame and each new caps: takes over properties that were changed.
 *   Returns whether caps, passthrough or memory must be negotiated again. Caps are then transformed with
 *   gst_gpu_base_transform_is_negotiating() true, so that a change of properties meanwhile waits for its turn.
 * @set_info: caps are decided: @in and @out. May set passthrough. FALSE with @error set refuses them.
 * @set_batch: the same for batches, whose frames may be of any sort; @in and @out: their caps. May set passthrough,
 *   where @out does not ask for what the element does and @in does not have (gst_gpu_batch_asks_for()).
 * @transform_frame_caps: GstBaseTransform's transform_caps, for caps of single frames; NULL if they stay what they are.
 *   Fields that caps of frames must have may be lacking: those of a batch
 * @fixate_frame_caps: GstBaseTransform's fixate_caps, likewise; NULL for the base class' own
 * @ref_source: returns (transfer full): what of frame number @i of a batch is image @i of the source; NULL for what the
 * frame's caps and crop say
 * @process_batch: submits the operation from each image of @src to that of @dst, in one launch, with no host wait; a
 *   dense @dst may have more; @in and @out: what each of @src is and becomes. FALSE if @error is set. Elements that
 * have it have GST_GPU_BATCH_CAPS in their templates.
 * @forwards: whether @buffer goes downstream as it is although the element is not in passthrough
 * @process: submits the operation from @src to @dst on @stream, with no host wait. FALSE if @error is set.
 * @process_buffer: does the same from buffer to buffer; by default it calls @process on their images
 * @map_rectangle: a rectangle of the input picture, which is @width x @height, as one of the output picture; NULL: the
 *   same one
 * @unmap_point: a point of the output picture as one of the input picture; NULL: the same one. Not called
 *   before caps.
 */
struct _GstGpuBaseTransformClass {
  GstBaseTransformClass parent_class;

  gboolean in_place;
  gboolean copies;
  gboolean follows;
  gboolean any_format;
  gboolean batch_of_tensors;
  gboolean batch_to_tensor;

  gboolean (*update) (GstGpuBaseTransform *self);
  gboolean (*set_info) (GstGpuBaseTransform *self, const GstGpuFrameInfo *in, const GstGpuFrameInfo *out,
                        GError **error);
  gboolean (*set_batch) (GstGpuBaseTransform *self, const GstCaps *in, const GstCaps *out, GError **error);
  GstCaps *(*transform_frame_caps) (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *filter);
  GstCaps *(*fixate_frame_caps) (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps, GstCaps *others);
  GpuImage *(*ref_source) (GstGpuBaseTransform *self, guint i, GstBuffer *buffer, const GstGpuFrameInfo *info,
                           GError **error);
  gboolean (*process_batch) (GstGpuBaseTransform *self, GpuStream *stream, GpuBatch *src, GpuBatch *dst,
                             const GstGpuFrameInfo *in, const GstGpuFrameInfo *out, GError **error);
  gboolean (*forwards) (GstGpuBaseTransform *self, GstBuffer *buffer);
  gboolean (*process) (GstGpuBaseTransform *self, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error);
  gboolean (*process_buffer) (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer *in, GstBuffer *out,
                              GError **error);
  void (*map_rectangle) (GstGpuBaseTransform *self, gint width, gint height, GstVideoRectangle *rectangle);
  void (*unmap_point) (GstGpuBaseTransform *self, gdouble *x, gdouble *y);
};

/** The negotiated frames, pictures or tensors. For the streaming thread; of unknown format before caps. */
const GstGpuFrameInfo *gst_gpu_base_transform_in_frame_info (GstGpuBaseTransform *self);
const GstGpuFrameInfo *gst_gpu_base_transform_out_frame_info (GstGpuBaseTransform *self);

/** The same where they are pictures, and whether they are in device memory; the format of tensors is unknown. */
const GstVideoInfo *gst_gpu_base_transform_in_info (GstGpuBaseTransform *self);
const GstVideoInfo *gst_gpu_base_transform_out_info (GstGpuBaseTransform *self);
gboolean gst_gpu_base_transform_in_is_gpu (GstGpuBaseTransform *self);
gboolean gst_gpu_base_transform_out_is_gpu (GstGpuBaseTransform *self);

/** Whether caps were decided, of frames or of batches: what is wrong with a property is no error then, but a warning.
 * For the streaming thread. */
gboolean gst_gpu_base_transform_is_negotiated (GstGpuBaseTransform *self);

/** Whether caps are being decided with the properties that `update` took over last. */
gboolean gst_gpu_base_transform_is_negotiating (GstGpuBaseTransform *self);

/** Returns: (transfer none) (nullable): the device in use; for the streaming thread. */
GpuDevice *gst_gpu_base_transform_device (GstGpuBaseTransform *self);

/** Whether @caps have the feature of frames in device memory. */
gboolean gst_gpu_caps_are_gpu (GstCaps *caps);

/** Returns: (transfer full): a copy of @caps, all of it with @feature as its only one. */
GstCaps *gst_gpu_caps_with_feature (GstCaps *caps, const gchar *feature);

/** Fixates @others (transfer full), the caps of a frame, and keeps colours what they are. */
GstCaps *gst_gpu_base_transform_fixate_frame_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps,
                                                   GstCaps *others);

/** Whether a batch's caps @out say of one of the fields @names, which end with NULL, what @in, which it is made of,
 * does not. */
gboolean gst_gpu_batch_asks_for (const GstCaps *in, const GstCaps *out, const gchar *const *names);

/** Takes @caps over; returns what @filter leaves of them, in its order. (nullable) @filter. */
GstCaps *gst_gpu_caps_filter (GstCaps *caps, GstCaps *filter);

/** Offers @pool upstream, in place of the query's. Why there is no frame of it to be had, or to be mapped, this element
 * says, since upstream cannot. */
void gst_gpu_base_transform_offer_pool (GstGpuBaseTransform *self, GstQuery *query, GstBufferPool *pool, guint size);

/** Says on the bus that @error happened, with its sentence: the element stops, or goes on. */
void gst_gpu_base_transform_post_error (GstGpuBaseTransform *self, const GError *error);
void gst_gpu_base_transform_post_warning (GstGpuBaseTransform *self, const GError *error);

/** Whether the element takes the device of the frames that it receives. */
gboolean gst_gpu_base_transform_adopts_device (GstGpuBaseTransform *self);

G_END_DECLS
