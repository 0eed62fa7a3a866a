/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the cache keeps, and what it only wraps: rules 1 to 3.
 */
#include "common.h"
#include "rig.h"

/* Rule 1: owned memory is counted, with its whole capacity. */
static void
test_owned (Rig *rig, const void *data)
{
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .misses = 1);

  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (gpu_image_capacity (image), >=, rig->spec.size);
  g_assert_cmpuint (stats.live, ==, 1);
  g_assert_cmpuint (stats.live_bytes, ==, gpu_image_capacity (image));
  g_assert_cmpuint (rig_bytes (&stats), ==, gpu_image_capacity (image));
  g_assert_cmpuint (stats.peak_bytes, ==, gpu_image_capacity (image));
  g_assert_true (gpu_image_spec_equal (gpu_image_spec (image), &rig->spec));
  g_assert_true (gpu_image_device (image) == rig->device);
  g_assert_cmpint (gpu_image_kind (image), ==, GPU_MEMORY_STREAM_ORDERED);
  gpu_image_unref (image);
}

/* Rule 1: wrapped memory is neither counted nor retained, and never handed out; its owner gets it back once. */
static void
test_wrapped (Rig *rig, const void *data)
{
  GError *error = NULL;
  RigCounter released;

  rig_counter_init (&released);
  GpuImage *owner = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuCacheStats before = rig_stats (rig);

  for (unsigned i = 0; i < 3; i++) {
    GpuImage *wrap = gpu_image_wrap (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner),
                                     rig->stream[0], rig_counter_add, &released, &error);
    g_assert_no_error (error);
    g_assert_true (gpu_image_data (wrap) == gpu_image_data (owner));
    GpuCacheStats with = rig_stats (rig);
    g_assert_cmpuint (rig_bytes (&with), ==, rig_bytes (&before));
    rig_fill (rig->stream[0], wrap, 0x22);
    gpu_image_unref (wrap);
    rig_sync (rig->stream[0]);
    rig_run (rig);
    rig_counter_wait (&released, i + 1);
  }

  GpuCacheStats after = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&after), ==, rig_bytes (&before));
  GpuImage *fresh = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_true (gpu_image_data (fresh) != gpu_image_data (owner));
  rig_expect_bytes (rig, owner, 0x22);
  g_assert_cmpuint (rig_counter_get (&released), ==, 3);
  gpu_image_unref (fresh);
  gpu_image_unref (owner);
}

/* Rule 1: a wrap starts with a write on the stream that its owner named, so a reader elsewhere waits for it. */
static void
test_wrap_starts_with_write (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *owner = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[1], 0x00);

  rig_close (rig, 0);
  rig_fill (rig->stream[0], owner, 0x33);
  GpuImage *wrap = gpu_image_wrap (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner),
                                   rig->stream[0], NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_false (gpu_image_is_complete (wrap, GPU_ACCESS_READ));
  rig_copy (rig->stream[1], wrap, copy);
  rig_open (rig, 0);
  rig_sync (rig->stream[1]);
  rig_expect_bytes (rig, copy, 0x33);
  gpu_image_unref (wrap);
  gpu_image_unref (copy);
  gpu_image_unref (owner);
  rig_finish (rig);
}

/* Rule 1: without a stream a host wait takes the place of that write; it is counted. */
static void
test_wrap_without_stream (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *owner = rig_acquire (rig, &rig->spec, rig->stream[0]);
  GpuImage *copy = rig_acquire (rig, &rig->spec, rig->stream[1]);

  rig_fill (rig->stream[0], owner, 0x44);
  GpuCacheStats before = rig_stats (rig);
  GpuImage *wrap = gpu_image_wrap (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner), NULL,
                                   NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (rig_stats (rig).host_waits, >, before.host_waits);
  rig_copy (rig->stream[1], wrap, copy);
  rig_sync (rig->stream[1]);
  rig_expect_bytes (rig, copy, 0x44);
  gpu_image_unref (wrap);
  gpu_image_unref (copy);
  gpu_image_unref (owner);
}

/* Rules 1 and 11: the owner gets its memory back only when every access is complete, and without another call of ours:
 * it may be unable to go on until then. */
