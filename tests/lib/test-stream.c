/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Streams, points, histories and the throttle by themselves: rules 20 to 24 and 27.
 */
#include "common.h"
#include "rig.h"

#include <gpucache/stream-priv.h>

#include <string.h>

/* Work that does nothing, for its number. */
static bool
do_nothing (GpuDevice *device, void *native, void *data, GError **error)
{
  if (data)
    *(void **)data = native;
  return true;
}

static bool
do_fail (GpuDevice *device, void *native, void *data, GError **error)
{
  g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED, "made to fail");
  return false;
}

static GpuPoint
submit (GpuStream *stream)
{
  GError *error = NULL;
  uint64_t number = gpu_stream_submit (stream, do_nothing, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (number, !=, 0);
  return (GpuPoint){stream, number};
}

/* Rule 21: the number comes after the driver call, and only if that succeeded. */
static void
test_numbers (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuStream *stream = rig->stream[0];

  uint64_t before = gpu_stream_present (stream);
  g_assert_cmpuint (submit (stream).number, ==, before + 1);
  g_assert_cmpuint (gpu_stream_submit (stream, do_fail, NULL, &error), ==, 0);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  g_assert_cmpuint (gpu_stream_present (stream), ==, before + 1);
  g_assert_cmpuint (gpu_stream_advance (stream), ==, before + 2);
  g_assert_cmpuint (gpu_stream_present (stream), ==, before + 2);
}

/* Rule 21: accesses made by others advance the count, too. */
static void
test_access_advances (Rig *rig, const void *data)
{
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  uint64_t before = gpu_stream_present (rig->stream[1]);

  rig_begin (image, rig->stream[1], GPU_ACCESS_WRITE);
  rig_end (image, rig->stream[1], GPU_ACCESS_WRITE);
  g_assert_cmpuint (gpu_stream_present (rig->stream[1]), >, before);
  gpu_image_unref (image);
}

/* Rule 23: ids are never 0, and never come back even if handles do. */
static void
test_identity (Rig *rig, const void *data)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_direct_hash, g_direct_equal);

  for (unsigned i = 0; i < 200; i++) {
    GpuStream *stream = rig_new_stream (rig, i % 2);
    uint64_t id = gpu_stream_id (stream);
    g_assert_cmpuint (id, !=, 0);
    g_assert_true (g_hash_table_add (seen, GSIZE_TO_POINTER (id)));
    g_assert_true (gpu_stream_device (stream) == rig->device);
    gpu_stream_unref (stream);
  }
  GpuDevice *other = test_device_new_full (1, 0);
  GError *error = NULL;
  GpuStream *stream = gpu_stream_new (other, false, &error);
  g_assert_no_error (error);
  g_assert_true (g_hash_table_add (seen, GSIZE_TO_POINTER (gpu_stream_id (stream))));
  gpu_stream_unref (stream);
  gpu_device_unref (other);
}

/* Order is a comparison of numbers: own work, observed work, and what was waited for. */
static void
test_ordered (Rig *rig, const void *data)
{
  rig_close (rig, 0);
  GpuPoint early = submit (rig->stream[0]);
  rig_wait_stream (rig->stream[1], rig->stream[0]);
  GpuPoint late = submit (rig->stream[0]);

  RigCalls calls = rig_calls (rig);
  g_assert_true (gpu_stream_is_ordered (rig->stream[0], &early));
  g_assert_true (gpu_stream_is_ordered (rig->stream[0], &late));
  g_assert_true (gpu_stream_is_ordered (rig->stream[1], &early));
  g_assert_false (gpu_stream_is_ordered (rig->stream[1], &late));
  g_assert_false (gpu_stream_is_ordered (rig->stream[2], &early));
  g_assert_false (gpu_point_observed (&early));
  g_assert_true (gpu_stream_is_ordered (rig->stream[2], &(GpuPoint){0}));
  g_assert_true (gpu_point_observed (&(GpuPoint){0}));
  rig_expect_no_calls (rig, &calls);

  rig_finish (rig);
  calls = rig_calls (rig);
  g_assert_true (gpu_point_observed (&late));
  g_assert_true (gpu_stream_is_ordered (rig->stream[2], &late));
  rig_expect_no_calls (rig, &calls);
}

