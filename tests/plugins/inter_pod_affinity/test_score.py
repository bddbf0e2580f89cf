"""InterPodAffinity's score: the corner cases of kube-scheduler's own tables, in tables of ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policysched.errors import UsageError
from policysched.framework import SKIP, Code, Status
from policysched.model.objects import Affinity, Node, Pod
from policysched.plugins import plugin_named
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.build import node, pod
from tests.plugins.ask import raw_scores, scored
from tests.plugins.inter_pod_affinity.build import (
    away,
    both,
    dislikes,
    joined,
    label,
    likes,
    near,
    nodes,
    scene,
    team,
    term,
)

S1, S2 = {"security": "S1"}, {"security": "S2"}
IS_S1, IS_S2 = label("security", "S1"), label("security", "S2")
CHINA, INDIA, AZ1, AZ2 = {"region": "china"}, {"region": "india"}, {"az": "az1"}, {"az": "az2"}
TO_S1, TO_S2 = likes(5, term(IS_S1, "region")), likes(6, term(IS_S2, "region"))
FROM_S1, FROM_S2 = dislikes(5, term(IS_S1, "az")), dislikes(5, term(IS_S2, "az"))
MIXED = joined(likes(8, term(IS_S1, "region")), FROM_S2)
HARD = near(
    term(label("security", "S1", "value2"), "region"),
    term(both(label("security"), label("wrong", operator="DoesNotExist")), "region"),
)
TEAM_ONE = term(IS_S1, "region", "two-b", of=team("one"))
THREE = nodes(n1=CHINA, n2=INDIA, n3=AZ1)
SKIPPED: Any = "skipped"


def on(name: str, labels: dict[str, str] | None = None, affinity: Affinity | None = None, **fields: Any) -> Pod:
    made = f"e-{name}-{sorted(labels or {})}-{fields.get('namespace')}-{fields.pop('nth', 0)}"
    return pod(made, on=name, labels=labels or {}, affinity=affinity, **fields)


def scores(incoming: Pod, around: list[Node], placed: list[Pod], plugin: InterPodAffinity | None = None) -> Any:
    """Final scores by node, all feasible, as kube-scheduler would have them."""
    asked, made = plugin or InterPodAffinity(), scene(*around, *placed)
    state: Any = asked.prepare_score(incoming, made)
    if state is SKIP:
        return SKIPPED
    asked.score(state, slice(0, made.nodes.size))
    return SKIPPED if asked.leaves_out(state) else scored(asked, incoming, made)


CASES: dict[str, tuple[Pod, list[Node], list[Pod], Any]] = {
    "nobody prefers anything": (pod(labels=S1), THREE, [on("n1", S1)], SKIPPED),
    "there is no node": (pod(labels=S2, affinity=TO_S1), [], [], SKIPPED),
    "nobody means anybody": (pod(affinity=TO_S1), THREE, [on("n1", S2)], SKIPPED),
    "a pod on a node without the label counts nowhere": (pod(affinity=TO_S1), THREE, [on("n3", S1)], SKIPPED),
    "label and pod must both be there": (
        pod(labels=S1, affinity=TO_S1),
        THREE,
        [on("n1", S1), on("n2", S2), on("n3", S1)],
        [100, 0, 0],
    ),
    "the whole region is near": (
        pod(affinity=TO_S1),
        nodes(n1=CHINA, n2=CHINA | AZ1, n3=INDIA),
        [on("n1", S1)],
        [100, 100, 0],
    ),
    "the region with more pods wins": (
        pod(labels=S1, affinity=TO_S2),
        nodes(n1=CHINA, n2=INDIA, n3=CHINA, n4=CHINA, n5=INDIA),
        [*(on(f"n{number}", S2) for number in range(1, 6)), on("n1", S2, nth=1)],
        [100, 0, 100, 100, 0],
    ),
    "terms that are met partly": (
        pod(
            labels=S1,
            affinity=joined(
                likes(8, term(both(label("security", "S1", operator="NotIn"), IS_S2), "region")),
                likes(2, term(both(label("security"), label("wrong", operator="DoesNotExist")), "region")),
            ),
        ),
        THREE,
        [on("n1", S1), on("n2", S2), on("n3", S1)],
        [20, 100, 0],
    ),
    "placed pods' preference": (pod(labels=S2), THREE, [on("n1", S1, TO_S1), on("n2", S2, TO_S2)], [0, 100, 0]),
    "placed pods' preference by labels of namespaces": (
        pod(namespace="one-a", labels=S1),
        THREE,
        [on("n1", S1, likes(5, TEAM_ONE)), on("n2", S2, TO_S2)],
        [100, 0, 0],
    ),
    "placed pods' dislike by labels of namespaces": (
        pod(namespace="one-a", labels=S1),
        THREE,
        [on("n1", S1, dislikes(5, TEAM_ONE)), on("n2", S2, TO_S2)],
        [0, 100, 100],
    ),
    "placed pods' requirement": (pod(labels=S1), THREE, [on("n1", S1, HARD), on("n2", S2, HARD)], [100, 100, 0]),
    "dislike": (pod(labels=S1, affinity=FROM_S1), nodes(n1=AZ1, n2=CHINA), [on("n1", S1), on("n2", S2)], [0, 100]),
    "dislike of a pod without the label on its node": (
        pod(labels=S1, affinity=FROM_S1),
        nodes(n1=AZ1, n2=CHINA),
        [on("n1", S1), on("n2", S1)],
        [0, 100],
    ),
    "placed pods' dislike": (
        pod(labels=S2),
        nodes(n1=AZ1, n2=AZ2),
        [on("n1", S1, FROM_S2), on("n2", S2, FROM_S1)],
        [0, 100],
    ),
    "like and dislike": (
        pod(labels=S1, affinity=MIXED),
        nodes(n1=CHINA, n2=AZ1),
        [on("n1", S1), on("n2", S1)],
        [100, 0],
    ),
    "like, dislike and both of placed pods": (
        pod(labels=S1, affinity=MIXED),
        nodes(n1=CHINA, n2=AZ1, n3=INDIA, n4=AZ2),
        [on("n1", S1), on("n2", S2), on("n3", affinity=MIXED), on("n4", affinity=FROM_S1)],
        [100, 0, 100, 0],
    ),
    "a domain where all are equal": (
        pod(labels=S1),
        nodes(n1=CHINA, n2=CHINA),
        [on("n1", S1), on("n2", affinity=MIXED)],
        [0, 0],
    ),
    "a like and a dislike of equal weight are still something": (
        pod(affinity=joined(likes(5, term(IS_S1, "region")), dislikes(5, term(IS_S1, "region")))),
        THREE,
        [on("n1", S1)],
        [0, 0, 0],
    ),
    "a weight of 0 is still something": (
        pod(affinity=likes(0, term(IS_S1, "region"))),
        THREE,
        [on("n1", S1)],
        [0, 0, 0],
    ),
    "a negative weight turns a like around": (
        pod(affinity=likes(-3, term(IS_S1, "region"))),
        THREE,
        [on("n1", S1)],
        [0, 100, 100],
    ),
    "the pod's own selector of namespaces": (
        pod(namespace="one-a", affinity=likes(5, TEAM_ONE)),
        nodes(n1=CHINA, n2=INDIA),
        [
            *(on("n1", S1, namespace="one-a", nth=nth) for nth in range(2)),
            on("n1", S1, namespace="two-a"),
            on("n2", S1, namespace="one-b"),
        ],
        [100, 0],
    ),
    "named namespaces beside it": (
        pod(namespace="one-a", affinity=dislikes(5, TEAM_ONE)),
        nodes(n1=CHINA, n2=INDIA),
        [*(on("n1", S1, namespace=name) for name in ("one-a", "two-b")), on("n2", S1, namespace="one-b")],
        [0, 100],
    ),
}
"""The incoming pod, the nodes, the placed pods, and the nodes' final scores in their order."""


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_kube_scheduler(case: str) -> None:
    incoming, around, placed, finals = CASES[case]
    names = [one.metadata.name for one in around]
    expected = SKIPPED if finals is SKIPPED else dict(zip(names, finals, strict=True))
    assert scores(incoming, around, placed) == expected