static void
test_wrap_release_is_late (Rig *rig, const void *data)
{
  GError *error = NULL;
  RigCounter released;

  rig_counter_init (&released);
  GpuImage *owner = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[1], 0x00);
  GpuImage *wrap = gpu_image_wrap (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner),
                                   rig->stream[0], rig_counter_add, &released, &error);
  g_assert_no_error (error);
  rig_close (rig, 1);
  rig_copy (rig->stream[1], wrap, copy);
  gpu_image_unref (wrap);
  rig_sync (rig->stream[0]);
  gpu_image_unref (rig_acquire (rig, &rig->spec, rig->stream[0]));
  g_assert_cmpuint (rig_counter_get (&released), ==, 0);

  rig_open (rig, 1);
  rig_run (rig);
  rig_counter_wait (&released, 1);
  rig_expect_bytes (rig, copy, 0x11);
  g_assert_cmpuint (rig_counter_get (&released), ==, 1);
  gpu_image_unref (copy);
  gpu_image_unref (owner);
}

/* Rule 11: and then at once: what its stream does afterwards is none of its business. */
static void
test_wrap_release_is_early (Rig *rig, const void *data)
{
  GError *error = NULL;
  RigCounter released[2];
  GpuImage *wrap[2];
  GpuImage *owner = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[1], 0x00);
  GpuGate *later[2];

  rig_close (rig, 1);
  for (unsigned i = 0; i < 2; i++) {
    rig_counter_init (&released[i]);
    wrap[i] = gpu_image_wrap (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner),
                              rig->stream[1], rig_counter_add, &released[i], &error);
    g_assert_no_error (error);
    if (i == 0)
      rig_copy (rig->stream[1], wrap[i], copy);
    later[i] = gpu_gate_new (rig->device, &error);
    g_assert_true (gpu_gate_hold (later[i], rig->stream[1], &error));
  }
  /* The other way round, and one that nobody used but its owner. */
  gpu_image_unref (wrap[1]);
  gpu_image_unref (wrap[0]);
  rig_run (rig);
  g_assert_cmpuint (rig_counter_get (&released[0]), ==, 0);
  rig_open (rig, 1);
  rig_run (rig);
  rig_counter_wait (&released[0], 1);
  g_assert_cmpuint (rig_counter_get (&released[1]), ==, 0);
  gpu_gate_open (later[0]);
  rig_run (rig);
  rig_counter_wait (&released[1], 1);
  for (unsigned i = 0; i < 2; i++)
    gpu_gate_free (later[i]);
  rig_expect_bytes (rig, copy, 0x11);
  gpu_image_unref (copy);
  gpu_image_unref (owner);
}

/* Rule 1, issue of bad input: a wrap that fails does not call the release function. */
static void
test_wrap_fails (Rig *rig, const void *data)
{
  GError *error = NULL;
  RigCounter released;
  uint64_t there;

  rig_counter_init (&released);
  GpuDevice *other = gpu_cpu_device_new ("cpu:9", GPU_CPU_LAZY, 1 << 20);
  GpuStream *foreign = gpu_stream_new (other, false, &error);
  g_assert_no_error (error);
  GpuImage *wrap = gpu_image_wrap (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, &there, foreign, rig_counter_add,
                                   &released, &error);
  g_assert_null (wrap);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  gpu_stream_unref (foreign);
  gpu_device_unref (other);
  rig_sync (rig->stream[0]);
  g_assert_cmpuint (rig_counter_get (&released), ==, 0);
}

/* Rule 2: a view, and a reference, keep the memory live; so the view may outlive its image. */
static void
test_live (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  void *address = gpu_image_data (image);
  GpuImage *view = gpu_image_view (image, 8, 16, 32, 16, &error);
  g_assert_no_error (error);
  GpuImage *inner = gpu_image_view (view, 8, 0, 16, 16, &error);
  g_assert_no_error (error);

  gpu_image_ref (image);
  gpu_image_unref (image);
  gpu_image_unref (image);
  for (unsigned i = 0; i < 2; i++) {
    g_assert_cmpuint (rig_stats (rig).live, ==, 1);
    GpuImage *fresh = rig_acquire (rig, &rig->spec, rig->stream[0]);
    g_assert_true (gpu_image_data (fresh) != address);
    rig_fill (rig->stream[0], fresh, 0x22);
    gpu_image_unref (fresh);
    rig_expect_bytes (rig, inner, 0x11);
    g_clear_pointer (&view, gpu_image_unref);
  }
  gpu_image_unref (inner);
  g_assert_cmpuint (rig_stats (rig).live, ==, 0);
}

/* Rule 24: the device is lost in the middle of work on somebody else's memory, of which the first part runs all the
 * same: its owner does not get it back before the device has gone. */
