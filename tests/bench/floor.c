/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See floor.h.
 */
#include "floor.h"

#include "bench.h"

#include <gpucache/testing.h>

#include <string.h>

#ifdef GPU_HAVE_CUDA
#include <gpucache/cuda-kernels.h>

#include <dlfcn.h>

extern const GpuCudaBinary bench_cuda_binaries[];

/* What is needed of the driver: the library keeps its own table to itself. */
#define ENTRIES(ENTRY)                                                                                                 \
  ENTRY (GetErrorName, 6000, "cuGetErrorName")                                                                         \
  ENTRY (CtxGetDevice, 2000, "cuCtxGetDevice")                                                                         \
  ENTRY (CtxCreate, 3020, "cuCtxCreate_v2")                                                                            \
  ENTRY (CtxDestroy, 4000, "cuCtxDestroy_v2")                                                                          \
  ENTRY (CtxPushCurrent, 4000, "cuCtxPushCurrent_v2")                                                                  \
  ENTRY (CtxPopCurrent, 4000, "cuCtxPopCurrent_v2")                                                                    \
  ENTRY (ModuleLoadData, 2000, "cuModuleLoadData")                                                                     \
  ENTRY (ModuleUnload, 2000, "cuModuleUnload")                                                                         \
  ENTRY (ModuleGetFunction, 2000, "cuModuleGetFunction")                                                               \
  ENTRY (LaunchKernel, 4000, "cuLaunchKernel")                                                                         \
  ENTRY (StreamSynchronize, 2000, "cuStreamSynchronize")                                                               \
  ENTRY (EventCreate, 2000, "cuEventCreate")                                                                           \
  ENTRY (EventDestroy, 4000, "cuEventDestroy_v2")                                                                      \
  ENTRY (EventRecord, 2000, "cuEventRecord")                                                                           \
  ENTRY (EventQuery, 2000, "cuEventQuery")                                                                             \
  ENTRY (EventSynchronize, 2000, "cuEventSynchronize")                                                                 \
  ENTRY (EventElapsedTime, 2000, "cuEventElapsedTime")
#define FIELD(name, version, symbol) PFN_cu##name##_v##version name;

typedef struct {
  ENTRIES (FIELD)
} Driver;

#undef FIELD
#endif

struct Floor {
  GpuDevice *device;
#ifdef GPU_HAVE_CUDA
  Driver *cu;    /* NULL: the CPU device */
  CUcontext own; /* a context of its own, in which the device is; or NULL */
  CUmodule module;
  CUfunction copy, nothing, turn[3];
  CUevent begin, end, plain; /* plain: without a time */
  unsigned next;
#endif
};

#ifdef GPU_HAVE_CUDA
static void
must (Floor *self, CUresult result, const char *call)
{
  const char *name = NULL;
  if (result == CUDA_SUCCESS)
    return;
  self->cu->GetErrorName (result, &name);
  bench_fail ("%s failed on %s: %s", call, gpu_device_name (self->device), name ? name : "an unknown error");
}

static void
load_driver (Driver *cu)
{
  void *library = dlopen ("libcuda.so.1", RTLD_NOW);
  if (!library)
    bench_fail ("the driver cannot be loaded: %s", dlerror ());
#define LOAD(name, version, symbol)                                                                                    \
  *(void **)&cu->name = dlsym (library, symbol);                                                                       \
  if (!cu->name)                                                                                                       \
    bench_fail ("the driver has no %s()", symbol);
  ENTRIES (LOAD)
#undef LOAD
}

