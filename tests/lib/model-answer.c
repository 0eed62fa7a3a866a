/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Which answers are allowed: those of lookups, and those of queries. Numbers in parentheses are rules.
 */
#include "model-priv.h"

/* The part of the limit that is left to what the device's pool holds besides. */
#define HELD_SHARE 8

typedef struct {
  Model *model;
  const ModelRequest *request;
  bool host; /* nothing but complete memory will do (5) */
} Look;

static bool
is_exact (const Look *look, const ModelEntry *entry)
{
  return entry->kind == look->request->kind && gpu_image_spec_equal (&entry->spec, look->request->spec);
}

static bool
is_fit (const Look *look, const ModelEntry *entry)
{
  return entry->kind == look->request->kind && entry->spec.format == look->request->spec->format &&
         entry->capacity >= look->request->spec->size;
}

static bool
is_surely_there (const ModelEntry *entry)
{
  return !entry->maybe_gone;
}

static bool
surely_ready (const Look *look, const ModelEntry *entry)
{
  if (!is_surely_there (entry))
    return false;
  bool leaves = entry->leaving || entry->maybe_leaving;
  if (model_surely_idle (look->model, entry))
    return !leaves;
  /* On a device that works by itself, what leaves may complete and be gone at any time. */
  if (leaves && model_maybe_idle (look->model, entry))
    return false;
  return !look->host && look->request->stream >= 0 && model_surely_ordered (look->model, entry, look->request->stream);
}

static bool
maybe_ready (const Look *look, const ModelEntry *entry)
{
  return model_maybe_idle (look->model, entry) ||
         (!look->host && look->request->stream >= 0 && model_maybe_ordered (look->model, entry, look->request->stream));
}

static bool
surely_fits (const Look *look, const ModelEntry *entry, bool pressure)
{
  return is_fit (look, entry) && is_surely_there (entry) && !entry->leaving && !entry->maybe_leaving &&
         model_surely_idle (look->model, entry) &&
         (pressure || entry->capacity <= look->model->ratio * look->request->spec->size);
}

/* An exact match in @scope that must be found. */
static const ModelEntry *
find_exact (const Look *look, unsigned scope)
{
  for (unsigned i = 0; i < look->model->entries->len; i++) {
    ModelEntry *entry = model_entry (look->model, i);
    if (model_is_kept (entry, model_account (look->request->kind)) && entry->scope == scope && is_exact (look, entry) &&
        surely_ready (look, entry))
      return entry;
  }
  return NULL;
}

/* The smallest fit in @scope that must be found. */
static const ModelEntry *
find_fit (const Look *look, unsigned scope, bool pressure)
{
  const ModelEntry *best = NULL;

  for (unsigned i = 0; i < look->model->entries->len; i++) {
    ModelEntry *entry = model_entry (look->model, i);
    if (model_is_kept (entry, model_account (look->request->kind)) && entry->scope == scope &&
        surely_fits (look, entry, pressure) && (!best || entry->capacity < best->capacity))
      best = entry;
  }
  return best;
}

/* Of several exact ones, the most recently released on the consumer stream (4). What scopes left in the shared index is
 * in the order in which they ended. */
static bool
check_recency (const Look *look, const ModelEntry *taken)
{
  if (taken->scope == MODEL_SHARED)
    return true;
  for (unsigned i = 0; i < look->model->entries->len; i++) {
    ModelEntry *entry = model_entry (look->model, i);
    if (entry == taken || !model_is_kept (entry, model_account (look->request->kind)) || entry->scope != taken->scope ||
        !is_exact (look, entry) || !surely_ready (look, entry) || look->request->stream < 0 ||
        entry->home != look->request->stream)
      continue;
    if (taken->home == entry->home && entry->released > taken->released)
      return model_wrong (look->model, "%p was released on the consumer stream after %p, which was taken",
                          entry->address, taken->address);
    if (taken->home >= 0 && taken->home != entry->home)
      return model_wrong (look->model, "%p was released on the consumer stream, but %p was taken", entry->address,
                          taken->address);
  }
  return true;
}

