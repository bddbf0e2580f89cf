"""What placed pods state about other pods: each distinct statement once, and found by the pods that it means."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest

from policysched.framework import Cluster
from policysched.model.objects import Affinity, LabelSelector, PodAffinity, Requirement
from policysched.model.selection.pod_affinity import ExistingTerm, TermKind, existing_terms
from policysched.model.selection.selectors import compile_selector
from policysched.state.placed.selector_index import (
    ANYTHING,
    MOST,
    MOST_PER_TERM,
    IndexKey,
    index_keys_met,
    index_keys_of_pod,
    index_keys_of_selector,
)
from tests.build import cluster, node, pod
from tests.plugins.inter_pod_affinity.build import away, term, weighted
from tests.plugins.inter_pod_affinity.world import World


def selecting(*expressions: Requirement, **labels: str) -> LabelSelector:
    return LabelSelector(match_labels=labels, match_expressions=tuple(expressions))


WEB = away(term(selecting(app="web")))
MANY = tuple(f"v{number}" for number in range(MOST + 1))


def listed(made: Cluster, **labels: str) -> list[ExistingTerm]:
    return [statement for _, statement in made.existing_terms.about(pod(labels=labels), {})]


def stating(made: Cluster, **labels: str) -> Collection[int]:
    """The signatures that make the only statement about a pod."""
    [(number, _)] = made.existing_terms.about(pod(labels=labels), {})
    return made.existing_terms.signatures(number)


# Index keys


@pytest.mark.parametrize(
    ("selector", "namespaces", "index_keys"),
    [
        (None, {"a"}, []),
        (selecting(), None, [ANYTHING]),
        (selecting(), {"a"}, [("a", None, None)]),
        (selecting(app="web"), {"a"}, [("a", "app", "web")]),
        (selecting(app="web"), None, [(None, "app", "web")]),
        (selecting(Requirement(key="app", operator="Exists")), {"a"}, [("a", None, None)]),
        (
            selecting(Requirement(key="app", operator="In", values=("x", "y")), tier="back"),
            {"a"},
            [("a", "tier", "back")],
        ),
        (
            selecting(Requirement(key="app", operator="In", values=("x", "y"))),
            {"a"},
            [("a", "app", "x"), ("a", "app", "y")],
        ),
        (selecting(app="web"), {str(number) for number in range(MOST + 1)}, [(None, "app", "web")]),
        (selecting(Requirement(key="app", operator="In", values=MANY)), {"a"}, [("a", None, None)]),
    ],
)
def test_a_selector_is_filed_where_the_pods_it_means_look(
    selector: LabelSelector | None, namespaces: set[str] | None, index_keys: list[IndexKey]
) -> None:
    assert index_keys_of_selector(compile_selector(selector), namespaces) == index_keys


def test_a_pod_looks_under_its_namespace_and_labels_and_under_what_stands_for_any() -> None:
    assert index_keys_of_pod("a", {"app": "web"}) == [
        ("a", None, None),
        ("a", "app", "web"),
        (None, None, None),
        (None, "app", "web"),
    ]


def test_a_pod_of_many_labels_meets_what_one_of_few_does() -> None:
    filed = dict.fromkeys([("a", None, None), ("b", None, None), (None, "app", "web"), ("a", "app", "db"), None, 7])
    for count in (1, 100):
        labels = {f"l{number}": "x" for number in range(count)} | {"app": "web"}
        assert set(index_keys_met("a", labels, filed)) == {("a", None, None), (None, "app", "web")}


@pytest.mark.parametrize("spaces", [1, 2, 4, 5, MOST])
@pytest.mark.parametrize("values", [1, 2, 4, 5, MOST])
def test_a_term_is_filed_under_few_index_keys_that_lead_to_all_it_means(spaces: int, values: int) -> None:
    inside, wanted = [f"n{number}" for number in range(spaces)], [f"v{number}" for number in range(values)]
    stated = away(term(selecting(Requirement("app", "In", tuple(wanted))), "zone", *inside))
    made = cluster(node("n1"), pod("a", on="n1", affinity=stated))
    table = made.existing_terms
    assert len(table._by_index_key) <= MOST_PER_TERM
    for number in range(max(spaces, values)):
        one = pod(namespace=inside[number % spaces], labels={"app": wanted[number % values]})
        assert len(table.about(one, {})) == 1
    assert table.about(pod(namespace="n0", labels={"app": "other"}), {}) == []
    assert table.about(pod(namespace="other", labels={"app": "v0"}), {}) == []
    made.remove_pod("default.a")
    assert not table._by_index_key


# ExistingTerms


def test_a_term_is_kept_once_with_the_signatures_that_state_it() -> None:
    made = cluster(
        node("n1"),
        *(pod(f"p{number}", on="n1", labels={"of": str(number % 2)}, affinity=WEB) for number in range(4)),
    )
    (statement,) = listed(made, app="web")
    assert (statement.sort, statement.term.topology_key) == (TermKind.REPELS, "zone")
    assert len(stating(made, app="web")) == 2
    assert made.existing_terms.next_number == 1
    assert listed(made, app="db") == []


def test_a_statement_goes_with_the_last_pod_that_makes_it_and_may_come_back() -> None:
    made = cluster(node("n1"), pod("a", on="n1", affinity=WEB), pod("b", on="n1", affinity=WEB))
    (statement,) = listed(made, app="web")
    (number,) = made.existing_terms.of_signature(made.pods.by_id["default.a"].signature)
    made.remove_pod("default.a")
    assert listed(made, app="web") == [statement]
    made.remove_pod("default.b")
    assert listed(made, app="web") == []
    assert (made.existing_terms.signatures(number), len(made.existing_terms)) == ((), 0)
    version = made.existing_terms.next_number
    made.set_pod(pod("c", on="n1", affinity=WEB))
    assert listed(made, app="web") == [statement]
    assert made.existing_terms.next_number > version
    assert made.existing_terms.ever


def test_preferences_carry_their_weight_and_repetitions_count() -> None:
    liked = weighted(5, term(selecting()))
    both = Affinity(
        pod_affinity=PodAffinity(preferred=[liked, liked], required=[term(selecting())]),
        pod_anti_affinity=PodAffinity(preferred=[liked]),
    )
    made = cluster(pod("a", on="n1", affinity=both))
    stated = made.existing_terms.of_signature(made.pods.by_id["default.a"].signature)
    about = made.existing_terms.about(pod(), {})
    assert {(one.sort, one.weight): stated[number] for number, one in about} == {
        (TermKind.REQUIRED, 0): 1,
        (TermKind.PREFERRED, 5): 2,
        (TermKind.PREFERRED, -5): 1,
    }


def test_a_sort_with_a_term_that_cannot_be_parsed_states_nothing() -> None:
    bad = term(selecting(Requirement(key="app", operator="Like")))
    mixed = Affinity(
        pod_affinity=PodAffinity(required=[term(selecting())]),
        pod_anti_affinity=PodAffinity(required=[term(selecting()), bad]),
    )
    made = cluster(pod("a", on="n1", affinity=mixed))
    assert [one.sort for one in listed(made)] == [TermKind.REQUIRED]


def test_labels_of_namespaces_are_known_to_be_read() -> None:
    made = cluster(pod("a", on="n1", affinity=away(term(selecting(), of=LabelSelector()))))
    read = [made.existing_terms.read_namespaces]
    made.set_pod(pod("b", on="n1", affinity=away(term(selecting(), of=selecting(team="x")))))
    read.append(made.existing_terms.read_namespaces)
    assert read == [False, True]
    assert len(made.existing_terms.about(pod(), {"team": "x"})) == 2
    assert len(made.existing_terms.about(pod(), {"team": "y"})) == 1


def test_what_is_found_by_index_keys_is_what_looking_at_every_pod_finds() -> None:
    for case in range(300):
        world = World(Random(case))
        world.fill()
        for _ in range(10):
            world.step()
        one = world.pod("p")
        labels = world.namespaces.get(one.metadata.namespace, {})
        table = world.cluster.existing_terms
        every = {
            statement
            for placed in world.cluster.pods.by_id.values()
            for statement in existing_terms(placed.pod)
            if statement.term.peers.matches(one, labels)
        }
        found = [statement for _, statement in table.about(one, labels)]
        assert len(found) == len(set(found))
        assert set(found) == every
