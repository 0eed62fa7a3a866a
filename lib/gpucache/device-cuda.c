/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The CUDA device: the seam over the driver API, on the primary context of a GPU or on a context that was given.
 * Opening and closing; what it does in between is in the other cuda-*.c.
 */
#include "cuda-priv.h"

static void
cuda_destroy (GpuDevice *device)
{
  GpuCudaDevice *self = gpu_cuda_device (device);
  const GpuCudaDriver *cu = self->cu;
  GpuCudaGate *gates = atomic_load_explicit (&self->gates, memory_order_acquire);
  bool entered = self->context && gpu_cuda_enter (self, NULL);

  /* The driver answers calls on a lost context, or after it has shut down, with errors, which change nothing here. */
  if (self->kernels)
    gpu_cuda_kernels_free (self->kernels);
  if (gates)
    cu->MemFreeHost (gates);
  if (self->pool)
    cu->MemPoolDestroy (self->pool);
  if (entered)
    gpu_cuda_leave (self);
  if (self->is_primary)
    cu->DevicePrimaryCtxRelease (self->ordinal);

  g_hash_table_unref (self->shifted);
  pthread_mutex_destroy (&self->shifted_lock);
  g_free (self->label);
  g_free (device->name);
  g_free (device->description);
  g_free (self);
}

static const GpuDeviceFuncs cuda_funcs = {
    .destroy = cuda_destroy,
    .memory_info = gpu_cuda_memory_info,
    .alloc = gpu_cuda_alloc,
    .free = gpu_cuda_free,
    .trim = gpu_cuda_trim,
    .pin = gpu_cuda_pin,
    .unpin = gpu_cuda_unpin,
    .stream_create = gpu_cuda_stream_create,
    .stream_destroy = gpu_cuda_stream_destroy,
    .stream_synchronize = gpu_cuda_stream_synchronize,
    .synchronize = gpu_cuda_synchronize,
    .event_create = gpu_cuda_event_create,
    .event_destroy = gpu_cuda_event_destroy,
    .event_record = gpu_cuda_event_record,
    .event_query = gpu_cuda_event_query,
    .event_synchronize = gpu_cuda_event_synchronize,
    .stream_wait = gpu_cuda_stream_wait,
    .copy = gpu_cuda_copy,
    .prefetch = gpu_cuda_prefetch,
    .peer_open = gpu_cuda_peer_open,
    .peer_copy = gpu_cuda_peer_copy,
    .fill = gpu_cuda_fill,
    .launch = gpu_cuda_launch,
    .launch_table = gpu_cuda_launch_table,
    .host_call = gpu_cuda_host_call,
    .gate_create = gpu_cuda_gate_create,
    .gate_hold = gpu_cuda_gate_hold,
    .gate_open = gpu_cuda_gate_open,
    .gate_destroy = gpu_cuda_gate_destroy,
};

/* @name: (transfer full) */
static GpuCudaDevice *
device_alloc (const GpuCudaDriver *cu, char *name)
{
  GpuCudaDevice *self = g_new0 (GpuCudaDevice, 1);

  self->base.funcs = &cuda_funcs;
  self->base.name = name;
  self->label = g_strdup (self->base.name);
  self->cu = cu;
  pthread_mutex_init (&self->shifted_lock, NULL);
  self->shifted = g_hash_table_new (NULL, NULL);
  return self;
}

static bool
describe (GpuCudaDevice *self, GError **error)
{
  char name[256] = "";

  if (!gpu_cuda_check (self, self->cu->DeviceGetName (name, sizeof name, self->ordinal), "cuDeviceGetName", error))
    return false;
  self->base.description = g_strdup (name);
  g_free (self->label);
  self->label = g_strdup_printf ("%s (%s)", self->base.name, name);
  return true;
}

static bool
get_attribute (GpuCudaDevice *self, CUdevice_attribute attribute, int *value, GError **error)
{
  return gpu_cuda_check (self, self->cu->DeviceGetAttribute (value, attribute, self->ordinal), "cuDeviceGetAttribute",
                         error);
}

static bool
check_features (GpuCudaDevice *self, GError **error)
{
  int pools, unified, concurrent_managed;

  if (!get_attribute (self, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &pools, error) ||
      !get_attribute (self, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, &unified, error) ||
      !get_attribute (self, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &concurrent_managed, error))
    return false;
  if (!pools || !unified) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "%s has no %s, which is needed: use another GPU or the device \"cpu\"", self->label,
                 pools ? "unified addressing" : "memory pools");
    return false;
  }
  /* Else the host may not touch any of it while the GPU runs anything, and there is always somebody who runs something.
   */
  self->has_managed = concurrent_managed;
  return true;
}

