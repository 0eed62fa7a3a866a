/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Conversion: arguments, checks, and which of its kernels does it. The work on the CPU device is in convert-cpu.c.
 */
#include "convert.h"

#include "convert-pixel.h"
#include "convert-priv.h"
#include "op-batch-priv.h"
#include "reformat-priv.h"

#include <math.h>
#include <string.h>

/* The largest number that the sum of the matrix' products may reach. */
#define MAX_SUM 2147000000.0

void
gpu_convert_init (GpuConvert *params)
{
  *params = (GpuConvert){.scale = 1};
}

/* From a side's numbers to R, G, B in 0 .. 1, or to Y in 0 .. 1 and Cb, Cr in -1/2 .. 1/2, and back. */
typedef struct {
  bool is_yuv;
  bool has_chroma;
  double kr, kb;
  double zero[3], one[3]; /* the numbers for 0, and the distance to those for 1 */
} Space;

static bool
is_limited (const GpuFormatInfo *info, GpuRange range)
{
  return range == GPU_RANGE_LIMITED || (range == GPU_RANGE_DEFAULT && info->is_yuv && info->n_channels > 1);
}

static Space
make_space (const GpuFormatInfo *info, const GpuColorimetry *colorimetry)
{
  static const double k[GPU_N_MATRICES][2] = {
      [GPU_MATRIX_BT709] = {0.2126, 0.0722},
      [GPU_MATRIX_BT601] = {0.299, 0.114},
      [GPU_MATRIX_BT2020] = {0.2627, 0.0593},
  };
  const double unit = 1 << (info->bits - 8), max = (1 << info->bits) - 1;
  const bool limited = is_limited (info, colorimetry->range);
  Space space = {.is_yuv = info->is_yuv,
                 .has_chroma = info->n_channels > 1,
                 .kr = k[colorimetry->matrix][0],
                 .kb = k[colorimetry->matrix][1]};

  for (unsigned c = 0; c < 3; c++) {
    const bool chroma = c && info->is_yuv;

    space.zero[c] = chroma ? 128 * unit : limited ? 16 * unit : 0;
    space.one[c] = !limited ? max : chroma ? 224 * unit : 219 * unit;
  }
  return space;
}

static void
to_rgb (const Space *space, double v[3])
{
  const double kg = 1 - space->kr - space->kb;
  const double y = v[0], cb = space->has_chroma ? v[1] : 0, cr = space->has_chroma ? v[2] : 0;

  if (!space->is_yuv)
    return;
  v[0] = y + 2 * (1 - space->kr) * cr;
  v[1] = y - 2 * space->kb * (1 - space->kb) / kg * cb - 2 * space->kr * (1 - space->kr) / kg * cr;
  v[2] = y + 2 * (1 - space->kb) * cb;
}

static void
from_rgb (const Space *space, double v[3])
{
  const double r = v[0], b = v[2], y = space->kr * r + (1 - space->kr - space->kb) * v[1] + space->kb * b;

  if (!space->is_yuv)
    return;
  v[0] = y;
  v[1] = (b - y) / (2 * (1 - space->kb));
  v[2] = (r - y) / (2 * (1 - space->kr));
}

/* The exact numbers of the destination for those of the source. */
static void
convert_exactly (const Space *src, const Space *dst, const double in[3], double out[3])
{
  for (unsigned c = 0; c < 3; c++)
    out[c] = (in[c] - src->zero[c]) / src->one[c];
  if (src->is_yuv != dst->is_yuv || src->kr != dst->kr) {
    to_rgb (src, out);
    from_rgb (dst, out);
  } else if (!src->has_chroma) {
    out[1] = out[2] = 0;
  }
  for (unsigned c = 0; c < 3; c++)
    out[c] = dst->zero[c] + out[c] * dst->one[c];
}

/* From the source's numbers to the destination's, and what is added. */
static void
make_matrix (const Space *src, const Space *dst, double matrix[3][3], double base[3])
{
  double column[3];

  convert_exactly (src, dst, (const double[]){0, 0, 0}, base);
  for (unsigned j = 0; j < 3; j++) {
    const double in[3] = {j == 0, j == 1, j == 2};

    convert_exactly (src, dst, in, column);
    for (unsigned k = 0; k < 3; k++)
      matrix[k][j] = column[k] - base[k];
  }
}

