/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Devices by name: which names there are, what the environment says, one device a name, and what a forked child may do.
 */
#include "common.h"

#include "gpucache/device-priv.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static GpuDevice *
open_device (const char *name)
{
  g_autoptr (GError) error = NULL;

  GpuDevice *device = gpu_device_open (name, &error);
  g_assert_no_error (error);
  g_assert_nonnull (device);
  return device;
}

static void
test_same_name (void)
{
  GpuDevice *device = open_device ("cpu:1");
  GpuDevice *same = open_device ("cpu:01");
  GpuDevice *other = open_device ("cpu:2");

  g_assert_true (device == same);
  g_assert_true (device != other);
  g_assert_cmpstr (gpu_device_name (device), ==, "cpu:1");
  gpu_device_unref (same);
  gpu_device_unref (other);
  gpu_device_unref (device);

  /* It stays when nobody holds it. */
  GpuDevice *again = open_device ("cpu:1");
  g_assert_true (again == device);
  gpu_device_unref (again);
}

static void
test_short_name (void)
{
  GpuDevice *device = open_device ("cpu");

  g_assert_cmpstr (gpu_device_name (device), ==, "cpu:0");
  gpu_device_unref (device);
}

static void
test_bad_names (void)
{
  static const struct {
    const char *name;
    GpuError code;
    const char *says;
  } cases[] = {
      {"gpu", GPU_ERROR_INVALID, "auto, cpu, cpu:N or cuda:N"},
      {"cpu:", GPU_ERROR_INVALID, "\"cpu:\""},
      {"cpu:-1", GPU_ERROR_INVALID, "\"cpu:-1\""},
      {"cpu:1x", GPU_ERROR_INVALID, "\"cpu:1x\""},
      {"cuda", GPU_ERROR_INVALID, "cuda:N"},
      {"cuda:99999999999999999999", GPU_ERROR_INVALID, "cuda:N"},
      {"CPU:0", GPU_ERROR_INVALID, "\"CPU:0\""},
      {"cpu:64", GPU_ERROR_NO_DEVICE, "cpu:0 to cpu:63"},
      {"cuda:4000000000", GPU_ERROR_NO_DEVICE, "cuda:4000000000"},
  };

  for (unsigned i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_assert_null (gpu_device_open (cases[i].name, &error));
    g_assert_error (error, GPU_ERROR, (int)cases[i].code);
    g_assert_nonnull (strstr (error->message, cases[i].says));
    g_assert_null (gpu_device_open (cases[i].name, NULL));
  }
}

static void
test_environment (void)
{
  g_setenv ("GPUCACHE_DEVICE", "cpu:3", true);
  GpuDevice *device = open_device (NULL);
  g_assert_cmpstr (gpu_device_name (device), ==, "cpu:3");
  gpu_device_unref (device);

  /* A name that is given is not overruled. */
  device = open_device ("cpu:4");
  g_assert_cmpstr (gpu_device_name (device), ==, "cpu:4");
  gpu_device_unref (device);

  g_setenv ("GPUCACHE_DEVICE", "nonsense", true);
  g_autoptr (GError) error = NULL;
  g_assert_null (gpu_device_open (NULL, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_unsetenv ("GPUCACHE_DEVICE");
}

static void
test_auto (void)
{
  const char *expected = gpu_device_cuda_count (NULL) > 0 ? "cuda:0" : "cpu:0";
  GpuDevice *device = open_device ("auto");
  GpuDevice *by_default = open_device (NULL);

  g_assert_cmpstr (gpu_device_name (device), ==, expected);
  g_assert_true (device == by_default);
  gpu_device_unref (device);
  gpu_device_unref (by_default);
}

static void
test_cuda (void)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device = gpu_device_open ("cuda:0", &error);

  if (gpu_device_cuda_count (NULL) > 0) {
    g_assert_no_error (error);
    g_assert_nonnull (gpu_device_cuda_context (device));
    gpu_device_unref (device);
    return;
  }
  g_assert_null (device);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE);
}

