/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Normalisation by channel: arguments, checks, and the work on the CPU device.
 */
#include "normalize.h"

#include "normalize-priv.h"

#include <math.h>

void
gpu_normalize_init (GpuNormalize *params)
{
  *params = (GpuNormalize){.scale = {1, 1, 1, 1}, .global_scale = 1};
}

GPU_OP_LOOP void
look_up_rows (const GpuNormalizePlane *plane, uint8_t table[][256], size_t bytes)
{
  size_t row_bytes = plane->row_bytes;

  for (uint32_t y = 0; y < plane->height; y++) {
    const uint8_t *src = plane->src + y * plane->src_stride;
    uint8_t *dst = plane->dst + y * plane->dst_stride;

    for (size_t i = 0; i < row_bytes; i += bytes)
      for (size_t c = 0; c < bytes; c++)
        dst[i + c] = table[c][src[i + c]];
  }
}

static void
look_up_plane (const GpuNormalizePlane *plane, uint8_t table[][256])
{
  if (plane->bytes == 1)
    look_up_rows (plane, table, 1);
  else if (plane->bytes == 2)
    look_up_rows (plane, table, 2);
  else if (plane->bytes == 3)
    look_up_rows (plane, table, 3);
  else
    look_up_rows (plane, table, 4);
}

static void
run (const void *data, GpuExtent extent)
{
  const GpuNormalizeArgs *args = data;
  uint8_t table[GPU_PIXEL_CHANNELS][256];

  for (const GpuNormalizePlane *plane = args->plane; plane < args->plane + GPU_PIXEL_PLANES && plane->src; plane++) {
    for (unsigned c = 0; c < plane->bytes; c++)
      for (unsigned value = 0; value < 256; value++)
        table[c][value] = gpu_normalize_sample (plane->channel[c], (uint8_t)value);
    look_up_plane (plane, table);
  }
}

static void
run_steps (const void *data, GpuExtent extent)
{
  const GpuNormalizeStepArgs *args = data;
  uint8_t table[GPU_PIXEL_CHANNELS][256];

  for (unsigned i = 0; i < GPU_PIXEL_PLANES && args->plane[i].src; i++) {
    const GpuNormalizeStepPlane *by = &args->plane[i];
    const GpuNormalizePlane plane = {.src = by->src,
                                     .dst = by->dst,
                                     .src_stride = by->src_stride,
                                     .dst_stride = by->dst_stride,
                                     .row_bytes = by->row_bytes,
                                     .height = by->height,
                                     .bytes = by->bytes};

    for (unsigned c = 0; c < plane.bytes; c++)
      for (unsigned value = 0; value < 256; value++)
        table[c][value] = gpu_round_to_byte (gpu_normalize_in_one (by->step[c], GPU_NORMALIZE_ABOVE + (float)value));
    look_up_plane (&plane, table);
  }
}

static const GpuKernel rows_kernel = {
    .name = "gpu_normalize_rows",
    .args_size = sizeof (GpuNormalizeStepArgs),
    .block = {GPU_NORMALIZE_BLOCK_X, GPU_NORMALIZE_BLOCK_Y, 1},
    .run = run_steps,
    .table_name = "gpu_normalize_rows_table",
};

static const GpuKernel any_rows_kernel = {
    .name = "gpu_normalize_any_rows",
    .args_size = sizeof (GpuNormalizeArgs),
    .block = {GPU_NORMALIZE_BLOCK_X, GPU_NORMALIZE_BLOCK_Y, 1},
    .run = run,
    .table_name = "gpu_normalize_any_rows_table",
};

GPU_OP_LOOP void
look_up_elements (uint8_t *restrict dst, size_t dst_step, const uint8_t *src, size_t src_step, uint32_t n,
                  const uint32_t *table, size_t size)
{
  for (uint32_t x = 0; x < n; x++)
    memcpy (dst + x * dst_step, &table[src[x * src_step]], size);
}

