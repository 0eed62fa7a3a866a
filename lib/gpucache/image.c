/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Images: descriptors over allocations, views and wraps, and copies between images and host memory.
 */
#include "cache-priv.h"
#include "image-priv.h"

/* No one needs more, and a driver would take a larger one for a lack of memory. */
#define MAX_ALIGNMENT ((size_t)1 << 24)

/* Whether every plane lies inside. Products cannot overflow once the rows are known to fit. */
static bool
planes_fit (const GpuImageSpec *spec, unsigned n_planes)
{
  for (unsigned i = 0; i < n_planes; i++) {
    size_t row = gpu_image_spec_row_bytes (spec, i), rows = gpu_image_spec_plane_height (spec, i);
    size_t offset = spec->offset[i], stride = spec->stride[i];
    if (offset > spec->size || row > spec->size - offset || (rows > 1 && stride < row) ||
        (stride > 0 && rows - 1 > (spec->size - offset - row) / stride))
      return false;
  }
  return true;
}

static bool
check_place (GpuDevice *device, GpuMemoryKind kind, GpuStream *stream, GError **error)
{
  if (stream && gpu_stream_device (stream) != device) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "the stream is %s's and the memory is asked of %s; use a stream "
                 "of the same device",
                 gpu_device_name (gpu_stream_device (stream)), gpu_device_name (device));
    return false;
  }
  if ((unsigned)kind >= GPU_N_MEMORY_KINDS) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "%d is no kind of memory; use one of GpuMemoryKind", (int)kind);
    return false;
  }
  return true;
}

static bool
check_spec (const GpuImageSpec *spec, GError **error)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);
  if (!info || spec->size == 0 || spec->width == 0 || spec->height == 0) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "an image spec of format %d, %ux%u, %zu bytes is not valid; fill it with gpu_image_spec_init()",
                 (int)spec->format, spec->width, spec->height, spec->size);
    return false;
  }
  if (!planes_fit (spec, info->n_planes)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "the planes of a %s image of %ux%u do not lie inside its %zu bytes; fill the spec with "
                 "gpu_image_spec_init() or gpu_image_spec_init_full()",
                 info->name, spec->width, spec->height, spec->size);
    return false;
  }
  if (spec->alignment == 0 || (spec->alignment & (spec->alignment - 1)) != 0 || spec->alignment > MAX_ALIGNMENT) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "an alignment of %zu bytes is not a power of two up to %zu",
                 spec->alignment, MAX_ALIGNMENT);
    return false;
  }
  return true;
}

bool
gpu_image_check_request (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, GpuStream *stream,
                         GError **error)
{
  return check_place (device, kind, stream, error) && check_spec (spec, error);
}

GpuImage *
gpu_image_acquire (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, GpuStream *stream,
                   GpuAcquireFlags flags, GError **error)
{
  g_return_val_if_fail (device != NULL && spec != NULL, NULL);

  if (!check_place (device, kind, stream, error))
    return NULL;
  const bool host = (flags & GPU_ACQUIRE_HOST) || gpu_memory_kind_is_host (kind);
  const GpuRequest request = {.spec = spec,
                              .kind = kind,
                              .account = gpu_memory_kind_account (kind),
                              .stream = stream,
                              .complete = host,
                              .host = host};
  /* What equals the spec of an entry is valid, so the hot path need not look. */
  GpuAllocation *allocation = gpu_cache_take_ready (device->cache, &request);
  if (!allocation && check_spec (spec, error))
    allocation = gpu_cache_acquire (device->cache, &request, error);
  return allocation ? &allocation->image : NULL;
}

GpuImage *
gpu_image_wrap_complete (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, void *data,
                         GpuReleaseFunc release, void *user_data)
{
  GpuAllocation *allocation = gpu_allocation_new (device->cache);
  allocation->kind = kind;
  allocation->owned = false;
  allocation->data = allocation->image.data = data;
  allocation->capacity = spec->size;
  allocation->alignment = spec->alignment;
  allocation->image.spec = *spec;
  allocation->release = release;
  allocation->user_data = user_data;
  atomic_store (&allocation->image.refs, 1);
  gpu_device_ref (device);
  return &allocation->image;
}

GpuImage *
gpu_image_wrap (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, void *data, GpuStream *stream,
                GpuReleaseFunc release, void *user_data, GError **error)
{
  g_return_val_if_fail (device != NULL && spec != NULL && data != NULL, NULL);

  if (!gpu_image_check_request (device, spec, kind, stream, error) || !gpu_device_check (device, error))
    return NULL;
  if (!stream && !gpu_device_synchronize (device, error))
    return NULL;

  GpuImage *image = gpu_image_wrap_complete (device, spec, kind, data, release, user_data);
  if (stream) {
    /* Its owner's last write: what the stream was given so far, by us or by others. */
    const GpuPoint write = {stream,
                            gpu_stream_is_foreign (stream) ? gpu_stream_advance (stream) : gpu_stream_present (stream)};
    gpu_history_set (&image->allocation->history, &write);
    if (!gpu_point_observed (&write) && !gpu_stream_mark (stream, error)) {
      image->allocation->release = NULL;
      gpu_image_unref (image);
      return NULL;
    }
  }
  return image;
}

