/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The seam on every device: what streams, events, memory, copies and gates promise, and what the wrappers add: counts,
 * injected failures, loss.
 */
#include "seam.h"

#include "gpucache/stream-priv.h"

#include <string.h>

#define SIZE 4096

static void
test_names (Seam *seam, const void *data)
{
  const char *prefix = test_is_cuda () ? "cuda:0" : "cpu:0";

  g_assert_cmpstr (gpu_device_name (seam->device), ==, prefix);
  g_assert_cmpuint (strlen (gpu_device_description (seam->device)), >, 0);
  g_assert_true (gpu_device_is_host (seam->device) == !test_is_cuda ());
  g_assert_false (gpu_device_is_lost (seam->device));
  g_assert_true ((gpu_device_cuda_context (seam->device) != NULL) == test_is_cuda ());
}

static void
test_memory_info (Seam *seam, const void *data)
{
  uint64_t free_bytes, total_bytes;

  g_assert_true (gpu_device_memory_info (seam->device, &free_bytes, &total_bytes, NULL));
  g_assert_cmpuint (total_bytes, >, 0);
  g_assert_cmpuint (free_bytes, <=, total_bytes);
  g_assert_true (gpu_device_memory_info (seam->device, NULL, NULL, NULL));
}

static void
test_alloc_kinds (Seam *seam, const void *data)
{
  static const size_t alignments[] = {1, 256, 512, 4096, 65536};

  for (unsigned kind = 0; kind < GPU_N_MEMORY_KINDS; kind++) {
    for (unsigned i = 0; i < G_N_ELEMENTS (alignments); i++) {
      void *memory;
      g_autoptr (GError) error = NULL;
      void *stream = kind == GPU_MEMORY_STREAM_ORDERED ? seam->s : NULL;

      g_assert_true (gpu_device_alloc (seam->device, kind, 1000, alignments[i], stream, &memory, &error));
      g_assert_no_error (error);
      g_assert_cmpuint ((uintptr_t)memory % MAX (alignments[i], 256), ==, 0);
      seam_fill (seam, memory, 1000, 3, seam->s);
      seam_expect (seam, memory, 1000, 3, seam->s);
      if (kind == GPU_MEMORY_HOST || kind == GPU_MEMORY_MANAGED)
        g_assert_cmphex (((uint8_t *)memory)[999], ==, 3);
      g_assert_true (gpu_device_free (seam->device, kind, memory, 1000, stream, &error));
      g_assert_no_error (error);
    }
  }
}

static void
test_alloc_invalid (Seam *seam, const void *data)
{
  static const struct {
    size_t size, alignment;
  } cases[] = {{0, 256}, {100, 384}};

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    void *memory = seam;
    g_assert_false (gpu_device_alloc (seam->device, GPU_MEMORY_STREAM_ORDERED, cases[i].size, cases[i].alignment,
                                      seam->s, &memory, &error));
    g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
    g_assert_null (memory);
  }
  g_assert_false (gpu_device_is_lost (seam->device));
}

/* Memory freed on a stream serves work that is submitted there before the free. */
static void
test_free_is_ordered (Seam *seam, const void *data)
{
  void *a = seam_alloc (seam, SIZE, seam->s);
  void *b = seam_alloc (seam, SIZE, seam->s);

  void *gate = seam_close (seam, seam->s);
  seam_fill (seam, a, SIZE, 1, seam->s);
  seam_copy (seam, b, a, SIZE, seam->s);
  seam_free (seam, a, SIZE, seam->s);
  void *c = seam_alloc (seam, SIZE, seam->s);
  seam_fill (seam, c, SIZE, 2, seam->s);
  seam_open (seam, gate, seam->s);
  seam_expect (seam, b, SIZE, 1, seam->s);
  seam_expect (seam, c, SIZE, 2, seam->s);
  seam_free (seam, b, SIZE, seam->s);
  seam_free (seam, c, SIZE, seam->s);
}

static void
test_event_unrecorded (Seam *seam, const void *data)
{
  void *event = seam_event (seam);

  g_assert_true (seam_is_complete (seam, event));
  seam_sync_event (seam, event);
  seam_wait (seam, seam->s, event);
  seam_sync (seam, seam->s);
  gpu_device_event_destroy (seam->device, event);
}

