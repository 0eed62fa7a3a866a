/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Devices agree bit for bit where results are integers: the device under test makes of random pictures the same as the
 * CPU device with threads. Against formulas a sample may be a little off, so two that pass there could differ.
 */
#include "picture.h"

#define TURNS 3

typedef struct {
  GpuDevice *device[2];
  GpuStream *stream[2];
  uint32_t random;
} Pair;

static void
pair_setup (Pair *pair, const void *data)
{
  g_autoptr (GError) error = NULL;

  pair->device[0] = test_device_new ();
  pair->device[1] = gpu_cpu_device_new ("cpu:7", GPU_CPU_THREADS, 0);
  for (unsigned i = 0; i < 2; i++) {
    pair->stream[i] = gpu_stream_new (pair->device[i], false, &error);
    g_assert_no_error (error);
  }
  pair->random = 11;
}

static void
pair_teardown (Pair *pair, const void *data)
{
  for (unsigned i = 0; i < 2; i++) {
    gpu_stream_unref (pair->stream[i]);
    gpu_device_unref (pair->device[i]);
  }
}

/* From 1 to @n. */
static uint32_t
number (Pair *pair, uint32_t n)
{
  return 1 + test_random (&pair->random) % n;
}

static void
check_bytes (Pair *pair, const GpuImageSpec *from, const uint8_t *bytes, const GpuImageSpec *to, PictureOp op,
             const void *params)
{
  uint8_t *result[2];

  for (unsigned i = 0; i < 2; i++) {
    GpuImage *src = test_image_new (pair->device[i], from, pair->stream[i]);
    GpuImage *dst = test_image_new (pair->device[i], to, pair->stream[i]);
    g_autoptr (GError) error = NULL;

    test_image_write (pair->stream[i], src, bytes, from);
    op (pair->stream[i], src, dst, params, &error);
    g_assert_no_error (error);
    result[i] = test_image_read (pair->stream[i], dst, 0);
    gpu_image_unref (src);
    gpu_image_unref (dst);
  }
  for (size_t i = 0; i < to->size; i++)
    if (result[0][i] != result[1][i])
      g_error ("%s %ux%u to %s %ux%u: byte %zu is %u on %s, and %u on %s", gpu_format_info (from->format)->name,
               from->width, from->height, gpu_format_info (to->format)->name, to->width, to->height, i, result[0][i],
               gpu_device_name (pair->device[0]), result[1][i], gpu_device_name (pair->device[1]));
  g_free (result[0]);
  g_free (result[1]);
}

static void
check (Pair *pair, const GpuImageSpec *from, const GpuImageSpec *to, PictureOp op, const void *params)
{
  g_autofree uint8_t *bytes = test_random_bytes (from->size, number (pair, 1000));

  check_bytes (pair, from, bytes, to, op, params);
}

/* A picture that lies in any way in its memory in which its format can. */
static GpuImageSpec
random_spec (Pair *pair, unsigned format, uint32_t width, uint32_t height)
{
  const Layout layout = (Layout)(number (pair, N_LAYOUTS) - 1);
  const bool is_wide = gpu_format_info ((GpuFormat)format)->bits > 8;

  return picture_spec ((GpuFormat)format, width, height, is_wide && layout == LAYOUT_ODD ? LAYOUT_WORDS : layout);
}

static bool
convert (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_convert (stream, src, dst, params, error);
}

static GpuColorimetry
random_colorimetry (Pair *pair)
{
  return (GpuColorimetry){(GpuMatrix)(number (pair, GPU_N_MATRICES) - 1), (GpuRange)(number (pair, GPU_N_RANGES) - 1),
                          (GpuChromaSite)(number (pair, GPU_N_CHROMA_SITES) - 1)};
}

static void
check_convert (Pair *pair, const GpuImageSpec *src, const GpuImageSpec *dst)
{
  GpuConvert params;

  gpu_convert_init (&params);
  params.src = random_colorimetry (pair);
  params.dst = random_colorimetry (pair);
  check (pair, src, dst, convert, &params);
}

