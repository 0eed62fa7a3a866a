/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Names of what types.h declares.
 */
#include <gpucache/types.h>

GQuark
gpu_error_quark (void)
{
  return g_quark_from_static_string ("gpu-error-quark");
}

const char *
gpu_memory_kind_name (GpuMemoryKind kind)
{
  switch (kind) {
  case GPU_MEMORY_STREAM_ORDERED:
    return "stream-ordered";
  case GPU_MEMORY_DEVICE:
    return "device";
  case GPU_MEMORY_MANAGED:
    return "managed";
  case GPU_MEMORY_HOST:
    return "host";
  }
  return "unknown";
}
