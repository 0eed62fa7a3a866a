/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling with filters on the GPU, in one launch. A block makes a tile of the destination: it brings the rows that it
 * needs of the source into shared memory, some at a time and each channel by itself, filters them to columns of bytes
 * there, and then the columns to pixels. Both passes are products of matrices, see resize-tile.h.
 */
#include "ptx.cuh"
#include "resize-groups.cuh"
#include "resize-tile.h"
#include "resize.cuh"
#include "table.cuh"

#define THREADS (32 * GPU_TILE_WARPS)

/* What a block has in shared memory. Arguments are there, too: they take no registers before they are needed. */
struct Tile {
  GpuTilePlane plane;
  GpuBlockGroups x;
  GpuBlockGroups y;
  uint32_t x_start[GPU_TILE_SIZE / GPU_GROUP_SIZE]; /* of each group */
  uint32_t y_start[GPU_TILE_SIZE / GPU_GROUP_SIZE];
  alignas (16) uint32_t words[GPU_TILE_WORDS]; /* columns first, then lines of the source */
};

/* What a thread reads at once of a row, in chunks of 16 bytes, and how many times before it looks at any of them. */
template <unsigned channels> struct Unit {
  static constexpr unsigned pixels = channels == 4 ? 4 : channels == 2 ? 8 : 16;
  static constexpr unsigned chunks = pixels * channels / 16;
  static constexpr unsigned at_once = channels == 3 ? 2 : channels == 1 ? 4 : 6;

  GpuChunk chunk[chunks];
};

static __device__ __forceinline__ void
store_two (uint32_t *p, uint32_t first, uint32_t second)
{
  *(uint2 *)p = make_uint2 (first, second);
}

/* Each channel of a unit to its lines, which lie @apart words from each other. */
template <unsigned channels, bool premultiplied>
static __device__ __forceinline__ void
store_unit (uint32_t *p, uint32_t apart, uint32_t alpha, const Unit<channels> &unit)
{
  if constexpr (channels == 1) {
    store_two (p, unit.chunk[0].word[0], unit.chunk[0].word[1]);
    store_two (p + 2, unit.chunk[0].word[2], unit.chunk[0].word[3]);
  } else if constexpr (channels == 2) {
    const uint32_t *in = unit.chunk[0].word;

    store_two (p, __byte_perm (in[0], in[1], 0x6420), __byte_perm (in[2], in[3], 0x6420));
    store_two (p + apart, __byte_perm (in[0], in[1], 0x7531), __byte_perm (in[2], in[3], 0x7531));
  } else if constexpr (channels == 3) {
    uint32_t in[12], out[3][4];

#pragma unroll
    for (unsigned i = 0; i < 12; i++)
      in[i] = unit.chunk[i / 4].word[i % 4];
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
      const uint32_t a = in[3 * i], b = in[3 * i + 1], c = in[3 * i + 2];

      out[0][i] = __byte_perm (__byte_perm (a, b, 0x0630), c, 0x5210);
      out[1][i] = __byte_perm (__byte_perm (a, b, 0x0741), c, 0x6210);
      out[2][i] = __byte_perm (__byte_perm (a, b, 0x0052), c, 0x7410);
    }
#pragma unroll
    for (unsigned c = 0; c < 3; c++) {
      store_two (p + c * apart, out[c][0], out[c][1]);
      store_two (p + c * apart + 2, out[c][2], out[c][3]);
    }
  } else {
    const uint32_t *in = unit.chunk[0].word;
    uint32_t out[4];

    if constexpr (premultiplied) {
      uint32_t sample[4][4];

#pragma unroll
      for (unsigned i = 0; i < 4; i++)
        premultiply_apart (in[i], alpha, sample[i]);
#pragma unroll
      for (unsigned c = 0; c < 4; c++)
        out[c] = __byte_perm (__byte_perm (sample[0][c], sample[1][c], 0x0062),
                              __byte_perm (sample[2][c], sample[3][c], 0x0062), 0x5410);
    } else {
      gpu_transpose_bytes (in, out);
    }
#pragma unroll
    for (unsigned c = 0; c < 4; c++)
      p[c * apart] = out[c];
  }
}

