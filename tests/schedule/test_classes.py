from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from msgspec.structs import replace

from policysched.model.objects import (
    Affinity,
    ClaimSource,
    Container,
    ContainerPort,
    ContainerStatus,
    ImageSource,
    Metadata,
    NodeAffinitySpec,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    RestartRule,
    SchedulingGate,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from policysched.model.objects.pods import AWSDisk
from policysched.schedule.cycle.classes import class_key
from tests.build import pod

PLAIN = pod(requests={"cpu": 1}, image="i")
CLAIM = Volume(name="v", persistent_volume_claim=ClaimSource(claim_name="c"))
IMAGE = Volume(name="v", image=ImageSource(reference="i"))


def with_metadata(**fields: Any) -> Any:
    return replace(PLAIN, metadata=replace(PLAIN.metadata, **fields))


def with_spec(**fields: Any) -> Any:
    return replace(PLAIN, spec=replace(PLAIN.spec, **fields))


def with_container(**fields: Any) -> Any:
    return with_spec(containers=[replace(PLAIN.spec.containers[0], **fields)])


SIBLINGS = {
    "name": with_metadata(name="other", uid="other", generate_name="o-", resource_version="9"),
    "age": with_metadata(creation_timestamp="2026-01-01T00:00:00Z", generation=4),
    "deletion": with_metadata(deletion_timestamp="2026-01-01T00:00:00Z"),
    "annotations": with_metadata(annotations={"a": "b"}),
    "container name": with_container(name="other"),
    "volume without a source": with_spec(volumes=[Volume(name="kube-api-access-x7k2p")]),
    "claim": with_spec(volumes=[CLAIM]),
    "disk": with_spec(volumes=[Volume(name="v", aws_elastic_block_store=AWSDisk(volume_id="d"))]),
    "nomination": replace(PLAIN, status=PodStatus(phase="Pending", nominated_node_name="n1")),
}


@pytest.mark.parametrize("sibling", SIBLINGS.values(), ids=SIBLINGS)
def test_siblings_are_of_one_class(sibling: Any) -> None:
    assert class_key(sibling) == class_key(PLAIN)


SPEC: dict[str, Any] = {
    "node_name": "n1",
    "scheduler_name": "other",
    "priority": 0,
    "priority_class_name": "high",
    "preemption_policy": "Never",
    "service_account_name": "robot",
    "node_selector": {"a": "b"},
    "affinity": Affinity(node_affinity=NodeAffinitySpec()),
    "tolerations": [Toleration()],
    "topology_spread_constraints": [TopologySpreadConstraint()],
    "containers": [],
    "init_containers": [Container()],
    "overhead": {"cpu": 1},
    "resources": ResourceRequirements(),
    "resource_claims": [PodResourceClaim()],
    "scheduling_gates": [SchedulingGate()],
    "volumes": [IMAGE],
    "host_network": True,
    "host_users": False,
}
CONTAINER: dict[str, Any] = {
    "image": "other",
    "resources": ResourceRequirements(requests={"cpu": 2}),
    "ports": [ContainerPort(host_port=1)],
    "restart_policy": "Always",
    "restart_policy_rules": [RestartRule()],
}
OTHERS = {
    **{f"spec.{name}": with_spec(**{name: value}) for name, value in SPEC.items()},
    **{f"container.{name}": with_container(**{name: value}) for name, value in CONTAINER.items()},
    "namespace": with_metadata(namespace="other"),
    "labels": with_metadata(labels={"a": "b"}),
    "label value": with_metadata(labels={"a": "c"}),
    "image of a volume": with_spec(volumes=[Volume(name="v", image=ImageSource(reference="j"))]),
    "order of containers": with_spec(containers=[*PLAIN.spec.containers, Container()]),
    "other order": with_spec(containers=[Container(), *PLAIN.spec.containers]),
    "amount in other words": with_container(resources=ResourceRequirements(requests={"cpu": "1000m"})),
    "limits": with_container(resources=ResourceRequirements(requests={"cpu": 1}, limits={"cpu": 1})),
    "resize": replace(PLAIN, status=PodStatus(container_statuses=[ContainerStatus(name="c")])),
    "resize of the pod": replace(PLAIN, status=PodStatus(resources=ResourceRequirements())),
    "allocation": replace(PLAIN, status=PodStatus(allocated_resources={"cpu": 2})),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_field_that_is_read_makes_a_class_of_its_own(name: str) -> None:
    keys = {other: class_key(made) for other, made in OTHERS.items()}
    own = keys.pop(name)
    assert own != class_key(PLAIN)
    assert [other for other, key in keys.items() if key == own] == []


def test_no_field_of_spec_and_container_is_forgotten_here() -> None:
    assert {field.name for field in msgspec.structs.fields(PodSpec)} == SPEC.keys()
    assert {field.name for field in msgspec.structs.fields(Container)} == CONTAINER.keys() | {"name"}
    assert get_args(get_type_hints(PodSpec)["volumes"]) == (Volume,)
    assert {"labels", "namespace"} < {field.name for field in msgspec.structs.fields(Metadata)}


def test_the_name_of_an_image_volume_makes_no_class() -> None:
    named = with_spec(volumes=[replace(IMAGE, name="other")])
    assert class_key(named) == class_key(with_spec(volumes=[IMAGE])) != class_key(PLAIN)


def test_the_order_of_keys_does_not_matter() -> None:
    one, other = with_metadata(labels={"a": "1", "b": "2"}), with_metadata(labels={"b": "2", "a": "1"})
    assert class_key(one) == class_key(other)


def test_what_policies_read_is_added() -> None:
    assert class_key(PLAIN, "a") != class_key(SIBLINGS["name"], "b")
    assert class_key(PLAIN, "a") == class_key(SIBLINGS["annotations"], "a") != class_key(PLAIN)


def test_numbers_of_any_size_make_a_class() -> None:
    keys = {class_key(pod(requests={"x.io/y": amount})) for amount in (10**20, -(10**20), 10**20 + 1, "10")}
    assert len(keys) == 4
