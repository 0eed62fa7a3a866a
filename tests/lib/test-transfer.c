/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Staged copies and what they stand on: the crew, views that take memory for something else, hints; and the hazards of
 * copies that go on beside the work of other streams.
 */
#include "common.h"
#include "rig.h"
#include "stamp.h"

#include <gpucache/transfer-priv.h>

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static const struct {
  uint32_t width, height;
} sizes[] = {{1, 1}, {1, 9}, {9, 1}, {33, 17}, {130, 70}};

/* Every byte a slice of its own, some rows, or one slice for all. */
static const size_t slice_bytes[] = {1, 300, 1 << 20};

static GpuStagingPlan
plan_of (size_t slice)
{
  return (GpuStagingPlan){.slice_bytes = slice, .least = 2, .most = 8};
}

/* The layout of a host that pads its rows and planes. */
static GpuImageSpec
padded_spec (GpuFormat format, uint32_t width, uint32_t height, size_t pad)
{
  const GpuImageSpec tight = test_spec (format, width, height);
  size_t stride[GPU_MAX_PLANES] = {0}, offset[GPU_MAX_PLANES] = {0}, at = pad;
  GpuImageSpec spec;
  GError *error = NULL;

  for (unsigned i = 0; i < gpu_format_info (format)->n_planes; i++) {
    stride[i] = gpu_image_spec_row_bytes (&tight, i) + 2 * pad;
    offset[i] = at;
    at += stride[i] * gpu_image_spec_plane_height (&tight, i) + pad;
  }
  gpu_image_spec_init_full (&spec, format, width, height, stride, offset, 0, &error);
  g_assert_no_error (error);
  return spec;
}

static void
check_round_trip (GpuStream *stream, const GpuImageSpec *spec, const GpuImageSpec *host_spec, size_t slices,
                  uint32_t seed)
{
  GpuImage *image = test_image_new (gpu_stream_device (stream), spec, stream);
  g_autofree uint8_t *host = test_random_bytes (host_spec->size, seed);
  g_autofree uint8_t *source = g_memdup2 (host, host_spec->size);
  g_autofree uint8_t *back = g_malloc0 (host_spec->size);
  GError *error = NULL;

  g_assert_true (gpu_image_stage_in (stream, image, source, host_spec, plan_of (slices), &error));
  g_assert_no_error (error);
  memset (source, 0xee, host_spec->size); /* the caller's again */
  g_assert_true (gpu_image_stage_out (stream, image, back, host_spec, plan_of (slices), &error));
  g_assert_no_error (error);
  test_assert_samples (back, host_spec, host, host_spec);
  test_assert_image (stream, image, host, host_spec);
  gpu_image_unref (image);
}

static void
test_formats (void)
{
  GpuDevice *device = test_device_new ();
  GpuStream *stream = gpu_stream_new (device, true, NULL);

  for (unsigned format = 1; format < GPU_N_FORMATS; format++) {
    if (gpu_format_info ((GpuFormat)format)->is_tensor)
      continue;
    for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++)
      for (size_t k = 0; k < G_N_ELEMENTS (slice_bytes); k++) {
        const GpuImageSpec spec = test_spec ((GpuFormat)format, sizes[i].width, sizes[i].height);
        const GpuImageSpec padded = padded_spec ((GpuFormat)format, sizes[i].width, sizes[i].height, 6);

        check_round_trip (stream, &spec, &spec, slice_bytes[k], format);
        check_round_trip (stream, &spec, &padded, slice_bytes[k], format + 50);
        check_round_trip (stream, &padded, &spec, slice_bytes[k], format + 100);
      }
  }
  gpu_stream_unref (stream);
  gpu_device_unref (device);
}

