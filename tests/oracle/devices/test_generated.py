"""Generated cases about devices bite: kube-scheduler's own answers show that each of their traps is met."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from .cases import THEMES, singles
from .hinting import questions
from .stories import LENGTH, stories

if TYPE_CHECKING:
    from tests.oracle.oracle import Oracle

pytestmark = pytest.mark.oracle

SEED = 5
CASES = 600
TEXTS = (
    "cannot allocate all claims",
    "invalid resource pools were encountered",
    "resourceclaim not available on the node",
    "cannot fit resource",
    "does not exist",
    "is being deleted",
    "was not created for Pod",
    "ResourceClaim not created yet",
    "could not find ResourceClaim",
    "is currently being updated",
    "is currently invalid",
    "CEL runtime error",
    "exceeds the claim limit of 32",
    "would not be satisfied",
)
"""What kube-scheduler has to say at least once, of all cases together."""


def said(record: Any) -> set[str]:
    """Give all texts of a record."""
    rejections = [*record.get("rejected", {}).values(), *([record["preFilter"]] if "preFilter" in record else [])]
    texts = {reason for one in rejections if one["plugin"] == "DynamicResources" for reason in one["reasons"]}
    return texts | {*record.get("errors", {}).values()}


def fields(record: Any) -> set[str]:
    """Give what allocations have: fields of results, kinds of node selectors, configuration, alternatives."""
    found = set()
    for one in (one for allocations in record.get("allocations", {}).values() for one in allocations):
        devices, selector = one["result"]["devices"], one["result"].get("nodeSelector")
        found |= {key for result in devices.get("results", ()) for key in result}
        found |= {"alternative" for result in devices.get("results", ()) if "/" in result["request"]}
        found |= {"config" for _ in devices.get("config", ())} | ({"extended"} if "requests" in one else set())
        found |= {"several"} if len(devices.get("results", ())) > 1 else set()
        found |= {*selector["nodeSelectorTerms"][0]} if selector else {"everywhere"}
    return found


def test_cases_meet_every_trap(oracle: Oracle) -> None:
    results: Counter[str] = Counter()
    texts, seen, chosen, scored = set(), set(), 0, 0
    for case in singles(SEED, range(CASES)):
        record = oracle.decide(case)
        results[record["result"]] += 1
        texts |= said(record)
        seen |= fields(record)
        chosen += bool(record.get("allocations")) and bool(record.get("rejected"))
        points = {one.get("DynamicResources") for one in record.get("scores", {}).values()}
        scored += len(points) > 1
    assert not [text for text in TEXTS if not any(text in one for one in texts)]
    assert seen >= {"adminAccess", "tolerations", "bindingConditions", "shareID", "consumedCapacity", "config"}
    assert seen >= {"alternative", "extended", "several", "matchFields", "matchExpressions", "everywhere"}
    assert min(results["Scheduled"], results["Unschedulable"], results["Error"]) > CASES // 20, results
    assert chosen > CASES // 10
    assert scored


def test_cases_have_one_answer(oracle: Oracle) -> None:
    for case in singles(SEED + 1, range(60)):
        first, second = oracle.decide(case), oracle.decide(case)
        if first["result"] == "Error":
            first, second = first["errors"], second["errors"]
        assert first == second, case["id"]


def test_themes_are_all_drawn() -> None:
    drawn = {theme for case in singles(SEED, range(300)) for theme in case["themes"]}
    assert drawn == {*THEMES}


def test_case_is_the_same_whichever_others_are_asked_for() -> None:
    assert [*singles(SEED, [7])] == [*singles(SEED, range(8))][7:]


def test_stories_give_claims_back(oracle: Oracle) -> None:
    results: Counter[str] = Counter()
    waited = allocated = 0
    for case in stories(SEED, range(12)):
        records = oracle.decide_sequence(case)
        assert len(records) == LENGTH
        results.update(record["result"] for record in records)
        waited += sum("in the process of being allocated" in text for record in records for text in said(record))
        allocated += sum("allocations" in record for record in records)
    assert allocated > 100, results
    assert waited > 3


def test_hints_are_of_both_kinds(oracle: Oracle) -> None:
    hints: Counter[str] = Counter()
    gates = 0
    for case in questions(SEED, range(100)):
        found = oracle.hints(case)
        assert len(found["hints"]) == len(case["hints"])
        hints.update(found["hints"])
        gates += bool(found["gate"])
    assert min(hints["Queue"], hints["QueueSkip"]) > 50, hints
    assert gates > 3
