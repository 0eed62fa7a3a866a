/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scopes: where entries are filed while nobody uses them (rules 3 to 5, 14, 15). Nothing here calls the driver.
 */
#include "batch-priv.h"
#include "scope-priv.h"

#include <time.h>

/* How many entries with accesses on several streams one lookup or retirement looks at, unless it sweeps all. */
#define MIXED_LOOKS 16

/* How many of the entries last used on another stream; the oldest is nearly always the first to be ordered. */
#define SLOT_LOOKS 4

/* How many entries that are large enough a best fit looks at for one that is aligned enough. */
#define FIT_LOOKS 32

static int
compare_addresses (const void *a, const void *b)
{
  return a < b ? -1 : a > b;
}

static int
compare_fit (const GpuTreeNode *a, const GpuTreeNode *b)
{
  const GpuFitNode *one = gpu_container (a, GpuFitNode, node), *other = gpu_container (b, GpuFitNode, node);
  if (one->match != other->match)
    return one->match < other->match ? -1 : 1;
  if (one->capacity != other->capacity)
    return one->capacity < other->capacity ? -1 : 1;
  if (one->stamp != other->stamp)
    return one->stamp > other->stamp ? -1 : 1;
  return compare_addresses (a, b);
}

static int
compare_age (const GpuTreeNode *a, const GpuTreeNode *b)
{
  const GpuAllocation *one = gpu_container (a, GpuAllocation, by_age);
  const GpuAllocation *other = gpu_container (b, GpuAllocation, by_age);
  if (one->stamp != other->stamp)
    return one->stamp < other->stamp ? -1 : 1;
  return compare_addresses (a, b);
}

GpuScope *
gpu_scope_new (GpuCache *cache, GpuScopeType type, uint64_t owner)
{
  GpuScope *scope = aligned_alloc (_Alignof(GpuScope), sizeof *scope);
  if (!scope)
    g_error ("out of host memory");
  memset (scope, 0, sizeof *scope);
  atomic_init (&scope->refs, 1);
  atomic_init (&scope->cache, cache);
  scope->type = type;
  scope->owner = owner;
  pthread_mutex_init (&scope->lock, NULL);
  gpu_scope_init_tables (scope);
  gpu_tree_init (&scope->fit, compare_fit);
  for (int account = 0; account < GPU_N_ACCOUNTS; account++)
    gpu_tree_init (&scope->age[account], compare_age);

  if (type == GPU_SCOPE_THREAD || type == GPU_SCOPE_STREAM) {
    gpu_lock (&cache->lock, GPU_LOCK_CACHE);
    g_ptr_array_add (cache->scopes, gpu_scope_ref (scope));
    gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
  }
  return scope;
}

GpuScope *
gpu_scope_ref (GpuScope *scope)
{
  atomic_fetch_add_explicit (&scope->refs, 1, memory_order_relaxed);
  return scope;
}

/* The tables are gone by the time that a thread's destructor can be the last to let go: see gpu_scope_end(). */
void
gpu_scope_unref (GpuScope *scope)
{
  if (atomic_fetch_sub_explicit (&scope->refs, 1, memory_order_acq_rel) != 1)
    return;
  if (scope->shelves) {
    g_hash_table_unref (scope->shelves);
    g_hash_table_unref (scope->slots);
    g_hash_table_unref (scope->lanes);
  }
  pthread_mutex_destroy (&scope->lock);
  free (scope);
}

/* Unbinds what goes elsewhere. The scope's last bound entry is never its last reference: the caller has one. */
static void
let_go (GpuScope *scope, GpuAllocation *allocation)
{
  if (allocation->batch)
    gpu_batch_dissolve (scope, allocation->batch);
  if (gpu_scope_unbind (scope, allocation))
    gpu_scope_unref (scope);
  allocation->scope = NULL;
}

/* Filing */

