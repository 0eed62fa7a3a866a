/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Operations over batches: what each image becomes is, bit for bit, what the operation on it alone makes of it, and all
 * of them take as many launches as one; those that are at odd places, and take another kernel, one more.
 */
#include "common.h"
#include "picture.h"

#include <string.h>

/* More than any launch has among its parameters. */
#define N 23

typedef bool (*One) (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error);
typedef bool (*All) (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const void *params, GError **error);

static GpuImageSpec
tensor (GpuElement element, GpuLayout layout, unsigned channels, uint32_t width, uint32_t height)
{
  GpuImageSpec spec;
  g_assert_true (gpu_image_spec_init_tensor (&spec, element, layout, channels, width, height, NULL));
  return spec;
}

static GpuBatch *
make_source (OpFixture *fixture, const GpuImageSpec *specs, unsigned n)
{
  GpuImage *images[N] = {NULL};
  for (unsigned i = 0; i < n; i++) {
    images[i] = test_image_new (fixture->device, &specs[i], fixture->stream);
    g_autofree uint8_t *bytes = test_random_bytes (specs[i].size, i + 1);
    /* Numbers that are none compare as bytes like any others, but have several encodings. */
    if (specs[i].format == GPU_FORMAT_F32_CHW || specs[i].format == GPU_FORMAT_F32_HWC)
      for (size_t k = 0; k < specs[i].size; k += 4)
        bytes[k + 3] &= 0xbf;
    test_image_write (fixture->stream, images[i], bytes, &specs[i]);
  }
  GpuBatch *batch = gpu_batch_new (images, n, NULL);
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (images[i]);
  return batch;
}

/* Twice, with other sources the second time; @launches: how many the batch may take. */
static void
check_at (int line, OpFixture *fixture, const GpuImageSpec *from, const GpuImageSpec *to, unsigned n, bool dense,
          One one, All all, const void *params, size_t params_size, unsigned launches)
{
  GError *error = NULL;
  for (unsigned turn = 0; turn < 2; turn++) {
    GpuBatch *src = make_source (fixture, from, n);
    GpuBatch *dst = dense ? gpu_batch_acquire_dense (fixture->device, to, n, 0, fixture->stream, &error)
                          : gpu_batch_acquire (fixture->device, to, n, 0, fixture->stream, &error);
    g_assert_no_error (error);
    for (unsigned i = 0; i < n; i++)
      g_assert_true (gpu_image_fill (fixture->stream, gpu_batch_image (dst, i), 0x5a, NULL));

    /* What is made once for all, such as weights, is there in the second turn. */
    const uint64_t before = gpu_device_calls (fixture->device, GPU_CALL_LAUNCH);
    if (!all (fixture->stream, src, dst, params, &error))
      g_error ("line %d: %s", line, error->message);
    g_assert_cmpuint (gpu_device_calls (fixture->device, GPU_CALL_LAUNCH) - before, ==, launches);

    for (unsigned i = 0; i < n; i++) {
      GpuImage *alone = test_image_new (fixture->device, &to[i], fixture->stream);
      if (!one (fixture->stream, gpu_batch_image (src, i), alone, (const uint8_t *)params + i * params_size, &error))
        g_error ("line %d, image %u: %s", line, i, error->message);
      g_autofree uint8_t *expected = test_image_read (fixture->stream, alone, 0);
      test_assert_image_at (__FILE__, line, fixture->stream, gpu_batch_image (dst, i), expected, &to[i]);
      gpu_image_unref (alone);
    }
    gpu_batch_unref (dst);
    gpu_batch_unref (src);
  }
}

#define check(...) check_at (__LINE__, __VA_ARGS__)

/* Sizes that differ, some of them odd, one much larger than the others. */
static void
make_size (unsigned i, uint32_t *width, uint32_t *height)
{
  static const uint32_t sizes[][2] = {{64, 48}, {33, 17}, {1, 1}, {301, 203}, {2, 90}, {100, 3}};
  *width = sizes[i % G_N_ELEMENTS (sizes)][0];
  *height = sizes[i % G_N_ELEMENTS (sizes)][1];
}

