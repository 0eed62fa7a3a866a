/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that kernels from 4:2:0 share: what a thread reads, and R, G and B of its pixels.
 *
 * Chroma is mixed between rows first, then goes through the matrix, and what comes of that is mixed between columns:
 * sums are the same in any order, and there are half as many columns as pixels.
 */
#pragma once

#include "convert.cuh"

/* Chroma of one column is U and V, lower and upper in a word. */

/* The columns of @quads quads at @u, and @v where they have planes of their own: bytes or halves in the order U, V. */
template <unsigned size, unsigned group, unsigned quads>
static __device__ __forceinline__ void
load_columns (const uint8_t *u, const uint8_t *v, uint32_t words[size * quads])
{
  if constexpr (group == 2) {
    gpu_load_words<size * quads> (u, words);
  } else if constexpr (quads > 1) {
    uint32_t first[quads / 2], second[quads / 2];

    gpu_load_words<quads / 2> (u, first);
    gpu_load_words<quads / 2> (v, second);
#pragma unroll
    for (unsigned i = 0; i < quads / 2; i++) {
      words[2 * i] = __byte_perm (first[i], second[i], 0x5140);
      words[2 * i + 1] = __byte_perm (first[i], second[i], 0x7362);
    }
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

/* @y: the first of the thread's rows, an even one if they are several; if it has one only, that exists. */
template <unsigned size, unsigned group, unsigned quads, bool between>
static __device__ __forceinline__ void
load_input (const GpuConvert420Param &param, uint32_t x, uint32_t y, Input<size, quads> &in)
{
  /* Columns: the thread's own ones, and those to the right and to the left of them, or its own at an edge. */
  const uint32_t at[3] = {x / 2, min (x / 2 + 2 * quads, param.last_column), x ? x / 2 - 1 : 0};
  const Rows<const uint8_t> luma = make_rows (param.luma + (size_t)x * size, param.luma_stride);
  const uint32_t middle = (y + 1) / 2;
  Rows<const uint8_t> u[3], v[3];
  uint32_t row[Input<size, quads>::chroma_rows];

#pragma unroll
  for (unsigned k = 0; k < 2 + between; k++) {
    /* Pixels are even. */
    const size_t offset = group == 2 && k == 0 ? (size_t)x * size : (size_t)at[k] * (size * group);

    u[k] = make_rows (param.chroma[0] + offset, param.chroma_stride[0]);
    v[k] = group == 2 ? u[k] : make_rows (param.chroma[1] + offset, param.chroma_stride[1]);
  }
#pragma unroll
  for (unsigned r = 0; r < in.chroma_rows; r++) {
    row[r] = r ? middle + r - 1 : (uint32_t)max ((int32_t)middle - 1, 0);
    if (r || in.rows > 1)
      row[r] = min (row[r], param.last_row);
    load_columns<size, group, quads> (row_at (u[0], row[r]), row_at (v[0], row[r]), in.columns[r]);
  }
#pragma unroll
  for (unsigned r = 0; r < in.chroma_rows; r++) {
    in.right[r] = load_column<size, group> (row_at (u[1], row[r]), row_at (v[1], row[r]));
    if constexpr (between)
      in.left[r] = load_column<size, group> (row_at (u[2], row[r]), row_at (v[2], row[r]));
  }
#pragma unroll
  for (unsigned r = 0; r < in.rows; r++)
    gpu_load_words<size * quads> (row_at (luma, in.rows > 1 ? min (y + r, param.height - 1) : y), in.luma[r]);
}

/* What a thread keeps in registers of its own. */
struct Mix {
  uint32_t offset[3];
  uint32_t weights[2]; /* where it has one row only */
  uint32_t none;       /* 0, which the compiler does not know */
};

/* @y: of the thread's one row, if it has one. */
static __device__ __forceinline__ Mix
make_mix (const GpuConvert420Param &param, uint32_t y)
{
  Mix mix;

  mix.none = (uint32_t)gpu_own (0);
#pragma unroll
  for (unsigned c = 0; c < 3; c++)
    mix.offset[c] = (uint32_t)gpu_own ((int32_t)param.offset[c]);
#pragma unroll
  for (unsigned i = 0; i < 2; i++)
    mix.weights[i] = y % 2 ? param.weights[1][i] : param.weights[0][i];
  return mix;
}

/* Between rows: the columns of two chroma rows, in the order that load_columns() gives, with the weights of row @r. */
template <unsigned size, unsigned quads>
static __device__ __forceinline__ void
mix_rows (const GpuConvert420Param &param, const Mix &mix, unsigned r, uint32_t above, uint32_t below, unsigned select,
          uint32_t &lower, uint32_t &upper)
{
  if constexpr (size == 1) {
    /* U, V, U, V from above and below. */
    const uint32_t both = __byte_perm (above, below, select);

    lower = __dp4a (both, quads == 4 ? mix.weights[0] : param.weights[r & 1][0], 0u);
    upper = __dp4a (both, quads == 4 ? mix.weights[1] : param.weights[r & 1][1], 0u);
  } else {
    const uint32_t both =
        param.above[r & 1] * (above >> 6 & 0x03ff03ff) + param.below[r & 1] * (below >> 6 & 0x03ff03ff);

    lower = gpu_unsigned_dp2a_lower (both, param.select[0], 0);
    upper = gpu_unsigned_dp2a_lower (both, param.select[1], 0);
  }
}

/* What column @k of the thread's has for pixels of row @r, or the one to the left, -1, or to the right. */
template <unsigned size, unsigned quads>
static __device__ __forceinline__ void
mix_column (const GpuConvert420Param &param, const Mix &mix, const Input<size, quads> &in, unsigned r, int k,
            uint32_t share[3])
{
  const unsigned above = (r + 1) / 2, below = above + 1;
  uint32_t lower, upper;

  if (k < 0)
    mix_rows<size, quads> (param, mix, r, in.left[above], in.left[below], 0x5410, lower, upper);
  else if (k == 2 * (int)quads)
    mix_rows<size, quads> (param, mix, r, in.right[above], in.right[below], 0x5410, lower, upper);
  else if (size == 1)
    mix_rows<size, quads> (param, mix, r, in.columns[above][k / 2], in.columns[below][k / 2], k % 2 ? 0x7632 : 0x5410,
                           lower, upper);
  else
    mix_rows<size, quads> (param, mix, r, in.columns[above][k], in.columns[below][k], 0, lower, upper);

  share[0] = param.upper[0] * upper + mix.offset[0];
  share[1] = param.lower[1] * lower + (uint32_t)gpu_sum ((int32_t)(param.upper[1] * upper + mix.offset[1]));
  share[2] = param.lower[0] * lower + mix.offset[2];
}

/* Luma of pixel @k. Byte permutations and logic keep one kind of the GPU's units busier than products do the other: so
 * every other pixel is a product by one. */
template <unsigned size>
static __device__ __forceinline__ uint32_t
luma_at (const uint32_t *words, unsigned k)
{
  if constexpr (size == 1)
    return k % 2 ? (uint32_t)byte_at (words[k / 4], k % 4) : __dp4a (words[k / 4], 1u << (8 * (k % 4)), 0u);
  else
    return gpu_unsigned_dp2a_lower (words[k / 2] >> 6 & 0x03ff03ff, k % 2 ? 0x0100 : 0x0001, 0);
}

/* Rows are worked out from right to left, so that what was read beside the thread's own columns is used up first. What
 * goes from one quad to the next: of the column to the right, and, where chroma lies between pixels, of the one at
 * hand.
 */
struct Shares {
  uint32_t after[3];
  uint32_t at[3];
};

template <unsigned size, unsigned quads, bool between>
static __device__ __forceinline__ Shares
start_row (const GpuConvert420Param &param, const Mix &mix, const Input<size, quads> &in, unsigned r)
{
  Shares shares = {};

  mix_column (param, mix, in, r, 2 * quads, shares.after);
  if constexpr (between)
    mix_column (param, mix, in, r, 2 * quads - 1, shares.at);
  return shares;
}

/* Quad @q of row @r, after the ones to the right of it. */
template <unsigned size, unsigned quads, bool between>
static __device__ __forceinline__ void
mix_quad (const GpuConvert420Param &param, const Mix &mix, const Input<size, quads> &in, unsigned r, unsigned q,
          Shares &shares, int32_t value[3][GPU_QUAD])
{
#pragma unroll
  for (int k = 1; k >= 0; k--) {
    const int column = 2 * (int)q + k;
    const uint32_t even = luma_at<size> (in.luma[r], 2 * column), odd = luma_at<size> (in.luma[r], 2 * column + 1);
    const uint32_t odd_luma = param.luma_factor[1] * odd + mix.none;
    uint32_t before[3];

    mix_column (param, mix, in, r, between ? column - 1 : column, between ? before : shares.at);
#pragma unroll
    for (unsigned c = 0; c < 3; c++) {
      const uint32_t most = between ? 3 * shares.at[c] : shares.at[c];

      value[c][2 * k] =
          (int32_t)(param.luma_factor[0] * even + (between ? most + before[c] : most)) >> (int)param.shift[0];
      value[c][2 * k + 1] = (int32_t)(odd_luma + most + shares.after[c]) >> (int)param.shift[1];
      shares.after[c] = shares.at[c];
      if constexpr (between)
        shares.at[c] = before[c];
    }
  }
}