static void
run_tensor (const void *data, GpuExtent extent)
{
  const GpuNormalizeTensorArgs *args = data;
  const uint32_t size = args->dst.size;

  for (unsigned c = 0; c < args->dst.channels; c++) {
    const unsigned from = args->at[c];
    uint32_t table[256];

    for (unsigned value = 0; value < 256; value++)
      table[value] = gpu_normalize_element (args->channel[c], value, size);
    for (uint32_t y = 0; y < args->height; y++) {
      const uint8_t *src = args->src.data[from] + y * args->src.stride[from];
      uint8_t *dst = args->dst.data[c] + y * args->dst.stride[c];

      if (size == 1)
        look_up_elements (dst, args->dst.step, src, args->src.step, args->width, table, 1);
      else if (size == 2)
        look_up_elements (dst, args->dst.step, src, args->src.step, args->width, table, 2);
      else
        look_up_elements (dst, args->dst.step, src, args->src.step, args->width, table, 4);
    }
  }
}

static const GpuKernelAddresses tensor_addresses[] = {
    {offsetof (GpuNormalizeTensorArgs, src.data), GPU_PIXEL_CHANNELS, false},
    {offsetof (GpuNormalizeTensorArgs, dst.data), GPU_PIXEL_CHANNELS, true},
    {0},
};

/* By the bytes of an element: any, and those of normalize-lines.cu. */
static const GpuKernel tensor_kernels[] = {
    [1] = {.name = "gpu_normalize_tensor_1",
           .args_size = sizeof (GpuNormalizeTensorArgs),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run_tensor,
           .table_name = "gpu_normalize_tensor_1_table",
           .addresses = tensor_addresses},
    [2] = {.name = "gpu_normalize_tensor_2",
           .args_size = sizeof (GpuNormalizeTensorArgs),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run_tensor,
           .table_name = "gpu_normalize_tensor_2_table",
           .addresses = tensor_addresses},
    [4] = {.name = "gpu_normalize_tensor_4",
           .args_size = sizeof (GpuNormalizeTensorArgs),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run_tensor,
           .table_name = "gpu_normalize_tensor_4_table",
           .addresses = tensor_addresses},
};

static const GpuKernel planes_kernels[] = {
    [1] = {.name = "gpu_normalize_planes_1",
           .args_size = sizeof (GpuNormalizeTensorArgs),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run_tensor,
           .table_name = "gpu_normalize_planes_1_table",
           .addresses = tensor_addresses},
    [2] = {.name = "gpu_normalize_planes_2",
           .args_size = sizeof (GpuNormalizeTensorArgs),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run_tensor,
           .table_name = "gpu_normalize_planes_2_table",
           .addresses = tensor_addresses},
    [4] = {.name = "gpu_normalize_planes_4",
           .args_size = sizeof (GpuNormalizeTensorArgs),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run_tensor,
           .table_name = "gpu_normalize_planes_4_table",
           .addresses = tensor_addresses},
};

static const GpuKernel packed_kernels[] = {
    [1] = {.name = "gpu_normalize_packed_1",
           .args_size = sizeof (GpuNormalizeTensorArgs),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run_tensor,
           .table_name = "gpu_normalize_packed_1_table",
           .addresses = tensor_addresses},
    [2] = {.name = "gpu_normalize_packed_2",
           .args_size = sizeof (GpuNormalizeTensorArgs),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run_tensor,
           .table_name = "gpu_normalize_packed_2_table",
           .addresses = tensor_addresses},
    [4] = {.name = "gpu_normalize_packed_4",
           .args_size = sizeof (GpuNormalizeTensorArgs),
           .block = {GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1},
           .run = run_tensor,
           .table_name = "gpu_normalize_packed_4_table",
           .addresses = tensor_addresses},
};

static bool
check_finite (const char *what, const char *channel, double value, GError **error)
{
  /* Pictures are worked on in floats. */
  if (isfinite ((float)value))
    return true;
  g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Normalize needs a finite number as %s%s%s, not %g", what,
               *channel ? " of channel " : "", channel, value);
  return false;
}

