/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpuupload and gpudownload beside the bus: frames that a source pushes through them and a consumer reads, against the
 * driver's own copies of as many bytes between pinned and device memory, and GStreamer's cudaupload and cudadownload
 * where they are. Then what the host spends on a frame.
 */
#include "bench.h"
#include "chain.h"
#include "foreign.h"
#include "raw.h"

#include <gpucache/gstgpucache.h>

#include <string.h>
#include <sys/resource.h>

/* The frames that a source has, and those that a consumer holds before it looks at them, as a queue would. */
#define N_SOURCE 8
#define N_HELD 4

/* Frames of a burst, after which the host's time is taken: as many as are in flight by default, so that none waits for
 * another. (Of longer bursts a GPU's driver took some 24 frames, and then as long for each as the bus.) */
#define N_BURST 8
#define N_BURSTS 41
#define IN_FLIGHT " frames-in-flight=16 "

/* A round of a case begins and ends with nothing under way, so it has to be long. */
#define REPEAT 4

/* Pictures, by format and size. */
typedef struct {
  const char *format;
  int width, height;
} Shape;

static const Shape shapes[] = {{"RGBA", 1920, 1080}, {"NV12", 3840, 2160}};

/* One way of a frame: through elements, or a copy of the driver's or the host's. */
typedef struct {
  const char *name;
  const char *elements; /* NULL: @raw */
  const char *before;   /* elements that the source's frames have been through; or NULL */
  bool offered;         /* the source uses the pool that it is offered, else it has plain memory of its own */
  bool reads;           /* the consumer holds some frames and then maps them */
  bool insists;         /* the consumer insists on a pool of its own */
  bool is_foreign;      /* the source's own memory and the consumer's cannot be pinned in place */
  bool is_simple;       /* the consumer knows no strides */
  bool rewrites;        /* the device writes each frame anew before it is pushed, or seems to */
  RawCopy raw;
  unsigned threads; /* of RAW_HOST */
  BenchGoal goal;   /* not on the CPU device */
  double ratio;
} Way;

/* @needs: a factory without which there is no table; or NULL. */
typedef struct {
  const char *title, *needs;
  Way ways[7];
} Table;

#define CUDA_UP "cudaupload ! capsfilter caps=\"video/x-raw(memory:CUDAMemory)\""
#define CUDA_DOWN "cudadownload ! capsfilter caps=video/x-raw"

