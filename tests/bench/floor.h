/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What operations are compared with, and how work on a device is timed.
 *
 * The floor moves as many bytes as an operation must, and does nothing else: on a GPU a copy kernel of 16 bytes a
 * thread, on the CPU device memcpy().
 */
#pragma once

#include "floor-args.h"

#include <gpucache/gpucache.h>

typedef struct Floor Floor;

/** Returns: (transfer full): the floor of @device, and the clock of work on it. */
Floor *floor_new (GpuDevice *device);
void floor_free (Floor *floor);

/** Submits one launch that reads @read bytes and writes @write bytes of each of @n frames, both rounded up to 16 and
 * inside @src and @dst, which are aligned to that. */
void
floor_copy (Floor *floor, GpuStream *stream, unsigned n, void *const *dst, size_t write, void *const *src, size_t read);

/** Submits a kernel that does nothing: what a launch costs. Nothing on the CPU device. */
void floor_launch (Floor *floor, GpuStream *stream);

/**
 * floor_time:
 * @submit: submits @n units of work to @stream, at most some hundred launches, and waits for nothing
 *
 * On a GPU all of them are submitted before the first one runs, so that what the host does meanwhile does not count;
 * on the CPU device it does.
 *
 * Returns: the device's ns for all of them
 */
double floor_time (Floor *floor, GpuStream *stream, void (*submit) (void *data, unsigned n), void *data, unsigned n);