/* Rule 21: an event carries what its stream had waited for at the record, so order goes on from stream to stream. */
static void
test_ordered_through (Rig *rig, const void *data)
{
  rig_close (rig, 0);
  GpuPoint point = submit (rig->stream[0]);
  rig_wait_stream (rig->stream[1], rig->stream[0]);
  rig_wait_stream (rig->stream[2], rig->stream[1]);
  rig_wait_stream (rig->stream[3], rig->stream[2]);
  g_assert_true (gpu_stream_is_ordered (rig->stream[3], &point));
  rig_finish (rig);
}

/* Rule 21: and nothing newer: not what its stream waits for after the record. */
static void
test_nothing_newer (Rig *rig, const void *data)
{
  GpuPoint mark = {0};
  GError *error = NULL;

  rig_close (rig, 0);
  GpuPoint point = submit (rig->stream[0]);
  submit (rig->stream[1]);
  g_assert_true (gpu_point_mark (&mark, rig->stream[1], &error));
  g_assert_no_error (error);
  rig_wait_stream (rig->stream[1], rig->stream[0]);
  g_assert_true (gpu_stream_is_ordered (rig->stream[1], &point));
  bool added = false;
  g_assert_true (gpu_stream_wait_point (rig->stream[2], &mark, &added, &error));
  g_assert_no_error (error);
  g_assert_false (gpu_stream_is_ordered (rig->stream[2], &point));
  rig_sync (rig->stream[2]); /* behind nothing that the gate holds */
  gpu_point_clear (&mark);
  rig_finish (rig);
}

/* Rules 19 and 22: no wait is added for what is ordered already. */
static void
test_wait_point (Rig *rig, const void *data)
{
  GError *error = NULL;
  bool added;

  rig_close (rig, 0);
  GpuPoint point = submit (rig->stream[0]);
  g_assert_true (gpu_stream_wait_point (rig->stream[0], &point, &added, &error));
  g_assert_false (added);
  g_assert_true (gpu_stream_wait_point (rig->stream[1], &point, &added, &error));
  g_assert_true (added);
  RigCalls calls = rig_calls (rig);
  g_assert_true (gpu_stream_wait_point (rig->stream[1], &point, &added, &error));
  g_assert_false (added);
  g_assert_true (gpu_stream_wait_point (rig->stream[2], &(GpuPoint){0}, &added, &error));
  g_assert_false (added);
  rig_expect_no_calls (rig, &calls);
  rig_finish (rig);
  calls = rig_calls (rig);
  g_assert_true (gpu_stream_wait_point (rig->stream[3], &point, &added, &error));
  g_assert_false (added);
  rig_expect_no_calls (rig, &calls);
}

/* Rule 22: a busy stream's past still completes: a question uses the event recorded at or after the point. */
static void
test_busy_past (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuPoint mark = {0};

  GpuPoint point = submit (rig->stream[0]);
  g_assert_true (gpu_point_mark (&mark, rig->stream[0], &error));
  g_assert_no_error (error);
  rig_close (rig, 0);
  submit (rig->stream[0]);
  uint64_t records = gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD);
  g_assert_true (gpu_point_wait (&mark, &error));
  g_assert_no_error (error);
  g_assert_cmpint (gpu_point_query (&point, &error), ==, GPU_STATUS_COMPLETE);
  g_assert_no_error (error);
  g_assert_true (gpu_point_is_complete (&mark));
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD), ==, records);
  gpu_point_clear (&mark);
  g_assert_null (mark.stream);
  rig_finish (rig);
}

/* Rule 22: a question about a point after which there is no event records one; asking again records none. */
static void
test_question_records_once (Rig *rig, const void *data)
{
  GError *error = NULL;

  rig_close (rig, 0);
  GpuPoint point = submit (rig->stream[0]);
  uint64_t records = gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD);
  for (unsigned i = 0; i < 3; i++) {
    g_assert_cmpint (gpu_point_query (&point, &error), ==, GPU_STATUS_PENDING);
    g_assert_no_error (error);
  }
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD), ==, records + 1);
  rig_finish (rig);
  g_assert_cmpint (gpu_point_query (&point, &error), ==, GPU_STATUS_COMPLETE);
}

