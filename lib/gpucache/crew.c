/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See crew.h. Pieces take tens of microseconds each, so one lock for all is no bottleneck. A wake-up takes as long as
 * several pieces, and more where processors sleep deeply: so who has nothing to do may look again and again for about
 * as long as a frame takes on the bus before it sleeps.
 */
#include "crew.h"

#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

/* How long somebody without work looks for some before going to sleep. */
#define LINGER_NS 250000

/* On a machine whose bus takes 54 GB/s one thread copied 5.4 GB/s and eight of them 52 GB/s. */
#define MAX_HELPERS 11

/* Beyond those that the crew and its caller keep busy: where there are fewer processors, nobody keeps one waiting. */
#define SPARE_PROCESSORS 4

/* How often somebody who finds the lock taken tries again before sleeping for it. It is held for a fraction of a
 * microsecond, but when slices come all who linger want it at once, and each wake-up would take as long as a piece. */
#define LOCK_TRIES 64

/* Something that changes under the lock and is waited for. */
typedef struct {
  pthread_cond_t cond;
  atomic_uint changes;
} Change;

struct GpuCrew {
  pthread_mutex_t lock;
  Change work;     /* a piece can be done, or it is time to go */
  Change progress; /* a piece is done */
  bool lingers;
  GpuCrewJob *jobs; /* the newest first */
  bool ends;
  unsigned n_threads;
  pthread_t *threads;
};

static void
change_init (Change *change)
{
  pthread_cond_init (&change->cond, NULL);
  atomic_init (&change->changes, 0);
}

static inline void
relax (void)
{
#if defined __x86_64__ || defined __i386__
  __builtin_ia32_pause ();
#elif defined __aarch64__
  __asm__ volatile("yield");
#endif
}

static int64_t
now (void)
{
  struct timespec time;
  clock_gettime (CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void
enter (GpuCrew *crew)
{
  for (unsigned i = 0; crew->lingers && i < LOCK_TRIES; i++) {
    if (pthread_mutex_trylock (&crew->lock) == 0)
      return;
    relax ();
  }
  pthread_mutex_lock (&crew->lock);
}

static void
leave (GpuCrew *crew)
{
  pthread_mutex_unlock (&crew->lock);
}

/* Looks for a change for a while; the lock is not held. */
static void
linger (Change *change, unsigned seen)
{
  int64_t end = now () + LINGER_NS;
  do {
    for (unsigned i = 0; i < 32; i++) {
      if (atomic_load_explicit (&change->changes, memory_order_relaxed) != seen)
        return;
      relax ();
    }
  } while (now () < end);
}

/* With the lock held, which is given up meanwhile: until something may have changed. */
static void
wait_for (GpuCrew *crew, Change *change)
{
  unsigned seen = atomic_load_explicit (&change->changes, memory_order_relaxed);
  if (crew->lingers) {
    leave (crew);
    linger (change, seen);
    enter (crew);
  }
  if (atomic_load_explicit (&change->changes, memory_order_relaxed) == seen)
    pthread_cond_wait (&change->cond, &crew->lock);
}

/* With the lock held. One piece more wakes one helper more, so that small jobs do not wake all. */
static void
announce (Change *change, unsigned n_woken)
{
  atomic_fetch_add_explicit (&change->changes, 1, memory_order_relaxed);
  for (unsigned i = 0; i < n_woken; i++)
    pthread_cond_signal (&change->cond);
}

/* With the lock held, which is given up meanwhile. */
static void
do_piece (GpuCrew *crew, GpuCrewJob *job)
{
  unsigned i = job->next++;
  leave (crew);
  job->func (job->data, i);
  enter (crew);
  job->done[i] = true;
  while (job->finished < job->n && job->done[job->finished])
    job->finished++;
  atomic_fetch_add_explicit (&crew->progress.changes, 1, memory_order_relaxed);
  pthread_cond_broadcast (&crew->progress.cond);
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
  enter (crew);
  while (!crew->ends) {
    GpuCrewJob *job = find_job (crew);
    if (job)
      do_piece (crew, job);
    else
      wait_for (crew, &crew->work);
  }
  leave (crew);
  return NULL;
}

unsigned
gpu_crew_best_size (void)
{
  return MIN (g_get_num_processors () - 1, MAX_HELPERS);
}

bool
gpu_crew_may_linger (unsigned n_threads)
{
  return g_get_num_processors () >= n_threads + 1 + SPARE_PROCESSORS;
}

GpuCrew *
gpu_crew_new (unsigned n_threads, bool lingers)
{
  GpuCrew *crew = g_new0 (GpuCrew, 1);
  pthread_mutex_init (&crew->lock, NULL);
  change_init (&crew->work);
  change_init (&crew->progress);
  crew->lingers = lingers;
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
  enter (crew);
  g_assert (!crew->jobs);
  crew->ends = true;
  announce (&crew->work, crew->n_threads);
  leave (crew);
  for (unsigned i = 0; i < crew->n_threads; i++)
    pthread_join (crew->threads[i], NULL);
  pthread_cond_destroy (&crew->progress.cond);
  pthread_cond_destroy (&crew->work.cond);
  pthread_mutex_destroy (&crew->lock);
  g_free (crew->threads);
  g_free (crew);
}

void
gpu_crew_begin (GpuCrew *crew, GpuCrewJob *job)
{
  job->next = job->finished = 0;
  job->done = g_new0 (bool, job->n);
  enter (crew);
  job->behind = crew->jobs;
  crew->jobs = job;
  /* The caller takes one of them. */
  if (job->ready > 1)
    announce (&crew->work, MIN (job->ready - 1, crew->n_threads));
  leave (crew);
}

bool
gpu_crew_allow (GpuCrew *crew, GpuCrewJob *job, unsigned ready)
{
  enter (crew);
  if (ready > job->ready) {
    unsigned more = ready - job->ready;
    job->ready = ready;
    announce (&crew->work, MIN (more, crew->n_threads));
  }
  leave (crew);
  return crew->n_threads > 0;
}

bool
gpu_crew_help (GpuCrew *crew, GpuCrewJob *job)
{
  enter (crew);
  bool there = job->next < job->ready;
  if (there)
    do_piece (crew, job);
  leave (crew);
  return there;
}

unsigned
gpu_crew_finish (GpuCrew *crew, GpuCrewJob *job, unsigned wanted)
{
  enter (crew);
  while (job->finished < wanted) {
    if (job->next < wanted)
      do_piece (crew, job);
    else
      wait_for (crew, &crew->progress);
  }
  unsigned finished = job->finished;
  leave (crew);
  return finished;
}

void
gpu_crew_end (GpuCrew *crew, GpuCrewJob *job)
{
  enter (crew);
  GpuCrewJob **link = &crew->jobs;
  while (*link != job)
    link = &(*link)->behind;
  *link = job->behind;
  /* Pieces are begun in order: what is not finished of those may still be in somebody's hands. */
  for (unsigned i = job->finished; i < job->next; i++)
    while (!job->done[i])
      wait_for (crew, &crew->progress);
  leave (crew);
  g_free (job->done);
}
