/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the cache asks of its device and how often, counted at the seam: questions, events, waits, trims, and what it
 * does when memory is refused.
 */
#include "common.h"
#include "rig.h"

#include <gpucache/cache-priv.h>

#include <string.h>

/* The device's functions with one of them counted. */
static GpuDeviceFuncs spy;
static const GpuDeviceFuncs *real;
static atomic_uint trims;
static atomic_uint_least64_t kept; /* by the last of them, at most */

static uint64_t held;  /* what the device's pool holds besides, beyond what it does of itself */
static uint64_t whole; /* of that, what is wholly free, and goes unless it may be kept */

static uint64_t
count_trim (GpuDevice *device, uint64_t keep)
{
  atomic_fetch_add (&trims, 1);
  atomic_store (&kept, keep);
  return real->trim (device, keep) + held + (keep ? whole : 0);
}

static void
spy_on_trims (Rig *rig)
{
  real = rig->device->funcs;
  spy = *real;
  spy.trim = count_trim;
  rig->device->funcs = &spy;
  atomic_store (&trims, 0);
}

static uint64_t
questions (Rig *rig)
{
  return gpu_device_calls (rig->device, GPU_CALL_EVENT_QUERY);
}

/* All that was submitted becomes complete, and the cache does not get to know. */
static void
complete_unseen (Rig *rig)
{
  GError *error = NULL;

  g_assert_true (rig->device->funcs->synchronize (rig->device, &error));
  g_assert_no_error (error);
}

/* Entries of rig->other that are pending on a stream each. */
#define MANY 16

typedef struct {
  GpuGate *gate;
  GpuStream *stream[MANY];
  size_t capacity;
} Crowd;

static void
crowd_make (Crowd *crowd, Rig *rig)
{
  GError *error = NULL;

  crowd->gate = gpu_gate_new (rig->device, &error);
  g_assert_no_error (error);
  for (unsigned i = 0; i < MANY; i++) {
    crowd->stream[i] = rig_new_stream (rig, false);
    GpuImage *image = rig_acquire (rig, &rig->other, crowd->stream[i]);
    g_assert_true (gpu_gate_hold (crowd->gate, crowd->stream[i], &error));
    g_assert_no_error (error);
    rig_fill (crowd->stream[i], image, 1);
    crowd->capacity = gpu_image_capacity (image);
    gpu_image_unref (image);
  }
  g_assert_cmpuint (rig_stats (rig).pending, ==, MANY);
}

static void
crowd_clear (Crowd *crowd)
{
  gpu_gate_free (crowd->gate);
  for (unsigned i = 0; i < MANY; i++) {
    rig_sync (crowd->stream[i]);
    gpu_stream_unref (crowd->stream[i]);
  }
}

/* Rule 11: however much is pending, an acquire, a release or a submission asks a few questions, and not none. */
static void
test_bounded_questions (Rig *rig, const void *data)
{
  const unsigned most = 10;
  GpuImage *image[2];
  Crowd crowd;

  crowd_make (&crowd, rig);
  for (unsigned i = 0; i < 2; i++) {
    GpuImageSpec fresh = rig_spec (GPU_FORMAT_RGBA, 32, 32 + i);
    uint64_t before = questions (rig);
    image[i] =
        gpu_image_acquire (rig->device, &fresh, GPU_MEMORY_STREAM_ORDERED, rig->stream[0], GPU_ACQUIRE_DEFAULT, NULL);
    g_assert_nonnull (image[i]);
    g_assert_cmpuint (questions (rig) - before, >=, 1);
    g_assert_cmpuint (questions (rig) - before, <=, most);
  }

  /* The others ask only if there is anything to be gained by it. */
  rig_limit (rig, 1);
  uint64_t before = questions (rig);
  rig_fill (rig->stream[0], image[0], 1);
  g_assert_cmpuint (questions (rig) - before, >=, 1);
  g_assert_cmpuint (questions (rig) - before, <=, most);
  for (unsigned i = 0; i < 2; i++) {
    before = questions (rig);
    gpu_image_unref (image[i]);
    g_assert_cmpuint (questions (rig) - before, >=, 1);
    g_assert_cmpuint (questions (rig) - before, <=, most);
  }
  crowd_clear (&crowd);
}

