/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See pin.h. One lock for all pins, since they may outlive their devices: it is held while pages are let go of, so that
 * the device stays meanwhile.
 */
#include "cache-priv.h"
#include "pin-priv.h"

#include <unistd.h>

static pthread_mutex_t pins_lock = PTHREAD_MUTEX_INITIALIZER;

/* What is idle makes room. But pins stay for long, and if they took all there may be, whatever else is pinned would be
 * freed when it is let go of, and had from the driver again, with every frame. */
static bool
reserve (GpuCache *cache, size_t size, GError **error)
{
  const uint64_t limit = gpu_cache_get_limit (cache->device, GPU_ACCOUNT_HOST);
  const uint64_t pinned = atomic_load (&cache->pinned_bytes);

  if (pinned <= limit / 2 && size <= limit / 2 - pinned) {
    if (gpu_cache_reserve (cache, GPU_ACCOUNT_HOST, size, false))
      return true;
    gpu_cache_retire_all (cache);
    gpu_cache_evict (cache, GPU_ACCOUNT_HOST, limit - size);
    if (gpu_cache_reserve (cache, GPU_ACCOUNT_HOST, size, false))
      return true;
  }
  g_set_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY,
               "%zu bytes more are beyond the limit of pinned memory of %s, which is %" G_GUINT64_FORMAT
               " bytes, half of them for memory that is pinned where it is",
               size, cache->device->name, limit);
  return false;
}

static GpuPin *
refuse (GpuCache *cache, GError *reason, GError **error)
{
  if (!atomic_exchange (&cache->refused_pin, true))
    g_log ("gpucache", G_LOG_LEVEL_INFO, "plain memory is not pinned where it is, and copies of it take longer: %s",
           reason->message);
  g_propagate_error (error, reason);
  return NULL;
}

/* As of an entry that is handed out. */
static void
enter (GpuCache *cache, GpuPin *pin)
{
  gpu_lock (&pins_lock, GPU_LOCK_STREAM);
  gpu_list_append (&cache->pins, &pin->by_device);
  atomic_fetch_add (&cache->n_pins, 1);
  atomic_fetch_add (&cache->pinned_bytes, pin->size);
  gpu_unlock (&pins_lock, GPU_LOCK_STREAM);
  atomic_fetch_sub (&cache->carried[GPU_ACCOUNT_HOST], pin->size);
  gpu_cache_raise_peak (cache, GPU_ACCOUNT_HOST);
}

/* With the lock held. */
static void
let_go (GpuCache *cache, GpuPin *pin)
{
  gpu_device_unpin (cache->device, pin->data);
  gpu_list_remove (&cache->pins, &pin->by_device);
  atomic_store (&pin->device, NULL);
  atomic_fetch_sub (&cache->n_pins, 1);
  atomic_fetch_add (&cache->carried[GPU_ACCOUNT_HOST], pin->size);
  atomic_fetch_sub (&cache->pinned_bytes, pin->size);
  gpu_cache_unreserve (cache, GPU_ACCOUNT_HOST, pin->size);
}

GpuPin *
gpu_pin_new (GpuDevice *device, void *data, size_t size, GError **error)
{
  g_return_val_if_fail (device != NULL && data != NULL, NULL);

  GpuCache *cache = device->cache;
  const uintptr_t page = (uintptr_t)sysconf (_SC_PAGE_SIZE);
  const size_t before = -(uintptr_t)data % page;
  const size_t whole = size > before ? (size - before) / page * page : 0;
  GError *reason = NULL;

  if (whole == 0) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "no page lies in %zu bytes at %p as a whole", size, data);
    return NULL;
  }
  if (!reserve (cache, whole, &reason))
    return refuse (cache, reason, error);
  GpuPin *pin = g_new0 (GpuPin, 1);
  atomic_store (&pin->refs, 1);
  atomic_store (&pin->device, device);
  pin->fork_generation = gpu_fork_generation ();
  pin->data = (uint8_t *)data + before;
  pin->size = whole;
  if (gpu_device_pin (device, pin->data, whole, &reason)) {
    enter (cache, pin);
    return pin;
  }
  gpu_cache_unreserve (cache, GPU_ACCOUNT_HOST, whole);
  g_free (pin);
  return refuse (cache, reason, error);
}

GpuPin *
gpu_pin_ref (GpuPin *pin)
{
  g_return_val_if_fail (pin != NULL, NULL);

  atomic_fetch_add_explicit (&pin->refs, 1, memory_order_relaxed);
  return pin;
}

void
gpu_pin_unref (GpuPin *pin)
{
  if (!pin || atomic_fetch_sub_explicit (&pin->refs, 1, memory_order_acq_rel) > 1)
    return;
  /* In a child process the pages are the parent's, and so may the lock be. */
  if (pin->fork_generation == gpu_fork_generation ()) {
    gpu_lock (&pins_lock, GPU_LOCK_STREAM);
    GpuDevice *device = atomic_load (&pin->device);
    if (device)
      let_go (device->cache, pin);
    gpu_unlock (&pins_lock, GPU_LOCK_STREAM);
  }
  g_free (pin);
}

bool
gpu_pin_is_for (const GpuPin *pin, const GpuDevice *device)
{
  g_return_val_if_fail (pin != NULL && device != NULL, false);

  return atomic_load (&pin->device) == device;
}

bool
gpu_pin_is_of_use (GpuPin *pin)
{
  g_return_val_if_fail (pin != NULL, false);

  if (pin->fork_generation != gpu_fork_generation ())
    return false;
  gpu_lock (&pins_lock, GPU_LOCK_STREAM);
  GpuDevice *device = atomic_load (&pin->device);
  const bool is_of_use = device && !gpu_device_is_lost (device);
  gpu_unlock (&pins_lock, GPU_LOCK_STREAM);
  return is_of_use;
}

void
gpu_cache_unpin_all (GpuCache *cache)
{
  gpu_lock (&pins_lock, GPU_LOCK_STREAM);
  while (cache->pins.first)
    let_go (cache, gpu_container (cache->pins.first, GpuPin, by_device));
  gpu_unlock (&pins_lock, GPU_LOCK_STREAM);
}
