/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What happened so far: streams, what they wait for, and entries. Numbers in parentheses are rules.
 */
#include "model-priv.h"

#include <string.h>

bool
model_wrong (Model *model, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_free (model->why);
  model->why = g_strdup_vprintf (format, args);
  va_end (args);
  return false;
}

Model *
model_new (ModelTime *time, const uint64_t *limits)
{
  Model *model = g_new0 (Model, 1);

  model->time = time;
  model->ratio = 4;
  model->entries = g_ptr_array_new_with_free_func (g_free);
  for (unsigned i = 0; i < GPU_N_ACCOUNTS; i++)
    model->limit[i] = limits[i];
  model->internal = model_add_stream (model);
  model->waiter = model_add_stream (model);
  model_add_scope (model);
  return model;
}

void
model_free (Model *model)
{
  g_ptr_array_unref (model->entries);
  g_free (model->why);
  g_free (model);
}

unsigned
model_add_stream (Model *model)
{
  g_assert (model->time->n_streams < MODEL_MAX_STREAMS);
  return model->time->n_streams++;
}

unsigned
model_add_scope (Model *model)
{
  g_assert (model->n_scopes < MODEL_MAX_SCOPES);
  return model->n_scopes++;
}

/* What may be known and done of a point. */

static bool
surely_complete (const Model *model, const ModelAccess *access)
{
  return access->time <= model->time->streams[access->stream].done;
}

static bool
maybe_complete (const Model *model, const ModelAccess *access)
{
  if (access->gates & model->time->closed)
    return false;
  return model->time->eager || access->early <= model->time->streams[access->stream].may_run;
}

bool
model_surely_idle (const Model *model, const ModelEntry *entry)
{
  for (unsigned i = 0; i < entry->n_accesses; i++) {
    if (!surely_complete (model, &entry->accesses[i]))
      return false;
  }
  return true;
}

bool
model_maybe_idle (const Model *model, const ModelEntry *entry)
{
  for (unsigned i = 0; i < entry->n_accesses; i++) {
    if (!maybe_complete (model, &entry->accesses[i]))
      return false;
  }
  return true;
}

bool
model_surely_ordered (const Model *model, const ModelEntry *entry, unsigned stream)
{
  for (unsigned i = 0; i < entry->n_accesses; i++) {
    const ModelAccess *access = &entry->accesses[i];
    if (access->stream != stream && !surely_complete (model, access) &&
        access->time > model->time->streams[stream].clock[access->stream])
      return false;
  }
  return true;
}

bool
model_maybe_ordered (const Model *model, const ModelEntry *entry, unsigned stream)
{
  for (unsigned i = 0; i < entry->n_accesses; i++) {
    const ModelAccess *access = &entry->accesses[i];
    if (access->stream != stream && !maybe_complete (model, access) &&
        access->early > model->time->streams[stream].maybe[access->stream])
      return false;
  }
  return true;
}

/* Commands. */

void
model_command (Model *model, unsigned stream)
{
  model->time->streams[stream].last = model->time->streams[stream].last_sure = ++model->time->now;
}

static void
learn_maybe (ModelStream *self, const ModelStream *from, unsigned other, uint32_t time)
{
  self->maybe[other] = MAX (self->maybe[other], time);
  for (unsigned i = 0; i < MODEL_MAX_STREAMS; i++)
    self->maybe[i] = MAX (self->maybe[i], from->maybe[i]);
  self->maybe_gates |= from->maybe_gates;
}

static void
learn_surely (ModelStream *self, const uint32_t *clock, unsigned other, uint32_t time)
{
  self->clock[other] = MAX (self->clock[other], time);
  for (unsigned i = 0; clock && i < MODEL_MAX_STREAMS; i++)
    self->clock[i] = MAX (self->clock[i], clock[i]);
}

void
model_hold (Model *model, unsigned stream, unsigned gate)
{
  uint64_t bit = UINT64_C (1) << gate;

  model->time->closed |= bit;
  model->time->streams[stream].gates |= bit;
  model->time->streams[stream].maybe_gates |= bit;
  model_command (model, stream);
}

void
model_open (Model *model, unsigned gate)
{
  uint64_t bit = UINT64_C (1) << gate;

  model->time->closed &= ~bit;
  for (unsigned i = 0; i < model->time->n_streams; i++) {
    model->time->streams[i].gates &= ~bit;
    model->time->streams[i].maybe_gates &= ~bit;
  }
}

bool
model_is_held (const Model *model, unsigned stream)
{
  return (model->time->streams[stream].maybe_gates & model->time->closed) != 0;
}

void
model_ran (Model *model)
{
  for (unsigned i = 0; i < model->time->n_streams; i++)
    model->time->streams[i].may_run = model->time->now;
}

void
model_synchronized (Model *model, unsigned stream)
{
  const ModelStream *self = &model->time->streams[stream];

  for (unsigned i = 0; i < model->time->n_streams; i++)
    model->time->streams[i].done = MAX (model->time->streams[i].done, self->clock[i]);
  model->time->streams[stream].done = model->time->streams[stream].observed = model->time->now;
  model_ran (model);
}

ModelAccess
model_present (const Model *model, unsigned stream)
{
  const ModelStream *self = &model->time->streams[stream];
  ModelAccess access = {.stream = stream, .time = self->last, .early = self->last_sure, .gates = self->gates};

  memcpy (access.clock, self->clock, sizeof access.clock);
  return access;
}

