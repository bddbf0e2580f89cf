from __future__ import annotations

from typing import Any

import pytest

from policysched.model.needs import KNOWN_FEATURES, declared_features, required_features, satisfies
from tests.model.build import pod

RESTART = "RestartAllContainersOnContainerExits"
NAMESPACES = "UserNamespacesHostNetworkSupport"
RULED = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, set()),
        ({"containers": [{}, RULED]}, {RESTART}),
        ({"initContainers": [RULED]}, {RESTART}),
        ({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, set()),
        ({"hostNetwork": True, "hostUsers": False}, {NAMESPACES}),
        ({"hostNetwork": True, "hostUsers": True}, set()),
        ({"hostNetwork": True}, set()),
        ({"hostUsers": False}, set()),
        ({"containers": [RULED], "hostNetwork": True, "hostUsers": False}, {RESTART, NAMESPACES}),
        ({"resources": {"requests": {"cpu": "1"}}}, set()),
    ],
)
def test_features_are_inferred_from_the_spec(spec: dict[str, Any], expected: set[str]) -> None:
    assert required_features(pod(spec)) == expected


def test_known_features_are_sorted() -> None:
    assert list(KNOWN_FEATURES) == sorted(KNOWN_FEATURES)


def test_unknown_features_of_a_node_are_overlooked() -> None:
    assert declared_features(["AAA", RESTART, "S", NAMESPACES, "Z"]) == {RESTART, NAMESPACES}
    assert declared_features([]) == frozenset()
    assert declared_features(KNOWN_FEATURES) == set(KNOWN_FEATURES)


def test_declared_features_out_of_order_are_overlooked() -> None:
    assert declared_features([NAMESPACES, RESTART]) == {NAMESPACES}


def test_node_satisfies_a_pod_whose_features_it_declares() -> None:
    assert satisfies([RESTART, NAMESPACES], frozenset({RESTART}))
    assert satisfies([], frozenset())
    assert not satisfies([NAMESPACES], frozenset({RESTART}))
