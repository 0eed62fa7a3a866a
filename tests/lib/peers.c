/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See peers.h.
 */
#include "peers.h"

#include "common.h"

/* A driver may wait for a device when it opens the way to another one, and when it pins the memory of the first gate:
 * not while gates hold streams. */
static void
prepare (Rig *to, Rig *from)
{
  GError *error = NULL;
  GpuGate *gate = gpu_gate_new (to->device, &error);
  GpuImage *src = rig_filled (from, &from->spec, from->stream[0], 0);
  GpuImage *dst = rig_filled (to, &to->spec, to->stream[0], 0);

  g_assert_no_error (error);
  rig_copy (to->stream[0], src, dst);
  rig_sync (to->stream[0]);
  gpu_gate_free (gate);
  gpu_image_unref (src);
  gpu_image_unref (dst);
}

void
peers_setup (Peers *peers, const void *data)
{
  for (unsigned i = 0; i < N_PEERS; i++)
    rig_setup_on (&peers->rig[i], test_device_new_full (i, 0));
  for (unsigned i = 0; i < N_PEERS; i++)
    for (unsigned j = 0; j < N_PEERS; j++)
      if (i != j)
        prepare (&peers->rig[i], &peers->rig[j]);
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
