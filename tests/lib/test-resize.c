/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling: byte for byte against the formulas that resize.h and resize-pixel.h state, and against real arithmetic. What
 * Pillow makes of the same pictures is in tests/compare.
 */
#include "picture.h"

#include "gpucache/resize-priv.h"

#include <math.h>
#include <string.h>

static bool
resize (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_resize (stream, src, dst, *(const GpuResizeFilter *)params, error);
}

static int64_t
floor_div (int64_t a, int64_t b)
{
  return a / b - (a % b < 0);
}

static int64_t
clamp (int64_t value, int64_t max)
{
  return CLAMP (value, 0, max);
}

static void
nearest_reference (const Picture *src, Picture *dst, const void *params)
{
  for (unsigned i = 0; i < gpu_format_info (src->spec.format)->n_planes; i++) {
    uint64_t sw = gpu_image_spec_plane_width (&src->spec, i), sh = gpu_image_spec_plane_height (&src->spec, i);
    uint64_t dw = gpu_image_spec_plane_width (&dst->spec, i), dh = gpu_image_spec_plane_height (&dst->spec, i);

    for (uint32_t y = 0; y < dh; y++)
      for (uint32_t x = 0; x < dw; x++)
        memcpy (picture_at (dst, i, x, y),
                picture_at (src, i, (uint32_t)((2 * x + 1) * sw / (2 * dw)), (uint32_t)((2 * y + 1) * sh / (2 * dh))),
                picture_sample_bytes (src, i));
  }
}

/* The position of sample @i of @n in a source of @m in 1/4096, rounded, halves up, and clamped. */
static int64_t
position (int64_t i, int64_t n, int64_t m)
{
  return clamp (floor_div (2 * 4096 * ((2 * i + 1) * m - n) + 2 * n, 4 * n), (m - 1) * 4096);
}

static void
bilinear_reference (const Picture *src, Picture *dst, const void *params)
{
  for (unsigned i = 0; i < gpu_format_info (src->spec.format)->n_planes; i++) {
    uint32_t sw = gpu_image_spec_plane_width (&src->spec, i), sh = gpu_image_spec_plane_height (&src->spec, i);
    uint32_t dw = gpu_image_spec_plane_width (&dst->spec, i), dh = gpu_image_spec_plane_height (&dst->spec, i);

    for (uint32_t y = 0; y < dh; y++)
      for (uint32_t x = 0; x < dw; x++) {
        int64_t px = position (x, dw, sw), py = position (y, dh, sh);

        for (unsigned c = 0; c < picture_samples (&src->spec, i); c++) {
          int64_t sum = 0;

          for (int v = 0; v < 2; v++)
            for (int h = 0; h < 2; h++) {
              uint32_t sx = (uint32_t)clamp (px / 4096 + h, sw - 1), sy = (uint32_t)clamp (py / 4096 + v, sh - 1);

              sum += (int)picture_get (src, i, sx, sy, c) * (h ? px % 4096 : 4096 - px % 4096) *
                     (v ? py % 4096 : 4096 - py % 4096);
            }
          picture_put (dst, i, x, y, c, (unsigned)((sum + (1 << 23)) >> 24));
        }
      }
  }
}

static const uint32_t targets[][2] = {{1, 1}, {1, 40}, {33, 1}, {17, 33}, {64, 64}, {130, 67}, {321, 243}};

static void
check_filter (OpFixture *fixture, GpuResizeFilter filter, PictureReference reference)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned i = 0; i < n_picture_sizes; i++)
      for (unsigned j = 0; j < G_N_ELEMENTS (targets); j++) {
        unsigned pair = format + 3 * i + 7 * j;

        /* So does the largest of them. */
        if (picture_takes_turns ((GpuFormat)format, i + j) || (i == n_picture_sizes - 1 && (format + j) % 8))
          continue;
        GpuImageSpec src =
            picture_spec ((GpuFormat)format, picture_sizes[i][0], picture_sizes[i][1], (Layout)(pair % N_LAYOUTS));
        GpuImageSpec dst =
            picture_spec ((GpuFormat)format, targets[j][0], targets[j][1], (Layout)(pair / N_LAYOUTS % N_LAYOUTS));

        picture_check (fixture->stream, &src, &dst, resize, reference, &filter);
      }
}

static void
test_nearest (OpFixture *fixture, const void *data)
{
  check_filter (fixture, GPU_RESIZE_NEAREST, nearest_reference);
}

static void
test_bilinear (OpFixture *fixture, const void *data)
{
  check_filter (fixture, GPU_RESIZE_BILINEAR, bilinear_reference);
}

