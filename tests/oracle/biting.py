"""How often cases bite: in how many a plugin rejected some node, and in how many its scores told nodes apart.

Knows nothing of how cases are generated or answered: it reads the answers, and asks `features` what a case has.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

from .features import Bites, features

if TYPE_CHECKING:
    from collections.abc import Iterable

Case: TypeAlias = dict[str, Any]
Record: TypeAlias = dict[str, Any]


def biting(records: Iterable[Record]) -> dict[str, dict[str, int]]:
    """Count per plugin the records where it rejected something and where its scores differed."""
    rejected: Counter[str] = Counter()
    scored: Counter[str] = Counter()
    for record in records:
        rejected.update(_rejectors(record))
        scored.update(_discerning(record))
    return _by_plugin(rejected, scored)


def _by_plugin(rejected: Counter[str], scored: Counter[str]) -> dict[str, dict[str, int]]:
    plugins = sorted({*rejected, *scored})
    return {name: {"rejected": rejected[name], "scored": scored[name]} for name in plugins}


def _rejectors(record: Record) -> set[str]:
    found = {verdict["plugin"] for verdict in record.get("rejected", {}).values()}
    if "preFilter" in record:
        found.add(f"{record['preFilter']['plugin'] or 'no plugin'} (PreFilter)")
    return found


def _discerning(record: Record) -> set[str]:
    seen: dict[str, set[int]] = {}
    for scores in record.get("scores", {}).values():
        for plugin, score in scores.items():
            seen.setdefault(plugin, set()).add(score)
    return {plugin for plugin, scores in seen.items() if len(scores) > 1}


def table(counts: dict[str, dict[str, int]], total: int) -> str:
    """Lay out the counts of `biting` as text."""
    lines = [f"{'of ' + str(total) + ' decisions':32} {'rejected':>8} {'scored':>8}"]
    lines += [f"{name:32} {row['rejected']:8} {row['scored']:8}" for name, row in counts.items()]
    return "\n".join(lines)


class Survey:
    """Counts cases with one pod and their answers as they come, so that a long run keeps none of them."""

    def __init__(self) -> None:
        self.total = 0
        self.by_feature = Bites()
        self._rejected: Counter[str] = Counter()
        self._scored: Counter[str] = Counter()

    def add(self, case: Case, record: Record) -> None:
        """Count one answer, by plugin and by what the case has."""
        rejectors, scorers = _rejectors(record), _discerning(record)
        self.total += 1
        self._rejected.update(rejectors)
        self._scored.update(scorers)
        self.by_feature.count(features(case), {name.removesuffix(" (PreFilter)") for name in rejectors}, scorers)

    def text(self) -> str:
        """Lay out all counts."""
        counts = _by_plugin(self._rejected, self._scored)
        return f"{table(counts, self.total)}\n{self.by_feature.table()}"
