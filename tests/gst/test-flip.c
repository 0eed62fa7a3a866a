/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpuflip: all orientations, bit for bit, against a plain reference and against videoflip; caps, tags, events and metas
 * that go with the picture.
 */
#include "common.h"
#include "picture.h"

#include <gpucache/gstgpucache.h>

#define N_ORIENTATIONS 8

static const char *const nicks[N_ORIENTATIONS] = {"identity", "90r", "180", "90l", "horiz", "vert", "ul-lr", "ur-ll"};
static const char *const methods[N_ORIENTATIONS] = {
    "none",          "clockwise",           "rotate-180",          "counterclockwise", "horizontal-flip",
    "vertical-flip", "upper-left-diagonal", "upper-right-diagonal"};

static gboolean
transposes (int orientation)
{
  return orientation == 1 || orientation == 3 || orientation >= 6;
}

/* Where sample (x, y) of what comes out was in what went in, which is w x h. */
static void
source_of (int orientation, int w, int h, int x, int y, int *sx, int *sy)
{
  const int from[N_ORIENTATIONS][2] = {
      {x, y},         {y, h - 1 - x}, {w - 1 - x, h - 1 - y}, {w - 1 - y, x}, {w - 1 - x, y},
      {x, h - 1 - y}, {y, x},         {w - 1 - y, h - 1 - x},
  };

  *sx = from[orientation][0];
  *sy = from[orientation][1];
}

static Picture *
reference (const Picture *in, int orientation)
{
  int width = in->plane[0].width, height = in->plane[0].height;
  Picture *out =
      transposes (orientation) ? picture_new (in->format, height, width) : picture_new (in->format, width, height);

  for (int i = 0; i < in->n_planes; i++)
    for (int y = 0; y < out->plane[i].height; y++)
      for (int x = 0; x < out->plane[i].width; x++) {
        int sx, sy;

        source_of (orientation, in->plane[i].width, in->plane[i].height, x, y, &sx, &sy);
        memcpy (plane_at (&out->plane[i], x, y), plane_at (&in->plane[i], sx, sy), (gsize)in->plane[i].bytes);
      }
  return out;
}

static void
check (const char *launch, const char *format, int width, int height, int orientation)
{
  GstHarness *h = gst_harness_new_parse (launch);
  g_autofree char *what = g_strdup_printf ("%s, %s %dx%d", launch, format, width, height);
  g_autoptr (Picture) in = NULL;
  g_autoptr (Picture) expected = NULL;
  g_autoptr (Picture) got = NULL;
  g_autoptr (GstCaps) caps = NULL;
  GstVideoInfo info;
  GstBuffer *buffer;

  info_init (&info, format, width, height);
  gst_harness_set_src_caps (h, frame_caps (format, width, height, FALSE));
  buffer = frame_new (&info, 11);
  in = picture_read (&info, buffer);
  expected = reference (in, orientation);
  buffer = push_and_pull (h, buffer);
  caps = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (gst_video_info_from_caps (&info, caps));
  got = picture_read (&info, buffer);
  assert_pictures_equal (expected, got, what);
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}

GST_START_TEST (every_orientation)
{
  static const int sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {6, 4}, {33, 17}, {130, 67}};

  for (int o = 0; o < N_ORIENTATIONS; o++) {
    g_autofree char *launch = g_strdup_printf ("gpuupload ! gpuflip video-direction=%s ! gpudownload", nicks[o]);

    for (guint i = 0; i < N_TEST_FORMATS; i++)
      for (guint k = 0; k < G_N_ELEMENTS (sizes); k++)
        check (launch, test_formats[i], sizes[k][0], sizes[k][1], o);
    check (launch, "NV12", 641, 481, o);
    check (launch, "RGB", 641, 481, o);
  }
}
GST_END_TEST

/* The other property, on a launch line too, and neither's default undoes the other (G9). */
GST_START_TEST (method_is_the_same_property)
{
  for (int o = 0; o < N_ORIENTATIONS; o++) {
    g_autofree char *launch = g_strdup_printf ("gpuupload ! gpuflip method=%s ! gpudownload", methods[o]);
    GstElement *element = gst_element_factory_make ("gpuflip", NULL);
    int value;

    check (launch, "RGB", 5, 3, o);
    gst_util_set_object_arg (G_OBJECT (element), "method", methods[o]);
    g_object_get (element, "video-direction", &value, NULL);
    fail_unless_equals_int (value, o);
    gst_util_set_object_arg (G_OBJECT (element), "video-direction", nicks[o]);
    g_object_get (element, "method", &value, NULL);
    fail_unless_equals_int (value, o);
    gst_object_unref (element);
  }
}
GST_END_TEST

