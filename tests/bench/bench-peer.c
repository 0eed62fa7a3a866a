/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Frames from one device to another: the rate of copies out of the cache and into it, alone and with a kernel on each
 * side at the same time, beside the driver's copy of the same bytes between two buffers that never change.
 */
#include "bench.h"

#include <gpucache/flip.h>
#include <gpucache/testing.h>

#ifdef GPU_HAVE_CUDA
#include <gpucache/cuda-priv.h>
#endif
#include <gpucache/device-priv.h>

#include <stdio.h>

#define FRAMES_IN_FLIGHT 8
#define N_FIXED FRAMES_IN_FLIGHT
#define N_FRAMES 64           /* for the rate in bytes */
#define MOST_TIME (1. / 0.95) /* 95% of the rate */

/* Device 0 is read, device 1 reads. On each, kernels and copies have streams of their own. */
typedef struct {
  GpuDevice *device[2];
  GpuStream *work[2], *transfer[2];
  GpuThrottle *throttle[2];
  GpuImageSpec spec;
  GpuImage *fixed[2][N_FIXED]; /* what the driver's copies go between, in turn */
  GpuImage *scratch[2];
  void *raw_stream;
  void *raw_event;
  double host_ns; /* of the last run, without waiting */
} Route;

/* The driver's call and nothing around it; on the CPU device, the device's own copy. */
static void
copy_raw (Route *route, void *dst, const void *src, size_t size)
{
  GError *error = NULL;
#ifdef GPU_HAVE_CUDA
  if (gpu_device_cuda_context (route->device[1])) {
    GpuCudaDevice *to = gpu_cuda_device (route->device[1]), *from = gpu_cuda_device (route->device[0]);
    CUresult result = to->cu->MemcpyPeerAsync ((CUdeviceptr)(uintptr_t)dst, to->context, (CUdeviceptr)(uintptr_t)src,
                                               from->context, size, route->raw_stream);
    if (result != CUDA_SUCCESS)
      gpu_cuda_set_error (&error, to->cu, result, "cuMemcpyPeerAsync", to->label);
    bench_check (error);
    return;
  }
#endif
  const GpuCopy copy = {dst, size, src, size, size, 1};
  gpu_device_copy (route->device[1], &copy, GPU_COPY_DEVICE, route->raw_stream, &error);
  bench_check (error);
}

static double
copy_in_turn (Route *route, bool with_events, unsigned n)
{
  GError *error = NULL;
#ifdef GPU_HAVE_CUDA
  bool is_cuda = gpu_device_cuda_context (route->device[1]) != NULL;
  if (is_cuda)
    gpu_cuda_enter (gpu_cuda_device (route->device[1]), &error);
  bench_check (error);
#endif
  double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    copy_raw (route, gpu_image_data (route->fixed[1][i % N_FIXED]), gpu_image_data (route->fixed[0][i % N_FIXED]),
              route->spec.size);
    if (with_events)
      gpu_device_event_record (route->device[1], route->raw_event, route->raw_stream, &error);
  }
  gpu_device_stream_synchronize (route->device[1], route->raw_stream, &error);
  double ns = bench_now () - start;
#ifdef GPU_HAVE_CUDA
  if (is_cuda)
    gpu_cuda_leave (gpu_cuda_device (route->device[1]));
#endif
  bench_check (error);
  return ns;
}

static double
run_raw (void *data, unsigned n)
{
  return copy_in_turn (data, false, n);
}

static double
run_raw_with_events (void *data, unsigned n)
{
  return copy_in_turn (data, true, n);
}

static GpuImage *
acquire (Route *route, unsigned i, GpuStream *stream)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (route->device[i], &route->spec, GPU_MEMORY_STREAM_ORDERED, stream,
                                       GPU_ACQUIRE_DEFAULT, &error);
  bench_check (error);
  return image;
}

/* A kernel that reads one frame and writes another. */
static void
work (Route *route, unsigned i, GpuImage *src, GpuImage *dst)
{
  GError *error = NULL;
  gpu_flip (route->work[i], src, dst, GPU_ORIENTATION_VERTICAL, &error);
  bench_check (error);
}

typedef enum {
  WORK_BEFORE = 1 << 0, /* a kernel on the first device writes the frame */
  COPY = 1 << 1,
  WORK_AFTER = 1 << 2, /* one on the second reads what arrived */
} Parts;

