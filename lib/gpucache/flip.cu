/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Flips on the GPU. Where rows stay rows, a thread makes one 16-byte line of the destination; where they become
 * columns, a block turns a tile by way of shared memory. Both take any address and stride.
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
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y)
    gpu_flip_rows_table (const __grid_constant__ GpuTable<GpuFlipArgs> table)
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
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y)
    gpu_flip_any_rows_table (const __grid_constant__ GpuTable<GpuFlipArgs> table)
{
  run_flip_any_rows (gpu_table_args (table));
}

/* A tile of a picture that is turned. What lies in a row of the destination lies in a column of the source: row @c of
 * the tile in shared memory is the source's that becomes the destination's column @x + c. */
struct Tile {
  const GpuFlipPlane &plane;
  uint32_t x, y;
  uint32_t width, height;
};

/* Whether the pixels of the source's rows are the destination's rows from the bottom on. */
static __device__ __forceinline__ bool
is_upwards (const GpuFlipPlane &plane)
{
  return plane.step_y < 0;
}

/* Tile number @n of a plane: GPU_FLIP_DOWN rows of tiles are numbered column by column, and what is left of rows below
 * them row by row. */
template <bool in_lines>
static __device__ __forceinline__ Tile
make_tile (const GpuFlipPlane &plane, uint32_t n)
{
  const uint32_t width = gpu_flip_tile_width (plane.bytes, in_lines);
  const uint32_t height = gpu_flip_tile_height (plane.bytes, in_lines);
  const uint32_t across = plane.across;
  uint32_t row = plane.inverse ? (uint32_t)((uint64_t)n * plane.inverse >> 32) : n;

  /* The inverse is rounded up. */
  row -= row * across > n;
  uint32_t column = n - row * across;
  const uint32_t first = row & ~(GPU_FLIP_DOWN - 1u), at = n - first * across;
  if ((uint64_t)(first + GPU_FLIP_DOWN - 1) * height < plane.height) {
    row = first + (at & (GPU_FLIP_DOWN - 1));
    column = at / GPU_FLIP_DOWN;
  }

  /* Rows of tiles begin where the source's rows do, so that the tiles' lines are the source's. */
  const uint32_t x = column * width, before = row * height, rows = min (height, plane.height - before);
  const uint32_t y = is_upwards (plane) ? plane.height - before - rows : before;
  return Tile{plane, x, y, min (width, plane.width - x), rows};
}

static __device__ __forceinline__ unsigned
this_thread (void)
{
  return threadIdx.y * GPU_FLIP_BLOCK_X + threadIdx.x;
}

/* The tile's first row in the source: @height pixels. The next one is the plane's step in x further. */
static __device__ __forceinline__ const uint8_t *
tile_source (const Tile &tile)
{
  return gpu_flip_source (&tile.plane, tile.x, is_upwards (tile.plane) ? tile.y + tile.height - 1 : tile.y);
}

/* The row of the destination that the source's pixel @p goes to; none if that is beyond the tile. */
static __device__ __forceinline__ unsigned
row_of (const Tile &tile, unsigned p)
{
  return is_upwards (tile.plane) ? tile.height - 1 - p : p;
}

/* The tile's byte at @offset of its row @row in the destination. */
static __device__ __forceinline__ uint8_t *
tile_target (const Tile &tile, unsigned row, unsigned offset)
{
  return tile.plane.dst + (uint64_t)(tile.y + row) * tile.plane.dst_stride + (uint64_t)tile.x * tile.plane.bytes +
         offset;
}

/* Chunks of 16 bytes from row to row in shared memory. */
template <unsigned bytes> static constexpr unsigned tile_pitch = bytes == 1 ? 8 : 16;

/* What the places of row @c's chunks are xored with. Threads that follow one another read one chunk of rows that are as
 * many pixels apart as 16 bytes have: so these rows' chunks lie in eight different places. Of three bytes a pixel they
 * are 5, 5 and 6 rows apart, and read single words three words apart, each from four such rows at once: these begin in
 * four different places, for each of the six rows that a chunk of the destination has parts of. */
template <unsigned bytes>
static __device__ __forceinline__ unsigned
tile_order (unsigned c)
{
  return bytes == 3 ? (3 * (c + 1) / 16 & 3) * 2 : c * bytes / 16 % 8;
}

