/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuMemory: maps, copies and shares of an image of the cache (G3, G4). A share is a plain GstMemory whose parent is
 * the root; all that matters is the root's.
 */
#include "gstgpumemory-priv.h"

GST_DEBUG_CATEGORY_STATIC (gpu_memory_debug);
#define GST_CAT_DEFAULT gpu_memory_debug

struct _GstGpuMemory {
  GstMemory parent;

  GpuImage *image;
  gboolean is_video;
  GpuMemoryKind copy_kind;

  /* Of the mini object, when a pool last handed the memory out: changed by who leaves flags, qdata or weak references.
   */
  guint pool_flags, pool_state;

  /* Whether somebody may have written since the memory was acquired; atomic, never goes back. */
  gint touched;

  GMutex lock;
  /* Under the lock. */
  GpuStream *stream; /* atomic, too, for who only wants to know */
  GpuImage *shadow;  /* what maps on the host see where they cannot see the image; there while one is open */
  guint host_readers, host_writers;
  guint gpu_readers, gpu_writers;
  GpuStream *gpu_stream; /* of all open maps on the device; NULL if they are on several */

  GstVideoInfo info; /* if it is_video; large, and seldom looked at: what each frame needs is side by side above */
};

static GstGpuMemory *
get_root (GstMemory *memory)
{
  return (GstGpuMemory *)(memory->parent ? memory->parent : memory);
}

static GpuAccessFlags
get_access (GstMapFlags flags)
{
  guint access = 0;

  if (flags & GST_MAP_WRITE)
    access |= GPU_ACCESS_WRITE;
  if (flags & GST_MAP_READ || !access)
    access |= GPU_ACCESS_READ;
  return (GpuAccessFlags)access;
}

static gboolean
is_host_addressable (GstGpuMemory *self)
{
  GpuMemoryKind kind = gpu_image_kind (self->image);

  return gpu_device_is_host (gpu_image_device (self->image)) || kind == GPU_MEMORY_HOST || kind == GPU_MEMORY_MANAGED;
}

/* Maps on the host */

static gboolean
open_shadow (GstGpuMemory *self, GpuAccessFlags access, GError **error)
{
  GpuImage *shadow = self->shadow;

  if (!shadow) {
    shadow = gpu_image_acquire (gpu_image_device (self->image), gpu_image_spec (self->image), GPU_MEMORY_HOST,
                                self->stream, GPU_ACQUIRE_HOST, error);
    if (!shadow)
      return FALSE;
    /* A map for writing needs the bytes, too: it may write only some of them. */
    if (g_atomic_int_get (&self->touched) && !gpu_image_copy (self->stream, self->image, shadow, error)) {
      gpu_image_unref (shadow);
      return FALSE;
    }
  }
  if (!gpu_image_wait (shadow, access, error)) {
    if (!self->shadow)
      gpu_image_unref (shadow);
    return FALSE;
  }
  self->shadow = shadow;
  return TRUE;
}

static gpointer
map_host (GstGpuMemory *self, GpuAccessFlags access)
{
  g_autoptr (GError) error = NULL;
  gpointer data = NULL;
  gboolean writes = access & GPU_ACCESS_WRITE;

  g_mutex_lock (&self->lock);
  if (self->gpu_writers || (writes && self->gpu_readers)) {
    GST_WARNING (
        "memory %p cannot be mapped for %s on the host: it is mapped for %s on the device, unmap it there first",
        (void *)self, writes ? "writing" : "reading", self->gpu_writers ? "writing" : "reading");
  } else if (is_host_addressable (self)) {
    if (gpu_image_wait (self->image, access, &error))
      data = gpu_image_data (self->image);
  } else {
    if (open_shadow (self, access, &error))
      data = gpu_image_data (self->shadow);
  }

  if (data && writes) {
    self->host_writers++;
    g_atomic_int_set (&self->touched, TRUE);
  } else if (data) {
    self->host_readers++;
  }
  g_mutex_unlock (&self->lock);

  if (error) {
    GST_ERROR ("memory %p cannot be mapped on the host: %s", (void *)self, error->message);
    gst_gpu_allocator_failed (GST_GPU_ALLOCATOR (self->parent.allocator), error);
  }
  return data;
}

