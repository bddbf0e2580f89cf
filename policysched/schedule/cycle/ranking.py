"""The order of the feasible nodes of a decision record: sums of scores tier by tier, the highest tier first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Record = Mapping[str, Any]


def sums_by_tier(record: Record, node: str) -> dict[int, int]:
    """Return a feasible node's sums of scores, that of the highest tier first: the first that differ decide."""
    higher = {int(tier): total for tier, total in record.get("tiers", {}).get(node, {}).items()}
    return dict(sorted(higher.items(), reverse=True)) | {0: record["total"][node]}


def ranked(record: Record) -> list[str]:
    """Return the feasible nodes, the best first, and by name among equals."""
    return sorted(
        record.get("total", {}), key=lambda node: ([-total for total in sums_by_tier(record, node).values()], node)
    )


def deciding_tier(record: Record, node: str, other: str) -> int:
    """Return the highest tier in which two feasible nodes have different sums; 0 where they have the same ones."""
    sums, others = sums_by_tier(record, node), sums_by_tier(record, other)
    return next((tier for tier in sums if sums[tier] != others[tier]), 0)
