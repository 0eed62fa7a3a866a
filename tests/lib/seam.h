/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For tests of the seam itself: its calls in short forms that must succeed, on a fresh device with two native streams.
 */
#pragma once

#include "common.h"

#include "gpucache/device-priv.h"

typedef struct {
  GpuDevice *device;
  void *s, *t;
} Seam;

void seam_setup (Seam *seam, const void *data);
void seam_teardown (Seam *seam, const void *data);

#define SEAM_TEST(path, func) g_test_add (path, Seam, NULL, seam_setup, func, seam_teardown)

void *seam_stream (Seam *seam);
void *seam_event (Seam *seam);
void *seam_alloc (Seam *seam, size_t size, void *stream);
void seam_free (Seam *seam, void *data, size_t size, void *stream);
void seam_fill (Seam *seam, void *data, size_t size, uint8_t value, void *stream);
void seam_copy (Seam *seam, void *dst, const void *src, size_t size, void *stream);
void seam_record (Seam *seam, void *event, void *stream);
void seam_wait (Seam *seam, void *stream, void *event);
void seam_sync (Seam *seam, void *stream);
void seam_sync_event (Seam *seam, void *event);
bool seam_is_complete (Seam *seam, void *event);

/** Asserts that @size bytes are @value when @stream has come so far; waits. */
void seam_expect (Seam *seam, const void *data, size_t size, uint8_t value, void *stream);

/** A closed gate that holds @stream. */
void *seam_close (Seam *seam, void *stream);
/** Opens and, since @stream passes it, destroys it. */
void seam_open (Seam *seam, void *gate, void *stream);
