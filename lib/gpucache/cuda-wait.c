/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Waits of the host for an event of the CUDA device, asleep: a pipeline that the GPU limits waits at each frame in each
 * element (rule 27), and threads that spin there take the cores that decoders need.
 *
 * Events that can be slept for (CU_EVENT_BLOCKING_SYNC) interrupt the host when they complete. On an H200 with driver
 * 580 each record of one cost 0.9 us more, and only 55 of them found room behind work that does not proceed, where 1019
 * launches do, after which the launch itself waits. Few events are ever waited for by the host. So events are plain,
 * and who waits for one has a stream of its own wait for it, on which it records an event to sleep for. The primary
 * context's scheduling flags, which would let all waits sleep, belong to the application.
 */
#include "cuda-priv.h"

struct GpuCudaWaiter {
  CUstream stream;
  CUevent event;
  GpuCudaWaiter *next;
};

static CUresult
new_waiter (GpuCudaDevice *self, GpuCudaWaiter **waiter, const char **call)
{
  const GpuCudaDriver *cu = self->cu;
  GpuCudaWaiter made = {0};
  CUresult result;

  *call = "cuStreamCreate";
  result = cu->StreamCreate (&made.stream, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS)
    return result;
  *call = "cuEventCreate";
  result = cu->EventCreate (&made.event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
  if (result != CUDA_SUCCESS) {
    cu->StreamDestroy (made.stream);
    return result;
  }
  *waiter = g_memdup2 (&made, sizeof made);
  return CUDA_SUCCESS;
}

/* One for each thread that waits at the same time: a stream's waits are done in turn. */
static CUresult
take_waiter (GpuCudaDevice *self, GpuCudaWaiter **waiter, const char **call)
{
  pthread_mutex_lock (&self->waiters_lock);
  *waiter = self->waiters;
  if (*waiter)
    self->waiters = (*waiter)->next;
  pthread_mutex_unlock (&self->waiters_lock);
  return *waiter ? CUDA_SUCCESS : new_waiter (self, waiter, call);
}

static void
give_waiter (GpuCudaDevice *self, GpuCudaWaiter *waiter)
{
  pthread_mutex_lock (&self->waiters_lock);
  waiter->next = self->waiters;
  self->waiters = waiter;
  pthread_mutex_unlock (&self->waiters_lock);
}

static CUresult
sleep_until (GpuCudaDevice *self, CUevent event, const char **call)
{
  const GpuCudaDriver *cu = self->cu;
  GpuCudaWaiter *waiter;
  CUresult result = take_waiter (self, &waiter, call);

  if (result != CUDA_SUCCESS)
    return result;
  *call = "cuStreamWaitEvent";
  result = cu->StreamWaitEvent (waiter->stream, event, CU_EVENT_WAIT_DEFAULT);
  if (result == CUDA_SUCCESS) {
    *call = "cuEventRecord";
    result = cu->EventRecord (waiter->event, waiter->stream);
  }
  if (result == CUDA_SUCCESS) {
    *call = "cuEventSynchronize";
    result = cu->EventSynchronize (waiter->event);
  }
  give_waiter (self, waiter);
  return result;
}

bool
gpu_cuda_event_synchronize (GpuDevice *device, void *event, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  const char *call = "cuEventQuery";
  CUresult result;

  if (!gpu_cuda_enter (self, error))
    return false;
  result = self->cu->EventQuery (event);
  if (result == CUDA_ERROR_NOT_READY)
    result = sleep_until (self, event, &call);
  return gpu_cuda_leave_with (self, result, call, error);
}

void
gpu_cuda_waiters_free (GpuCudaDevice *self)
{
  for (GpuCudaWaiter *waiter = self->waiters, *next; waiter; waiter = next) {
    next = waiter->next;
    self->cu->EventDestroy (waiter->event);
    self->cu->StreamDestroy (waiter->stream);
    g_free (waiter);
  }
  self->waiters = NULL;
}
