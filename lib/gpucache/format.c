/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Image formats and image specs. All sizes are computed in size_t with overflow checks: a spec that this file has made
 * can be walked with plain arithmetic.
 */
#include "format.h"

#include <string.h>

/* A side fits GstVideoInfo's int; bytes fit a pointer difference. */
#define MAX_SIDE ((uint32_t)INT32_MAX)
#define MAX_SIZE ((size_t)PTRDIFF_MAX)

/* Name, planes, channels, alpha; bytes and shifts of each plane; the bytes of R, G, B, A or Y, U, V; their planes; YUV,
 * tensor; bits; element and layout. */
#define PACKED(name, n, alpha, bytes, ...)                                                                             \
  {                                                                                                                    \
    name, 1, n, alpha, {{bytes, 0, 0}}, {__VA_ARGS__}, .bits = 8                                                       \
  }
#define TENSOR(name, size, type, order)                                                                                \
  {                                                                                                                    \
    name, 1, 0, false, {{size, 0, 0}}, {-1, -1, -1, -1}, .is_tensor = true, .bits = 8 * (size), .element = type,       \
                                                         .layout = order                                               \
  }

/* clang-format off */
static const GpuFormatInfo formats[GPU_N_FORMATS] = {
    [GPU_FORMAT_GRAY8] = {"GRAY8", 1, 1, false, {{1, 0, 0}}, {0, -1, -1, -1}, .is_yuv = true, .bits = 8},
    [GPU_FORMAT_RGB] = PACKED ("RGB", 3, false, 3, 0, 1, 2, -1),
    [GPU_FORMAT_BGR] = PACKED ("BGR", 3, false, 3, 2, 1, 0, -1),
    [GPU_FORMAT_RGBA] = PACKED ("RGBA", 4, true, 4, 0, 1, 2, 3),
    [GPU_FORMAT_BGRA] = PACKED ("BGRA", 4, true, 4, 2, 1, 0, 3),
    [GPU_FORMAT_ARGB] = PACKED ("ARGB", 4, true, 4, 1, 2, 3, 0),
    [GPU_FORMAT_ABGR] = PACKED ("ABGR", 4, true, 4, 3, 2, 1, 0),
    [GPU_FORMAT_RGBX] = PACKED ("RGBx", 3, false, 4, 0, 1, 2, -1),
    [GPU_FORMAT_BGRX] = PACKED ("BGRx", 3, false, 4, 2, 1, 0, -1),
    [GPU_FORMAT_XRGB] = PACKED ("xRGB", 3, false, 4, 1, 2, 3, -1),
    [GPU_FORMAT_XBGR] = PACKED ("xBGR", 3, false, 4, 3, 2, 1, -1),
    [GPU_FORMAT_NV12] = {"NV12", 2, 3, false, {{1, 0, 0}, {2, 1, 1}}, {0, 0, 1, -1}, {0, 1, 1}, true, .bits = 8},
    [GPU_FORMAT_I420] = {"I420", 3, 3, false, {{1, 0, 0}, {1, 1, 1}, {1, 1, 1}}, {0, 0, 0, -1}, {0, 1, 2}, true,
                         .bits = 8},
    [GPU_FORMAT_P010_10LE] = {"P010_10LE", 2, 3, false, {{2, 0, 0}, {4, 1, 1}}, {0, 0, 2, -1}, {0, 1, 1}, true,
                              .bits = 10},
    [GPU_FORMAT_RGBP] = {"RGBP", 3, 3, false, {{1, 0, 0}, {1, 0, 0}, {1, 0, 0}}, {0, 0, 0, -1}, {0, 1, 2}, .bits = 8},
    [GPU_FORMAT_GBR] = {"GBR", 3, 3, false, {{1, 0, 0}, {1, 0, 0}, {1, 0, 0}}, {0, 0, 0, -1}, {2, 0, 1}, .bits = 8},
    [GPU_FORMAT_U8_HWC] = TENSOR ("uint8 HWC tensor", 1, GPU_ELEMENT_U8, GPU_LAYOUT_HWC),
    [GPU_FORMAT_F16_HWC] = TENSOR ("float16 HWC tensor", 2, GPU_ELEMENT_F16, GPU_LAYOUT_HWC),
    [GPU_FORMAT_F32_HWC] = TENSOR ("float32 HWC tensor", 4, GPU_ELEMENT_F32, GPU_LAYOUT_HWC),
    [GPU_FORMAT_U8_CHW] = TENSOR ("uint8 CHW tensor", 1, GPU_ELEMENT_U8, GPU_LAYOUT_CHW),
    [GPU_FORMAT_F16_CHW] = TENSOR ("float16 CHW tensor", 2, GPU_ELEMENT_F16, GPU_LAYOUT_CHW),
    [GPU_FORMAT_F32_CHW] = TENSOR ("float32 CHW tensor", 4, GPU_ELEMENT_F32, GPU_LAYOUT_CHW),
};
/* clang-format on */

