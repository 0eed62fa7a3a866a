/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpuupload and gpudownload: every format comes back as it went in, whatever its layout; devices; bad input.
 */
#include "common.h"
#include "picture.h"

#include <gpucache/gstgpucache.h>
#include <gpucache/testing.h>

static const struct {
  int width, height;
} sizes[] = {{1, 1}, {1, 7}, {7, 1}, {2, 2}, {33, 17}, {64, 48}, {641, 481}};

static GstHarness *
round_trip_harness (const char *format, int width, int height)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload ! gpudownload");

  gst_harness_set_src_caps (h, frame_caps (format, width, height, FALSE));
  return h;
}

/* Fails unless software can take the frame's memory as it is. */
static void
assert_system_memory (GstBuffer *buffer)
{
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0);

  fail_unless_equals_int (gst_buffer_n_memory (buffer), 1);
  fail_unless (!gst_is_gpu_memory (memory) || gst_gpu_memory_is_host_addressable (memory));
}

static void
check_round_trip (const char *format, int width, int height, int pad)
{
  GstHarness *h = round_trip_harness (format, width, height);
  g_autofree char *what = g_strdup_printf ("%s %dx%d, padding %d", format, width, height, pad);
  g_autoptr (Picture) expected = NULL;
  g_autoptr (Picture) got = NULL;
  GstVideoInfo info;
  GstBuffer *in, *out;

  info_init (&info, format, width, height);
  in = pad ? frame_new_padded (&info, 3, pad) : frame_new (&info, 3);
  expected = picture_read (&info, in);
  out = push_and_pull (h, in);
  got = picture_read (&info, out);
  assert_pictures_equal (expected, got, what);
  assert_system_memory (out);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}

GST_START_TEST (every_format_and_size)
{
  for (guint i = 0; i < N_TEST_FORMATS; i++)
    for (guint k = 0; k < G_N_ELEMENTS (sizes); k++)
      check_round_trip (test_formats[i], sizes[k].width, sizes[k].height, 0);
}
GST_END_TEST

GST_START_TEST (strides_of_upstream)
{
  for (guint i = 0; i < N_TEST_FORMATS; i++) {
    check_round_trip (test_formats[i], 33, 17, 5);
    check_round_trip (test_formats[i], 1, 1, 64);
  }
}
GST_END_TEST

