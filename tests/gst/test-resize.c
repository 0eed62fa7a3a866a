/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpuresize: against a plain reference; which size it chooses; metas and events that go with the picture.
 */
#include "common.h"
#include "picture.h"

#include <gpucache/gstgpucache.h>

#include <math.h>

/* The position of sample i of n in a source of m, in 1/4096, as the library's documentation says: halves up, clamped.
 */
static gint64
position (int i, int n, int m)
{
  gint64 at = (gint64)floor (((i + 0.5L) * m / n - 0.5L) * 4096 + 0.5L);

  return CLAMP (at, 0, (gint64)(m - 1) * 4096);
}

static Picture *
reference (const Picture *in, int width, int height, gboolean bilinear)
{
  Picture *out = picture_new (in->format, width, height);

  for (int p = 0; p < in->n_planes; p++) {
    const Plane *from = &in->plane[p], *to = &out->plane[p];

    for (int y = 0; y < to->height; y++)
      for (int x = 0; x < to->width; x++)
        for (int k = 0; k < to->bytes; k++) {
          if (!bilinear) {
            int sx = (int)floor ((x + 0.5L) * from->width / to->width);
            int sy = (int)floor ((y + 0.5L) * from->height / to->height);

            plane_at (to, x, y)[k] = plane_at (from, sx, sy)[k];
          } else {
            gint64 px = position (x, to->width, from->width), py = position (y, to->height, from->height);
            int x0 = (int)(px >> 12), y0 = (int)(py >> 12);
            int x1 = MIN (x0 + 1, from->width - 1), y1 = MIN (y0 + 1, from->height - 1);
            gint64 wx = px & 4095, wy = py & 4095;
            gint64 sum = (plane_at (from, x0, y0)[k] * (4096 - wx) + plane_at (from, x1, y0)[k] * wx) * (4096 - wy) +
                         (plane_at (from, x0, y1)[k] * (4096 - wx) + plane_at (from, x1, y1)[k] * wx) * wy;

            plane_at (to, x, y)[k] = (guint8)((sum + (1 << 23)) >> 24);
          }
        }
  }
  return out;
}

static void
set_sink_size (GstHarness *h, const char *format, int width, int height)
{
  gst_harness_set_sink_caps (h, frame_caps (format, width, height, TRUE));
}

static void
check (const char *format, int width, int height, int to_width, int to_height, gboolean bilinear)
{
  GstHarness *h = gst_harness_new ("gpuresize");
  g_autofree char *what = g_strdup_printf ("%s %s %dx%d to %dx%d", bilinear ? "bilinear" : "nearest", format, width,
                                           height, to_width, to_height);
  g_autoptr (Picture) in = NULL;
  g_autoptr (Picture) expected = NULL;
  g_autoptr (Picture) got = NULL;
  GstVideoInfo info, out_info;
  GstBuffer *buffer;

  gst_util_set_object_arg (G_OBJECT (h->element), "method", bilinear ? "bilinear" : "nearest-neighbour");
  g_object_set (h->element, "antialias", FALSE, "add-borders", FALSE, NULL);
  info_init (&info, format, width, height);
  info_init (&out_info, format, to_width, to_height);
  {
    GstCaps *sink = frame_caps (format, to_width, to_height, TRUE);

    gst_structure_remove_field (gst_caps_get_structure (sink, 0), "pixel-aspect-ratio");
    gst_harness_set_caps (h, frame_caps (format, width, height, TRUE), sink);
  }
  buffer = frame_new (&info, 31);
  in = picture_read (&info, buffer);
  expected = reference (in, to_width, to_height, bilinear);
  buffer = push_and_pull (h, frame_upload (&info, buffer, NULL));
  got = picture_read (&out_info, buffer);
  assert_pictures_equal (expected, got, what);
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}

GST_START_TEST (every_format_and_size)
{
  static const int sizes[][4] = {{1, 1, 7, 5},     {7, 5, 1, 1},     {1, 9, 3, 4},      {33, 17, 64, 48},
                                 {64, 48, 33, 17}, {33, 17, 33, 40}, {100, 80, 50, 40}, {16, 16, 15, 17}};

  for (guint i = 0; i < N_TEST_FORMATS; i++)
    for (guint k = 0; k < G_N_ELEMENTS (sizes); k++)
      for (int bilinear = 0; bilinear < 2; bilinear++)
        check (test_formats[i], sizes[k][0], sizes[k][1], sizes[k][2], sizes[k][3], bilinear);
  for (int bilinear = 0; bilinear < 2; bilinear++) {
    check ("NV12", 641, 481, 320, 241, bilinear);
    check ("RGB", 320, 240, 641, 481, bilinear);
  }
}
GST_END_TEST

