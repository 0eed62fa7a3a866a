/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Memory of an allocator of the benchmarks' own, which elements know nothing of: it is plain, but not pinned in place
 * when it comes again and again.
 */
#pragma once

#include <gst/gst.h>

/** Returns: (transfer full) */
GstMemory *foreign_memory_new (gsize size);
