/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpureformat: layouts and element types against a plain reference, there and back, and pictures as tensors.
 */
#include "common.h"
#include "picture.h"
#include "tensor.h"

#include <math.h>

#define GPU_TENSOR "other/tensors(memory:GPUCache)"

static const char *const types[] = {"uint8", "float16", "float32"};

/* Returns: (transfer full): a harness of gpureformat that makes @to of @from. */
static GstHarness *
reformatter (const Tensor *from, const Tensor *to)
{
  GstHarness *h = gst_harness_new ("gpureformat");

  gst_harness_set_sink_caps (h, tensor_caps (to, TRUE));
  gst_harness_set_src_caps (h, tensor_caps (from, TRUE));
  return h;
}

/* What single precision makes of a number; each step rounds. */
static double
scaled (double value, float scale, float offset)
{
  volatile float step = (float)value * scale;

  step = step + offset;
  return (double)step;
}

static void
check_elements (const Tensor *from, const Tensor *to, const guint8 *in, const guint8 *out, double scale, double offset)
{
  for (int c = 0; c < from->channels; c++)
    for (int y = 0; y < from->height; y++)
      for (int x = 0; x < from->width; x++) {
        const double value = scaled (tensor_at (from, in, c, x, y), (float)scale, (float)offset);
        const double got = tensor_at (to, out, c, x, y);
        double wanted = value;

        if (g_str_equal (to->type, "uint8"))
          wanted = CLAMP (nearbyint (value), 0, 255);
        if (g_str_equal (to->type, "float16") ? !(fabs (got - value) <= half_unit (value) / 2) : got != wanted)
          ck_abort_msg ("%s %s to %s %s, channel %d at (%d, %d): %g, not %g", from->type, from->planar ? "CHW" : "HWC",
                        to->type, to->planar ? "CHW" : "HWC", c, x, y, got, wanted);
      }
}

static void
check (const Tensor *from, const Tensor *to, double scale, double offset)
{
  GstHarness *h = reformatter (from, to);
  GstBuffer *buffer = tensor_new (from, 11);
  g_autofree guint8 *in = tensor_read (from, buffer);
  g_autofree guint8 *out = NULL;

  g_object_set (h->element, "scale", scale, "offset", offset, NULL);
  buffer = push_and_pull (h, tensor_upload (from, buffer));
  out = tensor_read (to, buffer);
  check_elements (from, to, in, out, scale, offset);
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}

GST_START_TEST (every_layout_and_type)
{
  static const int shapes[][3] = {{3, 13, 5}, {1, 9, 7}, {2, 5, 3}, {4, 64, 6}};

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (guint from = 0; from < G_N_ELEMENTS (types); from++)
      for (guint to = 0; to < G_N_ELEMENTS (types); to++)
        for (int layouts = 0; layouts < 4; layouts++) {
          const Tensor source = {types[from], layouts & 1, shapes[i][0], shapes[i][1], shapes[i][2]};
          Tensor result = source;

          result.type = types[to];
          result.planar = layouts >> 1;
          check (&source, &result, 1, 0);
          if (i > 0)
            continue;
          check (&source, &result, -0.37, 100.3);
          check (&source, &result, 1.5, 0);
          check (&source, &result, 1, -3.25);
        }
}
GST_END_TEST

