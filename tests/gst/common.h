/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the tests of the GStreamer side share: the device under test, patterns in frames, and gates that hold a stream.
 */
#pragma once

#include <gpucache/gstgpucache.h>
#include <gpucache/testing.h>

#include <gst/check/gstcheck.h>

/** Runs @suite in this process: a device cannot be used on both sides of a fork(). Exits with 77 if the environment's
 * device is a GPU and there is none. */
int test_run (int argc, char **argv, Suite *(*suite) (void), const char *name);

/** Returns: (transfer full): the device that the environment names; where it is a CPU device, one that no other test
 * has used. */
GpuDevice *test_device_new (void);
/** Whether its work runs only when something waits for it. */
gboolean test_is_lazy (void);

/** Gives work that nobody waits for a chance to run. */
void test_give_time (GpuDevice *device);

GpuStream *test_stream_new (GpuDevice *device);
GpuCacheStats test_stats (GpuDevice *device, GpuAccount account);

/** Every video format of the library, in turn; unknown after the last. */
GstVideoFormat test_video_format (guint i);
void test_video_info (GstVideoInfo *info, GstVideoFormat format, guint width, guint height);
/** Returns: (transfer full): the caps of such frames in device memory. */
GstCaps *test_caps (GstVideoFormat format, guint width, guint height);

/** Returns: (transfer full): a buffer with @memory (transfer full) and a GstVideoMeta that says how it is laid out. */
GstBuffer *test_buffer_new (GstMemory *memory);

/** Writes a pattern that depends on @seed and the place into the samples of a frame, through a map on the host. */
void test_frame_write (GstBuffer *buffer, const GstVideoInfo *info, guint seed);
/** Fails unless that is what the frame holds. */
void test_frame_expect (GstBuffer *buffer, const GstVideoInfo *info, guint seed);

/** The same for bytes in a row. */
void test_memory_write (GstMemory *memory, guint seed);
void test_bytes_expect (const guint8 *data, gsize offset, gsize size, guint seed);
void test_memory_expect (GstMemory *memory, gsize offset, gsize size, guint seed);

/** A gate that holds a stream until another thread opens it a little later: who comes back before that has not waited.
 */
typedef struct {
  GpuGate *gate;
  GThread *thread;
  gint opened;
} TestDelay;

/** Holds @stream from now on. */
void test_delay_begin (TestDelay *delay, GpuStream *stream);
/** Starts the other thread. */
void test_delay_open_later (TestDelay *delay);
/** Whether it has opened the gate. */
gboolean test_delay_is_open (TestDelay *delay);
/** Opens the gate unless that was done, and frees it. */
void test_delay_end (TestDelay *delay);
