/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion on the GPU from 4:2:0 to RGB formats, where four pixels can be read and written at once: a thread makes 16
 * pixels of a row, eight of two rows, or four of four rows. The chroma beside its own it reads itself, too: its
 * neighbours have just brought it into the cache, and that takes fewer instructions than asking them for it.
 */
#include "convert-420.cuh"
#include "table.cuh"

/* Where a warp puts its rows of pixels of @dst_group bytes, so that it can write 16 bytes a thread side by side: of 24
 * of its threads, or all. */
template <unsigned dst_group, unsigned quads> struct Stage {
  static constexpr unsigned lanes = GPU_QUAD_BLOCK_X / quads;
  static constexpr bool is_used = dst_group == 3 || (dst_group == 4 && quads > 1);
  /* Of four bytes a pixel a thread has as many chunks as quads: the first ones of all threads lie side by side, then
   * the second ones, with a gap after each, so that eight threads, one after the other, always have all banks. */
  static constexpr unsigned across = lanes + 8 / quads;
  static constexpr unsigned chunks = dst_group == 4 ? quads * across : 24;

  static __device__ __forceinline__ unsigned place (unsigned chunk)
  {
    return dst_group == 4 ? chunk % quads * across + chunk / quads : chunk;
  }
};

/* Of a row, at most. */
#define STAGE_CHUNKS 40

/* Pixels of four bytes whose fourth, which is 255, is to be the first. */
static __device__ __forceinline__ uint4
rotated (const uint4 &pixels)
{
  return make_uint4 (__byte_perm (pixels.x, 0, 0x2103), __byte_perm (pixels.y, 0, 0x2103),
                     __byte_perm (pixels.z, 0, 0x2103), __byte_perm (pixels.w, 0, 0x2103));
}

/* Writes what is in @stage of the warp's four rows, of which the first is row @y. */
template <unsigned dst_group, unsigned quads>
static __device__ __forceinline__ void
store_staged (const GpuConvert420Param &param, uint32_t x0, uint32_t y, uint4 *stage)
{
  using Its = Stage<dst_group, quads>;
  const uint32_t at = 16 * threadIdx.x;
  const Rows<uint8_t> rows = make_rows (param.dst[0] + dst_group * (size_t)x0 + at, param.dst_stride[0]);
  uint4 *chunk = stage + Its::place (threadIdx.x);

  if (dst_group == 4 && param.rotated)
#pragma unroll 1
    for (unsigned r = 0; r < GPU_CONVERT_ROWS; r++)
      chunk[r * Its::chunks] = rotated (chunk[r * Its::chunks]);
  if (x0 + GPU_QUAD * GPU_QUAD_BLOCK_X <= param.width && y + GPU_CONVERT_ROWS <= param.height) {
    if (dst_group == 4 || threadIdx.x < Its::chunks)
#pragma unroll
      for (unsigned r = 0; r < GPU_CONVERT_ROWS; r++)
        *(uint4 *)row_at (rows, y + r) = chunk[r * Its::chunks];
    return;
  }

  const uint32_t bytes = dst_group * min (param.width - x0, GPU_QUAD * GPU_QUAD_BLOCK_X);

#pragma unroll 1
  for (unsigned r = 0; r < GPU_CONVERT_ROWS && y + r < param.height; r++)
    if (at + 16 <= bytes)
      *(uint4 *)row_at (rows, y + r) = chunk[r * Its::chunks];
    else
    /* What whole quads leave of a chunk is whole words. */
#pragma unroll 1
      for (unsigned k = 0; at + 4 * k < bytes; k++)
        ((uint32_t *)row_at (rows, y + r))[k] = ((const uint32_t *)(chunk + r * Its::chunks))[k];
}

/* Four pixels of @dst_group bytes, as words in the order of memory, or of each plane a word. */
template <unsigned dst_group>
static __device__ __forceinline__ void
pack_quad (const int32_t value[3][GPU_QUAD], uint32_t words[4])
{
  if constexpr (dst_group == 4) {
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      words[k] = pack_bytes (value[0][k], value[1][k], value[2][k], 255);
  } else if constexpr (dst_group == 3) {
    words[0] = pack_bytes (value[0][0], value[1][0], value[2][0], value[0][1]);
    words[1] = pack_bytes (value[1][1], value[2][1], value[0][2], value[1][2]);
    words[2] = pack_bytes (value[2][2], value[0][3], value[1][3], value[2][3]);
  } else {
#pragma unroll
    for (unsigned c = 0; c < 3; c++)
      words[c] = pack_bytes (value[c][0], value[c][1], value[c][2], value[c][3]);
  }
}

