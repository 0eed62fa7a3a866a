/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which memory a GstGpuBaseTransform's frames are in: pools of the device under the device's caps, whatever downstream
 * says (G5), and under system caps pinned memory, or the peer's pool where it insists on that.
 */
#include "gstgpubasetransform-priv.h"

#include "gstgpubatchcaps.h"

#include <gst/video/gstvideopool.h>

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

static gboolean
is_pool_of (GstBufferPool *pool, GpuDevice *device)
{
  return GST_IS_GPU_BUFFER_POOL (pool) && gst_gpu_buffer_pool_get_device (GST_GPU_BUFFER_POOL (pool)) == device;
}

/* Ordinary pools are offered as a courtesy. One of another type, one with a special allocator, or one that pads frames
 * is there for a reason: a display's or a codec's memory. */
static gboolean
is_special_pool (GstBufferPool *pool)
{
  GType type = G_OBJECT_TYPE (pool);
  GstStructure *config;
  GstAllocator *allocator = NULL;
  gboolean special;

  if (GST_IS_GPU_BUFFER_POOL (pool))
    return FALSE;
  if (type != GST_TYPE_VIDEO_BUFFER_POOL && type != GST_TYPE_BUFFER_POOL)
    return TRUE;
  config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_get_allocator (config, &allocator, NULL);
  special = gst_buffer_pool_config_has_option (config, GST_BUFFER_POOL_OPTION_VIDEO_ALIGNMENT) ||
            (allocator && g_strcmp0 (allocator->mem_type, GST_ALLOCATOR_SYSMEM) != 0);
  gst_structure_free (config);
  return special;
}

gboolean
gst_gpu_base_transform_is_insisted (GstQuery *query)
{
  g_autoptr (GstBufferPool) pool = NULL;
  g_autoptr (GstAllocator) allocator = NULL;

  if (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, NULL, NULL, NULL);
  if (pool)
    return is_special_pool (pool);
  if (gst_query_get_n_allocation_params (query) > 0)
    gst_query_parse_nth_allocation_param (query, 0, &allocator, NULL);
  return allocator && !GST_IS_GPU_ALLOCATOR (allocator) && g_strcmp0 (allocator->mem_type, GST_ALLOCATOR_SYSMEM) != 0;
}

/* Under system caps frames are in pinned memory, unless downstream insists on its own. */
static gboolean
serves (GstGpuBaseTransform *self, GstBufferPool *pool, gboolean insisted)
{
  GpuDevice *device = gst_gpu_base_transform_device (self);

  if (gst_gpu_base_transform_out_is_gpu (self))
    return is_pool_of (pool, device);
  return insisted ||
         (is_pool_of (pool, device) && gst_gpu_buffer_pool_get_kind (GST_GPU_BUFFER_POOL (pool)) == GPU_MEMORY_HOST);
}

/* On whichever thread uses the pool: the element may be going meanwhile. */
static void
pool_failed (GstBufferPool *pool, const GError *error, GWeakRef *element)
{
  g_autoptr (GstElement) self = g_weak_ref_get (element);

  if (self)
    gst_gpu_base_transform_post_error (GST_GPU_BASE_TRANSFORM (self), error);
}

static void
free_weak_ref (gpointer ref, GClosure *closure)
{
  g_weak_ref_clear (ref);
  g_free (ref);
}

/* What others are not told when they use @pool, this element says. */
static void
speak_for (GstGpuBaseTransform *self, GstBufferPool *pool)
{
  GWeakRef *ref = g_new (GWeakRef, 1);

  g_weak_ref_init (ref, self);
  g_signal_connect_data (pool, "failed", G_CALLBACK (pool_failed), ref, free_weak_ref, (GConnectFlags)0);
}

static GstBufferPool *
new_pool (GstGpuBaseTransform *self, const GstGpuFrameInfo *info, gboolean insisted)
{
  GpuDevice *device = gst_gpu_base_transform_device (self);
  GstBufferPool *pool;

  if (insisted && !gst_gpu_base_transform_out_is_gpu (self))
    return gst_gpu_frame_info_is_tensor (info) ? gst_buffer_pool_new () : gst_video_buffer_pool_new ();
  pool = gst_gpu_base_transform_out_is_gpu (self) ? gst_gpu_buffer_pool_new (device)
                                                  : gst_gpu_buffer_pool_new_with_kind (device, GPU_MEMORY_HOST);
  speak_for (self, pool);
  return pool;
}

