/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion on the CPU device: the kernels' other build.
 */
#pragma once

#include "kernel.h"

void gpu_convert_run_rows (const void *args, GpuExtent extent);
void gpu_convert_run_row_pairs (const void *args, GpuExtent extent);
void gpu_convert_run_planes (const void *args, GpuExtent extent);
void gpu_convert_run_elements (const void *args, GpuExtent extent);
