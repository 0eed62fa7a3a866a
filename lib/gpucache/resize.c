/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling: arguments, checks, and the work on the CPU device.
 */
#include "resize.h"

#include "op-priv.h"
#include "resize-pixel.h"

/* Pictures are done in strips of so many columns, so that what is kept of a row has a fixed size. */
#define STRIP 1024u

GPU_OP_LOOP void
pick_row (uint8_t *restrict dst, const uint8_t *src, const uint32_t *restrict columns, size_t width, size_t bytes)
{
  for (size_t x = 0; x < width; x++)
    memcpy (dst + x * bytes, src + columns[x] * bytes, bytes);
}

GPU_OP_LOOP void
mix_row (uint32_t *restrict mixed, const uint8_t *src, const GpuResizeTap *restrict taps, size_t width, size_t bytes)
{
  for (size_t x = 0; x < width; x++) {
    const uint8_t *a = src + taps[x].i0 * bytes;
    const uint8_t *b = src + taps[x].i1 * bytes;

    for (size_t c = 0; c < bytes; c++)
      mixed[x * bytes + c] = gpu_resize_mix (a[c], b[c], taps[x].weight);
  }
}

static void
nearest_strip (const GpuResizePlane *plane, uint32_t x0, uint32_t width)
{
  uint32_t columns[STRIP];
  uint32_t last = UINT32_MAX;

  for (uint32_t x = 0; x < width; x++)
    columns[x] = gpu_resize_nearest (&plane->x, x0 + x);

  for (uint32_t y = 0; y < plane->y.dst; y++) {
    uint32_t row = gpu_resize_nearest (&plane->y, y);
    const uint8_t *src = plane->src + row * plane->src_stride;
    uint8_t *dst = plane->dst + y * plane->dst_stride + (size_t)x0 * plane->bytes;

    if (row == last)
      memcpy (dst, dst - plane->dst_stride, (size_t)width * plane->bytes);
    else if (plane->bytes == 1)
      pick_row (dst, src, columns, width, 1);
    else if (plane->bytes == 2)
      pick_row (dst, src, columns, width, 2);
    else if (plane->bytes == 3)
      pick_row (dst, src, columns, width, 3);
    else
      pick_row (dst, src, columns, width, 4);
    last = row;
  }
}

/* The part of the source's rows that a strip needs, mixed in x. Neighbours differ in their lowest bit, so the two rows
 * that one of the destination lies between are kept apart, and often serve the next one. */
typedef struct {
  GpuResizeTap taps[STRIP];
  uint32_t mixed[2][STRIP * 4];
  uint32_t row[2];
} Strip;

static const uint32_t *
mixed_row (Strip *strip, const GpuResizePlane *plane, uint32_t width, uint32_t row)
{
  const uint8_t *src = plane->src + row * plane->src_stride;
  uint32_t *mixed = strip->mixed[row & 1];

  if (strip->row[row & 1] == row)
    return mixed;
  strip->row[row & 1] = row;
  if (plane->bytes == 1)
    mix_row (mixed, src, strip->taps, width, 1);
  else if (plane->bytes == 2)
    mix_row (mixed, src, strip->taps, width, 2);
  else if (plane->bytes == 3)
    mix_row (mixed, src, strip->taps, width, 3);
  else
    mix_row (mixed, src, strip->taps, width, 4);
  return mixed;
}

static void
bilinear_strip (const GpuResizePlane *plane, uint32_t x0, uint32_t width)
{
  size_t n = (size_t)width * plane->bytes;
  Strip strip;

  strip.row[0] = strip.row[1] = UINT32_MAX;
  for (uint32_t x = 0; x < width; x++)
    strip.taps[x] = gpu_resize_linear (&plane->x, x0 + x);

  for (uint32_t y = 0; y < plane->y.dst; y++) {
    GpuResizeTap tap = gpu_resize_linear (&plane->y, y);
    const uint32_t *a = mixed_row (&strip, plane, width, tap.i0);
    const uint32_t *b = mixed_row (&strip, plane, width, tap.i1);
    uint8_t *restrict dst = plane->dst + y * plane->dst_stride + (size_t)x0 * plane->bytes;

    for (size_t i = 0; i < n; i++)
      dst[i] = gpu_resize_mix_rows (a[i], b[i], tap.weight);
  }
}

