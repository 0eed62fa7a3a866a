# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the pipeline that its arguments are until it ends or is interrupted, then prints the statistics of the cache;
pipelines/stats starts it."""

import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

import cachestats  # noqa: E402


def stats(arguments):
    Gst.init(None)
    try:
        parsed = Gst.parse_launchv(arguments)
    except GLib.Error as error:
        sys.exit(f"stats: {error.message}")
    pipeline = parsed
    if not isinstance(parsed, Gst.Pipeline):  # a single element comes as it is
        pipeline = Gst.Pipeline()
        pipeline.add(parsed)
    elements = [element for element in pipeline.children if element.find_property("cache-stats")]
    if not elements:
        sys.exit("stats: none of the elements uses the cache: put gpuupload in")
    pipeline.set_state(Gst.State.PLAYING)
    bus, message = pipeline.get_bus(), None
    try:
        while message is None:
            message = bus.timed_pop_filtered(200 * Gst.MSECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    except KeyboardInterrupt:
        print()
    at_end = cachestats.read(elements[0])
    pipeline.set_state(Gst.State.NULL)
    cachestats.print_table(("at the end", at_end))
    if message and message.type == Gst.MessageType.ERROR:
        sys.exit(f"stats: {message.parse_error()[0].message}")


if __name__ == "__main__":
    stats(sys.argv[1:])
