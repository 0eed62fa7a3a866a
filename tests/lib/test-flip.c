/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Flips, byte for byte, and what they refuse.
 */
#include "picture.h"

#include <string.h>

static bool
flip (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_flip (stream, src, dst, *(const GpuOrientation *)params, error);
}

static void
flip_reference (const Picture *src, Picture *dst, const void *params)
{
  GpuOrientation orientation = *(const GpuOrientation *)params;

  for (unsigned i = 0; i < gpu_format_info (src->spec.format)->n_planes; i++) {
    uint32_t w = gpu_image_spec_plane_width (&src->spec, i);
    uint32_t h = gpu_image_spec_plane_height (&src->spec, i);

    for (uint32_t y = 0; y < h; y++)
      for (uint32_t x = 0; x < w; x++) {
        uint32_t to[][2] = {
            [GPU_ORIENTATION_IDENTITY] = {x, y},
            [GPU_ORIENTATION_90R] = {h - 1 - y, x},
            [GPU_ORIENTATION_180] = {w - 1 - x, h - 1 - y},
            [GPU_ORIENTATION_90L] = {y, w - 1 - x},
            [GPU_ORIENTATION_HORIZONTAL] = {w - 1 - x, y},
            [GPU_ORIENTATION_VERTICAL] = {x, h - 1 - y},
            [GPU_ORIENTATION_UL_LR] = {y, x},
            [GPU_ORIENTATION_UR_LL] = {h - 1 - y, w - 1 - x},
        };

        memcpy (picture_at (dst, i, to[orientation][0], to[orientation][1]), picture_at (src, i, x, y),
                picture_sample_bytes (src, i));
      }
  }
}

static bool
is_transposed (GpuOrientation orientation)
{
  return orientation == GPU_ORIENTATION_90R || orientation == GPU_ORIENTATION_90L ||
         orientation == GPU_ORIENTATION_UL_LR || orientation == GPU_ORIENTATION_UR_LL;
}

/* What GStreamer's videoflip makes of "abc" over "def". */
static void
test_meaning (OpFixture *fixture, const void *data)
{
  static const char *const expected[] = {"abcdef", "daebfc", "fedcba", "cfbead",
                                         "cbafed", "defabc", "adbecf", "fcebda"};

  for (unsigned i = 0; i < G_N_ELEMENTS (expected); i++) {
    GpuOrientation orientation = (GpuOrientation)i;
    bool transposed = gpu_orientation_is_transposed (orientation);
    GpuImageSpec spec = picture_spec (GPU_FORMAT_GRAY8, 3, 2, LAYOUT_PACKED);
    GpuImageSpec turned = picture_spec (GPU_FORMAT_GRAY8, transposed ? 2 : 3, transposed ? 3 : 2, LAYOUT_PACKED);
    GpuImage *src = test_image_new (fixture->device, &spec, fixture->stream);
    GpuImage *dst = test_image_new (fixture->device, &turned, fixture->stream);
    g_autoptr (GError) error = NULL;

    g_assert_cmpint (transposed, ==, is_transposed (orientation));
    test_image_write (fixture->stream, src, "abcdef", &spec);
    gpu_flip (fixture->stream, src, dst, orientation, &error);
    g_assert_no_error (error);
    g_autofree uint8_t *got = test_image_read (fixture->stream, dst, 0);
    g_assert_cmpmem (got, 6, expected[i], 6);
    gpu_image_unref (src);
    gpu_image_unref (dst);
  }
}

static void
test_all (OpFixture *fixture, const void *data)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned i = 0; i < n_picture_sizes; i++) {
      uint32_t width = picture_sizes[i][0], height = picture_sizes[i][1];

      for (unsigned o = GPU_ORIENTATION_IDENTITY; o <= GPU_ORIENTATION_UR_LL; o++) {
        GpuOrientation orientation = (GpuOrientation)o;
        bool transposed = is_transposed (orientation);
        /* Every pair of layouts comes up with every orientation. */
        unsigned pair = format + 5 * i + o;

        if (picture_takes_turns ((GpuFormat)format, i + o))
          continue;
        GpuImageSpec src = picture_spec ((GpuFormat)format, width, height, (Layout)(pair % N_LAYOUTS));
        GpuImageSpec dst = picture_spec ((GpuFormat)format, transposed ? height : width, transposed ? width : height,
                                         (Layout)(pair / N_LAYOUTS % N_LAYOUTS));

        picture_check (fixture->stream, &src, &dst, flip, flip_reference, &orientation);
      }
    }
}

/* As most pictures lie: aligned, with rows of whole lines of 16 bytes, more than a warp's, for which a GPU has kernels
 * of their own. */
