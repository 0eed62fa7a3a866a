/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling: arguments, checks, and the tables of weights that a GpuResizer keeps. The work on the CPU device is in
 * resize-cpu.c.
 */
#include "resize.h"

#include "op-batch-priv.h"
#include "resize-pixel.h"
#include "resize-priv.h"
#include "resize-tile.h"

#include <math.h>

/* What the tables of one plane depend on. */
typedef struct {
  GpuFilterAxis axis[2]; /* across, down */
  uint32_t at[2];        /* where the destination's part begins */
  uint32_t taps[2];
  size_t table[2];     /* where they begin, in numbers */
  uint32_t first, end; /* the source's rows that any weight is for */
  GpuTilePlan tile;
  size_t tile_table[2]; /* as above, in tiles */
} PlanePlan;

/* What they all depend on; compared as bytes, and without padding. */
typedef struct {
  GpuDevice *device;
  uint32_t src_width, src_height;
  GpuResizeBox src;
  uint32_t dst_width, dst_height; /* with the border */
  GpuResizeRectangle dst;
  GpuFormat format;
  uint32_t filter;
  uint32_t antialias;
  uint32_t clip;
} Key;

typedef struct {
  Key key;
  PlanePlan plane[GPU_MAX_PLANES];
  bool in_tiles;
  GpuImage *table; /* on the device; holds it */
} Weights;

struct GpuResizer {
  GPtrArray *weights; /* of Weights; those used last come last */
};

static void
weights_free (void *data)
{
  Weights *weights = data;

  gpu_image_unref (weights->table);
  g_free (weights);
}

GpuResizer *
gpu_resizer_new (void)
{
  GpuResizer *resizer = g_new0 (GpuResizer, 1);

  resizer->weights = g_ptr_array_new_with_free_func (weights_free);
  return resizer;
}

void
gpu_resizer_free (GpuResizer *resizer)
{
  if (!resizer)
    return;
  g_ptr_array_unref (resizer->weights);
  g_free (resizer);
}

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

/* The destination's part in samples of a plane. */
static GpuResizeRectangle
plane_part (const GpuImageSpec *spec, const GpuResizeRectangle *part, unsigned plane)
{
  const GpuPlaneInfo *info = &gpu_format_info (spec->format)->plane[plane];
  const uint32_t right = (part->x + part->width - 1) >> info->w_shift;
  const uint32_t bottom = (part->y + part->height - 1) >> info->h_shift;
  const uint32_t x = part->x >> info->w_shift, y = part->y >> info->h_shift;

  return (GpuResizeRectangle){x, y, right - x + 1, bottom - y + 1};
}

/* One side of the source's part in samples of a plane. Its far edge goes with the image's, which odd sizes round up. */
static GpuFilterAxis
plane_axis (double from, double size, uint32_t image, uint32_t plane, unsigned shift, uint32_t out)
{
  const double to = from + size >= image ? plane : (from + size) / (1 << shift);

  return (GpuFilterAxis){.in = plane, .out = out, .end = plane, .from = from / (1 << shift), .to = to};
}

/* What lies beside the part no longer counts. */
static void
clip_axis (GpuFilterAxis *axis)
{
  axis->first = (uint32_t)axis->from;
  axis->end = (uint32_t)ceil (axis->to);
}

/* Whether the source's part begins between samples in all planes. */
static bool
is_whole (const GpuImageSpec *spec, const GpuResizeBox *box)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);

  for (unsigned i = 0; i < info->n_planes; i++) {
    const GpuFilterAxis across =
        plane_axis (box->x, box->width, spec->width, gpu_image_spec_plane_width (spec, i), info->plane[i].w_shift, 1);
    const GpuFilterAxis down = plane_axis (box->y, box->height, spec->height, gpu_image_spec_plane_height (spec, i),
                                           info->plane[i].h_shift, 1);

    if (across.from != floor (across.from) || down.from != floor (down.from))
      return false;
  }
  return true;
}

