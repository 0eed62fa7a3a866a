/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Plain memory pinned in place: copies of it, whose rows need not begin and end where pages do, when its owner gets it
 * back, what is counted, and who may go first.
 */
#include "common.h"

#include <gpucache/device-priv.h>
#include <gpucache/pin-priv.h>
#include <gpucache/transfer.h>

#include <stdatomic.h>
#include <string.h>

#define PAGE 4096

/* Whole pages. */
typedef uint8_t Block;
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Block, g_aligned_free)

static void
count_release (void *n)
{
  atomic_fetch_add ((atomic_uint *)n, 1);
}

static void
wait_for_release (GpuDevice *device, atomic_uint *n)
{
  for (unsigned i = 0; i < 10000 && atomic_load (n) == 0; i++) {
    if (test_is_lazy ())
      gpu_cpu_device_run (device, 1000, i);
    g_usleep (1000);
  }
  g_assert_cmpuint (atomic_load (n), ==, 1);
}

static GpuCacheStats
host_stats (GpuDevice *device)
{
  GpuCacheStats stats;
  gpu_cache_get_stats (device, GPU_ACCOUNT_HOST, GPU_CACHE_ALL, &stats);
  return stats;
}

/* What the device's own copies may touch of a block: the pages of @pin alone. */
static struct {
  const GpuDeviceFuncs *funcs;
  const uint8_t *block;
  size_t size;
  const GpuPin *pin;
  size_t straight; /* bytes */
} watched;

static void
check_side (const void *data, size_t stride, const GpuCopy *copy)
{
  const uint8_t *begin = data, *end = begin + (copy->rows - 1) * stride + copy->row_bytes;

  if (end <= watched.block || begin >= watched.block + watched.size)
    return;
  g_assert_true (begin >= watched.pin->data && end <= watched.pin->data + watched.pin->size);
  watched.straight += copy->rows * copy->row_bytes;
}

static bool
copy_watched (GpuDevice *device, const GpuCopy *copy, GpuCopyKind kind, void *stream, GError **error)
{
  check_side (copy->src, copy->src_stride, copy);
  check_side (copy->dst, copy->dst_stride, copy);
  return watched.funcs->copy (device, copy, kind, stream, error);
}

/* Memory at any place in pages of its own, a part of which is pinned. */
typedef struct {
  size_t at, pinned_at, pinned_end; /* the last two from the memory's begin and to its end */
} Place;

static void
check_place (GpuStream *stream, const GpuImageSpec *spec, const Place *place, uint32_t seed)
{
  GpuDevice *device = gpu_stream_device (stream);
  const size_t size = (place->at + spec->size + 2 * PAGE - 1) / PAGE * PAGE;
  g_autoptr (Block) block = g_aligned_alloc (1, size, PAGE);
  g_autofree uint8_t *samples = test_random_bytes (spec->size, seed), *expected = NULL;
  uint8_t *host = block + place->at;
  GpuImage *image = test_image_new (device, spec, stream);
  atomic_uint n = 0;
  GError *error = NULL;

  memset (block, 0x5a, size);
  memcpy (host, samples, spec->size);
  GpuPin *pin =
      spec->size > place->pinned_at + place->pinned_end
          ? gpu_pin_new (device, host + place->pinned_at, spec->size - place->pinned_at - place->pinned_end, NULL)
          : NULL;
  if (pin) {
    watched.block = block;
    watched.size = size;
    watched.pin = pin;
    watched.straight = 0;
    watched.funcs = device->funcs;
    GpuDeviceFuncs funcs = *device->funcs;
    funcs.copy = copy_watched;
    device->funcs = &funcs;
    g_assert_true (gpu_image_upload_pinned (stream, image, host, spec, pin, count_release, &n, &error));
    device->funcs = watched.funcs;
    g_assert_no_error (error);
    test_assert_image (stream, image, samples, spec);
    wait_for_release (device, &n);

    memset (host, 0x77, spec->size);
    expected = g_memdup2 (block, size);
    for (unsigned plane = 0; plane < gpu_format_info (spec->format)->n_planes; plane++)
      for (uint32_t y = 0; y < gpu_image_spec_plane_height (spec, plane); y++) {
        const size_t offset = spec->offset[plane] + y * spec->stride[plane];
        memcpy (expected + place->at + offset, samples + offset, gpu_image_spec_row_bytes (spec, plane));
      }
    atomic_store (&n, 0);
    const uint64_t waits = host_stats (device).host_waits;
    device->funcs = &funcs;
    g_assert_true (gpu_image_download_pinned (stream, image, host, spec, pin, count_release, &n, &error));
    device->funcs = watched.funcs;
    g_assert_no_error (error);
    g_assert_cmpuint (atomic_load (&n), ==, 1);
    g_assert_cmpuint (host_stats (device).host_waits, ==, waits + 1);
    g_assert_cmpmem (block, size, expected, size);
    /* Both ways, all but what rows at either end have of the pages, and what no row has. */
    if (spec->width == 200)
      g_assert_cmpuint (watched.straight, >=, pin->size / 2);
    gpu_pin_unref (pin);
  }
  gpu_image_unref (image);
}

