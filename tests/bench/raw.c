/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See raw.h. The driver's entries are looked up here, so that no header of CUDA's is needed.
 */
#include "raw.h"

#include "bench.h"

#include <dlfcn.h>
#include <string.h>

#define N_BUFFERS 8

#define NON_BLOCKING 1 /* CU_STREAM_NON_BLOCKING */
#define PORTABLE 1     /* CU_MEMHOSTALLOC_PORTABLE */

typedef uint64_t DevicePointer;

typedef struct {
  int (*push) (void *context);
  int (*pop) (void **context);
  int (*alloc) (DevicePointer *data, size_t size);
  int (*free) (DevicePointer data);
  int (*host_alloc) (void **data, size_t size, unsigned flags);
  int (*host_free) (void *data);
  int (*pin) (void *data, size_t size, unsigned flags);
  int (*unpin) (void *data);
  int (*up) (DevicePointer dst, const void *src, size_t size, void *stream);
  int (*down) (void *dst, DevicePointer src, size_t size, void *stream);
  int (*stream_new) (void **stream, unsigned flags);
  int (*stream_free) (void *stream);
  int (*synchronize) (void *stream);
} Driver;

struct RawCopies {
  void *context; /* NULL on the CPU device */
  Driver driver;
  size_t size;
  void *stream[2];
  void *host[2][N_BUFFERS];
  void *plain[N_BUFFERS];
  void *in_place[2][N_BUFFERS]; /* plain memory, pinned where it is; NULL until it is used */
  DevicePointer device[2][N_BUFFERS];
};

static void
must (int result, const char *call)
{
  if (result != 0)
    bench_fail ("%s failed with error %d of the driver", call, result);
}

static void
load (Driver *driver)
{
  const struct {
    const char *name;
    void **entry;
  } entries[] = {
      {"cuCtxPushCurrent_v2", (void **)&driver->push},
      {"cuCtxPopCurrent_v2", (void **)&driver->pop},
      {"cuMemAlloc_v2", (void **)&driver->alloc},
      {"cuMemFree_v2", (void **)&driver->free},
      {"cuMemHostAlloc", (void **)&driver->host_alloc},
      {"cuMemFreeHost", (void **)&driver->host_free},
      {"cuMemHostRegister_v2", (void **)&driver->pin},
      {"cuMemHostUnregister", (void **)&driver->unpin},
      {"cuMemcpyHtoDAsync_v2", (void **)&driver->up},
      {"cuMemcpyDtoHAsync_v2", (void **)&driver->down},
      {"cuStreamCreate", (void **)&driver->stream_new},
      {"cuStreamDestroy_v2", (void **)&driver->stream_free},
      {"cuStreamSynchronize", (void **)&driver->synchronize},
  };
  void *library = dlopen ("libcuda.so.1", RTLD_NOW);
  if (!library)
    bench_fail ("the driver's library cannot be opened: %s", dlerror ());
  for (size_t i = 0; i < G_N_ELEMENTS (entries); i++) {
    *entries[i].entry = dlsym (library, entries[i].name);
    if (!*entries[i].entry)
      bench_fail ("the driver has no %s", entries[i].name);
  }
}

static void
enter (RawCopies *raw)
{
  if (raw->context)
    must (raw->driver.push (raw->context), "cuCtxPushCurrent");
}

static void
leave (RawCopies *raw)
{
  void *context;
  if (raw->context)
    raw->driver.pop (&context);
}

RawCopies *
raw_copies_new (GpuDevice *device, size_t size)
{
  RawCopies *raw = g_new0 (RawCopies, 1);
  raw->size = size;
  raw->context = gpu_device_cuda_context (device);
  if (raw->context)
    load (&raw->driver);
  enter (raw);
  for (unsigned way = 0; way < 2; way++) {
    if (raw->context)
      must (raw->driver.stream_new (&raw->stream[way], NON_BLOCKING), "cuStreamCreate");
    for (unsigned i = 0; i < N_BUFFERS; i++) {
      if (raw->context) {
        must (raw->driver.host_alloc (&raw->host[way][i], size, PORTABLE), "cuMemHostAlloc");
        must (raw->driver.alloc (&raw->device[way][i], size), "cuMemAlloc");
      } else {
        raw->host[way][i] = g_malloc (size);
        raw->device[way][i] = (uintptr_t)g_malloc (size);
      }
      memset (raw->host[way][i], (int)i, size);
    }
  }
  leave (raw);
  for (unsigned i = 0; i < N_BUFFERS; i++) {
    raw->plain[i] = g_malloc (size);
    memset (raw->plain[i], (int)i, size);
  }
  return raw;
}

