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


def by_feature(answered: Iterable[tuple[Case, Record]]) -> Bites:
    """Count cases with one pod and their answers by what the cases have."""
    bites = Bites()
    for case, record in answered:
        rejectors = {name.removesuffix(" (PreFilter)") for name in _rejectors(record)}
        bites.count(features(case), rejectors, _discerning(record))
    return bites