/* Which row the @i-th unit is in, of rows of @n units, without a division for each: exact for as few as fit shared
 * memory. */
struct Division {
  uint32_t reciprocal;
};

static __device__ __forceinline__ Division
divide_by (uint32_t n)
{
  return Division{((1u << 20) + n - 1) / n};
}

static __device__ __forceinline__ uint32_t
row_of (const Division &division, uint32_t i)
{
  return i * division.reciprocal >> 20;
}

/* The first @n units of each of @rows rows from row @y on, where all of these are there, at multiples of 16 bytes. Of
 * unit i the first chunk is i units after that of unit 0, and what a row is longer than n units further on for each
 * row. */
template <unsigned channels, bool premultiplied>
static __device__ __forceinline__ void
stage_units (Tile &tile, uint32_t y, uint32_t rows, uint32_t n)
{
  using Part = Unit<channels>;
  constexpr unsigned unit_bytes = 16 * Part::chunks, unit_words = Part::pixels / 4;
  const GpuTilePlane &plane = tile.plane;
  const uint32_t alpha = plane.alpha, apart = plane.chunk * plane.line_words, total = n * rows;
  const uint32_t src_skip = (uint32_t)plane.src_stride - n * unit_bytes, skip = plane.line_words - n * unit_words;
  const Division division = divide_by (n);
  uint32_t t = threadIdx.y * 32 + threadIdx.x;
  const uint8_t *src = plane.src + y * plane.src_stride + tile.x.start * channels + t * unit_bytes;
  uint32_t *lines = tile.words + GPU_TILE_SIZE * channels * plane.column_words + t * unit_words;

#pragma unroll 1
  while (t < total) {
    Part part[Part::at_once];
    uint32_t row[Part::at_once];

#pragma unroll
    for (unsigned i = 0; i < Part::at_once; i++)
      if (t + i * THREADS < total) {
        row[i] = row_of (division, t + i * THREADS);
#pragma unroll
        for (unsigned k = 0; k < Part::chunks; k++) {
          const uint4 v = __ldg ((const uint4 *)(src + (row[i] * src_skip + i * THREADS * unit_bytes)) + k);

          part[i].chunk[k] = GpuChunk{{v.x, v.y, v.z, v.w}};
        }
      }
#pragma unroll
    for (unsigned i = 0; i < Part::at_once; i++)
      if (t + i * THREADS < total)
        store_unit<channels, premultiplied> (lines + (row[i] * skip + i * THREADS * unit_words), apart, alpha, part[i]);
    t += Part::at_once * THREADS;
    src += Part::at_once * THREADS * unit_bytes;
    lines += Part::at_once * THREADS * unit_words;
  }
}

/* Units @first to @end - 1 of rows, wherever they lie; what is not there becomes zeros. */
template <unsigned channels>
static __device__ __forceinline__ void
stage_others (Tile &tile, uint32_t y, uint32_t rows, uint32_t first, uint32_t end)
{
  using Part = Unit<channels>;
  const GpuTilePlane &plane = tile.plane;
  const uint32_t apart = plane.chunk * plane.line_words, n = end - first;
  const Division division = divide_by (n);
  uint32_t *lines = tile.words + GPU_TILE_SIZE * channels * plane.column_words;

#pragma unroll 1
  for (uint32_t t = threadIdx.y * 32 + threadIdx.x; t < n * rows; t += THREADS) {
    const uint32_t row = row_of (division, t), unit = first + t - row * n;
    const uint8_t *low = plane.src + (y + row) * plane.src_stride, *high = low + (uint64_t)plane.src_width * channels;
    const uint8_t *src = low + ((uint64_t)tile.x.start + unit * Part::pixels) * channels;
    Part part;

#pragma unroll
    for (unsigned k = 0; k < Part::chunks; k++)
      part.chunk[k] = src + 16 * k < high ? gpu_load_part (src + 16 * k, low, high) : GpuChunk{};
    if (channels == 4 && plane.alpha < 4)
      store_unit<channels, channels == 4> (lines + row * plane.line_words + unit * (Part::pixels / 4), apart,
                                           plane.alpha, part);
    else
      store_unit<channels, false> (lines + row * plane.line_words + unit * (Part::pixels / 4), apart, 4, part);
  }
}

