/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling: byte for byte against the formulas that resize.h and resize-pixel.h state, and against real arithmetic.
 */
#include "picture.h"

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

        for (unsigned c = 0; c < picture_sample_bytes (src, i); c++) {
          int64_t sum = 0;

          for (int v = 0; v < 2; v++)
            for (int h = 0; h < 2; h++) {
              uint32_t sx = (uint32_t)clamp (px / 4096 + h, sw - 1), sy = (uint32_t)clamp (py / 4096 + v, sh - 1);

              sum += picture_at (src, i, sx, sy)[c] * (h ? px % 4096 : 4096 - px % 4096) *
                     (v ? py % 4096 : 4096 - py % 4096);
            }
          picture_at (dst, i, x, y)[c] = (uint8_t)((sum + (1 << 23)) >> 24);
        }
      }
  }
}

static const uint32_t targets[][2] = {{1, 1}, {1, 40}, {33, 1}, {17, 33}, {64, 64}, {130, 67}, {321, 243}};

static void
check_filter (OpFixture *fixture, GpuResizeFilter filter, PictureReference reference)
{
  for (unsigned format = FIRST_FORMAT; format < GPU_N_FORMATS; format++)
    for (unsigned i = 0; i < n_picture_sizes; i++)
      for (unsigned j = 0; j < G_N_ELEMENTS (targets); j++) {
        unsigned pair = format + 3 * i + 7 * j;
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
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_RGB, GPU_FORMAT_BGRX, GPU_FORMAT_NV12,
                                      GPU_FORMAT_I420};
  static const GpuResizeFilter nearest = GPU_RESIZE_NEAREST, bilinear = GPU_RESIZE_BILINEAR;

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned pair = 0; pair < N_LAYOUTS * N_LAYOUTS; pair++) {
      GpuImageSpec src = picture_spec (formats[f], 1030, 19, (Layout)(pair % N_LAYOUTS));
      GpuImageSpec dst = picture_spec (formats[f], 2079, 23, (Layout)(pair / N_LAYOUTS));

      picture_check (fixture->stream, &src, &dst, resize, nearest_reference, &nearest);
      picture_check (fixture->stream, &src, &dst, resize, bilinear_reference, &bilinear);
    }
}

/* A side so long that positions no longer fit the fast arithmetic. */
static void
test_long (OpFixture *fixture, const void *data)
{
  static const uint32_t lengths[][2] = {{3000001, 7}, {7, 3000001}, {100003, 3000001}};
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

static void
test_refusals (OpFixture *fixture, const void *data)
{
  static const GpuResizeFilter nearest = GPU_RESIZE_NEAREST, unknown = (GpuResizeFilter)2;
  GpuStream *stream = fixture->stream;
  GpuImageSpec spec = test_spec (GPU_FORMAT_RGB, 64, 48), other = test_spec (GPU_FORMAT_I420, 64, 48);
  g_autoptr (GError) error = NULL;

  GpuImage *src = test_image_new (fixture->device, &spec, stream);
  GpuImage *i420 = test_image_new (fixture->device, &other, stream);
  GpuImage *part = gpu_image_view (src, 10, 10, 20, 20, &error);
  g_assert_no_error (error);

  picture_check_error (stream, src, part, resize, &unknown, "no resize filter number 2");
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

  gpu_image_unref (part);
  gpu_image_unref (src);
  gpu_image_unref (i420);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  OP_TEST ("/resize/nearest", test_nearest);
  OP_TEST ("/resize/bilinear", test_bilinear);
  OP_TEST ("/resize/layouts", test_layouts);
  OP_TEST ("/resize/long", test_long);
  OP_TEST ("/resize/accuracy", test_accuracy);
  OP_TEST ("/resize/identity", test_identity);
  OP_TEST ("/resize/refusals", test_refusals);
  return g_test_run ();
}
