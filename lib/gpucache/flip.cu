/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Flips on the GPU. Where rows stay rows, a thread makes one 16-byte line of the destination; where they become
 * columns, a block turns a square tile in shared memory. Both take any address and stride.
 */
#include "chunk.cuh"
#include "flip-pixel.h"
#include "table.cuh"

/* The byte of the destination's row that comes @offset bytes after its first. */
template <unsigned bytes>
static __device__ __forceinline__ uint8_t
flipped_byte (const uint8_t *first, int64_t step_x, int64_t offset)
{
  return first[offset / bytes * step_x + offset % bytes];
}

/* 16 bytes of a reversed row from @offset on. @first is the source of the row's first pixel: the last one in memory. */
template <unsigned bytes>
static __device__ __forceinline__ GpuChunk
reversed_chunk (const uint8_t *first, const uint8_t *low, int64_t offset)
{
  const uint8_t *high = first + bytes;
  const unsigned phase = offset % bytes;
  GpuChunk out;

  if (bytes != 3 && !phase) {
    const GpuChunk in = gpu_load_chunk (high - offset - 16, low, high);
    const unsigned order = bytes == 1 ? 0x0123 : bytes == 2 ? 0x1032 : 0x3210;

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      out.word[i] = __byte_perm (in.word[3 - i], 0, order);
    return out;
  }

  if (bytes == 3) {
    /* The six pixels, 18 bytes, that the chunk has parts of. */
    const uint8_t *p = high - (offset - phase) - 18;
    const unsigned skip = (unsigned)(uintptr_t)p & 3;
    const uint8_t *line = p - skip;

    if (line >= low && line + 24 <= high) {
      uint32_t w[6], in[5], r[5];

#pragma unroll
      for (unsigned i = 0; i < 6; i++)
        w[i] = ((const uint32_t *)line)[i];
#pragma unroll
      for (unsigned i = 0; i < 5; i++)
        in[i] = __funnelshift_r (w[i], w[i + 1], 8 * skip);
      /* Bytes 15 16 17 12, 13 14 9 10, 11 6 7 8, 3 4 5 0, 1 2. */
      r[0] = __byte_perm (in[3], in[4], 0x0543);
      r[1] = __byte_perm (in[2], in[3], 0x2165);
      r[2] = __byte_perm (in[1], in[2], 0x4327);
      r[3] = __byte_perm (in[0], in[1], 0x0543);
      r[4] = in[0] >> 8;
#pragma unroll
      for (unsigned i = 0; i < 4; i++)
        out.word[i] = __funnelshift_r (r[i], r[i + 1], 8 * phase);
      return out;
    }
  }

#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    out.word[i] = 0;
#pragma unroll
    for (unsigned k = 0; k < 4; k++)
      out.word[i] |= (uint32_t)flipped_byte<bytes> (first, -(int64_t)bytes, offset + 4 * i + k) << (8 * k);
  }
  return out;
}

template <unsigned bytes>
static __device__ __forceinline__ void
flip_row (const GpuFlipPlane &plane, uint32_t y, uint64_t thread)
{
  const int64_t row_bytes = (int64_t)plane.width * bytes;
  const uint8_t *first = gpu_flip_source (&plane, 0, y);
  uint8_t *dst = plane.dst + y * plane.dst_stride;
  const int64_t offset = 16 * (int64_t)thread - (int64_t)((uintptr_t)dst & 15);

  if (offset >= row_bytes)
    return;
  if (offset < 0 || offset + 16 > row_bytes) {
#pragma unroll 1
    for (int64_t i = offset < 0 ? 0 : offset; i < offset + 16 && i < row_bytes; i++)
      dst[i] = flipped_byte<bytes> (first, plane.step_x, i);
  } else if (plane.step_x > 0) {
    gpu_store_chunk (dst + offset, gpu_load_chunk (first + offset, first, first + row_bytes));
  } else {
    gpu_store_chunk (dst + offset, reversed_chunk<bytes> (first, first + bytes - row_bytes, offset));
  }
}