GST_START_TEST (crop_of_upstream)
{
  static const char *const formats[] = {"NV12", "I420", "RGB", "RGBA", "GRAY8"};

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    GstHarness *h = round_trip_harness (formats[i], 15, 9);
    g_autoptr (Picture) whole = NULL;
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstVideoInfo whole_info, info;
    GstVideoCropMeta *crop;
    GstBuffer *in, *out;

    info_init (&whole_info, formats[i], 33, 17);
    info_init (&info, formats[i], 15, 9);
    in = frame_new_padded (&whole_info, 5, 3);
    whole = picture_read (&whole_info, in);
    expected = picture_crop (whole, 4, 6, 15, 9);
    crop = gst_buffer_add_video_crop_meta (in);
    crop->x = 4;
    crop->y = 6;
    crop->width = 15;
    crop->height = 9;

    out = push_and_pull (h, in);
    fail_if (gst_buffer_get_video_crop_meta (out));
    got = picture_read (&info, out);
    assert_pictures_equal (expected, got, formats[i]);
    gst_buffer_unref (out);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

GST_START_TEST (crop_beyond_the_frame_is_refused)
{
  GstHarness *h = round_trip_harness ("RGB", 15, 9);
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;
  GstVideoCropMeta *crop;
  GstBuffer *in;

  info_init (&info, "RGB", 15, 9);
  in = frame_new (&info, 5);
  crop = gst_buffer_add_video_crop_meta (in);
  crop->x = 8;
  crop->width = 15;
  crop->height = 9;
  fail_unless_equals_int (gst_harness_push (h, in), GST_FLOW_ERROR);
  assert_message (bus, GST_MESSAGE_ERROR, "15x9", "(8, 0)", NULL);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (planes_in_memories_of_their_own)
{
  GstHarness *h = round_trip_harness ("I420", 33, 17);
  GstBuffer *whole, *in = gst_buffer_new (), *out;
  g_autoptr (Picture) expected = NULL;
  g_autoptr (Picture) got = NULL;
  GstVideoInfo info;
  gsize offset[4] = {0}, at = 0;

  info_init (&info, "I420", 33, 17);
  whole = frame_new (&info, 9);
  expected = picture_read (&info, whole);
  for (int i = 0; i < 3; i++) {
    gsize size = (i == 2 ? GST_VIDEO_INFO_SIZE (&info) : info.offset[i + 1]) - info.offset[i];
    guint8 *data = g_malloc (size);

    gst_buffer_extract (whole, info.offset[i], data, size);
    gst_buffer_append_memory (in, gst_memory_new_wrapped (0, data, size, 0, size, data, g_free));
    offset[i] = at;
    at += size;
  }
  gst_buffer_add_video_meta_full (in, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_FORMAT_I420, 33, 17, 3, offset, info.stride);
  gst_buffer_unref (whole);

  out = push_and_pull (h, in);
  got = picture_read (&info, out);
  assert_pictures_equal (expected, got, "I420 in three memories");
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (what_comes_out_of_upload)
{
  GstHarness *h = gst_harness_new ("gpuupload");
  GstVideoInfo info;
  GstBuffer *in, *out;
  g_autoptr (GstCaps) caps = NULL;
  GstMemory *memory;
  const GstVideoMeta *meta;

  gst_harness_set_src_caps (h, frame_caps ("NV12", 33, 17, FALSE));
  info_init (&info, "NV12", 33, 17);
  in = frame_new (&info, 1);
  GST_BUFFER_PTS (in) = 3 * GST_SECOND;
  GST_BUFFER_DURATION (in) = GST_SECOND / 30;
  GST_BUFFER_FLAG_SET (in, GST_BUFFER_FLAG_MARKER);
  gst_buffer_add_video_region_of_interest_meta (in, "face", 3, 4, 5, 6);
  gst_buffer_add_video_time_code_meta_full (in, 30, 1, NULL, GST_VIDEO_TIME_CODE_FLAGS_NONE, 1, 2, 3, 4, 0);

  out = push_and_pull (h, in);
  caps = gst_pad_get_current_caps (h->sinkpad);
  fail_unless (gst_caps_features_contains (gst_caps_get_features (caps, 0), GST_CAPS_FEATURE_MEMORY_GPU_CACHE));
  fail_unless_equals_int (gst_buffer_n_memory (out), 1);
  memory = gst_buffer_peek_memory (out, 0);
  fail_unless (gst_is_gpu_memory (memory));
  fail_unless (gst_gpu_memory_get_stream (memory) != NULL);
  meta = gst_buffer_get_video_meta (out);
  fail_unless (meta != NULL);
  fail_unless_equals_int (meta->stride[0], (int)gpu_image_spec (gst_gpu_memory_get_image (memory))->stride[0]);

  fail_unless_equals_uint64 (GST_BUFFER_PTS (out), 3 * GST_SECOND);
  fail_unless_equals_uint64 (GST_BUFFER_DURATION (out), GST_SECOND / 30);
  fail_unless (GST_BUFFER_FLAG_IS_SET (out, GST_BUFFER_FLAG_MARKER));
  fail_unless (gst_buffer_get_video_region_of_interest_meta_id (out, 0) != NULL);
  fail_unless (gst_buffer_get_video_time_code_meta (out) != NULL);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (upload_passes_frames_of_its_device)
{
  const char *const devices[] = {"auto", "cpu:0"};

  for (guint i = 0; i < G_N_ELEMENTS (devices); i++) {
    GstHarness *h = harness_new ("gpuupload", devices[i]);
    GstVideoInfo info;
    GstBuffer *in, *out;
    GstMemory *memory;

    info_init (&info, "RGBA", 33, 17);
    in = frame_upload (&info, frame_new (&info, 1), "cpu:0");
    memory = gst_buffer_peek_memory (in, 0);
    gst_harness_set_src_caps (h, frame_caps ("RGBA", 33, 17, TRUE));
    out = push_and_pull (h, in);
    fail_unless (gst_buffer_peek_memory (out, 0) == memory, "device=%s copied", devices[i]);
    gst_buffer_unref (out);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

GST_START_TEST (upload_copies_frames_of_another_device)
{
  GstHarness *h = harness_new ("gpuupload", "cpu:1");
  g_autoptr (Picture) expected = NULL;
  g_autoptr (Picture) got = NULL;
  GstVideoInfo info;
  GstBuffer *in, *out;
  GpuImage *image;

  info_init (&info, "NV12", 33, 17);
  in = frame_new (&info, 1);
  expected = picture_read (&info, in);
  in = frame_upload (&info, in, "cpu:0");
  gst_harness_set_src_caps (h, frame_caps ("NV12", 33, 17, TRUE));
  out = push_and_pull (h, in);
  image = gst_gpu_memory_get_image (gst_buffer_peek_memory (out, 0));
  fail_unless_equals_string (gpu_device_name (gpu_image_device (image)), "cpu:1");
  got = picture_read (&info, out);
  assert_pictures_equal (expected, got, "from cpu:0 to cpu:1");
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (download_takes_frames_of_any_device)
{
  GstHarness *h = harness_new ("gpudownload", "cpu:1");

  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  for (guint i = 0; i < 4; i++) {
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstVideoInfo info;
    GstBuffer *in, *out;

    info_init (&info, "RGB", 33, 17);
    in = frame_new (&info, i);
    expected = picture_read (&info, in);
    out = push_and_pull (h, frame_upload (&info, in, i % 2 ? "cpu:1" : "cpu:0"));
    got = picture_read (&info, out);
    assert_pictures_equal (expected, got, "downloaded");
    gst_buffer_unref (out);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (download_passes_system_memory)
{
  GstHarness *h = gst_harness_new ("gpudownload");
  GstVideoInfo info;
  GstBuffer *in;

  info_init (&info, "RGB", 33, 17);
  in = frame_new (&info, 1);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, FALSE));
  fail_unless (push_and_pull (h, gst_buffer_ref (in)) == in);
  gst_buffer_unref (in);
  gst_buffer_unref (in);
  gst_harness_teardown (h);
}
GST_END_TEST

/* A sink that takes anything and does not know GstVideoMeta gets plain frames. */
GST_START_TEST (download_lays_frames_out_as_caps_say)
{
  GstHarness *h = round_trip_harness ("RGB", 33, 17);
  g_autoptr (Picture) expected = NULL;
  GstVideoInfo info;
  GstBuffer *in, *out;
  GstMapInfo map;

  info_init (&info, "RGB", 33, 17);
  in = frame_new (&info, 1);
  expected = picture_read (&info, in);
  out = push_and_pull (h, in);
  fail_unless (gst_buffer_map (out, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, GST_VIDEO_INFO_SIZE (&info));
  for (int y = 0; y < 17; y++)
    fail_unless (!memcmp (map.data + y * info.stride[0], plane_at (&expected->plane[0], 0, y), 33 * 3));
  gst_buffer_unmap (out, &map);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST

static GstPadProbeReturn
offer_pool (GstPad *pad, GstPadProbeInfo *probe, gpointer pool)
{
  GstQuery *query = GST_PAD_PROBE_INFO_QUERY (probe);

  if (GST_QUERY_TYPE (query) != GST_QUERY_ALLOCATION)
    return GST_PAD_PROBE_OK;
  gst_query_add_allocation_pool (query, pool, 4096, 0, 0);
  gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  return GST_PAD_PROBE_HANDLED;
}

/* A pool of a type of its own is one that downstream insists on. */
static GstBufferPool *
special_pool_new (void)
{
  static GType type = 0;

  if (!type)
    type = g_type_register_static_simple (GST_TYPE_VIDEO_BUFFER_POOL, "SpecialPool", sizeof (GstVideoBufferPoolClass),
                                          NULL, sizeof (GstVideoBufferPool), NULL, (GTypeFlags)0);
  return gst_object_ref_sink (g_object_new (type, NULL));
}

GST_START_TEST (download_uses_the_pool_of_downstream)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload ! gpudownload");
  g_autoptr (GstBufferPool) pool = special_pool_new ();
  GstVideoInfo info;
  GstBuffer *out;

  gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, offer_pool, pool, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, FALSE));
  info_init (&info, "RGB", 33, 17);
  out = push_and_pull (h, frame_new (&info, 1));
  fail_unless (out->pool == pool);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST

/* Nor is device memory handed out under system caps, whatever downstream offers. */
GST_START_TEST (download_refuses_a_pool_of_device_memory)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload ! gpudownload");
  GpuDevice *device = gpu_device_open ("cpu:0", NULL);
  g_autoptr (GstBufferPool) pool = gst_gpu_buffer_pool_new (device);
  GstVideoInfo info;
  GstBuffer *out;

  gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, offer_pool, pool, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, FALSE));
  info_init (&info, "RGB", 33, 17);
  out = push_and_pull (h, frame_new (&info, 1));
  fail_if (out->pool == pool);
  assert_system_memory (out);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* And no system memory under the device's caps (G5). */
GST_START_TEST (upload_refuses_a_pool_of_system_memory)
{
  GstHarness *h = gst_harness_new ("gpuupload");
  g_autoptr (GstBufferPool) pool = gst_video_buffer_pool_new ();
  GstVideoInfo info;
  GstBuffer *out;

  gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, offer_pool, pool, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, FALSE));
  info_init (&info, "RGB", 33, 17);
  out = push_and_pull (h, frame_new (&info, 1));
  fail_unless (gst_is_gpu_memory (gst_buffer_peek_memory (out, 0)));
  gst_buffer_unref (out);
  gst_harness_teardown (h);
}
GST_END_TEST

/* A pool of the device that is active for frames of another size refuses the config; with a limit of its own that must
 * not be taken over either. */
GST_START_TEST (upload_replaces_an_active_pool)
{
  GpuDevice *device = test_device_new ();
  GstHarness *h = harness_new_on ("gpuupload", device);
  g_autoptr (GstBufferPool) pool = gst_gpu_buffer_pool_new (device);
  g_autoptr (GstCaps) other = frame_caps ("RGB", 64, 48, TRUE);
  GstStructure *config = gst_buffer_pool_get_config (pool);
  GstVideoInfo info;
  GstBuffer *out;

  gst_buffer_pool_config_set_params (config, other, 1, 0, 1);
  fail_unless (gst_buffer_pool_set_config (pool, config));
  fail_unless (gst_buffer_pool_set_active (pool, TRUE));

  gst_pad_add_probe (h->sinkpad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, offer_pool, pool, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, FALSE));
  info_init (&info, "RGB", 33, 17);
  out = push_and_pull (h, frame_new (&info, 1));
  fail_unless (gst_is_gpu_memory (gst_buffer_peek_memory (out, 0)));
  fail_unless_equals_int (gpu_image_spec (gst_gpu_memory_get_image (gst_buffer_peek_memory (out, 0)))->width, 33);
  fail_if (out->pool == pool);
  gst_buffer_unref (out);
  gst_harness_teardown (h);
  gst_buffer_pool_set_active (pool, FALSE);
  gst_clear_object (&pool);
  gpu_device_unref (device);
}
GST_END_TEST

GST_START_TEST (caps_change_in_mid_stream)
{
  GstHarness *h = round_trip_harness ("RGB", 33, 17);

  for (guint i = 0; i < 8; i++) {
    const char *format = test_formats[(i * 5) % N_TEST_FORMATS];
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstVideoInfo info;
    GstBuffer *in, *out;

    info_init (&info, format, 20 + (int)i, 30 - (int)i);
    gst_harness_set_src_caps (h, frame_caps (format, 20 + (int)i, 30 - (int)i, FALSE));
    in = frame_new (&info, i);
    expected = picture_read (&info, in);
    out = push_and_pull (h, in);
    got = picture_read (&info, out);
    assert_pictures_equal (expected, got, format);
    gst_buffer_unref (out);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (state_cycles)
{
  GstElement *pipeline = gst_parse_launch (
      "videotestsrc num-buffers=3 ! video/x-raw,width=64,height=48 ! gpuupload ! gpudownload ! fakesink sync=false",
      NULL);

  for (guint i = 0; i < 5; i++) {
    g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
    GstMessage *message;

    fail_unless (gst_element_set_state (pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE);
    message = gst_bus_timed_pop_filtered (bus, 10 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
    gst_message_unref (message);
    fail_unless_equals_int (gst_element_set_state (pipeline, i % 2 ? GST_STATE_READY : GST_STATE_NULL),
                            GST_STATE_CHANGE_SUCCESS);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}
GST_END_TEST

static void
check_device_fails (const char *device, const char *word)
{
  GstElement *element = gst_element_factory_make ("gpuupload", NULL);
  g_autoptr (GstBus) bus = gst_bus_new ();

  gst_element_set_bus (element, bus);
  g_object_set (element, "device", device, NULL);
  fail_unless_equals_int (gst_element_set_state (element, GST_STATE_READY), GST_STATE_CHANGE_FAILURE);
  assert_message (bus, GST_MESSAGE_ERROR, word, NULL);

  /* What was wrong can be put right. */
  gst_element_set_state (element, GST_STATE_NULL);
  g_object_set (element, "device", "cpu:0", NULL);
  fail_unless_equals_int (gst_element_set_state (element, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
  gst_element_set_state (element, GST_STATE_NULL);
  gst_element_set_bus (element, NULL);
  gst_object_unref (element);
}

GST_START_TEST (unknown_devices)
{
  GpuDevice *cuda = gpu_device_open ("cuda:0", NULL);

  check_device_fails ("toaster:1", "toaster:1");
  check_device_fails ("cpu:x", "cpu:x");
  check_device_fails ("cuda:999", "cuda:999");
  if (cuda)
    gpu_device_unref (cuda);
  else
    check_device_fails ("cuda:0", "cuda:0");
}
GST_END_TEST

GST_START_TEST (device_changes_in_ready_only)
{
  GstHarness *h = gst_harness_new ("gpuupload");
  g_autofree char *name = NULL;

  g_object_set (h->element, "device", "cpu:1", NULL); /* a harness's element plays */
  g_object_get (h->element, "device", &name, NULL);
  fail_if (g_str_equal (name, "cpu:1"));
  gst_harness_teardown (h);
}
GST_END_TEST

static void
note_device (GstElement *sink, GstBuffer *buffer, GstPad *pad, GHashTable *seen)
{
  GpuImage *image = gst_gpu_memory_get_image (gst_buffer_peek_memory (buffer, 0));

  g_hash_table_add (seen, g_strdup (gpu_device_name (gpu_image_device (image))));
}

/* Between two runs, with elements behind that have found theirs by the frames of the run before. */
GST_START_TEST (device_changes_between_runs)
{
  static const char *const devices[] = {"cpu:0", "cpu:1", "cpu:0"};
  g_autoptr (GError) error = NULL;
  GstElement *pipeline = gst_parse_launch ("videotestsrc num-buffers=5 ! video/x-raw,format=NV12,width=66,height=48 ! "
                                           "gpuupload name=upload ! gpuflip video-direction=90r ! "
                                           "fakesink name=sink signal-handoffs=true sync=false",
                                           &error);
  g_autoptr (GstElement) upload = NULL;
  g_autoptr (GstElement) sink = NULL;
  g_autoptr (GstBus) bus = NULL;

  g_assert_no_error (error);
  upload = gst_bin_get_by_name (GST_BIN (pipeline), "upload");
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  bus = gst_element_get_bus (pipeline);
  for (guint i = 0; i < G_N_ELEMENTS (devices); i++) {
    g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
    gulong handler = g_signal_connect (sink, "handoff", G_CALLBACK (note_device), seen);
    GstMessage *message;

    g_object_set (upload, "device", devices[i], "host-memory", i % 2, NULL);
    fail_unless (gst_element_set_state (pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE);
    message = gst_bus_timed_pop_filtered (bus, 20 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
    gst_message_unref (message);
    fail_unless_equals_int (gst_element_set_state (pipeline, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
    fail_unless_equals_int (g_hash_table_size (seen), 1);
    fail_unless (g_hash_table_contains (seen, devices[i]), "not on %s", devices[i]);
    g_signal_handler_disconnect (sink, handler);
  }
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}
GST_END_TEST

GST_START_TEST (truncated_frame)
{
  GstHarness *h = round_trip_harness ("RGB", 33, 17);
  g_autoptr (GstBus) bus = watch_bus (h);

  fail_unless_equals_int (gst_harness_push (h, gst_buffer_new_allocate (NULL, 33 * 17, NULL)), GST_FLOW_ERROR);
  assert_message (bus, GST_MESSAGE_ERROR, "561 bytes", "truncated", NULL);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (huge_frame)
{
  GstHarness *h = gst_harness_new ("gpuupload");
  g_autoptr (GstBus) bus = watch_bus (h);

  gst_harness_set_src_caps (h, frame_caps ("RGBA", G_MAXINT, G_MAXINT, FALSE));
  fail_unless (gst_harness_push (h, gst_buffer_new_allocate (NULL, 4, NULL)) != GST_FLOW_OK);
  assert_message (bus, GST_MESSAGE_ERROR, "fits in memory", NULL);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

GST_START_TEST (refused_memory_is_a_sentence)
{
  GpuDevice *device = gpu_cpu_device_new ("cpu:77", GPU_CPU_THREADS, 1024 * 1024);
  GstHarness *h = harness_new_on ("gpuupload", device);
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;

  info_init (&info, "RGBA", 1024, 1024);
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 1024, 1024, FALSE));
  fail_unless_equals_int (gst_harness_push (h, frame_new (&info, 1)), GST_FLOW_ERROR);
  assert_message (bus, GST_MESSAGE_ERROR, "1024x1024", "cpu:77", NULL);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* What lacks for a download is the host's memory, which how much the device has does not say. */
GST_START_TEST (refused_pinned_memory_is_a_sentence)
{
  GpuDevice *device = gpu_cpu_device_new ("cpu:78", GPU_CPU_THREADS, 0);
  GstHarness *up = harness_new_on ("gpuupload", device), *h = harness_new_on ("gpudownload", device);
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;
  GstBuffer *in;

  info_init (&info, "RGB", 33, 17);
  gst_harness_set_src_caps (up, frame_caps ("RGB", 33, 17, FALSE));
  in = push_and_pull (up, frame_new (&info, 1));
  gst_harness_set_src_caps (h, frame_caps ("RGB", 33, 17, TRUE));
  gpu_device_fail (device, GPU_CALL_ALLOC, 0, 1000);
  fail_unless_equals_int (gst_harness_push (h, gst_buffer_ref (in)), GST_FLOW_ERROR);
  assert_message (bus, GST_MESSAGE_ERROR, "pinned host memory", "33x17", "cpu:78", NULL);
  gpu_device_fail (device, GPU_CALL_ALLOC, 0, 0);
  gst_buffer_unref (in);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (up);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

GST_START_TEST (lost_device_is_a_sentence)
{
  GpuDevice *device = gpu_cpu_device_new ("cpu:78", GPU_CPU_THREADS, 0);
  GstHarness *h = harness_new_on ("gpuupload", device);
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;

  info_init (&info, "RGBA", 64, 64);
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 64, 64, FALSE));
  gst_buffer_unref (push_and_pull (h, frame_new (&info, 1)));
  gpu_device_fail (device, GPU_CALL_COPY, 0, 1);
  fail_unless_equals_int (gst_harness_push (h, frame_new (&info, 1)), GST_FLOW_ERROR);
  assert_message (bus, GST_MESSAGE_ERROR, "cpu:78", NULL);
  fail_unless_equals_int (gst_harness_push (h, frame_new (&info, 1)), GST_FLOW_ERROR);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

static void
count_warnings (const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer user_data)
{
  ++*(guint *)user_data;
}

GST_START_TEST (cache_limit)
{
  GstHarness *h = gst_harness_new ("gpuupload");
  GstVideoInfo info;
  gint64 before, limit;
  guint warnings = 0, id;
  GLogLevelFlags fatal;

  info_init (&info, "RGBA", 64, 64);
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 64, 64, FALSE));
  gst_buffer_unref (push_and_pull (h, frame_new (&info, 1)));
  g_object_get (h->element, "cache-limit", &before, NULL);
  fail_unless_equals_uint64 ((guint64)before, cache_stat (h->element, "limit-bytes"));

  /* While it plays; what is not in use goes at once. */
  fail_unless (cache_stat (h->element, "idle") + cache_stat (h->element, "pending") > 0);
  g_object_set (h->element, "cache-limit", (gint64)0, NULL);
  fail_unless_equals_uint64 (cache_stat (h->element, "limit-bytes"), 0);
  fail_unless_equals_uint64 (cache_stat (h->element, "idle-bytes"), 0);
  gst_buffer_unref (push_and_pull (h, frame_new (&info, 2)));
  g_object_set (h->element, "cache-limit", (gint64)(1 << 20), NULL);
  fail_unless_equals_uint64 (cache_stat (h->element, "limit-bytes"), 1 << 20);

  /* A negative one is refused by GLib with a warning, and the old one stays. */
  fatal = g_log_set_always_fatal (G_LOG_FATAL_MASK);
  id = g_log_set_handler ("GLib-GObject", G_LOG_LEVEL_WARNING, count_warnings, &warnings);
  gst_util_set_object_arg (G_OBJECT (h->element), "cache-limit", "-1");
  g_log_remove_handler ("GLib-GObject", id);
  g_log_set_always_fatal (fatal);
  fail_unless_equals_int (warnings, 1);
  g_object_get (h->element, "cache-limit", &limit, NULL);
  fail_unless_equals_int64 (limit, 1 << 20);

  g_object_set (h->element, "cache-limit", before, NULL);
  gst_harness_teardown (h);
}
GST_END_TEST

/* The library warns when the limit is set, not each time that the element starts. */
GST_START_TEST (limit_above_the_memory_warns_once)
{
  GpuDevice *device = gpu_device_open (NULL, NULL);
  GstElement *element = gst_element_factory_make ("gpuupload", NULL);
  GstContext *context = gst_gpu_context_new (device);
  const gint64 before = (gint64)MIN (gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE), (guint64)G_MAXINT64);
  GLogLevelFlags fatal = g_log_set_always_fatal (G_LOG_FATAL_MASK);
  guint warnings = 0, id = g_log_set_handler ("gpucache", G_LOG_LEVEL_WARNING, count_warnings, &warnings);

  gst_object_ref_sink (element);
  g_object_set (element, "cache-limit", G_MAXINT64 / 2, NULL);
  for (int i = 0; i < 3; i++) {
    gst_element_set_context (element, context);
    gst_element_set_state (element, GST_STATE_READY);
    gst_element_set_state (element, GST_STATE_NULL);
  }
  fail_unless_equals_int (warnings, 1);
  g_log_remove_handler ("gpucache", id);
  g_log_set_always_fatal (fatal);

  fail_unless (gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, before, NULL));
  gst_object_unref (element);
  gst_context_unref (context);
  gpu_device_unref (device);
}
GST_END_TEST

/* An element whose limit was not set leaves the one that is there alone (G9). */
GST_START_TEST (cache_limit_is_applied_only_when_set)
{
  GstHarness *one = gst_harness_new ("gpuupload"), *other;
  GstVideoInfo info;
  gint64 before;

  info_init (&info, "RGBA", 64, 64);
  gst_harness_set_src_caps (one, frame_caps ("RGBA", 64, 64, FALSE));
  gst_buffer_unref (push_and_pull (one, frame_new (&info, 1)));
  g_object_get (one->element, "cache-limit", &before, NULL);
  g_object_set (one->element, "cache-limit", (gint64)12345678, NULL);

  other = gst_harness_new ("gpuupload");
  gst_harness_set_src_caps (other, frame_caps ("RGBA", 64, 64, FALSE));
  gst_buffer_unref (push_and_pull (other, frame_new (&info, 1)));
  fail_unless_equals_uint64 (cache_stat (one->element, "limit-bytes"), 12345678);
  gst_harness_teardown (other);

  /* One that was set before there was a device is applied when there is. */
  other = gst_harness_new_parse ("gpuupload cache-limit=23456789");
  gst_harness_set_src_caps (other, frame_caps ("RGBA", 64, 64, FALSE));
  gst_buffer_unref (push_and_pull (other, frame_new (&info, 1)));
  fail_unless_equals_uint64 (cache_stat (one->element, "limit-bytes"), 23456789);
  gst_harness_teardown (other);

  g_object_set (one->element, "cache-limit", before, NULL);
  gst_harness_teardown (one);
}
GST_END_TEST

GST_START_TEST (caps_that_cannot_be_met)
{
  GstHarness *h = gst_harness_new ("gpuupload");

  gst_harness_set_src_caps_str (h, "video/x-raw,format=v210,width=64,height=64,framerate=30/1");
  fail_unless_equals_int (gst_harness_push (h, gst_buffer_new_allocate (NULL, 64 * 64 * 4, NULL)),
                          GST_FLOW_NOT_NEGOTIATED);
  gst_harness_teardown (h);
}
GST_END_TEST

static Suite *
gpuupload_suite (void)
{
  Suite *s = suite_create ("gpuupload and gpudownload");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_add_test (tc, every_format_and_size);
  tcase_add_test (tc, strides_of_upstream);
  tcase_add_test (tc, crop_of_upstream);
  tcase_add_test (tc, crop_beyond_the_frame_is_refused);
  tcase_add_test (tc, planes_in_memories_of_their_own);
  tcase_add_test (tc, what_comes_out_of_upload);
  tcase_add_test (tc, upload_passes_frames_of_its_device);
  tcase_add_test (tc, upload_copies_frames_of_another_device);
  tcase_add_test (tc, download_takes_frames_of_any_device);
  tcase_add_test (tc, download_passes_system_memory);
  tcase_add_test (tc, download_lays_frames_out_as_caps_say);
  tcase_add_test (tc, download_uses_the_pool_of_downstream);
  tcase_add_test (tc, download_refuses_a_pool_of_device_memory);
  tcase_add_test (tc, upload_refuses_a_pool_of_system_memory);
  tcase_add_test (tc, upload_replaces_an_active_pool);
  tcase_add_test (tc, caps_change_in_mid_stream);
  tcase_add_test (tc, state_cycles);
  tcase_add_test (tc, unknown_devices);
  tcase_add_test (tc, device_changes_in_ready_only);
  tcase_add_test (tc, device_changes_between_runs);
  tcase_add_test (tc, truncated_frame);
  tcase_add_test (tc, huge_frame);
  tcase_add_test (tc, refused_memory_is_a_sentence);
  tcase_add_test (tc, refused_pinned_memory_is_a_sentence);
  tcase_add_test (tc, lost_device_is_a_sentence);
  tcase_add_test (tc, cache_limit);
  tcase_add_test (tc, limit_above_the_memory_warns_once);
  tcase_add_test (tc, cache_limit_is_applied_only_when_set);
  tcase_add_test (tc, caps_that_cannot_be_met);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, gpuupload_suite, __FILE__);
}
