/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion inside the library: as a part of other operations, and the kernels' other build, for the CPU device.
 */
#pragma once

#include "convert-pixel.h"
#include "convert.h"
#include "kernel.h"
#include "op-batch-priv.h"

/** gpu_convert() as a GpuOpFunc; @params: (nullable): a GpuConvert. */
bool
gpu_convert_image (const GpuOp *op, GpuImage *src, GpuImage *dst, const void *params, void *unused, GError **error);

/** Whether @colorimetry's members exist; sets @error if not. @name: the operation, as the first word; @what: whose
 * colorimetry it is. */
bool
gpu_convert_check_colorimetry (const char *name, const char *what, const GpuColorimetry *colorimetry, GError **error);

/** Arguments that make R, G, B of full range of @src, a picture; their destination is left open. */
void gpu_convert_make_rgb_args (GpuImage *src, const GpuColorimetry *colorimetry, GpuConvertArgs *args);

/** Whether they read 4:2:0 of which four pixels can be read at once everywhere, with strides that 32 bits are enough
 * for, and no more rows than a grid has. */
bool gpu_convert_is_420_in_quads (const GpuConvertArgs *args);

/** What the kernels from 4:2:0 take of arguments that gpu_convert_is_420_in_quads() says yes to. @swapped: whether they
 * make B, G, R; @most: 16, 8 or 4 pixels that may be written at once, of which they take as many as the source lets
 * them. The destination is left open. */
void gpu_convert_make_420_param (const GpuConvertArgs *args, bool swapped, unsigned most, GpuConvert420Param *param);

/** Pixels that gpu_convert_read_rgb() reads at once, at most; even. */
#define GPU_CONVERT_STRIP 1024u

/** On the host: R, G and B of @n pixels of row @y from @x0 on. */
void gpu_convert_read_rgb (const GpuConvertArgs *args, uint32_t x0, uint32_t y, uint32_t n,
                           uint8_t rgb[3][GPU_CONVERT_STRIP]);

void gpu_convert_run_rows (const void *args, GpuExtent extent);
void gpu_convert_run_420 (const void *args, GpuExtent extent);
void gpu_convert_run_to_gray (const void *args, GpuExtent extent);
void gpu_convert_run_to_yuv (const void *args, GpuExtent extent);
void gpu_convert_run_row_pairs (const void *args, GpuExtent extent);
void gpu_convert_run_planes (const void *args, GpuExtent extent);
void gpu_convert_run_plane_lines (const void *args, GpuExtent extent);
void gpu_convert_run_elements (const void *args, GpuExtent extent);