static void
test_event_pending (Seam *seam, const void *data)
{
  void *event = seam_event (seam);

  void *gate = seam_close (seam, seam->s);
  seam_record (seam, event, seam->s);
  g_assert_false (seam_is_complete (seam, event));
  seam_open (seam, gate, seam->s);
  g_assert_true (seam_is_complete (seam, event));
  gpu_device_event_destroy (seam->device, event);
}

/* An event stands for what came before it, not for what comes after. */
static void
test_event_position (Seam *seam, const void *data)
{
  void *memory = seam_alloc (seam, SIZE, seam->s);
  void *event = seam_event (seam);

  seam_fill (seam, memory, SIZE, 1, seam->s);
  seam_record (seam, event, seam->s);
  void *gate = seam_close (seam, seam->s);
  seam_fill (seam, memory, SIZE, 2, seam->s);
  seam_sync_event (seam, event);
  seam_expect (seam, memory, SIZE, 1, seam->t);
  seam_open (seam, gate, seam->s);
  seam_expect (seam, memory, SIZE, 2, seam->s);
  seam_free (seam, memory, SIZE, seam->s);
  gpu_device_event_destroy (seam->device, event);
}

static void
test_wait_orders (Seam *seam, const void *data)
{
  void *a = seam_alloc (seam, SIZE, seam->s);
  void *b = seam_alloc (seam, SIZE, seam->t);
  void *event = seam_event (seam), *done = seam_event (seam);

  void *gate = seam_close (seam, seam->s);
  seam_fill (seam, a, SIZE, 1, seam->s);
  seam_record (seam, event, seam->s);
  seam_wait (seam, seam->t, event);
  seam_copy (seam, b, a, SIZE, seam->t);
  seam_record (seam, done, seam->t);
  g_assert_false (seam_is_complete (seam, done));
  seam_open (seam, gate, seam->s);
  seam_expect (seam, b, SIZE, 1, seam->t);
  seam_free (seam, a, SIZE, seam->s);
  seam_free (seam, b, SIZE, seam->t);
  gpu_device_event_destroy (seam->device, event);
  gpu_device_event_destroy (seam->device, done);
}

/* A wait is for the event's last record at the time of the call: recording it anew changes nothing about it. */
static void
test_wait_then_record_again (Seam *seam, const void *data)
{
  void *event = seam_event (seam);
  void *u = seam_stream (seam);

  void *first = seam_close (seam, seam->s);
  seam_record (seam, event, seam->s);
  seam_wait (seam, seam->t, event);
  void *second = seam_close (seam, u);
  seam_record (seam, event, u);
  seam_open (seam, first, seam->s);
  seam_sync (seam, seam->t);
  g_assert_false (seam_is_complete (seam, event));
  seam_open (seam, second, u);
  g_assert_true (seam_is_complete (seam, event));
  gpu_device_event_destroy (seam->device, event);
  gpu_device_stream_destroy (seam->device, u);
}

/* A wait outlives its event, also if the handle comes back for another one. */
static void
test_wait_then_destroy (Seam *seam, const void *data)
{
  void *a = seam_alloc (seam, SIZE, seam->s);
  void *b = seam_alloc (seam, SIZE, seam->t);
  void *event = seam_event (seam);

  seam_sync (seam, seam->s);
  void *gate = seam_close (seam, seam->s);
  seam_fill (seam, a, SIZE, 1, seam->s);
  seam_record (seam, event, seam->s);
  seam_wait (seam, seam->t, event);
  seam_copy (seam, b, a, SIZE, seam->t);
  gpu_device_event_destroy (seam->device, event);
  void *next = seam_event (seam);
  if (!test_is_cuda ())
    g_assert_true (next == event);
  g_assert_true (seam_is_complete (seam, next));
  seam_record (seam, next, seam->t);
  g_assert_false (seam_is_complete (seam, next));
  seam_open (seam, gate, seam->s);
  seam_expect (seam, b, SIZE, 1, seam->t);
  seam_free (seam, a, SIZE, seam->s);
  seam_free (seam, b, SIZE, seam->t);
  gpu_device_event_destroy (seam->device, next);
}

