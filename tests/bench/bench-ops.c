/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What image operations take on the device, beside the floor: a copy that reads each byte an operation needs once and
 * writes each byte that it makes once, in as many launches. Memory is read in sectors of 32 bytes: a byte that is
 * needed brings its neighbours. Frames of random bytes take turns, so many that they do not fit in the GPU's L2.
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

/* @option: a GpuOrientation, or a GpuResizeFilter; @channels: of tensors; @batch: whether frames are also taken 8 at a
 * time. */
typedef struct {
  Kind kind;
  const char *name;
  GpuFormat from, to;
  unsigned option;
  unsigned channels;
  bool batch;
  unsigned launches;
} Operation;

static const Operation flips[] = {
    {FLIP, "RGBA, left to right", GPU_FORMAT_RGBA, GPU_FORMAT_RGBA, GPU_ORIENTATION_HORIZONTAL, .batch = true,
     .launches = 1},
    {FLIP, "RGBA, upside down", GPU_FORMAT_RGBA, GPU_FORMAT_RGBA, GPU_ORIENTATION_VERTICAL, .launches = 1},
    {FLIP, "RGBA, clockwise", GPU_FORMAT_RGBA, GPU_FORMAT_RGBA, GPU_ORIENTATION_90R, .launches = 1},
    {FLIP, "RGB, left to right", GPU_FORMAT_RGB, GPU_FORMAT_RGB, GPU_ORIENTATION_HORIZONTAL, .batch = true,
     .launches = 1},
    {FLIP, "RGB, upside down", GPU_FORMAT_RGB, GPU_FORMAT_RGB, GPU_ORIENTATION_VERTICAL, .launches = 1},
    {FLIP, "RGB, clockwise", GPU_FORMAT_RGB, GPU_FORMAT_RGB, GPU_ORIENTATION_90R, .launches = 1},
    {FLIP, "NV12, left to right", GPU_FORMAT_NV12, GPU_FORMAT_NV12, GPU_ORIENTATION_HORIZONTAL, .batch = true,
     .launches = 1},
    {FLIP, "NV12, clockwise", GPU_FORMAT_NV12, GPU_FORMAT_NV12, GPU_ORIENTATION_90R, .launches = 1},
    {FLIP, "RGBP, left to right", GPU_FORMAT_RGBP, GPU_FORMAT_RGBP, GPU_ORIENTATION_HORIZONTAL, .launches = 1},
    {FLIP, "P010, clockwise", GPU_FORMAT_P010_10LE, GPU_FORMAT_P010_10LE, GPU_ORIENTATION_90R, .launches = 1},
};

static const Operation converts[] = {
    {CONVERT, "NV12 to RGBA", GPU_FORMAT_NV12, GPU_FORMAT_RGBA, .batch = true, .launches = 1},
    {CONVERT, "NV12 to RGB", GPU_FORMAT_NV12, GPU_FORMAT_RGB, .batch = true, .launches = 1},
    {CONVERT, "NV12 to RGBP", GPU_FORMAT_NV12, GPU_FORMAT_RGBP, .launches = 1},
    {CONVERT, "P010 to RGBA", GPU_FORMAT_P010_10LE, GPU_FORMAT_RGBA, .launches = 1},
    {CONVERT, "RGBA to NV12", GPU_FORMAT_RGBA, GPU_FORMAT_NV12, .batch = true, .launches = 1},
    {CONVERT, "RGB to NV12", GPU_FORMAT_RGB, GPU_FORMAT_NV12, .launches = 1},
    {CONVERT, "I420 to NV12", GPU_FORMAT_I420, GPU_FORMAT_NV12, .launches = 1},
    {CONVERT, "RGB to BGRA", GPU_FORMAT_RGB, GPU_FORMAT_BGRA, .launches = 1},
    {CONVERT, "RGBA to GRAY8", GPU_FORMAT_RGBA, GPU_FORMAT_GRAY8, .launches = 1},
    {CONVERT, "float32 to float16 tensor", GPU_FORMAT_F32_CHW, GPU_FORMAT_F16_CHW, .channels = 3, .launches = 1},
};

static const Operation normalizes[] = {
    {NORMALIZE, "RGBA", GPU_FORMAT_RGBA, GPU_FORMAT_RGBA, .batch = true, .launches = 1},
    {NORMALIZE, "RGB", GPU_FORMAT_RGB, GPU_FORMAT_RGB, .launches = 1},
    {NORMALIZE, "NV12", GPU_FORMAT_NV12, GPU_FORMAT_NV12, .launches = 1},
    {NORMALIZE, "RGBA to float32 CHW", GPU_FORMAT_RGBA, GPU_FORMAT_F32_CHW, .channels = 3, .batch = true,
     .launches = 1},
    {NORMALIZE, "RGB to float32 CHW", GPU_FORMAT_RGB, GPU_FORMAT_F32_CHW, .channels = 3, .launches = 1},
    {NORMALIZE, "RGB to float16 CHW", GPU_FORMAT_RGB, GPU_FORMAT_F16_CHW, .channels = 3, .launches = 1},
    {NORMALIZE, "RGBA to float16 HWC", GPU_FORMAT_RGBA, GPU_FORMAT_F16_HWC, .channels = 3, .launches = 1},
    {NORMALIZE, "RGB to float32 HWC", GPU_FORMAT_RGB, GPU_FORMAT_F32_HWC, .channels = 3, .launches = 1},
};

