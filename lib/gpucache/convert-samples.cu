/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion of samples by themselves on the GPU: between 4:2:0 formats of one matrix, from luma to GRAY8, and of
 * tensors' elements.
 */
#include "convert-pixel.h"
#include "quad.cuh"
#include "table.cuh"

template <unsigned src_size, unsigned dst_size, unsigned channels>
static __device__ __forceinline__ void
convert_plane (const GpuPlanesArgs &args, unsigned plane, uint64_t x0, uint64_t y)
{
  const GpuPixels &src = args.src[plane], &dst = args.dst[plane];
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = x >= args.width[plane] ? 0 : (unsigned)min ((uint64_t)GPU_QUAD, args.width[plane] - x);
  uint32_t element[channels][GPU_QUAD];

  if (src.group == 2) {
    uint32_t words[src_size * 2];

    gpu_load_quad<src_size, 2> (gpu_packed_pixel (src, x, y), n, src.vector, words);
#pragma unroll
    for (unsigned c = 0; c < channels; c++)
#pragma unroll
      for (unsigned k = 0; k < GPU_QUAD; k++)
        element[c][k] = gpu_quad_element<src_size> (words, 2 * k + c);
  } else {
#pragma unroll
    for (unsigned c = 0; c < channels; c++) {
      uint32_t words[src_size];

      gpu_load_quad<src_size, 1> (src.data[c] + y * src.stride[c] + x * src_size, n, src.vector, words);
#pragma unroll
      for (unsigned k = 0; k < GPU_QUAD; k++)
        element[c][k] = gpu_quad_element<src_size> (words, k);
    }
  }
#pragma unroll
  for (unsigned c = 0; c < channels; c++)
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      element[c][k] = gpu_convert_sample (&args, plane, element[c][k]);

  if (dst.group == 2) {
    uint32_t words[dst_size * 2] = {};

#pragma unroll
    for (unsigned i = 0; i < 2 * GPU_QUAD; i++)
      words[i * dst_size / 4] |= element[channels == 2 ? i % 2 : 0][i / 2] << (8 * (i * dst_size % 4));
    gpu_store_quads<dst_size, 2> (gpu_packed_pixel (dst, x0, y), args.width[plane] - x0, n, dst.vector, words, nullptr);
  } else {
#pragma unroll
    for (unsigned c = 0; c < channels; c++)
      gpu_store_plane_quad<dst_size> (dst.data[c] + y * dst.stride[c] + x * dst_size, n, dst.vector, element[c]);
  }
}

template <unsigned src_size, unsigned dst_size>
static __device__ __forceinline__ void
convert_plane_row (const GpuPlanesArgs &args, uint64_t row)
{
  const unsigned plane = row >= args.first;
  const uint64_t y = plane ? row - args.first : row;
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;

  if (x0 >= args.width[plane])
    return;
  if (plane)
    convert_plane<src_size, dst_size, 2> (args, 1, x0, y);
  else
    convert_plane<src_size, dst_size, 1> (args, 0, x0, y);
}

