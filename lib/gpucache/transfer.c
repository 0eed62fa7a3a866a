/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Staged copies: a frame in plain memory and the same frame in pinned memory of the cache, cut into slices of rows. The
 * crew copies slices on the host while the device moves those that are ready, or the other way round. The pinned frame
 * goes back to the cache at once and is pending there until the device has read it.
 */
#include "transfer-priv.h"

#include "cache-priv.h"
#include "image-priv.h"

#include <string.h>
#include <time.h>

/* What one thread copies at a time, and what the device is given at once, in slices. The device pauses after each, and
 * staged uploads measured 3 to 6 us more for each of 1 MiB; on the other hand the host's last slices come after the
 * device's last move, and its first ones before the device's first: so slices are small enough for each thread to have
 * one of the smallest move. */
#define SLICE_BYTES ((size_t)32 << 10)
#define LEAST_SLICES 8
#define MOST_SLICES 64

/* How long slices that are on their way are looked for before they are slept for: the wake-up would take longer than a
 * slice. */
#define LOOK_NS 500000

typedef struct {
  unsigned plane;
  uint32_t row, rows;
} Slice;

typedef struct {
  GpuImage *image, *pinned;
  const GpuImageSpec *host_spec;
  uint8_t *host;
  bool inwards;
  GpuStagingPlan plan;
  GpuStagingTimes times;
  GArray *slices;
  GpuCrew *crew;
  GpuCrewJob job;
  unsigned sent; /* how many of the slices the device has been told to move */

  /* On the way out */
  GArray *arrivals; /* Arrival, all that have been sent */
  unsigned come;    /* how many slices are seen to have come */
  bool is_alone;    /* there are no helpers */
} Staging;

/* A move of the device's on the way out: the slices up to @end, when @point is complete, if there is one. */
typedef struct {
  unsigned end;
  GpuPoint point;
} Arrival;

/* The device reads and writes slices [@first, @end), as few copies as planes allow, and then @word, if there is one. */
typedef struct {
  const Staging *staging;
  unsigned first, end;
  GpuCrewWord *word;
  unsigned mark;
} Move;

static GArray *
cut (const GpuImageSpec *spec, size_t slice_bytes)
{
  GArray *slices = g_array_new (false, false, sizeof (Slice));
  unsigned n_planes = gpu_format_info (spec->format)->n_planes;
  for (unsigned plane = 0; plane < n_planes; plane++) {
    size_t row_bytes = MAX (gpu_image_spec_row_bytes (spec, plane), 1);
    uint32_t height = gpu_image_spec_plane_height (spec, plane);
    uint32_t most = (uint32_t)CLAMP (slice_bytes / row_bytes, 1, height);
    for (uint32_t row = 0; row < height; row += most) {
      const Slice slice = {plane, row, MIN (most, height - row)};
      g_array_append_val (slices, slice);
    }
  }
  return slices;
}

static GpuCopy
describe (const GpuImageSpec *to, uint8_t *dst, const GpuImageSpec *from, const uint8_t *src, const Slice *slice)
{
  unsigned plane = slice->plane;
  return (GpuCopy){.dst = dst + to->offset[plane] + slice->row * to->stride[plane],
                   .dst_stride = to->stride[plane],
                   .src = src + from->offset[plane] + slice->row * from->stride[plane],
                   .src_stride = from->stride[plane],
                   .row_bytes = gpu_image_spec_row_bytes (to, plane),
                   .rows = slice->rows};
}

static void
copy_on_host (void *data, unsigned i)
{
  const Staging *staging = data;
  const Slice *slice = &g_array_index (staging->slices, Slice, i);
  const GpuImageSpec *pinned_spec = &staging->pinned->spec;
  uint8_t *pinned = staging->pinned->data;
  GpuCopy copy = staging->inwards ? describe (pinned_spec, pinned, staging->host_spec, staging->host, slice)
                                  : describe (staging->host_spec, staging->host, pinned_spec, pinned, slice);

  if (copy.dst_stride == copy.row_bytes && copy.src_stride == copy.row_bytes) {
    staging->plan.copy (copy.dst, copy.src, copy.row_bytes * copy.rows);
    return;
  }
  for (size_t y = 0; y < copy.rows; y++)
    staging->plan.copy ((uint8_t *)copy.dst + y * copy.dst_stride, (const uint8_t *)copy.src + y * copy.src_stride,
                        copy.row_bytes);
}

