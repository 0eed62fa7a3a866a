/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion on the GPU from RGB formats to 4:2:0 and GRAY8, where four pixels can be read and written at once: a
 * thread takes eight pixels of two rows, or four pixels of four rows.
 *
 * Two instructions make a number of a pixel, whose bytes are in one word: each adds two products.
 */
#include "convert.cuh"
#include "table.cuh"

/* Words of a quad of packed pixels of @group bytes, or of three planes if that is 1. */
static __device__ constexpr unsigned
quad_words (unsigned group)
{
  return group == 4 ? 4 : 3;
}

/* GRAY8's one plane stands for the other two, of which the matrix takes nothing. */
static __device__ __forceinline__ Rows
plane_at (const GpuPixels &pixels, unsigned c, uint32_t x)
{
  return c < pixels.channels ? make_rows (pixels.data[c] + x, pixels.stride[c])
                             : make_rows (pixels.data[0] + x, pixels.stride[0]);
}

/* What a thread reads: of planes, the words of one after those of another. */
template <unsigned group, unsigned quads> struct Input {
  static constexpr unsigned rows = GPU_CONVERT_ROWS / quads;
  uint32_t words[rows][quad_words (group) * quads];
  uint32_t before[rows]; /* the pixel before the first one, or that one again where there is none */
};

template <unsigned group, unsigned quads>
static __device__ __forceinline__ void
load_rows (const GpuConvertArgs &args, uint32_t x, uint32_t y, Input<group, quads> &in)
{
  const GpuPixels &pixels = args.src.pixels;
  Rows rows[3];

#pragma unroll
  for (unsigned c = 0; c < (group == 1 ? 3 : 1); c++)
    rows[c] = group == 1 ? plane_at (pixels, c, x)
                         : make_rows (pixels.data[0] - pixels.at[0] + (size_t)x * group, pixels.stride[0]);
#pragma unroll
  for (unsigned r = 0; r < in.rows; r++) {
    /* An odd picture's last row stands for the one below it, too. */
    const uint32_t row = min (y + r, args.height - 1);

    if constexpr (group > 1) {
      gpu_load_words<group * quads> (row_at (rows[0], row), in.words[r]);
    } else {
#pragma unroll
      for (unsigned c = 0; c < 3; c++)
        gpu_load_words<quads> (row_at (rows[c], row), in.words[r] + c * quads);
    }
  }
}

template <unsigned group, unsigned quads>
static __device__ __forceinline__ void
load_before (const GpuConvertArgs &args, uint32_t x, uint32_t y, Input<group, quads> &in)
{
  const GpuPixels &pixels = args.src.pixels;
  /* Packed pixels before a quad end at a multiple of 4. */
  const uint32_t shift = group == 3 && x ? 8 : 0;
  Rows rows[3];

#pragma unroll
  for (unsigned c = 0; c < (group == 1 ? 3 : 1); c++)
    rows[c] = group == 1
                  ? plane_at (pixels, c, x ? x - 1 : 0)
                  : make_rows (pixels.data[0] - pixels.at[0] + (x ? (size_t)x * group - 4 : 0), pixels.stride[0]);
#pragma unroll
  for (unsigned r = 0; r < in.rows; r++) {
    const uint32_t row = min (y + r, args.height - 1);

    if constexpr (group > 1)
      in.before[r] = *(const uint32_t *)row_at (rows[0], row) >> shift;
    else
      in.before[r] =
          *row_at (rows[0], row) | (uint32_t)*row_at (rows[1], row) << 8 | (uint32_t)*row_at (rows[2], row) << 16;
  }
}

/* The pixels of quad @q in row @r, as words in the order of memory, or of planes. A fourth byte may be anything. */
template <unsigned group, unsigned quads>
static __device__ __forceinline__ void
split_quad (const Input<group, quads> &in, unsigned r, unsigned q, uint32_t pixel[GPU_QUAD])
{
  const uint32_t *words = in.words[r] + (group == 1 ? q : q * group);

  if constexpr (group == 4) {
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      pixel[k] = words[k];
  } else if constexpr (group == 3) {
    pixel[0] = words[0];
    pixel[1] = __byte_perm (words[0], words[1], 0x6543);
    pixel[2] = __byte_perm (words[1], words[2], 0x5432);
    pixel[3] = words[2] >> 8;
  } else {
    const uint32_t planes[4] = {words[0], words[quads], words[2 * quads], 0};

    gpu_transpose_bytes (planes, pixel);
  }
}