/* What to multiply by; in double precision, which is what tensors get. */
static bool
find_factor (const GpuNormalize *params, unsigned i, const char *name, double *result, GError **error)
{
  double factor = params->scale[i];

  if (!check_finite ("base", name, params->base[i], error) ||
      !check_finite (params->scale_is_stddev ? "standard deviation" : "scale", name, params->scale[i], error))
    return false;
  if (params->scale_is_stddev) {
    double variance = factor * factor + params->epsilon;

    if (variance == 0) {
      g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                   "Normalize cannot divide by the standard deviation 0 of channel %s: give another one, or a positive "
                   "epsilon",
                   name);
      return false;
    }
    factor = 1 / sqrt (variance);
  }
  factor *= params->global_scale;
  if (!isfinite ((float)factor)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Normalize cannot multiply channel %s by %g, which is too large: use a smaller scale or global scale, "
                 "or a larger standard deviation",
                 name, factor);
    return false;
  }
  *result = factor;
  return true;
}

static bool
find_factors (const GpuNormalize *params, const GpuFormatInfo *info, double *factors, GError **error)
{
  if (!check_finite ("global scale", "", params->global_scale, error) ||
      !check_finite ("shift", "", params->shift, error) || !check_finite ("epsilon", "", params->epsilon, error))
    return false;
  if (params->epsilon < 0) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Normalize needs an epsilon of at least 0, not %g",
                 params->epsilon);
    return false;
  }
  for (unsigned i = 0; i < info->n_channels; i++)
    if (!find_factor (params, i, gpu_op_channel_name (info, i), &factors[i], error))
      return false;
  return true;
}

/* @size: of a tensor's element, or 0 for a picture's channel, whose line has no @low. */
typedef struct {
  GpuNormalizeTensorChannel channel;
  uint32_t size;
  bool is_known;
  bool has_line;
  GpuNormalizeLine line;
} KnownLine;

static bool
step_is_exact (GpuNormalizeStep step, GpuNormalizeChannel channel)
{
  for (unsigned value = 0; value < 256; value++)
    if (gpu_round_to_byte (gpu_normalize_in_one (step, GPU_NORMALIZE_ABOVE + (float)value)) !=
        gpu_normalize_sample (channel, (uint8_t)value))
      return false;
  return true;
}

/* One step for a picture's three. Most means are multiples of 2^-8, and most shifts are 0: then it is the same. */
static bool
find_step (const GpuNormalizeTensorChannel *channel, GpuNormalizeLine *line)
{
  static const int candidates[] = {0, 1, -1, 4, -4};
  const GpuNormalizeChannel steps = {(float)channel->base, (float)channel->factor, (float)channel->shift};
  const double origin = rint (channel->base * 256) / 256;

  if (!(fabs (channel->base) < 16384))
    return false;
  for (unsigned i = 0; i < G_N_ELEMENTS (candidates); i++) {
    const double shift = (origin - channel->base) * channel->factor + channel->shift + candidates[i] * 0x1p-18;

    *line = (GpuNormalizeLine){(float)(GPU_NORMALIZE_ABOVE + origin), steps.factor, 0, (float)shift};
    if (step_is_exact ((GpuNormalizeStep){line->origin, line->high, line->rest}, steps))
      return true;
  }
  return false;
}

/* Whether @line gives the very bits of the element of @size bytes for each value. */
static bool
line_is_exact (const GpuNormalizeLine *line, const GpuNormalizeTensorChannel *channel, uint32_t size)
{
  for (unsigned value = 0; value < 256; value++) {
    const float result = gpu_normalize_on_line (*line, GPU_NORMALIZE_ABOVE + (float)value);
    const uint32_t bits = size == 1   ? gpu_round_to_byte (result)
                          : size == 2 ? gpu_half_from_float (result)
                                      : gpu_float_bits (result);

    if (bits != gpu_normalize_element (*channel, value, size))
      return false;
  }
  return true;
}

/* Most channels have a line. What the next candidates are for is a result that lies nearly between two elements: they
 * differ by a fraction of a unit in the last place. */
