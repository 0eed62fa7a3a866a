/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation: byte for byte in single floats, against real arithmetic, and what it refuses.
 */
#include "picture.h"

#include <math.h>
#include <string.h>

static bool
normalize (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_normalize (stream, src, dst, params, error);
}

static uint8_t
normalized (const GpuNormalize *params, unsigned channel, uint8_t value)
{
  double scale = params->scale[channel];
  double factor = params->scale_is_stddev ? 1 / sqrt (scale * scale + params->epsilon) : scale;
  /* Each step rounds to a float. */
  volatile float step = (float)value - (float)params->base[channel];

  step = step * (float)(factor * params->global_scale);
  step = step + (float)params->shift;

  double real = (value - params->base[channel]) * factor * params->global_scale + params->shift;
  double rounded = CLAMP (nearbyint ((double)step), 0, 255);

  g_assert_cmpfloat (fabs (rounded - CLAMP (real, 0, 255)), <, 0.5001);
  return (uint8_t)rounded;
}

/* The channel of byte @byte of a pixel of @plane, or -1 for padding. */
static int
channel_of (const Picture *picture, unsigned plane, unsigned byte)
{
  const char *name = gpu_format_info (picture->spec.format)->name;
  bool planar = !strcmp (name, "RGBP") || !strcmp (name, "GBR");

  if (!strcmp (name, "GRAY8"))
    return 0;
  if (!strcmp (name, "NV12") || !strcmp (name, "I420"))
    return (int)(plane + byte);
  const char *at = strchr ("RGBA", name[planar ? plane : byte]);
  return at ? (int)(at - "RGBA") : -1;
}

static void
normalize_reference (const Picture *src, Picture *dst, const void *data)
{
  for (unsigned i = 0; i < gpu_format_info (src->spec.format)->n_planes; i++)
    for (unsigned c = 0; c < picture_sample_bytes (src, i); c++) {
      int channel = channel_of (src, i, c);
      uint8_t table[256];

      for (unsigned value = 0; value < 256; value++)
        table[value] = channel < 0 ? 255 : normalized (data, (unsigned)channel, (uint8_t)value);
      for (uint32_t y = 0; y < gpu_image_spec_plane_height (&src->spec, i); y++)
        for (uint32_t x = 0; x < gpu_image_spec_plane_width (&src->spec, i); x++)
          picture_at (dst, i, x, y)[c] = table[picture_at (src, i, x, y)[c]];
    }
}

static const GpuNormalize all_params[] = {
    {.scale = {1, 1, 1, 1}, .global_scale = 1},
    {.base = {123.675f, 116.28f, 103.53f, 0},
     .scale = {58.395f, 57.12f, 57.375f, 1},
     .global_scale = 64,
     .shift = 128,
     .scale_is_stddev = true},
    {.base = {128, 127, 1, 255}, .scale = {0.5f, -1.5f, 3, 0.1f}, .global_scale = 1, .shift = 10.25f},
    {.base = {10, 20, 30, 40},
     .scale = {0, 1, 2, 3},
     .global_scale = 0.5f,
     .shift = 7,
     .scale_is_stddev = true,
     .epsilon = 0.01f},
};

static void
test_all (OpFixture *fixture, const void *data)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned i = 0; format != GPU_FORMAT_P010_10LE && i < n_picture_sizes; i++)
      for (unsigned p = 0; p < G_N_ELEMENTS (all_params); p++) {
        unsigned pair = format + 5 * i + 3 * p;

        /* The largest size once a format. */
        if (i == n_picture_sizes - 1 && p != format % G_N_ELEMENTS (all_params))
          continue;
        uint32_t width = picture_sizes[i][0], height = picture_sizes[i][1];
        GpuImageSpec src = picture_spec ((GpuFormat)format, width, height, (Layout)(pair % N_LAYOUTS));
        GpuImageSpec dst = picture_spec ((GpuFormat)format, width, height, (Layout)(pair / N_LAYOUTS % N_LAYOUTS));

        picture_check (fixture->stream, &src, &dst, normalize, normalize_reference, &all_params[p]);
        picture_check_in_place (fixture->stream, &src, normalize, normalize_reference, &all_params[p]);
      }
}

