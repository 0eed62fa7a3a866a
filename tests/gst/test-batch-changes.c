/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Batches while something changes: pads go and come back, branches behind gpuunbatch are not there or have enough, and
 * an element is told to do something else.
 */
#include "common.h"

#include <gst/check/gstharness.h>

#define CAPS GST_GPU_BATCH_NAME "(memory:GPUCache)"

/* What came out of one pad of gpuunbatch. */
typedef struct {
  GstFlowReturn answer;
  guint n_frames;
  guint n_starts;
  guint n_ends;
  guint n_pads;
  guint n_removed;
  GstPad *sink;
  gboolean is_shared; /* a frame was somebody else's, too */
} Branch;

static GstFlowReturn
take_frame (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Branch *branch = gst_pad_get_element_private (pad);

  branch->n_frames++;
  branch->is_shared |= !gst_buffer_is_writable (buffer);
  gst_buffer_unref (buffer);
  return branch->answer;
}

static gboolean
take_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  Branch *branch = gst_pad_get_element_private (pad);

  branch->n_starts += GST_EVENT_TYPE (event) == GST_EVENT_STREAM_START;
  branch->n_ends += GST_EVENT_TYPE (event) == GST_EVENT_EOS;
  gst_event_unref (event);
  return TRUE;
}

static Branch *
branch_of (GstPad *pad, gpointer branches)
{
  return &((Branch *)branches)[g_str_equal (GST_PAD_NAME (pad), "src_1")];
}

/* Links those that have a name. */
static void
link_branch (GstElement *unbatch, GstPad *pad, gpointer data)
{
  Branch *branch = branch_of (pad, data);

  branch->n_pads++;
  if (branch->answer == GST_FLOW_NOT_LINKED)
    return;
  branch->sink = gst_pad_new (NULL, GST_PAD_SINK);
  gst_pad_set_element_private (branch->sink, branch);
  gst_pad_set_chain_function (branch->sink, take_frame);
  gst_pad_set_event_function (branch->sink, take_event);
  gst_pad_set_active (branch->sink, TRUE);
  fail_unless_equals_int (gst_pad_link (pad, branch->sink), GST_PAD_LINK_OK);
}

/* As an application does it; when the element stops, too. */
static void
drop_branch (GstElement *unbatch, GstPad *pad, gpointer data)
{
  Branch *branch = branch_of (pad, data);

  branch->n_removed++;
  gst_clear_object (&branch->sink);
}

typedef enum {
  IS_FRAME,
  IS_END,
  IS_RELEASED,
} What;

/* A frame of pad @number, or what gpubatch says at its end, or when it is gone. */
static void
fill_frame (GstGpuBatchFrame *frame, guint number, What what)
{
  frame->pad = number;
  frame->eos = what != IS_FRAME;
  frame->released = what == IS_RELEASED;
  if (what == IS_RELEASED)
    return;
  frame->stream_id = g_strdup_printf ("camera-%u", number);
  if (what == IS_END)
    return;
  frame->caps = test_caps (GST_VIDEO_FORMAT_RGBA, 32, 16);
  frame->buffer = gst_buffer_new ();
}

static GstHarness *
unbatch_new (Branch branches[2])
{
  GstHarness *harness = gst_harness_new_with_element (gst_element_factory_make ("gpuunbatch", NULL), "sink", NULL);

  gst_object_unref (harness->element);
  g_signal_connect (harness->element, "pad-added", G_CALLBACK (link_branch), branches);
  g_signal_connect (harness->element, "pad-removed", G_CALLBACK (drop_branch), branches);
  gst_harness_set_src_caps_str (harness, CAPS);
  return harness;
}

/* The same source on a pad of the same number: its stream begins again after its end, on the pad that was there, or, if
 * gpubatch's was released, on another one. */
