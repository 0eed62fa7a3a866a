/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Copies from one CUDA device to another against the fake driver (fake-cuda.c), which has two GPUs: which calls are
 * made, in which order and context, where direct access is to be had and where it is not, and whose loss a failure is.
 */
#include "fake-cuda.h"

#include "../emulator/open.h"

#include <gpucache/gpucache.h>
#include <gpucache/device-priv.h>

#include <string.h>

static const FakeCuda *fake;

typedef struct {
  GpuDevice *device[2];
  GpuStream *stream[2];
  GpuImageSpec spec, wide; /* 6x4 GRAY8: rows of 6 bytes, without padding and with */
} Pair;

static void
setup (Pair *pair, const void *data)
{
  GError *error = NULL;

  for (unsigned i = 0; i < 2; i++) {
    pair->device[i] = gpu_device_cuda_new (i, &error);
    g_assert_no_error (error);
    pair->stream[i] = gpu_stream_new (pair->device[i], true, &error);
    g_assert_no_error (error);
  }
  g_assert_true (gpu_image_spec_init (&pair->spec, GPU_FORMAT_GRAY8, 6, 4, 1, &error));
  g_assert_true (gpu_image_spec_init (&pair->wide, GPU_FORMAT_GRAY8, 6, 4, 32, &error));
  g_assert_cmpuint (pair->spec.stride[0], ==, 6);
  g_assert_cmpuint (pair->wide.stride[0], ==, 32);
}

/* Both devices go, in either order, and nothing of them is left. */
static void
teardown (Pair *pair, const void *data)
{
  for (unsigned i = 0; i < 2; i++) {
    gpu_stream_unref (pair->stream[i]);
    gpu_device_unref (pair->device[i]);
  }
  g_assert_cmpuint (fake->depth (), ==, 0);
  free (fake->take_log ());
}

static GpuImage *
acquire (Pair *pair, unsigned i, const GpuImageSpec *spec, uint8_t value)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (pair->device[i], spec, GPU_MEMORY_STREAM_ORDERED, pair->stream[i], 0, &error);

  g_assert_no_error (error);
  gpu_image_fill (pair->stream[i], image, value, &error);
  g_assert_no_error (error);
  return image;
}

static void
expect (const char *calls)
{
  char *text = fake->take_log ();

  g_assert_cmpstr (text, ==, calls);
  g_assert_cmpuint (fake->depth (), ==, 0);
  free (text);
}

static void
copy (Pair *pair, GpuImage *src, GpuImage *dst, const char *calls)
{
  GError *error = NULL;
  const GpuImageSpec *spec = gpu_image_spec (dst);

  free (fake->take_log ());
  gpu_image_copy (pair->stream[1], src, dst, &error);
  g_assert_no_error (error);
  expect (calls);
  for (unsigned y = 0; y < 4; y++)
    for (unsigned x = 0; x < 6; x++)
      g_assert_cmphex (((uint8_t *)gpu_image_data (dst))[y * spec->stride[0] + x], ==, 0x11);
}

#define OPENING "cuDeviceCanAccessPeer 1 0\ncuCtxEnablePeerAccess 1 from 0 0\ncuMemPoolSetAccess 1 1 1 3\n"

