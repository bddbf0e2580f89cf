"""Results of replaying a record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A decision whose repetition differs from the record, with the part that differs."""

    number: int
    """Number of the decision in its run, from 1."""
    pod: str
    what: str
    """Name of the part that differs: node, text, totals …"""
    recorded: str
    replayed: str
    run: int = field(default=1, kw_only=True)
    """Number of the scheduler run, from 1."""

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as plain values."""
        return {
            "run": self.run, "decision": self.number, "pod": self.pod, "what": self.what, "recorded": self.recorded,
            "replayed": self.replayed,
        }  # fmt: skip


@dataclass(slots=True)
class Replayed:
    """The results of a replay: counts of repeated decisions, and differences."""

    first: int = 0
    """Number of the first repeated decision, counted by its scheduler process."""
    last: int = 0
    runs: int = 0
    """Number of scheduler processes that wrote the files; each process numbers its decisions from 1."""
    decisions: int = 0
    """Number of repeated decisions."""
    placed: int = 0
    claims: int = 0
    """Number of repeated allocations of resource claims."""
    groups: int = 0
    """Number of repeated decisions about pod groups."""
    searches: int = 0
    """Number of repeated PostFilter runs."""
    extended: int = 0
    """Number of decisions with extenders, whose answers are not recorded."""
    moved_on: int = 0
    """Number of PostFilter runs during which the cluster changed, so that the result could not be compared."""
    failures: list[str] = field(default_factory=list)
    """Changes of the cluster that failed in the replay, and may have failed when recorded, with reasons."""
    plugins: set[str] = field(default_factory=set)
    """Names of out-of-tree plugins that the replay called."""
    differences: list[ReplayDifference] = field(default_factory=list)
    remainder: list[str] = field(default_factory=list)
    """Parts of the record that could not be replayed, with reasons."""
    damaged: bool = False
    """Whether a file of the record was altered; a truncated file is not damaged."""
    interrupted: bool = False

    def found(self, differences: Iterable[ReplayDifference]) -> None:
        """Add differences between decisions and their repetitions."""
        self.differences.extend(replace(one, run=max(self.runs, 1)) for one in differences)

    @property
    def failed_changes(self) -> list[str]:
        """One sentence about failed changes, in a list; empty without failed changes."""
        if not self.failures:
            return []
        return [f"failed cluster changes: {len(self.failures):,}, first: {self.failures[0]}"]

    @property
    def _named(self) -> str:
        """The numbers of the repeated decisions as text, for the summary."""
        if self.runs > 1:
            return f"{self.decisions:,} decision{'s' * (self.decisions != 1)} in {self.runs:,} runs"
        numbers = f"decisions {self.first:,}–{self.last:,}"
        missing = self.last - self.first + 1 - self.decisions
        return numbers if not missing else f"{self.decisions:,} of {numbers}"

    @property
    def exit_code(self) -> int:
        """0 if all decisions are equal, 1 if some differ, 2 if a file cannot be used."""
        if self.differences:
            return 1
        return 2 if self.damaged or not self.decisions + self.extended else 0

    @property
    def summary(self) -> str:
        """The results in one sentence."""
        if not self.decisions:
            said = "no decision was replayed"
        else:
            differ = len({(one.run, one.number) for one in self.differences})
            named = self._named
            said = f"{named} equal" if not differ else f"{named}: {differ:,} of {self.decisions:,} differ"
        rest = [f"{self.extended:,} not replayed because extenders were called"] if self.extended else []
        if self.moved_on:
            rest.append(f"{self.moved_on:,} preemption searches not compared because the cluster changed")
        rest += self.failed_changes
        if self.plugins and self.differences:
            names = ", ".join(sorted(self.plugins))
            rest.append(f"external data of out-of-tree plugins is not recorded: {names}")
        rest += ["interrupted"] if self.interrupted else []
        return "; ".join([said, *rest, *self.remainder])

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain values."""
        return {
            "summary": self.summary,
            "equal": not self.differences,
            "runs": self.runs,
            "first": self.first,
            "last": self.last,
            "decisions": self.decisions,
            "placed": self.placed,
            "claims": self.claims,
            "podGroups": self.groups,
            "searches": self.searches,
            "extended": self.extended,
            "searchesNotCompared": self.moved_on,
            "failedChanges": len(self.failures),
            "outOfTreePlugins": sorted(self.plugins),
            "differences": [one.to_dict() for one in self.differences],
            "remainder": list(self.remainder),
            "damaged": self.damaged,
            "interrupted": self.interrupted,
        }
