/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A crew: threads that help a caller with a job of many pieces. One thread copies memory at a fifth of what the bus to
 * a GPU takes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct GpuCrew GpuCrew;
typedef struct GpuCrewJob GpuCrewJob;
typedef struct GpuCrewSlot GpuCrewSlot;

/** Does piece @i; on any thread, several at a time. */
typedef void (*GpuCrewFunc) (void *data, unsigned i);

/** How many jobs at a time have helpers. What is more than that, its owner does alone. */
#define GPU_CREW_JOBS 8

/** A job: what comes first is filled in by its owner, the rest is the crew's. */
struct GpuCrewJob {
  GpuCrewFunc func;
  void *data;
  unsigned n;
  unsigned ready; /* how many of the first pieces can be done by now */

  GpuCrewSlot *slot;
  int64_t first;     /* its first piece's number */
  unsigned finished; /* how many of the first pieces are done */
  atomic_bool *done; /* which pieces are */
};

/** How many helpers a crew had best have on this machine, so that they and their caller keep up with a bus. */
unsigned gpu_crew_best_size (void);
/** Whether so many helpers may linger: there are processors for them, for their caller and for others. */
bool gpu_crew_may_linger (unsigned n_threads);

/** @lingers: whether who has nothing to do looks for work for some 250 us before it sleeps, where processors are many.
 * Returns: (transfer full): a crew with @n_threads helpers, or fewer if the system gives no more. */
GpuCrew *gpu_crew_new (unsigned n_threads, bool lingers);
/** No job may be under way. */
void gpu_crew_free (GpuCrew *crew);

/** Puts a job forward; the crew begins at once. */
void gpu_crew_begin (GpuCrew *crew, GpuCrewJob *job);
/** @ready of its first pieces can be done, or more. */
void gpu_crew_allow (GpuCrew *crew, GpuCrewJob *job, unsigned ready);
/** There will be work soon: who sleeps begins to look for it, if the crew lingers. */
void gpu_crew_rouse (GpuCrew *crew);
/** For who has to allow more soon, and would be late with that while doing a piece: does one only if more can be done
 * than there are helpers, who have enough until then. */
bool gpu_crew_help (GpuCrew *crew, GpuCrewJob *job);
/** For who looks for something again and again: lets others go first, or, where processors are many, a moment pass. */
void gpu_crew_pause (GpuCrew *crew);
/** Helps until at least @wanted of the first pieces, which can all be done, are. Returns: how many are. */
unsigned gpu_crew_finish (GpuCrew *crew, GpuCrewJob *job, unsigned wanted);
/** Takes the job back: pieces that were begun are waited for, others are left. */
void gpu_crew_end (GpuCrew *crew, GpuCrewJob *job);