/* A part of a larger picture: what is around it stays. */
static void
test_views (void)
{
  GpuDevice *device = test_device_new ();
  GpuStream *stream = gpu_stream_new (device, true, NULL);
  const GpuImageSpec whole = test_spec (GPU_FORMAT_NV12, 64, 48), part = test_spec (GPU_FORMAT_NV12, 22, 18);
  GpuImage *image = test_image_new (device, &whole, stream);
  GError *error = NULL;

  gpu_image_fill (stream, image, 9, &error);
  g_assert_no_error (error);
  GpuImage *view = gpu_image_view (image, 10, 20, 22, 18, &error);
  g_assert_no_error (error);
  g_autofree uint8_t *host = test_random_bytes (part.size, 1), *back = g_malloc0 (part.size);
  g_assert_true (gpu_image_stage_in (stream, view, host, &part, plan_of (100), &error));
  g_assert_true (gpu_image_stage_out (stream, view, back, &part, plan_of (100), &error));
  test_assert_samples (back, &part, host, &part);
  for (unsigned i = 0; i < 4; i++) {
    static const uint32_t around[4][4] = {{0, 0, 64, 20}, {0, 38, 64, 10}, {0, 20, 10, 18}, {32, 20, 32, 18}};
    GpuImage *rest = gpu_image_view (image, around[i][0], around[i][1], around[i][2], around[i][3], &error);
    g_assert_no_error (error);
    test_assert_image_is (stream, rest, 9);
    gpu_image_unref (rest);
  }
  gpu_image_unref (view);
  gpu_image_unref (image);
  gpu_stream_unref (stream);
  gpu_device_unref (device);
}

