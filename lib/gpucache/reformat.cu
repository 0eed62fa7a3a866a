/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The order of dimensions on the GPU: a thread moves 16 bytes of each plane, or, where addresses or channels are
 * others, four pixels of a row; packed ones are written by way of shared memory.
 */
#include "quad.cuh"
#include "reformat-pixel.h"
#include "table.cuh"

/* One word of each plane from as many words of packed pixels: four pixels of bytes, or two of two bytes. */
template <unsigned size, unsigned channels>
static __device__ __forceinline__ void
split_words (const uint32_t packed[channels], uint32_t plane[channels])
{
  if constexpr (size == 1 && channels == 3) {
    /* R R B B of the last two words and G B G B of the first and the last: each plane then has two parts, not three. */
    const uint32_t late = __byte_perm (packed[1], packed[2], 0x4152), ends = __byte_perm (packed[0], packed[2], 0x7621);

    plane[0] = __byte_perm (packed[0], late, 0x5430);
    plane[1] = __byte_perm (packed[1], ends, 0x6304);
    plane[2] = __byte_perm (late, ends, 0x7325);
  } else if constexpr (size == 1) {
    gpu_transpose_bytes (packed, plane);
  } else if constexpr (channels == 3) {
    plane[0] = __byte_perm (packed[0], packed[1], 0x7610);
    plane[1] = __byte_perm (packed[0], packed[2], 0x5432);
    plane[2] = __byte_perm (packed[1], packed[2], 0x7610);
  } else {
    plane[0] = __byte_perm (packed[0], packed[2], 0x5410);
    plane[1] = __byte_perm (packed[0], packed[2], 0x7632);
    plane[2] = __byte_perm (packed[1], packed[3], 0x5410);
    plane[3] = __byte_perm (packed[1], packed[3], 0x7632);
  }
}

/* The other way round. */
template <unsigned size, unsigned channels>
static __device__ __forceinline__ void
join_words (const uint32_t plane[channels], uint32_t packed[channels])
{
  if constexpr (size == 1 && channels == 3) {
    const uint32_t late = __byte_perm (plane[0], plane[2], 0x7352), ends = __byte_perm (plane[1], plane[2], 0x6340);

    packed[0] = __byte_perm (plane[0], ends, 0x1540);
    packed[1] = __byte_perm (plane[1], late, 0x2451);
    packed[2] = __byte_perm (ends, late, 0x7263);
  } else if constexpr (size == 1) {
    gpu_transpose_bytes (plane, packed);
  } else if constexpr (channels == 3) {
    packed[0] = __byte_perm (plane[0], plane[1], 0x5410);
    packed[1] = __byte_perm (plane[2], plane[0], 0x7610);
    packed[2] = __byte_perm (plane[1], plane[2], 0x7632);
  } else {
    packed[0] = __byte_perm (plane[0], plane[1], 0x5410);
    packed[1] = __byte_perm (plane[2], plane[3], 0x5410);
    packed[2] = __byte_perm (plane[0], plane[1], 0x7632);
    packed[3] = __byte_perm (plane[2], plane[3], 0x7632);
  }
}

static __device__ __forceinline__ void
load_line (const uint8_t *p, uint32_t words[4])
{
  const uint4 v = *(const uint4 *)p;

  words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
}

/* Line @n of a row in each plane, from packed pixels. */
template <unsigned size, unsigned channels>
static __device__ __forceinline__ void
split_line (const GpuReformatArgs &args, uint32_t n, uint32_t y)
{
  const uint8_t *src = args.src.data[0] + y * args.src.stride[0] + (uint64_t)n * (16 * channels);
  uint32_t packed[4 * channels], plane[4][channels];

#pragma unroll
  for (unsigned i = 0; i < channels; i++)
    load_line (src + 16 * i, packed + 4 * i);
#pragma unroll
  for (unsigned i = 0; i < 4; i++)
    split_words<size, channels> (packed + channels * i, plane[i]);
#pragma unroll
  for (unsigned c = 0; c < channels; c++)
    *(uint4 *)(args.dst.data[c] + y * args.dst.stride[c] + 16 * (uint64_t)n) =
        make_uint4 (plane[0][c], plane[1][c], plane[2][c], plane[3][c]);
}

/* Where line @i of lane @lane's packed pixels is kept for the warp to write: four lines a lane would meet some banks
 * four times, and three do not. */
