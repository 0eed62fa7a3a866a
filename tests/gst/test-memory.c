/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuMemory: maps on the host and on the device, and what they wait for (rules 2, 5, 19; G3, G4). Built twice: as it
 * is, and so that memory of the CPU device is taken for memory that the host cannot address, for the pinned shadow.
 */
#include "common.h"

#include <string.h>

#ifdef TEST_SHADOW
/* The library's sources call this instead of gpu_device_is_host(). */
bool
test_device_is_host (const GpuDevice *device)
{
  return false;
}
#endif

static GpuDevice *device;
static GstGpuAllocator *allocator;
static GpuStream *stream;

static void
make_stream (void)
{
  allocator = GST_GPU_ALLOCATOR (gst_gpu_allocator_new (device));
  stream = test_stream_new (device);
}

static void
setup (void)
{
  device = test_device_new ();
  make_stream ();
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

/* For tests after which the device is lost. */
static void
use_cpu_device (void)
{
  teardown ();
  device = gpu_cpu_device_new ("cpu:5", test_is_lazy () ? GPU_CPU_LAZY : GPU_CPU_THREADS, 0);
  make_stream ();
}

static GstMemory *
alloc_video (GstVideoFormat format, guint width, guint height, GpuMemoryKind kind)
{
  g_autoptr (GError) error = NULL;
  GstVideoInfo info;
  GstMemory *memory;

  test_video_info (&info, format, width, height);
  memory = gst_gpu_allocator_alloc_video (allocator, &info, FALSE, kind, stream, &error);
  g_assert_no_error (error);
  return memory;
}

static GstMemory *
alloc_frame (void)
{
  return alloc_video (GST_VIDEO_FORMAT_GRAY8, 64, 4, GPU_MEMORY_STREAM_ORDERED);
}

static void
fill (GstMemory *memory, GpuStream *on, guint8 value)
{
  g_autoptr (GError) error = NULL;

  fail_unless (gpu_image_fill (on, gst_gpu_memory_get_image (memory), value, &error));
  g_assert_no_error (error);
}

static guint8
first_byte (GstMemory *memory)
{
  GstMapInfo map;
  guint8 value;

  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
  value = map.data[0];
  gst_memory_unmap (memory, &map);
  return value;
}

GST_START_TEST (test_type)
{
  GstMemory *memory = alloc_frame (), *system = gst_allocator_alloc (NULL, 16, NULL);
  const GstVideoInfo *info = gst_gpu_memory_get_video_info (memory);

  fail_unless (gst_is_gpu_memory (memory));
  fail_unless (gst_memory_is_type (memory, GST_GPU_MEMORY_TYPE));
  fail_if (gst_is_gpu_memory (system));
  fail_if (gst_is_gpu_memory (NULL));
  fail_if (GST_MEMORY_IS_NO_SHARE (memory));
  fail_unless (gst_gpu_memory_get_stream (memory) == stream);
  fail_unless (gpu_image_device (gst_gpu_memory_get_image (memory)) == device);
  fail_unless_equals_int (GST_VIDEO_INFO_PLANE_STRIDE (info, 0), 256);
  fail_unless_equals_uint64 (GST_VIDEO_INFO_SIZE (info), gst_memory_get_sizes (memory, NULL, NULL));

  gst_memory_unref (system);
  gst_memory_unref (memory);
}
GST_END_TEST

GST_START_TEST (test_formats)
{
  for (guint i = 0; test_video_format (i) != GST_VIDEO_FORMAT_UNKNOWN; i++) {
    GstVideoFormat format = test_video_format (i);
    GpuFormat gpu = gst_gpu_format_from_video_format (format);

    fail_unless (gpu != GPU_FORMAT_UNKNOWN);
    fail_unless_equals_int (gst_gpu_format_to_video_format (gpu), format);
    fail_unless_equals_string (gpu_format_info (gpu)->name, gst_video_format_to_string (format));
  }
  fail_unless_equals_int (gst_gpu_format_from_video_format (GST_VIDEO_FORMAT_Y444), GPU_FORMAT_UNKNOWN);
  fail_unless_equals_int (gst_gpu_format_to_video_format ((GpuFormat)GPU_N_FORMATS), GST_VIDEO_FORMAT_UNKNOWN);
}
GST_END_TEST

/* G4, G13: what is written through a map is what is read through the next, in every format, size and kind. */
GST_START_TEST (test_frames)
{
  static const guint sizes[][2] = {{1, 1}, {1, 7}, {7, 1}, {2, 2}, {33, 17}, {641, 481}};
  static const GpuMemoryKind kinds[] = {GPU_MEMORY_STREAM_ORDERED, GPU_MEMORY_DEVICE, GPU_MEMORY_HOST};

  for (guint i = 0; test_video_format (i) != GST_VIDEO_FORMAT_UNKNOWN; i++)
    for (guint s = 0; s < G_N_ELEMENTS (sizes); s++)
      for (guint k = 0; k < G_N_ELEMENTS (kinds); k++) {
        GstMemory *memory = alloc_video (test_video_format (i), sizes[s][0], sizes[s][1], kinds[k]);
        GstBuffer *buffer = test_buffer_new (memory);
        GstVideoInfo info;

        test_video_info (&info, test_video_format (i), sizes[s][0], sizes[s][1]);
        test_frame_write (buffer, &info, i);
        test_frame_expect (buffer, &info, i);
        /* A frame that was written is copied in before it is written again. */
        test_frame_write (buffer, &info, i + 1);
        test_frame_expect (buffer, &info, i + 1);
        gst_buffer_unref (buffer);
      }
}
GST_END_TEST

/* G4: a map for writing that writes a part leaves the rest as it was. */
GST_START_TEST (test_partial_write)
{
  GstMemory *memory = gst_allocator_alloc (GST_ALLOCATOR (allocator), 1000, NULL);
  GstBuffer *buffer = gst_buffer_new ();
  guint8 part[10], whole[1000];

  test_memory_write (memory, 3);
  gst_buffer_append_memory (buffer, memory);
  memset (part, 0xEE, sizeof part);
  fail_unless_equals_uint64 (gst_buffer_fill (buffer, 500, part, sizeof part), sizeof part);
  fail_unless_equals_uint64 (gst_buffer_extract (buffer, 0, whole, sizeof whole), sizeof whole);
  test_bytes_expect (whole, 0, 500, 3);
  fail_unless (memcmp (whole + 500, part, sizeof part) == 0);
  test_bytes_expect (whole + 510, 510, 490, 3);
  fail_unless_equals_int (gst_buffer_memcmp (buffer, 500, part, sizeof part), 0);
  fail_unless_equals_uint64 (gst_buffer_memset (buffer, 10, 0x11, 20), 20);
  fail_unless_equals_uint64 (gst_buffer_extract (buffer, 0, whole, sizeof whole), sizeof whole);
  test_bytes_expect (whole, 0, 10, 3);
  fail_unless (whole[10] == 0x11 && whole[29] == 0x11);
  test_bytes_expect (whole + 30, 30, 470, 3);
  gst_buffer_unref (buffer);
}
GST_END_TEST

/* G4: what an operation wrote is seen by a part-wise write on the host, too. */
GST_START_TEST (test_partial_write_after_operation)
{
  GstMemory *memory = alloc_frame ();
  GstMapInfo map;

  fill (memory, stream, 0x42);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
  map.data[1] = 0x17;
  gst_memory_unmap (memory, &map);

  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
  fail_unless_equals_int (map.data[0], 0x42);
  fail_unless_equals_int (map.data[1], 0x17);
  fail_unless_equals_int (map.data[2], 0x42);
  gst_memory_unmap (memory, &map);
  gst_memory_unref (memory);
}
GST_END_TEST

/* Rule 5, G4: a map on the host waits for what the stream still has to write. */
GST_START_TEST (test_read_waits)
{
  GstMemory *memory = alloc_frame ();
  GstMapInfo map;
  TestDelay delay;

  test_delay_begin (&delay, stream);
  fill (memory, stream, 0x5A);
  fail_if (gpu_image_is_complete (gst_gpu_memory_get_image (memory), GPU_ACCESS_READ));
  test_delay_open_later (&delay);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
  fail_unless (test_delay_is_open (&delay));
  for (guint y = 0; y < 4; y++)
    for (guint x = 0; x < 64; x++)
      fail_unless_equals_int (map.data[y * 256 + x], 0x5A);
  gst_memory_unmap (memory, &map);
  test_delay_end (&delay);
  gst_memory_unref (memory);
}
GST_END_TEST

/* Rules 5, 19: fresh memory may be on its way from the work of the one before. */
GST_START_TEST (test_fresh_write_waits)
{
  GstMemory *memory = alloc_frame ();
  GpuImage *before = gst_gpu_memory_get_image (memory);
  gpointer data = gpu_image_data (before);
  TestDelay delay;

  test_delay_begin (&delay, stream);
  fill (memory, stream, 0x11);
  gst_memory_unref (memory);
  memory = alloc_frame ();
  fail_unless (gpu_image_data (gst_gpu_memory_get_image (memory)) == data);

  test_delay_open_later (&delay);
  test_memory_write (memory, 5);
  fail_unless (test_delay_is_open (&delay) || !gpu_device_is_host (device));
  test_delay_end (&delay);
  /* Only samples are sure to be kept. */
  for (guint y = 0; y < 4; y++) {
    GstMapInfo map;

    fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
    test_bytes_expect (map.data + y * 256, y * 256, 64, 5);
    gst_memory_unmap (memory, &map);
  }
  gst_memory_unref (memory);
}
GST_END_TEST

/* Rule 19: a map for writing waits for those who still read. */
GST_START_TEST (test_write_waits_for_reads)
{
  g_autoptr (GError) error = NULL;
  GstMemory *memory = alloc_frame (), *copy = alloc_frame ();
  GstMapInfo map;
  TestDelay delay;

  fill (memory, stream, 0x21);
  test_delay_begin (&delay, stream);
  fail_unless (gpu_image_copy (stream, gst_gpu_memory_get_image (memory), gst_gpu_memory_get_image (copy), &error));
  test_delay_open_later (&delay);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
  memset (map.data, 0x99, map.size);
  gst_memory_unmap (memory, &map);
  fail_unless_equals_int (first_byte (copy), 0x21);
  fail_unless_equals_int (first_byte (memory), 0x99);
  test_delay_end (&delay);
  gst_memory_unref (memory);
  gst_memory_unref (copy);
}
GST_END_TEST

/* G4: a map on the device waits for nothing on the host, gives the device's address and enters the stream's present
 * point when it ends. */
GST_START_TEST (test_gpu_map)
{
  GstMemory *memory = alloc_frame ();
  GpuImage *image = gst_gpu_memory_get_image (memory);
  guint64 host_waits = test_stats (device, GPU_ACCOUNT_DEVICE).host_waits;
  GstMapInfo map;
  TestDelay delay;

  test_delay_begin (&delay, stream);
  fill (memory, stream, 1);
  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ_GPU));
  fail_unless (map.data == gpu_image_data (image));
  gst_memory_unmap (memory, &map);
  test_delay_open_later (&delay);
  test_delay_end (&delay);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_DEVICE).host_waits, host_waits);
  fail_unless_equals_int (first_byte (memory), 1);

  /* The work of an application: a gate, submitted between map and unmap. */
  fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE_GPU));
  test_delay_begin (&delay, stream);
  gst_memory_unmap (memory, &map);
  fail_if (gpu_image_is_complete (image, GPU_ACCESS_READ));
  test_delay_open_later (&delay);
  fail_unless_equals_int (first_byte (memory), 1);
  fail_unless (test_delay_is_open (&delay));
  test_delay_end (&delay);
  gst_memory_unref (memory);
}
GST_END_TEST

