/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Colours in real arithmetic; see the header.
 */
#include "colors.h"

#include <gst/check/gstcheck.h>
#include <math.h>

/* P010's V begins at byte 1 for the video library of 1.22. */
static guint8 *
address (const GstVideoFrame *frame, guint c, int x, int y)
{
  const int offset = GST_VIDEO_FRAME_FORMAT (frame) == GST_VIDEO_FORMAT_P010_10LE
                         ? (c == 2 ? 2 : 0)
                         : GST_VIDEO_FRAME_COMP_POFFSET (frame, c);

  return (guint8 *)GST_VIDEO_FRAME_PLANE_DATA (frame, GST_VIDEO_FRAME_COMP_PLANE (frame, c)) + offset +
         y * GST_VIDEO_FRAME_COMP_STRIDE (frame, c) + x * GST_VIDEO_FRAME_COMP_PSTRIDE (frame, c);
}

/* A sample of a component, R, G, B, A or Y, U, V, as a number of its bits; of ARGB64 of 8 bits. */
int
color_get (const GstVideoFrame *frame, guint c, int x, int y)
{
  const guint8 *data = address (frame, c, x, y);

  if (GST_VIDEO_FRAME_COMP_DEPTH (frame, c) == 16)
    return (*(const guint16 *)(gconstpointer)data + 128) / 257;
  return GST_VIDEO_FRAME_COMP_DEPTH (frame, c) > 8 ? GST_READ_UINT16_LE (data) >> 6 : *data;
}

void
color_put (const GstVideoFrame *frame, guint c, int x, int y, int value)
{
  guint8 *data = address (frame, c, x, y);

  if (GST_VIDEO_FRAME_COMP_DEPTH (frame, c) == 16)
    *(guint16 *)(gpointer)data = (guint16)(value * 257);
  else if (GST_VIDEO_FRAME_COMP_DEPTH (frame, c) > 8)
    GST_WRITE_UINT16_LE (data, (guint16)(value << 6));
  else
    *data = (guint8)value;
}

/* From a sample's number to 0 .. 1, or -1/2 .. 1/2, and back. */
static double
real_of (const GstVideoInfo *info, guint c, double code)
{
  int offset[GST_VIDEO_MAX_COMPONENTS], scale[GST_VIDEO_MAX_COMPONENTS];

  gst_video_color_range_offsets (info->colorimetry.range, info->finfo, offset, scale);
  return (code - offset[c]) / scale[c];
}

static double
code_of (const GstVideoInfo *info, guint c, double real)
{
  int offset[GST_VIDEO_MAX_COMPONENTS], scale[GST_VIDEO_MAX_COMPONENTS];
  const double max = (1 << GST_VIDEO_INFO_COMP_DEPTH (info, c)) - 1;

  gst_video_color_range_offsets (info->colorimetry.range, info->finfo, offset, scale);
  return CLAMP (real * scale[c] + offset[c], 0, max);
}

/* The exact numbers of a colour in @out that has those of @code in @in. */
void
color_exact (const GstVideoInfo *in, const GstVideoInfo *out, const double code[3], double result[3])
{
  const gboolean in_rgb = GST_VIDEO_INFO_IS_RGB (in), out_rgb = GST_VIDEO_INFO_IS_RGB (out);
  /* A luma without chroma has the matrix of the other side. */
  const GstVideoColorMatrix in_matrix =
      GST_VIDEO_INFO_IS_GRAY (in) && !out_rgb ? out->colorimetry.matrix : in->colorimetry.matrix;
  const GstVideoColorMatrix out_matrix =
      GST_VIDEO_INFO_IS_GRAY (out) && !in_rgb ? in->colorimetry.matrix : out->colorimetry.matrix;
  double v[3] = {0}, kr, kb;

  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS (in) && c < 3; c++)
    v[c] = real_of (in, c, code[c]);
  if (!in_rgb) {
    const double y = v[0], cb = v[1], cr = v[2];

    fail_unless (gst_video_color_matrix_get_Kr_Kb (in_matrix, &kr, &kb));
    v[0] = y + 2 * (1 - kr) * cr;
    v[2] = y + 2 * (1 - kb) * cb;
    v[1] = (y - kr * v[0] - kb * v[2]) / (1 - kr - kb);
  }
  if (!out_rgb) {
    const double r = v[0], b = v[2];

    fail_unless (gst_video_color_matrix_get_Kr_Kb (out_matrix, &kr, &kb));
    v[0] = kr * r + (1 - kr - kb) * v[1] + kb * b;
    v[1] = (b - v[0]) / (2 * (1 - kb));
    v[2] = (r - v[0]) / (2 * (1 - kr));
  }
  for (guint c = 0; c < GST_VIDEO_INFO_N_COMPONENTS (out) && c < 3; c++)
    result[c] = code_of (out, c, v[c]);
}

/* Where a chroma sample lies among the pixels, in each direction. */
double
color_phase (GstVideoChromaSite site, gboolean down)
{
  return site == GST_VIDEO_CHROMA_SITE_COSITED || (site == GST_VIDEO_CHROMA_SITE_MPEG2 && !down) ? 0 : 0.5;
}

double
color_get_clamped (const GstVideoFrame *frame, guint c, int x, int y)
{
  return color_get (frame, c, CLAMP (x, 0, GST_VIDEO_FRAME_COMP_WIDTH (frame, c) - 1),
                    CLAMP (y, 0, GST_VIDEO_FRAME_COMP_HEIGHT (frame, c) - 1));
}

/* Between the nearest samples. */
double
color_chroma_at (const GstVideoFrame *frame, guint c, GstVideoChromaSite site, int x, int y)
{
  const double px = (x - color_phase (site, FALSE)) / 2, py = (y - color_phase (site, TRUE)) / 2;
  const int ix = (int)floor (px), iy = (int)floor (py);
  const double fx = px - ix, fy = py - iy;

  return (1 - fy) * ((1 - fx) * color_get_clamped (frame, c, ix, iy) + fx * color_get_clamped (frame, c, ix + 1, iy)) +
         fy * ((1 - fx) * color_get_clamped (frame, c, ix, iy + 1) + fx * color_get_clamped (frame, c, ix + 1, iy + 1));
}
