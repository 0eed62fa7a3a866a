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

typedef enum {
  FLOOR_LAUNCH,  /* a kernel that does nothing */
  FLOOR_TURN,    /* the same, of three kernels in turn, with as many arguments as an operation has */
  FLOOR_RECORD,  /* an event's record */
  FLOOR_QUERY,   /* a question about an event */
  FLOOR_CONTEXT, /* a context made current, and what was before that again */
} FloorCall;

/** Makes the device's context current on the calling thread for good, as floor_new() does on its own. */
void floor_enter (Floor *floor);

/** Returns: (transfer full) (nullable): another floor, in a context of its own; NULL if there can be none. */
Floor *floor_new_in_own_context (Floor *like);
/** Returns: (transfer none): the device that the floor is of. */
GpuDevice *floor_device (Floor *floor);

/** Makes the driver's call; nothing on the CPU device. */
void floor_call (Floor *floor, GpuStream *stream, FloorCall call);

/** Waits for all work on @stream. The cache does not know of the floor's: before it has images back that the floor
 * works on, somebody must have waited. */
void floor_wait (Floor *floor, GpuStream *stream);

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
