/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Streams and points (rules 19 to 24).
 *
 * The struct has two lives. Owners (refs) keep the native stream; points (holds) keep the record: numbers, events and
 * clock. When the last owner lets go, a last event is recorded, so that every point can still be waited for and
 * asked about after the native stream is gone. A record may even outlive its device, since histories of another
 * device's memory hold it, too: it is gone then, and knows only what is complete.
 */
#include "stream-priv.h"

/* With so many events outstanding a new one first asks for the oldest, so that a list of events stays short. */
#define MANY_EVENTS 8

/* Of so many submissions since somebody was last told of an event one asks for the oldest. Elements that keep frames in
 * flight (throttle.c) ask more often than that, and then no submission does. */
#define ASK_EVERY 64

struct GpuStream {
  _Alignas(GPU_CACHE_LINES) atomic_uint refs;
  atomic_uint holds; /* one for all owners together */
  uint64_t id;
  GpuDevice *device;
  bool internal; /* the device's own: holds no reference on it */
  bool foreign;
  GpuScope *scope;

  atomic_uint_least64_t submitted; /* written under the lock */
  atomic_uint_least64_t completed;
  atomic_uint_least64_t recorded; /* the newest event's; written under the lock */

  pthread_mutex_t lock;
  void *native;
  bool alive;
  bool gone; /* so is its device, or soon: whoever has no reference on that looks here first */
  GpuClock *clock;
  GpuEvent *oldest, *newest; /* recorded, not observed complete; numbers ascend */
  unsigned n_events;
  GpuEvent *spare;    /* observed complete, to be recorded anew */
  unsigned n_unasked; /* submissions since an event was asked for or seen complete */
};

static atomic_uint_least64_t last_id;

/* Records that exist, by id. A leaf: taken inside any other lock. */
static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *records;

/* Wrapped handles that are alive, so that one handle is one stream. */
static pthread_mutex_t foreign_lock = PTHREAD_MUTEX_INITIALIZER;
static GPtrArray *foreign_streams;

static GpuStream *
stream_new (GpuDevice *device, void *native)
{
  GpuStream *stream = g_aligned_alloc0 (1, sizeof *stream, _Alignof(GpuStream));
  atomic_init (&stream->refs, 1);
  atomic_init (&stream->holds, 1);
  stream->id = atomic_fetch_add (&last_id, 1) + 1;
  stream->device = device;
  stream->native = native;
  stream->alive = true;
  pthread_mutex_init (&stream->lock, NULL);
  gpu_lock (&records_lock, GPU_LOCK_LEAF);
  if (!records)
    records = g_hash_table_new (g_int64_hash, g_int64_equal);
  g_hash_table_insert (records, &stream->id, stream);
  gpu_unlock (&records_lock, GPU_LOCK_LEAF);
  return stream;
}

bool
gpu_stream_is_past (uint64_t id, uint64_t number)
{
  gpu_lock (&records_lock, GPU_LOCK_LEAF);
  const GpuStream *stream = g_hash_table_lookup (records, &id);
  bool past = !stream || number <= atomic_load_explicit (&stream->completed, memory_order_relaxed);
  gpu_unlock (&records_lock, GPU_LOCK_LEAF);
  return past;
}

GpuStream *
gpu_stream_new_internal (GpuDevice *device, GError **error)
{
  void *native;
  if (!gpu_device_stream_create (device, &native, error))
    return NULL;
  GpuStream *stream = stream_new (device, native);
  stream->internal = true;
  return stream;
}

GpuStream *
gpu_stream_new (GpuDevice *device, bool own_scope, GError **error)
{
  g_return_val_if_fail (device != NULL, NULL);

  void *native;
  if (!gpu_device_check (device, error) || !gpu_device_stream_create (device, &native, error))
    return NULL;
  GpuStream *stream = stream_new (device, native);
  gpu_device_ref (device);
  if (own_scope)
    stream->scope = device->stream_hooks->scope_new (device, stream->id);
  return stream;
}

