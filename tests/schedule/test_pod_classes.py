from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
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
    Pod,
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
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.pod_classes import LEFT_OUT, class_key
from tests.build import pod
from tests.schedule.life_pods import wanted
from tests.schedule.life_policies import policies
from tests.schedule.side import Side
from tests.schedule.world import World
from tests.schedule.world_objects import some_pod

Field = tuple[type[msgspec.Struct], str]
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


FULL = replace(
    PLAIN,
    spec=replace(
        PLAIN.spec,
        volumes=[Volume(image=ImageSource(reference="i"))],
        init_containers=[Container()],
        resource_claims=[PodResourceClaim()],
    ),
)
"""A pod in which all fields that the key can omit are set."""


def values(kind: Any, default: Any) -> Iterator[tuple[tuple[Field, ...], Any]]:
    """Yield values that differ from a default, each with the path of the changed field."""
    of, arguments = get_origin(kind), get_args(kind)
    if of in {Union, UnionType}:
        for one in arguments:
            yield from values(one, default) if one is not NoneType else ()
    elif of in {list, tuple}:
        first, *others = default or (None,)
        yield from ((path, of((value, *others))) for path, value in values(arguments[0], first))
    elif of is dict:
        yield (), {**(default or {}), "new": next(value for _, value in values(arguments[1], None))}
    elif issubclass(kind, msgspec.Struct):
        yield from structs(kind, default)
    else:
        yield (), {str: "new", bool: default is not True, int: 7, Any: "new"}[kind]


def structs(kind: type[msgspec.Struct], default: Any) -> Iterator[tuple[tuple[Field, ...], Any]]:
    """Yield objects that differ from a default in one field at any depth, each with the path of the field."""
    made = default if isinstance(default, kind) else kind()
    if made != default:
        yield (), made
    for name, hint in get_type_hints(kind).items():
        for path, value in values(hint, getattr(made, name)):
            yield ((kind, name), *path), replace(made, **{name: value})


def is_left_out(path: Sequence[Field]) -> bool:
    return any(name in LEFT_OUT.get(struct, ()) for struct, name in path)


def test_a_field_is_in_the_key_or_in_the_table_of_those_left_out() -> None:
    key = class_key(FULL)
    tried = list(structs(Pod, FULL))
    assert [path for path, one in tried if (class_key(one) == key) is not is_left_out(path)] == []
    named = {(struct, name) for struct, names in LEFT_OUT.items() for name in names}
    assert named <= {field for path, _ in tried for field in path}


@pytest.mark.parametrize("seed", range(3))
def test_equal_keys_give_equal_evaluations(seed: int) -> None:
    world = World(seed, 20)
    chance = world.random
    for _ in range(200):
        world.step()
    left_out = [change(one) for one in values_left_out()]
    same = 0
    for one in (*wanted(), *(some_pod(chance, f"p{number}", "", calm=False) for number in range(20))):
        sibling = one
        for change_ in chance.sample(left_out, 4):
            sibling = change_(sibling)
        engines = [Side(world.cluster, ()).use(policies()[-1]).engine for _ in range(2)]
        if engines[0].classes.key(one) != engines[0].classes.key(sibling):
            continue
        same += 1
        mine = Evaluation.of(one, engines[0].classes.results(one))
        other = Evaluation.of(sibling, engines[1].classes.results(sibling))
        assert mine.rejection == other.rejection, sibling
        assert np.array_equal(mine.first, other.first), sibling
        assert not mine.feasible_count or np.array_equal(mine.ranking(), other.ranking()), sibling
    assert same > 10


def values_left_out() -> list[tuple[Field, Any]]:
    """Return a value for each field that the key omits."""
    found: dict[Field, Any] = {}
    for struct, names in LEFT_OUT.items():
        for path, made in structs(struct, struct()):
            if path and path[0][1] in names:
                found.setdefault(path[0], getattr(made, path[0][1]))
    return list(found.items())


def change(of: tuple[Field, Any]) -> Callable[[Pod], Pod]:
    """Return a function that sets a field in a pod, in its first container, or in an additional volume."""
    (struct, name), value = of

    def changed(one: Pod) -> Pod:
        part = {name: value}
        if struct is Metadata:
            return replace(one, metadata=replace(one.metadata, **part))
        if struct is PodStatus:
            return replace(one, status=replace(one.status, **part))
        if struct is PodSpec:
            return replace(one, spec=replace(one.spec, **part))
        if struct is Volume:
            return replace(one, spec=replace(one.spec, volumes=[*one.spec.volumes, Volume(**part)]))
        if struct is PodResourceClaim:
            claims = [replace(each, **part) for each in one.spec.resource_claims]
            return replace(one, spec=replace(one.spec, resource_claims=claims))
        first, *others = one.spec.containers
        return replace(one, spec=replace(one.spec, containers=[replace(first, **part), *others]))

    return changed


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
