/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the tests of uploads and downloads share: both elements in a row, and frames that are known by their seeds.
 *
 * Compiled with TEST_BUS, they are the same with the elements of a device whose memory the host cannot address: there
 * frames are copied that the CPU device hands on.
 */
#pragma once

#include "common.h"
#include "picture.h"

G_BEGIN_DECLS

/** Makes the elements known that are in the program itself, if it has them; all others come from the plugin. */
void register_elements (void);

/** Initialises @info. Returns: (transfer full): `gpuupload ! gpudownload`, which gets such frames. */
GstHarness *start_round_trip (GstVideoInfo *info, const char *format, int width, int height);

/** Puts the picture that frame_new() makes of @seed into @buffer. */
void fill_frame (GstBuffer *buffer, const GstVideoInfo *info, guint32 seed);

/** Fails unless @buffer shows that picture. */
void assert_frame (GstBuffer *buffer, const GstVideoInfo *info, guint32 seed, const char *what);

G_END_DECLS
