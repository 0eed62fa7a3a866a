/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuBufferPool: buffers from the cache, in order on streams, and back there (rules 3, 5, 14, 15; G1, G2, G10).
 */
#include "common.h"

#include <time.h>

static GpuDevice *device;
static GpuStream *stream;

static void
setup (void)
{
  device = test_device_new ();
  stream = test_stream_new (device);
}

static void
teardown (void)
{
  gpu_cache_check (device);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).live, 0);
  g_clear_pointer (&stream, gpu_stream_unref);
  g_clear_pointer (&device, gpu_device_unref);
}

static guint64
misses (void)
{
  return test_stats (device, GPU_ACCOUNT_DEVICE).misses;
}

static void
configure (GstBufferPool *pool, guint width, guint height, guint min_buffers, guint max_buffers)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);
  g_autoptr (GstCaps) caps = test_caps (GST_VIDEO_FORMAT_RGBA, width, height);

  gst_buffer_pool_config_set_params (config, caps, 0, min_buffers, max_buffers);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
}

static GstBufferPool *
make_pool (guint width, guint height, guint min_buffers, guint max_buffers)
{
  GstBufferPool *pool = gst_gpu_buffer_pool_new (device);

  configure (pool, width, height, min_buffers, max_buffers);
  return pool;
}

static void
free_pool (GstBufferPool *pool)
{
  fail_unless (gst_buffer_pool_set_active (pool, FALSE));
  gst_object_unref (pool);
}

static GstBuffer *
acquire (GstBufferPool *pool)
{
  GstBuffer *buffer = NULL;

  fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
  return buffer;
}

static GstBuffer *
acquire_on (GstBufferPool *pool, GpuStream *on)
{
  GstBuffer *buffer = NULL;

  fail_unless_equals_int (gst_gpu_buffer_pool_acquire_on (GST_GPU_BUFFER_POOL (pool), on, &buffer, NULL), GST_FLOW_OK);
  return buffer;
}

static GpuImage *
image_of (GstBuffer *buffer)
{
  fail_unless_equals_int (gst_buffer_n_memory (buffer), 1);
  return gst_gpu_memory_get_image (gst_buffer_peek_memory (buffer, 0));
}

static void
fill (GstBuffer *buffer, GpuStream *on, guint8 value)
{
  g_autoptr (GError) error = NULL;

  fail_unless (gpu_image_fill (on, image_of (buffer), value, &error));
  g_assert_no_error (error);
}

static void
complete (GpuStream *on)
{
  g_autoptr (GError) error = NULL;

  fail_unless (gpu_stream_synchronize (on, &error));
  g_assert_no_error (error);
}

