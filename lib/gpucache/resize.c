/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling: arguments, checks, and what needs no table of weights. The work on the CPU device is in resize-cpu.c.
 */
#include "resize.h"

#include "op-batch-priv.h"
#include "resize-pixel.h"
#include "resize-priv.h"

#include <math.h>

/* Arguments that leave a choice, made definite. */

static bool
check_box (const GpuImageSpec *spec, const GpuResize *params, bool whole_pixels, GpuResizeBox *box, GError **error)
{
  *box = params->src;
  if (box->x == 0 && box->y == 0 && box->width == 0 && box->height == 0)
    *box = (GpuResizeBox){0, 0, spec->width, spec->height};
  /* NaN is not inside either. */
  if (!(box->x >= 0 && box->y >= 0 && box->width > 0 && box->height > 0 && box->x + box->width <= spec->width &&
        box->y + box->height <= spec->height)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Resize cannot take %gx%g pixels at %g,%g of a source of %ux%u: use a rectangle inside it", box->width,
                 box->height, box->x, box->y, spec->width, spec->height);
    return false;
  }
  if (whole_pixels && (box->x != floor (box->x) || box->y != floor (box->y) || box->width != floor (box->width) ||
                       box->height != floor (box->height))) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Resize takes whole pixels only without antialiasing, not %gx%g at %g,%g: round them, or use another "
                 "filter",
                 box->width, box->height, box->x, box->y);
    return false;
  }
  return true;
}

static bool
is_edge_allowed (uint32_t edge, uint32_t size, unsigned shift)
{
  return edge == size || !(edge & ((1u << shift) - 1));
}

static bool
check_rectangle (const GpuImageSpec *spec, const GpuResize *params, GpuResizeRectangle *part, GError **error)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);

  *part = params->dst;
  if (part->x == 0 && part->y == 0 && part->width == 0 && part->height == 0)
    *part = (GpuResizeRectangle){0, 0, spec->width, spec->height};
  if (part->width == 0 || part->height == 0 || (uint64_t)part->x + part->width > spec->width ||
      (uint64_t)part->y + part->height > spec->height) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Resize cannot write %ux%u pixels at %u,%u to a destination of %ux%u: use a rectangle inside it",
                 part->width, part->height, part->x, part->y, spec->width, spec->height);
    return false;
  }
  for (unsigned i = 0; i < info->n_planes; i++) {
    const unsigned w_shift = info->plane[i].w_shift, h_shift = info->plane[i].h_shift;

    if (part->x & ((1u << w_shift) - 1) || part->y & ((1u << h_shift) - 1) ||
        !is_edge_allowed (part->x + part->width, spec->width, w_shift) ||
        !is_edge_allowed (part->y + part->height, spec->height, h_shift)) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                   "A part of %s cannot be %ux%u pixels at %u,%u, with an edge between two chroma samples: use even "
                   "numbers",
                   info->name, part->width, part->height, part->x, part->y);
      return false;
    }
  }
  return true;
}

GpuResizeRectangle
gpu_resize_plane_part (const GpuImageSpec *spec, const GpuResizeRectangle *part, unsigned plane)
{
  const GpuPlaneInfo *info = &gpu_format_info (spec->format)->plane[plane];
  const uint32_t right = (part->x + part->width - 1) >> info->w_shift;
  const uint32_t bottom = (part->y + part->height - 1) >> info->h_shift;
  const uint32_t x = part->x >> info->w_shift, y = part->y >> info->h_shift;

  return (GpuResizeRectangle){x, y, right - x + 1, bottom - y + 1};
}

GpuFilterAxis
gpu_resize_plane_axis (double from, double size, uint32_t image, uint32_t plane, unsigned shift, uint32_t out)
{
  const double to = from + size >= image ? plane : (from + size) / (1 << shift);

  return (GpuFilterAxis){.in = plane, .out = out, .end = plane, .from = from / (1 << shift), .to = to};
}

