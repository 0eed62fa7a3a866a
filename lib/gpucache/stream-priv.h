/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Streams from inside (rules 19 to 24): the numbers, the events, and what a stream has waited for.
 *
 * A stream counts what is submitted to it; a point is (stream, number). Whether a point is ordered on a stream is a
 * comparison of numbers: it lies on that stream itself, has been observed complete, or lies at or before what that
 * stream waited for, which is its clock.
 */
#pragma once

#include "device-priv.h"

#include <gpucache/stream.h>

typedef struct GpuScope GpuScope;

/* clock.c: what a stream has waited for at a time. Immutable and shared by the events recorded then. */
typedef struct {
  uint64_t id;
  uint64_t number;
} GpuClockEntry;

typedef struct {
  atomic_uint refs;
  unsigned n;
  GpuClockEntry entry[]; /* sorted by id */
} GpuClock;

GpuClock *gpu_clock_ref (GpuClock *clock);
void gpu_clock_unref (GpuClock *clock);
/** Up to which number of stream @id the clock's owner is ordered; 0 if it never waited for it. NULL is an empty clock.
 */
uint64_t gpu_clock_get (const GpuClock *clock, uint64_t id);
/** Returns: (transfer full): @clock with @other and the point (@id, @number) merged in; @self's own entry is left out.
 * Beyond a bound what is past is forgotten, then the oldest streams, which costs one more wait when they are met
 * again. */
GpuClock *gpu_clock_merge (const GpuClock *clock, const GpuClock *other, uint64_t id, uint64_t number, uint64_t self);

/* event.c: events are recycled, by each stream and, beyond its life, in one pool a device (a context). */
typedef struct GpuEvent GpuEvent;
struct GpuEvent {
  _Alignas(GPU_CACHE_LINES) atomic_uint refs;
  GpuEventPool *pool;
  void *native;
  uint64_t number; /* its stream's when it was recorded */
  GpuClock *clock; /* its stream's when it was recorded */
  GpuEvent *next;  /* later on the same stream, or the next one to be recorded anew */
};

GpuEventPool *gpu_event_pool_new (GpuDevice *device);
/** All events must have been let go of. */
void gpu_event_pool_free (GpuEventPool *pool);
GpuEvent *gpu_event_new (GpuEventPool *pool, GError **error);
GpuEvent *gpu_event_ref (GpuEvent *event);
void gpu_event_unref (GpuEvent *event);
/** Whether the caller has the only reference, while nobody can take another: then the event is as a new one. */
bool gpu_event_renew (GpuEvent *event);

/** What the layer above does for streams, which know nothing of it: it hangs these on the device (stream_hooks). */
struct GpuStreamHooks {
  /* Returns: (transfer full): the scope of a new stream that is to have its own. */
  GpuScope *(*scope_new) (GpuDevice *device, uint64_t stream_id);
  /* (transfer full): its stream is gone. */
  void (*scope_end) (GpuScope *scope);
  /* The host has waited for the stream. */
  void (*synchronized) (GpuStream *stream);
};

/** A stream for the device itself, on which it holds no reference. */
GpuStream *gpu_stream_new_internal (GpuDevice *device, GError **error);

/** Whether nobody needs to know any more who waited for that point: it has been observed complete, or no point of the
 * stream @id is left. */
bool gpu_stream_is_past (uint64_t id, uint64_t number);

/** Points hold a stream's record: the numbers and events, which outlive the native stream. */
GpuStream *gpu_stream_hold (GpuStream *stream);
void gpu_stream_release (GpuStream *stream);

/** Returns: @point with a hold of its own, for gpu_stream_release() on its stream. */
static inline GpuPoint
gpu_point_hold (const GpuPoint *point)
{
  return (GpuPoint){gpu_stream_hold (point->stream), point->number};
}

/** No owner of a stream of @device is left, and the device is about to go. What still holds their records, histories of
 * other devices' memory, learns that all of it is complete, or that nobody will ever know (rule 24). */
void gpu_streams_part (GpuDevice *device, bool complete);

/** The scope that the stream carries, or NULL. */
GpuScope *gpu_stream_scope (GpuStream *stream);

/** Work that gpu_stream_submit() gives to the device, with the stream's native handle. */
typedef bool (*GpuSubmitFunc) (GpuDevice *device, void *native, void *data, GError **error);

/** Under the stream's lock: the driver call first, then the number, only on success (rule 21).
 * Returns: the number of the submission, 0 with @error set. */
uint64_t gpu_stream_submit (GpuStream *stream, GpuSubmitFunc func, void *data, GError **error);

/** Enters work that others submitted: advances the count. Returns: its number. */
uint64_t gpu_stream_advance (GpuStream *stream);

/** The number of the last submission. */
uint64_t gpu_stream_present (GpuStream *stream);

/** Numbers only, no driver call. */
bool gpu_stream_is_ordered (GpuStream *stream, const GpuPoint *point);
bool gpu_point_observed (const GpuPoint *point);

/** What @stream has waited for of @other: all of other's points up to the number returned are ordered on it. */
uint64_t gpu_stream_waited (GpuStream *stream, uint64_t other_id);

