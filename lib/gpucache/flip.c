/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Flips and quarter turns: arguments, checks, and the work on the CPU device.
 */
#include "flip.h"

#include "flip-pixel.h"
#include "op-batch-priv.h"

/* The edge of the squares in which the host transposes, in pixels, so that both pictures' cache lines are used whole.
 */
#define HOST_TILE 32u

/* In a row of blocks of tiles; the extent counts threads. */
#define MAX_BLOCKS_X (UINT32_C (1) << 26)

/* What messages begin with. */
static const char *const operation_names[] = {
    [GPU_ORIENTATION_IDENTITY] = "Flip (identity)",
    [GPU_ORIENTATION_90R] = "Flip (90r)",
    [GPU_ORIENTATION_180] = "Flip (180)",
    [GPU_ORIENTATION_90L] = "Flip (90l)",
    [GPU_ORIENTATION_HORIZONTAL] = "Flip (horizontal)",
    [GPU_ORIENTATION_VERTICAL] = "Flip (vertical)",
    [GPU_ORIENTATION_UL_LR] = "Flip (ul-lr)",
    [GPU_ORIENTATION_UR_LL] = "Flip (ur-ll)",
};

bool
gpu_orientation_is_transposed (GpuOrientation orientation)
{
  return orientation == GPU_ORIENTATION_90R || orientation == GPU_ORIENTATION_90L ||
         orientation == GPU_ORIENTATION_UL_LR || orientation == GPU_ORIENTATION_UR_LL;
}

GPU_OP_LOOP void
copy_pixels (const GpuFlipPlane *plane, uint32_t x0, uint32_t x1, uint32_t y, size_t bytes)
{
  uint8_t *restrict dst = plane->dst + y * plane->dst_stride;
  const uint8_t *src = gpu_flip_source (plane, 0, y);
  int64_t step = plane->step_x;

  for (size_t x = x0; x < x1; x++)
    memcpy (dst + x * bytes, src + (int64_t)x * step, bytes);
}

GPU_OP_LOOP void
reverse_rows (const GpuFlipPlane *plane, size_t bytes)
{
  size_t last = plane->width - 1;

  for (uint32_t y = 0; y < plane->height; y++) {
    uint8_t *restrict dst = plane->dst + y * plane->dst_stride;
    const uint8_t *src = gpu_flip_source (plane, plane->width - 1, y);

    for (size_t x = 0; x <= last; x++)
      memcpy (dst + x * bytes, src + (last - x) * bytes, bytes);
  }
}

GPU_OP_LOOP void
transpose (const GpuFlipPlane *plane, size_t bytes)
{
  for (uint32_t y0 = 0; y0 < plane->height; y0 += MIN (HOST_TILE, plane->height - y0))
    for (uint32_t x0 = 0; x0 < plane->width; x0 += MIN (HOST_TILE, plane->width - x0))
      for (uint32_t y = y0; y < y0 + MIN (HOST_TILE, plane->height - y0); y++)
        copy_pixels (plane, x0, x0 + MIN (HOST_TILE, plane->width - x0), y, bytes);
}

static void
run_rows (const void *data, GpuExtent extent)
{
  const GpuFlipArgs *args = data;

  for (const GpuFlipPlane *plane = args->plane; plane < args->plane + GPU_PIXEL_PLANES && plane->src; plane++) {
    if (plane->step_x > 0)
      for (uint32_t y = 0; y < plane->height; y++)
        memcpy (plane->dst + y * plane->dst_stride, gpu_flip_source (plane, 0, y), (size_t)plane->width * plane->bytes);
    else if (plane->bytes == 1)
      reverse_rows (plane, 1);
    else if (plane->bytes == 2)
      reverse_rows (plane, 2);
    else if (plane->bytes == 3)
      reverse_rows (plane, 3);
    else
      reverse_rows (plane, 4);
  }
}

static void
run_tiles (const void *data, GpuExtent extent)
{
  const GpuFlipArgs *args = data;

  for (const GpuFlipPlane *plane = args->plane; plane < args->plane + GPU_PIXEL_PLANES && plane->src; plane++) {
    if (plane->bytes == 1)
      transpose (plane, 1);
    else if (plane->bytes == 2)
      transpose (plane, 2);
    else if (plane->bytes == 3)
      transpose (plane, 3);
    else
      transpose (plane, 4);
  }
}

