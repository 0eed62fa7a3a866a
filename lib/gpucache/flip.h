/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Flips and quarter turns.
 */
#pragma once

#include <gpucache/batch.h>
#include <gpucache/image.h>

G_BEGIN_DECLS

/**
 * GpuOrientation:
 *
 * What happens to the picture; the values are those of GstVideoOrientationMethod.
 */
typedef enum {
  GPU_ORIENTATION_IDENTITY,
  GPU_ORIENTATION_90R, /* clockwise */
  GPU_ORIENTATION_180,
  GPU_ORIENTATION_90L,        /* counter-clockwise */
  GPU_ORIENTATION_HORIZONTAL, /* left and right change places */
  GPU_ORIENTATION_VERTICAL,   /* top and bottom change places */
  GPU_ORIENTATION_UL_LR,      /* across the diagonal from upper left to lower right */
  GPU_ORIENTATION_UR_LL,      /* across the diagonal from upper right to lower left */
} GpuOrientation;

/** Whether width and height change places. */
GPU_API bool gpu_orientation_is_transposed (GpuOrientation orientation);

/**
 * gpu_flip:
 *
 * Writes @src, turned, to @dst: same format, sizes swapped where the orientation transposes, other memory than @src's.
 * Chroma planes are turned like pictures of their own size. No host wait.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_flip (GpuStream *stream, GpuImage *src, GpuImage *dst, GpuOrientation orientation, GError **error);

/**
 * gpu_flip_batch:
 * @orientations: one for all images, or one for each
 * @n: how many those are: 1, or the batch's size
 *
 * gpu_flip() of each image of @src to that of @dst, in one launch, or two where some of them are turned and others are
 * not.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_flip_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const GpuOrientation *orientations,
                             unsigned n, GError **error);

G_END_DECLS
