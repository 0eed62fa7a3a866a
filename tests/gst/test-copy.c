/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuMemory: shares, copies, memory of others, allocation of bytes, and how long things live (rules 1, 2; G3, G10).
 */
#include "common.h"

#include <string.h>

static GpuDevice *device;
static GstAllocator *allocator;
static GpuStream *stream;

static void
setup (void)
{
  device = test_device_new ();
  allocator = gst_gpu_allocator_new (device);
  stream = test_stream_new (device);
}

static void
teardown (void)
{
  gpu_cache_check (device);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).live, 0);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_HOST).live, 0);
  gst_clear_object (&allocator);
  g_clear_pointer (&stream, gpu_stream_unref);
  g_clear_pointer (&device, gpu_device_unref);
}

static GstBuffer *
alloc_buffer (GstVideoInfo *info, GstVideoFormat format, guint width, guint height)
{
  g_autoptr (GError) error = NULL;
  GstMemory *memory;

  test_video_info (info, format, width, height);
  memory = gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), info, FALSE, GPU_MEMORY_STREAM_ORDERED, stream,
                                          &error);
  g_assert_no_error (error);
  return test_buffer_new (memory);
}

/* Bytes are what they are asked for, wherever they lie. */
GST_START_TEST (test_alloc)
{
  static const gsize sizes[] = {0, 1, 255, 256, 257, 100000};

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    GstMemory *memory = gst_allocator_alloc (allocator, sizes[i], NULL);
    gsize offset, maxsize;

    fail_unless (gst_is_gpu_memory (memory));
    fail_unless_equals_uint64 (gst_memory_get_sizes (memory, &offset, &maxsize), sizes[i]);
    fail_unless_equals_uint64 (offset, 0);
    fail_unless_equals_uint64 (maxsize, sizes[i]);
    fail_unless (gst_gpu_memory_get_video_info (memory) == NULL);
    fail_unless (gst_gpu_memory_get_stream (memory) != NULL);
    test_memory_write (memory, i);
    test_memory_expect (memory, 0, sizes[i], i);
    gst_memory_unref (memory);
  }
}
GST_END_TEST

GST_START_TEST (test_alloc_params)
{
  GstAllocationParams params = {
      .flags = GST_MEMORY_FLAG_ZERO_PREFIXED | GST_MEMORY_FLAG_ZERO_PADDED,
      .align = 4095,
      .prefix = 10,
      .padding = 20,
  };
  GstMemory *memory = gst_allocator_alloc (allocator, 100, &params);
  gsize offset, maxsize;
  GstMapInfo map;

  fail_unless_equals_uint64 (gst_memory_get_sizes (memory, &offset, &maxsize), 100);
  fail_unless_equals_uint64 (offset, 10);
  fail_unless_equals_uint64 (maxsize, 130);
  fail_unless (GST_MEMORY_IS_ZERO_PREFIXED (memory) && GST_MEMORY_IS_ZERO_PADDED (memory));
  fail_unless_equals_uint64 ((guintptr)gpu_image_data (gst_gpu_memory_get_image (memory)) % 4096, 0);
  test_memory_write (memory, 1);

  gst_memory_resize (memory, -10, 130);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
  for (guint i = 0; i < 10; i++)
    fail_unless_equals_int (map.data[i], 0);
  test_bytes_expect (map.data + 10, 0, 100, 1);
  for (guint i = 110; i < 130; i++)
    fail_unless_equals_int (map.data[i], 0);
  gst_memory_unmap (memory, &map);
  gst_memory_unref (memory);
}
GST_END_TEST

GST_START_TEST (test_alloc_fails)
{
  GstAllocationParams params = {.prefix = G_MAXSIZE, .padding = G_MAXSIZE};
  g_autoptr (GError) error = NULL;
  GstVideoInfo info;

  fail_unless (gst_allocator_alloc (allocator, G_MAXSIZE, NULL) == NULL);
  fail_unless (gst_allocator_alloc (allocator, ((gsize)1 << 32) + 5, NULL) == NULL);
  fail_unless (gst_allocator_alloc (allocator, 1, &params) == NULL);

  test_video_info (&info, GST_VIDEO_FORMAT_Y444, 16, 16);
  fail_unless (gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, FALSE, GPU_MEMORY_STREAM_ORDERED,
                                              stream, &error) == NULL);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
  fail_unless (strstr (error->message, "Y444") != NULL);
  g_clear_error (&error);

  gst_video_info_init (&info);
  fail_unless (gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, FALSE, GPU_MEMORY_STREAM_ORDERED,
                                              stream, &error) == NULL);
  fail_unless (error != NULL);
}
GST_END_TEST

