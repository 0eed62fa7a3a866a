/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The hazard checker: random work on many streams, each piece of which checks what it reads (stamp.h). What was reused
 * too early is seen as wrong bytes. The classic mistakes are in test-cache-order.c, by name.
 */
#include "common.h"
#include "rig.h"
#include "stamp.h"

#include <stdatomic.h>

#define N_STREAMS 6
#define N_IMAGES 8

/* Sanitizers and memory checkers make everything slower. */
#define N_ROUNDS 400
#define STEPS_PER_ROUND 60

/* Several shapes of one size, so that fits and exact matches change memory between them, and two formats. */
static GpuImageSpec shapes[5];

static void
make_shapes (void)
{
  shapes[0] = test_spec (GPU_FORMAT_RGBA, 64, 16);
  shapes[1] = test_spec (GPU_FORMAT_RGBA, 128, 8);
  shapes[2] = test_spec (GPU_FORMAT_RGBA, 64, 32);
  shapes[3] = test_spec (GPU_FORMAT_BGRA, 64, 16);
  shapes[4] = test_spec (GPU_FORMAT_GRAY8, 256, 48);
}

typedef struct {
  GpuImage *image;
  uint32_t stamp;
} Stamped;

typedef struct {
  GpuDevice *device;
  GpuStream *stream[N_STREAMS];
  Stamped stamped[N_IMAGES];
  unsigned n;
  uint32_t state;
  uint32_t next_stamp;
} Work;

static uint32_t
pick (Work *work, uint32_t n)
{
  return (test_random (&work->state) >> 8) % n;
}

static GpuStream *
any_stream (Work *work)
{
  return work->stream[pick (work, N_STREAMS)];
}

static GpuImage *
take (Work *work, GpuStream *stream)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (work->device, &shapes[pick (work, G_N_ELEMENTS (shapes))],
                                       GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  return image;
}

static void
add (Work *work, GpuImage *image, uint32_t stamp)
{
  work->stamped[work->n++] = (Stamped){image, stamp};
}

static void
drop (Work *work, unsigned i)
{
  gpu_image_unref (work->stamped[i].image);
  work->stamped[i] = work->stamped[--work->n];
}

/* The first writer is the stream acquired on, another, or any where none was named. */
static void
make_one (Work *work)
{
  if (work->n == N_IMAGES)
    drop (work, pick (work, work->n));
  GpuStream *consumer = pick (work, 5) ? any_stream (work) : NULL;
  GpuImage *image = take (work, consumer);
  add (work, image, ++work->next_stamp);
  stamp_write (consumer && pick (work, 3) ? consumer : any_stream (work), image, work->next_stamp);
}

/* As an element does: reads one, writes another, lets go of the first. */
static void
convert_one (Work *work)
{
  unsigned i = pick (work, work->n);
  GpuStream *stream = any_stream (work);
  GpuImage *dst = take (work, stream);
  stamp_convert (stream, work->stamped[i].image, work->stamped[i].stamp, dst, ++work->next_stamp);
  drop (work, i);
  add (work, dst, work->next_stamp);
}

