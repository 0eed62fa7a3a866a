/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Three devices in one process (rule 26): copies from one to another, in order with the work of all, and whose bytes
 * are counted where; directly and through pinned memory. What comes of a device that is lost, closed or full is in
 * test-peer-gone.c.
 */
#include "common.h"
#include "peers.h"

#include <string.h>

/* There and back */

static const struct {
  GpuFormat format;
  uint32_t width, height;
} pictures[] = {
    {GPU_FORMAT_RGBA, 64, 64}, {GPU_FORMAT_RGB, 33, 7},    {GPU_FORMAT_GRAY8, 1, 1},   {GPU_FORMAT_NV12, 130, 18},
    {GPU_FORMAT_I420, 62, 34}, {GPU_FORMAT_GRAY8, 257, 3}, {GPU_FORMAT_RGBA, 1920, 2},
};

/* Over all devices and back to the first, with other strides on the way, so that runs and rows are both copied. */
static void
test_round_trips (Peers *peers, const void *data)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (pictures); i++) {
    GpuImageSpec spec = test_spec (pictures[i].format, pictures[i].width, pictures[i].height), wide;
    GError *error = NULL;
    g_assert_true (gpu_image_spec_init (&wide, spec.format, spec.width, spec.height, 512, &error));
    g_autofree uint8_t *bytes = test_random_bytes (spec.size, i + 1);

    for (unsigned padded = 0; padded < 2; padded++) {
      GpuImage *image = test_image_new (peers->rig[0].device, &spec, peers->rig[0].stream[0]);
      test_image_write (peers->rig[0].stream[0], image, bytes, &spec);
      for (unsigned hop = 1; hop <= N_PEERS; hop++) {
        Rig *to = &peers->rig[hop % N_PEERS];
        GpuImage *next = rig_acquire (to, padded && hop % 2 ? &wide : &spec, to->stream[hop % RIG_STREAMS]);
        rig_copy (to->stream[hop % RIG_STREAMS], image, next);
        gpu_image_unref (image);
        image = next;
      }
      test_assert_image (peers->rig[0].stream[1], image, bytes, &spec);
      gpu_image_unref (image);
    }
  }
}

/* A part of a picture into a part of another: the pixels around it stay, which a copy of whole runs would not leave. */
static void
test_views (Peers *peers, const void *data)
{
  Rig *from = &peers->rig[0], *to = &peers->rig[1];
  GpuImage *src = rig_filled (from, &from->spec, from->stream[0], 0x11);
  GpuImage *dst = rig_filled (to, &to->spec, to->stream[0], 0x22);
  GError *error = NULL;
  GpuImage *src_part = gpu_image_view (src, 0, 0, 8, 8, &error), *dst_part = gpu_image_view (dst, 0, 0, 8, 8, &error);

  g_assert_no_error (error);
  rig_copy (to->stream[0], src_part, dst_part);
  g_autofree uint8_t *bytes = test_image_read (to->stream[0], dst, 0);
  for (unsigned y = 0; y < 64; y++)
    for (unsigned x = 0; x < 64 * 4; x++)
      g_assert_cmphex (bytes[y * to->spec.stride[0] + x], ==, y < 8 && x < 8 * 4 ? 0x11 : 0x22);
  gpu_image_unref (src_part);
  gpu_image_unref (dst_part);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

/* Order */

/* Rule 19 over two devices: the copy waits for the other device's write, the next device's copy for this one's. Nobody
 * waits on the host. */
static void
test_waits_for_write (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1], *c = &peers->rig[2];
  GpuImage *first = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *second = rig_filled (b, &b->spec, b->stream[0], 0x00);
  GpuImage *third = rig_filled (c, &c->spec, c->stream[0], 0x00);
  uint64_t host_waits = rig_stats (a).host_waits + rig_stats (b).host_waits + rig_stats (c).host_waits;

  rig_close (a, 0);
  rig_fill (a->stream[0], first, 0x33);
  rig_copy (b->stream[0], first, second);
  rig_copy (c->stream[0], second, third);
  rig_run (a);
  rig_run (b);
  rig_run (c);
  g_assert_false (gpu_image_is_complete (third, GPU_ACCESS_READ));
  g_assert_cmpuint (rig_stats (a).host_waits + rig_stats (b).host_waits + rig_stats (c).host_waits, ==, host_waits);
  rig_open (a, 0);
  rig_sync (c->stream[0]);
  rig_expect_bytes (c, third, 0x33);
  rig_expect_bytes (b, second, 0x33);
  gpu_image_unref (first);
  gpu_image_unref (second);
  gpu_image_unref (third);
}

