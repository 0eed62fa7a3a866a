/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels from 4:2:0 share: what a thread reads, and R, G and B of a row of its pixels.
 *
 * Chroma is mixed between rows first, then goes through the matrix, and what comes of that is mixed between columns:
 * sums are the same in any order, and there are half as many columns as pixels.
 */
#pragma once

#include "convert.cuh"

/* Chroma of one column is U and V, lower and upper in a word. If @swapped, it is taken the other way round, which makes
 * BGR of what would be RGB. */

/* The columns of @quads quads at @u, and @v where they have planes of their own: bytes or halves in the order U, V. */
template <unsigned size, unsigned group, unsigned quads>
static __device__ __forceinline__ void
load_columns (const uint8_t *u, const uint8_t *v, uint32_t words[size * quads])
{
  if constexpr (group == 2) {
    gpu_load_words<size * quads> (u, words);
  } else if constexpr (quads == 2) {
    const uint32_t first = *(const uint32_t *)u, second = *(const uint32_t *)v;

    words[0] = __byte_perm (first, second, 0x5140);
    words[1] = __byte_perm (first, second, 0x7362);
  } else {
    words[0] = __byte_perm (*(const uint16_t *)u, *(const uint16_t *)v, 0x5140);
  }
}

template <unsigned size, unsigned group>
static __device__ __forceinline__ uint32_t
load_column (const uint8_t *u, const uint8_t *v)
{
  if constexpr (size == 2)
    return *(const uint32_t *)u;
  else if constexpr (group == 2)
    return *(const uint16_t *)u;
  else
    return *u | (uint32_t)*v << 8;
}

/* What a thread reads: its own columns, and those beside them. */
template <unsigned size, unsigned quads> struct Input {
  static constexpr unsigned rows = GPU_CONVERT_ROWS / quads, chroma_rows = rows / 2 + 2;
  uint32_t luma[rows][size * quads];
  uint32_t columns[chroma_rows][size * quads];
  uint32_t right[chroma_rows];
  uint32_t left[chroma_rows];
};

template <unsigned size, unsigned group, unsigned quads, bool between>
static __device__ __forceinline__ void
load_input (const GpuConvertArgs &args, uint32_t x, uint32_t y, Input<size, quads> &in)
{
  const GpuPixels &luma = args.src.pixels, &chroma = args.src.chroma;
  const uint32_t last = args.src.chroma_width - 1, last_row = args.src.chroma_height - 1;
  /* Columns: the thread's own ones, and those to the right and to the left of them, or its own at an edge. */
  const uint32_t at[3] = {x / 2, min (x / 2 + 2 * quads, last), x ? x / 2 - 1 : 0};
  const Rows rows = make_rows (luma.data[0] + (size_t)x * size, luma.stride[0]);
  Rows u[3], v[3];

#pragma unroll
  for (unsigned k = 0; k < 2 + between; k++) {
    u[k] = make_rows (chroma.data[0] + (size_t)at[k] * (size * group), chroma.stride[0]);
    v[k] = group == 2 ? u[k] : make_rows (chroma.data[1] + at[k], chroma.stride[1]);
  }
#pragma unroll
  for (unsigned r = 0; r < in.rows; r++)
    gpu_load_words<size * quads> (row_at (rows, min (y + r, args.height - 1)), in.luma[r]);
#pragma unroll
  for (unsigned r = 0; r < in.chroma_rows; r++) {
    const uint32_t row = min (y / 2 + r ? y / 2 + r - 1 : 0, last_row);

    load_columns<size, group, quads> (row_at (u[0], row), row_at (v[0], row), in.columns[r]);
    in.right[r] = load_column<size, group> (row_at (u[1], row), row_at (v[1], row));
    if constexpr (between)
      in.left[r] = load_column<size, group> (row_at (u[2], row), row_at (v[2], row));
  }
}

/* The matrix, for numbers in the order of memory. Of RGB's three red has no share of U and blue none of V, and luma's
 * share of all is the same. */
struct Mix {
  uint32_t luma;
  uint32_t half; /* what rounding adds */
  /* For what a column gives its pixels: a quarter of the offset where chroma lies between pixels, else half of it. */
  uint32_t upper[2]; /* of the first and the middle number, in the column's upper half */
  uint32_t lower[2]; /* of the third and the middle one */
  uint32_t offset[3];
  uint32_t shift;
  /* Quarters that a row has of the chroma rows above and below it. */
  uint32_t above[2], below[2];
  bool swapped;
};

