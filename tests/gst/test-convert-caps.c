/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpuconvert's caps: which format and colours are chosen, against videoconvert; what is kept, what passes, and what is
 * refused, in which words; and what becomes of metas.
 */
#include "common.h"
#include "picture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GPU "video/x-raw(memory:GPUCache)"

/* Returns: (transfer full): what @factory makes of @in where downstream takes @out, both without their media type. */
static GstCaps *
negotiate (const char *factory, const char *type, const char *in, const char *out)
{
  GstHarness *h = gst_harness_new (factory);
  g_autofree char *in_caps = g_strdup_printf ("%s,framerate=30/1,%s", type, in);
  g_autofree char *out_caps = g_strdup_printf ("%s,%s", type, out);
  GstCaps *got;

  gst_harness_set_caps (h, gst_caps_from_string (in_caps), gst_caps_from_string (out_caps));
  got = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (got != NULL, "%s: %s to %s was refused", factory, in, out);
  gst_harness_teardown (h);
  return got;
}

/* Formats that are equally near to any other. */
static int
kind_of (const char *format)
{
  const GstVideoFormatInfo *info = gst_video_format_get_info (gst_video_format_from_string (format));
  const GstVideoFormatFlags flags =
      GST_VIDEO_FORMAT_FLAG_YUV | GST_VIDEO_FORMAT_FLAG_RGB | GST_VIDEO_FORMAT_FLAG_GRAY | GST_VIDEO_FORMAT_FLAG_ALPHA;

  return (int)(info->flags & flags) * 100 + (int)info->bits;
}

/* Random lists of formats. */
GST_START_TEST (format_nearest_to_the_input)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (3);

  for (int i = 0; i < 400; i++) {
    g_autofree char *in = g_strdup_printf ("format=%s,width=40,height=30", all_formats[i % N_ALL_FORMATS]);
    g_autoptr (GString) out = g_string_new ("format={");
    const int n = g_rand_int_range (random, 1, 5);
    g_autoptr (GstCaps) ours = NULL;
    g_autoptr (GstCaps) theirs = NULL;
    const char *our_format, *their_format;

    for (int k = 0; k < n; k++)
      g_string_append_printf (out, "%s%s", k ? "," : "", all_formats[g_rand_int_range (random, 0, N_ALL_FORMATS)]);
    g_string_append (out, "}");
    ours = negotiate ("gpuconvert", GPU, in, out->str);
    theirs = negotiate ("videoconvert", "video/x-raw", in, out->str);
    our_format = gst_structure_get_string (gst_caps_get_structure (ours, 0), "format");
    their_format = gst_structure_get_string (gst_caps_get_structure (theirs, 0), "format");
    fail_unless (kind_of (our_format) == kind_of (their_format) &&
                     (!strcmp (our_format, their_format) || strcmp (their_format, all_formats[i % N_ALL_FORMATS])),
                 "%s to %s: %s, not %s", in, out->str, our_format, their_format);
  }
}
GST_END_TEST

/* Also where each format is in caps of its own. */
GST_START_TEST (format_of_the_right_structure)
{
  g_autoptr (GstCaps) got = negotiate ("gpuconvert", GPU, "format=NV12,width=40,height=30",
                                       "format=GRAY8,width=40;" GPU ",format=RGB,height=30;" GPU ",format=I420");

  fail_unless_equals_string (gst_structure_get_string (gst_caps_get_structure (got, 0), "format"), "I420");
}
GST_END_TEST