/* Takes a reference unless the last one is being dropped right now. */
static bool
try_ref (GpuStream *stream)
{
  unsigned refs = atomic_load (&stream->refs);
  while (refs > 0)
    if (atomic_compare_exchange_weak (&stream->refs, &refs, refs + 1))
      return true;
  return false;
}

GpuStream *
gpu_stream_wrap_cuda (GpuDevice *device, void *cuda_stream, GError **error)
{
  g_return_val_if_fail (device != NULL, NULL);

  if (!gpu_device_check (device, error))
    return NULL;
  if (!gpu_device_cuda_context (device)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "%s is not a CUDA device, so it has no CUDA streams to wrap; use gpu_stream_new()", device->name);
    return NULL;
  }
#ifdef GPU_HAVE_CUDA
  if (gpu_device_cuda_is_per_thread (cuda_stream)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "the per-thread default stream is another stream on each thread and cannot be wrapped; "
                 "pass a stream that was created");
    return NULL;
  }
#endif

  GpuStream *stream = NULL;
  gpu_lock (&foreign_lock, GPU_LOCK_TEARDOWN);
  if (!foreign_streams)
    foreign_streams = g_ptr_array_new ();
  for (unsigned i = 0; i < foreign_streams->len && !stream; i++) {
    GpuStream *other = g_ptr_array_index (foreign_streams, i);
    if (other->device == device && other->native == cuda_stream && try_ref (other))
      stream = other;
  }
  if (!stream) {
    stream = stream_new (gpu_device_ref (device), cuda_stream);
    stream->foreign = true;
    g_ptr_array_add (foreign_streams, stream);
  }
  gpu_unlock (&foreign_lock, GPU_LOCK_TEARDOWN);
  return stream;
}

GpuStream *
gpu_stream_ref (GpuStream *stream)
{
  atomic_fetch_add_explicit (&stream->refs, 1, memory_order_relaxed);
  return stream;
}

GpuStream *
gpu_stream_hold (GpuStream *stream)
{
  atomic_fetch_add_explicit (&stream->holds, 1, memory_order_relaxed);
  return stream;
}

static void
drop_list (GpuEvent *events)
{
  for (GpuEvent *event = events, *next; event; event = next) {
    next = event->next;
    gpu_event_unref (event);
  }
}

/* The lock is held, or nobody else is left. */
static void
drop_events (GpuStream *stream)
{
  drop_list (stream->oldest);
  drop_list (g_steal_pointer (&stream->spare));
  stream->oldest = stream->newest = NULL;
  stream->n_events = 0;
}

/* The lock is held. */
static GpuEvent *
take_event (GpuStream *stream, GError **error)
{
  GpuEvent *event = stream->spare;
  if (!event)
    return gpu_event_new (stream->device->events, error);
  stream->spare = event->next;
  event->next = NULL;
  return event;
}

/* Keeps it for the stream's next record, without anything that other streams touch, unless somebody else still refers
 * to it or the stream records no more. The lock is held. */
static void
give_event_back (GpuStream *stream, GpuEvent *event)
{
  if (!stream->alive || !gpu_event_renew (event)) {
    gpu_event_unref (event);
    return;
  }
  event->next = stream->spare;
  stream->spare = event;
}

void
gpu_stream_release (GpuStream *stream)
{
  unsigned holds = atomic_load_explicit (&stream->holds, memory_order_relaxed);
  while (holds > 1)
    if (atomic_compare_exchange_weak_explicit (&stream->holds, &holds, holds - 1, memory_order_acq_rel,
                                               memory_order_relaxed))
      return;
  /* The last one, under the lock: what is in the table can be held, and what leaves it keeps its device as long as it
   * has events of it. */
  GpuDevice *device = stream->device;
  gpu_lock (&records_lock, GPU_LOCK_LEAF);
  bool last = atomic_fetch_sub_explicit (&stream->holds, 1, memory_order_acq_rel) == 1;
  bool visits = last && !stream->gone;
  if (last)
    g_hash_table_remove (records, &stream->id);
  if (visits)
    gpu_device_visit (device);
  gpu_unlock (&records_lock, GPU_LOCK_LEAF);
  if (!last)
    return;
  if (visits) {
    drop_events (stream);
    gpu_device_leave (device);
  }
  gpu_clock_unref (stream->clock);
  pthread_mutex_destroy (&stream->lock);
  g_aligned_free (stream);
}