/* A goal of some per cent of the rate is one for the inverse of the time. */
static const Table tables[] = {
    {"Upload",
     .ways = {{"the driver's copy, pinned memory", .raw = RAW_UP},
              {"gpuupload, source with its pool", .elements = "gpuupload", .offered = true, .goal = BENCH_AT_MOST,
               .ratio = 1 / 0.95},
              {"gpuupload, source with plain memory", .elements = "gpuupload", .goal = BENCH_AT_MOST, .ratio = 1 / 0.8},
              {"gpuupload, memory of an allocator of its own", .elements = "gpuupload", .is_foreign = true}}},
    {"Download",
     .ways = {{"the driver's copy, pinned memory", .raw = RAW_DOWN},
              {"gpudownload", .elements = "gpudownload", .before = "gpuupload", .reads = true, .goal = BENCH_AT_MOST,
               .ratio = 1 / 0.95},
              {"gpudownload, consumer that insists on its pool", .elements = "gpudownload", .before = "gpuupload",
               .reads = true, .insists = true, .goal = BENCH_AT_MOST, .ratio = 1 / 0.8},
              {"gpudownload, memory of an allocator of its own", .elements = "gpudownload", .before = "gpuupload",
               .reads = true, .insists = true, .is_foreign = true}}},
    {"Upload and download",
     .ways = {{"gpuupload alone, source with its pool", .elements = "gpuupload", .offered = true},
              {"gpuupload ! gpudownload, source with the pool", .elements = "gpuupload ! gpudownload", .offered = true,
               .reads = true, .goal = BENCH_AT_MOST, .ratio = 1.15},
              {"gpuupload ! gpudownload, source with plain memory", .elements = "gpuupload ! gpudownload",
               .reads = true},
              {"the driver's copies, both ways", .raw = RAW_BOTH}}},
    {"What copies from and to plain memory stand on",
     .ways = {{"the driver's copy, pinned memory", .raw = RAW_UP},
              {"memcpy() from plain into pinned memory", .raw = RAW_HOST, .threads = 1},
              {"the same by four threads", .raw = RAW_HOST, .threads = 4},
              {"the same by eight threads", .raw = RAW_HOST, .threads = 8},
              {"the driver's copy, from memory pinned in place", .raw = RAW_UP_IN_PLACE},
              {"the driver's copy, into memory pinned in place", .raw = RAW_DOWN_IN_PLACE},
              {"plain memory pinned in place and let go of", .raw = RAW_PIN}}},
    {"Upload by GStreamer's element", .needs = "cudaupload",
     .ways = {{"gpuupload, source with its pool", .elements = "gpuupload", .offered = true},
              {"gpuupload, source with plain memory", .elements = "gpuupload"},
              {"cudaupload", .elements = CUDA_UP, .goal = BENCH_AT_LEAST, .ratio = 3.3}}},
    {"Download by GStreamer's element", .needs = "cudadownload",
     .ways = {{"gpudownload", .elements = "gpudownload", .before = "gpuupload", .reads = true},
              /* With strides it leaves the copy to who maps the frame, into memory that is kept with it. */
              {"cudadownload", .elements = CUDA_DOWN, .before = CUDA_UP, .reads = true, .rewrites = true,
               .goal = BENCH_AT_LEAST, .ratio = 3.3},
              {"cudadownload, consumer that knows no strides", .elements = CUDA_DOWN, .before = CUDA_UP, .reads = true,
               .is_simple = true, .goal = BENCH_AT_LEAST, .ratio = 3.3}}},
    {"Upload and download by GStreamer's elements", .needs = "cudadownload",
     .ways = {{"gpuupload ! gpudownload, source with the pool", .elements = "gpuupload ! gpudownload", .offered = true,
               .reads = true},
              {"cudaupload ! cudadownload", .elements = CUDA_UP " ! " CUDA_DOWN, .reads = true, .goal = BENCH_AT_LEAST,
               .ratio = 3.3}}},
};

/* What pushes frames into a chain. */
typedef struct {
  Chain *chain;
  GstBufferPool *offered; /* by the chain; NULL if the source has frames of its own */
  GstBuffer *frames[N_SOURCE];
  bool rewrites;
} Source;

static GpuDevice *device;

/* A map for the device, whose flag is the same for GStreamer's CUDA memory: what the host had of it is out of date. */
static void
rewrite (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);
  GstMapInfo map;
  if (!gst_memory_map (memory, &map, GST_MAP_WRITE | GST_MAP_GPU))
    bench_fail ("a frame on the device cannot be mapped");
  gst_memory_unmap (memory, &map);
}

static GstBuffer *
next_frame (Source *source, unsigned i)
{
  GstBuffer *buffer = source->frames[i % N_SOURCE];
  if (source->rewrites)
    rewrite (buffer);
  if (!source->offered)
    return gst_buffer_ref (buffer);
  if (gst_buffer_pool_acquire_buffer (source->offered, &buffer, NULL) != GST_FLOW_OK)
    bench_fail ("the source's pool has no frame");
  return buffer;
}

static char *
caps_of (const Shape *shape)
{
  return g_strdup_printf ("video/x-raw,format=%s,width=%d,height=%d,framerate=0/1", shape->format, shape->width,
                          shape->height);
}

static size_t
size_of (const Shape *shape)
{
  g_autofree char *text = caps_of (shape);
  g_autoptr (GstCaps) caps = gst_caps_from_string (text);
  GstVideoInfo info;
  gst_video_info_from_caps (&info, caps);
  return GST_VIDEO_INFO_SIZE (&info);
}

static void
fill_plain (Source *source, size_t size, bool foreign)
{
  for (unsigned i = 0; i < N_SOURCE; i++) {
    source->frames[i] = gst_buffer_new ();
    gst_buffer_append_memory (source->frames[i],
                              foreign ? foreign_memory_new (size) : gst_allocator_alloc (NULL, size, NULL));
    gst_buffer_memset (source->frames[i], 0, (guint8)i, size);
  }
}

static void
source_close (Source *source)
{
  chain_free (source->chain);
  if (source->offered)
    gst_buffer_pool_set_active (source->offered, FALSE);
  gst_clear_object (&source->offered);
  for (unsigned i = 0; i < N_SOURCE; i++)
    gst_clear_buffer (&source->frames[i]);
}

