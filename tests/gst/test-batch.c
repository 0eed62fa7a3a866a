/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpubatch, gpuunbatch and GstGpuBatchMeta: every frame that goes in comes out once, with what belongs to it, whatever
 * its neighbours do.
 */
#include "common.h"

#include <gst/check/gstharness.h>

#define MAX_PADS 64

/* A gpubatch whose pads are fed, and whose batches are pulled. */
typedef struct {
  GpuDevice *device;
  GstAllocator *allocator;
  GstElement *element;
  GstHarness *out;
  GstHarness *in[MAX_PADS];
  GstVideoInfo info[MAX_PADS];
} Rig;

static void
rig_add (Rig *rig, guint i, GstVideoFormat format, guint width, guint height)
{
  g_autofree gchar *name = g_strdup_printf ("sink_%u", i);

  rig->in[i] = gst_harness_new_with_element (rig->element, name, NULL);
  test_video_info (&rig->info[i], format, width, height);
  gst_harness_set_src_caps (rig->in[i], test_caps (format, width, height));
}

static void
rig_init (Rig *rig, guint n, const gchar *line)
{
  memset (rig, 0, sizeof *rig);
  rig->device = test_device_new ();
  rig->allocator = gst_gpu_allocator_new (rig->device);
  rig->element = gst_parse_launch (line, NULL);
  fail_unless (rig->element != NULL);
  gst_object_ref_sink (rig->element);
  rig->out = gst_harness_new_with_element (rig->element, NULL, "src");
  for (guint i = 0; i < n; i++)
    rig_add (rig, i, i % 2 ? GST_VIDEO_FORMAT_NV12 : GST_VIDEO_FORMAT_RGBA, 32 + 2 * i, 16);
}

static void
rig_clear (Rig *rig)
{
  for (guint i = 0; i < MAX_PADS; i++)
    if (rig->in[i])
      gst_harness_teardown (rig->in[i]);
  gst_harness_teardown (rig->out);
  gst_object_unref (rig->element);
  gst_object_unref (rig->allocator);
  gpu_device_unref (rig->device);
}

static GstBuffer *
make_frame (Rig *rig, guint i, guint number)
{
  g_autoptr (GError) error = NULL;
  GstMemory *memory = gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (rig->allocator), &rig->info[i], FALSE,
                                                     GPU_MEMORY_STREAM_ORDERED, NULL, &error);
  GstBuffer *buffer;

  g_assert_no_error (error);
  buffer = test_buffer_new (memory);
  GST_BUFFER_PTS (buffer) = number * GST_SECOND / 25;
  GST_BUFFER_DURATION (buffer) = GST_SECOND / 25;
  GST_BUFFER_OFFSET (buffer) = 1000 * i + number;
  return buffer;
}

static void
feed (Rig *rig, guint i, guint number)
{
  fail_unless_equals_int (gst_harness_push (rig->in[i], make_frame (rig, i, number)), GST_FLOW_OK);
}

/* The next batch must have these frames of these pads. -1 ends the list; a number of -2 is an end without a frame, one
 * of -3 a gap. */
static GstBuffer *
expect_batch (Rig *rig, ...)
{
  GstBuffer *batch = gst_harness_pull (rig->out);
  const GstGpuBatchMeta *meta;
  guint n = 0;
  va_list args;

  fail_unless (batch != NULL);
  fail_unless_equals_int (gst_buffer_n_memory (batch), 0);
  meta = gst_buffer_get_gpu_batch_meta (batch);
  fail_unless (meta != NULL);
  va_start (args, rig);
  for (gint pad = va_arg (args, gint); pad >= 0; pad = va_arg (args, gint), n++) {
    const gint number = va_arg (args, gint);
    const GstGpuBatchFrame *frame;

    fail_unless (n < meta->n_frames, "%u frames only", meta->n_frames);
    frame = &meta->frames[n];
    fail_unless_equals_int (frame->pad, pad);
    if (number == -2) {
      fail_unless (!frame->buffer && frame->eos);
      continue;
    }
    if (number == -3) {
      fail_unless (!frame->buffer && !frame->eos && !frame->caps);
      fail_unless (GST_CLOCK_TIME_IS_VALID (frame->pts) && GST_CLOCK_TIME_IS_VALID (frame->duration));
      continue;
    }
    fail_unless (frame->buffer != NULL);
    fail_unless_equals_uint64 (GST_BUFFER_OFFSET (frame->buffer), 1000 * (guint)pad + (guint)number);
    fail_unless_equals_uint64 (frame->pts, GST_BUFFER_PTS (frame->buffer));
    fail_unless_equals_uint64 (frame->pts, (guint)number * GST_SECOND / 25);
    fail_unless_equals_uint64 (frame->duration, GST_SECOND / 25);
  }
  va_end (args);
  fail_unless_equals_int (meta->n_frames, n);
  return batch;
}

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

