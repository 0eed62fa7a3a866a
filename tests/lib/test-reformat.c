/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The order of dimensions, byte for byte, with the type of elements and without, and what cannot be reformatted.
 */
#include "picture.h"

#include <string.h>

static bool
reformat (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_reformat (stream, src, dst, params, error);
}

static GpuImageSpec
tensor (GpuElement element, GpuLayout layout, uint32_t channels, uint32_t width, uint32_t height)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;

  gpu_image_spec_init_tensor (&spec, element, layout, channels, width, height, &error);
  g_assert_no_error (error);
  return spec;
}

/* Channel @c, counted R, G, B, A in pictures. */
static uint8_t *
element_at (const Picture *picture, unsigned c, uint32_t x, uint32_t y)
{
  const GpuImageSpec *spec = &picture->spec;
  const GpuFormatInfo *info = gpu_format_info (spec->format);
  size_t bytes = gpu_element_bytes (info->element);

  if (info->is_tensor && info->layout == GPU_LAYOUT_HWC)
    return picture->bytes + (((size_t)y * spec->width + x) * spec->channels + c) * bytes;
  if (info->is_tensor)
    return picture->bytes + (((size_t)c * spec->height + y) * spec->width + x) * bytes;
  if (spec->format == GPU_FORMAT_GRAY8)
    return picture_at (picture, 0, x, y);
  const size_t letter = (size_t)(strchr (info->name, "RGBA"[c]) - info->name);
  return info->n_planes > 1 ? picture_at (picture, (unsigned)letter, x, y) : picture_at (picture, 0, x, y) + letter;
}

static void
reformat_reference (const Picture *src, Picture *dst, const void *params)
{
  const GpuFormatInfo *info = gpu_format_info (dst->spec.format);
  const unsigned channels = info->is_tensor ? dst->spec.channels : info->n_channels;

  for (uint32_t y = 0; y < dst->spec.height; y++)
    for (uint32_t x = 0; x < dst->spec.width; x++) {
      if (!info->is_tensor && info->n_planes == 1)
        memset (picture_at (dst, 0, x, y), 255, picture_sample_bytes (dst, 0));
      for (unsigned c = 0; c < channels; c++)
        memcpy (element_at (dst, c, x, y), element_at (src, c, x, y), gpu_element_bytes (info->element));
    }
}

/* Widths around the pixels of a thread, a warp, a line of 16 bytes, and those of a warp's lines. */
static const uint32_t sizes[][2] = {{1, 1},   {3, 2},   {4, 9},   {16, 3},  {31, 7},
                                    {127, 3}, {128, 2}, {132, 5}, {259, 2}, {528, 9}};

static void
test_tensors (OpFixture *fixture, const void *data)
{
  for (unsigned e = 0; e < GPU_N_ELEMENTS; e++)
    for (unsigned from = 0; from < GPU_N_LAYOUTS; from++)
      for (unsigned to = 0; to < GPU_N_LAYOUTS; to++)
        for (uint32_t channels = 1; channels <= GPU_MAX_CHANNELS; channels++)
          for (unsigned i = 0; i < G_N_ELEMENTS (sizes); i++) {
            GpuImageSpec src = tensor ((GpuElement)e, (GpuLayout)from, channels, sizes[i][0], sizes[i][1]);
            GpuImageSpec dst = tensor ((GpuElement)e, (GpuLayout)to, channels, sizes[i][0], sizes[i][1]);

            picture_check (fixture->stream, &src, &dst, reformat, reformat_reference, NULL);
          }
}

static void
test_pictures (OpFixture *fixture, const void *data)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++) {
    const GpuFormatInfo *info = gpu_format_info ((GpuFormat)format);

    for (unsigned i = 0; (!info->is_yuv || info->n_channels == 1) && i < G_N_ELEMENTS (sizes); i++)
      for (unsigned turn = 0; turn < N_LAYOUTS * GPU_N_LAYOUTS; turn++) {
        GpuImageSpec picture = picture_spec ((GpuFormat)format, sizes[i][0], sizes[i][1], (Layout)(turn % N_LAYOUTS));
        GpuImageSpec other =
            tensor (GPU_ELEMENT_U8, (GpuLayout)(turn / N_LAYOUTS), info->n_channels, sizes[i][0], sizes[i][1]);

        picture_check (fixture->stream, &picture, &other, reformat, reformat_reference, NULL);
        picture_check (fixture->stream, &other, &picture, reformat, reformat_reference, NULL);
      }
  }
}

