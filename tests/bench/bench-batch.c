/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Many cameras and one model: 32 streams of 1080p NV12 become 640x640 planar float32, each by a chain of its own, or
 * all in one batch. What counts is the host's time for a frame, and the device's beside the floor: a copy that reads
 * each byte which is needed of the cameras' frames once, and writes the tensor once. Pictures between the operations
 * are no part of the floor, nor is each camera's launch: it takes its frames as many at a time as its arguments hold.
 */
#include "bench.h"
#include "bytes.h"
#include "floor.h"

#include <gpucache/testing.h>

#include <string.h>

#define N 32
#define WIDTH 1920
#define HEIGHT 1080
#define SIZE 640
#define ROUNDS 21
#define TURNS 4 /* for each camera, in a round */

typedef struct {
  GpuImage *frame[2]; /* which take turns where they change */
  GpuStream *stream;
  GpuResizer *resizer;
} Camera;

typedef struct {
  Floor *floor;
  GpuStream *stream; /* of batches */
  GpuResizer *resizer;
  GpuNormalize normalize;
  GpuImageSpec camera, small, rgb, tensor;
  GpuImage *output; /* what the floor writes */
  Camera cameras[N];
  bool one_stream, changing, converting; /* to RGB, before it is normalised */
  unsigned turn;
} Bench;

static GpuDevice *device;
static const GpuResize resize = {.filter = GPU_RESIZE_BILINEAR};

static GpuBatch *
acquire_batch (const GpuImageSpec *spec, GpuStream *stream)
{
  GpuImageSpec specs[N];
  GError *error = NULL;
  for (unsigned i = 0; i < N; i++)
    specs[i] = *spec;
  GpuBatch *batch = gpu_batch_acquire (device, specs, N, GPU_MEMORY_STREAM_ORDERED, stream, &error);
  bench_check (error);
  return batch;
}

static GpuImage *
camera_frame (const Bench *self, const Camera *camera)
{
  return camera->frame[self->changing ? self->turn % G_N_ELEMENTS (camera->frame) : 0];
}

/* A frame of each camera, one after another. */
static void
submit_chains (void *data, unsigned n)
{
  Bench *self = data;
  for (unsigned i = 0; i < n * N; i++) {
    const Camera *camera = &self->cameras[i % N];
    GpuStream *stream = self->one_stream ? self->stream : camera->stream;
    GError *error = NULL;
    GpuImage *small = bench_image_new (device, &self->small, GPU_MEMORY_STREAM_ORDERED, stream);
    gpu_resizer_run (camera->resizer, stream, camera_frame (self, camera), small, &resize, &error);
    bench_check (error);
    if (self->converting) {
      GpuImage *rgb = bench_image_new (device, &self->rgb, GPU_MEMORY_STREAM_ORDERED, stream);
      gpu_convert (stream, small, rgb, NULL, &error);
      bench_check (error);
      gpu_image_unref (small);
      small = rgb;
    }
    GpuImage *tensor = bench_image_new (device, &self->tensor, GPU_MEMORY_STREAM_ORDERED, stream);
    gpu_normalize (stream, small, tensor, &self->normalize, &error);
    bench_check (error);
    gpu_image_unref (small);
    gpu_image_unref (tensor);
    self->turn += i % N == N - 1;
  }
}

static void
submit_batches (void *data, unsigned n)
{
  Bench *self = data;
  for (unsigned i = 0; i < n; i++, self->turn++) {
    GpuImage *frames[N];
    GError *error = NULL;
    for (unsigned k = 0; k < N; k++)
      frames[k] = camera_frame (self, &self->cameras[k]);
    GpuBatch *src = gpu_batch_new (frames, N, &error);
    bench_check (error);
    GpuBatch *small = acquire_batch (&self->small, self->stream);
    gpu_resizer_run_batch (self->resizer, self->stream, src, small, &resize, 1, &error);
    bench_check (error);
    gpu_batch_unref (src);
    if (self->converting) {
      GpuBatch *rgb = acquire_batch (&self->rgb, self->stream);
      gpu_convert_batch (self->stream, small, rgb, NULL, 1, &error);
      bench_check (error);
      gpu_batch_unref (small);
      small = rgb;
    }
    GpuBatch *tensor =
        gpu_batch_acquire_dense (device, &self->tensor, N, GPU_MEMORY_STREAM_ORDERED, self->stream, &error);
    bench_check (error);
    gpu_normalize_batch (self->stream, small, tensor, &self->normalize, 1, &error);
    bench_check (error);
    gpu_batch_unref (small);
    gpu_batch_unref (tensor);
  }
}

