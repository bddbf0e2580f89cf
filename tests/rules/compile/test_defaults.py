"""A filter without its `?? false` keeps the nodes that it keeps with them, and knows what was missing."""

from __future__ import annotations

import random

import pytest

from policysched.language import Want, interpret
from policysched.rules.compile.policy import compiled_filter
from tests.app.dry_runs import node, pod, policy, record, requiring
from tests.language.checking.test_exclusion import ROWS, condition
from tests.language.frames import TableFrame
from tests.language.programs import program


@pytest.mark.parametrize("seed", range(200))
def test_a_filter_keeps_the_same_nodes_without_its_defaults(seed: int) -> None:
    chance = random.Random(seed)
    parts = [f"(({condition(chance, 1)}) ?? false)" for _ in range(3)]
    forms = ("if({}, {}, {})", "{} and if({}, {}, node.ready)", "if({}, if({}, node.ready, node.cordoned), {})")
    text = chance.choice(forms).format(*parts)
    stated = program(text, "filter", Want.CONDITION)
    made = compiled_filter("a", None, stated, None)
    frame = TableFrame(ROWS)
    for row in range(0, len(ROWS), 5):
        kept = interpret(made.require, frame.at(row))
        assert (kept is True) == (interpret(stated, frame.at(row)) is True), text


@pytest.mark.parametrize(
    ("require", "said"),
    [
        (
            "if((number(node.labels['rank']) > 1) ?? false, node.ready, node.cordoned)",
            " (node.labels['rank'] is missing)",
        ),
        ("if((number(node.labels['rank']) > 1) ?? false, node.cordoned, node.cordoned)", ""),
    ],
)
def test_what_is_missing_is_named_where_another_branch_decided(require: str, said: str) -> None:
    require, said = require.replace("'", '"'), said.replace("'", '"')
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    ready = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    told = record([node() | {"status": ready}], pod(), policy(**requiring(require)))
    assert told["rejected"]["n1"]["reasons"] == [f"policy p/r: {require}{said}"]
