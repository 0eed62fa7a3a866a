/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the cache reuses, and in which order it looks: rules 4 to 7.
 */
#include "common.h"
#include "rig.h"

#include <string.h>

/* Rule 4: an idle exact match is reused, by any stream and by none, at no cost. */
static void
test_exact (Rig *rig, const void *data)
{
  void *address;

  rig_make_idle (rig, &rig->spec, rig->stream[0], 1, &address);
  GpuStream *users[] = {rig->stream[0], rig->stream[1], NULL};
  for (unsigned i = 0; i < 3; i++) {
    uint64_t allocs = gpu_device_calls (rig->device, GPU_CALL_ALLOC);
    GpuImage *image = rig_acquire (rig, &rig->spec, users[i]);
    g_assert_true (gpu_image_data (image) == address);
    g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_ALLOC), ==, allocs);
    gpu_image_unref (image);
    rig_finish (rig);
    RIG_EXPECT (rig, .exact = 1);
  }
}

/* Rule 4: another format never serves, even of the same size; neither does another kind of memory. */
static void
test_format_and_kind (Rig *rig, const void *data)
{
  void *address;

  rig_make_idle (rig, &rig->spec, rig->stream[0], 1, &address);
  GpuImage *image = rig_acquire (rig, &rig->other, rig->stream[0]);
  RIG_EXPECT (rig, .misses = 1);
  g_assert_true (gpu_image_data (image) != address);
  gpu_image_unref (image);

  GpuMemoryKind device_kinds[] = {GPU_MEMORY_DEVICE, GPU_MEMORY_MANAGED};
  for (unsigned i = 0; i < 2; i++) {
    image = rig_acquire_kind (rig, &rig->spec, device_kinds[i], rig->stream[0], GPU_ACQUIRE_DEFAULT);
    RIG_EXPECT (rig, .misses = 1);
    gpu_image_unref (image);
    rig_sync (rig->stream[0]);
    GpuImage *again = rig_acquire_kind (rig, &rig->spec, device_kinds[i], rig->stream[0], GPU_ACQUIRE_DEFAULT);
    RIG_EXPECT (rig, .exact = 1);
    gpu_image_unref (again);
    rig_sync (rig->stream[0]);
  }
  rig->account = GPU_ACCOUNT_HOST;
  image = rig_acquire_kind (rig, &rig->spec, GPU_MEMORY_HOST, rig->stream[0], GPU_ACQUIRE_DEFAULT);
  RIG_EXPECT (rig, .misses = 1);
  gpu_image_unref (image);
}

/* Rule 4: strides are part of an exact match; a shape that differs only there still fits. */
static void
test_strides (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImageSpec padded;
  size_t stride[] = {512};
  size_t offset[] = {0};

  gpu_image_spec_init_full (&padded, GPU_FORMAT_RGBA, 64, 64, stride, offset, 0, &error);
  g_assert_no_error (error);
  rig_make_idle (rig, &padded, rig->stream[0], 1, NULL);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .fit = 1);
  g_assert_cmpuint (gpu_image_spec (image)->stride[0], ==, rig->spec.stride[0]);
  gpu_image_unref (image);

  /* So are offsets, width, height and size, each for itself. */
  GpuImageSpec loose[5];
  const unsigned n = G_N_ELEMENTS (loose);
  for (unsigned k = 0; k < n; k++) {
    loose[k] = rig->other;
    loose[k].size = 4 * rig->other.size;
  }
  loose[1].stride[0] *= 2;
  loose[2].offset[0] = 4096;
  loose[3].width /= 2;
  loose[4].height /= 2;
  rig_make_idle (rig, &loose[0], rig->stream[0], 1, NULL);
  for (unsigned k = 1; k <= n; k++) {
    image = rig_acquire (rig, &loose[k % n], rig->stream[0]);
    RIG_EXPECT (rig, .fit = 1);
    const GpuImageSpec *spec = gpu_image_spec (image);
    g_assert_cmpuint (spec->width, ==, loose[k % n].width);
    g_assert_cmpuint (spec->height, ==, loose[k % n].height);
    g_assert_cmpuint (spec->stride[0], ==, loose[k % n].stride[0]);
    g_assert_cmpuint (spec->offset[0], ==, loose[k % n].offset[0]);
    gpu_image_unref (image);
    rig_sync (rig->stream[0]);
  }
  loose[0].size += 4096;
  image = rig_acquire (rig, &loose[0], rig->stream[0]);
  RIG_EXPECT (rig, .misses = 1);
  g_assert_cmpuint (gpu_image_capacity (image), >=, loose[0].size);
  gpu_image_unref (image);
  rig_sync (rig->stream[0]);
}

