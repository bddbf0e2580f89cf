"""Draw docs/inside/architecture.svg: `python tools/draw_architecture.py`.

The layers come from the import contract in pyproject.toml, the description of a package from the first line of its
docstring, and the two ways from the numbered lines of docs/inside/architecture.md.
"""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "inside" / "architecture.md"
DRAWING: Final = ROOT / "docs" / "inside" / "architecture.svg"
WALKS: Final = {"pod": "A pod's way", "policy": "A policy's way"}
"""Kinds of ways, and the sections of the page that list their steps."""
WIDTH: Final = 900
"""Width of the drawing. Unit: pixels, as for all lengths below."""
_EDGE, _GAP, _PAD, _LINE = 12, 12, 12, 18
_FIRST_STOP, _STEP, _RADIUS = 428, 56, 11
_LETTER = 7.2
"""Average width of a letter of the text."""
_BANDS: Final = {"pod": 24, "policy": 56}
"""Distance of the stops of a way from the upper edge of a box."""
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; paint-order: stroke; stroke: #f6f8fa; stroke-width: 4px }
.title { font-weight: 600; font-size: 15px }
.name { font-family: ui-monospace, monospace; fill: #59636e; stroke: none }
.paper { fill: #ffffff }
.box { fill: #f6f8fa; stroke: #d0d7de }
.way { fill: none; stroke-width: 2.5 }
path.pod { stroke: #0969da } path.policy { stroke: #bc4c00 }
circle.pod { fill: #0969da } circle.policy { fill: #bc4c00 }
.number { fill: #ffffff; stroke: none; font-weight: 600; text-anchor: middle }"""


class Box(NamedTuple):
    """A package and its place in the drawing."""

    room: str
    x: int
    y: int
    width: int
    height: int


def stops(title: str) -> list[str]:
    """Return the functions of a way: the first code of each numbered line of its section."""
    section = re.split(r"^## +", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    steps = next(part for part in section if part.startswith(f"{title}\n"))
    return re.findall(r"^\d+\. `([^`]+)`", steps, flags=re.MULTILINE)


def layers() -> list[list[str]]:
    """Return the packages by layer, upper layers first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = next(one for one in project["tool"]["importlinter"]["contracts"] if one["name"] == "Layers")
    return [[name.strip().removeprefix("policysched.") for name in row.split("|")] for row in contract["layers"]]


def _texts(room: str, width: int) -> list[tuple[str, str]]:
    """Return the lines of a box with their style: the name, and the first line of the docstring."""
    doc = ast.get_docstring(ast.parse((ROOT / "policysched" / room / "__init__.py").read_text("utf-8"))) or ""
    purpose = doc.split("\n", 1)[0].replace("`", "")
    letters = int((width - 2 * _PAD) / _LETTER)
    return [("title", room), *(("", line) for line in textwrap.wrap(purpose, letters))]


def _height(room: str, width: int) -> int:
    return 2 * _PAD + _LINE * len(_texts(room, width))


def boxes() -> dict[str, Box]:
    """Place the packages: a row for each package with stops, and a row for the other packages of its layer."""
    visited = {name.split(".")[0] for title in WALKS.values() for name in stops(title)}
    placed: dict[str, Box] = {}
    y, full = _EDGE, WIDTH - 2 * _EDGE
    for layer in layers():
        main = [room for room in layer if room in visited]
        others = [room for room in layer if room not in visited]
        for row in (*([room] for room in main), *([others] if others else [])):
            width = (full - _GAP * (len(row) - 1)) // len(row)
            text_width = _FIRST_STOP - 2 * _RADIUS if row[0] in visited else width
            height = max(_height(room, text_width) for room in row)
            if row[0] in visited:
                height = max(height, max(_BANDS.values()) + 24)
            for index, room in enumerate(row):
                placed[room] = Box(room, _EDGE + index * (width + _GAP), y, width, height)
            y += height + _GAP
    return placed


def _frame(box: Box) -> str:
    return f'<rect class="box" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6"/>'


def _lines(box: Box) -> Iterator[str]:
    """Write the texts of a box, drawn above the ways."""
    has_stops = any(name.startswith(f"{box.room}.") for title in WALKS.values() for name in stops(title))
    for number, (kind, line) in enumerate(_texts(box.room, _FIRST_STOP - 2 * _RADIUS if has_stops else box.width)):
        y = box.y + _PAD + _LINE * number + 13
        yield f'<text class="{kind}" x="{box.x + _PAD}" y="{y}">{escape(line)}</text>'


def _way(kind: str, placed: dict[str, Box]) -> Iterator[str]:
    """Draw a way through its packages, from left to right."""
    shift = _STEP // 2 if kind == "policy" else 0
    points = [
        (_FIRST_STOP + shift + number * _STEP, placed[name.split(".")[0]].y + _BANDS[kind])
        for number, name in enumerate(stops(WALKS[kind]))
    ]
    path = f"M{points[0][0]},{points[0][1]}"
    for (x1, y1), (x2, y2) in pairwise(points):
        path += f" C{x1 + _STEP // 2},{y1} {x2 - _STEP // 2},{y2} {x2},{y2}"
    yield f'<path class="way {kind}" d="{path}"/>'
    for number, (x, y) in enumerate(points, 1):
        yield f'<circle class="{kind}" cx="{x}" cy="{y}" r="{_RADIUS}"/>'
        yield f'<text class="number" x="{x}" y="{y + 5}">{number}</text>'


def _legend(y: int) -> Iterator[str]:
    for kind, title in WALKS.items():
        yield f'<circle class="{kind}" cx="{_EDGE + 8}" cy="{y - 5}" r="6"/>'
        yield f'<text class="title" x="{_EDGE + 22}" y="{y}">{title}</text>'
        for number, name in enumerate(stops(title), 1):
            yield f'<text class="name" x="{_EDGE + 22}" y="{y + 4 + _LINE * number}">{number}  {escape(name)}</text>'
        y += _legend_height(title)


def _legend_height(title: str) -> int:
    return _LINE * len(stops(title)) + 40


def drawing() -> str:
    """Draw packages, ways and the names of the numbered steps."""
    placed = boxes()
    legend = max(box.y + box.height for box in placed.values()) + 34
    height = legend + sum(_legend_height(title) for title in WALKS.values()) - 28
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">']
    parts += ["<title>Packages of policysched by layer, with the steps of a pod and of a policy</title>"]
    parts += [f"<style>{_STYLE}\n</style>"]
    parts += [f'<rect class="paper" width="{WIDTH}" height="{height}"/>']
    parts += [_frame(box) for box in placed.values()]
    for kind in WALKS:
        parts += _way(kind, placed)
    for box in placed.values():
        parts += _lines(box)
    parts += _legend(legend)
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    DRAWING.write_text(drawing(), "utf-8")
