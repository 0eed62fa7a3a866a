# SPDX-License-Identifier: LGPL-2.1-or-later
"""The demo's program; pipelines/demo starts it with the build directory, the output directory and a video file.

Every frame goes through the elements. Probes on both ends of the chain count frames, turn the frames of a few moments
into PNG, before and after, and read the cache's statistics.
"""

import os
import sys
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstPbutils", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import GLib, Gst, GstPbutils, GstVideo  # noqa: E402
from PIL import Image, ImageDraw, ImageFont  # noqa: E402

import cachestats  # noqa: E402
import gpudevices  # noqa: E402

MOMENTS = 6
LONG_SIDE = 640  # of the resized picture, in pixels
STEADY = 10  # from this frame on the device must not be asked for memory any more
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"

# An image-orientation tag, followed by a mirror: what gpuflip does so that the picture ends upright and mirrored.
MIRRORED = {
    "rotate-0": "horiz",
    "rotate-90": "ul-lr",
    "rotate-180": "vert",
    "rotate-270": "ur-ll",
    "flip-rotate-0": "identity",
    "flip-rotate-90": "90r",
    "flip-rotate-180": "180",
    "flip-rotate-270": "90l",
}

# The same tag for the pictures before, as a player shows them.
UPRIGHT = {
    "rotate-90": (Image.Transpose.ROTATE_270,),
    "rotate-180": (Image.Transpose.ROTATE_180,),
    "rotate-270": (Image.Transpose.ROTATE_90,),
    "flip-rotate-0": (Image.Transpose.FLIP_LEFT_RIGHT,),
    "flip-rotate-90": (Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.ROTATE_270),
    "flip-rotate-180": (Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.ROTATE_180),
    "flip-rotate-270": (Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.ROTATE_90),
}


class Failure(Exception):
    """A step failed; the text is a sentence for the user."""


def count_frames(path):
    """How many frames the first video stream of a file has, by its timestamps and without decoding."""
    times, untimed = set(), 0
    pipeline = Gst.parse_launch("filesrc name=source ! parsebin name=parse")
    pipeline.get_by_name("source").set_property("location", path)
    counted = []

    def count(_, info):
        nonlocal untimed
        buffer = info.get_buffer()
        if buffer.pts != Gst.CLOCK_TIME_NONE:
            times.add(buffer.pts)
        elif not buffer.has_flags(Gst.BufferFlags.HEADER):
            untimed += 1
        return Gst.PadProbeReturn.OK

    def pad_added(_, pad):
        sink = Gst.ElementFactory.make("fakesink")
        sink.set_property("async", False)
        pipeline.add(sink)
        sink.sync_state_with_parent()
        pad.link(sink.get_static_pad("sink"))
        if not counted and pad.query_caps(None).to_string().startswith(("video/", "image/")):
            counted.append(pad)
            pad.add_probe(Gst.PadProbeType.BUFFER, count)

    pipeline.get_by_name("parse").connect("pad-added", pad_added)
    pipeline.set_state(Gst.State.PLAYING)
    pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    return len(times) + untimed


