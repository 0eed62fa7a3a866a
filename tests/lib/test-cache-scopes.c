/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Who finds what: scopes of threads and streams, their end, and the queries; rules 14 to 16.
 */
#include "common.h"
#include "rig.h"

#include <gpucache/cache-priv.h>

#include <string.h>

/* What a thread takes on a stream and gives back, and where it lay. */
typedef struct {
  Rig *rig;
  GpuStream *stream;
  const GpuImageSpec *spec;
  void *address;
  GpuImage *kept; /* what it did not give back */
  bool keep;
  bool settle;    /* whether it waits until what it gave back is idle */
  RigCalls calls; /* at the thread's end */
} Visit;

static void
visit (void *data)
{
  Visit *v = data;
  GpuImage *image = rig_acquire (v->rig, v->spec ? v->spec : &v->rig->spec, v->stream);

  v->address = gpu_image_data (image);
  rig_fill (v->stream ? v->stream : v->rig->stream[3], image, 0x5a);
  if (v->keep)
    v->kept = image;
  else
    gpu_image_unref (image);
  if (v->settle)
    rig_finish (v->rig);
  v->calls = rig_calls (v->rig);
}

/* Rule 14: each thread has a scope; nobody looks into another's that lives, under pressure neither. */
static void
test_threads (Rig *rig, const void *data)
{
  Visit first = {.rig = rig, .stream = rig->stream[0]};
  Visit second = {.rig = rig, .stream = rig->stream[0]};
  RigThread *thread[2] = {rig_thread_new (), rig_thread_new ()};

  rig_thread_do (thread[0], visit, &first);
  rig_finish (rig);
  rig_thread_do (thread[1], visit, &second);
  rig_finish (rig);
  RIG_EXPECT (rig, .misses = 2);
  g_assert_true (first.address != second.address);

  /* Pending now, on the very stream that asks, and no room for more. */
  rig_close (rig, 0);
  rig_thread_do (thread[0], visit, &first);
  rig_thread_do (thread[1], visit, &second);
  g_assert_true (first.address != second.address);
  RIG_EXPECT (rig, .exact = 2);
  GpuCacheStats stats = rig_stats (rig);
  rig_limit (rig, rig_bytes (&stats));
  visit (&(Visit){.rig = rig, .stream = rig->stream[0]});
  RIG_EXPECT (rig, .misses = 1);
  rig_open (rig, 0);
  rig_finish (rig);
  rig_thread_end (thread[0]);
  rig_thread_end (thread[1]);
}

/* Rule 14: a stream's own scope is found by whichever thread runs the chain, and isolated from other streams and from
 * the threads' scopes. */
static void
test_streams (Rig *rig, const void *data)
{
  GpuStream *scoped[2] = {rig_new_stream (rig, true), rig_new_stream (rig, true)};
  Visit first = {.rig = rig, .stream = scoped[0]};
  Visit again = {.rig = rig, .stream = scoped[0]};
  Visit other = {.rig = rig, .stream = scoped[1]};
  Visit plain = {.rig = rig, .stream = rig->stream[0]};
  RigThread *thread = rig_thread_new ();

  visit (&first);
  rig_sync (scoped[0]);
  rig_thread_do (thread, visit, &other);
  rig_thread_do (thread, visit, &plain);
  RIG_EXPECT (rig, .misses = 3);
  rig_thread_do (thread, visit, &again);
  RIG_EXPECT (rig, .exact = 1);
  g_assert_true (again.address == first.address);
  visit (&again);
  g_assert_true (again.address == first.address);
  rig_sync (scoped[0]);
  rig_sync (scoped[1]);
  rig_finish (rig);
  rig_thread_end (thread);
  gpu_stream_unref (scoped[0]);
  gpu_stream_unref (scoped[1]);
}

/* Rule 14: an acquire without a stream uses the thread's scope. */
static void
test_no_stream (Rig *rig, const void *data)
{
  Visit mine = {.rig = rig};
  Visit theirs = {.rig = rig, .stream = rig->stream[1]};
  RigThread *thread = rig_thread_new ();

  visit (&mine);
  rig_finish (rig);
  rig_thread_do (thread, visit, &theirs);
  RIG_EXPECT (rig, .misses = 2);
  g_assert_cmpuint (rig_local_stats (rig).idle, ==, 1);
  void *address = mine.address;
  visit (&mine);
  RIG_EXPECT (rig, .exact = 1);
  g_assert_true (mine.address == address);
  rig_finish (rig);
  rig_thread_end (thread);
}

