/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pinned memory, and uploads that nobody waits for: what is offered upstream, what comes of frames whose source does
 * not wait either, and what is copied.
 */
#include "transfer.h"

static const struct {
  int width, height;
} sizes[] = {{1, 1}, {1, 7}, {7, 1}, {2, 2}, {33, 17}, {64, 48}, {641, 481}};

/* Returns: (transfer full): the device that the elements of @h use. */
static GpuDevice *
device_of (GstHarness *h)
{
  GpuDevice *device = gpu_device_open (NULL, NULL);

  fail_unless (device != NULL);
  return device;
}

/* Asks as a source does. Returns: (transfer full): the pool that is offered, not configured; @allocator: (out)
 * (optional) (transfer full): the allocator. */
static GstBufferPool *
ask_for_pool (GstHarness *h, GstCaps *caps, GstAllocator **allocator)
{
  g_autoptr (GstQuery) query = gst_query_new_allocation (caps, TRUE);
  GstBufferPool *pool = NULL;
  guint size, min, max;

  fail_unless (gst_pad_peer_query (h->srcpad, query));
  fail_unless (gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL));
  fail_unless_equals_int (gst_query_get_n_allocation_pools (query), 1);
  gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
  fail_unless (pool != NULL);
  fail_unless_equals_int (max, 0);
  if (allocator)
    gst_query_parse_nth_allocation_param (query, 0, allocator, NULL);
  return pool;
}

/* @align: (nullable): padding. Returns: (transfer full): that pool, active. */
static GstBufferPool *
start_pool (GstHarness *h, const GstVideoInfo *info, const GstVideoAlignment *align)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->srcpad);
  GstBufferPool *pool = ask_for_pool (h, caps, NULL);
  GstStructure *config = gst_buffer_pool_get_config (pool);

  fail_unless (GST_IS_GPU_BUFFER_POOL (pool));
  fail_unless_equals_int (gst_gpu_buffer_pool_get_kind (GST_GPU_BUFFER_POOL (pool)), GPU_MEMORY_HOST);
  fail_unless (gst_buffer_pool_has_option (pool, GST_BUFFER_POOL_OPTION_VIDEO_META));
  fail_unless (gst_buffer_pool_has_option (pool, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT));
  gst_buffer_pool_config_set_params (config, caps, (guint)GST_VIDEO_INFO_SIZE (info), 0, 0);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (align) {
    GstVideoAlignment copy = *align;

    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
    gst_buffer_pool_config_set_video_alignment (config, &copy);
  }
  fail_unless (gst_buffer_pool_set_config (pool, config));
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));
  return pool;
}

static void
stop_pool (GstBufferPool *pool)
{
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
}

static GstBuffer *
take_frame (GstBufferPool *pool, const GstVideoInfo *info, guint32 seed)
{
  GstBuffer *buffer = NULL;

  fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
  fill_frame (buffer, info, seed);
  return buffer;
}

GST_START_TEST (frames_of_the_pool)
{
  for (guint i = 0; i < N_TEST_FORMATS; i++)
    for (guint k = 0; k < G_N_ELEMENTS (sizes); k++) {
      GstVideoInfo info;
      GstHarness *h = start_round_trip (&info, test_formats[i], sizes[k].width, sizes[k].height);
      GstBufferPool *pool = start_pool (h, &info, NULL);

      for (guint32 seed = 0; seed < 3; seed++) {
        GstBuffer *in = take_frame (pool, &info, seed), *out;

        out = push_and_pull (h, in);
        assert_frame (out, &info, seed, test_formats[i]);
        gst_buffer_unref (out);
      }
      stop_pool (pool);
      gst_harness_teardown (h);
    }
}
GST_END_TEST

