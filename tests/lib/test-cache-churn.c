/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Churn: frames of random sizes, a few alive at a time. What is counted stays under the limit, and afterwards the
 * device's own pool is not in pieces (coalescing is the driver's, see RULES' last paragraph on the second document).
 */
#include "common.h"
#include "rig.h"

#define N_ALIVE 8

/* A picture of up to 1080p. */
static GpuImageSpec
any_frame (uint32_t *state)
{
  uint32_t width = 16 + test_random (state) % 1905, height = 16 + test_random (state) % 1065;
  return rig_spec (test_random (state) % 2 ? GPU_FORMAT_RGBA : GPU_FORMAT_NV12, width, height);
}

static void
churn (Rig *rig, unsigned frames, uint64_t limit, bool complete)
{
  GpuImage *alive[N_ALIVE] = {NULL};
  uint32_t state = 7;
  uint64_t largest = 1920 * 1080 * 4 + 1080 * 256;

  for (unsigned i = 0; i < frames; i++) {
    GpuImageSpec spec = any_frame (&state);
    GpuStream *stream = rig->stream[test_random (&state) % 2];
    GpuImage **slot = &alive[test_random (&state) % N_ALIVE];
    if (*slot)
      gpu_image_unref (*slot);
    *slot = rig_acquire (rig, &spec, stream);
    rig_fill (stream, *slot, (uint8_t)i);
    if (complete)
      rig_sync (stream);
    if (i % 64 == 63) {
      rig_finish (rig);
      GpuCacheStats stats = rig_stats (rig);
      g_assert_cmpuint (rig_bytes (&stats), <=, limit);
      g_assert_cmpuint (stats.live_bytes, <=, N_ALIVE * 4 * largest);
    }
  }
  for (unsigned i = 0; i < N_ALIVE; i++)
    if (alive[i])
      gpu_image_unref (alive[i]);
  rig_finish (rig);
}

/* Rules 8 to 10, and the second document's contiguous segments: after churn and a clear, one allocation of 80% of the
 * limit succeeds. */
static void
test_coalesces (Rig *rig, const void *data)
{
  GError *error = NULL;

  /* A GPU is worth its default limit; a host would spend its time on filling that with poison. */
  if (gpu_device_is_host (rig->device))
    rig_limit (rig, 256 << 20);
  uint64_t limit = gpu_cache_get_limit (rig->device, GPU_ACCOUNT_DEVICE);
  churn (rig, gpu_device_is_host (rig->device) ? 150 : 3000, limit, false);
  g_assert_true (gpu_cache_clear (rig->device, GPU_CACHE_ALL, &error));
  g_assert_no_error (error);
  /* Rows of 64 KiB, as many as 80% of the limit takes. */
  GpuImageSpec huge = rig_spec (GPU_FORMAT_RGBA, 16384, (uint32_t)(limit / 5 * 4 >> 16));
  GpuImage *image = rig_acquire (rig, &huge, rig->stream[0]);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (rig_bytes (&stats), ==, gpu_image_capacity (image));
  gpu_image_unref (image);
  rig_finish (rig);
}

/* Once the limit exceeds what is in use, what is counted stays under it, also at the peak. */
static void
test_stays_under (Rig *rig, const void *data)
{
  rig_limit (rig, 40 << 20);
  churn (rig, 600, 40 << 20, true);
  GpuCacheStats stats = rig_stats (rig);
  g_assert_cmpuint (stats.peak_bytes, <=, 40 << 20);
  g_assert_cmpuint (stats.evictions, >, 0);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  RIG_TEST ("/cache/churn/coalesces", test_coalesces);
  RIG_TEST ("/cache/churn/stays-under", test_stays_under);
  return g_test_run ();
}
