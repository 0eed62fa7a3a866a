/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What caps of batches say behind an element: what is known of the frames stays known where they stay what they are,
 * what is asked for is so, and what a batch becomes as one tensor.
 */
#include "batch.h"

#include <gst/check/gstharness.h>

#define CAPS GST_GPU_BATCH_NAME "(memory:GPUCache)"
#define KNOWN "format=(string)RGB,width=(int)32,height=(int)16,pixel-aspect-ratio=(fraction)1/1,batch-size=(int)1"

typedef struct {
  GpuDevice *device;
  GstAllocator *allocator;
  GstVideoInfo info;
  GstCaps *caps;
} Source;

static void
source_init (Source *source)
{
  source->device = test_device_new ();
  source->allocator = gst_gpu_allocator_new (source->device);
  source->caps = test_caps (GST_VIDEO_FORMAT_RGB, 32, 16);
  gst_caps_set_simple (source->caps, "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, NULL);
  test_video_info (&source->info, GST_VIDEO_FORMAT_RGB, 32, 16);
}

static void
source_clear (Source *source)
{
  gst_caps_unref (source->caps);
  gst_object_unref (source->allocator);
  gpu_device_unref (source->device);
}

/* Returns: (transfer full): a batch of one frame. */
static GstBuffer *
make_batch (Source *source)
{
  GstBuffer *batch = gst_buffer_new ();
  GstGpuBatchFrame *frame = gst_buffer_add_gpu_batch_meta (batch, 1)->frames;

  frame->caps = gst_caps_ref (source->caps);
  frame->buffer = batch_frame_new (source->allocator, &source->info, 0, 0);
  return batch;
}

/* @passes: the batch goes through as it is. @expected: fields of the caps behind @line, no more and no less. */
static void
check (const gchar *line, const gchar *known, const gchar *asked, const gchar *expected, gboolean passes)
{
  GstHarness *harness = gst_harness_new_parse (line);
  g_autofree gchar *in = g_strdup_printf (CAPS ",%s", known);
  g_autofree gchar *sink = g_strdup_printf (CAPS "%s%s", *asked ? "," : "", asked);
  g_autofree gchar *out = g_strdup_printf (CAPS ",%s", expected);
  g_autoptr (GstCaps) wanted = gst_caps_from_string (out);
  g_autoptr (GstCaps) got = NULL;
  GstBuffer *batch, *result;
  Source source;

  source_init (&source);
  batch = make_batch (&source);
  gst_harness_set_sink_caps_str (harness, sink);
  gst_harness_set_src_caps_str (harness, in);
  fail_unless_equals_int (gst_harness_push (harness, gst_buffer_ref (batch)), GST_FLOW_OK);
  result = gst_harness_pull (harness);
  got = gst_pad_get_current_caps (harness->sinkpad);
  if (!gst_caps_is_equal (got, wanted)) {
    g_autofree gchar *text = gst_caps_to_string (got);

    fail ("%s behind %s, not %s", text, line, out);
  }
  fail_unless ((result == batch) == passes, "%s", line);
  gst_buffer_unref (result);
  gst_buffer_unref (batch);
  gst_harness_teardown (harness);
  source_clear (&source);
}

/* Frames that stay what they are: so do the caps, and the batch itself. */
GST_START_TEST (test_what_is_known)
{
  check ("gpuconvert", KNOWN, "", KNOWN, TRUE);
  check ("gpuresize", KNOWN, "", KNOWN, TRUE);
  check ("gpuflip", KNOWN, "", KNOWN, TRUE);
  check ("gpureformat", KNOWN, "", KNOWN, TRUE);
  check ("gpuconvert ! gpuresize ! gpuflip ! gpureformat", KNOWN, "", KNOWN, TRUE);
  check ("gpunormalize scale=\"<0.5>\"", KNOWN, "", KNOWN, FALSE);
  check ("gpuconvert", KNOWN ",colorimetry=(string)sRGB", "", KNOWN ",colorimetry=(string)sRGB", TRUE);
  /* Asking for what they are is asking for nothing. */
  check ("gpuconvert", KNOWN, "format=(string)RGB", KNOWN, TRUE);
  check ("gpuresize", KNOWN, "width=(int)32", KNOWN, TRUE);
  check ("gpureformat", KNOWN, "format=(string)RGB", KNOWN, TRUE);
  /* Little is known, and no more behind. */
  check ("gpuconvert ! gpuresize ! gpureformat", "batch-size=(int)1", "", "batch-size=(int)1", TRUE);
}
GST_END_TEST

/* What is asked for, and what is not known any more, since it goes with that or each frame gets its own. */
GST_START_TEST (test_what_is_asked_for)
{
  check ("gpuflip video-direction=90r", KNOWN, "",
         "format=(string)RGB,width=(int)16,height=(int)32,pixel-aspect-ratio=(fraction)1/1,batch-size=(int)1", FALSE);
  check ("gpureformat layout=chw", KNOWN, "",
         "width=(int)32,height=(int)16,pixel-aspect-ratio=(fraction)1/1,batch-size=(int)1", FALSE);
  check ("gpureformat", KNOWN, "format=(string)BGRx",
         "format=(string)BGRx,width=(int)32,height=(int)16,pixel-aspect-ratio=(fraction)1/1,batch-size=(int)1", FALSE);
  check ("gpuresize", KNOWN, "width=(int)64", "format=(string)RGB,width=(int)64,batch-size=(int)1", FALSE);
  check ("gpuresize", "format=(string)RGB,batch-size=(int)1", "pixel-aspect-ratio=(fraction)1/1",
         "format=(string)RGB,pixel-aspect-ratio=(fraction)1/1,batch-size=(int)1", FALSE);
}
GST_END_TEST

/* Returns: (transfer full): the bytes of the last buffer that comes out of a pipeline. */
static GByteArray *
last_bytes (const gchar *line, GstCaps **caps)
{
  g_autoptr (GError) error = NULL;
  GByteArray *bytes = g_byte_array_new ();
  GstElement *pipeline = gst_parse_launch (line, &error), *sink;
  GstSample *sample = NULL;
  GstMapInfo map;

  g_assert_no_error (error);
  sink = gst_bin_get_by_name (GST_BIN (pipeline), "sink");
  play_to_end (pipeline);
  g_object_get (sink, "last-sample", &sample, NULL);
  fail_unless (sample != NULL, "%s", line);
  fail_unless (gst_buffer_map (gst_sample_get_buffer (sample), &map, GST_MAP_READ));
  g_byte_array_append (bytes, map.data, (guint)map.size);
  gst_buffer_unmap (gst_sample_get_buffer (sample), &map);
  if (caps)
    *caps = gst_caps_ref (gst_sample_get_caps (sample));
  gst_sample_unref (sample);
  gst_object_unref (sink);
  gst_element_set_state (pipeline, GST_STATE_NULL);
  gst_object_unref (pipeline);
  return bytes;
}

/* The tensors of the frames, one after the other: @one is what makes each alone. */
static void
check_dense (const gchar *source[2], const gchar *one, const gchar *all, const gchar *dimensions)
{
  g_autoptr (GstCaps) caps = NULL;
  g_autoptr (GByteArray) together = NULL;
  g_autoptr (GByteArray) apart = g_byte_array_new ();
  g_autofree gchar *line = g_strdup_printf ("gpubatch name=batch ! %s ! gpudownload ! fakesink name=sink "
                                            "%s ! gpuupload ! batch.sink_0 %s ! gpuupload ! batch.sink_1",
                                            all, source[0], source[1]);

  together = last_bytes (line, &caps);
  fail_unless_equals_string (gst_structure_get_string (gst_caps_get_structure (caps, 0), "dimensions"), dimensions);
  for (guint i = 0; i < 2; i++) {
    g_autofree gchar *alone =
        g_strdup_printf ("%s ! gpuupload ! %s ! gpudownload ! fakesink name=sink", source[i], one);
    g_autoptr (GByteArray) bytes = last_bytes (alone, NULL);

    g_byte_array_append (apart, bytes->data, bytes->len);
  }
  fail_unless_equals_int (together->len, apart->len);
  fail_unless (memcmp (together->data, apart->data, apart->len) == 0, "%s", all);
}

#define TENSOR "other/tensors(memory:GPUCache)"

GST_START_TEST (test_tensors)
{
  const gchar *same[2] = {"videotestsrc num-buffers=1 ! video/x-raw,format=BGR,width=36,height=20",
                          "videotestsrc num-buffers=1 pattern=ball ! video/x-raw,format=RGBx,width=36,height=20"};
  const gchar *alpha[2] = {"videotestsrc num-buffers=1 ! video/x-raw,format=RGBA,width=36,height=20",
                           "videotestsrc num-buffers=1 pattern=ball ! video/x-raw,format=ARGB,width=36,height=20"};
  const gchar *sizes[2] = {"videotestsrc num-buffers=1 ! video/x-raw,format=BGR,width=99,height=20",
                           "videotestsrc num-buffers=1 pattern=ball ! video/x-raw,format=NV12,width=36,height=70"};

  /* The tensor says which size; nothing says which format. */
  check_dense (same, "gpureformat layout=chw ! " TENSOR,
               "gpuresize ! gpureformat ! " TENSOR ",types=uint8,dimensions=(string)36:20:3:2", "36:20:3:2");
  check_dense (same, "gpureformat layout=hwc ! " TENSOR,
               "gpuresize ! gpureformat ! " TENSOR ",types=uint8,dimensions=(string)3:36:20:2", "3:36:20:2");
  check_dense (alpha, "gpureformat layout=hwc ! " TENSOR,
               "gpuresize ! gpureformat ! " TENSOR ",types=uint8,dimensions=(string)4:36:20:2", "4:36:20:2");
  /* Sizes and formats that were given, and stay known on the way. */
  check_dense (sizes,
               "gpuresize ! video/x-raw(memory:GPUCache),width=24,height=12 ! gpuconvert ! "
               "video/x-raw(memory:GPUCache),format=RGB ! gpureformat layout=chw ! " TENSOR,
               "gpuresize ! " CAPS ",width=24,height=12 ! gpuconvert ! " CAPS ",format=RGB ! gpuflip ! gpuresize ! "
               "gpureformat ! " TENSOR,
               "24:12:3:2");
  check_dense (sizes,
               "gpuresize ! video/x-raw(memory:GPUCache),width=24,height=12 ! gpuconvert ! "
               "video/x-raw(memory:GPUCache),format=RGBA ! gpunormalize layout=hwc base=\"<1,2,3>\" ! " TENSOR
               ",types=float32",
               "gpuresize ! " CAPS ",width=24,height=12 ! gpuconvert ! " CAPS ",format=RGBA ! gpuresize ! "
               "gpunormalize layout=hwc base=\"<1,2,3>\" ! " TENSOR ",types=float32",
               "3:24:12:2");
}
GST_END_TEST

/* A batch of one is a tensor with a fourth dimension of one. */
GST_START_TEST (test_tensor_of_one)
{
  g_autoptr (GByteArray) alone =
      last_bytes ("videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=36,height=20 ! gpuupload ! "
                  "gpunormalize ! " TENSOR ",types=float32,dimensions=(string)36:20:3:1 ! gpudownload ! "
                  "fakesink name=sink",
                  NULL);
  g_autoptr (GByteArray) batch =
      last_bytes ("videotestsrc num-buffers=1 ! video/x-raw,format=RGB,width=36,height=20 ! gpuupload ! gpubatch ! "
                  "gpuresize ! gpunormalize ! " TENSOR ",types=float32,dimensions=(string)36:20:3:1 ! gpudownload ! "
                  "fakesink name=sink",
                  NULL);

  fail_unless_equals_int (batch->len, alone->len);
  fail_unless (memcmp (batch->data, alone->data, alone->len) == 0);
}
GST_END_TEST

static Suite *
batch_caps_suite (void)
{
  Suite *suite = suite_create ("batch-caps");
  TCase *tcase = tcase_create ("general");

  suite_add_tcase (suite, tcase);
  tcase_add_test (tcase, test_what_is_known);
  tcase_add_test (tcase, test_what_is_asked_for);
  tcase_add_test (tcase, test_tensors);
  tcase_add_test (tcase, test_tensor_of_one);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, batch_caps_suite, "batch-caps");
}
