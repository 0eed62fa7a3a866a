/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Launches of the emulated driver.
 */
#pragma once

#include "grid.h"

#include <cuda.h>

/** Queues a kernel on @stream, or says what a GPU says if it does not take such a grid. */
CUresult launch (const EmulatedKernel *kernel, EmulatedIndex grid, EmulatedIndex block, unsigned shared_bytes,
                 CUstream stream, const void *arg);
