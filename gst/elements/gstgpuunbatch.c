/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpuunbatch
 * @title: gpuunbatch
 * @short_description: Takes a batch of frames of several streams apart
 *
 * The opposite of gpubatch: what came in on its `sink_2` goes out on `src_2`, with its stream-id, caps, segment, tags
 * and timestamps. Caps are those of the frames as they are now: elements in between may have given them another size or
 * format. Nothing is copied.
 *
 * A pad is there from the first frame of its stream on, and is at its end when its stream was. It then stays, as a
 * demuxer's does, and its stream may begin again on it. When the pad of gpubatch is released, the pad here is at its
 * end and is removed: what an application linked behind it can be taken down from the signal `pad-removed`, and if the
 * number is requested again, another pad is added. Frames go out on one pad after the other in one thread, as from tee:
 * put a queue behind each.
 *
 * ## Example launch line
 * |[
 * gst-launch-1.0 gpubatch name=batch ! gpuunbatch name=unbatch \
 *   videotestsrc num-buffers=30 ! gpuupload ! batch.sink_0 \
 *   videotestsrc num-buffers=30 pattern=ball ! video/x-raw,width=640,height=480 ! gpuupload ! batch.sink_1 \
 *   unbatch.src_0 ! queue ! gpudownload ! fakesink unbatch.src_1 ! queue ! gpudownload ! fakesink
 * ]|
 */
#include "gstgpubasetransform.h"
#include "gstgpuelements.h"

#include <gst/base/gstflowcombiner.h>

GST_DEBUG_CATEGORY_STATIC (gst_gpu_unbatch_debug);
#define GST_CAT_DEFAULT gst_gpu_unbatch_debug

/* A stream, and what was said of it downstream. */
typedef struct {
  guint number;
  GstPad *pad;
  gchar *stream_id;
  GstCaps *caps;
  GstTagList *tags;
  GstSegment segment;
  guint32 segment_seqnum;
  gboolean has_segment;
  gboolean ended;
} Stream;

struct _GstGpuUnbatch {
  GstElement parent;

  GstPad *sink;

  /* Of the streaming thread. */
  GPtrArray *streams; /* of Stream */
  GstFlowCombiner *combiner;
  guint group;

  guint32 seek; /* the last one's number; under the object lock */
};

#define GST_TYPE_GPU_UNBATCH (gst_gpu_unbatch_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuUnbatch, gst_gpu_unbatch, GST, GPU_UNBATCH, GstElement)
G_DEFINE_TYPE (GstGpuUnbatch, gst_gpu_unbatch, GST_TYPE_ELEMENT)
#define parent_class gst_gpu_unbatch_parent_class
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpuunbatch, "gpuunbatch", GST_RANK_NONE, GST_TYPE_GPU_UNBATCH,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_unbatch_debug, "gpuunbatch", 0, "gpuunbatch"))

static GstStaticPadTemplate sink_template =
    GST_STATIC_PAD_TEMPLATE ("sink", GST_PAD_SINK, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_BATCH_CAPS));
static GstStaticPadTemplate src_template = GST_STATIC_PAD_TEMPLATE (
    "src_%u", GST_PAD_SRC, GST_PAD_SOMETIMES, GST_STATIC_CAPS (GST_GPU_CAPS "; " GST_GPU_TENSOR_CAPS));

/* Streams. */

static void
stream_reset (Stream *stream)
{
  g_clear_pointer (&stream->stream_id, g_free);
  gst_clear_caps (&stream->caps);
  gst_clear_tag_list (&stream->tags);
  stream->has_segment = FALSE;
  stream->ended = FALSE;
}

static void
stream_free (gpointer data)
{
  Stream *stream = data;

  stream_reset (stream);
  gst_object_unref (stream->pad);
  g_free (stream);
}