/* (7): nothing that comes earlier in the order of a lookup must have been found. @taken: NULL for new memory. */
static bool
check_order (const Look *look, const ModelEntry *taken, bool exact, bool pressure)
{
  Model *model = look->model;
  const unsigned scopes[2] = {look->request->scope, MODEL_SHARED};

  for (unsigned s = 0; s < 2; s++) {
    bool here = taken && taken->scope == scopes[s];
    if (here && exact)
      return true;
    const ModelEntry *missed = find_exact (look, scopes[s]);
    if (missed)
      return model_wrong (model, "%p in scope %u is exact and ready, and was not taken", missed->address, scopes[s]);
    missed = find_fit (look, scopes[s], pressure);
    if (here) {
      if (missed && missed->capacity < taken->capacity)
        return model_wrong (model, "%p with %zu bytes fits better than %p with %zu", missed->address, missed->capacity,
                            taken->address, taken->capacity);
      return true;
    }
    if (missed)
      return model_wrong (model, "%p in scope %u fits, and was not taken", missed->address, scopes[s]);
    if (scopes[0] == scopes[1])
      break;
  }
  return true;
}

/* An exact match that is surely pending and to be had for a wait. */
static const ModelEntry *
find_waiting (const Look *look)
{
  for (unsigned i = 0; !look->host && i < look->model->entries->len; i++) {
    ModelEntry *entry = model_entry (look->model, i);
    if (model_is_kept (entry, model_account (look->request->kind)) && is_exact (look, entry) &&
        is_surely_there (entry) && (entry->scope == look->request->scope || entry->scope == MODEL_SHARED) &&
        !model_maybe_idle (look->model, entry))
      return entry;
  }
  return NULL;
}

/* What eviction would have to remove (10): the least recently used idle entries until no more than @target bytes are
 * left. Marks them as gone if it is sure which they are, else all that may be. Returns how many, or -1 if not sure. */
static int
evict (Model *model, GpuAccount account, uint64_t bytes, uint64_t target)
{
  bool sure = true;
  int n = 0;

  if (bytes <= target)
    return 0;
  for (unsigned i = 0; i < model->entries->len; i++) {
    ModelEntry *entry = model_entry (model, i);
    if (model_is_kept (entry, account) && model_maybe_idle (model, entry) &&
        (!model_surely_idle (model, entry) || entry->maybe_gone || entry->leaving || entry->maybe_leaving))
      sure = false;
  }
  if (!sure) {
    for (unsigned i = 0; i < model->entries->len; i++) {
      ModelEntry *entry = model_entry (model, i);
      if (model_is_kept (entry, account) && model_maybe_idle (model, entry))
        entry->maybe_gone = true;
    }
    return -1;
  }
  while (bytes > target) {
    ModelEntry *oldest = NULL;
    for (unsigned i = 0; i < model->entries->len; i++) {
      ModelEntry *entry = model_entry (model, i);
      if (model_is_kept (entry, account) && model_surely_idle (model, entry) &&
          (!oldest || entry->released < oldest->released))
        oldest = entry;
    }
    if (!oldest)
      break;
    bytes -= oldest->capacity;
    model_forget (model, oldest);
    n++;
  }
  return n;
}

typedef struct {
  uint64_t low, high;
} Bounds;

static uint64_t
total (const GpuCacheStats *stats)
{
  return stats->live_bytes + stats->pending_bytes + stats->idle_bytes;
}

/* The least that is left of the limit if the device's pool holds what it may. */
static uint64_t
least_limit (const Model *model, GpuAccount account)
{
  const uint64_t limit = model->limit[account];

  return model->may_hold && account == GPU_ACCOUNT_DEVICE ? limit - limit / HELD_SHARE : limit;
}

