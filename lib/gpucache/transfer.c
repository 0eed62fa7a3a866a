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

/* What one thread copies at a time. In three runs uploads took 1.11, 1.25 and 1.13 times as long as the bus with slices
 * of 128 KiB; 2.0, 1.2 and 1.15 with 32 KiB, and 1.15, 1.15 and 1.33 with 64 KiB, or 2.1 for larger frames. Stores past
 * the caches take longer, as the device reads more slowly from there. */
#define SLICE_BYTES_IN ((size_t)128 << 10)
/* Downloads took 1.6 and 1.3 with 32 KiB, 1.7 and 1.4 with 64 KiB: each thread is to have a slice of the last move,
 * which nothing else goes on beside. */
#define SLICE_BYTES_OUT ((size_t)32 << 10)

/* What the device is given at once. It pauses 2 us after each move; on the other hand the host copies nothing before
 * the first one has come, or after the last one has been sent. On the way out 1 MiB comes in half the time that 2 MiB
 * do, and the host, which is no faster than the bus, is at work so much longer. */
#define LEAST_BYTES ((size_t)256 << 10)
#define MOST_BYTES_IN ((size_t)2 << 20)
#define MOST_BYTES_OUT ((size_t)1 << 20)

/* How long slices that are on their way are asked about before their event is slept for, in us: the wake-up would take
 * longer than a slice. */
#define ASK_US 500

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
  unsigned sent; /* how many of the slices the device has been told to move */
} Staging;

/* A move of the device's on the way out: the slices up to @end, when @point is complete. */
typedef struct {
  unsigned end;
  GpuPoint point;
} Arrival;

/* The device reads and writes slices [@first, @end), as few copies as planes allow. */
typedef struct {
  const Staging *staging;
  unsigned first, end;
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
  return true;
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
  Move what = {staging, staging->sent, end};
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
  if (!staging->plan.copy)
    staging->plan.copy = copy_plainly;
  if (staging->pinned)
    staging->slices = cut (&spec, staging->plan.slice_bytes);
  staging->times.prepared = now ();
  return staging->pinned != NULL;
}

static void
finish (Staging *staging)
{
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

  GpuCrew *crew = get_crew (gpu_stream_device (stream));
  const unsigned n = staging.slices->len;
  GpuCrewJob job = {.func = copy_on_host, .data = &staging, .n = n, .ready = n};
  bool ok = true;
  gpu_crew_begin (crew, &job);
  while (ok && staging.sent < n) {
    /* As many as the device has already: while it moves those, the crew copies as many more. */
    const unsigned wanted = MIN (staging.sent + CLAMP (staging.sent, plan.least, plan.most), n);
    const bool is_first = staging.sent == 0;
    ok = send (&staging, stream, gpu_crew_finish (crew, &job, wanted), error);
    if (is_first)
      staging.times.first = staging.times.sent;
  }
  staging.times.last = staging.times.sent;
  gpu_crew_end (crew, &job);
  finish (&staging);
  return ok;
}

/* Until the device has moved the slices before @point. The caller copies some meanwhile if the crew has enough of them.
 */
static GpuStatus
wait_for_slices (GpuCrew *crew, GpuCrewJob *job, const GpuPoint *point, GError **error)
{
  const int64_t end = g_get_monotonic_time () + ASK_US;
  bool helps;
  do {
    const GpuStatus status = gpu_point_query (point, error);
    if (status != GPU_STATUS_PENDING)
      return status;
    helps = gpu_crew_help (crew, job);
    if (!helps)
      gpu_crew_pause (crew);
  } while (helps || g_get_monotonic_time () < end);
  return gpu_point_wait (point, error) ? GPU_STATUS_COMPLETE : GPU_STATUS_FAILED;
}

static bool
send_arrival (Staging *staging, GpuStream *stream, GArray *arrivals, GError **error)
{
  const unsigned left = staging->slices->len - staging->sent;
  Arrival next = {.end = staging->sent + MIN (CLAMP (left / 3, staging->plan.least, staging->plan.most), left)};
  const bool ok = send (staging, stream, next.end, error) && gpu_point_mark (&next.point, stream, error);
  g_array_append_val (arrivals, next);
  return ok;
}

/* Sends all slices, and lets the crew have those that have come, some of them before the last ones are sent. */
static bool
receive (Staging *staging, GpuStream *stream, GpuCrew *crew, GpuCrewJob *job, GArray *arrivals, GError **error)
{
  for (unsigned seen = 0; seen < arrivals->len || staging->sent < job->n;) {
    const bool sends = staging->sent < job->n;
    if (sends && !send_arrival (staging, stream, arrivals, error))
      return false;
    if (sends && arrivals->len == 1)
      gpu_crew_rouse (crew);
    const Arrival *next = &g_array_index (arrivals, Arrival, seen);
    const GpuStatus status =
        sends ? gpu_point_query (&next->point, error) : wait_for_slices (crew, job, &next->point, error);
    if (status == GPU_STATUS_FAILED)
      return false;
    if (status == GPU_STATUS_PENDING)
      continue;
    staging->times.last = now ();
    if (seen++ == 0)
      staging->times.first = staging->times.last;
    gpu_crew_allow (crew, job, next->end);
  }
  return true;
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
  Staging staging = {.image = image, .host_spec = host_spec, .host = host, .plan = plan};
  if (!prepare (&staging, stream, error))
    return false;

  GpuDevice *device = gpu_stream_device (stream);
  GpuCrew *crew = get_crew (device);
  GpuCrewJob job = {.func = copy_on_host, .data = &staging, .n = staging.slices->len};
  g_autoptr (GArray) arrivals = g_array_new (false, false, sizeof (Arrival));
  g_array_set_clear_func (arrivals, clear_arrival);
  /* One wait of the host's, however many questions it takes. */
  uint64_t waits = atomic_load (&device->host_waits);
  gpu_crew_begin (crew, &job);
  bool ok = receive (&staging, stream, crew, &job, arrivals, error);
  if (atomic_load (&device->host_waits) == waits)
    atomic_fetch_add_explicit (&device->host_waits, 1, memory_order_relaxed);
  if (ok)
    gpu_crew_finish (crew, &job, job.n);
  gpu_crew_end (crew, &job);
  finish (&staging);
  return ok;
}

GpuStagingPlan
gpu_staging_default_plan (bool inwards)
{
  const size_t slice = inwards ? SLICE_BYTES_IN : SLICE_BYTES_OUT, most = inwards ? MOST_BYTES_IN : MOST_BYTES_OUT;
  return (GpuStagingPlan){.slice_bytes = slice, .least = LEAST_BYTES / slice, .most = (unsigned)(most / slice)};
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
    if (gpu_image_stage_in (stream, image, host, host_spec, gpu_staging_default_plan (true), &failure))
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
    if (gpu_image_stage_out (stream, image, host, host_spec, gpu_staging_default_plan (false), &failure))
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
