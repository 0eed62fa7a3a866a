/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion: between all formats, against the formulas of BT.601, BT.709 and BT.2020 in real arithmetic; tensors'
 * elements; what it refuses.
 */
#include "picture.h"

#include <math.h>
#include <string.h>

/* convert.h promises less than 0.2 besides the rounding. */
#define TOLERANCE 0.7

static bool
convert (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_convert (stream, src, dst, params, error);
}

static bool
is_420 (GpuFormat format)
{
  return format == GPU_FORMAT_NV12 || format == GPU_FORMAT_I420 || format == GPU_FORMAT_P010_10LE;
}

static bool
is_yuv (GpuFormat format)
{
  return is_420 (format) || format == GPU_FORMAT_GRAY8;
}

/* The plane and the sample of a channel: R, G, B, A or Y, U, V. False if there is none. */
static bool
find_channel (GpuFormat format, unsigned c, unsigned *plane, unsigned *i)
{
  const char *name = gpu_format_info (format)->name;
  const char *at = strchr (name, "RGBA"[c]);

  *plane = *i = 0;
  if (format == GPU_FORMAT_GRAY8)
    return c == 0;
  if (format == GPU_FORMAT_I420) {
    *plane = c;
    return c < 3;
  }
  if (is_420 (format)) {
    *plane = c > 0;
    *i = c == 2;
    return c < 3;
  }
  if (!at)
    return false;
  if (format == GPU_FORMAT_GBR || format == GPU_FORMAT_RGBP)
    *plane = (unsigned)(at - name);
  else
    *i = (unsigned)(at - name);
  return true;
}

static double
sample (const Picture *picture, unsigned c, int64_t x, int64_t y)
{
  unsigned plane, i;

  g_assert_true (find_channel (picture->spec.format, c, &plane, &i));
  x = CLAMP (x, 0, (int64_t)gpu_image_spec_plane_width (&picture->spec, plane) - 1);
  y = CLAMP (y, 0, (int64_t)gpu_image_spec_plane_height (&picture->spec, plane) - 1);
  return picture_get (picture, plane, (uint32_t)x, (uint32_t)y, i);
}

/* Where a chroma sample lies among the pixels, in each direction. */
static double
phase (GpuChromaSite site, bool down)
{
  return site == GPU_CHROMA_SITE_CENTER || (down && site == GPU_CHROMA_SITE_LEFT) ? 0.5 : 0;
}

/* Chroma at a pixel: linear between the samples on both sides. */
static double
chroma_at (const Picture *picture, unsigned c, GpuChromaSite site, uint32_t x, uint32_t y)
{
  const double px = (x - phase (site, false)) / 2, py = (y - phase (site, true)) / 2;
  const int64_t ix = (int64_t)floor (px), iy = (int64_t)floor (py);
  const double fx = px - (double)ix, fy = py - (double)iy;

  return (1 - fy) * ((1 - fx) * sample (picture, c, ix, iy) + fx * sample (picture, c, ix + 1, iy)) +
         fy * ((1 - fx) * sample (picture, c, ix, iy + 1) + fx * sample (picture, c, ix + 1, iy + 1));
}

/* BT.601-7, BT.709-6, BT.2020-2: the numbers for 0 and 1, and Kr, Kb. */

static double
k_red (GpuMatrix matrix)
{
  return matrix == GPU_MATRIX_BT601 ? 0.299 : matrix == GPU_MATRIX_BT709 ? 0.2126 : 0.2627;
}

static double
k_blue (GpuMatrix matrix)
{
  return matrix == GPU_MATRIX_BT601 ? 0.114 : matrix == GPU_MATRIX_BT709 ? 0.0722 : 0.0593;
}

static bool
is_full (GpuFormat format, GpuRange range)
{
  return range == GPU_RANGE_DEFAULT ? !is_420 (format) : range == GPU_RANGE_FULL;
}

static double
from_code (GpuFormat format, GpuRange range, bool chroma, double code)
{
  const double unit = format == GPU_FORMAT_P010_10LE ? 4 : 1, max = 256 * unit - 1;

  if (chroma)
    return (code - 128 * unit) / (is_full (format, range) ? max : 224 * unit);
  return is_full (format, range) ? code / max : (code - 16 * unit) / (219 * unit);
}

