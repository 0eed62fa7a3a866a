/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Operations against a reference that the test writes down plainly. The output is poisoned first, and every byte of its
 * memory is compared: each visible sample must be written, and nothing beside them, row padding included.
 */
#pragma once

#include "common.h"

/** How a picture lies in its memory. */
typedef enum {
  LAYOUT_DEFAULT, /* as the cache does it */
  LAYOUT_PACKED,  /* no padding at all */
  LAYOUT_WORDS,   /* at 20 bytes, rows and planes padded to 4 */
  LAYOUT_ODD,     /* at 7 bytes, odd strides, planes at odd distances */
} Layout;

#define N_LAYOUTS 4

/** Bytes in host memory, laid out as @spec says; has no padding that is of use to anybody. */
typedef struct {
  GpuImageSpec spec;
  uint8_t *bytes;
} Picture;

GpuImageSpec picture_spec (GpuFormat format, uint32_t width, uint32_t height, Layout layout);

/** Random in every byte, padding included; free with picture_clear(). */
Picture picture_new (const GpuImageSpec *spec, uint32_t seed);
void picture_clear (Picture *picture);

/** The first byte of a sample. */
uint8_t *picture_at (const Picture *picture, unsigned plane, uint32_t x, uint32_t y);

/** Bytes of a plane's sample. */
unsigned picture_sample_bytes (const Picture *picture, unsigned plane);

/** An image over all of the spec's bytes, which are those of @picture; waits. Unref it. */
GpuImage *picture_upload (GpuStream *stream, const Picture *picture);

/** All bytes of what picture_upload() gave, padding included; waits. */
Picture picture_download (GpuStream *stream, GpuImage *image);

/** The operation under test. */
typedef bool (*PictureOp) (GpuStream *stream, GpuImage *src, GpuImage *dst, const void *params, GError **error);

/** What it must do: writes each visible sample of @dst. */
typedef void (*PictureReference) (const Picture *src, Picture *dst, const void *params);

/** Runs @op on random pictures, unless test_leaves_out() says otherwise, as do the two below. Fails, naming the byte,
 * unless @dst has the reference's samples and its old padding, and @src is as before. */
void picture_check (GpuStream *stream, const GpuImageSpec *src, const GpuImageSpec *dst, PictureOp op,
                    PictureReference reference, const void *params);

/** The exact value of sample @i of a pixel, in steps of the samples, which need not be within their range. */
typedef double (*PictureValue) (const Picture *src, const GpuImageSpec *dst, unsigned plane, unsigned i, uint32_t x,
                                uint32_t y, const void *params);

/** Samples of a pixel, and their values: those of 16 bits have theirs in the upper 10. */
unsigned picture_samples (const GpuImageSpec *spec, unsigned plane);
unsigned picture_get (const Picture *picture, unsigned plane, uint32_t x, uint32_t y, unsigned i);
void picture_put (Picture *picture, unsigned plane, uint32_t x, uint32_t y, unsigned i, unsigned value);

/** As picture_check(), but a sample may be @tolerance off its exact value, saturated. Returns: the worst error. */
double picture_check_near (GpuStream *stream, const GpuImageSpec *src, const GpuImageSpec *dst, PictureOp op,
                           PictureValue value, const void *params, double tolerance);

/** The same in place. */
void picture_check_in_place (GpuStream *stream, const GpuImageSpec *spec, PictureOp op, PictureReference reference,
                             const void *params);

/** Asserts that @op fails with GPU_ERROR_INVALID and a message that contains @text. */
void picture_check_error (GpuStream *stream, GpuImage *src, GpuImage *dst, PictureOp op, const void *params,
                          const char *text);

/** Widths and heights that are hard to get right; @n of them. */
extern const uint32_t picture_sizes[][2];
extern const unsigned n_picture_sizes;

/** The formats of pictures are those from 1 to GPU_LAST_PICTURE_FORMAT. */
#define FIRST_FORMAT GPU_FORMAT_GRAY8

/** Whether a test that does not look at the order of channels leaves out @format in its @turn-th round: those with 4
 * bytes a pixel take turns. */
bool picture_takes_turns (GpuFormat format, unsigned turn);

/** A device with a stream, for tests of operations. */
typedef struct {
  GpuDevice *device;
  GpuStream *stream;
} OpFixture;

void op_fixture_setup (OpFixture *fixture, const void *data);
void op_fixture_teardown (OpFixture *fixture, const void *data);

#define OP_TEST(path, func) g_test_add (path, OpFixture, NULL, op_fixture_setup, func, op_fixture_teardown)