/* Rule 11: who asks about a few asks about others the next time, so that all that is complete is seen. */
static void
test_questions_take_turns (Rig *rig, const void *data)
{
  Crowd crowd;

  crowd_make (&crowd, rig);
  rig_limit (rig, MANY * crowd.capacity);
  gpu_gate_open (crowd.gate);
  complete_unseen (rig);
  uint64_t frees = gpu_device_calls (rig->device, GPU_CALL_FREE);
  GpuImage *image = gpu_image_acquire (rig->device, &rig->other, GPU_MEMORY_STREAM_ORDERED, crowd.stream[0],
                                       GPU_ACQUIRE_DEFAULT, NULL);
  g_assert_nonnull (image);
  rig->device->cache->limit[GPU_ACCOUNT_DEVICE] = 1; /* as when it is lowered, without the sweep */
  for (unsigned i = 0; i < MANY; i++)
    rig_fill (crowd.stream[0], image, 1);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_FREE) - frees, ==, MANY - 1);
  gpu_image_unref (image);
  crowd_clear (&crowd);
}

static void
leave_pending (void *data)
{
  Rig *rig = data;
  GpuImage *image = rig_acquire (rig, &rig->other, rig->stream[1]);

  rig_close (rig, 1);
  rig_fill (rig->stream[1], image, 1);
  gpu_image_unref (image);
}

/* Rule 11: a thread that does nothing any more does not retire: whoever does something looks at its scope, too. */
static void
test_idle_threads (Rig *rig, const void *data)
{
  RigThread *thread = rig_thread_new ();
  GpuImage *busy = rig_acquire (rig, &rig->spec, rig->stream[0]);

  rig_thread_do (thread, leave_pending, rig);
  rig_limit (rig, 1);
  uint64_t frees = gpu_device_calls (rig->device, GPU_CALL_FREE);
  rig_open (rig, 1);
  complete_unseen (rig);
  for (unsigned i = 0; i < 3; i++)
    rig_fill (rig->stream[0], busy, 1);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_FREE) - frees, ==, 1);
  gpu_image_unref (busy);
  rig_thread_end (thread);
  rig_finish (rig);
}

/* Rules 11 and 12: what was live at a clear is freed by whoever submits or asks, once it is let go of and complete. */
static void
test_cleared_retires (Rig *rig, const void *data)
{
  for (unsigned i = 0; i < 2; i++) {
    GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
    g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, NULL));
    GpuImage *busy = rig_acquire (rig, &rig->spec, rig->stream[1]);
    rig_close (rig, 0);
    rig_fill (rig->stream[0], image, 1);
    gpu_image_unref (image);
    uint64_t frees = gpu_device_calls (rig->device, GPU_CALL_FREE);
    rig_fill (rig->stream[1], busy, 1);
    g_assert_cmpuint (rig_stats (rig).detached_bytes, ==, rig->spec.size);
    g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_FREE), ==, frees);
    rig_open (rig, 0);
    complete_unseen (rig);
    if (i == 0)
      rig_fill (rig->stream[1], busy, 1);
    else
      g_assert_cmpuint (rig_stats (rig).detached_bytes, ==, 0);
    g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_FREE), ==, frees + 1);
    gpu_image_unref (busy);
    rig_finish (rig);
  }
}