/* And comes out again as one. */
static GstPadProbeReturn
count_gaps (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstClockTime time, duration;

  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (info)) == GST_EVENT_GAP) {
    gst_event_parse_gap (GST_PAD_PROBE_INFO_EVENT (info), &time, &duration);
    fail_unless_equals_uint64 (time, GST_SECOND / 25);
    fail_unless_equals_uint64 (duration, GST_SECOND / 25);
    g_atomic_int_inc ((gint *)data);
  }
  return GST_PAD_PROBE_OK;
}

static void
watch_gaps (GstElement *unbatch, GstPad *pad, gpointer data)
{
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);
  GstPad *end = gst_element_get_static_pad (sink, "sink");

  g_object_set (sink, "async", FALSE, NULL);
  gst_bin_add (GST_BIN (GST_OBJECT_PARENT (unbatch)), sink);
  gst_element_sync_state_with_parent (sink);
  fail_unless_equals_int (gst_pad_link (pad, end), GST_PAD_LINK_OK);
  gst_object_unref (end);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, count_gaps, data, NULL);
}

GST_START_TEST (test_gap_round_trip)
{
  GstElement *batch = gst_element_factory_make ("gpubatch", NULL);
  GstElement *unbatch = gst_element_factory_make ("gpuunbatch", NULL);
  GstHarness *in, *other;
  GstVideoInfo info;
  GpuDevice *device = test_device_new ();
  Rig rig = {.device = device, .allocator = gst_gpu_allocator_new (device)};
  GstElement *bin = gst_bin_new (NULL);
  gint gaps = 0;

  gst_object_ref_sink (bin);
  gst_bin_add_many (GST_BIN (bin), batch, unbatch, NULL);
  fail_unless (gst_element_link (batch, unbatch));
  g_signal_connect (unbatch, "pad-added", G_CALLBACK (watch_gaps), &gaps);
  test_video_info (&info, GST_VIDEO_FORMAT_GRAY8, 16, 16);
  rig.info[0] = rig.info[1] = info;
  in = gst_harness_new_with_element (batch, "sink_0", NULL);
  other = gst_harness_new_with_element (batch, "sink_1", NULL);
  gst_element_set_state (bin, GST_STATE_PLAYING);
  gst_harness_set_src_caps (in, test_caps (GST_VIDEO_FORMAT_GRAY8, 16, 16));
  gst_harness_set_src_caps (other, test_caps (GST_VIDEO_FORMAT_GRAY8, 16, 16));
  for (guint number = 0; number < 3; number++) {
    gst_harness_push (in, make_frame (&rig, 0, number));
    if (number == 1)
      gst_harness_push_event (other, gst_event_new_gap (GST_SECOND / 25, GST_SECOND / 25));
    else
      gst_harness_push (other, make_frame (&rig, 1, number));
  }
  for (guint i = 0; i < 100 && !g_atomic_int_get (&gaps); i++)
    g_usleep (10000);
  fail_unless_equals_int (g_atomic_int_get (&gaps), 1);
  gst_element_set_state (bin, GST_STATE_NULL);
  gst_harness_teardown (in);
  gst_harness_teardown (other);
  gst_object_unref (bin);
  gst_object_unref (rig.allocator);
  gpu_device_unref (device);
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
  gst_buffer_unref (expect_batch (&rig, 1, -2, 0, 2, 2, 2, -1));

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

/* Both elements together. */

typedef struct {
  GMutex lock;
  GArray *pts; /* of GstClockTime */
  GPtrArray *ids;
  GArray *widths;
  GstClockTime start;
  gboolean ended;
  gint n_titles;
} Sink;

typedef struct {
  GstElement *pipeline;
  Sink sinks[MAX_PADS];
} Trip;

static void
sink_init (Sink *sink)
{
  memset (sink, 0, sizeof *sink);
  g_mutex_init (&sink->lock);
  sink->pts = g_array_new (FALSE, FALSE, sizeof (GstClockTime));
  sink->ids = g_ptr_array_new_with_free_func (g_free);
  sink->widths = g_array_new (FALSE, FALSE, sizeof (gint));
}

static void
sink_clear (Sink *sink)
{
  g_array_unref (sink->pts);
  g_ptr_array_unref (sink->ids);
  g_array_unref (sink->widths);
  g_mutex_clear (&sink->lock);
}

static GstPadProbeReturn
probe (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Sink *sink = data;
  const gchar *id;
  GstCaps *caps;
  GstTagList *tags;
  const GstSegment *segment;
  gint width;

  g_mutex_lock (&sink->lock);
  if (info->type & GST_PAD_PROBE_TYPE_BUFFER) {
    fail_if (sink->ended);
    g_array_append_val (sink->pts, GST_BUFFER_PTS (GST_PAD_PROBE_INFO_BUFFER (info)));
  } else {
    GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info);

    switch (GST_EVENT_TYPE (event)) {
    case GST_EVENT_STREAM_START:
      gst_event_parse_stream_start (event, &id);
      g_ptr_array_add (sink->ids, g_strdup (id));
      break;
    case GST_EVENT_CAPS:
      gst_event_parse_caps (event, &caps);
      gst_structure_get_int (gst_caps_get_structure (caps, 0), "width", &width);
      g_array_append_val (sink->widths, width);
      break;
    case GST_EVENT_SEGMENT:
      gst_event_parse_segment (event, &segment);
      sink->start = segment->start;
      break;
    case GST_EVENT_TAG:
      gst_event_parse_tag (event, &tags);
      sink->n_titles += (gint)gst_tag_list_get_tag_size (tags, GST_TAG_TITLE);
      break;
    case GST_EVENT_EOS:
      sink->ended = TRUE;
      break;
    default:
      break;
    }
  }
  g_mutex_unlock (&sink->lock);
  return GST_PAD_PROBE_OK;
}