static double
to_code (GpuFormat format, GpuRange range, bool chroma, double value)
{
  const double unit = format == GPU_FORMAT_P010_10LE ? 4 : 1, max = 256 * unit - 1;

  if (chroma)
    return 128 * unit + value * (is_full (format, range) ? max : 224 * unit);
  return is_full (format, range) ? value * max : 16 * unit + value * 219 * unit;
}

/* A pixel in the destination's channels, R, G, B or Y, Cb, Cr, as numbers of 0 to 1 or around 0. */
static void
pixel_at (const Picture *src, GpuFormat to, const GpuConvert *params, int64_t at_x, int64_t at_y, double v[3])
{
  const GpuFormat from = src->spec.format;
  const uint32_t x = (uint32_t)CLAMP (at_x, 0, (int64_t)src->spec.width - 1);
  const uint32_t y = (uint32_t)CLAMP (at_y, 0, (int64_t)src->spec.height - 1);
  double kr = k_red (params->src.matrix), kb = k_blue (params->src.matrix);

  if (!is_yuv (from)) {
    for (unsigned c = 0; c < 3; c++)
      v[c] = from_code (from, params->src.range, false, sample (src, c, x, y));
  } else {
    const double luma = from_code (from, params->src.range, false, sample (src, 0, x, y));
    double cb = 0, cr = 0;

    if (is_420 (from)) {
      cb = from_code (from, params->src.range, true, chroma_at (src, 1, params->src.chroma_site, x, y));
      cr = from_code (from, params->src.range, true, chroma_at (src, 2, params->src.chroma_site, x, y));
    }
    v[0] = luma + cr * 2 * (1 - kr);
    v[2] = luma + cb * 2 * (1 - kb);
    v[1] = (luma - kr * v[0] - kb * v[2]) / (1 - kr - kb);
  }
  if (is_yuv (to)) {
    const double r = v[0], g = v[1], b = v[2];

    kr = k_red (params->dst.matrix);
    kb = k_blue (params->dst.matrix);
    v[0] = kr * r + (1 - kr - kb) * g + kb * b;
    v[1] = (b - v[0]) / 2 / (1 - kb);
    v[2] = (r - v[0]) / 2 / (1 - kr);
  }
}

/* Chroma sample @x, @y: the pixels around it, as convert.h weights them. */
static double
chroma_of (const Picture *src, GpuFormat to, const GpuConvert *params, unsigned c, uint32_t x, uint32_t y)
{
  static const double between[3] = {0, 0.5, 0.5}, upon[3] = {0.25, 0.5, 0.25};
  const double *across = phase (params->dst.chroma_site, false) > 0 ? between : upon;
  const double *down = phase (params->dst.chroma_site, true) > 0 ? between : upon;
  double sum = 0;

  for (int j = 0; j < 3; j++)
    for (int i = 0; i < 3; i++) {
      double v[3];

      if (across[i] == 0 || down[j] == 0)
        continue;
      pixel_at (src, to, params, 2 * (int64_t)x + i - 1, 2 * (int64_t)y + j - 1, v);
      sum += across[i] * down[j] * v[c];
    }
  return sum;
}

static double
exact_value (const Picture *src, const GpuImageSpec *dst, unsigned plane, unsigned i, uint32_t x, uint32_t y,
             const void *data)
{
  const GpuConvert *params = data;
  const GpuFormat from = src->spec.format, to = dst->format;
  double v[3];

  for (unsigned c = 0; c < 4; c++) {
    unsigned at_plane, at;
    const bool chroma = is_yuv (to) && c;

    if (!find_channel (to, c, &at_plane, &at) || at_plane != plane || at != i)
      continue;
    if (c == 3)
      return gpu_format_info (from)->has_alpha ? sample (src, 3, x, y) : 255;
    /* Sample by sample. */
    if (is_420 (from) && is_yuv (to) && params->src.matrix == params->dst.matrix &&
        (!is_420 (to) || params->src.chroma_site == params->dst.chroma_site))
      return to_code (to, params->dst.range, chroma,
                      from_code (from, params->src.range, chroma, sample (src, c, x, y)));
    if (chroma)
      return to_code (to, params->dst.range, true, chroma_of (src, to, params, c, x, y));
    pixel_at (src, to, params, x, y, v);
    return to_code (to, params->dst.range, false, v[c]);
  }
  return 255; /* padding */
}

