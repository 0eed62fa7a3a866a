/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpubatch and GstGpuBatchMeta: every frame that goes in is in one batch, with what belongs to it, whatever its
 * neighbours do.
 */
#include "batch.h"

/* Nothing comes, for as long as something would if it came. */
static void
expect_nothing (Rig *rig)
{
  g_usleep (50000);
  fail_unless_equals_int (gst_harness_buffers_in_queue (rig->out), 0);
}

/* What a batch says of each frame, and that the frame itself is the one that came in. */
GST_START_TEST (test_meta)
{
  Rig rig;
  GstBuffer *frame, *batch, *copy;
  GstGpuBatchMeta *meta;
  GstTagList *tags = gst_tag_list_new (GST_TAG_TITLE, "door", NULL);
  GstVideoCropMeta *crop;

  rig_init (&rig, 3, "gpubatch");
  gst_harness_push_event (rig.in[1], gst_event_new_tag (tags));
  frame = make_frame (&rig, 1, 0);
  crop = gst_buffer_add_video_crop_meta (frame);
  crop->x = 4, crop->y = 2, crop->width = 20, crop->height = 10;
  GST_BUFFER_DTS (frame) = 7;
  feed (&rig, 2, 0);
  fail_unless_equals_int (gst_harness_push (rig.in[1], gst_buffer_ref (frame)), GST_FLOW_OK);
  expect_nothing (&rig);
  feed (&rig, 0, 0);
  batch = expect_batch (&rig, 0, 0, 1, 0, 2, 0, -1);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (batch), 0);
  fail_unless_equals_uint64 (GST_BUFFER_DURATION (batch), GST_SECOND / 25);

  meta = gst_buffer_get_gpu_batch_meta (batch);
  fail_unless (meta->frames[1].buffer == frame);
  for (guint i = 0; i < 3; i++) {
    const GstGpuBatchFrame *its = &meta->frames[i];
    GstCaps *caps = test_caps (GST_VIDEO_INFO_FORMAT (&rig.info[i]), (guint)rig.info[i].width, 16);

    fail_unless (gst_caps_is_equal (its->caps, caps));
    fail_unless (its->stream_id != NULL && !its->eos);
    fail_unless_equals_int (its->segment.format, GST_FORMAT_TIME);
    fail_unless_equals_int (its->crop.w, i == 1 ? 20 : rig.info[i].width);
    fail_unless_equals_int (its->crop.h, i == 1 ? 10 : 16);
    fail_unless_equals_int (its->crop.x, i == 1 ? 4 : 0);
    fail_unless_equals_uint64 (its->dts, i == 1 ? 7 : GST_CLOCK_TIME_NONE);
    fail_unless ((its->tags != NULL) == (i == 1));
    gst_caps_unref (caps);
  }
  fail_unless (gst_tag_list_is_equal (meta->frames[1].tags, tags));

  /* A copy has the same frames, and outlives it. */
  copy = gst_buffer_copy (batch);
  gst_buffer_unref (batch);
  meta = gst_buffer_get_gpu_batch_meta (copy);
  fail_unless_equals_int (meta->n_frames, 3);
  fail_unless (meta->frames[1].buffer == frame);
  fail_unless_equals_string (gst_structure_get_name (gst_caps_get_structure (meta->frames[2].caps, 0)), "video/x-raw");
  gst_buffer_unref (copy);
  ASSERT_MINI_OBJECT_REFCOUNT (frame, "frame", 1);
  gst_buffer_unref (frame);
  rig_clear (&rig);
}
GST_END_TEST

/* One pad's end is said with the frame that it is behind, or alone; the others go on. */
GST_START_TEST (test_early_end)
{
  Rig rig;

  rig_init (&rig, 3, "gpubatch");
  for (guint i = 0; i < 3; i++)
    feed (&rig, i, 0);
  gst_buffer_unref (expect_batch (&rig, 0, 0, 1, 0, 2, 0, -1));
  gst_harness_push_event (rig.in[1], gst_event_new_eos ());
  feed (&rig, 0, 1);
  feed (&rig, 2, 1);
  gst_buffer_unref (expect_batch (&rig, 0, 1, 1, -2, 2, 1, -1));
  feed (&rig, 0, 2);
  feed (&rig, 2, 2);
  gst_buffer_unref (expect_batch (&rig, 0, 2, 2, 2, -1));
  gst_harness_push_event (rig.in[0], gst_event_new_eos ());
  gst_harness_push_event (rig.in[2], gst_event_new_eos ());
  gst_buffer_unref (expect_batch (&rig, 0, -2, 2, -2, -1));
  for (GstEvent *event = NULL; !event || GST_EVENT_TYPE (event) != GST_EVENT_EOS;) {
    gst_clear_event (&event);
    event = gst_harness_pull_event (rig.out);
    fail_unless (event != NULL);
    if (GST_EVENT_TYPE (event) == GST_EVENT_EOS) {
      gst_event_unref (event);
      break;
    }
  }
  rig_clear (&rig);
}
GST_END_TEST

