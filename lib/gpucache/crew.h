/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A crew: threads that help a caller with a job of many pieces. One thread copies memory at a fifth of what the bus to
 * a GPU takes.
 */
#pragma once

#include <stdbool.h>

typedef struct GpuCrew GpuCrew;
typedef struct GpuCrewJob GpuCrewJob;

/** Does piece @i; on any thread, several at a time. */
typedef void (*GpuCrewFunc) (void *data, unsigned i);

/** A job: @func, @data, @n and @ready are filled in by its owner, the rest is the crew's. */
struct GpuCrewJob {
  GpuCrewFunc func;
  void *data;
  unsigned n;
  unsigned ready; /* how many of the first pieces can be done by now */

  unsigned next;     /* the next piece to be done */
  unsigned finished; /* how many of the first pieces are done */
  bool *done;        /* which of those after them are */
  GpuCrewJob *behind;
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
/** @ready of its first pieces can be done, or more. Whether there is a helper to do them. */
bool gpu_crew_allow (GpuCrew *crew, GpuCrewJob *job, unsigned ready);
/** Does a piece that can be done, if there is one that nobody has begun. */
bool gpu_crew_help (GpuCrew *crew, GpuCrewJob *job);
/** Helps until at least @wanted of the first pieces, which can all be done, are. Returns: how many are. */
unsigned gpu_crew_finish (GpuCrew *crew, GpuCrewJob *job, unsigned wanted);
/** Takes the job back: pieces that were begun are waited for, others are left. */
void gpu_crew_end (GpuCrew *crew, GpuCrewJob *job);
