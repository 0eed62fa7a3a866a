/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Moving the channels of pixels.
 */
#pragma once

#include "pixel.h"

/** @opaque: what a fourth channel of the destination is or'ed with: 255 where the source has none. */
typedef struct {
  GpuPixels src;
  GpuPixels dst;
  uint32_t width;
  uint32_t height;
  uint32_t opaque;
  uint32_t reserved;
} GpuReformatArgs;
