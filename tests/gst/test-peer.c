/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pipelines over several devices of one process: gpuupload copies frames from one to another without a wait on the
 * host, other elements refuse them, and a device that fails takes nobody with it.
 */
#include "../lib/context.h"
#include "common.h"
#include "picture.h"

#include "../emulator/open.h"

#include <string.h>

/* cpu:0 and cpu:1, or the first two GPUs; the second may be missing. */
static const char *names[2] = {"cpu:0", "cpu:1"};

static GpuDevice *
device_open (const char *name)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device = gpu_device_open (name, &error);

  g_assert_no_error (error);
  return device;
}

static GpuImage *
image_of (GstBuffer *buffer)
{
  return gst_gpu_memory_get_image (gst_buffer_peek_memory (buffer, 0));
}

static GstBuffer *
through (const char *description, const GstVideoInfo *info, const char *format, GstBuffer *frame)
{
  GstHarness *h = gst_harness_new_parse (description);
  GstBuffer *out;

  gst_harness_set_src_caps (h, frame_caps (format, GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info), FALSE));
  out = push_and_pull (h, frame);
  gst_harness_teardown (h);
  return out;
}

/* Every format, there and back with work on each device, gives the bytes that one device gives. */
GST_START_TEST (there_and_back)
{
  g_autofree char *two = g_strdup_printf ("gpuupload device=%s ! gpuflip method=2 ! gpuupload device=%s ! "
                                          "gpuflip method=4 ! gpuupload device=%s ! gpuflip method=5 ! gpudownload",
                                          names[0], names[1], names[0]);
  g_autofree char *one = g_strdup_printf ("gpuupload device=%s ! gpuflip method=2 ! gpuflip method=4 ! "
                                          "gpuflip method=5 ! gpudownload",
                                          names[0]);

  for (guint i = 0; i < N_TEST_FORMATS; i++) {
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstVideoInfo info;
    GstBuffer *buffer;

    info_init (&info, test_formats[i], 66, 34);
    buffer = through (one, &info, test_formats[i], frame_new (&info, i));
    expected = picture_read (&info, buffer);
    gst_buffer_unref (buffer);
    buffer = through (two, &info, test_formats[i], frame_new (&info, i));
    got = picture_read (&info, buffer);
    gst_buffer_unref (buffer);
    assert_pictures_equal (expected, got, test_formats[i]);
  }
}
GST_END_TEST

