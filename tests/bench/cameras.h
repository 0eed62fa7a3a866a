/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Many cameras and one model: 32 streams of 1080p NV12 become 640x640 planar float32, each by a chain of its own, or
 * all in one batch.
 */
#pragma once

#include <gpucache/gpucache.h>

#define CAMERAS 32
#define CAMERAS_WIDTH 1920
#define CAMERAS_HEIGHT 1080
#define CAMERAS_SIZE 640

typedef struct {
  GpuImage *frame[2]; /* which take turns where they change */
  GpuStream *stream;
  GpuResizer *resizer;
} Camera;

/** @stream: of batches, and of chains that have @one_stream; @changing: frames take turns; @converting: to RGB, before
 * it is normalised. */
typedef struct {
  GpuDevice *device;
  GpuStream *stream;
  GpuResizer *resizer;
  GpuNormalize normalize;
  GpuImageSpec camera, small, rgb, tensor;
  Camera cameras[CAMERAS];
  bool one_stream, changing, converting;
  unsigned turn;
} Cameras;

/** With frames of noise; the host has waited for them. */
void cameras_open (Cameras *cameras, GpuDevice *device);
void cameras_close (Cameras *cameras);

/** For @n frames of each camera, one after another: a chain for each frame; @cameras is a Cameras. */
void cameras_submit_chains (void *cameras, unsigned n);
/** The same, a batch for a frame of each. */
void cameras_submit_batches (void *cameras, unsigned n);

/** Waits for what was submitted. */
void cameras_finish (Cameras *cameras);
