/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The CUDA device against a fake driver (fake-cuda.c), where a GPU is not needed: which driver calls each function of
 * the seam makes, what becomes of their failures, and that all that was taken is given back.
 *
 * The fake is opened first, by its path in FAKE_CUDA_LIBRARY.
 */
#include "fake-cuda.h"

#include "../emulator/open.h"

#include <gpucache/device-priv.h>
#include <gpucache/gpucache.h>
#include <gpucache/transfer-priv.h>

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const FakeCuda *fake;

static GpuDevice *
open_device (unsigned ordinal)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device = gpu_device_cuda_new (ordinal, &error);

  g_assert_no_error (error);
  g_assert_nonnull (device);
  free (fake->take_log ());
  return device;
}

/* Closes @device, and asserts that nothing of it is left. */
static void
close_device (GpuDevice *device)
{
  gpu_device_unref (device);
  g_assert_cmpuint (fake->n_live (), ==, 0);
  g_assert_cmpuint (fake->depth (), ==, 0);
  free (fake->take_log ());
}

/* Asserts that just these driver calls were made since the last look, and that they left the context stack as it was.
 */
static void
expect (const char *calls)
{
  char *text = fake->take_log ();

  g_assert_cmpstr (text, ==, calls);
  g_assert_cmpuint (fake->depth (), ==, 0);
  free (text);
}

static void
expect_line (const char *text, const char *line)
{
  g_autofree char *whole = g_strdup_printf ("%s\n", line);

  if (!strstr (text, whole))
    g_error ("no call \"%s\" among these:\n%s", line, text);
}

static void
test_open (void)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device = gpu_device_cuda_new (1, &error);
  char *calls = fake->take_log ();
  uint64_t free_bytes, total_bytes;

  g_assert_no_error (error);
  g_assert_cmpstr (gpu_device_name (device), ==, "cuda:1");
  g_assert_cmpstr (gpu_device_description (device), ==, "Fake 1");
  g_assert_false (gpu_device_is_host (device));
  g_assert_nonnull (gpu_device_cuda_context (device));
  expect_line (calls, "cuDevicePrimaryCtxRetain 1");
  expect_line (calls, "cuMemPoolCreate 1 0 1 1");
  expect_line (calls, "cuMemPoolSetAttribute threshold 18446744073709551615");
  expect_line (calls, "cuMemPoolSetAttribute 3 0"); /* REUSE_ALLOW_INTERNAL_DEPENDENCIES */
  expect_line (calls, "cuModuleLoadData");
  expect_line (calls, "cuFuncLoad");
  free (calls);

  g_assert_true (device->funcs->memory_info (device, &free_bytes, &total_bytes, &error));
  g_assert_cmpuint (free_bytes, ==, 1000);
  g_assert_cmpuint (total_bytes, ==, 4000);
  close_device (device);
}

