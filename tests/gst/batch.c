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
play_to_end (GstElement *pipeline)
{
  GstBus *bus = gst_element_get_bus (pipeline);
  GstMessage *message;

  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  /* What still plays would keep the program from its end. */
  if (!message || GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR)
    gst_element_set_state (pipeline, GST_STATE_NULL);
  fail_unless (message != NULL);
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    g_autoptr (GError) error = NULL;

    gst_message_parse_error (message, &error, NULL);
    fail ("%s", error->message);
  }
  gst_message_unref (message);
  gst_object_unref (bus);
}
