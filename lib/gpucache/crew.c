/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See crew.h. Pieces take tens of microseconds each, so one lock for all is no bottleneck.
 */
#include "crew.h"

#include <glib.h>
#include <pthread.h>
#include <signal.h>

struct GpuCrew {
  pthread_mutex_t lock;
  pthread_cond_t work;     /* a piece can be done, or it is time to go */
  pthread_cond_t progress; /* a piece is done */
  GpuCrewJob *jobs;        /* the newest first */
  bool ends;
  unsigned n_threads;
  pthread_t *threads;
};

/* With the lock held, which is given up meanwhile. */
static void
do_piece (GpuCrew *crew, GpuCrewJob *job)
{
  unsigned i = job->next++;
  pthread_mutex_unlock (&crew->lock);
  job->func (job->data, i);
  pthread_mutex_lock (&crew->lock);
  job->done[i] = true;
  while (job->finished < job->n && job->done[job->finished])
    job->finished++;
  pthread_cond_broadcast (&crew->progress);
}

static GpuCrewJob *
find_job (GpuCrew *crew)
{
  GpuCrewJob *job = crew->jobs;
  while (job && job->next >= job->ready)
    job = job->behind;
  return job;
}

static void *
run_helper (void *data)
{
  GpuCrew *crew = data;
  pthread_mutex_lock (&crew->lock);
  while (!crew->ends) {
    GpuCrewJob *job = find_job (crew);
    if (job)
      do_piece (crew, job);
    else
      pthread_cond_wait (&crew->work, &crew->lock);
  }
  pthread_mutex_unlock (&crew->lock);
  return NULL;
}

GpuCrew *
gpu_crew_new (unsigned n_threads)
{
  GpuCrew *crew = g_new0 (GpuCrew, 1);
  pthread_mutex_init (&crew->lock, NULL);
  pthread_cond_init (&crew->work, NULL);
  pthread_cond_init (&crew->progress, NULL);
  crew->threads = g_new (pthread_t, n_threads);

  /* Signals are for the application's own threads. */
  sigset_t all, old;
  sigfillset (&all);
  pthread_sigmask (SIG_SETMASK, &all, &old);
  while (crew->n_threads < n_threads && pthread_create (&crew->threads[crew->n_threads], NULL, run_helper, crew) == 0)
    crew->n_threads++;
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  return crew;
}

void
gpu_crew_free (GpuCrew *crew)
{
  pthread_mutex_lock (&crew->lock);
  g_assert (!crew->jobs);
  crew->ends = true;
  pthread_cond_broadcast (&crew->work);
  pthread_mutex_unlock (&crew->lock);
  for (unsigned i = 0; i < crew->n_threads; i++)
    pthread_join (crew->threads[i], NULL);
  pthread_cond_destroy (&crew->progress);
  pthread_cond_destroy (&crew->work);
  pthread_mutex_destroy (&crew->lock);
  g_free (crew->threads);
  g_free (crew);
}

/* One piece more wakes one helper more, so that small jobs do not wake all. */
static void
wake (GpuCrew *crew, unsigned n_pieces)
{
  if (n_pieces >= crew->n_threads)
    pthread_cond_broadcast (&crew->work);
  else
    for (unsigned i = 0; i < n_pieces; i++)
      pthread_cond_signal (&crew->work);
}

void
gpu_crew_begin (GpuCrew *crew, GpuCrewJob *job)
{
  job->next = job->finished = 0;
  job->done = g_new0 (bool, job->n);
  pthread_mutex_lock (&crew->lock);
  job->behind = crew->jobs;
  crew->jobs = job;
  /* The caller takes one of them. */
  if (job->ready > 1)
    wake (crew, job->ready - 1);
  pthread_mutex_unlock (&crew->lock);
}

bool
gpu_crew_allow (GpuCrew *crew, GpuCrewJob *job, unsigned ready)
{
  pthread_mutex_lock (&crew->lock);
  if (ready > job->ready) {
    unsigned more = ready - job->ready;
    job->ready = ready;
    wake (crew, more);
  }
  pthread_mutex_unlock (&crew->lock);
  return crew->n_threads > 0;
}

bool
gpu_crew_help (GpuCrew *crew, GpuCrewJob *job)
{
  pthread_mutex_lock (&crew->lock);
  bool there = job->next < job->ready;
  if (there)
    do_piece (crew, job);
  pthread_mutex_unlock (&crew->lock);
  return there;
}

unsigned
gpu_crew_finish (GpuCrew *crew, GpuCrewJob *job, unsigned wanted)
{
  pthread_mutex_lock (&crew->lock);
  while (job->finished < wanted) {
    if (job->next < wanted)
      do_piece (crew, job);
    else
      pthread_cond_wait (&crew->progress, &crew->lock);
  }
  unsigned finished = job->finished;
  pthread_mutex_unlock (&crew->lock);
  return finished;
}

void
gpu_crew_end (GpuCrew *crew, GpuCrewJob *job)
{
  pthread_mutex_lock (&crew->lock);
  GpuCrewJob **link = &crew->jobs;
  while (*link != job)
    link = &(*link)->behind;
  *link = job->behind;
  /* Pieces are begun in order: what is not finished of those may still be in somebody's hands. */
  for (unsigned i = job->finished; i < job->next; i++)
    while (!job->done[i])
      pthread_cond_wait (&crew->progress, &crew->lock);
  pthread_mutex_unlock (&crew->lock);
  g_free (job->done);
}
