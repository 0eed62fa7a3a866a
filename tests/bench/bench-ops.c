/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What image operations take on the device, beside the floor: a copy that reads each byte an operation needs once and
 * writes each byte that it makes once, in as many launches. Memory is read in sectors of 32 bytes: a byte that is
 * needed brings its neighbours. Frames of random bytes take turns, so many that they do not fit in the GPU's L2: one a
 * launch, and as batches, several a launch of the operation and of the floor.
 */
#include "bench.h"
#include "bytes.h"
#include "floor.h"

#include <string.h>

#define RING_BYTES ((size_t)256 << 20)
#define MAX_PAIRS 32
#define ROUNDS 9
#define FRAMES 64 /* in a round, at least */
#define BATCH 8

typedef enum {
  FLIP,
  CONVERT,
  NORMALIZE,
  REFORMAT,
  BILINEAR,
  FILTER,
} Kind;

/* @option: a GpuOrientation, or a GpuResizeFilter; @channels: of tensors. */
typedef struct {
  Kind kind;
  const char *name;
  GpuFormat from, to;
  unsigned option;
  unsigned channels;
} Operation;

static const Operation flips[] = {
    {FLIP, "RGBA, left to right", GPU_FORMAT_RGBA, .to = GPU_FORMAT_RGBA, .option = GPU_ORIENTATION_HORIZONTAL},
    {FLIP, "RGBA, upside down", GPU_FORMAT_RGBA, .to = GPU_FORMAT_RGBA, .option = GPU_ORIENTATION_VERTICAL},
    {FLIP, "RGBA, clockwise", GPU_FORMAT_RGBA, .to = GPU_FORMAT_RGBA, .option = GPU_ORIENTATION_90R},
    {FLIP, "RGB, left to right", GPU_FORMAT_RGB, .to = GPU_FORMAT_RGB, .option = GPU_ORIENTATION_HORIZONTAL},
    {FLIP, "RGB, upside down", GPU_FORMAT_RGB, .to = GPU_FORMAT_RGB, .option = GPU_ORIENTATION_VERTICAL},
    {FLIP, "RGB, clockwise", GPU_FORMAT_RGB, .to = GPU_FORMAT_RGB, .option = GPU_ORIENTATION_90R},
    {FLIP, "NV12, left to right", GPU_FORMAT_NV12, .to = GPU_FORMAT_NV12, .option = GPU_ORIENTATION_HORIZONTAL},
    {FLIP, "NV12, clockwise", GPU_FORMAT_NV12, .to = GPU_FORMAT_NV12, .option = GPU_ORIENTATION_90R},
    {FLIP, "RGBP, left to right", GPU_FORMAT_RGBP, .to = GPU_FORMAT_RGBP, .option = GPU_ORIENTATION_HORIZONTAL},
    {FLIP, "P010, clockwise", GPU_FORMAT_P010_10LE, .to = GPU_FORMAT_P010_10LE, .option = GPU_ORIENTATION_90R},
};

static const Operation converts[] = {
    {CONVERT, "NV12 to RGBA", GPU_FORMAT_NV12, .to = GPU_FORMAT_RGBA},
    {CONVERT, "NV12 to RGB", GPU_FORMAT_NV12, .to = GPU_FORMAT_RGB},
    {CONVERT, "NV12 to RGBP", GPU_FORMAT_NV12, .to = GPU_FORMAT_RGBP},
    {CONVERT, "P010 to RGBA", GPU_FORMAT_P010_10LE, .to = GPU_FORMAT_RGBA},
    {CONVERT, "RGBA to NV12", GPU_FORMAT_RGBA, .to = GPU_FORMAT_NV12},
    {CONVERT, "RGB to NV12", GPU_FORMAT_RGB, .to = GPU_FORMAT_NV12},
    {CONVERT, "I420 to NV12", GPU_FORMAT_I420, .to = GPU_FORMAT_NV12},
    {CONVERT, "RGB to BGRA", GPU_FORMAT_RGB, .to = GPU_FORMAT_BGRA},
    {CONVERT, "RGBA to GRAY8", GPU_FORMAT_RGBA, .to = GPU_FORMAT_GRAY8},
    {CONVERT, "float32 to float16 tensor", GPU_FORMAT_F32_CHW, .to = GPU_FORMAT_F16_CHW, .channels = 3},
};