/* A gap stands for the frame that is not there: nobody waits for it. */
GST_START_TEST (test_gap)
{
  Rig rig;
  GstBuffer *batch;

  rig_init (&rig, 2, "gpubatch");
  feed (&rig, 0, 0);
  gst_harness_push_event (rig.in[1], gst_event_new_gap (0, GST_SECOND / 25));
  batch = expect_batch (&rig, 0, 0, 1, -3, -1);
  fail_unless_equals_uint64 (gst_buffer_get_gpu_batch_meta (batch)->frames[1].pts, 0);
  fail_unless_equals_uint64 (gst_buffer_get_gpu_batch_meta (batch)->frames[1].duration, GST_SECOND / 25);
  gst_buffer_unref (batch);
  feed (&rig, 1, 1);
  feed (&rig, 0, 1);
  gst_buffer_unref (expect_batch (&rig, 0, 1, 1, 1, -1));
  rig_clear (&rig);
}
GST_END_TEST

/* Without live sources a source that stalls holds all up, and nothing is lost. */
GST_START_TEST (test_stall)
{
  Rig rig;

  rig_init (&rig, 2, "gpubatch");
  feed (&rig, 0, 0);
  expect_nothing (&rig);
  feed (&rig, 1, 0);
  gst_buffer_unref (expect_batch (&rig, 0, 0, 1, 0, -1));
  feed (&rig, 1, 1);
  expect_nothing (&rig);
  feed (&rig, 0, 1);
  gst_buffer_unref (expect_batch (&rig, 0, 1, 1, 1, -1));
  rig_clear (&rig);
}
GST_END_TEST

/* With live ones the latency is what it waits; a frame that comes later is in a later batch. */
GST_START_TEST (test_live)
{
  Rig rig;
  gboolean live;
  GstClockTime min, max;
  GstQuery *query;

  rig_init (&rig, 3, "gpubatch force-live=true latency=20000000");
  gst_harness_play (rig.out);
  query = gst_query_new_latency ();
  fail_unless (gst_pad_peer_query (rig.out->sinkpad, query));
  gst_query_parse_latency (query, &live, &min, &max);
  fail_unless (live);
  fail_unless_equals_uint64 (min, 20 * GST_MSECOND);
  gst_query_unref (query);

  /* The earliest frame is the one that counts. */
  feed (&rig, 1, 1);
  feed (&rig, 0, 0);
  expect_nothing (&rig);
  fail_unless (gst_harness_crank_single_clock_wait (rig.out));
  fail_unless_equals_uint64 (gst_clock_get_time (GST_ELEMENT_CLOCK (rig.element)), 20 * GST_MSECOND);
  gst_buffer_unref (expect_batch (&rig, 0, 0, 1, 1, -1));

  /* All in time: at once. */
  feed (&rig, 1, 2);
  feed (&rig, 2, 0);
  feed (&rig, 0, 1);
  gst_buffer_unref (expect_batch (&rig, 0, 1, 1, 2, 2, 0, -1));

  /* One alone. */
  feed (&rig, 1, 3);
  expect_nothing (&rig);
  fail_unless (gst_harness_crank_single_clock_wait (rig.out));
  fail_unless_equals_uint64 (gst_clock_get_time (GST_ELEMENT_CLOCK (rig.element)), 140 * GST_MSECOND);
  gst_buffer_unref (expect_batch (&rig, 1, 3, -1));
  rig_clear (&rig);
}
GST_END_TEST

GST_START_TEST (test_max_batch_size)
{
  Rig rig;

  rig_init (&rig, 5, "gpubatch max-batch-size=2");
  for (guint number = 0; number < 3; number++) {
    for (guint i = 0; i < 5; i++)
      feed (&rig, i, number);
    gst_buffer_unref (expect_batch (&rig, 0, number, 1, number, -1));
    gst_buffer_unref (expect_batch (&rig, 2, number, 3, number, -1));
    gst_buffer_unref (expect_batch (&rig, 4, number, -1));
  }
  g_object_set (rig.element, "max-batch-size", 0, NULL);
  for (guint i = 0; i < 5; i++)
    feed (&rig, i, 3);
  gst_buffer_unref (expect_batch (&rig, 0, 3, 1, 3, 2, 3, 3, 3, 4, 3, -1));
  rig_clear (&rig);
}
GST_END_TEST

