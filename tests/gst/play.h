/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Whole pipelines from a launch line, played to their end, and what came out of them.
 */
#pragma once

#include "common.h"
#include "picture.h"

/** Plays until the end; fails on an error. Returns: (transfer full): the pipeline, in PAUSED or PLAYING. */
GstElement *play (const char *launch);
/** Stops a pipeline and lets go of it. */
void stop (GstElement *pipeline);

/** Returns: (transfer full): what a sink got last. */
GstSample *last_sample (GstElement *pipeline, const char *sink);
/** Returns: (transfer full): the same as a picture. */
Picture *last_picture (GstElement *pipeline, const char *sink);
