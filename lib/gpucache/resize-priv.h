/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the files of scaling share: tables of weights, and the kernels' build for the CPU device.
 */
#pragma once

#include "kernel.h"

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

void gpu_resize_run_nearest (const void *args, GpuExtent extent);
void gpu_resize_run_bilinear (const void *args, GpuExtent extent);
void gpu_resize_run_filter_rows (const void *args, GpuExtent extent);
void gpu_resize_run_filter_columns (const void *args, GpuExtent extent);