static void
pad_added (GstElement *unbatch, GstPad *pad, gpointer data)
{
  Trip *trip = data;
  GstElement *sink = gst_element_factory_make ("fakesink", NULL);
  GstElement *queue = gst_element_factory_make ("queue", NULL);
  const guint number = (guint)g_ascii_strtoull (GST_PAD_NAME (pad) + strlen ("src_"), NULL, 10);
  GstPad *queue_pad = gst_element_get_static_pad (queue, "sink");

  g_object_set (sink, "sync", FALSE, "async", FALSE, NULL);
  gst_bin_add_many (GST_BIN (trip->pipeline), queue, sink, NULL);
  gst_pad_add_probe (queue_pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, probe,
                     &trip->sinks[number], NULL);
  fail_unless (gst_element_link (queue, sink));
  fail_unless_equals_int (gst_pad_link (pad, queue_pad), GST_PAD_LINK_OK);
  gst_element_sync_state_with_parent (sink);
  gst_element_sync_state_with_parent (queue);
  gst_object_unref (queue_pad);
}

static void
trip_init (Trip *trip, const gchar *line)
{
  g_autoptr (GError) error = NULL;
  GstElement *unbatch;

  memset (trip, 0, sizeof *trip);
  for (guint i = 0; i < MAX_PADS; i++)
    sink_init (&trip->sinks[i]);
  trip->pipeline = gst_parse_launch (line, &error);
  g_assert_no_error (error);
  unbatch = gst_bin_get_by_name (GST_BIN (trip->pipeline), "unbatch");
  g_signal_connect (unbatch, "pad-added", G_CALLBACK (pad_added), trip);
  gst_object_unref (unbatch);
}

static void
trip_run (Trip *trip)
{
  GstBus *bus = gst_element_get_bus (trip->pipeline);
  GstMessage *message;

  gst_element_set_state (trip->pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message != NULL);
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    g_autoptr (GError) error = NULL;

    gst_message_parse_error (message, &error, NULL);
    fail ("%s", error->message);
  }
  gst_message_unref (message);
  gst_object_unref (bus);
}

static void
trip_clear (Trip *trip)
{
  gst_element_set_state (trip->pipeline, GST_STATE_NULL);
  gst_object_unref (trip->pipeline);
  for (guint i = 0; i < MAX_PADS; i++)
    sink_clear (&trip->sinks[i]);
}

