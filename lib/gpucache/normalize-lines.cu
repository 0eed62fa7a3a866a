/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation on the GPU to tensors, by products and sums of single floats, where the host has found that these give
 * the very bits. A warp makes a span of 128 pixels of one row, four pixels a lane, and blocks take spans as they come,
 * row after row: so no warp is empty, whatever the width, threads are many and do little each, and what is written at a
 * time lies close together.
 */
#include "normalize.cuh"
#include "quad.cuh"
#include "table.cuh"

/* Blocks that a multiprocessor is to have registers for: as many as it can have, where that is 2,048 threads. Not where
 * the arguments are one of several images', and so take registers of their own. */
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000)
#define BLOCKS 8
#else
#define BLOCKS 6
#endif

/* Where a lane's four pixels are; all of them, or none, exist. */
struct Place {
  uint32_t x0, x, y;
  bool exists;
};

/* The elements of a quad, by channel. */
template <unsigned group, unsigned channels>
static __device__ __forceinline__ void
compute_quad (const GpuNormalizeTensorArgs &args, const Place &place, float element[channels][GPU_QUAD])
{
  uint32_t words[1][4], pixel[GPU_QUAD];

  gpu_load_group<group, 1> (args.src, place.x, place.y, 1, args.height, true, words);
  const uint32_t above = (uint32_t)gpu_own (GPU_NORMALIZE_ABOVE_BITS);

  gpu_split_words<group> (words[0], pixel);
#pragma unroll
  for (unsigned c = 0; c < channels; c++)
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      element[c][k] = byte_on_line (args.line[c], pixel[k], above, args.selector[c]);
}

/* To planes, from pixels of @group bytes or as many planes. */
template <unsigned size, unsigned group, unsigned channels>
static __device__ __forceinline__ void
compute_planes (const GpuNormalizeTensorArgs &args, const Place &place)
{
  float element[channels][GPU_QUAD];

  if (!place.exists)
    return;
  compute_quad<group, channels> (args, place, element);
#pragma unroll
  for (unsigned c = 0; c < channels; c++) {
    uint32_t words[size];

    pack_elements<size, GPU_QUAD> (element[c], words);
    gpu_store_words<size> (args.dst.data[c] + place.y * args.dst.stride[c] + place.x * size, words);
  }
}

/* To packed pixels, in another order than the source's. All lanes of a warp call it. */
template <unsigned size, unsigned group>
static __device__ __forceinline__ void
compute_packed (const GpuNormalizeTensorArgs &args, const Place &place, uint4 *stage)
{
  uint32_t words[size * 3];

  if (place.exists) {
    float element[3][GPU_QUAD], row[3 * GPU_QUAD];

    compute_quad<group, 3> (args, place, element);
#pragma unroll
    for (unsigned i = 0; i < 3 * GPU_QUAD; i++)
      row[i] = element[i % 3][i / 3];
    pack_elements<size, 3 * GPU_QUAD> (row, words);
  }
  gpu_store_quads<size, 3, true> (gpu_packed_pixel (args.dst, place.x0, place.y), args.width - place.x0,
                                  place.exists ? GPU_QUAD : 0, true, words, stage);
}

/* Packed pixels to as many packed elements, four samples at a time: those of a word. Where a word is no pixel, the
 * elements are in the picture's order; where it is one, the last four pixels need not all exist. */
template <unsigned size, unsigned group>
static __device__ __forceinline__ void
compute_words (const GpuNormalizeTensorArgs &args, const Place &place)
{
  const unsigned lane = threadIdx.x;
  const uint32_t left = (args.width - place.x0) * group / 4;
  const uint8_t *src = gpu_packed_pixel (args.src, place.x0, place.y) + 4 * lane;
  uint8_t *dst = gpu_packed_pixel (args.dst, place.x0, place.y) + 4 * size * lane;
  uint32_t words[group] = {};

#pragma unroll
  for (unsigned j = 0; j < group; j++)
    if (lane + 32 * j < left)
      words[j] = *(const uint32_t *)(src + 128 * j);

  const uint32_t above = (uint32_t)gpu_own (GPU_NORMALIZE_ABOVE_BITS);
  GpuNormalizeLine line[group];

  /* Word i begins with sample 4 i, which is of channel i % 3 if there are 3. */
#pragma unroll
  for (unsigned i = 0; i < group; i++)
    line[i] = args.line[group == 3 ? (lane + i) % 3 : i];

    /* What is not there is worked out, too: whether it is asked only to write it. */
#pragma unroll
  for (unsigned j = 0; j < group; j++) {
    float element[4];
    uint32_t out[size];

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      element[i] = byte_on_line (line[(32 * j + i) % group], words[j], above,
                                 group == 4 ? args.selector[i] : GPU_NORMALIZE_SELECTOR (i));
    pack_elements<size, 4> (element, out);
    if (lane + 32 * j < left)
      gpu_store_words<size> (dst + 128 * size * j, out);
  }
}

