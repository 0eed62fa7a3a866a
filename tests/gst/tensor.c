/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See tensor.h.
 */
#include "tensor.h"

#include "picture.h"

#include <math.h>

gsize
tensor_element_bytes (const Tensor *tensor)
{
  return g_str_equal (tensor->type, "uint8") ? 1 : g_str_equal (tensor->type, "float16") ? 2 : 4;
}

gsize
tensor_bytes (const Tensor *tensor)
{
  return tensor_element_bytes (tensor) * (gsize)(tensor->channels * tensor->width * tensor->height);
}

GstCaps *
tensor_caps (const Tensor *tensor, gboolean gpu)
{
  g_autofree char *text =
      tensor->planar
          ? g_strdup_printf ("other/tensors%s,format=static,num_tensors=1,types=%s,dimensions=(string)%d:%d:%d:1,"
                             "framerate=30/1",
                             gpu ? "(memory:GPUCache)" : "", tensor->type, tensor->width, tensor->height,
                             tensor->channels)
          : g_strdup_printf ("other/tensors%s,format=static,num_tensors=1,types=%s,dimensions=(string)%d:%d:%d:1,"
                             "framerate=30/1",
                             gpu ? "(memory:GPUCache)" : "", tensor->type, tensor->channels, tensor->width,
                             tensor->height);
  GstCaps *caps = gst_caps_from_string (text);

  /* What the dimensions do not tell. */
  if (tensor->planar && tensor->width <= 4)
    gst_caps_set_simple (caps, "layout", G_TYPE_STRING, "CHW", NULL);
  return caps;
}

gsize
tensor_index (const Tensor *tensor, int channel, int x, int y)
{
  return (gsize)(tensor->planar ? (channel * tensor->height + y) * tensor->width + x
                                : (y * tensor->width + x) * tensor->channels + channel);
}

double
half_to_double (guint16 bits)
{
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;

  if (exponent == 31)
    return fraction ? NAN : sign * INFINITY;
  return sign * (exponent ? ldexp (1024 + fraction, exponent - 25) : ldexp (fraction, -24));
}

double
half_unit (double value)
{
  int exponent;

  frexp (value, &exponent);
  return ldexp (1, MAX (exponent - 11, -24));
}

double
tensor_at (const Tensor *tensor, const guint8 *data, int channel, int x, int y)
{
  const gsize at = tensor_index (tensor, channel, x, y);
  guint16 half;
  float single;

  switch (tensor_element_bytes (tensor)) {
  case 1:
    return data[at];
  case 2:
    memcpy (&half, data + 2 * at, sizeof half);
    return half_to_double (half);
  default:
    memcpy (&single, data + 4 * at, sizeof single);
    return (double)single;
  }
}

GstBuffer *
tensor_new (const Tensor *tensor, guint32 seed)
{
  const gsize size = tensor_bytes (tensor);
  guint8 *data = g_malloc (size);
  guint32 state = seed * 2654435761u + 1;

  for (gsize i = 0; i < size / tensor_element_bytes (tensor); i++) {
    guint16 half;
    float single;

    state = state * 1664525u + 1013904223u;
    /* Sign, 11 bits of fraction; a half of 1/8 to 256. */
    half = (guint16)((state >> 31) << 15 | (12 + (state >> 20 & 10)) << 10 | (state >> 8 & 1023));
    single = (float)((state >> 8 & 0xffff) - 32768.0) / 129;
    if (tensor_element_bytes (tensor) == 1)
      data[i] = (guint8)(state >> 24);
    else if (tensor_element_bytes (tensor) == 2)
      memcpy (data + 2 * i, &half, sizeof half);
    else
      memcpy (data + 4 * i, &single, sizeof single);
  }
  return gst_buffer_new_wrapped (data, size);
}

guint8 *
tensor_read (const Tensor *tensor, GstBuffer *buffer)
{
  GstMapInfo map;
  guint8 *data;

  fail_unless (gst_buffer_map (buffer, &map, GST_MAP_READ));
  fail_unless_equals_uint64 (map.size, tensor_bytes (tensor));
  data = g_memdup2 (map.data, map.size);
  gst_buffer_unmap (buffer, &map);
  return data;
}

GstBuffer *
tensor_upload (const Tensor *tensor, GstBuffer *buffer)
{
  GstHarness *h = gst_harness_new ("gpuupload");
  GstBuffer *result;

  gst_harness_set_src_caps (h, tensor_caps (tensor, FALSE));
  result = push_and_pull (h, buffer);
  gst_harness_teardown (h);
  return result;
}
