/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Pipelines in which something fails in mid-stream: one for each element, a failure that begins when a frame comes to
 * that element, and what the bus says then.
 */
#pragma once

#include "common.h"

/** A pipeline with the element that is to fail named "it". */
typedef struct {
  const char *name; /* the element's factory, or what is special about it */
  const char *launch;
  gboolean threads; /* whether other elements go on in threads of their own, and meet a lost device, too */
} Scene;

enum {
  SCENE_UPLOAD,
  SCENE_DOWNLOAD,
  N_SCENES = 8,
};
extern const Scene scenes[N_SCENES];

/** Something that fails from begin() on, until end(), which is called if the element came through. */
typedef struct {
  void (*begin) (GpuDevice *device, gconstpointer data);
  void (*end) (GpuDevice *device, gconstpointer data);
  gconstpointer data;
} Failure;

/**
 * Plays @scene on @device, which is what the environment names, with @failure in the middle: its frames are held in
 * flight behind a gate if @gated, and all that "it" gave are held live. Goes to NULL with the gate closed. Fails unless
 * there was exactly one error from our elements (one each, of the same cause, where there are threads), and none
 * from others but the source's that its stream has ended; and unless nothing of the device is live afterwards.
 *
 * Returns: (transfer full) (nullable): the error, or NULL if the pipeline played to its end
 */
GError *scene_fail (const Scene *scene, GpuDevice *device, const Failure *failure, gboolean gated);

/** Plays @scene to its end. Returns: (transfer full): the bytes of its last frame. */
GBytes *scene_play (const Scene *scene);

/** Fails unless each of the NULL-terminated words is in @error's sentence. */
void error_expect (const GError *error, const char *what, ...) G_GNUC_NULL_TERMINATED;
