/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tensors: what caps say, memory and pools for them, gpuupload and gpudownload, and gpunormalize's output against a
 * plain reference in double precision.
 */
#include "common.h"
#include "picture.h"
#include "tensor.h"

#include <glib/gstdio.h>
#include <math.h>
#include <unistd.h>

/* Caps. */

#define CAPS(fields) "other/tensors,format=static,num_tensors=1," fields ",framerate=30/1"

static GstGpuFrameInfo
parse (const char *text)
{
  g_autoptr (GstCaps) caps = gst_caps_from_string (text);
  g_autoptr (GError) error = NULL;
  GstGpuFrameInfo info;

  gst_gpu_frame_info_from_caps (&info, caps, &error);
  g_assert_no_error (error);
  fail_unless (gst_gpu_frame_info_is_tensor (&info));
  return info;
}

static void
check_shape (const char *text, GpuFormat format, guint channels, guint width, guint height)
{
  GstGpuFrameInfo info = parse (text);

  fail_unless_equals_int ((int)info.spec.format, (int)format);
  fail_unless_equals_int ((int)info.spec.channels, (int)channels);
  fail_unless_equals_int ((int)info.spec.width, (int)width);
  fail_unless_equals_int ((int)info.spec.height, (int)height);
  fail_unless_equals_int (GST_VIDEO_INFO_FORMAT (&info.video), GST_VIDEO_FORMAT_UNKNOWN);
}

GST_START_TEST (caps_say_what_a_tensor_is)
{
  check_shape (CAPS ("types=float32,dimensions=(string)3:640:480:1"), GPU_FORMAT_F32_HWC, 3, 640, 480);
  check_shape (CAPS ("types=float32,dimensions=(string)640:480:3:1"), GPU_FORMAT_F32_CHW, 3, 640, 480);
  check_shape (CAPS ("types=float16,dimensions=(string)640:480:3"), GPU_FORMAT_F16_CHW, 3, 640, 480);
  check_shape (CAPS ("types=uint8,dimensions=(string)1:640:480:1:1:1"), GPU_FORMAT_U8_HWC, 1, 640, 480);
  check_shape (CAPS ("types=uint8,dimensions=(string)640:480"), GPU_FORMAT_U8_CHW, 1, 640, 480);
  /* Both could be channels. */
  check_shape (CAPS ("types=uint8,dimensions=(string)3:5:4:1"), GPU_FORMAT_U8_HWC, 3, 5, 4);
  check_shape (CAPS ("types=uint8,dimensions=(string)3:5:4:1,layout=CHW"), GPU_FORMAT_U8_CHW, 4, 3, 5);
  /* Of several pictures, all rows. */
  check_shape (CAPS ("types=uint8,dimensions=(string)3:640:480:8"), GPU_FORMAT_U8_HWC, 3, 640, 8 * 480);
  check_shape (CAPS ("types=float32,dimensions=(string)640:480:3:8"), GPU_FORMAT_F32_CHW, 1, 640, 8 * 3 * 480);
  check_shape (CAPS ("types=float16,dimensions=(string)1:640:480:2"), GPU_FORMAT_F16_CHW, 1, 640, 2 * 480);
}
GST_END_TEST

static void
check_no_shape (const char *text, const char *field)
{
  g_autoptr (GstCaps) caps = gst_caps_from_string (text);
  g_autoptr (GError) error = NULL;
  GstGpuFrameInfo info;

  fail_if (gst_gpu_frame_info_from_caps (&info, caps, &error), "%s is taken", text);
  fail_unless (strstr (error->message, field) != NULL, "\"%s\" is not in \"%s\"", field, error->message);
}

GST_START_TEST (errors_name_the_field)
{
  check_no_shape (CAPS ("types=int8,dimensions=(string)3:640:480:1"), "types=int8");
  check_no_shape (CAPS ("dimensions=(string)3:640:480:1"), "types=(none)");
  check_no_shape (CAPS ("types=uint8"), "dimensions=(none)");
  check_no_shape (CAPS ("types=uint8,dimensions=(string)3:640:0:1"), "dimensions=3:640:0:1");
  check_no_shape (CAPS ("types=uint8,dimensions=(string)3:640:x"), "dimensions=3:640:x");
  check_no_shape (CAPS ("types=uint8,dimensions=(string)3:640:480:8:2"), "dimensions=3:640:480:8:2");
  check_no_shape (CAPS ("types=uint8,dimensions=(string)1:1:65536:65536"), "dimensions=1:1:65536:65536");
  check_no_shape (CAPS ("types=uint8,dimensions=(string)5:640:480:1"), "dimensions=5:640:480:1");
  check_no_shape (CAPS ("types=uint8,dimensions=(string)3:640:480,layout=CHW"), "dimensions=3:640:480");
  check_no_shape (CAPS ("types=uint8,dimensions=(string)3:640:480,layout=NHWC"), "layout=NHWC");
  check_no_shape (CAPS ("types=float32,dimensions=(string)4:65536:65536"), "dimensions=4:65536:65536");
  check_no_shape ("other/tensors,format=flexible", "format=flexible");
  check_no_shape ("other/tensors,format=static,types=uint8,dimensions=(string)3:640:480:1", "num_tensors=0");
  check_no_shape ("other/tensors,format=static,num_tensors=2,types=\"uint8,uint8\",dimensions=\"3:4:5:1,3:4:5:1\"",
                  "num_tensors=2");
}
GST_END_TEST

