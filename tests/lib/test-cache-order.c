/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The order that makes reuse safe, rules 19 to 25, each seen by the bytes that would be wrong without it; among them
 * the classic mistakes of such caches, by name.
 */
#include "common.h"
#include "rig.h"

#include <gpucache/stream-priv.h>

#include <string.h>

/* Rule 19: a read waits for the last write, on whatever stream that was. */
static void
test_read_after_write (Rig *rig, const void *data)
{
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[1], 0x00);

  rig_close (rig, 0);
  rig_fill (rig->stream[0], image, 0x22);
  rig_copy (rig->stream[1], image, copy);
  rig_open (rig, 0);
  rig_sync (rig->stream[1]);
  rig_expect_bytes (rig, copy, 0x22);
  gpu_image_unref (image);
  gpu_image_unref (copy);
}

/* Rule 19: a write waits for the reads. */
static void
test_write_after_read (Rig *rig, const void *data)
{
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy[2];

  for (unsigned i = 0; i < 2; i++) {
    copy[i] = rig_filled (rig, &rig->spec, rig->stream[i], 0x00);
    rig_close (rig, i);
    rig_copy (rig->stream[i], image, copy[i]);
  }
  rig_fill (rig->stream[2], image, 0x22);
  rig_open (rig, 0);
  rig_open (rig, 1);
  rig_sync (rig->stream[2]);
  rig_finish (rig);
  for (unsigned i = 0; i < 2; i++) {
    rig_expect_bytes (rig, copy[i], 0x11);
    gpu_image_unref (copy[i]);
  }
  rig_expect_bytes (rig, image, 0x22);
  gpu_image_unref (image);
}

/* Rule 19: a write waits for the write before it. */
static void
test_write_after_write (Rig *rig, const void *data)
{
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);

  rig_close (rig, 0);
  rig_fill (rig->stream[0], image, 0x22);
  rig_fill (rig->stream[1], image, 0x33);
  rig_fill (rig->stream[2], image, 0x44);
  rig_open (rig, 0);
  rig_sync (rig->stream[2]);
  rig_finish (rig);
  rig_expect_bytes (rig, image, 0x44);
  gpu_image_unref (image);
}

/* Rule 19: reads do not wait for reads. Were one to, the test would hang. */
static void
test_read_after_read (Rig *rig, const void *data)
{
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy[2] = {rig_filled (rig, &rig->spec, rig->stream[0], 0x00),
                       rig_filled (rig, &rig->spec, rig->stream[1], 0x00)};

  rig_close (rig, 0);
  rig_copy (rig->stream[0], image, copy[0]);
  uint64_t waits = gpu_device_calls (rig->device, GPU_CALL_STREAM_WAIT);
  rig_copy (rig->stream[1], image, copy[1]);
  rig_sync (rig->stream[1]);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_STREAM_WAIT), ==, waits);
  rig_expect_bytes (rig, copy[1], 0x11);
  g_assert_true (gpu_image_is_complete (image, GPU_ACCESS_READ));
  g_assert_false (gpu_image_is_complete (image, GPU_ACCESS_WRITE));
  rig_finish (rig);
  g_assert_true (gpu_image_is_complete (image, GPU_ACCESS_WRITE));
  gpu_image_unref (image);
  gpu_image_unref (copy[0]);
  gpu_image_unref (copy[1]);
}

/* Rule 19: however many streams read, a write waits for all of them, and ends: what a stream remembers of others is
 * bounded, what it waits for is not. */
static void
test_many_streams (Rig *rig, const void *data)
{
  enum { N = 100 };
  GError *error = NULL;
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy[N];
  GpuStream *stream[N];
  GpuGate *gate = gpu_gate_new (rig->device, &error);

  g_assert_no_error (error);
  for (unsigned i = 0; i < N; i++) {
    stream[i] = rig_new_stream (rig, false);
    copy[i] = rig_acquire (rig, &rig->spec, stream[i]);
    /* A GPU has fewer queues than that, and what shares one with a held stream is held, too. */
    if (gpu_device_is_host (rig->device))
      g_assert_true (gpu_gate_hold (gate, stream[i], &error));
    rig_copy (stream[i], image, copy[i]);
  }
  for (unsigned i = 0; i < 2; i++)
    rig_fill (rig->stream[i], image, 0x22);
  gpu_gate_open (gate);
  rig_sync (rig->stream[1]);
  for (unsigned i = 0; i < N; i++) {
    rig_sync (stream[i]);
    rig_expect_bytes (rig, copy[i], 0x11);
    gpu_image_unref (copy[i]);
    gpu_stream_unref (stream[i]);
  }
  gpu_image_unref (image);
  gpu_gate_free (gate);
}