static void
test_open_given_context (void)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *primary = open_device (1);
  GpuDevice *device = gpu_device_cuda_new_for_context (gpu_device_cuda_context (primary), &error);
  char *calls = fake->take_log ();

  g_assert_no_error (error);
  g_assert_true (g_str_has_prefix (gpu_device_name (device), "cuda:1/"));
  g_assert_true (gpu_device_cuda_context (device) == gpu_device_cuda_context (primary));
  g_assert_null (strstr (calls, "cuDevicePrimaryCtx"));
  free (calls);

  gpu_device_unref (device);
  calls = fake->take_log ();
  g_assert_null (strstr (calls, "cuDevicePrimaryCtx"));
  free (calls);
  close_device (primary);

  g_assert_null (gpu_device_cuda_new_for_context (NULL, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_null (gpu_device_cuda_new_for_context (&error, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
}

/* A device that could not be opened has no limits to set. */
static void
test_limits_of_none (void)
{
  g_autoptr (GError) error = NULL;
  int no_context;

  g_setenv ("GPUCACHE_LIMIT", "4MiB", true);
  g_setenv ("GPUCACHE_HOST_LIMIT", "5MiB", true);
  g_assert_null (gpu_device_open_cuda_context (&no_context, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_unsetenv ("GPUCACHE_LIMIT");
  g_unsetenv ("GPUCACHE_HOST_LIMIT");
}

static void
test_open_unknown (void)
{
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (gpu_device_cuda_count (&error), ==, 2);
  g_assert_no_error (error);
  g_assert_null (gpu_device_cuda_new (2, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE);
  g_assert_nonnull (strstr (error->message, "cuda:2"));
}

/* Each call of opening fails in turn: always an error that names the call, never something left behind. */
static void
test_open_fails (void)
{
  static const char *const entries[] = {
      "cuDeviceGet",     "cuDeviceGetName",       "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
      "cuMemPoolCreate", "cuMemPoolSetAttribute", "cuModuleLoadData",     "cuModuleGetFunctionCount",
      "cuFuncLoad",      "cuStreamCreate",
  };

  for (size_t i = 0; i < G_N_ELEMENTS (entries); i++) {
    g_autoptr (GError) error = NULL;

    fake->fail (entries[i], 0, CUDA_ERROR_ILLEGAL_ADDRESS);
    g_assert_null (gpu_device_cuda_new (0, &error));
    g_assert_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE);
    g_assert_nonnull (strstr (error->message, entries[i]));
    g_assert_nonnull (strstr (error->message, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    g_assert_nonnull (strstr (error->message, "cuda:0"));
    g_assert_cmpuint (fake->n_live (), ==, 0);
    g_assert_cmpuint (fake->depth (), ==, 0);
  }
}

static void
test_open_without_code (void)
{
  g_autoptr (GError) error = NULL;

  fake->fail ("cuModuleLoadData", 0, CUDA_ERROR_NO_BINARY_FOR_GPU);
  g_assert_null (gpu_device_cuda_new (0, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "-Dcuda-archs=11")); /* the fake's answer to all attributes is 1 */
}

static void
test_memory (void)
{
  static const struct {
    GpuMemoryKind kind;
    const char *alloc, *free;
  } kinds[] = {
      {GPU_MEMORY_STREAM_ORDERED, "cuMemAllocFromPoolAsync", "cuMemFreeAsync\n"},
      {GPU_MEMORY_DEVICE, "cuMemAlloc", "cuMemFree\n"},
      {GPU_MEMORY_MANAGED, "cuMemAllocManaged", "cuMemFree\n"},
      {GPU_MEMORY_HOST, "cuMemHostAlloc", "cuMemFreeHost\n"},
  };
  static const char *const flags[] = {"", "", " 1", " 1"}; /* ATTACH_GLOBAL, PORTABLE */
  GpuDevice *device = open_device (0);
  g_autoptr (GError) error = NULL;

  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++) {
    g_autofree char *exact = g_strdup_printf ("%s 5000%s\n", kinds[i].alloc, flags[i]);
    g_autofree char *padded = g_strdup_printf ("%s %d%s\n", kinds[i].alloc, 5000 + 4096 - 256, flags[i]);
    void *a = NULL, *b = NULL;

    g_assert_true (device->funcs->alloc (device, kinds[i].kind, 5000, 256, NULL, &a, &error));
    expect (exact);
    g_assert_true (device->funcs->alloc (device, kinds[i].kind, 5000, 4096, NULL, &b, &error));
    expect (padded);
    g_assert_cmpuint ((uintptr_t)a % 256, ==, 0);
    g_assert_cmpuint ((uintptr_t)b % 4096, ==, 0);
    memset (a, 1, 5000);
    memset (b, 2, 5000);

    g_assert_true (device->funcs->free (device, kinds[i].kind, a, 5000, NULL, &error));
    expect (kinds[i].free);
    g_assert_true (device->funcs->free (device, kinds[i].kind, b, 5000, NULL, &error));
    expect (kinds[i].free);
  }
  close_device (device);
}

/* What a pool holds beyond what is in use, and beyond the piece of 32 MiB of which some is in use as a rule, is told;
 * and nothing is made of it where it cannot say. */
static void
test_trim (void)
{
#define ASKED "cuMemPoolGetAttribute 5\ncuMemPoolGetAttribute 7\n"
  const uint64_t piece = UINT64_C (32) << 20;
  GpuDevice *device = open_device (0);

  fake->set_pool (3 * piece, piece - 1000);
  g_assert_cmpuint (device->funcs->trim (device, 0), ==, piece + 1000);
  expect ("cuMemPoolTrimTo 0\n" ASKED);
  fake->set_pool (3 * piece, 2 * piece);
  g_assert_cmpuint (device->funcs->trim (device, 12345), ==, 0);
  expect ("cuMemPoolTrimTo 12345\n" ASKED);
  fake->set_pool (0, 3 * piece);
  g_assert_true (gpu_device_wait_for_frees (device));
  expect ("cuStreamSynchronize\n"); /* of the stream on which idle memory is freed */
  g_assert_cmpuint (gpu_device_trim (device, 77), ==, 0);
  expect ("cuMemPoolTrimTo 77\n" ASKED);
  fake->set_pool (3 * piece, 0);
  fake->fail ("cuMemPoolGetAttribute", 0, CUDA_ERROR_INVALID_VALUE);
  g_assert_cmpuint (device->funcs->trim (device, 0), ==, 0);
  fake->fail ("cuMemPoolGetAttribute", 1, CUDA_ERROR_INVALID_VALUE);
  g_assert_cmpuint (device->funcs->trim (device, 0), ==, 0);
  fake->set_pool (0, 0);
  close_device (device);
#undef ASKED
}

static void
test_memory_refused (void)
{
  GpuDevice *device = open_device (1);
  g_autoptr (GError) error = NULL;
  void *data = NULL;

  for (GpuMemoryKind kind = 0; kind < GPU_N_MEMORY_KINDS; kind++) {
    bool has_none = kind == GPU_MEMORY_MANAGED; /* the fake's second GPU cannot share it with the host */
    int code = has_none ? GPU_ERROR_UNSUPPORTED : GPU_ERROR_OUT_OF_MEMORY;
    static const char *const entries[] = {"cuMemAllocFromPoolAsync", "cuMemAlloc", "cuMemAllocManaged",
                                          "cuMemHostAlloc"};

    if (!has_none)
      fake->fail (entries[kind], 0, CUDA_ERROR_OUT_OF_MEMORY);
    g_assert_false (device->funcs->alloc (device, kind, 512, 256, NULL, &data, &error));
    g_assert_error (error, GPU_ERROR, code);
    g_assert_nonnull (strstr (error->message, "cuda:1 (Fake 1)"));
    g_clear_error (&error);
    g_assert_cmpuint (fake->depth (), ==, 0);
  }
  g_assert_false (device->funcs->alloc (device, GPU_MEMORY_DEVICE, SIZE_MAX - 256, 1 << 20, NULL, &data, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  close_device (device);
}

/* Whatever the driver says against memory of the host's, it says nothing of the device; and what is pinned is let go of
 * even if that is lost. */
static void
test_pins (void)
{
  static const CUresult refusals[] = {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_INVALID_VALUE,
                                      CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_OUT_OF_MEMORY};
  GpuDevice *device = open_device (0);
  void *pages = g_aligned_alloc (4, 4096, 4096);
  g_autoptr (GError) error = NULL;
  GpuPin *pin;

  for (size_t i = 0; i < G_N_ELEMENTS (refusals); i++) {
    fake->fail ("cuMemHostRegister", 0, refusals[i]);
    g_assert_null (gpu_pin_new (device, pages, 4 * 4096, &error));
    g_assert_error (error, GPU_ERROR, (i == 3 ? GPU_ERROR_OUT_OF_MEMORY : GPU_ERROR_UNSUPPORTED));
    g_assert_nonnull (strstr (error->message, "cuMemHostRegister failed on cuda:0 (Fake 0)"));
    g_clear_error (&error);
    g_assert_false (gpu_device_is_lost (device));
  }
  free (fake->take_log ());
  pin = gpu_pin_new (device, (char *)pages + 1, 4 * 4096 - 1, &error);
  g_assert_no_error (error);
  expect ("cuMemHostRegister 12288 1\n"); /* PORTABLE */
  gpu_pin_unref (pin);
  expect ("cuMemHostUnregister\n");

  pin = gpu_pin_new (device, pages, 4 * 4096, &error);
  g_assert_no_error (error);
  gpu_device_fail (device, GPU_CALL_COPY, 0, 1);
  g_assert_false (gpu_device_copy (device, &(GpuCopy){.dst = pages, .src = pages, .row_bytes = 1, .rows = 1},
                                   GPU_COPY_DEVICE, NULL, NULL));
  free (fake->take_log ());
  gpu_pin_unref (pin);
  expect ("cuMemHostUnregister\n");
  close_device (device);
  g_aligned_free (pages);
}

static void
test_streams_and_events (void)
{
  GpuDevice *device = open_device (0);
  const GpuDeviceFuncs *funcs = device->funcs;
  g_autoptr (GError) error = NULL;
  void *stream, *event;

  g_assert_true (funcs->stream_create (device, &stream, &error));
  g_assert_true (funcs->event_create (device, &event, &error));
  expect ("cuStreamCreate 1\ncuEventCreate 2\n"); /* NON_BLOCKING; DISABLE_TIMING */
  g_assert_true (funcs->event_record (device, event, stream, &error));
  g_assert_true (funcs->stream_wait (device, stream, event, &error));
  expect ("cuEventRecord\ncuStreamWaitEvent 0\n");

  g_assert_cmpint (funcs->event_query (device, event, &error), ==, GPU_STATUS_COMPLETE);
  fake->fail ("cuEventQuery", 0, CUDA_ERROR_NOT_READY);
  g_assert_cmpint (funcs->event_query (device, event, &error), ==, GPU_STATUS_PENDING);
  g_assert_no_error (error);
  fake->fail ("cuEventQuery", 0, CUDA_ERROR_ILLEGAL_ADDRESS);
  g_assert_cmpint (funcs->event_query (device, event, &error), ==, GPU_STATUS_FAILED);
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_clear_error (&error);
  expect ("cuEventQuery\ncuEventQuery\ncuEventQuery\n");

  g_assert_true (funcs->event_synchronize (device, event, &error));
  g_assert_true (funcs->stream_synchronize (device, stream, &error));
  g_assert_true (funcs->synchronize (device, &error));
  funcs->event_destroy (device, event);
  funcs->stream_destroy (device, stream);
  expect ("cuEventQuery\ncuStreamSynchronize\ncuCtxSynchronize\ncuEventDestroy\ncuStreamDestroy\n");

  g_assert_true (gpu_device_cuda_is_per_thread ((void *)CU_STREAM_PER_THREAD));
  g_assert_false (gpu_device_cuda_is_per_thread (NULL));
  close_device (device);
}

/* Who waits on the host asks until the event is complete, or is never to be. */
static void
test_host_waits (void)
{
  GpuDevice *device = open_device (0);
  const GpuDeviceFuncs *funcs = device->funcs;
  g_autoptr (GError) error = NULL;
  void *event;

  g_assert_true (funcs->event_create (device, &event, &error));
  free (fake->take_log ());
  fake->fail ("cuEventQuery", 0, CUDA_ERROR_NOT_READY);
  g_assert_true (funcs->event_synchronize (device, event, &error));
  expect ("cuEventQuery\ncuEventQuery\n");

  fake->fail ("cuEventQuery", 0, CUDA_ERROR_ILLEGAL_ADDRESS);
  g_assert_false (funcs->event_synchronize (device, event, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_assert_nonnull (strstr (error->message, "cuEventQuery"));
  expect ("cuEventQuery\n");
  funcs->event_destroy (device, event);
  close_device (device);
}

static void
check_copy (GpuDevice *device, size_t dst_stride, size_t src_stride, size_t rows, GpuCopyKind kind, const char *calls)
{
  uint8_t src[64], dst[64], expected[64];
  GpuCopy copy = {dst, dst_stride, src, src_stride, 6, rows};
  g_autoptr (GError) error = NULL;

  for (size_t i = 0; i < sizeof src; i++)
    src[i] = (uint8_t)i;
  memset (dst, 0xee, sizeof dst);
  memset (expected, 0xee, sizeof expected);
  for (size_t y = 0; y < rows; y++)
    memcpy (expected + y * dst_stride, src + y * src_stride, 6);
  g_assert_true (device->funcs->copy (device, &copy, kind, NULL, &error));
  g_assert_cmpmem (dst, sizeof dst, expected, sizeof expected);
  expect (calls);
}

static void
test_copy (void)
{
  GpuDevice *device = open_device (0);

  check_copy (device, 6, 6, 4, GPU_COPY_DEVICE, "cuMemcpyAsync 24\n");
  check_copy (device, 0, 1, 1, GPU_COPY_DEVICE, "cuMemcpyAsync 6\n");
  check_copy (device, 8, 8, 4, GPU_COPY_DEVICE, "cuMemcpy2DAsync 6 x 4, 4 to 4\n");
  check_copy (device, 6, 8, 4, GPU_COPY_DEVICE, "cuMemcpy2DAsync 6 x 4, 4 to 4\n");
  check_copy (device, 8, 6, 4, GPU_COPY_FROM_HOST, "cuMemcpy2DAsync 6 x 4, 1 to 4\ncuStreamSynchronize\n");
  check_copy (device, 8, 6, 4, GPU_COPY_TO_HOST, "cuMemcpy2DAsync 6 x 4, 4 to 1\ncuStreamSynchronize\n");
  check_copy (device, 6, 6, 4, GPU_COPY_TO_HOST, "cuMemcpyAsync 24\ncuStreamSynchronize\n");
  check_copy (device, 6, 6, 0, GPU_COPY_DEVICE, "");
  close_device (device);
}

static void
test_prefetch (void)
{
  GpuDevice *device = open_device (1);
  uint8_t bytes[16];
  g_autoptr (GError) error = NULL;

  g_assert_true (device->funcs->prefetch (device, bytes, sizeof bytes, true, NULL, &error));
  g_assert_true (device->funcs->prefetch (device, bytes, sizeof bytes, false, NULL, &error));
  g_assert_no_error (error);
  expect ("cuMemPrefetchAsync 16 to -1\ncuMemPrefetchAsync 16 to 1\n");
  close_device (device);
}

/* Wider than what the driver's two-dimensional calls take; the memory in between is never touched. */
static void
test_wide_rows (void)
{
  GpuDevice *device = open_device (0);
  size_t stride = UINT64_C (1) << 31, size = stride + 4096;
  uint8_t *bytes = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  GpuCopy copy = {bytes + 64, stride, bytes, stride, 6, 2};
  g_autoptr (GError) error = NULL;

  g_assert_true (bytes != MAP_FAILED);
  memcpy (bytes + stride, "second", 6);
  g_assert_true (device->funcs->copy (device, &copy, GPU_COPY_FROM_HOST, NULL, &error));
  expect ("cuMemcpyAsync 6\ncuMemcpyAsync 6\ncuStreamSynchronize\n");
  g_assert_cmpmem (bytes + stride + 64, 6, "second", 6);
  g_assert_true (device->funcs->fill (device, &copy, 1, NULL, &error));
  expect ("cuMemsetD8Async 6\ncuMemsetD8Async 6\n");
  g_assert_cmpmem (bytes + stride + 64, 6, "\1\1\1\1\1\1", 6);
  munmap (bytes, size);
  close_device (device);
}

static void
test_copy_fails (void)
{
  GpuDevice *device = open_device (0);
  uint8_t bytes[4] = {0};
  GpuCopy copy = {bytes + 2, 2, bytes, 2, 2, 1};
  g_autoptr (GError) error = NULL;

  fake->fail ("cuMemcpyAsync", 0, CUDA_ERROR_ILLEGAL_ADDRESS);
  g_assert_false (device->funcs->copy (device, &copy, GPU_COPY_FROM_HOST, NULL, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  expect ("cuMemcpyAsync 2\n");
  g_clear_error (&error);

  fake->fail ("cuStreamSynchronize", 0, CUDA_ERROR_ILLEGAL_ADDRESS);
  g_assert_false (device->funcs->copy (device, &copy, GPU_COPY_FROM_HOST, NULL, &error));
  g_assert_nonnull (strstr (error->message, "cuStreamSynchronize"));
  expect ("cuMemcpyAsync 2\ncuStreamSynchronize\n");
  close_device (device);
}

static void
test_fill (void)
{
  GpuDevice *device = open_device (0);
  uint8_t bytes[16] = {0};
  GpuCopy rows = {.dst = bytes, .dst_stride = 8, .row_bytes = 3, .rows = 2};
  GpuCopy whole = {.dst = bytes, .dst_stride = 8, .row_bytes = 8, .rows = 2};
  g_autoptr (GError) error = NULL;

  g_assert_true (device->funcs->fill (device, &rows, 7, NULL, &error));
  expect ("cuMemsetD2D8Async 3 x 2\n");
  g_assert_cmpmem (bytes, 16, "\7\7\7\0\0\0\0\0\7\7\7\0\0\0\0\0", 16);
  g_assert_true (device->funcs->fill (device, &whole, 9, NULL, &error));
  expect ("cuMemsetD8Async 16\n");
  g_assert_cmpmem (bytes, 16, "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t", 16);
  close_device (device);
}

static void
test_launch (void)
{
  static const GpuKernel known = {.name = FAKE_CUDA_KERNEL, .args_size = 4, .block = {32, 8, 1}};
  static const GpuKernel unknown = {.name = "no_such_kernel", .args_size = 4, .block = {1, 1, 1}};
  GpuDevice *device = open_device (0);
  const GpuDeviceFuncs *funcs = device->funcs;
  unsigned args = 42;
  g_autoptr (GError) error = NULL;

  g_assert_true (funcs->launch (device, &known, &args, (GpuExtent){64, 9, 3}, NULL, &error));
  expect ("cuModuleGetFunction fake_kernel\ncuLaunchKernel 2,2,3 32,8,1 0 args 42\n");
  g_assert_true (funcs->launch (device, &known, &args, (GpuExtent){1, 1, 1}, NULL, &error));
  expect ("cuLaunchKernel 1,1,1 32,8,1 0 args 42\n"); /* looked up once */
  g_assert_true (funcs->launch (device, &known, &args, (GpuExtent){64, 0, 1}, NULL, &error));
  expect ("");

  g_assert_false (funcs->launch (device, &known, &args, (GpuExtent){1, 8 * 65536, 1}, NULL, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  g_assert_false (funcs->launch (device, &unknown, &args, (GpuExtent){1, 1, 1}, NULL, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
  g_assert_nonnull (strstr (error->message, "no_such_kernel"));
  close_device (device);
}

static void
set_to_one (void *data)
{
  *(int *)data = 1;
}

static void
test_host_call (void)
{
  GpuDevice *device = open_device (0);
  g_autoptr (GError) error = NULL;
  int called = 0;

  g_assert_true (device->funcs->host_call (device, set_to_one, &called, NULL, &error));
  expect ("cuLaunchHostFunc\n");
  g_assert_cmpint (called, ==, 1);
  close_device (device);
}

/* A picture of 12 slices, which goes to plain memory in moves of 4, 2, 2, 2 and 2. Returns: the calls for that. */
static char *
stage_out (GpuStream *stream)
{
  GpuDevice *device = gpu_stream_device (stream);
  const GpuStagingPlan plan = {.slice_bytes = 256, .least = 2, .most = 4};
  g_autoptr (GError) error = NULL;
  GpuImageSpec spec;

  gpu_image_spec_init (&spec, GPU_FORMAT_GRAY8, 256, 12, 0, &error);
  g_autofree uint8_t *host = g_malloc (spec.size), *back = g_malloc0 (spec.size);
  for (size_t i = 0; i < spec.size; i++)
    host[i] = (uint8_t)(i * 7);
  GpuImage *image = gpu_image_acquire (device, &spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  gpu_image_copy_from_host (stream, image, host, &spec, &error);
  g_assert_no_error (error);
  free (fake->take_log ());
  g_assert_true (gpu_image_stage_out (stream, image, back, &spec, plan, &error));
  g_assert_no_error (error);
  g_assert_cmpmem (back, spec.size, host, spec.size);
  char *calls = fake->take_log ();
  gpu_image_unref (image);
  return calls;
}

/* Each move has an event, which is asked about at once, and nothing else is called. */
static void
test_staged_out (void)
{
  GpuDevice *device = open_device (0);
  GpuStream *stream = gpu_stream_new (device, true, NULL);

  free (stage_out (stream));
  char *calls = stage_out (stream);
  g_assert_cmpstr (calls, ==,
                   "cuMemcpyAsync 1024\ncuEventRecord\ncuEventQuery\n"
                   "cuMemcpyAsync 512\ncuEventRecord\ncuEventQuery\n"
                   "cuMemcpyAsync 512\ncuEventRecord\ncuEventQuery\n"
                   "cuMemcpyAsync 512\ncuEventRecord\ncuEventQuery\n"
                   "cuMemcpyAsync 512\ncuEventRecord\ncuEventQuery\n");
  free (calls);
  gpu_stream_unref (stream);
  close_device (device);
}

/* The word that a stream waits for is 0 until the gate opens, also when another gate had it before; only the first gate
 * calls the driver. */
static void
test_gates (void)
{
  GpuDevice *device = open_device (0);
  const GpuDeviceFuncs *funcs = device->funcs;
  g_autoptr (GError) error = NULL;
  void *gates[64], *more;

  g_assert_true (funcs->gate_create (device, &gates[0], &error));
  expect ("cuMemHostAlloc 256 1\n");
  for (unsigned i = 1; i < G_N_ELEMENTS (gates); i++) {
    g_assert_true (funcs->gate_create (device, &gates[i], &error));
    g_assert_true (gates[i] != gates[i - 1]);
  }
  g_assert_false (funcs->gate_create (device, &more, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED);
  g_clear_error (&error);
  expect ("");

  funcs->gate_open (device, gates[5]);
  g_assert_true (funcs->gate_hold (device, gates[5], NULL, &error));
  g_assert_true (funcs->gate_hold (device, gates[6], NULL, &error));
  expect ("cuStreamWaitValue32 1 for 1 0\ncuStreamWaitValue32 0 for 1 0\n");
  funcs->gate_destroy (device, gates[5]);
  g_assert_true (funcs->gate_create (device, &more, &error));
  g_assert_true (more == gates[5]);
  g_assert_true (funcs->gate_hold (device, more, NULL, &error));
  expect ("cuStreamWaitValue32 0 for 1 0\n");
  close_device (device);
}

/* Lost by a call that failed, on a context that lives on: what could not be freed while it was lost is, in the end. */
static void
test_lost_gives_back (void)
{
  static const GpuMemoryKind kinds[] = {GPU_MEMORY_STREAM_ORDERED, GPU_MEMORY_HOST};
  GpuDevice *device = open_device (0);
  GpuImage *live[G_N_ELEMENTS (kinds)];
  g_autoptr (GError) error = NULL;
  GpuStream *stream = gpu_stream_new (device, true, &error);
  GpuImageSpec spec;

  gpu_image_spec_init (&spec, GPU_FORMAT_GRAY8, 64, 64, 0, &error);
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++) {
    GpuImage *idle = gpu_image_acquire (device, &spec, kinds[i], stream, GPU_ACQUIRE_DEFAULT, &error);
    live[i] = gpu_image_acquire (device, &spec, kinds[i], stream, GPU_ACQUIRE_DEFAULT, &error);
    g_assert_no_error (error);
    gpu_image_unref (idle);
  }
  fake->fail ("cuMemsetD2D8Async", 0, CUDA_ERROR_LAUNCH_FAILED);
  g_assert_false (gpu_image_fill (stream, live[0], 0, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  g_assert_true (g_str_has_prefix (error->message,
                                   "cuMemsetD2D8Async failed on cuda:0 (Fake 0) with "
                                   "CUDA_ERROR_LAUNCH_FAILED (719): so it says; device cuda:0 is lost"));
  for (size_t i = 0; i < G_N_ELEMENTS (kinds); i++)
    gpu_image_unref (live[i]);
  gpu_stream_unref (stream);
  close_device (device);
}

/* A process that ends has no driver any more when its last destructors run: errors, but no crash and no message. */
static void
test_after_shutdown (void)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device;
  void *stream, *event;

  if (!g_test_subprocess ()) {
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_passed ();
    g_test_trap_assert_stderr ("");
    return;
  }
  device = open_device (0);
  g_assert_true (device->funcs->stream_create (device, &stream, &error));
  g_assert_true (device->funcs->event_create (device, &event, &error));
  fake->shut_down ();
  g_assert_false (device->funcs->event_record (device, event, stream, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
  device->funcs->event_destroy (device, event);
  device->funcs->stream_destroy (device, stream);
  device->funcs->trim (device, 0);
  gpu_device_unref (device);
  g_assert_cmpuint (fake->depth (), ==, 0);
}

static void
test_after_fork (void)
{
  g_autoptr (GError) error = NULL;
  int status;
  pid_t child;

  gpu_device_cuda_count (&error);
  g_assert_no_error (error);
  child = fork ();
  if (child == 0) {
    gpu_device_cuda_count (&error);
    _exit (g_error_matches (error, GPU_ERROR, GPU_ERROR_FORKED) ? 0 : 1);
  }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  g_assert_cmpint (status, ==, 0);
}

/* Rules 22 and 23: one handle is one stream while it is wrapped, and another one afterwards; the per-thread default
 * stream, which is none, is refused; and what may have been submitted to a wrapped stream by others is marked by an
 * event at each access. */
static void
test_wrapped_streams (void)
{
  GpuDevice *device = open_device (0);
  g_autoptr (GError) error = NULL;
  void *native[2];

  for (unsigned i = 0; i < 2; i++)
    g_assert_true (gpu_device_stream_create (device, &native[i], &error));
  GpuStream *stream = gpu_stream_wrap_cuda (device, native[0], &error);
  g_assert_no_error (error);
  GpuStream *again = gpu_stream_wrap_cuda (device, native[0], &error);
  g_assert_true (again == stream);
  GpuStream *other = gpu_stream_wrap_cuda (device, native[1], &error);
  g_assert_true (other != stream);
  g_assert_cmpuint (gpu_stream_id (other), !=, gpu_stream_id (stream));
  GpuStream *null = gpu_stream_wrap_cuda (device, NULL, &error);
  g_assert_no_error (error);
  g_assert_null (gpu_stream_cuda_stream (null));
  g_assert_null (gpu_stream_wrap_cuda (device, (void *)CU_STREAM_PER_THREAD, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);

  GpuImageSpec spec;
  g_assert_true (gpu_image_spec_init (&spec, GPU_FORMAT_RGBA, 64, 64, 0, &error));
  GpuImage *image = gpu_image_acquire (device, &spec, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
  g_assert_no_error (error);
  for (unsigned i = 0; i < 2; i++) {
    uint64_t records = gpu_device_calls (device, GPU_CALL_EVENT_RECORD);
    g_assert_true (gpu_image_end_access (image, stream, GPU_ACCESS_WRITE, &error));
    g_assert_cmpuint (gpu_device_calls (device, GPU_CALL_EVENT_RECORD) - records, ==, 1);
  }
  gpu_image_unref (image);

  uint64_t id = gpu_stream_id (stream);
  gpu_stream_unref (again);
  gpu_stream_unref (stream);
  stream = gpu_stream_wrap_cuda (device, native[0], &error);
  g_assert_no_error (error);
  g_assert_cmpuint (gpu_stream_id (stream), !=, id);
  gpu_stream_unref (stream);
  gpu_stream_unref (other);
  gpu_stream_unref (null);
  for (unsigned i = 0; i < 2; i++)
    gpu_device_stream_destroy (device, native[i]);
  gpu_device_unref (device);
  g_assert_cmpuint (fake->n_live (), ==, 0);
}

typedef struct {
  const char *mode;
  GpuError code;       /* of opening a device; -1 if that works */
  const char *message; /* a part of the error's */
  bool counts;         /* whether counting devices works */
} Driver;

static const Driver drivers[] = {
    {"12.0", (GpuError)-1, NULL, true},
    {"empty", GPU_ERROR_NO_DEVICE, "finds 0", true},
    {"broken", GPU_ERROR_NO_DEVICE, "nvidia-smi", false},
    {"without-pools", GPU_ERROR_NO_DEVICE, "cuMemPoolCreate", false},
    {"no-pools", GPU_ERROR_UNSUPPORTED, "memory pools", true},
};

static void
test_driver (const void *data)
{
  const Driver *driver = data;
  g_autoptr (GError) error = NULL;
  GpuDevice *device;

  if (!g_test_subprocess ()) {
    g_setenv ("FAKE_CUDA", driver->mode, TRUE);
    g_test_trap_subprocess (NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
    g_unsetenv ("FAKE_CUDA");
    g_test_trap_assert_passed ();
    return;
  }
  gpu_device_cuda_count (&error);
  g_assert_true (driver->counts == (error == NULL));
  g_clear_error (&error);

  device = gpu_device_cuda_new (0, &error);
  if (driver->message) {
    g_assert_null (device);
    g_assert_error (error, GPU_ERROR, (int)driver->code);
    g_assert_nonnull (strstr (error->message, driver->message));
    g_assert_cmpuint (fake->n_live (), ==, 0);
  } else {
    g_assert_no_error (error);
    close_device (device);
  }
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

  g_test_add_func ("/device-cuda/open", test_open);
  g_test_add_func ("/device-cuda/open/given-context", test_open_given_context);
  g_test_add_func ("/device-cuda/open/unknown", test_open_unknown);
  g_test_add_func ("/device-cuda/open/fails", test_open_fails);
  g_test_add_func ("/device-cuda/open/without-code", test_open_without_code);
  g_test_add_func ("/device-cuda/memory", test_memory);
  g_test_add_func ("/device-cuda/memory/trim", test_trim);
  g_test_add_func ("/device-cuda/memory/refused", test_memory_refused);
  g_test_add_func ("/device-cuda/pins", test_pins);
  g_test_add_func ("/device-cuda/streams-and-events", test_streams_and_events);
  g_test_add_func ("/device-cuda/wrapped-streams", test_wrapped_streams);
  g_test_add_func ("/device-cuda/host-waits", test_host_waits);
  g_test_add_func ("/device-cuda/copy", test_copy);
  g_test_add_func ("/device-cuda/prefetch", test_prefetch);
  g_test_add_func ("/device-cuda/copy/fails", test_copy_fails);
  g_test_add_func ("/device-cuda/fill", test_fill);
  g_test_add_func ("/device-cuda/wide-rows", test_wide_rows);
  g_test_add_func ("/device-cuda/launch", test_launch);
  g_test_add_func ("/device-cuda/host-call", test_host_call);
  g_test_add_func ("/device-cuda/open/limits-of-none", test_limits_of_none);
  g_test_add_func ("/device-cuda/staged-out", test_staged_out);
  g_test_add_func ("/device-cuda/gates", test_gates);
  g_test_add_func ("/device-cuda/lost-gives-back", test_lost_gives_back);
  g_test_add_func ("/device-cuda/after-shutdown", test_after_shutdown);
  g_test_add_func ("/device-cuda/after-fork", test_after_fork);
  for (size_t i = 0; i < G_N_ELEMENTS (drivers); i++) {
    g_autofree char *name = g_strdup_printf ("/device-cuda/driver/%s", drivers[i].mode);
    g_test_add_data_func (name, &drivers[i], test_driver);
  }
  return g_test_run ();
}
