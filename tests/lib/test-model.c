/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Random programs against the reference model (model.h): after every step the cache's answer must be one that the rules
 * allow, and its invariants hold. Programs run on one device, and on two and three between which images are copied. A
 * failing program is shrunk and printed.
 *
 *   GPUCACHE_MODEL_STEPS=n   how many steps in all
 *   GPUCACHE_MODEL_SEED=n    only the program of that seed; -p /model/two-devices is one kind of them
 */
#include "common.h"
#include "model.h"
#include "rig.h"
#include "watch.h"

#include <gpucache/stream-priv.h>

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_DEVICES 3
#define N_STREAMS 4
#define N_THREADS 3 /* the first is the one that runs the program */
#define N_IMAGES 10
#define PROGRAM_STEPS 200

/* Between GPUs a gate is opened after so many steps. */
#define HELD_STEPS 16

/* No step waits for so long. */
#define PATIENCE_MS 30000

typedef enum {
  OP_ACQUIRE,
  OP_RELEASE,
  OP_READ,
  OP_WRITE,
  OP_WAIT,
  OP_CLOSE,
  OP_OPEN,
  OP_SYNC,
  OP_RUN,
  OP_LIMIT,
  OP_RATIO,
  OP_CLEAR,
  OP_THREAD_END,
  OP_STREAM_END,
  OP_CROSS,
} OpCode;

/* How often each comes, in percent or so. */
static const struct {
  const char *name;
  unsigned weight;
} op_info[] = {
    [OP_ACQUIRE] = {"acquire", 32},
    [OP_RELEASE] = {"release", 28},
    [OP_READ] = {"read", 8},
    [OP_WRITE] = {"write", 8},
    [OP_WAIT] = {"wait", 5},
    [OP_CLOSE] = {"close", 3},
    [OP_OPEN] = {"open", 3},
    [OP_SYNC] = {"sync", 5},
    [OP_RUN] = {"run", 3},
    [OP_LIMIT] = {"limit", 2},
    [OP_RATIO] = {"ratio", 1},
    [OP_CLEAR] = {"clear", 1},
    [OP_THREAD_END] = {"end-thread", 1},
    [OP_STREAM_END] = {"end-stream", 1},
    [OP_CROSS] = {"cross", 16}, /* with several devices */
};

/* Operands are taken modulo what there is, so that a program stays one if steps are left out. */
typedef struct {
  uint8_t code;
  uint8_t a, b, c;
  uint8_t device;
} Op;

typedef struct {
  GpuImage *image;
  ModelEntry *entry;
} Held;

/* A device, and what the program has there. */
typedef struct {
  GpuDevice *device;
  GpuStream *stream[N_STREAMS];
  unsigned stream_id[N_STREAMS];
  int stream_scope[N_STREAMS]; /* -1: none of its own */
  GpuGate *gate[N_STREAMS];    /* closed if not NULL */
  unsigned gate_id[N_STREAMS];
  unsigned closed_at[N_STREAMS]; /* step */
  unsigned thread_scope[N_THREADS];
  Held held[N_IMAGES];
  unsigned n_held;
  Model *model;
} Place;

typedef struct {
  unsigned step;
  unsigned n_gates;
  GPtrArray *opened;
  RigThread *thread[N_THREADS];
  ModelTime time;
  Place place[MAX_DEVICES];
  const char *why; /* an answer was not allowed */
  bool trace;
} World;

/* Real threads are slower, and see less: what the lazy executor does is the worst that may happen. Sanitizers slow
 * everything down, and look for something else. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define LAZY_STEPS 50000
#define EAGER_STEPS 50000
#else
#define LAZY_STEPS 1000000
#define EAGER_STEPS 100000
#endif

/* What the CPU devices' pools hold besides is any number that it may be, and more, in each second program. */
static const GpuDeviceFuncs *real;
static GpuDeviceFuncs holding;
static uint32_t pool;

static uint64_t
hold_some (GpuDevice *device, uint64_t keep)
{
  return real->trim (device, keep) + test_random (&pool) % 3 * (test_random (&pool) % 3072);
}

static unsigned n_devices = 1;
static GpuImageSpec shapes[7];

