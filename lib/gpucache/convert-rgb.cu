/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion on the GPU from 4:2:0 to RGB formats, where four pixels can be read and written at once: a thread makes
 * eight pixels of two rows, or four pixels of four rows. The chroma beside its own it reads itself, too: its neighbours
 * have just brought it into the cache, and that takes fewer instructions than asking them for it.
 */
#include "convert-420.cuh"
#include "table.cuh"

/* What a warp's row has in 16 bytes: of 24 of its threads, or all. */
template <unsigned dst_group> struct Stage {
  static constexpr unsigned chunks = dst_group * GPU_QUAD_BLOCK_X / 4;
};

/* Which of the warp's rows the one is that is staged as the @r-th, counted from the first. */
template <unsigned quads>
static __device__ __forceinline__ unsigned
staged_row (unsigned r)
{
  return quads == 2 ? r % 2 + r / 2 * (GPU_CONVERT_ROWS / quads) : r;
}

/* The byte of a pixel that its first number is in. */
static __device__ __forceinline__ uint32_t
first_of (const GpuPixels &pixels)
{
  return min (pixels.at[0], pixels.at[2]);
}

/* Of four bytes a pixel a thread has two chunks: where the second one lies, so that eight threads do not write to half
 * of shared memory's banks. */
static __device__ __forceinline__ uint32_t
turned (uint32_t chunk)
{
  return chunk ^ (chunk >> 3 & 1);
}

/* Pixels of four bytes whose fourth, which is 255, is to be the first. */
static __device__ __forceinline__ uint4
rotated (const uint4 &pixels)
{
  return make_uint4 (__byte_perm (pixels.x, 0, 0x2103), __byte_perm (pixels.y, 0, 0x2103),
                     __byte_perm (pixels.z, 0, 0x2103), __byte_perm (pixels.w, 0, 0x2103));
}

/* Writes what is in @stage of the warp's rows: 16 bytes a thread, side by side. They are @quads times two rows, or
 * four, of which the first is row @y. */
