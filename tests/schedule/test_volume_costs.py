"""Pods with very many volumes: the cost grows with the volumes of the pod."""

from __future__ import annotations

import random
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
from msgspec.structs import replace

from bench.hostile_shapes import SHAPES, hostile
from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.objects import ClaimSource, Pod, Volume
from policysched.model.objects.pods import EphemeralSource
from policysched.model.objects.storage import SELECTED_NODE
from policysched.plugins.volumes.reservation import VolumeReservation, bound_to
from policysched.plugins.volumes.volume_binding import VolumeBinding
from policysched.plugins.volumes.volume_restrictions import VolumeRestrictions
from policysched.schedule.cycle.engine import Engine
from tests.build import node
from tests.plugins.stored import (
    attachment,
    claim,
    claiming,
    csi_capacity,
    csi_driver,
    csi_node,
    owned,
    storage_class,
    volume,
    with_storage,
)
from tests.schedule.test_object_costs import MANY, taken
from tests.work import calls, lines

HOSTS = tuple(f"n{number}" for number in range(20))
NODES = tuple(node(name, labels={"host": name}) for name in HOSTS)
ONE_POD = ["ReadWriteOncePod"]


def decided(around: Cluster, one: Pod) -> int:
    """Return the function calls of the first decision of the pod's class."""
    engine = Engine(around, default_profile(), random.Random(0))
    engine.decide(claiming("other"))
    return calls(lambda: engine.decide(one))


def naming(names: list[str]) -> Pod:
    made = claiming("p")
    sources = [ClaimSource(claim_name=name) for name in names]
    volumes = [Volume(name=f"v{number}", persistent_volume_claim=one) for number, one in enumerate(sources)]
    return replace(made, spec=replace(made.spec, volumes=volumes))


def one_claim_and_free_volumes(count: int) -> tuple[Cluster, Pod]:
    """A pod that names one claim very often, and a free volume on each node."""
    free = (volume(f"v-{host}", of="wait", nodes={"host": [host]}) for host in HOSTS)
    return with_storage(*NODES, storage_class(), claim(), *free), naming(["c"] * count)


def claims_and_free_volumes(count: int) -> tuple[Cluster, Pod]:
    """A pod with claims of different sizes, and free volumes that all nodes can use."""
    free = (volume(f"v{number}", of="wait", size="1Ti") for number in range(20))
    claims = (claim(f"c{number}", size=str(number + 1)) for number in range(count))
    return with_storage(*NODES, storage_class(), *claims, *free), naming([f"c{number}" for number in range(count)])


def claims_and_volumes_that_suit_none(count: int) -> tuple[Cluster, Pod]:
    """A pod with claims of different sizes and selectors, and as many free volumes of which none matches."""
    free = (
        volume(f"v{number}", of="wait", size="1Ti", metadata={"labels": {"v": str(number)}}) for number in range(count)
    )
    apart = (
        {"matchExpressions": [{"key": "v", "operator": "In", "values": [f"x{number}"]}]} for number in range(count)
    )
    claims = (claim(f"c{number}", size=str(number + 1), selector=one) for number, one in enumerate(apart))
    return with_storage(*NODES, storage_class(), *claims, *free), naming([f"c{number}" for number in range(count)])


def claims_and_volumes_of_nodes_that_are_gone(count: int) -> tuple[Cluster, Pod]:
    """A pod with claims, and as many matching free volumes, each on a deleted node."""
    free = (volume(f"v{number}", of="wait", size="1Ti", nodes={"host": [f"gone-{number}"]}) for number in range(count))
    claims = (claim(f"c{number}", size=str(number + 1)) for number in range(count))
    return with_storage(*NODES, storage_class(), *claims, *free), naming([f"c{number}" for number in range(count)])


def claims_and_volumes_of_one_node(count: int) -> tuple[Cluster, Pod]:
    """A pod with claims, and as many matching free volumes, all on one node."""
    free = (volume(f"v{number}", of="wait", size="1Ti", nodes={"host": ["n0"]}) for number in range(count))
    claims = (claim(f"c{number}", size=str(number + 1)) for number in range(count))
    return with_storage(*NODES, storage_class(), *claims, *free), naming([f"c{number}" for number in range(count)])