/* Sixty-four cameras of several sizes, formats, rates and lengths: each frame once, in order, with its own time, and
 * each stream with its own events. */
GST_START_TEST (test_round_trip)
{
  g_autoptr (GString) line = g_string_new ("gpubatch name=batch ! gpuunbatch name=unbatch ");
  Trip trip;

  for (guint i = 0; i < MAX_PADS; i++)
    g_string_append_printf (line,
                            "videotestsrc num-buffers=%u pattern=%u ! "
                            "video/x-raw,format=%s,width=%u,height=24,framerate=%u/1 ! "
                            "taginject tags=\"title=%u\" ! gpuupload ! batch.sink_%u ",
                            3 + i % 5, i % 20, i % 2 ? "NV12" : "RGBA", 16 + 2 * i, 10 + 5 * (i % 3), i, i);
  trip_init (&trip, line->str);
  trip_run (&trip);
  for (guint i = 0; i < MAX_PADS; i++) {
    Sink *sink = &trip.sinks[i];

    fail_unless_equals_int (sink->pts->len, 3 + i % 5);
    for (guint n = 0; n < sink->pts->len; n++)
      fail_unless_equals_uint64 (g_array_index (sink->pts, GstClockTime, n),
                                 gst_util_uint64_scale (n, GST_SECOND, 10 + 5 * (i % 3)));
    fail_unless_equals_int (sink->ids->len, 1);
    fail_unless_equals_int (sink->widths->len, 1);
    fail_unless_equals_int (g_array_index (sink->widths, gint, 0), 16 + 2 * (gint)i);
    fail_unless_equals_int (sink->n_titles, 1);
    fail_unless (sink->ended);
  }
  for (guint i = 1; i < MAX_PADS; i++)
    fail_if (g_str_equal (trip.sinks[0].ids->pdata[0], trip.sinks[i].ids->pdata[0]));
  trip_clear (&trip);
}
GST_END_TEST

static GstFlowReturn
sink_chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  gst_buffer_unref (buffer);
  return GST_FLOW_OK;
}

static void
link_pad (GstElement *unbatch, GstPad *pad, gpointer sink)
{
  static GstStaticPadTemplate any = GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS_ANY);
  GstPad *peer = gst_pad_new_from_static_template (&any, "sink");

  gst_pad_set_chain_function (peer, sink_chain);
  gst_pad_set_active (peer, TRUE);
  gst_pad_add_probe (peer, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, probe, sink, NULL);
  fail_unless_equals_int (gst_pad_link (pad, peer), GST_PAD_LINK_OK);
  g_object_set_data_full (G_OBJECT (unbatch), "peer", peer, gst_object_unref);
}

/* A batch that says that one stream is at another place, of another size, and at its end; then that it begins anew. */
GST_START_TEST (test_unbatch)
{
  GstHarness *harness = gst_harness_new_with_element (gst_element_factory_make ("gpuunbatch", NULL), "sink", NULL);
  static const guint widths[] = {32, 32, 48, 48, 48};
  Sink sink;

  sink_init (&sink);
  g_signal_connect (harness->element, "pad-added", G_CALLBACK (link_pad), &sink);
  gst_harness_set_src_caps_str (harness, GST_GPU_BATCH_NAME "(memory:GPUCache)");
  for (guint n = 0; n < 5; n++) {
    GstBuffer *batch = gst_buffer_new ();
    GstGpuBatchFrame *frame = gst_buffer_add_gpu_batch_meta (batch, 1)->frames;

    frame->pad = 3;
    frame->stream_id = g_strdup (n < 4 ? "camera" : "another");
    frame->eos = n == 3;
    frame->segment.start = n < 2 ? 0 : GST_SECOND;
    if (n != 3) {
      frame->caps = test_caps (GST_VIDEO_FORMAT_RGBA, widths[n], 16);
      frame->buffer = gst_buffer_new ();
      GST_BUFFER_PTS (frame->buffer) = n * GST_SECOND;
    }
    sink.ended &= n < 4;
    fail_unless_equals_int (gst_harness_push (harness, batch), GST_FLOW_OK);
    fail_unless_equals_int (sink.pts->len, n < 3 ? n + 1 : n);
    fail_unless_equals_int (sink.widths->len, n < 2 ? 1 : n < 4 ? 2 : 3);
    fail_unless_equals_int (sink.ids->len, n < 4 ? 1 : 2);
    fail_unless_equals_uint64 (sink.start, n < 2 ? 0 : GST_SECOND);
    fail_unless_equals_int (sink.ended, n == 3);
  }
  fail_unless_equals_string (sink.ids->pdata[0], "camera");
  fail_unless_equals_string (sink.ids->pdata[1], "another");
  fail_unless_equals_int (harness->element->numsrcpads, 1);
  gst_harness_teardown (harness);
  sink_clear (&sink);
}
GST_END_TEST

