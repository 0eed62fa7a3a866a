/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A chain of elements: what a frame costs the host, beside a bare kernel launch; what a model's input takes of the host
 * and of the device; what memory a chain takes; and the same picture by the elements that there are without this
 * plugin.
 *
 * The chain is what a model's input takes: a 1080p RGBA frame turned left to right, scaled to 640x640, normalised.
 */
#include "bench.h"
#include "feed.h"
#include "floor.h"

#include <gpucache/gstgpucache.h>
#include <gpucache/testing.h>

#include <stdio.h>

#define OUT_SIZE "width=640,height=640"
#define OUT_TENSOR "other/tensors" FEED_GPU ",num-tensors=1,types=float32,dimensions=640:640:3"

static GpuDevice *device;

/* What the host does for a frame */

static double
run_feed (void *data, unsigned n)
{
  Feed *feed = data;
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    feed_push (feed);
  const double ns = bench_now () - start;
  feed_wait (feed);
  return ns;
}

typedef struct {
  Floor *floor;
  GpuStream *stream;
  FloorCall call;
} Calls;

static double
run_calls (void *data, unsigned n)
{
  Calls *calls = data;
  GError *error = NULL;
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    floor_call (calls->floor, calls->stream, calls->call);
  const double ns = bench_now () - start;
  gpu_stream_synchronize (calls->stream, &error);
  bench_check (error);
  return ns;
}

/* Rounds of few frames, so that the device's queue is never what the host waits for. */
static double
median_of_rounds (double (*run) (void *data, unsigned n), void *data)
{
  enum { FRAMES = 100, ROUNDS = 41 };
  double figures[ROUNDS];
  for (int round = -3; round < ROUNDS; round++)
    figures[MAX (round, 0)] = run (data, FRAMES) / FRAMES;
  return bench_median (figures, ROUNDS);
}

static void
print_calls (const uint64_t before[GPU_N_CALLS], unsigned frames)
{
  static const struct {
    GpuCall call;
    const char *name;
  } calls[] = {
      {GPU_CALL_LAUNCH, "launches"},
      {GPU_CALL_EVENT_RECORD, "events recorded"},
      {GPU_CALL_EVENT_QUERY, "events asked"},
      {GPU_CALL_EVENT_WAIT, "waits of the host"},
      {GPU_CALL_STREAM_WAIT, "waits of a stream"},
      {GPU_CALL_ALLOC, "allocations"},
      {GPU_CALL_FREE, "memory freed"},
      {GPU_CALL_COPY, "copies"},
  };
  bench_section ("The device's calls for a frame of that chain");
  bench_row ("frames", 1, "", BENCH_NO_GOAL, 0);
  for (size_t i = 0; i < G_N_ELEMENTS (calls); i++)
    bench_row (calls[i].name, (double)(gpu_device_calls (device, calls[i].call) - before[calls[i].call]) / frames, "",
               BENCH_NO_GOAL, 0);
}

/* Small frames, so that the device is never what the host waits for. */
static void
measure_host (Floor *floor)
{
  const unsigned frames = gpu_device_is_host (device) ? 50 : 1000;
  static const struct {
    FloorCall call;
    const char *name;
  } others[] = {{FLOOR_TURN, "three kernels in turn with 400 bytes of arguments, a launch"},
                {FLOOR_RECORD, "an event's record"},
                {FLOOR_QUERY, "a question about an event"},
                {FLOOR_CONTEXT, "a context pushed and popped"}};
  Calls calls = {floor, bench_stream_new (device), FLOOR_LAUNCH};
  Feed small, full, nothing;
  uint64_t before[GPU_N_CALLS];

  feed_open (&small, FEED_CHAIN, bench_stream_new (device), 192, 108, "video/x-raw" FEED_GPU ",width=64,height=64");
  feed_open (&full, FEED_CHAIN, bench_stream_new (device), 1920, 1080, "video/x-raw" FEED_GPU "," OUT_SIZE);
  feed_open (&nothing, "identity ! identity ! identity", bench_stream_new (device), 192, 108, NULL);
  const double launch = gpu_device_is_host (device) ? 0 : median_of_rounds (run_calls, &calls);
  const double bare = median_of_rounds (run_feed, &nothing),
               chain = median_of_rounds (run_feed, &small) / FEED_CHAIN_ELEMENTS;

  bench_section ("Host time for a frame and element");
  if (launch > 0) {
    bench_row ("a kernel launch alone", launch, "ns", BENCH_NO_GOAL, 0);
    bench_row ("1.3 launches and 500 ns", 1.3 * launch + 500, "ns", BENCH_NO_GOAL, 0);
  }
  for (size_t i = 0; launch > 0 && i < G_N_ELEMENTS (others); i++) {
    calls.call = others[i].call;
    bench_row (others[i].name, median_of_rounds (run_calls, &calls), "ns", BENCH_NO_GOAL, 0);
  }
  bench_row ("identity", bare / FEED_CHAIN_ELEMENTS, "ns", BENCH_NO_GOAL, 0);
  bench_row_against ("flip, resize, normalize of 192x108", chain, "ns", launch > 0 ? 1.3 * launch + 500 : 0,
                     launch > 0 ? BENCH_AT_MOST : BENCH_NO_GOAL, 1);
  for (unsigned i = 0; i < frames; i++)
    feed_push (&full);
  for (unsigned i = 0; i < GPU_N_CALLS; i++)
    before[i] = gpu_device_calls (device, (GpuCall)i);
  const double start = bench_now (), cpu = bench_cpu_now ();
  for (unsigned i = 0; i < frames; i++)
    feed_push (&full);
  const double busy = (bench_cpu_now () - cpu) / frames;
  feed_wait (&full);
  const double all = (bench_now () - start) / frames;
  bench_row ("flip, resize, normalize of 1920x1080: the thread's CPU time", busy / FEED_CHAIN_ELEMENTS, "ns",
             BENCH_NO_GOAL, 0);
  bench_section ("Flip, resize to 640x640, normalize of 1920x1080 RGBA");
  bench_row ("time for a frame", all / 1e3, "us", BENCH_NO_GOAL, 0);
  print_calls (before, frames);

  feed_close (&small);
  feed_close (&full);
  feed_close (&nothing);
  gpu_stream_unref (calls.stream);
}