static bool
find_line (const GpuNormalizeTensorChannel *channel, uint32_t size, GpuNormalizeLine *line)
{
  static const int candidates[] = {0, 1, -1, 2, -2};
  const double factor = channel->factor;
  const double zero = channel->base - channel->shift / factor;
  const float high = (float)factor;

  /* Well within what floats can hold, with all that is worked out; and ones of 2^-8, below. */
  if (!(fabs (factor) > 0x1p-60 && fabs (factor) < 0x1p60 && fabs (zero) < 16384))
    return false;
  for (unsigned i = 0; i < G_N_ELEMENTS (candidates); i++) {
    const double aside = size < 4 ? 0 : candidates[i], more = size < 4 ? candidates[i] * 0x1p-25 : 0;
    const double origin = (rint (zero * 256) + aside) / 256;

    *line =
        (GpuNormalizeLine){(float)(GPU_NORMALIZE_ABOVE + origin), high, (float)(factor - (double)high + factor * more),
                           (float)((origin - channel->base) * factor + channel->shift)};
    if (line_is_exact (line, channel, size))
      return true;
  }
  return false;
}

/* Finding out takes as long as launching, and frame after frame has the same channels, so each thread remembers. */
bool
gpu_normalize_find_line (const GpuNormalizeTensorChannel *channel, uint32_t size, GpuNormalizeLine *line)
{
  static _Thread_local KnownLine known[64];
  uint64_t words[sizeof *channel / sizeof (uint64_t)], hash = size;

  G_STATIC_ASSERT (sizeof words == sizeof *channel);
  memcpy (words, channel, sizeof words);
  for (unsigned i = 0; i < G_N_ELEMENTS (words); i++)
    hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u, hash ^= hash >> 32;

  KnownLine *entry = &known[hash % G_N_ELEMENTS (known)];
  /* By their bits: 0 is not -0. */
  if (!entry->is_known || entry->size != size || memcmp (&entry->channel, channel, sizeof *channel)) {
    entry->channel = *channel;
    entry->size = size;
    entry->is_known = true;
    entry->line = (GpuNormalizeLine){0};
    entry->has_line = size ? find_line (channel, size, &entry->line) : find_step (channel, &entry->line);
  }
  *line = entry->line;
  return entry->has_line;
}

/* Which channel each byte of a plane's pixels belongs to. */
static void
set_plane_channels (GpuNormalizePlane *plane, const GpuNormalize *params, const double *factors,
                    const GpuFormatInfo *info, unsigned number)
{
  for (unsigned i = 0; i < plane->bytes; i++)
    plane->channel[i] = (GpuNormalizeChannel){0, 0, 255};
  for (unsigned i = 0; i < info->n_channels; i++)
    if (info->channel_plane[i] == number)
      plane->channel[info->channel[i]] =
          (GpuNormalizeChannel){(float)params->base[i], (float)factors[i], (float)params->shift};
}

/* 2^32 / @across, rounded up, for gpu_normalize_row_of(). */
static uint32_t
inverse_of (uint32_t across)
{
  return (uint32_t)(((UINT64_C (1) << 32) + across - 1) / across);
}

/* Threads in x that a row needs: one for each 16-byte line of the destination that it touches. */
static uint32_t
row_threads (const GpuNormalizePlane *plane)
{
  bool aligned = !(((uintptr_t)plane->dst | plane->dst_stride) & 15);

  return (uint32_t)((plane->row_bytes + (aligned ? 15 : 30)) / 16);
}

/* Whether @plane can be done by steps, which @by has then, from block @first on, and how many blocks. */
static bool
find_steps (const GpuNormalizePlane *plane, uint64_t *first, GpuNormalizeStepPlane *by)
{
  const uint64_t across = (plane->row_bytes - 1) / 16 + 1, rows = (plane->height - 1) / GPU_NORMALIZE_ROWS + 1;
  const uint64_t blocks = (across * rows - 1) / (GPU_NORMALIZE_BLOCK_X * GPU_NORMALIZE_BLOCK_Y) + 1;

  if ((((uintptr_t)plane->src | plane->src_stride | (uintptr_t)plane->dst | plane->dst_stride) & 15) ||
      (plane->src_stride | plane->dst_stride | plane->row_bytes) > INT32_MAX ||
      *first + blocks > GPU_NORMALIZE_MAX_BLOCKS)
    return false;
  for (unsigned i = 0; i < plane->bytes; i++) {
    const GpuNormalizeChannel *channel = &plane->channel[i];
    const GpuNormalizeTensorChannel key = {channel->base, channel->factor, channel->shift};
    GpuNormalizeLine line;

    if (!gpu_normalize_find_line (&key, 0, &line))
      return false;
    by->step[i] = (GpuNormalizeStep){line.origin, line.high, line.rest};
  }
  by->src = plane->src;
  by->dst = plane->dst;
  by->src_stride = (uint32_t)plane->src_stride;
  by->dst_stride = (uint32_t)plane->dst_stride;
  by->row_bytes = (uint32_t)plane->row_bytes;
  by->height = plane->height;
  by->bytes = plane->bytes;
  by->across = (uint32_t)across;
  by->inverse = inverse_of ((uint32_t)across);
  *first += blocks;
  return true;
}

