/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Batches: many images that are worked on with one launch, and that the cache hands out again together.
 */
#pragma once

#include <gpucache/format.h>
#include <gpucache/image.h>

G_BEGIN_DECLS

/**
 * GpuBatch:
 *
 * Images in an order, of one device. Reference counted. All functions on it are thread-safe, but work that writes to
 * its images is submitted by one thread at a time.
 */
typedef struct GpuBatch GpuBatch;

/** How many images a batch has at most: what one launch takes. */
#define GPU_MAX_BATCH 65535

/**
 * gpu_batch_acquire:
 * @device: where
 * @specs: the images' shapes, in their order; formats and sizes may differ
 * @n: how many, 1 to GPU_MAX_BATCH
 * @kind: the kind of memory
 * @stream: (nullable): the consumer stream: the one that will write first
 * @error: (nullable): as gpu_image_acquire()
 *
 * Takes images from the cache. A batch of the same shapes in the same order that nobody observes any more is reused
 * whole (rule 17), also while work on it is pending, if all of that is ordered on @stream. Otherwise each image is
 * acquired as gpu_image_acquire() does it. Images are counted one by one, and each may outlive the batch.
 *
 * Returns: (transfer full): the batch, or NULL
 */
GPU_API GpuBatch *gpu_batch_acquire (GpuDevice *device, const GpuImageSpec *specs, unsigned n, GpuMemoryKind kind,
                                     GpuStream *stream, GError **error);

/**
 * gpu_batch_acquire_dense:
 * @spec: the shape of each image: a tensor, or a picture of packed or planar RGB or GRAY8, whose strides and alignment
 *   are not looked at
 * @n: how many, 1 to GPU_MAX_BATCH
 *
 * The same in one piece of memory, without padding: N x C x H x W if @spec is planar (CHW), N x H x W x C if it is
 * interleaved (HWC). It is one allocation, counted and observed as one: any of its images keeps all of it live.
 *
 * Returns: (transfer full): the batch, or NULL with @error set
 */
GPU_API GpuBatch *gpu_batch_acquire_dense (GpuDevice *device, const GpuImageSpec *spec, unsigned n, GpuMemoryKind kind,
                                           GpuStream *stream, GError **error);

/**
 * gpu_batch_new:
 * @images: (transfer none): images of one device, in their order
 * @n: how many, 1 to GPU_MAX_BATCH
 *
 * A batch of images that are there, such as frames of several cameras. Its images go back to the cache one by one.
 *
 * Returns: (transfer full): the batch, or NULL with @error set to GPU_ERROR_INVALID
 */
GPU_API GpuBatch *gpu_batch_new (GpuImage *const *images, unsigned n, GError **error);

GPU_API GpuBatch *gpu_batch_ref (GpuBatch *batch);
/** (nullable) @batch. The last reference lets go of the images. */
GPU_API void gpu_batch_unref (GpuBatch *batch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GpuBatch, gpu_batch_unref)

GPU_API GpuDevice *gpu_batch_device (const GpuBatch *batch);

/** How many images there are. */
GPU_API unsigned gpu_batch_size (const GpuBatch *batch);

/** Returns: (transfer none): image @i. */
GPU_API GpuImage *gpu_batch_image (const GpuBatch *batch, unsigned i);

/**
 * gpu_batch_dense_image:
 *
 * Returns: (transfer none) (nullable): the memory of a dense batch as one image: a tensor of N x H rows of pixels if it
 *   is interleaved, of one channel and N x C x H rows if it is planar; NULL if the batch is not dense
 */
GPU_API GpuImage *gpu_batch_dense_image (const GpuBatch *batch);

G_END_DECLS
