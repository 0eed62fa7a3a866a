/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See chain.h.
 */
#include "chain.h"

#include "bench.h"
#include "foreign.h"

#include <gpucache/gstgpucache.h>

struct Chain {
  GstElement *bin;
  GstPad *src, *sink; /* around the bin */
  GstBus *bus;
  unsigned holds;
  bool reads, is_simple;
  GstBufferPool *insisted; /* NULL unless the consumer insists */
  GQueue held;             /* the oldest first */
};

static void
look_at (GstBuffer *buffer)
{
  GstMapInfo map;
  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    bench_fail ("a frame that came out cannot be mapped");
  gst_buffer_unmap (buffer, &map);
}

static GstFlowReturn
take (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Chain *self = gst_pad_get_element_private (pad);
  g_queue_push_tail (&self->held, buffer);
  if (self->held.length > self->holds) {
    GstBuffer *oldest = g_queue_pop_head (&self->held);
    if (self->reads)
      look_at (oldest);
    gst_buffer_unref (oldest);
  }
  return GST_FLOW_OK;
}

static gboolean
answer (GstPad *pad, GstObject *parent, GstQuery *query)
{
  Chain *self = gst_pad_get_element_private (pad);
  GstCaps *caps = NULL;
  GstVideoInfo info;
  if (GST_QUERY_TYPE (query) != GST_QUERY_ALLOCATION)
    return gst_pad_query_default (pad, parent, query);
  gst_query_parse_allocation (query, &caps, NULL);
  if (self->insisted && caps && gst_video_info_from_caps (&info, caps))
    gst_query_add_allocation_pool (query, self->insisted, (guint)GST_VIDEO_INFO_SIZE (&info), 0, 0);
  if (!self->is_simple)
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  return TRUE;
}

static GstFlowReturn
alloc_foreign (GstBufferPool *pool, GstBuffer **buffer, GstBufferPoolAcquireParams *params)
{
  const GstBufferPoolClass *parent = g_type_class_peek (GST_TYPE_VIDEO_BUFFER_POOL);
  const GstFlowReturn result = parent->alloc_buffer (pool, buffer, params);
  if (result == GST_FLOW_OK)
    gst_buffer_replace_all_memory (*buffer, foreign_memory_new (gst_buffer_get_size (*buffer)));
  return result;
}

static void
init_foreign_pool (gpointer klass, gpointer data)
{
  GST_BUFFER_POOL_CLASS (klass)->alloc_buffer = alloc_foreign;
}

/* A pool that downstream insists on: its type is its own. */
static GstBufferPool *
special_pool_new (bool foreign)
{
  static GType types[2];
  if (!types[foreign])
    types[foreign] = g_type_register_static_simple (
        GST_TYPE_VIDEO_BUFFER_POOL, foreign ? "BenchForeignPool" : "BenchPool", sizeof (GstVideoBufferPoolClass),
        foreign ? init_foreign_pool : NULL, sizeof (GstVideoBufferPool), NULL, (GTypeFlags)0);
  return gst_object_ref_sink (g_object_new (types[foreign], NULL));
}

/* The reason, from the bus, that the chain cannot go on for. */
static void
fail (Chain *self, const char *what)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GstMessage) message = gst_bus_pop_filtered (self->bus, GST_MESSAGE_ERROR);
  if (message)
    gst_message_parse_error (message, &error, NULL);
  bench_fail ("%s: %s", what, error ? error->message : "no element said why");
}

static void
push_event (Chain *self, GstEvent *event)
{
  if (!gst_pad_push_event (self->src, event))
    fail (self, "the elements refuse an event");
}

static void
take_contexts (Chain *self, Chain *other)
{
  GList *contexts = gst_element_get_contexts (other->bin);
  for (GList *i = contexts; i; i = i->next)
    gst_element_set_context (self->bin, i->data);
  g_list_free_full (contexts, (GDestroyNotify)gst_context_unref);
}

static void
link_ends (Chain *self, const char *description)
{
  g_autoptr (GstPad) first = gst_element_get_static_pad (self->bin, "sink");
  g_autoptr (GstPad) last = gst_element_get_static_pad (self->bin, "src");
  self->src = gst_object_ref_sink (gst_pad_new ("src", GST_PAD_SRC));
  self->sink = gst_object_ref_sink (gst_pad_new ("sink", GST_PAD_SINK));
  gst_pad_set_element_private (self->sink, self);
  gst_pad_set_chain_function (self->sink, take);
  gst_pad_set_query_function (self->sink, answer);
  if (!first || !last || gst_pad_link (self->src, first) != GST_PAD_LINK_OK ||
      gst_pad_link (last, self->sink) != GST_PAD_LINK_OK)
    bench_fail ("%s: its ends cannot be linked", description);
  gst_pad_set_active (self->src, TRUE);
  gst_pad_set_active (self->sink, TRUE);
}