/* A stream's work goes on when the stream is gone, without whoever destroys it waiting. */
static void
test_stream_destroy_pending (Seam *seam, const void *data)
{
  void *u = seam_stream (seam);
  void *memory = seam_alloc (seam, SIZE, u);
  void *event = seam_event (seam);

  seam_fill (seam, memory, SIZE, 1, u);
  void *gate = seam_close (seam, u);
  seam_fill (seam, memory, SIZE, 2, u);
  seam_record (seam, event, u);
  gpu_device_stream_destroy (seam->device, u);

  void *next = seam_stream (seam);
  if (!test_is_cuda ()) { /* whose driver may give it the queue of the one that is held */
    g_assert_true (next == u);
    seam_sync (seam, next); /* is not held by the gate */
  }
  g_assert_false (seam_is_complete (seam, event));
  seam->device->funcs->gate_open (seam->device, gate);
  seam_sync_event (seam, event);
  seam_expect (seam, memory, SIZE, 2, next);
  seam->device->funcs->gate_destroy (seam->device, gate);
  seam_free (seam, memory, SIZE, next);
  gpu_device_stream_destroy (seam->device, next);
  gpu_device_event_destroy (seam->device, event);
}

static void
test_copy_rows (Seam *seam, const void *data)
{
  enum { WIDTH = 37, ROWS = 11, STRIDE = 64, HOST_STRIDE = 41 };
  g_autofree uint8_t *host = test_random_bytes (HOST_STRIDE * ROWS, 1);
  uint8_t back[HOST_STRIDE * ROWS];
  uint8_t *a = seam_alloc (seam, STRIDE * ROWS, seam->s);
  uint8_t *b = seam_alloc (seam, STRIDE * ROWS, seam->s);

  seam_fill (seam, a, STRIDE * ROWS, 0xEE, seam->s);
  seam_fill (seam, b, STRIDE * ROWS, 0xDD, seam->s);
  const GpuCopy up = {a, STRIDE, host, HOST_STRIDE, WIDTH, ROWS};
  g_assert_true (gpu_device_copy (seam->device, &up, GPU_COPY_FROM_HOST, seam->s, NULL));
  const GpuCopy across = {b, STRIDE, a, STRIDE, WIDTH, ROWS};
  g_assert_true (gpu_device_copy (seam->device, &across, GPU_COPY_DEVICE, seam->s, NULL));
  memset (back, 0x11, sizeof back);
  const GpuCopy down = {back, HOST_STRIDE, b, STRIDE, WIDTH, ROWS};
  g_assert_true (gpu_device_copy (seam->device, &down, GPU_COPY_TO_HOST, seam->s, NULL));
  for (unsigned i = 0; i < sizeof back; i++)
    g_assert_cmphex (back[i], ==, i % HOST_STRIDE < WIDTH ? host[i] : 0x11);
  for (unsigned y = 0; y < ROWS; y++)
    seam_expect (seam, b + y * STRIDE + WIDTH, STRIDE - WIDTH, 0xDD, seam->s);

  const GpuCopy fill = {.dst = b, .dst_stride = STRIDE, .row_bytes = WIDTH, .rows = ROWS};
  g_assert_true (gpu_device_fill (seam->device, &fill, 5, seam->s, NULL));
  for (unsigned y = 0; y < ROWS; y++) {
    seam_expect (seam, b + y * STRIDE, WIDTH, 5, seam->s);
    seam_expect (seam, b + y * STRIDE + WIDTH, STRIDE - WIDTH, 0xDD, seam->s);
  }
  seam_free (seam, a, STRIDE * ROWS, seam->s);
  seam_free (seam, b, STRIDE * ROWS, seam->s);
}

static void
count_call (void *data)
{
  atomic_fetch_add ((atomic_uint *)data, 1);
}

static void
test_host_call (Seam *seam, const void *data)
{
  atomic_uint count = 0;

  void *gate = seam_close (seam, seam->s);
  g_assert_true (gpu_device_host_call (seam->device, count_call, &count, seam->s, NULL));
  seam_sync (seam, seam->t);
  g_assert_cmpuint (atomic_load (&count), ==, 0);
  seam_open (seam, gate, seam->s);
  g_assert_cmpuint (atomic_load (&count), ==, 1);
}

