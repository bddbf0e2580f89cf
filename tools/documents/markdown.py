"""The parts of a Markdown document: sections, tables, fenced blocks and links, with their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCUMENTS: Final = sorted(
    path
    for pattern in ("*.md", ".github/**/*.md", "docs/**/*.md", "examples/**/*.md", "bench/**/*.md")
    for path in ROOT.glob(pattern)
    if path.is_file()
)
LANGUAGE: Final = ROOT / "docs" / "reference" / "language.md"
_FENCE: Final = re.compile(r"^ *```(\S*)((?: +\S+)*)\s*$")
_HEADING: Final = re.compile(r"^#+ +(.*?)\s*$")
_CODE: Final = re.compile(r"`([^`]+)`")
_LINK: Final = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    kind: str
    text: str
    line: int
    words: tuple[str, ...] = ()
    """The words after the block's language, which tell tests how to use the block (see `tests.pages`)."""


@dataclass(frozen=True)
class Line:
    """A line of prose and its number, from 1."""

    text: str
    number: int


def shown(path: Path) -> str:
    """Return a path relative to the root of the repository, for test ids and messages."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def blocks(path: Path) -> list[Block]:
    """Return the fenced code blocks of a document."""
    return blocks_of(path.read_text("utf-8"), shown(path))


def blocks_of(text: str, name: str = "") -> list[Block]:
    """Return the fenced code blocks of a text."""
    return [one for one in _parts(text, name) if isinstance(one, Block)]


def prose_lines(path: Path) -> list[Line]:
    """Return the lines of a document outside of fenced blocks."""
    return [one for one in _parts(path.read_text("utf-8"), shown(path)) if isinstance(one, Line)]


def prose(path: Path) -> str:
    """Return the text of a document outside of fenced blocks."""
    return "\n".join(one.text for one in prose_lines(path))


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub and the site generate them."""
    found = (_HEADING.match(line) for line in prose(path).splitlines())
    return {re.sub(r"[^\w\- ]", "", match[1].lower()).replace(" ", "-") for match in found if match}


def links(path: Path) -> list[str]:
    """Return the targets of a document's links."""
    return [target for _, target in numbered_links(path)]


def numbered_links(path: Path) -> list[tuple[int, str]]:
    """Return the targets of a document's links, each with its line number."""
    return [(one.number, link) for one in prose_lines(path) for link in _LINK.findall(_CODE.sub("", one.text))]


def section(path: Path, title: str) -> str:
    """Return the prose under a heading of the second level."""
    found = re.split(r"^## +", prose(path), flags=re.MULTILINE)
    return next(text for text in found if text.splitlines()[0].strip() == title)


def table(path: Path, title: str) -> list[list[str]]:
    """Return the rows of the first table of a section, without the header."""
    rows = [line for line in section(path, title).splitlines() if line.startswith("|")]
    return [_cells(row) for row in rows[2:]]


def tables(path: Path) -> Iterator[list[dict[str, str]]]:
    """Yield the tables of a document; each row is a dict of cells by column."""
    for group in re.findall(r"(?:^\|.*\n?)+", prose(path), flags=re.MULTILINE):
        head, _, *rows = (_cells(row) for row in group.splitlines())
        yield [dict(zip(head, row, strict=True)) for row in rows]


def codes(text: str) -> list[str]:
    """Return the inline code spans of a text."""
    return _CODE.findall(text)


def _cells(row: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", row.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _parts(text: str, name: str) -> Iterator[Block | Line]:
    kind, words, start = "", (), 0
    inside: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None:
            if inside is None:
                yield Line(line, number)
            else:
                inside.append(line)
        elif inside is None:
            kind, words, inside, start = fence[1], tuple(fence[2].split()), [], number
        else:
            yield Block(kind, "\n".join(inside) + "\n", start, words)
            inside = None
    if inside is not None:
        raise ValueError(f"{name}:{start}: the block of code does not end")
