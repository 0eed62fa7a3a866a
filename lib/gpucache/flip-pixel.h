/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Flips, per pixel. Each of the eight orientations is a walk over the source with constant steps.
 */
#pragma once

#include "pixel.h"

#include <stdbool.h>

#define GPU_FLIP_BLOCK_X 32
#define GPU_FLIP_BLOCK_Y 8

/** Rows that a thread flips at a time, where they stay rows. */
#define GPU_FLIP_ROWS 2

/**
 * GpuFlipPlane:
 * @src: the sample that becomes the first one of @dst
 * @step_x: bytes in the source from one pixel of a row of @dst to the next
 * @step_y: bytes in the source from one row of @dst to the next
 * @width: of @dst, in pixels
 * @bytes: of a pixel
 * @across: tiles side by side, where the picture is transposed
 * @inverse: 2^32 / @across, rounded up, or 0 if that is 2^32
 */
typedef struct {
  const uint8_t *src;
  uint8_t *dst;
  int64_t step_x;
  int64_t step_y;
  uint64_t dst_stride;
  uint32_t width;
  uint32_t height;
  uint32_t bytes;
  uint32_t across;
  uint32_t inverse;
  uint32_t reserved;
} GpuFlipPlane;

typedef struct {
  GpuFlipPlane plane[GPU_PIXEL_PLANES];
  GpuPixelRows rows; /* of pixels, or single tiles where the picture is transposed */
} GpuFlipArgs;

/** A tile of the destination in pixels. Its rows, and those of the source that it is made of, are 128 to 256 bytes, so
 * that few of the memory's lines are used in part. @in_lines: rows of the destination begin at multiples of 16. */
GPU_PIXEL_FUNC uint32_t
gpu_flip_tile_width (uint32_t bytes, bool in_lines)
{
  return in_lines && bytes == 1 ? 128 : 64;
}

GPU_PIXEL_FUNC uint32_t
gpu_flip_tile_height (uint32_t bytes, bool in_lines)
{
  return in_lines && bytes <= 2 ? 128 : 64;
}

/** Blocks that follow one another take so many tiles one below the other, then those beside them: what neighbours in
 * the source or in the destination need lies in the same pages of the memory, and is asked for at about the same time.
 */
#define GPU_FLIP_DOWN 8

/** The source's pixel for the one at @x, @y of the destination. */
GPU_PIXEL_FUNC const uint8_t *
gpu_flip_source (const GpuFlipPlane *plane, uint32_t x, uint32_t y)
{
  return plane->src + (int64_t)x * plane->step_x + (int64_t)y * plane->step_y;
}