static void
make_shapes (void)
{
  shapes[0] = test_spec (GPU_FORMAT_RGBA, 32, 16);
  shapes[1] = test_spec (GPU_FORMAT_RGBA, 32, 16);
  shapes[2] = test_spec (GPU_FORMAT_RGBA, 16, 16);
  shapes[3] = test_spec (GPU_FORMAT_RGBA, 32, 32);
  shapes[4] = test_spec (GPU_FORMAT_RGBA, 64, 80);
  shapes[5] = test_spec (GPU_FORMAT_BGRA, 32, 16);
  shapes[6] = test_spec (GPU_FORMAT_NV12, 64, 32);
}

/* What one call needs, so that it can be made on another thread. */
typedef struct {
  Place *place;
  OpCode code;
  const GpuImageSpec *spec;
  GpuMemoryKind kind;
  GpuStream *stream;
  GpuAcquireFlags flags;
  GpuImage *image;
  bool ok;
} Call;

static void
make_call (void *data)
{
  Call *call = data;

  if (call->code == OP_ACQUIRE)
    call->image = gpu_image_acquire (call->place->device, call->spec, call->kind, call->stream, call->flags, NULL);
  else if (call->code == OP_RELEASE)
    gpu_image_unref (call->image);
  else
    call->ok = gpu_cache_clear (call->place->device, GPU_CACHE_LOCAL, NULL);
}

static void
call_on (World *world, Place *place, unsigned thread, Call *call)
{
  call->place = place;
  if (thread == 0)
    make_call (call);
  else
    rig_thread_do (world->thread[thread], make_call, call);
}

static bool
query (Place *place)
{
  for (unsigned account = 0; account < GPU_N_ACCOUNTS; account++) {
    GpuCacheStats stats;
    gpu_cache_get_stats (place->device, (GpuAccount)account, GPU_CACHE_ALL, &stats);
    if (!model_queried (place->model, (GpuAccount)account, &stats))
      return false;
  }
  gpu_cache_check (place->device);
  return true;
}

static bool
do_acquire (World *world, Place *place, const Op *op)
{
  if (place->n_held == N_IMAGES)
    return true;
  unsigned thread = op->a % N_THREADS;
  unsigned s = op->b % (N_STREAMS + 1); /* the last: none */
  Call call = {.code = OP_ACQUIRE, .spec = &shapes[op->c % G_N_ELEMENTS (shapes)]};
  /* To free pinned memory a GPU's driver waits for all streams, those that gates hold included. */
  bool pinned = (op->a / N_THREADS) % 8 == 0 && !test_is_cuda ();
  call.kind = pinned ? GPU_MEMORY_HOST : GPU_MEMORY_STREAM_ORDERED;
  call.flags = call.kind == GPU_MEMORY_HOST && op->c >= 128 ? GPU_ACQUIRE_HOST : GPU_ACQUIRE_DEFAULT;
  call.stream = s < N_STREAMS ? place->stream[s] : NULL;
  ModelRequest request = {
      .spec = call.spec,
      .kind = call.kind,
      .host = call.flags & GPU_ACQUIRE_HOST,
      .stream = s < N_STREAMS ? (int)place->stream_id[s] : -1,
      .scope =
          s < N_STREAMS && place->stream_scope[s] >= 0 ? (unsigned)place->stream_scope[s] : place->thread_scope[thread],
  };
  call_on (world, place, thread, &call);
  g_assert_nonnull (call.image);

  Held *held = &place->held[place->n_held++];
  GpuCacheStats stats;
  gpu_cache_get_stats (place->device, call.kind == GPU_MEMORY_HOST ? GPU_ACCOUNT_HOST : GPU_ACCOUNT_DEVICE,
                       GPU_CACHE_ALL, &stats);
  held->image = call.image;
  if (world->trace)
    g_printerr ("      %p of %zu bytes\n", gpu_image_data (call.image), gpu_image_capacity (call.image));
  return model_acquired (place->model, &request, gpu_image_data (call.image), gpu_image_capacity (call.image), &stats,
                         &held->entry);
}

