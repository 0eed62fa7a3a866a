/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See stamp.h.
 */
#include "stamp.h"

#include "common.h"

#include <gpucache/image-priv.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *first_error;
static atomic_uint n_errors;

static void
wrong (uint32_t expected, uint32_t found, size_t at)
{
  if (atomic_fetch_add (&n_errors, 1) > 0)
    return;
  pthread_mutex_lock (&lock);
  first_error = g_strdup_printf ("word %zu is 0x%08x instead of 0x%08x", at, found, expected);
  pthread_mutex_unlock (&lock);
}

/* The CPU device's kernels. */

typedef struct {
  const uint32_t *src; /* NULL: nothing is read */
  uint32_t *dst;       /* NULL: nothing is written */
  uint32_t src_words, dst_words;
  uint32_t src_stamp, dst_stamp;
} StampArgs;

static void
look (const StampArgs *args)
{
  for (size_t i = 0; args->src && i < args->src_words; i++) {
    if (args->src[i] != args->src_stamp) {
      wrong (args->src_stamp, args->src[i], i);
      return;
    }
  }
}

static void
run_stamp (const void *data, GpuExtent extent)
{
  const StampArgs *args = data;

  look (args);
  sched_yield (); /* so that another worker has a chance to do what it must not */
  for (size_t i = 0; args->dst && i < args->dst_words; i++)
    args->dst[i] = args->dst_stamp;
  if (args->src != args->dst)
    look (args);
}

static const GpuKernel stamp_kernel = {
    .name = "gpu_test_stamp",
    .args_size = sizeof (StampArgs),
    .block = {1, 1, 1},
    .run = run_stamp,
};

static bool
launch_stamp (GpuDevice *device, void *native, void *data, GError **error)
{
  return gpu_device_launch (device, &stamp_kernel, data, (GpuExtent){1, 1, 1}, native, error);
}

static void
launch (GpuStream *stream, GpuImage *src, uint32_t src_stamp, GpuImage *dst, uint32_t dst_stamp)
{
  GError *error = NULL;
  StampArgs args = {.src_stamp = src_stamp, .dst_stamp = dst_stamp};

  if (src) {
    args.src = gpu_image_data (src);
    args.src_words = (uint32_t)(gpu_image_spec (src)->size / sizeof *args.src);
  }
  if (dst) {
    args.dst = gpu_image_data (dst);
    args.dst_words = (uint32_t)(gpu_image_spec (dst)->size / sizeof *args.dst);
  }
  bool ok = gpu_images_submit (stream, &src, src != NULL, &dst, dst != NULL, launch_stamp, &args, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

/* Elsewhere: copies of what was read, to be looked at when all is done. */

typedef struct {
  GpuImage *image;
  uint8_t value;
} Evidence;

static GPtrArray *evidence;

static uint8_t
byte_of (uint32_t stamp)
{
  return (uint8_t)(stamp * 2654435761u >> 24);
}

static void
fill (GpuStream *stream, GpuImage *image, uint32_t stamp)
{
  GError *error = NULL;

  gpu_image_fill (stream, image, byte_of (stamp), &error);
  g_assert_no_error (error);
}

static void
keep_copy (GpuStream *stream, GpuImage *image, uint32_t stamp)
{
  GError *error = NULL;
  GpuImage *copy = gpu_image_acquire (gpu_image_device (image), gpu_image_spec (image), GPU_MEMORY_STREAM_ORDERED,
                                      stream, GPU_ACQUIRE_DEFAULT, &error);
  if (g_error_matches (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY)) {
    g_error_free (error);
    return;
  }
  g_assert_no_error (error);
  gpu_image_copy (stream, image, copy, &error);
  g_assert_no_error (error);
  Evidence *one = g_new (Evidence, 1);
  *one = (Evidence){copy, byte_of (stamp)};
  pthread_mutex_lock (&lock);
  if (!evidence)
    evidence = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (evidence, one);
  pthread_mutex_unlock (&lock);
}

void
stamp_write (GpuStream *stream, GpuImage *image, uint32_t stamp)
{
  if (gpu_device_is_host (gpu_image_device (image)))
    launch (stream, NULL, 0, image, stamp);
  else
    fill (stream, image, stamp);
}

void
stamp_check (GpuStream *stream, GpuImage *image, uint32_t stamp)
{
  if (gpu_device_is_host (gpu_image_device (image)))
    launch (stream, image, stamp, NULL, 0);
  else
    keep_copy (stream, image, stamp);
}

void
stamp_convert (GpuStream *stream, GpuImage *src, uint32_t stamp, GpuImage *dst, uint32_t dst_stamp)
{
  if (gpu_device_is_host (gpu_image_device (src))) {
    launch (stream, src, stamp, dst, dst_stamp);
  } else {
    keep_copy (stream, src, stamp);
    fill (stream, dst, dst_stamp);
  }
}

void
stamp_host_write (GpuDevice *device, void *data, size_t size, uint32_t stamp)
{
  if (gpu_device_is_host (device))
    for (size_t i = 0; i < size / sizeof stamp; i++)
      ((uint32_t *)data)[i] = stamp;
  else
    memset (data, byte_of (stamp), size);
}

void
stamp_host_check (GpuDevice *device, const void *data, size_t size, uint32_t stamp)
{
  const bool is_host = gpu_device_is_host (device);
  const uint32_t expected = is_host ? stamp : byte_of (stamp) * 0x01010101u;
  for (size_t i = 0; i < size / sizeof stamp; i++)
    if (((const uint32_t *)data)[i] != expected) {
      wrong (expected, ((const uint32_t *)data)[i], i);
      return;
    }
}

void
stamp_settle (uint32_t seed)
{
  for (unsigned i = 0; evidence && i < evidence->len; i++) {
    Evidence *one = g_ptr_array_index (evidence, i);
    GpuStream *stream = gpu_stream_new (gpu_image_device (one->image), false, NULL);
    g_assert_nonnull (stream);
    g_autofree uint8_t *bytes = test_image_read (stream, one->image, one->value);
    for (size_t k = 0; k < gpu_image_spec (one->image)->size; k++) {
      if (bytes[k] != one->value) {
        wrong (one->value, bytes[k], k);
        break;
      }
    }
    gpu_stream_unref (stream);
    gpu_image_unref (one->image);
  }
  g_clear_pointer (&evidence, g_ptr_array_unref);
  if (atomic_load (&n_errors) > 0)
    g_error ("seed %u: %u reads found wrong bytes; the first: %s", seed, atomic_load (&n_errors), first_error);
}