/* The same by the library's own calls, to a tensor as a model takes it: no elements, but memory from the cache for each
 * frame. */
typedef struct {
  GpuStream *stream;
  GpuThrottle *throttle[FEED_CHAIN_ELEMENTS];
  GpuImageSpec spec[FEED_CHAIN_ELEMENTS];
  GpuImage *input[FEED_RING];
  GpuNormalize normalize;
  GpuAcquireFlags flags;
} Steps;

/* Of 1080p frames to a tensor; or, as measure_host() has them, of small ones to a picture. */
static void
steps_open (Steps *steps, GpuAcquireFlags flags, bool is_small)
{
  const unsigned size = is_small ? 64 : 640;
  GError *error = NULL;
  *steps = (Steps){.stream = bench_stream_new (device), .flags = flags};
  for (unsigned k = 0; k < FEED_CHAIN_ELEMENTS; k++)
    steps->throttle[k] = gpu_throttle_new (8);
  steps->spec[0] = is_small ? bench_spec (GPU_FORMAT_RGBA, 192, 108) : bench_spec (GPU_FORMAT_RGBA, 1920, 1080);
  steps->spec[1] = steps->spec[2] = bench_spec (GPU_FORMAT_RGBA, size, size);
  if (!is_small)
    gpu_image_spec_init_tensor (&steps->spec[2], GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 3, size, size, &error);
  bench_check (error);
  gpu_normalize_init (&steps->normalize);
  steps->normalize.global_scale = 1 / 255.0f;

  g_autofree uint8_t *noise = g_malloc (steps->spec[0].size);
  for (size_t i = 0; i < steps->spec[0].size; i++)
    noise[i] = (uint8_t)(i * 2654435761u >> 13);
  for (unsigned i = 0; i < FEED_RING; i++) {
    steps->input[i] = gpu_image_acquire (device, &steps->spec[0], GPU_MEMORY_STREAM_ORDERED, steps->stream,
                                         GPU_ACQUIRE_DEFAULT, &error);
    bench_check (error);
    gpu_image_copy_from_host (steps->stream, steps->input[i], noise, &steps->spec[0], &error);
    bench_check (error);
  }
}

static void
steps_close (Steps *steps)
{
  for (unsigned i = 0; i < FEED_RING; i++)
    gpu_image_unref (steps->input[i]);
  for (unsigned k = 0; k < FEED_CHAIN_ELEMENTS; k++)
    gpu_throttle_free (steps->throttle[k]);
  gpu_stream_unref (steps->stream);
}

static void
steps_run (Steps *steps, unsigned frames)
{
  GError *error = NULL;
  for (unsigned i = 0; i < frames; i++) {
    GpuImage *src = gpu_image_ref (steps->input[i % FEED_RING]);
    for (unsigned k = 0; k < FEED_CHAIN_ELEMENTS; k++) {
      gpu_throttle_begin (steps->throttle[k], &error);
      bench_check (error);
      GpuImage *dst =
          gpu_image_acquire (device, &steps->spec[k], GPU_MEMORY_STREAM_ORDERED, steps->stream, steps->flags, &error);
      bench_check (error);
      if (k == 0)
        gpu_flip (steps->stream, src, dst, GPU_ORIENTATION_HORIZONTAL, &error);
      else if (k == 1)
        gpu_resize (steps->stream, src, dst, GPU_RESIZE_BILINEAR, &error);
      else
        gpu_normalize (steps->stream, src, dst, &steps->normalize, &error);
      bench_check (error);
      gpu_throttle_end (steps->throttle[k], steps->stream, &error);
      bench_check (error);
      gpu_image_unref (src);
      src = dst;
    }
    gpu_image_unref (src);
  }
}

