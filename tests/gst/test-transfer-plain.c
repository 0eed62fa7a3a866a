/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Frames in memory that is not the library's: that of pools is pinned in place when it has come a few times, and then
 * copied straight; and who may use it meanwhile.
 */
#include "transfer.h"

#define WIDTH 401
#define HEIGHT 303
#define N_POOL 3
#define USES_BEFORE 3

static const char *const formats[] = {"RGBA", "RGB", "NV12", "I420", "GRAY8"};

/* What is pinned in place is all that is live of pinned memory while the elements' frames are elsewhere. */
static guint64
n_pins (GpuDevice *device)
{
  return test_stats (device, GPU_ACCOUNT_HOST).live;
}

static gboolean
may_pin (GpuDevice *device)
{
  return !gpu_device_is_host (device);
}

static GstBufferPool *
plain_pool_new (const GstVideoInfo *info, guint n)
{
  GstBufferPool *pool = gst_buffer_pool_new ();
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, NULL, (guint)GST_VIDEO_INFO_SIZE (info), n, n);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  return pool;
}

static GstBuffer *
try_take (GstBufferPool *pool)
{
  GstBufferPoolAcquireParams params = {.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT};
  GstBuffer *buffer = NULL;

  gst_buffer_pool_acquire_buffer (pool, &buffer, &params);
  return buffer;
}

/* A frame that the pool has back, sooner or later. */
static GstBuffer *
take_any (GpuDevice *device, GstBufferPool *pool)
{
  GstBuffer *buffer = try_take (pool);

  for (guint i = 0; !buffer && i < 10000; i++) {
    test_give_time (device);
    buffer = try_take (pool);
  }
  fail_unless (buffer != NULL, "a frame does not come back");
  return buffer;
}

static GstBuffer *
take (GpuDevice *device, GstBufferPool *pool, const GstVideoInfo *info, guint32 seed)
{
  GstBuffer *buffer = take_any (device, pool);

  fill_frame (buffer, info, seed);
  return buffer;
}

/* Of @n frames, which all come back. */
static void
plain_pool_free (GpuDevice *device, GstBufferPool *pool, guint n)
{
  GstBuffer *frames[N_POOL];

  for (guint i = 0; i < n; i++)
    frames[i] = take_any (device, pool);
  for (guint i = 0; i < n; i++)
    gst_buffer_unref (frames[i]);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
}

static GstHarness *
start_upload (GpuDevice *device, GstVideoInfo *info, const char *format)
{
  GstHarness *h = harness_new_on ("gpuupload", device);

  gst_harness_set_src_caps (h, frame_caps (format, WIDTH, HEIGHT, FALSE));
  info_init (info, format, WIDTH, HEIGHT);
  return h;
}

GST_START_TEST (recurring_frames_are_uploaded_straight)
{
  for (guint k = 0; k < G_N_ELEMENTS (formats); k++) {
    GpuDevice *device = test_device_new ();
    GstVideoInfo info;
    GstHarness *h = start_upload (device, &info, formats[k]);
    GstBufferPool *pool = plain_pool_new (&info, N_POOL);
    gboolean pins = may_pin (device) && GST_VIDEO_INFO_SIZE (&info) >= 256 * 1024;

    for (guint32 i = 0; i < 6 * N_POOL; i++) {
      GstBuffer *out = push_and_pull (h, take (device, pool, &info, i));

      /* The map reads it through pinned memory. */
      assert_frame (out, &info, i, formats[k]);
      gst_buffer_unref (out);
      if (i < (USES_BEFORE - 1) * N_POOL)
        fail_unless_equals_uint64 (n_pins (device), 0);
    }
    fail_unless_equals_uint64 (n_pins (device), pins ? N_POOL : 0);
    gpu_cache_check (device);
    plain_pool_free (device, pool, N_POOL);
    fail_unless_equals_uint64 (n_pins (device), 0);
    gst_harness_teardown (h);
    gpu_device_unref (device);
  }
}
GST_END_TEST