/* Rule 19: on one stream order is for nothing: no waits, no events. */
static void
test_one_stream_adds_nothing (Rig *rig, const void *data)
{
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);

  RigCalls before = rig_calls (rig);
  for (unsigned i = 0; i < 10; i++) {
    rig_fill (rig->stream[0], image, (uint8_t)i);
    rig_copy (rig->stream[0], image, copy);
  }
  RigCalls after = rig_calls (rig);
  g_assert_cmpuint (after.n[GPU_CALL_STREAM_WAIT], ==, before.n[GPU_CALL_STREAM_WAIT]);
  g_assert_cmpuint (after.n[GPU_CALL_EVENT_RECORD], ==, before.n[GPU_CALL_EVENT_RECORD]);
  g_assert_cmpuint (after.n[GPU_CALL_EVENT_WAIT], ==, before.n[GPU_CALL_EVENT_WAIT]);
  rig_sync (rig->stream[0]);
  rig_expect_bytes (rig, copy, 9);
  gpu_image_unref (image);
  gpu_image_unref (copy);
}

/* Rule 19, by name: a first write on another stream than the one acquired on. The acquire entered a write there, so the
 * first write comes after what was still pending of the memory's last life. */
static void
test_first_write_elsewhere (Rig *rig, const void *data)
{
  RigHeld held = rig_let_go_held (rig);

  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_true (gpu_image_data (image) == held.address);
  rig_fill (rig->stream[1], image, 0x22);
  rig_open (rig, 0);
  rig_sync (rig->stream[1]);
  rig_end_held (rig, &held);
  rig_expect_bytes (rig, image, 0x22);
  gpu_image_unref (image);
}

/* The same with new memory, whose allocation is in the order of the stream acquired on. */
static void
test_first_write_elsewhere_new (Rig *rig, const void *data)
{
  rig_close (rig, 0);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_false (gpu_image_is_complete (image, GPU_ACCESS_READ));
  rig_fill (rig->stream[1], image, 0x22);
  rig_open (rig, 0);
  rig_sync (rig->stream[1]);
  rig_finish (rig);
  rig_expect_bytes (rig, image, 0x22);
  gpu_image_unref (image);

  /* And without a stream: the internal one stands in. */
  image = rig_acquire (rig, &rig->other, NULL);
  rig_fill (rig->stream[1], image, 0x33);
  rig_sync (rig->stream[1]);
  rig_expect_bytes (rig, image, 0x33);
  gpu_image_unref (image);
}

/* The same where the waits of a reuse under pressure went to the stream acquired on. */
static void
test_first_write_elsewhere_waiting (Rig *rig, const void *data)
{
  RigHeld held = rig_let_go_held (rig);

  rig_limit (rig, 1);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  g_assert_true (gpu_image_data (image) == held.address);
  rig_fill (rig->stream[2], image, 0x22);
  rig_open (rig, 0);
  rig_sync (rig->stream[2]);
  rig_end_held (rig, &held);
  rig_expect_bytes (rig, image, 0x22);
  gpu_image_unref (image);
}