/* What the caps that come in say about colours is carried over as videoconvert does. */
GST_START_TEST (colours_carried_over)
{
  static const char *const says[] = {"",
                                     ",colorimetry=bt709",
                                     ",colorimetry=bt601",
                                     ",colorimetry=bt2020",
                                     ",colorimetry=1:4:0:0",
                                     ",colorimetry=sRGB",
                                     ",colorimetry=bt709,chroma-site=jpeg",
                                     ",colorimetry=bt601,chroma-site=mpeg2",
                                     ",chroma-site=cosited"};
  static const char *const wants[] = {"", ",colorimetry=bt709", ",colorimetry=bt601,chroma-site=jpeg",
                                      ",colorimetry=bt2020,chroma-site=cosited"};
  static const char *const formats[] = {"I420", "P010_10LE", "BGRA", "GRAY8"};
  static const int heights[] = {240, 720};

  for (guint i = 0; i < G_N_ELEMENTS (formats) * G_N_ELEMENTS (formats) * G_N_ELEMENTS (says) * 2; i++) {
    const char *from = formats[i % 4], *to = formats[i / 4 % 4], *said = says[i / 16 % G_N_ELEMENTS (says)];
    const int height = heights[i / 16 / G_N_ELEMENTS (says)];
    const gboolean has_chroma = from[0] == 'I' || from[0] == 'P';

    if (!has_chroma && strstr (said, "chroma-site"))
      continue;
    for (guint w = 0; w < G_N_ELEMENTS (wants); w++) {
      g_autofree char *in = g_strdup_printf ("format=%s,width=320,height=%d%s", from, height, said);
      g_autofree char *out = g_strdup_printf ("format=%s%s", to, wants[w]);
      g_autoptr (GstCaps) ours = NULL;
      g_autoptr (GstCaps) theirs = NULL;
      g_autofree char *text = NULL;
      GstVideoInfo our_info, their_info;

      ours = negotiate ("gpuconvert", GPU, in, out);
      theirs = negotiate ("videoconvert", "video/x-raw", in, out);
      text = gst_caps_to_string (ours);
      fail_unless (gst_video_info_from_caps (&our_info, ours) && gst_video_info_from_caps (&their_info, theirs));
      fail_unless (gst_video_colorimetry_is_equal (&our_info.colorimetry, &their_info.colorimetry),
                   "%s to %s became %s", in, out, text);
      fail_unless (our_info.chroma_site == their_info.chroma_site, "%s to %s became %s", in, out, text);
    }
  }
}
GST_END_TEST

/* Of several colours the input's, though the format is another. */
GST_START_TEST (colours_nearest_to_the_input)
{
  g_autoptr (GstCaps) got =
      negotiate ("gpuconvert", GPU, "format=NV12,width=40,height=30,colorimetry=bt709,chroma-site=cosited",
                 "format=I420,colorimetry={bt601,bt709},chroma-site={mpeg2,cosited}");
  const GstStructure *structure = gst_caps_get_structure (got, 0);

  fail_unless_equals_string (gst_structure_get_string (structure, "colorimetry"), "bt709");
  fail_unless_equals_string (gst_structure_get_string (structure, "chroma-site"), "cosited");
}
GST_END_TEST

/* All that is not about colours. */
GST_START_TEST (other_fields_are_kept)
{
  const char *fields =
      "width=40,height=30,pixel-aspect-ratio=16/15,interlace-mode=progressive,multiview-mode=side-by-side,"
      "multiview-flags=0:ffffffff,views=2,max-framerate=60/1";
  g_autofree char *in = g_strdup_printf ("format=NV12,colorimetry=bt709,chroma-site=mpeg2,%s", fields);
  g_autofree char *expected_text = g_strdup_printf (GPU ",format=RGB,framerate=30/1,%s", fields);
  g_autoptr (GstCaps) got = negotiate ("gpuconvert", GPU, in, "format=RGB");
  g_autoptr (GstCaps) expected = gst_caps_from_string (expected_text);
  g_autofree char *text = gst_caps_to_string (got);

  fail_unless (gst_caps_is_subset (got, expected), "became %s", text);
  fail_if (gst_structure_has_field (gst_caps_get_structure (got, 0), "chroma-site"), "became %s", text);
}
GST_END_TEST

