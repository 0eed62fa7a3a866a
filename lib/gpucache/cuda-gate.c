/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Gates of the CUDA device: pinned words that streams wait for.
 */
#include "cuda-priv.h"

#define N_GATES 64

static GpuCudaGate *
get_gates (GpuCudaDevice *self, GError **error)
{
  GpuCudaGate *gates = atomic_load_explicit (&self->gates, memory_order_acquire);
  void *pinned = NULL;
  CUresult result;

  if (gates)
    return gates;
  if (!gpu_cuda_enter (self, error))
    return NULL;
  result = self->cu->MemHostAlloc (&pinned, N_GATES * sizeof (GpuCudaGate), CU_MEMHOSTALLOC_PORTABLE);
  if (result == CUDA_SUCCESS) {
    if (atomic_compare_exchange_strong_explicit (&self->gates, &gates, pinned, memory_order_acq_rel,
                                                 memory_order_acquire))
      gates = pinned;
    else
      self->cu->MemFreeHost (pinned);
  }
  return gpu_cuda_leave_with (self, result, "cuMemHostAlloc", error) ? gates : NULL;
}

bool
gpu_cuda_gate_create (GpuDevice *device, void **gate, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  GpuCudaGate *gates = get_gates (self, error);
  uint_least64_t used, taken;

  if (!gates)
    return false;
  used = atomic_load_explicit (&self->gates_used, memory_order_relaxed);
  do {
    taken = ~used & (used + 1); /* the lowest one that is free */
    if (!taken) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED, "%s has %d gates, all in use: free one first", self->label,
                   N_GATES);
      return false;
    }
  } while (!atomic_compare_exchange_weak_explicit (&self->gates_used, &used, used | taken, memory_order_acquire,
                                                   memory_order_relaxed));
  gates += __builtin_ctzll (taken);
  atomic_store_explicit (&gates->opened, 0, memory_order_relaxed);
  *gate = gates;
  return true;
}

bool
gpu_cuda_gate_hold (GpuDevice *device, void *gate, void *stream, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  CUresult result;

  if (!gpu_cuda_enter (self, error))
    return false;
  result = self->cu->StreamWaitValue32 (stream, (CUdeviceptr)(uintptr_t)gate, 1, CU_STREAM_WAIT_VALUE_GEQ);
  return gpu_cuda_leave_with (self, result, "cuStreamWaitValue32", error);
}

void
gpu_cuda_gate_open (GpuDevice *device, void *gate)
{
  GpuCudaGate *self = gate;

  atomic_store_explicit (&self->opened, 1, memory_order_release);
}

void
gpu_cuda_gate_destroy (GpuDevice *device, void *gate)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  GpuCudaGate *gates = atomic_load_explicit (&self->gates, memory_order_acquire);

  atomic_fetch_and_explicit (&self->gates_used, ~(UINT64_C (1) << ((GpuCudaGate *)gate - gates)), memory_order_release);
}