/* Results. */

/* A seek of the whole pipeline: each stream goes on at the new place, with its own segment, once. */
GST_START_TEST (test_seek)
{
  Trip trip;
  GstBus *bus;
  GstMessage *message;

  trip_init (&trip, "gpubatch name=batch ! gpuflip video-direction=180 ! gpuunbatch name=unbatch "
                    "videotestsrc num-buffers=100 ! video/x-raw,width=32,height=16,framerate=25/1 ! gpuupload ! "
                    "queue ! batch.sink_0 "
                    "videotestsrc num-buffers=100 ! video/x-raw,width=48,height=16,framerate=25/1 ! gpuupload ! "
                    "queue ! batch.sink_1");
  gst_element_set_state (trip.pipeline, GST_STATE_PAUSED);
  bus = gst_element_get_bus (trip.pipeline);
  for (guint i = 0; i < 500; i++) {
    guint n = 0;

    for (guint k = 0; k < 2; k++) {
      g_mutex_lock (&trip.sinks[k].lock);
      n += trip.sinks[k].pts->len > 0;
      g_mutex_unlock (&trip.sinks[k].lock);
    }
    if (n == 2)
      break;
    g_usleep (10000);
  }
  fail_unless (gst_element_seek_simple (trip.pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE,
                                        2 * GST_SECOND));
  gst_element_set_state (trip.pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  gst_message_unref (message);
  gst_object_unref (bus);
  for (guint i = 0; i < 2; i++) {
    Sink *sink = &trip.sinks[i];
    guint begin = 0;

    fail_unless_equals_uint64 (sink->start, 2 * GST_SECOND);
    while (begin < sink->pts->len && g_array_index (sink->pts, GstClockTime, begin) != 2 * GST_SECOND)
      begin++;
    fail_unless (begin < sink->pts->len, "no frame of 2 s on stream %u", i);
    for (guint n = begin; n < sink->pts->len; n++)
      fail_unless_equals_uint64 (g_array_index (sink->pts, GstClockTime, n),
                                 2 * GST_SECOND + (n - begin) * GST_SECOND / 25);
    fail_unless (sink->ended);
  }
  trip_clear (&trip);
}
GST_END_TEST

/* A checksum of each frame of each stream, in order. */
static void
take_frame (GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data)
{
  GPtrArray *sums = data;
  g_autofree gchar *sum = NULL;
  GstMapInfo map;

  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  sum = g_compute_checksum_for_data (G_CHECKSUM_SHA1, map.data, map.size);
  g_ptr_array_add (sums, g_strdup_printf ("%" GST_TIME_FORMAT " %s", GST_TIME_ARGS (GST_BUFFER_PTS (buffer)), sum));
  gst_buffer_unmap (buffer, &map);
}

#define STREAMS 4

/* Odd corners, so that chroma is sited between what the frames have. */
static GstPadProbeReturn
crop_frame (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *buffer = gst_buffer_make_writable (GST_PAD_PROBE_INFO_BUFFER (info));
  GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta (buffer);

  info->data = buffer;
  crop->x = 3, crop->y = 5, crop->width = 21, crop->height = 13;
  return GST_PAD_PROBE_OK;
}

/* Whether frames have a crop rectangle behind gpuupload. */
static gboolean cropped;

static void
crop_stream (GstElement *pipeline, guint i)
{
  g_autofree gchar *name = g_strdup_printf ("up%u", i);
  GstElement *upload = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstPad *pad = gst_element_get_static_pad (upload, "src");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, crop_frame, NULL, NULL);
  gst_object_unref (pad);
  gst_object_unref (upload);
}