static const Operation normalizes[] = {
    {NORMALIZE, "RGBA", GPU_FORMAT_RGBA, .to = GPU_FORMAT_RGBA},
    {NORMALIZE, "RGB", GPU_FORMAT_RGB, .to = GPU_FORMAT_RGB},
    {NORMALIZE, "NV12", GPU_FORMAT_NV12, .to = GPU_FORMAT_NV12},
    {NORMALIZE, "RGBA to float32 CHW", GPU_FORMAT_RGBA, .to = GPU_FORMAT_F32_CHW, .channels = 3},
    {NORMALIZE, "RGB to float32 CHW", GPU_FORMAT_RGB, .to = GPU_FORMAT_F32_CHW, .channels = 3},
    {NORMALIZE, "RGB to float16 CHW", GPU_FORMAT_RGB, .to = GPU_FORMAT_F16_CHW, .channels = 3},
    {NORMALIZE, "RGBA to float16 HWC", GPU_FORMAT_RGBA, .to = GPU_FORMAT_F16_HWC, .channels = 3},
    {NORMALIZE, "RGB to float32 HWC", GPU_FORMAT_RGB, .to = GPU_FORMAT_F32_HWC, .channels = 3},
};

static const Operation reformats[] = {
    {REFORMAT, "RGB to uint8 CHW", GPU_FORMAT_RGB, .to = GPU_FORMAT_U8_CHW, .channels = 3},
    {REFORMAT, "RGBA to uint8 CHW", GPU_FORMAT_RGBA, .to = GPU_FORMAT_U8_CHW, .channels = 4},
    {REFORMAT, "uint8 CHW to RGB", GPU_FORMAT_U8_CHW, .to = GPU_FORMAT_RGB, .channels = 3},
    {REFORMAT, "float16 HWC to CHW", GPU_FORMAT_F16_HWC, .to = GPU_FORMAT_F16_CHW, .channels = 3},
    {REFORMAT, "float32 HWC to CHW", GPU_FORMAT_F32_HWC, .to = GPU_FORMAT_F32_CHW, .channels = 3},
    {REFORMAT, "float32 CHW to HWC", GPU_FORMAT_F32_CHW, .to = GPU_FORMAT_F32_HWC, .channels = 3},
};

static const Operation bilinears[] = {
    {BILINEAR, "RGBA", GPU_FORMAT_RGBA, .to = GPU_FORMAT_RGBA, .option = GPU_RESIZE_BILINEAR},
    {BILINEAR, "RGB", GPU_FORMAT_RGB, .to = GPU_FORMAT_RGB, .option = GPU_RESIZE_BILINEAR},
    {BILINEAR, "NV12", GPU_FORMAT_NV12, .to = GPU_FORMAT_NV12, .option = GPU_RESIZE_BILINEAR},
};

static const Operation filters[] = {
    {FILTER, "RGBA, bilinear", GPU_FORMAT_RGBA, .to = GPU_FORMAT_RGBA, .option = GPU_RESIZE_BILINEAR},
    {FILTER, "RGBx, bilinear", GPU_FORMAT_RGBX, .to = GPU_FORMAT_RGBX, .option = GPU_RESIZE_BILINEAR},
    {FILTER, "RGB, bilinear", GPU_FORMAT_RGB, .to = GPU_FORMAT_RGB, .option = GPU_RESIZE_BILINEAR},
    {FILTER, "NV12, bilinear", GPU_FORMAT_NV12, .to = GPU_FORMAT_NV12, .option = GPU_RESIZE_BILINEAR},
    {FILTER, "RGBA, bicubic", GPU_FORMAT_RGBA, .to = GPU_FORMAT_RGBA, .option = GPU_RESIZE_BICUBIC},
    {FILTER, "RGB, bicubic", GPU_FORMAT_RGB, .to = GPU_FORMAT_RGB, .option = GPU_RESIZE_BICUBIC},
    {FILTER, "RGB, Lanczos", GPU_FORMAT_RGB, .to = GPU_FORMAT_RGB, .option = GPU_RESIZE_LANCZOS},
};

