# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes a tensor of a video's first frame and checks it; pipelines/tensor FILE TENSOR.npy starts it."""

import sys

import gi
import numpy

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

SIZE = 640
MEAN = numpy.array([0.485, 0.456, 0.406])
STDDEV = numpy.array([0.229, 0.224, 0.225])

# The frame goes to the device once; behind the tee one branch makes the tensor, the other keeps the picture.
LINE = f"""
filesrc name=file ! decodebin ! videoconvert ! video/x-raw,format=RGB ! gpuupload ! gpuflip video-direction=auto !
gpuresize ! video/x-raw(memory:GPUCache),width={SIZE},height={SIZE} ! tee name=frame
frame. ! queue ! gpunormalize @preset=imagenet layout=chw ! other/tensors(memory:GPUCache),types=float32 !
  gpudownload ! appsink name=tensor sync=false max-buffers=1
frame. ! queue ! gpudownload ! appsink name=picture sync=false max-buffers=1
"""


def pull(pipeline, sink, wait=Gst.SECOND // 5):
    """The first sample of a sink; ends the program if there is none."""
    bus, sample = pipeline.get_bus(), None
    while sample is None:
        sample = pipeline.get_by_name(sink).emit("try-pull-sample", wait)
        message = bus.pop_filtered(Gst.MessageType.ERROR)
        if message:
            sys.exit(f"tensor: {message.parse_error()[0].message}")
        if sample is None and pipeline.get_by_name(sink).get_property("eos"):
            sys.exit("tensor: there is no frame in the video")
    return sample


def read(sample, dtype, shape):
    """A copy of a sample's bytes as an array."""
    ok, info = sample.get_buffer().map(Gst.MapFlags.READ)
    if not ok:
        sys.exit("tensor: a frame cannot be mapped")
    try:
        return numpy.frombuffer(info.data, dtype)[: numpy.prod(shape)].reshape(shape).copy()
    finally:
        sample.get_buffer().unmap(info)


def play(file):
    """Returns the samples with the tensor and with the picture that it was made of."""
    pipeline = Gst.parse_launch(LINE)
    pipeline.get_by_name("file").set_property("location", file)
    pipeline.set_state(Gst.State.PLAYING)
    try:
        return pull(pipeline, "tensor"), pull(pipeline, "picture")
    finally:
        pipeline.set_state(Gst.State.NULL)


def make_tensor(file, out):
    """Writes the tensor to the file @out; returns the picture, height x width x channels."""
    tensor, picture = play(file)
    print(tensor.get_caps().to_string())
    # Innermost first; the other way round in NumPy.
    dimensions = tensor.get_caps().get_structure(0).get_string("dimensions").split(":")
    numpy.save(out, read(tensor, numpy.float32, [int(n) for n in dimensions[2::-1]]))
    return read(picture, numpy.uint8, (SIZE, SIZE, 3))


def main(file, out):
    Gst.init(None)
    pixels = make_tensor(file, out)
    tensor = numpy.load(out)
    print(f"{out}: shape {tensor.shape}, {tensor.dtype}")
    for channel, name in enumerate(("R", "G", "B")):
        print(f"  {name}: mean {tensor[channel].mean(dtype=float):8.5f}, "
              f"standard deviation {tensor[channel].std(dtype=float):.5f}")

    expected = ((pixels / 255 - MEAN) / STDDEV).transpose(2, 0, 1)
    if tensor.shape != (3, SIZE, SIZE) or tensor.dtype != numpy.float32:
        sys.exit(f"tensor: it should have the shape (3, {SIZE}, {SIZE}) and hold float32")
    worst = (numpy.abs(tensor - expected) / numpy.abs(expected)).max()
    print(f"NumPy makes the same of the frame; the worst difference is {worst:.1e} of the value"
          if worst < 1e-6 else f"NumPy makes something else of the frame: the worst difference is {worst:.1e} of the value")
    return bool(worst >= 1e-6)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