/* Between pictures: channels keep their names. */
static void
test_between_pictures (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_RGB, GPU_FORMAT_BGRX, GPU_FORMAT_XRGB, GPU_FORMAT_RGBP,
                                      GPU_FORMAT_GBR};

  for (unsigned from = 0; from < G_N_ELEMENTS (formats); from++)
    for (unsigned to = 0; to < G_N_ELEMENTS (formats); to++)
      for (unsigned i = 0; from != to && i < G_N_ELEMENTS (sizes); i++) {
        GpuImageSpec src = picture_spec (formats[from], sizes[i][0], sizes[i][1], (Layout)(i % N_LAYOUTS));
        GpuImageSpec dst = picture_spec (formats[to], sizes[i][0], sizes[i][1], (Layout)(from % N_LAYOUTS));

        picture_check (fixture->stream, &src, &dst, reformat, reformat_reference, NULL);
      }
}

/* Layout and type at once are the same as one after the other. */
static void
test_types (OpFixture *fixture, const void *data)
{
  const GpuImageSpec bytes = tensor (GPU_ELEMENT_U8, GPU_LAYOUT_HWC, 3, 33, 7);
  const GpuImageSpec planes = tensor (GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 3, 33, 7);
  const GpuImageSpec numbers = tensor (GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 3, 33, 7);
  GpuImage *src = test_image_new (fixture->device, &bytes, fixture->stream);
  GpuImage *between = test_image_new (fixture->device, &planes, fixture->stream);
  GpuImage *expected = test_image_new (fixture->device, &numbers, fixture->stream);
  GpuImage *dst = test_image_new (fixture->device, &numbers, fixture->stream);
  GpuImage *back = test_image_new (fixture->device, &bytes, fixture->stream);
  g_autofree uint8_t *random = test_random_bytes (bytes.size, 5);
  g_autofree uint8_t *wanted = NULL;
  GpuConvert params, inverse;

  gpu_convert_init (&params);
  gpu_convert_init (&inverse);
  params.scale = 0.5f, params.offset = -3;
  inverse.scale = 2, inverse.offset = 6;
  test_image_write (fixture->stream, src, random, &bytes);
  g_assert_true (gpu_reformat (fixture->stream, src, between, NULL, NULL));
  g_assert_true (gpu_convert (fixture->stream, between, expected, &params, NULL));
  g_assert_true (gpu_reformat (fixture->stream, src, dst, &params, NULL));
  wanted = test_image_read (fixture->stream, expected, 0);
  test_assert_image (fixture->stream, dst, wanted, &numbers);
  g_assert_true (gpu_reformat (fixture->stream, dst, back, &inverse, NULL));
  test_assert_image (fixture->stream, back, random, &bytes);

  gpu_image_unref (back);
  gpu_image_unref (dst);
  gpu_image_unref (expected);
  gpu_image_unref (between);
  gpu_image_unref (src);
}

/* Scale and offset count where the type of the elements stays, too, whatever becomes of the layout. By way of bytes,
 * which all types hold. */
static void
test_scale (OpFixture *fixture, const void *data)
{
  const uint32_t width = 33, height = 7, channels = 3;
  GpuConvert params;

  gpu_convert_init (&params);
  params.scale = 2, params.offset = 1;
  for (unsigned turn = 0; turn < GPU_N_ELEMENTS * GPU_N_LAYOUTS * GPU_N_LAYOUTS; turn++) {
    const GpuElement element = (GpuElement)(turn / (GPU_N_LAYOUTS * GPU_N_LAYOUTS));
    const GpuLayout from = (GpuLayout)(turn / GPU_N_LAYOUTS % GPU_N_LAYOUTS), to = (GpuLayout)(turn % GPU_N_LAYOUTS);
    Picture in = {.spec = tensor (GPU_ELEMENT_U8, from, channels, width, height)};
    Picture wanted = {.spec = tensor (GPU_ELEMENT_U8, to, channels, width, height)};
    const GpuImageSpec spec = tensor (element, from, channels, width, height);
    const GpuImageSpec moved = tensor (element, to, channels, width, height);
    GpuImage *bytes = test_image_new (fixture->device, &in.spec, fixture->stream);
    GpuImage *src = test_image_new (fixture->device, &spec, fixture->stream);
    GpuImage *dst = test_image_new (fixture->device, &moved, fixture->stream);
    GpuImage *got = test_image_new (fixture->device, &wanted.spec, fixture->stream);
    g_autofree uint8_t *numbers = test_random_bytes (in.spec.size, turn);
    g_autofree uint8_t *scaled = g_malloc0 (wanted.spec.size);

    in.bytes = numbers, wanted.bytes = scaled;
    for (uint32_t y = 0; y < height; y++)
      for (uint32_t x = 0; x < width; x++)
        for (unsigned c = 0; c < channels; c++) {
          uint8_t *number = element_at (&in, c, x, y);

          *number %= 128;
          *element_at (&wanted, c, x, y) = (uint8_t)(2 * *number + 1);
        }
    test_image_write (fixture->stream, bytes, numbers, &in.spec);
    g_assert_true (gpu_reformat (fixture->stream, bytes, src, NULL, NULL));
    g_assert_true (gpu_reformat (fixture->stream, src, dst, &params, NULL));
    g_assert_true (gpu_reformat (fixture->stream, dst, got, NULL, NULL));
    test_assert_image (fixture->stream, got, scaled, &wanted.spec);

    gpu_image_unref (got);
    gpu_image_unref (dst);
    gpu_image_unref (src);
    gpu_image_unref (bytes);
  }
}

