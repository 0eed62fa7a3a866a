/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Image specs: formats, layouts, and what cannot be laid out.
 */
#include "common.h"

#include <string.h>

static void
test_names (void)
{
  static const char *const names[] = {NULL,
                                      "GRAY8",
                                      "RGB",
                                      "BGR",
                                      "RGBA",
                                      "BGRA",
                                      "ARGB",
                                      "ABGR",
                                      "RGBx",
                                      "BGRx",
                                      "xRGB",
                                      "xBGR",
                                      "NV12",
                                      "I420",
                                      "P010_10LE",
                                      "RGBP",
                                      "GBR",
                                      "uint8 HWC tensor",
                                      "float16 HWC tensor",
                                      "float32 HWC tensor",
                                      "uint8 CHW tensor",
                                      "float16 CHW tensor",
                                      "float32 CHW tensor"};

  g_assert_cmpuint (G_N_ELEMENTS (names), ==, GPU_N_FORMATS);
  for (unsigned i = 1; i < GPU_N_FORMATS; i++) {
    g_assert_cmpstr (gpu_format_info ((GpuFormat)i)->name, ==, names[i]);
    g_assert_cmpint (gpu_format_from_name (names[i]), ==, i);
  }
  g_assert_null (gpu_format_info (GPU_FORMAT_UNKNOWN));
  g_assert_null (gpu_format_info ((GpuFormat)GPU_N_FORMATS));
  g_assert_null (gpu_format_info ((GpuFormat)-1));
  g_assert_cmpint (gpu_format_from_name ("YUY2"), ==, GPU_FORMAT_UNKNOWN);
  g_assert_cmpint (gpu_format_from_name ("rgb"), ==, GPU_FORMAT_UNKNOWN);
  g_assert_cmpint (gpu_format_from_name (""), ==, GPU_FORMAT_UNKNOWN);
  g_assert_cmpint (gpu_format_from_name (NULL), ==, GPU_FORMAT_UNKNOWN);
}

/* A packed format's name spells its bytes. */
static void
test_channels (void)
{
  for (unsigned i = GPU_FORMAT_RGB; i <= GPU_FORMAT_XBGR; i++) {
    const GpuFormatInfo *info = gpu_format_info ((GpuFormat)i);
    unsigned n = 0;

    g_assert_cmpuint (info->plane[0].pixel_bytes, ==, strlen (info->name));
    for (unsigned c = 0; c < GPU_MAX_CHANNELS; c++) {
      const char *at = strchr (info->name, "RGBA"[c]);

      g_assert_cmpint (info->channel[c], ==, at ? at - info->name : -1);
      n += at != NULL;
    }
    g_assert_cmpuint (info->n_channels, ==, n);
    g_assert_cmpint (info->has_alpha, ==, n == 4);
  }

  /* In planar ones a plane is a letter: of GBR the first plane is G. */
  for (unsigned i = GPU_FORMAT_RGBP; i <= GPU_FORMAT_GBR; i++)
    for (unsigned c = 0; c < 3; c++)
      g_assert_cmpint (gpu_format_info ((GpuFormat)i)->name[gpu_format_info ((GpuFormat)i)->channel_plane[c]], ==,
                       "RGB"[c]);
}

