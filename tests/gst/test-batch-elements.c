/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Elements that work on batches: what they make of each frame is what they make of it alone, as frames and as a tensor;
 * what they refuse; and that they ask for no memory once they run.
 */
#include "batch.h"

#include <gst/check/gstharness.h>

/* A checksum of each frame of each stream, in order. */
static void
take_frame (GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data)
{
  GPtrArray *sums = data;
  g_autofree gchar *sum = NULL;
  GstMapInfo map;

  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  sum = g_compute_checksum_for_data (G_CHECKSUM_SHA1, map.data, map.size);
  g_ptr_array_add (sums, g_strdup_printf ("%" GST_TIME_FORMAT " %s", GST_TIME_ARGS (GST_BUFFER_PTS (buffer)), sum));
  gst_buffer_unmap (buffer, &map);
}

#define STREAMS 4

/* Odd corners, so that chroma is sited between what the frames have. */
static GstPadProbeReturn
crop_frame (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstBuffer *buffer = gst_buffer_make_writable (GST_PAD_PROBE_INFO_BUFFER (info));
  GstVideoCropMeta *crop = gst_buffer_add_video_crop_meta (buffer);

  info->data = buffer;
  crop->x = 3, crop->y = 5, crop->width = 21, crop->height = 13;
  return GST_PAD_PROBE_OK;
}

/* Whether frames have a crop rectangle behind gpuupload. */
static gboolean cropped;

static void
crop_stream (GstElement *pipeline, guint i)
{
  g_autofree gchar *name = g_strdup_printf ("up%u", i);
  GstElement *upload = gst_bin_get_by_name (GST_BIN (pipeline), name);
  GstPad *pad = gst_element_get_static_pad (upload, "src");

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, crop_frame, NULL, NULL);
  gst_object_unref (pad);
  gst_object_unref (upload);
}

static void
run_streams (const gchar *line, GPtrArray *sums[STREAMS])
{
  GstElement *pipeline;
  g_autoptr (GError) error = NULL;

  pipeline = gst_parse_launch (line, &error);
  g_assert_no_error (error);
  for (guint i = 0; i < STREAMS; i++) {
    g_autofree gchar *name = g_strdup_printf ("out%u", i);
    GstElement *sink = gst_bin_get_by_name (GST_BIN (pipeline), name);

    sums[i] = g_ptr_array_new_with_free_func (g_free);
    g_object_set (sink, "signal-handoffs", TRUE, NULL);
    g_signal_connect (sink, "handoff", G_CALLBACK (take_frame), sums[i]);
    gst_object_unref (sink);
    if (cropped)
      crop_stream (pipeline, i);
  }
  play_to_end (pipeline);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
}

/* Four cameras of different sizes and formats, one of which ends early, and what is done with each alone before. No
 * size, turned or not, has rows with padding, in which anything may be. */
typedef struct {
  const gchar *source[STREAMS];
  const gchar *before[STREAMS];
} Cameras;

#define BALL "videotestsrc num-buffers=5 pattern=ball ! video/x-raw,width=320,height=240,format="
#define SMPTE "videotestsrc num-buffers=5 pattern=smpte ! video/x-raw,width=100,height=60,format="
#define GRADIENT "videotestsrc num-buffers=3 pattern=gradient ! video/x-raw,width=64,height=480,format="
#define SPOKES "videotestsrc num-buffers=5 pattern=spokes ! video/x-raw,width=36,height=24,format="
#define TENSOR "other/tensors(memory:GPUCache)"

static const Cameras any = {{BALL "RGBA", SMPTE "NV12", GRADIENT "RGB", SPOKES "GRAY8"},
                            {"identity", "identity", "identity", "identity"}};

/* Pictures that are tensors in all but name. */
static const Cameras rgb = {{BALL "RGBx", SMPTE "BGR", GRADIENT "RGB", SPOKES "GBR"},
                            {"identity", "identity", "identity", "identity"}};

static const Cameras tensors = {
    {BALL "RGBx", SMPTE "BGR", GRADIENT "RGBA", SPOKES "GRAY8"},
    {"gpunormalize scale=\"<0.5>\" ! " TENSOR ",types=float32", "gpunormalize layout=chw ! " TENSOR ",types=float16",
     "gpunormalize ! " TENSOR ",types=uint8", "gpunormalize shift=0.3 ! " TENSOR ",types=float32"}};

