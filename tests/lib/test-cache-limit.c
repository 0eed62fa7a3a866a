/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How much the cache keeps: rules 8 to 13.
 */
#include "common.h"
#include "rig.h"

#include <gpucache/device-priv.h>

#include <string.h>

/* Rule 8: half of the device's memory, unless set. */
static void
test_default_limit (Rig *rig, const void *data)
{
  GError *error = NULL;
  uint64_t total;

  gpu_device_memory_info (rig->device, NULL, &total, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (gpu_cache_get_limit (rig->device, GPU_ACCOUNT_DEVICE), ==, total / 2);
  g_assert_cmpuint (rig_stats (rig).limit_bytes, ==, total / 2);

  GpuDevice *small = gpu_cpu_device_new ("cpu:8", GPU_CPU_LAZY, 6 << 20);
  g_assert_cmpuint (gpu_cache_get_limit (small, GPU_ACCOUNT_DEVICE), ==, 3 << 20);
  gpu_device_unref (small);
}

/* Rule 8: settable to anything from 0; negative is an error and the old limit stays. */
static void
test_set_limit (Rig *rig, const void *data)
{
  for (unsigned account = 0; account < GPU_N_ACCOUNTS; account++) {
    const int64_t good[] = {0, 1, 12345, 1 << 20};
    const int64_t bad[] = {-1, -12345, G_MININT64};
    GpuAccount which = (GpuAccount)account;

    for (unsigned i = 0; i < G_N_ELEMENTS (good); i++) {
      GError *error = NULL;
      g_assert_true (gpu_cache_set_limit (rig->device, which, good[i], &error));
      g_assert_no_error (error);
      g_assert_cmpuint (gpu_cache_get_limit (rig->device, which), ==, (uint64_t)good[i]);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS (bad); i++) {
      GError *error = NULL;
      g_autofree char *value = g_strdup_printf ("%" G_GINT64_FORMAT, bad[i]);
      g_assert_false (gpu_cache_set_limit (rig->device, which, bad[i], &error));
      g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
      g_assert_nonnull (strstr (error->message, value));
      g_error_free (error);
      g_assert_cmpuint (gpu_cache_get_limit (rig->device, which), ==, 1 << 20);
    }
  }
}

/* Rule 8: more than there is is taken, with a warning. */
static void
test_limit_above_total (Rig *rig, const void *data)
{
  GError *error = NULL;
  uint64_t total;

  gpu_device_memory_info (rig->device, NULL, &total, &error);
  g_assert_no_error (error);
  g_test_expect_message ("gpucache", G_LOG_LEVEL_WARNING, "*limit*");
  g_assert_true (gpu_cache_set_limit (rig->device, GPU_ACCOUNT_DEVICE, (int64_t)total + 1, &error));
  g_test_assert_expected_messages ();
  g_assert_no_error (error);
  g_assert_cmpuint (gpu_cache_get_limit (rig->device, GPU_ACCOUNT_DEVICE), ==, total + 1);
  g_assert_true (gpu_cache_set_limit (rig->device, GPU_ACCOUNT_DEVICE, (int64_t)total, &error));
  g_assert_no_error (error);
}

/* Rule 8: bytes as a person writes them. */
static void
test_parse_bytes (void)
{
  const struct {
    const char *text;
    int64_t bytes;
  } good[] = {
      {"0", 0},
      {"12345", 12345},
      {"1KiB", 1024},
      {"3MiB", 3 << 20},
      {"2GiB", INT64_C (2) << 30},
      {"9223372036854775807", INT64_MAX},
      {"8589934591GiB", INT64_C (8589934591) << 30},
  };
  const char *const bad[] = {"",
                             " ",
                             "-1",
                             "-1KiB",
                             "abc",
                             "MiB",
                             "1.5GiB",
                             "12XiB",
                             "12 34",
                             "1MiB2",
                             "0x10",
                             "9223372036854775808",
                             "99999999999999999999",
                             "8589934592GiB",
                             "18446744073709551615",
                             "18014398509481985KiB"};

  for (unsigned i = 0; i < G_N_ELEMENTS (good); i++) {
    GError *error = NULL;
    int64_t bytes = -7;
    g_assert_true (gpu_cache_parse_bytes (good[i].text, &bytes, &error));
    g_assert_no_error (error);
    g_assert_cmpint (bytes, ==, good[i].bytes);
  }
  for (unsigned i = 0; i < G_N_ELEMENTS (bad); i++) {
    GError *error = NULL;
    int64_t bytes = -7;
    if (gpu_cache_parse_bytes (bad[i], &bytes, &error))
      g_error ("\"%s\" was read as %" G_GINT64_FORMAT, bad[i], bytes);
    g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
    g_error_free (error);
  }
}

/* Rule 8: zero retains nothing that is complete; pending memory can still be reused. */
static void
test_limit_zero (Rig *rig, const void *data)
{
  rig_limit (rig, 0);
  rig_close (rig, 0);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  void *address = gpu_image_data (image);
  RIG_EXPECT (rig, .misses = 1);
  gpu_image_unref (image);
  image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .pending = 1);
  g_assert_true (gpu_image_data (image) == address);
  gpu_image_unref (image);
  image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  RIG_EXPECT (rig, .waiting = 1);
  g_assert_true (gpu_image_data (image) == address);
  gpu_image_unref (image);
  g_assert_cmpuint (rig_stats (rig).pending, ==, 1);

  uint64_t frees = gpu_device_calls (rig->device, GPU_CALL_FREE);
  rig_finish (rig);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, 0);
  g_assert_cmpuint (stats.pending + stats.idle, ==, 0);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_FREE), ==, frees + 1);
}

