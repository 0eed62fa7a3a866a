/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The CPU device's queues and who runs them.
 *
 * With threads, each queue has a worker. A queue whose stream was destroyed runs to its end and serves a later stream
 * then, with its worker, so nobody ever waits for a thread to end but the device's own end.
 *
 * The lazy executor has no threads. A command runs when somebody waits for a mark at or after it, on the waiting
 * thread; of other queues only what the commands on the way wait for. Everything else stays pending for as long as it
 * can, so that whoever takes "submitted" for "complete" sees wrong bytes.
 */
#include "cpu-priv.h"

#include <signal.h>
#include <string.h>

GpuCpuHost gpu_cpu_host = {.lock = PTHREAD_MUTEX_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER};
static pthread_once_t host_once = PTHREAD_ONCE_INIT;

/* The parent's devices are of no use in a child (see device.c), and a thread that is not there may hold the lock. */
static void
forget_after_fork (void)
{
  pthread_mutex_init (&gpu_cpu_host.lock, NULL);
  pthread_cond_init (&gpu_cpu_host.progress, NULL);
  gpu_cpu_host.n_waiters = 0;
  gpu_cpu_host.devices = NULL;
}

static void
watch_forks (void)
{
  pthread_atfork (NULL, NULL, forget_after_fork);
}

void
gpu_cpu_queues_init (GpuCpuDevice *device)
{
  pthread_once (&host_once, watch_forks);
  device->queues = g_ptr_array_new ();
  device->idle_queues = g_ptr_array_new ();
  pthread_mutex_lock (&gpu_cpu_host.lock);
  if (!gpu_cpu_host.devices)
    gpu_cpu_host.devices = g_ptr_array_new ();
  g_ptr_array_add (gpu_cpu_host.devices, device);
  pthread_mutex_unlock (&gpu_cpu_host.lock);
}

GpuCpuCommand *
gpu_cpu_command_new (GpuCpuCommandType type, size_t args_size)
{
  GpuCpuCommand *command = g_malloc (sizeof *command + args_size);

  memset (command, 0, sizeof *command);
  command->type = type;
  return command;
}

void
gpu_cpu_copy_rows (const GpuCopy *copy)
{
  if (copy->dst_stride == copy->row_bytes && copy->src_stride == copy->row_bytes) {
    memmove (copy->dst, copy->src, copy->row_bytes * copy->rows);
    return;
  }
  for (size_t y = 0; y < copy->rows; y++)
    memmove ((uint8_t *)copy->dst + y * copy->dst_stride, (const uint8_t *)copy->src + y * copy->src_stride,
             copy->row_bytes);
}

void
gpu_cpu_fill_rows (const GpuCopy *copy, uint8_t value)
{
  for (size_t y = 0; y < copy->rows; y++)
    memset ((uint8_t *)copy->dst + y * copy->dst_stride, value, copy->row_bytes);
}

/* The part of a command that touches memory or calls others. */
static void
execute (const GpuCpuCommand *command)
{
  switch (command->type) {
  case GPU_CPU_LAUNCH:
    command->launch.kernel->run (command->args, command->launch.extent);
    break;
  case GPU_CPU_LAUNCH_TABLE:
    for (uint32_t i = 0; i < command->launch.n; i++)
      command->launch.kernel->run (command->launch.table + i * command->launch.kernel->args_size,
                                   command->launch.extent);
    break;
  case GPU_CPU_COPY:
    gpu_cpu_copy_rows (&command->copy.rows);
    break;
  case GPU_CPU_FILL:
  case GPU_CPU_FREE:
    gpu_cpu_fill_rows (&command->copy.rows, command->copy.value);
    break;
  case GPU_CPU_HOST_CALL:
    command->call.func (command->call.data);
    break;
  case GPU_CPU_RECORD:
  case GPU_CPU_WAIT:
  case GPU_CPU_GATE:
    break;
  }
}

static bool
touches_memory (const GpuCpuCommand *command)
{
  return command->type <= GPU_CPU_HOST_CALL;
}

bool
gpu_cpu_mark_is_complete (const GpuCpuMark *mark)
{
  return !mark->queue || mark->queue->completed >= mark->number;
}

/* Whether a command must wait for something that is not in its own queue. */
static bool
is_blocked (const GpuCpuCommand *command)
{
  switch (command->type) {
  case GPU_CPU_WAIT:
    return !gpu_cpu_mark_is_complete (&command->wait);
  case GPU_CPU_GATE:
    return !command->gate->is_open;
  default:
    return false;
  }
}

static bool
is_runnable (const GpuCpuQueue *queue)
{
  return queue->head && !queue->is_running && !is_blocked (queue->head);
}