static bool
normalize_picture (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuNormalize *params, const double *factors,
                   GError **error)
{
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);
  GpuExtent extent = {0, 0, 1};
  GpuNormalizeArgs args = {0};
  GpuNormalizeStepArgs steps = {.first = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}};
  uint64_t blocks = 0;
  bool has_steps = true;

  for (unsigned i = 0; i < info->n_planes; i++) {
    GpuNormalizePlane *plane = &args.plane[i];

    plane->src = gpu_op_plane (src, i);
    plane->dst = gpu_op_plane (dst, i);
    plane->src_stride = from->stride[i];
    plane->dst_stride = to->stride[i];
    plane->row_bytes = gpu_image_spec_row_bytes (from, i);
    plane->height = gpu_image_spec_plane_height (from, i);
    plane->bytes = info->plane[i].pixel_bytes;
    set_plane_channels (plane, params, factors, info, i);
    extent.x = MAX (extent.x, row_threads (plane));
    steps.first[i] = (uint32_t)blocks;
    has_steps = has_steps && find_steps (plane, &blocks, &steps.plane[i]);
  }
  if (has_steps) {
    extent.x = (uint32_t)blocks * GPU_NORMALIZE_BLOCK_X, extent.y = GPU_NORMALIZE_BLOCK_Y;
    return gpu_op_launch (op, src, dst, &rows_kernel, &steps, extent, error);
  }
  for (unsigned i = 0; i < info->n_planes; i++)
    gpu_op_add_rows (&args.rows, i, args.plane[i].height, GPU_NORMALIZE_BLOCK_Y);
  extent.y = gpu_op_extent_y (&args.rows, GPU_NORMALIZE_BLOCK_Y);
  return gpu_op_launch (op, src, dst, &any_rows_kernel, &args, extent, error);
}

static bool
check_tensor (GpuImage *src, GpuImage *dst, const GpuNormalize *params, GError **error)
{
  const GpuFormatInfo *info = gpu_format_info (gpu_image_spec (src)->format);
  const uint32_t channels = gpu_image_spec (dst)->channels;

  if (channels != info->n_channels && !(info->has_alpha && channels == 3)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "Normalize makes a tensor of %u channels of %s, not of %u%s",
                 info->n_channels, info->name, channels, info->has_alpha ? ", or of 3 without the alpha channel" : "");
    return false;
  }
  if ((unsigned)params->order > GPU_CHANNEL_ORDER_STORED) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID, "There is no channel order number %d: use one of GpuChannelOrder",
                 (int)params->order);
    return false;
  }
  return gpu_op_check_elements ("Normalize", dst, error);
}

/* Where channel @c of a picture comes among the first @n in memory. */
static unsigned
stored_position (const GpuFormatInfo *info, unsigned c, unsigned n)
{
  unsigned position = 0;

  for (unsigned i = 0; i < n; i++)
    position += info->channel_plane[i] < info->channel_plane[c] ||
                (info->channel_plane[i] == info->channel_plane[c] && info->channel[i] < info->channel[c]);
  return position;
}

/* What a kernel that computes needs. Returns whether one can: all channels have lines, addresses are multiples of what
 * vectors need, pixels come by four or are a word each, and spans can be counted. */