/* Rule 8: pinned host memory has a limit of its own. */
static void
test_accounts (Rig *rig, const void *data)
{
  size_t capacity = rig_make_idle (rig, &rig->spec, rig->stream[0], 2, NULL);

  rig->account = GPU_ACCOUNT_HOST;
  rig_limit (rig, 0);
  GpuImage *image = rig_acquire_kind (rig, &rig->spec, GPU_MEMORY_HOST, rig->stream[0], GPU_ACQUIRE_DEFAULT);
  GpuCacheStats host = rig_stats (rig);
  g_assert_cmpuint (host.live_bytes, ==, gpu_image_capacity (image));
  g_assert_cmpuint (host.idle, ==, 0);
  gpu_image_unref (image);
  rig_sync (rig->stream[0]);
  host = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&host), ==, 0);

  rig->account = GPU_ACCOUNT_DEVICE;
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.idle_bytes, ==, 2 * capacity);
  g_assert_cmpuint (rig_bytes (&stats), ==, 2 * capacity);
  rig->account = GPU_ACCOUNT_HOST;
  rig_limit (rig, 1 << 20);
  rig->account = GPU_ACCOUNT_DEVICE;
  rig_limit (rig, 0);
  rig->account = GPU_ACCOUNT_HOST;
  gpu_image_unref (rig_acquire_kind (rig, &rig->spec, GPU_MEMORY_HOST, rig->stream[0], GPU_ACQUIRE_DEFAULT));
  rig_sync (rig->stream[0]);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 1);
}

/* Rule 8: two devices do not influence each other. */
static void
test_two_devices (Rig *rig, const void *data)
{
  Rig second = {.account = GPU_ACCOUNT_DEVICE, .spec = rig->spec};
  GError *error = NULL;

  second.device = gpu_cpu_device_new ("cpu:1", GPU_CPU_THREADS, 0);
  second.stream[0] = rig_new_stream (&second, false);
  rig_limit (&second, rig->spec.size * 2);
  rig_limit (rig, rig->spec.size * 16);
  size_t capacity = rig_make_idle (rig, &rig->spec, rig->stream[0], 5, NULL);
  rig_make_idle (&second, &rig->spec, second.stream[0], 5, NULL);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 5);
  g_assert_cmpuint (rig_stats (rig).idle_bytes, ==, 5 * capacity);
  g_assert_cmpuint (rig_stats (&second).idle, ==, 2);
  rig_limit (&second, 0);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 5);
  g_assert_cmpuint (rig_stats (&second).idle, ==, 0);

  /* Rule 26: nothing goes over in silence. */
  GpuImage *image = gpu_image_acquire (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, second.stream[0],
                                       GPU_ACQUIRE_DEFAULT, &error);
  g_assert_null (image);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  RIG_EXPECT (rig, 0);
  gpu_stream_unref (second.stream[0]);
  gpu_device_unref (second.device);
}