/* Rule 15: what a thread leaves idle stays counted, and the next thread finds it. */
static void
test_thread_leaves_idle (Rig *rig, const void *data)
{
  Visit first = {.rig = rig, .stream = rig->stream[0], .settle = true};
  Visit second = {.rig = rig, .stream = rig->stream[1], .settle = true};

  rig_in_thread (visit, &first);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.idle, ==, 1);
  g_assert_cmpuint (rig_local_stats (rig).idle, ==, 0);
  rig_in_thread (visit, &second);
  g_assert_true (second.address == first.address);
  RIG_EXPECT (rig, .misses = 1, .exact = 1);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.idle, ==, 1);
}

/* Rule 15: the destructor calls neither driver nor anything else; pending entries keep their charge, and can be reused
 * from the shared index by a stream on which they are ordered; by another only under pressure. */
static void
test_thread_leaves_pending (Rig *rig, const void *data)
{
  Visit first = {.rig = rig, .stream = rig->stream[0]};

  rig_close (rig, 0);
  rig_in_thread (visit, &first);
  rig_expect_no_calls (rig, &first.calls);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.pending, ==, 1);
  g_assert_cmpuint (stats.pending_bytes, >=, rig->spec.size);
  RIG_EXPECT (rig, .misses = 1);

  GpuImage *elsewhere = rig_acquire (rig, &rig->spec, rig->stream[1]);
  RIG_EXPECT (rig, .misses = 1);
  g_assert_true (gpu_image_data (elsewhere) != first.address);
  GpuImage *same = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .pending = 1);
  g_assert_true (gpu_image_data (same) == first.address);
  gpu_image_unref (elsewhere);
  gpu_image_unref (same);
  rig_finish (rig);
}

static void
test_shared_under_pressure (Rig *rig, const void *data)
{
  Visit first = {.rig = rig, .stream = rig->stream[0]};

  rig_close (rig, 0);
  rig_in_thread (visit, &first);
  GpuCacheStats stats = rig_stats (rig);
  rig_limit (rig, rig_bytes (&stats));
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  RIG_EXPECT (rig, .misses = 1, .waiting = 1);
  g_assert_true (gpu_image_data (image) == first.address);
  rig_fill (rig->stream[1], image, 0x22);
  rig_open (rig, 0);
  rig_sync (rig->stream[1]);
  rig_finish (rig);
  rig_expect_bytes (rig, image, 0x22);
  gpu_image_unref (image);
}

/* Rule 15: pending entries of an ended scope are freed when they complete, unless they were reused before. */
static void
test_shared_pending_goes (Rig *rig, const void *data)
{
  Visit first = {.rig = rig, .stream = rig->stream[0]};

  rig_close (rig, 0);
  rig_in_thread (visit, &first);
  g_assert_cmpuint (rig_stats (rig).pending, ==, 1);
  rig_finish (rig);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.pending + stats.idle, ==, 0);
  g_assert_cmpuint (rig_bytes (&stats), ==, 0);
}

/* Rule 15: idle ones stay while under the limit. */
static void
test_shared_limit (Rig *rig, const void *data)
{
  Visit first = {.rig = rig, .stream = rig->stream[0], .settle = true};

  rig_in_thread (visit, &first);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 1);
  rig_limit (rig, rig->spec.size - 1);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, 0);
}

/* Rule 15: memory that is live when its scope ends goes to the shared index when it is let go of. */
static void
test_thread_leaves_live (Rig *rig, const void *data)
{
  Visit first = {.rig = rig, .stream = rig->stream[0], .keep = true};
  Visit second = {.rig = rig, .stream = rig->stream[1]};

  rig_in_thread (visit, &first);
  rig_finish (rig);
  g_assert_cmpuint (rig_stats (rig).live, ==, 1);
  rig_expect_bytes (rig, first.kept, 0x5a);
  gpu_image_unref (first.kept);
  rig_in_thread (visit, &second);
  g_assert_true (second.address == first.address);
  RIG_EXPECT (rig, .misses = 1, .exact = 1);
  rig_finish (rig);
}

static void
keep_and_clear (void *data)
{
  Visit *v = data;
  GError *error = NULL;

  visit (v);
  g_assert_true (gpu_cache_clear (v->rig->device, GPU_CACHE_LOCAL, &error));
  g_assert_no_error (error);
}