static void
do_release (World *world, Place *place, const Op *op)
{
  if (place->n_held == 0)
    return;
  unsigned i = op->b % place->n_held;
  Call call = {.code = OP_RELEASE, .image = place->held[i].image};
  if (world->trace)
    g_printerr ("      %p\n", gpu_image_data (call.image));
  model_release (place->model, place->held[i].entry);
  place->held[i] = place->held[--place->n_held];
  call_on (world, place, op->a % N_THREADS, &call);
}

static void
do_access (World *world, Place *place, const Op *op, bool write)
{
  if (place->n_held == 0)
    return;
  Held *held = &place->held[op->b % place->n_held];
  GpuStream *stream = place->stream[op->a % N_STREAMS];
  GpuAccessFlags flags = write ? GPU_ACCESS_WRITE : GPU_ACCESS_READ;

  if (held->entry->n_accesses >= MODEL_MAX_ACCESSES - 1 && !write)
    return;
  if (world->trace)
    g_printerr ("      %p\n", gpu_image_data (held->image));
  model_access (place->model, held->entry, place->stream_id[op->a % N_STREAMS], write);
  if (write && op->c % 2) {
    rig_fill (stream, held->image, op->c);
  } else {
    rig_begin (held->image, stream, flags);
    rig_end (held->image, stream, flags);
  }
}

/* To an image of the same shape in another device's memory, if there is one. */
static void
do_cross (World *world, Place *place, const Op *op)
{
  Place *to = &world->place[(op->device + 1u + op->c % (n_devices - 1)) % n_devices];

  if (place->n_held == 0)
    return;
  Held *src = &place->held[op->b % place->n_held], *dst = NULL;
  const GpuImageSpec *spec = gpu_image_spec (src->image);
  for (unsigned i = 0; i < to->n_held && !dst; i++) {
    const GpuImageSpec *other = gpu_image_spec (to->held[i].image);
    /* To pinned memory the way is over more of that, which the cache takes for itself. */
    if (to->held[i].entry->kind != GPU_MEMORY_HOST && other->format == spec->format && other->width == spec->width &&
        other->height == spec->height)
      dst = &to->held[i];
  }
  if (!dst || src->entry->n_accesses >= MODEL_MAX_ACCESSES - 1)
    return;
  unsigned s = op->a % N_STREAMS;
  if (world->trace)
    g_printerr ("      %p to %p\n", gpu_image_data (src->image), gpu_image_data (dst->image));
  model_cross (place->model, src->entry, to->model, dst->entry, to->stream_id[s]);
  rig_copy (to->stream[s], src->image, dst->image);
}

static void
do_close (World *world, Place *place, unsigned s)
{
  GError *error = NULL;

  if (place->gate[s] || world->n_gates == MODEL_MAX_GATES)
    return;
  place->gate_id[s] = world->n_gates++;
  place->closed_at[s] = world->step;
  place->gate[s] = gpu_gate_new (place->device, &error);
  g_assert_no_error (error);
  g_assert_true (gpu_gate_hold (place->gate[s], place->stream[s], &error));
  model_hold (place->model, place->stream_id[s], place->gate_id[s]);
}

static void
do_open (World *world, Place *place, unsigned s)
{
  if (!place->gate[s])
    return;
  gpu_gate_open (place->gate[s]);
  model_open (place->model, place->gate_id[s]);
  g_ptr_array_add (world->opened, place->gate[s]); /* what holds it elsewhere may still hold it up */
  place->gate[s] = NULL;
}

static bool
is_between_gpus (void)
{
  return test_is_cuda () && n_devices > 1;
}

static void
open_gates (World *world, unsigned closed_by)
{
  for (unsigned i = 0; i < n_devices; i++)
    for (unsigned s = 0; s < N_STREAMS; s++)
      if (world->place[i].closed_at[s] <= closed_by)
        do_open (world, &world->place[i], s);
}

/* Whether a gate may hold the stream. Copies between GPUs and waits for each other's events take room in queues of
 * both, which the driver shares out as it likes: a closed gate may hold any stream then, whether that waits for it or
 * not. */
static bool
may_be_held (const World *world, const Place *place, unsigned s)
{
  return model_is_held (place->model, place->stream_id[s]) || (is_between_gpus () && world->time.closed);
}