/* The device's last reference waits for what streams left behind. */
static void
test_destroy_waits (void)
{
  Seam seam;
  atomic_uint count = 0;

  seam_setup (&seam, NULL);
  for (unsigned i = 0; i < 100; i++)
    g_assert_true (gpu_device_host_call (seam.device, count_call, &count, i % 2 ? seam.s : seam.t, NULL));
  seam_teardown (&seam, NULL);
  if (!test_is_cuda ())
    g_assert_cmpuint (atomic_load (&count), ==, 100);
}

static GpuStream *
new_stream (GpuDevice *device)
{
  g_autoptr (GError) error = NULL;

  GpuStream *stream = gpu_stream_new (device, false, &error);
  g_assert_no_error (error);
  return stream;
}

static void
test_gate (Seam *seam, const void *data)
{
  g_autoptr (GError) error = NULL;
  GpuPoint point = {NULL, 0};
  GpuStream *stream = new_stream (seam->device), *other = new_stream (seam->device);

  GpuGate *gate = gpu_gate_new (seam->device, &error);
  g_assert_no_error (error);
  uint64_t present = gpu_stream_present (stream);
  g_assert_true (gpu_gate_hold (gate, stream, &error));
  g_assert_true (gpu_gate_hold (gate, other, &error));
  g_assert_cmpuint (gpu_stream_present (stream), ==, present + 1);
  g_assert_true (gpu_point_mark (&point, stream, &error));
  g_assert_false (gpu_point_is_complete (&point));
  gpu_gate_open (gate);
  g_assert_true (gpu_point_wait (&point, &error));
  g_assert_true (gpu_stream_synchronize (other, &error));
  /* One that is open holds nobody. */
  g_assert_true (gpu_gate_hold (gate, stream, &error));
  g_assert_true (gpu_stream_synchronize (stream, &error));
  g_assert_no_error (error);
  gpu_gate_free (gate);
  gpu_point_clear (&point);
  gpu_stream_unref (stream);
  gpu_stream_unref (other);
}

/* Freeing a closed gate opens it, also for a stream that is gone; neither it nor its calls show in counts. */
static void
test_gate_free (Seam *seam, const void *data)
{
  atomic_uint count = 0;
  GpuStream *stream = new_stream (seam->device);

  uint64_t waits = gpu_device_calls (seam->device, GPU_CALL_EVENT_WAIT);
  GpuGate *gate = gpu_gate_new (seam->device, NULL);
  g_assert_true (gpu_gate_hold (gate, stream, NULL));
  gpu_stream_unref (stream);
  g_assert_true (gpu_device_host_call (seam->device, count_call, &count, seam->s, NULL));
  gpu_gate_free (gate);
  g_assert_cmpuint (gpu_device_calls (seam->device, GPU_CALL_EVENT_WAIT), ==, waits);
  seam_sync (seam, seam->s);
}

static void
test_gate_other_device (Seam *seam, const void *data)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *other = test_device_new_full (1, 0);
  GpuStream *stream = new_stream (other);
  GpuGate *gate = gpu_gate_new (seam->device, NULL);

  g_assert_false (gpu_gate_hold (gate, stream, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, gpu_device_name (other)));
  gpu_gate_free (gate);
  gpu_stream_unref (stream);
  gpu_device_unref (other);
}