/* Rule 4: an exact match is preferred to one that merely fits, even when that is more recent. */
static void
test_exact_before_fit (Rig *rig, const void *data)
{
  GpuImageSpec same_size = rig_spec (GPU_FORMAT_RGBA, 128, 32);
  void *exact, *fit;

  rig_make_idle (rig, &rig->spec, rig->stream[0], 1, &exact);
  GpuImage *keep = rig_acquire (rig, &rig->spec, rig->stream[0]);
  rig_make_idle (rig, &same_size, rig->stream[0], 1, &fit);
  gpu_image_unref (keep);
  rig_sync (rig->stream[0]);
  /* Make the other one the most recently used. */
  rig_make_idle (rig, &same_size, rig->stream[0], 1, &fit);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .exact = 1);
  g_assert_true (gpu_image_data (image) == exact);
  gpu_image_unref (image);
}

/* Rule 4: of several exact ones, the most recently released on the consumer stream: its bytes may be in the L2. */
static void
test_most_recent (Rig *rig, const void *data)
{
  void *address[3];
  GpuImage *image[3];

  rig_make_idle (rig, &rig->spec, rig->stream[0], 3, address);
  for (unsigned i = 0; i < 3; i++) {
    image[i] = rig_acquire (rig, &rig->spec, rig->stream[0]);
    g_assert_true (gpu_image_data (image[i]) == address[2 - i]);
  }

  /* The same while they are pending. */
  rig_close (rig, 0);
  for (unsigned i = 0; i < 3; i++) {
    rig_fill (rig->stream[0], image[i], 1);
    gpu_image_unref (image[i]);
  }
  for (unsigned i = 0; i < 3; i++) {
    image[i] = rig_acquire (rig, &rig->spec, rig->stream[0]);
    g_assert_true (gpu_image_data (image[i]) == address[i]);
  }
  for (unsigned i = 0; i < 3; i++)
    gpu_image_unref (image[i]);
  rig_finish (rig);
  RIG_EXPECT (rig, .exact = 3, .pending = 3);
}

/* Rule 4: one released later, but on another stream, is second choice. */
static void
test_most_recent_on_consumer (Rig *rig, const void *data)
{
  for (unsigned first = 0; first < 2; first++) {
    GpuImage *image[2];
    void *address[2];

    for (unsigned i = 0; i < 2; i++) {
      image[i] = rig_acquire (rig, &rig->spec, rig->stream[i]);
      address[i] = gpu_image_data (image[i]);
      rig_fill (rig->stream[i], image[i], 1);
    }
    gpu_image_unref (image[first]);
    gpu_image_unref (image[1 - first]);
    rig_finish (rig);
    image[0] = rig_acquire (rig, &rig->spec, rig->stream[first]);
    g_assert_true (gpu_image_data (image[0]) == address[first]);
    gpu_image_unref (image[0]);
    rig_finish (rig);
  }
}

/* Rule 4: the most recently released one, too, where none was last on the consumer stream or there is no such stream.
 */
