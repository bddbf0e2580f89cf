"""NodeAffinity: selectors, terms, narrowing, added affinity, scores and hints."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from policysched.framework import SKIP, Action, Change, Code, Narrow, Status, unresolvable
from policysched.model.objects import (
    Affinity,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PreferredSchedulingTerm,
    Requirement,
)
from policysched.model.objects import NodeAffinitySpec as Spec
from policysched.model.selection.node_selectors import NodeSelectorMatcher, required_nodes
from policysched.model.selection.selectors import SelectorError
from policysched.plugins.nodes.node_affinity import NodeAffinity
from policysched.plugins.nodes.node_selection import SelectorTest
from tests.build import cluster, node, pod
from tests.plugins.ask import filtered, hinted, node_change, raw_scores, rejected, scored
from tests.work import calls, lines

UNMATCHED = "node(s) didn't match Pod's node affinity/selector"
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"


def label(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(Requirement(key=key, operator=operator, values=values),))


def named(*names: str, operator: str = "In") -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(Requirement(key="metadata.name", operator=operator, values=names),))


def demands(*terms: NodeSelectorTerm) -> Spec:
    return Spec(required=NodeSelector(node_selector_terms=list(terms)))


def wishes(*weighted: tuple[int, NodeSelectorTerm]) -> Spec:
    return Spec(preferred=[PreferredSchedulingTerm(weight=weight, preference=term) for weight, term in weighted])


def demanding(*terms: NodeSelectorTerm, **selector: str) -> Pod:
    affinity = Affinity(node_affinity=demands(*terms)) if terms else None
    return pod(affinity=affinity, node_selector=selector)


NODES = (
    node("bare"),
    node("a1", labels={"k": "a", "n": "1"}),
    node("b7", labels={"k": "b", "n": "7"}),
    node("c-", labels={"k": "c", "n": "x7"}),
)


@pytest.mark.parametrize(
    ("term", "passing"),
    [
        (label("k", "In", "a"), {"a1"}),
        (label("k", "In", "a", "b", "unseen"), {"a1", "b7"}),
        (label("k", "NotIn", "a"), {"bare", "b7", "c-"}),
        (label("k", "NotIn", "a", "c"), {"bare", "b7"}),
        (label("k", "Exists"), {"a1", "b7", "c-"}),
        (label("k", "DoesNotExist"), {"bare"}),
        (label("n", "Gt", "1"), {"b7"}),
        (label("n", "Gt", "0"), {"a1", "b7"}),
        (label("n", "Gt", "-1"), set()),
        (label("n", "Lt", "7"), {"a1"}),
        (label("n", "Lt", "08"), {"a1", "b7"}),
        (label("absent", "NotIn", "x"), {"bare", "a1", "b7", "c-"}),
        (label("k", "Gt", "one"), set()),
        (label("k", "In"), set()),
        (label("k", "Like", "a"), set()),
        (label("not a key", "Exists"), set()),
        (label("k", "In", "not a value!"), set()),
        (NodeSelectorTerm(), set()),
        (named("a1", operator="NotIn"), {"bare", "b7", "c-"}),
        (named("a1"), {"a1"}),
        (named("gone"), set()),
        (named("a1", "b7"), set()),
        (NodeSelectorTerm(match_fields=(Requirement(key="spec.x", operator="In", values=("y",)),)), set()),
        (
            NodeSelectorTerm(match_fields=(Requirement(key="spec.x", operator="NotIn", values=("y",)),)),
            {"bare", "a1", "b7", "c-"},
        ),
        (
            NodeSelectorTerm(
                match_expressions=(
                    Requirement(key="k", operator="Exists"),
                    Requirement(key="n", operator="In", values=("1", "x7")),
                ),
                match_fields=(Requirement(key="metadata.name", operator="NotIn", values=("c-",)),),
            ),
            {"a1"},
        ),
    ],
)
def test_node_affinity_term_selects(term: NodeSelectorTerm, passing: set[str]) -> None:
    assert rejected(NodeAffinity(), demanding(term), cluster(*NODES)) == {"bare", "a1", "b7", "c-"} - passing


def test_node_affinity_terms_are_alternatives_and_a_broken_one_does_no_harm() -> None:
    incoming = demanding(label("k", "In", "a"), label("k", "Like", "b"), label("n", "In", "x7"))
    assert rejected(NodeAffinity(), incoming, cluster(*NODES)) == {"bare", "b7"}


def test_node_affinity_selector_and_terms_must_both_hold() -> None:
    incoming = demanding(label("n", "Exists"), k="a")
    answer = filtered(NodeAffinity(), incoming, cluster(*NODES))
    assert answer == dict.fromkeys(("bare", "b7", "c-"), unresolvable(UNMATCHED))


def test_node_affinity_without_terms_matches_no_node() -> None:
    incoming = pod(affinity=Affinity(node_affinity=demands()))
    assert rejected(NodeAffinity(), incoming, cluster(*NODES)) == {"bare", "a1", "b7", "c-"}


@pytest.mark.parametrize("incoming", [pod(), pod(affinity=Affinity()), pod(affinity=Affinity(node_affinity=Spec()))])
def test_node_affinity_skips_pods_without_demands(incoming: Pod) -> None:
    assert filtered(NodeAffinity(), incoming, cluster(*NODES)) is SKIP


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ([named("a")], {"a"}),
        ([named("a"), named("b")], {"a", "b"}),
        ([named("a", "b")], {"a", "b"}),
        ([named("a"), label("k", "Exists")], None),
        ([named("a", operator="NotIn")], None),
        ([NodeSelectorTerm(match_fields=(*named("a", "b").match_fields, *named("b", "c").match_fields))], {"b"}),
        ([NodeSelectorTerm()], None),
    ],
)
def test_node_affinity_narrows_where_every_term_names_nodes(
    terms: Sequence[NodeSelectorTerm], names: set[str] | None
) -> None:
    prepared: Any = NodeAffinity().prepare_filter(demanding(*terms), cluster(*NODES))
    assert (set(prepared.nodes) if isinstance(prepared, Narrow) else None) == names


def test_node_affinity_conflicting_names_reject_the_pod() -> None:
    term = NodeSelectorTerm(match_fields=(*named("a").match_fields, *named("b").match_fields))
    assert filtered(NodeAffinity(), demanding(term), cluster(*NODES)) == unresolvable("pod affinity terms conflict")
    both = filtered(NodeAffinity(), demanding(term, named("a1")), cluster(*NODES))
    assert isinstance(both, dict)


def test_node_affinity_added_demands_come_first() -> None:
    plugin = NodeAffinity(demands(label("k", "In", "a", "b")))
    answer = filtered(plugin, demanding(label("n", "In", "7", "x7")), cluster(*NODES))
    assert answer == {
        "bare": unresolvable(ENFORCED),
        "c-": unresolvable(ENFORCED),
        "a1": unresolvable(UNMATCHED),
    }
    assert rejected(plugin, pod(), cluster(*NODES)) == {"bare", "c-"}


def test_node_affinity_added_affinity_must_be_valid() -> None:
    with pytest.raises(SelectorError):
        NodeAffinity(demands(label("k", "Like")))
    with pytest.raises(SelectorError):
        NodeAffinity(wishes((1, label("k", "Gt", "x"))))


@pytest.mark.parametrize(
    ("own", "added", "scores"),
    [
        (wishes((2, label("k", "In", "a"))), None, {"bare": 0, "a1": 100, "b7": 0, "c-": 0}),
        (
            wishes((3, label("k", "Exists")), (1, label("n", "In", "7"))),
            None,
            {"bare": 0, "a1": 75, "b7": 100, "c-": 75},
        ),
        (wishes((5, named("bare"))), wishes((3, label("k", "In", "b"))), {"bare": 100, "a1": 0, "b7": 60, "c-": 0}),
        (None, wishes((3, label("k", "In", "b"))), {"bare": 0, "a1": 0, "b7": 100, "c-": 0}),
        (wishes((0, label("k", "Like")), (1, NodeSelectorTerm())), None, dict.fromkeys(("bare", "a1", "b7", "c-"), 0)),
    ],
)
def test_node_affinity_scores_add_up_wishes(own: Spec | None, added: Spec | None, scores: dict[str, int]) -> None:
    incoming = pod(affinity=Affinity(node_affinity=own))
    assert scored(NodeAffinity(added), incoming, cluster(*NODES)) == scores


def test_node_affinity_does_not_score_pods_without_wishes() -> None:
    assert scored(NodeAffinity(), demanding(label("k", "Exists")), cluster(*NODES)) is SKIP


def test_node_affinity_broken_wish_is_an_error() -> None:
    incoming = pod(affinity=Affinity(node_affinity=wishes((1, label("k", "Like")))))
    answer: Any = NodeAffinity().prepare_score(incoming, cluster(*NODES))
    assert answer == Status(Code.ERROR, ('"Like" is not a valid selector operator',))


@pytest.mark.parametrize(
    ("change", "helps"),
    [
        (node_change(None, node(labels={"k": "a"})), True),
        (node_change(None, node(labels={"k": "b"})), False),
        (node_change(node(), node(labels={"k": "a"}), Action.UPDATE_NODE_LABEL), True),
        (node_change(node(labels={"k": "a"}), node(labels={"k": "a", "x": "y"}), Action.UPDATE_NODE_LABEL), False),
        (node_change(node(labels={"k": "a"}), node(), Action.UPDATE_NODE_LABEL), False),
        (node_change(node(), node(labels={"k": "a"}), Action.UPDATE_NODE_TAINT), False),
    ],
)
def test_node_affinity_waits_for_a_node_that_comes_to_match(change: Change, helps: bool) -> None:
    assert hinted(NodeAffinity(), demanding(k="a"), change) is helps


def test_node_affinity_does_not_wait_for_nodes_that_are_not_enforced() -> None:
    plugin = NodeAffinity(demands(label("pool", "In", "x")))
    assert not hinted(plugin, demanding(k="a"), node_change(None, node(labels={"k": "a"})))
    assert hinted(plugin, demanding(k="a"), node_change(None, node(labels={"k": "a", "pool": "x"})))


def test_node_affinity_waits_for_a_node_that_joins_the_enforced_nodes() -> None:
    plugin = NodeAffinity(demands(label("pool", "In", "x")))
    joined = node(labels={"pool": "x"})
    assert hinted(plugin, pod(), node_change(node(), joined, Action.UPDATE_NODE_LABEL))
    assert not hinted(
        plugin, pod(), node_change(joined, node(labels={"pool": "x", "a": "b"}), Action.UPDATE_NODE_LABEL)
    )


def test_node_affinity_that_excludes_every_node_is_known() -> None:
    plugin = NodeAffinity(demands(label("k", "In", "absent")))
    assert plugin.excludes_all(NODES)
    assert not NodeAffinity(demands(label("k", "In", "b"))).excludes_all(NODES)
    assert not NodeAffinity().excludes_all(NODES)


def test_selector_test_knows_the_selector_that_selects_nothing() -> None:
    state = cluster(*NODES)
    assert not SelectorTest(NodeSelectorMatcher(terms=()), state.nodes)(slice(0, 4)).any()
    assert SelectorTest(NodeSelectorMatcher(), state.nodes)(slice(0, 4)).all()


def random_term(random: random.Random) -> NodeSelectorTerm:
    operator = random.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    values = [str(random.randrange(12)) for _ in range(random.choice((1, 2, 3, 20)))]
    count = {"Exists": 0, "DoesNotExist": 0, "Gt": 1, "Lt": 1}.get(operator, len(values))
    term = label(random.choice(("x", "y", "z", "absent")), operator, *values[:count])
    return NodeSelectorTerm(
        match_expressions=(*term.match_expressions, *label("x", "NotIn", values[0]).match_expressions)
    )


def random_labels(random: random.Random) -> dict[str, str]:
    keys = [key for key in ("x", "y", "z", "absent") if random.random() < 0.1]
    return {key: str(random.randrange(9)) for key in keys}


def liked(terms: Sequence[NodeSelectorTerm], one: Node) -> int:
    """What terms weigh on a node, the first of them 3, the next 4."""
    matchers = (required_nodes(demanding(term)) for term in terms)
    matching = (matcher.matches(one.metadata.name, one.metadata.labels) for matcher in matchers)
    return sum(3 + place for place, matches in enumerate(matching) if matches)


def test_node_affinity_equals_matching_node_by_node() -> None:
    draw = random.Random(7)
    state = cluster(
        *(
            node(f"n{i}", labels={key: str(draw.randrange(8)) for key in "xyz" if draw.random() < 0.7})
            for i in range(100)
        )
    )
    subset = np.array(sorted(draw.sample(range(100), 20)), np.intp)
    for _ in range(60):
        terms = [random_term(draw) for _ in range(draw.choice((1, 2, 3, 30)))]
        incoming = demanding(*terms, **random_labels(draw))
        matcher = required_nodes(incoming)
        matching = [
            one is not None and matcher.matches(one.metadata.name, one.metadata.labels) for one in state.nodes.nodes
        ]
        prepared: Any = NodeAffinity().prepare_filter(incoming, state)
        assert (NodeAffinity().filter(prepared, slice(0, 100)) == 0).tolist() == matching
        assert (NodeAffinity().filter(prepared, subset) == 0).tolist() == [matching[row] for row in subset]
        liking = pod(affinity=Affinity(node_affinity=wishes(*((3 + i, term) for i, term in enumerate(terms)))))
        sums = [liked(terms, one) for one in state.nodes.nodes if one is not None]
        assert raw_scores(NodeAffinity(), liking, state).tolist() == sums


def host_term(draw: random.Random) -> NodeSelectorTerm:
    """A term about single nodes and what many have in common."""
    hosts = [f"n{draw.randrange(60)}" for _ in range(draw.choice((1, 1, 2, 12)))]
    about = [label("host", draw.choice(("In", "In", "NotIn")), *hosts)] if draw.random() < 0.8 else []
    about += [label("x", draw.choice(("In", "NotIn")), *(str(draw.randrange(3)) for _ in range(2)))] * draw.randrange(2)
    fields = named(hosts[0], operator=draw.choice(("In", "NotIn"))).match_fields if draw.random() < 0.3 else []
    return NodeSelectorTerm(match_expressions=tuple(one for term in about for one in term.match_expressions),
                            match_fields=tuple(fields))  # fmt: skip


def test_node_affinity_about_single_nodes_equals_matching_node_by_node() -> None:
    draw = random.Random(3)
    state = cluster(*(node(f"n{i}", labels={"host": f"n{i}", "x": str(draw.randrange(4))}) for i in range(50)))
    subset = np.array(sorted(draw.sample(range(50), 20)), np.intp)
    for _ in range(300):
        incoming = demanding(*(host_term(draw) for _ in range(draw.choice((1, 2, 5)))))
        matcher = required_nodes(incoming)
        prepared: Any = alone().prepare_filter(incoming, state)
        matching = [one is not None and matcher.matches(one.metadata.name, one.metadata.labels)
                    for one in state.nodes.nodes]  # fmt: skip
        assert (NodeAffinity().filter(prepared, slice(0, 50)) == 0).tolist() == matching
        assert (NodeAffinity().filter(prepared, subset) == 0).tolist() == [matching[row] for row in subset]


def alone() -> NodeAffinity:
    """The plugin without its PreFilter, which neither skips pods nor narrows."""
    made = NodeAffinity()
    made.pre_filters = False
    return made


def in_all(*terms: NodeSelectorTerm) -> NodeSelectorTerm:
    """One term of the requirements of several."""
    return NodeSelectorTerm(match_expressions=tuple(one for term in terms for one in term.match_expressions))


@pytest.mark.parametrize(
    ("term", "most"),
    [
        (lambda number: label("host", "In", f"n{number % 50}", f"m{number}"), 8),
        (lambda number: named(f"m{number}"), 8),
        (lambda _: in_all(label("x", "In", "1"), label("x", "NotIn", "1")), 1),
        (lambda number: in_all(label("host", "In", f"n{number % 50}", f"m{number}"), label("x", "In", "9")), 60),
    ],
    ids=["values of one label", "names", "equal terms", "a few nodes and more"],
)
def test_many_terms_take_few_operations_on_all_nodes(term: Callable[[int], NodeSelectorTerm], most: int) -> None:
    state = cluster(*(node(f"n{i}", labels={"host": f"n{i}", "x": str(i % 4)}) for i in range(50)))

    def work(count: int) -> tuple[int, int]:
        prepared: Any = alone().prepare_filter(demanding(*map(term, range(count))), state)
        plugin = NodeAffinity()
        rows = slice(0, state.nodes.size)
        run = lines(lambda: plugin.filter(prepared, rows))
        return run, calls(lambda: plugin.filter(prepared, rows), "c_call")

    (few_lines, few_calls), (many_lines, many_calls) = work(100), work(1100)
    assert many_lines - few_lines <= most * 1000
    assert many_calls - few_calls <= most * 1000


def test_node_affinity_prepared_once_follows_labels_that_come_and_go() -> None:
    draw = random.Random(11)
    state = cluster(*(node(f"n{i}") for i in range(6)))
    pods = [demanding(random_term(draw), random_term(draw), **random_labels(draw)) for _ in range(40)]
    pods += [demanding(named("n1"), named("n7", operator="NotIn"))]
    prepared: list[Any] = [alone().prepare_filter(one, state) for one in pods]
    for _ in range(60):
        labels = {key: str(draw.randrange(8)) for key in ("x", "y", "z", "absent") if draw.random() < 0.2}
        state.set_node(node(f"n{draw.randrange(8)}", labels=labels))
        for one, demands in zip(pods, prepared, strict=True):
            matcher = required_nodes(one)
            there = [found for found in state.nodes.nodes if found is not None]
            matching = [matcher.matches(found.metadata.name, found.metadata.labels) for found in there]
            assert (NodeAffinity().filter(demands, slice(0, state.nodes.size)) == 0).tolist() == matching


def test_what_pods_demand_is_not_interned() -> None:
    state = cluster(*NODES)
    incoming = demanding(label("k", "In", "nowhere", "never"), named("unknown"), unheard="of", k="none")
    rejected(NodeAffinity(), incoming, state)
    assert {state.strings.find(text) for text in ("nowhere", "never", "unknown", "of", "none")} == {-1}