/* Rule 22: work on one stream alone records no events, however much of it there is. */
static void
test_one_stream_records_none (Rig *rig, const void *data)
{
  GpuImage *src = rig_acquire (rig, &rig->spec, rig->stream[0]);

  rig_fill (rig->stream[0], src, 1);
  uint64_t records = gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD);
  for (unsigned i = 0; i < 50; i++) {
    GpuImage *dst = rig_acquire (rig, &rig->spec, rig->stream[0]);
    rig_copy (rig->stream[0], src, dst);
    gpu_image_unref (src);
    src = dst;
  }
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD), ==, records);
  gpu_image_unref (src);
}

/* Rule 22: handles are recycled: a long run across streams makes few events. */
static void
test_events_recycled (Rig *rig, const void *data)
{
  for (unsigned i = 0; i < 500; i++) {
    submit (rig->stream[0]);
    rig_wait_stream (rig->stream[1], rig->stream[0]);
    submit (rig->stream[1]);
    rig_wait_stream (rig->stream[0], rig->stream[1]);
    if (i % 10 == 9)
      rig_finish (rig);
  }
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_CREATE), <, 100);
}

/* Rule 22: a stream records the events anew that it knows to be complete, and leaves them to others when it goes. */
static void
test_stream_keeps_events (Rig *rig, const void *data)
{
  const uint64_t created = gpu_device_calls (rig->device, GPU_CALL_EVENT_CREATE);
  GError *error = NULL;

  for (unsigned i = 0; i < 4; i++) {
    GpuStream *stream = rig_new_stream (rig, false);
    GpuPoint point = {0};
    for (unsigned k = 0; k < 10; k++) {
      submit (stream);
      g_assert_true (gpu_point_mark (&point, stream, &error));
      g_assert_no_error (error);
      while (!gpu_point_is_complete (&point))
        rig_run (rig);
    }
    gpu_point_clear (&point);
    gpu_stream_unref (stream);
  }
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_CREATE), ==, created + 1);
}

static void
mark_once (void *data)
{
  GpuStream *stream = data;
  GError *error = NULL;

  submit (stream);
  g_assert_true (gpu_stream_mark (stream, &error));
  g_assert_no_error (error);
}

/* Each thread's calls are counted, more threads than count apart included. */
static void
test_calls_of_threads (Rig *rig, const void *data)
{
  enum { THREADS = 70 };
  const uint64_t records = gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD);

  for (unsigned i = 0; i < THREADS; i++)
    rig_in_thread (mark_once, rig->stream[0]);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD), ==, records + THREADS);
}

/* Rules 22 and 23: destroying a stream records a last event; points on it stay askable. */
static void
test_point_outlives_stream (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuStream *stream = rig_new_stream (rig, false);
  GpuGate *gate = gpu_gate_new (rig->device, &error);
  GpuPoint point = {0};

  g_assert_no_error (error);
  g_assert_true (gpu_gate_hold (gate, stream, &error));
  submit (stream);
  g_assert_true (gpu_point_mark (&point, stream, &error));
  submit (stream);
  gpu_stream_unref (stream);
  g_assert_false (gpu_point_is_complete (&point));
  bool added = false;
  g_assert_true (gpu_stream_wait_point (rig->stream[0], &point, &added, &error));
  g_assert_no_error (error);
  g_assert_true (added);
  gpu_gate_open (gate);
  rig_sync (rig->stream[0]);
  g_assert_true (gpu_point_wait (&point, &error));
  g_assert_no_error (error);
  g_assert_true (gpu_point_is_complete (&point));
  gpu_point_clear (&point);
  gpu_gate_free (gate);
}