static void
test_places (void)
{
  static const Place places[] = {{0, 0, 0},     {16, 0, 0},      {PAGE - 1, 0, 0},     {PAGE / 2, 0, 0},
                                 {16, 5000, 0}, {16, 0, 9000},   {1, 3 * PAGE, 12345}, {0, PAGE, PAGE},
                                 {64, 0, 1},    {64, 30000, 10}, {64, 10, 30000}};
  static const struct {
    uint32_t width, height;
  } sizes[] = {{200, 150}, {33, 317}, {5001, 3}, {9000, 1}};
  GpuDevice *device = test_device_new ();
  GpuStream *stream = gpu_stream_new (device, true, NULL);

  for (unsigned format = 1; format < GPU_N_FORMATS; format++)
    for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++)
      for (size_t k = 0; k < G_N_ELEMENTS (places); k++) {
        if (gpu_format_info ((GpuFormat)format)->is_tensor || test_leaves_out ())
          continue;
        const GpuImageSpec spec = test_spec ((GpuFormat)format, sizes[i].width, sizes[i].height);
        check_place (stream, &spec, &places[k], (uint32_t)k);
      }
  g_assert_cmpuint (host_stats (device).live_bytes, ==, 0);
  gpu_cache_check (device);
  gpu_stream_unref (stream);
  gpu_device_unref (device);
}

/* The owner gets the memory back when it has been read, which nobody waits for. */
static void
test_release (void)
{
  GpuDevice *device = test_device_new ();
  GpuStream *stream = gpu_stream_new (device, true, NULL);
  const GpuImageSpec spec = test_spec (GPU_FORMAT_RGBA, 100, 100);
  g_autofree uint8_t *host = test_random_bytes (spec.size, 1), *copy = g_memdup2 (host, spec.size);
  GpuImage *image = test_image_new (device, &spec, stream), *first = test_image_new (device, &spec, stream);
  GpuPin *pin = gpu_pin_new (device, host, spec.size, NULL);
  atomic_uint n = 0;

  g_assert_nonnull (pin);
  g_assert_true (gpu_pin_is_for (pin, device));
  /* What is needed of the driver is there before the stream is held. */
  g_assert_true (gpu_image_upload_pinned (stream, first, host, &spec, pin, count_release, &n, NULL));
  g_assert_true (gpu_image_wait (first, GPU_ACCESS_READ, NULL));
  wait_for_release (device, &n);
  atomic_store (&n, 0);

  GpuGate *gate = gpu_gate_new (device, NULL);
  g_assert_true (gpu_gate_hold (gate, stream, NULL));
  const uint64_t waits = host_stats (device).host_waits;
  g_assert_true (gpu_image_upload_pinned (stream, image, host, &spec, pin, count_release, &n, NULL));
  g_assert_cmpuint (host_stats (device).host_waits, ==, waits);
  g_usleep (20000);
  g_assert_cmpuint (atomic_load (&n), ==, 0);
  gpu_gate_open (gate);
  wait_for_release (device, &n);
  memset (host, 0, spec.size);
  test_assert_image (stream, image, copy, &spec);
  gpu_gate_free (gate);
  gpu_pin_unref (pin);
  gpu_image_unref (first);
  gpu_image_unref (image);
  gpu_stream_unref (stream);
  gpu_device_unref (device);
}

