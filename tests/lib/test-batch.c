/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Batches: reuse as a whole (rule 17), their tables, dense ones, and what is refused.
 */
#include "common.h"
#include "rig.h"

#include "../../lib/gpucache/batch-priv.h"

#include <string.h>

#define N 3

/* The shapes that most tests use: three formats, three sizes, rows that the same kernel takes. */
static void
make_specs (GpuImageSpec specs[N])
{
  specs[0] = rig_spec (GPU_FORMAT_RGBA, 64, 64);
  specs[1] = rig_spec (GPU_FORMAT_NV12, 96, 50);
  specs[2] = rig_spec (GPU_FORMAT_GRAY8, 48, 17);
}

static GpuBatch *
acquire (Rig *rig, const GpuImageSpec *specs, unsigned n, GpuStream *stream)
{
  GError *error = NULL;
  GpuBatch *batch = gpu_batch_acquire (rig->device, specs, n, GPU_MEMORY_STREAM_ORDERED, stream, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (gpu_batch_size (batch), ==, n);
  for (unsigned i = 0; i < n; i++)
    g_assert_true (gpu_image_spec_equal (gpu_image_spec (gpu_batch_image (batch, i)), &specs[i]));
  return batch;
}

static void
flip (GpuStream *stream, GpuBatch *src, GpuBatch *dst, GpuOrientation orientation)
{
  GError *error = NULL;
  g_assert_true (gpu_flip_batch (stream, src, dst, &orientation, 1, &error));
  g_assert_no_error (error);
}

/* A batch whose images hold 1, 2, 3, completely written, and which is never reused. */
static GpuBatch *
make_source (Rig *rig, const GpuImageSpec *specs, unsigned n)
{
  GpuImage *images[16] = {NULL};
  GError *error = NULL;
  for (unsigned i = 0; i < n; i++)
    images[i] = rig_filled (rig, &specs[i], rig->stream[0], (uint8_t)(i + 1));
  GpuBatch *batch = gpu_batch_new (images, n, &error);
  g_assert_no_error (error);
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (images[i]);
  return batch;
}

/* A batch with a table, worked on on stream 0 and let go of, and where it lay. @keep: (nullable): its image 1. */
typedef struct {
  void *data[N], *table;
} Places;

static Places
use_and_release (Rig *rig, GpuBatch *src, const GpuImageSpec *specs, GpuImage **keep)
{
  GpuBatch *batch = acquire (rig, specs, N, rig->stream[0]);
  Places places;
  flip (rig->stream[0], src, batch, GPU_ORIENTATION_180);
  for (unsigned i = 0; i < N; i++)
    places.data[i] = gpu_image_data (gpu_batch_image (batch, i));
  places.table = gpu_image_data (batch->table);
  if (keep)
    *keep = gpu_image_ref (gpu_batch_image (batch, 1));
  gpu_batch_unref (batch);
  rig_stats (rig); /* checks the invariants */
  return places;
}

static void
assert_whole (GpuBatch *batch, const Places *places)
{
  for (unsigned i = 0; i < N; i++)
    g_assert_true (gpu_image_data (gpu_batch_image (batch, i)) == places->data[i]);
  g_assert_nonnull (batch->table);
  g_assert_true (gpu_image_data (batch->table) == places->table);
}

/* Rule 17: the same order, while work on it is pending: no wait, no call, counted one by one with its table, and
 * nothing about it has to be told to the device again. */
static void
test_same_order (Rig *rig, const void *data)
{
  GpuImageSpec specs[N];
  make_specs (specs);
  GpuBatch *src = make_source (rig, specs, N);
  rig_close (rig, 0);
  rig_stats (rig);
  Places places = use_and_release (rig, src, specs, NULL);
  rig_expect (rig, (Answers){.misses = 2 * N + 1}, __LINE__); /* the source's, too */

  GpuCacheStats before = rig_stats (rig);
  g_assert_cmpuint (before.pending, ==, N + 1);
  RigCalls calls = rig_calls (rig);
  GpuBatch *batch = acquire (rig, specs, N, rig->stream[0]);
  rig_expect_no_calls (rig, &calls);
  assert_whole (batch, &places);
  RIG_EXPECT (rig, .pending = N + 1);
  GpuCacheStats after = rig_stats (rig);
  g_assert_cmpuint (after.live, ==, before.live + N + 1);
  g_assert_cmpuint (rig_bytes (&after), ==, rig_bytes (&before));

  const uint64_t copies = gpu_device_calls (rig->device, GPU_CALL_COPY);
  const uint64_t launches = gpu_device_calls (rig->device, GPU_CALL_LAUNCH);
  flip (rig->stream[0], src, batch, GPU_ORIENTATION_180);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_COPY), ==, copies);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_LAUNCH), ==, launches + 1);

  rig_finish (rig);
  for (unsigned i = 0; i < N; i++)
    rig_expect_bytes (rig, gpu_batch_image (batch, i), (uint8_t)(i + 1));
  gpu_batch_unref (batch);
  gpu_batch_unref (src);
}