/* Adds what pixel @pixel has of number @c to @sum. */
static __device__ __forceinline__ int32_t
mix (const GpuConvertArgs &args, unsigned c, uint32_t pixel, int32_t sum)
{
  return gpu_dp2a_upper (args.pair[c][1], pixel, gpu_dp2a_lower (args.pair[c][0], pixel, sum));
}

/* Words of a row or a part of one, at a multiple of as many bytes. */
template <unsigned n>
static __device__ __forceinline__ void
store_words (uint8_t *p, const uint32_t words[n])
{
  if constexpr (n == 2)
    *(uint64_t *)p = (uint64_t)words[1] << 32 | words[0];
  else
    *(uint32_t *)p = words[0];
}

/* Luma of row @y. */
template <unsigned quads>
static __device__ __forceinline__ void
store_luma (const GpuConvertArgs &args, const Rows &rows, uint32_t y, const uint32_t pixel[GPU_QUAD * quads])
{
  const int32_t offset = args.offset[0] + (1 << (args.bits - 1));
  uint32_t words[quads];

#pragma unroll
  for (unsigned q = 0; q < quads; q++) {
    int32_t luma[GPU_QUAD];

#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      luma[k] = mix (args, 0, pixel[GPU_QUAD * q + k], offset) >> (int)args.bits;
    words[q] = pack_bytes (luma[0], luma[1], luma[2], luma[3]);
  }
  if (y < args.height)
    store_words<quads> (row_at (rows, y), words);
}

/* Samples of both components in row @y: in a plane that they share, or in two. */
template <unsigned quads>
static __device__ __forceinline__ void
store_chroma (const Rows rows[2], bool shared, uint32_t y, const int32_t sample[2][2 * quads])
{
  if (shared) {
    uint32_t words[quads];

#pragma unroll
    for (unsigned q = 0; q < quads; q++)
      words[q] = pack_bytes (sample[0][2 * q], sample[1][2 * q], sample[0][2 * q + 1], sample[1][2 * q + 1]);
    store_words<quads> (row_at (rows[0], y), words);
  } else {
#pragma unroll
    for (unsigned c = 0; c < 2; c++) {
      if constexpr (quads == 2)
        *(uint32_t *)row_at (rows[c], y) = pack_bytes (sample[c][0], sample[c][1], sample[c][2], sample[c][3]);
      else
        *(uint16_t *)row_at (rows[c], y) = (uint16_t)gpu_pack_saturated (sample[c][0], sample[c][1], 0);
    }
  }
}

