/* SPDX-License-Identifier: LGPL-2.1-or-later */

/**
 * SECTION:element-gpubatch
 * @title: gpubatch
 * @short_description: Puts frames of several streams into one buffer
 *
 * Takes a frame from each of its pads and sends them on as one batch, which gpuflip, gpuresize, gpuconvert,
 * gpunormalize and gpureformat work on with one launch for all of them; gpuunbatch takes it apart again. Frames may be
 * of different sizes and formats. None is copied: the batch's buffer has no memory, but a #GstGpuBatchMeta with the
 * buffers that came in, and with each its pad, stream-id, caps, segment, tags, crop rectangle and times, since the
 * events that say so end here.
 *
 * Without live sources a batch has one frame of each pad, in the order of the pads' numbers, however far apart their
 * times are: frames are neither dropped nor repeated, so a stream of 60 frames a second next to one of 30 is through
 * twice as early. A pad at its end has no frame in later batches; the one that it has no frame in first says so
 * (`eos`), or its last frame does if the end was known by then. A pad that nothing comes in on, for example because its
 * source is paused, holds up the batches. A gap event stands for a frame that there is not.
 *
 * With live sources, or `force-live`, batches are not held up for longer than `latency` after the time of the earliest
 * frame: then what is there goes out. So a pad of a lower framerate, or one that is paused, is simply not in each
 * batch, and a late frame is in a later one.
 *
 * Of more frames than `max-batch-size` several batches are made. A batch has the running time of its earliest frame.
 *
 * Pads can be requested and released while playing; the stream of one that is released is at its end.
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
#include "gstgpuframe.h"

#include <gst/base/gstaggregator.h>

GST_DEBUG_CATEGORY_STATIC (gst_gpu_batch_debug);
#define GST_CAT_DEFAULT gst_gpu_batch_debug

enum {
  PROP_0,
  PROP_MAX_BATCH_SIZE,
  PROP_FORCE_LIVE,
};

#define DEFAULT_MAX_BATCH_SIZE 0
#define DEFAULT_FORCE_LIVE FALSE

/* A pad, and what the events in front of its next frame said. Of the streaming thread. */
typedef struct {
  GstAggregatorPad parent;

  guint number;
  gchar *stream_id;
  GstCaps *caps;
  GstGpuFrameInfo info;
  GstTagList *tags;
  guint32 segment_seqnum, eos_seqnum;
  gboolean ended; /* that was said downstream */
} GstGpuBatchPad;

typedef GstAggregatorPadClass GstGpuBatchPadClass;

#define GST_TYPE_GPU_BATCH_PAD (gst_gpu_batch_pad_get_type ())
#define GST_GPU_BATCH_PAD(pad) ((GstGpuBatchPad *)(pad))
static GType gst_gpu_batch_pad_get_type (void);
G_DEFINE_TYPE (GstGpuBatchPad, gst_gpu_batch_pad, GST_TYPE_AGGREGATOR_PAD)

struct _GstGpuBatch {
  GstAggregator parent;

  /* Under the object lock. */
  guint max_batch_size;
  GArray *released; /* of guint: the numbers of pads that went, which is to be said downstream */

  /* Of the streaming thread. */
  GstClockTime last; /* the time of the last batch */
  guint batch_size;  /* that caps speak of */
};

#define GST_TYPE_GPU_BATCH (gst_gpu_batch_get_type ())
G_DECLARE_FINAL_TYPE (GstGpuBatch, gst_gpu_batch, GST, GPU_BATCH, GstAggregator)
G_DEFINE_TYPE (GstGpuBatch, gst_gpu_batch, GST_TYPE_AGGREGATOR)
#define parent_class gst_gpu_batch_parent_class
GST_ELEMENT_REGISTER_DEFINE_WITH_CODE (gpubatch, "gpubatch", GST_RANK_NONE, GST_TYPE_GPU_BATCH,
                                       GST_DEBUG_CATEGORY_INIT (gst_gpu_batch_debug, "gpubatch", 0, "gpubatch"))

static GstStaticPadTemplate sink_template = GST_STATIC_PAD_TEMPLATE (
    "sink_%u", GST_PAD_SINK, GST_PAD_REQUEST, GST_STATIC_CAPS (GST_GPU_CAPS "; " GST_GPU_TENSOR_CAPS));