static void
unmap_host (GstGpuMemory *self, GpuAccessFlags access)
{
  g_autoptr (GError) error = NULL;
  GpuImage *unused = NULL;

  g_mutex_lock (&self->lock);
  if (access & GPU_ACCESS_WRITE)
    self->host_writers--;
  else
    self->host_readers--;

  if (self->shadow && (access & GPU_ACCESS_WRITE) && !self->host_writers &&
      !gpu_image_copy (self->stream, self->shadow, self->image, &error))
    GST_ERROR ("what was written to memory %p did not reach the device: %s", (void *)self, error->message);
  if (!self->host_writers && !self->host_readers)
    unused = g_steal_pointer (&self->shadow);
  g_mutex_unlock (&self->lock);

  if (unused)
    gpu_image_unref (unused);
}

/* Maps on the device */

static gpointer
map_gpu (GstGpuMemory *self, GpuStream *stream, GpuAccessFlags access)
{
  g_autoptr (GError) error = NULL;
  gpointer data = NULL;
  gboolean writes = access & GPU_ACCESS_WRITE;
  gboolean is_mapped;

  g_mutex_lock (&self->lock);
  if (!stream)
    stream = self->stream;
  is_mapped = self->gpu_readers || self->gpu_writers;
  if (self->host_writers || (writes && self->host_readers)) {
    GST_WARNING (
        "memory %p cannot be mapped for %s on the device: it is mapped for %s on the host, unmap it there first",
        (void *)self, writes ? "writing" : "reading", self->host_writers ? "writing" : "reading");
  } else if (is_mapped && self->gpu_stream != stream && (writes || self->gpu_writers)) {
    /* Work of two open maps would be in no order. */
    GST_WARNING ("memory %p cannot be mapped for %s on stream %" G_GUINT64_FORMAT
                 ": it is mapped for %s on another stream, unmap it there first",
                 (void *)self, writes ? "writing" : "reading", gpu_stream_id (stream),
                 self->gpu_writers ? "writing" : "reading");
  } else if (!gpu_image_begin_access (self->image, stream, access, &error)) {
    GST_ERROR ("memory %p cannot be mapped on the device: %s", (void *)self, error->message);
  } else {
    data = gpu_image_data (self->image);
    self->gpu_stream = !is_mapped || self->gpu_stream == stream ? stream : NULL;
    if (writes) {
      self->gpu_writers++;
      g_atomic_int_set (&self->touched, TRUE);
    } else {
      self->gpu_readers++;
    }
  }
  g_mutex_unlock (&self->lock);
  return data;
}

static void
unmap_gpu (GstGpuMemory *self, GpuStream *stream, GpuAccessFlags access)
{
  g_autoptr (GError) error = NULL;

  g_mutex_lock (&self->lock);
  if (!gpu_image_end_access (self->image, stream ? stream : self->stream, access, &error))
    GST_ERROR ("work on memory %p cannot be waited for: %s", (void *)self, error->message);
  if (access & GPU_ACCESS_WRITE)
    self->gpu_writers--;
  else
    self->gpu_readers--;
  g_mutex_unlock (&self->lock);
}

static gpointer
gpu_memory_map (GstMemory *memory, GstMapInfo *info, gsize maxsize)
{
  GstGpuMemory *self = get_root (memory);
  GpuAccessFlags access = get_access (info->flags);

  return info->flags & GST_MAP_GPU ? map_gpu (self, NULL, access) : map_host (self, access);
}

static void
gpu_memory_unmap (GstMemory *memory, GstMapInfo *info)
{
  GstGpuMemory *self = get_root (memory);
  GpuAccessFlags access = get_access (info->flags);

  if (info->flags & GST_MAP_GPU)
    unmap_gpu (self, NULL, access);
  else
    unmap_host (self, access);
}

/* Copies and shares */

/* The device would have the host copy pinned memory, and hold its stream meanwhile. */
static gboolean
copy_image (GstGpuMemory *self, GpuImage *src, GpuImage *dst, GError **error)
{
  if (self->copy_kind != GPU_MEMORY_HOST)
    return gpu_image_copy (self->stream, src, dst, error);
  if (!gpu_image_wait (src, GPU_ACCESS_READ, error))
    return FALSE;
  memcpy (gpu_image_data (dst), gpu_image_data (src), gpu_image_spec (src)->size);
  return TRUE;
}

static GstMemory *
copy_whole (GstGpuMemory *self, GError **error)
{
  GstGpuAllocator *allocator = GST_GPU_ALLOCATOR (self->parent.allocator);
  GstGpuMemory *copy;

  copy = (GstGpuMemory *)gst_gpu_allocator_alloc_spec (allocator, gpu_image_spec (self->image),
                                                       self->is_video ? &self->info : NULL, self->copy_kind,
                                                       self->stream, error);
  if (!copy)
    return NULL;
  copy->parent.maxsize = self->parent.maxsize;
  copy->parent.size = self->parent.maxsize;
  if (!copy_image (self, self->image, copy->image, error)) {
    gst_memory_unref (&copy->parent);
    return NULL;
  }
  return &copy->parent;
}

