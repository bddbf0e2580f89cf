"""Rows of pods on unknown nodes do not affect known nodes and volumes."""

from __future__ import annotations

import random

from policysched.app.configuration.profiles import default_profile
from policysched.schedule.cycle.engine import Engine
from tests.build import node, pod
from tests.plugins.stored import claim, claiming, storage_class, volume, with_storage

STATIC = storage_class("static", provisioner="kubernetes.io/no-provisioner")
LABELS = {"disk": "a"}


def test_a_pod_with_a_claim_is_decided_when_a_pod_came_before_its_node() -> None:
    around = with_storage(
        node("a", labels=LABELS), node("b"), STATIC, claim(of="static"), volume(of="static", nodes={"disk": ["a"]})
    )
    engine = Engine(around, default_profile(), random.Random(0))
    assert engine.decide(claiming("p", "c")).node == "a"
    around.set_pod(pod("early", on="unknown"))
    assert engine.decide(claiming("p", "c")).node == "a"
    around.set_node(node("unknown", labels=LABELS))
    assert engine.decide(claiming("p", "c")).feasible_count == 2
