#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts the instructions of kernels by what they are issued to, from their machine code.

    tests/bench/sass.py lib/gpucache/convert.cu [--arch 90] [--kernel REGEX] [--through LINE]... [--define NAME=VALUE]...

compiles the source as the build does, for one architecture, disassembles it with nvdisasm (of PATH, or $NVDISASM) and
prints a line for each kernel that matches: registers, bytes of shared memory, the threads of a multiprocessor that they
leave room for, and instructions. Code that is only run for addresses or edges that are rare counts, too: so the figures
are for kernels of one case, or, with --through, for the instructions that were inlined by way of all of these lines of
the source, which is how one case of a kernel of several is told from the others.

What a multiprocessor of compute capability 9.0 issues in a cycle: 4 instructions, of which 2 "alu" (additions, shifts,
logic, comparisons, byte permutations), 2 "mul" (integer products), 4 "float", 1 to memory of any kind, of which shuffles
are one.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KINDS = {
    "load": ("LDG", "LD"),
    "store": ("STG", "ST"),
    "shared": ("LDS", "STS", "LDSM", "SHFL"),
    "local": ("LDL", "STL"),
    "const": ("LDC", "ULDC", "S2R", "S2UR", "CS2R"),
    "mul": ("IMAD", "IDP", "IMUL"),
    "float": ("FADD", "FMUL", "FFMA", "HADD2", "HFMA2", "HMUL2"),
    "double": ("DADD", "DMUL", "DFMA", "DSETP", "F2F", "I2F", "F2I"),
    "move": ("MOV", "UMOV", "R2UR"),
    "branch": ("BRA", "EXIT", "BSSY", "BSYNC", "WARPSYNC", "BAR", "BREAK", "CALL", "RET", "BMOV", "ENDCOLLECTIVE"),
    "none": ("NOP",),
}
KIND = {name: kind for kind, names in KINDS.items() for name in names}
COLUMNS = ("load", "store", "shared", "local", "const", "mul", "alu", "float", "double", "uniform", "move", "branch")


def kind_of(opcode):
    name = opcode.split(".")[0]
    if name == "IMAD" and opcode.startswith("IMAD.MOV"):
        return "move"
    if name in KIND:
        return KIND[name]
    return "uniform" if name.startswith("U") else "alu"


def compile_source(source, arch, defines, out):
    root = pathlib.Path(source).resolve().parents[2]
    command = ["nvcc", "--cubin", f"-arch=sm_{arch}", "-O3", "-std=c++17", "-lineinfo", "--fmad=false"]
    command += ["-I", str(root / "lib"), "-Xptxas", "-v", "-o", out, source, *(f"-D{d}" for d in defines)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr)
    resources = {}
    for name, text in re.findall(r"entry function '(\w+)'(.*?)(?=Compiling|\Z)", result.stderr, re.S):
        registers = int(re.search(r"Used (\d+) registers", text)[1])
        shared = re.search(r"(\d+) bytes smem", text)
        spills = re.search(r"(\d+) bytes spill stores", text)
        resources[name] = registers, int(shared[1]) if shared else 0, int(spills[1]) if spills else 0
    return resources


def resident_threads(registers, shared, block=256):
    """Registers go to warps in units of 256, 64 K of them and 227 KiB of shared memory a multiprocessor."""
    warp_registers = (registers * 32 + 255) // 256 * 256
    blocks = min(2048 // block, 65536 // warp_registers // (block // 32), 227 * 1024 // (shared + 1024))
    return blocks * block


def count(cubin, through):
    command = [os.environ.get("NVDISASM", "nvdisasm"), "-c", "-gi", cubin]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts, kernel, lines, fresh = {}, None, set(), False
    for line in text.splitlines():
        if match := re.match(r"\.text\.(\w+):", line):
            kernel = match[1]
            counts[kernel] = collections.Counter()
        elif "//##" in line:
            if not fresh:
                lines = set()
            fresh = True
            lines.update(int(n) for n in re.findall(r"line (\d+)", line))
        elif match := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", line):
            fresh = False
            if kernel and through <= lines:
                counts[kernel][kind_of(match[1])] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--arch", default="90")
    parser.add_argument("--kernel", default="", help="only kernels whose names match")
    parser.add_argument("--through", type=int, action="append", default=[], metavar="LINE")
    parser.add_argument("--define", action="append", default=[], metavar="NAME=VALUE")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        cubin = os.path.join(folder, "kernels.cubin")
        resources = compile_source(args.source, args.arch, args.define, cubin)
        counts = count(cubin, set(args.through))

    heading = f"{'kernel':<36}{'regs':>5}{'smem':>7}{'threads':>8}{'spilt':>6}{'all':>6}"
    print(heading, *(f"{c:>8}" for c in COLUMNS), sep="")
    for name, (registers, shared, spilt) in sorted(resources.items()):
        if not re.search(args.kernel, name):
            continue
        counted = counts[name]
        total = sum(n for kind, n in counted.items() if kind != "none")
        print(f"{name:<36}{registers:>5}{shared:>7}{resident_threads(registers, shared):>8}{spilt:>6}{total:>6}",
              *(f"{counted[c]:>8}" for c in COLUMNS), sep="")


if __name__ == "__main__":
    main()
