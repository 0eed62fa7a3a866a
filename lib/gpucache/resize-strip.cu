/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling with filters on the GPU, in one launch, of pictures that shrink by much. A block makes a strip of the
 * destination, narrow and high: it walks down the rows of the source that this needs, brings some of them into shared
 * memory as they are while it filters those before to columns of bytes, and at the end the columns to rows. Both passes
 * are products of matrices, see resize-groups.h. Each warp filters rows for a group of its own, whose weights stay in
 * registers.
 */
#include "ptx.cuh"
#include "resize-groups.cuh"
#include "resize-strip.h"
#include "resize.cuh"
#include "table.cuh"

#define THREADS (32 * GPU_STRIP_WARPS)

/* What a block has in shared memory. Arguments are there, too: they take no registers before they are needed. */
template <unsigned size> struct Strip {
  GpuStripPlane plane;
  GpuBlockGroups x;
  GpuBlockGroups y;
  uint32_t x_start[GPU_STRIP_WARPS]; /* of each group */
  uint32_t y_start[GPU_STRIP_HEIGHT / GPU_GROUP_SIZE];
  alignas (16) uint8_t bytes[size]; /* columns first, then lines of the source */
};

/* From column 4 i of the strip to 4 i + 1. A lane makes four columns, one after the other, from two products that have
 * 8 lines each: so each fourth column is beside the next one, and 8 of them lie in different banks. What is written at
 * once, each second column of two of these parts, does, too, with the gap between the parts. */
static __device__ __forceinline__ uint32_t
columns_part (const GpuStripPlane &plane)
{
  return GPU_STRIP_WIDTH / 4 * plane.column_bytes + GPU_STRIP_GAP;
}

/* Column @x, a byte for each row. */
template <unsigned size>
static __device__ __forceinline__ uint8_t *
column_of (Strip<size> &strip, uint32_t x)
{
  return strip.bytes + x % 4 * columns_part (strip.plane) + x / 4 * strip.plane.column_bytes;
}

/* What a thread brings: the same bytes of some rows. */
struct Loader {
  const uint8_t *src; /* in the first of its rows */
  uint8_t *line;      /* where that goes */
  uint32_t n;         /* how many bytes of a row there are, 16 at most */
  uint32_t before;    /* of the row, before these */
  uint32_t first;     /* row, */
  uint32_t step;      /* from one to the next */
};

template <unsigned size>
static __device__ __forceinline__ Loader
make_loader (const Strip<size> &strip, uint8_t *lines)
{
  const GpuStripPlane &plane = strip.plane;
  const uint32_t thread = threadIdx.y * 32 + threadIdx.x, first = thread / plane.units;
  const uint32_t offset = (thread - first * plane.units) * GPU_STRIP_UNIT, from = strip.x.start + offset;
  Loader loader;

  loader.src = plane.src + from + (uint64_t)(strip.y.start + first) * plane.src_stride;
  loader.line = lines + first * plane.line_bytes + offset;
  loader.n = from < min (strip.x.end, plane.src_width) ? min (GPU_STRIP_UNIT, plane.src_width - from) : 0;
  loader.before = from;
  loader.first = first;
  loader.step = THREADS / plane.units;
  /* Threads that are left over. */
  if (first == loader.step)
    loader.n = 0;
  return loader;
}

/* A row's last bytes, @n, at a multiple of 16, and zeros up to 16. */
static __device__ __forceinline__ void
copy_end (uint8_t *line, const uint8_t *src, uint32_t n)
{
#pragma unroll
  for (unsigned i = 0; i < GPU_STRIP_UNIT; i += 4)
    if (i + 4 <= n)
      gpu_copy_word_async (line + i, src + i);
    else
      *(uint32_t *)(line + i) = i < n ? gpu_load_word (src + i, src, src + n) : 0;
}

