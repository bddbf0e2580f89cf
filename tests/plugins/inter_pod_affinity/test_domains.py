"""InterPodAffinity's filter over several nodes, and pods that it rejects or skips as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.framework import SKIP, Status, unresolvable
from policysched.model.objects import Affinity, Node, Pod, PodAffinity, PodAffinityTerm
from policysched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.build import node, pod
from tests.plugins.ask import filtered
from tests.plugins.inter_pod_affinity.build import (
    away,
    both,
    joined,
    label,
    likes,
    near,
    nodes,
    scene,
    team,
    term,
    weighted,
)
from tests.plugins.inter_pod_affinity.test_filter import AWAY, NEAR, ONE, REPELLED, SCAN, SERVICE, scan, verdicts

CHINA, INDIA = {"region": "china"}, {"region": "india"}
AZ = {"region": "china", "az": "az1"}
FOO, BAR = label("foo"), label("bar")
ZONES = nodes(a={"zone": "z1", "region": "r1"}, b={"zone": "z2", "region": "r1"}, c={"zone": "z3", "region": "r1"})


def other(on: str, affinity: Affinity | None = None, **labels: str) -> Pod:
    return pod(f"e-{on}-{sorted(labels)}", on=on, labels=labels, affinity=affinity)


SEVERAL: dict[str, tuple[Pod, list[Node], list[Pod], dict[str, Status]]] = {
    "all nodes of the region are near": (
        pod(affinity=near(term(FOO, "region"))),
        nodes(n1=CHINA, n2=AZ, n3=INDIA),
        [other("n1", foo="bar")],
        {"n3": NEAR},
    ),
    "the first of a group goes anywhere with the label": (
        pod(labels={"foo": "", "bar": ""}, affinity=near(term(FOO), term(BAR, "region"))),
        [*ZONES, node("none", labels={"zone": "z1"})],
        [other("a", foo="")],
        {"none": NEAR},
    ),
    "a pod that does not meet its own terms is no first": (
        pod(labels={"foo": ""}, affinity=near(term(FOO), term(BAR))),
        ZONES,
        [],
        {"a": NEAR, "b": NEAR, "c": NEAR},
    ),
    "a pod of another namespace than its terms' is no first": (
        pod(labels={"foo": ""}, affinity=near(term(FOO, "zone", "elsewhere"))),
        ZONES,
        [],
        {"a": NEAR, "b": NEAR, "c": NEAR},
    ),
    "a group whose pods are on nodes that are gone has no first yet": (
        pod(labels={"foo": ""}, affinity=near(term(FOO))),
        ZONES,
        [other("gone", foo="")],
        {},
    ),
    "a group whose pods are on nodes without the label has no first yet": (
        pod(labels={"foo": ""}, affinity=near(term(FOO))),
        [*ZONES, node("bare")],
        [other("bare", foo="")],
        {"bare": NEAR},
    ),
    "one pod must meet all terms": (
        pod(affinity=near(term(FOO, "region"), term(BAR))),
        ZONES,
        [other("a", foo=""), other("b", bar="")],
        {"a": NEAR, "b": NEAR, "c": NEAR},
    ),
    "where one pod does, all topology keys must fit": (
        pod(affinity=near(term(FOO, "region"), term(BAR))),
        ZONES,
        [other("a", foo="", bar="")],
        {"b": NEAR, "c": NEAR},
    ),
    "keys may be met by different pods that each meet all terms": (
        pod(affinity=near(term(FOO, "rack"), term(FOO, "zone"))),
        nodes(a={"zone": "z1", "rack": "r1"}, b={"zone": "z2", "rack": "r2"}, c={"zone": "z1", "rack": "r2"}),
        [other("a", foo=""), other("b", foo="")],
        {},
    ),
    "anti-affinity keeps out of the whole region": (
        pod(affinity=away(term(FOO, "region"))),
        nodes(n1=CHINA, n2=AZ, n3=INDIA),
        [other("n1", foo="")],
        {"n1": AWAY, "n2": AWAY},
    ),
    "any term of anti-affinity is enough": (
        pod(affinity=away(term(FOO), term(BAR))),
        ZONES,
        [other("a", foo=""), other("b", bar="")],
        {"a": AWAY, "b": AWAY},
    ),
    "a term of a key that no node has keeps out of nothing": (
        pod(affinity=away(term(FOO, "nowhere"), term(BAR))),
        ZONES,
        [other("a", foo="", bar="")],
        {"a": AWAY},
    ),
    "placed pods keep out of their own domains": (
        pod(labels={"foo": "", "bar": ""}),
        ZONES,
        [other("a", away(term(FOO, "nowhere"), term(BAR)), x=""), other("b", away(term(FOO)), x="")],
        {"a": REPELLED, "b": REPELLED},
    ),
    "placed pods of another namespace do not mean this one": (
        pod(labels={"foo": ""}),
        ZONES,
        [pod("e", namespace="x", on="a", affinity=away(term(FOO)))],
        {},
    ),
    "of two terms each is met on its own, over the key of its own": (
        pod(affinity=away(term(FOO), term(BAR, "region"))),
        ZONES[:2],
        [other("a", foo=""), other("b", bar="")],
        {"a": AWAY, "b": AWAY},
    ),
    "one pod meets both terms, over a wide key and a narrow one": (
        pod(affinity=away(term(FOO, "region"), term(BAR))),
        ZONES[:2],
        [other("a", foo="", bar="")],
        {"a": AWAY, "b": AWAY},
    ),
    "a pod of another namespace is not kept away from": (
        pod(affinity=away(term(FOO, "region"))),
        nodes(n1=CHINA, n2=AZ, n3=INDIA),
        [other("n1", foo=""), pod("e", namespace="x", on="n3", labels={"foo": ""})],
        {"n1": AWAY, "n2": AWAY},
    ),
    "placed pods' terms reach as far as the key of each": (
        pod(labels={"foo": "", "bar": ""}),
        ZONES[:2],
        [other("a", away(term(FOO)), x=""), other("a", away(term(BAR, "region")), y="")],
        {"a": REPELLED, "b": REPELLED},
    ),
    "both terms of a placed pod mean this one": (
        pod(labels={"foo": "", "bar": ""}),
        ZONES[:2],
        [other("a", away(term(FOO, "region"), term(BAR)), x="")],
        {"a": REPELLED, "b": REPELLED},
    ),
    "of the terms of placed pods one each means this pod": (
        pod(labels={"foo": "", "bar": ""}),
        ZONES,
        [other("a", away(term(FOO), term(label("x1"))), x=""), other("b", away(term(BAR), term(label("x2"))), x="")],
        {"a": REPELLED, "b": REPELLED},
    ),
    "two nodes of one host name are one domain": (
        pod(affinity=away(term(FOO, "host"))),
        nodes(a={"host": "h"}, b={"host": "h"}, c={"host": "i"}),
        [other("b", foo="")],
        {"a": AWAY, "b": AWAY},
    ),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_several_nodes_are_judged_as_kube_scheduler_judges_them(case: str) -> None:
    incoming, around, placed, expected = SEVERAL[case]
    assert verdicts(incoming, [*around, *placed]) == expected


VALUE = (
    'values[0][service]: Invalid value: "{{.bad-value.}}": a valid label must be an empty string or consist of '
    "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  "
    "or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
BAD, LIKE = term(label("service", "{{.bad-value.}}")), term(label("service", operator="Like"))
OPERATOR = '"Like" is not a valid label selector operator'


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        (near(BAD, term(SERVICE)), f"requiredAffinityTerms: {VALUE}"),
        (near(term(SERVICE), BAD), f"requiredAffinityTerms: {VALUE}"),
        (away(BAD), f"requiredAntiAffinityTerms: {VALUE}"),
        (likes(1, LIKE), f"preferredAffinityTerms: {OPERATOR}"),
        (near(term(SERVICE, of=label("team", operator="Like"))), f"requiredAffinityTerms: {OPERATOR}"),
        (
            joined(near(BAD), Affinity(pod_anti_affinity=PodAffinity(preferred=[weighted(1, LIKE)]))),
            f"[requiredAffinityTerms: {VALUE}, preferredAntiAffinityTerms: {OPERATOR}]",
        ),
    ],
)
def test_a_pod_whose_terms_cannot_be_parsed_is_rejected_as_a_whole(affinity: Affinity, message: str) -> None:
    answer = filtered(InterPodAffinity(), pod(affinity=affinity), scene(ONE))
    assert answer == unresolvable(f"parsing pod: {message}")


@pytest.mark.parametrize("affinity", [None, Affinity(), Affinity(pod_affinity=PodAffinity()), likes(1, term(SERVICE))])
def test_a_pod_that_requires_nothing_is_skipped_where_no_placed_pod_states_anything(affinity: Affinity | None) -> None:
    plugin, around = InterPodAffinity(), scene(ONE, scan())
    assert filtered(plugin, pod(affinity=affinity), around) is SKIP
    before = plugin.stamp(around)
    around.set_pod(scan(affinity=away(term(label("x")))))
    assert plugin.stamp(around) != before
    assert filtered(plugin, pod(affinity=affinity), around) == {}


def test_match_label_keys_mean_nothing_but_what_the_api_server_made_of_them() -> None:
    keyed = PodAffinityTerm(
        label_selector=SERVICE, topology_key="zone", match_label_keys=("hash",), mismatch_label_keys=("service",)
    )
    assert verdicts(pod(labels={"hash": "1"} | SCAN, affinity=away(keyed)), [ONE, scan()]) == {"n1": AWAY}


def test_a_class_is_outdated_by_labels_of_namespaces_only_where_a_term_reads_them() -> None:
    plugin, around = InterPodAffinity(), scene(ONE)
    every: Any = plugin.prepare_filter(pod(affinity=near(term(SERVICE, of=both()))), around)
    before = plugin.stamp(around)
    around.remove_namespace("one-a")
    assert plugin.is_current(every)
    of_one: Any = plugin.prepare_filter(pod(affinity=near(term(SERVICE, of=team("one")))), around)
    assert plugin.is_current(of_one)
    around.remove_namespace("one-b")
    assert not plugin.is_current(of_one)
    assert not plugin.is_current(of_one)
    assert plugin.is_current(every)
    assert plugin.stamp(around) == before
