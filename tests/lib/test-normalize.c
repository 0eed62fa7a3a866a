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
  volatile float step = (float)value - params->base[channel];

  step = step * (float)(factor * params->global_scale);
  step = step + params->shift;

  double real = (value - (double)params->base[channel]) * factor * params->global_scale + params->shift;
  double rounded = CLAMP (nearbyint ((double)step), 0, 255);

  g_assert_cmpfloat (fabs (rounded - CLAMP (real, 0, 255)), <, 0.5001);
  return (uint8_t)rounded;
}

/* The channel of byte @byte of a pixel of @plane, or -1 for padding. */
static int
channel_of (const Picture *picture, unsigned plane, unsigned byte)
{
  const char *name = gpu_format_info (picture->spec.format)->name;

  if (!strcmp (name, "GRAY8"))
    return 0;
  if (!strcmp (name, "NV12") || !strcmp (name, "I420"))
    return (int)(plane + byte);
  const char *at = strchr ("RGBA", name[byte]);
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
  for (unsigned format = FIRST_FORMAT; format < GPU_N_FORMATS; format++)
    for (unsigned i = 0; i < n_picture_sizes; i++)
      for (unsigned p = 0; p < G_N_ELEMENTS (all_params); p++) {
        unsigned pair = format + 5 * i + 3 * p;
        uint32_t width = picture_sizes[i][0], height = picture_sizes[i][1];
        GpuImageSpec src = picture_spec ((GpuFormat)format, width, height, (Layout)(pair % N_LAYOUTS));
        GpuImageSpec dst = picture_spec ((GpuFormat)format, width, height, (Layout)(pair / N_LAYOUTS % N_LAYOUTS));

        picture_check (fixture->stream, &src, &dst, normalize, normalize_reference, &all_params[p]);
        picture_check_in_place (fixture->stream, &src, normalize, normalize_reference, &all_params[p]);
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

typedef struct {
  GpuStream *stream;
  GpuImage *src, *dst;
} Refusal;

/* Parameters with one member changed. */
static void
refuse (const Refusal *refusal, size_t member, float value, bool is_stddev, const char *text)
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
  g_assert_true (gpu_normalize (stream, src, dst, &params, &error));
  g_assert_no_error (error);

  gpu_normalize_init (&params);
  picture_check_error (stream, src, other_size, normalize, &params,
                       "Normalize needs a destination of 64x48 pixels, not of 64x50");
  picture_check_error (stream, src, nv12, normalize, &params, "Normalize does not convert RGB to NV12");

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
  OP_TEST ("/normalize/layouts", test_layouts);
  OP_TEST ("/normalize/values", test_values);
  OP_TEST ("/normalize/extremes", test_extremes);
  OP_TEST ("/normalize/refusals", test_refusals);
  return g_test_run ();
}
