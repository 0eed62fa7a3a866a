/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the tests of batches share: frames that say whose they are, and pipelines that are played to their end.
 */
#pragma once

#include "common.h"

G_BEGIN_DECLS

/** As many streams as these tests have at most: more than a GstBuffer has room for memories. */
#define MAX_PADS 64

/** Returns: (transfer full): a frame in device memory of @allocator, the one of @number (25 a second) of @pad, which
 * its offset says: 1000 * @pad + @number. */
GstBuffer *batch_frame_new (GstAllocator *allocator, const GstVideoInfo *info, guint pad, guint number);

/** Plays @pipeline until all is at its end; fails if it has an error. It is left playing. */
void play_to_end (GstElement *pipeline);

G_END_DECLS