/* Sends for @rows rows from those on that @loader is at, and for no more. */
static __device__ __forceinline__ void
load_rows (const GpuStripPlane &plane, const Loader &loader, int32_t away, uint32_t rows)
{
  const uint32_t line_step = loader.step * plane.line_bytes;
  const uint8_t *src = loader.src;
  uint8_t *line = loader.line + away;

  if (!loader.n)
    return;
  if (plane.src_aligned) {
    const uint32_t src_step = loader.step * (uint32_t)plane.src_stride;

    if (loader.n < GPU_STRIP_UNIT) {
#pragma unroll 1
      for (uint32_t i = loader.first; i < rows; i += loader.step, src += src_step, line += line_step)
        copy_end (line, src, loader.n);
      return;
    }
#pragma unroll 4
    for (uint32_t i = loader.first; i < rows; i += loader.step, src += src_step, line += line_step)
      gpu_copy_async (line, src);
    return;
  }
#pragma unroll 1
  for (uint32_t i = loader.first; i < rows; i += loader.step, line += line_step) {
    const uint8_t *low = src - loader.before;

    gpu_store_chunk (line, gpu_load_part (src, low, low + plane.src_width));
    src += loader.step * plane.src_stride;
  }
}

/* What this thread brought of @rows lines, multiplied by alpha. */
static __device__ __forceinline__ void
premultiply_rows (const GpuStripPlane &plane, const Loader &loader, uint32_t rows)
{
  const uint32_t alpha = plane.alpha, line_step = loader.step * plane.line_bytes;
  uint8_t *line = loader.line;

  if (!loader.n)
    return;
  if (alpha == 3) {
#pragma unroll 2
    for (uint32_t i = loader.first; i < rows; i += loader.step, line += line_step) {
      const uint4 v = *(const uint4 *)line;

      *(uint4 *)line =
          make_uint4 (premultiply_last (v.x), premultiply_last (v.y), premultiply_last (v.z), premultiply_last (v.w));
    }
    return;
  }
#pragma unroll 1
  for (uint32_t i = loader.first; i < rows; i += loader.step, line += line_step) {
    const uint4 v = *(const uint4 *)line;

    *(uint4 *)line = make_uint4 (premultiply (v.x, alpha), premultiply (v.y, alpha), premultiply (v.z, alpha),
                                 premultiply (v.w, alpha));
  }
}

/* Of a warp: sums of a set of lines for a group's samples, with each digit of the weights. */
struct Sums {
  int32_t digit[GPU_GROUP_DIGITS][4];
};

/* A group's weights for a step, as one lane has them. */
struct Weights {
  uint2 digit[GPU_GROUP_DIGITS];
};

static __device__ __forceinline__ const uint2 *
weights_of (const GpuGroupAxis &axis, uint32_t group)
{
  return (const uint2 *)axis.weights + (group - axis.first) * axis.steps * (GPU_GROUP_STEP_WORDS / 2) + threadIdx.x;
}

static __device__ __forceinline__ void
load_weights (Weights &weights, const uint2 *p)
{
#pragma unroll
  for (unsigned d = 0; d < GPU_GROUP_DIGITS; d++)
    weights.digit[d] = __ldg (p + 32 * d);
}

/* Adds what a step brings, or begins with it: then the lowest digit's sum begins with what rounds. */
template <bool begin>
static __device__ __forceinline__ void
add_step (Sums &sums, const uint8_t *lines, const Weights &weights)
{
  const int32_t half = 1 << (GPU_GROUP_BITS - 1), rounding[4] = {half, half, half, half}, zero[4] = {};
  uint32_t samples[4];

  gpu_load_lines (samples, lines);
#pragma unroll
  for (unsigned d = 0; d < GPU_GROUP_DIGITS; d++)
    gpu_multiply_lines (sums.digit[d], samples, weights.digit[d], !begin ? sums.digit[d] : d ? zero : rounding);
}

/* From rows to columns: the warp's group. A lane has sums of lines k and k + 8 of 16, which lie side by side in
 * columns: weights of columns are in this order, too. */