/* Rule 20: a write removes only the accesses that are ordered on its own stream. */
static void
test_history_write (Rig *rig, const void *data)
{
  GpuHistory history;

  gpu_history_init (&history);
  rig_close (rig, 0);
  rig_close (rig, 1);
  GpuPoint write = submit (rig->stream[0]);
  gpu_history_add (&history, &write, GPU_ACCESS_WRITE);
  GpuPoint read = submit (rig->stream[1]);
  gpu_history_add (&history, &read, GPU_ACCESS_READ);
  g_assert_false (gpu_history_is_ordered (&history, rig->stream[0]));
  g_assert_false (gpu_history_is_ordered (&history, rig->stream[1]));

  /* A write on stream 2, which has waited for neither. */
  GpuPoint unordered = submit (rig->stream[2]);
  gpu_history_add (&history, &unordered, GPU_ACCESS_WRITE);
  g_assert_false (gpu_history_is_ordered (&history, rig->stream[2]));
  rig_wait_stream (rig->stream[2], rig->stream[0]);
  g_assert_false (gpu_history_is_ordered (&history, rig->stream[2])); /* the read on stream 1 */
  rig_wait_stream (rig->stream[2], rig->stream[1]);
  g_assert_true (gpu_history_is_ordered (&history, rig->stream[2]));
  g_assert_false (gpu_history_observed (&history));

  /* Now one that is ordered after all of them: it stands alone. */
  GpuPoint last = submit (rig->stream[2]);
  gpu_history_add (&history, &last, GPU_ACCESS_WRITE);
  g_assert_cmpuint (history.n_reads, ==, 0);
  g_assert_false (gpu_history_is_ordered (&history, rig->stream[3]));
  rig_wait_stream (rig->stream[3], rig->stream[2]);
  g_assert_true (gpu_history_is_ordered (&history, rig->stream[3]));
  rig_finish (rig);
  g_assert_true (gpu_history_observed (&history));
  gpu_history_clear (&history);
}

/* Rule 20: the last write, too: a new write that is not ordered after it does not take its place. */
static void
test_history_unordered_write (Rig *rig, const void *data)
{
  GpuHistory history;

  gpu_history_init (&history);
  rig_close (rig, 0);
  GpuPoint first = submit (rig->stream[0]);
  gpu_history_add (&history, &first, GPU_ACCESS_WRITE);
  GpuPoint second = submit (rig->stream[1]);
  gpu_history_add (&history, &second, GPU_ACCESS_WRITE);
  g_assert_false (gpu_history_is_ordered (&history, rig->stream[1]));
  rig_wait_stream (rig->stream[2], rig->stream[1]);
  g_assert_false (gpu_history_is_ordered (&history, rig->stream[2]));
  rig_wait_stream (rig->stream[2], rig->stream[0]);
  g_assert_true (gpu_history_is_ordered (&history, rig->stream[2]));
  rig_sync (rig->stream[1]);
  g_assert_false (gpu_history_observed (&history));
  rig_finish (rig);
  g_assert_true (gpu_history_observed (&history));
  gpu_history_clear (&history);
}

/* Reads on many streams are all remembered; repeated ones on one stream do not pile up. */
static void
test_history_reads (Rig *rig, const void *data)
{
  GpuHistory history;
  GpuStream *stream[9];
  GError *error = NULL;
  GpuGate *gate = gpu_gate_new (rig->device, &error);

  g_assert_no_error (error);
  gpu_history_init (&history);
  for (unsigned i = 0; i < 9; i++) {
    stream[i] = rig_new_stream (rig, false);
    g_assert_true (gpu_gate_hold (gate, stream[i], &error));
    for (unsigned k = 0; k < 5; k++) {
      GpuPoint read = submit (stream[i]);
      gpu_history_add (&history, &read, GPU_ACCESS_READ);
    }
  }
  g_assert_cmpuint (history.n_reads, <=, 9);
  for (unsigned i = 0; i < 9; i++) {
    g_assert_false (gpu_history_is_ordered (&history, rig->stream[0]));
    rig_wait_stream (rig->stream[0], stream[8 - i]);
  }
  g_assert_true (gpu_history_is_ordered (&history, rig->stream[0]));
  gpu_history_clear (&history);
  gpu_gate_open (gate);
  for (unsigned i = 0; i < 9; i++) {
    rig_sync (stream[i]);
    gpu_stream_unref (stream[i]);
  }
  gpu_gate_free (gate);
}

/* Rules 19 and 20: a read on the write's own stream is waited for by writes elsewhere, though not by reads. Whose
 * stream all accesses lie on has nothing to wait for, and is told so until one lies on another. */
