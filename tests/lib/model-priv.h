/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * What the two halves of the reference model share.
 */
#pragma once

#include "model.h"

/** Says why an answer is not allowed. Returns: false. */
bool model_wrong (Model *model, const char *format, ...) G_GNUC_PRINTF (2, 3);

/** Whether all accesses are complete and the cache can know, or may be complete. */
bool model_surely_idle (const Model *model, const ModelEntry *entry);
bool model_maybe_idle (const Model *model, const ModelEntry *entry);
/** Whether @stream's next command comes after all accesses, and the cache must know, or may. */
bool model_surely_ordered (const Model *model, const ModelEntry *entry, unsigned stream);
bool model_maybe_ordered (const Model *model, const ModelEntry *entry, unsigned stream);

/** Something is submitted to @stream. */
void model_command (Model *model, unsigned stream);
/** @stream's next command comes after @access. */
void model_wait_for (Model *model, unsigned stream, const ModelAccess *access);
/** An access at @stream's present point. */
ModelAccess model_present (const Model *model, unsigned stream);

ModelEntry *model_entry (const Model *model, unsigned i);
void model_forget (Model *model, ModelEntry *entry);
GpuAccount model_account (GpuMemoryKind kind);
/** In the cache, as far as the model knows, and in nobody's hands. */
bool model_is_kept (const ModelEntry *entry, GpuAccount account);