/* Complete and idle, and with no consumer stream. */
static void
test_idle (Rig *rig, const void *data)
{
  GpuImageSpec specs[N];
  make_specs (specs);
  GpuBatch *src = make_source (rig, specs, N);
  Places places = use_and_release (rig, src, specs, NULL);
  rig_finish (rig);
  rig_stats (rig);
  GpuBatch *batch = acquire (rig, specs, N, NULL);
  assert_whole (batch, &places);
  gpu_batch_unref (batch);
  gpu_batch_unref (src);
}

/* Another order is another batch: its images are found one by one, and the old one is none any more. */
static void
test_different_order (Rig *rig, const void *data)
{
  GpuImageSpec specs[N], others[N];
  make_specs (specs);
  for (unsigned i = 0; i < N; i++)
    others[i] = specs[(i + 1) % N];
  GpuBatch *src = make_source (rig, specs, N);
  rig_close (rig, 0);
  Places places = use_and_release (rig, src, specs, NULL);
  rig_expect (rig, (Answers){.misses = 2 * N + 1}, __LINE__);

  GpuBatch *other = acquire (rig, others, N, rig->stream[0]);
  RIG_EXPECT (rig, .pending = N);
  g_assert_null (other->table);
  for (unsigned i = 0; i < N; i++)
    g_assert_true (gpu_image_data (gpu_batch_image (other, i)) == places.data[(i + 1) % N]);
  GpuBatch *again = acquire (rig, specs, N, rig->stream[0]);
  RIG_EXPECT (rig, .misses = N);
  g_assert_null (again->table);
  rig_finish (rig);
  gpu_batch_unref (again);
  gpu_batch_unref (other);
  gpu_batch_unref (src);
}

static void
test_one_size_changed (Rig *rig, const void *data)
{
  GpuImageSpec specs[N], others[N];
  make_specs (specs);
  make_specs (others);
  others[1] = rig_spec (GPU_FORMAT_NV12, 98, 50);
  GpuBatch *src = make_source (rig, specs, N);
  rig_close (rig, 0);
  use_and_release (rig, src, specs, NULL);
  rig_expect (rig, (Answers){.misses = 2 * N + 1}, __LINE__);

  GpuBatch *other = acquire (rig, others, N, rig->stream[0]);
  RIG_EXPECT (rig, .pending = N - 1, .misses = 1);
  g_assert_null (other->table);

  /* A prefix of the same shapes is not the same either. */
  GpuBatch *fewer = acquire (rig, specs, N - 1, rig->stream[0]);
  RIG_EXPECT (rig, .pending = 1, .misses = 1);
  g_assert_null (fewer->table);
  rig_finish (rig);
  gpu_batch_unref (fewer);
  gpu_batch_unref (other);
  gpu_batch_unref (src);
}

/* One image is still seen by somebody: the others are reused one by one. If it comes back first, all are one again. */
static void
test_observed_child (Rig *rig, const void *data)
{
  GpuImageSpec specs[N];
  GpuImage *child;
  make_specs (specs);
  GpuBatch *src = make_source (rig, specs, N);
  rig_close (rig, 0);
  Places places = use_and_release (rig, src, specs, &child);
  rig_expect (rig, (Answers){.misses = 2 * N + 1}, __LINE__);

  gpu_image_unref (child);
  GpuBatch *batch = acquire (rig, specs, N, rig->stream[0]);
  assert_whole (batch, &places);
  RIG_EXPECT (rig, .pending = N + 1);
  child = gpu_image_ref (gpu_batch_image (batch, 1));
  gpu_batch_unref (batch);

  batch = acquire (rig, specs, N, rig->stream[0]);
  g_assert_null (batch->table);
  g_assert_true (gpu_image_data (gpu_batch_image (batch, 0)) == places.data[0]);
  g_assert_true (gpu_image_data (gpu_batch_image (batch, 1)) != places.data[1]);
  RIG_EXPECT (rig, .pending = N - 1, .misses = 1);
  gpu_image_unref (child);
  rig_finish (rig);
  gpu_batch_unref (batch);
  gpu_batch_unref (src);
}