GST_START_TEST (there_and_back_changes_nothing)
{
  for (guint type = 0; type < G_N_ELEMENTS (types); type++) {
    const Tensor tensor = {types[type], FALSE, 3, 33, 17};
    GstHarness *h =
        gst_harness_new_parse ("gpureformat layout=chw ! gpureformat layout=hwc ! gpureformat layout=chw ! gpureformat "
                               "layout=hwc");
    GstBuffer *buffer = tensor_new (&tensor, 5);
    g_autofree guint8 *in = tensor_read (&tensor, buffer);
    g_autofree guint8 *out = NULL;

    gst_harness_set_src_caps (h, tensor_caps (&tensor, TRUE));
    buffer = push_and_pull (h, tensor_upload (&tensor, buffer));
    out = tensor_read (&tensor, buffer);
    fail_unless (!memcmp (in, out, tensor_bytes (&tensor)));
    gst_buffer_unref (buffer);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* Every byte value to a half or float and back. */
GST_START_TEST (bytes_survive_other_types)
{
  static const Tensor tensor = {"uint8", TRUE, 3, 33, 17};

  for (guint type = 1; type < G_N_ELEMENTS (types); type++) {
    g_autofree char *launch = g_strdup_printf ("gpureformat scale=0.00390625 ! " GPU_TENSOR ",types=%s ! "
                                               "gpureformat layout=hwc scale=256 ! " GPU_TENSOR ",types=uint8 ! "
                                               "gpureformat layout=chw",
                                               types[type]);
    GstHarness *h = gst_harness_new_parse (launch);
    GstBuffer *buffer = tensor_new (&tensor, 5);
    g_autofree guint8 *in = tensor_read (&tensor, buffer);
    g_autofree guint8 *out = NULL;

    gst_harness_set_src_caps (h, tensor_caps (&tensor, TRUE));
    buffer = push_and_pull (h, tensor_upload (&tensor, buffer));
    out = tensor_read (&tensor, buffer);
    fail_unless (!memcmp (in, out, tensor_bytes (&tensor)));
    gst_buffer_unref (buffer);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* Pictures. */

static guint8 *
sample (const Picture *picture, int channel, int x, int y)
{
  const char *name = gst_video_format_to_string (picture->format);

  if (picture->n_planes > 1)
    return plane_at (&picture->plane[strchr (name, "RGBA"[channel]) - name], x, y);
  if (picture->plane[0].bytes == 1)
    return plane_at (&picture->plane[0], x, y);
  return plane_at (&picture->plane[0], x, y) + (strchr (name, "RGBA"[channel]) - name);
}

static const char *const formats[] = {"GRAY8", "RGB", "BGR",  "RGBx", "BGRx", "xRGB", "xBGR",
                                      "RGBP",  "GBR", "RGBA", "BGRA", "ARGB", "ABGR"};

static int
channels_of (const char *format)
{
  return g_str_equal (format, "GRAY8") ? 1 : strchr (format, 'A') ? 4 : 3;
}

GST_START_TEST (pictures_are_tensors)
{
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    for (int planar = 0; planar < 2; planar++) {
      const Tensor tensor = {"uint8", planar, channels_of (formats[i]), 33, 17};
      GstHarness *there = gst_harness_new ("gpureformat"), *back = gst_harness_new ("gpureformat");
      g_autoptr (Picture) in = NULL;
      g_autoptr (Picture) out = NULL;
      g_autofree guint8 *data = NULL;
      GstVideoInfo info;
      GstBuffer *buffer;

      info_init (&info, formats[i], 33, 17);
      buffer = frame_new (&info, i);
      in = picture_read (&info, buffer);
      gst_harness_set_sink_caps (there, tensor_caps (&tensor, TRUE));
      gst_harness_set_src_caps (there, frame_caps (formats[i], 33, 17, TRUE));
      buffer = push_and_pull (there, frame_upload (&info, buffer, NULL));
      data = tensor_read (&tensor, buffer);
      for (int c = 0; c < tensor.channels; c++)
        for (int y = 0; y < 17; y++)
          for (int x = 0; x < 33; x++)
            if (data[tensor_index (&tensor, c, x, y)] != *sample (in, c, x, y))
              ck_abort_msg ("%s %s: channel %d at (%d, %d) is %d, not %d", formats[i], planar ? "CHW" : "HWC", c, x, y,
                            data[tensor_index (&tensor, c, x, y)], *sample (in, c, x, y));

      gst_harness_set_sink_caps (back, frame_caps (formats[i], 33, 17, TRUE));
      gst_harness_set_src_caps (back, tensor_caps (&tensor, TRUE));
      buffer = push_and_pull (back, buffer);
      out = picture_read (&info, buffer);
      for (int c = 0; c < tensor.channels; c++)
        for (int y = 0; y < 17; y++)
          for (int x = 0; x < 33; x++)
            fail_unless_equals_int (*sample (out, c, x, y), *sample (in, c, x, y));
      gst_buffer_unref (buffer);
      gst_harness_teardown (there);
      gst_harness_teardown (back);
    }
}
GST_END_TEST

GST_START_TEST (packed_and_planar_pictures)
{
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    for (guint k = 0; k < G_N_ELEMENTS (formats); k++) {
      g_autofree char *sink_caps = g_strdup_printf ("video/x-raw(memory:GPUCache),format=%s", formats[k]);
      g_autoptr (Picture) in = NULL;
      g_autoptr (Picture) out = NULL;
      GstVideoInfo info, out_info;
      GstBuffer *buffer;
      GstHarness *h;

      if (channels_of (formats[i]) != channels_of (formats[k]))
        continue;
      h = gst_harness_new ("gpureformat");
      info_init (&info, formats[i], 33, 17);
      info_init (&out_info, formats[k], 33, 17);
      buffer = frame_new (&info, i);
      in = picture_read (&info, buffer);
      gst_harness_set_sink_caps_str (h, sink_caps);
      gst_harness_set_src_caps (h, frame_caps (formats[i], 33, 17, TRUE));
      buffer = push_and_pull (h, frame_upload (&info, buffer, NULL));
      out = picture_read (&out_info, buffer);
      for (int c = 0; c < channels_of (formats[i]); c++)
        for (int y = 0; y < 17; y++)
          for (int x = 0; x < 33; x++)
            fail_unless_equals_int (*sample (out, c, x, y), *sample (in, c, x, y));
      gst_buffer_unref (buffer);
      gst_harness_teardown (h);
    }
}
GST_END_TEST

/* What comes out where caps leave the choice. */
static void
check_choice (const char *launch, GstCaps *caps, GstBuffer *buffer, const char *sink_caps, const char *expected)
{
  GstHarness *h = gst_harness_new_parse (launch);
  g_autoptr (GstCaps) wanted = gst_caps_from_string (expected);
  g_autoptr (GstCaps) got = NULL;

  gst_harness_set_sink_caps_str (h, sink_caps);
  gst_harness_set_src_caps (h, caps);
  gst_buffer_unref (push_and_pull (h, buffer));
  got = gst_pad_get_current_caps (h->sinkpad);
  if (!gst_caps_is_subset (got, wanted)) {
    g_autofree char *text = gst_caps_to_string (got);

    ck_abort_msg ("%s came of %s, not %s", text, launch, expected);
  }
  gst_harness_teardown (h);
}

GST_START_TEST (it_changes_as_little_as_it_may)
{
  static const char *const any = "video/x-raw(memory:GPUCache); " GPU_TENSOR;
  static const Tensor half = {"float16", FALSE, 3, 33, 17};
  static const Tensor floats = {"float32", TRUE, 3, 33, 17};
  GstVideoInfo info;

  info_init (&info, "BGRx", 33, 17);
  check_choice ("gpureformat", tensor_caps (&half, TRUE), tensor_upload (&half, tensor_new (&half, 1)), any,
                GPU_TENSOR ",types=float16,dimensions=(string)3:33:17:1");
  check_choice ("gpureformat layout=chw", tensor_caps (&half, TRUE), tensor_upload (&half, tensor_new (&half, 1)), any,
                GPU_TENSOR ",types=float16,dimensions=(string)33:17:3:1");
  check_choice ("gpureformat", tensor_caps (&floats, TRUE), tensor_upload (&floats, tensor_new (&floats, 1)),
                GPU_TENSOR ",types={float16,uint8}", GPU_TENSOR ",types=uint8,dimensions=(string)33:17:3:1");
  check_choice ("gpureformat", frame_caps ("BGRx", 33, 17, TRUE), frame_upload (&info, frame_new (&info, 1), NULL), any,
                "video/x-raw(memory:GPUCache),format=BGRx");
  check_choice ("gpureformat layout=chw", frame_caps ("BGRx", 33, 17, TRUE),
                frame_upload (&info, frame_new (&info, 1), NULL), any,
                "video/x-raw(memory:GPUCache),format={RGBP,GBR}");
  check_choice ("gpureformat layout=chw", frame_caps ("BGRx", 33, 17, TRUE),
                frame_upload (&info, frame_new (&info, 1), NULL), GPU_TENSOR,
                GPU_TENSOR ",types=uint8,dimensions=(string)33:17:3:1");
}
GST_END_TEST

GST_START_TEST (nothing_to_do_passes_tensors)
{
  static const Tensor tensor = {"float32", TRUE, 3, 33, 17};
  GstHarness *h = gst_harness_new ("gpureformat");
  GstBuffer *in = tensor_upload (&tensor, tensor_new (&tensor, 1));

  gst_harness_set_src_caps (h, tensor_caps (&tensor, TRUE));
  fail_unless (push_and_pull (h, in) == in);
  gst_buffer_unref (in);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Before the first frame: the element stops, and says which property it was. */
static void
check_stop (const char *launch, const char *property, const char *word)
{
  GstHarness *h = gst_harness_new_parse (launch);
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_sink_caps_str (h, GPU_TENSOR);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  fail_unless (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)) != GST_FLOW_OK);
  assert_message (bus, GST_MESSAGE_ERROR, property, word, NULL);
  assert_no_message (bus, GST_MESSAGE_ERROR);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}

GST_START_TEST (bad_settings_stop_the_element)
{
  check_stop ("gpureformat scale=0.5", "scale", "gpunormalize");
  check_stop ("gpureformat offset=1", "offset", "gpunormalize");
  check_stop ("gpureformat scale=nan", "scale", "nan");
  check_stop ("gpureformat offset=inf", "offset", "finite");
  check_stop ("gpureformat scale=1e300", "scale", "1e+300");
  check_stop ("gpureformat scale=1e39", "scale", "to 3.40282e+38");
}
GST_END_TEST

/* What cannot be made is not offered: a float of a picture, another number of channels, a size. */
GST_START_TEST (what_cannot_be_is_refused)
{
  static const char *const sink_caps[] = {
      GPU_TENSOR ",types=float32",
      GPU_TENSOR ",dimensions=(string)4:33:17",
      GPU_TENSOR ",dimensions=(string)3:33:18",
      "video/x-raw(memory:GPUCache),format={GRAY8,RGBA,NV12}",
      "video/x-raw(memory:GPUCache),width=34",
  };

  for (guint i = 0; i < G_N_ELEMENTS (sink_caps); i++) {
    GstHarness *h = gst_harness_new ("gpureformat");
    GstVideoInfo info;

    info_init (&info, "RGB", 33, 17);
    gst_harness_set_sink_caps_str (h, sink_caps[i]);
    gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
    fail_unless_equals_int (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)),
                            GST_FLOW_NOT_NEGOTIATED);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* While it plays: in and out of passthrough, and a bad value is a warning. */
GST_START_TEST (settings_change_while_playing)
{
  static const Tensor tensor = {"float32", TRUE, 3, 33, 17};
  static const double scales[] = {1, 2, 1, NAN, 0.25};
  GstHarness *h = gst_harness_new ("gpureformat");
  g_autoptr (GstBus) bus = watch_bus (h);
  GstBuffer *frame = tensor_new (&tensor, 3);
  g_autofree guint8 *in = tensor_read (&tensor, frame);

  frame = tensor_upload (&tensor, frame);
  gst_harness_set_src_caps (h, tensor_caps (&tensor, TRUE));
  for (guint i = 0; i < G_N_ELEMENTS (scales); i++) {
    GstBuffer *buffer;

    g_object_set (h->element, "scale", scales[i], NULL);
    for (int k = 0; k < 2; k++) {
      g_autofree guint8 *again = NULL;

      buffer = push_and_pull (h, gst_buffer_ref (frame));
      again = tensor_read (&tensor, buffer);
      check_elements (&tensor, &tensor, in, again, isnan (scales[i]) ? 1 : scales[i], 0);
      gst_buffer_unref (buffer);
    }
    if (isnan (scales[i]))
      assert_message (bus, GST_MESSAGE_WARNING, "scale", "nan", NULL);
    assert_no_message (bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  }
  gst_buffer_unref (frame);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (caps_change_in_mid_stream)
{
  GstHarness *h = gst_harness_new_parse ("gpureformat layout=chw");

  for (int i = 0; i < 8; i++) {
    const Tensor from = {types[i % 3], i % 2, 1 + i % 4, 20 + i, 17};
    Tensor to = from;
    GstBuffer *buffer = tensor_new (&from, (guint)i);
    g_autofree guint8 *in = tensor_read (&from, buffer);
    g_autofree guint8 *out = NULL;

    to.planar = TRUE;
    gst_harness_set_src_caps (h, tensor_caps (&from, TRUE));
    buffer = push_and_pull (h, tensor_upload (&from, buffer));
    out = tensor_read (&to, buffer);
    check_elements (&from, &to, in, out, 1, 0);
    gst_buffer_unref (buffer);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
gpureformat_suite (void)
{
  Suite *s = suite_create ("gpureformat");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, every_layout_and_type);
  tcase_add_test (tc, there_and_back_changes_nothing);
  tcase_add_test (tc, bytes_survive_other_types);
  tcase_add_test (tc, pictures_are_tensors);
  tcase_add_test (tc, packed_and_planar_pictures);
  tcase_add_test (tc, it_changes_as_little_as_it_may);
  tcase_add_test (tc, nothing_to_do_passes_tensors);
  tcase_add_test (tc, bad_settings_stop_the_element);
  tcase_add_test (tc, what_cannot_be_is_refused);
  tcase_add_test (tc, settings_change_while_playing);
  tcase_add_test (tc, caps_change_in_mid_stream);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, gpureformat_suite, __FILE__);
}
