"""What rules make of strings, and what pods say, goes with the pod: the cluster's interner grows with nodes alone."""

from __future__ import annotations

from policysched.language import load_grammar
from policysched.rules.results.rule_rows import MOST_MISSING
from tests.build import cluster, node, pod
from tests.plugins.ask import filtered, scored
from tests.rules.build import filtering, plugin, scoring

load_grammar()
NODES = [node(f"n{number}", labels={"zone": f"z{number % 3}", "v": f"1.{number}"}) for number in range(20)]
MADE = [
    "concat(pod.name, node.name) != concat(node.name, pod.name)",
    'if(node.ready, pod.name, node.name) != "x"',
    '(node.labels["absent"] ?? pod.name) != "x"',
    'node.name not in split(pod.name, "-")',
    'version(concat(node.labels["v"], ".", pod.name)) != version("0.1")',
    'not node.pods.any(concat(peer.name, node.name, pod.name) == "x")',
    'not node.pods.any(concat(peer.labels["a"], peer.namespace, pod.name) == "x")',
    '(sum(node.free.cpu) by node.labels["zone"] > 0) and concat(node.labels["zone"], pod.name) != "x"',
]


def test_pods_of_any_names_leave_no_strings_behind() -> None:
    placed = [pod(f"placed-{number}", on="n1", labels={"a": f"value-{number}"}) for number in range(20)]
    around = cluster(*NODES, *placed)
    filters = [plugin(f"p{n}", filters=filtering(text)) for n, text in enumerate(MADE)]
    scores = plugin("q", scores=scoring(["concat(node.name, pod.name) == pod.namespace → 1", "else → 2"]))
    sizes = []
    for number in range(30):
        of = pod(f"{number}", labels={"a": f"b{number}"})
        assert [filtered(one, of, around) for one in filters] == [{}] * len(filters)
        final = scored(scores, of, around)
        assert isinstance(final, dict)
        assert set(final.values()) == {2}
        sizes.append(len(around.strings))
    assert sizes == sizes[:1] * 30


def test_keys_made_of_pods_are_told_apart_up_to_a_limit() -> None:
    made = plugin(filters=filtering('number(node.labels[concat("data-", pod.name)]) > 1'))
    around = cluster(node("n"))
    for number in range(MOST_MISSING + 10):
        answer = filtered(made, pod(f"p{number}"), around)
        assert isinstance(answer, dict)
        key = f'"data-p{number}"' if number < MOST_MISSING else "*"
        assert answer["n"].message == f"policy p/r: node.labels[{key}] is missing"