/* Only the rectangle goes over; one that begins between two chroma samples does, too, through the host. */
GST_START_TEST (cropped_frames)
{
  static const int origins[][2] = {{4, 6}, {3, 5}};

  for (guint i = 0; i < G_N_ELEMENTS (origins); i++) {
    GstHarness *h = harness_new ("gpuupload", names[1]);
    g_autoptr (Picture) whole = NULL;
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstVideoInfo whole_info, info;
    GstVideoCropMeta *crop;
    GstBuffer *in, *out;
    gboolean even = origins[i][0] % 2 == 0;

    info_init (&whole_info, even ? "NV12" : "GRAY8", 34, 18);
    info_init (&info, even ? "NV12" : "GRAY8", 14, 8);
    in = frame_new (&whole_info, 5);
    whole = picture_read (&whole_info, in);
    expected = picture_crop (whole, origins[i][0], origins[i][1], 14, 8);
    in = gst_buffer_make_writable (frame_upload (&whole_info, in, names[0]));
    crop = gst_buffer_add_video_crop_meta (in);
    crop->x = (guint)origins[i][0];
    crop->y = (guint)origins[i][1];
    crop->width = 14;
    crop->height = 8;
    gst_harness_set_src_caps (h, frame_caps (even ? "NV12" : "GRAY8", 14, 8, TRUE));
    out = push_and_pull (h, in);
    got = picture_read (&info, out);
    assert_pictures_equal (expected, got, "cropped");
    gst_buffer_unref (out);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* Frames that are in pinned memory of another device: that of its downloads, and of a pool that its uploads offered. */
GST_START_TEST (pinned_frames_of_another_device)
{
  static const int sizes[][2] = {{1, 1}, {1, 7}, {7, 1}, {33, 17}, {66, 34}};

  for (guint i = 0; i < N_TEST_FORMATS; i++)
    for (guint k = 0; k < G_N_ELEMENTS (sizes); k++) {
      g_autofree char *two =
          g_strdup_printf ("gpuupload device=%s ! gpuflip method=2 ! gpudownload ! gpuupload device=%s "
                           "! gpuflip method=2 ! gpudownload",
                           names[0], names[1]);
      g_autoptr (Picture) expected = NULL;
      g_autoptr (Picture) got = NULL;
      GstVideoInfo info;
      GstBuffer *buffer;

      info_init (&info, test_formats[i], sizes[k][0], sizes[k][1]);
      buffer = frame_new (&info, i);
      expected = picture_read (&info, buffer);
      buffer = through (two, &info, test_formats[i], buffer);
      got = picture_read (&info, buffer);
      gst_buffer_unref (buffer);
      assert_pictures_equal (expected, got, test_formats[i]);
    }
}
GST_END_TEST

/* Its memory is laid out in another way than the caps say, and no GstVideoMeta says so: bytes in a row behind a prefix,
 * and a padded frame's memory in a buffer of the source's own. */
GST_START_TEST (pinned_memory_of_another_layout)
{
  static const GstVideoAlignment align = {.padding_left = 32, .padding_right = 32, .padding_bottom = 16};
  GpuDevice *device = device_open (names[0]);

  for (guint padded = 0; padded < 2; padded++) {
    GstHarness *h = harness_new ("gpuupload", names[1]);
    g_autoptr (GstCaps) caps = frame_caps (padded ? "RGBA" : "GRAY8", 64, padded ? 64 : 1, FALSE);
    GstAllocationParams params = {.prefix = 16};
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstBuffer *frame, *in = gst_buffer_new (), *out;
    GstVideoInfo info;
    GstMemory *memory;
    GstMapInfo map;

    fail_unless (gst_video_info_from_caps (&info, caps));
    frame = frame_new (&info, 3);
    expected = picture_read (&info, frame);
    if (padded) {
      g_autoptr (GstBufferPool) pool = gst_gpu_buffer_pool_new_with_kind (device, GPU_MEMORY_HOST);
      GstStructure *config = gst_buffer_pool_get_config (pool);
      GstVideoAlignment copy = align;
      GstBuffer *taken;

      gst_buffer_pool_config_set_params (config, caps, (guint)GST_VIDEO_INFO_SIZE (&info), 0, 0);
      gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
      gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
      gst_buffer_pool_config_set_video_alignment (config, &copy);
      fail_unless (gst_buffer_pool_set_config (pool, config));
      fail_unless (gst_buffer_pool_set_active (pool, TRUE));
      fail_unless_equals_int (gst_buffer_pool_acquire_buffer (pool, &taken, NULL), GST_FLOW_OK);
      memory = gst_buffer_get_memory (taken, 0);
      gst_buffer_unref (taken);
      gst_buffer_pool_set_active (pool, FALSE);
    } else {
      g_autoptr (GstAllocator) allocator = gst_gpu_allocator_new_with_kind (device, GPU_MEMORY_HOST);

      memory = gst_allocator_alloc (allocator, GST_VIDEO_INFO_SIZE (&info), &params);
    }
    fail_unless (memory && gst_memory_map (memory, &map, GST_MAP_WRITE));
    gst_buffer_extract (frame, 0, map.data, GST_VIDEO_INFO_SIZE (&info));
    gst_memory_unmap (memory, &map);
    gst_buffer_append_memory (in, memory);

    gst_harness_set_src_caps (h, gst_caps_ref (caps));
    out = push_and_pull (h, in);
    got = picture_read (&info, out);
    assert_pictures_equal (expected, got, padded ? "padded memory" : "behind a prefix");
    gst_buffer_unref (out);
    gst_buffer_unref (frame);
    gst_harness_teardown (h);
  }
  gpu_device_unref (device);
}
GST_END_TEST

static void
count_host_ways (const gchar *domain, GLogLevelFlags level, const gchar *text, gpointer n)
{
  if (strstr (text, "through the host") && strstr (text, names[0]) && strstr (text, names[1]))
    ++*(guint *)n;
}

/* Rule 26: a frame that cannot go over as an image goes through the host, which is said, once. */
GST_START_TEST (through_the_host_is_said_once)
{
  GstHarness *h = harness_new ("gpuupload", names[1]);
  GstVideoInfo whole_info, info;
  guint n = 0, id;

  info_init (&whole_info, "GRAY8", 33, 18);
  info_init (&info, "GRAY8", 33, 17);
  gst_harness_set_src_caps (h, frame_caps ("GRAY8", 33, 17, TRUE));
  id = g_log_set_handler ("gpucache", G_LOG_LEVEL_MESSAGE, count_host_ways, &n);
  for (guint i = 0; i < 3; i++) {
    GstBuffer *in = frame_new (&whole_info, i), *out;
    g_autoptr (Picture) whole = picture_read (&whole_info, in);
    g_autoptr (Picture) expected = picture_crop (whole, 0, 1, 33, 17);
    g_autoptr (Picture) got = NULL;
    GstVideoMeta *meta;

    /* All rows but the first, by a layout that the memory was not made for. */
    in = gst_buffer_make_writable (frame_upload (&whole_info, in, names[0]));
    meta = gst_buffer_get_video_meta (in);
    meta->offset[0] += (gsize)meta->stride[0];
    meta->height = 17;
    out = push_and_pull (h, in);
    got = picture_read (&info, out);
    assert_pictures_equal (expected, got, "through the host");
    gst_buffer_unref (out);
  }
  g_log_remove_handler ("gpucache", id);
  fail_unless_equals_int (n, 1);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Pinned frames of elements that are gone are freed once they are seen to be complete, whoever sees it, and a driver
 * frees such memory only when all streams are (rule 6). Afterwards none of earlier tests is left. */
static void
clear (GpuDevice *device)
{
  g_autoptr (GError) error = NULL;

  gpu_cache_clear (device, GPU_CACHE_ALL, &error);
  g_assert_no_error (error);
}

/* A frame that is complete, and of whose upload nothing is left, either. */
static GstBuffer *
settled_upload (const GstVideoInfo *info, GpuDevice *device)
{
  GstBuffer *frame = frame_upload (info, frame_new (info, 1), gpu_device_name (device));
  g_autoptr (GError) error = NULL;

  gpu_image_wait (image_of (frame), GPU_ACCESS_WRITE, &error);
  g_assert_no_error (error);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_HOST).pending, 0);
  return frame;
}

/* The frame's last write has not run, and the element is back all the same, with the frame let go of. */
GST_START_TEST (copy_does_not_wait)
{
  GpuDevice *from = device_open (names[0]), *to = device_open (names[1]);
  GstHarness *h = harness_new ("gpuupload", names[1]);
  g_autoptr (GError) error = NULL;
  g_autoptr (Picture) expected = NULL;
  g_autoptr (Picture) got = NULL;
  GstVideoInfo info;
  GstBuffer *in, *out;
  GpuStream *stream;
  TestDelay delay;
  guint64 host_waits;

  info_init (&info, "GRAY8", 64, 48);
  gst_harness_set_src_caps (h, frame_caps ("GRAY8", 64, 48, TRUE));
  clear (to);
  gst_buffer_unref (push_and_pull (h, frame_upload (&info, frame_new (&info, 1), names[0]))); /* opens the way */
  clear (from);
  in = settled_upload (&info, from);
  stream = gpu_stream_ref (gst_gpu_memory_get_stream (gst_buffer_peek_memory (in, 0)));
  test_delay_begin (&delay, stream);
  gpu_image_fill (stream, image_of (in), 0x42, &error);
  g_assert_no_error (error);
  host_waits = test_stats (from, GPU_ACCOUNT_DEVICE).host_waits + test_stats (to, GPU_ACCOUNT_DEVICE).host_waits;
  out = push_and_pull (h, in);
  fail_if (test_delay_is_open (&delay));
  fail_unless_equals_uint64 (host_waits, test_stats (from, GPU_ACCOUNT_DEVICE).host_waits +
                                             test_stats (to, GPU_ACCOUNT_DEVICE).host_waits);
  fail_unless_equals_int (test_stats (from, GPU_ACCOUNT_DEVICE).pending > 0, TRUE);
  test_delay_open_later (&delay);
  expected = picture_new (GST_VIDEO_FORMAT_GRAY8, 64, 48);
  memset (expected->plane[0].data, 0x42, 64 * 48);
  got = picture_read (&info, out);
  assert_pictures_equal (expected, got, "behind a gate");
  gst_buffer_unref (out);
  test_delay_end (&delay);
  gpu_stream_unref (stream);
  gst_harness_teardown (h);
  gpu_device_unref (from);
  gpu_device_unref (to);
}
GST_END_TEST

/* Frames that go over all the time: each device is asked for as many as may be in flight and no more, nobody waits on
 * the host but for being ahead, and each device counts its own. */
GST_START_TEST (steady_state)
{
  GpuDevice *device[2] = {device_open (names[0]), device_open (names[1])};
  g_autofree char *description =
      g_strdup_printf ("gpuflip device=%s method=2 ! gpuupload device=%s ! gpuflip method=2", names[0], names[1]);
  GstHarness *h = gst_harness_new_parse (description);
  GpuCacheStats before[2];
  GstVideoInfo info;
  GstBuffer *in;

  info_init (&info, "RGBA", 96, 80); /* a shape that no other test has */
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 96, 80, TRUE));
  for (guint d = 0; d < 2; d++)
    clear (device[d]);
  in = settled_upload (&info, device[0]);
  gst_buffer_unref (push_and_pull (h, gst_buffer_ref (in)));
  for (guint d = 0; d < 2; d++)
    before[d] = test_stats (device[d], GPU_ACCOUNT_DEVICE);
  for (guint i = 0; i < 200; i++)
    gst_buffer_unref (push_and_pull (h, gst_buffer_ref (in)));
  for (guint d = 0; d < 2; d++) {
    GpuCacheStats stats = test_stats (device[d], GPU_ACCOUNT_DEVICE);
    guint64 misses = stats.misses - before[d].misses;

    /* Eight in each of the three elements, and one on its way. */
    fail_unless (misses <= 25, "%" G_GUINT64_FORMAT " allocations on %s", misses, names[d]);
    fail_unless_equals_uint64 (stats.host_waits, before[d].host_waits);
    fail_unless (stats.live_bytes + stats.pending_bytes + stats.idle_bytes > 0);
  }
  gst_buffer_unref (in);
  gst_harness_teardown (h);
  for (guint d = 0; d < 2; d++)
    gpu_device_unref (device[d]);
}
GST_END_TEST

