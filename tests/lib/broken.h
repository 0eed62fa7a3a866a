/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What broken.c and broken.cu agree on.
 */
#pragma once

/** Two warps. */
#define BROKEN_THREADS 64
