/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Downloads that nobody waits for: what comes of frames whose consumer does not wait either, and who waits for what.
 */
#include "transfer.h"

GST_START_TEST (consumer_holds_twenty_frames)
{
  static const char *const formats[] = {"RGBA", "NV12", "RGB"};

  for (guint k = 0; k < G_N_ELEMENTS (formats); k++) {
    GstVideoInfo info;
    GstHarness *h = start_round_trip (&info, formats[k], 65, 49);
    GstBuffer *held[20];

    for (guint32 i = 0; i < 60; i++) {
      GstBuffer **slot = &held[i % G_N_ELEMENTS (held)];

      if (i >= G_N_ELEMENTS (held)) {
        assert_frame (*slot, &info, i - G_N_ELEMENTS (held), "held");
        gst_buffer_unref (*slot);
      }
      *slot = push_and_pull (h, frame_new (&info, i));
    }
    gst_harness_teardown (h);
    /* They outlive the elements. */
    for (guint32 i = 40; i < 60; i++) {
      assert_frame (held[i % G_N_ELEMENTS (held)], &info, i, "held when the elements were gone");
      gst_buffer_unref (held[i % G_N_ELEMENTS (held)]);
    }
  }
}
GST_END_TEST

/* Frames on a stream that is held: they are pushed all the same, and one that does not depend on it can be mapped. */
GST_START_TEST (download_waits_for_nothing_and_a_map_for_its_copy_alone)
{
  GpuDevice *device = test_device_new ();
  GstHarness *h = harness_new_on ("gpudownload", device);
  g_autoptr (GstAllocator) allocator = gst_gpu_allocator_new (device);
  GpuStream *held = test_stream_new (device);
  GstBuffer *in[6], *out[6];
  GpuCacheStats before, after;
  GstVideoInfo info;
  TestDelay delay;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  for (guint i = 0; i < G_N_ELEMENTS (in); i++) {
    GstMemory *memory = gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, FALSE,
                                                       GPU_MEMORY_STREAM_ORDERED, NULL, NULL);

    fail_unless (memory != NULL);
    in[i] = test_buffer_new (memory);
    fill_frame (in[i], &info, i);
  }
  /* Before the stream is held all memory is there: pinning waits for the device. */
  for (guint i = 0; i < G_N_ELEMENTS (in); i++) {
    fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (in[i])), GST_FLOW_OK);
    out[i] = gst_harness_pull (h);
  }
  for (guint i = 0; i < G_N_ELEMENTS (in); i++) {
    assert_frame (out[i], &info, i, "before");
    gst_buffer_unref (out[i]);
  }

  /* The last frame is written on the held stream. */
  test_delay_begin (&delay, held);
  fail_unless (gpu_image_fill (held, gst_gpu_memory_get_image (gst_buffer_peek_memory (in[5], 0)), 77, NULL));
  before = test_stats (device, GPU_ACCOUNT_HOST);
  for (guint i = 0; i < G_N_ELEMENTS (in); i++) {
    fail_unless_equals_int (gst_harness_push (h, in[i]), GST_FLOW_OK);
    out[i] = gst_harness_pull (h);
  }
  after = test_stats (device, GPU_ACCOUNT_HOST);
  fail_unless_equals_uint64 (after.host_waits, before.host_waits);
  fail_unless_equals_uint64 (after.throttle_waits, before.throttle_waits);
  for (guint i = 0; i < 5; i++)
    assert_frame (out[i], &info, i, "not on the held stream");

  test_delay_open_later (&delay);
  {
    GstMapInfo map;

    fail_unless (gst_buffer_map (out[5], &map, GST_MAP_READ));
    fail_unless (test_delay_is_open (&delay), "a map did not wait for its frame");
    fail_unless_equals_int (map.data[0], 77);
    gst_buffer_unmap (out[5], &map);
  }
  for (guint i = 0; i < G_N_ELEMENTS (out); i++)
    gst_buffer_unref (out[i]);
  test_delay_end (&delay);
  gst_harness_teardown (h);
  gpu_stream_unref (held);
  gpu_device_unref (device);
}
GST_END_TEST

