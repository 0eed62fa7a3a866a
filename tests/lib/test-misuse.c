/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What users get wrong: each is a message with the value and what to do, or safe by references; never corruption.
 */
#include "common.h"
#include "rig.h"

#include <gpucache/image-priv.h>

/* Asserts that @error is GPU_ERROR_INVALID with @part in its sentence. */
static void
expect_invalid (GError **error, const char *part)
{
  g_assert_error (*error, GPU_ERROR, GPU_ERROR_INVALID);
  if (!strstr ((*error)->message, part))
    g_error ("\"%s\" does not say \"%s\"", (*error)->message, part);
  g_clear_error (error);
}

static void
test_double_release (Rig *rig, const void *data)
{
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  gpu_image_unref (image);
  g_test_expect_message ("gpucache", G_LOG_LEVEL_CRITICAL, "*released more often than it was referenced*");
  gpu_image_unref (image);
  g_test_assert_expected_messages ();
  g_assert_cmpuint (rig_stats (rig).live, ==, 0);

  /* The entry is as good as before. */
  GpuImage *again = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_true (again == image);
  rig_fill (rig->stream[0], again, 1);
  gpu_image_unref (again);
  rig_finish (rig);
}

/* Also when the memory is not there any more, of however many images. */
static void
test_double_release_after_clear (Rig *rig, const void *data)
{
  enum { N = 200 };
  GpuImage *image[N];

  for (unsigned i = 0; i < N; i++)
    image[i] = rig_acquire (rig, &rig->spec, rig->stream[0]);
  for (unsigned i = 0; i < N; i++)
    gpu_image_unref (image[i]);
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, NULL));
  for (unsigned i = 0; i < N; i++) {
    g_test_expect_message ("gpucache", G_LOG_LEVEL_CRITICAL, "*released more often than it was referenced*");
    gpu_image_unref (image[i]);
  }
  g_test_assert_expected_messages ();
  g_assert_cmpuint (rig_stats (rig).live, ==, 0);
}

static void
test_double_release_of_wrap (Rig *rig, const void *data)
{
  RigCounter released;
  rig_counter_init (&released);
  GpuImage *owner = rig_acquire (rig, &rig->spec, rig->stream[0]);
  GpuImage *wrap = gpu_image_wrap (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, gpu_image_data (owner),
                                   rig->stream[0], rig_counter_add, &released, NULL);
  rig_finish (rig);
  gpu_image_unref (wrap);
  rig_counter_wait (&released, 1);
  g_test_expect_message ("gpucache", G_LOG_LEVEL_CRITICAL, "*released more often than it was referenced*");
  gpu_image_unref (wrap);
  g_test_assert_expected_messages ();
  g_assert_cmpuint (rig_counter_get (&released), ==, 1);
  gpu_image_unref (owner);
  rig_finish (rig);
}

/* Rule 2: a view keeps the memory live. */
static void
test_view_outlives_image (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x42);
  GpuImage *view = gpu_image_view (image, 8, 8, 16, 16, &error);
  g_assert_no_error (error);
  gpu_image_unref (image);
  g_assert_cmpuint (rig_stats (rig).live, ==, 1);
  GpuImage *other = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_true (gpu_image_data (other) != gpu_image_data (view));
  rig_fill (rig->stream[0], other, 0x99);
  rig_expect_bytes (rig, view, 0x42);
  gpu_image_unref (view);
  g_test_expect_message ("gpucache", G_LOG_LEVEL_CRITICAL, "*released more often than it was referenced*");
  gpu_image_unref (view);
  g_test_assert_expected_messages ();
  gpu_image_unref (other);
  g_assert_cmpuint (rig_stats (rig).live, ==, 0);

  image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_null (gpu_image_view (image, 60, 0, 5, 1, &error));
  expect_invalid (&error, "5x1 at 60,0");
  gpu_image_unref (image);
  rig_finish (rig);
}