/* A layout that somebody else decided is kept. */
GST_START_TEST (test_keep_layout)
{
  g_autoptr (GError) error = NULL;
  GstVideoInfo info;
  GstMemory *memory;
  GstBuffer *buffer;
  const GstVideoInfo *kept;

  test_video_info (&info, GST_VIDEO_FORMAT_I420, 33, 17);
  info.stride[0] = 48;
  info.stride[1] = info.stride[2] = 32;
  info.offset[1] = 1000;
  info.offset[2] = 2000;
  info.size = 3000;
  memory = gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, TRUE, GPU_MEMORY_STREAM_ORDERED, NULL,
                                          &error);
  g_assert_no_error (error);
  kept = gst_gpu_memory_get_video_info (memory);
  for (guint i = 0; i < 3; i++) {
    fail_unless_equals_int (GST_VIDEO_INFO_PLANE_STRIDE (kept, i), info.stride[i]);
    fail_unless_equals_uint64 (GST_VIDEO_INFO_PLANE_OFFSET (kept, i), info.offset[i]);
  }
  fail_unless_equals_uint64 (gst_memory_get_sizes (memory, NULL, NULL), 3000);
  buffer = test_buffer_new (memory);
  test_frame_write (buffer, &info, 4);
  test_frame_expect (buffer, &info, 4);
  gst_buffer_unref (buffer);

  info.stride[0] = -48;
  fail_unless (gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, TRUE, GPU_MEMORY_STREAM_ORDERED,
                                              NULL, &error) == NULL);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
}
GST_END_TEST

/* Rule 2, G3: a share, and a share of a share, keep the root live and see its bytes. */
GST_START_TEST (test_share)
{
  GstMemory *root = gst_allocator_alloc (allocator, 1000, NULL);
  GpuImage *image = gst_gpu_memory_get_image (root);
  GstMemory *share, *inner;
  GstMapInfo map;

  test_memory_write (root, 9);
  share = gst_memory_share (root, 100, 500);
  inner = gst_memory_share (share, 50, -1);
  fail_unless (gst_is_gpu_memory (share) && gst_is_gpu_memory (inner));
  fail_unless (share->parent == root && inner->parent == root);
  fail_unless (gst_gpu_memory_get_image (inner) == image);
  fail_unless_equals_uint64 (gst_memory_get_sizes (inner, NULL, NULL), 450);

  gst_memory_unref (root);
  gst_memory_unref (share);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).live, 1);
  test_memory_expect (inner, 150, 450, 9);
  fail_if (gst_memory_map (inner, &map, GST_MAP_WRITE));
  fail_if (gst_memory_map (inner, &map, GST_MAP_WRITE_GPU));
  fail_unless (gst_memory_map (inner, &map, GST_MAP_READ_GPU));
  fail_unless (map.data == (guint8 *)gpu_image_data (image) + 150);
  gst_memory_unmap (inner, &map);

  fail_unless (gst_memory_share (inner, 900, 200) == NULL);
  gst_memory_unref (inner);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).live, 0);
}
GST_END_TEST

/* G3: parts side by side are not taken for one memory, but a map of the buffer still shows all bytes. */
GST_START_TEST (test_merge)
{
  GstMemory *root = gst_allocator_alloc (allocator, 1000, NULL);
  GstBuffer *buffer = gst_buffer_new ();
  GstMapInfo map;

  test_memory_write (root, 2);
  gst_buffer_append_memory (buffer, gst_memory_share (root, 0, 300));
  gst_buffer_append_memory (buffer, gst_memory_share (root, 300, 700));
  gst_memory_unref (root);
  fail_if (gst_memory_is_span (gst_buffer_peek_memory (buffer, 0), gst_buffer_peek_memory (buffer, 1), NULL));
  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, 1000);
  test_bytes_expect (map.data, 0, 1000, 2);
  gst_buffer_unmap (buffer, &map);
  gst_buffer_unref (buffer);
}
GST_END_TEST

