/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Plain memory of the host's that is pinned where it is, so that a device copies from and to it by itself: worth the
 * while for memory that is copied many times, since pinning a frame takes as long as some copies of it.
 */
#pragma once

#include <gpucache/types.h>

G_BEGIN_DECLS

/**
 * GpuPin:
 *
 * Pages that are pinned for one device. A pin does not keep its device: when that goes, the pages are let go of, and
 * the pin is of no more use.
 */
typedef struct GpuPin GpuPin;

/**
 * gpu_pin_new:
 * @data: memory of @size bytes that its owner frees by itself, after the pin
 * @error: (nullable): GPU_ERROR_OUT_OF_MEMORY beyond the limit of pinned memory, against which the pages are counted
 *   as live (rule 8), or half of it by pages alone, or what the driver says; it leaves the device as it is
 *
 * Pins the pages that lie in the memory as a whole: others may have something of somebody else's, who may want to pin
 * them, too, and the copies that pin.h is for go without. May wait for the device.
 *
 * Returns: (transfer full): the pin, or NULL
 */
GPU_API GpuPin *gpu_pin_new (GpuDevice *device, void *data, size_t size, GError **error);

GPU_API GpuPin *gpu_pin_ref (GpuPin *pin);

/** The last one lets go of the pages, which no work may be using any more. On any thread. */
GPU_API void gpu_pin_unref (GpuPin *pin);

/** Whether the pages are pinned for @device, which the caller has a reference on. */
GPU_API bool gpu_pin_is_for (const GpuPin *pin, const GpuDevice *device);

/** Whether its device is there and not lost. */
GPU_API bool gpu_pin_is_of_use (GpuPin *pin);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GpuPin, gpu_pin_unref)

G_END_DECLS
