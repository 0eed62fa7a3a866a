# SPDX-License-Identifier: LGPL-2.1-or-later
"""Resizing against Pillow: every filter, 1 to 4 channels, random sizes and boxes, noise and photographs.

Usage: resize.py PROGRAM. No sample may be more than one level off; how many are off at all is printed. Nearest has no
levels: it may take another sample only where the position is on the line between two, to within what Pillow's running
sum of positions loses."""

import sys

from compare import Image, Program, numpy, photographs

FILTERS = {
    "nearest": (0, Image.Resampling.NEAREST),
    "bilinear": (1, Image.Resampling.BILINEAR),
    "box": (2, Image.Resampling.BOX),
    "hamming": (3, Image.Resampling.HAMMING),
    "bicubic": (4, Image.Resampling.BICUBIC),
    "lanczos": (5, Image.Resampling.LANCZOS),
}
# Ours, Pillow's, channels. Pillow's RGBX has a fourth channel that weights nothing, as our RGBx.
MODES = [("GRAY8", "L", 1), ("RGB", "RGB", 3), ("RGBA", "RGBA", 4), ("RGBx", "RGBX", 4)]
ROUNDS = 10


class Count:
    def __init__(self):
        self.samples = self.off = self.worst = 0

    def add(self, got, expected):
        difference = numpy.abs(got.astype(int) - expected.astype(int))
        self.samples += difference.size
        self.off += numpy.count_nonzero(difference)
        self.worst = max(self.worst, int(difference.max()))


def is_line(box_start, box_size, size):
    """Which positions lie on the line between two samples."""
    position = box_start + (numpy.arange(size) + 0.5) * (box_size / size)
    return numpy.abs(position - numpy.round(position)) < 1e-6


def compare(program, filter_name, mode, image, size, box, counts):
    ours, pillows, channels = mode
    number, resampling = FILTERS[filter_name]
    picture = numpy.asarray(image)
    job = ["resize", ours, *image.size, *size, number, 1, box[0], box[1], box[2] - box[0], box[3] - box[1]]
    got = numpy.frombuffer(program.apply(job, picture, size[0] * size[1] * channels), numpy.uint8)
    got = got.reshape(size[1], size[0], channels)
    expected = numpy.asarray(image.resize(size, resampling, box)).reshape(got.shape)
    if filter_name == "nearest":
        across = is_line(box[0], box[2] - box[0], size[0])
        down = is_line(box[1], box[3] - box[1], size[1])
        apart = got != expected
        allowed = across[None, :, None] | down[:, None, None]
        counts.samples += apart.size
        counts.off += numpy.count_nonzero(apart)
        counts.worst = max(counts.worst, 255 * int((apart & ~allowed).any()))
        return
    counts.add(got, expected)


def random_box(random, size, whole):
    """Half of them all of the picture, the others a part, not of whole pixels unless @whole."""
    if random.integers(2):
        return (0, 0, *size)
    edges = [numpy.sort(random.uniform(0, side, 2)) for side in size]
    if whole:
        edges = [(numpy.floor(low), numpy.ceil(high)) for low, high in edges]
    # Pillow's boxes are of single floats, which 64ths are, too; no part is narrower than half a pixel.
    box = [float(numpy.round(value * 64) / 64) for value in (edges[0][0], edges[1][0], edges[0][1], edges[1][1])]
    if box[2] - box[0] < 0.5 or box[3] - box[1] < 0.5:
        return (0, 0, *size)
    return tuple(box)


def noise(random, mode, size):
    shape = (size[1], size[0]) if mode[2] == 1 else (size[1], size[0], mode[2])
    picture = random.integers(0, 256, shape, numpy.uint8)
    if mode[0] == "RGBA":
        # A quarter fully transparent, a quarter opaque.
        alpha = picture[..., 3]
        alpha[alpha < 64] = 0
        alpha[alpha >= 192] = 255
    return Image.frombytes(mode[1], size, picture.tobytes())


def main():
    random = numpy.random.default_rng(20)
    program = Program(sys.argv[1])
    pictures = list(photographs((320, 240)))
    failed = False

    for name in FILTERS:
        for source in "noise", "photographs":
            counts = Count()
            for mode in MODES:
                for turn in range(ROUNDS if source == "noise" else len(pictures)):
                    if source == "noise":
                        size = tuple(int(side) for side in random.integers(1, 200, 2))
                        image = noise(random, mode, size)
                    else:
                        image = pictures[turn][1].convert("RGBA" if mode[2] == 4 else mode[1])
                        if mode[1] == "RGBA":
                            image.putalpha(pictures[turn - 1][1].convert("L"))
                        elif mode[1] == "RGBX":
                            image = Image.frombytes("RGBX", image.size, image.tobytes())
                    target = tuple(int(side) for side in random.integers(1, 300, 2))
                    compare(program, name, mode, image, target, random_box(random, image.size, name == "nearest"), counts)
            if not counts.samples:
                print(f"{name}, {source}: none there")
                continue
            print(f"{name}, {source}: {counts.off} of {counts.samples} samples off "
                  f"({100 * counts.off / counts.samples:.4f}%), worst {counts.worst}")
            failed |= counts.worst > 1
    program.close()
    return failed


if __name__ == "__main__":
    sys.exit(main())
