/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a frame takes of the host besides the driver's calls: elements, library and buffer pool on a driver that does
 * nothing (idle-cuda.c), beside GStreamer's identity and pool of video frames.
 *
 * Times depend on the machine. host.py runs this under Valgrind for what does not: with --count CASE the case's
 * operation is repeated in counted(), and with --side-by-side two chains of elements on threads of their own take
 * turns, which can be seen in a trace of the memory that they touch. Nothing is timed then.
 */
#include "bench.h"
#include "cameras.h"
#include "feed.h"

#include <gpucache/gstgpucache.h>

#include <dlfcn.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

/* host.py has these, too. */
#define COUNTED 1000
#define TRACED 200

#define OUT "video/x-raw" FEED_GPU ",width=64,height=64"
#define FULL_CAPS(feature) "video/x-raw" feature ",format=RGBA,width=1920,height=1080"
#define N_CHAINS 2

/* The driver lies beside the program, and has the real one's soname: who opens that gets this. */
static void
load_driver (const char *program)
{
  g_autofree char *folder = g_path_get_dirname (program);
  g_autofree char *path = g_build_filename (folder, "idle-cuda.so", NULL);
  if (!dlopen (path, RTLD_NOW))
    bench_fail ("the driver that does nothing cannot be loaded: %s", dlerror ());
}

/* A process of one thread takes locks without locked instructions; a pipeline never is one. */
static gpointer
sleep_for_good (gpointer data)
{
  g_usleep (G_MAXULONG);
  return NULL;
}

static double
run_feed (void *data, unsigned n)
{
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    feed_push (data);
  return bench_now () - start;
}

/* The same work by the library's calls, frame after frame. */
typedef struct {
  GpuDevice *device;
  GpuStream *stream;
  GpuImageSpec spec[FEED_CHAIN_ELEMENTS];
  GpuImage *input;
  GpuNormalize normalize;
  GpuThrottle *throttle[FEED_CHAIN_ELEMENTS];
} Calls;

static GpuImage *
acquire (const Calls *calls, unsigned k)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (calls->device, &calls->spec[k], GPU_MEMORY_STREAM_ORDERED, calls->stream,
                                       GPU_ACQUIRE_DEFAULT, &error);
  bench_check (error);
  return image;
}

static void
calls_open (Calls *calls, GpuDevice *device)
{
  *calls = (Calls){.device = device, .stream = bench_stream_new (device)};
  for (unsigned k = 0; k < FEED_CHAIN_ELEMENTS; k++) {
    calls->spec[k] = bench_spec (GPU_FORMAT_RGBA, k ? 64 : 192, k ? 64 : 108);
    calls->throttle[k] = gpu_throttle_new (8);
  }
  calls->input = acquire (calls, 0);
  gpu_normalize_init (&calls->normalize);
  calls->normalize.global_scale = 0.9f;
}

static void
calls_close (Calls *calls)
{
  gpu_image_unref (calls->input);
  for (unsigned k = 0; k < FEED_CHAIN_ELEMENTS; k++)
    gpu_throttle_free (calls->throttle[k]);
  gpu_stream_unref (calls->stream);
}

static double
run_calls (void *data, unsigned n)
{
  Calls *calls = data;
  GError *error = NULL;
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    GpuImage *src = gpu_image_ref (calls->input);
    for (unsigned k = 0; k < FEED_CHAIN_ELEMENTS; k++) {
      gpu_throttle_begin (calls->throttle[k], &error);
      GpuImage *dst = acquire (calls, k);
      if (k == 0)
        gpu_flip (calls->stream, src, dst, GPU_ORIENTATION_HORIZONTAL, &error);
      else if (k == 1)
        gpu_resize (calls->stream, src, dst, GPU_RESIZE_BILINEAR, &error);
      else
        gpu_normalize (calls->stream, src, dst, &calls->normalize, &error);
      gpu_throttle_end (calls->throttle[k], calls->stream, &error);
      bench_check (error);
      gpu_image_unref (src);
      src = dst;
    }
    gpu_image_unref (src);
  }
  return bench_now () - start;
}

static double
run_cache (void *data, unsigned n)
{
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (acquire (data, 0));
  return bench_now () - start;
}

/* For each of 32 cameras a frame. */
static double
run_chains (void *data, unsigned n)
{
  const double start = bench_now ();
  cameras_submit_chains (data, n);
  return bench_now () - start;
}

/* In memory that changes from frame to frame, or stays. */
static double
run_batches (Cameras *cameras, bool changing, unsigned n)
{
  cameras->changing = changing;
  const double start = bench_now ();
  cameras_submit_batches (cameras, n);
  return bench_now () - start;
}

static double
run_changing_batches (void *data, unsigned n)
{
  return run_batches (data, true, n);
}

static double
run_staying_batches (void *data, unsigned n)
{
  return run_batches (data, false, n);
}

static double
run_pool (void *data, unsigned n)
{
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    GstBuffer *buffer = NULL;
    if (gst_buffer_pool_acquire_buffer (data, &buffer, NULL) != GST_FLOW_OK)
      bench_fail ("%s has no buffer", G_OBJECT_TYPE_NAME (data));
    gst_buffer_unref (buffer);
  }
  return bench_now () - start;
}

static void
pool_free (GstBufferPool *pool)
{
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
}

static void
open_elements (Feed *feed, GpuDevice *device)
{
  if (!feed_open (feed, FEED_CHAIN, bench_stream_new (device), 192, 108, OUT))
    bench_fail ("the elements are not there: GST_PLUGIN_PATH has to name their folder");
}

