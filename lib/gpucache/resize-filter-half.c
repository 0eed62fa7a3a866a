/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling to exactly half with an antialiased filter on a GPU: when the kernels for that can, and their launch. They
 * need no tables.
 */
#include "op-batch-priv.h"
#include "resize-filter-half.h"
#include "resize-pixel.h"
#include "resize-priv.h"

/**
 * Method:
 * @lanes: of a warp, those that make something
 * @least: of the destination's width and height: less, and a sample would have two edges
 * @blocks: that a multiprocessor has room for
 * @extra: rows of the source that a thread filters before it makes anything
 * @fewest, @most: rows that a thread makes a part of
 */
typedef struct {
  GpuKernel kernel;
  uint32_t lanes;
  uint32_t least;
  uint32_t blocks;
  uint32_t extra;
  uint32_t fewest;
  uint32_t most;
} Method;

static const Method bilinear = {
    .kernel = {.name = "gpu_resize_filter_half",
               .args_size = sizeof (GpuFilterHalfArgs),
               .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
               .table_name = "gpu_resize_filter_half_table"},
    .lanes = GPU_RESIZE_BLOCK_X,
    .least = 2,
    .blocks = GPU_FILTER_HALF_BLOCKS,
    .extra = 2,
    .fewest = 2,
    .most = 8,
};

static const Method bicubic = {
    .kernel = {.name = "gpu_resize_cubic_half",
               .args_size = sizeof (GpuFilterHalfArgs),
               .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
               .table_name = "gpu_resize_cubic_half_table"},
    .lanes = GPU_CUBIC_HALF_LANES,
    .least = 4,
    .blocks = GPU_CUBIC_HALF_BLOCKS,
    .extra = 6,
    .fewest = 2,
    .most = 24,
};

/* What a GPU is taken to have, to tell how many rows a thread should make. */
#define MULTIPROCESSORS 132u

static const Method *
find_method (const GpuResize *params)
{
  if (!params->antialias)
    return NULL;
  return params->filter == GPU_RESIZE_BILINEAR ? &bilinear : params->filter == GPU_RESIZE_BICUBIC ? &bicubic : NULL;
}

static bool
is_double (uint32_t size, uint32_t half)
{
  return size == 2 * (uint64_t)half;
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
  const Method *method = find_method (params);

  if (!method || info->bits > 8 || gpu_device_is_host (gpu_image_device (src)) || !is_whole (box, from) ||
      part->width != to->width || part->height != to->height)
    return false;
  for (unsigned i = 0; i < info->n_planes; i++) {
    const uint32_t bytes = info->plane[i].pixel_bytes, width = gpu_image_spec_plane_width (to, i);
    const uint32_t height = gpu_image_spec_plane_height (to, i);
    const uintptr_t starts =
        (uintptr_t)gpu_op_plane (src, i) | from->stride[i] | (uintptr_t)gpu_op_plane (dst, i) | to->stride[i];

    if (!is_double (gpu_image_spec_plane_width (from, i), width) || width < method->least ||
        !is_double (gpu_image_spec_plane_height (from, i), height) || height < method->least || starts & 15 ||
        (uint64_t)width * bytes > INT32_MAX || height > INT32_MAX / 2 || width * bytes % gpu_resize_half_bytes (bytes))
      return false;
  }
  return true;
}

/* Blocks beside one another for @width pixels of @bytes. */
static uint32_t
blocks_across (const Method *method, uint32_t width, uint32_t bytes)
{
  return (width * bytes - 1) / (method->lanes * gpu_resize_half_bytes (bytes)) + 1;
}

/* Blocks of one image, whose threads make @lines rows each. */
static uint64_t
count_blocks (const Method *method, const GpuImageSpec *spec, uint32_t lines)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);
  uint64_t n = 0;

  for (unsigned i = 0; i < info->n_planes; i++)
    n += (uint64_t)blocks_across (method, gpu_image_spec_plane_width (spec, i), info->plane[i].pixel_bytes) *
         ((gpu_image_spec_plane_height (spec, i) - 1) / (lines * GPU_RESIZE_BLOCK_Y) + 1);
  return n;
}

/* The rows of a thread with which a launch for @n such images takes least: blocks run as many at a time as there is
 * room for, each set as long as its threads filter rows. */
static uint32_t
choose_lines (const Method *method, const GpuImageSpec *spec, unsigned n)
{
  uint64_t least = UINT64_MAX;
  uint32_t best = method->fewest;

  for (uint32_t lines = method->fewest; lines <= method->most; lines++) {
    const uint64_t sets = (count_blocks (method, spec, lines) * n - 1) / (method->blocks * MULTIPROCESSORS) + 1;
    const uint64_t rows = sets * (2 * lines + method->extra);

    if (rows < least) {
      least = rows;
      best = lines;
    }
  }
  return best;
}

bool
gpu_resize_filter_half (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuResize *params, uint32_t alpha,
                        unsigned n, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);
  const Method *method = find_method (params);
  GpuFilterHalfArgs args = {.lines = choose_lines (method, to, n)};
  const unsigned block = args.lines * GPU_RESIZE_BLOCK_Y;
  GpuExtent extent = {0, 0, 1};

  for (unsigned i = 0; i < info->n_planes; i++) {
    GpuFilterHalfPlane *plane = &args.plane[i];

    *plane = (GpuFilterHalfPlane){.src = gpu_op_plane (src, i),
                                  .dst = gpu_op_plane (dst, i),
                                  .src_stride = from->stride[i],
                                  .dst_stride = to->stride[i],
                                  .width = gpu_image_spec_plane_width (to, i),
                                  .height = gpu_image_spec_plane_height (to, i),
                                  .bytes = info->plane[i].pixel_bytes,
                                  .alpha = alpha};
    extent.x = MAX (extent.x, blocks_across (method, plane->width, plane->bytes) * GPU_RESIZE_BLOCK_X);
    gpu_op_add_rows (&args.rows, i, plane->height, block);
  }
  extent.y = gpu_op_extent_y (&args.rows, block) / args.lines;
  return gpu_op_launch (op, src, dst, &method->kernel, &args, extent, error);
}