/* Three steps that a GPU takes as one, if that gives the same bytes, and channels with values so close to the middle
 * between two that it does not, or not at the first guess; or with numbers too large for it. */
static void
test_steps (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_RGB, GPU_FORMAT_BGRX, GPU_FORMAT_NV12};
  static const struct {
    float base, scale, shift;
  } channels[] = {
      {174.996735f, 1.6762259f, 188.732254f},
      {188.585739f, 0.1179616f, 178.035583f},
      {140, 2.1500001f, 168},
      {82.5999985f, 2.5f, 95},
      {100, 0, 77},
      {0, 20000, -40000},
      {20000, -0.01f, -100},
  };

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned i = 0; i < G_N_ELEMENTS (channels); i++) {
      const GpuNormalize params = {.base = {channels[i].base, channels[i].base, 12, 0},
                                   .scale = {channels[i].scale, channels[i].scale, 1.25, 1},
                                   .global_scale = 1,
                                   .shift = channels[i].shift};
      const GpuImageSpec spec = test_spec (formats[f], 256, 37);

      picture_check (fixture->stream, &spec, &spec, normalize, normalize_reference, &params);
    }
}

static void
test_layouts (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_BGR, GPU_FORMAT_XRGB, GPU_FORMAT_NV12,
                                      GPU_FORMAT_I420};

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned pair = 0; pair < N_LAYOUTS * N_LAYOUTS; pair++) {
      GpuImageSpec src = picture_spec (formats[f], 147, 71, (Layout)(pair % N_LAYOUTS));
      GpuImageSpec dst = picture_spec (formats[f], 147, 71, (Layout)(pair / N_LAYOUTS));

      picture_check (fixture->stream, &src, &dst, normalize, normalize_reference, &all_params[1]);
    }
}

/* A row of 65537 chunks: of the last one's number a GPU's product by an inverse says that it is of the next row. */
static void
test_wide (OpFixture *fixture, const void *data)
{
  const GpuImageSpec wide = picture_spec (GPU_FORMAT_GRAY8, 65537 * 16, 1, LAYOUT_DEFAULT);

  picture_check (fixture->stream, &wide, &wide, normalize, normalize_reference, &all_params[1]);
}