/* G12: what software asks for is what it gets, or it would use frames of its own. */
GST_START_TEST (layout_is_as_software_asks)
{
  static const GstVideoAlignment aligns[] = {
      {0},
      {.stride_align = {31, 31, 31, 31}},
      {.padding_right = 10, .padding_bottom = 6, .stride_align = {15, 15, 15, 15}},
      {.padding_left = 32, .padding_top = 16, .padding_right = 32, .padding_bottom = 16, .stride_align = {63, 31, 31}},
  };
  static const char *const formats[] = {"I420", "NV12", "RGB", "RGBA", "P010_10LE", "GRAY8"};

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    for (guint k = 0; k < G_N_ELEMENTS (aligns); k++) {
      GstVideoInfo info, wanted;
      GstVideoAlignment align = aligns[k];
      GstHarness *h = start_round_trip (&info, formats[i], 98, 38);
      GstBufferPool *pool = start_pool (h, &info, k ? &aligns[k] : NULL);
      GstBuffer *buffer = take_frame (pool, &info, k), *out;
      const GstVideoMeta *meta = gst_buffer_get_video_meta (buffer);

      wanted = info;
      if (k)
        fail_unless (gst_video_info_align (&wanted, &align));
      for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES (&info); plane++) {
        fail_unless_equals_int (meta->stride[plane], wanted.stride[plane]);
        fail_unless_equals_uint64 (meta->offset[plane], wanted.offset[plane]);
      }
      fail_unless_equals_uint64 (gst_buffer_get_size (buffer), GST_VIDEO_INFO_SIZE (&wanted));
      fail_unless (gst_memory_is_type (gst_buffer_peek_memory (buffer, 0), GST_GPU_HOST_MEMORY_TYPE));

      out = push_and_pull (h, buffer);
      assert_frame (out, &info, k, formats[i]);
      gst_buffer_unref (out);
      stop_pool (pool);
      gst_harness_teardown (h);
    }
}
GST_END_TEST

/* Memory of the allocator that is offered, with strides, offsets and a crop of the source's own. */
GST_START_TEST (foreign_layouts_in_pinned_memory)
{
  for (guint i = 0; i < N_TEST_FORMATS; i++)
    for (int crop = 0; crop < 3; crop++) {
      GstVideoInfo info, whole_info;
      GstHarness *h = start_round_trip (&info, test_formats[i], crop ? 15 : 33, crop ? 9 : 17);
      g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->srcpad);
      g_autoptr (GstAllocator) allocator = NULL;
      g_autoptr (Picture) whole = NULL;
      g_autoptr (Picture) expected = NULL;
      g_autoptr (Picture) got = NULL;
      GstBuffer *padded, *in = gst_buffer_new (), *out;
      GstVideoMeta *meta;
      GstMemory *memory, *share;
      GstMapInfo map;
      gsize size;

      gst_object_unref (ask_for_pool (h, caps, &allocator));
      info_init (&whole_info, test_formats[i], 33, 17);
      padded = frame_new_padded (&whole_info, i, 5);
      whole = picture_read (&whole_info, padded);
      meta = gst_buffer_get_video_meta (padded);
      size = gst_buffer_get_size (padded);
      memory = gst_allocator_alloc (allocator, size + 24, NULL);
      fail_unless (memory != NULL);
      fail_unless_equals_int (gst_gpu_memory_get_kind (memory), GPU_MEMORY_HOST);
      fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
      gst_buffer_extract (padded, 0, map.data + 24, size);
      gst_memory_unmap (memory, &map);
      share = gst_memory_share (memory, 24, (gssize)size);
      gst_memory_unref (memory);
      gst_buffer_append_memory (in, share);
      gst_buffer_add_video_meta_full (in, GST_VIDEO_FRAME_FLAG_NONE, meta->format, meta->width, meta->height,
                                      meta->n_planes, meta->offset, meta->stride);
      gst_buffer_unref (padded);
      if (crop) {
        GstVideoCropMeta *rectangle = gst_buffer_add_video_crop_meta (in);

        rectangle->x = 4;
        rectangle->y = crop == 1 ? 6 : 8;
        rectangle->width = 15;
        rectangle->height = 9;
      }
      expected = crop ? picture_crop (whole, 4, crop == 1 ? 6 : 8, 15, 9) : g_steal_pointer (&whole);

      out = push_and_pull (h, in);
      got = picture_read (&info, out);
      assert_pictures_equal (expected, got, test_formats[i]);
      gst_buffer_unref (out);
      gst_harness_teardown (h);
    }
}
GST_END_TEST

/* Memory whose image is laid out in another way than caps say, and no GstVideoMeta that says so: bytes in a row behind
 * a prefix, and a padded frame's memory in a buffer of the source's own. What counts is the caps' layout. */