REGION_OF_TEAMS = near(term(label("service", "S1"), "region", "default", "two-b", of=team("one")))


@pytest.mark.parametrize(
    ("weight", "namespace", "expected"),
    [
        (1, "default", {"n1": 100, "n2": 100, "n3": 0}),
        (0, "default", SKIPPED),
        (1, "two-a", SKIPPED),
        (1, "one-a", {"n1": 100, "n2": 100, "n3": 0}),
        (1, "two-b", {"n1": 100, "n2": 100, "n3": 0}),
    ],
)
def test_what_placed_pods_require_counts_with_the_configured_weight(weight: int, namespace: str, expected: Any) -> None:
    plugin = plugin_named("InterPodAffinity", {"hardPodAffinityWeight": weight})
    assert isinstance(plugin, InterPodAffinity)
    incoming = pod(namespace=namespace, labels={"service": "S1"})
    placed = [on(name, affinity=REGION_OF_TEAMS) for name in ("n1", "n2")]
    assert scores(incoming, THREE, placed, plugin) == expected


def test_the_weights_of_requirements_and_preferences_add_up() -> None:
    made = scene(*THREE, on("n1", affinity=near(term(IS_S1, "region"))), on("n2", affinity=TO_S1))
    raw = raw_scores(InterPodAffinity(40), pod(labels=S1), made)
    assert {name: int(raw[row]) for name, row in made.nodes.row_of.items()} == {"n1": 40, "n2": 5, "n3": 0}


