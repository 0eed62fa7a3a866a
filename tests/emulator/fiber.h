/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Several stacks on one thread, which take turns. Sanitizers and Valgrind are told which one runs.
 */
#pragma once

typedef struct Fiber Fiber;

/**
 * fiber_new:
 * @func: what it runs when it is first switched to; must not return
 *
 * Returns: a fiber, which is kept until the process ends
 */
Fiber *fiber_new (void (*func) (void *data), void *data);

/** Returns: the calling thread as a fiber, to come back to; free it with fiber_end(). */
Fiber *fiber_begin (void);
void fiber_end (Fiber *self);

/** Goes on with @to, on the thread that runs @from. Returns when something switches to @from. */
void fiber_switch (Fiber *from, Fiber *to);