/* Rules 12 and 15: what was live when its scope was cleared is freed, also if the scope has ended since. */
static void
test_thread_leaves_cleared (Rig *rig, const void *data)
{
  Visit cleared = {.rig = rig, .stream = rig->stream[0], .keep = true};

  rig_in_thread (keep_and_clear, &cleared);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.detached_bytes, ==, gpu_image_capacity (cleared.kept));
  g_assert_cmpuint (rig_bytes (&stats), ==, 0);
  gpu_image_unref (cleared.kept);
  rig_sync (rig->stream[0]);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.detached_bytes, ==, 0);
  g_assert_cmpuint (stats.live + stats.pending + stats.idle, ==, 0);
}

/* Rule 15: the end of a stream is the end of its scope; its idle and live memory serves the next stream. */
static void
test_stream_ends (Rig *rig, const void *data)
{
  GpuStream *scoped = rig_new_stream (rig, true);
  Visit idle = {.rig = rig, .stream = scoped};
  Visit live = {.rig = rig, .stream = scoped, .keep = true};
  Visit next[2];

  visit (&live);
  visit (&idle);
  rig_sync (scoped);
  gpu_stream_unref (scoped);
  scoped = rig_new_stream (rig, true);
  next[0] = (Visit){.rig = rig, .stream = scoped, .keep = true};
  visit (&next[0]);
  g_assert_true (next[0].address == idle.address);
  gpu_image_unref (live.kept);
  next[1] = (Visit){.rig = rig, .stream = scoped, .keep = true};
  visit (&next[1]);
  g_assert_true (next[1].address == live.address);
  RIG_EXPECT (rig, .misses = 2, .exact = 2);
  gpu_image_unref (next[0].kept);
  gpu_image_unref (next[1].kept);
  rig_sync (scoped);
  gpu_stream_unref (scoped);
}

/* Rules 15 and 23: a stream may end with its work pending; the memory is safe and comes back. */
static void
test_stream_ends_pending (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuStream *scoped = rig_new_stream (rig, true);
  Visit first = {.rig = rig, .stream = scoped};
  Visit second = {.rig = rig, .stream = rig->stream[1]};
  GpuGate *gate = gpu_gate_new (rig->device, &error);

  g_assert_no_error (error);
  g_assert_true (gpu_gate_hold (gate, scoped, &error));
  visit (&first);
  rig_wait_stream (rig->stream[1], scoped);
  gpu_stream_unref (scoped);
  g_assert_cmpuint (rig_stats (rig).pending, ==, 1);
  visit (&second); /* ordered on it */
  g_assert_true (second.address == first.address);
  RIG_EXPECT (rig, .misses = 1, .pending = 1);
  gpu_gate_open (gate);
  rig_finish (rig);
  gpu_gate_free (gate);
  g_assert_cmpuint (rig_stats (rig).pending, ==, 0);
}

/* Rule 7: the own scope comes before the shared index, even with a mere fit. */
static void
test_own_before_shared (Rig *rig, const void *data)
{
  Visit exact = {.rig = rig, .stream = rig->stream[0], .settle = true};
  GpuImageSpec wide = rig_spec (GPU_FORMAT_RGBA, 128, 32);
  void *fit;

  rig_make_idle (rig, &wide, rig->stream[0], 1, &fit);
  rig_in_thread (visit, &exact);
  RIG_EXPECT (rig, .misses = 1);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .fit = 1);
  g_assert_true (gpu_image_data (image) == fit);
  GpuImage *second = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .exact = 1);
  g_assert_true (gpu_image_data (second) == exact.address);
  gpu_image_unref (image);
  gpu_image_unref (second);
}

static pthread_key_t late_key;

typedef struct {
  Rig *rig;
  GpuImage *image;
  void *address;
  unsigned rounds;
  unsigned scopes, scopes_after;
} Late;

/* Destructors run in rounds while there are values; in the second, the cache's own has run. */
static void
release_late (void *data)
{
  Late *late = data;

  if (late->rounds++ < 2) {
    pthread_setspecific (late_key, late);
    return;
  }
  gpu_image_unref (late->image);

  /* The query moves what the thread left; what is done after that makes no scope. */
  rig_stats (late->rig);
  late->scopes = late->rig->device->cache->scopes->len;
  gpu_image_unref (rig_acquire (late->rig, &late->rig->other, late->rig->stream[2]));
  late->scopes_after = late->rig->device->cache->scopes->len;
}

