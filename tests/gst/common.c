/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See common.h.
 */
#include "common.h"

#include "../emulator/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Long enough that who does not wait is back by then. */
#define DELAY_US 50000

static gboolean
is_cpu (void)
{
  const char *name = g_getenv ("GPUCACHE_DEVICE");

  return !name || g_str_has_prefix (name, "cpu");
}

gboolean
test_is_lazy (void)
{
  return is_cpu () && g_strcmp0 (g_getenv ("GPUCACHE_CPU_EXECUTOR"), "lazy") == 0;
}

int
test_run (int argc, char **argv, Suite *(*suite) (void), const char *name)
{
  gint failed;

  open_fake_cuda ();
  g_setenv ("CK_FORK", "no", TRUE);
  gst_check_init (&argc, &argv);
  if (!is_cpu ()) {
    g_autoptr (GError) error = NULL;
    GpuDevice *device = gpu_device_open (NULL, &error);

    /* Any other error is one of ours. */
    if (!device && g_error_matches (error, GPU_ERROR, GPU_ERROR_NO_DEVICE)) {
      printf ("skipped: %s\n", error->message);
      return 77;
    }
    g_assert_no_error (error);
    gpu_device_unref (device);
  }
  failed = gst_check_run_suite (suite (), name, __FILE__);
  /* What a failed test leaves playing would keep the program from its end: gst_deinit() waits for its threads. */
  if (failed) {
    fflush (NULL);
    _exit (failed);
  }
  return 0;
}

GpuDevice *
test_device_new (void)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device;

  if (is_cpu ())
    return gpu_cpu_device_new ("cpu:0", test_is_lazy () ? GPU_CPU_LAZY : GPU_CPU_THREADS, 0);

  device = gpu_device_open (NULL, &error);
  g_assert_no_error (error);
  gpu_cache_clear (device, GPU_CACHE_ALL, &error);
  g_assert_no_error (error);
  return device;
}

void
test_give_time (GpuDevice *device)
{
  if (test_is_lazy ())
    gpu_cpu_device_run (device, 1000, 0);
  g_usleep (1000);
}

GpuStream *
test_stream_new (GpuDevice *device)
{
  g_autoptr (GError) error = NULL;
  GpuStream *stream = gpu_stream_new (device, true, &error);

  g_assert_no_error (error);
  return stream;
}

GpuCacheStats
test_stats (GpuDevice *device, GpuAccount account)
{
  GpuCacheStats stats;

  gpu_cache_get_stats (device, account, GPU_CACHE_ALL, &stats);
  return stats;
}

GstVideoFormat
test_video_format (guint i)
{
  static const GstVideoFormat formats[] = {
      GST_VIDEO_FORMAT_GRAY8, GST_VIDEO_FORMAT_RGB,       GST_VIDEO_FORMAT_BGR,  GST_VIDEO_FORMAT_RGBA,
      GST_VIDEO_FORMAT_BGRA,  GST_VIDEO_FORMAT_ARGB,      GST_VIDEO_FORMAT_ABGR, GST_VIDEO_FORMAT_RGBx,
      GST_VIDEO_FORMAT_BGRx,  GST_VIDEO_FORMAT_xRGB,      GST_VIDEO_FORMAT_xBGR, GST_VIDEO_FORMAT_NV12,
      GST_VIDEO_FORMAT_I420,  GST_VIDEO_FORMAT_P010_10LE, GST_VIDEO_FORMAT_RGBP, GST_VIDEO_FORMAT_GBR,
  };

  return i < G_N_ELEMENTS (formats) ? formats[i] : GST_VIDEO_FORMAT_UNKNOWN;
}

void
test_video_info (GstVideoInfo *info, GstVideoFormat format, guint width, guint height)
{
  fail_unless (gst_video_info_set_format (info, format, width, height));
}

GstCaps *
test_caps (GstVideoFormat format, guint width, guint height)
{
  GstVideoInfo info;
  GstCaps *caps;

  test_video_info (&info, format, width, height);
  caps = gst_video_info_to_caps (&info);
  gst_caps_set_features_simple (caps, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
  return caps;
}

GstBuffer *
test_buffer_new (GstMemory *memory)
{
  GstVideoInfo info = *gst_gpu_memory_get_video_info (memory);
  GstBuffer *buffer = gst_buffer_new ();

  gst_buffer_append_memory (buffer, memory);
  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT (&info),
                                  (guint)GST_VIDEO_INFO_WIDTH (&info), (guint)GST_VIDEO_INFO_HEIGHT (&info),
                                  GST_VIDEO_INFO_N_PLANES (&info), info.offset, info.stride);
  return buffer;
}

/* Differs between neighbours in all directions, and between planes and seeds. */
static guint8
pattern (guint seed, guint plane, gsize x, gsize y)
{
  return (guint8)(seed * 59 + plane * 83 + x * 7 + y * 31 + (x * y) % 13);
}

