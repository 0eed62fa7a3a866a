/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Staged copies as such, for tests of them on devices that need none.
 */
#pragma once

#include "crew.h"

#include <gpucache/transfer.h>

/** As gpu_image_upload() through pinned memory in slices of @slice_bytes, whatever the device. */
bool gpu_image_stage_in (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec,
                         size_t slice_bytes, GError **error);
/** As gpu_image_download(), likewise. */
bool gpu_image_stage_out (GpuStream *stream, GpuImage *image, void *host, const GpuImageSpec *host_spec,
                          size_t slice_bytes, GError **error);