/* Caps queries see through the element: each format with each other, all other fields as they are. */
GST_START_TEST (queries)
{
  GstHarness *h = gst_harness_new ("gpuconvert");
  g_autoptr (GstCaps) filter = gst_caps_from_string (GPU ",format=I420,width=99");
  g_autoptr (GstCaps) got = NULL;
  g_autoptr (GstCaps) filtered = NULL;
  const GstStructure *structure;

  gst_harness_set_sink_caps_str (h, GPU ",format=RGB,colorimetry=sRGB,width=[10,100],height=30");
  got = gst_pad_peer_query_caps (h->srcpad, NULL);
  structure = gst_caps_get_structure (got, 1); /* the first is what would pass */
  fail_unless_equals_int ((int)gst_value_list_get_size (gst_structure_get_value (structure, "format")), N_ALL_FORMATS);
  fail_if (gst_structure_has_field (structure, "colorimetry"));
  fail_unless (gst_structure_has_field_typed (structure, "width", GST_TYPE_INT_RANGE));
  fail_unless (gst_caps_features_contains (gst_caps_get_features (got, 0), GST_CAPS_FEATURE_MEMORY_GPU_CACHE));
  filtered = gst_pad_peer_query_caps (h->srcpad, filter);
  fail_unless (gst_caps_is_subset (filtered, filter) && !gst_caps_is_empty (filtered));
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (nothing_to_do_passes)
{
  static const char *const ways[][2] = {
      {"format=RGB", "format={BGR,RGB}"},
      {"format=NV12,colorimetry=bt709,chroma-site=jpeg", "format={I420,NV12}"},
      {"format=NV12,colorimetry=bt709", "format=NV12,colorimetry={bt601,bt709}"},
      /* That cannot be converted need not be. */
      {"format=NV12,colorimetry=smpte240m,chroma-site=v-cosited", "format=NV12"},
      {"format=I420,interlace-mode=interleaved", "format=I420"},
      /* The same numbers under another transfer function's name, which is not converted. */
      {"format=NV12,colorimetry=2:3:5:1", "format=NV12,colorimetry=2:3:7:1"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    GstHarness *h = gst_harness_new ("gpuconvert");
    g_autofree char *in = g_strdup_printf (GPU ",width=34,height=18,framerate=30/1,%s", ways[i][0]);
    g_autofree char *out = g_strdup_printf (GPU ",%s", ways[i][1]);
    GstVideoInfo info;
    GstCaps *caps = gst_caps_from_string (in);
    GstBuffer *buffer;

    fail_unless (gst_video_info_from_caps (&info, caps));
    gst_harness_set_caps (h, caps, gst_caps_from_string (out));
    buffer = frame_upload (&info, frame_new (&info, 1), NULL);
    fail_unless (push_and_pull (h, buffer) == buffer, "%s", ways[i][0]);
    gst_buffer_unref (buffer);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* The same format is converted where downstream asks for other colours. */
GST_START_TEST (other_colours_are_converted)
{
  static const char *const ways[][2] = {
      {"colorimetry=bt601", "colorimetry=bt709"},
      {"colorimetry=2:4:0:0", "colorimetry=1:4:0:0"},
      {"chroma-site=jpeg", "chroma-site=mpeg2"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    GstHarness *h = gst_harness_new ("gpuconvert");
    g_autofree char *in_text = g_strdup_printf (GPU ",format=I420,width=34,height=18,framerate=30/1,%s", ways[i][0]);
    g_autofree char *out_text = g_strdup_printf (GPU ",%s", ways[i][1]);
    g_autoptr (Picture) in = NULL;
    g_autoptr (Picture) out = NULL;
    GstCaps *caps = gst_caps_from_string (in_text);
    GstVideoInfo info;
    GstBuffer *buffer;

    fail_unless (gst_video_info_from_caps (&info, caps));
    gst_harness_set_caps (h, caps, gst_caps_from_string (out_text));
    buffer = frame_upload (&info, frame_new (&info, 1), NULL);
    in = picture_read (&info, buffer);
    buffer = push_and_pull (h, buffer);
    out = picture_read (&info, buffer);
    fail_unless (memcmp (in->plane[1].data, out->plane[1].data, 17 * 9), "%s to %s", ways[i][0], ways[i][1]);
    gst_buffer_unref (buffer);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* A crop rectangle that begins between two chroma samples, as videocrop cuts it. */
GST_START_TEST (crop_is_what_is_converted)
{
  static const char *const formats[] = {"NV12", "I420", "P010_10LE", "RGB"};

  for (guint i = 0; i < G_N_ELEMENTS (formats) * 4; i++) {
    GstHarness *h[2] = {gst_harness_new ("gpuconvert"), gst_harness_new ("gpuconvert")};
    const int x = 7 - (int)(i / 4 % 2), y = 4 + (int)(i / 8);
    GstVideoInfo info, part_info;
    GstVideoCropMeta *crop;
    GstBuffer *buffer[2], *whole;
    g_autoptr (Picture) picture = NULL;
    g_autoptr (Picture) part = NULL;
    g_autoptr (Picture) got = NULL;
    g_autoptr (Picture) expected = NULL;

    info_init (&info, formats[i % 4], 65, 49);
    whole = frame_new (&info, i);
    picture = picture_read (&info, whole);
    part = picture_crop (picture, x, y, 31, 22);
    info_init (&part_info, formats[i % 4], 31, 22);
    buffer[0] = gst_buffer_make_writable (frame_upload (&info, whole, NULL));
    crop = gst_buffer_add_video_crop_meta (buffer[0]);
    crop->x = (guint)x;
    crop->y = (guint)y;
    crop->width = 31;
    crop->height = 22;
    buffer[1] = frame_upload (&part_info, picture_to_frame (part, &part_info), NULL);
    for (int k = 0; k < 2; k++) {
      gst_harness_set_caps (h[k], frame_caps (formats[i % 4], 31, 22, TRUE), frame_caps ("BGRA", 31, 22, TRUE));
      buffer[k] = push_and_pull (h[k], buffer[k]);
      fail_if (gst_buffer_get_video_crop_meta (buffer[k]));
    }
    info_init (&part_info, "BGRA", 31, 22);
    got = picture_read (&part_info, buffer[0]);
    expected = picture_read (&part_info, buffer[1]);
    assert_pictures_equal (expected, got, formats[i % 4]);
    for (int k = 0; k < 2; k++) {
      gst_buffer_unref (buffer[k]);
      gst_harness_teardown (h[k]);
    }
  }
}
GST_END_TEST

/* What cannot be converted stops at caps, with a sentence that names the field. */
GST_START_TEST (refusals)
{
  static const struct {
    const char *in, *out, *words[2];
  } cases[] = {
      {"format=I420,colorimetry=smpte240m", "format=RGB", {"colorimetry=smpte240m", "bt601, bt709 or bt2020"}},
      {"format=RGB", "format=I420,colorimetry=2:2:0:0", {"colorimetry=", "bt601, bt709 or bt2020"}},
      {"format=I420,chroma-site=v-cosited", "format=RGB", {"chroma-site=v-cosited", "jpeg, mpeg2 or cosited"}},
      {"format=I420,interlace-mode=interleaved", "format=RGB", {"interlace-mode=interleaved", "deinterlace"}},
      {"format=RGB,interlace-mode=mixed", "format=NV12", {"interlace-mode=mixed", "deinterlace"}},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstHarness *h = gst_harness_new ("gpuconvert");
    g_autoptr (GstBus) bus = watch_bus (h);
    g_autofree char *in = g_strdup_printf (GPU ",width=34,height=18,framerate=30/1,%s", cases[i].in);
    g_autofree char *out = g_strdup_printf (GPU ",%s", cases[i].out);
    GstCaps *caps = gst_caps_from_string (in);
    GstVideoInfo info;

    fail_unless (gst_video_info_from_caps (&info, caps));
    gst_harness_set_sink_caps_str (h, out);
    gst_harness_set_src_caps (h, caps);
    fail_unless (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)) == GST_FLOW_NOT_NEGOTIATED,
                 "%s to %s", in, out);
    assert_message (bus, GST_MESSAGE_ERROR, cases[i].words[0], cases[i].words[1], NULL);
    gst_element_set_bus (h->element, NULL);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* Interlaced frames are converted where no chroma is moved. */
GST_START_TEST (interlaced_without_moving_chroma)
{
  static const char *const ways[][2] = {{"RGB", "BGRA"}, {"NV12", "I420"}, {"I420", "GRAY8"}, {"GRAY8", "NV12"}};

  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    GstHarness *h = gst_harness_new ("gpuconvert");
    g_autofree char *out = g_strdup_printf (GPU ",format=%s", ways[i][1]);
    GstCaps *caps = frame_caps (ways[i][0], 34, 18, TRUE);
    GstVideoInfo info;

    gst_caps_set_simple (caps, "interlace-mode", G_TYPE_STRING, "interleaved", NULL);
    fail_unless (gst_video_info_from_caps (&info, caps));
    gst_harness_set_sink_caps_str (h, out);
    gst_harness_set_src_caps (h, caps);
    gst_buffer_unref (push_and_pull (h, frame_upload (&info, frame_new (&info, 1), NULL)));
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* What is logged from now on goes to a file, since the list of GStreamer's log functions leaks when one is added. */
static int
capture_begin (FILE *file)
{
  const int old = dup (STDERR_FILENO);

  fail_unless (file != NULL && old >= 0);
  fflush (stderr);
  fail_unless (dup2 (fileno (file), STDERR_FILENO) >= 0);
  return old;
}

/* Returns: (transfer full): that. Takes @file and @old over. */
static char *
capture_end (FILE *file, int old)
{
  char *text;
  size_t n;

  fflush (stderr);
  fail_unless (dup2 (old, STDERR_FILENO) >= 0);
  close (old);
  text = g_malloc0 (1 << 16);
  rewind (file);
  n = fread (text, 1, (1 << 16) - 1, file);
  fail_unless (n < (1 << 16) - 1);
  fclose (file);
  return text;
}

/* What nobody downstream takes is refused at negotiation, and the log names the field. */
GST_START_TEST (log_names_the_field)
{
  static const struct {
    const char *factory, *out, *words[2];
  } cases[] = {
      {"gpuconvert", GPU ",format=AYUV", {"format", "AYUV"}},
      {"gpuconvert", GPU ",width=99", {"width=34 is not in 99", "downstream"}},
      {"gpuconvert", "video/x-raw,format=RGB", {"feature memory:GPUCache", "memory:SystemMemory"}},
      {"gpuresize", GPU ",format=NV12", {"format=RGB is not in NV12", "downstream"}},
      {"gpuflip", GPU ",height=17", {"height=18 is not in 17", "downstream"}},
  };

  gst_debug_set_threshold_for_name ("gpubasetransform", GST_LEVEL_WARNING);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstHarness *h = gst_harness_new (cases[i].factory);
    FILE *file = tmpfile ();
    const int old = capture_begin (file);
    g_autofree char *logged = NULL;
    GstVideoInfo info;

    info_init (&info, "RGB", 34, 18);
    gst_harness_set_sink_caps_str (h, cases[i].out);
    gst_harness_set_src_caps (h, frame_caps ("RGB", 34, 18, TRUE));
    fail_unless_equals_int (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)),
                            GST_FLOW_NOT_NEGOTIATED);
    logged = capture_end (file, old);
    for (guint k = 0; k < 2; k++)
      fail_unless (strstr (logged, cases[i].words[k]) != NULL, "\"%s\" is not in \"%s\"", cases[i].words[k], logged);
    gst_harness_teardown (h);
  }
  gst_debug_set_threshold_for_name ("gpubasetransform", GST_LEVEL_NONE);
}
GST_END_TEST

/* So is what downstream asks for while frames flow. */
GST_START_TEST (log_names_the_field_in_mid_stream)
{
  GstHarness *h = gst_harness_new ("gpuconvert");
  g_autofree char *logged = NULL;
  GstVideoInfo info;
  FILE *file;
  int old;

  info_init (&info, "RGB", 34, 18);
  gst_harness_set_sink_caps_str (h, GPU);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 34, 18, TRUE));
  gst_buffer_unref (push_and_pull (h, frame_upload (&info, frame_new (&info, 1), NULL)));

  gst_debug_set_threshold_for_name ("gpubasetransform", GST_LEVEL_WARNING);
  file = tmpfile ();
  old = capture_begin (file);
  gst_harness_set_sink_caps_str (h, GPU ",height=17");
  fail_unless_equals_int (gst_harness_push (h, frame_upload (&info, frame_new (&info, 2), NULL)),
                          GST_FLOW_NOT_NEGOTIATED);
  logged = capture_end (file, old);
  gst_debug_set_threshold_for_name ("gpubasetransform", GST_LEVEL_NONE);
  fail_unless (strstr (logged, "the field height=18 is not in 17") != NULL, "\"%s\"", logged);
  gst_harness_teardown (h);
}
GST_END_TEST

/* And what upstream asks for before it sends any caps, once. */
GST_START_TEST (log_names_the_field_of_queries)
{
  GstHarness *h = gst_harness_new ("gpuconvert");
  g_autoptr (GstCaps) filter = frame_caps ("RGB", 34, 18, TRUE);
  g_autofree char *logged = NULL;
  const char *line;
  FILE *file = tmpfile ();
  int old;

  gst_harness_set_sink_caps_str (h, GPU ",height=17");
  gst_debug_set_threshold_for_name ("gpubasetransform", GST_LEVEL_WARNING);
  old = capture_begin (file);
  for (int i = 0; i < 2; i++) {
    g_autoptr (GstCaps) answer = gst_pad_peer_query_caps (h->srcpad, filter);

    fail_unless (gst_caps_is_empty (answer));
  }
  logged = capture_end (file, old);
  gst_debug_set_threshold_for_name ("gpubasetransform", GST_LEVEL_NONE);
  line = strstr (logged, "downstream: the field height=18 is not in 17");
  fail_unless (line != NULL, "\"%s\"", logged);
  fail_if (strstr (line, "was refused"), "\"%s\"", logged);
  gst_harness_teardown (h);
}
GST_END_TEST

/* And what cannot be linked, because upstream has nothing that will do. */
GST_START_TEST (log_names_the_field_of_links)
{
  GstHarness *h = gst_harness_new ("gpureformat");
  g_autoptr (GstCaps) caps = NULL;
  g_autofree char *logged = NULL;
  FILE *file = tmpfile ();
  int old;

  gst_harness_set_src_caps_str (h, "other/tensors(memory:GPUCache),format=static,num_tensors=1,types=uint8,"
                                   "dimensions=(string)5:64:48,framerate=0/1");
  gst_debug_set_threshold_for_name ("gpubasetransform", GST_LEVEL_WARNING);
  old = capture_begin (file);
  caps = gst_pad_query_caps (GST_PAD_PEER (h->sinkpad), NULL);
  logged = capture_end (file, old);
  gst_debug_set_threshold_for_name ("gpubasetransform", GST_LEVEL_NONE);
  fail_unless (gst_caps_is_empty (caps));
  fail_unless (strstr (logged, "dimensions=5:64:48, in which") != NULL, "\"%s\"", logged);
  gst_harness_teardown (h);
}
GST_END_TEST

static gboolean
mark_init (GstMeta *meta, gpointer params, GstBuffer *buffer)
{
  return TRUE;
}

static gboolean
mark_transform (GstBuffer *to, GstMeta *meta, GstBuffer *from, GQuark type, gpointer data)
{
  return gst_buffer_add_meta (to, meta->info, NULL) != NULL;
}

/* A meta that says nothing but what it depends on. */
static const GstMetaInfo *
mark_of (const char *name, const char *tag)
{
  const gchar *tags[] = {GST_META_TAG_VIDEO_STR, tag, NULL};
  g_autofree char *api = g_strdup_printf ("%sAPI", name);

  return gst_meta_register (gst_meta_api_type_register (api, tags), name, sizeof (GstMeta), mark_init, NULL,
                            mark_transform);
}

/* What belongs to the picture goes on, what belongs to its colours does not. */
GST_START_TEST (metas)
{
  const GstMetaInfo *colors = mark_of ("TestColorsMeta", GST_META_TAG_VIDEO_COLORSPACE_STR);
  const GstMetaInfo *size = mark_of ("TestSizeMeta", GST_META_TAG_VIDEO_SIZE_STR);
  GstHarness *h = gst_harness_new ("gpuconvert");
  GstVideoRegionOfInterestMeta *region;
  GstVideoInfo info;
  GstBuffer *buffer;

  info_init (&info, "NV12", 34, 18);
  gst_harness_set_caps (h, frame_caps ("NV12", 34, 18, TRUE), frame_caps ("RGB", 34, 18, TRUE));
  buffer = gst_buffer_make_writable (frame_upload (&info, frame_new (&info, 1), NULL));
  gst_buffer_add_meta (buffer, colors, NULL);
  gst_buffer_add_meta (buffer, size, NULL);
  gst_buffer_add_video_region_of_interest_meta (buffer, "face", 4, 3, 10, 5);
  GST_BUFFER_PTS (buffer) = 77 * GST_MSECOND;
  GST_BUFFER_DURATION (buffer) = 33 * GST_MSECOND;
  buffer = push_and_pull (h, buffer);
  fail_unless (gst_buffer_get_meta (buffer, size->api) != NULL);
  fail_unless (gst_buffer_get_meta (buffer, colors->api) == NULL);
  region = gst_buffer_get_video_region_of_interest_meta_id (buffer, 0);
  fail_unless (region && region->x == 4 && region->y == 3 && region->w == 10 && region->h == 5);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (buffer), 77 * GST_MSECOND);
  fail_unless_equals_uint64 (GST_BUFFER_DURATION (buffer), 33 * GST_MSECOND);
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}
GST_END_TEST

/* From format to format and colours to colours between two frames. */
GST_START_TEST (renegotiation_in_mid_stream)
{
  GstHarness *h = gst_harness_new ("gpuconvert");

  gst_harness_set_sink_caps_str (h, GPU ",format=BGRA");
  for (int i = 0; i < 2 * N_ALL_FORMATS; i++) {
    const char *format = all_formats[i * 5 % N_ALL_FORMATS];
    GstVideoInfo info;
    GstBuffer *buffer;

    info_init (&info, format, 30 + i, 40 - i);
    gst_harness_set_src_caps (h, frame_caps (format, 30 + i, 40 - i, TRUE));
    buffer = push_and_pull (h, frame_upload (&info, frame_new (&info, (guint)i), NULL));
    fail_unless_equals_int ((int)gst_buffer_get_video_meta (buffer)->width, 30 + i);
    fail_unless_equals_int ((int)gst_buffer_get_video_meta (buffer)->format, GST_VIDEO_FORMAT_BGRA);
    gst_buffer_unref (buffer);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
gpuconvert_caps_suite (void)
{
  Suite *s = suite_create ("gpuconvert-caps");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, format_nearest_to_the_input);
  tcase_add_test (tc, format_of_the_right_structure);
  tcase_add_test (tc, colours_carried_over);
  tcase_add_test (tc, colours_nearest_to_the_input);
  tcase_add_test (tc, other_fields_are_kept);
  tcase_add_test (tc, queries);
  tcase_add_test (tc, nothing_to_do_passes);
  tcase_add_test (tc, other_colours_are_converted);
  tcase_add_test (tc, crop_is_what_is_converted);
  tcase_add_test (tc, refusals);
  tcase_add_test (tc, interlaced_without_moving_chroma);
  tcase_add_test (tc, log_names_the_field);
  tcase_add_test (tc, log_names_the_field_in_mid_stream);
  tcase_add_test (tc, log_names_the_field_of_queries);
  tcase_add_test (tc, log_names_the_field_of_links);
  tcase_add_test (tc, metas);
  tcase_add_test (tc, renegotiation_in_mid_stream);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, gpuconvert_caps_suite, __FILE__);
}
