/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See picture.h.
 */
#include "picture.h"

#include <math.h>
#include <string.h>

const uint32_t picture_sizes[][2] = {{1, 1},   {1, 37},  {53, 1},    {2, 2},   {3, 5},   {17, 33},
                                     {64, 64}, {65, 31}, {130, 127}, {200, 7}, {512, 3}, {641, 481}};
const unsigned n_picture_sizes = G_N_ELEMENTS (picture_sizes);

bool
picture_takes_turns (GpuFormat format, unsigned turn)
{
  return format >= GPU_FORMAT_RGBA && format <= GPU_FORMAT_XBGR && (format + turn) % 8 != 0;
}

GpuImageSpec
picture_spec (GpuFormat format, uint32_t width, uint32_t height, Layout layout)
{
  GpuImageSpec spec = test_spec (format, width, height);
  g_autoptr (GError) error = NULL;
  size_t stride[GPU_MAX_PLANES] = {0}, offset[GPU_MAX_PLANES] = {0};
  size_t end = layout == LAYOUT_ODD ? 7 : layout == LAYOUT_WORDS ? 20 : 0;

  if (layout == LAYOUT_DEFAULT)
    return spec;
  for (unsigned i = 0; i < gpu_format_info (format)->n_planes; i++) {
    size_t row_bytes = gpu_image_spec_row_bytes (&spec, i);

    offset[i] = end;
    if (layout == LAYOUT_PACKED)
      stride[i] = row_bytes;
    else if (layout == LAYOUT_WORDS)
      stride[i] = (row_bytes + 3) / 4 * 4 + 4;
    else
      stride[i] = (row_bytes + 2) | 1;
    end += stride[i] * gpu_image_spec_plane_height (&spec, i);
    if (layout == LAYOUT_ODD)
      end = (end + 4) | 1;
  }
  /* A packed picture ends with its memory, so that what goes beyond it is found. */
  gpu_image_spec_init_full (&spec, format, width, height, stride, offset, layout == LAYOUT_PACKED ? end : end + 16,
                            &error);
  g_assert_no_error (error);
  return spec;
}

Picture
picture_new (const GpuImageSpec *spec, uint32_t seed)
{
  return (Picture){*spec, test_random_bytes (spec->size, seed)};
}

void
picture_clear (Picture *picture)
{
  g_clear_pointer (&picture->bytes, g_free);
}

uint8_t *
picture_at (const Picture *picture, unsigned plane, uint32_t x, uint32_t y)
{
  return picture->bytes + picture->spec.offset[plane] + y * picture->spec.stride[plane] +
         (size_t)x * picture_sample_bytes (picture, plane);
}

unsigned
picture_sample_bytes (const Picture *picture, unsigned plane)
{
  return gpu_format_info (picture->spec.format)->plane[plane].pixel_bytes;
}

/* The bytes of an image as one row of GRAY8, so that all of them can be copied. */
static GpuImageSpec
bytes_spec (const GpuImageSpec *spec)
{
  g_autoptr (GError) error = NULL;
  size_t offset = 0;
  GpuImageSpec bytes;

  gpu_image_spec_init_full (&bytes, GPU_FORMAT_GRAY8, (uint32_t)spec->size, 1, &spec->size, &offset, spec->size,
                            &error);
  g_assert_no_error (error);
  return bytes;
}

static void
unref_image (void *image)
{
  gpu_image_unref (image);
}

GpuImage *
picture_upload (GpuStream *stream, const Picture *picture)
{
  GpuDevice *device = gpu_stream_device (stream);
  g_autoptr (GError) error = NULL;
  GpuImageSpec bytes = bytes_spec (&picture->spec);
  GpuImageSpec spec = bytes;

  /* So that the layout alone decides what is aligned. */
  spec.alignment = GPU_DEFAULT_ALIGNMENT;
  GpuImage *raw = test_image_new (device, &spec, stream);
  test_image_write (stream, raw, picture->bytes, &bytes);
  GpuImage *image = gpu_image_wrap (device, &picture->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (raw), stream,
                                    unref_image, raw, &error);
  g_assert_no_error (error);
  return image;
}

