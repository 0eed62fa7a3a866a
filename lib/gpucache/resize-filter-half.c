/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling to exactly half with an antialiased bilinear filter on a GPU: when the kernel for that can, and its launch.
 * It needs no tables.
 */
#include "op-batch-priv.h"
#include "resize-filter-half.h"
#include "resize-pixel.h"
#include "resize-priv.h"

static const GpuKernel kernel = {
    .name = "gpu_resize_filter_half",
    .args_size = sizeof (GpuFilterHalfArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .table_name = "gpu_resize_filter_half_table",
};

/* Blocks of a launch that are enough for a GPU to have something to do in place of what waits for memory: three for
 * each of some 130 multiprocessors. */
#define ENOUGH_BLOCKS 400u

/* Whether @size is the double of @half, which is more than one sample: a single one has both edges. */
static bool
is_double (uint32_t size, uint32_t half)
{
  return half > 1 && size == 2 * (uint64_t)half;
}

static bool
is_whole (const GpuResizeBox *box, const GpuImageSpec *spec)
{
  return box->x == 0 && box->y == 0 && box->width == spec->width && box->height == spec->height;
}

bool
gpu_resize_is_filter_half (GpuImage *src, GpuImage *dst, const GpuResize *params, const GpuResizeBox *box,
                           const GpuResizeRectangle *part)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);

  if (params->filter != GPU_RESIZE_BILINEAR || !params->antialias || info->bits > 8 ||
      gpu_device_is_host (gpu_image_device (src)) || !is_whole (box, from) || part->width != to->width ||
      part->height != to->height)
    return false;
  for (unsigned i = 0; i < info->n_planes; i++) {
    const uint32_t bytes = info->plane[i].pixel_bytes, width = gpu_image_spec_plane_width (to, i);
    const uintptr_t starts =
        (uintptr_t)gpu_op_plane (src, i) | from->stride[i] | (uintptr_t)gpu_op_plane (dst, i) | to->stride[i];

    if (!is_double (gpu_image_spec_plane_width (from, i), width) ||
        !is_double (gpu_image_spec_plane_height (from, i), gpu_image_spec_plane_height (to, i)) || starts & 15 ||
        (uint64_t)width * bytes > INT32_MAX || width * bytes % gpu_resize_half_bytes (bytes))
      return false;
  }
  return true;
}

/* Blocks of one image. */
static uint32_t
count_blocks (const GpuImageSpec *spec, uint32_t lines)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);
  const uint32_t rows = lines * GPU_RESIZE_BLOCK_Y;
  uint64_t n = 0;

  for (unsigned i = 0; i < info->n_planes; i++) {
    const uint32_t bytes = info->plane[i].pixel_bytes, block_bytes = GPU_RESIZE_BLOCK_X * gpu_resize_half_bytes (bytes);
    const uint64_t across = (gpu_image_spec_plane_width (spec, i) * bytes - 1) / block_bytes + 1;

    n += across * ((gpu_image_spec_plane_height (spec, i) - 1) / rows + 1);
  }
  return (uint32_t)MIN (n, UINT32_MAX);
}

bool
gpu_resize_filter_half (const GpuOp *op, GpuImage *src, GpuImage *dst, uint32_t alpha, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);
  const bool is_enough = op->plan || count_blocks (to, GPU_FILTER_HALF_LINES) >= ENOUGH_BLOCKS;
  GpuFilterHalfArgs args = {.lines = is_enough ? GPU_FILTER_HALF_LINES : GPU_FILTER_HALF_FEW_LINES};
  const unsigned block = args.lines * GPU_RESIZE_BLOCK_Y;
  GpuExtent extent = {0, 0, 1};

  for (unsigned i = 0; i < info->n_planes; i++) {
    const uint32_t bytes = info->plane[i].pixel_bytes;
    GpuFilterHalfPlane *plane = &args.plane[i];

    *plane = (GpuFilterHalfPlane){.src = gpu_op_plane (src, i),
                                  .dst = gpu_op_plane (dst, i),
                                  .src_stride = from->stride[i],
                                  .dst_stride = to->stride[i],
                                  .width = gpu_image_spec_plane_width (to, i),
                                  .height = gpu_image_spec_plane_height (to, i),
                                  .bytes = bytes,
                                  .alpha = alpha};
    extent.x = MAX (extent.x, plane->width * bytes / gpu_resize_half_bytes (bytes));
    gpu_op_add_rows (&args.rows, i, plane->height, block);
  }
  extent.y = gpu_op_extent_y (&args.rows, block) / args.lines;
  return gpu_op_launch (op, src, dst, &kernel, &args, extent, error);
}
