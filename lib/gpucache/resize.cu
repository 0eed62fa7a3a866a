/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling on the GPU: a thread makes four pixels of a row, and writes them at once where addresses allow that.
 */
#include "chunk.cuh"
#include "resize-pixel.h"

/* The bytes of a pixel, the first one lowest. */
template <unsigned bytes>
static __device__ __forceinline__ uint32_t
load_pixel (const uint8_t *p, bool aligned)
{
  if (bytes == 4 && aligned)
    return *(const uint32_t *)p;
  if (bytes == 2 && aligned)
    return *(const uint16_t *)p;

  uint32_t value = p[0];
#pragma unroll
  for (unsigned i = 1; i < bytes; i++)
    value |= (uint32_t)p[i] << (8 * i);
  return value;
}

template <unsigned bytes>
static __device__ __forceinline__ void
store_pixels (uint8_t *p, const uint32_t pixel[GPU_RESIZE_PIXELS], unsigned n, bool aligned)
{
  if (aligned && n == GPU_RESIZE_PIXELS) {
    if (bytes == 1) {
      *(uint32_t *)p = pixel[0] | pixel[1] << 8 | pixel[2] << 16 | pixel[3] << 24;
    } else if (bytes == 2) {
      *(uint2 *)p = make_uint2 (pixel[0] | pixel[1] << 16, pixel[2] | pixel[3] << 16);
    } else if (bytes == 3) {
      ((uint32_t *)p)[0] = pixel[0] | pixel[1] << 24;
      ((uint32_t *)p)[1] = pixel[1] >> 8 | pixel[2] << 16;
      ((uint32_t *)p)[2] = pixel[2] >> 16 | pixel[3] << 8;
    } else {
      *(uint4 *)p = make_uint4 (pixel[0], pixel[1], pixel[2], pixel[3]);
    }
    return;
  }

#pragma unroll
  for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
    if (k < n)
#pragma unroll
      for (unsigned i = 0; i < bytes; i++)
        p[k * bytes + i] = (uint8_t)gpu_byte (pixel[k], i);
}

template <unsigned bytes>
static __device__ __forceinline__ void
nearest_row (const GpuResizePlane &plane, uint32_t x0, uint32_t y)
{
  const uint8_t *src = plane.src + gpu_resize_nearest (&plane.y, y) * plane.src_stride;
  const unsigned n = min (GPU_RESIZE_PIXELS, plane.x.dst - x0);
  uint32_t pixel[GPU_RESIZE_PIXELS];

#pragma unroll
  for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++) {
    const uint32_t x = gpu_resize_nearest (&plane.x, k < n ? x0 + k : x0);

    pixel[k] = load_pixel<bytes> (src + (uint64_t)x * bytes, plane.aligned);
  }
  store_pixels<bytes> (plane.dst + y * plane.dst_stride + (uint64_t)x0 * bytes, pixel, n, plane.aligned);
}

template <unsigned bytes>
static __device__ __forceinline__ void
bilinear_row (const GpuResizePlane &plane, uint32_t x0, uint32_t y)
{
  const GpuResizeTap v = gpu_resize_linear (&plane.y, y);
  const uint8_t *src0 = plane.src + v.i0 * plane.src_stride;
  const uint8_t *src1 = plane.src + v.i1 * plane.src_stride;
  const unsigned n = min (GPU_RESIZE_PIXELS, plane.x.dst - x0);
  uint32_t pixel[GPU_RESIZE_PIXELS];

#pragma unroll
  for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++) {
    const GpuResizeTap h = gpu_resize_linear (&plane.x, k < n ? x0 + k : x0);
    const uint64_t left = (uint64_t)h.i0 * bytes, right = (uint64_t)h.i1 * bytes;
    const uint32_t a = load_pixel<bytes> (src0 + left, plane.aligned);
    const uint32_t b = load_pixel<bytes> (src0 + right, plane.aligned);
    const uint32_t c = load_pixel<bytes> (src1 + left, plane.aligned);
    const uint32_t d = load_pixel<bytes> (src1 + right, plane.aligned);

    pixel[k] = 0;
#pragma unroll
    for (unsigned i = 0; i < bytes; i++) {
      const uint32_t upper = gpu_resize_mix (gpu_byte (a, i), gpu_byte (b, i), h.weight);
      const uint32_t lower = gpu_resize_mix (gpu_byte (c, i), gpu_byte (d, i), h.weight);

      pixel[k] |= (uint32_t)gpu_resize_mix_rows (upper, lower, v.weight) << (8 * i);
    }
  }
  store_pixels<bytes> (plane.dst + y * plane.dst_stride + (uint64_t)x0 * bytes, pixel, n, plane.aligned);
}

template <bool linear, unsigned bytes>
static __device__ __forceinline__ void
resize_row (const GpuResizePlane &plane, uint32_t x0, uint32_t y)
{
  if (linear)
    bilinear_row<bytes> (plane, x0, y);
  else
    nearest_row<bytes> (plane, x0, y);
}

template <bool linear>
static __device__ __forceinline__ void
resize (const GpuResizeArgs &args)
{
  const uint64_t x0 = ((uint64_t)blockIdx.x * GPU_RESIZE_BLOCK_X + threadIdx.x) * GPU_RESIZE_PIXELS;

  for (uint64_t row = (uint64_t)blockIdx.y * GPU_RESIZE_BLOCK_Y + threadIdx.y; row < args.rows.total;
       row += (uint64_t)gridDim.y * GPU_RESIZE_BLOCK_Y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuResizePlane plane = args.plane[i];
    const uint64_t y = row - args.rows.first[i];

    if (x0 >= plane.x.dst || y >= plane.y.dst)
      continue;
    if (plane.bytes == 1)
      resize_row<linear, 1> (plane, (uint32_t)x0, (uint32_t)y);
    else if (plane.bytes == 2)
      resize_row<linear, 2> (plane, (uint32_t)x0, (uint32_t)y);
    else if (plane.bytes == 3)
      resize_row<linear, 3> (plane, (uint32_t)x0, (uint32_t)y);
    else
      resize_row<linear, 4> (plane, (uint32_t)x0, (uint32_t)y);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_nearest_rows (const __grid_constant__ GpuResizeArgs args)
{
  resize<false> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_RESIZE_BLOCK_X *GPU_RESIZE_BLOCK_Y)
    gpu_resize_bilinear_rows (const __grid_constant__ GpuResizeArgs args)
{
  resize<true> (args);
}
