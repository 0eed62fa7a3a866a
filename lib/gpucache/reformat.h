/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The order of dimensions, interleaved to planar and back, and the type of elements.
 */
#pragma once

#include <gpucache/batch.h>
#include <gpucache/convert.h>
#include <gpucache/image.h>

G_BEGIN_DECLS

/**
 * gpu_reformat:
 * @src: a tensor, or a picture of an RGB format or GRAY8
 * @dst: the same size and channels, elsewhere in memory: of a tensor a tensor of any layout and type, where pictures
 *   count as 8-bit tensors with channels in the order R, G, B, A; of an 8-bit tensor or a picture also a picture
 * @params: (nullable): scale and offset, which are for tensors; its colorimetries are not looked at. NULL for 1 and 0
 *
 * Moves elements, and changes them only from tensor to tensor, as gpu_convert() does it; where layout and numbers
 * change that takes two launches. Padding bytes (the x of RGBx) are no channel: they are left out, and become 255. No
 * host wait.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_reformat (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuConvert *params, GError **error);

/**
 * gpu_reformat_batch:
 * @params: (nullable): one for all images, or one for each
 * @n: how many those are: 1, or the batch's size
 *
 * gpu_reformat() of each image of @src to that of @dst, in one launch for each sort of change: of layouts, of bytes and
 * of larger elements, and of numbers; images that nothing changes in are copied one by one.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_reformat_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const GpuConvert *params, unsigned n,
                                 GError **error);

G_END_DECLS