static GstStaticPadTemplate src_template =
    GST_STATIC_PAD_TEMPLATE ("src", GST_PAD_SRC, GST_PAD_ALWAYS, GST_STATIC_CAPS (GST_GPU_BATCH_CAPS));

/* Pads. */

static void
forget_stream (GstGpuBatchPad *pad)
{
  g_clear_pointer (&pad->stream_id, g_free);
  gst_clear_caps (&pad->caps);
  gst_clear_tag_list (&pad->tags);
  pad->segment_seqnum = pad->eos_seqnum = GST_SEQNUM_INVALID;
}

static void
gst_gpu_batch_pad_finalize (GObject *object)
{
  forget_stream (GST_GPU_BATCH_PAD (object));
  G_OBJECT_CLASS (gst_gpu_batch_pad_parent_class)->finalize (object);
}

static void
gst_gpu_batch_pad_class_init (GstGpuBatchPadClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gst_gpu_batch_pad_finalize;
}

static void
gst_gpu_batch_pad_init (GstGpuBatchPad *pad)
{
}

static GstAggregatorPad *
gst_gpu_batch_create_new_pad (GstAggregator *aggregator, GstPadTemplate *template, const gchar *name,
                              const GstCaps *caps)
{
  GstAggregatorPad *pad = GST_AGGREGATOR_CLASS (parent_class)->create_new_pad (aggregator, template, name, caps);
  guint64 number;

  if (pad && g_ascii_string_to_unsigned (GST_PAD_NAME (pad) + strlen ("sink_"), 10, 0, G_MAXUINT, &number, NULL))
    GST_GPU_BATCH_PAD (pad)->number = (guint)number;
  return pad;
}

/* When no frame of it can follow, and before the streaming thread hears that it is gone. */
static void
gst_gpu_batch_pad_removed (GstElement *element, GstPad *pad)
{
  GstGpuBatch *self = GST_GPU_BATCH (element);

  if (GST_PAD_IS_SRC (pad))
    return;
  GST_OBJECT_LOCK (self);
  g_array_append_val (self->released, GST_GPU_BATCH_PAD (pad)->number);
  GST_OBJECT_UNLOCK (self);
}

static gboolean
take_caps (GstGpuBatch *self, GstGpuBatchPad *pad, GstCaps *caps)
{
  g_autoptr (GError) error = NULL;

  if (!gst_gpu_frame_info_from_caps (&pad->info, caps, &error)) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("%s: %s", GST_PAD_NAME (pad), error->message), (NULL));
    return FALSE;
  }
  gst_caps_replace (&pad->caps, caps);
  return TRUE;
}

static void
take_tags (GstGpuBatchPad *pad, GstEvent *event)
{
  GstTagList *tags, *merged;

  gst_event_parse_tag (event, &tags);
  merged = pad->tags ? gst_tag_list_merge (pad->tags, tags, GST_TAG_MERGE_REPLACE) : gst_tag_list_ref (tags);
  gst_clear_tag_list (&pad->tags);
  pad->tags = merged;
}

/* Serialised events come here in the streaming thread, when it is their turn among the frames. */
static gboolean
gst_gpu_batch_sink_event (GstAggregator *aggregator, GstAggregatorPad *aggregator_pad, GstEvent *event)
{
  GstGpuBatchPad *pad = GST_GPU_BATCH_PAD (aggregator_pad);
  gboolean result = TRUE;
  const gchar *stream_id;
  GstCaps *caps;

  switch (GST_EVENT_TYPE (event)) {
  case GST_EVENT_STREAM_START:
    gst_event_parse_stream_start (event, &stream_id);
    gst_clear_tag_list (&pad->tags);
    g_free (pad->stream_id);
    pad->stream_id = g_strdup (stream_id);
    pad->ended = FALSE;
    break;
  case GST_EVENT_CAPS:
    gst_event_parse_caps (event, &caps);
    result = take_caps (GST_GPU_BATCH (aggregator), pad, caps);
    gst_event_unref (event);
    return result;
  case GST_EVENT_TAG:
    take_tags (pad, event);
    gst_event_unref (event);
    return TRUE;
  case GST_EVENT_SEGMENT:
    pad->segment_seqnum = gst_event_get_seqnum (event);
    pad->ended = FALSE;
    break;
  case GST_EVENT_EOS:
    pad->eos_seqnum = gst_event_get_seqnum (event);
    break;
  default:
    break;
  }
  return GST_AGGREGATOR_CLASS (parent_class)->sink_event (aggregator, aggregator_pad, event);
}

