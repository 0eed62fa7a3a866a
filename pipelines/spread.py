# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs streams on several devices at the same time; pipelines/spread starts it with the build directory and its own
arguments."""

import argparse
import sys
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

import cachestats  # noqa: E402
import gpudevices  # noqa: E402

PICTURE = "video/x-raw,format=RGBA,width=1280,height=720"
SMALL = "video/x-raw(memory:GPUCache),width=640,height=360"


def parse(arguments):
    parser = argparse.ArgumentParser(prog="spread")
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--cross", action="store_true")
    parser.add_argument("devices", nargs="*", metavar="DEVICE")
    options = parser.parse_intermixed_args(arguments)
    if options.streams < 1 or options.frames < 1:
        parser.error("at least one stream and one frame are needed")
    return options


def chain(number, frames, first, second):
    """One stream: the first half of the work on one device, the second on another, which may be the same."""
    across = f"gpuupload device={second} ! " if second != first else ""
    return (
        f"videotestsrc num-buffers={frames} pattern={number % 20} ! {PICTURE} ! queue ! "
        f"gpuupload device={first} ! gpuresize name=first{number} ! {SMALL} ! {across}"
        f"gpuflip name=second{number} video-direction=90r ! gpudownload ! queue ! fakesink sync=false"
    )


class Work:
    """What a device was given to do: the frames that left its elements."""

    def __init__(self):
        self.streams, self.resized, self.turned, self.element = 0, 0, 0, None

    def count(self, element, name):
        self.element = self.element or element

        def add(_, info):
            setattr(self, name, getattr(self, name) + 1)
            return Gst.PadProbeReturn.OK

        element.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, add)


def play(pipeline):
    """Plays to the end. Returns the seconds it took; raises GLib.Error if it does not get there."""
    start = time.monotonic()
    pipeline.set_state(Gst.State.PLAYING)
    message = None
    while message is None:
        message = pipeline.get_bus().timed_pop_filtered(
            200 * Gst.MSECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR
        )
    if message.type == Gst.MessageType.ERROR:
        raise message.parse_error()[0]
    return time.monotonic() - start


def spread(arguments):
    Gst.init(None)
    options = parse(arguments)
    try:
        if options.devices:
            devices = [gpudevices.open_device(options.build, name) for name in options.devices]
        else:
            devices = gpudevices.find_gpus(options.build) or [
                gpudevices.open_device(options.build, name) for name in ("cpu:0", "cpu:1")
            ]
    except gpudevices.Error as error:
        sys.exit(f"spread: {error}")
    for name, description in devices:
        print(f"{name}: {description}")

    names = [name for name, _ in devices]
    places = [(names[i % len(names)], names[(i + options.cross) % len(names)]) for i in range(options.streams)]
    lines = [chain(i, options.frames, first, second) for i, (first, second) in enumerate(places)]
    work = {name: Work() for name in names}
    try:
        pipeline = Gst.parse_launch(" ".join(lines))
        for i, (first, second) in enumerate(places):
            work[first].streams += 1
            work[first].count(pipeline.get_by_name(f"first{i}"), "resized")
            work[second].count(pipeline.get_by_name(f"second{i}"), "turned")
        seconds = play(pipeline)
    except GLib.Error as error:
        sys.exit(f"spread: {error.message}")

    total = options.streams * options.frames
    print(f"\n{total} frames of {options.streams} streams in {seconds:.1f} s, {total / seconds:.0f} a second\n")
    used = [name for name in work if work[name].element]
    print(f"{'work':<16}" + "".join(f"{name:>16}" for name in used))
    for row, meaning in (
        ("streams", "that came in here"),
        ("resized", "frames, the first half of the work"),
        ("turned", "frames, the second half"),
    ):
        print(f"{row:<16}" + "".join(f"{getattr(work[name], row):>16,}" for name in used) + f"  {meaning}")
    print()
    cachestats.print_table(*((name, cachestats.read(work[name].element)) for name in used))
    pipeline.set_state(Gst.State.NULL)


if __name__ == "__main__":
    spread(sys.argv[1:])