/* An event of the source's stream, the wait, the copy, and an event for the source's cache to poll. */
static void
test_direct (Pair *pair, const void *data)
{
  GpuImage *src = acquire (pair, 0, &pair->spec, 0x11), *dst = acquire (pair, 1, &pair->spec, 0);
  GpuImage *wide = acquire (pair, 1, &pair->wide, 0);

  copy (pair, src, dst,
        OPENING "cuEventCreate 2\ncuEventRecord\ncuStreamWaitEvent 0\ncuMemcpyPeerAsync 1 from 0, 24\n"
                "cuEventCreate 2\ncuEventRecord\n");
  /* Ordered by now: by numbers, without a call. */
  copy (pair, src, wide, "cuMemcpy3DPeerAsync 1 from 0, 6 x 4 x 1, 2 to 2\ncuEventCreate 2\ncuEventRecord\n");
  gpu_image_unref (src);

  /* Retirement asks for the other GPU's events in its context: else the fake would refuse. */
  GpuCacheStats stats;
  gpu_cache_get_stats (pair->device[0], GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  g_assert_cmpuint (stats.idle, ==, 1);
  g_assert_cmpuint (stats.host_waits, ==, 0);
  g_assert_false (gpu_device_is_lost (pair->device[1]));
  gpu_image_unref (dst);
  gpu_image_unref (wide);
}

static void
test_access_is_there (Pair *pair, const void *data)
{
  GpuImage *src = acquire (pair, 0, &pair->spec, 0x11), *dst = acquire (pair, 1, &pair->spec, 0);

  fake->fail ("cuCtxEnablePeerAccess", 0, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  copy (pair, src, dst,
        OPENING "cuEventCreate 2\ncuEventRecord\ncuStreamWaitEvent 0\ncuMemcpyPeerAsync 1 from 0, 24\n"
                "cuEventCreate 2\ncuEventRecord\n");
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

/* Two devices over one GPU, in one context of it or in two: there is nothing to be asked for, since no GPU is its own
 * peer, and the way is as direct. Each has a name of its own. */
static void
test_one_gpu (gconstpointer data)
{
  bool other_context = GPOINTER_TO_UINT (data);
  Pair pair;
  GError *error = NULL;

  setup (&pair, NULL);
  void *context = other_context ? fake->other_context (1) : gpu_device_cuda_context (pair.device[1]);
  GpuDevice *again = gpu_device_open_cuda_context (context, &error);
  g_assert_no_error (error);
  g_assert_true (g_str_has_prefix (gpu_device_name (again), "cuda:1/"));
  GpuStream *stream = gpu_stream_new (again, false, &error);
  g_assert_no_error (error);
  GpuImage *src = gpu_image_acquire (again, &pair.spec, GPU_MEMORY_STREAM_ORDERED, stream, 0, &error);
  gpu_image_fill (stream, src, 0x11, &error);
  g_assert_no_error (error);
  GpuImage *dst = acquire (&pair, 1, &pair.spec, 0), *wide = acquire (&pair, 1, &pair.wide, 0);
  copy (&pair, src, dst,
        other_context ? "cuEventCreate 2\ncuEventRecord\ncuStreamWaitEvent 0\ncuMemcpyPeerAsync 1 from 1+, 24\n"
                        "cuEventCreate 2\ncuEventRecord\n"
                      : "cuEventCreate 2\ncuEventRecord\ncuStreamWaitEvent 0\ncuMemcpyPeerAsync 1 from 1, 24\n"
                        "cuEventCreate 2\ncuEventRecord\n");
  copy (&pair, src, wide,
        other_context ? "cuMemcpy3DPeerAsync 1 from 1+, 6 x 4 x 1, 2 to 2\ncuEventCreate 2\ncuEventRecord\n"
                      : "cuMemcpy3DPeerAsync 1 from 1, 6 x 4 x 1, 2 to 2\ncuEventCreate 2\ncuEventRecord\n");
  gpu_image_unref (src);
  GpuCacheStats stats;
  gpu_cache_get_stats (again, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  g_assert_cmpuint (stats.idle, ==, 1); /* asked for in the reader's context */
  g_assert_false (gpu_device_is_lost (again) || gpu_device_is_lost (pair.device[1]));
  gpu_image_unref (dst);
  gpu_image_unref (wide);
  gpu_stream_unref (stream);
  gpu_device_unref (again);
  teardown (&pair, NULL);
}

/* First on the source's own stream for that, into pinned memory, then from there. */
static void
test_no_access (Pair *pair, const void *data)
{
  static const char *const refusals[] = {"cuDeviceCanAccessPeer", "cuCtxEnablePeerAccess", "cuMemPoolSetAccess"};
  const char *refusal = refusals[GPOINTER_TO_UINT (data)];
  GpuImage *src = acquire (pair, 0, &pair->wide, 0x11), *dst = acquire (pair, 1, &pair->spec, 0);
  GError *error = NULL;

  g_test_expect_message ("gpucache", G_LOG_LEVEL_MESSAGE,
                         "images go from cuda:0 to cuda:1 through pinned host memory: *");
  fake->fail (refusal, 0, CUDA_ERROR_TOO_MANY_PEERS);
  gpu_image_copy (pair->stream[1], src, dst, &error);
  g_assert_no_error (error);
  g_test_assert_expected_messages ();
  g_autofree char *calls = fake->take_log ();
  g_assert_nonnull (strstr (calls, refusal));
  g_assert_null (strstr (calls, "Synchronize"));

  copy (pair, src, dst,
        "cuEventQuery\ncuEventQuery\n" /* is the pinned frame free again? */
        "cuMemcpy2DAsync 6 x 4, 4 to 4\ncuEventRecord\ncuStreamWaitEvent 0\n"
        "cuMemcpy2DAsync 6 x 4, 4 to 4\ncuEventRecord\n");
  g_assert_false (gpu_device_is_lost (pair->device[0]));
  g_assert_false (gpu_device_is_lost (pair->device[1]));
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

static void
refuse_message (const char *domain, GLogLevelFlags level, const char *text, void *data)
{
  g_error ("unexpected: %s", text);
}

/* A GPU that is lost does not open the way to it; that is no reason to go another one, and no other one's loss. */
static void
test_breaks_before (Pair *pair, const void *data)
{
  const int which = GPOINTER_TO_INT (data);
  GpuImage *src = acquire (pair, 0, &pair->spec, 0x11), *dst = acquire (pair, 1, &pair->spec, 0);
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_strdup_printf ("cuda:%d", which);

  fake->fail ("cuMemPoolSetAccess", 0, CUDA_ERROR_ILLEGAL_ADDRESS);
  fake->break_gpu (which);
  unsigned handler = g_log_set_handler ("gpucache", G_LOG_LEVEL_MESSAGE, refuse_message, NULL);
  g_assert_false (gpu_image_copy (pair->stream[1], src, dst, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_assert_nonnull (strstr (error->message, name));
  g_log_remove_handler ("gpucache", handler);
  g_assert_true (gpu_device_is_lost (pair->device[which]));
  g_assert_false (gpu_device_is_lost (pair->device[!which]));
  fake->break_gpu (-1);
  fake->fail ("cuMemPoolSetAccess", 0, CUDA_SUCCESS);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

/* Each GPU tells for itself whether it is lost: a call of one that fails because of the other is the other's loss. */
static void
test_source_breaks (Pair *pair, const void *data)
{
  GpuImage *src = acquire (pair, 0, &pair->spec, 0x11), *dst = acquire (pair, 1, &pair->spec, 0);
  g_autoptr (GError) error = NULL;
  GpuPoint point = {0};

  copy (pair, src, dst,
        OPENING "cuEventCreate 2\ncuEventRecord\ncuStreamWaitEvent 0\ncuMemcpyPeerAsync 1 from 0, 24\n"
                "cuEventCreate 2\ncuEventRecord\n");
  gpu_image_fill (pair->stream[0], src, 0x22, &error);
  gpu_point_mark (&point, pair->stream[0], &error); /* so that the source is asked for nothing more */
  g_assert_no_error (error);
  fake->break_gpu (0);
  g_assert_false (gpu_image_copy (pair->stream[1], src, dst, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_assert_true (gpu_device_is_lost (pair->device[0]));
  g_assert_false (gpu_device_is_lost (pair->device[1]));
  g_clear_error (&error);
  gpu_image_fill (pair->stream[1], dst, 0, &error);
  g_assert_no_error (error);
  fake->break_gpu (-1);
  gpu_point_clear (&point);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

static void
test_destination_breaks (Pair *pair, const void *data)
{
  GpuImage *src = acquire (pair, 0, &pair->spec, 0x11), *dst = acquire (pair, 1, &pair->spec, 0);
  g_autoptr (GError) error = NULL;

  fake->fail ("cuMemcpyPeerAsync", 0, CUDA_ERROR_ILLEGAL_ADDRESS);
  g_assert_false (gpu_image_copy (pair->stream[1], src, dst, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_assert_nonnull (strstr (error->message, "cuda:1"));
  g_assert_false (gpu_device_is_lost (pair->device[0]));
  g_assert_true (gpu_device_is_lost (pair->device[1]));
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

int
main (int argc, char **argv)
{
  void *library = open_fake_cuda ();

  g_test_init (&argc, &argv, NULL);
  if (!library)
    g_error ("set FAKE_CUDA_LIBRARY to the path of the fake driver");
  fake = dlsym (library, "fake_cuda");
  g_assert_nonnull (fake);

  g_test_add ("/peer-cuda/direct", Pair, NULL, setup, test_direct, teardown);
  g_test_add ("/peer-cuda/access-is-there", Pair, NULL, setup, test_access_is_there, teardown);
  g_test_add_data_func ("/peer-cuda/one-gpu/one-context", GUINT_TO_POINTER (false), test_one_gpu);
  g_test_add_data_func ("/peer-cuda/one-gpu/two-contexts", GUINT_TO_POINTER (true), test_one_gpu);
  for (unsigned i = 0; i < 3; i++) {
    g_autofree char *name = g_strdup_printf ("/peer-cuda/no-access/%u", i);
    g_test_add (name, Pair, GUINT_TO_POINTER (i), setup, test_no_access, teardown);
  }
  g_test_add ("/peer-cuda/source-breaks-before", Pair, GINT_TO_POINTER (0), setup, test_breaks_before, teardown);
  g_test_add ("/peer-cuda/destination-breaks-before", Pair, GINT_TO_POINTER (1), setup, test_breaks_before, teardown);
  g_test_add ("/peer-cuda/source-breaks", Pair, NULL, setup, test_source_breaks, teardown);
  g_test_add ("/peer-cuda/destination-breaks", Pair, NULL, setup, test_destination_breaks, teardown);
  return g_test_run ();
}
