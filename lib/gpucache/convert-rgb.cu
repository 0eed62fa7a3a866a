/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion on the GPU from 4:2:0 to RGB formats, where four pixels can be read and written at once: a thread makes
 * four rows of them. The chroma beside its own it reads itself, too: its neighbours have just brought it into the
 * cache, and that takes fewer instructions than asking them for it.
 */
#include "convert.cuh"
#include "table.cuh"

/** Rows of a thread: two pairs, which lie on one another, so that they share the chroma rows around them. */
#define ROWS GPU_CONVERT_ROWS
#define CHROMA_ROWS (ROWS / 2 + 2)

/* What a warp's row of RGB has: three words for four pixels, and so 16 bytes for 24 of its threads. */
#define STAGE_CHUNKS (3 * GPU_QUAD_BLOCK_X / 4)

/* Chroma of one column is U in the lower half of a word and V in the upper one. If @swapped, it is the other way round,
 * which makes BGR of what would be RGB. */

/* Two columns at @u, and @v where they have planes of their own. */
template <unsigned size, unsigned group>
static __device__ __forceinline__ uint2
load_columns (const uint8_t *u, const uint8_t *v)
{
  if constexpr (size == 2)
    return *(const uint2 *)u;
  else if constexpr (group == 2)
    return make_uint2 (*(const uint32_t *)u, 0);
  else
    return make_uint2 (*(const uint16_t *)u, *(const uint16_t *)v);
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

/* What load_columns() and load_column() gave, as columns: the one to the left, the two, and the one to the right. */
template <unsigned size, unsigned group>
static __device__ __forceinline__ void
split_columns (const uint2 &both, uint32_t right, uint32_t left, bool swapped, uint32_t column[4])
{
  if constexpr (size == 2) {
    const uint32_t order = swapped ? 0x1032 : 0x3210, in[4] = {left, both.x, both.y, right};

#pragma unroll
    for (unsigned k = 0; k < 4; k++)
      column[k] = __byte_perm (in[k], 0, order) >> 6 & 0x03ff03ff;
  } else {
    const uint32_t first = swapped ? 0x4041 : 0x4140;

    column[0] = __byte_perm (left, 0, first);
    if constexpr (group == 2) {
      column[1] = __byte_perm (both.x, 0, first);
      column[2] = __byte_perm (both.x, 0, first + 0x0202);
    } else {
      column[1] = __byte_perm (both.x, both.y, swapped ? 0x2024 : 0x2420);
      column[2] = __byte_perm (both.x, both.y, swapped ? 0x2125 : 0x2521);
    }
    column[3] = __byte_perm (right, 0, first);
  }
}

/* What a thread reads. */
template <unsigned size> struct Input {
  uint2 luma[ROWS];
  uint2 columns[CHROMA_ROWS];
  uint32_t right[CHROMA_ROWS];
  uint32_t left[CHROMA_ROWS];
};

template <unsigned size, unsigned group>
static __device__ __forceinline__ void
load_input (const GpuConvertArgs &args, uint32_t x, uint32_t y, Input<size> &in)
{
  const GpuPixels &luma = args.src.pixels, &chroma = args.src.chroma;
  const uint32_t last = args.src.chroma_width - 1, last_row = args.src.chroma_height - 1;
  /* Columns: the thread's own ones, and those to the right and to the left of them, or its own at an edge. */
  const uint32_t at[3] = {x / 2, min (x / 2 + 2, last), x ? x / 2 - 1 : 0};
  const Rows rows = make_rows (luma.data[0] + (size_t)x * size, luma.stride[0]);
  Rows u[3], v[3];

#pragma unroll
  for (unsigned k = 0; k < 3; k++) {
    u[k] = make_rows (chroma.data[0] + (size_t)at[k] * (size * group), chroma.stride[0]);
    v[k] = group == 2 ? u[k] : make_rows (chroma.data[1] + at[k], chroma.stride[1]);
  }
#pragma unroll
  for (unsigned r = 0; r < ROWS; r++) {
    const uint8_t *p = row_at (rows, min (y + r, args.height - 1));

    if constexpr (size == 1)
      in.luma[r] = make_uint2 (*(const uint32_t *)p, 0);
    else
      in.luma[r] = *(const uint2 *)p;
  }
#pragma unroll
  for (unsigned r = 0; r < CHROMA_ROWS; r++) {
    const uint32_t row = min (y / 2 + r ? y / 2 + r - 1 : 0, last_row);

    in.columns[r] = load_columns<size, group> (row_at (u[0], row), row_at (v[0], row));
    in.right[r] = load_column<size, group> (row_at (u[1], row), row_at (v[1], row));
    in.left[r] = 0;
    if (!args.src.site_x)
      in.left[r] = load_column<size, group> (row_at (u[2], row), row_at (v[2], row));
  }
}

/* The matrix, for numbers in the order of memory. Of RGB's three red has no share of U and blue none of V, and luma's
 * share of all is the same. */
struct Mix {
  int32_t luma;
  int32_t upper[2]; /* of the first and the middle number, in the column's upper half */
  int32_t lower[2]; /* of the third and the middle one */
  int32_t offset[3];
  uint32_t shift;
  /* Quarters that a pixel has of the columns around it, and a row of the ones around it. */
  uint32_t even[2], odd[2], above[2], below[2];
};

static __device__ __forceinline__ Mix
make_mix (const GpuConvertArgs &args, bool swapped)
{
  const Matrix matrix = matrix_to_samples (args, GPU_CONVERT_SUB_BITS);

  return Mix{matrix.m[0][0],
             {swapped ? matrix.m[2][1] : matrix.m[0][2], swapped ? matrix.m[1][1] : matrix.m[1][2]},
             {swapped ? matrix.m[0][2] : matrix.m[2][1], swapped ? matrix.m[1][2] : matrix.m[1][1]},
             {gpu_own (swapped ? matrix.offset[2] : matrix.offset[0]), gpu_own (matrix.offset[1]),
              gpu_own (swapped ? matrix.offset[0] : matrix.offset[2])},
             matrix.shift,
             {gpu_once (1 - args.src.site_x), gpu_once (3 + args.src.site_x)},
             {gpu_once (3 - args.src.site_x), gpu_once (1 + args.src.site_x)},
             {gpu_once (1 - args.src.site_y), gpu_once (3 - args.src.site_y)},
             {gpu_once (3 + args.src.site_y), gpu_once (1 + args.src.site_y)}};
}

/* Four pixels, whose columns and the ones beside them have been mixed between rows. */
template <unsigned size>
static __device__ __forceinline__ void
mix_row (const Mix &mix, const uint2 &luma, const uint32_t column[4], int32_t value[3][GPU_QUAD])
{
#pragma unroll
  for (unsigned k = 0; k < GPU_QUAD; k++) {
    const unsigned c = k / 2 + 1;
    const uint32_t chroma = k & 1 ? mix.odd[0] * column[c] + mix.odd[1] * column[c + 1]
                                  : mix.even[0] * column[c - 1] + mix.even[1] * column[c];
    const int32_t lower = (int32_t)(chroma & 0xffff), upper = (int32_t)(chroma >> 16);
    int32_t y;

    if constexpr (size == 1) {
      y = byte_at (luma.x, k);
    } else {
      const uint32_t word = k < 2 ? luma.x : luma.y;
      y = (int32_t)((k & 1 ? word >> 16 : word & 0xffff) >> 6);
    }
    const int32_t first = gpu_sum (mix.upper[0] * upper + mix.offset[0]);
    const int32_t middle = gpu_sum (mix.lower[1] * lower + (mix.upper[1] * upper + mix.offset[1]));
    const int32_t third = gpu_sum (mix.lower[0] * lower + mix.offset[2]);

    value[0][k] = (mix.luma * y + first) >> (int)mix.shift;
    value[1][k] = (mix.luma * y + middle) >> (int)mix.shift;
    value[2][k] = (mix.luma * y + third) >> (int)mix.shift;
  }
}

/* Where __byte_perm() finds the bytes of a pixel of four in R, G, B, 255. */
static __device__ __forceinline__ uint32_t
order_of (const GpuPixels &pixels)
{
  uint32_t order = 0x3333;

#pragma unroll
  for (unsigned c = 0; c < 3; c++)
    order ^= (3 ^ c) << (4 * pixels.at[c]);
  return order;
}

/* Writes the warp's rows from @y on, whose words are in @stage: 16 bytes a thread, side by side. */
static __device__ __forceinline__ void
store_staged (const GpuConvertArgs &args, uint32_t x0, uint32_t y, const uint4 *stage)
{
  const GpuPixels &pixels = args.dst.pixels;
  const uint32_t at = 16 * threadIdx.x, bytes = 3 * min (args.width - x0, GPU_QUAD * GPU_QUAD_BLOCK_X);
  const Rows rows = {pixels.data[0] - pixels.at[0] + 3 * (size_t)x0 + at, (uint32_t)pixels.stride[0]};
  const uint4 *chunk = stage + threadIdx.x;

  if (at + 16 <= bytes) {
#pragma unroll
    for (unsigned r = 0; r < ROWS; r++)
      if (y + r < args.height)
        *(uint4 *)row_at (rows, y + r) = chunk[r * STAGE_CHUNKS];
  } else if (at < bytes) {
    /* What whole quads leave of a chunk is whole words. */
#pragma unroll 1
    for (unsigned r = 0; r < ROWS && y + r < args.height; r++)
#pragma unroll 1
      for (unsigned k = 0; at + 4 * k < bytes; k++)
        ((uint32_t *)row_at (rows, y + r))[k] = ((const uint32_t *)(chunk + r * STAGE_CHUNKS))[k];
  }
}

/* Where a thread writes: its first pixel in the first row, in each plane. */
template <unsigned dst_group>
static __device__ __forceinline__ void
make_output (const GpuPixels &pixels, uint32_t x, Rows out[3])
{
#pragma unroll
  for (unsigned c = 0; c < 3; c++)
    out[c] = dst_group == 1
                 ? make_rows (pixels.data[c] + x, pixels.stride[c])
                 : Rows{pixels.data[0] - pixels.at[0] + 4 * (size_t)x, gpu_once ((uint32_t)pixels.stride[0])};
}

template <unsigned dst_group>
static __device__ __forceinline__ void
store_row (const Rows out[3], uint32_t y, uint32_t order, const int32_t value[3][GPU_QUAD])
{
  if constexpr (dst_group == 4) {
    uint32_t pixel[GPU_QUAD];

#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      pixel[k] = __byte_perm (pack_bytes (value[0][k], value[1][k], value[2][k], 255), 0, order);
    gpu_store_words<4> (row_at (out[0], y), pixel);
  } else {
#pragma unroll
    for (unsigned c = 0; c < 3; c++)
      *(uint32_t *)row_at (out[c], y) = pack_bytes (value[c][0], value[c][1], value[c][2], value[c][3]);
  }
}

static __device__ __forceinline__ void
stage_row (uint32_t *words, const int32_t v[3][GPU_QUAD])
{
  words[0] = pack_bytes (v[0][0], v[1][0], v[2][0], v[0][1]);
  words[1] = pack_bytes (v[1][1], v[2][1], v[0][2], v[1][2]);
  words[2] = pack_bytes (v[2][2], v[0][3], v[1][3], v[2][3]);
}

template <unsigned size, unsigned group, unsigned dst_group>
static __device__ __forceinline__ void
convert_rows (const GpuConvertArgs &args, uint32_t *stage)
{
  const uint32_t x0 = blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD, x = x0 + GPU_QUAD * threadIdx.x;
  const uint32_t y = (blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y) * ROWS;
  const bool swapped = dst_group == 3 && args.dst.pixels.at[0] == 2;
  Input<size> in;

  if (x0 >= args.width || y >= args.height)
    return;
  /* All lanes of a warp stay: those beyond the edge read what the last one before it does. */
  load_input<size, group> (args, min (x, args.width - GPU_QUAD), y, in);

  const Mix mix = make_mix (args, swapped);
  const uint32_t order = gpu_once (order_of (args.dst.pixels));
  uint32_t column[CHROMA_ROWS][4];
  Rows out[3];

  make_output<dst_group> (args.dst.pixels, x, out);
#pragma unroll
  for (unsigned r = 0; r < CHROMA_ROWS; r++)
    split_columns<size, group> (in.columns[r], in.right[r], in.left[r], swapped, column[r]);
#pragma unroll
  for (unsigned r = 0; r < ROWS; r++) {
    /* Between two rows; both components at once, in 16 bits each. */
    uint32_t between[4];
    int32_t value[3][GPU_QUAD];

#pragma unroll
    for (unsigned k = 0; k < 4; k++)
      between[k] = mix.above[r & 1] * column[(r + 1) / 2][k] + mix.below[r & 1] * column[(r + 1) / 2 + 1][k];
    mix_row<size> (mix, in.luma[r], between, value);
    if constexpr (dst_group == 3)
      stage_row (stage + 3 * (r * GPU_QUAD_BLOCK_X + threadIdx.x), value);
    else if (y + r < args.height && x < args.width)
      store_row<dst_group> (out, y + r, order, value);
  }
  if constexpr (dst_group == 3) {
    __syncwarp ();
    store_staged (args, x0, y, (const uint4 *)stage);
  }
}

template <unsigned dst_group>
static __device__ __forceinline__ void
convert_rows_from (const GpuConvertArgs &args, uint32_t *stage)
{
  if (args.src.pixels.size == 2)
    convert_rows<2, 2, dst_group> (args, stage);
  else if (args.src.chroma.group == 2)
    convert_rows<1, 2, dst_group> (args, stage);
  else
    convert_rows<1, 1, dst_group> (args, stage);
}

static __device__ __forceinline__ void
run_convert_to_rgb (const GpuConvertArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][ROWS * STAGE_CHUNKS];
  uint32_t *words = (uint32_t *)stage[threadIdx.y];

  if (args.dst.pixels.group == 4)
    convert_rows_from<4> (args, words);
  else if (args.dst.pixels.group == 3)
    convert_rows_from<3> (args, words);
  else
    convert_rows_from<1> (args, words);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_convert_to_rgb (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_to_rgb (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_convert_to_rgb_table (const __grid_constant__ GpuTable<GpuConvertArgs> table)
{
  run_convert_to_rgb (gpu_table_args (table));
}
