/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The fake driver. Its table has the type that the library fills, so the compiler checks each signature. FAKE_CUDA in
 * the environment makes it another driver: "empty" has no GPU, "broken" does not initialise, "12.0" has nothing newer
 * than that, "without-pools" lacks an entry, "no-pools" says that the GPU has no memory pools, "all-kernels" has every
 * kernel that it is asked for, and does nothing in it.
 *
 * It has two GPUs with two contexts each; it refuses calls that need a current context and have none, and streams and
 * events outside of the context that they were made in; it gives memory that is aligned to 256 bytes and never to more,
 * and checks that a fat binary is one. In "no-peers" neither GPU can read the other's memory; none is its own peer.
 */
#include "fake-cuda.h"

#include "../emulator/context.h"
#include "../emulator/memory.h"
#include "../emulator/table.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__ ((visibility ("default")))
#define FATBIN_MAGIC 0xba55ed50u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GString *call_log;
static GList *failures;
static bool is_shut_down, is_out_of_memory;
static int broken = -1; /* GPU */
static unsigned live;
static atomic_uint_least64_t pool_reserved, pool_used;

/* A call that is to fail. */
typedef struct {
  char *entry;
  unsigned skip;
  CUresult result;
} Failure;

/* The addresses of these are handles. */
static char pool, kernel;

static bool
mode_is (const char *mode)
{
  return g_strcmp0 (g_getenv ("FAKE_CUDA"), mode) == 0;
}

static void
count (int change)
{
  pthread_mutex_lock (&lock);
  live += (unsigned)change;
  pthread_mutex_unlock (&lock);
}

static int
is_failure_of (gconstpointer failure, gconstpointer line)
{
  const char *entry = ((const Failure *)failure)->entry;

  return g_str_has_prefix (line, entry) && strchr (" ", ((const char *)line)[strlen (entry)]) ? 0 : 1;
}

/* Logs a call, "entry arguments", and returns what it is to return if not success. */
static CUresult G_GNUC_PRINTF (1, 2) called (const char *format, ...)
{
  CUresult result = CUDA_SUCCESS;
  g_autofree char *line = NULL;
  va_list args;

  va_start (args, format);
  line = g_strdup_vprintf (format, args);
  va_end (args);

  pthread_mutex_lock (&lock);
  if (!call_log)
    call_log = g_string_new (NULL);
  g_string_append_printf (call_log, "%s\n", line);
  GList *at = g_list_find_custom (failures, line, is_failure_of);
  if (at) {
    Failure *failure = at->data;
    if (failure->skip > 0) {
      failure->skip--;
    } else {
      result = failure->result;
      failures = g_list_delete_link (failures, at);
      g_free (failure->entry);
      g_free (failure);
    }
  }
  if (is_out_of_memory && (g_str_has_prefix (line, "cuMemAlloc") || g_str_has_prefix (line, "cuMemHostAlloc") ||
                           g_str_has_prefix (line, "cuMemHostRegister")))
    result = CUDA_ERROR_OUT_OF_MEMORY;
  if (is_shut_down)
    result = CUDA_ERROR_DEINITIALIZED;
  else if (context_depth () > 0 && context_current () == broken)
    result = CUDA_ERROR_ILLEGAL_ADDRESS;
  else if (context_depth () == 0 && !g_str_has_prefix (line, "cuDevice") && !g_str_has_prefix (line, "cuInit"))
    result = CUDA_ERROR_INVALID_CONTEXT;
  pthread_mutex_unlock (&lock);
  return result;
}

/* Handles are numbers that nothing is behind but the context that they were made in. */
static CUresult
new_handle (void **handle)
{
  static atomic_uintptr_t last;

  *handle = (void *)((atomic_fetch_add (&last, 1) + 1) * N_CONTEXTS + (uintptr_t)context_current_number ());
  count (1);
  return CUDA_SUCCESS;
}

static int
number_of (const void *handle)
{
  return (int)((uintptr_t)handle % N_CONTEXTS);
}

/* What a call on @handle, which may be the NULL stream, returns if its context is not the current one. */
static CUresult
in_context (const void *handle, CUresult result)
{
  return result == CUDA_SUCCESS && handle && number_of (handle) != context_current_number ()
             ? CUDA_ERROR_INVALID_CONTEXT
             : result;
}

static CUresult
free_handle (void)
{
  count (-1);
  return CUDA_SUCCESS;
}

static CUresult
new_memory (CUdeviceptr *address, size_t size)
{
  *address = memory_new (size);
  count (1);
  return CUDA_SUCCESS;
}

