/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the GPU's kernels from 4:2:0 take: everything that all threads of a launch have in common, worked out here.
 */
#include "convert-priv.h"

/* Both of the last steps' roundings are in the offset: numbers are shifted once then, which gives the same as two
 * shifts do. */
static void
set_mix (const GpuConvertArgs *args, bool swapped, GpuConvert420Param *param)
{
  const int32_t (*m)[3] = args->matrix;
  const unsigned first = swapped ? 2 : 0, third = 2 - first, lower = swapped ? 2 : 1, upper = 3 - lower;
  /* A pixel is four parts of columns, two by two at most, or three and one where chroma lies between pixels. A column
   * gives one of these parts, or all four. */
  const unsigned bits = param->between ? 0 : 2;
  const uint32_t half = (uint32_t)1 << (GPU_CONVERT_BITS - 1 + args->shift);

  /* Luma's share is the same of all numbers, R has none of U, and B none of V. Of odd pixels two columns are added,
   * each of which has all four parts: so everything is twice as large, for which a matrix to 8 bits leaves room. */
  for (unsigned odd = 0; odd < 2; odd++) {
    const unsigned more = odd && !param->between;

    param->luma_factor[odd] = (uint32_t)m[0][0] << (GPU_CONVERT_SUB_BITS + more);
    param->shift[odd] = args->shift + GPU_CONVERT_BITS + more;
  }
  param->upper[0] = (uint32_t)m[first][upper] << bits;
  param->upper[1] = (uint32_t)m[1][upper] << bits;
  param->lower[0] = (uint32_t)m[third][lower] << bits;
  param->lower[1] = (uint32_t)m[1][lower] << bits;
  for (unsigned c = 0; c < 3; c++)
    param->offset[c] = (uint32_t)((int32_t)(args->offset[swapped ? 2 - c : c] + half) >> (2 - bits));
}

/* How a row is made of the chroma rows above and below it, of which it has four quarters. */
static void
set_rows (const GpuConvertSide *src, bool swapped, GpuConvert420Param *param)
{
  for (unsigned odd = 0; odd < 2; odd++) {
    const uint32_t above = (odd ? 3 : 1) - src->site_y, below = 4 - above;
    const uint32_t weights = above | below << 16;

    param->above[odd] = above;
    param->below[odd] = below;
    param->weights[odd][0] = swapped ? weights << 8 : weights;
    param->weights[odd][1] = swapped ? weights : weights << 8;
  }
  param->select[0] = swapped ? 0x0100 : 0x0001;
  param->select[1] = swapped ? 0x0001 : 0x0100;
}

/* Whether a row of @n samples at once is 16 bytes at most, and they begin at multiples of as many. */
static bool
is_in_rows_of (const GpuConvertSide *src, unsigned n)
{
  const GpuPixels *luma = &src->pixels, *chroma = &src->chroma;
  uintptr_t misaligned = (uintptr_t)luma->data[0] | luma->stride[0];

  /* U and V in one plane are of 16 bytes in any case. */
  if (chroma->group == 1)
    for (unsigned c = 0; c < 2; c++)
      misaligned |= ((uintptr_t)chroma->data[c] | chroma->stride[c]) << 1;
  return n * luma->size <= 16 && !(misaligned & (n * luma->size - 1));
}

void
gpu_convert_make_420_param (const GpuConvertArgs *args, bool swapped, unsigned most, GpuConvert420Param *param)
{
  const GpuConvertSide *src = &args->src;

  *param = (GpuConvert420Param){
      .luma = src->pixels.data[0],
      .luma_stride = (uint32_t)src->pixels.stride[0],
      .width = args->width,
      .height = args->height,
      .last_column = src->chroma_width - 1,
      .last_row = src->chroma_height - 1,
      .src_size = src->pixels.size,
      .src_group = src->chroma.group,
      .between = !src->site_x,
      .quads = 1,
  };
  for (unsigned c = 0; c < 2; c++) {
    param->chroma[c] = src->chroma.data[c];
    param->chroma_stride[c] = (uint32_t)src->chroma.stride[c];
  }
  for (unsigned n = most; n > 4 && param->quads == 1; n /= 2)
    if (args->width % n == 0 && is_in_rows_of (src, n))
      param->quads = n / 4;
  set_mix (args, swapped, param);
  set_rows (src, swapped, param);
}