/* The matrix in as many bits as fit. The source's numbers have @sub_bits of fraction and are at most @max. */
static void
set_matrix (GpuConvertArgs *args, const Space *src, const Space *dst, int sub_bits, double max)
{
  double matrix[3][3], base[3], sum = 0;
  int bits = 20 + sub_bits;

  make_matrix (src, dst, matrix, base);
  for (unsigned k = 0; k < 3; k++) {
    double size = fabs (base[k]) + 1;

    for (unsigned j = 0; j < 3; j++)
      size += fabs (matrix[k][j]) * max;
    sum = MAX (sum, size);
  }
  while (ldexp (sum, bits) > MAX_SUM)
    bits--;

  args->bits = GPU_CONVERT_BITS;
  args->shift = (uint32_t)(bits - GPU_CONVERT_BITS);
  for (unsigned k = 0; k < 3; k++) {
    for (unsigned j = 0; j < 3; j++)
      args->matrix[k][j] = (int32_t)lrint (ldexp (matrix[k][j], bits - sub_bits));
    /* A multiple of four, so that each of the pixels around one can have a quarter of it. */
    args->offset[k] = 4 * (int32_t)lrint (ldexp (base[k], bits - 2)) + (1 << (args->shift - 1));
  }
}

/* The matrix in 16 bits, sign included, for numbers of 8 bits that are sums of others of 8 bits. */
static void
set_small_matrix (GpuConvertArgs *args, const Space *src, const Space *dst)
{
  const GpuPixels *pixels = &args->src.pixels;
  double matrix[3][3], base[3], most = 0;
  int bits = 15;

  make_matrix (src, dst, matrix, base);
  for (unsigned k = 0; k < 3; k++)
    for (unsigned j = 0; j < 3; j++)
      most = MAX (most, fabs (matrix[k][j]));
  while (ldexp (most, bits) > INT16_MAX)
    bits--;

  args->bits = (uint32_t)bits;
  for (unsigned k = 0; k < 3; k++) {
    args->offset[k] = (int32_t)lrint (ldexp (base[k], bits));
    for (unsigned j = 0; j < pixels->channels && j < 3; j++) {
      const unsigned at = pixels->group == 1 ? j : pixels->at[j];

      args->matrix[k][j] = (int32_t)lrint (ldexp (matrix[k][j], bits));
      args->pair[k][at / 2] |= (uint32_t)(uint16_t)args->matrix[k][j] << (16 * (at % 2));
    }
  }
}

static bool
is_subsampled (const GpuFormatInfo *info)
{
  return info->is_yuv && info->n_channels > 1;
}

/* The chroma planes' addresses: channels U, V. */
static GpuPixels
chroma_pixels (GpuImage *image, const GpuFormatInfo *info)
{
  const GpuImageSpec *spec = gpu_image_spec (image);
  const uint32_t size = info->bits > 8 ? 2 : 1;
  GpuPixels pixels = {
      .step = info->plane[1].pixel_bytes, .size = size, .channels = 2, .group = info->plane[1].pixel_bytes / size};
  uintptr_t misaligned = 0;

  for (unsigned c = 0; c < 2; c++) {
    const unsigned plane = info->channel_plane[1 + c];

    pixels.data[c] = gpu_op_plane (image, plane) + info->channel[1 + c];
    pixels.stride[c] = spec->stride[plane];
    pixels.at[c] = (uint32_t)info->channel[1 + c] / size;
    misaligned |= (uintptr_t)gpu_op_plane (image, plane) | spec->stride[plane];
  }
  pixels.vector = !(misaligned & (pixels.group == 1 ? 4 * size - 1 : 15));
  return pixels;
}

