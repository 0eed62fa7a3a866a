/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See peers.h.
 */
#include "peers.h"

#include "common.h"

/* A driver may wait for a device when it opens the way to another one: not while gates hold streams. */
static void
open_way (Rig *to, Rig *from)
{
  GpuImage *src = rig_filled (from, &from->spec, from->stream[0], 0);
  GpuImage *dst = rig_filled (to, &to->spec, to->stream[0], 0);

  rig_copy (to->stream[0], src, dst);
  rig_sync (to->stream[0]);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

void
peers_setup (Peers *peers, const void *data)
{
  for (unsigned i = 0; i < N_PEERS; i++) {
    rig_setup_on (&peers->rig[i], test_device_new_full (i, 0));
    rig_prepare_gates (peers->rig[i].device);
  }
  for (unsigned i = 0; i < N_PEERS; i++)
    for (unsigned j = 0; j < N_PEERS; j++)
      if (i != j)
        open_way (&peers->rig[i], &peers->rig[j]);
  for (unsigned i = 0; i < N_PEERS; i++) {
    GError *error = NULL;
    gpu_cache_clear (peers->rig[i].device, GPU_CACHE_ALL, &error);
    g_assert_no_error (error);
    peers->rig[i].last[0] = rig_stats (&peers->rig[i]);
  }
}

void
peers_teardown (Peers *peers, const void *data)
{
  for (unsigned i = 0; i < N_PEERS; i++)
    if (peers->rig[i].device)
      rig_teardown (&peers->rig[i], NULL);
}

void
peers_close_device (Rig *rig)
{
  rig_teardown (rig, NULL);
  rig->device = NULL;
}
