/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Arguments of normalisation from 4:2:0 to tensors.
 */
#pragma once

#include "convert-pixel.h"
#include "normalize-pixel.h"

/** @source: to R, G, B of full range; @dst: the tensor; @line: what its channels, R, G, B, make of those. */
typedef struct {
  GpuConvert420Param source;
  GpuPixels dst;
  GpuNormalizeLine line[3];
} GpuNormalizeYuvParam;

/** Of which a GPU's kernel takes the first part. @convert: the same as @param.source, with the tensor as destination;
 * @channel: the same as @param.line, bit for bit. */
typedef struct {
  GpuNormalizeYuvParam param;
  GpuConvertArgs convert;
  GpuNormalizeTensorChannel channel[3];
} GpuNormalizeYuvArgs;
