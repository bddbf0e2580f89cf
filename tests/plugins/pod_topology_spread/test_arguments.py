"""The arguments of PodTopologySpread."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.errors import UsageError
from policysched.framework import SKIP
from policysched.plugins import plugin_named
from tests.build import cluster, pod
from tests.plugins.ask import rejected
from tests.plugins.pod_topology_spread.build import ZONE, crowd
from tests.plugins.pod_topology_spread.test_plugin import PLAIN, like_service, zoned

NAME = "PodTopologySpread"
ONE = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}


def made(**args: Any) -> Any:
    return plugin_named(NAME, args)


def test_listed_constraints_hold_for_pods_that_state_none() -> None:
    state = like_service(cluster(*zoned(), *crowd(a=1)))
    assert rejected(made(defaultingType="List", defaultConstraints=[ONE]), PLAIN, state) == {"a", "b"}
    assert rejected(made(defaultingType="List", defaultConstraints=[ONE | {"maxSkew": 2}]), PLAIN, state) == set()
    assert made(defaultingType="List", defaultConstraints=[ONE]).prepare_score(PLAIN, state) is SKIP


@pytest.mark.parametrize("args", [{}, {"defaultingType": ""}, {"defaultingType": "System", "defaultConstraints": []}])
def test_without_arguments_the_systems_constraints_hold(args: dict[str, Any]) -> None:
    state = like_service(cluster(*zoned()))
    assert made(**args).prepare_filter(PLAIN, state) is SKIP
    assert made(**args).prepare_score(PLAIN, state) is not SKIP


@pytest.mark.parametrize("args", [{}, {"defaultConstraints": []}, {"defaultConstraints": None}])
def test_an_empty_list_turns_default_constraints_off(args: dict[str, Any]) -> None:
    plugin = made(defaultingType="List", **args)
    assert plugin.prepare_score(PLAIN, like_service(cluster(*zoned()))) is SKIP
    assert plugin.prepare_score(pod(), cluster()) is SKIP


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"defaultingType": "Other"}, 'defaultingType: "Other" is neither List nor System'),
        ({"defaultConstraints": [ONE]}, "defaultingType: System cannot be combined with defaultConstraints"),
        ({"defaultConstraint": [ONE]}, "defaultConstraint: unknown field"),
        ({"defaultConstraints": [ONE | {"skew": 1}]}, "defaultConstraints[0].skew: unknown field"),
        ({"kind": "Other"}, "kind: expected PodTopologySpreadArgs, got Other"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(args: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        plugin_named(NAME, args)
    assert str(refusal.value) == f"{NAME}: {message}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"maxSkew": 0}, ".maxSkew: 0 is not between 1 and 2147483647"),
        ({"maxSkew": 2**31}, ".maxSkew: expected `int` <= 2147483647"),
        ({"topologyKey": ""}, '.topologyKey: "" is not a label key'),
        ({"topologyKey": "a b"}, '.topologyKey: "a b" is not a label key'),
        ({"whenUnsatisfiable": ""}, '.whenUnsatisfiable: "" is neither DoNotSchedule nor ScheduleAnyway'),
        (
            {"labelSelector": {}},
            ".labelSelector: must not be set in default constraints, because it is derived for each pod",
        ),
        ({}, f": duplicate constraint for {ZONE} and DoNotSchedule"),
    ],
)
def test_default_constraints_that_are_not_valid_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        made(defaultingType="List", defaultConstraints=[ONE, ONE | change])
    assert str(refusal.value) == f"{NAME}: defaultConstraints[1]{message}"
