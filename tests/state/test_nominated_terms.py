"""Which of what nominated pods state is about a class, as pods, labels of nodes and labels of namespaces change."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from policysched.framework import Cluster
from policysched.model.objects import Pod
from policysched.state.nominated.terms import NONE, RepelledClass, RepellingTerms
from policysched.state.tables import sparse
from tests.build import cluster, node, pod
from tests.plugins.inter_pod_affinity.build import away, label, team, term

WEB, ONE = {"app": "web"}, {"team": "one"}


def stating(name: str, *keys: str, app: str = "web", of: str = "") -> Pod:
    selected = team(of) if of else None
    return pod(name, affinity=away(*(term(label("app", app), key, of=selected) for key in keys)))


def found(
    about: RepelledClass, terms: RepellingTerms, around: Cluster, labels: Mapping[str, str] = ONE
) -> dict[str, list[int]]:
    """The numbers that keep a class away, by topology key."""
    by_key = about.by_key(terms, around.nodes, labels)
    return {key: meaning.nonzero()[0].tolist() for key, meaning in by_key.items() if meaning.any()}


def test_pods_that_state_the_same_share_a_number_and_others_do_not() -> None:
    terms = RepellingTerms()
    first = terms.enter(stating("a", "zone"))
    assert terms.enter(stating("b", "zone")) == first
    assert terms.enter(stating("c", "host")) != first
    assert terms.enter(pod("d")) == NONE
    terms.leave(first)
    assert terms.enter(stating("e", "zone")) == first
    for _ in range(2):
        terms.leave(first)
    assert terms.enter(stating("f", "zone", app="db")) == first  # which is free


def test_a_number_that_is_used_again_is_evaluated_again() -> None:
    around, terms, about = cluster(node("a", labels={"zone": "z"})), RepellingTerms(), RepelledClass(pod(labels=WEB))
    number = terms.enter(stating("a", "zone"))
    assert found(about, terms, around) == {"zone": [number]}
    terms.leave(number)
    assert terms.enter(stating("b", "zone", app="db")) == number
    assert found(about, terms, around) == {}
    assert found(RepelledClass(pod(labels={"app": "db"})), terms, around) == {"zone": [number]}


def test_topology_keys_count_as_long_as_nodes_have_them() -> None:
    around, terms, about = cluster(node("a", labels={"zone": "z"})), RepellingTerms(), RepelledClass(pod(labels=WEB))
    number = terms.enter(stating("a", "zone", "rack", "none"))
    assert found(about, terms, around) == {"zone": [number]}
    around.set_node(node("b", labels={"rack": "r"}))
    assert found(about, terms, around) == {"zone": [number], "rack": [number]}
    assert found(RepelledClass(pod(labels=WEB)), terms, around) == {"zone": [number], "rack": [number]}
    around.remove_node("a")
    assert found(about, terms, around) == {"rack": [number]}


def test_labels_of_the_namespace_count_where_a_term_reads_them() -> None:
    around, terms, about = cluster(node("a", labels={"zone": "z"})), RepellingTerms(), RepelledClass(pod(labels=WEB))
    number = terms.enter(stating("a", "zone", of="two"))
    assert found(about, terms, around, ONE) == {}
    assert found(about, terms, around, {"team": "two"}) == {"zone": [number]}
    assert found(about, terms, around, ONE) == {}


def test_what_is_not_known_any_more_of_what_appeared_is_listed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "SPARE", 0)
    around, terms, about = cluster(node("a", labels={"zone": "z"})), RepellingTerms(), RepelledClass(pod(labels=WEB))
    found(about, terms, around)
    for index in range(40):
        terms.leave(terms.enter(stating(f"a{index}", "zone", app=f"app-{index}")))
    assert terms.since(0) is None
    number = terms.enter(stating("b", "zone"))
    assert found(about, terms, around) == {"zone": [number]}
