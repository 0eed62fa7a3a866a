/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Batches: acquired and let go of (rule 17). How a scope keeps them meanwhile is in scope-batch.c.
 */
#include "batch-priv.h"
#include "image-priv.h"

#include <string.h>

/* Tables are of a few sizes, so that they can stand in for one another. */
#define MIN_TABLE 4096

/* Members that fit on the stack when a batch is let go of. */
#define FEW 64

static GpuBatch *
batch_new (unsigned n)
{
  GpuBatch *batch = g_malloc0 (sizeof *batch + n * sizeof batch->images[0]);

  atomic_init (&batch->refs, 1);
  batch->n = n;
  return batch;
}

static bool
check_n (unsigned n, GError **error)
{
  if (n >= 1 && n <= GPU_MAX_BATCH)
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "A batch of %u images is not possible: use 1 to %d", n,
               GPU_MAX_BATCH);
  return false;
}

/* Lets go of everything that there is. */
static void
batch_free (GpuBatch *batch)
{
  for (unsigned i = 0; i < batch->n; i++)
    gpu_image_unref (batch->images[i]);
  gpu_image_unref (batch->whole);
  gpu_image_unref (batch->table);
  gpu_batch_forget_contents (batch);
  g_free (batch);
}

static GpuScope *
find_scope (GpuCache *cache, GpuStream *stream)
{
  GpuScope *scope = stream ? gpu_stream_scope (stream) : NULL;

  return scope ? scope : gpu_thread_scope (cache);
}

/* A batch that is reused whole: its allocations are live, and it is @stream's turn to write. */
static GpuBatch *
take_whole (GpuCache *cache, const GpuBatch *like, const GpuImageSpec *specs, const GpuRequest *request)
{
  GpuScope *scope = find_scope (cache, request->stream);

  gpu_scope_lock (scope);
  GpuBatch *batch = gpu_scope_take_batch (scope, like, specs, request);
  gpu_scope_unlock (scope);
  for (unsigned i = 0; batch && i < batch->n_members; i++)
    gpu_cache_begin (gpu_batch_member (batch, i), request->host ? NULL : request->stream);
  return batch;
}

static GpuRequest
make_request (const GpuImageSpec *spec, GpuMemoryKind kind, GpuStream *stream)
{
  return (GpuRequest){.spec = spec,
                      .kind = kind,
                      .account = gpu_memory_kind_account (kind),
                      .stream = stream,
                      .complete = gpu_memory_kind_is_host (kind),
                      .host = gpu_memory_kind_is_host (kind)};
}

static GpuAllocation *
acquire_one (GpuCache *cache, const GpuRequest *request, GError **error)
{
  GpuAllocation *ready = gpu_cache_take_ready (cache, request);

  return ready ? ready : gpu_cache_acquire (cache, request, error);
}

GpuBatch *
gpu_batch_acquire (GpuDevice *device, const GpuImageSpec *specs, unsigned n, GpuMemoryKind kind, GpuStream *stream,
                   GError **error)
{
  g_return_val_if_fail (device != NULL && specs != NULL, NULL);

  if (!check_n (n, error) || !gpu_device_check (device, error) ||
      !gpu_image_check_request (device, specs, kind, stream, error))
    return NULL;

  GpuRequest request = make_request (specs, kind, stream);
  const GpuBatch like = {.n = n};
  GpuBatch *batch = take_whole (device->cache, &like, specs, &request);
  if (batch)
    return batch;

  /* What equals those of a batch that is there is valid. */
  for (unsigned i = 1; i < n; i++)
    if (!gpu_image_check_request (device, &specs[i], kind, stream, error))
      return NULL;
  batch = batch_new (n);
  batch->is_acquired = true;
  for (unsigned i = 0; i < n; i++) {
    request.spec = &specs[i];
    GpuAllocation *allocation = acquire_one (device->cache, &request, error);
    if (!allocation) {
      batch_free (batch);
      return NULL;
    }
    batch->images[i] = &allocation->image;
  }
  return batch;
}

/* Dense */

/* Bytes of an element and how many make a pixel of a plane; false for what is no array without its padding. */
static bool
find_layout (const GpuImageSpec *spec, uint32_t *planes, uint32_t *packed, GpuElement *element)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);

  if (!info || (!info->is_tensor && (info->bits != 8 || (info->is_yuv && info->n_channels > 1))))
    return false;
  *element = info->is_tensor ? info->element : GPU_ELEMENT_U8;
  if (info->is_tensor) {
    *planes = info->layout == GPU_LAYOUT_CHW ? spec->channels : 1;
    *packed = info->layout == GPU_LAYOUT_CHW ? 1 : spec->channels;
  } else {
    *planes = info->n_planes;
    *packed = info->plane[0].pixel_bytes;
  }
  return true;
}