/* Values worked out by hand: ties go to even, both ends saturate, the x of RGBx is 255. */
static void
test_values (OpFixture *fixture, const void *data)
{
  static const uint8_t in[] = {0, 1, 2, 3, 5, 7, 254, 255, 100, 101, 102, 103};
  /* 0.5 * (in - 0), (in - 100) * 3 + 0, (in - 254) * -1. */
  static const uint8_t out[] = {0, 0, 252, 255, 2, 0, 0, 255, 50, 3, 152, 255};
  GpuNormalize params;
  GpuImageSpec spec = picture_spec (GPU_FORMAT_RGBX, 3, 1, LAYOUT_PACKED);
  g_autoptr (GError) error = NULL;

  gpu_normalize_init (&params);
  params.scale[0] = 0.5f;
  params.base[1] = 100;
  params.scale[1] = 3;
  params.base[2] = 254;
  params.scale[2] = -1;

  GpuImage *src = test_image_new (fixture->device, &spec, fixture->stream);
  GpuImage *dst = test_image_new (fixture->device, &spec, fixture->stream);
  test_image_write (fixture->stream, src, in, &spec);
  gpu_normalize (fixture->stream, src, dst, &params, &error);
  g_assert_no_error (error);
  g_autofree uint8_t *got = test_image_read (fixture->stream, dst, 0);
  g_assert_cmpmem (got, sizeof out, out, sizeof out);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

/* Factors whose products leave the range of a float saturate instead of becoming NaN. */
static void
test_extremes (OpFixture *fixture, const void *data)
{
  GpuNormalize params;
  GpuImageSpec spec = picture_spec (GPU_FORMAT_GRAY8, 2, 1, LAYOUT_PACKED);
  g_autoptr (GError) error = NULL;

  gpu_normalize_init (&params);
  params.base[0] = 1;
  params.scale[0] = 3e38f;
  GpuImage *image = test_image_new (fixture->device, &spec, fixture->stream);
  test_image_write (fixture->stream, image, (const uint8_t[]){0, 255}, &spec);
  gpu_normalize (fixture->stream, image, image, &params, &error);
  g_assert_no_error (error);
  g_autofree uint8_t *got = test_image_read (fixture->stream, image, 7);
  g_assert_cmpuint (got[0], ==, 0);
  g_assert_cmpuint (got[1], ==, 255);
  gpu_image_unref (image);
}

/* Tensors: each value worked out in double precision and rounded once; tests/compare has NumPy's. */

typedef struct {
  GpuNormalize params;
  unsigned channels;
} TensorCase;

/* A half, by looking for it: the nearest of all, the even one of two. */
static uint16_t
half_of (double value)
{
  double magnitude = fabs (value);
  uint16_t best = 0;

  if (magnitude >= 65520)
    return value < 0 ? 0xfc00 : 0x7c00;
  if (magnitude > 0) {
    int exponent;

    frexp (magnitude, &exponent);
    const double unit = exp2 (MAX (exponent, -13) - 11);
    const double steps = nearbyint (magnitude / unit);
    /* 1024 steps and more have an exponent; one step too many is the next exponent's first. */
    best = (uint16_t)(MAX (exponent + 13, 0) * 1024 + steps);
  }
  return value < 0 || (value == 0 && signbit (value)) ? best | 0x8000 : best;
}

/* Where channel @c, counted R, G, B, A, lies: in a pixel, or which plane it is. */
static unsigned
letter_of (const GpuImageSpec *spec, unsigned c)
{
  const char *name = gpu_format_info (spec->format)->name;

  return spec->format == GPU_FORMAT_GRAY8 ? 0 : (unsigned)(strchr (name, "RGBA"[c]) - name);
}

static void
tensor_reference (const Picture *src, Picture *dst, const void *data)
{
  const TensorCase *test = data;
  const GpuNormalize *params = &test->params;
  const GpuFormatInfo *info = gpu_format_info (dst->spec.format);
  const bool planar = gpu_format_info (src->spec.format)->n_planes > 1;
  const unsigned n = dst->spec.channels;

  for (unsigned c = 0; c < n; c++) {
    const unsigned letter = letter_of (&src->spec, c);
    const double scale = params->scale[c];
    const double factor = params->scale_is_stddev ? 1 / sqrt (scale * scale + params->epsilon) : scale;
    unsigned to = c;

    if (params->order == GPU_CHANNEL_ORDER_STORED) {
      to = 0;
      for (unsigned other = 0; other < n; other++)
        to += letter_of (&src->spec, other) < letter;
    }
    for (uint32_t y = 0; y < dst->spec.height; y++)
      for (uint32_t x = 0; x < dst->spec.width; x++) {
        const uint8_t in = planar ? *picture_at (src, letter, x, y) : picture_at (src, 0, x, y)[letter];
        const size_t at = info->layout == GPU_LAYOUT_HWC ? ((size_t)y * dst->spec.width + x) * n + to
                                                         : ((size_t)to * dst->spec.height + y) * dst->spec.width + x;
        const double value = (in - params->base[c]) * (factor * params->global_scale) + params->shift;

        if (info->element == GPU_ELEMENT_U8)
          dst->bytes[at] = (uint8_t)CLAMP (nearbyint (value), 0, 255);
        else if (info->element == GPU_ELEMENT_F16)
          ((uint16_t *)(void *)dst->bytes)[at] = half_of (value);
        else
          ((float *)(void *)dst->bytes)[at] = (float)value;
      }
  }
}

static bool
normalize_tensor (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *data, GError **error)
{
  return gpu_normalize (stream, src, dst, &((const TensorCase *)data)->params, error);
}

static void
test_tensors (OpFixture *fixture, const void *data)
{
  static const uint32_t sizes[][2] = {{1, 1}, {3, 5}, {16, 2}, {127, 3}, {128, 4}, {261, 2}};
  unsigned turn = 0;

  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++) {
    const GpuFormatInfo *info = gpu_format_info ((GpuFormat)format);

    for (unsigned e = 0; (!info->is_yuv || info->n_channels == 1) && e < GPU_N_ELEMENTS; e++)
      for (unsigned layout = 0; layout < GPU_N_LAYOUTS; layout++)
        for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++, turn++) {
          TensorCase test = {all_params[turn % G_N_ELEMENTS (all_params)], info->n_channels};
          g_autoptr (GError) error = NULL;
          GpuImageSpec spec;

          test.params.order = (GpuChannelOrder)(turn / 2 % 2);
          if (info->has_alpha && turn / 3 % 2)
            test.channels = 3;
          gpu_image_spec_init_tensor (&spec, (GpuElement)e, (GpuLayout)layout, test.channels, sizes[i][0], sizes[i][1],
                                      &error);
          g_assert_no_error (error);
          GpuImageSpec src = picture_spec ((GpuFormat)format, sizes[i][0], sizes[i][1], (Layout)(turn % N_LAYOUTS));
          picture_check (fixture->stream, &src, &spec, normalize_tensor, tensor_reference, &test);
        }
  }
}

