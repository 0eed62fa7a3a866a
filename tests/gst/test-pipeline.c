/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Elements together: whole pipelines, who shares what, and what a chain costs in steady state.
 */
#include "common.h"
#include "picture.h"
#include "play.h"

#include <sys/wait.h>
#include <unistd.h>

#define CHAIN                                                                                                          \
  "gpuflip name=flip video-direction=90r ! gpuresize name=resize ! video/x-raw(memory:GPUCache),width=40,height=56 ! " \
  "gpunormalize name=normalize scale=\"<0.5>\" shift=20"

static GpuDevice *
device_of (GstBuffer *buffer)
{
  return gpu_image_device (gst_gpu_memory_get_image (gst_buffer_peek_memory (buffer, 0)));
}

static GstBuffer *
upload_on (GpuDevice *device, const GstVideoInfo *info, guint32 seed)
{
  GstHarness *h = harness_new_on ("gpuupload", device);
  GstBuffer *result;

  gst_harness_set_src_caps (h, frame_caps (gst_video_format_to_string (GST_VIDEO_INFO_FORMAT (info)),
                                           GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info), FALSE));
  result = push_and_pull (h, frame_new (info, seed));
  fail_unless (device_of (result) == device);
  gst_harness_teardown (h);
  return result;
}

GST_START_TEST (formats_go_through_a_chain)
{
  for (guint i = 0; i < N_TEST_FORMATS; i++) {
    g_autofree char *launch =
        g_strdup_printf ("videotestsrc num-buffers=12 ! video/x-raw,format=%s,width=65,height=49 ! gpuupload ! " CHAIN
                         " ! gpudownload ! fakesink name=sink sync=false",
                         test_formats[i]);
    GstElement *pipeline = play (launch);
    g_autoptr (Picture) picture = last_picture (pipeline, "sink");

    fail_unless_equals_int (picture->plane[0].width, 40);
    fail_unless_equals_int (picture->plane[0].height, 56);
    stop (pipeline);
  }
}
GST_END_TEST

/* Nothing completes while the gate is closed, so whoever waits for the device, waits for ever. */
GST_START_TEST (steady_state_without_waits_or_allocations)
{
  GpuDevice *device = test_device_new ();
  /* A GPU's driver has room for some 57 launches of these behind a gate, and then waits. */
  guint frames = gpu_device_is_host (device) ? 60 : 14;
  GstHarness *h = gst_harness_new_parse (CHAIN);
  GstElement *flip = gst_bin_get_by_name (GST_BIN (h->element), "flip");
  GstElement *normalize = gst_bin_get_by_name (GST_BIN (h->element), "normalize");
  GstElement *resize = gst_bin_get_by_name (GST_BIN (h->element), "resize");
  GpuCacheStats before = {0}, after;
  GstVideoInfo info;
  GstBuffer *in;
  GpuStream *stream;
  GpuGate *gate;

  g_object_set (flip, "frames-in-flight", 1000, NULL);
  g_object_set (resize, "frames-in-flight", 1000, NULL);
  g_object_set (normalize, "frames-in-flight", 1000, NULL);
  info_init (&info, "NV12", 65, 49);
  in = upload_on (device, &info, 1);
  stream = gst_gpu_memory_get_stream (gst_buffer_peek_memory (in, 0));
  gst_harness_set_src_caps (h, frame_caps ("NV12", 65, 49, TRUE));

  /* Before the gate is closed each kernel has run: a driver may wait for the device before a kernel's first launch. */
  gst_buffer_unref (push_and_pull (h, gst_buffer_ref (in)));
  gate = gpu_gate_new (device, NULL);
  fail_unless (gpu_gate_hold (gate, stream, NULL));
  for (guint i = 0; i < frames; i++) {
    GstBuffer *out = push_and_pull (h, gst_buffer_ref (in));

    fail_unless (gst_gpu_memory_get_stream (gst_buffer_peek_memory (out, 0)) == stream);
    gst_buffer_unref (out);
    if (i == 9)
      before = test_stats (device, GPU_ACCOUNT_DEVICE);
  }
  after = test_stats (device, GPU_ACCOUNT_DEVICE);
  fail_unless_equals_uint64 (after.misses, before.misses);
  fail_unless_equals_uint64 (after.host_waits, before.host_waits);
  fail_unless_equals_uint64 (after.throttle_waits, before.throttle_waits);
  fail_unless (after.pending_hits - before.pending_hits >= 2 * (frames - 10), "%" G_GUINT64_FORMAT " pending hits",
               after.pending_hits - before.pending_hits);
  gpu_gate_open (gate);

  gst_buffer_unref (in);
  gst_harness_teardown (h);
  gst_object_unref (flip);
  gst_object_unref (resize);
  gst_object_unref (normalize);
  gpu_gate_free (gate);
  gpu_device_unref (device);
}
GST_END_TEST

