/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pipelines side by side in one process, and what tells apart why more of them do not do more: the same pipelines on
 * frames so small that the device has next to nothing to do; threads that only launch, kernels that do nothing and
 * copies that move as many bytes; the same with a context for each thread; and which share of the memory's rate, as a
 * big copy has it, all of them come to.
 *
 * Where small frames scale further than large ones, the device holds them up, at the rate of the copies or below it;
 * where bare launches scale no further, the driver does, and where they do with a context for each, its lock of a
 * context; what remains is the elements' and the library's.
 */
#include "bench.h"
#include "bytes.h"
#include "feed.h"
#include "floor.h"

#include <gpucache/gstgpucache.h>

#define MAX_THREADS 64
#define MAX_CONTEXTS 16 /* each takes a fraction of a second and of the device's memory */
#define N_STEPS FEED_CHAIN_ELEMENTS
#define RING 4 /* of frames that a thread copies: with those of the other threads, more than a GPU's L2 holds */

static const unsigned numbers[] = {1, 4, 16, MAX_THREADS};

#define N_NUMBERS G_N_ELEMENTS (numbers)

typedef struct Work Work;

/* A thread, and what it works with. */
typedef struct {
  const Work *work;
  Feed feed;
  Floor *floor;
  GpuStream *stream;
  GpuImage *src[RING], *dst[RING];
  unsigned frames;
  double cpu_ns;
  GThread *thread;
} Worker;

/* @of_gpus: nothing on the CPU device; @has_contexts: one for each thread; @moves: whether as many bytes as the chain
 * must. */
struct Work {
  const char *name;
  void (*open) (Worker *worker, unsigned number);
  void (*do_frame) (Worker *worker, unsigned i);
  void (*close) (Worker *worker);
  bool of_gpus;
  bool has_contexts;
  bool is_pipeline;
  bool moves;
};

/* How many bytes the steps of the chain must read and write. */
typedef struct {
  GpuImageSpec spec;
  size_t read[N_STEPS], write[N_STEPS], all;
} Bytes;

static GpuDevice *device;
static Floor *floor_of_all, *floors[MAX_CONTEXTS];
static unsigned n_contexts; /* that there are, each with a floor */
static Bytes bytes;

static void
count_bytes (void)
{
  const GpuImageSpec small = bench_spec (GPU_FORMAT_RGBA, 640, 640);
  bytes.spec = bench_spec (GPU_FORMAT_RGBA, 1920, 1080);
  bytes.read[0] = bytes.write[0] = bytes_of_samples (&bytes.spec);
  bytes.read[1] = bytes_of_bilinear (&bytes.spec, &small);
  bytes.write[1] = bytes.read[2] = bytes.write[2] = bytes_of_samples (&small);
  for (unsigned k = 0; k < N_STEPS; k++)
    bytes.all += bytes.read[k] + bytes.write[k];
}

/* Pipelines */

static void
open_large (Worker *worker, unsigned number)
{
  worker->stream = bench_stream_new (device);
  feed_open (&worker->feed, FEED_CHAIN, gpu_stream_ref (worker->stream), 1920, 1080,
             "video/x-raw" FEED_GPU ",width=640,height=640");
}

static void
open_small (Worker *worker, unsigned number)
{
  worker->stream = bench_stream_new (device);
  feed_open (&worker->feed, FEED_CHAIN, gpu_stream_ref (worker->stream), 48, 32,
             "video/x-raw" FEED_GPU ",width=16,height=16");
}

static void
push_frame (Worker *worker, unsigned i)
{
  feed_push (&worker->feed);
}

static void
close_feed (Worker *worker)
{
  feed_close (&worker->feed);
  gpu_stream_unref (worker->stream);
}

/* Bare launches */

static void
open_launches (Worker *worker, unsigned number)
{
  worker->stream = bench_stream_new (device);
  worker->floor = floor_of_all;
}

static void
open_own_context (Worker *worker, unsigned number)
{
  worker->floor = floors[number];
  worker->stream = bench_stream_new (floor_device (worker->floor));
}

static void
launch (Worker *worker, unsigned i)
{
  for (unsigned k = 0; k < N_STEPS; k++)
    floor_call (worker->floor, worker->stream, FLOOR_LAUNCH);
}

static void
close_launches (Worker *worker)
{
  gpu_stream_unref (worker->stream);
}

/* Copies */

