"""Rules that read nothing of the pod say of every node what they would say if they were asked for the first time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from policysched.app.profiles import default_profile
from policysched.framework import Aspect, Cluster
from policysched.schedule.engine import Engine
from policysched.schedule.record import make_record
from policysched.state import journal
from tests.build import cluster, node, pod
from tests.rules.build import Spec, filtering, policy_set

ZONE = "topology.kubernetes.io/zone"


def engine(around: Cluster, spec: Spec) -> Engine:
    return Engine(around, policy_set(p=spec).join(default_profile()), random.Random(0))


def rejected(of: Engine) -> set[str]:
    found: dict[str, Any] = make_record(of.decide(pod())).get("rejected", {})
    return set(found)


def test_nodes_see_another_aggregate_after_more_changes_than_the_journal_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "RING", 16)
    spec = {"filters": filtering('(count(node.labels["kind"] == "x") by node.zone) < 2')}
    around = cluster(node("a", labels={ZONE: "z", "kind": "x"}), *(node(name, labels={ZONE: "z"}) for name in "bc"))
    live = engine(around, spec)
    assert not rejected(live)
    for _ in range(3):
        for _ in range(10):
            around.journal.note(around.nodes.row_of["a"], Aspect.USAGE)
        assert not rejected(live)
    around.set_node(node("b", labels={ZONE: "z", "kind": "x"}))
    assert rejected(live) == rejected(engine(around, spec)) == {"a", "b", "c"}
