/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation on the GPU. To a picture: a thread makes two 16-byte lines of the destination, or one where addresses
 * and strides are just any. Source and destination may be the same: then each thread reads what it writes, and nothing
 * else. To a tensor, at addresses of any kind and where normalize-lines.cu cannot give the very bits: a block works out
 * what each value becomes, in shared memory, and its threads look it up, four pixels of a row at a time.
 */
#include "chunk.cuh"
#include "normalize.cuh"
#include "quad.cuh"
#include "table.cuh"

/* A value for each byte of a pixel. */
template <typename Channel, unsigned bytes> struct Channels {
  Channel channel[bytes];
};

/* The channels in the order in which bytes from @phase on take turns. */
template <unsigned bytes, typename Channel>
static __device__ __forceinline__ Channels<Channel, bytes>
channels_from (const Channel *channel, unsigned phase)
{
  Channels<Channel, bytes> out;

#pragma unroll
  for (unsigned c = 0; c < bytes; c++) {
    out.channel[c] = channel[c];
#pragma unroll
    for (unsigned k = 1; k < bytes; k++)
      if (phase == k)
        out.channel[c] = channel[(c + k) % bytes];
  }
  return out;
}

/* Bytes to numbers without the slow conversion: a float with the byte for its last bits is 2^23 + byte. */
template <unsigned bytes>
static __device__ __forceinline__ GpuChunk
normalize_chunk (const Channels<GpuNormalizeChannel, bytes> &channels, const GpuChunk &in)
{
  const uint32_t above = (uint32_t)gpu_own (0x4b000000);
  GpuChunk out;

#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    int32_t sample[4];

#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
      const float value = gpu_float_from_bits (__byte_perm (in.word[i], above, 0x7440 | k)) - 8388608.0f;

      sample[k] = gpu_round_to_integer (gpu_normalize_value (channels.channel[(4 * i + k) % bytes], value));
    }
    out.word[i] = gpu_pack_saturated (sample[0], sample[1], gpu_pack_saturated (sample[2], sample[3], 0));
  }
  return out;
}

/* The same by steps. */
template <unsigned bytes>
static __device__ __forceinline__ GpuChunk
normalize_chunk (const Channels<GpuNormalizeStep, bytes> &steps, const GpuChunk &in)
{
  const uint32_t above = (uint32_t)gpu_own (GPU_NORMALIZE_ABOVE_BITS);
  GpuChunk out;

#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    int32_t sample[4];

#pragma unroll
    for (unsigned k = 0; k < 4; k++) {
      const float value = gpu_float_from_bits (__byte_perm (in.word[i], above, GPU_NORMALIZE_SELECTOR (k)));

      sample[k] = gpu_round_to_integer (gpu_normalize_in_one (steps.channel[(4 * i + k) % bytes], value));
    }
    out.word[i] = gpu_pack_saturated (sample[0], sample[1], gpu_pack_saturated (sample[2], sample[3], 0));
  }
  return out;
}

/* Chunk number @at of row @y and of the one below it. */
template <unsigned bytes>
static __device__ __forceinline__ void
normalize_pair (const GpuNormalizeStepPlane &plane, uint32_t y, uint32_t at)
{
  const uint32_t offset = 16 * at, rows = min (plane.height - y, GPU_NORMALIZE_ROWS);
  const uint8_t *src = plane.src + (uint64_t)y * plane.src_stride + offset;
  uint8_t *dst = plane.dst + (uint64_t)y * plane.dst_stride + offset;

  if (offset + 16 <= plane.row_bytes) {
    GpuChunk chunk[GPU_NORMALIZE_ROWS];

#pragma unroll
    for (unsigned r = 0; r < GPU_NORMALIZE_ROWS; r++)
      if (r < rows)
        gpu_load_words<4> (src + r * plane.src_stride, chunk[r].word);

    const Channels<GpuNormalizeStep, bytes> steps = channels_from<bytes> (plane.step, bytes == 3 ? at % 3 : 0);
#pragma unroll
    for (unsigned r = 0; r < GPU_NORMALIZE_ROWS; r++)
      if (r < rows)
        gpu_store_chunk (dst + r * plane.dst_stride, normalize_chunk (steps, chunk[r]));
  } else {
    const Channels<GpuNormalizeStep, bytes> steps = channels_from<bytes> (plane.step, bytes == 3 ? at % 3 : 0);
    const uint32_t left = plane.row_bytes - offset;

#pragma unroll 1
    for (unsigned r = 0; r < rows; r++, src += plane.src_stride, dst += plane.dst_stride)
      gpu_store_bytes (dst, normalize_chunk (steps, gpu_load_bytes (src, left)), left);
  }
}