static void
run_nearest (const void *data, GpuExtent extent)
{
  const GpuResizeArgs *args = data;

  for (unsigned i = 0; i < GPU_PIXEL_PLANES && args->plane[i].src; i++)
    for (uint32_t x = 0; x < args->plane[i].x.dst; x += MIN (STRIP, args->plane[i].x.dst - x))
      nearest_strip (&args->plane[i], x, MIN (STRIP, args->plane[i].x.dst - x));
}

static void
run_bilinear (const void *data, GpuExtent extent)
{
  const GpuResizeArgs *args = data;

  for (unsigned i = 0; i < GPU_PIXEL_PLANES && args->plane[i].src; i++)
    for (uint32_t x = 0; x < args->plane[i].x.dst; x += MIN (STRIP, args->plane[i].x.dst - x))
      bilinear_strip (&args->plane[i], x, MIN (STRIP, args->plane[i].x.dst - x));
}

static const GpuKernel kernels[] = {
    [GPU_RESIZE_NEAREST] = {.name = "gpu_resize_nearest_rows",
                            .args_size = sizeof (GpuResizeArgs),
                            .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
                            .run = run_nearest},
    [GPU_RESIZE_BILINEAR] = {.name = "gpu_resize_bilinear_rows",
                             .args_size = sizeof (GpuResizeArgs),
                             .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
                             .run = run_bilinear},
};

static GpuResizeAxis
resize_axis (uint32_t src, uint32_t dst)
{
  GpuResizeAxis axis = {.src = src, .dst = dst};
  uint64_t divisor = 2 * (uint64_t)dst;
  uint64_t limit;

  /* floor (n * reciprocal / 2^64) is floor (n / divisor) for all n whose product with the divisor is below 2^64; the
   * greatest n is that of a position in 1/4096 at the far edge. */
  if (!__builtin_mul_overflow (divisor * src, divisor, &limit) &&
      !__builtin_mul_overflow (limit, (uint64_t)2 * GPU_RESIZE_ONE, &limit))
    axis.reciprocal = UINT64_MAX / divisor + 1;
  return axis;
}

/* Pixels of 3 bytes are read as bytes and written as words; others are read and written whole. */
static bool
is_aligned (const GpuResizePlane *plane)
{
  size_t src = plane->bytes == 3 ? 1 : plane->bytes;
  size_t dst = plane->bytes == 3 ? 4 : GPU_RESIZE_PIXELS * plane->bytes;

  return !(((uintptr_t)plane->src | plane->src_stride) & (src - 1)) &&
         !(((uintptr_t)plane->dst | plane->dst_stride) & (dst - 1));
}

bool
gpu_resize (GpuStream *stream, GpuImage *src, GpuImage *dst, GpuResizeFilter filter, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src);
  const GpuImageSpec *to = gpu_image_spec (dst);
  GpuExtent extent = {0, 0, 1};
  GpuResizeArgs args = {0};

  if ((unsigned)filter >= G_N_ELEMENTS (kernels)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "There is no resize filter number %d: use one of GpuResizeFilter",
                 (int)filter);
    return false;
  }
  if (!gpu_op_check ("Resize", stream, src, dst, error) || !gpu_op_check_apart ("Resize", src, dst, error))
    return false;

  for (unsigned i = 0; i < gpu_format_info (from->format)->n_planes; i++) {
    GpuResizePlane *plane = &args.plane[i];

    plane->src = gpu_op_plane (src, i);
    plane->dst = gpu_op_plane (dst, i);
    plane->src_stride = from->stride[i];
    plane->dst_stride = to->stride[i];
    plane->x = resize_axis (gpu_image_spec_plane_width (from, i), gpu_image_spec_plane_width (to, i));
    plane->y = resize_axis (gpu_image_spec_plane_height (from, i), gpu_image_spec_plane_height (to, i));
    plane->bytes = gpu_format_info (from->format)->plane[i].pixel_bytes;
    plane->aligned = is_aligned (plane);
    extent.x = MAX (extent.x, (plane->x.dst - 1) / GPU_RESIZE_PIXELS + 1);
    gpu_op_add_rows (&args.rows, i, plane->y.dst, GPU_RESIZE_BLOCK_Y);
  }
  extent.y = gpu_op_extent_y (&args.rows, GPU_RESIZE_BLOCK_Y);
  return gpu_images_launch (stream, src, dst, &kernels[filter], &args, extent, error);
}