/* Sizes that differ, all of which the fast kernels take. */
static void
make_even_size (unsigned i, uint32_t *width, uint32_t *height)
{
  static const uint32_t sizes[][2] = {{64, 48}, {320, 18}, {32, 90}, {160, 33}};
  *width = sizes[i % G_N_ELEMENTS (sizes)][0];
  *height = sizes[i % G_N_ELEMENTS (sizes)][1];
}

static GpuFormat
make_format (unsigned i)
{
  static const GpuFormat formats[] = {GPU_FORMAT_RGBA, GPU_FORMAT_NV12, GPU_FORMAT_RGB,
                                      GPU_FORMAT_I420, GPU_FORMAT_RGBP, GPU_FORMAT_GRAY8};
  return formats[i * 5 / 3 % G_N_ELEMENTS (formats)];
}

static bool
flip_one (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_flip (stream, src, dst, *(const GpuOrientation *)params, error);
}

static bool
flip_all (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const void *params, GError **error)
{
  return gpu_flip_batch (stream, src, dst, params, gpu_batch_size (src), error);
}

static void
test_flip (OpFixture *fixture, const void *data)
{
  GpuImageSpec from[N], to[N];
  GpuOrientation orientations[N];
  for (unsigned round = 0; round < 5; round++) {
    static const unsigned launches[] = {2, 1, 3, 1, 2};
    for (unsigned i = 0; i < N; i++) {
      uint32_t width, height;
      (round < 3 ? make_size : make_even_size) (i, &width, &height);
      orientations[i] = round % 3 == 0 ? GPU_ORIENTATION_180
                        : round == 1   ? GPU_ORIENTATION_90L
                                       : (GpuOrientation)(i % (GPU_ORIENTATION_UR_LL + 1));
      const bool transposed = gpu_orientation_is_transposed (orientations[i]);
      from[i] = test_spec (round == 0 && i == 7 ? GPU_FORMAT_P010_10LE : make_format (i), width, height);
      to[i] = test_spec (from[i].format, transposed ? height : width, transposed ? width : height);
    }
    check (fixture, from, to, N, false, flip_one, flip_all, orientations, sizeof orientations[0], launches[round]);
  }
}

static bool
resize_one (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_resize_full (stream, src, dst, params, error);
}

static GpuResizer *resizer;

static bool
resize_all (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const void *params, GError **error)
{
  return gpu_resizer_run_batch (resizer, stream, src, dst, params, gpu_batch_size (src), error);
}

