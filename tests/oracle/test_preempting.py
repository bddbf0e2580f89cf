"""What the generated cases of preemption are like, by kube-scheduler's own answers."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from .preempting import cases

if TYPE_CHECKING:
    from .oracle import Oracle

pytestmark = pytest.mark.oracle

COUNT = 300


def test_cases_bite(oracle: Oracle) -> None:
    seen: Counter[str] = Counter()
    for case in cases(1, range(COUNT), Random):
        found = oracle.decide(case).get("preemption")
        if found is None:
            continue
        candidates = found.get("candidates", {})
        seen["asked"] += 1
        seen["nominated"] += bool(found["nominated"])
        seen["cleared"] += found["nominated"] == ""
        seen["unchanged"] += found["nominated"] is None
        seen["several candidates"] += len(candidates) > 1
        seen["several equally good"] += len(found.get("best", ())) > 1
        seen["several victims"] += any(len(one["victims"]) > 1 for one in candidates.values())
        seen["violations"] += any(one["violations"] for one in candidates.values())
        assert not candidates or found["nominated"] in found["best"]
    least = {"asked": 200, "nominated": 60, "cleared": 60, "unchanged": 20, "several candidates": 30}
    least |= {"several equally good": 5, "several victims": 30, "violations": 10}
    assert {name: count for name, count in least.items() if seen[name] < count} == {}, seen


def test_cases_are_the_same_whichever_others_are_asked_for() -> None:
    alone = [case for index in range(40) for case in cases(7, [index], Random)]
    assert alone == [*cases(7, range(40), Random)]