/* Rule 9: current bytes are the capacities of live, pending and idle memory; the peak is the highest. */
static void
test_count (Rig *rig, const void *data)
{
  size_t capacity = rig_make_idle (rig, &rig->spec, rig->stream[1], 3, NULL);
  GpuImage *live = rig_acquire (rig, &rig->spec, rig->stream[1]);

  rig_close (rig, 0);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.live, ==, 1);
  g_assert_cmpuint (stats.pending, ==, 1);
  g_assert_cmpuint (stats.idle, ==, 1);
  g_assert_cmpuint (stats.live_bytes, ==, capacity);
  g_assert_cmpuint (stats.pending_bytes, ==, capacity);
  g_assert_cmpuint (stats.idle_bytes, ==, capacity);
  g_assert_cmpuint (stats.peak_bytes, ==, 3 * capacity);
  rig_finish (rig);
  gpu_image_unref (live);
  rig_finish (rig);
  rig_limit (rig, capacity);
  stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, capacity);
  g_assert_cmpuint (stats.peak_bytes, ==, 3 * capacity);
}

/* Rule 9: live memory is never rejected or touched, pending memory stays counted until it retires. */
static void
test_live_exceeds (Rig *rig, const void *data)
{
  GpuImage *image[6];
  size_t capacity = 0;

  rig_limit (rig, 2 * rig->spec.size);
  for (unsigned i = 0; i < 6; i++) {
    image[i] = rig_acquire (rig, &rig->spec, rig->stream[0]);
    rig_fill (rig->stream[0], image[i], (uint8_t)(0x10 + i));
    capacity = gpu_image_capacity (image[i]);
  }
  RIG_EXPECT (rig, .misses = 6);
  rig_sync (rig->stream[0]);
  g_assert_cmpuint (rig_stats (rig).live_bytes, ==, 6 * capacity);
  rig_close (rig, 0);
  for (unsigned i = 0; i < 3; i++) {
    rig_fill (rig->stream[0], image[i], 0);
    gpu_image_unref (image[i]);
  }
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.live_bytes, ==, 3 * capacity);
  g_assert_cmpuint (stats.pending_bytes, ==, 3 * capacity);
  rig_limit (rig, 0);
  rig_limit (rig, 2 * rig->spec.size);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.pending_bytes, ==, 3 * capacity);
  rig_finish (rig);
  stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, 3 * capacity);
  for (unsigned i = 3; i < 6; i++) {
    rig_expect_bytes (rig, image[i], (uint8_t)(0x10 + i));
    gpu_image_unref (image[i]);
  }
  rig_finish (rig);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.idle, ==, 2);
  g_assert_cmpuint (rig_bytes (&stats), ==, 2 * capacity);
}

/* Rule 9: idle memory larger than the limit is not retained. It does not push smaller idle memory out either. */
static void
test_larger_than_limit (Rig *rig, const void *data)
{
  GpuImageSpec large = rig_spec (GPU_FORMAT_RGBA, 64, 256);
  size_t capacity = rig_make_idle (rig, &rig->other, rig->stream[0], 1, NULL);

  rig_limit (rig, 2 * capacity);
  gpu_image_unref (rig_acquire (rig, &large, rig->stream[0]));
  rig_sync (rig->stream[0]);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), <=, 2 * capacity);
  rig->last[0] = stats;
  gpu_image_unref (rig_acquire (rig, &large, rig->stream[0]));
  RIG_EXPECT (rig, .misses = 1);
  rig_sync (rig->stream[0]);

  /* Both become complete at once; the smaller one is older, and would have to go first if the other one stayed. */
  GpuImage *image[2] = {rig_acquire (rig, &rig->other, rig->stream[0]), rig_acquire (rig, &large, rig->stream[0])};
  rig_close (rig, 0);
  for (unsigned i = 0; i < 2; i++)
    rig_fill (rig->stream[0], image[i], 1);
  for (unsigned i = 0; i < 2; i++)
    gpu_image_unref (image[i]);
  g_assert_cmpuint (rig_stats (rig).pending, ==, 2);
  rig->last[0] = rig_stats (rig);
  rig_finish (rig);
  RIG_EXPECT (rig, .evictions = 0);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.idle, ==, 1);
  g_assert_cmpuint (stats.idle_bytes, ==, capacity);
}

