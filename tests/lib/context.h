/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * CUDA contexts besides the primary one, as an application may have them: with one, one GPU is two devices.
 */
#pragma once

/**
 * test_cuda_context:
 * @ordinal: the GPU
 *
 * Returns: a CUcontext of that GPU that is not its primary one; the same one each time, never destroyed. Fails if there
 * is no driver or no such GPU.
 */
void *test_cuda_context (unsigned ordinal);