/* G1, G13: a GstVideoMeta says how the one memory is laid out, in every format. */
GST_START_TEST (test_frames)
{
  static const guint sizes[][2] = {{1, 1}, {1, 5}, {5, 1}, {641, 481}};
  static const GpuMemoryKind kinds[] = {GPU_MEMORY_STREAM_ORDERED, GPU_MEMORY_HOST};
  GstBufferPool *pool = gst_gpu_buffer_pool_new (device);

  fail_unless (gst_gpu_buffer_pool_get_device (GST_GPU_BUFFER_POOL (pool)) == device);
  for (guint i = 0; test_video_format (i) != GST_VIDEO_FORMAT_UNKNOWN; i++)
    for (guint s = 0; s < G_N_ELEMENTS (sizes); s++)
      for (guint k = 0; k < G_N_ELEMENTS (kinds); k++) {
        GstStructure *config = gst_buffer_pool_get_config (pool);
        g_autoptr (GstCaps) caps = test_caps (test_video_format (i), sizes[s][0], sizes[s][1]);
        GstVideoInfo info;
        const GstVideoInfo *layout;
        GstBuffer *buffer;
        GstVideoMeta *meta;
        guint size;

        test_video_info (&info, test_video_format (i), sizes[s][0], sizes[s][1]);
        gst_buffer_pool_config_set_params (config, caps, 0, 0, 0);
        gst_gpu_buffer_pool_config_set_memory_kind (config, kinds[k]);
        fail_unless (gst_buffer_pool_set_config (pool, config));
        fail_unless (gst_buffer_pool_set_active (pool, TRUE));
        buffer = acquire (pool);
        fail_unless_equals_int (gpu_image_kind (image_of (buffer)), kinds[k]);
        fail_if (GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_TAG_MEMORY));

        config = gst_buffer_pool_get_config (pool);
        gst_buffer_pool_config_get_params (config, NULL, &size, NULL, NULL);
        fail_unless_equals_uint64 (gst_buffer_get_size (buffer), size);
        gst_structure_free (config);

        meta = gst_buffer_get_video_meta (buffer);
        layout = gst_gpu_memory_get_video_info (gst_buffer_peek_memory (buffer, 0));
        fail_unless_equals_uint64 (meta->n_planes, GST_VIDEO_INFO_N_PLANES (&info));
        for (guint p = 0; p < meta->n_planes; p++) {
          fail_unless_equals_int (meta->stride[p], GST_VIDEO_INFO_PLANE_STRIDE (layout, p));
          fail_unless_equals_uint64 (meta->offset[p], GST_VIDEO_INFO_PLANE_OFFSET (layout, p));
          /* G12: pinned memory has no pitch of its own. */
          if (kinds[k] == GPU_MEMORY_HOST) {
            fail_unless_equals_int (meta->stride[p], GST_VIDEO_INFO_PLANE_STRIDE (&info, p));
          } else {
            fail_unless_equals_int (meta->stride[p] % GPU_DEFAULT_ALIGNMENT, 0);
          }
        }
        test_frame_write (buffer, &info, i);
        test_frame_expect (buffer, &info, i);
        gst_buffer_unref (buffer);
        fail_unless (gst_buffer_pool_set_active (pool, FALSE));
      }
  gst_object_unref (pool);
}
GST_END_TEST

/* G1: between acquires the pool has no memory: another pool, of another size too, can have it. */
GST_START_TEST (test_does_not_hoard)
{
  GstBufferPool *one = make_pool (64, 64, 0, 0), *same = make_pool (64, 64, 0, 0), *smaller = make_pool (60, 64, 0, 0);
  GstBuffer *buffer = acquire_on (one, stream);
  guint64 before = misses (), fits = test_stats (device, GPU_ACCOUNT_DEVICE).fit_hits;

  for (guint i = 0; i < 3; i++) {
    gst_buffer_unref (buffer);
    fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).live, 0);
    buffer = acquire_on (same, stream);
    gst_buffer_unref (buffer);
    buffer = acquire_on (one, stream);
  }
  fail_unless_equals_uint64 (misses (), before);
  gst_buffer_unref (buffer);

  complete (stream);
  buffer = acquire_on (smaller, stream);
  fail_unless_equals_uint64 (misses (), before);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).fit_hits, fits + 1);
  gst_buffer_unref (buffer);
  free_pool (one);
  free_pool (same);
  free_pool (smaller);
}
GST_END_TEST

/* Rule 15: what a pool leaves when it stops is found by the next one, once it is complete. */
GST_START_TEST (test_stop_leaves_memory)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 0), *next = make_pool (64, 64, 0, 0);
  GstBuffer *buffer = acquire (pool);
  GpuStream *own = gst_gpu_memory_get_stream (gst_buffer_peek_memory (buffer, 0));
  guint64 before = misses ();

  complete (own);
  gst_buffer_unref (buffer);
  fail_unless (gst_buffer_pool_set_active (pool, FALSE));

  buffer = acquire (next);
  fail_unless_equals_uint64 (misses (), before);
  gst_buffer_unref (buffer);
  free_pool (pool);
  free_pool (next);
}
GST_END_TEST

