/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * When managed memory is better than copies: a picture that the host writes and reads parts of, and the device all.
 */
#include "bench.h"

#include <stdatomic.h>
#include <string.h>

/* A frame that the host writes a part of, the device mirrors, and the host reads that part of. */
typedef struct {
  GpuStream *stream;
  GpuImage *host;     /* pinned or managed */
  GpuImage *in, *out; /* on the device; for pinned memory */
  unsigned part;      /* the host touches one row of so many */
  bool prefetches;
} Shared;

static void
touch (Shared *shared, bool writes)
{
  const GpuImageSpec *spec = gpu_image_spec (shared->host);
  static atomic_uint sum;
  for (uint32_t y = 0; y < spec->height; y += shared->part) {
    uint8_t *row = (uint8_t *)gpu_image_data (shared->host) + y * spec->stride[0];
    if (writes)
      memset (row, (int)y, spec->stride[0]);
    else
      for (size_t x = 0; x < spec->stride[0]; x += 64)
        atomic_fetch_add_explicit (&sum, row[x], memory_order_relaxed);
  }
}

static double
run_shared (void *data, unsigned n)
{
  Shared *shared = data;
  GError *error = NULL;
  double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    gpu_image_wait (shared->host, GPU_ACCESS_WRITE, &error);
    touch (shared, true);
    if (shared->in) {
      gpu_image_copy (shared->stream, shared->host, shared->in, &error);
      gpu_flip (shared->stream, shared->in, shared->out, GPU_ORIENTATION_180, &error);
      gpu_image_copy (shared->stream, shared->out, shared->host, &error);
    } else {
      if (shared->prefetches)
        gpu_image_prefetch (shared->stream, shared->host, GPU_SIDE_DEVICE, &error);
      gpu_flip (shared->stream, shared->host, shared->out, GPU_ORIENTATION_180, &error);
      gpu_flip (shared->stream, shared->out, shared->host, GPU_ORIENTATION_180, &error);
      if (shared->prefetches)
        gpu_image_prefetch (shared->stream, shared->host, GPU_SIDE_HOST, &error);
    }
    gpu_image_wait (shared->host, GPU_ACCESS_WRITE, &error);
    touch (shared, false);
    bench_check (error);
  }
  return bench_now () - start;
}

static GpuImage *
acquire (GpuDevice *device, GpuStream *stream, const GpuImageSpec *spec, GpuMemoryKind kind)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (device, spec, kind, stream, GPU_ACQUIRE_DEFAULT, &error);
  if (!image && kind == GPU_MEMORY_MANAGED) {
    g_clear_error (&error);
    return NULL;
  }
  bench_check (error);
  return image;
}

static void
compare_managed (GpuDevice *device)
{
  static const unsigned parts[] = {1, 16, 256};
  const GpuImageSpec spec = bench_spec (GPU_FORMAT_RGBA, 1920, 1080);
  GpuStream *stream = bench_stream_new (device);
  GpuImage *pinned = acquire (device, stream, &spec, GPU_MEMORY_HOST);
  GpuImage *managed = acquire (device, stream, &spec, GPU_MEMORY_MANAGED);
  GpuImage *in = acquire (device, stream, &spec, GPU_MEMORY_STREAM_ORDERED);
  GpuImage *out = acquire (device, stream, &spec, GPU_MEMORY_STREAM_ORDERED);

  for (size_t i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *title = g_strdup_printf (
        "1080p RGBA that the host writes and reads one row in %u of, and the device all, a round", parts[i]);
    Shared copies = {stream, pinned, in, out, parts[i], false};
    Shared moved = {stream, managed, NULL, out, parts[i], true};
    Shared faulted = {stream, managed, NULL, out, parts[i], false};
    const BenchCase cases[] = {
        {.name = "pinned memory, copied there and back", .run = run_shared, .data = &copies},
        {.name = "managed memory, prefetched", .run = run_shared, .data = &moved},
        {.name = "managed memory, pages fetched as they are touched", .run = run_shared, .data = &faulted},
    };
    bench_compare (title, BENCH_TIME, cases, managed ? G_N_ELEMENTS (cases) : 1);
  }
  gpu_image_unref (pinned);
  if (managed)
    gpu_image_unref (managed);
  gpu_image_unref (in);
  gpu_image_unref (out);
  gpu_stream_unref (stream);
}

int
main (int argc, char **argv)
{
  GpuDevice *device = bench_init (argc, argv);
  compare_managed (device);
  gpu_device_unref (device);
  return bench_finish ();
}
