/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion inside the library: as a part of other operations, and the kernels' other build, for the CPU device.
 */
#pragma once

#include "kernel.h"
#include "op-batch-priv.h"

/** gpu_convert() as a GpuOpFunc; @params: (nullable): a GpuConvert. */
bool
gpu_convert_image (const GpuOp *op, GpuImage *src, GpuImage *dst, const void *params, void *unused, GError **error);

void gpu_convert_run_rows (const void *args, GpuExtent extent);
void gpu_convert_run_row_pairs (const void *args, GpuExtent extent);
void gpu_convert_run_planes (const void *args, GpuExtent extent);
void gpu_convert_run_elements (const void *args, GpuExtent extent);