/* Pending on another stream: not without a wait of the consumer's for it, which somebody else must have asked for. One
 * image that is read elsewhere is enough. */
static void
test_other_stream (Rig *rig, const void *data)
{
  GpuImageSpec specs[N];
  GpuImage *child;
  make_specs (specs);
  GpuBatch *src = make_source (rig, specs, N);
  GpuImage *copy = rig_acquire (rig, &specs[1], rig->stream[1]);
  rig_finish (rig);
  rig_close (rig, 0);
  Places places = use_and_release (rig, src, specs, NULL);
  rig_stats (rig);
  rig_expect (rig, (Answers){.misses = 2 * N + 2}, __LINE__);

  GpuBatch *other = acquire (rig, specs, N, rig->stream[1]);
  RIG_EXPECT (rig, .misses = N);
  g_assert_null (other->table);
  rig_wait_stream (rig->stream[1], rig->stream[0]);
  GpuBatch *batch = acquire (rig, specs, N, rig->stream[1]);
  assert_whole (batch, &places);
  RIG_EXPECT (rig, .pending = N + 1);
  rig_finish (rig);
  gpu_batch_unref (batch);
  gpu_batch_unref (other);

  /* Read on stream 2, written on stream 0. */
  rig_close (rig, 2);
  use_and_release (rig, src, specs, &child);
  rig->last[0] = rig_stats (rig);
  rig_copy (rig->stream[2], child, copy);
  gpu_image_unref (child);
  batch = acquire (rig, specs, N, rig->stream[0]);
  g_assert_null (batch->table);
  rig_finish (rig);
  gpu_batch_unref (batch);
  gpu_image_unref (copy);
  gpu_batch_unref (src);
}

/* Taking, or evicting, one of them dissolves the batch; with a limit of 0 it serves while it is pending. */
static void
test_taken_and_evicted (Rig *rig, const void *data)
{
  GpuImageSpec specs[N];
  make_specs (specs);
  GpuBatch *src = make_source (rig, specs, N);
  Places places = use_and_release (rig, src, specs, NULL);
  GpuImage *one = rig_acquire (rig, &specs[2], rig->stream[0]);
  g_assert_true (gpu_image_data (one) == places.data[2]);
  gpu_image_unref (one);
  rig_stats (rig);
  GpuBatch *batch = acquire (rig, specs, N, rig->stream[0]);
  g_assert_null (batch->table);
  gpu_batch_unref (batch);
  rig_finish (rig);

  /* Evicting: room for all but the oldest idle one. */
  places = use_and_release (rig, src, specs, NULL);
  rig_finish (rig);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.idle, >=, N);
  rig_limit (rig, rig_bytes (&stats) - 1);
  rig_stats (rig);
  while (gpu_cache_get_limit (rig->device, GPU_ACCOUNT_DEVICE) > rig_bytes (&stats) - specs[0].size)
    rig_limit (rig, gpu_cache_get_limit (rig->device, GPU_ACCOUNT_DEVICE) - 1024);
  stats = rig_stats (rig);
  batch = acquire (rig, specs, N, rig->stream[0]);
  g_assert_null (batch->table);
  gpu_batch_unref (batch);

  rig_close (rig, 0);
  places = use_and_release (rig, src, specs, NULL);
  rig_limit (rig, 0);
  batch = acquire (rig, specs, N, rig->stream[0]);
  assert_whole (batch, &places);
  gpu_batch_unref (batch);
  rig_finish (rig);
  rig_run (rig);
  stats = rig_stats (rig);
  g_assert_cmpuint (stats.pending + stats.idle, ==, 0);
  gpu_batch_unref (src);
}

