"""The steps of Kubernetes' integration tests of pod groups, as scripts, with what they expect after each step.

The tests are those of test/integration/scheduler/podgroup of 1.37 and 1.38, without those in which a group preempts.
Steps happen half a minute apart, so that every backoff ends between them. Times within a step are offsets.

Source: podgroup_test.go, podgroup_affinity_test.go and podgroup_pvc_test.go there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.recorder.group_scripts import HOST, REQUIRED, written_group, written_member, written_script
from tests.recorder.scripts import written_node

Script = dict[str, Any]
Outcome = dict[str, Any]
Thing = dict[str, Any]
PAUSE: Final = 30.0
"""What is between two steps. Units: seconds."""
APART: Final = 0.00005
"""What is between two objects that come in a row, in which the scheduler takes no decision. Units: seconds."""
GATED: Final[Thing] = {"schedulingGates": [{"name": "example.com/wait"}]}


@dataclass(frozen=True)
class Step:
    """What happens at one moment or right after it, and what is expected before the next step."""

    comes: tuple[Thing, ...] = ()
    busy: bool = False
    """Whether the scheduler is busy with another pod while the objects come."""
    later: tuple[tuple[float, Thing], ...] = ()
    """Objects that come after the first one by so many seconds: a cycle begins 1 ms after its pod or group is taken."""
    goes: tuple[tuple[str, str], ...] = ()
    """The kind and name of objects that are deleted."""
    scheduled: str = ""
    """Pods that have a node, as words."""
    unschedulable: str = ""
    """Pods whose condition says Unschedulable."""
    idle: str = ""
    """Pods that nobody tried to schedule since the step."""
    retried: str = ""
    """Pods that were rejected more than once since the step."""
    among: tuple[str, int, int] = ("", 0, 0)
    """Of some pods, how many have a node and how many are unschedulable."""
    groups: tuple[tuple[str, str, str], ...] = ()
    """The name of groups, with the status and reason of their condition."""
    nodes: tuple[tuple[str, str], ...] = ()
    """Pods with the nodes that they have."""
    on: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Pods, as words, that are all on one of some sets of nodes, which are words too."""
    removed: str = ""
    """Pods that are deleted by then."""


@dataclass(frozen=True)
class Case:
    """One entry of a table."""

    steps: tuple[Step, ...]
    failing: str = ""
    """The pod whose first binding fails at PreBind."""


def script_of(name: str, case: Case) -> Script:
    """Write a case as a script."""
    steps: list[Any] = []
    nodes: dict[str, int] = {}
    for number, step in enumerate(case.steps):
        at = moment(number)
        things = [written_member(f"holder{number}", None, "0", priority=2000)] if step.busy else []
        timed = [(place * APART, one) for place, one in enumerate((*things, *step.comes))]
        for offset, one in sorted((*timed, *step.later), key=lambda pair: pair[0]):
            steps.append({"at": round(at + offset, 6), "set": copy.deepcopy(one)})
            if one["kind"] == "Node":
                nodes.setdefault(one["metadata"]["name"], 100 - len(nodes))
        for place, (kind, thing) in enumerate(step.goes):
            steps.append({"at": round(at + place * APART, 6), "remove": {"kind": kind, "name": thing}})
    script = written_script(name, nodes, steps, until=moment(len(case.steps)), recorded=bool(case.failing))
    if case.failing:
        answers = {"preBind": {case.failing: [{"code": "Error", "reasons": ["no binding today"]}]}}
        script["plugins"][-1]["answers"] = answers
    return script


def moment(number: int) -> float:
    """Return when a step happens."""
    return 0.5173 + number * PAUSE


def failures(case: Case, outcome: Outcome) -> Iterator[str]:
    """Describe each expectation of a case that a run does not meet."""
    for number, step in enumerate(case.steps):
        since, until = moment(number), moment(number + 1)
        found = _State(outcome, since, until)
        for what, check in CHECKS.items():
            wrong = [one for one in getattr(step, what).split() if not check(found, one)]
            if wrong:
                yield f"step {number}: {wrong} are not {what}"
        yield from (f"step {number}: {one}" for one in found.mismatches(step))