/* Pages count as live against the limit of pinned memory, half of which they may have; what is idle makes room. */
static void
test_limit (void)
{
  GpuDevice *device = test_device_new ();
  const uint64_t old = gpu_cache_get_limit (device, GPU_ACCOUNT_HOST);
  g_autoptr (Block) block = g_aligned_alloc (20, PAGE, PAGE);
  const GpuImageSpec spec = test_spec (GPU_FORMAT_GRAY8, 18 * PAGE, 1);
  GError *error = NULL;

  g_assert_true (gpu_cache_set_limit (device, GPU_ACCOUNT_HOST, 20 * PAGE, NULL));
  gpu_image_unref (gpu_image_acquire (device, &spec, GPU_MEMORY_HOST, NULL, 0, NULL));
  g_assert_cmpuint (host_stats (device).idle_bytes, ==, 18 * PAGE);
  GpuPin *pin = gpu_pin_new (device, block + 1, 7 * PAGE, NULL);
  g_assert_nonnull (pin);
  g_assert_cmpuint (host_stats (device).idle_bytes, ==, 0);
  g_assert_cmpuint (host_stats (device).live, ==, 1);
  g_assert_cmpuint (host_stats (device).live_bytes, ==, 6 * PAGE);
  gpu_cache_check (device);
  g_assert_null (gpu_pin_new (device, block + 8 * PAGE, 5 * PAGE, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  g_assert_null (gpu_pin_new (device, block + 8 * PAGE, 11 * PAGE, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  GpuPin *other = gpu_pin_new (device, block + 8 * PAGE, 4 * PAGE, NULL);
  g_assert_nonnull (other);
  g_assert_cmpuint (host_stats (device).live_bytes, ==, 10 * PAGE);
  g_assert_null (gpu_pin_new (device, block + 1, PAGE, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  g_clear_error (&error);

  gpu_pin_unref (gpu_pin_ref (pin));
  gpu_pin_unref (pin);
  gpu_pin_unref (other);
  g_assert_cmpuint (host_stats (device).live_bytes, ==, 0);
  g_assert_cmpuint (host_stats (device).peak_bytes, >=, 10 * PAGE);
  gpu_cache_check (device);
  g_assert_true (gpu_cache_set_limit (device, GPU_ACCOUNT_HOST, (int64_t)old, NULL));
  gpu_device_unref (device);
}

/* Pages stay pinned as long as their owner likes: what else is pinned finds room beside them and is used again. */
static void
test_leaves_room (void)
{
  GpuDevice *device = test_device_new ();
  const uint64_t old = gpu_cache_get_limit (device, GPU_ACCOUNT_HOST);
  g_autoptr (Block) block = g_aligned_alloc (16, PAGE, PAGE);
  const GpuImageSpec spec = test_spec (GPU_FORMAT_GRAY8, 4 * PAGE, 1);
  GpuPin *pins[16];

  g_assert_true (gpu_cache_set_limit (device, GPU_ACCOUNT_HOST, 16 * PAGE, NULL));
  for (unsigned i = 0; i < G_N_ELEMENTS (pins); i++)
    pins[i] = gpu_pin_new (device, block + i * PAGE, PAGE, NULL);
  gpu_image_unref (gpu_image_acquire (device, &spec, GPU_MEMORY_HOST, NULL, 0, NULL));
  const GpuCacheStats before = host_stats (device);
  for (unsigned i = 0; i < 10; i++)
    gpu_image_unref (gpu_image_acquire (device, &spec, GPU_MEMORY_HOST, NULL, 0, NULL));
  g_assert_cmpuint (host_stats (device).misses, ==, before.misses);
  g_assert_cmpuint (host_stats (device).host_waits, ==, before.host_waits);
  g_assert_cmpuint (host_stats (device).live_bytes, ==, 8 * PAGE);
  for (unsigned i = 0; i < G_N_ELEMENTS (pins); i++)
    gpu_pin_unref (pins[i]);
  gpu_cache_check (device);
  g_assert_true (gpu_cache_set_limit (device, GPU_ACCOUNT_HOST, (int64_t)old, NULL));
  gpu_device_unref (device);
}

/* Rule 12: a clear leaves what is live alone, and pages can be let go of after it. */
static void
test_clear (void)
{
  GpuDevice *device = test_device_new ();
  g_autoptr (Block) block = g_aligned_alloc (4, PAGE, PAGE);
  GpuPin *pin = gpu_pin_new (device, block, 4 * PAGE, NULL);

  g_assert_nonnull (pin);
  g_assert_true (gpu_cache_clear (device, GPU_CACHE_ALL, NULL));
  g_assert_true (gpu_pin_is_of_use (pin));
  gpu_cache_check (device);
  gpu_pin_unref (pin);
  gpu_cache_check (device);
  g_assert_cmpuint (host_stats (device).live_bytes, ==, 0);
  g_assert_cmpuint (host_stats (device).detached_bytes, ==, 0);
  gpu_device_unref (device);
}

/* A refusal says nothing of the device. */
static void
test_refused (void)
{
  GpuDevice *device = test_device_new ();
  g_autoptr (Block) block = g_aligned_alloc (4, PAGE, PAGE);
  GError *error = NULL;

  gpu_device_fail (device, GPU_CALL_ALLOC, 0, 1);
  g_assert_null (gpu_pin_new (device, block, 4 * PAGE, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_OUT_OF_MEMORY);
  g_clear_error (&error);
  GpuPin *pin = gpu_pin_new (device, block, 4 * PAGE, NULL);
  g_assert_nonnull (pin);
  /* Somebody has pinned it. */
  if (test_is_cuda ())
    g_assert_null (gpu_pin_new (device, block, 4 * PAGE, NULL));
  g_assert_false (gpu_device_is_lost (device));
  g_assert_true (gpu_pin_is_of_use (pin));
  gpu_pin_unref (pin);
  gpu_cache_check (device);
  gpu_device_unref (device);
}

/* A pin does not keep its device; another one can have the pages then. */
static void
test_device_goes_first (void)
{
  GpuDevice *device = test_device_new ();
  g_autoptr (Block) block = g_aligned_alloc (4, PAGE, PAGE);
  GpuPin *pin = gpu_pin_new (device, block, 4 * PAGE, NULL);

  g_assert_nonnull (pin);
  gpu_device_unref (device);
  g_assert_false (gpu_pin_is_of_use (pin));
  device = test_device_new ();
  g_assert_false (gpu_pin_is_for (pin, device));
  GpuPin *next = gpu_pin_new (device, block, 4 * PAGE, NULL);
  g_assert_nonnull (next);
  gpu_pin_unref (pin);
  g_assert_true (gpu_pin_is_of_use (next));
  gpu_pin_unref (next);
  gpu_device_unref (device);
}

/* Rule 24: what a lost device may still be reading or writing is its owner's again when the device goes. */
static void
test_lost (void)
{
  for (unsigned inwards = 0; inwards < 2; inwards++) {
    GpuDevice *device = test_device_new ();
    GpuStream *stream = gpu_stream_new (device, true, NULL);
    const GpuImageSpec spec = test_spec (GPU_FORMAT_RGBA, 100, 100);
    g_autofree uint8_t *host = test_random_bytes (spec.size, 1);
    GpuImage *image = test_image_new (device, &spec, stream);
    GpuPin *pin = gpu_pin_new (device, host, spec.size, NULL);
    atomic_uint n = 0;
    GError *error = NULL;

    gpu_image_fill (stream, image, 3, NULL);
    g_assert_true (gpu_image_wait (image, GPU_ACCESS_READ, NULL));
    gpu_device_fail (device, inwards ? GPU_CALL_COPY : GPU_CALL_EVENT_QUERY, inwards ? 1 : 0, 1);
    g_assert_false (inwards ? gpu_image_upload_pinned (stream, image, host, &spec, pin, count_release, &n, &error)
                            : gpu_image_download_pinned (stream, image, host, &spec, pin, count_release, &n, &error));
    g_assert_error (error, GPU_ERROR, GPU_ERROR_DEVICE_LOST);
    g_clear_error (&error);
    g_assert_cmpuint (atomic_load (&n), ==, 0);
    g_assert_false (gpu_pin_is_of_use (pin));
    gpu_image_unref (image);
    gpu_stream_unref (stream);
    gpu_device_unref (device);
    g_assert_cmpuint (atomic_load (&n), ==, 1);
    gpu_pin_unref (pin);
  }
}

int
main (int argc, char **argv)
{
  test_init (&argc, &argv);
  g_test_add_func ("/pin/places", test_places);
  g_test_add_func ("/pin/release", test_release);
  g_test_add_func ("/pin/limit", test_limit);
  g_test_add_func ("/pin/leaves-room", test_leaves_room);
  g_test_add_func ("/pin/clear", test_clear);
  g_test_add_func ("/pin/refused", test_refused);
  g_test_add_func ("/pin/device-goes-first", test_device_goes_first);
  g_test_add_func ("/pin/lost", test_lost);
  return g_test_run ();
}
