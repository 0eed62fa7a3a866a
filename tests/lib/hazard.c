/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See hazard.h.
 */
#include "hazard.h"

#include "common.h"
#include "rig.h"
#include "stamp.h"

#include <pthread.h>

/* Several shapes of one size, so that fits and exact matches change memory between them, and three formats. */
static const struct {
  GpuFormat format;
  uint32_t width, height;
} shapes[] = {
    {GPU_FORMAT_RGBA, 64, 16}, {GPU_FORMAT_RGBA, 128, 8},   {GPU_FORMAT_RGBA, 64, 32},
    {GPU_FORMAT_BGRA, 64, 16}, {GPU_FORMAT_GRAY8, 256, 48},
};

uint32_t
hazard_pick (HazardWork *work, uint32_t n)
{
  return (test_random (&work->state) >> 8) % n;
}

HazardSite *
hazard_any_site (HazardWork *work)
{
  return &work->site[hazard_pick (work, work->n_sites)];
}

static HazardSite *
site_of (HazardWork *work, const GpuImage *image)
{
  for (unsigned i = 0; i < work->n_sites; i++)
    if (work->site[i].device == gpu_image_device (image))
      return &work->site[i];
  g_assert_not_reached ();
}

GpuStream *
hazard_any_stream (HazardWork *work, HazardSite *site)
{
  return site->stream[hazard_pick (work, site->n_streams)];
}

static HazardImage *
any_image (HazardWork *work)
{
  return &work->image[hazard_pick (work, work->n)];
}

static GpuImage *
take (HazardSite *site, const GpuImageSpec *spec, GpuStream *stream)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (site->device, spec, GPU_MEMORY_STREAM_ORDERED, stream, 0, &error);

  g_assert_no_error (error);
  return image;
}

static GpuImage *
take_any (HazardWork *work, HazardSite *site, GpuStream *stream)
{
  unsigned i = hazard_pick (work, G_N_ELEMENTS (shapes));
  const GpuImageSpec spec = test_spec (shapes[i].format, shapes[i].width, shapes[i].height);

  return take (site, &spec, stream);
}

static void
add (HazardWork *work, GpuImage *image, uint32_t stamp)
{
  work->image[work->n++] = (HazardImage){image, stamp};
}

static void
drop (HazardWork *work, unsigned i)
{
  gpu_image_unref (work->image[i].image);
  work->image[i] = work->image[--work->n];
}

static void
make_room (HazardWork *work)
{
  if (work->n == HAZARD_IMAGES)
    drop (work, hazard_pick (work, work->n));
}

/* The first writer is the stream acquired on, another, or any where none was named. */
static void
make_one (HazardWork *work)
{
  HazardSite *site = hazard_any_site (work);
  GpuStream *consumer = hazard_pick (work, 5) ? hazard_any_stream (work, site) : NULL;

  make_room (work);
  GpuImage *image = take_any (work, site, consumer);
  add (work, image, ++work->next_stamp);
  stamp_write (consumer && hazard_pick (work, 3) ? consumer : hazard_any_stream (work, site), image, work->next_stamp);
}

/* As an element on another device does: takes a frame of its own, copies, and lets go of what it got, or somebody else
 * still has that. */
static void
cross_one (HazardWork *work)
{
  GError *error = NULL;

  make_room (work);
  unsigned i = hazard_pick (work, work->n);
  const HazardImage src = work->image[i];
  HazardSite *site = hazard_any_site (work);
  GpuStream *stream = hazard_any_stream (work, site);
  GpuImage *dst = take (site, gpu_image_spec (src.image), stream);

  gpu_image_copy (stream, src.image, dst, &error);
  g_assert_no_error (error);
  work->crossings += gpu_image_device (src.image) != site->device;
  if (hazard_pick (work, 3))
    drop (work, i);
  stamp_check (hazard_pick (work, 3) ? stream : hazard_any_stream (work, site), dst, src.stamp);
  add (work, dst, src.stamp);
}

