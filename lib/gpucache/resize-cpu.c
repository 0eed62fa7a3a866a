/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling on the CPU device.
 */
#include "resize-priv.h"

#include "op-priv.h"
#include "resize-pixel.h"

/* Pictures are done in strips of so many columns, so that what is kept of a row has a fixed size. */
#define STRIP 1024u

static void
fill_pixels (uint8_t *dst, size_t n, uint32_t pixel, size_t bytes)
{
  for (size_t x = 0; x < n; x++)
    memcpy (dst + x * bytes, &pixel, bytes);
}

/* What lies around a part of a plane. */
static void
fill_border (uint8_t *dst, size_t stride, uint32_t width, uint32_t height, GpuResizeRectangle part, uint32_t pixel,
             size_t bytes)
{
  const size_t right = (size_t)part.x + part.width;

  for (uint32_t y = 0; y < height; y++) {
    uint8_t *row = dst + y * stride;

    if (y < part.y || y - part.y >= part.height) {
      fill_pixels (row, width, pixel, bytes);
    } else {
      fill_pixels (row, part.x, pixel, bytes);
      fill_pixels (row + right * bytes, width - right, pixel, bytes);
    }
  }
}

static void
fill_plane_border (const GpuResizePlane *plane)
{
  const GpuResizeRectangle part = {plane->left, plane->top, plane->x.dst, plane->y.dst};

  fill_border (plane->dst, plane->dst_stride, plane->width, plane->height, part, plane->border, plane->bytes);
}

/* Nearest, and bilinear without antialias */

static uint8_t *
part_pixel (const GpuResizePlane *plane, uint32_t x, uint32_t y)
{
  return plane->dst + ((size_t)plane->top + y) * plane->dst_stride + ((size_t)plane->left + x) * plane->bytes;
}

GPU_OP_LOOP void
pick_row (uint8_t *restrict dst, const uint8_t *src, const uint32_t *restrict columns, size_t width, size_t bytes)
{
  for (size_t x = 0; x < width; x++)
    memcpy (dst + x * bytes, src + columns[x] * bytes, bytes);
}

static void
nearest_strip (const GpuResizePlane *plane, uint32_t x0, uint32_t width)
{
  uint32_t columns[STRIP];
  uint32_t last = UINT32_MAX;

  for (uint32_t x = 0; x < width; x++)
    columns[x] = gpu_resize_nearest (&plane->x, x0 + x);

  for (uint32_t y = 0; y < plane->y.dst; y++) {
    uint32_t row = gpu_resize_nearest (&plane->y, y);
    const uint8_t *src = plane->src + row * plane->src_stride;
    uint8_t *dst = part_pixel (plane, x0, y);

    if (row == last)
      memcpy (dst, dst - plane->dst_stride, (size_t)width * plane->bytes);
    else if (plane->bytes == 1)
      pick_row (dst, src, columns, width, 1);
    else if (plane->bytes == 2)
      pick_row (dst, src, columns, width, 2);
    else if (plane->bytes == 3)
      pick_row (dst, src, columns, width, 3);
    else
      pick_row (dst, src, columns, width, 4);
    last = row;
  }
}

/* The part of the source's rows that a strip needs, mixed in x. Neighbours differ in their lowest bit, so the two rows
 * that one of the destination lies between are kept apart, and often serve the next one. */
typedef struct {
  GpuResizeTap taps[STRIP];
  uint32_t mixed[2][STRIP * 4];
  uint32_t row[2];
} Strip;

GPU_OP_LOOP void
mix_row (uint32_t *restrict mixed, const uint8_t *src, const GpuResizeTap *restrict taps, size_t width, size_t bytes)
{
  for (size_t x = 0; x < width; x++) {
    const uint8_t *a = src + taps[x].i0 * bytes;
    const uint8_t *b = src + taps[x].i1 * bytes;

    for (size_t c = 0; c < bytes; c++)
      mixed[x * bytes + c] = gpu_resize_mix (a[c], b[c], taps[x].weight);
  }
}

static uint16_t
wide_sample (const uint8_t *p)
{
  uint16_t value;

  memcpy (&value, p, sizeof value);
  return value;
}

static void
mix_row_wide (uint32_t *restrict mixed, const uint8_t *src, const GpuResizeTap *taps, size_t width, size_t bytes)
{
  for (size_t x = 0; x < width; x++)
    for (size_t c = 0; c < bytes; c += 2)
      mixed[(x * bytes + c) / 2] = gpu_resize_mix_wide (wide_sample (src + taps[x].i0 * bytes + c),
                                                        wide_sample (src + taps[x].i1 * bytes + c), taps[x].weight);
}

