"""Labels of namespaces that terms select by: only classes whose terms match other namespaces are recomputed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from bench.workloads import HOST, ZONE, node, pod
from policysched.app.configuration.profiles import default_profile
from policysched.model.decode import decode_node
from policysched.model.objects import Metadata, Namespace, Pod
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.engine import Engine
from policysched.state import namespace_sets
from policysched.state.cluster import Cluster
from policysched.state.tables import sparse
from tests.rules.build import compiled
from tests.work import calls

NODES = 9
NOT_FIRST = 'node.name != "node-0"'


def labelled(cluster: Cluster, name: str, **labels: str) -> None:
    cluster.set_namespace(Namespace(metadata=Metadata(name=name, labels=labels)))


def engine() -> Engine:
    cluster = Cluster()
    for index in range(NODES):
        cluster.set_node(decode_node(node(index, 3)))
    return Engine(cluster, default_profile(), random.Random(0))


def selecting(of: Mapping[str, Any] | None, app: str, key: str = HOST) -> dict[str, Any]:
    """Return a term for the pods of an app in the namespaces that match a selector."""
    made = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return made if of is None else {**made, "namespaceSelector": of}


def stating(
    identity: int, namespace: str, app: str, *, away: Any = (), near: Any = (), likes: Any = (), **spec: Any
) -> Pod:
    weighted = [{"weight": 1 + place, "podAffinityTerm": one} for place, one in enumerate(likes)]
    affinity: dict[str, Any] = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": list(near),
            "preferredDuringSchedulingIgnoredDuringExecution": weighted,
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(away)},
    }
    return pod(identity, namespace, {"app": app}, affinity=affinity, **spec)


def by_team(team: str) -> dict[str, Any]:
    return {"matchLabels": {"team": team}}


def with_terms(count: int) -> Engine:
    made = engine()
    labelled(made.cluster, "mine", team="a", other="0")
    labelled(made.cluster, "others", team="b")
    for identity in range(count):
        liked = [selecting({"matchLabels": {"team": "a", "number": str(identity)}}, "plain", ZONE)]
        made.cluster.set_pod(
            stating(identity, "others", "x", likes=[*liked, selecting(by_team("a"), "plain", ZONE)], nodeName="node-1")
        )
    return made


def _calls_after(made: Engine, namespace: str, **labels: str) -> int:
    asked = pod(10_000, "mine", {"app": "plain"})
    for _ in range(3):
        made.decide(asked)
    labelled(made.cluster, namespace, **labels)
    return calls(lambda: made.decide(asked))


@pytest.mark.parametrize(
    "flip",
    [
        ("unrelated", {"team": "a"}),
        ("others", {"team": "a", "number": "3"}),
        ("mine", {"team": "a", "other": "1"}),
    ],
)
def test_a_flip_without_another_answer_costs_a_class_nothing(flip: tuple[str, dict[str, str]]) -> None:
    name, labels = flip
    made = with_terms(300)
    asked = pod(10_000, "mine", {"app": "plain"})
    assert not made.profile.reads_own_namespace  # computed once for each profile
    for _ in range(3):
        made.decide(asked)
    usual = calls(lambda: made.decide(asked))
    kept = made.classes.results(asked)
    assert _calls_after(made, name, **labels) < usual + 80
    assert made.classes.results(asked) is kept


def test_a_flip_with_another_answer_makes_the_class_anew() -> None:
    made = with_terms(30)
    asked = pod(10_000, "mine", {"app": "plain"})
    kept = made.classes.results(asked)
    labelled(made.cluster, "mine", team="b")
    assert made.classes.results(asked) is not kept


POLICIES: tuple[dict[str, Any], ...] = (
    {"namespaceSelector": {"matchLabels": {"team": "a"}}, "filters": [{"name": "f", "require": NOT_FIRST}]},
    {"appliesTo": 'pod.namespace_labels["team"] == "a"', "filters": [{"name": "f", "require": NOT_FIRST}]},
    {"filters": [{"name": "f", "require": f'pod.namespace_labels["team"] != "a" or {NOT_FIRST}'}]},
)


@pytest.mark.parametrize("spec", POLICIES)
def test_policies_that_read_the_own_namespace_heed_no_other_one(spec: dict[str, Any]) -> None:
    made = engine()
    for name in ("mine", "others"):
        labelled(made.cluster, name, team="b")
    made.use(PolicySet.of([compiled("p", **spec)]).join(made.profile))
    asked = pod(10_000, "mine", {"app": "plain"})

    def found() -> bool:
        return bool(made.find(asked).feasible()[made.cluster.nodes.row_of["node-0"]])

    assert found()
    kept = made.classes.results(asked)
    labelled(made.cluster, "others", team="a")
    assert made.classes.results(asked) is kept
    labelled(made.cluster, "mine", team="a")
    assert not found()
    labelled(made.cluster, "mine", team="b")
    assert found()
    made.cluster.remove_namespace("mine")
    assert made.find(asked).rejection is not None
    labelled(made.cluster, "mine", team="b")
    assert found()


def test_own_selectors_are_asked_about_the_namespaces_that_changed_alone() -> None:
    found = []
    for count in (50, 500):
        made = engine()
        for number in range(count):
            labelled(made.cluster, f"ns-{number}", team=str(number % 7))
        asked = stating(10_000, "mine", "plain", away=[selecting(by_team("3"), "x")])
        for _ in range(3):
            made.decide(asked)
        kept = made.classes.results(asked)
        labelled(made.cluster, "ns-4", team="5")
        found.append(calls(lambda made=made, asked=asked: made.decide(asked)))
        assert made.classes.results(asked) is kept
        labelled(made.cluster, "ns-4", team="3")
        assert made.classes.results(asked) is not kept
    assert found[1] < found[0] + 20


SELECTORS: tuple[dict[str, Any] | None, ...] = (
    None,
    {},
    by_team("a"),
    by_team("b"),
    {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
    {"matchLabels": {"team": "a", "tier": "1"}},
)
NAMES = ("default", "n1", "n2", "n3", "n4")


class Drawn:
    """Random pods and labels of namespaces, and an engine that decides with them."""

    def __init__(self, seed: int) -> None:
        self.rng, self.engine = random.Random(seed), engine()
        self.cluster = self.engine.cluster
        self.placed: dict[str, Pod] = {}

    def terms(self, most: int) -> list[dict[str, Any]]:
        rng = self.rng
        return [
            selecting(rng.choice(SELECTORS), rng.choice(("plain", "rare")), rng.choice((HOST, ZONE)))
            for _ in range(rng.randrange(most))
        ]

    def pod(self, identity: int, **spec: Any) -> Pod:
        rng = self.rng
        near = self.terms(2) if rng.random() < 0.3 else ()
        app, away, likes = rng.choice(("plain", "rare")), self.terms(2), self.terms(3)
        return stating(identity, rng.choice(NAMES), app, away=away, near=near, likes=likes, **spec)

    def change(self, step: int) -> None:
        """Place or remove a pod, or change or remove a namespace."""
        rng, draw = self.rng, self.rng.random()
        if draw < 0.2:
            new = self.pod(step, nodeName=f"node-{rng.randrange(NODES)}")
            self.placed[new.metadata.uid] = new
            self.cluster.set_pod(new)
        elif draw < 0.3 and self.placed:
            self.cluster.remove_pod(self.placed.pop(rng.choice(sorted(self.placed))).metadata.uid)
        elif draw < 0.4:
            self.cluster.remove_namespace(rng.choice(NAMES))
        else:
            chosen = {"team": rng.choice("abc"), "tier": rng.choice("12")}
            labels = {key: value for key, value in chosen.items() if rng.random() < 0.7}
            labelled(self.cluster, rng.choice(NAMES), **labels)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_decisions_are_those_of_an_engine_that_knows_nothing_yet(
    seed: int, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if few:
        monkeypatch.setattr(namespace_sets, "MOST_LABELS", 1)
        monkeypatch.setattr(sparse, "SPARE", 0)
    drawn = Drawn(seed)
    cluster = drawn.cluster
    classes = [drawn.pod(10_000 + number) for number in range(6)]
    for step in range(250):
        if drawn.rng.random() < 0.7:
            drawn.change(step)
            continue
        asked = drawn.rng.choice(classes)
        live, anew = drawn.engine.find(asked), Engine(cluster, default_profile(), random.Random(0)).find(asked)
        assert live.first[: cluster.nodes.size].tolist() == anew.first[: cluster.nodes.size].tolist()
        if anew.feasible_count:
            assert live.best().tolist() == anew.best().tolist()
