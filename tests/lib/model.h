/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A reference model of the cache, written from its rules: which answers a lookup may give and which counts a query may
 * show, given all that happened before. It calls nothing of the library.
 *
 * What the device has done by now, and what the cache has noticed of it, is known only within bounds; so the model
 * keeps for each access and each order whether it surely holds and whether it may hold, and demands what must be,
 * forbids what must not, and accepts either in between.
 */
#pragma once

#include <gpucache/cache.h>
#include <gpucache/format.h>

#define MODEL_MAX_STREAMS 24 /* that ever were, the devices' internal ones included */
#define MODEL_MAX_ACCESSES 12
#define MODEL_MAX_SCOPES 48
#define MODEL_SHARED 0
#define MODEL_MAX_GATES 64

typedef struct {
  unsigned stream;
  uint32_t time;                     /* of the command that it surely is not later than */
  uint32_t early;                    /* and of the one that it surely is not earlier than */
  uint64_t gates;                    /* it surely comes after these */
  uint32_t clock[MODEL_MAX_STREAMS]; /* and surely after what was submitted there by then */
} ModelAccess;

/** An allocation, live or kept. */
typedef struct {
  void *address;
  size_t capacity;
  GpuMemoryKind kind;
  GpuImageSpec spec;
  unsigned scope;
  bool live;
  bool detached;      /* live at a clear */
  bool maybe_gone;    /* kept, or freed by now */
  bool leaving;       /* pending when its scope ended: freed when complete */
  bool maybe_leaving; /* that, or not */
  int home;           /* the stream that all its accesses since it was acquired were on, or -1 */
  uint32_t released;
  unsigned n_accesses;
  ModelAccess accesses[MODEL_MAX_ACCESSES];
} ModelEntry;

typedef struct {
  uint32_t last;                     /* time of the last command, if all waits that may have been added were */
  uint32_t last_sure;                /* if only those were that surely were */
  uint32_t done;                     /* commands up to here are surely complete, and the cache can know */
  uint32_t observed;                 /* commands up to here surely were seen to be complete */
  uint32_t may_run;                  /* commands after this one surely have not run */
  uint64_t gates;                    /* closed ones that the next command surely waits for */
  uint64_t maybe_gates;              /* that it may wait for */
  uint32_t clock[MODEL_MAX_STREAMS]; /* what the stream surely has waited for */
  uint32_t maybe[MODEL_MAX_STREAMS]; /* and what it may have */
} ModelStream;

/** What all devices of a process share: streams wait for each other's work, whichever device they are of. */
typedef struct {
  bool eager; /* devices work by themselves: what no gate holds may be complete at any time */
  uint32_t now;
  uint64_t closed; /* gates */
  unsigned n_streams;
  ModelStream streams[MODEL_MAX_STREAMS];
} ModelTime;

/** A device. */
typedef struct {
  ModelTime *time;
  unsigned internal; /* the stream where memory is allocated that no stream is named for */
  unsigned waiter;   /* and where waits are added for it */
  unsigned n_scopes;
  bool ended[MODEL_MAX_SCOPES];
  uint64_t limit[GPU_N_ACCOUNTS];
  bool may_hold; /* the device's pool, any of what the limit leaves to it */
  unsigned ratio;
  GPtrArray *entries;                  /* of ModelEntry, owned */
  GpuCacheStats stats[GPU_N_ACCOUNTS]; /* as last seen */
  char *why;                           /* what was wrong with the last answer */
} Model;

typedef struct {
  const GpuImageSpec *spec;
  GpuMemoryKind kind;
  bool host;
  int stream; /* -1: none */
  unsigned scope;
} ModelRequest;

/** @time: outlives it */
Model *model_new (ModelTime *time, const uint64_t *limits);
void model_free (Model *model);

/** Returns: its index; at most MODEL_MAX_STREAMS. */
unsigned model_add_stream (Model *model);
/** Returns: its index; at most MODEL_MAX_SCOPES. */
unsigned model_add_scope (Model *model);
void model_end_scope (Model *model, unsigned scope);

void model_wait_stream (Model *model, unsigned stream, unsigned other);
void model_hold (Model *model, unsigned stream, unsigned gate);
void model_open (Model *model, unsigned gate);
/** Whether a host wait for the stream may hang. */
bool model_is_held (const Model *model, unsigned stream);
void model_synchronized (Model *model, unsigned stream);
/** Work of any stream may have run. */
void model_ran (Model *model);
void model_access (Model *model, ModelEntry *entry, unsigned stream, bool write);
/** A copy from one device's @src to the other's @dst, on a stream of the latter. */
void model_cross (Model *from, ModelEntry *src, Model *to, ModelEntry *dst, unsigned stream);
void model_release (Model *model, ModelEntry *entry);
void model_cleared (Model *model, int scope); /* -1: all */

/** Whether an image with that address and capacity, and the counts since the last look, are an allowed answer; then it
 * is entered. @entry: (out): the image's. */
bool model_acquired (Model *model, const ModelRequest *request, void *address, size_t capacity,
                     const GpuCacheStats *stats, ModelEntry **entry);

/** Whether a query may show that. To be called after every step, with the account's statistics. */
bool model_queried (Model *model, GpuAccount account, const GpuCacheStats *stats);
