"""The steps of Kubernetes' integration tests of how pod groups are queued, as `group_tables` has them.

Source: test/integration/scheduler/podgroup/queueing/queueing_test.go and interleaving_test.go.
"""

from __future__ import annotations

from typing import Any, Final

from tests.recorder.group_scripts import written_group
from tests.recorder.group_tables import GATED, Case, Step, node, pods

Thing = dict[str, Any]
IN_CYCLE: Final = 0.0006
"""After the first of a few objects, a moment between taking their group and its cycle. Units: seconds."""
GANG: Final = written_group("pg", 2)
SINGLE: Final = written_group("pg", 1)
TRIPLE: Final = written_group("pg", 3)
BASIC: Final = written_group("pg")
TWO: Final = Step((node("node", "2"),))
SIX: Final = Step((node("node2", "6"),))


def _of(names: str, cpu: str = "2", **spec: Any) -> tuple[Thing, ...]:
    return pods(names, "pg", cpu, 0, **spec)


P12, P1, P2, P3, P4 = _of("p1 p2"), _of("p1"), _of("p2"), _of("p3"), _of("p4")
SMALL12: Final = _of("p1 p2", "1")
LARGE2: Final = _of("p2", "4")


def _more(step: Step, **expected: Any) -> Step:
    """Expect something of a step."""
    return Step(step.comes, **expected)


def _injected(group: Thing) -> Case:
    """Bring a member while its group is in a cycle that fails."""
    return Case((
        TWO,
        Step((group,)),
        Step(P12, later=((IN_CYCLE, P3[0]),), unschedulable="p1 p2 p3"),
        _more(SIX, scheduled="p1 p2 p3"),
    ))  # fmt: skip


def _gated(group: Thing, first: tuple[Step, ...], waiting: str) -> Case:
    """Bring a gated member to a group that was rejected."""
    return Case(
        (
            TWO,
            Step((group,)),
            *first,
            Step(_of("p3", **GATED)),
            _more(SIX, idle=f"{waiting} p3"),
            Step(P3, scheduled="p1 p2 p3"),
        )
    )