/* Rule 11: what was used first is complete first, in whatever order it was released. */
static void
test_released_in_any_order (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image[24];
  const unsigned n = G_N_ELEMENTS (image);
  GpuPoint half = {0};
  const unsigned order[] = {23, 11, 22, 0, 12, 10, 1, 21, 20, 13, 2, 9, 3, 14, 8, 19, 4, 15, 18, 7, 5, 16, 6, 17};

  rig_close (rig, 0);
  for (unsigned i = 0; i < n; i++)
    image[i] = rig_acquire (rig, &rig->spec, rig->stream[0]);
  for (unsigned i = 0; i < n / 2; i++)
    rig_fill (rig->stream[0], image[i], 1);
  g_assert_true (gpu_point_mark (&half, rig->stream[0], &error));
  GpuGate *second = gpu_gate_new (rig->device, &error);
  g_assert_true (gpu_gate_hold (second, rig->stream[0], &error));
  for (unsigned i = n / 2; i < n; i++)
    rig_fill (rig->stream[0], image[i], 1);
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (image[order[i]]);
  g_assert_cmpuint (rig_stats (rig).pending, ==, n);
  rig_open (rig, 0);
  g_assert_true (gpu_point_wait (&half, &error));
  gpu_point_clear (&half);
  g_assert_cmpuint (rig_stats (rig).idle, ==, n / 2);
  g_assert_cmpuint (rig_stats (rig).pending, ==, n / 2);
  gpu_gate_free (second);
  rig_sync (rig->stream[0]);
  g_assert_cmpuint (rig_stats (rig).idle, ==, n);
}

/* Rules 4 and 11: what retires late has its place by its release, also beside what was evicted meanwhile. */
static void
test_retires_among_newer (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image[4];
  void *address[4];
  GpuPoint first = {0};

  rig_close (rig, 0);
  for (unsigned i = 0; i < 4; i++) {
    image[i] = rig_acquire (rig, &rig->spec, rig->stream[i / 2]);
    address[i] = gpu_image_data (image[i]);
  }
  rig_fill (rig->stream[0], image[0], 1);
  g_assert_true (gpu_point_mark (&first, rig->stream[0], &error));
  GpuGate *second = gpu_gate_new (rig->device, &error);
  g_assert_true (gpu_gate_hold (second, rig->stream[0], &error));
  rig_fill (rig->stream[0], image[1], 1);
  for (unsigned i = 0; i < 4; i++)
    gpu_image_unref (image[i]);

  rig_sync (rig->stream[1]);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 2);
  rig_open (rig, 0);
  g_assert_true (gpu_point_wait (&first, &error));
  gpu_point_clear (&first);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 3);
  rig_limit (rig, 3 * rig->spec.size);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 2); /* without the oldest, which had retired last */
  gpu_gate_free (second);
  rig_sync (rig->stream[0]);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 3);
  for (unsigned i = 3; i >= 1; i--) {
    image[i] = rig_acquire (rig, &rig->spec, NULL);
    g_assert_true (gpu_image_data (image[i]) == address[i]);
  }
  for (unsigned i = 1; i < 4; i++)
    gpu_image_unref (image[i]);
}

/* Rule 11: under pressure everything is looked at, so that no limit is exceeded while complete memory lies around. */
static void
test_full_sweep (Rig *rig, const void *data)
{
  GpuImageSpec large = rig_spec (GPU_FORMAT_RGBA, 64, 64 * (MANY - 4));
  Crowd crowd;

  crowd_make (&crowd, rig);
  rig_limit (rig, MANY * crowd.capacity);
  rig->last[0] = rig_stats (rig);
  gpu_gate_open (crowd.gate);
  complete_unseen (rig);
  GpuImage *image = rig_acquire (rig, &large, rig->stream[0]);
  g_assert_cmpuint (rig_stats (rig).peak_bytes, ==, MANY * crowd.capacity);
  RIG_EXPECT (rig, .misses = 1, .evictions = MANY - 4);
  gpu_image_unref (image);
  crowd_clear (&crowd);
}

/* Rule 11: what was read on two streams comes in no order, so however many of those are not complete, the others are
 * seen. */