/* Tensors whose elements a GPU works out in single floats, if these give the same, and ones of which some channel has
 * values so close to the middle between two elements that it cannot. */
static const GpuNormalize line_params[] = {
    {.base = {123.675, 116.28, 103.53, 127.5}, .scale = {58.395, 57.12, 57.375, 127.5}, .scale_is_stddev = true},
    {.scale = {2 / 255.0, 2 / 255.0, 2 / 255.0, 1}, .shift = -1},
    {.base = {103.939, 128, 0, 300}, .scale = {1, -1.5, 1 / 255.0, 1e-9}},
    /* A half and a float that the first guess misses. */
    {.base = {154.71358227064533, 88.033527758919419, 254, 1},
     .scale = {0.011117673086057265, 0.013039964394662512, 1000, 1}},
    /* A half, and then a float, that all guesses miss. */
    {.base = {110, 209.93372305526105, 120, 0}, .scale = {0.017, 0.012116647393962669, 0.019, 1}},
    {.base = {110, 115, 47.037046419939514, 0}, .scale = {0.017, 0.018, 0.0088626919285686185, 1}},
    /* Factors and shifts that no guess is made for. */
    {.base = {110, 115, 120, 0}, .scale = {0, 0.018, -1e30, 1}, .shift = 1e-3},
    {.scale = {1e-4, 0.5, 3, 1}, .shift = 30000},
};

static void
test_lines (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_RGB,  GPU_FORMAT_BGR,   GPU_FORMAT_RGBA, GPU_FORMAT_ABGR,
                                      GPU_FORMAT_XRGB, GPU_FORMAT_GRAY8, GPU_FORMAT_GBR};
  unsigned turn = 0;

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned p = 0; p < G_N_ELEMENTS (line_params); p++)
      for (unsigned tensor = 0; tensor < GPU_N_ELEMENTS * GPU_N_LAYOUTS; tensor++, turn++) {
        const GpuFormatInfo *info = gpu_format_info (formats[f]);
        const uint32_t width = turn % 4 ? 256 : 272, height = turn % 3 ? 9 : 43;
        TensorCase test = {line_params[p], info->has_alpha && turn % 5 < 3 ? 3 : info->n_channels};
        GpuImageSpec src = picture_spec (formats[f], width, height, turn % 7 < 4 ? LAYOUT_PACKED : LAYOUT_DEFAULT), dst;
        g_autoptr (GError) error = NULL;

        test.params.global_scale = 1;
        test.params.order = (GpuChannelOrder)(turn % 11 % 2);
        gpu_image_spec_init_tensor (&dst, (GpuElement)(tensor % GPU_N_ELEMENTS), (GpuLayout)(tensor / GPU_N_ELEMENTS),
                                    test.channels, width, height, &error);
        g_assert_no_error (error);
        picture_check (fixture->stream, &src, &dst, normalize_tensor, tensor_reference, &test);
      }
}