Picture
picture_download (GpuStream *stream, GpuImage *image)
{
  g_autoptr (GError) error = NULL;
  Picture picture = {*gpu_image_spec (image), g_malloc (gpu_image_spec (image)->size)};
  GpuImageSpec bytes = bytes_spec (&picture.spec);

  bool ok = gpu_stream_synchronize (stream, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
  GpuImage *raw = gpu_image_wrap (gpu_image_device (image), &bytes, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (image),
                                  stream, NULL, NULL, &error);
  g_assert_no_error (error);
  gpu_image_copy_to_host (stream, raw, picture.bytes, &bytes, &error);
  g_assert_no_error (error);
  gpu_image_unref (raw);
  return picture;
}

static void
invert_samples (Picture *picture)
{
  for (unsigned i = 0; i < gpu_format_info (picture->spec.format)->n_planes; i++)
    for (uint32_t y = 0; y < gpu_image_spec_plane_height (&picture->spec, i); y++)
      for (size_t x = 0; x < gpu_image_spec_row_bytes (&picture->spec, i); x++)
        picture_at (picture, i, 0, y)[x] ^= 0xff;
}

static void
assert_equal (const Picture *got, const Picture *expected, const char *what)
{
  const GpuImageSpec *spec = &expected->spec;

  if (!memcmp (got->bytes, expected->bytes, spec->size))
    return;
  for (unsigned i = 0; i < gpu_format_info (spec->format)->n_planes; i++)
    for (uint32_t y = 0; y < gpu_image_spec_plane_height (spec, i); y++)
      for (size_t x = 0; x < gpu_image_spec_row_bytes (spec, i); x++)
        if (picture_at (got, i, 0, y)[x] != picture_at (expected, i, 0, y)[x])
          g_error ("%s, %s %ux%u: byte %zu of row %u, plane %u, is %u and not %u", what,
                   gpu_format_info (spec->format)->name, spec->width, spec->height, x, y, i,
                   picture_at (got, i, 0, y)[x], picture_at (expected, i, 0, y)[x]);
  for (size_t i = 0; i < spec->size; i++)
    if (got->bytes[i] != expected->bytes[i])
      g_error ("%s, %s %ux%u: byte %zu, which is no sample, was written", what, gpu_format_info (spec->format)->name,
               spec->width, spec->height, i);
}

void
picture_check (GpuStream *stream, const GpuImageSpec *src_spec, const GpuImageSpec *dst_spec, PictureOp op,
               PictureReference reference, const void *params)
{
  if (test_leaves_out ())
    return;

  Picture src = picture_new (src_spec, src_spec->width * 7919 + src_spec->height);
  Picture expected = picture_new (dst_spec, dst_spec->width * 104729 + dst_spec->height);
  g_autoptr (GError) error = NULL;

  GpuImage *src_image = picture_upload (stream, &src);
  reference (&src, &expected, params);
  /* No sample is right already. */
  invert_samples (&expected);
  GpuImage *dst_image = picture_upload (stream, &expected);
  invert_samples (&expected);

  bool ok = op (stream, src_image, dst_image, params, &error);
  g_assert_no_error (error);
  g_assert_true (ok);

  Picture got = picture_download (stream, dst_image);
  assert_equal (&got, &expected, "destination");
  picture_clear (&got);
  got = picture_download (stream, src_image);
  assert_equal (&got, &src, "source");

  gpu_image_unref (src_image);
  gpu_image_unref (dst_image);
  picture_clear (&got);
  picture_clear (&src);
  picture_clear (&expected);
}

static bool
is_wide (const GpuImageSpec *spec)
{
  return spec->format == GPU_FORMAT_P010_10LE;
}

unsigned
picture_samples (const GpuImageSpec *spec, unsigned plane)
{
  return gpu_format_info (spec->format)->plane[plane].pixel_bytes / (is_wide (spec) ? 2u : 1u);
}

unsigned
picture_get (const Picture *picture, unsigned plane, uint32_t x, uint32_t y, unsigned i)
{
  const uint8_t *p = picture_at (picture, plane, x, y);

  return is_wide (&picture->spec) ? (p[2 * i] | (unsigned)p[2 * i + 1] << 8) / 64 : p[i];
}

void
picture_put (Picture *picture, unsigned plane, uint32_t x, uint32_t y, unsigned i, unsigned value)
{
  uint8_t *p = picture_at (picture, plane, x, y);

  if (is_wide (&picture->spec)) {
    p[2 * i] = (uint8_t)(value * 64);
    p[2 * i + 1] = (uint8_t)(value / 4);
  } else {
    p[i] = (uint8_t)value;
  }
}

double
picture_check_near (GpuStream *stream, const GpuImageSpec *src_spec, const GpuImageSpec *dst_spec, PictureOp op,
                    PictureValue value, const void *params, double tolerance)
{
  if (test_leaves_out ())
    return 0;

  const double max = is_wide (dst_spec) ? 1023 : 255;
  Picture src = picture_new (src_spec, src_spec->width * 7919 + src_spec->height);
  Picture poison = picture_new (dst_spec, dst_spec->width * 104729 + dst_spec->height);
  g_autoptr (GError) error = NULL;
  double worst = 0;

  GpuImage *src_image = picture_upload (stream, &src), *dst_image = picture_upload (stream, &poison);
  bool ok = op (stream, src_image, dst_image, params, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
  Picture got = picture_download (stream, dst_image);

  for (unsigned plane = 0; plane < gpu_format_info (dst_spec->format)->n_planes; plane++)
    for (uint32_t y = 0; y < gpu_image_spec_plane_height (dst_spec, plane); y++)
      for (uint32_t x = 0; x < gpu_image_spec_plane_width (dst_spec, plane); x++)
        for (unsigned i = 0; i < picture_samples (dst_spec, plane); i++) {
          const double exact = CLAMP (value (&src, dst_spec, plane, i, x, y, params), 0, max);
          const unsigned sample = picture_get (&got, plane, x, y, i);

          if (!(fabs (sample - exact) <= tolerance))
            g_error ("%s to %s %ux%u: sample %u of %u,%u in plane %u is %u, exactly %g",
                     gpu_format_info (src_spec->format)->name, gpu_format_info (dst_spec->format)->name,
                     dst_spec->width, dst_spec->height, i, x, y, plane, sample, exact);
          worst = MAX (worst, fabs (sample - exact));
          /* Now only what must not be touched can be another than before, low bits included. */
          picture_put (&poison, plane, x, y, i, sample);
        }
  assert_equal (&got, &poison, "destination");

  gpu_image_unref (src_image);
  gpu_image_unref (dst_image);
  picture_clear (&got);
  picture_clear (&src);
  picture_clear (&poison);
  return worst;
}

void
picture_check_in_place (GpuStream *stream, const GpuImageSpec *spec, PictureOp op, PictureReference reference,
                        const void *params)
{
  if (test_leaves_out ())
    return;

  Picture src = picture_new (spec, spec->width * 7919 + spec->height);
  Picture expected = picture_new (spec, spec->width * 7919 + spec->height);
  g_autoptr (GError) error = NULL;

  GpuImage *image = picture_upload (stream, &src);
  reference (&src, &expected, params);
  bool ok = op (stream, image, image, params, &error);
  g_assert_no_error (error);
  g_assert_true (ok);

  Picture got = picture_download (stream, image);
  assert_equal (&got, &expected, "in place");

  gpu_image_unref (image);
  picture_clear (&got);
  picture_clear (&src);
  picture_clear (&expected);
}

void
picture_check_error (GpuStream *stream, GpuImage *src, GpuImage *dst, PictureOp op, const void *params,
                     const char *text)
{
  g_autoptr (GError) error = NULL;

  g_assert_false (op (stream, src, dst, params, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  if (!strstr (error->message, text))
    g_error ("\"%s\" does not say \"%s\"", error->message, text);
}

void
op_fixture_setup (OpFixture *fixture, const void *data)
{
  g_autoptr (GError) error = NULL;

  fixture->device = test_device_new ();
  fixture->stream = gpu_stream_new (fixture->device, false, &error);
  g_assert_no_error (error);
}

void
op_fixture_teardown (OpFixture *fixture, const void *data)
{
  g_autoptr (GError) error = NULL;

  gpu_stream_synchronize (fixture->stream, &error);
  g_assert_no_error (error);
  gpu_cache_check (fixture->device);
  gpu_stream_unref (fixture->stream);
  gpu_device_unref (fixture->device);
}