def claims_and_capacities(count: int) -> tuple[Cluster, Pod]:
    """A pod with claims of different sizes, and as many CSI storage capacities."""
    topologies = ({"matchLabels": {"host": f"n{number}"}} for number in range(count))
    rooms = (
        csi_capacity(f"r{number}", capacity="1Ti", nodeTopology=topology) for number, topology in enumerate(topologies)
    )
    claims = (claim(f"c{number}", size=str(number + 1)) for number in range(count))
    around = with_storage(*NODES, storage_class(), csi_driver(), *rooms, *claims)
    return around, naming([f"c{number}" for number in range(count)])


def claims_of_one_pod_made_for_another(count: int) -> tuple[Cluster, Pod]:
    """A pod with ReadWriteOncePod claims that were created for another pod's ephemeral volumes."""
    owner = claiming("o", on="n0")
    sources = [Volume(name=f"c{number}", ephemeral=EphemeralSource()) for number in range(count)]
    owner = replace(owner, spec=replace(owner.spec, volumes=sources))
    names = [f"o-c{number}" for number in range(count)]
    claims = (owned(claim(name, accessModes=ONE_POD), owner) for name in names)
    return with_storage(*NODES, storage_class(), *claims, owner), naming(names)


def disks_of_another(count: int) -> tuple[Cluster, Pod]:
    """A pod with disks, and another pod with as many other disks."""
    one = hostile(SHAPES["disks"].spec(count))
    others = [replace(disk, rbd=replace(disk.rbd, pool="other")) for disk in one.spec.volumes if disk.rbd is not None]
    spec = replace(one.spec, volumes=others, node_name="n0")
    return with_storage(*NODES, replace(one, metadata=replace(one.metadata, name="o", uid="o"), spec=spec)), one


def a_long_selector_and_many_volumes(count: int) -> tuple[Cluster, Pod]:
    """A claim with a long selector that matches nothing, and as many free volumes with equal labels."""
    asked = [{"key": f"k{number}", "operator": "DoesNotExist"} for number in range(count)]
    asked.append({"key": "absent", "operator": "Exists"})
    free = (volume(f"v{number}", of="wait", metadata={"labels": {"disk": "fast"}}) for number in range(count))
    return with_storage(*NODES, storage_class(), claim(selector={"matchExpressions": asked}), *free), naming(["c"])


@pytest.mark.parametrize(
    "scene",
    [
        one_claim_and_free_volumes,
        claims_and_free_volumes,
        claims_and_volumes_that_suit_none,
        claims_and_volumes_of_nodes_that_are_gone,
        claims_and_volumes_of_one_node,
        claims_and_capacities,
        claims_of_one_pod_made_for_another,
        a_long_selector_and_many_volumes,
        disks_of_another,
    ],
)
def test_work_grows_no_faster_than_the_volumes_that_a_pod_names(scene: Callable[[int], tuple[Cluster, Pod]]) -> None:
    less, more = (decided(*scene(count)) for count in (MANY, 4 * MANY))
    assert less > 10 * MANY  # the work depends on the number of volumes
    assert more < 4.4 * less


@pytest.mark.parametrize("node", ["", "n0"], ids=["no node", "a selected node"])
@pytest.mark.parametrize("capacities", [False, True])
@pytest.mark.parametrize("sizes", ["1Gi", "distinct"])
def test_claims_that_volumes_are_made_for_take_few_operations_over_nodes(
    sizes: str, capacities: bool, node: str
) -> None:
    def work(count: int) -> int:
        selected = {"annotations": {SELECTED_NODE: node}} if node else {}
        claims = (
            claim(f"c{number}", size=sizes if sizes == "1Gi" else f"{number}Mi", metadata=selected)
            for number in range(count)
        )
        room = (csi_driver(), csi_capacity("r", capacity="1Ti", nodeTopology={})) if capacities else ()
        around, one = with_storage(*NODES, storage_class(), *room, *claims), naming([f"c{n}" for n in range(count)])
        with mock.patch.object(np, "count_nonzero", wraps=np.count_nonzero) as asked:
            VolumeBinding().prepare_filter(one, around)
        return asked.call_count

    assert work(MANY) == work(20)