/* New memory: pressure, and what it had to do, and the bytes reserved. */
static bool
check_miss (Look *look, void *address, size_t capacity, unsigned evictions)
{
  Model *model = look->model;
  GpuAccount account = model_account (look->request->kind);
  uint64_t limit = model->limit[account];
  uint64_t before = total (&model->stats[account]);
  uint64_t surely = 0, maybe = 0;

  if (capacity < look->request->spec->size)
    return model_wrong (model, "new memory has %zu bytes, and %zu were asked for", capacity, look->request->spec->size);
  for (unsigned i = 0; i < model->entries->len; i++) {
    ModelEntry *entry = model_entry (model, i);
    if (!model_is_kept (entry, account))
      continue;
    if (model_surely_idle (model, entry) && is_surely_there (entry) && !entry->leaving && !entry->maybe_leaving)
      surely += entry->capacity;
    if (model_maybe_idle (model, entry))
      maybe += entry->capacity;
  }
  /* What is complete and was to leave may have left before the lookup. */
  Bounds bytes = {before - MIN (before, maybe - surely), before};
  bool surely_pressed = bytes.low + capacity > limit;
  bool maybe_pressed = bytes.high + capacity > least_limit (model, account);
  bool maybe_enough = before - MIN (before, maybe) + capacity <= limit;
  bool surely_enough = before - MIN (before, surely) + capacity <= limit && limit == least_limit (model, account);

  if (!check_order (look, NULL, false, surely_pressed))
    return false;
  if (surely_pressed && !maybe_enough) {
    const ModelEntry *missed = find_waiting (look);
    if (missed)
      return model_wrong (model, "%p is exact and pending, and new memory was taken under pressure", missed->address);
  }
  if (!maybe_pressed && evictions > 0)
    return model_wrong (model, "%u entries were evicted without pressure", evictions);
  if (surely_pressed && surely_enough) {
    int expected = evict (model, account, before, limit - capacity);
    if (expected >= 0 && (unsigned)expected != evictions)
      return model_wrong (model, "%u entries were evicted instead of %d", evictions, expected);
  } else if (maybe_pressed) {
    for (unsigned i = 0; i < model->entries->len; i++) {
      ModelEntry *entry = model_entry (model, i);
      if (model_is_kept (entry, account) && model_maybe_idle (model, entry))
        entry->maybe_gone = true;
    }
  }
  for (unsigned i = model->entries->len; i-- > 0;) {
    ModelEntry *entry = model_entry (model, i);
    if (entry->address != address)
      continue;
    if (entry->live || (!entry->maybe_gone && !(entry->leaving || entry->maybe_leaving) && !entry->detached) ||
        !model_maybe_idle (model, entry))
      return model_wrong (model, "new memory at %p, which is %s", address,
                          entry->live                       ? "live"
                          : model_maybe_idle (model, entry) ? "kept"
                                                            : "pending");
    model_forget (model, entry);
  }
  return true;
}

static bool
check_hit (Look *look, ModelEntry *entry, const GpuCacheStats *now, const GpuCacheStats *last)
{
  Model *model = look->model;
  GpuAccount account = model_account (look->request->kind);
  bool fit = now->fit_hits > last->fit_hits;
  bool waiting = now->waiting_hits > last->waiting_hits;
  bool idle = now->exact_hits > last->exact_hits;
  uint64_t before = total (&model->stats[account]);
  size_t size = look->request->spec->size;
  uint64_t kept_surely = 0;

  if (entry->scope != look->request->scope && entry->scope != MODEL_SHARED)
    return model_wrong (model, "%p belongs to scope %u and was taken by scope %u (14)", entry->address, entry->scope,
                        look->request->scope);
  if (fit ? !is_fit (look, entry) : !is_exact (look, entry))
    return model_wrong (model, "%p does not match (4)", entry->address);
  if ((fit || idle) && !model_maybe_idle (model, entry))
    return model_wrong (model, "%p was handed out as idle, and is pending", entry->address);
  if (!fit && !idle && model_surely_idle (model, entry) && !entry->leaving && !entry->maybe_leaving)
    return model_wrong (model, "%p was counted as pending, and is idle", entry->address);
  if (!waiting && !maybe_ready (look, entry))
    return model_wrong (model, "%p is not ordered on the consumer stream, and no wait was added (5)", entry->address);
  if (look->host && !model_maybe_idle (model, entry))
    return model_wrong (model, "%p is pending, and was handed to the host (5)", entry->address);

  for (unsigned i = 0; i < model->entries->len; i++) {
    ModelEntry *other = model_entry (model, i);
    if (model_is_kept (other, account) && model_surely_idle (model, other) && is_surely_there (other) &&
        !other->leaving && !other->maybe_leaving)
      kept_surely += other->capacity;
  }
  bool maybe_pressed = before + MAX (size, entry->capacity) > least_limit (model, account);
  if (fit && !maybe_pressed && entry->capacity > model->ratio * size)
    return model_wrong (model, "%p with %zu bytes is too large for %zu (4)", entry->address, entry->capacity, size);
  if (waiting && !maybe_pressed)
    return model_wrong (model, "%p was taken with waits, without pressure (5)", entry->address);
  if (waiting && before - kept_surely + entry->capacity <= least_limit (model, account))
    return model_wrong (model, "%p was taken with waits, though eviction would have made enough room (7)",
                        entry->address);
  if (!check_order (look, waiting ? NULL : entry, !fit, waiting))
    return false;
  return fit || waiting || check_recency (look, entry);
}