/* One call of a sort, made so that it succeeds unless it is made to fail. */
static bool
make_call (Seam *seam, GpuCall call, void *memory, void *event, GError **error)
{
  static const GpuKernel kernel = {.name = "none", .block = {1, 1, 1}};
  const GpuCopy fill = {.dst = memory, .dst_stride = SIZE, .row_bytes = SIZE, .rows = 1};
  GpuDevice *device = seam->device;
  void *made;

  switch (call) {
  case GPU_CALL_ALLOC:
    if (!gpu_device_alloc (device, GPU_MEMORY_STREAM_ORDERED, SIZE, 256, seam->s, &made, error))
      return false;
    seam_free (seam, made, SIZE, seam->s);
    return true;
  case GPU_CALL_FREE:
    made = seam_alloc (seam, SIZE, seam->s);
    return gpu_device_free (device, GPU_MEMORY_STREAM_ORDERED, made, SIZE, seam->s, error);
  case GPU_CALL_STREAM_CREATE:
    if (!gpu_device_stream_create (device, &made, error))
      return false;
    gpu_device_stream_destroy (device, made);
    return true;
  case GPU_CALL_EVENT_CREATE:
    if (!gpu_device_event_create (device, &made, error))
      return false;
    gpu_device_event_destroy (device, made);
    return true;
  case GPU_CALL_EVENT_RECORD:
    return gpu_device_event_record (device, event, seam->s, error);
  case GPU_CALL_EVENT_QUERY:
    return gpu_device_event_query (device, event, error) != GPU_STATUS_FAILED;
  case GPU_CALL_EVENT_WAIT:
    return gpu_device_event_synchronize (device, event, error);
  case GPU_CALL_STREAM_WAIT:
    return gpu_device_stream_wait (device, seam->t, device, event, error);
  case GPU_CALL_COPY:
    return gpu_device_fill (device, &fill, 1, seam->s, error);
  case GPU_CALL_LAUNCH: {
    /* There is no such kernel: to have been refused as unsupported is to have got through to the device. */
    g_autoptr (GError) refused = NULL;
    gpu_device_launch (device, &kernel, NULL, (GpuExtent){1, 1, 1}, seam->s, &refused);
    if (g_error_matches (refused, GPU_ERROR, GPU_ERROR_UNSUPPORTED))
      return true;
    g_propagate_error (error, g_steal_pointer (&refused));
    return false;
  }
  }
  g_assert_not_reached ();
}

