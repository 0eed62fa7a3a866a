/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A GPU for tests: runs a kernel that the host's compiler made over a grid, one block after the other, and what keeps
 * the threads of a block together.
 *
 * A thread runs until it meets a barrier or a shuffle, and there lets the others go on, so that only one runs at a
 * time. In which order is a matter of chance: CUDA_EMULATOR_SEED, a number, is where chance begins, and with 0 the
 * threads and blocks take their turns as they are numbered. A kernel whose result depends on an order that no barrier
 * makes gives other bytes then. Shared memory holds a pattern when a block begins. What a GPU would answer with results
 * that depend on luck, or by standing still, ends the process with a line that says which threads are where: a barrier
 * that not all threads reach, or that they do not reach at the same place, and the like of a warp; and a read of what
 * an asynchronous copy is on its way to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMULATED_WARP 32u
#define EMULATED_MAX_THREADS 1024u

/** What shared memory, and device memory that is new or freed, is filled with. */
#define EMULATED_POISON 0xa5

typedef struct {
  unsigned x, y, z;
} EmulatedIndex;

/** What a thread knows of itself, by CUDA's names. */
typedef struct {
  EmulatedIndex threadIdx;
  EmulatedIndex blockIdx;
  EmulatedIndex blockDim;
  EmulatedIndex gridDim;
} EmulatedThread;

/** The one that runs. */
extern __thread EmulatedThread emulated_thread __attribute__ ((tls_model ("initial-exec")));

/** A place in a kernel's source. */
typedef struct {
  const char *file;
  int line;
} EmulatedPlace;

void emulated_sync_threads (EmulatedPlace place);

/** The lanes that are in @mask, of which the caller is one, come to this together. */
void emulated_sync_warp (uint32_t mask, EmulatedPlace place);

/** The same. Returns: the @value of lane @source; the poison, if that is not among them. */
uint32_t emulated_shuffle (uint32_t mask, uint32_t value, unsigned source, EmulatedPlace place);

/** Copies @n bytes to shared memory: later, when the caller waits. Until then there is the poison. */
void emulated_begin_copy (void *dst, const void *src, unsigned n);

/** What the caller began before, and did not end, is one set of copies. */
void emulated_end_copies (void);

/** Makes the caller's copies, but those of the last @sets sets that it ended. */
void emulated_wait_for_copies (unsigned sets);

/** The caller reads @n bytes of shared memory, to which no copy may be on its way, whoever began it. */
void emulated_check_read (const void *p, unsigned n);

/** The caller's number in its warp. */
unsigned emulated_lane (void);

/**
 * EmulatedKernel:
 * @call: runs one thread with the argument at @arg
 * @arg_size: bytes of the kernel's one argument
 * @max_threads: of a block, from __launch_bounds__; 0 if it has none
 */
typedef struct {
  const char *name;
  void (*call) (const void *arg);
  size_t arg_size;
  unsigned max_threads;
} EmulatedKernel;

#define EMULATED_EXPORT __attribute__ ((visibility ("default")))

/** Returns: the kernel, or NULL if @i is their number or more. */
EMULATED_EXPORT const EmulatedKernel *emulated_kernel (size_t i);

/** Runs all of a grid on the calling thread. Shared memory is the process': one call at a time. */
EMULATED_EXPORT void
emulated_run_grid (const EmulatedKernel *kernel, const void *arg, EmulatedIndex grid, EmulatedIndex block);

#ifdef __cplusplus
}
#endif
