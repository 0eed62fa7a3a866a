/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The CPU device: streams, events and memory of the host's, as asynchronous as a GPU's. It is the device where there is
 * no GPU, and the one that all tests run on.
 */
#include "cpu-priv.h"

#include <string.h>

static GpuCpuDevice *
cpu (GpuDevice *device)
{
  return (GpuCpuDevice *)device;
}

static GpuCpuQueue *
queue_of (void *stream)
{
  return ((GpuCpuStream *)stream)->queue;
}

/* Handles that are given back are handed out again at once, the last first, as drivers do. */
static void *
take_handle (GPtrArray *recycled, size_t size)
{
  if (recycled->len == 0)
    return g_malloc0 (size);
  void *handle = g_ptr_array_steal_index (recycled, recycled->len - 1);
  ASAN_UNPOISON_MEMORY_REGION (handle, size);
  memset (handle, 0, size);
  return handle;
}

static void
recycle_handle (GPtrArray *recycled, void *handle, size_t size)
{
  ASAN_POISON_MEMORY_REGION (handle, size);
  g_ptr_array_add (recycled, handle);
}

static void
free_handles (GPtrArray *recycled, size_t size)
{
  for (unsigned i = 0; i < recycled->len; i++) {
    ASAN_UNPOISON_MEMORY_REGION (g_ptr_array_index (recycled, i), size);
    g_free (g_ptr_array_index (recycled, i));
  }
  g_ptr_array_unref (recycled);
}

static void
cpu_destroy (GpuDevice *base)
{
  GpuCpuDevice *device = cpu (base);

  gpu_cpu_queues_free (device);
  gpu_cpu_memory_clear (device);
  free_handles (device->free_streams, sizeof (GpuCpuStream));
  free_handles (device->free_events, sizeof (GpuCpuEvent));
  g_free (base->name);
  g_free (base->description);
  g_free (device);
}

static bool
cpu_stream_create (GpuDevice *base, void **stream, GError **error)
{
  GpuCpuDevice *device = cpu (base);

  pthread_mutex_lock (&gpu_cpu_host.lock);
  GpuCpuQueue *queue = gpu_cpu_queue_new (device, error);
  if (queue) {
    GpuCpuStream *handle = take_handle (device->free_streams, sizeof *handle);
    handle->queue = queue;
    *stream = handle;
  }
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return queue != NULL;
}

static void
cpu_stream_destroy (GpuDevice *base, void *stream)
{
  GpuCpuDevice *device = cpu (base);

  pthread_mutex_lock (&gpu_cpu_host.lock);
  gpu_cpu_queue_detach (queue_of (stream));
  recycle_handle (device->free_streams, stream, sizeof (GpuCpuStream));
  pthread_mutex_unlock (&gpu_cpu_host.lock);
}

static bool
cpu_stream_synchronize (GpuDevice *base, void *stream, GError **error)
{
  GpuCpuDevice *device = cpu (base);

  pthread_mutex_lock (&gpu_cpu_host.lock);
  GpuCpuQueue *queue = queue_of (stream);
  gpu_cpu_mark_wait (device, (GpuCpuMark){.queue = queue, .number = queue->submitted});
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return true;
}

static bool
cpu_synchronize (GpuDevice *base, GError **error)
{
  GpuCpuDevice *device = cpu (base);

  pthread_mutex_lock (&gpu_cpu_host.lock);
  /* Queues only grow in number, and stay. */
  for (unsigned i = 0; i < device->queues->len; i++) {
    GpuCpuQueue *queue = g_ptr_array_index (device->queues, i);
    gpu_cpu_mark_wait (device, (GpuCpuMark){.queue = queue, .number = queue->submitted});
  }
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return true;
}

static bool
cpu_event_create (GpuDevice *base, void **event, GError **error)
{
  GpuCpuDevice *device = cpu (base);

  pthread_mutex_lock (&gpu_cpu_host.lock);
  *event = take_handle (device->free_events, sizeof (GpuCpuEvent));
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return true;
}

static void
cpu_event_destroy (GpuDevice *base, void *event)
{
  GpuCpuDevice *device = cpu (base);

  pthread_mutex_lock (&gpu_cpu_host.lock);
  recycle_handle (device->free_events, event, sizeof (GpuCpuEvent));
  pthread_mutex_unlock (&gpu_cpu_host.lock);
}