/* A seek of the pipeline comes from each sink, and is one for all. */
static gboolean
is_known_seek (GstGpuUnbatch *self, GstEvent *event)
{
  gboolean known;

  GST_OBJECT_LOCK (self);
  known = GST_EVENT_TYPE (event) == GST_EVENT_SEEK && gst_event_get_seqnum (event) == self->seek;
  if (GST_EVENT_TYPE (event) == GST_EVENT_SEEK)
    self->seek = gst_event_get_seqnum (event);
  GST_OBJECT_UNLOCK (self);
  return known;
}

/* A batch does not know the times of a single stream, so what is late is not told to anybody upstream. */
static gboolean
src_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  if (GST_EVENT_TYPE (event) == GST_EVENT_QOS || is_known_seek (GST_GPU_UNBATCH (parent), event)) {
    gst_event_unref (event);
    return TRUE;
  }
  return gst_pad_event_default (pad, parent, event);
}

static Stream *
find_stream (GstGpuUnbatch *self, guint number)
{
  for (guint i = 0; i < self->streams->len; i++) {
    Stream *stream = g_ptr_array_index (self->streams, i);

    if (stream->number == number)
      return stream;
  }
  return NULL;
}

static Stream *
make_stream (GstGpuUnbatch *self, guint number)
{
  Stream *stream;
  g_autofree gchar *name = NULL;

  stream = g_new0 (Stream, 1);
  name = g_strdup_printf ("src_%u", number);
  stream->number = number;
  stream->pad = gst_object_ref_sink (gst_pad_new_from_static_template (&src_template, name));
  gst_pad_set_event_function (stream->pad, src_event);
  gst_pad_use_fixed_caps (stream->pad);
  gst_pad_set_active (stream->pad, TRUE);
  g_ptr_array_add (self->streams, stream);
  return stream;
}

/* Its pad goes, if it has come. */
static void
remove_stream (GstGpuUnbatch *self, Stream *stream)
{
  if (GST_OBJECT_PARENT (stream->pad)) {
    gst_flow_combiner_remove_pad (self->combiner, stream->pad);
    gst_pad_set_active (stream->pad, FALSE);
    gst_element_remove_pad (GST_ELEMENT (self), stream->pad);
  }
  g_ptr_array_remove (self->streams, stream);
}

/* The pad appears when it can say what comes. */
static void
show_pad (GstGpuUnbatch *self, Stream *stream)
{
  if (GST_OBJECT_PARENT (stream->pad))
    return;
  gst_flow_combiner_add_pad (self->combiner, stream->pad);
  gst_element_add_pad (GST_ELEMENT (self), stream->pad);
}

static void
start_stream (GstGpuUnbatch *self, Stream *stream, const gchar *stream_id)
{
  g_autofree gchar *made = NULL;
  GstEvent *event;

  if (!stream_id)
    stream_id = made = gst_pad_create_stream_id_printf (stream->pad, GST_ELEMENT (self), "%u", stream->number);
  event = gst_event_new_stream_start (stream_id);
  gst_event_set_group_id (event, self->group);
  gst_pad_push_event (stream->pad, event);
}

/* Takes @event over; it has the number that it came with, if that is known. */
static void
push_numbered (Stream *stream, GstEvent *event, guint32 seqnum)
{
  if (seqnum != GST_SEQNUM_INVALID)
    gst_event_set_seqnum (event, seqnum);
  gst_pad_push_event (stream->pad, event);
}

