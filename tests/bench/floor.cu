/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What operations are compared with: a plain copy, 16 bytes a thread, that reads and writes as many bytes as they must.
 */
#include "floor-args.h"

extern "C" __global__ void
__launch_bounds__ (FLOOR_BLOCK) bench_floor_copy (const __grid_constant__ FloorArgs args)
{
  const uint4 *src = (const uint4 *)args.frame[blockIdx.y].src;
  uint4 *dst = (uint4 *)args.frame[blockIdx.y].dst;
  const uint64_t i = (uint64_t)blockIdx.x * FLOOR_BLOCK + threadIdx.x;
  uint4 v = make_uint4 (1, 2, 3, 4);

  if (i < args.n_read)
    v = src[i];
  /* What is read and not written must look as if it might be. */
  if (i < args.n_write || (v.x == 0x5ca1ab1e && v.y == 0x0ddba115 && v.z == 0xdeadfa11 && v.w == 0xfee1900d))
    dst[i < args.n_write ? i : 0] = v;
}

/* These do nothing: what launches cost the host, of one kernel again and again, and of three in turn with as many bytes
 * of arguments as an operation has. */
extern "C" __global__ void
bench_floor_nothing (const __grid_constant__ FloorArgs args)
{
}

extern "C" __global__ void
bench_floor_turn_0 (const __grid_constant__ FloorTurnArgs args)
{
}

extern "C" __global__ void
bench_floor_turn_1 (const __grid_constant__ FloorTurnArgs args)
{
}

extern "C" __global__ void
bench_floor_turn_2 (const __grid_constant__ FloorTurnArgs args)
{
}