/* Memory may outlive the stream it was used on, and every reference to its device. */
static void
test_memory_outlives_everything (void)
{
  GError *error = NULL;
  GpuDevice *device = test_device_new ();
  GpuStream *stream = gpu_stream_new (device, true, &error);
  g_assert_no_error (error);
  GpuImageSpec spec = rig_spec (GPU_FORMAT_RGBA, 64, 64);
  GpuImage *image = gpu_image_acquire (device, &spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  g_assert_true (gpu_image_fill (stream, image, 0x42, &error));
  gpu_stream_unref (stream);
  gpu_device_unref (device);

  g_assert_cmpstr (gpu_device_name (gpu_image_device (image)), !=, NULL);
  stream = gpu_stream_new (gpu_image_device (image), false, &error);
  g_assert_no_error (error);
  test_assert_image_is (stream, image, 0x42);
  gpu_stream_unref (stream);
  gpu_image_unref (image); /* takes the device down */
}

static void
test_other_device (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuDevice *other = test_device_new_full (1, 0);
  GpuStream *stream = gpu_stream_new (other, false, &error);
  g_assert_no_error (error);
  g_assert_null (
      gpu_image_acquire (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error));
  expect_invalid (&error, gpu_device_name (other));
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_false (gpu_image_fill (stream, image, 1, &error));
  expect_invalid (&error, gpu_device_name (other));
  g_assert_false (gpu_stream_wait_stream (stream, rig->stream[0], &error));
  expect_invalid (&error, gpu_device_name (other));
  /* What it did there is over all the same before the memory can be reused. */
  GpuImage *busy =
      gpu_image_acquire (other, &rig->spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
  rig_fill (stream, busy, 1);
  g_assert_false (gpu_image_end_export (gpu_image_ref (image), &stream, 1, GPU_ACCESS_READ, &error));
  expect_invalid (&error, gpu_device_name (other));
  uint64_t waits = gpu_device_calls (other, GPU_CALL_EVENT_WAIT);
  g_assert_true (gpu_image_wait (busy, GPU_ACCESS_READ, &error));
  g_assert_cmpuint (gpu_device_calls (other, GPU_CALL_EVENT_WAIT), ==, waits);
  gpu_image_unref (busy);
  gpu_image_unref (image);
  gpu_stream_unref (stream);
  gpu_device_unref (other);
  rig_finish (rig);
}

static void
test_specs (Rig *rig, const void *data)
{
  GError *error = NULL;
  const struct {
    GpuImageSpec spec;
    const char *part;
  } bad[] = {
      {{.format = GPU_FORMAT_RGBA, .width = 4, .height = 4, .stride = {16}, .size = 64, .alignment = 48},
       "48 bytes is not a power of two"},
      {{.format = GPU_FORMAT_RGBA, .width = 4, .height = 4, .stride = {16}, .size = 64, .alignment = 0},
       "0 bytes is not a power of two"},
      {{.format = GPU_FORMAT_RGBA, .width = 4, .height = 4, .stride = {16}, .size = 64, .alignment = (size_t)1 << 50},
       "not a power of two up to"},
      {{.format = GPU_FORMAT_RGBA, .width = 4, .height = 4, .stride = {16}, .size = 63, .alignment = 256},
       "do not lie inside its 63 bytes"},
      {{.format = GPU_FORMAT_RGBA, .width = 4, .height = 4, .stride = {15}, .size = 64, .alignment = 256},
       "do not lie inside"},
      {{.format = GPU_FORMAT_RGBA,
        .width = 4,
        .height = 4,
        .stride = {16},
        .offset = {SIZE_MAX},
        .size = 64,
        .alignment = 256},
       "do not lie inside"},
      {{.format = GPU_FORMAT_RGBA, .width = 4, .height = 4, .size = 0, .alignment = 256}, "4x4, 0 bytes"},
      {{.format = GPU_FORMAT_RGBA, .width = 0, .height = 4, .size = 64, .alignment = 256}, "0x4"},
      {{.format = (GpuFormat)999, .width = 4, .height = 4, .size = 64, .alignment = 256}, "999"},
  };
  for (unsigned i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_assert_null (gpu_image_acquire (rig->device, &bad[i].spec, GPU_MEMORY_STREAM_ORDERED, rig->stream[0],
                                      GPU_ACQUIRE_DEFAULT, &error));
    expect_invalid (&error, bad[i].part);
  }
  g_assert_null (
      gpu_image_acquire (rig->device, &rig->spec, (GpuMemoryKind)9, rig->stream[0], GPU_ACQUIRE_DEFAULT, &error));
  expect_invalid (&error, "9 is no kind of memory");
  g_assert_cmpuint (rig_stats (rig).misses, ==, 0);
}

/* Sizes that overflow are refused where they are computed, and those that just do not where memory is asked for. */
static void
test_sizes (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImageSpec spec;
  const uint32_t huge[][2] = {{G_MAXUINT32, G_MAXUINT32}, {G_MAXUINT32, 1u << 31}, {1u << 31, G_MAXUINT32}};

  for (unsigned i = 0; i < G_N_ELEMENTS (huge); i++) {
    g_assert_false (gpu_image_spec_init (&spec, GPU_FORMAT_RGBA, huge[i][0], huge[i][1], 0, &error));
    g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
    g_clear_error (&error);
  }

  GpuImage *live = rig_acquire (rig, &rig->spec, rig->stream[0]);
  /* What drivers and the host's allocator say to such sizes is not ours to test. */
  for (unsigned kind = 0; kind < GPU_N_MEMORY_KINDS && !test_is_cuda (); kind++)
    for (unsigned i = 0; i < 3 && kind != GPU_MEMORY_HOST; i++) {
      spec = rig->spec;
      spec.size = SIZE_MAX - i * 4096;
      g_assert_null (
          gpu_image_acquire (rig->device, &spec, (GpuMemoryKind)kind, rig->stream[0], GPU_ACQUIRE_DEFAULT, &error));
      g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
      g_clear_error (&error);
    }
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, gpu_image_capacity (live));
  g_assert_cmpuint (stats.peak_bytes, ==, gpu_image_capacity (live));
  g_assert_false (gpu_device_is_lost (rig->device));
  gpu_image_unref (live);
  rig_finish (rig);
}

/* A stream goes while its work is pending and its memory live: both stay good, and so does the stream's record. */
static void
test_stream_destroyed_in_use (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuStream *stream = rig_new_stream (rig, true);
  GpuImage *image = rig_acquire (rig, &rig->spec, stream);
  GpuGate *gate = gpu_gate_new (rig->device, &error);
  g_assert_no_error (error);
  g_assert_true (gpu_gate_hold (gate, stream, &error));
  rig_fill (stream, image, 0x42);
  gpu_stream_unref (stream);
  g_assert_cmpuint (rig_stats (rig).live, ==, 1);
  GpuImage *copy = rig_acquire (rig, &rig->spec, rig->stream[1]);
  rig_copy (rig->stream[1], image, copy);
  gpu_image_unref (image);
  g_assert_cmpuint (rig_stats (rig).pending, ==, 1);
  gpu_gate_free (gate);
  rig_expect_bytes (rig, copy, 0x42);
  gpu_image_unref (copy);
  rig_finish (rig);
}

static bool
refuse_halfway (GpuDevice *device, void *native, void *data, GError **error)
{
  const GpuCopy fill = {.dst = data, .dst_stride = 64, .row_bytes = 64, .rows = 64};
  g_assert_true (gpu_device_fill (device, &fill, 0x11, native, error));
  g_set_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY, "no memory for the second plane");
  return false;
}