/* Whether the source's part begins between samples in all planes. */
static bool
is_whole (const GpuImageSpec *spec, const GpuResizeBox *box)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);

  for (unsigned i = 0; i < info->n_planes; i++) {
    const GpuFilterAxis across = gpu_resize_plane_axis (
        box->x, box->width, spec->width, gpu_image_spec_plane_width (spec, i), info->plane[i].w_shift, 1);
    const GpuFilterAxis down = gpu_resize_plane_axis (box->y, box->height, spec->height,
                                                      gpu_image_spec_plane_height (spec, i), info->plane[i].h_shift, 1);

    if (across.from != floor (across.from) || down.from != floor (down.from))
      return false;
  }
  return true;
}

uint32_t
gpu_resize_border_pixel (const GpuFormatInfo *info, unsigned plane, const uint8_t *border)
{
  uint8_t bytes[4] = {0};
  uint32_t pixel;

  memset (bytes, 255, info->plane[plane].pixel_bytes);
  for (unsigned c = 0; c < info->n_channels; c++) {
    if (info->channel_plane[c] != plane)
      continue;
    /* Of 16 bits the upper 10 count: four times the value of 8 bits. */
    if (info->bits > 8)
      bytes[info->channel[c]] = 0;
    bytes[info->channel[c] + (info->bits > 8)] = border[c];
  }
  memcpy (&pixel, bytes, sizeof pixel);
  return pixel;
}

bool
gpu_resize_is_aligned (const void *src, uint64_t src_stride, const void *dst, uint64_t dst_stride, uint32_t bytes)
{
  const uintptr_t src_mask = bytes == 3 ? 0 : bytes - 1;
  const uintptr_t dst_mask = bytes == 3 ? 3 : GPU_RESIZE_PIXELS * bytes - 1;

  return !(((uintptr_t)src | src_stride) & src_mask) && !(((uintptr_t)dst | dst_stride) & dst_mask);
}

uint32_t
gpu_resize_alpha_byte (const GpuFormatInfo *info, const GpuResize *params)
{
  return info->has_alpha && !params->straight_alpha ? (uint32_t)info->channel[3] : 4;
}

bool
gpu_resize_is_direct (const GpuResize *params)
{
  return params->filter == GPU_RESIZE_NEAREST || (params->filter == GPU_RESIZE_BILINEAR && !params->antialias);
}

/* Nearest, and bilinear without antialias: one launch. */

static const GpuKernelAddresses addresses[] = {
    {offsetof (GpuResizeArgs, plane[0].src), 1, false},
    {offsetof (GpuResizeArgs, plane[0].dst), 1, true},
    {offsetof (GpuResizeArgs, plane[1].src), 1, false},
    {offsetof (GpuResizeArgs, plane[1].dst), 1, true},
    {offsetof (GpuResizeArgs, plane[2].src), 1, false},
    {offsetof (GpuResizeArgs, plane[2].dst), 1, true},
    {offsetof (GpuResizeArgs, plane[3].src), 1, false},
    {offsetof (GpuResizeArgs, plane[3].dst), 1, true},
    {0},
};

