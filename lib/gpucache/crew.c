/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See crew.h. Pieces take a few microseconds each, and all who have nothing to do want one in the moment when there is
 * some: whoever slept for a lock then would be late by several pieces, so there is none. A piece is taken by advancing
 * a number, and done is a flag of its own, which the job's owner looks at.
 *
 * Helpers find jobs in slots of the crew's, which they may look at at any time, while a job is gone when its owner says
 * so. Pieces are numbered through from one job of a slot to the next, so what somebody read late about an older job
 * allows nothing of a later one. Who has taken a piece may use the job until it sets the piece's flag, as the owner
 * waits for that.
 *
 * A wake-up takes as long as several pieces, and more where processors sleep deeply: so who has nothing to do may look
 * again and again for about as long as a frame takes on the bus before it sleeps.
 */
#include "crew.h"

#include "device-priv.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How long somebody without work looks for some before going to sleep. */
#define LINGER_NS 250000

/* On a machine of 16 processors staged copies by 8 threads, the caller included, took 0.6 to 0.7 of the time that they
 * took by 4; by 12 they took 0.8 to 0.95 of it on the way in, and 1.02 to 1.13 on the way out. */
#define MAX_HELPERS 7

/* Beyond those that the crew and its caller keep busy: where there are fewer processors, nobody keeps one waiting. */
#define SPARE_PROCESSORS 4

/* Where who waits for something sleeps, and is woken. What is waited for changes first, then the bell is rung; who is
 * about to sleep says so first, then looks once more. So one of them sees the other. */
typedef struct {
  _Alignas(GPU_CACHE_LINES) atomic_uint n_asleep;
  atomic_uint n_rung;
} Bell;

struct GpuCrewSlot {
  _Alignas(GPU_CACHE_LINES) atomic_int_least64_t next;  /* the number of the next piece to be begun */
  _Alignas(GPU_CACHE_LINES) atomic_int_least64_t ready; /* up to which number pieces can be done */
  GpuCrewJob *job;                                      /* for who has taken a piece */
  atomic_bool is_taken;
};

struct GpuCrew {
  GpuCrewSlot slots[GPU_CREW_JOBS];
  Bell work;     /* a piece can be done, or it is time to go */
  Bell progress; /* a piece is done */
  bool lingers;
  atomic_bool ends;
  unsigned n_threads;
  pthread_t *threads;
};

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
ring (Bell *bell, unsigned n_woken)
{
  if (atomic_load (&bell->n_asleep) == 0)
    return;
  atomic_fetch_add (&bell->n_rung, 1);
  syscall (SYS_futex, &bell->n_rung, FUTEX_WAKE_PRIVATE, n_woken, NULL, NULL, 0);
}

/* Until the bell is rung, or for no reason. */
static void
sleep_unless (Bell *bell, bool (*is_due) (void *data), void *data)
{
  atomic_fetch_add (&bell->n_asleep, 1);
  const unsigned n_rung = atomic_load (&bell->n_rung);
  if (!is_due (data))
    syscall (SYS_futex, &bell->n_rung, FUTEX_WAIT_PRIVATE, n_rung, NULL, NULL, 0);
  atomic_fetch_sub (&bell->n_asleep, 1);
}

/* Looks for a while. */
static bool
linger (bool (*is_due) (void *data), void *data)
{
  const int64_t end = now () + LINGER_NS;
  do {
    for (unsigned i = 0; i < 32; i++) {
      if (is_due (data))
        return true;
      relax ();
    }
  } while (now () < end);
  return false;
}

static void
await (GpuCrew *crew, Bell *bell, bool (*is_due) (void *data), void *data)
{
  if (!crew->lingers || !linger (is_due, data))
    sleep_unless (bell, is_due, data);
}

/* @end stays right, however late it is used. */
static bool
take_before (GpuCrewSlot *slot, int64_t end, int64_t *number)
{
  *number = atomic_load (&slot->next);
  while (*number < end)
    if (atomic_compare_exchange_weak (&slot->next, number, *number + 1))
      return true;
  return false;
}

/* A piece that the caller has taken. */
static void
do_piece (GpuCrew *crew, GpuCrewSlot *slot, int64_t number)
{
  GpuCrewJob *job = slot->job;
  const unsigned i = (unsigned)(number - job->first);
  job->func (job->data, i);
  atomic_store (&job->done[i], true); /* and the job may be gone */
  ring (&crew->progress, INT_MAX);
}

