/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See errors.h.
 */
#include "errors.h"

#include "play.h"

#include <string.h>

/* The frames, counted from one, at which the gate is closed and at which the failure begins: fewer than an element
 * submits before it waits for the first. */
#define GATED_FRAME 3
#define FAILING_FRAME 6

/* Frames come in memory of the source's own, so that gpuupload has to copy them on every device. */
#define SOURCE                                                                                                         \
  "videotestsrc num-buffers=10 ! video/x-raw,format=RGBA,width=64,height=48 ! identity drop-allocation=true ! "
#define SINK " ! fakesink name=sink sync=false "
#define DEVICE "video/x-raw(memory:GPUCache)"

const Scene scenes[N_SCENES] = {
    [SCENE_UPLOAD] = {"gpuupload", SOURCE "gpuupload name=it ! gpudownload" SINK, FALSE},
    [SCENE_DOWNLOAD] = {"gpudownload", SOURCE "gpuupload ! gpudownload name=it" SINK, FALSE},
    {"gpuflip", SOURCE "gpuupload ! gpuflip name=it video-direction=90r ! gpudownload" SINK, FALSE},
    {"gpuresize", SOURCE "gpuupload ! gpuresize name=it ! " DEVICE ",width=40,height=24 ! gpudownload" SINK, FALSE},
    {"gpuconvert", SOURCE "gpuupload ! gpuconvert name=it ! " DEVICE ",format=NV12 ! gpudownload" SINK, FALSE},
    {"gpunormalize",
     SOURCE "gpuupload ! gpunormalize name=it layout=chw ! other/tensors(memory:GPUCache),types=float32 ! "
            "gpudownload" SINK,
     FALSE},
    {"gpureformat",
     SOURCE "gpuupload ! gpureformat ! other/tensors(memory:GPUCache),dimensions=4:64:48:1 ! "
            "gpureformat name=it layout=chw ! other/tensors(memory:GPUCache),types=float32 ! gpudownload" SINK,
     FALSE},
    {"gpubatch",
     "gpubatch name=batch ! gpuflip name=it video-direction=90r ! gpuunbatch name=unbatch " SOURCE
     "gpuupload ! batch.sink_0 " SOURCE "gpuupload ! batch.sink_1 unbatch.src_0 ! queue ! gpudownload" SINK
     "unbatch.src_1 ! queue ! gpudownload ! fakesink sync=false",
     TRUE},
};

typedef struct {
  GpuDevice *device;
  const Failure *failure;
  GpuGate *gate;    /* NULL if none is wanted */
  gint n_in, n_out; /* frames before "it", and behind the first gpuupload */
  gboolean failing; /* of the thread of "it" */
  GPtrArray *held;
} Run;

