/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpuunbatch, alone and behind gpubatch: each stream comes out as it went in, with its own frames, times and events.
 */
#include "batch.h"

#include <gst/check/gstharness.h>

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
  play_to_end (trip.pipeline);
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

/* A gap comes out again as one. */
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
  if (data)
    gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, count_gaps, data, NULL);
}

GST_START_TEST (test_gap_round_trip)
{
  GstElement *batch = gst_element_factory_make ("gpubatch", NULL);
  GstElement *unbatch = gst_element_factory_make ("gpuunbatch", NULL);
  GstHarness *in, *other;
  GstVideoInfo info;
  GpuDevice *device = test_device_new ();
  GstAllocator *allocator = gst_gpu_allocator_new (device);
  GstElement *bin = gst_bin_new (NULL);
  gint gaps = 0;

  gst_object_ref_sink (bin);
  gst_bin_add_many (GST_BIN (bin), batch, unbatch, NULL);
  fail_unless (gst_element_link (batch, unbatch));
  g_signal_connect (unbatch, "pad-added", G_CALLBACK (watch_gaps), &gaps);
  test_video_info (&info, GST_VIDEO_FORMAT_GRAY8, 16, 16);
  in = gst_harness_new_with_element (batch, "sink_0", NULL);
  other = gst_harness_new_with_element (batch, "sink_1", NULL);
  gst_element_set_state (bin, GST_STATE_PLAYING);
  gst_harness_set_src_caps (in, test_caps (GST_VIDEO_FORMAT_GRAY8, 16, 16));
  gst_harness_set_src_caps (other, test_caps (GST_VIDEO_FORMAT_GRAY8, 16, 16));
  for (guint number = 0; number < 3; number++) {
    gst_harness_push (in, batch_frame_new (allocator, &info, 0, number));
    if (number == 1)
      gst_harness_push_event (other, gst_event_new_gap (GST_SECOND / 25, GST_SECOND / 25));
    else
      gst_harness_push (other, batch_frame_new (allocator, &info, 1, number));
  }
  for (guint i = 0; i < 100 && !g_atomic_int_get (&gaps); i++)
    g_usleep (10000);
  fail_unless_equals_int (g_atomic_int_get (&gaps), 1);
  gst_element_set_state (bin, GST_STATE_NULL);
  gst_harness_teardown (in);
  gst_harness_teardown (other);
  gst_object_unref (bin);
  gst_object_unref (allocator);
  gpu_device_unref (device);
}
GST_END_TEST

/* Segments and ends come out of one branch as the events that went in. */
typedef struct {
  GAsyncQueue *events[2]; /* of GstEvent */
  GAsyncQueue *ends[2];   /* of any pointer, one for each end */
} Numbers;

static GstPadProbeReturn
keep_event (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstEvent *event = GST_PAD_PROBE_INFO_EVENT (info);
  Numbers *numbers = data;
  const guint i = g_str_equal (GST_PAD_NAME (pad), "src_1");

  if (GST_EVENT_TYPE (event) == GST_EVENT_SEGMENT || GST_EVENT_TYPE (event) == GST_EVENT_EOS)
    g_async_queue_push (numbers->events[i], gst_event_ref (event));
  if (GST_EVENT_TYPE (event) == GST_EVENT_EOS)
    g_async_queue_push (numbers->ends[i], numbers);
  return GST_PAD_PROBE_OK;
}

static void
watch_events (GstElement *unbatch, GstPad *pad, gpointer data)
{
  /* What was said before is said once the pad is linked. */
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, keep_event, data, NULL);
  watch_gaps (unbatch, pad, NULL);
}

static void
wait_for_end (Numbers *numbers, guint pad)
{
  g_async_queue_timeout_pop (numbers->ends[pad], 30 * G_USEC_PER_SEC);
}

static void
expect_event (Numbers *numbers, guint pad, GstEventType type, guint32 seqnum)
{
  GstEvent *event = g_async_queue_try_pop (numbers->events[pad]);

  fail_unless (event != NULL);
  fail_unless_equals_int (GST_EVENT_TYPE (event), type);
  fail_unless_equals_int (gst_event_get_seqnum (event), seqnum);
  gst_event_unref (event);
}