static void
test_layout (void)
{
  GpuImageSpec spec = test_spec (GPU_FORMAT_RGB, 641, 481);

  g_assert_cmpuint (spec.alignment, ==, 256);
  g_assert_cmpuint (spec.stride[0], ==, 2048);
  g_assert_cmpuint (spec.size, ==, 2048 * 481);
  g_assert_cmpuint (gpu_image_spec_row_bytes (&spec, 0), ==, 1923);
  g_assert_cmpuint (gpu_image_spec_row_bytes (&spec, 1), ==, 0);

  spec = test_spec (GPU_FORMAT_NV12, 5, 3);
  g_assert_cmpuint (gpu_image_spec_plane_width (&spec, 1), ==, 3);
  g_assert_cmpuint (gpu_image_spec_plane_height (&spec, 1), ==, 2);
  g_assert_cmpuint (gpu_image_spec_row_bytes (&spec, 1), ==, 6);
  g_assert_cmpuint (spec.offset[1], ==, 768);
  g_assert_cmpuint (spec.size, ==, 256 * 5);

  g_autoptr (GError) error = NULL;
  g_assert_true (gpu_image_spec_init (&spec, GPU_FORMAT_I420, 5, 3, 4, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (spec.stride[0], ==, 8);
  g_assert_cmpuint (spec.stride[1], ==, 4);
  g_assert_cmpuint (spec.stride[2], ==, 4);
  g_assert_cmpuint (spec.offset[1], ==, 24);
  g_assert_cmpuint (spec.offset[2], ==, 32);
  g_assert_cmpuint (spec.size, ==, 40);
  g_assert_cmpuint (spec.stride[3], ==, 0);
  g_assert_cmpuint (spec.offset[3], ==, 0);
  g_assert_cmpuint (gpu_image_spec_plane_height (&spec, 3), ==, 0);

  spec = test_spec (GPU_FORMAT_P010_10LE, 5, 3);
  g_assert_cmpuint (gpu_image_spec_row_bytes (&spec, 0), ==, 10);
  g_assert_cmpuint (gpu_image_spec_row_bytes (&spec, 1), ==, 12);

  /* No overlap, everything aligned and inside. */
  for (unsigned format = 1; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (uint32_t width = 1; width < 70; width += 3)
      for (size_t alignment = 1; alignment <= 64; alignment *= 4) {
        size_t end = 0;

        g_assert_true (gpu_image_spec_init (&spec, (GpuFormat)format, width, 7, alignment, &error));
        for (unsigned i = 0; i < gpu_format_info ((GpuFormat)format)->n_planes; i++) {
          g_assert_cmpuint (spec.offset[i] % alignment, ==, 0);
          g_assert_cmpuint (spec.stride[i] % alignment, ==, 0);
          g_assert_cmpuint (spec.stride[i], >=, gpu_image_spec_row_bytes (&spec, i));
          g_assert_cmpuint (spec.offset[i], >=, end);
          end = spec.offset[i] + spec.stride[i] * gpu_image_spec_plane_height (&spec, i);
        }
        g_assert_cmpuint (spec.size, ==, end);
      }
}

static void
test_full (void)
{
  g_autoptr (GError) error = NULL;
  size_t stride[] = {101, 102}, offset[] = {7, 7000};
  GpuImageSpec spec;

  g_assert_true (gpu_image_spec_init_full (&spec, GPU_FORMAT_NV12, 99, 51, stride, offset, 0, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (spec.alignment, ==, 1);
  g_assert_cmpuint (spec.size, ==, 7000 + 25 * 102 + 100);
  g_assert_cmpuint (spec.stride[1], ==, 102);
  g_assert_cmpuint (spec.offset[0], ==, 7);
  g_assert_cmpuint (spec.stride[2], ==, 0);

  /* Planes in any order. */
  offset[0] = 7000;
  offset[1] = 0;
  g_assert_true (gpu_image_spec_init_full (&spec, GPU_FORMAT_NV12, 99, 51, stride, offset, 20000, &error));
  g_assert_cmpuint (spec.size, ==, 20000);
  g_assert_true (gpu_image_spec_init_full (&spec, GPU_FORMAT_NV12, 99, 51, stride, offset, 0, &error));
  g_assert_cmpuint (spec.size, ==, 7000 + 50 * 101 + 99);
}

static void
refuse_tensor (GpuElement element, GpuLayout layout, uint32_t channels, uint32_t width, uint32_t height,
               const char *text)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;

  g_assert_false (gpu_image_spec_init_tensor (&spec, element, layout, channels, width, height, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  if (!strstr (error->message, text))
    g_error ("\"%s\" does not say \"%s\"", error->message, text);
}

static void
test_tensor (void)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec, other;

  for (unsigned e = 0; e < GPU_N_ELEMENTS; e++)
    for (unsigned l = 0; l < GPU_N_LAYOUTS; l++)
      for (uint32_t channels = 1; channels <= GPU_MAX_CHANNELS; channels++) {
        const GpuElement element = (GpuElement)e;
        const GpuLayout layout = (GpuLayout)l;
        const size_t bytes = (size_t)1 << e;
        const GpuFormatInfo *info = gpu_format_info (gpu_format_for_tensor (element, layout));

        g_assert_true (info->is_tensor);
        g_assert_cmpint (info->element, ==, element);
        g_assert_cmpint (info->layout, ==, layout);
        g_assert_cmpuint (gpu_element_bytes (element), ==, bytes);
        g_assert_true (g_str_has_prefix (info->name, gpu_element_name (element)));

        g_assert_true (gpu_image_spec_init_tensor (&spec, element, layout, channels, 7, 5, &error));
        g_assert_no_error (error);
        g_assert_cmpuint (spec.size, ==, 7 * 5 * channels * bytes);
        g_assert_cmpuint (spec.alignment, ==, 256);
        g_assert_cmpuint (gpu_image_spec_row_bytes (&spec, 0), ==, spec.stride[0]);
        g_assert_cmpuint (spec.stride[0] * gpu_image_spec_plane_height (&spec, 0), ==, spec.size);
        g_assert_cmpuint (gpu_image_spec_plane_height (&spec, 0), ==, layout == GPU_LAYOUT_CHW ? 5 * channels : 5);
        g_assert_cmpuint (gpu_image_spec_plane_height (&spec, 1), ==, 0);
      }

  /* As many bytes, but not the same tensor. */
  g_assert_true (gpu_image_spec_init_tensor (&spec, GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 4, 8, 1, &error));
  g_assert_true (gpu_image_spec_init_tensor (&other, GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 2, 8, 2, &error));
  g_assert_false (gpu_image_spec_equal (&spec, &other));
  other = spec;
  g_assert_true (gpu_image_spec_equal (&spec, &other));
  other.channels = 3;
  g_assert_false (gpu_image_spec_equal (&spec, &other));

  g_assert_cmpint (gpu_format_for_tensor ((GpuElement)3, GPU_LAYOUT_CHW), ==, GPU_FORMAT_UNKNOWN);
  g_assert_cmpint (gpu_format_for_tensor (GPU_ELEMENT_U8, (GpuLayout)2), ==, GPU_FORMAT_UNKNOWN);
  g_assert_null (gpu_element_name ((GpuElement)3));
  refuse_tensor ((GpuElement)3, GPU_LAYOUT_CHW, 3, 7, 5, "no tensor of element type 3 and layout 1");
  refuse_tensor (GPU_ELEMENT_U8, (GpuLayout)2, 3, 7, 5, "no tensor of element type 0 and layout 2");
  refuse_tensor (GPU_ELEMENT_F16, GPU_LAYOUT_CHW, 0, 7, 5, "cannot have 0 channels");
  refuse_tensor (GPU_ELEMENT_F16, GPU_LAYOUT_HWC, 5, 7, 5, "cannot have 5 channels");
  refuse_tensor (GPU_ELEMENT_F16, GPU_LAYOUT_HWC, 3, 0, 5, "0 pixels wide");
  refuse_tensor (GPU_ELEMENT_F32, GPU_LAYOUT_HWC, 4, INT32_MAX, INT32_MAX, "more bytes than can be addressed");
  refuse_tensor (GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 4, 1, INT32_MAX, "more bytes than can be addressed");
}

static void
test_equal (void)
{
  GpuImageSpec a = test_spec (GPU_FORMAT_NV12, 64, 48);
  GpuImageSpec b = test_spec (GPU_FORMAT_NV12, 64, 48);

  g_assert_true (gpu_image_spec_equal (&a, &b));
  b.format = GPU_FORMAT_I420;
  g_assert_false (gpu_image_spec_equal (&a, &b));
  b = a;
  b.width++;
  g_assert_false (gpu_image_spec_equal (&a, &b));
  b = a;
  b.height++;
  g_assert_false (gpu_image_spec_equal (&a, &b));
  b = a;
  b.alignment *= 2;
  g_assert_false (gpu_image_spec_equal (&a, &b));
  b = a;
  b.stride[1]++;
  g_assert_false (gpu_image_spec_equal (&a, &b));
  b = a;
  b.offset[1]++;
  g_assert_false (gpu_image_spec_equal (&a, &b));
  b = a;
  b.size++;
  g_assert_false (gpu_image_spec_equal (&a, &b));
}

static void
refuse (GpuFormat format, uint32_t width, uint32_t height, size_t alignment, const char *text)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec, before;

  memset (&spec, 0x5a, sizeof spec);
  before = spec;
  g_assert_false (gpu_image_spec_init (&spec, format, width, height, alignment, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  if (!strstr (error->message, text))
    g_error ("\"%s\" does not say \"%s\"", error->message, text);
  g_assert_true (gpu_image_spec_equal (&spec, &before));
}

static void
test_refusals (void)
{
  refuse (GPU_FORMAT_UNKNOWN, 16, 16, 0, "format number 0");
  refuse ((GpuFormat)99, 16, 16, 0, "format number 99");
  refuse (GPU_FORMAT_F32_CHW, 16, 16, 0, "use gpu_image_spec_init_tensor()");
  refuse (GPU_FORMAT_RGB, 0, 16, 0, "0 pixels wide");
  refuse (GPU_FORMAT_RGB, 16, 0, 0, "0 pixels high");
  refuse (GPU_FORMAT_RGB, 1u << 31, 16, 0, "2147483648 pixels wide");
  refuse (GPU_FORMAT_RGB, 16, UINT32_MAX, 0, "4294967295 pixels high");
  refuse (GPU_FORMAT_RGB, 16, 16, 48, "48 bytes is not a power of two");
  refuse (GPU_FORMAT_RGBA, INT32_MAX, INT32_MAX, 0, "RGBA image of 2147483647x2147483647");
  refuse (GPU_FORMAT_GRAY8, 1, INT32_MAX, (size_t)1 << 40, "GRAY8 image of 1x2147483647");
  refuse (GPU_FORMAT_GRAY8, 1, 1, (size_t)1 << 63, "GRAY8 image of 1x1");

  /* What is only huge is laid out: nobody has said yet that it is to be allocated. */
  GpuImageSpec spec = test_spec (GPU_FORMAT_I420, INT32_MAX, INT32_MAX);
  g_assert_cmpuint (spec.stride[0], ==, (size_t)1 << 31);
  g_assert_cmpuint (spec.stride[2], ==, (size_t)1 << 30);
  g_assert_cmpuint (spec.offset[1], ==, ((size_t)1 << 31) * INT32_MAX);
  g_assert_cmpuint (spec.size, ==, spec.offset[1] + ((size_t)1 << 61));
}

static void
refuse_full (GpuFormat format, size_t stride0, size_t stride1, size_t offset0, size_t offset1, size_t size,
             const char *text)
{
  g_autoptr (GError) error = NULL;
  const size_t stride[GPU_MAX_PLANES] = {stride0, stride1}, offset[GPU_MAX_PLANES] = {offset0, offset1};
  GpuImageSpec spec;

  g_assert_false (gpu_image_spec_init_full (&spec, format, 101, 50, stride, offset, size, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  if (!strstr (error->message, text))
    g_error ("\"%s\" does not say \"%s\"", error->message, text);
}

static void
test_refusals_full (void)
{
  refuse_full ((GpuFormat)99, 0, 0, 0, 0, 0, "format number 99");
  refuse_full (GPU_FORMAT_RGB, 302, 0, 0, 0, 0, "stride of 302 bytes in plane 0");
  refuse_full (GPU_FORMAT_NV12, 101, 101, 0, 5050, 0, "stride of 101 bytes in plane 1");
  refuse_full (GPU_FORMAT_NV12, 101, 102, 0, 5050, 5050 + 25 * 102 - 1, "Plane 1 of a NV12 image");
  refuse_full (GPU_FORMAT_GRAY8, SIZE_MAX, 0, 0, 0, 0, "more bytes than can be addressed");
  refuse_full (GPU_FORMAT_GRAY8, SIZE_MAX / 49, 0, 0, 0, 0, "more bytes than can be addressed");
  refuse_full (GPU_FORMAT_GRAY8, 101, 0, SIZE_MAX - 100, 0, 0, "more bytes than can be addressed");
  refuse_full (GPU_FORMAT_GRAY8, 101, 0, 0, 0, SIZE_MAX, "more bytes than can be addressed");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/format/names", test_names);
  g_test_add_func ("/format/channels", test_channels);
  g_test_add_func ("/format/layout", test_layout);
  g_test_add_func ("/format/full", test_full);
  g_test_add_func ("/format/tensor", test_tensor);
  g_test_add_func ("/format/equal", test_equal);
  g_test_add_func ("/format/refusals", test_refusals);
  g_test_add_func ("/format/refusals-full", test_refusals_full);
  return g_test_run ();
}
