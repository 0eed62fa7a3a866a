/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The peers in host memory. They hand out memory that nobody has touched, which the CPU device never does.
 */
#include "peer.h"

#include "bench.h"

#include <stdlib.h>

static void *
checked (void *data, size_t size)
{
  if (!data)
    bench_fail ("the system has no %zu bytes of memory left", size);
  return data;
}

static void *
malloc_alloc (Peer *peer, size_t size)
{
  return checked (malloc (size), size);
}

static void *
aligned_alloc_alloc (Peer *peer, size_t size)
{
  const size_t alignment = GPU_DEFAULT_ALIGNMENT;
  return checked (aligned_alloc (alignment, (size + alignment - 1) / alignment * alignment), size);
}

static void
host_free (Peer *peer, void *data)
{
  free (data);
}

static void
host_destroy (Peer *peer)
{
  g_free (peer);
}

static Peer *
host_peer_new (const char *name, void *(*alloc) (Peer *peer, size_t size))
{
  Peer *peer = g_new0 (Peer, 1);
  *peer = (Peer){.name = name, .alloc = alloc, .free = host_free, .destroy = host_destroy};
  return peer;
}

static void
destroy_peer (void *data)
{
  Peer *peer = data;
  peer->destroy (peer);
}

GPtrArray *
peers_new (GpuDevice *device)
{
  GPtrArray *peers = g_ptr_array_new_with_free_func (destroy_peer);
  if (gpu_device_is_host (device)) {
    g_ptr_array_add (peers, host_peer_new ("aligned_alloc, free", aligned_alloc_alloc));
    g_ptr_array_add (peers, host_peer_new ("malloc, free", malloc_alloc));
  }
#ifdef GPU_HAVE_CUDA
  if (gpu_device_cuda_context (device))
    peers_add_cuda (peers, device);
#endif
  return peers;
}

double
peers_device_peak (GpuDevice *device)
{
#ifdef GPU_HAVE_CUDA
  if (gpu_device_cuda_context (device))
    return peers_cuda_device_peak (device);
#endif
  return 0;
}
