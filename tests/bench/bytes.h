/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How many bytes an operation cannot but read or write. Memory is read in sectors of 32 bytes.
 */
#pragma once

#include <gpucache/gpucache.h>

/** Bytes of samples, padding excluded. */
size_t bytes_of_samples (const GpuImageSpec *spec);

/** The sectors that hold the samples of @from which a bilinear resize to @to's size reads. */
size_t bytes_of_bilinear (const GpuImageSpec *from, const GpuImageSpec *to);
