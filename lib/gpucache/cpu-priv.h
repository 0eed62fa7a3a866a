/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The CPU device from inside. A native stream is a handle on a queue of commands; who runs them is the executor's
 * matter: a worker thread a queue, or, lazily, whoever waits. cpu-queue.c holds the queues and both executors,
 * cpu-memory.c the memory, device-cpu.c the seam on top of them.
 *
 * One mutex guards all of it, for all CPU devices together, since a stream of one may wait for an event of another. It
 * is not held while a command touches memory.
 */
#pragma once

#include "device-priv.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#endif

/** What memory is filled with when it is allocated and when it is freed. */
#define GPU_CPU_POISON 0xA5

typedef struct GpuCpuDevice GpuCpuDevice;
typedef struct GpuCpuQueue GpuCpuQueue;
typedef struct GpuCpuCommand GpuCpuCommand;

/**
 * GpuCpuMark:
 *
 * A position in a queue: complete when the queue's @number-th command is. Zeroed, it is complete. Queues outlive their
 * streams and their numbers only grow, so a mark is a plain value.
 */
typedef struct {
  GpuCpuQueue *queue;
  uint64_t number;
} GpuCpuMark;

/** What a native stream is. Handles are recycled at once, also while work of their last stream is pending. */
typedef struct {
  GpuCpuQueue *queue;
} GpuCpuStream;

/** What a native event is: the mark of its last record, if any. */
typedef struct {
  GpuCpuMark mark;
} GpuCpuEvent;

typedef struct {
  bool is_open;
} GpuCpuGate;

typedef struct {
  void *data;
  size_t size;
  size_t alignment;
  GpuMemoryKind kind;
  bool is_freed; /* its free is in a queue, and has not run */
} GpuCpuBlock;

typedef enum {
  GPU_CPU_LAUNCH,
  GPU_CPU_LAUNCH_TABLE,
  GPU_CPU_COPY,
  GPU_CPU_FILL,
  GPU_CPU_FREE,
  GPU_CPU_HOST_CALL,
  GPU_CPU_RECORD,
  GPU_CPU_WAIT,
  GPU_CPU_GATE,
} GpuCpuCommandType;

struct GpuCpuCommand {
  GpuCpuCommand *next;
  GpuCpuCommandType type;
  union {
    struct {
      const GpuKernel *kernel;
      GpuExtent extent;
      const uint8_t *table; /* of LAUNCH_TABLE: @n arguments' structs */
      uint32_t n;
    } launch;
    struct {
      GpuCopy rows;
      uint8_t value; /* of fills and frees */
      /* Of frees: what goes back to the system, NULL if a later allocation on the same stream has taken it over. */
      GpuCpuBlock *block;
    } copy;
    struct {
      void (*func) (void *data);
      void *data;
    } call;
    GpuCpuMark wait;
    GpuCpuGate *gate;
  };
  max_align_t args[]; /* of launches */
};

struct GpuCpuQueue {
  GpuCpuDevice *device;
  GpuCpuCommand *head, *tail; /* not complete; the first may be running */
  uint64_t submitted, completed;
  bool is_running;  /* somebody runs the first command */
  bool is_detached; /* its stream was destroyed */
  GQueue frees;     /* of its commands, frees whose block nobody has taken over; the newest first */
  pthread_t thread;
  pthread_cond_t wake;
};

struct GpuCpuDevice {
  GpuDevice base;
  GpuCpuExecutor executor;
  bool quit;

  GPtrArray *queues;      /* all, owned */
  GPtrArray *idle_queues; /* those that have neither stream nor work; the last is reused first */
  GPtrArray *free_streams, *free_events;

  uint64_t total_bytes;
  uint64_t used_bytes; /* pinned host memory excluded */
  GHashTable *blocks;  /* address to GpuCpuBlock: in use, or with a free that has not run */
  GQueue recycled;     /* GpuCpuBlock, the newest first */
  size_t recycled_bytes;
};

/** What all CPU devices of the process share. */
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t progress; /* a command is complete or a gate open */
  unsigned n_waiters;      /* on progress */
  GPtrArray *devices;      /* GpuCpuDevice; those whose queues may hold waits */
  uint64_t n_closed;       /* devices whose queues are no more */
} GpuCpuHost;

extern GpuCpuHost gpu_cpu_host;

/* Of what follows, what says "locked" is called with the host's lock held. */

/** Not locked. The device's queues may wait and be waited for from now on, until gpu_cpu_queues_free(). */
void gpu_cpu_queues_init (GpuCpuDevice *device);

/** Returns: (transfer full): a command with room for @args_size bytes of arguments. */
GpuCpuCommand *gpu_cpu_command_new (GpuCpuCommandType type, size_t args_size);

/** Locked. Returns a queue for a new stream, or NULL with @error set. */
GpuCpuQueue *gpu_cpu_queue_new (GpuCpuDevice *device, GError **error);
/** Locked. The stream is gone; work that is pending goes on. */
void gpu_cpu_queue_detach (GpuCpuQueue *queue);
/** Locked. Takes @command. */
GpuCpuMark gpu_cpu_queue_submit (GpuCpuQueue *queue, GpuCpuCommand *command);
/** Locked. */
bool gpu_cpu_mark_is_complete (const GpuCpuMark *mark);
/** Locked; lets go of the lock while it waits. The lazy executor runs what the mark needs, on whichever device. */
void gpu_cpu_mark_wait (GpuCpuDevice *device, GpuCpuMark mark);
/** Not locked. The lazy executor runs up to @steps commands picked by @seed. */
unsigned gpu_cpu_queues_run (GpuCpuDevice *device, unsigned steps, uint32_t seed);
/** Not locked. All queues run to their ends and are freed; what waited for them elsewhere finds them complete. */
void gpu_cpu_queues_free (GpuCpuDevice *device);
/** Rows of bytes, on the calling thread. */
void gpu_cpu_copy_rows (const GpuCopy *copy);
void gpu_cpu_fill_rows (const GpuCopy *copy, uint8_t value);

/** These lock. See GpuDeviceFuncs. */
bool gpu_cpu_alloc (GpuDevice *device, GpuMemoryKind kind, size_t size, size_t alignment, void *stream, void **data,
                    GError **error);
bool gpu_cpu_free (GpuDevice *device, GpuMemoryKind kind, void *data, size_t size, void *stream, GError **error);
bool gpu_cpu_memory_info (GpuDevice *device, uint64_t *free_bytes, uint64_t *total_bytes, GError **error);
uint64_t gpu_cpu_trim (GpuDevice *device, uint64_t keep);
/** Locked. The free of @block, filled already, has run: its address may be handed out again. */
void gpu_cpu_block_release (GpuCpuDevice *device, GpuCpuBlock *block);
void gpu_cpu_memory_init (GpuCpuDevice *device, uint64_t memory_bytes);
void gpu_cpu_memory_clear (GpuCpuDevice *device);
