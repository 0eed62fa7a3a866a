/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What copies between the device and plain memory are made of: the device's part, whole and in moves as staged copies
 * have it; the host's part by threads of a crew; and staged copies, in which they overlap: as the library has them, and
 * with one thing changed at a time. Then when a staged copy is how far. Together they tell what holds one up: the
 * pauses between the device's moves, the host's memory, threads that look for work beside those that have some, or the
 * waits of the one for the other.
 */
#include "bench.h"

#include <gpucache/stream-priv.h>
#include <gpucache/testing.h>
#include <gpucache/transfer-priv.h>

#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

#define N_FRAMES 8 /* which take turns */
#define MAX_MOVES 64
#define N_TIMES 101

typedef void HostCopy (void *dst, const void *src, size_t size);

/* A staged copy; what is 0 is as the library has it. */
typedef struct {
  const char *name;
  unsigned threads; /* with the caller */
  bool sleeps;      /* the crew does not linger */
  size_t slice_kib, most_kib;
  HostCopy *copy;
} Plan;

typedef struct {
  GpuDevice *device;
  GpuStream *stream;
  GpuImageSpec spec; /* tight: rows follow one another in plain memory, too */
  bool outwards;
  GpuImage *image[N_FRAMES], *pinned[N_FRAMES];
  uint8_t *plain[N_FRAMES];
  GpuThrottle *throttle;
  const Plan *crew; /* what the device's crew is like now; NULL: not known */
} Bench;

/* A row of the table. */
typedef struct {
  Bench *bench;
  char *name;
  double (*run) (void *data, unsigned n);
  Plan plan;         /* of staged copies; of the host's part, threads and slices */
  size_t move_bytes; /* of the device's part in moves */
  bool one_by_one;   /* the host waits for each frame */
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
  HostJob what = {.copy = row->plan.copy,
                  .dst = bench->outwards ? plain : pinned,
                  .src = bench->outwards ? pinned : plain,
                  .size = bench->spec.size,
                  .slice = gpu_staging_default_plan (!bench->outwards).slice_bytes};
  const unsigned n = (unsigned)((what.size + what.slice - 1) / what.slice);
  GpuCrewJob job = {.func = copy_slice, .data = &what, .n = n, .ready = n};
  gpu_crew_begin (crew, &job);
  gpu_crew_finish (crew, &job, n);
  gpu_crew_end (crew, &job);
}

static unsigned
helpers_of (const Plan *plan)
{
  return plan->threads > 0 ? plan->threads - 1 : gpu_crew_best_size ();
}

static bool
lingers (const Plan *plan)
{
  return !plan->sleeps && gpu_crew_may_linger (helpers_of (plan));
}

static GpuCrew *
new_crew (const Plan *plan)
{
  return gpu_crew_new (helpers_of (plan), lingers (plan));
}

static double
run_host (void *data, unsigned n)
{
  const Row *row = data;
  GpuCrew *crew = new_crew (&row->plan);
  host_copy (row, crew, N_FRAMES - 1); /* threads begin meanwhile */
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++)
    host_copy (row, crew, i % N_FRAMES);
  const double ns = bench_now () - start;
  gpu_crew_free (crew);
  return ns;
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

static void
set_crew (Bench *bench, const Plan *plan)
{
  const Plan *now = bench->crew;
  if (!now || helpers_of (now) != helpers_of (plan) || lingers (now) != lingers (plan))
    gpu_device_set_crew (bench->device, helpers_of (plan), lingers (plan));
  bench->crew = plan;
}

static GpuStagingPlan
staging_plan (const Bench *bench, const Plan *plan)
{
  GpuStagingPlan made = gpu_staging_default_plan (!bench->outwards);
  const size_t least_bytes = made.least * made.slice_bytes;
  const size_t most_bytes = plan->most_kib ? plan->most_kib << 10 : made.most * made.slice_bytes;
  if (plan->slice_kib)
    made.slice_bytes = plan->slice_kib << 10;
  made.least = (unsigned)(least_bytes / made.slice_bytes);
  made.most = (unsigned)(most_bytes / made.slice_bytes);
  made.copy = plan->copy;
  return made;
}