/* G3: a copy of a frame is a frame like it, made on the stream: nobody waits. */
GST_START_TEST (test_copy_whole)
{
  for (guint i = 0; test_video_format (i) != GST_VIDEO_FORMAT_UNKNOWN; i++) {
    GstVideoInfo info;
    GstBuffer *buffer = alloc_buffer (&info, test_video_format (i), 33, 17), *copy;
    GstMemory *memory;
    TestDelay delay;

    test_frame_write (buffer, &info, i);
    test_delay_begin (&delay, stream);
    copy = gst_buffer_copy_deep (buffer);
    memory = gst_buffer_peek_memory (copy, 0);
    fail_unless (gst_is_gpu_memory (memory));
    fail_unless (memory != gst_buffer_peek_memory (buffer, 0));
    fail_unless (gst_gpu_memory_get_stream (memory) == stream);
    fail_unless (gst_video_info_is_equal (gst_gpu_memory_get_video_info (memory),
                                          gst_gpu_memory_get_video_info (gst_buffer_peek_memory (buffer, 0))));
    test_delay_open_later (&delay);
    test_delay_end (&delay);

    test_frame_write (buffer, &info, i + 1);
    test_frame_expect (copy, &info, i);
    gst_buffer_unref (buffer);
    gst_buffer_unref (copy);
  }
}
GST_END_TEST

/* G3: a copy of a part has its bytes. */
GST_START_TEST (test_copy_part)
{
  static const struct {
    gssize offset, size;
    gsize start, length;
  } cases[] = {
      {0, 1000, 0, 1000}, {0, -1, 0, 1000}, {0, 1, 0, 1},    {3, 17, 3, 17},   {999, 1, 999, 1},
      {999, -1, 999, 1},  {500, 0, 500, 0}, {1, -1, 1, 999}, {1000, -1, 0, 0},
  };
  GstMemory *root = gst_allocator_alloc (allocator, 1000, NULL), *share, *copy;

  test_memory_write (root, 6);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    copy = gst_memory_copy (root, cases[i].offset, cases[i].size);
    fail_unless (gst_is_gpu_memory (copy));
    fail_unless (gst_memory_is_writable (copy));
    test_memory_expect (copy, cases[i].start, cases[i].length, 6);
    gst_memory_unref (copy);
  }

  share = gst_memory_share (root, 100, 200);
  copy = gst_memory_copy (share, 7, -1);
  test_memory_write (root, 8);
  test_memory_expect (copy, 107, 193, 6);
  gst_memory_unref (copy);

  fail_unless (gst_memory_copy (root, 1, 1000) == NULL);
  fail_unless (gst_memory_copy (root, -1, 5) == NULL);
  fail_unless (gst_memory_copy (root, 0, G_MAXSSIZE) == NULL);
  gst_memory_unref (share);
  gst_memory_unref (root);
}
GST_END_TEST

/* Rule 19: a copy of a part waits for the last write, and the next write for it. */
GST_START_TEST (test_copy_part_in_order)
{
  g_autoptr (GError) error = NULL;
  GstVideoInfo info;
  GstBuffer *buffer = alloc_buffer (&info, GST_VIDEO_FORMAT_GRAY8, 256, 4);
  GstMemory *memory = gst_buffer_peek_memory (buffer, 0), *copy;
  GpuImage *image = gst_gpu_memory_get_image (memory);
  GpuStream *other = test_stream_new (device);
  GstMapInfo map;
  TestDelay delay;

  test_delay_begin (&delay, other);
  fail_unless (gpu_image_fill (other, image, 0x33, &error));
  copy = gst_memory_copy (memory, 256, 512);
  fail_unless (gpu_image_fill (other, image, 0x44, &error));
  test_delay_open_later (&delay);
  fail_unless (gst_memory_map (copy, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, 512);
  for (guint i = 0; i < 512; i++)
    fail_unless_equals_int (map.data[i], 0x33);
  gst_memory_unmap (copy, &map);
  test_delay_end (&delay);
  gst_memory_unref (copy);
  gst_buffer_unref (buffer);
  gpu_stream_unref (other);
}
GST_END_TEST

/* G4: bytes that are being written are not copied. */
GST_START_TEST (test_copy_while_mapped)
{
  GstMemory *memory = gst_allocator_alloc (allocator, 64, NULL), *copy;
  GstMapInfo map;

  test_memory_write (memory, 1);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
  fail_unless (gst_memory_copy (memory, 0, -1) == NULL);
  gst_memory_unmap (memory, &map);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE_GPU));
  fail_unless (gst_memory_copy (memory, 0, 10) == NULL);
  gst_memory_unmap (memory, &map);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
  copy = gst_memory_copy (memory, 0, -1);
  test_memory_expect (copy, 0, 64, 1);
  gst_memory_unmap (memory, &map);
  gst_memory_unref (copy);
  gst_memory_unref (memory);
}
GST_END_TEST