/* G2, rule 5: memory whose work is pending serves the next frame on its stream, and no other stream. */
GST_START_TEST (test_pending_reuse)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 0);
  GpuStream *other = test_stream_new (device);
  GstBuffer *buffer = acquire_on (pool, stream), *elsewhere;
  gpointer data = gpu_image_data (image_of (buffer));
  GpuCacheStats before = test_stats (device, GPU_ACCOUNT_DEVICE), after;
  TestDelay delay;

  test_delay_begin (&delay, stream);
  for (guint i = 0; i < 10; i++) {
    fail_unless (gst_gpu_memory_get_stream (gst_buffer_peek_memory (buffer, 0)) == stream);
    fill (buffer, stream, (guint8)i);
    gst_buffer_unref (buffer);
    buffer = acquire_on (pool, stream);
    fail_unless (gpu_image_data (image_of (buffer)) == data);
  }
  after = test_stats (device, GPU_ACCOUNT_DEVICE);
  fail_unless_equals_uint64 (after.misses, before.misses);
  fail_unless_equals_uint64 (after.host_waits, before.host_waits);
  fail_unless_equals_uint64 (after.pending_hits - before.pending_hits, 10);

  gst_buffer_unref (buffer);
  elsewhere = acquire_on (pool, other);
  fail_unless (gpu_image_data (image_of (elsewhere)) != data);
  fail_unless_equals_uint64 (misses (), before.misses + 1);
  gst_buffer_unref (elsewhere);
  elsewhere = acquire (pool);
  fail_unless (gpu_image_data (image_of (elsewhere)) != data);
  gst_buffer_unref (elsewhere);

  test_delay_open_later (&delay);
  test_delay_end (&delay);
  gpu_stream_unref (other);
  free_pool (pool);
}
GST_END_TEST

/* G1, rule 6: in steady state no frame asks the device for memory and the host waits for nothing. */
GST_START_TEST (test_steady_state)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 0);
  GstBuffer *frames[3] = {NULL};
  GpuCacheStats before = {0}, after;
  guint64 allocs = 0, frees = 0;

  for (guint i = 0; i < 200; i++) {
    GstBuffer **frame = &frames[i % G_N_ELEMENTS (frames)];

    if (i == 10) {
      before = test_stats (device, GPU_ACCOUNT_DEVICE);
      allocs = gpu_device_calls (device, GPU_CALL_ALLOC);
      frees = gpu_device_calls (device, GPU_CALL_FREE);
    }
    gst_clear_buffer (frame);
    *frame = acquire_on (pool, stream);
    fill (*frame, stream, (guint8)i);
  }
  after = test_stats (device, GPU_ACCOUNT_DEVICE);
  fail_unless_equals_uint64 (after.misses, before.misses);
  fail_unless_equals_uint64 (after.host_waits, before.host_waits);
  fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_ALLOC), allocs);
  fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_FREE), frees);
  for (guint i = 0; i < G_N_ELEMENTS (frames); i++)
    gst_clear_buffer (&frames[i]);
  free_pool (pool);
}
GST_END_TEST

/* G1: starting a pool sees to it that the cache has the minimum at hand, for whoever comes. */
GST_START_TEST (test_min_buffers)
{
  guint64 before = misses ();
  GstBufferPool *pool = make_pool (64, 64, 3, 5);
  GstBuffer *frames[3];

  fail_unless_equals_uint64 (misses (), before + 3);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).idle, 3);
  for (guint i = 0; i < 3; i++)
    frames[i] = acquire_on (pool, stream);
  fail_unless_equals_uint64 (misses (), before + 3);
  for (guint i = 0; i < 3; i++)
    gst_buffer_unref (frames[i]);
  free_pool (pool);
}
GST_END_TEST

GST_START_TEST (test_min_buffers_fails)
{
  GstBufferPool *pool = gst_gpu_buffer_pool_new (device);
  GstStructure *config = gst_buffer_pool_get_config (pool);
  g_autoptr (GstCaps) caps = test_caps (GST_VIDEO_FORMAT_RGBA, 64, 64);

  gst_buffer_pool_config_set_params (config, caps, 0, 3, 0);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  gpu_device_fail (device, GPU_CALL_ALLOC, 2, 1000);
  fail_if (gst_buffer_pool_set_active (pool, TRUE));
  gpu_device_fail (device, GPU_CALL_ALLOC, 0, 0);
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  free_pool (pool);
}
GST_END_TEST

typedef struct {
  GstBufferPool *pool;
  GstBuffer *buffer;
  GstFlowReturn flow;
  guint64 cpu_ns;
  gint done;
} Waiter;