static void
count (GpuScope *scope, const GpuAllocation *allocation, GpuEntryState state, int by)
{
  GpuScopeCounts *counts = &scope->counts[gpu_memory_kind_account (allocation->kind)];
  counts->entries[state] += (uint64_t)(int64_t)by;
  counts->bytes[state] += by > 0 ? allocation->capacity : -(uint64_t)allocation->capacity;
  scope->changes++;
}

/* Entries of a slot or shelf are in order of release. Nearly always the new one belongs at the end. */
static void
enter_slot_list (GpuAllocation *allocation)
{
  GpuList *list = &allocation->slot->entries;
  GpuLink *after = list->last;
  while (after && gpu_container (after, GpuAllocation, by_slot)->stamp > allocation->stamp)
    after = after->previous;
  gpu_list_insert_after (list, after, &allocation->by_slot);
}

/* @hint: (nullable): where to look first if it is not the end; an entry of the list. */
static void
enter_shelf_list (GpuList *list, GpuLink *hint, GpuAllocation *allocation)
{
  GpuLink *after = list->last;
  if (after && hint && gpu_container (after, GpuAllocation, by_shelf)->stamp > allocation->stamp) {
    after = hint;
    while (after->next && gpu_container (after->next, GpuAllocation, by_shelf)->stamp < allocation->stamp)
      after = after->next;
  }
  while (after && gpu_container (after, GpuAllocation, by_shelf)->stamp > allocation->stamp)
    after = after->previous;
  gpu_list_insert_after (list, after, &allocation->by_shelf);
}

static void
enter_lane (GpuScope *scope, GpuAllocation *allocation)
{
  GpuLane *lane = allocation->slot->lane;
  if (lane->n_pending++ == 0) {
    gpu_list_append (&scope->pending_lanes, &lane->by_scope);
    scope->n_pending_lanes++;
  }
  GpuLink *last = lane->pending.last;
  allocation->early = last && gpu_container (last, GpuAllocation, by_lane)->number > allocation->number;
  if (allocation->early)
    gpu_tree_insert (&lane->early, &allocation->by_number);
  else
    gpu_list_append (&lane->pending, &allocation->by_lane);
}

static void
leave_lane (GpuScope *scope, GpuAllocation *allocation)
{
  GpuLane *lane = allocation->slot->lane;
  if (allocation->early)
    gpu_tree_remove (&lane->early, &allocation->by_number);
  else
    gpu_list_remove (&lane->pending, &allocation->by_lane);
  if (--lane->n_pending == 0) {
    gpu_list_remove (&scope->pending_lanes, &lane->by_scope);
    scope->n_pending_lanes--;
  }
}

/* To file an entry as pending or idle is apart from its place in its slot, which it keeps from one to the other. */
static void
file_pending (GpuScope *scope, GpuAllocation *allocation)
{
  allocation->state = GPU_ENTRY_PENDING;
  allocation->leaving = scope->type == GPU_SCOPE_SHARED || scope->type == GPU_SCOPE_DETACHED;
  if (allocation->leaving)
    atomic_fetch_add_explicit (&((GpuCache *)scope->cache)->n_leaving, 1, memory_order_relaxed);
  count (scope, allocation, GPU_ENTRY_PENDING, +1);
  enter_shelf_list (&allocation->shelf->pending, NULL, allocation);
  enter_lane (scope, allocation);
}

static void
unfile_pending (GpuScope *scope, GpuAllocation *allocation)
{
  if (allocation->leaving)
    atomic_fetch_sub_explicit (&((GpuCache *)scope->cache)->n_leaving, 1, memory_order_relaxed);
  count (scope, allocation, GPU_ENTRY_PENDING, -1);
  gpu_list_remove (&allocation->shelf->pending, &allocation->by_shelf);
  leave_lane (scope, allocation);
}

static uint32_t
match_of (GpuMemoryKind kind, GpuFormat format)
{
  return (uint32_t)kind << 16 | (uint32_t)format;
}