Chain *
chain_new (const char *description, const char *caps, const ChainConsumer *consumer)
{
  static const ChainConsumer lets_go = {0};
  consumer = consumer ? consumer : &lets_go;
  g_autoptr (GError) error = NULL;
  g_autofree char *text =
      consumer->out ? g_strdup_printf ("%s ! capsfilter caps=\"%s\"", description, consumer->out) : NULL;
  GstElement *bin =
      gst_parse_bin_from_description_full (text ? text : description, TRUE, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (!bin && g_error_matches (error, GST_PARSE_ERROR, GST_PARSE_ERROR_NO_SUCH_ELEMENT))
    return NULL;
  if (!bin)
    bench_fail ("%s: %s", description, error->message);

  Chain *self = g_new0 (Chain, 1);
  self->bin = gst_object_ref_sink (bin);
  self->bus = gst_bus_new ();
  self->holds = MAX (consumer->holds, 1);
  self->reads = consumer->reads;
  self->is_simple = consumer->is_simple;
  self->insisted = consumer->insists ? special_pool_new (consumer->is_foreign) : NULL;
  g_queue_init (&self->held);
  gst_element_set_bus (self->bin, self->bus);
  link_ends (self, description);
  if (consumer->contexts_of)
    take_contexts (self, consumer->contexts_of);
  if (gst_element_set_state (self->bin, GST_STATE_PLAYING) == GST_STATE_CHANGE_FAILURE)
    fail (self, description);

  GstSegment segment;
  gst_segment_init (&segment, GST_FORMAT_TIME);
  push_event (self, gst_event_new_stream_start ("bench"));
  push_event (self, gst_event_new_caps (gst_caps_from_string (caps)));
  push_event (self, gst_event_new_segment (&segment));
  return self;
}

GstBufferPool *
chain_proposed_pool (Chain *self, const char *caps_text)
{
  g_autoptr (GstCaps) caps = gst_caps_from_string (caps_text);
  GstQuery *query = gst_query_new_allocation (caps, TRUE);
  GstBufferPool *pool = NULL;
  guint size = 0, least = 0, most = 0;
  if (gst_pad_peer_query (self->src, query) && gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &least, &most);
  gst_query_unref (query);
  if (!pool)
    return NULL;
  GstStructure *config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_set_params (config, caps, size, least, 0);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config) || !gst_buffer_pool_set_active (pool, TRUE))
    fail (self, "the pool that the first element proposes cannot be used");
  return pool;
}

void
chain_push (Chain *self, GstBuffer *buffer)
{
  if (gst_pad_push (self->src, buffer) != GST_FLOW_OK)
    fail (self, "the elements refuse a frame");
}

void
chain_drain (Chain *self)
{
  GError *error = NULL;
  GstBuffer *buffer;
  while ((buffer = g_queue_pop_head (&self->held))) {
    GstMemory *memory = gst_buffer_n_memory (buffer) > 0 ? gst_buffer_peek_memory (buffer, 0) : NULL;
    if (self->reads)
      look_at (buffer);
    else if (self->held.length == 0 && memory && gst_is_gpu_memory (memory))
      gpu_image_wait (gst_gpu_memory_get_image (memory), GPU_ACCESS_READ, &error);
    bench_check (error);
    gst_buffer_unref (buffer);
  }
}

GstBuffer *
chain_ref_last (Chain *self)
{
  if (self->held.length == 0)
    fail (self, "nothing came out");
  return gst_buffer_ref (g_queue_peek_tail (&self->held));
}

char *
chain_out_caps (Chain *self)
{
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (self->sink);
  if (!caps)
    fail (self, "nothing came out");
  return gst_caps_to_string (caps);
}

void
chain_free (Chain *self)
{
  if (!self)
    return;
  chain_drain (self);
  gst_element_set_state (self->bin, GST_STATE_NULL);
  gst_pad_set_active (self->src, FALSE);
  gst_pad_set_active (self->sink, FALSE);
  gst_object_unref (self->src);
  gst_object_unref (self->sink);
  gst_element_set_bus (self->bin, NULL);
  gst_object_unref (self->bin);
  gst_object_unref (self->bus);
  gst_clear_object (&self->insisted);
  g_free (self);
}
