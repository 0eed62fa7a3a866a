/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The validity function: walks every structure of a cache and asserts what must always hold, for tests.
 */
#include "batch-priv.h"

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition))                                                                                                  \
      g_error ("%s:%d: the cache's invariant does not hold: %s", __FILE__, __LINE__, #condition);                      \
  } while (0)

/* What a walk of one scope found. */
typedef struct {
  uint64_t entries[GPU_N_ACCOUNTS][GPU_N_ENTRY_STATES];
  uint64_t bytes[GPU_N_ACCOUNTS][GPU_N_ENTRY_STATES];
  uint64_t bound, in_shelves, in_lanes;
} Found;

static void
check_list (const GpuList *list)
{
  const GpuLink *previous = NULL;
  for (const GpuLink *link = list->first; link; previous = link, link = link->next)
    CHECK (link->previous == previous);
  CHECK (list->last == previous);
}

static void
check_entry (const GpuScope *scope, const GpuSlot *slot, const GpuAllocation *entry, Found *found)
{
  GpuAccount account = gpu_memory_kind_account (entry->kind);
  CHECK (entry->owned && entry->data && entry->scope == scope);
  CHECK (entry->detached == (scope->type == GPU_SCOPE_DETACHED));
  CHECK (entry->slot == slot && entry->shelf == slot->shelf);
  CHECK (entry->state == GPU_ENTRY_PENDING || entry->state == GPU_ENTRY_IDLE);
  CHECK (atomic_load (&entry->image.refs) == 0);
  CHECK (entry->capacity >= entry->image.spec.size);
  CHECK (entry->alignment >= entry->image.spec.alignment);
  CHECK (gpu_image_spec_equal (&entry->image.spec, &slot->shelf->spec) && entry->kind == slot->shelf->kind);
  CHECK (entry->stamp <= scope->last_stamp);
  const GpuStream *only = atomic_load (&entry->history.only);
  for (unsigned i = 0; only && i < gpu_history_n_points (&entry->history, GPU_ACCESS_WRITE); i++) {
    const GpuStream *stream = gpu_history_point (&entry->history, GPU_ACCESS_WRITE, i)->stream;
    CHECK (!stream || stream == only);
  }

  if (entry->state == GPU_ENTRY_IDLE) {
    CHECK (gpu_history_observed (&entry->history));
    CHECK (!entry->leaving);
    CHECK (entry->by_fit.capacity == entry->capacity && entry->by_fit.stamp == entry->stamp);
  } else {
    CHECK (entry->leaving == (scope->type == GPU_SCOPE_SHARED || scope->type == GPU_SCOPE_DETACHED));
    GpuPoint last;
    GpuHistoryKind kind = gpu_history_kind (&entry->history, &last);
    /* What is pending may have become complete since it was filed, but never moves to another stream. */
    CHECK (kind == GPU_HISTORY_COMPLETE || !slot->lane->stream ||
           (kind == GPU_HISTORY_ONE_STREAM && last.stream == slot->lane->stream && last.number == entry->number));
  }
  found->entries[account][entry->state]++;
  found->bytes[account][entry->state] += entry->capacity;
}

static void
check_slots (GpuScope *scope, Found *found)
{
  GHashTableIter iter;
  void *key;
  g_hash_table_iter_init (&iter, scope->slots);
  while (g_hash_table_iter_next (&iter, &key, NULL)) {
    const GpuSlot *slot = key;
    uint64_t n = 0;
    check_list (&slot->entries);
    CHECK (g_hash_table_contains (scope->shelves, slot->shelf));
    CHECK (g_hash_table_contains (scope->lanes, slot->lane));
    for (const GpuLink *link = slot->entries.first; link; link = link->next, n++)
      check_entry (scope, slot, gpu_container (link, GpuAllocation, by_slot), found);
    CHECK (slot->n_bound >= n && slot->n_bound > 0);
  }
}

static void
check_shelf_list (const GpuList *list, GpuEntryState state, Found *found)
{
  uint64_t stamp = 0;
  for (const GpuLink *link = list->first; link; link = link->next, found->in_shelves++) {
    const GpuAllocation *entry = gpu_container (link, GpuAllocation, by_shelf);
    CHECK (entry->state == state && entry->stamp >= stamp);
    stamp = entry->stamp;
  }
}

static void
check_shelves (GpuScope *scope, Found *found)
{
  GHashTableIter iter;
  void *key;
  bool recent_found = scope->recent_shelf == NULL;
  g_hash_table_iter_init (&iter, scope->shelves);
  while (g_hash_table_iter_next (&iter, &key, NULL)) {
    const GpuShelf *shelf = key;
    recent_found |= shelf == scope->recent_shelf;
    check_list (&shelf->idle);
    check_list (&shelf->pending);
    check_shelf_list (&shelf->idle, GPU_ENTRY_IDLE, found);
    check_shelf_list (&shelf->pending, GPU_ENTRY_PENDING, found);
    CHECK (shelf->n_bound > 0);
    CHECK (!shelf->recent_slot || g_hash_table_contains (scope->slots, shelf->recent_slot));
    found->bound += shelf->n_bound;
  }
  CHECK (recent_found);
}

