/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What image operations share: the checks of their arguments, and the space of rows that one launch works through.
 */
#pragma once

#include "image-priv.h"
#include "pixel.h"

G_STATIC_ASSERT (GPU_PIXEL_PLANES == GPU_MAX_PLANES);
G_STATIC_ASSERT (GPU_PIXEL_CHANNELS == GPU_MAX_CHANNELS);

/** For a loop over pixels that is called with a constant number of bytes a pixel: one copy of it for each. */
#define GPU_OP_LOOP static inline __attribute__ ((always_inline))

/**
 * gpu_op_check_devices:
 * @name: the operation, as the first word of a message
 *
 * Whether @src and @dst are of @stream's device.
 *
 * Returns: false if @error is set
 */
bool gpu_op_check_devices (const char *name, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error);

/** Whether @src is a picture; sets @error if it is a tensor. */
bool gpu_op_check_picture (const char *name, GpuImage *src, GError **error);

/** Whether @src and @dst are pictures of @stream's device and of one format; sets @error if not. */
bool gpu_op_check (const char *name, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error);

/** Whether @dst is of that size; sets @error if not. */
bool gpu_op_check_size (const char *name, GpuImage *dst, uint32_t width, uint32_t height, GError **error);

/** Whether the bytes that the images' planes lie in are apart: of different allocations they always are. */
bool gpu_op_bytes_are_apart (GpuImage *one, GpuImage *other);

/** Whether no sample of @dst lies on one of @src; sets @error if one does. Padding and what lies between rows may be
 * shared: views side by side in one image are apart. */
bool gpu_op_check_apart (const char *name, GpuImage *src, GpuImage *dst, GError **error);

/** Whether both images are the same samples in memory. */
bool gpu_op_same_memory (GpuImage *src, GpuImage *dst);

/** The address of a plane's first sample. */
uint8_t *gpu_op_plane (GpuImage *image, unsigned plane);

/** Where the channels of @image lie: R, G, B, A or Y, U, V, or those of a tensor in their order. All of them have the
 * image's size: @image is no subsampled picture. */
GpuPixels gpu_op_pixels (GpuImage *image);

/** Whether an image's elements, if they are of several bytes, lie at multiples of those; sets @error if not. */
bool gpu_op_check_elements (const char *name, GpuImage *image, GError **error);

/** A block and an extent for kernels of four pixels a thread and a warp a row; they loop over the rows beyond what a
 * grid can hold. */
#define GPU_OP_QUAD_BLOCK_X 32
#define GPU_OP_QUAD_BLOCK_Y 8
GpuExtent gpu_op_quad_extent (uint32_t width, uint64_t rows);
/** The same for kernels whose threads take several rows at a time. */
#define GPU_OP_QUAD_ROWS 4
/** Rows that such a kernel's grid can hold. */
#define GPU_OP_MAX_QUADS_ROWS (65535u * GPU_OP_QUAD_BLOCK_Y * GPU_OP_QUAD_ROWS)
GpuExtent gpu_op_quads_extent (uint32_t width, uint64_t rows);

/** The channel's name in messages: "R". */
const char *gpu_op_channel_name (const GpuFormatInfo *info, unsigned channel);

/** Memory for what an operation needs between two of its launches, at least @size bytes, or NULL with @error set. Unref
 * it after the last launch. */
GpuImage *gpu_op_scratch (GpuStream *stream, GpuMemoryKind kind, size_t size, GError **error);

/** Adds plane number @plane, the next one, of @n rows to @rows, which is zero-initialised before the first, in whole
 * blocks of @block rows. */
void gpu_op_add_rows (GpuPixelRows *rows, unsigned plane, uint32_t n, unsigned block);

/** CUDA's limit on blocks in y. */
#define GPU_OP_MAX_BLOCKS_Y 65535u

/** The launch's extent in y for @rows; kernels loop over the rows beyond what a grid can hold. */
uint32_t gpu_op_extent_y (const GpuPixelRows *rows, unsigned block);
