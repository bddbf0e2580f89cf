"""The drawing of docs/inside/architecture.md: `python tools/draw_architecture.py` writes architecture.svg beside it.

Everything in it is read from where it is true: which room stands on which from the import contract in pyproject.toml,
what a room is for from the first line of its package, the two ways from the numbered lines of the page.
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
WIDTH: Final = 1240
_EDGE, _GAP, _PAD, _LINE = 12, 14, 12, 16
_FIRST_STOP, _STEP, _RADIUS = 446, 64, 11
_SIDE = 262
"""How wide the rooms are that stand beside one with stops."""
_LETTER = 7.0
"""How wide a letter of the text is on average."""
_BANDS: Final = {"pod": 24, "policy": 58}
"""How far below the upper edge of a box the stops of a way are."""
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.folders, .name { font-family: ui-monospace, monospace; font-size: 11.5px; fill: #59636e }
.box { fill: #f6f8fa; stroke: #d0d7de }
.way { fill: none; stroke-width: 2.5 }
path.pod { stroke: #0969da } path.policy { stroke: #bc4c00 }
circle.pod { fill: #0969da } circle.policy { fill: #bc4c00 }
.number { fill: #ffffff; font-weight: 600; font-size: 12px; text-anchor: middle }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .folders, .name { fill: #9198a1 }
  .box { fill: #161b22; stroke: #3d444d }
  path.pod { stroke: #4493f8 } path.policy { stroke: #f0883e }
  circle.pod { fill: #4493f8 } circle.policy { fill: #f0883e }
  .number { fill: #0d1117 }
}"""


class Box(NamedTuple):
    """A room of the package and where it is drawn."""

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
    """Return the rooms by layer, the upper ones first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contract = next(one for one in project["tool"]["importlinter"]["contracts"] if one["name"] == "Layers")
    return [[name.strip().removeprefix("policysched.") for name in row.split("|")] for row in contract["layers"]]


def _texts(room: str, width: int) -> list[tuple[str, str]]:
    """Return the lines of a box with their class: the name, the first line of the package, its folders."""
    package = ROOT / "policysched" / room
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    purpose = doc.split("\n", 1)[0].replace("`", "")
    folders = "  ".join(f"{path.parent.name}/" for path in sorted(package.glob("*/__init__.py")))
    letters = int((width - 2 * _PAD) / _LETTER)
    lines = [("", line) for line in textwrap.wrap(purpose, letters)]
    return [("title", room), *lines, *(("folders", line) for line in textwrap.wrap(folders, letters))]


def _height(room: str, width: int) -> int:
    return 2 * _PAD + _LINE * len(_texts(room, width))


def boxes() -> dict[str, Box]:
    """Place the rooms: a row for each layer; beside a room with stops the others of its layer stand in a column."""
    visited = {name.split(".")[0] for title in WALKS.values() for name in stops(title)}
    placed: dict[str, Box] = {}
    y, full = _EDGE, WIDTH - 2 * _EDGE
    for row in layers():
        main = next((room for room in row if room in visited), None)
        beside = [room for room in row if room != main]
        if main is None:
            width = (full - _GAP * (len(row) - 1)) // len(row)
            height = max(_height(room, width) for room in row)
            for index, room in enumerate(row):
                placed[room] = Box(room, _EDGE + index * (width + _GAP), y, width, height)
        else:
            width = full - (_SIDE + _GAP if beside else 0)
            heights = [_height(room, _SIDE) for room in beside]
            column = sum(heights) + _GAP * (len(beside) - 1)
            height = max(_height(main, _FIRST_STOP - 2 * _RADIUS), max(_BANDS.values()) + 24, column)
            placed[main] = Box(main, _EDGE, y, width, height)
            at = y
            for index, room in enumerate(beside):
                tall = heights[index] + (height - column) // len(beside)
                placed[room] = Box(room, _EDGE + width + _GAP, at, _SIDE, tall)
                at += tall + _GAP
        y += height + _GAP
    return placed


def _room(box: Box) -> Iterator[str]:
    yield f'<rect class="box" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="6"/>'
    has_stops = any(name.startswith(f"{box.room}.") for title in WALKS.values() for name in stops(title))
    for number, (kind, line) in enumerate(_texts(box.room, _FIRST_STOP - 2 * _RADIUS if has_stops else box.width)):
        y = box.y + _PAD + _LINE * number + 12
        yield f'<text class="{kind}" x="{box.x + _PAD}" y="{y}">{escape(line)}</text>'


def _way(kind: str, placed: dict[str, Box]) -> Iterator[str]:
    """Draw a way from left to right through its rooms."""
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
        yield f'<text class="number" x="{x}" y="{y + 4}">{number}</text>'


def _legend(y: int) -> Iterator[str]:
    for column, (kind, title) in enumerate(WALKS.items()):
        x = _EDGE + column * (WIDTH // 2)
        yield f'<circle class="{kind}" cx="{x + 8}" cy="{y - 4}" r="6"/>'
        yield f'<text class="title" x="{x + 22}" y="{y}">{title}</text>'
        for number, name in enumerate(stops(title), 1):
            yield f'<text class="name" x="{x + 22}" y="{y + 4 + 16 * number}">{number}  {escape(name)}</text>'


def drawing() -> str:
    """Draw the rooms, the ways and what the numbers stand for."""
    placed = boxes()
    end = max(box.y + box.height for box in placed.values())
    legend = end + 34
    height = legend + 16 * max(len(stops(title)) for title in WALKS.values()) + 16
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">']
    parts += ["<title>The packages of policysched, a pod's way and a policy's way through them</title>"]
    parts += [f"<style>{_STYLE}\n</style>"]
    for box in placed.values():
        parts += _room(box)
    for kind in WALKS:
        parts += _way(kind, placed)
    parts += _legend(legend)
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    DRAWING.write_text(drawing(), "utf-8")