/* Nobody waits, and the pool has a frame back when it has been read, not before. */
GST_START_TEST (frame_is_held_until_it_has_been_read)
{
  GpuDevice *device = test_device_new ();
  GstVideoInfo info;
  GstHarness *h = start_upload (device, &info, "RGBA");
  GstBufferPool *pool = plain_pool_new (&info, 1);
  const guint64 old = gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE);
  GpuStream *held = test_stream_new (device);
  GstBuffer *out = NULL, *back;
  GpuCacheStats before, after;
  guint64 waiting;
  TestDelay delay;

  for (guint32 i = 0; i < 5; i++) {
    gst_clear_buffer (&out);
    out = push_and_pull (h, take (device, pool, &info, i));
    assert_frame (out, &info, i, "before");
  }
  if (may_pin (device)) {
    /* The next frame gets this one's memory, when what is held has been done: there is no room for another. */
    fail_unless (gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, 1, NULL));
    back = take (device, pool, &info, 77);
    test_delay_begin (&delay, held);
    fail_unless (gpu_image_fill (held, gst_gpu_memory_get_image (gst_buffer_peek_memory (out, 0)), 1, NULL));
    gst_buffer_unref (out);
    waiting = test_stats (device, GPU_ACCOUNT_DEVICE).waiting_hits;
    before = test_stats (device, GPU_ACCOUNT_HOST);
    out = push_and_pull (h, back);
    after = test_stats (device, GPU_ACCOUNT_HOST);
    fail_unless_equals_uint64 (after.host_waits, before.host_waits);
    fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).waiting_hits, waiting + 1);
    g_usleep (20000);
    fail_unless (try_take (pool) == NULL, "the pool has a frame that has not been read");
    test_delay_open_later (&delay);
    back = take (device, pool, &info, 88);
    fail_unless (test_delay_is_open (&delay));
    assert_frame (out, &info, 77, "held");
    gst_buffer_unref (back);
    test_delay_end (&delay);
    fail_unless (gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, (gint64)old, NULL));
  }
  gst_buffer_unref (out);
  plain_pool_free (device, pool, 1);
  gst_harness_teardown (h);
  gpu_stream_unref (held);
  gpu_device_unref (device);
}
GST_END_TEST

/* A source may keep the memory, too: who writes to it while it is being read gets other memory from GStreamer. */
GST_START_TEST (source_keeps_its_memory_and_writes_it_again)
{
  GpuDevice *device = test_device_new ();
  GstVideoInfo info;
  GstHarness *h = start_upload (device, &info, "RGB");
  GstBuffer *frame = frame_new (&info, 0), *out[12];

  for (guint32 i = 0; i < G_N_ELEMENTS (out); i++) {
    out[i] = push_and_pull (h, gst_buffer_copy (frame));
    if (i > 5)
      fill_frame (frame, &info, i + 1);
  }
  for (guint32 i = 0; i < G_N_ELEMENTS (out); i++) {
    assert_frame (out[i], &info, i > 6 ? i : 0, "kept by its source");
    gst_buffer_unref (out[i]);
  }
  gst_buffer_unref (frame);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* New memory each time, memory that is small, and parts of memory. */
GST_START_TEST (other_memory_is_not_pinned)
{
  GpuDevice *device = test_device_new ();
  GstVideoInfo info;
  GstHarness *h = start_upload (device, &info, "RGBA");
  GstBuffer *whole, *out;

  for (guint32 i = 0; i < 10; i++) {
    out = push_and_pull (h, frame_new (&info, i));
    assert_frame (out, &info, i, "new");
    gst_buffer_unref (out);
  }
  whole = frame_new (&info, 5);
  for (guint i = 0; i < 10; i++) {
    GstBuffer *part = gst_buffer_new ();

    gst_buffer_append_memory (part, gst_memory_share (gst_buffer_peek_memory (whole, 0), 0, -1));
    out = push_and_pull (h, part);
    assert_frame (out, &info, 5, "shared");
    gst_buffer_unref (out);
  }
  gst_buffer_unref (whole);
  info_init (&info, "RGBA", 64, 48);
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 64, 48, FALSE));
  whole = frame_new (&info, 5);
  for (guint i = 0; i < 10; i++) {
    out = push_and_pull (h, gst_buffer_ref (whole));
    assert_frame (out, &info, 5, "small");
    gst_buffer_unref (out);
  }
  fail_unless_equals_uint64 (n_pins (device), 0);
  gst_buffer_unref (whole);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* Where there may be no more pinned memory it is staged; and pinned some time after there may be. */
