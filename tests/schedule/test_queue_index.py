"""A change costs work only for the waiting pods that it can help: work is counted, not time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Cluster, Hint, HintIndex, Plugin, Resource
from policysched.model.objects import Affinity, LabelSelector, Metadata, Namespace, Pod, TopologySpreadConstraint
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from policysched.plugins.pod_topology_spread.plugin import PodTopologySpread
from policysched.schedule.queue import unschedulable
from policysched.schedule.queue.hints import Interests
from policysched.schedule.queue.queue import Queue
from tests.build import node, pod
from tests.plugins.inter_pod_affinity.build import away, label, near, term
from tests.schedule.queue_parts import FIT, NODE_ADDED, POD_REMOVED, Gates, StandingClock, interests, popped, queue
from tests.schedule.queue_parts import pod as gated_pod
from tests.schedule.stand import BIG, running
from tests.work import calls

AFFINITY, SPREADING = InterPodAffinity(), PodTopologySpread()


def needing(name: str) -> Pod:
    return pod(name, affinity=near(term(label("app", name))), scheduler_name="p")


def avoiding(name: str) -> Pod:
    return pod(name, affinity=away(term(label("app", name))), scheduler_name="p")


def avoided(name: str) -> Pod:
    return pod(name, labels={"app": name}, scheduler_name="p")


def spreading(name: str) -> Pod:
    selector = LabelSelector(match_labels={"app": name})
    one = TopologySpreadConstraint(
        max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule", label_selector=selector
    )
    return pod(name, topology_spread_constraints=[one], scheduler_name="p")


def come(name: str, affinity: Affinity | None = None) -> Change:
    return Change(
        Resource.ASSIGNED_POD, Action.ADD, None, pod("other", on="n1", labels={"app": name}, affinity=affinity)
    )


def gone(name: str, affinity: Affinity | None = None) -> Change:
    old = come(name, affinity).new
    return Change(Resource.ASSIGNED_POD, Action.DELETE, old, None)


def waiting_for(make: Callable[[str], Pod], count: int) -> Queue:
    """Return a queue of pods that the plugin of their constraints rejected."""
    interests = Interests(hints={plugin.name: plugin.events() for plugin in (AFFINITY, SPREADING)})
    made = queue(StandingClock(), {"p": interests})
    for number in range(count):
        reject(made, make(f"c{number}"), SPREADING if make is spreading else AFFINITY)
    return made


def reject(tested: Queue, one: Pod, plugin: Plugin) -> None:
    tested.add(one)
    queued = tested.pop()
    assert queued is not None
    assert tested.reject(queued, frozenset((plugin.name,)))


KINDS = [
    (needing, come),
    (avoiding, gone),
    (spreading, come),
    (spreading, gone),
    (avoided, lambda name: gone("any", away(term(label("app", name))))),
]


@pytest.mark.parametrize(("make", "change"), KINDS)
def test_a_change_costs_the_waiting_pods_that_it_helps_and_no_others(make: Any, change: Any) -> None:
    few, many = waiting_for(make, 10), waiting_for(make, 1000)
    for nobody in (come("plain"), gone("plain")):
        few.move(nobody), many.move(nobody)
        assert calls(lambda nobody=nobody: many.move(nobody)) == calls(lambda nobody=nobody: few.move(nobody))
    assert many.counts().unschedulable == 1000
    costs = [calls(lambda tested=tested: tested.move(change("c7"))) for tested in (few, many)]
    assert [tested.counts().unschedulable for tested in (few, many)] == [9, 999]
    assert costs[1] < 1.5 * costs[0]


def test_a_change_whose_terms_mean_any_pod_asks_about_all() -> None:
    tested = waiting_for(avoided, 20)
    everywhere = away(term(LabelSelector(), of=LabelSelector()))
    assert tested.move(gone("any", everywhere)) == 20


def test_a_waiting_pod_with_other_labels_is_found_by_these() -> None:
    tested = waiting_for(avoided, 1)
    queued = tested.get("default.c0")
    assert queued is not None
    # without a hint, the pod stays in the queue
    tested.profiles = {"p": Interests(hints={AFFINITY.name: AFFINITY.events()[:1]})}
    tested.update(replace(queued.pod, metadata=replace(queued.pod.metadata, labels={"app": "new"})))
    assert tested.counts().unschedulable == 1
    assert tested.move(gone("any", away(term(label("app", "c0"))))) == 0
    assert tested.move(gone("any", away(term(label("app", "new"))))) == 1


def always(*_: Pod | Change | Cluster) -> bool:
    return True


def broken(*_: Any) -> Collection[Hashable]:
    raise RuntimeError("broken")


def nothing(*_: Any) -> Collection[Hashable]:
    return ()


@pytest.mark.parametrize(
    ("index", "moved"),
    [
        (HintIndex(nothing, nothing), 0),
        (HintIndex(broken, nothing), 1),
        (HintIndex(nothing, broken), 1),
        (HintIndex(lambda _: range(unschedulable.MOST_KEYS), nothing), 0),
        (HintIndex(lambda _: range(unschedulable.MOST_KEYS + 1), nothing), 1),
        (HintIndex(nothing, lambda *_: None), 1),
        (HintIndex(lambda _: ("a", "b"), lambda *_: ("a", "b", "c")), 1),
    ],
)
def test_a_pod_whose_keys_cannot_be_told_is_asked_about(index: HintIndex, moved: int) -> None:
    hints = (Hint(Resource.ASSIGNED_POD, Action.ADD, always, index),)
    tested = queue(StandingClock(), {"p": Interests(hints={"Fit": hints})})
    tested.reject(popped(tested), FIT)
    assert tested.move(come("x")) == moved


def test_of_very_many_keys_no_more_are_asked_for_than_a_pod_is_filed_under() -> None:
    asked: list[int] = []

    def keys(_: Pod) -> Iterator[Hashable]:
        for number in range(10 * unschedulable.MOST_KEYS):
            asked.append(number)
            yield number

    hints = (Hint(Resource.ASSIGNED_POD, Action.ADD, None, HintIndex(keys, nothing)),)
    tested = queue(StandingClock(), {"p": Interests(hints={"Fit": hints})})
    tested.reject(popped(tested), FIT)
    assert len(asked) == unschedulable.MOST_KEYS + 1


def test_hints_of_which_one_has_no_index_are_asked_about_all() -> None:
    index = HintIndex(nothing, nothing)
    hints = tuple(Hint(Resource.ASSIGNED_POD, Action.ADD, always, one) for one in (index, None))
    tested = queue(StandingClock(), {"p": Interests(hints={"Fit": hints})})
    tested.reject(popped(tested), FIT)
    assert tested.move(come("x")) == 1


async def test_pods_that_nothing_helps_are_not_tried_while_ordinary_ones_come_and_go() -> None:
    zones = {"zone": "a"}
    async with running(node("n1", labels=zones), node("n2", labels=zones)) as stand:
        crowd = [pod(f"c{number}", affinity=near(term(label("app", f"absent-{number}")))) for number in range(50)]
        await stand.settled(*crowd)
        await stand.settled(BIG)
        assert stand.waiting == len(crowd)
        for number in range(20):
            await stand.pass_time(11)
            await stand.settled(pod(f"ordinary-{number}", labels={"app": "web"}))
            stand.confirm(pod(f"ordinary-{number}", labels={"app": "web"}), "n1")
            stand.scheduler.remove_pod(f"default.ordinary-{number}")
        await stand.settle()
        assert {f"ordinary-{number}" for number in range(20)} <= set(stand.bound)
        assert {stand.attempts(one.metadata.name) for one in crowd} == {1}
        needed = pod("needed", labels={"app": "absent-7"})
        await stand.settled(needed)
        stand.confirm(needed, stand.bound["needed"])
        await stand.settle()
        assert "c7" in stand.bound
        assert stand.waiting == len(crowd) - 1


def test_a_new_pod_goes_before_thousands_that_a_change_helps_while_they_back_off() -> None:
    tested = waiting_for(needing, 1000)
    assert tested.move(Change(Resource.NODE, Action.ADD, None, node("n1", labels={"zone": "a"})))
    tested.add(pod("new", scheduler_name="p"))
    first = tested.pop()
    assert first is not None
    assert first.pod.metadata.name == "new"


def test_gated_pods_cost_others_nothing() -> None:
    costs = []
    for count in (10, 10_000):
        tested = queue(StandingClock(), interests(Gates()))
        for number in range(count):
            tested.add(gated_pod(f"g{number}", gates=("g",)))
        assert tested.counts().gated == count

        def ordinary(tested: Queue = tested) -> None:
            queued = popped(tested, "ordinary")
            tested.reject(queued, FIT)
            assert tested.move(NODE_ADDED) == 1
            assert tested.move(POD_REMOVED) == 0
            again = tested.pop()
            assert again is queued
            tested.done(queued)
            assert tested.pop() is None

        ordinary()
        costs.append(calls(ordinary))
    assert costs[0] == costs[1]


TWO_SORTS = away(term(label("app", "guard")), term(label("app", "visitor")))


@pytest.mark.parametrize(
    ("zones", "left", "tries"),
    [
        (("a", "b"), ["guard"], 1),
        (("a", "a"), ["guard"], 2),
        (("a", "b"), [], 2),
    ],
)
async def test_pod_that_leaves_helps_only_where_no_other_one_is_avoided(
    zones: tuple[str, str], left: list[str], tries: int
) -> None:
    nodes = [node(f"n{at}", labels={"zone": zone}) for at, zone in enumerate(zones, 1)]
    async with running(*nodes) as stand:
        for at, one in enumerate((*left, "visitor"), 1):
            stand.scheduler.set_pod(pod(f"{one}-{at}", on="n1", labels={"app": one}))
        stand.scheduler.set_pod(pod("far", on="n2", labels={"app": "guard"}))
        await stand.settled(pod("shy", affinity=TWO_SORTS))
        assert stand.attempts("shy") == 1
        stand.scheduler.remove_pod(f"default.visitor-{len(left) + 1}")
        await stand.settle()
        tried = stand.attempts("shy")
        assert tried == tries or (tried == -1 and set(stand.bound) == {"shy"} and tries == 2)


async def test_namespace_s_labels_help_only_where_they_choose_other_namespaces() -> None:
    gold = near(term(label("app", "none"), of=LabelSelector(match_labels={"tier": "gold"})))
    async with running(node("n1", labels={"zone": "a"})) as stand:
        stand.scheduler.take(Namespace(metadata=Metadata(name="default", labels={"tier": "gold"})))
        await stand.settled(pod("p", affinity=gold))
        for labels, tries in (({"tier": "gold", "x": "y"}, 1), ({"x": "y"}, 2), ({"x": "z"}, 2), ({"tier": "gold"}, 3)):
            stand.scheduler.take(Namespace(metadata=Metadata(name="default", labels=labels)))
            await stand.settle()
            assert stand.attempts("p") == tries
