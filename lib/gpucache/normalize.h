/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation by channel, with CV-CUDA's arguments.
 */
#pragma once

#include <gpucache/batch.h>
#include <gpucache/convert.h>
#include <gpucache/format.h>
#include <gpucache/image.h>

G_BEGIN_DECLS

/**
 * GpuChannelOrder:
 * @GPU_CHANNEL_ORDER_RGB: R, G, B, A
 * @GPU_CHANNEL_ORDER_STORED: as they lie in the picture's memory: B, G, R for BGR and BGRx, G, B, R for GBR
 *
 * The order of channels in a tensor.
 */
typedef enum {
  GPU_CHANNEL_ORDER_RGB,
  GPU_CHANNEL_ORDER_STORED,
} GpuChannelOrder;

/**
 * GpuNormalize:
 * @base: subtracted from each channel (its mean), in the order R, G, B, A (Y, U, V where YUV formats stay pictures)
 * @scale: what each channel is multiplied by; with @scale_is_stddev, its standard deviation
 * @global_scale: multiplies all channels
 * @shift: added to all channels
 * @scale_is_stddev: the channel's factor is 1 / sqrt (scale * scale + epsilon)
 * @epsilon: see there; at least 0
 * @order: of the channels, where the destination is a tensor; the parameters' order stays R, G, B, A
 * @color: what a 4:2:0 picture's numbers mean, where the destination is a tensor
 *
 * out = (in - base) * factor * global_scale + shift.
 *
 * To a picture it is rounded to nearest, ties to even, and saturated to 0 .. 255. Each step is done in single
 * precision, with base, shift and factor * global_scale rounded to it. Padding bytes (the x of RGBx) become 255.
 *
 * To a tensor it is done in double precision and rounded once, to nearest, ties to even: a float is within half a unit
 * of its last place of what these parameters give, and so is a half; 8 bits saturate. Of 4:2:0 a tensor has R, G, B:
 * those of 8 bits that gpu_convert() makes of the picture, which saves the RGB picture in between and a launch.
 *
 * Every device gives the same bytes. Entries of channels that the format lacks are not looked at.
 */
typedef struct {
  double base[GPU_MAX_CHANNELS];
  double scale[GPU_MAX_CHANNELS];
  double global_scale;
  double shift;
  bool scale_is_stddev;
  double epsilon;
  GpuChannelOrder order;
  GpuColorimetry color;
} GpuNormalize;

/** base 0, scale 1, global_scale 1, shift 0, order R, G, B, A: changes nothing. */
GPU_API void gpu_normalize_init (GpuNormalize *params);

/**
 * gpu_normalize:
 * @src: a picture of 8-bit samples
 * @dst: a picture of the same format and size, which may be @src; or a tensor of the same size: of an RGB format or
 * GRAY8 with its channels, or with 3 for a picture that has an alpha channel, which is then left out; of NV12 or I420
 * with 3
 *
 * No host wait.
 *
 * Returns: false if @error is set: for a NaN or infinity, a negative epsilon, or a standard deviation of zero without
 * an epsilon
 */
GPU_API bool
gpu_normalize (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuNormalize *params, GError **error);

/**
 * gpu_normalize_batch:
 * @params: one for all images, or one for each
 * @n: how many those are: 1, or the batch's size
 *
 * gpu_normalize() of each image of @src to that of @dst, which may be the same batch, or a dense one that is a model's
 * input, in one launch for each sort: to pictures, to tensors, from 4:2:0 to tensors. What lies at odd addresses, or
 * has parameters that floats are not enough for, takes one or two more.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_normalize_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const GpuNormalize *params,
                                  unsigned n, GError **error);

G_END_DECLS