/* 16-bit samples do not lie at odd addresses. */
static GpuImageSpec
spec_of (GpuFormat format, uint32_t width, uint32_t height, unsigned layout)
{
  if (format == GPU_FORMAT_P010_10LE && layout % N_LAYOUTS == LAYOUT_ODD)
    layout = LAYOUT_WORDS;
  return picture_spec (format, width, height, (Layout)(layout % N_LAYOUTS));
}

static const uint32_t sizes[][2] = {{1, 1}, {1, 5}, {6, 1}, {2, 2}, {3, 7}, {33, 6}, {130, 11}};

static GpuConvert
params_of_turn (unsigned turn)
{
  GpuConvert params;

  gpu_convert_init (&params);
  params.src = (GpuColorimetry){(GpuMatrix)(turn % 3), (GpuRange)(turn / 3 % 3), (GpuChromaSite)(turn / 5 % 3)};
  params.dst = (GpuColorimetry){(GpuMatrix)(turn / 2 % 3), (GpuRange)(turn / 7 % 3), (GpuChromaSite)(turn / 11 % 3)};
  return params;
}

/* From each format to each, with every pair of layouts and every matrix, range and site in some of them. */
static void
test_formats (OpFixture *fixture, const void *data)
{
  double worst = 0;
  unsigned turn = 0;

  for (unsigned from = FIRST_FORMAT; from <= GPU_LAST_PICTURE_FORMAT; from++)
    for (unsigned to = FIRST_FORMAT; to <= GPU_LAST_PICTURE_FORMAT; to++)
      for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++, turn++) {
        GpuImageSpec src = spec_of ((GpuFormat)from, sizes[i][0], sizes[i][1], turn);
        GpuImageSpec dst = spec_of ((GpuFormat)to, sizes[i][0], sizes[i][1], turn / N_LAYOUTS);
        GpuConvert params = params_of_turn (turn);

        worst = MAX (worst, picture_check_near (fixture->stream, &src, &dst, convert, exact_value, &params, TOLERANCE));
      }
  g_test_message ("worst error: %.4f levels", worst);
}

/* The same of sizes and layouts as most pictures have them, for which a GPU has kernels of their own: rows that are
 * whole groups of 4 or 16 pixels, more than a warp's and fewer, and aligned. */
static void
test_whole (OpFixture *fixture, const void *data)
{
  static const uint32_t whole[][2] = {{4, 1}, {16, 3}, {132, 5}, {272, 18}};
  unsigned turn = 0;

  for (unsigned from = FIRST_FORMAT; from <= GPU_LAST_PICTURE_FORMAT; from++)
    for (unsigned to = FIRST_FORMAT; to <= GPU_LAST_PICTURE_FORMAT; to++)
      for (unsigned i = 0; i < G_N_ELEMENTS (whole); i++, turn++) {
        GpuImageSpec src = test_spec ((GpuFormat)from, whole[i][0], whole[i][1]);
        GpuImageSpec dst = test_spec ((GpuFormat)to, whole[i][0], whole[i][1]);
        GpuConvert params = params_of_turn (turn);

        /* Sample by sample, where only the range is another one. */
        if (is_420 ((GpuFormat)from) && is_yuv ((GpuFormat)to) && i % 2) {
          params.dst.matrix = params.src.matrix;
          params.dst.chroma_site = params.src.chroma_site;
        }
        /* Formats that differ in the order of channels take turns. */
        if (picture_takes_turns ((GpuFormat)from, turn) || picture_takes_turns ((GpuFormat)to, turn / 8))
          continue;
        picture_check_near (fixture->stream, &src, &dst, convert, exact_value, &params, TOLERANCE);
      }
}

