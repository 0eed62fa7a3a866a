/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How the rate of exact pending matches grows with the number of threads, each of which has a stream and a scope to
 * itself: its stream's or its own. Beside it, how a rate grows on this machine where threads share nothing at all.
 */
#include "bench.h"

#include <gpucache/testing.h>

#include <pthread.h>

#define MAX_THREADS 16
#define N_WARM_UP 1000

typedef enum {
  SCOPES_OF_STREAMS,
  SCOPES_OF_THREADS,
  NO_CACHE, /* a mutex and the clock, about as long as a match takes */
} Work;

typedef struct {
  GpuDevice *device;
  unsigned n_threads;
  Work work;
  unsigned n; /* operations of each thread */
  GpuImageSpec spec;
  pthread_barrier_t barrier;
} Team;

typedef struct {
  Team *team;
  pthread_t thread;
  GpuStream *stream;
  double start, end;
} Member;

static void
acquire_and_release (const Member *member, unsigned n)
{
  const Team *team = member->team;
  GError *error = NULL;
  for (unsigned i = 0; i < n; i++) {
    GpuImage *image = gpu_image_acquire (team->device, &team->spec, GPU_MEMORY_STREAM_ORDERED, member->stream,
                                         GPU_ACQUIRE_DEFAULT, &error);
    bench_check (error);
    gpu_image_unref (image);
  }
}

static void
share_nothing (unsigned n)
{
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  for (unsigned i = 0; i < n; i++)
    for (unsigned j = 0; j < 2; j++) {
      pthread_mutex_lock (&mutex);
      bench_now ();
      pthread_mutex_unlock (&mutex);
    }
}

static void
repeat (const Member *member, unsigned n)
{
  if (member->team->work == NO_CACHE)
    share_nothing (n);
  else
    acquire_and_release (member, n);
}

static void *
work (void *data)
{
  Member *member = data;
  repeat (member, N_WARM_UP);
  pthread_barrier_wait (&member->team->barrier);
  member->start = bench_now ();
  repeat (member, member->team->n);
  member->end = bench_now ();
  return NULL;
}

/* From the first thread's start to the last one's end. */
static double
run (void *data, unsigned n)
{
  Team *team = data;
  GError *error = NULL;
  Member member[MAX_THREADS];
  GpuGate *gate = gpu_gate_new (team->device, &error);
  bench_check (error);
  team->n = n;
  pthread_barrier_init (&team->barrier, NULL, team->n_threads);
  for (unsigned i = 0; i < team->n_threads; i++) {
    member[i].team = team;
    member[i].stream = gpu_stream_new (team->device, team->work == SCOPES_OF_STREAMS, &error);
    bench_check (error);
    gpu_gate_hold (gate, member[i].stream, &error);
    bench_check (error);
  }
  for (unsigned i = 0; i < team->n_threads; i++)
    if (pthread_create (&member[i].thread, NULL, work, &member[i]) != 0)
      bench_fail ("the system has no thread left for number %u", i);

  double start = 0, end = 0;
  for (unsigned i = 0; i < team->n_threads; i++) {
    pthread_join (member[i].thread, NULL);
    start = i == 0 ? member[i].start : MIN (start, member[i].start);
    end = MAX (end, member[i].end);
  }
  gpu_gate_free (gate);
  for (unsigned i = 0; i < team->n_threads; i++)
    gpu_stream_unref (member[i].stream);
  pthread_barrier_destroy (&team->barrier);
  return end - start;
}

static void
compare (GpuDevice *device, const char *title, Work kind)
{
  static const char *const names[] = {"1 thread", "2 threads", "4 threads", "8 threads", "16 threads"};
  Team team[G_N_ELEMENTS (names)];
  BenchCase cases[G_N_ELEMENTS (names)];
  for (unsigned i = 0; i < G_N_ELEMENTS (names); i++) {
    unsigned n_threads = 1u << i;
    team[i] = (Team){.device = bench_device_new (device),
                     .n_threads = n_threads,
                     .work = kind,
                     .spec = bench_spec (GPU_FORMAT_RGBA, 64, 64)};
    cases[i] = (BenchCase){.name = names[i], .run = run, .data = &team[i], .threads = n_threads};
    if (kind != NO_CACHE && n_threads == 16 && g_get_num_processors () >= 16) {
      cases[i].goal = BENCH_AT_LEAST;
      cases[i].goal_ratio = 12;
    }
  }
  bench_compare (title, BENCH_RATE, cases, G_N_ELEMENTS (cases));
  for (unsigned i = 0; i < G_N_ELEMENTS (names); i++)
    gpu_device_unref (team[i].device);
}

int
main (int argc, char **argv)
{
  GpuDevice *device = bench_init (argc, argv);
  compare (device, "Exact pending matches of all threads, each stream with its own scope", SCOPES_OF_STREAMS);
  compare (device, "Exact pending matches of all threads, each in its thread's scope", SCOPES_OF_THREADS);
  compare (device, "The same threads, sharing nothing: a mutex and the clock of each, twice", NO_CACHE);
  gpu_device_unref (device);
  return bench_finish ();
}
