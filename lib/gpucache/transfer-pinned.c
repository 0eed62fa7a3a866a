/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Copies between images and plain memory that is pinned in place, straight by the device. Only whole pages are pinned,
 * so rows at either end of the memory that lie in others go through a piece of the cache's own pinned memory.
 */
#include "cache-priv.h"
#include "image-priv.h"
#include "pin-priv.h"
#include "transfer-priv.h"

#include <sched.h>
#include <string.h>

/* Pieces of a few sizes only, so that the next copy finds the last one's. */
#define LEAST_PIECE ((size_t)16 << 10)
#define MOST_PIECE ((size_t)1 << 30)

#define STRAIGHT SIZE_MAX

/* How long a copy is asked about before its event is slept for, in us: the wake-up may take as long as the copy. */
#define ASK_US 500

/* Rows of a plane that are all in pages that are pinned, or all not. */
typedef struct {
  unsigned plane;
  uint32_t row, rows;
  size_t at; /* where in the piece, or STRAIGHT */
} Part;

typedef struct {
  GpuImage *image;
  GpuImage *host; /* wrapped, so that its owner gets it back when it has been copied, and not before */
  GpuImage *piece;
  bool inwards;
  Part parts[3 * GPU_MAX_PLANES];
  unsigned n_parts;
  size_t piece_bytes;
} Straight;

static uint32_t
count_rows (size_t bytes, size_t stride, uint32_t most)
{
  return (uint32_t)MIN (bytes / MAX (stride, 1), most);
}

static void
add_part (Straight *self, unsigned plane, uint32_t row, uint32_t end, bool straight)
{
  if (row >= end)
    return;
  self->parts[self->n_parts++] = (Part){plane, row, end - row, straight ? STRAIGHT : self->piece_bytes};
  if (!straight)
    self->piece_bytes += (end - row) * gpu_image_spec_row_bytes (&self->host->spec, plane);
}

/* Rows that begin before the pages, rows that end in them, and the rest. */
static void
add_parts (Straight *self, const GpuPin *pin, unsigned plane)
{
  const GpuImageSpec *spec = &self->host->spec;
  const size_t stride = spec->stride[plane], row_bytes = gpu_image_spec_row_bytes (spec, plane);
  const uint32_t rows = gpu_image_spec_plane_height (spec, plane);
  const uintptr_t first = (uintptr_t)self->host->data + spec->offset[plane];
  const uintptr_t begin = (uintptr_t)pin->data, end = begin + pin->size;
  const uint32_t before = first < begin ? count_rows (begin - first + MAX (stride, 1) - 1, stride, rows) : 0;
  const uint32_t inside = end >= first && end - first >= row_bytes
                              ? count_rows (end - first - row_bytes + MAX (stride, 1), stride, rows)
                              : 0;
  add_part (self, plane, 0, before, false);
  add_part (self, plane, before, inside, true);
  add_part (self, plane, MAX (before, inside), rows, false);
}

static bool
prepare (Straight *self, GpuStream *stream, const GpuPin *pin, GError **error)
{
  const unsigned n_planes = gpu_format_info (self->host->spec.format)->n_planes;
  for (unsigned plane = 0; plane < n_planes; plane++)
    add_parts (self, pin, plane);
  if (self->piece_bytes == 0)
    return true;
  if (self->piece_bytes > MOST_PIECE) {
    g_set_error_literal (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY, "most of the memory is not pinned");
    return false;
  }
  size_t size = LEAST_PIECE;
  while (size < self->piece_bytes)
    size *= 2;
  GpuImageSpec spec;
  if (!gpu_image_spec_init (&spec, GPU_FORMAT_GRAY8, (uint32_t)size, 1, 0, error))
    return false;
  self->piece = gpu_image_acquire (gpu_stream_device (stream), &spec, GPU_MEMORY_HOST, stream, GPU_ACQUIRE_HOST, error);
  return self->piece != NULL;
}

/* Where the device finds a part on the host's side, or with @plain where it is in plain memory. */
static uint8_t *
host_side (const Straight *self, const Part *part, bool plain, size_t *stride)
{
  const GpuImageSpec *spec = &self->host->spec;
  const bool in_piece = part->at != STRAIGHT && !plain;
  *stride = in_piece ? gpu_image_spec_row_bytes (spec, part->plane) : spec->stride[part->plane];
  return in_piece ? self->piece->data + part->at
                  : self->host->data + spec->offset[part->plane] + part->row * spec->stride[part->plane];
}

static bool
copy_on_device (GpuDevice *device, void *native, void *data, GError **error)
{
  const Straight *self = data;
  const GpuImageSpec *spec = &self->image->spec;

  for (const Part *part = self->parts; part < self->parts + self->n_parts; part++) {
    size_t stride;
    uint8_t *host = host_side (self, part, false, &stride);
    uint8_t *image = self->image->data + spec->offset[part->plane] + part->row * spec->stride[part->plane];
    const GpuCopy copy = {.dst = self->inwards ? image : host,
                          .dst_stride = self->inwards ? spec->stride[part->plane] : stride,
                          .src = self->inwards ? host : image,
                          .src_stride = self->inwards ? stride : spec->stride[part->plane],
                          .row_bytes = gpu_image_spec_row_bytes (spec, part->plane),
                          .rows = part->rows};
    if (!gpu_device_copy (device, &copy, GPU_COPY_DEVICE, native, error))
      return false;
  }
  return true;
}

