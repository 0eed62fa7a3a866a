/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What drivers of the tests' own have in common: how their entries are found.
 */
#pragma once

#include <gpucache/cuda-driver.h>

/** What cuGetProcAddress() does for a driver that has the entries of @table, whose type has the compiler check each
 * signature, and no others; those without thread's own NULL streams. */
CUresult table_find (const GpuCudaDriver *table, const char *symbol, int version, cuuint64_t flags, void **entry);
