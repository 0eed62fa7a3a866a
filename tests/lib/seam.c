/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See seam.h.
 */
#include "seam.h"

static void
assert_ok (bool ok, GError *error)
{
  g_assert_no_error (error);
  g_assert_true (ok);
}

void
seam_setup (Seam *seam, const void *data)
{
  seam->device = test_device_new ();
  seam->s = seam_stream (seam);
  seam->t = seam_stream (seam);
}

void
seam_teardown (Seam *seam, const void *data)
{
  gpu_device_stream_destroy (seam->device, seam->s);
  gpu_device_stream_destroy (seam->device, seam->t);
  gpu_device_unref (seam->device);
}

void *
seam_stream (Seam *seam)
{
  GError *error = NULL;
  void *stream = NULL;

  assert_ok (gpu_device_stream_create (seam->device, &stream, &error), error);
  return stream;
}

void *
seam_event (Seam *seam)
{
  GError *error = NULL;
  void *event = NULL;

  assert_ok (gpu_device_event_create (seam->device, &event, &error), error);
  return event;
}

void *
seam_alloc (Seam *seam, size_t size, void *stream)
{
  GError *error = NULL;
  void *data = NULL;

  assert_ok (gpu_device_alloc (seam->device, GPU_MEMORY_STREAM_ORDERED, size, 256, stream, &data, &error), error);
  g_assert_nonnull (data);
  return data;
}

void
seam_free (Seam *seam, void *data, size_t size, void *stream)
{
  GError *error = NULL;

  assert_ok (gpu_device_free (seam->device, GPU_MEMORY_STREAM_ORDERED, data, size, stream, &error), error);
}

void
seam_fill (Seam *seam, void *data, size_t size, uint8_t value, void *stream)
{
  GError *error = NULL;
  const GpuCopy copy = {.dst = data, .dst_stride = size, .row_bytes = size, .rows = 1};

  assert_ok (gpu_device_fill (seam->device, &copy, value, stream, &error), error);
}

void
seam_copy (Seam *seam, void *dst, const void *src, size_t size, void *stream)
{
  GError *error = NULL;
  const GpuCopy copy = {.dst = dst, .dst_stride = size, .src = src, .src_stride = size, .row_bytes = size, .rows = 1};

  assert_ok (gpu_device_copy (seam->device, &copy, GPU_COPY_DEVICE, stream, &error), error);
}

void
seam_record (Seam *seam, void *event, void *stream)
{
  GError *error = NULL;

  assert_ok (gpu_device_event_record (seam->device, event, stream, &error), error);
}

void
seam_wait (Seam *seam, void *stream, void *event)
{
  GError *error = NULL;

  assert_ok (gpu_device_stream_wait (seam->device, stream, seam->device, event, &error), error);
}

void
seam_sync (Seam *seam, void *stream)
{
  GError *error = NULL;

  assert_ok (gpu_device_stream_synchronize (seam->device, stream, &error), error);
}

void
seam_sync_event (Seam *seam, void *event)
{
  GError *error = NULL;

  assert_ok (gpu_device_event_synchronize (seam->device, event, &error), error);
}

bool
seam_is_complete (Seam *seam, void *event)
{
  GError *error = NULL;
  GpuStatus status = gpu_device_event_query (seam->device, event, &error);

  assert_ok (status != GPU_STATUS_FAILED, error);
  return status == GPU_STATUS_COMPLETE;
}

void
seam_expect (Seam *seam, const void *data, size_t size, uint8_t value, void *stream)
{
  GError *error = NULL;
  g_autofree uint8_t *host = g_malloc (size);
  const GpuCopy copy = {.dst = host, .dst_stride = size, .src = data, .src_stride = size, .row_bytes = size, .rows = 1};

  assert_ok (gpu_device_copy (seam->device, &copy, GPU_COPY_TO_HOST, stream, &error), error);
  for (size_t i = 0; i < size; i++)
    g_assert_cmphex (host[i], ==, value);
}

/* Gates are below the wrappers. */
void *
seam_close (Seam *seam, void *stream)
{
  GError *error = NULL;
  void *gate = NULL;

  assert_ok (seam->device->funcs->gate_create (seam->device, &gate, &error), error);
  assert_ok (seam->device->funcs->gate_hold (seam->device, gate, stream, &error), error);
  return gate;
}

void
seam_open (Seam *seam, void *gate, void *stream)
{
  seam->device->funcs->gate_open (seam->device, gate);
  seam_sync (seam, stream);
  seam->device->funcs->gate_destroy (seam->device, gate);
}