/* The source's rows as they are, in chunks. */
template <unsigned bytes>
static __device__ __forceinline__ void
load_tile (const Tile &tile, uint4 *chunks)
{
  const unsigned width = bytes == 1 ? 128 : 64, height = bytes <= 2 ? 128 : 64;
  const unsigned across = height * bytes / 16, down = bytes == 3 ? 16 : GPU_FLIP_BLOCK_X * GPU_FLIP_BLOCK_Y / across;
  const unsigned n = width / down, row_bytes = tile.height * bytes;
  const unsigned first = this_thread () / across, at = this_thread () % across;
  const uint8_t *src = tile_source (tile);
  const int64_t step = tile.plane.step_x;

  if ((bytes == 3 && first >= down) || 16 * at >= row_bytes)
    return;
  if (!(((unsigned)(uintptr_t)src | (unsigned)step | row_bytes) & 15)) {
    uint4 v[n];

    /* Beyond the last row the last one again: nothing has to be asked for each. */
#pragma unroll
    for (unsigned i = 0; i < n; i++)
      v[i] = *(const uint4 *)(src + 16 * at + min (first + i * down, tile.width - 1) * step);
#pragma unroll
    for (unsigned i = 0; i < n; i++) {
      const unsigned c = first + i * down;
      const unsigned order =
          bytes == 3 ? tile_order<bytes> (c) : tile_order<bytes> (first) ^ tile_order<bytes> (i * down);

      chunks[c * tile_pitch<bytes> + (at ^ order)] = v[i];
    }
    return;
  }

#pragma unroll 1
  for (unsigned c = first; c < tile.width; c += down) {
    const uint8_t *low = src + (int64_t)c * step;
    const GpuChunk chunk = gpu_load_part (low + 16 * at, low, low + row_bytes);

    chunks[c * tile_pitch<bytes> + (at ^ tile_order<bytes> (c))] =
        make_uint4 (chunk.word[0], chunk.word[1], chunk.word[2], chunk.word[3]);
  }
}

/* The first @n bytes of @chunk, less than 16, to @p, a multiple of 16. */
static __device__ __forceinline__ void
store_part (uint8_t *p, GpuChunk chunk, unsigned n)
{
  if (n & 8) {
    *(uint2 *)p = make_uint2 (chunk.word[0], chunk.word[1]);
    chunk.word[0] = chunk.word[2], chunk.word[1] = chunk.word[3];
    p += 8;
  }
  if (n & 4) {
    *(uint32_t *)p = chunk.word[0];
    chunk.word[0] = chunk.word[1];
    p += 4;
  }
  if (n & 2) {
    *(uint16_t *)p = (uint16_t)chunk.word[0];
    chunk.word[0] >>= 16;
    p += 2;
  }
  if (n & 1)
    *p = (uint8_t)chunk.word[0];
}

/* A chunk of each of four rows of the destination, the source's pixels @p and on, from byte @offset of the row on. */
static __device__ __forceinline__ void
store_rows (const Tile &tile, unsigned p, unsigned offset, unsigned row_bytes, const GpuChunk chunk[4])
{
  const int64_t down = is_upwards (tile.plane) ? -(int64_t)tile.plane.dst_stride : (int64_t)tile.plane.dst_stride;
  uint8_t *dst = tile_target (tile, row_of (tile, p), offset);

  if (offset + 16 <= row_bytes) {
#pragma unroll
    for (unsigned k = 0; k < 4; k++, dst += down)
      if (p + k < tile.height)
        gpu_store_chunk (dst, chunk[k]);
  } else {
#pragma unroll
    for (unsigned k = 0; k < 4; k++, dst += down)
      if (p + k < tile.height)
        store_part (dst, chunk[k], row_bytes - offset);
  }
}

/* A thread makes a chunk of each of four rows of the destination, whatever the pixels; here of four pixels in each of
 * four rows. */
static __device__ __forceinline__ void
turn_tile_4 (const Tile &tile, uint4 *chunks)
{
  const unsigned c = this_thread () % 16 * 4, at = this_thread () / 16;

  load_tile<4> (tile, chunks);
  __syncthreads ();
  if (c >= tile.width || 4 * at >= tile.height)
    return;

  uint4 in[4];
  GpuChunk out[4];
#pragma unroll
  for (unsigned i = 0; i < 4; i++)
    in[i] = chunks[(c + i) * tile_pitch<4> + (at ^ tile_order<4> (c))];
#pragma unroll
  for (unsigned i = 0; i < 4; i++)
    out[0].word[i] = in[i].x, out[1].word[i] = in[i].y, out[2].word[i] = in[i].z, out[3].word[i] = in[i].w;
  store_rows (tile, 4 * at, 4 * c, 4 * tile.width, out);
}

