/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Streams and events of the emulated driver: a stream is a worker thread with a queue, so that work is pending until it
 * is done, and behind a gate until that opens.
 */
#pragma once

#include <cuda.h>
#include <stddef.h>

CUresult stream_new (CUstream *stream, int gpu);

/** Its worker ends after the last work. */
void stream_end (CUstream stream);

/** Returns: the stream, or, if that is NULL, the GPU's NULL stream. */
CUstream stream_or_null (CUstream stream, int gpu);
int stream_gpu (CUstream stream);

/** Queues @func, with a copy of the @size bytes at @data. */
CUresult stream_submit (CUstream stream, void (*func) (void *data), const void *data, size_t size);

/** Waits until all that was submitted before the call is done; to all streams of @gpu. */
void stream_synchronize (CUstream stream);
void stream_synchronize_all (int gpu);

CUresult event_new (CUevent *event, int gpu);
void event_end (CUevent event);
int event_gpu (CUevent event);
CUresult event_record (CUevent event, CUstream stream);

/** Returns: CUDA_ERROR_NOT_READY until what the last record came after is done. */
CUresult event_query (CUevent event);

/** Work of @stream after this waits for what the last record of @event comes after. */
CUresult event_wait (CUevent event, CUstream stream);
