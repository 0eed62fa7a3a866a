/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What a device launches. A kernel is one function in two builds: compiled by nvcc into the fat binary under its name,
 * and by the C compiler as a loop over the same per-pixel code. Taken by both compilers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Work items in each direction; a kernel looks after those beyond the edge itself. */
typedef struct {
  uint32_t x, y, z;
} GpuExtent;

/** @n addresses one after the other among a kernel's arguments, from byte @at on: within the source or, if @in_dst, the
 * destination; or null. */
typedef struct {
  uint16_t at;
  uint8_t n;
  bool in_dst;
} GpuKernelAddresses;

/**
 * GpuKernel:
 * @name: the symbol in the fat binary, declared extern "C" with the arguments' struct as its one parameter
 * @args_size: bytes of that struct, which has no padding that matters and holds no pointer to host memory
 * @param_size: of the struct's first part, if the symbol takes that only; 0 if it takes all
 * @block: threads of a block in each direction, CUDA only
 * @run: does all of @extent's work items on the calling thread, for the CPU device
 * @table_name: (nullable): the symbol of the same function for many images in one launch: its one parameter is as
 *   table.h says, and a block takes the arguments' struct, or its first part, that its index in z says
 * @is_without_table: whether that kernel looks among its parameters only: with a @param_size, for it there are as many
 *   launches as it takes to have all first parts there, and no table
 * @addresses: (nullable): where the arguments' addresses are, all of them, up to one of no addresses. It says that the
 *   arguments of another source and destination of the same shapes, aligned in the same way to
 *   GPU_KERNEL_ALIGNMENT, with the same parameters, are the same but for these if source and destination lie apart
 *
 * One static constant for each kernel; devices cache what they look up by its address.
 */
typedef struct {
  const char *name;
  size_t args_size;
  size_t param_size;
  GpuExtent block;
  void (*run) (const void *args, GpuExtent extent);
  const char *table_name;
  bool is_without_table;
  const GpuKernelAddresses *addresses;
} GpuKernel;

/** No kernel, nor who chooses one, looks at more of an address than what is left of it when divided by this. */
#define GPU_KERNEL_ALIGNMENT 256
