/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Memory of the CUDA device: the pool that stream-ordered memory comes from, the other kinds, and alignment beyond what
 * the driver gives.
 */
#include "cuda-priv.h"

/* What every allocation function of the driver guarantees. */
#define DRIVER_ALIGNMENT 256

/* In such pieces, of which one is in use in part as a rule, a pool takes memory from the system and gives it back
 * (measured with driver 580). */
#define POOL_PIECE (UINT64_C (32) << 20)

bool
gpu_cuda_memory_info (GpuDevice *device, uint64_t *free_bytes, uint64_t *total_bytes, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  size_t free_size = 0, total_size = 0;
  CUresult result;

  if (!gpu_cuda_enter (self, error))
    return false;
  result = self->cu->MemGetInfo (&free_size, &total_size);
  *free_bytes = free_size;
  *total_bytes = total_size;
  return gpu_cuda_leave_with (self, result, "cuMemGetInfo", error);
}

static void *
shift (GpuCudaDevice *self, void *base, size_t alignment)
{
  void *data = (void *)(((uintptr_t)base + alignment - 1) & ~(uintptr_t)(alignment - 1));

  if (data != base) {
    pthread_mutex_lock (&self->shifted_lock);
    g_hash_table_insert (self->shifted, data, base);
    atomic_fetch_add_explicit (&self->n_shifted, 1, memory_order_relaxed);
    pthread_mutex_unlock (&self->shifted_lock);
  }
  return data;
}

/* Before the driver gets the memory back: from then on it may give the address to another thread. Whoever frees a block
 * sees the count that its allocation left, by what handed the block over. */
static void *
unshift (GpuCudaDevice *self, void *data)
{
  void *base = data;

  if (G_LIKELY (atomic_load_explicit (&self->n_shifted, memory_order_relaxed) == 0))
    return data;
  pthread_mutex_lock (&self->shifted_lock);
  if (g_hash_table_steal_extended (self->shifted, data, NULL, &base))
    atomic_fetch_sub_explicit (&self->n_shifted, 1, memory_order_relaxed);
  else
    base = data;
  pthread_mutex_unlock (&self->shifted_lock);
  return base;
}

bool
gpu_cuda_alloc (GpuDevice *device, GpuMemoryKind kind, size_t size, size_t alignment, void *stream, void **data,
                GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  const GpuCudaDriver *cu = self->cu;
  size_t padding = alignment > DRIVER_ALIGNMENT ? alignment - DRIVER_ALIGNMENT : 0;
  CUdeviceptr address = 0;
  void *base = NULL;
  const char *call = NULL;
  CUresult result = CUDA_SUCCESS;

  if (size > SIZE_MAX - padding) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY,
                 "%zu bytes at an alignment of %zu are more than any device has: ask for less", size, alignment);
    return false;
  }
  if (kind == GPU_MEMORY_MANAGED && !self->has_managed) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "%s has no managed memory that the host can use while the GPU works: use another memory kind",
                 self->label);
    return false;
  }
  if (!gpu_cuda_enter (self, error))
    return false;

  switch (kind) {
  case GPU_MEMORY_STREAM_ORDERED:
    call = "cuMemAllocFromPoolAsync";
    result = cu->MemAllocFromPoolAsync (&address, size + padding, self->pool, stream);
    break;
  case GPU_MEMORY_DEVICE:
    call = "cuMemAlloc";
    result = cu->MemAlloc (&address, size + padding);
    break;
  case GPU_MEMORY_MANAGED:
    call = "cuMemAllocManaged";
    result = cu->MemAllocManaged (&address, size + padding, CU_MEM_ATTACH_GLOBAL);
    break;
  case GPU_MEMORY_HOST:
    call = "cuMemHostAlloc";
    result = cu->MemHostAlloc (&base, size + padding, CU_MEMHOSTALLOC_PORTABLE);
    break;
  }
  if (!gpu_cuda_leave_with (self, result, call, error))
    return false;
  *data = shift (self, base ? base : (void *)(uintptr_t)address, alignment);
  return true;
}

bool
gpu_cuda_free (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size, void *stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  void *base = unshift (self, data);
  const char *call = NULL;
  CUresult result = CUDA_SUCCESS;

  if (!gpu_cuda_enter (self, error))
    return false;
  switch (kind) {
  case GPU_MEMORY_STREAM_ORDERED:
    call = "cuMemFreeAsync";
    result = self->cu->MemFreeAsync ((CUdeviceptr)(uintptr_t)base, stream);
    break;
  case GPU_MEMORY_DEVICE:
  case GPU_MEMORY_MANAGED:
    call = "cuMemFree";
    result = self->cu->MemFree ((CUdeviceptr)(uintptr_t)base);
    break;
  case GPU_MEMORY_HOST:
    call = "cuMemFreeHost";
    result = self->cu->MemFreeHost (base);
    break;
  }
  return gpu_cuda_leave_with (self, result, call, error);
}

uint64_t
gpu_cuda_trim (GpuDevice *device, uint64_t keep)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  const GpuCudaDriver *cu = self->cu;
  cuuint64_t reserved = 0, used = 0;

  if (!gpu_cuda_enter (self, NULL))
    return 0;
  cu->MemPoolTrimTo (self->pool, keep);
  if (cu->MemPoolGetAttribute (self->pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS ||
      cu->MemPoolGetAttribute (self->pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) != CUDA_SUCCESS)
    reserved = 0;
  gpu_cuda_leave (self);
  return reserved > used + POOL_PIECE ? reserved - used - POOL_PIECE : 0;
}

/* For all contexts. Whatever the driver has against that memory (somebody registered it already, its pages are those of
 * a file) says nothing of the device. */
bool
gpu_cuda_pin (GpuDevice *device, void *data, size_t size, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  GError *reason = NULL;

  if (!gpu_cuda_enter (self, error))
    return false;
  if (gpu_cuda_leave_with (self, self->cu->MemHostRegister (data, size, CU_MEMHOSTREGISTER_PORTABLE),
                           "cuMemHostRegister", &reason))
    return true;
  if (reason->code == GPU_ERROR_DEVICE_LOST)
    reason->code = GPU_ERROR_UNSUPPORTED;
  g_propagate_error (error, reason);
  return false;
}

void
gpu_cuda_unpin (GpuDevice *device, void *data)
{
  GpuCudaDevice *self = gpu_cuda_device (device);

  if (!gpu_cuda_enter (self, NULL))
    return;
  self->cu->MemHostUnregister (data);
  gpu_cuda_leave (self);
}

/* A pool of our own: the settings of the default one are the application's. Of the three ways in which a pool reuses
 * memory across streams, following events and taking what is complete add no wait and stay on; internal dependencies
 * would make one stream wait for another unseen, and are turned off. */
bool
gpu_cuda_pool_create (GpuCudaDevice *self, GError **error)
{
  const GpuCudaDriver *cu = self->cu;
  CUmemPoolProps props = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
      .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = self->ordinal},
  };
  cuuint64_t threshold = UINT64_MAX;
  int off = 0;
  CUmemoryPool pool;

  if (!gpu_cuda_check (self, cu->MemPoolCreate (&pool, &props), "cuMemPoolCreate", error))
    return false;
  self->pool = pool;
  return gpu_cuda_check (self, cu->MemPoolSetAttribute (pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
                         "cuMemPoolSetAttribute", error) &&
         gpu_cuda_check (self, cu->MemPoolSetAttribute (pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off),
                         "cuMemPoolSetAttribute", error);
}
