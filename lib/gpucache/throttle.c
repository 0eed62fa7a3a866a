/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Frames in flight (rule 27): a ring of the points after the last frames.
 */
#include "stream-priv.h"

/* From this depth on an event may stand for the frame before its own, too: one frame less is in flight then. All
 * elements of a chain on one stream together record about one event a frame. */
#define SHARED_DEPTH 4

struct GpuThrottle {
  _Alignas(GPU_CACHE_LINES) unsigned depth;
  unsigned next; /* where the frame after this one goes; also the one that must be complete by then */
  GpuPoint *point;
};

/* On cache lines of their own: the threads of other elements write to what lies beside them. */
static GpuPoint *
new_points (unsigned depth)
{
  size_t bytes = (depth * sizeof (GpuPoint) + GPU_CACHE_LINES - 1) / GPU_CACHE_LINES * GPU_CACHE_LINES;
  return g_aligned_alloc0 (1, bytes, GPU_CACHE_LINES);
}

GpuThrottle *
gpu_throttle_new (unsigned depth)
{
  g_return_val_if_fail (depth > 0, NULL);

  GpuThrottle *throttle = g_aligned_alloc0 (1, sizeof *throttle, _Alignof(GpuThrottle));
  throttle->depth = depth;
  throttle->point = new_points (depth);
  return throttle;
}

/* @by frames, at most the depth, after the next one. */
static GpuPoint *
point_after (const GpuThrottle *throttle, unsigned by)
{
  unsigned i = throttle->next + by;
  return &throttle->point[i < throttle->depth ? i : i - throttle->depth];
}

void
gpu_throttle_free (GpuThrottle *throttle)
{
  if (!throttle)
    return;
  for (unsigned i = 0; i < throttle->depth; i++)
    gpu_point_clear (&throttle->point[i]);
  g_aligned_free (throttle->point);
  g_aligned_free (throttle);
}

void
gpu_throttle_set_depth (GpuThrottle *throttle, unsigned depth)
{
  g_return_if_fail (throttle != NULL && depth > 0);

  if (depth == throttle->depth)
    return;
  GpuPoint *point = new_points (depth);
  /* From the oldest on: the newest ones are kept, at the end, so that the next slot is the oldest of them. */
  unsigned kept = MIN (depth, throttle->depth);
  for (unsigned i = 0; i < throttle->depth; i++) {
    GpuPoint *old = point_after (throttle, i);
    if (i + kept >= throttle->depth)
      point[depth - (throttle->depth - i)] = *old;
    else
      gpu_point_clear (old);
  }
  g_aligned_free (throttle->point);
  throttle->point = point;
  throttle->depth = depth;
  throttle->next = 0;
}

/* Of a lost device's work there will be no event, and nobody waits for it. */
static bool
is_lost (const GpuPoint *point)
{
  return point->stream && gpu_device_is_lost (gpu_stream_device (point->stream));
}

/* A lost device's work never ends, and must not hold up that on others; who submits more to it is told there. */
bool
gpu_throttle_begin (GpuThrottle *throttle, GError **error)
{
  GpuPoint *point = &throttle->point[throttle->next];
  /* To ask takes a GPU's driver up to as long as a launch. Where the device keeps up, the answer about a later frame is
   * one for all before it, and the next frames need not ask. */
  const GpuPoint *later = point_after (throttle, throttle->depth / 2);
  if (throttle->depth >= SHARED_DEPTH && point->stream && later->stream == point->stream &&
      !gpu_point_observed (point) && gpu_point_is_complete (later))
    return true;

  g_autoptr (GError) reason = NULL;
  if (gpu_point_wait_throttled (point, &reason))
    return true;
  if (is_lost (point)) {
    gpu_point_clear (point);
    return true;
  }
  g_propagate_error (error, g_steal_pointer (&reason));
  return false;
}

bool
gpu_throttle_end (GpuThrottle *throttle, GpuStream *stream, GError **error)
{
  GpuPoint *point = &throttle->point[throttle->next];
  const GpuPoint *last = point_after (throttle, throttle->depth - 1);
  throttle->next = throttle->next + 1 < throttle->depth ? throttle->next + 1 : 0;
  return throttle->depth < SHARED_DEPTH || is_lost (last) ? gpu_point_mark (point, stream, error)
                                                          : gpu_point_mark_since (point, stream, last, error);
}
