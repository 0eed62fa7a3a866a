/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuBufferPool (G1, G2). GstBufferPool's queue holds empty buffers only: it counts them, blocks and flushes, while
 * the memory comes from the device's cache at each acquire and is back there before a buffer is in the queue again. So
 * a pool keeps nothing from pools of other sizes.
 */
#include "gstgpumemory-priv.h"

#include <gpucache/gstgpubufferpool.h>
#include <gpucache/gstgpuframeinfo.h>

GST_DEBUG_CATEGORY_STATIC (gpu_buffer_pool_debug);
#define GST_CAT_DEFAULT gpu_buffer_pool_debug

#define MEMORY_KIND_FIELD "gpucache-memory-kind"

/* What the buffers of a config are. */
typedef struct {
  GpuImageSpec spec;
  GpuMemoryKind kind;
  gboolean is_video;
  GstVideoInfo info;   /* if it is; with spec's layout */
  gboolean is_aligned; /* if it is, by the option VIDEO_ALIGNMENT */
  GstVideoAlignment align;
  gsize size; /* of a buffer, in bytes; a row of bytes may be padded behind them */
} Layout;

struct _GstGpuBufferPool {
  GstBufferPool parent;

  GstGpuAllocator *allocator;
  GpuDevice *device;  /* the allocator's, which holds it */
  GpuMemoryKind kind; /* of configs that name none */

  /* From the config; constant while the pool is active. */
  Layout layout;
  guint min_buffers;

  GMutex lock;
  /* Of acquires that name none, from the first one until the pool stops; atomic, set under the lock. */
  GpuStream *stream;
};

G_DEFINE_TYPE (GstGpuBufferPool, gst_gpu_buffer_pool, GST_TYPE_BUFFER_POOL)

static guint failed_signal;

static const gchar **
gst_gpu_buffer_pool_get_options (GstBufferPool *pool)
{
  static const gchar *options[] = {GST_BUFFER_POOL_OPTION_VIDEO_META, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT, NULL};

  return options;
}

/* GStreamer gives alignments as masks. */
static gboolean
raise_alignment (gsize *alignment, gsize mask, GError **error)
{
  if (mask & (mask + 1)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "an alignment of %" G_GSIZE_FORMAT " is not one less than a power of two", mask);
    return FALSE;
  }
  *alignment = MAX (*alignment, mask + 1);
  return TRUE;
}

/* Applies the option VIDEO_ALIGNMENT and writes into @config what it came to. */
static gboolean
align_video (Layout *layout, GstStructure *config, gsize *alignment, GError **error)
{
  GstVideoAlignment *align = &layout->align;

  gst_video_alignment_reset (align);
  gst_buffer_pool_config_get_video_alignment (config, align);
  for (guint i = 0; i < GST_VIDEO_MAX_PLANES; i++)
    if (!raise_alignment (alignment, align->stride_align[i], error))
      return FALSE;
  if (!gst_video_info_align (&layout->info, align)) {
    g_set_error_literal (error, GPU_ERROR, GPU_ERROR_INVALID, "with the padding asked for, a frame is too large");
    return FALSE;
  }
  gst_buffer_pool_config_set_video_alignment (config, align);
  return TRUE;
}

/* With an odd padding at the left or top, GStreamer rounds up where subsampled planes begin, but not where they end, so
 * that the last one ends behind the size that it gives. */
static gboolean
take_software_layout (Layout *layout, GError **error)
{
  GstVideoInfo info = layout->info;

  GST_VIDEO_INFO_SIZE (&info) = 0;
  if (!gst_gpu_image_spec_from_video_info (&layout->spec, &info, error))
    return FALSE;
  layout->spec.size = MAX (layout->spec.size, GST_VIDEO_INFO_SIZE (&layout->info));
  GST_VIDEO_INFO_SIZE (&layout->info) = layout->spec.size;
  return TRUE;
}