static void
test_resize (OpFixture *fixture, const void *data)
{
  GpuImageSpec from[N], to[N];
  GpuResize params[N] = {0};
  /* On a GPU, for samples of 8 bits, a launch for what is in tiles and one for what is in strips, of few steps or of
   * many; two on the CPU. */
  const unsigned filter = 2, wide_filter = gpu_device_is_host (fixture->device) ? 2 : 3;
  resizer = gpu_resizer_new ();
  for (unsigned i = 0; i < N; i++) {
    uint32_t width, height;
    make_size (i, &width, &height);
    from[i] = test_spec (make_format (i), width, height);
    to[i] = test_spec (make_format (i), 64, 64 + 2 * (i % 3));
  }
  check (fixture, from, to, N, false, resize_one, resize_all, params, sizeof params[0], 1);
  for (unsigned i = 0; i < N; i++)
    params[i].filter = GPU_RESIZE_BILINEAR;
  check (fixture, from, to, N, false, resize_one, resize_all, params, sizeof params[0], 2);
  for (unsigned i = 0; i < N; i++)
    params[i] = (GpuResize){.filter = GPU_RESIZE_LANCZOS, .antialias = true, .border = {1, 2, 3, 4}};
  check (fixture, from, to, N, false, resize_one, resize_all, params, sizeof params[0], wide_filter);
  /* All sorts at once, letterboxed. */
  for (unsigned i = 0; i < N; i++) {
    params[i].filter = (GpuResizeFilter)(i % GPU_N_RESIZE_FILTERS);
    params[i].antialias = i % 4 > 1;
    params[i].dst = (GpuResizeRectangle){8, 4, 40, 32 + 2 * (i % 8)};
  }
  check (fixture, from, to, N, false, resize_one, resize_all, params, sizeof params[0], 2 + filter);

  for (unsigned i = 0; i < N; i++) {
    uint32_t width, height;
    make_even_size (i, &width, &height);
    from[i] = test_spec (make_format (i), width, height);
    make_even_size (i + 1 + i / 4, &width, &height);
    to[i] = test_spec (make_format (i), width, height);
    params[i] = (GpuResize){.filter = GPU_RESIZE_BILINEAR};
  }
  check (fixture, from, to, N, false, resize_one, resize_all, params, sizeof params[0], 1);
  /* To exactly half: of another sort, but for chroma of an odd number of rows. */
  for (unsigned i = 0; i < N; i++)
    from[i] = test_spec (make_format (i), 2 * to[i].width, 2 * to[i].height);
  check (fixture, from, to, N, false, resize_one, resize_all, params, sizeof params[0], 2);
  for (unsigned i = 0; i < N; i++)
    params[i].antialias = true;
  check (fixture, from, to, N, false, resize_one, resize_all, params, sizeof params[0], 2);
  for (unsigned i = 0; i < N; i++)
    params[i].filter = GPU_RESIZE_BICUBIC;
  check (fixture, from, to, N, false, resize_one, resize_all, params, sizeof params[0], 2);
  for (unsigned i = 0; i < N; i++)
    params[i].filter = GPU_RESIZE_BILINEAR;
  for (unsigned i = 0; i < N; i++) {
    uint32_t width, height;
    make_even_size (i, &width, &height);
    from[i] = test_spec (make_format (i), width, height);
  }
  check (fixture, from, to, N, false, resize_one, resize_all, params, sizeof params[0], 1 + wide_filter);

  /* To one dense picture batch, N x 3 x H x W. */
  for (unsigned i = 0; i < N; i++) {
    uint32_t width, height;
    make_size (i, &width, &height);
    from[i] = test_spec (GPU_FORMAT_RGBP, width, height);
    to[i] = test_spec (GPU_FORMAT_RGBP, 61, 30);
    params[i] = (GpuResize){.filter = GPU_RESIZE_BILINEAR};
  }
  check (fixture, from, to, N, true, resize_one, resize_all, params, sizeof params[0], 1);
  g_clear_pointer (&resizer, gpu_resizer_free);
}

/* In strips, which are lower if there are fewer of them: alone these are the lowest, in batches higher and as high as
 * they can be. */
static void
test_resize_strips (OpFixture *fixture, const void *data)
{
  static const uint32_t widths[] = {60, 180, 270};
  const unsigned launches = gpu_device_is_host (fixture->device) ? 2 : 1;
  GpuImageSpec from[3], to[3];
  GpuResize params[3];

  resizer = gpu_resizer_new ();
  for (unsigned k = 0; k < G_N_ELEMENTS (widths); k++) {
    for (unsigned i = 0; i < G_N_ELEMENTS (from); i++) {
      from[i] = test_spec (GPU_FORMAT_RGB, 3 * (widths[k] + i), 150 + i);
      to[i] = test_spec (GPU_FORMAT_RGB, widths[k], 78);
      params[i] = (GpuResize){.filter = i % 2 ? GPU_RESIZE_BICUBIC : GPU_RESIZE_BILINEAR, .antialias = true};
    }
    check (fixture, from, to, G_N_ELEMENTS (from), false, resize_one, resize_all, params, sizeof params[0], launches);
  }
  g_clear_pointer (&resizer, gpu_resizer_free);
}

/* Frame after frame of the same geometries: weights are worked out once, and nothing is copied but a table that
 * changes. */
