/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Staged copies as such, for tests and benchmarks of them, also on devices that need none.
 */
#pragma once

#include "crew.h"

#include <gpucache/transfer.h>

/** When a staged copy was how far, monotonic in ns. */
typedef struct {
  int64_t begun;
  int64_t prepared; /* pinned memory is there */
  int64_t first;    /* the device has the first slices to read; on the way out: they are seen to have come */
  int64_t sent;     /* the device has been told to move the last ones */
  int64_t last;     /* on the way out: they are seen to have come; on the way in: as @sent */
  int64_t done;
} GpuStagingTimes;

/**
 * GpuStagingPlan:
 * @slice_bytes: what one thread copies at a time, in whole rows
 * @least, @most: how many slices the device moves at once, at least and at most. Few where nothing else goes on
 *   meanwhile, which is in the beginning on the way in, and at the end on the way out; many in between, as the device
 *   pauses after each move.
 * @times: (nullable): filled in
 * @copy: (nullable): instead of memcpy()
 */
typedef struct {
  size_t slice_bytes;
  unsigned least, most;
  GpuStagingTimes *times;
  void (*copy) (void *dst, const void *src, size_t size);
} GpuStagingPlan;

/** What gpu_image_upload() and gpu_image_download() take. */
GpuStagingPlan gpu_staging_default_plan (bool inwards);

/** As gpu_image_upload() through pinned memory by @plan, whatever the device. */
bool gpu_image_stage_in (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec,
                         GpuStagingPlan plan, GError **error);
/** As gpu_image_download(), likewise. */
bool gpu_image_stage_out (GpuStream *stream, GpuImage *image, void *host, const GpuImageSpec *host_spec,
                          GpuStagingPlan plan, GError **error);

/** Another crew for @device's staged copies, of which none is under way; for benchmarks. As gpu_crew_new(). */
void gpu_device_set_crew (GpuDevice *device, unsigned n_threads, bool lingers);

/** Whether a copy failed with @failure (transfer full) for lack of pinned memory alone: then it is tried without. Else
 * @error is set. */
bool gpu_staging_is_refused (GError *failure, GError **error);
