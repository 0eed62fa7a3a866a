/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What drivers of the tests' own have in common: the contexts of two GPUs, the primary one of each and another, and
 * each thread's stack of contexts.
 */
#pragma once

#include <cuda.h>

#define N_GPUS 2
#define N_CONTEXTS (2 * N_GPUS)

/** The primary context. */
CUcontext context_of (int gpu);

/** The other one, such as an application may make. */
CUcontext context_other (int gpu);

/** Returns: a number below N_CONTEXTS, or -1 if @context is none. */
int context_number (CUcontext context);

/** Returns: the GPU, or -1 if @context is none of its contexts. */
int context_gpu (CUcontext context);

CUresult context_push (CUcontext context);
CUresult context_pop (CUcontext *context);

/** Returns: the GPU of the calling thread's current context, or -1 if it has none. */
int context_current (void);

/** Returns: the number of that context, or -1. */
int context_current_number (void);

/** Contexts on the calling thread's stack. */
unsigned context_depth (void);