/* Rule 13: a copy for which there is no memory fails, and the frame is as it was. */
GST_START_TEST (test_copy_fails)
{
  GstMemory *memory = gst_allocator_alloc (allocator, 64, NULL);

  test_memory_write (memory, 1);
  gpu_device_fail (device, GPU_CALL_ALLOC, 0, 1000);
  fail_unless (gst_memory_copy (memory, 0, -1) == NULL);
  fail_unless (gst_memory_copy (memory, 1, -1) == NULL);
  gpu_device_fail (device, GPU_CALL_ALLOC, 0, 0);
  test_memory_expect (memory, 0, 64, 1);
  gst_memory_unref (memory);
}
GST_END_TEST

typedef struct {
  GpuImage *image; /* memory of the cache that stands for an application's */
  gint releases;
} Owner;

static void
release (gpointer data)
{
  Owner *owner = data;

  g_atomic_int_inc (&owner->releases);
}

/* Rule 1: memory of others is used as it is, not counted, and let go of once, when all work on it is complete. */
GST_START_TEST (test_wrap)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;
  GstVideoInfo info;
  GstMemory *memory;
  GstBuffer *buffer, *copy;
  TestDelay delay;
  Owner owner = {0};

  test_video_info (&info, GST_VIDEO_FORMAT_NV12, 31, 9);
  fail_unless (gst_gpu_image_spec_from_video_info (&spec, &info, &error));
  owner.image = gpu_image_acquire (device, &spec, GPU_MEMORY_DEVICE, stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);

  memory = gst_gpu_memory_wrap (device, &info, gpu_image_data (owner.image), stream, release, &owner, &error);
  g_assert_no_error (error);
  fail_unless (gst_is_gpu_memory (memory));
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).live, 1);
  fail_unless (gpu_image_data (gst_gpu_memory_get_image (memory)) == gpu_image_data (owner.image));
  buffer = test_buffer_new (memory);
  test_frame_write (buffer, &info, 12);
  test_frame_expect (buffer, &info, 12);
  copy = gst_buffer_copy_deep (buffer);
  test_frame_expect (copy, &info, 12);
  fail_unless_equals_int (gpu_image_kind (gst_gpu_memory_get_image (gst_buffer_peek_memory (copy, 0))),
                          GPU_MEMORY_STREAM_ORDERED);
  gst_buffer_unref (copy);

  test_delay_begin (&delay, stream);
  fail_unless (gpu_image_fill (stream, gst_gpu_memory_get_image (memory), 1, &error));
  gst_buffer_unref (buffer);
  fail_unless_equals_int (g_atomic_int_get (&owner.releases), 0);
  test_delay_open_later (&delay);
  fail_unless (gpu_stream_synchronize (stream, &error));
  test_delay_end (&delay);
  while (!g_atomic_int_get (&owner.releases))
    test_give_time (device);
  fail_unless_equals_int (g_atomic_int_get (&owner.releases), 1);
  gpu_image_unref (owner.image);
}
GST_END_TEST

