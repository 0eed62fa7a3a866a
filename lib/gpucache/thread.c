/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scopes of threads (rules 14 and 15). A thread that ends leaves its scopes on a list, under one lock and with no call
 * to the driver or to GLib; the next living caller moves what is in them to the shared index.
 */
#include "cache-priv.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A thread's scopes, one for each device that it used. */
typedef struct {
  unsigned n, allocated;
  GpuScope **scope;
} Thread;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static _Thread_local Thread *self;
static _Thread_local bool ended;

/* For the lists of orphans, and for scope->cache of threads' scopes. */
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;

static void
end_thread (void *data)
{
  Thread *thread = data;
  ended = true;
  self = NULL;

  gpu_lock (&orphans_lock, GPU_LOCK_LEAF);
  for (unsigned i = 0; i < thread->n; i++) {
    GpuScope *scope = thread->scope[i];
    GpuCache *cache = scope->cache;
    if (!cache)
      continue;
    scope->next_orphan = cache->orphans;
    atomic_store (&cache->orphans, scope);
    thread->scope[i] = NULL;
  }
  gpu_unlock (&orphans_lock, GPU_LOCK_LEAF);

  /* Of a device that is gone; nothing but the struct is left. */
  for (unsigned i = 0; i < thread->n; i++)
    if (thread->scope[i])
      gpu_scope_unref (thread->scope[i]);
  free (thread->scope);
  free (thread);
}

static void
make_key (void)
{
  if (pthread_key_create (&key, end_thread))
    g_error ("no thread-specific key is left");
}

static GpuScope *
add_scope (GpuCache *cache)
{
  if (!self) {
    pthread_once (&key_once, make_key);
    self = calloc (1, sizeof *self);
    if (!self || pthread_setspecific (key, self))
      g_error ("out of host memory");
  }

  /* Scopes of devices that are gone make room. */
  unsigned kept = 0;
  for (unsigned i = 0; i < self->n; i++) {
    if (self->scope[i]->cache)
      self->scope[kept++] = self->scope[i];
    else
      gpu_scope_unref (self->scope[i]);
  }
  self->n = kept;

  if (self->n == self->allocated) {
    unsigned n = MAX (4, self->allocated * 2);
    GpuScope **scopes = realloc (self->scope, n * sizeof (GpuScope *));
    if (!scopes)
      g_error ("out of host memory");
    self->scope = scopes;
    self->allocated = n;
  }
  GpuScope *scope = gpu_scope_new (cache, GPU_SCOPE_THREAD, (uint64_t)syscall (SYS_gettid));
  self->scope[self->n++] = scope;
  return scope;
}

GpuScope *
gpu_thread_scope (GpuCache *cache)
{
  /* Where a variable of the thread's lies is found out by a call each time. */
  const Thread *thread = self;

  for (unsigned i = 0; thread && i < thread->n; i++)
    if (atomic_load_explicit (&thread->scope[i]->cache, memory_order_acquire) == cache)
      return thread->scope[i];
  return ended ? cache->shared : add_scope (cache);
}

void
gpu_cache_absorb_orphans (GpuCache *cache)
{
  if (!atomic_load_explicit (&cache->orphans, memory_order_acquire))
    return;
  gpu_lock (&orphans_lock, GPU_LOCK_LEAF);
  GpuScope *orphans = cache->orphans;
  atomic_store (&cache->orphans, NULL);
  gpu_unlock (&orphans_lock, GPU_LOCK_LEAF);

  for (GpuScope *scope = orphans, *next; scope; scope = next) {
    next = scope->next_orphan;
    gpu_scope_end (scope);
    gpu_scope_unref (scope);
  }
}

void
gpu_thread_scopes_forget (GpuCache *cache, GPtrArray *scopes)
{
  gpu_lock (&orphans_lock, GPU_LOCK_LEAF);
  for (unsigned i = 0; i < scopes->len; i++) {
    GpuScope *scope = g_ptr_array_index (scopes, i);
    if (scope->type != GPU_SCOPE_THREAD)
      continue;
    /* A thread may be the last to let go, so that only its struct may be left for it. */
    g_clear_pointer (&scope->shelves, g_hash_table_unref);
    g_clear_pointer (&scope->slots, g_hash_table_unref);
    g_clear_pointer (&scope->lanes, g_hash_table_unref);
    atomic_store (&scope->cache, NULL);
  }
  GpuScope *orphans = cache->orphans;
  atomic_store (&cache->orphans, NULL);
  gpu_unlock (&orphans_lock, GPU_LOCK_LEAF);

  for (GpuScope *scope = orphans, *next; scope; scope = next) {
    next = scope->next_orphan;
    gpu_scope_unref (scope);
  }
}