/* G4, rule 19: the same on a stream that is not the memory's. */
GST_START_TEST (test_gpu_map_on)
{
  GstMemory *memory = alloc_frame ();
  GpuImage *image = gst_gpu_memory_get_image (memory);
  GpuStream *other = test_stream_new (device);
  gpointer data;
  TestDelay delay;

  fill (memory, stream, 7);
  fail_unless (gst_gpu_memory_map_on (memory, other, GST_MAP_READWRITE, &data));
  fail_unless (data == gpu_image_data (image));
  test_delay_begin (&delay, other);
  gst_gpu_memory_unmap_on (memory, other, GST_MAP_READWRITE);
  fail_if (gpu_image_is_complete (image, GPU_ACCESS_READ));
  fill (memory, stream, 8);
  test_delay_open_later (&delay);
  fail_unless_equals_int (first_byte (memory), 8);
  fail_unless (test_delay_is_open (&delay));
  test_delay_end (&delay);

  gst_gpu_memory_set_stream (memory, other);
  fail_unless (gst_gpu_memory_get_stream (memory) == other);
  gst_memory_unref (memory);
  gpu_stream_unref (other);
}
GST_END_TEST

/* G4: host and device exclude each other where one writes. The core allows the second map in all of these cases: the
 * accesses match, or one is a share's. */