static GpuCpuMark
submit (GpuDevice *base, void *stream, GpuCpuCommand *command)
{
  pthread_mutex_lock (&gpu_cpu_host.lock);
  GpuCpuMark mark = gpu_cpu_queue_submit (queue_of (stream), command);
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return mark;
}

/* A command of its own, so that an event on a stream without work is pending on the lazy executor, as it may be on a
 * GPU. */
static bool
cpu_event_record (GpuDevice *base, void *event, void *stream, GError **error)
{
  GpuCpuCommand *command = gpu_cpu_command_new (GPU_CPU_RECORD, 0);

  pthread_mutex_lock (&gpu_cpu_host.lock);
  ((GpuCpuEvent *)event)->mark = gpu_cpu_queue_submit (queue_of (stream), command);
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return true;
}

static GpuStatus
cpu_event_query (GpuDevice *base, void *event, GError **error)
{
  pthread_mutex_lock (&gpu_cpu_host.lock);
  bool complete = gpu_cpu_mark_is_complete (&((GpuCpuEvent *)event)->mark);
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return complete ? GPU_STATUS_COMPLETE : GPU_STATUS_PENDING;
}

static bool
cpu_event_synchronize (GpuDevice *base, void *event, GError **error)
{
  GpuCpuDevice *device = cpu (base);

  pthread_mutex_lock (&gpu_cpu_host.lock);
  gpu_cpu_mark_wait (device, ((GpuCpuEvent *)event)->mark);
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return true;
}

static bool
cpu_stream_wait (GpuDevice *base, void *stream, void *event, GError **error)
{
  pthread_mutex_lock (&gpu_cpu_host.lock);
  const GpuCpuMark mark = ((GpuCpuEvent *)event)->mark;
  if (!gpu_cpu_mark_is_complete (&mark)) {
    GpuCpuCommand *command = gpu_cpu_command_new (GPU_CPU_WAIT, 0);
    command->wait = mark;
    gpu_cpu_queue_submit (queue_of (stream), command);
  }
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return true;
}

static bool
cpu_copy (GpuDevice *base, const GpuCopy *copy, GpuCopyKind kind, void *stream, GError **error)
{
  GpuCpuDevice *device = cpu (base);
  GpuCpuCommand *command = gpu_cpu_command_new (GPU_CPU_COPY, 0);

  command->copy.rows = *copy;
  GpuCpuMark mark = submit (base, stream, command);
  if (kind != GPU_COPY_DEVICE) {
    pthread_mutex_lock (&gpu_cpu_host.lock);
    gpu_cpu_mark_wait (device, mark);
    pthread_mutex_unlock (&gpu_cpu_host.lock);
  }
  return true;
}

/* All host memory, and marks know no devices: there is nothing to open. But who waits on one executor cannot make the
 * other one run. */
static bool
cpu_peer_open (GpuDevice *base, GpuDevice *source, GError **error)
{
  if (cpu (base)->executor == cpu (source)->executor)
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "%s and %s have different executors and cannot wait for each other; make both with the same", base->name,
               source->name);
  return false;
}

static bool
cpu_peer_copy (GpuDevice *base, GpuDevice *source, const GpuCopy *copy, void *stream, GError **error)
{
  return cpu_copy (base, copy, GPU_COPY_DEVICE, stream, error);
}

static bool
cpu_fill (GpuDevice *base, const GpuCopy *dst_only, uint8_t value, void *stream, GError **error)
{
  GpuCpuCommand *command = gpu_cpu_command_new (GPU_CPU_FILL, 0);

  command->copy.rows = *dst_only;
  command->copy.value = value;
  submit (base, stream, command);
  return true;
}

static bool
cpu_launch (GpuDevice *base, const GpuKernel *kernel, const void *args, GpuExtent extent, void *stream, GError **error)
{
  if (!kernel->run) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "device %s cannot launch the kernel %s, which has no function for the CPU; use a CUDA device for it",
                 base->name, kernel->name);
    return false;
  }
  GpuCpuCommand *command = gpu_cpu_command_new (GPU_CPU_LAUNCH, kernel->args_size);

  command->launch.kernel = kernel;
  command->launch.extent = extent;
  if (kernel->args_size > 0)
    memcpy (command->args, args, kernel->args_size);
  submit (base, stream, command);
  return true;
}

