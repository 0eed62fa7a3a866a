/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpuresize's filters, borders and crops: that settings reach the library, where the picture and the border are,
 * against videoscale, and what follows the picture there.
 */
#include "common.h"
#include "picture.h"

#include <math.h>

static const char *const methods[] = {"nearest-neighbour", "bilinear", "box", "hamming", "bicubic", "lanczos"};

static GstCaps *
caps_of (const char *format, int width, int height, int par_n, int par_d, gboolean gpu)
{
  GstCaps *caps = frame_caps (format, width, height, gpu);

  gst_caps_set_simple (caps, "pixel-aspect-ratio", GST_TYPE_FRACTION, par_n, par_d, NULL);
  return caps;
}

/* Returns: (transfer full): what the harness' gpuresize makes of a frame. */
static Picture *
scale (GstHarness *h, const GstVideoInfo *info, GstBuffer *frame)
{
  GstBuffer *out = push_and_pull (h, frame_upload (info, frame, NULL));
  g_autoptr (GstCaps) caps = gst_pad_get_current_caps (h->sinkpad);
  GstVideoInfo out_info;
  Picture *picture;

  fail_unless (gst_video_info_from_caps (&out_info, caps));
  picture = picture_read (&out_info, out);
  gst_buffer_unref (out);
  return picture;
}