static const Operation reformats[] = {
    {REFORMAT, "RGB to uint8 CHW", GPU_FORMAT_RGB, GPU_FORMAT_U8_CHW, .channels = 3, .batch = true, .launches = 1},
    {REFORMAT, "RGBA to uint8 CHW", GPU_FORMAT_RGBA, GPU_FORMAT_U8_CHW, .channels = 4, .launches = 1},
    {REFORMAT, "uint8 CHW to RGB", GPU_FORMAT_U8_CHW, GPU_FORMAT_RGB, .channels = 3, .launches = 1},
    {REFORMAT, "float16 HWC to CHW", GPU_FORMAT_F16_HWC, GPU_FORMAT_F16_CHW, .channels = 3, .launches = 1},
    {REFORMAT, "float32 HWC to CHW", GPU_FORMAT_F32_HWC, GPU_FORMAT_F32_CHW, .channels = 3, .launches = 1},
    {REFORMAT, "float32 CHW to HWC", GPU_FORMAT_F32_CHW, GPU_FORMAT_F32_HWC, .channels = 3, .launches = 1},
};

static const Operation bilinears[] = {
    {BILINEAR, "RGBA", GPU_FORMAT_RGBA, GPU_FORMAT_RGBA, GPU_RESIZE_BILINEAR, .batch = true, .launches = 1},
    {BILINEAR, "RGB", GPU_FORMAT_RGB, GPU_FORMAT_RGB, GPU_RESIZE_BILINEAR, .batch = true, .launches = 1},
    {BILINEAR, "NV12", GPU_FORMAT_NV12, GPU_FORMAT_NV12, GPU_RESIZE_BILINEAR, .batch = true, .launches = 1},
};

static const Operation filters[] = {
    {FILTER, "RGBA, bilinear", GPU_FORMAT_RGBA, GPU_FORMAT_RGBA, GPU_RESIZE_BILINEAR, .launches = 2},
    {FILTER, "RGBx, bilinear", GPU_FORMAT_RGBX, GPU_FORMAT_RGBX, GPU_RESIZE_BILINEAR, .launches = 2},
    {FILTER, "RGB, bilinear", GPU_FORMAT_RGB, GPU_FORMAT_RGB, GPU_RESIZE_BILINEAR, .launches = 2},
    {FILTER, "NV12, bilinear", GPU_FORMAT_NV12, GPU_FORMAT_NV12, GPU_RESIZE_BILINEAR, .launches = 2},
    {FILTER, "RGBA, bicubic", GPU_FORMAT_RGBA, GPU_FORMAT_RGBA, GPU_RESIZE_BICUBIC, .launches = 2},
    {FILTER, "RGB, bicubic", GPU_FORMAT_RGB, GPU_FORMAT_RGB, GPU_RESIZE_BICUBIC, .launches = 2},
    {FILTER, "RGB, Lanczos", GPU_FORMAT_RGB, GPU_FORMAT_RGB, GPU_RESIZE_LANCZOS, .launches = 2},
};

/* What runs: one operation on frames of one size. */
typedef struct {
  const Operation *operation;
  GpuStream *stream;
  Floor *floor;
  GpuResizer *resizer;
  GpuNormalize normalize;
  size_t read, write; /* bytes */
  unsigned n_pairs, next;
  GpuImage *src[MAX_PAIRS], *dst[MAX_PAIRS];
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

static void
run_operation (Job *job, GpuImage *src, GpuImage *dst)
{
  const Operation *operation = job->operation;
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
    gpu_reformat (job->stream, src, dst, &error);
    break;
  case BILINEAR:
  case FILTER: {
    const GpuResize params = {.filter = (GpuResizeFilter)operation->option, .antialias = operation->kind == FILTER};
    gpu_resizer_run (job->resizer, job->stream, src, dst, &params, &error);
    break;
  }
  }
  bench_check (error);
}

static void
submit_operations (void *data, unsigned n)
{
  Job *job = data;
  for (unsigned i = 0; i < n; i++, job->next = (job->next + 1) % job->n_pairs)
    run_operation (job, job->src[job->next], job->dst[job->next]);
}