/* Managed memory is for software where its caps say so. */
static gboolean
is_for_software (GpuMemoryKind kind, GstCaps *caps)
{
  return kind == GPU_MEMORY_HOST ||
         (kind == GPU_MEMORY_MANAGED &&
          !gst_caps_features_contains (gst_caps_get_features (caps, 0), GST_CAPS_FEATURE_MEMORY_GPU_CACHE));
}

static gboolean
layout_video (Layout *layout, GstStructure *config, GstCaps *caps, gsize alignment, GError **error)
{
  layout->is_aligned = gst_buffer_pool_config_has_option (config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT);
  if (!gst_video_info_from_caps (&layout->info, caps)) {
    g_set_error_literal (error, GPU_ERROR, GPU_ERROR_INVALID, "they have no format, width or height that can be read");
    return FALSE;
  }
  if (layout->is_aligned && !align_video (layout, config, &alignment, error))
    return FALSE;

  if (layout->is_aligned || is_for_software (layout->kind, caps)) {
    /* Software's strides are kept, or it would use frames of its own; the memory itself may lie as well as any. */
    if (!take_software_layout (layout, error))
      return FALSE;
    layout->spec.alignment = alignment;
  } else if (!gst_gpu_image_spec_for_video_info (&layout->spec, &layout->info, alignment, error) ||
             !gst_gpu_video_info_take_layout (&layout->info, &layout->spec, error)) {
    return FALSE;
  }

  if (layout->spec.size > G_MAXUINT) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "a frame of %" G_GSIZE_FORMAT " bytes is more than a buffer pool can describe", layout->spec.size);
    return FALSE;
  }
  layout->size = layout->spec.size;
  return TRUE;
}

static gboolean
layout_tensor (Layout *layout, GstCaps *caps, gsize alignment, GError **error)
{
  GstGpuFrameInfo info;

  if (!gst_gpu_frame_info_from_caps (&info, caps, error))
    return FALSE;
  layout->spec = info.spec;
  layout->spec.alignment = MAX (alignment, info.spec.alignment);
  layout->size = info.spec.size;
  return TRUE;
}

static gboolean
layout_bytes (Layout *layout, guint size, gsize alignment, GError **error)
{
  if (!size) {
    g_set_error_literal (error, GPU_ERROR, GPU_ERROR_INVALID,
                         "they are neither video/x-raw nor " GST_GPU_TENSOR_NAME
                         ", so the config has to give a size in bytes, which is 0");
    return FALSE;
  }
  layout->size = size;
  return gst_gpu_bytes_spec (&layout->spec, size, alignment, error);
}

static gboolean
layout_buffers (Layout *layout, GstStructure *config, GstCaps *caps, guint size, const GstAllocationParams *params,
                GError **error)
{
  gsize alignment = GPU_DEFAULT_ALIGNMENT;

  if ((guint)layout->kind >= GPU_N_MEMORY_KINDS) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "there is no memory kind number %d: set one of GpuMemoryKind",
                 (gint)layout->kind);
    return FALSE;
  }
  if (!raise_alignment (&alignment, params->align, error))
    return FALSE;
  layout->is_video = gst_structure_has_name (gst_caps_get_structure (caps, 0), "video/x-raw");
  if (layout->is_video)
    return layout_video (layout, config, caps, alignment, error);
  if (gst_structure_has_name (gst_caps_get_structure (caps, 0), GST_GPU_TENSOR_NAME))
    return layout_tensor (layout, caps, alignment, error);
  return layout_bytes (layout, size, alignment, error);
}

