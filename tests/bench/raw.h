/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the driver needs for a copy between pinned and device memory, with nothing of the library's in between; on the
 * CPU device memcpy().
 */
#pragma once

#include <gpucache/gpucache.h>

typedef struct RawCopies RawCopies;

/** @size: bytes a copy. Returns: (transfer full): memory for them, and a stream each way. */
RawCopies *raw_copies_new (GpuDevice *device, size_t size);
void raw_copies_free (RawCopies *raw);

/** @n copies to the device, from it, or both at a time. Returns: how many ns that took. */
double raw_copies_up (void *raw, unsigned n);
double raw_copies_down (void *raw, unsigned n);
double raw_copies_both (void *raw, unsigned n);

/** @n copies from plain into pinned memory by so many threads of the host, which do not wait for one another. */
double raw_copies_one_thread (void *raw, unsigned n);
double raw_copies_four_threads (void *raw, unsigned n);
double raw_copies_eight_threads (void *raw, unsigned n);