static void
test_refusals (OpFixture *fixture, const void *data)
{
  GpuStream *stream = fixture->stream;
  GpuImageSpec hwc_spec = tensor (GPU_ELEMENT_U8, GPU_LAYOUT_HWC, 3, 64, 48);
  GpuImageSpec chw_spec = tensor (GPU_ELEMENT_F16, GPU_LAYOUT_CHW, 3, 64, 48);
  GpuImageSpec four_spec = tensor (GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 4, 64, 48);
  GpuImageSpec small_spec = tensor (GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 3, 64, 47);
  GpuImageSpec nv12_spec = test_spec (GPU_FORMAT_NV12, 64, 48), rgb_spec = test_spec (GPU_FORMAT_RGB, 64, 48);
  GpuImage *hwc = test_image_new (fixture->device, &hwc_spec, stream);
  GpuImage *chw = test_image_new (fixture->device, &chw_spec, stream);
  GpuImage *four = test_image_new (fixture->device, &four_spec, stream);
  GpuImage *small = test_image_new (fixture->device, &small_spec, stream);
  GpuImage *nv12 = test_image_new (fixture->device, &nv12_spec, stream);
  GpuImage *rgb = test_image_new (fixture->device, &rgb_spec, stream);
  GpuConvert scaled;

  gpu_convert_init (&scaled);
  scaled.offset = 1;

  picture_check_error (stream, rgb, chw, reformat, NULL, "not those of RGB to float16 CHW tensor: use gpu_normalize()");
  picture_check_error (stream, rgb, hwc, reformat, &scaled,
                       "not those of RGB to uint8 HWC tensor: use gpu_normalize()");
  picture_check_error (stream, hwc, four, reformat, NULL, "does not make 4 channels of the 3 of a uint8 HWC tensor");
  picture_check_error (stream, rgb, four, reformat, NULL, "does not make 4 channels of the 3 of a RGB");
  picture_check_error (stream, hwc, small, reformat, NULL, "needs a destination of 64x48 pixels, not of 64x47");
  picture_check_error (stream, nv12, hwc, reformat, NULL, "RGB formats and GRAY8, not on NV12");
  picture_check_error (stream, hwc, nv12, reformat, NULL, "RGB formats and GRAY8, not on NV12");
  picture_check_error (stream, hwc, hwc, reformat, NULL, "cannot write over its source");

  /* A copy of as many bytes is not enough. */
  g_autoptr (GError) error = NULL;
  GpuImageSpec long_spec = tensor (GPU_ELEMENT_U8, GPU_LAYOUT_HWC, 1, 64, 48);
  GpuImage *one = test_image_new (fixture->device, &long_spec, stream);
  g_assert_false (gpu_image_copy (stream, one, hwc, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);

  gpu_image_unref (one);
  gpu_image_unref (hwc);
  gpu_image_unref (chw);
  gpu_image_unref (four);
  gpu_image_unref (small);
  gpu_image_unref (nv12);
  gpu_image_unref (rgb);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  OP_TEST ("/reformat/tensors", test_tensors);
  OP_TEST ("/reformat/pictures", test_pictures);
  OP_TEST ("/reformat/between-pictures", test_between_pictures);
  OP_TEST ("/reformat/types", test_types);
  OP_TEST ("/reformat/scale", test_scale);
  OP_TEST ("/reformat/refusals", test_refusals);
  return g_test_run ();
}
