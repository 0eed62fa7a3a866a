/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the benchmarks share: the command line, timing, and results as a table and as lines of JSON.
 *
 * Cases that are compared are timed in turn, round by round, so that what else the machine does hits them alike. A
 * figure is the median of the rounds; its ratio is to the first case of the same comparison. Figures are for people: no
 * benchmark fails because something is slow.
 */
#pragma once

#include <gpucache/gpucache.h>

/**
 * bench_init:
 *
 * Reads --device NAME (as gpu_device_open(); without it the environment's GPUCACHE_DEVICE or "auto") and --json FILE,
 * to which results are appended. Ends the program with a sentence if they cannot be used.
 *
 * Returns: (transfer full): the device
 */
GpuDevice *bench_init (int argc, char **argv);
/** Whether everything could be written. Returns: the program's exit status. */
int bench_finish (void);

/** Returns: (transfer full): another device of the same kind, with a cache of its own, which is empty. */
GpuDevice *bench_device_new (GpuDevice *like);
/** Returns: (transfer full): a stream of @device with a scope of its own. */
GpuStream *bench_stream_new (GpuDevice *device);
/** Returns: (transfer full): memory of the cache, which must have some. @stream: the consumer stream. */
GpuImage *bench_image_new (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, GpuStream *stream);
/** A spec that must be valid, with the default alignment. */
GpuImageSpec bench_spec (GpuFormat format, uint32_t width, uint32_t height);

/** Ends the program with a sentence, which is printf()'s. */
void bench_fail (const char *format, ...) G_GNUC_PRINTF (1, 2) G_GNUC_NORETURN;
/** Ends the program if @error is set. For calls that must succeed. */
void bench_check (GError *error);

/** Monotonic, in ns. */
double bench_now (void);
/** What the calling thread has had of the processor, in ns. */
double bench_cpu_now (void);

typedef enum {
  BENCH_NO_GOAL,
  BENCH_AT_MOST,
  BENCH_AT_LEAST,
} BenchGoal;

typedef enum {
  BENCH_TIME, /* ns an operation */
  BENCH_RATE, /* million operations a second, of all threads together */
} BenchQuantity;

/**
 * BenchCase:
 * @name: what the table calls it
 * @run: does the operation @n times, on each of its threads, and returns how many ns that took; what it prepares and
 *   cleans up does not count
 * @threads: how many threads that are; 0 is 1
 * @goal: whether there is one for the ratio to the first case
 * @goal_ratio: which
 */
typedef struct {
  const char *name;
  double (*run) (void *data, unsigned n);
  void *data;
  unsigned threads;
  BenchGoal goal;
  double goal_ratio;
} BenchCase;

/** Times @cases and adds a section with their figures to the results. */
void bench_compare (const char *title, BenchQuantity quantity, const BenchCase *cases, unsigned n_cases);

/** Begins a section of rows that the caller measured; @title stays until the next. Their ratios are to the first one
 * that is not zero. */
void bench_section (const char *title);
void bench_row (const char *name, double value, const char *unit, BenchGoal goal, double goal_ratio);
/** The same with a reference of the row's own. */
void bench_row_against (const char *name, double value, const char *unit, double own_reference, BenchGoal goal,
                        double goal_ratio);

/** Sorts @values. Returns: the median. */
double bench_median (double *values, unsigned n);