GST_START_TEST (test_exclusion)
{
  enum { ROOT, SHARE };
  static const struct {
    gint on;
    GstMapFlags flags;
    gint then_on;
    GstMapFlags then_flags;
    gboolean allowed;
  } cases[] = {
      {ROOT, GST_MAP_READ, ROOT, GST_MAP_READ_GPU, TRUE},
      {ROOT, GST_MAP_READ_GPU, ROOT, GST_MAP_READ, TRUE},
      {ROOT, GST_MAP_READWRITE, ROOT, GST_MAP_READWRITE, TRUE},
      {ROOT, GST_MAP_READWRITE, ROOT, GST_MAP_READ, TRUE},
      {ROOT, GST_MAP_READWRITE, ROOT, GST_MAP_READ_GPU, FALSE},
      {ROOT, GST_MAP_READWRITE, ROOT, GST_MAP_WRITE_GPU, FALSE},
      {ROOT, GST_MAP_WRITE, ROOT, GST_MAP_WRITE_GPU, FALSE},
      {ROOT, GST_MAP_READWRITE | GST_MAP_GPU, ROOT, GST_MAP_READ, FALSE},
      {ROOT, GST_MAP_READWRITE | GST_MAP_GPU, ROOT, GST_MAP_WRITE, FALSE},
      {ROOT, GST_MAP_WRITE_GPU, ROOT, GST_MAP_WRITE, FALSE},
      {ROOT, GST_MAP_WRITE_GPU, ROOT, GST_MAP_WRITE_GPU, TRUE},
      {ROOT, GST_MAP_READ, SHARE, GST_MAP_READ_GPU, TRUE},
      {ROOT, GST_MAP_WRITE, SHARE, GST_MAP_READ, TRUE},
      {ROOT, GST_MAP_WRITE, SHARE, GST_MAP_READ_GPU, FALSE},
      {ROOT, GST_MAP_WRITE_GPU, SHARE, GST_MAP_READ, FALSE},
      {ROOT, GST_MAP_WRITE_GPU, SHARE, GST_MAP_READ_GPU, TRUE},
      {SHARE, GST_MAP_READ, ROOT, GST_MAP_WRITE, TRUE},
      {SHARE, GST_MAP_READ, ROOT, GST_MAP_READ_GPU, TRUE},
      {SHARE, GST_MAP_READ, ROOT, GST_MAP_WRITE_GPU, FALSE},
      {SHARE, GST_MAP_READ_GPU, ROOT, GST_MAP_READ, TRUE},
      {SHARE, GST_MAP_READ_GPU, ROOT, GST_MAP_WRITE, FALSE},
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    GstMemory *root = alloc_frame (), *share = gst_memory_share (root, 0, -1);
    GstMemory *one = cases[i].on == SHARE ? share : root, *other = cases[i].then_on == SHARE ? share : root;
    GstMapInfo map, other_map;

    fail_unless (gst_memory_map (one, &map, cases[i].flags));
    fail_unless_equals_int (gst_memory_map (other, &other_map, cases[i].then_flags), cases[i].allowed);
    if (cases[i].allowed)
      gst_memory_unmap (other, &other_map);
    gst_memory_unmap (one, &map);

    /* Nothing stays behind: now anything can be mapped. */
    fail_unless (gst_memory_map (share, &map, GST_MAP_READ));
    gst_memory_unmap (share, &map);
    fail_unless (gst_memory_map (root, &map, GST_MAP_READWRITE | GST_MAP_GPU));
    gst_memory_unmap (root, &map);
    fail_unless (gst_memory_map (root, &map, GST_MAP_READWRITE));
    gst_memory_unmap (root, &map);
    gst_memory_unref (share);
    gst_memory_unref (root);
  }
}
GST_END_TEST

