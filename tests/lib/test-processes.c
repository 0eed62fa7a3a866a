/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Two processes on one device, each with a limit: neither counts more than its own, and on a GPU what is in use of its
 * memory grows by no more than both limits together and what a driver takes besides.
 *
 * The processes are this program once more, as GPUCACHE_LIMIT in the environment tells any program. They say a line
 * when the device is open and another one when their caches are full, and go on when they are told a line.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>

#define N_PROCESSES 2
#define N_ROUNDS 12
#define N_LIVE 8

/* What a driver takes beyond what it is asked for, a process: it takes memory of the system in pieces of 32 MiB, and
 * the last one of each of a few sizes may be in use in part. */
#define DRIVER_BYTES (UINT64_C (64) << 20)

typedef struct {
  const char *name; /* of the device */
  uint64_t limit;
  uint32_t max_size; /* of frames, in pixels each way: sixteen of them are a limit */
} Place;

static Place
get_place (void)
{
  return test_is_cuda () ? (Place){"cuda:0", UINT64_C (1) << 30, 4096} : (Place){"cpu:0", UINT64_C (16) << 20, 512};
}

static GpuDevice *
open_device (void)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device = gpu_device_open (get_place ().name, &error);

  g_assert_no_error (error);
  return device;
}

static void
wait_for_line (void)
{
  char line[16];

  if (!fgets (line, sizeof line, stdin))
    g_error ("the parent is gone");
}

/* Half a limit of frames live at a time, of all sizes and of one format after the other, none of which can be reused
 * for another. What is pending would be counted beyond the limit, so each is waited for. */
static void
use_device (GpuDevice *device, uint32_t seed)
{
  static const GpuFormat formats[] = {GPU_FORMAT_RGBA, GPU_FORMAT_BGRA, GPU_FORMAT_ARGB, GPU_FORMAT_ABGR};
  g_autoptr (GError) error = NULL;
  GpuStream *stream = gpu_stream_new (device, true, &error);
  uint32_t size = get_place ().max_size;

  for (unsigned i = 0; i < N_ROUNDS; i++) {
    GpuImage *live[N_LIVE];

    for (unsigned k = 0; k < N_LIVE; k++) {
      GpuImageSpec spec =
          test_spec (formats[i % G_N_ELEMENTS (formats)], size / 2 + test_random (&seed) % (size / 2), size);

      live[k] = test_image_new (device, &spec, stream);
      g_assert_true (gpu_image_fill (stream, live[k], (uint8_t)k, &error));
      g_assert_true (gpu_stream_synchronize (stream, &error));
    }
    for (unsigned k = 0; k < N_LIVE; k++)
      gpu_image_unref (live[k]);
  }
  /* What was freed last goes back to the system with one of the next allocations, and what the driver's pool holds then
   * makes the cache free some more, which goes back with others. */
  for (uint32_t i = 0; i < 8; i++) {
    const GpuImageSpec spec = test_spec (GPU_FORMAT_GRAY8, 16 + i, 16);

    g_usleep (10000);
    gpu_image_unref (test_image_new (device, &spec, stream));
    g_assert_true (gpu_stream_synchronize (stream, &error));
  }
  gpu_stream_unref (stream);
}

static int
be_process (uint32_t seed)
{
  GpuDevice *device = open_device ();
  GpuCacheStats stats;

  printf ("open\n");
  fflush (stdout);
  wait_for_line ();
  use_device (device, seed);
  gpu_cache_get_stats (device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  printf ("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT "\n", (guint64)stats.peak_bytes,
          (guint64)(stats.live_bytes + stats.pending_bytes + stats.idle_bytes), (guint64)stats.evictions);
  fflush (stdout);
  wait_for_line ();
  gpu_device_unref (device);
  return 0;
}

typedef struct {
  GPid pid;
  FILE *in, *out;
} Process;

static char *program;

static Process
process_start (unsigned number)
{
  g_autofree char *seed = g_strdup_printf ("%u", number + 1);
  g_autofree char *limit = g_strdup_printf ("%" G_GUINT64_FORMAT, (guint64)get_place ().limit);
  g_auto (GStrv) environment = g_environ_setenv (g_get_environ (), "GPUCACHE_LIMIT", limit, TRUE);
  char *args[] = {program, (char *)"--process", seed, NULL};
  g_autoptr (GError) error = NULL;
  Process process;
  int in, out;

  g_spawn_async_with_pipes (NULL, args, environment, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &process.pid, &in, &out,
                            NULL, &error);
  g_assert_no_error (error);
  process.in = fdopen (in, "w");
  process.out = fdopen (out, "r");
  return process;
}

static void
process_tell (Process *process)
{
  fputs ("go on\n", process->in);
  fflush (process->in);
}

static void
process_hear (Process *process, char line[static 128])
{
  if (!fgets (line, 128, process->out))
    g_error ("a process has ended early");
}

static void
process_end (Process *process)
{
  process_tell (process);
  fclose (process->in);
  fclose (process->out);
  g_spawn_close_pid (process->pid);
}

static uint64_t
used_bytes (GpuDevice *device)
{
  g_autoptr (GError) error = NULL;
  uint64_t free_bytes, total_bytes;

  gpu_device_memory_info (device, &free_bytes, &total_bytes, &error);
  g_assert_no_error (error);
  return total_bytes - free_bytes;
}

static void
test_limits (void)
{
  const Place place = get_place ();
  GpuDevice *device = open_device ();
  Process process[N_PROCESSES];
  uint64_t before, grown;
  char line[128];

  for (unsigned i = 0; i < N_PROCESSES; i++)
    process[i] = process_start (i);
  for (unsigned i = 0; i < N_PROCESSES; i++)
    process_hear (&process[i], line);
  before = used_bytes (device);
  for (unsigned i = 0; i < N_PROCESSES; i++)
    process_tell (&process[i]);
  for (unsigned i = 0; i < N_PROCESSES; i++) {
    guint64 peak, counted, evictions;

    process_hear (&process[i], line);
    g_assert_cmpint (
        sscanf (line, "%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, &peak, &counted, &evictions),
        ==, 3);
    g_test_message ("process %u counted %" G_GUINT64_FORMAT " bytes at most, limit %" G_GUINT64_FORMAT, i, peak,
                    (guint64)place.limit);
    g_assert_cmpuint (peak, <=, place.limit);
    /* It was tempted. */
    g_assert_cmpuint (evictions, >, 0);
    g_assert_cmpuint (counted, >, place.limit / 2);
  }
  /* The CPU device's memory is the processes' own. */
  if (test_is_cuda ()) {
    grown = used_bytes (device) - before;
    g_test_message ("the GPU's memory in use grew by %" G_GUINT64_FORMAT " bytes, the limits are %" G_GUINT64_FORMAT,
                    (guint64)grown, (guint64)(N_PROCESSES * place.limit));
    g_assert_cmpuint (grown, >, place.limit);
    g_assert_cmpuint (grown, <=, N_PROCESSES * (place.limit + DRIVER_BYTES));
  }
  for (unsigned i = 0; i < N_PROCESSES; i++)
    process_end (&process[i]);
  gpu_device_unref (device);
}

int
main (int argc, char **argv)
{
  if (argc == 3 && strcmp (argv[1], "--process") == 0)
    return be_process ((uint32_t)g_ascii_strtoull (argv[2], NULL, 10));
  program = argv[0];
  test_init (&argc, &argv);
  g_test_add_func ("/processes/limits", test_limits);
  return g_test_run ();
}