/* Where host.py has Valgrind count. */
static void __attribute__ ((noinline)) counted (const BenchCase *what)
{
  what->run (what->data, COUNTED);
}

/* All cases; or, with @count, the one of that key. */
static void
run_cases (GpuDevice *device, const char *count)
{
  Feed identity, elements;
  Calls calls;
  Cameras cameras;
  feed_open (&identity, "identity ! identity ! identity", bench_stream_new (device), 192, 108, NULL);
  open_elements (&elements, device);
  calls_open (&calls, device);
  cameras_open (&cameras, device);
  GstBufferPool *video = feed_activate (gst_video_buffer_pool_new (), FULL_CAPS (""));
  GstBufferPool *gpu = feed_activate (gst_gpu_buffer_pool_new (device), FULL_CAPS (FEED_GPU));

  const BenchCase chains[] = {
      {.name = "identity", .run = run_feed, .data = &identity},
      {.name = "flip, resize, normalize", .run = run_feed, .data = &elements},
      {.name = "the library's calls for the same", .run = run_calls, .data = &calls},
  };
  const BenchCase pools[] = {
      {.name = "GstVideoBufferPool", .run = run_pool, .data = video},
      {.name = "GstGpuBufferPool", .run = run_pool, .data = gpu, .goal = BENCH_AT_MOST, .goal_ratio = 2},
      {.name = "the cache", .run = run_cache, .data = &calls},
  };
  const BenchCase batches[] = {
      {.name = "a chain for each", .run = run_chains, .data = &cameras},
      {.name = "one batch, in memory that changes from frame to frame", .run = run_changing_batches, .data = &cameras},
      {.name = "one batch, in memory that stays", .run = run_staying_batches, .data = &cameras},
  };
  const struct {
    const char *key;
    const BenchCase *what;
  } keys[] = {{"identity", &chains[0]},  {"elements", &chains[1]},        {"library", &chains[2]},
              {"video-pool", &pools[0]}, {"gpu-pool", &pools[1]},         {"cache", &pools[2]},
              {"chains", &batches[0]},   {"batch-changing", &batches[1]}, {"batch-staying", &batches[2]}};

  for (unsigned i = 0; count && i < G_N_ELEMENTS (keys); i++)
    if (strcmp (count, keys[i].key) == 0) {
      keys[i].what->run (keys[i].what->data, COUNTED);
      counted (keys[i].what);
    }
  if (!count) {
    bench_compare ("A frame of three elements, on a driver that does nothing", BENCH_TIME, chains,
                   G_N_ELEMENTS (chains));
    bench_compare ("A frame of each of 32 cameras, on a driver that does nothing", BENCH_TIME, batches,
                   G_N_ELEMENTS (batches));
    bench_compare ("Acquire and release, on a driver that does nothing", BENCH_TIME, pools, G_N_ELEMENTS (pools));
  }
  pool_free (video);
  pool_free (gpu);
  cameras_close (&cameras);
  calls_close (&calls);
  feed_close (&elements);
  feed_close (&identity);
}

/* Side by side. Who writes to its mark has its turn, from then until it writes to the last one. */
static volatile unsigned marks[N_CHAINS + 1];

typedef struct {
  _Alignas(128) Feed feed; /* not on the other one's cache lines */
  unsigned number;
  sem_t *mine, *next;
} Runner;

static gpointer
take_turns (gpointer data)
{
  Runner *runner = data;
  for (unsigned i = 0; i < TRACED; i++) {
    sem_wait (runner->mine);
    marks[runner->number]++;
    feed_push (&runner->feed);
    marks[N_CHAINS]++;
    sem_post (runner->next);
  }
  return NULL;
}

static void
run_side_by_side (GpuDevice *device)
{
  Runner runner[N_CHAINS];
  GThread *thread[N_CHAINS];
  sem_t turn[N_CHAINS];
  g_autofree char *maps = NULL;

  for (unsigned i = 0; i < N_CHAINS; i++) {
    sem_init (&turn[i], 0, i == 0);
    runner[i] = (Runner){.number = i, .mine = &turn[i], .next = &turn[(i + 1) % N_CHAINS]};
    open_elements (&runner[i].feed, device);
  }
  if (!g_file_get_contents ("/proc/self/maps", &maps, NULL, NULL))
    bench_fail ("this program's own maps cannot be read");
  printf ("%s", maps);
  for (unsigned i = 0; i <= N_CHAINS; i++)
    printf ("mark %p\n", (void *)&marks[i]);
  fflush (stdout);

  for (unsigned i = 0; i < N_CHAINS; i++)
    thread[i] = g_thread_new ("chain", take_turns, &runner[i]);
  for (unsigned i = 0; i < N_CHAINS; i++)
    g_thread_join (thread[i]);
  for (unsigned i = 0; i < N_CHAINS; i++)
    feed_close (&runner[i].feed);
}

int
main (int argc, char **argv)
{
  const bool is_counted = argc == 3 && strcmp (argv[1], "--count") == 0;
  const bool is_traced = argc == 2 && strcmp (argv[1], "--side-by-side") == 0;

  load_driver (argv[0]);
  /* The elements' device is the same one. */
  g_setenv ("GPUCACHE_DEVICE", "cuda:0", TRUE);
  g_thread_new ("sleeper", sleep_for_good, NULL);
  gst_init (NULL, NULL);
  GpuDevice *device = bench_init (is_counted || is_traced ? 1 : argc, argv);
  if (is_traced)
    run_side_by_side (device);
  else
    run_cases (device, is_counted ? argv[2] : NULL);
  gpu_device_unref (device);
  return bench_finish ();
}
