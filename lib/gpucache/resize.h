/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling.
 */
#pragma once

#include <gpucache/image.h>

G_BEGIN_DECLS

/**
 * GpuResizeFilter:
 *
 * Neither antialiases when shrinking. Sample centres are at (i + 0.5); the position in the source is
 * (i + 0.5) * src / dst - 0.5, edges are replicated.
 */
typedef enum {
  GPU_RESIZE_NEAREST,
  GPU_RESIZE_BILINEAR,
} GpuResizeFilter;

/**
 * gpu_resize:
 *
 * Scales @src to @dst's size; same format. Planes are scaled one by one; alpha is a channel like the others.
 * No host wait.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_resize (GpuStream *stream, GpuImage *src, GpuImage *dst, GpuResizeFilter filter, GError **error);

G_END_DECLS