/* What a tile needs of @rows rows from row @y on, to lines. */
template <unsigned channels>
static __device__ __forceinline__ void
stage_rows (Tile &tile, uint32_t y, uint32_t rows)
{
  const GpuTilePlane &plane = tile.plane;
  const uint32_t pixels = Unit<channels>::pixels, units = (tile.x.end - tile.x.start + pixels - 1) / pixels;
  const uint32_t whole = plane.src_aligned ? min (units, (plane.src_width - tile.x.start) / pixels) : 0;

  if (whole && channels == 4 && plane.alpha < 4)
    stage_units<channels, channels == 4> (tile, y, rows, whole);
  else if (whole)
    stage_units<channels, false> (tile, y, rows, whole);
  if (whole < units)
    stage_others<channels> (tile, y, rows, whole, units);
}

/* Of a warp: sums of two sets of lines for a group's samples, with each digit of the weights. */
struct Sums {
  int32_t set[2][GPU_GROUP_DIGITS][4];
};

/* Where two sets of lines lie: of this lane the first word of its first line, and in words how far the other line, and
 * the other set, are from there. */
struct Lines {
  const uint32_t *first;
  uint32_t beside;
  uint32_t apart;
};

/* A group's weights, as one lane has them: those of the first step are read once for many lines. */
struct Weights {
  uint2 digit[GPU_GROUP_DIGITS];
  const uint2 *next;
  uint32_t steps;
};

static __device__ __forceinline__ void
load_step (uint2 digit[GPU_GROUP_DIGITS], const uint2 *weights)
{
#pragma unroll
  for (unsigned d = 0; d < GPU_GROUP_DIGITS; d++)
    digit[d] = __ldg (weights + 32 * d);
}

static __device__ __forceinline__ Weights
load_weights (const GpuGroupAxis &axis, uint32_t group)
{
  const uint2 *first =
      (const uint2 *)axis.weights + (group - axis.first) * axis.steps * (GPU_GROUP_STEP_WORDS / 2) + threadIdx.x;
  Weights weights;

  load_step (weights.digit, first);
  weights.next = first + GPU_GROUP_STEP_WORDS / 2;
  weights.steps = axis.steps;
  return weights;
}

/* Adds what a step brings. The second set is left out unless @both. */
template <bool begin>
static __device__ __forceinline__ void
add_step (Sums &sums, const uint32_t *first, const Lines &lines, bool both, const uint2 digit[GPU_GROUP_DIGITS])
{
  /* The lowest digit's sum begins with what rounds. */
  const int32_t half = 1 << (GPU_GROUP_BITS - 1), rounding[4] = {half, half, half, half}, zero[4] = {};

#pragma unroll
  for (unsigned i = 0; i < 2; i++) {
    if (i && !both)
      break;
    const uint32_t *p = first + i * lines.apart;
    const uint32_t samples[4] = {p[0], p[lines.beside], p[4], p[lines.beside + 4]};

#pragma unroll
    for (unsigned d = 0; d < GPU_GROUP_DIGITS; d++)
      gpu_multiply_lines (sums.set[i][d], samples, digit[d], !begin ? sums.set[i][d] : d ? zero : rounding);
  }
}

