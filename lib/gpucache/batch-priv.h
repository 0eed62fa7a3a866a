/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Batches from inside. A batch that is let go of stays in the scope of its images, as a list of them, while all of them
 * are there or on their way back; whatever takes one of them, or moves it elsewhere, dissolves it (rule 17).
 */
#pragma once

#include "cache-priv.h"

#include <gpucache/batch.h>

/**
 * GpuBatch:
 * @n: images
 * @whole: (nullable): the one allocation of a dense batch
 * @spec: of a dense batch: what each image was asked for as
 * @is_acquired: the images came from the cache as a batch, and may be reused as one
 * @table: (nullable): in device memory, what the last launch over the batch needed to know of each image
 * @contents: (nullable): what is in @table, if that is known
 */
struct GpuBatch {
  atomic_uint refs;
  unsigned n;
  GpuImage *whole;
  GpuImageSpec spec;
  bool is_acquired;

  GpuImage *table;
  GByteArray *contents;

  /* While nobody refers to it, under its scope's lock: */
  GpuLink by_scope;
  unsigned n_members; /* allocations: of the images, and of the table */
  unsigned n_filed;   /* those that the scope has back */

  GpuImage *images[];
};

/** With the scope's lock held. */

/** Takes a whole batch of the shapes that @like has, whose members may all be written by @request->stream without a
 * wait. Its allocations are live then. NULL if there is none. */
GpuBatch *
gpu_scope_take_batch (GpuScope *scope, const GpuBatch *like, const GpuImageSpec *specs, const GpuRequest *request);
/** One of its allocations is let go of. Whole again, it is the one that was released last. */
void gpu_batch_member_is_back (GpuScope *scope, GpuBatch *batch);
/** The batch is one no more; its allocations go on as they are. */
void gpu_batch_dissolve (GpuScope *scope, GpuBatch *batch);
/** All of the scope's. */
void gpu_scope_dissolve_batches (GpuScope *scope);

/** Member @i: the allocation of an image, of all of them if they are dense, or of the table. */
GpuAllocation *gpu_batch_member (const GpuBatch *batch, unsigned i);

/**
 * gpu_batch_write_table:
 * @contents: at least 1 byte; not to be changed any more
 *
 * Sees to it that @batch's table in device memory holds @contents for work submitted to @stream from now on. Nothing is
 * done if it does already. Else it is written by a copy on @stream, from pinned memory; one that an access is pending
 * on is not written (rule 17): another takes its place.
 *
 * Returns: false if @error is set
 */
bool gpu_batch_write_table (GpuBatch *batch, GpuStream *stream, GByteArray *contents, GError **error);

/** Nothing is known of what is in the table any more. */
static inline void
gpu_batch_forget_contents (GpuBatch *batch)
{
  g_clear_pointer (&batch->contents, g_byte_array_unref);
}