static void
copy_plainly (void *dst, const void *src, size_t size)
{
  memcpy (dst, src, size);
}

static bool
tell (GpuDevice *device, void *native, void *data, GError **error)
{
  const Move *move = data;
  return gpu_device_write_word (device, &move->word->mark, move->mark, native, error);
}

static bool
copy_on_device (GpuDevice *device, void *native, void *data, GError **error)
{
  const Move *move = data;
  const Staging *staging = move->staging;
  GpuImage *src = staging->inwards ? staging->pinned : staging->image;
  GpuImage *dst = staging->inwards ? staging->image : staging->pinned;

  for (unsigned i = move->first; i < move->end;) {
    Slice joined = g_array_index (staging->slices, Slice, i++);
    for (; i < move->end && g_array_index (staging->slices, Slice, i).plane == joined.plane; i++)
      joined.rows += g_array_index (staging->slices, Slice, i).rows;
    const GpuCopy copy = describe (&dst->spec, dst->data, &src->spec, src->data, &joined);
    if (!gpu_device_copy (device, &copy, GPU_COPY_DEVICE, native, error))
      return false;
  }
  return !move->word || tell (device, native, data, error);
}

static int64_t
now (void)
{
  struct timespec time;
  clock_gettime (CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Has the device move the slices that are next, up to @end. */
static bool
send (Staging *staging, GpuStream *stream, unsigned end, GError **error)
{
  Move what = {staging, staging->sent, end, staging->job.word, gpu_crew_mark (&staging->job, end)};
  bool ok = staging->inwards
                ? gpu_images_submit (stream, &staging->pinned, 1, &staging->image, 1, copy_on_device, &what, error)
                : gpu_images_submit (stream, &staging->image, 1, &staging->pinned, 1, copy_on_device, &what, error);
  staging->sent = end;
  staging->times.sent = now ();
  return ok;
}

static GpuCrew *
get_crew (GpuDevice *device)
{
  GpuCrew *crew = atomic_load_explicit (&device->crew, memory_order_acquire);
  if (crew)
    return crew;
  pthread_mutex_lock (&device->lock);
  crew = atomic_load (&device->crew);
  if (!crew) {
    crew = gpu_crew_new (gpu_crew_best_size (), gpu_crew_may_linger (gpu_crew_best_size ()));
    atomic_store_explicit (&device->crew, crew, memory_order_release);
  }
  pthread_mutex_unlock (&device->lock);
  return crew;
}

void
gpu_device_set_crew (GpuDevice *device, unsigned n_threads, bool lingers)
{
  GpuCrew *crew = atomic_exchange (&device->crew, gpu_crew_new (n_threads, lingers));
  if (crew)
    gpu_crew_free (crew);
}

static bool
prepare (Staging *staging, GpuStream *stream, GError **error)
{
  GpuImageSpec spec = staging->image->spec;
  spec.alignment = GPU_DEFAULT_ALIGNMENT;
  staging->times.begun = now ();
  staging->pinned =
      gpu_image_acquire (gpu_stream_device (stream), &spec, GPU_MEMORY_HOST, stream, GPU_ACQUIRE_HOST, error);
  staging->times.prepared = now ();
  if (!staging->pinned)
    return false;
  if (!staging->plan.copy)
    staging->plan.copy = copy_plainly;
  staging->slices = cut (&spec, staging->plan.slice_bytes);
  staging->crew = get_crew (gpu_stream_device (stream));
  staging->job = (GpuCrewJob){.func = copy_on_host, .data = staging, .n = staging->slices->len};
  return true;
}

static void
finish (Staging *staging)
{
  gpu_crew_end (staging->crew, &staging->job);
  staging->times.done = now ();
  if (staging->plan.times)
    *staging->plan.times = staging->times;
  g_array_unref (staging->slices);
  gpu_image_unref (staging->pinned);
}

bool
gpu_image_stage_in (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec,
                    GpuStagingPlan plan, GError **error)
{
  Staging staging = {.image = image, .host_spec = host_spec, .host = (uint8_t *)host, .inwards = true, .plan = plan};
  if (!prepare (&staging, stream, error))
    return false;

  const unsigned n = staging.job.n;
  staging.job.ready = n;
  bool ok = true;
  gpu_crew_begin (staging.crew, &staging.job);
  while (ok && staging.sent < n) {
    /* As many as the device has already: while it moves those, the crew copies as many more. */
    const unsigned wanted = MIN (staging.sent + CLAMP (staging.sent, plan.least, plan.most), n);
    const bool is_first = staging.sent == 0;
    ok = send (&staging, stream, gpu_crew_finish (staging.crew, &staging.job, wanted), error);
    if (is_first)
      staging.times.first = staging.times.sent;
  }
  staging.times.last = staging.times.sent;
  finish (&staging);
  return ok;
}

/* Words that the device writes for the crew, or NULL where it cannot. Made for the first copy that wants them: pinning
 * memory may wait for the device, for which copies the other way do not. */
static GpuCrewWord *
get_words (GpuStream *stream)
{
  GpuDevice *device = gpu_stream_device (stream);
  const size_t size = GPU_CREW_JOBS * sizeof (GpuCrewWord);
  GpuCrewWord *words = atomic_load_explicit (&device->crew_words, memory_order_acquire);
  void *fresh;
  if (words || atomic_load_explicit (&device->writes_no_words, memory_order_relaxed) ||
      !gpu_device_alloc (device, GPU_MEMORY_HOST, size, _Alignof(GpuCrewWord), NULL, &fresh, NULL))
    return words;
  memset (fresh, 0, size);
  gpu_device_abandon (device, GPU_MEMORY_HOST, fresh, size);
  Move nothing = {.word = fresh};
  if (!gpu_stream_submit (stream, tell, &nothing, NULL))
    atomic_store_explicit (&device->writes_no_words, true, memory_order_relaxed);
  else if (atomic_compare_exchange_strong (&device->crew_words, &words, fresh))
    words = fresh;
  return words;
}

/* As much of what is left as the crew copies while the device moves what comes next. */
static bool
send_arrival (Staging *staging, GpuStream *stream, GError **error)
{
  const unsigned left = staging->job.n - staging->sent;
  const bool is_first = staging->sent == 0;
  Arrival next = {.end = staging->sent + MIN (CLAMP (left / 3, staging->plan.least, staging->plan.most), left)};
  bool ok = send (staging, stream, next.end, error);
  /* Of those that the device writes a word for: after the first one a wait that was long is over, and with the last one
   * what went wrong comes out. */
  if (!staging->job.word || is_first || next.end == staging->job.n)
    ok = ok && gpu_point_mark (&next.point, stream, error);
  g_array_append_val (staging->arrivals, next);
  if (is_first)
    gpu_crew_rouse (staging->crew);
  return ok;
}

/* The next one that slices are waited for by: of those that come first, if they have not come. */
static const Arrival *
next_arrival (const Staging *staging)
{
  for (unsigned i = 0; i < staging->arrivals->len; i++) {
    const Arrival *arrival = &g_array_index (staging->arrivals, Arrival, i);
    if (arrival->end > staging->come && arrival->point.stream)
      return arrival;
  }
  return NULL;
}

static void
note (Staging *staging, unsigned come)
{
  if (come <= staging->come)
    return;
  staging->times.last = now ();
  if (staging->come == 0)
    staging->times.first = staging->times.last;
  staging->come = come;
}

/* Finds out how many slices have come, and lets the crew have them, which where the device writes words it has already.
 */
static bool
look (Staging *staging, GError **error)
{
  if (staging->job.word) {
    note (staging, gpu_crew_ready (&staging->job));
    return true;
  }
  const Arrival *next = next_arrival (staging);
  const GpuStatus status = gpu_point_query (&next->point, error);
  if (status == GPU_STATUS_COMPLETE) {
    note (staging, next->end);
    staging->is_alone = !gpu_crew_allow (staging->crew, &staging->job, next->end);
  }
  return status != GPU_STATUS_FAILED;
}

/* Who asks would be late for the next slices if it copied some meanwhile, so it does only if there is nobody else to.
 */
static bool
help (Staging *staging)
{
  return (staging->job.word || staging->is_alone) && gpu_crew_help (staging->crew, &staging->job);
}

/* Sends all slices, some of which the crew has before the last ones are sent, and helps until all have come. */
static bool
receive (Staging *staging, GpuStream *stream, GError **error)
{
  int64_t since = now ();
  while (staging->come < staging->job.n) {
    const unsigned come = staging->come;
    const bool sends = staging->sent < staging->job.n;
    if ((sends && !send_arrival (staging, stream, error)) || !look (staging, error))
      return false;
    if (sends || staging->come > come || help (staging)) {
      since = now ();
    } else if (now () - since < LOOK_NS) {
      gpu_crew_pause (staging->crew);
    } else {
      const Arrival *next = next_arrival (staging);
      if (!gpu_point_wait (&next->point, error))
        return false;
      if (staging->job.word)
        note (staging, next->end);
    }
  }
  return gpu_point_wait (&g_array_index (staging->arrivals, Arrival, staging->arrivals->len - 1).point, error);
}

static void
clear_arrival (void *arrival)
{
  gpu_point_clear (&((Arrival *)arrival)->point);
}

bool
gpu_image_stage_out (GpuStream *stream, GpuImage *image, void *host, const GpuImageSpec *host_spec, GpuStagingPlan plan,
                     GError **error)
{
  Staging staging = {.image = image, .host_spec = host_spec, .host = host, .plan = plan, .is_alone = true};
  if (!prepare (&staging, stream, error))
    return false;

  GpuDevice *device = gpu_stream_device (stream);
  staging.job.words = plan.asks ? NULL : get_words (stream);
  staging.arrivals = g_array_new (false, false, sizeof (Arrival));
  g_array_set_clear_func (staging.arrivals, clear_arrival);
  /* One wait of the host's, however many questions it takes. */
  uint64_t waits = atomic_load (&device->host_waits);
  gpu_crew_begin (staging.crew, &staging.job);
  bool ok = receive (&staging, stream, error);
  if (atomic_load (&device->host_waits) == waits)
    atomic_fetch_add_explicit (&device->host_waits, 1, memory_order_relaxed);
  if (ok)
    gpu_crew_finish (staging.crew, &staging.job, staging.job.n);
  finish (&staging);
  g_array_unref (staging.arrivals);
  return ok;
}

GpuStagingPlan
gpu_staging_default_plan (void)
{
  return (GpuStagingPlan){.slice_bytes = SLICE_BYTES, .least = LEAST_SLICES, .most = MOST_SLICES};
}

bool
gpu_staging_is_refused (GError *failure, GError **error)
{
  if (g_error_matches (failure, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY)) {
    g_error_free (failure);
    return true;
  }
  g_propagate_error (error, failure);
  return false;
}

bool
gpu_image_upload (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec, GError **error)
{
  g_return_val_if_fail (stream != NULL && image != NULL && host != NULL && host_spec != NULL, false);

  if (!gpu_image_check_same_shape (host_spec, &image->spec, error))
    return false;
  if (!gpu_stream_device (stream)->is_host) {
    GError *failure = NULL;
    if (gpu_image_stage_in (stream, image, host, host_spec, gpu_staging_default_plan (), &failure))
      return true;
    if (!gpu_staging_is_refused (failure, error))
      return false;
  }
  return gpu_image_copy_from_host (stream, image, host, host_spec, error);
}

bool
gpu_image_download (GpuStream *stream, GpuImage *image, void *host, const GpuImageSpec *host_spec, GError **error)
{
  g_return_val_if_fail (stream != NULL && image != NULL && host != NULL && host_spec != NULL, false);

  if (!gpu_image_check_same_shape (&image->spec, host_spec, error))
    return false;
  if (!gpu_stream_device (stream)->is_host) {
    GError *failure = NULL;
    if (gpu_image_stage_out (stream, image, host, host_spec, gpu_staging_default_plan (), &failure))
      return true;
    if (!gpu_staging_is_refused (failure, error))
      return false;
  }
  return gpu_image_copy_to_host (stream, image, host, host_spec, error);
}

/* Managed memory */

typedef struct {
  void *data;
  size_t size;
  bool to_host;
} Prefetch;

static bool
prefetch (GpuDevice *device, void *native, void *data, GError **error)
{
  const Prefetch *what = data;
  return gpu_device_prefetch (device, what->data, what->size, what->to_host, native, error);
}

/* Entered as a read: moving pages changes nothing, but must not meet the next owner's work. */
bool
gpu_image_prefetch (GpuStream *stream, GpuImage *image, GpuSide side, GError **error)
{
  g_return_val_if_fail (stream != NULL && image != NULL, false);

  if (image->allocation->kind != GPU_MEMORY_MANAGED || gpu_stream_device (stream)->is_host)
    return true;
  Prefetch what = {image->allocation->data, image->allocation->capacity, side == GPU_SIDE_HOST};
  return gpu_images_submit (stream, &image, 1, NULL, 0, prefetch, &what, error);
}