/* Times. */

static GstClockTime
running_time (GstGpuBatchPad *pad, GstBuffer *buffer)
{
  const GstSegment *segment = &GST_AGGREGATOR_PAD (pad)->segment;

  if (segment->format != GST_FORMAT_TIME || !GST_CLOCK_TIME_IS_VALID (GST_BUFFER_DTS_OR_PTS (buffer)))
    return GST_CLOCK_TIME_NONE;
  return gst_segment_to_running_time (
      segment, GST_FORMAT_TIME, GST_BUFFER_PTS_IS_VALID (buffer) ? GST_BUFFER_PTS (buffer) : GST_BUFFER_DTS (buffer));
}

/* That of the earliest frame that waits: from then on the latency runs. */
static GstClockTime
gst_gpu_batch_get_next_time (GstAggregator *aggregator)
{
  GstClockTime next = GST_CLOCK_TIME_NONE;

  GST_OBJECT_LOCK (aggregator);
  for (GList *link = GST_ELEMENT (aggregator)->sinkpads; link; link = link->next) {
    GstBuffer *buffer = gst_aggregator_pad_peek_buffer (link->data);
    GstClockTime time = buffer ? running_time (link->data, buffer) : GST_CLOCK_TIME_NONE;

    if (GST_CLOCK_TIME_IS_VALID (time) && (!GST_CLOCK_TIME_IS_VALID (next) || time < next))
      next = time;
    gst_clear_buffer (&buffer);
  }
  GST_OBJECT_UNLOCK (aggregator);
  return next;
}

/* Frames. */

/* A frame that waits to be sent on, with its running time. */
typedef struct {
  GstGpuBatchFrame frame;
  GstClockTime time;
} Item;

static void
clear_item (gpointer data)
{
  gst_gpu_batch_frame_clear (&((Item *)data)->frame);
}

static gboolean
check_frame (GstGpuBatch *self, GstGpuBatchPad *pad, GstBuffer *buffer, GpuDevice **device)
{
  GstMemory *memory = gst_gpu_frame_memory (buffer);
  GpuDevice *its;

  if (!pad->caps) {
    GST_ELEMENT_ERROR (self, STREAM, FORMAT, ("A frame came on %s before caps did.", GST_PAD_NAME (pad)), (NULL));
    return FALSE;
  }
  if (!memory) {
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
                       ("A frame came in system memory on %s although its caps say " GST_CAPS_FEATURE_MEMORY_GPU_CACHE
                        ": put gpuupload in front.",
                        GST_PAD_NAME (pad)),
                       (NULL));
    return FALSE;
  }
  its = gpu_image_device (gst_gpu_memory_get_image (memory));
  if (*device && its != *device) {
    GST_ELEMENT_ERROR (self, STREAM, WRONG_TYPE,
                       ("Frames of device %s and, on %s, of device %s cannot be one batch: give all sources the same "
                        "device, or put gpuupload device=%s in front of that pad.",
                        gpu_device_name (*device), GST_PAD_NAME (pad), gpu_device_name (its),
                        gpu_device_name (*device)),
                       (NULL));
    return FALSE;
  }
  *device = its;
  return TRUE;
}

/* What the base class makes of a gap event. */
static gboolean
is_gap (GstBuffer *buffer)
{
  return GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_GAP) && gst_buffer_n_memory (buffer) == 0;
}