/* One format of each pixel size, every pair of layouts, and rows longer than the host does at once. */
static void
test_layouts (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_RGB,  GPU_FORMAT_BGRX,     GPU_FORMAT_NV12,
                                      GPU_FORMAT_I420,  GPU_FORMAT_RGBP, GPU_FORMAT_P010_10LE};
  static const GpuResizeFilter nearest = GPU_RESIZE_NEAREST, bilinear = GPU_RESIZE_BILINEAR;

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned pair = 0; pair < N_LAYOUTS * N_LAYOUTS; pair++) {
      GpuImageSpec src = picture_spec (formats[f], 1030, 9, (Layout)(pair % N_LAYOUTS));
      GpuImageSpec dst = picture_spec (formats[f], 2079, 12, (Layout)(pair / N_LAYOUTS));

      picture_check (fixture->stream, &src, &dst, resize, nearest_reference, &nearest);
      picture_check (fixture->stream, &src, &dst, resize, bilinear_reference, &bilinear);
    }
}

/* Rows of whole words, shrunk to half, a third, and a little more or less: two samples come from 8 bytes, or do not. */
static void
test_halves (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_NV12, GPU_FORMAT_I420, GPU_FORMAT_RGB,
                                      GPU_FORMAT_RGBX};
  static const uint32_t widths[][2] = {{64, 32}, {72, 32},  {288, 136}, {248, 128}, {80, 248},  {512, 256}, {520, 256},
                                       {96, 32}, {104, 32}, {760, 256}, {776, 256}, {384, 128}, {1016, 256}};
  static const GpuResizeFilter bilinear = GPU_RESIZE_BILINEAR;

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned i = 0; i < G_N_ELEMENTS (widths); i++) {
      GpuImageSpec src = picture_spec (formats[f], widths[i][0], 38, LAYOUT_DEFAULT);
      GpuImageSpec dst = picture_spec (formats[f], widths[i][1], 21, LAYOUT_PACKED);

      picture_check (fixture->stream, &src, &dst, resize, bilinear_reference, &bilinear);
    }
}

/* Shrunk to exactly half in both directions: eight bytes, or four pixels of three, are made at once, or cannot be. */
static void
test_half (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_NV12, GPU_FORMAT_I420,
                                      GPU_FORMAT_RGB,   GPU_FORMAT_RGBA, GPU_FORMAT_P010_10LE};
  static const uint32_t sizes[][2] = {{1, 1}, {8, 1}, {16, 2}, {20, 50}, {264, 34}, {272, 10}, {560, 18}};
  static const GpuResizeFilter bilinear = GPU_RESIZE_BILINEAR;

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++)
      for (unsigned layout = 0; layout < N_LAYOUTS; layout++) {
        const unsigned other = (layout + f + i) % 3 ? LAYOUT_DEFAULT : layout;
        GpuImageSpec src = picture_spec (formats[f], 2 * sizes[i][0], 2 * sizes[i][1], (Layout)layout);
        GpuImageSpec dst = picture_spec (formats[f], sizes[i][0], sizes[i][1], (Layout)other);

        picture_check (fixture->stream, &src, &dst, resize, bilinear_reference, &bilinear);
      }
}

/* A side so long that positions no longer fit the fast arithmetic. */
static void
test_long (OpFixture *fixture, const void *data)
{
  static const uint32_t lengths[][2] = {{300007, 7}, {9999, 150001}, {100003, 300007}};
  static const GpuResizeFilter nearest = GPU_RESIZE_NEAREST, bilinear = GPU_RESIZE_BILINEAR;

  for (unsigned i = 0; i < G_N_ELEMENTS (lengths); i++) {
    GpuImageSpec src = picture_spec (GPU_FORMAT_GRAY8, lengths[i][0], 2, LAYOUT_PACKED);
    GpuImageSpec dst = picture_spec (GPU_FORMAT_GRAY8, lengths[i][1], 1, LAYOUT_PACKED);
    GpuImageSpec high_src = picture_spec (GPU_FORMAT_GRAY8, 2, lengths[i][0], LAYOUT_PACKED);
    GpuImageSpec high_dst = picture_spec (GPU_FORMAT_GRAY8, 1, lengths[i][1], LAYOUT_PACKED);

    picture_check (fixture->stream, &src, &dst, resize, nearest_reference, &nearest);
    picture_check (fixture->stream, &src, &dst, resize, bilinear_reference, &bilinear);
    picture_check (fixture->stream, &high_src, &high_dst, resize, nearest_reference, &nearest);
    picture_check (fixture->stream, &high_src, &high_dst, resize, bilinear_reference, &bilinear);
  }
}

