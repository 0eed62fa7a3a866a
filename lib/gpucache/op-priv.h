/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What image operations share: the checks of their arguments, and the space of rows that one launch works through.
 */
#pragma once

#include "image-priv.h"
#include "pixel.h"

G_STATIC_ASSERT (GPU_PIXEL_PLANES == GPU_MAX_PLANES);
G_STATIC_ASSERT (GPU_PIXEL_CHANNELS == GPU_MAX_CHANNELS);

/** For a loop over pixels that is called with a constant number of bytes a pixel: one copy of it for each. */
#define GPU_OP_LOOP static inline __attribute__ ((always_inline))

/**
 * gpu_op_check:
 * @name: the operation, as the first word of a message
 *
 * Whether @src and @dst are of @stream's device and of one format.
 *
 * Returns: false if @error is set
 */
bool gpu_op_check (const char *name, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error);

/** Whether @dst is of that size; sets @error if not. */
bool gpu_op_check_size (const char *name, GpuImage *dst, uint32_t width, uint32_t height, GError **error);

/** Whether no sample of @dst lies on one of @src; sets @error if one does. Padding and what lies between rows may be
 * shared: views side by side in one image are apart. */
bool gpu_op_check_apart (const char *name, GpuImage *src, GpuImage *dst, GError **error);

/** Whether both images are the same samples in memory. */
bool gpu_op_same_memory (GpuImage *src, GpuImage *dst);

/** The address of a plane's first sample. */
uint8_t *gpu_op_plane (GpuImage *image, unsigned plane);

/** Adds plane number @plane, the next one, of @n rows to @rows, which is zero-initialised before the first, in whole
 * blocks of @block rows. */
void gpu_op_add_rows (GpuPixelRows *rows, unsigned plane, uint32_t n, unsigned block);

/** The launch's extent in y for @rows; kernels loop over the rows beyond what a grid can hold. */
uint32_t gpu_op_extent_y (const GpuPixelRows *rows, unsigned block);
