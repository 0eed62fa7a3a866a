/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See common.h.
 */
#include "common.h"

#include "context.h"
#include "watch.h"

#include "../emulator/open.h"
#include "gpucache/device-priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *
device_kind (void)
{
  const char *kind = g_getenv ("GPUCACHE_TEST_DEVICE");

  return kind && *kind ? kind : "cpu";
}

static unsigned
number_from_environment (const char *name, unsigned otherwise)
{
  const char *number = g_getenv (name);

  return number && *number ? (unsigned)MAX (1, atoi (number)) : otherwise;
}

static unsigned
n_gpus (void)
{
  return number_from_environment ("GPUCACHE_TEST_GPUS", 1);
}

static unsigned
n_contexts (void)
{
  return number_from_environment ("GPUCACHE_TEST_CONTEXTS", 1);
}

bool
test_leaves_out (void)
{
  static unsigned n_cases;

  return n_cases++ % number_from_environment ("GPUCACHE_TEST_EVERY", 1) > 0;
}

/* Less than what meson gives a test, so that one that hangs on a GPU says where. */
#define PATIENCE_S 240

bool
test_is_lazy (void)
{
  return strcmp (device_kind (), "lazy") == 0;
}

bool
test_is_cuda (void)
{
  return strcmp (device_kind (), "cuda") == 0;
}

void
test_init (int *argc, char ***argv)
{
  if (!test_is_cuda () && !test_is_lazy () && strcmp (device_kind (), "cpu") != 0) {
    fprintf (stderr, "GPUCACHE_TEST_DEVICE=%s is none of cpu, lazy, cuda\n", device_kind ());
    exit (1);
  }
  open_fake_cuda ();
  if (test_is_cuda ()) {
    g_autoptr (GError) error = NULL;
    unsigned count = gpu_device_cuda_count (&error);
    if (count < n_gpus ()) {
      printf ("skipped: %u GPUs are needed, and there are %u%s%s\n", n_gpus (), count, error ? ": " : "",
              error ? error->message : "");
      exit (77);
    }
    test_watch_start (1000 * number_from_environment ("GPUCACHE_TEST_PATIENCE", PATIENCE_S));
    /* Never closed: with it the driver's context stays, which each test's own device would have to make anew. */
    for (unsigned i = 0; i < n_gpus (); i++)
      if (!gpu_device_cuda_new (i, &error))
        g_error ("%s", error->message);
  }
  /* GLib makes the lock of its error domains with the first error, in a way that ThreadSanitizer cannot follow. */
  g_error_free (g_error_new_literal (GPU_ERROR, GPU_ERROR_INVALID, "the first"));
  g_test_init (argc, argv, NULL);
}

GpuDevice *
test_device_new_full (unsigned ordinal, uint64_t memory_bytes)
{
  g_autoptr (GError) error = NULL;

  if (test_is_cuda ()) {
    GpuDevice *device = ordinal % n_contexts () == 0
                            ? gpu_device_cuda_new (ordinal % n_gpus (), &error)
                            : gpu_device_cuda_new_for_context (test_cuda_context (ordinal % n_gpus ()), &error);
    g_assert_no_error (error);
    return device;
  }
  g_autofree char *name = g_strdup_printf ("cpu:%u", ordinal);
  GpuDevice *device = gpu_cpu_device_new (name, test_is_lazy () ? GPU_CPU_LAZY : GPU_CPU_THREADS, memory_bytes);
  g_assert_nonnull (device);
  return device;
}

GpuDevice *
test_device_new (void)
{
  return test_device_new_full (0, 0);
}

/* A multiplicative step and a shift: splitmix32, which takes any start. */
uint32_t
test_random (uint32_t *state)
{
  uint32_t x = *state += 0x9E3779B9u;

  x = (x ^ (x >> 16)) * 0x21F0AAADu;
  x = (x ^ (x >> 15)) * 0x735A2D97u;
  return x ^ (x >> 15);
}