static void
check_lanes (GpuScope *scope, Found *found)
{
  GHashTableIter iter;
  void *key;
  unsigned n_pending = 0;
  g_hash_table_iter_init (&iter, scope->lanes);
  while (g_hash_table_iter_next (&iter, &key, NULL)) {
    const GpuLane *lane = key;
    uint64_t number = 0, n = 0;
    check_list (&lane->pending);
    CHECK (lane->n_slots > 0);
    CHECK (lane->id == (lane->stream ? gpu_stream_id (lane->stream) : 0));
    for (const GpuLink *link = lane->pending.first; link; link = link->next, found->in_lanes++) {
      const GpuAllocation *entry = gpu_container (link, GpuAllocation, by_lane);
      CHECK (entry->state == GPU_ENTRY_PENDING && entry->slot->lane == lane && !entry->early);
      CHECK (entry->number >= number);
      number = entry->number;
      n++;
    }
    CHECK (gpu_tree_is_valid (&lane->early) && (lane->stream || lane->early.n == 0));
    for (const GpuTreeNode *node = gpu_tree_first (&lane->early); node; node = gpu_tree_next (&lane->early, node)) {
      const GpuAllocation *entry = gpu_container (node, GpuAllocation, by_number);
      CHECK (entry->state == GPU_ENTRY_PENDING && entry->slot->lane == lane && entry->early);
      found->in_lanes++;
      n++;
    }
    CHECK (n == lane->n_pending);
    n_pending += n > 0;
  }
  check_list (&scope->pending_lanes);
  CHECK (n_pending == scope->n_pending_lanes);
}

static void
check_batches (GpuScope *scope)
{
  check_list (&scope->batches);
  CHECK (scope->type != GPU_SCOPE_SHARED || !scope->batches.first);
  for (const GpuLink *link = scope->batches.first; link; link = link->next) {
    const GpuBatch *batch = gpu_container (link, GpuBatch, by_scope);
    unsigned n_filed = 0;

    CHECK (batch->is_acquired && atomic_load (&batch->refs) == 0);
    CHECK (batch->n_members == (batch->whole ? 1 : batch->n) + (batch->table != NULL));
    for (unsigned i = 0; i < batch->n_members; i++) {
      const GpuAllocation *member = gpu_batch_member (batch, i);

      CHECK (member->batch == batch && member->scope == scope);
      n_filed += member->state != GPU_ENTRY_LIVE;
    }
    CHECK (n_filed == batch->n_filed && n_filed <= batch->n_members);
  }
}

static void
check_scope (GpuScope *scope, uint64_t bytes[GPU_N_ACCOUNTS], uint64_t *changes)
{
  Found found = {0};
  gpu_scope_lock (scope);
  check_slots (scope, &found);
  check_shelves (scope, &found);
  check_lanes (scope, &found);
  check_batches (scope);

  uint64_t idle = 0, pending = 0;
  CHECK (gpu_tree_is_valid (&scope->fit));
  for (int account = 0; account < GPU_N_ACCOUNTS; account++) {
    const GpuScopeCounts *counts = &scope->counts[account];
    for (int state = GPU_ENTRY_PENDING; state <= GPU_ENTRY_IDLE; state++) {
      CHECK (counts->entries[state] == found.entries[account][state]);
      CHECK (counts->bytes[state] == found.bytes[account][state]);
    }
    CHECK (gpu_tree_is_valid (&scope->age[account]));
    CHECK (scope->age[account].n == counts->entries[GPU_ENTRY_IDLE]);
    idle += counts->entries[GPU_ENTRY_IDLE];
    pending += counts->entries[GPU_ENTRY_PENDING];
    for (int state = 0; state < GPU_N_ENTRY_STATES; state++)
      bytes[account] += counts->bytes[state];
  }
  CHECK (scope->fit.n == idle);
  CHECK (found.in_lanes == pending && found.in_shelves == idle + pending);
  CHECK (found.bound == scope->n_bound);
  CHECK (!scope->ended || idle + pending == 0);
  *changes += scope->changes;
  gpu_scope_unlock (scope);
}

/* One walk over all scopes. */
static void
check_scopes (GpuCache *cache, uint64_t bytes[GPU_N_ACCOUNTS], uint64_t *changes)
{
  g_autoptr (GPtrArray) scopes = gpu_cache_list_scopes (cache);
  *changes = scopes->len;
  for (unsigned i = 0; i < scopes->len; i++)
    check_scope (g_ptr_array_index (scopes, i), bytes, changes);
  uint64_t detached[GPU_N_ACCOUNTS] = {0}; /* not part of the count */
  check_scope (cache->detached, detached, changes);
}

void
gpu_cache_check (GpuDevice *device)
{
  GpuCache *cache = device->cache;
  uint64_t counted[2][GPU_N_ACCOUNTS], bytes[2][GPU_N_ACCOUNTS] = {{0}}, changes[2], carried = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (int account = 0; account < GPU_N_ACCOUNTS; account++) {
      carried += atomic_load (&cache->carried[account]);
      counted[pass][account] = atomic_load (&cache->bytes[account]);
    }
    bytes[pass][GPU_ACCOUNT_HOST] += atomic_load (&cache->pinned_bytes);
    check_scopes (cache, bytes[pass], &changes[pass]);
  }

  /* The totals can only be compared if nothing moved meanwhile. */
  if (carried > 0 || changes[0] != changes[1])
    return;
  for (int account = 0; account < GPU_N_ACCOUNTS; account++)
    if (counted[0][account] == counted[1][account])
      CHECK (bytes[0][account] == counted[0][account]);
}
