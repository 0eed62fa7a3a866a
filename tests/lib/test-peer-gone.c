/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Three devices in one process (rules 24 and 26), of which one is lost, closed or full while the others go on.
 */
#include "common.h"
#include "peers.h"

#include <gpucache/device-priv.h>

#include <string.h>

/* The device that is read from is lost: the copy says so, naming it, and the device that was to read goes on. */
static void
test_source_lost (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1], *c = &peers->rig[2];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *there = rig_filled (b, &b->spec, b->stream[0], 0x22);
  GpuImage *dst = rig_filled (c, &c->spec, c->stream[0], 0x00);
  GpuImage *pinned = rig_acquire_kind (a, &a->spec, GPU_MEMORY_HOST, NULL, GPU_ACQUIRE_DEFAULT);
  g_autoptr (GError) error = NULL;

  gpu_device_fail (a->device, GPU_CALL_EVENT_RECORD, 0, 1);
  rig_fill (a->stream[0], src, 0x33);
  g_assert_false (gpu_image_copy (b->stream[0], src, there, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_assert_nonnull (strstr (error->message, gpu_device_name (a->device)));
  g_assert_true (gpu_device_is_lost (a->device));
  g_assert_false (gpu_device_is_lost (b->device));
  g_clear_error (&error);
  g_assert_false (gpu_image_copy (b->stream[0], pinned, there, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_assert_false (gpu_device_is_lost (b->device));

  rig_expect_bytes (b, there, 0x22);
  rig_copy (c->stream[0], there, dst);
  rig_expect_bytes (c, dst, 0x22);
  gpu_image_unref (pinned);
  gpu_image_unref (src);
  gpu_image_unref (there);
  gpu_image_unref (dst);
}

/* The device that reads is lost: what it may be reading is never taken again, not even under pressure, and its owner
 * goes on with other memory (rule 24). Then the lost one is closed. */
static void
test_reader_lost (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1], *c = &peers->rig[2];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);
  GpuImage *live = rig_filled (a, &a->other, a->stream[0], 0x22), *other = rig_filled (b, &b->other, b->stream[0], 0);
  void *address = gpu_image_data (src);
  GError *error = NULL;

  rig_limit (a, a->spec.size);
  rig_close (b, 0);
  rig_copy (b->stream[0], src, dst);
  rig_copy (b->stream[0], live, other);
  gpu_image_unref (src);
  gpu_device_fail (b->device, GPU_CALL_LAUNCH, 0, 1);
  gpu_device_fail (b->device, GPU_CALL_COPY, 0, 1);
  g_assert_false (gpu_image_fill (b->stream[1], dst, 0, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  g_assert_true (gpu_device_is_lost (b->device));

  /* What it reads is not written either; whoever wants to is told why, and no worse for it. */
  g_assert_false (gpu_image_fill (a->stream[0], live, 0, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_assert_nonnull (strstr (error->message, gpu_device_name (b->device)));
  g_clear_error (&error);
  g_assert_false (gpu_device_is_lost (a->device));
  rig_expect_bytes (a, live, 0x22);
  gpu_image_unref (live);

  for (unsigned closed = 0; closed < 2; closed++) {
    GpuImage *image = rig_acquire (a, &a->spec, a->stream[0]);
    if (!closed)
      g_assert_true (gpu_image_data (image) != address);
    rig_fill (a->stream[0], image, 0x55);
    rig_expect_bytes (a, image, 0x55);
    GpuImage *elsewhere = rig_filled (c, &c->spec, c->stream[0], 0x00);
    rig_copy (c->stream[0], image, elsewhere);
    rig_expect_bytes (c, elsewhere, 0x55);
    gpu_image_unref (elsewhere);
    gpu_image_unref (image);
    if (!closed) {
      GpuCacheStats stats = rig_stats (a);
      g_assert_cmpuint (stats.pending, >=, 1);
      rig_open (b, 0);
      gpu_image_unref (dst);
      gpu_image_unref (other);
      peers_close_device (b);
    }
  }
  g_assert_false (gpu_device_is_lost (a->device));
}

/* Asserts that @image's first byte is @value, whose device may be lost; its work is waited for. */
static void
expect_first_byte (Rig *rig, GpuImage *image, uint8_t value)
{
  g_assert_true (rig->device->funcs->synchronize (rig->device, NULL));
  if (gpu_device_is_host (rig->device))
    g_assert_cmphex (*(uint8_t *)gpu_image_data (image), ==, value);
}

/* The device that reads is lost in the middle of a copy, of which the first plane was submitted: that runs all the
 * same, so the source is not taken before it did, nor given back to its owner if it is somebody else's (rule 24). */
static void
test_reader_lost_halfway (Peers *peers, const void *data)
{
  bool wrapped = GPOINTER_TO_UINT (data);
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImageSpec spec = rig_spec (GPU_FORMAT_NV12, 128, 16), wide;
  GError *error = NULL;
  RigCounter released;

  g_assert_true (gpu_image_spec_init (&wide, spec.format, spec.width, spec.height, 1024, &error));
  rig_counter_init (&released);
  GpuImage *owner = rig_filled (a, &spec, a->stream[0], 0x11), *src = owner;
  GpuImage *dst = rig_filled (b, &wide, b->stream[0], 0x00);
  void *address = gpu_image_data (owner);
  if (wrapped)
    src = gpu_image_wrap (a->device, &spec, GPU_MEMORY_STREAM_ORDERED, address, a->stream[0], rig_counter_add,
                          &released, &error);
  g_assert_no_error (error);

  rig_limit (a, spec.size);
  rig_close (b, 0);
  gpu_device_fail (b->device, GPU_CALL_COPY, 1, 1);
  g_assert_false (gpu_image_copy (b->stream[0], src, dst, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  g_assert_true (gpu_device_is_lost (b->device));
  g_assert_false (gpu_device_is_lost (a->device));
  gpu_image_unref (src);
  GpuImage *other = rig_acquire (a, &spec, a->stream[1]);
  g_assert_true (gpu_image_data (other) != address);
  rig_fill (a->stream[1], other, 0x22);
  rig_sync (a->stream[1]);
  g_assert_cmpuint (rig_counter_get (&released), ==, 0);

  rig_open (b, 0);
  expect_first_byte (b, dst, 0x11);
  gpu_image_unref (dst);
  gpu_image_unref (other);
  peers_close_device (b); /* by which it is known */
  if (wrapped) {
    gpu_image_unref (owner);
    peers_close_device (a);
    rig_counter_wait (&released, 1);
    return;
  }
  GpuCacheStats stats = rig_stats (a);
  g_assert_cmpuint (stats.pending, ==, 0);
}

/* A device is closed while others' memory was read by its streams: all it did is complete by then, and their memory is
 * found again. */
static void
test_reader_closed (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1], *c = &peers->rig[2];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *live = rig_filled (a, &a->other, a->stream[0], 0x22);
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00), *other = rig_filled (b, &b->other, b->stream[0], 0x00);
  void *address = gpu_image_data (src);

  rig_expect (a, (Answers){.misses = 2}, __LINE__);
  rig_close (b, 0);
  rig_copy (b->stream[0], src, dst);
  rig_copy (b->stream[0], live, other);
  gpu_image_unref (src);
  rig_open (b, 0);
  gpu_image_unref (dst);
  gpu_image_unref (other);
  peers_close_device (b);

  GpuImage *again = rig_acquire (a, &a->spec, a->stream[0]);
  g_assert_true (gpu_image_data (again) == address);
  rig_expect (a, (Answers){.exact = 1}, __LINE__);
  rig_fill (a->stream[1], live, 0x33); /* its history still names the other's stream */
  GpuImage *elsewhere = rig_filled (c, &c->other, c->stream[0], 0x00);
  rig_copy (c->stream[0], live, elsewhere);
  rig_expect_bytes (c, elsewhere, 0x33);
  gpu_image_unref (elsewhere);
  gpu_image_unref (again);
  gpu_image_unref (live);
}

/* Threads wait for the other device's reading while that device is closed: its events stay until they have come back.
 */
typedef struct {
  GpuImage *image;
  RigCounter *counter;
} Waiter;

static void *
run_waiter (void *data)
{
  Waiter *waiter = data;
  g_autoptr (GError) error = NULL;

  rig_counter_add (waiter->counter);
  bool ok = gpu_image_wait (waiter->image, GPU_ACCESS_WRITE, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
  return NULL;
}

static void
test_closed_while_waited_for (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0];

  for (unsigned i = 0; i < 20; i++) {
    GpuDevice *device = test_device_new_full (1, 0);
    GError *error = NULL;
    GpuStream *stream = gpu_stream_new (device, false, &error);
    g_assert_no_error (error);
    GpuImage *dst = test_image_new (device, &a->spec, stream);
    GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);
    GpuGate *gate = gpu_gate_new (device, &error);
    g_assert_no_error (error);
    pthread_t threads[3];
    RigCounter counter;
    Waiter waiter = {src, &counter};

    gpu_image_copy (stream, src, dst, &error); /* opens the way */
    g_assert_no_error (error);
    gpu_gate_hold (gate, stream, &error);
    gpu_image_copy (stream, src, dst, &error);
    g_assert_no_error (error);
    rig_counter_init (&counter);
    for (unsigned k = 0; k < G_N_ELEMENTS (threads); k++)
      g_assert_cmpint (pthread_create (&threads[k], NULL, run_waiter, &waiter), ==, 0);
    rig_counter_wait (&counter, G_N_ELEMENTS (threads));
    if (i % 2)
      g_usleep (1000); /* they are in the driver by then */
    gpu_image_unref (dst);
    gpu_stream_unref (stream);
    gpu_gate_free (gate);
    gpu_device_unref (device);
    for (unsigned k = 0; k < G_N_ELEMENTS (threads); k++)
      pthread_join (threads[k], NULL);
    gpu_image_unref (src);
  }
}

/* The device that was read from is closed with the copy pending: it stays until that is complete. */
static void
test_source_closed (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];

  for (unsigned i = 0; i < 2; i++) {
    Rig *from = i ? &peers->rig[2] : a;
    GpuImage *src = rig_acquire (from, &from->spec, from->stream[0]);
    GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);
    rig_fill (from->stream[0], src, 0x11);
    rig_copy (b->stream[0], src, dst);
    gpu_image_unref (src);
    if (i) { /* and the reader does not say any more when that is */
      GError *error = NULL;
      gpu_device_fail (b->device, GPU_CALL_COPY, 0, 1);
      g_assert_false (gpu_image_fill (b->stream[1], dst, 0, &error));
      g_clear_error (&error);
    }
    peers_close_device (from);
    if (!i)
      rig_expect_bytes (b, dst, 0x11);
    gpu_image_unref (dst);
  }
}

/* What was read was written by then. */
typedef struct {
  Rig *reader;
  GpuImage *dst;
  unsigned n_released;
} Reading;

static void
release_read (void *data)
{
  Reading *reading = data;

  reading->n_released++;
  if (gpu_device_is_host (reading->reader->device))
    g_assert_cmphex (*(uint8_t *)gpu_image_data (reading->dst), ==, 0x11);
}

/* Somebody else's memory on a device that is lost and closed, while another one, which is well, reads it: its owner
 * gets it back when it has been read. */
static void
test_wrapped_source_lost (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *owner = rig_filled (a, &a->spec, a->stream[0], 0x11);
  GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);
  Reading reading = {b, dst, 0};
  GError *error = NULL;
  GpuImage *src = gpu_image_wrap (a->device, &a->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner), a->stream[0],
                                  release_read, &reading, &error);

  g_assert_no_error (error);
  rig_close (b, 0);
  rig_copy (b->stream[0], src, dst);
  gpu_device_fail (a->device, GPU_CALL_COPY, 0, 1);
  g_assert_false (gpu_image_fill (a->stream[0], owner, 0x22, &error));
  g_clear_error (&error);
  g_assert_true (gpu_device_is_lost (a->device));
  gpu_image_unref (src);
  gpu_image_unref (owner);
  g_assert_cmpuint (reading.n_released, ==, 0);
  rig_open (b, 0);
  peers_close_device (a);
  g_assert_cmpuint (reading.n_released, ==, 1);
  rig_expect_bytes (b, dst, 0x11);
  gpu_image_unref (dst);
}

