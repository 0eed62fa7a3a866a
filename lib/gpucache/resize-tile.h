/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling with filters in tiles, for nvcc and the C compiler alike: how weights lie for the products of matrices that a
 * warp makes, and the arguments of the kernel.
 *
 * A product takes 16 lines of 32 samples each, one after the other, by the weights of 8 samples of the destination. A
 * weight of 22 bits of fraction goes in three signed digits to the base of 256, which have a product each.
 */
#pragma once

#include "pixel.h"

/** Threads of a block: so many warps. */
#define GPU_TILE_WARPS 4u

/** Samples of the destination, in each direction, that a block makes at most. */
#define GPU_TILE_SIZE 32u

/** Tiles beside one another, at most: a launch counts their threads in 32 bits. */
#define GPU_TILE_MAX_ACROSS (UINT32_MAX / 32)

/** Samples of the destination whose weights lie together: group i has those of 8 i to 8 i + 7 of a plane. */
#define GPU_TILE_GROUP 8u

/** Samples of the source that one product takes in, and lines of them. */
#define GPU_TILE_STEP 32u
#define GPU_TILE_LINES 16u

/** Words of weights of one step of a group: for each digit and lane of a warp two. */
#define GPU_TILE_DIGITS 3u
#define GPU_TILE_STEP_WORDS (GPU_TILE_DIGITS * 64)

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
 * GpuTileAxis:
 * @spans: for each group the first sample of the source that it needs, or one a little before it, and the one after the
 *   last
 * @weights: for each group @steps times GPU_TILE_STEP_WORDS words: byte i of word r of lane l of a digit is that of
 *   sample l / 4 of the group for sample 16 r + 4 (l % 4) + i of the source, from where the step begins
 * @first: the first group that has any sample of the destination's part
 * @n: groups
 */
typedef struct {
  const int32_t *spans;
  const uint32_t *weights;
  uint32_t first;
  uint32_t n;
  uint32_t steps;
  uint32_t reserved;
} GpuTileAxis;

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
 * @chunk: rows of the source that are in shared memory at a time, a multiple of GPU_TILE_LINES
 * @line_words: from a row of those to the next one; even, but no multiple of 4, for the sake of shared memory's banks
 * @column_words: from a column of what rows are filtered to, to the next one; odd for the same reason
 */
typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  uint64_t src_stride;
  uint64_t dst_stride;
  GpuTileAxis x;
  GpuTileAxis y;
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
