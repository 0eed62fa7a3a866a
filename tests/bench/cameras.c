/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Many cameras and one model; see cameras.h.
 */
#include "cameras.h"

#include "bench.h"

static const GpuResize resize = {.filter = GPU_RESIZE_BILINEAR};

static GpuBatch *
acquire_batch (Cameras *self, const GpuImageSpec *spec)
{
  GpuImageSpec specs[CAMERAS];
  GError *error = NULL;
  for (unsigned i = 0; i < CAMERAS; i++)
    specs[i] = *spec;
  GpuBatch *batch = gpu_batch_acquire (self->device, specs, CAMERAS, GPU_MEMORY_STREAM_ORDERED, self->stream, &error);
  bench_check (error);
  return batch;
}

static GpuImage *
camera_frame (const Cameras *self, const Camera *camera)
{
  return camera->frame[self->changing ? self->turn % G_N_ELEMENTS (camera->frame) : 0];
}

/* A frame of each camera, one after another. */
void
cameras_submit_chains (void *data, unsigned n)
{
  Cameras *self = data;
  for (unsigned i = 0; i < n * CAMERAS; i++) {
    const Camera *camera = &self->cameras[i % CAMERAS];
    GpuStream *stream = self->one_stream ? self->stream : camera->stream;
    GError *error = NULL;
    GpuImage *small = bench_image_new (self->device, &self->small, GPU_MEMORY_STREAM_ORDERED, stream);
    gpu_resizer_run (camera->resizer, stream, camera_frame (self, camera), small, &resize, &error);
    bench_check (error);
    if (self->converting) {
      GpuImage *rgb = bench_image_new (self->device, &self->rgb, GPU_MEMORY_STREAM_ORDERED, stream);
      gpu_convert (stream, small, rgb, NULL, &error);
      bench_check (error);
      gpu_image_unref (small);
      small = rgb;
    }
    GpuImage *tensor = bench_image_new (self->device, &self->tensor, GPU_MEMORY_STREAM_ORDERED, stream);
    gpu_normalize (stream, small, tensor, &self->normalize, &error);
    bench_check (error);
    gpu_image_unref (small);
    gpu_image_unref (tensor);
    self->turn += i % CAMERAS == CAMERAS - 1;
  }
}

void
cameras_submit_batches (void *data, unsigned n)
{
  Cameras *self = data;
  for (unsigned i = 0; i < n; i++, self->turn++) {
    GpuImage *frames[CAMERAS];
    GError *error = NULL;
    for (unsigned k = 0; k < CAMERAS; k++)
      frames[k] = camera_frame (self, &self->cameras[k]);
    GpuBatch *src = gpu_batch_new (frames, CAMERAS, &error);
    bench_check (error);
    GpuBatch *small = acquire_batch (self, &self->small);
    gpu_resizer_run_batch (self->resizer, self->stream, src, small, &resize, 1, &error);
    bench_check (error);
    gpu_batch_unref (src);
    if (self->converting) {
      GpuBatch *rgb = acquire_batch (self, &self->rgb);
      gpu_convert_batch (self->stream, small, rgb, NULL, 1, &error);
      bench_check (error);
      gpu_batch_unref (small);
      small = rgb;
    }
    GpuBatch *tensor =
        gpu_batch_acquire_dense (self->device, &self->tensor, CAMERAS, GPU_MEMORY_STREAM_ORDERED, self->stream, &error);
    bench_check (error);
    gpu_normalize_batch (self->stream, small, tensor, &self->normalize, 1, &error);
    bench_check (error);
    gpu_batch_unref (small);
    gpu_batch_unref (tensor);
  }
}

void
cameras_finish (Cameras *self)
{
  GError *error = NULL;
  gpu_stream_synchronize (self->stream, &error);
  for (unsigned i = 0; i < CAMERAS && !error; i++)
    gpu_stream_synchronize (self->cameras[i].stream, &error);
  bench_check (error);
}

static uint8_t *
make_noise (size_t size)
{
  uint8_t *noise = g_malloc (size);
  uint32_t state = 1;
  for (size_t i = 0; i < size; i++) {
    state = state * 1664525u + 1013904223u;
    noise[i] = (uint8_t)(state >> 24);
  }
  return noise;
}

void
cameras_open (Cameras *self, GpuDevice *device)
{
  GError *error = NULL;

  *self = (Cameras){.device = device};
  gpu_normalize_init (&self->normalize);
  for (unsigned c = 0; c < 3; c++)
    self->normalize.scale[c] = 1.0f / 255;
  self->camera = bench_spec (GPU_FORMAT_NV12, CAMERAS_WIDTH, CAMERAS_HEIGHT);
  self->small = bench_spec (GPU_FORMAT_NV12, CAMERAS_SIZE, CAMERAS_SIZE);
  self->rgb = bench_spec (GPU_FORMAT_RGBP, CAMERAS_SIZE, CAMERAS_SIZE);
  gpu_image_spec_init_tensor (&self->tensor, GPU_ELEMENT_F32, GPU_LAYOUT_CHW, 3, CAMERAS_SIZE, CAMERAS_SIZE, &error);
  bench_check (error);
  self->stream = bench_stream_new (device);
  self->resizer = gpu_resizer_new ();
  g_autofree uint8_t *noise = make_noise (self->camera.size);
  for (unsigned i = 0; i < CAMERAS; i++) {
    Camera *camera = &self->cameras[i];
    camera->stream = bench_stream_new (device);
    camera->resizer = gpu_resizer_new ();
    for (unsigned k = 0; k < G_N_ELEMENTS (camera->frame); k++) {
      camera->frame[k] = bench_image_new (device, &self->camera, GPU_MEMORY_STREAM_ORDERED, camera->stream);
      gpu_image_copy_from_host (camera->stream, camera->frame[k], noise, &self->camera, &error);
      bench_check (error);
    }
  }
  cameras_finish (self);
}

void
cameras_close (Cameras *self)
{
  for (unsigned i = 0; i < CAMERAS; i++) {
    for (unsigned k = 0; k < G_N_ELEMENTS (self->cameras[i].frame); k++)
      gpu_image_unref (self->cameras[i].frame[k]);
    gpu_resizer_free (self->cameras[i].resizer);
    gpu_stream_unref (self->cameras[i].stream);
  }
  gpu_resizer_free (self->resizer);
  gpu_stream_unref (self->stream);
}