static GpuImage *
new_frame (GpuStream *stream)
{
  GError *error = NULL;
  GpuImage *image = bench_image_new (device, &bytes.spec, GPU_MEMORY_STREAM_ORDERED, stream);
  gpu_image_fill (stream, image, 7, &error);
  bench_check (error);
  return image;
}

static void
open_copies (Worker *worker, unsigned number)
{
  open_launches (worker, number);
  for (unsigned i = 0; i < RING; i++) {
    worker->src[i] = new_frame (worker->stream);
    worker->dst[i] = new_frame (worker->stream);
  }
}

static void
copy (Worker *worker, unsigned i)
{
  void *src = gpu_image_data (worker->src[i % RING]), *dst = gpu_image_data (worker->dst[i % RING]);
  for (unsigned k = 0; k < N_STEPS; k++)
    floor_copy (worker->floor, worker->stream, 1, &dst, bytes.write[k], &src, bytes.read[k]);
}

static void
close_copies (Worker *worker)
{
  for (unsigned i = 0; i < RING; i++) {
    gpu_image_unref (worker->src[i]);
    gpu_image_unref (worker->dst[i]);
  }
  close_launches (worker);
}

static const Work works[] = {
    {"Pipelines of 1080p frames", open_large, push_frame, close_feed, .is_pipeline = true, .moves = true},
    {"Pipelines of 48x32 frames", open_small, push_frame, close_feed, .is_pipeline = true},
    {"Three empty launches", open_launches, launch, close_launches, .of_gpus = true},
    {"Three copies of a 1080p pipeline's bytes", open_copies, copy, close_copies, .moves = true},
    /* The last one, as the contexts stay. */
    {"Three empty launches, a context each", open_own_context, launch, close_launches, .of_gpus = true,
     .has_contexts = true},
};

#define N_WORKS G_N_ELEMENTS (works)

/* What came of so many threads that do a work: each figure in a frame's. */
typedef struct {
  double rate;   /* frames a second, of all threads */
  double cpu_ns; /* of the threads */
  double mib;    /* of memory, a thread, that work took */
} Figures;

static gpointer
run_thread (gpointer data)
{
  Worker *worker = data;
  GError *error = NULL;
  const double start = bench_cpu_now ();
  if (worker->floor)
    floor_enter (worker->floor);
  for (unsigned i = 0; i < worker->frames; i++)
    worker->work->do_frame (worker, i);
  worker->cpu_ns = bench_cpu_now () - start;
  gpu_stream_synchronize (worker->stream, &error);
  bench_check (error);
  if (worker->floor)
    floor_wait (worker->floor, worker->stream);
  return NULL;
}

static double
run_threads (Worker *workers, unsigned n, unsigned frames)
{
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    workers[i].frames = frames;
    workers[i].thread = g_thread_new ("worker", run_thread, &workers[i]);
  }
  for (unsigned i = 0; i < n; i++)
    g_thread_join (workers[i].thread);
  return bench_now () - start;
}