/* Appends an event at the present point, unless the newest is there already. The lock is held. */
static GpuEvent *
record (GpuStream *stream, GError **error)
{
  uint64_t number = atomic_load_explicit (&stream->submitted, memory_order_relaxed);
  if (stream->newest && stream->newest->number == number && !stream->foreign)
    return stream->newest;
  GpuEvent *event = take_event (stream, error);
  if (!event)
    return NULL;
  if (!gpu_device_event_record (stream->device, event->native, stream->native, error)) {
    gpu_event_unref (event);
    return NULL;
  }
  event->number = number;
  event->clock = gpu_clock_ref (stream->clock);
  if (stream->newest)
    stream->newest->next = event;
  else
    stream->oldest = event;
  stream->newest = event;
  stream->n_events++;
  atomic_store_explicit (&stream->recorded, number, memory_order_release);
  return event;
}

/* What lies at or before @number has been seen complete. The lock is held. */
static void
observe (GpuStream *stream, uint64_t number)
{
  while (stream->oldest && stream->oldest->number <= number) {
    GpuEvent *event = stream->oldest;
    stream->oldest = event->next;
    if (!stream->oldest)
      stream->newest = NULL;
    stream->n_events--;
    give_event_back (stream, event);
  }
  stream->n_unasked = 0;
  if (atomic_load_explicit (&stream->completed, memory_order_relaxed) < number)
    atomic_store_explicit (&stream->completed, number, memory_order_release);
}

/* The earliest recorded event at or after @number, or a new one if there is none (rule 22). The lock is held. */
static GpuEvent *
event_at (GpuStream *stream, uint64_t number, GError **error)
{
  for (GpuEvent *event = stream->oldest; event; event = event->next)
    if (event->number >= number)
      return event;
  if (stream->alive)
    return record (stream, error);
  if (stream->gone) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST,
                 "the device of stream %" G_GUINT64_FORMAT
                 " was lost and closed before its work was known to be complete",
                 stream->id);
    return NULL;
  }
  g_set_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST,
               "stream %" G_GUINT64_FORMAT " of %s was destroyed and its last event could not be recorded", stream->id,
               stream->device->name);
  return NULL;
}

/* References the event to wait for so that nobody records it anew, and keeps its device until release_event(); NULL if
 * @point has been observed complete meanwhile. Returns: false if @error is set. */
static bool
reference_event (const GpuPoint *point, GpuEvent **event, GError **error)
{
  GpuStream *stream = point->stream;
  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  bool observed = gpu_point_observed (point);
  *event = observed ? NULL : event_at (stream, point->number, error);
  if (*event) {
    gpu_event_ref (*event);
    gpu_device_visit (stream->device);
  }
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  return observed || *event;
}

static void
release_event (const GpuPoint *point, GpuEvent *event)
{
  gpu_event_unref (event);
  gpu_device_leave (point->stream->device);
}

static bool
poll_oldest (GpuStream *stream)
{
  GpuEvent *event = stream->oldest;
  if (!event || gpu_device_event_query (stream->device, event->native, NULL) != GPU_STATUS_COMPLETE)
    return false;
  observe (stream, event->number);
  return true;
}