static void
submit_floor (void *data, unsigned n)
{
  Bench *self = data;
  const size_t read = bytes_of_bilinear (&self->camera, &self->small), write = bytes_of_samples (&self->tensor);
  for (unsigned i = 0; i < n * N; i += FLOOR_MAX_FRAMES) {
    void *src[FLOOR_MAX_FRAMES], *dst[FLOOR_MAX_FRAMES];
    for (unsigned k = 0; k < FLOOR_MAX_FRAMES; k++) {
      src[k] = gpu_image_data (self->cameras[(i + k) % N].frame[0]);
      dst[k] = (char *)gpu_image_data (self->output) + (i + k) % N * write;
    }
    floor_copy (self->floor, self->stream, FLOOR_MAX_FRAMES, dst, write, src, read);
  }
}

static void
finish (Bench *self)
{
  GError *error = NULL;
  gpu_stream_synchronize (self->stream, &error);
  for (unsigned i = 0; i < N && !error; i++)
    gpu_stream_synchronize (self->cameras[i].stream, &error);
  bench_check (error);
}

static uint8_t *
make_noise (size_t size)
{
  uint8_t *noise = g_malloc (size);
  uint32_t state = 1;
  for (size_t i = 0; i < size; i++) {
    state = state * 1664525u + 1013904223u;
    noise[i] = (uint8_t)(state >> 24);
  }
  return noise;
}

static void
open_bench (Bench *self)
{
  GError *error = NULL;
  gpu_normalize_init (&self->normalize);
  for (unsigned c = 0; c < 3; c++)
    self->normalize.scale[c] = 1.0f / 255;
  self->camera = bench_spec (GPU_FORMAT_NV12, WIDTH, HEIGHT);
  self->small = bench_spec (GPU_FORMAT_NV12, SIZE, SIZE);
  self->rgb = bench_spec (GPU_FORMAT_RGBP, SIZE, SIZE);
  gpu_image_spec_init_tensor (&self->tensor, GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 3, SIZE, SIZE, &error);
  bench_check (error);
  self->floor = floor_new (device);
  self->stream = bench_stream_new (device);
  self->resizer = gpu_resizer_new ();
  const GpuImageSpec output = bench_spec (GPU_FORMAT_GRAY8, (uint32_t)self->tensor.size, N);
  g_autofree uint8_t *noise = make_noise (self->camera.size);
  self->output = bench_image_new (device, &output, GPU_MEMORY_STREAM_ORDERED, self->stream);
  for (unsigned i = 0; i < N; i++) {
    Camera *camera = &self->cameras[i];
    camera->stream = bench_stream_new (device);
    camera->resizer = gpu_resizer_new ();
    for (unsigned k = 0; k < G_N_ELEMENTS (camera->frame); k++) {
      camera->frame[k] = bench_image_new (device, &self->camera, GPU_MEMORY_STREAM_ORDERED, camera->stream);
      gpu_image_copy_from_host (camera->stream, camera->frame[k], noise, &self->camera, &error);
      bench_check (error);
    }
  }
  finish (self);
}

static void
close_bench (Bench *self)
{
  for (unsigned i = 0; i < N; i++) {
    for (unsigned k = 0; k < G_N_ELEMENTS (self->cameras[i].frame); k++)
      gpu_image_unref (self->cameras[i].frame[k]);
    gpu_resizer_free (self->cameras[i].resizer);
    gpu_stream_unref (self->cameras[i].stream);
  }
  gpu_image_unref (self->output);
  gpu_resizer_free (self->resizer);
  floor_free (self->floor);
  gpu_stream_unref (self->stream);
}

typedef struct {
  const char *name;
  void (*submit) (void *data, unsigned n);
  bool one_stream, changing, converting;
  BenchGoal goal;
  double goal_ratio;
} Way;

static void
take_way (Bench *self, const Way *way)
{
  self->one_stream = way->one_stream;
  self->changing = way->changing;
  self->converting = way->converting;
}

