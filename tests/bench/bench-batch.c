/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Many cameras and one model: 32 streams of 1080p NV12 become 640x640 planar float32, each by a chain of its own, or
 * all in one batch. What counts is the host's time for a frame, and the device's beside the floor: a copy that reads
 * each byte which is needed of the cameras' frames once, and writes the tensor once. Pictures between the operations
 * are no part of the floor, nor is each camera's launch: it takes its frames as many at a time as its arguments hold.
 */
#include "bench.h"
#include "bytes.h"
#include "cameras.h"
#include "floor.h"

#include <gpucache/testing.h>

#define ROUNDS 21
#define TURNS 4 /* for each camera, in a round */

typedef struct {
  Cameras cameras;
  Floor *floor;
  GpuImage *output; /* what the floor writes */
} Bench;

static GpuDevice *device;

static void
submit_floor (void *data, unsigned n)
{
  Bench *self = data;
  const Cameras *cameras = &self->cameras;
  const size_t read = bytes_of_bilinear (&cameras->camera, &cameras->small),
               write = bytes_of_samples (&cameras->tensor);
  for (unsigned i = 0; i < n * CAMERAS; i += FLOOR_MAX_FRAMES) {
    void *src[FLOOR_MAX_FRAMES], *dst[FLOOR_MAX_FRAMES];
    for (unsigned k = 0; k < FLOOR_MAX_FRAMES; k++) {
      src[k] = gpu_image_data (cameras->cameras[(i + k) % CAMERAS].frame[0]);
      dst[k] = (char *)gpu_image_data (self->output) + (i + k) % CAMERAS * write;
    }
    floor_copy (self->floor, cameras->stream, FLOOR_MAX_FRAMES, dst, write, src, read);
  }
}

static void
submit_chains (void *data, unsigned n)
{
  cameras_submit_chains (&((Bench *)data)->cameras, n);
}

static void
submit_batches (void *data, unsigned n)
{
  cameras_submit_batches (&((Bench *)data)->cameras, n);
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
  self->cameras.one_stream = way->one_stream;
  self->cameras.changing = way->changing;
  self->cameras.converting = way->converting;
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
      figures[i][MAX (round, 0)] = (bench_now () - start) / (TURNS * CAMERAS);
      cameras_finish (&self->cameras);
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
    cameras_finish (&self->cameras);
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
  cameras_finish (&self->cameras);
  for (int round = -1; round < rounds; round++)
    for (unsigned i = 0; i < G_N_ELEMENTS (ways); i++) {
      take_way (self, &ways[i]);
      figures[i][MAX (round, 0)] =
          floor_time (self->floor, self->cameras.stream, ways[i].submit, self, turns) / (turns * CAMERAS);
    }
  bench_section ("32 streams, 1920x1080 NV12 to 640x640 float32: the device's time for a frame");
  for (unsigned i = 0; i < G_N_ELEMENTS (ways); i++)
    bench_row (ways[i].name, bench_median (figures[i], (unsigned)rounds) / 1e3, "us",
               is_host ? BENCH_NO_GOAL : ways[i].goal, ways[i].goal_ratio);
}

static void
open_bench (Bench *self)
{
  cameras_open (&self->cameras, device);
  const GpuImageSpec output = bench_spec (GPU_FORMAT_GRAY8, (uint32_t)self->cameras.tensor.size, CAMERAS);
  self->floor = floor_new (device);
  self->output = bench_image_new (device, &output, GPU_MEMORY_STREAM_ORDERED, self->cameras.stream);
  cameras_finish (&self->cameras);
}

static void
close_bench (Bench *self)
{
  gpu_image_unref (self->output);
  floor_free (self->floor);
  cameras_close (&self->cameras);
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
