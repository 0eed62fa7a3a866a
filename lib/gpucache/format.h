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
 * Pictures: byte order is memory order, as in GStreamer's GstVideoFormat of the same name: RGBA has R in the lowest
 * address. P010_10LE keeps 10 bits in the upper ones of 16; the lower 6 are copied with pixels that are copied, and
 * elsewhere not looked at and written as zeros.
 *
 * Tensors: one format for each type of element and order of dimensions; channels, 1 to GPU_MAX_CHANNELS, are the
 * spec's.
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
  GPU_FORMAT_P010_10LE,
  GPU_FORMAT_RGBP,
  GPU_FORMAT_GBR,
  GPU_FORMAT_U8_HWC,
  GPU_FORMAT_F16_HWC,
  GPU_FORMAT_F32_HWC,
  GPU_FORMAT_U8_CHW,
  GPU_FORMAT_F16_CHW,
  GPU_FORMAT_F32_CHW,
} GpuFormat;

#define GPU_N_FORMATS 23

/** Formats from 1 up to this one are pictures; those after it are tensors. */
#define GPU_LAST_PICTURE_FORMAT GPU_FORMAT_GBR

/**
 * GpuElement:
 * @GPU_ELEMENT_U8: unsigned 8 bits
 * @GPU_ELEMENT_F16: IEEE half precision, in the machine's byte order
 * @GPU_ELEMENT_F32: IEEE single precision, in the machine's byte order
 *
 * What a tensor's elements are.
 */
typedef enum {
  GPU_ELEMENT_U8,
  GPU_ELEMENT_F16,
  GPU_ELEMENT_F32,
} GpuElement;

#define GPU_N_ELEMENTS 3

/**
 * GpuLayout:
 * @GPU_LAYOUT_HWC: interleaved: the channels of a pixel are neighbours; rows of pixels
 * @GPU_LAYOUT_CHW: planar: the rows of the first channel, then those of the second, and so on
 */
typedef enum {
  GPU_LAYOUT_HWC,
  GPU_LAYOUT_CHW,
} GpuLayout;

#define GPU_N_LAYOUTS 2

/**
 * GpuPlaneInfo:
 * @pixel_bytes: bytes from one sample of this plane to the next in its row; of a tensor, an element's
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
 * @name: GStreamer's name for it, such as "NV12"; of a tensor, such as "float32 CHW tensor"
 * @n_planes: 1 to GPU_MAX_PLANES; a tensor has one, in which the channels' rows are one below the other if it is CHW
 * @n_channels: colour channels and alpha, padding excluded: 1, 3 or 4; 0 for tensors: see the spec
 * @has_alpha: whether one of them is alpha
 * @plane: one entry a plane
 * @channel: the byte of R, G, B, A (of Y, U, V) within a pixel of its plane; -1 where there is none, and for tensors
 * @channel_plane: the plane of R, G, B, A (of Y, U, V); 0 where there is none
 * @is_yuv: whether the channels are Y, U, V, or Y alone
 * @is_tensor: whether it is a tensor, of type @element and layout @layout
 * @bits: of a sample or element that have a meaning: 8, 10, 16 or 32
 * @element: of a tensor
 * @layout: of a tensor
 */
typedef struct {
  const char *name;
  uint8_t n_planes;
  uint8_t n_channels;
  bool has_alpha;
  GpuPlaneInfo plane[GPU_MAX_PLANES];
  int8_t channel[GPU_MAX_CHANNELS];
  uint8_t channel_plane[GPU_MAX_CHANNELS];
  bool is_yuv;
  bool is_tensor;
  uint8_t bits;
  GpuElement element;
  GpuLayout layout;
} GpuFormatInfo;

/** Returns the description of @format, or NULL if there is no such format; static. */
GPU_API const GpuFormatInfo *gpu_format_info (GpuFormat format);

/** Returns the format of that name, or GPU_FORMAT_UNKNOWN. */
GPU_API GpuFormat gpu_format_from_name (const char *name);

/** Returns the format of tensors of @element in @layout, or GPU_FORMAT_UNKNOWN if there is no such type or layout. */
GPU_API GpuFormat gpu_format_for_tensor (GpuElement element, GpuLayout layout);

/** Returns the type's name in NNStreamer's caps: "uint8", "float16", "float32"; static; NULL if there is no such type.
 */
GPU_API const char *gpu_element_name (GpuElement element);

/** Returns the bytes of an element of that type. */
GPU_API size_t gpu_element_bytes (GpuElement element);

/**
 * GpuImageSpec:
 * @format: the format
 * @width: in pixels, at least 1
 * @height: in pixels, at least 1
 * @channels: of a tensor, 1 to GPU_MAX_CHANNELS; 0 for pictures
 * @alignment: the address of the memory is a multiple of this power of two, in bytes
 * @stride: bytes from one row of a plane to the next; zero for planes that the format lacks
 * @offset: bytes from the start of the memory to the plane's first sample; zero for planes that the format lacks
 * @size: bytes that the image needs in all
 *
 * The shape of an image. Two images match exactly (rule 4) if their specs are equal member by member.
 * Fill it with gpu_image_spec_init(), gpu_image_spec_init_full() or gpu_image_spec_init_tensor(), which zero what is
 * not used.
 */
typedef struct {
  GpuFormat format;
  uint32_t width;
  uint32_t height;
  uint32_t channels;
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

/**
 * gpu_image_spec_init_tensor:
 * @spec: (out): filled in
 * @element: the type of its elements
 * @layout: the order of its dimensions
 * @channels: 1 to GPU_MAX_CHANNELS
 * @width: in pixels, at least 1
 * @height: in pixels, at least 1
 * @error: (nullable): GPU_ERROR_INVALID if there is no such type or layout, or a size is out of range or overflows
 *
 * Tensors are dense: rows and channels follow one another without padding, so that anybody can take their memory for an
 * array. Memory of them is aligned to GPU_DEFAULT_ALIGNMENT.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_image_spec_init_tensor (GpuImageSpec *spec, GpuElement element, GpuLayout layout, uint32_t channels,
                                         uint32_t width, uint32_t height, GError **error);

/** Whether two specs are an exact match (rule 4). */
GPU_API bool gpu_image_spec_equal (const GpuImageSpec *a, const GpuImageSpec *b);

/** Width of a plane in samples: the image's, subsampled and rounded up. A tensor's is its width in pixels. */
GPU_API uint32_t gpu_image_spec_plane_width (const GpuImageSpec *spec, unsigned plane);

/** Height of a plane in rows: of a CHW tensor, the rows of all channels. */
GPU_API uint32_t gpu_image_spec_plane_height (const GpuImageSpec *spec, unsigned plane);

/** Bytes of a plane's row that hold samples, padding excluded. */
GPU_API size_t gpu_image_spec_row_bytes (const GpuImageSpec *spec, unsigned plane);

G_END_DECLS
