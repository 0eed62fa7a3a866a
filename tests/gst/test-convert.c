/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpuconvert's results: every pair of formats against the formulas in real arithmetic, with the constants that
 * GStreamer's video library has; chroma-sites; and GStreamer's own videoconvert, where that is a reference.
 */
#include "colors.h"
#include "common.h"
#include "picture.h"

#include <math.h>

#define GPU_LINE "gpuupload ! gpuconvert ! gpudownload"
/* What the library promises: less than 0.2 besides the rounding. */
#define TOLERANCE 0.7

typedef struct {
  GstVideoInfo info;
  GstBuffer *buffer;
} Frame;

static void
frame_clear (Frame *frame)
{
  gst_buffer_unref (frame->buffer);
}

static gboolean
is_420 (const GstVideoInfo *info)
{
  return GST_VIDEO_INFO_IS_YUV (info);
}

static void
describe (GstVideoInfo *info, const char *format, int width, int height, GstVideoColorMatrix matrix,
          GstVideoColorRange range, GstVideoChromaSite site)
{
  info_init (info, format, width, height);
  info->colorimetry.range = range;
  if (!GST_VIDEO_INFO_IS_RGB (info))
    info->colorimetry.matrix = matrix;
  info->chroma_site = is_420 (info) ? site : GST_VIDEO_CHROMA_SITE_UNKNOWN;
  info->fps_n = 30;
  info->fps_d = 1;
}

/* Converts @in, of caps that say all of its info, to @out's. */
static Frame
convert (const char *line, const GstVideoInfo *in, GstBuffer *buffer, const GstVideoInfo *out)
{
  GstHarness *h = gst_harness_new_parse (line);
  g_autoptr (GstCaps) caps = NULL;
  Frame result;

  gst_harness_set_caps (h, gst_video_info_to_caps (in), gst_video_info_to_caps (out));
  result.buffer = push_and_pull (h, gst_buffer_ref (buffer));
  caps = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (gst_video_info_from_caps (&result.info, caps));
  fail_unless_equals_int (GST_VIDEO_INFO_FORMAT (&result.info), GST_VIDEO_INFO_FORMAT (out));
  gst_harness_teardown (h);
  return result;
}

/* Blocks of one colour each, so that it does not matter where chroma is interpolated: not near their edges. */
#define BLOCK 16
#define N_BLOCKS 8

static GstBuffer *
blocks_new (const GstVideoInfo *info, guint32 seed)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, info->size, NULL);
  g_autoptr (GRand) random = g_rand_new_with_seed (seed);
  GstVideoFrame frame;
  int color[N_BLOCKS + 1][4];

  for (int i = 0; i <= N_BLOCKS; i++)
    for (guint c = 0; c < 4; c++)
      color[i][c] = g_rand_int_range (
          random, 0, c < GST_VIDEO_INFO_N_COMPONENTS (info) ? 1 << GST_VIDEO_INFO_COMP_DEPTH (info, c) : 256);
  gst_buffer_memset (buffer, 0, 0x77, info->size);
  fail_unless (gst_video_frame_map (&frame, info, buffer, GST_MAP_READWRITE));
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS (info); c++)
    for (int y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&frame, c); y++)
      for (int x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH (&frame, c); x++) {
        const int block = (x << GST_VIDEO_FORMAT_INFO_W_SUB (info->finfo, c)) / BLOCK;

        color_put (&frame, c, x, y, color[block][c]);
      }
  gst_video_frame_unmap (&frame);
  return buffer;
}

