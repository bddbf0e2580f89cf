"""Which pods a pod is spread together with: those of its services and of its controller."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.model.objects import (
    LabelSelector,
    LabelsSpec,
    Metadata,
    OwnerReference,
    ReplicaSet,
    ReplicationController,
    Requirement,
    SelectorSpec,
    Service,
    StatefulSet,
)
from policysched.model.selection.selectors import LabelMatcher, compile_selector, match_labels
from policysched.plugins.pod_topology_spread.constraints import default_selector
from policysched.state.object_tables import Workloads
from tests.build import pod

OWN = {"app": "web", "tier": "front", "hash": "1"}
HASHED = LabelSelector(match_labels={"hash": "1"}, match_expressions=(Requirement(key="tier", operator="Exists"),))


def owned(*owners: tuple[str, str, str, bool]) -> Any:
    made = pod("p", labels=OWN)
    references = [
        OwnerReference(api_version=version, kind=kind, name=name, controller=controls)
        for version, kind, name, controls in owners
    ]
    return replace(made, metadata=replace(made.metadata, owner_references=references))


def known(*selectors: dict[str, str], namespace: str = "default") -> Workloads:
    """Services with these selectors, and one controller of each kind."""
    table = Workloads()
    for number, selector in enumerate(selectors):
        table.put(Service(metadata=Metadata(name=str(number), namespace=namespace), spec=LabelsSpec(selector=selector)))
    metadata = Metadata(name="c", namespace=namespace)
    table.put(ReplicaSet(metadata=metadata, spec=SelectorSpec(selector=HASHED)))
    table.put(StatefulSet(metadata=metadata, spec=SelectorSpec(selector=LabelSelector(match_labels={"set": "x"}))))
    table.put(ReplicationController(metadata=metadata, spec=LabelsSpec(selector={"app": "other", "rc": "y"})))
    return table


REPLICAS = ("apps/v1", "ReplicaSet", "c", True)
WEB, FRONT, NONE = {"app": "web"}, {"tier": "front"}, compile_selector(LabelSelector())


@pytest.mark.parametrize(
    ("owners", "services", "selector"),
    [
        ([], [], NONE),
        ([], [{"app": "db"}], NONE),
        ([], [WEB], match_labels(WEB)),
        ([], [WEB, FRONT, {"app": "db"}], match_labels(WEB | FRONT)),
        ([], [WEB | {"absent": ""}], NONE),
        ([REPLICAS], [], compile_selector(HASHED)),
        ([REPLICAS], [WEB], match_labels(WEB).joined(compile_selector(HASHED))),
        ([("apps/v1", "StatefulSet", "c", True)], [WEB], match_labels(WEB | {"set": "x"})),
        ([("v1", "ReplicationController", "c", True)], [WEB, FRONT], match_labels(FRONT | {"app": "other", "rc": "y"})),
        ([("/v1", "ReplicationController", "c", True)], [], match_labels({"app": "other", "rc": "y"})),
        ([("apps/v1", "ReplicaSet", "gone", True)], [WEB], match_labels(WEB)),
        ([("apps/v1", "ReplicaSet", "c", False)], [WEB], match_labels(WEB)),
        ([("apps/v1", "ReplicaSet", "c", False), REPLICAS], [], compile_selector(HASHED)),
        ([("batch/v1", "Job", "c", True), REPLICAS], [WEB], match_labels(WEB)),
        ([("extensions/v1beta1", "ReplicaSet", "c", True)], [], NONE),
        ([("v1", "ReplicaSet", "c", True)], [], NONE),
        ([("apps/v1", "ReplicationController", "c", True)], [], NONE),
        ([("a/b/c", "ReplicaSet", "c", True)], [], NONE),
        ([("", "ReplicationController", "c", True)], [], NONE),
    ],
)
def test_the_selector_joins_services_and_the_controller(owners: Any, services: Any, selector: LabelMatcher) -> None:
    assert default_selector(owned(*owners), known(*services)) == selector


def test_other_namespaces_do_not_matter() -> None:
    assert default_selector(owned(REPLICAS), known(WEB, namespace="other")) == NONE


@pytest.mark.parametrize("selector", [None, LabelSelector(match_expressions=(Requirement(key="a", operator="Like"),))])
def test_a_controllers_selector_that_is_not_valid_or_not_there_demands_nothing(selector: LabelSelector | None) -> None:
    table = known(WEB)
    table.put(ReplicaSet(metadata=Metadata(name="c", namespace="default"), spec=SelectorSpec(selector=selector)))
    assert default_selector(owned(REPLICAS), table) == match_labels(WEB)