static void
test_most_recent_idle (Rig *rig, const void *data)
{
  void *address[3];
  GpuImage *image[3];

  for (unsigned i = 0; i < 3; i++) {
    image[i] = rig_acquire (rig, &rig->spec, rig->stream[i]);
    address[i] = gpu_image_data (image[i]);
  }
  for (unsigned i = 0; i < 3; i++)
    gpu_image_unref (image[i]);
  rig_finish (rig);
  rig->last[0] = rig_stats (rig);
  image[2] = rig_acquire (rig, &rig->spec, rig->stream[3]);
  image[1] = rig_acquire (rig, &rig->spec, NULL);
  RIG_EXPECT (rig, .exact = 2);
  g_assert_true (gpu_image_data (image[2]) == address[2]);
  g_assert_true (gpu_image_data (image[1]) == address[1]);
  gpu_image_unref (image[1]);
  gpu_image_unref (image[2]);
}

/* Rule 4: the smallest idle allocation that suffices serves another shape; its full capacity stays counted. */
static void
test_fit (Rig *rig, const void *data)
{
  GpuImageSpec shape[] = {
      rig_spec (GPU_FORMAT_RGBA, 64, 32),
      rig_spec (GPU_FORMAT_RGBA, 64, 96),
      rig_spec (GPU_FORMAT_RGBA, 64, 80),
      rig_spec (GPU_FORMAT_RGBA, 64, 160),
  };
  GpuImage *image[4];
  void *address[4];
  size_t capacity[4];

  for (unsigned i = 0; i < 4; i++) {
    image[i] = rig_acquire (rig, &shape[i], rig->stream[0]);
    address[i] = gpu_image_data (image[i]);
    capacity[i] = gpu_image_capacity (image[i]);
  }
  for (unsigned i = 0; i < 4; i++)
    gpu_image_unref (image[i]);
  rig_sync (rig->stream[0]);
  GpuCacheStats before = rig_stats (rig);
  RIG_EXPECT (rig, .misses = 4);

  /* Wider, with fewer rows; 16 KiB of it. */
  GpuImageSpec wide = rig_spec (GPU_FORMAT_RGBA, 512, 8);
  GpuImage *fit = rig_acquire (rig, &wide, rig->stream[0]);
  RIG_EXPECT (rig, .fit = 1);
  g_assert_true (gpu_image_data (fit) == address[2]);
  g_assert_cmpuint (gpu_image_capacity (fit), ==, capacity[2]);
  g_assert_true (gpu_image_spec_equal (gpu_image_spec (fit), &wide));
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.live_bytes, ==, capacity[2]);
  g_assert_cmpuint (rig_bytes (&stats), ==, rig_bytes (&before));
  rig_fill (rig->stream[0], fit, 0x5c);
  rig_sync (rig->stream[0]);
  rig_expect_bytes (rig, fit, 0x5c);
  gpu_image_unref (fit);
  rig_sync (rig->stream[0]);

  /* Under its new descriptor it is an exact match of the new shape, and none of the old one. */
  fit = rig_acquire (rig, &wide, rig->stream[0]);
  RIG_EXPECT (rig, .exact = 1);
  g_assert_true (gpu_image_data (fit) == address[2]);
  gpu_image_unref (fit);
}

/* Rule 4: an allocation that is too small, or not aligned as asked for, does not fit. */
static void
test_fit_alignment (Rig *rig, const void *data)
{
  GError *error = NULL;
  GpuImageSpec aligned;

  rig_make_idle (rig, &rig->spec, rig->stream[0], 8, NULL);
  gpu_image_spec_init (&aligned, GPU_FORMAT_RGBA, 16, 4, 16384, &error);
  g_assert_no_error (error);
  GpuImage *image[8];
  for (unsigned i = 0; i < 8; i++) {
    image[i] = rig_acquire (rig, &aligned, rig->stream[0]);
    g_assert_cmpuint ((uintptr_t)gpu_image_data (image[i]) % 16384, ==, 0);
    g_assert_cmpuint (gpu_image_capacity (image[i]), >=, aligned.size);
  }
  for (unsigned i = 0; i < 8; i++)
    gpu_image_unref (image[i]);
  rig_sync (rig->stream[0]);

  rig->last[0] = rig_stats (rig);
  GpuImageSpec large = rig_spec (GPU_FORMAT_RGBA, 640, 480);
  gpu_image_unref (rig_acquire (rig, &large, rig->stream[0]));
  RIG_EXPECT (rig, .misses = 1);

  /* It would be large enough, and may even lie where it should by chance: nothing says that it does. */
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, &error));
  size_t capacity = rig_make_idle (rig, &rig->spec, rig->stream[0], 1, NULL);
  gpu_image_spec_init (&aligned, GPU_FORMAT_RGBA, 16, 2, 4096, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (aligned.size, <=, capacity);
  GpuImage *fresh = rig_acquire (rig, &aligned, rig->stream[0]);
  RIG_EXPECT (rig, .misses = 1);
  g_assert_cmpuint ((uintptr_t)gpu_image_data (fresh) % 4096, ==, 0);
  gpu_image_unref (fresh);
  rig_sync (rig->stream[0]);
  GpuImageSpec least = rig_spec (GPU_FORMAT_RGBA, 16, 8);
  gpu_image_unref (rig_acquire (rig, &least, rig->stream[0])); /* more alignment than is asked for does no harm */
  RIG_EXPECT (rig, .fit = 1);
}

