"""Law: tiers decide as weights would that are too large to be written: each tier's sum times a power of a large base.

What plugins and policies give nodes is asked of an engine whose policies are all in tier 0. Sums are whole numbers of
any size.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import Record, make_record
from tests.build import cluster, node, pod
from tests.rules.build import Spec, policy_set

BASE = 10**9
"""Larger than any sum of scores of a tier."""
POD = pod(requests={"cpu": "100m"})
LABELS = "abc"
VALUES = st.dictionaries(st.sampled_from(LABELS), st.integers(0, 3), max_size=3)
RULES = st.tuples(st.sampled_from(LABELS), st.sampled_from([None, "Max"]), st.integers(1, 3))
POLICIES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.lists(RULES, min_size=1, max_size=2)), max_size=4
)
CHANGES = st.lists(st.tuples(st.integers(0, 5), VALUES, st.booleans()), max_size=4)


def written(policies: Any, *, tiers: bool) -> dict[str, Spec]:
    return {
        f"p{number}": {
            "tier": tier if tiers else 0,
            "weight": weight,
            "scores": [
                {"name": f"s{place}", "value": f'(number(node.labels["{label}"]) ?? 0) * 10', "weight": of_rule}
                | ({} if normalize is None else {"normalize": normalize})
                for place, (label, normalize, of_rule) in enumerate(rules)
            ],
            "filters": [{"name": "f", "require": 'node.labels["out"] != "yes"'}],
        }
        for number, (tier, weight, rules) in enumerate(policies)
    }


def changed(around: Cluster, number: int, values: dict[str, int], out: bool) -> None:
    labels = {label: str(value) for label, value in values.items()} | {"out": "yes" if out else "no"}
    around.set_node(node(f"n{number}", labels=labels, allocatable={"cpu": number % 2 + 1}))


def engine(around: Cluster, policies: Any, *, tiers: bool) -> Engine:
    joined = policy_set(**written(policies, tiers=tiers)).join(default_profile())
    return Engine(around, joined, random.Random(0))


def scaled(record: Record, tiers: dict[str, int]) -> list[str]:
    """Return the nodes of the highest sum of scores, each times the base to the power of its plugin's tier."""
    sums = {
        name: sum(score * BASE ** tiers.get(plugin, 0) for plugin, score in scores.items())
        for name, scores in record.get("scores", {}).items()
    }
    return sorted(name for name, total in sums.items() if total == max(sums.values()))


@given(st.lists(VALUES, min_size=1, max_size=6), POLICIES, CHANGES)
def test_tiers_decide_as_scaled_sums_do(nodes: list[dict[str, int]], policies: Any, changes: Any) -> None:
    around = cluster()
    for number, values in enumerate(nodes):
        changed(around, number, values, out=False)
    tiered, flat = (engine(around, policies, tiers=tiers) for tiers in (True, False))
    tiers = {f"SchedulingPolicy/p{number}": tier for number, (tier, _, _) in enumerate(policies)}
    for change in (None, *changes):
        if change is not None:
            changed(around, *change)
        record = make_record(tiered.decide(POD))
        expected = make_record(flat.decide(POD))
        assert record.get("best", []) == scaled(expected, tiers)
        assert record.get("scores") == expected.get("scores")


@given(st.lists(VALUES, min_size=1, max_size=6), POLICIES, st.integers(0, 9))
def test_policies_of_one_tier_alone_in_their_profile_decide_as_those_of_tier_0(
    nodes: list[dict[str, int]], policies: Any, tier: int
) -> None:
    around = cluster()
    for number, values in enumerate(nodes):
        changed(around, number, values, out=False)
    same = [(tier, weight, rules) for _, weight, rules in policies]
    found = []
    for tiers in (True, False):
        profile = policy_set(**written(same, tiers=tiers)).join(default_profile())
        policies_only = tuple((one, weight) for one, weight in profile.scores if hasattr(one, "policy"))
        alone = Engine(around, replace(profile, scores=policies_only), random.Random(0))
        found.append(make_record(alone.decide(POD)))
    assert found[0]["best"] == found[1]["best"]
    assert found[0]["selected"] == found[1]["selected"]
