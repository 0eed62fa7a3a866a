/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What conversion needs of reformatting.
 */
#pragma once

#include "op-batch-priv.h"

/** Moves 8-bit channels between pictures, or a picture and a tensor, of one size, neither subsampled. Channels that
 * @dst lacks are left out; the fourth one is or'ed with @opaque, and 0 where @src has none. */
bool gpu_reformat_pixels (const GpuOp *op, GpuImage *src, GpuImage *dst, uint32_t opaque, GError **error);