/* Rule 4: below the limit a fit may be at most fit-ratio times the need; under pressure it may be any. */
static void
test_fit_ratio (Rig *rig, const void *data)
{
  GpuImageSpec large = rig_spec (GPU_FORMAT_RGBA, 64, 64 * 5);
  GpuImageSpec smaller = rig_spec (GPU_FORMAT_RGBA, 64, 64 * 3);
  GpuImage *image = rig_acquire (rig, &large, rig->stream[0]);
  GpuImage *second = rig_acquire (rig, &smaller, rig->stream[0]);
  size_t capacity = gpu_image_capacity (image);

  gpu_image_unref (image);
  gpu_image_unref (second);
  rig_sync (rig->stream[0]);
  image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .misses = 2, .fit = 1);
  second = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .misses = 1);

  gpu_cache_set_fit_ratio (rig->device, 8);
  GpuImage *third = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .fit = 1);
  g_assert_cmpuint (gpu_image_capacity (third), ==, capacity);
  gpu_image_unref (third);
  rig_sync (rig->stream[0]);

  gpu_cache_set_fit_ratio (rig->device, 1);
  /* Give it its large shape back, so that what follows is no exact match. */
  GpuCacheStats stats = rig_stats (rig);
  rig_limit (rig, rig_bytes (&stats));
  third = rig_acquire (rig, &large, rig->stream[0]);
  RIG_EXPECT (rig, .fit = 1);
  gpu_image_unref (third);
  rig_sync (rig->stream[0]);
  third = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .fit = 1);
  g_assert_cmpuint (gpu_image_capacity (third), ==, capacity);
  gpu_image_unref (third);
  gpu_image_unref (second);
  gpu_image_unref (image);
}

/* Rule 5: pending memory is handed on only to an exact match. */
static void
test_pending_never_fits (Rig *rig, const void *data)
{
  GpuImageSpec wide = rig_spec (GPU_FORMAT_RGBA, 128, 32);

  rig_close (rig, 0);
  gpu_image_unref (rig_acquire (rig, &rig->spec, rig->stream[0]));
  RIG_EXPECT (rig, .misses = 1);
  gpu_image_unref (rig_acquire (rig, &wide, rig->stream[0]));
  RIG_EXPECT (rig, .misses = 1);
  /* Nor under pressure. */
  rig_limit (rig, 1);
  gpu_image_unref (rig_acquire (rig, &rig->other, rig->stream[0]));
  RIG_EXPECT (rig, .misses = 1);
  GpuImageSpec narrow = rig_spec (GPU_FORMAT_RGBA, 32, 64);
  gpu_image_unref (rig_acquire (rig, &narrow, rig->stream[1]));
  RIG_EXPECT (rig, .misses = 1);
  rig_finish (rig);
}

/* Rules 5 and 7: pending on the consumer stream itself is reused with no driver call at all; stream order does the
 * rest, which the bytes show. */
