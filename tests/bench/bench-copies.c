/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * gpuupload and gpudownload beside the bus: frames that a source pushes through them and a consumer reads, against the
 * driver's own copies of as many bytes between pinned and device memory, and GStreamer's cudaupload and cudadownload
 * where they are. Then what the host spends on a frame, and when managed memory is better than copies.
 */
#include "bench.h"
#include "raw.h"

#include <gpucache/gstgpucache.h>

#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* The frames that a source has, and those that a consumer holds before it looks at them, as a queue would. */
#define N_SOURCE 8
#define N_HELD 4

/* Frames of a burst, after which the host's time is taken: as many as are in flight by default, so that none waits for
 * another. (Of longer bursts a GPU's driver took some 24 frames, and then as long for each as the bus.) */
#define N_BURST 8
#define N_BURSTS 41

/* A round of a case begins and ends with nothing under way, so it has to be long. */
#define REPEAT 4

/* A source, elements, a consumer. */
typedef struct {
  GPtrArray *elements;
  GstPad *src, *sink;
  GstCaps *caps;
  GstBufferPool *offered; /* by the elements; NULL if the source has frames of its own */
  GstBuffer *frames[N_SOURCE];
  GstBufferPool *insisted; /* by the consumer; or NULL */
  bool reads;              /* the consumer maps what it gets */
  GQueue held;
} Chain;

static void
look_at (GstBuffer *buffer)
{
  GstMapInfo map;
  if (!gst_buffer_map (buffer, &map, GST_MAP_READ))
    bench_fail ("a frame that came out cannot be mapped");
  gst_buffer_unmap (buffer, &map);
}

/* What is still held, to the last frame. */
static void
drain (Chain *chain)
{
  GstBuffer *buffer;
  while ((buffer = g_queue_pop_head (&chain->held))) {
    if (chain->reads)
      look_at (buffer);
    else if (g_queue_is_empty (&chain->held) && gst_is_gpu_memory (gst_buffer_peek_memory (buffer, 0)))
      gpu_image_wait (gst_gpu_memory_get_image (gst_buffer_peek_memory (buffer, 0)), GPU_ACCESS_READ, NULL);
    gst_buffer_unref (buffer);
  }
}

static GstFlowReturn
consume (GstPad *pad, GstObject *parent, GstBuffer *buffer)
{
  Chain *chain = gst_pad_get_element_private (pad);
  g_queue_push_tail (&chain->held, buffer);
  if (g_queue_get_length (&chain->held) > (chain->reads ? N_HELD : 1)) {
    GstBuffer *oldest = g_queue_pop_head (&chain->held);
    if (chain->reads)
      look_at (oldest);
    gst_buffer_unref (oldest);
  }
  return GST_FLOW_OK;
}

static gboolean
answer (GstPad *pad, GstObject *parent, GstQuery *query)
{
  Chain *chain = gst_pad_get_element_private (pad);
  if (GST_QUERY_TYPE (query) == GST_QUERY_ALLOCATION) {
    GstCaps *caps;
    GstVideoInfo info;
    gst_query_parse_allocation (query, &caps, NULL);
    if (chain->insisted && gst_video_info_from_caps (&info, caps))
      gst_query_add_allocation_pool (query, chain->insisted, (guint)GST_VIDEO_INFO_SIZE (&info), 0, 0);
    gst_query_add_allocation_meta (query, GST_VIDEO_META_API_TYPE, NULL);
    return TRUE;
  }
  return gst_pad_query_default (pad, parent, query);
}

/* A pool that downstream insists on: its type is its own. */
static GstBufferPool *
special_pool_new (void)
{
  static GType type = 0;
  if (!type)
    type = g_type_register_static_simple (GST_TYPE_VIDEO_BUFFER_POOL, "BenchPool", sizeof (GstVideoBufferPoolClass),
                                          NULL, sizeof (GstVideoBufferPool), NULL, (GTypeFlags)0);
  return gst_object_ref_sink (g_object_new (type, NULL));
}

static GstElement *
first_of (Chain *chain)
{
  return g_ptr_array_index (chain->elements, 0);
}

