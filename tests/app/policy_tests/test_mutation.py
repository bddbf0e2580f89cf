"""Mutants of policies, and which of them tests notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.app.checking.explain import as_policy
from policysched.app.dry_run.policies import compiles
from policysched.app.policy_tests.mutants import mutants
from policysched.app.policy_tests.running import PolicyTestOptions
from policysched.app.policy_tests.suite import PolicyTestRun, RunChoices, run_files
from tests.app.policy_tests.folders import write_tests

TEXTS = [
    ("node.free.cpu < 500m", ["<=", "501m", "500"]),
    ('node.zone == "a" and node.ready', ["!=", '"ax"', "or"]),
    ('not node.cordoned', ["node.cordoned"]),
    ('node.zone in ["a", "b"]', ["not in", '["ax", "b"]', '["a", "bx"]']),
    ("node.free.memory - 1Gi >= 0", [">", "+", "2Gi", "1Mi", "1"]),
    ("(node.age > 1.5min) ?? true", [">=", "1.6min", "1.5h", "false", "node.age > 1.5min"]),
    ('sum(node.free.cpu) by node.zone > 2', [">=", "avg", "3", "sum(node.free.cpu)"]),
    ('starts_with(node.name, "a")', ["ends_with", '"ax"']),
    ('node.labels["x"] != "y"', ["==", 'node.labels["xx"]', '"yx"']),
]  # fmt: skip


def changes(spec: str) -> list[str]:
    """Return the changes of a policy called `example`."""
    return [one.change.removeprefix("example: ") for one in mutants(as_policy(spec))]


@pytest.mark.parametrize(("text", "parts"), TEXTS)
def test_operators_bounds_and_units_are_changed_one_at_a_time(text: str, parts: list[str]) -> None:
    found = [one for one in changes(f"filters:\n- name: a\n  require: {text!r}\n") if "→" in one]
    assert len(found) == len(set(found))
    for part in parts:
        assert any(part in one.partition(" → ")[2] for one in found), (part, found)


def test_rules_cases_and_what_says_which_pods_are_meant_are_changed() -> None:
    spec = """\
appliesTo: pod.priority > 0
tier: 2
podSelector: {matchLabels: {a: b}}
filters:
- {name: f, when: pod.priority > 1, require: node.ready}
scores:
- {name: s, normalize: Max, cases: [node.ready → 1, node.cordoned → 2, else → 3]}
"""
    found = changes(spec)
    for change in (
        "without appliesTo", "without podSelector", "without tier", "without f", "f without when", "without s",
        "s without normalize", "s without case 1", "s without case 3", "s with cases 1 and 2 swapped",
    ):  # fmt: skip
        assert change in found
    assert "s with cases 2 and 3 swapped" not in found, "else has to be the last one"


def test_placement_rules_are_changed() -> None:
    spec = """\
placement:
  topologyKey: rack
  filters:
  - {name: f, when: group.size > 1, require: placement.size > 2}
  scores:
  - {name: s, normalize: Max, cases: [placement.size > 3 → 1, else → 3]}
"""
    found = changes(spec)
    for change in (
        "without topologyKey", "without placement f", "without placement s", "placement f without when",
        "placement s without normalize", "placement s without case 1",
        "placement f when: group.size > 1 → group.size >= 1",
        "placement f require: placement.size > 2 → placement.size > 3",
        "placement s cases 1: placement.size > 3 → placement.size >= 3",
    ):  # fmt: skip
        assert change in found


def test_mutants_compile_differ_and_come_in_one_order() -> None:
    spec = "scores: [{name: s, value: scale(node.free.cpu / node.allocatable.cpu, 0%, 100%)}]"
    found = [*mutants(as_policy(spec))]
    assert found
    assert all(compiles(one.changed) and one.changed["spec"] != as_policy(spec)["spec"] for one in found)
    assert [one.change for one in found] == [one.change for one in mutants(as_policy(spec))]
    assert not any("0, 100%" in one.change for one in found), "0 % and 0 are the same score"


SPEC = "filters: [{name: big, require: node.allocatable.cpu >= 4}]"
TESTS = """\
cluster: {nodes: [{name: small, allocatable: {cpu: 3}}, {name: big, allocatable: {cpu: 6}}]}
tests:
- {given: a pod, expect: {rejected: {big: [small]}}}
"""


def mutated(folder: Path, tests: str, **choices: object) -> PolicyTestRun:
    """Try the mutants of a policy."""
    return run_files([write_tests(folder, tests, SPEC)], PolicyTestOptions(), RunChoices(mutate=True, **choices))  # type: ignore[arg-type]


def test_changes_that_no_test_notices_are_told_and_fail(tmp_path: Path) -> None:
    run = mutated(tmp_path, TESTS)
    [report] = run.mutation
    assert run.exit_code == 1
    assert (report.noticed, report.total) == (1, 3)
    assert report.unnoticed == [
        "policy: big require: node.allocatable.cpu >= 4 → node.allocatable.cpu > 4",
        "policy: big require: node.allocatable.cpu >= 4 → node.allocatable.cpu >= 5",
    ]
    assert report.lines()[0].endswith("1 of 3 changes noticed")


def test_a_test_at_the_bound_notices_them(tmp_path: Path) -> None:
    run = mutated(tmp_path, TESTS.replace("cpu: 6", "cpu: 4"))
    assert (run.exit_code, run.mutation[0].noticed) == (0, 3)


def test_explained_changes_pass_and_wrong_explanations_fail(tmp_path: Path) -> None:
    explained = "mutants:\n" + "".join(
        f"- {{change: 'policy: big require: node.allocatable.cpu >= 4 → node.allocatable.cpu {after}', reason: none}}\n"
        for after in ("> 4", ">= 5")
    )
    run = mutated(tmp_path, TESTS + explained)
    assert (run.exit_code, len(run.mutation[0].explained)) == (0, 2)
    run = mutated(tmp_path, TESTS.replace("cpu: 6", "cpu: 4") + explained)
    assert (run.exit_code, len(run.mutation[0].wrong)) == (1, 2)


def test_what_there_is_no_time_for_is_told(tmp_path: Path) -> None:
    run = mutated(tmp_path, TESTS, in_time=lambda: False)
    assert (run.exit_code, run.mutation[0].untried) == (1, 3)
    assert run.mutation[0].lines()[0].endswith("0 of 3 changes noticed, 3 not tried")


def test_an_interruption_ends_it_with_what_is_known(tmp_path: Path) -> None:
    def interrupt(name: str) -> None:
        if "> 4" in name:
            raise KeyboardInterrupt

    run = mutated(tmp_path, TESTS, on_test=interrupt)
    assert (run.interrupted, run.mutation[0].untried) == (True, 3)


def test_a_file_whose_tests_fail_is_not_mutated(tmp_path: Path) -> None:
    [report] = mutated(tmp_path, TESTS.replace("[small]", "[big]")).mutation
    assert (report.total, report.lines()) == (0, [f"{tmp_path / 'tests.yaml'}: mutation skipped: 1 test failed"])
    assert report.to_dict()["skipped"] == "1 test failed"