/* Rule 9: an allocation that fails leaves the count as it was. */
static void
test_failed_is_not_counted (Rig *rig, const void *data)
{
  GError *error = NULL;

  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 1000);
  GpuImage *image = gpu_image_acquire (rig->device, &rig->spec, GPU_MEMORY_STREAM_ORDERED, rig->stream[0],
                                       GPU_ACQUIRE_DEFAULT, &error);
  g_assert_null (image);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 0);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, 0);
  g_assert_cmpuint (stats.live + stats.pending + stats.idle, ==, 0);
  g_assert_cmpuint (stats.peak_bytes, ==, 0);
  g_assert_false (gpu_device_is_lost (rig->device));

  /* Nor is there less room than before. */
  rig_limit (rig, 2 * rig->spec.size);
  rig_make_idle (rig, &rig->spec, rig->stream[0], 1, NULL);
  gpu_image_unref (rig_acquire (rig, &rig->other, rig->stream[0]));
  RIG_EXPECT (rig, .misses = 1);
  rig_sync (rig->stream[0]);
}

/* Which of four formats have an idle entry left: a bit for each. Takes and gives back each, so it ends a test. */
static unsigned
idle_formats (Rig *rig, const GpuImageSpec *spec, GpuStream **stream)
{
  unsigned found = 0;

  /* Pressure would evict what is looked for later. */
  rig_limit (rig, 1 << 20);
  for (unsigned i = 0; i < 4; i++) {
    uint64_t misses = rig_stats (rig).misses;
    gpu_image_unref (rig_acquire (rig, &spec[i], stream[i]));
    if (rig_stats (rig).misses == misses)
      found |= 1u << i;
  }
  return found;
}

/* Rule 10: under pressure the least recently used idle entries are evicted, of any scope, and no more than needed. */
static void
test_evicts_oldest (Rig *rig, const void *data)
{
  GpuStream *scoped[2] = {rig_new_stream (rig, true), rig_new_stream (rig, true)};
  GpuStream *stream[4] = {rig->stream[0], scoped[0], rig->stream[1], scoped[1]};
  GpuFormat format[4] = {GPU_FORMAT_RGBA, GPU_FORMAT_BGRA, GPU_FORMAT_ARGB, GPU_FORMAT_ABGR};
  GpuImageSpec spec[4];
  size_t capacity = 0;

  for (unsigned i = 0; i < 4; i++) {
    spec[i] = rig_spec (format[i], 64, 64);
    capacity = rig_make_idle (rig, &spec[i], stream[i], 1, NULL);
  }
  /* Using the first again makes the second the oldest. */
  rig_make_idle (rig, &spec[0], stream[0], 1, NULL);
  rig_limit (rig, 4 * capacity);
  GpuImageSpec fifth = rig_spec (GPU_FORMAT_RGBX, 64, 64);
  GpuImage *image = rig_acquire (rig, &fifth, rig->stream[2]);
  RIG_EXPECT (rig, .misses = 1, .evictions = 1);
  GpuImage *second = rig_acquire (rig, &fifth, rig->stream[2]);
  RIG_EXPECT (rig, .misses = 1, .evictions = 1);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, 4 * capacity);
  g_assert_cmpuint (idle_formats (rig, spec, stream), ==, 1 << 3 | 1 << 0);
  gpu_image_unref (image);
  gpu_image_unref (second);
  gpu_stream_unref (scoped[0]);
  gpu_stream_unref (scoped[1]);
}

/* Rule 10: when the limit is lowered, idle entries go at once, the oldest first, pending ones as they retire, and live
 * ones stay. */