GST_START_TEST (test_exclusion_of_streams)
{
  GstMemory *memory = alloc_frame ();
  GpuStream *other = test_stream_new (device);
  gpointer data;

  fail_unless (gst_gpu_memory_map_on (memory, stream, GST_MAP_READ, &data));
  fail_unless (gst_gpu_memory_map_on (memory, other, GST_MAP_READ, &data));
  ASSERT_CRITICAL (gst_gpu_memory_set_stream (memory, other));
  fail_unless (gst_gpu_memory_get_stream (memory) == stream);
  gst_gpu_memory_unmap_on (memory, other, GST_MAP_READ);
  gst_gpu_memory_unmap_on (memory, stream, GST_MAP_READ);

  fail_unless (gst_gpu_memory_map_on (memory, stream, GST_MAP_READWRITE, &data));
  fail_if (gst_gpu_memory_map_on (memory, other, GST_MAP_READ, &data));
  fail_unless (data == NULL);
  fail_if (gst_gpu_memory_map_on (memory, other, GST_MAP_WRITE, &data));
  fail_unless (gst_gpu_memory_map_on (memory, stream, GST_MAP_READ, &data));
  gst_gpu_memory_unmap_on (memory, stream, GST_MAP_READ);
  gst_gpu_memory_unmap_on (memory, stream, GST_MAP_READWRITE);

  fail_unless (gst_gpu_memory_map_on (memory, other, GST_MAP_READWRITE, &data));
  gst_gpu_memory_unmap_on (memory, other, GST_MAP_READWRITE);
  gst_memory_unref (memory);
  gpu_stream_unref (other);
}
GST_END_TEST