static GpuPixels
luma_pixels (GpuImage *image, const GpuFormatInfo *info)
{
  const GpuImageSpec *spec = gpu_image_spec (image);
  const uint32_t size = info->bits > 8 ? 2 : 1;
  const uintptr_t misaligned = (uintptr_t)gpu_op_plane (image, 0) | spec->stride[0];

  return (GpuPixels){.data = {gpu_op_plane (image, 0)},
                     .stride = {spec->stride[0]},
                     .step = size,
                     .size = size,
                     .channels = 1,
                     .group = 1,
                     .vector = !(misaligned & (4 * size - 1))};
}

static GpuConvertSide
make_side (GpuImage *image, const GpuFormatInfo *info, GpuChromaSite site)
{
  const GpuImageSpec *spec = gpu_image_spec (image);

  if (!is_subsampled (info))
    return (GpuConvertSide){.pixels = gpu_op_pixels (image)};
  return (GpuConvertSide){.pixels = luma_pixels (image, info),
                          .chroma = chroma_pixels (image, info),
                          .down = info->bits > 8 ? 16u - info->bits : 0,
                          .site_x = site != GPU_CHROMA_SITE_CENTER,
                          .site_y = site == GPU_CHROMA_SITE_TOP_LEFT,
                          .chroma_width = gpu_image_spec_plane_width (spec, 1),
                          .chroma_height = gpu_image_spec_plane_height (spec, 1)};
}

static const GpuKernelAddresses addresses[] = {
    {offsetof (GpuConvertArgs, src.pixels.data), GPU_PIXEL_CHANNELS, false},
    {offsetof (GpuConvertArgs, src.chroma.data), GPU_PIXEL_CHANNELS, false},
    {offsetof (GpuConvertArgs, dst.pixels.data), GPU_PIXEL_CHANNELS, true},
    {offsetof (GpuConvertArgs, dst.chroma.data), GPU_PIXEL_CHANNELS, true},
    {0},
};

static const GpuKernelAddresses to_rgb_addresses[] = {
    {offsetof (GpuConvert420Args, param.luma), 1, false},
    {offsetof (GpuConvert420Args, param.chroma), 2, false},
    {offsetof (GpuConvert420Args, param.dst), 3, true},
    {offsetof (GpuConvert420Args, whole.src.pixels.data), GPU_PIXEL_CHANNELS, false},
    {offsetof (GpuConvert420Args, whole.src.chroma.data), GPU_PIXEL_CHANNELS, false},
    {offsetof (GpuConvert420Args, whole.dst.pixels.data), GPU_PIXEL_CHANNELS, true},
    {0},
};

static const GpuKernel rows_kernel = {
    .name = "gpu_convert_rows",
    .args_size = sizeof (GpuConvertArgs),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = gpu_convert_run_rows,
    .table_name = "gpu_convert_rows_table",
    .addresses = addresses,
};

static const GpuKernel row_pairs_kernel = {
    .name = "gpu_convert_row_pairs",
    .args_size = sizeof (GpuConvertArgs),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = gpu_convert_run_row_pairs,
    .table_name = "gpu_convert_row_pairs_table",
    .addresses = addresses,
};

/* The grid of these is gpu_op_quads_extent()'s. */
G_STATIC_ASSERT (GPU_CONVERT_ROWS == GPU_OP_QUAD_ROWS);

static const GpuKernel to_rgb_kernel = {
    .name = "gpu_convert_to_rgb",
    .args_size = sizeof (GpuConvert420Args),
    .param_size = sizeof (GpuConvert420Param),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = gpu_convert_run_420,
    .table_name = "gpu_convert_to_rgb_table",
    .addresses = to_rgb_addresses,
    .is_without_table = true,
};

static const GpuKernel quads_kernel = {
    .name = "gpu_convert_quads",
    .args_size = sizeof (GpuConvertArgs),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = gpu_convert_run_rows,
    .table_name = "gpu_convert_quads_table",
    .addresses = addresses,
};

static const GpuKernel to_yuv_kernel = {
    .name = "gpu_convert_to_yuv",
    .args_size = sizeof (GpuConvertToYuvArgs),
    .param_size = sizeof (GpuConvertToYuvParam),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = gpu_convert_run_to_yuv,
    .table_name = "gpu_convert_to_yuv_table",
    .is_without_table = true,
};