GST_START_TEST (crop_is_what_is_scaled)
{
  GstHarness *h = gst_harness_new ("gpuresize");
  g_autoptr (Picture) whole = NULL;
  g_autoptr (Picture) part = NULL;
  g_autoptr (Picture) expected = NULL;
  g_autoptr (Picture) got = NULL;
  GstVideoInfo info, out_info;
  GstVideoCropMeta *crop;
  GstBuffer *buffer;

  g_object_set (h->element, "antialias", FALSE, NULL);
  info_init (&info, "NV12", 65, 49);
  info_init (&out_info, "NV12", 40, 30);
  buffer = frame_new (&info, 4);
  whole = picture_read (&info, buffer);
  part = picture_crop (whole, 10, 4, 31, 23);
  expected = reference (part, 40, 30, TRUE);
  buffer = gst_buffer_make_writable (frame_upload (&info, buffer, NULL));
  crop = gst_buffer_add_video_crop_meta (buffer);
  crop->x = 10;
  crop->y = 4;
  crop->width = 31;
  crop->height = 23;
  gst_harness_set_caps (h, frame_caps ("NV12", 31, 23, TRUE),
                        gst_caps_from_string ("video/x-raw(memory:GPUCache),width=40,height=30"));
  buffer = push_and_pull (h, buffer);
  fail_if (gst_buffer_get_video_crop_meta (buffer));
  got = picture_read (&out_info, buffer);
  assert_pictures_equal (expected, got, "crop");
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}
GST_END_TEST

/* What @factory makes of caps when downstream allows @sink. */
static void
check_choice_of (const char *factory, const char *feature, const char *src, const char *sink, const char *expected)
{
  GstHarness *h = gst_harness_new (factory);
  g_autofree char *src_caps = g_strdup_printf ("video/x-raw%s,format=RGB,framerate=30/1,%s", feature, src);
  g_autofree char *sink_caps = g_strdup_printf ("video/x-raw%s,%s", feature, sink);
  g_autofree char *expected_text = g_strdup_printf ("video/x-raw%s,%s", feature, expected);
  g_autoptr (GstCaps) expected_caps = gst_caps_from_string (expected_text);
  g_autoptr (GstCaps) got = NULL;
  g_autofree char *text = NULL;

  gst_harness_set_caps (h, gst_caps_from_string (src_caps), gst_caps_from_string (sink_caps));
  got = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (got != NULL, "%s: %s to %s was refused", factory, src, sink);
  text = gst_caps_to_string (got);
  fail_unless (gst_caps_is_subset (got, expected_caps), "%s: %s to %s became %s", factory, src, sink, text);
  gst_harness_teardown (h);
}

static void
check_choice (const char *src, const char *sink, const char *expected)
{
  check_choice_of ("gpuresize", "(memory:GPUCache)", src, sink, expected);
  check_choice_of ("videoscale", "", src, sink, expected);
}

