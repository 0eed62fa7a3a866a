/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See rig.h.
 */
#include "rig.h"

#include "common.h"

#include <string.h>
#include <time.h>

/* What memory holds that rig_let_go_held() lets go of. */
#define HELD_VALUE 0x11

void
rig_setup (Rig *rig, const void *data)
{
  rig_setup_on (rig, test_device_new ());
}

void
rig_setup_on (Rig *rig, GpuDevice *device)
{
  memset (rig, 0, sizeof *rig);
  rig->device = device;
  for (unsigned i = 0; i < RIG_STREAMS; i++)
    rig->stream[i] = rig_new_stream (rig, false);
  rig->spec = rig_spec (GPU_FORMAT_RGBA, 64, 64);
  rig->other = rig_spec (GPU_FORMAT_BGRA, 64, 64);
}

void
rig_teardown (Rig *rig, const void *data)
{
  for (unsigned i = 0; i < RIG_STREAMS; i++) {
    if (rig->gate[i])
      gpu_gate_free (rig->gate[i]);
  }
  if (!gpu_device_is_lost (rig->device)) {
    GpuCacheStats stats = rig_stats (rig);
    g_assert_cmpuint (stats.live, ==, 0);
    g_assert_cmpuint (stats.live_bytes, ==, 0);
  }
  for (unsigned i = 0; i < RIG_STREAMS; i++)
    gpu_stream_unref (rig->stream[i]);
  gpu_device_unref (rig->device);
}

static void
expect_count (const char *name, uint64_t now, uint64_t before, unsigned expected, int line)
{
  if (now - before != expected)
    g_error ("line %d: %s: expected %u, got %" G_GUINT64_FORMAT, line, name, expected, now - before);
}

void
rig_expect (Rig *rig, Answers answers, int line)
{
  GpuCacheStats now = rig_stats (rig);
  const GpuCacheStats *last = &rig->last[rig->account];

  expect_count ("exact-hits", now.exact_hits, last->exact_hits, answers.exact, line);
  expect_count ("fit-hits", now.fit_hits, last->fit_hits, answers.fit, line);
  expect_count ("pending-hits", now.pending_hits, last->pending_hits, answers.pending, line);
  expect_count ("waiting-hits", now.waiting_hits, last->waiting_hits, answers.waiting, line);
  expect_count ("misses", now.misses, last->misses, answers.misses, line);
  expect_count ("evictions", now.evictions, last->evictions, answers.evictions, line);
  rig->last[rig->account] = now;
}

static GpuCacheStats
get_stats (Rig *rig, GpuCacheScope scope)
{
  GpuCacheStats stats;

  gpu_cache_get_stats (rig->device, rig->account, scope, &stats);
  gpu_cache_check (rig->device);
  return stats;
}

GpuCacheStats
rig_stats (Rig *rig)
{
  return get_stats (rig, GPU_CACHE_ALL);
}

GpuCacheStats
rig_local_stats (Rig *rig)
{
  return get_stats (rig, GPU_CACHE_LOCAL);
}

uint64_t
rig_bytes (const GpuCacheStats *stats)
{
  return stats->live_bytes + stats->pending_bytes + stats->idle_bytes;
}

GpuImageSpec
rig_spec (GpuFormat format, uint32_t width, uint32_t height)
{
  GpuImageSpec spec;
  GError *error = NULL;

  gpu_image_spec_init (&spec, format, width, height, 0, &error);
  g_assert_no_error (error);
  return spec;
}

GpuStream *
rig_new_stream (Rig *rig, bool own_scope)
{
  GError *error = NULL;

  GpuStream *stream = gpu_stream_new (rig->device, own_scope, &error);
  g_assert_no_error (error);
  g_assert_nonnull (stream);
  return stream;
}

GpuImage *
rig_acquire_kind (Rig *rig, const GpuImageSpec *spec, GpuMemoryKind kind, GpuStream *stream, GpuAcquireFlags flags)
{
  GError *error = NULL;

  GpuImage *image = gpu_image_acquire (rig->device, spec, kind, stream, flags, &error);
  g_assert_no_error (error);
  g_assert_nonnull (image);
  gpu_cache_check (rig->device);
  return image;
}