/* A double between two floats that lie on the line between two halves: rounding twice would go the wrong way. */
static void
test_double_rounding (OpFixture *fixture, const void *data)
{
  GpuImageSpec gray = picture_spec (GPU_FORMAT_GRAY8, 1, 1, LAYOUT_PACKED), spec;
  g_autoptr (GError) error = NULL;
  GpuNormalize params;

  gpu_image_spec_init_tensor (&spec, GPU_ELEMENT_F16, GPU_LAYOUT_HWC, 1, 1, 1, &error);
  g_assert_no_error (error);
  gpu_normalize_init (&params);
  params.scale[0] = ldexpf (1, -30);
  params.shift = 1 + ldexpf (1, -11); /* between 1 and the next half; the even one is 1 */
  GpuImage *src = test_image_new (fixture->device, &gray, fixture->stream);
  GpuImage *dst = test_image_new (fixture->device, &spec, fixture->stream);
  test_image_write (fixture->stream, src, (const uint8_t[]){1}, &gray);
  gpu_normalize (fixture->stream, src, dst, &params, &error);
  g_assert_no_error (error);
  g_autofree uint8_t *got = test_image_read (fixture->stream, dst, 0);
  g_assert_cmphex (got[0] | got[1] << 8, ==, 0x3c01);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

/* By conversion and normalisation of the picture in between, both of which have tests of their own. */
static void
tensor_of_420_reference (const Picture *src, Picture *dst, const void *data)
{
  const TensorCase *test = data;
  GpuDevice *device = gpu_cpu_device_new ("cpu:8", GPU_CPU_THREADS, 0);
  g_autoptr (GError) error = NULL;
  GpuStream *stream = gpu_stream_new (device, false, &error);
  const GpuImageSpec rgb_spec = test_spec (GPU_FORMAT_RGB, src->spec.width, src->spec.height);
  GpuImage *from = picture_upload (stream, src), *rgb = test_image_new (device, &rgb_spec, stream);
  GpuImage *to = picture_upload (stream, dst);
  GpuConvert convert;

  gpu_convert_init (&convert);
  convert.src = test->params.color;
  g_assert_true (gpu_convert (stream, from, rgb, &convert, &error));
  g_assert_true (gpu_normalize (stream, rgb, to, &test->params, &error));
  Picture made = picture_download (stream, to);
  memcpy (dst->bytes, made.bytes, dst->spec.size);
  picture_clear (&made);
  gpu_image_unref (from);
  gpu_image_unref (rgb);
  gpu_image_unref (to);
  gpu_stream_unref (stream);
  gpu_device_unref (device);
}

static void
test_tensors_of_420 (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_NV12, GPU_FORMAT_I420};
  static const uint32_t sizes[][2] = {{1, 1},   {4, 1},    {4, 4},    {7, 5},   {16, 35},
                                      {132, 6}, {260, 67}, {640, 33}, {1028, 2}};
  unsigned turn = 0;

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned e = 0; e < GPU_N_ELEMENTS; e++)
      for (unsigned layout = 0; layout < GPU_N_LAYOUTS; layout++)
        for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++, turn++) {
          TensorCase test = {all_params[turn % G_N_ELEMENTS (all_params)], 3};
          g_autoptr (GError) error = NULL;
          GpuImageSpec spec;

          test.params.order = (GpuChannelOrder)(turn / 2 % 2); /* the same: there is none in memory */
          test.params.color = (GpuColorimetry){(GpuMatrix)(turn % GPU_N_MATRICES), (GpuRange)(turn / 3 % GPU_N_RANGES),
                                               (GpuChromaSite)(turn / 2 % GPU_N_CHROMA_SITES)};
          gpu_image_spec_init_tensor (&spec, (GpuElement)e, (GpuLayout)layout, 3, sizes[i][0], sizes[i][1], &error);
          g_assert_no_error (error);
          GpuImageSpec src = picture_spec (formats[f], sizes[i][0], sizes[i][1], (Layout)(turn % 5 % N_LAYOUTS));
          picture_check (fixture->stream, &src, &spec, normalize_tensor, tensor_of_420_reference, &test);
        }
}

