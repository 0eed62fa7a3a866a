#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a model's input takes in Python: a 1080p RGBA frame on the GPU turned left to right, scaled to 640x640
(bilinear), normalised to float32 CHW, by PyTorch and by CV-CUDA where Python has them.

    peers.py [--json FILE]     results are appended to FILE in the benchmarks' format, beside those that
                               bench-pipelines left there for the same input

Skips what cannot be imported, and all of it where there is no GPU.
"""
import argparse
import contextlib
import json
import signal
import statistics
import time

FRAMES = 200
ROUNDS = 7
RING = 16
SIZE = (640, 640)
SECTION = "A model's input by others: 1080p RGBA to 640x640 float32 CHW, a frame"
GOAL_SECTION = "A model's input: how often as long others take as the elements"
GOAL = 3
OURS = ("A model's input: 1080p RGBA to 640x640 float32 CHW, a frame", "gpuflip, gpuresize, gpunormalize")
COMPILE_SECONDS = 45
DEVICE_FRAMES = 20
DELAY_CYCLES = 20_000_000  # about 10 ms, in which the host submits DEVICE_FRAMES


def torch_ways(torch):
    """Pairs of a name and a function from a frame's number to what came of it."""
    frames = [torch.randint(0, 256, (1080, 1920, 4), dtype=torch.uint8, device="cuda") for _ in range(RING)]
    mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(1, 3, 1, 1)
    resize = torch.nn.functional.interpolate

    def scaled_floats(frame):
        picture = frame[..., :3].permute(2, 0, 1).unsqueeze(0)
        turned = torch.flip(picture, dims=(3,))
        small = resize(turned.float(), size=SIZE, mode="bilinear", align_corners=False)
        return (small / 255 - mean) / std

    def scaled_bytes(frame):
        picture = frame[..., :3].permute(2, 0, 1).unsqueeze(0)
        small = resize(torch.flip(picture, dims=(3,)), size=SIZE, mode="bilinear", align_corners=False)
        return (small.float() / 255 - mean) / std

    def of_ring(way):
        return lambda number: way(frames[number % RING])

    yield "PyTorch, eager, scaled in float32", of_ring(scaled_floats)
    yield "PyTorch, eager, scaled in uint8", of_ring(scaled_bytes)
    # The frame is its argument: of a number it would make a program for each.
    if compiled := compile_way(torch, scaled_floats, frames):
        yield "PyTorch, compiled, scaled in float32", of_ring(compiled)


class TimeUp(BaseException):
    """No Exception, as a compiler may go on after one of those."""


@contextlib.contextmanager
def time_limit(seconds):
    def stop(*_):
        raise TimeUp(f"it takes more than {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def compile_way(torch, way, frames):
    """What torch.compile makes of @way, tried with @frames, or None where it does not work; it needs a compiler and has
    bugs of its own."""
    try:
        with time_limit(COMPILE_SECONDS):
            compiled = torch.compile(way)
            for frame in frames:
                compiled(frame)
            return compiled
    except (Exception, TimeUp) as error:  # of any library below it
        print(f"torch.compile: skipped, {first_line(error)}")
    return None


def first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0][:100]


def cvcuda_ways(torch, cvcuda):
    frames = [torch.randint(0, 256, (1, 1080, 1920, 4), dtype=torch.uint8, device="cuda") for _ in range(RING)]
    images = [cvcuda.as_tensor(frame, "NHWC") for frame in frames]
    base = cvcuda.as_tensor(torch.tensor([[[[0.485, 0.456, 0.406, 0.0]]]], device="cuda"), "NHWC")
    scale = cvcuda.as_tensor(torch.tensor([[[[0.229, 0.224, 0.225, 1.0]]]], device="cuda"), "NHWC")
    stddev = cvcuda.NormalizeFlags.SCALE_IS_STDDEV

    def chain(number):
        turned = cvcuda.flip(images[number % RING], 1)
        small = cvcuda.resize(turned, (1, *SIZE, 4), cvcuda.Interp.LINEAR)
        floats = cvcuda.convertto(small, "float32", scale=1 / 255)
        return cvcuda.reformat(cvcuda.normalize(floats, base, scale, stddev), "NCHW")

    yield "CV-CUDA", chain


def time_on_device(torch, way):
    """The device's us a frame, without the host: all is submitted while the device waits, where PyTorch has that."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    if hasattr(torch.cuda, "_sleep"):
        torch.cuda._sleep(DELAY_CYCLES)
    begin.record()
    for number in range(DEVICE_FRAMES):
        way(number)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / DEVICE_FRAMES * 1e3


def measure(torch, way):
    """Medians of us a frame: in all, of the host until all is submitted, of the device."""
    figures = []
    for _ in range(ROUNDS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for number in range(FRAMES):
            way(number)
        submitted = time.perf_counter()
        torch.cuda.synchronize()
        total = time.perf_counter()
        figures.append([(total - start) / FRAMES * 1e6, (submitted - start) / FRAMES * 1e6, time_on_device(torch, way)])
    return [statistics.median(column) for column in zip(*figures[1:])]


def row(section, name, value, reference, goal=None):
    """Prints a row, and returns it in the benchmarks' format."""
    ratio = value / reference
    met = goal and ratio >= goal
    words = f"  at least {goal}: {'met' if met else 'NOT met'} (of {reference:.2f})" if goal else ""
    print(f"  {name:58} {value:12.2f} us     {ratio:8.3g}{words}")
    line = {"section": section, "name": name, "unit": "us", "value": value, "low": value, "high": value, "ratio": ratio,
            "reference": reference}
    if goal:
        line |= {"goal": f"at least {goal}", "met": met}
    return line


def find_ours(path):
    """What the elements took for the same, if bench-pipelines left that in the file; the last figure there."""
    ours = None
    with open(path, encoding="utf-8") as file:
        for line in map(json.loads, file):
            if (line.get("section"), line.get("name")) == OURS:
                ours = line["value"]
    return ours


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("PyTorch is not there: skipped")
        return
    if not torch.cuda.is_available():
        print("PyTorch finds no GPU: skipped")
        return
    ways = list(torch_ways(torch))
    try:
        import cvcuda

        ways += cvcuda_ways(torch, cvcuda)
    except ImportError:
        print("CV-CUDA is not there: skipped")

    print(f"\n{SECTION:79}  ratio")
    rows = []
    totals = {}
    for name, way in ways:
        try:
            figures = measure(torch, way)
        except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
            print(f"  {name}: skipped, {first_line(error)}")
            continue
        totals[name] = figures[0]
        reference = next(iter(totals.values()))
        for part, value in zip(("", ", the host's time", ", the device's time"), figures):
            rows.append(row(SECTION, name + part, value, reference))
    ours = find_ours(arguments.json) if arguments.json else None
    if ours:
        print(f"\n{GOAL_SECTION:79}  ratio  goal")
        for name, total in totals.items():
            rows.append(row(GOAL_SECTION, name, total, ours, GOAL if "eager" in name else None))
    if arguments.json and rows:
        with open(arguments.json, "a", encoding="utf-8") as file:
            head = {"program": "peers.py", "device": "cuda:0", "description": torch.cuda.get_device_name(0),
                    "cores": torch.get_num_threads()}
            for line in [head, *rows]:
                file.write(json.dumps(line) + "\n")


main()
