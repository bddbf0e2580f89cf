"""A scheduler killed a few times between bindings of small gangs; `make faults FAULTS=--groups` plays 1,000 gangs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.controlplane.plane import ControlPlane
from tests.controlplane.releases import chosen
from tests.e2e.objects import DEFINITION
from tests.faults.__main__ import CONTROLLERS
from tests.faults.group_faults import GROUP_FAULTS
from tests.faults.groups import GroupScene, faults_of
from tests.faults.playing import play
from tests.faults.scene import SHORT


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    controllers = (*CONTROLLERS, *GroupScene.controllers)
    with ControlPlane(controllers=controllers, kubelets=False, gates=GroupScene.gates) as made:
        made.load([DEFINITION])
        yield made


@pytest.mark.controlplane
@pytest.mark.skipif(chosen().minor == "1.36", reason="the kind PodGroup is alpha")
def test_gangs_are_whole_again_after_each_kill(plane: ControlPlane) -> None:
    [fault] = GROUP_FAULTS
    outcome = play(fault, "policysched", plane, SHORT)
    assert outcome.holds(shares=False), outcome
    assert outcome.restarts == SHORT.pods // 10
    assert " 0 groups placed in part" not in outcome.note


def group(*conditions: str) -> dict[str, object]:
    told = [{"type": "PodGroupInitiallyScheduled", "status": status} for status in conditions]
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    return {"metadata": {"name": "g"}, "spec": spec, "status": {"conditions": told}}


def pods(*nodes: str) -> list[dict[str, object]]:
    return [{"spec": {"schedulingGroup": {"podGroupName": "g"}, "nodeName": node}} for node in nodes]


def test_groups_that_are_placed_in_part_or_falsely_scheduled_are_named() -> None:
    assert not faults_of([group("True")], pods("n", "n"))
    assert not faults_of([group("False")], pods("", ""))
    assert faults_of([group("False")], pods("n", "")) == ["1 pods of group g are bound, which is in part"]
    assert faults_of([group("True")], pods("", "")) == ["group g counts as scheduled, and 0 of 2 pods are bound"]
    assert not faults_of([group()], pods("n", "n"))
