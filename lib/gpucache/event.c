/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Events, recycled by device (rule 22), where streams take and leave them. An event that was let go of may be recorded
 * again at once: a wait that was issued keeps what it saw.
 */
#include "stream-priv.h"

struct GpuEventPool {
  GpuDevice *device;
  pthread_mutex_t lock;
  GpuEvent *free;
};

GpuEventPool *
gpu_event_pool_new (GpuDevice *device)
{
  GpuEventPool *pool = g_new0 (GpuEventPool, 1);
  pool->device = device;
  pthread_mutex_init (&pool->lock, NULL);
  return pool;
}

void
gpu_event_pool_free (GpuEventPool *pool)
{
  if (!pool)
    return;
  for (GpuEvent *event = pool->free, *next; event; event = next) {
    next = event->next;
    gpu_device_event_destroy (pool->device, event->native);
    g_aligned_free (event);
  }
  pthread_mutex_destroy (&pool->lock);
  g_free (pool);
}

GpuEvent *
gpu_event_new (GpuEventPool *pool, GError **error)
{
  gpu_lock (&pool->lock, GPU_LOCK_LEAF);
  GpuEvent *event = pool->free;
  if (event)
    pool->free = event->next;
  gpu_unlock (&pool->lock, GPU_LOCK_LEAF);

  if (!event) {
    void *native;
    if (!gpu_device_event_create (pool->device, &native, error))
      return NULL;
    event = g_aligned_alloc0 (1, sizeof *event, _Alignof(GpuEvent));
    event->pool = pool;
    event->native = native;
  }
  atomic_init (&event->refs, 1);
  event->next = NULL;
  return event;
}

GpuEvent *
gpu_event_ref (GpuEvent *event)
{
  atomic_fetch_add_explicit (&event->refs, 1, memory_order_relaxed);
  return event;
}

bool
gpu_event_renew (GpuEvent *event)
{
  if (atomic_load_explicit (&event->refs, memory_order_acquire) != 1)
    return false;
  g_clear_pointer (&event->clock, gpu_clock_unref);
  event->next = NULL;
  return true;
}

void
gpu_event_unref (GpuEvent *event)
{
  if (atomic_fetch_sub_explicit (&event->refs, 1, memory_order_acq_rel) != 1)
    return;
  GpuEventPool *pool = event->pool;
  g_clear_pointer (&event->clock, gpu_clock_unref);
  gpu_lock (&pool->lock, GPU_LOCK_LEAF);
  event->next = pool->free;
  pool->free = event;
  gpu_unlock (&pool->lock, GPU_LOCK_LEAF);
}