static gpointer
wait_for_buffer (gpointer data)
{
  Waiter *waiter = data;
  struct timespec used;

  waiter->flow = gst_buffer_pool_acquire_buffer (waiter->pool, &waiter->buffer, NULL);
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &used);
  waiter->cpu_ns = (guint64)used.tv_sec * GST_SECOND + (guint64)used.tv_nsec;
  g_atomic_int_set (&waiter->done, TRUE);
  return NULL;
}

/* G1: the maximum blocks, without spinning, and a release wakes; also after buffers came back with other memory, which
 * GstBufferPool would discard. */
GST_START_TEST (test_max_buffers)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 2);
  GstBufferPoolAcquireParams dont_wait = {.flags = GST_BUFFER_POOL_ACQUIRE_FLAG_DONTWAIT};

  for (guint round = 0; round < 4; round++) {
    GstBuffer *one = acquire (pool), *two = acquire (pool), *three = NULL;
    Waiter waiter = {.pool = pool};
    GThread *thread;

    fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &three, &dont_wait), GST_FLOW_EOS);
    fail_unless (three == NULL);

    thread = g_thread_new ("waiter", wait_for_buffer, &waiter);
    g_usleep (200000);
    fail_if (g_atomic_int_get (&waiter.done));
    if (round & 1)
      gst_buffer_append_memory (one, gst_allocator_alloc (NULL, 10, NULL));
    if (round & 2)
      gst_buffer_remove_all_memory (one);
    gst_buffer_unref (one);
    g_thread_join (thread);
    fail_unless_equals_int (waiter.flow, GST_FLOW_OK);
    fail_unless_equals_int (gst_buffer_n_memory (waiter.buffer), 1);
    fail_unless (waiter.cpu_ns < 100 * GST_MSECOND);
    gst_buffer_unref (waiter.buffer);
    gst_buffer_unref (two);
  }
  free_pool (pool);
}
GST_END_TEST

GST_START_TEST (test_flushing)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 1);
  GstBuffer *buffer = acquire (pool), *other = NULL;
  Waiter waiter = {.pool = pool};
  GThread *thread = g_thread_new ("waiter", wait_for_buffer, &waiter);

  g_usleep (20000);
  gst_buffer_pool_set_flushing (pool, TRUE);
  g_thread_join (thread);
  fail_unless_equals_int (waiter.flow, GST_FLOW_FLUSHING);
  fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &other, NULL), GST_FLOW_FLUSHING);
  gst_buffer_pool_set_flushing (pool, FALSE);
  gst_buffer_unref (buffer);
  buffer = acquire (pool);
  gst_buffer_unref (buffer);
  free_pool (pool);
}
GST_END_TEST

/* G1: an acquire that finds no memory fails and takes nothing from the maximum. */
GST_START_TEST (test_out_of_memory)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 2);
  GstBuffer *buffer = NULL, *other;

  for (guint i = 0; i < 5; i++) {
    g_autoptr (GError) error = NULL;

    gpu_device_fail (device, GPU_CALL_ALLOC, 0, 1000);
    fail_unless_equals_int (gst_gpu_buffer_pool_acquire_on (GST_GPU_BUFFER_POOL (pool), stream, &buffer, &error),
                            GST_FLOW_ERROR);
    fail_unless (g_error_matches (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY));
    fail_unless (buffer == NULL);
  }
  gpu_device_fail (device, GPU_CALL_ALLOC, 0, 0);
  buffer = acquire_on (pool, stream);
  other = acquire_on (pool, stream);
  gst_buffer_unref (buffer);
  gst_buffer_unref (other);
  free_pool (pool);
}
GST_END_TEST

