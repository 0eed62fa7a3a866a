/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Frames of another device; see the header.
 */
#include "gstgpupeer.h"

#include "gstgpuhostframe.h"

gboolean
gst_gpu_frame_copy_across (GpuStream *stream, GstBuffer *in, const GstGpuFrameInfo *info, gboolean is_gpu,
                           GpuImage *dst, gboolean *copied, GError **error)
{
  GstMemory *memory = gst_gpu_frame_memory (in);
  g_autoptr (GError) reason = NULL;
  GpuImage *src;

  *copied = FALSE;
  if (!memory || gpu_image_device (gst_gpu_memory_get_image (memory)) == gpu_stream_device (stream))
    return TRUE;
  /* A rectangle that no image can have is one for the host's copy. */
  src = is_gpu ? gst_gpu_frame_ref_image (in, info, NULL) : gst_gpu_host_frame_ref_image (in, info, NULL);
  if (!src)
    return TRUE;
  *copied = gpu_image_copy (stream, src, dst, &reason);
  gpu_image_unref (src);
  if (*copied || g_error_matches (reason, GPU_ERROR, GPU_ERROR_UNSUPPORTED))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&reason));
  return FALSE;
}