static void
push_segment (GstHarness *harness, guint32 seqnum)
{
  GstSegment segment;
  GstEvent *event;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  event = gst_event_new_segment (&segment);
  gst_event_set_seqnum (event, seqnum);
  gst_harness_push_event (harness, event);
}

static void
push_end (GstHarness *harness, guint32 seqnum)
{
  GstEvent *event = gst_event_new_eos ();

  gst_event_set_seqnum (event, seqnum);
  gst_harness_push_event (harness, event);
}

GST_START_TEST (test_seqnums)
{
  GstElement *batch = gst_element_factory_make ("gpubatch", NULL);
  GstElement *unbatch = gst_element_factory_make ("gpuunbatch", NULL);
  GstElement *bin = gst_object_ref_sink (gst_bin_new (NULL));
  GpuDevice *device = test_device_new ();
  GstAllocator *allocator = gst_gpu_allocator_new (device);
  Numbers numbers = {{g_async_queue_new_full ((GDestroyNotify)gst_event_unref),
                      g_async_queue_new_full ((GDestroyNotify)gst_event_unref)},
                     {g_async_queue_new (), g_async_queue_new ()}};
  GstHarness *in[2];
  GstVideoInfo info;

  gst_bin_add_many (GST_BIN (bin), batch, unbatch, NULL);
  fail_unless (gst_element_link (batch, unbatch));
  g_signal_connect (unbatch, "pad-added", G_CALLBACK (watch_events), &numbers);
  test_video_info (&info, GST_VIDEO_FORMAT_GRAY8, 16, 16);
  in[0] = gst_harness_new_with_element (batch, "sink_0", NULL);
  in[1] = gst_harness_new_with_element (batch, "sink_1", NULL);
  gst_element_set_state (bin, GST_STATE_PLAYING);
  for (guint i = 0; i < 2; i++) {
    gst_harness_set_src_caps (in[i], test_caps (GST_VIDEO_FORMAT_GRAY8, 16, 16));
    push_segment (in[i], 1000 + i);
  }
  for (guint number = 0; number < 2; number++) {
    for (guint i = 0; i < 2; i++)
      gst_harness_push (in[i], batch_frame_new (allocator, &info, i, number));
    /* Another one that says the same, as after a seek to where it is. */
    if (number == 0)
      push_segment (in[1], 2000);
  }
  push_end (in[1], 3001);
  push_end (in[0], 3000);
  wait_for_end (&numbers, 0);
  wait_for_end (&numbers, 1);
  gst_element_set_state (bin, GST_STATE_NULL);
  expect_event (&numbers, 0, GST_EVENT_SEGMENT, 1000);
  expect_event (&numbers, 0, GST_EVENT_EOS, 3000);
  expect_event (&numbers, 1, GST_EVENT_SEGMENT, 1001);
  expect_event (&numbers, 1, GST_EVENT_SEGMENT, 2000);
  expect_event (&numbers, 1, GST_EVENT_EOS, 3001);
  for (guint i = 0; i < 2; i++) {
    gst_harness_teardown (in[i]);
    g_async_queue_unref (numbers.events[i]);
    g_async_queue_unref (numbers.ends[i]);
  }
  gst_object_unref (bin);
  gst_object_unref (allocator);
  gpu_device_unref (device);
}
GST_END_TEST

static Suite *
unbatch_suite (void)
{
  Suite *suite = suite_create ("unbatch");
  TCase *tcase = tcase_create ("general");

  suite_add_tcase (suite, tcase);
  tcase_add_test (tcase, test_gap_round_trip);
  tcase_add_test (tcase, test_unbatch);
  tcase_add_test (tcase, test_seqnums);
  tcase_add_test (tcase, test_round_trip);
  tcase_add_test (tcase, test_seek);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, unbatch_suite, "unbatch");
}
