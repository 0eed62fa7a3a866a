/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Work that shows when memory was reused too early: each write leaves a stamp all over an image, each read looks for
 * the stamp that must be there, from its beginning to its end. On the CPU device both are kernels of their own, so that
 * ThreadSanitizer sees them, too; on a GPU they are fills, and copies that are looked at later.
 */
#pragma once

#include <gpucache/image.h>

/** Submits work to @stream that writes @stamp to all of @image. */
void stamp_write (GpuStream *stream, GpuImage *image, uint32_t stamp);

/** Submits work that reads @image, which must hold @stamp. */
void stamp_check (GpuStream *stream, GpuImage *image, uint32_t stamp);

/** Submits work that reads @src, which must hold @stamp, and writes @dst_stamp to @dst. */
void stamp_convert (GpuStream *stream, GpuImage *src, uint32_t stamp, GpuImage *dst, uint32_t dst_stamp);

/** The same by the host, on @size bytes that are complete; gpu_image_copy() carries stamps over. */
void stamp_host_write (GpuDevice *device, void *data, size_t size, uint32_t stamp);
void stamp_host_check (GpuDevice *device, const void *data, size_t size, uint32_t stamp);

/** After all work is complete: fails, with @seed, if any read found something else. */
void stamp_settle (uint32_t seed);
