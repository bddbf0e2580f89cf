"""What faults came to, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.table import Table

from policysched.app.dry_run.tables import plain_table
from tests.faults.scene import Outcome

_HEADS = ("fault", "scheduler", "lost", "bound twice", "over", "state apart", "right after s", "kept MiB", "restarts")


def table(outcomes: Iterable[Outcome]) -> Table:
    """Give a line for each fault and scheduler."""
    return plain_table(None, [*_HEADS, ""], map(_row, outcomes), range(2, len(_HEADS)))


def _row(one: Outcome) -> Sequence[str]:
    said = "; ".join([*one.wrong, *([one.note] if one.note else [])])
    if one.note.startswith("not tried"):
        return [one.fault, one.scheduler, *["–"] * (len(_HEADS) - 2), said]
    apart = "–" if one.apart is None else str(one.apart)
    figures = [len(one.lost), len(one.twice), one.over]
    times = [f"{one.right_after:.1f}", f"{one.kept_mib:.0f}", str(one.restarts)]
    return [one.fault, one.scheduler, *map(str, figures), apart, *times, said]


def as_json(outcomes: Iterable[Outcome]) -> str:
    """Give the same for programs."""
    return json.dumps([asdict(one) for one in outcomes], indent=2)