/* As an element does: reads one, writes another, lets go of the first. */
static void
convert_one (HazardWork *work)
{
  unsigned i = hazard_pick (work, work->n);
  const HazardImage src = work->image[i];
  HazardSite *site = site_of (work, src.image);
  GpuStream *stream = hazard_any_stream (work, site);
  GpuImage *dst = take_any (work, site, stream);

  stamp_convert (stream, src.image, src.stamp, dst, ++work->next_stamp);
  drop (work, i);
  add (work, dst, work->next_stamp);
}

static GpuStream *
new_stream (HazardSite *site, unsigned s)
{
  GError *error = NULL;
  GpuStream *stream = gpu_stream_new (site->device, s % 3 == 0, &error);

  g_assert_no_error (error);
  return stream;
}

/* A GPU's driver gives a new stream the queue of one that ended, with what a gate still holds in it. */
static bool
may_end_streams (const HazardWork *work)
{
  for (unsigned i = 0; i < work->n_sites && test_is_cuda (); i++)
    if (work->site[i].n_open < work->site[i].n_gates)
      return false;
  return true;
}

static void
replace_stream (HazardWork *work, HazardSite *site)
{
  unsigned s = hazard_pick (work, site->n_streams);

  if (!may_end_streams (work))
    return;
  gpu_stream_unref (site->stream[s]);
  site->stream[s] = new_stream (site, s);
}

void
hazard_step (HazardWork *work)
{
  unsigned what = hazard_pick (work, 100);

  if (what < 25 || work->n == 0) {
    make_one (work);
  } else if (what < 50 && work->n_sites > 1) {
    cross_one (work);
  } else if (what < 62) {
    convert_one (work);
  } else if (what < 72) {
    const HazardImage *one = any_image (work);
    stamp_check (hazard_any_stream (work, site_of (work, one->image)), one->image, one->stamp);
  } else if (what < 80) {
    HazardImage *one = any_image (work);
    one->stamp = ++work->next_stamp;
    stamp_write (hazard_any_stream (work, site_of (work, one->image)), one->image, one->stamp);
  } else if (what < 92) {
    drop (work, hazard_pick (work, work->n));
  } else if (what < 94) {
    HazardSite *site = hazard_any_site (work);
    rig_wait_stream (hazard_any_stream (work, site), hazard_any_stream (work, site));
  } else if (what < 95) {
    GpuCacheStats stats;
    gpu_cache_get_stats (hazard_any_site (work)->device, GPU_ACCOUNT_DEVICE, GPU_CACHE_ALL, &stats);
  } else if (what < 97) {
    gpu_cache_set_limit (hazard_any_site (work)->device, GPU_ACCOUNT_DEVICE, hazard_pick (work, 16) * 4096, NULL);
  } else {
    replace_stream (work, hazard_any_site (work));
  }
}

void
hazard_drop_all (HazardWork *work)
{
  while (work->n > 0)
    drop (work, 0);
}

void
hazard_open_site (HazardWork *work, unsigned i, unsigned n_streams, int64_t limit)
{
  HazardSite *site = &work->site[i];
  GError *error = NULL;

  g_assert_cmpuint (n_streams, <=, HAZARD_MAX_STREAMS);
  *site = (HazardSite){.device = test_device_new_full (i, 0), .n_streams = n_streams};
  rig_prepare_gates (site->device);
  for (unsigned s = 0; s < n_streams; s++)
    site->stream[s] = new_stream (site, s);
  gpu_cache_set_limit (site->device, GPU_ACCOUNT_DEVICE, limit, &error);
  g_assert_no_error (error);
}

void
hazard_join_site (HazardWork *work, unsigned i, const HazardSite *site, unsigned n_shared)
{
  HazardSite *joined = &work->site[i];

  *joined = (HazardSite){.device = gpu_device_ref (site->device), .n_streams = site->n_streams};
  for (unsigned s = 0; s < site->n_streams; s++)
    joined->stream[s] = s < n_shared ? gpu_stream_ref (site->stream[s]) : new_stream (joined, s);
}