static void
test_lowered (Rig *rig, const void *data)
{
  GpuFormat format[4] = {GPU_FORMAT_RGBA, GPU_FORMAT_BGRA, GPU_FORMAT_ARGB, GPU_FORMAT_ABGR};
  GpuImageSpec spec[4];
  GpuStream *stream[4];
  size_t capacity = 0;

  for (unsigned i = 0; i < 4; i++) {
    stream[i] = rig->stream[1];
    spec[i] = rig_spec (format[i], 64, 64);
    capacity = rig_make_idle (rig, &spec[i], stream[i], 1, NULL);
  }
  GpuImage *live = rig_acquire (rig, &spec[2], rig->stream[1]);
  rig_close (rig, 0);
  GpuImage *image = rig_acquire (rig, &spec[3], rig->stream[0]);
  gpu_image_unref (image); /* pending, since it is behind the gate or was made so below */
  image = rig_acquire (rig, &spec[3], rig->stream[0]);
  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);

  uint64_t frees = gpu_device_calls (rig->device, GPU_CALL_FREE);
  rig_limit (rig, 3 * capacity);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_FREE), ==, frees + 1);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.live, ==, 1);
  g_assert_cmpuint (stats.pending, ==, 1);
  g_assert_cmpuint (stats.idle, ==, 1);
  rig_limit (rig, 0);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.live, ==, 1);
  g_assert_cmpuint (stats.pending, ==, 1);
  g_assert_cmpuint (stats.idle, ==, 0);
  rig_finish (rig);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.pending, ==, 0);
  g_assert_cmpuint (stats.idle, ==, 0);
  g_assert_cmpuint (rig_bytes (&stats), ==, capacity);
  gpu_image_unref (live);
  rig_finish (rig);
  stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, 0);
}

/* Rule 10: after a lowered limit the memory is there for others. */
static void
test_lowered_gives_back (void)
{
  GError *error = NULL;
  Rig rig = {.account = GPU_ACCOUNT_DEVICE};

  rig.device = gpu_cpu_device_new ("cpu:8", GPU_CPU_THREADS, 8 << 20);
  rig.stream[0] = rig_new_stream (&rig, false);
  GpuImageSpec spec = rig_spec (GPU_FORMAT_RGBA, 512, 512);
  GpuImageSpec most = rig_spec (GPU_FORMAT_BGRA, 1024, 1920);
  rig_limit (&rig, 8 << 20);
  rig_make_idle (&rig, &spec, rig.stream[0], 7, NULL);
  rig_limit (&rig, 0);
  g_assert_cmpuint (rig_stats (&rig).oom_retries, ==, 0);
  GpuImage *image =
      gpu_image_acquire (rig.device, &most, GPU_MEMORY_STREAM_ORDERED, rig.stream[0], GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  gpu_image_unref (image);
  gpu_stream_unref (rig.stream[0]);
  gpu_device_unref (rig.device);
}

/* Rule 11: queries retire first. */
static void
test_queries_retire (Rig *rig, const void *data)
{
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);

  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);
  rig_wait_stream (rig->stream[1], rig->stream[0]);
  rig_sync (rig->stream[1]);
  g_assert_cmpuint (rig_stats (rig).pending, ==, 0);
  g_assert_cmpuint (rig_stats (rig).idle, ==, 1);
}

/* Rule 11: releases, submissions and waits retire, too, each by itself: what is complete does not stay over a limit
 * that was lowered. */