static void
file_idle (GpuScope *scope, GpuAllocation *allocation)
{
  allocation->state = GPU_ENTRY_IDLE;
  count (scope, allocation, GPU_ENTRY_IDLE, +1);
  /* What retires from one stream comes in order of release, though it may belong in the middle. */
  enter_shelf_list (&allocation->shelf->idle, allocation->shelf->recent_idle, allocation);
  allocation->shelf->recent_idle = &allocation->by_shelf;
  allocation->by_fit = (GpuFitNode){.match = match_of (allocation->kind, allocation->image.spec.format),
                                    .capacity = allocation->capacity,
                                    .stamp = allocation->stamp};
  gpu_tree_insert (&scope->fit, &allocation->by_fit.node);
  gpu_tree_insert (&scope->age[gpu_memory_kind_account (allocation->kind)], &allocation->by_age);
}

static void
unfile_idle (GpuScope *scope, GpuAllocation *allocation)
{
  count (scope, allocation, GPU_ENTRY_IDLE, -1);
  if (allocation->shelf->recent_idle == &allocation->by_shelf)
    allocation->shelf->recent_idle = allocation->by_shelf.previous;
  gpu_list_remove (&allocation->shelf->idle, &allocation->by_shelf);
  gpu_tree_remove (&scope->fit, &allocation->by_fit.node);
  gpu_tree_remove (&scope->age[gpu_memory_kind_account (allocation->kind)], &allocation->by_age);
}

static void
unfile (GpuScope *scope, GpuAllocation *allocation)
{
  if (allocation->state == GPU_ENTRY_PENDING)
    unfile_pending (scope, allocation);
  else
    unfile_idle (scope, allocation);
  gpu_list_remove (&allocation->slot->entries, &allocation->by_slot);
}

/* Counted bytes are in a scope or carried. */
static void
carry (GpuCache *cache, const GpuAllocation *allocation, bool leaves_scope)
{
  atomic_uint_least64_t *carried = &cache->carried[gpu_memory_kind_account (allocation->kind)];
  if (leaves_scope)
    atomic_fetch_add (carried, allocation->capacity);
  else
    atomic_fetch_sub (carried, allocation->capacity);
}

/* An entry that is neither filed nor live goes where it is freed. */
static void
doom (GpuScope *scope, GpuAllocation *allocation, GpuAllocation **doomed)
{
  if (!allocation->detached)
    carry (scope->cache, allocation, true);
  let_go (scope, allocation);
  allocation->next = *doomed;
  *doomed = allocation;
}

/* Whether the entry, complete now, is to be kept (rules 9, 12 and 15). */
static bool
is_retained (const GpuScope *scope, const GpuAllocation *allocation)
{
  const GpuCache *cache = scope->cache;
  return !allocation->leaving && !allocation->detached &&
         allocation->capacity <=
             atomic_load_explicit (&cache->limit[gpu_memory_kind_account (allocation->kind)], memory_order_relaxed);
}

static GpuAllocation *
take (GpuScope *scope, GpuAllocation *allocation, GpuHit hit)
{
  if (allocation->batch)
    gpu_batch_dissolve (scope, allocation->batch);
  unfile (scope, allocation);
  allocation->hit = hit;
  allocation->state = GPU_ENTRY_LIVE;
  allocation->leaving = false;
  allocation->generation = scope->generation;
  count (scope, allocation, GPU_ENTRY_LIVE, +1);
  scope->n_out++;
  return allocation;
}

void
gpu_scope_count_hit (GpuScope *scope, const GpuAllocation *taken)
{
  scope->counts[gpu_memory_kind_account (taken->kind)].hits[taken->hit]++;
}

/* Lookups */

static GpuAllocation *
newest (const GpuList *entries)
{
  return entries->last ? gpu_container (entries->last, GpuAllocation, by_slot) : NULL;
}

