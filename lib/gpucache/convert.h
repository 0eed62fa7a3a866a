/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion: between colour formats, and between the element types of tensors.
 */
#pragma once

#include <gpucache/batch.h>
#include <gpucache/format.h>
#include <gpucache/image.h>

G_BEGIN_DECLS

/**
 * GpuMatrix:
 *
 * How Y, Cb and Cr are made of R', G' and B'. BT.2020 is its non-constant luminance.
 */
typedef enum {
  GPU_MATRIX_BT709,
  GPU_MATRIX_BT601,
  GPU_MATRIX_BT2020,
} GpuMatrix;

#define GPU_N_MATRICES 3

/**
 * GpuRange:
 * @GPU_RANGE_DEFAULT: full for RGB and GRAY8, limited for the others, as in GStreamer
 * @GPU_RANGE_FULL: 0 to 255 (1023 for 10 bits)
 * @GPU_RANGE_LIMITED: 16 to 235, chroma 16 to 240 (four times that for 10 bits)
 */
typedef enum {
  GPU_RANGE_DEFAULT,
  GPU_RANGE_FULL,
  GPU_RANGE_LIMITED,
} GpuRange;

#define GPU_N_RANGES 3

/**
 * GpuChromaSite:
 * @GPU_CHROMA_SITE_LEFT: in every second column, between two rows (MPEG-2, H.264 and H.265 by default)
 * @GPU_CHROMA_SITE_CENTER: in the middle of four pixels (JPEG, MPEG-1)
 * @GPU_CHROMA_SITE_TOP_LEFT: in every second column and row (BT.2020)
 *
 * Where the chroma samples of 4:2:0 formats lie. Missing ones are interpolated linearly, from the two or four nearest.
 * Of several pixels, a chroma sample is the mean of the pair on both sides of it, or, in a direction in which it lies
 * on a pixel, has that one with weight 1/2 and its two neighbours with 1/4. Edges are replicated.
 */
typedef enum {
  GPU_CHROMA_SITE_LEFT,
  GPU_CHROMA_SITE_CENTER,
  GPU_CHROMA_SITE_TOP_LEFT,
} GpuChromaSite;

#define GPU_N_CHROMA_SITES 3

/** What an image's numbers mean. Primaries and transfer functions are left as they are. Zero-initialised it is the
 * default; what a format has no use for is not looked at. */
typedef struct {
  GpuMatrix matrix;
  GpuRange range;
  GpuChromaSite chroma_site;
} GpuColorimetry;

/**
 * GpuConvert:
 * @src: what the source's numbers mean
 * @dst: what the destination's are to mean
 * @scale: between tensors, each element is multiplied by this
 * @offset: and then this is added
 */
typedef struct {
  GpuColorimetry src;
  GpuColorimetry dst;
  float scale;
  float offset;
} GpuConvert;

/** Default colorimetries, scale 1, offset 0. */
GPU_API void gpu_convert_init (GpuConvert *params);

/**
 * gpu_convert:
 * @src: a picture of any format, or a tensor
 * @dst: a picture of any format and the same size, or a tensor of the same layout, channels and size; elsewhere in
 * memory
 * @params: (nullable): NULL for what gpu_convert_init() sets
 *
 * Pictures: each sample is the exact result rounded, and saturated to what its bits can hold, with an error of less
 * than 0.2 in its last place besides the rounding. In integers, so that every device gives the same bytes. Between YUV
 * formats of the same matrix and chroma site each sample is converted by itself, and is left as it is where range and
 * bits are the same, too. GRAY8 is a Y without chroma. Alpha is dropped, kept or made 255; so are the padding bytes
 * (the x of RGBx).
 *
 * Tensors: in single precision; each step rounds to nearest, ties to even. To 8 bits, the result saturates, and a NaN
 * becomes 0.
 *
 * Between pictures and tensors: gpu_normalize() and gpu_reformat(). No host wait.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_convert (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuConvert *params, GError **error);

/**
 * gpu_convert_batch:
 * @params: (nullable): one for all images, or one for each
 * @n: how many those are: 1, or the batch's size
 *
 * gpu_convert() of each image of @src to that of @dst, in one launch for each sort of conversion: between RGB formats,
 * to subsampled formats, from them, from plane to plane.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_convert_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const GpuConvert *params, unsigned n,
                                GError **error);

/**
 * gpu_convert_color:
 * @color: R, G, B, A of full range
 * @format: of a picture
 * @colorimetry: (nullable): of the picture; NULL for the default
 * @values: (out): the colour in the format's channels: R, G, B, A, or Y, U, V, in 8 bits
 *
 * For borders: see GpuResize.
 */
GPU_API void gpu_convert_color (const uint8_t color[GPU_MAX_CHANNELS], GpuFormat format,
                                const GpuColorimetry *colorimetry, uint8_t values[GPU_MAX_CHANNELS]);

G_END_DECLS
