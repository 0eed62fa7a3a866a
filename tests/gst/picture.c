/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For tests of elements; see the header.
 */
#include "picture.h"

const char *const test_formats[N_TEST_FORMATS] = {"GRAY8", "RGB",  "BGR",  "RGBA", "BGRA", "ARGB", "ABGR",
                                                  "RGBx",  "BGRx", "xRGB", "xBGR", "NV12", "I420"};

const char *const all_formats[N_ALL_FORMATS] = {"GRAY8", "RGB",  "BGR",  "RGBA", "BGRA", "ARGB",      "ABGR", "RGBx",
                                                "BGRx",  "xRGB", "xBGR", "NV12", "I420", "P010_10LE", "RGBP", "GBR"};

guint8 *
plane_at (const Plane *plane, int x, int y)
{
  g_assert_true (x >= 0 && x < plane->width && y >= 0 && y < plane->height);
  return plane->data + ((gsize)y * (gsize)plane->width + (gsize)x) * (gsize)plane->bytes;
}

/* A component that is in the plane. */
static guint
component_of (const GstVideoFormatInfo *info, guint plane)
{
  guint component = 0;

  while (GST_VIDEO_FORMAT_INFO_PLANE (info, component) != plane)
    component++;
  return component;
}

Picture *
picture_new (GstVideoFormat format, int width, int height)
{
  const GstVideoFormatInfo *info = gst_video_format_get_info (format);
  Picture *picture = g_new0 (Picture, 1);

  picture->format = format;
  picture->n_planes = (int)GST_VIDEO_FORMAT_INFO_N_PLANES (info);
  for (int i = 0; i < picture->n_planes; i++) {
    const guint component = component_of (info, (guint)i);
    Plane *plane = &picture->plane[i];

    plane->width = GST_VIDEO_FORMAT_INFO_SCALE_WIDTH (info, component, width);
    plane->height = GST_VIDEO_FORMAT_INFO_SCALE_HEIGHT (info, component, height);
    plane->bytes = GST_VIDEO_FORMAT_INFO_PSTRIDE (info, component);
    plane->data = g_malloc0 ((gsize)plane->width * (gsize)plane->height * (gsize)plane->bytes);
  }
  return picture;
}

Picture *
picture_read (const GstVideoInfo *info, GstBuffer *buffer)
{
  Picture *picture =
      picture_new (GST_VIDEO_INFO_FORMAT (info), GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info));
  GstVideoFrame frame;

  fail_unless (gst_video_frame_map (&frame, info, buffer, GST_MAP_READ));
  for (int i = 0; i < picture->n_planes; i++) {
    const Plane *plane = &picture->plane[i];

    for (int y = 0; y < plane->height; y++)
      memcpy (plane_at (plane, 0, y),
              (guint8 *)GST_VIDEO_FRAME_PLANE_DATA (&frame, i) + y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, i),
              (gsize)plane->width * (gsize)plane->bytes);
  }
  gst_video_frame_unmap (&frame);
  return picture;
}

Picture *
picture_crop (const Picture *picture, int x, int y, int width, int height)
{
  Picture *part = picture_new (picture->format, width, height);

  for (int i = 0; i < picture->n_planes; i++) {
    const Plane *from = &picture->plane[i], *to = &part->plane[i];
    const GstVideoFormatInfo *info = gst_video_format_get_info (picture->format);
    const guint component = component_of (info, (guint)i);
    const int left = x >> GST_VIDEO_FORMAT_INFO_W_SUB (info, component);
    const int top = y >> GST_VIDEO_FORMAT_INFO_H_SUB (info, component);

    for (int row = 0; row < to->height; row++)
      memcpy (plane_at (to, 0, row), plane_at (from, left, top + row), (gsize)to->width * (gsize)to->bytes);
  }
  return part;
}