template <unsigned channels>
static __device__ __forceinline__ unsigned
stage_place (unsigned lane, unsigned i)
{
  return channels * lane + (channels == 4 ? i ^ (lane / 2 % 4) : i);
}

/* Packed pixels from line @n of a row in each plane, of which there are @lines. All lanes of a warp call it. */
template <unsigned size, unsigned channels>
static __device__ __forceinline__ void
join_line (const GpuReformatArgs &args, uint32_t n, uint32_t lines, uint32_t y, uint4 *stage)
{
  const unsigned lane = threadIdx.x;
  uint32_t plane[channels][4] = {}, packed[4 * channels];

#pragma unroll
  for (unsigned c = 0; c < channels; c++)
    if (n < lines)
      load_line (args.src.data[c] + y * args.src.stride[c] + 16 * (uint64_t)n, plane[c]);
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    uint32_t words[channels];

#pragma unroll
    for (unsigned c = 0; c < channels; c++)
      words[c] = plane[c][i];
    join_words<size, channels> (words, packed + channels * i);
  }
#pragma unroll
  for (unsigned i = 0; i < channels; i++)
    stage[stage_place<channels> (lane, i)] =
        make_uint4 (packed[4 * i], packed[4 * i + 1], packed[4 * i + 2], packed[4 * i + 3]);
  __syncwarp ();

  /* The warp's lines are those from lane 0's first one on. */
  const unsigned left = channels * min (lines - (n - lane), 32u);
  uint8_t *dst = args.dst.data[0] + y * args.dst.stride[0] + (uint64_t)(n - lane) * (16 * channels);
#pragma unroll
  for (unsigned k = 0; k < channels; k++) {
    const unsigned i = 32 * k + lane;

    if (i < left)
      *(uint4 *)(dst + 16 * i) = stage[stage_place<channels> (i / channels, i % channels)];
  }
  __syncwarp ();
}

template <unsigned size, unsigned channels>
static __device__ __forceinline__ void
reformat_lines (const GpuReformatArgs &args, uint4 *stage)
{
  const uint32_t lines = (uint32_t)((uint64_t)args.width * size / 16);
  const uint32_t n = blockIdx.x * GPU_QUAD_BLOCK_X + threadIdx.x;

  if (n - threadIdx.x >= lines)
    return;
  for (uint64_t y = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y; y < args.height;
       y += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y) {
    if (args.dst.group > 1)
      join_line<size, channels> (args, n, lines, (uint32_t)y, stage);
    else if (n < lines)
      split_line<size, channels> (args, n, (uint32_t)y);
  }
}

/* Between packed pixels and planes of three or four channels of 1 or 2 bytes, where all rows are whole lines of 16
 * bytes and begin at multiples of 16. Channels are counted as the packed pixels have them. */
