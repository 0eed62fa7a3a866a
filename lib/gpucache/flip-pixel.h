/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Flips, per pixel. Each of the eight orientations is a walk over the source with constant steps.
 */
#pragma once

#include "pixel.h"

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
  uint32_t reserved;
} GpuFlipPlane;

typedef struct {
  GpuFlipPlane plane[GPU_PIXEL_PLANES];
  GpuPixelRows rows; /* of pixels, or of tiles where the picture is transposed */
} GpuFlipArgs;

/** The edge of a tile in pixels. */
#define GPU_FLIP_TILE 64

/** The source's pixel for the one at @x, @y of the destination. */
GPU_PIXEL_FUNC const uint8_t *
gpu_flip_source (const GpuFlipPlane *plane, uint32_t x, uint32_t y)
{
  return plane->src + (int64_t)x * plane->step_x + (int64_t)y * plane->step_y;
}
