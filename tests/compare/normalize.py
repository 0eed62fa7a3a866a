# SPDX-License-Identifier: LGPL-2.1-or-later
"""Normalisation to tensors, and conversion of their elements, against NumPy in double precision.

Usage: normalize.py PROGRAM. A float32 may be 1e-6 of its size off, a float16 half a unit in its last place."""

import sys

from compare import Program, numpy

# Name, bytes a pixel, the bytes of R, G, B, A; planes of one byte are told by their order.
PACKED = [("GRAY8", 1, [0]), ("RGB", 3, [0, 1, 2]), ("BGR", 3, [2, 1, 0]), ("RGBA", 4, [0, 1, 2, 3]),
          ("BGRA", 4, [2, 1, 0, 3]), ("ARGB", 4, [1, 2, 3, 0]), ("ABGR", 4, [3, 2, 1, 0]), ("RGBx", 4, [0, 1, 2]),
          ("BGRx", 4, [2, 1, 0]), ("xRGB", 4, [1, 2, 3]), ("xBGR", 4, [3, 2, 1])]
PLANAR = [("RGBP", 3, [0, 1, 2]), ("GBR", 3, [2, 0, 1])]
ELEMENTS = [numpy.uint8, numpy.float16, numpy.float32]
SETTINGS = [
    # is-stddev, epsilon, global scale, shift, base, scale
    (1, 0, 1 / 255, 0, (123.675, 116.28, 103.53, 0), (58.395 / 255, 57.12 / 255, 57.375 / 255, 1)),
    (0, 0, 1, 0, (0, 0, 0, 0), (1 / 255,) * 4),
    (0, 0, 1, -1, (0, 0, 0, 0), (2 / 255,) * 4),
    (1, 0.01, 0.5, 3.25, (128, 127, 1, 255), (0, 1, 2, 3)),
    (0, 0, 1, 0, (100, 0, 0, 0), (1e-7, 1e-9, 3e4, 1e30)),
]


class Worst:
    def __init__(self):
        self.float32 = self.float16 = self.uint8 = 0.0
        self.count = 0

    def add(self, got, exact):
        self.count += got.size
        if got.dtype == numpy.uint8:
            error = numpy.abs(got - numpy.clip(exact, 0, 255)).max()
            self.uint8 = max(self.uint8, error)
        elif got.dtype == numpy.float32:
            size = numpy.maximum(numpy.abs(exact), numpy.finfo(numpy.float32).tiny)
            with numpy.errstate(invalid="ignore"):
                error = numpy.abs(got.astype(float) - exact) / size
            beyond = numpy.abs(exact) > numpy.finfo(numpy.float32).max
            error[beyond] = numpy.where(numpy.isinf(got[beyond]), 0, 1)
            self.float32 = max(self.float32, error.max())
        else:
            with numpy.errstate(over="ignore", invalid="ignore"):
                nearest = exact.astype(numpy.float16)
                unit = numpy.spacing(numpy.abs(nearest)).astype(float)
                error = numpy.abs(got.astype(float) - exact) / unit
            finite = numpy.isfinite(nearest)
            error[~finite] = numpy.where(got[~finite] == nearest[~finite], 0, 1)
            # What lies between two powers of two has the unit of the lower one on the lower side.
            error[got == nearest] = numpy.minimum(error[got == nearest], 0.5)
            self.float16 = max(self.float16, error.max())


def normalize(program, random, worst):
    formats = [(entry, False) for entry in PACKED] + [(entry, True) for entry in PLANAR]
    for (name, group, channels), planar in formats:
        for number, dtype in enumerate(ELEMENTS):
            for layout in 0, 1:
                for order in 0, 1:
                    setting = SETTINGS[random.integers(len(SETTINGS))]
                    width, height = (int(side) for side in random.integers(1, 70, 2))
                    picture = random.integers(0, 256, (height, width, group), numpy.uint8)
                    stddev, epsilon, global_scale, shift, base, scale = setting
                    # Without the alpha channel, sometimes.
                    used = channels[:3] if len(channels) == 4 and random.integers(2) else channels
                    job = ["normalize", name, width, height, number, layout, len(used), order, stddev, repr(epsilon),
                           repr(global_scale), shift, *map(repr, base), *map(repr, scale)]
                    exact = numpy.empty((height, width, len(used)))
                    for c, byte in enumerate(used):
                        factor = scale[c]
                        if stddev:
                            factor = 1 / numpy.sqrt(factor * factor + epsilon)
                        factor *= global_scale
                        exact[..., c] = (picture[..., byte].astype(float) - base[c]) * factor + shift
                    if order:
                        exact = exact[..., numpy.argsort(used)]
                    data = picture.transpose(2, 0, 1).copy() if planar else picture
                    got = program.apply(job, data, exact.size * dtype().itemsize)
                    got = numpy.frombuffer(got, dtype)
                    got = got.reshape(len(used), height, width).transpose(1, 2, 0) if layout else got.reshape(exact.shape)
                    worst.add(got, exact)


def elements(program, random, worst):
    """Every half, and noise, from each type to each; scaled in steps of single precision, which is what is asked for."""
    for number, source in enumerate(ELEMENTS):
        for other, target in enumerate(ELEMENTS):
            for scale, offset in (1, 0), (1 / 255, -0.5), (-3, 100):
                if source == numpy.uint8:
                    values = random.integers(0, 256, 65536, numpy.uint8)
                elif source == numpy.float16:
                    values = numpy.arange(65536, dtype=numpy.uint16).view(numpy.float16)
                    values = numpy.where(numpy.isnan(values), numpy.float16(1), values)
                else:
                    values = (random.standard_normal(65536) * 10.0 ** random.uniform(-9, 9, 65536)).astype(source)
                job = ["elements", 1, 256, 256, number, other, repr(scale), offset]
                got = numpy.frombuffer(program.apply(job, values, 65536 * target().itemsize), target)
                with numpy.errstate(over="ignore", invalid="ignore"):
                    steps = values.astype(numpy.float32) * numpy.float32(scale) + numpy.float32(offset)
                    if target == numpy.uint8:
                        expected = numpy.clip(numpy.rint(numpy.nan_to_num(steps)), 0, 255).astype(target)
                    else:
                        expected = steps.astype(target)
                worst.count += got.size
                if not numpy.array_equal(got, expected, equal_nan=target != numpy.uint8):
                    wrong = numpy.flatnonzero(got != expected)[0]
                    sys.exit(f"{source.__name__} {values[wrong]!r} * {scale} + {offset} became {target.__name__} "
                             f"{got[wrong]!r}, not {expected[wrong]!r}")


def main():
    random = numpy.random.default_rng(4)
    program = Program(sys.argv[1])
    worst = Worst()

    normalize(program, random, worst)
    elements(program, random, worst)
    program.close()
    print(f"{worst.count} elements; worst errors: float32 {worst.float32:.2e} of the value, float16 {worst.float16:.4f} "
          f"units of the last place, uint8 {worst.uint8:.4f} levels")
    return bool(worst.float32 > 1e-6 or worst.float16 > 0.5 or worst.uint8 > 0.5)


if __name__ == "__main__":
    sys.exit(main())