static void
wait_for_progress (void)
{
  gpu_cpu_host.n_waiters++;
  pthread_cond_wait (&gpu_cpu_host.progress, &gpu_cpu_host.lock);
  gpu_cpu_host.n_waiters--;
}

/* Runs the first command of a queue that is_runnable(). */
static void
run_one (GpuCpuQueue *queue)
{
  GpuCpuDevice *device = queue->device;
  GpuCpuCommand *command = queue->head;

  if (touches_memory (command)) {
    if (command->type == GPU_CPU_FREE && command->copy.block) {
      /* From here on no allocation can take the block over. Frees run in the order of their submission. */
      g_assert (g_queue_peek_tail (&queue->frees) == command);
      g_queue_pop_tail (&queue->frees);
    }
    queue->is_running = true;
    pthread_mutex_unlock (&gpu_cpu_host.lock);
    execute (command);
    pthread_mutex_lock (&gpu_cpu_host.lock);
    queue->is_running = false;
    if (command->type == GPU_CPU_FREE && command->copy.block)
      gpu_cpu_block_release (device, command->copy.block);
  }

  queue->head = command->next;
  if (!queue->head) {
    queue->tail = NULL;
    if (queue->is_detached)
      g_ptr_array_add (device->idle_queues, queue);
  }
  queue->completed++;
  g_free (command);
  if (gpu_cpu_host.n_waiters > 0)
    pthread_cond_broadcast (&gpu_cpu_host.progress);
}

static void *
worker (void *data)
{
  GpuCpuQueue *queue = data;
  GpuCpuDevice *device = queue->device;

  pthread_mutex_lock (&gpu_cpu_host.lock);
  while (queue->head || !device->quit) {
    if (!queue->head)
      pthread_cond_wait (&queue->wake, &gpu_cpu_host.lock);
    else if (is_blocked (queue->head))
      wait_for_progress ();
    else
      run_one (queue);
  }
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return NULL;
}

/* Runs queues until @mark is complete. What is still to be reached is kept on a stack: chains of waits between queues
 * may be as long as the program. Marks are made at a record and waited for later, so they form no cycle. Another
 * device may be closed whenever the lock is let go of: then all but the first goal are found anew. */
static void
run_lazily (GpuCpuMark mark)
{
  g_autoptr (GArray) goals = g_array_new (false, false, sizeof (GpuCpuMark));
  uint64_t n_closed = gpu_cpu_host.n_closed;

  g_array_append_val (goals, mark);
  while (goals->len > 0) {
    if (n_closed != gpu_cpu_host.n_closed) {
      n_closed = gpu_cpu_host.n_closed;
      g_array_set_size (goals, 1);
    }
    const GpuCpuMark goal = g_array_index (goals, GpuCpuMark, goals->len - 1);
    if (gpu_cpu_mark_is_complete (&goal)) {
      g_array_set_size (goals, goals->len - 1);
      continue;
    }
    /* Not complete, so its queue has a command. */
    GpuCpuCommand *command = goal.queue->head;
    if (goal.queue->is_running)
      wait_for_progress ();
    else if (!is_blocked (command))
      run_one (goal.queue);
    else if (command->type == GPU_CPU_WAIT)
      g_array_append_val (goals, command->wait);
    else
      wait_for_progress ();
  }
}

void
gpu_cpu_mark_wait (GpuCpuDevice *device, GpuCpuMark mark)
{
  if (device->executor == GPU_CPU_LAZY) {
    run_lazily (mark);
    return;
  }
  while (!gpu_cpu_mark_is_complete (&mark))
    wait_for_progress ();
}

GpuCpuMark
gpu_cpu_queue_submit (GpuCpuQueue *queue, GpuCpuCommand *command)
{
  if (queue->tail)
    queue->tail->next = command;
  else
    queue->head = command;
  queue->tail = command;
  queue->submitted++;
  if (queue->device->executor == GPU_CPU_THREADS)
    pthread_cond_signal (&queue->wake);
  return (GpuCpuMark){.queue = queue, .number = queue->submitted};
}

/* The library's threads take none of the application's signals. */
static int
start_worker (GpuCpuQueue *queue)
{
  sigset_t all, old;

  sigfillset (&all);
  pthread_sigmask (SIG_BLOCK, &all, &old);
  int status = pthread_create (&queue->thread, NULL, worker, queue);
  pthread_sigmask (SIG_SETMASK, &old, NULL);
  if (status != 0)
    return status;

  char name[16];
  g_snprintf (name, sizeof name, "gpu-%s-%u", queue->device->base.name, queue->device->queues->len);
  pthread_setname_np (queue->thread, name);
  return 0;
}

