/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * For tests of elements: tensors with known elements, and what is in one, by channel and place.
 */
#pragma once

#include <gst/check/gstcheck.h>

G_BEGIN_DECLS

typedef struct {
  const char *type; /* uint8, float16 or float32 */
  gboolean planar;
  int channels, width, height;
} Tensor;

gsize tensor_element_bytes (const Tensor *tensor);
gsize tensor_bytes (const Tensor *tensor);

/** Returns: (transfer full): its caps, with memory:GPUCache if @gpu. */
GstCaps *tensor_caps (const Tensor *tensor, gboolean gpu);

/** An element as a number; @data is tensor_bytes() of memory. */
double tensor_at (const Tensor *tensor, const guint8 *data, int channel, int x, int y);

/** Where the element lies, in elements. */
gsize tensor_index (const Tensor *tensor, int channel, int x, int y);

/** Returns: (transfer full): a tensor of small numbers in system memory; halves and floats are not whole. */
GstBuffer *tensor_new (const Tensor *tensor, guint32 seed);

/** Returns: (transfer full): the bytes of a tensor in any memory, which must be as many as it has. */
guint8 *tensor_read (const Tensor *tensor, GstBuffer *buffer);

/** Pushes @buffer through `gpuupload`. Returns: (transfer full): the tensor in device memory. */
GstBuffer *tensor_upload (const Tensor *tensor, GstBuffer *buffer);

/** The number that the bits of a half stand for. */
double half_to_double (guint16 bits);

/** The distance from @value's half to the next one. */
double half_unit (double value);

G_END_DECLS