GST_START_TEST (layout_is_that_of_the_caps_where_no_meta_says_another)
{
  static const GstVideoAlignment align = {.padding_left = 32, .padding_right = 32, .padding_bottom = 16};

  for (guint padded = 0; padded < 2; padded++) {
    GstVideoInfo info;
    GstHarness *h = start_round_trip (&info, padded ? "RGBA" : "GRAY8", 64, padded ? 64 : 1);
    g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->srcpad);
    g_autoptr (GstAllocator) allocator = NULL;
    GstAllocationParams params = {.prefix = 16};
    GstBuffer *frame = frame_new (&info, padded), *in = gst_buffer_new (), *out;
    GstMemory *memory;
    GstMapInfo map;

    if (padded) {
      GstBufferPool *pool = start_pool (h, &info, &align);
      GstBuffer *taken = take_frame (pool, &info, 9);

      memory = gst_buffer_get_memory (taken, 0);
      gst_buffer_unref (taken);
      stop_pool (pool);
    } else {
      gst_object_unref (ask_for_pool (h, caps, &allocator));
      memory = gst_allocator_alloc (allocator, GST_VIDEO_INFO_SIZE (&info), &params);
    }
    fail_unless (memory && gst_memory_map (memory, &map, GST_MAP_WRITE));
    gst_buffer_extract (frame, 0, map.data, GST_VIDEO_INFO_SIZE (&info));
    gst_memory_unmap (memory, &map);
    gst_buffer_append_memory (in, memory);

    out = push_and_pull (h, in);
    assert_frame (out, &info, padded, padded ? "padded memory" : "behind a prefix");
    gst_buffer_unref (out);
    gst_buffer_unref (frame);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* A frame is let go of as soon as it is pushed, and what the pool gives next is written over at once. */
GST_START_TEST (source_reuses_its_frames_at_once)
{
  GstVideoInfo info;
  GstHarness *h = start_round_trip (&info, "RGB", 63, 47);
  GstBufferPool *pool = start_pool (h, &info, NULL);
  GstBuffer *out[30];

  for (guint32 i = 0; i < G_N_ELEMENTS (out); i++) {
    fail_unless_equals_int (gst_harness_push (h, take_frame (pool, &info, i)), GST_FLOW_OK);
    out[i] = gst_harness_pull (h);
  }
  for (guint32 i = 0; i < G_N_ELEMENTS (out); i++) {
    assert_frame (out[i], &info, i, "a frame whose source was reused");
    gst_buffer_unref (out[i]);
  }
  stop_pool (pool);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Nor need it go back to its pool: whoever writes into memory that is still being read waits. In plain memory, too. */
GST_START_TEST (source_keeps_its_frame_and_writes_it_again)
{
  for (guint plain = 0; plain < 2; plain++) {
    GstVideoInfo info;
    GstHarness *h = start_round_trip (&info, "NV12", 63, 47);
    GstBufferPool *pool = start_pool (h, &info, NULL);
    GstBuffer *frame = plain ? frame_new (&info, 0) : take_frame (pool, &info, 0), *out[10];

    for (guint32 i = 0; i < G_N_ELEMENTS (out); i++) {
      GstBuffer *sent = gst_buffer_copy (frame);

      if (i == 0 && !gst_buffer_is_all_memory_writable (frame))
        GST_LOG ("shared with what is sent, as a decoder's reference frames are");
      fail_unless_equals_int (gst_harness_push (h, sent), GST_FLOW_OK);
      out[i] = gst_harness_pull (h);
      /* As the CPU device hands on what it gets, its consumer has to be done before. */
      if (!plain && gst_buffer_peek_memory (out[i], 0) == gst_buffer_peek_memory (frame, 0)) {
        assert_frame (out[i], &info, i, "handed on");
        gst_buffer_replace (&out[i], NULL);
      }
      fill_frame (frame, &info, i + 1);
    }
    for (guint32 i = 0; i < G_N_ELEMENTS (out); i++)
      if (out[i]) {
        assert_frame (out[i], &info, i, "a frame that its source wrote again");
        gst_buffer_unref (out[i]);
      }
    gst_buffer_unref (frame);
    stop_pool (pool);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* What goes on as it is stays the source's while that holds it: nobody works in place on it (G6). */
GST_START_TEST (nobody_writes_into_a_frame_that_the_source_holds)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload ! gpuflip video-direction=vert ! gpudownload");
  GstVideoInfo info;
  GstBufferPool *pool;
  GstBuffer *in, *out;

  info_init (&info, "RGBA", 64, 48);
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 64, 48, FALSE));
  pool = start_pool (h, &info, NULL);
  in = take_frame (pool, &info, 7);
  out = push_and_pull (h, gst_buffer_ref (in));
  assert_frame (in, &info, 7, "the frame that the source holds");
  gst_buffer_unref (out);
  gst_buffer_unref (in);
  stop_pool (pool);
  gst_harness_teardown (h);
}
GST_END_TEST

/* What is done with a frame does not hold up the copies of those behind it. */
GST_START_TEST (upload_goes_on_beside_the_work_on_its_frames)
{
  GpuDevice *device = test_device_new ();
  GstHarness *h = harness_new_on ("gpuupload", device);
  GstBuffer *out[4];
  GstVideoInfo info;
  GpuStream *work;
  GpuGate *gate;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, FALSE));
  for (guint i = 0; i < G_N_ELEMENTS (out); i++)
    out[i] = push_and_pull (h, frame_new (&info, i));
  work = gpu_stream_ref (gst_gpu_memory_get_stream (gst_buffer_peek_memory (out[0], 0)));
  for (guint i = 0; i < G_N_ELEMENTS (out); i++) {
    fail_unless (gst_gpu_memory_get_stream (gst_buffer_peek_memory (out[i], 0)) == work);
    fail_unless (
        gpu_image_wait (gst_gpu_memory_get_image (gst_buffer_peek_memory (out[i], 0)), GPU_ACCESS_WRITE, NULL));
  }

  gate = gpu_gate_new (device, NULL);
  fail_unless (gpu_gate_hold (gate, work, NULL));
  fail_unless (gpu_image_fill (work, gst_gpu_memory_get_image (gst_buffer_peek_memory (out[0], 0)), 1, NULL));
  for (guint i = 1; i < G_N_ELEMENTS (out); i++) {
    gst_buffer_unref (out[i]);
    out[i] = push_and_pull (h, frame_new (&info, i));
    fail_unless (gpu_image_wait (gst_gpu_memory_get_image (gst_buffer_peek_memory (out[i], 0)), GPU_ACCESS_READ, NULL));
  }
  gpu_gate_open (gate);
  for (guint i = 1; i < G_N_ELEMENTS (out); i++) {
    assert_frame (out[i], &info, i, "copied beside work");
    gst_buffer_unref (out[i]);
  }
  gst_buffer_unref (out[0]);
  gst_harness_teardown (h);
  gpu_gate_free (gate);
  gpu_stream_unref (work);
  gpu_device_unref (device);
}
GST_END_TEST