/* Returns: whether the elements are there. */
static bool
source_open (Source *source, const Way *way, const Shape *shape)
{
  g_autofree char *caps = caps_of (shape);
  ChainConsumer consumer = {.holds = way->reads ? N_HELD : 1,
                            .reads = way->reads,
                            .insists = way->insists,
                            .is_foreign = way->is_foreign,
                            .is_simple = way->is_simple};
  Source first = {0};
  *source = (Source){.rewrites = way->rewrites};
  if (way->before) {
    const Way before = {.elements = way->before};
    if (!source_open (&first, &before, shape))
      return false;
    for (unsigned i = 0; i < N_SOURCE; i++) {
      chain_push (first.chain, next_frame (&first, i));
      source->frames[i] = chain_ref_last (first.chain);
    }
    g_free (caps);
    caps = chain_out_caps (first.chain);
    consumer.contexts_of = first.chain;
  }
  source->chain = chain_new (way->elements, caps, &consumer);
  if (source->chain && way->offered)
    source->offered = chain_proposed_pool (source->chain, caps);
  if (source->chain && !source->offered && !way->before)
    fill_plain (source, size_of (shape), way->is_foreign);
  source_close (&first);
  if (!source->chain)
    source_close (source);
  return source->chain != NULL;
}

/* A row: the way, and what it runs on. */
typedef struct {
  const Way *way;
  Source source;
  RawCopies *raw;
} Row;

static double
run_row (void *data, unsigned n)
{
  Row *row = data;
  if (!row->way->elements)
    return raw_copies_run (row->raw, row->way->raw, row->way->threads, n * REPEAT) / REPEAT;
  const double start = bench_now ();
  for (unsigned i = 0; i < n * REPEAT; i++)
    chain_push (row->source.chain, next_frame (&row->source, i));
  chain_drain (row->source.chain);
  return (bench_now () - start) / REPEAT;
}

static bool
needs_pinning (const Way *way)
{
  return !way->elements && (way->raw == RAW_UP_IN_PLACE || way->raw == RAW_DOWN_IN_PLACE || way->raw == RAW_PIN);
}

static void
measure_table (const Table *table, const Shape *shape, RawCopies *raw)
{
  Row rows[G_N_ELEMENTS (table->ways)] = {0};
  BenchCase cases[G_N_ELEMENTS (table->ways)];
  unsigned n = 0;
  if (table->needs && !gst_registry_check_feature_version (gst_registry_get (), table->needs, 0, 0, 0))
    return;
  for (const Way *way = table->ways; way < table->ways + G_N_ELEMENTS (table->ways) && way->name; way++) {
    if (needs_pinning (way) && !raw_copies_can_pin (raw))
      continue;
    rows[n] = (Row){.way = way, .raw = raw};
    if (way->elements && !source_open (&rows[n].source, way, shape))
      bench_fail ("an element of \"%s\" is not there", way->elements);
    cases[n] = (BenchCase){.name = way->name,
                           .run = run_row,
                           .data = &rows[n],
                           .goal = gpu_device_is_host (device) ? BENCH_NO_GOAL : way->goal,
                           .goal_ratio = way->ratio};
    n++;
  }
  g_autofree char *title =
      g_strdup_printf ("%s, %dx%d %s, a frame", table->title, shape->width, shape->height, shape->format);
  bench_compare (title, BENCH_TIME, cases, n);
  for (unsigned i = 0; i < n; i++)
    source_close (&rows[i].source);
}

/* What a frame takes of the host while nothing makes it wait: as many frames in flight as there are. */
typedef struct {
  double ns, cpu_ns;
  uint64_t waits;
} HostTime;

static uint64_t
host_waits (void)
{
  GpuCacheStats stats;
  gpu_cache_get_stats (device, GPU_ACCOUNT_HOST, GPU_CACHE_ALL, &stats);
  return stats.host_waits + stats.throttle_waits;
}

static void
push_burst (Source *source)
{
  for (unsigned i = 0; i < N_BURST; i++)
    chain_push (source->chain, next_frame (source, i));
}