static void
test_resize_keeps (OpFixture *fixture, const void *data)
{
  GpuImageSpec from[4], to[4];
  const GpuResize params = {.filter = GPU_RESIZE_BICUBIC, .antialias = true};
  GError *error = NULL;
  for (unsigned i = 0; i < 4; i++) {
    from[i] = test_spec (GPU_FORMAT_RGB, 100 + 20 * i, 90);
    to[i] = test_spec (GPU_FORMAT_RGB, 50, 50);
  }
  g_autoptr (GpuResizer) keeper = gpu_resizer_new ();
  GpuBatch *src = make_source (fixture, from, 4);
  for (unsigned round = 0; round < 4; round++) {
    const uint64_t copies = gpu_device_calls (fixture->device, GPU_CALL_COPY);
    GpuBatch *dst = gpu_batch_acquire (fixture->device, to, 4, 0, fixture->stream, &error);
    g_assert_true (gpu_resizer_run_batch (keeper, fixture->stream, src, dst, &params, 1, &error));
    g_assert_no_error (error);
    gpu_batch_unref (dst);
    g_assert_cmpuint (gpu_device_calls (fixture->device, GPU_CALL_COPY) - copies, <=, round ? 1 : 5);
    g_assert_true (gpu_stream_synchronize (fixture->stream, NULL));
  }
  gpu_batch_unref (src);
}

/* And so they are where some streams are late now and then. */
static void
test_resize_keeps_of_some (OpFixture *fixture, const void *data)
{
  static const unsigned numbers[] = {2, 1, 2, 1};
  GpuImageSpec from[2], to[2];
  const GpuResize params = {.filter = GPU_RESIZE_BILINEAR, .antialias = true};
  GError *error = NULL;
  for (unsigned i = 0; i < 2; i++) {
    from[i] = test_spec (GPU_FORMAT_RGB, 2160 + 3 * i, 130);
    to[i] = test_spec (GPU_FORMAT_RGB, 720, 130);
  }
  g_autoptr (GpuResizer) keeper = gpu_resizer_new ();
  for (unsigned round = 0; round < G_N_ELEMENTS (numbers); round++) {
    GpuBatch *src = make_source (fixture, from, numbers[round]);
    GpuBatch *dst = gpu_batch_acquire (fixture->device, to, numbers[round], 0, fixture->stream, &error);
    const uint64_t copies = gpu_device_calls (fixture->device, GPU_CALL_COPY);
    g_assert_true (gpu_resizer_run_batch (keeper, fixture->stream, src, dst, &params, 1, &error));
    g_assert_no_error (error);
    /* The batch's table. */
    g_assert_cmpuint (gpu_device_calls (fixture->device, GPU_CALL_COPY) - copies, <=, round ? 1 : 3);
    gpu_batch_unref (dst);
    gpu_batch_unref (src);
    g_assert_true (gpu_stream_synchronize (fixture->stream, NULL));
  }
}

static bool
convert_one (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_convert (stream, src, dst, params, error);
}

static bool
convert_all (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const void *params, GError **error)
{
  return gpu_convert_batch (stream, src, dst, params, gpu_batch_size (src), error);
}