/* The frame is all that is left of the source's device, which goes with it: when it has been read. */
static void
test_source_is_the_last (Peers *peers, const void *data)
{
  Rig *b = &peers->rig[1];

  for (unsigned forbidden = 0; forbidden < 2; forbidden++) {
    GpuDevice *device = test_device_new_full (2, 0);
    GError *error = NULL;
    GpuStream *stream = gpu_stream_new (device, false, &error);
    g_assert_no_error (error);
    GpuImage *src = test_image_new (device, &b->spec, stream);
    rig_fill (stream, src, 0x11);
    gpu_stream_unref (stream);
    gpu_device_unref (device);
    GpuImage *dst = rig_filled (b, &b->spec, b->stream[0], 0x00);
    gpu_device_forbid_peer_access (b->device, forbidden);
    if (forbidden)
      g_test_expect_message ("gpucache", G_LOG_LEVEL_MESSAGE, "*through pinned host memory*");
    rig_copy (b->stream[0], src, dst);
    g_test_assert_expected_messages ();
    gpu_image_unref (src);
    rig_expect_bytes (b, dst, 0x11);
    gpu_image_unref (dst);
  }
}

/* What devices know of others ends with those. */
static void
test_forgotten (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0];
  unsigned before = a->device->peers->len;

  for (unsigned i = 0; i < 3; i++) {
    GpuDevice *device = test_device_new_full (1, 0);
    GError *error = NULL;
    GpuStream *stream = gpu_stream_new (device, false, &error);
    g_assert_no_error (error);
    GpuImage *here = rig_filled (a, &a->spec, a->stream[0], 0x11), *there = test_image_new (device, &a->spec, stream);
    rig_copy (stream, here, there);
    rig_copy (a->stream[0], there, here);
    rig_sync (a->stream[0]);
    g_assert_cmpuint (a->device->peers->len, ==, before + 1);
    gpu_image_unref (here);
    gpu_image_unref (there);
    gpu_stream_unref (stream);
    gpu_device_unref (device);
    g_assert_cmpuint (a->device->peers->len, ==, before);
  }
}

