"""Which input a program without a value names as the cause."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.language import Environment, Unit, compile_expression
from tests.language.frames import TableFrame, missing_input
from tests.language.programs import program


@pytest.mark.parametrize(
    ("text", "row", "wanted"),
    [
        ('number(node.labels["a"]) > 1', {}, 'node.labels["a"]'),
        ('number(node.labels["a"]) > 1', {'node.labels["a"]': "x"}, None),
        ('number(node.labels["a"]) > 1', {'node.labels["a"]': "2"}, None),
        ('has(node.labels["a"]) or number(node.labels["b"]) > 1', {}, 'node.labels["b"]'),
        ('(node.labels["a"] ?? "x") == "y" or number(node.labels["b"]) > 1', {}, 'node.labels["b"]'),
        ('number(node.labels["a"]) + number(node.labels["b"]) > 1', {'node.labels["a"]': "1"}, 'node.labels["b"]'),
        ('number(node.labels[concat("a", pod.name)]) > 1', {}, 'node.labels["a"]'),
        ('number(node.labels[pod.labels["x"]]) > 1', {}, 'pod.labels["x"]'),
        ('if(node.ready, number(node.labels["a"]), number(node.labels["b"])) > 1', {}, 'node.labels["b"]'),
        ('if(number(node.labels["a"]) > 1, 1, 2) > 1', {}, 'node.labels["a"]'),
        ("node.free.cpu / node.requested.cpu > 1", {}, None),
        ('number(pod.labels["x"]) > 1', {}, 'pod.labels["x"]'),
        ("only(node.ready, 1) > 0", {}, None),
    ],
)
def test_missing_input_is_the_cause(text: str, row: dict[str, Any], wanted: str | None) -> None:
    frame = TableFrame([{'node.labels["a"]': "5", 'node.labels["b"]': "5", "node.requested.cpu": 1}, row])
    found = missing_input(program(text), frame, 1)
    assert (found and found.text) == wanted


@pytest.mark.parametrize(
    ("text", "row", "wanted"),
    [
        ("avg(metrics.load) by node.zone < 1", {"node.zone": "a"}, "metrics.load"),
        ("avg(metrics.load) by node.zone < 1", {}, "node.zone"),
        ("avg(metrics.load) by node.zone < 1", {"node.zone": "b"}, None),
        ("avg(metrics.load * node.free.cpu) by node.zone < 1000m", {"node.zone": "a"}, "metrics.load"),
        ("count(node.ready) by node.zone < 1", {}, "node.zone"),
        ('count(node.ready) by node.labels[pod.labels["topology"]] < 1', {}, 'pod.labels["topology"]'),
        ("max(only(node.ready, node.free.cpu)) < 1", {}, None),
        ('max(number(node.labels["none"])) < 1', {}, 'node.labels["none"]'),
        ("max(avg(metrics.load) by node.zone) by node.name < 1", {}, "node.zone"),
        ('node.pods.sum(number(peer.labels["a"])) / number(node.labels["b"]) > 1', {}, 'node.labels["b"]'),
        ('node.free.pods < avg(number(node.labels["none"]))', {}, 'node.labels["none"]'),
    ],
)
def test_missing_input_of_an_aggregate_is_the_domain_or_what_is_missing_all_over_it(
    text: str, row: dict[str, Any], wanted: str | None
) -> None:
    frame = TableFrame([{"metrics.load": 0.5, "node.zone": "b", "node.name": "x"}, {"node.name": "y", **row}])
    compiled = compile_expression(text, Environment("let", metrics={"load": Unit.NUMBER})).program
    assert compiled is not None
    found = missing_input(compiled, frame, 1)
    assert (found and found.text) == wanted