GST_START_TEST (limit_of_pinned_memory)
{
  GpuDevice *device = test_device_new ();
  GstVideoInfo info;
  GstHarness *h = start_upload (device, &info, "RGBA");
  const guint64 old = gpu_cache_get_limit (device, GPU_ACCOUNT_HOST);
  GstBuffer *frame = frame_new (&info, 1), *out;

  fail_unless (gpu_cache_set_limit (device, GPU_ACCOUNT_HOST, (gint64)GST_VIDEO_INFO_SIZE (&info) / 2, NULL));
  for (guint i = 0; i < 30; i++) {
    out = push_and_pull (h, gst_buffer_ref (frame));
    assert_frame (out, &info, 1, "under a limit");
    gst_buffer_unref (out);
    if (i == 10) {
      fail_unless_equals_uint64 (n_pins (device), 0);
      fail_unless (gpu_cache_set_limit (device, GPU_ACCOUNT_HOST, (gint64)old, NULL));
    }
  }
  fail_unless_equals_uint64 (n_pins (device), may_pin (device));
  gst_buffer_unref (frame);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* To pin memory and to let go of it takes longer than some copies, and may wait for the device: no steady stream of
 * frames that each come a few times, as of a videorate that doubles frames, or to several elements, has it for each. */
GST_START_TEST (memory_that_soon_goes_is_not_pinned_for_ever)
{
  GpuDevice *device = test_device_new ();
  GstVideoInfo info;
  GstHarness *h = start_upload (device, &info, "RGBA");
  guint64 allocs = 0;
  GstBuffer *frame, *out;

  for (guint32 i = 0; i < 60; i++) {
    if (i == 40)
      allocs = gpu_device_calls (device, GPU_CALL_ALLOC);
    frame = frame_new (&info, i);
    for (guint k = 0; k < 5; k++) {
      out = push_and_pull (h, gst_buffer_ref (frame));
      assert_frame (out, &info, i, "soon gone");
      gst_buffer_unref (out);
    }
    for (guint k = 0; GST_MINI_OBJECT_REFCOUNT_VALUE (frame) > 1 && k < 10000; k++)
      test_give_time (device);
    gst_buffer_unref (frame);
  }
  fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_ALLOC), allocs);
  /* What comes on and on is pinned all the same. */
  frame = frame_new (&info, 1);
  for (guint k = 0; k < 100; k++) {
    out = push_and_pull (h, gst_buffer_ref (frame));
    gst_buffer_unref (out);
  }
  fail_unless_equals_uint64 (n_pins (device), may_pin (device));
  gst_buffer_unref (frame);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

typedef struct {
  GpuDevice *device;
  guint64 pins;
  void *data;
} Owner;

static void
on_free (gpointer data)
{
  Owner *owner = data;

  owner->pins = n_pins (owner->device);
  g_free (owner->data);
}