/* From upload to download, too, the device is asked for no more memory than the frames in flight need: copies and
 * kernels have streams of their own, so how many that are at a time depends on who is faster. */
GST_START_TEST (steady_state_of_a_whole_chain)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload name=upload ! " CHAIN " ! gpudownload");
  GstElement *upload = gst_bin_get_by_name (GST_BIN (h->element), "upload");
  GstVideoInfo info;
  guint64 misses = 0;

  info_init (&info, "RGBA", 65, 49);
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 65, 49, FALSE));
  for (guint i = 0; i < 300; i++) {
    gst_buffer_unref (push_and_pull (h, frame_new (&info, i)));
    if (i == 0)
      misses = cache_stat (upload, "misses");
  }
  misses = cache_stat (upload, "misses") - misses;
  /* Eight in flight in each of four elements. */
  fail_unless (misses <= 4 * 8, "%" G_GUINT64_FORMAT " misses", misses);
  gst_object_unref (upload);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Rule 27. On the lazy executor nothing is complete until somebody waits for it. */
GST_START_TEST (frames_in_flight_are_bounded)
{
  static const guint depths[] = {1, 3, 100};

  for (guint i = 0; i < G_N_ELEMENTS (depths); i++) {
    GpuDevice *device = test_device_new ();
    GstHarness *h = gst_harness_new ("gpuflip");
    guint64 waits;
    GstVideoInfo info;
    GstBuffer *in;

    g_object_set (h->element, "video-direction", 2, "frames-in-flight", depths[i], NULL);
    info_init (&info, "NV12", 64, 48);
    in = upload_on (device, &info, 1);
    gst_harness_set_src_caps (h, frame_caps ("NV12", 64, 48, TRUE));
    waits = test_stats (device, GPU_ACCOUNT_DEVICE).throttle_waits;
    for (guint k = 0; k < 12; k++)
      gst_buffer_unref (push_and_pull (h, gst_buffer_ref (in)));
    waits = test_stats (device, GPU_ACCOUNT_DEVICE).throttle_waits - waits;
    fail_unless (waits <= (depths[i] < 12 ? 12 - depths[i] : 0));
    if (test_is_lazy ())
      fail_unless (waits > 0 || depths[i] > 12, "no waits with %u frames in flight", depths[i]);
    gst_buffer_unref (in);
    gst_harness_teardown (h);
    gpu_device_unref (device);
  }
}
GST_END_TEST

GST_START_TEST (streams_inherited_and_own)
{
  for (int own = 0; own < 2; own++) {
    GstElement *element = gst_element_factory_make ("gpuflip", NULL);
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstVideoInfo info;
    GstHarness *h;
    GstBuffer *in, *out;
    GpuStream *stream;

    g_object_set (element, "stream", own, "method", 2, NULL);
    h = gst_harness_new_with_element (element, "sink", "src");
    info_init (&info, "RGB", 33, 17);
    in = frame_upload (&info, frame_new (&info, 1), NULL);
    stream = gst_gpu_memory_get_stream (gst_buffer_peek_memory (in, 0));
    gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
    out = push_and_pull (h, gst_buffer_ref (in));
    fail_unless ((gst_gpu_memory_get_stream (gst_buffer_peek_memory (out, 0)) == stream) == !own);
    expected = picture_read (&info, in);
    got = picture_read (&info, out);
    for (int x = 0; x < 33; x++)
      fail_unless (!memcmp (plane_at (&expected->plane[0], x, 0), plane_at (&got->plane[0], 32 - x, 16), 3));
    gst_buffer_unref (in);
    gst_buffer_unref (out);
    gst_harness_teardown (h);
    gst_object_unref (element);
  }
}
GST_END_TEST