/* A write on the source's device waits for the other device's read (rules 19 and 26). */
static void
test_write_waits_for_copy (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);

  rig_close (b, 0);
  rig_copy (b->stream[0], src, dst);
  rig_fill (a->stream[1], src, 0x22);
  rig_run (a);
  g_assert_false (gpu_image_is_complete (src, GPU_ACCESS_WRITE));
  rig_open (b, 0);
  rig_sync (a->stream[1]);
  rig_sync (b->stream[0]);
  rig_expect_bytes (b, dst, 0x11);
  rig_expect_bytes (a, src, 0x22);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

/* The source is let go of at once: it stays pending and charged to its own device until the copy is complete, and is
 * not taken without a wait, not even on the stream that wrote it. */
static void
test_source_is_kept (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);
  void *address = gpu_image_data (src);

  rig_close (b, 0);
  uint64_t records = gpu_device_calls (b->device, GPU_CALL_EVENT_RECORD);
  rig_copy (b->stream[0], src, dst);
  /* Rule 22: its own device will ask for an event that was recorded with the copy, not for a later one. */
  g_assert_cmpuint (gpu_device_calls (b->device, GPU_CALL_EVENT_RECORD), ==, records + 1);
  gpu_image_unref (src);
  rig_run (a);
  GpuCacheStats stats = rig_stats (a);
  g_assert_cmpuint (gpu_device_calls (b->device, GPU_CALL_EVENT_RECORD), ==, records + 1);
  g_assert_cmpuint (stats.pending, ==, 1);
  g_assert_cmpuint (stats.pending_bytes, ==, a->spec.size);
  g_assert_cmpuint (rig_bytes (&stats), ==, a->spec.size);
  stats = rig_stats (b);
  g_assert_cmpuint (rig_bytes (&stats), ==, b->spec.size);
  g_assert_cmpuint (stats.live, ==, 1);

  rig_expect (a, (Answers){.misses = 1}, __LINE__); /* the first one */
  GpuImage *other = rig_acquire (a, &a->spec, a->stream[0]);
  g_assert_true (gpu_image_data (other) != address);
  rig_expect (a, (Answers){.misses = 1}, __LINE__);
  rig_fill (a->stream[0], other, 0x22);

  rig_open (b, 0);
  rig_sync (b->stream[0]);
  GpuImage *again = rig_acquire (a, &a->spec, a->stream[0]);
  g_assert_true (gpu_image_data (again) == address);
  rig_expect (a, (Answers){.exact = 1}, __LINE__);
  rig_expect_bytes (b, dst, 0x11);
  gpu_image_unref (other);
  gpu_image_unref (again);
  gpu_image_unref (dst);
}

/* Under pressure the source is taken all the same, and what is written to it waits for the other device's read. */
static void
test_pressure_waits_for_copy (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);
  void *address = gpu_image_data (src);

  rig_limit (a, a->spec.size);
  rig_expect (a, (Answers){.misses = 1}, __LINE__);
  rig_close (b, 0);
  rig_copy (b->stream[0], src, dst);
  gpu_image_unref (src);
  GpuImage *again = rig_acquire (a, &a->spec, a->stream[0]);
  g_assert_true (gpu_image_data (again) == address);
  rig_expect (a, (Answers){.waiting = 1}, __LINE__);
  rig_fill (a->stream[0], again, 0x22);
  rig_run (a);
  g_assert_false (gpu_image_is_complete (again, GPU_ACCESS_READ));
  rig_open (b, 0);
  rig_sync (a->stream[0]);
  rig_sync (b->stream[0]);
  rig_expect_bytes (b, dst, 0x11);
  rig_expect_bytes (a, again, 0x22);
  gpu_image_unref (again);
  gpu_image_unref (dst);
}

