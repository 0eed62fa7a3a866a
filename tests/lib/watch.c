/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See watch.h. A thread counts the time; a signal has each of the others print its stack.
 */
#include "watch.h"

#include <glib.h>

#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEPTH 48
#define LOOKS 10   /* at the count of steps while patience lasts */
#define ANSWER_S 1 /* a thread that has not printed its stack by then blocks signals, as a driver's own threads do */

static atomic_uint_least64_t n_steps, last_major, last_minor;
static _Atomic (const char *) last_what;
static atomic_uint patience;
static int64_t start_time;
static pid_t watched; /* the process */
static sem_t answered;

void
test_watch_step (const char *what, uint64_t major, uint64_t minor)
{
  atomic_store_explicit (&last_what, what, memory_order_relaxed);
  atomic_store_explicit (&last_major, major, memory_order_relaxed);
  atomic_store_explicit (&last_minor, minor, memory_order_relaxed);
  atomic_fetch_add_explicit (&n_steps, 1, memory_order_relaxed);
}

/* On the thread whose stack it is. */
static void
print_stack (int number)
{
  void *frames[MAX_DEPTH];

  backtrace_symbols_fd (frames, backtrace (frames, MAX_DEPTH), STDERR_FILENO);
  sem_post (&answered);
}

static char *
read_of_thread (const char *thread, const char *file)
{
  g_autofree char *path = g_build_filename ("/proc/self/task", thread, file, NULL);
  char *text = NULL;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return g_strdup ("?");
  return g_strstrip (text);
}

static void
print_thread (const char *thread)
{
  g_autofree char *name = read_of_thread (thread, "comm"), *where = read_of_thread (thread, "wchan"),
                  *call = read_of_thread (thread, "syscall");
  struct timespec until;

  fprintf (stderr, "thread %s \"%s\", in the kernel: %s, system call: %s\n", thread, name, where, call);
  clock_gettime (CLOCK_REALTIME, &until);
  until.tv_sec += ANSWER_S;
  if (syscall (SYS_tgkill, getpid (), atoi (thread), SIGUSR2) != 0 || sem_timedwait (&answered, &until) != 0)
    fprintf (stderr, "  does not say where it stands\n");
}

static void
report (void)
{
  g_autoptr (GDir) threads = g_dir_open ("/proc/self/task", 0, NULL);
  const char *what = atomic_load (&last_what), *thread;

  fprintf (stderr, "\nnothing was begun for %u ms after %" G_GUINT64_FORMAT " steps in %" G_GINT64_FORMAT " s",
           atomic_load (&patience), (guint64)atomic_load (&n_steps),
           (gint64)(g_get_monotonic_time () - start_time) / G_USEC_PER_SEC);
  if (what)
    fprintf (stderr, ", the last of which: %s %" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT, what,
             (guint64)atomic_load (&last_major), (guint64)atomic_load (&last_minor));
  fprintf (stderr, "; the threads (addr2line -e PROGRAM -f ADDRESS names the places):\n");
  while (threads && (thread = g_dir_read_name (threads)))
    if (atoi (thread) != (int)syscall (SYS_gettid))
      print_thread (thread);
  fflush (stderr);
}

static void *
watch (void *data)
{
  uint64_t seen = 0;

  for (unsigned looks = 0; looks < LOOKS;) {
    g_usleep ((gulong)atomic_load (&patience) * 1000 / LOOKS);
    uint64_t now = atomic_load (&n_steps);
    looks = now == seen ? looks + 1 : 0;
    seen = now;
  }
  report ();
  abort ();
}

void
test_watch_start (unsigned patience_ms)
{
  struct sigaction action = {.sa_handler = print_stack, .sa_flags = SA_RESTART};
  void *frame;
  pthread_t thread;

  atomic_store (&patience, patience_ms);
  if (watched == getpid ())
    return;
  watched = getpid ();
  start_time = g_get_monotonic_time ();
  backtrace (&frame, 1); /* loads what it needs, which a signal handler must not */
  sem_init (&answered, 0, 0);
  sigaction (SIGUSR2, &action, NULL);
  if (pthread_create (&thread, NULL, watch, NULL) != 0)
    g_error ("no thread for the watch");
  pthread_detach (thread);
}
