/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Tables of batches once work is under way: none is written again that is right already, whatever else the operation
 * needs memory for and however many images there are; and none costs a wait of the host.
 */
#include "common.h"
#include "rig.h"

#include "../../lib/gpucache/batch-priv.h"

#define N 4

static GpuBatch *
make_source (Rig *rig, const GpuImageSpec *spec, unsigned n)
{
  GpuImage *images[N];
  GError *error = NULL;

  for (unsigned i = 0; i < n; i++)
    images[i] = rig_filled (rig, spec, rig->stream[0], (uint8_t)(i + 1));
  GpuBatch *batch = gpu_batch_new (images, n, &error);
  g_assert_no_error (error);
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (images[i]);
  return batch;
}

static GpuBatch *
acquire (Rig *rig, const GpuImageSpec *spec)
{
  GpuImageSpec specs[N];
  GError *error = NULL;

  for (unsigned i = 0; i < N; i++)
    specs[i] = *spec;
  GpuBatch *batch = gpu_batch_acquire (rig->device, specs, N, GPU_MEMORY_STREAM_ORDERED, rig->stream[0], &error);
  g_assert_no_error (error);
  return batch;
}

static void
flip (Rig *rig, GpuBatch *src, GpuBatch *dst)
{
  const GpuOrientation orientation = GPU_ORIENTATION_180;
  GError *error = NULL;

  g_assert_true (gpu_flip_batch (rig->stream[0], src, dst, &orientation, 1, &error));
  g_assert_no_error (error);
}

/* Fewer images than a dense batch has room for: its first ones are written, the others left alone; taken again, it is
 * told nothing new. */
static void
test_part (Rig *rig, const void *data)
{
  const GpuImageSpec from = rig_spec (GPU_FORMAT_RGB, 24, 10);
  GpuImageSpec to;
  GpuBatch *src = make_source (rig, &from, 2);
  GpuNormalize params;
  GError *error = NULL;

  gpu_normalize_init (&params);
  params.shift = 10;
  g_assert_true (gpu_image_spec_init_tensor (&to, GPU_ELEMENT_U8, GPU_LAYOUT_CHW, 3, 24, 10, &error));
  for (unsigned round = 0; round < 3; round++) {
    GpuBatch *dst = gpu_batch_acquire_dense (rig->device, &to, N, GPU_MEMORY_STREAM_ORDERED, rig->stream[0], &error);
    g_assert_no_error (error);
    for (unsigned i = 0; i < N; i++)
      rig_fill (rig->stream[0], gpu_batch_image (dst, i), 99);

    const RigCalls before = rig_calls (rig);
    g_assert_true (gpu_normalize_batch (rig->stream[0], src, dst, &params, 1, &error));
    g_assert_no_error (error);
    const RigCalls after = rig_calls (rig);
    g_assert_cmpuint (after.n[GPU_CALL_COPY] - before.n[GPU_CALL_COPY], ==, round == 0);
    g_assert_cmpuint (after.n[GPU_CALL_LAUNCH] - before.n[GPU_CALL_LAUNCH], ==, 1);
    rig_finish (rig);
    for (unsigned i = 0; i < N; i++)
      rig_expect_bytes (rig, gpu_batch_image (dst, i), i < 2 ? (uint8_t)(11 + i) : 99);
    gpu_batch_unref (dst);
  }

  /* More than there is room for, or fewer where images are by themselves, are still refused. */
  GpuBatch *other = acquire (rig, &from);
  g_assert_false (gpu_normalize_batch (rig->stream[0], src, other, &params, 1, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  gpu_batch_unref (other);
  other = gpu_batch_acquire_dense (rig->device, &to, 1, GPU_MEMORY_STREAM_ORDERED, rig->stream[0], &error);
  g_assert_false (gpu_normalize_batch (rig->stream[0], src, other, &params, 1, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  gpu_batch_unref (other);
  gpu_batch_unref (src);
}

/* Pictures between two launches are in the table, too: they are found again at the same places. */
static void
test_scratch (Rig *rig, const void *data)
{
  /* Filters of P010 take two everywhere. */
  const GpuImageSpec from = rig_spec (GPU_FORMAT_P010_10LE, 40, 30), to = rig_spec (GPU_FORMAT_P010_10LE, 16, 12);
  GpuBatch *src = make_source (rig, &from, N);
  const GpuResize params = {.filter = GPU_RESIZE_BICUBIC};
  g_autoptr (GpuResizer) resizer = gpu_resizer_new ();
  GError *error = NULL;

  for (unsigned round = 0; round < 4; round++) {
    GpuBatch *dst = acquire (rig, &to);
    const RigCalls before = rig_calls (rig);
    g_assert_true (gpu_resizer_run_batch (resizer, rig->stream[0], src, dst, &params, 1, &error));
    g_assert_no_error (error);
    const RigCalls after = rig_calls (rig);
    if (round > 0)
      g_assert_cmpuint (after.n[GPU_CALL_COPY], ==, before.n[GPU_CALL_COPY]);
    g_assert_cmpuint (after.n[GPU_CALL_LAUNCH] - before.n[GPU_CALL_LAUNCH], ==, 2);
    gpu_batch_unref (dst);
  }
  rig_finish (rig);
  gpu_batch_unref (src);
}

/* A table that is new costs no wait of the host's. What a launch has still to read becomes no other batch's table
 * either, although that batch's copy would come later on the same stream (rule 17). */
static void
test_miss (Rig *rig, const void *data)
{
  const GpuImageSpec spec = rig_spec (GPU_FORMAT_RGBA, 64, 8), other = rig_spec (GPU_FORMAT_GRAY8, 32, 32);
  GpuBatch *src = make_source (rig, &spec, N);
  GpuBatch *others = make_source (rig, &other, N);
  GpuBatch *first = acquire (rig, &spec), *second = acquire (rig, &other);

  rig_close (rig, 0);
  const RigCalls before = rig_calls (rig);
  const GpuCacheStats stats = rig_stats (rig);
  flip (rig, src, first);
  void *table = gpu_image_data (first->table);

  /* It is no batch any more when one of its images serves somebody else; its table is memory like any other. */
  gpu_batch_unref (first);
  GpuImage *taken = rig_acquire (rig, &spec, rig->stream[0]);
  flip (rig, others, second);
  g_assert_true (gpu_image_data (second->table) != table);
  const RigCalls after = rig_calls (rig);
  g_assert_cmpuint (after.n[GPU_CALL_EVENT_WAIT], ==, before.n[GPU_CALL_EVENT_WAIT]);
  g_assert_cmpuint (rig_stats (rig).host_waits, ==, stats.host_waits);

  rig_finish (rig);
  for (unsigned i = 0; i < N; i++)
    rig_expect_bytes (rig, gpu_batch_image (second, i), (uint8_t)(i + 1));
  gpu_image_unref (taken);
  gpu_batch_unref (second);
  gpu_batch_unref (others);
  gpu_batch_unref (src);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/batch-table/part", test_part);
  RIG_TEST ("/batch-table/scratch", test_scratch);
  RIG_TEST ("/batch-table/miss", test_miss);
  return g_test_run ();
}