/* What is written is read as the same, in each of the ways that it offers. */
GST_START_TEST (caps_are_read_as_they_are_written)
{
  static const guint sizes[][2] = {{640, 480}, {4, 4}, {3, 1}, {1, 1}, {1, 7}, {5, 3}};

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    for (guint channels = 1; channels <= 4; channels++)
      for (guint element = 0; element < GPU_N_ELEMENTS; element++)
        for (guint layout = 0; layout < GPU_N_LAYOUTS; layout++) {
          g_autoptr (GstCaps) caps = gst_caps_new_empty_simple ("other/tensors");
          const GValue *list;
          GstGpuFrameInfo info;
          GpuImageSpec spec;

          fail_unless (gpu_image_spec_init_tensor (&spec, (GpuElement)element, (GpuLayout)layout, channels, sizes[i][0],
                                                   sizes[i][1], NULL));
          gst_gpu_tensor_spec_to_structure (&spec, gst_caps_get_structure (caps, 0));
          list = gst_structure_get_value (gst_caps_get_structure (caps, 0), "dimensions");
          fail_unless (gst_value_list_get_size (list) >= 2);
          for (guint k = 0; k < gst_value_list_get_size (list); k++) {
            g_autoptr (GstCaps) fixed = gst_caps_copy (caps);

            gst_caps_set_value (fixed, "dimensions", gst_value_list_get_value (list, k));
            fail_unless (gst_gpu_frame_info_from_caps (&info, fixed, NULL));
            fail_unless (gpu_image_spec_equal (&info.spec, &spec));
          }
        }
}
GST_END_TEST

/* Memory. */

GST_START_TEST (a_pool_lays_tensors_out_without_padding)
{
  static const Tensor tensor = {"float16", TRUE, 3, 33, 17};
  GpuDevice *device = test_device_new ();
  GstBufferPool *pool = gst_gpu_buffer_pool_new (device);
  GstStructure *config = gst_buffer_pool_get_config (pool);
  g_autoptr (GstCaps) caps = tensor_caps (&tensor, TRUE);
  GstMapInfo map;
  GstBuffer *buffer, *copy;
  GstMemory *memory;
  guint size;

  gst_buffer_pool_config_set_params (config, caps, 1, 0, 0);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_get_params (config, NULL, &size, NULL, NULL);
  fail_unless_equals_uint64 (size, tensor_bytes (&tensor));
  gst_structure_free (config);

  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
  fail_unless_equals_int ((int)gst_buffer_n_memory (buffer), 1);
  fail_unless (gst_buffer_get_video_meta (buffer) == NULL);
  fail_unless_equals_uint64 (gst_buffer_get_size (buffer), tensor_bytes (&tensor));
  memory = gst_buffer_peek_memory (buffer, 0);
  fail_unless (gst_gpu_memory_get_video_info (memory) == NULL);
  fail_unless_equals_int ((int)gpu_image_spec (gst_gpu_memory_get_image (memory))->format, GPU_FORMAT_F16_CHW);
  fail_unless_equals_uint64 (gpu_image_spec (gst_gpu_memory_get_image (memory))->stride[0], 66);

  test_memory_write (memory, 5);
  test_memory_expect (memory, 0, tensor_bytes (&tensor), 5);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ_GPU));
  fail_unless (map.data == gpu_image_data (gst_gpu_memory_get_image (memory)));
  fail_unless_equals_uint64 (map.size, tensor_bytes (&tensor));
  gst_memory_unmap (memory, &map);

  copy = gst_buffer_copy_deep (buffer);
  fail_unless (gst_is_gpu_memory (gst_buffer_peek_memory (copy, 0)));
  test_memory_expect (gst_buffer_peek_memory (copy, 0), 0, tensor_bytes (&tensor), 5);
  gst_buffer_unref (copy);
  gst_buffer_unref (buffer);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  gpu_device_unref (device);
}
GST_END_TEST

/* The memory of one tensor serves the next one, in steady state without a new one: how many there are at a time depends
 * on who is faster, copies or kernels, but no element has more than eight frames in flight. */