static const GpuKernel to_gray_kernel = {
    .name = "gpu_convert_to_gray",
    .args_size = sizeof (GpuConvertToYuvArgs),
    .param_size = sizeof (GpuConvertToYuvParam),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = gpu_convert_run_to_gray,
    .table_name = "gpu_convert_to_gray_table",
    .is_without_table = true,
};

static const GpuKernel planes_kernel = {
    .name = "gpu_convert_planes",
    .args_size = sizeof (GpuPlanesArgs),
    .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
    .run = gpu_convert_run_planes,
    .table_name = "gpu_convert_planes_table",
};

static const GpuKernel plane_lines_kernel = {
    .name = "gpu_convert_plane_lines",
    .args_size = sizeof (GpuPlaneLinesArgs),
    .param_size = sizeof (GpuPlaneLinesParam),
    .block = {GPU_CONVERT_LINES_X, GPU_CONVERT_LINES_Y, 1},
    .run = gpu_convert_run_plane_lines,
    .table_name = "gpu_convert_plane_lines_table",
    .is_without_table = true,
};

static const GpuKernel elements_kernel = {
    .name = "gpu_convert_elements",
    .args_size = sizeof (GpuElementsArgs),
    .block = {GPU_OP_QUAD_BLOCK_X * GPU_OP_QUAD_BLOCK_Y, 1, 1},
    .run = gpu_convert_run_elements,
    .table_name = "gpu_convert_elements_table",
};

static bool
is_narrow (const GpuPixels *pixels)
{
  for (unsigned c = 0; c < pixels->channels; c++)
    if (pixels->stride[c] > UINT32_MAX)
      return false;
  return true;
}

/* Whether the fast kernels can: four pixels at once everywhere, strides that 32 bits are enough for, and no more rows
 * than a grid has. */
static bool
is_in_quads (const GpuConvertArgs *args)
{
  const GpuConvertSide *src = &args->src, *dst = &args->dst;

  return args->width % 4 == 0 && args->height <= GPU_OP_MAX_QUADS_ROWS && src->pixels.vector && dst->pixels.vector &&
         dst->pixels.size == 1 && (src->chroma.channels == 0 || src->chroma.vector) &&
         (dst->chroma.channels == 0 || dst->chroma.vector) && is_narrow (&src->pixels) && is_narrow (&src->chroma) &&
         is_narrow (&dst->pixels) && is_narrow (&dst->chroma);
}

/* Whether the samples of a plane of bytes, or halves, begin at multiples of eight. */
static bool
is_in_eights (const GpuPixels *pixels, unsigned c)
{
  return !(((uintptr_t)pixels->data[c] | pixels->stride[c]) & (8 * pixels->size - 1));
}

/* Whether it can be eight pixels at once: planes that are read or written as such. */
static bool
is_in_wide_quads (const GpuConvertArgs *args)
{
  const GpuConvertSide *side[] = {&args->src, &args->dst};

  for (unsigned i = 0; i < 2; i++) {
    const GpuPixels *pixels = &side[i]->pixels;

    for (unsigned c = 0; c < pixels->channels; c++)
      if (pixels->group == 1 && !is_in_eights (pixels, c))
        return false;
  }
  return args->width % 8 == 0;
}

/* Whether it is from 4:2:0 to RGB, and the fast kernel can. */
static bool
is_420_to_rgb (const GpuConvertArgs *args)
{
  return args->src.chroma.channels && !args->dst.chroma.channels && args->dst.pixels.channels > 1 && is_in_quads (args);
}

/* Its arguments. */
static void
make_420_to_rgb_args (const GpuConvertArgs *whole, GpuConvert420Args *args)
{
  const GpuPixels *dst = &whole->dst.pixels;
  const bool packed = dst->group > 1;
  unsigned most = 16;

  if (!packed)
    for (unsigned c = 0; c < 3; c++)
      while (most > 4 && (((uintptr_t)dst->data[c] | dst->stride[c]) & (most - 1)))
        most /= 2;
  *args = (GpuConvert420Args){.whole = *whole};
  gpu_convert_make_420_param (whole, packed && dst->at[0] > dst->at[2], most, &args->param);
  for (unsigned c = 0; c < 3; c++) {
    args->param.dst[c] = packed ? dst->data[0] - dst->at[0] : dst->data[c];
    args->param.dst_stride[c] = (uint32_t)dst->stride[packed ? 0 : c];
  }
  args->param.dst_group = dst->group;
  args->param.rotated = packed && MIN (dst->at[0], dst->at[2]) == 1;
}