static bool
set_lines (GpuNormalizeTensorArgs *args)
{
  if (!args->src.vector || !args->dst.vector || (args->width % 4 && args->dst.group != 4) ||
      args->width > GPU_NORMALIZE_MAX_WIDTH)
    return false;
  args->straight = args->src.group == 3;
  for (unsigned c = 0; c < args->dst.channels; c++) {
    const uint32_t byte = args->src.group == 1 ? args->at[c] : args->src.at[args->at[c]];

    args->selector[c] = GPU_NORMALIZE_SELECTOR (byte);
    args->straight = args->straight && byte == c;
    if (!gpu_normalize_find_line (&args->channel[c], args->dst.size, &args->line[c]))
      return false;
  }
  args->spans = (args->width - 1) / GPU_NORMALIZE_SPAN + 1;
  args->inverse = inverse_of (args->spans);
  return (uint64_t)args->spans * args->height <= GPU_NORMALIZE_MAX_SPANS;
}

bool
gpu_normalize_to_tensor (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuNormalize *params,
                         const double *factors, GError **error)
{
  const GpuImageSpec *spec = gpu_image_spec (src);
  const GpuFormatInfo *info = gpu_format_info (spec->format);
  GpuNormalizeTensorArgs args = {
      .src = gpu_op_pixels (src), .dst = gpu_op_pixels (dst), .width = spec->width, .height = spec->height};

  for (unsigned c = 0; c < args.dst.channels; c++) {
    const unsigned to = params->order == GPU_CHANNEL_ORDER_STORED ? stored_position (info, c, args.dst.channels) : c;

    args.at[to] = c;
    args.channel[to] = (GpuNormalizeTensorChannel){params->base[c], factors[c], params->shift};
  }
  const uint32_t size = args.dst.size;

  if (!set_lines (&args))
    return gpu_op_launch (op, src, dst, &tensor_kernels[size], &args, gpu_op_quads_extent (spec->width, spec->height),
                          error);

  const uint32_t blocks = (args.spans * args.height - 1) / GPU_OP_QUAD_BLOCK_Y + 1;
  const GpuExtent extent = {blocks * GPU_OP_QUAD_BLOCK_X, GPU_OP_QUAD_BLOCK_Y, 1};
  return gpu_op_launch (op, src, dst, args.dst.group == 1 ? &planes_kernels[size] : &packed_kernels[size], &args,
                        extent, error);
}

static bool
normalize (const GpuOp *op, GpuImage *src, GpuImage *dst, const void *data, void *unused, GError **error)
{
  const GpuNormalize *params = data;
  const GpuImageSpec *from = gpu_image_spec (src), *to = gpu_image_spec (dst);
  const GpuFormatInfo *info = gpu_format_info (from->format);
  const bool tensor = gpu_format_info (to->format)->is_tensor, from_420 = info->is_yuv && info->n_channels > 1;
  const GpuFormatInfo *channels = tensor && from_420 ? gpu_format_info (GPU_FORMAT_RGB) : info;
  double factors[GPU_MAX_CHANNELS];

  if (tensor ? !gpu_op_check_devices ("Normalize", op->stream, src, dst, error) ||
                   !gpu_op_check_picture ("Normalize", src, error)
             : !gpu_op_check ("Normalize", op->stream, src, dst, error))
    return false;
  if (info->bits != 8) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "Normalize works on samples of 8 bits, not on %s: convert it to another format first", info->name);
    return false;
  }
  if (!gpu_op_check_size ("Normalize", dst, from->width, from->height, error) ||
      (!gpu_op_same_memory (src, dst) && !gpu_op_check_apart ("Normalize", src, dst, error)) ||
      (tensor && !check_tensor (src, dst, params, error)) || !find_factors (params, channels, factors, error))
    return false;
  if (!tensor)
    return normalize_picture (op, src, dst, params, factors, error);
  return from_420 ? gpu_normalize_420_to_tensor (op, src, dst, params, factors, error)
                  : gpu_normalize_to_tensor (op, src, dst, params, factors, error);
}

bool
gpu_normalize (GpuStream *stream, GpuImage *src, GpuImage *dst, const GpuNormalize *params, GError **error)
{
  const GpuOp op = {stream, NULL};

  return normalize (&op, src, dst, params, NULL, error);
}

bool
gpu_normalize_batch (GpuStream *stream, GpuBatch *src, GpuBatch *dst, const GpuNormalize *params, unsigned n,
                     GError **error)
{
  return gpu_op_run_batch ("Normalize", stream, src, dst, normalize, params, sizeof *params, n, NULL, error);
}
