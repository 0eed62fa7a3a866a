/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Devices among each other (rule 26): which can read whose memory, copies of images from one to the other, and how one
 * goes while the others stay.
 *
 * A copy runs on a stream of the device that it goes to, which waits there for the source's last write and enters the
 * source's history like any other stream. So the source stays pending, and charged to its own device, until that
 * stream's events say that the copy is complete, and its own device's next user is ordered after it.
 */
#include "cache-priv.h"
#include "image-priv.h"

typedef struct {
  uint64_t id; /* the other device's */
  bool direct;
} PeerState;

/* The devices that are there, so that the last of them to touch another one's memory is known. */
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static GPtrArray *devices;
static pthread_once_t devices_once = PTHREAD_ONCE_INIT;
static uint64_t last_id;

/* The parent's devices are of no use in a child, and a thread that is not there may hold the lock. */
static void
forget_after_fork (void)
{
  pthread_mutex_init (&devices_lock, NULL);
  devices = NULL;
}

static void
watch_forks (void)
{
  pthread_atfork (NULL, NULL, forget_after_fork);
}

void
gpu_peers_init (GpuDevice *device)
{
  device->peers = g_array_new (false, false, sizeof (PeerState));
  device->no_peer_access = false;
  atomic_init (&device->n_visitors, 0);
  pthread_cond_init (&device->unvisited, NULL);
  atomic_init (&device->staging, NULL);

  pthread_once (&devices_once, watch_forks);
  gpu_lock (&devices_lock, GPU_LOCK_TEARDOWN);
  device->id = ++last_id;
  if (!devices)
    devices = g_ptr_array_new ();
  g_ptr_array_add (devices, device);
  gpu_unlock (&devices_lock, GPU_LOCK_TEARDOWN);
}

void
gpu_device_visit (GpuDevice *device)
{
  atomic_fetch_add_explicit (&device->n_visitors, 1, memory_order_relaxed);
}

void
gpu_device_leave (GpuDevice *device)
{
  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  if (atomic_fetch_sub_explicit (&device->n_visitors, 1, memory_order_acq_rel) == 1)
    pthread_cond_broadcast (&device->unvisited);
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
}

/* The lock is held. Returns: (nullable): until that is let go of. */
static const PeerState *
find_peer (GpuDevice *device, const GpuDevice *other)
{
  for (unsigned i = 0; i < device->peers->len; i++)
    if (g_array_index (device->peers, PeerState, i).id == other->id)
      return &g_array_index (device->peers, PeerState, i);
  return NULL;
}

static bool
knows_peer (GpuDevice *device, const GpuDevice *other)
{
  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  bool known = find_peer (device, other) != NULL;
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
  return known;
}

static void
forget_peer (GpuDevice *device, const GpuDevice *other)
{
  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  const PeerState *state = find_peer (device, other);
  if (state)
    g_array_remove_index_fast (device->peers, (unsigned)(state - &g_array_index (device->peers, PeerState, 0)));
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
}

bool
gpu_peers_settle (GpuDevice *device)
{
  g_autoptr (GPtrArray) lost = g_ptr_array_new ();
  gpu_lock (&devices_lock, GPU_LOCK_TEARDOWN);
  for (unsigned i = 0; devices && i < devices->len; i++) {
    GpuDevice *other = g_ptr_array_index (devices, i);
    if (other == device || !gpu_device_is_lost (other) || !knows_peer (other, device))
      continue;
    gpu_device_visit (other);
    g_ptr_array_add (lost, other);
  }
  gpu_unlock (&devices_lock, GPU_LOCK_TEARDOWN);

  bool settled = true;
  for (unsigned i = 0; i < lost->len; i++) {
    GpuDevice *other = g_ptr_array_index (lost, i);
    settled = other->funcs->synchronize (other, NULL) && settled;
    gpu_device_leave (other);
  }
  return settled;
}

void
gpu_peers_part (GpuDevice *device)
{
  gpu_lock (&devices_lock, GPU_LOCK_TEARDOWN);
  if (devices)
    g_ptr_array_remove_fast (devices, device);
  for (unsigned i = 0; devices && i < devices->len; i++)
    forget_peer (g_ptr_array_index (devices, i), device);
  gpu_unlock (&devices_lock, GPU_LOCK_TEARDOWN);

  gpu_streams_part (device, device->funcs->synchronize (device, NULL));
  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  while (atomic_load (&device->n_visitors) > 0)
    pthread_cond_wait (&device->unvisited, &device->lock);
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
  /* A visitor may have had one more call made. */
  device->funcs->synchronize (device, NULL);

  g_array_unref (device->peers);
  pthread_cond_destroy (&device->unvisited);
}

void
gpu_device_forbid_peer_access (GpuDevice *device, bool forbid)
{
  g_return_if_fail (device != NULL);

  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  device->no_peer_access = forbid;
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
}

/* A device that is lost refuses everything, and answers nothing any more: then no other way would help (rule 24). */
static bool
both_answer (GpuDevice *device, GpuDevice *source, GError **error)
{
  return gpu_device_memory_info (device, NULL, NULL, error) && gpu_device_memory_info (source, NULL, NULL, error);
}

