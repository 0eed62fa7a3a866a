/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See foreign.h.
 */
#include "foreign.h"

typedef struct {
  GstMemory base;
  guint8 *data;
} ForeignMemory;

static gpointer
map (GstMemory *memory, gsize size, GstMapFlags flags)
{
  return ((ForeignMemory *)memory)->data;
}

static void
unmap (GstMemory *memory)
{
}

static GstMemory *
allocate (GstAllocator *allocator, gsize size, GstAllocationParams *params)
{
  ForeignMemory *self = g_new0 (ForeignMemory, 1);
  self->data = g_malloc (size);
  gst_memory_init (GST_MEMORY_CAST (self), GST_MEMORY_FLAG_NO_SHARE, allocator, NULL, size, 0, 0, size);
  return GST_MEMORY_CAST (self);
}

static void
release (GstAllocator *allocator, GstMemory *memory)
{
  g_free (((ForeignMemory *)memory)->data);
  g_free (memory);
}

static void
init_class (gpointer klass, gpointer data)
{
  GST_ALLOCATOR_CLASS (klass)->alloc = allocate;
  GST_ALLOCATOR_CLASS (klass)->free = release;
}

static void
init (GTypeInstance *instance, gpointer klass)
{
  GstAllocator *self = (GstAllocator *)instance;
  self->mem_type = "BenchMemory";
  self->mem_map = map;
  self->mem_unmap = unmap;
}

GstMemory *
foreign_memory_new (gsize size)
{
  static GstAllocator *allocator = NULL;
  if (!allocator) {
    const GType type = g_type_register_static_simple (GST_TYPE_ALLOCATOR, "BenchAllocator", sizeof (GstAllocatorClass),
                                                      init_class, sizeof (GstAllocator), init, (GTypeFlags)0);
    allocator = gst_object_ref_sink (g_object_new (type, NULL));
  }
  return gst_allocator_alloc (allocator, size, NULL);
}
