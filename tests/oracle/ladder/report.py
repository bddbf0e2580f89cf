"""The result of a comparison as Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from tests.oracle.ladder.classes import DifferenceClass, Outcome
from tests.oracle.ladder.sources import FileChange
from tests.oracle.ladder.summary import Found, Summary, code, sections


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
        len(outcome.several),
        [one.case["id"] for one in outcome.unexplained],
        gates,
        [(one.path, one.added, one.removed) for one in files],
    )


def markdown(summary: Summary, classes: Sequence[DifferenceClass]) -> str:
    """Write the report: the sections of a summary, and a witness of each class."""
    witnesses = (_witness(number, one) for number, one in enumerate(classes, 1))
    return "\n".join([f"# From {summary.old} to {summary.new}\n", sections(summary, 2), "## Witnesses\n", *witnesses])


def _cause(one: DifferenceClass) -> str:
    return "–" if one.cause is None else f"{code('.'.join(one.cause))} ({one.share:.0%})"


def _witness(number: int, one: DifferenceClass) -> str:
    case = json.dumps({key: value for key, value in one.witness.items() if key != "themes"}, indent=1)
    return f"### Witness {number}\n\n{code(one.difference)}\n\n```json\n{case}\n```\n"