static const uint32_t *
mixed_row (Strip *strip, const GpuResizePlane *plane, uint32_t width, uint32_t row)
{
  const uint8_t *src = plane->src + row * plane->src_stride;
  uint32_t *mixed = strip->mixed[row & 1];

  if (strip->row[row & 1] == row)
    return mixed;
  strip->row[row & 1] = row;
  if (plane->wide)
    mix_row_wide (mixed, src, strip->taps, width, plane->bytes);
  else if (plane->bytes == 1)
    mix_row (mixed, src, strip->taps, width, 1);
  else if (plane->bytes == 2)
    mix_row (mixed, src, strip->taps, width, 2);
  else if (plane->bytes == 3)
    mix_row (mixed, src, strip->taps, width, 3);
  else
    mix_row (mixed, src, strip->taps, width, 4);
  return mixed;
}

static void
bilinear_strip (const GpuResizePlane *plane, uint32_t x0, uint32_t width)
{
  size_t n = (size_t)width * plane->bytes;
  Strip strip;

  strip.row[0] = strip.row[1] = UINT32_MAX;
  for (uint32_t x = 0; x < width; x++)
    strip.taps[x] = gpu_resize_linear (&plane->x, x0 + x);

  for (uint32_t y = 0; y < plane->y.dst; y++) {
    GpuResizeTap tap = gpu_resize_linear (&plane->y, y);
    const uint32_t *a = mixed_row (&strip, plane, width, tap.i0);
    const uint32_t *b = mixed_row (&strip, plane, width, tap.i1);
    uint8_t *restrict dst = part_pixel (plane, x0, y);

    if (plane->wide) {
      for (size_t i = 0; i < n / 2; i++) {
        const uint16_t value = (uint16_t)gpu_resize_mix_rows_wide (a[i], b[i], tap.weight);

        memcpy (dst + 2 * i, &value, sizeof value);
      }
    } else {
      for (size_t i = 0; i < n; i++)
        dst[i] = gpu_resize_mix_rows (a[i], b[i], tap.weight);
    }
  }
}

void
gpu_resize_run_nearest (const void *data, GpuExtent extent)
{
  const GpuResizeArgs *args = data;

  for (unsigned i = 0; i < GPU_PIXEL_PLANES && args->plane[i].src; i++) {
    fill_plane_border (&args->plane[i]);
    for (uint32_t x = 0; x < args->plane[i].x.dst; x += MIN (STRIP, args->plane[i].x.dst - x))
      nearest_strip (&args->plane[i], x, MIN (STRIP, args->plane[i].x.dst - x));
  }
}

void
gpu_resize_run_bilinear (const void *data, GpuExtent extent)
{
  const GpuResizeArgs *args = data;

  for (unsigned i = 0; i < GPU_PIXEL_PLANES && args->plane[i].src; i++) {
    fill_plane_border (&args->plane[i]);
    for (uint32_t x = 0; x < args->plane[i].x.dst; x += MIN (STRIP, args->plane[i].x.dst - x))
      bilinear_strip (&args->plane[i], x, MIN (STRIP, args->plane[i].x.dst - x));
  }
}

/* Filters */

/* A row of the source as numbers of @samples a pixel, premultiplied. */
GPU_OP_LOOP void
unpack_row (uint16_t *restrict out, const uint8_t *src, uint32_t n, size_t bytes, uint32_t alpha)
{
  for (size_t x = 0; x < n; x++)
    for (size_t c = 0; c < bytes; c++)
      out[x * bytes + c] = alpha < bytes && c != alpha
                               ? (uint16_t)gpu_filter_premultiply (src[x * bytes + c], src[x * bytes + alpha])
                               : src[x * bytes + c];
}

static void
unpack_row_wide (uint16_t *restrict out, const uint8_t *src, size_t samples)
{
  for (size_t i = 0; i < samples; i++)
    out[i] = wide_sample (src + 2 * i) >> 6;
}

GPU_OP_LOOP void
filter_row (const GpuFilterPlane *plane, const uint16_t *restrict row, uint8_t *restrict dst, size_t samples, bool wide)
{
  const int32_t *table = plane->table;

  for (uint32_t x = 0; x < plane->width; x++, table += plane->taps + 2) {
    const uint16_t *src = row + (size_t)table[0] * samples;
    int32_t sum[4] = {0};

    for (int32_t k = 0; k < table[1]; k++)
      for (size_t c = 0; c < samples; c++)
        sum[c] += src[(size_t)k * samples + c] * table[2 + k];
    for (size_t c = 0; c < samples; c++) {
      const uint16_t value = (uint16_t)gpu_filter_round (sum[c], wide);

      if (wide)
        memcpy (dst + (size_t)x * plane->mid_bytes + 2 * c, &value, sizeof value);
      else
        dst[(size_t)x * plane->mid_bytes + c] = (uint8_t)value;
    }
  }
}