class _State:
    """What a run has done when a step ends."""

    def __init__(self, outcome: Outcome, since: float, until: float) -> None:
        self.nodes: dict[str, str] = {}
        self.conditions: dict[str, list[str]] = {}
        self.groups: dict[str, list[str]] = {}
        for one in outcome["writes"]:
            if one["at"] >= until:
                continue
            if one.get("node"):
                self.nodes[one["pod"]] = one["node"]
            elif one.get("condition"):
                kept, name = (self.conditions, one["pod"]) if one.get("pod") else (self.groups, one["group"])
                kept[name] = one["condition"]
        self.preempted = [one["pod"] for one in outcome["events"] if one["reason"] == "Preempted" and one["at"] < until]
        self.told = [one["pod"] for one in outcome["events"] if since <= one["at"] < until]
        self.told += [one["pod"] for one in outcome["writes"] if since <= one["at"] < until and one.get("pod")]
        self.rejected = [
            one["pod"] for one in outcome["events"]
            if one["reason"] == "FailedScheduling" and since <= one["at"] < until
        ]  # fmt: skip

    def scheduled(self, pod: str) -> bool:
        return pod in self.nodes

    def unschedulable(self, pod: str) -> bool:
        return pod not in self.nodes and self.conditions.get(pod, ["", ""])[:2] == ["False", "Unschedulable"]

    def idle(self, pod: str) -> bool:
        return pod not in self.told

    def removed(self, pod: str) -> bool:
        return pod in self.preempted

    def retried(self, pod: str) -> bool:
        return self.rejected.count(pod) > 1

    def mismatches(self, step: Step) -> Iterator[str]:
        names, scheduled, unschedulable = step.among
        pods = names.split()
        counts = (sum(map(self.scheduled, pods)), sum(map(self.unschedulable, pods)))
        if counts != (scheduled, unschedulable):
            yield f"{counts} of {pods} are scheduled and unschedulable"
        for group, status, reason in step.groups:
            if self.groups.get(group, [])[:2] != [status, reason]:
                yield f"the condition of {group} is {self.groups.get(group)}"
        for words, sets in step.on:
            taken = {self.nodes.get(pod, "") for pod in words.split()}
            if not any(taken <= set(nodes.split()) for nodes in sets):
                yield f"{words} are on {sorted(taken)}"
        for pod, node in step.nodes:
            if self.nodes.get(pod) != node:
                yield f"{pod} is on {self.nodes.get(pod)}"


CHECKS: Final[dict[str, Callable[[_State, str], bool]]] = {
    "scheduled": _State.scheduled, "unschedulable": _State.unschedulable, "idle": _State.idle,
    "retried": _State.retried, "removed": _State.removed,
}  # fmt: skip


def node(name: str, cpu: str) -> Thing:
    """Write a node with so much CPU."""
    made: Thing = written_node(name)
    made["status"] = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}}
    return made


def pods(names: str, group: str | None, cpu: str = "1", priority: int = 100, **spec: Any) -> tuple[Thing, ...]:
    """Write pods of a group, or of none."""
    return tuple(written_member(name, group, cpu, priority=priority, **spec) for name in names.split())


PG1: Final = written_group("pg1", 3, priority=100)
PG2: Final = written_group("pg2", 3, priority=100)
BASIC1: Final = written_group("pg1", priority=100)
MUTABLE: Final = {count: written_group("pg-mutable", count, priority=100) for count in (4, 5, 6)}
FOUR: Final = Step((node("node", "4"),))
P123: Final = pods("p1 p2 p3", "pg1")
P4: Final = pods("p4", "pg1")
OTHER: Final = pods("other-p1 other-p2 other-p3", "pg2")
MUT: Final = pods("mut-p1 mut-p2 mut-p3 mut-p4", "pg-mutable")
MUT5: Final = pods("mut-p5", "pg-mutable")
BLOCKER: Final = pods("blocker", None, "2")
SMALL: Final = pods("small-blocker", None, "1")

