#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a model's input takes in Python: a 1080p RGBA frame on the GPU turned left to right, scaled to 640x640
(bilinear), normalised to float32 CHW, by PyTorch and by CV-CUDA where Python has them.

    peers.py [--json FILE]     results are appended to FILE in the benchmarks' format

Skips what cannot be imported, and all of it where there is no GPU.
"""
import argparse
import json
import statistics
import time

FRAMES = 200
ROUNDS = 7
RING = 16
SIZE = (640, 640)
SECTION = "A model's input by others: 1080p RGBA to 640x640 float32 CHW, a frame"


def torch_ways(torch):
    """Pairs of a name and a function from a frame's number to what came of it."""
    frames = [torch.randint(0, 256, (1080, 1920, 4), dtype=torch.uint8, device="cuda") for _ in range(RING)]
    mean = torch.tensor([0.485, 0.456, 0.406], device="cuda").view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], device="cuda").view(1, 3, 1, 1)
    resize = torch.nn.functional.interpolate

    def eager(number):
        picture = frames[number % RING][..., :3].permute(2, 0, 1).unsqueeze(0)
        turned = torch.flip(picture, dims=(3,))
        small = resize(turned.float(), size=SIZE, mode="bilinear", align_corners=False)
        return (small / 255 - mean) / std

    def eager_bytes(number):
        picture = frames[number % RING][..., :3].permute(2, 0, 1).unsqueeze(0)
        small = resize(torch.flip(picture, dims=(3,)), size=SIZE, mode="bilinear", align_corners=False)
        return (small.float() / 255 - mean) / std

    yield "PyTorch, eager, scaled in float32", eager
    yield "PyTorch, eager, scaled in uint8", eager_bytes


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


def measure(torch, way):
    """Medians of us a frame: in all, and of the host until all is submitted."""
    total, host = [], []
    for _ in range(ROUNDS + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for number in range(FRAMES):
            way(number)
        submitted = time.perf_counter()
        torch.cuda.synchronize()
        total.append((time.perf_counter() - start) / FRAMES * 1e6)
        host.append((submitted - start) / FRAMES * 1e6)
    return statistics.median(total[1:]), statistics.median(host[1:])


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
    reference = None
    for name, way in ways:
        try:
            total, host = measure(torch, way)
        except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
            print(f"  {name}: skipped, {str(error).splitlines()[0][:100]}")
            continue
        reference = reference or total
        for label, value in ((name, total), (name + ", the host's part", host)):
            print(f"  {label:58} {value:12.2f} us     {value / reference:8.3g}")
            rows.append({"section": SECTION, "name": label, "unit": "us", "value": value, "low": value, "high": value,
                         "ratio": value / reference})
    if arguments.json and rows:
        with open(arguments.json, "a", encoding="utf-8") as file:
            head = {"program": "peers.py", "device": "cuda:0", "description": torch.cuda.get_device_name(0),
                    "cores": torch.get_num_threads()}
            for line in [head, *rows]:
                file.write(json.dumps(line) + "\n")


main()