static void
do_sync (World *world, Place *place, unsigned s)
{
  if (may_be_held (world, place, s))
    return;
  rig_sync (place->stream[s]);
  model_synchronized (place->model, place->stream_id[s]);
}

static void
do_run (World *world, Place *place, const Op *op)
{
  if (world->time.eager)
    return;
  const GpuDeviceFuncs *funcs = place->device->funcs;

  /* Which takes a device of its own kind only. */
  place->device->funcs = real;
  gpu_cpu_device_run (place->device, op->a % 2 ? G_MAXUINT : op->b % 16, op->c);
  place->device->funcs = funcs;
  model_ran (place->model);
}

static void
do_limit (Place *place, const Op *op)
{
  GpuAccount account = op->a % 4 == 0 ? GPU_ACCOUNT_HOST : GPU_ACCOUNT_DEVICE;
  uint64_t bytes = op->b % 8 == 0 ? 0 : (uint64_t)(op->b % 32) * 2048;

  place->model->limit[account] = bytes;
  g_assert_true (gpu_cache_set_limit (place->device, account, (int64_t)bytes, NULL));
}

static void
do_clear (World *world, Place *place, const Op *op)
{
  if (world->time.closed)
    return; /* it would wait for what a gate holds */
  if (op->b % 3 == 0) {
    g_assert_true (gpu_cache_clear (place->device, GPU_CACHE_ALL, NULL));
    model_cleared (place->model, -1);
  } else {
    unsigned thread = op->a % N_THREADS;
    Call call = {.code = OP_CLEAR};
    call_on (world, place, thread, &call);
    g_assert_true (call.ok);
    model_cleared (place->model, (int)place->thread_scope[thread]);
  }
}

static void
do_thread_end (World *world, Place *place, unsigned thread)
{
  if (thread == 0 || place->model->n_scopes == MODEL_MAX_SCOPES)
    return;
  rig_thread_end (world->thread[thread]);
  world->thread[thread] = rig_thread_new ();
  for (unsigned i = 0; i < n_devices; i++) {
    place = &world->place[i];
    model_end_scope (place->model, place->thread_scope[thread]);
    place->thread_scope[thread] = model_add_scope (place->model);
  }
}

static void
start_stream (Place *place, unsigned s, bool own_scope)
{
  GError *error = NULL;

  place->stream[s] = gpu_stream_new (place->device, own_scope, &error);
  g_assert_no_error (error);
  place->stream_id[s] = model_add_stream (place->model);
  place->stream_scope[s] = own_scope ? (int)model_add_scope (place->model) : -1;
}

static void
do_stream_end (World *world, Place *place, const Op *op)
{
  unsigned s = op->a % N_STREAMS;

  if (place->gate[s] || world->time.n_streams == MODEL_MAX_STREAMS || place->model->n_scopes >= MODEL_MAX_SCOPES - 1)
    return;
  /* A GPU's driver gives a new stream the queue of one that ended, with what is still held in it. */
  if (test_is_cuda () && may_be_held (world, place, s))
    return;
  gpu_stream_unref (place->stream[s]);
  if (place->stream_scope[s] >= 0)
    model_end_scope (place->model, (unsigned)place->stream_scope[s]);
  start_stream (place, s, op->b % 2);
}

