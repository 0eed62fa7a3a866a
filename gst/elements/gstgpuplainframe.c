/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See the header. What is known of a memory hangs on it, and goes with it: a GstMiniObject's data are freed before it
 * is. Nothing can be on its way then, since copies hold their buffers.
 */
#include "gstgpuplainframe.h"

/* Pinning a frame takes as long as four or five copies of it, and a staged copy of a small one not much longer than a
 * straight one. */
#define USES_BEFORE 3
#define LEAST_BYTES ((gsize)256 << 10)

/* Frames that each come a few times and go, as those that videorate doubles or that several elements upload, would each
 * be pinned, and the device might be waited for each time. When that has happened often, memory has to come more often
 * before it is pinned; until some that did has paid. */
#define USES_THAT_PAY 8
#define MANY_IN_VAIN 16
#define USES_BEFORE_THEN 48

typedef struct {
  guint64 uses;     /* without a pin */
  guint64 next_try; /* by uses; each that is refused doubles it, since a limit may be raised */
  guint64 straight; /* uses of pins */
  GpuPin *pin;      /* NULL while there is none */
} Known;

/* For what is known of all memories. Not held while one is pinned. */
static GMutex lock;
static guint n_in_vain; /* memories that went before their pins had paid, since the last that did not */

static void
known_free (gpointer data)
{
  Known *known = data;

  if (known->pin) {
    g_mutex_lock (&lock);
    n_in_vain = known->straight < USES_THAT_PAY ? MIN (n_in_vain + 1, MANY_IN_VAIN) : 0;
    g_mutex_unlock (&lock);
  }
  gpu_pin_unref (known->pin);
  g_free (known);
}

/* With the lock held. */
static Known *
get_known (GstMemory *memory)
{
  static gsize quark = 0;
  Known *known;

  if (g_once_init_enter (&quark))
    g_once_init_leave (&quark, g_quark_from_static_string ("GstGpuPlainFrame"));
  known = gst_mini_object_get_qdata (GST_MINI_OBJECT_CAST (memory), (GQuark)quark);
  if (known)
    return known;
  known = g_new0 (Known, 1);
  known->next_try = n_in_vain < MANY_IN_VAIN ? USES_BEFORE : USES_BEFORE_THEN;
  gst_mini_object_set_qdata (GST_MINI_OBJECT_CAST (memory), (GQuark)quark, known, known_free);
  return known;
}

/* All of it, whatever part the buffer shows. */
static GpuPin *
pin (GstMemory *memory, GpuDevice *device)
{
  GpuPin *result;
  GstMapInfo map;

  if (!gst_memory_map (memory, &map, GST_MAP_READ))
    return NULL;
  result = gpu_pin_new (device, map.data - memory->offset, memory->maxsize, NULL);
  gst_memory_unmap (memory, &map);
  return result;
}

/* With the lock held. Returns: (transfer full) (nullable): the memory's pin, if it is @device's. */
static GpuPin *
ref_known (Known *known, GpuDevice *device)
{
  return known->pin && gpu_pin_is_for (known->pin, device) ? gpu_pin_ref (known->pin) : NULL;
}

/* Counts one use more, with the lock held. Returns: whether the memory is to be pinned now. */
static gboolean
is_due (Known *known)
{
  /* Another device has it. That may go while this one copies, so it is of no use here, nor can the memory be pinned
   * once more, until it has gone. */
  if (known->pin && gpu_pin_is_of_use (known->pin))
    return FALSE;
  if (++known->uses < known->next_try && !known->pin)
    return FALSE;
  g_clear_pointer (&known->pin, gpu_pin_unref);
  known->next_try = 2 * known->uses;
  return TRUE;
}

static GpuPin *
ref_pin_for (GstMemory *memory, GpuDevice *device)
{
  g_autoptr (GpuPin) fresh = NULL;
  GpuPin *result;
  Known *known;
  gboolean due;

  g_mutex_lock (&lock);
  known = get_known (memory);
  result = ref_known (known, device);
  known->straight += result != NULL;
  due = !result && is_due (known);
  g_mutex_unlock (&lock);
  if (!due)
    return result;

  fresh = pin (memory, device);
  g_mutex_lock (&lock);
  if (!known->pin)
    known->pin = g_steal_pointer (&fresh);
  result = ref_known (known, device);
  g_mutex_unlock (&lock);
  return result;
}

/* Returns: (transfer full) (nullable): what of @buffer's memory is pinned for @device. */
static GpuPin *
ref_pin (GstBuffer *buffer, GpuDevice *device)
{
  GstMemory *memory;

  if (gpu_device_is_host (device) || gst_buffer_n_memory (buffer) != 1)
    return NULL;
  memory = gst_buffer_peek_memory (buffer, 0);
  if (memory->parent || memory->maxsize < LEAST_BYTES || !gst_memory_is_type (memory, GST_ALLOCATOR_SYSMEM))
    return NULL;
  return ref_pin_for (memory, device);
}

/* A frame that is being copied. */
typedef struct {
  GstGpuHostFrame frame;
  GstBuffer *buffer;
  GpuPin *pin; /* goes first: the last reference to the memory's own goes with that */
} Copied;

static Copied *
copied_new (GpuStream *stream, GstBuffer *buffer, const GstGpuFrameInfo *info, GstMapFlags flags, GError **error)
{
  Copied *self = g_new (Copied, 1);

  self->pin = ref_pin (buffer, gpu_stream_device (stream));
  if (gst_gpu_frame_map_host (&self->frame, info, buffer, flags, error)) {
    self->buffer = gst_buffer_ref (buffer);
    return self;
  }
  gpu_pin_unref (self->pin);
  g_free (self);
  return NULL;
}

static void
copied_free (void *data)
{
  Copied *self = data;

  gpu_pin_unref (self->pin);
  gst_gpu_frame_unmap_host (&self->frame);
  gst_buffer_unref (self->buffer);
  g_free (self);
}

gboolean
gst_gpu_plain_frame_upload (GpuStream *stream, GstBuffer *buffer, const GstGpuFrameInfo *info, GpuImage *dst,
                            GError **error)
{
  Copied *copied = copied_new (stream, buffer, info, GST_MAP_READ, error);
  gboolean result;

  if (!copied)
    return FALSE;
  if (copied->pin)
    return gpu_image_upload_pinned (stream, dst, copied->frame.data, &copied->frame.spec, copied->pin, copied_free,
                                    copied, error);
  result = gpu_image_upload (stream, dst, copied->frame.data, &copied->frame.spec, error);
  copied_free (copied);
  return result;
}

gboolean
gst_gpu_plain_frame_download (GpuStream *stream, GpuImage *src, GstBuffer *buffer, const GstGpuFrameInfo *info,
                              GError **error)
{
  Copied *copied = copied_new (stream, buffer, info, GST_MAP_WRITE, error);
  gboolean result;

  if (!copied)
    return FALSE;
  if (copied->pin)
    return gpu_image_download_pinned (stream, src, copied->frame.data, &copied->frame.spec, copied->pin, copied_free,
                                      copied, error);
  result = gpu_image_download (stream, src, copied->frame.data, &copied->frame.spec, error);
  copied_free (copied);
  return result;
}
