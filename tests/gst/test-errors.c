/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device calls that fail in mid-stream, each at each element, with frames in flight: one sentence on the bus that names
 * the call and the device and says what to do; no crash, leak or hang; and pipelines afterwards that give what they
 * gave before. The driver's own codes are in test-errors-cuda.c.
 */
#include "errors.h"

#include "play.h"
#include "transfer.h"

static GpuDevice *
open_device (const char *name)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device = gpu_device_open (name, &error);

  g_assert_no_error (error);
  return device;
}

static void
begin (GpuDevice *device, gconstpointer data)
{
  GpuCall call = GPOINTER_TO_UINT (data);

  /* A refusal of memory is asked about again. */
  gpu_device_fail (device, call, 0, call == GPU_CALL_ALLOC ? G_MAXUINT : 1);
}

static void
end (GpuDevice *device, gconstpointer data)
{
  gpu_device_fail (device, GPOINTER_TO_UINT (data), 0, 0);
}

/* What every element does for every frame, if nothing is there to be used again. */
static gboolean
must_fail (const Scene *scene, GpuDevice *device, GpuCall call)
{
  gboolean downloads = scene == &scenes[SCENE_DOWNLOAD];
  gboolean copies = downloads || scene == &scenes[SCENE_UPLOAD];

  /* What the host can address goes through gpudownload as it is. */
  if (downloads && gpu_device_is_host (device))
    return FALSE;
  return call == GPU_CALL_ALLOC || call == (copies ? GPU_CALL_COPY : GPU_CALL_LAUNCH);
}

/* __i__: the scene */
GST_START_TEST (calls_fail)
{
  static const char *const names[GPU_N_CALLS] = {"alloc",        "free",        "stream-create", "event-create",
                                                 "event-record", "event-query", "event-wait",    "stream-wait",
                                                 "copy",         "launch"};
  const Scene *scene = &scenes[__i__];
  g_autoptr (GBytes) expected = scene_play (scene);

  for (GpuCall call = 0; call < GPU_N_CALLS; call++) {
    g_autofree char *what = g_strdup_printf ("%s, %s", scene->name, names[call]);
    g_autofree char *sentence = NULL;
    const Failure failure = {begin, end, GUINT_TO_POINTER (call)};
    GpuDevice *device = open_device (NULL), *next;
    g_autoptr (GBytes) bytes = NULL;
    g_autoptr (GError) error = NULL;

    /* A refusal waits for pending work (rule 13). */
    error = scene_fail (scene, device, &failure, call != GPU_CALL_ALLOC);
    sentence = g_strdup_printf ("call %s on device %s was made to fail", names[call], gpu_device_name (device));
    if (error || must_fail (scene, device, call))
      error_expect (error, what, sentence, gpu_device_name (device),
                    call == GPU_CALL_ALLOC ? "use smaller frames" : "start new ones", NULL);
    fail_unless_equals_int (gpu_device_is_lost (device), error && call != GPU_CALL_ALLOC);

    next = open_device (NULL);
    fail_unless_equals_int (next != device, gpu_device_is_lost (device));
    gpu_device_unref (next);
    bytes = scene_play (scene);
    fail_unless (g_bytes_equal (bytes, expected), "%s: the next pipeline gives something else", what);
    gpu_device_unref (device);
  }
}
GST_END_TEST

#ifndef TEST_BUS
static void
wait_for_error (GstElement *pipeline, const char *word)
{
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstMessage) message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_ERROR);
  g_autoptr (GError) error = NULL;

  fail_unless (message != NULL);
  gst_message_parse_error (message, &error, NULL);
  error_expect (error, "the first run", word, NULL);
}

/* What the source takes from gpuupload's pool is not there: the source cannot say why, so gpuupload does, and first. */
GST_START_TEST (offered_pool_fails)
{
  GstElement *pipeline =
      gst_parse_launch ("videotestsrc num-buffers=20 ! video/x-raw,format=RGBA,width=64,height=48 ! gpuupload ! "
                        "fakesink sync=false",
                        NULL);
  GpuDevice *device = open_device (NULL);

  gpu_cache_clear (device, GPU_CACHE_ALL, NULL);
  gpu_device_fail (device, GPU_CALL_ALLOC, 0, G_MAXUINT);
  gst_element_set_state (pipeline, GST_STATE_PLAYING);
  wait_for_error (pipeline, "pinned host memory for a RGBA of 64x48");
  stop (pipeline);
  gpu_device_fail (device, GPU_CALL_ALLOC, 0, 0);
  gpu_device_unref (device);
}
GST_END_TEST

/* Stopped and started again, down to READY and down to NULL, the same pipeline takes a new device, although its bin
 * remembers a context of the old one. */