static void
test_pending_same_stream (Rig *rig, const void *data)
{
  GpuImage *copy = rig_filled (rig, &rig->spec, rig->stream[0], 0x00);
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  void *address = gpu_image_data (image);

  rig_close (rig, 0);
  rig_copy (rig->stream[0], image, copy);
  rig->last[0] = rig_stats (rig);
  RigCalls calls = rig_calls (rig);
  for (unsigned i = 0; i < 100; i++) {
    gpu_image_unref (image);
    image = rig_acquire (rig, &rig->spec, rig->stream[0]);
    g_assert_true (gpu_image_data (image) == address);
  }
  rig_expect_no_calls (rig, &calls);
  RIG_EXPECT (rig, .pending = 100);
  rig_fill (rig->stream[0], image, 0x22);
  rig_finish (rig);
  rig_expect_bytes (rig, copy, 0x11);
  rig_expect_bytes (rig, image, 0x22);
  gpu_image_unref (image);
  gpu_image_unref (copy);
}

/* Rule 5: below the limit, what is pending on another stream is left alone. */
static void
test_pending_other_stream (Rig *rig, const void *data)
{
  RigHeld held = rig_let_go_held (rig);

  rig->last[0] = rig_stats (rig);
  uint64_t waits = gpu_device_calls (rig->device, GPU_CALL_STREAM_WAIT);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  RIG_EXPECT (rig, .misses = 1);
  g_assert_true (gpu_image_data (image) != held.address);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_STREAM_WAIT), ==, waits);
  rig_fill (rig->stream[1], image, 0x22);
  rig_sync (rig->stream[1]); /* it waits for nothing behind the gate */
  rig_end_held (rig, &held);
  gpu_image_unref (image);
}

/* Rule 5: it is reused once the consumer stream has waited for the accesses anyhow; and no wait is added. */
static void
test_pending_ordered (Rig *rig, const void *data)
{
  RigHeld held = rig_let_go_held (rig);

  rig_wait_stream (rig->stream[1], rig->stream[0]);
  rig->last[0] = rig_stats (rig);
  uint64_t waits = gpu_device_calls (rig->device, GPU_CALL_STREAM_WAIT);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  RIG_EXPECT (rig, .pending = 1);
  g_assert_true (gpu_image_data (image) == held.address);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_STREAM_WAIT), ==, waits);
  rig_fill (rig->stream[1], image, 0x22);
  rig_open (rig, 0);
  rig_sync (rig->stream[1]);
  rig_end_held (rig, &held);
  rig_expect_bytes (rig, image, 0x22);
  gpu_image_unref (image);
}

/* Rule 5: the whole history counts, not the last access alone, nor what came before the consumer's wait. */
static void
test_pending_partly_ordered (Rig *rig, const void *data)
{
  GpuImage *copy[2];
  GpuImage *image = rig_filled (rig, &rig->spec, rig->stream[0], 0x11);
  void *address = gpu_image_data (image);

  for (unsigned i = 0; i < 2; i++) {
    copy[i] = rig_filled (rig, &rig->spec, rig->stream[i], 0x00);
    rig_close (rig, i);
  }
  rig_copy (rig->stream[0], image, copy[0]);
  rig_wait_stream (rig->stream[2], rig->stream[0]);
  rig_copy (rig->stream[1], image, copy[1]);
  gpu_image_unref (image);
  rig->last[0] = rig_stats (rig);
  image = rig_acquire (rig, &rig->spec, rig->stream[2]);
  RIG_EXPECT (rig, .misses = 1);
  g_assert_true (gpu_image_data (image) != address);
  gpu_image_unref (image);

  rig_wait_stream (rig->stream[2], rig->stream[1]);
  /* Both it and the one just released are ordered now. */
  GpuImage *second = rig_acquire (rig, &rig->spec, rig->stream[2]);
  image = rig_acquire (rig, &rig->spec, rig->stream[2]);
  RIG_EXPECT (rig, .pending = 2);
  g_assert_true (gpu_image_data (image) == address || gpu_image_data (second) == address);
  rig_fill (rig->stream[2], image, 0x22);
  rig_fill (rig->stream[2], second, 0x22);
  rig_open (rig, 0);
  rig_open (rig, 1);
  rig_sync (rig->stream[2]);
  rig_finish (rig);
  rig_expect_bytes (rig, copy[0], 0x11);
  rig_expect_bytes (rig, copy[1], 0x11);
  gpu_image_unref (image);
  gpu_image_unref (second);
  gpu_image_unref (copy[0]);
  gpu_image_unref (copy[1]);
}