/* A chunk of pixels of 1, 2 or 4 bytes, the other way round. */
template <unsigned bytes>
static __device__ __forceinline__ GpuChunk
reversed_line (const GpuChunk &in)
{
  const unsigned order = bytes == 1 ? 0x0123 : bytes == 2 ? 0x1032 : 0x3210;
  GpuChunk out;

#pragma unroll
  for (unsigned i = 0; i < 4; i++)
    out.word[i] = __byte_perm (in.word[3 - i], 0, order);
  return out;
}

/* The same of 3 bytes. The chunk has parts of six pixels, 18 bytes, of which one or two lie before or after it: the
 * neighbours have them, and @edge, for lanes that have no neighbour. @phase: which byte of a pixel it begins with. */
static __device__ __forceinline__ GpuChunk
reversed_triples (const GpuChunk &in, uint32_t edge, unsigned phase)
{
  const unsigned lane = threadIdx.x;
  uint32_t before = __shfl_down_sync (0xffffffff, in.word[3], 1), after = __shfl_up_sync (0xffffffff, in.word[0], 1);
  uint32_t w[5];
  GpuChunk out;

  before = lane == 31 ? edge : before;
  after = lane == 0 ? edge : after;
  /* From byte 2, 3 or 4 on of what now are six words. */
  const unsigned skip = 16 + 8 * phase;
  w[0] = __funnelshift_rc (before, in.word[0], skip);
  w[1] = __funnelshift_rc (in.word[0], in.word[1], skip);
  w[2] = __funnelshift_rc (in.word[1], in.word[2], skip);
  w[3] = __funnelshift_rc (in.word[2], in.word[3], skip);
  w[4] = __funnelshift_rc (in.word[3], after, skip);
  /* Bytes 15 16 17 12, 13 14 9 10, 11 6 7 8, 3 4 5 0, 1 2. */
  const uint32_t r[5] = {__byte_perm (w[3], w[4], 0x0543), __byte_perm (w[2], w[3], 0x2165),
                         __byte_perm (w[1], w[2], 0x4327), __byte_perm (w[0], w[1], 0x0543), w[0] >> 8};
#pragma unroll
  for (unsigned i = 0; i < 4; i++)
    out.word[i] = __funnelshift_r (r[i], r[i + 1], 8 * phase);
  return out;
}

/* The lines of row @y and of the block's other one below it, where chunks lie at multiples of 16. All lanes of a warp
 * call it. */
template <unsigned bytes, bool reversed>
static __device__ __forceinline__ void
flip_lines (const GpuFlipPlane &plane, uint32_t y, uint32_t thread)
{
  const uint32_t row_bytes = plane.width * (reversed ? bytes : plane.bytes), offset = 16 * thread;
  const bool whole = offset + 16 <= row_bytes;
  const uint8_t *src = plane.src + y * plane.step_y;

  /* The last chunk of the source's row goes first. */
  src = reversed ? src + bytes - 16 - offset : src + offset;
  const unsigned lane = threadIdx.x;
  GpuChunk chunk[GPU_FLIP_ROWS] = {};
  uint32_t edge[GPU_FLIP_ROWS] = {};

#pragma unroll
  for (unsigned r = 0; r < GPU_FLIP_ROWS; r++) {
    const int64_t down = (int64_t)(r * GPU_FLIP_BLOCK_Y) * plane.step_y;
    const bool exists = y + r * GPU_FLIP_BLOCK_Y < plane.height && whole;

    if (exists) {
      const uint4 v = *(const uint4 *)(src + down);
      chunk[r] = GpuChunk{{v.x, v.y, v.z, v.w}};
    }
    if (bytes == 3 && reversed && exists && ((lane == 0 && offset) || (lane == 31 && offset + 16 < row_bytes)))
      edge[r] = *(const uint32_t *)(src + down + (lane ? -4 : 16));
  }
#pragma unroll
  for (unsigned r = 0; r < GPU_FLIP_ROWS; r++) {
    const uint32_t row = y + r * GPU_FLIP_BLOCK_Y;
    uint8_t *dst = plane.dst + row * plane.dst_stride + offset;

    if (bytes == 3 && reversed)
      chunk[r] = reversed_triples (chunk[r], edge[r], thread % 3);
    else if (reversed)
      chunk[r] = reversed_line<bytes> (chunk[r]);
    if (row < plane.height && whole)
      gpu_store_chunk (dst, chunk[r]);
    else if (!reversed && row < plane.height && offset < row_bytes)
      gpu_store_bytes (
          dst, gpu_load_bytes (src + (int64_t)(r * GPU_FLIP_BLOCK_Y) * plane.step_y, (unsigned)(row_bytes - offset)),
          (unsigned)(row_bytes - offset));
  }
}