@pytest.mark.parametrize(("affinity", "skips"), [(None, True), (near(term(IS_S1)), True), (TO_S1, False)])
def test_placed_pods_preferences_can_be_ignored_by_pods_without_any(affinity: Affinity | None, skips: bool) -> None:
    plugin = InterPodAffinity(ignore_preferred=True)
    placed = [on("n1", S1, MIXED), on("n2", S2, TO_S2)]
    answer = scores(pod(labels=S2, affinity=affinity), THREE, placed, plugin)
    assert answer == (SKIPPED if skips else {"n1": 83, "n2": 100, "n3": 0})


def test_preferences_that_cannot_be_parsed_fail_where_the_filter_did_not_reject_the_pod() -> None:
    bad = likes(1, term(label("app", operator="Like")))
    answer: Any = InterPodAffinity().prepare_score(pod(affinity=bad), scene(*THREE))
    why = 'failed to parse pod: preferredAffinityTerms: "Like" is not a valid label selector operator'
    assert answer == Status(Code.ERROR, (why,))
    skipping = InterPodAffinity(ignore_preferred=True)
    required = away(term(label("app", operator="Like")))
    assert skipping.prepare_score(pod(affinity=required), scene(*THREE)) is SKIP


@pytest.mark.parametrize(
    ("sums", "feasible", "expected"),
    [
        ([0, 0, 0], [True, True, True], [0, 0, 0]),
        ([-5, -5], [True, True], [0, 0]),
        ([-7, 0, 3], [True, True, True], [0, 70, 100]),
        ([1, 2, 4], [True, True, True], [0, 33, 100]),
        ([0, 29, 57], [True, True, True], [0, 50, 100]),
        ([-100, 2, 4], [False, True, True], [None, 0, 100]),
        ([1, 2, 100], [True, True, False], [0, 100, None]),
        ([1, 2], [False, False], [None, None]),
    ],
)
def test_sums_of_feasible_nodes_are_stretched(
    sums: list[int], feasible: list[bool], expected: list[int | None]
) -> None:
    plugin, made = InterPodAffinity(), scene(*THREE, on("n1", affinity=TO_S1))
    state: Any = plugin.prepare_score(pod(), made)
    found = plugin.normalize(state, np.array(sums, np.int64), np.array(feasible))
    final = [0] * len(sums) if found is None else found.tolist()
    assert [value if holds else None for value, holds in zip(final, feasible, strict=True)] == expected


@pytest.mark.parametrize("weight", [-1, 101, "1", 1.5])
def test_a_weight_out_of_range_is_refused(weight: Any) -> None:
    with pytest.raises(UsageError, match="InterPodAffinity: hardPodAffinityWeight"):
        plugin_named("InterPodAffinity", {"hardPodAffinityWeight": weight})


def test_a_node_that_is_away_is_not_counted_until_it_is_back() -> None:
    plugin, made = InterPodAffinity(), scene(*THREE, on("n1", S1))
    incoming = pod(affinity=likes(1, term(IS_S1, "region")))
    made.remove_node("n1")
    state: Any = plugin.prepare_score(incoming, made)
    assert plugin.leaves_out(state)
    made.set_node(node("n1", labels=CHINA))
    assert scored(plugin, incoming, made) == {"n1": 100, "n2": 0, "n3": 0}
