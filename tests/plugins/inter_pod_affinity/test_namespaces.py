"""Which namespaces the terms of a pod mean: as each selector says, however many there are of both."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.objects import LabelSelector, Metadata, Namespace, PodAffinityTerm, Requirement
from policysched.model.selection.pod_affinity import PeerSelector, pod_terms
from policysched.model.selection.selectors import compile_selector
from policysched.plugins.inter_pod_affinity import terms as terms_module
from policysched.plugins.inter_pod_affinity.terms import Namespaces, ResolvedPeers, Weighted, terms_nbytes
from tests.build import cluster, pod
from tests.plugins.inter_pod_affinity.build import near
from tests.work import calls

KEYS, VALUES = ("team", "tier", "name"), ("a", "b", "c", "")


def namespaces(count: int, rng: Random) -> Cluster:
    made = cluster()
    for number in range(count):
        set_labels(made, number, rng)
    return made


def set_labels(made: Cluster, number: int, rng: Random) -> None:
    labels = {key: rng.choice(VALUES) for key in rng.sample(KEYS, rng.randint(0, 3))} | {"own": f"o{number}"}
    made.set_namespace(Namespace(metadata=Metadata(name=f"s{number}", labels=labels)))


def peers(selector: LabelSelector, *named: str) -> PeerSelector:
    stated = PodAffinityTerm(label_selector=LabelSelector(), topology_key="zone", namespace_selector=selector)
    one = pod("p", affinity=near(replace(stated, namespaces=[*named])))
    return pod_terms(one).affinity[0].peers


def selector(rng: Random) -> LabelSelector:
    def requirement() -> Requirement:
        operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = tuple(rng.sample((*VALUES, "o1", "unknown"), rng.randint(1, 3))) if operator.endswith("In") else ()
        return Requirement(rng.choice((*KEYS, "own", "nobody")), operator, values)

    return LabelSelector(match_expressions=[requirement() for _ in range(rng.randint(1, 3))])


@pytest.mark.parametrize("most", [8, 1], ids=["usual", "long"])
def test_namespaces_are_those_that_each_selector_selects(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms_module, "MOST_KEYS", most)
    monkeypatch.setattr(terms_module, "MOST_SELECTED", 5)
    monkeypatch.setattr(terms_module, "MOST_LABELS", 2)
    rng = Random(most)
    made = namespaces(30, rng)
    known = Namespaces(made.namespaces, made.namespace_changes)
    for _ in range(400):
        if rng.random() < 0.2:
            set_labels(made, rng.randrange(40), rng)
        if rng.random() < 0.1:
            made.remove_namespace(f"s{rng.randrange(40)}")
        known.refresh()
        asked = peers(selector(rng), *rng.sample(("s1", "s99"), rng.randint(0, 2)))
        found = known.meant_by(asked)
        of = asked.namespace_selector
        expected = {name for name, labels in made.namespaces.items() if of.matches(labels)} | asked.namespaces
        everybody = of.matches({})
        for name in (*made.namespaces, "s1", "s99", "s100"):
            assert found.is_in(name) is (everybody or name in expected)


def test_a_term_is_filed_under_the_namespaces_that_it_means() -> None:
    pods = compile_selector(LabelSelector(match_labels={"app": "web"}))
    for selected, also, expected in (
        (frozenset(), frozenset(("a", "b")), {"a", "b"}),
        (frozenset(("c",)), frozenset(("a",)), {"a", "c"}),
        (frozenset(map(str, range(100))), frozenset(("a",)), {None}),
        (None, frozenset(), {None}),
    ):
        found = ResolvedPeers(pods, selected, also).index_keys
        assert {namespace for namespace, _, _ in found} == expected
        assert {(key, value) for _, key, value in found} == {("app", "web")}


def test_selectors_are_not_asked_about_each_namespace_and_share_what_they_select() -> None:
    work = []
    for count in (50, 1000):
        made = namespaces(count, Random(1))
        known = Namespaces(made.namespaces, made.namespace_changes)
        known.refresh()

        def of(number: int) -> PeerSelector:
            stated = [Requirement("own", "Exists"), Requirement(f"x{number}", "DoesNotExist")]
            return peers(LabelSelector(match_expressions=stated))

        known.meant_by(of(0))
        asked = [of(number) for number in range(1, 101)]
        found: list[ResolvedPeers] = []
        work.append(calls(lambda known=known, asked=asked, found=found: found.extend(map(known.meant_by, asked))))
        assert {len(one.namespaces or ()) for one in found} == {count}
        assert len({id(one.namespaces) for one in found}) == 1
        weighted = [Weighted("zone", 1, one) for one in found]
        assert terms_nbytes(weighted) < 100 * terms_nbytes(weighted[:1])
    assert work[1] == work[0]