/* Beyond its limit pinned memory is not kept; there is as much as is in use. */
GST_START_TEST (limit_of_pinned_memory)
{
  GstVideoInfo info;
  GstHarness *h = start_round_trip (&info, "RGB", 63, 47);
  GstBufferPool *pool = start_pool (h, &info, NULL);
  GpuDevice *device = device_of (h);
  const guint64 old = gpu_cache_get_limit (device, GPU_ACCOUNT_HOST);
  const gint64 limits[] = {0, (gint64)GST_VIDEO_INFO_SIZE (&info) * 2};

  for (guint k = 0; k < G_N_ELEMENTS (limits); k++) {
    GstBuffer *out[12];
    GpuCacheStats stats;

    fail_unless (gpu_cache_set_limit (device, GPU_ACCOUNT_HOST, limits[k], NULL));
    for (guint32 i = 0; i < G_N_ELEMENTS (out); i++) {
      GstBuffer *in = i % 2 ? take_frame (pool, &info, i) : frame_new (&info, i);

      out[i] = push_and_pull (h, in);
    }
    for (guint32 i = 0; i < G_N_ELEMENTS (out); i++) {
      assert_frame (out[i], &info, i, "under a limit");
      gst_buffer_unref (out[i]);
    }
    for (guint i = 0; i < 1000; i++) {
      stats = test_stats (device, GPU_ACCOUNT_HOST);
      if (stats.pending == 0)
        break;
      test_give_time (device);
    }
    fail_unless (stats.idle_bytes <= (guint64)limits[k], "%" G_GUINT64_FORMAT " bytes are idle", stats.idle_bytes);
    fail_unless_equals_uint64 (stats.limit_bytes, limits[k]);
  }
  fail_unless (gpu_cache_set_limit (device, GPU_ACCOUNT_HOST, (gint64)old, NULL));
  stop_pool (pool);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* Where the host can read the device's frames nothing is copied, and where it cannot all is. */
GST_START_TEST (what_is_copied)
{
  GstVideoInfo info;
  GstHarness *h = gst_harness_new_parse ("gpuupload ! gpudownload");
  GpuDevice *device = device_of (h);
  gboolean is_host = gpu_device_is_host (device);
  GstBufferPool *pool;
  GstBuffer *in, *out;
  GstMemory *memory;

  /* Rows and planes of this size are aligned as the device has them. */
  info_init (&info, "RGBA", 64, 64);
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 64, 64, FALSE));
  pool = start_pool (h, &info, NULL);
  in = take_frame (pool, &info, 3);
  memory = gst_buffer_peek_memory (in, 0);
  out = push_and_pull (h, in);
  fail_unless_equals_int (gst_buffer_peek_memory (out, 0) == memory, is_host);
  if (!is_host)
    fail_unless_equals_int (gst_gpu_memory_get_kind (gst_buffer_peek_memory (out, 0)), GPU_MEMORY_HOST);
  assert_frame (out, &info, 3, "copied or not");
  gst_buffer_unref (out);
  stop_pool (pool);

  in = frame_new (&info, 4);
  memory = gst_buffer_peek_memory (in, 0);
  out = push_and_pull (h, in);
  fail_if (gst_buffer_peek_memory (out, 0) == memory);
  assert_frame (out, &info, 4, "copied");
  gst_buffer_unref (out);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* Memory that the host and the device both address goes on as it is, there and back. */
