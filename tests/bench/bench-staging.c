/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What copies between the device and plain memory are made of: the device's part, whole and in moves as staged copies
 * have it; the host's part by threads of a crew; both one after the other; and staged copies, in which they overlap, by
 * several plans. Then when a staged copy is how far. Together they tell what holds one up: the pauses between the
 * device's moves, the host's memory, or the waits of the one for the other.
 */
#include "bench.h"

#include <gpucache/testing.h>
#include <gpucache/transfer-priv.h>

#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

#define N_FRAMES 8 /* which take turns */
#define MAX_MOVES 64
#define N_TIMES 101

/* The crew's size where the machine has the processors for it; 0: one that the library chooses. */
typedef struct {
  unsigned helpers;
  size_t slice_kib;
  unsigned least, most;
} Plan;

static const Plan plans[] = {
    {0, 128, 2, 16}, /* the library's */
    {0, 128, 8, 8},  {0, 128, 2, 64}, {0, 128, 1, 16}, {0, 64, 4, 32},
    {0, 256, 1, 8},  {3, 128, 2, 16}, {7, 128, 2, 16}, {15, 128, 2, 16},
};

typedef struct {
  GpuDevice *device;
  GpuStream *stream;
  GpuImageSpec spec; /* tight: rows follow one another in plain memory, too */
  bool outwards;
  GpuImage *image[N_FRAMES], *pinned[N_FRAMES];
  uint8_t *plain[N_FRAMES];
  unsigned crew_helpers; /* of the device's crew now */
} Bench;

typedef void HostCopy (void *dst, const void *src, size_t size);

/* A row of the table. */
typedef struct {
  Bench *bench;
  char *name;
  double (*run) (void *data, unsigned n);
  Plan plan;         /* of staged copies; of the host's part, helpers and slices */
  size_t move_bytes; /* of the device's part in moves */
  bool one_by_one;   /* the host waits for each frame */
  HostCopy *copy;
} Row;

static void
wait (Bench *bench)
{
  GError *error = NULL;
  gpu_stream_synchronize (bench->stream, &error);
  bench_check (error);
}

static void
device_copy (Bench *bench, GpuImage *image, GpuImage *pinned)
{
  GError *error = NULL;
  if (bench->outwards)
    gpu_image_copy (bench->stream, image, pinned, &error);
  else
    gpu_image_copy (bench->stream, pinned, image, &error);
  bench_check (error);
}

static double
run_device (void *data, unsigned n)
{
  const Row *row = data;
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    device_copy (row->bench, row->bench->image[i % N_FRAMES], row->bench->pinned[i % N_FRAMES]);
    if (row->one_by_one)
      wait (row->bench);
  }
  wait (row->bench);
  return bench_now () - start;
}

/* Both images in pieces, as a staged copy moves them. Returns: how many that is. */
static unsigned
cut (const Row *row, unsigned frame, GpuImage *image[MAX_MOVES], GpuImage *pinned[MAX_MOVES])
{
  const Bench *bench = row->bench;
  GError *error = NULL;
  unsigned n = 0;
  for (size_t at = 0; at < bench->spec.size && n < MAX_MOVES; at += row->move_bytes, n++) {
    const uint32_t bytes = (uint32_t)MIN (row->move_bytes, bench->spec.size - at);
    const GpuImageSpec piece = bench_spec (GPU_FORMAT_GRAY8, bytes, 1);
    image[n] = gpu_image_view_as (bench->image[frame], at, &piece, &error);
    bench_check (error);
    pinned[n] = gpu_image_view_as (bench->pinned[frame], at, &piece, &error);
    bench_check (error);
  }
  return n;
}

