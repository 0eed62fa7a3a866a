/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What every test of the library starts from: the device that GPUCACHE_TEST_DEVICE names, pictures of known bytes, and
 * their comparison.
 */
#pragma once

#include <gpucache/gpucache.h>
#include <gpucache/testing.h>

/** Instead of g_test_init(). Exits with 77, after a line that says why, if a GPU is asked for and there is none, or if
 * there are fewer than GPUCACHE_TEST_GPUS says. On a GPU a watch (watch.h) waits for GPUCACHE_TEST_PATIENCE seconds. */
void test_init (int *argc, char ***argv);

/** GPUCACHE_TEST_DEVICE: "cpu" (also if unset), "lazy" (the CPU device's lazy executor) or "cuda" (the first GPU). */
bool test_is_lazy (void);
bool test_is_cuda (void);

/** Whether a test with very many cases leaves out the next: all but each GPUCACHE_TEST_EVERY-th, for tools that make it
 * slow. Not thread-safe. */
bool test_leaves_out (void);

/** A device of its own, as GPUCACHE_TEST_DEVICE says; unref it. */
GpuDevice *test_device_new (void);

/** Another one: "cpu:1" and so on; on CUDA the GPUs in turn, as many as GPUCACHE_TEST_GPUS says, else the first one
 * again, with a pool and a cache of its own: where GPUCACHE_TEST_CONTEXTS is 2, the odd ones on a context of their own,
 * too. @memory_bytes: what it has in all; 0 for the machine's. Ignored on CUDA. */
GpuDevice *test_device_new_full (unsigned ordinal, uint64_t memory_bytes);

/** The next of a sequence that @state, any number, starts. */
uint32_t test_random (uint32_t *state);
void test_random_fill (void *data, size_t size, uint32_t *state);
/** Returns: @size bytes; free with g_free(). */
uint8_t *test_random_bytes (size_t size, uint32_t seed);

/** A spec that must be valid, with the default alignment. */
GpuImageSpec test_spec (GpuFormat format, uint32_t width, uint32_t height);

/** An image from the cache; must succeed. */
GpuImage *test_image_new (GpuDevice *device, const GpuImageSpec *spec, GpuStream *stream);

/** Writes the visible samples of @host, which is laid out as @host_spec says, to @image; waits. */
void test_image_write (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec);

/** Returns the visible samples of @image laid out as @image's spec says, all other bytes @padding; waits. Free with
 * g_free(). */
uint8_t *test_image_read (GpuStream *stream, GpuImage *image, uint8_t padding);

/** Fails, naming the first wrong sample, unless the visible samples of the two are equal. */
#define test_assert_samples(a, a_spec, b, b_spec) test_assert_samples_at (__FILE__, __LINE__, a, a_spec, b, b_spec)
void test_assert_samples_at (const char *file, int line, const void *a, const GpuImageSpec *a_spec, const void *b,
                             const GpuImageSpec *b_spec);

/** Fails unless the visible samples of @image are those of @host; waits. */
#define test_assert_image(stream, image, host, host_spec)                                                              \
  test_assert_image_at (__FILE__, __LINE__, stream, image, host, host_spec)
void test_assert_image_at (const char *file, int line, GpuStream *stream, GpuImage *image, const void *host,
                           const GpuImageSpec *host_spec);

/** Fails unless every visible byte of @image is @value; waits. */
#define test_assert_image_is(stream, image, value) test_assert_image_is_at (__FILE__, __LINE__, stream, image, value)
void test_assert_image_is_at (const char *file, int line, GpuStream *stream, GpuImage *image, uint8_t value);
