/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See context.h.
 */
#include "context.h"

#include <stddef.h>

#define MAX_DEPTH 8

/* Their addresses are the handles. */
static char contexts[N_GPUS];

static _Thread_local unsigned depth;
static _Thread_local CUcontext stack[MAX_DEPTH];

CUcontext
context_of (int gpu)
{
  return (CUcontext)&contexts[gpu];
}

int
context_gpu (CUcontext context)
{
  for (int gpu = 0; gpu < N_GPUS; gpu++)
    if (context == context_of (gpu))
      return gpu;
  return -1;
}

CUresult
context_push (CUcontext context)
{
  if (depth == MAX_DEPTH || context_gpu (context) < 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

CUresult
context_pop (CUcontext *context)
{
  if (depth == 0)
    return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack[--depth];
  return CUDA_SUCCESS;
}

int
context_current (void)
{
  return depth > 0 ? context_gpu (stack[depth - 1]) : -1;
}

unsigned
context_depth (void)
{
  return depth;
}