static void
submit_steps (void *data, unsigned n)
{
  steps_run (data, n);
}

static void
submit_feed (void *data, unsigned n)
{
  for (unsigned i = 0; i < n; i++)
    feed_push (data);
}

/* A model's input by elements and by the library: how long a frame takes, and what of that is the work of the host's
 * thread and of the device. Whichever of the two is close to the first figure is what holds it up. peers.py compares
 * others' with these. */
static void
measure_input (Floor *floor)
{
  /* Of a chain's work before it waits for the device (rule 27). */
  enum { ROUNDS = 9, DEVICE_FRAMES = 6 };
  const bool is_host = gpu_device_is_host (device);
  const unsigned frames = is_host ? 10 : 1000;
  Feed feed;
  Steps steps;
  feed_open (&feed, FEED_CHAIN " layout=chw", bench_stream_new (device), 1920, 1080, OUT_TENSOR);
  steps_open (&steps, GPU_ACQUIRE_DEFAULT, false);
  const struct {
    const char *name;
    void (*submit) (void *data, unsigned n);
    void *data;
    GpuStream *stream;
  } ways[] = {{"gpuflip, gpuresize, gpunormalize", submit_feed, &feed, feed.stream},
              {"the library's calls", submit_steps, &steps, steps.stream}};
  double all[G_N_ELEMENTS (ways)][ROUNDS], host[G_N_ELEMENTS (ways)][ROUNDS], work[G_N_ELEMENTS (ways)][ROUNDS];
  GError *error = NULL;

  for (int round = -1; round < ROUNDS; round++)
    for (size_t i = 0; i < G_N_ELEMENTS (ways); i++) {
      const double start = bench_now (), cpu = bench_cpu_now ();
      ways[i].submit (ways[i].data, frames);
      host[i][MAX (round, 0)] = (bench_cpu_now () - cpu) / frames / 1e3;
      gpu_stream_synchronize (ways[i].stream, &error);
      bench_check (error);
      all[i][MAX (round, 0)] = (bench_now () - start) / frames / 1e3;
      work[i][MAX (round, 0)] =
          floor_time (floor, ways[i].stream, ways[i].submit, ways[i].data, DEVICE_FRAMES) / DEVICE_FRAMES / 1e3;
    }
  bench_section ("A model's input: 1080p RGBA to 640x640 float32 CHW, a frame");
  for (size_t i = 0; i < G_N_ELEMENTS (ways); i++) {
    g_autofree char *cpu = g_strdup_printf ("%s, the thread's CPU time", ways[i].name);
    g_autofree char *device_time = g_strdup_printf ("%s, the device's time", ways[i].name);
    bench_row (ways[i].name, bench_median (all[i], ROUNDS), "us", BENCH_NO_GOAL, 0);
    bench_row (cpu, bench_median (host[i], ROUNDS), "us", BENCH_NO_GOAL, 0);
    if (!is_host)
      bench_row (device_time, bench_median (work[i], ROUNDS), "us", BENCH_NO_GOAL, 0);
  }
  steps_close (&steps);
  feed_close (&feed);
}

/* What they take in the cache, when memory is handed out in stream order and when it is handed out complete. */
static void
measure_footprint (void)
{
  static const struct {
    const char *name;
    GpuAcquireFlags flags;
  } ways[] = {{"memory is reused in stream order, early", GPU_ACQUIRE_DEFAULT},
              {"memory is reused when it is complete", GPU_ACQUIRE_HOST}};
  const unsigned frames = gpu_device_is_host (device) ? 20 : 2000;
  GError *error = NULL;
  double bytes[G_N_ELEMENTS (ways)];
  size_t stages = 0;

  for (size_t i = 0; i < G_N_ELEMENTS (ways); i++) {
    GpuCacheStats before, after;
    Steps steps;
    gpu_cache_clear (device, GPU_CACHE_ALL, &error);
    bench_check (error);
    steps_open (&steps, ways[i].flags, false);
    gpu_cache_get_stats (device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &before);
    steps_run (&steps, frames);
    gpu_cache_get_stats (device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &after);
    bytes[i] = (double)(after.live_bytes + after.pending_bytes + after.idle_bytes - before.live_bytes -
                        before.pending_bytes - before.idle_bytes);
    stages = steps.spec[0].size + steps.spec[1].size + steps.spec[2].size;
    steps_close (&steps);
  }
  bench_section ("What this chain takes in the cache besides its input");
  bench_row ("one allocation for each step", (double)stages / (1 << 20), "MiB", BENCH_NO_GOAL, 0);
  for (size_t i = 0; i < G_N_ELEMENTS (ways); i++)
    bench_row (ways[i].name, bytes[i] / (1 << 20), "MiB", BENCH_NO_GOAL, 0);
}

