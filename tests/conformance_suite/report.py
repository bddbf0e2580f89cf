"""What became of the specs: read from the program's lines, laid out as a table.

Knows nothing of how they were run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "spec\t"
WAITS: Final = {"one using 0.0.0.0 hostIP": 300.0}
"""Specs that assert nothing but by waiting: the shortest time in which one has been played. Units: seconds."""


@dataclass(frozen=True, slots=True)
class Spec:
    """One spec that was played."""

    name: str
    state: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether it passed, and took as long as it has to."""
        least = max((seconds for part, seconds in WAITS.items() if part in self.name), default=0.0)
        return self.state == "passed" and self.seconds >= least

    @property
    def line(self) -> str:
        """What a table says of it."""
        word = "passed" if self.passed else f"{self.state}, too soon" if self.state == "passed" else self.state
        return f"{word:8} {self.seconds:6.1f} s  {self.name}"


def read(line: str) -> Spec | None:
    """Read one line of the program; None where it tells of no spec."""
    if not line.startswith(PREFIX):
        return None
    _, state, seconds, name = line.rstrip("\n").split("\t", 3)
    return Spec(name, state, float(seconds))


def table(specs: Sequence[Spec]) -> str:
    """Lay out all specs by name, and how many passed."""
    lines = [spec.line for spec in sorted(specs, key=lambda spec: spec.name)]
    return "\n".join([*lines, f"{sum(spec.passed for spec in specs)} of {len(specs)} passed"])