/* In place work of one branch is not seen by the other. */
GST_START_TEST (tee_to_two_branches)
{
  GstElement *plain = play ("videotestsrc num-buffers=30 pattern=ball ! video/x-raw,format=RGB,width=64,height=48 ! "
                            "fakesink name=sink sync=false");
  GstElement *pipeline = play (
      "videotestsrc num-buffers=30 pattern=ball ! video/x-raw,format=RGB,width=64,height=48 ! gpuupload ! tee name=t "
      "t. ! queue ! gpunormalize shift=60 ! gpudownload ! fakesink name=one sync=false "
      "t. ! queue ! gpudownload ! fakesink name=other sync=false "
      "t. ! queue ! gpuflip method=rotate-180 ! gpunormalize shift=60 ! gpuflip method=rotate-180 ! gpudownload ! "
      "fakesink name=third sync=false");
  g_autoptr (Picture) expected = last_picture (plain, "sink");
  g_autoptr (Picture) one = last_picture (pipeline, "one");
  g_autoptr (Picture) other = last_picture (pipeline, "other");
  g_autoptr (Picture) third = last_picture (pipeline, "third");

  assert_pictures_equal (expected, other, "the branch without work");
  assert_pictures_equal (one, third, "the branches with the same work");
  for (int y = 0; y < 48; y++)
    for (int x = 0; x < 64; x++) {
      guint8 *pixel = plane_at (&expected->plane[0], x, y);

      for (int k = 0; k < 3; k++)
        pixel[k] = (guint8)MIN (pixel[k] + 60, 255);
    }
  assert_pictures_equal (expected, one, "the branch in place");
  stop (plain);
  stop (pipeline);
}
GST_END_TEST

GST_START_TEST (flush_seek_and_eos)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline =
      gst_parse_launch ("videotestsrc num-buffers=200 ! video/x-raw,width=64,height=48 ! gpuupload ! "
                        "queue ! " CHAIN " ! queue ! gpudownload ! fakesink sync=false",
                        &error);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstMessage) message = NULL;

  g_assert_no_error (error);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  fail_unless_equals_int (gst_element_get_state (pipeline, NULL, NULL, 20 * GST_SECOND), GST_STATE_CHANGE_SUCCESS);
  for (guint i = 0; i < 10; i++) {
    fail_unless (
        gst_element_seek_simple (pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH, (gint64)i * 100 * GST_MSECOND));
    fail_unless_equals_int (gst_element_get_state (pipeline, NULL, NULL, 20 * GST_SECOND), GST_STATE_CHANGE_SUCCESS);
    gst_element_set_state (pipeline, i % 2 ? GST_STATE_PLAYING : GST_STATE_PAUSED);
  }
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  stop (pipeline);
}
GST_END_TEST

GST_START_TEST (flush_in_mid_stream_loses_nothing_after_it)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload ! " CHAIN " ! gpudownload");
  GstVideoInfo info;
  GstSegment segment;

  info_init (&info, "RGB", 65, 49);
  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 65, 49, FALSE));
  for (guint i = 0; i < 10; i++) {
    gst_buffer_unref (push_and_pull (h, frame_new (&info, i)));
    fail_unless (gst_harness_push_event (h, gst_event_new_flush_start ()));
    fail_unless (gst_harness_push_event (h, gst_event_new_flush_stop (TRUE)));
    fail_unless (gst_harness_push_event (h, gst_event_new_segment (&segment)));
  }
  gst_harness_teardown (h);
}
GST_END_TEST