/* Both sorts. */
static const Cameras mixed = {{BALL "RGBx", SMPTE "BGR", GRADIENT "RGB", SPOKES "GBR"},
                              {"identity", "gpunormalize layout=chw ! " TENSOR ",types=uint8", "identity",
                               "gpunormalize ! " TENSOR ",types=uint8"}};

/* @one: the elements for a frame; @all: the same for a batch. */
static void
compare_cameras (const Cameras *cameras, const gchar *one, const gchar *all)
{
  g_autoptr (GString) alone = g_string_new (NULL), together = g_string_new (NULL);
  GPtrArray *expected[STREAMS], *sums[STREAMS];

  g_string_append_printf (together, "gpubatch name=batch ! %s ! gpuunbatch name=unbatch ", all);
  for (guint i = 0; i < STREAMS; i++) {
    g_string_append_printf (alone, "%s ! gpuupload name=up%u ! %s ! %s ! gpudownload ! fakesink name=out%u ",
                            cameras->source[i], i, cameras->before[i], one, i);
    g_string_append_printf (together,
                            "%s ! gpuupload name=up%u ! %s ! batch.sink_%u "
                            "unbatch.src_%u ! queue ! gpudownload ! fakesink name=out%u async=false ",
                            cameras->source[i], i, cameras->before[i], i, i, i);
  }
  run_streams (alone->str, expected);
  run_streams (together->str, sums);
  for (guint i = 0; i < STREAMS; i++) {
    fail_unless_equals_int (expected[i]->len, i == 2 ? 3 : 5);
    fail_unless_equals_int (sums[i]->len, expected[i]->len);
    for (guint n = 0; n < sums[i]->len; n++)
      fail_unless (g_str_equal (sums[i]->pdata[n], expected[i]->pdata[n]), "%s: frame %u of stream %u: %s, not %s", all,
                   n, i, (gchar *)sums[i]->pdata[n], (gchar *)expected[i]->pdata[n]);
    g_ptr_array_unref (sums[i]);
    g_ptr_array_unref (expected[i]);
  }
}

static void
compare_chains (const gchar *one, const gchar *all)
{
  compare_cameras (&any, one, all);
}

GST_START_TEST (test_same_results)
{
  compare_chains ("gpuflip video-direction=90r", "gpuflip video-direction=90r");
  compare_chains ("gpunormalize scale=\"<0.5>\" shift=20", "gpunormalize scale=\"<0.5>\" shift=20");
  compare_chains ("gpuresize ! video/x-raw(memory:GPUCache),width=96,height=64,pixel-aspect-ratio=1/1",
                  "gpuresize ! video/x-gpu-batch(memory:GPUCache),width=96,height=64,pixel-aspect-ratio=1/1");
  compare_chains ("gpuresize ! video/x-raw(memory:GPUCache),width=96,height=64",
                  "gpuresize ! video/x-gpu-batch(memory:GPUCache),width=96,height=64");
  compare_chains ("gpuflip video-direction=horiz ! gpuresize method=nearest-neighbour ! "
                  "video/x-raw(memory:GPUCache),width=52,height=72 ! gpunormalize base=\"<7>\" ! gpuflip "
                  "video-direction=180",
                  "gpuflip video-direction=horiz ! gpuresize method=nearest-neighbour ! "
                  "video/x-gpu-batch(memory:GPUCache),width=52,height=72 ! gpunormalize base=\"<7>\" ! gpuflip "
                  "video-direction=180");
  compare_chains ("gpuconvert ! video/x-raw(memory:GPUCache),format=RGBA",
                  "gpuconvert ! video/x-gpu-batch(memory:GPUCache),format=RGBA");
  compare_chains ("gpuconvert ! video/x-raw(memory:GPUCache),format=GRAY8",
                  "gpuconvert ! video/x-gpu-batch(memory:GPUCache),format=GRAY8");
  compare_chains ("gpuconvert ! video/x-raw(memory:GPUCache),format=RGBA,colorimetry=1:1:0:0",
                  "gpuconvert ! video/x-gpu-batch(memory:GPUCache),format=RGBA,colorimetry=(string)1:1:0:0");
  /* Above 576 rows the default is another matrix: colours stay those of the frame that came in. */
  compare_chains ("gpuresize ! video/x-raw(memory:GPUCache),width=64,height=600 ! gpuconvert ! "
                  "video/x-raw(memory:GPUCache),format=RGBA",
                  "gpuresize ! video/x-gpu-batch(memory:GPUCache),width=64,height=600 ! gpuconvert ! "
                  "video/x-gpu-batch(memory:GPUCache),format=RGBA");
  /* Nothing is asked for: frames stay what they are. */
  compare_chains ("identity", "gpuresize ! gpuflip ! gpuconvert");
}
GST_END_TEST