static gboolean
gst_gpu_buffer_pool_set_config (GstBufferPool *pool, GstStructure *config)
{
  GstGpuBufferPool *self = GST_GPU_BUFFER_POOL (pool);
  g_autoptr (GError) error = NULL;
  g_autoptr (GstStructure) base_config = NULL;
  GstAllocator *allocator;
  GstAllocationParams params;
  GstCaps *caps;
  guint size, min_buffers, max_buffers;
  Layout layout = {0};

  if (!gst_buffer_pool_config_get_params (config, &caps, &size, &min_buffers, &max_buffers) ||
      !gst_buffer_pool_config_get_allocator (config, &allocator, &params)) {
    GST_WARNING_OBJECT (self,
                        "the config %" GST_PTR_FORMAT
                        " lacks caps, size, numbers of buffers or allocation params: set them with "
                        "gst_buffer_pool_config_set_params() and _set_allocator()",
                        (void *)config);
    return FALSE;
  }
  if (!caps || !gst_caps_is_fixed (caps)) {
    GST_WARNING_OBJECT (self, "the config has %s caps: set fixed ones with gst_buffer_pool_config_set_params()",
                        caps ? "unfixed" : "no");
    return FALSE;
  }
  layout.kind = gst_structure_has_field (config, MEMORY_KIND_FIELD)
                    ? gst_gpu_buffer_pool_config_get_memory_kind (config)
                    : self->kind;
  if (!layout_buffers (&layout, config, caps, size, &params, &error)) {
    GST_WARNING_OBJECT (self, "buffers of caps %" GST_PTR_FORMAT " cannot be laid out: %s", (void *)caps,
                        error->message);
    return FALSE;
  }

  /* Who asks for another allocator can read back that it was not taken. */
  if (allocator && (!GST_IS_GPU_ALLOCATOR (allocator) || gst_gpu_allocator_get_device (GST_GPU_ALLOCATOR (allocator)) !=
                                                             gst_gpu_buffer_pool_get_device (self))) {
    GST_INFO_OBJECT (self, "%" GST_PTR_FORMAT " is replaced, memory comes from the device's cache", (void *)allocator);
    gst_buffer_pool_config_set_allocator (config, GST_ALLOCATOR (self->allocator), &params);
  }
  gst_buffer_pool_config_set_params (config, caps, (guint)layout.size, min_buffers, max_buffers);
  self->layout = layout;
  self->min_buffers = min_buffers;

  /* The base class compares this size to what it finds in a buffer that comes back. */
  base_config = gst_structure_copy (config);
  gst_buffer_pool_config_set_params (base_config, caps, 0, min_buffers, max_buffers);
  return GST_BUFFER_POOL_CLASS (gst_gpu_buffer_pool_parent_class)->set_config (pool, base_config);
}

/* The images end in the shared index of the cache, since the stream that they were acquired on ends here. There they
 * are found by whatever stream acquires first, but only what is complete is kept (rule 15): so this waits for the
 * driver to have allocated them, once. */
static gboolean
warm_cache (GstGpuBufferPool *self, GError **error)
{
  GpuDevice *device = gst_gpu_buffer_pool_get_device (self);
  g_autoptr (GPtrArray) images = g_ptr_array_new_with_free_func ((GDestroyNotify)gpu_image_unref);
  GpuStream *stream;
  gboolean complete;

  if (!self->min_buffers)
    return TRUE;
  stream = gpu_stream_new (device, true, error);
  if (!stream)
    return FALSE;

  while (images->len < self->min_buffers) {
    GpuImage *image =
        gpu_image_acquire (device, &self->layout.spec, self->layout.kind, stream, GPU_ACQUIRE_DEFAULT, error);

    if (!image)
      break;
    g_ptr_array_add (images, image);
  }
  complete = images->len == self->min_buffers && gpu_stream_synchronize (stream, error);
  gpu_stream_unref (stream);
  return complete;
}

static gboolean
gst_gpu_buffer_pool_start (GstBufferPool *pool)
{
  GstGpuBufferPool *self = GST_GPU_BUFFER_POOL (pool);
  g_autoptr (GError) error = NULL;

  if (!warm_cache (self, &error)) {
    GST_ERROR_OBJECT (self, "the minimum of %u frames of %" G_GSIZE_FORMAT " bytes cannot be had: %s",
                      self->min_buffers, self->layout.size, error->message);
    return FALSE;
  }
  return GST_BUFFER_POOL_CLASS (gst_gpu_buffer_pool_parent_class)->start (pool);
}