/* Several devices read one frame, and one of them is done first: who writes it next waits for the other, too. */
static void
test_waits_for_all_readers (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1], *c = &peers->rig[2];

  for (unsigned i = 0; i < 2; i++) {
    Rig *first = i ? c : b, *last = i ? b : c;
    GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11), *again;
    GpuImage *one = rig_filled (b, &b->spec, b->stream[0], 0x00), *other = rig_filled (c, &c->spec, c->stream[0], 0x00);
    void *address = gpu_image_data (src);

    rig_limit (a, a->spec.size);
    rig_close (b, 0);
    rig_close (c, 0);
    rig_copy (b->stream[0], src, one);
    rig_copy (c->stream[0], src, other);
    gpu_image_unref (src);
    a->last[0] = rig_stats (a);
    again = rig_acquire (a, &a->spec, a->stream[0]);
    g_assert_true (gpu_image_data (again) == address);
    rig_expect (a, (Answers){.waiting = 1}, __LINE__);
    rig_fill (a->stream[0], again, 0x22);
    rig_open (first, 0);
    rig_run (first);
    rig_run (a);
    g_assert_false (gpu_image_is_complete (again, GPU_ACCESS_READ));
    rig_open (last, 0);
    rig_sync (a->stream[0]);
    rig_sync (b->stream[0]);
    rig_sync (c->stream[0]);
    rig_expect_bytes (b, one, 0x11);
    rig_expect_bytes (c, other, 0x11);
    rig_expect_bytes (a, again, 0x22);
    gpu_image_unref (again);
    gpu_image_unref (one);
    gpu_image_unref (other);
  }
}

/* A stream that waited for the other device's stream finds the source ordered, by numbers alone: what comes back from
 * there carries the order along. */
static void
test_order_comes_back (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *there = rig_filled (b, &b->spec, b->stream[0], 0x00);
  GpuImage *back = rig_filled (a, &a->spec, a->stream[0], 0x00);
  void *address = gpu_image_data (src);

  rig_expect (a, (Answers){.misses = 2}, __LINE__);
  rig_close (b, 0);
  rig_copy (b->stream[0], src, there);
  gpu_image_unref (src);
  rig_copy (a->stream[0], there, back);
  GpuImage *again = rig_acquire (a, &a->spec, a->stream[0]);
  g_assert_true (gpu_image_data (again) == address);
  rig_expect (a, (Answers){.pending = 1}, __LINE__);
  rig_fill (a->stream[0], again, 0x22);
  rig_open (b, 0);
  rig_sync (a->stream[0]);
  rig_expect_bytes (a, back, 0x11);
  rig_expect_bytes (b, there, 0x11);
  gpu_image_unref (again);
  gpu_image_unref (back);
  gpu_image_unref (there);
}

/* A cache that is to shrink does so at the other device's copies, too (rule 11). */
static void
test_retires_elsewhere (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);
  GpuImage *kept = rig_filled (a, &a->spec, a->stream[0], 0x44);

  rig_close (b, 0);
  for (unsigned i = 0; i < 2; i++) {
    GpuImage *src = rig_acquire (a, &a->spec, a->stream[1]);
    rig_fill (a->stream[1], src, 0x11);
    rig_copy (b->stream[0], src, dst);
    gpu_image_unref (src);
  }
  rig_sync (a->stream[1]);
  rig_limit (a, 0);
  GpuCacheStats stats = rig_stats (a);
  g_assert_cmpuint (stats.pending, ==, 2);
  rig_open (b, 0);
  rig_sync (b->stream[0]);
  uint64_t frees = gpu_device_calls (a->device, GPU_CALL_FREE);
  for (unsigned i = 0; i < 4; i++) {
    rig_copy (b->stream[1], kept, dst);
    rig_sync (b->stream[1]);
  }
  g_assert_cmpuint (gpu_device_calls (a->device, GPU_CALL_FREE), ==, frees + 2);
  gpu_image_unref (kept);
  gpu_image_unref (dst);
}

/* Somebody else's memory goes back to its owner when the other device has read it, also when that device's stream has
 * been destroyed since (rule 11). */
static void
test_wrapped_source (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];

  for (unsigned destroyed = 0; destroyed < 2; destroyed++) {
    GpuImage *owner = rig_filled (a, &a->spec, a->stream[0], 0x11);
    GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);
    GError *error = NULL;
    RigCounter released;

    rig_counter_init (&released);
    GpuImage *src = gpu_image_wrap (a->device, &a->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner),
                                    a->stream[0], rig_counter_add, &released, &error);
    g_assert_no_error (error);
    GpuStream *stream = rig_new_stream (b, false);
    GpuGate *gate = gpu_gate_new (b->device, &error);
    g_assert_no_error (error);
    gpu_gate_hold (gate, stream, &error);
    gpu_image_copy (stream, src, dst, &error);
    g_assert_no_error (error);
    if (destroyed)
      g_clear_pointer (&stream, gpu_stream_unref);
    gpu_image_unref (src);
    rig_run (b);
    g_assert_cmpuint (rig_counter_get (&released), ==, 0);
    gpu_gate_open (gate);
    rig_run (b);
    rig_run (a); /* whose stream waits for the other one's, and calls */
    rig_counter_wait (&released, 1);
    rig_expect_bytes (b, dst, 0x11);
    gpu_gate_free (gate);
    if (stream)
      gpu_stream_unref (stream);
    gpu_image_unref (owner);
    gpu_image_unref (dst);
  }
}

