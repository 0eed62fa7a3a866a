/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion on the CPU device: rows of numbers in strips, so that what is kept of them has a fixed size.
 */
#include "convert-priv.h"

#include "convert-pixel.h"
#include "op-priv.h"

/* Pixels of a strip; even, so that chroma samples belong to one strip. */
#define STRIP GPU_CONVERT_STRIP

/* A strip's numbers in one row, with the pixel to its left at index 0. */
typedef struct {
  int32_t value[3][STRIP + 1];
  uint8_t alpha[STRIP + 1];
} Row;

GPU_OP_LOOP void
read_bytes (int32_t *restrict out, const uint8_t *src, uint32_t n, size_t step)
{
  for (uint32_t x = 0; x < n; x++)
    out[x] = src[x * step];
}

GPU_OP_LOOP void
write_bytes (uint8_t *restrict dst, const int32_t *restrict value, uint32_t n, size_t step, uint32_t bits)
{
  for (uint32_t x = 0; x < n; x++)
    dst[x * step] = (uint8_t)gpu_convert_round (value[x], 255, (int)bits);
}

/* Channels of RGB formats and GRAY8, from pixel @x0 on. */
static void
read_channels (const GpuPixels *pixels, uint32_t x0, uint32_t y, uint32_t n, Row *row, uint32_t at)
{
  for (unsigned c = 0; c < MIN (pixels->channels, 3); c++) {
    const uint8_t *src = pixels->data[c] + y * pixels->stride[c] + (size_t)x0 * pixels->step;
    int32_t *out = row->value[c] + at;

    if (pixels->step == 1)
      read_bytes (out, src, n, 1);
    else if (pixels->step == 3)
      read_bytes (out, src, n, 3);
    else
      read_bytes (out, src, n, 4);
  }
  for (unsigned c = pixels->channels; c < 3; c++)
    memset (row->value[c] + at, 0, n * sizeof (int32_t));
  if (pixels->channels == 4) {
    const uint8_t *src = pixels->data[3] + y * pixels->stride[3] + (size_t)x0 * pixels->step;

    for (uint32_t x = 0; x < n; x++)
      row->alpha[at + x] = src[(size_t)x * pixels->step];
  } else {
    memset (row->alpha + at, 0, n);
  }
}

static int32_t
sample_at (const GpuConvertSide *side, const uint8_t *p)
{
  uint16_t wide;

  if (side->pixels.size == 1)
    return *p;
  memcpy (&wide, p, sizeof wide);
  return wide >> side->down;
}

/* One component of the chroma around pixels @x0 to @x0 + @n - 1: its rows are mixed first, then its columns. */
static void
read_chroma (const GpuConvertSide *side, unsigned c, uint32_t x0, uint32_t y, uint32_t n, int32_t *restrict out)
{
  const GpuConvertTap v = gpu_convert_tap (y, side->chroma_height, side->site_y);
  const uint8_t *upper = side->chroma.data[c] + v.i0 * side->chroma.stride[c];
  const uint8_t *lower = side->chroma.data[c] + v.i1 * side->chroma.stride[c];
  const uint32_t first = gpu_convert_tap (x0, side->chroma_width, side->site_x).i0;
  const uint32_t last = gpu_convert_tap (x0 + n - 1, side->chroma_width, side->site_x).i1;
  int32_t column[STRIP / 2 + 4];

  for (uint32_t i = first; i <= last; i++) {
    const size_t at = (size_t)i * side->chroma.step;

    column[i - first] =
        (int32_t)(4 - v.w1) * sample_at (side, upper + at) + (int32_t)v.w1 * sample_at (side, lower + at);
  }
  for (uint32_t x = 0; x < n; x++) {
    const GpuConvertTap h = gpu_convert_tap (x0 + x, side->chroma_width, side->site_x);

    out[x] = (int32_t)(4 - h.w1) * column[h.i0 - first] + (int32_t)h.w1 * column[h.i1 - first];
  }
}

/* Reads @n pixels from @x0 on to index @at, through the matrix. */
static void
read_row (const GpuConvertArgs *args, uint32_t x0, uint32_t y, uint32_t n, Row *row, uint32_t at)
{
  int32_t *restrict a = row->value[0] + at, *restrict b = row->value[1] + at, *restrict c = row->value[2] + at;

  if (args->src.chroma.channels) {
    const uint8_t *src = args->src.pixels.data[0] + y * args->src.pixels.stride[0];

    for (uint32_t x = 0; x < n; x++)
      a[x] = sample_at (&args->src, src + (size_t)(x0 + x) * args->src.pixels.size) << GPU_CONVERT_SUB_BITS;
    read_chroma (&args->src, 0, x0, y, n, b);
    read_chroma (&args->src, 1, x0, y, n, c);
    memset (row->alpha + at, 0, n);
  } else {
    read_channels (&args->src.pixels, x0, y, n, row, at);
  }
  for (uint32_t x = 0; x < n; x++) {
    const int32_t in[3] = {a[x], b[x], c[x]};

    a[x] = gpu_convert_mix (args, 0, in[0], in[1], in[2]);
    b[x] = gpu_convert_mix (args, 1, in[0], in[1], in[2]);
    c[x] = gpu_convert_mix (args, 2, in[0], in[1], in[2]);
  }
}