static void
test_convert (OpFixture *fixture, const void *data)
{
  static const GpuFormat pairs[][2] = {
      {GPU_FORMAT_NV12, GPU_FORMAT_RGB},       {GPU_FORMAT_RGBA, GPU_FORMAT_NV12}, {GPU_FORMAT_RGBA, GPU_FORMAT_BGR},
      {GPU_FORMAT_I420, GPU_FORMAT_NV12},      {GPU_FORMAT_NV12, GPU_FORMAT_RGBP}, {GPU_FORMAT_I420, GPU_FORMAT_GRAY8},
      {GPU_FORMAT_P010_10LE, GPU_FORMAT_RGBA},
  };
  GpuImageSpec from[N], to[N];
  GpuConvert params[N];
  const unsigned n_pairs = G_N_ELEMENTS (pairs);
  /* Of each pair alone, then of all mixed; of odd sizes, then of even ones. */
  static const unsigned launches[][G_N_ELEMENTS (pairs) + 1] = {{2, 2, 1, 2, 2, 2, 2, 6}, {1, 1, 1, 1, 1, 1, 1, 4}};
  for (unsigned round = 0; round < 2 * (n_pairs + 1); round++) {
    const bool even = round > n_pairs, mixed = round % (n_pairs + 1) == n_pairs;
    for (unsigned i = 0; i < N; i++) {
      const GpuFormat *pair = pairs[mixed ? i % n_pairs : round % (n_pairs + 1)];
      uint32_t width, height;
      (even ? make_even_size : make_size) (i, &width, &height);
      from[i] = test_spec (pair[0], width, height);
      to[i] = test_spec (pair[1], width, height);
      gpu_convert_init (&params[i]);
      params[i].src.matrix = (GpuMatrix)(i % GPU_N_MATRICES);
      params[i].dst.matrix = params[i].src.matrix;
    }
    check (fixture, from, to, N, false, convert_one, convert_all, params, sizeof params[0],
           launches[even][round % (n_pairs + 1)]);
  }
  for (unsigned i = 0; i < N; i++) {
    uint32_t width, height;
    make_size (i, &width, &height);
    from[i] = tensor (GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 1 + i % 4, width, height);
    to[i] = tensor (i % 2 ? GPU_ELEMENT_F16 : GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 1 + i % 4, width, height);
    params[i].scale = (float)i / 7;
    params[i].offset = 1;
  }
  check (fixture, from, to, N, false, convert_one, convert_all, params, sizeof params[0], 1);
}

static bool
normalize_one (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_normalize (stream, src, dst, params, error);
}

static bool
normalize_all (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const void *params, GError **error)
{
  return gpu_normalize_batch (stream, src, dst, params, gpu_batch_size (src), error);
}

static void
test_normalize (OpFixture *fixture, const void *data)
{
  GpuImageSpec from[N], to[N];
  GpuNormalize params[N];
  for (unsigned i = 0; i < N; i++) {
    uint32_t width, height;
    make_size (i, &width, &height);
    from[i] = to[i] = test_spec (make_format (i), width, height);
    gpu_normalize_init (&params[i]);
    params[i].base[0] = (float)(10 * i);
    params[i].scale[1] = 0.25f * (float)(i + 1);
    params[i].shift = 12.5f;
  }
  check (fixture, from, to, N, false, normalize_one, normalize_all, params, sizeof params[0], 1);

  /* In place, as one batch. */
  GError *error = NULL;
  GpuBatch *src = make_source (fixture, from, N), *same = make_source (fixture, from, N);
  g_assert_true (gpu_normalize_batch (fixture->stream, same, same, params, N, &error));
  g_assert_no_error (error);
  for (unsigned i = 0; i < N; i++) {
    g_assert_true (
        gpu_normalize (fixture->stream, gpu_batch_image (src, i), gpu_batch_image (src, i), &params[i], NULL));
    g_autofree uint8_t *expected = test_image_read (fixture->stream, gpu_batch_image (src, i), 0);
    test_assert_image (fixture->stream, gpu_batch_image (same, i), expected, &from[i]);
  }
  gpu_batch_unref (same);
  gpu_batch_unref (src);

  /* To a model's input: N x 3 x H x W and N x H x W x 3, of sources in several formats; one launch for those of RGB,
   * one for 4:2:0, or two where those are odd. */
  static const GpuFormat formats[] = {GPU_FORMAT_RGB, GPU_FORMAT_NV12, GPU_FORMAT_BGRA, GPU_FORMAT_RGBP,
                                      GPU_FORMAT_I420};
  for (unsigned round = 0; round < 4 * GPU_N_ELEMENTS; round++) {
    const uint32_t width = round & 1 ? 45 : 160;
    for (unsigned i = 0; i < N; i++) {
      from[i] = test_spec (formats[i % G_N_ELEMENTS (formats)], width, 23);
      to[i] = tensor ((GpuElement)(round / 4), round & 2 ? GPU_LAYOUT_HWC : GPU_LAYOUT_CHW, 3, width, 23);
    }
    check (fixture, from, to, N, true, normalize_one, normalize_all, params, sizeof params[0], width % 4 ? 3 : 2);
  }

  /* More of one kind than a launch's parameters have room for, with parameters that differ and nothing else. */
  for (unsigned element = 0; element < GPU_N_ELEMENTS; element++) {
    for (unsigned i = 0; i < N; i++) {
      from[i] = test_spec (GPU_FORMAT_NV12, 160, 32);
      to[i] = tensor ((GpuElement)element, GPU_LAYOUT_CHW, 3, 160, 32);
    }
    check (fixture, from, to, N, true, normalize_one, normalize_all, params, sizeof params[0], 1);
  }
}

