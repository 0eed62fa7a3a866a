/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pinned memory, and uploads and downloads that nobody waits for: what is offered upstream, what comes of frames whose
 * source or consumer does not wait either, and who waits for what.
 *
 * Compiled with TEST_BUS, this is the same with the elements of a device whose memory the host cannot address: there
 * frames are copied that the CPU device hands on.
 */
#include "common.h"
#include "picture.h"

#ifdef TEST_BUS
#include "../../gst/elements/gstgpuelements.h"

bool
test_device_is_host (const GpuDevice *device)
{
  return false;
}
#endif

static const struct {
  int width, height;
} sizes[] = {{1, 1}, {1, 7}, {7, 1}, {2, 2}, {33, 17}, {64, 48}, {641, 481}};

static const char round_trip[] = "gpuupload name=upload ! gpudownload name=download";

/* Returns: (transfer full): the device that the elements of @h use. */
static GpuDevice *
device_of (GstHarness *h)
{
  GpuDevice *device = gpu_device_open (NULL, NULL);

  fail_unless (device != NULL);
  return device;
}

/* Asks as a source does. Returns: (transfer full): the pool that is offered, not configured; @video_meta says whether
 * strides may be the source's. */
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

/* Puts the picture that frame_new() makes of @seed into @buffer. */
static void
fill_frame (GstBuffer *buffer, const GstVideoInfo *info, guint32 seed)
{
  GstBuffer *from = frame_new (info, seed);
  GstVideoFrame src, dst;

  fail_unless (gst_video_frame_map (&src, info, from, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&dst, info, buffer, GST_MAP_WRITE));
  fail_unless (gst_video_frame_copy (&dst, &src));
  gst_video_frame_unmap (&dst);
  gst_video_frame_unmap (&src);
  gst_buffer_unref (from);
}

static GstBuffer *
take_frame (GstBufferPool *pool, const GstVideoInfo *info, guint32 seed)
{
  GstBuffer *buffer = NULL;

  fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &buffer, NULL), GST_FLOW_OK);
  fill_frame (buffer, info, seed);
  return buffer;
}

static void
assert_frame (GstBuffer *buffer, const GstVideoInfo *info, guint32 seed, const char *what)
{
  GstBuffer *frame = frame_new (info, seed);
  g_autoptr (Picture) expected = picture_read (info, frame);
  g_autoptr (Picture) got = picture_read (info, buffer);

  assert_pictures_equal (expected, got, what);
  gst_buffer_unref (frame);
}