/* Between 4:2:0 formats, sample by sample, and from luma to GRAY8. */
static __device__ __forceinline__ void
run_convert_planes (const GpuPlanesArgs &args)
{
  for (uint64_t row = (uint64_t)blockIdx.y * GPU_QUAD_BLOCK_Y + threadIdx.y; row < args.rows;
       row += (uint64_t)gridDim.y * GPU_QUAD_BLOCK_Y) {
    if (args.src[0].size == 1 && args.dst[0].size == 1)
      convert_plane_row<1, 1> (args, row);
    else if (args.src[0].size == 1)
      convert_plane_row<1, 2> (args, row);
    else if (args.dst[0].size == 1)
      convert_plane_row<2, 1> (args, row);
    else
      convert_plane_row<2, 2> (args, row);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y) gpu_convert_planes (const __grid_constant__ GpuPlanesArgs args)
{
  run_convert_planes (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_convert_planes_table (const __grid_constant__ GpuTable<GpuPlanesArgs> table)
{
  run_convert_planes (gpu_table_args (table));
}

/* The same of 8 bits, 16 samples a thread: of luma, or of both components of chroma together, in the order U, V, U, V,
 * wherever they lie. */

/* As they lie: of both components apart, eight samples of U before those of V. */
template <bool apart>
static __device__ __forceinline__ void
load_line (const GpuPlaneLines &plane, uint32_t x, uint32_t y, uint32_t line[4])
{
  if constexpr (apart) {
    gpu_load_words<2> (plane.src[0] + 8 * (size_t)x + (uint64_t)y * plane.src_stride[0], line);
    gpu_load_words<2> (plane.src[1] + 8 * (size_t)x + (uint64_t)y * plane.src_stride[1], line + 2);
  } else {
    gpu_load_words<4> (plane.src[0] + 16 * (size_t)x + (uint64_t)y * plane.src_stride[0], line);
  }
}

static __device__ __forceinline__ void
put_together (uint32_t line[4])
{
  const uint2 u = make_uint2 (line[0], line[1]), v = make_uint2 (line[2], line[3]);

  line[0] = __byte_perm (u.x, v.x, 0x5140), line[1] = __byte_perm (u.x, v.x, 0x7362);
  line[2] = __byte_perm (u.y, v.y, 0x5140), line[3] = __byte_perm (u.y, v.y, 0x7362);
}

template <bool apart>
static __device__ __forceinline__ void
store_line (const GpuPlaneLines &plane, uint32_t x, uint32_t y, const uint32_t line[4])
{
  if constexpr (apart) {
    const uint32_t u[2] = {__byte_perm (line[0], line[1], 0x6420), __byte_perm (line[2], line[3], 0x6420)};
    const uint32_t v[2] = {__byte_perm (line[0], line[1], 0x7531), __byte_perm (line[2], line[3], 0x7531)};

    gpu_store_words<2> (plane.dst[0] + 8 * (size_t)x + (uint64_t)y * plane.dst_stride[0], u);
    gpu_store_words<2> (plane.dst[1] + 8 * (size_t)x + (uint64_t)y * plane.dst_stride[1], v);
  } else {
    gpu_store_words<4> (plane.dst[0] + 16 * (size_t)x + (uint64_t)y * plane.dst_stride[0], line);
  }
}

static __device__ __forceinline__ int32_t
scale_sample (const GpuPlaneLines &plane, uint32_t sample)
{
  return ((int32_t)sample * plane.factor + plane.offset) >> (int)plane.shift;
}

static __device__ __forceinline__ void
scale_line (const GpuPlaneLines &plane, uint32_t line[4])
{
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    const uint32_t in = line[i];

    line[i] = gpu_pack_saturated (
        scale_sample (plane, in & 0xff), scale_sample (plane, in >> 8 & 0xff),
        gpu_pack_saturated (scale_sample (plane, in >> 16 & 0xff), scale_sample (plane, in >> 24), 0));
  }
}

/* @block: the row of blocks among the plane's own. All that is read is asked for before anything is done with it. */
template <bool src_apart, bool dst_apart>
static __device__ __forceinline__ void
convert_lines (const GpuPlaneLines &plane, uint32_t x, uint32_t block)
{
  const uint32_t y = block * (GPU_CONVERT_LINE_ROWS * GPU_CONVERT_LINES_Y) + threadIdx.y;
  uint32_t line[GPU_CONVERT_LINE_ROWS][4] = {};

#pragma unroll
  for (unsigned r = 0; r < GPU_CONVERT_LINE_ROWS; r++)
    if (y + r * GPU_CONVERT_LINES_Y < plane.height)
      load_line<src_apart> (plane, x, y + r * GPU_CONVERT_LINES_Y, line[r]);
#pragma unroll
  for (unsigned r = 0; r < GPU_CONVERT_LINE_ROWS; r++) {
    if (y + r * GPU_CONVERT_LINES_Y >= plane.height)
      break;
    if constexpr (src_apart)
      put_together (line[r]);
    if (!plane.is_same)
      scale_line (plane, line[r]);
    store_line<dst_apart> (plane, x, y + r * GPU_CONVERT_LINES_Y, line[r]);
  }
}

static __device__ __forceinline__ void
run_convert_plane_lines (const GpuPlaneLinesParam &param)
{
  const uint32_t x = blockIdx.x * GPU_CONVERT_LINES_X + threadIdx.x, block = blockIdx.y;
  const GpuPlaneLines &chroma = param.plane[1];

  if (x >= param.lines)
    return;
  if (block < param.first)
    convert_lines<false, false> (param.plane[0], x, block);
  else if (param.src_apart && param.dst_apart)
    convert_lines<true, true> (chroma, x, block - param.first);
  else if (param.src_apart)
    convert_lines<true, false> (chroma, x, block - param.first);
  else if (param.dst_apart)
    convert_lines<false, true> (chroma, x, block - param.first);
  else
    convert_lines<false, false> (chroma, x, block - param.first);
}

extern "C" __global__ void
__launch_bounds__ (GPU_CONVERT_LINES_X *GPU_CONVERT_LINES_Y)
    gpu_convert_plane_lines (const __grid_constant__ GpuPlaneLinesParam param)
{
  run_convert_plane_lines (param);
}

extern "C" __global__ void
__launch_bounds__ (GPU_CONVERT_LINES_X *GPU_CONVERT_LINES_Y)
    gpu_convert_plane_lines_table (const __grid_constant__ GpuTable<GpuPlaneLinesParam> table)
{
  run_convert_plane_lines (gpu_table_param (table));
}

/* Four elements to four others, as words in the order of memory. */
template <unsigned src_size, unsigned dst_size>
static __device__ __forceinline__ void
convert_element_quad (const GpuElementsArgs &args, const uint32_t in[src_size], uint32_t out[dst_size])
{
  float value[GPU_QUAD];

#pragma unroll
  for (unsigned k = 0; k < GPU_QUAD; k++) {
    const uint32_t bits = gpu_quad_element<src_size> (in, k);
    const float number = src_size == 2 ? gpu_float_of_half ((uint16_t)bits) : gpu_element_value (bits, src_size);
    const float scaled = number * args.scale;

    value[k] = scaled + args.offset;
  }
  if constexpr (dst_size == 2) {
    bool numbers = true;

#pragma unroll
    for (unsigned i = 0; i < 2; i++) {
      out[i] = gpu_pack_halves (value[2 * i], value[2 * i + 1]);
      numbers = numbers && value[2 * i] == value[2 * i] && value[2 * i + 1] == value[2 * i + 1];
    }
    if (!numbers) {
      /* The instruction's NaN is another one than gpu_half_from_float()'s. */
#pragma unroll
      for (unsigned k = 0; k < GPU_QUAD; k++)
        if (value[k] != value[k])
          out[k / 2] =
              __byte_perm (out[k / 2], (gpu_float_bits (value[k]) >> 16 & 0x8000) | 0x7e00, k % 2 ? 0x5410 : 0x3254);
    }
  } else {
#pragma unroll
    for (unsigned i = 0; i < dst_size; i++)
      out[i] = 0;
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      out[k * dst_size / 4] |= gpu_element_bits (value[k], dst_size) << (8 * (k * dst_size % 4));
  }
}

template <unsigned src_size, unsigned dst_size>
static __device__ __forceinline__ void
convert_elements (const GpuElementsArgs &args)
{
  const unsigned threads = GPU_QUAD_BLOCK_X * GPU_QUAD_BLOCK_Y, block = threads * GPU_QUAD * GPU_CONVERT_QUADS;
  const unsigned at = threadIdx.x * GPU_QUAD;

  for (uint64_t start = (uint64_t)blockIdx.x * block; start < args.n; start += (uint64_t)gridDim.x * block) {
    const uint8_t *src = args.src + (start + at) * src_size;
    uint8_t *dst = args.dst + (start + at) * dst_size;
    uint32_t in[GPU_CONVERT_QUADS][src_size], out[dst_size];

    if (args.vector && start + block <= args.n) {
#pragma unroll
      for (unsigned q = 0; q < GPU_CONVERT_QUADS; q++)
        gpu_load_words<src_size> (src + q * threads * GPU_QUAD * src_size, in[q]);
#pragma unroll
      for (unsigned q = 0; q < GPU_CONVERT_QUADS; q++) {
        convert_element_quad<src_size, dst_size> (args, in[q], out);
        gpu_store_words<dst_size> (dst + q * threads * GPU_QUAD * dst_size, out);
      }
      continue;
    }
    /* The last block, or all of them where addresses do not let four elements be written at once. */
#pragma unroll 1
    for (uint64_t i = start + at; i < args.n && i < start + block; i += threads * GPU_QUAD) {
      const unsigned n = (unsigned)min ((uint64_t)GPU_QUAD, args.n - i);

      gpu_load_quad<src_size, 1> (args.src + i * src_size, n, args.vector, in[0]);
      convert_element_quad<src_size, dst_size> (args, in[0], out);
#pragma unroll
      for (unsigned k = 0; k < GPU_QUAD; k++)
        if (k < n)
          gpu_store_element<dst_size> (args.dst + i * dst_size + k * dst_size, gpu_quad_element<dst_size> (out, k));
    }
  }
}

/* Between tensors. */
static __device__ __forceinline__ void
run_convert_elements (const GpuElementsArgs &args)
{
  switch (args.src_size * 8 + args.dst_size) {
  case 8 + 1:
    convert_elements<1, 1> (args);
    break;
  case 8 + 2:
    convert_elements<1, 2> (args);
    break;
  case 8 + 4:
    convert_elements<1, 4> (args);
    break;
  case 16 + 1:
    convert_elements<2, 1> (args);
    break;
  case 16 + 2:
    convert_elements<2, 2> (args);
    break;
  case 16 + 4:
    convert_elements<2, 4> (args);
    break;
  case 32 + 1:
    convert_elements<4, 1> (args);
    break;
  case 32 + 2:
    convert_elements<4, 2> (args);
    break;
  default:
    convert_elements<4, 4> (args);
    break;
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_convert_elements (const __grid_constant__ GpuElementsArgs args)
{
  run_convert_elements (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y)
    gpu_convert_elements_table (const __grid_constant__ GpuTable<GpuElementsArgs> table)
{
  run_convert_elements (gpu_table_args (table));
}
