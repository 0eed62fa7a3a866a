/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The elements that plugin.c registers; each is defined in a file of its own.
 */
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_GPU_AUTHOR "The gpucache developers"

GST_ELEMENT_REGISTER_DECLARE (gpuupload)
GST_ELEMENT_REGISTER_DECLARE (gpudownload)
GST_ELEMENT_REGISTER_DECLARE (gpuconvert)
GST_ELEMENT_REGISTER_DECLARE (gpuflip)
GST_ELEMENT_REGISTER_DECLARE (gpuresize)
GST_ELEMENT_REGISTER_DECLARE (gpunormalize)
GST_ELEMENT_REGISTER_DECLARE (gpureformat)
GST_ELEMENT_REGISTER_DECLARE (gpubatch)
GST_ELEMENT_REGISTER_DECLARE (gpuunbatch)

G_END_DECLS