static gboolean
gst_gpu_buffer_pool_stop (GstBufferPool *pool)
{
  GstGpuBufferPool *self = GST_GPU_BUFFER_POOL (pool);
  gboolean stopped = GST_BUFFER_POOL_CLASS (gst_gpu_buffer_pool_parent_class)->stop (pool);
  GpuStream *stream;

  g_mutex_lock (&self->lock);
  stream = g_steal_pointer (&self->stream);
  g_mutex_unlock (&self->lock);
  if (stream)
    gpu_stream_unref (stream);
  return stopped;
}

static GstFlowReturn
gst_gpu_buffer_pool_alloc_buffer (GstBufferPool *pool, GstBuffer **buffer, GstBufferPoolAcquireParams *params)
{
  const Layout *layout = &GST_GPU_BUFFER_POOL (pool)->layout;
  GstVideoInfo info = layout->info;
  GstVideoMeta *meta = NULL;

  *buffer = gst_buffer_new ();
  if (layout->is_video)
    meta = gst_buffer_add_video_meta_full (*buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT (&info),
                                           (guint)GST_VIDEO_INFO_WIDTH (&info), (guint)GST_VIDEO_INFO_HEIGHT (&info),
                                           GST_VIDEO_INFO_N_PLANES (&info), info.offset, info.stride);
  if (meta && layout->is_aligned)
    gst_video_meta_set_alignment (meta, layout->align);
  return GST_FLOW_OK;
}

/* NULL if they are somebody else's. */
static const GstGpuBufferPoolAcquireParams *
own_params (const GstBufferPoolAcquireParams *params)
{
  return params && ((guint)params->flags & GST_GPU_BUFFER_POOL_ACQUIRE_STREAM)
             ? (const GstGpuBufferPoolAcquireParams *)params
             : NULL;
}

static GpuStream *
get_stream (GstGpuBufferPool *self, const GstGpuBufferPoolAcquireParams *params, GError **error)
{
  GpuStream *stream = params ? params->stream : NULL;

  if (stream)
    return stream;
  stream = g_atomic_pointer_get (&self->stream);
  if (stream)
    return stream;

  g_mutex_lock (&self->lock);
  if (!self->stream)
    g_atomic_pointer_set (&self->stream, gpu_stream_new (self->device, true, error));
  stream = self->stream;
  g_mutex_unlock (&self->lock);
  return stream;
}

/* Gives @buffer, which has at most a memory without an image, its memory. */
static gboolean
attach_memory (GstGpuBufferPool *self, GstBuffer *buffer, const GstGpuBufferPoolAcquireParams *params, GError **error)
{
  const Layout *layout = &self->layout;
  GpuStream *stream = get_stream (self, params, error);
  GstMemory *memory;

  if (!stream)
    return FALSE;
  if (gst_buffer_n_memory (buffer) > 0) {
    GpuImage *image = gpu_image_acquire (self->device, &layout->spec, layout->kind, stream, GPU_ACQUIRE_DEFAULT, error);

    if (image)
      gst_gpu_memory_fill (gst_buffer_peek_memory (buffer, 0), image, stream, layout->size);
    return image != NULL;
  }

  memory = gst_gpu_allocator_alloc_spec (self->allocator, &layout->spec, layout->is_video ? &layout->info : NULL,
                                         layout->kind, stream, error);
  if (!memory)
    return FALSE;
  memory->size = memory->maxsize = layout->size;
  gst_buffer_append_memory (buffer, memory);
  gst_gpu_memory_hand_out (memory);
  return TRUE;
}