static void
test_wrap_lost_halfway (void)
{
  Rig rig;
  GError *error = NULL;
  RigCounter released;

  rig_setup (&rig, NULL);
  rig_counter_init (&released);
  GpuImageSpec spec = rig_spec (GPU_FORMAT_NV12, 128, 16); /* two planes, each filled by a call */
  GpuImage *owner = rig_filled (&rig, &spec, rig.stream[0], 0x11);
  GpuImage *image = gpu_image_wrap (rig.device, &spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner), rig.stream[0],
                                    rig_counter_add, &released, &error);
  g_assert_no_error (error);
  rig_close (&rig, 0);
  gpu_device_fail (rig.device, GPU_CALL_COPY, 1, 1);
  g_assert_false (gpu_image_fill (rig.stream[0], image, 0x22, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  gpu_image_unref (image);
  g_assert_cmpuint (rig_counter_get (&released), ==, 0);
  rig_open (&rig, 0);
  gpu_image_unref (owner);
  rig_teardown (&rig, NULL);
  rig_counter_wait (&released, 1);
}

/* Rule 2: an access through a view is an access to the memory. */
static void
test_view_shares_history (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *part = gpu_image_view (image, 16, 16, 16, 16, &error);
  g_assert_no_error (error);
  GpuImageSpec small = rig_spec (GPU_FORMAT_RGBA, 16, 16);
  GpuImage *copy = rig_filled (rig, &small, rig->stream[0], 0x00);

  rig_close (rig, 0);
  rig_fill (rig->stream[0], image, 0x22);
  rig_copy (rig->stream[1], part, copy);  /* must see 0x22 */
  rig_fill (rig->stream[2], image, 0x33); /* must not be seen by the copy */
  rig_open (rig, 0);
  rig_sync (rig->stream[2]);
  rig_sync (rig->stream[1]);
  rig_expect_bytes (rig, copy, 0x22);
  rig_expect_bytes (rig, part, 0x33);
  gpu_image_unref (part);
  gpu_image_unref (image);
  gpu_image_unref (copy);
}

typedef struct {
  Rig *rig;
  GpuImage *image;
  void *address;
} Handed;

static void
release_there (void *data)
{
  Handed *handed = data;

  gpu_image_unref (handed->image);
  GpuImage *mine = rig_acquire (handed->rig, &handed->rig->spec, handed->rig->stream[0]);
  g_assert_true (gpu_image_data (mine) != handed->address);
  gpu_image_unref (mine);
}

/* Rule 3: memory goes back to the scope that it came from, whichever thread lets go of it. */
static void
test_released_elsewhere (Rig *rig, const void *data)
{
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  Handed handed = {rig, image, gpu_image_data (image)};

  RIG_EXPECT (rig, .misses = 1);
  RigThread *thread = rig_thread_new ();
  rig_thread_do (thread, release_there, &handed);
  RIG_EXPECT (rig, .misses = 1);
  image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_true (gpu_image_data (image) == handed.address);
  gpu_image_unref (image);
  rig_thread_end (thread);
}

/* Rule 3: what is released is pending until its accesses are observed complete, then idle. */
static void
test_pending_then_idle (Rig *rig, const void *data)
{
  rig_close (rig, 0);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  size_t capacity = gpu_image_capacity (image);
  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);

  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.live, ==, 0);
  g_assert_cmpuint (stats.pending, ==, 1);
  g_assert_cmpuint (stats.pending_bytes, ==, capacity);
  g_assert_cmpuint (stats.idle, ==, 0);
  rig_finish (rig);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.pending, ==, 0);
  g_assert_cmpuint (stats.idle, ==, 1);
  g_assert_cmpuint (stats.idle_bytes, ==, capacity);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/cache/rule-1/owned", test_owned);
  RIG_TEST ("/cache/rule-1/wrapped", test_wrapped);
  RIG_TEST ("/cache/rule-1/wrap-starts-with-write", test_wrap_starts_with_write);
  RIG_TEST ("/cache/rule-1/wrap-without-stream", test_wrap_without_stream);
  RIG_TEST ("/cache/rule-1/wrap-release-is-late", test_wrap_release_is_late);
  RIG_TEST ("/cache/rule-11/wrap-release-is-early", test_wrap_release_is_early);
  RIG_TEST ("/cache/rule-1/wrap-fails", test_wrap_fails);
  g_test_add_func ("/cache/rule-24/wrap-lost-halfway", test_wrap_lost_halfway);
  RIG_TEST ("/cache/rule-2/live", test_live);
  RIG_TEST ("/cache/rule-2/view-shares-history", test_view_shares_history);
  RIG_TEST ("/cache/rule-3/released-elsewhere", test_released_elsewhere);
  RIG_TEST ("/cache/rule-3/pending-then-idle", test_pending_then_idle);
  return g_test_run ();
}