GST_START_TEST (same_as_videoflip)
{
  static const int sizes[][2] = {{1, 1}, {8, 6}, {33, 17}};

  for (int o = 0; o < N_ORIENTATIONS; o++)
    for (guint i = 0; i < N_TEST_FORMATS; i++)
      for (guint k = 0; k < G_N_ELEMENTS (sizes); k++) {
        const char *format = test_formats[i];
        Picture *got[2];

        for (int e = 0; e < 2; e++) {
          g_autofree char *launch = g_strdup_printf (
              e ? "videoflip video-direction=%s" : "gpuupload ! gpuflip video-direction=%s ! gpudownload", nicks[o]);
          GstHarness *h = gst_harness_new_parse (launch);
          g_autoptr (GstCaps) caps = NULL;
          GstVideoInfo info;
          GstBuffer *out;

          info_init (&info, format, sizes[k][0], sizes[k][1]);
          gst_harness_set_src_caps (h, frame_caps (format, sizes[k][0], sizes[k][1], FALSE));
          out = push_and_pull (h, frame_new (&info, 21));
          caps = gst_pad_get_current_caps (h->sinkpad);
          fail_unless (gst_video_info_from_caps (&info, caps));
          got[e] = picture_read (&info, out);
          gst_buffer_unref (out);
          gst_harness_teardown (h);
        }
        assert_pictures_equal (got[1], got[0], nicks[o]);
        picture_free (got[0]);
        picture_free (got[1]);
      }
}
GST_END_TEST

/* Formats that pictures here do not know, sample by sample through the video library. */
GST_START_TEST (formats_of_more_planes_and_bits)
{
  static const char *const formats[] = {"P010_10LE", "RGBP", "GBR"};

  for (int o = 0; o < N_ORIENTATIONS; o++)
    for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
      g_autofree char *launch = g_strdup_printf ("gpuupload ! gpuflip video-direction=%s ! gpudownload", nicks[o]);
      GstHarness *h = gst_harness_new_parse (launch);
      g_autoptr (GstCaps) caps = NULL;
      GstVideoInfo info, out_info;
      GstVideoFrame in, out;
      GstBuffer *buffer, *result;

      info_init (&info, formats[i], 34, 18);
      buffer = gst_buffer_new_allocate (NULL, info.size, NULL);
      test_frame_write (buffer, &info, 5);
      gst_harness_set_src_caps (h, frame_caps (formats[i], 34, 18, FALSE));
      result = push_and_pull (h, gst_buffer_ref (buffer));
      caps = gst_pad_get_current_caps (h->sinkpad);
      fail_unless (gst_video_info_from_caps (&out_info, caps));
      fail_unless (gst_video_frame_map (&in, &info, buffer, GST_MAP_READ));
      fail_unless (gst_video_frame_map (&out, &out_info, result, GST_MAP_READ));
      for (guint c = 0; c < 3; c++)
        for (int y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&out, c); y++)
          for (int x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH (&out, c); x++) {
            gsize bytes = i == 0 ? 2 : 1;
            int sx, sy;

            source_of (o, GST_VIDEO_FRAME_COMP_WIDTH (&in, c), GST_VIDEO_FRAME_COMP_HEIGHT (&in, c), x, y, &sx, &sy);
            fail_unless (
                memcmp ((guint8 *)GST_VIDEO_FRAME_COMP_DATA (&out, c) + y * GST_VIDEO_FRAME_COMP_STRIDE (&out, c) +
                            x * GST_VIDEO_FRAME_COMP_PSTRIDE (&out, c),
                        (guint8 *)GST_VIDEO_FRAME_COMP_DATA (&in, c) + sy * GST_VIDEO_FRAME_COMP_STRIDE (&in, c) +
                            sx * GST_VIDEO_FRAME_COMP_PSTRIDE (&in, c),
                        bytes) == 0,
                "%s %s: component %u at (%d, %d)", formats[i], nicks[o], c, x, y);
          }
      gst_video_frame_unmap (&in);
      gst_video_frame_unmap (&out);
      gst_buffer_unref (buffer);
      gst_buffer_unref (result);
      gst_harness_teardown (h);
    }
}
GST_END_TEST