static const GpuKernel rows_kernel = {
    .name = "gpu_flip_rows",
    .args_size = sizeof (GpuFlipArgs),
    .block = {GPU_FLIP_BLOCK_X, GPU_FLIP_BLOCK_Y, 1},
    .run = run_rows,
    .table_name = "gpu_flip_rows_table",
};

static const GpuKernel tiles_kernel = {
    .name = "gpu_flip_tiles",
    .args_size = sizeof (GpuFlipArgs),
    .block = {GPU_FLIP_BLOCK_X, GPU_FLIP_BLOCK_Y, 1},
    .run = run_tiles,
    .table_name = "gpu_flip_tiles_table",
};

static const GpuKernel any_rows_kernel = {
    .name = "gpu_flip_any_rows",
    .args_size = sizeof (GpuFlipArgs),
    .block = {GPU_FLIP_BLOCK_X, GPU_FLIP_BLOCK_Y, 1},
    .run = run_rows,
    .table_name = "gpu_flip_any_rows_table",
};

static const GpuKernel any_tiles_kernel = {
    .name = "gpu_flip_any_tiles",
    .args_size = sizeof (GpuFlipArgs),
    .block = {GPU_FLIP_BLOCK_X, GPU_FLIP_BLOCK_Y, 1},
    .run = run_tiles,
    .table_name = "gpu_flip_any_tiles_table",
};

static GpuFlipPlane
flip_plane (GpuImage *src, GpuImage *dst, unsigned plane, GpuOrientation orientation)
{
  const GpuImageSpec *from = gpu_image_spec (src);
  const GpuImageSpec *to = gpu_image_spec (dst);
  bool transposed = gpu_orientation_is_transposed (orientation);
  /* Whether the source is walked from its right, from its bottom. */
  bool right = orientation == GPU_ORIENTATION_180 || orientation == GPU_ORIENTATION_90L ||
               orientation == GPU_ORIENTATION_HORIZONTAL || orientation == GPU_ORIENTATION_UR_LL;
  bool bottom = orientation == GPU_ORIENTATION_180 || orientation == GPU_ORIENTATION_90R ||
                orientation == GPU_ORIENTATION_VERTICAL || orientation == GPU_ORIENTATION_UR_LL;
  uint32_t bytes = gpu_format_info (from->format)->plane[plane].pixel_bytes;
  int64_t across = right ? -(int64_t)bytes : (int64_t)bytes;
  int64_t down = bottom ? -(int64_t)from->stride[plane] : (int64_t)from->stride[plane];
  const uint8_t *start = gpu_op_plane (src, plane);

  if (right)
    start += gpu_image_spec_row_bytes (from, plane) - bytes;
  if (bottom)
    start += (gpu_image_spec_plane_height (from, plane) - 1) * from->stride[plane];

  return (GpuFlipPlane){
      .src = start,
      .dst = gpu_op_plane (dst, plane),
      .step_x = transposed ? down : across,
      .step_y = transposed ? across : down,
      .dst_stride = to->stride[plane],
      .width = gpu_image_spec_plane_width (to, plane),
      .height = gpu_image_spec_plane_height (to, plane),
      .bytes = bytes,
  };
}

/* Whether 16 bytes of the destination, and, where rows stay rows, the 16 of the source that they come from, lie at
 * multiples of 16, and rows are of a size that 32 bits are enough for. */
static bool
is_in_lines (const GpuFlipPlane *plane, bool transposed)
{
  const size_t row_bytes = (size_t)plane->width * plane->bytes;
  uintptr_t misaligned = (uintptr_t)plane->dst | plane->dst_stride;

  if (!transposed) {
    misaligned |= (uintptr_t)plane->step_y;
    misaligned |= plane->step_x > 0 ? (uintptr_t)plane->src : ((uintptr_t)plane->src + plane->bytes) | row_bytes;
  }
  return !(misaligned & 15) && row_bytes <= INT32_MAX;
}