/* One device at its limit, and refused memory: the other's copies wait for nothing of that. */
static void
test_one_full (Peers *peers, const void *data)
{
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuImage *src = rig_filled (a, &a->spec, a->stream[0], 0x11);

  rig_limit (a, a->spec.size);
  for (unsigned i = 0; i < 4; i++) {
    GpuImage *dst = rig_acquire (b, &b->spec, b->stream[0]);
    rig_copy (b->stream[0], src, dst);
    rig_expect_bytes (b, dst, 0x11);
    gpu_image_unref (dst);
  }
  GpuCacheStats stats = rig_stats (a);
  g_assert_cmpuint (rig_bytes (&stats), ==, a->spec.size);
  g_assert_cmpuint (stats.limit_bytes, ==, a->spec.size);
  stats = rig_stats (b);
  g_assert_cmpuint (stats.limit_bytes, >, b->spec.size);
  g_assert_cmpuint (stats.evictions, ==, 0);

  gpu_device_fail (a->device, GPU_CALL_ALLOC, 0, 100);
  GError *error = NULL;
  g_assert_null (gpu_image_acquire (a->device, &a->spec, GPU_MEMORY_STREAM_ORDERED, a->stream[0], 0, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  gpu_device_fail (a->device, GPU_CALL_ALLOC, 0, 0);
  GpuImage *dst = rig_acquire (b, &b->spec, b->stream[0]);
  rig_copy (b->stream[0], src, dst);
  rig_expect_bytes (b, dst, 0x11);
  gpu_image_unref (dst);
  gpu_image_unref (src);
}

/* Rule 27 where one device is lost: the frames on another go on, whether or not the frame before has an event. */
static void
test_throttle_beside_lost (Peers *peers, const void *data)
{
  static const unsigned depths[] = {3, 8};
  Rig *a = &peers->rig[0], *b = &peers->rig[1];
  GpuThrottle *throttle[G_N_ELEMENTS (depths)];
  GpuImage *on_lost = rig_acquire (a, &a->spec, a->stream[0]), *on_good = rig_acquire (b, &b->spec, b->stream[0]);
  GError *error = NULL;

  for (unsigned i = 0; i < G_N_ELEMENTS (depths); i++) {
    throttle[i] = gpu_throttle_new (depths[i]);
    for (unsigned frame = 0; frame < 4; frame++) {
      g_assert_true (gpu_throttle_begin (throttle[i], &error));
      rig_fill (a->stream[0], on_lost, 1);
      g_assert_true (gpu_throttle_end (throttle[i], a->stream[0], &error));
    }
  }
  gpu_device_fail (a->device, GPU_CALL_STREAM_CREATE, 0, 1);
  g_assert_null (gpu_stream_new (a->device, false, NULL));
  g_assert_true (gpu_device_is_lost (a->device));
  for (unsigned i = 0; i < G_N_ELEMENTS (depths); i++) {
    for (unsigned frame = 0; frame < 2 * depths[i]; frame++) {
      g_assert_true (gpu_throttle_begin (throttle[i], &error));
      g_assert_no_error (error);
      rig_fill (b->stream[0], on_good, 1);
      g_assert_true (gpu_throttle_end (throttle[i], b->stream[0], &error));
      g_assert_no_error (error);
    }
    gpu_throttle_free (throttle[i]);
  }
  gpu_image_unref (on_lost);
  gpu_image_unref (on_good);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  PEER_TEST ("/peer-gone/source-lost", test_source_lost);
  PEER_TEST ("/peer-gone/reader-lost", test_reader_lost);
  g_test_add ("/peer-gone/reader-lost-halfway/owned", Peers, GUINT_TO_POINTER (false), peers_setup,
              test_reader_lost_halfway, peers_teardown);
  g_test_add ("/peer-gone/reader-lost-halfway/wrapped", Peers, GUINT_TO_POINTER (true), peers_setup,
              test_reader_lost_halfway, peers_teardown);
  PEER_TEST ("/peer-gone/reader-closed", test_reader_closed);
  PEER_TEST ("/peer-gone/closed-while-waited-for", test_closed_while_waited_for);
  PEER_TEST ("/peer-gone/source-closed", test_source_closed);
  PEER_TEST ("/peer-gone/wrapped-source-lost", test_wrapped_source_lost);
  PEER_TEST ("/peer-gone/source-is-the-last", test_source_is_the_last);
  PEER_TEST ("/peer-gone/forgotten", test_forgotten);
  PEER_TEST ("/peer-gone/one-full", test_one_full);
  PEER_TEST ("/peer-gone/throttle", test_throttle_beside_lost);
  return g_test_run ();
}