static bool
step (World *world, const Op *op)
{
  Place *place = &world->place[op->device % n_devices];
  bool ok = true;

  switch ((OpCode)op->code) {
  case OP_ACQUIRE:
    ok = do_acquire (world, place, op);
    break;
  case OP_RELEASE:
    do_release (world, place, op);
    break;
  case OP_READ:
    do_access (world, place, op, false);
    break;
  case OP_WRITE:
    do_access (world, place, op, true);
    break;
  case OP_WAIT:
    rig_wait_stream (place->stream[op->a % N_STREAMS], place->stream[op->b % N_STREAMS]);
    model_wait_stream (place->model, place->stream_id[op->a % N_STREAMS], place->stream_id[op->b % N_STREAMS]);
    break;
  case OP_CLOSE:
    do_close (world, place, op->a % N_STREAMS);
    break;
  case OP_OPEN:
    do_open (world, place, op->a % N_STREAMS);
    break;
  case OP_SYNC:
    do_sync (world, place, op->a % N_STREAMS);
    break;
  case OP_RUN:
    do_run (world, place, op);
    break;
  case OP_LIMIT:
    do_limit (place, op);
    break;
  case OP_RATIO:
    place->model->ratio = 1 + op->a % 8;
    gpu_cache_set_fit_ratio (place->device, place->model->ratio);
    break;
  case OP_CLEAR:
    do_clear (world, place, op);
    break;
  case OP_THREAD_END:
    do_thread_end (world, place, op->a % N_THREADS);
    break;
  case OP_STREAM_END:
    do_stream_end (world, place, op);
    break;
  case OP_CROSS:
    do_cross (world, place, op);
    break;
  }
  if (!ok)
    world->why = place->model->why;
  for (unsigned i = 0; i < n_devices && ok; i++) {
    ok = query (&world->place[i]);
    if (!ok)
      world->why = world->place[i].model->why;
  }
  return ok;
}

static void
print_op (const Op *op, unsigned i)
{
  g_printerr ("  %3u {%s, %u, %u, %u} on %u\n", i, op_info[op->code].name, op->a, op->b, op->c, op->device % n_devices);
}

static void
make_program (uint32_t seed, Op *program)
{
  unsigned weights = 0;
  uint32_t state = seed * 2654435761u + 1;

  unsigned n_codes = n_devices > 1 ? G_N_ELEMENTS (op_info) : OP_CROSS;
  for (unsigned i = 0; i < n_codes; i++)
    weights += op_info[i].weight;
  for (unsigned i = 0; i < PROGRAM_STEPS; i++) {
    unsigned pick = test_random (&state) % weights;
    unsigned code = 0;
    while (pick >= op_info[code].weight)
      pick -= op_info[code++].weight;
    program[i].code = (uint8_t)code;
    program[i].a = (uint8_t)(test_random (&state) >> 8);
    program[i].b = (uint8_t)(test_random (&state) >> 8);
    program[i].c = (uint8_t)(test_random (&state) >> 8);
    program[i].device = n_devices > 1 ? (uint8_t)(test_random (&state) >> 8) : 0;
  }
}

/* The driver may wait when one GPU is first to read another's memory, and for copies of a size that are the first: not
 * while a program's gates hold streams. */
static void
open_way (GpuDevice *from, GpuDevice *to)
{
  GpuStream *stream = gpu_stream_new (to, false, NULL), *other = gpu_stream_new (from, false, NULL);

  for (unsigned i = 0; i < G_N_ELEMENTS (shapes); i++) {
    GpuImage *src = test_image_new (from, &shapes[i], other), *dst = test_image_new (to, &shapes[i], stream);

    rig_copy (stream, src, dst);
    rig_sync (stream);
    gpu_image_unref (src);
    gpu_image_unref (dst);
  }
  gpu_stream_unref (stream);
  gpu_stream_unref (other);
}

/* A GPU takes too long to open for each program to have one of its own: it gets one that is empty. */
static GpuDevice *
take_device (unsigned i)
{
  static GpuDevice *gpu[MAX_DEVICES];

  if (!test_is_cuda ())
    return test_device_new_full (i, 0);
  for (unsigned k = 0; k < n_devices; k++) {
    if (gpu[k])
      continue;
    gpu[k] = test_device_new_full (k, 0);
    rig_prepare_gates (gpu[k]);
    for (unsigned other = 0; other < k; other++) {
      open_way (gpu[k], gpu[other]);
      open_way (gpu[other], gpu[k]);
    }
  }
  g_assert_true (gpu_cache_clear (gpu[i], GPU_CACHE_ALL, NULL));
  gpu_cache_set_fit_ratio (gpu[i], 4);
  return gpu_device_ref (gpu[i]);
}