template <unsigned dst_group, unsigned quads>
static __device__ __forceinline__ void
store_staged (const GpuConvertArgs &args, uint32_t x0, uint32_t y, uint4 *stage)
{
  const unsigned chunks = Stage<dst_group>::chunks;
  const GpuPixels &pixels = args.dst.pixels;
  const uint32_t at = 16 * threadIdx.x, bytes = dst_group * min (args.width - x0, GPU_QUAD * GPU_QUAD_BLOCK_X);
  const Rows rows = {pixels.data[0] - pixels.at[0] + dst_group * (size_t)x0 + at, (uint32_t)pixels.stride[0]};
  uint4 *chunk = stage + (dst_group == 4 ? turned (threadIdx.x) : threadIdx.x);

  if (dst_group == 4 && first_of (pixels) == 1)
#pragma unroll 1
    for (unsigned r = 0; r < GPU_CONVERT_ROWS; r++)
      chunk[r * chunks] = rotated (chunk[r * chunks]);
  if (at + 16 <= bytes) {
#pragma unroll
    for (unsigned r = 0; r < GPU_CONVERT_ROWS; r++)
      if (y + staged_row<quads> (r) < args.height)
        *(uint4 *)row_at (rows, y + staged_row<quads> (r)) = chunk[r * chunks];
  } else if (at < bytes) {
    /* What whole quads leave of a chunk is whole words. */
#pragma unroll 1
    for (unsigned r = 0; r < GPU_CONVERT_ROWS && y + staged_row<quads> (r) < args.height; r++)
#pragma unroll 1
      for (unsigned k = 0; at + 4 * k < bytes; k++)
        ((uint32_t *)row_at (rows, y + staged_row<quads> (r)))[k] = ((const uint32_t *)(chunk + r * chunks))[k];
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

/* Four pixels of @dst_group bytes, as words in the order of memory. */
template <unsigned dst_group>
static __device__ __forceinline__ void
pack_quad (const int32_t *first, const int32_t *middle, const int32_t *third, uint32_t words[dst_group])
{
  if constexpr (dst_group == 4) {
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      words[k] = pack_bytes (first[k], middle[k], third[k], 255);
  } else {
    words[0] = pack_bytes (first[0], middle[0], third[0], first[1]);
    words[1] = pack_bytes (middle[1], third[1], first[2], middle[2]);
    words[2] = pack_bytes (third[2], first[3], middle[3], third[3]);
  }
}

template <unsigned size, unsigned group, unsigned dst_group, unsigned quads, bool between>
static __device__ __forceinline__ void
convert_rows (const GpuConvertArgs &args, uint4 *stage)
{
  const unsigned lanes = GPU_QUAD_BLOCK_X / quads, lane = threadIdx.x % lanes, rows = GPU_CONVERT_ROWS / quads;
  const uint32_t x0 = blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD, x = x0 + GPU_QUAD * quads * lane;
  const uint32_t y0 = (blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y) * rows * quads;
  const uint32_t y = y0 + threadIdx.x / lanes * rows;
  const GpuPixels &pixels = args.dst.pixels;
  const bool swapped = dst_group > 1 && pixels.at[0] > pixels.at[2];
  const bool staged = dst_group == 3 || (dst_group == 4 && quads == 2);
  /* Rows that a thread makes before the warp writes what it has. */
  const unsigned step = staged ? GPU_CONVERT_ROWS / quads : rows;
  Input<size, quads> in;

  if (x0 >= args.width || y0 >= args.height)
    return;
  /* All lanes of a warp stay: those beyond the edge read what the last one before it does. */
  load_input<size, group, quads, between> (args, min (x, args.width - GPU_QUAD * quads), y, in);

  const Mix mix = make_mix (args, swapped, between);
  Rows out[3];

  make_output<dst_group> (pixels, x, out);
#pragma unroll
  for (unsigned r = 0; r < rows; r++) {
    int32_t value[3][GPU_QUAD * quads];
    uint32_t words[4 * quads];

    mix_row<size, quads, between> (mix, in, r, value);
#pragma unroll
    for (unsigned q = 0; q < quads; q++)
      if constexpr (dst_group > 1)
        pack_quad<dst_group> (&value[0][GPU_QUAD * q], &value[1][GPU_QUAD * q], &value[2][GPU_QUAD * q],
                              words + dst_group * q);
      else
#pragma unroll
        for (unsigned c = 0; c < 3; c++)
          words[c * quads + q] = pack_bytes (value[c][GPU_QUAD * q], value[c][GPU_QUAD * q + 1],
                                             value[c][GPU_QUAD * q + 2], value[c][GPU_QUAD * q + 3]);

    if constexpr (staged) {
      uint4 *row = stage + (r % step + threadIdx.x / lanes * step) * Stage<dst_group>::chunks;

      if constexpr (dst_group == 3) {
        gpu_store_words<3 * quads> ((uint8_t *)row + 12 * quads * lane, words);
      } else {
        gpu_store_words<4> ((uint8_t *)(row + turned (2 * lane)), words);
        gpu_store_words<4> ((uint8_t *)(row + turned (2 * lane + 1)), words + 4);
      }
      if (r % step == step - 1) {
        __syncwarp ();
        store_staged<dst_group, quads> (args, x0, y0 + r / step * step, stage);
        if (r + 1 < rows)
          __syncwarp ();
      }
    } else if (y + r < args.height && x < args.width) {
      if constexpr (dst_group == 4) {
        const uint4 v = make_uint4 (words[0], words[1], words[2], words[3]);

        *(uint4 *)row_at (out[0], y + r) = first_of (pixels) == 1 ? rotated (v) : v;
      } else {
#pragma unroll
        for (unsigned c = 0; c < 3; c++)
          if constexpr (quads == 2)
            *(uint64_t *)row_at (out[c], y + r) = (uint64_t)words[2 * c + 1] << 32 | words[2 * c];
          else
            *(uint32_t *)row_at (out[c], y + r) = words[c];
      }
    }
  }
}

template <unsigned size, unsigned group, unsigned quads, bool between>
static __device__ __forceinline__ void
convert_rows_to (const GpuConvertArgs &args, uint4 *stage)
{
  if (args.dst.pixels.group == 4)
    convert_rows<size, group, 4, quads, between> (args, stage);
  else if (args.dst.pixels.group == 3)
    convert_rows<size, group, 3, quads, between> (args, stage);
  else
    convert_rows<size, group, 1, quads, between> (args, stage);
}

template <unsigned quads, bool between>
static __device__ __forceinline__ void
convert_rows_from (const GpuConvertArgs &args, uint4 *stage)
{
  if (args.src.pixels.size == 2)
    convert_rows_to<2, 2, quads, between> (args, stage);
  else if (args.src.chroma.group == 2)
    convert_rows_to<1, 2, quads, between> (args, stage);
  else
    convert_rows_to<1, 1, quads, between> (args, stage);
}

template <unsigned quads>
static __device__ __forceinline__ void
convert_rows_sited (const GpuConvertArgs &args, uint4 *stage)
{
  if (args.src.site_x)
    convert_rows_from<quads, false> (args, stage);
  else
    convert_rows_from<quads, true> (args, stage);
}

static __device__ __forceinline__ void
run_convert_to_rgb (const GpuConvertArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][GPU_CONVERT_ROWS * Stage<4>::chunks];

  if (args.wide)
    convert_rows_sited<2> (args, stage[threadIdx.y]);
  else
    convert_rows_sited<1> (args, stage[threadIdx.y]);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_convert_to_rgb (const __grid_constant__ GpuConvertArgs args)
{
  run_convert_to_rgb (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_convert_to_rgb_table (const __grid_constant__ GpuTable<GpuConvertArgs> table)
{
  run_convert_to_rgb (gpu_table_args (table));
}