/* Rule 20, by name: a read still pending when an unordered write is entered. What comes after waits for both. */
static void
test_unordered_write (Rig *rig, const void *data)
{
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[0], 0x00);

  rig_close (rig, 0);
  rig_copy (rig->stream[0], image, copy);
  /* The user reads only, so it waits for no read, and then says that it wrote. */
  rig_begin (image, rig->stream[1], GPU_ACCESS_READ);
  rig_end (image, rig->stream[1], GPU_ACCESS_WRITE);
  rig_sync (rig->stream[1]);
  rig_fill (rig->stream[2], image, 0x22);
  rig_open (rig, 0);
  rig_sync (rig->stream[2]);
  rig_finish (rig);
  rig_expect_bytes (rig, copy, 0x11);

  /* The same across a release: the memory is not ordered on the writer's stream. */
  void *address = gpu_image_data (image);
  rig_close (rig, 0);
  rig_fill (rig->stream[3], copy, 0x00);
  rig_sync (rig->stream[3]);
  rig_copy (rig->stream[0], image, copy);
  rig_begin (image, rig->stream[1], GPU_ACCESS_READ);
  rig_end (image, rig->stream[1], GPU_ACCESS_WRITE);
  gpu_image_unref (image);
  image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  g_assert_true (gpu_image_data (image) != address);
  rig_fill (rig->stream[1], image, 0x33);
  rig_sync (rig->stream[1]);
  rig_finish (rig);
  rig_expect_bytes (rig, copy, 0x22);
  gpu_image_unref (image);
  gpu_image_unref (copy);
}

/* Rule 20: a host read waits for the last write, a host write for all. */
static void
test_host_waits (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[0], 0x00);

  rig_fill (rig->stream[1], image, 0x22);
  rig_close (rig, 0);
  rig_copy (rig->stream[0], image, copy);
  uint64_t host_waits = rig_stats (rig).host_waits;
  g_assert_true (gpu_image_wait (image, GPU_ACCESS_READ, &error)); /* not for the reader behind the gate */
  g_assert_no_error (error);
  g_assert_cmpuint (rig_stats (rig).host_waits, <=, host_waits + 1);
  g_assert_false (gpu_image_is_complete (image, GPU_ACCESS_WRITE));
  rig_open (rig, 0);
  g_assert_true (gpu_image_wait (image, GPU_ACCESS_WRITE, &error));
  g_assert_no_error (error);
  g_assert_true (gpu_image_is_complete (image, GPU_ACCESS_WRITE));
  g_assert_true (gpu_image_is_complete (image, GPU_ACCESS_READ | GPU_ACCESS_WRITE));
  rig_expect_bytes (rig, copy, 0x22);
  gpu_image_unref (image);
  gpu_image_unref (copy);
}

/* Rule 21, by name: a stream that waits again after an event was recorded. Who waits for that event is ordered after
 * what it carried at the record, not after what its stream knows now. */
static void
test_waits_again (Rig *rig, const void *data)
{
  GpuImage *message = rig_filled (rig, &rig->other, rig->stream[1], 0x00);
  GpuPoint mark = {0};
  GError *error = NULL;

  RigHeld held = rig_let_go_held (rig);
  rig_fill (rig->stream[1], message, 0x33);
  g_assert_true (gpu_point_mark (&mark, rig->stream[1], &error));
  g_assert_no_error (error);
  rig_wait_stream (rig->stream[1], rig->stream[0]);

  /* Stream 2 reads the message: it waits for stream 1's event from before its wait. */
  rig_begin (message, rig->stream[2], GPU_ACCESS_READ);
  rig_end (message, rig->stream[2], GPU_ACCESS_READ);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[2]);
  g_assert_true (gpu_image_data (image) != held.address);
  rig_fill (rig->stream[2], image, 0x22);
  rig_sync (rig->stream[2]);
  rig_end_held (rig, &held);
  gpu_point_clear (&mark);
  gpu_image_unref (image);
  gpu_image_unref (message);
}

/* Rule 5, by name: a pinned block whose DMA runs while the host gets it. It is the last on the very stream that asks,
 * so stream order would allow it; under pressure as well. */