GpuCpuQueue *
gpu_cpu_queue_new (GpuCpuDevice *device, GError **error)
{
  if (device->idle_queues->len > 0) {
    GpuCpuQueue *queue = g_ptr_array_steal_index (device->idle_queues, device->idle_queues->len - 1);
    queue->is_detached = false;
    return queue;
  }

  GpuCpuQueue *queue = g_new0 (GpuCpuQueue, 1);
  queue->device = device;
  g_queue_init (&queue->frees);
  pthread_cond_init (&queue->wake, NULL);
  if (device->executor == GPU_CPU_THREADS) {
    int status = start_worker (queue);
    if (status != 0) {
      /* A refusal of resources, which leaves no work in doubt. */
      g_set_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY,
                   "device %s cannot start a thread for another stream beside its %u (%s); use fewer streams",
                   device->base.name, device->queues->len, g_strerror (status));
      pthread_cond_destroy (&queue->wake);
      g_free (queue);
      return NULL;
    }
  }
  g_ptr_array_add (device->queues, queue);
  return queue;
}

void
gpu_cpu_queue_detach (GpuCpuQueue *queue)
{
  queue->is_detached = true;
  if (!queue->head)
    g_ptr_array_add (queue->device->idle_queues, queue);
}

/* What @device's streams still wait for on @closed is complete. */
static void
forget_waits (GpuCpuDevice *device, const GpuCpuDevice *closed)
{
  for (unsigned i = 0; i < device->queues->len; i++) {
    GpuCpuQueue *queue = g_ptr_array_index (device->queues, i);
    for (GpuCpuCommand *command = queue->head; command; command = command->next)
      if (command->type == GPU_CPU_WAIT && command->wait.queue && command->wait.queue->device == closed)
        command->wait = (GpuCpuMark){0};
  }
}

void
gpu_cpu_queues_free (GpuCpuDevice *device)
{
  pthread_mutex_lock (&gpu_cpu_host.lock);
  device->quit = true;
  for (unsigned i = 0; i < device->queues->len; i++) {
    GpuCpuQueue *queue = g_ptr_array_index (device->queues, i);
    if (device->executor == GPU_CPU_THREADS)
      pthread_cond_signal (&queue->wake);
    else
      run_lazily ((GpuCpuMark){.queue = queue, .number = queue->submitted});
  }
  pthread_mutex_unlock (&gpu_cpu_host.lock);

  for (unsigned i = 0; i < device->queues->len; i++) {
    GpuCpuQueue *queue = g_ptr_array_index (device->queues, i);
    if (device->executor == GPU_CPU_THREADS)
      pthread_join (queue->thread, NULL);
  }
  pthread_mutex_lock (&gpu_cpu_host.lock);
  g_ptr_array_remove_fast (gpu_cpu_host.devices, device);
  gpu_cpu_host.n_closed++;
  for (unsigned i = 0; i < gpu_cpu_host.devices->len; i++)
    forget_waits (g_ptr_array_index (gpu_cpu_host.devices, i), device);
  pthread_mutex_unlock (&gpu_cpu_host.lock);

  /* Only now: a worker may have waited for another one's queue. */
  for (unsigned i = 0; i < device->queues->len; i++) {
    GpuCpuQueue *queue = g_ptr_array_index (device->queues, i);
    pthread_cond_destroy (&queue->wake);
    g_free (queue);
  }
  g_ptr_array_unref (device->queues);
  g_ptr_array_unref (device->idle_queues);
}

/* A counter that is hashed: the same picks for the same seed everywhere, and neighbouring seeds differ at once. */
static uint32_t
next_random (uint32_t *state)
{
  uint32_t x = *state += UINT32_C (0x9E3779B9);

  x = (x ^ (x >> 16)) * UINT32_C (0x85EBCA6B);
  x = (x ^ (x >> 13)) * UINT32_C (0xC2B2AE35);
  return x ^ (x >> 16);
}

unsigned
gpu_cpu_queues_run (GpuCpuDevice *device, unsigned steps, uint32_t seed)
{
  uint32_t state = seed;
  unsigned n_run = 0;

  pthread_mutex_lock (&gpu_cpu_host.lock);
  g_autoptr (GPtrArray) runnable = g_ptr_array_new ();
  while (n_run < steps) {
    g_ptr_array_set_size (runnable, 0);
    for (unsigned i = 0; i < device->queues->len; i++)
      if (is_runnable (g_ptr_array_index (device->queues, i)))
        g_ptr_array_add (runnable, g_ptr_array_index (device->queues, i));
    if (runnable->len == 0)
      break;
    run_one (g_ptr_array_index (runnable, next_random (&state) % runnable->len));
    n_run++;
  }
  pthread_mutex_unlock (&gpu_cpu_host.lock);
  return n_run;
}