/* Says what is new about @frame's stream. */
static void
send_events (GstGpuUnbatch *self, Stream *stream, const GstGpuBatchFrame *frame)
{
  /* After its end, a stream of the same name is another one: a pad was released and requested again. */
  if (!GST_OBJECT_PARENT (stream->pad) || stream->ended || g_strcmp0 (stream->stream_id, frame->stream_id)) {
    stream_reset (stream);
    stream->stream_id = g_strdup (frame->stream_id);
    start_stream (self, stream, frame->stream_id);
  }
  if (frame->caps && (!stream->caps || !gst_caps_is_equal (stream->caps, frame->caps))) {
    gst_caps_replace (&stream->caps, frame->caps);
    gst_pad_push_event (stream->pad, gst_event_new_caps (frame->caps));
  }
  if (!stream->has_segment || stream->segment_seqnum != frame->segment_seqnum ||
      !gst_segment_is_equal (&stream->segment, &frame->segment)) {
    stream->segment = frame->segment;
    stream->segment_seqnum = frame->segment_seqnum;
    stream->has_segment = TRUE;
    stream->ended = FALSE;
    push_numbered (stream, gst_event_new_segment (&frame->segment), frame->segment_seqnum);
  }
  if (frame->tags && frame->tags != stream->tags &&
      (!stream->tags || !gst_tag_list_is_equal (stream->tags, frame->tags))) {
    gst_clear_tag_list (&stream->tags);
    stream->tags = gst_tag_list_ref (frame->tags);
    gst_pad_push_event (stream->pad, gst_event_new_tag (gst_tag_list_ref (frame->tags)));
  }
  show_pad (self, stream);
}

static void
end_stream (Stream *stream, guint32 seqnum)
{
  if (!stream->ended)
    push_numbered (stream, gst_event_new_eos (), seqnum);
  stream->ended = TRUE;
}

/* Frames. */

/* Takes the frame's buffer if @takes: then nobody else has it, and an element behind may write to it. Returns: what all
 * pads together say to it, where the core counts one at its end as one that has enough; GST_FLOW_OK where there is no
 * buffer. */
static GstFlowReturn
push_frame (GstGpuUnbatch *self, GstGpuBatchFrame *frame, gboolean takes)
{
  Stream *stream = find_stream (self, frame->pad);
  GstFlowReturn result = GST_FLOW_OK;

  if (frame->released) {
    if (stream) {
      end_stream (stream, frame->eos_seqnum);
      remove_stream (self, stream);
    }
    return GST_FLOW_OK;
  }
  if (!stream)
    stream = make_stream (self, frame->pad);
  send_events (self, stream, frame);
  if (frame->buffer) {
    result = gst_pad_push (stream->pad, takes ? g_steal_pointer (&frame->buffer) : gst_buffer_ref (frame->buffer));
    result = gst_flow_combiner_update_pad_flow (self->combiner, stream->pad, result);
  } else if (!frame->eos && GST_CLOCK_TIME_IS_VALID (frame->pts)) {
    gst_pad_push_event (stream->pad, gst_event_new_gap (frame->pts, frame->duration));
  }
  if (frame->eos)
    end_stream (stream, frame->eos_seqnum);
  return result;
}

/* Whether other pads can still take frames. */
static gboolean
goes_on (GstFlowReturn result)
{
  return result == GST_FLOW_OK || result == GST_FLOW_NOT_LINKED || result == GST_FLOW_EOS;
}

static GstFlowReturn
chain (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  GstGpuUnbatch *self = GST_GPU_UNBATCH (parent);
  const GstGpuBatchMeta *meta = gst_buffer_get_gpu_batch_meta (buffer);
  const gboolean takes = gst_buffer_is_writable (buffer);
  GstFlowReturn result = GST_FLOW_OK;

  if (!meta) {
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
                       ("A buffer came without a GstGpuBatchMeta although its caps say " GST_GPU_BATCH_NAME
                        ": put gpubatch in front."),
                       (NULL));
    gst_buffer_unref (buffer);
    return GST_FLOW_ERROR;
  }
  /* Pads that are not linked, or whose branch has enough, are no reason to leave out the others. */
  for (guint i = 0; i < meta->n_frames && goes_on (result); i++) {
    const gboolean is_frame = meta->frames[i].buffer != NULL;
    const GstFlowReturn pushed = push_frame (self, &meta->frames[i], takes);

    if (is_frame)
      result = pushed;
  }
  gst_buffer_unref (buffer);
  return result;
}

