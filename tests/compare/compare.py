# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the comparisons share: the program that applies operations, and pictures to apply them to."""

import glob
import subprocess
import sys

try:
    import numpy
    from PIL import Image
except ImportError as error:
    sys.exit(f"{error}: install Debian's python3-pil and python3-numpy, as tests/run does")

PHOTOGRAPHS = "/usr/share/forensics-samples/original-files/pic*/*.[jJ][pP][gG]"


class Program:
    """tests/compare/apply.c, one job after the other."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def apply(self, job, picture, size):
        """Returns the @size bytes that the job makes of an array."""
        try:
            self.process.stdin.write((" ".join(map(str, job)) + "\n").encode() + picture.tobytes())
            self.process.stdin.flush()
            result = self.process.stdout.read(size)
        except BrokenPipeError:
            result = b""
        if len(result) < size:
            status = self.process.wait()
            if status == 77:
                print("skipped: there is no such device")
            sys.exit(status or 1)
        return result

    def close(self):
        self.process.stdin.close()
        if self.process.wait():
            sys.exit(f"the program that applies operations ended with status {self.process.returncode}")


def photographs(size):
    """Cuttings of @size from the photographs of Debian's package forensics-samples-files, as many as there are."""
    for path in sorted(glob.glob(PHOTOGRAPHS)):
        try:
            with Image.open(path) as image:
                image.draft("RGB", (2 * size[0], 2 * size[1]))
                image = image.convert("RGB")
        except OSError:
            continue  # some of them are damaged on purpose
        if image.width >= size[0] and image.height >= size[1]:
            yield path, image.crop((0, 0, *size))