/* With an event after each move. */
static double
run_moves (void *data, unsigned n)
{
  const Row *row = data;
  GpuImage *image[N_FRAMES][MAX_MOVES], *pinned[N_FRAMES][MAX_MOVES];
  unsigned n_moves = 0;
  GpuPoint point = {0};
  GError *error = NULL;
  for (unsigned i = 0; i < N_FRAMES; i++)
    n_moves = cut (row, i, image[i], pinned[i]);
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    for (unsigned k = 0; k < n_moves; k++) {
      device_copy (row->bench, image[i % N_FRAMES][k], pinned[i % N_FRAMES][k]);
      gpu_point_mark (&point, row->bench->stream, &error);
      bench_check (error);
    }
  wait (row->bench);
  const double ns = bench_now () - start;
  gpu_point_clear (&point);
  for (unsigned i = 0; i < N_FRAMES; i++)
    for (unsigned k = 0; k < n_moves; k++) {
      gpu_image_unref (image[i][k]);
      gpu_image_unref (pinned[i][k]);
    }
  return ns;
}

static void
copy_plainly (void *dst, const void *src, size_t size)
{
  memcpy (dst, src, size);
}

#if defined __x86_64__
/* Stores that leave the destination out of the caches. @dst is aligned to 16, @size a multiple of 64 but for the end.
 */
static void
copy_past_caches (void *dst, const void *src, size_t size)
{
  const __m128i *from = src;
  __m128i *to = dst;
  size_t n = size / 64 * 4;
  for (size_t i = 0; i < n; i += 4) {
    const __m128i a = _mm_loadu_si128 (from + i), b = _mm_loadu_si128 (from + i + 1);
    const __m128i c = _mm_loadu_si128 (from + i + 2), d = _mm_loadu_si128 (from + i + 3);
    _mm_stream_si128 (to + i, a);
    _mm_stream_si128 (to + i + 1, b);
    _mm_stream_si128 (to + i + 2, c);
    _mm_stream_si128 (to + i + 3, d);
  }
  _mm_sfence ();
  memcpy (to + n, from + n, size - 16 * n);
}
#endif

/* A frame that a crew copies. */
typedef struct {
  HostCopy *copy;
  uint8_t *dst;
  const uint8_t *src;
  size_t size, slice;
} HostJob;

static void
copy_slice (void *data, unsigned i)
{
  const HostJob *job = data;
  const size_t at = i * job->slice;
  job->copy (job->dst + at, job->src + at, MIN (job->slice, job->size - at));
}

static void
host_copy (const Row *row, GpuCrew *crew, unsigned frame)
{
  const Bench *bench = row->bench;
  uint8_t *pinned = gpu_image_data (bench->pinned[frame]), *plain = bench->plain[frame];
  HostJob what = {.copy = row->copy,
                  .dst = bench->outwards ? plain : pinned,
                  .src = bench->outwards ? pinned : plain,
                  .size = bench->spec.size,
                  .slice = row->plan.slice_kib << 10};
  const unsigned n = (unsigned)((what.size + what.slice - 1) / what.slice);
  GpuCrewJob job = {.func = copy_slice, .data = &what, .n = n, .ready = n};
  gpu_crew_begin (crew, &job);
  gpu_crew_finish (crew, &job, n);
  gpu_crew_end (crew, &job);
}

static GpuCrew *
new_crew (unsigned helpers)
{
  return gpu_crew_new (helpers, gpu_crew_may_linger (helpers));
}

static double
run_host (void *data, unsigned n)
{
  const Row *row = data;
  GpuCrew *crew = new_crew (row->plan.helpers);
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    host_copy (row, crew, i % N_FRAMES);
  const double ns = bench_now () - start;
  gpu_crew_free (crew);
  return ns;
}

static double
run_in_turn (void *data, unsigned n)
{
  const Row *row = data;
  Bench *bench = row->bench;
  GpuCrew *crew = new_crew (row->plan.helpers);
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    const unsigned frame = i % N_FRAMES;
    if (!bench->outwards)
      host_copy (row, crew, frame);
    device_copy (bench, bench->image[frame], bench->pinned[frame]);
    wait (bench);
    if (bench->outwards)
      host_copy (row, crew, frame);
  }
  const double ns = bench_now () - start;
  gpu_crew_free (crew);
  return ns;
}

static unsigned
helpers_of (const Plan *plan)
{
  return plan->helpers > 0 ? plan->helpers : gpu_crew_best_size ();
}

