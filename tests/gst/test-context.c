/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * How elements come to share a device (G8), and the statistics as a structure (rule 16).
 */
#include "common.h"

#include <string.h>

/* An element that wants a device of a name, as ours do. */
#define TEST_TYPE_SHARER (test_sharer_get_type ())
G_DECLARE_FINAL_TYPE (TestSharer, test_sharer, TEST, SHARER, GstElement)

struct _TestSharer {
  GstElement parent;
  const gchar *name;
  GpuDevice *device;
};

G_DEFINE_TYPE (TestSharer, test_sharer, GST_TYPE_ELEMENT)

static void
test_sharer_set_context (GstElement *element, GstContext *context)
{
  TestSharer *self = TEST_SHARER (element);

  gst_gpu_handle_set_context (element, context, self->name, &self->device);
  GST_ELEMENT_CLASS (test_sharer_parent_class)->set_context (element, context);
}

static gboolean
test_sharer_query (GstPad *pad, GstObject *parent, GstQuery *query)
{
  TestSharer *self = TEST_SHARER (parent);

  return gst_gpu_handle_context_query (GST_ELEMENT (self), query, self->device) ||
         gst_pad_query_default (pad, parent, query);
}

static void
test_sharer_finalize (GObject *object)
{
  g_clear_pointer (&TEST_SHARER (object)->device, gpu_device_unref);
  G_OBJECT_CLASS (test_sharer_parent_class)->finalize (object);
}

static void
test_sharer_class_init (TestSharerClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = test_sharer_finalize;
  GST_ELEMENT_CLASS (klass)->set_context = test_sharer_set_context;
}

static void
test_sharer_init (TestSharer *self)
{
  static const GstPadDirection directions[] = {GST_PAD_SINK, GST_PAD_SRC};

  for (guint i = 0; i < G_N_ELEMENTS (directions); i++) {
    GstPad *pad = gst_pad_new (directions[i] == GST_PAD_SINK ? "sink" : "src", directions[i]);

    gst_pad_set_query_function (pad, test_sharer_query);
    gst_element_add_pad (GST_ELEMENT (self), pad);
  }
}

static TestSharer *
add_sharer (GstElement *bin, const gchar *name, GpuDevice *device)
{
  TestSharer *self = g_object_new (TEST_TYPE_SHARER, NULL);

  self->name = name;
  self->device = device ? gpu_device_ref (device) : NULL;
  gst_bin_add (GST_BIN (bin), GST_ELEMENT (self));
  return self;
}

static gboolean
ensure (TestSharer *sharer, GError **error)
{
  return gst_gpu_ensure_device (GST_ELEMENT (sharer), sharer->name, &sharer->device, error);
}

static GpuDevice *
cpu_device_new (const gchar *name)
{
  return gpu_cpu_device_new (name, GPU_CPU_LAZY, 0);
}

GST_START_TEST (test_context)
{
  GpuDevice *device = test_device_new (), *held;
  g_autoptr (GstContext) context = gst_gpu_context_new (device);
  g_autoptr (GstContext) other = gst_context_new ("gst.other", TRUE);

  fail_unless (gst_context_is_persistent (context));
  fail_unless (gst_context_has_context_type (context, GST_GPU_CONTEXT_TYPE));
  held = gst_gpu_context_get_device (context);
  fail_unless (held == device);
  gpu_device_unref (held);
  fail_unless (gst_gpu_context_get_device (other) == NULL);
  fail_unless (gst_gpu_context_get_device (NULL) == NULL);
  gpu_device_unref (device);
  /* The context holds it. */
  held = gst_gpu_context_get_device (context);
  fail_unless_equals_int (gpu_device_is_lost (held), FALSE);
  gpu_device_unref (held);
}
GST_END_TEST

GST_START_TEST (test_device_is_printed)
{
  GpuDevice *device = test_device_new ();
  g_autoptr (GstContext) context = gst_gpu_context_new (device);
  g_autofree gchar *text = gst_structure_to_string (gst_context_get_structure (context));
  g_autofree gchar *name = g_strdup_printf ("(GpuDevice)%s", gpu_device_name (device));
  g_autofree gchar *quoted = g_strdup_printf ("(GpuDevice)\"%s\"", gpu_device_name (device));

  fail_unless (strstr (text, name) || strstr (text, quoted), "%s", text);
  gpu_device_unref (device);
}
GST_END_TEST

