/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Why caps were refused, as a line in the log that names the fields.
 */
#pragma once

#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

/**
 * gst_gpu_refusal_log:
 * @level: of the line
 * @direction: the pad that @caps came to
 * @caps: (nullable): what could not be negotiated
 *
 * Compares @caps with the pad's template, then what the element makes of them with the other pad's template and with
 * what its peer takes, and says which fields do not fit. Nothing is said, and nobody asked, if the line would not be
 * seen, or if it is a warning and the one before was of the same caps.
 */
void gst_gpu_refusal_log (GstBaseTransform *trans, GstDebugLevel level, GstPadDirection direction, GstCaps *caps);

/** What comes is said again: other caps were taken. */
void gst_gpu_refusal_forget (GstBaseTransform *trans);

/** The line, where a caps query is answered that nothing of what it asked for will do: what has a choice of caps, as
 * sources and decoders have, asks first and then sends none. */
void gst_gpu_refusal_log_answer (GstBaseTransform *trans, GstPadDirection direction, GstQuery *query);

/** GstBaseTransformClass.accept_caps: the base class's, with that line at level DEBUG. */
gboolean gst_gpu_refusal_accept_caps (GstBaseTransform *trans, GstPadDirection direction, GstCaps *caps);

G_END_DECLS