static void
test_fail (const void *data)
{
  GpuCall call = GPOINTER_TO_UINT (data);
  Seam seam;

  seam_setup (&seam, NULL);
  void *memory = seam_alloc (&seam, SIZE, seam.s);
  void *event = seam_event (&seam);
  uint64_t calls = gpu_device_calls (seam.device, call);

  gpu_device_fail (seam.device, call, 1, 2);
  g_assert_true (make_call (&seam, call, memory, event, NULL));
  g_assert_cmpuint (gpu_device_calls (seam.device, call), ==, calls + 1);
  g_assert_false (gpu_device_is_lost (seam.device));

  g_autoptr (GError) first = NULL, second = NULL;
  g_assert_false (make_call (&seam, call, memory, event, &first));
  if (call == GPU_CALL_ALLOC) {
    /* A refusal of memory leaves no work in doubt. */
    g_assert_error (first, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
    g_assert_false (make_call (&seam, call, memory, event, NULL));
    g_assert_true (make_call (&seam, call, memory, event, NULL));
    g_assert_false (gpu_device_is_lost (seam.device));
  } else {
    g_assert_error (first, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
    g_assert_true (gpu_device_is_lost (seam.device));
    /* Whatever comes next is refused for the first reason. */
    g_assert_false (gpu_device_event_record (seam.device, event, seam.s, &second));
    g_assert_error (second, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
    g_assert_nonnull (strstr (second->message, first->message));
    g_assert_false (gpu_device_memory_info (seam.device, NULL, NULL, NULL));
    g_assert_null (gpu_gate_new (seam.device, NULL));
  }

  gpu_device_event_destroy (seam.device, event);
  if (call == GPU_CALL_ALLOC)
    seam_free (&seam, memory, SIZE, seam.s);
  seam_teardown (&seam, NULL);
}

/* Counts and failures of one sort leave the others alone. */
static void
test_fail_is_selective (Seam *seam, const void *data)
{
  void *event = seam_event (seam);

  gpu_device_fail (seam->device, GPU_CALL_STREAM_CREATE, 0, 1);
  uint64_t queries = gpu_device_calls (seam->device, GPU_CALL_EVENT_QUERY);
  seam_record (seam, event, seam->s);
  seam_sync_event (seam, event);
  g_assert_cmpuint (gpu_device_calls (seam->device, GPU_CALL_EVENT_QUERY), ==, queries);
  gpu_device_fail (seam->device, GPU_CALL_STREAM_CREATE, 0, 0);
  gpu_device_stream_destroy (seam->device, seam_stream (seam));
  gpu_device_event_destroy (seam->device, event);
}

static void
test_lost_keeps_first_reason (Seam *seam, const void *data)
{
  g_autoptr (GError) first = g_error_new (GPU_ERROR, GPU_ERROR_DEVICE_LOST, "the first reason");
  g_autoptr (GError) second = g_error_new (GPU_ERROR, GPU_ERROR_DEVICE_LOST, "the second reason");
  g_autoptr (GError) error = NULL;

  gpu_device_set_lost (seam->device, first);
  gpu_device_set_lost (seam->device, second);
  g_assert_false (gpu_device_check (seam->device, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_assert_nonnull (strstr (error->message, "the first reason"));
  g_assert_nonnull (strstr (error->message, gpu_device_name (seam->device)));
}

typedef struct {
  Seam *seam;
  void **events; /* one a thread, recorded by all */
  unsigned index, n;
} Hammer;

/* Passes memory from one stream to another, and waits for events that others record at the same time. */
static void *
hammer (void *data)
{
  Hammer *self = data;
  Seam *seam = self->seam;
  void *event = self->events[self->index];

  for (unsigned round = 0; round < 100; round++) {
    void *a = seam_stream (seam), *b = seam_stream (seam);
    size_t size = 64u << (round % 5);
    uint8_t value = (uint8_t)(self->index * 16 + round);
    void *memory = seam_alloc (seam, size, a);

    seam_fill (seam, memory, size, value, a);
    seam_record (seam, event, a);
    seam_wait (seam, b, event);
    seam_wait (seam, b, self->events[round % self->n]);
    seam_expect (seam, memory, size, value, b);
    if (round % 3 == 0)
      gpu_device_stream_destroy (seam->device, a);
    seam_free (seam, memory, size, b);
    if (round % 3 != 0)
      gpu_device_stream_destroy (seam->device, a);
    gpu_device_stream_destroy (seam->device, b);
  }
  return NULL;
}

static void
test_hammer (Seam *seam, const void *data)
{
  enum { N = 6 };
  pthread_t threads[N];
  void *events[N];
  Hammer hammers[N];

  for (unsigned i = 0; i < N; i++)
    events[i] = seam_event (seam);
  for (unsigned i = 0; i < N; i++) {
    hammers[i] = (Hammer){.seam = seam, .events = events, .index = i, .n = N};
    g_assert_cmpint (pthread_create (&threads[i], NULL, hammer, &hammers[i]), ==, 0);
  }
  for (unsigned i = 0; i < N; i++)
    pthread_join (threads[i], NULL);
  for (unsigned i = 0; i < N; i++)
    gpu_device_event_destroy (seam->device, events[i]);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  SEAM_TEST ("/device/names", test_names);
  SEAM_TEST ("/device/memory-info", test_memory_info);
  SEAM_TEST ("/device/memory/kinds", test_alloc_kinds);
  SEAM_TEST ("/device/memory/invalid", test_alloc_invalid);
  SEAM_TEST ("/device/memory/free-is-ordered", test_free_is_ordered);
  SEAM_TEST ("/device/event/unrecorded", test_event_unrecorded);
  SEAM_TEST ("/device/event/pending", test_event_pending);
  SEAM_TEST ("/device/event/position", test_event_position);
  SEAM_TEST ("/device/wait/orders", test_wait_orders);
  SEAM_TEST ("/device/wait/then-record-again", test_wait_then_record_again);
  SEAM_TEST ("/device/wait/then-destroy", test_wait_then_destroy);
  SEAM_TEST ("/device/stream/destroy-pending", test_stream_destroy_pending);
  SEAM_TEST ("/device/copy-rows", test_copy_rows);
  SEAM_TEST ("/device/host-call", test_host_call);
  g_test_add_func ("/device/destroy-waits", test_destroy_waits);
  SEAM_TEST ("/device/gate/holds", test_gate);
  SEAM_TEST ("/device/gate/free-opens", test_gate_free);
  SEAM_TEST ("/device/gate/other-device", test_gate_other_device);
  for (unsigned call = 0; call < GPU_N_CALLS; call++) {
    g_autofree char *path = g_strdup_printf ("/device/rule-24/fail/%u", call);
    g_test_add_data_func (path, GUINT_TO_POINTER (call), test_fail);
  }
  SEAM_TEST ("/device/rule-24/fail/selective", test_fail_is_selective);
  SEAM_TEST ("/device/rule-24/first-reason", test_lost_keeps_first_reason);
  SEAM_TEST ("/device/hammer", test_hammer);
  return g_test_run ();
}
