/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The plugin. It registers and does nothing else: no driver, no thread, no probing (G10).
 */
#include "gstgpuelements.h"

static gboolean
plugin_init (GstPlugin *plugin)
{
  gboolean result = FALSE;

  result |= GST_ELEMENT_REGISTER (gpuupload, plugin);
  result |= GST_ELEMENT_REGISTER (gpudownload, plugin);
  result |= GST_ELEMENT_REGISTER (gpuconvert, plugin);
  result |= GST_ELEMENT_REGISTER (gpuflip, plugin);
  result |= GST_ELEMENT_REGISTER (gpuresize, plugin);
  result |= GST_ELEMENT_REGISTER (gpunormalize, plugin);
  result |= GST_ELEMENT_REGISTER (gpureformat, plugin);
  result |= GST_ELEMENT_REGISTER (gpubatch, plugin);
  result |= GST_ELEMENT_REGISTER (gpuunbatch, plugin);
  return result;
}

GST_PLUGIN_DEFINE (GST_VERSION_MAJOR, GST_VERSION_MINOR, gpucache,
                   "Video elements whose frames live in a caching GPU memory pool", plugin_init, PACKAGE_VERSION,
                   "LGPL", PACKAGE, "https://gstreamer.freedesktop.org/")