static void
test_lines (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_RGB,  GPU_FORMAT_RGBA,     GPU_FORMAT_NV12,
                                      GPU_FORMAT_I420,  GPU_FORMAT_RGBP, GPU_FORMAT_P010_10LE};

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned o = GPU_ORIENTATION_IDENTITY; o <= GPU_ORIENTATION_UR_LL; o++) {
      GpuOrientation orientation = (GpuOrientation)o;
      const bool transposed = is_transposed (orientation);
      GpuImageSpec src = test_spec (formats[f], 1056, 44);
      GpuImageSpec dst = test_spec (formats[f], transposed ? 44 : 1056, transposed ? 1056 : 44);

      picture_check (fixture->stream, &src, &dst, flip, flip_reference, &orientation);
    }
}

/* Enough tiles for all orders in which a GPU takes them: several side by side, and more of them below one another than
 * go together. Rows of the source end with whole lines of 16 bytes, or not. */
static void
test_tiles (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_RGB, GPU_FORMAT_RGBA, GPU_FORMAT_P010_10LE};
  static const GpuOrientation turns[] = {GPU_ORIENTATION_90R, GPU_ORIENTATION_90L, GPU_ORIENTATION_UL_LR,
                                         GPU_ORIENTATION_UR_LL};

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned t = 0; t < G_N_ELEMENTS (turns); t++) {
      const uint32_t width = (formats[f] == GPU_FORMAT_GRAY8 ? 1296 : 656) - f * t, height = 260 + t;
      GpuImageSpec src = test_spec (formats[f], width, height), dst = test_spec (formats[f], height, width);

      picture_check (fixture->stream, &src, &dst, flip, flip_reference, &turns[t]);
    }
}

/* One format of each pixel size, with every pair of layouts. */
static void
test_layouts (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_GRAY8, GPU_FORMAT_RGB,  GPU_FORMAT_RGBA,     GPU_FORMAT_NV12,
                                      GPU_FORMAT_I420,  GPU_FORMAT_RGBP, GPU_FORMAT_P010_10LE};

  for (unsigned f = 0; f < G_N_ELEMENTS (formats); f++)
    for (unsigned pair = 0; pair < N_LAYOUTS * N_LAYOUTS; pair++)
      for (unsigned o = GPU_ORIENTATION_IDENTITY; o <= GPU_ORIENTATION_UR_LL; o++) {
        GpuOrientation orientation = (GpuOrientation)o;
        bool transposed = is_transposed (orientation);
        GpuImageSpec src = picture_spec (formats[f], 147, 71, (Layout)(pair % N_LAYOUTS));
        GpuImageSpec dst =
            picture_spec (formats[f], transposed ? 71 : 147, transposed ? 147 : 71, (Layout)(pair / N_LAYOUTS));

        picture_check (fixture->stream, &src, &dst, flip, flip_reference, &orientation);
      }
}

/* The left half of a picture into its right one, and what would touch its own source. */
static void
test_views (OpFixture *fixture, const void *data)
{
  static const GpuOrientation mirror = GPU_ORIENTATION_HORIZONTAL, turn = GPU_ORIENTATION_90R;
  GpuStream *stream = fixture->stream;
  GpuImageSpec spec = test_spec (GPU_FORMAT_NV12, 100, 60);
  Picture picture = picture_new (&spec, 17);
  g_autoptr (GError) error = NULL;

  GpuImage *image = picture_upload (stream, &picture);
  GpuImage *left = gpu_image_view (image, 0, 0, 50, 60, &error);
  g_assert_no_error (error);
  GpuImage *right = gpu_image_view (image, 50, 0, 50, 60, &error);
  g_assert_no_error (error);
  GpuImage *middle = gpu_image_view (image, 48, 0, 50, 60, &error);
  g_assert_no_error (error);
  GpuImage *lower = gpu_image_view (image, 0, 30, 100, 30, &error);
  g_assert_no_error (error);
  GpuImage *upper = gpu_image_view (image, 0, 0, 100, 30, &error);
  g_assert_no_error (error);
  GpuImage *above = gpu_image_view (image, 0, 2, 100, 30, &error);
  g_assert_no_error (error);
  GpuImage *upper_middle = gpu_image_view (image, 48, 0, 50, 30, &error);
  g_assert_no_error (error);
  GpuImage *upper_right = gpu_image_view (image, 50, 0, 50, 30, &error);
  g_assert_no_error (error);
  GpuImage *lower_left = gpu_image_view (image, 0, 20, 50, 30, &error);
  g_assert_no_error (error);
  GpuImage *square = gpu_image_view (image, 0, 0, 50, 50, &error);
  g_assert_no_error (error);

  picture_check_error (stream, left, middle, flip, &mirror, "Flip (horizontal) cannot write over its source");
  picture_check_error (stream, middle, left, flip, &mirror, "plane 0 of the destination lies on plane 0");
  picture_check_error (stream, upper_middle, lower_left, flip, &mirror, "plane 0 of the destination lies on plane 0");
  picture_check_error (stream, above, upper, flip, &mirror, "cannot write over its source");
  picture_check_error (stream, lower, above, flip, &mirror, "cannot write over its source");
  picture_check_error (stream, image, image, flip, &mirror, "cannot write over its source");
  picture_check_error (stream, square, square, flip, &turn, "Flip (90r) cannot write over its source");
  g_assert_true (gpu_flip (stream, upper, lower, mirror, &error));
  g_assert_no_error (error);
  g_assert_true (gpu_flip (stream, right, left, mirror, &error));
  g_assert_no_error (error);
  g_assert_true (gpu_flip (stream, left, right, mirror, &error));
  g_assert_no_error (error);

  Picture got = picture_download (stream, image);
  for (unsigned i = 0; i < 2; i++) {
    uint32_t w = gpu_image_spec_plane_width (&spec, i), h = gpu_image_spec_plane_height (&spec, i);

    for (uint32_t y = 0; y < h; y++)
      for (uint32_t x = 0; x < w; x++) {
        uint32_t from_y = y < h / 2 ? y : y - h / 2;
        /* The lower half has been mirrored once, and both halves' left columns are the mirrored right ones. */
        uint32_t from_x = MAX (x, w - 1 - x);
        from_x = y < h / 2 ? from_x : w - 1 - from_x;

        g_assert_cmpmem (picture_at (&got, i, x, y), i + 1, picture_at (&picture, i, from_x, from_y), i + 1);
      }
  }

  /* Their rows take turns in memory. */
  g_assert_true (gpu_flip (stream, upper_right, lower_left, mirror, &error));
  g_assert_no_error (error);

  picture_clear (&got);
  picture_clear (&picture);
  gpu_image_unref (left);
  gpu_image_unref (right);
  gpu_image_unref (middle);
  gpu_image_unref (lower);
  gpu_image_unref (upper);
  gpu_image_unref (above);
  gpu_image_unref (square);
  gpu_image_unref (upper_middle);
  gpu_image_unref (upper_right);
  gpu_image_unref (lower_left);
  gpu_image_unref (image);
}