/* The fast kernel from RGB to 4:2:0 or GRAY8, if it can, or NULL. */
static const GpuKernel *
find_to_yuv_kernel (const GpuConvertArgs *args)
{
  const bool to_420 = args->dst.chroma.channels;

  if (args->src.chroma.channels || !is_in_quads (args) || (to_420 && args->dst.site_y))
    return NULL;
  return to_420 ? &to_yuv_kernel : args->dst.pixels.channels == 1 ? &to_gray_kernel : NULL;
}

/* Its arguments. */
static void
make_to_yuv_args (const GpuConvertArgs *whole, GpuConvertToYuvArgs *args)
{
  const GpuPixels *src = &whole->src.pixels, *chroma = &whole->dst.chroma;
  GpuConvertToYuvParam *param = &args->param;

  *args = (GpuConvertToYuvArgs){.whole = *whole};
  *param = (GpuConvertToYuvParam){.luma = whole->dst.pixels.data[0],
                                  .luma_stride = (uint32_t)whole->dst.pixels.stride[0],
                                  .width = whole->width,
                                  .height = whole->height,
                                  .shared = chroma->group == 2,
                                  .sited = whole->dst.site_x,
                                  .src_group = src->group,
                                  .wide = whole->wide,
                                  .bits = whole->bits};
  for (unsigned c = 0; c < 3; c++) {
    const unsigned plane = src->group == 1 && c < src->channels ? c : 0;

    param->src[c] = src->data[plane] - (src->group == 1 ? 0 : src->at[plane]);
    param->src_stride[c] = (uint32_t)src->stride[plane];
  }
  for (unsigned c = 0; c < 2; c++) {
    param->chroma[c] = chroma->data[c];
    param->chroma_stride[c] = (uint32_t)chroma->stride[c];
  }
  param->offset[0] = whole->offset[0] + (1 << (whole->bits - 1));
  for (unsigned c = 1; c < 3; c++)
    param->offset[c] = 4 * whole->offset[c] + (1 << (whole->bits + 1));
  memcpy (param->pair, whole->pair, sizeof param->pair);
}

void
gpu_convert_make_rgb_args (GpuImage *src, const GpuColorimetry *colorimetry, GpuConvertArgs *args)
{
  static const GpuColorimetry full = {.range = GPU_RANGE_FULL};
  const GpuImageSpec *spec = gpu_image_spec (src);
  const GpuFormatInfo *from = gpu_format_info (spec->format);
  const Space src_space = make_space (from, colorimetry);
  const Space dst_space = make_space (gpu_format_info (GPU_FORMAT_RGB), &full);

  *args = (GpuConvertArgs){.src = make_side (src, from, colorimetry->chroma_site),
                           .max = 255,
                           .width = spec->width,
                           .height = spec->height,
                           .rows = spec->height};
  set_matrix (args, &src_space, &dst_space, is_subsampled (from) ? GPU_CONVERT_SUB_BITS : 0, (1 << from->bits) - 1);
}

bool
gpu_convert_is_420_in_quads (const GpuConvertArgs *args)
{
  const GpuConvertSide *src = &args->src;

  return src->chroma.channels && args->width % 4 == 0 && args->height <= GPU_OP_MAX_QUADS_ROWS && src->pixels.vector &&
         src->chroma.vector && is_narrow (&src->pixels) && is_narrow (&src->chroma);
}