static bool
cpu_launch_table (GpuDevice *base, const GpuKernel *kernel, const void *args, const void *table, uint32_t n,
                  GpuExtent extent, void *stream, GError **error)
{
  GpuCpuCommand *command = gpu_cpu_command_new (GPU_CPU_LAUNCH_TABLE, 0);

  command->launch.kernel = kernel;
  command->launch.extent = extent;
  command->launch.table = table;
  command->launch.n = n;
  submit (base, stream, command);
  return true;
}

static bool
cpu_host_call (GpuDevice *base, void (*func) (void *data), void *data, void *stream, GError **error)
{
  GpuCpuCommand *command = gpu_cpu_command_new (GPU_CPU_HOST_CALL, 0);

  command->call.func = func;
  command->call.data = data;
  submit (base, stream, command);
  return true;
}

static bool
cpu_gate_create (GpuDevice *base, void **gate, GError **error)
{
  *gate = g_new0 (GpuCpuGate, 1);
  return true;
}

static bool
cpu_gate_hold (GpuDevice *base, void *gate, void *stream, GError **error)
{
  GpuCpuCommand *command = gpu_cpu_command_new (GPU_CPU_GATE, 0);

  command->gate = gate;
  submit (base, stream, command);
  return true;
}

static void
cpu_gate_open (GpuDevice *base, void *gate)
{
  pthread_mutex_lock (&gpu_cpu_host.lock);
  ((GpuCpuGate *)gate)->is_open = true;
  pthread_cond_broadcast (&gpu_cpu_host.progress);
  pthread_mutex_unlock (&gpu_cpu_host.lock);
}

static void
cpu_gate_destroy (GpuDevice *base, void *gate)
{
  g_free (gate);
}

static const GpuDeviceFuncs cpu_funcs = {
    .destroy = cpu_destroy,
    .memory_info = gpu_cpu_memory_info,
    .alloc = gpu_cpu_alloc,
    .free = gpu_cpu_free,
    .trim = gpu_cpu_trim,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .stream_synchronize = cpu_stream_synchronize,
    .synchronize = cpu_synchronize,
    .event_create = cpu_event_create,
    .event_destroy = cpu_event_destroy,
    .event_record = cpu_event_record,
    .event_query = cpu_event_query,
    .event_synchronize = cpu_event_synchronize,
    .stream_wait = cpu_stream_wait,
    .copy = cpu_copy,
    .peer_open = cpu_peer_open,
    .peer_copy = cpu_peer_copy,
    .fill = cpu_fill,
    .launch = cpu_launch,
    .launch_table = cpu_launch_table,
    .host_call = cpu_host_call,
    .gate_create = cpu_gate_create,
    .gate_hold = cpu_gate_hold,
    .gate_open = cpu_gate_open,
    .gate_destroy = cpu_gate_destroy,
};

GpuDevice *
gpu_device_cpu_new (const char *name, GpuCpuExecutor executor, uint64_t memory_bytes, GError **error)
{
  GpuCpuDevice *device = g_new0 (GpuCpuDevice, 1);

  device->base.funcs = &cpu_funcs;
  device->base.name = g_strdup (name);
  device->base.description =
      g_strdup (executor == GPU_CPU_LAZY ? "host CPU, lazy executor" : "host CPU, a thread a stream");
  device->base.is_host = true;
  device->executor = executor;
  gpu_cpu_queues_init (device);
  device->free_streams = g_ptr_array_new ();
  device->free_events = g_ptr_array_new ();
  gpu_cpu_memory_init (device, memory_bytes);

  if (!gpu_device_init (&device->base, error)) {
    cpu_destroy (&device->base);
    return NULL;
  }
  return &device->base;
}

GpuDevice *
gpu_cpu_device_new (const char *name, GpuCpuExecutor executor, uint64_t memory_bytes)
{
  g_return_val_if_fail (name != NULL, NULL);

  g_autoptr (GError) error = NULL;
  GpuDevice *device = gpu_device_cpu_new (name, executor, memory_bytes, &error);
  if (!device)
    g_critical ("%s", error->message);
  return device;
}

unsigned
gpu_cpu_device_run (GpuDevice *device, unsigned steps, uint32_t seed)
{
  g_return_val_if_fail (device != NULL, 0);
  g_return_val_if_fail (device->funcs == &cpu_funcs, 0);

  return cpu (device)->executor == GPU_CPU_LAZY ? gpu_cpu_queues_run (cpu (device), steps, seed) : 0;
}
