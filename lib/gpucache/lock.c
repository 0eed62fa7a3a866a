/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See lock.h.
 */
#include "lock.h"

#ifdef GPU_CHECK_LOCKS

#include <glib.h>

/* A bit for each rank that this thread holds. */
static _Thread_local unsigned held;

void
gpu_locks_enter (GpuLockRank rank)
{
  if (held >> rank)
    g_error ("rule 25: a lock of rank %u is taken by a thread that holds 0x%x, and that order can deadlock", rank,
             held);
  held |= 1u << rank;
}

void
gpu_locks_leave (GpuLockRank rank)
{
  held &= ~(1u << rank);
}

void
gpu_locks_check_driver (void)
{
  if (held & ~(1u << GPU_LOCK_STREAM))
    g_error ("rule 25: the driver is called by a thread that holds locks of the ranks 0x%x", held);
}

void
gpu_locks_check_none (void)
{
  if (held)
    g_error ("rule 25: a user's function is called by a thread that holds locks of the ranks 0x%x", held);
}

#endif
