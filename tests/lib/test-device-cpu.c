/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the CPU device promises beyond the seam, on which the tests of everything above it rely: patterns in memory,
 * addresses that come back, and the lazy executor, which runs nothing that nobody needs.
 */
#include "seam.h"

#include "gpucache/cpu-priv.h"

#include <string.h>

#define SIZE 4096

/* Reads memory as it is, without a stream. */
static bool
is_all (const void *data, size_t size, uint8_t value)
{
  for (size_t i = 0; i < size; i++)
    if (((const uint8_t *)data)[i] != value)
      return false;
  return true;
}

static void
count_call (void *data)
{
  atomic_fetch_add ((atomic_uint *)data, 1);
}

static void
test_poison_alloc (Seam *seam, const void *data)
{
  void *gate = seam_close (seam, seam->s);
  uint8_t *memory = seam_alloc (seam, SIZE, seam->s);

  memset (memory, 1, SIZE); /* too early: the pattern comes in stream order */
  seam_open (seam, gate, seam->s);
  g_assert_true (is_all (memory, SIZE, GPU_CPU_POISON));
  seam_free (seam, memory, SIZE, seam->s);
}

static void
test_poison_free (Seam *seam, const void *data)
{
  uint8_t *memory = seam_alloc (seam, SIZE, seam->s);
  seam_fill (seam, memory, SIZE, 1, seam->s);
  seam_sync (seam, seam->s);

  void *gate = seam_close (seam, seam->s);
  seam_free (seam, memory, SIZE, seam->s);
  g_assert_true (is_all (memory, SIZE, 1)); /* not before the stream gets there */
  seam_open (seam, gate, seam->s);
#ifdef __SANITIZE_ADDRESS__
  g_assert_true (__asan_region_is_poisoned (memory, SIZE) == memory);
#else
  g_assert_true (is_all (memory, SIZE, GPU_CPU_POISON));
#endif
}

static void
test_poison_plain (Seam *seam, const void *data)
{
  for (GpuMemoryKind kind = GPU_MEMORY_DEVICE; kind < GPU_N_MEMORY_KINDS; kind++) {
    void *memory;
    g_assert_true (gpu_device_alloc (seam->device, kind, SIZE, 256, NULL, &memory, NULL));
    g_assert_true (is_all (memory, SIZE, GPU_CPU_POISON));
    memset (memory, 1, SIZE);
    g_assert_true (gpu_device_free (seam->device, kind, memory, SIZE, NULL, NULL));
#ifndef __SANITIZE_ADDRESS__
    g_assert_true (is_all (memory, SIZE, GPU_CPU_POISON));
#endif
  }
}

/* An address comes back as soon as its free has run, the last first, for the same size. */
static void
test_recycled (Seam *seam, const void *data)
{
  void *a = seam_alloc (seam, SIZE, seam->s);
  void *b = seam_alloc (seam, SIZE, seam->s);
  seam_sync (seam, seam->s);
  seam_free (seam, a, SIZE, seam->s);
  seam_free (seam, b, SIZE, seam->s);

  void *c = seam_alloc (seam, SIZE + 1, seam->s);
  g_assert_true (c != a && c != b);
  g_assert_true (seam_alloc (seam, SIZE, seam->t) == b);
  g_assert_true (seam_alloc (seam, SIZE, seam->t) == a);
  seam_sync (seam, seam->t);
  seam_free (seam, a, SIZE, seam->t);
  g_assert_true (gpu_device_wait_for_frees (seam->device));
  g_assert_cmpuint (gpu_device_trim (seam->device, 0), ==, 0);
  seam_free (seam, b, SIZE, seam->t);
  seam_free (seam, c, SIZE + 1, seam->s);
}

