/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See table.h.
 */
#include "table.h"

#include <stddef.h>
#include <string.h>

CUresult
table_find (const GpuCudaDriver *table, const char *symbol, int version, cuuint64_t flags, void **entry)
{
#define LINE(name, introduced) {"cu" #name, introduced, offsetof (GpuCudaDriver, name)},
  static const struct {
    const char *symbol;
    int version;
    size_t offset;
  } lines[] = {GPU_CUDA_ENTRIES (LINE) GPU_CUDA_OPTIONAL_ENTRIES (LINE)};
#undef LINE

  if (flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM)
    return CUDA_ERROR_NOT_FOUND;
  for (size_t i = 0; i < G_N_ELEMENTS (lines); i++) {
    if (strcmp (lines[i].symbol, symbol) == 0 && lines[i].version == version) {
      *entry = *(void *const *)(const void *)((const char *)table + lines[i].offset);
      return *entry ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
    }
  }
  return CUDA_ERROR_NOT_FOUND;
}