static void
stage (Bench *bench, unsigned frame, GpuStagingPlan plan)
{
  GError *error = NULL;
  if (bench->outwards)
    gpu_image_stage_out (bench->stream, bench->image[frame], bench->plain[frame], &bench->spec, plan, &error);
  else
    gpu_image_stage_in (bench->stream, bench->image[frame], bench->plain[frame], &bench->spec, plan, &error);
  bench_check (error);
}

static double
run_staged (void *data, unsigned n)
{
  const Row *row = data;
  Bench *bench = row->bench;
  const GpuStagingPlan plan = {
      .slice_bytes = row->plan.slice_kib << 10, .least = row->plan.least, .most = row->plan.most};
  const unsigned helpers = helpers_of (&row->plan);
  if (bench->crew_helpers != helpers)
    gpu_device_set_crew (bench->device, helpers, gpu_crew_may_linger (helpers));
  bench->crew_helpers = helpers;
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    stage (bench, i % N_FRAMES, plan);
  wait (bench);
  return bench_now () - start;
}

static void
add (GArray *rows, Row row, const char *name)
{
  row.name = g_strdup (name);
  g_array_append_val (rows, row);
}

/* The device's part. */
static void
add_device_rows (GArray *rows, Bench *bench)
{
  static const unsigned kib[] = {512, 1024, 2048};
  add (rows, (Row){.bench = bench, .run = run_device}, "the device's copies");
  add (rows, (Row){.bench = bench, .run = run_device, .one_by_one = true}, "the device's copies, each waited for");
  for (size_t i = 0; i < G_N_ELEMENTS (kib); i++) {
    g_autofree char *name = g_strdup_printf ("the device's copies, %u KiB at a time, each with an event", kib[i]);
    add (rows, (Row){.bench = bench, .run = run_moves, .move_bytes = (size_t)kib[i] << 10}, name);
  }
}

/* The host's part. */
static void
add_host_rows (GArray *rows, Bench *bench)
{
  static const struct {
    const char *name;
    HostCopy *copy;
  } copies[] = {
    {"memcpy()", copy_plainly},
#if defined __x86_64__
    {"stores past the caches", copy_past_caches},
#endif
  };
  const unsigned most = g_get_num_processors () - 1, helpers[] = {0, 3, 7, gpu_crew_best_size ()};
  const unsigned n = G_N_ELEMENTS (helpers);
  for (size_t k = 0; k < G_N_ELEMENTS (copies); k++)
    for (unsigned i = 0; i < n; i++) {
      const bool is_default = i == n - 1;
      /* Of the other way to copy, one thread and all of them do. */
      if (!is_default && (helpers[i] > most || (k > 0 && i > 0)))
        continue;
      g_autofree char *name = g_strdup_printf ("the host's %s, %u threads", copies[k].name, helpers[i] + 1);
      Row row = {.bench = bench, .run = run_host, .plan = {helpers[i], 128, 0, 0}, .copy = copies[k].copy};
      add (rows, row, name);
      row.run = run_in_turn;
      if (is_default && k == 0)
        add (rows, row, "the device's copy and the host's in turn");
    }
}

static void
add_staged_rows (GArray *rows, Bench *bench)
{
  for (size_t i = 0; i < G_N_ELEMENTS (plans); i++) {
    const Plan *plan = &plans[i];
    if (plan->helpers >= g_get_num_processors ())
      continue;
    g_autofree char *name = g_strdup_printf ("staged by %u, %zu KiB each, %u to %u a move", helpers_of (plan) + 1,
                                             plan->slice_kib, plan->least, plan->most);
    add (rows, (Row){.bench = bench, .run = run_staged, .plan = *plan}, name);
  }
}

