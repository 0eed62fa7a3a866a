/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a GstGpuBaseTransform says on the bus. An error is said once: GStreamer negotiates again before each frame, and
 * fails again for the same reason.
 */
#include "gstgpubasetransform-priv.h"

#define GST_CAT_DEFAULT gst_gpu_base_transform_debug

/* Of the sentence that was posted last. */
static GQuark
posted_quark (void)
{
  return g_quark_from_static_string ("gpucache-posted-error");
}

static void
post (GstGpuBaseTransform *self, GstMessageType type, const GError *error)
{
  GQuark domain = GST_LIBRARY_ERROR;
  gint code = GST_LIBRARY_ERROR_FAILED;

  if (error->domain == GPU_ERROR) {
    switch ((GpuError)error->code) {
    case GPU_ERROR_NO_DEVICE:
      domain = GST_RESOURCE_ERROR;
      code = GST_RESOURCE_ERROR_NOT_FOUND;
      break;
    case GPU_ERROR_OUT_OF_MEMORY:
      domain = GST_RESOURCE_ERROR;
      code = GST_RESOURCE_ERROR_NO_SPACE_LEFT;
      break;
    case GPU_ERROR_DEVICE_LOST:
    case GPU_ERROR_FORKED:
      domain = GST_RESOURCE_ERROR;
      code = GST_RESOURCE_ERROR_FAILED;
      break;
    case GPU_ERROR_INVALID:
      code = GST_LIBRARY_ERROR_SETTINGS;
      break;
    case GPU_ERROR_UNSUPPORTED:
      domain = GST_STREAM_ERROR;
      code = GST_STREAM_ERROR_NOT_IMPLEMENTED;
      break;
    }
  }
  gst_element_message_full (GST_ELEMENT (self), type, domain, code, g_strdup (error->message), NULL, __FILE__, __func__,
                            __LINE__);
}

void
gst_gpu_base_transform_forget_error (GstGpuBaseTransform *self)
{
  GST_OBJECT_LOCK (self);
  g_object_set_qdata (G_OBJECT (self), posted_quark (), NULL);
  GST_OBJECT_UNLOCK (self);
}

void
gst_gpu_base_transform_post_error (GstGpuBaseTransform *self, const GError *error)
{
  gboolean is_new;

  GST_OBJECT_LOCK (self);
  is_new = g_strcmp0 (g_object_get_qdata (G_OBJECT (self), posted_quark ()), error->message) != 0;
  if (is_new)
    g_object_set_qdata_full (G_OBJECT (self), posted_quark (), g_strdup (error->message), g_free);
  GST_OBJECT_UNLOCK (self);

  if (!is_new) {
    GST_DEBUG_OBJECT (self, "again: %s", error->message);
    return;
  }
  post (self, GST_MESSAGE_ERROR, error);
}

void
gst_gpu_base_transform_post_warning (GstGpuBaseTransform *self, const GError *error)
{
  post (self, GST_MESSAGE_WARNING, error);
}