/* Elements that are not there for copying refuse, in one sentence that names both. */
GST_START_TEST (others_refuse)
{
  static const char *const factories[] = {"gpuflip", "gpuresize", "gpunormalize"};

  for (guint i = 0; i < G_N_ELEMENTS (factories); i++) {
    GstHarness *h = harness_new (factories[i], names[1]);
    g_autoptr (GstBus) bus = watch_bus (h);
    GstVideoInfo info;

    info_init (&info, "RGB", 33, 17);
    if (i == 0)
      g_object_set (h->element, "method", 2, NULL);
    if (i == 1)
      gst_harness_set_sink_caps (h, frame_caps ("RGB", 20, 10, TRUE));
    if (i == 2)
      g_object_set (h->element, "shift", 1.f, NULL);
    gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
    fail_unless_equals_int (gst_harness_push (h, frame_upload (&info, frame_new (&info, 1), names[0])), GST_FLOW_ERROR);
    assert_message (bus, GST_MESSAGE_ERROR, names[0], names[1], "gpuupload", NULL);
    gst_element_set_bus (h->element, NULL);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

/* A device beside names[0] on the same GPU, over a context of the application's own. */
static GpuDevice *
own_context_new (void)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device;

  if (g_str_has_prefix (names[0], "cpu"))
    return gpu_cpu_device_new ("cpu:0/1", test_is_lazy () ? GPU_CPU_LAZY : GPU_CPU_THREADS, 0);
  device = gpu_device_open_cuda_context (test_cuda_context (0), &error);
  g_assert_no_error (error);
  return device;
}

/* Two devices of one GPU are as apart as two GPUs: gpuupload copies from one to the other, there and back, others
 * refuse and name both. */
GST_START_TEST (own_context_beside_the_primary_one)
{
  GpuDevice *primary = device_open (names[0]), *own = own_context_new ();
  const char *own_name = gpu_device_name (own);
  g_autoptr (GstContext) context = gst_gpu_context_new (own);
  GstHarness *there = harness_new_full ("gpuupload", own_name, context), *back = harness_new ("gpuupload", names[0]);
  GstHarness *flip = harness_new_full ("gpuflip", own_name, context);
  g_autoptr (GstBus) bus = watch_bus (flip);
  GstVideoInfo info;

  info_init (&info, "NV12", 66, 34);
  gst_harness_set_src_caps (there, frame_caps ("NV12", 66, 34, TRUE));
  gst_harness_set_src_caps (back, frame_caps ("NV12", 66, 34, TRUE));
  for (guint i = 0; i < 20; i++) {
    GstBuffer *in = frame_new (&info, i), *out;
    g_autoptr (Picture) expected = picture_read (&info, in);
    g_autoptr (Picture) got = NULL;

    in = frame_upload (&info, in, names[0]);
    fail_unless (gpu_image_device (image_of (in)) == primary);
    out = push_and_pull (there, in);
    fail_unless (gpu_image_device (image_of (out)) == own);
    out = push_and_pull (back, out);
    fail_unless (gpu_image_device (image_of (out)) == primary);
    got = picture_read (&info, out);
    assert_pictures_equal (expected, got, "over another context");
    gst_buffer_unref (out);
  }
  fail_unless (test_stats (own, GPU_ACCOUNT_DEVICE).peak_bytes > 0);
  fail_unless_equals_uint64 (test_stats (own, GPU_ACCOUNT_DEVICE).host_waits, 0);

  g_object_set (flip->element, "method", 2, NULL);
  gst_harness_set_src_caps (flip, frame_caps ("NV12", 66, 34, TRUE));
  fail_unless_equals_int (gst_harness_push (flip, frame_upload (&info, frame_new (&info, 1), names[0])),
                          GST_FLOW_ERROR);
  {
    g_autofree char *its = g_strdup_printf ("of device %s cannot", names[0]);
    g_autofree char *ours = g_strdup_printf ("on device %s:", own_name);

    assert_message (bus, GST_MESSAGE_ERROR, its, ours, NULL);
  }
  gst_element_set_bus (flip->element, NULL);
  gst_harness_teardown (flip);
  gst_harness_teardown (back);
  gst_harness_teardown (there);
  gpu_device_unref (primary);
  gpu_device_unref (own);
}
GST_END_TEST

static void
lose (const char *name)
{
  GpuDevice *device = device_open (name);
  GpuStream *stream = test_stream_new (device);
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;
  GpuImage *image;

  gpu_image_spec_init (&spec, GPU_FORMAT_GRAY8, 8, 8, 0, &error);
  image = gpu_image_acquire (device, &spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  gpu_device_fail (device, GPU_CALL_COPY, 0, 1);
  fail_if (gpu_image_fill (stream, image, 0, &error));
  fail_unless (gpu_device_is_lost (device));
  gpu_image_unref (image);
  gpu_stream_unref (stream);
  gpu_device_unref (device);
}

/* A device fails: who reads from it or copies to it says so, and names it; a chain over others goes on. */
GST_START_TEST (one_device_fails)
{
  GstHarness *to_lost = harness_new ("gpuupload", "cpu:31"), *to_other = harness_new ("gpuupload", "cpu:32");
  g_autoptr (GstBus) lost_bus = watch_bus (to_lost), other_bus = watch_bus (to_other);
  GstVideoInfo info;
  GstBuffer *on_lost, *on_good;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (to_lost, frame_caps ("RGB", 33, 17, TRUE));
  gst_harness_set_src_caps (to_other, frame_caps ("RGB", 33, 17, TRUE));
  on_good = frame_upload (&info, frame_new (&info, 1), "cpu:30");
  on_lost = push_and_pull (to_lost, gst_buffer_ref (on_good));
  gst_buffer_unref (push_and_pull (to_other, gst_buffer_ref (on_lost)));
  lose ("cpu:31");

  fail_unless_equals_int (gst_harness_push (to_lost, gst_buffer_ref (on_good)), GST_FLOW_ERROR);
  assert_message (lost_bus, GST_MESSAGE_ERROR, "cpu:31", NULL);
  fail_unless_equals_int (gst_harness_push (to_other, on_lost), GST_FLOW_ERROR);
  assert_message (other_bus, GST_MESSAGE_ERROR, "cpu:31", NULL);

  for (guint i = 0; i < 20; i++) {
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstBuffer *in = frame_new (&info, i), *out;

    expected = picture_read (&info, in);
    out = push_and_pull (to_other, frame_upload (&info, in, "cpu:30"));
    got = picture_read (&info, out);
    assert_pictures_equal (expected, got, "beside a lost device");
    gst_buffer_unref (out);
  }
  assert_no_message (other_bus, GST_MESSAGE_ERROR);
  gst_buffer_unref (on_good);
  gst_element_set_bus (to_lost->element, NULL);
  gst_element_set_bus (to_other->element, NULL);
  gst_harness_teardown (to_lost);
  gst_harness_teardown (to_other);
}
GST_END_TEST

/* One element with frames of two devices, of which one fails: those of the other go on, although the work that the
 * element waits for before it submits more (rule 27) is in part that of the lost one. */
GST_START_TEST (downloads_of_others_go_on_beside_a_lost_device)
{
  GstHarness *h = harness_new ("gpudownload", "cpu:34");
  GstVideoInfo info;

  info_init (&info, "RGB", 33, 17);
  g_object_set (h->element, "frames-in-flight", 3, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  for (guint i = 0; i < 3; i++)
    gst_buffer_unref (push_and_pull (h, frame_upload (&info, frame_new (&info, i), "cpu:34")));
  lose ("cpu:34");
  for (guint i = 0; i < 8; i++) {
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstBuffer *in = frame_new (&info, i), *out;

    expected = picture_read (&info, in);
    out = push_and_pull (h, frame_upload (&info, in, "cpu:35"));
    got = picture_read (&info, out);
    assert_pictures_equal (expected, got, "downloaded beside a lost device");
    gst_buffer_unref (out);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
peer_suite (void)
{
  Suite *suite = suite_create ("peer");
  TCase *tests = tcase_create ("peer");

  suite_add_tcase (suite, tests);
  tcase_add_test (tests, own_context_beside_the_primary_one);
  if (!names[1])
    return suite;
  tcase_add_test (tests, there_and_back);
  tcase_add_test (tests, cropped_frames);
  tcase_add_test (tests, pinned_frames_of_another_device);
  tcase_add_test (tests, pinned_memory_of_another_layout);
  tcase_add_test (tests, through_the_host_is_said_once);
  tcase_add_test (tests, copy_does_not_wait);
  tcase_add_test (tests, steady_state);
  tcase_add_test (tests, others_refuse);
  tcase_add_test (tests, one_device_fails);
  tcase_add_test (tests, downloads_of_others_go_on_beside_a_lost_device);
  return suite;
}

int
main (int argc, char **argv)
{
  const char *name = g_getenv ("GPUCACHE_DEVICE");

  open_fake_cuda ();
  if (name && g_str_has_prefix (name, "cuda")) {
    GpuDevice *second = gpu_device_open ("cuda:1", NULL);

    names[0] = "cuda:0";
    names[1] = second ? "cuda:1" : NULL;
    if (second)
      gpu_device_unref (second);
  }
  return test_run (argc, argv, peer_suite, "peer");
}