/* Rule 5: under pressure it is reused by adding waits to the consumer stream; the bytes show that they are there. */
static void
test_pending_under_pressure (Rig *rig, const void *data)
{
  RigHeld held = rig_let_go_held (rig);

  GpuCacheStats stats = rig_stats (rig);
  rig_limit (rig, rig_bytes (&stats));
  rig->last[0] = rig_stats (rig);
  uint64_t waits = gpu_device_calls (rig->device, GPU_CALL_STREAM_WAIT);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  RIG_EXPECT (rig, .waiting = 1);
  g_assert_true (gpu_image_data (image) == held.address);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_STREAM_WAIT), >, waits);
  rig_fill (rig->stream[1], image, 0x22);
  rig_open (rig, 0);
  rig_sync (rig->stream[1]);
  rig_end_held (rig, &held);
  rig_expect_bytes (rig, image, 0x22);
  gpu_image_unref (image);
}

/* Rule 5: with no consumer stream pending memory is reused under pressure only. The first write then comes after the
 * earlier accesses, whatever stream it is on. */
static void
test_pending_without_stream (Rig *rig, const void *data)
{
  RigHeld held = rig_let_go_held (rig);

  rig->last[0] = rig_stats (rig);
  GpuImage *fresh = rig_acquire (rig, &rig->spec, NULL);
  RIG_EXPECT (rig, .misses = 1);
  g_assert_true (gpu_image_data (fresh) != held.address);

  GpuCacheStats stats = rig_stats (rig);
  rig_limit (rig, rig_bytes (&stats));
  GpuImage *image = rig_acquire (rig, &rig->spec, NULL);
  RIG_EXPECT (rig, .waiting = 1);
  g_assert_true (gpu_image_data (image) == held.address);
  rig_fill (rig->stream[2], image, 0x22);
  rig_open (rig, 0);
  rig_sync (rig->stream[2]);
  rig_end_held (rig, &held);
  rig_expect_bytes (rig, image, 0x22);
  gpu_image_unref (fresh);
  gpu_image_unref (image);
}

/* Rule 5: stream order never licenses the host: what it touches next is handed out complete, under pressure too. */
static void
test_host_gets_complete (Rig *rig, const void *data)
{
  const struct {
    GpuMemoryKind kind;
    GpuAcquireFlags flags;
  } way[] = {
      {GPU_MEMORY_HOST, GPU_ACQUIRE_DEFAULT},
      {GPU_MEMORY_MANAGED, GPU_ACQUIRE_DEFAULT},
      {GPU_MEMORY_STREAM_ORDERED, GPU_ACQUIRE_HOST},
      {GPU_MEMORY_DEVICE, GPU_ACQUIRE_HOST},
  };

  for (unsigned w = 0; w < G_N_ELEMENTS (way); w++) {
    rig->account = way[w].kind == GPU_MEMORY_HOST ? GPU_ACCOUNT_HOST : GPU_ACCOUNT_DEVICE;
    bool visible = way[w].kind == GPU_MEMORY_HOST || gpu_device_is_host (rig->device);

    for (unsigned i = 0; i < 6; i++) {
      GpuStream *consumer = i % 3 < 2 ? rig->stream[i % 3] : NULL;
      rig_limit (rig, i < 3 ? 1 << 20 : 1);
      GpuImage *image = rig_acquire_kind (rig, &rig->spec, way[w].kind, rig->stream[0], way[w].flags);
      void *address = gpu_image_data (image);
      rig_close (rig, 0);
      rig_fill (rig->stream[0], image, 0x11);
      gpu_image_unref (image);

      image = rig_acquire_kind (rig, &rig->spec, way[w].kind, consumer, way[w].flags);
      g_assert_true (gpu_image_data (image) != address);
      /* New stream-ordered memory is ready when its allocation is, which nothing holds; were that behind the gate, the
       * wait would hang. */
      if (way[w].kind != GPU_MEMORY_STREAM_ORDERED)
        g_assert_true (gpu_image_is_complete (image, GPU_ACCESS_WRITE));
      g_assert_true (gpu_image_wait (image, GPU_ACCESS_WRITE, NULL));
      /* What the host writes now, nothing that is pending may change later. */
      if (visible)
        memset (gpu_image_data (image), 0x77, rig->spec.size);
      rig_finish (rig);
      if (visible)
        rig_expect_bytes (rig, image, 0x77);
      gpu_image_unref (image);
    }
    rig_finish (rig);
  }
}