/* Returns: the worst error. */
static double
check_blocks (const GstVideoInfo *in, const GstVideoInfo *out, guint32 seed)
{
  GstBuffer *buffer = blocks_new (in, seed);
  Frame result = convert (GPU_LINE, in, buffer, out);
  GstVideoFrame src, dst;
  double worst = 0;

  fail_unless (gst_video_colorimetry_is_equal (&result.info.colorimetry, &out->colorimetry));
  fail_unless (gst_video_frame_map (&src, in, buffer, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&dst, &result.info, result.buffer, GST_MAP_READ));
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS (out); c++)
    for (int y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&dst, c); y++)
      for (int x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH (&dst, c); x++) {
        const int at = x << GST_VIDEO_FORMAT_INFO_W_SUB (out->finfo, c);
        double code[3] = {0}, expected[4], error;

        if (at % BLOCK < 4 || at % BLOCK >= BLOCK - 4 || at / BLOCK >= N_BLOCKS)
          continue;
        for (guint k = 0; k < GST_VIDEO_INFO_N_COMPONENTS (in) && k < 3; k++)
          code[k] = color_get (&src, k, at >> GST_VIDEO_FORMAT_INFO_W_SUB (in->finfo, k), 0);
        color_exact (in, out, code, expected);
        expected[3] = GST_VIDEO_INFO_HAS_ALPHA (in) ? color_get (&src, 3, at, 0) : 255;
        error = fabs (color_get (&dst, c, x, y) - expected[c]);
        fail_unless (error < TOLERANCE, "%s to %s, component %u at (%d, %d): %d, not %g", GST_VIDEO_INFO_NAME (in),
                     GST_VIDEO_INFO_NAME (out), c, x, y, color_get (&dst, c, x, y), expected[c]);
        worst = MAX (worst, error);
      }
  gst_video_frame_unmap (&src);
  gst_video_frame_unmap (&dst);
  gst_buffer_unref (buffer);
  frame_clear (&result);
  return worst;
}

static const GstVideoColorMatrix matrices[] = {GST_VIDEO_COLOR_MATRIX_BT601, GST_VIDEO_COLOR_MATRIX_BT709,
                                               GST_VIDEO_COLOR_MATRIX_BT2020};
static const GstVideoColorRange ranges[] = {GST_VIDEO_COLOR_RANGE_0_255, GST_VIDEO_COLOR_RANGE_16_235};
static const GstVideoChromaSite sites[] = {GST_VIDEO_CHROMA_SITE_JPEG, GST_VIDEO_CHROMA_SITE_MPEG2,
                                           GST_VIDEO_CHROMA_SITE_COSITED};

GST_START_TEST (every_pair_of_formats)
{
  double worst = 0;
  guint turn = 0;

  for (guint from = 0; from < N_ALL_FORMATS; from++)
    for (guint to = 0; to < N_ALL_FORMATS; to++)
      for (guint i = 0; i < 3; i++, turn++) {
        GstVideoInfo in, out;
        double error;

        describe (&in, all_formats[from], N_BLOCKS * BLOCK + 3, 5, matrices[turn % 3], ranges[turn / 3 % 2],
                  sites[turn / 5 % 3]);
        describe (&out, all_formats[to], N_BLOCKS * BLOCK + 3, 5, matrices[turn / 2 % 3], ranges[turn / 7 % 2],
                  sites[turn / 11 % 3]);
        error = check_blocks (&in, &out, turn);
        worst = MAX (worst, error);
      }
  g_print ("all pairs against the formulas: worst error %.4f levels, rounding included\n", worst);
}
GST_END_TEST

/* The pixels that a chroma sample is the mean of. */
static double
average (const GstVideoFrame *frame, guint c, GstVideoChromaSite site, int x, int y)
{
  static const double between[3] = {0, 0.5, 0.5}, upon[3] = {0.25, 0.5, 0.25};
  const double *across = color_phase (site, FALSE) > 0 ? between : upon,
               *down = color_phase (site, TRUE) > 0 ? between : upon;
  double sum = 0;

  for (int j = 0; j < 3; j++)
    for (int i = 0; i < 3; i++)
      sum += across[i] * down[j] * color_get_clamped (frame, c, 2 * x + i - 1, 2 * y + j - 1);
  return sum;
}

