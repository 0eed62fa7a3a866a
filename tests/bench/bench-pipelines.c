/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Chains of elements: what a frame costs the host, beside a bare kernel launch; what memory a chain takes; how many
 * chains run side by side; and the same picture by the elements that there are without this plugin.
 *
 * The chain is what a model's input takes: a 1080p RGBA frame turned left to right, scaled to 640x640, normalised.
 */
#include "bench.h"
#include "chain.h"
#include "floor.h"

#include <gpucache/gstgpucache.h>
#include <gpucache/testing.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#define RING 16
#define MAX_CHAINS 64
#define N_ELEMENTS 3
#define CHAIN                                                                                                          \
  "gpuflip video-direction=horiz ! gpuresize antialias=false add-borders=false ! gpunormalize scale=<0.9,0.9,0.9,0.9>"
#define GPU_FEATURE "(memory:GPUCache)"
#define OUT_SIZE "width=640,height=640"

/* A chain and what goes into it, over and over. */
typedef struct {
  Chain *chain;
  GstBuffer *input[RING];
  unsigned next;
  GpuStream *stream; /* of frames on the device; NULL for others */
} Feed;

static GpuDevice *device;

static double
cpu_now (void)
{
  struct timespec now;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static char *
rgba_caps (const char *feature, unsigned width, unsigned height)
{
  return g_strdup_printf ("video/x-raw%s,format=RGBA,width=%u,height=%u,framerate=30/1", feature, width, height);
}

static GstBufferPool *
make_pool (GstBufferPool *pool, const char *caps_text)
{
  g_autoptr (GstCaps) caps = gst_caps_from_string (caps_text);
  GstVideoInfo info;
  GstStructure *config = gst_buffer_pool_get_config (pool);
  if (!gst_video_info_from_caps (&info, caps))
    bench_fail ("GStreamer does not know %s", caps_text);
  gst_buffer_pool_config_set_params (config, caps, (guint)GST_VIDEO_INFO_SIZE (&info), 0, 0);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config) || !gst_buffer_pool_set_active (pool, TRUE))
    bench_fail ("%s cannot be used", G_OBJECT_TYPE_NAME (pool));
  return pool;
}

static void
fill_with_noise (GstBuffer *buffer)
{
  static uint64_t state = 88172645463325252u;
  GstMapInfo map;
  if (!gst_buffer_map (buffer, &map, GST_MAP_WRITE))
    bench_fail ("a frame cannot be mapped");
  for (gsize i = 0; i + 8 <= map.size; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    memcpy (map.data + i, &state, 8);
  }
  gst_buffer_unmap (buffer, &map);
}

/* @stream: for frames on the device, which is then taken over; or NULL. Returns: whether the elements are there. */
static bool
feed_open (Feed *feed, const char *description, GpuStream *stream, unsigned width, unsigned height, const char *out)
{
  g_autofree char *caps = rgba_caps (stream ? GPU_FEATURE : "", width, height);
  *feed = (Feed){.chain = chain_new (description, caps, &(ChainConsumer){.out = out}), .stream = stream};
  if (!feed->chain)
    return false;
  GstBufferPool *pool =
      stream ? make_pool (gst_gpu_buffer_pool_new (device), caps) : chain_proposed_pool (feed->chain, caps);
  if (!pool)
    pool = make_pool (gst_video_buffer_pool_new (), caps);
  for (unsigned i = 0; i < RING; i++) {
    GstFlowReturn flow = stream ? gst_gpu_buffer_pool_acquire_on (GST_GPU_BUFFER_POOL (pool), stream, &feed->input[i])
                                : gst_buffer_pool_acquire_buffer (pool, &feed->input[i], NULL);
    if (flow != GST_FLOW_OK)
      bench_fail ("there is no memory for a frame");
    fill_with_noise (feed->input[i]);
  }
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  return true;
}

static void
feed_close (Feed *feed)
{
  chain_free (feed->chain);
  for (unsigned i = 0; i < RING; i++)
    gst_buffer_unref (feed->input[i]);
  if (feed->stream)
    gpu_stream_unref (feed->stream);
}

static void
feed_push (Feed *feed)
{
  chain_push (feed->chain, gst_buffer_ref (feed->input[feed->next]));
  feed->next = (feed->next + 1) % RING;
}

static void
feed_wait (Feed *feed)
{
  GError *error = NULL;
  if (feed->stream)
    gpu_stream_synchronize (feed->stream, &error);
  bench_check (error);
}