/* Everything but the record ends here. */
static void
close_stream (GpuStream *stream)
{
  GpuDevice *device = stream->device;

  if (stream->foreign) {
    gpu_lock (&foreign_lock, GPU_LOCK_TEARDOWN);
    g_ptr_array_remove_fast (foreign_streams, stream);
    gpu_unlock (&foreign_lock, GPU_LOCK_TEARDOWN);
  }

  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  g_autoptr (GError) error = NULL;
  if (atomic_load (&stream->submitted) > atomic_load (&stream->completed) && !record (stream, &error))
    gpu_device_set_lost (device, error); /* rule 24: nobody could ever tell what is complete */
  stream->alive = false;
  drop_list (g_steal_pointer (&stream->spare));
  if (!stream->foreign)
    gpu_device_stream_destroy (device, stream->native);
  stream->native = NULL;
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);

  if (stream->scope) {
    device->stream_hooks->scope_end (stream->scope);
    stream->scope = NULL;
  }
  bool internal = stream->internal;
  gpu_stream_release (stream);
  if (!internal)
    gpu_device_unref (device);
}

void
gpu_stream_unref (GpuStream *stream)
{
  if (stream && atomic_fetch_sub_explicit (&stream->refs, 1, memory_order_acq_rel) == 1)
    close_stream (stream);
}

/* Records of @device's streams, held. */
static GPtrArray *
list_records (GpuDevice *device)
{
  GPtrArray *list = g_ptr_array_new_with_free_func ((GDestroyNotify)gpu_stream_release);
  GHashTableIter iter;
  gpointer value;

  gpu_lock (&records_lock, GPU_LOCK_LEAF);
  if (records) {
    g_hash_table_iter_init (&iter, records);
    while (g_hash_table_iter_next (&iter, NULL, &value)) {
      GpuStream *stream = value;
      if (stream->device == device)
        g_ptr_array_add (list, gpu_stream_hold (stream));
    }
  }
  gpu_unlock (&records_lock, GPU_LOCK_LEAF);
  return list;
}

void
gpu_streams_part (GpuDevice *device, bool complete)
{
  g_autoptr (GPtrArray) list = list_records (device);
  for (unsigned i = 0; i < list->len; i++) {
    GpuStream *stream = g_ptr_array_index (list, i);
    gpu_lock (&stream->lock, GPU_LOCK_STREAM);
    /* One that is gone already was another device's, at the same address. */
    if (!stream->gone && complete)
      observe (stream, atomic_load (&stream->submitted));
    if (!stream->gone)
      drop_events (stream);
    stream->gone = true;
    gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  }
}

bool
gpu_point_is_reachable (const GpuPoint *point)
{
  gpu_lock (&point->stream->lock, GPU_LOCK_STREAM);
  bool reachable = gpu_point_observed (point) || (!point->stream->gone && !gpu_device_is_lost (point->stream->device));
  gpu_unlock (&point->stream->lock, GPU_LOCK_STREAM);
  return reachable;
}

GpuDevice *
gpu_stream_device (GpuStream *stream)
{
  return stream->device;
}

uint64_t
gpu_stream_id (GpuStream *stream)
{
  return stream->id;
}

void *
gpu_stream_cuda_stream (GpuStream *stream)
{
  return gpu_device_cuda_context (stream->device) ? stream->native : NULL;
}

GpuScope *
gpu_stream_scope (GpuStream *stream)
{
  return stream->scope;
}

bool
gpu_stream_is_foreign (GpuStream *stream)
{
  return stream->foreign;
}

uint64_t
gpu_stream_present (GpuStream *stream)
{
  return atomic_load_explicit (&stream->submitted, memory_order_acquire);
}

/* Advances the count by one. The lock is held. */
static uint64_t
advance (GpuStream *stream)
{
  uint64_t number = atomic_load_explicit (&stream->submitted, memory_order_relaxed) + 1;
  atomic_store_explicit (&stream->submitted, number, memory_order_release);
  return number;
}

uint64_t
gpu_stream_submit (GpuStream *stream, GpuSubmitFunc func, void *data, GError **error)
{
  if (!gpu_device_check (stream->device, error))
    return 0;
  uint64_t number = 0;
  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  /* Rule 11: retirement happens in later submissions. To ask takes a GPU's driver up to as long as a launch. */
  if (stream->n_events > 1 && ++stream->n_unasked >= ASK_EVERY) {
    stream->n_unasked = 0;
    poll_oldest (stream);
  }
  if (func (stream->device, stream->native, data, error))
    number = advance (stream);
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  return number;
}