GST_START_TEST (tensors_come_from_the_cache)
{
  GstHarness *h =
      gst_harness_new_parse ("gpuupload ! gpunormalize name=normalize layout=chw ! gpureformat layout=hwc ! "
                             "other/tensors(memory:GPUCache),types=float16 ! gpudownload");
  g_autoptr (GstElement) normalize = gst_bin_get_by_name (GST_BIN (h->element), "normalize");
  GstVideoInfo info;
  guint64 misses = 0;

  info_init (&info, "RGB", 64, 48);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 64, 48, FALSE));
  for (int i = 0; i < 200; i++) {
    gst_buffer_unref (push_and_pull (h, frame_new (&info, 1)));
    if (i == 0)
      misses = cache_stat (normalize, "misses");
  }
  misses = cache_stat (normalize, "misses") - misses;
  fail_unless (misses <= 4 * 8, "%" G_GUINT64_FORMAT " misses", misses);
  gst_harness_teardown (h);
}
GST_END_TEST

static const char *const types[] = {"uint8", "float16", "float32"};

GST_START_TEST (up_and_down_changes_nothing)
{
  static const int shapes[][3] = {{1, 1, 1}, {3, 33, 17}, {4, 64, 48}, {2, 5, 9}, {3, 3, 3}};

  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (guint type = 0; type < G_N_ELEMENTS (types); type++)
      for (int planar = 0; planar < 2; planar++) {
        const Tensor tensor = {types[type], planar, shapes[i][0], shapes[i][1], shapes[i][2]};
        GstHarness *h = gst_harness_new ("gpudownload");
        GstBuffer *in = tensor_new (&tensor, 7), *up, *down;
        g_autofree guint8 *expected = tensor_read (&tensor, in);
        g_autofree guint8 *got = NULL;
        g_autoptr (GstCaps) caps = tensor_caps (&tensor, FALSE);
        g_autoptr (GstCaps) out_caps = NULL;

        up = tensor_upload (&tensor, in);
        fail_unless (gst_is_gpu_memory (gst_buffer_peek_memory (up, 0)));
        gst_harness_set_src_caps (h, tensor_caps (&tensor, TRUE));
        down = push_and_pull (h, up);
        out_caps = gst_pad_get_current_caps (h->sinkpad);
        fail_unless (gst_caps_is_equal (caps, out_caps));
        fail_unless (gst_buffer_get_video_meta (down) == NULL);
        got = tensor_read (&tensor, down);
        fail_unless (!memcmp (got, expected, tensor_bytes (&tensor)));
        gst_buffer_unref (down);
        gst_harness_teardown (h);
      }
}
GST_END_TEST

