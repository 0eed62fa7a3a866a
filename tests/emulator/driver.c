/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A CUDA driver in host memory, with two GPUs, that runs kernels: the library opens it in place of NVIDIA's, so that
 * tests of the CUDA device run where there is no GPU. Its streams are threads (stream.h), and its kernels those of the
 * library, compiled for the host (language.h, grid.h). It refuses calls that have no current context, and streams and
 * events outside of the context that they were made in.
 */
#include "context.h"
#include "launch.h"
#include "memory.h"
#include "stream.h"
#include "table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__ ((visibility ("default")))
#define FATBIN_MAGIC 0xba55ed50u
#define GPU_BYTES ((size_t)256 << 30)

/* By address, the handle of every pool and module. */
static char pool, module;

static atomic_size_t used[N_GPUS];

static CUresult
emulated_Init (unsigned flags)
{
  return CUDA_SUCCESS;
}

static const struct {
  CUresult result;
  const char *name;
  const char *string;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
};

static CUresult
emulated_GetErrorName (CUresult error, const char **name)
{
  for (size_t i = 0; i < G_N_ELEMENTS (errors); i++) {
    if (errors[i].result == error) {
      *name = errors[i].name;
      return CUDA_SUCCESS;
    }
  }
  *name = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult
emulated_GetErrorString (CUresult error, const char **string)
{
  for (size_t i = 0; i < G_N_ELEMENTS (errors); i++) {
    if (errors[i].result == error) {
      *string = errors[i].string;
      return CUDA_SUCCESS;
    }
  }
  *string = NULL;
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult
emulated_DeviceGetCount (int *n_devices)
{
  *n_devices = N_GPUS;
  return CUDA_SUCCESS;
}

static CUresult
emulated_DeviceGet (CUdevice *device, int ordinal)
{
  if (ordinal < 0 || ordinal >= N_GPUS)
    return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

static CUresult
emulated_DeviceGetName (char *name, int size, CUdevice device)
{
  g_snprintf (name, (gulong)size, "Emulated GPU %d", device);
  return CUDA_SUCCESS;
}

static CUresult
emulated_DeviceGetAttribute (int *value, CUdevice_attribute attribute, CUdevice device)
{
  static const struct {
    CUdevice_attribute attribute;
    int value;
  } attributes[] = {
      {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1}, {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
  };

  for (size_t i = 0; i < G_N_ELEMENTS (attributes); i++) {
    if (attributes[i].attribute == attribute) {
      *value = attributes[i].value;
      return CUDA_SUCCESS;
    }
  }
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult
emulated_DeviceCanAccessPeer (int *can_access, CUdevice device, CUdevice peer)
{
  *can_access = device != peer;
  return CUDA_SUCCESS;
}

static CUresult
emulated_DevicePrimaryCtxRetain (CUcontext *context, CUdevice device)
{
  *context = context_of (device);
  return CUDA_SUCCESS;
}

static CUresult
emulated_DevicePrimaryCtxRelease (CUdevice device)
{
  return CUDA_SUCCESS;
}

static CUresult
emulated_CtxPushCurrent (CUcontext context)
{
  return context_push (context);
}

static CUresult
emulated_CtxPopCurrent (CUcontext *context)
{
  return context_pop (context);
}

static CUresult
needs_context (void)
{
  return context_current () < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static CUresult
emulated_CtxGetDevice (CUdevice *device)
{
  *device = context_current ();
  return needs_context ();
}

static CUresult
emulated_CtxSynchronize (void)
{
  if (context_current () < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  stream_synchronize_all (context_current ());
  return CUDA_SUCCESS;
}

static CUresult
emulated_CtxEnablePeerAccess (CUcontext peer, unsigned flags)
{
  return context_current () < 0 || context_gpu (peer) < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static CUresult
emulated_MemGetInfo (size_t *free_size, size_t *total_size)
{
  if (context_current () < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  *total_size = GPU_BYTES;
  *free_size = GPU_BYTES - atomic_load (&used[context_current ()]);
  return CUDA_SUCCESS;
}

/* Memory of the current context's GPU. */
static CUresult
allocate (CUdeviceptr *address, size_t size)
{
  const int gpu = context_current ();

  if (gpu < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (size == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (size > GPU_BYTES || atomic_fetch_add (&used[gpu], size) + size > GPU_BYTES) {
    if (size <= GPU_BYTES)
      atomic_fetch_sub (&used[gpu], size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *address = memory_new (size);
  if (*address)
    return CUDA_SUCCESS;
  atomic_fetch_sub (&used[gpu], size);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
release (CUdeviceptr address, int gpu)
{
  const size_t size = memory_free (address);

  if (!size)
    return CUDA_ERROR_INVALID_VALUE;
  atomic_fetch_sub (&used[gpu], size);
  return CUDA_SUCCESS;
}

static CUresult
emulated_MemAlloc (CUdeviceptr *address, size_t size)
{
  return allocate (address, size);
}

/* As with NVIDIA's driver, all work comes to its end first. */
static CUresult
emulated_MemFree (CUdeviceptr address)
{
  CUresult result = emulated_CtxSynchronize ();

  return result == CUDA_SUCCESS ? release (address, context_current ()) : result;
}

static CUresult
emulated_MemAllocManaged (CUdeviceptr *address, size_t size, unsigned flags)
{
  return allocate (address, size);
}

static CUresult
emulated_MemHostAlloc (void **data, size_t size, unsigned flags)
{
  CUdeviceptr address = 0;
  CUresult result = context_current () < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;

  if (result != CUDA_SUCCESS)
    return result;
  address = memory_new (size);
  *data = (void *)(uintptr_t)address;
  return address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
emulated_MemFreeHost (void *data)
{
  CUresult result = emulated_CtxSynchronize ();

  if (result != CUDA_SUCCESS)
    return result;
  return memory_free ((CUdeviceptr)(uintptr_t)data) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
emulated_MemHostRegister (void *data, size_t size, unsigned flags)
{
  if (context_current () < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  return memory_pin (data, size) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

/* As NVIDIA's driver may, it waits for all work. */
static CUresult
emulated_MemHostUnregister (void *data)
{
  CUresult result = emulated_CtxSynchronize ();

  if (result != CUDA_SUCCESS)
    return result;
  return memory_unpin (data) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

static CUresult
emulated_MemPoolCreate (CUmemoryPool *created, const CUmemPoolProps *props)
{
  *created = (CUmemoryPool)&pool;
  return needs_context ();
}

static CUresult
emulated_MemPoolDestroy (CUmemoryPool destroyed)
{
  return needs_context ();
}

static CUresult
emulated_MemPoolSetAttribute (CUmemoryPool changed, CUmemPool_attribute attribute, void *value)
{
  return needs_context ();
}

static CUresult
emulated_MemPoolSetAccess (CUmemoryPool changed, const CUmemAccessDesc *access, size_t count)
{
  return needs_context ();
}

/* As NVIDIA's driver, it has memory of the system in pieces. */
static CUresult
emulated_MemPoolGetAttribute (CUmemoryPool asked, CUmemPool_attribute attribute, void *value)
{
  const cuuint64_t piece = (cuuint64_t)32 << 20;
  const int gpu = context_current ();

  if (gpu < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  const cuuint64_t bytes = atomic_load (&used[gpu]);
  *(cuuint64_t *)value = attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? bytes : (bytes + piece - 1) / piece * piece;
  return CUDA_SUCCESS;
}

static CUresult
emulated_MemPoolTrimTo (CUmemoryPool trimmed, size_t kept)
{
  return needs_context ();
}

/* Queues @func on @stream, which must be of the current context, or the NULL stream. */
static CUresult
submit (CUstream stream, void (*func) (void *data), const void *data, size_t size)
{
  const int gpu = context_current ();

  if (gpu < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  stream = stream_or_null (stream, gpu);
  return stream_gpu (stream) == gpu ? stream_submit (stream, func, data, size) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult
emulated_MemAllocFromPoolAsync (CUdeviceptr *address, size_t size, CUmemoryPool from, CUstream stream)
{
  return allocate (address, size);
}

typedef struct {
  CUdeviceptr address;
  int gpu;
} Release;

static void
run_release (void *data)
{
  const Release *self = data;

  if (release (self->address, self->gpu) != CUDA_SUCCESS)
    g_error ("0x%llx is freed, and is no memory of an emulated GPU", self->address);
}

static CUresult
emulated_MemFreeAsync (CUdeviceptr address, CUstream stream)
{
  const Release freed = {address, context_current ()};

  return submit (stream, run_release, &freed, sizeof freed);
}

static CUresult
emulated_StreamCreate (CUstream *stream, unsigned flags)
{
  return context_current () < 0 ? CUDA_ERROR_INVALID_CONTEXT : stream_new (stream, context_current ());
}

static CUresult
emulated_StreamDestroy (CUstream stream)
{
  stream_end (stream);
  return needs_context ();
}

static CUresult
emulated_StreamSynchronize (CUstream stream)
{
  if (context_current () < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  stream_synchronize (stream_or_null (stream, context_current ()));
  return CUDA_SUCCESS;
}

static CUresult
emulated_StreamWaitEvent (CUstream stream, CUevent event, unsigned flags)
{
  const int gpu = context_current ();

  if (gpu < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  stream = stream_or_null (stream, gpu);
  return stream_gpu (stream) == gpu ? event_wait (event, stream) : CUDA_ERROR_INVALID_CONTEXT;
}

typedef struct {
  const atomic_uint *word;
  unsigned value;
} Gate;

/* The host writes the word, and says nobody so. */
static void
run_gate (void *data)
{
  const Gate *self = data;

  while (atomic_load (self->word) < self->value)
    usleep (50);
}

static CUresult
emulated_StreamWaitValue32 (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
  const Gate gate = {(const atomic_uint *)(uintptr_t)address, value};

  return flags == CU_STREAM_WAIT_VALUE_GEQ ? submit (stream, run_gate, &gate, sizeof gate) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
emulated_EventCreate (CUevent *event, unsigned flags)
{
  return context_current () < 0 ? CUDA_ERROR_INVALID_CONTEXT : event_new (event, context_current ());
}

static CUresult
emulated_EventDestroy (CUevent event)
{
  event_end (event);
  return needs_context ();
}

static CUresult
emulated_EventRecord (CUevent event, CUstream stream)
{
  const int gpu = context_current ();

  if (gpu < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  stream = stream_or_null (stream, gpu);
  return stream_gpu (stream) == gpu && event_gpu (event) == gpu ? event_record (event, stream)
                                                                : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult
emulated_EventQuery (CUevent event)
{
  return context_current () == event_gpu (event) ? event_query (event) : CUDA_ERROR_INVALID_CONTEXT;
}

/* Rows of bytes, or of one value. */
typedef struct {
  char *dst;
  const char *src;
  size_t dst_pitch;
  size_t src_pitch;
  size_t width;
  size_t height;
  int value;
} Rows;

static void
run_copy (void *data)
{
  const Rows *self = data;

  for (size_t y = 0; y < self->height; y++)
    memcpy (self->dst + y * self->dst_pitch, self->src + y * self->src_pitch, self->width);
}

static void
run_fill (void *data)
{
  const Rows *self = data;

  for (size_t y = 0; y < self->height; y++)
    memset (self->dst + y * self->dst_pitch, self->value, self->width);
}

/* Whether its pitches are such as two-dimensional copies take. */
static bool
has_pitches (const Rows *rows)
{
  return rows->src_pitch >= rows->width && rows->dst_pitch >= rows->width && rows->src_pitch <= INT32_MAX &&
         rows->dst_pitch <= INT32_MAX;
}

static CUresult
emulated_MemcpyAsync (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
  const Rows rows = {.dst = (char *)(uintptr_t)dst, .src = (char *)(uintptr_t)src, .width = size, .height = 1};

  return submit (stream, run_copy, &rows, sizeof rows);
}

static CUresult
emulated_Memcpy2DAsync (const CUDA_MEMCPY2D *copy, CUstream stream)
{
  const Rows rows = {
      .dst = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost : (char *)(uintptr_t)copy->dstDevice,
      .src = copy->srcMemoryType == CU_MEMORYTYPE_HOST ? copy->srcHost : (char *)(uintptr_t)copy->srcDevice,
      .dst_pitch = copy->dstPitch,
      .src_pitch = copy->srcPitch,
      .width = copy->WidthInBytes,
      .height = copy->Height,
  };

  return has_pitches (&rows) ? submit (stream, run_copy, &rows, sizeof rows) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
emulated_MemPrefetchAsync (CUdeviceptr data, size_t size, CUdevice device, CUstream stream)
{
  return needs_context ();
}

/* From one context to another on a queue that all streams share, one for each GPU that is read, as NVIDIA's driver does
 * or may: what a gate holds there holds up the copies that come later, of streams that wait for nothing. */
static CUresult
copy_between (CUcontext dst_context, CUcontext src_context, const Rows *rows, CUstream stream)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static CUstream queues[N_GPUS];
  const int gpu = context_current (), source = context_gpu (src_context);
  CUevent before, after;

  if (gpu < 0 || source < 0 || context_gpu (dst_context) < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (dst_context == src_context)
    return submit (stream, run_copy, rows, sizeof *rows);
  stream = stream_or_null (stream, gpu);
  if (stream_gpu (stream) != gpu)
    return CUDA_ERROR_INVALID_CONTEXT;

  pthread_mutex_lock (&lock);
  if (!queues[source])
    stream_new (&queues[source], source);
  event_new (&before, gpu);
  event_new (&after, source);
  event_record (before, stream);
  event_wait (before, queues[source]);
  stream_submit (queues[source], run_copy, rows, sizeof *rows);
  event_record (after, queues[source]);
  event_wait (after, stream);
  event_end (before);
  event_end (after);
  pthread_mutex_unlock (&lock);
  return CUDA_SUCCESS;
}

static CUresult
emulated_MemcpyPeerAsync (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t size,
                          CUstream stream)
{
  const Rows rows = {.dst = (char *)(uintptr_t)dst, .src = (char *)(uintptr_t)src, .width = size, .height = 1};

  return copy_between (dst_context, src_context, &rows, stream);
}

static CUresult
emulated_Memcpy3DPeerAsync (const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
  const Rows rows = {
      .dst = (char *)(uintptr_t)copy->dstDevice,
      .src = (char *)(uintptr_t)copy->srcDevice,
      .dst_pitch = copy->dstPitch,
      .src_pitch = copy->srcPitch,
      .width = copy->WidthInBytes,
      .height = copy->Height,
  };

  if (copy->Depth != 1 || copy->srcHeight < copy->Height || copy->dstHeight < copy->Height || !has_pitches (&rows))
    return CUDA_ERROR_INVALID_VALUE;
  return copy_between (copy->dstContext, copy->srcContext, &rows, stream);
}

static CUresult
emulated_MemsetD8Async (CUdeviceptr dst, unsigned char value, size_t size, CUstream stream)
{
  const Rows rows = {.dst = (char *)(uintptr_t)dst, .width = size, .height = 1, .value = value};

  return submit (stream, run_fill, &rows, sizeof rows);
}

static CUresult
emulated_MemsetD2D8Async (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
                          CUstream stream)
{
  const Rows rows = {
      .dst = (char *)(uintptr_t)dst, .dst_pitch = pitch, .width = width, .height = height, .value = value};

  if (pitch < width || pitch > INT32_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  return submit (stream, run_fill, &rows, sizeof rows);
}

static CUresult
emulated_ModuleLoadData (CUmodule *loaded, const void *image)
{
  if (*(const uint32_t *)image != FATBIN_MAGIC || (uintptr_t)image % 8 != 0)
    return CUDA_ERROR_INVALID_IMAGE;
  *loaded = (CUmodule)&module;
  return needs_context ();
}

static CUresult
emulated_ModuleUnload (CUmodule unloaded)
{
  return needs_context ();
}

/* A module cannot say which kernels it holds, so each of them holds all. */
static CUresult
emulated_ModuleGetFunction (CUfunction *function, CUmodule from, const char *name)
{
  const EmulatedKernel *kernel;

  for (size_t i = 0; (kernel = emulated_kernel (i)); i++) {
    if (strcmp (kernel->name, name) == 0) {
      *function = (CUfunction)kernel;
      return needs_context ();
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}

static CUresult
emulated_ModuleGetFunctionCount (unsigned *n_functions, CUmodule of)
{
  for (*n_functions = 0; emulated_kernel (*n_functions);)
    ++*n_functions;
  return needs_context ();
}

static CUresult
emulated_ModuleEnumerateFunctions (CUfunction *functions, unsigned n_functions, CUmodule of)
{
  for (unsigned i = 0; i < n_functions; i++)
    functions[i] = (CUfunction)emulated_kernel (i);
  return needs_context ();
}

static CUresult
emulated_FuncLoad (CUfunction function)
{
  return needs_context ();
}

static CUresult
emulated_FuncGetName (const char **name, CUfunction function)
{
  *name = ((const EmulatedKernel *)function)->name;
  return CUDA_SUCCESS;
}

static CUresult
emulated_LaunchKernel (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
                       void **extra)
{
  const int gpu = context_current ();

  if (gpu < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  stream = stream_or_null (stream, gpu);
  if (stream_gpu (stream) != gpu)
    return CUDA_ERROR_INVALID_CONTEXT;
  return launch ((const EmulatedKernel *)function, (EmulatedIndex){grid_x, grid_y, grid_z},
                 (EmulatedIndex){block_x, block_y, block_z}, shared_bytes, stream, params[0]);
}

typedef struct {
  CUhostFn func;
  void *data;
} HostCall;

static void
run_host_call (void *data)
{
  const HostCall *self = data;

  self->func (self->data);
}

static CUresult
emulated_LaunchHostFunc (CUstream stream, CUhostFn func, void *data)
{
  const HostCall call = {func, data};

  return submit (stream, run_host_call, &call, sizeof call);
}

#define MEMBER(name, version) .name = emulated_##name,
static const GpuCudaDriver table = {GPU_CUDA_ENTRIES (MEMBER) GPU_CUDA_OPTIONAL_ENTRIES (MEMBER)};
#undef MEMBER

/* For tests, which have the library work on a context of their own: it makes none itself. */
static CUresult
emulated_CtxCreate (CUcontext *context, unsigned flags, CUdevice device)
{
  *context = context_other (device);
  return context_push (*context);
}

/* The one entry that is looked up by name; all others are asked for through it. */
EXPORT CUresult
cuGetProcAddress (const char *symbol, void **entry, int version, cuuint64_t flags,
                  CUdriverProcAddressQueryResult *status)
{
  const PFN_cuCtxCreate_v3020 create = emulated_CtxCreate;

  if (strcmp (symbol, "cuCtxCreate") == 0) {
    *entry = *(void *const *)(const void *)&create;
    return CUDA_SUCCESS;
  }
  return table_find (&table, symbol, version, flags, entry);
}
