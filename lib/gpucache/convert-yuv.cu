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

/* What a thread reads: of planes, the words of one after those of another. */
template <unsigned group, unsigned quads> struct Input {
  static constexpr unsigned rows = GPU_CONVERT_ROWS / quads;
  uint32_t words[rows][quad_words (group) * quads];
  uint32_t before[rows]; /* the pixel before the first one, or that one again where there is none */
};

template <unsigned group, unsigned quads>
static __device__ __forceinline__ void
load_rows (const GpuConvertToYuvParam &param, uint32_t x, uint32_t y, Input<group, quads> &in)
{
  Rows<const uint8_t> rows[3];

#pragma unroll
  for (unsigned c = 0; c < (group == 1 ? 3 : 1); c++)
    rows[c] = make_rows (param.src[c] + (size_t)x * group, param.src_stride[c]);
#pragma unroll
  for (unsigned r = 0; r < in.rows; r++) {
    /* An odd picture's last row stands for the one below it, too. */
    const uint32_t row = min (y + r, param.height - 1);

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
load_before (const GpuConvertToYuvParam &param, uint32_t x, uint32_t y, Input<group, quads> &in)
{
  /* Packed pixels before a quad end at a multiple of 4. */
  const uint32_t shift = group == 3 && x ? 8 : 0;
  const size_t at = x ? (size_t)x * group - (group == 1 ? 1 : 4) : 0;
  Rows<const uint8_t> rows[3];

#pragma unroll
  for (unsigned c = 0; c < (group == 1 ? 3 : 1); c++)
    rows[c] = make_rows (param.src[c] + at, param.src_stride[c]);
#pragma unroll
  for (unsigned r = 0; r < in.rows; r++) {
    const uint32_t row = min (y + r, param.height - 1);

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
mix (const GpuConvertToYuvParam &param, unsigned c, uint32_t pixel, int32_t sum)
{
  return gpu_dp2a_upper (param.pair[c][1], pixel, gpu_dp2a_lower (param.pair[c][0], pixel, sum));
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
store_luma (const GpuConvertToYuvParam &param, const Rows<uint8_t> &rows, uint32_t y,
            const uint32_t pixel[GPU_QUAD * quads])
{
  uint32_t words[quads];

#pragma unroll
  for (unsigned q = 0; q < quads; q++) {
    int32_t luma[GPU_QUAD];

#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      luma[k] = mix (param, 0, pixel[GPU_QUAD * q + k], param.offset[0]) >> (int)param.bits;
    words[q] = pack_bytes (luma[0], luma[1], luma[2], luma[3]);
  }
  if (y < param.height)
    store_words<quads> (row_at (rows, y), words);
}

/* Samples of both components in row @y: in a plane that they share, or in two. */
template <unsigned quads>
static __device__ __forceinline__ void
store_chroma (const Rows<uint8_t> rows[2], bool shared, uint32_t y, const int32_t sample[2][2 * quads])
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
convert_to_420 (const GpuConvertToYuvParam &param, uint32_t x, uint32_t y)
{
  const bool shared = param.shared, sited = param.sited;
  Input<group, quads> in;

  load_rows (param, x, y, in);
  load_before (param, x, y, in);

  const Rows<uint8_t> out = make_rows (param.luma + x, param.luma_stride);
  const Rows<uint8_t> chroma[2] = {make_rows (param.chroma[0] + (shared ? x : x / 2), param.chroma_stride[0]),
                                   make_rows (param.chroma[1] + x / 2, param.chroma_stride[1])};
#pragma unroll
  for (unsigned pair = 0; pair < in.rows / 2; pair++) {
    /* Of a sample's pixels, each with the one below it: the left one of its own, and the right one; the very first is
     * that before the row's. */
    int32_t even[2][2 * quads], odd[2][1 + 2 * quads] = {}, sample[2][2 * quads];

#pragma unroll
    for (unsigned c = 0; c < 2; c++)
#pragma unroll
      for (unsigned i = 0; i < 2 * quads; i++)
        even[c][i] = param.offset[1 + c];
#pragma unroll
    for (unsigned r = 2 * pair; r < 2 * pair + 2; r++) {
      uint32_t pixel[GPU_QUAD * quads];

#pragma unroll
      for (unsigned q = 0; q < quads; q++)
        split_quad (in, r, q, pixel + GPU_QUAD * q);
      store_luma<quads> (param, out, y + r, pixel);
#pragma unroll
      for (unsigned c = 0; c < 2; c++) {
        odd[c][0] = mix (param, 1 + c, in.before[r], odd[c][0]);
#pragma unroll
        for (unsigned i = 0; i < 2 * quads; i++) {
          even[c][i] = mix (param, 1 + c, pixel[2 * i], even[c][i]);
          odd[c][1 + i] = mix (param, 1 + c, pixel[2 * i + 1], odd[c][1 + i]);
        }
      }
    }
    /* Of four quarters in each row the left pixel has two, and the ones beside it one each where chroma lies on it. */
#pragma unroll
    for (unsigned c = 0; c < 2; c++)
#pragma unroll
      for (unsigned i = 0; i < 2 * quads; i++)
        sample[c][i] = (2 * even[c][i] + odd[c][1 + i] + (sited ? odd[c][i] : odd[c][1 + i])) >> (int)(param.bits + 3);
    if (y + 2 * pair < param.height)
      store_chroma<quads> (chroma, shared, y / 2 + pair, sample);
  }
}

template <unsigned group, unsigned quads>
static __device__ __forceinline__ void
convert_to_gray (const GpuConvertToYuvParam &param, uint32_t x, uint32_t y)
{
  Input<group, quads> in;

  load_rows (param, x, y, in);

  const Rows<uint8_t> out = make_rows (param.luma + x, param.luma_stride);
#pragma unroll
  for (unsigned r = 0; r < in.rows; r++) {
    uint32_t pixel[GPU_QUAD * quads];

#pragma unroll
    for (unsigned q = 0; q < quads; q++)
      split_quad (in, r, q, pixel + GPU_QUAD * q);
    store_luma<quads> (param, out, y + r, pixel);
  }
}

template <unsigned group, unsigned quads, bool to_gray>
static __device__ __forceinline__ void
convert_quads (const GpuConvertToYuvParam &param)
{
  const unsigned lanes = GPU_QUAD_BLOCK_X / quads, rows = GPU_CONVERT_ROWS / quads;
  const uint32_t x = (blockIdx.x * GPU_QUAD_BLOCK_X + threadIdx.x % lanes * quads) * GPU_QUAD;
  const uint32_t y = ((blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y) * quads + threadIdx.x / lanes) * rows;

  if (x >= param.width || y >= param.height)
    return;
  if constexpr (to_gray)
    convert_to_gray<group, quads> (param, x, y);
  else
    convert_to_420<group, quads> (param, x, y);
}

template <unsigned quads, bool to_gray>
static __device__ __forceinline__ void
convert_groups (const GpuConvertToYuvParam &param)
{
  if (param.src_group == 4)
    convert_quads<4, quads, to_gray> (param);
  else if (param.src_group == 3)
    convert_quads<3, quads, to_gray> (param);
  else
    convert_quads<1, quads, to_gray> (param);
}

static __device__ __forceinline__ void
run_convert_to_yuv (const GpuConvertToYuvParam &param)
{
  if (param.wide)
    convert_groups<2, false> (param);
  else
    convert_groups<1, false> (param);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_convert_to_yuv (const __grid_constant__ GpuConvertToYuvParam param)
{
  run_convert_to_yuv (param);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_convert_to_yuv_table (const __grid_constant__ GpuTable<GpuConvertToYuvParam> table)
{
  run_convert_to_yuv (gpu_table_param (table));
}

static __device__ __forceinline__ void
run_convert_to_gray (const GpuConvertToYuvParam &param)
{
  if (param.wide)
    convert_groups<2, true> (param);
  else
    convert_groups<1, true> (param);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 6)
    gpu_convert_to_gray (const __grid_constant__ GpuConvertToYuvParam param)
{
  run_convert_to_gray (param);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 6)
    gpu_convert_to_gray_table (const __grid_constant__ GpuTable<GpuConvertToYuvParam> table)
{
  run_convert_to_gray (gpu_table_param (table));
}