static void
test_sweeps_past_readers (Rig *rig, const void *data)
{
  enum { HELD = 24, DONE = 20 }; /* behind a gate a GPU's driver has room for some dozens of copies with their events */
  GpuImage *image[HELD + DONE], *copy[RIG_STREAMS];

  for (unsigned i = 0; i < RIG_STREAMS; i++)
    copy[i] = rig_acquire (rig, &rig->spec, rig->stream[i]);
  for (unsigned i = 0; i < HELD + DONE; i++)
    image[i] = rig_filled (rig, &rig->spec, rig->stream[3], 1);
  rig_close (rig, 0);
  rig_close (rig, 1);
  for (unsigned i = 0; i < HELD + DONE; i++) {
    const unsigned reader = i < HELD ? 0 : 2;
    rig_copy (rig->stream[reader], image[i], copy[reader]);
    rig_copy (rig->stream[reader + 1], image[i], copy[reader + 1]);
  }
  for (unsigned i = 0; i < HELD + DONE; i++)
    gpu_image_unref (image[i]);
  rig_sync (rig->stream[2]);
  rig_sync (rig->stream[3]);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.pending, ==, HELD);
  g_assert_cmpuint (stats.idle, ==, DONE);
  for (unsigned i = 0; i < RIG_STREAMS; i++)
    gpu_image_unref (copy[i]);
  rig_finish (rig);
}

/* Rule 10: after a lowered limit the driver's pool is trimmed: at once if the limit is met, else when it is. */
static void
test_trims_after_lowered_limit (Rig *rig, const void *data)
{
  size_t capacity = rig_make_idle (rig, &rig->spec, rig->stream[0], 3, NULL);

  spy_on_trims (rig);
  rig_limit (rig, 3 * capacity);
  g_assert_cmpuint (atomic_load (&trims), ==, 1); /* it was half of the device's memory */
  rig_limit (rig, 4 * capacity);
  g_assert_cmpuint (atomic_load (&trims), ==, 1);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  rig_limit (rig, 1);
  g_assert_cmpuint (atomic_load (&trims), ==, 1);
  gpu_image_unref (image);
  rig_sync (rig->stream[0]);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 0);
  g_assert_cmpuint (atomic_load (&trims), ==, 2);
  rig->device->funcs = real;
}

/* Rule 10: after a clear, and once more when what was live at the clear has been let go of. */
static void
test_trims_after_clear (Rig *rig, const void *data)
{
  GError *error = NULL;

  rig_make_idle (rig, &rig->spec, rig->stream[0], 3, NULL);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  spy_on_trims (rig);
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_LOCAL, &error));
  g_assert_cmpuint (atomic_load (&trims), ==, 1);
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, &error));
  g_assert_cmpuint (atomic_load (&trims), ==, 2);
  gpu_image_unref (image);
  rig_sync (rig->stream[0]);
  g_assert_cmpuint (rig_stats (rig).detached_bytes, ==, 0);
  g_assert_cmpuint (atomic_load (&trims), ==, 3);
  rig->device->funcs = real;
}

/* What the device has to do for itself is done, and a frame that is larger than all that is there asks for memory. */
static void
ask_for_more (Rig *rig, uint32_t height)
{
  const GpuImageSpec spec = rig_spec (GPU_FORMAT_ARGB, 64, height);

  rig->device->funcs = real;
  rig_run (rig);
  rig->device->funcs = &spy;
  g_usleep (1000);
  gpu_image_unref (rig_acquire (rig, &spec, rig->stream[0]));
}

/* What is evicted for a frame that cannot use it stays with the driver's pool, which would grow beyond the limit: it is
 * trimmed to the limit, with that allocation or one of the next, when the free is complete; and only then. */
static void
test_trims_to_limit (Rig *rig, const void *data)
{
  size_t capacity = rig_make_idle (rig, &rig->spec, rig->stream[0], 3, NULL);

  rig_limit (rig, 3 * capacity);
  spy_on_trims (rig);
  gpu_image_unref (rig_acquire (rig, &rig->spec, rig->stream[0]));
  g_assert_cmpuint (atomic_load (&trims), ==, 0);
  gpu_image_unref (rig_acquire (rig, &rig->other, rig->stream[0]));
  g_assert_cmpuint (rig_stats (rig).evictions, >, 0);
  for (unsigned i = 0; atomic_load (&trims) == 0; i++) {
    g_assert_cmpuint (i, <, 20);
    ask_for_more (rig, 70 + i);
  }
  g_assert_cmpuint (atomic_load (&kept), ==, 3 * capacity - 3 * capacity / 8);

  rig_limit (rig, 300 * capacity);
  for (unsigned i = 0; i < 10; i++)
    ask_for_more (rig, 100 + i);
  const unsigned so_far = atomic_load (&trims);
  for (unsigned i = 0; i < 10; i++)
    ask_for_more (rig, 120 + i);
  g_assert_cmpuint (atomic_load (&trims), ==, so_far);
  rig->device->funcs = real;
}