void
gpu_convert_read_rgb (const GpuConvertArgs *args, uint32_t x0, uint32_t y, uint32_t n,
                      uint8_t rgb[3][GPU_CONVERT_STRIP])
{
  Row row;

  read_row (args, x0, y, n, &row, 0);
  for (unsigned c = 0; c < 3; c++)
    write_bytes (rgb[c], row.value[c], n, 1, args->bits);
}

static void
write_row (const GpuConvertArgs *args, uint32_t x0, uint32_t y, uint32_t n, const Row *row)
{
  const GpuPixels *pixels = &args->dst.pixels;

  if (pixels->group == 4 && pixels->channels == 3) {
    uint8_t *dst = pixels->data[0] - pixels->at[0] + y * pixels->stride[0] + (size_t)x0 * 4;

    memset (dst, 255, (size_t)n * 4);
  }
  for (unsigned c = 0; c < pixels->channels; c++) {
    uint8_t *dst = pixels->data[c] + y * pixels->stride[c] + (size_t)x0 * pixels->step;

    if (c == 3)
      for (uint32_t x = 0; x < n; x++)
        dst[(size_t)x * 4] = row->alpha[1 + x] | (uint8_t)args->opaque;
    else if (pixels->step == 1)
      write_bytes (dst, row->value[c] + 1, n, 1, args->bits);
    else if (pixels->step == 3)
      write_bytes (dst, row->value[c] + 1, n, 3, args->bits);
    else
      write_bytes (dst, row->value[c] + 1, n, 4, args->bits);
  }
}

void
gpu_convert_run_rows (const void *data, GpuExtent extent)
{
  const GpuConvertArgs *args = data;
  Row row;

  for (uint32_t y = 0; y < args->height; y++)
    for (uint32_t x = 0; x < args->width; x += MIN (STRIP, args->width - x)) {
      const uint32_t n = MIN (STRIP, args->width - x);

      read_row (args, x, y, n, &row, 1);
      write_row (args, x, y, n, &row);
    }
}

void
gpu_convert_run_420 (const void *data, GpuExtent extent)
{
  const GpuConvert420Args *args = data;

  gpu_convert_run_rows (&args->whole, extent);
}

void
gpu_convert_run_to_gray (const void *data, GpuExtent extent)
{
  const GpuConvertToYuvArgs *args = data;

  gpu_convert_run_rows (&args->whole, extent);
}

static void
put_sample (const GpuConvertSide *side, uint8_t *p, int32_t value)
{
  const uint16_t wide = (uint16_t)(value << side->down);

  if (side->pixels.size == 1)
    *p = (uint8_t)value;
  else
    memcpy (p, &wide, sizeof wide);
}

static void
write_luma (const GpuConvertArgs *args, uint32_t x0, uint32_t y, uint32_t n, const Row *row)
{
  const GpuPixels *pixels = &args->dst.pixels;
  uint8_t *dst = pixels->data[0] + y * pixels->stride[0] + (size_t)x0 * pixels->size;

  if (pixels->size == 1)
    write_bytes (dst, row->value[0] + 1, n, 1, args->bits);
  else
    for (uint32_t x = 0; x < n; x++)
      put_sample (&args->dst, dst + (size_t)x * 2,
                  gpu_convert_round (row->value[0][1 + x], args->max, (int)args->bits));
}

/* A strip of chroma row @pair from the three rows of pixels above, on and below it. */
static void
write_chroma (const GpuConvertArgs *args, uint32_t x0, uint32_t pair, uint32_t n, const Row *const rows[3])
{
  const int32_t weight[3] = {args->dst.site_y ? 1 : 0, 2, args->dst.site_y ? 1 : 2};
  const int32_t left = args->dst.site_x ? 1 : 0, right = args->dst.site_x ? 1 : 2;

  for (unsigned c = 0; c < 2; c++) {
    const int32_t *above = rows[0]->value[1 + c], *on = rows[1]->value[1 + c], *below = rows[2]->value[1 + c];
    uint8_t *dst = args->dst.chroma.data[c] + pair * args->dst.chroma.stride[c];
    int32_t column[STRIP + 2];

    for (uint32_t x = 0; x <= n; x++)
      column[x] = weight[0] * above[x] + weight[1] * on[x] + weight[2] * below[x];
    column[n + 1] = column[n];
    for (uint32_t x = 0; x < n; x += 2) {
      const int32_t sum = left * column[x] + 2 * column[x + 1] + right * column[x + 2];

      put_sample (&args->dst, dst + (size_t)(x0 + x) / 2 * args->dst.chroma.step,
                  gpu_convert_round (sum, args->max, (int)args->bits + GPU_CONVERT_SUB_BITS));
    }
  }
}

