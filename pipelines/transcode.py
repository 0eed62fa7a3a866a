# SPDX-License-Identifier: LGPL-2.1-or-later
"""The program of pipelines/transcode, which starts it with a video file and the name of the output."""

import os
import sys
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import GLib, Gst  # noqa: E402

LINES = 720
MUXERS = {".mkv": "matroskamux", ".mp4": "mp4mux"}

# The decoder's frames are in the memory that gpuupload offers, through videoconvert, which has nothing to do where the
# GPU takes the format; a queue on each side lets all three parts go on at the same time.
VIDEO = (
    "queue name=video_in ! videoconvert ! gpuupload ! gpuflip video-direction=auto ! gpuresize ! "
    f"video/x-raw(memory:GPUCache),height={LINES},pixel-aspect-ratio=1/1 ! gpudownload ! queue ! "
    "x264enc name=encoder speed-preset=veryfast ! h264parse name=video_out"
)
AUDIO = "queue name=audio_in ! audioconvert ! audioresample ! avenc_aac ! aacparse name=audio_out"


class Failure(Exception):
    """A step failed; the text is a sentence for the user."""


class Transcoder:
    def __init__(self, source, output):
        self.source, self.output = source, output
        self.part = output + ".part"  # becomes the output when all is well
        self.frames = 0
        self.branches = set()
        self.error = None
        self.loop = GLib.MainLoop()

    def build(self):
        extension = os.path.splitext(self.output)[1].lower()
        if extension not in MUXERS:
            raise Failure(f"{self.output} ends in neither .mkv nor .mp4: choose one of them")
        try:
            with open(self.source, "rb"):
                pass
        except OSError as error:
            raise Failure(f"cannot read {self.source}: {error.strerror}") from error
        try:
            with open(self.part, "wb"):
                pass
        except OSError as error:
            raise Failure(f"cannot write {self.output}: {error.strerror}") from error
        try:
            self.pipeline = Gst.parse_launch(
                f"filesrc name=source ! decodebin name=decode {MUXERS[extension]} name=mux ! filesink name=sink"
            )
        except GLib.Error as error:
            raise Failure(error.message) from error
        self.pipeline.get_by_name("source").set_property("location", self.source)
        self.pipeline.get_by_name("sink").set_property("location", self.part)
        decode = self.pipeline.get_by_name("decode")
        decode.connect("pad-added", self.add_branch)
        decode.connect("no-more-pads", self.check_branches)
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message", self.look_at_message)

    def add_branch(self, _, pad):
        """Of each kind, the first stream: others end here."""
        kind = (pad.get_current_caps() or pad.query_caps(None)).get_structure(0).get_name().split("/")[0]
        known = kind in ("video", "audio") and kind not in self.branches
        branch = Gst.parse_bin_from_description({"video": VIDEO, "audio": AUDIO}[kind] if known else "fakesink", False)
        if known:
            self.branches.add(kind)
            last = branch.get_by_name(f"{kind}_out").get_static_pad("src")
            if kind == "video":
                last.add_probe(Gst.PadProbeType.BUFFER, self.count)
            branch.add_pad(Gst.GhostPad.new("src", last))
            first = branch.get_by_name(f"{kind}_in").get_static_pad("sink")
        else:
            first = branch.iterate_sinks().next()[1].get_static_pad("sink")
        branch.add_pad(Gst.GhostPad.new("sink", first))
        self.pipeline.add(branch)
        if known:
            branch.link(self.pipeline.get_by_name("mux"))
        pad.link(branch.get_static_pad("sink"))
        branch.sync_state_with_parent()

    def check_branches(self, _):
        if "video" not in self.branches:
            self.fail(f"{self.source} holds no video")

    def count(self, *_):
        self.frames += 1
        return Gst.PadProbeReturn.OK

    def fail(self, text):
        self.error = self.error or text
        GLib.idle_add(self.loop.quit)

    def look_at_message(self, _, message):
        if message.type == Gst.MessageType.ERROR:
            self.fail(message.parse_error()[0].message)
        elif message.type == Gst.MessageType.EOS:
            self.loop.quit()

    def show_progress(self):
        known, duration = self.pipeline.query_duration(Gst.Format.TIME)
        there, position = self.pipeline.query_position(Gst.Format.TIME)
        share = f", {min(100 * position // duration, 100)}%" if known and there and duration > 0 else ""
        print(f"{self.frames} frames{share}", flush=True)
        return True

    def play(self):
        self.pipeline.set_state(Gst.State.PLAYING)
        timer = GLib.timeout_add_seconds(1, self.show_progress)
        try:
            self.loop.run()
        finally:
            GLib.source_remove(timer)
            self.pipeline.set_state(Gst.State.NULL)
        if self.error:
            raise Failure(f"{self.source} cannot be transcoded: {self.error}")
        if not self.frames:
            raise Failure(f"no frame of {self.source} came out: is it cut off?")

    def run(self):
        start = time.monotonic()
        self.build()
        try:
            self.play()
            os.replace(self.part, self.output)
        finally:
            if os.path.exists(self.part):
                os.remove(self.part)
        seconds = time.monotonic() - start
        print(f"{self.frames} frames in {seconds:.1f} s: {self.output}, {os.path.getsize(self.output)} bytes")


def main():
    Gst.init(None)
    if not Gst.ElementFactory.find("x264enc"):
        raise Failure("there is no x264enc: install the Debian package gstreamer1.0-plugins-ugly")
    Transcoder(*sys.argv[1:]).run()


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"transcode: {failure}")
    except KeyboardInterrupt:
        sys.exit("transcode: stopped, the output is not complete")