/* Under pressure an image of the batch goes to somebody on another stream, who waits for it. */
static void
test_pressure (Rig *rig, const void *data)
{
  GpuImageSpec specs[N];
  make_specs (specs);
  GpuBatch *src = make_source (rig, specs, N);
  rig_close (rig, 0);
  Places places = use_and_release (rig, src, specs, NULL);
  rig_limit (rig, 1);
  rig->last[0] = rig_stats (rig);
  GpuImage *one = rig_acquire (rig, &specs[0], rig->stream[1]);
  RIG_EXPECT (rig, .waiting = 1);
  g_assert_true (gpu_image_data (one) == places.data[0]);
  GpuBatch *batch = acquire (rig, specs, N, rig->stream[0]);
  g_assert_null (batch->table);
  rig_finish (rig);
  gpu_batch_unref (batch);
  gpu_image_unref (one);
  gpu_batch_unref (src);
}

/* A table that a launch has still to read is left alone: another one takes its place. One that none has is written
 * again, and one that is right already is not. */
static void
test_table (Rig *rig, const void *data)
{
  GpuImageSpec specs[N];
  make_specs (specs);
  GpuBatch *src = make_source (rig, specs, N), *other = make_source (rig, specs, N);
  for (unsigned i = 0; i < N; i++)
    rig_fill (rig->stream[0], gpu_batch_image (other, i), (uint8_t)(i + 11));
  GpuBatch *batch = acquire (rig, specs, N, rig->stream[0]);
  GpuBatch *second = acquire (rig, specs, N, rig->stream[0]);
  flip (rig->stream[0], src, batch, GPU_ORIENTATION_180);
  void *table = gpu_image_data (batch->table);
  rig_finish (rig);

  uint64_t copies = gpu_device_calls (rig->device, GPU_CALL_COPY);
  flip (rig->stream[0], other, batch, GPU_ORIENTATION_180);
  g_assert_true (gpu_image_data (batch->table) == table);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_COPY), ==, ++copies);
  flip (rig->stream[0], other, batch, GPU_ORIENTATION_180);
  g_assert_cmpuint (gpu_device_calls (rig->device, GPU_CALL_COPY), ==, copies);
  rig_finish (rig);

  rig_close (rig, 0);
  flip (rig->stream[0], other, batch, GPU_ORIENTATION_HORIZONTAL);
  table = gpu_image_data (batch->table);
  for (unsigned i = 0; i < N; i++)
    rig_copy (rig->stream[0], gpu_batch_image (batch, i), gpu_batch_image (second, i));
  flip (rig->stream[0], src, batch, GPU_ORIENTATION_180);
  g_assert_true (gpu_image_data (batch->table) != table);
  rig_finish (rig);
  for (unsigned i = 0; i < N; i++) {
    rig_expect_bytes (rig, gpu_batch_image (second, i), (uint8_t)(i + 11));
    rig_expect_bytes (rig, gpu_batch_image (batch, i), (uint8_t)(i + 1));
  }

  /* Given back while pending, and taken again: still pending. */
  rig_close (rig, 0);
  flip (rig->stream[0], other, batch, GPU_ORIENTATION_VERTICAL);
  table = gpu_image_data (batch->table);
  gpu_batch_unref (batch);
  batch = acquire (rig, specs, N, rig->stream[0]);
  g_assert_nonnull (batch->table);
  flip (rig->stream[0], src, batch, GPU_ORIENTATION_VERTICAL);
  g_assert_true (gpu_image_data (batch->table) != table);
  rig_finish (rig);
  gpu_batch_unref (batch);
  gpu_batch_unref (second);
  gpu_batch_unref (other);
  gpu_batch_unref (src);
}

static GpuBatch *
acquire_dense (Rig *rig, const GpuImageSpec *spec, unsigned n)
{
  GError *error = NULL;
  GpuBatch *batch = gpu_batch_acquire_dense (rig->device, spec, n, GPU_MEMORY_STREAM_ORDERED, rig->stream[0], &error);
  g_assert_no_error (error);
  return batch;
}

