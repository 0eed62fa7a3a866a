/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How the elements of a pipeline come to share a device, and the statistics as a structure.
 */
#include <gpucache/gstgpucontext.h>

#include <string.h>

GST_DEBUG_CATEGORY_STATIC (gpu_context_debug);
#define GST_CAT_DEFAULT ensure_debug_category ()

#define DEVICE_FIELD "device"

/* Logs and gst-launch-1.0 -v print a device by its name. */
static void
device_to_string (const GValue *device, GValue *string)
{
  GpuDevice *value = g_value_get_boxed (device);

  g_value_set_string (string, value ? gpu_device_name (value) : NULL);
}

/* Not G_DEFINE_BOXED_TYPE, whose union casts are no ISO C. */
GType
gst_gpu_device_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type)) {
    GType boxed = g_boxed_type_register_static (g_intern_static_string ("GpuDevice"), (GBoxedCopyFunc)gpu_device_ref,
                                                (GBoxedFreeFunc)gpu_device_unref);

    g_value_register_transform_func (boxed, G_TYPE_STRING, device_to_string);
    g_once_init_leave (&type, boxed);
  }
  return type;
}

GType
gst_gpu_stream_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    g_once_init_leave (&type,
                       g_boxed_type_register_static (g_intern_static_string ("GpuStream"),
                                                     (GBoxedCopyFunc)gpu_stream_ref, (GBoxedFreeFunc)gpu_stream_unref));
  return type;
}

static GstDebugCategory *
ensure_debug_category (void)
{
  static gsize once = 0;

  if (g_once_init_enter (&once)) {
    GST_DEBUG_CATEGORY_INIT (gpu_context_debug, "gpucontext", 0, "GPU cache context");
    g_once_init_leave (&once, 1);
  }
  return gpu_context_debug;
}

/* "cpu" is "cpu:0", "cuda:01" is "cuda:1", and "cuda:1/2", a context of that GPU's, is one of its devices. */
static gboolean
is_same_name (const char *name, const char *other)
{
  const char *colon = strchr (name, ':'), *other_colon = strchr (other, ':');
  gsize length = colon ? (gsize)(colon - name) : strlen (name);
  guint64 number = 0;

  if (g_str_equal (name, other))
    return TRUE;
  if (strncmp (name, other, length) != 0 || !other_colon || (gsize)(other_colon - other) != length)
    return FALSE;
  if (colon && !g_ascii_string_to_unsigned (colon + 1, 10, 0, G_MAXUINT32, &number, NULL))
    return FALSE;
  return g_ascii_strtoull (other_colon + 1, NULL, 10) == number;
}

/* Whether an element that wants @name takes @device. A context's device need not be one that gpu_device_open() knows,
 * so names are compared. A lost one is of no use to anybody, and the name may open anew. */
static gboolean
is_wanted (const char *name, GpuDevice *device)
{
  if (gpu_device_is_lost (device))
    return FALSE;
  if (!name)
    name = g_getenv ("GPUCACHE_DEVICE");
  if (!name || !*name || g_str_equal (name, "auto"))
    return TRUE;
  return is_same_name (name, gpu_device_name (device));
}

GstContext *
gst_gpu_context_new (GpuDevice *device)
{
  GstContext *context;

  g_return_val_if_fail (device != NULL, NULL);

  context = gst_context_new (GST_GPU_CONTEXT_TYPE, TRUE);
  gst_structure_set (gst_context_writable_structure (context), DEVICE_FIELD, GST_TYPE_GPU_DEVICE, device, NULL);
  return context;
}

GpuDevice *
gst_gpu_context_get_device (GstContext *context)
{
  GpuDevice *device = NULL;

  if (!context || !gst_context_has_context_type (context, GST_GPU_CONTEXT_TYPE))
    return NULL;
  gst_structure_get (gst_context_get_structure (context), DEVICE_FIELD, GST_TYPE_GPU_DEVICE, &device, NULL);
  return device;
}

gboolean
gst_gpu_handle_set_context (GstElement *element, GstContext *context, const char *name, GpuDevice **device)
{
  GpuDevice *offered;

  g_return_val_if_fail (GST_IS_ELEMENT (element), FALSE);
  g_return_val_if_fail (device != NULL, FALSE);

  offered = gst_gpu_context_get_device (context);
  if (!offered)
    return FALSE;
  if (!is_wanted (name, offered)) {
    GST_DEBUG_OBJECT (element, "ignoring a context of device %s", gpu_device_name (offered));
  } else if (g_atomic_pointer_compare_and_exchange (device, NULL, offered)) {
    GST_DEBUG_OBJECT (element, "using device %s of a context", gpu_device_name (offered));
    return TRUE;
  }
  gpu_device_unref (offered);
  return FALSE;
}

gboolean
gst_gpu_handle_context_query (GstElement *element, GstQuery *query, GpuDevice *device)
{
  const gchar *type;
  g_autoptr (GstContext) context = NULL;

  g_return_val_if_fail (GST_IS_ELEMENT (element), FALSE);
  g_return_val_if_fail (GST_IS_QUERY (query), FALSE);

  if (!device || GST_QUERY_TYPE (query) != GST_QUERY_CONTEXT || !gst_query_parse_context_type (query, &type) ||
      g_strcmp0 (type, GST_GPU_CONTEXT_TYPE) != 0)
    return FALSE;

  context = gst_gpu_context_new (device);
  gst_query_set_context (query, context);
  GST_DEBUG_OBJECT (element, "told a neighbour about device %s", gpu_device_name (device));
  return TRUE;
}

typedef struct {
  const char *name;
  GpuDevice **device;
} Search;

/* Gives the element a context as its bin would. One whose set_context does not look at it gets the device all the same.
 */
