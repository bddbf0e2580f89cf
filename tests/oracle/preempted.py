"""Our preemption beside kube-scheduler's: what each does for a pod that fits nowhere, and where both differ.

Knows nothing of how cases are made. Of several equally good nodes both take any; what is asked for on the chosen one is
compared where both have chosen the same.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from policysched.app.clock import SystemClock
from policysched.framework import Handle
from policysched.model.release import DEFAULT, Release
from policysched.plugins.default_preemption.plugin import PreemptionDetails
from policysched.schedule.cycle.post_filter import FailedCycle, run_post_filters
from tests.schedule.parts import FakeClient

from .live import Live
from .minors import release_of
from .oracle import InvalidCaseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policysched.framework import PostFilterResult
    from policysched.framework.profile import Profile

    from .oracle import Case, Oracle, Record

SEED = 1
"""Draws among our best nodes."""
COMPARED = ("code", "message", "candidates", "best")


def ours(case: Case, profile: Profile | None = None, release: Release = DEFAULT) -> Record | None:
    """Say what we do for the case's pod; None where it fits somewhere, fails, or nobody is asked."""
    live = Live({**case, "sequence": [case["pod"]]}, SEED, profile, release)
    decision, plugins = live.look(case["pod"]), live.engine.profile.post_filters
    if decision.row >= 0 or decision.failed or not plugins or not decision.cluster.nodes.count:
        return None
    guards = live.engine.profile.victim_guards
    result = asyncio.run(run_post_filters(plugins, decision.pod, FailedCycle(decision, Random(SEED), (), guards)))
    code = "Success" if result.succeeded or result.status is None else result.status.code.text
    found = {"code": code, "nominated": result.nominated_node, **_requests(result)}
    if result.status is not None and result.status.reasons:
        found["message"] = result.status.message
    if isinstance(result.details, PreemptionDetails):
        choice = result.details.choice
        found["best"] = choice.best
        found["candidates"] = {
            one.node: {"victims": [pod.key for pod in one.victims], "violations": len(one.violating)}
            for one in choice.candidates()
        }
    return found


def disagreement(oracle: Oracle, case: Case) -> list[str]:
    """Ask both about a case; one that kube-scheduler cannot evaluate, or fails about, is no disagreement."""
    try:
        theirs = oracle.decide(case)
        if theirs["result"] == "Error":
            return []
        return differences(ours(case, release=release_of(oracle)), theirs.get("preemption"))
    except InvalidCaseError:
        return []
    except Exception as error:  # our own faults are what this looks for
        return [f"raised: ours {error!r}"]


def _requests(result: PostFilterResult) -> Record:
    """Do what the result wants done, with a client that writes it down."""
    if result.act is None:
        return {}
    client = FakeClient()
    handle = Handle(client, SystemClock(), asyncio.sleep, {}, lambda _: None)

    async def act() -> None:
        if result.act is not None:
            await result.act(handle)

    asyncio.run(act())
    cleared = sorted(pod for pod, node in client.nominated if not node)
    return {"deleted": sorted(client.deleted)} | ({"cleared": cleared} if cleared else {})


def differences(mine: Record | None, theirs: Record | None, compared: Sequence[str] = COMPARED) -> list[str]:
    """List where two answers disagree, one line a part; an empty list means they agree."""
    if mine is None or theirs is None:
        return [] if mine is theirs else [f"preemption: ours {mine}, theirs {theirs}"]
    chosen = theirs["nominated"] if mine["nominated"] == theirs["nominated"] else None
    has_message = chosen if theirs.get("best") else theirs["code"] != "Error"  # it names the chosen node
    parts = [part for part in compared if part != "message" or has_message]
    if not theirs.get("best"):
        parts.append("nominated")
    elif mine["nominated"] not in theirs["best"]:
        return [f"nominated: ours {mine['nominated']!r}, theirs one of {theirs['best']}"]
    elif chosen:
        # where every victim goes already kube-scheduler makes no request; the oracle, which waits for requests, clears
        parts += ["deleted", "cleared"] if theirs.get("deleted") else ["deleted"]
    return [
        f"{part}: ours {mine.get(part)!r}, theirs {theirs.get(part)!r}"
        for part in parts
        if mine.get(part) != theirs.get(part)
    ]
