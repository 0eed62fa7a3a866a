/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * broken NAME: launches the kernel broken_NAME of broken.cu on the first GPU. tests/checkers runs it under each tool of
 * compute-sanitizer before it believes what the tool says of our own kernels. Exits with 77 where there is no GPU.
 */
#include "broken.h"

#include <gpucache/cuda-kernels.h>

#include <stdio.h>

extern const GpuCudaBinary broken_cuda_binaries[];

static void
must (const GpuCudaDriver *cu, CUresult result, const char *call)
{
  g_autoptr (GError) error = NULL;

  if (result == CUDA_SUCCESS)
    return;
  gpu_cuda_set_error (&error, cu, result, call, "cuda:0");
  g_error ("%s", error->message);
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  const GpuCudaDriver *cu = gpu_cuda_driver_get (&error);
  g_autofree char *name = g_strdup_printf ("broken_%s", argc == 2 ? argv[1] : "nothing");
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  CUdeviceptr words;
  CUresult result;

  if (!cu || cu->n_devices == 0) {
    printf ("skipped: %s\n", error ? error->message : "the driver finds no GPU");
    return 77;
  }
  must (cu, cu->DeviceGet (&device, 0), "cuDeviceGet");
  must (cu, cu->DevicePrimaryCtxRetain (&context, device), "cuDevicePrimaryCtxRetain");
  must (cu, cu->CtxPushCurrent (context), "cuCtxPushCurrent");
  must (cu, cu->ModuleLoadData (&module, broken_cuda_binaries[0].data), "cuModuleLoadData");
  must (cu, cu->ModuleGetFunction (&kernel, module, name), "cuModuleGetFunction");
  must (cu, cu->MemAlloc (&words, BROKEN_THREADS * sizeof (unsigned)), "cuMemAlloc");
  must (cu, cu->LaunchKernel (kernel, 1, 1, 1, BROKEN_THREADS, 1, 1, 0, NULL, (void *[]){&words}, NULL),
        "cuLaunchKernel");
  /* A tool may have stopped the kernel. */
  result = cu->StreamSynchronize (NULL);
  printf ("%s: %s\n", name, result == CUDA_SUCCESS ? "done" : "stopped");
  return 0;
}