QUEUEING: Final = {
    "gang gets new members": Case((
        TWO,
        Step((GANG, *P12), unschedulable="p1 p2"),
        Step(P3, unschedulable="p1 p2 p3"),
        _more(SIX, scheduled="p1 p2 p3"),
        Step(P4, scheduled="p1 p2 p3 p4"),
    )),
    "basic group gets new members": Case((
        TWO,
        Step((BASIC, *P1), scheduled="p1"),
        Step(P2, unschedulable="p2"),
        Step(P3, unschedulable="p2 p3"),
        _more(SIX, scheduled="p1 p2 p3"),
    )),
    "member comes during a gang's cycle that fails": _injected(GANG),
    "member comes during a gang's cycle that succeeds": Case((
        TWO, SIX,
        Step((GANG,)),
        Step(P12, later=((IN_CYCLE, P3[0]),), scheduled="p1 p2 p3"),
    )),
    "member comes during a basic group's cycle that fails": Case((
        TWO,
        Step((BASIC, *P1), scheduled="p1"),
        Step(P2, later=((IN_CYCLE, P3[0]),), unschedulable="p2 p3"),
        _more(SIX, scheduled="p1 p2 p3"),
    )),
    "member comes during a basic group's cycle that succeeds": Case((
        TWO, SIX,
        Step((BASIC,)),
        Step(P12, later=((IN_CYCLE, P3[0]),), scheduled="p1 p2 p3"),
    )),
    "one gated member gates a gang": Case((
        TWO, SIX,
        Step((GANG, *_of("p1", **GATED)), idle="p1"),
        Step((*P2, *P3), idle="p1 p2 p3"),
        Step(P1, scheduled="p1 p2 p3"),
    )),
    "one gated member gates a basic group": Case((
        TWO, SIX,
        Step((BASIC, *_of("p1", **GATED)), idle="p1"),
        Step((*P2, *P3), idle="p1 p2 p3"),
        Step(P1, scheduled="p1 p2 p3"),
    )),
    "a gated member comes to a gang that was rejected": _gated(GANG, (Step(P12, unschedulable="p1 p2"),), "p1 p2"),
    "a gated member comes to a basic group that was rejected": _gated(
        BASIC, (Step(P1, scheduled="p1"), Step(P2, unschedulable="p2")), "p2"
    ),
    "a gang's member fails at PreBind": Case((TWO, SIX, Step((GANG, *P12), scheduled="p1 p2")), "p1"),
    "a basic group's member fails at PreBind": Case((TWO, SIX, Step((BASIC, *P12), scheduled="p1 p2")), "p1"),
    "the only member of a gang fails at PreBind": Case((TWO, Step((SINGLE, *P1), scheduled="p1")), "p1"),
    "the only member of a basic group fails at PreBind": Case((TWO, Step((BASIC, *P1), scheduled="p1")), "p1"),
    "a gang's member fails at PreBind beside an unschedulable one": Case((
        TWO,
        Step((*P1, *LARGE2), idle="p1 p2"),
        Step((SINGLE,), scheduled="p1", unschedulable="p2"),
        _more(SIX, scheduled="p1 p2"),
    ), "p1"),
    "a basic group's member fails at PreBind beside an unschedulable one": Case((
        TWO,
        Step((BASIC,)),
        Step((*P1, *LARGE2), scheduled="p1", unschedulable="p2"),
        _more(SIX, scheduled="p1 p2"),
    ), "p1"),
    "a scheduled gang's object goes": Case((
        TWO,
        Step((GANG, *SMALL12), scheduled="p1 p2"),
        Step(goes=(("PodGroup", "pg"),)),
        Step(P3, idle="p3"),
    )),
    "a scheduled basic group's object goes": Case((
        TWO,
        Step((BASIC, *SMALL12), scheduled="p1 p2"),
        Step(goes=(("PodGroup", "pg"),)),
        Step(P3, idle="p3"),
    )),
    "the object of a gang goes that is scheduled in part": Case((
        TWO,
        Step((GANG, *SMALL12, *P3), scheduled="p1 p2", unschedulable="p3"),
        Step(goes=(("PodGroup", "pg"),), idle="p3"),
    )),
    "the object of a basic group goes that is scheduled in part": Case((
        TWO,
        Step((BASIC, *SMALL12, *P3), scheduled="p1 p2", unschedulable="p3"),
        Step(goes=(("PodGroup", "pg"),), idle="p3"),
    )),
    "the object of an unschedulable gang goes": Case((
        TWO,
        Step((TRIPLE, *SMALL12, *P3), unschedulable="p1 p2 p3"),
        Step(goes=(("PodGroup", "pg"),), idle="p1 p2 p3"),
    )),
}  # fmt: skip
"""TestPodGroupQueueing."""

RETRIES: Final = {
    "a gang is retried though nothing changed": Case((
        TWO, Step((GANG, *P12), unschedulable="p1 p2", retried="p1 p2"),
    )),
    "the rest of a basic group is retried though nothing changed": Case((
        TWO, Step((BASIC,)), Step(P12, busy=True, scheduled="p1", unschedulable="p2", retried="p2"),
    )),
}  # fmt: skip
"""TestPodGroupSequentialQueueing."""

FOUR: Final = Step((node("node", "4"),))
MEMBERS: Final = pods("pg-p1 pg-p2 pg-p3", "pg", "2", 0)
HIGH: Final = pods("high-priority-pod", None, "4", 1000)[0]
NORMAL: Final = pods("normal-priority-pod", None, "2", 0)
THIRD: Final = node("node3", "2")
REMAINING: Final = {
    "the rest of a group waits behind a pod of higher priority": Case((
        FOUR,
        Step((BASIC,)),
        Step(
            MEMBERS, busy=True, later=((0.0015, HIGH), (0.0025, node("node2", "4"))),
            scheduled="pg-p1 pg-p2 high-priority-pod", unschedulable="pg-p3",
            nodes=(("high-priority-pod", "node2"),),
        ),
    )),
    "the rest of a group is before a newer pod": Case((
        FOUR,
        Step((BASIC,)),
        Step(
            (*MEMBERS, *NORMAL), busy=True, later=((0.0025, THIRD),),
            scheduled="pg-p1 pg-p2 pg-p3", unschedulable="normal-priority-pod", nodes=(("pg-p3", "node3"),),
        ),
    )),
    "a member that came during the cycle is behind an older pod": Case((
        FOUR,
        Step((BASIC,)),
        Step(
            (*MEMBERS[:2], *NORMAL), busy=True, later=((0.0015, MEMBERS[2]), (0.0025, THIRD)),
            scheduled="pg-p1 pg-p2 normal-priority-pod", unschedulable="pg-p3",
            nodes=(("normal-priority-pod", "node3"),),
        ),
    )),
}  # fmt: skip
"""TestPodGroupRequeueRemainingOnSchedulingSuccess."""


