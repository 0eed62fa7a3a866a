/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Scaling.
 */
#pragma once

#include <gpucache/batch.h>
#include <gpucache/format.h>
#include <gpucache/image.h>

G_BEGIN_DECLS

/**
 * GpuResizeFilter:
 * @GPU_RESIZE_NEAREST: the sample that lies nearest
 * @GPU_RESIZE_BILINEAR: a triangle of two samples' width; without antialias the mean of four samples, as videoscale has
 *   it, with more bits
 * @GPU_RESIZE_BOX: the mean of the samples that a sample of the destination covers
 * @GPU_RESIZE_HAMMING: Hamming window over a sinc, as sharp as bicubic without its rings, two samples wide
 * @GPU_RESIZE_BICUBIC: cubic with a = -1/2, four samples wide
 * @GPU_RESIZE_LANCZOS: sinc in the window of a wider one, six samples wide
 *
 * Sample centres are at (i + 1/2); the position in the source is (i + 1/2) * src / dst - 1/2.
 */
typedef enum {
  GPU_RESIZE_NEAREST,
  GPU_RESIZE_BILINEAR,
  GPU_RESIZE_BOX,
  GPU_RESIZE_HAMMING,
  GPU_RESIZE_BICUBIC,
  GPU_RESIZE_LANCZOS,
} GpuResizeFilter;

#define GPU_N_RESIZE_FILTERS 6

/** In pixels; all zero stands for the whole image. */
typedef struct {
  double x;
  double y;
  double width;
  double height;
} GpuResizeBox;

typedef struct {
  uint32_t x;
  uint32_t y;
  uint32_t width;
  uint32_t height;
} GpuResizeRectangle;

/**
 * GpuResize:
 * @filter: how samples are weighted
 * @antialias: the filter is made wider when shrinking, so that every sample of the source counts: the result is
 * Pillow's for the filter of that name. Nearest has none.
 * @straight_alpha: channels are scaled one by one although there is an alpha channel. Otherwise, as in Pillow, the
 * colour of transparent pixels counts for nothing: R, G, B are multiplied by A before, and divided by it after.
 * Nearest, and bilinear without antialias, always have straight alpha. The x of RGBx is scaled like a channel, and
 * weights nothing.
 * @src: the part of the source that is scaled; need not be whole pixels, except for nearest, and bilinear without
 *   antialias. Filters take the samples beside it into account where there are any, as Pillow's box does, unless @clip
 * is set. Where chroma is subsampled and @x or @y odd, it begins within a sample of chroma
 * @clip: samples beside @src do not count, as if it had been cut out before; so it always is with nearest, and bilinear
 *   without antialias
 * @dst: the part of the destination that it is scaled to. For subsampled formats @x and @y are multiples of the
 *   subsampling, and so are the right and bottom edges if they are not the image's
 * @border: the colour of the rest of the destination, in 8 bits, in the order R, G, B, A, or Y, U, V: see
 *   gpu_convert_color()
 *
 * Zero-initialised: nearest, the whole source to the whole destination.
 */
typedef struct {
  GpuResizeFilter filter;
  bool antialias;
  bool straight_alpha;
  bool clip;
  GpuResizeBox src;
  GpuResizeRectangle dst;
  uint8_t border[GPU_MAX_CHANNELS];
} GpuResize;

/**
 * gpu_resize:
 * @filter: without antialias if nearest or bilinear, with it if one of the others
 *
 * Scales the whole of @src to @dst's size; same format. Planes are scaled one by one; alpha as GpuResize says.
 * No host wait.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_resize (GpuStream *stream, GpuImage *src, GpuImage *dst, GpuResizeFilter filter, GError **error);

/**
 * GpuResizer:
 *
 * Keeps the weights of the last geometry, or of as many as a batch had images, so that they are worked out, and copied
 * to the device, once for many frames. For one thread at a time. It keeps memory of the device's cache live until it is
 * freed or another device's frame comes.
 */
typedef struct GpuResizer GpuResizer;

GPU_API GpuResizer *gpu_resizer_new (void);
GPU_API void gpu_resizer_free (GpuResizer *resizer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GpuResizer, gpu_resizer_free)

/**
 * gpu_resizer_run:
 *
 * Scales a part of @src to a part of @dst and fills the rest of it; same format, other memory. One launch; but filters
 * other than nearest, and bilinear without antialias, take two, with a picture of the destination's width between them,
 * on the CPU device, for samples of 16 bits, and where the picture shrinks so much that what some 8 x 8 pixels come
 * from does not fit a GPU's shared memory: RGBA to less than 1/13 with Lanczos, or 1/25 with bilinear. No host wait.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_resizer_run (GpuResizer *resizer, GpuStream *stream, GpuImage *src, GpuImage *dst,
                              const GpuResize *params, GError **error);

/**
 * gpu_resizer_run_batch:
 * @params: one for all images, or one for each
 * @n: how many those are: 1, or the batch's size
 *
 * gpu_resizer_run() from each image of @src, of whatever size, to that of @dst, in as many launches as one image takes;
 * one more for each other sort that some images are of. The weights of as many geometries are kept as there were images
 * in the largest batch.
 *
 * Returns: false if @error is set
 */
GPU_API bool gpu_resizer_run_batch (GpuResizer *resizer, GpuStream *stream, GpuBatch *src, GpuBatch *dst,
                                    const GpuResize *params, unsigned n, GError **error);

/** gpu_resizer_run() for a single frame. */
GPU_API bool gpu_resize_full (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuResize *params, GError **error);

G_END_DECLS