static void
test_convert (Pair *pair, const void *data)
{
  for (unsigned from = FIRST_FORMAT; from <= GPU_LAST_PICTURE_FORMAT; from++)
    for (unsigned to = FIRST_FORMAT; to <= GPU_LAST_PICTURE_FORMAT; to++)
      for (unsigned turn = 0; turn < TURNS; turn++) {
        const uint32_t width = number (pair, 150), height = number (pair, 40);
        const GpuImageSpec src = random_spec (pair, from, width, height);
        const GpuImageSpec dst = random_spec (pair, to, width, height);

        check_convert (pair, &src, &dst);
      }
}

/* Where four pixels, eight or 16 are read and written at once. */
static void
test_convert_quads (Pair *pair, const void *data)
{
  for (unsigned from = FIRST_FORMAT; from <= GPU_LAST_PICTURE_FORMAT; from++)
    for (unsigned to = FIRST_FORMAT; to <= GPU_LAST_PICTURE_FORMAT; to++)
      for (unsigned turn = 0; turn < TURNS; turn++) {
        const uint32_t width = 4 * number (pair, 80), height = number (pair, 70);
        const GpuImageSpec src = picture_spec ((GpuFormat)from, width, height, LAYOUT_DEFAULT);
        const GpuImageSpec dst = picture_spec ((GpuFormat)to, width, height, LAYOUT_DEFAULT);

        check_convert (pair, &src, &dst);
      }
}

/* Samples at the ends of their range, which give the largest sums, through every matrix; rows as a thread takes them,
 * of 16 pixels, eight or four, a warp's and more. */
static void
test_convert_extremes (Pair *pair, const void *data)
{
  static const GpuFormat sources[] = {GPU_FORMAT_NV12, GPU_FORMAT_I420, GPU_FORMAT_P010_10LE};
  static const GpuFormat results[] = {GPU_FORMAT_RGBA, GPU_FORMAT_BGR, GPU_FORMAT_XRGB, GPU_FORMAT_RGBP};
  static const uint32_t widths[] = {16, 144, 40, 12, 128, 136};
  const unsigned colorimetries = GPU_N_MATRICES * GPU_N_CHROMA_SITES * 2 * 2;

  for (unsigned turn = 0; turn < G_N_ELEMENTS (sources) * G_N_ELEMENTS (results) * colorimetries; turn++) {
    const unsigned to = turn / G_N_ELEMENTS (sources), way = to / G_N_ELEMENTS (results);
    const uint32_t width = widths[number (pair, G_N_ELEMENTS (widths)) - 1], height = number (pair, 9);
    const GpuImageSpec src = test_spec (sources[turn % G_N_ELEMENTS (sources)], width, height);
    const GpuImageSpec dst = test_spec (results[to % G_N_ELEMENTS (results)], width, height);
    g_autofree uint8_t *bytes = test_random_bytes (src.size, number (pair, 1000));
    GpuConvert params;

    gpu_convert_init (&params);
    params.src.matrix = (GpuMatrix)(way % GPU_N_MATRICES);
    params.src.chroma_site = (GpuChromaSite)(way / GPU_N_MATRICES % GPU_N_CHROMA_SITES);
    params.src.range = way / GPU_N_MATRICES / GPU_N_CHROMA_SITES % 2 ? GPU_RANGE_FULL : GPU_RANGE_LIMITED;
    params.dst.range = way / GPU_N_MATRICES / GPU_N_CHROMA_SITES / 2 ? GPU_RANGE_FULL : GPU_RANGE_LIMITED;
    /* Neighbours alike more often than not, so that what is between them is extreme, too. */
    for (size_t i = 0; i < src.size; i++)
      bytes[i] = bytes[i / 32 * 32] % 4 ? bytes[i / 32 * 32 + i % 4] & 1 ? 255 : 0 : bytes[i] & 1 ? 255 : 0;
    check_bytes (pair, &src, bytes, &dst, convert, &params);
  }
}

