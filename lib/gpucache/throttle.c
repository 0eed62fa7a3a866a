/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Frames in flight (rule 27): a ring of the points after the last frames.
 */
#include "stream-priv.h"

/* From this depth on an event may stand for the frame before its own, too: one frame less is in flight then. All
 * elements of a chain on one stream together record about one event a frame. */
#define SHARED_DEPTH 4

struct GpuThrottle {
  unsigned depth;
  unsigned next; /* where the frame after this one goes; also the one that must be complete by then */
  GpuPoint *point;
};

GpuThrottle *
gpu_throttle_new (unsigned depth)
{
  g_return_val_if_fail (depth > 0, NULL);

  GpuThrottle *throttle = g_new0 (GpuThrottle, 1);
  throttle->depth = depth;
  throttle->point = g_new0 (GpuPoint, depth);
  return throttle;
}

void
gpu_throttle_free (GpuThrottle *throttle)
{
  if (!throttle)
    return;
  for (unsigned i = 0; i < throttle->depth; i++)
    gpu_point_clear (&throttle->point[i]);
  g_free (throttle->point);
  g_free (throttle);
}

void
gpu_throttle_set_depth (GpuThrottle *throttle, unsigned depth)
{
  g_return_if_fail (throttle != NULL && depth > 0);

  if (depth == throttle->depth)
    return;
  GpuPoint *point = g_new0 (GpuPoint, depth);
  /* From the oldest on: the newest ones are kept, at the end, so that the next slot is the oldest of them. */
  unsigned kept = MIN (depth, throttle->depth);
  for (unsigned i = 0; i < throttle->depth; i++) {
    GpuPoint *old = &throttle->point[(throttle->next + i) % throttle->depth];
    if (i + kept >= throttle->depth)
      point[depth - (throttle->depth - i)] = *old;
    else
      gpu_point_clear (old);
  }
  g_free (throttle->point);
  throttle->point = point;
  throttle->depth = depth;
  throttle->next = 0;
}

/* A lost device's work never ends, and must not hold up that on others; who submits more to it is told there. */
bool
gpu_throttle_begin (GpuThrottle *throttle, GError **error)
{
  GpuPoint *point = &throttle->point[throttle->next];
  /* To ask takes a GPU's driver half as long as a launch. Where the device keeps up, the answer about a later frame is
   * one for all before it, and the next frames need not ask. */
  const GpuPoint *later = &throttle->point[(throttle->next + throttle->depth / 2) % throttle->depth];
  if (throttle->depth >= SHARED_DEPTH && point->stream && later->stream == point->stream &&
      !gpu_point_observed (point) && gpu_point_is_complete (later))
    return true;

  g_autoptr (GError) reason = NULL;
  if (gpu_point_wait_throttled (point, &reason))
    return true;
  if (point->stream && gpu_device_is_lost (gpu_stream_device (point->stream))) {
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
  const GpuPoint *last = &throttle->point[(throttle->next + throttle->depth - 1) % throttle->depth];
  throttle->next = (throttle->next + 1) % throttle->depth;
  return throttle->depth < SHARED_DEPTH ? gpu_point_mark (point, stream, error)
                                        : gpu_point_mark_since (point, stream, last, error);
}