GST_START_TEST (test_boxed)
{
  GpuDevice *device = test_device_new ();
  GpuStream *stream = test_stream_new (device), *copy;

  fail_unless (g_boxed_copy (GST_TYPE_GPU_DEVICE, device) == device);
  copy = g_boxed_copy (GST_TYPE_GPU_STREAM, stream);
  fail_unless (copy == stream);
  gpu_stream_unref (stream);
  fail_unless (gpu_stream_device (copy) == device);
  g_boxed_free (GST_TYPE_GPU_STREAM, copy);
  g_boxed_free (GST_TYPE_GPU_DEVICE, device);
  gpu_device_unref (device);
}
GST_END_TEST

/* G8: a context of a device that was not asked for is ignored; a device that is there is kept. */
GST_START_TEST (test_set_context)
{
  static const struct {
    const gchar *wanted;
    gboolean taken;
  } cases[] = {
      {"auto", TRUE},    {"cpu:1", TRUE},   {"cpu:01", TRUE},  {"cpu", FALSE},   {"cpu:0", FALSE},
      {"cpu:11", FALSE}, {"cuda:1", FALSE}, {"cpux:1", FALSE}, {"cpu:x", FALSE}, {"", TRUE},
  };
  GpuDevice *one = cpu_device_new ("cpu:1"), *zero = cpu_device_new ("cpu:0"), *device;
  g_autoptr (GstContext) context = gst_gpu_context_new (one);
  GstElement *element = gst_element_factory_make ("fakesink", NULL);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    device = NULL;
    fail_unless_equals_int (gst_gpu_handle_set_context (element, context, cases[i].wanted, &device), cases[i].taken);
    fail_unless (device == (cases[i].taken ? one : NULL));
    if (device)
      gpu_device_unref (device);
  }

  /* A context of that GPU's that is an application's own. */
  {
    static const struct {
      const gchar *wanted;
      gboolean taken;
    } contexts[] = {{"cuda:1", TRUE}, {"cuda:1/2", TRUE}, {"cuda:2", FALSE}, {"cuda:1/1", FALSE}, {"cuda", FALSE}};
    GpuDevice *own = cpu_device_new ("cuda:1/2");
    g_autoptr (GstContext) its = gst_gpu_context_new (own);

    for (guint i = 0; i < G_N_ELEMENTS (contexts); i++) {
      device = NULL;
      fail_unless_equals_int (gst_gpu_handle_set_context (element, its, contexts[i].wanted, &device),
                              contexts[i].taken);
      if (device)
        gpu_device_unref (device);
    }
    gpu_device_unref (own);
  }

  device = zero;
  fail_if (gst_gpu_handle_set_context (element, context, "auto", &device));
  fail_unless (device == zero);
  device = NULL;
  fail_if (gst_gpu_handle_set_context (element, NULL, "auto", &device));
  gst_object_unref (element);
  gpu_device_unref (zero);
  gpu_device_unref (one);
}
GST_END_TEST

GST_START_TEST (test_query)
{
  GpuDevice *device = cpu_device_new ("cpu:2"), *told;
  g_autoptr (GstQuery) query = gst_query_new_context (GST_GPU_CONTEXT_TYPE);
  g_autoptr (GstQuery) other = gst_query_new_context ("gst.other");
  g_autoptr (GstQuery) latency = gst_query_new_latency ();
  GstElement *element = gst_element_factory_make ("fakesink", NULL);
  GstContext *context;

  fail_if (gst_gpu_handle_context_query (element, query, NULL));
  fail_if (gst_gpu_handle_context_query (element, other, device));
  fail_if (gst_gpu_handle_context_query (element, latency, device));
  fail_unless (gst_gpu_handle_context_query (element, query, device));
  gst_query_parse_context (query, &context);
  told = gst_gpu_context_get_device (context);
  fail_unless (told == device);
  gpu_device_unref (told);
  gst_object_unref (element);
  gpu_device_unref (device);
}
GST_END_TEST

