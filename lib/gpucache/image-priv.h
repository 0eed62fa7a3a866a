/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What operations need of images: one submission that reads some and writes others, in order with everybody else's.
 */
#pragma once

#include "stream-priv.h"

#include <gpucache/image.h>

/**
 * gpu_images_submit:
 * @reads: images that @func's work reads
 * @writes: images that it writes
 *
 * Waits on @stream for what conflicts (rule 19), submits, and enters the accesses with the submission's number. The
 * caller holds the images (rule 2). All must be of @stream's device.
 *
 * Returns: false if @error is set
 */
bool gpu_images_submit (GpuStream *stream, GpuImage *const *reads, unsigned n_reads, GpuImage *const *writes,
                        unsigned n_writes, GpuSubmitFunc func, void *data, GError **error);

/** gpu_image_wrap() of memory, known to be right, on which @device has no work. */
GpuImage *gpu_image_wrap_complete (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, void *data,
                                   GpuReleaseFunc release, void *user_data);

/** Whether samples of one can be copied to the other; sets @error if not. */
bool gpu_image_check_same_shape (const GpuImageSpec *src, const GpuImageSpec *dst, GError **error);

/**
 * gpu_images_cross:
 *
 * The same for @func's work that reads @src, of another device, and writes @dst, of @stream's (rule 26): @stream waits
 * for the other device's events, and the read enters @src's history with an event of its own, which is what the other
 * device's cache polls.
 */
bool gpu_images_cross (GpuStream *stream, GpuImage *src, GpuImage *dst, GpuSubmitFunc func, void *data, GError **error);

/** gpu_image_copy() from another device's image to one of @stream's; the shapes are the same. */
bool gpu_image_copy_across (GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error);

/** Whether memory of that shape and kind can be asked of @device for @stream (nullable); sets @error if not. */
bool gpu_image_check_request (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, GpuStream *stream,
                              GError **error);
