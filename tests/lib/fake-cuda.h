/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A CUDA driver in host memory, so that the CUDA device's calls can be tested where there is no GPU. Work is done as it
 * is submitted; kernels are only logged.
 */
#pragma once

#include <gpucache/cuda-driver.h>

/** The one kernel that the fake's modules have. */
#define FAKE_CUDA_KERNEL "fake_kernel"

/** Exported by the module as "fake_cuda". */
typedef struct {
  /**
   * The @skip-th next call of @entry, such as "cuMemAlloc", and no later one, returns @result and does nothing.
   * Replaces what was to fail of that entry.
   */
  void (*fail) (const char *entry, unsigned skip, CUresult result);
  /** What pools say that they have of the system, and that is in use of it; nothing at first. */
  void (*set_pool) (uint64_t reserved, uint64_t used);
  /** Whether from now on all allocations, on every GPU and of pinned memory, return CUDA_ERROR_OUT_OF_MEMORY. */
  void (*refuse_memory) (bool refuse);
  /** Or -1 for none: all later calls in the context of that GPU return CUDA_ERROR_ILLEGAL_ADDRESS, and those of another
   * one that have to do with it. */
  void (*break_gpu) (int ordinal);
  /** A context of that GPU besides its primary one. */
  CUcontext (*other_context) (int ordinal);
  /** All later calls return CUDA_ERROR_DEINITIALIZED, as after the driver's exit handler. */
  void (*shut_down) (void);
  /** Returns: the calls since the last time, a line each, without pushes and pops of contexts; free() it. */
  char *(*take_log) (void);
  /** Streams, events, pools, modules, contexts retained and pieces of memory that nobody has given back, and pieces of
   * the host's that are registered. */
  unsigned (*n_live) (void);
  /** Contexts on the calling thread's stack. */
  unsigned (*depth) (void);
} FakeCuda;