static void
test_others_retire (Rig *rig, const void *data)
{
  uint64_t frees;
  GpuImage *busy = rig_acquire (rig, &rig->spec, rig->stream[2]);
  GpuImage *spare = rig_acquire (rig, &rig->spec, rig->stream[2]);

  for (unsigned i = 0; i < 4; i++) {
    rig_limit (rig, 1 << 20);
    GpuImage *image = rig_acquire (rig, &rig->other, rig->stream[0]);
    rig_close (rig, 0);
    rig_fill (rig->stream[0], image, 1);
    gpu_image_unref (image);
    rig_limit (rig, 1);
    rig_open (rig, 0);
    frees = gpu_device_calls (rig->device, GPU_CALL_FREE);
    g_assert_true (gpu_device_synchronize (rig->device, NULL)); /* the cache does not get to know */
    if (i == 0)
      rig_fill (rig->stream[2], busy, 1);
    else if (i == 1)
      gpu_image_unref (spare);
    else if (i == 2)
      rig_end (busy, rig->stream[2], GPU_ACCESS_READ);
    else
      rig_sync (rig->stream[2]);
    g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_FREE), >, frees);
    g_assert_cmpuint (rig_stats (rig).idle, ==, 0);
  }
  gpu_image_unref (busy);
  rig_finish (rig);
}

/* Rule 12: clear frees all that is not live; what is live leaves the count and is freed when it is let go of. */
static void
test_clear (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *live = rig_filled (rig, &rig->other, rig->stream[0], 0x11);
  size_t capacity = gpu_image_capacity (live);

  rig_make_idle (rig, &rig->spec, rig->stream[0], 3, NULL);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  rig_fill (rig->stream[1], image, 1);
  gpu_image_unref (image);
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, &error));
  g_assert_no_error (error);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, 0);
  g_assert_cmpuint (stats.live + stats.pending + stats.idle, ==, 0);
  g_assert_cmpuint (stats.detached_bytes, ==, capacity);
  rig_expect_bytes (rig, live, 0x11);

  /* It stays usable, and its last accesses still come before it is freed. */
  GpuImage *copy = rig_filled (rig, &rig->other, rig->stream[0], 0x00);
  rig_close (rig, 0);
  rig_copy (rig->stream[0], live, copy);
  gpu_image_unref (live);
  image = rig_acquire (rig, &rig->other, rig->stream[1]);
  rig_fill (rig->stream[1], image, 0x22);
  rig_sync (rig->stream[1]);
  rig_finish (rig);
  rig_expect_bytes (rig, copy, 0x11);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.detached_bytes, ==, 0);
  g_assert_cmpuint (stats.live, ==, 2);
  g_assert_cmpuint (stats.idle, ==, 0);
  gpu_image_unref (copy);
  gpu_image_unref (image);
}

/* Rule 12: nothing that is not live is left, also of what an earlier clear left to be freed later. */
static void
test_clear_again (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);

  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, &error));
  rig_fill (rig->stream[0], image, 1); /* on the lazy executor pending until somebody waits */
  gpu_image_unref (image);
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (rig_stats (rig).detached_bytes, ==, 0);
}

typedef struct {
  Rig *rig;
  RigCounter done;
} Clearing;

static void *
clear_all (void *data)
{
  Clearing *clearing = data;
  GError *error = NULL;

  gpu_cache_clear (clearing->rig->device, GPU_CACHE_ALL, &error);
  g_assert_no_error (error);
  rig_counter_add (&clearing->done);
  return NULL;
}

/* Rule 12: clear waits for what was pending at the call. */
static void
test_clear_waits (Rig *rig, const void *data)
{
  Clearing clearing = {.rig = rig};
  pthread_t thread;
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);

  rig_counter_init (&clearing.done);
  rig_close (rig, 0);
  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);
  uint64_t host_waits = rig_stats (rig).host_waits, waits = gpu_device_calls (rig->device, GPU_CALL_EVENT_WAIT);
  pthread_create (&thread, NULL, clear_all, &clearing);
  while (gpu_device_calls (rig->device, GPU_CALL_EVENT_WAIT) == waits && rig_counter_get (&clearing.done) == 0)
    g_usleep (1000);
  g_assert_cmpuint (rig_counter_get (&clearing.done), ==, 0);
  rig_open (rig, 0);
  pthread_join (thread, NULL);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, 0);
  g_assert_cmpuint (stats.host_waits, >, host_waits);
}

typedef struct {
  Rig *rig;
  GpuCacheStats local_before, local_after, all_after;
  GpuCacheScope scope;
} Local;