/* Rule 6: no lookup waits on the host, whatever is pending and however much pressure there is. Were one to, the test
 * would hang. */
static void
test_no_host_waits (Rig *rig, const void *data)
{
  rig_close (rig, 0);
  rig_close (rig, 1);
  uint64_t host_waits = rig_stats (rig).host_waits;
  uint64_t calls = gpu_device_calls (rig->device, GPU_CALL_EVENT_WAIT);
  for (unsigned round = 0; round < 2; round++) {
    if (round)
      rig_limit (rig, 2 * rig->spec.size);
    for (unsigned i = 0; i < 24; i++) {
      GpuStream *consumer = i % 4 == 3 ? NULL : rig->stream[i % 4];
      GpuImage *image = rig_acquire (rig, i % 3 ? &rig->spec : &rig->other, consumer);
      rig_fill (rig->stream[(i / 4) % 3], image, (uint8_t)i);
      gpu_image_unref (image);
    }
  }
  g_assert_cmpuint (rig_stats (rig).host_waits, ==, host_waits);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_EVENT_WAIT), ==, calls);
  rig_finish (rig);
}

/* Rule 7: an exact match that is ordered comes before an idle one that was released earlier. */
static void
test_order_pending_before_idle (Rig *rig, const void *data)
{
  void *address[2];

  rig_make_idle (rig, &rig->spec, rig->stream[0], 2, address);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  g_assert_true (gpu_image_data (image) == address[1]);
  rig_close (rig, 0);
  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);
  image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  RIG_EXPECT (rig, .exact = 1, .pending = 1);
  g_assert_true (gpu_image_data (image) == address[1]);
  gpu_image_unref (image);
  rig_finish (rig);
}

/* Rules 7 and 11: an acquire retires what is complete before it gives up on it. */
static void
test_order_retires (Rig *rig, const void *data)
{
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  void *address = gpu_image_data (image);

  rig_fill (rig->stream[0], image, 1);
  gpu_image_unref (image);
  /* Stream 1 is waited for, and so stream 0 is complete; but nobody has asked about stream 0. */
  rig_wait_stream (rig->stream[1], rig->stream[0]);
  rig_sync (rig->stream[1]);
  image = rig_acquire (rig, &rig->spec, rig->stream[2]);
  g_assert_true (gpu_image_data (image) == address);
  gpu_image_unref (image);
  RIG_EXPECT (rig, .misses = 1, .exact = 1);
}

/* Rule 7: under pressure idle entries are evicted, if that makes enough room, before waits are added. */
static void
test_order_evict_before_wait (Rig *rig, const void *data)
{
  rig_make_idle (rig, &rig->other, rig->stream[0], 1, NULL);
  rig_close (rig, 0);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  void *address = gpu_image_data (image);
  gpu_image_unref (image);
  RIG_EXPECT (rig, .misses = 1);

  GpuCacheStats stats = rig_stats (rig);
  rig_limit (rig, rig_bytes (&stats));
  image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  RIG_EXPECT (rig, .misses = 1, .evictions = 1);
  g_assert_true (gpu_image_data (image) != address);
  gpu_image_unref (image);
  stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), <=, stats.limit_bytes);
  rig_finish (rig);
}

