# SPDX-License-Identifier: LGPL-2.1-or-later
"""Turns the lines of JSON that the benchmarks wrote into one JSON document and a bar chart in SVG.

Usage: chart.py LINES RESULTS.json CHART.svg

Each table of the benchmarks is a group of bars on a scale of its own.
"""

import json
import sys
from xml.sax.saxutils import escape

WIDTH = 1040
NAME_WIDTH = 400  # names end here and bars begin
BAR_WIDTH = 300  # of a group's largest figure
LINE = 22
TEXT_BASE = 15  # from the top of a line to the foot of its text
GAP = 20  # between groups
COLORS = {None: "#7a8ca5", True: "#3f8f5b", False: "#c0504d"}  # no goal, met, not met


def read_results(path):
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


def figure(value):
    """Four digits or more, none of them beyond the point if it is large."""
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.4g}"


def text(x, y, content, **attributes):
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x}" y="{y}"{more}>{escape(content)}</text>'


def draw_row(row, y, largest):
    width = BAR_WIDTH * row["value"] / largest if largest else 0
    label = f'{figure(row["value"])} {row["unit"]}, ratio {row["ratio"]:.3g}'
    if "goal" in row:
        label += f' ({row["goal"]}: {"met" if row["met"] else "not met"})'
    yield text(NAME_WIDTH - 8, y + TEXT_BASE, row["name"], text_anchor="end")
    yield (
        f'<rect x="{NAME_WIDTH}" y="{y + 3}" width="{max(width, 1):.1f}" height="{LINE - 6}"'
        f' fill="{COLORS[row.get("met")]}"/>'
    )
    yield text(NAME_WIDTH + width + 8, y + TEXT_BASE, label)


def draw(results):
    machine = results["programs"][0]
    body = []
    y = GAP
    title = f'{machine["device"]}: {machine["description"]}, {machine["cores"]} CPU cores'
    body.append(text(GAP, y + TEXT_BASE, title, font_size=16, font_weight="bold"))
    y += LINE + GAP
    for section in results["sections"]:
        body.append(text(GAP, y + TEXT_BASE, section["title"], font_weight="bold"))
        y += LINE
        largest = max(row["value"] for row in section["rows"])
        for row in section["rows"]:
            body.extend(draw_row(row, y, largest))
            y += LINE
        y += GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}"'
        ' font-family="DejaVu Sans, sans-serif" font-size="12" fill="#222">\n<rect width="100%" height="100%" fill="#fff"/>'
    )
    return "\n".join([head, *body, "</svg>\n"])


def main(lines, results_path, chart_path):
    results = read_results(lines)
    with open(results_path, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=2)
        file.write("\n")
    with open(chart_path, "w", encoding="utf-8") as file:
        file.write(draw(results))


main(*sys.argv[1:])