static GstFlowReturn
gst_gpu_buffer_pool_acquire_buffer (GstBufferPool *pool, GstBuffer **buffer, GstBufferPoolAcquireParams *params)
{
  GstGpuBufferPool *self = GST_GPU_BUFFER_POOL (pool);
  GstBufferPoolClass *parent_class = GST_BUFFER_POOL_CLASS (gst_gpu_buffer_pool_parent_class);
  const GstGpuBufferPoolAcquireParams *own = own_params (params);
  g_autoptr (GError) error = NULL;
  GstFlowReturn flow = parent_class->acquire_buffer (pool, buffer, params);

  if (flow != GST_FLOW_OK)
    return flow;
  if (!attach_memory (self, *buffer, own, &error)) {
    GST_ERROR_OBJECT (self, "no memory for a frame of %" G_GSIZE_FORMAT " bytes: %s", self->layout.size,
                      error->message);
    if (own)
      g_propagate_error (own->error, g_steal_pointer (&error));
    else
      g_signal_emit (self, failed_signal, 0, error);
    parent_class->release_buffer (pool, *buffer);
    *buffer = NULL;
    return GST_FLOW_ERROR;
  }

  /* The buffer is as its pool gave it out. */
  GST_BUFFER_FLAG_UNSET (*buffer, GST_BUFFER_FLAG_TAG_MEMORY);
  return GST_FLOW_OK;
}

static void
gst_gpu_buffer_pool_reset_buffer (GstBufferPool *pool, GstBuffer *buffer)
{
  GstAllocator *allocator = GST_ALLOCATOR (GST_GPU_BUFFER_POOL (pool)->allocator);
  GstMemory *memory = gst_buffer_n_memory (buffer) == 1 ? gst_buffer_peek_memory (buffer, 0) : NULL;

  /* Who put another memory there has set the flag. */
  if (!memory || memory->allocator != allocator || GST_BUFFER_FLAG_IS_SET (buffer, GST_BUFFER_FLAG_TAG_MEMORY) ||
      !gst_gpu_memory_empty (memory))
    gst_buffer_remove_all_memory (buffer);
  /* With the flag the base class does not bring the memory, which has no size now as its config says, to that size:
   * that takes as long as all the rest of this. */
  GST_BUFFER_FLAG_SET (buffer, GST_BUFFER_FLAG_TAG_MEMORY);
  GST_BUFFER_POOL_CLASS (gst_gpu_buffer_pool_parent_class)->reset_buffer (pool, buffer);
  /* A buffer that has the flag is discarded, and up to 1.25 a discard makes who waits for a buffer spin. */
  GST_BUFFER_FLAG_UNSET (buffer, GST_BUFFER_FLAG_TAG_MEMORY);
}

static void
gst_gpu_buffer_pool_finalize (GObject *object)
{
  GstGpuBufferPool *self = GST_GPU_BUFFER_POOL (object);

  g_clear_pointer (&self->stream, gpu_stream_unref);
  gst_clear_object (&self->allocator);
  g_mutex_clear (&self->lock);

  G_OBJECT_CLASS (gst_gpu_buffer_pool_parent_class)->finalize (object);
}

static void
gst_gpu_buffer_pool_class_init (GstGpuBufferPoolClass *klass)
{
  GstBufferPoolClass *pool_class = GST_BUFFER_POOL_CLASS (klass);

  GST_DEBUG_CATEGORY_INIT (gpu_buffer_pool_debug, "gpubufferpool", 0, "GPU cache buffer pool");

  failed_signal = g_signal_new ("failed", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, G_TYPE_ERROR);

  G_OBJECT_CLASS (klass)->finalize = gst_gpu_buffer_pool_finalize;
  pool_class->get_options = gst_gpu_buffer_pool_get_options;
  pool_class->set_config = gst_gpu_buffer_pool_set_config;
  pool_class->start = gst_gpu_buffer_pool_start;
  pool_class->stop = gst_gpu_buffer_pool_stop;
  pool_class->alloc_buffer = gst_gpu_buffer_pool_alloc_buffer;
  pool_class->acquire_buffer = gst_gpu_buffer_pool_acquire_buffer;
  pool_class->reset_buffer = gst_gpu_buffer_pool_reset_buffer;
}

