/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Finds the CUDA driver at run time, fills the table of its entries, and puts its errors into words.
 */
#include "cuda-driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#define LIBRARY "libcuda.so.1"
#define OLDEST_VERSION 12000

static pthread_once_t once = PTHREAD_ONCE_INIT;
static GpuCudaDriver driver;
static GError *driver_error;
static pid_t driver_pid;

static const char *
error_name (const GpuCudaDriver *cu, CUresult result)
{
  const char *name = NULL;

  if (cu->GetErrorName (result, &name) != CUDA_SUCCESS || !name)
    return "an unknown error";
  return name;
}

static const char *
error_string (const GpuCudaDriver *cu, CUresult result)
{
  const char *string = NULL;

  if (cu->GetErrorString (result, &string) != CUDA_SUCCESS || !string)
    return "no description";
  return string;
}

static void
set_too_old (void *library, GError **error)
{
  PFN_cuDriverGetVersion_v2020 get_version;
  int version = 0;

  *(void **)&get_version = dlsym (library, "cuDriverGetVersion");
  if (get_version && get_version (&version) == CUDA_SUCCESS)
    g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE,
                 "The NVIDIA driver supports CUDA %d.%d, but %d.%d or later is needed: update the driver",
                 version / 1000, version % 1000 / 10, OLDEST_VERSION / 1000, OLDEST_VERSION % 1000 / 10);
  else
    g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE,
                 "The NVIDIA driver is older than CUDA %d.%d, which is needed: update the driver",
                 OLDEST_VERSION / 1000, OLDEST_VERSION % 1000 / 10);
}

/* The legacy variants: NULL means the context's NULL stream in them, never a thread's own (rule 23). */
static bool
find (PFN_cuGetProcAddress_v12000 get, const char *symbol, int version, void **entry)
{
  CUdriverProcAddressQueryResult status;

  *entry = NULL;
  return get (symbol, entry, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status) == CUDA_SUCCESS && *entry;
}

static bool
fill (void *library, GError **error)
{
  PFN_cuGetProcAddress_v12000 get;
  const struct {
    const char *symbol;
    int version;
    void **entry;
    bool optional;
  } entries[] = {
#define REQUIRED_ENTRY(name, version) {"cu" #name, version, (void **)&driver.name, false},
#define OPTIONAL_ENTRY(name, version) {"cu" #name, version, (void **)&driver.name, true},
      GPU_CUDA_ENTRIES (REQUIRED_ENTRY) GPU_CUDA_OPTIONAL_ENTRIES (OPTIONAL_ENTRY)
#undef REQUIRED_ENTRY
#undef OPTIONAL_ENTRY
  };

  /* POSIX's way to turn what dlsym() finds into a function. */
  *(void **)&get = dlsym (library, "cuGetProcAddress_v2");
  if (!get) {
    set_too_old (library, error);
    return false;
  }
  for (size_t i = 0; i < G_N_ELEMENTS (entries); i++) {
    if (!find (get, entries[i].symbol, entries[i].version, entries[i].entry) && !entries[i].optional) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE, "The NVIDIA driver has no %s: update the driver",
                   entries[i].symbol);
      return false;
    }
  }
  return true;
}

static bool
initialize (GError **error)
{
  CUresult result = driver.Init (0);
  int n_devices = 0;

  if (result == CUDA_ERROR_NO_DEVICE)
    return true;
  if (result == CUDA_SUCCESS)
    result = driver.DeviceGetCount (&n_devices);
  if (result != CUDA_SUCCESS) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE,
                 "The NVIDIA driver does not initialise, %s (%d): %s; see whether nvidia-smi works",
                 error_name (&driver, result), (int)result, error_string (&driver, result));
    return false;
  }
  driver.n_devices = (unsigned)n_devices;
  return true;
}

/* Never closed: the driver keeps threads, and the table lives as long as the process. */
static void
open_driver (void)
{
  void *library = dlopen (LIBRARY, RTLD_NOW | RTLD_LOCAL);

  driver_pid = getpid ();
  if (!library) {
    const char *reason = dlerror ();
    g_set_error (&driver_error, GPU_ERROR, GPU_ERROR_NO_DEVICE,
                 "No CUDA driver was found (%s): install the NVIDIA driver, or use the device \"cpu\"",
                 reason ? reason : LIBRARY);
    return;
  }
  if (fill (library, &driver_error))
    initialize (&driver_error);
}

const GpuCudaDriver *
gpu_cuda_driver_get (GError **error)
{
  pthread_once (&once, open_driver);
  if (driver_error) {
    if (error)
      *error = g_error_copy (driver_error);
    return NULL;
  }
  if (driver_pid != getpid ()) {
    g_set_error_literal (error, GPU_ERROR, GPU_ERROR_FORKED,
                         "CUDA was initialised before fork() and does not work in the child: open GPUs only after "
                         "fork(), or run another program by exec()");
    return NULL;
  }
  return &driver;
}

static GpuError
error_code (CUresult result)
{
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return GPU_ERROR_OUT_OF_MEMORY;
  case CUDA_ERROR_NOT_SUPPORTED:
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    return GPU_ERROR_UNSUPPORTED;
  default:
    return GPU_ERROR_DEVICE_LOST;
  }
}

void
gpu_cuda_set_error (GError **error, const GpuCudaDriver *cu, CUresult result, const char *call, const char *device)
{
  g_set_error (error, GPU_ERROR, error_code (result), "%s failed on %s with %s (%d): %s", call, device,
               error_name (cu, result), (int)result, error_string (cu, result));
}