/* One piece of memory: images lie one after the other without padding, and it is reused like any other, whole. */
static void
test_dense (Rig *rig, const void *data)
{
  GpuImageSpec planar = rig_spec (GPU_FORMAT_RGBP, 30, 20), packed = rig_spec (GPU_FORMAT_RGB, 30, 20), tensor;
  g_assert_true (gpu_image_spec_init_tensor (&tensor, GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 3, 30, 20, NULL));
  const struct {
    GpuImageSpec spec;
    size_t bytes;
    uint32_t rows;
    GpuFormat format;
  } cases[] = {{planar, 30 * 20 * 3, 5 * 3 * 20, GPU_FORMAT_U8_CHW},
               {packed, 30 * 20 * 3, 5 * 20, GPU_FORMAT_U8_HWC},
               {tensor, 30 * 20 * 3 * 4, 5 * 3 * 20, GPU_FORMAT_F32_CHW}};

  for (unsigned c = 0; c < G_N_ELEMENTS (cases); c++) {
    GpuBatch *batch = acquire_dense (rig, &cases[c].spec, 5);
    GpuImage *all = gpu_batch_dense_image (batch);
    g_assert_cmpuint (gpu_image_spec (all)->height, ==, cases[c].rows);
    g_assert_cmpuint (gpu_image_spec (all)->width, ==, 30);
    g_assert_cmpint (gpu_image_spec (all)->format, ==, cases[c].format);
    g_assert_cmpuint (gpu_image_spec (all)->size, ==, 5 * cases[c].bytes);
    for (unsigned i = 0; i < 5; i++) {
      GpuImage *image = gpu_batch_image (batch, i);
      g_assert_true ((uint8_t *)gpu_image_data (image) == (uint8_t *)gpu_image_data (all) + i * cases[c].bytes);
      g_assert_cmpint (gpu_image_spec (image)->format, ==, cases[c].spec.format);
      g_assert_cmpuint (gpu_image_spec (image)->size, ==, cases[c].bytes);
    }
    gpu_batch_unref (batch);
  }
  rig->last[0] = rig_stats (rig);

  rig_close (rig, 0);
  GpuBatch *batch = acquire_dense (rig, &planar, 4);
  void *place = gpu_image_data (gpu_batch_dense_image (batch));
  for (unsigned i = 0; i < 4; i++)
    rig_fill (rig->stream[0], gpu_batch_image (batch, i), (uint8_t)i);
  GpuImage *child = gpu_image_ref (gpu_batch_image (batch, 2));
  gpu_batch_unref (batch);
  batch = acquire_dense (rig, &planar, 4);
  g_assert_true (gpu_image_data (gpu_batch_dense_image (batch)) != place);
  gpu_batch_unref (batch);
  gpu_image_unref (child);
  rig->last[0] = rig_stats (rig);
  batch = acquire_dense (rig, &planar, 4);
  g_assert_true (gpu_image_data (gpu_batch_dense_image (batch)) == place);
  RIG_EXPECT (rig, .pending = 1);
  rig_finish (rig);
  for (unsigned i = 0; i < 4; i++)
    rig_expect_bytes (rig, gpu_batch_image (batch, i), (uint8_t)i);
  gpu_batch_unref (batch);
}

static void
expect_error (GpuBatch *batch, GError **error, const char *text)
{
  g_assert_null (batch);
  g_assert_error (*error, GPU_ERROR, GPU_ERROR_INVALID);
  g_assert_nonnull (strstr ((*error)->message, text));
  g_clear_error (error);
}