/* What a kind is measured against: of so many launches, and its goal. */
static const struct {
  unsigned launches;
  double goal;
} floors[] = {
    [FLIP] = {1, 1.1},     [CONVERT] = {1, 1.1},  [NORMALIZE] = {1, 1.1},
    [REFORMAT] = {1, 1.1}, [BILINEAR] = {1, 1.3}, [FILTER] = {1, 2},
};

/* What runs: one operation on frames of one size, @together of them a launch: 1 or BATCH. */
typedef struct {
  const Operation *operation;
  GpuStream *stream;
  Floor *floor;
  GpuResizer *resizer;
  GpuNormalize normalize;
  size_t read, write; /* bytes */
  unsigned together;
  unsigned n_pairs, next; /* pairs are as many as whole batches have */
  GpuImage *src[MAX_PAIRS], *dst[MAX_PAIRS];
  GpuBatch *src_batch[MAX_PAIRS / BATCH], *dst_batch[MAX_PAIRS / BATCH];
} Job;

static GpuDevice *device;
static uint8_t *noise;
static size_t noise_size;

static GpuImageSpec
make_spec (GpuFormat format, unsigned channels, uint32_t width, uint32_t height)
{
  const GpuFormatInfo *info = gpu_format_info (format);
  if (!info->is_tensor)
    return bench_spec (format, width, height);
  GpuImageSpec spec;
  GError *error = NULL;
  gpu_image_spec_init_tensor (&spec, info->element, info->layout, channels, width, height, &error);
  bench_check (error);
  return spec;
}

static GpuResize
resize_of (const Operation *operation)
{
  return (GpuResize){.filter = (GpuResizeFilter)operation->option, .antialias = operation->kind == FILTER};
}

static void
run_operation (Job *job, GpuImage *src, GpuImage *dst)
{
  const Operation *operation = job->operation;
  const GpuResize resize = resize_of (operation);
  GError *error = NULL;
  switch (operation->kind) {
  case FLIP:
    gpu_flip (job->stream, src, dst, (GpuOrientation)operation->option, &error);
    break;
  case CONVERT:
    gpu_convert (job->stream, src, dst, NULL, &error);
    break;
  case NORMALIZE:
    gpu_normalize (job->stream, src, dst, &job->normalize, &error);
    break;
  case REFORMAT:
    gpu_reformat (job->stream, src, dst, NULL, &error);
    break;
  case BILINEAR:
  case FILTER:
    gpu_resizer_run (job->resizer, job->stream, src, dst, &resize, &error);
    break;
  }
  bench_check (error);
}

static void
run_batch (Job *job, GpuBatch *src, GpuBatch *dst)
{
  const Operation *operation = job->operation;
  const GpuOrientation orientation = (GpuOrientation)operation->option;
  const GpuResize resize = resize_of (operation);
  GError *error = NULL;
  switch (operation->kind) {
  case FLIP:
    gpu_flip_batch (job->stream, src, dst, &orientation, 1, &error);
    break;
  case CONVERT:
    gpu_convert_batch (job->stream, src, dst, NULL, 1, &error);
    break;
  case NORMALIZE:
    gpu_normalize_batch (job->stream, src, dst, &job->normalize, 1, &error);
    break;
  case REFORMAT:
    gpu_reformat_batch (job->stream, src, dst, NULL, 1, &error);
    break;
  case BILINEAR:
  case FILTER:
    gpu_resizer_run_batch (job->resizer, job->stream, src, dst, &resize, 1, &error);
    break;
  }
  bench_check (error);
}

static void
submit_operations (void *data, unsigned n)
{
  Job *job = data;
  for (unsigned i = 0; i < n; i += job->together, job->next = (job->next + job->together) % job->n_pairs)
    if (job->together == BATCH)
      run_batch (job, job->src_batch[job->next / BATCH], job->dst_batch[job->next / BATCH]);
    else
      run_operation (job, job->src[job->next], job->dst[job->next]);
}

