/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What scope.c needs of shelf.c. All of it with the scope's lock held.
 */
#pragma once

#include "cache-priv.h"

void gpu_scope_init_tables (GpuScope *scope);

/** Returns: (nullable): the shelf of an exact match. */
GpuShelf *gpu_scope_find_shelf (GpuScope *scope, const GpuImageSpec *spec, GpuMemoryKind kind);
/** Returns: (nullable): a shelf's slot for a stream; 0 for entries used on several. */
GpuSlot *gpu_scope_find_slot (GpuScope *scope, GpuShelf *shelf, uint64_t stream_id);

/** Binds an allocation to the shelf of its shape, which is made if there is none. The first one bound references the
 * scope. */
void gpu_scope_join_shelf (GpuScope *scope, GpuAllocation *allocation);
/** Binds it to that shelf's slot for @stream, NULL for several, instead of the slot that it has. */
void gpu_scope_join_slot (GpuScope *scope, GpuAllocation *allocation, GpuStream *stream);
/** @slot: (nullable) */
void gpu_scope_leave_slot (GpuScope *scope, GpuSlot *slot);
/** The pending entry that is complete first; there must be one. */
GpuAllocation *gpu_lane_first (const GpuLane *lane);
/** Returns: whether nothing is bound in the scope any more, whose reference for that is then the caller's to drop. */
bool gpu_scope_leave_shelf (GpuScope *scope, GpuShelf *shelf);
