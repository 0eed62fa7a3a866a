/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Caps of tensors, for elements that make or take them: which shapes others may mean, and which of several to choose.
 */
#pragma once

#include <gpucache/gstgpucache.h>

G_BEGIN_DECLS

/**
 * GstGpuTensorLayout:
 * @GST_GPU_TENSOR_LAYOUT_ANY: whatever caps ask for
 * @GST_GPU_TENSOR_LAYOUT_HWC: interleaved only
 * @GST_GPU_TENSOR_LAYOUT_CHW: planar only
 *
 * Of the tensors that an element makes.
 */
typedef enum {
  GST_GPU_TENSOR_LAYOUT_ANY,
  GST_GPU_TENSOR_LAYOUT_HWC,
  GST_GPU_TENSOR_LAYOUT_CHW,
} GstGpuTensorLayout;

#define GST_TYPE_GPU_TENSOR_LAYOUT (gst_gpu_tensor_layout_get_type ())
GType gst_gpu_tensor_layout_get_type (void);

/** Whether @layout is one of @choice. */
gboolean gst_gpu_tensor_layout_allows (GstGpuTensorLayout choice, GpuLayout layout);

/** Whether it is a structure of caps of tensors. */
gboolean gst_gpu_structure_is_tensor (const GstStructure *structure);

/** Returns: (transfer full): an empty structure of caps with the framerate of @from, if that has one. */
GstStructure *gst_gpu_structure_like (const GstStructure *from, const gchar *name);

/** The channels of a picture in this format as a tensor has them; 0 if it cannot become one. (nullable) @info. */
guint gst_gpu_tensor_channels (const GpuFormatInfo *info);

/**
 * gst_gpu_tensor_shapes:
 * @direction: the pad that @structure belongs to
 * @structure: of caps of tensors
 * @shapes: (out): filled in with at most @max specs of uint8 tensors
 *
 * The shapes that its dimensions can mean. Where they do not tell the layout, it is the usual one at a sink pad, and
 * any at a source pad, where it can still be chosen.
 *
 * Returns: their number; -1 if @structure leaves the dimensions open
 */
gint gst_gpu_tensor_shapes (GstPadDirection direction, const GstStructure *structure, GpuImageSpec *shapes, guint max);

/** For gst_gpu_tensor_append(). */
#define GST_GPU_TENSOR_ANY_TYPE ((1u << GPU_N_ELEMENTS) - 1)
#define GST_GPU_TENSOR_BYTES (1u << GPU_ELEMENT_U8)

/** Adds to @caps tensors in device memory, of the shape that is @spec's (NULL: any) and one of @types, with the
 * framerate of @from. */
void gst_gpu_tensor_append (GstCaps *caps, const GpuImageSpec *spec, guint types, const GstStructure *from);

/**
 * gst_gpu_tensor_fixate:
 * @others: (transfer full): the caps to choose from, not empty
 * @candidates: specs of tensors, the best first
 *
 * Returns: (transfer full): what @others have of the first candidate that they allow, in a form that can be fixated, or
 *   NULL if they allow none; then @others stay the caller's
 */
GstCaps *gst_gpu_tensor_fixate (GstCaps *others, const GpuImageSpec *candidates, guint n);

G_END_DECLS