static __device__ __forceinline__ Sums
add_steps (const Lines &lines, bool both, const Weights &weights)
{
  Sums sums;

  add_step<true> (sums, lines.first, lines, both, weights.digit);
  if (weights.steps > 1) {
    const uint32_t *first = lines.first;
    const uint2 *next = weights.next;

#pragma unroll 1
    for (uint32_t step = 1; step < weights.steps; step++, next += GPU_GROUP_STEP_WORDS / 2) {
      uint2 digit[GPU_GROUP_DIGITS];

      first += GPU_GROUP_STEP / 4;
      load_step (digit, next);
      add_step<false> (sums, first, lines, both, digit);
    }
  }
  return sums;
}

/* From lines, as many times GPU_GROUP_LINES as @n, to columns: of line i byte @y + i of a column. A warp has a group,
 * which begins with sample @start of the lines, and of which it takes two channels at a time, or of a single channel
 * twice as many lines; its lanes that have sums of lines 2 k have those of 2 k + 1, too. */
template <unsigned channels>
static __device__ __forceinline__ void
filter_lines (Tile &tile, uint32_t y, uint32_t n, uint32_t start, const Weights &weights)
{
  const GpuTilePlane &plane = tile.plane;
  constexpr unsigned parts = channels == 1 ? 2 : 1;
  const uint32_t shift = plane.tile_shift, column = threadIdx.y & ((1u << shift) - 1);
  const uint32_t line_words = plane.line_words, channel_words = plane.chunk * line_words;
  const uint32_t column_bytes = 4 * plane.column_words,
                 apart = parts > 1 ? GPU_GROUP_LINES * line_words : channel_words;
  const uint32_t out_apart = parts > 1 ? GPU_GROUP_LINES : GPU_TILE_SIZE * column_bytes;
  /* Of the warps that have the same group each takes another part. */
  const uint32_t first_part = (threadIdx.y >> shift) * parts, step = (GPU_TILE_WARPS >> shift) * parts;
  const uint32_t *line = tile.words + GPU_TILE_SIZE * channels * plane.column_words +
                         (first_part * GPU_GROUP_LINES + threadIdx.x / 4 * 2) * line_words + start / 4 +
                         threadIdx.x % 4;
  uint8_t *out = (uint8_t *)tile.words + (column * GPU_GROUP_SIZE + threadIdx.x % 4 * 2) * column_bytes + y +
                 first_part * GPU_GROUP_LINES + threadIdx.x / 4 * 2;

#pragma unroll
  for (unsigned channel = 0; channel < channels; channel += 2) {
    const uint32_t *lines = line + channel * channel_words;
    uint8_t *columns = out + channel * GPU_TILE_SIZE * column_bytes;

#pragma unroll 1
    for (uint32_t part = first_part; part < n; part += step) {
      const bool both = parts > 1 ? part + 1 < n : channel + 1 < channels;
      const Sums sums = add_steps (Lines{lines, line_words, apart}, both, weights);

#pragma unroll
      for (unsigned i = 0; i < 2; i++) {
        const int32_t (*sum)[4] = sums.set[i];
        uint8_t *p = columns + i * out_apart;

        if (i && !both)
          break;
        *(uint16_t *)p = (uint16_t)gpu_pack_saturated (gpu_group_sample (sum, 0), gpu_group_sample (sum, 2), 0);
        *(uint16_t *)(p + column_bytes) =
            (uint16_t)gpu_pack_saturated (gpu_group_sample (sum, 1), gpu_group_sample (sum, 3), 0);
      }
      lines += step * GPU_GROUP_LINES * line_words;
      columns += step * GPU_GROUP_LINES;
    }
  }
}

/* Whether the weights of columns are read before they are needed: of a single channel, for which a block has the least
 * else to do meanwhile, and registers are enough. */
template <unsigned channels> constexpr bool reads_early = channels == 1;