static void
acquire_for_late (void *data)
{
  Late *late = data;

  late->image = rig_acquire (late->rig, &late->rig->spec, late->rig->stream[0]);
  late->address = gpu_image_data (late->image);
  rig_sync (late->rig->stream[0]);
  pthread_setspecific (late_key, late);
}

/* Rule 15: a release on a thread whose scope has ended uses the shared index, and no new scope is made there. */
static void
test_late_release (Rig *rig, const void *data)
{
  Late late = {.rig = rig};

  g_assert_cmpint (pthread_key_create (&late_key, release_late), ==, 0);
  rig_in_thread (acquire_for_late, &late);
  pthread_key_delete (late_key);
  g_assert_cmpuint (late.rounds, ==, 3);
  g_assert_cmpuint (late.scopes_after, ==, late.scopes);
  g_assert_cmpuint (rig_stats (rig).live, ==, 0);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  g_assert_true (gpu_image_data (image) == late.address);
  RIG_EXPECT (rig, .misses = 2, .exact = 1);
  gpu_image_unref (image);
}

/* Rules 14 and 15: 50 threads, and 50 pipelines' streams, one after the other need no more memory than one. */
static void
test_fifty (Rig *rig, const void *data)
{
  for (unsigned i = 0; i < 50; i++) {
    Visit thread = {.rig = rig, .stream = rig->stream[i % 3], .settle = true};
    rig_in_thread (visit, &thread);
  }
  RIG_EXPECT (rig, .misses = 1, .exact = 49);
  for (unsigned i = 0; i < 50; i++) {
    GpuStream *scoped = rig_new_stream (rig, true);
    Visit pipeline = {.rig = rig, .stream = scoped};
    rig_in_thread (visit, &pipeline);
    rig_in_thread (visit, &pipeline);
    rig_sync (scoped);
    gpu_stream_unref (scoped);
  }
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.misses, ==, 1);
  g_assert_cmpuint (stats.idle, ==, 1);
}

/* Rule 15: nothing of a device that has gone is touched when a thread that used it ends. */
static void
use_and_drop_device (void *data)
{
  Rig rig;

  rig_setup (&rig, NULL);
  gpu_image_unref (rig_acquire (&rig, &rig.spec, rig.stream[0]));
  gpu_image_unref (rig_acquire (&rig, &rig.spec, NULL));
  rig_finish (&rig);
  rig_teardown (&rig, NULL);
}

static void
test_device_ends_first (void)
{
  rig_in_thread (use_and_drop_device, NULL);
}

/* Images and streams hold their device, so that it may be let go of first. */
static void
test_device_is_held (void)
{
  Rig rig = {.account = GPU_ACCOUNT_DEVICE};

  rig.device = test_device_new ();
  rig.stream[0] = rig_new_stream (&rig, true);
  rig.spec = rig_spec (GPU_FORMAT_RGBA, 64, 64);
  GpuImage *image = rig_acquire (&rig, &rig.spec, rig.stream[0]);
  rig_fill (rig.stream[0], image, 1);
  gpu_device_unref (rig.device);
  gpu_stream_unref (rig.stream[0]);
  g_assert_cmpuint (gpu_image_capacity (image), >=, rig.spec.size);
  g_assert_true (gpu_image_wait (image, GPU_ACCESS_READ, NULL));
  gpu_image_unref (image);
}

/* Rule 16: hits are those of who asked, also where the shared index had what was asked for. */
static void
test_local_hits (Rig *rig, const void *data)
{
  GpuImageSpec half = rig_spec (GPU_FORMAT_RGBA, 64, 32);
  Visit left = {.rig = rig, .stream = rig->stream[1]};

  for (unsigned i = 0; i < 2; i++) {
    rig_in_thread (visit, &left);
    rig_sync (rig->stream[1]);
    gpu_image_unref (rig_acquire (rig, i == 0 ? &rig->spec : &half, rig->stream[1]));
    rig_sync (rig->stream[1]);
    gpu_cache_clear (rig->device, GPU_CACHE_ALL, NULL);
  }
  rig_limit (rig, rig->spec.size);
  rig_close (rig, 1);
  rig_in_thread (visit, &left);
  gpu_image_unref (rig_acquire (rig, &rig->spec, rig->stream[2]));
  rig_finish (rig);
  GpuCacheStats all = rig_stats (rig), local = rig_local_stats (rig);
  g_assert_cmpuint (local.exact_hits, ==, 1);
  g_assert_cmpuint (local.fit_hits, ==, 1);
  g_assert_cmpuint (local.waiting_hits, ==, 1);
  g_assert_cmpuint (all.exact_hits + all.fit_hits + all.pending_hits + all.waiting_hits, ==, 3);
}