GST_START_TEST (same_pipeline_again)
{
  static const GstState states[] = {GST_STATE_READY, GST_STATE_NULL};

  for (guint i = 0; i < G_N_ELEMENTS (states); i++) {
    GstElement *pipeline = gst_parse_launch ("videotestsrc num-buffers=20 ! video/x-raw,format=RGBA ! gpuupload ! "
                                             "gpuflip name=it video-direction=90r ! gpudownload ! fakesink sync=false",
                                             NULL);
    g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
    g_autoptr (GstMessage) message = NULL;
    GpuDevice *device = open_device (NULL);

    gpu_device_fail (device, GPU_CALL_LAUNCH, 5, 1);
    fail_unless (gst_element_set_state (pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE);
    wait_for_error (pipeline, "call launch");
    fail_unless_equals_int (gst_element_set_state (pipeline, states[i]), GST_STATE_CHANGE_SUCCESS);
    gst_bus_set_flushing (bus, TRUE);
    gst_bus_set_flushing (bus, FALSE);
    fail_unless (gpu_device_is_lost (device));
    gpu_device_unref (device);

    fail_unless (gst_element_set_state (pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE);
    message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
    stop (pipeline);
  }
}
GST_END_TEST

/* A device that is lost while a pipeline is in READY: that takes a new one when it is started. */
GST_START_TEST (lost_in_ready)
{
  GstElement *pipeline = gst_parse_launch ("videotestsrc num-buffers=20 ! video/x-raw,format=RGBA ! gpuupload ! "
                                           "gpuflip video-direction=90r ! gpudownload ! fakesink sync=false",
                                           NULL);
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);

  for (guint i = 0; i < 2; i++) {
    g_autoptr (GstMessage) message = NULL;
    GpuDevice *device = open_device (NULL);

    fail_unless_equals_int (gst_element_set_state (pipeline, GST_STATE_READY), GST_STATE_CHANGE_SUCCESS);
    gpu_device_fail (device, GPU_CALL_STREAM_CREATE, 0, 1);
    fail_if (gpu_stream_new (device, false, NULL));
    fail_unless (gpu_device_is_lost (device));
    gpu_device_unref (device);

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  }
  stop (pipeline);
}
GST_END_TEST

/* Two pipelines on one device: when it is lost, each says so. One on another device plays on. */
GST_START_TEST (pipelines_side_by_side)
{
  static const char *const devices[] = {NULL, NULL, "cpu:9"};
  GstElement *pipelines[3];
  GpuDevice *device = open_device (NULL);
  g_autoptr (GstBus) bus = NULL;
  g_autoptr (GstMessage) message = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (pipelines); i++) {
    g_autofree char *launch = g_strdup_printf (
        "videotestsrc num-buffers=5000 ! video/x-raw,format=RGBA,width=64,height=48 ! gpuupload device=%s ! "
        "gpuflip video-direction=90r ! gpudownload ! fakesink sync=false",
        devices[i] ? devices[i] : gpu_device_name (device));

    pipelines[i] = gst_parse_launch (launch, NULL);
    gst_element_set_state (pipelines[i], GST_STATE_PLAYING);
  }
  for (guint i = 0; i < G_N_ELEMENTS (pipelines); i++)
    fail_unless_equals_int (gst_element_get_state (pipelines[i], NULL, NULL, 60 * GST_SECOND),
                            GST_STATE_CHANGE_SUCCESS);
  gpu_device_fail (device, GPU_CALL_LAUNCH, 0, 1);
  for (guint i = 0; i < 2; i++) {
    wait_for_error (pipelines[i], "call launch");
    stop (pipelines[i]);
  }

  gst_element_send_event (pipelines[2], gst_event_new_eos ());
  bus = gst_element_get_bus (pipelines[2]);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_EOS);
  stop (pipelines[2]);
  gpu_device_unref (device);
}
GST_END_TEST
#endif

/* Who maps a downloaded frame hears that it cannot, and not why; an element of the chain says it. */
GST_START_TEST (map_fails)
{
  GpuDevice *device = open_device (NULL);
  GstHarness *h = gst_harness_new_parse ("gpuupload ! gpuflip video-direction=90r ! gpudownload");
  g_autoptr (GstBus) bus = watch_bus (h);
  GstVideoInfo info;
  GstBuffer *out;
  TestDelay delay;
  GstMapInfo map;

  info_init (&info, "RGBA", 64, 48);
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 64, 48, FALSE));
  out = push_and_pull (h, frame_new (&info, 1));
  /* The next frame is on its way while it is mapped. */
  test_delay_begin (&delay, gst_gpu_memory_get_stream (gst_buffer_peek_memory (out, 0)));
  gst_buffer_unref (out);
  out = push_and_pull (h, frame_new (&info, 2));
  gpu_device_fail (device, GPU_CALL_EVENT_WAIT, 0, 1);
  fail_if (gst_buffer_map (out, &map, GST_MAP_READ));
  assert_message (bus, GST_MESSAGE_ERROR, "call event-wait", "start new ones", NULL);
  fail_if (gst_buffer_map (out, &map, GST_MAP_READ));
  assert_no_message (bus, GST_MESSAGE_ERROR);
  test_delay_end (&delay);
  gst_buffer_unref (out);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
  gpu_device_unref (device);
}
GST_END_TEST