static void
test_history_own_read (Rig *rig, const void *data)
{
  GpuStream *const own = rig->stream[0], *const other = rig->stream[1];
  GpuHistory history;

  gpu_history_init (&history);
  g_assert_false (gpu_history_is_on (&history, own));
  rig_close (rig, 0);
  GpuPoint write = submit (own);
  gpu_history_add (&history, &write, GPU_ACCESS_WRITE);
  rig_wait_stream (other, own);
  GpuPoint read = submit (own);
  gpu_history_add (&history, &read, GPU_ACCESS_READ);
  g_assert_true (gpu_history_is_on (&history, own));
  g_assert_true (gpu_stream_is_ordered (other, gpu_history_point (&history, GPU_ACCESS_READ, 0)));
  g_assert_false (gpu_history_is_ordered (&history, other));

  /* A write on the other stream that waited for neither takes the place of the first write, not of the read. */
  GpuPoint unordered = submit (other);
  gpu_history_add (&history, &unordered, GPU_ACCESS_WRITE);
  g_assert_false (gpu_history_is_on (&history, own));
  g_assert_false (gpu_history_is_on (&history, other));
  g_assert_false (gpu_history_is_ordered (&history, other));
  rig_wait_stream (other, own);
  g_assert_true (gpu_history_is_ordered (&history, other));

  GpuPoint last = submit (other);
  gpu_history_add (&history, &last, GPU_ACCESS_WRITE);
  g_assert_true (gpu_history_is_on (&history, other));
  GpuPoint foreign = submit (own);
  gpu_history_add (&history, &foreign, GPU_ACCESS_READ);
  g_assert_false (gpu_history_is_on (&history, other));
  rig_finish (rig);
  gpu_history_clear (&history);
}