/* Bilinear against real arithmetic: half a level of rounding, 2^-13 of a sample in each direction, no bias. */
static void
test_accuracy (OpFixture *fixture, const void *data)
{
  static const uint32_t sizes[][4] = {{641, 481, 320, 240}, {320, 180, 641, 481}, {97, 61, 640, 640}};

  for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++) {
    uint32_t sw = sizes[i][0], sh = sizes[i][1], dw = sizes[i][2], dh = sizes[i][3];
    GpuImageSpec src_spec = test_spec (GPU_FORMAT_GRAY8, sw, sh), dst_spec = test_spec (GPU_FORMAT_GRAY8, dw, dh);
    Picture src = picture_new (&src_spec, 3 + i), dst = picture_new (&dst_spec, 4);
    GpuImage *src_image = picture_upload (fixture->stream, &src);
    GpuImage *dst_image = picture_upload (fixture->stream, &dst);
    g_autoptr (GError) error = NULL;
    double worst = 0, sum = 0;

    gpu_resize (fixture->stream, src_image, dst_image, GPU_RESIZE_BILINEAR, &error);
    g_assert_no_error (error);
    picture_clear (&dst);
    dst = picture_download (fixture->stream, dst_image);

    for (uint32_t y = 0; y < dh; y++)
      for (uint32_t x = 0; x < dw; x++) {
        double px = CLAMP ((x + 0.5) * sw / dw - 0.5, 0, sw - 1), py = CLAMP ((y + 0.5) * sh / dh - 0.5, 0, sh - 1);
        uint32_t x0 = (uint32_t)px, y0 = (uint32_t)py;
        uint32_t x1 = MIN (x0 + 1, sw - 1), y1 = MIN (y0 + 1, sh - 1);
        double fx = px - x0, fy = py - y0;
        double upper = *picture_at (&src, 0, x0, y0) * (1 - fx) + *picture_at (&src, 0, x1, y0) * fx;
        double lower = *picture_at (&src, 0, x0, y1) * (1 - fx) + *picture_at (&src, 0, x1, y1) * fx;
        double difference = *picture_at (&dst, 0, x, y) - (upper * (1 - fy) + lower * fy);

        worst = MAX (worst, fabs (difference));
        sum += difference;
      }
    g_assert_cmpfloat (worst, <=, 0.5 + 2 * 255.0 / 8192);
    g_assert_cmpfloat (fabs (sum / dw / dh), <, 0.01);

    gpu_image_unref (src_image);
    gpu_image_unref (dst_image);
    picture_clear (&src);
    picture_clear (&dst);
  }
}

/* The same size: nothing changes. */
static void
test_identity (OpFixture *fixture, const void *data)
{
  for (unsigned filter = GPU_RESIZE_NEAREST; filter <= GPU_RESIZE_BILINEAR; filter++) {
    GpuImageSpec spec = test_spec (GPU_FORMAT_I420, 641, 481);
    Picture src = picture_new (&spec, 11), dst = picture_new (&spec, 12);
    GpuImage *src_image = picture_upload (fixture->stream, &src);
    GpuImage *dst_image = picture_upload (fixture->stream, &dst);
    g_autoptr (GError) error = NULL;

    gpu_resize (fixture->stream, src_image, dst_image, (GpuResizeFilter)filter, &error);
    g_assert_no_error (error);
    test_assert_image (fixture->stream, dst_image, src.bytes, &spec);
    gpu_image_unref (src_image);
    gpu_image_unref (dst_image);
    picture_clear (&src);
    picture_clear (&dst);
  }
}

/* Filters, written down as Pillow's documentation and papers have them: a weighted mean over all samples of the source,
 * first along rows, then along columns, rounded after each. */

static double
weight_at (GpuResizeFilter filter, double x)
{
  const double d = fabs (x), pi = acos (-1);

  switch (filter) {
  case GPU_RESIZE_BOX:
    return x > -0.5 && x <= 0.5;
  case GPU_RESIZE_BILINEAR:
    return d < 1 ? 1 - d : 0;
  case GPU_RESIZE_HAMMING:
    return d == 0 ? 1 : d < 1 ? sin (pi * d) / (pi * d) * (0.54 + 0.46 * cos (pi * d)) : 0;
  case GPU_RESIZE_BICUBIC:
    return d < 1   ? 1.5 * pow (d, 3) - 2.5 * pow (d, 2) + 1
           : d < 2 ? -0.5 * pow (d, 3) + 2.5 * pow (d, 2) - 4 * d + 2
                   : 0;
  default:
    return d == 0 ? 1 : d < 3 ? 3 * sin (pi * d) * sin (pi * d / 3) / (pi * pi * d * d) : 0;
  }
}

typedef struct {
  uint32_t in, out;
  double from, to;
} Axis;

/* The weights of all samples for sample @i, in steps of 2^-@bits. */
static void
weights_of (const Axis *axis, const GpuResize *params, uint32_t i, int bits, int64_t *weights)
{
  const double scale = (axis->to - axis->from) / axis->out, width = params->antialias ? MAX (scale, 1) : 1;
  const double centre = axis->from + (i + 0.5) * scale;
  const bool clip = params->clip || params->filter == GPU_RESIZE_NEAREST ||
                    (params->filter == GPU_RESIZE_BILINEAR && !params->antialias);
  g_autofree double *real = g_new (double, axis->in);
  double sum = 0;

  for (uint32_t k = 0; k < axis->in; k++)
    if (clip && (k + 1 <= axis->from || k >= axis->to))
      real[k] = 0;
    else if (params->filter == GPU_RESIZE_NEAREST)
      sum += real[k] = k <= centre && centre < k + 1;
    else
      sum += real[k] = weight_at (params->filter, (k + 0.5 - centre) / width);
  for (uint32_t k = 0; k < axis->in; k++)
    weights[k] = (int64_t)round (real[k] / sum * exp2 (bits));
}