static void
open_place (World *world, unsigned number, uint32_t seed)
{
  Place *place = &world->place[number];
  uint64_t limits[GPU_N_ACCOUNTS];

  place->device = take_device (number);
  if (!real) {
    holding = *(real = place->device->funcs);
    holding.trim = hold_some;
  }
  if (!test_is_cuda ())
    place->device->funcs = seed % 2 ? &holding : real;
  for (unsigned i = 0; i < GPU_N_ACCOUNTS; i++) {
    limits[i] = (number + 1) * 24 * 1024;
    g_assert_true (gpu_cache_set_limit (place->device, (GpuAccount)i, (int64_t)limits[i], NULL));
  }
  place->model = model_new (&world->time, limits);
  place->model->may_hold = place->device->funcs == &holding;
  for (unsigned i = 0; i < GPU_N_ACCOUNTS; i++)
    gpu_cache_get_stats (place->device, (GpuAccount)i, GPU_CACHE_ALL, &place->model->stats[i]);
  for (unsigned i = 0; i < N_THREADS; i++)
    place->thread_scope[i] = model_add_scope (place->model);
  for (unsigned i = 0; i < N_STREAMS; i++)
    start_stream (place, i, i == N_STREAMS - 1);
}

static void
leave_place (World *world, Place *place)
{
  for (unsigned i = 0; i < place->n_held; i++)
    gpu_image_unref (place->held[i].image);
  for (unsigned i = 0; i < N_STREAMS; i++) {
    if (place->gate[i])
      g_ptr_array_add (world->opened, place->gate[i]);
    gpu_stream_unref (place->stream[i]);
  }
}

/* Returns: whether each answer was allowed; prints the first that was not. @seed: for the watch. */
static bool
run_program (uint32_t seed, const Op *program, unsigned n, bool trace)
{
  World world = {.trace = trace, .opened = g_ptr_array_new_with_free_func ((GDestroyNotify)gpu_gate_free)};
  bool ok = true;

  world.time.eager = !test_is_lazy ();
  pool = seed;
  for (unsigned i = 1; i < N_THREADS; i++)
    world.thread[i] = rig_thread_new ();
  for (unsigned i = 0; i < n_devices; i++)
    open_place (&world, i, seed);

  for (unsigned i = 0; i < n && ok; i++) {
    test_watch_step (op_info[program[i].code].name, seed, i);
    if (trace)
      print_op (&program[i], i);
    world.step = i;
    if (is_between_gpus () && i >= HELD_STEPS)
      open_gates (&world, i - HELD_STEPS);
    ok = step (&world, &program[i]);
    if (!ok)
      g_printerr ("after step %u (%s): %s\n", i, op_info[program[i].code].name, world.why);
  }
  for (unsigned i = 0; i < n_devices && !ok && trace; i++) {
    g_autofree char *table = gpu_cache_dump (world.place[i].device);
    g_printerr ("%s\n", table);
  }

  test_watch_step ("end", seed, n);
  if (test_is_cuda ())
    open_gates (&world, n); /* before the streams end, for the same reason as in a program */
  for (unsigned i = 0; i < n_devices; i++)
    leave_place (&world, &world.place[i]);
  for (unsigned i = 0; i < world.opened->len; i++)
    gpu_gate_open (g_ptr_array_index (world.opened, i));
  g_ptr_array_unref (world.opened);
  for (unsigned i = 1; i < N_THREADS; i++)
    rig_thread_end (world.thread[i]);
  for (unsigned i = 0; i < n_devices; i++) {
    gpu_device_unref (world.place[i].device);
    model_free (world.place[i].model);
  }
  return ok;
}

/* In a child, so that an abort, a crash or a hang is an answer, too. A GPU's driver does not survive fork(). */
static bool
run_apart (const Op *program, unsigned n, bool quiet)
{
  int status = 0;

  pid_t child = fork ();
  g_assert_cmpint (child, >=, 0);
  if (child == 0) {
    alarm (20);
    if (!quiet)
      test_watch_start (10000);
    if (quiet && !freopen ("/dev/null", "w", stderr))
      _exit (2);
    _exit (run_program (0, program, n, !quiet) ? 0 : 1);
  }
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  return WIFEXITED (status) && WEXITSTATUS (status) == 0;
}