/* Four pixels are three words. A chunk has parts of six pixels. */
static __device__ __forceinline__ void
turn_tile_3 (const Tile &tile, uint4 *chunks)
{
  /* A warp makes 64 bytes of 32 rows. */
  const unsigned warp = threadIdx.y, lane = threadIdx.x;
  const unsigned at = warp % 3 * 4 + lane % 4, quad = warp / 3 * 8 + lane / 4;
  const unsigned c = 16 * at / 3, phase = at % 3;

  load_tile<3> (tile, chunks);
  __syncthreads ();
  if (quad >= 16 || c >= tile.width || 4 * quad >= tile.height)
    return;

  const uint32_t *words = (const uint32_t *)chunks + c * tile_pitch<3> * 4;
  uint32_t in[6][3];
  GpuChunk out[4];
#pragma unroll
  for (unsigned i = 0; i < 6; i++)
#pragma unroll
    for (unsigned k = 0; k < 3; k++)
      in[i][k] = words[i * tile_pitch<3> * 4 + ((3 * quad + k) ^ ((at + i / 5) % 4 * 8))];
#pragma unroll
  for (unsigned k = 0; k < 4; k++) {
    uint32_t v[6];

#pragma unroll
    for (unsigned i = 0; i < 6; i++)
      v[i] = k == 0   ? in[i][0]
             : k == 1 ? __funnelshift_r (in[i][0], in[i][1], 24)
             : k == 2 ? __funnelshift_r (in[i][1], in[i][2], 16)
                      : in[i][2] >> 8;
    const uint32_t r[5] = {__byte_perm (v[0], v[1], 0x4210), __byte_perm (v[1], v[2], 0x5421),
                           __byte_perm (v[2], v[3], 0x6542), __byte_perm (v[4], v[5], 0x4210), v[5] >> 8};
#pragma unroll
    for (unsigned i = 0; i < 4; i++)
      out[k].word[i] = __funnelshift_r (r[i], r[i + 1], 8 * phase);
  }
  store_rows (tile, 4 * quad, 16 * at, 3 * tile.width, out);
}

/* Eight rows of four pixels. */
static __device__ __forceinline__ void
turn_tile_2 (const Tile &tile, uint4 *chunks)
{
  const unsigned c = this_thread () % 8 * 8, quad = this_thread () / 8;

  load_tile<2> (tile, chunks);
  __syncthreads ();
  if (c >= tile.width || 4 * quad >= tile.height)
    return;

  const uint2 *pairs = (const uint2 *)(chunks + c * tile_pitch<2> + (quad / 2 ^ tile_order<2> (c))) + quad % 2;
  uint2 in[8];
  GpuChunk out[4];
#pragma unroll
  for (unsigned i = 0; i < 8; i++)
    in[i] = pairs[i * tile_pitch<2> * 2];
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    out[0].word[i] = __byte_perm (in[2 * i].x, in[2 * i + 1].x, 0x5410);
    out[1].word[i] = __byte_perm (in[2 * i].x, in[2 * i + 1].x, 0x7632);
    out[2].word[i] = __byte_perm (in[2 * i].y, in[2 * i + 1].y, 0x5410);
    out[3].word[i] = __byte_perm (in[2 * i].y, in[2 * i + 1].y, 0x7632);
  }
  store_rows (tile, 4 * quad, 2 * c, 2 * tile.width, out);
}

/* 16 rows of four pixels. */
static __device__ __forceinline__ void
turn_tile_1 (const Tile &tile, uint4 *chunks)
{
  const unsigned c = this_thread () % 8 * 16, quad = this_thread () / 8;

  load_tile<1> (tile, chunks);
  __syncthreads ();
  if (c >= tile.width || 4 * quad >= tile.height)
    return;

  const uint32_t *words = (const uint32_t *)(chunks + c * tile_pitch<1> + (quad / 4 ^ tile_order<1> (c))) + quad % 4;
  GpuChunk out[4];
#pragma unroll
  for (unsigned i = 0; i < 4; i++) {
    uint32_t in[4], turned[4];

#pragma unroll
    for (unsigned k = 0; k < 4; k++)
      in[k] = words[(4 * i + k) * tile_pitch<1> * 4];
    gpu_transpose_bytes (in, turned);
#pragma unroll
    for (unsigned k = 0; k < 4; k++)
      out[k].word[i] = turned[k];
  }
  store_rows (tile, 4 * quad, c, tile.width, out);
}