static void
check_again (What end)
{
  Branch branches[2] = {{.answer = GST_FLOW_OK}, {.answer = GST_FLOW_OK}};
  GstHarness *harness = unbatch_new (branches);

  for (guint n = 0; n < 5; n++) {
    GstBuffer *batch = gst_buffer_new ();
    GstGpuBatchMeta *meta = gst_buffer_add_gpu_batch_meta (batch, 2);

    fill_frame (&meta->frames[0], 0, IS_FRAME);
    fill_frame (&meta->frames[1], 1, n == 2 ? end : IS_FRAME);
    fail_unless_equals_int (gst_harness_push (harness, batch), GST_FLOW_OK);
    fail_unless_equals_int (harness->element->numsrcpads, n == 2 && end == IS_RELEASED ? 1 : 2);
  }
  fail_unless_equals_int (branches[0].n_frames, 5);
  fail_unless_equals_int (branches[0].n_starts, 1);
  fail_unless_equals_int (branches[0].n_ends, 0);
  fail_unless_equals_int (branches[0].n_removed, 0);
  fail_unless_equals_int (branches[1].n_frames, 4);
  fail_unless_equals_int (branches[1].n_starts, 2);
  fail_unless_equals_int (branches[1].n_ends, 1);
  fail_unless_equals_int (branches[1].n_pads, end == IS_RELEASED ? 2 : 1);
  fail_unless_equals_int (branches[1].n_removed, end == IS_RELEASED ? 1 : 0);
  gst_harness_teardown (harness);
}

GST_START_TEST (test_stream_again)
{
  check_again (IS_END);
  check_again (IS_RELEASED);
}
GST_END_TEST

/* One stream is at its end, and the branch of the other has enough: so has everybody. */
GST_START_TEST (test_enough)
{
  Branch branches[2] = {{.answer = GST_FLOW_OK}, {.answer = GST_FLOW_OK}};
  GstHarness *harness = unbatch_new (branches);

  for (guint n = 0; n < 5; n++) {
    GstBuffer *batch = gst_buffer_new ();
    GstGpuBatchMeta *meta = gst_buffer_add_gpu_batch_meta (batch, 2);

    fill_frame (&meta->frames[0], 0, n == 1 ? IS_END : IS_FRAME);
    fill_frame (&meta->frames[1], 1, IS_FRAME);
    /* When stream 0 has begun again, there is somebody left. */
    branches[1].answer = n == 1 || n == 2 || n == 4 ? GST_FLOW_EOS : GST_FLOW_OK;
    fail_unless_equals_int (gst_harness_push (harness, batch), n == 1 ? GST_FLOW_EOS : GST_FLOW_OK);
  }
  gst_harness_teardown (harness);
}
GST_END_TEST

/* What becomes of the first frame of a batch is nothing to the second. */
static void
check_other_branch (GstFlowReturn answer)
{
  Branch branches[2] = {{.answer = answer}, {.answer = GST_FLOW_OK}};
  GstHarness *harness = unbatch_new (branches);

  for (guint n = 0; n < 3; n++) {
    GstBuffer *batch = gst_buffer_new ();
    GstGpuBatchMeta *meta = gst_buffer_add_gpu_batch_meta (batch, 2);

    fill_frame (&meta->frames[0], 0, IS_FRAME);
    fill_frame (&meta->frames[1], 1, IS_FRAME);
    fail_unless_equals_int (gst_harness_push (harness, batch), GST_FLOW_OK);
  }
  fail_unless_equals_int (branches[1].n_frames, 3);
  fail_if (branches[1].is_shared);
  gst_harness_teardown (harness);
}

GST_START_TEST (test_other_branch)
{
  check_other_branch (GST_FLOW_NOT_LINKED);
  check_other_branch (GST_FLOW_EOS);
}
GST_END_TEST

/* What is left of a batch whose frames all ended: no tensor, but nothing is wrong either. */
GST_START_TEST (test_only_ends)
{
  GpuDevice *device = test_device_new ();
  GstAllocator *allocator = gst_gpu_allocator_new (device);
  GstHarness *harness = gst_harness_new ("gpunormalize");

  gst_harness_set_sink_caps_str (harness, GST_GPU_TENSOR_NAME "(memory:GPUCache),dimensions=(string)32:16:3:2,"
                                                              "types=(string)float32");
  gst_harness_set_src_caps_str (harness, CAPS ",batch-size=2");
  for (guint n = 0; n < 3; n++) {
    g_autoptr (GError) error = NULL;
    GstBuffer *batch = gst_buffer_new ();
    GstGpuBatchMeta *meta = gst_buffer_add_gpu_batch_meta (batch, 2);
    GstVideoInfo info;

    test_video_info (&info, GST_VIDEO_FORMAT_RGB, 32, 16);
    for (guint i = 0; i < 2; i++) {
      meta->frames[i].pad = i;
      meta->frames[i].eos = n == 1;
      if (n == 1)
        continue;
      meta->frames[i].caps = test_caps (GST_VIDEO_FORMAT_RGB, 32, 16);
      meta->frames[i].buffer = test_buffer_new (gst_gpu_allocator_alloc_video (
          GST_GPU_ALLOCATOR (allocator), &info, FALSE, GPU_MEMORY_STREAM_ORDERED, NULL, &error));
      g_assert_no_error (error);
    }
    fail_unless_equals_int (gst_harness_push (harness, batch), GST_FLOW_OK);
    fail_unless_equals_int (gst_harness_buffers_received (harness), n < 2 ? 1 : 2);
  }
  gst_harness_teardown (harness);
  gst_object_unref (allocator);
  gpu_device_unref (device);
}
GST_END_TEST