static void
test_errors (Rig *rig, const void *data)
{
  GpuImageSpec specs[N], odd = rig_spec (GPU_FORMAT_NV12, 64, 64);
  GpuDevice *other = test_device_new_full (1, 0);
  GError *error = NULL;
  make_specs (specs);

  expect_error (gpu_batch_acquire (rig->device, specs, 0, 0, NULL, &error), &error, "0 images");
  expect_error (gpu_batch_acquire (rig->device, specs, 65536, 0, NULL, &error), &error, "65536 images");
  expect_error (gpu_batch_acquire_dense (rig->device, &odd, 2, 0, NULL, &error), &error, "NV12");
  memset (&odd, 0, sizeof odd);
  specs[2] = odd;
  expect_error (gpu_batch_acquire (rig->device, specs, N, 0, NULL, &error), &error, "image spec");
  make_specs (specs);

  if (!test_is_cuda ()) {
    GpuImage *images[] = {rig_acquire (rig, &specs[0], rig->stream[0]),
                          gpu_image_acquire (other, &specs[0], GPU_MEMORY_STREAM_ORDERED, NULL, 0, NULL)};
    expect_error (gpu_batch_new (images, 2, &error), &error, "Image 1");
    gpu_image_unref (images[0]);
    gpu_image_unref (images[1]);
  }
  gpu_device_unref (other);

  const GpuOrientation orientations[2] = {0};
  GpuBatch *a = acquire (rig, specs, N, rig->stream[0]), *b = acquire (rig, specs, N - 1, rig->stream[0]);
  g_assert_false (gpu_flip_batch (rig->stream[0], a, b, orientations, 1, &error));
  expect_error (NULL, &error, "3 images cannot go to one of 2");
  g_assert_false (gpu_flip_batch (rig->stream[0], a, a, orientations, 2, &error));
  expect_error (NULL, &error, "not 2 times");
  g_assert_false (gpu_flip_batch (rig->stream[0], a, a, orientations, 1, &error));
  expect_error (NULL, &error, "Image 0 of a batch: ");

  /* Image 1 would be written while it is read for image 0. */
  GpuImage *same[] = {gpu_batch_image (a, 0), gpu_batch_image (a, 0)};
  GpuImage *fresh[] = {rig_acquire (rig, &specs[0], rig->stream[0]), gpu_batch_image (a, 0)};
  GpuBatch *src = gpu_batch_new (same, 2, NULL), *dst = gpu_batch_new (fresh, 2, NULL);
  g_assert_false (gpu_flip_batch (rig->stream[0], src, dst, orientations, 1, &error));
  expect_error (NULL, &error, "Image 1 of the destination and image 0 of the source");
  g_assert_false (gpu_flip_batch (rig->stream[0], dst, src, orientations, 1, &error));
  g_clear_error (&error);
  gpu_image_unref (fresh[0]);
  gpu_batch_unref (dst);
  gpu_batch_unref (src);

  /* The same of one that is one piece of memory. */
  const GpuImageSpec packed = rig_spec (GPU_FORMAT_RGB, 30, 20);
  GpuBatch *dense = acquire_dense (rig, &packed, 2);
  GpuImage *apart[] = {rig_acquire (rig, &packed, rig->stream[0]), rig_acquire (rig, &packed, rig->stream[0])};
  GpuImage *within[] = {gpu_batch_image (dense, 1), apart[1]};
  src = gpu_batch_new (within, 2, NULL);
  g_assert_false (gpu_flip_batch (rig->stream[0], src, dense, orientations, 1, &error));
  expect_error (NULL, &error, "Image 1 of the destination and image 0 of the source");
  gpu_batch_unref (src);
  src = gpu_batch_new (apart, 2, NULL);
  g_assert_true (gpu_flip_batch (rig->stream[0], src, dense, orientations, 1, &error));
  gpu_batch_unref (src);
  gpu_image_unref (apart[0]);
  gpu_image_unref (apart[1]);
  gpu_batch_unref (dense);
  gpu_batch_unref (a);
  gpu_batch_unref (b);

  /* The driver has no memory for the last image: what was had goes back. */
  if (!test_is_cuda ()) {
    specs[2] = rig_spec (GPU_FORMAT_GRAY8, 1 << 20, 64);
    gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 1000);
    g_assert_null (gpu_batch_acquire (rig->device, specs, N, 0, rig->stream[0], &error));
    g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
    g_clear_error (&error);
    gpu_device_fail (rig->device, GPU_CALL_ALLOC, 0, 0);
  }
  g_assert_cmpuint (rig_stats (rig).live, ==, 0);
}

/* What ends a batch besides: its scope ends, its scope is cleared, before and after its images are back. */
static void
test_scope_ends (Rig *rig, const void *data)
{
  GpuImageSpec specs[N];
  make_specs (specs);
  for (unsigned how = 0; how < 4; how++) {
    GpuStream *stream = rig_new_stream (rig, true);
    GpuBatch *batch = acquire (rig, specs, N, stream);
    GpuImage *children[N];
    for (unsigned i = 0; i < N; i++)
      children[i] = gpu_image_ref (gpu_batch_image (batch, i));
    gpu_batch_unref (batch);
    if (how & 1) /* one is back, the others are not */
      gpu_image_unref (g_steal_pointer (&children[1]));
    rig_stats (rig);
    if (how & 2) {
      g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, NULL));
      rig_stats (rig);
    }
    gpu_stream_unref (stream);
    rig_stats (rig);
    for (unsigned i = 0; i < N; i++)
      gpu_image_unref (children[i]);
    rig_stats (rig);
  }

  /* Let go of only after a clear: freed, and no batch. */
  GpuBatch *batch = acquire (rig, specs, N, rig->stream[0]);
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, NULL));
  gpu_batch_unref (batch);
  rig_finish (rig);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.pending + stats.idle, ==, 0);
}