/* Every combination of matrix, range and site, for one format of each kind. */
static void
test_colorimetries (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_BGRA, GPU_FORMAT_GRAY8, GPU_FORMAT_I420, GPU_FORMAT_P010_10LE};
  double worst[2] = {0};

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned t = 0; t < G_N_ELEMENTS (formats); t++)
      for (unsigned turn = 0; turn < 3 * 3 * 2 * 2 * 3 * 3; turn++) {
        const GpuFormat from = formats[f], to = formats[t];
        GpuImageSpec src = test_spec (from, 14, 7), dst = test_spec (to, 14, 7);
        GpuConvert params;

        gpu_convert_init (&params);
        params.src.matrix = (GpuMatrix)(turn % 3);
        params.dst.matrix = (GpuMatrix)(turn / 3 % 3);
        params.src.range = turn / 9 % 2 ? GPU_RANGE_FULL : GPU_RANGE_LIMITED;
        params.dst.range = turn / 18 % 2 ? GPU_RANGE_FULL : GPU_RANGE_LIMITED;
        params.src.chroma_site = (GpuChromaSite)(turn / 36 % 3);
        params.dst.chroma_site = (GpuChromaSite)(turn / 108);
        /* What is not looked at. */
        if ((!is_420 (from) && params.src.chroma_site) || (!is_420 (to) && params.dst.chroma_site))
          continue;
        const double error = picture_check_near (fixture->stream, &src, &dst, convert, exact_value, &params, TOLERANCE);
        const bool wide = from == GPU_FORMAT_P010_10LE && to == GPU_FORMAT_P010_10LE;
        worst[wide] = MAX (worst[wide], error);
      }
  g_test_message ("worst error: %.4f levels, of 10 bits from 10 bits %.4f", worst[0], worst[1]);
}

/* What everybody knows by heart. */
static void
test_values (OpFixture *fixture, const void *data)
{
  static const struct {
    uint8_t rgb[3];
    GpuMatrix matrix;
    GpuRange range;
    uint8_t yuv[3];
  } cases[] = {
      {{255, 255, 255}, GPU_MATRIX_BT709, GPU_RANGE_LIMITED, {235, 128, 128}},
      {{0, 0, 0}, GPU_MATRIX_BT709, GPU_RANGE_LIMITED, {16, 128, 128}},
      {{255, 0, 0}, GPU_MATRIX_BT601, GPU_RANGE_LIMITED, {81, 90, 240}},
      {{0, 255, 0}, GPU_MATRIX_BT601, GPU_RANGE_LIMITED, {145, 54, 34}},
      {{0, 0, 255}, GPU_MATRIX_BT601, GPU_RANGE_LIMITED, {41, 240, 110}},
      {{255, 0, 0}, GPU_MATRIX_BT709, GPU_RANGE_LIMITED, {63, 102, 240}},
      {{0, 255, 0}, GPU_MATRIX_BT709, GPU_RANGE_LIMITED, {173, 42, 26}},
      {{0, 0, 255}, GPU_MATRIX_BT709, GPU_RANGE_LIMITED, {32, 240, 118}},
      {{255, 0, 0}, GPU_MATRIX_BT601, GPU_RANGE_FULL, {76, 85, 255}},
      {{255, 0, 0}, GPU_MATRIX_BT2020, GPU_RANGE_LIMITED, {74, 97, 240}},
  };

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++) {
    const uint8_t *rgb = cases[i].rgb, *yuv = cases[i].yuv;
    const uint8_t pixel[4] = {rgb[0], rgb[1], rgb[2], 77};
    const GpuColorimetry colorimetry = {cases[i].matrix, cases[i].range, GPU_CHROMA_SITE_LEFT};
    GpuImageSpec from = picture_spec (GPU_FORMAT_RGB, 1, 1, LAYOUT_PACKED);
    GpuImageSpec to = picture_spec (GPU_FORMAT_I420, 1, 1, LAYOUT_PACKED);
    GpuImage *src = test_image_new (fixture->device, &from, fixture->stream);
    GpuImage *dst = test_image_new (fixture->device, &to, fixture->stream);
    g_autoptr (GError) error = NULL;
    uint8_t values[4];
    GpuConvert params;

    gpu_convert_init (&params);
    params.dst = colorimetry;
    test_image_write (fixture->stream, src, rgb, &from);
    gpu_convert (fixture->stream, src, dst, &params, &error);
    g_assert_no_error (error);
    g_autofree uint8_t *got = test_image_read (fixture->stream, dst, 0);
    g_assert_cmpmem (got, 3, yuv, 3);

    gpu_convert_color (pixel, GPU_FORMAT_I420, &colorimetry, values);
    g_assert_cmpmem (values, 3, yuv, 3);
    gpu_convert_color (pixel, GPU_FORMAT_P010_10LE, &colorimetry, values);
    for (unsigned c = 0; c < 3; c++)
      g_assert_cmpint (ABS (values[c] - yuv[c]), <=, 1);
    gpu_convert_color (pixel, GPU_FORMAT_BGRA, NULL, values);
    g_assert_cmpmem (values, 4, pixel, 4);
    gpu_image_unref (src);
    gpu_image_unref (dst);
  }
}

