/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See stream.h. One lock is enough: it is not held while work is done.
 */
#include "stream.h"

#include "context.h"

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct Work Work;
struct Work {
  Work *next;
  uint64_t number; /* in the order of submission to any stream */
  void (*func) (void *data);
  max_align_t data[];
};

struct CUstream_st {
  int gpu;
  Work *first;
  Work **end;
  bool is_ending;
  pthread_cond_t arrival;
};

/* A point in a stream. A wait is for the one that its event was last recorded at, also if that is recorded anew. */
typedef struct {
  unsigned refs;
  bool is_reached;
} Point;

struct CUevent_st {
  int gpu;
  Point *point; /* NULL if not recorded yet */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static GList *streams;
static CUstream null_streams[N_GPUS];
static uint64_t n_submitted;

static void *
work (void *data)
{
  CUstream self = data;

  pthread_mutex_lock (&lock);
  for (;;) {
    while (!self->first && !self->is_ending)
      pthread_cond_wait (&self->arrival, &lock);
    Work *next = self->first;
    if (!next)
      break;
    pthread_mutex_unlock (&lock);
    next->func (next->data);
    pthread_mutex_lock (&lock);
    self->first = next->next;
    if (!self->first)
      self->end = &self->first;
    g_free (next);
    pthread_cond_broadcast (&progress);
  }
  streams = g_list_remove (streams, self);
  pthread_mutex_unlock (&lock);
  pthread_cond_destroy (&self->arrival);
  g_free (self);
  return NULL;
}

CUresult
stream_new (CUstream *stream, int gpu)
{
  CUstream self = g_new0 (struct CUstream_st, 1);
  pthread_t thread;

  self->gpu = gpu;
  self->end = &self->first;
  pthread_cond_init (&self->arrival, NULL);
  pthread_mutex_lock (&lock);
  streams = g_list_prepend (streams, self);
  pthread_mutex_unlock (&lock);
  if (pthread_create (&thread, NULL, work, self) != 0)
    g_error ("no thread for a stream of an emulated GPU");
  pthread_detach (thread);
  *stream = self;
  return CUDA_SUCCESS;
}

void
stream_end (CUstream self)
{
  pthread_mutex_lock (&lock);
  self->is_ending = true;
  pthread_cond_signal (&self->arrival);
  pthread_mutex_unlock (&lock);
}

CUstream
stream_or_null (CUstream stream, int gpu)
{
  static pthread_mutex_t creation = PTHREAD_MUTEX_INITIALIZER;

  if (stream)
    return stream;
  pthread_mutex_lock (&creation);
  if (!null_streams[gpu])
    stream_new (&null_streams[gpu], gpu);
  pthread_mutex_unlock (&creation);
  return null_streams[gpu];
}

int
stream_gpu (CUstream self)
{
  return self->gpu;
}

/* With the lock held. */
static void
queue (CUstream self, void (*func) (void *data), const void *data, size_t size)
{
  Work *added = g_malloc (sizeof *added + size);

  added->next = NULL;
  added->number = ++n_submitted;
  added->func = func;
  memcpy (added->data, data, size);
  *self->end = added;
  self->end = &added->next;
  pthread_cond_signal (&self->arrival);
}

CUresult
stream_submit (CUstream self, void (*func) (void *data), const void *data, size_t size)
{
  pthread_mutex_lock (&lock);
  queue (self, func, data, size);
  pthread_mutex_unlock (&lock);
  return CUDA_SUCCESS;
}

/* With the lock held. */
static bool
is_behind (CUstream self, uint64_t number)
{
  return self->first && self->first->number <= number;
}

void
stream_synchronize (CUstream self)
{
  pthread_mutex_lock (&lock);
  const uint64_t last = n_submitted;
  while (is_behind (self, last))
    pthread_cond_wait (&progress, &lock);
  pthread_mutex_unlock (&lock);
}

static bool
is_any_behind (int gpu, uint64_t number)
{
  for (GList *l = streams; l; l = l->next)
    if (stream_gpu (l->data) == gpu && is_behind (l->data, number))
      return true;
  return false;
}

void
stream_synchronize_all (int gpu)
{
  pthread_mutex_lock (&lock);
  const uint64_t last = n_submitted;
  while (is_any_behind (gpu, last))
    pthread_cond_wait (&progress, &lock);
  pthread_mutex_unlock (&lock);
}

CUresult
event_new (CUevent *event, int gpu)
{
  CUevent self = g_new0 (struct CUevent_st, 1);

  self->gpu = gpu;
  *event = self;
  return CUDA_SUCCESS;
}

/* With the lock held. */
static void
unref (Point *self)
{
  if (self && --self->refs == 0)
    g_free (self);
}

void
event_end (CUevent self)
{
  pthread_mutex_lock (&lock);
  unref (self->point);
  pthread_mutex_unlock (&lock);
  g_free (self);
}

int
event_gpu (CUevent self)
{
  return self->gpu;
}

static void
reach (void *data)
{
  Point *point = *(Point **)data;

  pthread_mutex_lock (&lock);
  point->is_reached = true;
  unref (point);
  pthread_cond_broadcast (&progress);
  pthread_mutex_unlock (&lock);
}

static void
await (void *data)
{
  Point *point = *(Point **)data;

  pthread_mutex_lock (&lock);
  while (!point->is_reached)
    pthread_cond_wait (&progress, &lock);
  unref (point);
  pthread_mutex_unlock (&lock);
}

CUresult
event_record (CUevent self, CUstream stream)
{
  Point *point = g_new0 (Point, 1);

  point->refs = 2;
  pthread_mutex_lock (&lock);
  unref (self->point);
  self->point = point;
  queue (stream, reach, &point, sizeof point);
  pthread_mutex_unlock (&lock);
  return CUDA_SUCCESS;
}

CUresult
event_query (CUevent self)
{
  pthread_mutex_lock (&lock);
  const bool is_complete = !self->point || self->point->is_reached;
  pthread_mutex_unlock (&lock);
  return is_complete ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult
event_wait (CUevent self, CUstream stream)
{
  pthread_mutex_lock (&lock);
  if (self->point) {
    self->point->refs++;
    queue (stream, await, &self->point, sizeof self->point);
  }
  pthread_mutex_unlock (&lock);
  return CUDA_SUCCESS;
}