/* Rule 24: whatever fails, recording, asking or waiting: not complete, device lost, and everyone gets the error. */
static void
test_fail_closed (gconstpointer data)
{
  GpuCall call = (GpuCall)GPOINTER_TO_UINT (data);
  Rig rig;
  GError *error = NULL;
  GpuPoint point;

  rig_setup (&rig, NULL);
  rig_close (&rig, 0);
  point = submit (rig.stream[0]);
  gpu_device_fail (rig.device, call, 0, 1);
  if (call == GPU_CALL_EVENT_QUERY || call == GPU_CALL_EVENT_RECORD) {
    g_assert_false (gpu_point_is_complete (&point));
  } else if (call == GPU_CALL_STREAM_WAIT) {
    g_assert_false (gpu_stream_wait_stream (rig.stream[1], rig.stream[0], &error));
  } else {
    /* With the gate closed, since what is complete already is not waited for. */
    g_assert_false (gpu_stream_synchronize (rig.stream[0], &error));
  }
  if (error)
    g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  g_assert_true (gpu_device_is_lost (rig.device));

  gpu_gate_open (rig.gate[0]);
  g_assert_false (gpu_point_is_complete (&point));
  g_assert_false (gpu_stream_wait_stream (rig.stream[2], rig.stream[0], &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  g_assert_false (gpu_point_wait (&point, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  GpuImage *image =
      gpu_image_acquire (rig.device, &rig.spec, GPU_MEMORY_STREAM_ORDERED, rig.stream[0], GPU_ACQUIRE_DEFAULT, &error);
  g_assert_null (image);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  g_assert_null (gpu_stream_new (rig.device, false, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  rig_teardown (&rig, NULL);
}

/* Rule 27: the host waits for the work of the n-th last frame, and for no later one. */
typedef struct {
  GpuThrottle *throttle;
  RigCounter done;
} Throttled;

static void *
begin_frame (void *data)
{
  Throttled *throttled = data;
  GError *error = NULL;

  gpu_throttle_begin (throttled->throttle, &error);
  g_assert_no_error (error);
  rig_counter_add (&throttled->done);
  return NULL;
}

/* Begins a frame on another thread, and returns when that waits for the device. */
static pthread_t
begin_frame_that_waits (Rig *rig, Throttled *throttled)
{
  uint64_t before = gpu_device_calls (rig->device, GPU_CALL_EVENT_WAIT);
  unsigned done = rig_counter_get (&throttled->done);
  pthread_t thread;

  g_assert_cmpint (pthread_create (&thread, NULL, begin_frame, throttled), ==, 0);
  for (unsigned i = 0; gpu_device_calls (rig->device, GPU_CALL_EVENT_WAIT) == before; i++) {
    g_assert_cmpuint (i, <, 60000);
    g_assert_cmpuint (rig_counter_get (&throttled->done), ==, done);
    g_usleep (1000);
  }
  g_assert_cmpuint (rig_counter_get (&throttled->done), ==, done);
  return thread;
}

static void
one_frame (GpuThrottle *throttle, GpuStream *stream)
{
  GError *error = NULL;

  g_assert_true (gpu_throttle_begin (throttle, &error));
  g_assert_no_error (error);
  submit (stream);
  g_assert_true (gpu_throttle_end (throttle, stream, &error));
  g_assert_no_error (error);
}

static void
test_throttle (Rig *rig, const void *data)
{
  Throttled throttled = {.throttle = gpu_throttle_new (3)};

  rig_counter_init (&throttled.done);
  one_frame (throttled.throttle, rig->stream[1]);
  rig_close (rig, 0);
  rig_close (rig, 1);
  one_frame (throttled.throttle, rig->stream[0]);
  one_frame (throttled.throttle, rig->stream[1]);
  /* Waits for the first only, which no gate holds although one holds its stream by now. */
  one_frame (throttled.throttle, rig->stream[0]);
  uint64_t waits = rig_stats (rig).throttle_waits;
  g_assert_cmpuint (waits, <=, 1);
  g_assert_cmpuint (rig_stats (rig).host_waits, ==, 0);

  pthread_t thread = begin_frame_that_waits (rig, &throttled);
  rig_open (rig, 0);
  pthread_join (thread, NULL);
  g_assert_cmpuint (rig_stats (rig).throttle_waits, ==, waits + 1);
  g_assert_cmpuint (rig_stats (rig).host_waits, ==, 0);
  GError *error = NULL;
  g_assert_true (gpu_throttle_end (throttled.throttle, rig->stream[0], &error));
  rig_finish (rig);

  /* What is complete needs no wait. */
  waits = rig_stats (rig).throttle_waits;
  for (unsigned i = 0; i < 10; i++) {
    one_frame (throttled.throttle, rig->stream[0]);
    rig_sync (rig->stream[0]);
  }
  g_assert_cmpuint (rig_stats (rig).throttle_waits, ==, waits);

  gpu_throttle_set_depth (throttled.throttle, 1);
  one_frame (throttled.throttle, rig->stream[0]);
  one_frame (throttled.throttle, rig->stream[0]);
  gpu_throttle_set_depth (throttled.throttle, 8);
  for (unsigned i = 0; i < 20; i++)
    one_frame (throttled.throttle, rig->stream[i % 2]);
  gpu_throttle_free (throttled.throttle);
}

/* Rules 22 and 27: the elements of a chain share events, about one a frame, and still wait for no later frame than that
 * after the n-th last. */
static void
test_throttle_events (Rig *rig, const void *data)
{
  enum { ELEMENTS = 3, DEPTH = 4, FRAMES = 30 };
  Throttled element[ELEMENTS];

  for (unsigned i = 0; i < ELEMENTS; i++) {
    element[i].throttle = gpu_throttle_new (DEPTH);
    rig_counter_init (&element[i].done);
  }
  uint64_t before = gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD);
  for (unsigned frame = 0; frame < FRAMES; frame++)
    for (unsigned i = 0; i < ELEMENTS; i++)
      one_frame (element[i].throttle, rig->stream[0]);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD) - before, <=, FRAMES + 1);
  rig_sync (rig->stream[0]);

  /* Each frame lies behind a gate of its own: what the first element waits for is over when the second gate opens. */
  GpuGate *gate[DEPTH];
  GError *error = NULL;
  for (unsigned frame = 0; frame < DEPTH; frame++) {
    gate[frame] = gpu_gate_new (rig->device, &error);
    g_assert_true (gpu_gate_hold (gate[frame], rig->stream[0], &error));
    for (unsigned i = 0; i < ELEMENTS; i++)
      one_frame (element[i].throttle, rig->stream[0]);
  }
  pthread_t thread = begin_frame_that_waits (rig, &element[0]);
  gpu_gate_open (gate[0]);
  gpu_gate_open (gate[1]);
  pthread_join (thread, NULL);
  for (unsigned frame = 0; frame < DEPTH; frame++) {
    gpu_gate_open (gate[frame]);
    gpu_gate_free (gate[frame]);
  }
  for (unsigned i = 0; i < ELEMENTS; i++)
    gpu_throttle_free (element[i].throttle);
}

/* Rule 11: later submissions find out what is complete, and ask for it seldom. */
static void
test_submissions_ask (Rig *rig, const void *data)
{
  enum { MANY = 64 };
  GpuPoint point[2] = {{0}};
  GError *error = NULL;

  for (unsigned i = 0; i < G_N_ELEMENTS (point); i++) {
    submit (rig->stream[0]);
    g_assert_true (gpu_point_mark (&point[i], rig->stream[0], &error));
  }
  g_assert_true (gpu_device_synchronize (rig->device, &error));
  g_assert_false (gpu_point_observed (&point[0]));
  uint64_t before = gpu_device_calls (rig->device, GPU_CALL_EVENT_QUERY);
  for (unsigned i = 0; i < MANY; i++)
    submit (rig->stream[0]);
  g_assert_true (gpu_point_observed (&point[0]));
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_QUERY) - before, <=, MANY / 4);
  for (unsigned i = 0; i < G_N_ELEMENTS (point); i++)
    gpu_point_clear (&point[i]);
}

/* Where the device keeps up, one question answers for several frames. */
static void
test_throttle_questions (Rig *rig, const void *data)
{
  enum { DEPTH = 8 };
  GpuThrottle *throttle = gpu_throttle_new (DEPTH);
  GError *error = NULL;

  for (unsigned frame = 0; frame < DEPTH; frame++)
    one_frame (throttle, rig->stream[0]);
  g_assert_true (
      gpu_device_synchronize (rig->device, &error)); /* after which nobody has been told of the stream's end */
  uint64_t before = gpu_device_calls (rig->device, GPU_CALL_EVENT_QUERY);
  for (unsigned frame = 0; frame < DEPTH / 2; frame++)
    one_frame (throttle, rig->stream[0]);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_QUERY) - before, ==, 1);
  g_assert_cmpuint (rig_stats (rig).throttle_waits, ==, 0);
  gpu_throttle_free (throttle);
}