static void
chain_free (Chain *chain)
{
  drain (chain);
  for (unsigned i = 0; i < chain->elements->len; i++)
    gst_element_set_state (g_ptr_array_index (chain->elements, i), GST_STATE_NULL);
  for (unsigned i = 0; i < N_SOURCE; i++)
    gst_clear_buffer (&chain->frames[i]);
  if (chain->offered)
    gst_buffer_pool_set_active (chain->offered, FALSE);
  gst_clear_object (&chain->offered);
  gst_clear_object (&chain->insisted);
  gst_clear_object (&chain->src);
  gst_clear_object (&chain->sink);
  g_ptr_array_unref (chain->elements);
  gst_caps_unref (chain->caps);
  g_free (chain);
}

/* @name: a factory, or caps that a capsfilter insists on. */
static GstElement *
make_element (GpuDevice *device, const char *name)
{
  if (g_str_has_prefix (name, "video/")) {
    g_autoptr (GstCaps) caps = gst_caps_from_string (name);
    GstElement *filter = gst_element_factory_make ("capsfilter", NULL);
    if (filter)
      g_object_set (filter, "caps", caps, NULL);
    return filter;
  }
  GstElement *element = gst_element_factory_make (name, NULL);
  if (element && g_str_has_prefix (name, "gpu"))
    g_object_set (element, "device", gpu_device_name (device), NULL);
  return element;
}

static bool
add_elements (Chain *chain, GpuDevice *device, const char *const *names)
{
  for (unsigned i = 0; names[i]; i++) {
    GstElement *element = make_element (device, names[i]);
    if (!element)
      return false;
    g_ptr_array_add (chain->elements, gst_object_ref_sink (element));
    if (i > 0)
      gst_element_link (g_ptr_array_index (chain->elements, i - 1), element);
  }
  return true;
}

static void
start (Chain *chain)
{
  g_autoptr (GstPad) in = gst_element_get_static_pad (first_of (chain), "sink");
  g_autoptr (GstPad) out =
      gst_element_get_static_pad (g_ptr_array_index (chain->elements, chain->elements->len - 1), "src");
  GstSegment segment;

  gst_pad_set_element_private (chain->sink, chain);
  gst_pad_set_chain_function (chain->sink, consume);
  gst_pad_set_query_function (chain->sink, answer);
  gst_pad_link (chain->src, in);
  gst_pad_link (out, chain->sink);
  gst_pad_set_active (chain->sink, TRUE);
  gst_pad_set_active (chain->src, TRUE);
  for (unsigned i = chain->elements->len; i > 0; i--)
    gst_element_set_state (g_ptr_array_index (chain->elements, i - 1), GST_STATE_PLAYING);

  gst_segment_init (&segment, GST_FORMAT_TIME);
  gst_pad_push_event (chain->src, gst_event_new_stream_start ("bench"));
  if (!gst_pad_push_event (chain->src, gst_event_new_caps (chain->caps)))
    bench_fail ("%s does not take its caps", GST_OBJECT_NAME (first_of (chain)));
  gst_pad_push_event (chain->src, gst_event_new_segment (&segment));
}

/* @caps (transfer full); @names: factories. Returns NULL if one of them is not there. */
static Chain *
chain_new (GpuDevice *device, GstCaps *caps, const char *const *names, bool reads, bool insists)
{
  Chain *chain = g_new0 (Chain, 1);
  g_queue_init (&chain->held);
  chain->elements = g_ptr_array_new_with_free_func (gst_object_unref);
  chain->caps = caps;
  chain->reads = reads;
  if (!add_elements (chain, device, names)) {
    chain_free (chain);
    return NULL;
  }
  if (insists)
    chain->insisted = special_pool_new ();
  chain->src = gst_pad_new ("src", GST_PAD_SRC);
  chain->sink = gst_pad_new ("sink", GST_PAD_SINK);
  start (chain);
  return chain;
}

/* The pool that the elements offer a source, active; NULL if there is none. */
static GstBufferPool *
ask_for_pool (Chain *chain)
{
  g_autoptr (GstQuery) query = gst_query_new_allocation (chain->caps, TRUE);
  GstBufferPool *pool = NULL;
  guint size, min, max;
  if (!gst_pad_peer_query (chain->src, query) || gst_query_get_n_allocation_pools (query) == 0)
    return NULL;
  gst_query_parse_nth_allocation_pool (query, 0, &pool, &size, &min, &max);
  if (!pool)
    return NULL;
  GstStructure *config = gst_buffer_pool_get_config (pool);
  gst_buffer_pool_config_set_params (config, chain->caps, size, min, max);
  if (!gst_buffer_pool_set_config (pool, config) || !gst_buffer_pool_set_active (pool, TRUE))
    bench_fail ("the pool that %s offers cannot be used", GST_OBJECT_NAME (first_of (chain)));
  return pool;
}

