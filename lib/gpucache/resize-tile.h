/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling with filters in tiles, for nvcc and the C compiler alike: what a block makes, and the arguments of the
 * kernel. Weights are as in resize-groups.h.
 */
#pragma once

#include "resize-groups.h"

/** Threads of a block: so many warps. */
#define GPU_TILE_WARPS 4u

/** Samples of the destination, in each direction, that a block makes at most. */
#define GPU_TILE_SIZE 32u

/** Tiles beside one another, at most: a launch counts their threads in 32 bits. */
#define GPU_TILE_MAX_ACROSS (UINT32_MAX / 32)

/** A group's samples of the source begin at a multiple of it. */
#define GPU_TILE_ALIGNMENT 4u

/** Words of shared memory that a block has for samples. A multiprocessor of 228 KiB has room for six such blocks; its
 * registers are enough for five. */
#define GPU_TILE_WORDS 9216u

/** The longest stride that 32 bits are enough for. */
#define GPU_TILE_MAX_STRIDE (1u << 21)

/** Pixels of a row, of 1 to 4 samples each, that one thread reads at once: whole chunks of 16 bytes. */
GPU_PIXEL_FUNC uint32_t
gpu_tile_unit (uint32_t bytes)
{
  return bytes == 4 ? 4 : bytes == 2 ? 8 : 16;
}

/**
 * GpuTilePlane:
 * @src, @dst: first samples
 * @src_width: pixels of the source's rows
 * @width, @height: of the destination's plane
 * @left, @top, @part_width, @part_height: the part of it that is scaled to; the rest is @border
 * @bytes: of a pixel; a sample has one
 * @alpha: the byte of alpha in a pixel that is multiplied by it; 4 if none is
 * @src_aligned: whether the source's rows begin at multiples of 16 bytes, which are not too far apart
 * @dst_aligned: whether each fourth pixel of the destination is where a vector can be
 * @tile_shift, @tile_height: what a block makes: 2 to the power of this groups across, and rows, whole groups
 * @chunk: rows of the source that are in shared memory at a time, a multiple of GPU_GROUP_LINES
 * @line_words: from a row of those to the next one; even, but no multiple of 4, for the sake of shared memory's banks
 * @column_words: from a column of what rows are filtered to, to the next one; odd for the same reason
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
  uint32_t tile_shift;
  uint32_t tile_height;
  uint32_t chunk;
  uint32_t line_words;
  uint32_t column_words;
  uint32_t reserved;
} GpuTilePlane;

typedef struct {
  GpuTilePlane plane[GPU_PIXEL_PLANES];
  GpuPixelRows rows; /* of tiles */
} GpuTileArgs;