/* The pixel of a plane in the border's colour. */
static uint32_t
border_pixel (const GpuFormatInfo *info, unsigned plane, const uint8_t *border)
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

/* Pixels of 3 bytes are read as bytes and written as words; others are read and written whole. */
static bool
is_aligned (const void *src, uint64_t src_stride, const void *dst, uint64_t dst_stride, uint32_t bytes)
{
  const uintptr_t src_mask = bytes == 3 ? 0 : bytes - 1;
  const uintptr_t dst_mask = bytes == 3 ? 3 : GPU_RESIZE_PIXELS * bytes - 1;

  return !(((uintptr_t)src | src_stride) & src_mask) && !(((uintptr_t)dst | dst_stride) & dst_mask);
}

/* Nearest, and bilinear without antialias: one launch. */

static const GpuKernel nearest_kernel = {
    .name = "gpu_resize_nearest_rows",
    .args_size = sizeof (GpuResizeArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_nearest,
    .table_name = "gpu_resize_nearest_rows_table",
};

static const GpuKernel bilinear_kernel = {
    .name = "gpu_resize_bilinear_rows",
    .args_size = sizeof (GpuResizeArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_bilinear,
    .table_name = "gpu_resize_bilinear_rows_table",
};

static const GpuKernel bilinear_lines_kernel = {
    .name = "gpu_resize_bilinear_lines",
    .args_size = sizeof (GpuResizeArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_bilinear,
    .table_name = "gpu_resize_bilinear_lines_table",
};

static const GpuKernel bilinear_half_kernel = {
    .name = "gpu_resize_bilinear_half",
    .args_size = sizeof (GpuResizeArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_bilinear,
    .table_name = "gpu_resize_bilinear_half_table",
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
    const GpuResizeRectangle rectangle = plane_part (to, part, i);
    const GpuFilterAxis across = plane_axis (box->x, box->width, from->width, gpu_image_spec_plane_width (from, i),
                                             shape->w_shift, rectangle.width);
    const GpuFilterAxis down = plane_axis (box->y, box->height, from->height, gpu_image_spec_plane_height (from, i),
                                           shape->h_shift, rectangle.height);
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
    plane->border = border_pixel (info, i, params->border);
    plane->bytes = shape->pixel_bytes;
    plane->wide = info->bits > 8;
    plane->aligned = is_aligned (plane->src, plane->src_stride, plane->dst, plane->dst_stride, plane->bytes);
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

/* Filters: weights from a table. On a GPU, samples of 8 bits take one launch, unless a picture shrinks by so much that
 * what a tile of the destination needs of the source does not fit shared memory. Other samples take two launches, and
 * so does the CPU device. To exactly half see resize-filter-half.c. */

static const GpuKernel tiles_kernel = {
    .name = "gpu_resize_filter_tiles",
    .args_size = sizeof (GpuTileArgs),
    .block = {32, GPU_TILE_WARPS, 1},
    .table_name = "gpu_resize_filter_tiles_table",
};

static const GpuKernel rows_kernel = {
    .name = "gpu_resize_filter_rows",
    .args_size = sizeof (GpuFilterArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_filter_rows,
    .table_name = "gpu_resize_filter_rows_table",
};

static const GpuKernel columns_kernel = {
    .name = "gpu_resize_filter_columns",
    .args_size = sizeof (GpuFilterArgs),
    .block = {GPU_RESIZE_BLOCK_X, GPU_RESIZE_BLOCK_Y, 1},
    .run = gpu_resize_run_filter_columns,
    .table_name = "gpu_resize_filter_columns_table",
};

/* Whether two planes' tables in one direction are the same. */
static bool
is_same_axis (const GpuFilterAxis *a, const GpuFilterAxis *b)
{
  return a->in == b->in && a->out == b->out && a->first == b->first && a->end == b->end && a->from == b->from &&
         a->to == b->to;
}

/* Whether a direction's tables are those of the plane before: in tiles they depend on where the part begins, too. */
static bool
is_shared (const PlanePlan *plan, unsigned plane, unsigned direction)
{
  return plane && plan->at[direction] == plan[-1].at[direction] &&
         is_same_axis (&plan->axis[direction], &plan[-1].axis[direction]);
}

/* Where the tables go. Returns: numbers in all. */
static size_t
plan_tables (PlanePlan *plans, const Key *key, const GpuImageSpec *from, const GpuImageSpec *to)
{
  const GpuFormatInfo *info = gpu_format_info (from->format);
  size_t n = 0;

  for (unsigned i = 0; i < info->n_planes; i++) {
    const GpuResizeRectangle part = plane_part (to, &key->dst, i);
    PlanePlan *plan = &plans[i];

    plan->axis[0] = plane_axis (key->src.x, key->src.width, from->width, gpu_image_spec_plane_width (from, i),
                                info->plane[i].w_shift, part.width);
    plan->axis[1] = plane_axis (key->src.y, key->src.height, from->height, gpu_image_spec_plane_height (from, i),
                                info->plane[i].h_shift, part.height);
    plan->at[0] = part.x;
    plan->at[1] = part.y;
    for (unsigned d = 0; d < 2; d++) {
      if (key->clip)
        clip_axis (&plan->axis[d]);
      plan->taps[d] = gpu_filter_taps (&plan->axis[d], (GpuResizeFilter)key->filter, key->antialias);
      if (is_shared (plan, i, d)) {
        plan->table[d] = plan[-1].table[d];
      } else {
        plan->table[d] = n;
        n += (size_t)plan->axis[d].out * (plan->taps[d] + 2);
      }
    }
  }
  return n;
}

static void
make_tables (PlanePlan *plans, const Key *key, int32_t *table)
{
  const GpuFormatInfo *info = gpu_format_info (key->format);

  for (unsigned i = 0; i < info->n_planes; i++)
    for (unsigned d = 0; d < 2; d++) {
      PlanePlan *plan = &plans[i];
      uint32_t first, end;

      /* Those shared with the plane before are there, and so is what was found then. */
      if (is_shared (plan, i, d)) {
        first = plan[-1].first;
        end = plan[-1].end;
      } else {
        gpu_filter_make_table (&plan->axis[d], (GpuResizeFilter)key->filter, key->antialias, plan->taps[d],
                               gpu_filter_bits (info->bits > 8), table + plan->table[d], &first, &end);
      }
      if (d == 1) {
        plan->first = first;
        plan->end = end;
      }
    }
}

static GpuFilterTable
filter_table (const PlanePlan *plan, unsigned direction, const int32_t *numbers)
{
  return (GpuFilterTable){numbers + plan->table[direction], plan->axis[direction].out, plan->taps[direction]};
}

/* Whether all planes can be scaled in tiles. */
static bool
plan_tiles (PlanePlan *plans, const Key *key, const GpuImageSpec *to, const int32_t *numbers)
{
  const GpuFormatInfo *info = gpu_format_info (key->format);
  uint32_t rows = 0;

  if (gpu_device_is_host (key->device) || info->bits > 8)
    return false;
  for (unsigned i = 0; i < info->n_planes; i++) {
    const GpuResizeRectangle part = plane_part (to, &key->dst, i);
    const GpuFilterTable across = filter_table (&plans[i], 0, numbers), down = filter_table (&plans[i], 1, numbers);

    if (!gpu_tile_plan (&plans[i].tile, &across, part.x, gpu_image_spec_plane_width (to, i), &down, part.y,
                        info->plane[i].pixel_bytes))
      return false;
    rows += (gpu_image_spec_plane_height (to, i) - 1) / plans[i].tile.height + 1;
  }
  return rows <= GPU_OP_MAX_BLOCKS_Y;
}

/* Makes what tiles need of the tables at @numbers, at @out, or says, if that is NULL, where it will be. Returns: how
 * many numbers that is. */
static size_t
make_tile_tables (PlanePlan *plans, const Key *key, const GpuImageSpec *to, const int32_t *numbers, int32_t *out)
{
  size_t n = 0, at[2] = {0};

  for (unsigned i = 0; i < gpu_format_info (key->format)->n_planes; i++) {
    const GpuResizeRectangle part = plane_part (to, &key->dst, i);
    const GpuTileGroups *groups[] = {&plans[i].tile.x, &plans[i].tile.y};
    PlanePlan *plan = &plans[i];

    for (unsigned d = 0; d < 2; d++) {
      const GpuFilterTable table = filter_table (plan, d, numbers);

      if (!is_shared (plan, i, d)) {
        at[d] = n;
        n += gpu_tile_table_size (groups[d]);
        if (out)
          gpu_tile_make_table (&table, d ? part.y : part.x, groups[d], out + at[d]);
      }
      plan->tile_table[d] = at[d];
    }
  }
  return n;
}

/* Makes the tables for @key: in pinned memory, which is then copied in stream order. */
static Weights *
make_weights (GpuStream *stream, const Key *key, const GpuImageSpec *from, const GpuImageSpec *to, GError **error)
{
  Weights *weights = g_new0 (Weights, 1);
  size_t n = plan_tables (weights->plane, key, from, to);
  g_autofree int32_t *numbers = g_new (int32_t, n);
  bool ok = false;

  make_tables (weights->plane, key, numbers);
  weights->in_tiles = plan_tiles (weights->plane, key, to, numbers);
  if (weights->in_tiles)
    n = make_tile_tables (weights->plane, key, to, numbers, NULL);

  GpuImage *host = gpu_op_scratch (stream, GPU_MEMORY_HOST, n * sizeof *numbers, error);
  if (host)
    weights->table = gpu_op_scratch (stream, GPU_MEMORY_STREAM_ORDERED, n * sizeof *numbers, error);
  if (weights->table) {
    if (weights->in_tiles)
      make_tile_tables (weights->plane, key, to, numbers, gpu_image_data (host));
    else
      memcpy (gpu_image_data (host), numbers, n * sizeof *numbers);
    ok = gpu_image_copy (stream, host, weights->table, error);
  }
  gpu_image_unref (host);
  if (!ok) {
    weights_free (weights);
    return NULL;
  }
  weights->key = *key;
  return weights;
}

/* Returns: (transfer none): the tables for @key. Up to @most geometries are kept. */
static const Weights *
prepare (GpuResizer *self, GpuStream *stream, const Key *key, unsigned most, const GpuImageSpec *from,
         const GpuImageSpec *to, GError **error)
{
  GPtrArray *list = self->weights;
  Weights *weights = NULL;

  for (unsigned i = list->len; i-- > 0 && !weights;)
    if (!memcmp (&((Weights *)list->pdata[i])->key, key, sizeof *key))
      weights = g_ptr_array_steal_index (list, i);
  if (!weights)
    weights = make_weights (stream, key, from, to, error);
  if (!weights)
    return NULL;
  while (list->len >= most)
    g_ptr_array_remove_index (list, 0);
  g_ptr_array_add (list, weights);
  return weights;
}

/* The byte of alpha in a pixel that is multiplied by it; 4 if none is. */
static uint32_t
alpha_byte (const GpuFormatInfo *info, const GpuResize *params)
{
  return info->has_alpha && !params->straight_alpha ? (uint32_t)info->channel[3] : 4;
}

/* What both passes have in common. */
static GpuFilterPlane
make_filter_plane (const GpuFormatInfo *info, unsigned number, const GpuResize *params)
{
  const uint32_t bytes = info->plane[number].pixel_bytes;
  GpuFilterPlane plane = {.bytes = bytes,
                          .mid_bytes = bytes == 3 ? 4 : bytes,
                          .wide = info->bits > 8,
                          .alpha = alpha_byte (info, params),
                          .border = border_pixel (info, number, params->border)};

  return plane;
}

static GpuTileAxis
tile_axis (const int32_t *table, const GpuTileGroups *groups)
{
  return (GpuTileAxis){.spans = table,
                       .weights = (const uint32_t *)table + gpu_tile_weights_at (groups),
                       .first = groups->first,
                       .n = groups->n,
                       .steps = groups->steps};
}

static bool
resize_in_tiles (const Weights *self, const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuResize *params,
                 GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);
  const int32_t *table = gpu_image_data (self->table);
  GpuExtent extent = {0, 0, 1};
  GpuTileArgs args = {0};

  for (unsigned i = 0; i < info->n_planes; i++) {
    const PlanePlan *plan = &self->plane[i];
    const GpuResizeRectangle part = plane_part (to, &self->key.dst, i);
    const uint32_t bytes = info->plane[i].pixel_bytes, width = gpu_image_spec_plane_width (to, i);
    const uint32_t height = gpu_image_spec_plane_height (to, i), tile_width = GPU_TILE_GROUP << plan->tile.shift;
    GpuTilePlane *plane = &args.plane[i];

    *plane = (GpuTilePlane){.src = gpu_op_plane (src, i),
                            .dst = gpu_op_plane (dst, i),
                            .src_stride = from->stride[i],
                            .dst_stride = to->stride[i],
                            .x = tile_axis (table + plan->tile_table[0], &plan->tile.x),
                            .y = tile_axis (table + plan->tile_table[1], &plan->tile.y),
                            .src_width = gpu_image_spec_plane_width (from, i),
                            .width = width,
                            .height = height,
                            .left = part.x,
                            .top = part.y,
                            .part_width = part.width,
                            .part_height = part.height,
                            .border = border_pixel (info, i, params->border),
                            .bytes = bytes,
                            .alpha = alpha_byte (info, params),
                            .tile_shift = plan->tile.shift,
                            .tile_height = plan->tile.height,
                            .chunk = plan->tile.chunk,
                            .line_words = plan->tile.line_words,
                            .column_words = plan->tile.column_words};
    plane->src_aligned =
        !(((uintptr_t)plane->src | plane->src_stride) & 15) && plane->src_stride <= GPU_TILE_MAX_STRIDE;
    plane->dst_aligned = is_aligned (NULL, 0, plane->dst, plane->dst_stride, bytes);
    extent.x = MAX (extent.x, ((width - 1) / tile_width + 1) * tiles_kernel.block.x);
    gpu_op_add_rows (&args.rows, i, (height - 1) / plan->tile.height + 1, 1);
  }
  extent.y = (uint32_t)args.rows.total * tiles_kernel.block.y;
  return gpu_op_launch_between (op, src, self->table, dst, &tiles_kernel, &args, extent, error);
}

static bool
resize_filtered (const Weights *self, const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuResize *params,
                 GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);
  const int32_t *table = gpu_image_data (self->table);
  GpuFilterArgs rows = {0}, columns = {0};
  GpuExtent rows_extent = {0, 0, 1}, columns_extent = {0, 0, 1};
  size_t offset[GPU_MAX_PLANES], size = 0;

  for (unsigned i = 0; i < info->n_planes; i++) {
    const PlanePlan *plan = &self->plane[i];
    const GpuResizeRectangle part = plane_part (to, &self->key.dst, i);
    GpuFilterPlane *row = &rows.plane[i], *column = &columns.plane[i];

    *row = *column = make_filter_plane (info, i, params);
    row->src = gpu_op_plane (src, i);
    row->src_stride = from->stride[i];
    row->table = table + plan->table[0];
    row->taps = plan->taps[0];
    row->width = part.width;
    row->height = plan->end - plan->first;
    row->first = plan->first;
    row->dst_stride = ((uint64_t)part.width * row->mid_bytes + 15) / 16 * 16;
    row->aligned = is_aligned (row->src, row->src_stride, NULL, 0, row->bytes);
    rows_extent.x = MAX (rows_extent.x, row->width);
    gpu_op_add_rows (&rows.rows, i, (row->height - 1) / GPU_RESIZE_ROWS + 1, GPU_RESIZE_BLOCK_Y);
    offset[i] = size;
    size += (row->height * row->dst_stride + 255) / 256 * 256;

    column->src_stride = row->dst_stride;
    column->dst = gpu_op_plane (dst, i);
    column->dst_stride = to->stride[i];
    column->table = table + plan->table[1];
    column->taps = plan->taps[1];
    column->width = gpu_image_spec_plane_width (to, i);
    column->height = gpu_image_spec_plane_height (to, i);
    column->left = part.x;
    column->top = part.y;
    column->part_width = part.width;
    column->part_height = part.height;
    column->first = plan->first;
    column->aligned = is_aligned (NULL, 0, column->dst, column->dst_stride, column->bytes);
    columns_extent.x = MAX (columns_extent.x, (column->width - 1) / GPU_RESIZE_PIXELS + 1);
    gpu_op_add_rows (&columns.rows, i, column->height, GPU_RESIZE_BLOCK_Y);
  }
  rows_extent.y = gpu_op_extent_y (&rows.rows, GPU_RESIZE_BLOCK_Y);
  columns_extent.y = gpu_op_extent_y (&columns.rows, GPU_RESIZE_BLOCK_Y);

  GpuImage *between = gpu_op_scratch (op->stream, GPU_MEMORY_STREAM_ORDERED, size, error);
  if (!between)
    return false;
  for (unsigned i = 0; i < info->n_planes; i++) {
    rows.plane[i].dst = (uint8_t *)gpu_image_data (between) + offset[i];
    columns.plane[i].src = rows.plane[i].dst;
  }
  bool ok = gpu_op_launch_between (op, src, self->table, between, &rows_kernel, &rows, rows_extent, error) &&
            gpu_op_launch_between (op, between, self->table, dst, &columns_kernel, &columns, columns_extent, error);
  gpu_image_unref (between);
  return ok;
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
  const bool direct = nearest || (params->filter == GPU_RESIZE_BILINEAR && !params->antialias);
  if (!gpu_op_check ("Resize", op->stream, src, dst, error) || !gpu_op_check_apart ("Resize", src, dst, error) ||
      !check_box (from, params, direct, &box, error) || !check_rectangle (gpu_image_spec (dst), params, &part, error))
    return false;

  /* As Pillow, which copies where there is nothing to scale. */
  const bool same = box.x == 0 && box.y == 0 && box.width == from->width && box.height == from->height &&
                    part.width == from->width && part.height == from->height;
  if (same || (direct && is_whole (from, &box)))
    return resize_directly (op, src, dst, params, &box, &part, nearest || !direct, error);
  if (gpu_resize_is_filter_half (src, dst, params, &box, &part))
    return gpu_resize_filter_half (op, src, dst, params, alpha_byte (gpu_format_info (from->format), params),
                                   keeper->most, error);

  Key key;
  memset (&key, 0, sizeof key);
  key.device = gpu_image_device (src);
  key.format = from->format;
  key.src_width = from->width;
  key.src_height = from->height;
  key.dst_width = gpu_image_spec (dst)->width;
  key.dst_height = gpu_image_spec (dst)->height;
  key.src = box;
  key.dst = part;
  key.filter = params->filter;
  key.antialias = params->antialias && !nearest;
  key.clip = params->clip || direct;
  const Weights *weights = prepare (keeper->resizer, op->stream, &key, keeper->most, from, gpu_image_spec (dst), error);
  if (!weights)
    return false;
  return weights->in_tiles ? resize_in_tiles (weights, op, src, dst, params, error)
                           : resize_filtered (weights, op, src, dst, params, error);
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