const GpuFormatInfo *
gpu_format_info (GpuFormat format)
{
  if ((unsigned)format >= GPU_N_FORMATS || !formats[format].name)
    return NULL;
  return &formats[format];
}

GpuFormat
gpu_format_from_name (const char *name)
{
  if (name)
    for (unsigned i = 0; i < GPU_N_FORMATS; i++)
      if (formats[i].name && !strcmp (formats[i].name, name))
        return (GpuFormat)i;
  return GPU_FORMAT_UNKNOWN;
}

GpuFormat
gpu_format_for_tensor (GpuElement element, GpuLayout layout)
{
  if ((unsigned)element >= GPU_N_ELEMENTS || (unsigned)layout >= GPU_N_LAYOUTS)
    return GPU_FORMAT_UNKNOWN;
  return (GpuFormat)(GPU_FORMAT_U8_HWC + GPU_N_ELEMENTS * (unsigned)layout + (unsigned)element);
}

const char *
gpu_element_name (GpuElement element)
{
  static const char *const names[] = {"uint8", "float16", "float32"};

  return (unsigned)element < GPU_N_ELEMENTS ? names[element] : NULL;
}

size_t
gpu_element_bytes (GpuElement element)
{
  return element == GPU_ELEMENT_U8 ? 1 : element == GPU_ELEMENT_F16 ? 2 : 4;
}

static uint32_t
subsampled (uint32_t size, unsigned shift)
{
  return (uint32_t)(((uint64_t)size + (1u << shift) - 1) >> shift);
}

uint32_t
gpu_image_spec_plane_width (const GpuImageSpec *spec, unsigned plane)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);

  return info && plane < info->n_planes ? subsampled (spec->width, info->plane[plane].w_shift) : 0;
}

uint32_t
gpu_image_spec_plane_height (const GpuImageSpec *spec, unsigned plane)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);

  if (!info || plane >= info->n_planes)
    return 0;
  if (info->is_tensor && info->layout == GPU_LAYOUT_CHW)
    return spec->height * spec->channels;
  return subsampled (spec->height, info->plane[plane].h_shift);
}

size_t
gpu_image_spec_row_bytes (const GpuImageSpec *spec, unsigned plane)
{
  const GpuFormatInfo *info = gpu_format_info (spec->format);

  if (!info || plane >= info->n_planes)
    return 0;
  size_t bytes = (size_t)gpu_image_spec_plane_width (spec, plane) * info->plane[plane].pixel_bytes;
  return info->is_tensor && info->layout == GPU_LAYOUT_HWC ? bytes * spec->channels : bytes;
}

static bool
check_size (GpuFormat format, uint32_t width, uint32_t height, GError **error)
{
  if (!gpu_format_info (format)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "There is no image format number %d: use one of GpuFormat",
                 (int)format);
    return false;
  }
  if (width < 1 || width > MAX_SIDE) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "An image cannot be %u pixels wide: use 1 to %u", width,
                 MAX_SIDE);
    return false;
  }
  if (height < 1 || height > MAX_SIDE) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "An image cannot be %u pixels high: use 1 to %u", height,
                 MAX_SIDE);
    return false;
  }
  return true;
}

static bool
check_picture (GpuFormat format, uint32_t width, uint32_t height, GError **error)
{
  if (!check_size (format, width, height, error))
    return false;
  if (gpu_format_info (format)->is_tensor) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "A %s has a number of channels and no strides: use gpu_image_spec_init_tensor()",
                 gpu_format_info (format)->name);
    return false;
  }
  return true;
}

static bool
set_too_large (GError **error, const GpuImageSpec *spec)
{
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "A %s image of %ux%u pixels with this layout needs more bytes than can be addressed: use a smaller one",
               gpu_format_info (spec->format)->name, spec->width, spec->height);
  return false;
}

static bool
align_up (size_t value, size_t alignment, size_t *result)
{
  if (__builtin_add_overflow (value, alignment - 1, result))
    return false;
  *result &= ~(alignment - 1);
  return true;
}