/* Takes over @buffer, which is NULL at the end of the pad. */
static void
fill_item (Item *item, GstGpuBatchPad *pad, GstBuffer *buffer)
{
  GstGpuBatchFrame *frame = &item->frame;
  const GstGpuBatchFrame fresh = {
      .pad = pad->number,
      .stream_id = g_strdup (pad->stream_id),
      .segment = GST_AGGREGATOR_PAD (pad)->segment,
      .tags = pad->tags ? gst_tag_list_ref (pad->tags) : NULL,
      .pts = buffer ? GST_BUFFER_PTS (buffer) : GST_CLOCK_TIME_NONE,
      .dts = buffer ? GST_BUFFER_DTS (buffer) : GST_CLOCK_TIME_NONE,
      .duration = buffer ? GST_BUFFER_DURATION (buffer) : GST_CLOCK_TIME_NONE,
      .eos = gst_aggregator_pad_is_eos (GST_AGGREGATOR_PAD (pad)),
      .segment_seqnum = pad->segment_seqnum,
  };

  *frame = fresh;
  if (frame->eos)
    frame->eos_seqnum = pad->eos_seqnum;
  item->time = buffer ? running_time (pad, buffer) : GST_CLOCK_TIME_NONE;
  pad->ended = frame->eos;
  if (buffer && is_gap (buffer)) {
    gst_buffer_unref (buffer);
    return;
  }
  frame->buffer = buffer;
  if (buffer)
    frame->caps = gst_caps_ref (pad->caps);
  if (buffer && !gst_gpu_frame_info_is_tensor (&pad->info))
    gst_gpu_frame_rectangle (buffer, &pad->info, &frame->crop);
}

/* In the order of the pads' numbers, whatever order they were requested in. */
static gint
compare_pads (gconstpointer a, gconstpointer b)
{
  const GstGpuBatchPad *const *one = a, *const *other = b;

  return (*one)->number < (*other)->number ? -1 : (*one)->number > (*other)->number;
}

static GPtrArray *
list_pads (GstGpuBatch *self)
{
  GPtrArray *pads = g_ptr_array_new_with_free_func (gst_object_unref);

  GST_OBJECT_LOCK (self);
  for (GList *link = GST_ELEMENT (self)->sinkpads; link; link = link->next)
    g_ptr_array_add (pads, gst_object_ref (link->data));
  GST_OBJECT_UNLOCK (self);
  g_ptr_array_sort (pads, compare_pads);
  return pads;
}

/* The ends of streams whose pads are gone. */
static void
collect_released (GstGpuBatch *self, GArray *items)
{
  GST_OBJECT_LOCK (self);
  for (guint i = 0; i < self->released->len; i++) {
    Item item = {.time = GST_CLOCK_TIME_NONE};

    gst_gpu_batch_frame_clear (&item.frame);
    item.frame.pad = g_array_index (self->released, guint, i);
    item.frame.eos = item.frame.released = TRUE;
    g_array_append_val (items, item);
  }
  g_array_set_size (self->released, 0);
  GST_OBJECT_UNLOCK (self);
}

/* What is there, one from each pad. FALSE if an error was posted. */
static gboolean
collect (GstGpuBatch *self, GPtrArray *pads, GArray *items)
{
  GpuDevice *device = NULL;

  for (guint i = 0; i < pads->len; i++) {
    GstGpuBatchPad *pad = g_ptr_array_index (pads, i);
    GstBuffer *buffer = gst_aggregator_pad_pop_buffer (GST_AGGREGATOR_PAD (pad));
    Item item;

    if (!buffer && (pad->ended || !gst_aggregator_pad_is_eos (GST_AGGREGATOR_PAD (pad))))
      continue;
    if (buffer && !is_gap (buffer) && !check_frame (self, pad, buffer, &device)) {
      gst_buffer_unref (buffer);
      return FALSE;
    }
    fill_item (&item, pad, buffer);
    g_array_append_val (items, item);
  }
  return TRUE;
}

/* The position of a running time in the segment of the batches, which begins where a seek went. */
static GstClockTime
position_of (GstGpuBatch *self, GstClockTime time)
{
  GstPad *pad = GST_AGGREGATOR_SRC_PAD (self);
  const GstSegment *segment = &GST_AGGREGATOR_PAD (pad)->segment;
  GstClockTime position = GST_CLOCK_TIME_NONE;

  GST_OBJECT_LOCK (pad);
  if (GST_CLOCK_TIME_IS_VALID (time) && segment->format == GST_FORMAT_TIME)
    position = gst_segment_position_from_running_time (segment, GST_FORMAT_TIME, time);
  GST_OBJECT_UNLOCK (pad);
  return GST_CLOCK_TIME_IS_VALID (position) ? position : time;
}