/* Rule 27: on the lazy executor nothing is complete until somebody waits for it. */
GST_START_TEST (downloads_in_flight_are_bounded)
{
  GpuDevice *device = test_device_new ();
  GstHarness *up = harness_new_on ("gpuupload", device), *h = harness_new_on ("gpudownload", device);
  GstVideoInfo info;
  GstBuffer *in;
  guint64 waits;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (up, frame_caps ("RGB", 33, 17, FALSE));
  in = push_and_pull (up, frame_new (&info, 1));
  g_object_set (h->element, "frames-in-flight", 3, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  waits = test_stats (device, GPU_ACCOUNT_HOST).throttle_waits;
  for (guint i = 0; i < 20; i++) {
    fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (in)), GST_FLOW_OK);
    gst_buffer_unref (gst_harness_pull (h));
  }
  waits = test_stats (device, GPU_ACCOUNT_HOST).throttle_waits - waits;
  fail_unless (waits <= 17);
  if (test_is_lazy ())
    fail_unless (waits > 0, "twenty frames in flight");
  gst_buffer_unref (in);
  gst_harness_teardown (up);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* Every frame that was pushed comes out once and in order, whatever happens behind it. */
GST_START_TEST (flush_caps_and_eos_with_frames_in_flight)
{
  static const char *const formats[] = {"RGB", "NV12", "RGBA"};
  GstHarness *h = gst_harness_new_parse ("gpuupload ! gpuflip video-direction=identity ! gpudownload");
  GstBuffer *held[60];
  GstVideoInfo infos[60];
  GstSegment segment;
  guint n = 0;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  for (guint round = 0; round < 6; round++) {
    const char *format = formats[round % G_N_ELEMENTS (formats)];
    GstVideoInfo info;

    info_init (&info, format, 33 + (int)round, 17);
    gst_harness_set_src_caps (h, frame_caps (format, 33 + (int)round, 17, FALSE));
    for (guint i = 0; i < 10; i++) {
      GstBuffer *frame = frame_new (&info, n);

      GST_BUFFER_PTS (frame) = n * GST_SECOND;
      infos[n] = info;
      fail_unless_equals_int (gst_harness_push (h, frame), GST_FLOW_OK);
      held[n++] = gst_harness_pull (h);
    }
    if (round % 2) {
      fail_unless (gst_harness_push_event (h, gst_event_new_flush_start ()));
      fail_unless (gst_harness_push_event (h, gst_event_new_flush_stop (TRUE)));
      fail_unless (gst_harness_push_event (h, gst_event_new_segment (&segment)));
    }
  }
  fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
  fail_unless (gst_harness_try_pull (h) == NULL);
  for (guint i = 0; i < n; i++) {
    fail_unless_equals_uint64 (GST_BUFFER_PTS (held[i]), i * GST_SECOND);
    assert_frame (held[i], &infos[i], i, "in flight");
    gst_buffer_unref (held[i]);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

typedef struct {
  GstClockTime last;
  guint n, out_of_order;
} Seen;

static void
see (GstElement *sink, GstBuffer *buffer, GstPad *pad, Seen *seen)
{
  if (GST_CLOCK_TIME_IS_VALID (seen->last) && GST_BUFFER_PTS (buffer) <= seen->last)
    seen->out_of_order++;
  seen->last = GST_BUFFER_PTS (buffer);
  seen->n++;
}

static GstPadProbeReturn
forget_what_was_flushed (GstPad *pad, GstPadProbeInfo *probe, gpointer seen)
{
  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (probe)) == GST_EVENT_FLUSH_STOP)
    *(Seen *)seen = (Seen){GST_CLOCK_TIME_NONE, 0, 0};
  return GST_PAD_PROBE_OK;
}