static bool
load_kernels (GpuCudaDevice *self, GError **error)
{
  g_autoptr (GError) reason = NULL;
  int major = 0, minor = 0;

  self->kernels = gpu_cuda_kernels_load (self->cu, self->label, &reason);
  if (self->kernels)
    return true;

  if (reason->code == GPU_ERROR_UNSUPPORTED &&
      get_attribute (self, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major, NULL) &&
      get_attribute (self, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor, NULL))
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED, "%s; build for it with -Dcuda-archs=%d%d", reason->message,
                 major, minor);
  else
    g_propagate_error (error, g_steal_pointer (&reason));
  return false;
}

/* With the context set. */
static bool
set_up (GpuCudaDevice *self, GError **error)
{
  bool ok;

  if (!describe (self, error) || !check_features (self, error) || !gpu_cuda_enter (self, error))
    return false;
  ok = gpu_cuda_pool_create (self, error) && load_kernels (self, error);
  gpu_cuda_leave (self);
  return ok && gpu_device_init (&self->base, error);
}

/* Consumes @self. What went wrong before a device was there is not the loss of one. */
static GpuDevice *
open_failed (GpuCudaDevice *self, GError *reason, GError **error)
{
  if (g_error_matches (reason, GPU_ERROR, GPU_ERROR_DEVICE_LOST))
    reason->code = GPU_ERROR_NO_DEVICE;
  g_propagate_error (error, reason);
  cuda_destroy (&self->base);
  return NULL;
}

GpuDevice *
gpu_device_cuda_new (unsigned ordinal, GError **error)
{
  const GpuCudaDriver *cu = gpu_cuda_driver_get (error);
  GpuCudaDevice *self;
  CUcontext context;
  GError *reason = NULL;

  if (!cu)
    return NULL;
  if (ordinal >= cu->n_devices) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE,
                 "There is no GPU cuda:%u, the driver finds %u: use a lower number or the device \"cpu\"", ordinal,
                 cu->n_devices);
    return NULL;
  }

  self = device_alloc (cu, g_strdup_printf ("cuda:%u", ordinal));
  if (!gpu_cuda_check (self, cu->DeviceGet (&self->ordinal, (int)ordinal), "cuDeviceGet", &reason) ||
      !gpu_cuda_check (self, cu->DevicePrimaryCtxRetain (&context, self->ordinal), "cuDevicePrimaryCtxRetain", &reason))
    return open_failed (self, reason, error);
  self->context = context;
  self->is_primary = true;
  if (!set_up (self, &reason))
    return open_failed (self, reason, error);
  return &self->base;
}

static unsigned
index_of (const GpuCudaDriver *cu, CUdevice ordinal)
{
  CUdevice device;

  for (unsigned i = 0; i < cu->n_devices; i++) {
    if (cu->DeviceGet (&device, (int)i) == CUDA_SUCCESS && device == ordinal)
      return i;
  }
  return (unsigned)ordinal;
}

/* Of its own, so that what goes from one device of a GPU to another has two names. */
static char *
name_for_context (const GpuCudaDriver *cu, CUdevice ordinal)
{
  static atomic_uint last;

  return g_strdup_printf ("cuda:%u/%u", index_of (cu, ordinal), atomic_fetch_add (&last, 1) + 1);
}

GpuDevice *
gpu_device_cuda_new_for_context (void *context, GError **error)
{
  const GpuCudaDriver *cu;
  CUdevice ordinal = 0;
  GpuCudaDevice *self;
  GError *reason = NULL;

  if (!context) {
    g_set_error_literal (error, GPU_ERROR, GPU_ERROR_INVALID,
                         "The CUDA context is NULL: pass the CUcontext that the device is to use");
    return NULL;
  }
  cu = gpu_cuda_driver_get (error);
  if (!cu)
    return NULL;

  if (cu->CtxPushCurrent (context) == CUDA_SUCCESS) {
    CUresult result = cu->CtxGetDevice (&ordinal);
    CUcontext popped;

    cu->CtxPopCurrent (&popped);
    if (result == CUDA_SUCCESS) {
      self = device_alloc (cu, name_for_context (cu, ordinal));
      self->ordinal = ordinal;
      self->context = context;
      return set_up (self, &reason) ? &self->base : open_failed (self, reason, error);
    }
  }
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "%p is not a CUDA context that can be used: pass a CUcontext that has not been destroyed", context);
  return NULL;
}

void *
gpu_device_cuda_context (GpuDevice *device)
{
  return device->funcs == &cuda_funcs ? gpu_cuda_device (device)->context : NULL;
}

unsigned
gpu_device_cuda_count (GError **error)
{
  const GpuCudaDriver *cu = gpu_cuda_driver_get (error);

  return cu ? cu->n_devices : 0;
}

bool
gpu_device_cuda_is_per_thread (void *stream)
{
  return stream == (void *)CU_STREAM_PER_THREAD;
}