static GstCaps *
system_caps (const char *format, int width, int height)
{
  return gst_caps_new_simple ("video/x-raw", "format", G_TYPE_STRING, format, "width", G_TYPE_INT, width, "height",
                              G_TYPE_INT, height, "framerate", GST_TYPE_FRACTION, 0, 1, NULL);
}

/* The source's own frames in plain memory. */
static void
fill_plain (Chain *chain)
{
  GstVideoInfo info;
  gst_video_info_from_caps (&info, chain->caps);
  for (unsigned i = 0; i < N_SOURCE; i++) {
    chain->frames[i] = gst_buffer_new_allocate (NULL, GST_VIDEO_INFO_SIZE (&info), NULL);
    gst_buffer_memset (chain->frames[i], 0, (guint8)i, GST_VIDEO_INFO_SIZE (&info));
  }
}

static void
push (Chain *chain, unsigned i)
{
  GstBuffer *buffer = NULL;
  if (chain->offered) {
    if (gst_buffer_pool_acquire_buffer (chain->offered, &buffer, NULL) != GST_FLOW_OK)
      bench_fail ("the source's pool has no frame");
  } else {
    buffer = gst_buffer_ref (chain->frames[i % N_SOURCE]);
  }
  GstFlowReturn flow = gst_pad_push (chain->src, buffer);
  if (flow != GST_FLOW_OK)
    bench_fail ("%s did not take a frame: %s", GST_OBJECT_NAME (first_of (chain)), gst_flow_get_name (flow));
}

static double
run_chain (void *data, unsigned n)
{
  Chain *chain = data;
  double start = bench_now ();
  for (unsigned i = 0; i < n * REPEAT; i++)
    push (chain, i);
  drain (chain);
  return (bench_now () - start) / REPEAT;
}

static Chain *
upload_chain (GpuDevice *device, GstCaps *caps, const char *const *names, bool reads, bool offers)
{
  Chain *chain = chain_new (device, gst_caps_ref (caps), names, reads, false);
  if (!chain)
    return NULL;
  chain->offered = offers ? ask_for_pool (chain) : NULL;
  if (!chain->offered)
    fill_plain (chain);
  return chain;
}

/* Frames that an uploader has put on the device, with their caps. */
static Chain *
download_chain (GpuDevice *device, GstCaps *caps, const char *const *up, const char *const *down, bool insists)
{
  GstBuffer *frames[N_SOURCE];
  Chain *source = upload_chain (device, caps, up, false, false);
  if (!source)
    return NULL;
  for (unsigned i = 0; i < N_SOURCE; i++) {
    push (source, i);
    frames[i] = gst_buffer_ref (g_queue_peek_tail (&source->held));
  }
  GstCaps *device_caps = gst_pad_get_current_caps (source->sink);
  Chain *chain = chain_new (device, device_caps, down, true, insists);
  for (unsigned i = 0; i < N_SOURCE; i++) {
    if (chain)
      chain->frames[i] = frames[i];
    else
      gst_buffer_unref (frames[i]);
  }
  chain_free (source);
  return chain;
}

static double
run_raw_up (void *raw, unsigned n)
{
  return raw_copies_up (raw, n * REPEAT) / REPEAT;
}

static double
run_raw_down (void *raw, unsigned n)
{
  return raw_copies_down (raw, n * REPEAT) / REPEAT;
}

static double
run_raw_both (void *raw, unsigned n)
{
  return raw_copies_both (raw, n * REPEAT) / REPEAT;
}

static double
run_one_thread (void *raw, unsigned n)
{
  return raw_copies_one_thread (raw, n * REPEAT) / REPEAT;
}

static double
run_four_threads (void *raw, unsigned n)
{
  return raw_copies_four_threads (raw, n * REPEAT) / REPEAT;
}

static double
run_eight_threads (void *raw, unsigned n)
{
  return raw_copies_eight_threads (raw, n * REPEAT) / REPEAT;
}

typedef struct {
  BenchCase cases[5];
  unsigned n;
} Table;

