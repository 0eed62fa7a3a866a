/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A CUDA driver that does nothing, for what the host's own part of a frame takes: one GPU, with memory that is never
 * looked at and work that is complete at once. It takes each call for a valid one; tests/lib/fake-cuda.c checks them.
 */
#include <gpucache/cuda-driver.h>

#include <stdatomic.h>
#include <string.h>

#define EXPORT __attribute__ ((visibility ("default")))
#define GPU_BYTES ((size_t)16 << 30)
#define ALIGNMENT 256

/* What most entries do. In the calling conventions of CUDA's platforms the caller takes its arguments away again, so
 * one function stands for all of them. */
static CUresult
succeed (void)
{
  return CUDA_SUCCESS;
}

/* Memory of the GPU and handles: addresses that nothing is behind, one after the other. */
static CUresult
give_address (CUdeviceptr *address, size_t size)
{
  static atomic_uintptr_t next = (uintptr_t)1 << 40;

  *address = atomic_fetch_add (&next, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return CUDA_SUCCESS;
}

static CUresult
give_handle (void **handle)
{
  CUdeviceptr address;
  CUresult result = give_address (&address, 1);

  *handle = (void *)(uintptr_t)address;
  return result;
}

static CUresult
alloc_from_pool (CUdeviceptr *address, size_t size, CUmemoryPool pool, CUstream stream)
{
  return give_address (address, size);
}

static CUresult
alloc_host (void **data, size_t size, unsigned flags)
{
  *data = aligned_alloc (ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return *data ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
free_host (void *data)
{
  free (data);
  return CUDA_SUCCESS;
}

static CUresult
get_name (char *name, int size, CUdevice device)
{
  g_strlcpy (name, "does nothing", (gsize)size);
  return CUDA_SUCCESS;
}

/* What was current before a context was: nothing. */
static CUresult
give_none (void **handle)
{
  *handle = NULL;
  return CUDA_SUCCESS;
}

static CUresult
give_one (int *number)
{
  *number = 1;
  return CUDA_SUCCESS;
}

static CUresult
give_device (CUdevice *device)
{
  *device = 0;
  return CUDA_SUCCESS;
}

static CUresult
get_memory_info (size_t *free_bytes, size_t *total_bytes)
{
  *free_bytes = *total_bytes = GPU_BYTES;
  return CUDA_SUCCESS;
}

static CUresult
call_host (CUstream stream, CUhostFn func, void *data)
{
  func (data);
  return CUDA_SUCCESS;
}

typedef void (*Entry) (void);

EXPORT CUresult
cuGetProcAddress (const char *symbol, void **entry, int version, cuuint64_t flags,
                  CUdriverProcAddressQueryResult *status)
{
  static const struct {
    const char *symbol;
    Entry entry;
  } others[] = {
      {"cuDeviceGetCount", (Entry)give_one},
      {"cuDeviceGet", (Entry)give_device},
      {"cuDeviceGetName", (Entry)get_name},
      {"cuDeviceGetAttribute", (Entry)give_one},
      {"cuDevicePrimaryCtxRetain", (Entry)give_handle},
      {"cuCtxPopCurrent", (Entry)give_none},
      {"cuCtxGetDevice", (Entry)give_device},
      {"cuMemGetInfo", (Entry)get_memory_info},
      {"cuMemAlloc", (Entry)give_address},
      {"cuMemAllocManaged", (Entry)give_address},
      {"cuMemHostAlloc", (Entry)alloc_host},
      {"cuMemFreeHost", (Entry)free_host},
      {"cuMemPoolCreate", (Entry)give_handle},
      {"cuMemAllocFromPoolAsync", (Entry)alloc_from_pool},
      {"cuStreamCreate", (Entry)give_handle},
      {"cuEventCreate", (Entry)give_handle},
      {"cuModuleLoadData", (Entry)give_handle},
      {"cuModuleGetFunction", (Entry)give_handle},
      {"cuLaunchHostFunc", (Entry)call_host},
  };

  /* Drivers that cannot name a module's functions are asked for each, and this one gives out any. */
  if (strcmp (symbol, "cuFuncGetName") == 0)
    return CUDA_ERROR_NOT_FOUND;
  *(Entry *)entry = (Entry)succeed;
  for (size_t i = 0; i < G_N_ELEMENTS (others); i++)
    if (strcmp (symbol, others[i].symbol) == 0)
      *(Entry *)entry = others[i].entry;
  return CUDA_SUCCESS;
}