static GstHarness *
start_round_trip (GstVideoInfo *info, const char *format, int width, int height)
{
  GstHarness *h = gst_harness_new_parse (round_trip);

  gst_harness_set_src_caps (h, frame_caps (format, width, height, FALSE));
  info_init (info, format, width, height);
  return h;
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

GST_START_TEST (consumer_holds_twenty_frames)
{
  static const char *const formats[] = {"RGBA", "NV12", "RGB"};

  for (guint k = 0; k < G_N_ELEMENTS (formats); k++) {
    GstVideoInfo info;
    GstHarness *h = start_round_trip (&info, formats[k], 65, 49);
    GstBuffer *held[20];

    for (guint32 i = 0; i < 60; i++) {
      GstBuffer **slot = &held[i % G_N_ELEMENTS (held)];

      if (i >= G_N_ELEMENTS (held)) {
        assert_frame (*slot, &info, i - G_N_ELEMENTS (held), "held");
        gst_buffer_unref (*slot);
      }
      *slot = push_and_pull (h, frame_new (&info, i));
    }
    gst_harness_teardown (h);
    /* They outlive the elements. */
    for (guint32 i = 40; i < 60; i++) {
      assert_frame (held[i % G_N_ELEMENTS (held)], &info, i, "held when the elements were gone");
      gst_buffer_unref (held[i % G_N_ELEMENTS (held)]);
    }
  }
}
GST_END_TEST

/* Frames on a stream that is held: they are pushed all the same, and one that does not depend on it can be mapped. */
GST_START_TEST (download_waits_for_nothing_and_a_map_for_its_copy_alone)
{
  GpuDevice *device = test_device_new ();
  GstHarness *h = harness_new_on ("gpudownload", device);
  g_autoptr (GstAllocator) allocator = gst_gpu_allocator_new (device);
  GpuStream *held = test_stream_new (device);
  GstBuffer *in[6], *out[6];
  GpuCacheStats before, after;
  GstVideoInfo info;
  TestDelay delay;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  for (guint i = 0; i < G_N_ELEMENTS (in); i++) {
    GstMemory *memory = gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, FALSE,
                                                       GPU_MEMORY_STREAM_ORDERED, NULL, NULL);

    fail_unless (memory != NULL);
    in[i] = test_buffer_new (memory);
    fill_frame (in[i], &info, i);
  }
  /* Before the stream is held all memory is there: pinning waits for the device. */
  for (guint i = 0; i < G_N_ELEMENTS (in); i++) {
    fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (in[i])), GST_FLOW_OK);
    out[i] = gst_harness_pull (h);
  }
  for (guint i = 0; i < G_N_ELEMENTS (in); i++) {
    assert_frame (out[i], &info, i, "before");
    gst_buffer_unref (out[i]);
  }

  /* The last frame is written on the held stream. */
  test_delay_begin (&delay, held);
  fail_unless (gpu_image_fill (held, gst_gpu_memory_get_image (gst_buffer_peek_memory (in[5], 0)), 77, NULL));
  before = test_stats (device, GPU_ACCOUNT_HOST);
  for (guint i = 0; i < G_N_ELEMENTS (in); i++) {
    fail_unless_equals_int (gst_harness_push (h, in[i]), GST_FLOW_OK);
    out[i] = gst_harness_pull (h);
  }
  after = test_stats (device, GPU_ACCOUNT_HOST);
  fail_unless_equals_uint64 (after.host_waits, before.host_waits);
  fail_unless_equals_uint64 (after.throttle_waits, before.throttle_waits);
  for (guint i = 0; i < 5; i++)
    assert_frame (out[i], &info, i, "not on the held stream");

  test_delay_open_later (&delay);
  {
    GstMapInfo map;

    fail_unless (gst_buffer_map (out[5], &map, GST_MAP_READ));
    fail_unless (test_delay_is_open (&delay), "a map did not wait for its frame");
    fail_unless_equals_int (map.data[0], 77);
    gst_buffer_unmap (out[5], &map);
  }
  for (guint i = 0; i < G_N_ELEMENTS (out); i++)
    gst_buffer_unref (out[i]);
  test_delay_end (&delay);
  gst_harness_teardown (h);
  gpu_stream_unref (held);
  gpu_device_unref (device);
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

/* Rule 27: on the lazy executor nothing is complete until somebody waits for it. */
GST_START_TEST (downloads_in_flight_are_bounded)
{
  GpuDevice *device = test_device_new ();
  GstHarness *up = harness_new_on ("gpuupload", device), *h = harness_new_on ("gpudownload", device);
  GstVideoInfo info;
  GstBuffer *in;
  guint64 waits;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (up, frame_caps ("RGB", 33, 17, FALSE));
  in = push_and_pull (up, frame_new (&info, 1));
  g_object_set (h->element, "frames-in-flight", 3, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  waits = test_stats (device, GPU_ACCOUNT_HOST).throttle_waits;
  for (guint i = 0; i < 20; i++) {
    fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (in)), GST_FLOW_OK);
    gst_buffer_unref (gst_harness_pull (h));
  }
  waits = test_stats (device, GPU_ACCOUNT_HOST).throttle_waits - waits;
  fail_unless (waits <= 17);
  if (test_is_lazy ())
    fail_unless (waits > 0, "twenty frames in flight");
  gst_buffer_unref (in);
  gst_harness_teardown (up);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* Every frame that was pushed comes out once and in order, whatever happens behind it. */