/* Takes over the frames of @items. */
static GstFlowReturn
push_batch (GstGpuBatch *self, const Item *items, guint n)
{
  GstBuffer *buffer = gst_buffer_new ();
  GstGpuBatchMeta *meta = gst_buffer_add_gpu_batch_meta (buffer, n);
  GstSegment *segment = &GST_AGGREGATOR_PAD (GST_AGGREGATOR_SRC_PAD (self))->segment;
  GstClockTime time = GST_CLOCK_TIME_NONE, duration = GST_CLOCK_TIME_NONE;

  for (guint i = 0; i < n; i++) {
    const GstGpuBatchFrame *frame = &items[i].frame;

    meta->frames[i] = *frame;
    if (GST_CLOCK_TIME_IS_VALID (items[i].time) && (!GST_CLOCK_TIME_IS_VALID (time) || items[i].time < time))
      time = items[i].time;
    if (GST_CLOCK_TIME_IS_VALID (frame->duration) &&
        (!GST_CLOCK_TIME_IS_VALID (duration) || frame->duration > duration))
      duration = frame->duration;
  }
  /* A late frame does not turn time back. */
  if (GST_CLOCK_TIME_IS_VALID (self->last) && (!GST_CLOCK_TIME_IS_VALID (time) || time < self->last))
    time = self->last;
  self->last = time;
  time = position_of (self, time);
  GST_BUFFER_PTS (buffer) = time;
  GST_BUFFER_DURATION (buffer) = duration;
  if (GST_CLOCK_TIME_IS_VALID (time))
    segment->position = GST_CLOCK_TIME_IS_VALID (duration) ? time + duration : time;
  GST_LOG_OBJECT (self, "a batch of %u at %" GST_TIME_FORMAT, n, GST_TIME_ARGS (time));
  return gst_aggregator_finish_buffer (GST_AGGREGATOR (self), buffer);
}

static gboolean
is_all_over (GPtrArray *pads)
{
  for (guint i = 0; i < pads->len; i++)
    if (!gst_aggregator_pad_is_eos (g_ptr_array_index (pads, i)))
      return FALSE;
  return TRUE;
}

/* How many frames a batch of @n_pads pads has at most. */
static guint
get_batch_size (GstGpuBatch *self, guint n_pads)
{
  guint size;

  GST_OBJECT_LOCK (self);
  size = self->max_batch_size ? self->max_batch_size : n_pads;
  GST_OBJECT_UNLOCK (self);
  return MAX (size, 1);
}

static GstCaps *
make_caps (guint batch_size)
{
  GstCaps *caps = gst_caps_make_writable (gst_static_pad_template_get_caps (&src_template));

  gst_caps_set_simple (caps, "batch-size", G_TYPE_INT, (gint)batch_size, NULL);
  return caps;
}

static GstFlowReturn
gst_gpu_batch_aggregate (GstAggregator *aggregator, gboolean timeout)
{
  GstGpuBatch *self = GST_GPU_BATCH (aggregator);
  g_autoptr (GPtrArray) pads = NULL;
  g_autoptr (GArray) items = g_array_new (FALSE, FALSE, sizeof (Item));
  GstFlowReturn result = GST_FLOW_OK;
  guint most, n_ends, sent = 0;

  g_array_set_clear_func (items, clear_item);
  /* In this order, or a pad that takes the name of one that was released could have a frame before that one's end. */
  collect_released (self, items);
  n_ends = items->len;
  pads = list_pads (self);
  if (!collect (self, pads, items))
    return GST_FLOW_ERROR;
  if (!items->len)
    return is_all_over (pads) ? GST_FLOW_EOS : GST_FLOW_OK;

  /* Of the pads as they were looked at: one may have been released since. */
  most = get_batch_size (self, pads->len);
  if (most != self->batch_size) {
    g_autoptr (GstCaps) caps = make_caps (self->batch_size = most);

    gst_aggregator_set_src_caps (aggregator, caps);
  }
  while (sent < items->len && result == GST_FLOW_OK) {
    /* Ends of streams whose pads are gone come on top. */
    const guint n = MIN (most + (sent ? 0 : n_ends), items->len - sent);
    const guint first = sent;

    sent += n;
    result = push_batch (self, &g_array_index (items, Item, first), n);
  }
  /* Those that were sent are the batches'. */
  for (guint i = 0; i < sent; i++)
    g_array_index (items, Item, i).frame = (GstGpuBatchFrame){0};
  return result;
}