/* Ways that are not there */

/* Through pinned memory of the source's device, which is said once, and counted there; no host wait. */
static void
test_through_host (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImageSpec spec = test_spec (GPU_FORMAT_NV12, 130, 18), wide;
  GError *error = NULL;

  /* New to each other, so that there is something to be said. */
  GpuDevice *device = test_device_new_full (1, 0);
  gpu_device_forbid_peer_access (device, true);
  GpuStream *stream = gpu_stream_new (device, false, &error);
  g_assert_no_error (error);
  g_assert_true (gpu_image_spec_init (&wide, spec.format, spec.width, spec.height, 512, &error));
  g_autofree uint8_t *bytes = test_random_bytes (spec.size, 5);
  GpuImage *src = test_image_new (a->device, &spec, a->stream[0]);
  test_image_write (a->stream[0], src, bytes, &spec);

  g_test_expect_message ("gpucache", G_LOG_LEVEL_MESSAGE, "*through pinned host memory*");
  for (unsigned i = 0; i < 4; i++) {
    GpuImage *dst = test_image_new (device, i % 2 ? &spec : &wide, stream);
    uint64_t host_waits = rig_stats (a).host_waits + rig_stats (b).host_waits;
    gpu_image_copy (stream, src, dst, &error);
    g_assert_no_error (error);
    g_assert_cmpuint (rig_stats (a).host_waits + rig_stats (b).host_waits, ==, host_waits);
    test_assert_image (stream, dst, bytes, &spec);
    gpu_image_unref (dst);
  }
  g_test_assert_expected_messages ();
  GpuCacheStats stats;
  gpu_cache_get_stats (a->device, GPU_ACCOUNT_HOST, GPU_CACHE_ALL, &stats);
  g_assert_cmpuint (stats.misses, ==, 1);
  g_assert_cmpuint (stats.exact_hits, ==, 3);
  g_assert_cmpuint (stats.peak_bytes, ==, spec.size);
  gpu_cache_get_stats (device, GPU_ACCOUNT_HOST, GPU_CACHE_ALL, &stats);
  g_assert_cmpuint (stats.misses, ==, 0);

  /* The pinned frame is not handed out while the other device reads it. There is a second one already, since pinning
   * may wait for streams that gates hold. */
  GpuImage *pinned[2];
  for (unsigned i = 0; i < 2; i++)
    pinned[i] = rig_acquire_kind (a, &spec, GPU_MEMORY_HOST, a->stream[0], GPU_ACQUIRE_DEFAULT);
  for (unsigned i = 0; i < 2; i++)
    gpu_image_unref (pinned[i]);
  GpuGate *gate = gpu_gate_new (device, &error);
  g_assert_no_error (error);
  GpuImage *dst = test_image_new (device, &spec, stream);
  GpuStream *other = gpu_stream_new (device, false, &error);
  g_assert_no_error (error);
  GpuImage *second = test_image_new (device, &spec, other);
  gpu_gate_hold (gate, stream, &error);
  gpu_image_copy (stream, src, dst, &error);
  g_assert_no_error (error);
  gpu_image_fill (a->stream[0], src, 0x77, &error);
  gpu_image_copy (other, src, second, &error);
  g_assert_no_error (error);
  rig_sync (other);
  test_assert_image_is (other, second, 0x77);
  gpu_gate_open (gate);
  test_assert_image (stream, dst, bytes, &spec);
  gpu_gate_free (gate);
  gpu_image_unref (second);
  gpu_image_unref (dst);
  gpu_image_unref (src);
  gpu_stream_unref (other);
  gpu_stream_unref (stream);
  gpu_device_unref (device);
}

/* The source is let go of at once and taken again under pressure: what is written to it then waits for the copy to
 * pinned memory, which waits for what was written before. */