/* The shape of one image and of all of them, without padding. */
static bool
make_dense_specs (const GpuImageSpec *asked, unsigned n, GpuImageSpec *one, GpuImageSpec *all, GError **error)
{
  const GpuFormatInfo *info = gpu_format_info (asked->format);
  uint32_t planes, packed;
  GpuElement element;

  if (!info || !find_layout (asked, &planes, &packed, &element)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "There is no dense batch of %s: convert to an RGB format, GRAY8 or a tensor",
                 info ? info->name : "an unknown format");
    return false;
  }
  if (info->is_tensor ? !gpu_image_spec_init_tensor (one, info->element, info->layout, asked->channels, asked->width,
                                                     asked->height, error)
                      : !gpu_image_spec_init (one, asked->format, asked->width, asked->height, 1, error))
    return false;

  const uint64_t rows = (uint64_t)n * planes * asked->height;
  if (rows > G_MAXINT32) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A dense batch of %u images of %ux%u has %" G_GUINT64_FORMAT " rows, more than the %d that one "
                 "image can have: use fewer images",
                 n, asked->width, asked->height, rows, G_MAXINT32);
    return false;
  }
  return gpu_image_spec_init_tensor (all, element, packed > 1 ? GPU_LAYOUT_HWC : GPU_LAYOUT_CHW, packed, asked->width,
                                     (uint32_t)rows, error);
}

/* The images of a dense batch, one after the other in @batch->whole. */
static void
cut (GpuBatch *batch, const GpuImageSpec *one)
{
  GpuAllocation *allocation = batch->whole->allocation;

  for (unsigned i = 0; i < batch->n; i++) {
    GpuImage *view = gpu_view_new (allocation->device->cache);

    view->allocation = allocation;
    view->spec = *one;
    view->spec.alignment = 1;
    view->data = batch->whole->data + i * one->size;
    gpu_image_ref (batch->whole);
    batch->images[i] = view;
  }
}

GpuBatch *
gpu_batch_acquire_dense (GpuDevice *device, const GpuImageSpec *spec, unsigned n, GpuMemoryKind kind, GpuStream *stream,
                         GError **error)
{
  GpuImageSpec one, all;

  g_return_val_if_fail (device != NULL && spec != NULL, NULL);

  if (!check_n (n, error) || !gpu_device_check (device, error) || !make_dense_specs (spec, n, &one, &all, error) ||
      !gpu_image_check_request (device, &all, kind, stream, error))
    return NULL;

  const GpuRequest request = make_request (&all, kind, stream);
  const GpuBatch like = {.n = n, .spec = one};
  GpuBatch *batch = take_whole (device->cache, &like, &all, &request);
  if (!batch) {
    GpuAllocation *allocation = acquire_one (device->cache, &request, error);
    if (!allocation)
      return NULL;
    batch = batch_new (n);
    batch->is_acquired = true;
    batch->spec = one;
    batch->whole = &allocation->image;
  }
  cut (batch, &one);
  return batch;
}

GpuBatch *
gpu_batch_new (GpuImage *const *images, unsigned n, GError **error)
{
  g_return_val_if_fail (images != NULL, NULL);

  if (!check_n (n, error))
    return NULL;
  for (unsigned i = 1; i < n; i++)
    if (gpu_image_device (images[i]) != gpu_image_device (images[0])) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                   "Image %u of a batch is in memory of %s and the first one in that of %s: copy it there first", i,
                   gpu_device_name (gpu_image_device (images[i])), gpu_device_name (gpu_image_device (images[0])));
      return NULL;
    }

  GpuBatch *batch = batch_new (n);
  for (unsigned i = 0; i < n; i++)
    batch->images[i] = gpu_image_ref (images[i]);
  return batch;
}

/* References */

GpuBatch *
gpu_batch_ref (GpuBatch *batch)
{
  g_return_val_if_fail (batch != NULL, NULL);

  atomic_fetch_add_explicit (&batch->refs, 1, memory_order_relaxed);
  return batch;
}

static bool
are_all_of (const GpuBatch *batch, const GpuScope *scope)
{
  for (unsigned i = 0; i < batch->n_members; i++)
    if (gpu_batch_member (batch, i)->scope != scope)
      return false;
  return true;
}

