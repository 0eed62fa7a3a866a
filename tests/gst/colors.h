/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For tests of colours: samples of any format, and what they should become, in real arithmetic, with the constants that
 * GStreamer's video library has.
 */
#pragma once

#include <gst/video/video.h>

G_BEGIN_DECLS

/** A sample of a component, R, G, B, A or Y, U, V, as a number of its bits; of ARGB64 of 8 bits. */
int color_get (const GstVideoFrame *frame, guint c, int x, int y);
void color_put (const GstVideoFrame *frame, guint c, int x, int y, int value);
/** The same; beyond the edges that at the edge. */
double color_get_clamped (const GstVideoFrame *frame, guint c, int x, int y);

/** The exact numbers in @out of a colour that has those of @code in @in. */
void color_exact (const GstVideoInfo *in, const GstVideoInfo *out, const double code[3], double result[3]);

/** Where a chroma sample lies among the pixels, across or @down: 0 on one, 0.5 between two. */
double color_phase (GstVideoChromaSite site, gboolean down);
/** Chroma at a pixel, linear between the nearest samples. */
double color_chroma_at (const GstVideoFrame *frame, guint c, GstVideoChromaSite site, int x, int y);

G_END_DECLS
