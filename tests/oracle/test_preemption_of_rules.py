"""Preemption with a policy as a filter, against the same rule written as an out-of-tree plugin: both are ours.

The plugin sees each node as it would be without the pods that are taken away; one of the rules looks at other nodes,
too, and keeps what it counted right by AddPod and RemovePod.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import unschedulable
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.out_of_tree.handle import PluginHandle
from policysched.rules.policy_set.policy_set import PolicySet
from tests.rules.build import compiled, filtering

from .preempted import ours
from .preempting import cases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policysched.framework import Status
    from policysched.framework.cycle_state import CycleState
    from policysched.framework.out_of_tree.node_info import NodeInfo
    from policysched.framework.profile import Profile
    from policysched.model.objects import Pod

SEED = 7
CASES = 24
ZONE = "topology.kubernetes.io/zone"
NOT_KEPT = unschedulable("policy p/r: not kept")


class NoneOfThem:
    """No pod of a group on a node."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002 - the method's shape
        return None if sum(one.metadata.labels.get("app") == "web" for one in node.pods) < 1 else NOT_KEPT


class FewPods:
    """Three pods on a node at most."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002 - the method's shape
        return None if node.pods_count < 3 else NOT_KEPT


class NobodyLikeIt:
    """No pod on a node that has the pod's own tier."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002 - the method's shape
        tier = pod.metadata.labels.get("tier")
        alike = tier is not None and any(one.metadata.labels.get("tier") == tier for one in node.pods)
        return NOT_KEPT if alike else None


class FewInTheZone:
    """Fewer than three pods of a group in a zone; nodes without one are kept."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> None:  # noqa: ARG002 - as above
        found: Counter[str] = Counter()
        for node in nodes:
            if ZONE in node.labels:
                found[node.labels[ZONE]] += sum(is_web(one) for one in node.pods)
        state.write("zones", Kept(found))

    def add_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> None:  # noqa: ARG002 - as above
        if ZONE in node.labels:
            state.read("zones").counts[node.labels[ZONE]] += is_web(other)

    def remove_pod(self, state: CycleState, pod: Pod, other: Pod, node: NodeInfo) -> None:  # noqa: ARG002 - as above
        if ZONE in node.labels:
            state.read("zones").counts[node.labels[ZONE]] -= is_web(other)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:  # noqa: ARG002 - as above
        zone = node.labels.get(ZONE)
        return NOT_KEPT if zone is not None and state.read("zones").counts[zone] >= 3 else None


class Kept:
    """What a plugin keeps for an attempt; a what-if has a copy of its own."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts

    def clone(self) -> Kept:
        return Kept(Counter(self.counts))


def is_web(pod: Pod) -> int:
    return int(pod.metadata.labels.get("app") == "web")


RULES: dict[str, tuple[str, Any]] = {
    "none of them": ('node.pods.count(peer.labels["app"] == "web") < 1', NoneOfThem),
    "few pods": ("node.pods.count(true) < 3", FewPods),
    "nobody like it": ('not node.pods.any(peer.labels["tier"] == pod.labels["tier"])', NobodyLikeIt),
    "few in the zone": ('(sum(node.pods.count(peer.labels["app"] == "web")) by node.zone < 3) ?? true', FewInTheZone),
}


@pytest.mark.parametrize("name", RULES)
def test_a_policy_preempts_as_the_same_rule_does_as_a_plugin(name: str) -> None:
    require, plugin = RULES[name]
    policy = compiled("p", filters=filtering(require, message="not kept"))
    seen: Counter[str] = Counter()
    for case in cases(SEED, range(CASES), Random):
        without, of_policy, of_plugin = (
            ours(case | {"config": None}, profile)
            for profile in (default_profile(), PolicySet.of([policy]).join(default_profile()), joined(plugin()))
        )
        assert of_policy == of_plugin, case["id"]
        seen["nominates"] += bool(of_policy and of_policy["nominated"])
        seen["speaks"] += of_policy != without
    assert seen["nominates"] >= CASES / 10, seen
    assert seen["speaks"], seen


def joined(plugin: Any) -> Profile:
    """Put a plugin where policies are."""
    adapted: Any = OutOfTreePlugin("Rule", plugin, PluginHandle("policysched"))
    return default_profile().with_policies((adapted,), (), None)