static void
clear_local (void *data)
{
  Local *local = data;
  GError *error = NULL;

  rig_make_idle (local->rig, &local->rig->spec, local->rig->stream[0], 1, NULL);
  local->local_before = rig_local_stats (local->rig);
  gpu_cache_clear (local->rig->device, local->scope, &error);
  g_assert_no_error (error);
  local->local_after = rig_local_stats (local->rig);
  local->all_after = rig_stats (local->rig);
}

/* Rule 12: the document's example: a thread clears its own scope only, or all. */
static void
test_clear_scopes (Rig *rig, const void *data)
{
  Local local = {.rig = rig, .scope = GPU_CACHE_LOCAL};

  rig_make_idle (rig, &rig->spec, rig->stream[0], 1, NULL);
  rig_in_thread (clear_local, &local);
  g_assert_cmpuint (local.local_before.idle, ==, 1);
  g_assert_cmpuint (local.local_after.idle, ==, 0);
  g_assert_cmpuint (local.all_after.idle, ==, 1);
  g_assert_cmpuint (rig_local_stats (rig).idle, ==, 1);

  local.scope = GPU_CACHE_ALL;
  rig_in_thread (clear_local, &local);
  g_assert_cmpuint (local.all_after.idle, ==, 0);
  g_assert_cmpuint (rig_local_stats (rig).idle, ==, 0);
}

/* Rule 13: a refusal by the driver is pressure: idle entries are evicted and it is asked again. */
static void
test_oom_evicts (Rig *rig, const void *data)
{
  rig_make_idle (rig, &rig->other, rig->stream[0], 3, NULL);
  uint64_t retries = rig_stats (rig).oom_retries;
  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 1);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.oom_retries, ==, retries + 1);
  g_assert_cmpuint (stats.evictions, >, rig->last[0].evictions);
  gpu_image_unref (image);
}

/* Rule 13: then a waiting reuse, if an exact match is pending; still without a wait on the host. */
static void
test_oom_waits_on_stream (Rig *rig, const void *data)
{
  rig_close (rig, 0);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  void *address = gpu_image_data (image);
  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);
  rig->last[0] = rig_stats (rig);
  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 1000);
  image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 0);
  g_assert_true (gpu_image_data (image) == address);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.waiting_hits, ==, rig->last[0].waiting_hits + 1);
  g_assert_cmpuint (stats.host_waits, ==, rig->last[0].host_waits);
  gpu_image_unref (image);
  rig_finish (rig);
}

/* Rule 13: then pending work is waited for, and what it held is freed. */
static void
test_oom_waits_on_host (void)
{
  GpuCpuExecutor executor[] = {GPU_CPU_THREADS, GPU_CPU_LAZY};

  for (unsigned e = 0; e < 2; e++) {
    Rig rig = {.account = GPU_ACCOUNT_DEVICE};
    rig.device = gpu_cpu_device_new ("cpu:8", executor[e], 4 << 20);
    rig.stream[0] = rig_new_stream (&rig, false);
    rig.stream[1] = rig_new_stream (&rig, false);
    GpuImageSpec spec = rig_spec (GPU_FORMAT_RGBA, 512, 512);
    GpuImageSpec large = rig_spec (GPU_FORMAT_BGRA, 512, 1500);
    rig_limit (&rig, 4 << 20);
    GpuImage *image[3];
    for (unsigned i = 0; i < 3; i++) {
      image[i] = rig_acquire (&rig, &spec, rig.stream[0]);
      rig_fill (rig.stream[0], image[i], 1);
    }
    for (unsigned i = 0; i < 3; i++)
      gpu_image_unref (image[i]);
    GpuImage *big = rig_acquire (&rig, &large, rig.stream[1]);
    GpuCacheStats stats = rig_stats (&rig);
    /* On threads the work may be complete before anybody is refused. */
    if (executor[e] == GPU_CPU_LAZY)
      g_assert_cmpuint (stats.oom_retries, >, 0);
    g_assert_cmpuint (stats.live_bytes, ==, gpu_image_capacity (big));
    rig_fill (rig.stream[1], big, 0x42);
    rig_sync (rig.stream[1]);
    rig_expect_bytes (&rig, big, 0x42);
    gpu_image_unref (big);
    gpu_stream_unref (rig.stream[0]);
    gpu_stream_unref (rig.stream[1]);
    gpu_device_unref (rig.device);
  }
}

