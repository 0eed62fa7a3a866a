/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A pin from inside.
 */
#pragma once

#include "list.h"

#include <gpucache/pin.h>

#include <stdatomic.h>

struct GpuPin {
  atomic_uint refs;
  _Atomic (GpuDevice *) device; /* NULL once it is gone */
  GpuLink by_device;
  unsigned fork_generation;
  /* Whole pages. */
  uint8_t *data;
  size_t size;
};
