/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Device code that the fast kernels of conversion share: the matrix, and rows by number.
 */
#pragma once

#include "convert-pixel.h"
#include "quad.cuh"

/** The matrix with what comes after it: numbers are shifted once, with both roundings in the offset, which gives the
 * same as two shifts do. */
struct Matrix {
  int32_t m[3][3];
  int32_t offset[3];
  uint32_t shift;
};

/** @luma_bits: of fraction that the source's other numbers have more than the first. */
static __device__ __forceinline__ Matrix
matrix_to_samples (const GpuConvertArgs &args, unsigned luma_bits)
{
  Matrix matrix;

#pragma unroll
  for (unsigned c = 0; c < 3; c++) {
    matrix.m[c][0] = args.matrix[c][0] << luma_bits;
    matrix.m[c][1] = args.matrix[c][1];
    matrix.m[c][2] = args.matrix[c][2];
    matrix.offset[c] = args.offset[c] + (1 << (GPU_CONVERT_BITS - 1 + args.shift));
  }
  matrix.shift = args.shift + GPU_CONVERT_BITS;
  return matrix;
}

static __device__ __forceinline__ int32_t
apply (const Matrix &matrix, unsigned c, int32_t x, int32_t y, int32_t z)
{
  return (matrix.m[c][0] * x + matrix.m[c][1] * y + matrix.m[c][2] * z + matrix.offset[c]) >> (int)matrix.shift;
}

/** Rows of a plane with a stride of 32 bits. */
template <typename T> struct Rows {
  T *start;
  uint32_t stride;
};

template <typename T>
static __device__ __forceinline__ Rows<T>
make_rows (T *start, uint32_t stride)
{
  return Rows<T>{gpu_base (start), stride};
}

/** The address of row @y takes one instruction. */
template <typename T>
static __device__ __forceinline__ T *
row_at (const Rows<T> &rows, uint32_t y)
{
  return rows.start + (uint64_t)y * rows.stride;
}

/** The byte of @word at @i, by one instruction. */
static __device__ __forceinline__ int32_t
byte_at (uint32_t word, unsigned i)
{
  return (int32_t)__byte_perm (word, 0, 0x4440 | i);
}

/** Four numbers, saturated to bytes, the first one lowest. */
static __device__ __forceinline__ uint32_t
pack_bytes (int32_t a, int32_t b, int32_t c, int32_t d)
{
  return gpu_pack_saturated (a, b, gpu_pack_saturated (c, d, 0));
}
