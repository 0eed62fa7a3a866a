/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the files of scaling share: tables of weights, and the kernels' build for the CPU device.
 */
#pragma once

#include "kernel.h"
#include "op-batch-priv.h"

#include <gpucache/resize.h>

/**
 * GpuFilterAxis:
 * @in: samples of the source in this direction
 * @first, @end: those of them that count
 * @from, @to: the part of them that is scaled, its edges
 * @out: samples that it is scaled to
 */
typedef struct {
  uint32_t in;
  uint32_t out;
  uint32_t first;
  uint32_t end;
  double from;
  double to;
} GpuFilterAxis;

/** How many weights a sample of the destination has at most. */
uint32_t gpu_filter_taps (const GpuFilterAxis *axis, GpuResizeFilter filter, bool antialias);

/** Fills @table, which has room for @axis->out times @taps + 2 numbers: see GpuFilterPlane. Weights have @bits of
 * fraction. @first and @end: (out): the samples of the source that have any. */
void gpu_filter_make_table (const GpuFilterAxis *axis, GpuResizeFilter filter, bool antialias, uint32_t taps, int bits,
                            int32_t *table, uint32_t *first, uint32_t *end);

/**
 * GpuFilterTable:
 * @numbers: what gpu_filter_make_table() gives for @out samples with @taps weights each
 */
typedef struct {
  const int32_t *numbers;
  uint32_t out;
  uint32_t taps;
} GpuFilterTable;

/** Of a direction of a plane that is scaled in tiles: see GpuTileAxis. */
typedef struct {
  uint32_t first;
  uint32_t n;
  uint32_t steps;
} GpuTileGroups;

/** Of a plane: see GpuTilePlane. */
typedef struct {
  GpuTileGroups x, y;
  uint32_t shift, height;
  uint32_t chunk;
  uint32_t line_words, column_words;
} GpuTilePlan;

/**
 * gpu_tile_plan:
 * @left, @top: where the tables' first samples are in the destination's plane
 * @width: of that plane
 * @bytes: of a pixel
 *
 * Returns: false if a tile of the least size needs more of the source than a block has room for, or if there are more
 * weights, or tiles across, than 32 bits can count
 */
bool gpu_tile_plan (GpuTilePlan *plan, const GpuFilterTable *across, uint32_t left, uint32_t width,
                    const GpuFilterTable *down, uint32_t top, uint32_t bytes);

/** How many numbers a direction's table has: spans, and from gpu_tile_weights_at() on weights. */
size_t gpu_tile_table_size (const GpuTileGroups *groups);
size_t gpu_tile_weights_at (const GpuTileGroups *groups);

/** @out: (out): has room for them. */
void gpu_tile_make_table (const GpuFilterTable *table, uint32_t offset, const GpuTileGroups *groups, int32_t *out);

/** Whether gpu_resize_filter_half() can: an antialiased bilinear or bicubic filter on a GPU, all of the source's @box
 * and all of the destination, whose planes are exactly half of the source's, of rows that vectors make up. */
bool gpu_resize_is_filter_half (GpuImage *src, GpuImage *dst, const GpuResize *params, const GpuResizeBox *box,
                                const GpuResizeRectangle *part);

/** @alpha: the byte of alpha in a pixel that is multiplied by it; 4 if none is. @n: images that are likely to share the
 * launch. */
bool gpu_resize_filter_half (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuResize *params, uint32_t alpha,
                             unsigned n, GError **error);

void gpu_resize_run_nearest (const void *args, GpuExtent extent);
void gpu_resize_run_bilinear (const void *args, GpuExtent extent);
void gpu_resize_run_filter_rows (const void *args, GpuExtent extent);
void gpu_resize_run_filter_columns (const void *args, GpuExtent extent);
