/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Elements that get buffers pushed into them and whose output is dropped, without sources, sinks and clocks: what takes
 * time is the elements.
 */
#pragma once

#include <gst/video/video.h>

typedef struct Chain Chain;

/**
 * chain_new:
 * @description: the elements, as for gst-launch-1.0
 * @caps: of what goes in
 * @out: (nullable): what comes out
 *
 * Returns: (transfer full): the chain, playing; NULL if an element is not there
 */
Chain *chain_new (const char *description, const char *caps, const char *out);
void chain_free (Chain *chain);

/** Returns: (nullable) (transfer full): the pool that the first element proposes, active: as a source would use it. */
GstBufferPool *chain_proposed_pool (Chain *chain, const char *caps);

/** Ends the program if it is refused. */
void chain_push (Chain *chain, GstBuffer *buffer);

/** The buffer that came out last. Returns: (nullable) (transfer none): it. */
GstBuffer *chain_last (Chain *chain);
