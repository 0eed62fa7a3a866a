/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The kernels in a CUDA context: loaded from the fat binaries that are built into the library, found by GpuKernel.
 */
#pragma once

#include "cuda-driver.h"

#include <gpucache/kernel.h>

/** One fat binary; the build generates the array, which ends with a NULL name. */
typedef struct {
  const char *name; /* of the source file, without its suffix */
  const void *data;
} GpuCudaBinary;

extern const GpuCudaBinary gpu_cuda_binaries[];

typedef struct GpuCudaKernels GpuCudaKernels;

/**
 * gpu_cuda_kernels_load:
 * @label: the device as a person would name it; must outlive what is returned
 * @error: GPU_ERROR_UNSUPPORTED if there is no code for this GPU, else as gpu_cuda_set_error() says
 *
 * Loads every kernel into the current context. That takes device memory and may wait for the device, also for streams
 * that are held by something, so it is done when a device is opened and not in the midst of its work.
 *
 * Returns: (transfer full): the kernels, or NULL
 */
GpuCudaKernels *gpu_cuda_kernels_load (const GpuCudaDriver *driver, const char *label, GError **error);

/** With the context that they were loaded into current, and no kernel running. */
void gpu_cuda_kernels_free (GpuCudaKernels *kernels);

/**
 * gpu_cuda_kernels_find:
 * @name: of a GpuKernel: static, and looked up by its address
 * @error: GPU_ERROR_UNSUPPORTED if the library has no such kernel for CUDA
 *
 * Thread-safe; takes no lock. With the context current.
 *
 * Returns: the function, or NULL
 */
CUfunction gpu_cuda_kernels_find (GpuCudaKernels *kernels, const char *name, GError **error);