static double
counted_bytes (void)
{
  GpuCacheStats stats;
  gpu_cache_get_stats (device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  return (double)(stats.live_bytes + stats.pending_bytes + stats.idle_bytes);
}

static Figures
measure (const Work *work, unsigned n)
{
  const unsigned frames = (gpu_device_is_host (device) ? 64 : 16384) / n;
  g_autofree Worker *workers = g_new0 (Worker, n);
  GError *error = NULL;
  Figures figures = {0};

  gpu_cache_clear (device, GPU_CACHE_ALL, &error);
  bench_check (error);
  for (unsigned i = 0; i < n; i++) {
    workers[i].work = work;
    work->open (&workers[i], i);
  }
  const double before = counted_bytes ();
  run_threads (workers, n, frames / 4 + 1);
  figures.rate = frames * n / run_threads (workers, n, frames) * 1e9;
  figures.mib = (counted_bytes () - before) / n / (1 << 20);
  for (unsigned i = 0; i < n; i++)
    figures.cpu_ns += workers[i].cpu_ns / (frames * n);
  for (unsigned i = 0; i < n; i++)
    work->close (&workers[i]);
  return figures;
}

/* A copy of several frames in one launch. */
typedef struct {
  GpuStream *stream;
  void *src[FLOOR_MAX_FRAMES], *dst[FLOOR_MAX_FRAMES];
} BigCopy;

static void
submit_big (void *data, unsigned n)
{
  BigCopy *big = data;
  for (unsigned i = 0; i < n; i++)
    floor_copy (floor_of_all, big->stream, FLOOR_MAX_FRAMES, big->dst, bytes.write[0], big->src, bytes.read[0]);
}

/* Bytes a ns that it reads and writes. */
static double
rate_of_big_copy (void)
{
  enum { ROUNDS = 9 };
  const unsigned n = gpu_device_is_host (device) ? 1 : 16;
  BigCopy big = {.stream = bench_stream_new (device)};
  GpuImage *images[2 * FLOOR_MAX_FRAMES];
  double ns[ROUNDS];
  GError *error = NULL;
  for (unsigned i = 0; i < G_N_ELEMENTS (images); i++)
    images[i] = new_frame (big.stream);
  for (unsigned i = 0; i < FLOOR_MAX_FRAMES; i++) {
    big.src[i] = gpu_image_data (images[i]);
    big.dst[i] = gpu_image_data (images[FLOOR_MAX_FRAMES + i]);
  }
  submit_big (&big, 1);
  gpu_stream_synchronize (big.stream, &error);
  bench_check (error);
  for (unsigned round = 0; round < ROUNDS; round++)
    ns[round] = floor_time (floor_of_all, big.stream, submit_big, &big, n) / n;
  for (unsigned i = 0; i < G_N_ELEMENTS (images); i++)
    gpu_image_unref (images[i]);
  gpu_stream_unref (big.stream);
  return (double)(bytes.read[0] + bytes.write[0]) * FLOOR_MAX_FRAMES / bench_median (ns, ROUNDS);
}

typedef struct {
  const char *title, *unit;
  double (*figure) (const Figures *figures);
  bool of_pipelines, of_bytes; /* only of works that are, or that move some */
} Table;

static double big_rate;

static double
rate_of (const Figures *figures)
{
  return figures->rate;
}

static double
cpu_of (const Figures *figures)
{
  return figures->cpu_ns;
}

static double
share_of (const Figures *figures)
{
  return figures->rate * (double)bytes.all / (big_rate * 1e9);
}

static double
memory_of (const Figures *figures)
{
  return figures->mib;
}

static const Table tables[] = {
    {"frames a second in all", "1/s", .figure = rate_of},
    {"a thread's CPU time for a frame", "ns", .figure = cpu_of},
    {"bytes, as a share of a big copy's rate", "", .figure = share_of, .of_bytes = true},
    {"memory of each besides its input", "MiB", .figure = memory_of, .of_pipelines = true, .of_bytes = true},
};

/* As many as the device gives. */
static void
open_contexts (void)
{
  while (n_contexts < MAX_CONTEXTS && (floors[n_contexts] = floor_new_in_own_context (floor_of_all)))
    n_contexts++;
}

static unsigned
most_threads (const Work *work)
{
  const unsigned most = work->has_contexts ? n_contexts : MAX_THREADS;
  if (!gpu_device_is_host (device))
    return most;
  return work->of_gpus ? 0 : MIN (most, 4);
}

int
main (int argc, char **argv)
{
  static Figures figures[N_WORKS][N_NUMBERS];
  gst_init (NULL, NULL);
  device = bench_init (argc, argv);
  /* The elements' device is the same one. */
  g_setenv ("GPUCACHE_DEVICE", gpu_device_name (device), TRUE);
  floor_of_all = floor_new (device);
  count_bytes ();
  big_rate = rate_of_big_copy ();

  for (size_t w = 0; w < N_WORKS; w++) {
    if (works[w].has_contexts)
      open_contexts ();
    for (size_t k = 0; k < N_NUMBERS && numbers[k] <= most_threads (&works[w]); k++)
      figures[w][k] = measure (&works[w], numbers[k]);
  }

  for (size_t w = 0; w < N_WORKS; w++)
    for (size_t t = 0; t < G_N_ELEMENTS (tables); t++) {
      if (figures[w][0].rate == 0 || (tables[t].of_pipelines && !works[w].is_pipeline) ||
          (tables[t].of_bytes && !works[w].moves))
        continue;
      g_autofree char *title = g_strdup_printf ("%s side by side: %s", works[w].name, tables[t].title);
      bench_section (title);
      for (size_t k = 0; k < N_NUMBERS && figures[w][k].rate > 0; k++) {
        g_autofree char *name = g_strdup_printf ("%u", numbers[k]);
        bench_row (name, tables[t].figure (&figures[w][k]), tables[t].unit, BENCH_NO_GOAL, 0);
      }
    }
  for (unsigned i = 0; i < n_contexts; i++)
    floor_free (floors[i]);
  floor_free (floor_of_all);
  gpu_device_unref (device);
  return bench_finish ();
}