static gboolean
gst_gpu_batch_start (GstAggregator *aggregator)
{
  GstGpuBatch *self = GST_GPU_BATCH (aggregator);

  self->last = GST_CLOCK_TIME_NONE;
  self->batch_size = 0;
  GST_OBJECT_LOCK (self);
  g_array_set_size (self->released, 0);
  GST_OBJECT_UNLOCK (self);
  return TRUE;
}

/* A pad that is used again begins anew. */
static gboolean
gst_gpu_batch_stop (GstAggregator *aggregator)
{
  g_autoptr (GPtrArray) pads = list_pads (GST_GPU_BATCH (aggregator));

  for (guint i = 0; i < pads->len; i++) {
    GstGpuBatchPad *pad = g_ptr_array_index (pads, i);

    forget_stream (pad);
    pad->ended = FALSE;
  }
  return TRUE;
}

static GstFlowReturn
gst_gpu_batch_flush (GstAggregator *aggregator)
{
  GST_GPU_BATCH (aggregator)->last = GST_CLOCK_TIME_NONE;
  return GST_FLOW_OK;
}

/* Whether @caps would take batches of some other number of frames. */
static gboolean
is_only_number_wrong (GstCaps *caps)
{
  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    const GValue *number = gst_structure_get_value (gst_caps_get_structure (caps, i), "batch-size");
    g_autoptr (GstCaps) own = make_caps (1);

    if (!number)
      continue;
    gst_caps_set_value (own, "batch-size", number);
    if (gst_caps_is_subset (own, caps))
      return TRUE;
  }
  return FALSE;
}

/* What is in a batch changes from one to the next, so its caps say nothing about it but how much. */
static GstFlowReturn
gst_gpu_batch_update_src_caps (GstAggregator *aggregator, GstCaps *caps, GstCaps **result)
{
  GstGpuBatch *self = GST_GPU_BATCH (aggregator);
  g_autoptr (GstCaps) own = NULL;
  guint n_pads;

  GST_OBJECT_LOCK (self);
  n_pads = GST_ELEMENT (self)->numsinkpads;
  GST_OBJECT_UNLOCK (self);
  own = make_caps (self->batch_size = get_batch_size (self, n_pads));

  if (!gst_caps_is_subset (own, caps)) {
    g_autofree gchar *text = gst_caps_to_string (caps);

    if (is_only_number_wrong (caps))
      GST_ELEMENT_ERROR (self, CORE, NEGOTIATION,
                         ("Batches of %u frames are not what comes behind takes: set max-batch-size, or the number of "
                          "frames there, so that they are the same.",
                          self->batch_size),
                         ("It takes %s.", text));
    else
      GST_ELEMENT_ERROR (self, CORE, NEGOTIATION,
                         ("A batch has frames of any size and format, and what comes behind takes only some: put "
                          "gpuresize or gpuconvert in between."),
                         ("It takes %s.", text));
    return GST_FLOW_NOT_NEGOTIATED;
  }
  *result = g_steal_pointer (&own);
  return GST_FLOW_OK;
}

/* The object. */

static void
gst_gpu_batch_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  GstGpuBatch *self = GST_GPU_BATCH (object);

  switch (id) {
  case PROP_MAX_BATCH_SIZE:
    GST_OBJECT_LOCK (self);
    self->max_batch_size = g_value_get_uint (value);
    GST_OBJECT_UNLOCK (self);
    break;
  case PROP_FORCE_LIVE:
    gst_aggregator_set_force_live (GST_AGGREGATOR (self), g_value_get_boolean (value));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
}