/* Until the device's pool has been trimmed once more. */
static void
ask_until_trimmed (Rig *rig, uint32_t *height)
{
  const unsigned before = atomic_load (&trims);

  while (atomic_load (&trims) == before) {
    g_assert_cmpuint (*height, <, 1000);
    ask_for_more (rig, (*height)++);
  }
}

/* What the device's pool holds beyond what is in use of it counts against the limit, up to an eighth of it, and does no
 * more when it holds it no more. */
static void
test_limit_is_for_the_pool_too (Rig *rig, const void *data)
{
  enum { N = 32 };
  size_t capacity = rig_make_idle (rig, &rig->spec, rig->stream[0], N, NULL);
  uint32_t height = 65;

  g_assert_cmpuint (capacity, ==, 64 * 64 * 4);
  rig_limit (rig, N * capacity);
  spy_on_trims (rig);
  held = 3 * capacity;
  g_assert_cmpuint (rig_stats (rig).idle_bytes, ==, N * capacity);
  ask_until_trimmed (rig, &height);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.held_bytes, ==, 3 * capacity);
  g_assert_cmpuint (atomic_load (&kept), ==, N / 8 * 7 * capacity);
  g_assert_cmpuint (stats.limit_bytes, ==, N * capacity);
  g_assert_cmpuint (rig_bytes (&stats), <=, (N - 3) * capacity);
  g_assert_cmpuint (rig_bytes (&stats), >, (N - 5) * capacity);
  rig_sync (rig->stream[0]);
  for (unsigned i = 0; i < 5; i++)
    ask_for_more (rig, height++);
  stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), <=, (N - 3) * capacity);

  /* Room is made before the device is asked, not when the frame is let go of. */
  const GpuImageSpec spec = rig_spec (GPU_FORMAT_ARGB, 64, height++);
  GpuImage *image = rig_acquire (rig, &spec, rig->stream[0]);
  g_assert_cmpuint (atomic_load (&rig->device->cache->bytes[GPU_ACCOUNT_DEVICE]), <=, (N - 3) * capacity);
  gpu_image_unref (image);

  /* More than the pool may keep of itself: that is given back first. */
  held = 100 * capacity;
  ask_until_trimmed (rig, &height);
  g_assert_cmpuint (atomic_load (&kept), ==, 0);
  stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), <=, N / 8 * 7 * capacity);
  g_assert_cmpuint (rig_bytes (&stats), >, (N / 8 * 7 - 2) * capacity);

  held = 0;
  ask_until_trimmed (rig, &height);
  g_assert_cmpuint (rig_stats (rig).held_bytes, ==, 0);
  for (unsigned i = 0; i < 5; i++)
    ask_for_more (rig, height++);
  stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), >, (N - 2) * capacity);
  rig->device->funcs = real;
}

/* The cache learned that the pool holds more than it may have for that; since then that has gone. */
static size_t
forget_what_is_held (Rig *rig, unsigned n)
{
  size_t capacity = rig_make_idle (rig, &rig->spec, rig->stream[0], 1, NULL);

  rig_limit (rig, n * capacity);
  spy_on_trims (rig);
  held = 100 * capacity;
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, NULL));
  g_assert_cmpuint (rig_stats (rig).held_bytes, ==, 100 * capacity);
  held = 0;
  rig->device->funcs = real;
  return capacity;
}

/* With as much in use as what the pool is taken to hold leaves room for: one more waits for nobody. */
static void
check_makes_room (Rig *rig)
{
  enum { N = 16 };
  GpuImage *live[N / 8 * 7 - 1], *image;

  forget_what_is_held (rig, N);
  spy_on_trims (rig);
  for (unsigned i = 0; i < G_N_ELEMENTS (live); i++)
    live[i] = rig_acquire (rig, &rig->spec, rig->stream[0]);
  rig_close (rig, 1);
  image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  rig_fill (rig->stream[1], image, 1);
  gpu_image_unref (image);
  rig_stats (rig);
  rig->last[0] = rig_stats (rig);
  image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .misses = 1);
  g_assert_cmpuint (rig_stats (rig).held_bytes, ==, 0);
  rig->device->funcs = real;
  gpu_image_unref (image);
  for (unsigned i = 0; i < G_N_ELEMENTS (live); i++)
    gpu_image_unref (live[i]);
  rig_finish (rig);
}

