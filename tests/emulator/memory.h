/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What drivers of the tests' own have in common: device memory that is the host's, a block of its own for each
 * allocation, so that AddressSanitizer finds accesses beyond it and Valgrind reads of what was not written.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/** Aligned to 256 bytes, which is what CUDA promises, and never to more. Its bytes are a pattern, unless it is very
 * large: then it takes no more memory than is touched. Returns 0 if there is no room for it. */
CUdeviceptr memory_new (size_t size);

/** Returns: the bytes, or 0 if @address is not that of such a block. */
size_t memory_free (CUdeviceptr address);

/** Host memory that is pinned in place, by whole pages. Returns: whether it is; not if part of it is already. */
bool memory_pin (void *data, size_t size);
/** Returns: whether it was, from @data on. */
bool memory_unpin (void *data);