/* What the library makes of the same picture. */
static Picture *
scale_directly (const GstVideoInfo *info, GstBuffer *frame, const GstVideoInfo *out_info, const GpuResize *params)
{
  GstBuffer *in = frame_upload (info, frame, NULL);
  GstMemory *memory = gst_buffer_peek_memory (in, 0);
  GpuStream *stream = gst_gpu_memory_get_stream (memory);
  GpuDevice *device = gpu_stream_device (stream);
  const GpuFormat format = gst_gpu_format_from_video_format (GST_VIDEO_INFO_FORMAT (info));
  g_autofree guint8 *bytes = NULL;
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec, packed;
  GstVideoInfo layout = *out_info;
  GpuImage *dst;
  GstBuffer *buffer;
  Picture *picture;

  fail_unless (gpu_image_spec_init (&spec, format, (guint)out_info->width, (guint)out_info->height, 0, &error));
  fail_unless (gst_gpu_image_spec_from_video_info (&packed, &layout, &error));
  bytes = g_malloc0 (packed.size);
  dst = gpu_image_acquire (device, &spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  fail_unless (gpu_resize_full (stream, gst_gpu_memory_get_image (memory), dst, params, &error));
  fail_unless (gpu_image_copy_to_host (stream, dst, bytes, &packed, &error));
  gpu_image_unref (dst);
  gst_buffer_unref (in);
  buffer = gst_buffer_new_memdup (bytes, out_info->size);
  picture = picture_read (out_info, buffer);
  gst_buffer_unref (buffer);
  return picture;
}

/* Every filter of every format, with and without antialias, is the library's of that name. */
GST_START_TEST (methods_are_the_library_s)
{
  static const GpuResizeFilter filters[] = {GPU_RESIZE_NEAREST, GPU_RESIZE_BILINEAR, GPU_RESIZE_BOX,
                                            GPU_RESIZE_HAMMING, GPU_RESIZE_BICUBIC,  GPU_RESIZE_LANCZOS};

  for (guint i = 0; i < N_ALL_FORMATS * G_N_ELEMENTS (methods) * 2; i++) {
    const char *format = all_formats[i % N_ALL_FORMATS], *method = methods[i / N_ALL_FORMATS % 6];
    const GpuResize params = {.filter = filters[i / N_ALL_FORMATS % 6], .antialias = i / N_ALL_FORMATS / 6};
    GstHarness *h = gst_harness_new ("gpuresize");
    g_autofree char *what = g_strdup_printf ("%s, %s, antialias=%d", format, method, params.antialias);
    g_autoptr (Picture) got = NULL;
    g_autoptr (Picture) expected = NULL;
    GstVideoInfo info, out_info;

    gst_util_set_object_arg (G_OBJECT (h->element), "method", method);
    if (!params.antialias)
      g_object_set (h->element, "antialias", FALSE, NULL);
    g_object_set (h->element, "add-borders", FALSE, NULL);
    info_init (&info, format, 51, 33);
    info_init (&out_info, format, 23, 40);
    gst_harness_set_caps (h, frame_caps (format, 51, 33, TRUE), frame_caps (format, 23, 40, TRUE));
    got = scale (h, &info, frame_new (&info, i));
    expected = scale_directly (&info, frame_new (&info, i), &out_info, &params);
    assert_pictures_equal (expected, got, what);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

GST_START_TEST (properties)
{
  g_autoptr (GstElement) element = gst_object_ref_sink (gst_element_factory_make ("gpuresize", NULL));
  gboolean antialias, borders;
  guint color;
  int method;

  g_object_get (element, "method", &method, "antialias", &antialias, "add-borders", &borders, "border-color", &color,
                NULL);
  fail_unless (method == GPU_RESIZE_BILINEAR && antialias && borders && color == 0xff000000);
  for (int i = 0; i < 6; i++) {
    gst_util_set_object_arg (G_OBJECT (element), "method", methods[i]);
    g_object_get (element, "method", &method, NULL);
    fail_unless_equals_string (
        g_enum_get_value (g_type_class_peek (g_type_from_name ("GstGpuResizeMethod")), method)->value_nick, methods[i]);
  }
  /* Pillow's name for it. */
  gst_util_set_object_arg (G_OBJECT (element), "method", "nearest");
  g_object_get (element, "method", &method, NULL);
  fail_unless_equals_int (method, GPU_RESIZE_NEAREST);
}
GST_END_TEST

/* Where white is in a frame with black around it. */
static GstVideoRectangle
find_white (const Picture *picture)
{
  const Plane *plane = &picture->plane[0];
  int left = plane->width, top = plane->height, right = -1, bottom = -1;

  for (int y = 0; y < plane->height; y++)
    for (int x = 0; x < plane->width; x++)
      if (plane_at (plane, x, y)[0] > 128) {
        left = MIN (left, x);
        right = MAX (right, x);
        top = MIN (top, y);
        bottom = MAX (bottom, y);
      }
  return (GstVideoRectangle){left, top, right - left + 1, bottom - top + 1};
}

static const int shapes[][8] = {
    /* Size and pixel-aspect-ratio of what comes in, and of what goes out. */
    {1280, 720, 1, 1, 640, 640, 1, 1}, {720, 1280, 1, 1, 640, 640, 1, 1}, {64, 48, 1, 1, 100, 75, 1, 1},
    {64, 48, 1, 1, 99, 75, 1, 1},      {720, 576, 16, 15, 96, 96, 1, 1},  {72, 57, 16, 11, 320, 180, 4, 3},
    {33, 17, 1, 1, 50, 50, 1, 1},      {33, 17, 1, 1, 51, 53, 1, 1},      {640, 480, 1, 1, 133, 100, 1, 1},
    {64, 64, 1, 1, 64, 64, 2, 1},
};

GST_START_TEST (borders_are_where_videoscale_has_them)
{
  static const char *const formats[] = {"RGBA", "I420", "GRAY8", "NV12"};

  for (guint i = 0; i < G_N_ELEMENTS (shapes) * G_N_ELEMENTS (formats); i++) {
    const char *format = formats[i % 4];
    const int *s = shapes[i / 4];
    g_autofree char *what = g_strdup_printf ("%s %dx%d to %dx%d", format, s[0], s[1], s[4], s[5]);
    GstVideoRectangle at[2];
    /* Even edges, and a size that videoscale rounds down. */
    const int slack = i % 2 ? 2 : 1;
    GstVideoInfo info;

    info_init (&info, format, s[0], s[1]);
    for (int e = 0; e < 2; e++) {
      GstHarness *h = gst_harness_new_parse (e ? "videoscale" : "gpuupload ! gpuresize ! gpudownload");
      GstBuffer *frame = gst_buffer_new_allocate (NULL, info.size, NULL), *out;
      g_autoptr (Picture) picture = NULL;
      GstVideoInfo out_info;

      gst_buffer_memset (frame, 0, i % 2 ? 128 : 255, info.size);
      gst_buffer_memset (frame, 0, 235, (gsize)info.stride[0] * (gsize)s[1]);
      info_init (&out_info, format, s[4], s[5]);
      gst_harness_set_caps (h, caps_of (format, s[0], s[1], s[2], s[3], FALSE),
                            caps_of (format, s[4], s[5], s[6], s[7], FALSE));
      out = push_and_pull (h, frame);
      picture = picture_read (&out_info, out);
      at[e] = find_white (picture);
      gst_buffer_unref (out);
      gst_harness_teardown (h);
    }
    fail_unless (ABS (at[0].x - at[1].x) <= slack && ABS (at[0].y - at[1].y) <= slack &&
                     ABS (at[0].w - at[1].w) <= slack && ABS (at[0].h - at[1].h) <= slack,
                 "%s: %dx%d at (%d, %d), not %dx%d at (%d, %d)", what, at[0].w, at[0].h, at[0].x, at[0].y, at[1].w,
                 at[1].h, at[1].x, at[1].y);
  }
}
GST_END_TEST

/* The picture's part is exactly the picture scaled to that size, and the rest has the colour. */
GST_START_TEST (picture_and_border)
{
  for (guint i = 0; i < N_ALL_FORMATS * G_N_ELEMENTS (methods); i++) {
    const char *format = all_formats[i % N_ALL_FORMATS];
    /* 64x32 into 50x50: 50x25, or 50x26 of even rows. */
    const gboolean is_420 = strchr ("NIP", format[0]) != NULL;
    const int top = 12, rows = is_420 ? 26 : 25;
    GstHarness *h = gst_harness_new ("gpuresize"), *plain = gst_harness_new ("gpuresize"),
               *color = gst_harness_new_parse ("gpuupload ! gpuconvert ! gpudownload");
    g_autofree char *what = g_strdup_printf ("%s, %s", format, methods[i / N_ALL_FORMATS]);
    g_autoptr (Picture) got = NULL;
    g_autoptr (Picture) part = NULL;
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) border = NULL;
    GstVideoInfo info, color_info, rgba_info;
    GstBuffer *buffer;

    info_init (&info, format, 64, 32);
    for (int k = 0; k < 2; k++) {
      gst_util_set_object_arg (G_OBJECT (k ? plain->element : h->element), "method", methods[i / N_ALL_FORMATS]);
      g_object_set (k ? plain->element : h->element, "border-color", 0x40ff8010, "add-borders", !k, NULL);
    }
    gst_harness_set_caps (h, frame_caps (format, 64, 32, TRUE), frame_caps (format, 50, 50, TRUE));
    gst_harness_set_caps (plain, frame_caps (format, 64, 32, TRUE), frame_caps (format, 50, rows, TRUE));
    got = scale (h, &info, frame_new (&info, i));
    expected = scale (plain, &info, frame_new (&info, i));
    part = picture_crop (got, 0, top, 50, rows);
    assert_pictures_equal (expected, part, what);

    /* The colour as gpuconvert has it. */
    info_init (&rgba_info, "RGBA", 50, top);
    info_init (&color_info, format, 50, top);
    buffer = gst_buffer_new_allocate (NULL, rgba_info.size, NULL);
    for (gsize k = 0; k < rgba_info.size; k += 4)
      gst_buffer_fill (buffer, k, (const guint8[]){0xff, 0x80, 0x10, 0x40}, 4);
    gst_harness_set_caps (color, frame_caps ("RGBA", 50, top, FALSE), frame_caps (format, 50, top, FALSE));
    buffer = push_and_pull (color, buffer);
    border = picture_read (&color_info, buffer);
    gst_buffer_unref (buffer);
    for (int k = 0; k < 2; k++) {
      g_autoptr (Picture) edge = picture_crop (got, 0, k ? top + rows : 0, 50, top);

      for (int p = 0; p < edge->n_planes; p++)
        for (int n = 0; n < edge->plane[p].width * edge->plane[p].height * edge->plane[p].bytes; n++) {
          int a = edge->plane[p].data[n], b = border->plane[p].data[n];

          /* A border has 8 bits of colour. */
          if (!g_strcmp0 (format, "P010_10LE")) {
            a = n % 2 ? a : 0;
            b = n % 2 ? b : 0;
          }
          fail_unless (ABS (a - b) <= (g_strcmp0 (format, "P010_10LE") ? 0 : 1), "%s: plane %d, byte %d: %d, not %d",
                       what, p, n, a, b);
        }
    }
    gst_harness_teardown (h);
    gst_harness_teardown (plain);
    gst_harness_teardown (color);
  }
}
GST_END_TEST

GST_START_TEST (regions_and_navigation_with_borders)
{
  /* 64x32 into 100x100: 100x50 at (0, 25). Points of the border are those of the edge. */
  static const double points[][4] = {
      {50, 50, 32, 16}, {0, 25, 0, 0}, {100, 75, 64, 32}, {30, 10, 19.2, 0}, {30, 99, 19.2, 32}};
  GstHarness *h = gst_harness_new ("gpuresize");
  GstVideoRegionOfInterestMeta *region;
  GstVideoInfo info;
  GstBuffer *buffer;

  info_init (&info, "RGB", 64, 32);
  gst_harness_set_caps (h, frame_caps ("RGB", 64, 32, TRUE), frame_caps ("RGB", 100, 100, TRUE));
  buffer = gst_buffer_make_writable (frame_upload (&info, frame_new (&info, 1), NULL));
  gst_buffer_add_video_region_of_interest_meta (buffer, "face", 16, 8, 32, 16);
  gst_buffer_add_video_region_of_interest_meta (buffer, "all", 0, 0, 64, 32);
  buffer = push_and_pull (h, buffer);
  region = gst_buffer_get_video_region_of_interest_meta_id (buffer, 0);
  for (gpointer state = NULL; (region = (GstVideoRegionOfInterestMeta *)gst_buffer_iterate_meta_filtered (
                                   buffer, &state, GST_VIDEO_REGION_OF_INTEREST_META_API_TYPE));) {
    if (region->roi_type == g_quark_from_string ("face"))
      fail_unless (region->x == 25 && region->y == 38 && region->w == 50 && region->h == 25, "%ux%u at (%u, %u)",
                   region->w, region->h, region->x, region->y);
    else
      fail_unless (region->x == 0 && region->y == 25 && region->w == 100 && region->h == 50, "%ux%u at (%u, %u)",
                   region->w, region->h, region->x, region->y);
  }
  gst_buffer_unref (buffer);

  for (guint i = 0; i < G_N_ELEMENTS (points); i++) {
    GstEvent *event;
    double x, y;

    gst_harness_push_upstream_event (
        h, gst_event_new_navigation (gst_structure_new ("application/x-gst-navigation", "event", G_TYPE_STRING,
                                                        "mouse-move", "pointer_x", G_TYPE_DOUBLE, points[i][0],
                                                        "pointer_y", G_TYPE_DOUBLE, points[i][1], NULL)));
    while (GST_EVENT_TYPE (event = gst_harness_pull_upstream_event (h)) != GST_EVENT_NAVIGATION)
      gst_event_unref (event);
    fail_unless (gst_navigation_event_get_coordinates (event, &x, &y));
    fail_unless (fabs (x - points[i][2]) < 1e-9 && fabs (y - points[i][3]) < 1e-9, "(%g, %g)", x, y);
    gst_event_unref (event);
  }
  gst_harness_teardown (h);
}
GST_END_TEST

/* Each frame has the settings of its time; borders come and go, also where without them frames pass. */
GST_START_TEST (settings_change_while_playing)
{
  for (int same_size = 0; same_size < 2; same_size++) {
    GstHarness *h = gst_harness_new ("gpuresize");
    const int par = same_size ? 2 : 1;
    GstVideoInfo info;

    info_init (&info, "NV12", 64, 48);
    gst_harness_set_caps (h, frame_caps ("NV12", 64, 48, TRUE),
                          caps_of ("NV12", same_size ? 64 : 40, same_size ? 48 : 40, par, 1, TRUE));
    for (guint i = 0; i < 24; i++) {
      GstHarness *fresh = gst_harness_new ("gpuresize");
      g_autofree char *what = g_strdup_printf ("frame %u", i);
      g_autoptr (Picture) got = NULL;
      g_autoptr (Picture) expected = NULL;

      for (int k = 0; k < 2; k++)
        g_object_set (k ? fresh->element : h->element, "method", (i * 5) % 6, "antialias", i / 3 % 2, "add-borders",
                      i / 2 % 2, "border-color", 0xff000000 + i * 0x91807, NULL);
      gst_harness_set_caps (fresh, frame_caps ("NV12", 64, 48, TRUE),
                            caps_of ("NV12", same_size ? 64 : 40, same_size ? 48 : 40, par, 1, TRUE));
      got = scale (h, &info, frame_new (&info, i));
      expected = scale (fresh, &info, frame_new (&info, i));
      assert_pictures_equal (expected, got, what);
      gst_harness_teardown (fresh);
    }
    gst_harness_teardown (h);
  }
}
GST_END_TEST

static GstBuffer *
crop_frame (GstBuffer *buffer, int x, int y, int width, int height)
{
  GstVideoCropMeta *crop;

  buffer = gst_buffer_make_writable (buffer);
  crop = gst_buffer_add_video_crop_meta (buffer);
  crop->x = (guint)x;
  crop->y = (guint)y;
  crop->width = (guint)width;
  crop->height = (guint)height;
  return buffer;
}

/* The rectangle is what is scaled, as if nothing were around it; so is chroma where it begins at a sample. */
GST_START_TEST (crop_is_what_is_scaled)
{
  g_autoptr (GRand) random = g_rand_new_with_seed (12);

  for (int i = 0; i < 300; i++) {
    const char *format = all_formats[i % N_ALL_FORMATS], *method = methods[g_rand_int_range (random, 0, 6)];
    const gboolean is_420 = strchr ("NIP", format[0]) != NULL;
    int x = g_rand_int_range (random, 0, 40), y = g_rand_int_range (random, 0, 30);
    const int width = g_rand_int_range (random, 1, 65 - x), height = g_rand_int_range (random, 1, 49 - y);
    const int to_width = g_rand_int_range (random, 1, 80), to_height = g_rand_int_range (random, 1, 60);
    const gboolean antialias = g_rand_boolean (random);
    g_autofree char *what = g_strdup_printf ("%s, %s, %dx%d at (%d, %d) to %dx%d", format, method, width, height, x, y,
                                             to_width, to_height);
    GstHarness *h[2] = {gst_harness_new ("gpuresize"), gst_harness_new ("gpuresize")};
    g_autoptr (Picture) whole = NULL;
    g_autoptr (Picture) part = NULL;
    g_autoptr (Picture) expected = NULL;
    g_autoptr (Picture) got = NULL;
    GstVideoInfo info, part_info, out_info;
    GstBuffer *buffer;

    for (int k = 0; k < 2; k++) {
      gst_util_set_object_arg (G_OBJECT (h[k]->element), "method", method);
      g_object_set (h[k]->element, "antialias", antialias, "add-borders", FALSE, NULL);
      gst_harness_set_caps (h[k], frame_caps (format, width, height, TRUE),
                            frame_caps (format, to_width, to_height, TRUE));
    }
    info_init (&info, format, 65, 49);
    info_init (&part_info, format, width, height);
    info_init (&out_info, format, to_width, to_height);
    buffer = frame_new (&info, (guint)i);
    whole = picture_read (&info, buffer);
    part = picture_crop (whole, x, y, width, height);
    buffer = push_and_pull (h[0], crop_frame (frame_upload (&info, buffer, NULL), x, y, width, height));
    /* One of the right size passes, rectangle and all. */
    fail_unless ((gst_buffer_get_video_crop_meta (buffer) != NULL) == (width == to_width && height == to_height));
    if (width != to_width || height != to_height) {
      /* A rectangle that begins between two chroma samples goes through tables of weights: its luma can be a level off
       * where others' is computed directly, and loses what lies below the bits of P010. */
      const gboolean between = is_420 && (x % 2 || y % 2), is_p010 = !strcmp (format, "P010_10LE");
      const gboolean near = between && !antialias && !strcmp (method, "bilinear");

      got = picture_read (&out_info, buffer);
      expected = scale (h[1], &part_info, picture_to_frame (part, &part_info));
      if (between) {
        picture_keep_planes (got, 1);
        picture_keep_planes (expected, 1);
      }
      if (between && is_p010)
        for (int k = 0; k < 2 * to_width * to_height; k += 2) {
          expected->plane[0].data[k] &= near ? 0 : 0xc0;
          got->plane[0].data[k] &= near ? 0 : 0xc0;
        }
      assert_pictures_near (expected, got, near, what);
    }
    gst_buffer_unref (buffer);
    for (int k = 0; k < 2; k++)
      gst_harness_teardown (h[k]);
  }
}
GST_END_TEST

/* Chroma that rises by a level from sample to sample does so from the right place. */
GST_START_TEST (chroma_of_odd_crops)
{
  for (int i = 0; i < 2 * 2 * 2 * 2; i++) {
    const int x = 9 + i % 2, y = 7 + i / 2 % 2, width = 80, height = 60, to_width = 50 + 90 * (i / 8),
              to_height = to_width;
    const gboolean antialias = i / 4 % 2;
    GstHarness *h = gst_harness_new ("gpuresize");
    GstVideoInfo info, out_info;
    GstVideoFrame frame;
    GstBuffer *buffer;

    g_object_set (h->element, "antialias", antialias, "add-borders", FALSE, NULL);
    gst_harness_set_caps (h, frame_caps ("I420", width, height, TRUE), frame_caps ("I420", to_width, to_height, TRUE));
    info_init (&info, "I420", 100, 80);
    info_init (&out_info, "I420", to_width, to_height);
    buffer = gst_buffer_new_allocate (NULL, info.size, NULL);
    gst_buffer_memset (buffer, 0, 0, info.size);
    fail_unless (gst_video_frame_map (&frame, &info, buffer, GST_MAP_READWRITE));
    for (int row = 0; row < 40; row++)
      for (int column = 0; column < 50; column++) {
        ((guint8 *)frame.data[1])[row * info.stride[1] + column] = (guint8)(4 * column);
        ((guint8 *)frame.data[2])[row * info.stride[2] + column] = (guint8)(4 * row);
      }
    gst_video_frame_unmap (&frame);
    buffer = push_and_pull (h, crop_frame (frame_upload (&info, buffer, NULL), x, y, width, height));
    fail_unless (gst_video_frame_map (&frame, &out_info, buffer, GST_MAP_READ));
    for (int row = 4; row < to_height / 2 - 4; row++)
      for (int column = 4; column < to_width / 2 - 4; column++) {
        /* The image ends with the rectangle, so its last sample is whole. */
        const double x_end = ceil ((x + width) / 2.), y_end = ceil ((y + height) / 2.);
        const double u = 4 * (x / 2. + (column + 0.5) * (x_end - x / 2.) / (to_width / 2) - 0.5);
        const double v = 4 * (y / 2. + (row + 0.5) * (y_end - y / 2.) / (to_height / 2) - 0.5);
        const int got_u = ((guint8 *)frame.data[1])[row * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 1) + column];
        const int got_v = ((guint8 *)frame.data[2])[row * GST_VIDEO_FRAME_PLANE_STRIDE (&frame, 2) + column];

        fail_unless (fabs (got_u - u) < 1 && fabs (got_v - v) < 1, "%d: (%d, %d) is %d, %d, not %g, %g", i, column, row,
                     got_u, got_v, u, v);
      }
    gst_video_frame_unmap (&frame);
    gst_buffer_unref (buffer);
    gst_harness_teardown (h);
  }
}
GST_END_TEST

static Suite *
borders_suite (void)
{
  Suite *s = suite_create ("gpuresize-borders");
  TCase *tc = tcase_create ("general");

  suite_add_tcase (s, tc);
  tcase_set_timeout (tc, 120);
  tcase_add_test (tc, methods_are_the_library_s);
  tcase_add_test (tc, properties);
  tcase_add_test (tc, borders_are_where_videoscale_has_them);
  tcase_add_test (tc, picture_and_border);
  tcase_add_test (tc, regions_and_navigation_with_borders);
  tcase_add_test (tc, settings_change_while_playing);
  tcase_add_test (tc, crop_is_what_is_scaled);
  tcase_add_test (tc, chroma_of_odd_crops);
  return s;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, borders_suite, __FILE__);
}
