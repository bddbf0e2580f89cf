"""Which namespaces the terms of a pod mean: as each selector says, however many there are of both."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.objects import LabelSelector, Metadata, Namespace, PodAffinityTerm, Requirement
from policysched.model.selection.pod_affinity import PeerSelector, pod_terms
from policysched.model.selection.selectors import compile_selector
from policysched.plugins.inter_pod_affinity.terms import ResolvedPeers, resolve_peers
from policysched.state import namespace_sets as namespaces_module
from policysched.state.namespace_sets import NamespaceNumbers, NamespaceSet, NamespaceSets
from policysched.state.tables import sparse
from tests.build import cluster, pod
from tests.plugins.inter_pod_affinity.build import near
from tests.work import calls

OWN = Requirement("own", "Exists")
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

    return LabelSelector(match_expressions=tuple(requirement() for _ in range(rng.randint(1, 3))))


class Life:
    """Namespaces that come, change and go, and selectors that are asked about them."""

    def __init__(self, seed: int, *, merges: bool = False) -> None:
        self.rng, self.merges = Random(seed), merges
        self.cluster = namespaces(30, self.rng)
        self.known = self.cluster.namespace_sets
        self.selectors = [selector(self.rng) for _ in range(60)]
        self.step = 0

    def ask(self) -> tuple[PeerSelector, ResolvedPeers]:
        """Let namespaces change, and find out which of them a term means."""
        rng = self.rng
        self.step += 1
        if rng.random() < 0.2:
            set_labels(self.cluster, rng.randrange(40) + self.step // 10, rng)
        if rng.random() < 0.2:
            self.cluster.remove_namespace(f"s{rng.randrange(40) + self.step // 10}")
        asked = peers(rng.choice(self.selectors), *rng.sample(("s1", "s99"), rng.randint(0, 2)))
        beside = [rng.choice(self.selectors)] if rng.random() < 0.5 else []
        return asked, next(ask(self.known, [asked, *map(peers, beside)], merges=self.merges))


@pytest.fixture(params=[{}, {"MOST_BYTES": 4000, "MOST_LABELS": 2}], ids=["usual", "tight"])
def bounds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound, value in request.param.items():
        monkeypatch.setattr(namespaces_module, bound, value)
    if request.param:
        monkeypatch.setattr(sparse, "SPARE", 0)


@pytest.mark.usefixtures("bounds")
@pytest.mark.parametrize("merges", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_namespaces_are_those_that_each_selector_selects(seed: int, merges: bool) -> None:
    life = Life(seed, merges=merges)
    for _ in range(600):
        asked, found = life.ask()
        of, there = asked.namespace_selector, life.cluster.namespaces
        expected = {name for name, labels in there.items() if of.matches(labels)} | asked.namespaces
        everybody = of.selects_everything or (not merges and of.matches({}))
        for name in (*there, "s1", "s99", "s100"):
            assert found.is_in(name) is (everybody or name in expected)


@pytest.mark.usefixtures("bounds")
@pytest.mark.parametrize("seed", range(4))
def test_a_set_means_what_it_meant_whichever_namespaces_come_and_go(seed: int) -> None:
    life = Life(seed)
    kept: list[tuple[NamespaceSet, set[str]]] = []
    for _ in range(600):
        _, found = life.ask()
        if found.namespaces is not None:
            kept.append((found.namespaces, set(found.namespaces)))
        for one, names in kept[-20:]:
            listed = sorted({*life.cluster.namespaces, *names, "s999"})
            numbers = np.array([one.numbers.get(name, -1) for name in listed], np.intp)
            assert one.holding(numbers).tolist() == [name in names for name in listed]
            assert {name for name in listed if name in one} == names == {*one}
            assert len(one) == len(names)
    assert any(one == other for (one, _), (other, _) in itertools.pairwise(kept))
    for (one, names), (other, others) in itertools.product(kept[-40:], kept):
        assert one != other or (names == others and hash(one) == hash(other))


def namespace_set(*names: str) -> NamespaceSet:
    return NamespaceSet(NamespaceNumbers(names), bits_of(range(len(names))))


def bits_of(numbers: Iterable[int]) -> bytes:
    found = sum(1 << number for number in numbers)
    return found.to_bytes(found.bit_length() // 8 + 1, "little").rstrip(b"\0")


def test_a_term_is_filed_under_the_namespaces_that_it_means() -> None:
    pods = compile_selector(LabelSelector(match_labels={"app": "web"}))
    for selected, also, expected in (
        (namespace_set(), frozenset(("a", "b")), {"a", "b"}),
        (namespace_set("c"), frozenset(("a",)), {"a", "c"}),
        (namespace_set(*map(str, range(100))), frozenset(("a",)), {None}),
        (None, frozenset(), {None}),
    ):
        found = ResolvedPeers(pods, selected, also).index_keys
        assert {namespace for namespace, _, _ in found} == expected
        assert {(key, value) for _, key, value in found} == {("app", "web")}


def ask(known: NamespaceSets, asked: Sequence[PeerSelector], *, merges: bool = False) -> Iterator[ResolvedPeers]:
    selected = known.select(one.namespace_selector for one in asked)
    return (resolve_peers(one, selected, merges=merges) for one in asked)


def test_selectors_are_not_asked_about_each_namespace_and_share_what_they_select() -> None:
    def of(number: int) -> PeerSelector:
        stated = [Requirement("own", "Exists"), Requirement(f"x{number}", "DoesNotExist")]
        return peers(LabelSelector(match_expressions=tuple(stated)))

    def work(count: int, selectors: int) -> int:
        known = namespaces(count, Random(1)).namespace_sets
        list(ask(known, [of(0)]))
        asked = [of(number) for number in range(1, selectors + 1)]
        found: list[ResolvedPeers] = []
        counted = calls(lambda: found.extend(ask(known, asked)))
        assert {len(one.namespaces or ()) for one in found} == {count}
        assert len({id(one.namespaces) for one in found}) == 1
        return counted

    assert work(1000, 100) - work(50, 100) == work(1000, 10) - work(50, 10)


@pytest.mark.parametrize("change", ["removed", "another label"])
def test_selectors_that_select_others_now_look_for_their_labels_together(change: str) -> None:
    def work(count: int, selectors: int) -> int:
        made = namespaces(count, Random(1))
        known = made.namespace_sets
        asked = [
            peers(LabelSelector(match_expressions=(OWN, Requirement(f"x{n}", "DoesNotExist"))))
            for n in range(selectors)
        ]
        before = list(ask(known, asked))
        if change == "removed":
            made.remove_namespace("s7")
        else:
            made.set_namespace(Namespace(metadata=Metadata(name="s7", labels={"own": "o7", "x5": ""})))
        found: list[ResolvedPeers] = []
        counted = calls(lambda: found.extend(ask(known, asked)))
        differ = [
            one is not other and one.namespaces != other.namespaces for one, other in zip(before, found, strict=True)
        ]
        assert sum(differ) == (selectors if change == "removed" else 1)
        return counted

    assert work(500, 1000) - work(50, 1000) == work(500, 100) - work(50, 100)


@pytest.mark.parametrize("others", [0, 3], ids=["one namespace", "a few"])
def test_few_namespaces_among_many_are_found_without_a_look_at_each(others: int) -> None:
    work = []
    for count in (50, 5000):
        numbers = NamespaceNumbers(f"s{number}" for number in range(count))
        one = NamespaceSet(numbers, bits_of(range(40, 41 + others)))
        said = ResolvedPeers(compile_selector(LabelSelector(match_labels={"app": "web"})), one)
        assert {namespace for namespace, _, _ in said.index_keys} == {f"s{number}" for number in range(40, 41 + others)}
        work.append(calls(lambda said=said: said.index_keys))
    assert work[0] == work[1]