static void
add (Table *table, const char *name, double (*run) (void *, unsigned), void *data, BenchGoal goal, double ratio)
{
  if (data)
    table->cases[table->n++] = (BenchCase){.name = name, .run = run, .data = data, .goal = goal, .goal_ratio = ratio};
}

static void
compare (Table *table, const char *what, const char *format, int width, int height)
{
  g_autofree char *title = g_strdup_printf ("%s, %dx%d %s, a frame", what, width, height, format);
  bench_compare (title, BENCH_TIME, table->cases, table->n);
  for (unsigned i = 0; i < table->n; i++)
    if (table->cases[i].run == run_chain)
      chain_free (table->cases[i].data);
  table->n = 0;
}

#define CUDA_CAPS "video/x-raw(memory:CUDAMemory)"

static const char *const uploads[] = {"gpuupload", NULL};
static const char *const downloads[] = {"gpudownload", NULL};
static const char *const both[] = {"gpuupload", "gpudownload", NULL};
static const char *const cuda_uploads[] = {"cudaupload", CUDA_CAPS, NULL};
static const char *const cuda_both[] = {"cudaupload", CUDA_CAPS, "cudadownload", "video/x-raw", NULL};

/* A goal of some per cent of the rate is one for the inverse of the time. */
static void
compare_copies (GpuDevice *device, const char *format, int width, int height)
{
  g_autoptr (GstCaps) caps = system_caps (format, width, height);
  GstVideoInfo info;
  gst_video_info_from_caps (&info, caps);
  RawCopies *raw = raw_copies_new (device, GST_VIDEO_INFO_SIZE (&info));
  const BenchGoal goal = gpu_device_is_host (device) ? BENCH_NO_GOAL : BENCH_AT_MOST;
  Table table = {0};

  add (&table, "the driver's copy, pinned memory", run_raw_up, raw, BENCH_NO_GOAL, 0);
  add (&table, "gpuupload, source with its pool", run_chain, upload_chain (device, caps, uploads, false, true), goal,
       1 / 0.95);
  add (&table, "gpuupload, source with plain memory", run_chain, upload_chain (device, caps, uploads, false, false),
       goal, 1 / 0.8);
  compare (&table, "Upload", format, width, height);

  add (&table, "the driver's copy, pinned memory", run_raw_down, raw, BENCH_NO_GOAL, 0);
  add (&table, "gpudownload", run_chain, download_chain (device, caps, uploads, downloads, false), goal, 1 / 0.95);
  add (&table, "gpudownload, consumer that insists on its pool", run_chain,
       download_chain (device, caps, uploads, downloads, true), goal, 1 / 0.8);
  compare (&table, "Download", format, width, height);

  add (&table, "gpuupload alone, source with its pool", run_chain, upload_chain (device, caps, uploads, false, true),
       BENCH_NO_GOAL, 0);
  add (&table, "gpuupload ! gpudownload, source with the pool", run_chain,
       upload_chain (device, caps, both, true, true), goal, 1.15);
  add (&table, "gpuupload ! gpudownload, source with plain memory", run_chain,
       upload_chain (device, caps, both, true, false), BENCH_NO_GOAL, 0);
  add (&table, "the driver's copies, both ways", run_raw_both, raw, BENCH_NO_GOAL, 0);
  compare (&table, "Upload and download", format, width, height);

  add (&table, "the driver's copy, pinned memory", run_raw_up, raw, BENCH_NO_GOAL, 0);
  add (&table, "memcpy() from plain into pinned memory", run_one_thread, raw, BENCH_NO_GOAL, 0);
  add (&table, "the same by four threads", run_four_threads, raw, BENCH_NO_GOAL, 0);
  add (&table, "the same by eight threads", run_eight_threads, raw, BENCH_NO_GOAL, 0);
  compare (&table, "What staging stands on", format, width, height);
  raw_copies_free (raw);
}