static int64_t
weighted (int64_t sum, int bits)
{
  return CLAMP ((sum + ((int64_t)1 << (bits - 1))) >> bits, 0, bits == 20 ? 1023 : 255);
}

static int64_t
divide_round (int64_t a, int64_t b)
{
  return (2 * a + b) / (2 * b);
}

static Axis
axis_of (double from, double size, uint32_t image, uint32_t plane, unsigned shift, uint32_t out)
{
  const double whole = image;

  if (size == 0)
    size = whole;
  return (Axis){plane, out, from / (1 << shift), from + size == whole ? plane : (from + size) / (1 << shift)};
}

/* One plane of @part of the destination. */
static void
filter_plane (const Picture *src, Picture *dst, unsigned plane, const GpuResize *params, GpuResizeRectangle part)
{
  const GpuFormatInfo *info = gpu_format_info (src->spec.format);
  const unsigned n = picture_samples (&src->spec, plane);
  const int bits = src->spec.format == GPU_FORMAT_P010_10LE ? 20 : 22;
  const int alpha = info->has_alpha && !params->straight_alpha ? info->channel[3] : -1;
  const Axis across = axis_of (params->src.x, params->src.width, src->spec.width,
                               gpu_image_spec_plane_width (&src->spec, plane), info->plane[plane].w_shift, part.width);
  const Axis down = axis_of (params->src.y, params->src.height, src->spec.height,
                             gpu_image_spec_plane_height (&src->spec, plane), info->plane[plane].h_shift, part.height);
  g_autofree int64_t *weights = g_new (int64_t, MAX (across.in, down.in));
  g_autofree int64_t *between = g_new (int64_t, (size_t)part.width * down.in * n);

  for (uint32_t x = 0; x < part.width; x++) {
    weights_of (&across, params, x, bits, weights);
    for (uint32_t y = 0; y < down.in; y++)
      for (unsigned c = 0; c < n; c++) {
        int64_t sum = 0;

        for (uint32_t k = 0; k < across.in; k++) {
          int64_t value = picture_get (src, plane, k, y, c);

          if (alpha >= 0 && (int)c != alpha)
            value = divide_round (value * picture_get (src, plane, k, y, (unsigned)alpha), 255);
          sum += value * weights[k];
        }
        between[((size_t)y * part.width + x) * n + c] = weighted (sum, bits);
      }
  }
  for (uint32_t y = 0; y < part.height; y++) {
    weights_of (&down, params, y, bits, weights);
    for (uint32_t x = 0; x < part.width; x++) {
      int64_t value[4] = {0};

      for (unsigned c = 0; c < n; c++) {
        for (uint32_t k = 0; k < down.in; k++)
          value[c] += between[((size_t)k * part.width + x) * n + c] * weights[k];
        value[c] = weighted (value[c], bits);
      }
      for (unsigned c = 0; c < n; c++) {
        if (alpha >= 0 && (int)c != alpha && value[alpha] > 0)
          value[c] = MIN (255 * value[c] / value[alpha], 255);
        picture_put (dst, plane, part.x + x, part.y + y, c, (unsigned)value[c]);
      }
    }
  }
}

static void
fill_border (Picture *dst, const uint8_t *border)
{
  const GpuFormatInfo *info = gpu_format_info (dst->spec.format);
  const unsigned unit = dst->spec.format == GPU_FORMAT_P010_10LE ? 4 : 1;

  for (unsigned plane = 0; plane < info->n_planes; plane++)
    for (uint32_t y = 0; y < gpu_image_spec_plane_height (&dst->spec, plane); y++)
      for (uint32_t x = 0; x < gpu_image_spec_plane_width (&dst->spec, plane); x++) {
        for (unsigned i = 0; i < picture_samples (&dst->spec, plane); i++)
          picture_put (dst, plane, x, y, i, 255);
        for (unsigned c = 0; c < info->n_channels; c++)
          if (info->channel_plane[c] == plane)
            picture_put (dst, plane, x, y, (unsigned)info->channel[c] / (unit == 4 ? 2u : 1u), border[c] * unit);
      }
}

static GpuResizeRectangle
part_of (const Picture *dst, const GpuResize *params, unsigned plane)
{
  const GpuPlaneInfo *info = &gpu_format_info (dst->spec.format)->plane[plane];
  const GpuResizeRectangle part = params->dst;

  if (!part.width)
    return (GpuResizeRectangle){0, 0, gpu_image_spec_plane_width (&dst->spec, plane),
                                gpu_image_spec_plane_height (&dst->spec, plane)};
  return (GpuResizeRectangle){part.x >> info->w_shift, part.y >> info->h_shift,
                              (part.width + (1u << info->w_shift) - 1) >> info->w_shift,
                              (part.height + (1u << info->h_shift) - 1) >> info->h_shift};
}