static void
test_limit (void)
{
  g_setenv ("GPUCACHE_LIMIT", "3MiB", true);
  GpuDevice *device = open_device ("cpu:10");
  g_assert_cmpuint (gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE), ==, 3 << 20);

  /* It is for devices that are opened, not for those that are open. */
  g_setenv ("GPUCACHE_LIMIT", "4MiB", true);
  gpu_device_unref (open_device ("cpu:10"));
  g_assert_cmpuint (gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE), ==, 3 << 20);
  gpu_device_unref (device);
  g_unsetenv ("GPUCACHE_LIMIT");

  /* Pinned memory has its own. */
  g_setenv ("GPUCACHE_HOST_LIMIT", "5MiB", true);
  device = open_device ("cpu:13");
  g_assert_cmpuint (gpu_cache_get_limit (device, GPU_ACCOUNT_HOST), ==, 5 << 20);
  g_assert_cmpuint (gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE), !=, 5 << 20);
  gpu_device_unref (device);
  g_unsetenv ("GPUCACHE_HOST_LIMIT");
}

static void
test_bad_limit (void)
{
  GpuDevice *plain = open_device ("cpu:11");
  uint64_t limit = gpu_cache_get_limit (plain, GPU_ACCOUNT_DEVICE);
  g_autofree char *pattern = g_strdup_printf ("*GPUCACHE_LIMIT=lots*%" G_GUINT64_FORMAT "*", limit);

  g_setenv ("GPUCACHE_LIMIT", "lots", true);
  g_test_expect_message ("gpucache", G_LOG_LEVEL_WARNING, pattern);
  GpuDevice *device = open_device ("cpu:12");
  g_test_assert_expected_messages ();
  g_assert_cmpuint (gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE), ==, limit);
  g_unsetenv ("GPUCACHE_LIMIT");
  gpu_device_unref (device);
  gpu_device_unref (plain);
}

static bool
runs_lazily (GpuDevice *device)
{
  void *stream, *event;

  g_assert_true (gpu_device_stream_create (device, &stream, NULL));
  g_assert_true (gpu_device_event_create (device, &event, NULL));
  g_assert_true (gpu_device_event_record (device, event, stream, NULL));
  bool lazy = gpu_cpu_device_run (device, 1, 1) == 1;
  g_assert_true (gpu_device_event_synchronize (device, event, NULL));
  gpu_device_event_destroy (device, event);
  gpu_device_stream_destroy (device, stream);
  return lazy;
}

static void
test_executor (void)
{
  GpuDevice *device = open_device ("cpu:20");
  g_assert_false (runs_lazily (device));
  gpu_device_unref (device);

  g_setenv ("GPUCACHE_CPU_EXECUTOR", "lazy", true);
  device = open_device ("cpu:21");
  g_assert_true (runs_lazily (device));
  gpu_device_unref (device);

  g_setenv ("GPUCACHE_CPU_EXECUTOR", "eager", true);
  g_test_expect_message ("gpucache", G_LOG_LEVEL_WARNING, "*GPUCACHE_CPU_EXECUTOR=eager*");
  device = open_device ("cpu:22");
  g_test_assert_expected_messages ();
  g_assert_false (runs_lazily (device));
  gpu_device_unref (device);
  g_unsetenv ("GPUCACHE_CPU_EXECUTOR");
}

/* In the child: 0, or the number of the step that went wrong. No test framework, which is the parent's. */
static int
use_in_child (GpuDevice *device, GpuStream *stream)
{
  g_autoptr (GError) error = NULL;
  void *made;

  if (gpu_device_check (device, &error) || !g_error_matches (error, GPU_ERROR, GPU_ERROR_FORKED) ||
      !strstr (error->message, "fork()") || !strstr (error->message, "cpu:30"))
    return 1;
  if (gpu_device_event_create (device, &made, NULL) || gpu_device_stream_create (device, &made, NULL))
    return 2;
  g_clear_error (&error);
  if (gpu_stream_new (device, false, &error) || !g_error_matches (error, GPU_ERROR, GPU_ERROR_FORKED))
    return 3;
  gpu_stream_unref (stream);
  gpu_device_unref (device);

  /* The same name gives a device of the child's own. No threads: ThreadSanitizer lets no forked child start any. */
  g_setenv ("GPUCACHE_CPU_EXECUTOR", "lazy", true);
  GpuDevice *own = gpu_device_open ("cpu:30", NULL);
  if (!own || own == device || !gpu_device_check (own, NULL))
    return 4;
  GpuStream *own_stream = gpu_stream_new (own, false, NULL);
  if (!own_stream || !gpu_stream_synchronize (own_stream, NULL))
    return 5;
  gpu_stream_unref (own_stream);
  gpu_device_unref (own);
  return 0;
}