GST_START_TEST (crop_is_what_is_turned)
{
  for (int o = 0; o < N_ORIENTATIONS; o++) {
    GstHarness *h = gst_harness_new ("gpuflip");
    g_autoptr (Picture) whole = NULL;
    g_autoptr (Picture) part = NULL;
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    g_autoptr (GstCaps) caps = NULL;
    GstVideoInfo info;
    GstVideoCropMeta *crop;
    GstBuffer *buffer;

    if (o == 0) { /* passthrough: the crop rectangle goes on */
      gst_harness_teardown (h);
      continue;
    }
    gst_util_set_object_arg (G_OBJECT (h->element), "video-direction", nicks[o]);
    info_init (&info, "NV12", 33, 17);
    buffer = frame_new (&info, 4);
    whole = picture_read (&info, buffer);
    part = picture_crop (whole, 6, 2, 21, 13);
    expected = reference (part, o);
    buffer = gst_buffer_make_writable (frame_upload (&info, buffer, NULL));
    crop = gst_buffer_add_video_crop_meta (buffer);
    crop->x = 6;
    crop->y = 2;
    crop->width = 21;
    crop->height = 13;
    gst_harness_set_src_caps (h, frame_caps ("NV12", 21, 13, TRUE));
    buffer = push_and_pull (h, buffer);
    fail_if (gst_buffer_get_video_crop_meta (buffer));
    caps = gst_pad_get_current_caps (h->sinkpad);
    fail_unless (gst_video_info_from_caps (&info, caps));
    got = picture_read (&info, buffer);
    assert_pictures_equal (expected, got, nicks[o]);
    gst_buffer_unref (buffer);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

GST_START_TEST (region_of_interest_is_turned)
{
  for (int o = 1; o < N_ORIENTATIONS; o++) {
    GstHarness *h = gst_harness_new ("gpuflip");
    GstVideoInfo info;
    GstVideoRegionOfInterestMeta *region;
    GstBuffer *in, *out;
    int x0, y0, x1, y1;

    gst_util_set_object_arg (G_OBJECT (h->element), "video-direction", nicks[o]);
    info_init (&info, "RGB", 33, 17);
    gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
    in = gst_buffer_make_writable (frame_upload (&info, frame_new (&info, 1), NULL));
    region = gst_buffer_add_video_region_of_interest_meta (in, "face", 4, 3, 10, 5);
    region->id = 7;
    gst_video_region_of_interest_meta_add_param (region, gst_structure_new_empty ("detection"));
    out = push_and_pull (h, in);
    region = gst_buffer_get_video_region_of_interest_meta_id (out, 7);
    fail_unless (region != NULL);
    fail_unless (gst_video_region_of_interest_meta_get_param (region, "detection") != NULL);

    /* Its corners come from those of the old one. */
    source_of (o, 33, 17, (int)region->x, (int)region->y, &x0, &y0);
    source_of (o, 33, 17, (int)(region->x + region->w) - 1, (int)(region->y + region->h) - 1, &x1, &y1);
    fail_unless_equals_int (MIN (x0, x1), 4);
    fail_unless_equals_int (MAX (x0, x1), 13);
    fail_unless_equals_int (MIN (y0, y1), 3);
    fail_unless_equals_int (MAX (y0, y1), 7);
    gst_buffer_unref (out);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

static void
check_caps (const char *in, const char *expected)
{
  GstElement *flip = gst_element_factory_make ("gpuflip", NULL);
  GstPad *sink = gst_element_get_static_pad (flip, "sink");
  g_autoptr (GstCaps) in_caps = gst_caps_from_string (in);
  g_autoptr (GstCaps) expected_caps = gst_caps_from_string (expected);
  g_autoptr (GstCaps) got = NULL;
  g_autofree char *text = NULL;

  gst_util_set_object_arg (G_OBJECT (flip), "video-direction", "90r");
  got = GST_BASE_TRANSFORM_GET_CLASS (flip)->transform_caps (GST_BASE_TRANSFORM (flip), GST_PAD_SINK, in_caps, NULL);
  text = gst_caps_to_string (got);
  fail_unless (gst_caps_is_equal (got, expected_caps), "%s became %s", in, text);
  gst_object_unref (sink);
  gst_object_unref (flip);
}

GST_START_TEST (quarter_turns_exchange_sizes_in_caps)
{
#define FEATURE "video/x-raw(memory:GPUCache), "
  check_caps (FEATURE "width=40, height=30, pixel-aspect-ratio=4/3",
              FEATURE "width=30, height=40, pixel-aspect-ratio=3/4");
  check_caps (FEATURE "width=[1,100], height={10,20}", FEATURE "width={10,20}, height=[1,100]");
  check_caps (FEATURE "width=40", FEATURE "height=40");
  check_caps (FEATURE "pixel-aspect-ratio=[1/2,4/3]", FEATURE "pixel-aspect-ratio=[3/4,2/1]");
  check_caps (FEATURE "pixel-aspect-ratio={1/1,[2/3,5/4]}", FEATURE "pixel-aspect-ratio={1/1,[4/5,3/2]}");
  check_caps (FEATURE "pixel-aspect-ratio=[0/1,2147483647/1]",
              FEATURE "pixel-aspect-ratio=[1/2147483647,2147483647/1]");
}
GST_END_TEST

GST_START_TEST (orientation_changes_while_playing)
{
  GstHarness *h = gst_harness_new ("gpuflip");
  GstVideoInfo in_info;

  info_init (&in_info, "NV12", 33, 17);
  gst_harness_set_src_caps (h, frame_caps ("NV12", 33, 17, TRUE));
  for (int i = 0; i < 40; i++) {
    static const int steps[] = {0, 4, 0, 2, 1, 6, 0, 3, 5, 4, 0, 7};
    int o = steps[i % (int)G_N_ELEMENTS (steps)];
    g_autoptr (Picture) in = NULL;
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    g_autoptr (GstCaps) caps = NULL;
    GstBuffer *buffer = frame_new (&in_info, (guint)i);
    GstVideoInfo info;

    g_object_set (h->element, "video-direction", o, NULL);
    in = picture_read (&in_info, buffer);
    expected = reference (in, o);
    buffer = push_and_pull (h, frame_upload (&in_info, buffer, NULL));
    caps = gst_pad_get_current_caps (h->sinkpad);
    fail_unless (gst_video_info_from_caps (&info, caps));
    got = picture_read (&info, buffer);
    assert_pictures_equal (expected, got, nicks[o]);
    gst_buffer_unref (buffer);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

/* Upstream asks for memory between two changes, which makes the element decide caps before the next frame. */
GST_START_TEST (allocation_query_between_changes)
{
  static const char *const then[] = {"identity", "90r", "180"};

  for (guint i = 0; i < G_N_ELEMENTS (then); i++) {
    GstHarness *h = gst_harness_new ("gpuflip");
    g_autoptr (GstCaps) in_caps = frame_caps ("RGBA", 33, 17, TRUE);
    g_autoptr (GstCaps) caps = NULL;
    g_autoptr (GstPad) src = gst_element_get_static_pad (h->element, "src");
    g_autoptr (GstQuery) query = gst_query_new_allocation (in_caps, TRUE);
    GstVideoInfo info, out_info;
    GstBuffer *buffer;

    info_init (&info, "RGBA", 33, 17);
    gst_harness_set_src_caps (h, gst_caps_ref (in_caps));
    gst_buffer_unref (push_and_pull (h, frame_upload (&info, frame_new (&info, 1), NULL)));
    gst_util_set_object_arg (G_OBJECT (h->element), "video-direction", "90r");
    gst_pad_send_event (src, gst_event_new_reconfigure ());
    gst_pad_peer_query (h->srcpad, query);
    gst_util_set_object_arg (G_OBJECT (h->element), "video-direction", then[i]);

    buffer = push_and_pull (h, frame_upload (&info, frame_new (&info, 2), NULL));
    caps = gst_pad_get_current_caps (h->sinkpad);
    fail_unless (gst_video_info_from_caps (&out_info, caps));
    fail_unless_equals_int (out_info.width, i == 1 ? 17 : 33);
    fail_unless_equals_int (gpu_image_spec (gst_gpu_memory_get_image (gst_buffer_peek_memory (buffer, 0)))->width,
                            out_info.width);
    gst_buffer_unref (buffer);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* A quarter turn can change the size by which colours default; what is not written in caps would change with it. */
GST_START_TEST (colours_are_kept)
{
  GstHarness *h = gst_harness_new ("gpuflip");
  g_autoptr (GstCaps) caps = NULL;
  GstVideoInfo in, out;

  gst_util_set_object_arg (G_OBJECT (h->element), "video-direction", "90r");
  gst_harness_set_src_caps_str (h, "video/x-raw(memory:GPUCache),format=I420,width=640,height=480,framerate=30/1");
  info_init (&in, "I420", 640, 480);
  gst_buffer_unref (push_and_pull (h, frame_upload (&in, frame_new (&in, 1), NULL)));
  caps = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (gst_video_info_from_caps (&out, caps));
  fail_unless_equals_int (out.height, 640);
  fail_unless (gst_video_colorimetry_is_equal (&in.colorimetry, &out.colorimetry));
  gst_harness_teardown (h);
}
GST_END_TEST

static void
push_orientation (GstHarness *h, GstTagScope scope, const char *orientation)
{
  GstTagList *tags = gst_tag_list_new_empty ();

  gst_tag_list_set_scope (tags, scope);
  gst_tag_list_add (tags, GST_TAG_MERGE_REPLACE, GST_TAG_ENCODER, "test", NULL);
  if (orientation)
    gst_tag_list_add (tags, GST_TAG_MERGE_REPLACE, GST_TAG_IMAGE_ORIENTATION, orientation, NULL);
  gst_harness_push_event (h, gst_event_new_tag (tags));
}

/* Pushes a frame and looks at its size for whether it was turned. */
static void
assert_turned (GstHarness *h, gboolean turned, const char *what)
{
  g_autoptr (GstCaps) caps = NULL;
  GstVideoInfo info;

  info_init (&info, "RGB", 33, 17);
  gst_buffer_unref (push_and_pull (h, frame_upload (&info, frame_new (&info, 1), NULL)));
  caps = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (gst_video_info_from_caps (&info, caps));
  fail_unless (GST_VIDEO_INFO_WIDTH (&info) == (turned ? 17 : 33), "%s: %d columns", what,
               GST_VIDEO_INFO_WIDTH (&info));
}

/* The image-orientation that downstream has been told last in that scope. */
static char *
told_orientation (GstHarness *h, GstTagScope scope)
{
  char *orientation = NULL;
  GstEvent *event;

  for (guint i = 0; (event = gst_pad_get_sticky_event (h->sinkpad, GST_EVENT_TAG, i)); i++) {
    GstTagList *tags;

    gst_event_parse_tag (event, &tags);
    if (gst_tag_list_get_scope (tags) == scope) {
      g_free (orientation);
      orientation = NULL;
      gst_tag_list_get_string (tags, GST_TAG_IMAGE_ORIENTATION, &orientation);
    }
    gst_event_unref (event);
  }
  return orientation;
}

GST_START_TEST (tags_are_followed)
{
  GstHarness *h = gst_harness_new ("gpuflip");
  g_autofree char *told = NULL;

  gst_util_set_object_arg (G_OBJECT (h->element), "video-direction", "auto");
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  assert_turned (h, FALSE, "no tag");
  push_orientation (h, GST_TAG_SCOPE_GLOBAL, "rotate-90");
  assert_turned (h, TRUE, "a global tag");
  push_orientation (h, GST_TAG_SCOPE_STREAM, "rotate-180");
  assert_turned (h, FALSE, "a tag of the stream, which counts more");
  push_orientation (h, GST_TAG_SCOPE_GLOBAL, "rotate-270");
  assert_turned (h, FALSE, "another global tag, which counts less");
  push_orientation (h, GST_TAG_SCOPE_STREAM, NULL);
  assert_turned (h, TRUE, "tags of the stream without an orientation");
  push_orientation (h, GST_TAG_SCOPE_GLOBAL, NULL);
  assert_turned (h, FALSE, "none any more");

  push_orientation (h, GST_TAG_SCOPE_STREAM, "rotate-90");
  assert_turned (h, TRUE, "a tag of the stream");
  told = told_orientation (h, GST_TAG_SCOPE_STREAM);
  fail_unless_equals_string (told, "rotate-0");

  gst_harness_push_event (h, gst_event_new_stream_start ("another"));
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  assert_turned (h, FALSE, "another stream");
  gst_harness_teardown (h);
}
GST_END_TEST

/* Without auto the tag goes on as it is; when auto is switched on or off downstream is told again. */
GST_START_TEST (tags_are_rewritten_when_followed)
{
  GstHarness *h = gst_harness_new ("gpuflip");
  char *told;

  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  push_orientation (h, GST_TAG_SCOPE_STREAM, "rotate-90");
  assert_turned (h, FALSE, "not auto");
  told = told_orientation (h, GST_TAG_SCOPE_STREAM);
  fail_unless_equals_string (told, "rotate-90");
  g_free (told);

  gst_util_set_object_arg (G_OBJECT (h->element), "method", "automatic");
  assert_turned (h, TRUE, NULL);
  told = told_orientation (h, GST_TAG_SCOPE_STREAM);
  fail_unless_equals_string (told, "rotate-0");
  g_free (told);

  gst_util_set_object_arg (G_OBJECT (h->element), "method", "none");
  assert_turned (h, FALSE, "not auto any more");
  told = told_orientation (h, GST_TAG_SCOPE_STREAM);
  fail_unless_equals_string (told, "rotate-90");
  g_free (told);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (navigation_is_turned_back)
{
  /* The centre of a sample that comes out was that of its source. */
  for (int o = 1; o < N_ORIENTATIONS; o++) {
    GstHarness *h = gst_harness_new ("gpuflip");
    GstEvent *event;
    gdouble x, y;
    int sx, sy;

    gst_util_set_object_arg (G_OBJECT (h->element), "video-direction", nicks[o]);
    gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
    gst_harness_push_upstream_event (h, gst_event_new_navigation (gst_structure_new (
                                            "application/x-gst-navigation", "event", G_TYPE_STRING, "mouse-move",
                                            "pointer_x", G_TYPE_DOUBLE, 5.5, "pointer_y", G_TYPE_DOUBLE, 3.5, NULL)));
    do {
      event = gst_harness_pull_upstream_event (h);
      if (GST_EVENT_TYPE (event) == GST_EVENT_NAVIGATION)
        break;
      gst_event_unref (event);
    } while (TRUE);
    fail_unless (gst_navigation_event_get_coordinates (event, &x, &y));
    source_of (o, 33, 17, 5, 3, &sx, &sy);
    fail_unless (x == sx + 0.5 && y == sy + 0.5, "%s: (%g, %g), not (%d.5, %d.5)", nicks[o], x, y, sx, sy);
    gst_event_unref (event);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

GST_START_TEST (identity_passes_frames)
{
  GstHarness *h = gst_harness_new ("gpuflip");
  GstVideoInfo info;
  GstBuffer *in;

  info_init (&info, "RGB", 33, 17);
  in = frame_upload (&info, frame_new (&info, 1), NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  fail_unless (push_and_pull (h, in) == in);
  gst_buffer_unref (in);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (caps_that_cannot_be_met)
{
  GstHarness *h = gst_harness_new ("gpuflip");
  GstVideoInfo info;
  g_autoptr (GstCaps) system = frame_caps ("RGB", 33, 17, FALSE);

  /* System memory is not taken. */
  fail_if (gst_pad_peer_query_accept_caps (h->srcpad, system));

  /* A downstream that cannot take the turned size. */
  gst_util_set_object_arg (G_OBJECT (h->element), "video-direction", "90r");
  gst_harness_set_sink_caps_str (h, "video/x-raw(memory:GPUCache),width=33,height=17");
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  info_init (&info, "RGB", 33, 17);
  fail_unless_equals_int (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)),
                          GST_FLOW_NOT_NEGOTIATED);
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
gpuflip_suite (void)
{
  Suite *s = suite_create ("gpuflip");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, every_orientation);
  tcase_add_test (tc, method_is_the_same_property);
  tcase_add_test (tc, same_as_videoflip);
  tcase_add_test (tc, formats_of_more_planes_and_bits);
  tcase_add_test (tc, crop_is_what_is_turned);
  tcase_add_test (tc, region_of_interest_is_turned);
  tcase_add_test (tc, quarter_turns_exchange_sizes_in_caps);
  tcase_add_test (tc, orientation_changes_while_playing);
  tcase_add_test (tc, allocation_query_between_changes);
  tcase_add_test (tc, colours_are_kept);
  tcase_add_test (tc, tags_are_followed);
  tcase_add_test (tc, tags_are_rewritten_when_followed);
  tcase_add_test (tc, navigation_is_turned_back);
  tcase_add_test (tc, identity_passes_frames);
  tcase_add_test (tc, caps_that_cannot_be_met);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, gpuflip_suite, __FILE__);
}