typedef struct {
  GpuStream *stream;
  GpuImage *src, *dst;
} Refusal;

/* Parameters with one member changed. */
static void
refuse (const Refusal *refusal, size_t member, double value, bool is_stddev, const char *text)
{
  GpuNormalize params;

  gpu_normalize_init (&params);
  params.scale_is_stddev = is_stddev;
  memcpy ((char *)&params + member, &value, sizeof value);
  picture_check_error (refusal->stream, refusal->src, refusal->dst, normalize, &params, text);
}

static void
test_refusals (OpFixture *fixture, const void *data)
{
  GpuStream *stream = fixture->stream;
  GpuImageSpec spec = test_spec (GPU_FORMAT_RGB, 64, 48), larger = test_spec (GPU_FORMAT_RGB, 64, 50);
  GpuImageSpec alpha = test_spec (GPU_FORMAT_BGRA, 64, 48), yuv = test_spec (GPU_FORMAT_NV12, 64, 48);
  GpuNormalize params;
  g_autoptr (GError) error = NULL;

  GpuImage *src = test_image_new (fixture->device, &spec, stream);
  GpuImage *dst = test_image_new (fixture->device, &spec, stream);
  GpuImage *other_size = test_image_new (fixture->device, &larger, stream);
  GpuImage *bgra = test_image_new (fixture->device, &alpha, stream);
  GpuImage *nv12 = test_image_new (fixture->device, &yuv, stream);
  Refusal refusal = {stream, src, dst};

  refuse (&refusal, offsetof (GpuNormalize, base[1]), NAN, false, "a finite number as base of channel G, not nan");
  refuse (&refusal, offsetof (GpuNormalize, base[2]), INFINITY, false, "base of channel B, not inf");
  refuse (&refusal, offsetof (GpuNormalize, scale[0]), -INFINITY, false, "scale of channel R, not -inf");
  refuse (&refusal, offsetof (GpuNormalize, scale[0]), NAN, true, "standard deviation of channel R, not nan");
  refuse (&refusal, offsetof (GpuNormalize, scale[2]), 0, true, "the standard deviation 0 of channel B");
  refuse (&refusal, offsetof (GpuNormalize, scale[1]), 1e-45f, true, "channel G by 7.13624e+44, which is too large");
  refuse (&refusal, offsetof (GpuNormalize, global_scale), NAN, false, "finite number as global scale, not nan");
  refuse (&refusal, offsetof (GpuNormalize, shift), INFINITY, false, "finite number as shift, not inf");
  refuse (&refusal, offsetof (GpuNormalize, epsilon), NAN, true, "finite number as epsilon, not nan");
  refuse (&refusal, offsetof (GpuNormalize, epsilon), -0.5f, true, "epsilon of at least 0, not -0.5");

  refusal = (Refusal){stream, bgra, bgra};
  refuse (&refusal, offsetof (GpuNormalize, base[3]), NAN, false, "base of channel A");
  refusal = (Refusal){stream, nv12, nv12};
  refuse (&refusal, offsetof (GpuNormalize, base[2]), NAN, false, "base of channel V");

  /* What the format has no channel for does not matter. */
  gpu_normalize_init (&params);
  params.base[3] = NAN;
  params.scale[3] = 0;
  params.scale_is_stddev = true;
  g_assert_true (gpu_image_fill (stream, src, 7, &error));
  g_assert_true (gpu_normalize (stream, src, dst, &params, &error));
  g_assert_no_error (error);

  gpu_normalize_init (&params);
  picture_check_error (stream, src, other_size, normalize, &params,
                       "Normalize needs a destination of 64x48 pixels, not of 64x50");
  picture_check_error (stream, src, nv12, normalize, &params, "Normalize does not convert RGB to NV12");

  GpuImageSpec wide_spec = test_spec (GPU_FORMAT_P010_10LE, 64, 48), tensor_spec;
  GpuImage *wide = test_image_new (fixture->device, &wide_spec, stream);
  gpu_image_spec_init_tensor (&tensor_spec, GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 4, 64, 48, &error);
  g_assert_no_error (error);
  GpuImage *tensor = test_image_new (fixture->device, &tensor_spec, stream);
  picture_check_error (stream, wide, wide, normalize, &params, "samples of 8 bits, not on P010_10LE");
  picture_check_error (stream, src, tensor, normalize, &params, "makes a tensor of 3 channels of RGB, not of 4");
  picture_check_error (stream, nv12, tensor, normalize, &params, "makes a tensor of 3 channels of NV12, not of 4");
  picture_check_error (stream, tensor, tensor, normalize, &params, "works on pictures, not on a float32 CHW tensor");
  params.order = (GpuChannelOrder)2;
  picture_check_error (stream, bgra, tensor, normalize, &params, "no channel order number 2");
  gpu_normalize_init (&params);
  gpu_image_unref (tensor);
  gpu_image_spec_init_tensor (&tensor_spec, GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 3, 64, 48, &error);
  g_assert_no_error (error);
  tensor = test_image_new (fixture->device, &tensor_spec, stream);
  params.color.matrix = (GpuMatrix)3;
  picture_check_error (stream, nv12, tensor, normalize, &params, "Normalize knows no matrix 3");
  gpu_normalize_init (&params);
  params.base[2] = NAN;
  picture_check_error (stream, nv12, tensor, normalize, &params, "base of channel B, not nan");
  gpu_normalize_init (&params);
  gpu_image_unref (wide);
  gpu_image_unref (tensor);

  GpuImage *part = gpu_image_view (src, 0, 0, 32, 32, &error);
  g_assert_no_error (error);
  GpuImage *shifted = gpu_image_view (src, 1, 0, 32, 32, &error);
  g_assert_no_error (error);
  GpuImage *same = gpu_image_view (src, 0, 0, 32, 32, &error);
  g_assert_no_error (error);
  picture_check_error (stream, part, shifted, normalize, &params, "Normalize cannot write over its source");
  g_assert_true (gpu_normalize (stream, part, same, &params, &error));
  g_assert_no_error (error);

  GpuDevice *other_device = gpu_cpu_device_new ("cpu:7", GPU_CPU_THREADS, 0);
  GpuStream *other_stream = gpu_stream_new (other_device, false, &error);
  g_assert_no_error (error);
  GpuImage *foreign = test_image_new (other_device, &spec, other_stream);
  picture_check_error (stream, src, foreign, normalize, &params, "cannot use a destination image of cpu:7");
  gpu_image_unref (foreign);
  gpu_stream_unref (other_stream);
  gpu_device_unref (other_device);

  gpu_image_unref (part);
  gpu_image_unref (shifted);
  gpu_image_unref (same);
  gpu_image_unref (src);
  gpu_image_unref (dst);
  gpu_image_unref (other_size);
  gpu_image_unref (bgra);
  gpu_image_unref (nv12);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  OP_TEST ("/normalize/all", test_all);
  OP_TEST ("/normalize/steps", test_steps);
  OP_TEST ("/normalize/layouts", test_layouts);
  OP_TEST ("/normalize/wide", test_wide);
  OP_TEST ("/normalize/values", test_values);
  OP_TEST ("/normalize/extremes", test_extremes);
  OP_TEST ("/normalize/tensors", test_tensors);
  OP_TEST ("/normalize/lines", test_lines);
  OP_TEST ("/normalize/tensors-of-420", test_tensors_of_420);
  OP_TEST ("/normalize/double-rounding", test_double_rounding);
  OP_TEST ("/normalize/refusals", test_refusals);
  return g_test_run ();
}