static void
test_pinned_dma (Rig *rig, const void *data)
{
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[1], 0x00);

  rig->account = GPU_ACCOUNT_HOST;
  for (unsigned pressure = 0; pressure < 2; pressure++) {
    GpuImage *staging[2];
    rig_limit (rig, pressure ? 1 : 1 << 20);
    staging[0] = rig_acquire_kind (rig, &rig->spec, GPU_MEMORY_HOST, rig->stream[0], GPU_ACQUIRE_DEFAULT);
    void *address = gpu_image_data (staging[0]);
    g_assert_true (gpu_image_is_complete (staging[0], GPU_ACCESS_WRITE));
    memset (address, 0x11, rig->spec.size);
    rig_close (rig, 0);
    rig_copy (rig->stream[0], staging[0], image);
    gpu_image_unref (staging[0]);
    staging[1] = rig_acquire_kind (rig, &rig->spec, GPU_MEMORY_HOST, rig->stream[0], GPU_ACQUIRE_DEFAULT);
    g_assert_true (gpu_image_data (staging[1]) != address);
    memset (gpu_image_data (staging[1]), 0x22, rig->spec.size);
    rig_finish (rig);
    rig_expect_bytes (rig, image, 0x11);
    gpu_image_unref (staging[1]);
    rig_fill (rig->stream[0], image, 0x00);
    rig_sync (rig->stream[0]);
  }
  gpu_image_unref (image);
}

/* Rule 23, by name: a destroyed stream whose handle comes back is another stream. */
static void
test_handle_comes_back (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuGate *gate = gpu_gate_new (rig->device, &error);
  GpuStream *old = rig_new_stream (rig, false);
  GpuImage *image = rig_filled (rig, &rig->spec, old, 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, old, 0x00);
  void *address = gpu_image_data (image);

  g_assert_no_error (error);
  g_assert_true (gpu_gate_hold (gate, old, &error));
  rig_copy (old, image, copy);
  gpu_image_unref (image);
  gpu_stream_unref (old);
  GpuStream *fresh[8];
  GpuImage *taken[8];
  for (unsigned i = 0; i < 8; i++) {
    fresh[i] = rig_new_stream (rig, false);
    taken[i] = rig_acquire (rig, &rig->spec, fresh[i]);
    g_assert_true (gpu_image_data (taken[i]) != address);
    rig_fill (fresh[i], taken[i], 0x22);
    if (gpu_device_is_host (rig->device))
      rig_sync (fresh[i]); /* a GPU may run it behind the destroyed stream's work, on the same hardware queue */
  }
  gpu_gate_open (gate);
  rig_expect_bytes (rig, copy, 0x11);
  for (unsigned i = 0; i < 8; i++) {
    gpu_image_unref (taken[i]);
    gpu_stream_unref (fresh[i]);
  }
  gpu_image_unref (copy);
  gpu_gate_free (gate);
}