static bool
is_root (const GpuImage *image)
{
  return image == &image->allocation->image;
}

GpuImage *
gpu_image_view (GpuImage *image, uint32_t x, uint32_t y, uint32_t width, uint32_t height, GError **error)
{
  g_return_val_if_fail (image != NULL, NULL);

  const GpuImageSpec *spec = &image->spec;
  const GpuFormatInfo *info = gpu_format_info (spec->format);
  if (info->is_tensor) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "a part of a %s is none, since tensors have no padding; cut the picture that it is made from",
                 info->name);
    return NULL;
  }
  if (width == 0 || height == 0 || (uint64_t)x + width > spec->width || (uint64_t)y + height > spec->height) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "the rectangle %ux%u at %u,%u does not lie in an image of %ux%u",
                 width, height, x, y, spec->width, spec->height);
    return NULL;
  }

  GpuImageSpec part = *spec;
  part.width = width;
  part.height = height;
  part.alignment = 1;
  for (unsigned i = 0; i < info->n_planes; i++) {
    const GpuPlaneInfo *plane = &info->plane[i];
    part.offset[i] +=
        (size_t)(y >> plane->h_shift) * part.stride[i] + (size_t)(x >> plane->w_shift) * plane->pixel_bytes;
  }

  GpuImage *view = gpu_view_new (image->allocation->device->cache);
  view->allocation = image->allocation;
  view->spec = part;
  view->data = image->data;
  gpu_image_ref (&image->allocation->image);
  return view;
}

GpuImage *
gpu_image_view_as (GpuImage *image, size_t offset, const GpuImageSpec *spec, GError **error)
{
  g_return_val_if_fail (image != NULL && spec != NULL, NULL);

  if (!check_spec (spec, error))
    return NULL;
  if (offset > image->spec.size || spec->size > image->spec.size - offset) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "%zu bytes at offset %zu do not lie in an image of %zu bytes",
                 spec->size, offset, image->spec.size);
    return NULL;
  }

  GpuImage *view = gpu_view_new (image->allocation->device->cache);
  view->allocation = image->allocation;
  view->spec = *spec;
  view->data = image->data + offset;
  gpu_image_ref (&image->allocation->image);
  return view;
}

GpuImage *
gpu_image_ref (GpuImage *image)
{
  g_return_val_if_fail (image != NULL, NULL);

  atomic_fetch_add_explicit (&image->refs, 1, memory_order_relaxed);
  return image;
}

void
gpu_image_unref (GpuImage *image)
{
  if (!image)
    return;
  GpuAllocation *allocation = image->allocation;
  bool root = is_root (image);
  unsigned refs = atomic_fetch_sub_explicit (&image->refs, 1, memory_order_acq_rel);
  if (refs == 0) {
    atomic_store (&image->refs, 0);
    g_critical ("an image was released more often than it was referenced; its memory stays in the cache");
    return;
  }
  if (refs > 1)
    return;
  if (root) {
    gpu_cache_release (allocation);
  } else {
    gpu_view_recycle (allocation->device->cache, image);
    gpu_image_unref (&allocation->image);
  }
}

GpuDevice *
gpu_image_device (const GpuImage *image)
{
  return image->allocation->device;
}

GpuMemoryKind
gpu_image_kind (const GpuImage *image)
{
  return image->allocation->kind;
}

const GpuImageSpec *
gpu_image_spec (const GpuImage *image)
{
  return &image->spec;
}

void *
gpu_image_data (const GpuImage *image)
{
  return image->data;
}

size_t
gpu_image_capacity (const GpuImage *image)
{
  return image->allocation->capacity;
}

/* Copies */

/* One side of a copy: an image's planes, or a host's. */
typedef struct {
  const GpuImageSpec *spec;
  uint8_t *data;
} Side;

typedef struct {
  Side src, dst;
  GpuCopyKind kind;
  uint8_t value;
} Transfer;

static GpuCopy
plane_copy (const Transfer *transfer, unsigned plane)
{
  const GpuImageSpec *to = transfer->dst.spec, *from = transfer->src.spec;
  GpuCopy copy = {.dst = transfer->dst.data + to->offset[plane],
                  .dst_stride = to->stride[plane],
                  .row_bytes = gpu_image_spec_row_bytes (to, plane),
                  .rows = gpu_image_spec_plane_height (to, plane)};
  if (from) {
    copy.src = transfer->src.data + from->offset[plane];
    copy.src_stride = from->stride[plane];
  }
  return copy;
}

