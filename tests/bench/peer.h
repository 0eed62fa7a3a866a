/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the cache is compared with: the ways to get memory for a frame without it.
 */
#pragma once

#include <gpucache/gpucache.h>

typedef struct Peer Peer;

struct Peer {
  const char *name;
  /* Memory of @size bytes; never NULL. */
  void *(*alloc) (Peer *peer, size_t size);
  void (*free) (Peer *peer, void *data);
  /* Submits a write of all of it, without waiting for that; NULL if it has no stream. */
  void (*write) (Peer *peer, void *data, size_t size);
  /* The most bytes that it had taken from the system at a time; NULL if it cannot tell. */
  double (*peak) (Peer *peer);
  void (*destroy) (Peer *peer);
};

/** Returns: (transfer full) (element-type Peer): those that there are for @device's memory; the first one is an
 * allocator that keeps what it has, and the last one the system's own. */
GPtrArray *peers_new (GpuDevice *device);

/** The most bytes that the pool which @device allocates from had taken from the system at a time; 0 if it does not say.
 */
double peers_device_peak (GpuDevice *device);

/* peer-cuda.c; the context of @device is current on the calling thread from then on. */
void peers_add_cuda (GPtrArray *peers, GpuDevice *device);
double peers_cuda_device_peak (GpuDevice *device);