/* Rule 24, by name: an event that fails to record. The write that needed it is refused, and nothing is reused. */
static void
test_record_fails (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[0], 0x00);

  rig_close (rig, 0);
  rig_copy (rig->stream[0], image, copy);
  gpu_device_fail (rig->device, GPU_CALL_EVENT_RECORD, 0, 1);
  g_assert_false (gpu_image_fill (rig->stream[1], image, 0x22, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  g_assert_true (gpu_device_is_lost (rig->device));
  g_assert_false (gpu_image_is_complete (image, GPU_ACCESS_WRITE));
  g_assert_false (gpu_image_wait (image, GPU_ACCESS_WRITE, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  gpu_image_unref (image);
  for (unsigned i = 0; i < 3; i++) {
    image = gpu_image_acquire (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, i < 2 ? rig->stream[i] : NULL,
                               GPU_ACQUIRE_DEFAULT, &error);
    g_assert_null (image);
    g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
    g_clear_error (&error);
  }
  gpu_cache_check (rig->device);
  gpu_gate_open (rig->gate[0]);
  gpu_image_unref (copy);
}

/* Rule 24: a wait that fails under pressure is not a reuse. */
static void
test_wait_fails (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);

  rig_limit (rig, 1);
  rig_close (rig, 0);
  rig_fill (rig->stream[0], image, 0x11);
  gpu_image_unref (image);
  gpu_device_fail (rig->device, GPU_CALL_STREAM_WAIT, 0, 1);
  image = gpu_image_acquire (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, rig->stream[1], GPU_ACQUIRE_DEFAULT,
                             &error);
  g_assert_null (image);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  gpu_cache_check (rig->device);
}

static bool
keep_native (GpuDevice *device, void *native, void *data, GError **error)
{
  *(void **)data = native;
  return true;
}

/* Rules 2 and 21, by name: an export that ends with foreign work in flight. Somebody submits to the stream itself,
 * which the library does not see; ending the access enters it, and an event from before does not stand for it. */
static void
test_foreign_work (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[0], 0x00);
  GpuPoint mark = {0};
  void *native;

  for (unsigned released = 0; released < 2; released++) {
    rig_close (rig, 0);
    rig_begin (image, rig->stream[0], GPU_ACCESS_READ);
    g_assert_cmpuint (gpu_stream_submit (rig->stream[0], keep_native, &native, &error), !=, 0);
    g_assert_true (gpu_point_mark (&mark, rig->stream[0], &error));
    g_assert_no_error (error);
    GpuCopy foreign = {gpu_image_data (copy),
                       rig->spec.stride[0],
                       gpu_image_data (image),
                       rig->spec.stride[0],
                       gpu_image_spec_row_bytes (&rig->spec, 0),
                       rig->spec.height};
    g_assert_true (gpu_device_copy (rig->device, &foreign, GPU_COPY_DEVICE, native, &error));
    g_assert_no_error (error);
    rig_end (image, rig->stream[0], GPU_ACCESS_READ);

    void *address = gpu_image_data (image);
    if (released) {
      /* Pressure, so that what is pending comes back with waits. */
      rig_limit (rig, 1);
      gpu_image_unref (image);
      image = rig_acquire (rig, &rig->spec, rig->stream[1]);
      g_assert_true (gpu_image_data (image) == address);
    }
    rig_fill (rig->stream[1], image, (uint8_t)(0x22 + released));
    rig_open (rig, 0);
    rig_sync (rig->stream[1]);
    rig_finish (rig);
    rig_expect_bytes (rig, copy, released ? 0x22 : 0x11);
    rig_expect_bytes (rig, image, (uint8_t)(0x22 + released));
  }
  gpu_point_clear (&mark);
  gpu_image_unref (image);
  gpu_image_unref (copy);
}

/* Rule 22: the access was entered with the number that it had then, so that later work does not delay who waits for
 * it... */
static void
test_waits_for_no_more (Rig *rig, const void *data)
{
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[1], 0x00);
  GpuPoint mark = {0};
  GError *error = NULL;

  rig_fill (rig->stream[0], image, 0x22);
  g_assert_true (gpu_point_mark (&mark, rig->stream[0], &error));
  g_assert_no_error (error);
  rig_close (rig, 0);
  rig_copy (rig->stream[1], image, copy);
  rig_sync (rig->stream[1]); /* not behind the gate */
  rig_expect_bytes (rig, copy, 0x22);
  gpu_point_clear (&mark);
  rig_finish (rig);
  gpu_image_unref (image);
  gpu_image_unref (copy);
}

typedef struct {
  Rig *rig;
  RigCounter released;
} Reentrant;

static void
call_everything (void *data)
{
  Reentrant *reentrant = data;
  Rig *rig = reentrant->rig;
  GpuCacheStats stats;

  gpu_image_unref (rig_acquire (rig, &rig->spec, rig->stream[2]));
  gpu_cache_get_stats (rig->device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  gpu_cache_set_limit (rig->device, GPU_ACCOUNT_DEVICE, 1 << 20, NULL);
  gpu_cache_set_limit (rig->device, GPU_ACCOUNT_DEVICE, 0, NULL);
  rig_sync (rig->stream[2]);
  gpu_cache_clear (rig->device, GPU_CACHE_ALL, NULL);
  g_free (gpu_cache_dump (rig->device));
  rig_counter_add (&reentrant->released);
}

/* Rule 25: release functions run with none of our locks held and outside of the driver's callbacks, so they may call
 * whatever they like. */
static void
test_release_calls_back (Rig *rig, const void *data)
{
  GError *error = NULL;
  Reentrant reentrant = {.rig = rig};
  GpuImage *owner = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);

  rig_counter_init (&reentrant.released);
  for (unsigned i = 0; i < 3; i++) {
    GpuImage *wrap = gpu_image_wrap (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner),
                                     rig->stream[1], call_everything, &reentrant, &error);
    g_assert_no_error (error);
    if (i)
      rig_fill (rig->stream[1], wrap, 0x22);
    if (i == 2)
      rig_close (rig, 1);
    gpu_image_unref (wrap);
    if (i == 2)
      rig_open (rig, 1);
    rig_run (rig);
    rig_counter_wait (&reentrant.released, i + 1);
  }
  gpu_image_unref (owner);
  rig_finish (rig);
}