/* Beside GStreamer's own elements, where they are. cudadownload by itself would need frames of its own kind. */
static void
compare_peers (GpuDevice *device, const char *format, int width, int height)
{
  g_autoptr (GstCaps) caps = system_caps (format, width, height);
  Table table = {0};
  Chain *peer = upload_chain (device, caps, cuda_uploads, false, false);
  if (!peer)
    return;

  add (&table, "gpuupload, source with its pool", run_chain, upload_chain (device, caps, uploads, false, true),
       BENCH_NO_GOAL, 0);
  add (&table, "gpuupload, source with plain memory", run_chain, upload_chain (device, caps, uploads, false, false),
       BENCH_NO_GOAL, 0);
  add (&table, "cudaupload", run_chain, peer, BENCH_AT_LEAST, 3.3);
  compare (&table, "Upload by GStreamer's element", format, width, height);

  add (&table, "gpuupload ! gpudownload, source with the pool", run_chain,
       upload_chain (device, caps, both, true, true), BENCH_NO_GOAL, 0);
  add (&table, "cudaupload ! cudadownload", run_chain, upload_chain (device, caps, cuda_both, true, false),
       BENCH_AT_LEAST, 3.3);
  compare (&table, "Upload and download by GStreamer's elements", format, width, height);
}

/* What a frame takes of the host while nothing makes it wait: as many frames in flight as there are. */
typedef struct {
  double ns, cpu_ns;
  uint64_t waits;
} HostTime;

