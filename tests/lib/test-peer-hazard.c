/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The hazard checker over several devices: random work on streams of two or three, frames crossing in all directions,
 * limits that are too low on one and not on another, devices that are closed or lost and opened anew meanwhile. Each
 * piece of work checks what it reads (stamp.h): what was reused too early is seen as wrong bytes.
 */
#include "common.h"
#include "rig.h"
#include "stamp.h"

#define MAX_DEVICES 3
#define N_STREAMS 3
#define N_IMAGES 10
#define N_ROUNDS 240
#define STEPS_PER_ROUND 80

static GpuImageSpec shapes[4];

static void
make_shapes (void)
{
  shapes[0] = test_spec (GPU_FORMAT_RGBA, 64, 16);
  shapes[1] = test_spec (GPU_FORMAT_RGBA, 128, 8);
  shapes[2] = test_spec (GPU_FORMAT_RGBA, 64, 32);
  shapes[3] = test_spec (GPU_FORMAT_BGRA, 64, 16);
}

typedef struct {
  GpuImage *image;
  uint32_t stamp;
} Stamped;

typedef struct {
  GpuDevice *device;
  GpuStream *stream[N_STREAMS];
  GpuGate *gate;
} Site;

typedef struct {
  unsigned n_sites;
  Site site[MAX_DEVICES];
  Stamped stamped[N_IMAGES];
  unsigned n;
  uint32_t state;
  uint32_t next_stamp;
  unsigned crossings;
} Work;

static uint32_t
pick (Work *work, uint32_t n)
{
  return (test_random (&work->state) >> 8) % n;
}

static Site *
any_site (Work *work)
{
  return &work->site[pick (work, work->n_sites)];
}

static Site *
site_of (Work *work, GpuImage *image)
{
  for (unsigned i = 0; i < work->n_sites; i++)
    if (work->site[i].device == gpu_image_device (image))
      return &work->site[i];
  g_assert_not_reached ();
}

static GpuStream *
any_stream (Work *work, Site *site)
{
  return site->stream[pick (work, N_STREAMS)];
}

static GpuImage *
take (Site *site, const GpuImageSpec *spec, GpuStream *stream)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (site->device, spec, GPU_MEMORY_STREAM_ORDERED, stream, 0, &error);

  g_assert_no_error (error);
  return image;
}

static void
drop (Work *work, unsigned i)
{
  gpu_image_unref (work->stamped[i].image);
  work->stamped[i] = work->stamped[--work->n];
}

static void
add (Work *work, GpuImage *image, uint32_t stamp)
{
  work->stamped[work->n++] = (Stamped){image, stamp};
}

static void
make_room (Work *work)
{
  if (work->n == N_IMAGES)
    drop (work, pick (work, work->n));
}

static void
make_one (Work *work)
{
  Site *site = any_site (work);
  GpuStream *consumer = pick (work, 5) ? any_stream (work, site) : NULL;

  make_room (work);
  GpuImage *image = take (site, &shapes[pick (work, G_N_ELEMENTS (shapes))], consumer);
  add (work, image, ++work->next_stamp);
  stamp_write (consumer && pick (work, 3) ? consumer : any_stream (work, site), image, work->next_stamp);
}

/* As an element on another device does: takes a frame of its own, copies, and lets go of what it got, or somebody else
 * still has that. */
static void
cross_one (Work *work)
{
  GError *error = NULL;

  make_room (work);
  unsigned i = pick (work, work->n);
  GpuImage *src = work->stamped[i].image;
  uint32_t stamp = work->stamped[i].stamp;
  Site *site = any_site (work);
  GpuStream *stream = any_stream (work, site);
  GpuImage *dst = take (site, gpu_image_spec (src), stream);

  gpu_image_copy (stream, src, dst, &error);
  g_assert_no_error (error);
  work->crossings += gpu_image_device (src) != site->device;
  if (pick (work, 3))
    drop (work, i);
  stamp_check (pick (work, 3) ? stream : any_stream (work, site), dst, stamp);
  add (work, dst, stamp);
}

static void
convert_one (Work *work)
{
  unsigned i = pick (work, work->n);
  Site *site = site_of (work, work->stamped[i].image);
  GpuStream *stream = any_stream (work, site);
  GpuImage *dst = take (site, &shapes[pick (work, G_N_ELEMENTS (shapes))], stream);

  stamp_convert (stream, work->stamped[i].image, work->stamped[i].stamp, dst, ++work->next_stamp);
  drop (work, i);
  add (work, dst, work->next_stamp);
}