/* To 4:2:0 where chroma lies between two rows, as it does by default. */
template <unsigned group, unsigned quads>
static __device__ __forceinline__ void
convert_to_420 (const GpuConvertArgs &args, uint32_t x, uint32_t y)
{
  const GpuPixels &chroma = args.dst.chroma;
  const bool shared = chroma.group == 2, sited = args.dst.site_x;
  Input<group, quads> in;

  load_rows (args, x, y, in);
  load_before (args, x, y, in);

  const Rows out = make_rows (args.dst.pixels.data[0] + x, args.dst.pixels.stride[0]);
  const Rows chroma_out[2] = {make_rows (chroma.data[0] + (shared ? x : x / 2), chroma.stride[0]),
                              make_rows (chroma.data[1] + x / 2, chroma.stride[1])};
#pragma unroll
  for (unsigned pair = 0; pair < in.rows / 2; pair++) {
    /* Of a sample's pixels, each with the one below it: the left one of its own, and the right one; the very first is
     * that before the row's. */
    int32_t even[2][2 * quads], odd[2][1 + 2 * quads] = {}, sample[2][2 * quads];

#pragma unroll
    for (unsigned c = 0; c < 2; c++)
#pragma unroll
      for (unsigned i = 0; i < 2 * quads; i++)
        /* Twice that in all, of which a sample is an eighth; half of it is the rounding's. */
        even[c][i] = 4 * args.offset[1 + c] + (1 << (args.bits + 1));
#pragma unroll
    for (unsigned r = 2 * pair; r < 2 * pair + 2; r++) {
      uint32_t pixel[GPU_QUAD * quads];

#pragma unroll
      for (unsigned q = 0; q < quads; q++)
        split_quad (in, r, q, pixel + GPU_QUAD * q);
      store_luma<quads> (args, out, y + r, pixel);
#pragma unroll
      for (unsigned c = 0; c < 2; c++) {
        odd[c][0] = mix (args, 1 + c, in.before[r], odd[c][0]);
#pragma unroll
        for (unsigned i = 0; i < 2 * quads; i++) {
          even[c][i] = mix (args, 1 + c, pixel[2 * i], even[c][i]);
          odd[c][1 + i] = mix (args, 1 + c, pixel[2 * i + 1], odd[c][1 + i]);
        }
      }
    }
    /* Of four quarters in each row the left pixel has two, and the ones beside it one each where chroma lies on it. */
#pragma unroll
    for (unsigned c = 0; c < 2; c++)
#pragma unroll
      for (unsigned i = 0; i < 2 * quads; i++)
        sample[c][i] = (2 * even[c][i] + odd[c][1 + i] + (sited ? odd[c][i] : odd[c][1 + i])) >> (int)(args.bits + 3);
    if (y + 2 * pair < args.height)
      store_chroma<quads> (chroma_out, shared, y / 2 + pair, sample);
  }
}

template <unsigned group, unsigned quads>
static __device__ __forceinline__ void
convert_to_gray (const GpuConvertArgs &args, uint32_t x, uint32_t y)
{
  Input<group, quads> in;

  load_rows (args, x, y, in);

  const Rows out = make_rows (args.dst.pixels.data[0] + x, args.dst.pixels.stride[0]);
#pragma unroll
  for (unsigned r = 0; r < in.rows; r++) {
    uint32_t pixel[GPU_QUAD * quads];

#pragma unroll
    for (unsigned q = 0; q < quads; q++)
      split_quad (in, r, q, pixel + GPU_QUAD * q);
    store_luma<quads> (args, out, y + r, pixel);
  }
}

template <unsigned group, unsigned quads, bool to_gray>
static __device__ __forceinline__ void
convert_quads (const GpuConvertArgs &args)
{
  const unsigned lanes = GPU_QUAD_BLOCK_X / quads, rows = GPU_CONVERT_ROWS / quads;
  const uint32_t x = (blockIdx.x * GPU_QUAD_BLOCK_X + threadIdx.x % lanes * quads) * GPU_QUAD;
  const uint32_t y = ((blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y) * quads + threadIdx.x / lanes) * rows;

  if (x >= args.width || y >= args.height)
    return;
  if constexpr (to_gray)
    convert_to_gray<group, quads> (args, x, y);
  else
    convert_to_420<group, quads> (args, x, y);
}

template <unsigned quads, bool to_gray>
static __device__ __forceinline__ void
convert_groups (const GpuConvertArgs &args)
{
  if (args.src.pixels.group == 4)
    convert_quads<4, quads, to_gray> (args);
  else if (args.src.pixels.group == 3)
    convert_quads<3, quads, to_gray> (args);
  else
    convert_quads<1, quads, to_gray> (args);
}

static __device__ __forceinline__ void
run_convert_to_yuv (const GpuConvertArgs &args)
{
  if (args.wide)
    convert_groups<2, false> (args);
  else
    convert_groups<1, false> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_convert_to_yuv (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_to_yuv (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_convert_to_yuv_table (const __grid_constant__ GpuTable<GpuConvertArgs> table)
{
  run_convert_to_yuv (gpu_table_args (table));
}

static __device__ __forceinline__ void
run_convert_to_gray (const GpuConvertArgs &args)
{
  if (args.wide)
    convert_groups<2, true> (args);
  else
    convert_groups<1, true> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 6)
    gpu_convert_to_gray (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_to_gray (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 6)
    gpu_convert_to_gray_table (const __grid_constant__ GpuTable<GpuConvertArgs> table)
{
  run_convert_to_gray (gpu_table_args (table));
}