/* Before memory is waited for, or evicted, for what the pool held, it is asked once more. */
static void
test_held_is_asked_again (Rig *rig, const void *data)
{
  check_makes_room (rig);
}

/* And what it can give back is not held, however little of the limit it is. */
static void
test_whole_pieces_make_room (Rig *rig, const void *data)
{
  whole = 2 * rig->spec.size;
  check_makes_room (rig);
  whole = 0;
}

/* Rule 4: what the pool held and holds no more is no pressure, under which a small picture may sit in a large one. */
static void
test_held_makes_no_large_fit (Rig *rig, const void *data)
{
  enum { N = 16 };
  GpuImageSpec large = rig_spec (rig->spec.format, rig->spec.width, N / 8 * 7 * rig->spec.height);
  GpuImage *image;

  forget_what_is_held (rig, N);
  gpu_image_unref (rig_acquire (rig, &large, rig->stream[0]));
  rig_sync (rig->stream[0]);
  rig->last[0] = rig_stats (rig);
  image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .misses = 1);
  g_assert_cmpuint (rig_stats (rig).held_bytes, ==, 0);
  gpu_image_unref (image);
  rig_finish (rig);
}

/* Rule 10: a lowered limit is met when what is counted is within it, whatever the pool held. */
static void
test_trims_whatever_was_held (Rig *rig, const void *data)
{
  enum { N = 16 };
  GpuImage *live[N - 1];
  size_t capacity = forget_what_is_held (rig, 4 * N);

  for (unsigned i = 0; i < G_N_ELEMENTS (live); i++)
    live[i] = rig_acquire (rig, &rig->spec, rig->stream[0]);
  spy_on_trims (rig);
  rig_limit (rig, N * capacity);
  g_assert_cmpuint (atomic_load (&trims), ==, 1);
  g_assert_cmpuint (rig_stats (rig).held_bytes, ==, 0);
  rig->device->funcs = real;
  for (unsigned i = 0; i < G_N_ELEMENTS (live); i++)
    gpu_image_unref (live[i]);
}

/* Rules 10 and 13: a refusal: before the driver is asked again, so that it has what was freed. */
static void
test_trims_after_refusal (Rig *rig, const void *data)
{
  rig_make_idle (rig, &rig->other, rig->stream[0], 3, NULL);
  spy_on_trims (rig);
  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 1);
  gpu_image_unref (rig_acquire (rig, &rig->spec, rig->stream[0]));
  g_assert_cmpuint (atomic_load (&trims), ==, 1);
  rig->device->funcs = real;
}

/* Rule 13: a refused request searches the cache again, and then any fit will do; also after pending work was waited
 * for. */
static void
test_refused_searches_again (Rig *rig, const void *data)
{
  GpuImageSpec large = rig_spec (GPU_FORMAT_RGBA, 64, 1024);

  for (unsigned i = 0; i < 2; i++) {
    GpuImage *image = rig_acquire (rig, &large, rig->stream[1]);
    void *address = gpu_image_data (image);
    rig_fill (rig->stream[1], image, 1); /* on the lazy executor pending until somebody waits */
    gpu_image_unref (image);
    if (i == 0)
      rig_sync (rig->stream[1]);
    rig->last[0] = rig_stats (rig);

    gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 1000);
    image = rig_acquire (rig, &rig->spec, rig->stream[0]);
    gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 0);
    g_assert_true (gpu_image_data (image) == address);
    GpuCacheStats stats = rig_stats (rig);
    g_assert_cmpuint (stats.fit_hits - rig->last[0].fit_hits, ==, 1);
    g_assert_cmpuint (stats.evictions, ==, rig->last[0].evictions);
    gpu_image_unref (image);
    rig_finish (rig);
    g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, NULL));
  }
}

