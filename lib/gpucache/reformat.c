/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Layouts and element types: arguments, checks, and, of layouts, the work on the CPU device.
 */
#include "reformat.h"

#include "convert-priv.h"
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

static const GpuKernel lines_kernel = {
    .name = "gpu_reformat_lines",
    .args_size = sizeof (GpuReformatArgs),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = run,
    .table_name = "gpu_reformat_lines_table",
};

static bool
is_in_lines (const GpuPixels *pixels, uint32_t width)
{
  uintptr_t misaligned = (uintptr_t)width * pixels->size;

  for (unsigned c = 0; c < pixels->channels; c++)
    misaligned |= ((uintptr_t)pixels->data[c] - (size_t)pixels->at[c] * pixels->size) | pixels->stride[c];
  return !(misaligned & 15);
}

/* Whether gpu_reformat_lines does that. */
static bool
takes_lines (const GpuReformatArgs *args)
{
  const GpuPixels *src = &args->src, *dst = &args->dst;
  const GpuPixels *packed = src->group > 1 ? src : dst, *planes = src->group > 1 ? dst : src;

  return src->size <= 2 && src->channels >= 3 && src->channels == dst->channels && planes->group == 1 &&
         packed->group == packed->channels && is_in_lines (src, args->width) && is_in_lines (dst, args->width);
}

/* Counts channels as packed pixels have them. */
static void
count_as_packed (GpuPixels *packed, GpuPixels *planes)
{
  const GpuPixels from = *planes;
  uint8_t *first = packed->data[0] - (size_t)packed->at[0] * packed->size;

  for (unsigned c = 0; c < packed->channels; c++) {
    planes->data[packed->at[c]] = from.data[c];
    planes->stride[packed->at[c]] = from.stride[c];
  }
  for (unsigned c = 0; c < packed->channels; c++) {
    packed->data[c] = first + (size_t)c * packed->size;
    packed->at[c] = c;
  }
}

bool
gpu_reformat_pixels (const GpuOp *op, GpuImage *src, GpuImage *dst, uint32_t opaque, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (src);
  GpuReformatArgs args = {.src = gpu_op_pixels (src),
                          .dst = gpu_op_pixels (dst),
                          .width = spec->width,
                          .height = spec->height,
                          .opaque = opaque};

  if (takes_lines (&args)) {
    const uint32_t lines = (uint32_t)((uint64_t)spec->width * args.src.size / 16);
    const GpuExtent extent = {lines, gpu_op_quad_extent (spec->width, spec->height).y, 1};

    if (args.src.group > 1)
      count_as_packed (&args.src, &args.dst);
    else
      count_as_packed (&args.dst, &args.src);
    return gpu_op_launch (op, src, dst, &lines_kernel, &args, extent, error);
  }
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
check (const GpuOp *op, GpuImage *src, GpuImage *dst, bool scaled, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *in = gpu_format_info (from->format), *out = gpu_format_info (to->format);

  if (!gpu_op_check_devices ("Reformat", op->stream, src, dst, error) ||
      !gpu_op_check_size ("Reformat", dst, from->width, from->height, error))
    return false;
  if (!n_channels (from) || !n_channels (to)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Reformat works on tensors, RGB formats and GRAY8, not on %s: use gpu_convert()",
                 n_channels (from) ? out->name : in->name);
    return false;
  }
  if ((scaled || in->element != out->element) && !(in->is_tensor && out->is_tensor)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Reformat changes the elements of tensors only, not those of %s to %s: use gpu_normalize()", in->name,
                 out->name);
    return false;
  }
  if (n_channels (from) != n_channels (to)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Reformat does not make %u channels of the %u of a %s",
                 n_channels (to), n_channels (from), in->name);
    return false;
  }
  return gpu_op_check_apart ("Reformat", src, dst, error) && gpu_op_check_elements ("Reformat", src, error) &&
         gpu_op_check_elements ("Reformat", dst, error);
}

/* Layout and type in two steps, the layout where elements are smaller. */
static bool
reformat_and_convert (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuConvert *params, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src);
  const GpuFormatInfo *in = gpu_format_info (from->format), *out = gpu_format_info (gpu_image_spec (dst)->format);
  const bool layout_first = in->bits <= out->bits;
  GpuImageSpec spec;

  if (!gpu_image_spec_init_tensor (&spec, layout_first ? in->element : out->element,
                                   layout_first ? out->layout : in->layout, from->channels, from->width, from->height,
                                   error))
    return false;
  GpuImage *between = gpu_image_acquire (gpu_stream_device (op->stream), &spec, GPU_MEMORY_STREAM_ORDERED, op->stream,
                                         GPU_ACQUIRE_DEFAULT, error);
  if (!between)
    return false;
  gpu_op_keep (op, between);
  const bool ok = layout_first ? gpu_reformat_pixels (op, src, between, 0, error) &&
                                     gpu_convert_image (op, between, dst, params, NULL, error)
                               : gpu_convert_image (op, src, between, params, NULL, error) &&
                                     gpu_reformat_pixels (op, between, dst, 0, error);
  gpu_image_unref (between);
  return ok;
}

static bool
reformat (const GpuOp *op, GpuImage *src, GpuImage *dst, const void *data, void *unused, GError **error)
{
  const GpuConvert *params = data;
  const GpuFormatInfo *in = gpu_format_info (gpu_image_spec (src)->format);
  const GpuFormatInfo *out = gpu_format_info (gpu_image_spec (dst)->format);
  const bool scaled = params && (params->scale != 1 || params->offset != 0);

  if (!check (op, src, dst, scaled, error))
    return false;
  if (in == out && !scaled)
    return gpu_op_copy (op, src, dst, error);
  if (in->element == out->element && !scaled)
    return gpu_reformat_pixels (op, src, dst, 0, error);
  if (in->layout == out->layout)
    return gpu_convert_image (op, src, dst, params, NULL, error);
  return reformat_and_convert (op, src, dst, params, error);
}

bool
gpu_reformat (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuConvert *params, GError **error)
{
  const GpuOp op = {stream, NULL};

  return reformat (&op, src, dst, params, NULL, error);
}

bool
gpu_reformat_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const GpuConvert *params, unsigned n,
                    GError **error)
{
  return gpu_op_run_batch ("Reformat", stream, src, dst, reformat, params, sizeof *params, n, NULL, error);
}