static void
filter_reference (const Picture *src, Picture *dst, const void *data)
{
  const GpuResize *params = data;

  fill_border (dst, params->border);
  for (unsigned i = 0; i < gpu_format_info (src->spec.format)->n_planes; i++)
    filter_plane (src, dst, i, params, part_of (dst, params, i));
}

static bool
resize_full (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_resize_full (stream, src, dst, params, error);
}

/* Every filter, with and without antialias, on every format, from and to sizes on both sides of each other. */
static void
test_filters (OpFixture *fixture, const void *data)
{
  static const uint32_t shapes[][4] = {{1, 1, 3, 2}, {5, 7, 1, 1}, {21, 9, 8, 14}, {13, 17, 37, 6}, {40, 3, 40, 2}};

  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned filter = GPU_RESIZE_BILINEAR; filter < GPU_N_RESIZE_FILTERS; filter++)
      for (unsigned i = 0; i < G_N_ELEMENTS (shapes); i++) {
        const unsigned turn = format + filter + i;
        const GpuResize params = {.filter = (GpuResizeFilter)filter,
                                  .antialias = filter == GPU_RESIZE_BILINEAR || turn % 3,
                                  .straight_alpha = turn % 4 == 0};
        GpuImageSpec src = picture_spec ((GpuFormat)format, shapes[i][0], shapes[i][1], (Layout)(turn % N_LAYOUTS));
        GpuImageSpec dst =
            picture_spec ((GpuFormat)format, shapes[i][2], shapes[i][3], (Layout)(turn / N_LAYOUTS % N_LAYOUTS));

        picture_check (fixture->stream, &src, &dst, resize_full, filter_reference, &params);
      }
}

/* Antialiased to exactly half: of fewer samples than a warp makes, of as many, and of a little more, with edges in all
 * of them; some rows of which a warp makes less than it can; and what is almost such a picture. */
static void
test_filter_half (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_NV12, GPU_FORMAT_I420, GPU_FORMAT_RGB,
                                      GPU_FORMAT_RGBA,  GPU_FORMAT_ARGB, GPU_FORMAT_BGRX, GPU_FORMAT_RGBP};
  static const uint32_t sizes[][2] = {{16, 2}, {16, 3},  {20, 24}, {64, 4},  {66, 3},  {80, 9},
                                      {4, 8},  {124, 5}, {128, 1}, {132, 2}, {256, 6}, {264, 20}};

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++)
      for (unsigned layout = 0; layout < N_LAYOUTS; layout++)
        for (unsigned bicubic = 0; bicubic < 2; bicubic++) {
          const unsigned other = (layout + f + i) % 3 ? LAYOUT_DEFAULT : layout;
          const GpuResize params = {.filter = bicubic ? GPU_RESIZE_BICUBIC : GPU_RESIZE_BILINEAR,
                                    .antialias = true,
                                    .straight_alpha = (f + i + layout) % 4 == 0};
          GpuImageSpec src = picture_spec (formats[f], 2 * sizes[i][0], 2 * sizes[i][1], (Layout)layout);
          GpuImageSpec dst = picture_spec (formats[f], sizes[i][0], sizes[i][1], (Layout)other);

          if (!layout || i < 6) /* the larger ones once */
            picture_check (fixture->stream, &src, &dst, resize_full, filter_reference, &params);
        }
}

/* What scales to half on a GPU, of rows that vectors make up, needs no weights: nothing is copied, and nothing
 * allocated but the images. */
static void
test_filter_half_alone (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_NV12, GPU_FORMAT_RGB, GPU_FORMAT_RGBA};
  g_autoptr (GError) error = NULL;

  for (unsigned f = 0; f < 2 * G_N_ELEMENTS (formats) && !gpu_device_is_host (fixture->device); f++) {
    const GpuResize params = {.filter = f % 2 ? GPU_RESIZE_BICUBIC : GPU_RESIZE_BILINEAR, .antialias = true};
    const GpuImageSpec large = test_spec (formats[f / 2], 96, 36), small = test_spec (formats[f / 2], 48, 18);
    GpuImage *src = test_image_new (fixture->device, &large, fixture->stream);
    GpuImage *dst = test_image_new (fixture->device, &small, fixture->stream);

    g_assert_true (gpu_image_fill (fixture->stream, src, 7, &error));
    const uint64_t copies = gpu_device_calls (fixture->device, GPU_CALL_COPY);
    const uint64_t launches = gpu_device_calls (fixture->device, GPU_CALL_LAUNCH);
    g_assert_true (gpu_resize_full (fixture->stream, src, dst, &params, &error));
    g_assert_cmpuint (gpu_device_calls (fixture->device, GPU_CALL_COPY), ==, copies);
    g_assert_cmpuint (gpu_device_calls (fixture->device, GPU_CALL_LAUNCH), ==, launches + 1);
    gpu_image_unref (src);
    gpu_image_unref (dst);
  }
}

