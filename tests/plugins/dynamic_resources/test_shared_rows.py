"""Pods whose claims ask for the same are one class: what it is told follows devices, claims, slices and nodes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.devices import Allocator
from policysched.framework import AssumedPod, Cluster
from policysched.model.objects import Pod, ResourceClaim
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from tests import work
from tests.build import node
from tests.plugins.dynamic_resources.objects import (
    allocated,
    changed,
    claim,
    claiming,
    device,
    exactly,
    first_available,
    gpu_class,
    resource_slice,
    selector,
    world,
)

NODES = ("n1", "n2", "n3", "n4")
FAILS = 'device.attributes["gpu.example.com"].nothing == "a"'


def engine(around: Cluster) -> Engine:
    return Engine(around, default_profile(), Random(1))


def keys(around: Cluster, *names: str) -> list[Any]:
    of = engine(around)
    return [of.classes.key(claiming(name, name=f"p-{name}")) for name in names]


def statuses(of: Evaluation, around: Cluster) -> dict[str, str]:
    """What is said of each node that is there; of the pod where it is turned away."""
    if of.rejection is not None:
        return {"": str(of.rejection)}
    rows = around.nodes.present.data[: around.nodes.size].nonzero()[0].tolist()
    return {around.nodes.names[row]: str(of.status(row)) if of.first[row] else "" for row in rows}


def reserve(of: Engine, pod: Pod) -> str:
    """Decide for a pod and let it take its devices; return its node, empty where there is none."""
    decision = of.decide(pod)
    if decision.row < 0:
        return ""
    of.cluster.assume(pod, decision.row)
    for plugin in of.profile.reserving(pod, of.cluster):
        assert plugin.reserve(AssumedPod(pod, of.cluster.nodes.names[decision.row], of.cluster)) is None
    return of.cluster.nodes.names[decision.row]


def two_nodes(*objects: Any) -> Cluster:
    slices = [resource_slice("n1", "d1", "d2"), resource_slice("n2", "d1")]
    return world(node("n1"), node("n2"), *slices, *objects)


def test_pods_whose_claims_ask_for_the_same_are_one_class() -> None:
    one, other, two, three = keys(
        two_nodes(claim("a"), claim("b"), claim("c", exactly(count=2)), claim("d", exactly(name="x"))),
        "a",
        "b",
        "c",
        "d",
    )
    assert one == other
    assert len({one, two, three}) == 3


@pytest.mark.parametrize(
    "own",
    [
        allocated(claim("own"), "n1", "d1"),
        claim("own", first_available("r", "a", "b")),
        claim("own", exactly(selectors=(selector(FAILS),))),
        claim("own", exactly(device_class="missing")),
        claim("own", exactly(count=33)),
    ],
    ids=["allocated", "alternatives", "an error", "no class", "too many"],
)
def test_answers_that_are_of_one_pod_are_not_shared(own: ResourceClaim) -> None:
    around = two_nodes(own, claim("plain"))
    of = engine(around)
    shared = of.profile.shared_keys
    assert shared(claiming("own"), around) == ()
    assert shared(claiming("plain"), around) != ()
    kept = of.find(claiming("own"))
    assert kept is not of.find(claiming("own")) or kept.rejection is not None


def test_the_class_is_told_of_devices_that_are_taken_and_given_back() -> None:
    names = [f"c{one}" for one in range(5)]
    around = two_nodes(*(claim(one) for one in names))
    of = engine(around)
    pods = [claiming(one, name=f"p-{one}") for one in names]
    assert sorted(reserve(of, pod) for pod in pods[:3]) == ["n1", "n1", "n2"]
    failed = of.decide(pods[3])
    assert failed.row < 0
    assert str(failed.fit_error()) == "0/2 nodes are available: 2 cannot allocate all claims."
    around.resource_claims.end("uid-c0")
    assert reserve(of, pods[3]) in {"n1", "n2"}
    assert not reserve(of, pods[4])


def test_the_class_is_told_of_slices_and_nodes_that_come_and_go() -> None:
    around = two_nodes(*(claim(f"c{one}", exactly(count=2)) for one in range(4)))
    of = engine(around)
    said = [statuses(of.find(claiming("c0", name="p0")), around)]
    around.take(resource_slice("n2", "d1", "d2"))
    said.append(statuses(of.find(claiming("c1", name="p1")), around))
    around.drop(resource_slice("n1", "d1", "d2"))
    said.append(statuses(of.find(claiming("c2", name="p2")), around))
    around.take(resource_slice("n3", "d1", "d2", "d3"))
    around.set_node(node("n3"))
    said.append(statuses(of.find(claiming("c3", name="p3")), around))
    suitable = [{name for name, text in one.items() if not text} for one in said]
    assert suitable == [{"n1"}, {"n1", "n2"}, {"n2"}, {"n2", "n3"}]


def test_an_error_ends_what_is_shared() -> None:
    fails = exactly(selectors=(selector('device.attributes["gpu.example.com"].model == "a"'),))
    around = two_nodes(claim("a", fails), claim("b", fails), claim("c", fails))
    of = engine(around)
    assert of.decide(claiming("a", name="p-a")).row >= 0
    around.take(resource_slice("n2", replace(device("d1"), attributes={})))
    failed = of.decide(claiming("b", name="p-b"))
    assert failed.failure is not None
    assert "claim default/b: selector #0" in str(failed.failure)
    around.take(resource_slice("n2", "d1"))
    assert of.decide(claiming("c", name="p-c")).row >= 0


class Life:
    """Slices, nodes, classes and claims that come and go."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._held: list[ResourceClaim] = []
        self.around = world(*(node(one) for one in NODES[:2]))
        self.steps = 0

    def change(self) -> None:
        """Change one thing."""
        self.steps += 1
        changes = (self._slice, self._slice, self._no_slice, self._node, self._no_node, self._class)
        self._random.choice((*changes, self._hold, self._give_back))(self._random.choice(NODES))

    def _slice(self, name: str) -> None:
        self.around.take(resource_slice(name, *(f"d{one}" for one in range(self._random.randrange(1, 5)))))

    def _no_slice(self, name: str) -> None:
        self.around.drop(resource_slice(name))

    def _node(self, name: str) -> None:
        self.around.set_node(node(name, labels={"step": str(self.steps)}))

    def _no_node(self, name: str) -> None:
        self.around.remove_node(name)

    def _class(self, _: str) -> None:
        self.around.take(gpu_class(expression=self._random.choice(('device.driver == "gpu.example.com"', "true"))))

    def _hold(self, name: str) -> None:
        self._held.append(allocated(claim(f"held-{self.steps}"), name, f"d{self._random.randrange(4)}"))
        self.around.take(self._held[-1])

    def _give_back(self, _: str) -> None:
        if self._held:
            self.around.drop(self._held.pop())