/* Exact matches used on other streams that @stream has waited for, and those used on several streams. */
static GpuAllocation *
find_ordered_elsewhere (GpuScope *scope, GpuShelf *shelf, GpuStream *stream)
{
  GpuAllocation *found = NULL;
  GpuClock *clock = gpu_stream_get_clock (stream);
  for (unsigned i = 0; clock && i < clock->n && !found; i++) {
    GpuSlot *slot = gpu_scope_find_slot (scope, shelf, clock->entry[i].id);
    GpuLink *link = slot ? slot->entries.first : NULL;
    for (int looks = 0; link && !found && looks < SLOT_LOOKS; link = link->next, looks++) {
      GpuAllocation *entry = gpu_container (link, GpuAllocation, by_slot);
      if (entry->number <= clock->entry[i].number)
        found = entry;
    }
  }
  gpu_clock_unref (clock);

  GpuSlot *mixed = found ? NULL : gpu_scope_find_slot (scope, shelf, 0);
  GpuLink *link = mixed ? mixed->entries.first : NULL;
  for (int looks = 0; link && !found && looks < MIXED_LOOKS; link = link->next, looks++) {
    GpuAllocation *entry = gpu_container (link, GpuAllocation, by_slot);
    if (gpu_history_is_ordered (&entry->history, stream))
      found = entry;
  }
  return found;
}

static GpuHit
hit_of (const GpuAllocation *entry)
{
  return entry->state == GPU_ENTRY_IDLE || gpu_history_observed (&entry->history) ? GPU_HIT_EXACT : GPU_HIT_PENDING;
}

void
gpu_scope_take_member (GpuScope *scope, GpuAllocation *allocation)
{
  gpu_scope_count_hit (scope, take (scope, allocation, hit_of (allocation)));
}

GpuAllocation *
gpu_scope_take_ordered (GpuScope *scope, const GpuRequest *request)
{
  if (request->complete || !request->stream)
    return NULL;
  GpuShelf *shelf = gpu_scope_find_shelf (scope, request->spec, request->kind);
  if (!shelf)
    return NULL;

  GpuSlot *slot = gpu_scope_find_slot (scope, shelf, gpu_stream_id (request->stream));
  GpuAllocation *found = slot ? newest (&slot->entries) : NULL;
  if (!found && shelf->pending.first && scope->n_pending_lanes > 0)
    found = find_ordered_elsewhere (scope, shelf, request->stream);
  if (!found)
    return NULL;

  return take (scope, found, hit_of (found));
}

GpuAllocation *
gpu_scope_take_idle (GpuScope *scope, const GpuRequest *request)
{
  GpuShelf *shelf = gpu_scope_find_shelf (scope, request->spec, request->kind);
  if (!shelf || !shelf->idle.last)
    return NULL;
  return take (scope, gpu_container (shelf->idle.last, GpuAllocation, by_shelf), GPU_HIT_EXACT);
}

GpuAllocation *
gpu_scope_take_fit (GpuScope *scope, const GpuRequest *request, size_t most)
{
  const GpuFitNode probe = {
      .match = match_of (request->kind, request->spec->format), .capacity = request->spec->size, .stamp = UINT64_MAX};
  unsigned looks = 0;
  for (GpuTreeNode *node = gpu_tree_lower_bound (&scope->fit, &probe.node); node && looks < FIT_LOOKS;
       node = gpu_tree_next (&scope->fit, node), looks++) {
    const GpuFitNode *fit = gpu_container (node, GpuFitNode, node);
    if (fit->match != probe.match || fit->capacity > most)
      return NULL;
    GpuAllocation *entry = gpu_container (fit, GpuAllocation, by_fit);
    if (entry->alignment < request->spec->alignment)
      continue;
    take (scope, entry, GPU_HIT_FIT);
    gpu_scope_reshape (scope, entry, request->spec);
    return entry;
  }
  return NULL;
}

GpuAllocation *
gpu_scope_take_pending (GpuScope *scope, const GpuRequest *request)
{
  GpuShelf *shelf = gpu_scope_find_shelf (scope, request->spec, request->kind);
  for (GpuLink *link = shelf ? shelf->pending.first : NULL; link; link = link->next) {
    GpuAllocation *entry = gpu_container (link, GpuAllocation, by_shelf);
    /* What a device that is lost by now was reading is nobody's any more; this one goes on without it. */
    if (!gpu_history_is_reachable (&entry->history))
      continue;
    return take (scope, entry, GPU_HIT_WAITING);
  }
  return NULL;
}