/* In one step from R'G'B' of noise, where chroma is linear in the pixels, and back. */
GST_START_TEST (chroma_sites)
{
  static const int sizes[][2] = {{1, 1}, {2, 3}, {33, 17}, {46, 20}};
  double worst = 0;

  for (guint s = 0; s < G_N_ELEMENTS (sites); s++)
    for (guint k = 0; k < G_N_ELEMENTS (sizes); k++)
      for (int up = 0; up < 2; up++) {
        const int width = sizes[k][0], height = sizes[k][1];
        GstVideoInfo in, out;
        GstVideoFrame src, dst;
        GstBuffer *buffer;
        Frame result;

        describe (&in, up ? "I420" : "RGB", width, height, matrices[0], ranges[0], sites[s]);
        describe (&out, up ? "RGB" : "I420", width, height, matrices[0], ranges[0], sites[s]);
        buffer = frame_new (&in, s * 10 + k);
        result = convert (GPU_LINE, &in, buffer, &out);
        fail_unless (gst_video_frame_map (&src, &in, buffer, GST_MAP_READ));
        fail_unless (gst_video_frame_map (&dst, &result.info, result.buffer, GST_MAP_READ));
        for (guint c = 0; c < 3; c++)
          for (int y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&dst, c); y++)
            for (int x = 0; x < GST_VIDEO_FRAME_COMP_WIDTH (&dst, c); x++) {
              double code[3], expected[3], error;

              for (guint i = 0; i < 3; i++) {
                if (up)
                  code[i] = i ? color_chroma_at (&src, i, sites[s], x, y) : color_get (&src, 0, x, y);
                else
                  code[i] = c ? average (&src, i, sites[s], x, y) : color_get (&src, i, x, y);
              }
              color_exact (&in, &out, code, expected);
              error = fabs (color_get (&dst, c, x, y) - expected[c]);
              fail_unless (error < TOLERANCE, "%s to %s, site %u, component %u at (%d, %d): %d, not %g",
                           GST_VIDEO_INFO_NAME (&in), GST_VIDEO_INFO_NAME (&out), s, c, x, y, color_get (&dst, c, x, y),
                           expected[c]);
              worst = MAX (worst, error);
            }
        gst_video_frame_unmap (&src);
        gst_video_frame_unmap (&dst);
        gst_buffer_unref (buffer);
        frame_clear (&result);
      }
  g_print ("chroma-sites against the formulas: worst error %.4f levels, rounding included\n", worst);
}
GST_END_TEST

typedef struct {
  guint64 samples, off;
  int worst;
} Count;

static void
count (Count *counts, int a, int b)
{
  counts->samples++;
  counts->off += a != b;
  counts->worst = MAX (counts->worst, ABS (a - b));
}

static void
print_count (const Count *counts, const char *what)
{
  g_print ("%s against videoconvert: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " samples off, worst %d\n", what,
           counts->off, counts->samples, counts->worst);
  fail_unless (counts->samples > 1000 && counts->worst <= 1);
}

static const char *const rgb_formats[] = {"RGB",  "BGR",  "RGBA", "BGRA", "ARGB", "ABGR",
                                          "RGBx", "BGRx", "xRGB", "xBGR", "RGBP", "GBR"};
static const char *const yuv_formats[] = {"I420", "NV12"};

/* Returns: (transfer full): the same colours in ARGB64. */
static GstBuffer *
widen (const GstVideoInfo *info, GstBuffer *buffer, const GstVideoInfo *wide)
{
  GstBuffer *result = gst_buffer_new_allocate (NULL, wide->size, NULL);
  GstVideoFrame from, to;

  fail_unless (gst_video_frame_map (&from, info, buffer, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&to, wide, result, GST_MAP_WRITE));
  for (guint c = 0; c < 4; c++)
    for (int y = 0; y < GST_VIDEO_INFO_HEIGHT (info); y++)
      for (int x = 0; x < GST_VIDEO_INFO_WIDTH (info); x++)
        color_put (&to, c, x, y, c < GST_VIDEO_INFO_N_COMPONENTS (info) ? color_get (&from, c, x, y) : 255);
  gst_video_frame_unmap (&from);
  gst_video_frame_unmap (&to);
  return result;
}