void
gpu_convert_run_row_pairs (const void *data, GpuExtent extent)
{
  const GpuConvertArgs *args = data;
  Row row[3];

  for (uint32_t x = 0; x < args->width; x += MIN (STRIP, args->width - x)) {
    const uint32_t n = MIN (STRIP, args->width - x);

    for (uint32_t pair = 0; pair < args->rows; pair++) {
      /* The row above is the lower one of the pair before. */
      Row *above = &row[pair % 2 * 2], *on = &row[1], *below = &row[2 - pair % 2 * 2];

      for (uint32_t r = 0; r < 2; r++) {
        const uint32_t y = MIN (2 * pair + r, args->height - 1);
        Row *to = r ? below : on;

        read_row (args, x ? x - 1 : 0, y, 1, to, 0);
        read_row (args, x, y, n, to, 1);
        if (2 * pair + r < args->height)
          write_luma (args, x, y, n, to);
      }
      write_chroma (args, x, pair, n, (const Row *const[]){pair ? above : on, on, below});
    }
  }
}

void
gpu_convert_run_to_yuv (const void *data, GpuExtent extent)
{
  const GpuConvertToYuvArgs *args = data;

  gpu_convert_run_row_pairs (&args->whole, extent);
}

GPU_OP_LOOP void
convert_samples (const GpuPlanesArgs *args, unsigned plane, unsigned c, uint32_t y, uint32_t src_size,
                 uint32_t dst_size)
{
  const GpuPixels *from = &args->src[plane], *to = &args->dst[plane];
  const uint8_t *src = from->data[c] + y * from->stride[c];
  uint8_t *dst = to->data[c] + y * to->stride[c];

  for (uint32_t x = 0; x < args->width[plane]; x++) {
    uint16_t wide;
    uint32_t sample = src[(size_t)x * from->step];

    if (src_size == 2) {
      memcpy (&wide, src + (size_t)x * from->step, sizeof wide);
      sample = wide;
    }
    sample = gpu_convert_sample (args, plane, sample);
    if (dst_size == 2) {
      wide = (uint16_t)sample;
      memcpy (dst + (size_t)x * to->step, &wide, sizeof wide);
    } else {
      dst[(size_t)x * to->step] = (uint8_t)sample;
    }
  }
}

void
gpu_convert_run_planes (const void *data, GpuExtent extent)
{
  const GpuPlanesArgs *args = data;

  for (unsigned plane = 0; plane < 2; plane++)
    for (unsigned c = 0; c < args->src[plane].channels; c++)
      for (uint32_t y = 0; y < args->height[plane]; y++)
        switch (args->src[0].size * 2 + args->dst[0].size) {
        case 2 + 1:
          convert_samples (args, plane, c, y, 1, 1);
          break;
        case 2 + 2:
          convert_samples (args, plane, c, y, 1, 2);
          break;
        case 4 + 1:
          convert_samples (args, plane, c, y, 2, 1);
          break;
        default:
          convert_samples (args, plane, c, y, 2, 2);
          break;
        }
}

void
gpu_convert_run_plane_lines (const void *data, GpuExtent extent)
{
  const GpuPlaneLinesArgs *args = data;

  gpu_convert_run_planes (&args->whole, extent);
}

GPU_OP_LOOP void
convert_elements (const GpuElementsArgs *args, uint32_t src_size, uint32_t dst_size)
{
  for (uint64_t i = 0; i < args->n; i++) {
    uint32_t bits = 0;

    memcpy (&bits, args->src + i * src_size, src_size);
    bits = gpu_convert_element (bits, src_size, dst_size, args->scale, args->offset);
    memcpy (args->dst + i * dst_size, &bits, dst_size);
  }
}

void
gpu_convert_run_elements (const void *data, GpuExtent extent)
{
  const GpuElementsArgs *args = data;

  switch (args->src_size * 8 + args->dst_size) {
  case 8 + 1:
    convert_elements (args, 1, 1);
    break;
  case 8 + 2:
    convert_elements (args, 1, 2);
    break;
  case 8 + 4:
    convert_elements (args, 1, 4);
    break;
  case 16 + 1:
    convert_elements (args, 2, 1);
    break;
  case 16 + 2:
    convert_elements (args, 2, 2);
    break;
  case 16 + 4:
    convert_elements (args, 2, 4);
    break;
  case 32 + 1:
    convert_elements (args, 4, 1);
    break;
  case 32 + 2:
    convert_elements (args, 4, 2);
    break;
  default:
    convert_elements (args, 4, 4);
    break;
  }
}