/* Rule 16: entries and bytes of a scope or of all; limit, peak and counts are the device's. */
static void
test_queries (Rig *rig, const void *data)
{
  Visit theirs = {.rig = rig, .stream = rig->stream[1]};
  RigThread *thread = rig_thread_new ();
  size_t capacity = rig_make_idle (rig, &rig->spec, rig->stream[0], 2, NULL);

  rig_thread_do (thread, visit, &theirs);
  rig_finish (rig);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  rig_close (rig, 0);
  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);
  image = rig_acquire (rig, &rig->other, rig->stream[2]);

  GpuCacheStats all = rig_stats (rig);
  GpuCacheStats local = rig_local_stats (rig);
  g_assert_cmpuint (all.live, ==, 1);
  g_assert_cmpuint (all.pending, ==, 1);
  g_assert_cmpuint (all.idle, ==, 2);
  g_assert_cmpuint (all.live_bytes, ==, capacity);
  g_assert_cmpuint (all.pending_bytes, ==, capacity);
  g_assert_cmpuint (all.idle_bytes, ==, 2 * capacity);
  g_assert_cmpuint (all.misses, ==, 4);
  g_assert_cmpuint (all.exact_hits, ==, 1);
  g_assert_cmpuint (local.live, ==, 1);
  g_assert_cmpuint (local.pending, ==, 1);
  g_assert_cmpuint (local.idle, ==, 1);
  g_assert_cmpuint (local.live_bytes, ==, capacity);
  g_assert_cmpuint (local.pending_bytes, ==, capacity);
  g_assert_cmpuint (local.idle_bytes, ==, capacity);
  g_assert_cmpuint (local.exact_hits, ==, 1);
  g_assert_cmpuint (local.misses, ==, all.misses);
  g_assert_cmpuint (local.limit_bytes, ==, all.limit_bytes);
  g_assert_cmpuint (local.peak_bytes, ==, all.peak_bytes);

  g_autofree char *table = gpu_cache_dump (rig->device);
  g_assert_nonnull (table);
  g_assert_nonnull (strstr (table, gpu_device_name (rig->device)));
  g_assert_nonnull (strchr (table, '\n'));
  gpu_image_unref (image);
  rig_finish (rig);
  rig_thread_end (thread);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/cache/rule-14/threads", test_threads);
  RIG_TEST ("/cache/rule-14/streams", test_streams);
  RIG_TEST ("/cache/rule-14/no-stream", test_no_stream);
  RIG_TEST ("/cache/rule-7/own-before-shared", test_own_before_shared);
  RIG_TEST ("/cache/rule-15/thread-leaves-idle", test_thread_leaves_idle);
  RIG_TEST ("/cache/rule-15/thread-leaves-pending", test_thread_leaves_pending);
  RIG_TEST ("/cache/rule-15/shared-under-pressure", test_shared_under_pressure);
  RIG_TEST ("/cache/rule-15/shared-pending-goes", test_shared_pending_goes);
  RIG_TEST ("/cache/rule-15/shared-limit", test_shared_limit);
  RIG_TEST ("/cache/rule-15/thread-leaves-live", test_thread_leaves_live);
  RIG_TEST ("/cache/rule-12/thread-leaves-cleared", test_thread_leaves_cleared);
  RIG_TEST ("/cache/rule-15/stream-ends", test_stream_ends);
  RIG_TEST ("/cache/rule-15/stream-ends-pending", test_stream_ends_pending);
  RIG_TEST ("/cache/rule-15/late-release", test_late_release);
  RIG_TEST ("/cache/rule-15/fifty", test_fifty);
  g_test_add_func ("/cache/rule-15/device-ends-first", test_device_ends_first);
  g_test_add_func ("/cache/rule-15/device-is-held", test_device_is_held);
  RIG_TEST ("/cache/rule-16/local-hits", test_local_hits);
  RIG_TEST ("/cache/rule-16/queries", test_queries);
  return g_test_run ();
}