/* Rows and bytes a row that hold samples, worked out apart from the library. */
static void
plane_size (const GstVideoInfo *info, guint plane, gsize *row_bytes, gsize *rows)
{
  gsize width = (gsize)GST_VIDEO_INFO_WIDTH (info), height = (gsize)GST_VIDEO_INFO_HEIGHT (info);

  *rows = plane > 0 && GST_VIDEO_FORMAT_INFO_H_SUB (info->finfo, 1) ? (height + 1) / 2 : height;
  switch (GST_VIDEO_INFO_FORMAT (info)) {
  case GST_VIDEO_FORMAT_GRAY8:
  case GST_VIDEO_FORMAT_RGBP:
  case GST_VIDEO_FORMAT_GBR:
    *row_bytes = width;
    break;
  case GST_VIDEO_FORMAT_RGB:
  case GST_VIDEO_FORMAT_BGR:
    *row_bytes = 3 * width;
    break;
  case GST_VIDEO_FORMAT_NV12:
    *row_bytes = plane > 0 ? (width + 1) / 2 * 2 : width;
    break;
  case GST_VIDEO_FORMAT_P010_10LE:
    *row_bytes = plane > 0 ? (width + 1) / 2 * 4 : 2 * width;
    break;
  case GST_VIDEO_FORMAT_I420:
    *row_bytes = plane > 0 ? (width + 1) / 2 : width;
    break;
  default:
    *row_bytes = 4 * width;
    break;
  }
}

void
test_frame_write (GstBuffer *buffer, const GstVideoInfo *info, guint seed)
{
  GstVideoFrame frame;

  fail_unless (gst_video_frame_map (&frame, info, buffer, GST_MAP_WRITE));
  for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES (info); plane++) {
    gsize row_bytes, rows;

    plane_size (info, plane, &row_bytes, &rows);
    for (gsize y = 0; y < rows; y++) {
      guint8 *row = (guint8 *)GST_VIDEO_FRAME_PLANE_DATA (&frame, plane) +
                    y * (gsize)GST_VIDEO_FRAME_PLANE_STRIDE (&frame, plane);
      for (gsize x = 0; x < row_bytes; x++)
        row[x] = pattern (seed, plane, x, y);
    }
  }
  gst_video_frame_unmap (&frame);
}

void
test_frame_expect (GstBuffer *buffer, const GstVideoInfo *info, guint seed)
{
  GstVideoFrame frame;

  fail_unless (gst_video_frame_map (&frame, info, buffer, GST_MAP_READ));
  for (guint plane = 0; plane < GST_VIDEO_INFO_N_PLANES (info); plane++) {
    gsize row_bytes, rows;

    plane_size (info, plane, &row_bytes, &rows);
    for (gsize y = 0; y < rows; y++) {
      const guint8 *row = (guint8 *)GST_VIDEO_FRAME_PLANE_DATA (&frame, plane) +
                          y * (gsize)GST_VIDEO_FRAME_PLANE_STRIDE (&frame, plane);
      for (gsize x = 0; x < row_bytes; x++)
        if (row[x] != pattern (seed, plane, x, y))
          fail ("%s %dx%d: byte %zu of row %zu in plane %u is %u, not %u", GST_VIDEO_INFO_NAME (info),
                GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info), x, y, plane, row[x],
                pattern (seed, plane, x, y));
    }
  }
  gst_video_frame_unmap (&frame);
}

void
test_memory_write (GstMemory *memory, guint seed)
{
  GstMapInfo map;

  fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
  for (gsize i = 0; i < map.size; i++)
    map.data[i] = pattern (seed, 0, i, 0);
  gst_memory_unmap (memory, &map);
}

void
test_bytes_expect (const guint8 *data, gsize offset, gsize size, guint seed)
{
  for (gsize i = 0; i < size; i++)
    if (data[i] != pattern (seed, 0, offset + i, 0))
      fail ("byte %zu is %u, not %u", i, data[i], pattern (seed, 0, offset + i, 0));
}

void
test_memory_expect (GstMemory *memory, gsize offset, gsize size, guint seed)
{
  GstMapInfo map;

  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, size);
  test_bytes_expect (map.data, offset, size, seed);
  gst_memory_unmap (memory, &map);
}

void
test_delay_begin (TestDelay *delay, GpuStream *stream)
{
  g_autoptr (GError) error = NULL;

  *delay = (TestDelay){.gate = gpu_gate_new (gpu_stream_device (stream), &error)};
  g_assert_no_error (error);
  fail_unless (gpu_gate_hold (delay->gate, stream, &error));
}

static gpointer
open_later (gpointer data)
{
  TestDelay *delay = data;

  g_usleep (DELAY_US);
  g_atomic_int_set (&delay->opened, TRUE);
  gpu_gate_open (delay->gate);
  return NULL;
}

void
test_delay_open_later (TestDelay *delay)
{
  delay->thread = g_thread_new ("opener", open_later, delay);
}

gboolean
test_delay_is_open (TestDelay *delay)
{
  return g_atomic_int_get (&delay->opened);
}

void
test_delay_end (TestDelay *delay)
{
  if (delay->thread)
    g_thread_join (delay->thread);
  gpu_gate_free (delay->gate);
}