/* Of a chain on one stream only one element asks, once for several frames, and then no submission does. */
static void
test_chain_questions (Rig *rig, const void *data)
{
  enum { ELEMENTS = 3, DEPTH = 8, FRAMES = 100 };
  GpuThrottle *throttle[ELEMENTS];
  GError *error = NULL;

  for (unsigned i = 0; i < ELEMENTS; i++)
    throttle[i] = gpu_throttle_new (DEPTH);
  uint64_t before = gpu_device_calls (rig->device, GPU_CALL_EVENT_QUERY);
  for (unsigned frame = 0; frame < FRAMES; frame++) {
    for (unsigned i = 0; i < ELEMENTS; i++)
      one_frame (throttle[i], rig->stream[0]);
    g_assert_true (gpu_device_synchronize (rig->device, &error));
  }
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_QUERY) - before, <=, FRAMES / (DEPTH / 2));
  g_assert_cmpuint (rig_stats (rig).throttle_waits, ==, 0);
  for (unsigned i = 0; i < ELEMENTS; i++)
    gpu_throttle_free (throttle[i]);
}

/* Rule 27: neither does a frame that was the last one on its stream wait for what others submit there later. */
static void
test_throttle_leaves_stream (Rig *rig, const void *data)
{
  Throttled throttled = {.throttle = gpu_throttle_new (4)};
  GError *error = NULL;
  pthread_t thread;

  rig_counter_init (&throttled.done);
  for (unsigned i = 0; i < 5; i++)
    one_frame (throttled.throttle, rig->stream[i / 2]);
  rig_close (rig, 0);
  g_assert_cmpint (pthread_create (&thread, NULL, begin_frame, &throttled), ==, 0);
  rig_counter_wait (&throttled.done, 1);
  pthread_join (thread, NULL);
  g_assert_true (gpu_throttle_end (throttled.throttle, rig->stream[2], &error));
  rig_open (rig, 0);
  gpu_throttle_free (throttled.throttle);
}

