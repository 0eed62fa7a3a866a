/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which device a GstGpuBaseTransform works on. It is decided as late as possible, so that `auto` finds the one of its
 * neighbours: when memory is negotiated, by a context, or by the first frame. Until the element goes to NULL it stays,
 * unless a frame brings another.
 */
#include "gstgpubasetransform-priv.h"

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

GpuDevice *
gst_gpu_base_transform_device (GstGpuBaseTransform *self)
{
  return g_atomic_pointer_get (&gst_gpu_base_transform_priv (self)->device);
}

GpuDevice *
gst_gpu_base_transform_ref_device (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GpuDevice *device;

  GST_OBJECT_LOCK (self);
  device = g_atomic_pointer_get (&priv->device);
  if (device)
    gpu_device_ref (device);
  GST_OBJECT_UNLOCK (self);
  return device;
}

gchar *
gst_gpu_base_transform_dup_device_name (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  gchar *name;

  GST_OBJECT_LOCK (self);
  name = g_strdup (priv->device_name);
  GST_OBJECT_UNLOCK (self);
  return name;
}

/* One that is in force is not set again, which would repeat the library's warning about one that is above the
 * device's memory. */
void
gst_gpu_base_transform_apply_limit (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GpuDevice *device = gst_gpu_base_transform_ref_device (self);
  g_autoptr (GError) error = NULL;
  gboolean is_set;
  gint64 limit;

  GST_OBJECT_LOCK (self);
  is_set = priv->limit_is_set;
  limit = priv->limit;
  GST_OBJECT_UNLOCK (self);

  if (device && is_set && gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE) != (guint64)limit &&
      !gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, limit, &error))
    gst_gpu_base_transform_post_warning (self, error);
  if (device)
    gpu_device_unref (device);
}

void
gst_gpu_base_transform_replace_device (GstGpuBaseTransform *self, GpuDevice *device)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  GpuDevice *old;

  GST_OBJECT_LOCK (self);
  old = g_atomic_pointer_get (&priv->device);
  g_atomic_pointer_set (&priv->device, device);
  GST_OBJECT_UNLOCK (self);

  if (old)
    gpu_device_unref (old);
}

gboolean
gst_gpu_base_transform_ensure_device (GstGpuBaseTransform *self)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  g_autofree gchar *name = NULL;
  g_autoptr (GError) error = NULL;

  if (gst_gpu_base_transform_device (self))
    return TRUE;

  name = gst_gpu_base_transform_dup_device_name (self);
  if (!gst_gpu_ensure_device (GST_ELEMENT (self), name, &priv->device, &error)) {
    gst_gpu_base_transform_post_error (self, error);
    return FALSE;
  }
  GST_INFO_OBJECT (self, "uses device %s", gpu_device_name (gst_gpu_base_transform_device (self)));
  gst_gpu_base_transform_apply_limit (self);
  return TRUE;
}

gboolean
gst_gpu_base_transform_adopts_device (GstGpuBaseTransform *self)
{
  g_autofree gchar *name = gst_gpu_base_transform_dup_device_name (self);

  return GST_GPU_BASE_TRANSFORM_GET_CLASS (self)->follows || !name || g_str_equal (name, "auto");
}

void
gst_gpu_base_transform_adopt_device (GstGpuBaseTransform *self, GpuDevice *device)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);

  g_clear_pointer (&priv->own, gpu_stream_unref);
  g_clear_pointer (&priv->stream, gpu_stream_unref);
  gst_gpu_base_transform_replace_device (self, gpu_device_ref (device));
  GST_INFO_OBJECT (self, "goes over to device %s", gpu_device_name (device));
  gst_gpu_base_transform_apply_limit (self);
  gst_base_transform_reconfigure_src (GST_BASE_TRANSFORM (self));
}

gboolean
gst_gpu_base_transform_open_named_device (GstGpuBaseTransform *self)
{
  g_autofree gchar *name = gst_gpu_base_transform_dup_device_name (self);
  const gchar *wanted = name ? name : g_getenv ("GPUCACHE_DEVICE");

  return !wanted || g_str_equal (wanted, "auto") || gst_gpu_base_transform_ensure_device (self);
}

void
gst_gpu_base_transform_set_device_name (GstGpuBaseTransform *self, const gchar *name)
{
  GstGpuBaseTransformPrivate *priv = gst_gpu_base_transform_priv (self);
  gboolean taken;

  GST_OBJECT_LOCK (self);
  taken = GST_STATE (self) <= GST_STATE_READY;
  if (taken) {
    g_free (priv->device_name);
    priv->device_name = g_strdup (name);
  }
  GST_OBJECT_UNLOCK (self);

  if (taken)
    gst_gpu_base_transform_replace_device (self, NULL);
  else
    GST_WARNING_OBJECT (self, "device can be changed in NULL and READY only; \"%s\" is ignored", name);
}

void
gst_gpu_base_transform_set_context (GstElement *element, GstContext *context)
{
  GstGpuBaseTransform *self = GST_GPU_BASE_TRANSFORM (element);
  g_autofree gchar *name = gst_gpu_base_transform_dup_device_name (self);

  if (gst_gpu_handle_set_context (element, context, name, &gst_gpu_base_transform_priv (self)->device))
    gst_gpu_base_transform_apply_limit (self);
  GST_ELEMENT_CLASS (gst_gpu_base_transform_parent ())->set_context (element, context);
}