/* The size that the frame of a batch has behind gpuflip. */
static void
expect_size (GstHarness *harness, GstAllocator *allocator, GstCaps *caps, const gchar *direction, gint width,
             gint height)
{
  g_autoptr (GError) error = NULL;
  GstBuffer *batch = gst_buffer_new ();
  GstGpuBatchFrame *frame = gst_buffer_add_gpu_batch_meta (batch, 1)->frames;
  const GstStructure *structure;
  GstVideoInfo info;
  gint value;

  test_video_info (&info, GST_VIDEO_FORMAT_RGBA, 32, 16);
  frame->caps = gst_caps_ref (caps);
  frame->buffer = test_buffer_new (gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, FALSE,
                                                                  GPU_MEMORY_STREAM_ORDERED, NULL, &error));
  g_assert_no_error (error);
  gst_util_set_object_arg (G_OBJECT (harness->element), "video-direction", direction);
  fail_unless_equals_int (gst_harness_push (harness, batch), GST_FLOW_OK);
  batch = gst_harness_pull (harness);
  structure = gst_caps_get_structure (gst_buffer_get_gpu_batch_meta (batch)->frames[0].caps, 0);
  fail_unless (gst_structure_get_int (structure, "width", &value));
  fail_unless_equals_int (value, width);
  fail_unless (gst_structure_get_int (structure, "height", &value));
  fail_unless_equals_int (value, height);
  gst_buffer_unref (batch);
}

/* A batch's caps stay what they are when its frames are turned another way. */
GST_START_TEST (test_direction_changes)
{
  GpuDevice *device = test_device_new ();
  GstAllocator *allocator = gst_gpu_allocator_new (device);
  GstHarness *harness = gst_harness_new ("gpuflip");
  GstCaps *caps = test_caps (GST_VIDEO_FORMAT_RGBA, 32, 16);

  gst_harness_set_src_caps_str (harness, CAPS);
  expect_size (harness, allocator, caps, "180", 32, 16);
  expect_size (harness, allocator, caps, "90r", 16, 32);
  expect_size (harness, allocator, caps, "identity", 32, 16);
  expect_size (harness, allocator, caps, "90l", 16, 32);
  expect_size (harness, allocator, caps, "horiz", 32, 16);
  gst_harness_teardown (harness);
  gst_caps_unref (caps);
  gst_object_unref (allocator);
  gpu_device_unref (device);
}
GST_END_TEST

/* What is wrong with a property is a warning while batches flow, and the old value stays; before the first it is an
 * error. @bad: a value of scale. */
static void
check_bad_setting (const gchar *name, const gchar *bad, guint when)
{
  GpuDevice *device = test_device_new ();
  GstAllocator *allocator = gst_gpu_allocator_new (device);
  GstHarness *harness = gst_harness_new (name);
  GstBus *bus = gst_bus_new ();
  GstCaps *caps = test_caps (GST_VIDEO_FORMAT_RGB, 32, 16);
  GstVideoInfo info;

  test_video_info (&info, GST_VIDEO_FORMAT_RGB, 32, 16);
  gst_element_set_bus (harness->element, bus);
  gst_harness_set_src_caps_str (harness, CAPS);
  for (guint n = 0; n < 3; n++) {
    g_autoptr (GError) error = NULL;
    GstBuffer *batch = gst_buffer_new ();
    GstGpuBatchFrame *frame = gst_buffer_add_gpu_batch_meta (batch, 1)->frames;
    GstMessage *message;

    frame->caps = gst_caps_ref (caps);
    frame->buffer = test_buffer_new (gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, FALSE,
                                                                    GPU_MEMORY_STREAM_ORDERED, NULL, &error));
    g_assert_no_error (error);
    if (n == when)
      gst_util_set_object_arg (G_OBJECT (harness->element), "scale", bad);
    fail_unless ((gst_harness_push (harness, batch) == GST_FLOW_OK) == (when > 0));
    message = gst_bus_pop_filtered (bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
    fail_unless ((message != NULL) == (n == when));
    fail_unless (!message || GST_MESSAGE_TYPE (message) == (when > 0 ? GST_MESSAGE_WARNING : GST_MESSAGE_ERROR));
    gst_clear_message (&message);
  }
  gst_element_set_bus (harness->element, NULL);
  gst_object_unref (bus);
  gst_harness_teardown (harness);
  gst_caps_unref (caps);
  gst_object_unref (allocator);
  gpu_device_unref (device);
}

