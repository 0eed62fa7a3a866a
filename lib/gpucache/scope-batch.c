/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The batches that a scope keeps: their allocations are filed like any others, and belong together as long as all of
 * them stay (rule 17).
 */
#include "batch-priv.h"

GpuAllocation *
gpu_batch_member (const GpuBatch *batch, unsigned i)
{
  const unsigned n = batch->whole ? 1 : batch->n;

  return i == n ? batch->table->allocation : batch->whole ? batch->whole->allocation : batch->images[i]->allocation;
}

/* The opposite of being kept. */
static void
unlink_batch (GpuScope *scope, GpuBatch *batch)
{
  gpu_list_remove (&scope->batches, &batch->by_scope);
  for (unsigned i = 0; i < batch->n_members; i++)
    gpu_batch_member (batch, i)->batch = NULL;
}

void
gpu_batch_member_is_back (GpuScope *scope, GpuBatch *batch)
{
  if (++batch->n_filed < batch->n_members)
    return;
  gpu_list_remove (&scope->batches, &batch->by_scope);
  gpu_list_append (&scope->batches, &batch->by_scope);
}

void
gpu_batch_dissolve (GpuScope *scope, GpuBatch *batch)
{
  unlink_batch (scope, batch);
  gpu_batch_forget_contents (batch);
  g_free (batch);
}

void
gpu_scope_dissolve_batches (GpuScope *scope)
{
  while (scope->batches.first)
    gpu_batch_dissolve (scope, gpu_container (scope->batches.first, GpuBatch, by_scope));
}

static bool
is_same (const GpuBatch *batch, const GpuBatch *like, const GpuImageSpec *specs, GpuMemoryKind kind)
{
  if (batch->n != like->n || gpu_batch_member (batch, 0)->kind != kind ||
      !gpu_image_spec_equal (&batch->spec, &like->spec))
    return false;
  const unsigned n = batch->whole ? 1 : batch->n;
  for (unsigned i = 0; i < n; i++)
    if (!gpu_image_spec_equal (&gpu_batch_member (batch, i)->image.spec, &specs[i]))
      return false;
  return true;
}

/* Whether all are there, and the next writer has to wait for none (rule 5). */
static bool
is_free (const GpuBatch *batch, const GpuRequest *request)
{
  if (batch->n_filed < batch->n_members)
    return false;
  for (unsigned i = 0; i < batch->n_members; i++) {
    const GpuAllocation *member = gpu_batch_member (batch, i);

    if (member->state != GPU_ENTRY_IDLE && !gpu_history_observed (&member->history) &&
        (request->complete || !request->stream || !gpu_history_is_ordered (&member->history, request->stream)))
      return false;
  }
  return true;
}

GpuBatch *
gpu_scope_take_batch (GpuScope *scope, const GpuBatch *like, const GpuImageSpec *specs, const GpuRequest *request)
{
  GpuBatch *found = NULL;

  for (GpuLink *link = scope->batches.last; link && !found; link = link->previous) {
    GpuBatch *batch = gpu_container (link, GpuBatch, by_scope);

    if (is_same (batch, like, specs, request->kind) && is_free (batch, request))
      found = batch;
  }
  if (!found)
    return NULL;

  unlink_batch (scope, found);
  for (unsigned i = 0; i < found->n_members; i++)
    gpu_scope_take_member (scope, gpu_batch_member (found, i));
  atomic_store_explicit (&found->refs, 1, memory_order_relaxed);
  return found;
}