/* G4: map bits of others are ignored, the video library's NO_REF among them. */
GST_START_TEST (test_unknown_bits)
{
  static const GstMapFlags bits[] = {GST_MAP_FLAG_LAST, GST_MAP_FLAG_LAST << 2, GST_MAP_FLAG_LAST << 5};
  GstMemory *memory = alloc_frame ();
  GstMapInfo map;

  for (guint i = 0; i < G_N_ELEMENTS (bits); i++) {
    fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE | bits[i]));
    memset (map.data, (int)i, map.size);
    gst_memory_unmap (memory, &map);
    fail_unless_equals_int (first_byte (memory), (int)i);
    fail_unless (gst_memory_map (memory, &map, GST_MAP_READ_GPU | bits[i]));
    fail_unless (map.data == gpu_image_data (gst_gpu_memory_get_image (memory)));
    gst_memory_unmap (memory, &map);
  }
  gst_memory_unref (memory);
}
GST_END_TEST

/* G4: maps nest; what the last one for writing leaves is what counts. */
GST_START_TEST (test_nested_maps)
{
  GstMemory *memory = alloc_frame (), *share = gst_memory_share (memory, 0, -1);
  GstMapInfo map1, map2, map3;

  fill (memory, stream, 0x10);
  fail_unless (gst_memory_map (memory, &map1, GST_MAP_READWRITE));
  fail_unless (gst_memory_map (memory, &map2, GST_MAP_READWRITE));
  fail_unless (gst_memory_map (share, &map3, GST_MAP_READ));
  fail_unless (map1.data == map2.data && map1.data == map3.data);
  map1.data[0] = 1;
  gst_memory_unmap (memory, &map1);
  map2.data[1] = 2;
  gst_memory_unmap (memory, &map2);
  fail_unless_equals_int (map3.data[1], 2);

  /* One for writing after one that stayed. */
  fail_unless (gst_memory_map (memory, &map1, GST_MAP_WRITE));
  map1.data[2] = 3;
  gst_memory_unmap (memory, &map1);
  gst_memory_unmap (share, &map3);

  fail_unless (gst_memory_map (memory, &map1, GST_MAP_READ));
  fail_unless (map1.data[0] == 1 && map1.data[1] == 2 && map1.data[2] == 3 && map1.data[3] == 0x10);
  gst_memory_unmap (memory, &map1);
  gst_memory_unref (share);
  gst_memory_unref (memory);
}
GST_END_TEST

#ifdef TEST_SHADOW
/* G4: the shadow is there while a map is open, and comes from the cache: the second one costs no memory. */
GST_START_TEST (test_shadow_is_cached)
{
  GstMemory *memory = alloc_frame ();
  guint64 misses = test_stats (device, GPU_ACCOUNT_HOST).misses;
  GstMapInfo map;

  test_memory_write (memory, 1);
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_HOST).misses, misses + 1);
  for (guint i = 0; i < 5; i++) {
    fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
    fail_unless (map.data != gpu_image_data (gst_gpu_memory_get_image (memory)));
    fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_HOST).live, 1);
    gst_memory_unmap (memory, &map);
    fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_HOST).live, 0);
  }
  fail_unless (test_stats (device, GPU_ACCOUNT_HOST).misses <= misses + 2);
  gst_memory_unref (memory);
}
GST_END_TEST

