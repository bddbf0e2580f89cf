"""The cases of Kubernetes' integration test of preemption by pod groups, as scripts, with what they expect at the end.

The test is TestPodGroupPreemption of 1.37 and 1.38. Pods that are there before come half a second before the members,
so that all are bound.

Source: test/integration/scheduler/preemption/podgroup/podgrouppreemption_test.go.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.recorder.group_scripts import (
    HOST,
    REQUIRED,
    ZONE,
    place_by_topology,
    written_group,
    written_member,
    written_script,
)
from tests.recorder.group_tables import APART, node

Script = dict[str, Any]
Outcome = dict[str, Any]
Thing = dict[str, Any]
ALL: Final[Thing] = {"all": {}}
SINGLE: Final[Thing] = {"single": {}}
BOTH: Final = ("1.37", "1.38")
MOST_RESERVED: Final = "most-reserved"
"""A plugin at Filter and Reserve, which counts the pods with the label `counted` of a node."""


@dataclass(frozen=True)
class Case:
    """One entry of the table."""

    nodes: str
    """The nodes with their CPU, as words."""
    groups: tuple[Thing, ...]
    residents: tuple[Thing, ...]
    """The pods that are there before."""
    members: tuple[Thing, ...]
    """The members of the group that preempts."""
    scheduled: str
    """Pods that have a node at the end, as words."""
    victims: str = ""
    """The pods of which the group preempts some."""
    count: int = -1
    """How many of the victims go; all if it is negative."""
    unschedulable: str = ""
    """Pods that are pending at the end."""
    nominated: str = ""
    """Members that are nominated to a node when they are bound."""
    nominees: tuple[Thing, ...] = ()
    """Pending pods that are nominated to a node before; they lose the nomination."""
    budget: str = ""
    """The value of the label `app` of the pods that a disruption budget protects."""
    scores: Mapping[str, int] = field(default_factory=dict)
    """The scores of nodes that a plugin gives."""
    together: bool = False
    """Whether the group comes back after its members have come."""
    bound_first: str = ""
    """The member that is bound before the group preempts."""
    plugins: tuple[Thing, ...] = ()
    """Further plugins at Filter and Reserve."""
    zones: str = ""
    """The zones of the nodes, if groups are placed by topology."""
    minors: tuple[str, ...] = BOTH


def script_of(name: str, case: Case) -> Script:
    """Write a case as a script."""
    amounts = dict(one.split("=") for one in case.nodes.split())
    budgets = [written_budget(case.budget)] if case.budget else []
    nodes = [node(one, cpu) for one, cpu in amounts.items()]
    for one, zone in zip(nodes, case.zones.split(), strict=False):
        one["metadata"]["labels"][ZONE] = zone
    before = [*nodes, *budgets, *case.groups, *case.residents]
    steps = [*_in_a_row(0.011, before), *_in_a_row(0.5173, case.nominees)]
    names = [one["metadata"]["name"] for one in case.groups] if case.together else []
    steps += [{"at": round(0.9 + APART * place, 6), "remove": _group(one)} for place, one in enumerate(names)]
    steps += _in_a_row(1.0173, case.members)
    steps += _in_a_row(1.5173, case.groups) if case.together else []
    script = written_script(name, {one: case.scores.get(one, 0) for one in amounts}, steps, until=60.0)
    _use(script, case)
    return script


def _use(script: Script, case: Case) -> None:
    """Enable the plugins of a case, beside the default plugins with their weights."""
    lists: Thing = {"score": {"enabled": [{"name": "ranks", "weight": 1}]}}
    added = [{"name": one["name"]} for one in case.plugins]
    lists |= {point: {"enabled": added} for point in ("filter", "reserve") if added}
    for profile in script["config"]["profiles"]:
        profile["plugins"] = lists
    script["plugins"] += case.plugins
    if case.zones:
        place_by_topology(script, {"zone1": 0, "zone2": 100})


def _in_a_row(at: float, things: Any) -> list[Thing]:
    return [{"at": round(at + place * APART, 6), "set": copy.deepcopy(one)} for place, one in enumerate(things)]


def _group(name: str) -> Thing:
    return {"kind": "PodGroup", "name": name}


def failures(case: Case, outcome: Outcome) -> Iterator[str]:
    """Describe each expectation of a case that a run does not meet."""
    ends = {one["pod"]: one for one in outcome["pods"]}
    preempted = {one["pod"] for one in outcome["events"] if one["note"].startswith("Preempted by podgroup")}
    victims = case.victims.split()
    count = len(victims) if case.count < 0 else case.count
    went = [one for one in victims if one not in ends]
    if preempted != set(went) or len(went) != count:
        yield f"{sorted(preempted)} are preempted, {went} are gone"
    for pod in case.scheduled.split():
        if not ends.get(pod, {}).get("node"):
            yield f"{pod} is not scheduled: {ends.get(pod)}"
    nominees = [one["metadata"]["name"] for one in case.nominees]
    for pod in (*case.unschedulable.split(), *nominees):
        if ends[pod]["node"] or (ends[pod]["condition"] or ["", ""])[:2] != ["False", "Unschedulable"]:
            yield f"{pod} is not unschedulable: {ends[pod]}"
    yield from (f"{pod} is nominated: {ends[pod]}" for pod in nominees if ends[pod]["nominated"])
    writes = outcome["writes"]
    yield from (f"{pod} was not nominated" for pod in case.nominated.split() if not _nominated(pod, writes))
    if case.bound_first and not _is_bound_first(case, outcome):
        yield f"{case.bound_first} is not the only member that was bound before the preemption"


def _nominated(pod: str, writes: list[Thing]) -> str:
    """Return the node to which a pod is nominated when it is bound."""
    said = [one.get("nominated", "") for one in writes if one.get("pod") == pod and "nominated" in one]
    return said[-1] if said else ""


def _is_bound_first(case: Case, outcome: Outcome) -> bool:
    bound = {one["pod"]: one["at"] for one in outcome["writes"] if one.get("node")}
    at = min(one["at"] for one in outcome["events"] if one["reason"] == "Preempted")
    members = [one["metadata"]["name"] for one in case.members]
    return [one for one in members if bound[one] < at] == [case.bound_first]


def pods(names: str, group: str | None, cpu: str, priority: int, app: str = "", **spec: Any) -> tuple[Thing, ...]:
    """Write pods of a group, or of none; a name with `@node` is that of a pod on a node."""
    return tuple(_pod(*name.partition("@")[::2], group, cpu, app, priority=priority, **spec) for name in names.split())


def _pod(name: str, place: str, group: str | None, cpu: str, app: str, **spec: Any) -> Thing:
    made = written_member(name, group, cpu, **({"nodeName": place} if place else {}), **spec)
    made["metadata"]["labels"] = {"app": app} if app else {}
    return made


def written_budget(app: str) -> Thing:
    """Write a disruption budget that allows no eviction, because nothing has updated its status."""
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{app}-pdb", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": app}}},
    }  # fmt: skip


def nominee(name: str, place: str) -> Thing:
    """Write a pending pod that is nominated to a node."""
    [made] = pods(name, None, "1", 10, preemptionPolicy="Never")
    return {**made, "status": {"nominatedNodeName": place}}


def counted(most: int) -> Thing:
    """Write the plugin that allows so many counted pods on a node."""
    return {"name": MOST_RESERVED, "most": most}


LOW3: Final = pods("low-1 low-2 low-3", None, "1", 10)
HIGH1: Final = pods("high-1", "pg1", "1", 100)
HIGH2: Final = pods("high-1 high-2", "pg1", "1", 100)
HIGH3: Final = pods("high-1 high-2 high-3", "pg1", "1", 100)
NEVER3: Final = pods("high-1 high-2 high-3", "pg1", "1", 100, preemptionPolicy="Never")
ABC: Final = pods("p-a p-b p-c", "pg1", "1", 100)
GANG1, GANG2, GANG3, GANG4 = (written_group("pg1", count, priority=100) for count in (1, 2, 3, 4))
BASIC: Final = written_group("pg1", priority=100)
OWN4: Final = (
    *pods("p1@node1 p2@node2", None, "1", 10),
    *pods("p3@node3 p4@node4", None, "1", 200),
)
WHOLE2: Final = written_group("victim-pg", 2, priority=50, disruptionMode=ALL)
WHOLE200: Final = written_group("victim-pg2", 2, priority=200, disruptionMode=ALL)
IN_WHOLE: Final = (
    *pods("v1@node1 v2@node2", "victim-pg", "1", 50),
    *pods("v3@node3 v4@node4", "victim-pg2", "1", 200),
)
IN_ZONE: Final = written_group("pg1", 2, priority=100, schedulingConstraints={"topology": [{"key": ZONE}]})
ZONES: Final = "zone1 zone1 zone2 zone2"
FOUR: Final = "node1=1 node2=1 node3=1 node4=1"
PREFERRED: Final = {"node1": 100, "node2": 0}
EXISTS: Final[Thing] = {
    "podAntiAffinity": {
        REQUIRED: [{"topologyKey": HOST, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}]
    }
}
PORT: Final[Thing] = {
    "containers": [
        {"name": "c", "image": "i", "ports": [{"containerPort": 8080, "hostPort": 8080, "protocol": "TCP"}],
         "resources": {"requests": {"cpu": "0.25"}}}
    ]
}  # fmt: skip
PORT_LARGE: Final[Thing] = copy.deepcopy(PORT)
PORT_LARGE["containers"][0]["resources"]["requests"]["cpu"] = "1.5"
OF_POD: Final[Thing] = {"containers": [{"name": "c", "image": "i"}], "resources": {"requests": {"cpu": "2"}}}
SPREAD: Final[Thing] = {
    "nodeSelector": {HOST: "node1"},
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 10,
         "labelSelector": {"matchLabels": {"app": "foo"}}}
    ],
}  # fmt: skip


def _one_of(victims: Thing, preemptors: Thing) -> Case:
    """Have a group take one pod of a group whose pods go one by one."""
    name = victims["metadata"]["name"]
    return Case(
        "node1=3", (preemptors, victims), pods("low-1 low-2 low-3", name, "1", 10), HIGH1,
        scheduled="high-1", victims="low-1 low-2 low-3", count=1,
    )  # fmt: skip


def _single(count: int | None) -> Thing:
    return written_group("victim-pg", count, priority=10, disruptionMode=SINGLE)


def _takes_all(group: Thing, **more: Any) -> Case:
    return Case("node1=3", (group,), LOW3, HIGH3, scheduled="high-1 high-2 high-3", victims="low-1 low-2 low-3", **more)


def _takes_none(group: Thing, **more: Any) -> Case:
    return Case(
        "node1=3", (group,), LOW3, NEVER3, scheduled="low-1 low-2 low-3", unschedulable="high-1 high-2 high-3", **more
    )


def _bound_first(group: Thing) -> Case:
    residents = (*pods("pg-pod-1 pg-pod-2", "pg1", "1", 100), *pods("low-1", None, "1", 10))
    return Case(
        "node1=4", (group,), residents, HIGH2,
        scheduled="pg-pod-1 pg-pod-2 high-1 high-2", victims="low-1", together=True, bound_first="high-1",
    )  # fmt: skip


def _two(residents: tuple[Thing, ...], members: tuple[Thing, ...], **more: Any) -> Case:
    """Have two members take two nodes."""
    given = {"nodes": "node1=2 node2=2", "victims": "initial-pod", **more}
    return Case(
        groups=(GANG2,), residents=residents, members=members,
        scheduled="preemptor-1 preemptor-2", nominated="preemptor-1 preemptor-2", **given,
    )  # fmt: skip


def _members(cpu: str, **spec: Any) -> tuple[Thing, ...]:
    return pods("preemptor-1 preemptor-2", "pg1", cpu, 100, **spec)


PREEMPTION: Final = {
    "gang takes a full node": _takes_all(GANG3, nominated="high-1 high-2 high-3"),
    "basic group takes a full node": _takes_all(BASIC, nominated="high-1 high-2 high-3"),
    "gang takes one of two nodes": Case(
        "node1=2 node2=2", (GANG3,),
        (*pods("low-1@node1", None, "2", 10), *pods("low-2@node2", None, "1", 10)), HIGH3,
        scheduled="high-1 high-2 high-3 low-2", victims="low-1", nominated="high-1 high-2 high-3", scores=PREFERRED,
    ),
    "basic group takes the node with the high score": Case(
        "node1=2 node2=2", (BASIC,),
        (*pods("low-1@node1", None, "1", 10), *pods("very-low-1@node2", None, "1", 5)), HIGH3,
        scheduled="high-1 high-2 high-3 very-low-1", victims="low-1", scores=PREFERRED, minors=("1.37",),
    ),
    "basic group takes the node with the lower priority": Case(
        "node1=2 node2=2", (BASIC,),
        (*pods("low-1@node1", None, "1", 10), *pods("very-low-1@node2", None, "1", 5)), HIGH3,
        scheduled="high-1 high-2 high-3 low-1", victims="very-low-1", scores=PREFERRED, minors=("1.38",),
    ),
    "an empty node comes before a high score": Case(
        "node1=1 node2=1 node3=1", (GANG2,), pods("low-1@node1 low-2@node3", None, "1", 10), HIGH2,
        scheduled="high-1 high-2 low-2", victims="low-1", nominated="high-1 high-2",
        scores=PREFERRED | {"node3": 50}, together=True, minors=("1.38",),
    ),
    "a victim of lower priority comes before a high score": Case(
        "node1=2 node2=2", (GANG2,), (*pods("mid-1@node1", None, "2", 50), *pods("low-1@node2", None, "2", 10)), HIGH2,
        scheduled="high-1 high-2 mid-1", victims="low-1", nominated="high-1 high-2",
        scores=PREFERRED, together=True, minors=("1.38",),
    ),
    "the other node of a condemned group comes before a high score": Case(
        FOUR,
        (*(written_group(f"victim-pg-{one}", 2, priority=10, disruptionMode=ALL) for one in "12"), GANG2),
        (
            *pods("v1-1@node1 v1-2@node2", "victim-pg-1", "1", 10),
            *pods("v2-1@node3 v2-2@node4", "victim-pg-2", "1", 10),
        ),
        HIGH2,
        scheduled="high-1 high-2 v2-1 v2-2", victims="v1-1 v1-2", nominated="high-1 high-2",
        scores={"node1": 100, "node3": 90}, together=True, minors=("1.38",),
    ),
    "a pod without a budget goes first": Case(
        "node1=3", (GANG2,), (*pods("low-1 low-2", None, "1", 10, app="foo"), *pods("low-3", None, "1", 10)),
        pods("high-1 high-2", "pg1", "0.5", 100),
        scheduled="high-1 high-2", victims="low-3", nominated="high-1 high-2", budget="foo",
    ),
    "gang takes two nodes": Case(
        "node1=2 node2=2", (GANG4,), pods("low-1@node1 low-2@node1 low-3@node2 low-4@node2", None, "1", 10),
        pods("high-1 high-2 high-3 high-4", "pg1", "1", 100),
        scheduled="high-1 high-2 high-3 high-4", victims="low-1 low-2 low-3 low-4",
        nominated="high-1 high-2 high-3 high-4", minors=("1.37",),
    ),
    "gang takes two nodes, to which others are nominated": Case(
        "node1=2 node2=2", (GANG4,), pods("low-1@node1 low-2@node1 low-3@node2 low-4@node2", None, "1", 10),
        pods("high-1 high-2 high-3 high-4", "pg1", "1", 100),
        scheduled="high-1 high-2 high-3 high-4", victims="low-1 low-2 low-3 low-4",
        nominated="high-1 high-2 high-3 high-4",
        nominees=(nominee("nominated-1", "node1"), nominee("nominated-2", "node2")), minors=("1.38",),
    ),
    "nobody goes if the gang would not fit": Case(
        "node1=3", (GANG3,), (*pods("mid-1", None, "1", 500), *pods("low-1 low-2", None, "1", 10)), HIGH3,
        scheduled="mid-1 low-1 low-2", unschedulable="high-1 high-2 high-3",
    ),
    "pods of the lowest priority go": Case(
        "node1=3", (GANG2,), (*pods("mid-1", None, "1", 50), *pods("low-1 low-2", None, "1", 10)), HIGH2,
        scheduled="high-1 high-2 mid-1", victims="low-1 low-2", nominated="high-1 high-2",
    ),
    "a group of mode all goes as a whole": Case(
        "node1=3", (GANG1, written_group("pg2", 3, priority=10, disruptionMode=ALL)),
        pods("low-1 low-2 low-3", "pg2", "1", 10), HIGH1,
        scheduled="high-1", victims="low-1 low-2 low-3", nominated="high-1",
    ),
    "gang takes one pod of a gang": _one_of(_single(2), GANG1),
    "gang takes one pod of a gang that needs all": _one_of(_single(3), GANG1),
    "basic group takes one pod of a gang": _one_of(_single(2), BASIC),
    "gang takes one pod of a basic group": _one_of(_single(None), GANG1),
    "basic group takes one pod of a basic group": _one_of(_single(None), BASIC),
    "gang: members beyond minCount preempt too": Case(
        FOUR, (GANG1,), OWN4, ABC,
        scheduled="p-a p-b p3 p4", victims="p1 p2", unschedulable="p-c", nominated="p-a p-b",
    ),
    "gang: a group of lower priority goes": Case(
        "node1=1 node2=1 node3=1", (written_group("victim-pg", 1, priority=50, disruptionMode=ALL), GANG3),
        (*pods("v1@node1 v2@node2", "victim-pg", "1", 50), *pods("v3@node3", None, "1", 10)), ABC,
        scheduled="p-a p-b p-c", victims="v1 v2 v3", nominated="p-a p-b p-c",
    ),
    "gang: a group goes for a part of the members": Case(
        FOUR, (WHOLE2, WHOLE200, written_group("pg1", 1, priority=100, disruptionMode=ALL)), IN_WHOLE, ABC,
        scheduled="p-a p-b v3 v4", victims="v1 v2", unschedulable="p-c", nominated="p-a",
    ),
    "basic: as many members as fit preempt": Case(
        FOUR, (BASIC,), OWN4, ABC,
        scheduled="p-a p-b p3 p4", victims="p1 p2", unschedulable="p-c", nominated="p-a p-b",
    ),
    "basic: a group of lower priority goes": Case(
        "node1=1 node2=1 node3=1", (written_group("victim-pg", 1, priority=50, disruptionMode=ALL), BASIC),
        (*pods("v1@node1 v2@node2", "victim-pg", "1", 50), *pods("v3@node3", None, "1", 10)), ABC,
        scheduled="p-a p-b p-c", victims="v1 v2 v3",
    ),
    "basic: a group goes for a part of the members": Case(
        FOUR, (WHOLE2, WHOLE200, BASIC), IN_WHOLE, ABC,
        scheduled="p-a p-b v3 v4", victims="v1 v2", unschedulable="p-c", nominated="p-a",
    ),
    "policy Never of the group": _takes_none(
        written_group("pg1", 3, priority=100, preemptionPolicy="Never"), minors=("1.38",)
    ),
    "policy PreemptLowerPriority of the group": _takes_all(
        written_group("pg1", 3, priority=100, preemptionPolicy="PreemptLowerPriority"), minors=("1.38",)
    ),
    "policy Never of the pods": _takes_none(GANG3),
    "resources: two nodes": _two(pods("initial-pod@node1", None, "2", 10), _members("2")),
    "resources: the pod of higher priority stays": _two(
        (*pods("initial-pod-1@node1", None, "1", 5), *pods("initial-pod-2@node1", None, "1", 10)),
        tuple(
            one
            for number in "12"
            for one in pods(f"preemptor-{number}", "pg1", "1", 100, nodeSelector={HOST: f"node{number}"})
        ),
        victims="initial-pod-1",
    ),
    "resources of the pod": _two(
        pods("initial-pod@node1", None, "0", 10, app="initial", **OF_POD), _members("0", affinity=EXISTS, **OF_POD)
    ),
    "anti-affinity keeps a victim out": _two(
        pods("initial-pod@node1", None, "0.25", 10, app="initial"), _members("1.5", affinity=EXISTS)
    ),
    "a host port keeps a victim out": _two(
        pods("initial-pod@node1", None, "0", 10, **PORT), _members("0", **PORT_LARGE)
    ),
    "spreading keeps a victim out": _two(
        pods("initial-pod@node1", None, "1", 10, app="foo"), _members("1", app="foo", **SPREAD),
        nodes="node1=16 node2=16",
    ),
    "spreading keeps one of two victims out": _two(
        (
            *pods("initial-pod@node1", None, "1", 10, app="foo"),
            *pods("initial-pod-2@node2", None, "1", 5, app="foo"),
        ),
        _members("1", app="foo", **SPREAD), nodes="node1=16 node2=16",
    ),
    "Reserve keeps a victim out": Case(
        "node1=3", (GANG2,),
        (*pods("v1@node1", None, "1", 15, app="counted"), *pods("v2@node1", None, "1", 10)),
        pods("p-a p-b", "pg1", "1", 100, app="reserved"),
        scheduled="p-a p-b v2", victims="v1", plugins=(counted(2),),
    ),
    "topology: one zone": Case(
        "node1=1 node2=1", (IN_ZONE,), pods("low-1@node1 low-2@node2", None, "1", 10), HIGH2,
        scheduled="high-1 high-2", victims="low-1 low-2", nominated="high-1 high-2", together=True, zones="zone1 zone1",
    ),
    "topology: one of two zones can be freed": Case(
        FOUR, (IN_ZONE,),
        (*pods("low-1@node1 low-2@node2", None, "1", 10), *pods("first-1@node3 first-2@node4", None, "1", 200)), HIGH2,
        scheduled="high-1 high-2 first-1 first-2", victims="low-1 low-2", nominated="high-1 high-2",
        together=True, zones=ZONES,
    ),
    "topology: the zone with the higher score is freed": Case(
        FOUR, (IN_ZONE,), pods("low-1@node1 low-2@node2 low-3@node3 low-4@node4", None, "1", 10), HIGH2,
        scheduled="high-1 high-2 low-1 low-2", victims="low-3 low-4", nominated="high-1 high-2",
        together=True, zones=ZONES,
    ),
    "topology: no zone can be freed": Case(
        FOUR, (IN_ZONE,),
        (*pods("low-1@node1 low-2@node3", None, "1", 10), *pods("first-1@node2 first-2@node4", None, "1", 200)), HIGH2,
        scheduled="low-1 low-2 first-1 first-2", unschedulable="high-1 high-2", together=True, zones=ZONES,
    ),
    "gang: members that fit are bound first": _bound_first(GANG2),
    "basic: members that fit are bound first": _bound_first(BASIC),
}  # fmt: skip
"""TestPodGroupPreemption."""