/* @run at the place of this lane, for all of a warp's lanes, if the warp has a span. */
template <typename Run>
static __device__ __forceinline__ void
at_place (const GpuNormalizeTensorArgs &args, Run run)
{
  const uint32_t span = blockIdx.x * GPU_QUAD_BLOCK_Y + threadIdx.y;
  const uint32_t y = gpu_normalize_row_of (args.spans, args.inverse, span);

  if (y >= args.height)
    return;
  const uint32_t x0 = (span - y * args.spans) * GPU_NORMALIZE_SPAN, x = x0 + GPU_QUAD * threadIdx.x;
  run (Place{x0, x, y, x < args.width});
}

template <unsigned size>
static __device__ __forceinline__ void
run_planes (const GpuNormalizeTensorArgs &args)
{
  at_place (args, [&] (const Place &place) {
    if (args.src.group == 3)
      compute_planes<size, 3, 3> (args, place);
    else if (args.src.group == 4 && args.dst.channels == 3)
      compute_planes<size, 4, 3> (args, place);
    else if (args.src.group == 4)
      compute_planes<size, 4, 4> (args, place);
    else if (args.dst.channels == 3)
      compute_planes<size, 1, 3> (args, place);
    else
      compute_planes<size, 1, 1> (args, place);
  });
}

template <unsigned size>
static __device__ __forceinline__ void
run_packed (const GpuNormalizeTensorArgs &args)
{
  __shared__ uint4 stages[GPU_QUAD_BLOCK_Y][24 * size];
  uint4 *stage = stages[threadIdx.y];

  at_place (args, [&] (const Place &place) {
    if (args.straight)
      compute_words<size, 3> (args, place);
    else if (args.dst.channels == 4)
      compute_words<size, 4> (args, place);
    else if (args.src.group == 3)
      compute_packed<size, 3> (args, place, stage);
    else if (args.src.group == 4)
      compute_packed<size, 4> (args, place, stage);
    else
      compute_packed<size, 1> (args, place, stage);
  });
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, BLOCKS)
    gpu_normalize_planes_1 (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  run_planes<1> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 6)
    gpu_normalize_planes_1_table (const __grid_constant__ GpuTable<GpuNormalizeTensorArgs> table)
{
  gpu_with_table_args (table, [] (const GpuNormalizeTensorArgs &args) { run_planes<1> (args); });
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, BLOCKS)
    gpu_normalize_planes_2 (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  run_planes<2> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 6)
    gpu_normalize_planes_2_table (const __grid_constant__ GpuTable<GpuNormalizeTensorArgs> table)
{
  gpu_with_table_args (table, [] (const GpuNormalizeTensorArgs &args) { run_planes<2> (args); });
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, BLOCKS)
    gpu_normalize_planes_4 (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  run_planes<4> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 6)
    gpu_normalize_planes_4_table (const __grid_constant__ GpuTable<GpuNormalizeTensorArgs> table)
{
  gpu_with_table_args (table, [] (const GpuNormalizeTensorArgs &args) { run_planes<4> (args); });
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, BLOCKS)
    gpu_normalize_packed_1 (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  run_packed<1> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_normalize_packed_1_table (const __grid_constant__ GpuTable<GpuNormalizeTensorArgs> table)
{
  gpu_with_table_args (table, [] (const GpuNormalizeTensorArgs &args) { run_packed<1> (args); });
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, BLOCKS)
    gpu_normalize_packed_2 (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  run_packed<2> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_normalize_packed_2_table (const __grid_constant__ GpuTable<GpuNormalizeTensorArgs> table)
{
  gpu_with_table_args (table, [] (const GpuNormalizeTensorArgs &args) { run_packed<2> (args); });
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, BLOCKS)
    gpu_normalize_packed_4 (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  run_packed<4> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 5)
    gpu_normalize_packed_4_table (const __grid_constant__ GpuTable<GpuNormalizeTensorArgs> table)
{
  gpu_with_table_args (table, [] (const GpuNormalizeTensorArgs &args) { run_packed<4> (args); });
}