/* More than a GstBuffer has room for memories, in the order of the pads' numbers. */
GST_START_TEST (test_many)
{
  Rig rig;
  GstBuffer *batch;
  GstGpuBatchMeta *meta;

  rig_init (&rig, MAX_PADS, "gpubatch");
  for (guint i = MAX_PADS; i-- > 0;)
    feed (&rig, i, 0);
  batch = gst_harness_pull (rig.out);
  meta = gst_buffer_get_gpu_batch_meta (batch);
  fail_unless_equals_int (meta->n_frames, MAX_PADS);
  for (guint i = 0; i < MAX_PADS; i++) {
    fail_unless_equals_int (meta->frames[i].pad, i);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (meta->frames[i].buffer), 1000 * i);
  }
  gst_buffer_unref (batch);
  rig_clear (&rig);
}
GST_END_TEST

/* Another size in mid-stream: each frame has the caps that it came with. */
GST_START_TEST (test_size_changes)
{
  Rig rig;
  GstBuffer *batch;
  GstStructure *structure;
  gint width;

  rig_init (&rig, 2, "gpubatch");
  feed (&rig, 0, 0);
  test_video_info (&rig.info[0], GST_VIDEO_FORMAT_GRAY8, 100, 50);
  gst_harness_set_src_caps (rig.in[0], test_caps (GST_VIDEO_FORMAT_GRAY8, 100, 50));
  feed (&rig, 1, 0);
  for (guint number = 0; number < 2; number++) {
    if (number == 1) {
      feed (&rig, 0, 1);
      feed (&rig, 1, 1);
    }
    batch = expect_batch (&rig, 0, number, 1, number, -1);
    structure = gst_caps_get_structure (gst_buffer_get_gpu_batch_meta (batch)->frames[0].caps, 0);
    fail_unless (gst_structure_get_int (structure, "width", &width));
    fail_unless_equals_int (width, number ? 100 : 32);
    fail_unless_equals_int (gst_buffer_get_gpu_batch_meta (batch)->frames[0].crop.w, number ? 100 : 32);
    gst_buffer_unref (batch);
  }
  rig_clear (&rig);
}
GST_END_TEST

/* A flush and a new segment on one pad: what waited there is gone, the other pad does not notice. */
GST_START_TEST (test_flush)
{
  Rig rig;
  GstSegment segment;
  GstBuffer *batch;
  GstGpuBatchMeta *meta;

  rig_init (&rig, 2, "gpubatch");
  feed (&rig, 0, 0);
  feed (&rig, 1, 0);
  gst_buffer_unref (expect_batch (&rig, 0, 0, 1, 0, -1));
  feed (&rig, 0, 1);
  expect_nothing (&rig);
  gst_harness_push_event (rig.in[0], gst_event_new_flush_start ());
  gst_harness_push_event (rig.in[0], gst_event_new_flush_stop (TRUE));
  gst_segment_init (&segment, GST_FORMAT_TIME);
  segment.start = segment.time = segment.position = 10 * GST_SECOND;
  gst_harness_push_event (rig.in[0], gst_event_new_segment (&segment));
  feed (&rig, 1, 1);
  expect_nothing (&rig);
  feed (&rig, 0, 250);
  batch = expect_batch (&rig, 0, 250, 1, 1, -1);
  meta = gst_buffer_get_gpu_batch_meta (batch);
  fail_unless_equals_uint64 (meta->frames[0].segment.start, 10 * GST_SECOND);
  fail_unless_equals_uint64 (meta->frames[1].segment.start, 0);
  gst_buffer_unref (batch);
  rig_clear (&rig);
}
GST_END_TEST

