/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What happens to gpubatch's pads while its streaming thread is in the middle of a batch: each test holds one thread at
 * the place in question and lets another one go on.
 */
#include "batch.h"

/* Holds the thread that comes to it until it is opened; one at a time. */
typedef struct {
  GMutex lock;
  GCond cond;
  gboolean closed, reached;
} Hold;

static void
hold_init (Hold *hold)
{
  g_mutex_init (&hold->lock);
  g_cond_init (&hold->cond);
  hold->closed = TRUE;
  hold->reached = FALSE;
}

static void
hold_clear (Hold *hold)
{
  g_mutex_clear (&hold->lock);
  g_cond_clear (&hold->cond);
}

static void
hold_here (Hold *hold)
{
  g_mutex_lock (&hold->lock);
  hold->reached = TRUE;
  g_cond_broadcast (&hold->cond);
  while (hold->closed)
    g_cond_wait (&hold->cond, &hold->lock);
  g_mutex_unlock (&hold->lock);
}

static void
hold_wait (Hold *hold)
{
  g_mutex_lock (&hold->lock);
  while (!hold->reached)
    g_cond_wait (&hold->cond, &hold->lock);
  g_mutex_unlock (&hold->lock);
}

static void
hold_open (Hold *hold)
{
  g_mutex_lock (&hold->lock);
  hold->closed = FALSE;
  g_cond_broadcast (&hold->cond);
  g_mutex_unlock (&hold->lock);
}

/* Releasing a pad, held where GstAggregator takes over: whatever gpubatch does before has been done, and nothing that
 * GstAggregator does, so frames can still be taken from the pad. */
static Hold *releasing;
static void (*release_pad) (GstElement *element, GstPad *pad);

static void
release_held (GstElement *element, GstPad *pad)
{
  if (releasing)
    hold_here (releasing);
  release_pad (element, pad);
}

/* Before gpubatch's class is made, which takes over what its parent has. */
static void
hook_release (void)
{
  GstElementFactory *factory = gst_element_factory_find ("gpubatch");
  GstElementFactory *loaded = GST_ELEMENT_FACTORY (gst_plugin_feature_load (GST_PLUGIN_FEATURE (factory)));
  const GType aggregator = g_type_parent (gst_element_factory_get_element_type (loaded));
  GstElementClass *klass = g_type_class_ref (aggregator);

  fail_unless_equals_string (g_type_name (aggregator), "GstAggregator");
  release_pad = klass->release_pad;
  klass->release_pad = release_held;
  gst_object_unref (loaded);
  gst_object_unref (factory);
}

static gpointer
release (gpointer harness)
{
  gst_harness_teardown (harness);
  return NULL;
}

/* A frame that is taken while its pad is being released is in front of the pad's end. */
GST_START_TEST (test_release)
{
  Rig rig;
  Hold hold;
  GThread *thread;
  GstBuffer *batch;
  const GstGpuBatchMeta *meta;

  hook_release ();
  rig_init (&rig, 2, "gpubatch");
  feed (&rig, 1, 0);
  hold_init (&hold);
  releasing = &hold;
  thread = g_thread_new ("release", release, g_steal_pointer (&rig.in[1]));
  hold_wait (&hold);
  feed (&rig, 0, 0);
  batch = gst_harness_pull (rig.out);
  hold_open (&hold);
  g_thread_join (thread);
  releasing = NULL;
  meta = gst_buffer_get_gpu_batch_meta (batch);
  fail_unless_equals_int (meta->n_frames, 2);
  for (guint i = 0; i < 2; i++)
    fail_unless (meta->frames[i].pad == i && meta->frames[i].buffer);
  gst_buffer_unref (batch);
  feed (&rig, 0, 1);
  gst_buffer_unref (expect_batch (&rig, 1, -4, 0, 1, -1));
  rig_clear (&rig);
  hold_clear (&hold);
}
GST_END_TEST

static GstPadProbeReturn
hold_batch (GstPad *pad, GstPadProbeInfo *info, gpointer hold)
{
  hold_here (hold);
  return GST_PAD_PROBE_REMOVE;
}

/* A pad that takes the number of a released one begins behind that one's end, if both come at once, too. */
GST_START_TEST (test_request_again)
{
  Rig rig;
  Hold hold;
  GstPad *pad;

  rig_init (&rig, 2, "gpubatch");
  hold_init (&hold);
  pad = gst_element_get_static_pad (rig.element, "src");
  gst_pad_add_probe (pad, GST_PAD_PROBE_TYPE_BUFFER, hold_batch, &hold, NULL);
  gst_object_unref (pad);
  feed (&rig, 0, 0);
  feed (&rig, 1, 0);
  hold_wait (&hold);
  gst_harness_teardown (g_steal_pointer (&rig.in[1]));
  rig_add (&rig, 1, GST_VIDEO_FORMAT_RGB, 12, 12);
  feed (&rig, 0, 1);
  feed (&rig, 1, 1);
  hold_open (&hold);
  gst_buffer_unref (expect_batch (&rig, 0, 0, 1, 0, -1));
  gst_buffer_unref (expect_batch (&rig, 1, -4, 0, 1, 1, 1, -1));
  rig_clear (&rig);
  hold_clear (&hold);
}
GST_END_TEST

static void
hold_frame (GstElement *pad, GstBuffer *buffer, gpointer hold)
{
  hold_here (hold);
}

/* A pad that is released when its frame was taken: the frames are still one batch, of the size that the caps say. */
GST_START_TEST (test_batch_size)
{
  Rig rig;
  Hold hold;
  GstPad *last;
  GstBuffer *batch;
  g_autoptr (GstCaps) caps = NULL;
  gint size;

  rig_init (&rig, 3, "gpubatch");
  hold_init (&hold);
  last = gst_element_get_static_pad (rig.element, "sink_2");
  g_object_set (last, "emit-signals", TRUE, NULL);
  g_signal_connect (last, "buffer-consumed", G_CALLBACK (hold_frame), &hold);
  for (guint i = 0; i < 3; i++)
    feed (&rig, i, 0);
  hold_wait (&hold);
  gst_harness_teardown (g_steal_pointer (&rig.in[0]));
  hold_open (&hold);
  batch = expect_batch (&rig, 0, 0, 1, 0, 2, 0, -1);
  caps = gst_pad_get_current_caps (rig.out->sinkpad);
  fail_unless (gst_structure_get_int (gst_caps_get_structure (caps, 0), "batch-size", &size));
  fail_unless_equals_int (size, 3);
  gst_buffer_unref (batch);
  feed (&rig, 1, 1);
  feed (&rig, 2, 1);
  gst_buffer_unref (expect_batch (&rig, 0, -4, 1, 1, 2, 1, -1));
  gst_object_unref (last);
  rig_clear (&rig);
  hold_clear (&hold);
}
GST_END_TEST

static Suite *
batch_races_suite (void)
{
  Suite *suite = suite_create ("batch-races");
  TCase *tcase = tcase_create ("general");

  suite_add_tcase (suite, tcase);
  tcase_add_test (tcase, test_release);
  tcase_add_test (tcase, test_request_again);
  tcase_add_test (tcase, test_batch_size);
  return suite;
}

int
main (int argc, char **argv)
{
  return test_run (argc, argv, batch_races_suite, "batch-races");
}
