/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Operations on large frames: of 8K, and on a GPU that has the memory of more than 2^31 bytes. What lies at a corner
 * of one must become what the same few pixels become by themselves.
 */
#include "picture.h"

#include <string.h>

/* Of the pieces; even, so that they lie as well in chroma's samples and in halves of the frame. */
#define WIDTH 70u
#define HEIGHT 6u

/* Makes something of @src, in images that it acquires. NULL: there is no memory for it, or @error is set. */
typedef GpuImage *(*Make) (GpuStream *stream, GpuImage *src, GError **error);

/* Where @piece, of a frame of @width x @height, is in what is made of it. */
typedef void (*Place) (uint32_t width, uint32_t height, uint32_t piece[2]);

typedef struct {
  const char *name;
  GpuFormat format;
  Make make;
  Place place;
} Case;

static GpuImage *
acquire (GpuStream *stream, const GpuImageSpec *spec)
{
  return gpu_image_acquire (gpu_stream_device (stream), spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT,
                            NULL);
}

static GpuImage *
picture (GpuStream *stream, GpuFormat format, uint32_t width, uint32_t height, GError **error)
{
  GpuImageSpec spec;

  return gpu_image_spec_init (&spec, format, width, height, 0, error) ? acquire (stream, &spec) : NULL;
}

static GpuImage *
tensor (GpuStream *stream, GpuElement element, const GpuImageSpec *like, GError **error)
{
  GpuImageSpec spec;

  return gpu_image_spec_init_tensor (&spec, element, GPU_LAYOUT_CHW, 3, like->width, like->height, error)
             ? acquire (stream, &spec)
             : NULL;
}

/* Returns: (transfer full): @dst, if the operation that was to write it did. */
static GpuImage *
keep_if (bool ok, GpuImage *dst)
{
  if (ok)
    return dst;
  gpu_image_unref (dst);
  return NULL;
}

static GpuImage *
turn (GpuStream *stream, GpuImage *src, GError **error)
{
  GpuImage *dst =
      picture (stream, gpu_image_spec (src)->format, gpu_image_spec (src)->height, gpu_image_spec (src)->width, error);

  return dst ? keep_if (gpu_flip (stream, src, dst, GPU_ORIENTATION_90R, error), dst) : NULL;
}

static GpuImage *
reverse (GpuStream *stream, GpuImage *src, GError **error)
{
  GpuImage *dst =
      picture (stream, gpu_image_spec (src)->format, gpu_image_spec (src)->width, gpu_image_spec (src)->height, error);

  return dst ? keep_if (gpu_flip (stream, src, dst, GPU_ORIENTATION_180, error), dst) : NULL;
}

static GpuImage *
halve (GpuStream *stream, GpuImage *src, GError **error)
{
  GpuImage *dst = picture (stream, gpu_image_spec (src)->format, gpu_image_spec (src)->width / 2,
                           gpu_image_spec (src)->height / 2, error);

  return dst ? keep_if (gpu_resize (stream, src, dst, GPU_RESIZE_BOX, error), dst) : NULL;
}

static GpuImage *
convert_to (GpuStream *stream, GpuImage *src, GpuFormat format, GError **error)
{
  GpuImage *dst = picture (stream, format, gpu_image_spec (src)->width, gpu_image_spec (src)->height, error);

  return dst ? keep_if (gpu_convert (stream, src, dst, NULL, error), dst) : NULL;
}

static GpuImage *
separate (GpuStream *stream, GpuImage *src, GError **error)
{
  return convert_to (stream, src, GPU_FORMAT_RGBP, error);
}

static GpuImage *
widen (GpuStream *stream, GpuImage *src, GError **error)
{
  return convert_to (stream, src, GPU_FORMAT_P010_10LE, error);
}

/* Pictures have views, tensors have none: so there and back, by way of float32 and bytes, both planar. */
static GpuImage *
there_and_back (GpuStream *stream, GpuImage *src, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (src);
  GpuImage *numbers = tensor (stream, GPU_ELEMENT_F32, spec, error);
  GpuImage *bytes = numbers ? tensor (stream, GPU_ELEMENT_U8, spec, error) : NULL;
  GpuImage *dst = bytes ? picture (stream, spec->format, spec->width, spec->height, error) : NULL;
  GpuNormalize params;
  bool ok = false;

  gpu_normalize_init (&params);
  params.scale[0] = 0.5;
  params.shift = 3;
  if (dst)
    ok = gpu_normalize (stream, src, numbers, &params, error) && gpu_convert (stream, numbers, bytes, NULL, error) &&
         gpu_reformat (stream, bytes, dst, NULL, error);
  if (numbers)
    gpu_image_unref (numbers);
  if (bytes)
    gpu_image_unref (bytes);
  return dst ? keep_if (ok, dst) : NULL;
}

static void
same_place (uint32_t width, uint32_t height, uint32_t piece[2])
{
}

static void
turned_place (uint32_t width, uint32_t height, uint32_t piece[2])
{
  const uint32_t x = piece[0];

  piece[0] = height - HEIGHT - piece[1];
  piece[1] = x;
}

