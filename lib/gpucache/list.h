/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Intrusive doubly linked lists: what is in them is linked by a member, so that moving an entry allocates nothing.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct GpuLink GpuLink;
struct GpuLink {
  GpuLink *previous, *next;
};

typedef struct {
  GpuLink *first, *last;
} GpuList;

/** The struct of which *@link is the member @member. */
#define gpu_container(link, type, member) ((type *)(void *)((char *)(link)-offsetof (type, member)))

/** @after: (nullable): NULL puts @link first. */
static inline void
gpu_list_insert_after (GpuList *list, GpuLink *after, GpuLink *link)
{
  link->previous = after;
  link->next = after ? after->next : list->first;
  if (link->next)
    link->next->previous = link;
  else
    list->last = link;
  if (after)
    after->next = link;
  else
    list->first = link;
}

static inline void
gpu_list_append (GpuList *list, GpuLink *link)
{
  gpu_list_insert_after (list, list->last, link);
}

static inline void
gpu_list_remove (GpuList *list, GpuLink *link)
{
  if (link->previous)
    link->previous->next = link->next;
  else
    list->first = link->next;
  if (link->next)
    link->next->previous = link->previous;
  else
    list->last = link->previous;
  link->previous = link->next = NULL;
}
