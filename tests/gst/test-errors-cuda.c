/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the CUDA driver's failures become, on the fake driver (tests/lib/fake-cuda.c): in mid-stream, at each element,
 * one sentence on the bus that names the driver's call, its code and the GPU and says what to do. The GPU can be used
 * again by the next pipeline, unless the driver goes on to refuse.
 */
#include "errors.h"

#include "../lib/fake-cuda.h"

#include <dlfcn.h>
#include <string.h>

static const FakeCuda *fake;

/* A code that the next one of a few calls returns. */
typedef struct {
  const char *entries[2];
  CUresult code;
} Code;

static const Code launch_fails = {{"cuLaunchKernel"}, CUDA_ERROR_LAUNCH_FAILED};
static const Code copy_fails = {{"cuMemcpyAsync", "cuMemcpy2DAsync"}, CUDA_ERROR_ILLEGAL_ADDRESS};

static void
fail_at (const Code *code, guint skip)
{
  for (guint i = 0; i < G_N_ELEMENTS (code->entries) && code->entries[i]; i++)
    (fake->fail) (code->entries[i], skip, code->code); /* which is a macro of check's, too */
}

static void
begin_code (GpuDevice *device, gconstpointer data)
{
  fail_at (data, 0);
}

static void
end_code (GpuDevice *device, gconstpointer data)
{
  fail_at (data, G_MAXUINT);
}

static void
begin_refusal (GpuDevice *device, gconstpointer data)
{
  fake->refuse_memory (true);
}

static void
end_refusal (GpuDevice *device, gconstpointer data)
{
  fake->refuse_memory (false);
}

static void
break_gpu (GpuDevice *device, gconstpointer data)
{
  fake->break_gpu (0);
}

static void
leave_broken (GpuDevice *device, gconstpointer data)
{
}

static GpuDevice *
open_device (const char *name)
{
  g_autoptr (GError) error = NULL;
  GpuDevice *device = gpu_device_open (name, &error);

  g_assert_no_error (error);
  return device;
}

static gboolean
copies (const Scene *scene)
{
  return scene == &scenes[SCENE_UPLOAD] || scene == &scenes[SCENE_DOWNLOAD];
}

/* __i__: the scene */
GST_START_TEST (codes)
{
  const Scene *scene = &scenes[__i__];
  const Failure failure = {begin_code, end_code, copies (scene) ? &copy_fails : &launch_fails};
  GpuDevice *device = open_device (NULL);
  g_autoptr (GError) error = scene_fail (scene, device, &failure, FALSE);

  error_expect (error, scene->name, copies (scene) ? "cuMemcpy" : "cuLaunchKernel failed on",
                copies (scene) ? "CUDA_ERROR_ILLEGAL_ADDRESS (700)" : "CUDA_ERROR_LAUNCH_FAILED (719)",
                "cuda:0 (Fake 0)", "start new ones", NULL);
  g_bytes_unref (scene_play (scene));
  gpu_device_unref (device);
}
GST_END_TEST

GST_START_TEST (refusals)
{
  const Scene *scene = &scenes[__i__];
  const Failure failure = {begin_refusal, end_refusal, NULL};
  GpuDevice *device = open_device (NULL);
  g_autoptr (GError) error = scene_fail (scene, device, &failure, FALSE);
  /* Where there are threads, one may want pinned memory before another wants the device's. */
  gboolean pinned = scene == &scenes[SCENE_DOWNLOAD] || (scene->threads && error && strstr (error->message, "pinned"));

  error_expect (error, scene->name, pinned ? "cuMemHostAlloc failed on" : "cuMemAllocFromPoolAsync failed on",
                "CUDA_ERROR_OUT_OF_MEMORY (2)", "cuda:0 (Fake 0)", "use smaller frames",
                pinned ? "lock more memory" : "cache limit", NULL);
  fail_if (gpu_device_is_lost (device));
  g_bytes_unref (scene_play (scene));
  gpu_device_unref (device);
}
GST_END_TEST

/* All that the driver answers on that context is the same error, as after a kernel that wrote where it must not. */
GST_START_TEST (lost_contexts)
{
  const Scene *scene = &scenes[__i__];
  const Failure failure = {break_gpu, leave_broken, NULL};
  GpuDevice *device = open_device (NULL);
  g_autoptr (GError) error = scene_fail (scene, device, &failure, FALSE);

  error_expect (error, scene->name, "CUDA_ERROR_ILLEGAL_ADDRESS (700)", "cuda:0 (Fake 0)", "restart the program", NULL);
  g_clear_error (&error);
  fail_unless (gpu_device_open (NULL, &error) == NULL);
  error_expect (error, scene->name, "device cuda:0 was lost and does not open again: cu",
                "CUDA_ERROR_ILLEGAL_ADDRESS (700)", "restart the program to use it, or use another device", NULL);

  g_setenv ("GPUCACHE_DEVICE", "cuda:1", TRUE);
  g_bytes_unref (scene_play (scene));
  g_setenv ("GPUCACHE_DEVICE", "cuda:0", TRUE);
  fake->break_gpu (-1);
  g_bytes_unref (scene_play (scene));
  gpu_device_unref (device);
}
GST_END_TEST

static Suite *
errors_suite (void)
{
  Suite *suite = suite_create ("errors-cuda");
  TCase *tests = tcase_create ("errors-cuda");

  suite_add_tcase (suite, tests);
  tcase_add_loop_test (tests, codes, 0, N_SCENES);
  tcase_add_loop_test (tests, refusals, 0, N_SCENES);
  tcase_add_loop_test (tests, lost_contexts, 0, N_SCENES);
  return suite;
}

int
main (int argc, char **argv)
{
  /* It has the real driver's soname, so that the library, which opens the driver by that name, gets it. */
  void *library = dlopen (g_getenv ("FAKE_CUDA_LIBRARY"), RTLD_NOW | RTLD_LOCAL);

  g_assert_nonnull (library);
  fake = dlsym (library, "fake_cuda");
  g_assert_nonnull (fake);
  return test_run (argc, argv, errors_suite, "errors-cuda");
}
