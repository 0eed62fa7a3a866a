/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The peers on a GPU: the driver's pool, retaining what it has or not, and the driver's plain allocation. Each has a
 * stream of its own.
 */
#include "peer.h"

#include "bench.h"

#include <gpucache/cuda-priv.h>

typedef struct {
  Peer base;
  const GpuCudaDriver *cu;
  CUmemoryPool pool; /* NULL for plain allocation */
  CUstream stream;
} CudaPeer;

/* 0 if it does not say. */
static double
pool_reserved (const GpuCudaDriver *cu, CUmemoryPool pool)
{
  cuuint64_t bytes = 0;
  if (cu->MemPoolGetAttribute (pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &bytes) != CUDA_SUCCESS)
    return 0;
  return (double)bytes;
}

static void
must (CudaPeer *self, CUresult result, const char *call)
{
  GError *error = NULL;
  if (result != CUDA_SUCCESS)
    gpu_cuda_set_error (&error, self->cu, result, call, self->base.name);
  bench_check (error);
}

static void *
pool_alloc (Peer *peer, size_t size)
{
  CudaPeer *self = (CudaPeer *)peer;
  CUdeviceptr data = 0;
  must (self, self->cu->MemAllocFromPoolAsync (&data, size, self->pool, self->stream), "cuMemAllocFromPoolAsync");
  return (void *)(uintptr_t)data;
}

static void
pool_free (Peer *peer, void *data)
{
  CudaPeer *self = (CudaPeer *)peer;
  must (self, self->cu->MemFreeAsync ((CUdeviceptr)(uintptr_t)data, self->stream), "cuMemFreeAsync");
}

/* It is at a synchronisation that a pool gives back what it does not retain. */
static void
pool_free_and_synchronize (Peer *peer, void *data)
{
  CudaPeer *self = (CudaPeer *)peer;
  pool_free (peer, data);
  must (self, self->cu->StreamSynchronize (self->stream), "cuStreamSynchronize");
}

static double
pool_peak (Peer *peer)
{
  return pool_reserved (((CudaPeer *)peer)->cu, ((CudaPeer *)peer)->pool);
}

static void *
plain_alloc (Peer *peer, size_t size)
{
  CudaPeer *self = (CudaPeer *)peer;
  CUdeviceptr data = 0;
  must (self, self->cu->MemAlloc (&data, size), "cuMemAlloc");
  return (void *)(uintptr_t)data;
}

static void
plain_free (Peer *peer, void *data)
{
  CudaPeer *self = (CudaPeer *)peer;
  must (self, self->cu->MemFree ((CUdeviceptr)(uintptr_t)data), "cuMemFree");
}

static void
cuda_write (Peer *peer, void *data, size_t size)
{
  CudaPeer *self = (CudaPeer *)peer;
  must (self, self->cu->MemsetD8Async ((CUdeviceptr)(uintptr_t)data, 0x5a, size, self->stream), "cuMemsetD8Async");
}

static void
cuda_destroy (Peer *peer)
{
  CudaPeer *self = (CudaPeer *)peer;
  self->cu->StreamSynchronize (self->stream);
  self->cu->StreamDestroy (self->stream);
  if (self->pool)
    self->cu->MemPoolDestroy (self->pool);
  g_free (self);
}

static CudaPeer *
cuda_peer_new (const GpuCudaDriver *cu, const char *name)
{
  CudaPeer *self = g_new0 (CudaPeer, 1);
  self->cu = cu;
  self->base =
      (Peer){.name = name, .alloc = plain_alloc, .free = plain_free, .write = cuda_write, .destroy = cuda_destroy};
  must (self, cu->StreamCreate (&self->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return self;
}

static CudaPeer *
pool_peer_new (const GpuCudaDriver *cu, const char *name, bool retains)
{
  CudaPeer *self = cuda_peer_new (cu, name);
  self->base.alloc = pool_alloc;
  self->base.free = retains ? pool_free : pool_free_and_synchronize;
  self->base.peak = pool_peak;

  CUdevice ordinal;
  must (self, cu->CtxGetDevice (&ordinal), "cuCtxGetDevice");
  const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal}};
  must (self, cu->MemPoolCreate (&self->pool, &props), "cuMemPoolCreate");
  cuuint64_t threshold = retains ? UINT64_MAX : 0;
  must (self, cu->MemPoolSetAttribute (self->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
        "cuMemPoolSetAttribute");
  return self;
}

void
peers_add_cuda (GPtrArray *peers, GpuDevice *device)
{
  GError *error = NULL;
  const GpuCudaDriver *cu = gpu_cuda_driver_get (&error);
  bench_check (error);
  if (cu->CtxPushCurrent (gpu_device_cuda_context (device)) != CUDA_SUCCESS)
    bench_fail ("the context of %s cannot be made current", gpu_device_name (device));
  g_ptr_array_add (peers, pool_peer_new (cu, "cuMemAllocFromPoolAsync, cuMemFreeAsync; pool retains", true));
  g_ptr_array_add (peers, pool_peer_new (cu, "the same; pool does not retain, synchronised", false));
  g_ptr_array_add (peers, cuda_peer_new (cu, "cuMemAlloc, cuMemFree"));
}

double
peers_cuda_device_peak (GpuDevice *device)
{
  return pool_reserved (gpu_cuda_device (device)->cu, gpu_cuda_device (device)->pool);
}
