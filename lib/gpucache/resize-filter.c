/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling with weights from tables, which a GpuResizer keeps. On a GPU, samples of 8 bits take one launch: in strips
 * where a picture shrinks by much, else in tiles, unless it shrinks by so much that what a tile of the destination
 * needs of the source does not fit shared memory. Other samples take two launches, and so does the CPU device. To
 * exactly half see resize-filter-half.c.
 */
#include "op-batch-priv.h"
#include "resize-pixel.h"
#include "resize-priv.h"
#include "resize-strip.h"
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
  GpuStripPlan strip;
  size_t group_table[2]; /* as above, of weights in groups */
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
  uint32_t strip_height; /* 0 if it is not to be in strips */
  uint32_t reserved;
} Key;

typedef enum {
  TWO_LAUNCHES,
  IN_TILES,
  IN_STRIPS,
} Method;

typedef struct {
  Key key;
  PlanePlan plane[GPU_MAX_PLANES];
  Method method;
  unsigned kind;   /* of the strips' kernel */
  GpuImage *table; /* on the device; holds it */
} Weights;

struct GpuResizer {
  GPtrArray *weights; /* of Weights; those used last come last */
  unsigned most;      /* how many there may be: as many as any batch had images */
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

/* What lies beside the part no longer counts. */
static void
clip_axis (GpuFilterAxis *axis)
{
  axis->first = (uint32_t)axis->from;
  axis->end = (uint32_t)ceil (axis->to);
}

static const GpuKernel tiles_kernel = {
    .name = "gpu_resize_filter_tiles",
    .args_size = sizeof (GpuTileArgs),
    .block = {32, GPU_TILE_WARPS, 1},
    .table_name = "gpu_resize_filter_tiles_table",
};

static const GpuKernel strips_kernel = {
    .name = "gpu_resize_filter_strips",
    .args_size = sizeof (GpuStripArgs),
    .block = {32, GPU_STRIP_WARPS, 1},
    .table_name = "gpu_resize_filter_strips_table",
};

static const GpuKernel strips_many_kernel = {
    .name = "gpu_resize_filter_strips_many",
    .args_size = sizeof (GpuStripArgs),
    .block = {32, GPU_STRIP_WARPS, 1},
    .table_name = "gpu_resize_filter_strips_many_table",
};

static const GpuKernel strips_most_kernel = {
    .name = "gpu_resize_filter_strips_most",
    .args_size = sizeof (GpuStripArgs),
    .block = {32, GPU_STRIP_WARPS, 1},
    .table_name = "gpu_resize_filter_strips_most_table",
};

static const GpuKernel *const strips_kernels[GPU_STRIP_KINDS] = {&strips_kernel, &strips_many_kernel,
                                                                 &strips_most_kernel};

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

/* Whether a direction's tables are those of the plane before: weights in groups depend on where the part begins, too.
 */
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
    const GpuResizeRectangle part = gpu_resize_plane_part (to, &key->dst, i);
    PlanePlan *plan = &plans[i];

    plan->axis[0] = gpu_resize_plane_axis (key->src.x, key->src.width, from->width,
                                           gpu_image_spec_plane_width (from, i), info->plane[i].w_shift, part.width);
    plan->axis[1] = gpu_resize_plane_axis (key->src.y, key->src.height, from->height,
                                           gpu_image_spec_plane_height (from, i), info->plane[i].h_shift, part.height);
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

  for (unsigned i = 0; i < info->n_planes; i++) {
    const GpuResizeRectangle part = gpu_resize_plane_part (to, &key->dst, i);
    const GpuFilterTable across = filter_table (&plans[i], 0, numbers), down = filter_table (&plans[i], 1, numbers);

    if (!gpu_tile_plan (&plans[i].tile, &across, part.x, gpu_image_spec_plane_width (to, i), &down, part.y,
                        info->plane[i].pixel_bytes))
      return false;
    rows += (gpu_image_spec_plane_height (to, i) - 1) / plans[i].tile.height + 1;
  }
  return rows <= GPU_OP_MAX_BLOCKS_Y;
}

