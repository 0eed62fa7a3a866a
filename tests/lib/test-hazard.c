/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The hazard checker (hazard.h) on one device: by one thread with streams that gates hold, and by several threads. The
 * classic mistakes are in test-cache-order.c, by name.
 */
#include "common.h"
#include "hazard.h"
#include "stamp.h"

#define N_ROUNDS 400
#define STEPS_PER_ROUND 60

/* Between rounds all gates open and everything is looked at. */
static void
test_gates (void)
{
  unsigned n_rounds = test_is_cuda () ? N_ROUNDS / 4 : N_ROUNDS;

  for (unsigned round = 0; round < n_rounds; round++) {
    HazardWork work = {.n_sites = 1, .state = round + 1};
    HazardSite *site = &work.site[0];

    hazard_open_site (&work, 0, 6, round % 4 ? 16 << 10 : 1 << 20);
    for (unsigned i = 0; i < STEPS_PER_ROUND; i++) {
      if (i % 20 == 5)
        hazard_close_gate (&work, site);
      if (i == 15 || i == 55)
        hazard_open_gate (site);
      if (test_is_lazy () && hazard_pick (&work, 4) == 0)
        gpu_cpu_device_run (site->device, hazard_pick (&work, 8), work.state);
      hazard_step (&work);
    }
    gpu_cache_check (site->device);
    hazard_finish (&work, round);
    hazard_drop_all (&work);
    if (test_is_lazy ())
      gpu_cpu_device_run (site->device, G_MAXUINT, 1);
    stamp_settle (round + 1);
    hazard_close_site (&work, 0);
  }
}

/* Threads that share some streams, the limit and the device, and nothing else; under ThreadSanitizer every kernel's
 * accesses are checked, too. */
static void
test_threads (void)
{
  hazard_threads (1, 6, 6, 2, 1500, 64 << 10);
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  g_test_add_func ("/hazard/gates", test_gates);
  g_test_add_func ("/hazard/threads", test_threads);
  return g_test_run ();
}