/* The host's part once more, with other things around it: where elements take as long as the library's calls and
 * identity together, what they take more elsewhere is not theirs. */
static double
run_steps (void *data, unsigned n)
{
  Steps *steps = data;
  GError *error = NULL;
  const double start = bench_now ();
  steps_run (steps, n);
  const double ns = bench_now () - start;
  gpu_stream_synchronize (steps->stream, &error);
  bench_check (error);
  return ns;
}

typedef struct {
  Feed *feed;
  double ns;
} FeedThread;

static gpointer
time_feed (gpointer data)
{
  FeedThread *thread = data;
  thread->ns = median_of_rounds (run_feed, thread->feed) / FEED_CHAIN_ELEMENTS;
  return NULL;
}

static void
measure_host_again (void)
{
  Feed feed;
  Steps steps;
  FeedThread thread = {.feed = &feed};

  bench_section ("Host time for a frame of 192x108 and element, with nothing else open");
  feed_open (&feed, FEED_CHAIN, bench_stream_new (device), 192, 108, "video/x-raw" FEED_GPU ",width=64,height=64");
  bench_row ("flip, resize, normalize", median_of_rounds (run_feed, &feed) / FEED_CHAIN_ELEMENTS, "ns", BENCH_NO_GOAL,
             0);
  g_thread_join (g_thread_new ("feed", time_feed, &thread));
  bench_row ("the same on a thread of their own", thread.ns, "ns", BENCH_NO_GOAL, 0);
  feed_close (&feed);
  steps_open (&steps, GPU_ACQUIRE_DEFAULT, true);
  bench_row ("the library's calls for the same", median_of_rounds (run_steps, &steps) / FEED_CHAIN_ELEMENTS, "ns",
             BENCH_NO_GOAL, 0);
  steps_close (&steps);
}

/* The elements that there are without the plugin */

typedef struct {
  const char *name, *description, *out;
  bool on_device;
} Way;

static void
measure_ways (const char *title, const Way *ways, size_t n, unsigned frames)
{
  bench_section (title);
  for (size_t i = 0; i < n; i++) {
    Feed feed;
    if (!feed_open (&feed, ways[i].description, ways[i].on_device ? bench_stream_new (device) : NULL, 1920, 1080,
                    ways[i].out)) {
      printf ("  %-58s an element is not there\n", ways[i].name);
      continue;
    }
    double figures[5];
    for (int round = -1; round < 5; round++) {
      const double start = bench_now ();
      for (unsigned k = 0; k < frames; k++)
        feed_push (&feed);
      feed_wait (&feed);
      figures[MAX (round, 0)] = (bench_now () - start) / frames / 1e3;
    }
    bench_row (ways[i].name, bench_median (figures, 5), "us", BENCH_NO_GOAL, 0);
    feed_close (&feed);
  }
}

static void
measure_peers (void)
{
  static const Way chains[] = {
      {"gpuflip, gpuresize, gpunormalize", FEED_CHAIN, "video/x-raw" FEED_GPU "," OUT_SIZE, true},
      {"videoflip, videoscale (bilinear), no normalisation", "videoflip video-direction=horiz ! videoscale",
       "video/x-raw," OUT_SIZE, false},
      {"videoflip, videoscale with a thread a core", "videoflip video-direction=horiz ! videoscale n-threads=0",
       "video/x-raw," OUT_SIZE, false},
  };
  static const Way copies[] = {
      {"gpuupload, gpudownload", "gpuupload ! gpudownload", "video/x-raw", false},
      {"cudaupload, cudadownload", "cudaupload ! video/x-raw(memory:CUDAMemory) ! cudadownload", "video/x-raw", false},
  };
  measure_ways ("1080p RGBA to 640x640, a frame", chains, G_N_ELEMENTS (chains), 50);
  measure_ways ("1080p RGBA to the device and back, a frame", copies, G_N_ELEMENTS (copies), 50);
}

int
main (int argc, char **argv)
{
  gst_init (NULL, NULL);
  device = bench_init (argc, argv);
  /* The elements' device is the same one. */
  g_setenv ("GPUCACHE_DEVICE", gpu_device_name (device), TRUE);
  Floor *floor = floor_new (device);
  measure_host (floor);
  measure_input (floor);
  measure_footprint ();
  measure_peers ();
  measure_host_again ();
  floor_free (floor);
  gpu_device_unref (device);
  return bench_finish ();
}