/* Takes over @pool; NULL if it does not like the config. */
static GstBufferPool *
configure (GstBufferPool *pool, GstCaps *caps, guint size, guint min, guint max, gboolean video_meta)
{
  GstStructure *config = gst_buffer_pool_get_config (pool);

  gst_buffer_pool_config_set_params (config, caps, size, min, max);
  if (video_meta)
    gst_buffer_pool_config_add_option (config, GST_BUFFER_POOL_OPTION_VIDEO_META);
  if (!gst_buffer_pool_set_config (pool, config))
    gst_clear_object (&pool);
  return pool;
}

/* The base class configures the pool once more, and puts one of system memory in its place if that is refused. */
static gboolean
keep_device_memory (GstGpuBaseTransform *self, GstQuery *query, GstCaps *caps, const GstGpuFrameInfo *info)
{
  g_autoptr (GstBufferPool) decided = NULL;
  g_autoptr (GstBufferPool) own = NULL;
  guint size, min, max;

  gst_query_parse_nth_allocation_pool (query, 0, &decided, &size, &min, &max);
  if (is_pool_of (decided, gst_gpu_base_transform_device (self)))
    return TRUE;
  own = configure (new_pool (self, info, FALSE), caps, size, min, 0, !gst_gpu_frame_info_is_tensor (info));
  if (own)
    gst_query_set_nth_allocation_pool (query, 0, own, size, min, 0);
  return own != NULL;
}

/* The base class takes its pool from this query, too, and from nowhere else; in passthrough and when it stops it has
 * none. To ask it for each frame costs a lock and references. */
static void
take_pool (GstGpuBaseTransform *self, GstQuery *query)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  gst_clear_object (&priv->pool);
  gst_query_parse_nth_allocation_pool (query, 0, &priv->pool, NULL, NULL, NULL);
}

/* The pool that downstream offers, if it will do; else a new one. The query's other pools and allocators go. */
gboolean
gst_gpu_base_transform_decide_allocation (GstBaseTransform *trans, GstQuery *query)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  gboolean is_gpu = gst_gpu_base_transform_out_is_gpu (self);
  gboolean insisted = !is_gpu && gst_gpu_base_transform_is_insisted (query);
  gboolean is_tensor, video_meta;
  g_autoptr (GError) error = NULL;
  GstGpuFrameInfo info;
  GstBufferPool *pool = NULL;
  GstCaps *caps;
  guint size = 0, min = 0, max = 0;

  if (!gst_gpu_base_transform_ensure_device (self))
    return FALSE;
  gst_query_parse_allocation (query, &caps, NULL);
  if (!caps)
    return FALSE;
  /* Each batch takes its images from the cache: there is no pool of them. */
  if (gst_gpu_base_transform_priv (self)->batch_caps)
    return TRUE;
  if (!gst_gpu_frame_info_from_caps (&info, caps, NULL))
    return FALSE;
  is_tensor = gst_gpu_frame_info_is_tensor (&info);
  video_meta = !is_tensor && (is_gpu || gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL));

  if (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
  if (pool && !serves (self, pool, insisted)) {
    GST_DEBUG_OBJECT (self, "%" GST_PTR_FORMAT " is not used for these frames", (gpointer)pool);
    gst_clear_object (&pool);
    max = 0;
  }
  /* Who takes a tensor expects its bytes and no more. */
  size = is_tensor ? (guint)info.spec.size : MAX (size, (guint)info.spec.size);
  if (pool && is_gpu) {
    /* One that is active for other frames, or in another way cannot serve, would end in system memory. */
    pool = configure (pool, caps, size, min, max, video_meta);
    if (!pool) {
      GST_DEBUG_OBJECT (self, "downstream's pool does not take the config");
      max = 0;
    }
  }
  if (!pool) {
    pool = configure (new_pool (self, &info, insisted), caps, size, min, max, video_meta);
    if (!pool) {
      g_autofree gchar *text = gst_caps_to_string (caps);

      g_set_error (&error, GPU_ERROR, GPU_ERROR_INVALID, "No pool can be made for %s: choose another size.", text);
      gst_gpu_base_transform_post_error (self, error);
      return FALSE;
    }
  }

  while (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_remove_nth_allocation_pool (query, 0);
  gst_query_add_allocation_pool (query, pool, size, min, max);
  gst_object_unref (pool);
  if (is_gpu) {
    while (gst_query_get_n_allocation_params (query) > 0)
      gst_query_remove_nth_allocation_param (query, 0);
  }
  if (!GST_BASE_TRANSFORM_CLASS (g_type_class_peek (GST_TYPE_BASE_TRANSFORM))->decide_allocation (trans, query) ||
      (is_gpu && !keep_device_memory (self, query, caps, &info)))
    return FALSE;
  take_pool (self, query);
  return TRUE;
}

void
gst_gpu_base_transform_offer_pool (GstGpuBaseTransform *self, GstQuery *query, GstBufferPool *pool, guint size)
{
  speak_for (self, pool);
  if (gst_query_get_n_allocation_pools (query) > 0)
    gst_query_set_nth_allocation_pool (query, 0, pool, size, 0, 0);
  else
    gst_query_add_allocation_pool (query, pool, size, 0, 0);
}

gboolean
gst_gpu_base_transform_propose_allocation (GstBaseTransform *trans, GstQuery *decide_query, GstQuery *query)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (trans);
  GstBaseTransformClass *base_class = g_type_class_peek (GST_TYPE_BASE_TRANSFORM);
  g_autoptr (GstBufferPool) pool = NULL;
  GstGpuFrameInfo info;
  GstCaps *caps;
  gboolean is_tensor, need_pool;
  guint size;

  if (!base_class->propose_allocation (trans, decide_query, query))
    return FALSE;
  if (!decide_query)
    return TRUE; /* passthrough: downstream has answered */

  gst_query_parse_allocation (query, &caps, &need_pool);
  if (!caps)
    return FALSE;
  if (gst_gpu_caps_are_batch (caps))
    return TRUE;
  if (!gst_gpu_frame_info_from_caps (&info, caps, NULL))
    return FALSE;
  is_tensor = gst_gpu_frame_info_is_tensor (&info);
  size = (guint)info.spec.size;

  if (need_pool && gst_gpu_caps_are_gpu (caps)) {
    if (!gst_gpu_base_transform_ensure_device (self))
      return FALSE;
    pool = configure (gst_gpu_buffer_pool_new (gst_gpu_base_transform_device (self)), caps, size, 0, 0, !is_tensor);
    if (!pool)
      return FALSE;
    gst_gpu_base_transform_offer_pool (self, query, pool, size);
  } else {
    gst_query_add_allocation_pool (query, NULL, size, 0, 0);
  }
  if (is_tensor)
    return TRUE;

  if (!gst_query_find_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL))
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
  if (!gst_query_find_allocation_meta (query, GST_VIDEO_CROP_META_API_TYPE, NULL))
    gst_query_add_allocation_meta (query, GST_VIDEO_CROP_META_API_TYPE, NULL);
  return TRUE;
}