static void
test_public (Rig *rig, const void *data)
{
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_autofree uint8_t *host = test_random_bytes (rig->spec.size, 3), *back = g_malloc0 (rig->spec.size);
  GpuImageSpec other = rig_spec (GPU_FORMAT_RGBA, 64, 63);
  GError *error = NULL;

  g_assert_true (gpu_image_upload (rig->stream[0], image, host, &rig->spec, &error));
  g_assert_true (gpu_image_download (rig->stream[1], image, back, &rig->spec, &error));
  g_assert_no_error (error);
  test_assert_samples (back, &rig->spec, host, &rig->spec);

  g_assert_false (gpu_image_upload (rig->stream[0], image, host, &other, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gpu_image_download (rig->stream[0], image, back, &other, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  gpu_image_unref (image);
}

/* On the way in nobody waits for the device; pinned memory is there before the stream is held. */
static void
test_in_does_not_wait (Rig *rig, const void *data)
{
  g_autofree uint8_t *host = test_random_bytes (rig->spec.size, 3), *kept = g_memdup2 (host, rig->spec.size);
  GpuImage *pinned[4], *image;
  GError *error = NULL;

  for (unsigned i = 0; i < G_N_ELEMENTS (pinned); i++)
    pinned[i] = rig_acquire_kind (rig, &rig->spec, GPU_MEMORY_HOST, rig->stream[0], GPU_ACQUIRE_DEFAULT);
  for (unsigned i = 0; i < G_N_ELEMENTS (pinned); i++)
    gpu_image_unref (pinned[i]);
  image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  rig_sync (rig->stream[0]);

  rig_close (rig, 0);
  uint64_t waits = rig_stats (rig).host_waits;
  for (unsigned i = 0; i < 3; i++) {
    g_assert_true (gpu_image_stage_in (rig->stream[0], image, host, &rig->spec, plan_of (1000), &error));
    g_assert_no_error (error);
  }
  memset (host, 0xee, rig->spec.size);
  g_assert_cmpuint (rig_stats (rig).host_waits, ==, waits);
  rig_open (rig, 0);
  test_assert_image (rig->stream[0], image, kept, &rig->spec);

  /* On the way out there is one wait, however many slices. */
  g_autofree uint8_t *back = g_malloc0 (rig->spec.size);
  waits = rig_stats (rig).host_waits;
  g_assert_true (gpu_image_stage_out (rig->stream[0], image, back, &rig->spec, plan_of (1000), &error));
  g_assert_cmpuint (rig_stats (rig).host_waits, >, waits);
  test_assert_samples (back, &rig->spec, kept, &rig->spec);
  gpu_image_unref (image);
}

/* Without pinned memory it goes another way, and with none to be kept it goes all the same. */
static void
test_no_pinned_memory (Rig *rig, const void *data)
{
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_autofree uint8_t *host = test_random_bytes (rig->spec.size, 3), *back = g_malloc0 (rig->spec.size);
  GError *error = NULL;

  rig_sync (rig->stream[0]);
  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 1000);
  g_assert_false (gpu_image_stage_in (rig->stream[0], image, host, &rig->spec, plan_of (1000), &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  g_assert_true (gpu_image_upload (rig->stream[0], image, host, &rig->spec, &error));
  g_assert_true (gpu_image_download (rig->stream[0], image, back, &rig->spec, &error));
  g_assert_no_error (error);
  test_assert_samples (back, &rig->spec, host, &rig->spec);
  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 0);

  gpu_cache_set_limit (rig->device, GPU_ACCOUNT_HOST, 0, &error);
  for (unsigned i = 0; i < 5; i++) {
    memset (back, 0, rig->spec.size);
    g_assert_true (gpu_image_stage_in (rig->stream[0], image, host, &rig->spec, plan_of (1000), &error));
    g_assert_true (gpu_image_stage_out (rig->stream[0], image, back, &rig->spec, plan_of (1000), &error));
    test_assert_samples (back, &rig->spec, host, &rig->spec);
  }
  rig_finish (rig);
  GpuCacheStats stats;
  gpu_cache_get_stats (rig->device, GPU_ACCOUNT_HOST, GPU_CACHE_ALL, &stats);
  g_assert_cmpuint (stats.idle_bytes, ==, 0);
  gpu_image_unref (image);
}

/* A copy that fails in the middle: an error, and nobody left with memory that is the caller's again. How many copies
 * there are on the way in depends on how fast the crew is, on the way out there are as many as slices allow. */
static void
test_failure (void)
{
  for (unsigned skip = 0; skip < 3; skip++)
    for (unsigned out = 0; out < 2; out++) {
      GpuDevice *device = test_device_new ();
      GpuStream *stream = gpu_stream_new (device, true, NULL);
      const GpuImageSpec spec = test_spec (GPU_FORMAT_RGBA, 64, 64);
      GpuImage *image = test_image_new (device, &spec, stream);
      uint8_t *host = test_random_bytes (spec.size, 1);
      GError *error = NULL;

      gpu_device_fail (device, GPU_CALL_COPY, skip, 1);
      bool ok = out ? gpu_image_stage_out (stream, image, host, &spec, plan_of (300), &error)
                    : gpu_image_stage_in (stream, image, host, &spec, plan_of (300), &error);
      g_assert_true (!ok || (skip > 0 && !out));
      if (!ok)
        g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
      g_clear_error (&error);
      g_free (host);
      gpu_image_unref (image);
      gpu_stream_unref (stream);
      gpu_device_unref (device);
    }
}

/* Few slices a move where nothing else goes on meanwhile, many in between: 64 slices of a row, all by the caller, since
 * with helpers the device gets what they have done meanwhile, too. */
static void
test_moves (Rig *rig, const void *data)
{
  static const GpuStagingPlan plan = {.slice_bytes = 256, .least = 2, .most = 16};
  /* In: of 2, 2, 4, 8, 16, 16 and 16; out: of 16, 16, 10, 7, 5, 3, 2, 2, 2 and 1. */
  static const unsigned moves[2] = {7, 10};
  GpuStagingTimes times = {0};
  GpuStagingPlan timed = plan;
  const GpuImageSpec spec = rig_spec (GPU_FORMAT_RGBA, 64, 64);
  GpuImage *image = rig_acquire (rig, &spec, rig->stream[0]);
  g_autofree uint8_t *host = test_random_bytes (spec.size, 3);
  GError *error = NULL;

  timed.times = &times;
  gpu_device_set_crew (rig->device, 0, false);
  for (unsigned out = 0; out < 2; out++) {
    const uint64_t before = gpu_device_calls (rig->device, GPU_CALL_COPY);
    g_assert_true (out ? gpu_image_stage_out (rig->stream[0], image, host, &spec, timed, &error)
                       : gpu_image_stage_in (rig->stream[0], image, host, &spec, timed, &error));
    g_assert_no_error (error);
    g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_COPY) - before, ==, moves[out]);
    g_assert_cmpint (times.begun, <=, times.prepared);
    g_assert_cmpint (times.prepared, <, times.sent);
    g_assert_cmpint (times.prepared, <, times.first);
    g_assert_cmpint (times.first, <=, times.last);
    g_assert_cmpint (times.sent, <=, times.last);
    g_assert_cmpint (times.last, <=, times.done);
  }
  gpu_image_unref (image);
}

static void
test_view_as (Rig *rig, const void *data)
{
  GpuImage *bytes, *view;
  GpuImageSpec row = rig_spec (GPU_FORMAT_GRAY8, 4096, 1), frame = padded_spec (GPU_FORMAT_I420, 30, 20, 4);
  g_autofree uint8_t *host = test_random_bytes (frame.size, 5);
  GError *error = NULL;

  bytes = rig_filled (rig, &row, rig->stream[0], 3);
  view = gpu_image_view_as (bytes, 100, &frame, &error);
  g_assert_no_error (error);
  g_assert_true (gpu_image_data (view) == (uint8_t *)gpu_image_data (bytes) + 100);

  /* One history: what is written through the view is waited for through the whole. */
  rig_close (rig, 1);
  GpuImage *src = test_image_new (rig->device, &frame, rig->stream[2]);
  g_assert_true (gpu_image_copy_from_host (rig->stream[2], src, host, &frame, &error));
  rig_copy (rig->stream[1], src, view);
  g_assert_false (gpu_image_is_complete (bytes, GPU_ACCESS_READ));
  rig_open (rig, 1);
  test_assert_image (rig->stream[0], view, host, &frame);

  g_assert_null (gpu_image_view_as (bytes, row.size - frame.size + 1, &frame, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gpu_image_view_as (bytes, SIZE_MAX, &frame, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  gpu_image_unref (src);
  gpu_image_unref (bytes); /* the view keeps it */
  test_assert_image (rig->stream[0], view, host, &frame);
  gpu_image_unref (view);
}

/* Hints are taken for every kind of memory, and managed memory is right on both sides. */
static void
test_prefetch (Rig *rig, const void *data)
{
  GError *error = NULL;

  for (unsigned kind = 0; kind < GPU_N_MEMORY_KINDS; kind++) {
    GpuImage *image =
        gpu_image_acquire (rig->device, &rig->spec, (GpuMemoryKind)kind, rig->stream[0], GPU_ACQUIRE_DEFAULT, &error);
    if (g_error_matches (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED)) {
      g_clear_error (&error);
      continue;
    }
    g_assert_no_error (error);
    g_assert_true (gpu_image_prefetch (rig->stream[0], image, GPU_SIDE_DEVICE, &error));
    rig_fill (rig->stream[0], image, 42);
    g_assert_true (gpu_image_prefetch (rig->stream[0], image, GPU_SIDE_HOST, &error));
    g_assert_no_error (error);
    g_assert_true (gpu_image_wait (image, GPU_ACCESS_WRITE, &error));
    if (kind == GPU_MEMORY_MANAGED || kind == GPU_MEMORY_HOST)
      for (size_t i = 0; i < rig->spec.size; i++)
        g_assert_cmpuint (((uint8_t *)gpu_image_data (image))[i], ==, 42);
    gpu_image_unref (image);
  }
}

/* The crew */

typedef struct {
  GpuCrew *crew;
  atomic_uint begun[64], done[64];
} CrewWork;

static void
do_one (void *data, unsigned i)
{
  CrewWork *work = data;
  atomic_fetch_add (&work->begun[i], 1);
  for (unsigned k = 0; k < 20; k++)
    sched_yield ();
  atomic_fetch_add (&work->done[i], 1);
}

static void *
give_jobs (void *data)
{
  GpuCrew *crew = data;

  for (unsigned n = 1; n < 200; n++) {
    CrewWork work = {.crew = crew};
    GpuCrewJob job = {.func = do_one, .data = &work, .n = n % 64 + 1, .ready = n % 3 ? n % 64 + 1 : 0};
    unsigned wanted = n % 5 ? job.n : job.n / 2;

    gpu_crew_begin (crew, &job);
    for (unsigned ready = job.ready; ready < job.n; ready++) {
      gpu_crew_allow (crew, &job, ready + 1);
      if (ready % 2)
        gpu_crew_help (crew, &job);
    }
    unsigned finished = gpu_crew_finish (crew, &job, wanted);
    g_assert_cmpuint (finished, >=, wanted);
    for (unsigned i = 0; i < finished; i++)
      g_assert_cmpuint (atomic_load (&work.done[i]), ==, 1);
    gpu_crew_end (crew, &job);
    /* Nobody has a piece of it in hand any more. */
    for (unsigned i = 0; i < 64; i++) {
      g_assert_cmpuint (atomic_load (&work.done[i]), <=, i < job.n);
      g_assert_cmpuint (atomic_load (&work.done[i]), ==, atomic_load (&work.begun[i]));
    }
  }
  return NULL;
}

static void
test_crew (void)
{
  for (unsigned i = 0; i < 8; i++) {
    GpuCrew *crew = gpu_crew_new (i / 2, i % 2);
    pthread_t threads[GPU_CREW_JOBS + 2];
    const unsigned n = i == 5 ? G_N_ELEMENTS (threads) : 3; /* once more than have helpers */

    for (unsigned k = 0; k < n; k++)
      g_assert_cmpint (pthread_create (&threads[k], NULL, give_jobs, crew), ==, 0);
    for (unsigned k = 0; k < n; k++)
      pthread_join (threads[k], NULL);
    gpu_crew_free (crew);
  }
}

/* A job that is taken back with some of its pieces ready allows nothing of the next one. */
static void
test_crew_given_up (void)
{
  GpuCrew *crew = gpu_crew_new (2, true);

  for (unsigned round = 0; round < 20; round++) {
    CrewWork work = {.crew = crew};
    GpuCrewJob failed = {.func = do_one, .data = &work, .n = 10};
    GpuCrewJob next = {.func = do_one, .data = &work, .n = 5};

    gpu_crew_begin (crew, &failed);
    gpu_crew_allow (crew, &failed, 3);
    gpu_crew_end (crew, &failed);
    for (unsigned i = 0; i < 10; i++)
      g_assert_cmpuint (atomic_load (&work.begun[i]), <=, i < 3);

    memset (&work, 0, sizeof work);
    gpu_crew_begin (crew, &next);
    g_usleep (500);
    for (unsigned i = 0; i < 5; i++)
      g_assert_cmpuint (atomic_load (&work.begun[i]), ==, 0);
    gpu_crew_allow (crew, &next, 5);
    g_assert_cmpuint (gpu_crew_finish (crew, &next, 5), ==, 5);
    gpu_crew_end (crew, &next);
  }
  gpu_crew_free (crew);
}

/* Who allows more takes a piece only where more can be done than helpers have hands for. */
typedef struct {
  pthread_t caller;
  atomic_uint n_held, n_done;
  atomic_bool goes_on;
} HeldWork;

static void
hold (void *data, unsigned i)
{
  HeldWork *work = data;
  (void)i;
  if (!pthread_equal (pthread_self (), work->caller)) {
    atomic_fetch_add (&work->n_held, 1);
    while (!atomic_load (&work->goes_on))
      sched_yield ();
  }
  atomic_fetch_add (&work->n_done, 1);
}

static void
test_crew_help (void)
{
  for (unsigned n_helpers = 0; n_helpers < 3; n_helpers++) {
    GpuCrew *crew = gpu_crew_new (n_helpers, false);
    HeldWork work = {.caller = pthread_self ()};
    GpuCrewJob job = {.func = hold, .data = &work, .n = 8};

    gpu_crew_begin (crew, &job);
    g_assert_false (gpu_crew_help (crew, &job));
    gpu_crew_allow (crew, &job, n_helpers);
    while (atomic_load (&work.n_held) < n_helpers)
      sched_yield ();
    gpu_crew_allow (crew, &job, 2 * n_helpers);
    g_assert_false (gpu_crew_help (crew, &job));
    gpu_crew_allow (crew, &job, 2 * n_helpers + 2);
    for (unsigned i = 0; i < 3; i++)
      g_assert_true (gpu_crew_help (crew, &job) == (i < 2));
    g_assert_cmpuint (atomic_load (&work.n_done), ==, 2);
    atomic_store (&work.goes_on, true);
    gpu_crew_allow (crew, &job, job.n);
    g_assert_cmpuint (gpu_crew_finish (crew, &job, job.n), ==, job.n);
    gpu_crew_end (crew, &job);
    g_assert_cmpuint (atomic_load (&work.n_done), ==, job.n);
    gpu_crew_free (crew);
  }
}

/* Several threads with staged copies of one device at a time: its crew is made once, and helps them all. */
typedef struct {
  GpuDevice *device;
  unsigned number;
} Sender;

static void *
send_and_fetch (void *data)
{
  const Sender *sender = data;
  GError *error = NULL;
  GpuStream *stream = gpu_stream_new (sender->device, true, &error);
  const GpuImageSpec spec = test_spec (GPU_FORMAT_NV12, 65, 33);

  g_assert_no_error (error);
  for (unsigned i = 0; i < 40; i++) {
    GpuImage *image = test_image_new (sender->device, &spec, stream);
    g_autofree uint8_t *host = test_random_bytes (spec.size, 100 * sender->number + i);
    g_autofree uint8_t *back = g_malloc0 (spec.size);

    g_assert_true (gpu_image_stage_in (stream, image, host, &spec, plan_of (200), &error));
    g_assert_true (gpu_image_stage_out (stream, image, back, &spec, plan_of (200), &error));
    g_assert_no_error (error);
    test_assert_samples (back, &spec, host, &spec);
    gpu_image_unref (image);
  }
  gpu_stream_unref (stream);
  return NULL;
}

static void
test_threads (void)
{
  GpuDevice *device = test_device_new ();
  Sender senders[4];
  pthread_t threads[G_N_ELEMENTS (senders)];

  for (unsigned i = 0; i < G_N_ELEMENTS (senders); i++) {
    senders[i] = (Sender){device, i};
    g_assert_cmpint (pthread_create (&threads[i], NULL, send_and_fetch, &senders[i]), ==, 0);
  }
  for (unsigned i = 0; i < G_N_ELEMENTS (threads); i++)
    pthread_join (threads[i], NULL);
  gpu_cache_check (device);
  gpu_device_unref (device);
}

/* Hazards: a stream for copies each way and two for work. Memory of the host's is let go of, or written over, as soon
 * as that is allowed; what was read too late or reused too early is a wrong stamp. On a GPU the images are so large
 * that copies of several are under way at a time. */

#define MAX_FRAMES 6

typedef struct {
  GpuImage *image;
  uint32_t stamp;
} Stamped;

typedef struct {
  GpuDevice *device;
  GpuImageSpec spec;
  GpuStream *up, *down, *work[2];
  Stamped frames[MAX_FRAMES], held[MAX_FRAMES];
  unsigned n_frames, n_held;
  uint8_t *plain;
  uint32_t state, next_stamp;
} Traffic;

static uint32_t
pick (Traffic *traffic, uint32_t n)
{
  return (test_random (&traffic->state) >> 8) % n;
}

static GpuImage *
take (Traffic *traffic, GpuMemoryKind kind, GpuStream *stream)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (traffic->device, &traffic->spec, kind, stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  return image;
}

static void
upload_one (Traffic *traffic, bool staged)
{
  GpuImage *image = take (traffic, GPU_MEMORY_STREAM_ORDERED, traffic->up);
  uint32_t stamp = ++traffic->next_stamp;
  GError *error = NULL;

  if (staged) {
    stamp_host_write (traffic->device, traffic->plain, traffic->spec.size, stamp);
    gpu_image_stage_in (traffic->up, image, traffic->plain, &traffic->spec, plan_of (traffic->spec.size / 7), &error);
    memset (traffic->plain, 0, traffic->spec.size);
  } else {
    GpuImage *pinned = take (traffic, GPU_MEMORY_HOST, NULL);
    stamp_host_write (traffic->device, gpu_image_data (pinned), traffic->spec.size, stamp);
    gpu_image_copy (traffic->up, pinned, image, &error);
    gpu_image_unref (pinned);
  }
  g_assert_no_error (error);
  traffic->frames[traffic->n_frames++] = (Stamped){image, stamp};
}

static void
download_one (Traffic *traffic, bool staged)
{
  const Stamped frame = traffic->frames[0];
  GError *error = NULL;

  if (staged) {
    memset (traffic->plain, 0, traffic->spec.size);
    gpu_image_stage_out (traffic->down, frame.image, traffic->plain, &traffic->spec, plan_of (traffic->spec.size / 7),
                         &error);
    stamp_host_check (traffic->device, traffic->plain, traffic->spec.size, frame.stamp);
  } else {
    GpuImage *pinned = take (traffic, GPU_MEMORY_HOST, traffic->down);
    gpu_image_copy (traffic->down, frame.image, pinned, &error);
    traffic->held[traffic->n_held++] = (Stamped){pinned, frame.stamp};
  }
  g_assert_no_error (error);
  gpu_image_unref (frame.image);
  traffic->frames[0] = traffic->frames[--traffic->n_frames];
}

static void
work_on_one (Traffic *traffic)
{
  Stamped *frame = &traffic->frames[pick (traffic, traffic->n_frames)];
  GpuStream *stream = traffic->work[pick (traffic, 2)];
  GpuImage *image = take (traffic, GPU_MEMORY_STREAM_ORDERED, stream);

  stamp_convert (stream, frame->image, frame->stamp, image, ++traffic->next_stamp);
  gpu_image_unref (frame->image);
  *frame = (Stamped){image, traffic->next_stamp};
}

/* As a map does. */
static void
look_at_one (Traffic *traffic)
{
  unsigned i = pick (traffic, traffic->n_held);
  GpuImage *image = traffic->held[i].image;
  GError *error = NULL;

  gpu_image_wait (image, GPU_ACCESS_READ, &error);
  g_assert_no_error (error);
  stamp_host_check (traffic->device, gpu_image_data (image), traffic->spec.size, traffic->held[i].stamp);
  gpu_image_unref (image);
  traffic->held[i] = traffic->held[--traffic->n_held];
}

static void
one_step (Traffic *traffic)
{
  unsigned what = pick (traffic, 100);

  if (what < 30 && traffic->n_frames < MAX_FRAMES)
    upload_one (traffic, what < 10);
  else if (what < 55 && traffic->n_frames > 0)
    work_on_one (traffic);
  else if (what < 80 && traffic->n_frames > 0 && traffic->n_held < MAX_FRAMES)
    download_one (traffic, what < 60);
  else if (what < 98 && traffic->n_held > 0)
    look_at_one (traffic);
  else if (what >= 98)
    gpu_cache_set_limit (traffic->device, pick (traffic, 2) ? GPU_ACCOUNT_HOST : GPU_ACCOUNT_DEVICE,
                         (int64_t)(pick (traffic, 8) * traffic->spec.size), NULL);
}

static void
test_hazards (void)
{
  const unsigned n_rounds = test_is_cuda () ? 8 : 60;

  for (unsigned round = 0; round < n_rounds; round++) {
    Traffic traffic = {.device = test_device_new (), .state = round + 1};
    GError *error = NULL;

    traffic.spec = test_is_cuda () ? test_spec (GPU_FORMAT_RGBA, 1024, 1024) : test_spec (GPU_FORMAT_RGBA, 64, 21);
    traffic.plain = g_malloc (traffic.spec.size);
    traffic.up = gpu_stream_new (traffic.device, true, &error);
    traffic.down = gpu_stream_new (traffic.device, true, &error);
    for (unsigned i = 0; i < 2; i++)
      traffic.work[i] = gpu_stream_new (traffic.device, true, &error);
    g_assert_no_error (error);
    for (unsigned i = 0; i < 200; i++) {
      if (test_is_lazy () && pick (&traffic, 4) == 0)
        gpu_cpu_device_run (traffic.device, pick (&traffic, 8), traffic.state);
      one_step (&traffic);
    }
    while (traffic.n_frames > 0 && traffic.n_held < MAX_FRAMES)
      download_one (&traffic, false);
    while (traffic.n_held > 0)
      look_at_one (&traffic);
    while (traffic.n_frames > 0)
      download_one (&traffic, true);
    gpu_cache_check (traffic.device);

    GpuStream *streams[] = {traffic.up, traffic.down, traffic.work[0], traffic.work[1]};
    for (size_t i = 0; i < G_N_ELEMENTS (streams); i++) {
      rig_sync (streams[i]);
      gpu_stream_unref (streams[i]);
    }
    stamp_settle (round + 1);
    g_free (traffic.plain);
    gpu_device_unref (traffic.device);
  }
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  g_test_add_func ("/transfer/crew", test_crew);
  g_test_add_func ("/transfer/crew/given-up", test_crew_given_up);
  g_test_add_func ("/transfer/crew/help", test_crew_help);
  g_test_add_func ("/transfer/formats", test_formats);
  g_test_add_func ("/transfer/views", test_views);
  RIG_TEST ("/transfer/public", test_public);
  RIG_TEST ("/transfer/in-does-not-wait", test_in_does_not_wait);
  RIG_TEST ("/transfer/no-pinned-memory", test_no_pinned_memory);
  g_test_add_func ("/transfer/failure", test_failure);
  RIG_TEST ("/transfer/moves", test_moves);
  RIG_TEST ("/transfer/view-as", test_view_as);
  RIG_TEST ("/transfer/prefetch", test_prefetch);
  g_test_add_func ("/transfer/threads", test_threads);
  g_test_add_func ("/transfer/hazards", test_hazards);
  return g_test_run ();
}