static const GpuKernel nearest_kernel = {
    .name = "gpu_resize_nearest_rows",
    .args_size = sizeof (GpuResizeArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_nearest,
    .table_name = "gpu_resize_nearest_rows_table",
    .addresses = addresses,
};

static const GpuKernel bilinear_kernel = {
    .name = "gpu_resize_bilinear_rows",
    .args_size = sizeof (GpuResizeArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_bilinear,
    .table_name = "gpu_resize_bilinear_rows_table",
    .addresses = addresses,
};

static const GpuKernel bilinear_lines_kernel = {
    .name = "gpu_resize_bilinear_lines",
    .args_size = sizeof (GpuResizeArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_bilinear,
    .table_name = "gpu_resize_bilinear_lines_table",
    .addresses = addresses,
};

static const GpuKernel bilinear_half_kernel = {
    .name = "gpu_resize_bilinear_half",
    .args_size = sizeof (GpuResizeArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_bilinear,
    .table_name = "gpu_resize_bilinear_half_table",
    .addresses = addresses,
};

/* Whether the fast bilinear kernel can: no border, rows that are whole words, and sizes that 32 bits are enough for. */
static bool
is_in_lines (const GpuResizePlane *plane)
{
  const uint64_t src_bytes = (uint64_t)plane->x.src * plane->bytes, dst_bytes = (uint64_t)plane->width * plane->bytes;
  const uintptr_t address = (uintptr_t)plane->src | plane->src_stride | (uintptr_t)plane->dst | plane->dst_stride;

  return !((address | src_bytes | dst_bytes) & 3) && src_bytes <= INT32_MAX && dst_bytes <= INT32_MAX &&
         plane->src_stride <= UINT32_MAX && plane->left == 0 && plane->top == 0 && plane->x.dst == plane->width &&
         plane->y.dst == plane->height && plane->x.reciprocal && plane->y.reciprocal && !plane->wide;
}

/* Whether the one for halves can, where is_in_lines(): what a thread of it makes is whole. */
static bool
is_half (const GpuResizePlane *plane)
{
  const uintptr_t address = (uintptr_t)plane->src | plane->src_stride | (uintptr_t)plane->dst | plane->dst_stride;

  return plane->x.src == 2 * (uint64_t)plane->x.dst && plane->y.src == 2 * (uint64_t)plane->y.dst && !(address & 15) &&
         plane->width * plane->bytes % gpu_resize_half_bytes (plane->bytes) == 0;
}

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

static bool
resize_directly (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuResize *params, const GpuResizeBox *box,
                 const GpuResizeRectangle *part, bool nearest, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);
  GpuExtent extent = {0, 0, 1};
  GpuResizeArgs args = {0};
  bool in_lines = !nearest, in_halves = !nearest;

  for (unsigned i = 0; i < info->n_planes; i++) {
    const GpuPlaneInfo *shape = &info->plane[i];
    const GpuResizeRectangle rectangle = gpu_resize_plane_part (to, part, i);
    const GpuFilterAxis across = gpu_resize_plane_axis (
        box->x, box->width, from->width, gpu_image_spec_plane_width (from, i), shape->w_shift, rectangle.width);
    const GpuFilterAxis down = gpu_resize_plane_axis (
        box->y, box->height, from->height, gpu_image_spec_plane_height (from, i), shape->h_shift, rectangle.height);
    const uint32_t x = (uint32_t)across.from, y = (uint32_t)down.from;
    GpuResizePlane *plane = &args.plane[i];

    plane->src = gpu_op_plane (src, i) + y * from->stride[i] + (size_t)x * shape->pixel_bytes;
    plane->dst = gpu_op_plane (dst, i);
    plane->src_stride = from->stride[i];
    plane->dst_stride = to->stride[i];
    plane->x = resize_axis ((uint32_t)ceil (across.to) - x, rectangle.width);
    plane->y = resize_axis ((uint32_t)ceil (down.to) - y, rectangle.height);
    plane->left = rectangle.x;
    plane->top = rectangle.y;
    plane->width = gpu_image_spec_plane_width (to, i);
    plane->height = gpu_image_spec_plane_height (to, i);
    plane->border = gpu_resize_border_pixel (info, i, params->border);
    plane->bytes = shape->pixel_bytes;
    plane->wide = info->bits > 8;
    plane->aligned = gpu_resize_is_aligned (plane->src, plane->src_stride, plane->dst, plane->dst_stride, plane->bytes);
    in_lines = in_lines && is_in_lines (plane);
    in_halves = in_halves && in_lines && is_half (plane);
  }
  const unsigned some =
      (in_halves ? GPU_RESIZE_HALF_LINES : GPU_RESIZE_LINES) * (op->plan ? GPU_RESIZE_TABLE_LINES : 1);
  const unsigned lines = in_lines ? some : 1, block = lines * GPU_RESIZE_BLOCK_Y;
  for (unsigned i = 0; i < info->n_planes; i++) {
    const GpuResizePlane *plane = &args.plane[i];
    const uint32_t line_pixels = plane->bytes > 2 ? 1 : 4 / plane->bytes;
    const uint32_t pixels = in_halves  ? gpu_resize_half_bytes (plane->bytes) / plane->bytes
                            : in_lines ? line_pixels
                                       : GPU_RESIZE_PIXELS;

    extent.x = MAX (extent.x, (plane->width - 1) / pixels + 1);
    gpu_op_add_rows (&args.rows, i, plane->height, block);
  }
  extent.y = gpu_op_extent_y (&args.rows, block) / lines;
  const GpuKernel *kernel = nearest     ? &nearest_kernel
                            : in_halves ? &bilinear_half_kernel
                            : in_lines  ? &bilinear_lines_kernel
                                        : &bilinear_kernel;
  return gpu_op_launch (op, src, dst, kernel, &args, extent, error);
}

/* A resizer, and how many geometries it is to keep. */
typedef struct {
  GpuResizer *resizer;
  unsigned most;
} Keeper;

static bool
resize (const GpuOp *op, GpuImage *src, GpuImage *dst, const void *data, void *keeper_data, GError **error)
{
  const GpuResize *params = data;
  const Keeper *keeper = keeper_data;
  const GpuImageSpec *from = gpu_image_spec (src);
  GpuResizeRectangle part;
  GpuResizeBox box;

  if ((unsigned)params->filter >= GPU_N_RESIZE_FILTERS) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "There is no resize filter number %d: use one of GpuResizeFilter",
                 (int)params->filter);
    return false;
  }
  const bool nearest = params->filter == GPU_RESIZE_NEAREST;
  const bool direct = gpu_resize_is_direct (params);
  if (!gpu_op_check ("Resize", op->stream, src, dst, error) || !gpu_op_check_apart ("Resize", src, dst, error) ||
      !check_box (from, params, direct, &box, error) || !check_rectangle (gpu_image_spec (dst), params, &part, error))
    return false;

  /* As Pillow, which copies where there is nothing to scale. */
  const bool same = box.x == 0 && box.y == 0 && box.width == from->width && box.height == from->height &&
                    part.width == from->width && part.height == from->height;
  if (same || (direct && is_whole (from, &box)))
    return resize_directly (op, src, dst, params, &box, &part, nearest || !direct, error);
  if (gpu_resize_is_filter_half (src, dst, params, &box, &part))
    return gpu_resize_filter_half (op, src, dst, params, gpu_resize_alpha_byte (gpu_format_info (from->format), params),
                                   keeper->most, error);
  return gpu_resize_filter (keeper->resizer, keeper->most, op, src, dst, params, &box, &part, error);
}

bool
gpu_resizer_run (GpuResizer *resizer, GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuResize *params,
                 GError **error)
{
  const GpuOp op = {stream, NULL};
  Keeper keeper = {resizer, 1};

  return resize (&op, src, dst, params, &keeper, error);
}

bool
gpu_resizer_run_batch (GpuResizer *resizer, GpuStream *stream, GpuBatch *src, GpuBatch *dst, const GpuResize *params,
                       unsigned n, GError **error)
{
  Keeper keeper = {resizer, gpu_batch_size (src)};

  return gpu_op_run_batch ("Resize", stream, src, dst, resize, params, sizeof *params, n, &keeper, error);
}

bool
gpu_resize_full (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuResize *params, GError **error)
{
  g_autoptr (GpuResizer) resizer = gpu_resizer_new ();

  return gpu_resizer_run (resizer, stream, src, dst, params, error);
}

bool
gpu_resize (GpuStream *stream, GpuImage *src, GpuImage *dst, GpuResizeFilter filter, GError **error)
{
  const GpuResize params = {.filter = filter,
                            .antialias = filter != GPU_RESIZE_NEAREST && filter != GPU_RESIZE_BILINEAR};

  return gpu_resize_full (stream, src, dst, &params, error);
}