/* A buffer comes out of the pool as the first time. */
GST_START_TEST (test_reset)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 1);
  GstBuffer *buffer = acquire_on (pool, stream);
  GstMemory *kept;

  gst_buffer_add_video_crop_meta (buffer);
  GST_BUFFER_PTS (buffer) = 5;
  GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_DELTA_UNIT);
  gst_buffer_resize (buffer, 16, 100);
  kept = gst_buffer_get_memory (buffer, 0);
  gst_buffer_unref (buffer);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).live, 1);

  buffer = acquire_on (pool, stream);
  fail_unless (gst_buffer_peek_memory (buffer, 0) != kept);
  fail_unless (gst_buffer_get_video_crop_meta (buffer) == NULL);
  fail_unless (gst_buffer_get_video_meta (buffer) != NULL);
  fail_unless_equals_uint64 (GST_BUFFER_PTS (buffer), GST_CLOCK_TIME_NONE);
  fail_unless_equals_int ((gint)GST_BUFFER_FLAGS (buffer), 0);
  fail_unless_equals_uint64 (gst_buffer_get_size (buffer), 64 * 256);
  gst_memory_unref (kept);
  gst_buffer_unref (buffer);
  free_pool (pool);
}
GST_END_TEST

GST_START_TEST (test_reconfigure)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 0);

  for (guint size = 1; size <= 300; size += 37) {
    g_autoptr (GstCaps) caps = test_caps (GST_VIDEO_FORMAT_RGBA, size, size);
    GstBuffer *buffer;

    /* Refused while the pool is active. */
    GstStructure *config = gst_buffer_pool_get_config (pool);
    gst_buffer_pool_config_set_params (config, caps, 0, 0, 0);
    fail_if (gst_buffer_pool_set_config (pool, config));

    fail_unless (gst_buffer_pool_set_active (pool, FALSE));
    configure (pool, size, size, size % 3, 0);
    buffer = acquire (pool);
    fail_unless_equals_uint64 (gst_buffer_get_video_meta (buffer)->width, size);
    fail_unless_equals_uint64 (gpu_image_spec (image_of (buffer))->width, size);
    gst_buffer_unref (buffer);
  }
  free_pool (pool);
}
GST_END_TEST

static gpointer
unref_buffer (gpointer buffer)
{
  gst_buffer_unref (buffer);
  return NULL;
}

/* G10: a buffer that is out when its pool stops stays as it is, and comes home from any thread after the pool is gone.
 */
GST_START_TEST (test_stop_while_in_use)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 0);
  GstBuffer *buffer = acquire (pool), *other = NULL;
  GstVideoInfo info;

  test_video_info (&info, GST_VIDEO_FORMAT_RGBA, 64, 64);
  test_frame_write (buffer, &info, 3);
  fail_unless (gst_buffer_pool_set_active (pool, FALSE));
  fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &other, NULL), GST_FLOW_FLUSHING);
  test_frame_expect (buffer, &info, 3);

  /* And on again, with it still out. */
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  other = acquire (pool);
  gst_buffer_unref (other);
  fail_unless (gst_buffer_pool_set_active (pool, FALSE));
  gst_object_unref (pool);
  test_frame_expect (buffer, &info, 3);
  g_thread_join (g_thread_new ("unref", unref_buffer, buffer));
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).live, 0);
}
GST_END_TEST

/* Rule 3: a frame let go of on another thread goes back to its stream's scope. */
GST_START_TEST (test_release_on_another_thread)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 0);
  GstBuffer *buffer = acquire_on (pool, stream);
  gpointer data = gpu_image_data (image_of (buffer));

  g_thread_join (g_thread_new ("unref", unref_buffer, buffer));
  buffer = acquire_on (pool, stream);
  fail_unless (gpu_image_data (image_of (buffer)) == data);
  gst_buffer_unref (buffer);
  free_pool (pool);
}
GST_END_TEST

/* Rule 15: an empty buffer keeps the stream that it was last acquired on no longer than until it is acquired on another
 * one, or the pool stops. What that stream left is there for others then. */
GST_START_TEST (test_lets_streams_go)
{
  for (guint stops = 0; stops < 2; stops++) {
    GstBufferPool *pool = make_pool (64 + stops, 64, 0, 0);
    GpuStream *other = test_stream_new (device);
    g_autoptr (GError) error = NULL;
    GstBuffer *frames[2];
    guint64 missed;

    gst_buffer_unref (acquire_on (pool, other));
    gpu_stream_synchronize (other, &error);
    g_assert_no_error (error);
    gpu_stream_unref (other);
    missed = misses ();
    if (stops)
      fail_unless (gst_buffer_pool_set_active (pool, FALSE) && gst_buffer_pool_set_active (pool, TRUE));
    for (guint i = 0; i < G_N_ELEMENTS (frames); i++)
      frames[i] = acquire_on (pool, stream);
    fail_unless_equals_uint64 (misses (), missed + 1);
    for (guint i = 0; i < G_N_ELEMENTS (frames); i++)
      gst_buffer_unref (frames[i]);
    free_pool (pool);
  }
}
GST_END_TEST