/* A GPU's only, and the last: a kernel reads where no memory is. The driver says so at some later call, and then at
 * every one. Whether it opens the GPU again for this process is its own affair; the next pipeline works or says what to
 * do. */
GST_START_TEST (kernel_faults)
{
  GpuDevice *device = open_device (NULL), *again;
  g_autofree char *name = g_strdup (gpu_device_name (device));
  GpuStream *stream = test_stream_new (device);
  g_autoptr (GstAllocator) allocator = gst_gpu_allocator_new (device);
  GstHarness *h = harness_new_on ("gpuflip", device);
  g_autoptr (GstBus) bus = watch_bus (h);
  g_autoptr (GError) error = NULL;
  GstFlowReturn flow = GST_FLOW_OK;
  GstVideoInfo info;
  GpuImageSpec spec;
  GpuImage *image;
  GstBuffer *frame;

  info_init (&info, "RGBA", 64, 48);
  gpu_image_spec_init (&spec, GPU_FORMAT_RGBA, 64, 48, 0, &error);
  image =
      gpu_image_wrap (device, &spec, GPU_MEMORY_STREAM_ORDERED, GSIZE_TO_POINTER (0x10000), stream, NULL, NULL, &error);
  g_assert_no_error (error);
  GST_VIDEO_INFO_PLANE_STRIDE (&info, 0) = (gint)spec.stride[0];
  GST_VIDEO_INFO_SIZE (&info) = spec.size;
  frame = test_buffer_new (gst_gpu_allocator_take_image (GST_GPU_ALLOCATOR (allocator), image, &info, stream));
  g_object_set (h->element, "method", 1, NULL);
  gst_harness_set_src_caps (h, frame_caps ("RGBA", 64, 48, TRUE));
  /* It waits for the work of the eighth last frame, and so hears of it. */
  for (guint i = 0; i < 100 && flow == GST_FLOW_OK; i++) {
    flow = gst_harness_push (h, gst_buffer_ref (frame));
    if (flow == GST_FLOW_OK)
      gst_buffer_unref (gst_harness_pull (h));
  }
  fail_unless_equals_int (flow, GST_FLOW_ERROR);
  assert_message (bus, GST_MESSAGE_ERROR, "cu", " failed on ", "CUDA_ERROR_", name, "restart the program", NULL);
  assert_no_message (bus, GST_MESSAGE_ERROR);
  gst_buffer_unref (frame);
  gst_element_set_bus (h->element, NULL);
  gst_harness_teardown (h);
  gpu_stream_unref (stream);
  gst_clear_object (&allocator);
  gpu_device_unref (device);

  again = gpu_device_open (NULL, &error);
  if (again) {
    gpu_device_unref (again);
    g_bytes_unref (scene_play (&scenes[SCENE_UPLOAD]));
  } else {
    error_expect (error, name, "was lost and does not open again", "CUDA_ERROR_", "restart the program", NULL);
  }
  g_print ("# After a fault %s %s in the same process\n", name, again ? "opens again" : "does not open again");
  g_setenv ("GPUCACHE_DEVICE", "cpu", TRUE);
  g_bytes_unref (scene_play (&scenes[SCENE_UPLOAD]));
  g_setenv ("GPUCACHE_DEVICE", name, TRUE);
}
GST_END_TEST

/* The kernels of the emulated GPU (tests/emulator) are this process's own, and so would their faults be. */
static gboolean
is_real_gpu (void)
{
  GpuDevice *device = open_device (NULL);
  gboolean is_real =
      gpu_device_cuda_context (device) && !g_str_has_prefix (gpu_device_description (device), "Emulated");

  gpu_device_unref (device);
  return is_real;
}

static Suite *
errors_suite (void)
{
  Suite *suite = suite_create ("errors");
  TCase *tests = tcase_create ("errors");

  suite_add_tcase (suite, tests);
  register_elements ();
#ifdef TEST_BUS
  /* The others are the same there. */
  tcase_add_loop_test (tests, calls_fail, SCENE_UPLOAD, SCENE_UPLOAD + 1);
  tcase_add_loop_test (tests, calls_fail, SCENE_DOWNLOAD, SCENE_DOWNLOAD + 1);
#else
  tcase_add_loop_test (tests, calls_fail, 0, N_SCENES);
  tcase_add_test (tests, offered_pool_fails);
  tcase_add_test (tests, same_pipeline_again);
  tcase_add_test (tests, lost_in_ready);
  tcase_add_test (tests, pipelines_side_by_side);
#endif
  tcase_add_test (tests, map_fails);
  if (is_real_gpu ())
    tcase_add_test (tests, kernel_faults);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, errors_suite, "errors");
}
