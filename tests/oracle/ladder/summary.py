"""The result of a comparison without the cases: as it is stored for the documents, and as sections of Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

RESULTS: Final = Path(__file__).with_name("results")
"""The folder of the results that the documents show: one JSON file for each version."""

OUTPUT: Final = Path("build/ladder")
"""The folder of the reports."""
FILES: Final = 25
"""The largest number of changed files that are listed."""


class Found(msgspec.Struct, frozen=True):
    """A difference: its cause as text, and how many cases the cause explains alone."""

    difference: str
    cause: str
    cases: int


class Summary(msgspec.Struct, frozen=True):
    """The result of a comparison of two versions."""

    old: str
    new: str
    seed: int
    asked: dict[str, int]
    """The number of cases by generator."""
    differing: dict[str, int]
    """The number of cases with another answer, by generator."""
    found: list[Found]
    several: int
    """The number of cases that differ for several causes at once."""
    unexplained: list[str]
    """The ids of the cases without a known cause."""
    gates: list[tuple[str, str, str]]
    """The changed feature gates that the scheduler reads, each with its old and new state."""
    files: list[tuple[str, int, int]]
    """The changed files of the scheduler, each with the numbers of added and removed lines."""


def stored(folder: Path = RESULTS) -> list[Summary]:
    """Return the stored results, the oldest version first."""
    found = [msgspec.json.decode(path.read_bytes(), type=Summary) for path in folder.glob("*.json")]
    return sorted(found, key=lambda one: [int(part) for part in one.new.removeprefix("v").split("-")[0].split(".")])


def store(summary: Summary, folder: Path = RESULTS) -> None:
    """Write a result; it replaces the one of the same version."""
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(summary), indent=1)
    (folder / f"{summary.new}.json").write_bytes(text + b"\n")


def sections(summary: Summary, level: int) -> str:
    """Return the sections about a comparison with headings of a level."""
    heading = "#" * level
    files = summary.files
    lines = f"+{sum(added for _, added, _ in files):,} -{sum(removed for *_, removed in files):,} lines"
    rows = [(name, f"{count:,}", f"{summary.differing.get(name, 0):,}") for name, count in summary.asked.items()]
    shown = [(path, str(added), str(removed)) for path, added, removed in files[:FILES]]
    parts = [
        f"{sum(summary.asked.values()):,} cases, seed {summary.seed}: "
        f"{sum(summary.differing.values()):,} have another answer.\n",
        _table(("cases", "asked", "differ"), rows),
        f"{heading} Differences\n",
        _table(
            ("difference", "cause", "cases"),
            [(code(one.difference), one.cause, str(one.cases)) for one in _telling(summary.found)],
        ),
        _left(summary),
        f"{heading} Feature gates\n",
        _table(("gate", summary.old, summary.new), summary.gates),
        f"{heading} Changed files of the scheduler\n",
        f"{len(files)} files, {lines}.\n",
        _table(("file", "added", "removed"), shown),
    ]
    return "\n".join(parts)


def code(text: str) -> str:
    """Return a text as code of Markdown."""
    return f"`{text.replace('`', chr(39))}`"


def _telling(found: Sequence[Found]) -> Iterator[Found]:
    """Yield the differences, without repeated ones that explain no case."""
    known: set[str] = set()
    for one in found:
        if one.cases or one.difference not in known:
            yield one
        known.add(one.difference)


def _left(summary: Summary) -> str:
    left = summary.unexplained
    ids = f" ({', '.join(left[:10])})" if left else ""
    return f"Cases with several of these causes: {summary.several:,}. Cases with another cause: {len(left):,}{ids}.\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