GpuImage *
rig_acquire (Rig *rig, const GpuImageSpec *spec, GpuStream *stream)
{
  return rig_acquire_kind (rig, spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT);
}

void
rig_fill (GpuStream *stream, GpuImage *image, uint8_t value)
{
  GError *error = NULL;

  bool ok = gpu_image_fill (stream, image, value, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

void
rig_copy (GpuStream *stream, GpuImage *src, GpuImage *dst)
{
  GError *error = NULL;

  bool ok = gpu_image_copy (stream, src, dst, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

void
rig_wait_stream (GpuStream *stream, GpuStream *other)
{
  GError *error = NULL;

  bool ok = gpu_stream_wait_stream (stream, other, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

void
rig_sync (GpuStream *stream)
{
  GError *error = NULL;

  bool ok = gpu_stream_synchronize (stream, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

void
rig_begin (GpuImage *image, GpuStream *stream, GpuAccessFlags flags)
{
  GError *error = NULL;

  bool ok = gpu_image_begin_access (image, stream, flags, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

void
rig_end (GpuImage *image, GpuStream *stream, GpuAccessFlags flags)
{
  GError *error = NULL;

  bool ok = gpu_image_end_access (image, stream, flags, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

void
rig_limit (Rig *rig, uint64_t bytes)
{
  GError *error = NULL;

  bool ok = gpu_cache_set_limit (rig->device, rig->account, (int64_t)bytes, &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

void
rig_prepare_gates (GpuDevice *device)
{
  GError *error = NULL;
  GpuGate *gate = gpu_gate_new (device, &error);

  g_assert_no_error (error);
  gpu_gate_free (gate);
}

void
rig_close (Rig *rig, unsigned i)
{
  GError *error = NULL;

  if (rig->gate[i])
    gpu_gate_free (rig->gate[i]);
  rig->gate[i] = gpu_gate_new (rig->device, &error);
  g_assert_no_error (error);
  bool ok = gpu_gate_hold (rig->gate[i], rig->stream[i], &error);
  g_assert_no_error (error);
  g_assert_true (ok);
}

void
rig_open (Rig *rig, unsigned i)
{
  gpu_gate_open (rig->gate[i]);
}

void
rig_finish (Rig *rig)
{
  for (unsigned i = 0; i < RIG_STREAMS; i++) {
    if (rig->gate[i])
      rig_open (rig, i);
  }
  for (unsigned i = 0; i < RIG_STREAMS; i++)
    rig_sync (rig->stream[i]);
}

void
rig_run (Rig *rig)
{
  if (test_is_lazy ())
    gpu_cpu_device_run (rig->device, G_MAXUINT, 1);
}

GpuImage *
rig_filled (Rig *rig, const GpuImageSpec *spec, GpuStream *stream, uint8_t value)
{
  GpuImage *image = rig_acquire (rig, spec, stream);

  rig_fill (stream, image, value);
  rig_sync (stream);
  return image;
}

RigHeld
rig_let_go_held (Rig *rig)
{
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], HELD_VALUE);
  RigHeld held = {gpu_image_data (image), rig_filled (rig, &rig->spec, rig->stream[0], 0)};

  rig_close (rig, 0);
  rig_copy (rig->stream[0], image, held.copy);
  gpu_image_unref (image);
  return held;
}

void
rig_end_held (Rig *rig, RigHeld *held)
{
  rig_finish (rig);
  rig_expect_bytes (rig, held->copy, HELD_VALUE);
  gpu_image_unref (held->copy);
}

size_t
rig_make_idle (Rig *rig, const GpuImageSpec *spec, GpuStream *stream, unsigned n, void **data)
{
  g_autofree GpuImage **image = g_new (GpuImage *, n);

  for (unsigned i = 0; i < n; i++) {
    image[i] = rig_acquire (rig, spec, stream);
    if (data)
      data[i] = gpu_image_data (image[i]);
  }
  size_t capacity = gpu_image_capacity (image[0]);
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (image[i]);
  rig_sync (stream);
  rig->last[rig->account] = rig_stats (rig);
  return capacity;
}

void
rig_expect_bytes_at (const char *file, int line, Rig *rig, GpuImage *image, uint8_t value)
{
  GpuStream *reader = rig_new_stream (rig, false);

  test_assert_image_is_at (file, line, reader, image, value);
  gpu_stream_unref (reader);
}

RigCalls
rig_calls (Rig *rig)
{
  RigCalls calls;

  for (unsigned i = 0; i < GPU_N_CALLS; i++)
    calls.n[i] = gpu_device_calls (rig->device, (GpuCall)i);
  return calls;
}

void
rig_expect_no_calls (Rig *rig, const RigCalls *since)
{
  RigCalls now = rig_calls (rig);

  for (unsigned i = 0; i < GPU_N_CALLS; i++)
    g_assert_cmpuint (now.n[i], ==, since->n[i]);
}

typedef struct {
  void (*func) (void *data);
  void *data;
} Task;

static void *
run_task (void *data)
{
  const Task *task = data;

  task->func (task->data);
  return NULL;
}

void
rig_in_thread (void (*func) (void *data), void *data)
{
  Task task = {func, data};
  pthread_t thread;

  g_assert_cmpint (pthread_create (&thread, NULL, run_task, &task), ==, 0);
  g_assert_cmpint (pthread_join (thread, NULL), ==, 0);
}

struct RigThread {
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  Task task;
  bool busy;
  bool ending;
};

static void *
serve (void *data)
{
  RigThread *thread = data;

  pthread_mutex_lock (&thread->mutex);
  while (true) {
    while (!thread->busy && !thread->ending)
      pthread_cond_wait (&thread->cond, &thread->mutex);
    if (!thread->busy)
      break;
    thread->task.func (thread->task.data);
    thread->busy = false;
    pthread_cond_broadcast (&thread->cond);
  }
  pthread_mutex_unlock (&thread->mutex);
  return NULL;
}

RigThread *
rig_thread_new (void)
{
  RigThread *thread = g_new0 (RigThread, 1);

  pthread_mutex_init (&thread->mutex, NULL);
  pthread_cond_init (&thread->cond, NULL);
  g_assert_cmpint (pthread_create (&thread->thread, NULL, serve, thread), ==, 0);
  return thread;
}

void
rig_thread_do (RigThread *thread, void (*func) (void *data), void *data)
{
  pthread_mutex_lock (&thread->mutex);
  thread->task = (Task){func, data};
  thread->busy = true;
  pthread_cond_broadcast (&thread->cond);
  while (thread->busy)
    pthread_cond_wait (&thread->cond, &thread->mutex);
  pthread_mutex_unlock (&thread->mutex);
}

void
rig_thread_end (RigThread *thread)
{
  pthread_mutex_lock (&thread->mutex);
  thread->ending = true;
  pthread_cond_broadcast (&thread->cond);
  pthread_mutex_unlock (&thread->mutex);
  g_assert_cmpint (pthread_join (thread->thread, NULL), ==, 0);
  pthread_mutex_destroy (&thread->mutex);
  pthread_cond_destroy (&thread->cond);
  g_free (thread);
}

void
rig_counter_init (RigCounter *counter)
{
  pthread_mutex_init (&counter->mutex, NULL);
  pthread_cond_init (&counter->cond, NULL);
  counter->n = 0;
}

void
rig_counter_add (void *data)
{
  RigCounter *counter = data;

  pthread_mutex_lock (&counter->mutex);
  counter->n++;
  pthread_cond_broadcast (&counter->cond);
  pthread_mutex_unlock (&counter->mutex);
}

unsigned
rig_counter_get (RigCounter *counter)
{
  pthread_mutex_lock (&counter->mutex);
  unsigned n = counter->n;
  pthread_mutex_unlock (&counter->mutex);
  return n;
}

void
rig_counter_wait (RigCounter *counter, unsigned n)
{
  struct timespec deadline;

  clock_gettime (CLOCK_REALTIME, &deadline);
  deadline.tv_sec += 60;
  pthread_mutex_lock (&counter->mutex);
  while (counter->n < n) {
    if (pthread_cond_timedwait (&counter->cond, &counter->mutex, &deadline) != 0)
      g_error ("after a minute the counter is %u instead of %u", counter->n, n);
  }
  pthread_mutex_unlock (&counter->mutex);
}
