/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A chain in its steady state, as elements run it: memory from the cache for every step of every frame, a throttle for
 * each element. What of that reaches the device: the launches, an event a frame at most, and nothing else.
 */
#include "common.h"

#include <gpucache/testing.h>

#define STEPS 3
#define DEPTH 8
#define WARM_UP 40
#define FRAMES 200

typedef struct {
  GpuStream *stream;
  GpuThrottle *throttle[STEPS];
  GpuImageSpec spec[STEPS];
  GpuImage *input;
} Chain;

static void
run_step (Chain *chain, unsigned step, GpuImage *src, GpuImage *dst)
{
  g_autoptr (GError) error = NULL;
  GpuNormalize normalize;

  gpu_normalize_init (&normalize);
  if (step == 0)
    gpu_flip (chain->stream, src, dst, GPU_ORIENTATION_HORIZONTAL, &error);
  else if (step == 1)
    gpu_resize (chain->stream, src, dst, GPU_RESIZE_BILINEAR, &error);
  else
    gpu_normalize (chain->stream, src, dst, &normalize, &error);
  g_assert_no_error (error);
}

static void
run_frame (Chain *chain, GpuDevice *device)
{
  GpuImage *src = gpu_image_ref (chain->input);

  for (unsigned step = 0; step < STEPS; step++) {
    g_autoptr (GError) error = NULL;
    g_assert_true (gpu_throttle_begin (chain->throttle[step], &error));
    GpuImage *dst = gpu_image_acquire (device, &chain->spec[step], GPU_MEMORY_STREAM_ORDERED, chain->stream,
                                       GPU_ACQUIRE_DEFAULT, &error);
    g_assert_no_error (error);
    run_step (chain, step, src, dst);
    g_assert_true (gpu_throttle_end (chain->throttle[step], chain->stream, &error));
    gpu_image_unref (src);
    src = dst;
  }
  gpu_image_unref (src);
}

static void
test_steady (void)
{
  static const GpuCall never[] = {GPU_CALL_ALLOC,        GPU_CALL_FREE,        GPU_CALL_STREAM_CREATE,
                                  GPU_CALL_EVENT_CREATE, GPU_CALL_STREAM_WAIT, GPU_CALL_COPY};
  g_autoptr (GError) error = NULL;
  GpuDevice *device = test_device_new ();
  uint64_t before[GPU_N_CALLS], calls[GPU_N_CALLS];
  Chain chain = {.stream = gpu_stream_new (device, true, &error)};

  g_assert_no_error (error);
  g_assert_true (gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, INT64_C (1) << 30, &error));
  /* So far apart in size that no memory of one serves the other (rule 7): a fast device may be done with a frame before
   * the next one is wanted. */
  chain.spec[0] = test_spec (GPU_FORMAT_RGBA, 160, 128);
  chain.spec[1] = chain.spec[2] = test_spec (GPU_FORMAT_RGBA, 40, 32);
  for (unsigned step = 0; step < STEPS; step++)
    chain.throttle[step] = gpu_throttle_new (DEPTH);
  chain.input =
      gpu_image_acquire (device, &chain.spec[0], GPU_MEMORY_STREAM_ORDERED, chain.stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  g_assert_true (gpu_image_fill (chain.stream, chain.input, 0x5a, &error));

  for (unsigned i = 0; i < WARM_UP; i++)
    run_frame (&chain, device);
  for (unsigned i = 0; i < GPU_N_CALLS; i++)
    before[i] = gpu_device_calls (device, (GpuCall)i);
  for (unsigned i = 0; i < FRAMES; i++)
    run_frame (&chain, device);
  for (unsigned i = 0; i < GPU_N_CALLS; i++)
    calls[i] = gpu_device_calls (device, (GpuCall)i) - before[i];

  g_assert_cmpuint (calls[GPU_CALL_LAUNCH], ==, STEPS * FRAMES);
  g_assert_cmpuint (calls[GPU_CALL_EVENT_RECORD], >, 0);
  g_assert_cmpuint (calls[GPU_CALL_EVENT_RECORD], <=, FRAMES);
  /* One that finds it pending and one that finds it complete, and one in some submissions. */
  g_assert_cmpuint (calls[GPU_CALL_EVENT_QUERY], <=, 2 * calls[GPU_CALL_EVENT_RECORD] + STEPS * FRAMES / 16);
  for (size_t i = 0; i < G_N_ELEMENTS (never); i++)
    g_assert_cmpuint (calls[never[i]], ==, 0);

  /* A chain on one stream runs with a frame of each shape and one more that the next step reads. */
  GpuCacheStats stats;
  g_autofree char *dump = gpu_cache_dump (device);
  g_test_message ("%s", dump);
  gpu_cache_get_stats (device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  g_assert_cmpuint (stats.live_bytes + stats.pending_bytes + stats.idle_bytes, ==,
                    2 * chain.spec[0].size + 2 * chain.spec[1].size);

  for (unsigned step = 0; step < STEPS; step++)
    gpu_throttle_free (chain.throttle[step]);
  gpu_image_unref (chain.input);
  gpu_stream_unref (chain.stream);
  gpu_device_unref (device);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  g_test_add_func ("/chain/steady", test_steady);
  return g_test_run ();
}
