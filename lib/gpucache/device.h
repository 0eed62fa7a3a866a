/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Devices: one GPU, or the CPU device. A device owns one cache, whose limit all its users share.
 */
#pragma once

#include <gpucache/types.h>

G_BEGIN_DECLS

/**
 * gpu_device_open:
 * @name: (nullable): "cuda:N", "cpu", "cpu:N", or "auto": the first GPU if there is a driver and one, else "cpu:0".
 *   NULL means the environment's GPUCACHE_DEVICE, or "auto" if that is not set.
 * @error: (nullable): GPU_ERROR_NO_DEVICE with what was asked for, what is there and what to do; GPU_ERROR_INVALID if
 *   the name cannot be read
 *
 * The same name gives the same device in the whole process. A device once opened stays until the process ends, so
 * that the next pipeline finds what the last one left in its cache. One that is lost makes place for a new device of
 * its name, if the driver still opens it; who holds the lost one still has that.
 *
 * Returns: (transfer full): the device, or NULL
 */
GPU_API GpuDevice *gpu_device_open (const char *name, GError **error);

/**
 * gpu_device_open_cuda_context:
 * @context: a CUcontext of the caller's, which must outlive the device
 *
 * Like gpu_device_open("cuda:N") over an existing context instead of the primary one. Not shared: each call gives a
 * device with a name ("cuda:N/1", "cuda:N/2") and a cache of its own, also over one context. Images go from one device
 * of a GPU to another by gpu_image_copy(), as between GPUs.
 *
 * Returns: (transfer full): the device, or NULL
 */
GPU_API GpuDevice *gpu_device_open_cuda_context (void *context, GError **error);

GPU_API GpuDevice *gpu_device_ref (GpuDevice *device);

/**
 * gpu_device_unref:
 *
 * The last reference, those of images and streams included, waits for pending work and frees the cache.
 */
GPU_API void gpu_device_unref (GpuDevice *device);

/** The name it was opened by, resolved: "cuda:0", "cpu:1"; "cuda:0/1" if by a context; owned by the device. */
GPU_API const char *gpu_device_name (const GpuDevice *device);

/** What a person would call it, such as "NVIDIA H200"; owned by the device. */
GPU_API const char *gpu_device_description (const GpuDevice *device);

/** Whether the host can read and write the device's memory by its plain address (the CPU device). */
GPU_API bool gpu_device_is_host (const GpuDevice *device);

/** Whether an error made the device unusable (rule 24). */
GPU_API bool gpu_device_is_lost (GpuDevice *device);

/** Bytes of device memory that are free and that there are; false if @error is set. */
GPU_API bool gpu_device_memory_info (GpuDevice *device, uint64_t *free_bytes, uint64_t *total_bytes, GError **error);

/** The CUcontext of a CUDA device, NULL of another. */
GPU_API void *gpu_device_cuda_context (GpuDevice *device);

G_END_DECLS