static bool
reformat_one (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_reformat (stream, src, dst, params, error);
}

static bool
reformat_all (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const void *params, GError **error)
{
  return gpu_reformat_batch (stream, src, dst, params, params ? gpu_batch_size (src) : 1, error);
}

static void
test_reformat (OpFixture *fixture, const void *data)
{
  GpuImageSpec from[N], to[N];
  GpuConvert params[N];
  for (unsigned i = 0; i < N; i++) {
    uint32_t width, height;
    make_size (i, &width, &height);
    from[i] = tensor ((GpuElement)(i % 3), i % 2 ? GPU_LAYOUT_HWC : GPU_LAYOUT_CHW, 2 + i % 3, width, height);
    to[i] = tensor ((GpuElement)(i % 3), i % 2 ? GPU_LAYOUT_CHW : GPU_LAYOUT_HWC, 2 + i % 3, width, height);
  }
  /* Those whose format stays are copied. */
  from[3] = to[3];
  check (fixture, from, to, N, false, reformat_one, reformat_all, NULL, 0, 2);

  /* Types, too: layout first where elements grow, last where they shrink, so two launches of either sort. */
  for (unsigned i = 0; i < N; i++) {
    uint32_t width, height;
    make_size (i, &width, &height);
    to[i] = tensor ((GpuElement)((i + 1) % 3), i % 4 < 2 ? GPU_LAYOUT_CHW : GPU_LAYOUT_HWC, 2 + i % 3, width, height);
    gpu_convert_init (&params[i]);
    params[i].scale = 0.25f * (float)(i % 3);
    params[i].offset = (float)i;
  }
  check (fixture, from, to, N, false, reformat_one, reformat_all, params, sizeof params[0], 5);

  /* To a model's input, of pictures in several formats. */
  static const GpuFormat formats[] = {GPU_FORMAT_RGB, GPU_FORMAT_RGBP, GPU_FORMAT_BGR, GPU_FORMAT_RGBX};
  for (unsigned layout = 0; layout < GPU_N_LAYOUTS; layout++) {
    for (unsigned i = 0; i < N; i++) {
      from[i] = test_spec (formats[i % G_N_ELEMENTS (formats)], 45, 23);
      to[i] = tensor (GPU_ELEMENT_U8, (GpuLayout)layout, 3, 45, 23);
    }
    check (fixture, from, to, N, true, reformat_one, reformat_all, NULL, 0, 1);
  }
}

/* Many of the same shapes, one after the other, some of which lie otherwise than the one before, so that another kernel
 * takes them. */
