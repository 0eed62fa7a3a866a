/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Streams and events of the CUDA device, and what is submitted to them.
 */
#include "cuda-priv.h"

#include "table.h"

/* CUDA's bounds for the y and z of a grid; that of x is beyond any picture. */
#define MAX_GRID_YZ 65535

bool
gpu_cuda_stream_create (GpuDevice *device, void **stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  CUstream created = NULL;
  CUresult result;

  if (!gpu_cuda_enter (self, error))
    return false;
  result = self->cu->StreamCreate (&created, CU_STREAM_NON_BLOCKING);
  *stream = created;
  return gpu_cuda_leave_with (self, result, "cuStreamCreate", error);
}

void
gpu_cuda_stream_destroy (GpuDevice *device, void *stream)
{
  GpuCudaDevice *self = gpu_cuda_device (device);

  if (!gpu_cuda_enter (self, NULL))
    return;
  self->cu->StreamDestroy (stream);
  gpu_cuda_leave (self);
}

bool
gpu_cuda_stream_synchronize (GpuDevice *device, void *stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);

  if (!gpu_cuda_enter (self, error))
    return false;
  return gpu_cuda_leave_with (self, self->cu->StreamSynchronize (stream), "cuStreamSynchronize", error);
}

bool
gpu_cuda_synchronize (GpuDevice *device, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);

  if (!gpu_cuda_enter (self, error))
    return false;
  return gpu_cuda_leave_with (self, self->cu->CtxSynchronize (), "cuCtxSynchronize", error);
}

bool
gpu_cuda_event_create (GpuDevice *device, void **event, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  CUevent created = NULL;
  CUresult result;

  if (!gpu_cuda_enter (self, error))
    return false;
  result = self->cu->EventCreate (&created, CU_EVENT_DISABLE_TIMING);
  *event = created;
  return gpu_cuda_leave_with (self, result, "cuEventCreate", error);
}

void
gpu_cuda_event_destroy (GpuDevice *device, void *event)
{
  GpuCudaDevice *self = gpu_cuda_device (device);

  if (!gpu_cuda_enter (self, NULL))
    return;
  self->cu->EventDestroy (event);
  gpu_cuda_leave (self);
}

bool
gpu_cuda_event_record (GpuDevice *device, void *event, void *stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);

  if (!gpu_cuda_enter (self, error))
    return false;
  return gpu_cuda_leave_with (self, self->cu->EventRecord (event, stream), "cuEventRecord", error);
}

GpuStatus
gpu_cuda_event_query (GpuDevice *device, void *event, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  CUresult result;

  if (!gpu_cuda_enter (self, error))
    return GPU_STATUS_FAILED;
  result = self->cu->EventQuery (event);
  if (result == CUDA_ERROR_NOT_READY) {
    gpu_cuda_leave (self);
    return GPU_STATUS_PENDING;
  }
  return gpu_cuda_leave_with (self, result, "cuEventQuery", error) ? GPU_STATUS_COMPLETE : GPU_STATUS_FAILED;
}

bool
gpu_cuda_stream_wait (GpuDevice *device, void *stream, void *event, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);

  if (!gpu_cuda_enter (self, error))
    return false;
  return gpu_cuda_leave_with (self, self->cu->StreamWaitEvent (stream, event, CU_EVENT_WAIT_DEFAULT),
                              "cuStreamWaitEvent", error);
}

/* The driver finds out itself whether a unified address is the GPU's, managed or pinned; pageable memory is named as
 * such, since in two dimensions it is not found out everywhere. */
static CUresult
copy_2d (GpuCudaDevice *self, const GpuCopy *copy, GpuCopyKind kind, CUstream stream)
{
  CUDA_MEMCPY2D params = {
      .srcMemoryType = kind == GPU_COPY_FROM_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED,
      .srcHost = copy->src,
      .srcDevice = (CUdeviceptr)(uintptr_t)copy->src,
      .srcPitch = copy->src_stride,
      .dstMemoryType = kind == GPU_COPY_TO_HOST ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED,
      .dstHost = copy->dst,
      .dstDevice = (CUdeviceptr)(uintptr_t)copy->dst,
      .dstPitch = copy->dst_stride,
      .WidthInBytes = copy->row_bytes,
      .Height = copy->rows,
  };

  return self->cu->Memcpy2DAsync (&params, stream);
}

static CUresult
copy_rows (GpuCudaDevice *self, const GpuCopy *copy, CUstream stream)
{
  CUdeviceptr dst = (CUdeviceptr)(uintptr_t)copy->dst, src = (CUdeviceptr)(uintptr_t)copy->src;
  CUresult result = CUDA_SUCCESS;

  for (size_t y = 0; result == CUDA_SUCCESS && y < copy->rows; y++)
    result = self->cu->MemcpyAsync (dst + y * copy->dst_stride, src + y * copy->src_stride, copy->row_bytes, stream);
  return result;
}

/* Synchronises after pageable memory, although the driver mostly returns late enough by itself: where the GPU reads
 * pageable memory directly it does not. */