/* Before its free has run an address comes back on the same stream only, where order makes that safe. */
static void
test_taken_over (Seam *seam, const void *data)
{
  void *kept = seam_alloc (seam, SIZE, seam->s);
  void *a = seam_alloc (seam, SIZE, seam->s);
  void *gate = seam_close (seam, seam->s);

  seam_fill (seam, a, SIZE, 1, seam->s);
  seam_copy (seam, kept, a, SIZE, seam->s);
  seam_free (seam, a, SIZE, seam->s);
  void *other = seam_alloc (seam, SIZE, seam->t);
  g_assert_true (other != a);
  g_assert_true (seam_alloc (seam, SIZE, seam->s) == a);
  void *second = seam_alloc (seam, SIZE, seam->s);
  g_assert_true (second != a); /* once */
  seam_fill (seam, a, SIZE, 2, seam->s);
  seam_open (seam, gate, seam->s);
  g_assert_true (is_all (a, SIZE, 2));
  g_assert_true (is_all (kept, SIZE, 1));
  seam_free (seam, kept, SIZE, seam->s);
  seam_free (seam, a, SIZE, seam->s);
  seam_free (seam, second, SIZE, seam->s);
  seam_free (seam, other, SIZE, seam->t);
}

static bool
refuses (GpuDevice *device, size_t size, void *stream)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *asked = g_strdup_printf ("%zu bytes", size);
  void *memory;

  if (gpu_device_alloc (device, GPU_MEMORY_STREAM_ORDERED, size, 256, stream, &memory, &error))
    return false;
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, asked));
  g_assert_nonnull (strstr (error->message, gpu_device_name (device)));
  return true;
}

static void
test_out_of_memory (void)
{
  const size_t MIB = 1 << 20;
  Seam seam;
  uint64_t free_bytes, total_bytes;
  void *host;

  seam.device = test_device_new_full (0, MIB);
  seam.s = seam_stream (&seam);
  seam.t = seam_stream (&seam);
  void *memory = seam_alloc (&seam, MIB / 2, seam.s);
  g_assert_true (gpu_device_memory_info (seam.device, &free_bytes, &total_bytes, NULL));
  g_assert_cmpuint (total_bytes, ==, MIB);
  g_assert_cmpuint (free_bytes, ==, MIB / 2);
  g_assert_true (refuses (seam.device, MIB / 2 + 1, seam.s));
  g_assert_true (refuses (seam.device, SIZE_MAX, seam.s));
  g_assert_true (gpu_device_alloc (seam.device, GPU_MEMORY_HOST, 2 * MIB, 256, NULL, &host, NULL));
  g_assert_true (gpu_device_free (seam.device, GPU_MEMORY_HOST, host, 2 * MIB, NULL, NULL));

  /* Freed memory is free when the stream gets there. */
  void *gate = seam_close (&seam, seam.s);
  seam_free (&seam, memory, MIB / 2, seam.s);
  g_assert_true (refuses (seam.device, MIB, seam.t));
  seam_open (&seam, gate, seam.s);
  memory = seam_alloc (&seam, MIB, seam.t);
  seam_free (&seam, memory, MIB, seam.t);
  g_assert_false (gpu_device_is_lost (seam.device));
  seam_teardown (&seam, NULL);
}

