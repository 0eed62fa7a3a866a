/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See fiber.h. A switch saves what a function call must leave as it was, on the stack that is left. Where there are no
 * instructions for it here, the C library's contexts serve, which ask the system for signal masks each time.
 */
#include "fiber.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef HAVE_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef HAVE_VALGRIND
#include <valgrind/valgrind.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

/* Deep enough for a kernel that is not optimised and has all its variables guarded. Pages that are not touched cost
 * nothing. */
#define STACK_BYTES ((size_t)256 << 10)
#define GUARD_BYTES ((size_t)4 << 10)

struct Fiber {
#ifdef __x86_64__
  void *sp;
#else
  ucontext_t context;
#endif
  void (*func) (void *data);
  void *data;
  /* As the sanitizer wants them; of a thread's own stack it says them when the thread is first left. */
  const void *stack;
  size_t stack_bytes;
  void *fake_stack;
};

/* Who was left by the switch that is going on. */
static __thread Fiber *left __attribute__ ((tls_model ("initial-exec")));

static void
arrive (Fiber *self)
{
#ifdef HAVE_ASAN
  const void *stack;
  size_t bytes;

  __sanitizer_finish_switch_fiber (self->fake_stack, &stack, &bytes);
  left->stack = stack;
  left->stack_bytes = bytes;
#endif
}

static void
run (Fiber *self)
{
  arrive (self);
  self->func (self->data);
  abort ();
}

#ifdef __x86_64__

void fiber_swap_stacks (void **saved, void *loaded);

/* System V's ABI: rbx, rbp and r12 to r15 are the callee's to keep. */
__asm__(".text\n"
        ".globl fiber_swap_stacks\n"
        ".hidden fiber_swap_stacks\n"
        ".type fiber_swap_stacks, @function\n"
        "fiber_swap_stacks:\n"
        "  push %rbp\n"
        "  push %rbx\n"
        "  push %r12\n"
        "  push %r13\n"
        "  push %r14\n"
        "  push %r15\n"
        "  mov %rsp, (%rdi)\n"
        "  mov %rsi, %rsp\n"
        "  pop %r15\n"
        "  pop %r14\n"
        "  pop %r13\n"
        "  pop %r12\n"
        "  pop %rbx\n"
        "  pop %rbp\n"
        "  ret\n"
        ".size fiber_swap_stacks, . - fiber_swap_stacks\n");

/* Where a new fiber's first switch returns to: its registers hold the fiber in rbx. */
extern char fiber_start[];
void fiber_run (Fiber *self);

__asm__(".text\n"
        ".globl fiber_start\n"
        ".hidden fiber_start\n"
        ".type fiber_start, @function\n"
        "fiber_start:\n"
        "  mov %rbx, %rdi\n"
        "  xor %ebp, %ebp\n"
        "  call fiber_run\n"
        "  ud2\n"
        ".size fiber_start, . - fiber_start\n");

__attribute__ ((used, visibility ("hidden"))) void
fiber_run (Fiber *self)
{
  run (self);
}

static void
prepare (Fiber *self)
{
  /* r15, r14, r13, r12, rbx, rbp and the address to return to, after which the stack is at a multiple of 16. */
  void **sp = (void **)((uintptr_t)self->stack + self->stack_bytes) - 9;

  sp[4] = self;
  sp[6] = fiber_start;
  self->sp = sp;
}

static void
swap (Fiber *from, Fiber *to)
{
  fiber_swap_stacks (&from->sp, to->sp);
}

#else

static void
start (unsigned high, unsigned low)
{
  run ((Fiber *)(uintptr_t)((uint64_t)high << 32 | low));
}

static void
prepare (Fiber *self)
{
  getcontext (&self->context);
  self->context.uc_stack.ss_sp = (void *)self->stack;
  self->context.uc_stack.ss_size = self->stack_bytes;
  makecontext (&self->context, (void (*) (void))start, 2, (unsigned)((uint64_t)(uintptr_t)self >> 32),
               (unsigned)(uintptr_t)self);
}

static void
swap (Fiber *from, Fiber *to)
{
  swapcontext (&from->context, &to->context);
}

#endif

Fiber *
fiber_new (void (*func) (void *data), void *data)
{
  Fiber *self = calloc (1, sizeof *self);
  char *memory = mmap (NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

  if (!self || memory == MAP_FAILED || mprotect (memory, GUARD_BYTES, PROT_NONE) != 0) {
    perror ("a stack for a thread of an emulated GPU");
    abort ();
  }
  self->func = func;
  self->data = data;
  self->stack = memory + GUARD_BYTES;
  self->stack_bytes = STACK_BYTES;
#ifdef HAVE_VALGRIND
  VALGRIND_STACK_REGISTER (self->stack, (const char *)self->stack + self->stack_bytes);
#endif
  prepare (self);
  return self;
}

Fiber *
fiber_begin (void)
{
  return calloc (1, sizeof (Fiber));
}

void
fiber_end (Fiber *self)
{
  free (self);
}

void
fiber_switch (Fiber *from, Fiber *to)
{
  left = from;
#ifdef HAVE_ASAN
  __sanitizer_start_switch_fiber (&from->fake_stack, to->stack, to->stack_bytes);
#endif
  swap (from, to);
  arrive (from);
}