/* What may have gone without being asked for: what leaves and is complete, and what is over the limit. */
static void
retire (Model *model, GpuAccount account)
{
  uint64_t bytes = 0;

  for (unsigned i = model->entries->len; i-- > 0;) {
    ModelEntry *entry = model_entry (model, i);
    if (model_account (entry->kind) != account)
      continue;
    if (entry->detached && !entry->live && model_surely_idle (model, entry)) {
      model_forget (model, entry);
      continue;
    }
    if (model_is_kept (entry, account) && (entry->leaving || entry->maybe_leaving)) {
      if (model_surely_idle (model, entry) && entry->leaving) {
        model_forget (model, entry);
        continue;
      }
      if (model_maybe_idle (model, entry))
        entry->maybe_gone = true;
    }
    if (!entry->detached)
      bytes += entry->capacity;
  }
  if (bytes > least_limit (model, account)) {
    /* Several may have completed at once, one by one, so which are the least recently used is not sure. */
    for (unsigned i = 0; i < model->entries->len; i++) {
      ModelEntry *entry = model_entry (model, i);
      if (model_is_kept (entry, account) && model_maybe_idle (model, entry))
        entry->maybe_gone = true;
    }
  }
}

bool
model_acquired (Model *model, const ModelRequest *request, void *address, size_t capacity, const GpuCacheStats *stats,
                ModelEntry **out)
{
  GpuAccount account = model_account (request->kind);
  const GpuCacheStats *last = &model->stats[account];
  Look look = {model, request, request->host || request->kind == GPU_MEMORY_HOST};
  uint64_t hits = stats->exact_hits + stats->fit_hits + stats->pending_hits + stats->waiting_hits - last->exact_hits -
                  last->fit_hits - last->pending_hits - last->waiting_hits;
  uint64_t misses = stats->misses - last->misses;
  bool waiting = stats->waiting_hits > last->waiting_hits;
  unsigned nameless = waiting ? model->waiter : model->internal;
  unsigned stream = request->stream >= 0 ? (unsigned)request->stream : nameless;
  ModelEntry *entry = NULL;

  *out = NULL;
  /* What completed since the last look may have left before the lookup. */
  for (unsigned i = 0; model->time->eager && i < GPU_N_ACCOUNTS; i++)
    retire (model, (GpuAccount)i);
  if (hits + misses != 1)
    return model_wrong (model, "%" G_GUINT64_FORMAT " hits and %" G_GUINT64_FORMAT " misses for one acquire (16)", hits,
                        misses);
  if (misses) {
    if (!check_miss (&look, address, capacity, (unsigned)(stats->evictions - last->evictions)))
      return false;
    entry = g_new0 (ModelEntry, 1);
    entry->address = address;
    entry->capacity = capacity;
    entry->kind = request->kind;
    g_ptr_array_add (model->entries, entry);
    if (request->kind == GPU_MEMORY_STREAM_ORDERED)
      model_command (model, stream);
  } else {
    for (unsigned i = 0; i < model->entries->len; i++) {
      ModelEntry *candidate = model_entry (model, i);
      if (candidate->address == address && model_is_kept (candidate, account))
        entry = candidate;
    }
    if (!entry)
      return model_wrong (model, "%p is no entry that is kept", address);
    if (entry->capacity != capacity)
      return model_wrong (model, "%p has %zu bytes all of a sudden instead of %zu (9)", address, capacity,
                          entry->capacity);
    if (!check_hit (&look, entry, stats, last))
      return false;
    for (unsigned i = 0; waiting && i < entry->n_accesses; i++)
      model_wait_for (model, stream, &entry->accesses[i]);
  }
  entry->live = true;
  entry->detached = entry->maybe_gone = entry->leaving = entry->maybe_leaving = false;
  entry->scope = request->scope;
  entry->spec = *request->spec;
  entry->home = request->stream;
  entry->n_accesses = 1;
  entry->accesses[0] = model_present (model, stream);
  if (request->stream < 0 && !misses && !waiting) {
    /* Nothing is pending and no stream is named: whether a write is entered makes no difference to anyone. */
    entry->accesses[0].early = 0;
    entry->accesses[0].gates = 0;
  }
  if (look.host) {
    entry->accesses[0] = (ModelAccess){.stream = stream}; /* complete when handed out */
    entry->home = -1;
  }
  *out = entry;
  return true;
}