static void
gst_gpu_batch_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  GstGpuBatch *self = GST_GPU_BATCH (object);

  switch (id) {
  case PROP_MAX_BATCH_SIZE:
    GST_OBJECT_LOCK (self);
    g_value_set_uint (value, self->max_batch_size);
    GST_OBJECT_UNLOCK (self);
    break;
  case PROP_FORCE_LIVE:
    g_value_set_boolean (value, gst_aggregator_get_force_live (GST_AGGREGATOR (self)));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
    break;
  }
}

static void
gst_gpu_batch_finalize (GObject *object)
{
  g_array_unref (GST_GPU_BATCH (object)->released);
  G_OBJECT_CLASS (parent_class)->finalize (object);
}

static void
gst_gpu_batch_class_init (GstGpuBatchClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  GstElementClass *element_class = GST_ELEMENT_CLASS (klass);
  GstAggregatorClass *aggregator_class = GST_AGGREGATOR_CLASS (klass);

  object_class->set_property = gst_gpu_batch_set_property;
  object_class->get_property = gst_gpu_batch_get_property;
  object_class->finalize = gst_gpu_batch_finalize;
  g_object_class_install_property (
      object_class, PROP_MAX_BATCH_SIZE,
      g_param_spec_uint ("max-batch-size", "Maximum batch size",
                         "How many frames a batch has at most; 0 is as many as there are pads", 0, GPU_MAX_BATCH,
                         DEFAULT_MAX_BATCH_SIZE,
                         G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | GST_PARAM_MUTABLE_PLAYING));
  g_object_class_install_property (
      object_class, PROP_FORCE_LIVE,
      g_param_spec_boolean ("force-live", "Force live",
                            "Whether batches go out when the latency runs out although no source is live",
                            DEFAULT_FORCE_LIVE, G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | G_PARAM_CONSTRUCT_ONLY));

  gst_element_class_add_static_pad_template_with_gtype (element_class, &sink_template, GST_TYPE_GPU_BATCH_PAD);
  gst_element_class_add_static_pad_template_with_gtype (element_class, &src_template, GST_TYPE_AGGREGATOR_PAD);
  gst_element_class_set_static_metadata (element_class, "GPU batcher", "Muxer/Video/Hardware",
                                         "Puts frames of several streams in cached device memory into one buffer",
                                         GST_GPU_AUTHOR);
  gst_element_class_add_static_metadata (
      element_class, "example",
      "gst-launch-1.0 gpubatch name=batch ! gpuunbatch name=unbatch "
      "videotestsrc num-buffers=30 ! gpuupload ! batch.sink_0 "
      "videotestsrc num-buffers=30 pattern=ball ! video/x-raw,width=640,height=480 ! gpuupload ! batch.sink_1 "
      "unbatch.src_0 ! queue ! gpudownload ! fakesink unbatch.src_1 ! queue ! gpudownload ! fakesink");

  element_class->pad_removed = GST_DEBUG_FUNCPTR (gst_gpu_batch_pad_removed);
  aggregator_class->create_new_pad = GST_DEBUG_FUNCPTR (gst_gpu_batch_create_new_pad);
  aggregator_class->sink_event = GST_DEBUG_FUNCPTR (gst_gpu_batch_sink_event);
  aggregator_class->get_next_time = GST_DEBUG_FUNCPTR (gst_gpu_batch_get_next_time);
  aggregator_class->aggregate = GST_DEBUG_FUNCPTR (gst_gpu_batch_aggregate);
  aggregator_class->start = GST_DEBUG_FUNCPTR (gst_gpu_batch_start);
  aggregator_class->stop = GST_DEBUG_FUNCPTR (gst_gpu_batch_stop);
  aggregator_class->flush = GST_DEBUG_FUNCPTR (gst_gpu_batch_flush);
  aggregator_class->update_src_caps = GST_DEBUG_FUNCPTR (gst_gpu_batch_update_src_caps);

  gst_type_mark_as_plugin_api (GST_TYPE_GPU_BATCH_PAD, 0);
}

static void
gst_gpu_batch_init (GstGpuBatch *self)
{
  self->max_batch_size = DEFAULT_MAX_BATCH_SIZE;
  self->released = g_array_new (FALSE, FALSE, sizeof (guint));
}