/* videoconvert works in 16 bits on ARGB64, which is nearer to the formulas than its way from 8 bits. It is a reference
 * for limited range, and has no chroma-site between rows and no filter in the last column of one on them. */
GST_START_TEST (to_420_as_videoconvert)
{
  Count counts = {0};

  for (guint i = 0; i < G_N_ELEMENTS (rgb_formats) * 2 * 3 * 2; i++) {
    const char *from = rgb_formats[i / 2 % 12], *to = yuv_formats[i % 2];
    const GstVideoColorMatrix matrix = matrices[i / 24 % 3];
    const GstVideoChromaSite site = sites[i / 72];
    GstVideoFrame frame[2];
    GstVideoInfo in, out, wide;
    GstBuffer *buffer, *wide_buffer;
    Frame result[2];

    describe (&in, from, 46, 20, matrix, GST_VIDEO_COLOR_RANGE_0_255, site);
    describe (&out, to, 46, 20, matrix, GST_VIDEO_COLOR_RANGE_16_235, site);
    describe (&wide, "ARGB64", 46, 20, matrix, GST_VIDEO_COLOR_RANGE_0_255, site);
    buffer = frame_new (&in, i);
    wide_buffer = widen (&in, buffer, &wide);
    result[0] = convert (GPU_LINE, &in, buffer, &out);
    result[1] = convert ("videoconvert dither=none", &wide, wide_buffer, &out);
    for (int k = 0; k < 2; k++)
      fail_unless (gst_video_frame_map (&frame[k], &result[k].info, result[k].buffer, GST_MAP_READ));
    for (guint c = 0; c < 3; c++)
      for (int y = 0; y < GST_VIDEO_FRAME_COMP_HEIGHT (&frame[0], c); y++)
        for (int x = 0; x < (c ? 22 : 46); x++)
          count (&counts, color_get (&frame[0], c, x, y), color_get (&frame[1], c, x, y));
    fail_unless (counts.worst <= 1, "%s to %s, matrix %d, site %d: %d levels", from, to, matrix, site, counts.worst);
    for (int k = 0; k < 2; k++) {
      gst_video_frame_unmap (&frame[k]);
      frame_clear (&result[k]);
    }
    gst_buffer_unref (buffer);
    gst_buffer_unref (wide_buffer);
  }
  print_count (&counts, "RGB to NV12 and I420");
}
GST_END_TEST

/* From blocks of one colour: 1.22 takes the nearest chroma sample, whatever the chroma-site. Its weights have 8 bits,
 * which takes it more than a level off the formulas, too: there it is no reference. */
