/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What image operations share.
 */
#include "op-priv.h"

static bool
check_device (const char *name, const char *what, GpuStream *stream, GpuImage *image, GError **error)
{
  GpuDevice *device = gpu_stream_device (stream);

  if (gpu_image_device (image) == device)
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "%s cannot use a %s image of %s on a stream of %s: use a stream of the image's device", name, what,
               gpu_device_name (gpu_image_device (image)), gpu_device_name (device));
  return false;
}

bool
gpu_op_check_devices (const char *name, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  return check_device (name, "source", stream, src, error) && check_device (name, "destination", stream, dst, error);
}

bool
gpu_op_check_picture (const char *name, GpuImage *src, GError **error)
{
  const GpuFormatInfo *info = gpu_format_info (gpu_image_spec (src)->format);

  if (!info->is_tensor)
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "%s works on pictures, not on a %s: apply it before the picture becomes a tensor", name, info->name);
  return false;
}

bool
gpu_op_check (const char *name, GpuStream *stream, GpuImage *src, GpuImage *dst, GError **error)
{
  GpuFormat from = gpu_image_spec (src)->format;
  GpuFormat to = gpu_image_spec (dst)->format;

  if (!gpu_op_check_devices (name, stream, src, dst, error) || !gpu_op_check_picture (name, src, error))
    return false;
  if (from != to) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "%s does not convert %s to %s: use a destination of the source's format", name,
                 gpu_format_info (from)->name, gpu_format_info (to)->name);
    return false;
  }
  return true;
}

bool
gpu_op_check_size (const char *name, GpuImage *dst, uint32_t width, uint32_t height, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (dst);

  if (spec->width == width && spec->height == height)
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "%s needs a destination of %ux%u pixels, not of %ux%u", name, width,
               height, spec->width, spec->height);
  return false;
}

uint8_t *
gpu_op_plane (GpuImage *image, unsigned plane)
{
  return (uint8_t *)gpu_image_data (image) + gpu_image_spec (image)->offset[plane];
}

typedef struct {
  uintptr_t address;
  size_t stride;
  size_t row_bytes;
  size_t rows;
} Samples;

static Samples
plane_samples (GpuImage *image, unsigned plane)
{
  const GpuImageSpec *spec = gpu_image_spec (image);

  return (Samples){(uintptr_t)gpu_op_plane (image, plane), spec->stride[plane], gpu_image_spec_row_bytes (spec, plane),
                   gpu_image_spec_plane_height (spec, plane)};
}

static bool
samples_overlap (Samples a, Samples b)
{
  if (a.address > b.address) {
    Samples swap = a;
    a = b;
    b = swap;
  }

  size_t distance = b.address - a.address;
  if (distance >= (a.rows - 1) * a.stride + a.row_bytes)
    return false;
  if (a.stride != b.stride)
    return true;

  /* b's first row begins in row `row` of a, at `column`. It touches that row of a if it begins before that row's
   * samples end, and the next one if it goes on into it. Later rows of b lie as the first one does. */
  size_t row = distance / a.stride;
  size_t column = distance % a.stride;
  return column < a.row_bytes || (column + b.row_bytes > a.stride && row + 1 < a.rows);
}

bool
gpu_op_bytes_are_apart (GpuImage *one, GpuImage *other)
{
  const uintptr_t a = (uintptr_t)gpu_image_data (one), b = (uintptr_t)gpu_image_data (other);

  return a < b ? b - a >= gpu_image_spec (one)->size : a - b >= gpu_image_spec (other)->size;
}

bool
gpu_op_check_apart (const char *name, GpuImage *src, GpuImage *dst, GError **error)
{
  if (gpu_op_bytes_are_apart (src, dst))
    return true;

  unsigned n_src = gpu_format_info (gpu_image_spec (src)->format)->n_planes;
  unsigned n_dst = gpu_format_info (gpu_image_spec (dst)->format)->n_planes;

  for (unsigned i = 0; i < n_src; i++)
    for (unsigned j = 0; j < n_dst; j++)
      if (samples_overlap (plane_samples (src, i), plane_samples (dst, j))) {
        g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                     "%s cannot write over its source: plane %u of the destination lies on plane %u of the source",
                     name, j, i);
        return false;
      }
  return true;
}

bool
gpu_op_same_memory (GpuImage *src, GpuImage *dst)
{
  const GpuImageSpec *a = gpu_image_spec (src);
  const GpuImageSpec *b = gpu_image_spec (dst);

  if (a->format != b->format || a->width != b->width || a->height != b->height || a->channels != b->channels)
    return false;
  for (unsigned i = 0; i < gpu_format_info (a->format)->n_planes; i++)
    if (gpu_op_plane (src, i) != gpu_op_plane (dst, i) || a->stride[i] != b->stride[i])
      return false;
  return true;
}