/* Rule 13: it ends when nothing more can be freed, with an error that names the bytes. The device is not lost. */
static void
test_oom_ends (void)
{
  GError *error = NULL;
  Rig rig = {.account = GPU_ACCOUNT_DEVICE};

  rig.device = gpu_cpu_device_new ("cpu:8", GPU_CPU_THREADS, 4 << 20);
  rig.stream[0] = rig_new_stream (&rig, false);
  GpuImageSpec spec = rig_spec (GPU_FORMAT_RGBA, 512, 512);
  GpuImageSpec huge = rig_spec (GPU_FORMAT_RGBA, 1024, 1024);
  g_autofree char *asked = g_strdup_printf ("refused %zu bytes", huge.size);
  GpuImage *live = rig_acquire (&rig, &spec, rig.stream[0]);
  rig_make_idle (&rig, &spec, rig.stream[0], 1, NULL);
  GpuImage *image =
      gpu_image_acquire (rig.device, &huge, GPU_MEMORY_STREAM_ORDERED, rig.stream[0], GPU_ACQUIRE_DEFAULT, &error);
  g_assert_null (image);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  g_assert_nonnull (strstr (error->message, asked));
  g_autofree char *counted = g_strdup_printf (": %zu bytes are counted", gpu_image_capacity (live));
  g_assert_nonnull (strstr (error->message, counted));
  g_assert_nonnull (strstr (error->message, "limit is 2097152,"));
  g_assert_nonnull (strstr (error->message, "has 3145728 of 4194304 free"));
  g_clear_error (&error);
  g_assert_false (gpu_device_is_lost (rig.device));
  GpuCacheStats stats = rig_stats (&rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, gpu_image_capacity (live));
  gpu_image_unref (live);
  gpu_image_unref (rig_acquire (&rig, &spec, rig.stream[0]));
  gpu_stream_unref (rig.stream[0]);
  gpu_device_unref (rig.device);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/cache/rule-8/default-limit", test_default_limit);
  RIG_TEST ("/cache/rule-8/set-limit", test_set_limit);
  RIG_TEST ("/cache/rule-8/limit-above-total", test_limit_above_total);
  g_test_add_func ("/cache/rule-8/parse-bytes", test_parse_bytes);
  RIG_TEST ("/cache/rule-8/limit-zero", test_limit_zero);
  RIG_TEST ("/cache/rule-8/accounts", test_accounts);
  RIG_TEST ("/cache/rule-8/two-devices", test_two_devices);
  RIG_TEST ("/cache/rule-9/count", test_count);
  RIG_TEST ("/cache/rule-9/live-exceeds", test_live_exceeds);
  RIG_TEST ("/cache/rule-9/larger-than-limit", test_larger_than_limit);
  RIG_TEST ("/cache/rule-9/failed-is-not-counted", test_failed_is_not_counted);
  RIG_TEST ("/cache/rule-10/evicts-oldest", test_evicts_oldest);
  RIG_TEST ("/cache/rule-10/lowered", test_lowered);
  g_test_add_func ("/cache/rule-10/lowered-gives-back", test_lowered_gives_back);
  RIG_TEST ("/cache/rule-11/queries-retire", test_queries_retire);
  RIG_TEST ("/cache/rule-11/others-retire", test_others_retire);
  RIG_TEST ("/cache/rule-12/clear", test_clear);
  RIG_TEST ("/cache/rule-12/clear-again", test_clear_again);
  RIG_TEST ("/cache/rule-12/clear-waits", test_clear_waits);
  RIG_TEST ("/cache/rule-12/clear-scopes", test_clear_scopes);
  RIG_TEST ("/cache/rule-13/evicts", test_oom_evicts);
  RIG_TEST ("/cache/rule-13/waits-on-stream", test_oom_waits_on_stream);
  g_test_add_func ("/cache/rule-13/waits-on-host", test_oom_waits_on_host);
  g_test_add_func ("/cache/rule-13/ends", test_oom_ends);
  return g_test_run ();
}