/* With the context current, which it stays on this thread. */
static void
open_cuda (Floor *self)
{
  self->cu = g_new0 (Driver, 1);
  load_driver (self->cu);
  must (self, self->cu->CtxPushCurrent (gpu_device_cuda_context (self->device)), "cuCtxPushCurrent");
  must (self, self->cu->ModuleLoadData (&self->module, bench_cuda_binaries[0].data), "cuModuleLoadData");
  must (self, self->cu->ModuleGetFunction (&self->copy, self->module, "bench_floor_copy"), "cuModuleGetFunction");
  must (self, self->cu->ModuleGetFunction (&self->nothing, self->module, "bench_floor_nothing"), "cuModuleGetFunction");
  static const char *const turns[] = {"bench_floor_turn_0", "bench_floor_turn_1", "bench_floor_turn_2"};
  for (unsigned i = 0; i < G_N_ELEMENTS (turns); i++)
    must (self, self->cu->ModuleGetFunction (&self->turn[i], self->module, turns[i]), "cuModuleGetFunction");
  must (self, self->cu->EventCreate (&self->plain, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC), "cuEventCreate");
  must (self, self->cu->EventCreate (&self->begin, CU_EVENT_DEFAULT), "cuEventCreate");
  must (self, self->cu->EventCreate (&self->end, CU_EVENT_DEFAULT), "cuEventCreate");
}
#endif

Floor *
floor_new (GpuDevice *device)
{
  Floor *self = g_new0 (Floor, 1);
  self->device = gpu_device_ref (device);
#ifdef GPU_HAVE_CUDA
  if (gpu_device_cuda_context (device))
    open_cuda (self);
#endif
  return self;
}

Floor *
floor_new_in_own_context (Floor *like)
{
#ifdef GPU_HAVE_CUDA
  CUcontext context = NULL;
  CUdevice ordinal = 0;
  if (!like->cu || like->cu->CtxGetDevice (&ordinal) != CUDA_SUCCESS ||
      like->cu->CtxCreate (&context, 0, ordinal) != CUDA_SUCCESS)
    return NULL;
  /* A new context is the current one, and floor_new() enters it again. */
  like->cu->CtxPopCurrent (&context);
  GpuDevice *device = gpu_device_open_cuda_context (context, NULL);
  if (!device) {
    like->cu->CtxDestroy (context);
    return NULL;
  }
  Floor *self = floor_new (device);
  gpu_device_unref (device);
  self->own = context;
  self->cu->CtxPopCurrent (&context);
  return self;
#else
  return NULL;
#endif
}

GpuDevice *
floor_device (Floor *self)
{
  return self->device;
}

void
floor_free (Floor *self)
{
#ifdef GPU_HAVE_CUDA
  if (self->cu) {
    CUcontext context;
    floor_enter (self);
    self->cu->EventDestroy (self->begin);
    self->cu->EventDestroy (self->end);
    self->cu->EventDestroy (self->plain);
    self->cu->ModuleUnload (self->module);
    self->cu->CtxPopCurrent (&context);
  }
#endif
  gpu_device_unref (self->device);
#ifdef GPU_HAVE_CUDA
  if (self->own)
    self->cu->CtxDestroy (self->own);
  g_free (self->cu);
#endif
  g_free (self);
}

typedef struct {
  unsigned n;
  void *const *dst, *const *src;
  size_t write, read;
} Copies;

/* On the calling thread: the CPU device's own take one each, too. */
static void
copy_on_host (const Copies *copies)
{
  for (unsigned i = 0; i < copies->n; i++) {
    const size_t both = MIN (copies->write, copies->read);
    memcpy (copies->dst[i], copies->src[i], both);
    if (copies->write > both)
      memset ((char *)copies->dst[i] + both, 1, copies->write - both);
    /* What is only read comes to a sum that the compiler cannot know to be unused. */
    volatile uint64_t sum = 0;
    uint64_t part = 0;
    for (size_t at = both; at + 8 <= copies->read; at += 8) {
      uint64_t word;
      memcpy (&word, (const char *)copies->src[i] + at, sizeof word);
      part += word;
    }
    sum = part;
    (void)sum;
  }
}

