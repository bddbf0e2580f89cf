from __future__ import annotations

from typing import Any

import pytest

from policysched.model import requests as requests_module
from policysched.model.quantity import parse
from policysched.model.requests import (
    Allocatable,
    AmountsInUse,
    Requests,
    allocatable,
    incoming_amounts,
    incoming_nonzero,
    incoming_requests,
    largest_of_containers,
    largest_of_sums,
    placed_nonzero,
    placed_requests,
    pod_limits,
)
from tests.model.build import container, node, pod

MI = 1 << 20
DEFAULT_MEMORY = 200 * MI


@pytest.fixture(autouse=True, params=[requests_module.MANY_CONTAINERS, -1], ids=["added up", "kept"])
def sums(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask everything of pods with few containers, and of such as if they were many: their sums are kept."""
    monkeypatch.setattr(requests_module, "MANY_CONTAINERS", request.param)


@pytest.fixture(params=[largest_of_containers, largest_of_sums])
def rule(request: pytest.FixtureRequest) -> AmountsInUse:
    """Each rule for a pod under resize; where a test asks for none, both say the same."""
    found: AmountsInUse = request.param
    return found


def spec(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **more: Any) -> dict[str, Any]:
    return {"containers": list(containers), "initContainers": list(init)} | more


SPECS = [
    ("nothing", spec(container()), Requests()),
    ("one container", spec(container(cpu="1", memory="1Ki")), Requests(1000, 1024)),
    ("containers add up", spec(container(cpu="1"), container(cpu="500m", memory="3")), Requests(1500, 3)),
    ("fractions are rounded after adding", spec(container(cpu="1500u"), container(cpu="1500u")), Requests(3)),
    (
        "an init container counts where it asks for more",
        spec(container(cpu="1", memory="5"), init=(container(cpu="3", memory="1"), container(cpu="2"))),
        Requests(3000, 5),
    ),
    (
        "a restartable init container runs beside the others",
        spec(container(cpu="1"), init=(container(always=True, cpu="2"),)),
        Requests(3000),
    ),
    (
        "an init container runs beside the restartable ones before it",
        spec(
            container(cpu="1"),
            init=(container(always=True, cpu="2"), container(cpu="5"), container(always=True, cpu="3")),
        ),
        Requests(7000),
    ),
    (
        "an init container does not run beside the restartable ones after it",
        spec(container(cpu="1"), init=(container(cpu="5"), container(always=True, cpu="2"))),
        Requests(5000),
    ),
    (
        "restartable init containers may ask for most while they start",
        spec(
            container(cpu="1"),
            init=(container(always=True, cpu="2"), container(always=True, cpu="3"), container(cpu="2")),
        ),
        Requests(7000),
    ),
    ("overhead comes on top", spec(container(cpu="1"), overhead={"cpu": "100m", "memory": "7"}), Requests(1100, 7)),
    (
        "extended resources and the like are scalars, sorted",
        spec({"resources": {"requests": {"nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi", "attachable-volumes-x": "1"}}}),
        Requests(scalars=(("attachable-volumes-x", 1), ("hugepages-2Mi", 4 * MI), ("nvidia.com/gpu", 2))),
    ),
    (
        "resources nobody counts are overlooked",
        spec(
            {
                "resources": {
                    "requests": {"pods": "2", "storage": "1Gi", "requests.a.b/c": "1", "ephemeral-storage": "9"}
                }
            }
        ),
        Requests(ephemeral_bytes=9),
    ),
    ("a scalar of zero is kept", spec({"resources": {"requests": {"a.b/c": "0"}}}), Requests(scalars=(("a.b/c", 0),))),
    (
        "requests of the pod as a whole take the place of its containers'",
        spec(container(cpu="1", memory="5"), resources={"requests": {"cpu": "3", "hugepages-1Gi": "1Gi"}}),
        Requests(3000, 5, scalars=(("hugepages-1Gi", 1 << 30),)),
    ),
    (
        "a pod as a whole cannot ask for other resources",
        spec(container(cpu="1"), resources={"requests": {"a.b/c": "3", "ephemeral-storage": "1"}}),
        Requests(1000),
    ),
    (
        "overhead comes on top of the pod's own requests",
        spec(container(cpu="1"), resources={"requests": {"cpu": "3"}}, overhead={"cpu": "1"}),
        Requests(4000),
    ),
    (
        "limits do not count",
        spec({"resources": {"limits": {"cpu": "1"}}}, resources={"limits": {"cpu": "3"}}),
        Requests(),
    ),
]


@pytest.mark.parametrize(("one", "expected"), [case[1:] for case in SPECS], ids=[case[0] for case in SPECS])
def test_requests_of_a_spec(one: dict[str, Any], expected: Requests, rule: AmountsInUse) -> None:
    assert incoming_requests(pod(one)) == expected
    assert placed_requests(pod(one), rule) == expected


def test_incoming_requests_are_never_negative(rule: AmountsInUse) -> None:
    assert incoming_requests(pod(spec(container(cpu="-1")))) == Requests()
    assert placed_requests(pod(spec(container(cpu="-1"))), rule) == Requests(-1000)


def resized(spec_cpu: str, actual: str | None, allocated: str | None, *, reason: str = "") -> dict[str, Any]:
    status: dict[str, Any] = {"name": "c"}
    if actual is not None:
        status["resources"] = {"requests": {"cpu": actual}}
    if allocated is not None:
        status["allocatedResources"] = {"cpu": allocated}
    conditions = [{"type": "Ready", "status": "True"}]
    if reason:
        conditions.append({"type": "PodResizePending", "status": "True", "reason": reason})
    return {
        "spec": spec(container(cpu=spec_cpu)),
        "status": {"containerStatuses": [status], "conditions": conditions},
    }


@pytest.mark.parametrize(
    ("parts", "cpu"),
    [
        (resized("1", "2", "3"), 3000),
        (resized("1", "3", "2"), 3000),
        (resized("4", "3", "2"), 4000),
        (resized("4", "3", "2", reason="Deferred"), 4000),
        (resized("4", "3", "2", reason="Infeasible"), 3000),
        (resized("4", "1", "2", reason="Infeasible"), 2000),
        (resized("1", "2", None), 2000),
    ],
)
def test_placed_pod_counts_the_largest_amount_of_a_resize(parts: dict[str, Any], cpu: int, rule: AmountsInUse) -> None:
    assert placed_requests(pod(**parts), rule).cpu_millis == cpu
    assert placed_nonzero(pod(**parts), rule) == (cpu, DEFAULT_MEMORY)


@pytest.mark.parametrize(
    ("parts", "of_containers", "of_sums"),
    [
        (resized("1", None, "3"), (1000, 1000), (3000, 3000)),
        (resized("4", None, None, reason="Infeasible"), (4000, 4000), (0, 100)),
        (resized("4", None, "2", reason="Infeasible"), (4000, 4000), (2000, 2000)),
    ],
)
def test_report_without_actual_amounts_counts_only_in_sums(
    parts: dict[str, Any], of_containers: tuple[int, int], of_sums: tuple[int, int]
) -> None:
    for rule, expected in ((largest_of_containers, of_containers), (largest_of_sums, of_sums)):
        one = pod(**parts)
        assert (placed_requests(one, rule).cpu_millis, placed_nonzero(one, rule)[0]) == expected


def test_amounts_of_containers_are_compared_one_by_one_or_added_up() -> None:
    reports = [
        {"name": "a", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "1"}},
        {"name": "b", "resources": {"requests": {"cpu": "1", "memory": "5"}}, "allocatedResources": {"cpu": "4"}},
    ]
    parts = spec(container("a", cpu="1"), container("b", cpu="4", memory="2"))
    one = pod(parts, status={"containerStatuses": reports})
    assert placed_requests(one, largest_of_containers) == Requests(7000, 5)
    assert placed_requests(one, largest_of_sums) == Requests(5000, 5)
    whole = {"resources": {"requests": {"cpu": "6"}}, "allocatedResources": {"cpu": "2"}}
    one = pod(parts, status={"containerStatuses": reports, **whole})
    assert placed_requests(one, largest_of_containers) == Requests(7000, 5)
    assert placed_requests(one, largest_of_sums) == Requests(6000, 2)


def test_incoming_requests_and_least_allocated_overlook_the_status_and_balanced_allocation_does_not(
    rule: AmountsInUse,
) -> None:
    one = pod(**resized("1", "2", "3"))
    assert incoming_requests(one) == Requests(1000)
    assert incoming_amounts(one, ["cpu"], rule) == [3000]
    assert incoming_nonzero(one, ["cpu"]) == [1000]
    assert incoming_nonzero(one, ["cpu", "memory"], rule) == [3000, DEFAULT_MEMORY]


def test_a_sum_is_the_same_whatever_was_asked_before(rule: AmountsInUse) -> None:
    one, other = pod(**resized("1", "2", "3")), pod(spec(container(), overhead={"cpu": "1"}))
    questions: list[Any] = [
        incoming_requests,
        lambda of: placed_requests(of, rule),
        lambda of: placed_nonzero(of, rule),
        lambda of: incoming_nonzero(of, ["cpu", "memory"]),
        lambda of: incoming_amounts(of, ["cpu", "memory"], rule),
    ]
    forth = [(ask(one), ask(other)) for ask in questions]
    assert [(ask(one), ask(one)) for ask in reversed(questions)] == [(mine, mine) for mine, _ in reversed(forth)]
    assert [(ask(other), ask(other)) for ask in reversed(questions)] == [(its, its) for _, its in reversed(forth)]


@pytest.mark.parametrize(
    ("always", "cpu", "rule"),
    [
        (True, 6000, largest_of_containers),
        (False, 2000, largest_of_containers),
        (True, 6000, largest_of_sums),
        (False, 5000, largest_of_sums),
    ],
)
def test_status_of_an_init_container_counts_only_in_sums_unless_it_restarts(
    always: bool, cpu: int, rule: AmountsInUse
) -> None:
    one = pod(
        spec(container(cpu="1"), init=(container("i", always=always, cpu="2"),)),
        status={"initContainerStatuses": [{"name": "i", "resources": {"requests": {"cpu": "5"}}}]},
    )
    assert placed_requests(one, rule).cpu_millis == cpu


@pytest.mark.parametrize(
    ("status", "cpu"),
    [
        ({}, 2000),
        ({"resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "4"}}, 4000),
        ({"allocatedResources": {"cpu": "4"}}, 2000),
        (
            {
                "resources": {"requests": {"memory": "1"}},
                "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
            },
            0,
        ),
    ],
)
def test_placed_pod_counts_the_resize_of_the_pod_as_a_whole(
    status: dict[str, Any], cpu: int, rule: AmountsInUse
) -> None:
    one = pod(spec(container(), resources={"requests": {"cpu": "2"}}), status=status)
    assert placed_requests(one, rule).cpu_millis == cpu
    assert incoming_requests(one).cpu_millis == 2000


def test_pod_as_a_whole_replaces_what_its_spec_names_or_what_any_sum_names() -> None:
    report = {"name": "c", "allocatedResources": {"cpu": "1", "memory": "9"}}
    status = {
        "containerStatuses": [report],
        "resources": {"requests": {"memory": "3", "a.b/c": "1"}},
        "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
    }
    one = pod(spec(container("c"), resources={"requests": {"cpu": "2"}}), status=status)
    assert placed_requests(one, largest_of_containers) == Requests()
    assert placed_requests(one, largest_of_sums) == Requests(1000, 3)


@pytest.mark.parametrize(
    ("one", "incoming", "placed"),
    [
        (spec(container()), (100, DEFAULT_MEMORY), (100, DEFAULT_MEMORY)),
        (spec(container(), container()), (200, 2 * DEFAULT_MEMORY), (200, 2 * DEFAULT_MEMORY)),
        (spec(container(cpu="0", memory="0")), (0, 0), (0, 0)),
        (spec(container(cpu="1")), (1000, DEFAULT_MEMORY), (1000, DEFAULT_MEMORY)),
        (spec(container(), init=(container(always=True),)), (200, 2 * DEFAULT_MEMORY), (200, 2 * DEFAULT_MEMORY)),
        (spec(container(), init=(container(),)), (100, DEFAULT_MEMORY), (100, DEFAULT_MEMORY)),
        (
            spec(container(), overhead={"cpu": "1", "memory": "1"}),
            (1100, DEFAULT_MEMORY + 1),
            (1100, DEFAULT_MEMORY + 1),
        ),
        # requests of the pod as a whole: placed, they leave defaults only for what neither it nor a container names;
        # looking for a node, LeastAllocated overlooks them
        (spec(container(), resources={"requests": {"cpu": "1"}}), (100, DEFAULT_MEMORY), (1000, DEFAULT_MEMORY)),
        (
            spec(container(memory="1"), container(), resources={"requests": {"cpu": "1"}}),
            (200, DEFAULT_MEMORY + 1),
            (1000, 1),
        ),
        (spec(container(), resources={"requests": {"cpu": "1", "memory": "2"}}), (100, DEFAULT_MEMORY), (1000, 2)),
        (
            spec(container(), resources={"requests": {"cpu": "1"}}, overhead={"memory": "5"}),
            (100, DEFAULT_MEMORY + 5),
            (1000, 5),
        ),
    ],
)
def test_pods_without_requests_weigh_something_in_scores(
    one: dict[str, Any], incoming: tuple[int, int], placed: tuple[int, int], rule: AmountsInUse
) -> None:
    amounts = incoming_nonzero(pod(one), ("cpu", "memory"))
    assert tuple(amounts) == incoming
    assert placed_nonzero(pod(one), rule) == placed


def test_incoming_amount_knows_every_resource(rule: AmountsInUse) -> None:
    one = pod(spec({"resources": {"requests": {"cpu": "250m", "a.b/c": "3", "ephemeral-storage": "1Ki"}}}))
    names = ("cpu", "memory", "ephemeral-storage", "a.b/c", "x.y/z")
    assert incoming_amounts(one, names, rule) == [250, 0, 1024, 3, 0]
    assert incoming_nonzero(one, names) == [250, DEFAULT_MEMORY, 1024, 3, 0]


def test_allocatable_of_a_node_is_read_by_resource() -> None:
    amounts = {
        "cpu": "3920m",
        "memory": "1Gi",
        "ephemeral-storage": "10G",
        "pods": "110",
        "nvidia.com/gpu": 8,
        "hugepages-1Gi": "0",
        "storage": "1",
    }
    assert allocatable(node(allocatable=amounts, capacity={"cpu": "4"})) == Allocatable(
        cpu_millis=3920,
        memory_bytes=1 << 30,
        ephemeral_bytes=10**10,
        pods=110,
        scalars=(("hugepages-1Gi", 0), ("nvidia.com/gpu", 8)),
    )


def test_allocatable_of_a_node_that_says_nothing_is_nothing() -> None:
    assert allocatable(node()) == Allocatable()


def limited(*, always: bool = False, **limits: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": limits}} | ({"restartPolicy": "Always"} if always else {})


@pytest.mark.parametrize(
    ("one", "limits"),
    [
        (spec(container(cpu="1")), {}),
        (spec(limited(cpu="1"), limited(cpu="500m", memory="3")), {"cpu": "1500m", "memory": "3"}),
        (spec(limited(cpu="1"), init=(limited(cpu="3"),)), {"cpu": "3"}),
        (spec(limited(cpu="1"), init=(limited(always=True, cpu="2"), limited(cpu="2"))), {"cpu": "4"}),
        # the pod as a whole counts in place of its containers, for resources that it may name
        (
            spec(limited(always=False, **{"cpu": "1", "a.b/c": "1"}), resources={"limits": {"cpu": "7"}}),
            {"cpu": "7", "a.b/c": "1"},
        ),
        (spec(limited(cpu="1"), resources={"limits": {"ephemeral-storage": "7"}}), {"cpu": "1"}),
        # overhead is added to what is limited, and limits nothing by itself
        (spec(limited(cpu="1"), overhead={"cpu": "1", "memory": "1"}), {"cpu": "2"}),
        (spec(limited(cpu="0"), overhead={"cpu": "1"}), {"cpu": "0"}),
    ],
)
def test_limits_are_added_up_as_requests_and_overhead_counts_where_there_are_any(
    one: dict[str, Any], limits: dict[str, str]
) -> None:
    assert {name: found.number for name, found in pod_limits(pod(one)).items()} == {
        name: parse(text).number for name, text in limits.items()
    }