/** Returns: (transfer full) (nullable): what @stream has waited for so far; NULL if nothing. */
GpuClock *gpu_stream_get_clock (GpuStream *stream);

/** Makes later work of @stream wait for @point unless that is ordered already; @added says which, if not NULL. */
bool gpu_stream_wait_point (GpuStream *stream, const GpuPoint *point, bool *added, GError **error);

/** Whether @point can be waited for: its device is neither gone nor lost, or it has been observed complete. No driver
 * call. */
bool gpu_point_is_reachable (const GpuPoint *point);

/** Asks the device whether @point is complete, recording an event only if none is there at or after it. */
GpuStatus gpu_point_query (const GpuPoint *point, GError **error);

/** Has the device call @func once the work of @stream so far is complete (see GpuDeviceFuncs.host_call). */
bool gpu_stream_call (GpuStream *stream, void (*func) (void *data), void *data, GError **error);

/**
 * Like gpu_point_mark(), but records no event if one was recorded at or after @last, an earlier point. Of points marked
 * so, each with the one before as @last, every other one needs an event of its own at most, and none where others who
 * use the stream record some.
 */
bool gpu_point_mark_since (GpuPoint *point, GpuStream *stream, const GpuPoint *last, GError **error);

/** gpu_point_wait() whose wait counts as a throttle wait. */
bool gpu_point_wait_throttled (const GpuPoint *point, GError **error);

/** An event at the present point, for histories on several streams, foreign streams (rule 22) and wrapped memory. */
bool gpu_stream_mark (GpuStream *stream, GError **error);

/** Whether others submit to it, too. */
bool gpu_stream_is_foreign (GpuStream *stream);

#include <gpucache/image.h>

/** An image's accesses: the last write and the reads since (rule 20). The holder serialises. */
typedef struct {
  GpuPoint write;
  GpuPoint own_read; /* the last one on the write's stream, for which that is held; or none */
  /* The stream that all of them lie on, if it is known to be one. Whoever finds its own stream here has nothing to wait
   * for, and need not be serialised with who enters accesses: what is entered meanwhile is in no order with it. */
  _Atomic (GpuStream *) only;
  unsigned n_reads; /* on other streams */
  unsigned reads_allocated;
  GpuPoint *reads;
  GpuPoint first_reads[2]; /* what reads points to until there are more */
} GpuHistory;

/** How many of a history's accesses may have to be waited for by one of @flags: for a read the last write, for a write
 * the last access on the write's stream, which orders all on that stream, and the reads on others. */
static inline unsigned
gpu_history_n_points (const GpuHistory *history, GpuAccessFlags flags)
{
  return flags & GPU_ACCESS_WRITE ? history->n_reads + 1 : 1;
}

/** Number @i of them, from 0 on; the first one has no stream if there was no write. */
static inline const GpuPoint *
gpu_history_point (const GpuHistory *history, GpuAccessFlags flags, unsigned i)
{
  if (i > 0)
    return &history->reads[i - 1];
  return flags & GPU_ACCESS_WRITE && history->own_read.number > history->write.number ? &history->own_read
                                                                                      : &history->write;
}

/** Whether all accesses lie on @stream, which somebody owns; false if that is not known. */
static inline bool
gpu_history_is_on (const GpuHistory *history, const GpuStream *stream)
{
  return atomic_load_explicit (&history->only, memory_order_acquire) == stream;
}

void gpu_history_init (GpuHistory *history);
void gpu_history_clear (GpuHistory *history);
/** Enters a read or write; a write removes only what is ordered on its own stream (rule 20), what is not stays as a
 * read to be waited for. */
void gpu_history_add (GpuHistory *history, const GpuPoint *point, GpuAccessFlags flags);
/** Makes the one write @write (which may be zero) the whole history: for an allocation that nobody observes and whose
 * accesses are all ordered before it. */
void gpu_history_set (GpuHistory *history, const GpuPoint *write);
bool gpu_history_is_ordered (const GpuHistory *history, GpuStream *stream);
bool gpu_history_observed (const GpuHistory *history);

typedef enum {
  GPU_HISTORY_COMPLETE,   /* every access has been observed complete */
  GPU_HISTORY_ONE_STREAM, /* those that have not lie on one stream */
  GPU_HISTORY_MIXED,      /* they lie on several */
} GpuHistoryKind;

/** Sorts a history by numbers alone. @last: borrowed; the last access that is not complete if all those lie on one
 * stream, else one of the last accesses. */
GpuHistoryKind gpu_history_kind (const GpuHistory *history, GpuPoint *last);

/** Whether every access can be waited for, by gpu_point_is_reachable(). */
bool gpu_history_is_reachable (const GpuHistory *history);

/** Appends the accesses that have not been observed complete to @points, an array of GpuPoint; held for the caller. */
void gpu_history_list_pending (const GpuHistory *history, GArray *points);
/** Makes @stream wait for every access that is not ordered on it. */
bool gpu_history_wait (const GpuHistory *history, GpuStream *stream, GError **error);
