/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * GstGpuFrameInfo: what caps say of their frames, which are pictures or tensors.
 */
#pragma once

#include <gpucache/gpucache.h>

#include <gst/gst.h>
#include <gst/video/video.h>

G_BEGIN_DECLS

/**
 * GST_GPU_TENSOR_NAME:
 *
 * The name of caps of tensors: NNStreamer's.
 *
 * Since: 0.1
 */
#define GST_GPU_TENSOR_NAME "other/tensors"

/**
 * GST_GPU_TENSOR_FIELDS:
 *
 * The fields of caps of tensors that the library can keep in device memory, less `dimensions`, for pad templates.
 *
 * Since: 0.1
 */
#define GST_GPU_TENSOR_FIELDS                                                                                          \
  "format = (string) static, num_tensors = (int) 1, types = (string) { uint8, float16, float32 }, "                    \
  "framerate = (fraction) [ 0, max ]"

/**
 * GstGpuFrameInfo:
 * @spec: format, size and, of tensors, channels; laid out as in system memory: a picture as #GstVideoInfo has it, a
 *   tensor without any padding
 * @video: of pictures; of unknown format for tensors
 *
 * What frames are: pictures (video/x-raw) or tensors (other/tensors).
 *
 * The caps of a tensor have NNStreamer's fields: `format=static`, `num_tensors=1`, `types` (uint8, float16 or float32),
 * `framerate`, and `dimensions`, the innermost first. An interleaved tensor (HWC) is `channels:width:height:1`, a
 * planar one (CHW) `width:height:channels:1`; ones at the end may be left out or added. A tensor has at most
 * %GPU_MAX_CHANNELS channels, so the dimensions tell which it is, unless both the first and the third could be
 * channels, as in pictures of four rows. Then it is HWC unless a field `layout=CHW` says otherwise. A fourth dimension
 * of more than 1 is a number of pictures, as gpunormalize makes of a batch: @spec is then that of one image with all
 * their rows, as gpu_batch_dense_image() describes, which can be copied and nothing else.
 *
 * Since: 0.1
 */
typedef struct {
  GpuImageSpec spec;
  GstVideoInfo video;
} GstGpuFrameInfo;

/** Sets what is there before caps: neither a picture nor a tensor. Since: 0.1 */
GPU_API void gst_gpu_frame_info_init (GstGpuFrameInfo *info);

/** Returns: whether it is a tensor. Since: 0.1 */
GPU_API gboolean gst_gpu_frame_info_is_tensor (const GstGpuFrameInfo *info);

/**
 * gst_gpu_frame_info_from_caps:
 * @info: (out): filled in
 * @caps: fixed
 * @error: (nullable): %GPU_ERROR_INVALID or %GPU_ERROR_UNSUPPORTED if the library has no such frames, with the field of
 *   @caps that is to blame
 *
 * Returns: %FALSE if @error is set
 *
 * Since: 0.1
 */
GPU_API gboolean gst_gpu_frame_info_from_caps (GstGpuFrameInfo *info, const GstCaps *caps, GError **error);

/**
 * gst_gpu_tensor_spec_from_structure:
 * @spec: (out): filled in
 * @structure: of caps of tensors; its types and dimensions are fixed
 * @error: (nullable): as gst_gpu_frame_info_from_caps()
 *
 * Returns: %FALSE if @error is set
 *
 * Since: 0.1
 */
GPU_API gboolean gst_gpu_tensor_spec_from_structure (GpuImageSpec *spec, const GstStructure *structure, GError **error);

/**
 * gst_gpu_tensor_spec_to_structure:
 * @spec: of a tensor
 * @structure: its format, num_tensors, types, dimensions and layout are set
 *
 * The dimensions become a list of the ways in which others may write them, with or without ones at the end; the first
 * one, which a choice comes to, has four. `layout` is set where they do not tell.
 *
 * Since: 0.1
 */
GPU_API void gst_gpu_tensor_spec_to_structure (const GpuImageSpec *spec, GstStructure *structure);

G_END_DECLS