static double
run_frames (Route *route, Parts parts, unsigned n_transfers, unsigned n)
{
  GError *error = NULL;
  double start = bench_now (), waited = 0;
  for (unsigned i = 0; i < n; i++) {
    GpuStream *transfer = route->transfer[i % n_transfers];
    double before = bench_now ();
    gpu_throttle_begin (route->throttle[0], &error);
    gpu_throttle_begin (route->throttle[1], &error);
    bench_check (error);
    waited += bench_now () - before;
    GpuImage *src = acquire (route, 0, route->work[0]);
    if (parts & WORK_BEFORE)
      work (route, 0, route->scratch[0], src);
    GpuImage *dst = acquire (route, 1, transfer);
    if (parts & COPY)
      gpu_image_copy (transfer, src, dst, &error);
    bench_check (error);
    gpu_image_unref (src);
    if (parts & WORK_AFTER)
      work (route, 1, dst, route->scratch[1]);
    gpu_image_unref (dst);
    gpu_throttle_end (route->throttle[0], route->work[0], &error);
    gpu_throttle_end (route->throttle[1], parts & WORK_AFTER ? route->work[1] : transfer, &error);
    bench_check (error);
  }
  route->host_ns = bench_now () - start - waited;
  GpuStream *const streams[] = {route->work[0], route->transfer[0], route->transfer[1], route->work[1]};
  for (unsigned i = 0; i < G_N_ELEMENTS (streams); i++) {
    gpu_stream_synchronize (streams[i], &error);
    bench_check (error);
  }
  return bench_now () - start;
}

static double
run_copies (void *data, unsigned n)
{
  return run_frames (data, COPY, 1, n);
}

static double
run_copies_in_turn (void *data, unsigned n)
{
  return run_frames (data, COPY, 2, n);
}

static double
run_all (void *data, unsigned n)
{
  return run_frames (data, WORK_BEFORE | COPY | WORK_AFTER, 1, n);
}

static double
run_all_in_turn (void *data, unsigned n)
{
  return run_frames (data, WORK_BEFORE | COPY | WORK_AFTER, 2, n);
}

static double
run_work (void *data, unsigned n)
{
  return run_frames (data, WORK_BEFORE | WORK_AFTER, 1, n);
}

static void
open_route (Route *route, GpuDevice *from, GpuDevice *to, const GpuImageSpec *spec)
{
  GError *error = NULL;
  *route = (Route){.device = {from, to}, .spec = *spec};
  for (unsigned i = 0; i < 2; i++) {
    route->work[i] = gpu_stream_new (route->device[i], true, &error);
    bench_check (error);
    route->throttle[i] = gpu_throttle_new (FRAMES_IN_FLIGHT);
    route->scratch[i] = acquire (route, i, route->work[i]);
    for (unsigned k = 0; k < N_FIXED; k++) {
      route->fixed[i][k] = acquire (route, i, route->work[i]);
      gpu_image_fill (route->work[i], route->fixed[i][k], 0x5a, &error);
    }
    gpu_image_fill (route->work[i], route->scratch[i], 0x5a, &error);
    gpu_stream_synchronize (route->work[i], &error);
    bench_check (error);
  }
  for (unsigned i = 0; i < 2; i++) {
    route->transfer[i] = gpu_stream_new (to, true, &error);
    bench_check (error);
  }
  gpu_device_event_create (to, &route->raw_event, &error);
  bench_check (error);
  gpu_device_stream_create (to, &route->raw_stream, &error);
  bench_check (error);
  run_copies (route, 1); /* opens the way */
}

static void
close_route (Route *route)
{
  gpu_device_stream_destroy (route->device[1], route->raw_stream);
  gpu_device_event_destroy (route->device[1], route->raw_event);
  for (unsigned i = 0; i < 2; i++) {
    for (unsigned k = 0; k < N_FIXED; k++)
      gpu_image_unref (route->fixed[i][k]);
    gpu_image_unref (route->scratch[i]);
    gpu_throttle_free (route->throttle[i]);
    gpu_stream_unref (route->work[i]);
    gpu_stream_unref (route->transfer[i]);
  }
}

