/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How a test has a CUDA driver of the tests' own in place of NVIDIA's.
 */
#pragma once

#include <dlfcn.h>
#include <glib.h>

/** Opens the driver that FAKE_CUDA_LIBRARY in the environment names by its path. It has the soname of the real one, so
 * that the library, which opens the driver by that name later, gets it. Returns: what dlopen() does; NULL if the
 * variable is not set. */
static inline void *
open_fake_cuda (void)
{
  const char *path = g_getenv ("FAKE_CUDA_LIBRARY");
  void *library = path ? dlopen (path, RTLD_NOW | RTLD_LOCAL) : NULL;

  if (path && !library)
    g_error ("cannot open FAKE_CUDA_LIBRARY=%s: %s", path, dlerror ());
  return library;
}
