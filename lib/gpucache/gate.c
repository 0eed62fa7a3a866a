/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Gates: they hold streams for tests. What a gate does behind the submissions goes to the device directly, not through
 * the wrappers, so that it neither shows in counts nor takes a failure that was meant for the code under test.
 */
#include "stream-priv.h"

struct GpuGate {
  GpuDevice *device;
  void *native;
  pthread_mutex_t lock;
  GPtrArray *passed; /* native events, one after each hold */
};

GpuGate *
gpu_gate_new (GpuDevice *device, GError **error)
{
  void *native;

  g_return_val_if_fail (device != NULL, NULL);
  if (!gpu_device_check (device, error) || !device->funcs->gate_create (device, &native, error))
    return NULL;

  GpuGate *gate = g_new0 (GpuGate, 1);
  gate->device = gpu_device_ref (device);
  gate->native = native;
  gate->passed = g_ptr_array_new ();
  pthread_mutex_init (&gate->lock, NULL);
  return gate;
}

static bool
submit_hold (GpuDevice *device, void *stream, void *data, GError **error)
{
  GpuGate *gate = data;
  void *event;

  if (!device->funcs->event_create (device, &event, error))
    return false;
  if (!device->funcs->gate_hold (device, gate->native, stream, error) ||
      !device->funcs->event_record (device, event, stream, error)) {
    device->funcs->event_destroy (device, event);
    return false;
  }
  pthread_mutex_lock (&gate->lock);
  g_ptr_array_add (gate->passed, event);
  pthread_mutex_unlock (&gate->lock);
  return true;
}

bool
gpu_gate_hold (GpuGate *gate, GpuStream *stream, GError **error)
{
  g_return_val_if_fail (gate != NULL && stream != NULL, false);

  if (gpu_stream_device (stream) != gate->device) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "a gate of device %s cannot hold a stream of device %s; make a gate on the stream's device",
                 gpu_device_name (gate->device), gpu_device_name (gpu_stream_device (stream)));
    return false;
  }
  return gpu_stream_submit (stream, submit_hold, gate, error) != 0;
}

void
gpu_gate_open (GpuGate *gate)
{
  g_return_if_fail (gate != NULL);
  gate->device->funcs->gate_open (gate->device, gate->native);
}

/* The streams themselves may be gone: the events tell when their work has passed. Errors mean a device that does no
 * more work. */
void
gpu_gate_free (GpuGate *gate)
{
  g_return_if_fail (gate != NULL);

  GpuDevice *device = gate->device;
  device->funcs->gate_open (device, gate->native);
  for (unsigned i = 0; i < gate->passed->len; i++) {
    void *event = g_ptr_array_index (gate->passed, i);
    device->funcs->event_synchronize (device, event, NULL);
    device->funcs->event_destroy (device, event);
  }
  device->funcs->gate_destroy (device, gate->native);
  g_ptr_array_unref (gate->passed);
  pthread_mutex_destroy (&gate->lock);
  g_free (gate);
  gpu_device_unref (device);
}