/* Who else has a pool may stop it; the element goes on. */
GST_START_TEST (pool_that_somebody_stopped)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload ! gpuflip video-direction=horiz");
  GstVideoInfo info;
  GstBuffer *out;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, FALSE));
  out = push_and_pull (h, frame_new (&info, 1));
  for (guint i = 2; i < 4; i++) {
    g_autoptr (GstBufferPool) pool = gst_object_ref (out->pool);

    gst_buffer_unref (out);
    fail_unless (gst_buffer_pool_set_active (pool, FALSE));
    out = push_and_pull (h, frame_new (&info, i));
    fail_unless (out->pool == pool);
    fail_unless (gst_buffer_pool_is_active (pool));
  }
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST

/* G13: what is said of a frame goes through, whether or not it has more metas than a GstVideoMeta. */
GST_START_TEST (times_flags_and_metas_go_through)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload ! " CHAIN " ! gpudownload");
  g_autoptr (GstCaps) reference = gst_caps_new_empty_simple ("timestamp/x-test");
  GstVideoInfo info;

  info_init (&info, "RGB", 65, 49);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 65, 49, FALSE));
  for (guint i = 0; i < 4; i++) {
    const gboolean has_reference = i % 2;
    GstBuffer *frame = frame_new (&info, i), *out;
    GstReferenceTimestampMeta *meta;

    GST_BUFFER_PTS (frame) = i * GST_SECOND + 1;
    GST_BUFFER_DTS (frame) = i * GST_SECOND + 2;
    GST_BUFFER_DURATION (frame) = 3;
    GST_BUFFER_FLAG_SET (frame, GST_BUFFER_FLAG_MARKER | GST_BUFFER_FLAG_GAP);
    if (has_reference)
      gst_buffer_add_reference_timestamp_meta (frame, reference, 4, 5);
    out = push_and_pull (h, frame);
    fail_unless_equals_uint64 (GST_BUFFER_PTS (out), i * GST_SECOND + 1);
    fail_unless_equals_uint64 (GST_BUFFER_DTS (out), i * GST_SECOND + 2);
    fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), 3);
    fail_unless (GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_MARKER));
    /* What is made of a picture that says nothing is a picture. */
    fail_if (GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_GAP));
    fail_if (GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_TAG_MEMORY));
    meta = gst_buffer_get_reference_timestamp_meta (out, reference);
    fail_unless (has_reference == (meta != NULL));
    fail_unless (!meta || (meta->timestamp == 4 && meta->duration == 5));
    gst_buffer_unref (out);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

/* G8: one device is asked for, and the neighbours that leave it open share it. */
GST_START_TEST (neighbours_share_a_device)
{
  static const char *const launches[] = {
      "videotestsrc num-buffers=3 ! gpuupload device=cpu:3 ! gpuflip method=rotate-180 ! gpuresize ! "
      "video/x-raw(memory:GPUCache),width=50 ! fakesink name=sink sync=false",
      "videotestsrc num-buffers=3 ! gpuupload ! gpuflip method=rotate-180 ! gpuresize device=cpu:3 ! "
      "video/x-raw(memory:GPUCache),width=50 ! fakesink name=sink sync=false",
      "videotestsrc num-buffers=3 ! gpuupload device=cpu:2 ! gpuflip method=rotate-180 ! gpuupload device=cpu:3 ! "
      "gpuflip method=rotate-180 ! fakesink name=sink sync=false",
  };
  g_autofree char *environment = g_strdup (g_getenv ("GPUCACHE_DEVICE"));

  g_unsetenv ("GPUCACHE_DEVICE");
  for (guint i = 0; i < G_N_ELEMENTS (launches); i++) {
    GstElement *pipeline = play (launches[i]);
    g_autoptr (GstSample) sample = last_sample (pipeline, "sink");

    fail_unless_equals_string (gpu_device_name (device_of (gst_sample_get_buffer (sample))), "cpu:3");
    stop (pipeline);
  }
  if (environment)
    g_setenv ("GPUCACHE_DEVICE", environment, TRUE);
}
GST_END_TEST

