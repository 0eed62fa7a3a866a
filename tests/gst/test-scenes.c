/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pipelines as they are used: decoders in front, videocrop, test patterns, a tee to branches of different sizes, a
 * compositor behind; each against the same pipeline with GStreamer's own elements, or against one without the others.
 */
#include "colors.h"
#include "common.h"
#include "picture.h"
#include "play.h"

#include <math.h>

#define RGB_HERE "gpuconvert ! video/x-raw(memory:GPUCache),format=RGB ! gpudownload"
#define SINK "fakesink sync=false enable-last-sample=true name="

/* Returns: (transfer full): the last picture of a pipeline whose sink is called "sink". */
static Picture *
picture_of (const char *launch)
{
  GstElement *pipeline = play (launch);
  Picture *picture = last_picture (pipeline, "sink");

  stop (pipeline);
  return picture;
}

static gboolean
is_there (const char *factory)
{
  g_autoptr (GstElementFactory) found = gst_element_factory_find (factory);

  return found != NULL;
}

/* What decoders give, against the formulas, with the colorimetry and chroma-site that they say. */
static void
check_decoder (const char *source)
{
  g_autofree char *line = g_strdup_printf (
      "%s ! tee name=t t. ! queue ! " SINK "in t. ! queue ! gpuupload ! " RGB_HERE " ! " SINK "out", source);
  GstElement *pipeline = play (line);
  g_autoptr (GstSample) in_sample = last_sample (pipeline, "in");
  g_autoptr (GstSample) out_sample = last_sample (pipeline, "out");
  g_autofree char *colors = NULL;
  GstVideoInfo in_info, out_info;
  GstVideoFrame in, out;
  double worst = 0;

  fail_unless (gst_video_info_from_caps (&in_info, gst_sample_get_caps (in_sample)));
  fail_unless (gst_video_info_from_caps (&out_info, gst_sample_get_caps (out_sample)));
  fail_unless (GST_VIDEO_INFO_IS_YUV (&in_info) && GST_VIDEO_INFO_IS_RGB (&out_info));
  fail_unless (in_info.width == out_info.width && in_info.height == out_info.height);
  fail_unless (gst_video_frame_map (&in, &in_info, gst_sample_get_buffer (in_sample), GST_MAP_READ));
  fail_unless (gst_video_frame_map (&out, &out_info, gst_sample_get_buffer (out_sample), GST_MAP_READ));
  /* Of large pictures a part of the rows will do. */
  for (int y = 0; y < out_info.height; y += 1 + out_info.height / 200)
    for (int x = 0; x < out_info.width; x++) {
      double code[3] = {color_get (&in, 0, x, y), color_chroma_at (&in, 1, in_info.chroma_site, x, y),
                        color_chroma_at (&in, 2, in_info.chroma_site, x, y)};
      double exact[3];

      color_exact (&in_info, &out_info, code, exact);
      for (guint c = 0; c < 3; c++)
        worst = MAX (worst, fabs (color_get (&out, c, x, y) - exact[c]));
    }
  gst_video_frame_unmap (&in);
  gst_video_frame_unmap (&out);
  stop (pipeline);
  colors = gst_video_colorimetry_to_string (&in_info.colorimetry);
  g_print ("%s (%s): worst error %.4f levels, rounding included\n", source, colors, worst);
  fail_unless (worst < 0.7);
}

GST_START_TEST (jpeg)
{
  static const char *const patterns[] = {"smpte", "ball", "circular", "gradient"};

  for (guint i = 0; i < G_N_ELEMENTS (patterns); i++)
    for (int odd = 0; odd < 2; odd++) {
      g_autofree char *source = g_strdup_printf (
          "videotestsrc num-buffers=3 pattern=%s ! video/x-raw,format=I420,width=%d,height=%d ! jpegenc "
          "quality=95 ! jpegdec",
          patterns[i], odd ? 321 : 320, odd ? 181 : 240);

      check_decoder (source);
    }
}
GST_END_TEST

/* Of Debian's package forensics-samples-files, which tests/run installs. */
GST_START_TEST (photograph)
{
  const char *path = "/usr/share/forensics-samples/original-files/pic1/IMG_1054.JPG";
  g_autofree char *source = g_strdup_printf ("filesrc location=%s ! jpegdec", path);

  if (g_file_test (path, G_FILE_TEST_EXISTS))
    check_decoder (source);
  else
    g_print ("there is no %s\n", path);
}
GST_END_TEST