GST_START_TEST (sizes_that_are_chosen)
{
  const char *par = "pixel-aspect-ratio=1/1";
  g_autofree char *source = g_strdup_printf ("width=640,height=480,%s", par);

  check_choice (source, "width=[1,2000]", "width=640,height=480,pixel-aspect-ratio=1/1");
  check_choice (source, "width=320,height=240", "width=320,height=240,pixel-aspect-ratio=1/1");
  /* Sizes are fixed, so the shape of the pixels gives way, as in videoscale. */
  check_choice (source, "width=640,height=240", "width=640,height=240,pixel-aspect-ratio=1/2");
  check_choice (source, "width=320", "width=320,height=480,pixel-aspect-ratio=2/1");
  check_choice (source, "height=240", "width=640,height=240,pixel-aspect-ratio=1/2");
  /* It is fixed, so the other size gives way. */
  check_choice (source, "width=320,pixel-aspect-ratio=1/1", "width=320,height=240");
  check_choice (source, "height=120,pixel-aspect-ratio=1/1", "width=160,height=120");
  check_choice (source, "width=[1,320],pixel-aspect-ratio=1/1", "width=320,height=240");
  check_choice (source, "height=[1,100],pixel-aspect-ratio=1/1", "width=133,height=100");
  check_choice ("width=720,height=576,pixel-aspect-ratio=16/15", "pixel-aspect-ratio=1/1", "width=768,height=576");
  check_choice ("width=720,height=576,pixel-aspect-ratio=16/15", "height=288,pixel-aspect-ratio=1/1",
                "width=384,height=288");
  /* The height stays, even where the width's rounding distorts more than the height's would. (videoscale multiplies by
   * the new shape of pixels here, where it should divide.) */
  check_choice_of ("gpuresize", "(memory:GPUCache)", "width=645,height=483,pixel-aspect-ratio=1/1",
                   "pixel-aspect-ratio=16/15", "width=605,height=483");
  /* Everything is fixed: the picture is distorted. */
  check_choice (source, "width=100,height=100,pixel-aspect-ratio=1/1", "width=100,height=100,pixel-aspect-ratio=1/1");
  check_choice ("width=1,height=2000,pixel-aspect-ratio=1/1", "height=1,pixel-aspect-ratio=1/1", "width=1,height=1");
}
GST_END_TEST

GST_START_TEST (huge_size_is_a_sentence)
{
  GstHarness *h = gst_harness_new ("gpuresize");
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;

  info_init (&info, "RGBA", 33, 17);
  gst_harness_set_sink_caps_str (h, "video/x-raw(memory:GPUCache),width=40000,height=40000");
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 33, 17, TRUE));
  for (int i = 0; i < 2; i++)
    fail_unless (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)) != GST_FLOW_OK);
  assert_message (bus, GST_MESSAGE_ERROR, "RGBA", "40000x40000", NULL);
  assert_no_message (bus, GST_MESSAGE_ERROR);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

