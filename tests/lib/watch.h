/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A watch over a test that may hang, which on a GPU says nothing of itself: what was begun last, and where each thread
 * stands.
 */
#pragma once

#include <stdint.h>

/**
 * test_watch_start:
 * @patience_ms: how long one step may take
 *
 * From now on the process aborts once no step was begun for so long, counted from the last one or from this call.
 * Before that it prints the last step to stderr and, for each thread, what the kernel says of it and its stack, as
 * addresses for addr2line. Called again, it only changes the patience; a child of fork() has no watch until it calls it
 * itself.
 */
void test_watch_start (unsigned patience_ms);

/** A step begins: @what it is (a string that stays) and two numbers that say which one. Any thread; costs nothing. */
void test_watch_step (const char *what, uint64_t major, uint64_t minor);