GST_START_TEST (a_buffer_of_another_size_is_refused)
{
  static const Tensor tensor = {"float32", FALSE, 3, 5, 4};

  for (gsize size = tensor_bytes (&tensor) - 1; size <= tensor_bytes (&tensor) + 1; size += 2) {
    GstHarness *h = gst_harness_new ("gpuupload");
    g_autoptr (GstBus) bus = watch_bus (h);

    gst_harness_set_src_caps (h, tensor_caps (&tensor, FALSE));
    fail_unless_equals_int (gst_harness_push (h, gst_buffer_new_allocate (NULL, size, NULL)), GST_FLOW_ERROR);
    assert_message (bus, GST_MESSAGE_ERROR, "3 channels of 5x4", "240", NULL);
    gst_element_set_bus (h->element, NULL);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* gpunormalize. */

typedef struct {
  double base[4], scale[4];
  double global_scale, shift, epsilon;
  gboolean is_stddev;
} Params;

static const Params imagenet = {{123.675, 116.28, 103.53, 0}, {58.395, 57.12, 57.375, 1}, 1, 0, 0, TRUE};
static const Params odd = {{10.25, 20.5, 30.75, 5}, {0.37, -0.71, 1e-4, 3}, 0.5, 3.1037, 0, FALSE};

/* Where the channels R, G, B, A of a format are in a Picture. */
static guint8
sample (const Picture *picture, int channel, int x, int y)
{
  const char *name = gst_video_format_to_string (picture->format);

  if (g_str_equal (name, "GRAY8"))
    return *plane_at (&picture->plane[0], x, y);
  if (g_str_equal (name, "RGBP") || g_str_equal (name, "GBR"))
    return *plane_at (&picture->plane[strchr (name, "RGB"[channel]) - name], x, y);
  return plane_at (&picture->plane[0], x, y)[strchr (name, "RGBA"[channel]) - name];
}

/* The tensor's channel that has the picture's channel @c. */
static int
place_of (const char *format, int c, int n, gboolean stored)
{
  const char *at = strchr (format, "RGBA"[c]);
  int place = 0;

  if (!stored || n == 1)
    return c;
  for (int i = 0; i < n; i++)
    place += strchr (format, "RGBA"[i]) < at;
  return place;
}

static void
set_array (GstElement *element, const char *property, const double *values, int n)
{
  g_autoptr (GString) text = g_string_new ("<");

  for (int i = 0; i < n; i++) {
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    g_string_append_printf (text, "%s(double)%s", i ? "," : "", g_ascii_dtostr (number, sizeof number, values[i]));
  }
  g_string_append (text, ">");
  gst_util_set_object_arg (G_OBJECT (element), property, text->str);
}

static void
set_params (GstElement *element, const Params *params, int n)
{
  set_array (element, "base", params->base, n);
  set_array (element, "scale", params->scale, n);
  g_object_set (element, "global-scale", params->global_scale, "shift", params->shift, "epsilon", params->epsilon,
                "scale-is-stddev", params->is_stddev, NULL);
}

static double
exact (const Params *params, int c, guint8 value)
{
  const double factor =
      params->is_stddev ? 1 / sqrt (params->scale[c] * params->scale[c] + params->epsilon) : params->scale[c];

  return (value - params->base[c]) * (factor * params->global_scale) + params->shift;
}

/* float32 within 1e-6 of the value, float16 within half a unit of its last place, uint8 within half a level. */
static gboolean
is_near (const Tensor *tensor, double got, double wanted)
{
  if (tensor_element_bytes (tensor) == 1)
    return fabs (got - CLAMP (wanted, 0, 255)) <= 0.5 + 1e-9;
  if (tensor_element_bytes (tensor) == 2)
    return fabs (got - wanted) <= 0.5 * half_unit (wanted) * (1 + 1e-9);
  return fabs (got - wanted) <= 1e-6 * fabs (wanted);
}

static void
check_tensor (const Tensor *tensor, const Picture *in, GstBuffer *buffer, const Params *params, gboolean stored)
{
  const char *format = gst_video_format_to_string (in->format);
  g_autofree guint8 *data = tensor_read (tensor, buffer);

  for (int c = 0; c < tensor->channels; c++) {
    const int place = place_of (format, c, tensor->channels, stored);

    for (int y = 0; y < tensor->height; y++)
      for (int x = 0; x < tensor->width; x++) {
        const double got = tensor_at (tensor, data, place, x, y), wanted = exact (params, c, sample (in, c, x, y));

        if (!is_near (tensor, got, wanted))
          ck_abort_msg ("%s to %s %s, channel %d at (%d, %d): %.9g, not %.9g", format, tensor->type,
                        tensor->planar ? "CHW" : "HWC", place, x, y, got, wanted);
      }
  }
}

static void
check_normalize (const char *format, const Tensor *tensor, const Params *params, gboolean stored)
{
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_autoptr (Picture) in = NULL;
  GstVideoInfo info;
  GstBuffer *buffer;

  set_params (h->element, params, tensor->channels);
  g_object_set (h->element, "channel-order", stored, NULL);
  gst_harness_set_sink_caps (h, tensor_caps (tensor, TRUE));
  gst_harness_set_src_caps (h, frame_caps (format, tensor->width, tensor->height, TRUE));

  info_init (&info, format, tensor->width, tensor->height);
  buffer = frame_new (&info, 3);
  in = picture_read (&info, buffer);
  buffer = push_and_pull (h, frame_upload (&info, buffer, NULL));
  fail_unless_equals_uint64 (gst_buffer_get_size (buffer), tensor_bytes (tensor));
  fail_unless (gst_buffer_get_video_meta (buffer) == NULL);
  check_tensor (tensor, in, buffer, params, stored);
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}

static const char *const rgb_formats[] = {"RGB",  "BGR",  "RGBA", "BGRA", "ARGB", "ABGR", "RGBx",
                                          "BGRx", "xRGB", "xBGR", "RGBP", "GBR",  "GRAY8"};

GST_START_TEST (normalize_makes_tensors_of_every_format)
{
  for (guint i = 0; i < G_N_ELEMENTS (rgb_formats); i++)
    for (guint type = 0; type < G_N_ELEMENTS (types); type++)
      for (int planar = 0; planar < 2; planar++)
        for (int stored = 0; stored < 2; stored++) {
          const char *format = rgb_formats[i];
          const gboolean has_alpha = strchr (format, 'A') && !g_str_equal (format, "GRAY8");
          const int channels = g_str_equal (format, "GRAY8") ? 1 : has_alpha ? 4 : 3;
          Tensor tensor = {types[type], planar, channels, 19, 5};

          check_normalize (format, &tensor, type == 1 ? &odd : &imagenet, stored);
          tensor.channels = 3;
          if (has_alpha)
            check_normalize (format, &tensor, &odd, stored);
        }
}
GST_END_TEST

/* Returns: (transfer full): what comes out of @launch for a frame of caps like @format's with @colorimetry. */
static GstBuffer *
tensor_of (const char *launch, const char *format, const char *colorimetry, const Tensor *tensor)
{
  GstHarness *h = gst_harness_new_parse (launch);
  g_autoptr (GstElement) normalize = gst_bin_get_by_name (GST_BIN (h->element), "it");
  g_autoptr (GstCaps) caps = frame_caps (format, tensor->width, tensor->height, TRUE);
  GstVideoInfo info;
  GstBuffer *buffer;

  set_params (normalize, &imagenet, 3);
  gst_caps_set_simple (caps, "colorimetry", G_TYPE_STRING, colorimetry, NULL);
  gst_harness_set_sink_caps (h, tensor_caps (tensor, TRUE));
  gst_harness_set_src_caps (h, g_steal_pointer (&caps));
  info_init (&info, format, tensor->width, tensor->height);
  buffer = push_and_pull (h, frame_upload (&info, frame_new (&info, 5), NULL));
  gst_harness_teardown (h);
  return buffer;
}

/* What gpuconvert does in between, and what the caps say of the numbers. */
GST_START_TEST (normalize_makes_tensors_of_420)
{
  static const char *const formats[] = {"NV12", "I420"}, *const colorimetries[] = {"bt601", "bt709", "1:1:0:0"};
  static const Tensor tensors[] = {{"float32", TRUE, 3, 64, 36}, {"float16", FALSE, 3, 33, 17}};

  for (guint f = 0; f < G_N_ELEMENTS (formats); f++)
    for (guint c = 0; c < G_N_ELEMENTS (colorimetries); c++)
      for (guint t = 0; t < G_N_ELEMENTS (tensors); t++) {
        g_autoptr (GstBuffer) got = tensor_of ("gpunormalize name=it", formats[f], colorimetries[c], &tensors[t]);
        g_autoptr (GstBuffer) wanted =
            tensor_of ("gpuconvert ! video/x-raw(memory:GPUCache),format=RGB ! gpunormalize name=it", formats[f],
                       colorimetries[c], &tensors[t]);
        g_autofree guint8 *bytes = tensor_read (&tensors[t], got), *others = tensor_read (&tensors[t], wanted);

        fail_unless (memcmp (bytes, others, tensor_bytes (&tensors[t])) == 0, "%s of %s to %s", formats[f],
                     colorimetries[c], tensors[t].type);
      }
}
GST_END_TEST

/* The rectangle of a GstVideoCropMeta is the picture, and its size is that of the caps. */
GST_START_TEST (normalize_takes_a_crop_rectangle)
{
  static const Tensor tensor = {"float32", TRUE, 3, 20, 11};
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_autoptr (Picture) whole = NULL;
  g_autoptr (Picture) part = NULL;
  GstVideoCropMeta *crop;
  GstVideoInfo info;
  GstBuffer *buffer;

  info_init (&info, "RGB", 33, 17);
  buffer = frame_new (&info, 9);
  whole = picture_read (&info, buffer);
  part = picture_crop (whole, 7, 3, 20, 11);
  buffer = gst_buffer_make_writable (frame_upload (&info, buffer, NULL));
  crop = gst_buffer_add_video_crop_meta (buffer);
  crop->x = 7;
  crop->y = 3;
  crop->width = 20;
  crop->height = 11;

  set_params (h->element, &imagenet, 3);
  gst_harness_set_sink_caps (h, tensor_caps (&tensor, TRUE));
  gst_harness_set_src_caps (h, frame_caps ("RGB", 20, 11, TRUE));
  buffer = push_and_pull (h, buffer);
  check_tensor (&tensor, part, buffer, &imagenet, FALSE);
  fail_unless (gst_buffer_get_video_crop_meta (buffer) == NULL);
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}
GST_END_TEST

/* What comes of a picture where caps leave the choice. */
static void
check_choice (const char *launch, const char *format, const char *sink_caps, const char *expected)
{
  GstHarness *h = gst_harness_new_parse (launch);
  g_autoptr (GstCaps) wanted = gst_caps_from_string (expected);
  g_autoptr (GstCaps) got = NULL;
  GstVideoInfo info;

  info_init (&info, format, 33, 17);
  gst_harness_set_sink_caps_str (h, sink_caps);
  gst_harness_set_src_caps (h, frame_caps (format, 33, 17, TRUE));
  gst_buffer_unref (push_and_pull (h, frame_upload (&info, frame_new (&info, 1), NULL)));
  got = gst_pad_get_current_caps (h->sinkpad);
  if (!gst_caps_is_subset (got, wanted)) {
    g_autofree char *text = gst_caps_to_string (got);

    ck_abort_msg ("%s came of %s, not %s", text, launch, expected);
  }
  gst_harness_teardown (h);
}

#define GPU_TENSOR "other/tensors(memory:GPUCache)"

GST_START_TEST (normalize_chooses)
{
  /* A float32 of the usual layout, with all channels. */
  check_choice ("gpunormalize", "RGB", GPU_TENSOR, GPU_TENSOR ",types=float32,dimensions=(string)3:33:17:1");
  check_choice ("gpunormalize", "RGBA", GPU_TENSOR, GPU_TENSOR ",types=float32,dimensions=(string)4:33:17:1");
  check_choice ("gpunormalize", "GRAY8", GPU_TENSOR, GPU_TENSOR ",types=float32,dimensions=(string)1:33:17:1");
  /* The properties. */
  check_choice ("gpunormalize layout=chw", "RGB", GPU_TENSOR, GPU_TENSOR ",types=float32,dimensions=(string)33:17:3:1");
  check_choice ("gpunormalize base=<1,2,3>", "BGRA", GPU_TENSOR,
                GPU_TENSOR ",types=float32,dimensions=(string)3:33:17:1");
  /* The caps. */
  check_choice ("gpunormalize", "RGB", GPU_TENSOR ",types={uint8,float16}",
                GPU_TENSOR ",types=float16,dimensions=(string)3:33:17:1");
  check_choice ("gpunormalize layout=chw", "RGBA", GPU_TENSOR ",dimensions=(string){33:17:3,4:33:17}",
                GPU_TENSOR ",types=float32,dimensions=(string)33:17:3");
  check_choice ("gpunormalize", "RGB", GPU_TENSOR ",dimensions=(string)33:17:3",
                GPU_TENSOR ",types=float32,dimensions=(string)33:17:3,framerate=30/1");
  /* A picture, where that will do. */
  check_choice ("gpunormalize shift=2", "RGB", GPU_TENSOR "; video/x-raw(memory:GPUCache)",
                "video/x-raw(memory:GPUCache),format=RGB");
}
GST_END_TEST

/* What a picture has to be, seen from behind. */
GST_START_TEST (normalize_says_what_it_needs)
{
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_autoptr (GstCaps) caps = NULL;
  g_autoptr (GstCaps) fits = frame_caps ("BGRx", 640, 480, TRUE);
  g_autoptr (GstCaps) alpha = frame_caps ("RGBA", 640, 480, TRUE);
  g_autoptr (GstCaps) size = frame_caps ("RGB", 480, 640, TRUE);
  g_autoptr (GstCaps) gray = frame_caps ("GRAY8", 640, 480, TRUE);
  g_autoptr (GstCaps) yuv = frame_caps ("NV12", 640, 480, TRUE);

  gst_harness_set_sink_caps_str (h, GPU_TENSOR ",types=float32,dimensions=(string)640:480:3");
  caps = gst_pad_peer_query_caps (h->srcpad, NULL);
  fail_unless (gst_caps_can_intersect (caps, fits));
  fail_unless (gst_caps_can_intersect (caps, alpha));
  fail_if (gst_caps_can_intersect (caps, size));
  fail_if (gst_caps_can_intersect (caps, gray));
  fail_unless (gst_caps_can_intersect (caps, yuv));
  gst_harness_teardown (h);
}
GST_END_TEST

/* Where GStreamer's log goes. */
static char *log_file;

static gboolean
has_words (const char *line, const char *const *words)
{
  for (; *words; words++)
    if (!strstr (line, *words))
      return FALSE;
  return TRUE;
}

/* Whether one of the log's lines has these words. */
static gboolean
was_logged (const char *const *words)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;
  gboolean found = FALSE;

  fail_unless (g_file_get_contents (log_file, &text, NULL, NULL));
  lines = g_strsplit (text, "\n", 0);
  for (char **line = lines; *line && !found; line++)
    found = has_words (*line, words);
  return found;
}

static void
set_threshold (GstDebugLevel level)
{
  static const char *const names[] = {"gpubasetransform", "gpunormalize"};

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    gst_debug_category_set_threshold (_gst_debug_get_category (names[i]), level);
}

static void
check_refusal (const char *launch, const char *format, const char *sink_caps, const char *const *words)
{
  GstHarness *h = gst_harness_new_parse (launch);
  GstVideoInfo info;

  set_threshold (GST_LEVEL_DEBUG);
  fail_if (was_logged (words), "a message of a case before \"%s\" has these words", launch);
  info_init (&info, format, 33, 17);
  gst_harness_set_sink_caps_str (h, sink_caps);
  gst_harness_set_src_caps (h, frame_caps (format, 33, 17, TRUE));
  fail_unless_equals_int (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)),
                          GST_FLOW_NOT_NEGOTIATED);
  set_threshold (GST_LEVEL_NONE);
  fail_unless (was_logged (words), "no message of %s has \"%s\" and so on", launch, words[0]);
  gst_harness_teardown (h);
}

