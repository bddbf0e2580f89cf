"""Selectors asked about all signatures at once say what they say of each; counters of many signatures count right."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import Cluster
from policysched.model.objects import LabelSelector, Pod, Requirement
from policysched.model.selection.selectors import LabelMatcher, compile_selector
from policysched.plugins.inter_pod_affinity.terms import (
    CountedTerm,
    ResolvedPeers,
    WeighedByTerms,
    count_matching,
    count_terms,
)
from policysched.plugins.pod_topology_spread.constraints import Constraint
from policysched.state.namespace_sets import NamespaceNumbers, NamespaceSet
from policysched.state.placed import counters, signature_labels
from policysched.state.placed.counter import PodCounter
from policysched.state.placed.existing_terms import ExistingTerms
from policysched.state.placed.selector_index import ANYTHING
from policysched.state.placed.signature_labels import SignatureLabels
from policysched.state.tables import label_columns, sparse
from policysched.state.tables.label_columns import LabelColumn
from tests.build import cluster, node, pod
from tests.work import calls, lines

KEYS, VALUES, SPACES = ("app", "tier", "own", "rare"), ("a", "b", "c", ""), ("default", "other", "third")
NUMBERS = NamespaceNumbers(SPACES)


def selector(rng: Random) -> LabelMatcher:
    def requirement() -> Requirement:
        operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        values = tuple(rng.sample((*VALUES, "unknown"), rng.randint(1, 3))) if operator.endswith("In") else ()
        return Requirement(rng.choice((*KEYS, "nobody")), operator, values)

    return compile_selector(LabelSelector(match_expressions=tuple(requirement() for _ in range(rng.randint(1, 3)))))


class Life:
    """Pods that come, change and go, with labels that many share and some that none does."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.cluster: Cluster = cluster(*(node(f"n{number}", labels={"zone": f"z{number % 2}"}) for number in range(4)))
        self.pods: dict[str, Pod] = {}

    def step(self) -> None:
        rng = self.rng
        name = f"p{rng.randrange(60)}"
        if name in self.pods and rng.random() < 0.4:
            self.cluster.remove_pod(f"{self.pods.pop(name).metadata.namespace}.{name}")
            return
        known = self.pods.get(name)
        space = known.metadata.namespace if known else rng.choice(SPACES)
        labels = {key: rng.choice(VALUES) for key in rng.sample(KEYS, rng.randint(0, 3))}
        if rng.random() < 0.5:
            labels["own"] = name
        made = pod(name, namespace=space, on=known.spec.node_name if known else f"n{rng.randrange(4)}", labels=labels)
        if rng.random() < 0.1:
            made = leaving(made)
        self.pods[name] = made
        self.cluster.set_pod(made)

    def counted(self, weigh: Mapping[str, int]) -> list[int]:
        """Sum up what pods weigh by name, by row."""
        found = [0] * 4
        for name, one in self.pods.items():
            found[self.cluster.nodes.row_of[one.spec.node_name]] += weigh[name]
        return found


