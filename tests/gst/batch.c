/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See batch.h.
 */
#include "batch.h"

GstBuffer *
batch_frame_new (GstAllocator *allocator, const GstVideoInfo *info, guint pad, guint number)
{
  g_autoptr (GError) error = NULL;
  GstMemory *memory = gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), info, FALSE,
                                                     GPU_MEMORY_STREAM_ORDERED, NULL, &error);
  GstBuffer *buffer;

  g_assert_no_error (error);
  buffer = test_buffer_new (memory);
  GST_BUFFER_PTS (buffer) = number * GST_SECOND / 25;
  GST_BUFFER_DURATION (buffer) = GST_SECOND / 25;
  GST_BUFFER_OFFSET (buffer) = 1000 * pad + number;
  return buffer;
}

void
rig_add (Rig *rig, guint i, GstVideoFormat format, guint width, guint height)
{
  g_autofree gchar *name = g_strdup_printf ("sink_%u", i);

  rig->in[i] = gst_harness_new_with_element (rig->element, name, NULL);
  test_video_info (&rig->info[i], format, width, height);
  gst_harness_set_src_caps (rig->in[i], test_caps (format, width, height));
}

void
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

void
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

GstBuffer *
make_frame (Rig *rig, guint i, guint number)
{
  return batch_frame_new (rig->allocator, &rig->info[i], i, number);
}

void
feed (Rig *rig, guint i, guint number)
{
  fail_unless_equals_int (gst_harness_push (rig->in[i], make_frame (rig, i, number)), GST_FLOW_OK);
}

GstBuffer *
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
    if (number == -2 || number == -4) {
      fail_unless (!frame->buffer && frame->eos && frame->released == (number == -4));
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

void
play_to_end (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
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
