/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The GstContext that shares a device in a pipeline, and the statistics as a GstStructure.
 */
#pragma once

#include <gpucache/gpucache.h>

#include <gst/gst.h>

G_BEGIN_DECLS

/**
 * GST_GPU_CONTEXT_TYPE:
 *
 * The context's type; its structure holds a "device" of #GST_TYPE_GPU_DEVICE.
 *
 * Since: 0.1
 */
#define GST_GPU_CONTEXT_TYPE "gst.gpucache.device"

/**
 * GST_TYPE_GPU_DEVICE: / GST_TYPE_GPU_STREAM:
 *
 * Boxed types of the library's reference-counted objects: a copy is a reference.
 *
 * Since: 0.1
 */
#define GST_TYPE_GPU_DEVICE (gst_gpu_device_get_type ())
#define GST_TYPE_GPU_STREAM (gst_gpu_stream_get_type ())
GPU_API GType gst_gpu_device_get_type (void);
GPU_API GType gst_gpu_stream_get_type (void);

/**
 * gst_gpu_context_new:
 * @device: (transfer none): a device
 *
 * Returns: (transfer full): a persistent context that holds @device, which an application sets on a pipeline
 *
 * Since: 0.1
 */
GPU_API GstContext *gst_gpu_context_new (GpuDevice *device);

/**
 * gst_gpu_context_get_device:
 * @context: (nullable): a context
 *
 * Returns: (transfer full) (nullable): the device in @context, %NULL if it is not of #GST_GPU_CONTEXT_TYPE
 *
 * Since: 0.1
 */
GPU_API GpuDevice *gst_gpu_context_get_device (GstContext *context);

/**
 * gst_gpu_ensure_device:
 * @element: asks its neighbours, then its bin and the application, then opens the device itself and tells everybody
 * @name: (nullable): "auto", "cpu", "cpu:N", "cuda:N"; %NULL for the environment's GPUCACHE_DEVICE, or "auto" if that
 *   is not set. "auto" takes any neighbour's device; else contexts of another device are ignored.
 * @device: (inout) (transfer full): set if %NULL; a device that is there is kept
 * @error: (nullable): as gpu_device_open()
 *
 * Call it from a state change or the streaming thread, with no lock of @element's held: its set_context is called.
 *
 * Returns: %FALSE if @error is set
 *
 * Since: 0.1
 */
GPU_API gboolean gst_gpu_ensure_device (GstElement *element, const char *name, GpuDevice **device, GError **error);

/**
 * gst_gpu_handle_set_context:
 * @element: an element
 * @context: (nullable): what its set_context was given
 * @name: (nullable): as gst_gpu_ensure_device()
 * @device: (inout) (transfer full): set if %NULL and @context's device is one that @name allows
 *
 * For #GstElementClass.set_context(), which chains up all the same.
 *
 * Returns: %TRUE if the device was taken
 *
 * Since: 0.1
 */
GPU_API gboolean gst_gpu_handle_set_context (GstElement *element, GstContext *context, const char *name,
                                             GpuDevice **device);

/**
 * gst_gpu_handle_context_query:
 * @element: an element
 * @query: a query of type %GST_QUERY_CONTEXT; others are left alone
 * @device: (nullable): the device that @element uses
 *
 * Returns: %TRUE if the query was answered with @device
 *
 * Since: 0.1
 */
GPU_API gboolean gst_gpu_handle_context_query (GstElement *element, GstQuery *query, GpuDevice *device);

/**
 * gst_gpu_cache_stats_to_structure:
 * @device: a device
 * @account: device or pinned host memory
 *
 * Returns: (transfer full): a "gpucache-stats" structure of @device, all threads together, whose fields are #guint64:
 *   live, pending, idle (entries), live-bytes, pending-bytes, idle-bytes, detached-bytes, peak-bytes, limit-bytes,
 *   held-bytes, exact-hits, fit-hits, pending-hits, waiting-hits, misses, evictions, oom-retries, host-waits and
 *   throttle-waits. See #GpuCacheStats.
 *
 * Since: 0.1
 */
GPU_API GstStructure *gst_gpu_cache_stats_to_structure (GpuDevice *device, GpuAccount account);

/**
 * gst_gpu_cache_log:
 * @element: (nullable): whom the lines are about
 * @device: a device
 *
 * Logs the whole state of @device's cache as a table, a line at a time, in the debug category `gpucache` at level DEBUG
 * (`GST_DEBUG=gpucache:5`). Costs nothing while that is off.
 *
 * Since: 0.1
 */
GPU_API void gst_gpu_cache_log (GstElement *element, GpuDevice *device);

G_END_DECLS
