"""Selectors of services and controllers, and when answers that were derived from them are stale."""

from __future__ import annotations

import pytest

from policysched.model.objects import (
    LabelSelector,
    LabelsSpec,
    Metadata,
    ReplicaSet,
    ReplicationController,
    SelectorSpec,
    Service,
    StatefulSet,
)
from policysched.model.selection.selectors import LabelMatcher, compile_selector
from policysched.state import object_tables as workloads
from policysched.state.object_tables import Workloads

WEB = LabelSelector(match_labels={"app": "web"})


def service(selector: dict[str, str] | None, name: str = "s", namespace: str = "default") -> Service:
    return Service(metadata=Metadata(name=name, namespace=namespace), spec=LabelsSpec(selector=selector))


def replicas(selector: LabelSelector | None, name: str = "r") -> ReplicaSet:
    return ReplicaSet(metadata=Metadata(name=name, namespace="default"), spec=SelectorSpec(selector=selector))


def test_services_are_known_by_namespace_as_far_as_they_select() -> None:
    table = Workloads()
    table.put(service({"app": "web"}))
    table.put(service({"app": "db"}, "t"))
    table.put(service({"app": "web"}, namespace="other"))
    table.put(service(None, "external"))
    table.put(service({}, "empty"))
    assert list(table.services("default")) == [{"app": "web"}, {"app": "db"}]
    assert list(table.services("absent")) == []
    table.put(service({"app": "new"}))
    table.put(service(None, "t"))
    assert list(table.services("default")) == [{"app": "new"}]
    table.drop(service({"app": "new"}))
    table.drop(service({"app": "new"}))
    assert list(table.services("default")) == []


def test_controllers_are_known_by_kind_namespace_and_name() -> None:
    table = Workloads()
    table.put(replicas(WEB))
    metadata = Metadata(name="r", namespace="default")
    table.put(StatefulSet(metadata=metadata, spec=SelectorSpec(selector=LabelSelector())))
    table.put(ReplicationController(metadata=metadata, spec=LabelsSpec(selector={"a": "b"})))
    assert table.controller("ReplicaSet", "default", "r") == WEB
    assert table.controller("StatefulSet", "default", "r") == LabelSelector()
    assert table.controller("ReplicationController", "default", "r") == {"a": "b"}
    assert table.controller("ReplicaSet", "other", "r") is None
    table.put(replicas(None))
    assert table.controller("ReplicaSet", "default", "r") is None


def test_only_answers_that_were_given_become_stale() -> None:
    table = Workloads()
    table.services("other")
    table.put(service({"app": "web"}))
    table.put(replicas(WEB))
    assert table.stamp == 0
    table.services("default")
    table.controller("ReplicaSet", "default", "r")
    table.put(service({"app": "web"}))
    table.put(replicas(WEB))
    table.put(replicas(WEB, "another"))
    table.drop(service(None, "absent"))
    assert table.stamp == 0
    table.put(replicas(LabelSelector()))
    assert table.stamp == 1
    table.put(service({"app": "other"}))
    assert table.stamp == 1, "everything is asked for anew before it can be stale again"


@pytest.mark.parametrize("change", [service({"app": "web"}), replicas(WEB)])
def test_an_answer_that_nothing_is_known_becomes_stale_too(change: Service | ReplicaSet) -> None:
    table = Workloads()
    table.services("default")
    table.controller("ReplicaSet", "default", "r")
    table.put(change)
    assert table.stamp == 1


def test_what_was_asked_for_is_remembered_only_up_to_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "MAX_ASKED", 2)
    table = Workloads()
    for name in "abc":
        table.controller("ReplicaSet", "default", name)
    assert table.stamp == 1
    table.put(replicas(WEB, "c"))
    assert table.stamp == 2


def test_selectors_of_controllers_are_compiled_once_for_each_version(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[LabelSelector | None] = []

    def compiling(selector: LabelSelector | None) -> LabelMatcher:
        compiled.append(selector)
        return compile_selector(selector)

    monkeypatch.setattr(workloads, "compile_selector", compiling)
    table = Workloads()
    table.put(replicas(WEB))
    table.put(replicas(LabelSelector(match_labels={"no key": "x"}), "bad"))
    for _ in range(3):
        assert table.demands("ReplicaSet", "default", "r") == compile_selector(WEB)
        assert table.demands("ReplicaSet", "default", "bad") == compile_selector(None)
    assert compiled.count(WEB) == 1
    table.put(replicas(LabelSelector()))
    assert table.demands("ReplicaSet", "default", "r") == compile_selector(LabelSelector())
    table.put(replicas(None))
    table.drop(replicas(None, "bad"))
    assert table.demands("ReplicaSet", "default", "r") is None
    assert not table._compiled