/* Layouts and types of pictures, of tensors and of both. */
GST_START_TEST (test_same_results_reformatted)
{
  compare_cameras (&rgb, "gpureformat layout=chw", "gpureformat layout=chw");
  compare_cameras (&rgb, "gpureformat ! video/x-raw(memory:GPUCache),format=BGRx",
                   "gpureformat ! video/x-gpu-batch(memory:GPUCache),format=BGRx");
  compare_cameras (&rgb, "gpureformat layout=chw ! " TENSOR,
                   "gpureformat layout=chw ! video/x-gpu-batch(memory:GPUCache),types=(string)uint8");
  compare_cameras (&tensors, "gpureformat layout=chw", "gpureformat layout=chw");
  compare_cameras (&tensors, "gpureformat scale=0.25 offset=3", "gpureformat scale=0.25 offset=3");
  compare_cameras (&tensors, "gpureformat layout=chw scale=1.5 ! " TENSOR ",types=float16",
                   "gpureformat layout=chw scale=1.5 ! video/x-gpu-batch(memory:GPUCache),types=(string)float16");
  compare_cameras (&tensors, "gpureformat layout=hwc ! " TENSOR ",types=uint8",
                   "gpureformat layout=hwc ! video/x-gpu-batch(memory:GPUCache),types=(string)uint8");
  compare_cameras (&mixed, "gpureformat ! video/x-raw(memory:GPUCache),format=RGBP",
                   "gpureformat ! video/x-gpu-batch(memory:GPUCache),format=RGBP");
  compare_cameras (&mixed, "gpureformat layout=chw ! " TENSOR,
                   "gpureformat layout=chw ! video/x-gpu-batch(memory:GPUCache),types=(string)uint8");
  compare_cameras (&mixed, "identity", "gpureformat");
}
GST_END_TEST

/* Only a shape of pixels is asked for, which a size comes of. */
GST_START_TEST (test_same_results_square)
{
  static const Cameras narrow = {{BALL "RGBA,pixel-aspect-ratio=1/2", SMPTE "NV12,pixel-aspect-ratio=2/1",
                                  GRADIENT "RGB", SPOKES "GRAY8,pixel-aspect-ratio=4/3"},
                                 {"identity", "identity", "identity", "identity"}};

  compare_cameras (&narrow, "gpuresize ! video/x-raw(memory:GPUCache),pixel-aspect-ratio=1/1",
                   "gpuresize ! video/x-gpu-batch(memory:GPUCache),pixel-aspect-ratio=1/1");
}
GST_END_TEST

GST_START_TEST (test_same_results_cropped)
{
  cropped = TRUE;
  compare_chains ("gpuresize ! video/x-raw(memory:GPUCache),width=96,height=64",
                  "gpuresize ! video/x-gpu-batch(memory:GPUCache),width=96,height=64");
  compare_chains ("gpuresize method=nearest-neighbour ! video/x-raw(memory:GPUCache),width=52,height=72",
                  "gpuresize method=nearest-neighbour ! video/x-gpu-batch(memory:GPUCache),width=52,height=72");
  cropped = FALSE;
}
GST_END_TEST