static void
measure_parts (Bench *bench, const char *title)
{
  g_autoptr (GArray) rows = g_array_new (false, false, sizeof (Row));
  add_device_rows (rows, bench);
  add_host_rows (rows, bench);
  add_staged_rows (rows, bench);

  g_autofree BenchCase *cases = g_new0 (BenchCase, rows->len);
  for (unsigned i = 0; i < rows->len; i++) {
    Row *row = &g_array_index (rows, Row, i);
    cases[i] = (BenchCase){.name = row->name, .run = row->run, .data = row};
  }
  bench_compare (title, BENCH_TIME, cases, rows->len);
  for (unsigned i = 0; i < rows->len; i++)
    g_free (g_array_index (rows, Row, i).name);
}

/* When the library's copies are how far. */
static void
measure_times (Bench *bench, const char *title)
{
  static const struct {
    const char *name;
    size_t offset;
  } marks[] = {
      {"pinned memory is there", G_STRUCT_OFFSET (GpuStagingTimes, prepared)},
      {"the first slices are through", G_STRUCT_OFFSET (GpuStagingTimes, first)},
      {"the device has been told of the last", G_STRUCT_OFFSET (GpuStagingTimes, sent)},
      {"the last are through", G_STRUCT_OFFSET (GpuStagingTimes, last)},
      {"the call ends", G_STRUCT_OFFSET (GpuStagingTimes, done)},
  };
  double us[G_N_ELEMENTS (marks)][N_TIMES];
  GpuStagingTimes times;
  GpuStagingPlan plan = gpu_staging_default_plan ();
  plan.times = &times;
  for (int i = -10; i < N_TIMES; i++) {
    stage (bench, (unsigned)(i + 10) % N_FRAMES, plan);
    for (size_t k = 0; k < G_N_ELEMENTS (marks); k++)
      us[k][MAX (i, 0)] = (double)(G_STRUCT_MEMBER (int64_t, &times, marks[k].offset) - times.begun) / 1e3;
  }
  wait (bench);
  g_autofree char *section = g_strdup_printf ("%s, as the library does it: how long after the call", title);
  bench_section (section);
  for (size_t k = 0; k < G_N_ELEMENTS (marks); k++)
    bench_row (marks[k].name, bench_median (us[k], N_TIMES), "us", BENCH_NO_GOAL, 0);
}

static GpuImage *
acquire (Bench *bench, GpuMemoryKind kind)
{
  GError *error = NULL;
  GpuImage *image = bench_image_new (bench->device, &bench->spec, kind, bench->stream);
  gpu_image_fill (bench->stream, image, 7, &error);
  bench_check (error);
  return image;
}

static void
measure_shape (Bench *bench, GpuFormat format, uint32_t width, uint32_t height)
{
  bench->spec = bench_spec (format, width, height);
  for (unsigned i = 0; i < N_FRAMES; i++) {
    bench->image[i] = acquire (bench, GPU_MEMORY_STREAM_ORDERED);
    bench->pinned[i] = acquire (bench, GPU_MEMORY_HOST);
    bench->plain[i] = g_malloc (bench->spec.size);
    memset (bench->plain[i], (int)i, bench->spec.size);
  }
  wait (bench);
  for (unsigned way = 0; way < 2; way++) {
    g_autofree char *title = g_strdup_printf ("%s plain memory, %ux%u %s, a frame", way ? "Into" : "From", width,
                                              height, gpu_format_info (format)->name);
    bench->outwards = way;
    measure_parts (bench, title);
    gpu_device_set_crew (bench->device, gpu_crew_best_size (), gpu_crew_may_linger (gpu_crew_best_size ()));
    bench->crew_helpers = gpu_crew_best_size ();
    measure_times (bench, title);
  }
  for (unsigned i = 0; i < N_FRAMES; i++) {
    gpu_image_unref (bench->image[i]);
    gpu_image_unref (bench->pinned[i]);
    g_free (bench->plain[i]);
  }
}

int
main (int argc, char **argv)
{
  Bench bench = {.device = bench_init (argc, argv)};
  bench.stream = bench_stream_new (bench.device);
  measure_shape (&bench, GPU_FORMAT_RGBA, 1920, 1080);
  measure_shape (&bench, GPU_FORMAT_NV12, 3840, 2160);
  gpu_stream_unref (bench.stream);
  gpu_device_unref (bench.device);
  return bench_finish ();
}