/* Between plain memory and the piece. */
static void
copy_on_host (const Straight *self)
{
  for (const Part *part = self->parts; part < self->parts + self->n_parts; part++) {
    const size_t row_bytes = gpu_image_spec_row_bytes (&self->host->spec, part->plane);
    size_t piece_stride, stride;
    uint8_t *piece = host_side (self, part, false, &piece_stride), *plain = host_side (self, part, true, &stride);
    for (uint32_t y = 0; y < part->rows && part->at != STRAIGHT; y++)
      memcpy (self->inwards ? piece + y * piece_stride : plain + y * stride,
              self->inwards ? plain + y * stride : piece + y * piece_stride, row_bytes);
  }
}

static bool
submit (Straight *self, GpuStream *stream, GError **error)
{
  GpuImage *host[] = {self->host, self->piece};
  const unsigned n = self->piece ? 2 : 1;

  return self->inwards ? gpu_images_submit (stream, host, n, &self->image, 1, copy_on_device, self, error)
                       : gpu_images_submit (stream, &self->image, 1, host, n, copy_on_device, self, error);
}

/* One wait of the host's, however many questions it takes. */
static bool
wait (GpuImage *host, GError **error)
{
  atomic_uint_least64_t *host_waits = &host->allocation->device->host_waits;
  const uint64_t waits = atomic_load (host_waits);
  const int64_t end = g_get_monotonic_time () + ASK_US;
  while (!gpu_image_is_complete (host, GPU_ACCESS_READ) && g_get_monotonic_time () < end)
    sched_yield ();
  const bool ok = gpu_image_wait (host, GPU_ACCESS_READ, error);
  if (atomic_load (host_waits) == waits)
    atomic_fetch_add_explicit (host_waits, 1, memory_order_relaxed);
  return ok;
}

static void
finish (Straight *self)
{
  gpu_image_unref (self->piece);
  gpu_image_unref (self->host);
}

/* Returns: whether the copy can be begun, which takes no more than a wrap; else the owner has @host back. */
static bool
begin (Straight *self, GpuStream *stream, void *host, const GpuImageSpec *host_spec, const GpuPin *pin,
       GpuReleaseFunc release, void *user_data, GError **error)
{
  GpuDevice *device = gpu_stream_device (stream);

  if (gpu_pin_is_for (pin, device) && gpu_image_check_same_shape (host_spec, &self->image->spec, error) &&
      gpu_image_check_request (device, host_spec, GPU_MEMORY_HOST, stream, error)) {
    self->host = gpu_image_wrap_complete (device, host_spec, GPU_MEMORY_HOST, host, release, user_data);
    return true;
  }
  if (error && !*error)
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "the memory is pinned for another device than %s", device->name);
  release (user_data);
  return false;
}

bool
gpu_image_upload_pinned (GpuStream *stream, GpuImage *image, const void *host, const GpuImageSpec *host_spec,
                         GpuPin *pin, GpuReleaseFunc release, void *user_data, GError **error)
{
  g_return_val_if_fail (stream != NULL && image != NULL && host != NULL && host_spec != NULL, false);
  g_return_val_if_fail (pin != NULL && release != NULL, false);

  Straight self = {.image = image, .inwards = true};
  GError *failure = NULL;
  if (!begin (&self, stream, (void *)host, host_spec, pin, release, user_data, error))
    return false;
  bool ok = prepare (&self, stream, pin, &failure);
  if (ok) {
    copy_on_host (&self);
    ok = submit (&self, stream, error);
  } else if (gpu_staging_is_refused (failure, error)) {
    ok = gpu_image_copy_from_host (stream, image, host, host_spec, error);
  }
  finish (&self);
  return ok;
}

bool
gpu_image_download_pinned (GpuStream *stream, GpuImage *image, void *host, const GpuImageSpec *host_spec, GpuPin *pin,
                           GpuReleaseFunc release, void *user_data, GError **error)
{
  g_return_val_if_fail (stream != NULL && image != NULL && host != NULL && host_spec != NULL, false);
  g_return_val_if_fail (pin != NULL && release != NULL, false);

  Straight self = {.image = image};
  GError *failure = NULL;
  if (!begin (&self, stream, host, host_spec, pin, release, user_data, error))
    return false;
  bool ok = prepare (&self, stream, pin, &failure);
  if (ok) {
    ok = submit (&self, stream, error) && wait (self.host, error);
    if (ok)
      copy_on_host (&self);
  } else if (gpu_staging_is_refused (failure, error)) {
    ok = gpu_image_copy_to_host (stream, image, host, host_spec, error);
  }
  finish (&self);
  return ok;
}
