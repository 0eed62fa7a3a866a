/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The hazard checker (hazard.h) over several devices: frames crossing in all directions, limits that are too low on one
 * and not on another, devices that are closed or lost and opened anew meanwhile.
 */
#include "common.h"
#include "hazard.h"
#include "stamp.h"

#include <pthread.h>

#define N_STREAMS 3
#define N_ROUNDS 240
#define STEPS_PER_ROUND 80

/* One has hardly room for what is live, the next has enough. */
static void
open_site (HazardWork *work, unsigned i)
{
  hazard_open_site (work, i, N_STREAMS, i % 2 ? 1 << 20 : 12 << 10);
}

/* Refuses work, as after an error. */
static void
lose (HazardSite *site)
{
  const GpuImageSpec spec = test_spec (GPU_FORMAT_RGBA, 64, 16);
  GpuImage *image = test_image_new (site->device, &spec, site->stream[0]);

  gpu_device_fail (site->device, GPU_CALL_COPY, 0, 1);
  g_assert_false (gpu_image_fill (site->stream[0], image, 0, NULL));
  g_assert_true (gpu_device_is_lost (site->device));
  gpu_image_unref (image);
}

/* A device goes, now and then because it failed, and comes back; the others must not be moved by that. Waits for what
 * was submitted there, so nothing may be held. */
static void
replace_site (HazardWork *work)
{
  unsigned i = hazard_pick (work, work->n_sites);

  for (unsigned k = 0; k < work->n_sites; k++)
    hazard_open_gates (&work->site[k]);
  if (gpu_device_is_host (work->site[i].device) && hazard_pick (work, 2))
    lose (&work->site[i]);
  hazard_close_site (work, i);
  open_site (work, i);
  for (unsigned k = 0; k < work->n_sites; k++)
    g_assert_false (gpu_device_is_lost (work->site[k].device));
}

static void
run_round (unsigned n_sites, unsigned round)
{
  HazardWork work = {.n_sites = n_sites, .state = round + 1};

  for (unsigned i = 0; i < n_sites; i++)
    open_site (&work, i);
  for (unsigned i = 0; i < STEPS_PER_ROUND; i++) {
    if (i % 16 == 3)
      hazard_close_gate (&work, hazard_any_site (&work));
    if (i % 16 == 12)
      hazard_open_gate (hazard_any_site (&work));
    if (i % 32 == 20 && round % 2)
      replace_site (&work);
    if (test_is_lazy () && hazard_pick (&work, 4) == 0)
      gpu_cpu_device_run (hazard_any_site (&work)->device, hazard_pick (&work, 8), work.state);
    hazard_step (&work);
  }
  g_assert_cmpuint (work.crossings, >, 0);
  for (unsigned i = 0; i < n_sites; i++)
    gpu_cache_check (work.site[i].device);
  hazard_finish (&work, round);
  stamp_settle (round + 1);
  for (unsigned i = 0; i < n_sites; i++)
    hazard_close_site (&work, i);
}

/* One thread, streams held by gates now and then. */
static void
test_rounds (gconstpointer n_sites)
{
  for (unsigned round = 0; round < (test_is_cuda () ? N_ROUNDS / 8 : N_ROUNDS); round++)
    run_round (GPOINTER_TO_UINT (n_sites), GPOINTER_TO_UINT (n_sites) * 10000 + round);
}

/* Threads that share devices and streams, and cross between them in both directions at once. */
static void
test_threads (void)
{
  hazard_threads (2, 4, N_STREAMS, 2, 1000, 12 << 10);
}

/* A thread that has a device of its own, which it closes and opens while it reads the others'. */
static void *
come_and_go (void *data)
{
  HazardWork *work = data;

  for (unsigned i = 0; i < 30; i++) {
    open_site (work, 1);
    for (unsigned k = 0; k < 40; k++)
      hazard_step (work);
    hazard_close_site (work, 1);
  }
  hazard_drop_all (work);
  return NULL;
}

static void
test_coming_and_going (void)
{
  HazardWork comers[3], shared = {.n_sites = 1};
  pthread_t threads[G_N_ELEMENTS (comers)];

  open_site (&shared, 0);
  for (unsigned i = 0; i < G_N_ELEMENTS (comers); i++) {
    comers[i] = (HazardWork){.n_sites = 2, .state = i + 7, .next_stamp = i << 24};
    hazard_join_site (&comers[i], 0, &shared.site[0], 0);
  }
  for (unsigned i = 0; i < G_N_ELEMENTS (comers); i++)
    g_assert_cmpint (pthread_create (&threads[i], NULL, come_and_go, &comers[i]), ==, 0);
  for (unsigned i = 0; i < G_N_ELEMENTS (comers); i++)
    pthread_join (threads[i], NULL);
  stamp_settle (0);
  gpu_cache_check (shared.site[0].device);
  for (unsigned i = 0; i < G_N_ELEMENTS (comers); i++)
    hazard_close_site (&comers[i], 0);
  hazard_close_site (&shared, 0);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  g_test_add_data_func ("/peer-hazard/two", GUINT_TO_POINTER (2), test_rounds);
  g_test_add_data_func ("/peer-hazard/three", GUINT_TO_POINTER (3), test_rounds);
  g_test_add_func ("/peer-hazard/threads", test_threads);
  g_test_add_func ("/peer-hazard/coming-and-going", test_coming_and_going);
  return g_test_run ();
}
