/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See grid.h.
 *
 * Kernels' shared memory is all that this library has of variables without an initial value, which is how it is found:
 * whatever else is kept from call to call is in variables of the thread.
 */
#include "grid.h"

#include "fiber.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_VALGRIND
#include <valgrind/memcheck.h>
#endif

typedef enum {
  THREAD_READY, /* not begun, or let go on */
  THREAD_AT_BARRIER,
  THREAD_IN_WARP, /* waits for lanes of its warp */
  THREAD_ENDED,
} State;

typedef struct {
  EmulatedIndex index;
  State state;
  Fiber *fiber; /* NULL if not begun */
  EmulatedPlace place;
  /* In the warp: who is to come, and what is given and got. */
  uint32_t mask;
  uint32_t value;
  unsigned source;
  uint32_t result;
  unsigned n_sets; /* of copies that it ended */
} Thread;

/* To shared memory, on its way. */
typedef struct {
  unsigned thread;
  unsigned set; /* of the thread's */
  uint8_t *dst;
  const uint8_t *src;
  unsigned n;
} Copy;

typedef struct {
  const EmulatedKernel *kernel;
  const void *arg;
  unsigned n_threads;
  unsigned n_ended;
  unsigned n_at_barrier;
  unsigned n_in_warp;
  unsigned current;
  Thread threads[EMULATED_MAX_THREADS];

  /* Numbers of those that are ready, in the order in which they became so: a ring. */
  unsigned ready[EMULATED_MAX_THREADS];
  unsigned first_ready;
  unsigned n_ready;

  Copy *copies;
  size_t n_copies, copies_allocated;

  Fiber *caller;
  Fiber *idle[EMULATED_MAX_THREADS];
  unsigned n_idle;

  bool has_chance;
  uint64_t chance;
} Gpu;

__thread EmulatedThread emulated_thread;
static __thread Gpu *gpu __attribute__ ((tls_model ("initial-exec")));

extern const EmulatedKernel *const
    kernels_begin[] __asm__("__start_emulated_kernels") __attribute__ ((visibility ("hidden")));
extern const EmulatedKernel *const
    kernels_end[] __asm__("__stop_emulated_kernels") __attribute__ ((visibility ("hidden")));

/* The linker's names for where variables without an initial value lie. */
extern uint8_t shared_begin[] __asm__("__bss_start"), shared_end[] __asm__("_end");

const EmulatedKernel *
emulated_kernel (size_t i)
{
  return i < (size_t)(kernels_end - kernels_begin) ? kernels_begin[i] : NULL;
}