/* G4: copy-in is skipped, and nothing waited for, only while nobody can have written. */
GST_START_TEST (test_shadow_of_fresh_memory)
{
  GstMemory *memory = alloc_frame ();
  guint64 copies = gpu_device_calls (device, GPU_CALL_COPY);
  GstMapInfo map, nested;

  fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
  fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_COPY), copies);
  gst_memory_unmap (memory, &map);
  fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_COPY), copies + 1);

  fail_unless (gst_memory_map (memory, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_COPY), copies + 2);
  gst_memory_unmap (memory, &map);
  fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_COPY), copies + 2);

  /* In with the first, back with the last. */
  fail_unless (gst_memory_map (memory, &map, GST_MAP_WRITE));
  fail_unless (gst_memory_map (memory, &nested, GST_MAP_WRITE));
  gst_memory_unmap (memory, &nested);
  fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_COPY), copies + 3);
  gst_memory_unmap (memory, &map);
  fail_unless_equals_uint64 (gpu_device_calls (device, GPU_CALL_COPY), copies + 4);
  gst_memory_unref (memory);
}
GST_END_TEST

/* Rule 24: a copy that fails makes the map fail, and leaves nothing behind. */
GST_START_TEST (test_shadow_fails)
{
  GstMemory *memory;
  GstMapInfo map;

  use_cpu_device ();
  memory = alloc_frame ();
  fill (memory, stream, 1);
  gpu_device_fail (device, GPU_CALL_COPY, 0, 1);
  fail_if (gst_memory_map (memory, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (test_stats (device, GPU_ACCOUNT_HOST).live, 0);
  gst_memory_unref (memory);
}
GST_END_TEST
#else
/* Rule 24: an error while waiting makes the map fail. */
GST_START_TEST (test_lost_device)
{
  GstMemory *memory;
  GstMapInfo map;

  use_cpu_device ();
  memory = alloc_frame ();
  fill (memory, stream, 1);
  gpu_device_fail (device, GPU_CALL_LAUNCH, 0, 1);
  gpu_device_fail (device, GPU_CALL_EVENT_RECORD, 0, 100);
  fail_if (gst_memory_map (memory, &map, GST_MAP_READ));
  gpu_device_fail (device, GPU_CALL_EVENT_RECORD, 0, 0);
  fail_unless (gpu_device_is_lost (device));
  fail_if (gst_memory_map (memory, &map, GST_MAP_READ_GPU));
  gst_memory_unref (memory);
}
GST_END_TEST
#endif

static Suite *
memory_suite (void)
{
  Suite *suite = suite_create ("memory");
  TCase *tcase = tcase_create ("maps");

  suite_add_tcase (suite, tcase);
  tcase_add_checked_fixture (tcase, setup, teardown);
  tcase_add_test (tcase, test_type);
  tcase_add_test (tcase, test_formats);
  tcase_add_test (tcase, test_frames);
  tcase_add_test (tcase, test_partial_write);
  tcase_add_test (tcase, test_partial_write_after_operation);
  tcase_add_test (tcase, test_read_waits);
  tcase_add_test (tcase, test_fresh_write_waits);
  tcase_add_test (tcase, test_write_waits_for_reads);
  tcase_add_test (tcase, test_gpu_map);
  tcase_add_test (tcase, test_gpu_map_on);
  tcase_add_test (tcase, test_exclusion);
  tcase_add_test (tcase, test_exclusion_of_streams);
  tcase_add_test (tcase, test_unknown_bits);
  tcase_add_test (tcase, test_nested_maps);
#ifdef TEST_SHADOW
  tcase_add_test (tcase, test_shadow_is_cached);
  tcase_add_test (tcase, test_shadow_of_fresh_memory);
  tcase_add_test (tcase, test_shadow_fails);
#else
  tcase_add_test (tcase, test_lost_device);
#endif
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, memory_suite, "memory");
}
