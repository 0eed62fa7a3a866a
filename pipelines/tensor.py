# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes a tensor of a video's first frame and checks it; pipelines/tensor FILE TENSOR.npy starts it."""

import sys

import gi
import numpy
from PIL import Image

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

SIZE = 640
MEAN = numpy.array([0.485, 0.456, 0.406])
STDDEV = numpy.array([0.229, 0.224, 0.225])
BORDER = 0x72  # a grey, of R, G and B

# The frame goes to the device once; behind the tee one branch makes the tensor, the other keeps the picture. Square
# pixels and a fixed size leave gpuresize no other way to keep the picture's shape than borders.
LINE = f"""
filesrc name=file ! decodebin ! videoconvert ! video/x-raw,format=RGB ! gpuupload ! gpuflip video-direction=auto !
tee name=frame
frame. ! queue ! gpuresize border-color={0xff000000 | BORDER * 0x010101} !
  video/x-raw(memory:GPUCache),width={SIZE},height={SIZE},pixel-aspect-ratio=1/1 !
  gpunormalize @preset=imagenet layout=chw ! other/tensors(memory:GPUCache),types=float32 !
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


def read(sample):
    """A copy of a sample's bytes."""
    ok, info = sample.get_buffer().map(Gst.MapFlags.READ)
    if not ok:
        sys.exit("tensor: a frame cannot be mapped")
    try:
        return bytes(info.data)
    finally:
        sample.get_buffer().unmap(info)


def play(file):
    """Returns the samples with the tensor and with the frame that it was made of."""
    pipeline = Gst.parse_launch(LINE)
    pipeline.get_by_name("file").set_property("location", file)
    pipeline.set_state(Gst.State.PLAYING)
    try:
        return pull(pipeline, "tensor"), pull(pipeline, "picture")
    finally:
        pipeline.set_state(Gst.State.NULL)


def make_tensor(file, out):
    """Writes the tensor to the file @out; returns the frame, upright, as a picture of Pillow's."""
    tensor, frame = play(file)
    print(tensor.get_caps().to_string())
    # Innermost first; the other way round in NumPy.
    dimensions = tensor.get_caps().get_structure(0).get_string("dimensions").split(":")
    numpy.save(out, numpy.frombuffer(read(tensor), numpy.float32).reshape([int(n) for n in dimensions[2::-1]]))
    caps, data = frame.get_caps().get_structure(0), read(frame)
    width, height = caps.get_int("width").value, caps.get_int("height").value
    # Rows are as long as GStreamer makes them.
    return Image.frombuffer("RGB", (width, height), data, "raw", "RGB", len(data) // height, 1)


def letterbox(frame):
    """What Pillow makes of the frame: as large as fits, in the middle, on the border's colour. As an array."""
    factor = SIZE / max(frame.size)
    width, height = (max(int(side * factor + 0.5), 1) for side in frame.size)
    canvas = Image.new("RGB", (SIZE, SIZE), (BORDER,) * 3)
    canvas.paste(frame.resize((width, height), Image.Resampling.BILINEAR), ((SIZE - width) // 2, (SIZE - height) // 2))
    return numpy.asarray(canvas)


def main(file, out):
    Gst.init(None)
    frame = make_tensor(file, out)
    tensor = numpy.load(out)
    print(f"{out}: shape {tensor.shape}, {tensor.dtype}")
    for channel, name in enumerate(("R", "G", "B")):
        print(f"  {name}: mean {tensor[channel].mean(dtype=float):8.5f}, "
              f"standard deviation {tensor[channel].std(dtype=float):.5f}")
    if tensor.shape != (3, SIZE, SIZE) or tensor.dtype != numpy.float32:
        sys.exit(f"tensor: it should have the shape (3, {SIZE}, {SIZE}) and hold float32")

    # The levels that the tensor was made of, from 0 to 255: whole numbers, which Pillow's scaling may miss by one.
    levels = numpy.rint((tensor.transpose(1, 2, 0) * STDDEV + MEAN) * 255)
    exact = ((levels / 255 - MEAN) / STDDEV).transpose(2, 0, 1)
    error = (numpy.abs(tensor - exact) / numpy.abs(exact)).max()
    off = numpy.abs(levels - letterbox(frame))
    result = (f"Pillow and NumPy make {'the same' if error < 1e-6 and off.max() <= 1 else 'something else'} of the frame: "
              f"{100 * numpy.count_nonzero(off) / off.size:.4f}% of the samples differ, by {off.max():.0f} of 255 levels "
              f"at most; the worst error of normalisation is {error:.1e} of the value")
    print(result)
    return bool(error >= 1e-6 or off.max() > 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