/* A random number below @n, by splitmix64. */
static uint32_t
by_chance (uint32_t n)
{
  uint64_t x = gpu->chance += UINT64_C (0x9e3779b97f4a7c15);

  x = (x ^ (x >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C (0x94d049bb133111eb);
  return (uint32_t)(((x ^ (x >> 31)) >> 32) * n >> 32);
}

static void
describe (const char *text, unsigned number)
{
  const Thread *thread = &gpu->threads[number];

  fprintf (stderr, "%s thread (%u, %u, %u)", text, thread->index.x, thread->index.y, thread->index.z);
  if (thread->state == THREAD_AT_BARRIER || thread->state == THREAD_IN_WARP)
    fprintf (stderr, " waits in %s:%d", thread->place.file, thread->place.line);
  if (thread->state == THREAD_IN_WARP)
    fprintf (stderr, " for the lanes 0x%08x", thread->mask);
  if (thread->state == THREAD_ENDED)
    fprintf (stderr, " has ended");
}

/* Ends the process: a GPU would stand still, or go on with anything. */
static _Noreturn void
give_up (unsigned one, unsigned other, const char *what)
{
  const EmulatedIndex block = emulated_thread.blockIdx;

  fprintf (stderr, "emulated GPU: %s in block (%u, %u, %u): %s:", gpu->kernel->name, block.x, block.y, block.z, what);
  describe ("", one);
  describe (", and", other);
  fprintf (stderr, "\n");
  abort ();
}

static void
make_ready (unsigned number)
{
  gpu->threads[number].state = THREAD_READY;
  gpu->ready[(gpu->first_ready + gpu->n_ready++) % EMULATED_MAX_THREADS] = number;
}

/* Lets go on whoever waits at the barrier, if nobody is still to come. Those that have ended are not. */
static void
try_barrier (void)
{
  unsigned first = 0;

  if (gpu->n_at_barrier == 0 || gpu->n_at_barrier + gpu->n_ended < gpu->n_threads)
    return;
  while (gpu->threads[first].state != THREAD_AT_BARRIER)
    first++;
  for (unsigned i = first; i < gpu->n_threads; i++) {
    const Thread *thread = &gpu->threads[i];

    if (thread->state == THREAD_AT_BARRIER &&
        (thread->place.line != gpu->threads[first].place.line || thread->place.file != gpu->threads[first].place.file))
      give_up (first, i, "barriers of one block are at different places");
  }
  gpu->n_at_barrier = 0;
  for (unsigned i = first; i < gpu->n_threads; i++)
    if (gpu->threads[i].state == THREAD_AT_BARRIER)
      make_ready (i);
}

/* The number of the warp's first thread, and what of its lanes there are. */
static unsigned
warp_of (unsigned number, unsigned *n_lanes)
{
  const unsigned first = number / EMULATED_WARP * EMULATED_WARP;

  *n_lanes = gpu->n_threads - first < EMULATED_WARP ? gpu->n_threads - first : EMULATED_WARP;
  return first;
}

/* Lets go on the lanes that @number waits for, if all of them have come. Those that have ended are not waited for, and
 * have no value. */
static void
try_warp (unsigned number)
{
  const Thread *self = &gpu->threads[number];
  unsigned n_lanes;
  const unsigned first = warp_of (number, &n_lanes);
  Thread *lanes = &gpu->threads[first];

  for (unsigned i = 0; i < n_lanes; i++) {
    if (!(self->mask >> i & 1) || lanes[i].state == THREAD_ENDED)
      continue;
    if (lanes[i].state == THREAD_IN_WARP && (lanes[i].mask != self->mask || lanes[i].place.line != self->place.line ||
                                             lanes[i].place.file != self->place.file))
      give_up (number, first + i, "lanes of one warp do not come to the same");
    if (lanes[i].state != THREAD_IN_WARP)
      return;
  }
  const uint32_t mask = self->mask;
  for (unsigned i = 0; i < n_lanes; i++) {
    const unsigned source = lanes[i].source;

    if (!(mask >> i & 1) || lanes[i].state != THREAD_IN_WARP)
      continue;
    lanes[i].result = EMULATED_POISON * 0x01010101u;
    if (source < n_lanes && (mask >> source & 1) && lanes[source].state != THREAD_ENDED)
      lanes[i].result = lanes[source].value;
  }
  for (unsigned i = 0; i < n_lanes; i++)
    if ((mask >> i & 1) && lanes[i].state == THREAD_IN_WARP) {
      gpu->n_in_warp--;
      make_ready (first + i);
    }
}

static void
end_thread (unsigned number)
{
  unsigned n_lanes;
  const unsigned first = warp_of (number, &n_lanes);

  gpu->threads[number].state = THREAD_ENDED;
  gpu->n_ended++;
  try_barrier ();
  for (unsigned i = first; gpu->n_in_warp > 0 && i < first + n_lanes; i++)
    if (gpu->threads[i].state == THREAD_IN_WARP && (gpu->threads[i].mask >> (number - first) & 1))
      try_warp (i);
}

/* Makes one of those that are ready the current one. Returns false if the block has ended. */
static bool
choose (void)
{
  unsigned *first = &gpu->ready[gpu->first_ready], number;

  if (gpu->n_ready == 0) {
    unsigned waiting = 0, other = 0;

    if (gpu->n_ended == gpu->n_threads)
      return false;
    while (gpu->threads[waiting].state == THREAD_ENDED)
      waiting++;
    while (other < gpu->n_threads && (other == waiting || gpu->threads[other].state == gpu->threads[waiting].state))
      other++;
    give_up (waiting, other < gpu->n_threads ? other : waiting, "threads wait for each other without end");
  }
  if (gpu->has_chance) {
    unsigned *chosen = &gpu->ready[(gpu->first_ready + by_chance (gpu->n_ready)) % EMULATED_MAX_THREADS];

    number = *chosen;
    *chosen = *first;
  } else {
    number = *first;
  }
  gpu->first_ready = (gpu->first_ready + 1) % EMULATED_MAX_THREADS;
  gpu->n_ready--;
  gpu->current = number;
  emulated_thread.threadIdx = gpu->threads[number].index;
  return true;
}

static void run_threads (void *data);

/* From @from to the fiber of the current thread, or to one that is free. */
static void
go_on (Fiber *from)
{
  Thread *thread = &gpu->threads[gpu->current];

  if (!thread->fiber)
    thread->fiber = gpu->n_idle ? gpu->idle[--gpu->n_idle] : fiber_new (run_threads, NULL);
  if (thread->fiber != from)
    fiber_switch (from, thread->fiber);
}

/* What a fiber does: one thread after the other, for as long as none of them has begun elsewhere. */
static void
run_threads (void *data)
{
  for (;;) {
    Thread *thread = &gpu->threads[gpu->current];
    Fiber *self = thread->fiber;

    gpu->kernel->call (gpu->arg);
    end_thread (gpu->current);
    if (!choose ()) {
      gpu->idle[gpu->n_idle++] = self;
      fiber_switch (self, gpu->caller);
    } else if (!gpu->threads[gpu->current].fiber) {
      gpu->threads[gpu->current].fiber = self;
    } else {
      gpu->idle[gpu->n_idle++] = self;
      fiber_switch (self, gpu->threads[gpu->current].fiber);
    }
  }
}

/* The current thread waits: others go on until it may. */
static void
wait_in (State state, EmulatedPlace place)
{
  Thread *self = &gpu->threads[gpu->current];
  const unsigned number = gpu->current;

  self->place = place;
  self->state = state;
  if (state == THREAD_AT_BARRIER) {
    gpu->n_at_barrier++;
    try_barrier ();
  } else {
    gpu->n_in_warp++;
    try_warp (number);
  }
  choose ();
  go_on (self->fiber);
}

void
emulated_sync_threads (EmulatedPlace place)
{
  wait_in (THREAD_AT_BARRIER, place);
}

unsigned
emulated_lane (void)
{
  return gpu->current % EMULATED_WARP;
}

uint32_t
emulated_shuffle (uint32_t mask, uint32_t value, unsigned source, EmulatedPlace place)
{
  Thread *self = &gpu->threads[gpu->current];

  self->mask = mask;
  self->value = value;
  self->source = source;
  if (!(mask >> emulated_lane () & 1))
    give_up (gpu->current, gpu->current, "a lane comes to what it is not in the mask of");
  wait_in (THREAD_IN_WARP, place);
  return self->result;
}

void
emulated_sync_warp (uint32_t mask, EmulatedPlace place)
{
  emulated_shuffle (mask, 0, 0, place);
}

void
emulated_begin_copy (void *dst, const void *src, unsigned n)
{
  if (gpu->n_copies == gpu->copies_allocated) {
    gpu->copies_allocated = gpu->copies_allocated ? 2 * gpu->copies_allocated : 1024;
    gpu->copies = realloc (gpu->copies, gpu->copies_allocated * sizeof *gpu->copies);
    if (!gpu->copies)
      abort ();
  }
  gpu->copies[gpu->n_copies++] = (Copy){gpu->current, gpu->threads[gpu->current].n_sets, dst, src, n};
  memset (dst, EMULATED_POISON, n);
}

void
emulated_end_copies (void)
{
  gpu->threads[gpu->current].n_sets++;
}

void
emulated_wait_for_copies (unsigned sets)
{
  const unsigned n_sets = gpu->threads[gpu->current].n_sets;
  size_t n = 0;

  for (size_t i = 0; i < gpu->n_copies; i++) {
    const Copy *copy = &gpu->copies[i];

    if (copy->thread == gpu->current && copy->set + sets < n_sets)
      memcpy (copy->dst, copy->src, copy->n);
    else
      gpu->copies[n++] = *copy;
  }
  gpu->n_copies = n;
}

void
emulated_check_read (const void *p, unsigned n)
{
  const uint8_t *begin = p;

  for (size_t i = 0; i < gpu->n_copies; i++)
    if (begin < gpu->copies[i].dst + gpu->copies[i].n && gpu->copies[i].dst < begin + n)
      give_up (gpu->current, gpu->copies[i].thread, "one reads what the other one's copy is on its way to");
}

/* With AddressSanitizer word by word: it would have memset() look at what guards the variables. */
__attribute__ ((no_sanitize ("address"))) static void
fill_shared (uint8_t value)
{
#ifdef HAVE_ASAN
  uint8_t *begin = (uint8_t *)(((uintptr_t)shared_begin + 7) & ~(uintptr_t)7);

  for (volatile uint64_t *p = (uint64_t *)(void *)begin; (uint8_t *)(p + 1) <= shared_end; p++)
    *p = value * UINT64_C (0x0101010101010101);
#else
  memset (shared_begin, value, (size_t)(shared_end - shared_begin));
#endif
}

static void
poison_shared (void)
{
  fill_shared (EMULATED_POISON);
#ifdef HAVE_VALGRIND
  VALGRIND_MAKE_MEM_UNDEFINED (shared_begin, shared_end - shared_begin);
#endif
}

static void
run_block (EmulatedIndex index)
{
  emulated_thread.blockIdx = index;
  gpu->n_ended = 0;
  gpu->first_ready = 0;
  gpu->n_ready = 0;
  gpu->n_copies = 0;
  for (unsigned i = 0; i < gpu->n_threads; i++) {
    gpu->threads[i].fiber = NULL;
    gpu->threads[i].n_sets = 0;
    make_ready (i);
  }
  poison_shared ();
  choose ();
  go_on (gpu->caller);
}

static EmulatedIndex
index_of (uint64_t i, EmulatedIndex extent)
{
  return (EmulatedIndex){(unsigned)(i % extent.x), (unsigned)(i / extent.x % extent.y),
                         (unsigned)(i / extent.x / extent.y)};
}

static uint64_t
common_divisor (uint64_t a, uint64_t b)
{
  return b ? common_divisor (b, a % b) : a;
}

static Gpu *
gpu_new (void)
{
  Gpu *self = calloc (1, sizeof *self);
  const char *seed = getenv ("CUDA_EMULATOR_SEED");

  if (!self)
    abort ();
  self->chance = seed ? strtoull (seed, NULL, 0) : 1;
  self->has_chance = self->chance != 0;
  return self;
}

void
emulated_run_grid (const EmulatedKernel *kernel, const void *arg, EmulatedIndex grid, EmulatedIndex block)
{
  const uint64_t n = (uint64_t)grid.x * grid.y * grid.z;
  uint64_t at = 0, step = 1;

  if (!gpu)
    gpu = gpu_new ();
  gpu->kernel = kernel;
  gpu->arg = arg;
  gpu->n_threads = block.x * block.y * block.z;
  gpu->caller = fiber_begin ();
  emulated_thread.gridDim = grid;
  emulated_thread.blockDim = block;
  for (unsigned i = 0; i < gpu->n_threads; i++)
    gpu->threads[i].index = index_of (i, block);
  if (gpu->has_chance) {
    /* A walk in steps that have no divisor in common with the number of blocks meets each once. */
    at = by_chance (n < UINT32_MAX ? (uint32_t)n : UINT32_MAX);
    step = 1 + by_chance (n < UINT32_MAX ? (uint32_t)n : UINT32_MAX);
    while (common_divisor (step, n) > 1)
      step++;
  }
  for (uint64_t i = 0; i < n; i++) {
    run_block (index_of (at, grid));
    at = (at + step) % n;
  }
  /* What the compiler has of its own there is as it was. */
  fill_shared (0);
  fiber_end (gpu->caller);
}