typedef struct {
  Rig *rig;
  const GpuImageSpec *spec;
  GpuStream *stream;
} Refused;

static void *
acquire_refused (void *data)
{
  const Refused *refused = data;

  gpu_image_unref (rig_acquire (refused->rig, refused->spec, refused->stream));
  return NULL;
}

/* Waits until the device has been asked for memory @n times. */
static void
wait_for_requests (Rig *rig, uint64_t n)
{
  for (unsigned i = 0; gpu_device_calls (rig->device, GPU_CALL_ALLOC) < n; i++) {
    g_assert_cmpuint (i, <, 60000);
    g_usleep (1000);
  }
}

/* Rule 13: one thread of a device deals with a refusal; another that is refused meanwhile waits for it and does not ask
 * the driver on its own. */
static void
test_one_refusal_at_a_time (Rig *rig, const void *data)
{
  GpuImageSpec third = rig_spec (GPU_FORMAT_ARGB, 64, 64);
  Refused refused[2] = {{rig, &rig->spec, rig->stream[1]}, {rig, &third, rig->stream[2]}};
  pthread_t thread[2];

  GpuImage *image = rig_acquire (rig, &rig->other, rig->stream[0]);
  rig_close (rig, 0);
  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);
  uint64_t asked = gpu_device_calls (rig->device, GPU_CALL_ALLOC);
  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 1000);

  /* It asks, is refused, asks again, and then waits for what the gate holds. */
  pthread_create (&thread[0], NULL, acquire_refused, &refused[0]);
  wait_for_requests (rig, asked + 2);
  pthread_create (&thread[1], NULL, acquire_refused, &refused[1]);
  wait_for_requests (rig, asked + 3);
  g_usleep (20000);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_ALLOC), ==, asked + 3);
  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 0);
  rig_open (rig, 0);
  for (unsigned i = 0; i < 2; i++)
    pthread_join (thread[i], NULL);
  rig_finish (rig);
}

/* Rule 6: to free what is not stream-ordered the driver may wait, and that is counted; to free what is, it is not. */
static void
test_frees_that_wait (Rig *rig, const void *data)
{
  const struct {
    GpuMemoryKind kind;
    unsigned waits;
  } kinds[] = {{GPU_MEMORY_STREAM_ORDERED, 0}, {GPU_MEMORY_DEVICE, 1}, {GPU_MEMORY_MANAGED, 1}, {GPU_MEMORY_HOST, 1}};

  for (unsigned i = 0; i < G_N_ELEMENTS (kinds); i++) {
    rig->account = kinds[i].kind == GPU_MEMORY_HOST ? GPU_ACCOUNT_HOST : GPU_ACCOUNT_DEVICE;
    rig_limit (rig, 1 << 20);
    gpu_image_unref (rig_acquire_kind (rig, &rig->spec, kinds[i].kind, rig->stream[0], GPU_ACQUIRE_DEFAULT));
    rig_sync (rig->stream[0]);
    g_assert_cmpuint (rig_stats (rig).idle, ==, 1);
    uint64_t waits = rig_stats (rig).host_waits;
    rig_limit (rig, 0);
    g_assert_cmpuint (rig_stats (rig).idle, ==, 0);
    g_assert_cmpuint (rig_stats (rig).host_waits - waits, ==, kinds[i].waits);
  }
  rig->account = GPU_ACCOUNT_DEVICE;
}

/* Rule 22: an access that leaves a history on several streams records an event, so that who waits for it later does not
 * wait for what that stream does meanwhile; one on the only stream does not. */
static void
test_event_for_several_streams (Rig *rig, const void *data)
{
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);

  rig_close (rig, 0);
  rig_fill (rig->stream[0], image, 1);
  uint64_t records = gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD);
  rig_begin (image, rig->stream[0], GPU_ACCESS_READ);
  rig_end (image, rig->stream[0], GPU_ACCESS_READ);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD) - records, ==, 0);
  for (unsigned i = 1; i < RIG_STREAMS; i++) {
    rig_begin (image, rig->stream[i], GPU_ACCESS_READ);
    records = gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD);
    rig_end (image, rig->stream[i], GPU_ACCESS_READ);
    g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_RECORD) - records, ==, 1);
  }
  gpu_image_unref (image);
  rig_finish (rig);
}

