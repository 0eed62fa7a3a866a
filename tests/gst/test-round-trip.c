/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What must come back as it was: turns and their inverses, formats that hold the same, crops that are downloaded.
 * Random sizes from 1x1, odd ones, padded rows; every format.
 */
#include "common.h"
#include "picture.h"

static const char *const turns[][2] = {{"identity", "identity"}, {"90r", "90l"},     {"180", "180"},
                                       {"90l", "90r"},           {"horiz", "horiz"}, {"vert", "vert"},
                                       {"ul-lr", "ul-lr"},       {"ur-ll", "ur-ll"}};

typedef struct {
  GstVideoInfo info;
  char *what;
  int pad;
} Shape;

/* A size of its own for each @turn: all that are small, and others. */
static Shape
random_shape (GRand *random, const char *format, guint turn)
{
  const int limit = turn % 3 == 0 ? 5 : turn % 3 == 1 ? 40 : 150;
  const int width = g_rand_int_range (random, 1, limit), height = g_rand_int_range (random, 1, limit);
  /* 16-bit samples do not lie at odd addresses. */
  Shape shape = {.pad = 2 * g_rand_int_range (random, 0, 9)};

  info_init (&shape.info, format, width, height);
  shape.what = g_strdup_printf ("%s, %dx%d, padded by %d", format, width, height, shape.pad);
  return shape;
}

static GstBuffer *
shape_frame (const Shape *shape, guint32 seed)
{
  return shape->pad ? frame_new_padded (&shape->info, seed, shape->pad) : frame_new (&shape->info, seed);
}

/* Fails unless @line gives back what it got. */
static void
check (const char *line, const Shape *shape, guint32 seed)
{
  GstHarness *h = gst_harness_new_parse (line);
  GstBuffer *buffer = shape_frame (shape, seed);
  g_autofree char *what = g_strdup_printf ("%s: %s", line, shape->what);
  g_autoptr (GstCaps) in =
      frame_caps (GST_VIDEO_INFO_NAME (&shape->info), shape->info.width, shape->info.height, FALSE);
  g_autoptr (GstCaps) out = NULL;
  g_autoptr (Picture) before = picture_read (&shape->info, buffer);
  g_autoptr (Picture) after = NULL;

  gst_harness_set_src_caps (h, gst_caps_ref (in));
  buffer = push_and_pull (h, buffer);
  out = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (gst_caps_is_equal (in, out), "%s: the caps have changed", what);
  after = picture_read (&shape->info, buffer);
  assert_pictures_equal (before, after, what);
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}

GST_START_TEST (turned_and_turned_back)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (1);

  for (guint i = 0; i < N_ALL_FORMATS * G_N_ELEMENTS (turns) * 3; i++) {
    const guint turn = i / N_ALL_FORMATS % G_N_ELEMENTS (turns);
    Shape shape = random_shape (random, all_formats[i % N_ALL_FORMATS], i / N_ALL_FORMATS / G_N_ELEMENTS (turns));
    g_autofree char *line =
        g_strdup_printf ("gpuupload ! gpuflip video-direction=%s ! gpuflip video-direction=%s ! gpudownload",
                         turns[turn][0], turns[turn][1]);

    check (line, &shape, i);
    g_free (shape.what);
  }
}
GST_END_TEST

/* A quarter turn inverts the shape of the pixels, and another one gives it back. */
GST_START_TEST (pixel_aspect_ratio_is_turned)
{
  GstHarness *h = gst_harness_new_parse ("gpuflip video-direction=90r");
  GstHarness *twice = gst_harness_new_parse ("gpuflip video-direction=90r ! gpuflip video-direction=ur-ll");
  const char *in = "video/x-raw(memory:GPUCache),format=NV12,width=720,height=576,framerate=25/1,"
                   "pixel-aspect-ratio=16/15,multiview-mode=mono,interlace-mode=progressive,colorimetry=bt601";
  g_autoptr (GstCaps) caps = NULL;
  g_autoptr (GstCaps) same = NULL;
  g_autoptr (GstCaps) expected = gst_caps_from_string (in);

  gst_harness_set_src_caps_str (h, in);
  caps = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (gst_caps_is_subset (caps, expected) == FALSE);
  gst_caps_set_simple (expected, "width", G_TYPE_INT, 576, "height", G_TYPE_INT, 720, "pixel-aspect-ratio",
                       GST_TYPE_FRACTION, 15, 16, NULL);
  fail_unless (gst_caps_is_subset (caps, expected));
  gst_harness_set_src_caps_str (twice, in);
  same = gst_pad_get_current_caps (twice->sinkpad);
  gst_caps_unref (expected);
  expected = gst_caps_from_string (in);
  fail_unless (gst_caps_is_subset (same, expected));
  gst_harness_teardown (h);
  gst_harness_teardown (twice);
}
GST_END_TEST

