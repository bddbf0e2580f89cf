"""InterPodAffinity's filter: the corner cases of kube-scheduler's own tables, in tables of ours."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from policysched.framework import Nothing, Status, unresolvable, unschedulable
from policysched.model.objects import Node, Pod
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.build import node, pod
from tests.plugins.ask import filtered
from tests.plugins.inter_pod_affinity.build import away, both, joined, label, near, scene, team, term

NEAR = unresolvable("node(s) didn't match pod affinity rules")
AWAY = unschedulable("node(s) didn't match pod anti-affinity rules")
REPELLED = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
SCAN, S1 = {"service": "scan"}, {"security": "S1"}
SERVICE, SECURITY = label("service", "scan", "other"), label("security")
ONE = node("n1", labels={"region": "r1", "zone": "z1"})


def verdicts(incoming: Pod, objects: Sequence[Node | Pod]) -> dict[str, Status]:
    answer = filtered(InterPodAffinity(), incoming, scene(*objects))
    assert not isinstance(answer, Status), answer
    return {} if isinstance(answer, Nothing) else answer


def scan(**fields: object) -> Pod:
    return pod("e", on="n1", **({"labels": SCAN} | fields))  # type: ignore[arg-type]


def terminating(one: Pod) -> Pod:
    return replace(one, metadata=replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


ONE_NODE: dict[str, tuple[Pod, list[Pod], Status | None]] = {
    "a placed pod meets the affinity": (pod(labels=S1, affinity=near(term(SERVICE, "region"))), [scan()], None),
    "one that is not In meets it too": (
        pod(affinity=near(term(label("service", "x", operator="NotIn"), "region"))),
        [scan()],
        None,
    ),
    "another namespace does not": (
        pod(affinity=near(term(SERVICE, "region", "elsewhere"))),
        [scan(namespace="ns")],
        NEAR,
    ),
    "no namespace given means the pod's own": (pod(affinity=near(term(SERVICE))), [scan(namespace="ns")], NEAR),
    "another value does not": (pod(affinity=near(term(label("service", "x"), "region"))), [scan()], NEAR),
    "no topology key meets nothing": (pod(labels=SCAN, affinity=near(term(SERVICE, ""))), [scan()], NEAR),
    "expressions are joined by and": (
        pod(affinity=near(term(both(label("service"), label("wrong", operator="DoesNotExist")), "region"))),
        [scan()],
        None,
    ),
    "of two terms both must be met": (
        pod(affinity=near(term(label("service"), "region"), term(label("service", "x"), "region"))),
        [scan()],
        NEAR,
    ),
    "affinity and anti-affinity are both met": (
        pod(affinity=joined(near(term(SERVICE, "region")), away(term(label("service", "x"))))),
        [scan()],
        None,
    ),
    "affinity is met, anti-affinity is not": (
        pod(affinity=joined(near(term(SERVICE, "region")), away(term(SERVICE)))),
        [scan()],
        AWAY,
    ),
    "neither is met: affinity is named": (
        pod(affinity=joined(near(term(label("service", "x"), "region")), away(term(SERVICE)))),
        [scan()],
        NEAR,
    ),
    "the placed pod's anti-affinity is about another label": (
        pod(labels=S1, affinity=near(term(SERVICE, "region"))),
        [scan(affinity=away(term(SERVICE)))],
        None,
    ),
    "the placed pod's anti-affinity is in the way": (
        pod(labels=SCAN, affinity=near(term(SERVICE, "region"))),
        [scan(affinity=away(term(SERVICE)))],
        REPELLED,
    ),
    "it is in the way of a pod without terms": (pod(labels=SCAN), [scan(affinity=away(term(SERVICE)))], REPELLED),
    "anti-affinity of both sides: the pod's own is named": (
        pod(labels=SCAN, affinity=away(term(label("service")), term(SECURITY))),
        [scan(labels=S1, affinity=away(term(label("service"))))],
        AWAY,
    ),
    "anti-affinity that only one side is about, the pod's": (
        pod(labels=SCAN, affinity=away(term(label("service")), term(SECURITY))),
        [scan(labels=S1, affinity=away(term(SECURITY)))],
        AWAY,
    ),
    "anti-affinity that only one side is about, the placed one's": (
        pod(labels=S1, affinity=away(term(SECURITY))),
        [scan(affinity=away(term(label("service")), term(SECURITY)))],
        REPELLED,
    ),
    "one of two terms of anti-affinity is enough": (
        pod(labels={"a": "", "c": ""}, affinity=away(term(label("a")), term(label("b")))),
        [scan(labels={"b": "", "c": ""}, affinity=away(term(label("a")), term(label("b"))))],
        AWAY,
    ),
    "and so it is where the other one of the two is met": (
        pod(labels={"b": "", "c": ""}, affinity=away(term(label("a")), term(label("b")))),
        [scan(labels={"a": "", "c": ""}, affinity=away(term(label("a")), term(label("b"))))],
        AWAY,
    ),
    "affinity that leaves out the pod's own like": (
        pod(labels=SCAN, affinity=near(term(label("service", "scan", operator="NotIn"), "region"))),
        [scan()],
        NEAR,
    ),
    "the placed pod's anti-affinity leaves out the pod's like": (
        pod(labels=SCAN),
        [scan(affinity=away(term(label("service", "scan", operator="NotIn"))))],
        None,
    ),
    "anti-affinity without the label on the node": (
        pod(affinity=away(term(SERVICE, "rack"))),
        [scan(affinity=away(term(None, "rack")))],
        None,
    ),
    "a selector of namespaces finds the placed pod": (
        pod(affinity=near(term(SERVICE, "region", of=team("one")))),
        [scan(namespace="one-a")],
        None,
    ),
    "it finds none in the pod's own namespace": (
        pod(affinity=near(term(SERVICE, "region", of=team("one")))),
        [scan()],
        NEAR,
    ),
    "it finds none in another team's": (
        pod(affinity=near(term(SERVICE, "region", of=team("one")))),
        [scan(namespace="two-a")],
        NEAR,
    ),
    "named namespaces count beside it": (
        pod(affinity=near(term(SERVICE, "region", "two-b", of=team("one")))),
        [scan(namespace="two-b")],
        None,
    ),
    "anti-affinity with a selector of namespaces": (
        pod(namespace="one-a", affinity=away(term(SERVICE, of=team("one")))),
        [scan(namespace="one-b")],
        AWAY,
    ),
    "anti-affinity with an empty one means all namespaces": (
        pod(namespace="one-a", affinity=away(term(SERVICE, of=both()))),
        [scan(namespace="nowhere")],
        AWAY,
    ),
    "anti-affinity with one that fits no namespace": (
        pod(namespace="one-a", affinity=away(term(SERVICE, of=team("three")))),
        [scan(namespace="one-a")],
        None,
    ),
    "the placed pod's terms read the labels of the pod's namespace": (
        pod(namespace="one-a", labels=SCAN),
        [scan(namespace="two-a", affinity=away(term(SERVICE, of=team("one"))))],
        REPELLED,
    ),
    "a namespace that is gone has no labels": (
        pod(namespace="gone", labels=SCAN),
        [scan(namespace="two-a", affinity=away(term(SERVICE, of=team("one"))))],
        None,
    ),
    "labels that must not be there are not there either": (
        pod(namespace="gone", labels=SCAN),
        [scan(namespace="two-a", affinity=away(term(SERVICE, of=label("team", operator="DoesNotExist"))))],
        REPELLED,
    ),
    # kube-scheduler asks the selector of namespaces once more, about no labels at all
    "a selector that only excludes means all namespaces where it is the pod's": (
        pod(affinity=away(term(SERVICE, of=label("team", "one", operator="NotIn")))),
        [scan(namespace="one-a")],
        AWAY,
    ),
    "and only those that fit where it is the placed pod's": (
        pod(namespace="one-a", labels=SCAN),
        [scan(namespace="two-a", affinity=away(term(SERVICE, of=label("team", "one", operator="NotIn"))))],
        None,
    ),
    "no selector selects no pods": (pod(affinity=away(term(None))), [scan()], None),
    "an empty selector selects all pods of the namespace": (pod(affinity=away(term(both()))), [scan()], AWAY),
    "a terminating pod counts": (
        pod(affinity=away(term(SERVICE))),
        [terminating(scan())],
        AWAY,
    ),
    "a placed pod's terms that cannot be parsed do not count": (
        pod(labels=SCAN),
        [scan(affinity=away(term(SERVICE), term(label("service", operator="Like"))))],
        None,
    ),
    "but its terms of another sort do": (
        pod(labels=SCAN),
        [scan(affinity=joined(away(term(SERVICE)), near(term(label("service", operator="Like")))))],
        REPELLED,
    ),
}


@pytest.mark.parametrize("case", ONE_NODE)
def test_one_node_is_judged_as_kube_scheduler_judges_it(case: str) -> None:
    incoming, placed, expected = ONE_NODE[case]
    assert verdicts(incoming, [ONE, *placed]) == ({} if expected is None else {"n1": expected})