/* Of the group of rows @group what a lane makes: four pixels from column @column on, of two rows. */
template <unsigned channels>
static __device__ __forceinline__ void
filter_columns (const Tile &tile, uint32_t group, unsigned column, const Weights &early,
                uint32_t pixel[2][GPU_RESIZE_PIXELS])
{
  const GpuTilePlane &plane = tile.plane;
  const uint32_t words = plane.column_words, channel_words = GPU_TILE_SIZE * words;
  const Weights weights = reads_early<channels> ? early : load_weights (plane.y, group);
  const uint32_t start = tile.y_start[group - tile.y.first] - tile.y.start;
  const uint32_t *p = tile.words + column * words + start / 4 + threadIdx.x % 4;

  if constexpr (channels == 1) {
    const Sums sums = add_steps (Lines{p, words, 2 * words}, true, weights);

#pragma unroll
    for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
#pragma unroll
      for (unsigned r = 0; r < 2; r++)
        pixel[r][k] = gpu_pack_saturated (gpu_group_sample (sums.set[k / 2], k % 2 * 2 + r), 0, 0);
  } else {
    /* The upper two channels first, onto which the lower two are packed. */
#pragma unroll
    for (unsigned channel = (channels - 1) / 2 * 2; channel < channels; channel -= 2)
#pragma unroll
      for (unsigned half = 0; half < 2; half++) {
        const Lines lines = {p + 2 * half * words + channel * channel_words, words, channel_words};
        const bool both = channel + 1 < channels;
        const Sums sums = add_steps (lines, both, weights);

#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
          uint32_t &out = pixel[i % 2][2 * half + i / 2];

          out =
              gpu_pack_saturated (gpu_group_sample (sums.set[0], i), both ? gpu_group_sample (sums.set[1], i) : 0, out);
        }
      }
    if (channels > 3 && plane.alpha < 4)
#pragma unroll
      for (unsigned i = 0; i < 2 * GPU_RESIZE_PIXELS; i++)
        pixel[i / 4][i % 4] = unpremultiply (pixel[i / 4][i % 4], plane.alpha);
  }
}

/* From columns to the destination, and its border. A warp makes one group of rows at most. */
template <unsigned channels>
static __device__ __forceinline__ void
write_tile (const Tile &tile, const Weights &early)
{
  const GpuTilePlane &plane = tile.plane;
  const unsigned column = threadIdx.x / 4 * GPU_RESIZE_PIXELS;
  const uint32_t x = tile.x.first * GPU_GROUP_SIZE + column;
  static_assert (GPU_TILE_SIZE == GPU_TILE_WARPS * GPU_GROUP_SIZE, "as many warps as groups of rows");
  const bool exists = column < GPU_GROUP_SIZE << plane.tile_shift && x < plane.width;

  for (uint32_t row = threadIdx.y; row < plane.tile_height / GPU_GROUP_SIZE; row += GPU_TILE_WARPS) {
    const uint32_t group = tile.y.first + row, y = group * GPU_GROUP_SIZE + threadIdx.x % 4 * 2;
    uint32_t pixel[2][GPU_RESIZE_PIXELS] = {};

    if (tile.x.high && group >= tile.y.low && group < tile.y.high)
      filter_columns<channels> (tile, group, column, early, pixel);
#pragma unroll
    for (unsigned r = 0; r < 2; r++) {
      const bool in_part = y + r - plane.top < plane.part_height;

#pragma unroll
      for (unsigned k = 0; k < GPU_RESIZE_PIXELS; k++)
        if (!in_part || x + k - plane.left >= plane.part_width)
          pixel[r][k] = plane.border;
      if (exists && y + r < plane.height)
        store_pixels<channels> (plane.dst + (y + r) * plane.dst_stride + (uint64_t)x * channels, pixel[r],
                                min (GPU_RESIZE_PIXELS, plane.width - x), plane.dst_aligned);
    }
  }
}

