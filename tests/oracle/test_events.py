"""The events that random updates of pods and nodes raise, beside those that kube-scheduler derives from the same pairs.

POLICYSCHED_SEED repeats a run, POLICYSCHED_CASES sets its length.
"""

from __future__ import annotations

import os
from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from policysched.model.decode import decode_node, decode_pod
from policysched.model.release import RELEASES
from policysched.model.requests import amounts_in_use, placed_requests
from policysched.state.cluster_events import Action, node_difference, pod_difference
from tests.controlplane.releases import chosen

from . import affinity, nodes, pods, resources
from .seed import seed

if TYPE_CHECKING:
    from .oracle import Oracle

pytestmark = pytest.mark.oracle

SEED = seed()
IN_USE = amounts_in_use(compares_sums=RELEASES[chosen().minor].resizes_compare_sums)
CASES = int(os.environ.get("POLICYSCHED_CASES") or 600)
SCALE_UP = ""
"""The only action without a name in the oracle: a pod that requests more, since 1.37. No default plugin reads it."""
THEMES = frozenset({"resources", "ports", "taints", "cordon", "images", "features"})
STATES = ("True", "False", "Unknown")
POD_CONDITIONS = ("PodResizePending", "PodResizeInProgress", "Ready", "PodScheduled", "DisruptionTarget")
NODE_CONDITIONS = ("Ready", "DiskPressure", "MemoryPressure", "KernelDeadlock")
Object = dict[str, Any]


def draw_condition(rng: Random, types: tuple[str, ...]) -> Object:
    return {
        "type": rng.choice(types),
        "status": rng.choice(STATES),
        "reason": rng.choice(["", "Infeasible", "Deferred", "KubeletReady"]),
        "lastTransitionTime": f"2026-01-0{rng.randint(1, 9)}T00:00:00Z",
    }


def relabel(rng: Random, obj: Object) -> None:
    obj["metadata"]["labels"] = rng.choice([{"app": "a"}, {"app": "b"}, {}])


def annotate(rng: Random, obj: Object) -> None:
    obj["metadata"]["annotations"] = rng.choice([{"a": "1"}, {"a": "2"}, {}])


def tolerate(rng: Random, pod: Object) -> None:
    pod["spec"]["tolerations"] = [*pod["spec"].get("tolerations", []), *affinity.tolerations(rng)]


def gate(rng: Random, pod: Object) -> None:
    pod["spec"]["schedulingGates"] = rng.choice([[], [{"name": "gate"}]])


def set_pod_conditions(rng: Random, pod: Object) -> None:
    pod["status"]["conditions"] = [draw_condition(rng, POD_CONDITIONS) for _ in range(rng.randint(0, 2))]


def request(rng: Random, pod: Object) -> None:
    rng.choice(pod["spec"]["containers"])["resources"] = {"requests": resources.requests(rng)}


def allocate(rng: Random, pod: Object) -> None:
    pod["status"] |= resources.reported(rng, "allocatedResources")


def actuate(rng: Random, pod: Object) -> None:
    pod["status"]["resources"] = resources.reported(rng, "requests")


def generate_claims(rng: Random, pod: Object) -> None:
    pod["status"]["resourceClaimStatuses"] = [{"name": "c", "resourceClaimName": rng.choice(["x", "y"])}]


def forget(rng: Random, pod: Object) -> None:
    pod["status"].pop(rng.choice(["conditions", "resources", "allocatedResources", "containerStatuses"]), None)


def start(rng: Random, pod: Object) -> None:
    pod["status"] |= {"phase": rng.choice(["Running", "Pending"]), "startTime": "2026-01-01T00:00:00Z"}


def taint(rng: Random, node: Object) -> None:
    node["spec"]["taints"] = affinity.taints(rng) or []


def cordon(rng: Random, node: Object) -> None:
    node["spec"]["unschedulable"] = rng.random() < 0.5


def set_node_conditions(rng: Random, node: Object) -> None:
    node["status"]["conditions"] = [draw_condition(rng, (kind,)) for kind in NODE_CONDITIONS[: rng.randint(0, 4)]]


