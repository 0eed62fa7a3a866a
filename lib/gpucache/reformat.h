/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The order of dimensions: interleaved to planar and back.
 */
#pragma once

#include <gpucache/batch.h>
#include <gpucache/image.h>

G_BEGIN_DECLS

/**
 * gpu_reformat:
 * @src: a tensor, or a picture of an RGB format or GRAY8
 * @dst: the same size and channels in another layout, elsewhere in memory: a tensor of the same type, where pictures
 *   count as 8-bit tensors with channels in the order R, G, B, A; or a picture for an 8-bit tensor
 *
 * Moves elements without changing them. Padding bytes (the x of RGBx) are no channel: they are left out, and become
 * 255. No host wait.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_reformat (GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error);

/** gpu_reformat() of each image of @src to that of @dst, in one launch, or two if some have elements of a byte and
 * others of more; those whose format stays are copied one by one. False if @error is set. */
GPU_API bool gpu_reformat_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, GError **error);

G_END_DECLS