static GstFlowReturn
acquire_from (GstBufferPool *pool, GpuStream *stream, GstBuffer **out, GError **error)
{
  return GST_IS_GPU_BUFFER_POOL (pool) ? gst_gpu_buffer_pool_acquire_on (GST_GPU_BUFFER_POOL (pool), stream, out, error)
                                       : gst_buffer_pool_acquire_buffer (pool, out, NULL);
}

GstFlowReturn
gst_gpu_base_transform_acquire (GstGpuBaseTransform *self, GpuStream *stream, GstBuffer **out)
{
  GstBufferPool *pool = gst_gpu_base_transform_priv (self)->pool;
  GstFlowReturn result = GST_FLOW_ERROR;
  g_autoptr (GError) error = NULL;

  if (pool)
    result = acquire_from (pool, stream, out, &error);
  /* So says a pool that is not active, too: before the first frame, and when somebody else who has it stopped. */
  if (result == GST_FLOW_FLUSHING && !gst_buffer_pool_is_active (pool))
    result = gst_buffer_pool_set_active (pool, TRUE) ? acquire_from (pool, stream, out, &error) : GST_FLOW_ERROR;
  if (result != GST_FLOW_ERROR)
    return result;

  /* Only our own pools say why; one may have failed to start because the device is lost. */
  if (!error && gpu_device_memory_info (gst_gpu_base_transform_device (self), NULL, NULL, &error)) {
    const GpuImageSpec *spec = &gst_gpu_base_transform_out_frame_info (self)->spec;

    g_set_error (&error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY,
                 "The pool has no frame for a %s of %ux%u (%" G_GSIZE_FORMAT
                 " bytes): use smaller frames or hold fewer of them.",
                 gpu_format_info (spec->format)->name, spec->width, spec->height, spec->size);
  }
  gst_gpu_base_transform_post_error (self, error);
  return GST_FLOW_ERROR;
}