/* As many launches as the operation's, each with its part of the bytes. */
static void
submit_floor (void *data, unsigned n)
{
  Job *job = data;
  const unsigned launches = job->operation->launches;
  const size_t read = job->read / launches / 256 * 256, write = job->write / launches / 256 * 256;
  for (unsigned i = 0; i < n; i++, job->next = (job->next + 1) % job->n_pairs)
    for (unsigned part = 0; part < launches; part++) {
      const bool last = part == launches - 1;
      void *src = (char *)gpu_image_data (job->src[job->next]) + part * read;
      void *dst = (char *)gpu_image_data (job->dst[job->next]) + part * write;
      floor_copy (job->floor, job->stream, 1, &dst, last ? job->write - part * write : write, &src,
                  last ? job->read - part * read : read);
    }
}

/* BATCH frames a launch. */
static void
submit_floor_batches (void *data, unsigned n)
{
  Job *job = data;
  for (unsigned i = 0; i < n; i += BATCH) {
    void *src[BATCH], *dst[BATCH];
    for (unsigned k = 0; k < BATCH; k++, job->next = (job->next + 1) % job->n_pairs) {
      src[k] = gpu_image_data (job->src[job->next]);
      dst[k] = gpu_image_data (job->dst[job->next]);
    }
    floor_copy (job->floor, job->stream, BATCH, dst, job->write, src, job->read);
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
  job->n_pairs = (unsigned)CLAMP (ring / (from->size + to->size) + 1, 3, MAX_PAIRS);
  for (unsigned i = 0; i < job->n_pairs; i++) {
    job->src[i] = gpu_image_acquire (device, from, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
    bench_check (error);
    job->dst[i] = gpu_image_acquire (device, to, GPU_MEMORY_STREAM_ORDERED, stream, GPU_ACQUIRE_DEFAULT, &error);
    bench_check (error);
    gpu_image_copy_from_host (stream, job->src[i], noise + 8 * i, from, &error);
    bench_check (error);
  }
}

static void
close_job (Job *job)
{
  for (unsigned i = 0; i < job->n_pairs; i++) {
    gpu_image_unref (job->src[i]);
    gpu_image_unref (job->dst[i]);
  }
  gpu_resizer_free (job->resizer);
}

static void
warm_up (Job *job)
{
  GError *error = NULL;
  submit_operations (job, 1);
  submit_floor (job, 1);
  submit_floor_batches (job, BATCH);
  gpu_stream_synchronize (job->stream, &error);
  bench_check (error);
}

typedef void Submit (void *data, unsigned n);

/* Both in turn. Returns: in @us the medians for a frame. */
static void
time_both (Job *job, Submit *const submit[2], double us[2])
{
  const bool is_host = gpu_device_is_host (device);
  const unsigned frames = is_host ? 2 : FRAMES;
  const int rounds = is_host ? 3 : ROUNDS;
  double figures[2][ROUNDS];
  for (int round = -1; round < rounds; round++)
    for (unsigned i = 0; i < 2; i++)
      figures[i][MAX (round, 0)] = floor_time (job->floor, job->stream, submit[i], job, frames) / frames / 1e3;
  for (unsigned i = 0; i < 2; i++)
    us[i] = bench_median (figures[i], (unsigned)rounds);
}

/* One operation on frames of a size, one a launch and, where it is asked for, several. */
static void
measure (const Operation *operation, Floor *floor, GpuStream *stream, const GpuImageSpec *from, const GpuImageSpec *to)
{
  static const double goals[] = {
      [FLIP] = 1.1, [CONVERT] = 1.1, [NORMALIZE] = 1.1, [REFORMAT] = 1.1, [BILINEAR] = 1.3, [FILTER] = 2};
  Submit *const one[] = {submit_floor, submit_operations}, *const many[] = {submit_floor_batches, submit_operations};
  const double goal = goals[operation->kind];
  double us[2];
  Job job;

  open_job (&job, operation, floor, stream, from, to);
  /* What is loaded or allocated at first might wait for a stream that is held. */
  warm_up (&job);
  time_both (&job, one, us);
  bench_row_against (operation->name, us[1], "us", us[0], gpu_device_is_host (device) ? BENCH_NO_GOAL : BENCH_AT_MOST,
                     goal);
  if (operation->batch && !gpu_device_is_host (device)) {
    g_autofree char *name = g_strdup_printf ("%s, %d frames in as many launches", operation->name, BATCH);
    time_both (&job, many, us);
    bench_row_against (name, us[1], "us", us[0], BENCH_NO_GOAL, 0);
  }
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
  GError *error = NULL;
  GpuStream *stream = gpu_stream_new (device, true, &error);
  bench_check (error);
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
  }

  g_free (noise);
  floor_free (floor);
  gpu_stream_unref (stream);
  gpu_device_unref (device);
  return bench_finish ();
}
