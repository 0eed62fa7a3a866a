/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Devices by name. What was opened stays open until the process ends, so that the next pipeline finds what the last one
 * left in its cache. A device that is lost makes place for a new one of its name, if the driver still opens one.
 */
#include "device-priv.h"

#include <gpucache/cache.h>

#include <string.h>

#define MAX_CPU_DEVICES 64

/* Held while a device is opened: who asks for the same one meanwhile gets that one. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *registry; /* name, owned by the device, to device */
static pthread_once_t registry_once = PTHREAD_ONCE_INIT;

/* A child process starts with an empty table: what the parent opened can neither be used here nor freed. The lock may
 * be held by a thread that does not exist here. Taking it before each fork() instead would hang a driver that forks a
 * helper while we open the device. */
static void
forget_after_fork (void)
{
  registry = NULL;
  pthread_mutex_init (&registry_lock, NULL);
}

static void
init_registry (void)
{
  pthread_atfork (NULL, NULL, forget_after_fork);
}

#ifndef GPU_HAVE_CUDA
static void
set_no_cuda (GError **error)
{
  g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE,
               "this build has no CUDA support; install the CUDA toolkit with nvcc and rebuild, or use the device cpu");
}

unsigned
gpu_device_cuda_count (GError **error)
{
  set_no_cuda (error);
  return 0;
}

GpuDevice *
gpu_device_cuda_new (unsigned ordinal, GError **error)
{
  set_no_cuda (error);
  return NULL;
}

GpuDevice *
gpu_device_cuda_new_for_context (void *context, GError **error)
{
  set_no_cuda (error);
  return NULL;
}

bool
gpu_device_cuda_is_per_thread (void *stream)
{
  return false;
}

void *
gpu_device_cuda_context (GpuDevice *device)
{
  return NULL;
}
#endif

/* A decimal number after @prefix and nothing else. */
static bool
parse_ordinal (const char *name, const char *prefix, uint64_t *ordinal)
{
  return g_str_has_prefix (name, prefix) &&
         g_ascii_string_to_unsigned (name + strlen (prefix), 10, 0, G_MAXUINT32, ordinal, NULL);
}

/* GPUCACHE_CPU_EXECUTOR=lazy is for tests of programs that open their devices by name. */
static GpuCpuExecutor
executor_from_environment (void)
{
  const char *text = g_getenv ("GPUCACHE_CPU_EXECUTOR");

  if (g_strcmp0 (text, "lazy") == 0)
    return GPU_CPU_LAZY;
  if (text && *text && strcmp (text, "threads") != 0)
    g_warning ("GPUCACHE_CPU_EXECUTOR=%s is neither threads nor lazy; using threads", text);
  return GPU_CPU_THREADS;
}

static void
apply_limit_from_environment (GpuDevice *device, const char *variable, GpuAccount account)
{
  const char *text = g_getenv (variable);
  g_autoptr (GError) error = NULL;
  int64_t bytes;

  if (!text || !*text)
    return;
  if (gpu_cache_parse_bytes (text, &bytes, &error) && gpu_cache_set_limit (device, account, bytes, &error))
    return;
  g_warning ("%s=%s is not taken: %s; the limit of device %s stays at %" G_GUINT64_FORMAT " bytes", variable, text,
             error->message, gpu_device_name (device), gpu_cache_get_limit (device, account));
}

static void
apply_limits_from_environment (GpuDevice *device)
{
  apply_limit_from_environment (device, "GPUCACHE_LIMIT", GPU_ACCOUNT_DEVICE);
  apply_limit_from_environment (device, "GPUCACHE_HOST_LIMIT", GPU_ACCOUNT_HOST);
}

static GpuDevice *
open_cuda (uint64_t ordinal, GError **error)
{
  g_autoptr (GError) reason = NULL;
  unsigned count = gpu_device_cuda_count (&reason);

  if (reason) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE, "cannot open device cuda:%" G_GUINT64_FORMAT ": %s", ordinal,
                 reason->message);
    return NULL;
  }
  if (count == 0) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE,
                 "cannot open device cuda:%" G_GUINT64_FORMAT
                 ": the driver finds no GPU; check that it is visible to this process, or use the device cpu",
                 ordinal);
    return NULL;
  }
  if (ordinal >= count) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE,
                 "cannot open device cuda:%" G_GUINT64_FORMAT
                 ": there %s %u GPU%s, so the highest number is cuda:%u; use that or a lower one",
                 ordinal, count == 1 ? "is" : "are", count, count == 1 ? "" : "s", count - 1);
    return NULL;
  }
  return gpu_device_cuda_new ((unsigned)ordinal, error);
}

