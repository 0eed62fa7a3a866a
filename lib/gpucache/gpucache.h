/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * libgpucache: a caching, stream-ordered memory pool for images on GPUs, and operations on them.
 */
#pragma once

#include <gpucache/batch.h>
#include <gpucache/cache.h>
#include <gpucache/convert.h>
#include <gpucache/device.h>
#include <gpucache/flip.h>
#include <gpucache/format.h>
#include <gpucache/image.h>
#include <gpucache/normalize.h>
#include <gpucache/pin.h>
#include <gpucache/reformat.h>
#include <gpucache/resize.h>
#include <gpucache/stream.h>
#include <gpucache/transfer.h>
#include <gpucache/types.h>
