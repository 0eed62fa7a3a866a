/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See launch.h. Kernels run on one thread, whichever stream they are on: they share their shared memory, and what they
 * leave off in the midst of is bound to its thread.
 */
#include "launch.h"

#include "stream.h"

#include <glib.h>
#include <pthread.h>
#include <string.h>

/* What every GPU since Volta takes. */
#define MAX_GRID_X 0x7fffffffu
#define MAX_GRID_YZ 65535u
#define MAX_BLOCK_Z 64u
#define MAX_SHARED_BYTES (48u << 10)
#define MAX_ARG_BYTES 4096u

typedef struct {
  const EmulatedKernel *kernel;
  EmulatedIndex grid;
  EmulatedIndex block;
  max_align_t arg[MAX_ARG_BYTES / sizeof (max_align_t)];
} Grid;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static const Grid *next; /* until it has run */

static void *
run_grids (void *data)
{
  pthread_mutex_lock (&lock);
  for (;;) {
    while (!next)
      pthread_cond_wait (&progress, &lock);
    pthread_mutex_unlock (&lock);
    emulated_run_grid (next->kernel, next->arg, next->grid, next->block);
    pthread_mutex_lock (&lock);
    next = NULL;
    pthread_cond_broadcast (&progress);
  }
  return NULL;
}

static void
start (void)
{
  pthread_t thread;

  if (pthread_create (&thread, NULL, run_grids, NULL) != 0)
    g_error ("no thread for an emulated GPU");
  pthread_detach (thread);
}

/* On the stream's thread. */
static void
run (void *data)
{
  const Grid *grid = data;

  pthread_once (&once, start);
  pthread_mutex_lock (&lock);
  while (next)
    pthread_cond_wait (&progress, &lock);
  next = grid;
  pthread_cond_broadcast (&progress);
  while (next == grid)
    pthread_cond_wait (&progress, &lock);
  pthread_mutex_unlock (&lock);
}

CUresult
launch (const EmulatedKernel *kernel, EmulatedIndex grid, EmulatedIndex block, unsigned shared_bytes, CUstream stream,
        const void *arg)
{
  const uint64_t threads = (uint64_t)block.x * block.y * block.z;
  Grid queued = {kernel, grid, block, {{0}}};

  if (threads == 0 || block.x > EMULATED_MAX_THREADS || block.y > EMULATED_MAX_THREADS || block.z > MAX_BLOCK_Z ||
      threads > EMULATED_MAX_THREADS || grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > MAX_GRID_X ||
      grid.y > MAX_GRID_YZ || grid.z > MAX_GRID_YZ || shared_bytes > MAX_SHARED_BYTES ||
      kernel->arg_size > MAX_ARG_BYTES)
    return CUDA_ERROR_INVALID_VALUE;
  if (threads > kernel->max_threads)
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  memcpy (queued.arg, arg, kernel->arg_size);
  return stream_submit (stream, run, &queued, sizeof queued);
}
