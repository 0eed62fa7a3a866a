/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Waits of the host for an event of the CUDA device, asleep: a pipeline that the GPU limits waits at each frame in each
 * element (rule 27), and threads that spin there take the cores that decoders need.
 *
 * Events that can be slept for (CU_EVENT_BLOCKING_SYNC) interrupt the host when they complete. On an H200 with driver
 * 580 each record of one cost 0.9 us more, and only 55 of them found room behind work that does not proceed, where 1019
 * launches do, after which the launch itself waits. Few events are ever waited for by the host, so events are plain,
 * and who waits asks now and then. (A stream that waits for the event and is then slept for would share one of the
 * GPU's few queues with another stream, and hold that up or be held up by it.) The primary context's scheduling flags,
 * which would let the driver's own wait sleep, belong to the application.
 */
#include "cuda-priv.h"

#include <sched.h>
#include <time.h>

/* So long others are let go first. Then sleeps, so that a wait takes an eighth longer at most, and a sleep that the
 * system rounds up. */
#define YIELD_NS 50000
#define MOST_SLEEP_NS 100000

static int64_t
now_ns (void)
{
  struct timespec now;

  clock_gettime (CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void
let_time_pass (int64_t waited)
{
  const struct timespec sleep = {.tv_nsec = MIN (waited / 8, MOST_SLEEP_NS)};

  if (waited < YIELD_NS)
    sched_yield ();
  else
    nanosleep (&sleep, NULL);
}

bool
gpu_cuda_event_synchronize (GpuDevice *device, void *event, GError **error)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  CUresult result;

  if (!gpu_cuda_enter (self, error))
    return false;
  result = self->cu->EventQuery (event);
  for (int64_t start = now_ns (); result == CUDA_ERROR_NOT_READY; result = self->cu->EventQuery (event))
    let_time_pass (now_ns () - start);
  return gpu_cuda_leave_with (self, result, "cuEventQuery", error);
}