/* Pads come and go while it plays. */
GST_START_TEST (test_pads_change)
{
  Rig rig;

  rig_init (&rig, 2, "gpubatch");
  feed (&rig, 0, 0);
  feed (&rig, 1, 0);
  gst_buffer_unref (expect_batch (&rig, 0, 0, 1, 0, -1));

  rig_add (&rig, 2, GST_VIDEO_FORMAT_RGB, 10, 10);
  feed (&rig, 0, 1);
  feed (&rig, 1, 1);
  expect_nothing (&rig);
  feed (&rig, 2, 1);
  gst_buffer_unref (expect_batch (&rig, 0, 1, 1, 1, 2, 1, -1));

  /* The one that the others wait for goes. */
  feed (&rig, 0, 2);
  feed (&rig, 2, 2);
  expect_nothing (&rig);
  gst_harness_teardown (g_steal_pointer (&rig.in[1]));
  gst_buffer_unref (expect_batch (&rig, 1, -4, 0, 2, 2, 2, -1));

  rig_add (&rig, 1, GST_VIDEO_FORMAT_RGB, 12, 12);
  feed (&rig, 2, 3);
  feed (&rig, 1, 3);
  feed (&rig, 0, 3);
  gst_buffer_unref (expect_batch (&rig, 0, 3, 1, 3, 2, 3, -1));
  rig_clear (&rig);
}
GST_END_TEST

static void
expect_error (Rig *rig, const gchar *text)
{
  GstBus *bus = gst_bus_new ();
  GstMessage *message;
  g_autoptr (GError) error = NULL;

  gst_element_set_bus (rig->element, bus);
  gst_harness_push (rig->in[0], make_frame (rig, 0, 0));
  message = gst_bus_timed_pop_filtered (bus, 10 * GST_SECOND, GST_MESSAGE_ERROR);
  fail_unless (message != NULL);
  gst_message_parse_error (message, &error, NULL);
  fail_unless (strstr (error->message, text) != NULL, "%s", error->message);
  gst_message_unref (message);
  gst_element_set_bus (rig->element, NULL);
  gst_object_unref (bus);
}

GST_START_TEST (test_errors)
{
  Rig rig;
  GstBuffer *system;

  rig_init (&rig, 2, "gpubatch");
  system = gst_buffer_new_allocate (NULL, rig.info[1].size, NULL);
  GST_BUFFER_PTS (system) = 0;
  gst_harness_push (rig.in[1], system);
  expect_error (&rig, "system memory on sink_1");
  rig_clear (&rig);

  if (gpu_device_is_host (rig.device = test_device_new ())) {
    GpuDevice *other = gpu_cpu_device_new ("cpu:9", GPU_CPU_THREADS, 0);
    GstAllocator *allocator = gst_gpu_allocator_new (other), *own;
    GpuDevice *device = rig.device;

    rig_init (&rig, 2, "gpubatch");
    own = rig.allocator;
    rig.allocator = allocator;
    gst_harness_push (rig.in[1], make_frame (&rig, 1, 0));
    rig.allocator = own;
    expect_error (&rig, "cpu:9");
    rig_clear (&rig);
    gst_object_unref (allocator);
    gpu_device_unref (other);
    rig.device = device;
  }
  gpu_device_unref (rig.device);
}
GST_END_TEST

/* Elements for single frames do not link behind a batch, nor batches to elements that take any raw video. */
GST_START_TEST (test_links)
{
  static const gchar *const others[] = {"gpudownload", "videoscale", "videoconvert"};
  GstElement *batch = gst_object_ref_sink (gst_element_factory_make ("gpubatch", NULL));
  GstElement *unbatch = gst_object_ref_sink (gst_element_factory_make ("gpuunbatch", NULL));

  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    GstElement *other = gst_element_factory_make (others[i], NULL);

    if (!other)
      continue;
    gst_object_ref_sink (other);
    fail_if (gst_element_link_pads (batch, "src", other, "sink"), "%s", others[i]);
    gst_object_unref (other);
  }
  fail_unless (gst_element_link_pads (batch, "src", unbatch, "sink"));
  gst_object_unref (batch);
  gst_object_unref (unbatch);
}
GST_END_TEST

static Suite *
batch_suite (void)
{
  Suite *suite = suite_create ("batch");
  TCase *tcase = tcase_create ("general");

  suite_add_tcase (suite, tcase);
  tcase_add_test (tcase, test_meta);
  tcase_add_test (tcase, test_early_end);
  tcase_add_test (tcase, test_gap);
  tcase_add_test (tcase, test_stall);
  tcase_add_test (tcase, test_live);
  tcase_add_test (tcase, test_max_batch_size);
  tcase_add_test (tcase, test_many);
  tcase_add_test (tcase, test_size_changes);
  tcase_add_test (tcase, test_flush);
  tcase_add_test (tcase, test_pads_change);
  tcase_add_test (tcase, test_errors);
  tcase_add_test (tcase, test_links);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, batch_suite, "batch");
}