@pytest.mark.parametrize("disk", [True, False], ids=["a disk", "a claim of one pod"])
def test_conflicting_pods_are_looked_up_whatever_else_placed_pods_have(disk: bool) -> None:
    def work(count: int) -> int:
        others = [naming(["c", *(f"x{number}" for number in range(count))]) for _ in range(3)]
        placed = (
            replace(one, metadata=replace(one.metadata, name=name, uid=name), spec=replace(one.spec, node_name="n0"))
            for name, one in zip("abc", others, strict=True)
        )
        around = with_storage(*NODES, storage_class(), claim("c", accessModes=ONE_POD), *placed)
        one = hostile(SHAPES["disks"].spec(1)) if disk else claiming("p", "c")
        plugin = VolumeRestrictions()
        plugin.prepare_filter(one, around)  # the first call fills caches
        return lines(lambda: plugin.prepare_filter(one, around))

    assert work(4 * MANY) == work(MANY)


def test_volumes_of_many_attachments_come_with_work_in_proportion() -> None:
    def work(count: int) -> int:
        around = with_storage(*NODES)
        for number in range(count):
            around.set_stored(attachment(f"a{number}", f"n{number % len(NODES)}", f"v{number}"))
        some = [volume(f"v{number}") for number in range(count)]
        return lines(lambda: [around.set_stored(one) for one in some])

    assert work(4 * MANY) < 4.4 * work(MANY)


@pytest.mark.parametrize("claims", [2, 20])
@pytest.mark.parametrize("operator", ["NotIn", "DoesNotExist", "Exists", "In"])
def test_long_selectors_of_claims_are_looked_through_when_claims_come_and_not_when_pods_are_tried(
    claims: int, operator: str
) -> None:
    def work(count: int) -> int:
        values = {"values": ["x"]} if operator in ("NotIn", "In") else {}
        asked = [{"key": f"k{number}", "operator": operator, **values} for number in range(count)]
        selector = {"matchExpressions": [*asked, {"key": "k1", "operator": "NotIn", "values": asked_values(count)}]}
        around = with_storage(
            *NODES,
            storage_class(),
            *(claim(f"c{number}", size=str(number + 1), selector=selector) for number in range(claims)),
            *(volume(f"v{number}", of="wait", size="1Ti", metadata={"labels": {"k1": "a"}}) for number in range(20)),
        )
        engine = Engine(around, default_profile(), random.Random(0))
        engine.decide(claiming("other"))
        one = naming([f"c{number}" for number in range(claims)])
        return lines(lambda: engine.decide(one))

    def asked_values(count: int) -> list[str]:
        return [f"x{number}" for number in range(count)]

    assert work(4 * MANY) == work(MANY)


def test_drivers_that_one_node_names_take_nothing_for_each_node() -> None:
    around = with_storage(*NODES, storage_class(), claim(), claiming("user", "c", on="n0"))
    engine = Engine(around, default_profile(), random.Random(0))
    engine.decide(claiming("p", "c"))

    def named(count: int) -> tuple[int, int]:
        around.set_stored(csi_node("n1", {f"csi.{number}": 9 for number in range(count)}))
        renewed = taken(around.attachments.refresh)[0]
        around.attachments.touch(0, "user")
        return renewed, lines(around.attachments.refresh)

    (few_bytes, few_lines), (many_bytes, many_lines) = named(100), named(10_000)
    assert many_bytes - few_bytes < 10_000 * 200
    assert many_lines == few_lines


def test_a_look_for_many_volumes_that_are_still_to_come_does_not_grow_with_nodes() -> None:
    many = tuple(node(f"n{number}", labels={"host": f"n{number}"}) for number in range(40 * len(NODES)))
    counted = []
    for nodes in (NODES, many):
        free = [volume(f"v{number}", nodes={"host": [f"absent-{number}", "n0"]}) for number in range(MANY)]
        claims = [claim(f"c{number}") for number in range(MANY)]
        bound = [bound_to(one, of) for one, of in zip(free, claims, strict=True)]
        around = with_storage(*nodes, *bound, *claims, claiming("p", on="n0"))
        reservation = VolumeReservation(claiming("p"), "n0", around, 1.0)
        reservation._bindings = list(zip(bound, claims, strict=True))
        assert not reservation._problem()
        counted.append((calls(reservation._problem), taken(reservation._problem)[0]))
    (few_calls, few_bytes), (many_calls, many_bytes) = counted
    assert few_calls > MANY
    assert many_calls < 1.1 * few_calls
    assert many_bytes < 1.1 * few_bytes