typedef struct {
  Rig *rig;
  unsigned seed;
} Crossing;

static void *
cross (void *data)
{
  Crossing *crossing = data;
  Rig *rig = crossing->rig;
  uint32_t state = crossing->seed;

  for (unsigned i = 0; i < 200; i++) {
    GpuStream *consumer = rig->stream[test_random (&state) % RIG_STREAMS];
    GpuStream *user = rig->stream[test_random (&state) % RIG_STREAMS];
    GpuImage *src =
        gpu_image_acquire (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, consumer, GPU_ACQUIRE_DEFAULT, NULL);
    GpuImage *dst =
        gpu_image_acquire (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, user, GPU_ACQUIRE_DEFAULT, NULL);
    g_assert_true (src && dst);
    uint8_t value = (uint8_t)test_random (&state);
    rig_fill (consumer, src, value);
    rig_copy (user, src, dst);
    gpu_image_unref (src);
    rig_wait_stream (consumer, user);
    if (i % 8 == 0)
      rig_expect_bytes (rig, dst, value);
    gpu_image_unref (dst);
    if (i % 16 == 0)
      gpu_cache_set_limit (rig->device, GPU_ACCOUNT_DEVICE, (int64_t)(test_random (&state) % 8 * rig->spec.size), NULL);
  }
  return NULL;
}

/* Rule 25: streams and scopes cross in every order without a deadlock, and each thread finds its own bytes. */
static void
test_crossing (Rig *rig, const void *data)
{
  Crossing crossing[6];
  pthread_t thread[6];

  for (unsigned i = 0; i < 6; i++) {
    crossing[i] = (Crossing){rig, i + 1};
    g_assert_cmpint (pthread_create (&thread[i], NULL, cross, &crossing[i]), ==, 0);
  }
  for (unsigned i = 0; i < 6; i++)
    pthread_join (thread[i], NULL);
  rig_finish (rig);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/order/rule-19/read-after-write", test_read_after_write);
  RIG_TEST ("/order/rule-19/write-after-read", test_write_after_read);
  RIG_TEST ("/order/rule-19/write-after-write", test_write_after_write);
  RIG_TEST ("/order/rule-19/read-after-read", test_read_after_read);
  RIG_TEST ("/order/rule-19/many-streams", test_many_streams);
  RIG_TEST ("/order/rule-19/one-stream-adds-nothing", test_one_stream_adds_nothing);
  RIG_TEST ("/order/rule-19/first-write-elsewhere", test_first_write_elsewhere);
  RIG_TEST ("/order/rule-19/first-write-elsewhere-new", test_first_write_elsewhere_new);
  RIG_TEST ("/order/rule-19/first-write-elsewhere-waiting", test_first_write_elsewhere_waiting);
  RIG_TEST ("/order/rule-20/unordered-write", test_unordered_write);
  RIG_TEST ("/order/rule-20/host-waits", test_host_waits);
  RIG_TEST ("/order/rule-21/waits-again", test_waits_again);
  RIG_TEST ("/order/rule-5/pinned-dma", test_pinned_dma);
  RIG_TEST ("/order/rule-22/waits-for-no-more", test_waits_for_no_more);
  RIG_TEST ("/order/rule-23/handle-comes-back", test_handle_comes_back);
  RIG_TEST ("/order/rule-24/record-fails", test_record_fails);
  RIG_TEST ("/order/rule-24/wait-fails", test_wait_fails);
  RIG_TEST ("/order/rule-21/foreign-work", test_foreign_work);
  RIG_TEST ("/order/rule-25/release-calls-back", test_release_calls_back);
  RIG_TEST ("/order/rule-25/crossing", test_crossing);
  return g_test_run ();
}
