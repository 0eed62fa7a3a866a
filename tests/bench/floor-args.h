/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The arguments of the kernels in floor.cu.
 */
#pragma once

#include <stdint.h>

#define FLOOR_BLOCK 256
#define FLOOR_MAX_FRAMES 8

/** @n_read, @n_write: 16 bytes each, of every frame. */
typedef struct {
  struct {
    const void *src;
    void *dst;
  } frame[FLOOR_MAX_FRAMES];
  uint64_t n_read;
  uint64_t n_write;
} FloorArgs;

typedef struct {
  uint64_t word[50];
} FloorTurnArgs;
