from __future__ import annotations

from typing import Any

import pytest

from policysched.model.priority import is_system, pod_priority, qos_class
from tests.model.build import pod


@pytest.mark.parametrize(
    ("priority", "expected", "system"),
    [
        (None, 0, False),
        (0, 0, False),
        (-5, -5, False),
        (1_999_999_999, 1_999_999_999, False),
        (2_000_000_000, 2_000_000_000, True),
    ],
)
def test_priority_of_a_pod(priority: int | None, expected: int, system: bool) -> None:
    one = pod({} if priority is None else {"priority": priority})
    assert (pod_priority(one), is_system(one)) == (expected, system)


def resources(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> dict[str, Any]:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}}


BOTH = {"cpu": "1", "memory": "1Gi"}

QOS = [
    ("nothing", {"containers": [resources()]}, "BestEffort"),
    ("zeros", {"containers": [resources({"cpu": "0"}, {"memory": "0"})]}, "BestEffort"),
    ("other resources", {"containers": [resources({"a.b/c": "1"}, {"a.b/c": "1"})]}, "BestEffort"),
    ("requests only", {"containers": [resources(BOTH)]}, "Burstable"),
    ("equal", {"containers": [resources(BOTH, BOTH)]}, "Guaranteed"),
    ("equal numbers", {"containers": [resources({"cpu": "1000m", "memory": "1024Mi"}, BOTH)]}, "Guaranteed"),
    ("cpu only", {"containers": [resources({"cpu": "1"}, {"cpu": "1"})]}, "Burstable"),
    ("lower requests", {"containers": [resources({"cpu": "1", "memory": "1Mi"}, BOTH)]}, "Burstable"),
    ("one container without", {"containers": [resources(BOTH, BOTH), resources()]}, "Burstable"),
    ("init container without", {"containers": [resources(BOTH, BOTH)], "initContainers": [resources()]}, "Burstable"),
    ("limits without requests", {"containers": [resources({}, BOTH)]}, "Burstable"),
    ("pod as a whole", {"containers": [resources()], **resources(BOTH, BOTH)}, "Guaranteed"),
    ("pod as a whole, requests", {"containers": [resources(BOTH, BOTH)], **resources(BOTH)}, "Burstable"),
    ("pod as a whole, cpu", {"containers": [], **resources({"cpu": "1"}, {"cpu": "1"})}, "Burstable"),
    ("pod as a whole, empty", {"containers": [resources(BOTH, BOTH)], **resources()}, "BestEffort"),
]


@pytest.mark.parametrize(("spec", "expected"), [case[1:] for case in QOS], ids=[case[0] for case in QOS])
def test_quality_of_service_follows_from_resources(spec: dict[str, Any], expected: str) -> None:
    assert qos_class(pod(spec)) == expected


def test_quality_of_service_of_the_status_counts_first() -> None:
    assert qos_class(pod(status={"qosClass": "Guaranteed"})) == "Guaranteed"