@pytest.mark.parametrize("seed", range(12))
def test_what_is_kept_is_what_is_found_anew(seed: int) -> None:
    random = Random(seed)
    life = Life(random)
    around, of = life.around, engine(life.around)
    kinds = [exactly(), exactly(count=2), exactly(selectors=(selector('device.driver != "other"'),))]
    for number in range(60):
        life.change()
        asked = claim(f"c{number}", random.choice(kinds))
        around.take(asked)
        pod = claiming(f"c{number}", name=f"p{number}")
        assert statuses(of.find(pod), around) == statuses(engine(around).find(pod), around), (seed, number)
        if random.random() < 0.5:
            reserve(of, pod)


def test_writing_what_is_in_flight_moves_no_devices() -> None:
    of = claim("c")
    around = two_nodes(of)
    got = allocated(of, "n1", "d1")
    around.resource_claims.begin(got)
    before = around.devices.allocated.stamp
    allocation = got.status.allocation
    assert allocation is not None
    written = changed(got, version="2", allocation=replace(allocation, allocation_timestamp="2026-01-01T00:00:00Z"))
    around.resource_claims.assume(written)
    assert around.resource_claims.end("uid-c")
    assert around.devices.allocated.stamp == before


def _calls(nodes: int) -> int:
    """Count what the decision and Reserve for one more pod of a template take."""
    names = [f"n{one}" for one in range(nodes)]
    around = world(*map(node, names), *(resource_slice(one, *(f"d{place}" for place in range(4))) for one in names))
    of = engine(around)
    pods = []
    for number in range(12):
        around.take(claim(f"c{number}"))
        pods.append(claiming(f"c{number}", name=f"p{number}"))
    for pod in pods[:-1]:
        reserve(of, pod)
    return work.calls(lambda: reserve(of, pods[-1]))


def test_work_of_a_decision_with_reserve_does_not_grow_with_the_nodes() -> None:
    assert _calls(400) <= _calls(40)


def test_a_cycle_in_which_steps_run_out_is_told_the_same_all_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left is asked in the next cycle: nothing is let pass in between."""
    monkeypatch.setattr("policysched.devices.answers.prepared._STEPS_A_GROUP", 0)
    names = [f"n{one}" for one in range(40)]
    around = world(*map(node, names), *(resource_slice(one, device("d1", f"model-{one}")) for one in names))
    around.take(claim("c", exactly(selectors=(selector('device.attributes["gpu.example.com"].model == "model-n3"'),))))
    found = DynamicResources()
    monkeypatch.setattr(Allocator.__init__, "__kwdefaults__", {"steps": 260})
    said = []
    for _ in range(12):
        pod = claiming("c")
        shared = [found.shared_key(pod, around) is None for _ in range(3)]
        assert len(set(shared)) == 1
        said.append(shared[0])
        if shared[0]:
            state: Any = found.prepare_filter(pod, around)
            assert state.codes.any()
    assert said[0]
    assert not said[-1]
