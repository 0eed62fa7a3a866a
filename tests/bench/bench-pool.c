/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What it costs to acquire a buffer from GstGpuBufferPool and release it, beside GStreamer's own pool of video frames
 * in system memory, which keeps its frames to itself.
 */
#include "bench.h"

#include <gpucache/gstgpucache.h>
#include <gpucache/testing.h>

typedef struct {
  GstBufferPool *pool;
  GpuStream *stream; /* NULL: the pool's own */
} Source;

/* An active pool (transfer full) of 1080p RGBA frames. */
static GstBufferPool *
activate (GstBufferPool *pool)
{
  g_autoptr (GstCaps) caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, "RGBA", "width", G_TYPE_INT,
                                                  1920, "height", G_TYPE_INT, 1080, NULL);
  if (GST_IS_GPU_BUFFER_POOL (pool))
    gst_caps_set_features_simple (caps, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
  GstVideoInfo info;
  if (!gst_video_info_from_caps (&info, caps))
    bench_fail ("GStreamer does not know these caps");

  GstStructure *config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_set_params (config, caps, (guint)GST_VIDEO_INFO_SIZE (&info), 0, 0);
  gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config) || !gst_buffer_pool_set_active (pool, TRUE))
    bench_fail ("%s cannot be used: GST_DEBUG=3 says why", G_OBJECT_TYPE_NAME (pool));
  return pool;
}

static double
run (void *data, unsigned n)
{
  const Source *source = data;
  double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    GstBuffer *buffer = NULL;
    GstFlowReturn flow = source->stream ? gst_gpu_buffer_pool_acquire_on (GST_GPU_BUFFER_POOL (source->pool),
                                                                          source->stream, &buffer, NULL)
                                        : gst_buffer_pool_acquire_buffer (source->pool, &buffer, NULL);
    if (flow != GST_FLOW_OK)
      bench_fail ("%s has no buffer: %s", G_OBJECT_TYPE_NAME (source->pool), gst_flow_get_name (flow));
    gst_buffer_unref (buffer);
  }
  return bench_now () - start;
}

static void
release_source (Source *source)
{
  gst_buffer_pool_set_active (source->pool, FALSE);
  gst_object_unref (source->pool);
  if (source->stream)
    gpu_stream_unref (source->stream);
}

int
main (int argc, char **argv)
{
  g_setenv ("GST_REGISTRY_DISABLE", "yes", FALSE); /* no plugin is needed */
  gst_init (NULL, NULL);
  GpuDevice *device = bench_init (argc, argv);
  GError *error = NULL;
  GpuStream *stream = gpu_stream_new (device, true, &error);
  bench_check (error);
  GpuGate *gate = gpu_gate_new (device, &error);
  bench_check (error);
  gpu_gate_hold (gate, stream, &error);
  bench_check (error);

  Source video = {activate (gst_video_buffer_pool_new ()), NULL};
  Source plain = {activate (gst_gpu_buffer_pool_new (device)), NULL};
  Source busy = {activate (gst_gpu_buffer_pool_new (device)), stream};
  const BenchCase cases[] = {
      {.name = "GstVideoBufferPool", .run = run, .data = &video},
      {.name = "GstGpuBufferPool, on its own stream",
       .run = run,
       .data = &plain,
       .goal = BENCH_AT_MOST,
       .goal_ratio = 2},
      {.name = "GstGpuBufferPool, on a stream that is busy",
       .run = run,
       .data = &busy,
       .goal = BENCH_AT_MOST,
       .goal_ratio = 2},
  };
  bench_compare ("Acquire and release a buffer, 1080p RGBA", BENCH_TIME, cases, G_N_ELEMENTS (cases));

  gpu_gate_free (gate);
  release_source (&video);
  release_source (&plain);
  release_source (&busy);
  gpu_device_unref (device);
  return bench_finish ();
}