/* What cannot be made is refused; where an element of ours finds it, with a sentence that says what to do. */
GST_START_TEST (test_refusals)
{
  static const struct {
    const gchar *line, *word;
  } cases[] = {
      {"videotestsrc num-buffers=3 ! gpuupload ! gpubatch ! video/x-gpu-batch(memory:GPUCache),width=7 ! fakesink",
       "put gpuresize or gpuconvert in between"},
      {"videotestsrc num-buffers=3 ! gpuupload ! gpubatch ! video/x-gpu-batch(memory:GPUCache),batch-size=2 ! fakesink",
       "set max-batch-size"},
      {"videotestsrc num-buffers=3 ! gpuupload ! gpubatch ! gpuflip ! "
       "video/x-gpu-batch(memory:GPUCache),width=7 ! fakesink",
       ""},
      {"videotestsrc num-buffers=3 ! video/x-raw,format=P010_10LE ! gpuupload ! gpubatch ! gpunormalize "
       "scale=\"<0.5>\" ! fakesink",
       "convert it to another format"},
      {"videotestsrc num-buffers=3 ! gpuupload ! gpubatch ! gpunormalize ! "
       "other/tensors(memory:GPUCache),types=float32 ! fakesink",
       "put gpuresize in front"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstElement *pipeline = gst_parse_launch (cases[i].line, NULL);
    GstBus *bus = gst_element_get_bus (pipeline);
    g_autoptr (GError) error = NULL;
    GstMessage *message;

    gst_element_set_state (pipeline, GST_STATE_PLAYING);
    message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
    gst_element_set_state (pipeline, GST_STATE_NULL);
    gst_object_unref (pipeline);
    gst_object_unref (bus);
    fail_unless (message && GST_MESSAGE_TYPE (message) == GST_MESSAGE_ERROR, "%s", cases[i].line);
    gst_message_parse_error (message, &error, NULL);
    fail_unless (strstr (error->message, cases[i].word), "%s: %s", cases[i].line, error->message);
    gst_message_unref (message);
  }
}
GST_END_TEST

/* Once it runs, no memory is asked for any more. */
GST_START_TEST (test_steady)
{
  GstElement *pipeline;
  GpuDevice *device = gpu_device_open (NULL, NULL);
  const guint64 before = test_stats (device, GPU_ACCOUNT_DEVICE).misses;
  guint64 misses;

  pipeline = gst_parse_launch ("gpubatch name=batch ! gpuresize frames-in-flight=2 ! "
                               "video/x-gpu-batch(memory:GPUCache),width=64,height=64 ! gpunormalize "
                               "scale=\"<0.5>\" frames-in-flight=2 ! fakesink "
                               "videotestsrc num-buffers=60 ! gpuupload frames-in-flight=2 ! batch. "
                               "videotestsrc num-buffers=60 ! video/x-raw,width=99 ! gpuupload "
                               "frames-in-flight=2 ! batch. "
                               "videotestsrc num-buffers=60 ! video/x-raw,width=77 ! gpuupload "
                               "frames-in-flight=2 ! batch. ",
                               NULL);
  play_to_end (pipeline);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
  misses = test_stats (device, GPU_ACCOUNT_DEVICE).misses - before;
  gpu_device_unref (device);
  fail_unless (misses < 100, "%" G_GUINT64_FORMAT " allocations", misses);
}
GST_END_TEST

/* A batch as a model's input: N x 3 x H x W, with zeros where a stream has ended. */
typedef struct {
  guint n;
  GByteArray *last;
  guint n_frames;
  GstCaps *caps;
} Input;

static void
take_tensor (GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data)
{
  Input *input = data;
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);
  GstMapInfo map;

  fail_unless_equals_int (gst_buffer_n_memory (buffer), 1);
  input->n++;
  for (guint i = 0; i < meta->n_frames; i++)
    fail_unless (!meta->frames[i].buffer && GST_CLOCK_TIME_IS_VALID (meta->frames[i].pts));
  /* What is left when all have ended but for saying so. */
  if (meta->n_frames == 0)
    return;
  input->n_frames = meta->n_frames;
  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  g_byte_array_set_size (input->last, 0);
  g_byte_array_append (input->last, map.data, (guint)map.size);
  gst_buffer_unmap (buffer, &map);
  gst_clear_caps (&input->caps);
  input->caps = gst_pad_get_current_caps (pad);
}