template <unsigned steps, unsigned size>
static __device__ __forceinline__ void
filter_rows (Strip<size> &strip)
{
  const GpuStripPlane &plane = strip.plane;
  uint8_t *lines = strip.bytes + gpu_strip_columns_bytes (plane.column_bytes);
  const uint32_t chunk = plane.chunk, part_bytes = GPU_GROUP_LINES * plane.line_bytes, part = columns_part (plane);
  const uint64_t chunk_stride = chunk * plane.src_stride;
  Loader loader = make_loader (strip, lines);
  uint32_t left = strip.y.end - strip.y.start;
  int32_t away = (int32_t)plane.apart;

  load_rows (plane, loader, 0, min (chunk, left));
  gpu_end_copies ();

  const uint32_t own = strip.x.first + threadIdx.y, group = min (max (own, strip.x.low), strip.x.high - 1);
  const uint2 *next = weights_of (plane.x, group);
  const uint8_t *line = lines + threadIdx.x % 16 * plane.line_bytes + threadIdx.x / 16 * GPU_STRIP_UNIT +
                        (strip.x_start[threadIdx.y] - strip.x.start);
  uint8_t *column = column_of (strip, threadIdx.y * GPU_GROUP_SIZE + threadIdx.x % 4 * 2) + threadIdx.x / 4 * 2;
  Weights weights[steps];
#pragma unroll
  for (unsigned k = 0; k < steps; k++)
    load_weights (weights[k], next + k * (GPU_GROUP_STEP_WORDS / 2));

#pragma unroll 1
  while (left) {
    const uint32_t rows = min (chunk, left);

    left -= rows;
    loader.src += chunk_stride;
    if (left)
      load_rows (plane, loader, away, min (chunk, left));
    gpu_end_copies ();
    gpu_wait_for_copies ();
    if (plane.alpha < 4)
      premultiply_rows (plane, loader, rows);
    __syncthreads ();
    if (own == group) {
      const uint8_t *p = line;

#pragma unroll 1
      for (uint32_t i = 0; i < rows; i += GPU_GROUP_LINES, p += part_bytes, column += GPU_GROUP_LINES) {
        Sums sums;

        add_step<true> (sums, p, weights[0]);
#pragma unroll
        for (unsigned k = 1; k < steps; k++)
          add_step<false> (sums, p + k * GPU_GROUP_STEP, weights[k]);
        *(uint16_t *)column =
            (uint16_t)gpu_pack_saturated (gpu_group_sample (sums.digit, 0), gpu_group_sample (sums.digit, 2), 0);
        *(uint16_t *)(column + part) =
            (uint16_t)gpu_pack_saturated (gpu_group_sample (sums.digit, 1), gpu_group_sample (sums.digit, 3), 0);
      }
    }
    __syncthreads ();
    loader.line += away;
    line += away;
    away = -away;
  }
}

/* Four bytes of the border, from byte @x of a row on. */
static __device__ __forceinline__ uint32_t
border_word (const GpuStripPlane &plane, uint32_t x)
{
  const uint32_t rest = x % 3, turned = rest == 0 ? 0x0210 : rest == 1 ? 0x1021 : 0x2102;

  return __byte_perm (plane.border, 0,
                      plane.bytes == 1   ? 0x0000
                      : plane.bytes == 2 ? 0x1010
                      : plane.bytes == 3 ? turned
                                         : 0x3210);
}

/* Four bytes to byte @x of row @y, as far as these are there, with the border where it is. */
static __device__ __forceinline__ void
store_word (const GpuStripPlane &plane, uint32_t x, uint32_t y, uint32_t word)
{
  const uint32_t border = border_word (plane, x);
  const bool in_part = y - plane.top < plane.part_height;
  uint8_t *p = plane.dst + y * plane.dst_stride + x;

  if (y >= plane.height)
    return;
#pragma unroll 1
  for (unsigned i = 0; i < 4 && x + i < plane.width; i++) {
    const uint32_t from = in_part && x + i - plane.left < plane.part_width ? word : border;

    p[i] = (uint8_t)gpu_byte (from, i);
  }
}