static void
test_fork (void)
{
  GpuDevice *device = open_device ("cpu:30");
  GpuStream *stream = gpu_stream_new (device, false, NULL);
  int status;

  pid_t child = fork ();
  g_assert_cmpint (child, >=, 0);
  if (child == 0)
    _exit (use_in_child (device, stream));
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);

  /* The parent's goes on. */
  g_assert_true (gpu_device_check (device, NULL));
  g_assert_true (gpu_stream_synchronize (stream, NULL));
  gpu_stream_unref (stream);
  gpu_device_unref (device);
}

/* A lost device's name opens a new one; who holds the lost one still has that. */
static void
test_lost (void)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *lost = open_device ("cpu:31");

  gpu_device_fail (lost, GPU_CALL_STREAM_CREATE, 0, 1);
  g_assert_null (gpu_stream_new (lost, false, &error));
  g_assert_true (gpu_device_is_lost (lost));
  GpuDevice *fresh = open_device ("cpu:31"), *same = open_device ("cpu:31");
  g_assert_true (fresh != lost);
  g_assert_true (fresh == same);
  g_assert_true (gpu_device_check (fresh, NULL));
  g_assert_cmpstr (gpu_device_name (lost), ==, "cpu:31");
  gpu_device_unref (lost);
  gpu_device_unref (same);
  gpu_device_unref (fresh);
}

typedef struct {
  pthread_barrier_t *barrier;
  GpuDevice *device;
} Opener;

static void *
open_in_thread (void *data)
{
  Opener *self = data;

  pthread_barrier_wait (self->barrier);
  self->device = gpu_device_open ("cpu:40", NULL);
  return NULL;
}

static void
test_threads (void)
{
  enum { N = 8 };
  pthread_t threads[N];
  Opener openers[N];
  pthread_barrier_t barrier;

  pthread_barrier_init (&barrier, NULL, N);
  for (unsigned i = 0; i < N; i++) {
    openers[i] = (Opener){.barrier = &barrier};
    g_assert_cmpint (pthread_create (&threads[i], NULL, open_in_thread, &openers[i]), ==, 0);
  }
  for (unsigned i = 0; i < N; i++) {
    pthread_join (threads[i], NULL);
    g_assert_nonnull (openers[i].device);
    g_assert_true (openers[i].device == openers[0].device);
  }
  for (unsigned i = 0; i < N; i++)
    gpu_device_unref (openers[i].device);
  pthread_barrier_destroy (&barrier);
}

static void
test_memory_kind_names (void)
{
  g_assert_cmpstr (gpu_memory_kind_name (GPU_MEMORY_STREAM_ORDERED), ==, "stream-ordered");
  g_assert_cmpstr (gpu_memory_kind_name (GPU_MEMORY_DEVICE), ==, "device");
  g_assert_cmpstr (gpu_memory_kind_name (GPU_MEMORY_MANAGED), ==, "managed");
  g_assert_cmpstr (gpu_memory_kind_name (GPU_MEMORY_HOST), ==, "host");
}

int
main (int argc, char **argv)
{
  g_unsetenv ("GPUCACHE_DEVICE");
  g_unsetenv ("GPUCACHE_LIMIT");
  g_unsetenv ("GPUCACHE_HOST_LIMIT");
  g_unsetenv ("GPUCACHE_CPU_EXECUTOR");
  test_init (&argc, &argv);
  g_test_add_func ("/registry/same-name", test_same_name);
  g_test_add_func ("/registry/short-name", test_short_name);
  g_test_add_func ("/registry/bad-names", test_bad_names);
  g_test_add_func ("/registry/environment", test_environment);
  g_test_add_func ("/registry/auto", test_auto);
  g_test_add_func ("/registry/cuda", test_cuda);
  g_test_add_func ("/registry/limit", test_limit);
  g_test_add_func ("/registry/bad-limit", test_bad_limit);
  g_test_add_func ("/registry/executor", test_executor);
  g_test_add_func ("/registry/fork", test_fork);
  g_test_add_func ("/registry/lost", test_lost);
  g_test_add_func ("/registry/threads", test_threads);
  g_test_add_func ("/registry/memory-kind-names", test_memory_kind_names);
  return g_test_run ();
}