uint64_t
gpu_stream_advance (GpuStream *stream)
{
  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  uint64_t number = advance (stream);
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  return number;
}

bool
gpu_stream_mark (GpuStream *stream, GError **error)
{
  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  if (stream->n_events >= MANY_EVENTS)
    poll_oldest (stream);
  bool ok = !stream->alive || record (stream, error) != NULL;
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  return ok;
}

GpuClock *
gpu_stream_get_clock (GpuStream *stream)
{
  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  GpuClock *clock = gpu_clock_ref (stream->clock);
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  return clock;
}

uint64_t
gpu_stream_waited (GpuStream *stream, uint64_t other_id)
{
  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  uint64_t number = gpu_clock_get (stream->clock, other_id);
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  return number;
}

bool
gpu_point_observed (const GpuPoint *point)
{
  return !point->stream || point->number <= atomic_load_explicit (&point->stream->completed, memory_order_acquire);
}

bool
gpu_stream_is_ordered (GpuStream *stream, const GpuPoint *point)
{
  return point->stream == stream || gpu_point_observed (point) ||
         point->number <= gpu_stream_waited (stream, point->stream->id);
}

bool
gpu_stream_wait_point (GpuStream *stream, const GpuPoint *point, bool *added, GError **error)
{
  if (added)
    *added = false;
  if (gpu_stream_is_ordered (stream, point))
    return true;

  /* One lock at a time: the event is referenced until the wait is issued. */
  GpuStream *other = point->stream;
  GpuEvent *event;
  if (!reference_event (point, &event, error))
    return false;
  if (!event)
    return true;

  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  bool ok = gpu_device_stream_wait (stream->device, stream->native, other->device, event->native, error);
  if (ok) {
    /* A wait is a submission: an event recorded before it must not stand for points after it. */
    advance (stream);
    GpuClock *clock = gpu_clock_merge (stream->clock, event->clock, other->id, event->number, stream->id);
    gpu_clock_unref (stream->clock);
    stream->clock = clock;
  }
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  release_event (point, event);
  if (ok && added)
    *added = true;
  return ok;
}

bool
gpu_stream_wait_stream (GpuStream *stream, GpuStream *other, GError **error)
{
  g_return_val_if_fail (stream != NULL && other != NULL, false);

  if (stream->device != other->device) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "a stream of %s cannot wait for one of %s; copy what is to be used to the same device",
                 stream->device->name, other->device->name);
    return false;
  }
  const GpuPoint point = {other, gpu_stream_present (other)};
  if (other->foreign) {
    if (stream == other)
      return true;
    /* Others submit to it without our knowing, so its present point is always new. */
    const GpuPoint present = {other, gpu_stream_advance (other)};
    return gpu_stream_wait_point (stream, &present, NULL, error);
  }
  return gpu_stream_wait_point (stream, &point, NULL, error);
}

GpuStatus
gpu_point_query (const GpuPoint *point, GError **error)
{
  if (gpu_point_observed (point))
    return GPU_STATUS_COMPLETE;
  GpuStream *stream = point->stream;
  GpuStatus status = GPU_STATUS_FAILED;
  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  if (gpu_point_observed (point)) {
    status = GPU_STATUS_COMPLETE; /* by another thread meanwhile */
  } else {
    GpuEvent *event = event_at (stream, point->number, error);
    if (event)
      status = gpu_device_event_query (stream->device, event->native, error);
    if (status == GPU_STATUS_COMPLETE)
      observe (stream, event->number);
  }
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  return status;
}

/* A call is a submission, so that waiting for the stream's present point waits for it, too. */
bool
gpu_stream_call (GpuStream *stream, void (*func) (void *data), void *data, GError **error)
{
  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  bool ok = gpu_device_host_call (stream->device, func, data, stream->native, error);
  if (ok)
    advance (stream);
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  return ok;
}