GST_START_TEST (from_420_as_videoconvert)
{
  Count counts = {0};
  guint64 beside = 0;

  for (guint i = 0; i < G_N_ELEMENTS (rgb_formats) * 2 * 3 * 2; i++) {
    const char *from = yuv_formats[i % 2], *to = rgb_formats[i / 2 % 12];
    const GstVideoColorMatrix matrix = matrices[i / 24 % 3];
    const GstVideoColorRange range = ranges[i / 72];
    GstVideoFrame src, frame[2];
    GstVideoInfo in, out, wide;
    GstBuffer *buffer;
    Frame result[2];

    describe (&in, from, N_BLOCKS * BLOCK, 2, matrix, range, sites[i % 3]);
    describe (&out, to, N_BLOCKS * BLOCK, 2, matrix, GST_VIDEO_COLOR_RANGE_0_255, sites[0]);
    describe (&wide, "ARGB64", N_BLOCKS * BLOCK, 2, matrix, GST_VIDEO_COLOR_RANGE_0_255, sites[0]);
    buffer = blocks_new (&in, i);
    result[0] = convert (GPU_LINE, &in, buffer, &out);
    result[1] = convert ("videoconvert dither=none", &in, buffer, &wide);
    fail_unless (gst_video_frame_map (&src, &in, buffer, GST_MAP_READ));
    for (int k = 0; k < 2; k++)
      fail_unless (gst_video_frame_map (&frame[k], &result[k].info, result[k].buffer, GST_MAP_READ));
    for (int block = 0; block < N_BLOCKS; block++) {
      const int x = block * BLOCK + BLOCK / 2;
      double code[3], exact[3];

      for (guint c = 0; c < 3; c++)
        code[c] = color_get (&src, c, x >> GST_VIDEO_FORMAT_INFO_W_SUB (in.finfo, c), 0);
      color_exact (&in, &out, code, exact);
      for (guint c = 0; c < 3; c++) {
        if (fabs (color_get (&frame[1], c, x, 0) - exact[c]) > 1)
          beside++;
        else
          count (&counts, color_get (&frame[0], c, x, 0), color_get (&frame[1], c, x, 0));
      }
    }
    gst_video_frame_unmap (&src);
    for (int k = 0; k < 2; k++) {
      gst_video_frame_unmap (&frame[k]);
      frame_clear (&result[k]);
    }
    gst_buffer_unref (buffer);
  }
  print_count (&counts, "NV12 and I420 to RGB");
  g_print ("  (and %" G_GUINT64_FORMAT " samples where videoconvert is more than a level off the formulas)\n", beside);
}
GST_END_TEST

/* Rows and planes that lie otherwise in memory, and sizes that are no multiples of anything. */
GST_START_TEST (sizes_and_strides)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (7);

  for (int i = 0; i < 150; i++) {
    const char *from = all_formats[g_rand_int_range (random, 0, N_ALL_FORMATS)];
    const char *to = all_formats[g_rand_int_range (random, 0, N_ALL_FORMATS)];
    const int width = g_rand_int_range (random, 1, i % 2 ? 9 : 200), height = g_rand_int_range (random, 1, 40);
    /* 16-bit samples do not lie at odd addresses. */
    const int pad = 2 * g_rand_int_range (random, 1, 20);
    g_autofree char *what = g_strdup_printf ("%s to %s, %dx%d, padded by %d", from, to, width, height, pad);
    g_autoptr (Picture) plain = NULL;
    g_autoptr (Picture) padded = NULL;
    GstVideoInfo in, out;
    GstBuffer *buffer;
    Frame result;

    describe (&in, from, width, height, matrices[i % 3], ranges[i / 3 % 2], sites[i / 6 % 3]);
    describe (&out, to, width, height, matrices[i / 5 % 3], ranges[i / 7 % 2], sites[i / 11 % 3]);
    buffer = frame_new (&in, (guint)i);
    result = convert (GPU_LINE, &in, buffer, &out);
    plain = picture_read (&result.info, result.buffer);
    gst_buffer_unref (buffer);
    frame_clear (&result);
    buffer = frame_new_padded (&in, (guint)i, pad);
    result = convert (GPU_LINE, &in, buffer, &out);
    padded = picture_read (&result.info, result.buffer);
    gst_buffer_unref (buffer);
    frame_clear (&result);
    assert_pictures_equal (plain, padded, what);
  }
}
GST_END_TEST

static Suite *
gpuconvert_suite (void)
{
  Suite *s = suite_create ("gpuconvert");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, every_pair_of_formats);
  tcase_add_test (tc, chroma_sites);
  tcase_add_test (tc, to_420_as_videoconvert);
  tcase_add_test (tc, from_420_as_videoconvert);
  tcase_add_test (tc, sizes_and_strides);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, gpuconvert_suite, __FILE__);
}
