/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The order of locks (rule 25). Builds with debugging remember which ranks a thread holds: a lock out of order, and a
 * call of the driver or of somebody else's function with a lock held that is not to be, end the program with a message.
 */
#pragma once

#include <pthread.h>

/** In the order in which they are taken; never two of one rank at once. */
typedef enum {
  GPU_LOCK_TEARDOWN, /* of a device; and the list of wrapped streams */
  GPU_LOCK_SCOPE,    /* of a thread or stream */
  GPU_LOCK_SHARED,   /* the shared index */
  GPU_LOCK_CACHE,    /* the device's lists */
  GPU_LOCK_ALLOCATION,
  GPU_LOCK_STREAM, /* the only one that is held across calls of the driver */
  GPU_LOCK_LEAF,   /* nothing else is taken inside */
} GpuLockRank;

#ifdef GPU_CHECK_LOCKS
void gpu_locks_enter (GpuLockRank rank);
void gpu_locks_leave (GpuLockRank rank);
/** Before a call of the driver. */
void gpu_locks_check_driver (void);
/** Before a call of a function that users gave. */
void gpu_locks_check_none (void);
#else
#define gpu_locks_enter(rank) ((void)0)
#define gpu_locks_leave(rank) ((void)0)
#define gpu_locks_check_driver() ((void)0)
#define gpu_locks_check_none() ((void)0)
#endif

static inline void
gpu_lock (pthread_mutex_t *lock, GpuLockRank rank)
{
  gpu_locks_enter (rank);
  pthread_mutex_lock (lock);
}

static inline void
gpu_unlock (pthread_mutex_t *lock, GpuLockRank rank)
{
  pthread_mutex_unlock (lock);
  gpu_locks_leave (rank);
}
