"""The result of a comparison as Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from tests.oracle.ladder.classes import DifferenceClass, Outcome
from tests.oracle.ladder.sources import FileChange

FILES = 25
"""How many changed files the report lists."""


def markdown(
    old: str, new: str, seed: int, outcome: Outcome, gates: list[tuple[str, str, str]], files: list[FileChange]
) -> str:
    """Write the report.

    Args:
        old: The known version.
        new: The compared version.
        seed: The seed of the cases.
        outcome: What the cases showed.
        gates: The changed feature gates.
        files: The changed files of the scheduler.
    """
    parts = [
        f"# From {old} to {new}\n",
        f"{outcome.asked.total():,} cases, seed {seed}: {len(outcome.differing):,} have another answer.\n",
        _by_generator(outcome),
        "## Differences\n",
        _table(outcome.classes),
        _unexplained(outcome),
        "## Feature gates\n",
        _rows(("gate", old, new), gates),
        "## Changed files of the scheduler\n",
        f"{len(files)} files, +{sum(one.added for one in files):,} -{sum(one.removed for one in files):,} lines.\n",
        _rows(("file", "added", "removed"), [(one.path, str(one.added), str(one.removed)) for one in files[:FILES]]),
        "## Witnesses\n",
        *(_witness(number, one) for number, one in enumerate(outcome.classes, 1)),
    ]
    return "\n".join(parts)


def _by_generator(outcome: Outcome) -> str:
    differing = Counter(one.generator for one in outcome.differing)
    rows = [(name, f"{count:,}", f"{differing[name]:,}") for name, count in outcome.asked.items()]
    return _rows(("cases", "asked", "differ"), rows)


def _table(classes: list[DifferenceClass]) -> str:
    rows = []
    for number, one in enumerate(classes, 1):
        cause = "every case" if one.cause is None else f"{'.'.join(one.cause)} ({one.share:.0%})"
        rows.append((str(number), one.difference, cause, str(len(one.explained))))
    return _rows(("witness", "difference", "ends without the field (in)", "cases explained"), rows)


def _unexplained(outcome: Outcome) -> str:
    if not outcome.unexplained:
        return "Every case is explained.\n"
    ids = ", ".join(one.case["id"] for one in outcome.unexplained[:10])
    return f"{len(outcome.unexplained)} cases have more than one of these causes, or another one: {ids}\n"


def _witness(number: int, one: DifferenceClass) -> str:
    case = json.dumps({key: value for key, value in one.witness.items() if key != "themes"}, indent=1)
    return f"### Witness {number}\n\n`{one.difference}`\n\n```json\n{case}\n```\n"


def _rows(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
