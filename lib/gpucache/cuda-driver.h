/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The CUDA driver API as a table that is filled at run time, so that the library loads where there is no driver.
 *
 * Every entry is asked for in the version that its type names: what the driver returns then has that signature for
 * ever, whatever a later cuda.h maps the plain name to. CUDA 12.0 has all but the optional ones.
 */
#pragma once

#include <gpucache/types.h>

#include <cuda.h>
#include <cudaTypedefs.h>

#define GPU_CUDA_ENTRIES(ENTRY)                                                                                        \
  ENTRY (Init, 2000)                                                                                                   \
  ENTRY (GetErrorName, 6000)                                                                                           \
  ENTRY (GetErrorString, 6000)                                                                                         \
  ENTRY (DeviceGetCount, 2000)                                                                                         \
  ENTRY (DeviceGet, 2000)                                                                                              \
  ENTRY (DeviceGetName, 2000)                                                                                          \
  ENTRY (DeviceGetAttribute, 2000)                                                                                     \
  ENTRY (DeviceCanAccessPeer, 4000)                                                                                    \
  ENTRY (DevicePrimaryCtxRetain, 7000)                                                                                 \
  ENTRY (DevicePrimaryCtxRelease, 11000)                                                                               \
  ENTRY (CtxPushCurrent, 4000)                                                                                         \
  ENTRY (CtxPopCurrent, 4000)                                                                                          \
  ENTRY (CtxSynchronize, 2000)                                                                                         \
  ENTRY (CtxGetDevice, 2000)                                                                                           \
  ENTRY (CtxEnablePeerAccess, 4000)                                                                                    \
  ENTRY (MemGetInfo, 3020)                                                                                             \
  ENTRY (MemAlloc, 3020)                                                                                               \
  ENTRY (MemFree, 3020)                                                                                                \
  ENTRY (MemAllocManaged, 6000)                                                                                        \
  ENTRY (MemHostAlloc, 2020)                                                                                           \
  ENTRY (MemFreeHost, 2000)                                                                                            \
  ENTRY (MemHostRegister, 6050)                                                                                        \
  ENTRY (MemHostUnregister, 4000)                                                                                      \
  ENTRY (MemPoolCreate, 11020)                                                                                         \
  ENTRY (MemPoolDestroy, 11020)                                                                                        \
  ENTRY (MemPoolSetAttribute, 11020)                                                                                   \
  ENTRY (MemPoolSetAccess, 11020)                                                                                      \
  ENTRY (MemPoolGetAttribute, 11020)                                                                                   \
  ENTRY (MemPoolTrimTo, 11020)                                                                                         \
  ENTRY (MemAllocFromPoolAsync, 11020)                                                                                 \
  ENTRY (MemFreeAsync, 11020)                                                                                          \
  ENTRY (StreamCreate, 2000)                                                                                           \
  ENTRY (StreamDestroy, 4000)                                                                                          \
  ENTRY (StreamSynchronize, 2000)                                                                                      \
  ENTRY (StreamWaitEvent, 3020)                                                                                        \
  ENTRY (StreamWaitValue32, 11070)                                                                                     \
  ENTRY (EventCreate, 2000)                                                                                            \
  ENTRY (EventDestroy, 4000)                                                                                           \
  ENTRY (EventRecord, 2000)                                                                                            \
  ENTRY (EventQuery, 2000)                                                                                             \
  ENTRY (MemcpyAsync, 4000)                                                                                            \
  ENTRY (Memcpy2DAsync, 3020)                                                                                          \
  ENTRY (MemcpyPeerAsync, 4000)                                                                                        \
  ENTRY (Memcpy3DPeerAsync, 4000)                                                                                      \
  ENTRY (MemsetD8Async, 3020)                                                                                          \
  ENTRY (MemsetD2D8Async, 3020)                                                                                        \
  ENTRY (ModuleLoadData, 2000)                                                                                         \
  ENTRY (ModuleUnload, 2000)                                                                                           \
  ENTRY (ModuleGetFunction, 2000)                                                                                      \
  ENTRY (LaunchKernel, 4000)                                                                                           \
  ENTRY (LaunchHostFunc, 10000)

/* NULL where the driver does not have them. */
#define GPU_CUDA_OPTIONAL_ENTRIES(ENTRY)                                                                               \
  ENTRY (MemPrefetchAsync, 8000)                                                                                       \
  ENTRY (FuncGetName, 12030)                                                                                           \
  ENTRY (ModuleGetFunctionCount, 12040)                                                                                \
  ENTRY (ModuleEnumerateFunctions, 12040)                                                                              \
  ENTRY (FuncLoad, 12040)

#define GPU_CUDA_FIELD(name, version) PFN_cu##name##_v##version name;

/** The driver; immutable once it has been filled. */
typedef struct {
  GPU_CUDA_ENTRIES (GPU_CUDA_FIELD)
  GPU_CUDA_OPTIONAL_ENTRIES (GPU_CUDA_FIELD)
  unsigned n_devices; /* fixed for the process when the driver initialises */
} GpuCudaDriver;

#undef GPU_CUDA_FIELD

/**
 * gpu_cuda_driver_get:
 * @error: GPU_ERROR_NO_DEVICE if there is no driver, it is too old, or it does not initialise; GPU_ERROR_FORKED in a
 *   child of the process that initialised it, where it does not work
 *
 * Opens and initialises the driver at the first call; that there is no GPU is no error. Thread-safe. For opening
 * devices, which then keep the pointer.
 *
 * Returns: (transfer none): the driver, which stays until the process ends, or NULL
 */
const GpuCudaDriver *gpu_cuda_driver_get (GError **error);

/**
 * gpu_cuda_set_error:
 * @result: what @call returned, not CUDA_SUCCESS
 * @device: the device as a person would name it
 *
 * Says which call failed, how and on which device: GPU_ERROR_OUT_OF_MEMORY for a refusal of memory,
 * GPU_ERROR_UNSUPPORTED for what the device cannot do, else GPU_ERROR_DEVICE_LOST.
 */
void
gpu_cuda_set_error (GError **error, const GpuCudaDriver *driver, CUresult result, const char *call, const char *device);