static __device__ __forceinline__ Mix
make_mix (const GpuConvertArgs &args, bool swapped, bool between)
{
  const int32_t (*m)[3] = args.matrix;
  const unsigned bits = between ? 0 : 1;
  Mix mix;

  mix.luma = (uint32_t)m[0][0] << GPU_CONVERT_SUB_BITS;
  mix.half = (uint32_t)gpu_own (1 << (GPU_CONVERT_BITS - 1 + args.shift));
  mix.upper[0] = (uint32_t)(swapped ? m[2][1] : m[0][2]) << bits;
  mix.upper[1] = (uint32_t)(swapped ? m[1][1] : m[1][2]) << bits;
  mix.lower[0] = (uint32_t)(swapped ? m[0][2] : m[2][1]) << bits;
  mix.lower[1] = (uint32_t)(swapped ? m[1][2] : m[1][1]) << bits;
#pragma unroll
  for (unsigned c = 0; c < 3; c++)
    mix.offset[c] = (uint32_t)gpu_own (args.offset[swapped ? 2 - c : c] >> (2 - bits));
  mix.shift = args.shift + GPU_CONVERT_BITS;
  mix.above[0] = 1 - args.src.site_y, mix.above[1] = 3 - args.src.site_y;
  mix.below[0] = 3 + args.src.site_y, mix.below[1] = 1 + args.src.site_y;
  mix.swapped = swapped;
  return mix;
}

/* Between rows: the columns of two chroma rows, in the order that load_columns() gives, with the weights of row @r. */
template <unsigned size>
static __device__ __forceinline__ void
mix_rows (const Mix &mix, unsigned r, uint32_t above, uint32_t below, unsigned select, uint32_t &lower, uint32_t &upper)
{
  if constexpr (size == 1) {
    /* U, V, U, V from above and below. */
    const uint32_t both = __byte_perm (above, below, select);
    const uint32_t weights = mix.above[r & 1] | mix.below[r & 1] << 16;

    lower = __dp4a (both, mix.swapped ? weights << 8 : weights, 0u);
    upper = __dp4a (both, mix.swapped ? weights : weights << 8, 0u);
  } else {
    const uint32_t both = mix.above[r & 1] * (above >> 6 & 0x03ff03ff) + mix.below[r & 1] * (below >> 6 & 0x03ff03ff);

    lower = mix.swapped ? both >> 16 : both & 0xffff;
    upper = mix.swapped ? both & 0xffff : both >> 16;
  }
}

/* What column @k of the thread's has for pixels of row @r, or the one to the left, -1, or to the right. */
template <unsigned size, unsigned quads>
static __device__ __forceinline__ void
mix_column (const Mix &mix, const Input<size, quads> &in, unsigned r, int k, uint32_t share[3])
{
  const unsigned above = (r + 1) / 2, below = above + 1;
  uint32_t lower, upper;

  if (k < 0)
    mix_rows<size> (mix, r, in.left[above], in.left[below], 0x5410, lower, upper);
  else if (k == 2 * (int)quads)
    mix_rows<size> (mix, r, in.right[above], in.right[below], 0x5410, lower, upper);
  else if (size == 1)
    mix_rows<size> (mix, r, in.columns[above][k / 2], in.columns[below][k / 2], k % 2 ? 0x7632 : 0x5410, lower, upper);
  else
    mix_rows<size> (mix, r, in.columns[above][k], in.columns[below][k], 0, lower, upper);

  share[0] = mix.upper[0] * upper + mix.offset[0];
  share[1] = mix.lower[1] * lower + (uint32_t)gpu_sum ((int32_t)(mix.upper[1] * upper + mix.offset[1]));
  share[2] = mix.lower[0] * lower + mix.offset[2];
}

/* Luma of pixel @k. */
template <unsigned size>
static __device__ __forceinline__ uint32_t
luma_at (const uint32_t *words, unsigned k)
{
  return size == 1 ? (uint32_t)byte_at (words[k / 4], k % 4)
                   : __byte_perm (words[k / 2], 0, k % 2 ? 0x4432 : 0x4410) >> 6;
}

/* A row of the thread's pixels. */
template <unsigned size, unsigned quads, bool between>
static __device__ __forceinline__ void
mix_row (const Mix &mix, const Input<size, quads> &in, unsigned r, int32_t value[3][GPU_QUAD * quads])
{
  uint32_t before[3], share[3], after[3];

  if constexpr (between)
    mix_column (mix, in, r, -1, before);
  mix_column (mix, in, r, 0, share);
#pragma unroll
  for (unsigned k = 0; k < 2 * quads; k++) {
    const uint32_t even = mix.luma * luma_at<size> (in.luma[r], 2 * k) + mix.half;
    const uint32_t odd = mix.luma * luma_at<size> (in.luma[r], 2 * k + 1) + mix.half;

    mix_column (mix, in, r, (int)k + 1, after);
#pragma unroll
    for (unsigned c = 0; c < 3; c++) {
      const uint32_t most = between ? 3 * share[c] : share[c];

      value[c][2 * k] = (int32_t)(even + most + (between ? before[c] : share[c])) >> (int)mix.shift;
      value[c][2 * k + 1] = (int32_t)(odd + most + after[c]) >> (int)mix.shift;
      before[c] = share[c];
      share[c] = after[c];
    }
  }
}
