/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See context.h. The driver's entries are found as the library finds its own, since it needs none for this.
 */
#include "context.h"

#include <glib.h>

#include <dlfcn.h>
#include <stdint.h>

#define MAX_GPUS 8
#define LEGACY_STREAMS 1 /* CU_GET_PROC_ADDRESS_LEGACY_STREAM */

/* The driver's types, for builds without its headers: contexts are pointers, devices and results integers. */
typedef int (*GetProcAddress) (const char *symbol, void **entry, int version, uint64_t flags, int *status);
typedef int (*CtxCreate) (void **context, unsigned flags, int device);
typedef int (*CtxPopCurrent) (void **context);

static void *
find (GetProcAddress get, const char *symbol, int version)
{
  void *entry = NULL;
  int status;

  if (get (symbol, &entry, version, LEGACY_STREAMS, &status) != 0 || !entry)
    g_error ("the driver has no %s", symbol);
  return entry;
}

void *
test_cuda_context (unsigned ordinal)
{
  static void *contexts[MAX_GPUS];
  void *library, *popped;
  GetProcAddress get;
  CtxCreate create;
  CtxPopCurrent pop;

  g_assert_cmpuint (ordinal, <, MAX_GPUS);
  if (contexts[ordinal])
    return contexts[ordinal];
  library = dlopen ("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  *(void **)&get = library ? dlsym (library, "cuGetProcAddress_v2") : NULL;
  if (!get)
    g_error ("there is no CUDA driver of version 12 or later");
  *(void **)&create = find (get, "cuCtxCreate", 3020);
  *(void **)&pop = find (get, "cuCtxPopCurrent", 4000);
  /* Ordinals and the driver's devices are the same numbers. Its creation makes a context current. */
  int result = create (&contexts[ordinal], 0, (int)ordinal);
  if (result != 0)
    g_error ("cuCtxCreate failed on cuda:%u with %d", ordinal, result);
  pop (&popped);
  return contexts[ordinal];
}