static bool
flip (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_flip (stream, src, dst, *(const GpuOrientation *)params, error);
}

static void
test_flip (Pair *pair, const void *data)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned i = 0; i <= GPU_ORIENTATION_UR_LL; i++)
      for (unsigned turn = 0; turn < TURNS; turn++) {
        const GpuOrientation orientation = (GpuOrientation)i;
        const uint32_t width = number (pair, 200), height = number (pair, 100);
        const bool turned = gpu_orientation_is_transposed (orientation);
        const GpuImageSpec src = random_spec (pair, format, width, height);
        const GpuImageSpec dst = random_spec (pair, format, turned ? height : width, turned ? width : height);

        check (pair, &src, &dst, flip, &orientation);
      }
}

static bool
resize (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_resize_full (stream, src, dst, params, error);
}

static void
test_resize (Pair *pair, const void *data)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned filter = 0; filter < GPU_N_RESIZE_FILTERS; filter++)
      for (unsigned turn = 0; turn < 2 * TURNS; turn++) {
        const GpuImageSpec src = random_spec (pair, format, number (pair, 200), number (pair, 100));
        const GpuImageSpec dst = random_spec (pair, format, number (pair, 200), number (pair, 100));
        const GpuResize params = {.filter = (GpuResizeFilter)filter, .antialias = turn % 2};

        check (pair, &src, &dst, resize, &params);
      }
}

/* A part of a picture to a part of another one, however they lie in memory, with a border that can fill whole tiles. */
static void
test_resize_parts (Pair *pair, const void *data)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned filter = GPU_RESIZE_BILINEAR; filter < GPU_N_RESIZE_FILTERS; filter++) {
      const unsigned turn = format + filter;
      GpuImageSpec src = picture_spec ((GpuFormat)format, number (pair, 200), number (pair, 100), (Layout)(turn % 4));
      GpuImageSpec dst =
          picture_spec ((GpuFormat)format, 2 + number (pair, 200), 2 + number (pair, 100), (Layout)(turn / 4 % 4));
      const uint32_t x = number (pair, dst.width / 2) & ~1u, y = number (pair, dst.height / 2) & ~1u;
      const double left = number (pair, src.width) / 4.0, top = number (pair, src.height) / 4.0;
      GpuResize params = {.filter = (GpuResizeFilter)filter,
                          .antialias = true,
                          .straight_alpha = turn % 2,
                          .clip = turn / 2 % 2,
                          .src = {left, top, number (pair, src.width) * 0.75, number (pair, src.height) * 0.75},
                          .dst = {x, y, dst.width - x, dst.height - y},
                          .border = {200, 100, 50, 25}};

      if (dst.width - x > 70)
        params.dst.width = 70;
      if (dst.height - y > 40)
        params.dst.height = 40;
      check (pair, &src, &dst, resize, &params);
    }
}

/* A source of one pixel in a direction has one sample there in all planes. Its tables are the same, but what luma and
 * chroma are scaled to begins elsewhere. */
static void
test_resize_points (Pair *pair, const void *data)
{
  static const GpuResizeRectangle parts[] = {{2, 0, 1, 11}, {0, 2, 11, 1}};

  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned i = 0; i < G_N_ELEMENTS (parts); i++) {
      const GpuResizeRectangle part = parts[i];
      const GpuImageSpec src = test_spec ((GpuFormat)format, i ? 9 : 1, i ? 1 : 9);
      const GpuImageSpec dst = test_spec ((GpuFormat)format, part.x + part.width, part.y + part.height);
      const GpuResize params = {.filter = GPU_RESIZE_BICUBIC, .antialias = true, .dst = part};

      check (pair, &src, &dst, resize, &params);
    }
}

