/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See play.h.
 */
#include "play.h"

GstElement *
play (const char *launch)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (launch, &error);
  g_autoptr (GstBus) bus = NULL;
  g_autoptr (GstMessage) message = NULL;

  g_assert_no_error (error);
  bus = gst_element_get_bus (pipeline);
  fail_unless (gst_element_set_state (pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message != NULL, "%s did not end", launch);
  if (GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR) {
    gst_message_parse_error (message, &error, NULL);
    ck_abort_msg ("%s: %s", launch, error->message);
  }
  return pipeline;
}

void
stop (GstElement *pipeline)
{
  fail_unless_equals_int (gst_element_set_state (pipeline, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
  gst_object_unref (pipeline);
}

GstSample *
last_sample (GstElement *pipeline, const char *sink)
{
  g_autoptr (GstElement) element = gst_bin_get_by_name (GST_BIN (pipeline), sink);
  GstSample *sample = NULL;

  g_object_get (element, "last-sample", &sample, NULL);
  fail_unless (sample != NULL, "%s got nothing", sink);
  return sample;
}

Picture *
last_picture (GstElement *pipeline, const char *sink)
{
  g_autoptr (GstSample) sample = last_sample (pipeline, sink);
  GstVideoInfo info;

  fail_unless (gst_video_info_from_caps (&info, gst_sample_get_caps (sample)));
  return picture_read (&info, gst_sample_get_buffer (sample));
}
