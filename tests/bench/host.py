#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts what a frame takes of the host, on a driver that does nothing (bench-host), under Valgrind: instructions,
locked instructions among them, and the cache lines that two chains of elements on threads of their own share.

    host.py [--json FILE] [--functions N [--of CASE]] [--lines] BUILD

BUILD is a build folder, best with -Dbuildtype=release. --functions lists the N most expensive functions of a case,
which is the chain of elements if --of does not name another one. --lines, which takes some minutes, traces each access
to memory; a line is shared if one chain writes to it and the other one touches it. Counts hardly depend on the machine
or on what else it does.
"""
import argparse
import bisect
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

COUNTED, TRACED = 1000, 200  # bench-host.c has these, too
LINE = 64
SECTION = "On a driver that does nothing, counted: "
CASES = {
    "identity": "three identities, a frame",
    "elements": "flip, resize, normalize, a frame",
    "library": "the library's calls for the same, a frame",
    "chains": "resize, normalize of 32 cameras, a frame of each",
    "batch-changing": "the same in a batch, in memory that changes",
    "batch-staying": "the same in a batch, in memory that stays",
    "video-pool": "GstVideoBufferPool, acquire and release",
    "gpu-pool": "GstGpuBufferPool, acquire and release",
    "cache": "the cache, acquire and release",
}
# What each is compared with, if not with the identities.
PEERS = {**dict.fromkeys(("video-pool", "gpu-pool", "cache"), "video-pool"),
         **dict.fromkeys(("chains", "batch-changing", "batch-staying"), "chains")}


def environment(build):
    return {**os.environ, "GST_PLUGIN_PATH": f"{build}/gst/elements",
            "GST_REGISTRY": f"{build}/tests/bench/registry.bin"}


def count(build, case, folder):
    """Instructions and locked instructions of a case's operation, and the file that says in which functions."""
    profile = f"{folder}/{case}"
    command = ["valgrind", "--tool=callgrind", "--collect-bus=yes", "--toggle-collect=counted*",
               f"--callgrind-out-file={profile}", f"{build}/tests/bench/bench-host", "--count", case]
    run = subprocess.run(command, env=environment(build), capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{run.stderr}")
    with open(profile, encoding="utf-8") as lines:
        totals = next(line.split()[1:] for line in lines if line.startswith("totals:"))
    return int(totals[0]) / COUNTED, int(totals[1]) / COUNTED, profile


class Symbols:
    """Names of code by address, from a program's maps."""

    def __init__(self):
        self.objects = []
        self.tables = {}

    def add(self, line):
        span, modes, offset, _, _, *path = line.split()
        if "x" in modes and path and path[0].startswith("/"):
            start, end = (int(number, 16) for number in span.split("-"))
            self.objects.append((start, end, int(offset, 16), path[0]))

    def table(self, path):
        """The functions of an object by address, those that it exports if it is stripped."""
        if path not in self.tables:
            symbols = []
            for options in ([], ["-D"]):
                output = subprocess.run(["nm", *options, path], capture_output=True, text=True, check=False).stdout
                found = re.findall(r"^([0-9a-f]+) [tTwWiI] (\S+)$", output, re.MULTILINE)
                symbols = symbols or sorted((int(address, 16), name.split("@")[0]) for address, name in found)
            self.tables[path] = symbols
        return self.tables[path]

    def name(self, address):
        for start, end, offset, path in self.objects:
            if start <= address < end:
                symbols = self.table(path)
                at = bisect.bisect_right(symbols, (address - start + offset, chr(sys.maxunicode))) - 1
                return f"{symbols[at][1] if at >= 0 else '?'} in {os.path.basename(path).split('.so')[0]}"
        return "?"


class Trace:
    """What the chains touched in the third quarter of their turns, when nothing begins or ends: for each, by line, how
    often it was read and written, and by which code."""

    def __init__(self):
        self.symbols = Symbols()
        self.marks = {}
        self.touched = {}

    def follow(self, stream):
        """@stream: Lackey's output, with the program's own among it."""
        chain, turn, code = None, 0, b""
        for line in stream:
            kind = line[:3]
            if kind == b"I  ":
                code = line[3:]
            elif kind in (b" L ", b" S ", b" M "):
                address, size = line[3:].split(b",")
                if not self.marks:
                    continue
                address = int(address, 16)
                if address in self.marks:
                    if kind != b" L ":
                        chain = self.marks[address]
                        turn += chain is not None
                elif chain is not None and 0.5 < turn / (TRACED * len(self.touched)) <= 0.75:
                    self.touch(chain, address, int(size), kind != b" L ", code)
            elif line.startswith(b"mark "):
                self.add_mark(int(line[5:], 16))
            elif b" r-xp " in line:
                self.symbols.add(line.decode())

    def add_mark(self, address):
        """The last mark is nobody's."""
        self.marks[address] = None
        for number, earlier in enumerate(sorted(self.marks)[:-1]):
            self.marks[earlier] = number
            self.touched.setdefault(number, {})

    def touch(self, chain, address, size, writes, code):
        for line in range(address // LINE, (address + size - 1) // LINE + 1):
            self.touched[chain].setdefault(line, collections.Counter())[(writes, code)] += 1

    def shared(self):
        """Lines that one chain writes to and another one touches."""
        for line in set.intersection(*(set(lines) for lines in self.touched.values())):
            accesses = sum((lines[line] for lines in self.touched.values()), collections.Counter())
            if any(writes for writes, _ in accesses):
                yield line, accesses


def trace(build):
    command = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-fd=1", f"{build}/tests/bench/bench-host",
               "--side-by-side"]
    found = Trace()
    with subprocess.Popen(command, env=environment(build), stdout=subprocess.PIPE) as process:
        found.follow(process.stdout)
    if process.returncode != 0 or not found.touched:
        sys.exit(f"{' '.join(command)} failed")
    return found


def row(results, section, name, value, reference):
    ratio = value / reference if reference else 0
    print(f"  {name:58} {value:12.2f}        {ratio:8.3g}")
    results.append({"section": SECTION + section, "name": name, "unit": "", "value": value, "low": value,
                    "high": value, "ratio": ratio})


def print_counts(build, functions, case_of_functions, results):
    with tempfile.TemporaryDirectory() as folder:
        counts = {case: count(build, case, folder) for case in CASES}
        for number, section in enumerate(("instructions", "locked instructions")):
            print(f"\n{SECTION}{section}")
            for case, name in CASES.items():
                peer = PEERS.get(case, "identity")
                row(results, section, name, counts[case][number], counts[peer][number])
        if functions:
            command = ["callgrind_annotate", "--tree=none", "--threshold=100", counts[case_of_functions][2]]
            lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
            own = [line for line in lines if re.match(r"^ *[0-9,]+ \(", line) and "PROGRAM TOTALS" not in line]
            print("\n" + "\n".join(own[:functions]))


def print_lines(build, results):
    found = trace(build)
    lines = sorted(found.shared(), key=lambda item: -sum(item[1].values()))
    frames = TRACED / 4 * len(found.touched)
    section = "cache lines that two chains share"
    print(f"\n{SECTION}{section}")
    row(results, section, "lines", len(lines), 0)
    row(results, section, "writes to them, a frame",
        sum(n for _, accesses in lines for (writes, _), n in accesses.items() if writes) / frames, 0)
    row(results, section, "reads of them, a frame",
        sum(n for _, accesses in lines for (writes, _), n in accesses.items() if not writes) / frames, 0)
    for line, accesses in lines:
        print(f"  {line * LINE:#x}")
        names = collections.Counter()
        for (writes, code), n in accesses.items():
            names[("writes" if writes else "reads", found.symbols.name(int(code.split(b",")[0], 16)))] += n
        for (verb, name), n in names.most_common(8):
            print(f"    {n / frames:8.2f} {verb} {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="where results are appended, in the benchmarks' format")
    parser.add_argument("--functions", metavar="N", type=int, default=0)
    parser.add_argument("--of", metavar="CASE", choices=CASES, default="elements")
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("build", metavar="BUILD")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    results = []

    print_counts(build, options.functions, options.of, results)
    if options.lines:
        print_lines(build, results)
    if options.json:
        with open(options.json, "a", encoding="utf-8") as file:
            file.write(json.dumps({"program": "host.py", "device": "cuda:0", "description": "does nothing"}) + "\n")
            file.writelines(json.dumps(result) + "\n" for result in results)


if __name__ == "__main__":
    main()