/* Shrunk ever more, in tiles and in strips, until what either needs no longer fits a GPU's shared memory or registers;
 * and ever more downwards alone, in tiles of all sizes. @most: up to which factor one launch does it there. */
static void
test_resize_tiles (Pair *pair, const void *data)
{
  static const struct {
    GpuFormat format;
    GpuResizeFilter filter;
    uint32_t across; /* 0: the same factor */
    uint32_t factors[6];
    uint32_t most;
  } cases[] = {{GPU_FORMAT_BGRA, GPU_RESIZE_BILINEAR, 0, {2, 3, 11, 19, 25, 26}, 25},
               {GPU_FORMAT_RGBX, GPU_RESIZE_LANCZOS, 0, {1, 2, 9, 12, 13, 14}, 13},
               {GPU_FORMAT_RGB, GPU_RESIZE_BICUBIC, 0, {9, 10, 13, 18, 20, 21}, 20},
               {GPU_FORMAT_NV12, GPU_RESIZE_LANCZOS, 0, {2, 3, 5, 9, 15, 16}, 16},
               {GPU_FORMAT_BGRA, GPU_RESIZE_BILINEAR, 2, {5, 9, 14, 20, 28, 29}, 28},
               {GPU_FORMAT_GRAY8, GPU_RESIZE_LANCZOS, 2, {9, 18, 30, 50, 81, 83}, 81}};

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++)
    for (unsigned k = 0; k < G_N_ELEMENTS (cases[i].factors); k++) {
      const uint32_t factor = cases[i].factors[k], across = cases[i].across ? cases[i].across : factor;
      const GpuImageSpec dst = test_spec (cases[i].format, 36, 20);
      const GpuImageSpec src = test_spec (cases[i].format, 36 * across + 2, 20 * factor);
      const GpuResize params = {.filter = cases[i].filter, .antialias = true};
      const uint64_t before = gpu_device_calls (pair->device[0], GPU_CALL_LAUNCH);

      check (pair, &src, &dst, resize, &params);
      if (!gpu_device_is_host (pair->device[0]))
        g_assert_cmpuint (gpu_device_calls (pair->device[0], GPU_CALL_LAUNCH), ==,
                          before + (factor <= cases[i].most ? 1 : 2));
    }
}

/* Shrunk so much across that it is in strips: several beside and above one another, some of them in part beside the
 * picture, or in the border; of more and of fewer steps than a warp has weights of. */
static void
test_resize_strips (Pair *pair, const void *data)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++)
    for (unsigned turn = 0; turn < 4 * TURNS; turn++) {
      const double factor = 3 + (turn % 4) * turn / 3.0 + number (pair, 100) / 100.0;
      const GpuImageSpec dst = random_spec (pair, format, 30 + number (pair, 60), 10 + number (pair, 60));
      const uint32_t left = turn % 3 ? 0 : number (pair, 20) & ~1u, top = turn % 3 ? 0 : number (pair, 8) & ~1u;
      GpuResize params = {.filter = (GpuResizeFilter)(1 + turn % (GPU_N_RESIZE_FILTERS - 1)),
                          .antialias = true,
                          .straight_alpha = turn % 4 == 3,
                          .dst = {left, top, dst.width - left, dst.height - top},
                          .border = {200, 100, 50, 25}};

      if (turn % 3 == 1)
        params.dst.width &= ~1u;
      const GpuImageSpec src = random_spec (pair, format, (uint32_t)(params.dst.width * factor) + 4,
                                            (uint32_t)(params.dst.height * (1 + number (pair, 30) / 10.0)));
      if (turn % 2)
        params.src = (GpuResizeBox){0.5, 0.25, src.width - 0.75, src.height - 0.5};
      check (pair, &src, &dst, resize, &params);
    }
}

static bool
normalize (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_normalize (stream, src, dst, params, error);
}

