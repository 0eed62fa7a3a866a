/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the tests of streams and cache stand on: a fresh device with four streams that gates can hold, short forms of
 * the calls that must succeed, and the comparison of what a lookup answered with what the rules say it must.
 *
 * Work behind a closed gate is pending and work that was waited for is complete, on every device and executor: that is
 * how tests make each on purpose.
 */
#pragma once

#include <gpucache/gpucache.h>
#include <gpucache/testing.h>

#include <pthread.h>

#define RIG_STREAMS 4

typedef struct {
  GpuDevice *device;
  GpuStream *stream[RIG_STREAMS]; /* without scopes of their own */
  GpuGate *gate[RIG_STREAMS];
  GpuImageSpec spec;     /* 64x64 RGBA, 16 KiB */
  GpuImageSpec other;    /* the same size in BGRA, which never matches it */
  GpuAccount account;    /* which of the two rig_expect() looks at; GPU_ACCOUNT_DEVICE at first */
  GpuCacheStats last[2]; /* at the last look, for each account */
} Rig;

/** Fixture functions for g_test_add(). Tearing down checks that nothing is live, and the cache's invariants. */
void rig_setup (Rig *rig, const void *data);
/** The same on @device. */
void rig_setup_on (Rig *rig, GpuDevice *device);
void rig_teardown (Rig *rig, const void *data);

#define RIG_TEST(path, func) g_test_add (path, Rig, NULL, rig_setup, func, rig_teardown)

/** How lookups since the last look were answered, as differences of the statistics. */
typedef struct {
  unsigned exact, fit, pending, waiting, misses, evictions;
} Answers;

/** Asserts that the lookups since the last look were answered so, and the cache's invariants. */
#define RIG_EXPECT(rig, ...) rig_expect (rig, (Answers){__VA_ARGS__}, __LINE__)
void rig_expect (Rig *rig, Answers answers, int line);

/** The statistics now; asserts the invariants. */
GpuCacheStats rig_stats (Rig *rig);
GpuCacheStats rig_local_stats (Rig *rig);

/** Bytes that are counted: live, pending and idle. */
uint64_t rig_bytes (const GpuCacheStats *stats);

GpuImageSpec rig_spec (GpuFormat format, uint32_t width, uint32_t height);

/** Short forms; each asserts success. */
GpuStream *rig_new_stream (Rig *rig, bool own_scope);
GpuImage *rig_acquire (Rig *rig, const GpuImageSpec *spec, GpuStream *stream);
GpuImage *
rig_acquire_kind (Rig *rig, const GpuImageSpec *spec, GpuMemoryKind kind, GpuStream *stream, GpuAcquireFlags flags);
void rig_fill (GpuStream *stream, GpuImage *image, uint8_t value);
void rig_copy (GpuStream *stream, GpuImage *src, GpuImage *dst);
void rig_wait_stream (GpuStream *stream, GpuStream *other);
void rig_sync (GpuStream *stream);
void rig_begin (GpuImage *image, GpuStream *stream, GpuAccessFlags flags);
void rig_end (GpuImage *image, GpuStream *stream, GpuAccessFlags flags);
void rig_limit (Rig *rig, uint64_t bytes);

/** Before gates of several devices are used: with a device's first one memory is pinned, for which a driver may wait
 * for streams that others hold. */
void rig_prepare_gates (GpuDevice *device);

/** Holds stream @i until rig_open(). One gate a stream at a time. */
void rig_close (Rig *rig, unsigned i);
void rig_open (Rig *rig, unsigned i);
/** Opens all gates and waits for the four streams. */
void rig_finish (Rig *rig);
/** Lets the lazy executor do what nobody waits for; other devices do so by themselves. */
void rig_run (Rig *rig);

/** An image that holds @value, whose writing is complete. */
GpuImage *rig_filled (Rig *rig, const GpuImageSpec *spec, GpuStream *stream, uint8_t value);

/** Memory that was let go of while a read of it, on the first stream, is held by that stream's gate. */
typedef struct {
  void *address;
  GpuImage *copy; /* what the held work reads the memory into */
} RigHeld;

RigHeld rig_let_go_held (Rig *rig);
/** Opens the gates and asserts that the held work read what was there when the memory was let go of. */
void rig_end_held (Rig *rig, RigHeld *held);

/** Takes @n images of @spec together on @stream, gives them back in that order and waits until they are idle.
 * @data: (out) (nullable): their addresses. Returns: the capacity of one. */
size_t rig_make_idle (Rig *rig, const GpuImageSpec *spec, GpuStream *stream, unsigned n, void **data);

/** Asserts that each visible byte of @image is @value. Waits for its last write, so gates must be open. */
#define rig_expect_bytes(rig, image, value) rig_expect_bytes_at (__FILE__, __LINE__, rig, image, value)
void rig_expect_bytes_at (const char *file, int line, Rig *rig, GpuImage *image, uint8_t value);

/** Counts of all device calls, to assert that there were none. */
typedef struct {
  uint64_t n[GPU_N_CALLS];
} RigCalls;

RigCalls rig_calls (Rig *rig);
void rig_expect_no_calls (Rig *rig, const RigCalls *since);

/** Runs @func on a thread of its own and waits for the thread's end. */
void rig_in_thread (void (*func) (void *data), void *data);

/** A thread that does one thing after another when told to; its scope lives as long as it. */
typedef struct RigThread RigThread;
RigThread *rig_thread_new (void);
void rig_thread_do (RigThread *thread, void (*func) (void *data), void *data);
void rig_thread_end (RigThread *thread);

/** Something that another thread does once: called with the counter, which it raises by one. */
typedef struct {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  unsigned n;
} RigCounter;

void rig_counter_init (RigCounter *counter);
void rig_counter_add (void *counter);
unsigned rig_counter_get (RigCounter *counter);
/** Waits until it is @n; fails after a minute. */
void rig_counter_wait (RigCounter *counter, unsigned n);
