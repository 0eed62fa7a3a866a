/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The choice of a size and pixel-aspect-ratio that keep the picture's display aspect ratio within what caps allow.
 */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

/** Returns: (transfer full): a copy of @caps with any width, height and, where it is named, pixel-aspect-ratio. */
GstCaps *gst_gpu_caps_of_any_size (GstCaps *caps);

/**
 * gst_gpu_size_fixate:
 * @direction: the pad that @from belongs to; seen from the source pad a missing pixel-aspect-ratio means 1/1, seen from
 *   the sink pad it means that any will do
 * @from: fixed: the picture that is there
 * @to: its width, height and pixel-aspect-ratio are fixed; they must be ints and a fraction or ranges or lists of them
 *
 * Keeps both sizes if that is possible, then the height, then the width.
 */
void gst_gpu_size_fixate (GstPadDirection direction, GstStructure *from, GstStructure *to);

G_END_DECLS
