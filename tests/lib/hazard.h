/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Random work on the streams of one device or of several, each piece of which checks what it reads (stamp.h): what was
 * reused too early is seen as wrong bytes. What hazard tests share; the rest of each is who works, and what happens
 * meanwhile.
 */
#pragma once

#include <gpucache/gpucache.h>
#include <gpucache/testing.h>

#define HAZARD_MAX_SITES 3
#define HAZARD_MAX_STREAMS 6
#define HAZARD_MAX_GATES 6
#define HAZARD_IMAGES 10

typedef struct {
  GpuDevice *device;
  unsigned n_streams;
  GpuStream *stream[HAZARD_MAX_STREAMS]; /* every third with a scope of its own */
  GpuGate *gate[HAZARD_MAX_GATES];       /* each holds one stream, the first n_open of them none any more */
  unsigned n_gates, n_open;
} HazardSite;

typedef struct {
  GpuImage *image;
  uint32_t stamp;
} HazardImage;

/** What one thread works on. */
typedef struct {
  unsigned n_sites;
  HazardSite site[HAZARD_MAX_SITES];
  unsigned n;
  HazardImage image[HAZARD_IMAGES];
  uint32_t state; /* of the random numbers; any start */
  uint32_t next_stamp;
  unsigned crossings; /* copies from one device to another so far */
} HazardWork;

uint32_t hazard_pick (HazardWork *work, uint32_t n);
HazardSite *hazard_any_site (HazardWork *work);
GpuStream *hazard_any_stream (HazardWork *work, HazardSite *site);

/** Opens device @i, with @n_streams streams and a limit. */
void hazard_open_site (HazardWork *work, unsigned i, unsigned n_streams, int64_t limit);
/** Fills in device @i as one that another work has open, with streams of its own but for the first @n_shared. */
void hazard_join_site (HazardWork *work, unsigned i, const HazardSite *site, unsigned n_shared);
/** Lets go of everything of device @i's, with work pending. */
void hazard_close_site (HazardWork *work, unsigned i);

/** Holds one of the site's streams by a new gate, of which a site has HAZARD_MAX_GATES in all. */
void hazard_close_gate (HazardWork *work, HazardSite *site);
/** Opens the oldest closed gate, if there is one; or all of them. */
void hazard_open_gate (HazardSite *site);
void hazard_open_gates (HazardSite *site);
/** Opens all gates and waits for all streams, in an order that @turn changes. */
void hazard_finish (HazardWork *work, unsigned turn);

/** One random piece of work. Waits for nothing. */
void hazard_step (HazardWork *work);
void hazard_drop_all (HazardWork *work);

/** @n_threads threads that share the @n_sites devices and some of the streams, and take @n_steps each. Then looks at
 * what they read. */
void hazard_threads (unsigned n_sites, unsigned n_threads, unsigned n_streams, unsigned n_shared, unsigned n_steps,
                     int64_t limit);
