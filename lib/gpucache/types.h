/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The words that every other header of libgpucache uses: errors, memory kinds, opaque types.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

G_BEGIN_DECLS

#define GPU_API __attribute__ ((visibility ("default")))

/** One GPU, or the CPU device. Reference counted; all functions on it are thread-safe. */
typedef struct GpuDevice GpuDevice;

/** Work in issue order on a device. Reference counted; thread-safe. */
typedef struct GpuStream GpuStream;

/** A picture or tensor in device memory: a descriptor over an allocation. Reference counted. */
typedef struct GpuImage GpuImage;

/**
 * GpuError:
 * @GPU_ERROR_INVALID: an argument is wrong; the message names it with its value
 * @GPU_ERROR_NO_DEVICE: no such device, or no driver for it
 * @GPU_ERROR_UNSUPPORTED: valid, but this device or operation cannot do it
 * @GPU_ERROR_OUT_OF_MEMORY: the driver refused memory after everything idle was given back
 * @GPU_ERROR_DEVICE_LOST: a driver call failed in a way that leaves its work unknown (rule 24)
 * @GPU_ERROR_FORKED: the device was opened before fork() and is used in the child
 */
typedef enum {
  GPU_ERROR_INVALID,
  GPU_ERROR_NO_DEVICE,
  GPU_ERROR_UNSUPPORTED,
  GPU_ERROR_OUT_OF_MEMORY,
  GPU_ERROR_DEVICE_LOST,
  GPU_ERROR_FORKED,
} GpuError;

#define GPU_ERROR (gpu_error_quark ())
GPU_API GQuark gpu_error_quark (void);

/**
 * GpuMemoryKind:
 * @GPU_MEMORY_STREAM_ORDERED: device memory from the device's own stream-ordered pool; the default
 * @GPU_MEMORY_DEVICE: plain device memory, for those who cannot register pool memory (encoders)
 * @GPU_MEMORY_MANAGED: unified memory, addressable by host and device
 * @GPU_MEMORY_HOST: pinned (page-locked) host memory, addressable by both; has a limit of its own
 *
 * Where memory lives. Memory of different kinds never stands in for one another (rule 4).
 */
typedef enum {
  GPU_MEMORY_STREAM_ORDERED,
  GPU_MEMORY_DEVICE,
  GPU_MEMORY_MANAGED,
  GPU_MEMORY_HOST,
} GpuMemoryKind;

#define GPU_N_MEMORY_KINDS 4

/** Returns the kind's nick, such as "stream-ordered"; static. */
GPU_API const char *gpu_memory_kind_name (GpuMemoryKind kind);

/**
 * GpuAccessFlags:
 *
 * What somebody does with an image's bytes.
 */
typedef enum {
  GPU_ACCESS_READ = 1 << 0,
  GPU_ACCESS_WRITE = 1 << 1,
} GpuAccessFlags;

G_END_DECLS