GstBuffer *
picture_to_frame (const Picture *picture, const GstVideoInfo *info)
{
  GstBuffer *buffer = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (info), NULL);
  GstVideoFrame frame;

  gst_buffer_memset (buffer, 0, 0xee, GST_VIDEO_INFO_SIZE (info));
  fail_unless (gst_video_frame_map (&frame, info, buffer, GST_MAP_READWRITE));
  for (int i = 0; i < picture->n_planes; i++)
    for (int y = 0; y < picture->plane[i].height; y++)
      memcpy ((guint8 *)GST_VIDEO_FRAME_PLANE_DATA (&frame, i) + y * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, i),
              plane_at (&picture->plane[i], 0, y), (gsize)picture->plane[i].width * (gsize)picture->plane[i].bytes);
  gst_video_frame_unmap (&frame);
  return buffer;
}

void
picture_keep_planes (Picture *picture, int n)
{
  while (picture->n_planes > n)
    g_free (picture->plane[--picture->n_planes].data);
}

void
picture_free (Picture *picture)
{
  picture_keep_planes (picture, 0);
  g_free (picture);
}

void
assert_pictures_near (const Picture *expected, const Picture *got, int levels, const char *what)
{
  fail_unless_equals_int (expected->format, got->format);
  for (int i = 0; i < expected->n_planes; i++) {
    const Plane *a = &expected->plane[i], *b = &got->plane[i];

    fail_unless (a->width == b->width && a->height == b->height, "%s: plane %d is %dx%d, not %dx%d", what, i, b->width,
                 b->height, a->width, a->height);
    for (int y = 0; y < a->height; y++)
      for (int x = 0; x < a->width; x++)
        for (int k = 0; k < a->bytes; k++)
          if (ABS (plane_at (a, x, y)[k] - plane_at (b, x, y)[k]) > levels)
            ck_abort_msg ("%s: plane %d at (%d, %d), byte %d: %d, not %d", what, i, x, y, k, plane_at (b, x, y)[k],
                          plane_at (a, x, y)[k]);
  }
}

void
assert_pictures_equal (const Picture *expected, const Picture *got, const char *what)
{
  assert_pictures_near (expected, got, 0, what);
}

void
info_init (GstVideoInfo *info, const char *format, int width, int height)
{
  fail_unless (gst_video_info_set_format (info, gst_video_format_from_string (format), (guint)width, (guint)height));
}

/* A row's noise depends on what the row is and not on how the frame is laid out. */
static void
fill (guint8 *data, const GstVideoInfo *info, guint32 seed)
{
  g_autoptr (Picture) shape =
      picture_new (GST_VIDEO_INFO_FORMAT (info), GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info));
  guint32 state = seed * 2654435761u + 1;

  for (int i = 0; i < shape->n_planes; i++)
    for (int y = 0; y < shape->plane[i].height; y++)
      for (int k = 0; k < shape->plane[i].width * shape->plane[i].bytes; k++) {
        state = state * 1664525u + 1013904223u;
        data[GST_VIDEO_INFO_PLANE_OFFSET (info, i) + (gsize)y * (gsize)GST_VIDEO_INFO_PLANE_STRIDE (info, i) +
             (gsize)k] = (guint8)(state >> 24);
      }
}

static GstBuffer *
frame_with_layout (const GstVideoInfo *info, gsize size, guint32 seed)
{
  guint8 *data = g_malloc (size);

  memset (data, 0xee, size);
  fill (data, info, seed);
  return gst_buffer_new_wrapped (data, size);
}

GstBuffer *
frame_new (const GstVideoInfo *info, guint32 seed)
{
  return frame_with_layout (info, GST_VIDEO_INFO_SIZE (info), seed);
}

GstBuffer *
frame_new_padded (const GstVideoInfo *info, guint32 seed, int pad)
{
  g_autoptr (Picture) shape =
      picture_new (GST_VIDEO_INFO_FORMAT (info), GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info));
  GstVideoInfo padded = *info;
  GstBuffer *buffer;
  gsize size = 0;

  for (int i = 0; i < shape->n_planes; i++) {
    padded.stride[i] = shape->plane[i].width * shape->plane[i].bytes + pad;
    padded.offset[i] = size + (gsize)pad;
    size = padded.offset[i] + (gsize)padded.stride[i] * (gsize)shape->plane[i].height;
  }
  buffer = frame_with_layout (&padded, size, seed);
  gst_buffer_add_video_meta_full (buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT (info),
                                  (guint)GST_VIDEO_INFO_WIDTH (info), (guint)GST_VIDEO_INFO_HEIGHT (info),
                                  (guint)shape->n_planes, padded.offset, padded.stride);
  return buffer;
}

