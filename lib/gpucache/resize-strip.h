/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling with filters in strips, for nvcc and the C compiler alike: what a block makes, and the arguments of the
 * kernel. Weights lie as in resize-groups.h, for bytes of rows as they are, whose pixels may be several bytes: a
 * weight is 0 where a byte of the source belongs to another channel. So a kernel for pixels of one byte is one for all.
 */
#pragma once

#include "resize-groups.h"

/** Threads of a block: so many warps. */
#define GPU_STRIP_WARPS 4u

/** Bytes of the destination's rows that a block makes: a group for each warp. */
#define GPU_STRIP_WIDTH (GPU_GROUP_SIZE * GPU_STRIP_WARPS)

/** Rows that it makes at most. */
#define GPU_STRIP_HEIGHT 64u

/** What is loaded at once, in bytes: a group begins at a multiple of it, across in the source's row, and down from
 * where the strip begins. */
#define GPU_STRIP_UNIT 16u

/** A warp has the weights of its group in registers, so there are kernels for groups of up to so many steps. Shared
 * memory that a block of each has for samples: a multiprocessor of 228 KiB has room for as many blocks, and registers.
 */
#define GPU_STRIP_FEW_STEPS 3u
#define GPU_STRIP_FEW_BYTES 26112u
#define GPU_STRIP_FEW_BLOCKS 8
#define GPU_STRIP_MANY_STEPS 6u
#define GPU_STRIP_MANY_BYTES 36352u
#define GPU_STRIP_MANY_BLOCKS 6
#define GPU_STRIP_MOST_STEPS 10u
#define GPU_STRIP_MOST_BYTES 47616u
#define GPU_STRIP_MOST_BLOCKS 4

/** The longest stride that 32 bits are enough for. */
#define GPU_STRIP_MAX_STRIDE (1u << 21)

/** Between the four columns of a word: see columns_part() in the kernel. */
#define GPU_STRIP_GAP 16u

/**
 * GpuStripPlane:
 * @src, @dst: first samples
 * @src_width: bytes of the source's rows
 * @width, @height: of the destination's plane, in bytes and rows, as all that follows
 * @left, @top, @part_width, @part_height: the part of it that is scaled to; the rest is @border
 * @border: a pixel
 * @bytes: of a pixel; a sample has one
 * @alpha: the byte of alpha in a pixel that is multiplied by it; 4 if none is
 * @src_aligned: whether the source's rows begin at multiples of GPU_STRIP_UNIT, which are not too far apart
 * @dst_aligned: whether the destination's rows begin at multiples of 4
 * @strip_height: rows that a block makes, a multiple of GPU_GROUP_SIZE
 * @chunk: rows of the source that are filtered at a time, a multiple of GPU_GROUP_LINES; there is room for twice as
 * many
 * @line_bytes: from a row of those to the next one, an odd multiple of GPU_STRIP_UNIT for the sake of shared memory's
 *   banks
 * @column_bytes: from a column of what rows are filtered to, to the next one, likewise
 * @units: threads that load a row
 * @apart: from a chunk's lines to those of the next one. What a step looks at beyond the last line is no part of those,
 *   which are on their way
 */
typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  uint64_t src_stride;
  uint64_t dst_stride;
  GpuGroupAxis x;
  GpuGroupAxis y;
  uint32_t src_width;
  uint32_t width;
  uint32_t height;
  uint32_t left;
  uint32_t top;
  uint32_t part_width;
  uint32_t part_height;
  uint32_t border;
  uint32_t bytes;
  uint32_t alpha;
  uint32_t src_aligned;
  uint32_t dst_aligned;
  uint32_t strip_height;
  uint32_t chunk;
  uint32_t line_bytes;
  uint32_t column_bytes;
  uint32_t units;
  uint32_t apart;
} GpuStripPlane;

typedef struct {
  GpuStripPlane plane[GPU_PIXEL_PLANES];
  GpuPixelRows rows; /* of strips */
} GpuStripArgs;

/** Bytes of shared memory that all columns take. */
GPU_PIXEL_FUNC uint32_t
gpu_strip_columns_bytes (uint32_t column_bytes)
{
  return GPU_STRIP_WIDTH * column_bytes + 4 * GPU_STRIP_GAP;
}
