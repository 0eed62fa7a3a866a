/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What drivers of the tests' own have in common: the primary contexts of two GPUs, and each thread's stack of contexts.
 */
#pragma once

#include <cuda.h>

#define N_GPUS 2

CUcontext context_of (int gpu);

/** Returns: the GPU, or -1 if @context is none of its contexts. */
int context_gpu (CUcontext context);

CUresult context_push (CUcontext context);
CUresult context_pop (CUcontext *context);

/** Returns: the GPU of the calling thread's current context, or -1 if it has none. */
int context_current (void);

/** Contexts on the calling thread's stack. */
unsigned context_depth (void);