/* Whether all of the strip is of the part, and can be written in words. */
template <unsigned size>
static __device__ __forceinline__ bool
is_whole (const Strip<size> &strip)
{
  const GpuStripPlane &plane = strip.plane;
  const uint32_t x = strip.x.first * GPU_GROUP_SIZE, y = strip.y.first * GPU_GROUP_SIZE;

  return plane.dst_aligned && x >= plane.left && y >= plane.top &&
         x + GPU_STRIP_WIDTH <= plane.left + plane.part_width &&
         y + plane.strip_height <= plane.top + plane.part_height;
}

/* From columns to the destination, and its border. A warp has a group of rows at a time, of which a lane makes four
 * bytes of two rows. */
template <unsigned size>
static __device__ __forceinline__ void
write_strip (const Strip<size> &strip)
{
  const GpuStripPlane &plane = strip.plane;
  const uint32_t part = columns_part (plane), x = strip.x.first * GPU_GROUP_SIZE + threadIdx.x / 4 * 4;
  const uint8_t *columns = strip.bytes + threadIdx.x / 8 % 2 * part + threadIdx.x % 8 * plane.column_bytes +
                           threadIdx.x / 16 * GPU_STRIP_UNIT;
  const uint64_t dst_stride = plane.dst_stride;
  const bool whole = is_whole (strip);
  uint32_t y = (strip.y.first + threadIdx.y) * GPU_GROUP_SIZE + threadIdx.x % 4 * 2;
  uint8_t *dst = plane.dst + y * dst_stride + x;

#pragma unroll 1
  for (uint32_t i = threadIdx.y; i < plane.strip_height / GPU_GROUP_SIZE; i += GPU_STRIP_WARPS) {
    const uint32_t group = strip.y.first + i;
    uint32_t word[2] = {};

    if (strip.x.high && group >= strip.y.low && group < strip.y.high) {
      const uint2 *next = weights_of (plane.y, group);
      const uint8_t *p = columns + (strip.y_start[i] - strip.y.start);
      Sums low, high;
      Weights weights;

      load_weights (weights, next);
      add_step<true> (low, p, weights);
      add_step<true> (high, p + 2 * part, weights);
#pragma unroll 1
      for (uint32_t k = 1; k < plane.y.steps; k++) {
        p += GPU_GROUP_STEP;
        next += GPU_GROUP_STEP_WORDS / 2;
        load_weights (weights, next);
        add_step<false> (low, p, weights);
        add_step<false> (high, p + 2 * part, weights);
      }
#pragma unroll
      for (unsigned r = 0; r < 2; r++) {
        const uint32_t above =
            gpu_pack_saturated (gpu_group_sample (high.digit, r), gpu_group_sample (high.digit, 2 + r), 0);

        word[r] = gpu_pack_saturated (gpu_group_sample (low.digit, r), gpu_group_sample (low.digit, 2 + r), above);
      }
      if (plane.alpha < 4)
#pragma unroll
        for (unsigned r = 0; r < 2; r++)
          word[r] = unpremultiply (word[r], plane.alpha);
    }
    if (whole) {
      *(uint32_t *)dst = word[0];
      *(uint32_t *)(dst + dst_stride) = word[1];
    } else {
      store_word (plane, x, y, word[0]);
      store_word (plane, x, y + 1, word[1]);
    }
    dst += GPU_STRIP_WARPS * GPU_GROUP_SIZE * dst_stride;
    y += GPU_STRIP_WARPS * GPU_GROUP_SIZE;
  }
}

/* With weights of as many steps as groups have, which are @steps or more, and @most at most. */
template <unsigned steps, unsigned most, unsigned size>
static __device__ __forceinline__ void
filter_strip (Strip<size> &strip)
{
  if constexpr (steps == most) {
    filter_rows<steps> (strip);
  } else {
    if (strip.plane.x.steps == steps)
      filter_rows<steps> (strip);
    else
      filter_strip<steps + 1, most> (strip);
  }
}