static HostTime
host_time (const Way *way, const Shape *shape)
{
  double ns[N_BURSTS], cpu_ns[N_BURSTS];
  HostTime time = {0};
  Source source;
  if (!source_open (&source, way, shape))
    bench_fail ("an element of \"%s\" is not there", way->elements);
  for (int burst = -2; burst < N_BURSTS; burst++) {
    const uint64_t waits = host_waits ();
    const double start = bench_now (), cpu_start = bench_cpu_now ();
    push_burst (&source);
    cpu_ns[MAX (burst, 0)] = (bench_cpu_now () - cpu_start) / N_BURST;
    ns[MAX (burst, 0)] = (bench_now () - start) / N_BURST;
    if (burst >= 0)
      time.waits += host_waits () - waits;
    chain_drain (source.chain);
  }
  source_close (&source);
  time.ns = bench_median (ns, N_BURSTS);
  time.cpu_ns = bench_median (cpu_ns, N_BURSTS);
  return time;
}

static void
measure_host_time (const Shape *shape)
{
  static const Way ways[] = {
      {"gpuupload and its pool", .elements = "gpuupload" IN_FLIGHT, .offered = true},
      {"gpudownload", .elements = "gpudownload" IN_FLIGHT, .before = "gpuupload"},
  };
  HostTime times[G_N_ELEMENTS (ways)];
  for (size_t i = 0; i < G_N_ELEMENTS (ways); i++)
    times[i] = host_time (&ways[i], shape);

  g_autofree char *title = g_strdup_printf ("The host's time for a frame of %dx%d %s, nothing staged", shape->width,
                                            shape->height, shape->format);
  bench_section (title);
  bench_row ("the goal", 15000, "ns", BENCH_NO_GOAL, 0);
  for (size_t i = 0; i < G_N_ELEMENTS (ways); i++) {
    g_autofree char *waits = g_strdup_printf ("host waits in %s", ways[i].name);
    bench_row (ways[i].name, times[i].ns, "ns", BENCH_AT_MOST, 1);
    bench_row ("of that, of the processor", times[i].cpu_ns, "ns", BENCH_NO_GOAL, 0);
    bench_row (waits, (double)times[i].waits, "", BENCH_NO_GOAL, 0);
  }
}

/* Pages of plain memory that were not there when they were touched: where each frame has some, its memory is new. */
static void
count_faults (const Shape *shape)
{
  static const Way ways[] = {
      {"gpuupload, source with plain memory", .elements = "gpuupload"},
      {"gpudownload, consumer that insists on its pool", .elements = "gpudownload", .before = "gpuupload",
       .reads = true, .insists = true},
  };
  g_autofree char *title =
      g_strdup_printf ("Page faults, %dx%d %s, a frame", shape->width, shape->height, shape->format);
  bench_section (title);
  bench_row ("pages of a frame", (double)size_of (shape) / 4096, "", BENCH_NO_GOAL, 0);
  for (size_t i = 0; i < G_N_ELEMENTS (ways); i++) {
    struct rusage before, after;
    Source source;
    if (!source_open (&source, &ways[i], shape))
      bench_fail ("an element of \"%s\" is not there", ways[i].elements);
    push_burst (&source);
    push_burst (&source);
    getrusage (RUSAGE_SELF, &before);
    push_burst (&source);
    getrusage (RUSAGE_SELF, &after);
    bench_row (ways[i].name, (double)(after.ru_minflt - before.ru_minflt) / N_BURST, "", BENCH_NO_GOAL, 0);
    source_close (&source);
  }
}

int
main (int argc, char **argv)
{
  gst_init (NULL, NULL);
  device = bench_init (argc, argv);
  if (!gst_registry_check_feature_version (gst_registry_get (), "gpuupload", 0, 0, 0))
    bench_fail ("GStreamer does not find gpuupload: set GST_PLUGIN_PATH to the directory that libgstgpucache.so is in");
  /* The elements' device is the same one. */
  g_setenv ("GPUCACHE_DEVICE", gpu_device_name (device), TRUE);
  for (size_t i = 0; i < G_N_ELEMENTS (shapes); i++) {
    RawCopies *raw = raw_copies_new (device, size_of (&shapes[i]));
    for (size_t t = 0; t < G_N_ELEMENTS (tables); t++)
      measure_table (&tables[t], &shapes[i], raw);
    raw_copies_free (raw);
    measure_host_time (&shapes[i]);
    count_faults (&shapes[i]);
  }
  gpu_device_unref (device);
  return bench_finish ();
}
