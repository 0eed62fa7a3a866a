/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See transfer.h.
 */
#include "transfer.h"

#ifdef TEST_BUS
#include "../../gst/elements/gstgpuelements.h"

bool
test_device_is_host (const GpuDevice *device)
{
  return false;
}
#endif

void
register_elements (void)
{
#ifdef TEST_BUS
  GST_ELEMENT_REGISTER (gpuupload, NULL);
  GST_ELEMENT_REGISTER (gpudownload, NULL);
  GST_ELEMENT_REGISTER (gpuconvert, NULL);
  GST_ELEMENT_REGISTER (gpuflip, NULL);
  GST_ELEMENT_REGISTER (gpuresize, NULL);
  GST_ELEMENT_REGISTER (gpunormalize, NULL);
  GST_ELEMENT_REGISTER (gpureformat, NULL);
  GST_ELEMENT_REGISTER (gpubatch, NULL);
  GST_ELEMENT_REGISTER (gpuunbatch, NULL);
#endif
}

void
fill_frame (GstBuffer *buffer, const GstVideoInfo *info, guint32 seed)
{
  GstBuffer *from = frame_new (info, seed);
  GstVideoFrame src, dst;

  fail_unless (gst_video_frame_map (&src, info, from, GST_MAP_READ));
  fail_unless (gst_video_frame_map (&dst, info, buffer, GST_MAP_WRITE));
  fail_unless (gst_video_frame_copy (&dst, &src));
  gst_video_frame_unmap (&dst);
  gst_video_frame_unmap (&src);
  gst_buffer_unref (from);
}

void
assert_frame (GstBuffer *buffer, const GstVideoInfo *info, guint32 seed, const char *what)
{
  GstBuffer *frame = frame_new (info, seed);
  g_autoptr (Picture) expected = picture_read (info, frame);
  g_autoptr (Picture) got = picture_read (info, buffer);

  assert_pictures_equal (expected, got, what);
  gst_buffer_unref (frame);
}

GstHarness *
start_round_trip (GstVideoInfo *info, const char *format, int width, int height)
{
  GstHarness *h = gst_harness_new_parse ("gpuupload name=upload ! gpudownload name=download");

  gst_harness_set_src_caps (h, frame_caps (format, width, height, FALSE));
  info_init (info, format, width, height);
  return h;
}
