/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Frames of random sizes, a few of them alive at a time: how much memory that takes under a limit, and how long the
 * host spends on getting and giving back a frame, beside the same frames without a cache.
 */
#include "bench.h"
#include "peer.h"

#include <gpucache/cache-priv.h>

#define N_FRAMES 3000
#define N_ALIVE 8
#define MAX_WIDTH 1920
#define MAX_HEIGHT 1080
#define FRAMES_IN_FLIGHT 8
#define N_RUNS 3 /* and one to warm up */

/* What the cache did under one limit. */
typedef struct {
  const char *title;
  uint64_t limit;
  double ns[N_RUNS]; /* of the host's time, for a frame */
  uint64_t peak;     /* most bytes counted */
  uint64_t frames_over;
  double reserved; /* by the device's pool, at most; 0 if it does not say */
  GpuCacheStats stats;
} CacheFigures;

static uint32_t
next_random (uint32_t *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static GArray *
make_frames (void)
{
  GArray *frames = g_array_sized_new (FALSE, FALSE, sizeof (GpuImageSpec), N_FRAMES);
  uint32_t state = 20240607;
  for (unsigned i = 0; i < N_FRAMES; i++) {
    uint32_t width = 1 + next_random (&state) % MAX_WIDTH, height = 1 + next_random (&state) % MAX_HEIGHT;
    GpuImageSpec spec = bench_spec (GPU_FORMAT_RGBA, width, height);
    g_array_append_val (frames, spec);
  }
  return frames;
}

/* Most bytes that the frames which are alive need. */
static uint64_t
peak_alive (const GArray *frames)
{
  uint64_t alive = 0, peak = 0;
  for (unsigned i = 0; i < N_FRAMES; i++) {
    alive += g_array_index (frames, GpuImageSpec, i).size;
    if (i >= N_ALIVE)
      alive -= g_array_index (frames, GpuImageSpec, i - N_ALIVE).size;
    peak = MAX (peak, alive);
  }
  return peak;
}

/* All frames through @device's cache, each written once. Returns: the host's ns for a frame. */
static double
run_cache (GpuDevice *device, const GArray *frames, CacheFigures *figures)
{
  GpuImage *alive[N_ALIVE] = {NULL};
  uint64_t alive_bytes = 0;
  double ns = 0;
  GError *error = NULL;
  GpuStream *stream = gpu_stream_new (device, true, &error);
  bench_check (error);
  GpuThrottle *throttle = gpu_throttle_new (FRAMES_IN_FLIGHT);

  for (unsigned i = 0; i < N_FRAMES + N_ALIVE; i++) {
    GpuImage **slot = &alive[i % N_ALIVE];
    if (*slot) {
      alive_bytes -= gpu_image_capacity (*slot);
      double start = bench_now ();
      gpu_image_unref (*slot);
      ns += bench_now () - start;
      *slot = NULL;
    }
    if (i >= N_FRAMES)
      continue;

    gpu_throttle_begin (throttle, &error);
    bench_check (error);
    double start = bench_now ();
    *slot = gpu_image_acquire (device, &g_array_index (frames, GpuImageSpec, i), GPU_MEMORY_STREAM_ORDERED, stream,
                               GPU_ACQUIRE_DEFAULT, &error);
    ns += bench_now () - start;
    bench_check (error);

    /* Before anything evicts more, and not by the statistics, which retire entries. */
    uint64_t bytes = atomic_load (&device->cache->bytes[GPU_ACCOUNT_DEVICE]);
    alive_bytes += gpu_image_capacity (*slot);
    figures->peak = MAX (figures->peak, bytes);
    figures->frames_over += bytes > figures->limit && alive_bytes <= figures->limit;

    gpu_image_fill (stream, *slot, (uint8_t)i, &error);
    bench_check (error);
    gpu_throttle_end (throttle, stream, &error);
    bench_check (error);
  }
  gpu_throttle_free (throttle);
  gpu_stream_unref (stream);
  return ns / N_FRAMES;
}

static void
measure_cache (GpuDevice *like, const GArray *frames, CacheFigures *figures)
{
  for (int run = -1; run < N_RUNS; run++) {
    GError *error = NULL;
    GpuDevice *device = bench_device_new (like);
    gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, (int64_t)figures->limit, &error);
    bench_check (error);
    figures->ns[MAX (run, 0)] = run_cache (device, frames, figures);
    figures->reserved = MAX (figures->reserved, peers_device_peak (device));
    gpu_cache_get_stats (device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &figures->stats);
    gpu_device_unref (device);
  }
}