static CUresult
free_memory (CUdeviceptr address)
{
  count (-1);
  return memory_free (address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
fake_Init (unsigned flags)
{
  CUresult result = called ("cuInit %u", flags);

  if (mode_is ("empty"))
    return CUDA_ERROR_NO_DEVICE;
  return mode_is ("broken") ? CUDA_ERROR_SYSTEM_DRIVER_MISMATCH : result;
}

static CUresult
fake_GetErrorName (CUresult error, const char **name)
{
  *name = error == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == CUDA_ERROR_LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
                                                : NULL;
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
fake_GetErrorString (CUresult error, const char **string)
{
  *string = "so it says";
  return CUDA_SUCCESS;
}

static CUresult
fake_DeviceGetCount (int *n_devices)
{
  *n_devices = N_GPUS;
  return called ("cuDeviceGetCount");
}

static CUresult
fake_DeviceGet (CUdevice *device, int ordinal)
{
  *device = ordinal;
  return called ("cuDeviceGet %d", ordinal);
}

static CUresult
fake_DeviceGetName (char *name, int size, CUdevice device)
{
  g_snprintf (name, (gulong)size, "Fake %d", device);
  return called ("cuDeviceGetName %d", device);
}

static CUresult
fake_DeviceGetAttribute (int *value, CUdevice_attribute attribute, CUdevice device)
{
  *value = !(attribute == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED && mode_is ("no-pools")) &&
           !(attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS && device == 1);
  return called ("cuDeviceGetAttribute %d %d", (int)attribute, device);
}

static CUresult
fake_DeviceCanAccessPeer (int *can_access, CUdevice device, CUdevice peer)
{
  *can_access = !mode_is ("no-peers") && device != peer;
  return called ("cuDeviceCanAccessPeer %d %d", device, peer);
}

static CUresult
fake_DevicePrimaryCtxRetain (CUcontext *context, CUdevice device)
{
  CUresult result = called ("cuDevicePrimaryCtxRetain %d", device);

  if (result == CUDA_SUCCESS)
    count (1);
  *context = context_of (device);
  return result;
}

static CUresult
fake_DevicePrimaryCtxRelease (CUdevice device)
{
  CUresult result = called ("cuDevicePrimaryCtxRelease %d", device);

  if (result == CUDA_SUCCESS)
    count (-1);
  return result;
}

static CUresult
fake_CtxPushCurrent (CUcontext context)
{
  if (is_shut_down)
    return CUDA_ERROR_DEINITIALIZED;
  return context_push (context);
}

static CUresult
fake_CtxPopCurrent (CUcontext *context)
{
  return context_pop (context);
}

static CUresult
fake_CtxGetDevice (CUdevice *device)
{
  CUresult result = called ("cuCtxGetDevice");

  if (result == CUDA_SUCCESS)
    *device = context_current ();
  return result;
}

static CUresult
fake_CtxSynchronize (void)
{
  return called ("cuCtxSynchronize");
}

/* A GPU's number, or "0+" for the other context of GPU 0. */
static const char *
name_of (CUcontext context)
{
  static const char *const names[N_CONTEXTS] = {"0", "1", "0+", "1+"};
  const int number = context_number (context);

  return number < 0 ? "" : names[number];
}

static CUresult
fake_CtxEnablePeerAccess (CUcontext peer, unsigned flags)
{
  CUresult result = called ("cuCtxEnablePeerAccess %d from %s %u", context_current (), name_of (peer), flags);

  return result == CUDA_SUCCESS && context_gpu (peer) == context_current () ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
                                                                            : result;
}

static CUresult
fake_MemGetInfo (size_t *free_size, size_t *total_size)
{
  *free_size = 1000;
  *total_size = 4000;
  return called ("cuMemGetInfo");
}

static CUresult
fake_MemAlloc (CUdeviceptr *address, size_t size)
{
  CUresult result = called ("cuMemAlloc %zu", size);

  return result == CUDA_SUCCESS ? new_memory (address, size) : result;
}

static CUresult
fake_MemFree (CUdeviceptr address)
{
  CUresult result = called ("cuMemFree");

  return result == CUDA_SUCCESS ? free_memory (address) : result;
}

static CUresult
fake_MemAllocManaged (CUdeviceptr *address, size_t size, unsigned flags)
{
  CUresult result = called ("cuMemAllocManaged %zu %u", size, flags);

  return result == CUDA_SUCCESS ? new_memory (address, size) : result;
}

static CUresult
fake_MemHostAlloc (void **data, size_t size, unsigned flags)
{
  CUresult result = called ("cuMemHostAlloc %zu %u", size, flags);
  CUdeviceptr address;

  if (result != CUDA_SUCCESS)
    return result;
  new_memory (&address, size);
  *data = (void *)(uintptr_t)address;
  return result;
}

static CUresult
fake_MemFreeHost (void *data)
{
  CUresult result = called ("cuMemFreeHost");

  return result == CUDA_SUCCESS ? free_memory ((CUdeviceptr)(uintptr_t)data) : result;
}

static CUresult
fake_MemHostRegister (void *data, size_t size, unsigned flags)
{
  CUresult result = called ("cuMemHostRegister %zu %u", size, flags);

  if (result == CUDA_SUCCESS)
    result = memory_pin (data, size) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (result == CUDA_SUCCESS)
    count (1);
  return result;
}

static CUresult
fake_MemHostUnregister (void *data)
{
  CUresult result = called ("cuMemHostUnregister");

  if (result == CUDA_SUCCESS)
    result = memory_unpin (data) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (result == CUDA_SUCCESS)
    count (-1);
  return result;
}

static CUresult
fake_MemPoolCreate (CUmemoryPool *created, const CUmemPoolProps *props)
{
  CUresult result = called ("cuMemPoolCreate %d %d %d %d", (int)props->allocType, (int)props->handleTypes,
                            (int)props->location.type, props->location.id);

  if (result == CUDA_SUCCESS)
    count (1);
  *created = (CUmemoryPool)&pool;
  return result;
}

static CUresult
fake_MemPoolDestroy (CUmemoryPool destroyed)
{
  CUresult result = called ("cuMemPoolDestroy");

  if (result == CUDA_SUCCESS)
    count (-1);
  return result;
}

static CUresult
fake_MemPoolSetAttribute (CUmemoryPool changed, CUmemPool_attribute attribute, void *value)
{
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    return called ("cuMemPoolSetAttribute threshold %" G_GUINT64_FORMAT, (guint64)(*(cuuint64_t *)value));
  return called ("cuMemPoolSetAttribute %d %d", (int)attribute, *(int *)value);
}

static CUresult
fake_MemPoolSetAccess (CUmemoryPool changed, const CUmemAccessDesc *access, size_t count)
{
  return called ("cuMemPoolSetAccess %zu %d %d %d", count, (int)access->location.type, access->location.id,
                 (int)access->flags);
}

static CUresult
fake_MemPoolGetAttribute (CUmemoryPool asked, CUmemPool_attribute attribute, void *value)
{
  CUresult result = called ("cuMemPoolGetAttribute %d", (int)attribute);

  if (result == CUDA_SUCCESS)
    *(cuuint64_t *)value = atomic_load (attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? &pool_used : &pool_reserved);
  return result;
}

static CUresult
fake_MemPoolTrimTo (CUmemoryPool trimmed, size_t kept)
{
  return called ("cuMemPoolTrimTo %zu", kept);
}

static CUresult
fake_MemAllocFromPoolAsync (CUdeviceptr *address, size_t size, CUmemoryPool from, CUstream stream)
{
  CUresult result = called ("cuMemAllocFromPoolAsync %zu%s", size, from == (CUmemoryPool)&pool ? "" : " elsewhere");

  return result == CUDA_SUCCESS ? new_memory (address, size) : result;
}

static CUresult
fake_MemFreeAsync (CUdeviceptr address, CUstream stream)
{
  CUresult result = called ("cuMemFreeAsync");

  return result == CUDA_SUCCESS ? free_memory (address) : result;
}

static CUresult
fake_StreamCreate (CUstream *stream, unsigned flags)
{
  CUresult result = called ("cuStreamCreate %u", flags);

  return result == CUDA_SUCCESS ? new_handle ((void **)stream) : result;
}

static CUresult
fake_StreamDestroy (CUstream stream)
{
  CUresult result = called ("cuStreamDestroy");

  return result == CUDA_SUCCESS ? free_handle () : result;
}

static CUresult
fake_StreamSynchronize (CUstream stream)
{
  return called ("cuStreamSynchronize");
}

static CUresult
fake_StreamWaitEvent (CUstream stream, CUevent event, unsigned flags)
{
  CUresult result = in_context (stream, called ("cuStreamWaitEvent %u", flags));

  return result == CUDA_SUCCESS && number_of (event) % N_GPUS == broken ? CUDA_ERROR_ILLEGAL_ADDRESS : result;
}

static CUresult
fake_StreamWaitValue32 (CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
  return called ("cuStreamWaitValue32 %u for %u %u", *(uint32_t *)(uintptr_t)address, value, flags);
}

static CUresult
fake_EventCreate (CUevent *event, unsigned flags)
{
  CUresult result = called ("cuEventCreate %u", flags);

  return result == CUDA_SUCCESS ? new_handle ((void **)event) : result;
}

static CUresult
fake_EventDestroy (CUevent event)
{
  CUresult result = called ("cuEventDestroy");

  return result == CUDA_SUCCESS ? free_handle () : result;
}

static CUresult
fake_EventRecord (CUevent event, CUstream stream)
{
  return in_context (event, in_context (stream, called ("cuEventRecord")));
}

static CUresult
fake_EventQuery (CUevent event)
{
  return in_context (event, called ("cuEventQuery"));
}

static CUresult
fake_MemcpyAsync (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
  CUresult result = called ("cuMemcpyAsync %zu", size);

  if (result == CUDA_SUCCESS)
    memcpy ((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size);
  return result;
}

static CUresult
fake_Memcpy2DAsync (const CUDA_MEMCPY2D *copy, CUstream stream)
{
  CUresult result = called ("cuMemcpy2DAsync %zu x %zu, %d to %d", copy->WidthInBytes, copy->Height,
                            (int)copy->srcMemoryType, (int)copy->dstMemoryType);
  const char *src = copy->srcMemoryType == CU_MEMORYTYPE_HOST ? copy->srcHost : (void *)(uintptr_t)copy->srcDevice;
  char *dst = copy->dstMemoryType == CU_MEMORYTYPE_HOST ? copy->dstHost : (void *)(uintptr_t)copy->dstDevice;

  if (copy->srcPitch < copy->WidthInBytes || copy->dstPitch < copy->WidthInBytes || copy->srcPitch > INT32_MAX ||
      copy->dstPitch > INT32_MAX)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t y = 0; result == CUDA_SUCCESS && y < copy->Height; y++)
    memcpy (dst + y * copy->dstPitch, src + y * copy->srcPitch, copy->WidthInBytes);
  return result;
}

static CUresult
fake_MemPrefetchAsync (CUdeviceptr data, size_t size, CUdevice device, CUstream stream)
{
  return called ("cuMemPrefetchAsync %zu to %d", size, device);
}

static CUresult
fake_MemcpyPeerAsync (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t size,
                      CUstream stream)
{
  CUresult result = in_context (
      stream, called ("cuMemcpyPeerAsync %s from %s, %zu", name_of (dst_context), name_of (src_context), size));

  if (result == CUDA_SUCCESS)
    memcpy ((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size);
  return result;
}

static CUresult
fake_Memcpy3DPeerAsync (const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
  CUresult result = called ("cuMemcpy3DPeerAsync %s from %s, %zu x %zu x %zu, %d to %d", name_of (copy->dstContext),
                            name_of (copy->srcContext), copy->WidthInBytes, copy->Height, copy->Depth,
                            (int)copy->srcMemoryType, (int)copy->dstMemoryType);

  if (copy->srcPitch < copy->WidthInBytes || copy->dstPitch < copy->WidthInBytes || copy->srcPitch > INT32_MAX ||
      copy->dstPitch > INT32_MAX || copy->srcHeight < copy->Height || copy->dstHeight < copy->Height)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t y = 0; result == CUDA_SUCCESS && y < copy->Height; y++)
    memcpy ((char *)(uintptr_t)copy->dstDevice + y * copy->dstPitch,
            (char *)(uintptr_t)copy->srcDevice + y * copy->srcPitch, copy->WidthInBytes);
  return result;
}

static CUresult
fake_MemsetD8Async (CUdeviceptr dst, unsigned char value, size_t size, CUstream stream)
{
  CUresult result = called ("cuMemsetD8Async %zu", size);

  if (result == CUDA_SUCCESS)
    memset ((void *)(uintptr_t)dst, value, size);
  return result;
}

static CUresult
fake_MemsetD2D8Async (CUdeviceptr dst, size_t stride, unsigned char value, size_t width, size_t height, CUstream stream)
{
  CUresult result = called ("cuMemsetD2D8Async %zu x %zu", width, height);

  for (size_t y = 0; result == CUDA_SUCCESS && y < height; y++)
    memset ((char *)(uintptr_t)dst + y * stride, value, width);
  return result;
}

static CUresult
fake_ModuleLoadData (CUmodule *module, const void *image)
{
  CUresult result = called ("cuModuleLoadData");

  if (*(const uint32_t *)image != FATBIN_MAGIC || (uintptr_t)image % 8 != 0)
    return CUDA_ERROR_INVALID_IMAGE;
  return result == CUDA_SUCCESS ? new_handle ((void **)module) : result;
}

static CUresult
fake_ModuleUnload (CUmodule module)
{
  CUresult result = called ("cuModuleUnload");

  return result == CUDA_SUCCESS ? free_handle () : result;
}

static CUresult
fake_ModuleGetFunction (CUfunction *function, CUmodule module, const char *name)
{
  CUresult result = called ("cuModuleGetFunction %s", name);

  *function = (CUfunction)&kernel;
  if (result == CUDA_SUCCESS && !mode_is ("all-kernels") && strcmp (name, FAKE_CUDA_KERNEL) != 0)
    return CUDA_ERROR_NOT_FOUND;
  return result;
}

static CUresult
fake_ModuleGetFunctionCount (unsigned *n_functions, CUmodule module)
{
  *n_functions = 1;
  return called ("cuModuleGetFunctionCount");
}

static CUresult
fake_ModuleEnumerateFunctions (CUfunction *functions, unsigned n_functions, CUmodule module)
{
  functions[0] = (CUfunction)&kernel;
  return called ("cuModuleEnumerateFunctions %u", n_functions);
}

static CUresult
fake_FuncLoad (CUfunction function)
{
  return called ("cuFuncLoad");
}

/* As drivers before CUDA 12.3, which are asked for kernels by name. */
#define fake_FuncGetName NULL

static CUresult
fake_LaunchKernel (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
                   void **extra)
{
  return called ("cuLaunchKernel %u,%u,%u %u,%u,%u %u args %u", grid_x, grid_y, grid_z, block_x, block_y, block_z,
                 shared_bytes, *(unsigned *)params[0]);
}

static CUresult
fake_LaunchHostFunc (CUstream stream, CUhostFn func, void *data)
{
  CUresult result = called ("cuLaunchHostFunc");

  if (result == CUDA_SUCCESS)
    func (data);
  return result;
}

#define MEMBER(name, version) .name = fake_##name,
static const GpuCudaDriver table = {GPU_CUDA_ENTRIES (MEMBER) GPU_CUDA_OPTIONAL_ENTRIES (MEMBER)};
#undef MEMBER

/* The one entry that is looked up by name; all others are asked for through it. */
EXPORT CUresult
cuGetProcAddress (const char *symbol, void **entry, int version, cuuint64_t flags,
                  CUdriverProcAddressQueryResult *status)
{
  if ((mode_is ("12.0") && version > 12000) || (mode_is ("without-pools") && strcmp (symbol, "cuMemPoolCreate") == 0))
    return CUDA_ERROR_NOT_FOUND;
  return table_find (&table, symbol, version, flags, entry);
}

static void
fake_fail (const char *entry, unsigned skip, CUresult result)
{
  pthread_mutex_lock (&lock);
  GList *at = g_list_find_custom (failures, entry, is_failure_of);
  Failure *failure = at ? at->data : g_new0 (Failure, 1);
  if (!at) {
    failure->entry = g_strdup (entry);
    failures = g_list_prepend (failures, failure);
  }
  failure->skip = skip;
  failure->result = result;
  pthread_mutex_unlock (&lock);
}

static void
fake_set_pool (uint64_t reserved, uint64_t used)
{
  atomic_store (&pool_reserved, reserved);
  atomic_store (&pool_used, used);
}

static void
fake_refuse_memory (bool refuse)
{
  pthread_mutex_lock (&lock);
  is_out_of_memory = refuse;
  pthread_mutex_unlock (&lock);
}

static void
fake_break_gpu (int ordinal)
{
  pthread_mutex_lock (&lock);
  broken = ordinal;
  pthread_mutex_unlock (&lock);
}

static void
fake_shut_down (void)
{
  is_shut_down = true;
}

static char *
fake_take_log (void)
{
  char *text;

  pthread_mutex_lock (&lock);
  text = call_log ? g_string_free (call_log, FALSE) : g_strdup ("");
  call_log = NULL;
  pthread_mutex_unlock (&lock);
  return text;
}

static unsigned
fake_n_live (void)
{
  unsigned n;

  pthread_mutex_lock (&lock);
  n = live;
  pthread_mutex_unlock (&lock);
  return n;
}

static unsigned
fake_depth (void)
{
  return context_depth ();
}

extern const FakeCuda fake_cuda;
EXPORT const FakeCuda fake_cuda = {
    .fail = fake_fail,
    .set_pool = fake_set_pool,
    .refuse_memory = fake_refuse_memory,
    .break_gpu = fake_break_gpu,
    .other_context = context_other,
    .shut_down = fake_shut_down,
    .take_log = fake_take_log,
    .n_live = fake_n_live,
    .depth = fake_depth,
};
