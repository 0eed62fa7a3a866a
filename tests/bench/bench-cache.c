/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What it costs one thread to acquire an image and release it: beside allocating it without a cache, and however much
 * the cache holds.
 */
#include "bench.h"
#include "peer.h"

#include <gpucache/testing.h>

#define WIDTH 1920
#define HEIGHT 1080
#define N_COUNTED 100000
#define N_IDLE 10000
#define N_OTHERS 4
#define N_PENDING 1000 /* on each of those */

/* A device, the stream that the images are acquired on, and others that are not idle. */
typedef struct {
  GpuDevice *device;
  GpuStream *stream;
  GpuStream *quiet; /* has nothing to do, as long as nothing waits for it */
  GpuStream *other[N_OTHERS];
  GpuGate *gate;
  GpuImageSpec spec[2]; /* of the images; few bytes, since some cases have thousands of them */
} Place;

/* Its streams have no scopes of their own: what is acquired here is all in this thread's. */
static void
place_init (Place *place, GpuDevice *device)
{
  GError *error = NULL;
  *place = (Place){.device = bench_device_new (device),
                   .spec = {bench_spec (GPU_FORMAT_GRAY8, 64, 16), bench_spec (GPU_FORMAT_GRAY8, 48, 20)}};
  GpuStream **streams[] = {&place->stream,   &place->quiet,    &place->other[0],
                           &place->other[1], &place->other[2], &place->other[3]};
  for (size_t i = 0; i < G_N_ELEMENTS (streams); i++) {
    *streams[i] = gpu_stream_new (place->device, false, &error);
    bench_check (error);
  }
  place->gate = gpu_gate_new (place->device, &error);
  bench_check (error);
}

/* With several of them, all gates are to be open by then: on a GPU, streams of one may be queued behind another's. */
static void
place_clear (Place *place)
{
  gpu_gate_free (place->gate);
  gpu_stream_unref (place->stream);
  gpu_stream_unref (place->quiet);
  for (unsigned i = 0; i < N_OTHERS; i++)
    gpu_stream_unref (place->other[i]);
  gpu_device_unref (place->device);
}

/* What is acquired on @stream from now on stays pending when it is released. */
static void
hold (GpuGate *gate, GpuStream *stream)
{
  GError *error = NULL;
  gpu_gate_hold (gate, stream, &error);
  bench_check (error);
}