/* Queries. */

bool
model_queried (Model *model, GpuAccount account, const GpuCacheStats *stats)
{
  Bounds pending = {0}, idle = {0}, detached = {0};
  uint64_t live = 0, live_bytes = 0, kept = 0, sure = 0, kept_bytes = 0;

  retire (model, account);
  for (unsigned i = 0; i < model->entries->len; i++) {
    ModelEntry *entry = model_entry (model, i);
    if (model_account (entry->kind) != account)
      continue;
    if (entry->detached) {
      detached.high += entry->capacity;
      if (entry->live || !model_maybe_idle (model, entry))
        detached.low += entry->capacity;
    } else if (entry->live) {
      live++;
      live_bytes += entry->capacity;
    } else {
      bool there = is_surely_there (entry);
      kept++;
      kept_bytes += entry->capacity;
      sure += there;
      pending.high += !model_surely_idle (model, entry);
      pending.low += there && !model_maybe_idle (model, entry);
      idle.high += model_maybe_idle (model, entry);
      idle.low += there && model_surely_idle (model, entry);
    }
  }
  model->stats[account] = *stats;

  if (stats->limit_bytes != model->limit[account])
    return model_wrong (model, "the limit is %" G_GUINT64_FORMAT " instead of %" G_GUINT64_FORMAT, stats->limit_bytes,
                        model->limit[account]);
  if (stats->live != live || stats->live_bytes != live_bytes)
    return model_wrong (model,
                        "%" G_GUINT64_FORMAT " live with %" G_GUINT64_FORMAT " bytes instead of %" G_GUINT64_FORMAT
                        " with %" G_GUINT64_FORMAT,
                        stats->live, stats->live_bytes, live, live_bytes);
  if (stats->pending < pending.low || stats->pending > pending.high)
    return model_wrong (model, "%" G_GUINT64_FORMAT " pending instead of %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                        stats->pending, pending.low, pending.high);
  if (stats->idle < idle.low || stats->idle > idle.high)
    return model_wrong (model, "%" G_GUINT64_FORMAT " idle instead of %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                        stats->idle, idle.low, idle.high);
  if (stats->pending + stats->idle < sure || stats->pending + stats->idle > kept)
    return model_wrong (model, "%" G_GUINT64_FORMAT " kept instead of %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                        stats->pending + stats->idle, sure, kept);
  if (stats->pending_bytes + stats->idle_bytes > kept_bytes)
    return model_wrong (model, "more bytes are kept than the entries have");
  if (stats->detached_bytes < detached.low || stats->detached_bytes > detached.high)
    return model_wrong (model,
                        "%" G_GUINT64_FORMAT " bytes detached instead of %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT,
                        stats->detached_bytes, detached.low, detached.high);
  if (stats->idle_bytes > 0 && total (stats) > stats->limit_bytes)
    return model_wrong (model, "%" G_GUINT64_FORMAT " idle bytes are kept above the limit (9)", stats->idle_bytes);
  if (stats->peak_bytes < total (stats))
    return model_wrong (model, "the peak is lower than the present");

  /* The count may tell what became of what may be gone. */
  bool none_gone = stats->pending + stats->idle == kept;
  bool all_gone = stats->pending + stats->idle == sure;
  if (none_gone && stats->pending_bytes + stats->idle_bytes != kept_bytes)
    return model_wrong (model, "the bytes kept are not those of the entries");
  for (unsigned i = model->entries->len; (none_gone || all_gone) && i-- > 0;) {
    ModelEntry *entry = model_entry (model, i);
    if (!model_is_kept (entry, account) || !entry->maybe_gone)
      continue;
    if (none_gone)
      entry->maybe_gone = false;
    else
      model_forget (model, entry);
  }
  /* And by the time that anybody looks again, more may have. */
  if (model->time->eager)
    retire (model, account);
  return true;
}