/* Formats that hold all that another one holds. */
GST_START_TEST (converted_and_converted_back)
{
  static const char *const ways[][2] = {
      {"RGB", "BGRA"},  {"RGB", "GBR"},   {"RGB", "xBGR"},  {"BGR", "RGBP"},  {"GBR", "ARGB"},       {"RGBP", "RGBx"},
      {"RGBA", "ABGR"}, {"BGRA", "ARGB"}, {"NV12", "I420"}, {"I420", "NV12"}, {"NV12", "P010_10LE"}, {"GRAY8", "RGB"},
  };
  g_autoptr (GRand) random = g_rand_new_with_seed (2);

  for (guint i = 0; i < G_N_ELEMENTS (ways) * 6; i++) {
    const guint way = i % G_N_ELEMENTS (ways);
    Shape shape = random_shape (random, ways[way][0], i / G_N_ELEMENTS (ways));
    g_autofree char *line =
        g_strdup_printf ("gpuupload ! gpuconvert ! video/x-raw(memory:GPUCache),format=%s ! gpuconvert ! "
                         "video/x-raw(memory:GPUCache),format=%s ! gpudownload",
                         ways[way][1], ways[way][0]);

    check (line, &shape, i);
    g_free (shape.what);
  }
}
GST_END_TEST

/* Upload of padded rows, and a rectangle in device memory: what is downloaded, or turned and turned back, is what was
 * cut out, its chroma from the sample that the first pixel lies in. */
GST_START_TEST (crops_in_device_memory)
{
  static const char *const lines[] = {"gpudownload",
                                      "gpuflip video-direction=90r ! gpuflip video-direction=90l ! gpudownload",
                                      "gpuflip video-direction=vert ! gpuflip video-direction=vert ! gpudownload"};
  g_autoptr (GRand) random = g_rand_new_with_seed (3);

  for (guint i = 0; i < N_ALL_FORMATS * G_N_ELEMENTS (lines) * 6; i++) {
    const char *line = lines[i / N_ALL_FORMATS % G_N_ELEMENTS (lines)];
    Shape shape = random_shape (random, all_formats[i % N_ALL_FORMATS], i);
    const int x = g_rand_int_range (random, 0, shape.info.width), y = g_rand_int_range (random, 0, shape.info.height);
    const int width = g_rand_int_range (random, 1, shape.info.width - x + 1);
    const int height = g_rand_int_range (random, 1, shape.info.height - y + 1);
    g_autofree char *what = g_strdup_printf ("%s: %dx%d at (%d, %d) of %s", line, width, height, x, y, shape.what);
    GstHarness *h = gst_harness_new_parse (line);
    GstBuffer *buffer = shape_frame (&shape, i);
    g_autoptr (Picture) whole = picture_read (&shape.info, buffer);
    g_autoptr (Picture) expected = picture_crop (whole, x, y, width, height);
    g_autoptr (Picture) got = NULL;
    GstVideoCropMeta *crop;
    GstVideoInfo info;

    buffer = gst_buffer_make_writable (frame_upload (&shape.info, buffer, NULL));
    crop = gst_buffer_add_video_crop_meta (buffer);
    crop->x = (guint)x;
    crop->y = (guint)y;
    crop->width = (guint)width;
    crop->height = (guint)height;
    info_init (&info, GST_VIDEO_INFO_NAME (&shape.info), width, height);
    gst_harness_set_src_caps (h, frame_caps (GST_VIDEO_INFO_NAME (&info), width, height, TRUE));
    buffer = push_and_pull (h, buffer);
    fail_if (gst_buffer_get_video_crop_meta (buffer));
    got = picture_read (&info, buffer);
    assert_pictures_equal (expected, got, what);
    gst_buffer_unref (buffer);
    gst_harness_teardown (h);
    g_free (shape.what);
  }
}
GST_END_TEST

static Suite *
round_trip_suite (void)
{
  Suite *s = suite_create ("round-trip");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, turned_and_turned_back);
  tcase_add_test (tc, pixel_aspect_ratio_is_turned);
  tcase_add_test (tc, converted_and_converted_back);
  tcase_add_test (tc, crops_in_device_memory);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, round_trip_suite, __FILE__);
}