static void
test_refusals (OpFixture *fixture, const void *data)
{
  static const GpuOrientation identity = GPU_ORIENTATION_IDENTITY, turn = GPU_ORIENTATION_90L,
                              unknown = (GpuOrientation)8, negative = (GpuOrientation)-1;
  GpuStream *stream = fixture->stream;
  GpuImageSpec wide = test_spec (GPU_FORMAT_RGBA, 64, 48), high = test_spec (GPU_FORMAT_RGBA, 48, 64);
  GpuImageSpec other = test_spec (GPU_FORMAT_BGRA, 64, 48);
  g_autoptr (GError) error = NULL;

  GpuImage *src = test_image_new (fixture->device, &wide, stream);
  GpuImage *same = test_image_new (fixture->device, &wide, stream);
  GpuImage *turned = test_image_new (fixture->device, &high, stream);
  GpuImage *bgra = test_image_new (fixture->device, &other, stream);

  picture_check_error (stream, src, same, flip, &unknown, "no orientation number 8");
  picture_check_error (stream, src, same, flip, &negative, "no orientation number -1");
  picture_check_error (stream, src, turned, flip, &identity,
                       "Flip (identity) needs a destination of 64x48 pixels, not of 48x64");
  picture_check_error (stream, src, same, flip, &turn, "Flip (90l) needs a destination of 48x64 pixels, not of 64x48");
  picture_check_error (stream, src, bgra, flip, &identity, "does not convert RGBA to BGRA");

  GpuImageSpec tensor_spec;
  gpu_image_spec_init_tensor (&tensor_spec, GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 3, 64, 48, &error);
  g_assert_no_error (error);
  GpuImage *tensor = test_image_new (fixture->device, &tensor_spec, stream);
  picture_check_error (stream, tensor, same, flip, &identity, "works on pictures, not on a uint8 CHW tensor");
  gpu_image_unref (tensor);

  GpuDevice *other_device = gpu_cpu_device_new ("cpu:7", GPU_CPU_THREADS, 0);
  GpuStream *other_stream = gpu_stream_new (other_device, false, &error);
  g_assert_no_error (error);
  GpuImage *foreign = test_image_new (other_device, &wide, other_stream);
  picture_check_error (stream, foreign, same, flip, &identity, "cannot use a source image of cpu:7 on a stream of");
  picture_check_error (stream, src, foreign, flip, &identity, "cannot use a destination image of cpu:7");
  gpu_image_unref (foreign);
  gpu_stream_unref (other_stream);
  gpu_device_unref (other_device);

  gpu_image_unref (src);
  gpu_image_unref (same);
  gpu_image_unref (turned);
  gpu_image_unref (bgra);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  OP_TEST ("/flip/meaning", test_meaning);
  OP_TEST ("/flip/all", test_all);
  OP_TEST ("/flip/lines", test_lines);
  OP_TEST ("/flip/tiles", test_tiles);
  OP_TEST ("/flip/layouts", test_layouts);
  OP_TEST ("/flip/views", test_views);
  OP_TEST ("/flip/refusals", test_refusals);
  return g_test_run ();
}