def _gang(priority: int = 10, count: int = 3) -> Thing:
    return written_group("pg", count, priority=priority)


def _members(names: str = "g1 g2 g3", priority: int = 10, cpu: str = "1") -> tuple[Thing, ...]:
    return pods(names, "pg", cpu, priority)


def _alone(name: str, cpu: str, priority: int = 10, **spec: Any) -> Thing:
    return pods(name, None, cpu, priority, **spec)[0]


def _quorum(priority: int, cpu: str, **expected: Any) -> Case:
    """Bring a pod while a gang waits for its quorum."""
    return Case((
        FOUR,
        Step((_gang(priority), *_members("g1 g2", priority)), idle="g1 g2"),
        Step((_alone("s1", cpu),), scheduled="s1"),
        Step(_members("g3", priority), **expected),
    ))  # fmt: skip


UNSCHEDULABLE: Final = (("pg", "False", "Unschedulable"),)
INTERLEAVING: Final = {
    "a pod of higher priority is before an older gang": Case((
        FOUR,
        Step((_gang(),)),
        Step(
            (*_members(), _alone("p-high", "2", 100)), busy=True,
            scheduled="p-high", unschedulable="g1 g2 g3", groups=UNSCHEDULABLE,
        ),
    )),
    "a gang of higher priority is before older pods": Case((
        FOUR,
        Step((_gang(100),)),
        Step(
            (_alone("low-s1", "1"), _alone("low-s2", "1"), *_members(priority=100)), busy=True,
            scheduled="g1 g2 g3 low-s1", unschedulable="low-s2",
        ),
    )),
    "a pod is before a newer gang": Case((
        FOUR,
        Step((_gang(),)),
        Step(
            (_alone("s1", "2"), *_members()), busy=True,
            scheduled="s1", unschedulable="g1 g2 g3", groups=UNSCHEDULABLE,
        ),
    )),
    "a gang is before newer pods": Case((
        FOUR,
        Step((_gang(),)),
        Step(
            (*_members(), _alone("s1", "1"), _alone("s2", "1")), busy=True,
            scheduled="g1 g2 g3 s1", unschedulable="s2",
        ),
    )),
    "a pod does not wait for a gang's quorum": _quorum(10, "2", scheduled="s1", unschedulable="g1 g2 g3"),
    "a pod does not wait for a gang's quorum, all fit": _quorum(10, "1", scheduled="s1 g1 g2 g3"),
    "a pod does not wait for the quorum of a gang of higher priority": _quorum(100, "1", scheduled="s1 g1 g2 g3"),
    "a gang that is too large blocks no pod": Case((
        Step((node("node", "2"),)),
        Step((_gang(),)),
        Step((*_members(), _alone("s1", "1")), busy=True, scheduled="s1", unschedulable="g1 g2 g3"),
    )),
    "a pod that is too large blocks no gang": Case((
        Step((node("node", "3"),)),
        Step((_gang(),)),
        Step((_alone("high-s1", "4", 100), *_members()), busy=True, scheduled="g1 g2 g3", unschedulable="high-s1"),
    )),
    "pods before and after a basic group that fits in part": Case((
        FOUR,
        Step((written_group("pg", priority=10),)),
        Step(
            (_alone("s1", "1"), *_members("b1 b2 b3", cpu="2"), _alone("s2", "1")), busy=True,
            scheduled="s1 s2", among=("b1 b2 b3", 1, 2),
        ),
    )),
    "a gated pod blocks no gang": Case((
        Step((node("node", "2"),)),
        Step((_alone("p-gated", "2", 100, **GATED),), idle="p-gated"),
        Step((_gang(100, 2), *_members("g1 g2", 100)), scheduled="g1 g2", idle="p-gated"),
        Step((_alone("p-gated", "2", 100),), unschedulable="p-gated"),
    )),
}  # fmt: skip
"""TestPodGroupInterleaving of 1.38."""
