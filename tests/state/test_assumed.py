"""Assumed pods, and what surrounds the nodes: namespaces, anti-affine pods, device classes."""

from __future__ import annotations

import random

import pytest

from policysched.framework import Action, Aspect, Change, Cluster, Resource
from policysched.model.objects import (
    DeviceClass,
    Metadata,
    Namespace,
    Pod,
)
from tests.build import cluster, device_class, node, pod
from tests.work import calls

CPU = {"cpu": "1", "memory": "1Gi"}


def cpu(made: Cluster, name: str) -> int:
    return int(made.nodes.requested("cpu")[made.nodes.row_of[name]])


def assumed() -> tuple[Cluster, Pod]:
    made, waiting = cluster(node("n1"), node("n2")), pod("p", requests=CPU)
    made.assume(waiting, made.nodes.row_of["n1"])
    return made, waiting


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    made, _ = assumed()
    assert made.is_assumed("default.p")
    assert (cpu(made, "n1"), int(made.nodes.pods_count.data[0])) == (1000, 1)
    change = made.forget("default.p")
    assert (change.action, change.old, change.row) == (Action.DELETE, pod("p", on="n1", requests=CPU), 0)
    assert (cpu(made, "n1"), int(made.nodes.pods_count.data[0])) == (0, 0)
    assert made.forget("default.p").nothing


def test_a_pod_is_assumed_once() -> None:
    made, waiting = assumed()
    with pytest.raises(ValueError, match=r"^pod default/p is in the cache, so can't be assumed$"):
        made.assume(waiting, 1)


def test_confirming_is_an_addition_that_touches_no_row() -> None:
    made, _ = assumed()
    position = made.journal.position
    bound = pod("p", on="n1", requests=CPU)
    change = made.set_pod(bound)
    assert change == Change(Resource.ASSIGNED_POD, Action.ADD, None, bound, 0)
    assert made.journal.position == position
    assert not made.is_assumed("default.p")
    assert made.forget("default.p").nothing
    assert cpu(made, "n1") == 1000


def test_a_binding_that_brings_labels_of_the_node_moves_what_reads_them_alone() -> None:
    made, waiting = cluster(node("n1")), pod("p", requests=CPU, labels={"app": "web"})
    web = made.counters.of("web", lambda placed: placed.pod.metadata.labels.get("app") == "web")
    zoned = made.counters.of("zoned", lambda placed: "zone" in placed.pod.metadata.labels)
    halves = made.counters.of("half", lambda placed: 0.5 * ("zone" in placed.pod.metadata.labels), fractions=True)
    made.assume(waiting, 0)
    position, version, signatures = made.journal.position, web.stamp, len(made.signatures.present)
    change = made.set_pod(pod("p", on="n1", requests=CPU, labels={"app": "web", "zone": "a"}))
    assert (change.action, change.old) == (Action.ADD, None)
    found = made.journal.since(position)
    assert found is not None
    assert [one.tolist() for one in found] == [[0], [int(Aspect.PODS)]]
    assert (web.counts[0], zoned.counts[0], halves.counts[0]) == (1, 1, 0.5)
    assert web.stamp == version, "it weighs the same there"
    assert (cpu(made, "n1"), int(made.nodes.pods_count.data[0])) == (1000, 1)
    assert len(made.signatures.present) == signatures + 1
    assert [one.signature for one in made.pods.on_row(0)] == [made.pods.by_id["default.p"].signature]
    made.remove_pod("default.p")
    assert (web.counts[0], zoned.counts[0], halves.counts[0], cpu(made, "n1")) == (0, 0, 0, 0)
    assert not any(made.signatures.present)


def test_a_pod_confirmed_elsewhere_leaves_the_assumed_row() -> None:
    made, _ = assumed()
    made.set_pod(pod("p", on="n2", requests=CPU))
    assert (cpu(made, "n1"), cpu(made, "n2")) == (0, 1000)
    assert not made.is_assumed("default.p")