/* Alone, an element opens the device itself and tells its bin, so that whoever comes later gets the same one. */
GST_START_TEST (test_alone)
{
  GstElement *pipeline = gst_pipeline_new (NULL);
  TestSharer *one = add_sharer (pipeline, "cpu:3", NULL), *later;
  GpuDevice *opened = gpu_device_open ("cpu:3", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (GstBus) bus = gst_element_get_bus (pipeline);
  g_autoptr (GstMessage) need = NULL;
  g_autoptr (GstMessage) have = NULL;
  GstContext *context;

  fail_unless (ensure (one, &error));
  g_assert_no_error (error);
  fail_unless (one->device == opened);
  need = gst_bus_pop_filtered (bus, GST_MESSAGE_NEED_CONTEXT);
  have = gst_bus_pop_filtered (bus, GST_MESSAGE_HAVE_CONTEXT);
  fail_unless (need != NULL && have != NULL);
  gst_message_parse_have_context (have, &context);
  fail_unless (gst_context_has_context_type (context, GST_GPU_CONTEXT_TYPE));
  gst_context_unref (context);

  later = add_sharer (pipeline, "auto", NULL);
  fail_unless (later->device == opened);
  fail_unless (ensure (later, &error));
  gst_object_unref (pipeline);
  gpu_device_unref (opened);
}
GST_END_TEST

/* Neighbours are asked, downstream first, and those of another device passed over. */
GST_START_TEST (test_neighbours)
{
  GstElement *pipeline = gst_pipeline_new (NULL);
  GpuDevice *four = cpu_device_new ("cpu:4"), *six = cpu_device_new ("cpu:6");
  TestSharer *upstream = add_sharer (pipeline, "cpu:4", four);
  TestSharer *middle = add_sharer (pipeline, "auto", NULL);
  TestSharer *downstream = add_sharer (pipeline, "cpu:6", six);
  GstElement *queue = gst_element_factory_make ("queue", NULL);
  g_autoptr (GError) error = NULL;

  gst_bin_add (GST_BIN (pipeline), queue);
  fail_unless (gst_element_link_pads_full (GST_ELEMENT (upstream), "src", queue, "sink", GST_PAD_LINK_CHECK_NOTHING));
  fail_unless (gst_element_link_pads_full (queue, "src", GST_ELEMENT (middle), "sink", GST_PAD_LINK_CHECK_NOTHING));
  fail_unless (gst_element_link_pads_full (GST_ELEMENT (middle), "src", GST_ELEMENT (downstream), "sink",
                                           GST_PAD_LINK_CHECK_NOTHING));
  fail_unless (ensure (middle, &error));
  fail_unless (middle->device == six);

  g_clear_pointer (&middle->device, gpu_device_unref);
  middle->name = "cpu:4";
  fail_unless (ensure (middle, &error));
  fail_unless (middle->device == four);

  g_clear_pointer (&middle->device, gpu_device_unref);
  middle->name = "cpu:7";
  fail_unless (ensure (middle, &error));
  fail_unless_equals_string (gpu_device_name (middle->device), "cpu:7");

  gst_object_unref (pipeline);
  gpu_device_unref (four);
  gpu_device_unref (six);
}
GST_END_TEST

/* A context that the application set on the pipeline counts, if it is of the device asked for. */
GST_START_TEST (test_application)
{
  GstElement *pipeline = gst_pipeline_new (NULL);
  GpuDevice *eight = cpu_device_new ("cpu:8");
  g_autoptr (GstContext) context = gst_gpu_context_new (eight);
  g_autoptr (GError) error = NULL;
  TestSharer *any, *same, *other;

  gst_element_set_context (pipeline, context);
  any = add_sharer (pipeline, "auto", NULL);
  same = add_sharer (pipeline, "cpu:8", NULL);
  other = add_sharer (pipeline, "cpu:9", NULL);
  fail_unless (ensure (any, &error) && ensure (same, &error) && ensure (other, &error));
  fail_unless (any->device == eight);
  fail_unless (same->device == eight);
  fail_unless_equals_string (gpu_device_name (other->device), "cpu:9");
  gst_object_unref (pipeline);
  gpu_device_unref (eight);
}
GST_END_TEST

/* And what neighbours have stays with them: an element that did not want it does not hand it on. */
GST_START_TEST (test_no_such_device)
{
  GstElement *pipeline = gst_pipeline_new (NULL);
  GpuDevice *four = cpu_device_new ("cpu:4");
  TestSharer *sharer = add_sharer (pipeline, "tpu:0", NULL), *downstream = add_sharer (pipeline, "cpu:4", four);
  g_autoptr (GError) error = NULL;

  fail_unless (gst_element_link_pads_full (GST_ELEMENT (sharer), "src", GST_ELEMENT (downstream), "sink",
                                           GST_PAD_LINK_CHECK_NOTHING));
  fail_if (ensure (sharer, &error));
  g_assert_error (error, GPU_ERROR, GPU_ERROR_INVALID);
  fail_unless (strstr (error->message, "tpu:0") != NULL);
  fail_unless (sharer->device == NULL);
  fail_unless (gst_element_get_context (GST_ELEMENT (sharer), GST_GPU_CONTEXT_TYPE) == NULL);
  gst_object_unref (pipeline);
  gpu_device_unref (four);
}
GST_END_TEST

/* Rule 16: these fields, all of them guint64. */
GST_START_TEST (test_stats_structure)
{
  static const gchar *const names[] = {
      "live",       "pending",     "idle",        "live-bytes", "pending-bytes",  "idle-bytes",   "detached-bytes",
      "peak-bytes", "limit-bytes", "held-bytes",  "exact-hits", "fit-hits",       "pending-hits", "waiting-hits",
      "misses",     "evictions",   "oom-retries", "host-waits", "throttle-waits",
  };
  GpuDevice *device = test_device_new ();
  GpuStream *stream = test_stream_new (device);
  GstAllocator *allocator = gst_gpu_allocator_new (device);
  g_autoptr (GError) error = NULL;
  g_autoptr (GstStructure) stats = NULL;
  GstVideoInfo info;
  GstMemory *memory;
  guint64 live, bytes, missed, limit, old_limit = gpu_cache_get_limit (device, GPU_ACCOUNT_DEVICE);

  test_video_info (&info, GST_VIDEO_FORMAT_GRAY8, 256, 10);
  memory = gst_gpu_allocator_alloc_video (GST_GPU_ALLOCATOR (allocator), &info, FALSE, GPU_MEMORY_STREAM_ORDERED,
                                          stream, &error);
  fail_unless (gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, 123456789, &error));
  stats = gst_gpu_cache_stats_to_structure (device, GPU_ACCOUNT_DEVICE);
  fail_unless (gst_structure_has_name (stats, "gpucache-stats"));
  fail_unless_equals_int (gst_structure_n_fields (stats), G_N_ELEMENTS (names));
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    fail_unless (gst_structure_has_field_typed (stats, names[i], G_TYPE_UINT64), "%s", names[i]);
  fail_unless (gst_structure_get (stats, "live", G_TYPE_UINT64, &live, "live-bytes", G_TYPE_UINT64, &bytes, "misses",
                                  G_TYPE_UINT64, &missed, "limit-bytes", G_TYPE_UINT64, &limit, NULL));
  fail_unless_equals_uint64 (live, 1);
  fail_unless_equals_uint64 (bytes, gpu_image_capacity (gst_gpu_memory_get_image (memory)));
  fail_unless_equals_uint64 (limit, 123456789);
  fail_unless (missed >= 1);
  fail_unless (gpu_cache_set_limit (device, GPU_ACCOUNT_DEVICE, (int64_t)old_limit, &error));
  gst_memory_unref (memory);
  gst_object_unref (allocator);
  gpu_stream_unref (stream);
  gpu_device_unref (device);
}
GST_END_TEST

static Suite *
context_suite (void)
{
  Suite *suite = suite_create ("context");
  TCase *tcase = tcase_create ("context");

  suite_add_tcase (suite, tcase);
  tcase_add_test (tcase, test_context);
  tcase_add_test (tcase, test_device_is_printed);
  tcase_add_test (tcase, test_boxed);
  tcase_add_test (tcase, test_set_context);
  tcase_add_test (tcase, test_query);
  tcase_add_test (tcase, test_alone);
  tcase_add_test (tcase, test_neighbours);
  tcase_add_test (tcase, test_application);
  tcase_add_test (tcase, test_no_such_device);
  tcase_add_test (tcase, test_stats_structure);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, context_suite, "context");
}