void
hazard_close_gate (HazardWork *work, HazardSite *site)
{
  GError *error = NULL;

  g_assert_cmpuint (site->n_gates, <, HAZARD_MAX_GATES);
  GpuGate *gate = gpu_gate_new (site->device, &error);
  g_assert_no_error (error);
  gpu_gate_hold (gate, hazard_any_stream (work, site), &error);
  g_assert_no_error (error);
  site->gate[site->n_gates++] = gate;
}

void
hazard_open_gate (HazardSite *site)
{
  if (site->n_open < site->n_gates)
    gpu_gate_open (site->gate[site->n_open++]);
}

void
hazard_open_gates (HazardSite *site)
{
  while (site->n_open < site->n_gates)
    hazard_open_gate (site);
}

void
hazard_close_site (HazardWork *work, unsigned i)
{
  HazardSite *site = &work->site[i];

  for (unsigned k = work->n; k-- > 0;)
    if (gpu_image_device (work->image[k].image) == site->device)
      drop (work, k);
  if (test_is_cuda ())
    hazard_open_gates (site); /* no stream of a GPU's ends while it is held */
  for (unsigned s = 0; s < site->n_streams; s++)
    gpu_stream_unref (site->stream[s]);
  for (unsigned k = 0; k < site->n_gates; k++)
    gpu_gate_free (site->gate[k]);
  gpu_device_unref (site->device);
}

/* The order of the waits is the order in which the lazy executor runs things. */
void
hazard_finish (HazardWork *work, unsigned turn)
{
  for (unsigned i = 0; i < work->n_sites; i++)
    hazard_open_gates (&work->site[i]);
  for (unsigned i = 0; i < work->n_sites; i++) {
    HazardSite *site = &work->site[(i + turn) % work->n_sites];
    for (unsigned s = 0; s < site->n_streams; s++)
      rig_sync (site->stream[(s + turn) % site->n_streams]);
  }
}

/* Threads */

typedef struct {
  HazardWork work;
  unsigned n_steps;
} Job;

static void *
run_job (void *data)
{
  Job *job = data;
  HazardWork *work = &job->work;

  for (unsigned i = 0; i < job->n_steps; i++) {
    if (hazard_pick (work, 100) >= 98)
      rig_sync (hazard_any_stream (work, hazard_any_site (work)));
    else
      hazard_step (work);
  }
  hazard_drop_all (work);
  return NULL;
}

void
hazard_threads (unsigned n_sites, unsigned n_threads, unsigned n_streams, unsigned n_shared, unsigned n_steps,
                int64_t limit)
{
  g_autofree Job *jobs = g_new0 (Job, n_threads);
  g_autofree pthread_t *threads = g_new0 (pthread_t, n_threads);
  HazardWork shared = {.n_sites = n_sites};

  for (unsigned d = 0; d < n_sites; d++)
    hazard_open_site (&shared, d, n_streams, d == 1 ? 1 << 20 : limit);
  for (unsigned i = 0; i < n_threads; i++) {
    jobs[i] = (Job){.work = {.n_sites = n_sites, .state = i + 1, .next_stamp = i << 24}, .n_steps = n_steps};
    for (unsigned d = 0; d < n_sites; d++)
      hazard_join_site (&jobs[i].work, d, &shared.site[d], n_shared);
  }
  for (unsigned i = 0; i < n_threads; i++)
    g_assert_cmpint (pthread_create (&threads[i], NULL, run_job, &jobs[i]), ==, 0);
  for (unsigned i = 0; i < n_threads; i++)
    pthread_join (threads[i], NULL);
  for (unsigned i = 0; i < n_threads; i++)
    hazard_finish (&jobs[i].work, i);
  for (unsigned d = 0; d < n_sites && test_is_lazy (); d++)
    gpu_cpu_device_run (shared.site[d].device, G_MAXUINT, 1);
  stamp_settle (0);
  for (unsigned d = 0; d < n_sites; d++) {
    GError *error = NULL;
    gpu_cache_check (shared.site[d].device);
    gpu_cache_clear (shared.site[d].device, GPU_CACHE_ALL, &error);
    g_assert_no_error (error);
    for (unsigned i = 0; i < n_threads; i++)
      hazard_close_site (&jobs[i].work, d);
    hazard_close_site (&shared, d);
  }
}
