/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation of 4:2:0 to tensors: conversion to R, G, B of 8 bits and what each of those becomes, in one kernel
 * where four pixels can be read and written at once and channels have lines, else one after the other.
 */
#include "convert-priv.h"
#include "normalize-priv.h"
#include "normalize-yuv-pixel.h"

#include <string.h>

GPU_OP_LOOP void
look_up (uint8_t *restrict dst, size_t step, const uint8_t *src, uint32_t n, const uint32_t *table, size_t size)
{
  for (uint32_t x = 0; x < n; x++)
    memcpy (dst + x * step, &table[src[x]], size);
}

static void
run (const void *data, GpuExtent extent)
{
  const GpuNormalizeYuvArgs *args = data;
  const GpuPixels *dst = &args->convert.dst.pixels;
  uint8_t rgb[3][GPU_CONVERT_STRIP];
  uint32_t table[3][256];

  for (unsigned c = 0; c < 3; c++)
    for (unsigned value = 0; value < 256; value++)
      table[c][value] = gpu_normalize_element (args->channel[c], value, dst->size);
  for (uint32_t y = 0; y < args->convert.height; y++)
    for (uint32_t x = 0, n; x < args->convert.width; x += n) {
      n = MIN (GPU_CONVERT_STRIP, args->convert.width - x);
      gpu_convert_read_rgb (&args->convert, x, y, n, rgb);
      for (unsigned c = 0; c < 3; c++) {
        uint8_t *to = dst->data[c] + y * dst->stride[c] + (size_t)x * dst->step;

        if (dst->size == 1)
          look_up (to, dst->step, rgb[c], n, table[c], 1);
        else if (dst->size == 2)
          look_up (to, dst->step, rgb[c], n, table[c], 2);
        else
          look_up (to, dst->step, rgb[c], n, table[c], 4);
      }
    }
}

static const GpuKernelAddresses addresses[] = {
    {offsetof (GpuNormalizeYuvArgs, param.source.luma), 1, false},
    {offsetof (GpuNormalizeYuvArgs, param.source.chroma), 2, false},
    {offsetof (GpuNormalizeYuvArgs, param.dst.data), GPU_PIXEL_CHANNELS, true},
    {offsetof (GpuNormalizeYuvArgs, convert.src.pixels.data), GPU_PIXEL_CHANNELS, false},
    {offsetof (GpuNormalizeYuvArgs, convert.src.chroma.data), GPU_PIXEL_CHANNELS, false},
    {offsetof (GpuNormalizeYuvArgs, convert.dst.pixels.data), GPU_PIXEL_CHANNELS, true},
    {0},
};

/* By the bytes of an element. */
static const GpuKernel kernels[] = {
    [1] = {.name = "gpu_normalize_yuv_1",
           .args_size = sizeof (GpuNormalizeYuvArgs),
           .param_size = sizeof (GpuNormalizeYuvParam),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run,
           .table_name = "gpu_normalize_yuv_1_table",
           .addresses = addresses},
    [2] = {.name = "gpu_normalize_yuv_2",
           .args_size = sizeof (GpuNormalizeYuvArgs),
           .param_size = sizeof (GpuNormalizeYuvParam),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run,
           .table_name = "gpu_normalize_yuv_2_table",
           .addresses = addresses},
    [4] = {.name = "gpu_normalize_yuv_4",
           .args_size = sizeof (GpuNormalizeYuvArgs),
           .param_size = sizeof (GpuNormalizeYuvParam),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run,
           .table_name = "gpu_normalize_yuv_4_table",
           .addresses = addresses},
};

/* With the RGB picture in between. */
static bool
convert_and_normalize (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuNormalize *params, const double *factors,
                       GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src);
  GpuImageSpec spec;
  GpuConvert convert;

  if (!gpu_image_spec_init (&spec, GPU_FORMAT_RGB, from->width, from->height, 0, error))
    return false;
  GpuImage *between = gpu_image_acquire (gpu_stream_device (op->stream), &spec, GPU_MEMORY_STREAM_ORDERED, op->stream,
                                         GPU_ACQUIRE_DEFAULT, error);
  if (!between)
    return false;
  gpu_op_keep (op, between);
  gpu_convert_init (&convert);
  convert.src = params->color;
  const bool ok = gpu_convert_image (op, src, between, &convert, NULL, error) &&
                  gpu_normalize_to_tensor (op, between, dst, params, factors, error);
  gpu_image_unref (between);
  return ok;
}

bool
gpu_normalize_420_to_tensor (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuNormalize *params,
                             const double *factors, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (src);
  GpuNormalizeYuvArgs args = {0};

  if (!gpu_convert_check_colorimetry ("Normalize", "source", &params->color, error))
    return false;
  gpu_convert_make_rgb_args (src, &params->color, &args.convert);
  args.convert.dst.pixels = gpu_op_pixels (dst);
  const GpuPixels *pixels = &args.convert.dst.pixels;
  bool at_once = gpu_convert_is_420_in_quads (&args.convert) && pixels->vector;
  for (unsigned c = 0; c < 3 && at_once; c++) {
    args.channel[c] = (GpuNormalizeTensorChannel){params->base[c], factors[c], params->shift};
    at_once = gpu_normalize_find_line (&args.channel[c], pixels->size, &args.param.line[c]);
  }
  if (!at_once)
    return convert_and_normalize (op, src, dst, params, factors, error);
  gpu_convert_make_420_param (&args.convert, false, 4, &args.param.source);
  args.param.dst = *pixels;
  return gpu_op_launch (op, src, dst, &kernels[pixels->size], &args, gpu_op_quads_extent (spec->width, spec->height),
                        error);
}