def offer(rng: Random, node: Object) -> None:
    node["status"]["allocatable"] = nodes.allocatable(rng, odd=True)


def declare(rng: Random, node: Object) -> None:
    node["status"]["declaredFeatures"] = sorted(rng.sample(nodes.FEATURES, rng.randint(0, 3)))


def beat(rng: Random, node: Object) -> None:
    for condition in node["status"].get("conditions", []):
        condition["lastHeartbeatTime"] = f"2026-01-01T00:00:0{rng.randint(0, 9)}Z"


def report(rng: Random, node: Object) -> None:
    node["status"]["nodeInfo"] = {"kubeletVersion": f"v1.36.{rng.randint(0, 9)}"}


POD_CHANGES = (
    *(relabel, annotate, tolerate, gate, set_pod_conditions, resources.resize),
    *(request, allocate, actuate, generate_claims, forget, start),
)
NODE_CHANGES = (relabel, annotate, taint, cordon, set_node_conditions, offer, declare, beat, report)


def names(action: Action) -> set[str]:
    return {one.name or "" for one in action}


def pod_pair(rng: Random) -> tuple[Object, Object]:
    old = pods.placed(rng, "p", "n1", THEMES)
    for _ in range(rng.randint(0, 2)):
        rng.choice(POD_CHANGES)(rng, old)
    new = deepcopy(old)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        rng.choice(POD_CHANGES)(rng, new)
    return old, new


@pytest.mark.parametrize("part", range(4))
def test_an_update_of_a_pod_raises_kube_scheduler_s_events(oracle: Oracle, part: int) -> None:
    seen: set[str] = set()
    for case in range(part, CASES, 4):
        old, new = pod_pair(Random(f"{SEED} {case}"))
        theirs = oracle.actions(old, new)
        ours = names(pod_difference(decode_pod(old), decode_pod(new), IN_USE))
        assert ours - {"UPDATE_OTHER"} == theirs - {"UPDATE", SCALE_UP}, (case, old, new)
        seen |= theirs
    assert seen >= {"UPDATE", "UPDATE_POD_SCALE_DOWN", "UPDATE_POD_LABEL", "UPDATE_POD_TOLERATION"}


@pytest.mark.parametrize("part", range(4))
def test_a_pod_that_takes_less_raises_an_event(part: int) -> None:
    less = 0
    for case in range(part, CASES * 4, 4):
        old, new = map(decode_pod, pod_pair(Random(f"{SEED} less {case}")))
        before, after = placed_requests(old, IN_USE), placed_requests(new, IN_USE)
        if before == after:
            continue
        amounts = dict(after.scalars)
        fewer = (
            after.cpu_millis < before.cpu_millis
            or after.memory_bytes < before.memory_bytes
            or after.ephemeral_bytes < before.ephemeral_bytes
            or any(amounts.get(name, 0) < amount for name, amount in before.scalars)
        )
        assert not fewer or Action.UPDATE_POD_SCALE_DOWN in pod_difference(old, new, IN_USE), (case, old, new)
        less += fewer
    assert less > CASES // 40


@pytest.mark.parametrize("part", range(4))
def test_an_update_of_a_node_raises_kube_scheduler_s_events(oracle: Oracle, part: int) -> None:
    seen: set[str] = set()
    for case in range(part, CASES, 4):
        rng = Random(f"{SEED} node {case}")
        old = nodes.node(rng, "n1", THEMES)
        rng.choice(NODE_CHANGES)(rng, old)
        new = deepcopy(old)
        for _ in range(rng.choice([0, 1, 1, 2])):
            rng.choice(NODE_CHANGES)(rng, new)
        theirs = oracle.actions(old, new)
        ours = names(node_difference(decode_node(old), decode_node(new))) - {"UPDATE_NODE_IMAGES", "UPDATE_NODE_INFO"}
        cordoned = not old["spec"].get("unschedulable") and new["spec"].get("unschedulable")
        assert ours - ({"UPDATE_NODE_TAINT"} if cordoned else set()) == theirs - (
            {"UPDATE_NODE_TAINT"} if cordoned else set()
        ), (case, old, new)
        seen |= theirs
    assert len(seen) == 6
