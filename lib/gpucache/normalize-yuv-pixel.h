/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Arguments of normalisation from 4:2:0 to tensors.
 */
#pragma once

#include "convert-pixel.h"
#include "normalize-pixel.h"

/** @convert: to R, G, B of full range; its destination is the tensor. @channel: of the tensor's channels, R, G, B;
 * @line: the same, bit for bit. */
typedef struct {
  GpuConvertArgs convert;
  GpuNormalizeTensorChannel channel[3];
  GpuNormalizeLine line[3];
} GpuNormalizeYuvArgs;