/* Threads take the chunks of two rows, and then of the next two, so that no warp is empty whatever the width. A block
 * has one plane only. */
static __device__ __forceinline__ void
run_normalize_rows (const GpuNormalizeStepArgs &args)
{
  const uint32_t block = blockIdx.x;
  const unsigned i = (block >= args.first[1]) + (block >= args.first[2]) + (block >= args.first[3]);
  const GpuNormalizeStepPlane &plane = args.plane[i];
  const uint32_t n =
      ((block - args.first[i]) * GPU_NORMALIZE_BLOCK_Y + threadIdx.y) * GPU_NORMALIZE_BLOCK_X + threadIdx.x;
  const uint32_t row = gpu_normalize_row_of (plane.across, plane.inverse, n);
  const uint32_t y = row * GPU_NORMALIZE_ROWS, at = n - row * plane.across;

  if (y >= plane.height)
    return;
  if (plane.bytes == 1)
    normalize_pair<1> (plane, y, at);
  else if (plane.bytes == 2)
    normalize_pair<2> (plane, y, at);
  else if (plane.bytes == 3)
    normalize_pair<3> (plane, y, at);
  else
    normalize_pair<4> (plane, y, at);
}

extern "C" __global__ void
__launch_bounds__ (GPU_NORMALIZE_BLOCK_X *GPU_NORMALIZE_BLOCK_Y, 6)
    gpu_normalize_rows (const __grid_constant__ GpuNormalizeStepArgs args)
{
  run_normalize_rows (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_NORMALIZE_BLOCK_X *GPU_NORMALIZE_BLOCK_Y, 6)
    gpu_normalize_rows_table (const __grid_constant__ GpuTable<GpuNormalizeStepArgs> table)
{
  gpu_with_table_args (table, [] (const GpuNormalizeStepArgs &args) { run_normalize_rows (args); });
}

/* At any address and stride. */
template <unsigned bytes>
static __device__ __forceinline__ void
normalize_row (const GpuNormalizePlane &plane, uint32_t y, uint64_t thread)
{
  const int64_t row_bytes = (int64_t)plane.row_bytes;
  const uint8_t *src = plane.src + y * plane.src_stride;
  uint8_t *dst = plane.dst + y * plane.dst_stride;
  const int64_t offset = 16 * (int64_t)thread - (int64_t)((uintptr_t)dst & 15);

  if (offset >= row_bytes)
    return;
  if (offset < 0 || offset + 16 > row_bytes) {
#pragma unroll 1
    for (int64_t i = offset < 0 ? 0 : offset; i < offset + 16 && i < row_bytes; i++)
      dst[i] = gpu_normalize_sample (plane.channel[i % bytes], src[i]);
    return;
  }
  gpu_store_chunk (dst + offset, normalize_chunk (channels_from<bytes> (plane.channel, (unsigned)(offset % bytes)),
                                                  gpu_load_chunk (src + offset, src, src + row_bytes)));
}

static __device__ __forceinline__ void
run_normalize_any_rows (const GpuNormalizeArgs &args)
{
  const uint64_t thread = (uint64_t)blockIdx.x * GPU_NORMALIZE_BLOCK_X + threadIdx.x;

  for (uint64_t row = (uint64_t)blockIdx.y * GPU_NORMALIZE_BLOCK_Y + threadIdx.y; row < args.rows.total;
       row += (uint64_t)gridDim.y * GPU_NORMALIZE_BLOCK_Y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuNormalizePlane &plane = args.plane[i];
    const uint64_t y = row - args.rows.first[i];

    if (y >= plane.height)
      continue;
    if (plane.bytes == 1)
      normalize_row<1> (plane, (uint32_t)y, thread);
    else if (plane.bytes == 2)
      normalize_row<2> (plane, (uint32_t)y, thread);
    else if (plane.bytes == 3)
      normalize_row<3> (plane, (uint32_t)y, thread);
    else
      normalize_row<4> (plane, (uint32_t)y, thread);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_NORMALIZE_BLOCK_X *GPU_NORMALIZE_BLOCK_Y)
    gpu_normalize_any_rows (const __grid_constant__ GpuNormalizeArgs args)
{
  run_normalize_any_rows (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_NORMALIZE_BLOCK_X *GPU_NORMALIZE_BLOCK_Y)
    gpu_normalize_any_rows_table (const __grid_constant__ GpuTable<GpuNormalizeArgs> table)
{
  run_normalize_any_rows (gpu_table_args (table));
}

/* Rows that a block's threads take at a time, and uint4s that a warp has for what it puts together from its lanes. */
#define TILE_ROWS (GPU_QUAD_BLOCK_Y * GPU_QUAD_ROWS)

template <unsigned size> static constexpr unsigned stage_lines = size == 4 ? 128 : 96;

template <unsigned size, unsigned channels>
static __device__ __forceinline__ void
look_up_quad (const GpuNormalizeTensorArgs &args, uint64_t x0, uint64_t y, unsigned n, const uint32_t pixel[GPU_QUAD],
              const uint32_t table[][256], uint4 *stage)
{
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  uint32_t words[size * channels] = {};

#pragma unroll
  for (unsigned c = 0; c < channels; c++) {
    uint32_t element[GPU_QUAD];

#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++)
      element[k] = table[c][pixel[k] >> (8 * args.at[c]) & 0xff];
    if (args.dst.group == 1) {
      gpu_store_plane_quad<size> (args.dst.data[c] + y * args.dst.stride[c] + x * size, n, args.dst.vector, element);
      continue;
    }
#pragma unroll
    for (unsigned k = 0; k < GPU_QUAD; k++) {
      const unsigned i = k * channels + c;

      words[i * size / 4] |= element[k] << (8 * (i * size % 4));
    }
  }
  if (args.dst.group > 1)
    gpu_store_quads<size, channels> (gpu_packed_pixel (args.dst, x0, y), args.width - x0, n, args.dst.vector, words,
                                     stage);
}

/* Any quads. */
template <unsigned size>
static __device__ __forceinline__ void
look_up_rows (const GpuNormalizeTensorArgs &args, uint64_t x0, unsigned n, const uint32_t table[][256], uint4 *stage)
{
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;

#pragma unroll 1
  for (uint32_t y = blockIdx.y * TILE_ROWS + threadIdx.y; y < args.height; y += gridDim.y * TILE_ROWS) {
#pragma unroll 1
    for (uint32_t row = y; row < y + TILE_ROWS && row < args.height; row += GPU_QUAD_BLOCK_Y) {
      uint32_t pixel[GPU_QUAD] = {};

      if (n)
        gpu_load_byte_pixels (args.src, x, row, n, pixel);
      if (args.dst.channels == 1)
        look_up_quad<size, 1> (args, x0, row, n, pixel, table, stage);
      else if (args.dst.channels == 3)
        look_up_quad<size, 3> (args, x0, row, n, pixel, table, stage);
      else
        look_up_quad<size, 4> (args, x0, row, n, pixel, table, stage);
    }
  }
}

template <unsigned size>
static __device__ __forceinline__ void
run_normalize_tensor (const GpuNormalizeTensorArgs &args)
{
  __shared__ uint32_t table[GPU_PIXEL_CHANNELS][256];
  __shared__ uint4 stage[GPU_QUAD_BLOCK_Y][stage_lines<size>];
  const unsigned value = threadIdx.y * GPU_QUAD_BLOCK_X + threadIdx.x;
  const uint64_t x0 = (uint64_t)blockIdx.x * GPU_QUAD_BLOCK_X * GPU_QUAD;
  const uint64_t x = x0 + GPU_QUAD * threadIdx.x;
  const unsigned n = x >= args.width ? 0 : (unsigned)min ((uint64_t)GPU_QUAD, args.width - x);

  if (x0 >= args.width)
    return;
  for (unsigned c = 0; c < args.dst.channels; c++)
    table[c][value] = gpu_normalize_element (args.channel[c], value, size);
  __syncthreads ();
  look_up_rows<size> (args, x0, n, table, stage[threadIdx.y]);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_tensor_1 (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  run_normalize_tensor<1> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_tensor_1_table (const __grid_constant__ GpuTable<GpuNormalizeTensorArgs> table)
{
  run_normalize_tensor<1> (gpu_table_args (table));
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_tensor_2 (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  run_normalize_tensor<2> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_tensor_2_table (const __grid_constant__ GpuTable<GpuNormalizeTensorArgs> table)
{
  run_normalize_tensor<2> (gpu_table_args (table));
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_tensor_4 (const __grid_constant__ GpuNormalizeTensorArgs args)
{
  run_normalize_tensor<4> (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_QUAD_BLOCK_X *GPU_QUAD_BLOCK_Y, 4)
    gpu_normalize_tensor_4_table (const __grid_constant__ GpuTable<GpuNormalizeTensorArgs> table)
{
  run_normalize_tensor<4> (gpu_table_args (table));
}
