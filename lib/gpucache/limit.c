/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The byte limits of a device (rule 8).
 */
#include "cache-priv.h"

#include <errno.h>
#include <unistd.h>

uint64_t
gpu_cache_default_host_limit (void)
{
  return (uint64_t)sysconf (_SC_PHYS_PAGES) * (uint64_t)sysconf (_SC_PAGE_SIZE) / 2;
}

bool
gpu_cache_set_limit (GpuDevice *device, GpuAccount account, int64_t bytes, GError **error)
{
  g_return_val_if_fail (device != NULL, false);
  g_return_val_if_fail ((unsigned)account < GPU_N_ACCOUNTS, false);

  GpuCache *cache = device->cache;
  if (bytes < 0) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "a cache limit of %" G_GINT64_FORMAT " bytes is negative; the limit of %s stays at %" G_GUINT64_FORMAT
                 " bytes (0 retains nothing)",
                 bytes, device->name, gpu_cache_get_limit (device, account));
    return false;
  }

  uint64_t free_bytes, total_bytes;
  if (account == GPU_ACCOUNT_DEVICE && gpu_device_memory_info (device, &free_bytes, &total_bytes, NULL) &&
      (uint64_t)bytes > total_bytes)
    g_warning ("the cache limit of %" G_GINT64_FORMAT " bytes is more than the %" G_GUINT64_FORMAT
               " bytes that %s has; memory that is not there cannot be retained",
               bytes, total_bytes, device->name);

  uint64_t old = atomic_exchange (&cache->limit[account], (uint64_t)bytes);
  if ((uint64_t)bytes < old) {
    atomic_store (&cache->trim_due[account], true);
    gpu_cache_retire_all (cache);
    gpu_cache_settle (cache, account);
  }
  return true;
}

uint64_t
gpu_cache_get_limit (GpuDevice *device, GpuAccount account)
{
  g_return_val_if_fail (device != NULL, 0);
  g_return_val_if_fail ((unsigned)account < GPU_N_ACCOUNTS, 0);

  return atomic_load (&device->cache->limit[account]);
}

bool
gpu_cache_parse_bytes (const char *text, int64_t *bytes, GError **error)
{
  g_return_val_if_fail (text != NULL && bytes != NULL, false);

  static const struct {
    const char *suffix;
    unsigned shift;
  } units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};

  /* Digits come first: g_ascii_strtoull() would take a sign and give back what it wraps to. */
  char *end = NULL;
  errno = 0;
  uint64_t number = g_ascii_isdigit (text[0]) ? g_ascii_strtoull (text, &end, 10) : 0;
  for (unsigned i = 0; end && errno == 0 && i < G_N_ELEMENTS (units); i++) {
    if (strcmp (end, units[i].suffix) != 0)
      continue;
    if (number > (uint64_t)INT64_MAX >> units[i].shift)
      break;
    *bytes = (int64_t)(number << units[i].shift);
    return true;
  }
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "\"%s\" is not a number of bytes; write a whole number from 0 on, such as 268435456, 256MiB or 4GiB",
               text);
  return false;
}

void
gpu_cache_set_fit_ratio (GpuDevice *device, unsigned ratio)
{
  g_return_if_fail (device != NULL && ratio >= 1);

  atomic_store (&device->cache->fit_ratio, ratio);
}