static void
count_failure (GstBufferPool *pool, const GError *error, guint *failures)
{
  fail_unless (error != NULL);
  (*failures)++;
}

/* G10: what fails with a memory of a pool is the pool's to say while there is one. */
GST_START_TEST (test_failure_without_pool)
{
  GstBufferPool *pool;
  GstBuffer *buffer;
  GstMemory *memory;
  GstMapInfo map;
  guint failures = 0;

  teardown ();
  device = gpu_cpu_device_new ("cpu:5", test_is_lazy () ? GPU_CPU_LAZY : GPU_CPU_THREADS, 0);
  stream = test_stream_new (device);
  pool = make_pool (64, 64, 0, 0);
  buffer = acquire (pool);
  memory = gst_buffer_get_memory (buffer, 0);
  g_signal_connect (pool, "failed", G_CALLBACK (count_failure), &failures);
  gpu_device_fail (device, GPU_CALL_STREAM_CREATE, 0, 1);
  fail_if (gpu_stream_new (device, false, NULL));
  fail_unless (gpu_device_is_lost (device));

  fail_if (gst_memory_map (memory, &map, GST_MAP_READ));
  fail_unless_equals_int (failures, 1);
  gst_buffer_unref (buffer);
  free_pool (pool);
  fail_if (gst_memory_map (memory, &map, GST_MAP_READ));
  fail_unless_equals_int (failures, 1);
  gst_memory_unref (memory);
}
GST_END_TEST

static gboolean
set_config (GstBufferPool *pool, const gchar *caps_string, guint size, guint kind, gsize align, guint stride_align)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);
  g_autoptr (GstCaps) caps = caps_string ? gst_caps_from_string (caps_string) : NULL;
  GstAllocationParams params = {.align = align};

  gst_buffer_pool_config_set_params (config, caps, size, 0, 0);
  gst_buffer_pool_config_set_allocator (config, NULL, &params);
  gst_gpu_buffer_pool_config_set_memory_kind (config, (GpuMemoryKind)kind);
  if (stride_align) {
    GstVideoAlignment alignment;

    gst_video_alignment_reset (&alignment);
    alignment.stride_align[0] = stride_align;
    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
    gst_buffer_pool_config_set_video_alignment (config, &alignment);
  }
  return gst_buffer_pool_set_config (pool, config);
}

GST_START_TEST (test_config_errors)
{
  static const gchar good[] = "video/x-raw(memory:GPUCache),format=RGBA,width=8,height=8,framerate=1/1";
  GstBufferPool *pool = gst_gpu_buffer_pool_new (device);

  fail_if (set_config (pool, NULL, 0, GPU_MEMORY_STREAM_ORDERED, 0, 0));
  fail_if (set_config (pool, "video/x-raw,format=Y444,width=8,height=8,framerate=1/1", 0, 0, 0, 0));
  fail_if (set_config (pool, "video/x-raw,format=RGBA,framerate=1/1", 0, 0, 0, 0));
  fail_if (set_config (pool, "video/x-raw,format=RGBA,width=40000,height=40000,framerate=1/1", 0, 0, 0, 0));
  fail_if (set_config (pool, "application/x-bytes", 0, 0, 0, 0));
  fail_if (set_config (pool, "application/x-bytes", G_MAXUINT, 0, 0, 0));
  fail_if (set_config (pool, good, 0, GPU_N_MEMORY_KINDS, 0, 0));
  fail_if (set_config (pool, good, 0, 0, 100, 0));
  fail_if (set_config (pool, good, 0, 0, 0, 100));
  fail_unless (set_config (pool, good, 0, GPU_MEMORY_DEVICE, 15, 63));
  fail_unless_equals_int (gst_buffer_pool_has_option (pool, GST_BUFFER_POOL_OPTION_VIDEO_META), TRUE);
  fail_unless_equals_int (gst_buffer_pool_has_option (pool, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT), TRUE);
  gst_object_unref (pool);
}
GST_END_TEST