static GpuImage *
acquire (const Place *place, const GpuImageSpec *spec, GpuStream *stream)
{
  GError *error = NULL;
  GpuImage *image =
      gpu_image_acquire (place->device, spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
  bench_check (error);
  return image;
}

/* Waits for the place's own streams. Fails unless at least @n_idle entries are idle then. */
static void
settle (const Place *place, unsigned n_idle)
{
  GError *error = NULL;
  if (gpu_stream_synchronize (place->stream, &error))
    gpu_stream_synchronize (place->quiet, &error);
  bench_check (error);
  GpuCacheStats stats;
  gpu_cache_get_stats (place->device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  if (stats.idle < n_idle)
    bench_fail ("at least %u images should be idle, but %" G_GUINT64_FORMAT " are", n_idle, stats.idle);
}

/* Leaves @n images of different sizes in the cache, none of them a match for the place's own. */
static void
add_idle (const Place *place, unsigned n)
{
  g_autoptr (GPtrArray) images = g_ptr_array_new_with_free_func ((GDestroyNotify)gpu_image_unref);
  for (unsigned i = 0; i < n; i++) {
    GpuImageSpec spec = bench_spec (GPU_FORMAT_GRAY8, 1 + i % 2500, 1 + i / 2500);
    g_ptr_array_add (images, acquire (place, &spec, place->stream));
  }
  g_ptr_array_set_size (images, 0);
  settle (place, n);
}

/* Leaves @n images of the place's own size pending on each of the other streams. */
static void
add_pending (const Place *place, unsigned n)
{
  g_autoptr (GPtrArray) images = g_ptr_array_new_with_free_func ((GDestroyNotify)gpu_image_unref);
  for (unsigned i = 0; i < N_OTHERS; i++) {
    hold (place->gate, place->other[i]);
    for (unsigned k = 0; k < n; k++)
      g_ptr_array_add (images, acquire (place, &place->spec[0], place->other[i]));
  }
}

/* Operations */

static double
run_one_spec (void *data, unsigned n)
{
  const Place *place = data;
  double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (acquire (place, &place->spec[0], place->stream));
  return bench_now () - start;
}

/* No lookup is for what the last one was for. */
static double
run_two_specs (void *data, unsigned n)
{
  const Place *place = data;
  double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (acquire (place, &place->spec[i % 2], place->stream));
  return bench_now () - start;
}

/* One allocation, larger than any other, serves two sizes in turn. */
static double
run_fit (void *data, unsigned n)
{
  const Place *place = data;
  const GpuImageSpec spec[] = {bench_spec (GPU_FORMAT_GRAY8, 4000, 100), bench_spec (GPU_FORMAT_GRAY8, 3990, 100)};
  double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (acquire (place, &spec[i % 2], place->stream));
  return bench_now () - start;
}

/* One image goes from one stream to the other and back, complete each time. */
static double
run_two_streams (void *data, unsigned n)
{
  const Place *place = data;
  double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (acquire (place, &place->spec[0], i % 2 ? place->quiet : place->stream));
  return bench_now () - start;
}

/* As run_one_spec(), on a stream that is held for so long only: the driver's own allocation may wait for it. */
static double
run_held (void *data, unsigned n)
{
  const Place *place = data;
  GError *error = NULL;
  GpuGate *gate = gpu_gate_new (place->device, &error);
  bench_check (error);
  hold (gate, place->stream);
  gpu_image_unref (acquire (place, &place->spec[0], place->stream));
  double ns = run_one_spec (data, n);
  gpu_gate_free (gate);
  return ns;
}

static double
run_peer (void *data, unsigned n)
{
  Peer *peer = data;
  const GpuImageSpec spec = bench_spec (GPU_FORMAT_RGBA, WIDTH, HEIGHT);
  double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    peer->free (peer, peer->alloc (peer, spec.size));
  return bench_now () - start;
}

/* Comparisons */

static void
compare_with_peers (GpuDevice *device)
{
  Place place;
  place_init (&place, device);
  place.spec[0] = bench_spec (GPU_FORMAT_RGBA, WIDTH, HEIGHT);
  g_autoptr (GPtrArray) peers = peers_new (place.device);

  g_autoptr (GArray) cases = g_array_new (FALSE, FALSE, sizeof (BenchCase));
  const BenchCase cache = {.name = "exact pending match on the same stream", .run = run_held, .data = &place};
  g_array_append_val (cases, cache);
  for (unsigned i = 0; i < peers->len; i++) {
    Peer *peer = g_ptr_array_index (peers, i);
    BenchCase one = {.name = peer->name, .run = run_peer, .data = peer};
    if (!gpu_device_is_host (device) && (i == 0 || i == peers->len - 1)) {
      one.goal = BENCH_AT_LEAST;
      one.goal_ratio = i == 0 ? 3 : 300;
    }
    g_array_append_val (cases, one);
  }
  bench_compare ("Acquire and release, 1080p RGBA", BENCH_TIME, (BenchCase *)(void *)cases->data, cases->len);
  g_ptr_array_set_size (peers, 0);
  place_clear (&place);
}

static uint64_t
count_calls (GpuDevice *device)
{
  uint64_t n = 0;
  for (int call = 0; call < GPU_N_CALLS; call++)
    n += gpu_device_calls (device, (GpuCall)call);
  return n;
}

/* That the path which is timed is the one without a driver call is no matter of time, so this may fail. */
static void
count_driver_calls (GpuDevice *device)
{
  Place place;
  place_init (&place, device);
  hold (place.gate, place.stream);
  gpu_image_unref (acquire (&place, &place.spec[0], place.stream));

  GpuCacheStats before, after;
  gpu_cache_get_stats (place.device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &before);
  uint64_t calls = count_calls (place.device);
  run_one_spec (&place, N_COUNTED);
  calls = count_calls (place.device) - calls;
  gpu_cache_get_stats (place.device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &after);
  uint64_t hits = after.pending_hits - before.pending_hits;

  bench_section ("Exact pending matches counted");
  bench_row ("acquired and released", N_COUNTED, "times", BENCH_NO_GOAL, 0);
  bench_row ("answered with pending memory, no wait added", (double)hits, "times", BENCH_AT_LEAST, 1);
  bench_row ("calls to the driver", (double)calls, "times", BENCH_AT_MOST, 0);
  if (calls > 0 || hits != N_COUNTED)
    bench_fail ("of %d lookups %" G_GUINT64_FORMAT " were pending hits, and there were %" G_GUINT64_FORMAT
                " driver calls; all must be, and none is allowed",
                N_COUNTED, hits, calls);
  place_clear (&place);
}

static void
compare_pending (GpuDevice *device)
{
  Place empty, idle, pending;
  Place *places[] = {&empty, &idle, &pending};
  for (size_t i = 0; i < G_N_ELEMENTS (places); i++)
    place_init (places[i], device);
  add_idle (&idle, N_IDLE);
  add_pending (&pending, N_PENDING);
  for (size_t i = 0; i < G_N_ELEMENTS (places); i++)
    hold (places[i]->gate, places[i]->stream);

  BenchCase cases[] = {
      {.name = "nothing else in the cache", .data = &empty},
      {.name = "10,000 idle entries of other sizes", .data = &idle, .goal = BENCH_AT_MOST, .goal_ratio = 1.3},
      {.name = "4,000 entries of the same size pending on other streams", .data = &pending},
  };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    cases[i].run = run_one_spec;
  bench_compare ("Exact pending match, other entries in the cache", BENCH_TIME, cases, G_N_ELEMENTS (cases));
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    cases[i].run = run_two_specs;
  bench_compare ("The same, two sizes in turn", BENCH_TIME, cases, G_N_ELEMENTS (cases));

  for (size_t i = 0; i < G_N_ELEMENTS (places); i++)
    gpu_gate_open (places[i]->gate);
  for (size_t i = 0; i < G_N_ELEMENTS (places); i++)
    place_clear (places[i]);
}

static void
compare_idle (GpuDevice *device)
{
  Place empty, idle;
  place_init (&empty, device);
  place_init (&idle, device);
  add_idle (&idle, N_IDLE);
  run_one_spec (&empty, 1);
  run_one_spec (&idle, 1);
  run_fit (&empty, 1);
  run_fit (&idle, 1);
  settle (&empty, 2);
  settle (&idle, N_IDLE);

  const BenchCase exact[] = {
      {.name = "nothing else in the cache", .run = run_one_spec, .data = &empty},
      {.name = "10,000 idle entries of other sizes", .run = run_one_spec, .data = &idle},
  };
  bench_compare ("Exact idle match", BENCH_TIME, exact, G_N_ELEMENTS (exact));
  const BenchCase fit[] = {
      {.name = "nothing else in the cache", .run = run_fit, .data = &empty},
      {.name = "10,000 idle entries of other sizes", .run = run_fit, .data = &idle},
  };
  bench_compare ("Best fit, one allocation for two sizes in turn", BENCH_TIME, fit, G_N_ELEMENTS (fit));

  place_clear (&empty);
  place_clear (&idle);
}

static void
compare_streams (GpuDevice *device)
{
  Place few, many;
  place_init (&few, device);
  place_init (&many, device);
  GpuImage *one = acquire (&few, &few.spec[0], few.stream), *other = acquire (&many, &many.spec[0], many.stream);
  settle (&few, 0);
  settle (&many, 0);
  add_pending (&few, 1);
  add_pending (&many, N_PENDING);
  gpu_image_unref (one);
  gpu_image_unref (other);

  const BenchCase cases[] = {
      {.name = "4 others of this size pending on 4 other streams", .run = run_two_streams, .data = &few},
      {.name = "4,000 others of this size pending on 4 other streams", .run = run_two_streams, .data = &many},
  };
  bench_compare ("Exact idle match, last used on another stream", BENCH_TIME, cases, G_N_ELEMENTS (cases));

  gpu_gate_open (few.gate);
  gpu_gate_open (many.gate);
  place_clear (&few);
  place_clear (&many);
}

int
main (int argc, char **argv)
{
  GpuDevice *device = bench_init (argc, argv);
  compare_with_peers (device);
  count_driver_calls (device);
  compare_pending (device);
  compare_idle (device);
  compare_streams (device);
  gpu_device_unref (device);
  return bench_finish ();
}
