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

/** Whether samples of one can be copied to the other; sets @error if not. */
bool gpu_image_check_same_shape (const GpuImageSpec *src, const GpuImageSpec *dst, GError **error);

/** The same as gpu_images_submit() for one kernel, which is what most operations are. */
bool gpu_images_launch (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuKernel *kernel, const void *args,
                        GpuExtent extent, GError **error);
