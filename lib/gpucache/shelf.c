/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The shelves, slots and lanes of a scope (see cache-priv.h): found by hashing, and alive while an allocation is bound
 * to them.
 */
#include "scope-priv.h"

static unsigned
mix (unsigned hash, uint64_t value)
{
  return (unsigned)(((hash ^ value) * 0x9E3779B97F4A7C15u) >> 29);
}

static unsigned
shelf_hash_of (const GpuImageSpec *spec, GpuMemoryKind kind)
{
  unsigned hash = mix (kind, spec->format);
  hash = mix (hash, (uint64_t)spec->width << 32 | spec->height);
  hash = mix (hash, spec->stride[0]);
  return mix (hash, spec->size);
}

static unsigned
shelf_hash (const void *shelf)
{
  return ((const GpuShelf *)shelf)->hash;
}

static gboolean
shelf_equal (const void *a, const void *b)
{
  const GpuShelf *one = a, *other = b;
  return one->kind == other->kind && gpu_image_spec_equal (&one->spec, &other->spec);
}

static unsigned
lane_hash (const void *lane)
{
  return mix (0, ((const GpuLane *)lane)->id);
}

static gboolean
lane_equal (const void *a, const void *b)
{
  return ((const GpuLane *)a)->id == ((const GpuLane *)b)->id;
}

static unsigned
slot_hash (const void *slot)
{
  const GpuSlot *one = slot;
  return mix (one->shelf->hash, one->lane->id);
}

static gboolean
slot_equal (const void *a, const void *b)
{
  const GpuSlot *one = a, *other = b;
  return one->shelf == other->shelf && one->lane->id == other->lane->id;
}

void
gpu_scope_init_tables (GpuScope *scope)
{
  scope->shelves = g_hash_table_new (shelf_hash, shelf_equal);
  scope->slots = g_hash_table_new (slot_hash, slot_equal);
  scope->lanes = g_hash_table_new (lane_hash, lane_equal);
}

GpuShelf *
gpu_scope_find_shelf (GpuScope *scope, const GpuImageSpec *spec, GpuMemoryKind kind)
{
  GpuShelf *recent = scope->recent_shelf;
  if (recent && recent->kind == kind && gpu_image_spec_equal (&recent->spec, spec))
    return recent;
  const GpuShelf probe = {.spec = *spec, .kind = kind, .hash = shelf_hash_of (spec, kind)};
  GpuShelf *shelf = g_hash_table_lookup (scope->shelves, &probe);
  if (shelf)
    scope->recent_shelf = shelf;
  return shelf;
}

GpuSlot *
gpu_scope_find_slot (GpuScope *scope, GpuShelf *shelf, uint64_t stream_id)
{
  if (shelf->recent_slot && shelf->recent_slot->lane->id == stream_id)
    return shelf->recent_slot;
  GpuLane lane = {.id = stream_id};
  const GpuSlot probe = {.shelf = shelf, .lane = &lane};
  return g_hash_table_lookup (scope->slots, &probe);
}

static int
compare_numbers (const GpuTreeNode *a, const GpuTreeNode *b)
{
  const GpuAllocation *one = gpu_container (a, GpuAllocation, by_number);
  const GpuAllocation *other = gpu_container (b, GpuAllocation, by_number);
  if (one->number != other->number)
    return one->number < other->number ? -1 : 1;
  return a < b ? -1 : a > b;
}

GpuAllocation *
gpu_lane_first (const GpuLane *lane)
{
  GpuAllocation *first = lane->pending.first ? gpu_container (lane->pending.first, GpuAllocation, by_lane) : NULL;
  if (!lane->early.root)
    return first;
  GpuAllocation *early = gpu_container (gpu_tree_first (&lane->early), GpuAllocation, by_number);
  return first && first->number <= early->number ? first : early;
}

static GpuLane *
make_lane (GpuScope *scope, GpuStream *stream)
{
  const GpuLane probe = {.id = stream ? gpu_stream_id (stream) : 0};
  GpuLane *lane = g_hash_table_lookup (scope->lanes, &probe);
  if (!lane) {
    lane = g_aligned_alloc0 (1, sizeof *lane, _Alignof(GpuLane));
    lane->id = probe.id;
    gpu_tree_init (&lane->early, compare_numbers);
    lane->stream = stream ? gpu_stream_hold (stream) : NULL;
    g_hash_table_add (scope->lanes, lane);
  }
  return lane;
}

void
gpu_scope_leave_slot (GpuScope *scope, GpuSlot *slot)
{
  if (!slot || --slot->n_bound > 0)
    return;
  g_hash_table_remove (scope->slots, slot);
  if (slot->shelf->recent_slot == slot)
    slot->shelf->recent_slot = NULL;
  GpuLane *lane = slot->lane;
  g_aligned_free (slot);
  if (--lane->n_slots > 0)
    return;
  g_hash_table_remove (scope->lanes, lane);
  if (lane->stream)
    gpu_stream_release (lane->stream);
  g_aligned_free (lane);
}

void
gpu_scope_join_slot (GpuScope *scope, GpuAllocation *allocation, GpuStream *stream)
{
  GpuShelf *shelf = allocation->shelf;
  uint64_t id = stream ? gpu_stream_id (stream) : 0;
  if (allocation->slot && allocation->slot->lane->id == id)
    return;

  GpuSlot *slot = gpu_scope_find_slot (scope, shelf, id);
  if (!slot) {
    slot = g_aligned_alloc0 (1, sizeof *slot, _Alignof(GpuSlot));
    slot->shelf = shelf;
    slot->lane = make_lane (scope, stream);
    slot->lane->n_slots++;
    g_hash_table_add (scope->slots, slot);
  }
  slot->n_bound++;
  shelf->recent_slot = slot;
  gpu_scope_leave_slot (scope, allocation->slot);
  allocation->slot = slot;
}

void
gpu_scope_join_shelf (GpuScope *scope, GpuAllocation *allocation)
{
  GpuShelf *shelf = gpu_scope_find_shelf (scope, &allocation->image.spec, allocation->kind);
  if (!shelf) {
    shelf = g_aligned_alloc0 (1, sizeof *shelf, _Alignof(GpuShelf));
    shelf->spec = allocation->image.spec;
    shelf->kind = allocation->kind;
    shelf->hash = shelf_hash_of (&shelf->spec, shelf->kind);
    g_hash_table_add (scope->shelves, shelf);
    scope->recent_shelf = shelf;
  }
  shelf->n_bound++;
  allocation->shelf = shelf;
  if (scope->n_bound++ == 0)
    gpu_scope_ref (scope);
}

bool
gpu_scope_leave_shelf (GpuScope *scope, GpuShelf *shelf)
{
  if (--shelf->n_bound == 0) {
    g_hash_table_remove (scope->shelves, shelf);
    if (scope->recent_shelf == shelf)
      scope->recent_shelf = NULL;
    g_aligned_free (shelf);
  }
  return --scope->n_bound == 0;
}

bool
gpu_scope_unbind (GpuScope *scope, GpuAllocation *allocation)
{
  gpu_scope_leave_slot (scope, allocation->slot);
  bool was_last = gpu_scope_leave_shelf (scope, allocation->shelf);
  allocation->slot = NULL;
  allocation->shelf = NULL;
  return was_last;
}