/* Whether all planes can be scaled in strips by kernel @kind. */
static bool
plan_strips (PlanePlan *plans, const Key *key, const GpuImageSpec *to, const int32_t *numbers, unsigned kind)
{
  const GpuFormatInfo *info = gpu_format_info (key->format);
  uint32_t rows = 0;

  for (unsigned i = 0; i < info->n_planes; i++) {
    const GpuResizeRectangle part = gpu_resize_plane_part (to, &key->dst, i);
    const GpuFilterTable across = filter_table (&plans[i], 0, numbers), down = filter_table (&plans[i], 1, numbers);

    /* Of the source, too, the kernel counts a row's bytes in 32 bits. */
    if ((uint64_t)plans[i].axis[0].in * info->plane[i].pixel_bytes > INT32_MAX ||
        !gpu_strip_plan (&plans[i].strip, &across, part.x, gpu_image_spec_plane_width (to, i), &down, part.y,
                         info->plane[i].pixel_bytes, key->strip_height, kind))
      return false;
    rows += (gpu_image_spec_plane_height (to, i) - 1) / plans[i].strip.height + 1;
  }
  return rows <= GPU_OP_MAX_BLOCKS_Y;
}

static Method
choose_method (PlanePlan *plans, const Key *key, const GpuImageSpec *to, const int32_t *numbers, unsigned *kind)
{
  if (gpu_device_is_host (key->device) || gpu_format_info (key->format)->bits > 8)
    return TWO_LAUNCHES;
  if (key->strip_height)
    for (*kind = 0; *kind < GPU_STRIP_KINDS; (*kind)++)
      if (plan_strips (plans, key, to, numbers, *kind))
        return IN_STRIPS;
  return plan_tiles (plans, key, to, numbers) ? IN_TILES : TWO_LAUNCHES;
}

static const GpuGroups *
plane_groups (const PlanePlan *plan, Method method, unsigned direction)
{
  if (method == IN_STRIPS)
    return direction ? &plan->strip.y : &plan->strip.x;
  return direction ? &plan->tile.y : &plan->tile.x;
}

/* Makes weights in groups from the tables at @numbers, at @out, or says, if that is NULL, where they will be. Returns:
 * how many numbers that is. */