static gboolean
copy_bytes (GstGpuMemory *self, gsize start, gsize size, GpuImage *dst, GError **error)
{
  GpuImageSpec spec;
  GpuImage *bytes;
  gboolean copied;

  if (!gpu_image_spec_init_full (&spec, GPU_FORMAT_GRAY8, (guint32)size, 1, &size, &(gsize){0}, size, error))
    return FALSE;
  bytes = gpu_image_view_as (self->image, start, &spec, error);
  copied = bytes && copy_image (self, bytes, dst, error);
  if (bytes)
    gpu_image_unref (bytes);
  return copied;
}

static GstMemory *
copy_part (GstGpuMemory *self, gsize start, gsize size, GError **error)
{
  GstGpuAllocator *allocator = GST_GPU_ALLOCATOR (self->parent.allocator);
  GstGpuMemory *copy;

  copy = (GstGpuMemory *)gst_gpu_allocator_alloc_bytes (allocator, size, self->copy_kind, self->stream, error);
  if (!copy)
    return NULL;
  if (size > 0 && !copy_bytes (self, start, size, copy->image, error)) {
    gst_memory_unref (&copy->parent);
    return NULL;
  }
  return &copy->parent;
}

/* What gst_memory_copy() and gst_memory_share() mean by offset and size. */
static gboolean
get_range (GstMemory *memory, gssize offset, gssize size, gsize *start, gsize *length)
{
  gssize from = (gssize)memory->offset + offset;
  gssize bytes = size == -1 ? MAX ((gssize)memory->size - offset, 0) : size;

  if (from < 0 || bytes < 0 || (gsize)from > memory->maxsize || (gsize)bytes > memory->maxsize - (gsize)from) {
    GST_WARNING ("memory %p has no %" G_GSSIZE_FORMAT " bytes at offset %" G_GSSIZE_FORMAT
                 ": its size is %" G_GSIZE_FORMAT " of at most %" G_GSIZE_FORMAT,
                 (void *)memory, bytes, offset, memory->size, memory->maxsize);
    return FALSE;
  }
  *start = (gsize)from;
  *length = (gsize)bytes;
  return TRUE;
}

static GstMemory *
gpu_memory_copy (GstMemory *memory, gssize offset, gssize size)
{
  GstGpuMemory *self = get_root (memory);
  g_autoptr (GError) error = NULL;
  GstMemory *copy = NULL;
  gsize start, length;

  if (!get_range (memory, offset, size, &start, &length))
    return NULL;

  g_mutex_lock (&self->lock);
  if (self->host_writers || self->gpu_writers) {
    GST_WARNING ("memory %p cannot be copied while it is mapped for writing on the %s: unmap it first", (void *)self,
                 self->host_writers ? "host" : "device");
  } else {
    copy = start == 0 && length == self->parent.maxsize ? copy_whole (self, &error)
                                                        : copy_part (self, start, length, &error);
    if (copy)
      gst_gpu_memory_set_touched (copy);
    else
      GST_ERROR ("memory %p cannot be copied: %s", (void *)self, error->message);
  }
  g_mutex_unlock (&self->lock);
  return copy;
}

static GstMemory *
gpu_memory_share (GstMemory *memory, gssize offset, gssize size)
{
  GstMemory *root = &get_root (memory)->parent;
  GstMemory *share;
  gsize start, length;

  if (!get_range (memory, offset, size, &start, &length))
    return NULL;

  share = g_new0 (GstMemory, 1);
  gst_memory_init (share, (GstMemoryFlags)(GST_MINI_OBJECT_FLAGS (root) | GST_MINI_OBJECT_FLAG_LOCK_READONLY),
                   root->allocator, root, root->maxsize, root->align, start, length);
  return share;
}

/* Merging what lies side by side would need the parent's layout, which no part of a frame has. */
static gboolean
gpu_memory_is_span (GstMemory *memory1, GstMemory *memory2, gsize *offset)
{
  return FALSE;
}

/* For allocator and pool */

