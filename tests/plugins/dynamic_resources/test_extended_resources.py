"""The special claim: which requests a pod's containers make of devices, and on which nodes devices provide them."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.objects import Container, Pod, ResourceRequirements
from policysched.plugins.dynamic_resources import extended_resources
from policysched.plugins.dynamic_resources.extended_resources import (
    IN_MEMORY,
    ExtendedRows,
    Mappings,
    asked_by_resource,
    extended_requests,
    mappings_for,
    requests_for,
)
from policysched.state.resource_claims import EXTENDED_RESOURCE_CLAIM
from tests.build import node, pod
from tests.plugins.dynamic_resources.objects import claim, gpu_class, world
from tests.work import calls, lines

GPU, NIC = "example.com/gpu", "example.com/nic"


def container(name: str, restarts: bool = False, **amounts: int) -> Container:
    """A container that asks for GPUs and NICs."""
    names = {"gpu": GPU, "nic": NIC, "cpu": "cpu"}
    requests: dict[str, Any] = {names[key]: str(amount) for key, amount in amounts.items()}
    policy = "Always" if restarts else None
    return Container(name=name, resources=ResourceRequirements(requests=requests), restart_policy=policy)


def made(init: list[Container], *containers: Container, **classes: str) -> tuple[dict[str, int], list[str]]:
    """The requests with their counts, and who uses which of them for what."""
    of = pod(containers=list(containers), init_containers=init)
    asked = asked_by_resource(of, classes or {GPU: "gpu", NIC: "nic"}).values()
    requests, mappings = requests_for(asked), mappings_for(asked)
    assert mappings is not None
    counts = {one.name: 0 if one.exactly is None else one.exactly.count for one in requests}
    return counts, [f"{one.container_name} {one.resource_name.split('/')[1]} {one.request_name}" for one in mappings]


def test_each_container_makes_a_request_for_each_resource() -> None:
    counts, mappings = made([], container("a", gpu=2, cpu=1), container("b", nic=1, gpu=1))
    assert counts == {"container-0-request-1": 2, "container-1-request-0": 1, "container-1-request-1": 1}
    assert mappings == [
        "a gpu container-0-request-1", "b gpu container-1-request-0", "b nic container-1-request-1",
    ]  # fmt: skip


def test_init_containers_that_end_use_what_later_containers_hold() -> None:
    counts, mappings = made([container("i", gpu=1)], container("a", gpu=2))
    assert counts == {"container-1-request-0": 2}
    assert mappings == ["a gpu container-1-request-0", "i gpu container-1-request-0"]


def test_init_containers_that_need_more_share_the_largest_rest() -> None:
    counts, mappings = made([container("i", gpu=3), container("j", gpu=5)], container("a", gpu=2))
    assert counts == {"container-1-request-0": 3, "container-2-request-0": 2}
    assert mappings == [
        "a gpu container-2-request-0",
        "i gpu container-2-request-0",
        "i gpu container-1-request-0",
        "j gpu container-2-request-0",
        "j gpu container-1-request-0",
    ]


def test_sidecars_hold_what_they_ask_for_and_lend_it_to_earlier_ones_alone() -> None:
    counts, _ = made([container("i", gpu=1), container("s", restarts=True, gpu=1), container("j", gpu=1)])
    assert counts == {"container-1-request-0": 1, "container-2-request-0": 1}


def test_requests_are_in_the_order_of_their_names() -> None:
    counts, _ = made([], *(container(str(index), gpu=1) for index in range(11)))
    assert list(counts)[:3] == ["container-0-request-0", "container-1-request-0", "container-10-request-0"]


def wanting(**amounts: int) -> Pod:
    return pod(containers=[container("c", False, **amounts)])


def test_resources_without_a_class_need_no_claim() -> None:
    assert extended_requests(wanting(gpu=1), Cluster()) is None
    assert extended_requests(wanting(cpu=1), world()) is None
    assert extended_requests(wanting(gpu=0), world(gpu_class(extended_resource_name=GPU))) is None


def test_the_claim_of_a_pod_is_made_in_memory_or_is_the_one_of_an_earlier_attempt() -> None:
    around = world(gpu_class(extended_resource_name=GPU))
    of = wanting(gpu=1)
    found = extended_requests(of, around)
    assert found is not None
    assert found.claim.metadata.name == IN_MEMORY
    assert found.claim.metadata.annotations == {EXTENDED_RESOURCE_CLAIM: "true"}
    assert not found.is_stale
    assert found.amounts == {GPU: 1}
    stored = claim("p-extended-resources-x", owner=of)
    stored.metadata.annotations[EXTENDED_RESOURCE_CLAIM] = "true"
    around.take(stored)
    found = extended_requests(of, around)
    assert found is not None
    assert found.claim is stored
    assert found.is_stale
    around.drop(stored)
    found = extended_requests(of, around)
    assert found is not None
    assert found.claim.metadata.name == IN_MEMORY


def test_a_claim_of_another_namespace_is_not_the_special_one_of_a_pod() -> None:
    of = wanting(gpu=1)
    foreign = claim("p-extended-resources-x", owner=of)
    foreign.metadata.annotations[EXTENDED_RESOURCE_CLAIM] = "true"
    foreign = replace(foreign, metadata=replace(foreign.metadata, namespace="elsewhere"))
    found = extended_requests(of, world(gpu_class(extended_resource_name=GPU), foreign))
    assert found is not None
    assert found.claim.metadata.name == IN_MEMORY
    assert not found.is_stale


@pytest.mark.parametrize("classes", [1, 40])
def test_rows_are_grouped_by_what_devices_have_to_provide(classes: int) -> None:
    names = [f"example.com/r{index:02d}" for index in range(classes)]
    around = world(
        node("both", allocatable=dict.fromkeys(names, "1")),
        node("none"),
        node("last", allocatable={names[-1]: "1"}),
        *(gpu_class(f"c{index:02d}", extended_resource_name=name) for index, name in enumerate(names)),
    )
    wanted = Container(name="c", resources=ResourceRequirements(requests=dict.fromkeys(names, "1")))
    found = extended_requests(pod(containers=[wanted]), around)
    assert found is not None
    rows = ExtendedRows(found, around)
    by_node = {
        around.nodes.names[row]: resources
        for resources, mask in rows.groups()
        for row in mask.nonzero()[0].tolist()
        if around.nodes.present.data[row]
    }
    assert by_node == {"both": [], "none": names, "last": names[:-1]}
    assert not rows.unfit.any()


def test_a_resource_that_neither_node_nor_class_provides_fits_nowhere() -> None:
    around = world(node("n1"), node("n2", allocatable={NIC: "0"}), gpu_class(extended_resource_name=GPU))
    found = extended_requests(wanting(gpu=1, nic=1), around)
    assert found is not None
    unfit = ExtendedRows(found, around).unfit
    assert {name: bool(unfit[row]) for name, row in around.nodes.row_of.items()} == {"n1": True, "n2": False}


def _lines_of_rows(nodes: int, others: int) -> int:
    around = world(*(node(f"n{one}") for one in range(nodes)), gpu_class(extended_resource_name=GPU))
    amounts: dict[str, str | int | float] = {GPU: "1", **{f"example.com/r{one}": "1" for one in range(others)}}
    of = pod(containers=[Container(name="c", resources=ResourceRequirements(requests=amounts))])
    found = extended_requests(of, around)
    assert found is not None
    return lines(lambda: ExtendedRows(found, around))


def test_resources_that_nobody_has_are_not_looked_for_on_each_node() -> None:
    assert _lines_of_rows(40, 400) <= _lines_of_rows(40, 100)
    assert _lines_of_rows(40, 400) - _lines_of_rows(20, 400) == _lines_of_rows(40, 100) - _lines_of_rows(20, 100)


def test_init_containers_cost_as_much_as_they_are() -> None:
    def taken(count: int) -> int:
        init = [container(f"i{one}", gpu=4 * count) for one in range(count)]
        of = pod(init_containers=init, containers=[container(f"c{one}", gpu=1) for one in range(count)])
        return lines(lambda: requests_for(asked_by_resource(of, {GPU: "gpu"}).values()))

    assert taken(80) < 4.4 * taken(20)


def mapped(of: Pod) -> Mappings | None:
    return mappings_for(asked_by_resource(of, {GPU: "gpu"}).values())


def test_mappings_that_no_status_can_hold_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    short = [container(f"i{number}", gpu=8) for number in range(200)]
    lasting = [container(f"r{number}", restarts=True, gpu=1) for number in range(8)]
    of = pod(init_containers=[*short, *lasting], containers=[])
    found = mapped(of)
    assert found is not None
    written = len(msgspec.json.encode(found))
    for bound, fits in ((written, True), (written - len(found), False)):
        monkeypatch.setattr(extended_resources, "MOST_BYTES", bound)
        assert (mapped(of) is not None) is fits
    monkeypatch.setattr(extended_resources, "MOST_BYTES", 10_000)
    few, many = (pod(init_containers=[*short[:count], *lasting], containers=[]) for count in (100, 200))
    work = [calls(partial(mapped, of), "call") for of in (few, many)]
    assert work[1] < 2.2 * work[0]