/* A part of the source to a part of the destination, with the border around it. */
static void
test_parts (OpFixture *fixture, const void *data)
{
  static const GpuResizeBox boxes[] = {{0}, {3, 2, 17, 9}, {0.5, 0.25, 6.75, 11.5}, {19.5, 11, 0.75, 0.5}};
  static const GpuResizeRectangle parts[] = {{0}, {2, 4, 6, 10}, {10, 0, 13, 15}, {0, 6, 23, 4}, {22, 14, 1, 1}};

  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned b = 0; b < G_N_ELEMENTS (boxes); b++)
      for (unsigned p = 0; p < G_N_ELEMENTS (parts); p++) {
        const unsigned turn = format + b + p;
        const GpuResize params = {.filter = (GpuResizeFilter)(1 + turn % 5),
                                  .antialias = true,
                                  .clip = turn / 5 % 2,
                                  .src = boxes[b],
                                  .dst = parts[p],
                                  .border = {200, 100, 50, 25}};
        GpuImageSpec src = picture_spec ((GpuFormat)format, 21, 12, (Layout)(turn % N_LAYOUTS));
        GpuImageSpec dst = picture_spec ((GpuFormat)format, 23, 15, (Layout)(turn / N_LAYOUTS % N_LAYOUTS));

        picture_check (fixture->stream, &src, &dst, resize_full, filter_reference, &params);
      }
}

/* The same of nearest, and bilinear without antialias: views of the parts, scaled as a whole, and a border. */
static void
test_direct_parts (OpFixture *fixture, const void *data)
{
  static const GpuResizeBox box = {4, 2, 15, 9};
  static const GpuResizeRectangle parts[] = {{2, 4, 7, 11}, {10, 0, 13, 15}, {0, 6, 23, 4}};
  g_autoptr (GError) error = NULL;

  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned filter = GPU_RESIZE_NEAREST; filter <= GPU_RESIZE_BILINEAR; filter++)
      for (unsigned p = 0; p < G_N_ELEMENTS (parts); p++) {
        const bool subsampled = gpu_format_info ((GpuFormat)format)->plane[1].w_shift;
        GpuResizeRectangle part = parts[p];
        GpuImageSpec src_spec = picture_spec ((GpuFormat)format, 21, 12, (Layout)(p % N_LAYOUTS));
        GpuImageSpec dst_spec = picture_spec ((GpuFormat)format, 23, 15, (Layout)(format % N_LAYOUTS));

        if (subsampled && part.x + part.width < 23)
          part.width &= ~1u;
        if (subsampled && part.y + part.height < 15)
          part.height &= ~1u;
        const GpuResize params = {
            .filter = (GpuResizeFilter)filter, .src = box, .dst = part, .border = {200, 100, 50, 25}};
        Picture src = picture_new (&src_spec, format), dst = picture_new (&dst_spec, p);
        GpuImage *from = picture_upload (fixture->stream, &src), *to = picture_upload (fixture->stream, &dst);

        g_assert_true (gpu_resize_full (fixture->stream, from, to, &params, &error));
        Picture got = picture_download (fixture->stream, to);

        fill_border (&dst, params.border);
        GpuImage *expected = picture_upload (fixture->stream, &dst);
        GpuImage *from_part = gpu_image_view (from, 4, 2, 15, 9, &error);
        GpuImage *to_part = gpu_image_view (expected, part.x, part.y, part.width, part.height, &error);
        g_assert_true (gpu_resize (fixture->stream, from_part, to_part, params.filter, &error));
        Picture all = picture_download (fixture->stream, expected);
        g_assert_cmpmem (got.bytes, got.spec.size, all.bytes, all.spec.size);

        picture_clear (&src);
        picture_clear (&dst);
        picture_clear (&got);
        picture_clear (&all);
        gpu_image_unref (from);
        gpu_image_unref (to);
        gpu_image_unref (from_part);
        gpu_image_unref (to_part);
        gpu_image_unref (expected);
      }
}

/* Where such a part begins within a sample of chroma, tables of weights take it from there. */
static void
test_odd_parts (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_NV12, GPU_FORMAT_I420, GPU_FORMAT_P010_10LE};
  static const GpuResizeBox boxes[] = {{1, 0, 20, 12}, {0, 3, 21, 9}, {3, 5, 8, 6}, {20, 11, 1, 1}, {1, 1, 1, 1}};
  static const uint32_t sizes[][2] = {{1, 1}, {9, 5}, {20, 12}, {47, 30}};

  for (unsigned i = 0; i < G_N_ELEMENTS (formats) * G_N_ELEMENTS (boxes) * G_N_ELEMENTS (sizes) * 2; i++) {
    const GpuFormat format = formats[i % 3];
    const uint32_t *size = sizes[i / 3 % 4];
    const GpuResize params = {.filter = i / 12 % 2 ? GPU_RESIZE_BILINEAR : GPU_RESIZE_NEAREST,
                              .src = boxes[i / 24 % 5]};
    GpuImageSpec src = picture_spec (format, 21, 12, (Layout)(i % N_LAYOUTS));
    GpuImageSpec dst = picture_spec (format, size[0], size[1], (Layout)(i / N_LAYOUTS % N_LAYOUTS));

    picture_check (fixture->stream, &src, &dst, resize_full, filter_reference, &params);
  }
}

