/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The CPU device's memory, which behaves like a stream-ordered pool and as unkindly as one may: it is filled with a
 * pattern in stream order when it is allocated and when it is freed, and an address comes back as soon as its free has
 * run, or at once on the stream that freed it. AddressSanitizer is told what nobody owns.
 */
#include "cpu-priv.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How much freed memory is kept so that its addresses come back. */
#define MAX_RECYCLED_BLOCKS 64
#define MAX_RECYCLED_BYTES ((size_t)128 << 20)

static bool
is_charged (GpuMemoryKind kind)
{
  return kind != GPU_MEMORY_HOST;
}

static void
block_free (GpuCpuBlock *block)
{
  ASAN_UNPOISON_MEMORY_REGION (block->data, block->size);
  free (block->data);
  g_free (block);
}

static bool
block_serves (const GpuCpuBlock *block, size_t size, size_t alignment)
{
  return block->size == size && ((uintptr_t)block->data & (alignment - 1)) == 0;
}

/* The newest of the frees in @queue whose memory would do: later work on the same stream comes after that free. */
static GpuCpuBlock *
take_over (GpuCpuQueue *queue, size_t size, size_t alignment)
{
  for (GList *link = queue->frees.head; link; link = link->next) {
    GpuCpuCommand *command = link->data;
    GpuCpuBlock *block = command->copy.block;
    if (block_serves (block, size, alignment)) {
      command->copy.block = NULL;
      g_queue_delete_link (&queue->frees, link);
      return block;
    }
  }
  return NULL;
}

static GpuCpuBlock *
take_recycled (GpuCpuDevice *device, size_t size, size_t alignment)
{
  for (GList *link = device->recycled.head; link; link = link->next) {
    GpuCpuBlock *block = link->data;
    if (block_serves (block, size, alignment)) {
      g_queue_delete_link (&device->recycled, link);
      device->recycled_bytes -= size;
      ASAN_UNPOISON_MEMORY_REGION (block->data, block->size);
      return block;
    }
  }
  return NULL;
}

static void
recycle (GpuCpuDevice *device, GpuCpuBlock *block)
{
  ASAN_POISON_MEMORY_REGION (block->data, block->size);
  g_queue_push_head (&device->recycled, block);
  device->recycled_bytes += block->size;
  while (device->recycled.length > MAX_RECYCLED_BLOCKS || device->recycled_bytes > MAX_RECYCLED_BYTES) {
    GpuCpuBlock *oldest = g_queue_pop_tail (&device->recycled);
    device->recycled_bytes -= oldest->size;
    block_free (oldest);
  }
}

static GpuCpuBlock *
block_new (GpuCpuDevice *device, size_t size, size_t alignment, GError **error)
{
  void *data;

  if (posix_memalign (&data, alignment, size) != 0) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY,
                 "device %s cannot allocate %zu bytes at a multiple of %zu: the system has no more memory to give; "
                 "let go of images or ask for less",
                 device->base.name, size, alignment);
    return NULL;
  }
  GpuCpuBlock *block = g_new0 (GpuCpuBlock, 1);
  block->data = data;
  block->size = size;
  return block;
}

static GpuCpuBlock *
find_block (GpuCpuDevice *device, GpuCpuQueue *queue, GpuMemoryKind kind, size_t size, size_t alignment, GError **error)
{
  GpuCpuBlock *block = queue ? take_over (queue, size, alignment) : NULL;

  if (block)
    return block; /* charged still */
  if (is_charged (kind) && size > device->total_bytes - device->used_bytes) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY,
                 "device %s cannot allocate %zu bytes: %" G_GUINT64_FORMAT " of its %" G_GUINT64_FORMAT
                 " bytes are in use; let go of images or ask for less",
                 device->base.name, size, device->used_bytes, device->total_bytes);
    return NULL;
  }
  block = take_recycled (device, size, alignment);
  if (!block)
    block = block_new (device, size, alignment, error);
  if (block && is_charged (kind))
    device->used_bytes += size;
  return block;
}