static bool
do_any (GpuCrew *crew)
{
  int64_t number;
  for (unsigned i = 0; i < GPU_CREW_JOBS; i++) {
    if (!take_before (&crew->slots[i], atomic_load (&crew->slots[i].ready), &number))
      continue;
    do_piece (crew, &crew->slots[i], number);
    return true;
  }
  return false;
}

static bool
has_work (void *data)
{
  GpuCrew *crew = data;
  for (unsigned i = 0; i < GPU_CREW_JOBS; i++)
    if (atomic_load (&crew->slots[i].next) < atomic_load (&crew->slots[i].ready))
      return true;
  return atomic_load (&crew->ends);
}

static void *
run_helper (void *data)
{
  GpuCrew *crew = data;
  while (!atomic_load (&crew->ends))
    if (!do_any (crew))
      await (crew, &crew->work, has_work, crew);
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
  GpuCrew *crew = g_aligned_alloc0 (1, sizeof *crew, _Alignof(GpuCrew));
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
  for (unsigned i = 0; i < GPU_CREW_JOBS; i++)
    g_assert (!atomic_load (&crew->slots[i].is_taken));
  atomic_store (&crew->ends, true);
  ring (&crew->work, INT_MAX);
  for (unsigned i = 0; i < crew->n_threads; i++)
    pthread_join (crew->threads[i], NULL);
  g_free (crew->threads);
  g_aligned_free (crew);
}

static bool
is_of_crew (const GpuCrew *crew, const GpuCrewSlot *slot)
{
  return slot >= crew->slots && slot < crew->slots + GPU_CREW_JOBS;
}

/* Where all are taken, one that no helper knows. */
static GpuCrewSlot *
get_slot (GpuCrew *crew)
{
  for (unsigned i = 0; i < GPU_CREW_JOBS; i++)
    if (!atomic_exchange (&crew->slots[i].is_taken, true))
      return &crew->slots[i];
  return g_aligned_alloc0 (1, sizeof (GpuCrewSlot), _Alignof(GpuCrewSlot));
}

void
gpu_crew_begin (GpuCrew *crew, GpuCrewJob *job)
{
  GpuCrewSlot *slot = get_slot (crew);
  job->slot = slot;
  job->first = atomic_load (&slot->next);
  job->finished = 0;
  job->done = g_new0 (atomic_bool, job->n);
  slot->job = job;
  atomic_store (&slot->ready, job->first + job->ready);
  /* The caller takes one of them. */
  if (job->ready > 1)
    ring (&crew->work, job->ready - 1);
}

void
gpu_crew_allow (GpuCrew *crew, GpuCrewJob *job, unsigned ready)
{
  if (ready <= job->ready)
    return;
  const unsigned more = ready - job->ready;
  job->ready = ready;
  atomic_store (&job->slot->ready, job->first + ready);
  ring (&crew->work, more);
}

void
gpu_crew_rouse (GpuCrew *crew)
{
  if (crew->lingers)
    ring (&crew->work, INT_MAX);
}

bool
gpu_crew_help (GpuCrew *crew, GpuCrewJob *job)
{
  const unsigned n_helpers = is_of_crew (crew, job->slot) ? crew->n_threads : 0;
  int64_t number;
  if (!take_before (job->slot, job->first + job->ready - n_helpers, &number))
    return false;
  do_piece (crew, job->slot, number);
  return true;
}

void
gpu_crew_pause (GpuCrew *crew)
{
  if (crew->lingers)
    relax ();
  else
    sched_yield ();
}

static bool
is_done (void *done)
{
  return atomic_load ((atomic_bool *)done);
}

static unsigned
count_finished (GpuCrewJob *job)
{
  while (job->finished < job->n && is_done (&job->done[job->finished]))
    job->finished++;
  return job->finished;
}

unsigned
gpu_crew_finish (GpuCrew *crew, GpuCrewJob *job, unsigned wanted)
{
  int64_t number;
  while (count_finished (job) < wanted) {
    if (take_before (job->slot, job->first + wanted, &number))
      do_piece (crew, job->slot, number);
    else
      await (crew, &crew->progress, is_done, &job->done[job->finished]);
  }
  return job->finished;
}

void
gpu_crew_end (GpuCrew *crew, GpuCrewJob *job)
{
  /* What nobody has begun by now, nobody will; pieces are begun in order. */
  const int64_t begun = atomic_exchange (&job->slot->next, job->first + job->n) - job->first;
  while (count_finished (job) < begun)
    await (crew, &crew->progress, is_done, &job->done[job->finished]);
  g_free (job->done);
  if (is_of_crew (crew, job->slot))
    atomic_store (&job->slot->is_taken, false);
  else
    g_aligned_free (job->slot);
}
