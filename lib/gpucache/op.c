/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What image operations share.
 */
#include "op-priv.h"

/* CUDA's limit on blocks in y. */
#define MAX_GRID_Y 65535u

static bool
check_device (const char *name, const char *what, GpuStream *stream, GpuImage *image, GError **error)
{
  GpuDevice *device = gpu_stream_device (stream);

  if (gpu_image_device (image) == device)
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "%s cannot use a %s image of %s on a stream of %s: use a stream of the image's device", name, what,
               gpu_device_name (gpu_image_device (image)), gpu_device_name (device));
  return false;
}

bool
gpu_op_check (const char *name, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  GpuFormat from = gpu_image_spec (src)->format;
  GpuFormat to = gpu_image_spec (dst)->format;

  if (!check_device (name, "source", stream, src, error) || !check_device (name, "destination", stream, dst, error))
    return false;
  if (from != to) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "%s does not convert %s to %s: use a destination of the source's format", name,
                 gpu_format_info (from)->name, gpu_format_info (to)->name);
    return false;
  }
  return true;
}

bool
gpu_op_check_size (const char *name, GpuImage *dst, uint32_t width, uint32_t height, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (dst);

  if (spec->width == width && spec->height == height)
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "%s needs a destination of %ux%u pixels, not of %ux%u", name, width,
               height, spec->width, spec->height);
  return false;
}

uint8_t *
gpu_op_plane (GpuImage *image, unsigned plane)
{
  return (uint8_t *)gpu_image_data (image) + gpu_image_spec (image)->offset[plane];
}

typedef struct {
  uintptr_t address;
  size_t stride;
  size_t row_bytes;
  size_t rows;
} Samples;

static Samples
plane_samples (GpuImage *image, unsigned plane)
{
  const GpuImageSpec *spec = gpu_image_spec (image);

  return (Samples){(uintptr_t)gpu_op_plane (image, plane), spec->stride[plane], gpu_image_spec_row_bytes (spec, plane),
                   gpu_image_spec_plane_height (spec, plane)};
}

static bool
samples_overlap (Samples a, Samples b)
{
  if (a.address > b.address) {
    Samples swap = a;
    a = b;
    b = swap;
  }

  size_t distance = b.address - a.address;
  if (distance >= (a.rows - 1) * a.stride + a.row_bytes)
    return false;
  if (a.stride != b.stride)
    return true;

  /* b's first row begins in row `row` of a, at `column`. It touches that row of a if it begins before that row's
   * samples end, and the next one if it goes on into it. Later rows of b lie as the first one does. */
  size_t row = distance / a.stride;
  size_t column = distance % a.stride;
  return column < a.row_bytes || (column + b.row_bytes > a.stride && row + 1 < a.rows);
}

bool
gpu_op_check_apart (const char *name, GpuImage *src, GpuImage *dst, GError **error)
{
  unsigned n_src = gpu_format_info (gpu_image_spec (src)->format)->n_planes;
  unsigned n_dst = gpu_format_info (gpu_image_spec (dst)->format)->n_planes;

  for (unsigned i = 0; i < n_src; i++)
    for (unsigned j = 0; j < n_dst; j++)
      if (samples_overlap (plane_samples (src, i), plane_samples (dst, j))) {
        g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                     "%s cannot write over its source: plane %u of the destination lies on plane %u of the source",
                     name, j, i);
        return false;
      }
  return true;
}

bool
gpu_op_same_memory (GpuImage *src, GpuImage *dst)
{
  const GpuImageSpec *a = gpu_image_spec (src);
  const GpuImageSpec *b = gpu_image_spec (dst);

  if (a->format != b->format || a->width != b->width || a->height != b->height)
    return false;
  for (unsigned i = 0; i < gpu_format_info (a->format)->n_planes; i++)
    if (gpu_op_plane (src, i) != gpu_op_plane (dst, i) || a->stride[i] != b->stride[i])
      return false;
  return true;
}

void
gpu_op_add_rows (GpuPixelRows *rows, unsigned plane, uint32_t n, unsigned block)
{
  rows->first[plane] = rows->total;
  rows->total += ((uint64_t)n + block - 1) / block * block;
  for (unsigned i = plane + 1; i < GPU_PIXEL_PLANES; i++)
    rows->first[i] = UINT64_MAX;
}

uint32_t
gpu_op_extent_y (const GpuPixelRows *rows, unsigned block)
{
  return (uint32_t)MIN (rows->total, (uint64_t)MAX_GRID_Y * block);
}