GST_START_TEST (h264)
{
  static const char *const decoders[] = {"openh264dec", "avdec_h264"};

  for (guint i = 0; i < G_N_ELEMENTS (decoders); i++) {
    g_autofree char *source = g_strdup_printf ("videotestsrc num-buffers=12 pattern=smpte ! "
                                               "video/x-raw,format=I420,width=322,height=178 ! openh264enc ! %s",
                                               decoders[i]);

    if (is_there ("openh264enc") && is_there (decoders[i]))
      check_decoder (source);
    else
      g_print ("there is no openh264enc, or no %s\n", decoders[i]);
  }
}
GST_END_TEST

/* Patterns of the test source go through the whole chain as its copy in memory does through the same elements. */
GST_START_TEST (patterns)
{
  static const char *const names[] = {"smpte",      "snow",     "white",  "checkers-8",
                                      "zone-plate", "pinwheel", "spokes", "blink"};

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const char *format = all_formats[i * 3 % N_TEST_FORMATS];
    g_autofree char *here = g_strdup_printf (
        "videotestsrc num-buffers=4 pattern=%s ! video/x-raw,format=%s,width=160,height=90 ! gpuupload ! "
        "gpuflip video-direction=180 ! gpuconvert ! gpudownload ! " SINK "sink",
        names[i], format);
    g_autofree char *there =
        g_strdup_printf ("videotestsrc num-buffers=4 pattern=%s ! video/x-raw,format=%s,width=160,height=90 ! "
                         "videoflip video-direction=180 ! " SINK "sink",
                         names[i], format);
    g_autoptr (Picture) ours = picture_of (here);
    g_autoptr (Picture) theirs = picture_of (there);

    if (strcmp (names[i], "snow")) /* it is never the same */
      assert_pictures_equal (theirs, ours, names[i]);
  }
}
GST_END_TEST

/* videocrop leaves a rectangle as a meta where it may, in system memory and on the device, else it copies: odd
 * coordinates, too. */
GST_START_TEST (videocrop)
{
  static const char *const formats[] = {"NV12", "I420", "RGB", "BGRA", "GRAY8"};
  static const int edges[][4] = {{3, 5, 8, 2}, {4, 2, 7, 1}, {0, 1, 0, 0}};
  static const char *const works[] = {"gpudownload", "gpuflip video-direction=90l ! gpudownload",
                                      "gpuconvert ! video/x-raw(memory:GPUCache),format=RGBA ! gpudownload",
                                      "gpuresize ! video/x-raw(memory:GPUCache),width=70,height=50 ! gpudownload"};

  for (guint i = 0; i < G_N_ELEMENTS (formats) * G_N_ELEMENTS (edges) * G_N_ELEMENTS (works); i++) {
    const int *edge = edges[i / G_N_ELEMENTS (formats) % G_N_ELEMENTS (edges)];
    const char *work = works[i / G_N_ELEMENTS (formats) / G_N_ELEMENTS (edges)];
    g_autofree char *source = g_strdup_printf ("videotestsrc num-buffers=2 pattern=zone-plate kx2=20 ky2=20 ! "
                                               "video/x-raw,format=%s,width=129,height=97",
                                               formats[i % G_N_ELEMENTS (formats)]);
    g_autofree char *crop =
        g_strdup_printf ("videocrop left=%d top=%d right=%d bottom=%d", edge[0], edge[1], edge[2], edge[3]);
    g_autofree char *copied =
        g_strdup_printf ("%s ! %s ! identity drop-allocation=true ! gpuupload ! %s ! " SINK "sink", source, crop, work);
    g_autofree char *meta = g_strdup_printf ("%s ! %s ! gpuupload ! %s ! " SINK "sink", source, crop, work);
    g_autofree char *device = g_strdup_printf ("%s ! gpuupload ! %s ! %s ! " SINK "sink", source, crop, work);
    g_autoptr (Picture) expected = picture_of (copied);
    g_autoptr (Picture) from_host = picture_of (meta);
    g_autoptr (Picture) from_device = picture_of (device);

    assert_pictures_equal (expected, from_host, meta);
    /* There gpuresize knows where chroma is. */
    if (strstr (work, "gpuresize") && (edge[0] % 2 || edge[1] % 2)) {
      picture_keep_planes (from_device, 1);
      picture_keep_planes (expected, 1);
    }
    assert_pictures_equal (expected, from_device, device);
  }
}
GST_END_TEST

