/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A chain of elements and the frames of noise that go into it, over and over.
 */
#pragma once

#include "chain.h"

#include <gpucache/gpucache.h>

#define FEED_RING 16
#define FEED_GPU "(memory:GPUCache)"

/** What a model's input takes: a frame turned left to right, scaled to what the caps behind it say, normalised. */
#define FEED_CHAIN                                                                                                     \
  "gpuflip video-direction=horiz ! gpuresize antialias=false add-borders=false ! gpunormalize scale=<0.9>"
#define FEED_CHAIN_ELEMENTS 3

/** @stream: of frames on the device; NULL for others. */
typedef struct {
  Chain *chain;
  GstBuffer *input[FEED_RING];
  unsigned next;
  GpuStream *stream;
} Feed;

/** Configures @pool (transfer full) for frames of @caps and activates it. Returns: (transfer full): it. */
GstBufferPool *feed_activate (GstBufferPool *pool, const char *caps);

/** @description, @out: of the chain, whose frames are @width x @height RGBA. @stream (nullable) (transfer full).
 * Returns: whether the elements are there. */
bool
feed_open (Feed *feed, const char *description, GpuStream *stream, unsigned width, unsigned height, const char *out);
void feed_close (Feed *feed);
/** Pushes the next frame. */
void feed_push (Feed *feed);
/** Waits until the stream's work is done. */
void feed_wait (Feed *feed);
