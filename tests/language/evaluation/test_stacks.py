"""Which graphs are of one shape: what kernels take a column of may differ, the rest is the same."""

from __future__ import annotations

import pytest

from policysched.language import Environment, compile_expression
from policysched.language.evaluation.stacks import alike, stack
from policysched.language.ir.graph import Op, Typed, steps

ALIKE = (
    ("node.free.memory >= 1Mi", "node.free.memory >= 2Mi"),
    ("node.free.memory - pod.requests.memory >= 1Mi", "node.free.memory - pod.requests.memory >= 5Mi"),
    ('node.name != "a"', 'node.name != "b"'),
    ('node.labels["a"] == "x"', 'node.labels["b"] == pod.labels["c"] ?? "y"'),
    ('node.pods.count(peer.labels["a"] == "b") < 3', 'node.pods.count(peer.labels["a"] == "c") < 4'),
    ('node.zone in ["a", "b"]', 'node.labels["zone"] in ["a", "c"]'),
    ('not (node.zone not in ["a", "b"])', 'not (node.zone not in ["c", "d"])'),
    ("sum(node.free.cpu) by node.zone > 3", "sum(node.free.cpu) by node.region > 3"),
)
UNLIKE = (
    ("node.free.memory >= 1Mi", "node.free.memory > 1Mi"),
    ("node.free.memory >= 1Mi", "node.free.cpu >= 1"),
    ('node.zone in ["a", "b"]', 'node.zone in ["a", "b", "c"]'),
    ("node.free.pods in [1, 2]", "node.free.pods in [1, 3]"),
    ('node.labels["a"] == "b"', 'pod.labels["a"] == "b"'),
    ('version(node.labels["a"]) > version("1")', 'version(node.labels["a"]) > version("2") and node.ready'),
)


def graph(text: str) -> Typed:
    program = compile_expression(text, Environment()).program
    assert program is not None, text
    return program.root


@pytest.mark.parametrize("texts", ALIKE, ids=lambda pair: pair[0])
def test_graphs_are_alike_that_differ_in_leaves_alone(texts: tuple[str, str]) -> None:
    assert alike([graph(text) for text in texts]) == [[0, 1]]


@pytest.mark.parametrize("texts", UNLIKE, ids=lambda pair: pair[0])
def test_graphs_that_do_something_else_are_not_alike(texts: tuple[str, str]) -> None:
    assert alike([graph(text) for text in texts]) == [[0], [1]]


def test_a_stack_shares_what_all_its_graphs_have() -> None:
    roots = [graph(f"node.free.memory - pod.requests.memory >= {number}Mi") for number in range(1, 21)]
    stacked = stack(roots)
    assert stacked.args[0] is roots[0].args[0]
    assert [node.op for node in steps(stacked)].count(Op.STACK) == 1
    assert stacked.args[1].inner == tuple(root.args[1] for root in roots)


def test_a_stack_of_one_graph_is_that_graph() -> None:
    root = graph("node.free.memory >= 1Mi")
    assert stack([root, root]) is root