/* Whether a wait for @access surely is a command of @stream's: the cache cannot think that there is nothing to wait
 * for. */
static bool
surely_adds (const Model *model, const ModelStream *self, const ModelAccess *access)
{
  return !maybe_complete (model, access) && access->early > self->maybe[access->stream];
}

static void
added (Model *model, ModelStream *self, bool surely)
{
  self->last = ++model->time->now;
  if (surely)
    self->last_sure = model->time->now;
}

/* @stream's next command comes after @access. */
void
model_wait_for (Model *model, unsigned stream, const ModelAccess *access)
{
  ModelStream *self = &model->time->streams[stream];

  if (access->stream == stream || surely_complete (model, access))
    return;
  bool surely = surely_adds (model, self, access);
  learn_maybe (self, &model->time->streams[access->stream], access->stream, model->time->now);
  /* If it was seen to be complete, no wait was added, and the rest of its clock is not known here. */
  learn_surely (self, maybe_complete (model, access) ? NULL : access->clock, access->stream, access->early);
  self->gates |= access->gates & model->time->closed;
  added (model, self, surely);
}

void
model_wait_stream (Model *model, unsigned stream, unsigned other)
{
  ModelStream *self = &model->time->streams[stream];
  ModelAccess access = model_present (model, other);

  if (stream == other)
    return;
  bool surely = surely_adds (model, self, &access);
  learn_maybe (self, &model->time->streams[other], other, model->time->now);
  learn_surely (self, maybe_complete (model, &access) ? NULL : access.clock, other, model->time->now);
  self->gates |= access.gates & model->time->closed;
  added (model, self, surely);
}

/* Reads since the write are entries after the first. */
static void
wait_for_conflicts (Model *model, ModelEntry *entry, unsigned stream, bool write)
{
  for (unsigned i = 0; i < (write ? entry->n_accesses : MIN (entry->n_accesses, 1)); i++)
    model_wait_for (model, stream, &entry->accesses[i]);
}

static void
enter (Model *model, ModelEntry *entry, unsigned stream, bool write)
{
  if (entry->home != (int)stream)
    entry->home = -1;
  if (write)
    entry->n_accesses = 0;
  for (unsigned i = 1; i < entry->n_accesses; i++) {
    if (entry->accesses[i].stream == stream) {
      entry->accesses[i] = model_present (model, stream);
      return;
    }
  }
  g_assert (entry->n_accesses < MODEL_MAX_ACCESSES);
  entry->accesses[entry->n_accesses++] = model_present (model, stream);
}

/* (19), (20). */
void
model_access (Model *model, ModelEntry *entry, unsigned stream, bool write)
{
  wait_for_conflicts (model, entry, stream, write);
  model_command (model, stream);
  enter (model, entry, stream, write);
}

/* (26) */
void
model_cross (Model *from, ModelEntry *src, Model *to, ModelEntry *dst, unsigned stream)
{
  wait_for_conflicts (from, src, stream, false);
  wait_for_conflicts (to, dst, stream, true);
  model_command (to, stream);
  enter (from, src, stream, false);
  enter (to, dst, stream, true);
}

/* Entries. */

ModelEntry *
model_entry (const Model *model, unsigned i)
{
  return g_ptr_array_index (model->entries, i);
}

void
model_forget (Model *model, ModelEntry *entry)
{
  g_ptr_array_remove_fast (model->entries, entry);
}

GpuAccount
model_account (GpuMemoryKind kind)
{
  return kind == GPU_MEMORY_HOST ? GPU_ACCOUNT_HOST : GPU_ACCOUNT_DEVICE;
}

bool
model_is_kept (const ModelEntry *entry, GpuAccount account)
{
  return !entry->live && !entry->detached && model_account (entry->kind) == account;
}

void
model_release (Model *model, ModelEntry *entry)
{
  entry->live = false;
  entry->released = ++model->time->now;
  if (!entry->detached && entry->scope != MODEL_SHARED && model->ended[entry->scope]) {
    entry->scope = MODEL_SHARED;
    for (unsigned i = 0; i < entry->n_accesses; i++)
      entry->maybe_leaving |= entry->accesses[i].time > model->time->streams[entry->accesses[i].stream].observed;
  }
}

/* (15) */
void
model_end_scope (Model *model, unsigned scope)
{
  model->ended[scope] = true;
  for (unsigned i = 0; i < model->entries->len; i++) {
    ModelEntry *entry = model_entry (model, i);
    if (entry->scope != scope || entry->live || entry->detached)
      continue;
    entry->scope = MODEL_SHARED;
    if (!model_maybe_idle (model, entry))
      entry->leaving = true;
    else if (!model_surely_idle (model, entry))
      entry->maybe_leaving = true;
  }
}

/* (12) */
void
model_cleared (Model *model, int scope)
{
  for (unsigned i = model->entries->len; i-- > 0;) {
    ModelEntry *entry = model_entry (model, i);
    /* What was live when its scope ended belongs to the shared index. */
    unsigned owner = model->ended[entry->scope] ? MODEL_SHARED : entry->scope;
    if (scope >= 0 && owner != (unsigned)scope)
      continue;
    if (entry->live)
      entry->detached = true;
    else if (!entry->detached)
      model_forget (model, entry);
  }
  model_ran (model);
}