GST_START_TEST (test_bad_setting)
{
  check_bad_setting ("gpureformat", "nan", 1);
  check_bad_setting ("gpunormalize", "<1,2>", 1);
  check_bad_setting ("gpunormalize", "<1,2>", 0);
}
GST_END_TEST

/* Downstream is late: batches are dropped, but for those in which a stream ends. */
GST_START_TEST (test_late)
{
  GpuDevice *device = test_device_new ();
  GstAllocator *allocator = gst_gpu_allocator_new (device);
  GstHarness *harness = gst_harness_new_parse ("gpuflip video-direction=180");
  GstCaps *caps = test_caps (GST_VIDEO_FORMAT_RGB, 32, 16);
  GstVideoInfo info;

  test_video_info (&info, GST_VIDEO_FORMAT_RGB, 32, 16);
  gst_harness_set_src_caps_str (harness, CAPS);
  for (guint n = 0; n < 4; n++) {
    g_autoptr (GError) error = NULL;
    GstBuffer *batch = gst_buffer_new ();
    GstGpuBatchFrame *frame = gst_buffer_add_gpu_batch_meta (batch, 1)->frames;

    GST_BUFFER_PTS (batch) = n * GST_SECOND;
    frame->eos = n == 2;
    frame->caps = gst_caps_ref (caps);
    frame->buffer = test_buffer_new (gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, FALSE,
                                                                    GPU_MEMORY_STREAM_ORDERED, NULL, &error));
    g_assert_no_error (error);
    if (n > 0)
      gst_harness_push_upstream_event (harness,
                                       gst_event_new_qos (GST_QOS_TYPE_UNDERFLOW, 2, GST_SECOND, n * GST_SECOND));
    fail_unless_equals_int (gst_harness_push (harness, batch), GST_FLOW_OK);
    fail_unless_equals_int (gst_harness_buffers_received (harness), n < 2 ? 1 : 2);
  }
  gst_harness_teardown (harness);
  gst_caps_unref (caps);
  gst_object_unref (allocator);
  gpu_device_unref (device);
}
GST_END_TEST

static void
count_batch (GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data)
{
  g_atomic_int_inc ((gint *)data);
}

/* A sink of batches finds them in the segment, also after a seek. */
GST_START_TEST (test_seek_to_sink)
{
  gint n = 0;
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch ("videotestsrc num-buffers=100 ! "
                                           "video/x-raw,width=32,height=16,framerate=25/1 ! gpuupload ! gpubatch ! "
                                           "fakesink name=sink signal-handoffs=true",
                                           &error);
  GstElement *sink;
  GstBus *bus;
  GstMessage *message;

  g_assert_no_error (error);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_signal_connect (sink, "handoff", G_CALLBACK (count_batch), &n);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  fail_unless_equals_int (gst_element_get_state (pipeline, NULL, NULL, 30 * GST_SECOND), GST_STATE_CHANGE_SUCCESS);
  fail_unless (gst_element_seek_simple (pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE,
                                        3 * GST_SECOND));
  fail_unless_equals_int (gst_element_get_state (pipeline, NULL, NULL, 30 * GST_SECOND), GST_STATE_CHANGE_SUCCESS);
  g_atomic_int_set (&n, 0);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  bus = gst_element_get_bus (pipeline);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  gst_message_unref (message);
  gst_object_unref (bus);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  fail_unless (g_atomic_int_get (&n) >= 90, "%d batches", g_atomic_int_get (&n));
  gst_object_unref (sink);
  gst_object_unref (pipeline);
}
GST_END_TEST

static Suite *
batch_changes_suite (void)
{
  Suite *suite = suite_create ("batch-changes");
  TCase *tcase = tcase_create ("general");

  suite_add_tcase (suite, tcase);
  tcase_add_test (tcase, test_stream_again);
  tcase_add_test (tcase, test_enough);
  tcase_add_test (tcase, test_other_branch);
  tcase_add_test (tcase, test_seek_to_sink);
  tcase_add_test (tcase, test_only_ends);
  tcase_add_test (tcase, test_direction_changes);
  tcase_add_test (tcase, test_bad_setting);
  tcase_add_test (tcase, test_late);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, batch_changes_suite, "batch-changes");
}
