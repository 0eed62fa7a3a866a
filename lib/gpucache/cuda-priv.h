/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the files of the CUDA device share: its struct, and how a driver call is made on its context.
 *
 * Every function makes the device's context current for its driver calls and restores what the thread had. That costs
 * 0.03 us, less than asking what is current and then deciding, and leaves an application's own CUDA code undisturbed.
 */
#pragma once

#include "device-priv.h"
#include "cuda-driver.h"
#include "cuda-kernels.h"

/** The widest rows that the driver's two-dimensional copies and fills take; a row a call beyond that. */
#define GPU_CUDA_MAX_PITCH INT32_MAX

/** A word that the GPU reaches by its host address, as all pinned memory is under unified addressing. */
typedef struct {
  _Atomic uint32_t opened;
} GpuCudaGate;

typedef struct {
  GpuDevice base;
  const GpuCudaDriver *cu;
  char *label; /* for messages: "cuda:0 (NVIDIA H200)" */
  CUdevice ordinal;
  CUcontext context;
  bool is_primary;
  bool has_managed;
  CUmemoryPool pool;
  GpuCudaKernels *kernels;

  /* Memory of more than the driver's alignment: from what the caller got to what the driver gave. */
  pthread_mutex_t shifted_lock;
  GHashTable *shifted;
  atomic_uint n_shifted;

  /* Pinned when the first gate is made, since pinning may wait for a stream that a gate holds. */
  _Atomic (GpuCudaGate *) gates;
  atomic_uint_least64_t gates_used; /* a bit for each */
} GpuCudaDevice;

static inline GpuCudaDevice *
gpu_cuda_device (GpuDevice *device)
{
  return (GpuCudaDevice *)device;
}

static inline bool
gpu_cuda_check (GpuCudaDevice *self, CUresult result, const char *call, GError **error)
{
  if (G_LIKELY (result == CUDA_SUCCESS))
    return true;
  gpu_cuda_set_error (error, self->cu, result, call, self->label);
  return false;
}

/** Makes the device's context current until gpu_cuda_leave(). */
static inline bool
gpu_cuda_enter (GpuCudaDevice *self, GError **error)
{
  return gpu_cuda_check (self, self->cu->CtxPushCurrent (self->context), "cuCtxPushCurrent", error);
}

static inline void
gpu_cuda_leave (GpuCudaDevice *self)
{
  CUcontext context;

  self->cu->CtxPopCurrent (&context);
}

/** Leaves, and says how the call in between went. */
static inline bool
gpu_cuda_leave_with (GpuCudaDevice *self, CUresult result, const char *call, GError **error)
{
  gpu_cuda_leave (self);
  return gpu_cuda_check (self, result, call, error);
}

/** The pool that stream-ordered memory comes from; it goes with the device. */
bool gpu_cuda_pool_create (GpuCudaDevice *self, GError **error);

/* The seam's functions, as GpuDeviceFuncs documents them. */
bool gpu_cuda_memory_info (GpuDevice *device, uint64_t *free_bytes, uint64_t *total_bytes, GError **error);
bool gpu_cuda_alloc (GpuDevice *device, GpuMemoryKind kind, size_t size, size_t alignment, void *stream, void **data,
                     GError **error);
bool gpu_cuda_free (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size, void *stream, GError **error);
uint64_t gpu_cuda_trim (GpuDevice *device, uint64_t keep);
bool gpu_cuda_pin (GpuDevice *device, void *data, size_t size, GError **error);
void gpu_cuda_unpin (GpuDevice *device, void *data);

bool gpu_cuda_stream_create (GpuDevice *device, void **stream, GError **error);
void gpu_cuda_stream_destroy (GpuDevice *device, void *stream);
bool gpu_cuda_stream_synchronize (GpuDevice *device, void *stream, GError **error);
bool gpu_cuda_synchronize (GpuDevice *device, GError **error);
bool gpu_cuda_event_create (GpuDevice *device, void **event, GError **error);
void gpu_cuda_event_destroy (GpuDevice *device, void *event);
bool gpu_cuda_event_record (GpuDevice *device, void *event, void *stream, GError **error);
GpuStatus gpu_cuda_event_query (GpuDevice *device, void *event, GError **error);
bool gpu_cuda_event_synchronize (GpuDevice *device, void *event, GError **error);
bool gpu_cuda_stream_wait (GpuDevice *device, void *stream, void *event, GError **error);
bool gpu_cuda_copy (GpuDevice *device, const GpuCopy *copy, GpuCopyKind kind, void *stream, GError **error);
bool gpu_cuda_prefetch (GpuDevice *device, void *data, size_t size, bool to_host, void *stream, GError **error);
bool gpu_cuda_peer_open (GpuDevice *device, GpuDevice *source, GError **error);
bool gpu_cuda_peer_copy (GpuDevice *device, GpuDevice *source, const GpuCopy *copy, void *stream, GError **error);
bool gpu_cuda_fill (GpuDevice *device, const GpuCopy *dst_only, uint8_t value, void *stream, GError **error);
bool gpu_cuda_launch (GpuDevice *device, const GpuKernel *kernel, const void *args, GpuExtent extent, void *stream,
                      GError **error);
bool gpu_cuda_launch_table (GpuDevice *device, const GpuKernel *kernel, const void *args, const void *table, uint32_t n,
                            GpuExtent extent, void *stream, GError **error);
bool gpu_cuda_host_call (GpuDevice *device, void (*func) (void *data), void *data, void *stream, GError **error);

bool gpu_cuda_gate_create (GpuDevice *device, void **gate, GError **error);
bool gpu_cuda_gate_hold (GpuDevice *device, void *gate, void *stream, GError **error);
void gpu_cuda_gate_open (GpuDevice *device, void *gate);
void gpu_cuda_gate_destroy (GpuDevice *device, void *gate);