static gboolean
push_to_all (GstGpuUnbatch *self, GstEvent *event)
{
  for (guint i = 0; i < self->streams->len; i++) {
    Stream *stream = g_ptr_array_index (self->streams, i);

    gst_pad_push_event (stream->pad, gst_event_ref (event));
  }
  gst_event_unref (event);
  return TRUE;
}

static gboolean
sink_event (GstPad *pad, GstObject *parent, GstEvent *event)
{
  GstGpuUnbatch *self = GST_GPU_UNBATCH (parent);

  switch (GST_EVENT_TYPE (event)) {
  /* Each stream has its own. */
  case GST_EVENT_STREAM_START:
    if (!gst_event_parse_group_id (event, &self->group))
      self->group = gst_util_group_id_next ();
    gst_event_unref (event);
    return TRUE;
  case GST_EVENT_CAPS:
  case GST_EVENT_SEGMENT:
  case GST_EVENT_TAG:
  case GST_EVENT_GAP:
    gst_event_unref (event);
    return TRUE;
  case GST_EVENT_EOS:
    for (guint i = 0; i < self->streams->len; i++)
      end_stream (g_ptr_array_index (self->streams, i), gst_event_get_seqnum (event));
    gst_event_unref (event);
    return TRUE;
  case GST_EVENT_FLUSH_STOP:
    gst_flow_combiner_reset (self->combiner);
    for (guint i = 0; i < self->streams->len; i++) {
      Stream *stream = g_ptr_array_index (self->streams, i);

      stream->has_segment = FALSE;
      stream->ended = FALSE;
    }
    return push_to_all (self, event);
  default:
    return gst_pad_event_default (pad, parent, event);
  }
}

/* The object. */

static GstStateChangeReturn
gst_gpu_unbatch_change_state (GstElement *element, GstStateChange transition)
{
  GstGpuUnbatch *self = GST_GPU_UNBATCH (element);
  GstStateChangeReturn result = GST_ELEMENT_CLASS (parent_class)->change_state (element, transition);

  if (transition != GST_STATE_CHANGE_PAUSED_TO_READY)
    return result;
  while (self->streams->len > 0)
    remove_stream (self, g_ptr_array_index (self->streams, self->streams->len - 1));
  gst_flow_combiner_reset (self->combiner);
  return result;
}

static void
gst_gpu_unbatch_finalize (GObject *object)
{
  GstGpuUnbatch *self = GST_GPU_UNBATCH (object);

  g_ptr_array_unref (self->streams);
  gst_flow_combiner_free (self->combiner);
  G_OBJECT_CLASS (parent_class)->finalize (object);
}

static void
gst_gpu_unbatch_class_init (GstGpuUnbatchClass *klass)
{
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = gst_gpu_unbatch_finalize;
  element_class->change_state = GST_DEBUG_FUNCPTR (gst_gpu_unbatch_change_state);

  gst_element_class_add_static_pad_template (element_class, &sink_template);
  gst_element_class_add_static_pad_template (element_class, &src_template);
  gst_element_class_set_static_metadata (element_class, "GPU unbatcher", "Demuxer/Video/Hardware",
                                         "Takes a batch of frames in cached device memory apart", GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 gpubatch name=batch ! gpuunbatch name=unbatch "
      "videotestsrc num-buffers=30 ! gpuupload ! batch.sink_0 "
      "videotestsrc num-buffers=30 pattern=ball ! video/x-raw,width=640,height=480 ! gpuupload ! batch.sink_1 "
      "unbatch.src_0 ! queue ! gpudownload ! fakesink unbatch.src_1 ! queue ! gpudownload ! fakesink");
}

static void
gst_gpu_unbatch_init (GstGpuUnbatch *self)
{
  self->sink = gst_pad_new_from_static_template (&sink_template, "sink");
  gst_pad_set_chain_function (self->sink, chain);
  gst_pad_set_event_function (self->sink, sink_event);
  gst_element_add_pad (GST_ELEMENT (self), self->sink);
  self->streams = g_ptr_array_new_with_free_func (stream_free);
  self->combiner = gst_flow_combiner_new ();
}