static void
filter_plane_rows (const GpuFilterPlane *plane)
{
  const int32_t *last = plane->table + (size_t)(plane->width - 1) * (plane->taps + 2);
  const size_t samples = plane->wide ? plane->bytes / 2 : plane->bytes;
  const uint32_t n = (uint32_t)(last[0] + last[1]);
  g_autofree uint16_t *row = g_new (uint16_t, n * samples);

  for (uint32_t y = 0; y < plane->height; y++) {
    const uint8_t *src = plane->src + ((size_t)plane->first + y) * plane->src_stride;
    uint8_t *dst = plane->dst + y * plane->dst_stride;

    if (plane->wide)
      unpack_row_wide (row, src, n * samples);
    else if (plane->alpha < 4)
      unpack_row (row, src, n, 4, plane->alpha);
    else
      unpack_row (row, src, (uint32_t)(n * samples), 1, 4);

    if (plane->wide && samples == 1)
      filter_row (plane, row, dst, 1, true);
    else if (plane->wide)
      filter_row (plane, row, dst, 2, true);
    else if (samples == 1)
      filter_row (plane, row, dst, 1, false);
    else if (samples == 2)
      filter_row (plane, row, dst, 2, false);
    else if (samples == 3)
      filter_row (plane, row, dst, 3, false);
    else
      filter_row (plane, row, dst, 4, false);
  }
}

/* Adds the weighted rows of the picture between; the fourth byte of three is added, too, and not used. */
static void
add_rows (const GpuFilterPlane *plane, const int32_t *table, uint32_t x0, size_t n, int32_t *restrict sum)
{
  for (int32_t k = 0; k < table[1]; k++) {
    const uint8_t *src =
        plane->src + ((size_t)table[0] - plane->first + (size_t)k) * plane->src_stride + (size_t)x0 * plane->mid_bytes;
    const int32_t weight = table[2 + k];

    if (plane->wide)
      for (size_t i = 0; i < n; i++)
        sum[i] += wide_sample (src + 2 * i) * weight;
    else
      for (size_t i = 0; i < n; i++)
        sum[i] += src[i] * weight;
  }
}

static void
write_pixels (const GpuFilterPlane *plane, const int32_t *restrict sum, uint8_t *restrict dst, uint32_t width)
{
  const size_t bytes = plane->bytes;

  if (plane->wide) {
    for (size_t i = 0; i < width * bytes / 2; i++) {
      const uint16_t value = (uint16_t)(gpu_filter_round (sum[i], true) << 6);

      memcpy (dst + 2 * i, &value, sizeof value);
    }
    return;
  }
  for (size_t x = 0; x < width; x++)
    for (size_t c = 0; c < bytes; c++)
      dst[x * bytes + c] = (uint8_t)gpu_filter_round (sum[x * plane->mid_bytes + c], false);
  if (plane->alpha < 4)
    for (size_t x = 0; x < width; x++)
      for (size_t c = 0; c < 4; c++)
        if (c != plane->alpha)
          dst[4 * x + c] = (uint8_t)gpu_filter_unpremultiply (dst[4 * x + c], dst[4 * x + plane->alpha]);
}

static void
filter_plane_columns (const GpuFilterPlane *plane)
{
  const GpuResizeRectangle part = {plane->left, plane->top, plane->part_width, plane->part_height};
  const size_t samples = plane->wide ? plane->mid_bytes / 2 : plane->mid_bytes;
  const int32_t *table = plane->table;
  int32_t sum[STRIP * 4];

  fill_border (plane->dst, plane->dst_stride, plane->width, plane->height, part, plane->border, plane->bytes);
  for (uint32_t y = 0; y < part.height; y++, table += plane->taps + 2)
    for (uint32_t x = 0; x < part.width; x += MIN (STRIP, part.width - x)) {
      const uint32_t width = MIN (STRIP, part.width - x);

      memset (sum, 0, width * samples * sizeof sum[0]);
      add_rows (plane, table, x, width * samples, sum);
      write_pixels (plane, sum,
                    plane->dst + ((size_t)part.y + y) * plane->dst_stride + ((size_t)part.x + x) * plane->bytes, width);
    }
}

void
gpu_resize_run_filter_rows (const void *data, GpuExtent extent)
{
  const GpuFilterArgs *args = data;

  for (unsigned i = 0; i < GPU_PIXEL_PLANES && args->plane[i].src; i++)
    filter_plane_rows (&args->plane[i]);
}

void
gpu_resize_run_filter_columns (const void *data, GpuExtent extent)
{
  const GpuFilterArgs *args = data;

  for (unsigned i = 0; i < GPU_PIXEL_PLANES && args->plane[i].src; i++)
    filter_plane_columns (&args->plane[i]);
}
