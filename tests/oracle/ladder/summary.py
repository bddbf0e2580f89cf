"""The result of a comparison as it is stored, without the cases."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

RESULTS: Final = Path(__file__).with_name("results")
"""The folder of the results that the documents show: one JSON file for each version."""


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