/* Through the matrix. */
static bool
convert_pixels (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuConvert *params, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (src);
  const GpuFormatInfo *from = gpu_format_info (spec->format);
  const GpuFormatInfo *to = gpu_format_info (gpu_image_spec (dst)->format);
  const Space src_space = make_space (from, &params->src), dst_space = make_space (to, &params->dst);
  GpuConvertArgs args = {.src = make_side (src, from, params->src.chroma_site),
                         .dst = make_side (dst, to, params->dst.chroma_site),
                         .max = (1 << to->bits) - 1,
                         .width = spec->width,
                         .height = spec->height,
                         .opaque = from->has_alpha ? 0 : 255,
                         .rows = is_subsampled (to) ? spec->height / 2 + spec->height % 2 : spec->height};

  if (!is_subsampled (from) && to->is_yuv && to->bits == 8)
    set_small_matrix (&args, &src_space, &dst_space);
  else
    set_matrix (&args, &src_space, &dst_space, is_subsampled (from) ? GPU_CONVERT_SUB_BITS : 0, (1 << from->bits) - 1);
  if (is_420_to_rgb (&args)) {
    GpuConvert420Args fast;

    make_420_to_rgb_args (&args, &fast);
    return gpu_op_launch (op, src, dst, &to_rgb_kernel, &fast, gpu_op_quads_extent (spec->width, spec->height), error);
  }
  args.wide = is_in_wide_quads (&args);
  const GpuExtent extent = gpu_op_quads_extent (spec->width, spec->height);
  const GpuKernel *kernel = find_to_yuv_kernel (&args);
  if (kernel) {
    GpuConvertToYuvArgs fast;

    make_to_yuv_args (&args, &fast);
    return gpu_op_launch (op, src, dst, kernel, &fast, extent, error);
  }
  if (!is_subsampled (from) && !is_subsampled (to) && args.dst.pixels.channels > 1 && is_in_quads (&args))
    return gpu_op_launch (op, src, dst, &quads_kernel, &args, extent, error);
  kernel = is_subsampled (to) ? &row_pairs_kernel : &rows_kernel;
  return gpu_op_launch (op, src, dst, kernel, &args, gpu_op_quad_extent (spec->width, args.rows), error);
}

/* Whether a plane's samples of 8 bits are lines of 16 bytes, or, of one component of chroma, of 8, at multiples of
 * that, with strides that 32 bits are enough for. */
static bool
is_in_plane_lines (const GpuPixels *pixels)
{
  const bool alone = pixels->channels == 2 && pixels->group == 1;
  uintptr_t misaligned = 0;

  for (unsigned c = 0; c < pixels->channels; c++)
    misaligned |= ((uintptr_t)pixels->data[c] - pixels->at[c]) | pixels->stride[c];
  return pixels->size == 1 && !(misaligned & (alone ? 7 : 15)) && is_narrow (pixels);
}

/* Rows of blocks that such a plane takes. */
static uint32_t
plane_line_blocks (uint32_t height)
{
  const uint32_t rows = GPU_CONVERT_LINE_ROWS * GPU_CONVERT_LINES_Y;

  return height / rows + (height % rows != 0);
}

/* Whether all of it can be done in lines. */
static bool
is_in_lines (const GpuPlanesArgs *args)
{
  bool in_lines = args->width[0] % 16 == 0 &&
                  plane_line_blocks (args->height[0]) + plane_line_blocks (args->height[1]) <= GPU_OP_MAX_BLOCKS_Y;

  for (unsigned i = 0; i < 2 && args->height[i]; i++)
    in_lines = in_lines && is_in_plane_lines (&args->src[i]) && is_in_plane_lines (&args->dst[i]);
  return in_lines;
}

static void
make_plane_lines_args (const GpuPlanesArgs *whole, GpuPlaneLinesArgs *args)
{
  *args = (GpuPlaneLinesArgs){
      .param = {.lines = whole->width[0] / 16,
                .first = plane_line_blocks (whole->height[0]),
                .src_apart = whole->src[1].group == 1,
                .dst_apart = whole->dst[1].group == 1},
      .whole = *whole,
  };
  for (unsigned i = 0; i < 2; i++) {
    GpuPlaneLines *plane = &args->param.plane[i];

    for (unsigned c = 0; c < 2; c++) {
      plane->src[c] = whole->src[i].data[c];
      plane->dst[c] = whole->dst[i].data[c];
      plane->src_stride[c] = (uint32_t)whole->src[i].stride[c];
      plane->dst_stride[c] = (uint32_t)whole->dst[i].stride[c];
    }
    plane->height = whole->height[i];
    plane->factor = whole->factor[i];
    plane->offset = whole->offset[i];
    plane->shift = whole->shift[i];
    plane->is_same = plane->factor == 1 << plane->shift && plane->offset == 1 << (plane->shift - 1);
  }
}

