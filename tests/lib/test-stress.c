/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Churn as an application at its worst makes it: many threads that end and start while memory of theirs is alive,
 * images handed between them through a table, sizes over several powers of two, a limit that is too small; and the same
 * while the device refuses memory at random. What is read is checked (stamp.h), so is the cache's structure.
 */
#include "common.h"
#include "rig.h"
#include "stamp.h"

#include <stdatomic.h>

#define N_THREADS 64
#define N_TRANSFERS 256
#define N_GENERATIONS 3 /* of threads */
#define N_SHARED_STREAMS 4
#define STEPS_PER_THREAD 60

typedef struct {
  GpuImage *image;
  uint32_t stamp;
} Parcel;

typedef struct {
  GpuDevice *device;
  GpuStream *shared[N_SHARED_STREAMS];
  _Atomic (Parcel *) transfer[N_TRANSFERS];
  bool refusals;
  atomic_uint refused;
  atomic_uint next_stamp;
} Stress;

typedef struct {
  Stress *stress;
  uint32_t state;
} Worker;

static uint32_t
pick (Worker *worker, uint32_t n)
{
  return (test_random (&worker->state) >> 8) % n;
}

/* From 1 KiB to 64 KiB, small ones more often. */
static GpuImageSpec
any_shape (Worker *worker)
{
  uint32_t height = 1u << (pick (worker, 4) + pick (worker, 4));
  GpuFormat format = pick (worker, 4) ? GPU_FORMAT_RGBA : GPU_FORMAT_NV12;

  return test_spec (format, 128 + 128 * pick (worker, 2), height + pick (worker, 2));
}

static Parcel *
make_parcel (Worker *worker, GpuStream *stream)
{
  Stress *stress = worker->stress;
  GpuImageSpec spec = any_shape (worker);
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (stress->device, &spec, GPU_MEMORY_STREAM_ORDERED,
                                       pick (worker, 8) ? stream : NULL, GPU_ACQUIRE_DEFAULT, &error);

  if (!image && stress->refusals && g_error_matches (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY)) {
    atomic_fetch_add (&stress->refused, 1);
    g_error_free (error);
    return NULL;
  }
  g_assert_no_error (error);
  Parcel *parcel = g_new (Parcel, 1);
  *parcel = (Parcel){image, atomic_fetch_add (&stress->next_stamp, 1)};
  stamp_write (stream, image, parcel->stamp);
  return parcel;
}

static void
open_parcel (Parcel *parcel, GpuStream *stream)
{
  if (!parcel)
    return;
  stamp_check (stream, parcel->image, parcel->stamp);
  gpu_image_unref (parcel->image);
  g_free (parcel);
}

static void *
work (void *data)
{
  Worker *worker = data;
  Stress *stress = worker->stress;
  GError *error = NULL;
  GpuStream *own = gpu_stream_new (stress->device, pick (worker, 2), &error);
  g_assert_no_error (error);
  Parcel *kept[8] = {NULL};

  for (unsigned i = 0; i < STEPS_PER_THREAD; i++) {
    GpuStream *stream = pick (worker, 3) ? own : stress->shared[pick (worker, N_SHARED_STREAMS)];
    Parcel **slot = &kept[pick (worker, G_N_ELEMENTS (kept))];
    if (stress->refusals && pick (worker, 16) == 0)
      gpu_device_fail (stress->device, GPU_CALL_ALLOC, pick (worker, 4), 1 + pick (worker, 6));
    if (*slot && pick (worker, 2) == 0)
      open_parcel (g_steal_pointer (slot), stream);
    else if (!*slot)
      *slot = make_parcel (worker, stream);
    /* Swapped for whatever lies there: from now on it belongs to another thread. */
    if (pick (worker, 2) == 0)
      *slot = atomic_exchange (&stress->transfer[pick (worker, N_TRANSFERS)], *slot);
    if (pick (worker, 32) == 0)
      gpu_cache_set_limit (stress->device, GPU_ACCOUNT_DEVICE, pick (worker, 64) << 14, NULL);
    if (pick (worker, 256) == 0)
      gpu_cache_clear (stress->device, pick (worker, 2) ? GPU_CACHE_LOCAL : GPU_CACHE_ALL, NULL);
  }
  /* Half of what it kept stays alive after it. */
  for (unsigned i = 0; i < G_N_ELEMENTS (kept); i++) {
    if (i % 2)
      kept[i] = atomic_exchange (&stress->transfer[pick (worker, N_TRANSFERS)], kept[i]);
    open_parcel (kept[i], own);
  }
  gpu_stream_unref (own);
  return NULL;
}

static void
run_stress (bool refusals)
{
  Stress stress = {.device = test_device_new (), .refusals = refusals};
  Worker workers[N_THREADS];
  pthread_t threads[N_THREADS];
  GError *error = NULL;
  GpuCacheStats stats;

  gpu_cache_set_limit (stress.device, GPU_ACCOUNT_DEVICE, 512 << 10, NULL);
  for (unsigned i = 0; i < N_SHARED_STREAMS; i++) {
    stress.shared[i] = gpu_stream_new (stress.device, i % 2, &error);
    g_assert_no_error (error);
  }
  for (unsigned generation = 0; generation < N_GENERATIONS; generation++) {
    for (unsigned i = 0; i < N_THREADS; i++) {
      workers[i] = (Worker){&stress, generation * N_THREADS + i + 1};
      g_assert_cmpint (pthread_create (&threads[i], NULL, work, &workers[i]), ==, 0);
    }
    for (unsigned i = 0; i < N_THREADS; i++)
      pthread_join (threads[i], NULL);
    gpu_cache_check (stress.device);
  }

  gpu_device_fail (stress.device, GPU_CALL_ALLOC, 0, 0);
  for (unsigned i = 0; i < N_TRANSFERS; i++)
    open_parcel (atomic_exchange (&stress.transfer[i], NULL), stress.shared[i % N_SHARED_STREAMS]);
  for (unsigned i = 0; i < N_SHARED_STREAMS; i++) {
    rig_sync (stress.shared[i]);
    gpu_stream_unref (stress.shared[i]);
  }
  if (test_is_lazy ())
    gpu_cpu_device_run (stress.device, G_MAXUINT, 1);
  stamp_settle (0);
  g_assert_true (gpu_cache_clear (stress.device, GPU_CACHE_ALL, &error));
  g_assert_no_error (error);
  if (test_is_lazy ())
    gpu_cpu_device_run (stress.device, G_MAXUINT, 1);
  gpu_cache_get_stats (stress.device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  g_assert_cmpuint (stats.live + stats.pending + stats.idle, ==, 0);
  g_assert_cmpuint (stats.live_bytes + stats.pending_bytes + stats.idle_bytes, ==, 0);
  g_assert_cmpuint (stats.detached_bytes, ==, 0);
  g_assert_cmpuint (stats.misses, >, 0);
  if (refusals)
    g_assert_cmpuint (stats.oom_retries, >, 0);
  gpu_cache_check (stress.device);
  gpu_device_unref (stress.device);
}

static void
test_churn (void)
{
  run_stress (false);
}

static void
test_refusals (void)
{
  run_stress (true);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  g_test_add_func ("/stress/churn", test_churn);
  g_test_add_func ("/stress/refusals", test_refusals);
  return g_test_run ();
}
