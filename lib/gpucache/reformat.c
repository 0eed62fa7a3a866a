/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The order of dimensions: arguments, checks, and the work on the CPU device.
 */
#include "reformat.h"

#include "reformat-pixel.h"
#include "reformat-priv.h"

GPU_OP_LOOP void
move_row (uint8_t *restrict dst, size_t dst_step, const uint8_t *restrict src, size_t src_step, uint32_t n, size_t size)
{
  for (uint32_t x = 0; x < n; x++)
    memcpy (dst + x * dst_step, src + x * src_step, size);
}

/* The steps of bytes that are common, as constants. */
static void
move_bytes (uint8_t *dst, uint32_t dst_step, const uint8_t *src, uint32_t src_step, uint32_t n)
{
  if (dst_step == 1 && src_step == 3)
    move_row (dst, 1, src, 3, n, 1);
  else if (dst_step == 1 && src_step == 4)
    move_row (dst, 1, src, 4, n, 1);
  else if (dst_step == 3 && src_step == 1)
    move_row (dst, 3, src, 1, n, 1);
  else
    move_row (dst, dst_step, src, src_step, n, 1);
}

static void
run (const void *data, GpuExtent extent)
{
  const GpuReformatArgs *args = data;
  const GpuPixels *src = &args->src, *dst = &args->dst;

  for (uint32_t y = 0; y < args->height; y++) {
    /* Pixels whose padding is no channel. */
    if (dst->group > dst->channels)
      memset (dst->data[0] - dst->at[0] + y * dst->stride[0], 255, (size_t)args->width * dst->step);

    for (unsigned c = 0; c < dst->channels; c++) {
      uint8_t *to = dst->data[c] + y * dst->stride[c];

      if (c < src->channels) {
        const uint8_t *from = src->data[c] + y * src->stride[c];

        if (src->size == 1)
          move_bytes (to, dst->step, from, src->step, args->width);
        else if (src->size == 2)
          move_row (to, dst->step, from, src->step, args->width, 2);
        else
          move_row (to, dst->step, from, src->step, args->width, 4);
      } else {
        for (uint32_t x = 0; x < args->width; x++)
          to[(size_t)x * dst->step] = (uint8_t)args->opaque;
      }
    }
  }
}

static const GpuKernel bytes_kernel = {
    .name = "gpu_reformat_bytes",
    .args_size = sizeof (GpuReformatArgs),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = run,
    .table_name = "gpu_reformat_bytes_table",
};

static const GpuKernel elements_kernel = {
    .name = "gpu_reformat_elements",
    .args_size = sizeof (GpuReformatArgs),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = run,
    .table_name = "gpu_reformat_elements_table",
};

bool
gpu_reformat_pixels (const GpuOp *op, GpuImage *src, GpuImage *dst, uint32_t opaque, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (src);
  const GpuReformatArgs args = {.src = gpu_op_pixels (src),
                                .dst = gpu_op_pixels (dst),
                                .width = spec->width,
                                .height = spec->height,
                                .opaque = opaque};

  if (args.src.size == 1)
    return gpu_op_launch (op, src, dst, &bytes_kernel, &args, gpu_op_quads_extent (spec->width, spec->height), error);
  return gpu_op_launch (op, src, dst, &elements_kernel, &args, gpu_op_quad_extent (spec->width, spec->height), error);
}

/* Channels as a tensor has them; 0 for what cannot be one. */
static unsigned
n_channels (const GpuImageSpec *spec)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);

  if (info->is_tensor)
    return spec->channels;
  return info->is_yuv && info->n_channels > 1 ? 0 : info->n_channels;
}

static bool
reformat (const GpuOp *op, GpuImage *src, GpuImage *dst, const void *params, void *data, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *src_info = gpu_format_info (from->format), *dst_info = gpu_format_info (to->format);

  if (!gpu_op_check_devices ("Reformat", op->stream, src, dst, error) ||
      !gpu_op_check_size ("Reformat", dst, from->width, from->height, error))
    return false;
  if (!n_channels (from) || !n_channels (to)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Reformat works on tensors, RGB formats and GRAY8, not on %s: use gpu_convert()",
                 n_channels (from) ? dst_info->name : src_info->name);
    return false;
  }
  if (src_info->element != dst_info->element || (!src_info->is_tensor && !dst_info->is_tensor)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Reformat does not convert %s to %s: use gpu_convert()",
                 src_info->name, dst_info->name);
    return false;
  }
  if (n_channels (from) != n_channels (to)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Reformat does not make %u channels of the %u of a %s",
                 n_channels (to), n_channels (from), src_info->name);
    return false;
  }
  if (!gpu_op_check_apart ("Reformat", src, dst, error) || !gpu_op_check_elements ("Reformat", src, error) ||
      !gpu_op_check_elements ("Reformat", dst, error))
    return false;
  if (from->format == to->format)
    return gpu_op_copy (op, src, dst, error);
  return gpu_reformat_pixels (op, src, dst, 0, error);
}

bool
gpu_reformat (GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  const GpuOp op = {stream, NULL};

  return reformat (&op, src, dst, NULL, NULL, error);
}

bool
gpu_reformat_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, GError **error)
{
  return gpu_op_run_batch ("Reformat", stream, src, dst, reformat, NULL, 0, 1, NULL, error);
}