/* Rule 27: a depth that is changed in use counts from the next frame on: the latest frames stay in flight. */
static void
test_throttle_new_depth (Rig *rig, const void *data)
{
  Throttled throttled = {.throttle = gpu_throttle_new (3)};
  GError *error = NULL;

  rig_counter_init (&throttled.done);
  for (unsigned i = 0; i < 3; i++)
    rig_close (rig, i);
  for (unsigned i = 0; i < 3; i++)
    one_frame (throttled.throttle, rig->stream[i]);

  /* Fewer: the second last frame is the one to wait for, and not the third last, which comes earlier in the ring. */
  gpu_throttle_set_depth (throttled.throttle, 2);
  pthread_t thread = begin_frame_that_waits (rig, &throttled);
  rig_open (rig, 1);
  pthread_join (thread, NULL);
  g_assert_true (gpu_throttle_end (throttled.throttle, rig->stream[3], &error));

  /* More: two frames are in flight, so that two more may be. Then the older of those, which a gate still holds. */
  gpu_throttle_set_depth (throttled.throttle, 4);
  uint64_t waits = rig_stats (rig).throttle_waits;
  one_frame (throttled.throttle, rig->stream[3]);
  one_frame (throttled.throttle, rig->stream[3]);
  g_assert_cmpuint (rig_stats (rig).throttle_waits, ==, waits);
  thread = begin_frame_that_waits (rig, &throttled);
  rig_open (rig, 2);
  pthread_join (thread, NULL);
  g_assert_cmpuint (rig_stats (rig).throttle_waits, ==, waits + 1);
  rig_finish (rig);
  gpu_throttle_free (throttled.throttle);
}

/* A throttle holds what it waits for, not the streams. */
static void
test_throttle_outlives_streams (Rig *rig, const void *data)
{
  GpuThrottle *throttle = gpu_throttle_new (1);

  for (unsigned i = 0; i < 3; i++) {
    GpuStream *stream = rig_new_stream (rig, false);
    one_frame (throttle, stream);
    gpu_stream_unref (stream);
  }
  gpu_throttle_free (throttle);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/stream/rule-21/numbers", test_numbers);
  RIG_TEST ("/stream/rule-21/access-advances", test_access_advances);
  RIG_TEST ("/stream/rule-21/ordered", test_ordered);
  RIG_TEST ("/stream/rule-21/ordered-through", test_ordered_through);
  RIG_TEST ("/stream/rule-21/nothing-newer", test_nothing_newer);
  RIG_TEST ("/stream/rule-23/identity", test_identity);
  RIG_TEST ("/stream/rule-19/wait-point", test_wait_point);
  RIG_TEST ("/stream/rule-22/busy-past", test_busy_past);
  RIG_TEST ("/stream/rule-22/question-records-once", test_question_records_once);
  RIG_TEST ("/stream/rule-22/one-stream-records-none", test_one_stream_records_none);
  RIG_TEST ("/stream/rule-22/events-recycled", test_events_recycled);
  RIG_TEST ("/stream/rule-22/stream-keeps-events", test_stream_keeps_events);
  RIG_TEST ("/stream/calls-of-threads", test_calls_of_threads);
  RIG_TEST ("/stream/rule-23/point-outlives-stream", test_point_outlives_stream);
  RIG_TEST ("/stream/rule-20/history-write", test_history_write);
  RIG_TEST ("/stream/rule-20/history-unordered-write", test_history_unordered_write);
  RIG_TEST ("/stream/rule-20/history-reads", test_history_reads);
  RIG_TEST ("/stream/rule-20/history-own-read", test_history_own_read);
  g_test_add_data_func ("/stream/rule-24/record", GUINT_TO_POINTER (GPU_CALL_EVENT_RECORD), test_fail_closed);
  g_test_add_data_func ("/stream/rule-24/query", GUINT_TO_POINTER (GPU_CALL_EVENT_QUERY), test_fail_closed);
  g_test_add_data_func ("/stream/rule-24/stream-wait", GUINT_TO_POINTER (GPU_CALL_STREAM_WAIT), test_fail_closed);
  g_test_add_data_func ("/stream/rule-24/host-wait", GUINT_TO_POINTER (GPU_CALL_EVENT_WAIT), test_fail_closed);
  RIG_TEST ("/stream/rule-27/throttle", test_throttle);
  RIG_TEST ("/stream/rule-27/new-depth", test_throttle_new_depth);
  RIG_TEST ("/stream/rule-11/submissions", test_submissions_ask);
  RIG_TEST ("/stream/rule-27/events", test_throttle_events);
  RIG_TEST ("/stream/rule-27/questions", test_throttle_questions);
  RIG_TEST ("/stream/rule-27/questions-of-chain", test_chain_questions);
  RIG_TEST ("/stream/rule-27/leaves-stream", test_throttle_leaves_stream);
  RIG_TEST ("/stream/rule-27/outlives-streams", test_throttle_outlives_streams);
  return g_test_run ();
}