/* As many launches as the operation's, each with its part of the bytes. */
static void
submit_floor (void *data, unsigned n)
{
  Job *job = data;
  const unsigned launches = floors[job->operation->kind].launches;
  const size_t read = job->read / launches / 256 * 256, write = job->write / launches / 256 * 256;
  for (unsigned i = 0; i < n; i += job->together, job->next = (job->next + job->together) % job->n_pairs)
    for (unsigned part = 0; part < launches; part++) {
      const bool last = part == launches - 1;
      void *src[BATCH], *dst[BATCH];
      for (unsigned k = 0; k < job->together; k++) {
        src[k] = (char *)gpu_image_data (job->src[job->next + k]) + part * read;
        dst[k] = (char *)gpu_image_data (job->dst[job->next + k]) + part * write;
      }
      floor_copy (job->floor, job->stream, job->together, dst, last ? job->write - part * write : write, src,
                  last ? job->read - part * read : read);
    }
}

static void
make_noise (size_t size)
{
  uint64_t state = 88172645463325252u;
  noise_size = (size + 7) / 8 * 8;
  noise = g_malloc (noise_size);
  for (size_t i = 0; i < noise_size; i += 8) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    memcpy (noise + i, &state, 8);
  }
}

static void
open_job (Job *job, const Operation *operation, Floor *floor, GpuStream *stream, const GpuImageSpec *from,
          const GpuImageSpec *to)
{
  GError *error = NULL;
  *job = (Job){.operation = operation, .stream = stream, .floor = floor, .resizer = gpu_resizer_new ()};
  gpu_normalize_init (&job->normalize);
  for (unsigned c = 0; c < 4; c++) {
    job->normalize.base[c] = 110.0f + 5.0f * (float)c;
    job->normalize.scale[c] = 0.017f + 0.001f * (float)c;
    if (!gpu_format_info (to->format)->is_tensor)
      job->normalize.scale[c] = 1.1f;
  }
  job->write = bytes_of_samples (to);
  job->read = operation->kind == BILINEAR ? bytes_of_bilinear (from, to) : bytes_of_samples (from);
  const size_t ring = gpu_device_is_host (device) ? RING_BYTES / 8 : RING_BYTES;
  const unsigned batches = (unsigned)(ring / (from->size + to->size) / BATCH + 1);
  job->n_pairs = MIN (batches * BATCH, MAX_PAIRS);
  for (unsigned i = 0; i < job->n_pairs; i++) {
    job->src[i] = bench_image_new (device, from, GPU_MEMORY_STREAM_ORDERED, stream);
    job->dst[i] = bench_image_new (device, to, GPU_MEMORY_STREAM_ORDERED, stream);
    /* One frame goes over the bus, which takes longer than all that is measured. */
    if (i == 0)
      gpu_image_copy_from_host (stream, job->src[i], noise, from, &error);
    else
      gpu_image_copy (stream, job->src[0], job->src[i], &error);
    bench_check (error);
  }
  for (unsigned i = 0; i < job->n_pairs / BATCH; i++) {
    job->src_batch[i] = gpu_batch_new (job->src + i * BATCH, BATCH, &error);
    bench_check (error);
    job->dst_batch[i] = gpu_batch_new (job->dst + i * BATCH, BATCH, &error);
    bench_check (error);
  }
}

static void
close_job (Job *job)
{
  for (unsigned i = 0; i < job->n_pairs / BATCH; i++) {
    gpu_batch_unref (job->src_batch[i]);
    gpu_batch_unref (job->dst_batch[i]);
  }
  for (unsigned i = 0; i < job->n_pairs; i++) {
    gpu_image_unref (job->src[i]);
    gpu_image_unref (job->dst[i]);
  }
  gpu_resizer_free (job->resizer);
}

/* What is loaded, allocated or written at first, kernels and batches' tables, might wait for a stream that is held. */
static void
warm_up (Job *job)
{
  GError *error = NULL;
  submit_operations (job, job->together == BATCH ? job->n_pairs : 1);
  submit_floor (job, job->together);
  job->next = 0;
  gpu_stream_synchronize (job->stream, &error);
  bench_check (error);
}