static size_t
make_group_tables (PlanePlan *plans, Method method, const Key *key, const int32_t *numbers, int32_t *out)
{
  size_t n = 0, at[2] = {0};

  for (unsigned i = 0; i < gpu_format_info (key->format)->n_planes; i++) {
    PlanePlan *plan = &plans[i];

    for (unsigned d = 0; d < 2; d++) {
      const GpuFilterTable table = filter_table (plan, d, numbers);
      const GpuGroups *groups = plane_groups (plan, method, d);

      if (!is_shared (plan, i, d) || memcmp (groups, plane_groups (plan - 1, method, d), sizeof *groups)) {
        at[d] = n;
        n += gpu_groups_table_size (groups);
        if (out)
          gpu_groups_make_table (groups, &table, out + at[d]);
      }
      plan->group_table[d] = at[d];
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
  weights->method = choose_method (weights->plane, key, to, numbers, &weights->kind);
  if (weights->method != TWO_LAUNCHES)
    n = make_group_tables (weights->plane, weights->method, key, numbers, NULL);

  GpuImage *host = gpu_op_scratch (stream, GPU_MEMORY_HOST, n * sizeof *numbers, error);
  if (host)
    weights->table = gpu_op_scratch (stream, GPU_MEMORY_STREAM_ORDERED, n * sizeof *numbers, error);
  if (weights->table) {
    if (weights->method != TWO_LAUNCHES)
      make_group_tables (weights->plane, weights->method, key, numbers, gpu_image_data (host));
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

/* Returns: (transfer none): the tables for @key. */
static const Weights *
prepare (GpuResizer *self, GpuStream *stream, const Key *key, const GpuImageSpec *from, const GpuImageSpec *to,
         GError **error)
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
  while (list->len >= self->most)
    g_ptr_array_remove_index (list, 0);
  g_ptr_array_add (list, weights);
  return weights;
}

/* What both passes have in common. */
static GpuFilterPlane
make_filter_plane (const GpuFormatInfo *info, unsigned number, const GpuResize *params)
{
  const uint32_t bytes = info->plane[number].pixel_bytes;
  GpuFilterPlane plane = {.bytes = bytes,
                          .mid_bytes = bytes == 3 ? 4 : bytes,
                          .wide = info->bits > 8,
                          .alpha = gpu_resize_alpha_byte (info, params),
                          .border = gpu_resize_border_pixel (info, number, params->border)};

  return plane;
}

static GpuGroupAxis
group_axis (const Weights *self, const PlanePlan *plan, unsigned direction)
{
  const GpuGroups *groups = plane_groups (plan, self->method, direction);
  const int32_t *table = (const int32_t *)gpu_image_data (self->table) + plan->group_table[direction];

  return (GpuGroupAxis){.spans = table,
                        .weights = (const uint32_t *)table + gpu_groups_weights_at (groups),
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
  GpuExtent extent = {0, 0, 1};
  GpuTileArgs args = {0};

  for (unsigned i = 0; i < info->n_planes; i++) {
    const PlanePlan *plan = &self->plane[i];
    const GpuResizeRectangle part = gpu_resize_plane_part (to, &self->key.dst, i);
    const uint32_t bytes = info->plane[i].pixel_bytes, width = gpu_image_spec_plane_width (to, i);
    const uint32_t height = gpu_image_spec_plane_height (to, i), tile_width = GPU_GROUP_SIZE << plan->tile.shift;
    GpuTilePlane *plane = &args.plane[i];

    *plane = (GpuTilePlane){.src = gpu_op_plane (src, i),
                            .dst = gpu_op_plane (dst, i),
                            .src_stride = from->stride[i],
                            .dst_stride = to->stride[i],
                            .x = group_axis (self, plan, 0),
                            .y = group_axis (self, plan, 1),
                            .src_width = gpu_image_spec_plane_width (from, i),
                            .width = width,
                            .height = height,
                            .left = part.x,
                            .top = part.y,
                            .part_width = part.width,
                            .part_height = part.height,
                            .border = gpu_resize_border_pixel (info, i, params->border),
                            .bytes = bytes,
                            .alpha = gpu_resize_alpha_byte (info, params),
                            .tile_shift = plan->tile.shift,
                            .tile_height = plan->tile.height,
                            .chunk = plan->tile.chunk,
                            .line_words = plan->tile.line_words,
                            .column_words = plan->tile.column_words};
    plane->src_aligned =
        !(((uintptr_t)plane->src | plane->src_stride) & 15) && plane->src_stride <= GPU_TILE_MAX_STRIDE;
    plane->dst_aligned = gpu_resize_is_aligned (NULL, 0, plane->dst, plane->dst_stride, bytes);
    extent.x = MAX (extent.x, ((width - 1) / tile_width + 1) * tiles_kernel.block.x);
    gpu_op_add_rows (&args.rows, i, (height - 1) / plan->tile.height + 1, 1);
  }
  extent.y = (uint32_t)args.rows.total * tiles_kernel.block.y;
  return gpu_op_launch_between (op, src, self->table, dst, &tiles_kernel, &args, extent, error);
}

static bool
resize_in_strips (const Weights *self, const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuResize *params,
                  GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);
  const GpuKernel *kernel = strips_kernels[self->kind];
  GpuExtent extent = {0, 0, 1};
  GpuStripArgs args = {0};

  for (unsigned i = 0; i < info->n_planes; i++) {
    const PlanePlan *plan = &self->plane[i];
    const GpuResizeRectangle part = gpu_resize_plane_part (to, &self->key.dst, i);
    const uint32_t bytes = info->plane[i].pixel_bytes, width = gpu_image_spec_plane_width (to, i) * bytes;
    const uint32_t height = gpu_image_spec_plane_height (to, i);
    GpuStripPlane *plane = &args.plane[i];

    *plane = (GpuStripPlane){.src = gpu_op_plane (src, i),
                             .dst = gpu_op_plane (dst, i),
                             .src_stride = from->stride[i],
                             .dst_stride = to->stride[i],
                             .x = group_axis (self, plan, 0),
                             .y = group_axis (self, plan, 1),
                             .src_width = gpu_image_spec_plane_width (from, i) * bytes,
                             .width = width,
                             .height = height,
                             .left = part.x * bytes,
                             .top = part.y,
                             .part_width = part.width * bytes,
                             .part_height = part.height,
                             .border = gpu_resize_border_pixel (info, i, params->border),
                             .bytes = bytes,
                             .alpha = gpu_resize_alpha_byte (info, params),
                             .strip_height = plan->strip.height,
                             .chunk = plan->strip.chunk,
                             .line_bytes = plan->strip.line_bytes,
                             .column_bytes = plan->strip.column_bytes,
                             .units = plan->strip.units,
                             .apart = plan->strip.apart};
    plane->src_aligned = !(((uintptr_t)plane->src | plane->src_stride) & (GPU_STRIP_UNIT - 1)) &&
                         plane->src_stride <= GPU_STRIP_MAX_STRIDE;
    plane->dst_aligned = !(((uintptr_t)plane->dst | plane->dst_stride) & 3);
    extent.x = MAX (extent.x, ((width - 1) / GPU_STRIP_WIDTH + 1) * kernel->block.x);
    gpu_op_add_rows (&args.rows, i, (height - 1) / plan->strip.height + 1, 1);
  }
  extent.y = (uint32_t)args.rows.total * kernel->block.y;
  return gpu_op_launch_between (op, src, self->table, dst, kernel, &args, extent, error);
}

static bool
resize_in_two (const Weights *self, const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuResize *params,
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
    const GpuResizeRectangle part = gpu_resize_plane_part (to, &self->key.dst, i);
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
    row->aligned = gpu_resize_is_aligned (row->src, row->src_stride, NULL, 0, row->bytes);
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
    column->aligned = gpu_resize_is_aligned (NULL, 0, column->dst, column->dst_stride, column->bytes);
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

/* Images that a batch is taken to have, however many it has: those that some streams are late for keep their tables. */
#define USUAL_BATCH 8

/* How high strips are to be; 0 if tiles are faster, or two launches needed. What a strip takes is mostly
 * for what its rows are filtered to, and there are more products of it for pixels of several bytes; what a tile takes
 * is mostly for the source. */
static uint32_t
strip_height (const GpuOp *op, const GpuImageSpec *to, const GpuResizeBox *box, const GpuResizeRectangle *part)
{
  const GpuFormatInfo *info = gpu_format_info (to->format);
  const unsigned least = info->plane[0].pixel_bytes > 3 ? 4 : 3;

  if (gpu_device_is_host (gpu_stream_device (op->stream)) || info->bits > 8 || box->width < (double)least * part->width)
    return 0;
  return gpu_strip_choose_height (to, op->plan ? USUAL_BATCH : 1);
}

bool
gpu_resize_filter (GpuResizer *resizer, unsigned n, const GpuOp *op, GpuImage *src, GpuImage *dst,
                   const GpuResize *params, const GpuResizeBox *box, const GpuResizeRectangle *part, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const bool nearest = params->filter == GPU_RESIZE_NEAREST;
  Key key;

  memset (&key, 0, sizeof key);
  key.device = gpu_image_device (src);
  key.format = from->format;
  key.src_width = from->width;
  key.src_height = from->height;
  key.dst_width = to->width;
  key.dst_height = to->height;
  key.src = *box;
  key.dst = *part;
  key.filter = params->filter;
  key.antialias = params->antialias && !nearest;
  key.clip = params->clip || gpu_resize_is_direct (params);
  key.strip_height = strip_height (op, to, box, part);
  resizer->most = MAX (resizer->most, n);
  const Weights *weights = prepare (resizer, op->stream, &key, from, to, error);
  if (!weights)
    return false;
  switch (weights->method) {
  case IN_STRIPS:
    return resize_in_strips (weights, op, src, dst, params, error);
  case IN_TILES:
    return resize_in_tiles (weights, op, src, dst, params, error);
  default:
    return resize_in_two (weights, op, src, dst, params, error);
  }
}
