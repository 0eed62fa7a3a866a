/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Applies operations to raw pictures, for comparisons with other programs' results. Reads jobs from stdin until it
 * ends: a line of words, then the picture's bytes without padding; writes the result's bytes without padding to stdout.
 *
 *   resize FORMAT WIDTH HEIGHT TO-WIDTH TO-HEIGHT FILTER ANTIALIAS X Y BOX-WIDTH BOX-HEIGHT
 *   normalize FORMAT WIDTH HEIGHT ELEMENT LAYOUT CHANNELS ORDER IS-STDDEV EPSILON GLOBAL-SCALE SHIFT BASE... SCALE...
 *   elements CHANNELS WIDTH HEIGHT FROM TO SCALE OFFSET
 *
 * Enumerations are numbers; bases and scales are four each. The device is the one that GPUCACHE_TEST_DEVICE names.
 */
#include "../lib/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static GpuDevice *device;
static GpuStream *stream;
static FILE *results;

static void
check (bool ok, const GError *error)
{
  if (ok)
    return;
  fprintf (stderr, "%s\n", error ? error->message : "a job cannot be read");
  exit (1);
}

static unsigned
number (char **words, unsigned i)
{
  return (unsigned)strtoul (words[i], NULL, 10);
}

static double
real (char **words, unsigned i)
{
  return g_ascii_strtod (words[i], NULL);
}

/* The job's picture, from stdin. */
static GpuImage *
read_image (const GpuImageSpec *spec, const GpuImageSpec *packed)
{
  g_autofree uint8_t *bytes = g_malloc (packed->size);
  GpuImage *image = test_image_new (device, spec, stream);

  check (fread (bytes, 1, packed->size, stdin) == packed->size, NULL);
  test_image_write (stream, image, bytes, packed);
  return image;
}

static void
write_image (GpuImage *image, const GpuImageSpec *packed)
{
  g_autofree uint8_t *bytes = g_malloc (packed->size);
  g_autoptr (GError) error = NULL;

  check (gpu_image_copy_to_host (stream, image, bytes, packed, &error), error);
  check (fwrite (bytes, 1, packed->size, results) == packed->size, NULL);
  fflush (results);
}

static GpuImageSpec
picture (const char *format, unsigned width, unsigned height, size_t alignment)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;

  check (gpu_image_spec_init (&spec, gpu_format_from_name (format), width, height, alignment, &error), error);
  return spec;
}

static GpuImageSpec
tensor (unsigned element, unsigned layout, unsigned channels, unsigned width, unsigned height)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;

  check (gpu_image_spec_init_tensor (&spec, (GpuElement)element, (GpuLayout)layout, channels, width, height, &error),
         error);
  return spec;
}

static void
resize (char **words)
{
  const unsigned w = number (words, 2), h = number (words, 3), to_w = number (words, 4), to_h = number (words, 5);
  const GpuImageSpec spec = picture (words[1], w, h, 0), packed = picture (words[1], w, h, 1);
  const GpuImageSpec to = picture (words[1], to_w, to_h, 0), to_packed = picture (words[1], to_w, to_h, 1);
  const GpuResize params = {.filter = (GpuResizeFilter)number (words, 6),
                            .antialias = number (words, 7),
                            .src = {real (words, 8), real (words, 9), real (words, 10), real (words, 11)}};
  g_autoptr (GError) error = NULL;
  GpuImage *src = read_image (&spec, &packed), *dst = test_image_new (device, &to, stream);

  check (gpu_resize_full (stream, src, dst, &params, &error), error);
  write_image (dst, &to_packed);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

static void
normalize (char **words)
{
  const unsigned w = number (words, 2), h = number (words, 3);
  const GpuImageSpec spec = picture (words[1], w, h, 0), packed = picture (words[1], w, h, 1);
  const GpuImageSpec to = tensor (number (words, 4), number (words, 5), number (words, 6), w, h);
  GpuNormalize params = {.order = (GpuChannelOrder)number (words, 7),
                         .scale_is_stddev = number (words, 8),
                         .epsilon = real (words, 9),
                         .global_scale = real (words, 10),
                         .shift = real (words, 11)};
  g_autoptr (GError) error = NULL;
  GpuImage *src = read_image (&spec, &packed), *dst = test_image_new (device, &to, stream);

  for (unsigned c = 0; c < 4; c++) {
    params.base[c] = real (words, 12 + c);
    params.scale[c] = real (words, 16 + c);
  }
  check (gpu_normalize (stream, src, dst, &params, &error), error);
  write_image (dst, &to);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

static void
elements (char **words)
{
  const unsigned channels = number (words, 1), w = number (words, 2), h = number (words, 3);
  const GpuImageSpec spec = tensor (number (words, 4), GPU_LAYOUT_HWC, channels, w, h);
  const GpuImageSpec to = tensor (number (words, 5), GPU_LAYOUT_HWC, channels, w, h);
  const GpuConvert params = {.scale = (float)real (words, 6), .offset = (float)real (words, 7)};
  g_autoptr (GError) error = NULL;
  GpuImage *src = read_image (&spec, &spec), *dst = test_image_new (device, &to, stream);

  check (gpu_convert (stream, src, dst, &params, &error), error);
  write_image (dst, &to);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  char line[1024];

  /* What the test framework says goes elsewhere. */
  results = fdopen (dup (STDOUT_FILENO), "wb");
  check (results != NULL && dup2 (STDERR_FILENO, STDOUT_FILENO) >= 0, NULL);
  test_init (&argc, &argv);
  device = test_device_new ();
  stream = gpu_stream_new (device, false, &error);
  check (stream != NULL, error);

  while (fgets (line, sizeof line, stdin)) {
    g_auto (GStrv) words = g_strsplit (g_strstrip (line), " ", -1);
    const unsigned n = g_strv_length (words);

    if (n == 12 && !strcmp (words[0], "resize"))
      resize (words);
    else if (n == 20 && !strcmp (words[0], "normalize"))
      normalize (words);
    else if (n == 8 && !strcmp (words[0], "elements"))
      elements (words);
    else
      check (false, NULL);
  }
  gpu_stream_unref (stream);
  gpu_device_unref (device);
  fclose (results);
  return 0;
}