GST_START_TEST (test_wrap_without_stream)
{
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;
  GstVideoInfo info;
  GstBuffer *buffer;
  Owner owner = {0};

  test_video_info (&info, GST_VIDEO_FORMAT_RGBA, 8, 8);
  fail_unless (gst_gpu_image_spec_from_video_info (&spec, &info, &error));
  owner.image = gpu_image_acquire (device, &spec, GPU_MEMORY_DEVICE, stream, GPU_ACQUIRE_DEFAULT, &error);
  for (guint i = 0; i < 2; i++) {
    buffer = test_buffer_new (
        gst_gpu_memory_wrap (device, &info, gpu_image_data (owner.image), NULL, release, &owner, &error));
    g_assert_no_error (error);
    test_frame_write (buffer, &info, i);
    test_frame_expect (buffer, &info, i);
    gst_buffer_unref (buffer);
    while ((guint)g_atomic_int_get (&owner.releases) != i + 1)
      test_give_time (device);
  }
  gpu_image_unref (owner.image);
}
GST_END_TEST

GST_START_TEST (test_wrap_fails)
{
  g_autoptr (GError) error = NULL;
  GstVideoInfo info;
  Owner owner = {0};
  guint8 byte = 0;

  test_video_info (&info, GST_VIDEO_FORMAT_RGBA, 8, 8);
  info.stride[0] = -32;
  fail_unless (gst_gpu_memory_wrap (device, &info, &byte, stream, release, &owner, &error) == NULL);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  test_video_info (&info, GST_VIDEO_FORMAT_RGBA, 8, 8);
  info.size = 255;
  fail_unless (gst_gpu_memory_wrap (device, &info, &byte, stream, release, &owner, &error) == NULL);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  fail_unless_equals_int (owner.releases, 0);
}
GST_END_TEST

static gpointer
unref_buffer (gpointer buffer)
{
  gst_buffer_unref (buffer);
  return NULL;
}

/* G10, rule 3: a frame outlives allocator, stream and the caller's device, and may be let go of by any thread. */
GST_START_TEST (test_outlives)
{
  GpuDevice *own = gpu_cpu_device_new ("cpu:5", test_is_lazy () ? GPU_CPU_LAZY : GPU_CPU_THREADS, 0);
  GstAllocator *own_allocator = gst_gpu_allocator_new (own);
  GpuStream *own_stream = test_stream_new (own);
  g_autoptr (GError) error = NULL;
  GstVideoInfo info;
  GstBuffer *buffer, *part;
  guint8 bytes[10];

  test_video_info (&info, GST_VIDEO_FORMAT_I420, 21, 13);
  buffer = test_buffer_new (gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (own_allocator), &info, FALSE,
                                                           GPU_MEMORY_STREAM_ORDERED, own_stream, &error));
  gst_object_unref (own_allocator);
  gpu_stream_unref (own_stream);
  gpu_device_unref (own);

  test_frame_write (buffer, &info, 3);
  test_frame_expect (buffer, &info, 3);
  part = gst_buffer_copy_region (buffer, GST_BUFFER_COPY_MEMORY, 0, 10);
  fail_unless_equals_uint64 (gst_buffer_extract (buffer, 0, bytes, sizeof bytes), sizeof bytes);
  g_thread_join (g_thread_new ("unref", unref_buffer, buffer));
  fail_unless_equals_int (gst_buffer_memcmp (part, 0, bytes, sizeof bytes), 0);
  g_thread_join (g_thread_new ("unref", unref_buffer, part));
}
GST_END_TEST

static Suite *
copy_suite (void)
{
  Suite *suite = suite_create ("copy");
  TCase *tcase = tcase_create ("copies and shares");

  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, setup, teardown);
  tcase_add_test (tcase, test_alloc);
  tcase_add_test (tcase, test_alloc_params);
  tcase_add_test (tcase, test_alloc_fails);
  tcase_add_test (tcase, test_keep_layout);
  tcase_add_test (tcase, test_share);
  tcase_add_test (tcase, test_merge);
  tcase_add_test (tcase, test_copy_whole);
  tcase_add_test (tcase, test_copy_part);
  tcase_add_test (tcase, test_copy_part_in_order);
  tcase_add_test (tcase, test_copy_while_mapped);
  tcase_add_test (tcase, test_copy_fails);
  tcase_add_test (tcase, test_wrap);
  tcase_add_test (tcase, test_wrap_without_stream);
  tcase_add_test (tcase, test_wrap_fails);
  tcase_add_test (tcase, test_outlives);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, copy_suite, "copy");
}
