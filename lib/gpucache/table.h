/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a launch for many images has for its one parameter: where the table of all images' arguments is on the device,
 * and the first of them themselves. The blocks that begin at once find theirs there: the table they would have to wait
 * for, as it has often gone from the caches since the last launch. Taken by both compilers.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** Bytes of parameters that every GPU takes, and of those what comes before the arguments. */
#define GPU_TABLE_BYTES 4096
#define GPU_TABLE_HEAD_BYTES 16

/** How many images' arguments of @size bytes are among the parameters, at most. */
#define GPU_TABLE_FIRST(size) ((GPU_TABLE_BYTES - GPU_TABLE_HEAD_BYTES) / (size))
