"""The result of a comparison as Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from tests.oracle.ladder.classes import DifferenceClass, Outcome
from tests.oracle.ladder.sources import FileChange
from tests.oracle.ladder.summary import Found, Summary

FILES = 25
"""How many changed files the report lists."""


def summarized(
    versions: tuple[str, str],
    seed: int,
    outcome: Outcome,
    gates: list[tuple[str, str, str]],
    files: Sequence[FileChange],
) -> Summary:
    """Summarize a comparison.

    Args:
        versions: The known version and the compared one.
        seed: The seed of the cases.
        outcome: What the cases showed.
        gates: The changed feature gates.
        files: The changed files of the scheduler.
    """
    return Summary(
        *versions,
        seed,
        dict(outcome.asked),
        dict(Counter(one.generator for one in outcome.differing)),
        [Found(one.difference, _cause(one), len(one.explained)) for one in outcome.classes],
        [one.case["id"] for one in outcome.unexplained],
        gates,
        [(one.path, one.added, one.removed) for one in files],
    )


def markdown(summary: Summary, classes: Sequence[DifferenceClass]) -> str:
    """Write the report: the sections of a summary, and a witness of each class."""
    witnesses = (_witness(number, one) for number, one in enumerate(classes, 1))
    return "\n".join([f"# From {summary.old} to {summary.new}\n", sections(summary, 2), "## Witnesses\n", *witnesses])


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
            [(code(one.difference), one.cause, str(one.cases)) for one in summary.found],
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


def _cause(one: DifferenceClass) -> str:
    return "every case" if one.cause is None else f"{code('.'.join(one.cause))} ({one.share:.0%})"


def _left(summary: Summary) -> str:
    left = summary.unexplained
    if not left:
        return "Every case is explained.\n"
    return f"{len(left)} cases have more than one of these causes, or another one: {', '.join(left[:10])}\n"


def _witness(number: int, one: DifferenceClass) -> str:
    case = json.dumps({key: value for key, value in one.witness.items() if key != "themes"}, indent=1)
    return f"### Witness {number}\n\n{code(one.difference)}\n\n```json\n{case}\n```\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
