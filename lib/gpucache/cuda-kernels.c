/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Loading and finding kernels. Each fat binary is a module of the context; functions are looked up by name once and
 * then by the name's address, in a list that only grows, so that readers need no lock. To ask one module after the
 * other for a name would do, but tools that report calls which fail, as compute-sanitizer does, would report each of
 * those.
 */
#include "cuda-kernels.h"

#include "device-priv.h"

#include <stdatomic.h>

typedef struct Function Function;
struct Function {
  _Alignas(GPU_CACHE_LINES) const char *name;
  CUfunction function;
  Function *next;
};

struct GpuCudaKernels {
  const GpuCudaDriver *cu;
  const char *label;
  _Atomic (Function *) functions;
  GHashTable *by_name; /* of CUfunction, all there are; NULL if the driver cannot name them */
  unsigned n_modules;
  CUmodule modules[];
};

/* A driver that loads lazily would load each function at its first launch, which can wait for work that waits for that
 * launch. */
static bool
load_function (GpuCudaKernels *self, CUfunction function, GError **error)
{
  const char *name = NULL;
  CUresult result = self->cu->FuncLoad (function);

  if (result != CUDA_SUCCESS) {
    gpu_cuda_set_error (error, self->cu, result, "cuFuncLoad", self->label);
    return false;
  }
  if (!self->by_name)
    return true;
  result = self->cu->FuncGetName (&name, function);
  if (result != CUDA_SUCCESS) {
    gpu_cuda_set_error (error, self->cu, result, "cuFuncGetName", self->label);
    return false;
  }
  g_hash_table_insert (self->by_name, g_strdup (name), function);
  return true;
}

/* Drivers before CUDA 12.4 cannot; functions are loaded at the first look-up then. */
static bool
can_list (const GpuCudaDriver *cu)
{
  return cu->ModuleGetFunctionCount && cu->ModuleEnumerateFunctions && cu->FuncLoad;
}

static bool
load_functions (GpuCudaKernels *self, CUmodule module, GError **error)
{
  const GpuCudaDriver *cu = self->cu;
  g_autofree CUfunction *functions = NULL;
  unsigned n = 0;
  CUresult result;

  if (!can_list (cu))
    return true;

  result = cu->ModuleGetFunctionCount (&n, module);
  if (result != CUDA_SUCCESS) {
    gpu_cuda_set_error (error, cu, result, "cuModuleGetFunctionCount", self->label);
    return false;
  }
  functions = g_new0 (CUfunction, n);
  result = cu->ModuleEnumerateFunctions (functions, n, module);
  if (result != CUDA_SUCCESS) {
    gpu_cuda_set_error (error, cu, result, "cuModuleEnumerateFunctions", self->label);
    return false;
  }
  for (unsigned i = 0; i < n; i++) {
    if (!load_function (self, functions[i], error))
      return false;
  }
  return true;
}

static bool
load_module (GpuCudaKernels *self, const GpuCudaBinary *binary, GError **error)
{
  CUmodule module;
  CUresult result = self->cu->ModuleLoadData (&module, binary->data);

  if (result != CUDA_SUCCESS) {
    g_autofree char *call = g_strdup_printf ("cuModuleLoadData of the kernels \"%s\"", binary->name);
    gpu_cuda_set_error (error, self->cu, result, call, self->label);
    return false;
  }
  self->modules[self->n_modules++] = module;
  return load_functions (self, module, error);
}

GpuCudaKernels *
gpu_cuda_kernels_load (const GpuCudaDriver *cu, const char *label, GError **error)
{
  unsigned n = 0;
  GpuCudaKernels *self;

  while (gpu_cuda_binaries[n].name)
    n++;
  self = g_malloc0 (sizeof *self + n * sizeof self->modules[0]);
  self->cu = cu;
  self->label = label;
  if (can_list (cu) && cu->FuncGetName)
    self->by_name = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (unsigned i = 0; i < n; i++) {
    if (!load_module (self, &gpu_cuda_binaries[i], error)) {
      gpu_cuda_kernels_free (self);
      return NULL;
    }
  }
  return self;
}

void
gpu_cuda_kernels_free (GpuCudaKernels *self)
{
  Function *function = atomic_load_explicit (&self->functions, memory_order_acquire);

  while (function) {
    Function *next = function->next;
    g_aligned_free (function);
    function = next;
  }
  for (unsigned i = 0; i < self->n_modules; i++)
    self->cu->ModuleUnload (self->modules[i]);
  g_clear_pointer (&self->by_name, g_hash_table_unref);
  g_free (self);
}

static CUfunction
look_up (GpuCudaKernels *self, const char *name, GError **error)
{
  CUfunction named = self->by_name ? g_hash_table_lookup (self->by_name, name) : NULL;

  if (named)
    return named;
  for (unsigned i = 0; i < self->n_modules && !self->by_name; i++) {
    CUfunction function;
    CUresult result = self->cu->ModuleGetFunction (&function, self->modules[i], name);

    if (result == CUDA_SUCCESS)
      return function;
    if (result != CUDA_ERROR_NOT_FOUND) {
      gpu_cuda_set_error (error, self->cu, result, "cuModuleGetFunction", self->label);
      return NULL;
    }
  }
  g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
               "The kernel \"%s\" is not built into the library for CUDA, so %s cannot run it: use the device \"cpu\"",
               name, self->label);
  return NULL;
}

CUfunction
gpu_cuda_kernels_find (GpuCudaKernels *self, const char *name, GError **error)
{
  Function *head = atomic_load_explicit (&self->functions, memory_order_acquire);
  Function *added;
  CUfunction function;

  for (Function *f = head; f; f = f->next) {
    if (f->name == name)
      return f->function;
  }

  function = look_up (self, name, error);
  if (!function)
    return NULL;

  /* Two threads may add the same name: either entry will do. */
  added = g_aligned_alloc (1, sizeof *added, _Alignof(Function));
  added->name = name;
  added->function = function;
  do
    added->next = head;
  while (!atomic_compare_exchange_weak_explicit (&self->functions, &head, added, memory_order_release,
                                                 memory_order_acquire));
  return function;
}
