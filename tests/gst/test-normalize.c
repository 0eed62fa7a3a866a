/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpunormalize: against a plain reference; its arrays, good and bad; in place or not; changes while it plays.
 */
#include "common.h"
#include "picture.h"

#include <math.h>

typedef struct {
  double base[4], scale[4];
  double global_scale, shift, epsilon;
  gboolean is_stddev;
} Params;

static const Params plain = {{0, 0, 0, 0}, {1, 1, 1, 1}, 1, 0, 0, FALSE};

/* The channel of byte @k of a sample of plane @p; -1 for padding. */
static int
channel_of (const Picture *picture, int p, int k)
{
  const char *name = gst_video_format_to_string (picture->format);
  const char *letter;

  switch (picture->format) {
  case GST_VIDEO_FORMAT_GRAY8:
    return 0;
  case GST_VIDEO_FORMAT_NV12:
    return p + k;
  case GST_VIDEO_FORMAT_I420:
    return p;
  default:
    letter = strchr ("RGBA", name[k]);
    return letter ? (int)(letter - "RGBA") : -1;
  }
}

static int
n_channels (const char *format)
{
  if (g_str_equal (format, "GRAY8"))
    return 1;
  return strchr (format, 'A') ? 4 : 3;
}

static Picture *
reference (const Picture *in, const Params *params)
{
  Picture *out = picture_new (in->format, in->plane[0].width, in->plane[0].height);

  for (int p = 0; p < in->n_planes; p++)
    for (int y = 0; y < in->plane[p].height; y++)
      for (int x = 0; x < in->plane[p].width; x++)
        for (int k = 0; k < in->plane[p].bytes; k++) {
          int c = channel_of (in, p, k);
          double factor, value;

          if (c < 0) {
            plane_at (&out->plane[p], x, y)[k] = 255;
            continue;
          }
          factor = params->scale[c];
          if (params->is_stddev)
            factor = 1 / sqrt (factor * factor + params->epsilon);
          value = (plane_at (&in->plane[p], x, y)[k] - params->base[c]) * factor * params->global_scale + params->shift;
          plane_at (&out->plane[p], x, y)[k] = (guint8)CLAMP (rint (value), 0, 255);
        }
  return out;
}

static void
set_array (GstElement *element, const char *property, const double *values, int n)
{
  GValue array = G_VALUE_INIT;

  g_value_init (&array, GST_TYPE_ARRAY);
  for (int i = 0; i < n; i++) {
    GValue value = G_VALUE_INIT;

    g_value_init (&value, G_TYPE_DOUBLE);
    g_value_set_double (&value, values[i]);
    gst_value_array_append_and_take_value (&array, &value);
  }
  g_object_set_property (G_OBJECT (element), property, &array);
  g_value_unset (&array);
}

static void
set_params (GstElement *element, const Params *params, int n)
{
  set_array (element, "base", params->base, n);
  set_array (element, "scale", params->scale, n);
  g_object_set (element, "global-scale", params->global_scale, "shift", params->shift, "epsilon", params->epsilon,
                "scale-is-stddev", params->is_stddev, NULL);
}

/* Pushes a frame and compares what comes out with the reference. */
static void
check_frame (GstHarness *h, const char *format, int width, int height, const Params *params, const char *what)
{
  g_autoptr (Picture) in = NULL;
  g_autoptr (Picture) expected = NULL;
  g_autoptr (Picture) got = NULL;
  GstVideoInfo info;
  GstBuffer *buffer;

  info_init (&info, format, width, height);
  buffer = frame_new (&info, 41);
  in = picture_read (&info, buffer);
  expected = reference (in, params);
  buffer = push_and_pull (h, frame_upload (&info, buffer, NULL));
  got = picture_read (&info, buffer);
  assert_pictures_equal (expected, got, what);
  gst_buffer_unref (buffer);
}

static void
check (const char *format, int width, int height, const Params *params)
{
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_autofree char *what = g_strdup_printf ("%s %dx%d", format, width, height);

  set_params (h->element, params, n_channels (format));
  gst_harness_set_src_caps (h, frame_caps (format, width, height, TRUE));
  check_frame (h, format, width, height, params, what);
  gst_harness_teardown (h);
}

/* No result lies so near to a half that single floats could round it the other way. */
static const Params stddev = {{123.7, 116.3, 103.5, 99.1}, {58.4, 57.1, 57.4, 61.3}, 64, 128.03, 0.013, TRUE};
static const Params scaled = {{10.25, 20.5, 30.75, 5}, {1.37, 0.71, 2.13, 0.5307}, 1.25, -3.1037, 0, FALSE};
static const Params halves = {{0, 0, 0, 0}, {0.5, 0.5, 0.5, 0.5}, 1, 0, 0, FALSE};