GST_START_TEST (device_of_the_frames_is_adopted)
{
  GstHarness *h = gst_harness_new ("gpuflip");
  GstVideoInfo info;

  info_init (&info, "RGB", 33, 17);
  g_object_set (h->element, "method", 2, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  for (guint i = 0; i < 6; i++) {
    const char *name = i % 2 ? "cpu:0" : "cpu:1";
    GstBuffer *out = push_and_pull (h, frame_upload (&info, frame_new (&info, i), name));

    fail_unless_equals_string (gpu_device_name (device_of (out)), name);
    gst_buffer_unref (out);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (frame_of_another_device_is_refused)
{
  GstHarness *h = harness_new ("gpuflip", "cpu:1");
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;

  info_init (&info, "RGB", 33, 17);
  g_object_set (h->element, "method", 2, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  fail_unless_equals_int (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), "cpu:0")), GST_FLOW_ERROR);
  assert_message (bus, GST_MESSAGE_ERROR, "cpu:0", "cpu:1", "gpuupload", NULL);

  /* The next one of the right device is fine. */
  gst_buffer_unref (push_and_pull (h, frame_upload (&info, frame_new (&info, 1), "cpu:1")));
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (device_is_changed_in_ready)
{
  GstElement *pipeline = play ("videotestsrc num-buffers=2 ! gpuupload name=upload device=cpu:2 ! gpuflip method=2 ! "
                               "fakesink name=sink sync=false");
  g_autoptr (GstElement) upload = gst_bin_get_by_name (GST_BIN (pipeline), "upload");
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstSample) sample = NULL;

  gst_element_set_state (pipeline, GST_STATE_READY);
  g_object_set (upload, "device", "cpu:3", NULL);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  gst_message_unref (gst_bus_timed_pop_filtered (bus, 20 * GST_SECOND, GST_MESSAGE_EOS));
  sample = last_sample (pipeline, "sink");
  fail_unless_equals_string (gpu_device_name (device_of (gst_sample_get_buffer (sample))), "cpu:3");
  stop (pipeline);
}
GST_END_TEST

/* G10: the last release comes after the pipeline is gone. */
GST_START_TEST (frames_outlive_the_pipeline)
{
  GstElement *pipeline = play ("videotestsrc num-buffers=5 ! video/x-raw,format=RGB,width=64,height=48 ! gpuupload ! "
                               "gpuflip method=2 ! fakesink name=sink sync=false");
  g_autoptr (GstSample) sample = last_sample (pipeline, "sink");
  g_autoptr (Picture) before = last_picture (pipeline, "sink");
  g_autoptr (Picture) after = NULL;
  GstVideoInfo info;

  stop (pipeline);
  fail_unless (gst_video_info_from_caps (&info, gst_sample_get_caps (sample)));
  after = picture_read (&info, gst_sample_get_buffer (sample));
  assert_pictures_equal (before, after, "after the pipeline");
}
GST_END_TEST

GST_START_TEST (states_go_up_and_down)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (
      "videotestsrc ! video/x-raw,width=64,height=48 ! gpuupload ! " CHAIN " ! gpudownload ! fakesink", &error);

  g_assert_no_error (error);
  for (guint i = 0; i < 12; i++) {
    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    if (i % 4 == 3) {
      fail_unless_equals_int (gst_element_get_state (pipeline, NULL, NULL, 20 * GST_SECOND), GST_STATE_CHANGE_SUCCESS);
      gst_element_set_state (pipeline, GST_STATE_PAUSED);
      fail_unless_equals_int (gst_element_get_state (pipeline, NULL, NULL, 20 * GST_SECOND), GST_STATE_CHANGE_SUCCESS);
    } else {
      /* Sometimes before anything has come through. */
      if (i % 4 == 2)
        gst_element_get_state (pipeline, NULL, NULL, 20 * GST_SECOND);
      gst_element_set_state (pipeline, i % 4 == 1 ? GST_STATE_READY : GST_STATE_NULL);
    }
  }
  stop (pipeline);
}
GST_END_TEST

