"""Which policies and which profile a decision goes by when they are given beside the objects or among them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import policysched
from policysched.errors import UsageError
from policysched.model.policy import LAST_GOOD
from tests.app.configuration.test_profiles import disabled
from tests.app.configuration.test_reading import HEAD
from tests.app.dry_runs import Object, node, pod, policy, record, requiring


def test_policies_among_the_objects_apply_and_given_ones_replace_them() -> None:
    standing = policy(**requiring("node.cordoned"))
    assert record([node(), standing], pod())["rejected"]["n1"]["plugin"] == "SchedulingPolicy/p"
    assert record([node(), standing], pod(), policy(**requiring("not node.cordoned")))["result"] == "Scheduled"
    made = record([node(), standing], pod(), policy("q", **requiring("not node.cordoned")))
    assert list(made["rules"]) == ["p", "q"]
    assert made["result"] == "Unschedulable"


def test_a_broken_policy_does_nothing_and_says_why() -> None:
    report = policysched.dry_run([node()], pod(), [policy(**requiring("nod.ready"))])
    assert (report.to_dict()["result"], "rules" in report.to_dict()) == ("Scheduled", False)
    assert [(one.code, one.field) for one in report.diagnostics] == [("E0201", "spec.filters[0].require")]


def test_a_broken_policy_of_the_cluster_acts_as_its_annotation_keeps() -> None:
    broken = policy(**requiring("nod.ready"))
    kept = {"uid": "", "generation": 1, "spec": requiring("node.cordoned")}
    broken["metadata"]["annotations"] = {LAST_GOOD: json.dumps(kept)}
    made = record([node(), broken], pod())
    assert made["result"] == "Unschedulable"
    assert made["rules"]["p"]["activeGeneration"] == 1


def test_a_policy_in_the_shadow_is_told_and_does_not_decide() -> None:
    made = record([node()], pod(), policy(mode="Shadow", **requiring("node.cordoned")))
    assert made["result"] == "Scheduled"
    assert made["rules"]["p"] == {"activeGeneration": 2, "mode": "Shadow", "filters": {"r": {"n1": "false"}}}


# Profiles


def config(*profiles: Object) -> Object:
    return {**HEAD, "profiles": list(profiles)}


@pytest.mark.parametrize(
    ("stated", "configuration", "name"),
    [
        (None, None, "policysched"),
        ("default-scheduler", None, "default-scheduler"),
        ("any", None, "any"),
        ("a", config({"schedulerName": "a"}, {"schedulerName": "b"}), "a"),
        ("b", config({"schedulerName": "a"}, {"schedulerName": "b"}), "b"),
        ("other", config({"schedulerName": "a"}), "a"),
        (None, config({"schedulerName": "a"}), "a"),
        (None, config({"schedulerName": "a"}, {"schedulerName": "default-scheduler"}), "default-scheduler"),
        (None, config(), "default-scheduler"),
    ],
)
def test_the_pod_or_the_configuration_chooses_the_profile(stated: str | None, configuration: Any, name: str) -> None:
    of = pod(**({"schedulerName": stated} if stated else {}))
    assert record([node()], of, config=configuration)["schedulerName"] == name


@pytest.mark.parametrize("stated", ["other", None])
def test_a_pod_has_to_name_one_of_several_profiles(stated: str | None) -> None:
    of = pod(**({"schedulerName": stated} if stated else {}))
    message = (
        f'no profile "{stated or "default-scheduler"}" in the configuration; set spec.schedulerName to one of a, b'
    )
    with pytest.raises(UsageError, match=message):
        record([node()], of, config=config({"schedulerName": "b"}, {"schedulerName": "a"}))


def test_policies_see_the_name_of_the_chosen_profile() -> None:
    of = policy(schedulerNames=["a"], **requiring("node.cordoned"))
    assert record([node()], pod(), of, config=config({"schedulerName": "a"}))["result"] == "Unschedulable"
    assert record([node()], pod(), of)["result"] == "Scheduled"


@pytest.mark.parametrize(
    ("point", "result", "scored", "told"),
    [
        ("multiPoint", "Scheduled", False, False),
        ("filter", "Scheduled", True, True),
        ("score", "Unschedulable", False, True),
    ],
)
def test_a_configuration_takes_policies_away(point: str, result: str, scored: bool, told: bool) -> None:
    of = policy(**requiring("node.cordoned"), scores=[{"name": "s", "value": 50}])
    made = record([node()], pod(), of, config=config({"plugins": {point: disabled("SchedulingPolicy")}}))
    scores = made.get("scores", {}).get("n1", {})
    assert (made["result"], "SchedulingPolicy/p" in scores, "rules" in made) == (result, scored, told)


@pytest.mark.parametrize(
    ("labels", "rejected"), [(None, []), ({}, []), ({"tier": "gold"}, ["a"]), ({"tier": "silver"}, [])]
)
def test_a_namespace_without_an_object_is_one_without_labels(
    labels: dict[str, str] | None, rejected: list[str]
) -> None:
    gold = policy(
        "gold",
        namespaceSelector={"matchLabels": {"tier": "gold"}},
        filters=[{"name": "none", "require": 'node.labels["none"] == "x"'}],
    )
    namespaces = [] if labels is None else [{"kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}]
    of = pod() | {"metadata": {"name": "web", "namespace": "shop"}}
    found = record([node("a"), *namespaces], of, gold)
    assert list(found.get("rejected", {})) == rejected


def test_policies_without_a_say_are_named_with_the_reason() -> None:
    policies = [
        policy("acts", **requiring("true")),
        policy("broken", **requiring("node.name = 1")),
        policy("off", mode="Disabled", **requiring("true")),
        policy("others", schedulerNames=["x"], **requiring("true")),
    ]
    of = pod(schedulerName="mine")
    made = record([node(), policies[2]], of, *policies[:2], policies[3])
    assert made["notApplied"] == {
        "broken": "it does not compile: `=` is not an operator (E0101, spec.filters[0].require)",
        "off": "mode is Disabled",
        "others": 'schedulerNames (x) do not contain "mine"',
    }
    assert list(made["rules"]) == ["acts"]
    assert "notApplied" not in record([node()], of, policies[0])


def test_policies_for_which_there_is_no_room_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.rules.policy_set.budget.MAX_UNITS", 4)
    standing = policy("standing", **requiring("not node.cordoned"))
    standing["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    made = record([node(), standing], pod(), policy("a-new", **requiring("not node.cordoned and node.ready")))
    reason = "the policy costs 3 units and would exceed the limit of 4 for all policies together (E0601, spec)"
    assert made["notApplied"] == {"a-new": f"it does not compile: {reason}"}
    assert list(made["rules"]) == ["standing"]


def test_policies_that_the_profile_disables_say_so() -> None:
    plugins = {"multiPoint": {"disabled": [{"name": "SchedulingPolicy"}]}}
    api = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    made = record([node()], pod(), policy(**requiring("true")), config=api | {"profiles": [{"plugins": plugins}]})
    assert made["notApplied"] == {"p": "the profile disables SchedulingPolicy"}


def test_two_policies_of_one_name_are_refused() -> None:
    twice = policy(**requiring("true"))
    with pytest.raises(UsageError, match='policy "p" is given twice'):
        record([node()], pod(), twice, twice)
    with pytest.raises(UsageError, match='policy "p" is given twice'):
        record([node(), twice, twice], pod())


@pytest.mark.parametrize("now", ["2026-01-05T23:00:00+01:00", "2026-01-05T22:00:00Z", "2026-01-05T22:00:00"])
def test_the_time_may_be_a_text(now: str) -> None:
    late = policy(**requiring('clock("21:30", "22:30")'))
    assert record([node()], pod(), late, now=now)["result"] == "Scheduled"
    assert record([node()], pod(), late, now="2026-01-05T23:00:00Z")["result"] == "Unschedulable"


@pytest.mark.parametrize(("now", "said"), [("tomorrow", 'got "tomorrow"'), (5, "got int")])
def test_a_time_that_is_none_is_refused(now: Any, said: str) -> None:
    with pytest.raises(UsageError, match=f"now: expected .*{said}"):
        record([node()], pod(), now=now)