GpuAllocation *
gpu_scope_remove_oldest (GpuScope *scope, GpuAccount account)
{
  GpuTreeNode *node = gpu_tree_first (&scope->age[account]);
  if (!node)
    return NULL;
  GpuAllocation *entry = gpu_container (node, GpuAllocation, by_age), *chain = NULL;
  unfile (scope, entry);
  doom (scope, entry, &chain);
  return chain;
}

/* Live entries come and go */

void
gpu_scope_adopt (GpuScope *scope, GpuAllocation *allocation)
{
  allocation->scope = scope;
  allocation->state = GPU_ENTRY_LIVE;
  allocation->generation = scope->generation;
  gpu_scope_join_shelf (scope, allocation);
  count (scope, allocation, GPU_ENTRY_LIVE, +1);
  scope->n_out++;
  carry (scope->cache, allocation, false);
}

void
gpu_scope_bind (GpuScope *scope, GpuAllocation *allocation, uint64_t generation)
{
  allocation->scope = scope;
  allocation->generation = generation;
  gpu_scope_join_shelf (scope, allocation);
}

void
gpu_scope_drop (GpuScope *scope, GpuAllocation *allocation)
{
  scope->n_out--;
  scope->changes++;
  let_go (scope, allocation);
}

void
gpu_scope_disown (GpuScope *scope, GpuAllocation *allocation)
{
  carry (scope->cache, allocation, true);
  count (scope, allocation, GPU_ENTRY_LIVE, -1);
  scope->n_out--;
  let_go (scope, allocation);
}

void
gpu_scope_reshape (GpuScope *scope, GpuAllocation *allocation, const GpuImageSpec *spec)
{
  GpuShelf *shelf = allocation->shelf;
  gpu_scope_leave_slot (scope, allocation->slot);
  allocation->slot = NULL;
  allocation->image.spec = *spec;
  gpu_scope_join_shelf (scope, allocation);
  gpu_scope_leave_shelf (scope, shelf);
}

/* A time that all threads share, in units of its own: the processor's counter, which the system's clocks are made from
 * and which is read in a quarter of their time; a hit takes as long as three readings of those. */
