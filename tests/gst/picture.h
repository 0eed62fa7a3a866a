/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For tests of elements: frames with known samples, pictures to compare them by, and a harness's errors.
 *
 * A picture is the visible samples of a frame and nothing else, plane by plane without padding, so references can be
 * written plainly.
 */
#pragma once

#include <gpucache/gstgpucache.h>

#include <gst/check/gstcheck.h>
#include <gst/check/gstharness.h>
#include <gst/video/video.h>

G_BEGIN_DECLS

#define N_TEST_FORMATS 13
extern const char *const test_formats[N_TEST_FORMATS];

/** And those with more planes or bits. */
#define N_ALL_FORMATS 16
extern const char *const all_formats[N_ALL_FORMATS];

typedef struct {
  int width, height; /* in samples */
  int bytes;         /* of a sample: all channels that are interleaved in the plane */
  guint8 *data;
} Plane;

typedef struct {
  GstVideoFormat format;
  int n_planes;
  Plane plane[GST_VIDEO_MAX_PLANES];
} Picture;

/** A sample's bytes. */
guint8 *plane_at (const Plane *plane, int x, int y);

/** Returns: (transfer full): a black picture of that shape. */
Picture *picture_new (GstVideoFormat format, int width, int height);
/** Returns: (transfer full): what @buffer shows; @info is that of its caps. Honours a GstVideoMeta. */
Picture *picture_read (const GstVideoInfo *info, GstBuffer *buffer);
/** Returns: (transfer full): a part of @picture; its chroma begins at the sample that the first pixel lies in. */
Picture *picture_crop (const Picture *picture, int x, int y, int width, int height);
/** Returns: (transfer full): a frame that shows @picture, laid out as @info says, which is of its format and size. */
GstBuffer *picture_to_frame (const Picture *picture, const GstVideoInfo *info);
/** Drops all planes but the first @n. */
void picture_keep_planes (Picture *picture, int n);
void picture_free (Picture *picture);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Picture, picture_free)

/** Fails with the first sample that differs. */
void assert_pictures_equal (const Picture *expected, const Picture *got, const char *what);
/** The same with samples of 8 bits that may be @levels off. */
void assert_pictures_near (const Picture *expected, const Picture *got, int levels, const char *what);

void info_init (GstVideoInfo *info, const char *format, int width, int height);
/** Returns: (transfer full): a frame of noise, laid out as @info says, without a GstVideoMeta. */
GstBuffer *frame_new (const GstVideoInfo *info, guint32 seed);
/** Returns: (transfer full): the same picture with @pad bytes after each row and before each plane, and a
 * GstVideoMeta. */
GstBuffer *frame_new_padded (const GstVideoInfo *info, guint32 seed, int pad);

/** Returns: (transfer full): caps of that frame, with memory:GPUCache if @gpu. */
GstCaps *frame_caps (const char *format, int width, int height, gboolean gpu);

/** Returns: (transfer full): a harness of an element whose device is set, unless @device is NULL. */
GstHarness *harness_new (const char *factory, const char *device);

/** Returns: (transfer full): a harness of an element that a context has told to use @device. */
GstHarness *harness_new_on (const char *factory, GpuDevice *device);
/** @context: (nullable): a context that the element is given before it looks for one. */
GstHarness *harness_new_full (const char *factory, const char *device, GstContext *context);

/** Pushes @frame through `gpuupload` on @device (nullable). Returns: (transfer full): the frame in device memory. */
GstBuffer *frame_upload (const GstVideoInfo *info, GstBuffer *frame, const char *device);

/** Pushes @frame and pulls what comes out; fails if nothing does. */
GstBuffer *push_and_pull (GstHarness *h, GstBuffer *frame);

/** Gives the harness's element a bus. Returns: (transfer full): the bus. */
GstBus *watch_bus (GstHarness *h);
/** Fails unless an error (or a warning) is on @bus whose sentence holds each of the NULL-terminated words. */
void assert_message (GstBus *bus, GstMessageType type, ...) G_GNUC_NULL_TERMINATED;
/** Fails if there is one. */
void assert_no_message (GstBus *bus, GstMessageType type);

/** A field of a gpucache-stats structure of @element's cache-stats. */
guint64 cache_stat (GstElement *element, const char *field);

G_END_DECLS