static void
open_site (Work *work, unsigned i)
{
  Site *site = &work->site[i];
  GError *error = NULL;

  site->device = test_device_new_full (i, 0);
  for (unsigned s = 0; s < N_STREAMS; s++) {
    site->stream[s] = gpu_stream_new (site->device, s == 0, &error);
    g_assert_no_error (error);
  }
  site->gate = NULL;
  /* One has hardly room for what is live, the next has enough. */
  gpu_cache_set_limit (site->device, GPU_ACCOUNT_DEVICE, i % 2 ? 1 << 20 : 12 << 10, &error);
  g_assert_no_error (error);
}

static void
open_gate (Site *site)
{
  if (site->gate)
    gpu_gate_open (site->gate);
}

/* Lets go of everything of a device's, with work pending. */
static void
close_site (Work *work, unsigned i)
{
  Site *site = &work->site[i];

  for (unsigned k = work->n; k-- > 0;)
    if (gpu_image_device (work->stamped[k].image) == site->device)
      drop (work, k);
  for (unsigned s = 0; s < N_STREAMS; s++)
    gpu_stream_unref (site->stream[s]);
  if (site->gate)
    gpu_gate_free (site->gate);
  gpu_device_unref (site->device);
}

/* A device goes, now and then because it failed, and comes back; the others must not be moved by that. Waits for what
 * was submitted there, so nothing may be held. */
static void
replace_site (Work *work)
{
  unsigned i = pick (work, work->n_sites);
  GpuDevice *device = work->site[i].device;

  for (unsigned k = 0; k < work->n_sites; k++)
    open_gate (&work->site[k]);
  if (gpu_device_is_host (device) && pick (work, 2)) {
    GpuImage *image = take (&work->site[i], &shapes[0], NULL);
    gpu_device_fail (device, GPU_CALL_COPY, 0, 1);
    g_assert_false (gpu_image_fill (work->site[i].stream[0], image, 0, NULL));
    g_assert_true (gpu_device_is_lost (device));
    gpu_image_unref (image);
  }
  close_site (work, i);
  open_site (work, i);
  for (unsigned k = 0; k < work->n_sites; k++)
    g_assert_false (gpu_device_is_lost (work->site[k].device));
}

static void
one_step (Work *work)
{
  unsigned what = pick (work, 100);

  if (what < 25 || work->n == 0) {
    make_one (work);
  } else if (what < 50) {
    cross_one (work);
  } else if (what < 62) {
    convert_one (work);
  } else if (what < 72) {
    Stamped *one = &work->stamped[pick (work, work->n)];
    stamp_check (any_stream (work, site_of (work, one->image)), one->image, one->stamp);
  } else if (what < 80) {
    Stamped *one = &work->stamped[pick (work, work->n)];
    one->stamp = ++work->next_stamp;
    stamp_write (any_stream (work, site_of (work, one->image)), one->image, one->stamp);
  } else if (what < 93) {
    drop (work, pick (work, work->n));
  } else if (what < 95) {
    Site *site = any_site (work);
    rig_wait_stream (any_stream (work, site), any_stream (work, site));
  } else if (what < 97) {
    Site *site = any_site (work);
    gpu_cache_set_limit (site->device, GPU_ACCOUNT_DEVICE, pick (work, 16) * 4096, NULL);
  } else {
    Site *site = any_site (work);
    unsigned s = pick (work, N_STREAMS);
    GError *error = NULL;
    gpu_stream_unref (site->stream[s]);
    site->stream[s] = gpu_stream_new (site->device, s == 0, &error);
    g_assert_no_error (error);
  }
}

static void
run_round (unsigned n_sites, unsigned round)
{
  Work work = {.n_sites = n_sites, .state = round + 1};
  GError *error = NULL;

  for (unsigned i = 0; i < n_sites; i++)
    open_site (&work, i);
  for (unsigned i = 0; i < STEPS_PER_ROUND; i++) {
    Site *site = any_site (&work);
    if (i % 16 == 3 && !site->gate) {
      site->gate = gpu_gate_new (site->device, &error);
      g_assert_no_error (error);
      gpu_gate_hold (site->gate, any_stream (&work, site), &error);
      g_assert_no_error (error);
    }
    if (i % 16 == 12)
      open_gate (any_site (&work));
    if (i % 32 == 20 && round % 2)
      replace_site (&work);
    if (test_is_lazy () && pick (&work, 4) == 0)
      gpu_cpu_device_run (any_site (&work)->device, pick (&work, 8), work.state);
    one_step (&work);
  }
  g_assert_cmpuint (work.crossings, >, 0);
  for (unsigned i = 0; i < n_sites; i++) {
    gpu_cache_check (work.site[i].device);
    open_gate (&work.site[i]);
  }
  for (unsigned i = 0; i < n_sites; i++) {
    Site *site = &work.site[(i + round) % n_sites];
    for (unsigned s = 0; s < N_STREAMS; s++)
      rig_sync (site->stream[s]);
  }
  stamp_settle (round + 1);
  for (unsigned i = 0; i < n_sites; i++)
    close_site (&work, i);
}