GST_START_TEST (every_format)
{
  static const int sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {33, 17}, {64, 48}};

  for (guint i = 0; i < N_TEST_FORMATS; i++)
    for (guint k = 0; k < G_N_ELEMENTS (sizes); k++) {
      check (test_formats[i], sizes[k][0], sizes[k][1], &stddev);
      check (test_formats[i], sizes[k][0], sizes[k][1], &scaled);
      check (test_formats[i], sizes[k][0], sizes[k][1], &halves);
    }
  check ("NV12", 641, 481, &stddev);
  check ("RGB", 641, 481, &scaled);
}
GST_END_TEST

GST_START_TEST (arrays_on_a_launch_line)
{
  GstHarness *h = gst_harness_new_parse (
      "gpunormalize base=\"<123.7,116.3,103.5>\" scale=\"<58.4,57.1,57.4>\" scale-is-stddev=true epsilon=0.013 "
      "global-scale=64 shift=128.03");

  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  check_frame (h, "RGB", 33, 17, &stddev, "launch line");
  gst_harness_teardown (h);

  /* Whole numbers and a single one. */
  h = gst_harness_new_parse ("gpunormalize base=\"<100,110,120>\" scale=\"<2>\" shift=128");
  gst_harness_set_src_caps (h, frame_caps ("BGR", 33, 17, TRUE));
  check_frame (h, "BGR", 33, 17, &(Params){{100, 110, 120, 0}, {2, 2, 2, 2}, 1, 128, 0, FALSE}, "whole numbers");
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (properties_read_back)
{
  GstElement *element = gst_element_factory_make ("gpunormalize", NULL);
  GValue array = G_VALUE_INIT;

  g_value_init (&array, GST_TYPE_ARRAY);
  g_object_get_property (G_OBJECT (element), "scale", &array);
  fail_unless_equals_int ((int)gst_value_array_get_size (&array), 1);
  fail_unless (g_value_get_double (gst_value_array_get_value (&array, 0)) == 1);
  g_value_reset (&array);
  set_params (element, &stddev, 3);
  g_object_get_property (G_OBJECT (element), "base", &array);
  fail_unless_equals_int ((int)gst_value_array_get_size (&array), 3);
  fail_unless (g_value_get_double (gst_value_array_get_value (&array, 1)) == 116.3);
  g_value_unset (&array);
  gst_object_unref (element);
}
GST_END_TEST

GST_START_TEST (nothing_to_do_passes_frames)
{
  GstHarness *h = gst_harness_new ("gpunormalize");
  GstVideoInfo info;
  GstBuffer *in;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  in = frame_upload (&info, frame_new (&info, 1), NULL);
  fail_unless (push_and_pull (h, in) == in);
  gst_buffer_unref (in);
  gst_harness_teardown (h);
}
GST_END_TEST

/* G6: a writable buffer whose memory others hold is not written. */
GST_START_TEST (in_place_only_where_nobody_looks)
{
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_autoptr (Picture) before = NULL;
  g_autoptr (Picture) after = NULL;
  GstVideoInfo info;
  GstBuffer *in, *other, *out;
  GstMemory *memory;

  set_params (h->element, &scaled, 3);
  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));

  in = frame_upload (&info, frame_new (&info, 1), NULL);
  memory = gst_buffer_peek_memory (in, 0);
  out = push_and_pull (h, in);
  fail_unless (gst_buffer_peek_memory (out, 0) == memory, "it was not in place");
  gst_buffer_unref (out);

  in = frame_upload (&info, frame_new (&info, 2), NULL);
  other = gst_buffer_copy (in);
  fail_unless (gst_buffer_is_writable (in));
  fail_unless (gst_buffer_peek_memory (in, 0) == gst_buffer_peek_memory (other, 0));
  before = picture_read (&info, other);
  out = push_and_pull (h, in);
  after = picture_read (&info, other);
  assert_pictures_equal (before, after, "the other's frame");
  gst_buffer_unref (out);
  gst_buffer_unref (other);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (changes_while_playing)
{
  static const Params *const steps[] = {&plain, &scaled, &stddev, &plain, &plain, &halves};
  GstHarness *h = gst_harness_new ("gpunormalize");

  gst_harness_set_src_caps (h, frame_caps ("RGBA", 33, 17, TRUE));
  for (guint i = 0; i < 24; i++) {
    set_params (h->element, steps[i % G_N_ELEMENTS (steps)], 4);
    check_frame (h, "RGBA", 33, 17, steps[i % G_N_ELEMENTS (steps)], "after a change");
  }
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (format_changes_in_mid_stream)
{
  GstHarness *h = gst_harness_new ("gpunormalize");

  set_params (h->element, &scaled, 3);
  for (guint i = 0; i < 8; i++) {
    static const char *const formats[] = {"RGB", "NV12", "BGRx", "I420", "xBGR"};
    const char *format = formats[i % G_N_ELEMENTS (formats)];

    gst_harness_set_src_caps (h, frame_caps (format, 20 + (int)i, 17, TRUE));
    check_frame (h, format, 20 + (int)i, 17, &scaled, format);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

/* GStreamer tries again before each frame; what is wrong is said once, until something is changed. */
GST_START_TEST (an_error_is_posted_once)
{
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;

  info_init (&info, "RGB", 33, 17);
  gst_util_set_object_arg (G_OBJECT (h->element), "base", "<1,2>");
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 3; i++)
      fail_unless (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)) != GST_FLOW_OK);
    assert_message (bus, GST_MESSAGE_ERROR, "2 values", NULL);
    assert_no_message (bus, GST_MESSAGE_ERROR);
    if (round == 0)
      gst_util_set_object_arg (G_OBJECT (h->element), "shift", "1");
    else
      gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 18, TRUE));
  }
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Before the first frame: the element stops, and says which property it was. */
static void
check_refused (const char *launch, const char *format, const char *property, const char *word)
{
  GstHarness *h = gst_harness_new_parse (launch);
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;

  info_init (&info, format, 33, 17);
  gst_harness_set_src_caps (h, frame_caps (format, 33, 17, TRUE));
  fail_unless (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)) != GST_FLOW_OK);
  assert_message (bus, GST_MESSAGE_ERROR, property, word, NULL);
  assert_no_message (bus, GST_MESSAGE_ERROR);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}