/* Frame after frame of one geometry: one launch each on a GPU, two on the CPU, and no other call of the device. A new
 * geometry gets weights of its own. */
static void
test_resizer (OpFixture *fixture, const void *data)
{
  g_autoptr (GpuResizer) resizer = gpu_resizer_new ();
  const GpuResize lanczos = {.filter = GPU_RESIZE_LANCZOS, .antialias = true};
  GpuImageSpec large = test_spec (GPU_FORMAT_NV12, 66, 42), small = test_spec (GPU_FORMAT_NV12, 31, 17);
  GpuImage *src = test_image_new (fixture->device, &large, fixture->stream);
  GpuImage *dst = test_image_new (fixture->device, &small, fixture->stream);
  g_autoptr (GError) error = NULL;
  static const GpuCall calls[] = {GPU_CALL_ALLOC, GPU_CALL_FREE, GPU_CALL_EVENT_WAIT, GPU_CALL_COPY,
                                  GPU_CALL_EVENT_RECORD};
  uint64_t before[G_N_ELEMENTS (calls)];

  g_assert_true (gpu_image_fill (fixture->stream, src, 7, &error));
  for (unsigned i = 0; i < 3; i++)
    g_assert_true (gpu_resizer_run (resizer, fixture->stream, src, dst, &lanczos, &error));
  for (unsigned i = 0; i < G_N_ELEMENTS (calls); i++)
    before[i] = gpu_device_calls (fixture->device, calls[i]);
  const uint64_t launches = gpu_device_calls (fixture->device, GPU_CALL_LAUNCH);
  for (unsigned i = 0; i < 10; i++)
    g_assert_true (gpu_resizer_run (resizer, fixture->stream, src, dst, &lanczos, &error));
  for (unsigned i = 0; i < G_N_ELEMENTS (calls); i++)
    g_assert_cmpuint (gpu_device_calls (fixture->device, calls[i]), ==, before[i]);
  g_assert_cmpuint (gpu_device_calls (fixture->device, GPU_CALL_LAUNCH), ==,
                    launches + (gpu_device_is_host (fixture->device) ? 20 : 10));

  /* One thing after the other changes. */
  g_autofree uint8_t *bytes = test_random_bytes (large.size, 5);
  for (unsigned i = 0; i < 8; i++) {
    const GpuResize params = {.filter = i % 2 ? GPU_RESIZE_BICUBIC : GPU_RESIZE_LANCZOS, .antialias = i / 2 % 2};
    GpuImage *from = i / 4 ? src : dst, *to = i / 4 ? dst : src;

    test_image_write (fixture->stream, from, bytes, gpu_image_spec (from));
    GpuImage *once = test_image_new (fixture->device, gpu_image_spec (to), fixture->stream);

    g_assert_true (gpu_resizer_run (resizer, fixture->stream, from, to, &params, &error));
    g_assert_true (gpu_resize_full (fixture->stream, from, once, &params, &error));
    g_autofree uint8_t *expected = test_image_read (fixture->stream, once, 0);
    test_assert_image (fixture->stream, to, expected, gpu_image_spec (to));
    gpu_image_unref (once);
  }
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

static void
test_refusals (OpFixture *fixture, const void *data)
{
  static const GpuResizeFilter nearest = GPU_RESIZE_NEAREST, unknown = (GpuResizeFilter)6;
  GpuStream *stream = fixture->stream;
  GpuImageSpec spec = test_spec (GPU_FORMAT_RGB, 64, 48), other = test_spec (GPU_FORMAT_I420, 64, 48);
  g_autoptr (GError) error = NULL;

  GpuImage *src = test_image_new (fixture->device, &spec, stream);
  GpuImage *i420 = test_image_new (fixture->device, &other, stream);
  GpuImage *part = gpu_image_view (src, 10, 10, 20, 20, &error);
  g_assert_no_error (error);

  picture_check_error (stream, src, part, resize, &unknown, "no resize filter number 6");
  picture_check_error (stream, src, i420, resize, &nearest, "Resize does not convert RGB to I420");
  picture_check_error (stream, src, part, resize, &nearest, "Resize cannot write over its source");
  picture_check_error (stream, src, src, resize, &nearest, "Resize cannot write over its source");

  GpuDevice *other_device = gpu_cpu_device_new ("cpu:7", GPU_CPU_THREADS, 0);
  GpuStream *other_stream = gpu_stream_new (other_device, false, &error);
  g_assert_no_error (error);
  GpuImage *foreign = test_image_new (other_device, &spec, other_stream);
  picture_check_error (stream, foreign, src, resize, &nearest, "Resize cannot use a source image of cpu:7");
  gpu_image_unref (foreign);
  gpu_stream_unref (other_stream);
  gpu_device_unref (other_device);

  static const struct {
    GpuResize params;
    const char *text;
  } cases[] = {
      {{.filter = GPU_RESIZE_BOX, .src = {0, 0, 64.5, 48}}, "cannot take 64.5x48 pixels at 0,0 of a source of 64x48"},
      {{.filter = GPU_RESIZE_BOX, .src = {-1, 0, 4, 4}}, "cannot take 4x4 pixels at -1,0"},
      {{.filter = GPU_RESIZE_BOX, .src = {1, 1, 4, 0}}, "cannot take 4x0 pixels at 1,1"},
      {{.filter = GPU_RESIZE_BOX, .src = {NAN, 1, 4, 4}}, "cannot take 4x4 pixels at nan,1"},
      {{.filter = GPU_RESIZE_NEAREST, .src = {1.5, 1, 4, 4}},
       "whole pixels only without antialiasing, not 4x4 at 1.5,1"},
      {{.filter = GPU_RESIZE_BILINEAR, .src = {1, 1, 4, 4.5}}, "whole pixels only"},
      {{.filter = GPU_RESIZE_BOX, .dst = {60, 0, 5, 48}}, "cannot write 5x48 pixels at 60,0 to a destination of 64x48"},
      {{.filter = GPU_RESIZE_BOX, .dst = {2, 0, UINT32_MAX, 48}}, "cannot write 4294967295x48 pixels"},
      {{.filter = GPU_RESIZE_BOX, .dst = {2, 2, 0, 4}}, "cannot write 0x4 pixels at 2,2"},
      {{.filter = GPU_RESIZE_BOX, .dst = {1, 2, 4, 4}}, "4x4 pixels at 1,2, with an edge between two chroma samples"},
      {{.filter = GPU_RESIZE_NEAREST, .dst = {2, 2, 4, 3}},
       "4x3 pixels at 2,2, with an edge between two chroma samples"},
  };
  GpuImage *another = test_image_new (fixture->device, &other, stream);
  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    picture_check_error (stream, i420, another, resize_full, &cases[i].params, cases[i].text);
  gpu_image_unref (another);

  gpu_image_unref (part);
  gpu_image_unref (src);
  gpu_image_unref (i420);
}

/* Destinations with more tiles across, or weights, than a launch and the kernel can count. Tiles are one group wide
 * where the next group's samples are far away; and nothing looks at a table that has too many. */
static void
test_tile_limits (void)
{
  const uint32_t widest = UINT32_MAX / 32 * 8;
  int32_t apart[16][3], near[] = {0, 1, 1 << 22};
  const GpuFilterTable across = {apart[0], 16, 1}, down = {near, 1, 1}, huge = {NULL, INT32_MAX, 1};
  GpuTilePlan plan;

  for (int i = 0; i < 16; i++)
    memcpy (apart[i], (int32_t[]){i / 8 * 1000, 1, 1 << 22}, sizeof apart[i]);
  g_assert_true (gpu_tile_plan (&plan, &across, 0, widest, &down, 0, 4));
  g_assert_cmpuint (plan.shift, ==, 0);
  g_assert_false (gpu_tile_plan (&plan, &across, 0, widest + 1, &down, 0, 4));
  g_assert_true (gpu_tile_plan (&plan, &down, 0, INT32_MAX, &down, 0, 4));
  g_assert_false (gpu_tile_plan (&plan, &huge, 0, INT32_MAX, &down, 0, 1));
  g_assert_false (gpu_tile_plan (&plan, &down, 0, INT32_MAX, &huge, 0, 1));
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  OP_TEST ("/resize/nearest", test_nearest);
  OP_TEST ("/resize/bilinear", test_bilinear);
  OP_TEST ("/resize/layouts", test_layouts);
  OP_TEST ("/resize/halves", test_halves);
  OP_TEST ("/resize/half", test_half);
  OP_TEST ("/resize/long", test_long);
  OP_TEST ("/resize/accuracy", test_accuracy);
  OP_TEST ("/resize/identity", test_identity);
  OP_TEST ("/resize/filters", test_filters);
  OP_TEST ("/resize/filter-half", test_filter_half);
  OP_TEST ("/resize/filter-half-alone", test_filter_half_alone);
  OP_TEST ("/resize/parts", test_parts);
  OP_TEST ("/resize/direct-parts", test_direct_parts);
  OP_TEST ("/resize/odd-parts", test_odd_parts);
  OP_TEST ("/resize/resizer", test_resizer);
  OP_TEST ("/resize/refusals", test_refusals);
  g_test_add_func ("/resize/tile-limits", test_tile_limits);
  return g_test_run ();
}