static GpuStream *
new_stream (void)
{
  GError *error = NULL;
  GpuStream *stream = gpu_stream_new (device, true, &error);
  bench_check (error);
  return stream;
}

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
  Calls calls = {floor, new_stream (), FLOOR_LAUNCH};
  Feed small, full, nothing;
  uint64_t before[GPU_N_CALLS];

  feed_open (&small, CHAIN, new_stream (), 192, 108, "video/x-raw" GPU_FEATURE ",width=64,height=64");
  feed_open (&full, CHAIN, new_stream (), 1920, 1080, "video/x-raw" GPU_FEATURE "," OUT_SIZE);
  feed_open (&nothing, "identity ! identity ! identity", new_stream (), 192, 108, NULL);
  const double launch = gpu_device_is_host (device) ? 0 : median_of_rounds (run_calls, &calls);
  const double bare = median_of_rounds (run_feed, &nothing), chain = median_of_rounds (run_feed, &small) / N_ELEMENTS;

  bench_section ("Host time for a frame and element");
  if (launch > 0) {
    bench_row ("a kernel launch alone", launch, "ns", BENCH_NO_GOAL, 0);
    bench_row ("1.3 launches and 500 ns", 1.3 * launch + 500, "ns", BENCH_NO_GOAL, 0);
  }
  for (size_t i = 0; launch > 0 && i < G_N_ELEMENTS (others); i++) {
    calls.call = others[i].call;
    bench_row (others[i].name, median_of_rounds (run_calls, &calls), "ns", BENCH_NO_GOAL, 0);
  }
  bench_row ("identity", bare / N_ELEMENTS, "ns", BENCH_NO_GOAL, 0);
  bench_row_against ("flip, resize, normalize of 192x108", chain, "ns", launch > 0 ? 1.3 * launch + 500 : 0,
                     launch > 0 ? BENCH_AT_MOST : BENCH_NO_GOAL, 1);
  for (unsigned i = 0; i < frames; i++)
    feed_push (&full);
  for (unsigned i = 0; i < GPU_N_CALLS; i++)
    before[i] = gpu_device_calls (device, (GpuCall)i);
  const double start = bench_now (), cpu = cpu_now ();
  for (unsigned i = 0; i < frames; i++)
    feed_push (&full);
  const double busy = (cpu_now () - cpu) / frames;
  feed_wait (&full);
  const double all = (bench_now () - start) / frames;
  bench_row ("flip, resize, normalize of 1920x1080: the thread's CPU time", busy / N_ELEMENTS, "ns", BENCH_NO_GOAL, 0);
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
  GpuThrottle *throttle[N_ELEMENTS];
  GpuImageSpec spec[N_ELEMENTS];
  GpuImage *input[RING];
  GpuNormalize normalize;
  GpuAcquireFlags flags;
} Steps;