/* In place of the picture, and as bytes of a tensor. */
static void
test_normalize (Pair *pair, const void *data)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++) {
    const GpuFormatInfo *info = gpu_format_info ((GpuFormat)format);

    for (unsigned turn = 0; info->bits == 8 && turn < 4 * TURNS; turn++) {
      const GpuImageSpec src = random_spec (pair, format, number (pair, 200), number (pair, 40));
      GpuImageSpec dst = random_spec (pair, format, src.width, src.height);
      GpuNormalize params;

      gpu_normalize_init (&params);
      for (unsigned c = 0; c < GPU_MAX_CHANNELS; c++) {
        params.base[c] = number (pair, 255);
        params.scale[c] = number (pair, 4000) / 1000.0;
      }
      params.scale_is_stddev = turn % 2;
      params.epsilon = 0.01;
      params.shift = number (pair, 200);
      if (turn % 4 > 1 && !info->is_yuv)
        g_assert_true (gpu_image_spec_init_tensor (&dst, GPU_ELEMENT_U8, GPU_LAYOUT_CHW, info->n_channels, src.width,
                                                   src.height, NULL));
      check (pair, &src, &dst, normalize, &params);
    }
  }
}

/* Tensors of pictures that lie anywhere, or at multiples of 16 and of widths that are multiples of 4, or not. */
static void
test_normalize_tensors (Pair *pair, const void *data)
{
  for (unsigned format = FIRST_FORMAT; format <= GPU_LAST_PICTURE_FORMAT; format++) {
    const GpuFormatInfo *info = gpu_format_info ((GpuFormat)format);
    const uint32_t most = info->is_yuv && info->n_channels > 1 ? 3 : info->n_channels;

    for (unsigned turn = 0; info->bits == 8 && turn < 4 * TURNS * GPU_N_ELEMENTS * GPU_N_LAYOUTS; turn++) {
      const uint32_t width = turn % 3 ? 4 * number (pair, 150) : number (pair, 300), height = number (pair, 20);
      const GpuImageSpec src = turn % 4 ? picture_spec ((GpuFormat)format, width, height, LAYOUT_DEFAULT)
                                        : random_spec (pair, format, width, height);
      const GpuElement element = (GpuElement)(turn % GPU_N_ELEMENTS);
      const GpuLayout layout = (GpuLayout)(turn / GPU_N_ELEMENTS % GPU_N_LAYOUTS);
      const uint32_t channels = info->has_alpha && number (pair, 2) == 1 ? 3 : most;
      GpuNormalize params;
      GpuImageSpec dst;

      gpu_normalize_init (&params);
      for (unsigned c = 0; c < GPU_MAX_CHANNELS; c++) {
        params.base[c] = number (pair, 255);
        params.scale[c] = number (pair, 4000) / 1000.0;
      }
      params.order = (GpuChannelOrder)(number (pair, 2) - 1);
      g_assert_true (gpu_image_spec_init_tensor (&dst, element, layout, channels, width, height, NULL));
      check (pair, &src, &dst, normalize, &params);
    }
  }
}

#define PAIR_TEST(path, func) g_test_add (path, Pair, NULL, pair_setup, func, pair_teardown)

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  PAIR_TEST ("/agree/convert", test_convert);
  PAIR_TEST ("/agree/convert-quads", test_convert_quads);
  PAIR_TEST ("/agree/convert-extremes", test_convert_extremes);
  PAIR_TEST ("/agree/flip", test_flip);
  PAIR_TEST ("/agree/resize", test_resize);
  PAIR_TEST ("/agree/resize-parts", test_resize_parts);
  PAIR_TEST ("/agree/resize-points", test_resize_points);
  PAIR_TEST ("/agree/resize-tiles", test_resize_tiles);
  PAIR_TEST ("/agree/resize-strips", test_resize_strips);
  PAIR_TEST ("/agree/normalize", test_normalize);
  PAIR_TEST ("/agree/normalize-tensors", test_normalize_tensors);
  return g_test_run ();
}