GST_START_TEST (refused_caps_name_the_field)
{
  check_refusal ("gpunormalize", "RGB", GPU_TENSOR ",dimensions=(string)3:32:17:1",
                 (const char *const[]){"the field dimensions", "3:33:17", "3:32:17:1", NULL});
  check_refusal ("gpunormalize layout=chw", "RGB", GPU_TENSOR ",dimensions=(string)3:33:17:1",
                 (const char *const[]){"the field dimensions", "33:17:3", "3:33:17:1", NULL});
  check_refusal ("gpunormalize", "RGB", GPU_TENSOR ",types=int8",
                 (const char *const[]){"the field types", "float32", "int8", NULL});
  check_refusal ("gpunormalize", "RGB", GPU_TENSOR ",num_tensors=2",
                 (const char *const[]){"the field num_tensors=1 is not in 2", NULL});
  check_refusal ("gpuresize", "RGB", "video/x-raw(memory:GPUCache),format=BGR",
                 (const char *const[]){"the field format=RGB is not in BGR", NULL});
}
GST_END_TEST

/* Before the first frame: the element stops, and says which property it was. */
static void
check_stop (const char *launch, const char *format, const char *property, const char *word)
{
  GstHarness *h = gst_harness_new_parse (launch);
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;

  info_init (&info, format, 33, 17);
  gst_harness_set_sink_caps_str (h, GPU_TENSOR);
  gst_harness_set_src_caps (h, frame_caps (format, 33, 17, TRUE));
  fail_unless (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), NULL)) != GST_FLOW_OK);
  assert_message (bus, GST_MESSAGE_ERROR, property, word, NULL);
  assert_no_message (bus, GST_MESSAGE_ERROR);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}