/* Rule 13: as long as waiting frees something it goes on, however little each piece of pending work holds. */
static void
test_refused_waits_for_all (void)
{
  GpuCpuExecutor executor[] = {GPU_CPU_THREADS, GPU_CPU_LAZY};
  enum { N = 30 };

  for (unsigned e = 0; e < 2; e++) {
    Rig rig = {.account = GPU_ACCOUNT_DEVICE};
    rig.device = gpu_cpu_device_new ("cpu:8", executor[e], (N + 2) << 16);
    rig.stream[0] = rig_new_stream (&rig, false);
    GpuImageSpec spec = rig_spec (GPU_FORMAT_RGBA, 128, 128), large = rig_spec (GPU_FORMAT_BGRA, 128, 128 * N);
    rig_limit (&rig, (N + 2) << 16);
    GpuImage *image[N];
    GpuPoint point[N] = {0};
    for (unsigned i = 0; i < N; i++)
      image[i] = rig_acquire (&rig, &spec, rig.stream[0]);
    /* With an event after each, so that waiting for one says nothing of the next. */
    for (unsigned i = 0; i < N; i++) {
      rig_fill (rig.stream[0], image[i], 1);
      g_assert_true (gpu_point_mark (&point[i], rig.stream[0], NULL));
    }
    for (unsigned i = 0; i < N; i++)
      gpu_image_unref (image[i]);
    gpu_image_unref (rig_acquire (&rig, &large, rig.stream[0]));
    for (unsigned i = 0; i < N; i++)
      gpu_point_clear (&point[i]);
    gpu_stream_unref (rig.stream[0]);
    gpu_device_unref (rig.device);
  }
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/calls/rule-6/frees-that-wait", test_frees_that_wait);
  RIG_TEST ("/calls/rule-10/trims-after-lowered-limit", test_trims_after_lowered_limit);
  RIG_TEST ("/calls/rule-10/trims-after-clear", test_trims_after_clear);
  RIG_TEST ("/calls/rule-10/trims-to-limit", test_trims_to_limit);
  RIG_TEST ("/calls/rule-10/limit-is-for-the-pool-too", test_limit_is_for_the_pool_too);
  RIG_TEST ("/calls/rule-4/held-makes-no-large-fit", test_held_makes_no_large_fit);
  RIG_TEST ("/calls/rule-10/held-is-asked-again", test_held_is_asked_again);
  RIG_TEST ("/calls/rule-10/whole-pieces-make-room", test_whole_pieces_make_room);
  RIG_TEST ("/calls/rule-10/trims-whatever-was-held", test_trims_whatever_was_held);
  RIG_TEST ("/calls/rule-10/trims-after-refusal", test_trims_after_refusal);
  RIG_TEST ("/calls/rule-11/bounded-questions", test_bounded_questions);
  RIG_TEST ("/calls/rule-11/questions-take-turns", test_questions_take_turns);
  RIG_TEST ("/calls/rule-11/idle-threads", test_idle_threads);
  RIG_TEST ("/calls/rule-12/cleared-retires", test_cleared_retires);
  RIG_TEST ("/calls/rule-11/released-in-any-order", test_released_in_any_order);
  RIG_TEST ("/calls/rule-11/retires-among-newer", test_retires_among_newer);
  RIG_TEST ("/calls/rule-11/full-sweep", test_full_sweep);
  RIG_TEST ("/calls/rule-11/sweeps-past-readers", test_sweeps_past_readers);
  RIG_TEST ("/calls/rule-13/searches-again", test_refused_searches_again);
  g_test_add_func ("/calls/rule-13/waits-for-all", test_refused_waits_for_all);
  RIG_TEST ("/calls/rule-13/one-at-a-time", test_one_refusal_at_a_time);
  RIG_TEST ("/calls/rule-22/event-for-several-streams", test_event_for_several_streams);
  return g_test_run ();
}