static void
steps_open (Steps *steps, GpuAcquireFlags flags)
{
  GError *error = NULL;
  *steps = (Steps){.stream = new_stream (), .flags = flags};
  for (unsigned k = 0; k < N_ELEMENTS; k++)
    steps->throttle[k] = gpu_throttle_new (8);
  steps->spec[0] = bench_spec (GPU_FORMAT_RGBA, 1920, 1080);
  steps->spec[1] = bench_spec (GPU_FORMAT_RGBA, 640, 640);
  gpu_image_spec_init_tensor (&steps->spec[2], GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 3, 640, 640, &error);
  bench_check (error);
  gpu_normalize_init (&steps->normalize);
  steps->normalize.global_scale = 1 / 255.0f;

  g_autofree uint8_t *noise = g_malloc (steps->spec[0].size);
  for (size_t i = 0; i < steps->spec[0].size; i++)
    noise[i] = (uint8_t)(i * 2654435761u >> 13);
  for (unsigned i = 0; i < RING; i++) {
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
  for (unsigned i = 0; i < RING; i++)
    gpu_image_unref (steps->input[i]);
  for (unsigned k = 0; k < N_ELEMENTS; k++)
    gpu_throttle_free (steps->throttle[k]);
  gpu_stream_unref (steps->stream);
}

static void
steps_run (Steps *steps, unsigned frames)
{
  GError *error = NULL;
  for (unsigned i = 0; i < frames; i++) {
    GpuImage *src = gpu_image_ref (steps->input[i % RING]);
    for (unsigned k = 0; k < N_ELEMENTS; k++) {
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
measure_library (void)
{
  enum { ROUNDS = 9 };
  GError *error = NULL;
  const unsigned frames = gpu_device_is_host (device) ? 10 : 1000;
  double figures[ROUNDS], host[ROUNDS];
  Steps steps;

  steps_open (&steps, GPU_ACQUIRE_DEFAULT);
  for (int round = -1; round < ROUNDS; round++) {
    const double start = bench_now (), cpu = cpu_now ();
    steps_run (&steps, frames);
    host[MAX (round, 0)] = (cpu_now () - cpu) / frames / 1e3;
    gpu_stream_synchronize (steps.stream, &error);
    bench_check (error);
    figures[MAX (round, 0)] = (bench_now () - start) / frames / 1e3;
  }
  steps_close (&steps);
  bench_section ("The library's flip, resize to 640x640, normalize to float32 CHW of 1080p RGBA, a frame");
  bench_row ("in all", bench_median (figures, ROUNDS), "us", BENCH_NO_GOAL, 0);
  bench_row ("the thread's CPU time", bench_median (host, ROUNDS), "us", BENCH_NO_GOAL, 0);
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
    steps_open (&steps, ways[i].flags);
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

/* Chains side by side */

typedef struct {
  Feed feed;
  Floor *floor; /* NULL: frames go through the feed; else bare launches take their place */
  unsigned frames;
  double cpu_ns;
  GThread *thread;
} Runner;

static gpointer
run_chain (gpointer data)
{
  Runner *runner = data;
  const double start = cpu_now ();
  if (runner->floor)
    floor_enter (runner->floor);
  for (unsigned i = 0; i < runner->frames; i++) {
    if (!runner->floor)
      feed_push (&runner->feed);
    for (unsigned k = 0; runner->floor && k < N_ELEMENTS; k++)
      floor_call (runner->floor, runner->feed.stream, FLOOR_LAUNCH);
  }
  runner->cpu_ns = cpu_now () - start;
  feed_wait (&runner->feed);
  return NULL;
}

static double
run_chains (Runner *runners, unsigned n, unsigned frames)
{
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    runners[i].frames = frames;
    runners[i].thread = g_thread_new ("chain", run_chain, &runners[i]);
  }
  for (unsigned i = 0; i < n; i++)
    g_thread_join (runners[i].thread);
  return bench_now () - start;
}

static void
measure_many (Floor *floor)
{
  static const unsigned numbers[] = {1, 4, 16, 64};
  const unsigned total = gpu_device_is_host (device) ? 64 : 16384;
  const unsigned most = gpu_device_is_host (device) ? 4 : MAX_CHAINS;
  Runner *runners = g_new0 (Runner, MAX_CHAINS);
  double rate[G_N_ELEMENTS (numbers)] = {0}, host[G_N_ELEMENTS (numbers)] = {0}, bytes[G_N_ELEMENTS (numbers)] = {0};
  double launches[G_N_ELEMENTS (numbers)] = {0}, launch_host[G_N_ELEMENTS (numbers)] = {0};
  GError *error = NULL;

  for (unsigned k = 0; k < G_N_ELEMENTS (numbers) && numbers[k] <= most; k++) {
    const unsigned n = numbers[k];
    GpuCacheStats before, after;
    gpu_cache_clear (device, GPU_CACHE_ALL, &error);
    bench_check (error);
    for (unsigned i = 0; i < n; i++)
      feed_open (&runners[i].feed, CHAIN, new_stream (), 1920, 1080, "video/x-raw" GPU_FEATURE "," OUT_SIZE);
    gpu_cache_get_stats (device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &before);
    run_chains (runners, n, total / n / 4 + 1);
    rate[k] = total / n * n / run_chains (runners, n, total / n) * 1e9;
    gpu_cache_get_stats (device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &after);
    bytes[k] = (double)(after.live_bytes + after.pending_bytes + after.idle_bytes - before.live_bytes -
                        before.pending_bytes - before.idle_bytes) /
               n / (1 << 20);
    for (unsigned i = 0; i < n; i++)
      host[k] += runners[i].cpu_ns / (total / n * n);
    for (unsigned i = 0; i < n; i++)
      runners[i].floor = floor;
    launches[k] = total / n * n / run_chains (runners, n, total / n) * 1e9;
    for (unsigned i = 0; i < n; i++)
      launch_host[k] += runners[i].cpu_ns / (total / n * n);
    for (unsigned i = 0; i < n; i++) {
      runners[i].floor = NULL;
      feed_close (&runners[i].feed);
    }
  }

  const struct {
    const char *title, *unit;
    double *values;
  } tables[] = {{"Pipelines in one process, 1080p flip, resize, normalize: frames in all", "1/s", rate},
                {"Threads that launch three kernels that do nothing instead: times in all", "1/s", launches},
                {"The threads' CPU time for a frame", "ns", host},
                {"The same of threads that launch", "ns", launch_host},
                {"Memory of a pipeline besides its input", "MiB", bytes}};
  for (size_t t = 0; t < G_N_ELEMENTS (tables); t++) {
    if (gpu_device_is_host (device) && (tables[t].values == launches || tables[t].values == launch_host))
      continue;
    bench_section (tables[t].title);
    for (unsigned k = 0; k < G_N_ELEMENTS (numbers) && numbers[k] <= most; k++) {
      g_autofree char *name = g_strdup_printf ("%u", numbers[k]);
      bench_row (name, tables[t].values[k], tables[t].unit, BENCH_NO_GOAL, 0);
    }
  }
  g_free (runners);
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
    if (!feed_open (&feed, ways[i].description, ways[i].on_device ? new_stream () : NULL, 1920, 1080, ways[i].out)) {
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
      {"gpuflip, gpuresize, gpunormalize", CHAIN, "video/x-raw" GPU_FEATURE "," OUT_SIZE, true},
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
  measure_library ();
  measure_footprint ();
  measure_many (floor);
  measure_peers ();
  floor_free (floor);
  gpu_device_unref (device);
  return bench_finish ();
}