static void
reversed_place (uint32_t width, uint32_t height, uint32_t piece[2])
{
  piece[0] = width - WIDTH - piece[0];
  piece[1] = height - HEIGHT - piece[1];
}

static void
halved_place (uint32_t width, uint32_t height, uint32_t piece[2])
{
  piece[0] /= 2;
  piece[1] /= 2;
}

static const Case cases[] = {
    {"turned", GPU_FORMAT_NV12, turn, turned_place},
    {"turned", GPU_FORMAT_RGBA, turn, turned_place},
    {"reversed", GPU_FORMAT_RGB, reverse, reversed_place},
    {"halved", GPU_FORMAT_RGB, halve, halved_place},
    {"halved", GPU_FORMAT_RGBA, halve, halved_place},
    {"planar", GPU_FORMAT_RGB, separate, same_place},
    {"of 10 bits", GPU_FORMAT_NV12, widen, same_place},
    {"a tensor and back", GPU_FORMAT_RGB, there_and_back, same_place},
};

/* A view of @image at (@x, @y), copied from or to @small. */
static void
copy_piece (GpuStream *stream, GpuImage *image, uint32_t x, uint32_t y, GpuImage *small, bool to_small)
{
  const GpuImageSpec *spec = gpu_image_spec (small);
  g_autoptr (GError) error = NULL;
  GpuImage *view = gpu_image_view (image, x, y, spec->width, spec->height, &error);

  g_assert_no_error (error);
  g_assert_true (gpu_image_copy (stream, to_small ? view : small, to_small ? small : view, &error));
  gpu_image_unref (view);
}

/* What was made of @piece, which lies in the frame at (@x, @y), is in @result, too. */
static void
check_piece (GpuStream *stream, const Case *test, GpuImage *result, GpuImage *piece, const GpuImageSpec *frame,
             uint32_t x, uint32_t y)
{
  uint32_t at[2] = {x, y};
  g_autoptr (GError) error = NULL;
  GpuImage *expected = test->make (stream, piece, &error);
  GpuImage *got;

  g_assert_no_error (error);
  g_assert_nonnull (expected);
  got = test_image_new (gpu_stream_device (stream), gpu_image_spec (expected), stream);
  test->place (frame->width, frame->height, at);
  copy_piece (stream, result, at[0], at[1], got, true);

  g_autofree uint8_t *want = test_image_read (stream, expected, 0);
  g_autofree uint8_t *have = test_image_read (stream, got, 0);
  if (memcmp (want, have, gpu_image_spec (expected)->size) != 0)
    g_error ("the piece at (%u, %u) of %ux%u is not %s", x, y, frame->width, frame->height, test->name);
  gpu_image_unref (expected);
  gpu_image_unref (got);
}

static void
check_frame (GpuStream *stream, const Case *test, uint32_t width, uint32_t height)
{
  const uint32_t corners[][2] = {{0, 0},
                                 {width - WIDTH, 0},
                                 {width / 4 * 2, height / 4 * 2},
                                 {0, height - HEIGHT},
                                 {width - WIDTH, height - HEIGHT}};
  const GpuImageSpec spec = test_spec (test->format, WIDTH, HEIGHT);
  GpuImage *pieces[G_N_ELEMENTS (corners)] = {NULL}, *frame, *result;
  g_autoptr (GError) error = NULL;

  frame = picture (stream, test->format, width, height, &error);
  g_assert_no_error (error);
  if (frame && !gpu_image_fill (stream, frame, 77, &error))
    g_assert_no_error (error);
  for (unsigned i = 0; frame && i < G_N_ELEMENTS (corners); i++) {
    g_autofree uint8_t *bytes = test_random_bytes (spec.size, i);

    pieces[i] = test_image_new (gpu_stream_device (stream), &spec, stream);
    test_image_write (stream, pieces[i], bytes, &spec);
    copy_piece (stream, frame, corners[i][0], corners[i][1], pieces[i], false);
  }
  result = frame ? test->make (stream, frame, &error) : NULL;
  g_assert_no_error (error);
  if (!result)
    g_test_message ("there is no memory for %ux%u", width, height);
  for (unsigned i = 0; result && i < G_N_ELEMENTS (corners); i++)
    check_piece (stream, test, result, pieces[i], gpu_image_spec (frame), corners[i][0], corners[i][1]);

  for (unsigned i = 0; i < G_N_ELEMENTS (corners); i++)
    if (pieces[i])
      gpu_image_unref (pieces[i]);
  if (result)
    gpu_image_unref (result);
  if (frame)
    gpu_image_unref (frame);
}

static void
test_large (OpFixture *fixture, const void *data)
{
  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++) {
    check_frame (fixture->stream, &cases[i], 7680, 4320);
    /* 2.3 GB of RGB, 3.1 GB of RGBA, 9.4 GB of float32. */
    if (test_is_cuda ())
      check_frame (fixture->stream, &cases[i], 30000, 26000);
  }
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  OP_TEST ("/large", test_large);
  return g_test_run ();
}
