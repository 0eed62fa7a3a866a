/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Elements between a source and a consumer that take next to no time, without clocks: what takes time is the elements.
 */
#pragma once

#include <gst/video/video.h>
#include <stdbool.h>

typedef struct Chain Chain;

/**
 * ChainConsumer:
 * @out: (nullable): caps of what comes out
 * @holds: how many buffers it keeps before it lets go of the oldest, as a queue would; the last one at least
 * @reads: whether it maps each before it lets go of it
 * @insists: whether it insists on a pool of its own, of plain memory
 * @is_foreign: whether that memory is foreign.h's
 * @is_simple: whether it knows no strides but those of its caps
 * @contexts_of: (nullable): a chain whose elements' contexts (devices) these elements are to have
 */
typedef struct {
  const char *out;
  unsigned holds;
  bool reads;
  bool insists;
  bool is_foreign;
  bool is_simple;
  Chain *contexts_of;
} ChainConsumer;

/**
 * chain_new:
 * @description: the elements, as for gst-launch-1.0
 * @caps: of what goes in
 * @consumer: (nullable): what becomes of what comes out; by default it is let go of when the next one comes
 *
 * Returns: (transfer full): the chain, playing; NULL if an element is not there
 */
Chain *chain_new (const char *description, const char *caps, const ChainConsumer *consumer);
/** (nullable) @chain */
void chain_free (Chain *chain);

/** Returns: (nullable) (transfer full): the pool that the first element proposes, active: as a source would use it. */
GstBufferPool *chain_proposed_pool (Chain *chain, const char *caps);

/** @buffer (transfer full). Ends the program if it is refused. */
void chain_push (Chain *chain, GstBuffer *buffer);

/** The consumer lets go of all that it holds, and waits until the device has made the last one of that. */
void chain_drain (Chain *chain);

/** Returns: (transfer full): what came out last, which the consumer must still hold. */
GstBuffer *chain_ref_last (Chain *chain);
/** Returns: (transfer full): the caps of what comes out, which something must have. */
char *chain_out_caps (Chain *chain);
