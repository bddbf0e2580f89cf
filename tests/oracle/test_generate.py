"""Generated cases are repeatable, and they reach every plugin that they are meant to reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policysched.model.release import RELEASES
from tests.controlplane.releases import chosen

from .biting import Survey, biting, table
from .features import features
from .generate import marathons, sequences, singles, stories
from .stories import identity

if TYPE_CHECKING:
    from .oracle import Oracle, Record


def test_generated_cases_depend_on_seed_and_index_alone() -> None:
    assert next(singles(9, [4])) == list(singles(9, range(5)))[4]
    assert next(sequences(9, [1])) == list(sequences(9, range(2)))[1]
    assert next(singles(9, [4])) != next(singles(10, [4]))


def test_relations_stories_and_marathons_are_repeatable() -> None:
    assert next(singles(9, [4], related=1.0)) == list(singles(9, range(5), related=1.0))[4]
    for generate in (stories, marathons):
        assert next(generate(9, [1], related=1.0)) == list(generate(9, range(2), related=1.0))[1]
        assert next(generate(9, [1], related=0.0)) == list(generate(9, range(2), related=0.0))[1]


def test_pods_look_at_each_other_only_where_they_are_meant_to() -> None:
    assert not any(features(case) for case in singles(3, range(40), related=0.0))
    assert sum(bool(features(case)) for case in singles(3, range(40), related=1.0)) > 30
    for case in stories(3, range(10), related=0.0):
        assert not any(features({**case, "pod": pod}) for pod in case["sequence"])


def test_changes_make_sense_one_after_another() -> None:
    for case in stories(5, range(20), related=1.0):
        there = {identity(thing) for thing in case["objects"]}
        for pod, changes in zip(case["sequence"], case["between"], strict=True):
            for change in changes:
                if "set" in change:
                    there.add(identity(change["set"]))
                else:
                    there.remove(identity(change["remove"]))
            there.add(identity(pod))


def test_biting_counts_records_not_nodes() -> None:
    verdict = {"plugin": "NodePorts", "code": "Unschedulable", "reasons": ["taken"]}
    records: list[Record] = [
        {"rejected": {"a": verdict, "b": verdict}, "scores": {"c": {"Fit": 1}, "d": {"Fit": 2}}},
        {"scores": {"a": {"Fit": 3}, "b": {"Fit": 3}}},
        {"preFilter": verdict | {"plugin": ""}},
    ]
    counts = biting(records)
    assert counts == {
        "Fit": {"rejected": 0, "scored": 1},
        "NodePorts": {"rejected": 1, "scored": 0},
        "no plugin (PreFilter)": {"rejected": 1, "scored": 0},
    }
    assert table(counts, 3).splitlines()[2].split() == ["NodePorts", "1", "0"]


@pytest.mark.oracle
def test_generated_cases_bite_every_plugin(oracle: Oracle) -> None:
    counts = biting(oracle.decide_many(singles(7, range(300))))
    rejecting = {name for name, row in counts.items() if row["rejected"] >= 3}
    scoring = {name for name, row in counts.items() if row["scored"] >= 3}
    narrows = RELEASES[chosen().minor].node_name_narrows
    assert rejecting >= (set() if narrows else {"NodeName"}) | {
        "NodeAffinity",
        "NodeDeclaredFeatures",
        "NodePorts",
        "NodeResourcesFit",
        "NodeUnschedulable",
        "PreFilterResult",
        "TaintToleration",
    }
    assert scoring >= {
        "ImageLocality",
        "NodeAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "TaintToleration",
    }


@pytest.mark.oracle
def test_relations_bite_both_plugins_and_every_feature(oracle: Oracle) -> None:
    survey = Survey()
    for case in singles(7, range(500), related=1.0):
        survey.add(case, oracle.decide(case))
    bites = survey.by_feature
    for plugin in ("InterPodAffinity", "PodTopologySpread"):
        about = bites.cases[plugin, ""]
        assert bites.rejected[plugin, ""] >= about * 0.2
        assert bites.scored[plugin, ""] >= about * 0.2
    silent = {feature for feature in bites.cases if not bites.rejected[feature] + bites.scored[feature]}
    assert not {feature for feature in silent if bites.cases[feature] > 10}
    assert {name for _, name in bites.cases} >= EXPECTED


@pytest.mark.oracle
@pytest.mark.parametrize(("generate", "count"), [(stories, 30), (marathons, 8)], ids=["stories", "marathons"])
def test_sequences_place_most_pods_but_not_all(oracle: Oracle, generate: Any, count: int) -> None:
    results = [
        record["result"] for case in generate(7, range(count), related=1.0) for record in oracle.decide_sequence(case)
    ]
    assert results.count("Scheduled") > len(results) / 3
    assert results.count("Unschedulable") > len(results) / 10


EXPECTED = {
    "pod's required affinity",
    "pod's required affinity to its own like",
    "pod's required anti-affinity",
    "pod's preferred affinity",
    "pod's preferred anti-affinity",
    "placed pods' required affinity",
    "placed pods' required anti-affinity",
    "placed pods' preferred affinity",
    "placed pods' preferred anti-affinity",
    "placed pods' selector that cannot be parsed",
    "match or mismatch label keys",
    "namespaces",
    "namespace selector",
    "{} namespace selector",
    "{} selector",
    "nil selector",
    "selector that cannot be parsed",
    "DoNotSchedule",
    "ScheduleAnyway",
    "minDomains",
    "matchLabelKeys",
    "nodeAffinityPolicy: Ignore",
    "nodeTaintsPolicy: Honor",
    "several constraints",
    "one Service",
    "several Services",
    "owner: ReplicaSet",
    "owner: StatefulSet",
    "owner: ReplicationController",
    "owner that does not control",
    "owner that is gone or of another version or kind",
    "args: hardPodAffinityWeight",
    "args: ignorePreferredTermsOfExistingPods",
    "args: defaultConstraints",
    "pod's namespace is gone",
    "terminating pods",
    "finished pods",
    "shared host names",
    "nodes without zone or host name",
    "empty zone",
}