/* With as many frames in flight as elements have. */
static double
run_staged (void *data, unsigned n)
{
  const Row *row = data;
  Bench *bench = row->bench;
  const GpuStagingPlan plan = staging_plan (bench, &row->plan);
  GError *error = NULL;
  set_crew (bench, &row->plan);
  stage (bench, N_FRAMES - 1, plan);
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    gpu_throttle_begin (bench->throttle, &error);
    bench_check (error);
    stage (bench, i % N_FRAMES, plan);
    gpu_throttle_end (bench->throttle, bench->stream, &error);
    bench_check (error);
  }
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
  const Row moves = {.bench = bench, .run = run_moves, .move_bytes = 1 << 20};
  add (rows, (Row){.bench = bench, .run = run_device}, "the device's copies");
  if (bench->outwards)
    add (rows, (Row){.bench = bench, .run = run_device, .one_by_one = true}, "the device's copies, each waited for");
  add (rows, moves, "the device's copies, 1 MiB at a time, each with an event");
}

static bool
is_possible (const Plan *plan)
{
  return plan->threads <= g_get_num_processors ();
}

static void
add_host_row (GArray *rows, Bench *bench)
{
  static const Plan plan = {.name = "the host's memcpy(), 8 threads", .threads = 8, .copy = copy_plainly};
  if (is_possible (&plan))
    add (rows, (Row){.bench = bench, .run = run_host, .plan = plan}, plan.name);
}

/* Whether it is not the library's plan once more. */
static bool
is_other (const Bench *bench, const Plan *plan)
{
  const GpuStagingPlan own = gpu_staging_default_plan (!bench->outwards);
  return plan->slice_kib << 10 != own.slice_bytes && plan->most_kib << 10 != own.most * own.slice_bytes &&
         (plan->threads == 0 || helpers_of (plan) != gpu_crew_best_size ());
}

/* The first one is the library's. */
static void
add_staged_rows (GArray *rows, Bench *bench)
{
  static const Plan plans[] = {
    {.name = "staged"},
    {.name = "staged, nobody lingers", .sleeps = true},
#if defined __x86_64__
    {.name = "staged, stores past the caches", .copy = copy_past_caches},
#endif
    {.name = "staged by 4 threads", .threads = 4},
    {.name = "staged by 8 threads", .threads = 8},
    {.name = "staged by 12 threads", .threads = 12},
    {.name = "staged, slices of 32 KiB", .slice_kib = 32},
    {.name = "staged, slices of 64 KiB", .slice_kib = 64},
    {.name = "staged, slices of 128 KiB", .slice_kib = 128},
    {.name = "staged, moves of up to 2 MiB", .most_kib = 2048},
  };
  for (size_t i = 0; i < G_N_ELEMENTS (plans); i++)
    if (is_possible (&plans[i]) && is_other (bench, &plans[i]))
      add (rows, (Row){.bench = bench, .run = run_staged, .plan = plans[i]}, plans[i].name);
}

static void
measure_parts (Bench *bench, const char *title)
{
  g_autoptr (GArray) rows = g_array_new (false, false, sizeof (Row));
  add_device_rows (rows, bench);
  add_host_row (rows, bench);
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
  static const Plan crew = {.name = "the library's"};
  GpuStagingTimes times;
  GpuStagingPlan plan = gpu_staging_default_plan (!bench->outwards);
  set_crew (bench, &crew);
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
    bench->crew = NULL;
    measure_parts (bench, title);
    bench->crew = NULL;
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
  bench.throttle = gpu_throttle_new (8);
  measure_shape (&bench, GPU_FORMAT_RGBA, 1920, 1080);
  measure_shape (&bench, GPU_FORMAT_NV12, 3840, 2160);
  gpu_throttle_free (bench.throttle);
  gpu_stream_unref (bench.stream);
  gpu_device_unref (bench.device);
  return bench_finish ();
}