/* Before its owner may do with it what it likes. */
GST_START_TEST (memory_is_unpinned_before_it_is_freed)
{
  GpuDevice *device = test_device_new ();
  GstVideoInfo info;
  GstHarness *h = start_upload (device, &info, "RGBA");
  const gsize size = GST_VIDEO_INFO_SIZE (&info);
  Owner owner = {device, 99, g_malloc (size)};
  GstBuffer *frame = gst_buffer_new_wrapped_full (0, owner.data, size, 0, size, &owner, on_free), *out;

  fill_frame (frame, &info, 3);
  for (guint i = 0; i < 6; i++) {
    out = push_and_pull (h, gst_buffer_ref (frame));
    assert_frame (out, &info, 3, "wrapped");
    gst_buffer_unref (out);
  }
  fail_unless_equals_uint64 (n_pins (device), may_pin (device));
  gst_buffer_unref (frame);
  for (guint i = 0; owner.pins == 99 && i < 10000; i++)
    test_give_time (device);
  fail_unless_equals_uint64 (owner.pins, 0);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* The memory outlives the device, and another one pins it. A device that is lost is one that goes. */
GST_START_TEST (memory_outlives_the_device)
{
  GstVideoInfo info;
  GstBuffer *frame, *out;

  info_init (&info, "NV12", WIDTH * 2, HEIGHT);
  frame = frame_new (&info, 4);
  for (guint round = 0; round < 4; round++) {
    GpuDevice *device = test_device_new ();
    GstHarness *h = harness_new_on ("gpuupload", device);

    gst_harness_set_src_caps (h, frame_caps ("NV12", WIDTH * 2, HEIGHT, FALSE));
    for (guint i = 0; i < 5; i++) {
      out = push_and_pull (h, gst_buffer_ref (frame));
      assert_frame (out, &info, 4, "with another device");
      gst_buffer_unref (out);
    }
    fail_unless_equals_uint64 (n_pins (device), may_pin (device));
    if (round % 2) {
      gpu_device_fail (device, GPU_CALL_COPY, 0, 1);
      fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (frame)), GST_FLOW_ERROR);
    }
    gst_harness_teardown (h);
    gpu_device_unref (device);
  }
  /* One that has a name stays until it is opened again. */
  gpu_device_unref (test_device_new ());
  fail_unless_equals_int (GST_MINI_OBJECT_REFCOUNT_VALUE (frame), 1);
  gst_buffer_unref (frame);
}
GST_END_TEST

/* Two devices at once: one of them has it pinned. */
GST_START_TEST (two_devices_read_one_memory)
{
  GpuDevice *device = test_device_new (), *other = gpu_cpu_device_new ("cpu:7", GPU_CPU_THREADS, 0);
  GstVideoInfo info;
  GstHarness *h = start_upload (device, &info, "RGBA"), *g = start_upload (other, &info, "RGBA");
  GstBuffer *frame = frame_new (&info, 4), *out;

  for (guint i = 0; i < 10; i++) {
    out = push_and_pull (h, gst_buffer_ref (frame));
    assert_frame (out, &info, 4, "the one");
    gst_buffer_unref (out);
    out = push_and_pull (g, gst_buffer_ref (frame));
    assert_frame (out, &info, 4, "the other");
    gst_buffer_unref (out);
  }
  fail_unless_equals_uint64 (n_pins (device) + n_pins (other), may_pin (device));
  gst_harness_teardown (h);
  gst_harness_teardown (g);
  gpu_device_unref (device);
  gpu_device_unref (other);
  gst_buffer_unref (frame);
}
GST_END_TEST

/* A pool of a type of its own is one that downstream insists on. */
static GstBufferPool *
special_pool_new (void)
{
  static GType type = 0;

  if (!type)
    type = g_type_register_static_simple (GST_TYPE_VIDEO_BUFFER_POOL, "PlainPool", sizeof (GstVideoBufferPoolClass),
                                          NULL, sizeof (GstVideoBufferPool), NULL, (GTypeFlags)0);
  return gst_object_ref_sink (g_object_new (type, NULL));
}

static GstPadProbeReturn
offer_pool (GstPad *pad, GstPadProbeInfo *probe, gpointer pool)
{
  GstQuery *query = GST_PAD_PROBE_INFO_QUERY (probe);
  GstVideoInfo info;
  GstCaps *caps;

  if (GST_QUERY_TYPE (query) != GST_QUERY_ALLOCATION)
    return GST_PAD_PROBE_OK;
  gst_query_parse_allocation (query, &caps, NULL);
  if (gst_video_info_from_caps (&info, caps))
    gst_query_add_allocation_pool (query, pool, (guint)GST_VIDEO_INFO_SIZE (&info), 2, 2);
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  return GST_PAD_PROBE_HANDLED;
}

