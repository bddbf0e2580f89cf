"""The definition's rules in CEL on a real API server: they refuse what never compiles, and nothing that does."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.model.decode import ObjectError
from policysched.model.policy import decode_policy
from policysched.rules.compile.compiler import compile_policy
from tests.e2e.objects import policy
from tests.e2e.server import Server

pytestmark = pytest.mark.controlplane
POLICIES = "/apis/policysched.io/v1beta1/schedulingpolicies"
CASES = ["node.ready → 3", "else → 1"]
EITHER = "a score needs either `cases` or `value`"
TWICE = "two values of let have the same name"
SPECS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("", {"scores": [{"name": "s", "value": "3"}]}),
    ("", {"scores": [{"name": "s", "value": 3}]}),
    ("", {"scores": [{"name": "s", "cases": CASES}]}),
    ("", {"scores": [{"name": "s", "cases": [], "value": "3"}]}),
    (EITHER, {"scores": [{"name": "s"}]}),
    (EITHER, {"scores": [{"name": "s", "cases": []}]}),
    (EITHER, {"scores": [{"name": "s", "cases": CASES, "value": "3"}]}),
    ("", {"let": [{"name": f"v{number}", "value": "1"} for number in range(256)], "scores": []}),
    ("", {"tier": 100, "scores": [{"name": "s", "value": "3"}]}),
    ("spec.tier: Invalid value: 101", {"tier": 101}),
    ("spec.tier: Invalid value: -1", {"tier": -1}),
    ("", {"placement": {"topologyKey": "example.com/rack"}}),
    ("", {"placement": {"filters": [{"name": "f", "require": "placement.size > 2", "when": "group.size > 2"}]}}),
    ("", {"placement": {"scores": [{"name": "s", "value": 3}, {"name": "t", "cases": ["placement.size > 1 → 3"]}]}}),
    (EITHER, {"placement": {"scores": [{"name": "s"}]}}),
    ("spec.placement.filters[0].require: Required", {"placement": {"filters": [{"name": "f"}]}}),
    ("spec.placement.topologyKey", {"placement": {"topologyKey": "k" * 318}}),
    (TWICE, {"let": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]}),
)  # fmt: skip


async def test_rules_refuse_exactly_what_they_say_and_nothing_that_compiles(real_server: Server) -> None:
    for number, (said, spec) in enumerate(SPECS):
        given = policy(f"p{number}", **spec)
        try:
            await real_server.call("POST", POLICIES, given)
            refused = ""
        except AssertionError as error:
            refused = str(error)
        assert (said in refused) if said else refused == "", (spec, refused)
        assert not (said and compiles(given)), spec


async def test_tier_is_0_where_it_is_not_given(real_server: Server) -> None:
    await real_server.call("POST", POLICIES, policy("plain", scores=[{"name": "s", "value": "3"}]))
    assert (await real_server.get("SchedulingPolicy", "plain"))["spec"]["tier"] == 0


def compiles(given: dict[str, Any]) -> bool:
    try:
        return compile_policy(decode_policy(given)).policy is not None
    except ObjectError:
        return False
