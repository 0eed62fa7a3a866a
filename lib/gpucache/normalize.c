/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation by channel: arguments, checks, and the work on the CPU device.
 */
#include "normalize.h"

#include "normalize-pixel.h"
#include "op-priv.h"

#include <math.h>

void
gpu_normalize_init (GpuNormalize *params)
{
  *params = (GpuNormalize){.scale = {1, 1, 1, 1}, .global_scale = 1};
}

GPU_OP_LOOP void
look_up_rows (const GpuNormalizePlane *plane, uint8_t table[][256], size_t bytes)
{
  size_t row_bytes = plane->row_bytes;

  for (uint32_t y = 0; y < plane->height; y++) {
    const uint8_t *src = plane->src + y * plane->src_stride;
    uint8_t *dst = plane->dst + y * plane->dst_stride;

    for (size_t i = 0; i < row_bytes; i += bytes)
      for (size_t c = 0; c < bytes; c++)
        dst[i + c] = table[c][src[i + c]];
  }
}

static void
run (const void *data, GpuExtent extent)
{
  const GpuNormalizeArgs *args = data;
  uint8_t table[GPU_PIXEL_CHANNELS][256];

  for (const GpuNormalizePlane *plane = args->plane; plane < args->plane + GPU_PIXEL_PLANES && plane->src; plane++) {
    for (unsigned c = 0; c < plane->bytes; c++)
      for (unsigned value = 0; value < 256; value++)
        table[c][value] = gpu_normalize_sample (plane->channel[c], (uint8_t)value);

    if (plane->bytes == 1)
      look_up_rows (plane, table, 1);
    else if (plane->bytes == 2)
      look_up_rows (plane, table, 2);
    else if (plane->bytes == 3)
      look_up_rows (plane, table, 3);
    else
      look_up_rows (plane, table, 4);
  }
}

static const GpuKernel kernel = {
    .name = "gpu_normalize_rows",
    .args_size = sizeof (GpuNormalizeArgs),
    .block = {GPU_NORMALIZE_BLOCK_X, GPU_NORMALIZE_BLOCK_Y, 1},
    .run = run,
};

static bool
check_finite (const char *what, const char *channel, float value, GError **error)
{
  if (isfinite (value))
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Normalize needs a finite number as %s%s%s, not %g", what,
               *channel ? " of channel " : "", channel, (double)value);
  return false;
}

static bool
init_channel (GpuNormalizeChannel *channel, const GpuNormalize *params, unsigned i, const char *name, GError **error)
{
  double factor = params->scale[i];

  if (!check_finite ("base", name, params->base[i], error) ||
      !check_finite (params->scale_is_stddev ? "standard deviation" : "scale", name, params->scale[i], error))
    return false;
  if (params->scale_is_stddev) {
    double variance = factor * factor + params->epsilon;

    if (variance == 0) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                   "Normalize cannot divide by the standard deviation 0 of channel %s: give another one, or a positive "
                   "epsilon",
                   name);
      return false;
    }
    factor = 1 / sqrt (variance);
  }
  factor *= params->global_scale;
  if (!isfinite ((float)factor)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Normalize cannot multiply channel %s by %g, which is too large: use a smaller scale or global scale, "
                 "or a larger standard deviation",
                 name, factor);
    return false;
  }
  *channel = (GpuNormalizeChannel){params->base[i], (float)factor, params->shift};
  return true;
}

static bool
init_channels (GpuNormalizeChannel *channels, const GpuNormalize *params, const GpuFormatInfo *info, GError **error)
{
  static const char *const rgb[] = {"R", "G", "B", "A"}, *const yuv[] = {"Y", "U", "V"};
  const char *const *names = info->channel[1] >= 0 ? rgb : yuv;

  if (!check_finite ("global scale", "", params->global_scale, error) ||
      !check_finite ("shift", "", params->shift, error) || !check_finite ("epsilon", "", params->epsilon, error))
    return false;
  if (params->epsilon < 0) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Normalize needs an epsilon of at least 0, not %g",
                 (double)params->epsilon);
    return false;
  }
  for (unsigned i = 0; i < info->n_channels; i++)
    if (!init_channel (&channels[i], params, i, names[i], error))
      return false;
  return true;
}

/* Which channel each byte of a plane's pixels belongs to. */
static void
set_plane_channels (GpuNormalizePlane *plane, const GpuNormalizeChannel *channels, const GpuFormatInfo *info,
                    unsigned first)
{
  static const GpuNormalizeChannel padding = {0, 0, 255};

  if (info->channel[0] < 0) {
    for (unsigned i = 0; i < plane->bytes; i++)
      plane->channel[i] = channels[first + i];
    return;
  }
  for (unsigned i = 0; i < plane->bytes; i++)
    plane->channel[i] = padding;
  for (unsigned i = 0; i < info->n_channels; i++)
    plane->channel[info->channel[i]] = channels[i];
}

/* Threads in x that a row needs: one for each 16-byte line of the destination that it touches. */
static uint32_t
row_threads (const GpuNormalizePlane *plane)
{
  bool aligned = !(((uintptr_t)plane->dst | plane->dst_stride) & 15);

  return (uint32_t)((plane->row_bytes + (aligned ? 15 : 30)) / 16);
}

bool
gpu_normalize (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuNormalize *params, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src);
  const GpuImageSpec *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);
  GpuNormalizeChannel channels[GPU_MAX_CHANNELS];
  GpuExtent extent = {0, 0, 1};
  GpuNormalizeArgs args = {0};
  unsigned first = 0;

  if (!gpu_op_check ("Normalize", stream, src, dst, error) ||
      !gpu_op_check_size ("Normalize", dst, from->width, from->height, error) ||
      (!gpu_op_same_memory (src, dst) && !gpu_op_check_apart ("Normalize", src, dst, error)) ||
      !init_channels (channels, params, info, error))
    return false;

  for (unsigned i = 0; i < info->n_planes; i++) {
    GpuNormalizePlane *plane = &args.plane[i];

    plane->src = gpu_op_plane (src, i);
    plane->dst = gpu_op_plane (dst, i);
    plane->src_stride = from->stride[i];
    plane->dst_stride = to->stride[i];
    plane->row_bytes = gpu_image_spec_row_bytes (from, i);
    plane->height = gpu_image_spec_plane_height (from, i);
    plane->bytes = info->plane[i].pixel_bytes;
    set_plane_channels (plane, channels, info, first);
    first += plane->bytes;
    extent.x = MAX (extent.x, row_threads (plane));
    gpu_op_add_rows (&args.rows, i, plane->height, GPU_NORMALIZE_BLOCK_Y);
  }
  extent.y = gpu_op_extent_y (&args.rows, GPU_NORMALIZE_BLOCK_Y);
  return gpu_images_launch (stream, src, dst, &kernel, &args, extent, error);
}