/* The device catches up between the rounds, which does not count. */
static void
measure_host (Bench *self)
{
  static const Way ways[] = {
      {"a chain for each", submit_chains, false, true, false, BENCH_NO_GOAL, 0},
      {"one batch, in memory that changes from frame to frame", submit_batches, false, true, false, BENCH_AT_MOST, 0.2},
      {"one batch, in memory that stays", submit_batches, false, false, false, BENCH_AT_MOST, 0.2},
  };
  double figures[G_N_ELEMENTS (ways)][ROUNDS];
  const int rounds = gpu_device_is_host (device) ? 3 : ROUNDS;
  for (int round = -2; round < rounds; round++)
    for (unsigned i = 0; i < G_N_ELEMENTS (ways); i++) {
      take_way (self, &ways[i]);
      const double start = bench_now ();
      ways[i].submit (self, TURNS);
      figures[i][MAX (round, 0)] = (bench_now () - start) / (TURNS * N);
      finish (self);
    }
  bench_section ("32 streams, 1920x1080 NV12 to 640x640 float32: the host's time for a frame");
  for (unsigned i = 0; i < G_N_ELEMENTS (ways); i++)
    bench_row (ways[i].name, bench_median (figures[i], (unsigned)rounds), "ns",
               gpu_device_is_host (device) ? BENCH_NO_GOAL : ways[i].goal, ways[i].goal_ratio);
}

static void
measure_calls (Bench *self)
{
  static const Way ways[] = {
      {"launches, a chain for each", submit_chains, false, false, false, BENCH_NO_GOAL, 0},
      {"launches, one batch", submit_batches, false, false, false, BENCH_NO_GOAL, 0},
  };
  static const GpuCall others[] = {GPU_CALL_ALLOC, GPU_CALL_COPY};
  uint64_t before[G_N_ELEMENTS (others)], n = 0;
  bench_section ("32 streams: driver calls for a frame of each");
  for (unsigned i = 0; i < G_N_ELEMENTS (ways); i++) {
    take_way (self, &ways[i]);
    ways[i].submit (self, 1);
    const uint64_t launches = gpu_device_calls (device, GPU_CALL_LAUNCH);
    for (unsigned k = 0; k < G_N_ELEMENTS (others); k++)
      before[k] = gpu_device_calls (device, others[k]);
    ways[i].submit (self, 1);
    bench_row (ways[i].name, (double)(gpu_device_calls (device, GPU_CALL_LAUNCH) - launches), "", BENCH_NO_GOAL, 0);
    for (unsigned k = 0; k < G_N_ELEMENTS (others); k++)
      n += gpu_device_calls (device, others[k]) - before[k];
    finish (self);
  }
  bench_row ("allocations and copies of both", (double)n, "", BENCH_NO_GOAL, 0);
}

/* All on one stream, in memory that stays: nothing is allocated while the stream is held. */
static void
measure_device (Bench *self)
{
  static const Way ways[] = {
      {"copies of as many bytes", submit_floor, true, false, false, BENCH_NO_GOAL, 0},
      {"a chain for each, one after another", submit_chains, true, false, false, BENCH_NO_GOAL, 0},
      {"one batch", submit_batches, true, false, false, BENCH_AT_MOST, 1.5},
      {"one batch, converted to RGB in between", submit_batches, true, false, true, BENCH_NO_GOAL, 0},
  };
  double figures[G_N_ELEMENTS (ways)][ROUNDS];
  const bool is_host = gpu_device_is_host (device);
  const int rounds = is_host ? 3 : ROUNDS;
  const unsigned turns = is_host ? 1 : 2;
  for (unsigned i = 0; i < G_N_ELEMENTS (ways); i++) {
    take_way (self, &ways[i]);
    ways[i].submit (self, 1);
  }
  finish (self);
  for (int round = -1; round < rounds; round++)
    for (unsigned i = 0; i < G_N_ELEMENTS (ways); i++) {
      take_way (self, &ways[i]);
      figures[i][MAX (round, 0)] = floor_time (self->floor, self->stream, ways[i].submit, self, turns) / (turns * N);
    }
  bench_section ("32 streams, 1920x1080 NV12 to 640x640 float32: the device's time for a frame");
  for (unsigned i = 0; i < G_N_ELEMENTS (ways); i++)
    bench_row (ways[i].name, bench_median (figures[i], (unsigned)rounds) / 1e3, "us",
               is_host ? BENCH_NO_GOAL : ways[i].goal, ways[i].goal_ratio);
}

int
main (int argc, char **argv)
{
  Bench self = {0};
  device = bench_init (argc, argv);
  open_bench (&self);
  measure_host (&self);
  measure_calls (&self);
  measure_device (&self);
  close_bench (&self);
  gpu_device_unref (device);
  return bench_finish ();
}
