/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation by channel, with CV-CUDA's arguments.
 */
#pragma once

#include <gpucache/format.h>
#include <gpucache/image.h>

G_BEGIN_DECLS

/**
 * GpuNormalize:
 * @base: subtracted from each channel (its mean), in the order R, G, B, A (Y, U, V for YUV formats)
 * @scale: what each channel is multiplied by; with @scale_is_stddev, its standard deviation
 * @global_scale: multiplies all channels
 * @shift: added to all channels
 * @scale_is_stddev: the channel's factor is 1 / sqrt (scale * scale + epsilon)
 * @epsilon: see there; at least 0
 *
 * out = (in - base) * factor * global_scale + shift, rounded to nearest, ties to even, and saturated to 0 .. 255.
 * Padding bytes (the x of RGBx) become 255.
 *
 * Each step is done in single precision, with factor * global_scale as one number, so that every device gives the same
 * bytes. Entries of channels that the format lacks are not looked at.
 */
typedef struct {
  float base[GPU_MAX_CHANNELS];
  float scale[GPU_MAX_CHANNELS];
  float global_scale;
  float shift;
  bool scale_is_stddev;
  float epsilon;
} GpuNormalize;

/** base 0, scale 1, global_scale 1, shift 0: changes nothing. */
GPU_API void gpu_normalize_init (GpuNormalize *params);

/**
 * gpu_normalize:
 *
 * Both images have the same format and size; they may be the same image.
 *
 * Returns: false if @error is set: for a NaN or infinity, a negative epsilon, or a standard deviation of zero without
 * an epsilon
 */
GPU_API bool
gpu_normalize (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuNormalize *params, GError **error);

G_END_DECLS
