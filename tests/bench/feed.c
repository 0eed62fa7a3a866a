/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See feed.h.
 */
#include "feed.h"

#include "bench.h"

#include <gpucache/gstgpucache.h>

#include <string.h>

static char *
rgba_caps (const char *feature, unsigned width, unsigned height)
{
  return g_strdup_printf ("video/x-raw%s,format=RGBA,width=%u,height=%u,framerate=30/1", feature, width, height);
}

GstBufferPool *
feed_activate (GstBufferPool *pool, const char *caps_text)
{
  g_autoptr (GstCaps) caps = gst_caps_from_string (caps_text);
  GstVideoInfo info;
  GstStructure *config = gst_buffer_pool_get_config (pool);
  if (!gst_video_info_from_caps (&info, caps))
    bench_fail ("GStreamer does not know %s", caps_text);
  gst_buffer_pool_config_set_params (config, caps, (guint)GST_VIDEO_INFO_SIZE (&info), 0, 0);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config) || !gst_buffer_pool_set_active (pool, TRUE))
    bench_fail ("%s cannot be used", G_OBJECT_TYPE_NAME (pool));
  return pool;
}

static void
fill_with_noise (GstBuffer *buffer)
{
  static uint64_t state = 88172645463325252u;
  GstMapInfo map;
  if (!gst_buffer_map (buffer, &map, GST_MAP_WRITE))
    bench_fail ("a frame cannot be mapped");
  for (gsize i = 0; i + 8 <= map.size; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    memcpy (map.data + i, &state, 8);
  }
  gst_buffer_unmap (buffer, &map);
}

bool
feed_open (Feed *feed, const char *description, GpuStream *stream, unsigned width, unsigned height, const char *out)
{
  g_autofree char *caps = rgba_caps (stream ? FEED_GPU : "", width, height);
  *feed = (Feed){.chain = chain_new (description, caps, &(ChainConsumer){.out = out}), .stream = stream};
  if (!feed->chain)
    return false;
  GstBufferPool *pool = stream ? feed_activate (gst_gpu_buffer_pool_new (gpu_stream_device (stream)), caps)
                               : chain_proposed_pool (feed->chain, caps);
  if (!pool)
    pool = feed_activate (gst_video_buffer_pool_new (), caps);
  for (unsigned i = 0; i < FEED_RING; i++) {
    GstFlowReturn flow =
        stream ? gst_gpu_buffer_pool_acquire_on (GST_GPU_BUFFER_POOL (pool), stream, &feed->input[i], NULL)
               : gst_buffer_pool_acquire_buffer (pool, &feed->input[i], NULL);
    if (flow != GST_FLOW_OK)
      bench_fail ("there is no memory for a frame");
    fill_with_noise (feed->input[i]);
  }
  gst_buffer_pool_set_active (pool, FALSE);
  gst_object_unref (pool);
  return true;
}

void
feed_close (Feed *feed)
{
  chain_free (feed->chain);
  for (unsigned i = 0; i < FEED_RING; i++)
    gst_buffer_unref (feed->input[i]);
  if (feed->stream)
    gpu_stream_unref (feed->stream);
}

void
feed_push (Feed *feed)
{
  chain_push (feed->chain, gst_buffer_ref (feed->input[feed->next]));
  feed->next = (feed->next + 1) % FEED_RING;
}

void
feed_wait (Feed *feed)
{
  GError *error = NULL;
  if (feed->stream)
    gpu_stream_synchronize (feed->stream, &error);
  bench_check (error);
}