/* Leaves steps out, in halves and then smaller pieces, as long as it fails without them. */
static unsigned
shrink (Op *program, unsigned n)
{
  for (unsigned piece = n / 2; piece > 0; piece /= 2) {
    for (unsigned at = 0; at + piece <= n;) {
      Op shorter[PROGRAM_STEPS];
      memcpy (shorter, program, at * sizeof *program);
      memcpy (shorter + at, program + at + piece, (n - at - piece) * sizeof *program);
      if (run_apart (shorter, n - piece, true)) {
        at += piece;
      } else {
        n -= piece;
        memcpy (program, shorter, n * sizeof *program);
      }
    }
  }
  return n;
}

static void
report (uint32_t seed)
{
  Op program[PROGRAM_STEPS];

  make_program (seed, program);
  if (test_is_cuda ())
    g_error ("the program of seed %u failed; run it with GPUCACHE_MODEL_SEED=%u", seed, seed);
  unsigned n = shrink (program, PROGRAM_STEPS);
  g_printerr ("The program of seed %u for %u devices fails; shrunk to %u steps:\n", seed, n_devices, n);
  run_apart (program, n, false);
  g_error ("the program of seed %u fails after %u steps", seed, n);
}

/* Runs programs in one child, which leaves the seed that it was at where the parent sees it. */
static void
run_seeds (uint32_t first, uint32_t n)
{
  int fds[2];
  int status = 0;

  if (test_is_cuda ()) {
    Op program[PROGRAM_STEPS];
    test_watch_start (PATIENCE_MS);
    for (uint32_t seed = first; seed < first + n; seed++) {
      if (seed % 25 == 0)
        g_test_message ("program %u", seed);
      make_program (seed, program);
      if (!run_program (seed, program, PROGRAM_STEPS, false))
        report (seed);
    }
    return;
  }
  g_assert_cmpint (pipe (fds), ==, 0);
  pid_t child = fork ();
  g_assert_cmpint (child, >=, 0);
  if (child == 0) {
    Op program[PROGRAM_STEPS];
    bool ok = true;
    close (fds[0]);
    test_watch_start (PATIENCE_MS);
    for (uint32_t seed = first; seed < first + n && ok; seed++) {
      if (write (fds[1], &seed, sizeof seed) != sizeof seed)
        _exit (2);
      make_program (seed, program);
      ok = run_program (seed, program, PROGRAM_STEPS, false);
    }
    _exit (ok ? 0 : 1);
  }
  close (fds[1]);
  uint32_t seed = first;
  for (uint32_t at; read (fds[0], &at, sizeof at) == sizeof at;)
    seed = at;
  close (fds[0]);
  g_assert_cmpint (waitpid (child, &status, 0), ==, child);
  if (!WIFEXITED (status) || WEXITSTATUS (status) != 0)
    report (seed);
}

/* With several devices a query looks at each of them, and there is more that may happen in a step. */
static void
test_programs (gconstpointer data)
{
  const char *steps_text = g_getenv ("GPUCACHE_MODEL_STEPS");
  const char *seed_text = g_getenv ("GPUCACHE_MODEL_SEED");
  uint64_t steps = steps_text ? g_ascii_strtoull (steps_text, NULL, 10) : test_is_lazy () ? LAZY_STEPS : EAGER_STEPS;

  make_shapes ();
  n_devices = GPOINTER_TO_UINT (data);
  steps /= n_devices > 1 ? 4 : 1;
  if (seed_text) {
    uint32_t seed = (uint32_t)g_ascii_strtoull (seed_text, NULL, 10);
    run_seeds (seed, 1);
    return;
  }
  const uint32_t n_programs = (uint32_t)((steps + PROGRAM_STEPS - 1) / PROGRAM_STEPS);
  for (uint32_t seed = 1; seed <= n_programs; seed += 250)
    run_seeds (seed, MIN (250, n_programs - seed + 1));
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  g_test_add_data_func ("/model/programs", GUINT_TO_POINTER (1), test_programs);
  g_test_add_data_func ("/model/two-devices", GUINT_TO_POINTER (2), test_programs);
  g_test_add_data_func ("/model/three-devices", GUINT_TO_POINTER (3), test_programs);
  return g_test_run ();
}