static Picture
converted (OpFixture *fixture, const Picture *src, GpuFormat format)
{
  GpuImageSpec spec = test_spec (format, src->spec.width, src->spec.height);
  GpuImage *from = picture_upload (fixture->stream, src),
           *to = test_image_new (fixture->device, &spec, fixture->stream);
  g_autoptr (GError) error = NULL;

  gpu_convert (fixture->stream, from, to, NULL, &error);
  g_assert_no_error (error);
  Picture result = {spec, test_image_read (fixture->stream, to, 0)};
  gpu_image_unref (from);
  gpu_image_unref (to);
  return result;
}

/* There and back: nothing is lost between formats of the same samples. */
static void
test_round_trips (OpFixture *fixture, const void *data)
{
  static const GpuFormat routes[][3] = {
      {GPU_FORMAT_NV12, GPU_FORMAT_I420, GPU_FORMAT_NV12}, {GPU_FORMAT_I420, GPU_FORMAT_P010_10LE, GPU_FORMAT_I420},
      {GPU_FORMAT_RGBA, GPU_FORMAT_ABGR, GPU_FORMAT_RGBA}, {GPU_FORMAT_RGB, GPU_FORMAT_GBR, GPU_FORMAT_RGB},
      {GPU_FORMAT_RGBP, GPU_FORMAT_XBGR, GPU_FORMAT_RGBP}, {GPU_FORMAT_GRAY8, GPU_FORMAT_BGR, GPU_FORMAT_GRAY8},
  };

  for (unsigned i = 0; i < G_N_ELEMENTS (routes); i++) {
    GpuImageSpec spec = test_spec (routes[i][0], 131, 47);
    Picture src = picture_new (&spec, i);
    Picture there = converted (fixture, &src, routes[i][1]);
    Picture back = converted (fixture, &there, routes[i][2]);

    test_assert_samples (back.bytes, &back.spec, src.bytes, &spec);
    picture_clear (&src);
    picture_clear (&there);
    picture_clear (&back);
  }
}

/* Rows longer than what the host and a block do at once. */
static void
test_wide (OpFixture *fixture, const void *data)
{
  static const GpuFormat pairs[][2] = {{GPU_FORMAT_NV12, GPU_FORMAT_RGB},
                                       {GPU_FORMAT_RGB, GPU_FORMAT_NV12},
                                       {GPU_FORMAT_P010_10LE, GPU_FORMAT_I420},
                                       {GPU_FORMAT_BGRX, GPU_FORMAT_P010_10LE}};

  for (unsigned i = 0; i < G_N_ELEMENTS (pairs); i++)
    for (unsigned site = 0; site < GPU_N_CHROMA_SITES; site++) {
      GpuImageSpec src = spec_of (pairs[i][0], 2071, 3, i), dst = spec_of (pairs[i][1], 2071, 3, site);
      GpuConvert params;

      gpu_convert_init (&params);
      params.src.chroma_site = params.dst.chroma_site = (GpuChromaSite)site;
      picture_check_near (fixture->stream, &src, &dst, convert, exact_value, &params, TOLERANCE);
    }
}

static GpuImage *
tensor_new (OpFixture *fixture, GpuElement element, uint32_t n)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;

  gpu_image_spec_init_tensor (&spec, element, GPU_LAYOUT_HWC, 1, n, 1, &error);
  g_assert_no_error (error);
  return test_image_new (fixture->device, &spec, fixture->stream);
}