static gboolean
offer_context (GstElement *element, GstContext *context, const Search *search)
{
  gst_element_set_context (element, context);
  if (!g_atomic_pointer_get (search->device))
    gst_gpu_handle_set_context (element, context, search->name, search->device);
  return g_atomic_pointer_get (search->device) != NULL;
}

/* Goes on, returning TRUE, until a neighbour's device is taken. */
static gboolean
ask_neighbour (GstElement *element, GstPad *pad, gpointer user_data)
{
  const Search *search = user_data;
  g_autoptr (GstQuery) query = gst_query_new_context (GST_GPU_CONTEXT_TYPE);
  GstContext *context = NULL;
  GpuDevice *offered;
  gboolean wanted;

  if (!gst_pad_peer_query (pad, query))
    return TRUE;
  gst_query_parse_context (query, &context);
  offered = gst_gpu_context_get_device (context);
  if (!offered)
    return TRUE;
  /* The element would store it, and hand it on to those it asks it for. */
  wanted = is_wanted (search->name, offered);
  gpu_device_unref (offered);
  return !wanted || !offer_context (element, context, search);
}

gboolean
gst_gpu_ensure_device (GstElement *element, const char *name, GpuDevice **device, GError **error)
{
  const Search search = {name, device};
  g_autoptr (GstContext) context = NULL;
  GpuDevice *opened;

  g_return_val_if_fail (GST_IS_ELEMENT (element), FALSE);
  g_return_val_if_fail (device != NULL, FALSE);

  if (g_atomic_pointer_get (device))
    return TRUE;

  gst_element_foreach_src_pad (element, ask_neighbour, (gpointer)&search);
  if (!g_atomic_pointer_get (device))
    gst_element_foreach_sink_pad (element, ask_neighbour, (gpointer)&search);
  if (!g_atomic_pointer_get (device))
    /* Bins and the application answer it by setting a context before this returns. */
    gst_element_post_message (element, gst_message_new_need_context (GST_OBJECT (element), GST_GPU_CONTEXT_TYPE));
  if (g_atomic_pointer_get (device))
    return TRUE;

  opened = gpu_device_open (name, error);
  if (!opened)
    return FALSE;
  if (!g_atomic_pointer_compare_and_exchange (device, NULL, opened)) {
    /* A context came in meanwhile. */
    gpu_device_unref (opened);
    return TRUE;
  }
  GST_DEBUG_OBJECT (element, "opened device %s", gpu_device_name (opened));

  context = gst_gpu_context_new (opened);
  gst_element_set_context (element, context);
  gst_element_post_message (element, gst_message_new_have_context (GST_OBJECT (element), gst_context_ref (context)));
  return TRUE;
}

GstStructure *
gst_gpu_cache_stats_to_structure (GpuDevice *device, GpuAccount account)
{
  GpuCacheStats stats;

  g_return_val_if_fail (device != NULL, NULL);

  gpu_cache_get_stats (device, account, GPU_CACHE_ALL, &stats);
  /* clang-format off */
  return gst_structure_new ("gpucache-stats",
      "live", G_TYPE_UINT64, (guint64)stats.live,
      "pending", G_TYPE_UINT64, (guint64)stats.pending,
      "idle", G_TYPE_UINT64, (guint64)stats.idle,
      "live-bytes", G_TYPE_UINT64, (guint64)stats.live_bytes,
      "pending-bytes", G_TYPE_UINT64, (guint64)stats.pending_bytes,
      "idle-bytes", G_TYPE_UINT64, (guint64)stats.idle_bytes,
      "detached-bytes", G_TYPE_UINT64, (guint64)stats.detached_bytes,
      "peak-bytes", G_TYPE_UINT64, (guint64)stats.peak_bytes,
      "limit-bytes", G_TYPE_UINT64, (guint64)stats.limit_bytes,
      "held-bytes", G_TYPE_UINT64, (guint64)stats.held_bytes,
      "exact-hits", G_TYPE_UINT64, (guint64)stats.exact_hits,
      "fit-hits", G_TYPE_UINT64, (guint64)stats.fit_hits,
      "pending-hits", G_TYPE_UINT64, (guint64)stats.pending_hits,
      "waiting-hits", G_TYPE_UINT64, (guint64)stats.waiting_hits,
      "misses", G_TYPE_UINT64, (guint64)stats.misses,
      "evictions", G_TYPE_UINT64, (guint64)stats.evictions,
      "oom-retries", G_TYPE_UINT64, (guint64)stats.oom_retries,
      "host-waits", G_TYPE_UINT64, (guint64)stats.host_waits,
      "throttle-waits", G_TYPE_UINT64, (guint64)stats.throttle_waits,
      NULL);
  /* clang-format on */
}

static GstDebugCategory *
cache_debug_category (void)
{
  static gsize once = 0;
  static GstDebugCategory *category = NULL;

  if (g_once_init_enter (&once)) {
    GST_DEBUG_CATEGORY_INIT (category, "gpucache", 0, "GPU cache state");
    g_once_init_leave (&once, 1);
  }
  return category;
}

void
gst_gpu_cache_log (GstElement *element, GpuDevice *device)
{
  GstDebugCategory *category = cache_debug_category ();
  g_autofree gchar *table = NULL;
  g_auto (GStrv) lines = NULL;

  g_return_if_fail (device != NULL);

  if (gst_debug_category_get_threshold (category) < GST_LEVEL_DEBUG)
    return;
  table = gpu_cache_dump (device);
  lines = g_strsplit (g_strchomp (table), "\n", -1);
  for (guint i = 0; lines[i]; i++)
    GST_CAT_DEBUG_OBJECT (category, element, "%s", lines[i]);
}