/* The default of caps that say nothing about colours changes between these sizes; what is said stays. */
GST_START_TEST (colours_are_kept)
{
  static const char *const said[] = {"", ",colorimetry=bt709", ",colorimetry=smpte240m"};

  for (guint i = 0; i < G_N_ELEMENTS (said); i++) {
    GstHarness *h = gst_harness_new ("gpuresize");
    g_autofree char *in_caps =
        g_strconcat ("video/x-raw(memory:GPUCache),format=I420,width=320,height=240,framerate=30/1", said[i], NULL);
    g_autoptr (GstCaps) expected = gst_caps_from_string (in_caps);
    g_autoptr (GstCaps) caps = NULL;
    GstVideoInfo in, out;

    fail_unless (gst_video_info_from_caps (&in, expected));
    gst_harness_set_sink_caps_str (h, "video/x-raw(memory:GPUCache),width=1280,height=720");
    gst_harness_set_src_caps_str (h, in_caps);
    gst_buffer_unref (push_and_pull (h, frame_upload (&in, frame_new (&in, 1), NULL)));
    caps = gst_pad_get_current_caps (h->sinkpad);
    fail_unless (gst_video_info_from_caps (&out, caps));
    fail_unless_equals_int (out.height, 720);
    fail_unless (gst_video_colorimetry_is_equal (&in.colorimetry, &out.colorimetry), "%s", said[i]);
    fail_unless_equals_int (in.chroma_site, out.chroma_site);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

GST_START_TEST (same_size_passes)
{
  GstHarness *h = gst_harness_new ("gpuresize");
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

GST_START_TEST (renegotiation_in_mid_stream)
{
  GstHarness *h = gst_harness_new ("gpuresize");

  g_object_set (h->element, "antialias", FALSE, "add-borders", FALSE, NULL);
  gst_harness_set_sink_caps_str (h, "video/x-raw(memory:GPUCache),width=24,height=20");
  for (int i = 0; i < 12; i++) {
    const char *format = test_formats[(i * 5) % N_TEST_FORMATS];
    gboolean bilinear = i % 2;
    g_autoptr (Picture) in = NULL;
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstVideoInfo info, out_info;
    GstBuffer *buffer;

    gst_util_set_object_arg (G_OBJECT (h->element), "method", bilinear ? "bilinear" : "nearest-neighbour");
    gst_harness_set_src_caps (h, frame_caps (format, 30 + i, 40 - i, TRUE));
    info_init (&info, format, 30 + i, 40 - i);
    info_init (&out_info, format, 24, 20);
    buffer = frame_new (&info, (guint)i);
    in = picture_read (&info, buffer);
    expected = reference (in, 24, 20, bilinear);
    buffer = push_and_pull (h, frame_upload (&info, buffer, NULL));
    got = picture_read (&out_info, buffer);
    assert_pictures_equal (expected, got, format);
    gst_buffer_unref (buffer);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (downstream_asks_for_another_size)
{
  GstHarness *h = gst_harness_new ("gpuresize");
  GstVideoInfo info, out_info;

  info_init (&info, "RGB", 64, 48);
  set_sink_size (h, "RGB", 32, 24);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 64, 48, TRUE));
  gst_buffer_unref (push_and_pull (h, frame_upload (&info, frame_new (&info, 1), NULL)));

  set_sink_size (h, "RGB", 16, 12);
  gst_harness_push_upstream_event (h, gst_event_new_reconfigure ());
  {
    GstBuffer *buffer = push_and_pull (h, frame_upload (&info, frame_new (&info, 1), NULL));
    g_autoptr (Picture) got = NULL;

    info_init (&out_info, "RGB", 16, 12);
    got = picture_read (&out_info, buffer);
    fail_unless_equals_int ((int)gst_buffer_get_video_meta (buffer)->width, 16);
    gst_buffer_unref (buffer);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (region_of_interest_and_navigation_are_scaled)
{
  GstHarness *h = gst_harness_new ("gpuresize");
  GstVideoInfo info;
  GstVideoRegionOfInterestMeta *region;
  GstBuffer *buffer;
  GstEvent *event;
  gdouble x, y;

  info_init (&info, "RGB", 64, 48);
  gst_harness_set_caps (h, frame_caps ("RGB", 64, 48, TRUE),
                        gst_caps_from_string ("video/x-raw(memory:GPUCache),width=32,height=12"));
  buffer = gst_buffer_make_writable (frame_upload (&info, frame_new (&info, 1), NULL));
  gst_buffer_add_video_region_of_interest_meta (buffer, "face", 16, 8, 32, 40);
  buffer = push_and_pull (h, buffer);
  region = gst_buffer_get_video_region_of_interest_meta_id (buffer, 0);
  fail_unless (region != NULL);
  fail_unless_equals_int ((int)region->x, 8);
  fail_unless_equals_int ((int)region->y, 2);
  fail_unless_equals_int ((int)region->w, 16);
  fail_unless_equals_int ((int)region->h, 10);
  gst_buffer_unref (buffer);

  gst_harness_push_upstream_event (h, gst_event_new_navigation (gst_structure_new (
                                          "application/x-gst-navigation", "event", G_TYPE_STRING, "mouse-move",
                                          "pointer_x", G_TYPE_DOUBLE, 8.0, "pointer_y", G_TYPE_DOUBLE, 3.0, NULL)));
  while (GST_EVENT_TYPE (event = gst_harness_pull_upstream_event (h)) != GST_EVENT_NAVIGATION)
    gst_event_unref (event);
  fail_unless (gst_navigation_event_get_coordinates (event, &x, &y));
  fail_unless (x == 16 && y == 12, "(%g, %g)", x, y);
  gst_event_unref (event);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (caps_that_cannot_be_met)
{
  GstHarness *h = gst_harness_new ("gpuresize");
  GstVideoInfo info;

  /* The format stays what it is. */
  gst_harness_set_sink_caps_str (h, "video/x-raw(memory:GPUCache),format=NV12");
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  info_init (&info, "RGB", 33, 17);
  fail_unless_equals_int (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)),
                          GST_FLOW_NOT_NEGOTIATED);
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
gpuresize_suite (void)
{
  Suite *s = suite_create ("gpuresize");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, every_format_and_size);
  tcase_add_test (tc, crop_is_what_is_scaled);
  tcase_add_test (tc, sizes_that_are_chosen);
  tcase_add_test (tc, huge_size_is_a_sentence);
  tcase_add_test (tc, colours_are_kept);
  tcase_add_test (tc, same_size_passes);
  tcase_add_test (tc, renegotiation_in_mid_stream);
  tcase_add_test (tc, downstream_asks_for_another_size);
  tcase_add_test (tc, region_of_interest_and_navigation_are_scaled);
  tcase_add_test (tc, caps_that_cannot_be_met);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, gpuresize_suite, __FILE__);
}
