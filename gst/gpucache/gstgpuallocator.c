/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuAllocator: from a shape to a memory. Memories hold their allocator, and it holds the device (G10).
 */
#include "gstgpumemory-priv.h"

GST_DEBUG_CATEGORY_STATIC (gpu_allocator_debug);
#define GST_CAT_DEFAULT gpu_allocator_debug

struct _GstGpuAllocator {
  GstAllocator parent;

  GpuDevice *device;
  GpuMemoryKind kind; /* of rows of bytes */
  GMutex lock;
  GpuStream *stream; /* under the lock; made when first needed, then constant */
};

G_DEFINE_TYPE (GstGpuAllocator, gst_gpu_allocator, GST_TYPE_ALLOCATOR)

static guint failed_signal;

void
gst_gpu_allocator_failed (GstGpuAllocator *self, const GError *error)
{
  g_signal_emit (self, failed_signal, 0, error);
}

static GstMemory *
gst_gpu_allocator_alloc (GstAllocator *allocator, gsize size, GstAllocationParams *params)
{
  GstGpuAllocator *self = GST_GPU_ALLOCATOR (allocator);
  GstMemoryFlags zeroes = params->flags & (GST_MEMORY_FLAG_ZERO_PREFIXED | GST_MEMORY_FLAG_ZERO_PADDED);
  g_autoptr (GError) error = NULL;
  GpuStream *stream = gst_gpu_allocator_get_stream (self, &error);
  GpuImage *image = NULL;
  GpuImageSpec spec;
  GstMemory *memory;
  gsize maxsize;

  if (!g_size_checked_add (&maxsize, params->prefix, params->padding) || !g_size_checked_add (&maxsize, maxsize, size))
    maxsize = G_MAXSIZE;
  if (stream && gst_gpu_bytes_spec (&spec, maxsize, MAX (params->align + 1, GPU_DEFAULT_ALIGNMENT), &error))
    image = gpu_image_acquire (self->device, &spec, self->kind, stream, GPU_ACQUIRE_DEFAULT, &error);
  if (image && zeroes && self->kind == GPU_MEMORY_HOST)
    memset (gpu_image_data (image), 0, maxsize);
  else if (image && zeroes && !gpu_image_fill (stream, image, 0, &error))
    g_clear_pointer (&image, gpu_image_unref);
  if (!image) {
    GST_ERROR_OBJECT (self, "%" G_GSIZE_FORMAT " bytes cannot be allocated: %s", size, error->message);
    return NULL;
  }

  memory = gst_gpu_memory_new (self, image, stream, NULL, maxsize, params->align, params->prefix, size);
  if (zeroes) {
    GST_MINI_OBJECT_FLAG_SET (memory, zeroes);
    gst_gpu_memory_set_touched (memory);
  }
  return memory;
}

static void
gst_gpu_allocator_free (GstAllocator *allocator, GstMemory *memory)
{
  gst_gpu_memory_free (memory);
}

static void
gst_gpu_allocator_finalize (GObject *object)
{
  GstGpuAllocator *self = GST_GPU_ALLOCATOR (object);

  g_clear_pointer (&self->stream, gpu_stream_unref);
  g_clear_pointer (&self->device, gpu_device_unref);
  g_mutex_clear (&self->lock);

  G_OBJECT_CLASS (gst_gpu_allocator_parent_class)->finalize (object);
}

static void
gst_gpu_allocator_class_init (GstGpuAllocatorClass *klass)
{
  GstAllocatorClass *allocator_class = GST_ALLOCATOR_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (gpu_allocator_debug, "gpuallocator", 0, "GPU cache allocator");

  failed_signal = g_signal_new ("failed", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, G_TYPE_ERROR);

  G_OBJECT_CLASS (klass)->finalize = gst_gpu_allocator_finalize;
  allocator_class->alloc = gst_gpu_allocator_alloc;
  allocator_class->free = gst_gpu_allocator_free;
}

static void
gst_gpu_allocator_init (GstGpuAllocator *self)
{
  g_mutex_init (&self->lock);
  gst_gpu_memory_init_allocator (GST_ALLOCATOR (self));
}

GstAllocator *
gst_gpu_allocator_new (GpuDevice *device)
{
  return gst_gpu_allocator_new_with_kind (device, GPU_MEMORY_STREAM_ORDERED);
}

GstAllocator *
gst_gpu_allocator_new_with_kind (GpuDevice *device, GpuMemoryKind kind)
{
  GstGpuAllocator *self;

  g_return_val_if_fail (device != NULL, NULL);
  g_return_val_if_fail ((guint)kind < GPU_N_MEMORY_KINDS, NULL);

  self = g_object_new (GST_TYPE_GPU_ALLOCATOR, NULL);
  gst_object_ref_sink (self);
  self->device = gpu_device_ref (device);
  self->kind = kind;
  if (kind == GPU_MEMORY_HOST) {
    GST_ALLOCATOR (self)->mem_type = GST_GPU_HOST_MEMORY_TYPE;
  } else {
    GST_ALLOCATOR (self)->mem_type = GST_GPU_MEMORY_TYPE;
    /* Keeps base classes from taking rows of bytes for frames. */
    GST_OBJECT_FLAG_SET (self, GST_ALLOCATOR_FLAG_CUSTOM_ALLOC);
  }
  return GST_ALLOCATOR (self);
}