/* Makes the batch one of its images' scope, if they have the same. Their references are then the caller's. */
static bool
leave_to_scope (GpuBatch *batch)
{
  GpuScope *scope = gpu_batch_member (batch, 0)->scope;

  gpu_scope_lock (scope);
  const bool kept = !scope->ended && scope->type != GPU_SCOPE_SHARED && are_all_of (batch, scope);
  if (kept) {
    for (unsigned i = 0; i < batch->n_members; i++)
      gpu_batch_member (batch, i)->batch = batch;
    batch->n_filed = 0;
    gpu_list_append (&scope->batches, &batch->by_scope);
  }
  gpu_scope_unlock (scope);
  return kept;
}

void
gpu_batch_unref (GpuBatch *batch)
{
  GpuImage *few[FEW];
  g_autofree GpuImage **many = NULL;

  if (!batch || atomic_fetch_sub_explicit (&batch->refs, 1, memory_order_acq_rel) != 1)
    return;
  if (!batch->is_acquired) {
    batch_free (batch);
    return;
  }

  if (batch->whole)
    for (unsigned i = 0; i < batch->n; i++)
      gpu_image_unref (g_steal_pointer (&batch->images[i]));
  /* The table may come from where the batch was worked on. */
  if (batch->table && batch->table->allocation->scope != gpu_batch_member (batch, 0)->scope) {
    gpu_image_unref (g_steal_pointer (&batch->table));
    gpu_batch_forget_contents (batch);
  }
  const unsigned n = batch->n_members = (batch->whole ? 1 : batch->n) + (batch->table != NULL);
  GpuImage **members = few;
  if (n > FEW)
    members = many = g_new (GpuImage *, n);
  for (unsigned i = 0; i < n; i++)
    members[i] = &gpu_batch_member (batch, i)->image;

  /* From then on it is the scope's, and may be gone at any time. */
  if (!leave_to_scope (batch)) {
    batch_free (batch);
    return;
  }
  for (unsigned i = 0; i < n; i++)
    gpu_image_unref (members[i]);
}

GpuDevice *
gpu_batch_device (const GpuBatch *batch)
{
  return gpu_image_device (batch->images[0]);
}

unsigned
gpu_batch_size (const GpuBatch *batch)
{
  return batch->n;
}

GpuImage *
gpu_batch_image (const GpuBatch *batch, unsigned i)
{
  g_return_val_if_fail (i < batch->n, NULL);

  return batch->images[i];
}

GpuImage *
gpu_batch_dense_image (const GpuBatch *batch)
{
  return batch->whole;
}

/* The table */

/* Complete (rule 17): what the last reader of such memory has still to read must not be overwritten. */
static GpuImage *
acquire_bytes (GpuDevice *device, size_t size, GpuMemoryKind kind, GpuStream *stream, GError **error)
{
  GpuImageSpec spec;

  if (!gpu_image_spec_init (&spec, GPU_FORMAT_GRAY8, (uint32_t)size, 1, 0, error))
    return NULL;
  GpuRequest request = make_request (&spec, kind, stream);
  request.complete = true;
  GpuAllocation *allocation = acquire_one (device->cache, &request, error);
  return allocation ? &allocation->image : NULL;
}

static bool
is_same (const GByteArray *one, const GByteArray *other)
{
  return one->len == other->len && !memcmp (one->data, other->data, one->len);
}

bool
gpu_batch_write_table (GpuBatch *batch, GpuStream *stream, GByteArray *contents, GError **error)
{
  if (batch->contents && is_same (batch->contents, contents))
    return true;

  GpuDevice *device = gpu_stream_device (stream);
  size_t room = MIN_TABLE;
  while (room < contents->len)
    room *= 2;
  if (batch->table && (batch->table->spec.width != room || !gpu_image_is_complete (batch->table, GPU_ACCESS_WRITE))) {
    gpu_image_unref (batch->table);
    batch->table = NULL;
  }
  gpu_batch_forget_contents (batch);
  if (!batch->table)
    batch->table = acquire_bytes (device, room, GPU_MEMORY_STREAM_ORDERED, stream, error);
  GpuImage *staging = batch->table ? acquire_bytes (device, room, GPU_MEMORY_HOST, stream, error) : NULL;
  if (!staging)
    return false;

  memcpy (gpu_image_data (staging), contents->data, contents->len);
  const bool ok = gpu_image_copy (stream, staging, batch->table, error);
  gpu_image_unref (staging);
  if (ok)
    batch->contents = g_byte_array_ref (contents);
  return ok;
}