/* A model of rule 17: batches that were let go of, and what has happened to them since. */
#define MODEL_SHAPES 4
#define MODEL_STEPS 4000

typedef struct {
  unsigned shape;
  unsigned stream; /* that it was written on */
  Places places;
  GpuImage *child; /* still held */
} Kept;

typedef struct {
  GpuImageSpec specs[MODEL_SHAPES][N];
  GpuBatch *src[MODEL_SHAPES];
  GArray *kept; /* of Kept; the last to be let go of last */
  uint64_t n_whole, n_other;
} Model;

/* What was handed out is no part of a batch that is kept any more. */
static void
model_taken (Model *model, const void *place)
{
  for (unsigned i = model->kept->len; i-- > 0;) {
    Kept *kept = &g_array_index (model->kept, Kept, i);
    bool has = kept->places.table == place;
    for (unsigned k = 0; k < N; k++)
      has |= kept->places.data[k] == place;
    if (!has)
      continue;
    if (kept->child)
      gpu_image_unref (kept->child);
    g_array_remove_index (model->kept, i);
  }
}

static void
model_batch (Rig *rig, Model *model, uint32_t *state)
{
  unsigned shape = test_random (state) % MODEL_SHAPES, on = test_random (state) % 2;
  const Kept *expected = NULL;
  for (unsigned i = 0; i < model->kept->len; i++) {
    const Kept *kept = &g_array_index (model->kept, Kept, i);
    if (kept->shape == shape && kept->stream == on && !kept->child)
      expected = kept;
  }
  GpuBatch *batch = acquire (rig, model->specs[shape], N, rig->stream[on]);
  if (expected) {
    assert_whole (batch, &expected->places);
    model->n_whole++;
  } else {
    g_assert_null (batch->table);
    model->n_other++;
  }
  for (unsigned i = 0; i < N; i++)
    model_taken (model, gpu_image_data (gpu_batch_image (batch, i)));
  flip (rig->stream[on], model->src[shape], batch, test_random (state) % 2 ? GPU_ORIENTATION_180 : 0);
  model_taken (model, gpu_image_data (batch->table));

  Kept kept = {.shape = shape, .stream = on};
  for (unsigned i = 0; i < N; i++)
    kept.places.data[i] = gpu_image_data (gpu_batch_image (batch, i));
  kept.places.table = gpu_image_data (batch->table);
  if (test_random (state) % 4 == 0)
    kept.child = gpu_image_ref (gpu_batch_image (batch, test_random (state) % N));
  g_array_append_val (model->kept, kept);
  gpu_batch_unref (batch);
}

static void
model_release_child (Model *model, uint32_t *state)
{
  if (!model->kept->len)
    return;
  const unsigned i = test_random (state) % model->kept->len;
  Kept kept = g_array_index (model->kept, Kept, i);
  if (!kept.child)
    return;
  gpu_image_unref (g_steal_pointer (&kept.child));
  g_array_remove_index (model->kept, i);
  g_array_append_val (model->kept, kept);
}

static void
model_single (Rig *rig, Model *model, uint32_t *state)
{
  const GpuImageSpec *spec = &model->specs[test_random (state) % MODEL_SHAPES][test_random (state) % N];
  GpuImage *image = rig_acquire (rig, spec, rig->stream[test_random (state) % 2]);
  model_taken (model, gpu_image_data (image));
  gpu_image_unref (image);
}

static void
model_clear (Rig *rig, Model *model)
{
  rig_finish (rig);
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, NULL));
  for (unsigned i = 0; i < model->kept->len; i++)
    gpu_image_unref (g_array_index (model->kept, Kept, i).child);
  g_array_set_size (model->kept, 0);
  for (unsigned i = 0; i < 2; i++)
    rig_close (rig, i);
}

/* Nothing is ever complete, so that the two streams cannot have each other's. Behind a gate a GPU's driver has room for
 * some dozens of copies and launches. */