GpuDevice *
gst_gpu_allocator_get_device (GstGpuAllocator *allocator)
{
  g_return_val_if_fail (GST_IS_GPU_ALLOCATOR (allocator), NULL);

  return allocator->device;
}

/* One allocator for all that is wrapped on a device at a time, so that a frame costs no stream of its own. The table
 * does not keep it: it would keep the device. */
GstGpuAllocator *
gst_gpu_allocator_ref_shared (GpuDevice *device)
{
  static GMutex lock;
  static GHashTable *allocators; /* by device, to GWeakRef */
  GWeakRef *shared;
  GstGpuAllocator *allocator;

  g_mutex_lock (&lock);
  if (!allocators)
    allocators = g_hash_table_new (NULL, NULL);
  shared = g_hash_table_lookup (allocators, device);
  if (!shared) {
    shared = g_new0 (GWeakRef, 1);
    g_hash_table_insert (allocators, device, shared);
  }
  allocator = g_weak_ref_get (shared);
  if (!allocator) {
    allocator = GST_GPU_ALLOCATOR (gst_gpu_allocator_new (device));
    g_weak_ref_set (shared, allocator);
  }
  g_mutex_unlock (&lock);
  return allocator;
}

GpuStream *
gst_gpu_allocator_get_stream (GstGpuAllocator *allocator, GError **error)
{
  GpuStream *stream;

  g_mutex_lock (&allocator->lock);
  if (!allocator->stream)
    allocator->stream = gpu_stream_new (allocator->device, false, error);
  stream = allocator->stream;
  g_mutex_unlock (&allocator->lock);
  return stream;
}

GstMemory *
gst_gpu_allocator_alloc_spec (GstGpuAllocator *allocator, const GpuImageSpec *spec, const GstVideoInfo *info,
                              GpuMemoryKind kind, GpuStream *stream, GError **error)
{
  GpuImage *image;

  if (!stream && !(stream = gst_gpu_allocator_get_stream (allocator, error)))
    return NULL;
  image = gpu_image_acquire (allocator->device, spec, kind, stream, GPU_ACQUIRE_DEFAULT, error);
  if (!image)
    return NULL;
  return gst_gpu_memory_new (allocator, image, stream, info, spec->size, spec->alignment - 1, 0, spec->size);
}

GstMemory *
gst_gpu_allocator_take_image (GstGpuAllocator *allocator, GpuImage *image, const GstVideoInfo *info, GpuStream *stream)
{
  const GpuImageSpec *spec;
  GstMemory *memory;

  g_return_val_if_fail (GST_IS_GPU_ALLOCATOR (allocator), NULL);
  g_return_val_if_fail (image != NULL && gpu_image_device (image) == allocator->device, NULL);
  g_return_val_if_fail (stream != NULL && gpu_stream_device (stream) == allocator->device, NULL);

  spec = gpu_image_spec (image);
  memory = gst_gpu_memory_new (allocator, image, stream, info, spec->size, spec->alignment - 1, 0, spec->size);
  gst_gpu_memory_set_touched (memory);
  return memory;
}

GstMemory *
gst_gpu_allocator_alloc_bytes (GstGpuAllocator *allocator, gsize size, GpuMemoryKind kind, GpuStream *stream,
                               GError **error)
{
  GpuImageSpec spec;
  GstMemory *memory;

  if (!gst_gpu_bytes_spec (&spec, size, GPU_DEFAULT_ALIGNMENT, error))
    return NULL;
  memory = gst_gpu_allocator_alloc_spec (allocator, &spec, NULL, kind, stream, error);
  if (memory)
    memory->size = memory->maxsize = size;
  return memory;
}

GstMemory *
gst_gpu_allocator_alloc_video (GstGpuAllocator *allocator, const GstVideoInfo *info, gboolean keep_layout,
                               GpuMemoryKind kind, GpuStream *stream, GError **error)
{
  GstVideoInfo layout;
  GpuImageSpec spec;

  g_return_val_if_fail (GST_IS_GPU_ALLOCATOR (allocator), NULL);
  g_return_val_if_fail (info != NULL, NULL);

  layout = *info;
  if (keep_layout) {
    if (!gst_gpu_image_spec_from_video_info (&spec, info, error))
      return NULL;
    /* The layout says where planes lie in the memory, the memory itself can lie as well as any. */
    spec.alignment = GPU_DEFAULT_ALIGNMENT;
  } else if (!gst_gpu_image_spec_for_video_info (&spec, info, GPU_DEFAULT_ALIGNMENT, error)) {
    return NULL;
  }
  if (!gst_gpu_video_info_take_layout (&layout, &spec, error))
    return NULL;
  return gst_gpu_allocator_alloc_spec (allocator, &spec, &layout, kind, stream, error);
}
