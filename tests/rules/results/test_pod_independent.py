"""Rules that read nothing of the pod say of every node what they would say if they were asked for the first time."""

from __future__ import annotations

import random
from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Aspect, Cluster
from policysched.model.objects import Metadata, Namespace
from policysched.rules.shared_values.aggregates import evaluation_context, hold
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.record import make_record
from policysched.state.tables import journal
from tests.build import cluster, node, pod
from tests.rules.build import Spec, compiled, filtering, policy_set, scoring

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


@pytest.mark.parametrize(
    "text",
    [
        'not node.pods.any(peer.namespace_labels["tier"] == "gold")',
        'not ((sum(node.pods.count(peer.namespace_labels["tier"] == "gold")) by node.name) > 0)',
    ],
)
def test_rules_follow_the_labels_of_the_namespaces_of_placed_pods(text: str) -> None:
    spec = {"filters": filtering(text)}
    around = cluster(node("a"), node("b"), pod("x", on="a", namespace="n"), pod("y", on="b", namespace="other"))
    around.set_namespace(Namespace(metadata=Metadata(name="other")))
    live = engine(around, spec)
    for tier, expected in (("tin", set()), ("gold", {"a"}), ("tin", set()), ("gold", {"a"})):
        around.set_namespace(Namespace(metadata=Metadata(name="n", labels={"tier": tier})))
        assert rejected(live) == expected
    around.set_pod(pod("z", on="b", namespace="n"))
    assert rejected(live) == {"a", "b"}
    around.remove_namespace("n")
    assert live.find(pod()).rejection is not None
    around.remove_pod("n.x")
    around.remove_pod("n.z")
    assert rejected(live) == set()


def test_what_reads_no_namespace_stays_kept_when_namespaces_change() -> None:
    around = cluster(node("a", labels={ZONE: "z"}))
    context = evaluation_context(around)
    text = "(sum(node.pods.count(true)) by node.zone) + node.pods.count(true) < 9"
    [rule] = compiled(filters=filtering(text)).filters
    held = hold(context, [rule.require.root], context.no_pod)
    around.set_namespace(Namespace(metadata=Metadata(name="n", labels={"tier": "gold"})))
    again = hold(context, [rule.require.root], context.no_pod)
    assert [id(one) for one in again] == [id(one) for one in held]


USED: Spec = {
    "filters": filtering('node.requested.cpu < 300m and node.pods.count(peer.labels["app"] == "a") < 9'),
    "scores": scoring("100 - node.requested.cpu / 10m"),
}


@pytest.mark.parametrize("ring", [16, 4096])
def test_a_class_asked_late_sees_what_placements_did_before(ring: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "RING", ring)
    chance, around = random.Random(ring), cluster(*(node(f"n{number}") for number in range(6)))
    live = engine(around, USED)
    for number in range(40):
        for place in range(chance.choice((1, 1, 20))):
            one = pod(
                f"p{number}-{place % 3}", on=f"n{chance.randrange(6)}", requests={"cpu": "20m"}, labels={"app": "a"}
            )
            around.set_pod(one)
        for one in (pod(), pod(labels={"class": f"{number // 3}"})):
            records = [make_record(of.decide(one)) for of in (live, engine(around, USED))]
            for record in records:
                record.pop("selected", None)
            assert records[0] == records[1], number