/* A config that is refused leaves the one before as it was. */
GST_START_TEST (test_refused_config)
{
  GstBufferPool *pool = make_pool (64, 64, 0, 0);
  GstBuffer *buffer;

  fail_unless (gst_buffer_pool_set_active (pool, FALSE));
  fail_if (set_config (pool, "video/x-raw,format=Y444,width=8,height=8,framerate=1/1", 0, 0, 0, 0));
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  buffer = acquire (pool);
  fail_unless_equals_int (GST_VIDEO_INFO_WIDTH (gst_gpu_memory_get_video_info (gst_buffer_peek_memory (buffer, 0))),
                          64);
  gst_buffer_unref (buffer);
  free_pool (pool);
}
GST_END_TEST

/* Somebody else's allocator is not taken, and the config says so. */
GST_START_TEST (test_foreign_allocator)
{
  GstBufferPool *pool = gst_gpu_buffer_pool_new (device);
  GstAllocator *system = gst_allocator_find (GST_ALLOCATOR_SYSMEM), *used;
  GstStructure *config = gst_buffer_pool_get_config (pool);
  g_autoptr (GstCaps) caps = test_caps (GST_VIDEO_FORMAT_RGBA, 8, 8);

  gst_buffer_pool_config_set_params (config, caps, 0, 0, 0);
  gst_buffer_pool_config_set_allocator (config, system, NULL);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_get_allocator (config, &used, NULL);
  fail_unless (GST_IS_GPU_ALLOCATOR (used));
  gst_structure_free (config);
  gst_object_unref (system);
  gst_object_unref (pool);
}
GST_END_TEST

/* G12: alignment and padding are kept exactly, in every kind of memory. */
GST_START_TEST (test_alignment)
{
  static const GpuMemoryKind kinds[] = {GPU_MEMORY_STREAM_ORDERED, GPU_MEMORY_HOST};
  static const guint paddings[][4] = {{2, 4, 64, 6}, {5, 0, 3, 0}, {0, 0, 0, 0}}; /* top, bottom, left, right */

  for (guint k = 0; k < G_N_ELEMENTS (kinds) * G_N_ELEMENTS (paddings); k++) {
    const guint *padding = paddings[k / G_N_ELEMENTS (kinds)];
    GstBufferPool *pool = gst_gpu_buffer_pool_new (device);
    GstStructure *config = gst_buffer_pool_get_config (pool);
    g_autoptr (GstCaps) caps = test_caps (GST_VIDEO_FORMAT_I420, 33, 17);
    GstVideoAlignment align, applied;
    GstAllocationParams params = {.align = 4095};
    GstVideoInfo info, aligned;
    GstBuffer *buffer;
    GstVideoMeta *meta;

    gst_video_alignment_reset (&align);
    align.padding_top = padding[0];
    align.padding_bottom = padding[1];
    align.padding_left = padding[2];
    align.padding_right = padding[3];
    if (padding[0] != 5) { /* else as tight as it can be */
      align.stride_align[0] = 31;
      align.stride_align[1] = align.stride_align[2] = 15;
    }
    gst_buffer_pool_config_set_params (config, caps, 0, 0, 0);
    gst_buffer_pool_config_set_allocator (config, NULL, &params);
    gst_gpu_buffer_pool_config_set_memory_kind (config, kinds[k % G_N_ELEMENTS (kinds)]);
    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
    gst_buffer_pool_config_set_video_alignment (config, &align);
    fail_unless (gst_buffer_pool_set_config (pool, config));

    test_video_info (&info, GST_VIDEO_FORMAT_I420, 33, 17);
    aligned = info;
    fail_unless (gst_video_info_align (&aligned, &align));
    config = gst_buffer_pool_get_config (pool);
    fail_unless (gst_buffer_pool_config_get_video_alignment (config, &applied));
    fail_unless_equals_uint64 (applied.padding_right, align.padding_right);
    gst_structure_free (config);

    fail_unless (gst_buffer_pool_set_active (pool, TRUE));
    buffer = acquire (pool);
    meta = gst_buffer_get_video_meta (buffer);
    for (guint p = 0; p < 3; p++) {
      fail_unless_equals_int (meta->stride[p], GST_VIDEO_INFO_PLANE_STRIDE (&aligned, p));
      fail_unless_equals_uint64 (meta->offset[p], GST_VIDEO_INFO_PLANE_OFFSET (&aligned, p));
    }
    fail_unless_equals_uint64 (meta->alignment.padding_top, align.padding_top);
    fail_unless_equals_uint64 (meta->alignment.padding_left, align.padding_left);
    fail_unless_equals_uint64 (meta->alignment.padding_right, align.padding_right);
    fail_unless_equals_uint64 (meta->alignment.stride_align[0], align.stride_align[0]);
    /* Only odd paddings need more. */
    if (padding[0] % 2 == 0) {
      fail_unless_equals_uint64 (gst_buffer_get_size (buffer), GST_VIDEO_INFO_SIZE (&aligned));
    } else {
      fail_unless (gst_buffer_get_size (buffer) >= GST_VIDEO_INFO_SIZE (&aligned));
    }
    fail_unless_equals_uint64 ((guintptr)gpu_image_data (image_of (buffer)) % 4096, 0);
    fail_unless_equals_uint64 (gpu_image_spec (image_of (buffer))->alignment, 4096);
    test_frame_write (buffer, &info, 1);
    test_frame_expect (buffer, &info, 1);
    gst_buffer_unref (buffer);
    free_pool (pool);
  }
}
GST_END_TEST