template <unsigned size, unsigned group, unsigned dst_group, unsigned quads, bool between>
static __device__ __forceinline__ void
convert_rows (const GpuConvert420Param &param, uint4 *stage)
{
  using Its = Stage<dst_group, quads>;
  const unsigned lane = threadIdx.x % Its::lanes, rows = GPU_CONVERT_ROWS / quads;
  const uint32_t x0 = blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD, x = x0 + GPU_QUAD * quads * lane;
  const uint32_t y0 = (blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y) * GPU_CONVERT_ROWS;
  const uint32_t y = y0 + threadIdx.x / Its::lanes * rows;
  Input<size, quads> in;

  static_assert (!Its::is_used || Its::chunks <= STAGE_CHUNKS, "what a warp has for a row");
  if (x0 >= param.width || y0 >= param.height)
    return;
  /* All lanes of a warp stay: those beyond the edge read what the last one before it does. */
  load_input<size, group, quads, between> (param, min (x, param.width - GPU_QUAD * quads),
                                           rows == 1 ? min (y, param.height - 1) : y, in);

  const Mix mix = make_mix (param, y);
#pragma unroll
  for (unsigned r = 0; r < rows; r++) {
    Shares shares = start_row<size, quads, between> (param, mix, in, r);
    uint4 *const row = stage + (r + threadIdx.x / Its::lanes * rows) * Its::chunks;
    uint32_t words[quads][4];

#pragma unroll
    for (unsigned i = 1; i <= quads; i++) {
      const unsigned q = quads - i;
      int32_t value[3][GPU_QUAD];

      mix_quad<size, quads, between> (param, mix, in, r, q, shares, value);
      pack_quad<dst_group> (value, words[q]);
      if constexpr (dst_group == 4 && Its::is_used)
        row[q * Its::across + lane] = make_uint4 (words[q][0], words[q][1], words[q][2], words[q][3]);
    }
    if constexpr (dst_group == 3) {
      uint32_t packed[3 * quads];

#pragma unroll
      for (unsigned i = 0; i < 3 * quads; i++)
        packed[i] = words[i / 3][i % 3];
      gpu_store_words<3 * quads> ((uint8_t *)row + 12 * quads * lane, packed);
    } else if (!Its::is_used && x < param.width && y + r < param.height) {
      if constexpr (dst_group == 4) {
        const uint4 v = make_uint4 (words[0][0], words[0][1], words[0][2], words[0][3]);

        *(uint4 *)(param.dst[0] + 4 * (size_t)x + (uint64_t)(y + r) * param.dst_stride[0]) =
            param.rotated ? rotated (v) : v;
      } else {
#pragma unroll
        for (unsigned c = 0; c < 3; c++) {
          uint32_t packed[quads];

#pragma unroll
          for (unsigned q = 0; q < quads; q++)
            packed[q] = words[q][c];
          gpu_store_words<quads> (gpu_base (param.dst[c] + x) + (uint64_t)(y + r) * param.dst_stride[c], packed);
        }
      }
    }
  }
  if constexpr (Its::is_used) {
    __syncwarp ();
    store_staged<dst_group, quads> (param, x0, y0, stage);
  }
}

template <unsigned size, unsigned group, unsigned dst_group, unsigned quads>
static __device__ __forceinline__ void
convert_rows_sited (const GpuConvert420Param &param, uint4 *stage)
{
  if (param.between)
    convert_rows<size, group, dst_group, quads, true> (param, stage);
  else
    convert_rows<size, group, dst_group, quads, false> (param, stage);
}

template <unsigned dst_group, unsigned quads>
static __device__ __forceinline__ void
convert_rows_from (const GpuConvert420Param &param, uint4 *stage)
{
  if (param.src_group == 1)
    convert_rows_sited<1, 1, dst_group, quads> (param, stage);
  else if (quads == 4 || param.src_size == 1)
    convert_rows_sited<1, 2, dst_group, quads> (param, stage);
  else
    /* Never 16 pixels: a row of them would be more than 16 bytes. */
    convert_rows_sited<2, 2, dst_group, quads == 4 ? 2 : quads> (param, stage);
}

template <unsigned quads>
static __device__ __forceinline__ void
convert_rows_to (const GpuConvert420Param &param, uint4 *stage)
{
  if (param.dst_group == 4)
    convert_rows_from<4, quads> (param, stage);
  else if (param.dst_group == 3)
    convert_rows_from<3, quads> (param, stage);
  else
    convert_rows_from<1, quads> (param, stage);
}

static __device__ __forceinline__ void
run_convert_to_rgb (const GpuConvert420Param &param)
{
  __shared__ uint4 stages[GPU_QUAD_BLOCK_Y][GPU_CONVERT_ROWS * STAGE_CHUNKS];
  uint4 *const stage = stages[threadIdx.y];

  if (param.quads == 4)
    convert_rows_to<4> (param, stage);
  else if (param.quads == 2)
    convert_rows_to<2> (param, stage);
  else
    convert_rows_to<1> (param, stage);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 6)
    gpu_convert_to_rgb (const __grid_constant__ GpuConvert420Param param)
{
  run_convert_to_rgb (param);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 6)
    gpu_convert_to_rgb_table (const __grid_constant__ GpuTable<GpuConvert420Param> table)
{
  run_convert_to_rgb (gpu_table_param (table));
}