/* The edge of a tile at any address, in pixels. */
static constexpr unsigned any_tile = 64;

/* A tile whose rows begin anywhere in the destination: words are put together byte by byte. In shared memory rows are
 * an odd number of words, so that a column meets no bank twice. */
template <unsigned bytes>
static __device__ __forceinline__ void
turn_any_tile (const Tile &tile, uint32_t *words)
{
  const unsigned pitch = any_tile * bytes / 4 + 1;
  const uint8_t *src = tile_source (tile);
  const int64_t step = tile.plane.step_x;
  const unsigned src_low = (unsigned)(uintptr_t)src, src_step = (unsigned)step;

  for (unsigned t = this_thread (); t < tile.width * pitch; t += GPU_FLIP_BLOCK_X * GPU_FLIP_BLOCK_Y) {
    const unsigned column = t / pitch, word = t % pitch;
    const uint8_t *low = src + (int64_t)column * step;
    const uint8_t *high = low + tile.height * bytes;
    const uint8_t *p = low - ((src_low + column * src_step) & 3) + 4 * word;

    if (p < high)
      words[column * pitch + word] = gpu_load_word (p, low, high);
  }
  __syncthreads ();

  for (unsigned t = this_thread (); t < tile.height * pitch; t += GPU_FLIP_BLOCK_X * GPU_FLIP_BLOCK_Y) {
    const unsigned row = t / pitch, word = t % pitch;
    uint8_t *line = tile_target (tile, row, 0);
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

/* @turn for the tile of this block, if there is one: it returns for all threads then. */
template <bool in_lines, typename Turn>
static __device__ __forceinline__ void
with_tile (const GpuFlipArgs &args, Turn turn)
{
  const uint64_t n = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;

  if (n >= args.rows.total)
    return;
  const unsigned i = gpu_plane_of_row (args.rows, n);
  turn (args.plane[i].bytes, make_tile<in_lines> (args.plane[i], (uint32_t)(n - args.rows.first[i])));
}

static __device__ __forceinline__ void
run_flip_tiles (const GpuFlipArgs &args)
{
  __shared__ uint4 chunks[1024];

  with_tile<true> (args, [] (unsigned bytes, const Tile &tile) {
    if (bytes == 1)
      turn_tile_1 (tile, chunks);
    else if (bytes == 2)
      turn_tile_2 (tile, chunks);
    else if (bytes == 3)
      turn_tile_3 (tile, chunks);
    else
      turn_tile_4 (tile, chunks);
  });
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y, 6) gpu_flip_tiles (const __grid_constant__ GpuFlipArgs args)
{
  run_flip_tiles (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y, 6)
    gpu_flip_tiles_table (const __grid_constant__ GpuTable<GpuFlipArgs> table)
{
  gpu_with_table_args (table, [] (const GpuFlipArgs &args) { run_flip_tiles (args); });
}

/* At any address and stride. */
static __device__ __forceinline__ void
run_flip_any_tiles (const GpuFlipArgs &args)
{
  __shared__ uint32_t words[any_tile * (any_tile + 1)];

  with_tile<false> (args, [] (unsigned bytes, const Tile &tile) {
    if (bytes == 1)
      turn_any_tile<1> (tile, words);
    else if (bytes == 2)
      turn_any_tile<2> (tile, words);
    else if (bytes == 3)
      turn_any_tile<3> (tile, words);
    else
      turn_any_tile<4> (tile, words);
  });
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y) gpu_flip_any_tiles (const __grid_constant__ GpuFlipArgs args)
{
  run_flip_any_tiles (args);
}

extern "C" __global__ void
__launch_bounds__ (GPU_FLIP_BLOCK_X *GPU_FLIP_BLOCK_Y)
    gpu_flip_any_tiles_table (const __grid_constant__ GpuTable<GpuFlipArgs> table)
{
  run_flip_any_tiles (gpu_table_args (table));
}