static void
one_step (Work *work)
{
  unsigned what = pick (work, 100);

  if (what < 30 || work->n == 0) {
    make_one (work);
  } else if (what < 50) {
    convert_one (work);
  } else if (what < 70) {
    Stamped *one = &work->stamped[pick (work, work->n)];
    stamp_check (any_stream (work), one->image, one->stamp);
  } else if (what < 78) {
    Stamped *one = &work->stamped[pick (work, work->n)];
    one->stamp = ++work->next_stamp;
    stamp_write (any_stream (work), one->image, one->stamp);
  } else if (what < 92) {
    drop (work, pick (work, work->n));
  } else if (what < 95) {
    rig_wait_stream (any_stream (work), any_stream (work));
  } else if (what < 97) {
    GpuCacheStats stats;
    gpu_cache_get_stats (work->device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  } else if (what < 99) {
    gpu_cache_set_limit (work->device, GPU_ACCOUNT_DEVICE, pick (work, 16) * 4096, NULL);
  } else {
    unsigned s = pick (work, N_STREAMS);
    GError *error = NULL;
    gpu_stream_unref (work->stream[s]);
    work->stream[s] = gpu_stream_new (work->device, s % 3 == 0, &error);
    g_assert_no_error (error);
  }
}

/* One thread, streams held by gates now and then. Between rounds all gates open and everything is looked at. */
static void
test_gates (void)
{
  unsigned n_rounds = test_is_cuda () ? N_ROUNDS / 4 : N_ROUNDS;

  for (unsigned round = 0; round < n_rounds; round++) {
    Work work = {.device = test_device_new (), .state = round + 1};
    GError *error = NULL;
    GpuGate *gate[3];

    gpu_cache_set_limit (work.device, GPU_ACCOUNT_DEVICE, round % 4 ? 16 << 10 : 1 << 20, NULL);
    for (unsigned i = 0; i < N_STREAMS; i++) {
      work.stream[i] = gpu_stream_new (work.device, i % 3 == 0, &error);
      g_assert_no_error (error);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS (gate); i++) {
      gate[i] = gpu_gate_new (work.device, &error);
      g_assert_no_error (error);
    }
    for (unsigned i = 0; i < STEPS_PER_ROUND; i++) {
      if (i % 20 == 5) {
        gpu_gate_hold (gate[i / 20], any_stream (&work), &error);
        g_assert_no_error (error);
      }
      if (i % 20 == 15)
        gpu_gate_open (gate[i / 20 - (i / 20 > 0)]);
      if (test_is_lazy () && pick (&work, 4) == 0)
        gpu_cpu_device_run (work.device, pick (&work, 8), work.state);
      one_step (&work);
    }
    gpu_cache_check (work.device);
    for (unsigned i = 0; i < G_N_ELEMENTS (gate); i++)
      gpu_gate_open (gate[i]);
    /* The order of the waits is the order in which the lazy executor runs things. */
    for (unsigned i = 0; i < N_STREAMS; i++)
      rig_sync (work.stream[(i + round) % N_STREAMS]);
    while (work.n > 0)
      drop (&work, 0);
    if (test_is_lazy ())
      gpu_cpu_device_run (work.device, G_MAXUINT, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS (gate); i++)
      gpu_gate_free (gate[i]);
    for (unsigned i = 0; i < N_STREAMS; i++) {
      rig_sync (work.stream[i]);
      gpu_stream_unref (work.stream[i]);
    }
    stamp_settle (round + 1);
    gpu_device_unref (work.device);
  }
}

/* Threads that share the streams, the limit and the device, and nothing else; under ThreadSanitizer every kernel's
 * accesses are checked, too. */
typedef struct {
  Work work;
  unsigned steps;
} Job;

static void *
run_job (void *data)
{
  Job *job = data;

  for (unsigned i = 0; i < job->steps; i++) {
    unsigned what = pick (&job->work, 100);
    if (what >= 98)
      rig_sync (any_stream (&job->work));
    else
      one_step (&job->work);
  }
  while (job->work.n > 0)
    drop (&job->work, 0);
  return NULL;
}

static void
test_threads (void)
{
  Job jobs[6];
  pthread_t threads[G_N_ELEMENTS (jobs)];
  GpuDevice *device = test_device_new ();
  GpuStream *shared[2];
  GError *error = NULL;

  gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, 64 << 10, NULL);
  for (unsigned i = 0; i < 2; i++) {
    shared[i] = gpu_stream_new (device, i == 0, &error);
    g_assert_no_error (error);
  }
  for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++) {
    jobs[i] = (Job){.work = {.device = device, .state = i + 1, .next_stamp = i << 24}, .steps = 1500};
    for (unsigned s = 0; s < N_STREAMS; s++) {
      jobs[i].work.stream[s] = s < 2 ? gpu_stream_ref (shared[s]) : gpu_stream_new (device, s % 3 == 0, &error);
      g_assert_no_error (error);
    }
    g_assert_cmpint (pthread_create (&threads[i], NULL, run_job, &jobs[i]), ==, 0);
  }
  for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++)
    pthread_join (threads[i], NULL);
  gpu_cache_check (device);
  for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++) {
    for (unsigned s = 0; s < N_STREAMS; s++) {
      rig_sync (jobs[i].work.stream[s]);
      gpu_stream_unref (jobs[i].work.stream[s]);
    }
  }
  for (unsigned i = 0; i < 2; i++)
    gpu_stream_unref (shared[i]);
  if (test_is_lazy ())
    gpu_cpu_device_run (device, G_MAXUINT, 1);
  gpu_cache_clear (device, GPU_CACHE_ALL, &error);
  g_assert_no_error (error);
  stamp_settle (0);
  gpu_device_unref (device);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  make_shapes ();
  g_test_add_func ("/hazard/gates", test_gates);
  g_test_add_func ("/hazard/threads", test_threads);
  return g_test_run ();
}