/* By hand; tests/compare has all halves and many floats. Lengths that are no multiple of four. */
static void
test_elements (OpFixture *fixture, const void *data)
{
  static const float values[] = {0, -0.0f, 1, 65504, 65519.9f, 65520, -1e9f, 6e-8f, 3e-8f, 2.9e-8f, 0.1f};
  static const uint16_t halves[] = {0, 0x0000, 0x3c00, 0x7bff, 0x7bff, 0x7c00, 0xfc00, 0x0001, 0x0001, 0x0000, 0x2e66};
  static const uint8_t bytes[] = {10, 10, 12, 255, 255, 255, 0, 10, 10, 10, 10};
  const uint32_t n = G_N_ELEMENTS (values);
  GpuImage *f32 = tensor_new (fixture, GPU_ELEMENT_F32, n), *f16 = tensor_new (fixture, GPU_ELEMENT_F16, n);
  GpuImage *u8 = tensor_new (fixture, GPU_ELEMENT_U8, n), *back = tensor_new (fixture, GPU_ELEMENT_F32, n);
  const GpuConvert params = {.scale = 2, .offset = 10};
  g_autoptr (GError) error = NULL;

  test_image_write (fixture->stream, f32, values, gpu_image_spec (f32));
  gpu_convert (fixture->stream, f32, f16, NULL, &error);
  g_assert_no_error (error);
  g_autofree uint8_t *got = test_image_read (fixture->stream, f16, 0);
  g_assert_cmpmem (got, sizeof halves, halves, sizeof halves);

  gpu_convert (fixture->stream, f16, back, NULL, &error);
  g_assert_no_error (error);
  g_autofree uint8_t *floats = test_image_read (fixture->stream, back, 0);
  g_assert_cmpfloat (((float *)(void *)floats)[7], ==, ldexpf (1, -24));
  g_assert_cmpfloat (((float *)(void *)floats)[3], ==, 65504);
  g_assert_true (isinf (((float *)(void *)floats)[6]));

  gpu_convert (fixture->stream, f32, u8, &params, &error);
  g_assert_no_error (error);
  g_autofree uint8_t *small = test_image_read (fixture->stream, u8, 0);
  g_assert_cmpmem (small, sizeof bytes, bytes, sizeof bytes);

  /* What is no number stays alone so. */
  static const float mixed[8192] = {[1] = NAN, [2] = 1, [4099] = NAN, [4098] = 1, [8188] = NAN, [8189] = 1};
  GpuImage *long32 = tensor_new (fixture, GPU_ELEMENT_F32, 8192), *long16 = tensor_new (fixture, GPU_ELEMENT_F16, 8192);
  test_image_write (fixture->stream, long32, mixed, gpu_image_spec (long32));
  gpu_convert (fixture->stream, long32, long16, NULL, &error);
  g_assert_no_error (error);
  g_autofree uint16_t *wide = (uint16_t *)(void *)test_image_read (fixture->stream, long16, 0);
  for (unsigned i = 0; i < 8192; i++)
    g_assert_cmphex (wide[i], ==, isnan (mixed[i]) ? 0x7e00 : mixed[i] > 0 ? 0x3c00 : 0);
  gpu_image_unref (long32);
  gpu_image_unref (long16);

  const float nan = NAN;
  GpuImage *one = tensor_new (fixture, GPU_ELEMENT_F32, 1), *byte = tensor_new (fixture, GPU_ELEMENT_U8, 1);
  test_image_write (fixture->stream, one, &nan, gpu_image_spec (one));
  gpu_convert (fixture->stream, one, byte, NULL, &error);
  g_assert_no_error (error);
  g_autofree uint8_t *zero = test_image_read (fixture->stream, byte, 9);
  g_assert_cmpuint (zero[0], ==, 0);

  gpu_image_unref (f32);
  gpu_image_unref (f16);
  gpu_image_unref (u8);
  gpu_image_unref (back);
  gpu_image_unref (one);
  gpu_image_unref (byte);
}