static __device__ __forceinline__ void
run_flip_rows (const GpuFlipArgs &args)
{
  const unsigned rows = GPU_FLIP_ROWS * GPU_FLIP_BLOCK_Y;
  const uint32_t thread = blockIdx.x * GPU_FLIP_BLOCK_X + threadIdx.x;

  for (uint64_t row = (uint64_t)blockIdx.y * rows + threadIdx.y; row < args.rows.total;
       row += (uint64_t)gridDim.y * rows) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuFlipPlane &plane = args.plane[i];
    const uint32_t y = (uint32_t)(row - args.rows.first[i]);

    if (y >= plane.height)
      continue;
    if (plane.step_x > 0)
      flip_lines<1, false> (plane, y, thread);
    else if (plane.bytes == 1)
      flip_lines<1, true> (plane, y, thread);
    else if (plane.bytes == 2)
      flip_lines<2, true> (plane, y, thread);
    else if (plane.bytes == 3)
      flip_lines<3, true> (plane, y, thread);
    else
      flip_lines<4, true> (plane, y, thread);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y) gpu_flip_rows (const __grid_constant__ GpuFlipArgs args)
{
  run_flip_rows (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y) gpu_flip_rows_table (const GpuFlipArgs *table)
{
  run_flip_rows (gpu_table_args (table));
}

/* At any address and stride. */
static __device__ __forceinline__ void
run_flip_any_rows (const GpuFlipArgs &args)
{
  const uint64_t thread = (uint64_t)blockIdx.x * GPU_FLIP_BLOCK_X + threadIdx.x;

  for (uint64_t row = (uint64_t)blockIdx.y * GPU_FLIP_BLOCK_Y + threadIdx.y; row < args.rows.total;
       row += (uint64_t)gridDim.y * GPU_FLIP_BLOCK_Y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuFlipPlane &plane = args.plane[i];
    const uint64_t y = row - args.rows.first[i];

    if (y >= plane.height)
      continue;
    if (plane.bytes == 1)
      flip_row<1> (plane, (uint32_t)y, thread);
    else if (plane.bytes == 2)
      flip_row<2> (plane, (uint32_t)y, thread);
    else if (plane.bytes == 3)
      flip_row<3> (plane, (uint32_t)y, thread);
    else
      flip_row<4> (plane, (uint32_t)y, thread);
  }
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y) gpu_flip_any_rows (const __grid_constant__ GpuFlipArgs args)
{
  run_flip_any_rows (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y) gpu_flip_any_rows_table (const GpuFlipArgs *table)
{
  run_flip_any_rows (gpu_table_args (table));
}

/* A tile of a picture that is turned. What lies in a row of the destination lies in a column of the source: row @c of
 * the tile in shared memory is the source's that becomes the destination's column x0 + c, and has @height pixels from
 * @src on. */
struct Tile {
  const uint8_t *src;
  int64_t step;
  uint8_t *dst;
  uint64_t dst_stride;
  unsigned width;
  unsigned height;
  bool upwards; /* the pixels of @src's rows are the destination's rows from the bottom on */
};

static __device__ __forceinline__ Tile
make_tile (const GpuFlipPlane &plane, uint32_t x0, uint32_t y0)
{
  Tile tile;

  tile.width = min ((uint32_t)GPU_FLIP_TILE, plane.width - x0);
  tile.height = min ((uint32_t)GPU_FLIP_TILE, plane.height - y0);
  tile.upwards = plane.step_y < 0;
  tile.src = gpu_flip_source (&plane, x0, tile.upwards ? y0 + tile.height - 1 : y0);
  tile.step = plane.step_x;
  tile.dst = plane.dst + y0 * plane.dst_stride + (uint64_t)x0 * plane.bytes;
  tile.dst_stride = plane.dst_stride;
  return tile;
}

static __device__ __forceinline__ unsigned
this_thread (void)
{
  return threadIdx.y * GPU_FLIP_BLOCK_X + threadIdx.x;
}

/* The rows as they are, in words, @pitch of them from row to row: an odd number, so that a column meets no bank twice.
 */
template <unsigned bytes>
static __device__ __forceinline__ void
load_tile (const Tile &tile, uint32_t *words)
{
  const unsigned chunks = GPU_FLIP_TILE * bytes / 16, pitch = GPU_FLIP_TILE * bytes / 4 + 1;
  /* A warp reads no more than 128 bytes of a row at once: what follows would meet the same banks. */
  const unsigned across = chunks < 8 ? chunks : 8, down = GPU_FLIP_BLOCK_X * GPU_FLIP_BLOCK_Y / across;

#pragma unroll
  for (unsigned i = 0; i < GPU_FLIP_TILE / down * (chunks / across); i++) {
    const unsigned c = this_thread () / across + i / (chunks / across) * down;
    const unsigned at = this_thread () % across + i % (chunks / across) * across;

    if (c < tile.width && 16 * at < tile.height * bytes) {
      const uint8_t *low = tile.src + (int64_t)c * tile.step;
      const GpuChunk chunk = gpu_load_part (low + 16 * at, low, low + tile.height * bytes);

#pragma unroll
      for (unsigned k = 0; k < 4; k++)
        words[c * pitch + 4 * at + k] = chunk.word[k];
    }
  }
}

/* The row of the destination that the source's pixel @p goes to; none if that is beyond the tile. */
static __device__ __forceinline__ unsigned
row_of (const Tile &tile, unsigned p)
{
  return tile.upwards ? tile.height - 1 - p : p;
}

static __device__ __forceinline__ void
turn_tile_4 (const Tile &tile, uint32_t *words)
{
  const unsigned pitch = GPU_FLIP_TILE + 1;

  load_tile<4> (tile, words);
  __syncthreads ();

#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    const unsigned p = this_thread () / 8 + i / 2 * 32, c = (this_thread () % 8 + i % 2 * 8) * 4;

    if (p < tile.height && c < tile.width) {
      GpuChunk chunk;

#pragma unroll
      for (unsigned k = 0; k < 4; k++)
        chunk.word[k] = words[(c + k) * pitch + p];
      gpu_store_part (tile.dst + row_of (tile, p) * tile.dst_stride + 4 * c, chunk, 4 * (int)(tile.width - c));
    }
  }
}

/* A word a pixel in shared memory. A thread reads 16 pixels, and writes 16 bytes, which have parts of six. */
static __device__ __forceinline__ void
turn_tile_3 (const Tile &tile, uint32_t *words)
{
  const unsigned pitch = GPU_FLIP_TILE + 1;
  const unsigned first = this_thread () / 4, start = this_thread () % 4 * 16;

  if (first < tile.width && start < tile.height) {
    const uint8_t *low = tile.src + (int64_t)first * tile.step, *high = low + 3 * tile.height;

    GpuChunk chunk[3];

#pragma unroll
    for (unsigned i = 0; i < 3; i++)
      chunk[i] = low + 3 * start + 16 * i < high ? gpu_load_part (low + 3 * start + 16 * i, low, high) : GpuChunk{};
#pragma unroll
    for (unsigned i = 0; i < 16; i++) {
      const unsigned at = 3 * i, word = at / 4;
      const uint32_t lower = chunk[word / 4].word[word % 4];
      const uint32_t upper = at % 4 > 1 ? chunk[(word + 1) / 4].word[(word + 1) % 4] : 0;

      words[first * pitch + start + i] = __funnelshift_r (lower, upper, 8 * (at % 4)) & 0xffffff;
    }
  }
  __syncthreads ();

#pragma unroll
  for (unsigned i = 0; i < 3; i++) {
    const unsigned t = i * GPU_FLIP_BLOCK_X * GPU_FLIP_BLOCK_Y + this_thread (), p = t / 12, at = t % 12;
    const unsigned c = 16 * at / 3, phase = at % 3;

    if (p < tile.height && c < tile.width) {
      uint32_t v[6], r[5];
      GpuChunk chunk;

#pragma unroll
      for (unsigned k = 0; k < 6; k++)
        v[k] = words[(c + k) * pitch + p];
      r[0] = v[0] | v[1] << 24;
      r[1] = v[1] >> 8 | v[2] << 16;
      r[2] = v[2] >> 16 | v[3] << 8;
      r[3] = v[4] | v[5] << 24;
      r[4] = v[5] >> 8;
#pragma unroll
      for (unsigned k = 0; k < 4; k++)
        chunk.word[k] = __funnelshift_r (r[k], r[k + 1], 8 * phase);
      gpu_store_part (tile.dst + row_of (tile, p) * tile.dst_stride + 16 * at, chunk,
                      (int)(3 * tile.width) - (int)(16 * at));
    }
  }
}

/* A thread turns eight rows of two pixels. */
static __device__ __forceinline__ void
turn_tile_2 (const Tile &tile, uint32_t *words)
{
  const unsigned pitch = GPU_FLIP_TILE / 2 + 1;

  load_tile<2> (tile, words);
  __syncthreads ();

  const unsigned t = this_thread (), c = (t % 4 + t / 128 * 4) * 8, pair = t / 4 % 32;
  if (2 * pair < tile.height && c < tile.width) {
    uint32_t in[8];

#pragma unroll
    for (unsigned k = 0; k < 8; k++)
      in[k] = words[(c + k) * pitch + pair];
#pragma unroll
    for (unsigned half = 0; half < 2; half++) {
      const unsigned p = 2 * pair + half;
      GpuChunk chunk;

#pragma unroll
      for (unsigned k = 0; k < 4; k++)
        chunk.word[k] = __byte_perm (in[2 * k], in[2 * k + 1], half ? 0x7632 : 0x5410);
      if (p < tile.height)
        gpu_store_part (tile.dst + row_of (tile, p) * tile.dst_stride + 2 * c, chunk, 2 * (int)(tile.width - c));
    }
  }
}

/* A thread turns four rows of four pixels; a row's threads, which follow one another, write 64 bytes together. */
static __device__ __forceinline__ void
turn_tile_1 (const Tile &tile, uint32_t *words)
{
  const unsigned pitch = GPU_FLIP_TILE / 4 + 1;

  load_tile<1> (tile, words);
  __syncthreads ();

  const unsigned c = this_thread () % 16 * 4, quad = this_thread () / 16;
  if (4 * quad < tile.height && c < tile.width) {
    uint32_t in[4], out[4];

#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      in[i] = words[(c + i) * pitch + quad];
    gpu_transpose_bytes (in, out);
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      if (4 * quad + i < tile.height) {
        uint8_t *dst = tile.dst + row_of (tile, 4 * quad + i) * tile.dst_stride + c;

        if (c + 4 <= tile.width)
          *(uint32_t *)dst = out[i];
        else
          gpu_store_bytes (dst, GpuChunk{{out[i]}}, tile.width - c);
      }
  }
}

/* The same for rows of the destination that begin anywhere: words are put together byte by byte. */
template <unsigned bytes>
static __device__ __forceinline__ void
turn_any_tile (const Tile &tile, uint32_t *words)
{
  const unsigned pitch = GPU_FLIP_TILE * bytes / 4 + 1;
  const unsigned src_low = (unsigned)(uintptr_t)tile.src, src_step = (unsigned)tile.step;

  for (unsigned t = this_thread (); t < tile.width * pitch; t += GPU_FLIP_BLOCK_X * GPU_FLIP_BLOCK_Y) {
    const unsigned column = t / pitch, word = t % pitch;
    const uint8_t *low = tile.src + (int64_t)column * tile.step;
    const uint8_t *high = low + tile.height * bytes;
    const uint8_t *p = low - ((src_low + column * src_step) & 3) + 4 * word;

    if (p < high)
      words[column * pitch + word] = gpu_load_word (p, low, high);
  }
  __syncthreads ();

  for (unsigned t = this_thread (); t < tile.height * pitch; t += GPU_FLIP_BLOCK_X * GPU_FLIP_BLOCK_Y) {
    const unsigned row = t / pitch, word = t % pitch;
    uint8_t *line = tile.dst + row * tile.dst_stride;
    const int offset = (int)(4 * word) - (int)((uintptr_t)line & 3);
    const int end = (int)(tile.width * bytes);
    const unsigned column = row_of (tile, row) * bytes;
    uint32_t value = 0;

#pragma unroll
    for (int k = 0; k < 4; k++) {
      const int at = offset + k;
      const unsigned x = (unsigned)at / bytes, part = (unsigned)at % bytes;

      if (at >= 0 && at < end)
        value |= (uint32_t)((const uint8_t *)(words + x * pitch))[((src_low + x * src_step) & 3) + column + part]
                 << (8 * k);
    }
    if (offset >= 0 && offset + 4 <= end) {
      *(uint32_t *)(line + offset) = value;
    } else {
#pragma unroll
      for (int k = 0; k < 4; k++)
        if (offset + k >= 0 && offset + k < end)
          line[offset + k] = (uint8_t)gpu_byte (value, k);
    }
  }
}

template <bool aligned>
static __device__ __forceinline__ void
flip_tiles (const GpuFlipArgs &args, uint32_t *words)
{
  for (uint64_t row = blockIdx.y; row < args.rows.total; row += gridDim.y) {
    const unsigned i = gpu_plane_of_row (args.rows, row);
    const GpuFlipPlane &plane = args.plane[i];
    const uint64_t x0 = (uint64_t)blockIdx.x * GPU_FLIP_TILE;
    const uint32_t y0 = (uint32_t)(row - args.rows.first[i]) * GPU_FLIP_TILE;

    if (x0 >= plane.width)
      continue;
    const Tile tile = make_tile (plane, (uint32_t)x0, y0);
    if (plane.bytes == 1 && aligned)
      turn_tile_1 (tile, words);
    else if (plane.bytes == 1)
      turn_any_tile<1> (tile, words);
    else if (plane.bytes == 2 && aligned)
      turn_tile_2 (tile, words);
    else if (plane.bytes == 2)
      turn_any_tile<2> (tile, words);
    else if (plane.bytes == 3 && aligned)
      turn_tile_3 (tile, words);
    else if (plane.bytes == 3)
      turn_any_tile<3> (tile, words);
    else if (aligned)
      turn_tile_4 (tile, words);
    else
      turn_any_tile<4> (tile, words);
    __syncthreads ();
  }
}

static __device__ __forceinline__ void
run_flip_tiles (const GpuFlipArgs &args)
{
  __shared__ uint32_t words[GPU_FLIP_TILE * (GPU_FLIP_TILE + 1)];

  flip_tiles<true> (args, words);
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y, 5) gpu_flip_tiles (const __grid_constant__ GpuFlipArgs args)
{
  run_flip_tiles (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y, 5) gpu_flip_tiles_table (const GpuFlipArgs *table)
{
  run_flip_tiles (gpu_table_args (table));
}

/* At any address and stride. */
static __device__ __forceinline__ void
run_flip_any_tiles (const GpuFlipArgs &args)
{
  __shared__ uint32_t words[GPU_FLIP_TILE * (GPU_FLIP_TILE + 1)];

  flip_tiles<false> (args, words);
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y) gpu_flip_any_tiles (const __grid_constant__ GpuFlipArgs args)
{
  run_flip_any_tiles (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y) gpu_flip_any_tiles_table (const GpuFlipArgs *table)
{
  run_flip_any_tiles (gpu_table_args (table));
}
