/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See context.h.
 */
#include "context.h"

#include <stddef.h>

#define MAX_DEPTH 8

/* Their addresses are the handles: the primary ones, then the others. */
static char contexts[N_CONTEXTS];

static _Thread_local unsigned depth;
static _Thread_local CUcontext stack[MAX_DEPTH];

CUcontext
context_of (int gpu)
{
  return (CUcontext)&contexts[gpu];
}

CUcontext
context_other (int gpu)
{
  return (CUcontext)&contexts[N_GPUS + gpu];
}

int
context_number (CUcontext context)
{
  for (int i = 0; i < N_CONTEXTS; i++)
    if (context == (CUcontext)&contexts[i])
      return i;
  return -1;
}

int
context_gpu (CUcontext context)
{
  int number = context_number (context);

  return number < 0 ? -1 : number % N_GPUS;
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

int
context_current_number (void)
{
  return depth > 0 ? context_number (stack[depth - 1]) : -1;
}

unsigned
context_depth (void)
{
  return depth;
}