GST_START_TEST (downloads_into_a_pool_are_straight)
{
  for (guint k = 0; k < G_N_ELEMENTS (formats); k++) {
    GpuDevice *device = test_device_new ();
    GstHarness *up = harness_new_on ("gpuupload", device), *h = harness_new_on ("gpudownload", device);
    g_autoptr (GstBufferPool) pool = special_pool_new ();
    GstVideoInfo info;
    GstBuffer *in;
    guint64 waits;
    gboolean pins;

    gst_harness_set_src_caps (up, frame_caps (formats[k], WIDTH, HEIGHT, FALSE));
    info_init (&info, formats[k], WIDTH, HEIGHT);
    pins = may_pin (device) && GST_VIDEO_INFO_SIZE (&info) >= 256 * 1024;
    gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, offer_pool, pool, NULL);
    gst_harness_set_src_caps (h, frame_caps (formats[k], WIDTH, HEIGHT, TRUE));
    for (guint32 i = 0; i < 12; i++) {
      GstBuffer *out;

      in = push_and_pull (up, frame_new (&info, i));
      waits = test_stats (device, GPU_ACCOUNT_HOST).host_waits;
      out = push_and_pull (h, in);
      if (pins && i >= 2 * USES_BEFORE)
        fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_HOST).host_waits, waits + 1);
      fail_unless (out->pool == pool);
      fail_unless (gst_buffer_is_all_memory_writable (out));
      assert_frame (out, &info, i, formats[k]);
      gst_buffer_unref (out);
    }
    fail_unless_equals_uint64 (n_pins (device) > 0, pins);
    gst_harness_teardown (up);
    gst_harness_teardown (h);
    gst_buffer_pool_set_active (pool, FALSE);
    fail_unless_equals_uint64 (n_pins (device), 0);
    gpu_device_unref (device);
  }
}
GST_END_TEST

typedef struct {
  GpuDevice *device;
  GstBufferPool *pool;
  GstVideoInfo info;
} Shared;

static gpointer
upload_much (gpointer data)
{
  Shared *shared = data;
  GstVideoInfo info;
  GstHarness *h = start_upload (shared->device, &info, "RGBA");

  for (guint32 i = 0; i < 60; i++) {
    GstBuffer *in = NULL, *out;

    fail_unless_equals_int (gst_buffer_pool_acquire_buffer (shared->pool, &in, NULL), GST_FLOW_OK);
    fill_frame (in, &info, i);
    out = push_and_pull (h, in);
    if (i % 8 == 0)
      assert_frame (out, &info, i, "beside another");
    gst_buffer_unref (out);
  }
  gst_harness_teardown (h);
  return NULL;
}

/* From one pool, whose memory goes now to the one, now to the other. */
GST_START_TEST (two_threads_share_a_pool)
{
  Shared shared = {.device = test_device_new ()};
  GThread *threads[2] = {NULL};

  info_init (&shared.info, "RGBA", WIDTH, HEIGHT);
  shared.pool = plain_pool_new (&shared.info, N_POOL);
  /* On the lazy executor nothing comes back before somebody waits for it. */
  for (guint i = 0; i < G_N_ELEMENTS (threads) && !test_is_lazy (); i++)
    threads[i] = g_thread_new (NULL, upload_much, &shared);
  for (guint i = 0; i < G_N_ELEMENTS (threads) && !test_is_lazy (); i++)
    g_thread_join (threads[i]);
  plain_pool_free (shared.device, shared.pool, N_POOL);
  fail_unless_equals_uint64 (n_pins (shared.device), 0);
  gpu_device_unref (shared.device);
}
GST_END_TEST

static Suite *
transfer_plain_suite (void)
{
  Suite *s = suite_create ("frames in plain memory");
  TCase *tc = tcase_create ("general");

  register_elements ();
  suite_add_tcase (s, tc);
  tcase_add_test (tc, recurring_frames_are_uploaded_straight);
  tcase_add_test (tc, frame_is_held_until_it_has_been_read);
  tcase_add_test (tc, source_keeps_its_memory_and_writes_it_again);
  tcase_add_test (tc, other_memory_is_not_pinned);
  tcase_add_test (tc, limit_of_pinned_memory);
  tcase_add_test (tc, memory_that_soon_goes_is_not_pinned_for_ever);
  tcase_add_test (tc, memory_is_unpinned_before_it_is_freed);
  tcase_add_test (tc, memory_outlives_the_device);
  tcase_add_test (tc, two_devices_read_one_memory);
  tcase_add_test (tc, downloads_into_a_pool_are_straight);
  tcase_add_test (tc, two_threads_share_a_pool);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, transfer_plain_suite, "transfer-plain");
}