static void
test_model (Rig *rig, const void *data)
{
  const unsigned n_steps = test_is_cuda () ? MODEL_STEPS / 5 : MODEL_STEPS, n_held = test_is_cuda () ? 25 : 200;
  Model model = {.kept = g_array_new (false, false, sizeof (Kept))};
  uint32_t state = 17;
  for (unsigned s = 0; s < MODEL_SHAPES; s++) {
    make_specs (model.specs[s]);
    if (s % 2)
      model.specs[s][0] = rig_spec (GPU_FORMAT_RGBA, 32, 128);
    if (s / 2) {
      model.specs[s][2] = model.specs[s][1];
      model.specs[s][1] = rig_spec (GPU_FORMAT_GRAY8, 33, 17);
    }
    model.src[s] = make_source (rig, model.specs[s], N);
  }
  model_clear (rig, &model);
  for (unsigned step = 1; step <= n_steps; step++) {
    switch (test_random (&state) % 8) {
    case 0:
      model_single (rig, &model, &state);
      break;
    case 1:
    case 2:
      model_release_child (&model, &state);
      break;
    default:
      model_batch (rig, &model, &state);
    }
    if (step % 50 == 0)
      rig_stats (rig);
    if (step % n_held == 0)
      model_clear (rig, &model);
  }
  g_assert_cmpuint (model.n_whole, >, MODEL_STEPS / 80);
  g_assert_cmpuint (model.n_other, >, MODEL_STEPS / 80);
  model_clear (rig, &model);
  rig_finish (rig);
  for (unsigned s = 0; s < MODEL_SHAPES; s++)
    gpu_batch_unref (model.src[s]);
  g_array_unref (model.kept);
}

/* Threads that hand children to one another and share a stream's scope. */
typedef struct {
  GpuDevice *device;
  GpuStream *stream;
  pthread_mutex_t lock;
  GpuImage *handed[8];
  unsigned seed;
} Shared;

static void
churn (void *data)
{
  Shared *shared = data;
  GpuImageSpec specs[N];
  make_specs (specs);
  pthread_mutex_lock (&shared->lock);
  uint32_t state = ++shared->seed;
  pthread_mutex_unlock (&shared->lock);
  for (unsigned i = 0; i < 2000; i++) {
    unsigned n = 1 + test_random (&state) % N;
    GError *error = NULL;
    GpuBatch *batch = gpu_batch_acquire (shared->device, specs, n, GPU_MEMORY_STREAM_ORDERED, shared->stream, &error);
    g_assert_no_error (error);
    GpuImage *child = gpu_image_ref (gpu_batch_image (batch, test_random (&state) % n));
    pthread_mutex_lock (&shared->lock);
    GpuImage **place = &shared->handed[test_random (&state) % G_N_ELEMENTS (shared->handed)], *old = *place;
    *place = child;
    pthread_mutex_unlock (&shared->lock);
    gpu_batch_unref (batch);
    gpu_image_unref (old);
    if (i % 500 == 0)
      gpu_cache_clear (shared->device, GPU_CACHE_ALL, NULL);
    else if (i % 100 == 0)
      gpu_cache_check (shared->device);
  }
}

static void *
churn_thread (void *data)
{
  churn (data);
  return NULL;
}

static void
test_threads (Rig *rig, const void *data)
{
  Shared shared = {.device = rig->device, .stream = rig_new_stream (rig, true)};
  pthread_t threads[3];
  pthread_mutex_init (&shared.lock, NULL);
  for (unsigned i = 0; i < G_N_ELEMENTS (threads); i++)
    g_assert_cmpint (pthread_create (&threads[i], NULL, churn_thread, &shared), ==, 0);
  for (unsigned i = 0; i < G_N_ELEMENTS (threads); i++)
    pthread_join (threads[i], NULL);
  for (unsigned i = 0; i < G_N_ELEMENTS (shared.handed); i++)
    gpu_image_unref (shared.handed[i]);
  gpu_stream_unref (shared.stream);
  pthread_mutex_destroy (&shared.lock);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/batch/same-order", test_same_order);
  RIG_TEST ("/batch/idle", test_idle);
  RIG_TEST ("/batch/different-order", test_different_order);
  RIG_TEST ("/batch/one-size-changed", test_one_size_changed);
  RIG_TEST ("/batch/observed-child", test_observed_child);
  RIG_TEST ("/batch/other-stream", test_other_stream);
  RIG_TEST ("/batch/taken-and-evicted", test_taken_and_evicted);
  RIG_TEST ("/batch/pressure", test_pressure);
  RIG_TEST ("/batch/table", test_table);
  RIG_TEST ("/batch/dense", test_dense);
  RIG_TEST ("/batch/errors", test_errors);
  RIG_TEST ("/batch/scope-ends", test_scope_ends);
  RIG_TEST ("/batch/model", test_model);
  RIG_TEST ("/batch/threads", test_threads);
  return g_test_run ();
}
