"""The order of the feasible nodes in a decision record: by sums of scores, the highest tier first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]


def sums_by_tier(record: Record, node: str) -> dict[int, int]:
    """Return a feasible node's sums of scores by tier, the highest tier first; the lists can be compared with `<`."""
    higher = {int(tier): total for tier, total in record.get("tiers", {}).get(node, {}).items()}
    return dict(sorted(higher.items(), reverse=True)) | {0: record["total"][node]}


def ranked(record: Record) -> list[str]:
    """Return the names of the feasible nodes, the best first; nodes with equal sums are ordered by name."""
    return sorted(
        record.get("total", {}), key=lambda node: ([-total for total in sums_by_tier(record, node).values()], node)
    )


def deciding_tier(record: Record, node: str, other: str) -> int:
    """Return the highest tier in which two feasible nodes have different sums of scores; 0 if all sums are equal."""
    sums, others = sums_by_tier(record, node), sums_by_tier(record, other)
    return next((tier for tier in sums if sums[tier] != others[tier]), 0)
