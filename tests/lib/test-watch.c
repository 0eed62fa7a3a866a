/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The watch over tests that may hang: what it prints of one that does, and that it leaves others alone.
 */
#include "watch.h"

#include <glib.h>

#include <pthread.h>
#include <unistd.h>

/* The signal that asks a thread where it is ends a sleep. */
static void *
stand_still (void *data)
{
  for (;;)
    sleep (1000);
  return NULL;
}

/* Two threads that stand still: the one that began the last step, and another. */
static void
test_hang (void)
{
  if (g_test_subprocess ()) {
    pthread_t thread;
    pthread_create (&thread, NULL, stand_still, NULL);
    test_watch_step ("begun", 1, 2);
    test_watch_step ("hung", 3, 4);
    test_watch_start (50);
    pthread_join (thread, NULL);
    return;
  }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_failed ();
  g_test_trap_assert_stderr ("*nothing was begun for 50 ms after 2 steps in * s, the last of which: hung 3.4;*"
                             "thread *system call:*test-watch(*thread *system call:*test-watch(*");
}

/* Each step may take as long as the patience lasts, all together longer. */
static void
test_progress (void)
{
  if (g_test_subprocess ()) {
    test_watch_start (1000);
    for (unsigned i = 0; i < 60; i++) {
      test_watch_step ("slow", 0, i);
      g_usleep (20000);
    }
    return;
  }
  g_test_trap_subprocess (NULL, 0, 0);
  g_test_trap_assert_passed ();
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/watch/hang", test_hang);
  g_test_add_func ("/watch/progress", test_progress);
  return g_test_run ();
}