/* Sample by sample: from 4:2:0 to 4:2:0 of the same matrix and site, or to GRAY8. */
static bool
convert_planes (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuConvert *params, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (src);
  const GpuFormatInfo *from = gpu_format_info (spec->format);
  const GpuFormatInfo *to = gpu_format_info (gpu_image_spec (dst)->format);
  const Space src_space = make_space (from, &params->src), dst_space = make_space (to, &params->dst);
  const bool chroma = is_subsampled (to);
  GpuPlanesArgs args = {.src = {luma_pixels (src, from)},
                        .dst = {luma_pixels (dst, to)},
                        .width = {spec->width},
                        .height = {spec->height},
                        .src_down = from->bits > 8 ? 16u - from->bits : 0,
                        .dst_up = to->bits > 8 ? 16u - to->bits : 0,
                        .max = (1 << to->bits) - 1,
                        .first = spec->height};

  if (chroma) {
    args.src[1] = chroma_pixels (src, from);
    args.dst[1] = chroma_pixels (dst, to);
    args.width[1] = gpu_image_spec_plane_width (spec, 1);
    args.height[1] = gpu_image_spec_plane_height (spec, 1);
  }
  for (unsigned i = 0; i < 2; i++) {
    /* The product stays below 2^31: a value has 10 bits, a factor less than 17 + 3. */
    const double factor = dst_space.one[i] / src_space.one[i];

    args.shift[i] = 17;
    args.factor[i] = (int32_t)lrint (ldexp (factor, 17));
    args.offset[i] = (int32_t)lrint (ldexp (dst_space.zero[i] - src_space.zero[i] * factor, 17)) + (1 << 16);
  }
  args.rows = args.height[0] + args.height[1];

  if (is_in_lines (&args)) {
    GpuPlaneLinesArgs lines;

    make_plane_lines_args (&args, &lines);
    const uint32_t blocks = lines.param.first + plane_line_blocks (args.height[1]);
    const GpuExtent extent = {lines.param.lines, blocks * GPU_CONVERT_LINES_Y, 1};
    return gpu_op_launch (op, src, dst, &plane_lines_kernel, &lines, extent, error);
  }
  return gpu_op_launch (op, src, dst, &planes_kernel, &args, gpu_op_quad_extent (spec->width, args.rows), error);
}

static bool
convert_tensors (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuConvert *params, GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *src_info = gpu_format_info (from->format), *dst_info = gpu_format_info (to->format);
  const uint32_t src_size = (uint32_t)gpu_element_bytes (src_info->element);
  const uint32_t dst_size = (uint32_t)gpu_element_bytes (dst_info->element);
  const uintptr_t src_address = (uintptr_t)gpu_op_plane (src, 0), dst_address = (uintptr_t)gpu_op_plane (dst, 0);
  const uint64_t n = from->size / src_size;

  if (src_info->layout != dst_info->layout || from->channels != to->channels) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Convert does not make a %s of %u channels of a %s of %u: use gpu_reformat() for the order of "
                 "dimensions",
                 dst_info->name, to->channels, src_info->name, from->channels);
    return false;
  }
  if (!isfinite (params->scale) || !isfinite (params->offset)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Convert needs finite numbers as scale and offset, not %g and %g",
                 (double)params->scale, (double)params->offset);
    return false;
  }

  const GpuElementsArgs args = {
      .src = gpu_op_plane (src, 0),
      .dst = gpu_op_plane (dst, 0),
      .n = n,
      .scale = params->scale,
      .offset = params->offset,
      .src_size = src_size,
      .dst_size = dst_size,
      .vector = !(src_address & (4 * src_size - 1)) && !(dst_address & (4 * dst_size - 1)),
  };
  const GpuExtent extent = {(uint32_t)MIN (n / (4 * GPU_CONVERT_QUADS) + 1, (uint64_t)1 << 30), 1, 1};
  return gpu_op_launch (op, src, dst, &elements_kernel, &args, extent, error);
}