GST_START_TEST (tee_to_two_sizes)
{
  const char *source = "videotestsrc num-buffers=8 ! video/x-raw,format=I420,width=320,height=180";
  const char *large = "gpuresize method=lanczos ! video/x-raw(memory:GPUCache),width=400,height=225";
  const char *small = "gpuresize border-color=0xff727272 ! "
                      "video/x-raw(memory:GPUCache),width=96,height=96,pixel-aspect-ratio=1/1 ! " RGB_HERE;
  g_autofree char *both = g_strdup_printf ("%s ! gpuupload ! tee name=t t. ! queue ! %s ! gpudownload ! " SINK "one "
                                           "t. ! queue ! %s ! " SINK "two",
                                           source, large, small);
  g_autofree char *only_large = g_strdup_printf ("%s ! gpuupload ! %s ! gpudownload ! " SINK "sink", source, large);
  g_autofree char *only_small = g_strdup_printf ("%s ! gpuupload ! %s ! " SINK "sink", source, small);
  g_autoptr (Picture) one = picture_of (only_large);
  g_autoptr (Picture) two = picture_of (only_small);

  for (int i = 0; i < 5; i++) {
    GstElement *pipeline = play (both);
    g_autoptr (Picture) got_one = last_picture (pipeline, "one");
    g_autoptr (Picture) got_two = last_picture (pipeline, "two");

    assert_pictures_equal (one, got_one, "the large one");
    assert_pictures_equal (two, got_two, "the small one");
    stop (pipeline);
  }
  fail_unless (plane_at (&two->plane[0], 0, 0)[0] == 0x72 && plane_at (&two->plane[0], 95, 95)[2] == 0x72);
}
GST_END_TEST

/* Two pictures side by side. */
GST_START_TEST (compositor)
{
  const char *left =
      "videotestsrc num-buffers=4 pattern=smpte ! video/x-raw,format=RGBA,width=160,height=120,framerate=30/1 ! "
      "gpuupload ! gpuflip video-direction=horiz ! gpuresize method=bicubic ! "
      "video/x-raw(memory:GPUCache),width=80,height=60 ! gpudownload";
  const char *right =
      "videotestsrc num-buffers=4 pattern=ball ! video/x-raw,format=NV12,width=160,height=120,framerate=30/1 ! "
      "gpuupload ! gpuresize ! video/x-raw(memory:GPUCache),width=80,height=60 ! gpuconvert ! "
      "video/x-raw(memory:GPUCache),format=RGBA ! gpudownload";
  g_autofree char *line =
      g_strdup_printf ("compositor name=c sink_0::xpos=0 sink_1::xpos=80 ! video/x-raw,format=RGBA ! " SINK
                       "sink %s ! c.sink_0 %s ! c.sink_1",
                       left, right);
  g_autofree char *only_left = g_strdup_printf ("%s ! " SINK "sink", left);
  g_autofree char *only_right = g_strdup_printf ("%s ! " SINK "sink", right);
  g_autoptr (Picture) all = picture_of (line);
  g_autoptr (Picture) one = picture_of (only_left);
  g_autoptr (Picture) two = picture_of (only_right);
  g_autoptr (Picture) at_left = picture_crop (all, 0, 0, 80, 60);
  g_autoptr (Picture) at_right = picture_crop (all, 80, 0, 80, 60);

  fail_unless (all->plane[0].width == 160 && all->plane[0].height == 60);
  assert_pictures_equal (one, at_left, "left");
  assert_pictures_equal (two, at_right, "right");
}
GST_END_TEST

static Suite *
scenes_suite (void)
{
  Suite *s = suite_create ("scenes");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, jpeg);
  tcase_add_test (tc, photograph);
  tcase_add_test (tc, h264);
  tcase_add_test (tc, patterns);
  tcase_add_test (tc, videocrop);
  tcase_add_test (tc, tee_to_two_sizes);
  tcase_add_test (tc, compositor);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, scenes_suite, __FILE__);
}
