"""Preemption with a policy that guards victims, against kube-scheduler's own with the same pods kept from it.

kube-scheduler lets a program that wraps DefaultPreemption say which pods may be victims (IsEligiblePod). The oracle is
told by name; who is kept is worked out here from the pods themselves, without the language. A pod that is being deleted
is nobody's victim any more and may be chosen. POLICYSCHED_PREEMPTIONS sets how many cases each rule has.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from policysched.app.configuration.profiles import configured_profiles
from policysched.model.objects.meta import seconds_of
from policysched.model.pod_requirements import pod_priority
from policysched.rules.policy_set.policy_set import PolicySet
from tests.rules.build import compiled

from .live import NOW, Live
from .minors import AT_EACH_MINOR, release_of, share
from .preempted import COMPARED, differences, ours
from .preempting import cases
from .seed import seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from policysched.model.objects import Pod

    from .oracle import Case, Oracle

pytestmark = pytest.mark.oracle

SEED = seed()
CASES = max(40, int(os.environ.get("POLICYSCHED_PREEMPTIONS") or 0) // 5)
HOUR = 3600.0
# The condition, and who must stay: for the pod that comes, one that would go, and its node's name.
RULES: dict[str, tuple[str, Callable[[Pod, Pod], bool]]] = {
    "old": ("victim.age < 1h", lambda _, victim: NOW - (seconds_of(victim.metadata.creation_timestamp) or 0) >= HOUR),
    "labels": ('victim.labels["app"] != "web"', lambda _, victim: victim.metadata.labels.get("app") == "web"),
    "names": ('not glob(victim.name, "*1*")', lambda _, victim: "1" in victim.metadata.name),
    "priorities": (
        "pod.priority - victim.priority > 100",
        lambda pod, victim: pod_priority(pod) - pod_priority(victim) <= 100,
    ),
    "nodes": ('not ends_with(node.name, "1")', lambda _, victim: victim.spec.node_name.endswith("1")),
    "nobody": ("false", lambda _, __: True),
}


@AT_EACH_MINOR
@pytest.mark.parametrize("name", RULES)
def test_preemption_with_a_guard_equals_that_of_kube_scheduler_without_these_victims(oracle: Oracle, name: str) -> None:
    print(f"POLICYSCHED_SEED={SEED}")  # noqa: T201 - shown with a failure
    require, stays = RULES[name]
    policies = PolicySet.of([compiled("keep", preemption={"require": require}, includeSystemPods=True)])
    seen: Counter[str] = Counter()
    numbers, release = share(oracle, range(2 * CASES)), release_of(oracle)
    for case in aged(cases(SEED, numbers, Random)):
        (profile,) = configured_profiles(case["config"], release=release).values()
        joined = policies.join(profile)
        kept = {**case, "protected": protected(case, stays)}
        theirs = oracle.decide(kept)
        if theirs["result"] == "Error":
            continue
        mine, told = ours(case, joined, release), theirs.get("preemption")
        parts = [part for part in COMPARED if part != "message"]
        assert not differences(mine, told, parts), (case["id"], kept["protected"])
        seen["keeps"] += bool(told and kept["protected"])
        seen["nominates"] += bool(told and told["nominated"])
        seen["speaks"] += ours(case, PolicySet.of([]).join(profile), release) != mine
    print(seen)  # noqa: T201 - shown with -rP
    assert seen["keeps"] > len(numbers) / 10, seen
    assert seen["speaks"], seen
    assert seen["nominates"] or name == "nobody", seen


def aged(given: Iterator[Case]) -> Iterator[Case]:
    """Let half of the pods of each case be older than an hour."""
    for case in given:
        rng = Random(case["id"])
        for thing in case["objects"]:
            if thing["kind"] == "Pod":
                old = rng.random() < 0.5
                thing["metadata"]["creationTimestamp"] = "2026-12-01T00:00:00Z" if old else "2027-01-15T07:59:00Z"
        yield case


def protected(case: Case, stays: Callable[[Pod, Pod], bool]) -> list[str]:
    """Name the placed pods that must stay, by their priorities and labels as they are once the server has them."""
    live = Live({**case, "sequence": [case["pod"]]}, SEED)
    coming: Any = live.look(case["pod"]).pod
    placed = [one.pod for one in live.engine.cluster.pods.by_id.values()]
    return sorted(one.key for one in placed if one.metadata.deletion_timestamp is None and stays(coming, one))