SCHEDULING: Final = {
    "gang schedules when group and resources are there": Case((
        FOUR,
        Step((PG1, *P123), scheduled="p1 p2 p3", groups=(("pg1", "True", "Scheduled"),)),
    )),
    "members beyond minCount are scheduled too": Case((
        FOUR,
        Step((PG1, *P123), scheduled="p1 p2 p3"),
        Step(P4, scheduled="p1 p2 p3 p4"),
    )),
    "gang waits for its quorum": Case((
        FOUR,
        Step((PG1, *P123[:2]), idle="p1 p2"),
        Step(P123[2:], scheduled="p1 p2 p3"),
    )),
    "gang waits for its group, then for resources": Case((
        FOUR,
        Step(BLOCKER, scheduled="blocker"),
        Step(P123, idle="p1 p2 p3"),
        Step((PG1,), unschedulable="p1 p2 p3", groups=(("pg1", "False", "Unschedulable"),)),
        Step(goes=(("Pod", "blocker"),), scheduled="p1 p2 p3", groups=(("pg1", "True", "Scheduled"),)),
    )),
    "a member beyond minCount waits for resources": Case((
        FOUR,
        Step(SMALL, scheduled="small-blocker"),
        Step((*P123, *P4), idle="p1 p2 p3 p4"),
        Step((PG1,), among=("p1 p2 p3 p4", 3, 1)),
        Step(goes=(("Pod", "small-blocker"),), scheduled="p1 p2 p3 p4"),
    )),
    "two gangs compete, the second one is complete first": Case((
        FOUR,
        Step((PG1, PG2)),
        Step(
            (OTHER[2], P123[2], OTHER[1], P123[1], OTHER[0], P123[0]),
            scheduled="other-p1 other-p2 other-p3", unschedulable="p1 p2 p3",
        ),
    )),
    "two gangs compete, the first one is complete first": Case((
        FOUR,
        Step((PG1, PG2)),
        Step(
            (P123[0], OTHER[0], P123[1], OTHER[1], P123[2], OTHER[2]),
            scheduled="p1 p2 p3", unschedulable="other-p1 other-p2 other-p3",
        ),
    )),
    "a pod of no group comes with a gang": Case((
        FOUR,
        Step((PG1,)),
        Step((*BLOCKER, *P123), scheduled="blocker", unschedulable="p1 p2 p3"),
    )),
    "basic group schedules pod by pod": Case((
        FOUR,
        Step((BASIC1, P123[0]), scheduled="p1"),
        Step(P123[1:], scheduled="p1 p2 p3"),
    )),
    "basic group waits for its group, part of it for resources": Case((
        FOUR,
        Step(BLOCKER, scheduled="blocker"),
        Step(P123, idle="p1 p2 p3"),
        Step((BASIC1,), among=("p1 p2 p3", 2, 1)),
        Step(goes=(("Pod", "blocker"),), scheduled="p1 p2 p3"),
    )),
    "a lower minCount is reached by the members that wait": Case((
        FOUR,
        Step((MUTABLE[5], *MUT), idle="mut-p1 mut-p2 mut-p3 mut-p4"),
        Step((MUTABLE[4],), scheduled="mut-p1 mut-p2 mut-p3 mut-p4"),
    )),
    "a lower minCount fits": Case((
        FOUR,
        Step((MUTABLE[5], *MUT, *MUT5), unschedulable="mut-p1 mut-p2 mut-p3 mut-p4 mut-p5"),
        Step((MUTABLE[4],), scheduled="mut-p1 mut-p2 mut-p3 mut-p4", unschedulable="mut-p5"),
    )),
    "a higher minCount wakes nobody": Case((
        FOUR,
        Step((MUTABLE[5], *MUT), idle="mut-p1 mut-p2 mut-p3 mut-p4"),
        Step((MUTABLE[6],), idle="mut-p1 mut-p2 mut-p3 mut-p4"),
    )),
}  # fmt: skip
"""TestPodGroupScheduling."""

ANTI: Final = pods(
    "anti-pod", "pg", priority=200, nodeSelector={HOST: "node-1"},
    affinity={"podAntiAffinity": {REQUIRED: [
        {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "pg"}}}
    ]}},
)  # fmt: skip
PLAIN: Final = pods("plain-pod", "pg", priority=200)
PG200: Final = written_group("pg", 2, priority=200)
ANTI_AFFINITY: Final = {
    "anti-affinity within a group on two nodes": Case((
        Step((node("node-1", "2"), node("node-2", "2"))),
        Step((PG200, *ANTI, *PLAIN), nodes=(("anti-pod", "node-1"), ("plain-pod", "node-2"))),
    )),
    "anti-affinity within a group on one node": Case((
        Step((node("node-1", "2"),)),
        Step((PG200, *ANTI, *PLAIN), unschedulable="anti-pod plain-pod", groups=(("pg", "False", "Unschedulable"),)),
    )),
}  # fmt: skip
"""TestPodGroupSchedulingWithPodAntiAffinity."""


def _claimed(name: str) -> tuple[Thing, Thing]:
    """Write a volume for one pod with the claim that has it."""
    spec = {"accessModes": ["ReadWriteOncePod"], "volumeMode": "Filesystem", "storageClassName": ""}
    volume = {
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"},
        "spec": {
            **spec, "capacity": {"storage": "1Mi"}, "hostPath": {"path": "/mnt"},
            "claimRef": {"namespace": "default", "name": name, "uid": name},
        },
        "status": {"phase": "Bound"},
    }  # fmt: skip
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name, "namespace": "default", "annotations": {"pv.kubernetes.io/bind-completed": "true"},
        },
        "spec": {**spec, "resources": {"requests": {"storage": "1Mi"}}, "volumeName": f"pv-{name}"},
        "status": {"phase": "Bound"},
    }  # fmt: skip
    return volume, claim


def _with_claims(first: str, second: str, **expected: Any) -> Case:
    """Bring a gang of two pods, each with a claim."""
    claimed = (one for name in sorted({first, second}) for one in _claimed(name))
    return Case((
        Step((node("node-1", "2"), *claimed)),
        Step((PG200,)),
        Step(
            tuple(
                one
                for name, claim in (("pvc-pod-1", first), ("pvc-pod-2", second))
                for one in pods(
                    name, "pg", priority=200,
                    volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
                )
            ),
            **expected,
        ),
    ))  # fmt: skip


VOLUMES: Final = {
    "members share a volume for one pod": _with_claims(
        "pvc-1", "pvc-1", unschedulable="pvc-pod-1 pvc-pod-2", groups=(("pg", "False", "Unschedulable"),)
    ),
    "members have a volume each": _with_claims("pvc-1", "pvc-2", scheduled="pvc-pod-1 pvc-pod-2"),
}
"""TestPodGroupSchedulingWithReadWriteOncePodPVC."""