static double
cpu_now (void)
{
  struct timespec now;
  clock_gettime (CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint64_t
host_waits (GpuDevice *device)
{
  GpuCacheStats stats;
  gpu_cache_get_stats (device, GPU_ACCOUNT_HOST, GPU_CACHE_ALL, &stats);
  return stats.host_waits + stats.throttle_waits;
}

static HostTime
host_time (GpuDevice *device, Chain *chain)
{
  double ns[N_BURSTS], cpu_ns[N_BURSTS];
  HostTime time = {0};
  g_object_set (first_of (chain), "frames-in-flight", 2 * N_BURST, NULL);
  for (int burst = -2; burst < N_BURSTS; burst++) {
    uint64_t waits = host_waits (device);
    double start = bench_now (), cpu_start = cpu_now ();
    for (unsigned i = 0; i < N_BURST; i++)
      push (chain, i);
    cpu_ns[MAX (burst, 0)] = (cpu_now () - cpu_start) / N_BURST;
    ns[MAX (burst, 0)] = (bench_now () - start) / N_BURST;
    if (burst >= 0)
      time.waits += host_waits (device) - waits;
    drain (chain);
  }
  chain_free (chain);
  time.ns = bench_median (ns, N_BURSTS);
  time.cpu_ns = bench_median (cpu_ns, N_BURSTS);
  return time;
}

static void
measure_host_time (GpuDevice *device, const char *format, int width, int height)
{
  g_autoptr (GstCaps) caps = system_caps (format, width, height);
  g_autofree char *title =
      g_strdup_printf ("The host's time for a frame of %dx%d %s, nothing staged", width, height, format);
  HostTime up = host_time (device, upload_chain (device, caps, uploads, false, true));
  Chain *chain = download_chain (device, caps, uploads, downloads, false);
  chain->reads = false;
  HostTime down = host_time (device, chain);

  bench_section (title);
  bench_row ("the goal", 15000, "ns", BENCH_NO_GOAL, 0);
  bench_row ("gpuupload and its pool", up.ns, "ns", BENCH_AT_MOST, 1);
  bench_row ("of that, of the processor", up.cpu_ns, "ns", BENCH_NO_GOAL, 0);
  bench_row ("gpudownload", down.ns, "ns", BENCH_AT_MOST, 1);
  bench_row ("of that, of the processor", down.cpu_ns, "ns", BENCH_NO_GOAL, 0);
  bench_row ("host waits in gpuupload", (double)up.waits, "", BENCH_NO_GOAL, 0);
  bench_row ("host waits in gpudownload", (double)down.waits, "", BENCH_NO_GOAL, 0);
}

/* A frame that the host writes a part of, the device mirrors, and the host reads that part of. */
typedef struct {
  GpuStream *stream;
  GpuImage *host;     /* pinned or managed */
  GpuImage *in, *out; /* on the device; for pinned memory */
  unsigned part;      /* the host touches one row of so many */
  bool prefetches;
} Shared;

static void
touch (Shared *shared, bool writes)
{
  const GpuImageSpec *spec = gpu_image_spec (shared->host);
  static atomic_uint sum;
  for (uint32_t y = 0; y < spec->height; y += shared->part) {
    uint8_t *row = (uint8_t *)gpu_image_data (shared->host) + y * spec->stride[0];
    if (writes)
      memset (row, (int)y, spec->stride[0]);
    else
      for (size_t x = 0; x < spec->stride[0]; x += 64)
        atomic_fetch_add_explicit (&sum, row[x], memory_order_relaxed);
  }
}

static double
run_shared (void *data, unsigned n)
{
  Shared *shared = data;
  GError *error = NULL;
  double start = bench_now ();
  for (unsigned i = 0; i < n; i++) {
    gpu_image_wait (shared->host, GPU_ACCESS_WRITE, &error);
    touch (shared, true);
    if (shared->in) {
      gpu_image_copy (shared->stream, shared->host, shared->in, &error);
      gpu_flip (shared->stream, shared->in, shared->out, GPU_ORIENTATION_180, &error);
      gpu_image_copy (shared->stream, shared->out, shared->host, &error);
    } else {
      if (shared->prefetches)
        gpu_image_prefetch (shared->stream, shared->host, GPU_SIDE_DEVICE, &error);
      gpu_flip (shared->stream, shared->host, shared->out, GPU_ORIENTATION_180, &error);
      gpu_flip (shared->stream, shared->out, shared->host, GPU_ORIENTATION_180, &error);
      if (shared->prefetches)
        gpu_image_prefetch (shared->stream, shared->host, GPU_SIDE_HOST, &error);
    }
    gpu_image_wait (shared->host, GPU_ACCESS_WRITE, &error);
    touch (shared, false);
    bench_check (error);
  }
  return bench_now () - start;
}

static GpuImage *
acquire (GpuDevice *device, GpuStream *stream, const GpuImageSpec *spec, GpuMemoryKind kind)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (device, spec, kind, stream, GPU_ACQUIRE_DEFAULT, &error);
  if (!image && kind == GPU_MEMORY_MANAGED) {
    g_clear_error (&error);
    return NULL;
  }
  bench_check (error);
  return image;
}

static void
compare_managed (GpuDevice *device)
{
  static const unsigned parts[] = {1, 16, 256};
  const GpuImageSpec spec = bench_spec (GPU_FORMAT_RGBA, 1920, 1080);
  GError *error = NULL;
  GpuStream *stream = gpu_stream_new (device, true, &error);
  bench_check (error);
  GpuImage *pinned = acquire (device, stream, &spec, GPU_MEMORY_HOST);
  GpuImage *managed = acquire (device, stream, &spec, GPU_MEMORY_MANAGED);
  GpuImage *in = acquire (device, stream, &spec, GPU_MEMORY_STREAM_ORDERED);
  GpuImage *out = acquire (device, stream, &spec, GPU_MEMORY_STREAM_ORDERED);

  for (size_t i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *title = g_strdup_printf (
        "1080p RGBA that the host writes and reads one row in %u of, and the device all, a round", parts[i]);
    Shared copies = {stream, pinned, in, out, parts[i], false};
    Shared moved = {stream, managed, NULL, out, parts[i], true};
    Shared faulted = {stream, managed, NULL, out, parts[i], false};
    const BenchCase cases[] = {
        {.name = "pinned memory, copied there and back", .run = run_shared, .data = &copies},
        {.name = "managed memory, prefetched", .run = run_shared, .data = &moved},
        {.name = "managed memory, pages fetched as they are touched", .run = run_shared, .data = &faulted},
    };
    bench_compare (title, BENCH_TIME, cases, managed ? G_N_ELEMENTS (cases) : 1);
  }
  gpu_image_unref (pinned);
  if (managed)
    gpu_image_unref (managed);
  gpu_image_unref (in);
  gpu_image_unref (out);
  gpu_stream_unref (stream);
}

int
main (int argc, char **argv)
{
  gst_init (NULL, NULL);
  GpuDevice *device = bench_init (argc, argv);
  if (!gst_registry_check_feature_version (gst_registry_get (), "gpuupload", 0, 0, 0))
    bench_fail ("GStreamer does not find gpuupload: set GST_PLUGIN_PATH to the directory that libgstgpucache.so is in");

  compare_copies (device, "RGBA", 1920, 1080);
  compare_copies (device, "NV12", 3840, 2160);
  measure_host_time (device, "RGBA", 1920, 1080);
  measure_host_time (device, "NV12", 3840, 2160);
  compare_managed (device);
  if (!gpu_device_is_host (device)) {
    compare_peers (device, "RGBA", 1920, 1080);
    compare_peers (device, "NV12", 3840, 2160);
  }
  gpu_device_unref (device);
  return bench_finish ();
}