/* Runs @frames frames through a chain of its own, with threads of its own. At most nine of them are alive at a time:
 * two in each queue, and what elements read and write; six more are let go of while the device works on them. */
#define MOST_FRAMES 15

static void
run_once (guint frames)
{
  g_autofree gchar *line = g_strdup_printf (
      "videotestsrc num-buffers=%u ! video/x-raw,format=RGBA,width=64,height=48 ! gpuupload frames-in-flight=1 ! "
      "queue max-size-buffers=2 ! gpuflip method=2 frames-in-flight=1 ! gpunormalize shift=1 frames-in-flight=1 ! "
      "queue max-size-buffers=2 ! gpudownload ! fakesink",
      frames);
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (line, &error);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstMessage) message = NULL;

  g_assert_no_error (error);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 20 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  stop (pipeline);
}

/* Rule 15: the memory of a pipeline that stopped is neither stranded with its threads nor lost to the next one. */
GST_START_TEST (fifty_pipelines_need_what_one_needs)
{
  GpuDevice *device = test_device_new ();
  GpuCacheStats stats;

  gpu_cache_clear (device, GPU_CACHE_ALL, NULL);
  for (guint i = 0; i < 50; i++)
    run_once (20);
  stats = test_stats (device, GPU_ACCOUNT_DEVICE);
  fail_unless_equals_uint64 (stats.live, 0);
  fail_unless (stats.pending + stats.idle <= MOST_FRAMES, "%" G_GUINT64_FORMAT " entries", stats.pending + stats.idle);
  gpu_device_unref (device);
}
GST_END_TEST

/* A device once opened is of no use in a child, which is told so. */
GST_START_TEST (forked_child_is_refused)
{
  GstHarness *h = gst_harness_new ("gpuflip");
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;
  GstBuffer *in;
  int status = 0;
  pid_t child;

  g_object_set (h->element, "method", 2, NULL);
  info_init (&info, "RGB", 33, 17);
  in = frame_upload (&info, frame_new (&info, 1), NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  gst_buffer_unref (push_and_pull (h, gst_buffer_ref (in)));

  child = fork ();
  if (child == 0) {
    g_autoptr (GstMessage) message = NULL;
    g_autoptr (GError) error = NULL;

    if (gst_harness_push (h, in) != GST_FLOW_ERROR || !(message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR)))
      _exit (1);
    gst_message_parse_error (message, &error, NULL);
    _exit (strstr (error->message, "fork") ? 0 : 2);
  }
  fail_unless_equals_int (waitpid (child, &status, 0), child);
  fail_unless (WIFEXITED (status) && WEXITSTATUS (status) == 0, "status %d", status);

  /* The parent goes on. */
  gst_buffer_unref (push_and_pull (h, in));
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
pipeline_suite (void)
{
  Suite *s = suite_create ("pipelines");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, formats_go_through_a_chain);
  tcase_add_test (tc, steady_state_without_waits_or_allocations);
  tcase_add_test (tc, steady_state_of_a_whole_chain);
  tcase_add_test (tc, frames_in_flight_are_bounded);
  tcase_add_test (tc, streams_inherited_and_own);
  tcase_add_test (tc, tee_to_two_branches);
  tcase_add_test (tc, flush_seek_and_eos);
  tcase_add_test (tc, flush_in_mid_stream_loses_nothing_after_it);
  tcase_add_test (tc, pool_that_somebody_stopped);
  tcase_add_test (tc, times_flags_and_metas_go_through);
  tcase_add_test (tc, neighbours_share_a_device);
  tcase_add_test (tc, device_of_the_frames_is_adopted);
  tcase_add_test (tc, frame_of_another_device_is_refused);
  tcase_add_test (tc, device_is_changed_in_ready);
  tcase_add_test (tc, frames_outlive_the_pipeline);
  tcase_add_test (tc, states_go_up_and_down);
  tcase_add_test (tc, fifty_pipelines_need_what_one_needs);
  tcase_add_test (tc, forked_child_is_refused);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, pipeline_suite, __FILE__);
}