/* Rules 19 and 21: what was submitted before the refusal runs all the same, and nobody gets the memory before that. */
static void
test_refused_halfway (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x00);
  void *address = gpu_image_data (image);
  rig_close (rig, 0);
  g_assert_false (gpu_images_submit (rig->stream[0], NULL, 0, &image, 1, refuse_halfway, address, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  gpu_image_unref (image);
  GpuImage *other = rig_acquire (rig, &rig->spec, rig->stream[1]);
  g_assert_true (gpu_image_data (other) != address);
  gpu_image_unref (other);
  rig_finish (rig);
}

static bool
copy_unknown (GpuDevice *device, void *native, void *data, GError **error)
{
  GpuImage *const *image = data;
  const GpuCopy copy = {.dst = gpu_image_data (image[1]),
                        .dst_stride = 1,
                        .src = gpu_image_data (image[0]),
                        .src_stride = 1,
                        .row_bytes = gpu_image_spec (image[0])->size,
                        .rows = 1};
  return gpu_device_copy (device, &copy, GPU_COPY_DEVICE, native, error);
}

/* Rule 2: an export ends with the streams that its user names, or with a wait on the host. */
static void
test_export (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[0], 0);
  GpuImage *both[2] = {image, copy};
  void *address = gpu_image_data (image);
  gpu_image_ref (image); /* the export's */
  rig_close (rig, 1);
  g_assert_cmpuint (gpu_stream_submit (rig->stream[1], copy_unknown, both, &error), >, 0); /* only its user knows */
  gpu_image_unref (image);
  g_assert_true (gpu_image_end_export (image, &rig->stream[1], 1, GPU_ACCESS_READ, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (rig_stats (rig).pending, ==, 1);
  GpuImage *next = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_true (gpu_image_data (next) != address);
  rig_fill (rig->stream[0], next, 0x22);
  rig_open (rig, 1);
  rig_sync (rig->stream[1]);
  rig_expect_bytes (rig, copy, 0x11);

  uint64_t waits = rig_stats (rig).host_waits;
  g_assert_true (gpu_image_end_export (next, NULL, 0, GPU_ACCESS_READ | GPU_ACCESS_WRITE, &error));
  g_assert_cmpuint (rig_stats (rig).host_waits, ==, waits + 1);
  gpu_image_unref (copy);
  rig_finish (rig);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/misuse/double-release", test_double_release);
  RIG_TEST ("/misuse/double-release-after-clear", test_double_release_after_clear);
  RIG_TEST ("/misuse/double-release-of-wrap", test_double_release_of_wrap);
  RIG_TEST ("/misuse/view-outlives-image", test_view_outlives_image);
  g_test_add_func ("/misuse/memory-outlives-everything", test_memory_outlives_everything);
  RIG_TEST ("/misuse/other-device", test_other_device);
  RIG_TEST ("/misuse/specs", test_specs);
  RIG_TEST ("/misuse/sizes", test_sizes);
  RIG_TEST ("/misuse/stream-destroyed-in-use", test_stream_destroyed_in_use);
  RIG_TEST ("/order/rule-21/refused-halfway", test_refused_halfway);
  RIG_TEST ("/cache/rule-2/export", test_export);
  return g_test_run ();
}
