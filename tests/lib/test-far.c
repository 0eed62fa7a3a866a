/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Operations on images whose rows lie so far apart that offsets need 33 bits: the results are those of the same
 * pictures in little memory.
 */
#include "picture.h"

#include <string.h>
#include <sys/mman.h>

/* Five rows and more pass 2^32 bytes. The host's memory is reserved only: a row's pages are all that is used of it. */
#define STRIDE (((size_t)1 << 30) + 4096)

static void
unmap (void *image_size)
{
  void **mapping = image_size;

  munmap (mapping[0], GPOINTER_TO_SIZE (mapping[1]));
  g_free (mapping);
}

/* An image of such a layout, or NULL if this machine has no memory for it. */
static GpuImage *
far_image (OpFixture *fixture, GpuFormat format, uint32_t width, uint32_t height)
{
  const GpuFormatInfo *info = gpu_format_info (format);
  size_t stride[GPU_MAX_PLANES] = {STRIDE, STRIDE, STRIDE}, offset[GPU_MAX_PLANES] = {0, 65536, 131072};
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;

  g_assert_cmpuint (info->n_planes, <=, 3);
  gpu_image_spec_init_full (&spec, format, width, height, stride, offset, 0, &error);
  g_assert_no_error (error);
  if (!gpu_device_is_host (fixture->device))
    return gpu_image_acquire (fixture->device, &spec, GPU_MEMORY_STREAM_ORDERED, fixture->stream, GPU_ACQUIRE_DEFAULT,
                              NULL);

  void **mapping = g_new (void *, 2);
  mapping[0] = mmap (NULL, spec.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  mapping[1] = GSIZE_TO_POINTER (spec.size);
  if (mapping[0] == MAP_FAILED) {
    g_free (mapping);
    return NULL;
  }
  GpuImage *image = gpu_image_wrap (fixture->device, &spec, GPU_MEMORY_STREAM_ORDERED, mapping[0], fixture->stream,
                                    unmap, mapping, &error);
  g_assert_no_error (error);
  return image;
}

/* Runs @op from and to near and far pictures. */
static void
check (OpFixture *fixture, PictureOp op, const void *params, GpuFormat from, const GpuImageSpec *to)
{
  const GpuImageSpec from_spec = test_spec (from, 70, 6);
  const bool tensor = gpu_format_info (to->format)->is_tensor;
  g_autofree uint8_t *bytes = test_random_bytes (from_spec.size, from);
  g_autoptr (GError) error = NULL;

  GpuImage *near = test_image_new (fixture->device, &from_spec, fixture->stream);
  GpuImage *near_result = test_image_new (fixture->device, to, fixture->stream);
  GpuImage *far = far_image (fixture, from, 70, 6);
  /* Tensors are dense. */
  GpuImage *far_result = tensor ? test_image_new (fixture->device, to, fixture->stream)
                                : far_image (fixture, to->format, to->width, to->height);
  if (test_is_cuda () && (!far || !far_result)) {
    g_test_skip ("the GPU has no memory for images of 5 GiB");
  } else {
    g_assert_true (far && far_result);
    test_image_write (fixture->stream, near, bytes, &from_spec);
    test_image_write (fixture->stream, far, bytes, &from_spec);
    g_assert_true (op (fixture->stream, near, near_result, params, &error));
    g_assert_true (op (fixture->stream, far, far_result, params, &error));
    g_autofree uint8_t *expected = test_image_read (fixture->stream, near_result, 0);

    GpuImage *copy = test_image_new (fixture->device, to, fixture->stream);
    g_assert_true (gpu_image_copy (fixture->stream, far_result, copy, &error));
    test_assert_image (fixture->stream, copy, expected, to);
    gpu_image_unref (copy);
  }
  gpu_image_unref (near);
  gpu_image_unref (near_result);
  gpu_image_unref (far);
  gpu_image_unref (far_result);
}

static bool
flip (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_flip (stream, src, dst, *(const GpuOrientation *)params, error);
}

static bool
resize (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_resize (stream, src, dst, *(const GpuResizeFilter *)params, error);
}

static bool
convert (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_convert (stream, src, dst, NULL, error);
}

static bool
normalize (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_normalize (stream, src, dst, params, error);
}

static bool
reformat (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error)
{
  return gpu_reformat (stream, src, dst, NULL, error);
}

static void
test_flip (OpFixture *fixture, const void *data)
{
  static const GpuOrientation turns[] = {GPU_ORIENTATION_180, GPU_ORIENTATION_90R};

  for (unsigned i = 0; i < G_N_ELEMENTS (turns); i++) {
    GpuImageSpec to = test_spec (GPU_FORMAT_NV12, i ? 6 : 70, i ? 70 : 6);

    check (fixture, flip, &turns[i], GPU_FORMAT_NV12, &to);
  }
}

static void
test_resize (OpFixture *fixture, const void *data)
{
  for (unsigned filter = 0; filter < GPU_N_RESIZE_FILTERS; filter++) {
    const GpuResizeFilter params = (GpuResizeFilter)filter;
    GpuImageSpec rgb = test_spec (GPU_FORMAT_RGB, 50, 9), i420 = test_spec (GPU_FORMAT_I420, 90, 5);
    GpuImageSpec small = test_spec (GPU_FORMAT_NV12, 20, 5);

    check (fixture, resize, &params, GPU_FORMAT_RGB, &rgb);
    check (fixture, resize, &params, GPU_FORMAT_I420, &i420);
    check (fixture, resize, &params, GPU_FORMAT_NV12, &small);
  }
}

static void
test_convert (OpFixture *fixture, const void *data)
{
  static const GpuFormat routes[][2] = {{GPU_FORMAT_NV12, GPU_FORMAT_RGB},
                                        {GPU_FORMAT_BGRA, GPU_FORMAT_I420},
                                        {GPU_FORMAT_NV12, GPU_FORMAT_P010_10LE},
                                        {GPU_FORMAT_RGBA, GPU_FORMAT_RGBP}};

  for (unsigned i = 0; i < G_N_ELEMENTS (routes); i++) {
    GpuImageSpec to = test_spec (routes[i][1], 70, 6);

    check (fixture, convert, NULL, routes[i][0], &to);
  }
}

static void
test_tensors (OpFixture *fixture, const void *data)
{
  GpuImageSpec rgb = test_spec (GPU_FORMAT_RGB, 70, 6), tensor;
  g_autoptr (GError) error = NULL;
  GpuNormalize params;

  gpu_normalize_init (&params);
  params.scale[1] = 0.5f;
  check (fixture, normalize, &params, GPU_FORMAT_RGB, &rgb);
  gpu_image_spec_init_tensor (&tensor, GPU_ELEMENT_F16, GPU_LAYOUT_CHW, 3, 70, 6, &error);
  g_assert_no_error (error);
  check (fixture, normalize, &params, GPU_FORMAT_BGRX, &tensor);
  gpu_image_spec_init_tensor (&tensor, GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 3, 70, 6, &error);
  check (fixture, reformat, NULL, GPU_FORMAT_BGR, &tensor);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  OP_TEST ("/far/flip", test_flip);
  OP_TEST ("/far/resize", test_resize);
  OP_TEST ("/far/convert", test_convert);
  OP_TEST ("/far/tensors", test_tensors);
  return g_test_run ();
}
