/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Where an operation's launches go: on a stream at once, or into a plan, from which all images of a batch are worked on
 * together.
 */
#pragma once

#include "op-priv.h"

#include <gpucache/batch.h>

typedef struct GpuOpPlan GpuOpPlan;

/** @plan: (nullable): of a batch. */
typedef struct {
  GpuStream *stream;
  GpuOpPlan *plan;
} GpuOp;

/** A kernel that reads @src and writes @dst. False if @error is set. */
bool gpu_op_launch (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuKernel *kernel, const void *args,
                    GpuExtent extent, GError **error);

/** The same for one of several launches, with a picture between them: it reads @also, too. Neither @also nor the
 * picture needs to be held by the caller afterwards. */
bool gpu_op_launch_between (const GpuOp *op, GpuImage *src, GpuImage *also, GpuImage *dst, const GpuKernel *kernel,
                            const void *args, GpuExtent extent, GError **error);

/** @scratch is written and read by what is launched for the image at hand: in a plan it is held until that is
 * submitted, and has it in its history. Else each submission sees to it. */
void gpu_op_keep (const GpuOp *op, GpuImage *scratch);

/** gpu_image_copy() of images that are held, also in a plan. */
bool gpu_op_copy (const GpuOp *op, GpuImage *src, GpuImage *dst, GError **error);

/** An operation on one image, with its @params and, for all of a batch, @data. */
typedef bool (*GpuOpFunc) (const GpuOp *op, GpuImage *src, GpuImage *dst, const void *params, void *data,
                           GError **error);

/**
 * gpu_op_run_batch:
 * @dst: as many images as @src has; if it is dense, there may be more, which are left alone
 * @params: (nullable): an array of @n_params structs of @params_size bytes: one for all images, or one for each
 *
 * Calls @func for each image, and submits what it wants for all of them together.
 *
 * Returns: false if @error is set
 */
bool gpu_op_run_batch (const char *name, GpuStream *stream, GpuBatch *src, GpuBatch *dst, GpuOpFunc func,
                       const void *params, size_t params_size, unsigned n_params, void *data, GError **error);