class Video:
    """What is known of a file before it is played."""

    def __init__(self, path):
        try:
            with open(path, "rb") as file:
                empty = not file.read(1)
        except OSError as error:
            raise Failure(f"cannot read {path}: {error.strerror}") from error
        if empty:
            raise Failure(f"{path} is empty")
        try:
            info = GstPbutils.Discoverer.new(30 * Gst.SECOND).discover_uri(Gst.filename_to_uri(os.path.abspath(path)))
        except GLib.Error as error:
            raise Failure(f"{path} is not a video that GStreamer can read, or is cut off ({error.message})") from error
        if info.get_result() == GstPbutils.DiscovererResult.MISSING_PLUGINS:
            raise Failure(f"GStreamer lacks a plugin to decode {path} (gst-discoverer-1.0 names it)")
        streams = [stream for stream in info.get_video_streams() if not stream.is_image() and stream.get_width()]
        if not streams:
            raise Failure(f"{path} holds no moving pictures: give a video file")
        stream = streams[0]
        tags = stream.get_tags()
        self.path = path
        self.width, self.height = stream.get_width(), stream.get_height()
        self.duration = info.get_duration() if info.get_duration() != Gst.CLOCK_TIME_NONE else 0
        self.frames = count_frames(path)
        self.orientation = (tags and tags.get_string(Gst.TAG_IMAGE_ORIENTATION)[1]) or "rotate-0"
        if self.orientation not in MIRRORED:
            self.orientation = "rotate-0"
        self.aspect = (self.width * stream.get_par_num()) / (self.height * stream.get_par_denom())
        if self.orientation.endswith(("-90", "-270")):
            self.aspect = 1 / self.aspect

    def output_size(self):
        if self.aspect >= 1:
            return LONG_SIDE, max(round(LONG_SIDE / self.aspect), 1)
        return max(round(LONG_SIDE * self.aspect), 1), LONG_SIDE

    def moments(self):
        """When to take pictures, in nanoseconds: evenly spread, or ever further apart if the length is not known."""
        if self.duration:
            return [self.duration * (2 * i + 1) // (2 * MOMENTS) for i in range(MOMENTS)]
        return [Gst.SECOND * (2**i - 1) // 4 for i in range(MOMENTS)]


class Run:
    """One pass of a video through the elements."""

    def __init__(self, video, output):
        self.video = video
        self.output = output
        self.frames = 0
        self.end = 0  # latest end of a frame or a piece of sound so far, in nanoseconds
        self.waiting = video.moments()  # not taken yet
        self.taken = []  # (frame number, time) of pictures before
        self.expected = {}  # time: picture number, for pictures after
        self.steady = None
        self.error = None
        width, height = video.output_size()
        self.line = (
            "filesrc name=source ! decodebin name=decode"
            " decode. ! queue max-size-buffers=3 ! videoconvert ! video/x-raw,format=RGBx"
            f" ! gpuupload name=upload ! gpuflip video-direction={MIRRORED[video.orientation]}"
            f" ! gpuresize ! video/x-raw(memory:GPUCache),width={width},height={height},pixel-aspect-ratio=1/1"
            ' ! gpunormalize base="<123.675,116.28,103.53>" scale="<58.395,57.12,57.375>" scale-is-stddev=true'
            " global-scale=40 shift=128"
            " ! gpudownload ! video/x-raw ! fakesink name=sink sync=false"
        )
        try:
            self.pipeline = Gst.parse_launch(self.line)
        except GLib.Error as error:
            raise Failure(f"the pipeline cannot be made: {error.message}") from error
        self.pipeline.get_by_name("source").set_property("location", video.path)
        self.upload = self.pipeline.get_by_name("upload")
        self.pipeline.get_by_name("decode").connect("pad-added", self.take_other_streams)
        self.probe(self.upload.get_static_pad("sink"), self.before)
        self.probe(self.pipeline.get_by_name("sink").get_static_pad("sink"), self.after)

    def probe(self, pad, function):
        def guarded(pad, info):
            try:
                function(pad, info.get_buffer())
            except Exception as error:  # nothing may pass through GStreamer's thread
                self.error = self.error or error
            return Gst.PadProbeReturn.OK

        pad.add_probe(Gst.PadProbeType.BUFFER, guarded)

    def take_other_streams(self, _, pad):
        """Sound only tells where the file ends; other video streams are let go of."""
        if pad.get_peer():
            return
        sink = Gst.ElementFactory.make("fakesink")
        sink.set_property("sync", False)
        sink.set_property("async", False)
        self.pipeline.add(sink)
        sink.sync_state_with_parent()
        pad.link(sink.get_static_pad("sink"))
        self.probe(pad, lambda pad, buffer: self.note_end(pad, buffer, 0))

    def stream_time(self, pad, time):
        event = pad.get_sticky_event(Gst.EventType.SEGMENT, 0)
        if event is None or time == Gst.CLOCK_TIME_NONE:
            return 0
        stream_time = event.parse_segment().to_stream_time(Gst.Format.TIME, time)
        return stream_time if stream_time != Gst.CLOCK_TIME_NONE else 0

    def note_end(self, pad, buffer, default):
        duration = buffer.duration if buffer.duration != Gst.CLOCK_TIME_NONE else default
        self.end = max(self.end, self.stream_time(pad, buffer.pts) + duration)

    def save(self, pad, buffer, name):
        sample = Gst.Sample.new(buffer, pad.get_current_caps(), None, None)
        picture = GstVideo.video_convert_sample(sample, Gst.Caps.from_string("image/png"), 30 * Gst.SECOND)
        if picture is None:
            raise Failure(f"cannot make {name}")
        memory = picture.get_buffer()
        with open(os.path.join(self.output, name), "wb") as file:
            file.write(memory.extract_dup(0, memory.get_size()))

    def before(self, pad, buffer):
        when = self.stream_time(pad, buffer.pts)
        if not self.waiting or when < self.waiting[0]:
            return
        while self.waiting and self.waiting[0] <= when:
            self.waiting.pop(0)
        number = len(self.taken) + 1
        self.save(pad, buffer, f"{number}-before.png")
        self.taken.append((self.frames + 1, when))
        self.expected[buffer.pts] = number

    def after(self, pad, buffer):
        self.frames += 1
        self.note_end(pad, buffer, 0)
        number = self.expected.pop(buffer.pts, None)
        if number is not None:
            self.save(pad, buffer, f"{number}-after.png")
        if self.frames == STEADY:
            self.steady = cachestats.read(self.upload)

    def of_total(self):
        return f"{self.frames} of {max(self.frames, self.video.frames)} frames"

    def show_progress(self, end=""):
        """One line that is written over on a terminal, lines one below the other elsewhere."""
        if sys.stdout.isatty():
            print(f"\r{self.of_total()} done", end=end, flush=True)
        else:
            print(f"{self.of_total()} done", flush=True)

    def play(self):
        """Plays to the end, showing progress; raises Failure if it does not get there."""
        bus = self.pipeline.get_bus()
        shown = time.monotonic()
        error = None
        self.pipeline.set_state(Gst.State.PLAYING)
        while not self.error:
            message = bus.timed_pop_filtered(
                100 * Gst.MSECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR | Gst.MessageType.WARNING
            )
            if time.monotonic() - shown > (0.1 if sys.stdout.isatty() else 2):
                self.show_progress()
                shown = time.monotonic()
            if message is None:
                continue
            if message.type == Gst.MessageType.EOS:
                break
            if message.type == Gst.MessageType.WARNING:
                print(f"\nwarning: {message.parse_warning()[0].message}", file=sys.stderr)
            else:
                cause, detail = message.parse_error()
                detail = detail.strip().splitlines()[-1] if detail else "no details"
                error = Failure(f"the pipeline stopped after {self.of_total()}: {cause.message} ({detail})")
                break
        last = cachestats.read(self.upload)
        self.pipeline.set_state(Gst.State.NULL)
        self.show_progress(end="\n")
        if self.error or error:
            raise self.error or error
        return last

    def check_length(self):
        """GStreamer takes the end of a file that was cut off for the end of its streams."""
        missing = self.video.duration - self.end
        if self.frames == 0:
            raise Failure(f"no frame came out of {self.video.path}: it is cut off or damaged")
        if missing > max(Gst.SECOND // 4, self.video.duration // 50):
            raise Failure(
                f"{self.video.path} is cut off or damaged: {self.frames} frames came out,"
                f" {self.end / Gst.SECOND:.2f} of {self.video.duration / Gst.SECOND:.2f} s"
            )


def contact_sheet(run, title, path):
    """Before and after, side by side, two moments a row."""
    margin, gap, line = 16, 4, 20
    width, height = run.video.output_size()
    scale = 320 / max(width, height)
    width, height = max(round(width * scale), 1), max(round(height * scale), 1)
    cell = (2 * width + gap + margin, height + line + margin)
    rows = (len(run.taken) + 1) // 2
    small, large = ImageFont.truetype(FONT, 13), ImageFont.truetype(FONT, 15)
    sheet = Image.new("RGB", (max(2 * cell[0] + margin, 900), rows * cell[1] + 2 * line + margin), "white")
    draw = ImageDraw.Draw(sheet)
    draw.text((margin, 12), title, "black", large)
    for i, (number, when) in enumerate(run.taken):
        x = margin + i % 2 * cell[0]
        y = 2 * line + i // 2 * cell[1]
        draw.text((x, y), f"frame {number}, {when / Gst.SECOND:.2f} s: before", "black", small)
        draw.text((x + width + gap, y), "after", "black", small)
        with Image.open(os.path.join(run.output, f"{i + 1}-before.png")) as picture:
            picture = picture.convert("RGB")
            for step in UPRIGHT.get(run.video.orientation, ()):
                picture = picture.transpose(step)
            sheet.paste(picture.resize((width, height), Image.Resampling.BOX), (x, y + line))
        with Image.open(os.path.join(run.output, f"{i + 1}-after.png")) as picture:
            sheet.paste(picture.convert("RGB").resize((width, height), Image.Resampling.BOX), (x + width + gap, y + line))
    sheet.save(path, quality=85)


def demo(build, output, path):
    Gst.init(None)
    name, description = gpudevices.open_device(build)
    print(f"Device: {name} ({description})")
    video = Video(path)
    print(f"Video: {path}, {video.width}x{video.height}, {video.duration / Gst.SECOND:.2f} s, {video.orientation}")
    os.makedirs(output, exist_ok=True)
    for old in os.listdir(output):
        if old.endswith((".png", ".jpg")):
            os.remove(os.path.join(output, old))
    run = Run(video, output)
    print(f"Pipeline: {run.line}")
    start = time.monotonic()
    last = run.play()
    print(f"{run.frames} frames in {time.monotonic() - start:.1f} s, pictures included")

    if run.taken:
        sheet = os.path.join(output, "contact-sheet.jpg")
        chain = "flip, resize, normalize"
        contact_sheet(run, f"{os.path.basename(path)}: {chain} on {name} ({description})", sheet)
        print(f"Contact sheet: {sheet}")
    print()
    if run.steady:
        cachestats.print_table((f"at frame {STEADY}", run.steady), (f"at frame {run.frames}", last))
        if last["misses"] == run.steady["misses"]:
            print(f"\nFrom frame {STEADY} to frame {run.frames} the device was not asked for memory.")
        else:
            print(f"\nAfter frame {STEADY} the device was asked for memory {last['misses'] - run.steady['misses']} times.")
    else:
        cachestats.print_table((f"at frame {run.frames}", last))
    run.check_length()


if __name__ == "__main__":
    try:
        demo(*sys.argv[1:])
    except (Failure, gpudevices.Error) as failure:
        sys.exit(f"demo: {failure}")
    except KeyboardInterrupt:
        sys.exit("demo: stopped")