template <unsigned most, unsigned size>
static __device__ __forceinline__ void
run_resize_filter_strips (const GpuStripArgs &args)
{
  static_assert (sizeof (GpuStripPlane) % 4 == 0 && sizeof (GpuStripPlane) / 4 <= THREADS, "a thread copies one word");
  static_assert (GPU_STRIP_WARPS == 4, "four warps share what comes first");
  __shared__ Strip<size> strip;
  const unsigned thread = threadIdx.y * 32 + threadIdx.x, i = gpu_plane_of_row (args.rows, blockIdx.y);
  const GpuStripPlane &plane = args.plane[i];

  if (blockIdx.y >= args.rows.total || blockIdx.x * GPU_STRIP_WIDTH >= plane.width)
    return;
  if (thread < sizeof plane / 4)
    ((uint32_t *)&strip.plane)[thread] = ((const uint32_t *)&plane)[thread];
  /* Different warps, of which none waits for what another one reads. */
  const uint32_t rows = plane.strip_height / GPU_GROUP_SIZE;
  const uint32_t x = blockIdx.x * GPU_STRIP_WARPS, y = (uint32_t)(blockIdx.y - args.rows.first[i]) * rows;

  if (threadIdx.y == 3 && threadIdx.x == 0)
    strip.x = gpu_make_groups (plane.x, x, GPU_STRIP_WARPS);
  else if (threadIdx.y == 2 && threadIdx.x == 0)
    strip.y = gpu_make_groups (plane.y, y, rows);
  else if (threadIdx.y == 1 && threadIdx.x < GPU_STRIP_WARPS)
    strip.x_start[threadIdx.x] = gpu_group_start (plane.x, x + threadIdx.x);
  else if (threadIdx.y == 0 && threadIdx.x < rows)
    strip.y_start[threadIdx.x] = gpu_group_start (plane.y, y + threadIdx.x);
  __syncthreads ();
  if (strip.x.high && strip.y.high)
    filter_strip<1, most> (strip);
  write_strip (strip);
}

extern "C" __global__ void
__launch_bounds__ (THREADS, GPU_STRIP_FEW_BLOCKS) gpu_resize_filter_strips (const __grid_constant__ GpuStripArgs args)
{
  run_resize_filter_strips<GPU_STRIP_FEW_STEPS, GPU_STRIP_FEW_BYTES> (args);
}

extern "C" __global__ void
__launch_bounds__ (THREADS, GPU_STRIP_FEW_BLOCKS)
    gpu_resize_filter_strips_table (const __grid_constant__ GpuTable<GpuStripArgs> table)
{
  run_resize_filter_strips<GPU_STRIP_FEW_STEPS, GPU_STRIP_FEW_BYTES> (gpu_table_args (table));
}

extern "C" __global__ void
__launch_bounds__ (THREADS, GPU_STRIP_MANY_BLOCKS)
    gpu_resize_filter_strips_many (const __grid_constant__ GpuStripArgs args)
{
  run_resize_filter_strips<GPU_STRIP_MANY_STEPS, GPU_STRIP_MANY_BYTES> (args);
}

extern "C" __global__ void
__launch_bounds__ (THREADS, GPU_STRIP_MANY_BLOCKS)
    gpu_resize_filter_strips_many_table (const __grid_constant__ GpuTable<GpuStripArgs> table)
{
  run_resize_filter_strips<GPU_STRIP_MANY_STEPS, GPU_STRIP_MANY_BYTES> (gpu_table_args (table));
}

extern "C" __global__ void
__launch_bounds__ (THREADS, GPU_STRIP_MOST_BLOCKS)
    gpu_resize_filter_strips_most (const __grid_constant__ GpuStripArgs args)
{
  run_resize_filter_strips<GPU_STRIP_MOST_STEPS, GPU_STRIP_MOST_BYTES> (args);
}

extern "C" __global__ void
__launch_bounds__ (THREADS, GPU_STRIP_MOST_BLOCKS)
    gpu_resize_filter_strips_most_table (const __grid_constant__ GpuTable<GpuStripArgs> table)
{
  run_resize_filter_strips<GPU_STRIP_MOST_STEPS, GPU_STRIP_MOST_BYTES> (gpu_table_args (table));
}
