/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See memory.h.
 */
#include "memory.h"

#include "grid.h"

#include <glib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif
#ifdef HAVE_VALGRIND
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_UNDEFINED(address, size) ((void)(address), (void)(size))
#endif

#define ALIGNMENT ((size_t)256)
#define PAGE 4096
#define VERY_LARGE ((size_t)1 << 30)

/* Blocks by address, and their sizes. What is never freed, such as a lost GPU's memory, is the driver's: here it is
 * found, so it is no leak. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *blocks;

static char *
block_new (size_t size)
{
  void *block;

  if (size >= VERY_LARGE) {
    block = mmap (NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? NULL : block;
  }
  if (posix_memalign (&block, 2 * ALIGNMENT, size) != 0)
    return NULL;
  memset (block, EMULATED_POISON, size);
  VALGRIND_MAKE_MEM_UNDEFINED (block, size);
  ASAN_POISON_MEMORY_REGION (block, ALIGNMENT);
  return block;
}

static void
block_free (char *block, size_t size)
{
  if (size >= VERY_LARGE)
    munmap (block, size);
  else
    free (block);
}

CUdeviceptr
memory_new (size_t size)
{
  /* Behind an address that is aligned to more, so that the result is not. */
  char *block = size <= SIZE_MAX - ALIGNMENT ? block_new (size + ALIGNMENT) : NULL;

  if (!block)
    return 0;
  pthread_mutex_lock (&lock);
  if (!blocks)
    blocks = g_hash_table_new (NULL, NULL);
  g_hash_table_insert (blocks, block, GSIZE_TO_POINTER (size + ALIGNMENT));
  pthread_mutex_unlock (&lock);
  return (CUdeviceptr)(uintptr_t)(block + ALIGNMENT);
}

size_t
memory_free (CUdeviceptr address)
{
  char *block = (char *)(uintptr_t)address - ALIGNMENT;
  void *size = NULL;

  pthread_mutex_lock (&lock);
  if (blocks)
    g_hash_table_steal_extended (blocks, block, NULL, &size);
  pthread_mutex_unlock (&lock);
  if (!size)
    return 0;
  block_free (block, GPOINTER_TO_SIZE (size));
  return GPOINTER_TO_SIZE (size) - ALIGNMENT;
}

typedef struct {
  char *data;
  size_t size;
} Pinned;

static GArray *pinned;

bool
memory_pin (void *data, size_t size)
{
  const Pinned added = {data, size};
  bool is_free = size > 0 && (uintptr_t)data % PAGE == 0 && size % PAGE == 0;

  pthread_mutex_lock (&lock);
  if (!pinned)
    pinned = g_array_new (FALSE, FALSE, sizeof (Pinned));
  for (guint i = 0; i < pinned->len && is_free; i++) {
    const Pinned *other = &g_array_index (pinned, Pinned, i);

    is_free = added.data + size <= other->data || other->data + other->size <= added.data;
  }
  if (is_free)
    g_array_append_val (pinned, added);
  pthread_mutex_unlock (&lock);
  return is_free;
}

bool
memory_unpin (void *data)
{
  bool found = false;

  pthread_mutex_lock (&lock);
  for (guint i = 0; pinned && i < pinned->len && !found; i++) {
    found = g_array_index (pinned, Pinned, i).data == data;
    if (found)
      g_array_remove_index_fast (pinned, i);
  }
  pthread_mutex_unlock (&lock);
  return found;
}
