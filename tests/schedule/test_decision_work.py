"""The work of a decision after one placement, in function calls: rules add little."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
from functools import partial

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.model.objects import Pod
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from tests.build import cluster, node, pod
from tests.rules.build import Spec, policy_set
from tests.work import calls
from tools.documents.markdown import ROOT

DECISIONS = 15
FACTOR = 3.3
"""Largest factor between the calls of a decision with and without policies."""
MASKED = """
import sys
from tests.schedule.test_decision_work import alike, work
work({"policy": alike(1)})
print("numpy.ma" in sys.modules)
"""
SHAPES = 8
"""Number of different forms of the rule `room` in `unlike`."""


def alike(number: int) -> Spec:
    """Return a policy of three filters and two scores that differs from others only in constants."""
    return {
        "filters": [
            {"name": "name", "require": f'node.name != "bad-{number}"'},
            {"name": "room", "require": f"node.free.memory - pod.requests.memory >= {number}Mi"},
            {"name": "peers", "require": f'node.pods.count(peer.labels["app"] == pod.labels["app"]) < {number + 500}'},
        ],
        "scores": [
            {"name": "use", "value": f"100 - scale(node.requested.cpu / node.allocatable.cpu, 0%, {number + 50}%)"},
            {"name": "zone", "value": f'if(node.zone == "{number % 3}", {number % 90}, 0)'},
        ],
    }


def unlike(number: int) -> Spec:
    """Return a policy whose rule `room` differs from others also in its form."""
    spec = alike(number)
    terms = " + ".join(["node.free.memory", *["pod.requests.memory"] * (number % SHAPES)])
    spec["filters"][1]["require"] = f"{terms} >= {number}Mi"
    return spec


def engine_of(specs: dict[str, Spec]) -> Engine:
    """Return an engine over 20 nodes in three zones."""
    nodes = (node(f"n{number}", labels={"topology.kubernetes.io/zone": str(number % 3)}) for number in range(20))
    around = cluster(*nodes)
    return Engine(around, policy_set(**specs).join(default_profile()), random.Random(1))


def work(specs: dict[str, Spec]) -> float:
    """Return the median number of calls of a decision for a cached class."""
    engine = engine_of(specs)
    counted = []
    for number in range(2 * DECISIONS):
        one = pod(f"p{number}", labels={"app": "web"})
        found: list[Decision] = []

        def decide(one: Pod = one, found: list[Decision] = found) -> None:
            found.append(engine.decide(one))

        counted.append(calls(decide))
        engine.cluster.assume(one, found[0].row, found[0].evaluation.pod_resources)
    return statistics.median(counted[DECISIONS:])


def test_decisions_are_little_work_however_many_rules_are_in_force() -> None:
    none, few, many = (work({f"policy{number}": alike(number) for number in range(count)}) for count in (0, 2, 20))
    assert few <= FACTOR * none
    assert many <= 1.25 * few


def test_first_decisions_do_without_masked_arrays() -> None:
    ran = subprocess.run([sys.executable, "-c", MASKED], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False", "importing them takes longer than a decision"


@pytest.mark.parametrize("policies", [2, 20])
def test_first_decision_of_another_class_finds_what_classes_have_in_common(policies: int) -> None:
    engine = engine_of({f"policy{number}": alike(number) for number in range(policies)})
    first, _, third = (calls(partial(engine.decide, pod(name, labels={"app": name}))) for name in "abc")
    assert third < first / 2


def test_rules_of_a_shape_of_their_own_cost_a_few_calls_each() -> None:
    same, other = (work({f"policy{number}": of(number) for number in range(SHAPES)}) for of in (alike, unlike))
    assert other <= same + 20 * SHAPES