/* The same frames by @peer. */
static double
run_peer (Peer *peer, const GArray *frames)
{
  void *alive[N_ALIVE] = {NULL};
  double ns = 0;
  for (unsigned i = 0; i < N_FRAMES + N_ALIVE; i++) {
    void **slot = &alive[i % N_ALIVE];
    double start = bench_now ();
    if (*slot)
      peer->free (peer, *slot);
    *slot = NULL;
    size_t size = i < N_FRAMES ? g_array_index (frames, GpuImageSpec, i).size : 0;
    if (size > 0)
      *slot = peer->alloc (peer, size);
    ns += bench_now () - start;
    if (*slot && peer->write)
      peer->write (peer, *slot, size);
  }
  return ns / N_FRAMES;
}

static double
measure_peer (Peer *peer, const GArray *frames)
{
  double ns[N_RUNS];
  for (int run = -1; run < N_RUNS; run++)
    ns[MAX (run, 0)] = run_peer (peer, frames);
  return bench_median (ns, N_RUNS);
}

static double
mebibytes (double bytes)
{
  return bytes / (1 << 20);
}

/* The cache's own figures, each section's first row being what the others are to be compared with. */
static void
report_cache (const CacheFigures *figures)
{
  bench_section (figures->title);
  bench_row ("limit", mebibytes ((double)figures->limit), "MiB", BENCH_NO_GOAL, 0);
  bench_row ("counted by the cache, at most", mebibytes ((double)figures->peak), "MiB", BENCH_AT_MOST, 1);
  if (figures->reserved > 0)
    bench_row ("reserved by the pool that it allocates from", mebibytes (figures->reserved), "MiB", BENCH_NO_GOAL, 0);

  const GpuCacheStats *stats = &figures->stats;
  const struct {
    const char *name;
    uint64_t n;
  } answers[] = {
      {"idle memory of the same shape", stats->exact_hits},
      {"pending memory of the same shape, no wait added", stats->pending_hits},
      {"pending memory of the same shape, waits added", stats->waiting_hits},
      {"idle memory of another shape", stats->fit_hits},
      {"new memory", stats->misses},
      {"old memory freed to make room", stats->evictions},
  };
  g_autofree char *title = g_strconcat (figures->title, ": what frames were given", NULL);
  bench_section (title);
  bench_row ("all", N_FRAMES, "frames", BENCH_NO_GOAL, 0);
  for (size_t i = 0; i < G_N_ELEMENTS (answers); i++)
    bench_row (answers[i].name, (double)answers[i].n, "frames", BENCH_NO_GOAL, 0);
}

int
main (int argc, char **argv)
{
  GpuDevice *device = bench_init (argc, argv);
  g_autoptr (GArray) frames = make_frames ();
  CacheFigures figures[] = {
      {.title = "Cache with a limit of 256 MiB", .limit = (uint64_t)256 << 20},
      {.title = "Cache with a limit of 64 MiB", .limit = (uint64_t)64 << 20},
  };
  for (size_t i = 0; i < G_N_ELEMENTS (figures); i++)
    measure_cache (device, frames, &figures[i]);

  g_autoptr (GPtrArray) peers = peers_new (device);
  g_autofree double *peer_ns = g_new (double, peers->len);
  for (unsigned i = 0; i < peers->len; i++)
    peer_ns[i] = measure_peer (g_ptr_array_index (peers, i), frames);

  bench_section ("Acquire and release, 3,000 frames of random sizes up to 1080p RGBA, 8 alive");
  for (size_t i = 0; i < G_N_ELEMENTS (figures); i++)
    bench_row (figures[i].title, bench_median (figures[i].ns, N_RUNS), "ns", BENCH_NO_GOAL, 0);
  for (unsigned i = 0; i < peers->len; i++)
    bench_row (((Peer *)g_ptr_array_index (peers, i))->name, peer_ns[i], "ns", BENCH_NO_GOAL, 0);

  bench_section ("Peak of memory with these frames");
  bench_row ("needed by the frames alive", mebibytes ((double)peak_alive (frames)), "MiB", BENCH_NO_GOAL, 0);
  for (size_t i = 0; i < G_N_ELEMENTS (figures); i++)
    bench_row (figures[i].title, mebibytes ((double)figures[i].peak), "MiB", BENCH_NO_GOAL, 0);
  for (unsigned i = 0; i < peers->len; i++) {
    Peer *peer = g_ptr_array_index (peers, i);
    if (peer->peak)
      bench_row (peer->name, mebibytes (peer->peak (peer)), "MiB", BENCH_NO_GOAL, 0);
  }

  uint64_t frames_over = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (figures); i++) {
    report_cache (&figures[i]);
    frames_over += figures[i].frames_over;
  }
  if (frames_over > 0)
    bench_fail ("with %" G_GUINT64_FORMAT " frames more bytes were counted than the limit allows, "
                "though those alive were below it",
                frames_over);
  gpu_device_unref (device);
  return bench_finish ();
}