/* Waits on the host unless the device says that it is complete. */
static bool
wait_for (const GpuPoint *point, bool is_throttle, GError **error)
{
  GpuStatus status = gpu_point_query (point, error);
  if (status != GPU_STATUS_PENDING)
    return status == GPU_STATUS_COMPLETE;

  GpuStream *stream = point->stream;
  GpuEvent *event;
  if (!reference_event (point, &event, error))
    return false;
  if (!event)
    return true;

  GpuDevice *device = stream->device;
  uint64_t number = event->number;
  atomic_fetch_add_explicit (is_throttle ? &device->throttle_waits : &device->host_waits, 1, memory_order_relaxed);
  bool ok = gpu_device_event_synchronize (device, event->native, error);
  if (ok) {
    gpu_lock (&stream->lock, GPU_LOCK_STREAM);
    observe (stream, number);
    gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  }
  release_event (point, event);
  return ok;
}

bool
gpu_point_wait_throttled (const GpuPoint *point, GError **error)
{
  return wait_for (point, true, error);
}

bool
gpu_point_wait (const GpuPoint *point, GError **error)
{
  return wait_for (point, false, error);
}

bool
gpu_point_is_complete (const GpuPoint *point)
{
  return gpu_point_query (point, NULL) == GPU_STATUS_COMPLETE;
}

void
gpu_point_clear (GpuPoint *point)
{
  if (!point->stream)
    return;
  GpuDevice *device = point->stream->device;
  gpu_stream_release (point->stream);
  gpu_device_unref (device);
  *point = (GpuPoint){0};
}

static void
set_point (GpuPoint *point, GpuStream *stream)
{
  if (point->stream != stream) {
    gpu_point_clear (point);
    gpu_device_ref (stream->device);
    point->stream = gpu_stream_hold (stream);
  }
  point->number = stream->foreign ? gpu_stream_advance (stream) : gpu_stream_present (stream);
}

bool
gpu_point_mark (GpuPoint *point, GpuStream *stream, GError **error)
{
  g_return_val_if_fail (point != NULL && stream != NULL, false);

  set_point (point, stream);
  return gpu_point_observed (point) || gpu_stream_mark (stream, error);
}

/* Whether there was an event at or after @point at some time: it is there still, or the point has been observed. */
static bool
has_event (const GpuPoint *point)
{
  return point->number <= atomic_load_explicit (&point->stream->recorded, memory_order_acquire);
}

/* Records an event unless there is one at or after @point. */
static bool
ensure_event (const GpuPoint *point, GError **error)
{
  GpuStream *stream = point->stream;
  if (gpu_point_observed (point) || has_event (point))
    return true;
  gpu_lock (&stream->lock, GPU_LOCK_STREAM);
  bool ok = has_event (point) || !stream->alive || record (stream, error) != NULL;
  gpu_unlock (&stream->lock, GPU_LOCK_STREAM);
  return ok;
}

bool
gpu_point_mark_since (GpuPoint *point, GpuStream *stream, const GpuPoint *last, GError **error)
{
  g_return_val_if_fail (point != NULL && stream != NULL && last != NULL && last != point, false);

  if (last->stream && !ensure_event (last, error))
    return false;
  if (last->stream != stream || stream->foreign)
    return gpu_point_mark (point, stream, error);
  set_point (point, stream);
  return true;
}

bool
gpu_stream_synchronize (GpuStream *stream, GError **error)
{
  g_return_val_if_fail (stream != NULL, false);

  if (!gpu_device_check (stream->device, error))
    return false;
  const GpuPoint present = {stream, stream->foreign ? gpu_stream_advance (stream) : gpu_stream_present (stream)};
  bool ok = gpu_point_wait (&present, error);
  if (!stream->internal)
    stream->device->stream_hooks->synchronized (stream);
  return ok;
}