/* The floor and the operation in turn, and a row of their medians for a frame. */
static void
measure_together (Job *job, unsigned together, const char *name)
{
  static void (*const submit[2]) (void *data, unsigned n) = {submit_floor, submit_operations};
  const bool is_host = gpu_device_is_host (device);
  const unsigned frames = is_host ? MAX (2, together) : FRAMES;
  const int rounds = is_host ? 3 : ROUNDS;
  double figures[2][ROUNDS];
  job->together = together;
  warm_up (job);
  for (int round = -1; round < rounds; round++)
    for (unsigned i = 0; i < 2; i++)
      figures[i][MAX (round, 0)] = floor_time (job->floor, job->stream, submit[i], job, frames) / frames / 1e3;
  bench_row_against (name, bench_median (figures[1], (unsigned)rounds), "us",
                     bench_median (figures[0], (unsigned)rounds), is_host ? BENCH_NO_GOAL : BENCH_AT_MOST,
                     floors[job->operation->kind].goal);
}

/* One operation on frames of a size. On the CPU device a batch is worked on frame by frame. */
static void
measure (const Operation *operation, Floor *floor, GpuStream *stream, const GpuImageSpec *from, const GpuImageSpec *to)
{
  g_autofree char *name = g_strdup_printf ("%s, %d frames a launch", operation->name, BATCH);
  Job job;
  open_job (&job, operation, floor, stream, from, to);
  measure_together (&job, 1, operation->name);
  if (!gpu_device_is_host (device))
    measure_together (&job, BATCH, name);
  close_job (&job);
}

static void
measure_all (const char *title, const Operation *operations, size_t n, Floor *floor, GpuStream *stream, uint32_t width,
             uint32_t height, uint32_t to_width, uint32_t to_height)
{
  g_autofree char *section = g_strdup_printf ("%s, %ux%u", title, width, height);
  if (to_width != width) {
    g_free (section);
    section = g_strdup_printf ("%s, %ux%u to %ux%u", title, width, height, to_width, to_height);
  }
  bench_section (section);
  for (size_t i = 0; i < n; i++) {
    const Operation *operation = &operations[i];
    const bool turned = operation->kind == FLIP && gpu_orientation_is_transposed ((GpuOrientation)operation->option);
    const GpuImageSpec from = make_spec (operation->from, operation->channels, width, height);
    const GpuImageSpec to =
        make_spec (operation->to, operation->channels, turned ? to_height : to_width, turned ? to_width : to_height);
    measure (operation, floor, stream, &from, &to);
  }
  GError *error = NULL;
  gpu_cache_clear (device, GPU_CACHE_ALL, &error);
  bench_check (error);
}

int
main (int argc, char **argv)
{
  device = bench_init (argc, argv);
  GpuStream *stream = bench_stream_new (device);
  Floor *floor = floor_new (device);

  static const uint32_t sizes[][2] = {{1920, 1080}, {3840, 2160}};
  const unsigned n_sizes = gpu_device_is_host (device) ? 1 : 2;
  make_noise ((size_t)3840 * 2160 * 12 + 8 * MAX_PAIRS);
  for (unsigned i = 0; i < n_sizes; i++) {
    const uint32_t width = sizes[i][0], height = sizes[i][1];
    measure_all ("Flip", flips, G_N_ELEMENTS (flips), floor, stream, width, height, width, height);
    measure_all ("Convert", converts, G_N_ELEMENTS (converts), floor, stream, width, height, width, height);
    measure_all ("Normalize", normalizes, G_N_ELEMENTS (normalizes), floor, stream, width, height, width, height);
    measure_all ("Reformat", reformats, G_N_ELEMENTS (reformats), floor, stream, width, height, width, height);
    measure_all ("Resize, bilinear", bilinears, G_N_ELEMENTS (bilinears), floor, stream, width, height, 640, 640);
    measure_all ("Resize, bilinear", bilinears, G_N_ELEMENTS (bilinears), floor, stream, width, height, width / 2,
                 height / 2);
    measure_all ("Resize, antialiased", filters, G_N_ELEMENTS (filters), floor, stream, width, height, 640, 640);
    measure_all ("Resize, antialiased", filters, G_N_ELEMENTS (filters), floor, stream, width, height, width / 2,
                 height / 2);
    measure_all ("Resize, antialiased", filters, G_N_ELEMENTS (filters), floor, stream, width, height, 320, 320);
  }

  g_free (noise);
  floor_free (floor);
  gpu_stream_unref (stream);
  gpu_device_unref (device);
  return bench_finish ();
}
