"""Our side of a sequence follows everything that kube-scheduler's side is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .judge import both, first_difference
from .minors import AT_EACH_MINOR
from .test_traps import ALL, WEB, labelled, thing, two_zones, web

if TYPE_CHECKING:
    from .oracle import Oracle

pytestmark = [pytest.mark.oracle, AT_EACH_MINOR]

SERVICE = thing("v1", "Service", "web", {"selector": {"app": "web"}}, namespace="default")
OTHERS = thing("v1", "Service", "web", {"selector": {"app": "other"}}, namespace="default")
REPLICAS = thing("apps/v1", "ReplicaSet", "web", {"selector": WEB}, namespace="default")
CONTROLLED = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}]


def spread_by_default(oracle: Oracle, objects: list[Any], between: list[Any], **metadata: Any) -> list[bool]:
    """Tell which pods of a sequence default spreading scores, having seen that both sides agree about all."""
    sequence = [labelled(web(f"web-{number}"), **metadata) for number in range(len(between))]
    case = {"objects": [*two_zones(), *objects], "sequence": sequence, "between": between, "config": ALL}
    decided, theirs = both(oracle, case)
    assert first_difference(decided, theirs) == (-1, [])
    return ["PodTopologySpread" in record["scores"]["a"] for record in theirs]


def test_services_come_change_and_go(oracle: Oracle) -> None:
    changes = [[], [{"remove": SERVICE}], [{"set": SERVICE}], [{"set": OTHERS}]]
    assert spread_by_default(oracle, [SERVICE], changes) == [True, False, True, False]


def test_controllers_come_and_go(oracle: Oracle) -> None:
    changes = [[], [{"set": REPLICAS}], [{"remove": REPLICAS}]]
    assert spread_by_default(oracle, [], changes, ownerReferences=CONTROLLED) == [False, True, False]
    assert spread_by_default(oracle, [REPLICAS], [[]], ownerReferences=CONTROLLED) == [True]
