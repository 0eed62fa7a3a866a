# SPDX-License-Identifier: LGPL-2.1-or-later
"""Turns the lines of JSON that the benchmarks wrote into one JSON document, and draws those with goals in SVG.

Usage: chart.py LINES RESULTS.json CHART.svg
       chart.py RESULTS.json CHART.svg

All bars have one scale: the ratio as a share of its goal, or, where the goal is a least ratio, the goal as a share of
the ratio. So a bar that ends before the line met its goal, and figures of very different sizes can be compared.
"""

import json
import sys
from xml.sax.saxutils import escape

COLUMNS = 2
COLUMN_WIDTH = 645
NAME_WIDTH = 340  # names end here and bars begin
BAR_WIDTH = 160  # of the longest bar in the chart
LINE = 16
TEXT_BASE = 12  # from the top of a line to the foot of its text
GAP = 12  # between groups, and around the chart
COLORS = {True: "#3f8f5b", False: "#c0504d"}  # met, not met


def read_lines(path):
    """A dictionary of the machine and the sections in order, each with its rows."""
    results = {"programs": [], "sections": []}
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if "program" in line:
                results["programs"].append(line)
                continue
            title = line.pop("section")
            if not results["sections"] or results["sections"][-1]["title"] != title:
                results["sections"].append({"title": title, "program": results["programs"][-1]["program"], "rows": []})
            results["sections"][-1]["rows"].append(line)
    return results


def goal_of(row):
    """The words and the number of, say, "at most 1.1"."""
    words, number = row["goal"].rsplit(" ", 1)
    return words, float(number)


def share(row):
    """How much of what the goal allows was used: 1 is just met, None more than can be drawn."""
    words, goal = goal_of(row)
    over, under = (row["ratio"], goal) if words == "at most" else (goal, row["ratio"])
    if not over:
        return 0
    return over / under if under else None


def text(x, y, content, **attributes):
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y}"{more}>{escape(content)}</text>'


def draw_row(row, x, y, longest):
    used = share(row)
    width = BAR_WIDTH * (longest if used is None else used) / longest
    words, goal = goal_of(row)
    yield text(x + NAME_WIDTH - 6, y + TEXT_BASE, row["name"], text_anchor="end")
    yield (
        f'<rect x="{x + NAME_WIDTH}" y="{y + 2}" width="{max(width, 1):.1f}" height="{LINE - 4}"'
        f' fill="{COLORS[row["met"]]}"/>'
    )
    yield text(x + NAME_WIDTH + BAR_WIDTH + 6, y + TEXT_BASE, f'{row["ratio"]:.4g} ({words} {goal:.3g})')


def draw_group(group, x, y, longest):
    """The group's title and rows, and the line at which goals are met."""
    title, rows = group
    mark = x + NAME_WIDTH + BAR_WIDTH / longest
    yield text(x, y + TEXT_BASE, title, font_weight="bold")
    for i, row in enumerate(rows):
        yield from draw_row(row, x, y + LINE * (i + 1), longest)
    yield f'<path d="M{mark:.1f} {y + LINE}V{y + LINE * (len(rows) + 1)}" stroke="#222" stroke-dasharray="3 2"/>'


def height(group):
    return LINE * (len(group[1]) + 1) + GAP


def draw(results):
    groups = [(s["title"], [row for row in s["rows"] if "goal" in row]) for s in results["sections"]]
    groups = [group for group in groups if group[1]]
    rows = [row for _, rows in groups for row in rows]
    longest = max([1.25, *(used for used in map(share, rows) if used is not None)])
    machine = results["programs"][0]
    met = sum(row["met"] for row in rows)
    head = 3 * LINE + 2 * GAP
    name = f'{machine["device"]}: {machine["description"]}, {machine["cores"]} CPU cores'
    title = f"{name}; {met} of {len(rows)} goals met"
    legend = (
        "Bars: ratio / goal, or goal / ratio where the goal is a least ratio; shorter is better."
        " The dashed line is the goal."
    )
    body = [
        text(GAP, GAP + TEXT_BASE + 2, title, font_size=15, font_weight="bold"),
        text(GAP, GAP + LINE + TEXT_BASE + 4, legend),
    ]
    column = (sum(map(height, groups)) + COLUMNS - 1) // COLUMNS
    x, y, lowest = GAP, head, head
    for group in groups:
        # A column is left where more than half of the group would be below its end.
        if y - head + height(group) / 2 > column:
            x, y = x + COLUMN_WIDTH, head
        body.extend(draw_group(group, x, y, longest))
        y += height(group)
        lowest = max(lowest, y)
    width = COLUMNS * COLUMN_WIDTH + GAP
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{lowest}" viewBox="0 0 {width} {lowest}"'
        ' font-family="DejaVu Sans, sans-serif" font-size="11" fill="#222">\n'
        '<rect width="100%" height="100%" fill="#fff"/>'
    )
    return "\n".join([start, *body, "</svg>\n"])


def main(source, *paths):
    *results_path, chart_path = paths
    if results_path:
        results = read_lines(source)
        with open(results_path[0], "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)
            file.write("\n")
    else:
        with open(source, encoding="utf-8") as file:
            results = json.load(file)
    with open(chart_path, "w", encoding="utf-8") as file:
        file.write(draw(results))


main(*sys.argv[1:])
