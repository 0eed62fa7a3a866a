/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the tests of batches share: frames that say whose they are, a gpubatch that is given them, and pipelines that
 * are played to their end.
 */
#pragma once

#include "common.h"

#include <gst/check/gstharness.h>

G_BEGIN_DECLS

/** As many streams as these tests have at most: more than a GstBuffer has room for memories. */
#define MAX_PADS 64

/** Returns: (transfer full): a frame in device memory of @allocator, the one of @number (25 a second) of @pad, which
 * its offset says: 1000 * @pad + @number. */
GstBuffer *batch_frame_new (GstAllocator *allocator, const GstVideoInfo *info, guint pad, guint number);

/** A gpubatch whose pads are fed, and whose batches are pulled. */
typedef struct {
  GpuDevice *device;
  GstAllocator *allocator;
  GstElement *element;
  GstHarness *out;
  GstHarness *in[MAX_PADS];
  GstVideoInfo info[MAX_PADS];
} Rig;

/** Returns in @rig the element that @line describes with @n pads, each of which has frames of another size. */
void rig_init (Rig *rig, guint n, const gchar *line);
void rig_clear (Rig *rig);

/** Requests pad @i. */
void rig_add (Rig *rig, guint i, GstVideoFormat format, guint width, guint height);

/** Returns: (transfer full): frame @number of pad @i. */
GstBuffer *make_frame (Rig *rig, guint i, guint number);
/** Pushes it, which must succeed. */
void feed (Rig *rig, guint i, guint number);

/** The next batch must have these frames of these pads: pad, number and so on, and -1. A number of -2 is an end without
 * a frame, one of -3 a gap, one of -4 the end of a pad that was released. Returns: (transfer full): the batch. */
GstBuffer *expect_batch (Rig *rig, ...);

/** Plays @pipeline until all is at its end; fails if it has an error. It is left playing. */
void play_to_end (GstElement *pipeline);

G_END_DECLS