static GpuBatch *
make_alike (OpFixture *fixture, const GpuImageSpec *specs, unsigned first)
{
  static const size_t places[] = {0, 0, 256, 1024, 16, 272, 16, 4, 4, 260, 1, 257, 257, 0};
  GpuImage *images[N];
  for (unsigned i = 0; i < N; i++) {
    const GpuImageSpec room = test_spec (GPU_FORMAT_GRAY8, (uint32_t)specs[i].size + 2048, 1);
    GpuImage *whole = test_image_new (fixture->device, &room, fixture->stream);
    g_autofree uint8_t *bytes = test_random_bytes (room.size, first + i);
    test_image_write (fixture->stream, whole, bytes, &room);
    images[i] = gpu_image_view_as (whole, places[(first + i) % G_N_ELEMENTS (places)], &specs[i], NULL);
    g_assert_nonnull (images[i]);
    gpu_image_unref (whole);
  }
  GpuBatch *batch = gpu_batch_new (images, N, NULL);
  for (unsigned i = 0; i < N; i++)
    gpu_image_unref (images[i]);
  return batch;
}

static bool
resize_alike (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const void *params, GError **error)
{
  return gpu_resizer_run_batch (resizer, stream, src, dst, params, 1, error);
}

static bool
normalize_alike (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const void *params, GError **error)
{
  return gpu_normalize_batch (stream, src, dst, params, 1, error);
}

static bool
convert_alike (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const void *params, GError **error)
{
  return gpu_convert_batch (stream, src, dst, params, 1, error);
}

/* @launches: how many the batch takes; 0 for whatever it is. */
static void
check_alike_at (int line, OpFixture *fixture, const GpuImageSpec *from, const GpuImageSpec *to, One one, All all,
                const void *params, unsigned launches)
{
  GError *error = NULL;
  GpuBatch *src = make_alike (fixture, from, 0);
  /* Elements of several bytes lie at multiples of those: they have memory as it comes. */
  GpuBatch *dst = gpu_format_info (to->format)->is_tensor
                      ? gpu_batch_acquire_dense (fixture->device, to, N, 0, fixture->stream, &error)
                      : make_alike (fixture, to, 5);
  g_assert_no_error (error);
  const uint64_t before = gpu_device_calls (fixture->device, GPU_CALL_LAUNCH);
  if (!all (fixture->stream, src, dst, params, &error))
    g_error ("line %d: %s", line, error->message);
  if (launches)
    g_assert_cmpuint (gpu_device_calls (fixture->device, GPU_CALL_LAUNCH) - before, ==, launches);
  for (unsigned i = 0; i < N; i++) {
    GpuImage *alone = test_image_new (fixture->device, &to[i], fixture->stream);
    g_autofree uint8_t *bytes = test_image_read (fixture->stream, gpu_batch_image (dst, i), 0);
    test_image_write (fixture->stream, alone, bytes, &to[i]);
    if (!one (fixture->stream, gpu_batch_image (src, i), alone, params, &error))
      g_error ("line %d, image %u: %s", line, i, error->message);
    g_autofree uint8_t *expected = test_image_read (fixture->stream, alone, 0);
    test_assert_image_at (__FILE__, line, fixture->stream, gpu_batch_image (dst, i), expected, &to[i]);
    gpu_image_unref (alone);
  }
  gpu_batch_unref (dst);
  gpu_batch_unref (src);
}

#define check_alike(...) check_alike_at (__LINE__, __VA_ARGS__)

