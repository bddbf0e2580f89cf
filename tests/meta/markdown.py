"""What the project's documents are made of: sections, tables, blocks of code, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "bench/**/*.md")
    for path in ROOT.glob(pattern)
    if path.is_file()
)
LANGUAGE = ROOT / "docs" / "reference" / "language.md"
_FENCE = re.compile(r"^ *```(\S*)((?: +\S+)*)\s*$")
_HEADING = re.compile(r"^#+ +(.*?)\s*$")
_CODE = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    kind: str
    text: str
    line: int
    words: tuple[str, ...] = ()
    """What stands behind the kind: what the block is, see `tests.pages`."""


def shown(path: Path) -> str:
    """A document's name, for test ids and messages."""
    return str(path.relative_to(ROOT))


def blocks(path: Path) -> list[Block]:
    return blocks_of(path.read_text("utf-8"), shown(path))


def blocks_of(text: str, name: str = "") -> list[Block]:
    """The blocks of code of a document's text."""
    return [one for one in _parts(text, name) if isinstance(one, Block)]


def prose(path: Path) -> str:
    """A document without its blocks of code."""
    return "\n".join(one for one in _parts(path.read_text("utf-8"), shown(path)) if isinstance(one, str))


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    found = (_HEADING.match(line) for line in prose(path).splitlines())
    return {re.sub(r"[^\w\- ]", "", match[1].lower()).replace(" ", "-") for match in found if match}


def links(path: Path) -> list[str]:
    return _LINK.findall(_CODE.sub("", prose(path)))


def section(path: Path, title: str) -> str:
    """The prose under a heading of the second level."""
    found = re.split(r"^## +", prose(path), flags=re.MULTILINE)
    return next(text for text in found if text.splitlines()[0].strip() == title)


def table(path: Path, title: str) -> list[list[str]]:
    """The rows of the first table of a section, without its head."""
    rows = [line for line in section(path, title).splitlines() if line.startswith("|")]
    return [_cells(row) for row in rows[2:]]


def tables(path: Path) -> Iterator[list[dict[str, str]]]:
    """All tables of a document, each row by the names of its columns."""
    for group in re.findall(r"(?:^\|.*\n?)+", prose(path), flags=re.MULTILINE):
        head, _, *rows = (_cells(row) for row in group.splitlines())
        yield [dict(zip(head, row, strict=True)) for row in rows]


def codes(text: str) -> list[str]:
    """The pieces of inline code of a text."""
    return _CODE.findall(text)


def _cells(row: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", row.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]


def _parts(text: str, name: str) -> Iterator[Block | str]:
    kind, words, start = "", (), 0
    inside: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        fence = _FENCE.match(line)
        if fence is None and inside is None:
            yield line
        elif fence is None:
            assert inside is not None
            inside.append(line)
        elif inside is None:
            kind, words, inside, start = fence[1], tuple(fence[2].split()), [], number
        else:
            yield Block(kind, "\n".join(inside) + "\n", start, words)
            inside = None
    assert inside is None, f"{name}:{start}: the block of code does not end"