/* What came over is what was sent, by the same ways that were timed. */
static void
check_bytes (Route *route)
{
  GError *error = NULL;
  g_autofree uint8_t *sent = g_malloc (route->spec.size), *got = g_malloc0 (route->spec.size);
  for (size_t i = 0; i < route->spec.size; i++)
    sent[i] = (uint8_t)(i * 2654435761u >> 13);
  GpuImage *src = acquire (route, 0, route->work[0]), *dst = acquire (route, 1, route->transfer[0]);
  gpu_image_copy_from_host (route->work[0], src, sent, &route->spec, &error);
  bench_check (error);
  gpu_image_copy (route->transfer[0], src, dst, &error);
  bench_check (error);
  gpu_image_copy_to_host (route->transfer[0], dst, got, &route->spec, &error);
  bench_check (error);
  size_t wrong = 0;
  for (unsigned p = 0; p < gpu_format_info (route->spec.format)->n_planes; p++)
    for (size_t y = 0; y < gpu_image_spec_plane_height (&route->spec, p); y++)
      for (size_t x = 0; x < gpu_image_spec_row_bytes (&route->spec, p); x++) {
        size_t at = route->spec.offset[p] + y * route->spec.stride[p] + x;
        wrong += got[at] != sent[at];
      }
  if (wrong > 0)
    bench_fail ("%zu bytes of a frame from %s arrived wrong on %s", wrong, gpu_device_name (route->device[0]),
                gpu_device_name (route->device[1]));
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

static GpuDevice *
open_other (GpuDevice *first)
{
  GError *error = NULL;
  bool is_cuda = gpu_device_cuda_context (first) != NULL;
  const char *name = is_cuda ? "cuda:1" : "cpu:1";
  if (g_strcmp0 (gpu_device_name (first), name) == 0)
    name = is_cuda ? "cuda:0" : "cpu:0";
  GpuDevice *other = gpu_device_open (name, &error);
  if (is_cuda && g_error_matches (error, GPU_ERROR, GPU_ERROR_NO_DEVICE)) {
    printf ("nothing to be measured: %s\n", error->message);
    g_error_free (error);
    return NULL;
  }
  bench_check (error);
  return other;
}

int
main (int argc, char **argv)
{
  static const struct {
    const char *name;
    uint32_t width, height;
  } frames[] = {{"1920x1080", 1920, 1080}, {"3840x2160", 3840, 2160}};
  GpuDevice *first = bench_init (argc, argv), *other = open_other (first);
  if (!other) {
    gpu_device_unref (first);
    return bench_finish ();
  }

  /* On the CPU device kernels and copies share the cores. */
  BenchGoal goal = gpu_device_is_host (first) ? BENCH_NO_GOAL : BENCH_AT_MOST;
  for (unsigned i = 0; i < G_N_ELEMENTS (frames); i++)
    for (unsigned back = 0; back < 2; back++) {
      GpuImageSpec spec = bench_spec (GPU_FORMAT_RGBA, frames[i].width, frames[i].height);
      Route route;
      open_route (&route, back ? other : first, back ? first : other, &spec);
      check_bytes (&route);

      const BenchCase cases[] = {
          {"the driver's copy, 8 frames in turn", run_raw, &route, 1, BENCH_NO_GOAL, 0},
          {"the same, with an event after each", run_raw_with_events, &route, 1, BENCH_NO_GOAL, 0},
          {"gpu_image_copy(), frames of both caches", run_copies, &route, 1, goal, MOST_TIME},
          {"the same, on two streams in turn", run_copies_in_turn, &route, 1, goal, MOST_TIME},
          {"the same, with a kernel on each side, one stream", run_all, &route, 1, goal, MOST_TIME},
          {"the same, two streams", run_all_in_turn, &route, 1, goal, MOST_TIME},
          {"the kernels without the copy", run_work, &route, 1, BENCH_NO_GOAL, 0},
      };
      g_autofree char *title = g_strdup_printf ("%s RGBA from %s to %s, a frame", frames[i].name,
                                                gpu_device_name (route.device[0]), gpu_device_name (route.device[1]));
      bench_compare (title, BENCH_TIME, cases, G_N_ELEMENTS (cases));
      double ns = run_raw (&route, N_FRAMES);
      printf ("  (the driver's copy: %.1f GB/s;", (double)spec.size * N_FRAMES / ns);
      run_copies (&route, N_FRAMES);
      printf (" a frame takes %.0f ns of the host's time to get and copy,", route.host_ns / N_FRAMES);
      run_all (&route, N_FRAMES);
      printf (" %.0f ns with the kernels)\n", route.host_ns / N_FRAMES);
      close_route (&route);
    }
  gpu_device_unref (other);
  gpu_device_unref (first);
  return bench_finish ();
}