static GstPadProbeReturn
before (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Run *run = data;

  if (++run->n_in == FAILING_FRAME) {
    run->failing = TRUE;
    run->failure->begin (run->device, run->failure->data);
  }
  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
behind (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  Run *run = data;

  g_ptr_array_add (run->held, gst_buffer_ref (GST_PAD_PROBE_INFO_BUFFER (info)));
  if (run->failing) {
    run->failing = FALSE;
    run->failure->end (run->device, run->failure->data);
    /* The element did not notice; the pipeline may go on to its end. */
    if (run->gate)
      gpu_gate_open (run->gate);
  }
  return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn
behind_upload (GstPad *pad, GstPadProbeInfo *info, gpointer data)
{
  GstMemory *memory = gst_buffer_peek_memory (GST_PAD_PROBE_INFO_BUFFER (info), 0);
  Run *run = data;

  if (++run->n_out == GATED_FRAME && run->gate)
    fail_unless (gpu_gate_hold (run->gate, gst_gpu_memory_get_stream (memory), NULL));
  return GST_PAD_PROBE_OK;
}

static GstElement *
find_upload (GstElement *pipeline)
{
  g_autoptr (GstIterator) iterator = gst_bin_iterate_all_by_element_factory_name (GST_BIN (pipeline), "gpuupload");
  GValue value = G_VALUE_INIT;
  GstElement *element;

  fail_unless_equals_int (gst_iterator_next (iterator, &value), GST_ITERATOR_OK);
  element = g_value_dup_object (&value);
  g_value_unset (&value);
  return element;
}

static void
watch (GstElement *element, const char *name, GstPadProbeCallback callback, Run *run)
{
  g_autoptr (GstPad) pad = gst_element_get_static_pad (element, name);

  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, callback, run, NULL);
}

static gboolean
is_ours (GstObject *object)
{
  return GST_IS_ELEMENT (object) &&
         g_str_has_prefix (GST_OBJECT_NAME (gst_element_get_factory (GST_ELEMENT (object))), "gpu");
}

/* Whether two elements were told of the same failure: of threads that ask for memory of different kinds, each names its
 * own call. A refusal goes on with what it was that was refused. */
static gboolean
is_same_failure (const char *a, const char *b)
{
  const char *a_cause = strstr (a, " failed on ");
  const char *b_cause = strstr (b, " failed on ");

  if (a_cause && b_cause) {
    a = a_cause;
    b = b_cause;
  }
  return strncmp (a, b, strcspn (b, ";") + 1) == 0;
}

/* Looks at all that was said. @first (transfer full): the first error of ours */
static GError *
judge (const Scene *scene, GstBus *bus, GstMessage *first)
{
  GError *error = NULL;

  for (GstMessage *message = first; message; message = gst_bus_pop_filtered (bus, GST_MESSAGE_ERROR)) {
    g_autoptr (GError) said = NULL;

    gst_message_parse_error (message, &said, NULL);
    if (!is_ours (GST_MESSAGE_SRC (message)))
      fail_unless (strstr (said->message, "Internal data stream error") != NULL, "%s: %s said \"%s\"", scene->name,
                   GST_MESSAGE_SRC_NAME (message), said->message);
    else if (!error)
      error = g_steal_pointer (&said);
    else
      fail_unless (scene->threads && is_same_failure (said->message, error->message), "%s: %s said \"%s\" after \"%s\"",
                   scene->name, GST_MESSAGE_SRC_NAME (message), said->message, error->message);
    gst_message_unref (message);
  }
  return error;
}

GError *
scene_fail (const Scene *scene, GpuDevice *device, const Failure *failure, gboolean gated)
{
  Run run = {.device = device,
             .failure = failure,
             .gate = gated ? gpu_gate_new (device, NULL) : NULL,
             .held = g_ptr_array_new_with_free_func ((GDestroyNotify)gst_buffer_unref)};
  g_autoptr (GError) error = NULL;
  g_autoptr (GstElement) pipeline = gst_parse_launch (scene->launch, &error);
  g_autoptr (GstElement) it = NULL;
  g_autoptr (GstElement) upload = NULL;
  g_autoptr (GstBus) bus = NULL;
  GstMessage *message;

  g_assert_no_error (error);
  /* Nothing is there to be used again. */
  gpu_cache_clear (device, GPU_CACHE_ALL, &error);
  g_assert_no_error (error);
  it = gst_bin_get_by_name (GST_BIN (pipeline), "it");
  upload = find_upload (pipeline);
  bus = gst_element_get_bus (pipeline);
  gst_pipeline_set_auto_flush_bus (GST_PIPELINE (pipeline), FALSE);
  watch (it, "sink", before, &run);
  watch (it, "src", behind, &run);
  watch (upload, "src", behind_upload, &run);

  fail_unless (gst_element_set_state (pipeline, GST_STATE_PLAYING) != GST_STATE_CHANGE_FAILURE);
  message = gst_bus_timed_pop_filtered (bus, 60 * GST_SECOND, GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  fail_unless (message != NULL, "%s: the pipeline neither ended nor failed", scene->name);
  fail_unless_equals_int (gst_element_set_state (pipeline, GST_STATE_NULL), GST_STATE_CHANGE_SUCCESS);
  failure->end (device, failure->data);
  if (run.gate)
    gpu_gate_free (run.gate);
  if (GST_MESSAGE_TYPE (message) != GST_MESSAGE_ERROR)
    gst_clear_message (&message);
  error = judge (scene, bus, message);

  g_ptr_array_unref (run.held);
  gst_bus_set_flushing (bus, TRUE);
  gst_object_unref (g_steal_pointer (&pipeline));
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).live, 0);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_HOST).live, 0);
  return g_steal_pointer (&error);
}

GBytes *
scene_play (const Scene *scene)
{
  GstElement *pipeline = play (scene->launch);
  g_autoptr (GstSample) sample = last_sample (pipeline, "sink");
  GstBuffer *buffer = gst_sample_get_buffer (sample);
  gpointer bytes;
  gsize size;

  gst_buffer_extract_dup (buffer, 0, gst_buffer_get_size (buffer), &bytes, &size);
  stop (pipeline);
  return g_bytes_new_take (bytes, size);
}

void
error_expect (const GError *error, const char *what, ...)
{
  const char *word;
  va_list words;

  fail_unless (error != NULL, "%s: there was no error", what);
  va_start (words, what);
  while ((word = va_arg (words, const char *)))
    fail_unless (strstr (error->message, word) != NULL, "%s: \"%s\" is not in \"%s\"", what, word, error->message);
  va_end (words);
}
