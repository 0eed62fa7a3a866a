/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Weights of resize filters, as Pillow defines them: a filter's function is sampled at the distances of the source's
 * samples from the middle of the destination's, made wider by the factor that the picture shrinks by, and the weights
 * of each sample add up to 1.
 */
#include "resize-priv.h"

#include <math.h>

typedef struct {
  double (*func) (double x);
  double support; /* it is 0 beyond this distance */
} Filter;

static double
box (double x)
{
  return x > -0.5 && x <= 0.5 ? 1 : 0;
}

static double
triangle (double x)
{
  return fmax (1 - fabs (x), 0);
}

static double
sinc (double x)
{
  return x == 0 ? 1 : sin (x * M_PI) / (x * M_PI);
}

static double
hamming (double x)
{
  x = fabs (x);
  return x < 1 ? sinc (x) * (0.54 + 0.46 * cos (x * M_PI)) : 0;
}

/* Keys' cubic with a = -1/2. */
static double
cubic (double x)
{
  x = fabs (x);
  if (x < 1)
    return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((2.5 - 0.5 * x) * x - 4) * x + 2 : 0;
}

static double
lanczos (double x)
{
  return x >= -3 && x < 3 ? sinc (x) * sinc (x / 3) : 0;
}

/* Nearest has a table, too, for chroma whose part does not begin at a whole sample. */
static const Filter filters[GPU_N_RESIZE_FILTERS] = {
    [GPU_RESIZE_BILINEAR] = {triangle, 1}, [GPU_RESIZE_BOX] = {box, 0.5},       [GPU_RESIZE_HAMMING] = {hamming, 1},
    [GPU_RESIZE_BICUBIC] = {cubic, 2},     [GPU_RESIZE_LANCZOS] = {lanczos, 3},
};

/* By how much the filter is made wider. */
static double
widening (const GpuFilterAxis *axis, bool antialias)
{
  return antialias ? fmax ((axis->to - axis->from) / axis->out, 1) : 1;
}

uint32_t
gpu_filter_taps (const GpuFilterAxis *axis, GpuResizeFilter filter, bool antialias)
{
  /* With a support of 0, this is one. */
  const double taps = ceil (filters[filter].support * widening (axis, antialias)) * 2 + 1;

  return (uint32_t)fmin (taps, axis->in);
}

void
gpu_filter_make_table (const GpuFilterAxis *axis, GpuResizeFilter filter, bool antialias, uint32_t taps, int bits,
                       int32_t *table, uint32_t *first, uint32_t *end)
{
  const double scale = (axis->to - axis->from) / axis->out, width = widening (axis, antialias);
  const double support = filters[filter].support * width;
  g_autofree double *weights = g_new (double, taps);

  *first = axis->in;
  *end = 0;
  for (uint32_t i = 0; i < axis->out; i++, table += taps + 2) {
    const double centre = axis->from + (i + 0.5) * scale;
    const double from = filter == GPU_RESIZE_NEAREST ? centre : centre - support + 0.5;
    /* A filter without antialias can be narrower than the distance between samples: one is always looked at. */
    const uint32_t low = MIN ((uint32_t)fmax (from, axis->first), axis->end - 1);
    const uint32_t high = MAX ((uint32_t)fmin (centre + support + 0.5, axis->end), low + 1);
    const uint32_t n = MIN (high - low, taps);
    double sum = 0;

    for (uint32_t k = 0; k < n; k++) {
      weights[k] = filter == GPU_RESIZE_NEAREST ? 1 : filters[filter].func ((k + low - centre + 0.5) * (1 / width));
      sum += weights[k];
    }
    table[0] = (int32_t)low;
    table[1] = (int32_t)n;
    for (uint32_t k = 0; k < taps; k++) {
      const double weight = k >= n ? 0 : sum != 0 ? weights[k] / sum : weights[k];

      table[2 + k] = (int32_t)(weight * (1 << bits) + (weight < 0 ? -0.5 : 0.5));
    }
    *first = MIN (*first, low);
    *end = MAX (*end, low + n);
  }
}
