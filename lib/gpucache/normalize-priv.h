/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation to tensors, for its own files.
 */
#pragma once

#include "normalize-pixel.h"
#include "normalize.h"
#include "op-batch-priv.h"

/** Whether there is a line that gives the very bits of an element of @size bytes for each value, or, if that is 0, a
 * step that gives a picture's bytes, as its origin, high and rest. Takes as long as a launch for a channel that is new
 * to the calling thread. */
bool gpu_normalize_find_line (const GpuNormalizeTensorChannel *channel, uint32_t size, GpuNormalizeLine *line);

/** Of an RGB format or GRAY8. @factors: of its channels. */
bool gpu_normalize_to_tensor (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuNormalize *params,
                              const double *factors, GError **error);

/** Of 4:2:0, with 8 bits, to three channels. @factors: of R, G, B. */
bool gpu_normalize_420_to_tensor (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuNormalize *params,
                                  const double *factors, GError **error);
