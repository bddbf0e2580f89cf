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
"""Titles of the architecture page's sections that list the steps of a pod's and of a policy's path."""
WIDTH: Final = 900
"""Width of the drawing. Units: pixels, as for all lengths below."""
_EDGE, _GAP, _PAD, _LINE = 12, 12, 10, 18
_FIRST_STOP, _STEP, _RADIUS, _CORNER = 574, 20, 10, 8
"""Place of the first step; distance between steps of both paths; radius of a step's circle; radius of a corner.

Right of the first stop, boxes have no text.
"""
_TEXT_END: Final = _FIRST_STOP - _RADIUS - 8
_LETTER = 7.2
"""Average width of a letter of the text."""
_BANDS: Final = {"pod": 24, "policy": 56}
"""Distance between a path's steps and the upper edge of a package's box, by path."""
_BESIDE: Final = {"rules": 270, "kube": 140}
"""Width of the text in a box that contains steps of a path and shares its row, by package."""
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
    """Return the functions on a path: the first inline code in each numbered line of the path's section."""
    section = re.split(r"^## +", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    steps = next(part for part in section if part.startswith(f"{title}\n"))
    return re.findall(r"^\d+\. `([^`]+)`", steps, flags=re.MULTILINE)


def layers() -> list[list[str]]:
    """Return the packages by layer, upper layers first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = next(one for one in project["tool"]["importlinter"]["contracts"] if one["name"] == "Layers")
    return [[name.strip().removeprefix("policysched.") for name in row.split("|")] for row in contract["layers"]]


def _texts(box: Box) -> list[tuple[str, str]]:
    """Return the lines of a box with their style: the name, and the first line of the docstring."""
    doc = ast.get_docstring(ast.parse((ROOT / "policysched" / box.room / "__init__.py").read_text("utf-8"))) or ""
    purpose = doc.split("\n", 1)[0].replace("`", "")
    end = _TEXT_END if box.room in _visited() else box.x + box.width - _PAD
    letters = int((end - box.x - _PAD) / _LETTER)
    return [("title", box.room), *(("", line) for line in textwrap.wrap(purpose, letters))]


def _visited() -> set[str]:
    """Return the packages that contain a step of either path."""
    return {name.split(".")[0] for title in WALKS.values() for name in stops(title)}


def _row(layer: list[str], y: int) -> list[Box]:
    """Place the packages of a layer side by side; a package with steps of a path is the last and widest."""
    visited = _visited()
    main = next((room for room in layer if room in visited), None)
    others = [room for room in layer if room != main]
    x, end, row = _EDGE, WIDTH - _EDGE, []
    left = end if main is None else _TEXT_END - _BESIDE[main] - _GAP if others else x
    shares = [max(9, len(room)) for room in others]
    for room, share in zip(others, shares, strict=True):
        width = (left - _EDGE - _GAP * (len(others) - 1)) * share // sum(shares)
        row.append(Box(room, x, y, width, 0))
        x += width + _GAP
    if main is not None:
        row.append(Box(main, x, y, end - x, 0))
    height = max(2 * _PAD + _LINE * len(_texts(box)) for box in row)
    if main is not None:
        height = max(height, max(_BANDS.values()) + 24)
    return [box._replace(height=height) for box in row]


def boxes() -> dict[str, Box]:
    """Return the boxes of all packages; each layer is a row."""
    placed: dict[str, Box] = {}
    y = _EDGE
    for layer in layers():
        row = _row(layer, y)
        placed |= {box.room: box for box in row}
        y += row[0].height + _GAP
    return placed


def _frame(box: Box) -> str:
    return f'<rect class="box" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6"/>'


def _lines(box: Box) -> Iterator[str]:
    """Yield the SVG elements of the texts in a box."""
    for number, (kind, line) in enumerate(_texts(box)):
        y = box.y + _PAD + _LINE * number + 13
        yield f'<text class="{kind}" x="{box.x + _PAD}" y="{y}">{escape(line)}</text>'


def points(kind: str, placed: dict[str, Box]) -> list[tuple[int, int]]:
    """Return the coordinates of the steps of a path; steps of both paths alternate from left to right."""
    first = _FIRST_STOP + (_STEP if kind == "policy" else 0)
    rooms = [name.split(".")[0] for name in stops(WALKS[kind])]
    return [(first + 2 * _STEP * number, placed[room].y + _BANDS[kind]) for number, room in enumerate(rooms)]


def _way(kind: str, placed: dict[str, Box]) -> Iterator[str]:
    """Yield the SVG elements of a path: from each step to the height of the next step, then to the right."""
    found = points(kind, placed)
    path = f"M{found[0][0]},{found[0][1]}"
    for (x1, y1), (x2, y2) in pairwise(found):
        if y1 != y2:
            path += f" V{y2 - _CORNER if y2 > y1 else y2 + _CORNER} Q{x1},{y2} {x1 + _CORNER},{y2}"
        path += f" H{x2}"
    yield f'<path class="way {kind}" d="{path}"/>'
    for number, (x, y) in enumerate(found, 1):
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
    """Return the SVG of the drawing: packages, paths and the names of the numbered steps."""
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