def leaving(one: Pod) -> Pod:
    return replace(one, metadata=replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


@pytest.fixture(params=[False, True], ids=["usual", "dense"])
def dense(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Have counters be dense from a few signatures on, one more with each, and hold a column or none."""
    if request.param:
        monkeypatch.setattr("policysched.state.placed.counter.LEAST_DENSE", 2)
        monkeypatch.setattr(counters, "MOST_TURNING", 1)
        monkeypatch.setattr(signature_labels, "MOST_HELD", 1)
        monkeypatch.setattr(sparse, "SPARE", 1)
    return bool(request.param)


@pytest.mark.parametrize("seed", range(10))
def test_counters_count_what_their_selectors_select(seed: int, dense: bool) -> None:
    life = Life(seed)
    rng, around = life.rng, life.cluster
    held: list[tuple[PodCounter, object]] = []
    was_dense = 0
    for step in range(400):
        life.step()
        if step % 8 == 0:
            held = [*held[-12:], make(life, rng, around)]
        if step % 5:
            continue
        for counter, weigh in held:
            weights = {name: weigh(one) for name, one in life.pods.items()}  # type: ignore[operator]
            assert counter.counts[:4].tolist() == life.counted(weights)
            placed = life.cluster.pods.by_id.values()
            assert all(counter.weight_of(one) == weights[one.pod.metadata.name] for one in placed)
            was_dense += counter.is_dense
    assert bool(was_dense) is dense


def spaces(*names: str) -> NamespaceSet:
    return NamespaceSet(NUMBERS, bytes([sum(1 << NUMBERS[name] for name in names)]))


def make(life: Life, rng: Random, around: Cluster) -> tuple[PodCounter, object]:
    """Make a counter of some kind, with what a pod weighs in it."""
    namespaces = rng.choice((None, spaces(*rng.sample(SPACES, rng.randint(1, 2)))))
    kind = rng.randrange(3)
    if kind == 0:
        space, chosen = rng.choice(SPACES), selector(rng)
        counter = Constraint(1, "zone", chosen, 1, honors_affinity=True, honors_taints=True).counter(
            space, life.cluster
        )

        def of_constraint(one: Pod) -> int:
            metadata = one.metadata
            stays = metadata.deletion_timestamp is None and not chosen.selects_nothing
            return int(stays and metadata.namespace == space and chosen.matches(metadata.labels))

        return counter, of_constraint
    if kind == 1:
        wanted = [ResolvedPeers(selector(rng), namespaces) for _ in range(rng.randint(1, 3))]
        return count_matching(wanted, around.counters), lambda one: int(all(peers.matches(one) for peers in wanted))
    terms = [
        CountedTerm("zone", rng.randint(1, 100), ResolvedPeers(selector(rng), rng.choice((namespaces, None))))
        for _ in range(12)
    ]
    ((_, part),) = count_terms(terms, around)
    return part.counter, lambda one: sum(term.weight for term in terms if term.peers.matches(one))


def test_terms_of_any_weight_are_counted(dense: bool) -> None:
    del dense
    made = cluster(node("n1", labels={"zone": "z"}), *(pod(f"p{number}", on="n1") for number in range(3)))
    terms = [CountedTerm("zone", 10**20, ResolvedPeers(compile_selector(LabelSelector()), None)) for _ in range(12)]
    ((_, part),) = count_terms(terms, made)
    assert part.counter.counts[0] == 36 * 10**20


def crowd(count: int) -> Cluster:
    """A cluster of pods that share no label value."""
    return cluster(
        node("n1", labels={"zone": "z"}),
        *(pod(f"p{number}", on="n1", labels={"app": "db", "own": f"o{number}"}) for number in range(count)),
    )


def excluding(count: int) -> Sequence[CountedTerm]:
    def of(number: int) -> LabelMatcher:
        stated = (Requirement("own", "NotIn", (f"x{number}",)), Requirement("app", "NotIn", (f"y{number}",)))
        return compile_selector(LabelSelector(match_expressions=stated[: 1 + number % 2]))

    return [CountedTerm("zone", 1 + number, ResolvedPeers(of(number), None)) for number in range(count)]


def test_many_terms_are_not_asked_about_each_signature() -> None:
    work = []
    for signatures, terms in ((100, 20), (100, 200), (1000, 20), (1000, 200)):
        around = crowd(signatures)
        stated, held = excluding(terms), count_terms(excluding(9), around)
        counting = partial(count_terms, stated, around)
        work.append(calls(lambda held=held, counting=counting: held.append(counting())))
    few, many_terms, many_signatures, both = work
    assert many_signatures < few + 200
    assert both < many_terms + 200


def test_a_dense_counter_is_dropped_without_a_look_at_its_signatures() -> None:
    work = []
    for count in (300, 1500):
        made, matcher = crowd(count), excluding(1)[0].peers.pods
        counter = Constraint(1, "zone", matcher, 1, honors_affinity=True, honors_taints=True).counter("default", made)
        assert counter.is_dense
        assert not counter.weights
        held = [counter]
        del counter
        gc.collect()
        work.append(calls(held.clear))
        assert not len(made.counters)
    assert work[1] < work[0] + 20


def test_a_counter_becomes_dense_as_signatures_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.state.placed.counter.LEAST_DENSE", 16)
    made = crowd(4)
    (stated,) = excluding(1)
    counter = count_matching([stated.peers], made.counters)
    for number in range(40):
        assert counter.is_dense is (number + 4 > 15)
        made.set_pod(pod(f"q{number}", on="n1", labels={"own": f"q{number}"}))
        assert counter.counts[0] == number + 5
    for number in range(40):
        made.remove_pod(f"default.q{number}")
    assert counter.counts[0] == 4


def test_few_counters_become_dense_with_one_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.state.placed.counter.LEAST_DENSE", 16)
    monkeypatch.setattr(counters, "MOST_TURNING", 3)
    made = crowd(15)
    held = [count_matching([one.peers], made.counters) for one in excluding(10)]
    for number in range(5):
        made.set_pod(pod(f"q{number}", on="n1", labels={"own": f"q{number}"}))
        assert sum(counter.is_dense for counter in held) == min(3 * (number + 1), 10)
        assert {counter.counts.item(0) for counter in held} == {16 + number}
    for number in range(5):
        made.remove_pod(f"default.q{number}")
    assert {counter.counts.item(0) for counter in held} == {15}


def test_sets_of_namespaces_are_asked_without_a_look_at_each_namespace_of_placed_pods() -> None:
    work = []
    for count in (20, 400):
        names = [f"s{number}" for number in range(count)]
        pods = (pod(f"p-{name}", on="n1", namespace=name, labels={"app": name}) for name in names)
        around = cluster(node("n1", labels={"zone": "z"}), *pods)
        numbers = NamespaceNumbers(names)
        everything = compile_selector(LabelSelector())
        sets = [NamespaceSet(numbers, bytes([1 << number % 8, number])) for number in range(200)]
        terms = [CountedTerm("zone", 1, ResolvedPeers(everything, one)) for one in sets]
        work.append(calls(lambda around=around, terms=terms: count_terms(terms, around)))
    assert work[1] < work[0] + 10 * 380


def test_labels_that_nobody_has_take_no_column() -> None:
    made = crowd(5)
    long = compile_selector(
        LabelSelector(match_expressions=tuple(Requirement(f"k{number}", "DoesNotExist") for number in range(100)))
    )
    counter = count_matching([ResolvedPeers(long, None)], made.counters)
    assert counter.counts[0] == 5
    held = made.counters._labels._held
    assert (len(held), len(set(held.values())), len(counter.reads)) == (100, 1, 1)
    made.set_pod(pod("new", on="n1", labels={"k7": ""}))
    assert counter.counts[0] == 5
    assert count_matching([ResolvedPeers(long, spaces("default"))], made.counters).counts[0] == 5
    del counter
    assert not len(held)


def test_a_counter_that_looked_at_many_columns_holds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signature_labels, "MOST_HELD", 1)
    made = crowd(5)
    one, two = (count_matching([stated.peers], made.counters) for stated in excluding(2))
    assert (len(one.reads), len(two.reads)) == (1, 0)
    assert {*made.counters._labels._held} == {"own"}


def test_many_labels_of_selectors_are_looked_for_in_one_go() -> None:
    work = []
    for count in (200, 2000):
        around = crowd(count)
        terms = [
            CountedTerm(
                "zone", 1, ResolvedPeers(compile_selector(LabelSelector(match_expressions=tuple(stated))), None)
            )
            for number in range(20)
            for stated in [[Requirement(f"k{number}-{one}", "DoesNotExist") for one in range(12)]]
        ]
        work.append(calls(lambda around=around, terms=terms: count_terms(terms, around)))
    assert work[1] < work[0] + 3 * 1800


def test_columns_forget_values_that_nobody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "SPARE", 4)
    column = LabelColumn()
    for number in range(1000):
        column.put(number, f"v{number}")
        if number >= 3:
            column.drop(number - 3)
        assert len(column.numbers) <= 2 * 3 + 4 + 1
    values = {number: value for value, number in column.numbers.items()}
    there = zip(column.objects.tolist(), column.codes.tolist(), strict=True)
    assert {signature: values[code] for signature, code in there} == {n: f"v{n}" for n in (997, 998, 999)}


def test_a_label_has_a_column_as_long_as_a_counter_was_weighed_by_it() -> None:
    made = crowd(5)
    labels, around = made.counters._labels, made
    first, second = (count_matching([one.peers], around.counters) for one in excluding(2))
    assert {*labels._held} == {"own", "app"}
    assert first.nbytes > 0
    del second
    assert {*labels._held} == {"own"}
    del first
    assert not len(labels._held)
    assert not labels._prepared


def test_pods_that_could_not_be_entered_leave_free_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    made = crowd(label_columns.FIRST_SIZE)

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(ExistingTerms, "appear", fails)
        with pytest.raises(ZeroDivisionError):
            made.set_pod(pod("bad", on="n1", labels={"own": "bad"}))
    assert made.signatures.present[-1] is None
    (stated,) = excluding(1)
    assert count_matching([stated.peers], made.counters).counts[0] == label_columns.FIRST_SIZE


def test_weighed_by_terms_weighs_all_as_each() -> None:
    made, rng = crowd(50), Random(3)
    weigh = WeighedByTerms((ResolvedPeers(selector(rng), None), rng.randint(-9, 9)) for _ in range(40))
    labels = SignatureLabels(made.signatures.present)
    for signature, placed in enumerate(made.signatures.present):
        assert placed is not None
        labels.appear(signature, placed)
    expected = [weigh(placed) for placed in made.signatures.present if placed is not None]
    assert np.array_equal(weigh.all(labels), expected)


def test_terms_that_name_many_namespaces_each_are_filed_by_their_labels_alone() -> None:
    numbers = NamespaceNumbers(f"s{number}" for number in range(60))
    everywhere = NamespaceSet(numbers, bytes([255] * 7 + [15]))
    selectors = [compile_selector(LabelSelector(match_labels={"own": f"o{number}"})) for number in range(100)]
    terms = [CountedTerm("zone", 1, ResolvedPeers(one, everywhere)) for one in selectors]
    made = crowd(5)
    ((_, _part),) = count_terms(terms, made)  # the counter lives as long as its part
    assert set(made.counters._by_facet) == {(None, "own", f"o{number}") for number in range(100)}
    few = WeighedByTerms([(ResolvedPeers(selectors[0], everywhere), 1)])
    assert len(few.index_keys) == 60


def test_index_keys_of_many_terms_are_named_until_they_are_many() -> None:
    spaces = frozenset(f"s{number}" for number in range(8))
    work = []
    for count in (30, 240):
        wanted = [tuple(f"{number}-{value}" for value in range(8)) for number in range(count)]
        selectors = [
            compile_selector(LabelSelector(match_expressions=(Requirement("own", "In", one),))) for one in wanted
        ]
        terms = [(ResolvedPeers(one, NamespaceSet(NamespaceNumbers(()), b""), spaces), 1) for one in selectors]
        made: list[WeighedByTerms] = []
        work.append(lines(lambda terms=terms, made=made: made.append(WeighedByTerms(terms))))
        assert made[0].index_keys == (ANYTHING,)
    assert work[1] - work[0] < 40 * (240 - 30)