GST_START_TEST (flush_caps_and_eos_with_frames_in_flight)
{
  static const char *const formats[] = {"RGB", "NV12", "RGBA"};
  GstHarness *h = gst_harness_new_parse ("gpuupload ! gpuflip video-direction=identity ! gpudownload");
  GstBuffer *held[60];
  GstVideoInfo infos[60];
  GstSegment segment;
  guint n = 0;

  gst_segment_init (&segment, GST_FORMAT_TIME);
  for (guint round = 0; round < 6; round++) {
    const char *format = formats[round % G_N_ELEMENTS (formats)];
    GstVideoInfo info;

    info_init (&info, format, 33 + (int)round, 17);
    gst_harness_set_src_caps (h, frame_caps (format, 33 + (int)round, 17, FALSE));
    for (guint i = 0; i < 10; i++) {
      GstBuffer *frame = frame_new (&info, n);

      GST_BUFFER_PTS (frame) = n * GST_SECOND;
      infos[n] = info;
      fail_unless_equals_int (gst_harness_push (h, frame), GST_FLOW_OK);
      held[n++] = gst_harness_pull (h);
    }
    if (round % 2) {
      fail_unless (gst_harness_push_event (h, gst_event_new_flush_start ()));
      fail_unless (gst_harness_push_event (h, gst_event_new_flush_stop (TRUE)));
      fail_unless (gst_harness_push_event (h, gst_event_new_segment (&segment)));
    }
  }
  fail_unless (gst_harness_push_event (h, gst_event_new_eos ()));
  fail_unless (gst_harness_try_pull (h) == NULL);
  for (guint i = 0; i < n; i++) {
    fail_unless_equals_uint64 (GST_BUFFER_PTS (held[i]), i * GST_SECOND);
    assert_frame (held[i], &infos[i], i, "in flight");
    gst_buffer_unref (held[i]);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

typedef struct {
  GstClockTime last;
  guint n, out_of_order;
} Seen;

static void
see (GstElement *sink, GstBuffer *buffer, GstPad *pad, Seen *seen)
{
  if (GST_CLOCK_TIME_IS_VALID (seen->last) && GST_BUFFER_PTS (buffer) <= seen->last)
    seen->out_of_order++;
  seen->last = GST_BUFFER_PTS (buffer);
  seen->n++;
}

static GstPadProbeReturn
forget_what_was_flushed (GstPad *pad, GstPadProbeInfo *probe, gpointer seen)
{
  if (GST_EVENT_TYPE (GST_PAD_PROBE_INFO_EVENT (probe)) == GST_EVENT_FLUSH_STOP)
    *(Seen *)seen = (Seen){GST_CLOCK_TIME_NONE, 0, 0};
  return GST_PAD_PROBE_OK;
}

/* After the last seek all frames come out, and none of those from before. */
GST_START_TEST (seek_with_frames_in_flight)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (
      "videotestsrc ! video/x-raw,format=NV12,width=66,height=50,framerate=25/1 ! gpuupload ! queue ! "
      "gpuflip video-direction=90r ! gpudownload ! queue ! videoconvert ! video/x-raw,format=RGB ! "
      "fakesink name=sink signal-handoffs=true sync=false",
      &error);
  g_autoptr (GstElement) sink = NULL;
  g_autoptr (GstPad) pad = NULL;
  g_autoptr (GstBus) bus = NULL;
  g_autoptr (GstMessage) message = NULL;
  Seen seen = {GST_CLOCK_TIME_NONE, 0, 0};

  g_assert_no_error (error);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  pad = gst_element_get_static_pad (sink, "sink");
  bus = gst_element_get_bus (pipeline);
  g_signal_connect (sink, "handoff", G_CALLBACK (see), &seen);
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_EVENT_FLUSH, forget_what_was_flushed, &seen, NULL);
  gst_element_set_state (pipeline, GST_STATE_PAUSED);
  fail_unless_equals_int (gst_element_get_state (pipeline, NULL, NULL, 20 * GST_SECOND), GST_STATE_CHANGE_SUCCESS);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  for (guint i = 0; i < 6; i++) {
    g_usleep (1000 * i);
    fail_unless (gst_element_seek (pipeline, 1, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE,
                                   GST_SEEK_TYPE_SET, 0, i < 5 ? GST_SEEK_TYPE_NONE : GST_SEEK_TYPE_SET,
                                   4 * GST_SECOND));
  }
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  fail_unless_equals_int (seen.n, 100);
  fail_unless_equals_int (seen.out_of_order, 0);
  gst_object_unref (pipeline);
}
GST_END_TEST