GST_START_TEST (only_8_bits_are_taken)
{
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_autoptr (GstCaps) deep = frame_caps ("P010_10LE", 33, 17, TRUE);
  g_autoptr (GstCaps) planar = frame_caps ("GBR", 33, 17, TRUE);

  fail_if (gst_pad_peer_query_accept_caps (h->srcpad, deep));
  fail_unless (gst_pad_peer_query_accept_caps (h->srcpad, planar));
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (bad_settings_are_refused)
{
  check_refused ("gpunormalize base=\"<1,2>\"", "RGB", "base", "2 values");
  check_refused ("gpunormalize base=\"<1,2,3>\"", "RGBA", "base", "3 values");
  check_refused ("gpunormalize scale=\"<1,2,3,4>\"", "NV12", "scale", "4 values");
  check_refused ("gpunormalize base=\"<>\"", "RGB", "base", "0 values");
  check_refused ("gpunormalize scale=\"<1,0,1>\" scale-is-stddev=true", "RGB", "scale", "epsilon");
  check_refused ("gpunormalize base=\"<1,two,3>\"", "RGB", "base", "\"two\"");
  check_refused ("gpunormalize base=\"<a>\"", "RGB", "base", "\"a\"");
  check_refused ("gpunormalize scale=\"<1e30>\" global-scale=1e30", "RGB", "scale", "finite");
  check_refused ("gpunormalize shift=1e39", "RGB", "shift", "to 3.40282e+38");
}
GST_END_TEST

/* While it plays: a warning, and frames go on as before. */
GST_START_TEST (bad_change_is_a_warning)
{
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_autoptr (GstBus) bus = watch_bus (h);

  set_params (h->element, &scaled, 3);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  check_frame (h, "RGB", 33, 17, &scaled, "before");

  set_array (h->element, "base", (double[]){1, 2}, 2);
  check_frame (h, "RGB", 33, 17, &scaled, "after a bad change");
  assert_message (bus, GST_MESSAGE_WARNING, "base", "2 values", NULL);
  check_frame (h, "RGB", 33, 17, &scaled, "once more");
  assert_no_message (bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);

  set_array (h->element, "base", (double[]){NAN, 2, 3}, 3);
  check_frame (h, "RGB", 33, 17, &scaled, "after a NaN");
  assert_message (bus, GST_MESSAGE_WARNING, "base", "nan", NULL);

  set_params (h->element, &stddev, 3);
  check_frame (h, "RGB", 33, 17, &stddev, "after a good change");
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
gpunormalize_suite (void)
{
  Suite *s = suite_create ("gpunormalize");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, every_format);
  tcase_add_test (tc, arrays_on_a_launch_line);
  tcase_add_test (tc, properties_read_back);
  tcase_add_test (tc, nothing_to_do_passes_frames);
  tcase_add_test (tc, in_place_only_where_nobody_looks);
  tcase_add_test (tc, changes_while_playing);
  tcase_add_test (tc, format_changes_in_mid_stream);
  tcase_add_test (tc, only_8_bits_are_taken);
  tcase_add_test (tc, bad_settings_are_refused);
  tcase_add_test (tc, an_error_is_posted_once);
  tcase_add_test (tc, bad_change_is_a_warning);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, gpunormalize_suite, __FILE__);
}