static uint64_t
read_ticks (void)
{
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc ();
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* Releases of one scope are in a strict order, and those of all scopes nearly so. */
static uint64_t
next_stamp (GpuScope *scope)
{
  uint64_t stamp = read_ticks ();
  scope->last_stamp = MAX (stamp, scope->last_stamp + 1);
  return scope->last_stamp;
}

/* Files an entry by what its history says, in a slot of the stream that used it last. */
static void
file (GpuScope *scope, GpuAllocation *allocation, GpuAllocation **doomed)
{
  GpuPoint last;
  GpuHistoryKind kind = gpu_history_kind (&allocation->history, &last);
  bool mixed = kind == GPU_HISTORY_MIXED;
  if (kind == GPU_HISTORY_COMPLETE && doomed && !is_retained (scope, allocation)) {
    doom (scope, allocation, doomed);
    return;
  }
  gpu_scope_join_slot (scope, allocation, mixed ? NULL : last.stream);
  allocation->number = mixed ? 0 : last.number;
  enter_slot_list (allocation);
  if (kind == GPU_HISTORY_COMPLETE)
    file_idle (scope, allocation);
  else
    file_pending (scope, allocation);
}

void
gpu_scope_put (GpuScope *scope, GpuAllocation *allocation, GpuAllocation **doomed)
{
  count (scope, allocation, GPU_ENTRY_LIVE, -1);
  scope->n_out--;
  allocation->stamp = next_stamp (scope);
  if (allocation->batch)
    gpu_batch_member_is_back (scope, allocation->batch);
  file (scope, allocation, doomed);
}

void
gpu_scope_put_detached (GpuScope *scope, GpuAllocation *allocation, GpuAllocation **doomed)
{
  gpu_scope_bind (scope, allocation, 0);
  allocation->detached = true;
  allocation->stamp = next_stamp (scope);
  file (scope, allocation, doomed);
}

/* Retirement */

/* Files an entry anew if something became complete that lets it move. Returns: whether it did. */
static bool
retire_entry (GpuScope *scope, GpuAllocation *entry, GpuAllocation **doomed)
{
  GpuPoint last;
  GpuHistoryKind kind = gpu_history_kind (&entry->history, &last);
  if (kind == (entry->slot->lane->stream ? GPU_HISTORY_ONE_STREAM : GPU_HISTORY_MIXED))
    return false;
  if (kind == GPU_HISTORY_COMPLETE && is_retained (scope, entry)) {
    unfile_pending (scope, entry);
    file_idle (scope, entry);
  } else {
    unfile (scope, entry);
    file (scope, entry, doomed);
  }
  return true;
}

/* Files the entries of one lane anew as far as they are complete. Those of several streams are in no order: at most
 * @most that are not complete are looked at. The lane may go with its last entry: it is not looked at after that. */
static void
retire_lane (GpuScope *scope, GpuLane *lane, unsigned most, GpuAllocation **doomed)
{
  if (lane->stream) {
    for (uint64_t n = lane->n_pending; n > 0 && retire_entry (scope, gpu_lane_first (lane), doomed); n--)
      ;
    return;
  }
  unsigned looks = 0;
  for (GpuLink *link = lane->pending.first, *next; link && looks < most; link = next) {
    next = link->next;
    if (!retire_entry (scope, gpu_container (link, GpuAllocation, by_lane), doomed))
      looks++;
  }
}

void
gpu_scope_retire (GpuScope *scope, unsigned most_lanes, GpuAllocation **doomed)
{
  for (unsigned n = MIN (most_lanes, scope->n_pending_lanes); n > 0; n--) {
    GpuLink *link = scope->pending_lanes.first;
    gpu_list_remove (&scope->pending_lanes, link);
    gpu_list_append (&scope->pending_lanes, link);
    retire_lane (scope, gpu_container (link, GpuLane, by_scope), most_lanes == UINT_MAX ? UINT_MAX : MIXED_LOOKS,
                 doomed);
    if (!scope->pending_lanes.first)
      return;
  }
}

/* The accesses of a history that have not been observed complete. */
static unsigned
add_points (const GpuHistory *history, GpuPoint *points, unsigned n, unsigned most)
{
  for (unsigned i = 0; i < gpu_history_n_points (history, GPU_ACCESS_WRITE) && n < most; i++)
    if (!gpu_point_observed (gpu_history_point (history, GPU_ACCESS_WRITE, i)))
      points[n++] = gpu_point_hold (gpu_history_point (history, GPU_ACCESS_WRITE, i));
  return n;
}

unsigned
gpu_scope_pending_points (GpuScope *scope, GpuPoint *points, unsigned most, unsigned *lanes)
{
  unsigned n = 0;
  *lanes = 0;
  for (GpuLink *link = scope->pending_lanes.first; link && n < most; link = link->next, (*lanes)++) {
    const GpuLane *lane = gpu_container (link, GpuLane, by_scope);
    n = add_points (&gpu_lane_first (lane)->history, points, n, most);
  }
  return n;
}

void
gpu_scope_list_pending (GpuScope *scope, GArray *points)
{
  GHashTableIter iter;
  void *shelf;
  g_hash_table_iter_init (&iter, scope->shelves);
  while (g_hash_table_iter_next (&iter, &shelf, NULL))
    for (GpuLink *link = ((GpuShelf *)shelf)->pending.first; link; link = link->next)
      gpu_history_list_pending (&gpu_container (link, GpuAllocation, by_shelf)->history, points);
}

/* The end */

static void
add_counts (GpuScopeCounts *to, GpuScopeCounts *from)
{
  to->entries[GPU_ENTRY_LIVE] += from->entries[GPU_ENTRY_LIVE];
  to->bytes[GPU_ENTRY_LIVE] += from->bytes[GPU_ENTRY_LIVE];
  for (int hit = 0; hit < GPU_N_HITS; hit++)
    to->hits[hit] += from->hits[hit];
  memset (from, 0, sizeof *from);
}

/* Moves one cached entry; it keeps its age. */
static void
move_entry (GpuScope *from, GpuScope *to, GpuAllocation *allocation)
{
  GpuEntryState state = allocation->state;
  GpuStream *stream = allocation->slot->lane->stream;
  if (stream)
    gpu_stream_hold (stream);
  unfile (from, allocation);
  let_go (from, allocation);
  allocation->scope = to;
  gpu_scope_join_shelf (to, allocation);
  gpu_scope_join_slot (to, allocation, stream);
  if (stream)
    gpu_stream_release (stream);
  enter_slot_list (allocation);
  if (state == GPU_ENTRY_PENDING)
    file_pending (to, allocation);
  else
    file_idle (to, allocation);
}

static int
compare_stamps (const void *a, const void *b)
{
  const GpuAllocation *const *one = a, *const *other = b;
  return (*one)->stamp < (*other)->stamp ? -1 : (*one)->stamp > (*other)->stamp;
}

/* What is filed, idle or pending, by age. */
static GPtrArray *
list_entries (GpuScope *scope)
{
  GPtrArray *entries = g_ptr_array_new ();
  GHashTableIter iter;
  void *key;
  g_hash_table_iter_init (&iter, scope->slots);
  while (g_hash_table_iter_next (&iter, &key, NULL))
    for (GpuLink *link = ((GpuSlot *)key)->entries.first; link; link = link->next)
      g_ptr_array_add (entries, gpu_container (link, GpuAllocation, by_slot));
  g_ptr_array_sort (entries, compare_stamps);
  return entries;
}

GpuAllocation *
gpu_scope_clear (GpuScope *scope)
{
  GpuCache *cache = scope->cache;
  GpuAllocation *chain = NULL;
  g_autoptr (GPtrArray) entries = list_entries (scope);
  for (unsigned i = 0; i < entries->len; i++) {
    GpuAllocation *entry = g_ptr_array_index (entries, i);
    unfile (scope, entry);
    doom (scope, entry, &chain);
  }

  for (int account = 0; account < GPU_N_ACCOUNTS; account++) {
    GpuScopeCounts *counts = &scope->counts[account];
    uint64_t live = counts->bytes[GPU_ENTRY_LIVE];
    counts->entries[GPU_ENTRY_LIVE] = counts->bytes[GPU_ENTRY_LIVE] = 0;
    atomic_fetch_add (&cache->detached_bytes[account], live);
    atomic_fetch_sub (&cache->bytes[account], live);
  }
  scope->generation++;
  scope->changes++;
  return chain;
}

void
gpu_scope_end (GpuScope *scope)
{
  GpuCache *cache = scope->cache;
  GpuScope *shared = cache->shared;
  GpuAllocation *doomed = NULL;

  gpu_scope_lock (scope);
  gpu_scope_lock (shared);
  gpu_scope_retire (scope, UINT_MAX, &doomed);
  scope->ended = true;
  scope->shared_generation = shared->generation;
  gpu_scope_dissolve_batches (scope);

  g_autoptr (GPtrArray) entries = list_entries (scope);
  for (unsigned i = 0; i < entries->len; i++)
    move_entry (scope, shared, g_ptr_array_index (entries, i));

  for (int account = 0; account < GPU_N_ACCOUNTS; account++)
    add_counts (&shared->counts[account], &scope->counts[account]);
  shared->n_out += scope->n_out;
  scope->n_out = 0;
  shared->last_stamp = MAX (shared->last_stamp, scope->last_stamp);
  shared->changes++;
  gpu_scope_unlock (shared);
  gpu_scope_unlock (scope);
  gpu_cache_free_chain (cache, doomed, false);

  gpu_lock (&cache->lock, GPU_LOCK_CACHE);
  bool listed = g_ptr_array_remove_fast (cache->scopes, scope);
  gpu_unlock (&cache->lock, GPU_LOCK_CACHE);
  if (listed)
    gpu_scope_unref (scope);
}