void
gst_gpu_memory_init_allocator (GstAllocator *allocator)
{
  static gsize once = 0;

  if (g_once_init_enter (&once)) {
    GST_DEBUG_CATEGORY_INIT (gpu_memory_debug, "gpumemory", 0, "GPU cache memory");
    g_once_init_leave (&once, 1);
  }

  allocator->mem_map_full = gpu_memory_map;
  allocator->mem_unmap_full = gpu_memory_unmap;
  allocator->mem_copy = gpu_memory_copy;
  allocator->mem_share = gpu_memory_share;
  allocator->mem_is_span = gpu_memory_is_span;
}

GstMemory *
gst_gpu_memory_new (GstGpuAllocator *allocator, GpuImage *image, GpuStream *stream, const GstVideoInfo *info,
                    gsize maxsize, gsize align, gsize offset, gsize size)
{
  GstGpuMemory *self = g_new (GstGpuMemory, 1);

  memset (self, 0, sizeof *self); /* in GLib 2.74 that is twice as fast as g_new0() */
  g_mutex_init (&self->lock);
  self->image = image;
  self->copy_kind = gpu_image_kind (image);
  self->stream = gpu_stream_ref (stream);
  if (info) {
    self->info = *info;
    self->is_video = TRUE;
  }
  gst_memory_init (&self->parent, (GstMemoryFlags)0, GST_ALLOCATOR (allocator), NULL, maxsize, align, offset, size);
  return &self->parent;
}

void
gst_gpu_memory_free (GstMemory *memory)
{
  GstGpuMemory *self = (GstGpuMemory *)memory;

  /* The parent's reference is gone by now: only whether there was one is known. */
  if (memory->parent) {
    g_free (memory);
    return;
  }
  if (self->host_readers || self->host_writers || self->gpu_readers || self->gpu_writers)
    GST_ERROR ("memory %p is freed while it is mapped: unmap it before its last reference is dropped", (void *)self);
  if (self->shadow)
    gpu_image_unref (self->shadow);
  if (self->image)
    gpu_image_unref (self->image);
  if (self->stream)
    gpu_stream_unref (self->stream);
  g_mutex_clear (&self->lock);
  g_free (self);
}

void
gst_gpu_memory_hand_out (GstMemory *memory)
{
  GstGpuMemory *self = (GstGpuMemory *)memory;

  self->pool_flags = GST_MINI_OBJECT_FLAGS (memory);
  self->pool_state = memory->mini_object.priv_uint;
}

gboolean
gst_gpu_memory_empty (GstMemory *memory)
{
  GstGpuMemory *self = (GstGpuMemory *)memory;

  if (memory->parent || GST_MINI_OBJECT_REFCOUNT_VALUE (memory) != 1 || self->shadow || self->host_readers ||
      self->host_writers || self->gpu_readers || self->gpu_writers ||
      self->pool_flags != GST_MINI_OBJECT_FLAGS (memory) || self->pool_state != memory->mini_object.priv_uint)
    return FALSE;
  /* The next image is nearly always for the same stream, and to let go of that and take it again costs more than all
   * the rest of this. So it stays until another one comes or the pool stops. */
  g_clear_pointer (&self->image, gpu_image_unref);
  self->touched = FALSE;
  memory->offset = memory->size = memory->maxsize = 0;
  return TRUE;
}

void
gst_gpu_memory_fill (GstMemory *memory, GpuImage *image, GpuStream *stream, gsize size)
{
  GstGpuMemory *self = (GstGpuMemory *)memory;

  self->image = image;
  if (self->stream != stream) {
    gpu_stream_unref (self->stream);
    self->stream = gpu_stream_ref (stream);
  }
  memory->size = memory->maxsize = size;
}

/* It is so after the first of many calls, and to look costs less than to write. */
void
gst_gpu_memory_set_touched (GstMemory *memory)
{
  GstGpuMemory *self = get_root (memory);

  if (!g_atomic_int_get (&self->touched))
    g_atomic_int_set (&self->touched, TRUE);
}

/* Public */

/* As GST_IS_GPU_ALLOCATOR() says after two calls: a frame's way through an element asks a dozen times. */
static inline gboolean
is_ours (const GstMemory *memory)
{
  return memory && memory->allocator && memory->allocator->mem_map_full == gpu_memory_map;
}

gboolean
gst_is_gpu_memory (GstMemory *memory)
{
  return is_ours (memory);
}

GpuImage *
gst_gpu_memory_get_image (GstMemory *memory)
{
  g_return_val_if_fail (is_ours (memory), NULL);

  gst_gpu_memory_set_touched (memory);
  return get_root (memory)->image;
}