/* Threads in x that a row needs: one for each 16-byte line of the destination that it touches. */
static uint32_t
row_threads (const GpuFlipPlane *plane)
{
  uint64_t row_bytes = (uint64_t)plane->width * plane->bytes;
  bool aligned = !(((uintptr_t)plane->dst | plane->dst_stride) & 15);

  return (uint32_t)((row_bytes + (aligned ? 15 : 30)) / 16);
}

static GpuExtent
add_rows (GpuFlipArgs *args, unsigned n_planes, bool in_lines)
{
  const unsigned block_rows = in_lines ? GPU_FLIP_ROWS * GPU_FLIP_BLOCK_Y : GPU_FLIP_BLOCK_Y;
  GpuExtent extent = {0, 0, 1};

  for (unsigned i = 0; i < n_planes; i++) {
    extent.x = MAX (extent.x, row_threads (&args->plane[i]));
    gpu_op_add_rows (&args->rows, i, args->plane[i].height, block_rows);
  }
  extent.y = gpu_op_extent_y (&args->rows, block_rows) / (block_rows / GPU_FLIP_BLOCK_Y);
  return extent;
}

/* A block for each tile of all planes, in as many rows of blocks as it takes. */
static GpuExtent
add_tiles (GpuFlipArgs *args, unsigned n_planes, bool in_lines)
{
  for (unsigned i = 0; i < n_planes; i++) {
    GpuFlipPlane *plane = &args->plane[i];
    const uint32_t down = (plane->height - 1) / gpu_flip_tile_height (plane->bytes, in_lines) + 1;

    plane->across = (plane->width - 1) / gpu_flip_tile_width (plane->bytes, in_lines) + 1;
    plane->inverse = (uint32_t)(((UINT64_C (1) << 32) + plane->across - 1) / plane->across);
    gpu_op_add_rows (&args->rows, i, plane->across * down, 1);
  }
  const uint64_t total = args->rows.total, across = MIN (total, MAX_BLOCKS_X);
  return (GpuExtent){(uint32_t)across * GPU_FLIP_BLOCK_X, (uint32_t)((total - 1) / across + 1) * GPU_FLIP_BLOCK_Y, 1};
}

static bool
flip (const GpuOp *op, GpuImage *src, GpuImage *dst, const void *params, void *data, GError **error)
{
  const GpuOrientation orientation = *(const GpuOrientation *)params;
  const GpuImageSpec *spec = gpu_image_spec (src);
  bool transposed = gpu_orientation_is_transposed (orientation);
  GpuFlipArgs args = {0};
  GpuExtent extent;

  if ((unsigned)orientation >= G_N_ELEMENTS (operation_names)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "There is no orientation number %d: use one of GpuOrientation",
                 (int)orientation);
    return false;
  }
  const char *name = operation_names[orientation];
  if (!gpu_op_check (name, op->stream, src, dst, error) ||
      !gpu_op_check_size (name, dst, transposed ? spec->height : spec->width, transposed ? spec->width : spec->height,
                          error) ||
      !gpu_op_check_apart (name, src, dst, error))
    return false;

  bool in_lines = true;
  for (unsigned i = 0; i < gpu_format_info (spec->format)->n_planes; i++) {
    args.plane[i] = flip_plane (src, dst, i, orientation);
    in_lines = in_lines && is_in_lines (&args.plane[i], transposed);
  }
  if (transposed)
    extent = add_tiles (&args, gpu_format_info (spec->format)->n_planes, in_lines);
  else
    extent = add_rows (&args, gpu_format_info (spec->format)->n_planes, in_lines);
  const GpuKernel *kernel =
      transposed ? (in_lines ? &tiles_kernel : &any_tiles_kernel) : (in_lines ? &rows_kernel : &any_rows_kernel);
  return gpu_op_launch (op, src, dst, kernel, &args, extent, error);
}

bool
gpu_flip (GpuStream *stream, GpuImage *src, GpuImage *dst, GpuOrientation orientation, GError **error)
{
  const GpuOp op = {stream, NULL};

  return flip (&op, src, dst, &orientation, NULL, error);
}

bool
gpu_flip_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const GpuOrientation *orientations, unsigned n,
                GError **error)
{
  return gpu_op_run_batch ("Flip", stream, src, dst, flip, orientations, sizeof *orientations, n, NULL, error);
}