bool
gpu_device_peer_open (GpuDevice *device, GpuDevice *source, bool *direct, GError **error)
{
  if (device->funcs != source->funcs) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_UNSUPPORTED,
                 "%s and %s are devices of different kinds, between which there are no copies; take the image to the "
                 "host with gpu_image_copy_to_host() and from there to the other device",
                 device->name, source->name);
    return false;
  }
  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  const PeerState *known = find_peer (device, source);
  bool found = known != NULL, forbidden = device->no_peer_access;
  *direct = known && known->direct && !forbidden;
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
  if (found)
    return true;

  /* No lock is held across driver calls, so two threads may both come here; opening twice does no harm. */
  g_autoptr (GError) reason = NULL;
  bool opened = device->funcs->peer_open (device, source, &reason);
  if (!opened && !both_answer (device, source, error))
    return false;
  if (!opened && !g_error_matches (reason, GPU_ERROR, GPU_ERROR_UNSUPPORTED)) {
    g_propagate_error (error, g_steal_pointer (&reason));
    return false;
  }

  const PeerState state = {source->id, opened};
  gpu_lock (&device->lock, GPU_LOCK_LEAF);
  bool first = find_peer (device, source) == NULL;
  if (first)
    g_array_append_val (device->peers, state);
  gpu_unlock (&device->lock, GPU_LOCK_LEAF);
  *direct = opened && !forbidden;
  if (first && !*direct)
    g_message ("images go from %s to %s through pinned host memory: %s", source->name, device->name,
               reason ? reason->message : "direct access was forbidden");
  return true;
}

/* Copies */

typedef struct {
  GpuImage *src, *dst;
  bool direct; /* from device memory that the driver reads; else from memory that every device reads */
} Crossing;

static bool
is_root (const GpuImage *image)
{
  return image == &image->allocation->image;
}

/* With the same layout on both sides all planes are one run of bytes, padding included, which is what the copy engines
 * are fastest at. Padding of a view or of somebody else's memory may be somebody's pixels. */
static bool
is_one_run (const GpuImage *src, const GpuImage *dst)
{
  const GpuImageSpec *from = &src->spec, *to = &dst->spec;
  if (!is_root (src) || !is_root (dst) || !dst->allocation->owned || from->size != to->size)
    return false;
  for (unsigned i = 0; i < gpu_format_info (to->format)->n_planes; i++)
    if (from->offset[i] != to->offset[i] || from->stride[i] != to->stride[i])
      return false;
  return true;
}

static bool
copy_rows (GpuDevice *device, const Crossing *crossing, const GpuCopy *copy, void *native, GError **error)
{
  if (crossing->direct)
    return gpu_device_peer_copy (device, crossing->src->allocation->device, copy, native, error);
  return gpu_device_copy (device, copy, GPU_COPY_DEVICE, native, error);
}

static bool
copy_image (GpuDevice *device, void *native, void *data, GError **error)
{
  const Crossing *crossing = data;
  const GpuImage *src = crossing->src, *dst = crossing->dst;
  if (is_one_run (src, dst)) {
    const size_t size = dst->spec.size;
    const GpuCopy copy = {dst->data, size, src->data, size, size, 1};
    return copy_rows (device, crossing, &copy, native, error);
  }
  for (unsigned i = 0; i < gpu_format_info (dst->spec.format)->n_planes; i++) {
    const GpuCopy copy = {.dst = dst->data + dst->spec.offset[i],
                          .dst_stride = dst->spec.stride[i],
                          .src = src->data + src->spec.offset[i],
                          .src_stride = src->spec.stride[i],
                          .row_bytes = gpu_image_spec_row_bytes (&dst->spec, i),
                          .rows = gpu_image_spec_plane_height (&dst->spec, i)};
    if (!copy_rows (device, crossing, &copy, native, error))
      return false;
  }
  return true;
}

/* The stream on which @source copies to pinned memory; one that no other work is behind. */
static GpuStream *
get_staging (GpuDevice *source, GError **error)
{
  GpuStream *staging = atomic_load (&source->staging);
  if (staging)
    return staging;
  GpuStream *fresh = gpu_stream_new_internal (source, error), *none = NULL;
  if (!fresh || atomic_compare_exchange_strong (&source->staging, &none, fresh))
    return fresh;
  gpu_stream_unref (fresh);
  return none;
}

static bool
copy_through_host (GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  GpuDevice *source = src->allocation->device;
  const GpuImageSpec *spec = is_root (src) ? &src->spec : &dst->spec;
  GpuStream *staging = get_staging (source, error);
  GpuImage *pinned =
      staging ? gpu_image_acquire (source, spec, GPU_MEMORY_HOST, staging, GPU_ACQUIRE_DEFAULT, error) : NULL;
  if (!pinned)
    return false;
  Crossing crossing = {pinned, dst, false};
  bool ok = gpu_image_copy (staging, src, pinned, error) &&
            gpu_images_cross (stream, pinned, dst, copy_image, &crossing, error);
  gpu_image_unref (pinned);
  return ok;
}

bool
gpu_image_copy_across (GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  bool direct;
  if (!gpu_device_peer_open (gpu_stream_device (stream), src->allocation->device, &direct, error))
    return false;
  bool src_is_host = gpu_memory_kind_is_host (src->allocation->kind);
  if (!src_is_host && (!direct || gpu_memory_kind_is_host (dst->allocation->kind)))
    return copy_through_host (stream, src, dst, error);
  Crossing crossing = {src, dst, !src_is_host};
  return gpu_images_cross (stream, src, dst, copy_image, &crossing, error);
}