/* Rule 7: if evicting does not make enough room, waits are added, and nothing is evicted in vain. */
static void
test_order_wait_if_not_enough (Rig *rig, const void *data)
{
  GpuImageSpec small = rig_spec (GPU_FORMAT_BGRA, 64, 16);

  rig_make_idle (rig, &small, rig->stream[0], 1, NULL);
  rig_close (rig, 0);
  GpuImage *image = rig_acquire (rig, &rig->spec, rig->stream[0]);
  void *address = gpu_image_data (image);
  gpu_image_unref (image);
  RIG_EXPECT (rig, .misses = 1);

  GpuCacheStats stats = rig_stats (rig);
  rig_limit (rig, rig_bytes (&stats));
  image = rig_acquire (rig, &rig->spec, rig->stream[1]);
  RIG_EXPECT (rig, .waiting = 1);
  g_assert_true (gpu_image_data (image) == address);
  gpu_image_unref (image);
  rig_finish (rig);
}

/* Rules 7 and 9: else there is new memory all the same; live and pending memory can exceed the limit. */
static void
test_order_new_all_the_same (Rig *rig, const void *data)
{
  GpuImage *image[3];

  rig_limit (rig, rig->spec.size);
  rig_close (rig, 0);
  gpu_image_unref (rig_acquire (rig, &rig->other, rig->stream[0]));
  for (unsigned i = 0; i < 3; i++)
    image[i] = rig_acquire (rig, &rig->spec, rig->stream[1]);
  RIG_EXPECT (rig, .misses = 4);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), >=, 4 * rig->spec.size);
  for (unsigned i = 0; i < 3; i++)
    gpu_image_unref (image[i]);
  rig_finish (rig);
  stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), <=, stats.limit_bytes);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/cache/rule-4/exact", test_exact);
  RIG_TEST ("/cache/rule-4/format-and-kind", test_format_and_kind);
  RIG_TEST ("/cache/rule-4/strides", test_strides);
  RIG_TEST ("/cache/rule-4/exact-before-fit", test_exact_before_fit);
  RIG_TEST ("/cache/rule-4/most-recent", test_most_recent);
  RIG_TEST ("/cache/rule-4/most-recent-on-consumer", test_most_recent_on_consumer);
  RIG_TEST ("/cache/rule-4/most-recent-idle", test_most_recent_idle);
  RIG_TEST ("/cache/rule-4/fit", test_fit);
  RIG_TEST ("/cache/rule-4/fit-alignment", test_fit_alignment);
  RIG_TEST ("/cache/rule-4/fit-ratio", test_fit_ratio);
  RIG_TEST ("/cache/rule-5/pending-never-fits", test_pending_never_fits);
  RIG_TEST ("/cache/rule-5/same-stream", test_pending_same_stream);
  RIG_TEST ("/cache/rule-5/other-stream", test_pending_other_stream);
  RIG_TEST ("/cache/rule-5/ordered", test_pending_ordered);
  RIG_TEST ("/cache/rule-5/partly-ordered", test_pending_partly_ordered);
  RIG_TEST ("/cache/rule-5/under-pressure", test_pending_under_pressure);
  RIG_TEST ("/cache/rule-5/without-stream", test_pending_without_stream);
  RIG_TEST ("/cache/rule-5/host-gets-complete", test_host_gets_complete);
  RIG_TEST ("/cache/rule-6/no-host-waits", test_no_host_waits);
  RIG_TEST ("/cache/rule-7/pending-before-idle", test_order_pending_before_idle);
  RIG_TEST ("/cache/rule-7/retires", test_order_retires);
  RIG_TEST ("/cache/rule-7/evict-before-wait", test_order_evict_before_wait);
  RIG_TEST ("/cache/rule-7/wait-if-not-enough", test_order_wait_if_not_enough);
  RIG_TEST ("/cache/rule-7/new-all-the-same", test_order_new_all_the_same);
  return g_test_run ();
}