static void
gst_gpu_buffer_pool_init (GstGpuBufferPool *self)
{
  g_mutex_init (&self->lock);
}

/* On whichever thread maps a memory, which keeps the allocator: the pool may be going meanwhile, or gone. */
static void
allocator_failed (GstGpuAllocator *allocator, const GError *error, GWeakRef *pool)
{
  g_autoptr (GstBufferPool) self = g_weak_ref_get (pool);

  if (self)
    g_signal_emit (self, failed_signal, 0, error);
}

static void
free_weak_ref (gpointer ref, GClosure *closure)
{
  g_weak_ref_clear (ref);
  g_free (ref);
}

GstBufferPool *
gst_gpu_buffer_pool_new (GpuDevice *device)
{
  return gst_gpu_buffer_pool_new_with_kind (device, GPU_MEMORY_STREAM_ORDERED);
}

GstBufferPool *
gst_gpu_buffer_pool_new_with_kind (GpuDevice *device, GpuMemoryKind kind)
{
  GstGpuBufferPool *self;
  GWeakRef *ref;

  g_return_val_if_fail (device != NULL, NULL);
  g_return_val_if_fail ((guint)kind < GPU_N_MEMORY_KINDS, NULL);

  self = g_object_new (GST_TYPE_GPU_BUFFER_POOL, NULL);
  gst_object_ref_sink (self);
  self->allocator = GST_GPU_ALLOCATOR (gst_gpu_allocator_new_with_kind (device, kind));
  ref = g_new (GWeakRef, 1);
  g_weak_ref_init (ref, self);
  g_signal_connect_data (self->allocator, "failed", G_CALLBACK (allocator_failed), ref, free_weak_ref,
                         (GConnectFlags)0);
  self->device = device;
  self->kind = kind;
  return GST_BUFFER_POOL (self);
}

GpuMemoryKind
gst_gpu_buffer_pool_get_kind (GstGpuBufferPool *pool)
{
  g_return_val_if_fail (GST_IS_GPU_BUFFER_POOL (pool), GPU_MEMORY_STREAM_ORDERED);

  return pool->layout.size ? pool->layout.kind : pool->kind;
}

GpuDevice *
gst_gpu_buffer_pool_get_device (GstGpuBufferPool *pool)
{
  g_return_val_if_fail (GST_IS_GPU_BUFFER_POOL (pool), NULL);

  return gst_gpu_allocator_get_device (pool->allocator);
}

void
gst_gpu_buffer_pool_config_set_memory_kind (GstStructure *config, GpuMemoryKind kind)
{
  g_return_if_fail (config != NULL);

  gst_structure_set (config, MEMORY_KIND_FIELD, G_TYPE_UINT, (guint)kind, NULL);
}

GpuMemoryKind
gst_gpu_buffer_pool_config_get_memory_kind (const GstStructure *config)
{
  guint kind = GPU_MEMORY_STREAM_ORDERED;

  g_return_val_if_fail (config != NULL, GPU_MEMORY_STREAM_ORDERED);

  gst_structure_get_uint (config, MEMORY_KIND_FIELD, &kind);
  return (GpuMemoryKind)kind;
}

GstFlowReturn
gst_gpu_buffer_pool_acquire_on (GstGpuBufferPool *pool, GpuStream *stream, GstBuffer **buffer, GError **error)
{
  GstGpuBufferPoolAcquireParams params = {
      .parent.flags = (GstBufferPoolAcquireFlags)GST_GPU_BUFFER_POOL_ACQUIRE_STREAM,
      .stream = stream,
      .error = error,
  };

  g_return_val_if_fail (GST_IS_GPU_BUFFER_POOL (pool), GST_FLOW_ERROR);

  return gst_buffer_pool_acquire_buffer (GST_BUFFER_POOL (pool), buffer, &params.parent);
}