static void
test_refusals (OpFixture *fixture, const void *data)
{
  GpuStream *stream = fixture->stream;
  GpuImageSpec rgb_spec = test_spec (GPU_FORMAT_RGB, 64, 48), nv12_spec = test_spec (GPU_FORMAT_NV12, 64, 50);
  GpuImageSpec wide_spec = test_spec (GPU_FORMAT_P010_10LE, 64, 48), tensor_spec;
  g_autoptr (GError) error = NULL;
  GpuConvert params;

  gpu_convert_init (&params);
  gpu_image_spec_init_tensor (&tensor_spec, GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 3, 64, 48, &error);
  g_assert_no_error (error);
  GpuImage *rgb = test_image_new (fixture->device, &rgb_spec, stream);
  GpuImage *nv12 = test_image_new (fixture->device, &nv12_spec, stream);
  GpuImage *tensor = test_image_new (fixture->device, &tensor_spec, stream);
  gpu_image_spec_init_tensor (&tensor_spec, GPU_ELEMENT_U8, GPU_LAYOUT_HWC, 3, 64, 48, &error);
  GpuImage *other = test_image_new (fixture->device, &tensor_spec, stream);
  GpuImage *wide = test_image_new (fixture->device, &wide_spec, stream);
  GpuImage *part = gpu_image_view (rgb, 0, 0, 64, 48, &error);
  g_assert_no_error (error);

  picture_check_error (stream, rgb, nv12, convert, &params,
                       "Convert needs a destination of 64x48 pixels, not of 64x50");
  picture_check_error (stream, rgb, tensor, convert, &params, "use gpu_normalize() or gpu_reformat()");
  picture_check_error (stream, tensor, rgb, convert, &params, "Convert does not make RGB of float32 CHW tensor");
  picture_check_error (stream, tensor, other, convert, &params, "use gpu_reformat() for the order of dimensions");
  picture_check_error (stream, rgb, part, convert, &params, "Convert cannot write over its source");
  params.dst.matrix = GPU_N_MATRICES;
  picture_check_error (stream, rgb, wide, convert, &params,
                       "knows no matrix 3, range 0 and chroma site 0, as the dest");
  gpu_convert_init (&params);
  params.src.chroma_site = (GpuChromaSite)-1;
  picture_check_error (stream, rgb, wide, convert, &params, "chroma site -1, as the source");
  gpu_convert_init (&params);
  params.offset = NAN;
  picture_check_error (stream, tensor, tensor, convert, &params, "Convert cannot write over its source");

  GpuImageSpec odd = picture_spec (GPU_FORMAT_P010_10LE, 64, 48, LAYOUT_ODD);
  Picture bytes = picture_new (&odd, 1);
  GpuImage *misaligned = picture_upload (stream, &bytes);
  gpu_convert_init (&params);
  picture_check_error (stream, misaligned, rgb, convert, &params, "at multiples of 2 bytes");
  picture_clear (&bytes);

  gpu_image_spec_init_tensor (&tensor_spec, GPU_ELEMENT_F16, GPU_LAYOUT_CHW, 3, 64, 48, &error);
  GpuImage *half = test_image_new (fixture->device, &tensor_spec, stream);
  params.offset = NAN;
  picture_check_error (stream, tensor, half, convert, &params, "finite numbers as scale and offset, not 1 and nan");
  g_assert_null (gpu_image_view (half, 0, 0, 32, 32, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);

  gpu_image_unref (half);
  gpu_image_unref (misaligned);
  gpu_image_unref (rgb);
  gpu_image_unref (nv12);
  gpu_image_unref (tensor);
  gpu_image_unref (other);
  gpu_image_unref (wide);
  gpu_image_unref (part);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  OP_TEST ("/convert/formats", test_formats);
  OP_TEST ("/convert/whole", test_whole);
  OP_TEST ("/convert/colorimetries", test_colorimetries);
  OP_TEST ("/convert/values", test_values);
  OP_TEST ("/convert/round-trips", test_round_trips);
  OP_TEST ("/convert/wide", test_wide);
  OP_TEST ("/convert/elements", test_elements);
  OP_TEST ("/convert/refusals", test_refusals);
  return g_test_run ();
}