void
test_random_fill (void *data, size_t size, uint32_t *state)
{
  uint8_t *bytes = data;

  for (size_t i = 0; i < size; i += 4) {
    uint32_t word = test_random (state);
    memcpy (bytes + i, &word, MIN (size - i, 4));
  }
}

uint8_t *
test_random_bytes (size_t size, uint32_t seed)
{
  uint8_t *bytes = g_malloc (size);

  test_random_fill (bytes, size, &seed);
  return bytes;
}

GpuImageSpec
test_spec (GpuFormat format, uint32_t width, uint32_t height)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;

  bool ok = gpu_image_spec_init (&spec, format, width, height, 0, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
  return spec;
}

GpuImage *
test_image_new (GpuDevice *device, const GpuImageSpec *spec, GpuStream *stream)
{
  g_autoptr (GError) error = NULL;

  GpuImage *image = gpu_image_acquire (device, spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  g_assert_nonnull (image);
  return image;
}

void
test_image_write (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec)
{
  g_autoptr (GError) error = NULL;

  bool ok = gpu_image_copy_from_host (stream, image, host, host_spec, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

uint8_t *
test_image_read (GpuStream *stream, GpuImage *image, uint8_t padding)
{
  g_autoptr (GError) error = NULL;
  const GpuImageSpec *spec = gpu_image_spec (image);
  uint8_t *host = g_malloc (spec->size);

  memset (host, padding, spec->size);
  bool ok = gpu_image_copy_to_host (stream, image, host, spec, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
  return host;
}

static void fail_at (const char *file, int line, const char *format, ...) G_GNUC_PRINTF (3, 4);

static void
fail_at (const char *file, int line, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  g_assertion_message (G_LOG_DOMAIN, file, line, G_STRFUNC, message);
}

void
test_assert_samples_at (const char *file, int line, const void *a, const GpuImageSpec *a_spec, const void *b,
                        const GpuImageSpec *b_spec)
{
  const GpuFormatInfo *info = gpu_format_info (a_spec->format);

  if (a_spec->format != b_spec->format || a_spec->width != b_spec->width || a_spec->height != b_spec->height)
    fail_at (file, line, "a picture of format %d, %ux%u is compared with one of format %d, %ux%u", a_spec->format,
             a_spec->width, a_spec->height, b_spec->format, b_spec->width, b_spec->height);
  for (unsigned p = 0; p < info->n_planes; p++) {
    size_t row_bytes = gpu_image_spec_row_bytes (a_spec, p);
    for (size_t y = 0; y < gpu_image_spec_plane_height (a_spec, p); y++) {
      const uint8_t *a_row = (const uint8_t *)a + a_spec->offset[p] + y * a_spec->stride[p];
      const uint8_t *b_row = (const uint8_t *)b + b_spec->offset[p] + y * b_spec->stride[p];
      if (memcmp (a_row, b_row, row_bytes) == 0)
        continue;
      size_t x = 0;
      while (a_row[x] == b_row[x])
        x++;
      fail_at (file, line, "%s %ux%u, plane %u, row %zu, byte %zu of %zu: 0x%02x, not 0x%02x", info->name,
               a_spec->width, a_spec->height, p, y, x, row_bytes, a_row[x], b_row[x]);
    }
  }
}

void
test_assert_image_at (const char *file, int line, GpuStream *stream, GpuImage *image, const void *host,
                      const GpuImageSpec *host_spec)
{
  g_autofree uint8_t *bytes = test_image_read (stream, image, 0);

  test_assert_samples_at (file, line, bytes, gpu_image_spec (image), host, host_spec);
}

void
test_assert_image_is_at (const char *file, int line, GpuStream *stream, GpuImage *image, uint8_t value)
{
  const GpuImageSpec *spec = gpu_image_spec (image);
  g_autofree uint8_t *expected = g_malloc (spec->size);

  memset (expected, value, spec->size);
  test_assert_image_at (file, line, stream, image, expected, spec);
}
