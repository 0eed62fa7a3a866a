/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * The choice of a size; see the header.
 */
#include "gstgpusize.h"

#include <math.h>

#define PAR "pixel-aspect-ratio"

typedef struct {
  gint width, height;
  gint par_n, par_d;
} Size;

GstCaps *
gst_gpu_caps_of_any_size (GstCaps *caps)
{
  GstCaps *result = gst_caps_new_empty ();

  for (guint i = 0; i < gst_caps_get_size (caps); i++) {
    GstStructure *structure = gst_structure_copy (gst_caps_get_structure (caps, i));

    gst_structure_set (structure, "width", GST_TYPE_INT_RANGE, 1, G_MAXINT, "height", GST_TYPE_INT_RANGE, 1, G_MAXINT,
                       NULL);
    if (gst_structure_has_field (structure, PAR))
      gst_structure_set (structure, PAR, GST_TYPE_FRACTION_RANGE, 1, G_MAXINT, G_MAXINT, 1, NULL);
    result =
        gst_caps_merge_structure_full (result, structure, gst_caps_features_copy (gst_caps_get_features (caps, i)));
  }
  return result;
}

/* What @to allows that is nearest to @wanted. */
static gint
nearest_int (const GstStructure *to, const gchar *field, gint wanted)
{
  g_autoptr (GstStructure) copy = gst_structure_copy (to);
  gint value = wanted;

  gst_structure_fixate_field_nearest_int (copy, field, wanted);
  gst_structure_get_int (copy, field, &value);
  return value;
}

static void
nearest_par (const GstStructure *to, gint *n, gint *d)
{
  g_autoptr (GstStructure) copy = gst_structure_copy (to);

  gst_structure_fixate_field_nearest_fraction (copy, PAR, *n, *d);
  gst_structure_get_fraction (copy, PAR, n, d);
}

/* How far @size is from the display aspect ratio @dar, as a factor: 1 is none. */
static gdouble
distortion (const Size *size, gdouble dar)
{
  gdouble ratio = (gdouble)size->width * size->par_n / ((gdouble)size->height * size->par_d) / dar;

  return MAX (ratio, 1 / ratio);
}

/* value * factor as a possible size. */
static gint
scale (gint value, gdouble factor)
{
  return (gint)CLAMP (floor (value * factor + 0.5), 1, G_MAXINT);
}

void
gst_gpu_size_fixate (GstPadDirection direction, GstStructure *from, GstStructure *to)
{
  Size in = {.par_n = 1, .par_d = 1}, try[3];
  gdouble dar, best_distortion = G_MAXDOUBLE;
  const Size *best = NULL;
  gboolean had_par;
  gint n, d;

  if (!gst_structure_get_int (from, "width", &in.width) || !gst_structure_get_int (from, "height", &in.height))
    return;
  gst_structure_get_fraction (from, PAR, &in.par_n, &in.par_d);
  if (in.width <= 0 || in.height <= 0 || in.par_n <= 0 || in.par_d <= 0)
    return;
  if (!gst_structure_has_field (to, PAR) && direction == GST_PAD_SRC)
    gst_structure_set (to, PAR, GST_TYPE_FRACTION, 1, 1, NULL);
  had_par = gst_structure_has_field (to, PAR);
  if (!had_par)
    gst_structure_set (to, PAR, GST_TYPE_FRACTION_RANGE, 1, G_MAXINT, G_MAXINT, 1, NULL);
  dar = (gdouble)in.width * in.par_n / ((gdouble)in.height * in.par_d);

  /* Both sizes, and the pixel-aspect-ratio that makes up for what they lack. */
  try[0].width = nearest_int (to, "width", in.width);
  try[0].height = nearest_int (to, "height", in.height);
  if (!gst_util_fraction_multiply (in.width, try[0].width, try[0].height, in.height, &n, &d) ||
      !gst_util_fraction_multiply (n, d, in.par_n, in.par_d, &n, &d))
    gst_util_double_to_fraction (dar * try[0].height / try[0].width, &n, &d);
  nearest_par (to, &n, &d);
  try[0].par_n = n;
  try[0].par_d = d;

  /* With the pixel-aspect-ratio that this came to, one of the sizes and what the other should then be. */
  try[1] = try[2] = try[0];
  try[1].width = nearest_int (to, "width", scale (try[0].height, dar * d / n));
  try[2].height = nearest_int (to, "height", scale (try[0].width, n / (dar * d)));

  for (guint i = 0; i < G_N_ELEMENTS (try); i++) {
    /* Off by no more than rounding to whole pixels makes it. */
    gdouble rounding = 1 + 0.5 / MIN (try[i].width, try[i].height);
    gdouble off = distortion (&try[i], dar);

    if (off <= rounding)
      off = 1;
    if (off < best_distortion) {
      best_distortion = off;
      best = &try[i];
    }
  }
  if (best)
    gst_structure_set (to, "width", G_TYPE_INT, best->width, "height", G_TYPE_INT, best->height, PAR, GST_TYPE_FRACTION,
                       best->par_n, best->par_d, NULL);
  if (!had_par && best && best->par_n == best->par_d)
    gst_structure_remove_field (to, PAR);
}