/* One thread, streams held by gates now and then. */
static void
test_two (void)
{
  for (unsigned round = 0; round < (test_is_cuda () ? N_ROUNDS / 8 : N_ROUNDS); round++)
    run_round (2, round);
}

static void
test_three (void)
{
  for (unsigned round = 0; round < (test_is_cuda () ? N_ROUNDS / 8 : N_ROUNDS); round++)
    run_round (3, 10000 + round);
}

/* Threads that share devices and streams, and cross between them in both directions at once. */
static void *
run_job (void *data)
{
  Work *work = data;

  for (unsigned i = 0; i < 1000; i++) {
    if (pick (work, 100) >= 98)
      rig_sync (any_stream (work, any_site (work)));
    else
      one_step (work);
  }
  while (work->n > 0)
    drop (work, 0);
  return NULL;
}

static void
test_threads (void)
{
  Work shared = {.n_sites = 2}, jobs[4];
  pthread_t threads[G_N_ELEMENTS (jobs)];
  GError *error = NULL;

  for (unsigned i = 0; i < 2; i++)
    open_site (&shared, i);
  for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++) {
    jobs[i] = (Work){.n_sites = 2, .state = i + 1, .next_stamp = i << 24};
    for (unsigned d = 0; d < 2; d++) {
      jobs[i].site[d] = (Site){.device = gpu_device_ref (shared.site[d].device)};
      for (unsigned s = 0; s < N_STREAMS; s++) {
        GpuDevice *device = shared.site[d].device;
        jobs[i].site[d].stream[s] =
            s == 1 ? gpu_stream_ref (shared.site[d].stream[1]) : gpu_stream_new (device, s == 0, &error);
        g_assert_no_error (error);
      }
    }
    g_assert_cmpint (pthread_create (&threads[i], NULL, run_job, &jobs[i]), ==, 0);
  }
  for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++)
    pthread_join (threads[i], NULL);
  for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++)
    for (unsigned d = 0; d < 2; d++)
      for (unsigned s = 0; s < N_STREAMS; s++)
        rig_sync (jobs[i].site[d].stream[s]);
  stamp_settle (0);
  for (unsigned d = 0; d < 2; d++) {
    gpu_cache_check (shared.site[d].device);
    for (unsigned i = 0; i < G_N_ELEMENTS (jobs); i++)
      close_site (&jobs[i], d);
    close_site (&shared, d);
  }
}

/* Threads that each have a device of their own, which they close and open while they read the others'. */
typedef struct {
  Work work; /* its own device, and a shared one */
} Comer;

static void *
run_comer (void *data)
{
  Comer *comer = data;
  Work *work = &comer->work;

  for (unsigned i = 0; i < 30; i++) {
    open_site (work, 1);
    for (unsigned k = 0; k < 40; k++)
      one_step (work);
    close_site (work, 1);
  }
  while (work->n > 0)
    drop (work, 0);
  return NULL;
}

static void
test_coming_and_going (void)
{
  Comer comers[3];
  Work shared = {.n_sites = 1};
  pthread_t threads[G_N_ELEMENTS (comers)];
  GError *error = NULL;

  open_site (&shared, 0);
  for (unsigned i = 0; i < G_N_ELEMENTS (comers); i++) {
    comers[i].work = (Work){.n_sites = 2, .state = i + 7, .next_stamp = i << 24};
    comers[i].work.site[0].device = gpu_device_ref (shared.site[0].device);
    for (unsigned s = 0; s < N_STREAMS; s++) {
      comers[i].work.site[0].stream[s] = gpu_stream_new (shared.site[0].device, s == 0, &error);
      g_assert_no_error (error);
    }
    g_assert_cmpint (pthread_create (&threads[i], NULL, run_comer, &comers[i]), ==, 0);
  }
  for (unsigned i = 0; i < G_N_ELEMENTS (comers); i++)
    pthread_join (threads[i], NULL);
  stamp_settle (0);
  gpu_cache_check (shared.site[0].device);
  for (unsigned i = 0; i < G_N_ELEMENTS (comers); i++)
    close_site (&comers[i].work, 0);
  close_site (&shared, 0);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  make_shapes ();
  g_test_add_func ("/peer-hazard/two", test_two);
  g_test_add_func ("/peer-hazard/three", test_three);
  g_test_add_func ("/peer-hazard/threads", test_threads);
  g_test_add_func ("/peer-hazard/coming-and-going", test_coming_and_going);
  return g_test_run ();
}
