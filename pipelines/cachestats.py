# SPDX-License-Identifier: LGPL-2.1-or-later
"""The statistics of the cache (property cache-stats of each element) as a table."""

ROWS = (
    ("misses", "allocations the device was asked for"),
    ("exact-hits", "reused, idle, same shape"),
    ("fit-hits", "reused, idle, other shape"),
    ("pending-hits", "reused in stream order, no wait added"),
    ("waiting-hits", "reused in stream order, waits added"),
    ("evictions", "freed to stay under the limit"),
    ("oom-retries", "tries again after the device was out of memory"),
    ("host-waits", "times the host waited for the device"),
    ("throttle-waits", "times the host was held back, being ahead"),
    ("live-bytes", "bytes in use"),
    ("pending-bytes", "bytes let go of, work on them not complete"),
    ("idle-bytes", "bytes kept for reuse"),
    ("peak-bytes", "peak bytes"),
    ("limit-bytes", "limit in bytes"),
)


def read(element):
    """The statistics of the element's device as a dictionary; all zero while no device is open."""
    structure = element.get_property("cache-stats")
    return {name: structure.get_uint64(name)[1] if structure else 0 for name, _ in ROWS}


def print_table(*columns):
    """Prints (title, dictionary) columns side by side."""
    print(f"{'cache':<16}" + "".join(f"{title:>16}" for title, _ in columns))
    for name, meaning in ROWS:
        print(f"{name:<16}" + "".join(f"{stats[name]:>16,}" for _, stats in columns) + f"  {meaning}")