bool
gpu_convert_check_colorimetry (const char *name, const char *what, const GpuColorimetry *colorimetry, GError **error)
{
  if ((unsigned)colorimetry->matrix < GPU_N_MATRICES && (unsigned)colorimetry->range < GPU_N_RANGES &&
      (unsigned)colorimetry->chroma_site < GPU_N_CHROMA_SITES)
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
               "%s knows no matrix %d, range %d and chroma site %d, as the %s is to have: use members of GpuMatrix, "
               "GpuRange and GpuChromaSite",
               name, (int)colorimetry->matrix, (int)colorimetry->range, (int)colorimetry->chroma_site, what);
  return false;
}

bool
gpu_convert_image (const GpuOp *op, GpuImage *src, GpuImage *dst, const void *data, void *unused, GError **error)
{
  const GpuConvert *params = data;
  const GpuImageSpec *spec = gpu_image_spec (src);
  const GpuFormatInfo *from = gpu_format_info (spec->format);
  const GpuFormatInfo *to = gpu_format_info (gpu_image_spec (dst)->format);
  GpuConvert defaults;

  if (!params) {
    gpu_convert_init (&defaults);
    params = &defaults;
  }
  if (!gpu_op_check_devices ("Convert", op->stream, src, dst, error) ||
      !gpu_op_check_size ("Convert", dst, spec->width, spec->height, error) ||
      !gpu_convert_check_colorimetry ("Convert", "source", &params->src, error) ||
      !gpu_convert_check_colorimetry ("Convert", "destination", &params->dst, error))
    return false;
  if (from->is_tensor != to->is_tensor) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Convert does not make %s of %s: use gpu_normalize() or gpu_reformat() between pictures and tensors",
                 to->name, from->name);
    return false;
  }
  if (!gpu_op_check_apart ("Convert", src, dst, error) || !gpu_op_check_elements ("Convert", src, error) ||
      !gpu_op_check_elements ("Convert", dst, error))
    return false;

  if (from->is_tensor)
    return convert_tensors (op, src, dst, params, error);
  if (!from->is_yuv && !to->is_yuv && is_limited (from, params->src.range) == is_limited (to, params->dst.range))
    return gpu_reformat_pixels (op, src, dst, from->has_alpha ? 0 : 255, error);
  if (is_subsampled (from) && to->is_yuv && params->src.matrix == params->dst.matrix &&
      (!is_subsampled (to) || params->src.chroma_site == params->dst.chroma_site))
    return convert_planes (op, src, dst, params, error);
  return convert_pixels (op, src, dst, params, error);
}

bool
gpu_convert (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuConvert *params, GError **error)
{
  const GpuOp op = {stream, NULL};

  return gpu_convert_image (&op, src, dst, params, NULL, error);
}

bool
gpu_convert_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const GpuConvert *params, unsigned n,
                   GError **error)
{
  return gpu_op_run_batch ("Convert", stream, src, dst, gpu_convert_image, params, sizeof *params, n, NULL, error);
}

void
gpu_convert_color (const uint8_t color[GPU_MAX_CHANNELS], GpuFormat format, const GpuColorimetry *colorimetry,
                   uint8_t values[GPU_MAX_CHANNELS])
{
  static const GpuColorimetry defaults;
  const GpuFormatInfo *info = gpu_format_info (format);
  const GpuFormatInfo *rgba = gpu_format_info (GPU_FORMAT_RGBA);
  const double in[3] = {color[0], color[1], color[2]};
  double out[3];

  g_return_if_fail (info != NULL && !info->is_tensor);

  const Space src = make_space (rgba, &defaults), dst = make_space (info, colorimetry ? colorimetry : &defaults);
  convert_exactly (&src, &dst, in, out);
  for (unsigned c = 0; c < 3; c++)
    values[c] = (uint8_t)CLAMP (lrint (out[c] / (1 << (info->bits - 8))), 0, 255);
  values[3] = color[3];
}