void
raw_copies_free (RawCopies *raw)
{
  enter (raw);
  for (unsigned way = 0; way < 2; way++) {
    for (unsigned i = 0; i < N_BUFFERS; i++) {
      if (raw->context && raw->in_place[way][i])
        raw->driver.unpin (raw->in_place[way][i]);
      g_free (raw->in_place[way][i]);
      if (raw->context) {
        raw->driver.host_free (raw->host[way][i]);
        raw->driver.free (raw->device[way][i]);
      } else {
        g_free (raw->host[way][i]);
        g_free ((void *)(uintptr_t)raw->device[way][i]);
      }
    }
    if (raw->context)
      raw->driver.stream_free (raw->stream[way]);
  }
  leave (raw);
  for (unsigned i = 0; i < N_BUFFERS; i++)
    g_free (raw->plain[i]);
  g_free (raw);
}

static void
pin_in_place (RawCopies *raw)
{
  for (unsigned way = 0; way < 2 && !raw->in_place[way][0]; way++)
    for (unsigned i = 0; i < N_BUFFERS; i++) {
      raw->in_place[way][i] = g_malloc (raw->size);
      memset (raw->in_place[way][i], (int)i, raw->size);
      if (raw->context)
        must (raw->driver.pin (raw->in_place[way][i], raw->size, PORTABLE), "cuMemHostRegister");
    }
}

static void
copy_up (RawCopies *raw, void *const *host, unsigned i)
{
  if (raw->context)
    must (raw->driver.up (raw->device[0][i], host[i], raw->size, raw->stream[0]), "cuMemcpyHtoDAsync");
  else
    memcpy ((void *)(uintptr_t)raw->device[0][i], host[i], raw->size);
}

static void
copy_down (RawCopies *raw, void *const *host, unsigned i)
{
  if (raw->context)
    must (raw->driver.down (host[i], raw->device[1][i], raw->size, raw->stream[1]), "cuMemcpyDtoHAsync");
  else
    memcpy (host[i], (void *)(uintptr_t)raw->device[1][i], raw->size);
}

static void
pin_and_let_go (RawCopies *raw, unsigned i)
{
  if (!raw->context)
    return;
  must (raw->driver.pin (raw->plain[i], raw->size, PORTABLE), "cuMemHostRegister");
  must (raw->driver.unpin (raw->plain[i]), "cuMemHostUnregister");
}

static double
run (RawCopies *raw, RawCopy copy, unsigned n)
{
  const bool in_place = copy == RAW_UP_IN_PLACE || copy == RAW_DOWN_IN_PLACE;
  enter (raw);
  if (in_place)
    pin_in_place (raw);
  void *(*host)[N_BUFFERS] = in_place ? raw->in_place : raw->host;
  const double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    if (copy == RAW_UP || copy == RAW_BOTH || copy == RAW_UP_IN_PLACE)
      copy_up (raw, host[0], i % N_BUFFERS);
    if (copy == RAW_DOWN || copy == RAW_BOTH || copy == RAW_DOWN_IN_PLACE)
      copy_down (raw, host[1], i % N_BUFFERS);
    if (copy == RAW_PIN)
      pin_and_let_go (raw, i % N_BUFFERS);
  }
  for (unsigned way = 0; raw->context && way < 2; way++)
    must (raw->driver.synchronize (raw->stream[way]), "cuStreamSynchronize");
  const double ns = bench_now () - start;
  leave (raw);
  return ns;
}

/* One of several threads that copy their part of each frame. */
typedef struct {
  RawCopies *raw;
  unsigned n, part, parts;
} HostJob;

static gpointer
copy_parts (gpointer data)
{
  const HostJob *job = data;
  size_t from = job->raw->size * job->part / job->parts, to = job->raw->size * (job->part + 1) / job->parts;
  for (unsigned i = 0; i < job->n; i++)
    memcpy ((char *)job->raw->host[0][i % N_BUFFERS] + from, (char *)job->raw->plain[i % N_BUFFERS] + from, to - from);
  return NULL;
}

static double
run_host (RawCopies *raw, unsigned n, unsigned n_threads)
{
  g_autofree HostJob *jobs = g_new (HostJob, n_threads);
  g_autofree GThread **threads = g_new (GThread *, n_threads);
  double start = bench_now ();
  for (unsigned i = 0; i < n_threads; i++) {
    jobs[i] = (HostJob){raw, n, i, n_threads};
    threads[i] = g_thread_new ("copy", copy_parts, &jobs[i]);
  }
  for (unsigned i = 0; i < n_threads; i++)
    g_thread_join (threads[i]);
  return bench_now () - start;
}

bool
raw_copies_can_pin (RawCopies *raw)
{
  enter (raw);
  const bool can = !raw->context || raw->driver.pin (raw->plain[0], raw->size, PORTABLE) == 0;
  if (raw->context && can)
    must (raw->driver.unpin (raw->plain[0]), "cuMemHostUnregister");
  leave (raw);
  return can;
}

double
raw_copies_run (RawCopies *raw, RawCopy copy, unsigned n_threads, unsigned n)
{
  return copy == RAW_HOST ? run_host (raw, n, n_threads) : run (raw, copy, n);
}
