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

/** One side of the source's part in samples of a plane. Its far edge goes with the image's, which odd sizes round up.
 */
GpuFilterAxis
gpu_resize_plane_axis (double from, double size, uint32_t image, uint32_t plane, unsigned shift, uint32_t out);

/** The destination's part in samples of a plane. */
GpuResizeRectangle gpu_resize_plane_part (const GpuImageSpec *spec, const GpuResizeRectangle *part, unsigned plane);

/** The pixel of a plane in the border's colour. */
uint32_t gpu_resize_border_pixel (const GpuFormatInfo *info, unsigned plane, const uint8_t *border);

/** Whether pixels can be read and written as kernels do where they are aligned: those of 3 bytes are read as bytes and
 * written as words, others are read and written whole. */
bool gpu_resize_is_aligned (const void *src, uint64_t src_stride, const void *dst, uint64_t dst_stride, uint32_t bytes);

/** The byte of alpha in a pixel that is multiplied by it; 4 if none is. */
uint32_t gpu_resize_alpha_byte (const GpuFormatInfo *info, const GpuResize *params);

/** Whether there are no tables where the source's part begins at whole pixels. */
bool gpu_resize_is_direct (const GpuResize *params);

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

/**
 * GpuGroups:
 * @bytes: how many samples of a group's an entry of the table stands for: those of a pixel's bytes, if weights are for
 *   rows as they are
 * @unit: spans begin at multiples of so many samples, a power of two
 * @together: how many groups count these from where the first of them begins, which are then those that a block makes;
 *   0 if all count them from where the source does. Weights of such groups are for interleaved lines
 * @offset: where in the destination's plane the table's first entry is
 * @first, @n, @steps: see GpuGroupAxis
 *
 * Of a direction of a plane. The first four say which weights it has, gpu_groups_plan() fills in the others.
 */
typedef struct {
  uint32_t bytes;
  uint32_t unit;
  uint32_t together;
  uint32_t offset;
  uint32_t first;
  uint32_t n;
  uint32_t steps;
} GpuGroups;

/** Returns: false if there is more than the kernels can count in 32 bits */
bool gpu_groups_plan (GpuGroups *groups, const GpuFilterTable *table);

/** Returns: how many samples of the source any @n groups take at most that begin at a multiple of @n, from a multiple
 * of @unit on */
uint32_t gpu_groups_longest_span (const GpuFilterTable *table, const GpuGroups *groups, uint32_t n, uint32_t unit);

/** How many numbers a direction's table has: spans, and from gpu_groups_weights_at() on weights. */
size_t gpu_groups_table_size (const GpuGroups *groups);
size_t gpu_groups_weights_at (const GpuGroups *groups);

/** @out: (out): has room for them. */
void gpu_groups_make_table (const GpuGroups *groups, const GpuFilterTable *table, int32_t *out);

/** Of a plane that is scaled in tiles: see GpuTilePlane. */
typedef struct {
  GpuGroups x, y;
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

/** Of a plane that is scaled in strips: see GpuStripPlane. */
typedef struct {
  GpuGroups x, y;
  uint32_t height;
  uint32_t chunk;
  uint32_t line_bytes, column_bytes;
  uint32_t units;
  uint32_t apart;
} GpuStripPlan;

/** How high strips are best for a launch that makes @n images of @spec. */
uint32_t gpu_strip_choose_height (const GpuImageSpec *spec, unsigned n);

/** Kernels for strips, the one for groups of the fewest steps first. */
#define GPU_STRIP_KINDS 3

/** As gpu_tile_plan(), for kernel @kind, and strips of @height rows, or lower ones where these do not fit. Returns:
 * false also if groups have more steps than the kernel has registers for */
bool gpu_strip_plan (GpuStripPlan *plan, const GpuFilterTable *across, uint32_t left, uint32_t width,
                     const GpuFilterTable *down, uint32_t top, uint32_t bytes, uint32_t height, unsigned kind);

/** Scales with weights from @resizer's tables, or from new ones, which it then keeps: those of as many geometries as
 * @n, the images of a batch, ever was. */
bool
gpu_resize_filter (GpuResizer *resizer, unsigned n, const GpuOp *op, GpuImage *src, GpuImage *dst,
                   const GpuResize *params, const GpuResizeBox *box, const GpuResizeRectangle *part, GError **error);

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