void
floor_copy (Floor *self, GpuStream *stream, unsigned n, void *const *dst, size_t write, void *const *src, size_t read)
{
  const Copies copies = {n, dst, src, write, read};
#ifdef GPU_HAVE_CUDA
  if (self->cu) {
    FloorArgs args = {.n_read = (read + 15) / 16, .n_write = (write + 15) / 16};
    void *params[] = {&args};
    for (unsigned i = 0; i < n; i++) {
      args.frame[i].src = src[i];
      args.frame[i].dst = dst[i];
    }
    const unsigned blocks = (unsigned)((MAX (args.n_read, args.n_write) + FLOOR_BLOCK - 1) / FLOOR_BLOCK);
    must (self,
          self->cu->LaunchKernel (self->copy, blocks, n, 1, FLOOR_BLOCK, 1, 1, 0, gpu_stream_cuda_stream (stream),
                                  params, NULL),
          "cuLaunchKernel");
    return;
  }
#endif
  copy_on_host (&copies);
}

#ifdef GPU_HAVE_CUDA
static CUresult
launch_nothing (Floor *self, CUfunction function, void *args, CUstream stream)
{
  void *params[] = {args};
  return self->cu->LaunchKernel (function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static void
call_cuda (Floor *self, CUstream stream, FloorCall call)
{
  FloorArgs args = {0};
  FloorTurnArgs turn_args = {0};
  CUcontext context = NULL;
  CUresult result = CUDA_SUCCESS;
  switch (call) {
  case FLOOR_LAUNCH:
    result = launch_nothing (self, self->nothing, &args, stream);
    break;
  case FLOOR_TURN:
    result = launch_nothing (self, self->turn[self->next], &turn_args, stream);
    self->next = (self->next + 1) % G_N_ELEMENTS (self->turn);
    break;
  case FLOOR_RECORD:
    result = self->cu->EventRecord (self->plain, stream);
    break;
  case FLOOR_QUERY:
    result = self->cu->EventQuery (self->plain);
    result = result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
    break;
  case FLOOR_CONTEXT:
    result = self->cu->CtxPushCurrent (gpu_device_cuda_context (self->device));
    self->cu->CtxPopCurrent (&context);
    break;
  }
  must (self, result, "a call of the driver");
}
#endif

void
floor_enter (Floor *self)
{
#ifdef GPU_HAVE_CUDA
  if (self->cu)
    must (self, self->cu->CtxPushCurrent (gpu_device_cuda_context (self->device)), "cuCtxPushCurrent");
#endif
}

void
floor_call (Floor *self, GpuStream *stream, FloorCall call)
{
#ifdef GPU_HAVE_CUDA
  if (self->cu)
    call_cuda (self, gpu_stream_cuda_stream (stream), call);
#endif
}

void
floor_wait (Floor *self, GpuStream *stream)
{
#ifdef GPU_HAVE_CUDA
  if (self->cu)
    must (self, self->cu->StreamSynchronize (gpu_stream_cuda_stream (stream)), "cuStreamSynchronize");
#endif
}

static double
time_on_host (GpuStream *stream, void (*submit) (void *data, unsigned n), void *data, unsigned n)
{
  GError *error = NULL;
  const double start = bench_now ();
  submit (data, n);
  gpu_stream_synchronize (stream, &error);
  bench_check (error);
  return bench_now () - start;
}

double
floor_time (Floor *self, GpuStream *stream, void (*submit) (void *data, unsigned n), void *data, unsigned n)
{
#ifdef GPU_HAVE_CUDA
  if (self->cu) {
    GError *error = NULL;
    CUstream native = gpu_stream_cuda_stream (stream);
    float ms = 0;
    GpuGate *gate = gpu_gate_new (self->device, &error);
    bench_check (error);
    gpu_gate_hold (gate, stream, &error);
    bench_check (error);
    must (self, self->cu->EventRecord (self->begin, native), "cuEventRecord");
    submit (data, n);
    must (self, self->cu->EventRecord (self->end, native), "cuEventRecord");
    gpu_gate_free (gate);
    must (self, self->cu->EventSynchronize (self->end), "cuEventSynchronize");
    must (self, self->cu->EventElapsedTime (&ms, self->begin, self->end), "cuEventElapsedTime");
    return (double)ms * 1e6;
  }
#endif
  return time_on_host (stream, submit, data, n);
}
