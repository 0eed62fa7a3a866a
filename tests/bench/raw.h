/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the driver needs for a copy between host and device memory, with nothing of the library's in between; on the CPU
 * device memcpy().
 */
#pragma once

#include <gpucache/gpucache.h>

typedef struct RawCopies RawCopies;

typedef enum {
  RAW_UP,            /* the driver's, from pinned memory to the device */
  RAW_DOWN,          /* the other way */
  RAW_BOTH,          /* both at a time */
  RAW_UP_IN_PLACE,   /* from plain memory that was pinned where it is, once and for all */
  RAW_DOWN_IN_PLACE, /* into such memory */
  RAW_PIN,           /* no copy: plain memory is pinned where it is, and let go of again */
  RAW_HOST,          /* the host's, from plain into pinned memory, by threads that do not wait for one another */
} RawCopy;

/** @size: bytes a copy. Returns: (transfer full): memory for them, and a stream each way. */
RawCopies *raw_copies_new (GpuDevice *device, size_t size);
void raw_copies_free (RawCopies *raw);

/** Whether plain memory can be pinned where it is: a system may forbid it. */
bool raw_copies_can_pin (RawCopies *raw);

/** @n copies; @n_threads: of RAW_HOST. Returns: how many ns that took. */
double raw_copies_run (RawCopies *raw, RawCopy copy, unsigned n_threads, unsigned n);