GST_START_TEST (bad_settings_stop_the_element)
{
  check_stop ("gpunormalize base=<1,2>", "RGB", "base", "2 values");
  check_stop ("gpunormalize scale=<1,2,3,4>", "RGB", "scale", "4 values");
  check_stop ("gpunormalize base=<1,2>", "RGBA", "base", "4 channels");
  check_stop ("gpunormalize scale=<0> scale-is-stddev=true", "RGB", "scale", "epsilon");
  check_stop ("gpunormalize shift=nan", "RGB", "shift", "nan");
  check_stop ("gpunormalize base=<1,x,3>", "RGB", "base", "\"x\"");
}
GST_END_TEST

/* While it plays: good values are taken, bad ones are a warning, and the frames go on as before. */
GST_START_TEST (settings_change_while_playing)
{
  static const Tensor tensor = {"float32", TRUE, 3, 33, 17};
  static const Params other = {{1, 2, 3, 0}, {0.5, 0.25, 2, 1}, 1, 7, 0, FALSE};
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_autoptr (GstBus) bus = watch_bus (h);
  g_autoptr (Picture) in = NULL;
  GstVideoInfo info;
  GstBuffer *frame;

  set_params (h->element, &imagenet, 3);
  gst_harness_set_sink_caps (h, tensor_caps (&tensor, TRUE));
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  info_init (&info, "RGB", 33, 17);
  frame = frame_new (&info, 3);
  in = picture_read (&info, frame);
  frame = frame_upload (&info, frame, NULL);
  for (int i = 0; i < 5; i++) {
    GstBuffer *buffer;

    if (i == 1)
      set_array (h->element, "scale", (double[]){1, 0, 1}, 3);
    if (i == 3)
      set_params (h->element, &other, 3);
    buffer = push_and_pull (h, gst_buffer_ref (frame));
    check_tensor (&tensor, in, buffer, i < 3 ? &imagenet : &other, FALSE);
    gst_buffer_unref (buffer);
    if (i == 1)
      assert_message (bus, GST_MESSAGE_WARNING, "scale", "deviation of 0", NULL);
    assert_no_message (bus, GST_MESSAGE_WARNING | GST_MESSAGE_ERROR);
  }
  gst_buffer_unref (frame);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Size, format and kind change while frames flow. */
GST_START_TEST (caps_change_in_mid_stream)
{
  GstHarness *h = gst_harness_new ("gpunormalize");

  set_params (h->element, &odd, 3);
  for (int i = 0; i < 9; i++) {
    static const char *const formats[] = {"RGB", "BGRx", "RGBP"};
    const Tensor tensor = {types[2 - i % 2], i % 4 < 2, 3, 20 + i, 17};
    const char *format = formats[i % 3];
    g_autoptr (Picture) in = NULL;
    GstVideoInfo info;
    GstBuffer *buffer;

    gst_harness_set_sink_caps (h, i % 5 == 4 ? frame_caps (format, 20 + i, 17, TRUE) : tensor_caps (&tensor, TRUE));
    gst_harness_set_src_caps (h, frame_caps (format, 20 + i, 17, TRUE));
    info_init (&info, format, 20 + i, 17);
    buffer = frame_new (&info, (guint)i);
    in = picture_read (&info, buffer);
    buffer = push_and_pull (h, frame_upload (&info, buffer, NULL));
    if (i % 5 == 4)
      fail_unless (gst_buffer_get_video_meta (buffer) != NULL);
    else
      check_tensor (&tensor, in, buffer, &odd, FALSE);
    gst_buffer_unref (buffer);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (the_preset_sets_everything)
{
  static const Tensor tensor = {"float32", TRUE, 3, 33, 17};
  GstHarness *h = gst_harness_new ("gpunormalize");
  g_auto (GStrv) names = NULL;
  g_autoptr (Picture) in = NULL;
  GstVideoInfo info;
  GstBuffer *buffer;

  fail_unless (GST_IS_PRESET (h->element));
  names = gst_preset_get_preset_names (GST_PRESET (h->element));
  fail_unless (g_strv_contains ((const gchar *const *)names, "imagenet"));

  set_params (h->element, &odd, 3);
  g_object_set (h->element, "epsilon", 3.0, NULL);
  fail_unless (gst_preset_load_preset (GST_PRESET (h->element), "imagenet"));
  gst_harness_set_sink_caps (h, tensor_caps (&tensor, TRUE));
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  info_init (&info, "RGB", 33, 17);
  buffer = frame_new (&info, 3);
  in = picture_read (&info, buffer);
  buffer = push_and_pull (h, frame_upload (&info, buffer, NULL));
  check_tensor (&tensor, in, buffer, &imagenet, FALSE);
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Timestamps and regions stay with what is made of the picture. */
GST_START_TEST (times_and_regions_are_kept)
{
  static const Tensor tensor = {"float16", FALSE, 3, 33, 17};
  GstHarness *h = gst_harness_new ("gpunormalize");
  const GstVideoRegionOfInterestMeta *region;
  GstVideoInfo info;
  GstBuffer *buffer;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_sink_caps (h, tensor_caps (&tensor, TRUE));
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  buffer = gst_buffer_make_writable (frame_upload (&info, frame_new (&info, 3), NULL));
  GST_BUFFER_PTS (buffer) = 7 * GST_SECOND;
  GST_BUFFER_DURATION (buffer) = GST_SECOND / 30;
  gst_buffer_add_video_region_of_interest_meta (buffer, "face", 3, 4, 5, 6);
  buffer = push_and_pull (h, buffer);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (buffer), 7 * GST_SECOND);
  fail_unless_equals_uint64 (GST_BUFFER_DURATION (buffer), GST_SECOND / 30);
  region =
      (const GstVideoRegionOfInterestMeta *)gst_buffer_get_meta (buffer, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE);
  fail_unless (region && region->x == 3 && region->y == 4 && region->w == 5 && region->h == 6);
  gst_buffer_unref (buffer);
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
tensor_suite (void)
{
  Suite *s = suite_create ("tensor");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, caps_say_what_a_tensor_is);
  tcase_add_test (tc, errors_name_the_field);
  tcase_add_test (tc, caps_are_read_as_they_are_written);
  tcase_add_test (tc, a_pool_lays_tensors_out_without_padding);
  tcase_add_test (tc, tensors_come_from_the_cache);
  tcase_add_test (tc, up_and_down_changes_nothing);
  tcase_add_test (tc, a_buffer_of_another_size_is_refused);
  tcase_add_test (tc, normalize_makes_tensors_of_every_format);
  tcase_add_test (tc, normalize_makes_tensors_of_420);
  tcase_add_test (tc, normalize_takes_a_crop_rectangle);
  tcase_add_test (tc, normalize_chooses);
  tcase_add_test (tc, normalize_says_what_it_needs);
  tcase_add_test (tc, refused_caps_name_the_field);
  tcase_add_test (tc, bad_settings_stop_the_element);
  tcase_add_test (tc, settings_change_while_playing);
  tcase_add_test (tc, caps_change_in_mid_stream);
  tcase_add_test (tc, the_preset_sets_everything);
  tcase_add_test (tc, times_and_regions_are_kept);
  return s;
}

int
main (int argc, char **argv)
{
  gint file = g_file_open_tmp ("gpucache-XXXXXX.log", &log_file, NULL);
  int result;

  g_assert_cmpint (file, >=, 0);
  close (file);
  g_setenv ("GST_DEBUG_FILE", log_file, TRUE);
  result = test_run (argc, argv, tensor_suite, __FILE__);
  g_remove (log_file);
  g_free (log_file);
  return result;
}
