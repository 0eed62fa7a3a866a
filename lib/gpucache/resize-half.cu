/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling on the GPU, bilinear, to exactly half in both directions: each sample is the mean of four. A thread makes 8
 * bytes, or four pixels of 3, of each of some rows, from words side by side; the host has seen to it that rows begin at
 * multiples of 16 bytes, and that such parts are whole.
 */
#include "resize-half.cuh"
#include "table.cuh"

/* Of each place of four words the mean of the bytes there, halves up: what weights of 1/2 come to. */
static __device__ __forceinline__ uint32_t
mean (uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
  const uint32_t mask = 0xff00ff;
  const uint32_t even = (a & mask) + (b & mask) + (c & mask) + (d & mask) + 0x20002;
  const uint32_t odd = __byte_perm (a, 0, 0x4341) + __byte_perm (b, 0, 0x4341) + __byte_perm (c, 0, 0x4341) +
                       __byte_perm (d, 0, 0x4341) + 0x20002;

  return (even >> 2 & mask) | (odd << 6 & ~mask);
}

template <unsigned bytes, unsigned lines>
static __device__ __forceinline__ void
resize_half_lines (const GpuResizePlane &plane, uint32_t y, uint4 *stage)
{
  constexpr unsigned n = gpu_half_words<bytes>, pixels = 2 * n / bytes;
  const uint32_t warp_x = blockIdx.x * GPU_RESIZE_BLOCK_X * pixels, x = warp_x + threadIdx.x * pixels;
  const uint32_t width = plane.width, height = plane.height;
  const uint64_t src_stride = plane.src_stride, dst_stride = plane.dst_stride;
  const bool exists = x < width;
  const uint8_t *src = gpu_base ((uint8_t *)plane.src) + 2 * y * src_stride + 2 * x * bytes;
  uint8_t *dst = gpu_base (plane.dst) + y * dst_stride + warp_x * bytes;
  uint32_t upper[lines][n] = {}, lower[lines][n] = {};

#pragma unroll
  for (unsigned r = 0; r < lines; r++)
    if (exists && y + r * GPU_RESIZE_BLOCK_Y < height) {
      gpu_load_words<n> (src + r * 2 * GPU_RESIZE_BLOCK_Y * src_stride, upper[r]);
      gpu_load_words<n> (src + (r * 2 * GPU_RESIZE_BLOCK_Y + 1) * src_stride, lower[r]);
    }
#pragma unroll
  for (unsigned r = 0; r < lines; r++) {
    uint32_t a[n / 2], b[n / 2], c[n / 2], d[n / 2], out[n / 2];

    gpu_split_pairs<bytes> (upper[r], a, b);
    gpu_split_pairs<bytes> (lower[r], c, d);
#pragma unroll
    for (unsigned i = 0; i < n / 2; i++)
      out[i] = mean (a[i], b[i], c[i], d[i]);
    if (y + r * GPU_RESIZE_BLOCK_Y >= height)
      return;
    if constexpr (bytes == 3)
      gpu_store_quads<1, 3, true> (dst, width - warp_x, exists ? GPU_QUAD : 0, true, out, stage);
    else if (exists)
      gpu_store_words<n / 2> (dst + threadIdx.x * 2 * n, out);
    dst += GPU_RESIZE_BLOCK_Y * dst_stride;
  }
}

/* @lines: of the rows that a block makes a part of, those of one thread. */
template <unsigned lines>
static __device__ __forceinline__ void
run_resize_bilinear_half (const GpuResizeArgs &args)
{
  const unsigned rows = lines * GPU_RESIZE_BLOCK_Y;
  __shared__ uint4 stage[GPU_RESIZE_BLOCK_Y][8 * 3];

  for (uint64_t row = (uint64_t)blockIdx.y * rows; row < args.rows.total; row += (uint64_t)gridDim.y * rows) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuResizePlane &plane = args.plane[i];
    const uint32_t y = (uint32_t)(row - args.rows.first[i]) + threadIdx.y;
    const uint32_t bytes = GPU_RESIZE_BLOCK_X * gpu_resize_half_bytes (plane.bytes);

    if (y >= plane.height || blockIdx.x * bytes >= plane.width * plane.bytes)
      continue;
    if (plane.bytes == 1)
      resize_half_lines<1, lines> (plane, y, NULL);
    else if (plane.bytes == 2)
      resize_half_lines<2, lines> (plane, y, NULL);
    else if (plane.bytes == 3)
      resize_half_lines<3, lines> (plane, y, stage[threadIdx.y]);
    else
      resize_half_lines<4, lines> (plane, y, NULL);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, 6)
    gpu_resize_bilinear_half (const __grid_constant__ GpuResizeArgs args)
{
  run_resize_bilinear_half<GPU_RESIZE_HALF_LINES> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y, 5)
    gpu_resize_bilinear_half_table (const __grid_constant__ GpuTable<GpuResizeArgs> table)
{
  run_resize_bilinear_half<GPU_RESIZE_TABLE_LINES * GPU_RESIZE_HALF_LINES> (gpu_table_args (table));
}