static void
run_streams (const gchar *line, GPtrArray *sums[STREAMS])
{
  Trip trip = {0};
  g_autoptr (GError) error = NULL;

  trip.pipeline = gst_parse_launch (line, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < STREAMS; i++) {
    g_autofree gchar *name = g_strdup_printf ("out%u", i);
    GstElement *sink = gst_bin_get_by_name (GST_BIN (trip.pipeline), name);

    sums[i] = g_ptr_array_new_with_free_func (g_free);
    g_object_set (sink, "signal-handoffs", TRUE, NULL);
    g_signal_connect (sink, "handoff", G_CALLBACK (take_frame), sums[i]);
    gst_object_unref (sink);
    if (cropped)
      crop_stream (trip.pipeline, i);
  }
  trip_run (&trip);
  gst_element_set_state (trip.pipeline, GST_STATE_NULL);
  gst_object_unref (trip.pipeline);
}

/* Four cameras of different sizes and formats, one of which ends early. No size, turned or not, has rows with padding,
 * in which anything may be. */
static const gchar *const sources[STREAMS] = {
    "videotestsrc num-buffers=5 pattern=ball ! video/x-raw,format=RGBA,width=320,height=240",
    "videotestsrc num-buffers=5 pattern=smpte ! video/x-raw,format=NV12,width=100,height=60",
    "videotestsrc num-buffers=3 pattern=gradient ! video/x-raw,format=RGB,width=64,height=480",
    "videotestsrc num-buffers=5 pattern=spokes ! video/x-raw,format=GRAY8,width=36,height=24",
};

/* @one: the elements for a frame; @all: the same for a batch. */
static void
compare_chains (const gchar *one, const gchar *all)
{
  g_autoptr (GString) alone = g_string_new (NULL), together = g_string_new (NULL);
  GPtrArray *expected[STREAMS], *sums[STREAMS];

  g_string_append_printf (together, "gpubatch name=batch ! %s ! gpuunbatch name=unbatch ", all);
  for (guint i = 0; i < STREAMS; i++) {
    g_string_append_printf (alone, "%s ! gpuupload name=up%u ! %s ! gpudownload ! fakesink name=out%u ", sources[i], i,
                            one, i);
    g_string_append_printf (together,
                            "%s ! gpuupload name=up%u ! batch.sink_%u "
                            "unbatch.src_%u ! queue ! gpudownload ! fakesink name=out%u async=false ",
                            sources[i], i, i, i, i);
  }
  run_streams (alone->str, expected);
  run_streams (together->str, sums);
  for (guint i = 0; i < STREAMS; i++) {
    fail_unless_equals_int (expected[i]->len, i == 2 ? 3 : 5);
    fail_unless_equals_int (sums[i]->len, expected[i]->len);
    for (guint n = 0; n < sums[i]->len; n++)
      fail_unless (g_str_equal (sums[i]->pdata[n], expected[i]->pdata[n]), "%s: frame %u of stream %u: %s, not %s", all,
                   n, i, (gchar *)sums[i]->pdata[n], (gchar *)expected[i]->pdata[n]);
    g_ptr_array_unref (sums[i]);
    g_ptr_array_unref (expected[i]);
  }
}

GST_START_TEST (test_same_results)
{
  compare_chains ("gpuflip video-direction=90r", "gpuflip video-direction=90r");
  compare_chains ("gpunormalize scale=\"<0.5>\" shift=20", "gpunormalize scale=\"<0.5>\" shift=20");
  compare_chains ("gpuresize ! video/x-raw(memory:GPUCache),width=96,height=64,pixel-aspect-ratio=1/1",
                  "gpuresize ! video/x-gpu-batch(memory:GPUCache),width=96,height=64,pixel-aspect-ratio=1/1");
  compare_chains ("gpuresize ! video/x-raw(memory:GPUCache),width=96,height=64",
                  "gpuresize ! video/x-gpu-batch(memory:GPUCache),width=96,height=64");
  compare_chains ("gpuflip video-direction=horiz ! gpuresize method=nearest-neighbour ! "
                  "video/x-raw(memory:GPUCache),width=52,height=72 ! gpunormalize base=\"<7>\" ! gpuflip "
                  "video-direction=180",
                  "gpuflip video-direction=horiz ! gpuresize method=nearest-neighbour ! "
                  "video/x-gpu-batch(memory:GPUCache),width=52,height=72 ! gpunormalize base=\"<7>\" ! gpuflip "
                  "video-direction=180");
  compare_chains ("gpuconvert ! video/x-raw(memory:GPUCache),format=RGBA",
                  "gpuconvert ! video/x-gpu-batch(memory:GPUCache),format=RGBA");
  compare_chains ("gpuconvert ! video/x-raw(memory:GPUCache),format=GRAY8",
                  "gpuconvert ! video/x-gpu-batch(memory:GPUCache),format=GRAY8");
  compare_chains ("gpuconvert ! video/x-raw(memory:GPUCache),format=RGBA,colorimetry=1:1:0:0",
                  "gpuconvert ! video/x-gpu-batch(memory:GPUCache),format=RGBA,colorimetry=(string)1:1:0:0");
  /* Above 576 rows the default is another matrix: colours stay those of the frame that came in. */
  compare_chains ("gpuresize ! video/x-raw(memory:GPUCache),width=64,height=600 ! gpuconvert ! "
                  "video/x-raw(memory:GPUCache),format=RGBA",
                  "gpuresize ! video/x-gpu-batch(memory:GPUCache),width=64,height=600 ! gpuconvert ! "
                  "video/x-gpu-batch(memory:GPUCache),format=RGBA");
  /* Nothing is asked for: frames stay what they are. */
  compare_chains ("identity", "gpuresize ! gpuflip ! gpuconvert");
}
GST_END_TEST