static void
check_tensor (const gchar *behind)
{
  GstElement *pipeline;
  Input input = {.last = g_byte_array_new ()};
  GstElement *sink;
  GstStructure *structure;
  g_autofree gchar *line = NULL;
  const gfloat *values;

  /* White, black, and red, which ends first. */
  line = g_strdup_printf (
      "gpubatch name=batch ! gpuresize ! video/x-gpu-batch(memory:GPUCache),width=8,height=6 ! "
      "gpunormalize scale=\"<0.00392156862745098>\" ! "
      "other/tensors(memory:GPUCache),types=float32 %s ! fakesink name=sink signal-handoffs=true "
      "videotestsrc num-buffers=4 pattern=white ! video/x-raw,format=RGB,width=64,height=48 ! gpuupload ! batch.sink_0 "
      "videotestsrc num-buffers=4 pattern=black ! video/x-raw,format=RGBA,width=32,height=10 ! gpuupload ! "
      "batch.sink_1 "
      "videotestsrc num-buffers=2 pattern=red ! video/x-raw,format=BGR,width=10,height=70 ! gpuupload ! batch.sink_2 ",
      behind);
  pipeline = gst_parse_launch (line, NULL);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  g_signal_connect (sink, "handoff", G_CALLBACK (take_tensor), &input);
  play_to_end (pipeline);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (sink);
  gst_object_unref (pipeline);

  fail_unless (input.n >= 4);
  structure = gst_caps_get_structure (input.caps, 0);
  fail_unless_equals_string (gst_structure_get_string (structure, "dimensions"), "8:6:3:3");
  fail_unless_equals_string (gst_structure_get_string (structure, "types"), "float32");
  fail_unless_equals_int (input.last->len, 3 * 3 * 6 * 8 * 4);
  fail_unless_equals_int (input.n_frames, 2);
  values = (const gfloat *)(gconstpointer)input.last->data;
  for (guint i = 0; i < 3 * 3 * 48; i++)
    fail_unless (values[i] == (i < 3 * 48 ? 1.0f : 0.0f), "%u: %g", i, (gdouble)values[i]);
  g_byte_array_unref (input.last);
  gst_clear_caps (&input.caps);
}

GST_START_TEST (test_tensor)
{
  check_tensor ("");
  /* In system memory, as most models take it. */
  check_tensor ("! gpudownload");
}
GST_END_TEST

/* Fewer frames than a tensor has room for, which a stream's end makes the usual case: one launch for them and one fill
 * for the rest, and nothing else is told to the device. */
GST_START_TEST (test_steady_part)
{
  GpuDevice *device = test_device_new ();
  GstAllocator *allocator = gst_gpu_allocator_new (device);
  GstHarness *harness = gst_harness_new ("gpunormalize");
  GstCaps *caps = test_caps (GST_VIDEO_FORMAT_RGB, 32, 16);
  GstBuffer *frames[2];
  GstVideoInfo info;

  test_video_info (&info, GST_VIDEO_FORMAT_RGB, 32, 16);
  for (guint i = 0; i < G_N_ELEMENTS (frames); i++)
    frames[i] = batch_frame_new (allocator, &info, i, 0);
  gst_harness_set_sink_caps_str (harness, GST_GPU_TENSOR_NAME "(memory:GPUCache),dimensions=(string)32:16:3:5,"
                                                              "types=(string)float32");
  gst_harness_set_src_caps_str (harness, GST_GPU_BATCH_NAME "(memory:GPUCache),batch-size=5");
  for (guint round = 0; round < 5; round++) {
    const guint64 launches = gpu_device_calls (device, GPU_CALL_LAUNCH);
    const guint64 copies = gpu_device_calls (device, GPU_CALL_COPY);
    GstBuffer *batch = gst_buffer_new ();
    GstGpuBatchMeta *meta = gst_buffer_add_gpu_batch_meta (batch, G_N_ELEMENTS (frames));

    for (guint i = 0; i < G_N_ELEMENTS (frames); i++) {
      meta->frames[i].pad = i;
      meta->frames[i].caps = gst_caps_ref (caps);
      meta->frames[i].buffer = gst_buffer_ref (frames[i]);
    }
    fail_unless_equals_int (gst_harness_push (harness, batch), GST_FLOW_OK);
    gst_buffer_unref (gst_harness_pull (harness));
    fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_LAUNCH), launches + 1);
    if (round > 0)
      fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_COPY), copies + 1);
  }
  for (guint i = 0; i < G_N_ELEMENTS (frames); i++)
    gst_buffer_unref (frames[i]);
  gst_harness_teardown (harness);
  gst_caps_unref (caps);
  gst_object_unref (allocator);
  gpu_device_unref (device);
}
GST_END_TEST

static Suite *
batch_elements_suite (void)
{
  Suite *suite = suite_create ("elements on batches");
  TCase *tcase = tcase_create ("general");

  suite_add_tcase (suite, tcase);
  tcase_add_test (tcase, test_same_results);
  tcase_add_test (tcase, test_same_results_reformatted);
  tcase_add_test (tcase, test_same_results_square);
  tcase_add_test (tcase, test_same_results_cropped);
  tcase_add_test (tcase, test_refusals);
  tcase_add_test (tcase, test_tensor);
  tcase_add_test (tcase, test_steady);
  tcase_add_test (tcase, test_steady_part);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, batch_elements_suite, "batch-elements");
}