static __device__ __forceinline__ void
run_reformat_lines (const GpuReformatArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][32 * GPU_PIXEL_CHANNELS];
  uint4 *own = stage[threadIdx.y];

  if (args.src.size == 1 && args.src.channels == 3)
    reformat_lines<1, 3> (args, own);
  else if (args.src.size == 1)
    reformat_lines<1, 4> (args, own);
  else if (args.src.channels == 3)
    reformat_lines<2, 3> (args, own);
  else
    reformat_lines<2, 4> (args, own);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_reformat_lines (const __grid_constant__ GpuReformatArgs args)
{
  run_reformat_lines (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_reformat_lines_table (const __grid_constant__ GpuTable<GpuReformatArgs> table)
{
  run_reformat_lines (gpu_table_args (table));
}

static __device__ __forceinline__ unsigned
pixels_left (const GpuReformatArgs &args, uint64_t x)
{
  return x >= args.width ? 0 : (unsigned)min ((uint64_t)GPU_QUAD, args.width - x);
}

template <bool whole>
static __device__ __forceinline__ void
store_pixels (const GpuReformatArgs &args, uint64_t x0, uint64_t y, unsigned n, uint32_t pixel[GPU_QUAD], uint4 *stage)
{
#pragma unroll
  for (unsigned k = 0; k < GPU_QUAD; k++)
    pixel[k] |= args.opaque << 24;
  gpu_store_byte_pixels<whole> (args.dst, x0, y, args.width, n, pixel, stage);
}

static __device__ __forceinline__ void
run_reformat_bytes (const GpuReformatArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][32];
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = pixels_left (args, x);
  const bool whole = gpu_quads_are_whole (args.src, args.dst, x0, args.width);
  const uint32_t order = gpu_channel_order (args.src);

  if (x0 >= args.width)
    return;
  for (uint64_t y = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y * GPU_QUAD_ROWS + threadIdx.y; y < args.height;
       y += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y * GPU_QUAD_ROWS) {
    uint32_t words[GPU_QUAD_ROWS][4] = {}, pixel[GPU_QUAD] = {};

    if (!whole) {
#pragma unroll 1
      for (uint64_t row = y; row < y + GPU_QUAD_ROWS * GPU_QUAD_BLOCK_Y && row < args.height; row += GPU_QUAD_BLOCK_Y) {
        if (n)
          gpu_load_byte_pixels (args.src, x, row, n, pixel);
        store_pixels<false> (args, x0, row, n, pixel, stage[threadIdx.y]);
      }
      continue;
    }
    gpu_load_quads<GPU_QUAD_ROWS> (args.src, x, y, GPU_QUAD_BLOCK_Y, args.height, n > 0, words);
#pragma unroll
    for (unsigned r = 0; r < GPU_QUAD_ROWS; r++) {
      if (y + r * GPU_QUAD_BLOCK_Y >= args.height)
        break;
      gpu_split_quad (args.src, order, words[r], pixel);
      store_pixels<true> (args, x0, y + r * GPU_QUAD_BLOCK_Y, n, pixel, stage[threadIdx.y]);
    }
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_reformat_bytes (const __grid_constant__ GpuReformatArgs args)
{
  run_reformat_bytes (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_reformat_bytes_table (const __grid_constant__ GpuTable<GpuReformatArgs> table)
{
  run_reformat_bytes (gpu_table_args (table));
}

template <unsigned size, unsigned channels>
static __device__ __forceinline__ void
reformat_row (const GpuReformatArgs &args, uint64_t x0, uint64_t y, uint4 *stage)
{
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = pixels_left (args, x);
  uint32_t words[size * channels] = {};

  if (args.src.group > 1) {
    if (n)
      gpu_load_quad<size, channels> (gpu_packed_pixel (args.src, x, y), n, args.src.vector, words);
#pragma unroll
    for (unsigned c = 0; c < channels; c++) {
      uint32_t element[GPU_QUAD];

#pragma unroll
      for (unsigned k = 0; k < GPU_QUAD; k++)
        element[k] = gpu_quad_element<size> (words, k * channels + c);
      gpu_store_plane_quad<size> (args.dst.data[c] + y * args.dst.stride[c] + x * size, n, args.dst.vector, element);
    }
    return;
  }

#pragma unroll
  for (unsigned c = 0; c < channels; c++) {
    uint32_t plane[size] = {};

    if (n)
      gpu_load_quad<size, 1> (args.src.data[c] + y * args.src.stride[c] + x * size, n, args.src.vector, plane);
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++) {
      const unsigned i = k * channels + c;

      words[i * size / 4] |= gpu_quad_element<size> (plane, k) << (8 * (i * size % 4));
    }
  }
  gpu_store_quads<size, channels> (gpu_packed_pixel (args.dst, x0, y), args.width - x0, n, args.dst.vector, words,
                                   stage);
}

template <unsigned size>
static __device__ __forceinline__ void
reformat_rows (const GpuReformatArgs &args, uint4 *stage)
{
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;

  if (x0 >= args.width)
    return;
  for (uint64_t y = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y; y < args.height;
       y += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y) {
    if (args.src.channels == 1)
      reformat_row<size, 1> (args, x0, y, stage);
    else if (args.src.channels == 2)
      reformat_row<size, 2> (args, x0, y, stage);
    else if (args.src.channels == 3)
      reformat_row<size, 3> (args, x0, y, stage);
    else
      reformat_row<size, 4> (args, x0, y, stage);
  }
}

/* Elements of 2 and 4 bytes. */
static __device__ __forceinline__ void
run_reformat_elements (const GpuReformatArgs &args)
{
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][128];

  if (args.src.size == 2)
    reformat_rows<2> (args, stage[threadIdx.y]);
  else
    reformat_rows<4> (args, stage[threadIdx.y]);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_reformat_elements (const __grid_constant__ GpuReformatArgs args)
{
  run_reformat_elements (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_reformat_elements_table (const __grid_constant__ GpuTable<GpuReformatArgs> table)
{
  run_reformat_elements (gpu_table_args (table));
}