/* After the last seek all frames come out, and none of those from before. */
GST_START_TEST (seek_with_frames_in_flight)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (
      "videotestsrc ! video/x-raw,format=NV12,width=66,height=50,framerate=25/1 ! gpuupload ! queue ! "
      "gpuflip video-direction=90r ! gpudownload ! queue ! videoconvert ! video/x-raw,format=RGB ! "
      "fakesink name=sink signal-handoffs=true sync=false",
      &error);
  g_autoptr (GstElement) sink = NULL;
  g_autoptr (GstPad) pad = NULL;
  g_autoptr (GstBus) bus = NULL;
  g_autoptr (GstMessage) message = NULL;
  Seen seen = {GST_CLOCK_TIME_NONE, 0, 0};

  g_assert_no_error (error);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  pad = gst_element_get_static_pad (sink, "sink");
  bus = gst_element_get_bus (pipeline);
  g_signal_connect (sink, "handoff", G_CALLBACK (see), &seen);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_FLUSH, forget_what_was_flushed, &seen, NULL);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  fail_unless_equals_int (gst_element_get_state (pipeline, NULL, NULL, 20 * GST_SECOND), GST_STATE_CHANGE_SUCCESS);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 6; i++) {
    g_usleep (1000 * i);
    fail_unless (gst_element_seek (pipeline, 1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE,
                                   GST_SEEK_TYPE_SET, 0, i < 5 ? GST_SEEK_TYPE_NONE : GST_SEEK_TYPE_SET,
                                   4 * GST_SECOND));
  }
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  fail_unless_equals_int (seen.n, 100);
  fail_unless_equals_int (seen.out_of_order, 0);
  gst_object_unref (pipeline);
}
GST_END_TEST

GST_START_TEST (every_frame_comes_out_once)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (
      "videotestsrc num-buffers=200 ! video/x-raw,format=RGB,width=66,height=50 ! gpuupload ! queue ! "
      "gpuflip video-direction=180 ! gpudownload ! queue ! videoconvert ! video/x-raw,format=I420 ! "
      "fakesink name=sink signal-handoffs=true sync=false",
      &error);
  g_autoptr (GstElement) sink = NULL;
  g_autoptr (GstBus) bus = NULL;
  g_autoptr (GstMessage) message = NULL;
  Seen seen = {GST_CLOCK_TIME_NONE, 0, 0};

  g_assert_no_error (error);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  bus = gst_element_get_bus (pipeline);
  g_signal_connect (sink, "handoff", G_CALLBACK (see), &seen);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  fail_unless_equals_int (seen.n, 200);
  fail_unless_equals_int (seen.out_of_order, 0);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}
GST_END_TEST

/* A consumer that writes into what it got, after an element that does not know us has copied it. */
GST_START_TEST (copies_of_downloaded_frames)
{
  GstVideoInfo info;
  GstHarness *h = start_round_trip (&info, "RGB", 33, 17);
  GstBuffer *out = push_and_pull (h, frame_new (&info, 5)), *copy, *part;
  GstMapInfo map;

  copy = gst_buffer_copy_deep (out);
  part = gst_buffer_copy_region (out, GST_BUFFER_COPY_MEMORY | GST_BUFFER_COPY_DEEP, 30, 60);
  fill_frame (copy, &info, 6);
  assert_frame (out, &info, 5, "the frame");
  assert_frame (copy, &info, 6, "its copy");
  fail_unless (gst_buffer_map (part, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, 60);
  {
    guint8 bytes[60];

    gst_buffer_extract (out, 30, bytes, sizeof bytes);
    fail_unless (memcmp (map.data, bytes, sizeof bytes) == 0);
  }
  gst_buffer_unmap (part, &map);
  gst_buffer_unref (part);
  gst_buffer_unref (copy);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
transfer_download_suite (void)
{
  Suite *s = suite_create ("downloads");
  TCase *tc = tcase_create ("general");

  register_elements ();
  suite_add_tcase (s, tc);
  tcase_add_test (tc, consumer_holds_twenty_frames);
  tcase_add_test (tc, download_waits_for_nothing_and_a_map_for_its_copy_alone);
  tcase_add_test (tc, downloads_in_flight_are_bounded);
  tcase_add_test (tc, flush_caps_and_eos_with_frames_in_flight);
  tcase_add_test (tc, seek_with_frames_in_flight);
  tcase_add_test (tc, every_frame_comes_out_once);
  tcase_add_test (tc, copies_of_downloaded_frames);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, transfer_download_suite, "transfer-download");
}
