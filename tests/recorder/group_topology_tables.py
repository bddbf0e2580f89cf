"""The steps of Kubernetes' integration tests of topologies of pod groups, as scripts, with what they expect.

The tests are those of test/integration/scheduler/podgroup/topology_aware_scheduling of 1.37 and 1.38, without
composite pod groups. Placements never tie, and are tried in the order of their names.

Source: tas_test.go and tas_multi_placement_test.go there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tests.recorder.group_scripts import constrained, written_group, written_member
from tests.recorder.group_tables import Case, Step
from tests.recorder.scripts import written_node

Thing = dict[str, Any]
NODES: Final[Mapping[str, Thing]] = {
    f"{rack}-{number}": {"rack": rack, "zone": zone}
    for rack, zone in (("r1", "z1"), ("r2", "z1"), ("r3", "z2"), ("r4", "z2"))
    for number in range(1, 5)
}
"""The labels of nodes: racks 1 and 2 are in zone 1, racks 3 and 4 in zone 2."""
ABOVE: Final = 200
"""The priority of groups that preempt."""
BELOW: Final = 10


def nodes(names: str, cpu: str = "2", **labels: str) -> tuple[Thing, ...]:
    """Write nodes, given as words, with their rack and zone."""
    return tuple(_node(name, cpu, NODES[name] | labels) for name in names.split())


def _node(name: str, cpu: str, labels: Thing) -> Thing:
    made: Thing = written_node(name, **labels)
    amounts = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
    return made | {"status": {"allocatable": amounts, "capacity": amounts}}


def placed(name: str, node: str, cpu: str, priority: int = 100) -> Thing:
    """Write a pod of no group that is on a node."""
    return written_member(name, None, cpu, nodeName=node, priority=priority)


def pods(names: str, of: str, cpu: str = "1", priority: int = 100, nominated: str = "") -> tuple[Thing, ...]:
    """Write members of a group, given as words."""
    made = tuple(written_member(name, of, cpu, priority=priority) for name in names.split())
    return tuple(one | {"status": {"nominatedNodeName": nominated}} for one in made) if nominated else made


def gang(name: str, least: int, key: str = "rack", priority: int = 100) -> Thing:
    """Write a gang with a topology."""
    return written_group(name, least, priority=priority, **constrained(key))


def basic(name: str, key: str = "rack") -> Thing:
    """Write a basic group with a topology."""
    return written_group(name, priority=100, **constrained(key))


def _fits(before: tuple[Thing, ...], coming: tuple[Thing, ...], names: str, *on: str) -> Case:
    """Return a case in which a group comes to a cluster, and its members are all on one of some sets of nodes."""
    return Case((Step(comes=before), Step(comes=coming, scheduled=names, on=((names, on),))))


_RACKS: Final = nodes("r1-1 r1-2 r2-1 r2-2 r2-3 r3-1")
_FOUR_RACKS: Final = (*nodes("r1-1 r1-2 r2-1 r2-2 r2-3 r3-1 r3-2 r3-3"), *nodes("r4-1"))
GANGS: Final = {
    "gang schedules on a single rack, when only one feasible rack is available": _fits(
        (*nodes("r1-1 r1-2 r1-3 r2-1 r2-2 r3-1"), placed("old", "r2-1", "2")),
        (gang("pg1", 3), *pods("p1 p2 p3", "pg1")), "p1 p2 p3", "r1-1 r1-2 r1-3",
    ),
    "gang remains pending when no feasible resources are found": Case((
        Step(comes=nodes("r1-1 r1-2 r2-1 r3-1")),
        Step(comes=(gang("pg1", 3), *pods("p1 p2 p3", "pg1", "2")), unschedulable="p1 p2 p3"),
    )),
    "gang remains pending when resources are consumed by existing pods": Case((
        Step(comes=(*nodes("r1-1 r1-2 r1-3"), placed("old1", "r1-1", "2"), placed("old2", "r1-3", "2"))),
        Step(comes=(gang("pg1", 3), *pods("p1 p2 p3", "pg1")), unschedulable="p1 p2 p3"),
        Step(goes=(("Pod", "old1"),), scheduled="p1 p2 p3"),
    )),
    "gang uses pod group preemption when resources are consumed by lower priority existing pods": Case((
        Step(comes=(*nodes("r1-1 r1-2 r1-3"), placed("old1", "r1-1", "2"), placed("old2", "r1-3", "2"))),
        Step(comes=(gang("pg1", 3, priority=ABOVE), *pods("p1 p2 p3", "pg1", priority=ABOVE)), scheduled="p1 p2 p3"),
    )),
    "gang uses preemption and schedules on a single rack, choosing placement with the highest score": Case((
        Step(comes=(
            *_RACKS, placed("low1", "r1-1", "2", BELOW), placed("low2", "r2-1", "2", BELOW),
            placed("low3", "r2-2", "2", BELOW),
        )),
        Step(
            comes=(gang("pg1", 3, priority=ABOVE), *pods("p1 p2 p3", "pg1", priority=ABOVE)),
            scheduled="p1 p2 p3", removed="low1", on=(("p1 p2 p3", ("r1-1 r1-2",)),),
        ),
    )),
    "gang uses preemption, choosing placement with highest allocation percentage with pre-existing pods": Case((
        Step(comes=(
            *_FOUR_RACKS, placed("old1", "r2-1", "2", ABOVE), placed("old2", "r3-3", "1", ABOVE),
            placed("low1", "r1-1", "2", BELOW), placed("low2", "r2-2", "2", BELOW), placed("low3", "r3-1", "2", BELOW),
            placed("low4", "r3-3", "1", BELOW),
        )),
        Step(
            comes=(gang("pg1", 3, priority=ABOVE), *pods("p1 p2 p3", "pg1", priority=ABOVE)),
            scheduled="p1 p2 p3", removed="low2", on=(("p1 p2 p3", ("r2-1 r2-2 r2-3",)),),
        ),
    )),
    "gang chooses the placement with the highest score": _fits(
        _RACKS, (gang("pg1", 3), *pods("p1 p2 p3", "pg1")), "p1 p2 p3", "r1-1 r1-2"
    ),
    "gang chooses the placement with highest allocation percentage with pre-existing pods": _fits(
        (*_FOUR_RACKS, placed("old1", "r2-1", "2"), placed("old2", "r3-3", "1")),
        (gang("pg1", 3), *pods("p1 p2 p3", "pg1")), "p1 p2 p3", "r2-1 r2-2 r2-3",
    ),
    "two gangs schedule consecutively, each on a separate rack": Case((
        Step(comes=nodes("r1-1 r1-2 r1-3 r2-1 r2-2")),
        Step(
            comes=(gang("pg1", 3), *pods("p1 p2 p3", "pg1", "2")),
            scheduled="p1 p2 p3", on=(("p1 p2 p3", ("r1-1 r1-2 r1-3",)),),
        ),
        Step(comes=(gang("pg2", 2), *pods("p4 p5", "pg2")), scheduled="p4 p5", on=(("p4 p5", ("r2-1 r2-2",)),)),
    )),
    "two gangs schedule consecutively, both on the same rack": Case((
        Step(comes=nodes("r1-1 r1-2 r1-3 r2-1")),
        Step(
            comes=(
                gang("pg1", 2), *pods("p1", "pg1", "2"), *pods("p2", "pg1"), gang("pg2", 3), *pods("p3 p4 p5", "pg2"),
            ),
            scheduled="p1 p2 p3 p4 p5", on=(("p1 p2 p3 p4 p5", ("r1-1 r1-2 r1-3",)),),
        ),
    )),
    "two gangs schedule consecutively, different topology keys": Case((
        Step(comes=nodes("r1-1 r1-2 r2-1 r3-1 r3-2 r3-3")),
        Step(
            comes=(gang("pg1", 3), *pods("p1 p2 p3", "pg1", "2")),
            scheduled="p1 p2 p3", on=(("p1 p2 p3", ("r3-1 r3-2 r3-3",)),),
        ),
        Step(
            comes=(gang("pg2", 3, "zone"), *pods("p4 p5 p6", "pg2", "2")),
            scheduled="p4 p5 p6", on=(("p4 p5 p6", ("r1-1 r1-2 r2-1",)),),
        ),
    )),
    "two gangs schedule consecutively, only one fits in the cluster": Case((
        Step(comes=nodes("r1-1 r1-2")),
        Step(comes=(gang("pg1", 3), *pods("p1 p2 p3", "pg1")), scheduled="p1 p2 p3"),
        Step(comes=(gang("pg2", 2), *pods("p4 p5", "pg2")), unschedulable="p4 p5"),
    )),
    "gang with minCount < pod count schedules on a single rack": _fits(
        nodes("r1-1 r1-2 r2-1 r2-2"),
        (gang("pg1", 2), *pods("p1 p2 p3", "pg1")), "p1 p2 p3", "r1-1 r1-2", "r2-1 r2-2",
    ),
    "gang with minCount < pod count schedules on a single rack, choosing smaller rack": Case((
        Step(comes=nodes("r1-1 r1-2 r1-3 r2-1 r2-2 r3-1")),
        Step(comes=(gang("pg1", 3), *pods("p1 p2 p3", "pg1")), scheduled="p1 p2 p3"),
        Step(comes=pods("p4", "pg1"), scheduled="p4", on=(("p1 p2 p3 p4", ("r2-1 r2-2",)),)),
        Step(comes=pods("p5", "pg1"), unschedulable="p5"),
    )),
    "gang with minCount < pod count, additional pod triggers preemption on the same rack": Case((
        Step(comes=(*nodes("r1-1 r1-2 r1-3 r2-1 r2-2 r3-1"), placed("low", "r2-2", "1", BELOW))),
        Step(
            comes=(gang("pg1", 3, priority=ABOVE), *pods("p1 p2 p3", "pg1", priority=ABOVE)),
            scheduled="p1 p2 p3", on=(("p1 p2 p3", ("r2-1 r2-2",)),),
        ),
        Step(
            comes=pods("p4", "pg1", priority=ABOVE),
            scheduled="p4", removed="low", on=(("p1 p2 p3 p4", ("r2-1 r2-2",)),),
        ),
        Step(
            comes=pods("p5", "pg1", priority=ABOVE), unschedulable="p5", on=(("p1 p2 p3 p4", ("r2-1 r2-2",)),)
        ),
    )),
    "gang does not schedule on a single rack when existing pods have its priority": Case((
        Step(comes=(*nodes("r1-1 r1-2"), placed("old", "r1-2", "2"))),
        Step(comes=(gang("pg1", 3), *pods("p1 p2 p3", "pg1")), unschedulable="p1 p2 p3"),
    )),
}  # fmt: skip
BASIC: Final = {
    "basic podgroup schedules on the only rack in the cluster": _fits(
        nodes("r1-1 r1-2"), (basic("pg1"), *pods("p1 p2 p3", "pg1")), "p1 p2 p3", "r1-1 r1-2"
    ),
    "basic podgroup schedules all pods on a single rack": _fits(
        nodes("r1-1 r1-2 r2-1 r2-2 r3-1 r3-2"),
        (*pods("p1 p2 p3", "pg1"), basic("pg1")), "p1 p2 p3", "r1-1 r1-2", "r2-1 r2-2", "r3-1 r3-2",
    ),
    "basic podgroup cannot fit on a single rack, no pods get scheduled on a different rack": Case((
        Step(comes=nodes("r1-1 r2-1")),
        Step(
            comes=(basic("pg1"), *pods("p1 p2 p3", "pg1")),
            scheduled="p1 p2", unschedulable="p3", on=(("p1 p2", ("r1-1", "r2-1")),),
        ),
    )),
    "basic podgroup does not schedule at all when no pods fit": Case((
        Step(comes=nodes("r1-1 r2-1")),
        Step(comes=(basic("pg1"), *pods("p1 p2", "pg1", "3")), unschedulable="p1 p2"),
    )),
    "basic podgroup schedules only some pods when others don't fit on any node": Case((
        Step(comes=nodes("r1-1 r2-1")),
        Step(comes=(basic("pg1"), *pods("p1", "pg1", "3"), *pods("p2", "pg1")), scheduled="p2", unschedulable="p1"),
    )),
    "basic podgroup chooses the placement with highest allocation percentage": _fits(
        nodes("r1-1 r1-2 r2-1 r2-2 r2-3"), (basic("pg1"), *pods("p1 p2 p3", "pg1")), "p1 p2 p3", "r1-1 r1-2"
    ),
    "basic podgroup chooses the placement with highest allocation percentage with pre-existing pods": _fits(
        (
            *nodes("r1-1 r1-2 r1-3 r2-1 r2-2 r2-3 r3-1 r3-2 r3-3 r3-4"),
            placed("old1", "r1-1", "1"), placed("old2", "r2-2", "1"), placed("old3", "r2-3", "1"),
        ),
        (basic("pg1"), *pods("p1 p2 p3", "pg1")), "p1 p2 p3", "r2-1 r2-2 r2-3",
    ),
    "basic podgroup chooses the best scoring placement that will not fit all podgroup": Case((
        Step(comes=(*nodes("r1-1 r1-2 r1-3 r1-4 r2-1"), placed("old", "r1-1", "2"))),
        Step(comes=(basic("pg1"), *pods("p1", "pg1")), scheduled="p1"),
        Step(comes=pods("p2 p3", "pg1"), scheduled="p2", unschedulable="p3", on=(("p1 p2", ("r2-1",)),)),
    )),
    "two basic podgroups schedule consecutively, each on a single rack": Case((
        Step(comes=nodes("r1-1 r1-2 r1-3 r2-1")),
        Step(
            comes=(basic("pg1"), *pods("p1 p2", "pg1"), basic("pg2"), *pods("p3 p4", "pg2")),
            scheduled="p1 p2 p3 p4", on=(("p1 p2", ("r2-1",)), ("p3 p4", ("r1-1 r1-2 r1-3",))),
        ),
    )),
    "two basic podgroups schedule consecutively on the only rack": Case((
        Step(comes=nodes("r1-1 r1-2 r1-3")),
        Step(
            comes=(basic("pg1"), *pods("p1 p2", "pg1"), basic("pg2"), *pods("p3 p4 p5", "pg2")),
            scheduled="p1 p2 p3 p4 p5",
        ),
    )),
    "two basic podgroups schedule consecutively, different topology keys": Case((
        Step(comes=nodes("r1-1 r3-1 r3-2 r4-1 r4-2")),
        Step(
            comes=(basic("pg1"), *pods("p1 p2", "pg1"), basic("pg2", "zone"), *pods("p3 p4 p5", "pg2", "2")),
            scheduled="p1 p2 p3 p4 p5", on=(("p1 p2", ("r1-1",)), ("p3 p4 p5", ("r3-1 r3-2 r4-1 r4-2",))),
        ),
    )),
    "two basic podgroups schedule consecutively, one does not fit in the assigned rack": Case((
        Step(comes=nodes("r1-1 r1-2 r2-1")),
        Step(comes=(basic("pg1"), *pods("p1", "pg1")), scheduled="p1"),
        Step(comes=pods("p2 p3", "pg1"), scheduled="p2", unschedulable="p3", on=(("p1 p2", ("r2-1",)),)),
        Step(
            comes=(basic("pg2"), *pods("p4 p5 p6", "pg2")),
            scheduled="p4 p5 p6", on=(("p4 p5 p6", ("r1-1 r1-2",)),),
        ),
    )),
    "basic podgroup continues to schedule pods when more resources become available": Case((
        Step(comes=(*nodes("r1-1 r2-1"), placed("old", "r1-1", "1"))),
        Step(comes=(basic("pg1"), *pods("p1", "pg1")), scheduled="p1", on=(("p1", ("r1-1",)),)),
        Step(comes=pods("p2", "pg1"), unschedulable="p2"),
        Step(goes=(("Pod", "old"),), scheduled="p1 p2", on=(("p1 p2", ("r1-1",)),)),
    )),
}  # fmt: skip
NOMINATED: Final = {
    "gang prefers the rack matching the pods' nominated node": _fits(
        (*nodes("r1-1"), *nodes("r2-1", "4"), *pods("p1 p2", "pg1", nominated="r2-1")),
        (gang("pg1", 2),), "p1 p2", "r2-1",
    ),
    "a nominated node outside the selected domain does not prevent scheduling": Case((
        Step(comes=(*nodes("r1-1", "1"), *nodes("r2-1", "4"), placed("old", "r1-1", "1"))),
        Step(comes=(gang("pg1", 2), *pods("p1 p2", "pg1")), scheduled="p1 p2", on=(("p1 p2", ("r2-1",)),)),
        Step(goes=(("PodGroup", "pg1"),)),
        Step(comes=pods("p3", "pg1", nominated="r1-1"), idle="p3"),
        Step(
            comes=({**gang("pg1", 2), "metadata": {"name": "pg1", "namespace": "default", "uid": "again"}},),
            scheduled="p3", on=(("p3", ("r2-1",)),),
        ),
    )),
}  # fmt: skip
"""Of 1.38: earlier releases do not try the nominated placement first."""
DIVIDED: Final = {
    "gang is placed by the common nodes of two generators": _fits(
        (*nodes("r1-1 r1-2 r2-1 r2-2 r2-3", pool="a"), *nodes("r1-3", pool="b")),
        (gang("pg1", 3), *pods("p1 p2 p3", "pg1", "2")), "p1 p2 p3", "r2-1 r2-2 r2-3",
    ),
}  # fmt: skip
"""Of 1.38: a second plugin divides the nodes by their label `pool`."""
LIMITED: Final = {
    "basic podgroup is on a single rack despite a restrictive placement limit": _fits(
        nodes("r1-1 r1-2 r2-1 r2-2 r3-1 r3-2"),
        (*pods("p1 p2 p3", "pg1"), basic("pg1")), "p1 p2 p3", "r1-1 r1-2", "r2-1 r2-2", "r3-1 r3-2",
    ),
    "restrictive placement limit still finds the only feasible rack for a gang": _fits(
        (*nodes("r1-1 r1-2 r1-3 r2-1 r2-2 r3-1"), placed("old", "r2-1", "2")),
        (gang("pg1", 3), *pods("p1 p2 p3", "pg1")), "p1 p2 p3", "r1-1 r1-2 r1-3",
    ),
}  # fmt: skip
"""Of 1.38, with a percentage of placements by which one feasible placement is enough."""
