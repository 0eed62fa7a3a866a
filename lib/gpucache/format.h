/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Image formats and image specs: how many bytes a picture needs and where each plane lies in them.
 * Pure arithmetic, no device.
 */
#pragma once

#include <gpucache/types.h>

G_BEGIN_DECLS

#define GPU_MAX_PLANES 4
#define GPU_MAX_CHANNELS 4

/** Row pitch and plane offset alignment when a caller asks for none, in bytes. */
#define GPU_DEFAULT_ALIGNMENT 256

/**
 * GpuFormat:
 *
 * Byte order is memory order, as in GStreamer's GstVideoFormat of the same name: RGBA has R in the lowest address.
 */
typedef enum {
  GPU_FORMAT_UNKNOWN,
  GPU_FORMAT_GRAY8,
  GPU_FORMAT_RGB,
  GPU_FORMAT_BGR,
  GPU_FORMAT_RGBA,
  GPU_FORMAT_BGRA,
  GPU_FORMAT_ARGB,
  GPU_FORMAT_ABGR,
  GPU_FORMAT_RGBX,
  GPU_FORMAT_BGRX,
  GPU_FORMAT_XRGB,
  GPU_FORMAT_XBGR,
  GPU_FORMAT_NV12,
  GPU_FORMAT_I420,
} GpuFormat;

#define GPU_N_FORMATS 14

/**
 * GpuPlaneInfo:
 * @pixel_bytes: bytes from one sample of this plane to the next in its row
 * @w_shift: log2 of the horizontal subsampling
 * @h_shift: log2 of the vertical subsampling
 */
typedef struct {
  uint8_t pixel_bytes;
  uint8_t w_shift;
  uint8_t h_shift;
} GpuPlaneInfo;

/**
 * GpuFormatInfo:
 * @name: GStreamer's name for it, such as "NV12"
 * @n_planes: 1 to GPU_MAX_PLANES
 * @n_channels: colour channels and alpha, padding excluded: 1, 3 or 4
 * @has_alpha: whether one of them is alpha
 * @plane: one entry a plane
 * @channel: for packed formats, the byte within a pixel of R, G, B, A (of Y for GRAY8); -1 where there is none
 */
typedef struct {
  const char *name;
  uint8_t n_planes;
  uint8_t n_channels;
  bool has_alpha;
  GpuPlaneInfo plane[GPU_MAX_PLANES];
  int8_t channel[GPU_MAX_CHANNELS];
} GpuFormatInfo;

/** Returns the description of @format, or NULL if there is no such format; static. */
GPU_API const GpuFormatInfo *gpu_format_info (GpuFormat format);

/** Returns the format of that name, or GPU_FORMAT_UNKNOWN. */
GPU_API GpuFormat gpu_format_from_name (const char *name);

/**
 * GpuImageSpec:
 * @format: the format
 * @width: in pixels, at least 1
 * @height: in pixels, at least 1
 * @alignment: the address of the memory is a multiple of this power of two, in bytes
 * @stride: bytes from one row of a plane to the next; zero for planes that the format lacks
 * @offset: bytes from the start of the memory to the plane's first sample; zero for planes that the format lacks
 * @size: bytes that the image needs in all
 *
 * The shape of an image. Two images match exactly (rule 4) if their specs are equal member by member.
 * Fill it with gpu_image_spec_init() or gpu_image_spec_init_full(), which zero what is not used.
 */
typedef struct {
  GpuFormat format;
  uint32_t width;
  uint32_t height;
  size_t alignment;
  size_t stride[GPU_MAX_PLANES];
  size_t offset[GPU_MAX_PLANES];
  size_t size;
} GpuImageSpec;

/**
 * gpu_image_spec_init:
 * @spec: (out): filled in
 * @format: a format
 * @width: in pixels, at least 1
 * @height: in pixels, at least 1
 * @alignment: of the memory, each plane and each row, in bytes, a power of two; 0 means GPU_DEFAULT_ALIGNMENT
 * @error: (nullable): GPU_ERROR_INVALID if a size is 0 or overflows, the format is unknown, or @alignment is wrong
 *
 * Lays the planes out one after the other. Chroma of odd sizes is rounded up, as in GstVideoInfo.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_image_spec_init (GpuImageSpec *spec, GpuFormat format, uint32_t width, uint32_t height,
                                  size_t alignment, GError **error);

/**
 * gpu_image_spec_init_full:
 * @stride: bytes a row, one for each plane of @format, each at least its row's bytes
 * @offset: bytes, one for each plane
 * @size: bytes of the memory in all, or 0 for what strides and offsets need; every plane must lie inside
 *
 * For memory that somebody else laid out (GstVideoMeta). Its alignment is 1.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_image_spec_init_full (GpuImageSpec *spec, GpuFormat format, uint32_t width, uint32_t height,
                                       const size_t *stride, const size_t *offset, size_t size, GError **error);

/** Whether two specs are an exact match (rule 4). */
GPU_API bool gpu_image_spec_equal (const GpuImageSpec *a, const GpuImageSpec *b);

/** Width of a plane in samples: the image's, subsampled and rounded up. */
GPU_API uint32_t gpu_image_spec_plane_width (const GpuImageSpec *spec, unsigned plane);

/** Height of a plane in rows. */
GPU_API uint32_t gpu_image_spec_plane_height (const GpuImageSpec *spec, unsigned plane);

/** Bytes of a plane's row that hold samples, padding excluded. */
GPU_API size_t gpu_image_spec_row_bytes (const GpuImageSpec *spec, unsigned plane);

G_END_DECLS