static void
test_alike (OpFixture *fixture, const void *data)
{
  static const GpuFormat formats[] = {GPU_FORMAT_NV12, GPU_FORMAT_I420, GPU_FORMAT_RGBA, GPU_FORMAT_RGBP};
  GpuImageSpec from[N], to[N];
  GpuNormalize normalize;
  GpuConvert convert;
  gpu_convert_init (&convert);
  gpu_normalize_init (&normalize);
  normalize.scale[1] = 0.25f;
  resizer = gpu_resizer_new ();
  for (unsigned k = 0; k < G_N_ELEMENTS (formats); k++) {
    /* Each changes where the other one does not, and both lie as the one before. */
    for (unsigned i = 0; i < N; i++) {
      from[i] = test_spec (formats[k], 64, i < 17 ? 32 : 40);
      to[i] = test_spec (formats[k], 48, i < 3 ? 36 : 40);
    }
    GpuResize params = {.filter = GPU_RESIZE_NEAREST, .border = {1, 2, 3, 4}};
    check_alike (fixture, from, to, resize_one, resize_alike, &params, 1);
    params.filter = GPU_RESIZE_BILINEAR;
    check_alike (fixture, from, to, resize_one, resize_alike, &params, 2);
    params.src = (GpuResizeBox){2, 4, 20, 16};
    params.dst = (GpuResizeRectangle){2, 2, 40, 32};
    check_alike (fixture, from, to, resize_one, resize_alike, &params, 1);
    params = (GpuResize){.filter = GPU_RESIZE_BILINEAR, .antialias = true};
    check_alike (fixture, from, to, resize_one, resize_alike, &params, 0);

    for (unsigned i = 0; i < N; i++) {
      from[i] = test_spec (formats[k], 64, 32);
      to[i] = test_spec (formats[k], 32, 16);
    }
    params.antialias = false;
    check_alike (fixture, from, to, resize_one, resize_alike, &params, 3);
    check_alike (fixture, from, from, normalize_one, normalize_alike, &normalize, 0);
    for (unsigned m = 0; m < G_N_ELEMENTS (formats); m++) {
      for (unsigned i = 0; i < N; i++)
        to[i] = test_spec (formats[m], 64, 32);
      check_alike (fixture, from, to, convert_one, convert_alike, &convert, 0);
    }
    for (unsigned element = 0; element < GPU_N_ELEMENTS; element++)
      for (unsigned layout = 0; layout < GPU_N_LAYOUTS; layout++) {
        for (unsigned i = 0; i < N; i++)
          to[i] = tensor ((GpuElement)element, (GpuLayout)layout, 3, 64, 32);
        check_alike (fixture, from, to, normalize_one, normalize_alike, &normalize, 0);
      }
  }
  g_clear_pointer (&resizer, gpu_resizer_free);
}

/* One among others that are like it is not to be written over its source either. */
static void
test_alike_error (OpFixture *fixture, const void *data)
{
  const GpuImageSpec from = test_spec (GPU_FORMAT_NV12, 64, 32), to = test_spec (GPU_FORMAT_NV12, 48, 24);
  const GpuResize params = {.filter = GPU_RESIZE_BILINEAR};
  const unsigned wrong = 3;
  GError *error = NULL;
  GpuImage *srcs[N], *dsts[N];
  for (unsigned i = 0; i < N; i++) {
    srcs[i] = test_image_new (fixture->device, &from, fixture->stream);
    dsts[i] = i == wrong ? gpu_image_view_as (srcs[i], 0, &to, &error)
                         : test_image_new (fixture->device, &to, fixture->stream);
    g_assert_no_error (error);
  }
  GpuBatch *src = gpu_batch_new (srcs, N, NULL), *dst = gpu_batch_new (dsts, N, NULL);
  resizer = gpu_resizer_new ();
  g_assert_false (resize_alike (fixture->stream, src, dst, &params, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, "Image 3 of a batch: Resize cannot write over its source"));
  g_clear_error (&error);
  g_clear_pointer (&resizer, gpu_resizer_free);
  gpu_batch_unref (dst);
  gpu_batch_unref (src);
  for (unsigned i = 0; i < N; i++) {
    gpu_image_unref (dsts[i]);
    gpu_image_unref (srcs[i]);
  }
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  OP_TEST ("/batch-ops/flip", test_flip);
  OP_TEST ("/batch-ops/resize", test_resize);
  OP_TEST ("/batch-ops/resize-strips", test_resize_strips);
  OP_TEST ("/batch-ops/resize-keeps", test_resize_keeps);
  OP_TEST ("/batch-ops/resize-keeps-of-some", test_resize_keeps_of_some);
  OP_TEST ("/batch-ops/convert", test_convert);
  OP_TEST ("/batch-ops/normalize", test_normalize);
  OP_TEST ("/batch-ops/reformat", test_reformat);
  OP_TEST ("/batch-ops/alike", test_alike);
  OP_TEST ("/batch-ops/alike-error", test_alike_error);
  return g_test_run ();
}
