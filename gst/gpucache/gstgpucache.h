/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * libgstgpucache: GStreamer memory, pools and context over libgpucache. What applications link.
 */
#pragma once

#include <gpucache/gpucache.h>

#include <gpucache/gstgpuallocator.h>
#include <gpucache/gstgpubatchmeta.h>
#include <gpucache/gstgpubufferpool.h>
#include <gpucache/gstgpucontext.h>
#include <gpucache/gstgpuframeinfo.h>
#include <gpucache/gstgpumemory.h>