GST_START_TEST (managed_memory_is_not_copied)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload host-memory=managed ! gpudownload");
  g_autoptr (GstCaps) caps = frame_caps ("NV12", 66, 50, FALSE);
  g_autoptr (GstBufferPool) pool = NULL;
  GstStructure *config;
  GstVideoInfo info;

  info_init (&info, "NV12", 66, 50);
  gst_harness_set_src_caps (h, gst_caps_ref (caps));
  pool = ask_for_pool (h, caps, NULL);
  if (gst_gpu_buffer_pool_get_kind (GST_GPU_BUFFER_POOL (pool)) == GPU_MEMORY_MANAGED) {
    config = gst_buffer_pool_get_config (pool);
    gst_buffer_pool_config_set_params (config, caps, (guint)GST_VIDEO_INFO_SIZE (&info), 0, 0);
    fail_unless (gst_buffer_pool_set_config (pool, config));
    fail_unless (gst_buffer_pool_set_active (pool, TRUE));
    for (guint32 i = 0; i < 5; i++) {
      GstBuffer *in = take_frame (pool, &info, i), *out;
      GstMemory *memory = gst_buffer_peek_memory (in, 0);

      fail_unless_equals_int (gst_gpu_memory_get_kind (memory), GPU_MEMORY_MANAGED);
      out = push_and_pull (h, in);
      fail_unless (gst_buffer_peek_memory (out, 0) == memory);
      assert_frame (out, &info, i, "managed");
      gst_buffer_unref (out);
    }
    gst_buffer_pool_set_active (pool, FALSE);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (zeroed_memory_of_the_allocator)
{
  GpuDevice *device = test_device_new ();
  g_autoptr (GstAllocator) allocator = gst_gpu_allocator_new_with_kind (device, GPU_MEMORY_HOST);
  GstAllocationParams params = {
      .flags = GST_MEMORY_FLAG_ZERO_PREFIXED | GST_MEMORY_FLAG_ZERO_PADDED, .align = 1023, .prefix = 16, .padding = 16};
  GstMemory *memory = gst_allocator_alloc (allocator, 100, &params);
  GstMapInfo map;

  fail_unless (memory != NULL);
  fail_unless (gst_memory_is_type (memory, GST_GPU_HOST_MEMORY_TYPE));
  fail_if (GST_OBJECT_FLAG_IS_SET (allocator, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC));
  fail_unless (gst_memory_map (memory, &map, GST_MAP_READWRITE));
  fail_unless_equals_uint64 (map.size, 100);
  fail_unless_equals_uint64 (((guintptr)map.data - 16) % 1024, 0);
  for (int i = -16; i < 0; i++)
    fail_unless_equals_int (map.data[i], 0);
  gst_memory_unmap (memory, &map);
  gst_memory_unref (memory);
  gpu_device_unref (device);
}
GST_END_TEST

static Suite *
transfer_upload_suite (void)
{
  Suite *s = suite_create ("pinned memory and uploads");
  TCase *tc = tcase_create ("general");

  register_elements ();
  suite_add_tcase (s, tc);
  tcase_add_test (tc, frames_of_the_pool);
  tcase_add_test (tc, layout_is_as_software_asks);
  tcase_add_test (tc, foreign_layouts_in_pinned_memory);
  tcase_add_test (tc, layout_is_that_of_the_caps_where_no_meta_says_another);
  tcase_add_test (tc, source_reuses_its_frames_at_once);
  tcase_add_test (tc, source_keeps_its_frame_and_writes_it_again);
  tcase_add_test (tc, nobody_writes_into_a_frame_that_the_source_holds);
  tcase_add_test (tc, upload_goes_on_beside_the_work_on_its_frames);
  tcase_add_test (tc, limit_of_pinned_memory);
  tcase_add_test (tc, what_is_copied);
  tcase_add_test (tc, managed_memory_is_not_copied);
  tcase_add_test (tc, zeroed_memory_of_the_allocator);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, transfer_upload_suite, "transfer-upload");
}