bool
gpu_image_spec_init (GpuImageSpec *spec, GpuFormat format, uint32_t width, uint32_t height, size_t alignment,
                     GError **error)
{
  GpuImageSpec out = {.format = format, .width = width, .height = height};

  if (!check_picture (format, width, height, error))
    return false;
  if (!alignment)
    alignment = GPU_DEFAULT_ALIGNMENT;
  if (alignment & (alignment - 1)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "An alignment of %zu bytes is not a power of two", alignment);
    return false;
  }

  out.alignment = alignment;
  for (unsigned i = 0; i < gpu_format_info (format)->n_planes; i++) {
    size_t bytes;

    out.offset[i] = out.size;
    if (!align_up (gpu_image_spec_row_bytes (&out, i), alignment, &out.stride[i]) ||
        __builtin_mul_overflow (out.stride[i], (size_t)gpu_image_spec_plane_height (&out, i), &bytes) ||
        __builtin_add_overflow (out.size, bytes, &out.size) || out.size > MAX_SIZE)
      return set_too_large (error, &out);
  }

  *spec = out;
  return true;
}

bool
gpu_image_spec_init_full (GpuImageSpec *spec, GpuFormat format, uint32_t width, uint32_t height, const size_t *stride,
                          const size_t *offset, size_t size, GError **error)
{
  GpuImageSpec out = {.format = format, .width = width, .height = height, .alignment = 1};
  size_t needed = 0;

  if (!check_picture (format, width, height, error))
    return false;

  for (unsigned i = 0; i < gpu_format_info (format)->n_planes; i++) {
    size_t row_bytes = gpu_image_spec_row_bytes (&out, i);
    size_t end;

    if (stride[i] < row_bytes) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                   "A stride of %zu bytes in plane %u is less than a row of the %s image, %u pixels wide: it needs %zu",
                   stride[i], i, gpu_format_info (format)->name, width, row_bytes);
      return false;
    }
    if (__builtin_mul_overflow (stride[i], (size_t)gpu_image_spec_plane_height (&out, i) - 1, &end) ||
        __builtin_add_overflow (end, row_bytes, &end) || __builtin_add_overflow (end, offset[i], &end) ||
        end > MAX_SIZE)
      return set_too_large (error, &out);
    if (size && end > size) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                   "Plane %u of a %s image of %ux%u pixels ends %zu bytes into its memory, which has only %zu", i,
                   gpu_format_info (format)->name, width, height, end, size);
      return false;
    }
    out.stride[i] = stride[i];
    out.offset[i] = offset[i];
    needed = MAX (needed, end);
  }
  if (size > MAX_SIZE)
    return set_too_large (error, &out);
  out.size = size ? size : needed;

  *spec = out;
  return true;
}

bool
gpu_image_spec_init_tensor (GpuImageSpec *spec, GpuElement element, GpuLayout layout, uint32_t channels, uint32_t width,
                            uint32_t height, GError **error)
{
  GpuImageSpec out = {.format = gpu_format_for_tensor (element, layout),
                      .width = width,
                      .height = height,
                      .channels = channels,
                      .alignment = GPU_DEFAULT_ALIGNMENT};

  if (out.format == GPU_FORMAT_UNKNOWN) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "There is no tensor of element type %d and layout %d: use one of GpuElement and one of GpuLayout",
                 (int)element, (int)layout);
    return false;
  }
  if (channels < 1 || channels > GPU_MAX_CHANNELS) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "A tensor cannot have %u channels: use 1 to %d", channels,
                 GPU_MAX_CHANNELS);
    return false;
  }
  if (!check_size (out.format, width, height, error))
    return false;

  out.stride[0] = gpu_image_spec_row_bytes (&out, 0);
  if ((layout == GPU_LAYOUT_CHW && height > MAX_SIDE / channels) ||
      __builtin_mul_overflow (out.stride[0], (size_t)gpu_image_spec_plane_height (&out, 0), &out.size) ||
      out.size > MAX_SIZE)
    return set_too_large (error, &out);

  *spec = out;
  return true;
}

bool
gpu_image_spec_equal (const GpuImageSpec *a, const GpuImageSpec *b)
{
  return a->format == b->format && a->width == b->width && a->height == b->height && a->channels == b->channels &&
         a->alignment == b->alignment && a->size == b->size && !memcmp (a->stride, b->stride, sizeof a->stride) &&
         !memcmp (a->offset, b->offset, sizeof a->offset);
}