bool
gpu_cpu_alloc (GpuDevice *base, GpuMemoryKind kind, size_t size, size_t alignment, void *stream, void **data,
               GError **error)
{
  GpuCpuDevice *device = (GpuCpuDevice *)base;
  GpuCpuQueue *queue = kind == GPU_MEMORY_STREAM_ORDERED ? ((GpuCpuStream *)stream)->queue : NULL;

  pthread_mutex_lock (&gpu_cpu_host.lock);
  GpuCpuBlock *block = find_block (device, queue, kind, size, alignment, error);
  if (!block) {
    pthread_mutex_unlock (&gpu_cpu_host.lock);
    return false;
  }
  block->kind = kind;
  block->is_freed = false;
  g_hash_table_replace (device->blocks, block->data, block);
  *data = block->data;

  if (queue) {
    GpuCpuCommand *fill = gpu_cpu_command_new (GPU_CPU_FILL, 0);
    fill->copy.rows = (GpuCopy){.dst = block->data, .dst_stride = size, .row_bytes = size, .rows = 1};
    fill->copy.value = GPU_CPU_POISON;
    gpu_cpu_queue_submit (queue, fill);
  }
  pthread_mutex_unlock (&gpu_cpu_host.lock);

  if (!queue)
    memset (*data, GPU_CPU_POISON, size);
  return true;
}

void
gpu_cpu_block_release (GpuCpuDevice *device, GpuCpuBlock *block)
{
  g_hash_table_remove (device->blocks, block->data);
  if (is_charged (block->kind))
    device->used_bytes -= block->size;
  recycle (device, block);
}

bool
gpu_cpu_free (GpuDevice *base, GpuMemoryKind kind, void *data, size_t size, void *stream, GError **error)
{
  GpuCpuDevice *device = (GpuCpuDevice *)base;

  pthread_mutex_lock (&gpu_cpu_host.lock);
  GpuCpuBlock *block = g_hash_table_lookup (device->blocks, data);
  if (!block || block->is_freed || block->kind != kind || block->size != size) {
    pthread_mutex_unlock (&gpu_cpu_host.lock);
    g_set_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST,
                 "device %s was asked to free %zu bytes of %s memory at %p, which is not an allocation of its",
                 base->name, size, gpu_memory_kind_name (kind), data);
    return false;
  }
  block->is_freed = true;

  GpuCpuQueue *queue = kind == GPU_MEMORY_STREAM_ORDERED ? ((GpuCpuStream *)stream)->queue : NULL;
  if (queue && queue->head) {
    GpuCpuCommand *command = gpu_cpu_command_new (GPU_CPU_FREE, 0);
    command->copy.rows = (GpuCopy){.dst = data, .dst_stride = size, .row_bytes = size, .rows = 1};
    command->copy.value = GPU_CPU_POISON;
    command->copy.block = block;
    g_queue_push_head (&queue->frees, command);
    gpu_cpu_queue_submit (queue, command);
    pthread_mutex_unlock (&gpu_cpu_host.lock);
    return true;
  }

  /* Nothing comes before it. Plain memory is not waited for either, as a driver might: its owner frees it only when
   * its work is complete, and sees the pattern if that is not so. */
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  memset (data, GPU_CPU_POISON, size);
  pthread_mutex_lock (&gpu_cpu_host.lock);
  gpu_cpu_block_release (device, block);
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return true;
}

bool
gpu_cpu_memory_info (GpuDevice *base, uint64_t *free_bytes, uint64_t *total_bytes, GError **error)
{
  GpuCpuDevice *device = (GpuCpuDevice *)base;

  pthread_mutex_lock (&gpu_cpu_host.lock);
  *total_bytes = device->total_bytes;
  *free_bytes = device->total_bytes - device->used_bytes;
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return true;
}

uint64_t
gpu_cpu_trim (GpuDevice *base, uint64_t keep)
{
  GpuCpuDevice *device = (GpuCpuDevice *)base;

  pthread_mutex_lock (&gpu_cpu_host.lock);
  while (device->recycled.length > 0 && device->used_bytes + device->recycled_bytes > keep) {
    GpuCpuBlock *oldest = g_queue_pop_tail (&device->recycled);
    device->recycled_bytes -= oldest->size;
    block_free (oldest);
  }
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return 0;
}

static uint64_t
host_bytes (void)
{
  long pages = sysconf (_SC_PHYS_PAGES);
  long page_bytes = sysconf (_SC_PAGESIZE);

  return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_C (1) << 30;
}

void
gpu_cpu_memory_init (GpuCpuDevice *device, uint64_t memory_bytes)
{
  device->total_bytes = memory_bytes ? memory_bytes : host_bytes ();
  device->blocks = g_hash_table_new_full (NULL, NULL, NULL, NULL);
  g_queue_init (&device->recycled);
}

/* What a lost device was not allowed to free is freed here, too. */
void
gpu_cpu_memory_clear (GpuCpuDevice *device)
{
  GHashTableIter iter;
  gpointer block;

  gpu_cpu_trim (&device->base, 0);
  g_hash_table_iter_init (&iter, device->blocks);
  while (g_hash_table_iter_next (&iter, NULL, &block))
    block_free (block);
  g_hash_table_unref (device->blocks);
}