def test_an_assumed_pod_may_be_confirmed_after_its_node_went() -> None:
    made, _ = assumed()
    made.remove_node("n1")
    made.set_pod(pod("p", on="n1", requests=CPU))
    made.set_node(node("n1"))
    assert cpu(made, "n1") == 1000


# Surroundings


def test_a_namespace_changes_when_its_labels_do() -> None:
    made = Cluster()
    plain = Namespace(metadata=Metadata(name="d"))
    assert not made.set_namespace(plain).nothing
    generation = made.namespaces_stamp
    assert made.set_namespace(plain).nothing
    assert made.namespaces_stamp == generation
    assert not made.set_namespace(Namespace(metadata=Metadata(name="d", labels={"a": "b"}))).nothing
    assert made.namespaces_stamp > generation
    generation = made.namespaces_stamp
    made.remove_namespace("d")
    made.remove_namespace("d")
    assert (made.namespaces_stamp, made.namespaces) == (generation + 1, {})


def test_a_device_class_maps_its_own_name_and_the_one_it_states() -> None:
    made = Cluster()
    made.take(device_class("gpu", "x.io/gpu"))
    assert made.devices.mapped_resources == {"deviceclass.resource.kubernetes.io/gpu": "gpu", "x.io/gpu": "gpu"}
    made.take(device_class("gpu", "x.io/other"))
    assert made.devices.mapped_resources == {"deviceclass.resource.kubernetes.io/gpu": "gpu", "x.io/other": "gpu"}
    made.drop(device_class("gpu"))
    made.drop(device_class("gpu"))
    assert made.devices.mapped_resources == {}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_several_classes_of_a_resource_the_newest_counts_then_the_first_by_name(order: tuple[int, ...]) -> None:
    classes = [
        device_class("b", "x.io/y", "2026-01-02T00:00:00Z"),
        device_class("a", "x.io/y", "2026-01-01T00:00:00Z"),
        device_class("c", "x.io/y", "2026-01-02T00:00:00Z"),
    ]
    made = Cluster()
    for index in order:
        made.take(classes[index])
    left = []
    for name in "bca":
        left.append(made.devices.mapped_resources["x.io/y"])
        made.drop(device_class(name))
    assert left == ["b", "c", "a"]
    assert not made.devices.mapped_resources


def test_a_device_class_costs_no_look_at_the_others() -> None:
    def taking(others: int) -> int:
        made = Cluster()
        for number in range(others):
            made.take(device_class(f"c{number}", f"x.io/r{number}"))
        return calls(lambda: made.take(device_class("gpu", "x.io/gpu")))

    taking(0)  # what is imported with the first
    assert taking(500) == taking(5)


@pytest.mark.parametrize("seed", range(10))
def test_resources_are_mapped_as_if_all_classes_were_looked_at(seed: int) -> None:
    rng, made = random.Random(seed), Cluster()
    resources = ("x.io/a", "x.io/b", "deviceclass.resource.kubernetes.io/c1", "")
    known: dict[str, DeviceClass] = {}
    for _ in range(200):
        mapped, generation = dict(made.devices.mapped_resources), made.devices.mapped_resources.stamp
        name = f"c{rng.randrange(5)}"
        if rng.random() < 0.3:
            known.pop(name, None)
            made.drop(device_class(name))
        else:
            one = known[name] = device_class(name, rng.choice(resources), f"2026-01-0{rng.randrange(1, 4)}T00:00:00Z")
            made.take(one)
        by_name = sorted(known.values(), key=lambda one: one.metadata.name, reverse=True)
        by_name.sort(key=lambda one: one.metadata.creation_timestamp or "")
        stated = {one.spec.extended_resource_name or "": one.metadata.name for one in by_name}
        stated.pop("", None)
        own = {f"deviceclass.resource.kubernetes.io/{name}": name for name in known}
        assert made.devices.mapped_resources == stated | own
        assert (made.devices.mapped_resources.stamp > generation) == (made.devices.mapped_resources != mapped)