GST_START_TEST (test_same_results_cropped)
{
  cropped = TRUE;
  compare_chains ("gpuresize ! video/x-raw(memory:GPUCache),width=96,height=64",
                  "gpuresize ! video/x-gpu-batch(memory:GPUCache),width=96,height=64");
  compare_chains ("gpuresize method=nearest-neighbour ! video/x-raw(memory:GPUCache),width=52,height=72",
                  "gpuresize method=nearest-neighbour ! video/x-gpu-batch(memory:GPUCache),width=52,height=72");
  cropped = FALSE;
}
GST_END_TEST

/* A size that nobody makes is refused, with a sentence. */
GST_START_TEST (test_refusals)
{
  static const gchar *const lines[] = {
      "videotestsrc num-buffers=3 ! gpuupload ! gpubatch ! video/x-gpu-batch(memory:GPUCache),width=7 ! fakesink",
      "videotestsrc num-buffers=3 ! gpuupload ! gpubatch ! gpuflip ! "
      "video/x-gpu-batch(memory:GPUCache),width=7 ! fakesink",
      "videotestsrc num-buffers=3 ! video/x-raw,format=P010_10LE ! gpuupload ! gpubatch ! gpunormalize "
      "scale=\"<0.5>\" ! fakesink",
  };

  for (guint i = 0; i < G_N_ELEMENTS (lines); i++) {
    GstElement *pipeline = gst_parse_launch (lines[i], NULL);
    GstBus *bus = gst_element_get_bus (pipeline);
    GstMessage *message;

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    gst_element_set_state (pipeline, GST_STATE_NULL);
    gst_object_unref (pipeline);
    gst_object_unref (bus);
    fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR, "%s", lines[i]);
    gst_message_unref (message);
  }
}
GST_END_TEST

/* Once it runs, no memory is asked for any more. */
GST_START_TEST (test_steady)
{
  Trip trip = {0};
  GpuDevice *device = gpu_device_open (NULL, NULL);
  const guint64 before = test_stats (device, GPU_ACCOUNT_DEVICE).misses;
  guint64 misses;

  trip.pipeline = gst_parse_launch ("gpubatch name=batch ! gpuresize frames-in-flight=2 ! "
                                    "video/x-gpu-batch(memory:GPUCache),width=64,height=64 ! gpunormalize "
                                    "scale=\"<0.5>\" frames-in-flight=2 ! fakesink "
                                    "videotestsrc num-buffers=300 ! gpuupload frames-in-flight=2 ! batch. "
                                    "videotestsrc num-buffers=300 ! video/x-raw,width=99 ! gpuupload "
                                    "frames-in-flight=2 ! batch. "
                                    "videotestsrc num-buffers=300 ! video/x-raw,width=77 ! gpuupload "
                                    "frames-in-flight=2 ! batch. ",
                                    NULL);
  trip_run (&trip);
  gst_element_set_state (trip.pipeline, GST_STATE_NULL);
  gst_object_unref (trip.pipeline);
  misses = test_stats (device, GPU_ACCOUNT_DEVICE).misses - before;
  gpu_device_unref (device);
  fail_unless (misses < 100, "%" G_GUINT64_FORMAT " allocations", misses);
}
GST_END_TEST

/* A batch as a model's input: N x 3 x H x W, with zeros where a stream has ended. */
typedef struct {
  guint n;
  GByteArray *last;
  guint n_frames;
  GstCaps *caps;
} Input;

