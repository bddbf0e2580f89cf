"""Questions about queueing hints: a pod that waits for claims, and what happens to claims and pods.

Knows nothing of the answers. The objects of a question are those after all of its changes.
"""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from .cases import LEAVING, POD, single

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Thing: TypeAlias = dict[str, Any]
Case: TypeAlias = dict[str, Any]

ALLOCATION = {"devices": {"results": [{"request": "r0", "driver": "d", "pool": "p", "device": "x"}]}}


def questions(seed: int, indices: Iterable[int]) -> Iterator[Case]:
    """Generate cases with several changes each."""
    for index in indices:
        rng = Random(f"{seed}/hints/{index}")
        case = single(rng, f"{seed}-h{index}")
        yield case | {"hints": [*_changes(rng, case)]}


def _changes(rng: Random, case: Case) -> Iterator[Thing]:
    claims = [one for one in case["objects"] if one["kind"] == "ResourceClaim"]
    for claim in rng.sample(claims, min(len(claims), 4)):
        yield {"old": None, "new": claim}
        yield {"old": _before(rng, claim), "new": claim}
    yield {"old": case["pod"] | {"status": {}}, "new": case["pod"]}
    waiting = {**case["pod"], "status": {"resourceClaimStatuses": [{"name": "c0"}]}}
    yield {"old": case["pod"], "new": waiting}
    other = deepcopy(case["pod"])
    other["metadata"] |= {"name": f"not-{POD}", "uid": "another"}
    yield {"old": case["pod"], "new": other}


def _before(rng: Random, claim: Thing) -> Thing:
    """Draw what a claim was: with an allocation, without one, reserved, or with other labels."""
    old = deepcopy(claim)
    match rng.choice(["allocated", "free", "reserved", "labels", "same", "another"]):
        case "allocated":
            old["status"] = {**old.get("status", {}), "allocation": ALLOCATION}
        case "free":
            old.pop("status", None)
        case "reserved":
            reserved = [{"resource": "pods", "name": "b", "uid": "b"}]
            old["status"] = {**old.get("status", {}), "reservedFor": reserved}
        case "labels":
            old["metadata"]["labels"] = {"a": "b"}
        case "another":
            old["metadata"]["deletionTimestamp"] = LEAVING
    return old
