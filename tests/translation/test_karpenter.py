"""Karpenter puts a pod with the translated affinity on every node that the policy accepts, by Karpenter's own code."""

from __future__ import annotations

import json
import random
import subprocess
from typing import Any

import pytest

from policysched.app.translate.translate import written
from policysched.language import Environment, compile_expression
from policysched.language.evaluation.scalar import interpret
from policysched.model.objects.pods import NodeSelector
from policysched.rules.translation.conditions import translate
from policysched.rules.translation.policy_filters import PodValues
from tests.language.frames import TableFrame
from tests.oracle.seed import seed
from tests.translation.build import karpenter

pytestmark = pytest.mark.oracle
CASES = 1000
KEYS = ("pool", "team", "example.com/disk", "topology.kubernetes.io/zone")
VALUES = ("a", "b", "c", "7", "")


def _label(chance: random.Random) -> str:
    return f'node.labels["{chance.choice(KEYS)}"]'


def _comparison(chance: random.Random) -> str:
    label, value = _label(chance), f'"{chance.choice(VALUES)}"'
    listed = ", ".join(sorted({f'"{chance.choice(VALUES)}"' for _ in range(3)}))
    return chance.choice((
        f"{label} == {value}",
        f"{label} != {value}",
        f"{label} in [{listed}]",
        f"{label} not in [{listed}]",
        f"has({label})",
        f"({label} ?? {value}) == {value}",
        f"number({label}) > 3",
        f'starts_with({label}, "a")',
        "node.free.cpu > 2",
    ))  # fmt: skip


def _condition(chance: random.Random, depth: int = 3) -> str:
    if not depth or chance.random() < 0.2:
        return _comparison(chance)
    parts = [_condition(chance, depth - 1) for _ in range(2)]
    return chance.choice((f"({parts[0]} and {parts[1]})", f"({parts[0]} or {parts[1]})", f"not ({parts[0]})"))


def _case(chance: random.Random) -> tuple[str, dict[str, Any], list[bool]]:
    """Return a condition, the question for Karpenter, and on which nodes the condition is true."""
    text = _condition(chance)
    program = compile_expression(text, Environment("filter")).program
    assert program is not None, text
    nodes = [{key: chance.choice(VALUES) for key in KEYS if chance.random() < 0.7} for _ in range(12)]
    rows = [
        {
            **{f'node.labels["{key}"]': labels.get(key) for key in KEYS},
            "node.free.cpu": float(chance.choice((1000, 4000))),
        }
        for labels in nodes
    ]
    frame = TableFrame(rows, {})
    found = translate(program.root, PodValues(frame.at(0), is_named=True))
    selector = NodeSelector(node_selector_terms=found.nodes.selector_terms())
    required = None if found.nodes.is_everything else written(selector)
    affinity = None if required is None else {"requiredDuringSchedulingIgnoredDuringExecution": required}
    passes = [interpret(program, frame.at(row)) is True for row in range(frame.rows)]
    return text, {"affinity": affinity, "nodes": nodes}, passes


def test_karpenter_admits_every_node_that_passes() -> None:
    chance = random.Random(seed())
    cases = [_case(chance) for _ in range(CASES)]
    asked = "\n".join(json.dumps(question) for _, question, _ in cases)
    done = subprocess.run([karpenter()], input=asked, capture_output=True, text=True, check=True, timeout=60)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == CASES
    lost = [
        (text, question["affinity"], labels)
        for (text, question, passes), admitted in zip(cases, answers, strict=True)
        for labels, passed, admits in zip(question["nodes"], passes, admitted, strict=True)
        if passed and not admits
    ]
    assert not lost, lost[0]
    refused = sum(not admits for admitted in answers for admits in admitted)
    assert refused > CASES, "the affinity rejects hardly any node"