static void
test_double_free (Seam *seam, const void *data)
{
  g_autoptr (GError) error = NULL;
  void *memory = seam_alloc (seam, SIZE, seam->s);

  void *gate = seam_close (seam, seam->s);
  seam_free (seam, memory, SIZE, seam->s);
  g_assert_false (gpu_device_free (seam->device, GPU_MEMORY_STREAM_ORDERED, memory, SIZE, seam->s, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  seam->device->funcs->gate_open (seam->device, gate);
  seam->device->funcs->stream_synchronize (seam->device, seam->s, NULL);
  seam->device->funcs->gate_destroy (seam->device, gate);
}

typedef struct {
  uint8_t *dst;
  unsigned step;
} StampArgs;

static void
stamp (const void *args, GpuExtent extent)
{
  const StampArgs *self = args;

  for (unsigned z = 0; z < extent.z; z++)
    for (unsigned y = 0; y < extent.y; y++)
      for (unsigned x = 0; x < extent.x; x++)
        self->dst[(z * extent.y + y) * extent.x + x] += self->step;
}

/* Arguments are copied at the launch. */
static void
test_launch (Seam *seam, const void *data)
{
  static const GpuKernel kernel = {.name = "stamp", .args_size = sizeof (StampArgs), .run = stamp};
  uint8_t *memory = seam_alloc (seam, SIZE, seam->s);
  StampArgs args = {memory, 3};

  seam_fill (seam, memory, SIZE, 1, seam->s);
  void *gate = seam_close (seam, seam->s);
  g_assert_true (gpu_device_launch (seam->device, &kernel, &args, (GpuExtent){16, 8, 32}, seam->s, NULL));
  args.step = 100;
  g_assert_true (gpu_device_launch (seam->device, &kernel, &args, (GpuExtent){16, 8, 32}, seam->s, NULL));
  memset (&args, 0, sizeof args);
  seam_open (seam, gate, seam->s);
  g_assert_true (is_all (memory, SIZE, 104));
  seam_free (seam, memory, SIZE, seam->s);
}

static void
test_launch_unsupported (Seam *seam, const void *data)
{
  static const GpuKernel kernel = {.name = "gpu_only"};
  g_autoptr (GError) error = NULL;

  g_assert_false (gpu_device_launch (seam->device, &kernel, NULL, (GpuExtent){1, 1, 1}, seam->s, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "gpu_only"));
  g_assert_false (gpu_device_is_lost (seam->device));
}

/* A wait runs what comes before it, on its own stream and on those that it depends on, and nothing else. */
static void
test_lazy_needed_only (Seam *seam, const void *data)
{
  enum { BEFORE, AFTER, OTHER, OTHER_AFTER, N };
  atomic_uint count[N] = {0};
  GpuDevice *device = seam->device;
  void *u = seam_stream (seam);
  void *first = seam_event (seam), *second = seam_event (seam);

  g_assert_true (gpu_device_host_call (device, count_call, &count[BEFORE], seam->s, NULL));
  seam_record (seam, first, seam->s);
  g_assert_true (gpu_device_host_call (device, count_call, &count[AFTER], seam->s, NULL));
  seam_wait (seam, seam->t, first);
  g_assert_true (gpu_device_host_call (device, count_call, &count[OTHER], seam->t, NULL));
  seam_record (seam, second, seam->t);
  g_assert_true (gpu_device_host_call (device, count_call, &count[OTHER_AFTER], seam->t, NULL));

  /* Asking, and another stream's wait, run nothing. */
  g_assert_false (seam_is_complete (seam, first));
  g_assert_false (seam_is_complete (seam, second));
  seam_sync (seam, u);
  for (unsigned i = 0; i < N; i++)
    g_assert_cmpuint (atomic_load (&count[i]), ==, 0);

  seam_sync_event (seam, second);
  g_assert_true (seam_is_complete (seam, first));
  g_assert_cmpuint (atomic_load (&count[BEFORE]), ==, 1);
  g_assert_cmpuint (atomic_load (&count[OTHER]), ==, 1);
  g_assert_cmpuint (atomic_load (&count[AFTER]), ==, 0);
  g_assert_cmpuint (atomic_load (&count[OTHER_AFTER]), ==, 0);

  seam_sync (seam, seam->s);
  g_assert_cmpuint (atomic_load (&count[AFTER]), ==, 1);
  g_assert_cmpuint (atomic_load (&count[OTHER_AFTER]), ==, 0);

  /* Nor does the end of a stream; the end of the device runs all that is left, which test_lazy_destroy() sees. */
  gpu_device_stream_destroy (device, u);
  g_assert_cmpuint (atomic_load (&count[OTHER_AFTER]), ==, 0);
  seam_sync (seam, seam->t);
  g_assert_cmpuint (atomic_load (&count[OTHER_AFTER]), ==, 1);
  gpu_device_event_destroy (device, first);
  gpu_device_event_destroy (device, second);
}

/* An event is pending until something runs it, also on a stream that had no work. */
static void
test_lazy_event (Seam *seam, const void *data)
{
  void *event = seam_event (seam);

  seam_record (seam, event, seam->s);
  g_assert_false (seam_is_complete (seam, event));
  g_assert_false (seam_is_complete (seam, event));
  seam_sync_event (seam, event);
  g_assert_true (seam_is_complete (seam, event));
  gpu_device_event_destroy (seam->device, event);
}

/* Streams that wait for each other in turn, many times over. */
static void
test_lazy_chain (Seam *seam, const void *data)
{
  enum { N = 100000 };
  void *event = seam_event (seam);
  atomic_uint count = 0;

  g_assert_true (gpu_device_host_call (seam->device, count_call, &count, seam->t, NULL));
  for (unsigned i = 0; i < N; i++) {
    seam_record (seam, event, i % 2 ? seam->s : seam->t);
    seam_wait (seam, i % 2 ? seam->t : seam->s, event);
  }
  g_assert_cmpuint (atomic_load (&count), ==, 0);
  seam_sync (seam, N % 2 ? seam->s : seam->t);
  g_assert_cmpuint (atomic_load (&count), ==, 1);
  gpu_device_event_destroy (seam->device, event);
}

typedef struct {
  GString *log;
  char letter;
} Letter;

static void
append (void *data)
{
  Letter *self = data;

  g_string_append_c (self->log, self->letter);
}

/* Three letters a stream, run at random. */
static char *
run_at_random (uint32_t seed)
{
  Seam seam;
  GString *log = g_string_new (NULL);
  Letter letters[6];

  seam_setup (&seam, NULL);
  for (unsigned i = 0; i < G_N_ELEMENTS (letters); i++) {
    letters[i] = (Letter){log, (char)('a' + i)};
    g_assert_true (gpu_device_host_call (seam.device, append, &letters[i], i % 2 ? seam.t : seam.s, NULL));
  }
  g_assert_cmpuint (gpu_cpu_device_run (seam.device, 2, seed), ==, 2);
  g_assert_cmpuint (log->len, ==, 2);
  g_assert_cmpuint (gpu_cpu_device_run (seam.device, 100, seed), ==, 4);
  seam_teardown (&seam, NULL);
  return g_string_free (log, false);
}

static void
test_lazy_run (void)
{
  g_autoptr (GHashTable) orders = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  for (uint32_t seed = 0; seed < 50; seed++) {
    g_autofree char *order = run_at_random (seed);
    g_autofree char *again = run_at_random (seed);
    g_assert_cmpstr (order, ==, again);
    /* Stream order holds: a, c, e on one, b, d, f on the other. */
    for (unsigned i = 0; i + 2 < 6; i++)
      g_assert_true (strchr (order, (char)('a' + i)) < strchr (order, (char)('c' + i)));
    g_hash_table_add (orders, g_steal_pointer (&order));
  }
  g_assert_cmpuint (g_hash_table_size (orders), >, 5);
}

/* What waits for an event or a gate cannot be picked. */
static void
test_lazy_run_blocked (Seam *seam, const void *data)
{
  void *event = seam_event (seam);
  atomic_uint count = 0;

  void *gate = seam_close (seam, seam->s);
  seam_record (seam, event, seam->s);
  seam_wait (seam, seam->t, event);
  g_assert_true (gpu_device_host_call (seam->device, count_call, &count, seam->t, NULL));
  g_assert_cmpuint (gpu_cpu_device_run (seam->device, 100, 1), ==, 0);
  seam->device->funcs->gate_open (seam->device, gate);
  g_assert_cmpuint (gpu_cpu_device_run (seam->device, 2, 1), ==, 2); /* the gate and the record */
  g_assert_cmpuint (atomic_load (&count), ==, 0);
  g_assert_true (seam_is_complete (seam, event));
  g_assert_cmpuint (gpu_cpu_device_run (seam->device, 100, 1), ==, 2);
  g_assert_cmpuint (atomic_load (&count), ==, 1);
  seam->device->funcs->gate_destroy (seam->device, gate);
  gpu_device_event_destroy (seam->device, event);
}

static void
test_threads_are_not_run (Seam *seam, const void *data)
{
  void *gate = seam_close (seam, seam->s);

  g_assert_cmpuint (gpu_cpu_device_run (seam->device, 100, 1), ==, 0);
  seam_open (seam, gate, seam->s);
}

static void
test_lazy_destroy (void)
{
  Seam seam;
  atomic_uint count = 0;

  seam_setup (&seam, NULL);
  g_assert_true (gpu_device_host_call (seam.device, count_call, &count, seam.s, NULL));
  gpu_device_stream_destroy (seam.device, seam.s);
  gpu_device_stream_destroy (seam.device, seam.t);
  g_assert_cmpuint (atomic_load (&count), ==, 0);
  gpu_device_unref (seam.device);
  g_assert_cmpuint (atomic_load (&count), ==, 1);
}

typedef struct {
  Seam *seam;
  atomic_bool waits, passed;
} Waiter;

static void *
wait_in_thread (void *data)
{
  Waiter *self = data;

  atomic_store (&self->waits, true);
  seam_sync (self->seam, self->seam->s);
  atomic_store (&self->passed, true);
  return NULL;
}

/* Who waits behind a closed gate goes on when another thread opens it; the device is not locked meanwhile. */
static void
test_gate_blocks_waiter (Seam *seam, const void *data)
{
  Waiter waiter = {.seam = seam};
  pthread_t thread;
  void *gate = seam_close (seam, seam->s);

  g_assert_cmpint (pthread_create (&thread, NULL, wait_in_thread, &waiter), ==, 0);
  while (!atomic_load (&waiter.waits))
    g_usleep (100);
  for (unsigned i = 0; i < 20; i++) {
    seam_sync (seam, seam->t);
    g_usleep (500);
    g_assert_false (atomic_load (&waiter.passed));
  }
  seam->device->funcs->gate_open (seam->device, gate);
  pthread_join (thread, NULL);
  g_assert_true (atomic_load (&waiter.passed));
  seam->device->funcs->gate_destroy (seam->device, gate);
}

/* Streams that come and go one after the other share one worker, also if the last one's work ended after it. */
static void
test_workers_are_reused (Seam *seam, const void *data)
{
  GpuCpuDevice *device = (GpuCpuDevice *)seam->device;

  gpu_device_stream_destroy (seam->device, seam_stream (seam));
  unsigned n = device->queues->len;
  for (unsigned i = 0; i < 100; i++)
    gpu_device_stream_destroy (seam->device, seam_stream (seam));
  g_assert_cmpuint (device->queues->len, ==, n);

  void *pending = seam_stream (seam), *event = seam_event (seam);
  void *gate = seam_close (seam, pending);
  seam_record (seam, event, pending);
  gpu_device_stream_destroy (seam->device, pending);
  seam->device->funcs->gate_open (seam->device, gate);
  seam_sync_event (seam, event);
  gpu_device_stream_destroy (seam->device, seam_stream (seam));
  g_assert_cmpuint (device->queues->len, ==, n);
  seam->device->funcs->gate_destroy (seam->device, gate);
  gpu_device_event_destroy (seam->device, event);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  g_assert_false (test_is_cuda ());
  SEAM_TEST ("/device-cpu/poison/alloc", test_poison_alloc);
  SEAM_TEST ("/device-cpu/poison/free", test_poison_free);
  SEAM_TEST ("/device-cpu/poison/plain", test_poison_plain);
  SEAM_TEST ("/device-cpu/recycled", test_recycled);
  SEAM_TEST ("/device-cpu/taken-over", test_taken_over);
  g_test_add_func ("/device-cpu/out-of-memory", test_out_of_memory);
  SEAM_TEST ("/device-cpu/double-free", test_double_free);
  SEAM_TEST ("/device-cpu/launch/args", test_launch);
  SEAM_TEST ("/device-cpu/launch/unsupported", test_launch_unsupported);
  SEAM_TEST ("/device-cpu/gate-blocks-waiter", test_gate_blocks_waiter);
  SEAM_TEST ("/device-cpu/workers-are-reused", test_workers_are_reused);
  if (test_is_lazy ()) {
    SEAM_TEST ("/device-cpu/lazy/needed-only", test_lazy_needed_only);
    SEAM_TEST ("/device-cpu/lazy/event", test_lazy_event);
    SEAM_TEST ("/device-cpu/lazy/chain", test_lazy_chain);
    g_test_add_func ("/device-cpu/lazy/run", test_lazy_run);
    SEAM_TEST ("/device-cpu/lazy/run-blocked", test_lazy_run_blocked);
    g_test_add_func ("/device-cpu/lazy/destroy", test_lazy_destroy);
  } else {
    SEAM_TEST ("/device-cpu/threads-are-not-run", test_threads_are_not_run);
  }
  return g_test_run ();
}