static GpuDevice *
open_new (const char *name, GError **error)
{
  uint64_t ordinal;

  if (parse_ordinal (name, "cuda:", &ordinal))
    return open_cuda (ordinal, error);
  if (parse_ordinal (name, "cpu:", &ordinal) && ordinal < MAX_CPU_DEVICES)
    return gpu_device_cpu_new (name, executor_from_environment (), 0, error);
  if (parse_ordinal (name, "cpu:", &ordinal)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_NO_DEVICE, "there is no device %s: CPU devices are cpu:0 to cpu:%d", name,
                 MAX_CPU_DEVICES - 1);
    return NULL;
  }
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "there is no device named \"%s\"; use auto, cpu, cpu:N or cuda:N with a number N from 0", name);
  return NULL;
}

/* Called with the lock held. A lost device (nullable) that another one takes the place of is given to @replaced. */
static GpuDevice *
open_locked (const char *name, GpuDevice **replaced, GError **error)
{
  GpuDevice *known = registry ? g_hash_table_lookup (registry, name) : NULL;
  if (known && !gpu_device_is_lost (known))
    return gpu_device_ref (known);

  g_autoptr (GError) reason = NULL;
  GpuDevice *device = open_new (name, &reason);
  if (!device && known) {
    g_set_error (error, GPU_ERROR, reason->code,
                 "device %s was lost and does not open again: %s; restart the program to use it, or use another device",
                 name, reason->message);
    return NULL;
  }
  if (!device) {
    g_propagate_error (error, g_steal_pointer (&reason));
    return NULL;
  }
  apply_limits_from_environment (device);
  if (!registry)
    registry = g_hash_table_new (g_str_hash, g_str_equal);
  /* The registry keeps this reference. */
  g_hash_table_replace (registry, (void *)gpu_device_name (device), device);
  *replaced = known;
  return gpu_device_ref (device);
}

/* "cuda:07" and "cpu" are other names of "cuda:7" and "cpu:0". */
static char *
canonical_name (const char *name)
{
  uint64_t ordinal;

  if (strcmp (name, "cpu") == 0)
    return g_strdup ("cpu:0");
  if (parse_ordinal (name, "cpu:", &ordinal))
    return g_strdup_printf ("cpu:%" G_GUINT64_FORMAT, ordinal);
  if (parse_ordinal (name, "cuda:", &ordinal))
    return g_strdup_printf ("cuda:%" G_GUINT64_FORMAT, ordinal);
  return g_strdup (name);
}

/* The first GPU, else the CPU. No GPU is nothing to make a noise about; one that is there and does not work is. */
static GpuDevice *
open_auto (GpuDevice **replaced)
{
  g_autoptr (GError) reason = NULL;
  GpuDevice *device = NULL;

  if (gpu_device_cuda_count (&reason) > 0) {
    device = open_locked ("cuda:0", replaced, &reason);
    if (!device)
      g_warning ("using the CPU, since the GPU does not work: %s", reason->message);
  } else {
    g_info ("using the CPU: %s", reason ? reason->message : "the driver finds no GPU");
  }
  return device;
}

GpuDevice *
gpu_device_open (const char *name, GError **error)
{
  if (!name)
    name = g_getenv ("GPUCACHE_DEVICE");
  if (!name || !*name)
    name = "auto";

  g_autofree char *canonical = canonical_name (name);
  pthread_once (&registry_once, init_registry);
  pthread_mutex_lock (&registry_lock);
  bool is_auto = strcmp (canonical, "auto") == 0;
  GpuDevice *replaced = NULL;
  GpuDevice *device = is_auto ? open_auto (&replaced) : NULL;
  if (!device)
    device = open_locked (is_auto ? "cpu:0" : canonical, &replaced, error);
  pthread_mutex_unlock (&registry_lock);
  /* Not under the lock: it may be the last reference, and who gets wrapped memory back may open devices. */
  if (replaced)
    gpu_device_unref (replaced);
  return device;
}

GpuDevice *
gpu_device_open_cuda_context (void *context, GError **error)
{
  g_return_val_if_fail (context != NULL, NULL);

  GpuDevice *device = gpu_device_cuda_new_for_context (context, error);
  if (device)
    apply_limits_from_environment (device);
  return device;
}