GpuMemoryKind
gst_gpu_memory_get_kind (GstMemory *memory)
{
  g_return_val_if_fail (is_ours (memory), GPU_MEMORY_STREAM_ORDERED);

  return gpu_image_kind (get_root (memory)->image);
}

gboolean
gst_gpu_memory_is_host_addressable (GstMemory *memory)
{
  g_return_val_if_fail (is_ours (memory), FALSE);

  return is_host_addressable (get_root (memory));
}

GpuStream *
gst_gpu_memory_get_stream (GstMemory *memory)
{
  g_return_val_if_fail (is_ours (memory), NULL);

  return g_atomic_pointer_get (&get_root (memory)->stream);
}

void
gst_gpu_memory_set_stream (GstMemory *memory, GpuStream *stream)
{
  GstGpuMemory *self;
  GpuStream *old = NULL;

  g_return_if_fail (is_ours (memory));
  g_return_if_fail (stream != NULL);

  self = get_root (memory);
  g_return_if_fail (gpu_stream_device (stream) == gpu_image_device (self->image));

  g_mutex_lock (&self->lock);
  if (self->host_readers || self->host_writers || self->gpu_readers || self->gpu_writers) {
    g_critical ("the stream of memory %p cannot be set while it is mapped", (void *)memory);
  } else if (self->stream != stream) {
    old = self->stream;
    g_atomic_pointer_set (&self->stream, gpu_stream_ref (stream));
  }
  g_mutex_unlock (&self->lock);

  if (old)
    gpu_stream_unref (old);
}

const GstVideoInfo *
gst_gpu_memory_get_video_info (GstMemory *memory)
{
  GstGpuMemory *self;

  g_return_val_if_fail (is_ours (memory), NULL);

  self = get_root (memory);
  return self->is_video ? &self->info : NULL;
}

gboolean
gst_gpu_memory_map_on (GstMemory *memory, GpuStream *stream, GstMapFlags flags, gpointer *data)
{
  guint8 *base;

  g_return_val_if_fail (is_ours (memory), FALSE);
  g_return_val_if_fail (stream != NULL, FALSE);
  g_return_val_if_fail (data != NULL, FALSE);

  *data = NULL;
  if (!gst_memory_lock (memory, (GstLockFlags)flags)) {
    GST_WARNING ("memory %p cannot be mapped for %s: it is mapped otherwise, or shared", (void *)memory,
                 flags & GST_MAP_WRITE ? "writing" : "reading");
    return FALSE;
  }
  base = map_gpu (get_root (memory), stream, get_access (flags));
  if (!base) {
    gst_memory_unlock (memory, (GstLockFlags)flags);
    return FALSE;
  }
  *data = base + memory->offset;
  return TRUE;
}

void
gst_gpu_memory_unmap_on (GstMemory *memory, GpuStream *stream, GstMapFlags flags)
{
  g_return_if_fail (is_ours (memory));
  g_return_if_fail (stream != NULL);

  unmap_gpu (get_root (memory), stream, get_access (flags));
  gst_memory_unlock (memory, (GstLockFlags)flags);
}

GstMemory *
gst_gpu_memory_wrap (GpuDevice *device, const GstVideoInfo *info, gpointer data, GpuStream *stream,
                     GDestroyNotify notify, gpointer user_data, GError **error)
{
  g_autoptr (GstGpuAllocator) allocator = NULL;
  GpuStream *work_stream = stream;
  GpuImageSpec spec;
  GpuImage *image;
  GstMemory *memory;

  g_return_val_if_fail (device != NULL, NULL);
  g_return_val_if_fail (info != NULL, NULL);
  g_return_val_if_fail (data != NULL, NULL);

  if (!gst_gpu_image_spec_from_video_info (&spec, info, error))
    return NULL;
  allocator = gst_gpu_allocator_ref_shared (device);
  if (!work_stream && !(work_stream = gst_gpu_allocator_get_stream (allocator, error)))
    return NULL;
  image = gpu_image_wrap (device, &spec, GPU_MEMORY_DEVICE, data, stream, notify, user_data, error);
  if (!image)
    return NULL;

  memory = gst_gpu_memory_new (allocator, image, work_stream, info, spec.size, 0, 0, spec.size);
  /* Only its owner knows what somebody else's memory is; a copy is the cache's. */
  ((GstGpuMemory *)memory)->copy_kind = GPU_MEMORY_STREAM_ORDERED;
  gst_gpu_memory_set_touched (memory);
  return memory;
}