static void
test_through_host_keeps_source (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x00);
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);
  void *address = gpu_image_data (src);

  gpu_device_forbid_peer_access (b->device, true);
  rig_copy (b->stream[0], src, dst); /* by which there is pinned memory, for which a driver may wait */
  rig_sync (b->stream[0]);
  rig_limit (a, a->spec.size);
  rig_close (a, 0);
  rig_fill (a->stream[0], src, 0x11);
  rig_copy (b->stream[0], src, dst);
  gpu_image_unref (src);
  GpuImage *again = rig_acquire (a, &a->spec, a->stream[1]);
  g_assert_true (gpu_image_data (again) == address);
  rig_fill (a->stream[1], again, 0x22);
  rig_run (a);
  rig_run (b);
  g_assert_false (gpu_image_is_complete (dst, GPU_ACCESS_READ));
  rig_open (a, 0);
  rig_sync (a->stream[1]);
  rig_expect_bytes (a, again, 0x22);
  rig_expect_bytes (b, dst, 0x11);
  gpu_image_unref (again);
  gpu_image_unref (dst);
}

/* Pinned memory of one device is read by the other where it is. */
static void
test_pinned_source (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *src = rig_acquire_kind (a, &a->spec, GPU_MEMORY_HOST, a->stream[0], GPU_ACQUIRE_DEFAULT);
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);

  memset (gpu_image_data (src), 0x66, a->spec.size);
  rig_copy (b->stream[0], src, dst);
  rig_expect_bytes (b, dst, 0x66);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

/* Rule 26: nothing else goes over. Each refusal names both devices. */
static void
test_refusals (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x22);
  GError *error = NULL;

  g_assert_false (gpu_image_copy (a->stream[0], src, dst, &error)); /* not the stream of where it goes */
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gpu_image_fill (a->stream[0], dst, 0, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gpu_image_begin_access (src, b->stream[0], GPU_ACCESS_READ, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, gpu_device_name (a->device)));
  g_assert_nonnull (strstr (error->message, gpu_device_name (b->device)));
  g_clear_error (&error);
  g_assert_false (gpu_stream_wait_stream (a->stream[0], b->stream[0], &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);

  GpuCpuExecutor unlike = test_is_lazy () ? GPU_CPU_THREADS : GPU_CPU_LAZY;
  GpuDevice *stranger = gpu_cpu_device_new ("cpu:9", unlike, 0);
  GpuStream *stream = gpu_stream_new (stranger, false, &error);
  g_assert_no_error (error);
  GpuImage *there = test_image_new (stranger, &a->spec, stream);
  g_assert_false (gpu_image_copy (stream, src, there, &error));
  GpuError code = gpu_device_is_host (a->device) ? GPU_ERROR_INVALID : GPU_ERROR_UNSUPPORTED;
  g_assert_error (error, GPU_ERROR, (int)code);
  g_assert_nonnull (strstr (error->message, gpu_device_name (a->device)));
  g_assert_nonnull (strstr (error->message, "cpu:9"));
  g_clear_error (&error);
  gpu_image_unref (there);
  gpu_stream_unref (stream);
  gpu_device_unref (stranger);

  rig_expect_bytes (b, dst, 0x22);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  PEER_TEST ("/peer/round-trips", test_round_trips);
  PEER_TEST ("/peer/views", test_views);
  PEER_TEST ("/peer/waits-for-write", test_waits_for_write);
  PEER_TEST ("/peer/write-waits-for-copy", test_write_waits_for_copy);
  PEER_TEST ("/peer/source-is-kept", test_source_is_kept);
  PEER_TEST ("/peer/pressure-waits-for-copy", test_pressure_waits_for_copy);
  PEER_TEST ("/peer/waits-for-all-readers", test_waits_for_all_readers);
  PEER_TEST ("/peer/order-comes-back", test_order_comes_back);
  PEER_TEST ("/peer/retires-elsewhere", test_retires_elsewhere);
  PEER_TEST ("/peer/wrapped-source", test_wrapped_source);
  PEER_TEST ("/peer/through-host", test_through_host);
  PEER_TEST ("/peer/through-host-keeps-source", test_through_host_keeps_source);
  PEER_TEST ("/peer/pinned-source", test_pinned_source);
  PEER_TEST ("/peer/refusals", test_refusals);
  return g_test_run ();
}