/* Caps that are no video: rows of bytes. */
GST_START_TEST (test_bytes)
{
  GstBufferPool *pool = gst_gpu_buffer_pool_new (device);
  GstBuffer *buffer;

  fail_unless (set_config (pool, "application/x-bytes", 1000, GPU_MEMORY_STREAM_ORDERED, 0, 0));
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  for (guint i = 0; i < 3; i++) {
    buffer = acquire (pool);
    fail_unless_equals_uint64 (gst_buffer_get_size (buffer), 1000);
    fail_unless (gst_buffer_get_video_meta (buffer) == NULL);
    fail_unless (gst_gpu_memory_get_video_info (gst_buffer_peek_memory (buffer, 0)) == NULL);
    test_memory_write (gst_buffer_peek_memory (buffer, 0), i);
    test_memory_expect (gst_buffer_peek_memory (buffer, 0), 0, 1000, i);
    gst_buffer_unref (buffer);
  }
  free_pool (pool);
}
GST_END_TEST

static Suite *
pool_suite (void)
{
  Suite *suite = suite_create ("pool");
  TCase *tcase = tcase_create ("pool");

  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, setup, teardown);
  tcase_add_test (tcase, test_frames);
  tcase_add_test (tcase, test_does_not_hoard);
  tcase_add_test (tcase, test_stop_leaves_memory);
  tcase_add_test (tcase, test_pending_reuse);
  tcase_add_test (tcase, test_steady_state);
  tcase_add_test (tcase, test_min_buffers);
  tcase_add_test (tcase, test_min_buffers_fails);
  tcase_add_test (tcase, test_max_buffers);
  tcase_add_test (tcase, test_flushing);
  tcase_add_test (tcase, test_out_of_memory);
  tcase_add_test (tcase, test_reset);
  tcase_add_test (tcase, test_reconfigure);
  tcase_add_test (tcase, test_stop_while_in_use);
  tcase_add_test (tcase, test_release_on_another_thread);
  tcase_add_test (tcase, test_lets_streams_go);
  tcase_add_test (tcase, test_failure_without_pool);
  tcase_add_test (tcase, test_config_errors);
  tcase_add_test (tcase, test_refused_config);
  tcase_add_test (tcase, test_foreign_allocator);
  tcase_add_test (tcase, test_alignment);
  tcase_add_test (tcase, test_bytes);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, pool_suite, "pool");
}