GST_START_TEST (every_frame_comes_out_once)
{
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch (
      "videotestsrc num-buffers=200 ! video/x-raw,format=RGB,width=66,height=50 ! gpuupload ! queue ! "
      "gpuflip video-direction=180 ! gpudownload ! queue ! videoconvert ! video/x-raw,format=I420 ! "
      "fakesink name=sink signal-handoffs=true sync=false",
      &error);
  g_autoptr (GstElement) sink = NULL;
  g_autoptr (GstBus) bus = NULL;
  g_autoptr (GstMessage) message = NULL;
  Seen seen = {GST_CLOCK_TIME_NONE, 0, 0};

  g_assert_no_error (error);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  bus = gst_element_get_bus (pipeline);
  g_signal_connect (sink, "handoff", G_CALLBACK (see), &seen);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  fail_unless_equals_int (seen.n, 200);
  fail_unless_equals_int (seen.out_of_order, 0);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
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

/* A consumer that writes into what it got, after an element that does not know us has copied it. */
GST_START_TEST (copies_of_downloaded_frames)
{
  GstVideoInfo info;
  GstHarness *h = start_round_trip (&info, "RGB", 33, 17);
  GstBuffer *out = push_and_pull (h, frame_new (&info, 5)), *copy, *part;
  GstMapInfo map;

  copy = gst_buffer_copy_deep (out);
  part = gst_buffer_copy_region (out, GST_BUFFER_COPY_MEMORY | GST_BUFFER_COPY_DEEP, 30, 60);
  fill_frame (copy, &info, 6);
  assert_frame (out, &info, 5, "the frame");
  assert_frame (copy, &info, 6, "its copy");
  fail_unless (gst_buffer_map (part, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, 60);
  {
    guint8 bytes[60];

    gst_buffer_extract (out, 30, bytes, sizeof bytes);
    fail_unless (memcmp (map.data, bytes, sizeof bytes) == 0);
  }
  gst_buffer_unmap (part, &map);
  gst_buffer_unref (part);
  gst_buffer_unref (copy);
  gst_buffer_unref (out);
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
transfer_suite (void)
{
  Suite *s = suite_create ("pinned memory, uploads and downloads");
  TCase *tc = tcase_create ("general");

#ifdef TEST_BUS
  GST_ELEMENT_REGISTER (gpuupload, NULL);
  GST_ELEMENT_REGISTER (gpudownload, NULL);
  GST_ELEMENT_REGISTER (gpuflip, NULL);
#endif
  suite_add_tcase (s, tc);
  tcase_add_test (tc, frames_of_the_pool);
  tcase_add_test (tc, layout_is_as_software_asks);
  tcase_add_test (tc, foreign_layouts_in_pinned_memory);
  tcase_add_test (tc, layout_is_that_of_the_caps_where_no_meta_says_another);
  tcase_add_test (tc, source_reuses_its_frames_at_once);
  tcase_add_test (tc, source_keeps_its_frame_and_writes_it_again);
  tcase_add_test (tc, nobody_writes_into_a_frame_that_the_source_holds);
  tcase_add_test (tc, consumer_holds_twenty_frames);
  tcase_add_test (tc, download_waits_for_nothing_and_a_map_for_its_copy_alone);
  tcase_add_test (tc, upload_goes_on_beside_the_work_on_its_frames);
  tcase_add_test (tc, downloads_in_flight_are_bounded);
  tcase_add_test (tc, flush_caps_and_eos_with_frames_in_flight);
  tcase_add_test (tc, seek_with_frames_in_flight);
  tcase_add_test (tc, every_frame_comes_out_once);
  tcase_add_test (tc, limit_of_pinned_memory);
  tcase_add_test (tc, what_is_copied);
  tcase_add_test (tc, managed_memory_is_not_copied);
  tcase_add_test (tc, copies_of_downloaded_frames);
  tcase_add_test (tc, zeroed_memory_of_the_allocator);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, transfer_suite, "transfer");
}