bool
gpu_cuda_copy (GpuDevice *device, const GpuCopy *copy, GpuCopyKind kind, void *stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  bool is_contiguous = copy->rows == 1 || (copy->src_stride == copy->row_bytes && copy->dst_stride == copy->row_bytes);
  const char *call;
  CUresult result;

  if (copy->rows == 0 || copy->row_bytes == 0)
    return true;
  if (!gpu_cuda_enter (self, error))
    return false;
  if (is_contiguous) {
    call = "cuMemcpyAsync";
    result = self->cu->MemcpyAsync ((CUdeviceptr)(uintptr_t)copy->dst, (CUdeviceptr)(uintptr_t)copy->src,
                                    copy->row_bytes * copy->rows, stream);
  } else if (MAX (copy->src_stride, copy->dst_stride) > GPU_CUDA_MAX_PITCH) {
    call = "cuMemcpyAsync";
    result = copy_rows (self, copy, stream);
  } else {
    call = "cuMemcpy2DAsync";
    result = copy_2d (self, copy, kind, stream);
  }
  if (result == CUDA_SUCCESS && kind != GPU_COPY_DEVICE) {
    call = "cuStreamSynchronize";
    result = self->cu->StreamSynchronize (stream);
  }
  return gpu_cuda_leave_with (self, result, call, error);
}

bool
gpu_cuda_prefetch (GpuDevice *device, void *data, size_t size, bool to_host, void *stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  CUdevice to = to_host ? CU_DEVICE_CPU : self->ordinal;

  if (!self->cu->MemPrefetchAsync)
    return true;
  if (!gpu_cuda_enter (self, error))
    return false;
  return gpu_cuda_leave_with (self, self->cu->MemPrefetchAsync ((CUdeviceptr)(uintptr_t)data, size, to, stream),
                              "cuMemPrefetchAsync", error);
}

bool
gpu_cuda_fill (GpuDevice *device, const GpuCopy *dst_only, uint8_t value, void *stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  CUdeviceptr dst = (CUdeviceptr)(uintptr_t)dst_only->dst;
  size_t row_bytes = dst_only->row_bytes, rows = dst_only->rows, stride = dst_only->dst_stride;
  const char *call;
  CUresult result = CUDA_SUCCESS;

  if (rows == 0 || row_bytes == 0)
    return true;
  if (!gpu_cuda_enter (self, error))
    return false;
  if (rows == 1 || stride == row_bytes) {
    call = "cuMemsetD8Async";
    result = self->cu->MemsetD8Async (dst, value, row_bytes * rows, stream);
  } else if (stride > GPU_CUDA_MAX_PITCH) {
    call = "cuMemsetD8Async";
    for (size_t y = 0; result == CUDA_SUCCESS && y < rows; y++)
      result = self->cu->MemsetD8Async (dst + y * stride, value, row_bytes, stream);
  } else {
    call = "cuMemsetD2D8Async";
    result = self->cu->MemsetD2D8Async (dst, stride, value, row_bytes, rows, stream);
  }
  return gpu_cuda_leave_with (self, result, call, error);
}

static uint32_t
blocks (uint32_t extent, uint32_t block)
{
  return extent / block + (extent % block != 0);
}

/* @name: the function's; @arg: its one argument. */
static bool
launch (GpuDevice *device, const char *name, GpuExtent block, const void *arg, GpuExtent extent, void *stream,
        GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  GpuExtent grid;
  void *params[] = {(void *)arg};
  CUfunction function;
  CUresult result;

  if (extent.x == 0 || extent.y == 0 || extent.z == 0)
    return true;
  grid = (GpuExtent){blocks (extent.x, block.x), blocks (extent.y, block.y), blocks (extent.z, block.z)};
  if (grid.y > MAX_GRID_YZ || grid.z > MAX_GRID_YZ) {
    g_set_error (
        error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
        "%u x %u x %u work items of \"%s\" are more than %s takes in one launch: use smaller images, or fewer of them",
        extent.x, extent.y, extent.z, name, self->label);
    return false;
  }

  if (!gpu_cuda_enter (self, error))
    return false;
  function = gpu_cuda_kernels_find (self->kernels, name, error);
  if (!function) {
    gpu_cuda_leave (self);
    return false;
  }
  result =
      self->cu->LaunchKernel (function, grid.x, grid.y, grid.z, block.x, block.y, block.z, 0, stream, params, NULL);
  return gpu_cuda_leave_with (self, result, "cuLaunchKernel", error);
}

bool
gpu_cuda_launch (GpuDevice *device, const GpuKernel *kernel, const void *args, GpuExtent extent, void *stream,
                 GError **error)
{
  return launch (device, kernel->name, kernel->block, args, extent, stream, error);
}

bool
gpu_cuda_launch_table (GpuDevice *device, const GpuKernel *kernel, const void *args, const void *table, uint32_t n,
                       GpuExtent extent, void *stream, GError **error)
{
  struct {
    const void *entries;
    uint64_t reserved;
    uint8_t first[GPU_TABLE_BYTES - GPU_TABLE_HEAD_BYTES];
  } parameter;

  G_STATIC_ASSERT (G_STRUCT_OFFSET (__typeof__ (parameter), first) == GPU_TABLE_HEAD_BYTES);
  parameter.entries = table;
  const size_t size = kernel->param_size ? kernel->param_size : kernel->args_size;
  const uint32_t first = (uint32_t)MIN (n, GPU_TABLE_FIRST (size)), most = kernel->is_without_table ? first : n;

  for (uint32_t done = 0; done < n; done += extent.z) {
    extent.z = MIN (n - done, most);
    memcpy (parameter.first, (const uint8_t *)args + done * size, size * MIN (extent.z, first));
    if (!launch (device, kernel->table_name, kernel->block, &parameter, extent, stream, error))
      return false;
  }
  return true;
}

bool
gpu_cuda_host_call (GpuDevice *device, void (*func) (void *data), void *data, void *stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);

  if (!gpu_cuda_enter (self, error))
    return false;
  return gpu_cuda_leave_with (self, self->cu->LaunchHostFunc (stream, func, data), "cuLaunchHostFunc", error);
}
