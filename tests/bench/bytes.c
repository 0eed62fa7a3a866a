/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See bytes.h.
 */
#include "bytes.h"

#include <gpucache/resize-pixel.h>

#define SECTOR 32

size_t
bytes_of_samples (const GpuImageSpec *spec)
{
  size_t bytes = 0;
  for (unsigned i = 0; i < gpu_format_info (spec->format)->n_planes; i++)
    bytes += gpu_image_spec_row_bytes (spec, i) * gpu_image_spec_plane_height (spec, i);
  return bytes;
}

/* How many sectors hold the samples that a bilinear axis reads. @bytes: of a sample; rows are sectors by themselves. */
static size_t
count_sectors (uint32_t from, uint32_t to, uint32_t bytes, uint32_t sector)
{
  const GpuResizeAxis axis = {.src = from, .dst = to};
  size_t n = 0, last = SIZE_MAX;
  for (uint32_t i = 0; i < to; i++) {
    const GpuResizeTap tap = gpu_resize_linear (&axis, i);
    const size_t first = (size_t)tap.i0 * bytes / sector, end = ((size_t)tap.i1 * bytes + bytes - 1) / sector;
    for (size_t s = first; s <= end; s++)
      if (last == SIZE_MAX || s > last) {
        n++;
        last = s;
      }
  }
  return n;
}

size_t
bytes_of_bilinear (const GpuImageSpec *from, const GpuImageSpec *to)
{
  const GpuFormatInfo *info = gpu_format_info (from->format);
  size_t bytes = 0;
  for (unsigned i = 0; i < info->n_planes; i++)
    bytes += SECTOR *
             count_sectors (gpu_image_spec_plane_width (from, i), gpu_image_spec_plane_width (to, i),
                            info->plane[i].pixel_bytes, SECTOR) *
             count_sectors (gpu_image_spec_plane_height (from, i), gpu_image_spec_plane_height (to, i), 1, 1);
  return bytes;
}
