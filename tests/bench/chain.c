/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See chain.h.
 */
#include "chain.h"

#include "bench.h"

struct Chain {
  GstElement *bin;
  GstPad *src, *sink; /* around the bin */
  GstBus *bus;
  GstBuffer *last;
};

static GstFlowReturn
take (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Chain *self = gst_pad_get_element_private (pad);
  gst_buffer_replace (&self->last, NULL);
  self->last = buffer;
  return GST_FLOW_OK;
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

Chain *
chain_new (const char *description, const char *caps, const char *out)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = out ? g_strdup_printf ("%s ! capsfilter caps=\"%s\"", description, out) : NULL;
  GstElement *bin =
      gst_parse_bin_from_description_full (text ? text : description, TRUE, NULL, GST_PARSE_FLAG_FATAL_ERRORS, &error);
  if (!bin && g_error_matches (error, GST_PARSE_ERROR, GST_PARSE_ERROR_NO_SUCH_ELEMENT))
    return NULL;
  if (!bin)
    bench_fail ("%s: %s", description, error->message);

  Chain *self = g_new0 (Chain, 1);
  self->bin = gst_object_ref_sink (bin);
  self->bus = gst_bus_new ();
  gst_element_set_bus (self->bin, self->bus);
  self->src = gst_object_ref_sink (gst_pad_new ("src", GST_PAD_SRC));
  self->sink = gst_object_ref_sink (gst_pad_new ("sink", GST_PAD_SINK));
  gst_pad_set_element_private (self->sink, self);
  gst_pad_set_chain_function (self->sink, take);
  g_autoptr (GstPad) first = gst_element_get_static_pad (self->bin, "sink");
  g_autoptr (GstPad) last = gst_element_get_static_pad (self->bin, "src");
  if (!first || !last || gst_pad_link (self->src, first) != GST_PAD_LINK_OK ||
      gst_pad_link (last, self->sink) != GST_PAD_LINK_OK)
    bench_fail ("%s: its ends cannot be linked", description);
  gst_pad_set_active (self->src, TRUE);
  gst_pad_set_active (self->sink, TRUE);
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

GstBuffer *
chain_last (Chain *self)
{
  return self->last;
}

void
chain_free (Chain *self)
{
  gst_element_set_state (self->bin, GST_STATE_NULL);
  gst_pad_set_active (self->src, FALSE);
  gst_pad_set_active (self->sink, FALSE);
  gst_buffer_replace (&self->last, NULL);
  gst_object_unref (self->src);
  gst_object_unref (self->sink);
  gst_element_set_bus (self->bin, NULL);
  gst_object_unref (self->bin);
  gst_object_unref (self->bus);
  g_free (self);
}