static void
take_tensor (GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data)
{
  Input *input = data;
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);
  GstMapInfo map;

  fail_unless_equals_int (gst_buffer_n_memory (buffer), 1);
  input->n++;
  for (guint i = 0; i < meta->n_frames; i++)
    fail_unless (!meta->frames[i].buffer && GST_CLOCK_TIME_IS_VALID (meta->frames[i].pts));
  /* What is left when all have ended but for saying so. */
  if (meta->n_frames == 0)
    return;
  input->n_frames = meta->n_frames;
  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  g_byte_array_set_size (input->last, 0);
  g_byte_array_append (input->last, map.data, (guint)map.size);
  gst_buffer_unmap (buffer, &map);
  gst_clear_caps (&input->caps);
  input->caps = gst_pad_get_current_caps (pad);
}

static void
check_tensor (const gchar *behind)
{
  Trip trip = {0};
  Input input = {.last = g_byte_array_new ()};
  GstElement *sink;
  GstStructure *structure;
  g_autofree gchar *line = NULL;
  const gfloat *values;

  /* White, black, and red, which ends first. */
  line = g_strdup_printf (
      "gpubatch name=batch ! gpuresize ! video/x-gpu-batch(memory:GPUCache),width=8,height=6 ! "
      "gpunormalize scale=\"<0.00392156862745098>\" ! "
      "other/tensors(memory:GPUCache),types=float32 %s ! fakesink name=sink signal-handoffs=true "
      "videotestsrc num-buffers=4 pattern=white ! video/x-raw,format=RGB,width=64,height=48 ! gpuupload ! batch.sink_0 "
      "videotestsrc num-buffers=4 pattern=black ! video/x-raw,format=RGBA,width=32,height=10 ! gpuupload ! "
      "batch.sink_1 "
      "videotestsrc num-buffers=2 pattern=red ! video/x-raw,format=BGR,width=10,height=70 ! gpuupload ! batch.sink_2 ",
      behind);
  trip.pipeline = gst_parse_launch (line, NULL);
  sink = gst_bin_get_by_name (GST_BIN (trip.pipeline), "sink");
  g_signal_connect (sink, "handoff", G_CALLBACK (take_tensor), &input);
  trip_run (&trip);
  gst_element_set_state (trip.pipeline, GST_STATE_NULL);
  gst_object_unref (sink);
  gst_object_unref (trip.pipeline);

  fail_unless (input.n >= 4);
  structure = gst_caps_get_structure (input.caps, 0);
  fail_unless_equals_string (gst_structure_get_string (structure, "dimensions"), "8:6:3:3");
  fail_unless_equals_string (gst_structure_get_string (structure, "types"), "float32");
  fail_unless_equals_int (input.last->len, 3 * 3 * 6 * 8 * 4);
  fail_unless_equals_int (input.n_frames, 2);
  values = (const gfloat *)(gconstpointer)input.last->data;
  for (guint i = 0; i < 3 * 3 * 48; i++)
    fail_unless (values[i] == (i < 3 * 48 ? 1.0f : 0.0f), "%u: %g", i, (gdouble)values[i]);
  g_byte_array_unref (input.last);
  gst_clear_caps (&input.caps);
}

GST_START_TEST (test_tensor)
{
  check_tensor ("");
  /* In system memory, as most models take it. */
  check_tensor ("! gpudownload");
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
  tcase_add_test (tcase, test_gap_round_trip);
  tcase_add_test (tcase, test_stall);
  tcase_add_test (tcase, test_live);
  tcase_add_test (tcase, test_max_batch_size);
  tcase_add_test (tcase, test_many);
  tcase_add_test (tcase, test_size_changes);
  tcase_add_test (tcase, test_flush);
  tcase_add_test (tcase, test_pads_change);
  tcase_add_test (tcase, test_errors);
  tcase_add_test (tcase, test_links);
  tcase_add_test (tcase, test_unbatch);
  tcase_add_test (tcase, test_round_trip);
  tcase_add_test (tcase, test_seek);
  tcase_add_test (tcase, test_same_results);
  tcase_add_test (tcase, test_same_results_cropped);
  tcase_add_test (tcase, test_refusals);
  tcase_add_test (tcase, test_tensor);
  tcase_add_test (tcase, test_steady);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, batch_suite, "batch");
}