static bool
copy_planes (GpuDevice *device, void *native, void *data, GError **error)
{
  const Transfer *transfer = data;
  unsigned n_planes = gpu_format_info (transfer->dst.spec->format)->n_planes;
  for (unsigned i = 0; i < n_planes; i++) {
    const GpuCopy copy = plane_copy (transfer, i);
    if (!gpu_device_copy (device, &copy, transfer->kind, native, error))
      return false;
  }
  return true;
}

static bool
fill_planes (GpuDevice *device, void *native, void *data, GError **error)
{
  const Transfer *transfer = data;
  unsigned n_planes = gpu_format_info (transfer->dst.spec->format)->n_planes;
  for (unsigned i = 0; i < n_planes; i++) {
    const GpuCopy copy = plane_copy (transfer, i);
    if (!gpu_device_fill (device, &copy, transfer->value, native, error))
      return false;
  }
  return true;
}

bool
gpu_image_check_same_shape (const GpuImageSpec *src, const GpuImageSpec *dst, GError **error)
{
  if (src->format == dst->format && src->width == dst->width && src->height == dst->height &&
      src->channels == dst->channels)
    return true;
  const GpuFormatInfo *from = gpu_format_info (src->format), *to = gpu_format_info (dst->format);
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "a copy from %s %ux%u to %s %ux%u is not possible; format and size must be the same",
               from ? from->name : "an unknown format", src->width, src->height, to ? to->name : "an unknown format",
               dst->width, dst->height);
  return false;
}

bool
gpu_image_copy (GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  g_return_val_if_fail (stream != NULL && src != NULL && dst != NULL, false);

  if (!gpu_image_check_same_shape (&src->spec, &dst->spec, error))
    return false;
  GpuDevice *device = gpu_stream_device (stream);
  if (src->allocation->device != device && dst->allocation->device == device)
    return gpu_image_copy_across (stream, src, dst, error);
  Transfer transfer = {{&src->spec, src->data}, {&dst->spec, dst->data}, GPU_COPY_DEVICE, 0};
  return gpu_images_submit (stream, &src, 1, &dst, 1, copy_planes, &transfer, error);
}

bool
gpu_image_fill (GpuStream *stream, GpuImage *image, uint8_t value, GError **error)
{
  g_return_val_if_fail (stream != NULL && image != NULL, false);

  Transfer transfer = {.dst = {&image->spec, image->data}, .value = value};
  return gpu_images_submit (stream, NULL, 0, &image, 1, fill_planes, &transfer, error);
}

/* A copy from or to memory of the host's own goes on in the driver's call, with the stream locked, until the stream has
 * come to it. So all that is before it is waited for here, where nobody else is kept waiting. */
static bool
wait_for_turn (GpuStream *stream, GpuImage *image, GpuAccessFlags flags, GError **error)
{
  if (!gpu_image_begin_access (image, stream, flags, error))
    return false;
  const GpuPoint present = {stream, gpu_stream_present (stream)};
  return gpu_point_wait (&present, error);
}

/* The host's side is free again when what was just submitted is complete. */
static bool
wait_for_submitted (GpuStream *stream, GError **error)
{
  const GpuPoint present = {stream, gpu_stream_present (stream)};
  return gpu_point_wait (&present, error);
}

bool
gpu_image_copy_from_host (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec,
                          GError **error)
{
  g_return_val_if_fail (stream != NULL && image != NULL && host != NULL && host_spec != NULL, false);

  if (!gpu_image_check_same_shape (host_spec, &image->spec, error))
    return false;
  Transfer transfer = {{host_spec, (uint8_t *)host}, {&image->spec, image->data}, GPU_COPY_FROM_HOST, 0};
  return wait_for_turn (stream, image, GPU_ACCESS_WRITE, error) &&
         gpu_images_submit (stream, NULL, 0, &image, 1, copy_planes, &transfer, error) &&
         wait_for_submitted (stream, error);
}

bool
gpu_image_copy_to_host (GpuStream *stream, GpuImage *image, void *host, const GpuImageSpec *host_spec, GError **error)
{
  g_return_val_if_fail (stream != NULL && image != NULL && host != NULL && host_spec != NULL, false);

  if (!gpu_image_check_same_shape (&image->spec, host_spec, error))
    return false;
  Transfer transfer = {{&image->spec, image->data}, {host_spec, host}, GPU_COPY_TO_HOST, 0};
  return wait_for_turn (stream, image, GPU_ACCESS_READ, error) &&
         gpu_images_submit (stream, &image, 1, NULL, 0, copy_planes, &transfer, error) &&
         wait_for_submitted (stream, error);
}