template <unsigned channels>
static __device__ __forceinline__ void
make_tile (Tile &tile)
{
  Weights early = {};

  if (tile.x.high && tile.y.high) {
    const GpuTilePlane &plane = tile.plane;
    const uint32_t column = threadIdx.y & ((1u << plane.tile_shift) - 1), group = tile.x.first + column;
    const bool has_group = group >= tile.x.low && group < tile.x.high;
    const Weights weights = load_weights (plane.x, has_group ? group : tile.x.low);
    const uint32_t start = tile.x_start[column] - tile.x.start;

    if (reads_early<channels>)
      early = load_weights (plane.y, min (max (tile.y.first + threadIdx.y, tile.y.low), tile.y.high - 1));

#pragma unroll 1
    for (uint32_t y = tile.y.start; y < tile.y.end; y += plane.chunk) {
      const uint32_t rows = min (plane.chunk, tile.y.end - y);

      stage_rows<channels> (tile, y, rows);
      __syncthreads ();
      if (has_group)
        filter_lines<channels> (tile, y - tile.y.start, (rows - 1) / GPU_GROUP_LINES + 1, start, weights);
      __syncthreads ();
    }
  }
  write_tile<channels> (tile, early);
}

static __device__ __forceinline__ void
run_resize_filter_tiles (const GpuTileArgs &args)
{
  static_assert (sizeof (GpuTilePlane) % 4 == 0 && sizeof (GpuTilePlane) / 4 <= THREADS, "a thread copies one word");
  static_assert (GPU_TILE_WARPS == 4, "four warps share what comes first");
  __shared__ Tile tile;
  const unsigned thread = threadIdx.y * 32 + threadIdx.x, i = gpu_plane_of_row (args.rows, blockIdx.y);
  const GpuTilePlane &plane = args.plane[i];

  if (blockIdx.y >= args.rows.total || blockIdx.x * (GPU_GROUP_SIZE << plane.tile_shift) >= plane.width)
    return;
  if (thread < sizeof plane / 4)
    ((uint32_t *)&tile.plane)[thread] = ((const uint32_t *)&plane)[thread];
  /* Different warps, of which none waits for what another one reads. */
  const uint32_t columns = 1u << plane.tile_shift, rows = plane.tile_height / GPU_GROUP_SIZE;
  const uint32_t x = blockIdx.x * columns, y = (uint32_t)(blockIdx.y - args.rows.first[i]) * rows;

  if (threadIdx.y == 3 && threadIdx.x == 0) {
    GpuBlockGroups groups = gpu_make_groups (plane.x, x, columns);

    groups.start &= ~(gpu_tile_unit (plane.bytes) - 1);
    tile.x = groups;
  } else if (threadIdx.y == 2 && threadIdx.x == 0) {
    tile.y = gpu_make_groups (plane.y, y, rows);
  } else if (threadIdx.y == 1 && threadIdx.x < columns) {
    tile.x_start[threadIdx.x] = gpu_group_start (plane.x, x + threadIdx.x);
  } else if (threadIdx.y == 0 && threadIdx.x < rows) {
    tile.y_start[threadIdx.x] = gpu_group_start (plane.y, y + threadIdx.x);
  }
  __syncthreads ();

  if (tile.plane.bytes == 1)
    make_tile<1> (tile);
  else if (tile.plane.bytes == 2)
    make_tile<2> (tile);
  else if (tile.plane.bytes == 3)
    make_tile<3> (tile);
  else
    make_tile<4> (tile);
}

extern "C" __global__ void
__launch_bounds__ (THREADS, 5) gpu_resize_filter_tiles (const __grid_constant__ GpuTileArgs args)
{
  run_resize_filter_tiles (args);
}

extern "C" __global__ void
__launch_bounds__ (THREADS, 5) gpu_resize_filter_tiles_table (const __grid_constant__ GpuTable<GpuTileArgs> table)
{
  run_resize_filter_tiles (gpu_table_args (table));
}
