/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Copies between CUDA devices. The stream is the destination's, and so is the context that is current; the driver is
 * told both contexts, since an address alone does not say in which of them a copy's other side was made.
 */
#include "cuda-priv.h"

/* That the driver does not let one GPU read another's memory is no error: there is the way through the host. */
static bool
refuse (const GpuCudaDevice *self, const GpuCudaDevice *source, CUresult result, const char *call, GError **error)
{
  g_autoptr (GError) reason = NULL;

  if (result == CUDA_SUCCESS)
    return true;
  gpu_cuda_set_error (&reason, self->cu, result, call, self->label);
  g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED, "%s cannot read %s's memory: %s", self->label, source->label,
               reason->message);
  return false;
}

/* The context is for memory of the application's and of cuMemAlloc(); the application may have opened it. A pool is
 * readable to whom it says, whatever contexts may do. It is never closed again, which does nobody any harm. */
static CUresult
enable (GpuCudaDevice *self, const GpuCudaDevice *source, const char **call)
{
  const CUmemAccessDesc access = {
      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = self->ordinal},
      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
  };
  CUresult result;

  *call = "cuCtxEnablePeerAccess";
  result = self->cu->CtxEnablePeerAccess (source->context, 0);
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
    return result;
  *call = "cuMemPoolSetAccess";
  return self->cu->MemPoolSetAccess (source->pool, &access, 1);
}

bool
gpu_cuda_peer_open (GpuDevice *device, GpuDevice *source_device, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device), *source = gpu_cuda_device (source_device);
  const char *call;
  int can_access = 0;
  CUresult result;

  if (self->ordinal == source->ordinal)
    return true; /* two contexts of one GPU, or one of both */
  result = self->cu->DeviceCanAccessPeer (&can_access, self->ordinal, source->ordinal);
  if (!refuse (self, source, result, "cuDeviceCanAccessPeer", error))
    return false;
  if (!can_access) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED, "%s cannot read %s's memory", self->label, source->label);
    return false;
  }
  if (!gpu_cuda_enter (self, error))
    return false;
  result = enable (self, source, &call);
  gpu_cuda_leave (self);
  return refuse (self, source, result, call, error);
}

static CUresult
copy_rows (GpuCudaDevice *self, const GpuCudaDevice *source, const GpuCopy *copy, CUstream stream)
{
  CUdeviceptr dst = (CUdeviceptr)(uintptr_t)copy->dst, src = (CUdeviceptr)(uintptr_t)copy->src;
  CUresult result = CUDA_SUCCESS;

  for (size_t y = 0; result == CUDA_SUCCESS && y < copy->rows; y++)
    result = self->cu->MemcpyPeerAsync (dst + y * copy->dst_stride, self->context, src + y * copy->src_stride,
                                        source->context, copy->row_bytes, stream);
  return result;
}

static CUresult
copy_pitched (GpuCudaDevice *self, const GpuCudaDevice *source, const GpuCopy *copy, CUstream stream)
{
  const CUDA_MEMCPY3D_PEER params = {
      .srcMemoryType = CU_MEMORYTYPE_DEVICE,
      .srcDevice = (CUdeviceptr)(uintptr_t)copy->src,
      .srcContext = source->context,
      .srcPitch = copy->src_stride,
      .srcHeight = copy->rows,
      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
      .dstDevice = (CUdeviceptr)(uintptr_t)copy->dst,
      .dstContext = self->context,
      .dstPitch = copy->dst_stride,
      .dstHeight = copy->rows,
      .WidthInBytes = copy->row_bytes,
      .Height = copy->rows,
      .Depth = 1,
  };

  return self->cu->Memcpy3DPeerAsync (&params, stream);
}

bool
gpu_cuda_peer_copy (GpuDevice *device, GpuDevice *source_device, const GpuCopy *copy, void *stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device), *source = gpu_cuda_device (source_device);
  bool is_contiguous = copy->rows == 1 || (copy->src_stride == copy->row_bytes && copy->dst_stride == copy->row_bytes);
  const char *call = "cuMemcpyPeerAsync";
  CUresult result;

  if (copy->rows == 0 || copy->row_bytes == 0)
    return true;
  if (!gpu_cuda_enter (self, error))
    return false;
  if (is_contiguous) {
    result =
        self->cu->MemcpyPeerAsync ((CUdeviceptr)(uintptr_t)copy->dst, self->context, (CUdeviceptr)(uintptr_t)copy->src,
                                   source->context, copy->row_bytes * copy->rows, stream);
  } else if (MAX (copy->src_stride, copy->dst_stride) > GPU_CUDA_MAX_PITCH) {
    result = copy_rows (self, source, copy, stream);
  } else {
    call = "cuMemcpy3DPeerAsync";
    result = copy_pitched (self, source, copy, stream);
  }
  return gpu_cuda_leave_with (self, result, call, error);
}