static void
set_tensor (GpuPixels *pixels, GpuImage *image, const GpuFormatInfo *info)
{
  const GpuImageSpec *spec = gpu_image_spec (image);
  bool planar = info->layout == GPU_LAYOUT_CHW;

  pixels->channels = spec->channels;
  pixels->group = planar ? 1 : spec->channels;
  for (unsigned c = 0; c < spec->channels; c++) {
    pixels->data[c] =
        gpu_op_plane (image, 0) + c * (planar ? spec->height * spec->stride[0] : gpu_element_bytes (info->element));
    pixels->stride[c] = spec->stride[0];
    pixels->at[c] = planar ? 0 : c;
  }
}

static void
set_picture (GpuPixels *pixels, GpuImage *image, const GpuFormatInfo *info)
{
  const GpuImageSpec *spec = gpu_image_spec (image);

  pixels->channels = info->n_channels;
  pixels->group = info->plane[0].pixel_bytes / pixels->size;
  for (unsigned c = 0; c < info->n_channels; c++) {
    unsigned plane = info->channel_plane[c];

    pixels->data[c] = gpu_op_plane (image, plane) + info->channel[c];
    pixels->stride[c] = spec->stride[plane];
    pixels->at[c] = (uint32_t)info->channel[c] / pixels->size;
  }
}

GpuPixels
gpu_op_pixels (GpuImage *image)
{
  const GpuFormatInfo *info = gpu_format_info (gpu_image_spec (image)->format);
  GpuPixels pixels = {.size = (info->bits + 7u) / 8};
  uintptr_t misaligned = 0;

  if (info->is_tensor)
    set_tensor (&pixels, image, info);
  else
    set_picture (&pixels, image, info);
  pixels.step = pixels.group * pixels.size;
  for (unsigned c = 0; c < pixels.channels; c++)
    misaligned |= ((uintptr_t)pixels.data[c] - (size_t)pixels.at[c] * pixels.size) | pixels.stride[c];
  pixels.vector = !(misaligned & (pixels.group == 1 ? 4 * pixels.size - 1 : 15));
  return pixels;
}

bool
gpu_op_check_elements (const char *name, GpuImage *image, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (image);
  const GpuFormatInfo *info = gpu_format_info (spec->format);
  const size_t size = (info->bits + 7u) / 8;

  for (unsigned i = 0; i < info->n_planes; i++)
    if ((uintptr_t)gpu_op_plane (image, i) % size || spec->stride[i] % size) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                   "%s needs the address and stride of a %s at multiples of %zu bytes, not %p and %zu", name,
                   info->name, size, (void *)gpu_op_plane (image, i), spec->stride[i]);
      return false;
    }
  return true;
}

GpuExtent
gpu_op_quad_extent (uint32_t width, uint64_t rows)
{
  return (GpuExtent){(width - 1) / 4 + 1, (uint32_t)MIN (rows, (uint64_t)GPU_OP_MAX_BLOCKS_Y * GPU_OP_QUAD_BLOCK_Y), 1};
}

GpuExtent
gpu_op_quads_extent (uint32_t width, uint64_t rows)
{
  const uint64_t block = GPU_OP_QUAD_BLOCK_Y * GPU_OP_QUAD_ROWS;

  return gpu_op_quad_extent (width, (rows + block - 1) / block * GPU_OP_QUAD_BLOCK_Y);
}

const char *
gpu_op_channel_name (const GpuFormatInfo *info, unsigned channel)
{
  static const char *const rgb[] = {"R", "G", "B", "A"}, *const yuv[] = {"Y", "U", "V", "A"};

  return info->is_yuv ? yuv[channel] : rgb[channel];
}

GpuImage *
gpu_op_scratch (GpuStream *stream, GpuMemoryKind kind, size_t size, GError **error)
{
  /* A picture of one byte a pixel, whose width has to fit. */
  const size_t row = 65536;
  uint32_t width = (uint32_t)MIN (MAX (size, 1), row), height = (uint32_t)MAX ((size + row - 1) / row, 1);
  GpuImageSpec spec;

  if (!gpu_image_spec_init (&spec, GPU_FORMAT_GRAY8, width, height, 0, error))
    return NULL;
  return gpu_image_acquire (gpu_stream_device (stream), &spec, kind, stream, GPU_ACQUIRE_DEFAULT, error);
}

void
gpu_op_add_rows (GpuPixelRows *rows, unsigned plane, uint32_t n, unsigned block)
{
  rows->first[plane] = rows->total;
  rows->total += ((uint64_t)n + block - 1) / block * block;
  for (unsigned i = plane + 1; i < GPU_PIXEL_PLANES; i++)
    rows->first[i] = UINT64_MAX;
}

uint32_t
gpu_op_extent_y (const GpuPixelRows *rows, unsigned block)
{
  return (uint32_t)MIN (rows->total, (uint64_t)GPU_OP_MAX_BLOCKS_Y * block);
}