GstCaps *
frame_caps (const char *format, int width, int height, gboolean gpu)
{
  GstCaps *caps = gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format, "width", G_TYPE_INT, width,
                                       "height", G_TYPE_INT, height, "framerate", GST_TYPE_FRACTION, 30, 1,
                                       "pixel-aspect-ratio", GST_TYPE_FRACTION, 1, 1, NULL);

  if (gpu)
    gst_caps_set_features_simple (caps, gst_caps_features_new (GST_CAPS_FEATURE_MEMORY_GPU_CACHE, NULL));
  return caps;
}

GstHarness *
harness_new_full (const char *factory, const char *device, GstContext *context)
{
  GstElement *element = gst_element_factory_make (factory, NULL);
  GstHarness *h;

  fail_unless (element != NULL, "there is no %s", factory);
  g_object_set (element, "device", device, NULL);
  if (context)
    gst_element_set_context (element, context);
  h = gst_harness_new_with_element (element, "sink", "src");
  gst_object_unref (element);
  return h;
}

GstHarness *
harness_new (const char *factory, const char *device)
{
  return harness_new_full (factory, device, NULL);
}

GstHarness *
harness_new_on (const char *factory, GpuDevice *device)
{
  g_autoptr (GstContext) context = gst_gpu_context_new (device);

  return harness_new_full (factory, "auto", context);
}

GstBuffer *
frame_upload (const GstVideoInfo *info, GstBuffer *frame, const char *device)
{
  GstHarness *h = harness_new ("gpuupload", device);
  GstBuffer *result;

  gst_harness_set_src_caps (h, frame_caps (gst_video_format_to_string (GST_VIDEO_INFO_FORMAT (info)),
                                           GST_VIDEO_INFO_WIDTH (info), GST_VIDEO_INFO_HEIGHT (info), FALSE));
  result = push_and_pull (h, frame);
  gst_harness_teardown (h);
  return result;
}

GstBuffer *
push_and_pull (GstHarness *h, GstBuffer *frame)
{
  GstBuffer *result;

  fail_unless_equals_int (gst_harness_push (h, frame), GST_FLOW_OK);
  result = gst_harness_try_pull (h);
  fail_unless (result != NULL, "no frame came out");
  return result;
}

GstBus *
watch_bus (GstHarness *h)
{
  GstBus *bus = gst_bus_new ();

  gst_element_set_bus (h->element, bus);
  return bus;
}

void
assert_message (GstBus *bus, GstMessageType type, ...)
{
  GstMessage *message = gst_bus_timed_pop_filtered (bus, 10 * GST_SECOND, type);
  g_autoptr (GError) error = NULL;
  const char *word;
  va_list words;

  fail_unless (message != NULL, "there is no %s on the bus", gst_message_type_get_name (type));
  if (type == GST_MESSAGE_ERROR)
    gst_message_parse_error (message, &error, NULL);
  else
    gst_message_parse_warning (message, &error, NULL);

  va_start (words, type);
  while ((word = va_arg (words, const char *)))
    fail_unless (strstr (error->message, word) != NULL, "\"%s\" is not in \"%s\"", word, error->message);
  va_end (words);
  gst_message_unref (message);
}

void
assert_no_message (GstBus *bus, GstMessageType type)
{
  g_autoptr (GstMessage) message = gst_bus_pop_filtered (bus, type);

  fail_unless (message == NULL, "there is a %s on the bus", gst_message_type_get_name (type));
}

guint64
cache_stat (GstElement *element, const char *field)
{
  g_autoptr (GstStructure) stats = NULL;
  guint64 value = 0;

  g_object_get (element, "cache-stats", &stats, NULL);
  fail_unless (stats != NULL, "there are no statistics");
  fail_unless (gst_structure_get_uint64 (stats, field, &value), "there is no field %s", field);
  return value;
}
