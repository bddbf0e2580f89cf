"""Every folder of examples/ is a policy, a cluster and tests, and the policy does what the tests say.

`pytest tests/examples/test_cases.py -k FOLDER` runs the tests of one folder.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import policysched
from policysched.app.checking.explain import as_policy
from tests.examples.cases import (
    CLUSTER,
    EXAMPLES,
    FOLDERS,
    PLUGINS,
    POLICY,
    TESTS,
    Case,
    cases,
    documents,
    read_cases,
)

CASES = [pytest.param(folder, case, id=f"{folder}: {case.given}") for folder in FOLDERS for case in cases(folder)]


def record(folder: str, case: Case) -> dict[str, Any]:
    """Decide about the pod of a case."""
    now = None if case.now is None else datetime.fromisoformat(case.now)
    objects, policies = documents(folder, CLUSTER), documents(folder, POLICY)
    return policysched.dry_run(objects, case.pod, policies, now=now, metrics=case.metrics, seed=1).to_dict()


@pytest.mark.parametrize(("folder", "case"), CASES)
def test_a_policy_does_what_its_tests_say(folder: str, case: Case) -> None:
    found = record(folder, case)
    [policy] = documents(folder, POLICY)
    said = found.get("rules", {}).get(policy["metadata"]["name"], {})
    assert {rule: sorted(nodes) for rule, nodes in said.get("filters", {}).items()} == {
        rule: sorted(nodes) for rule, nodes in case.expect.rejected.items()
    }
    scores = said.get("scores", {})
    assert set(scores) == set(case.expect.scores)
    for rule, values in case.expect.scores.items():
        assert scores[rule] == pytest.approx(values, abs=0.005), rule
    assert found.get("best", []) == sorted(case.best)
    assert sorted(said.get("preemption", ())) == sorted(case.expect.protected)
    room = found.get("nominated")
    going = {} if room is None else {room["node"]: sorted(room["victims"])}
    assert going == {node: sorted(pods) for node, pods in case.expect.nominated.items()}
    assert case.expect.reason in (None, found.get("fitError"))


def test_every_folder_has_what_it_needs() -> None:
    without = {one.name for one in EXAMPLES.iterdir() if one.is_dir()} - set(FOLDERS)
    assert without == PLUGINS, "only what no policy can say is a plugin alone"
    for folder in FOLDERS:
        assert {POLICY, CLUSTER, TESTS} <= {one.name for one in (EXAMPLES / folder).iterdir()}, folder


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_rule_of_a_policy_speaks_in_its_tests(folder: str) -> None:
    [policy] = documents(folder, POLICY)
    tried = [case.expect for case in cases(folder)]
    for rule in policy["spec"].get("filters", ()):
        assert any(expect.rejected.get(rule["name"]) for expect in tried), rule["name"]
    if "preemption" in policy["spec"]:
        assert any(expect.protected for expect in tried)
        assert any(expect.nominated for expect in tried)
    for rule in policy["spec"].get("scores", ()):
        assert any(expect.scores.get(rule["name"]) for expect in tried), rule["name"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_policy_compiles_without_a_warning(folder: str) -> None:
    assert policysched.check(documents(folder, POLICY)) == []


BAD = [
    ("given: a", "tests/tests.yaml: expected a list of entries"),
    ("- expect: {best: []}", "tests/tests.yaml, entry 1: Object missing required field `given`"),
    ("- {given: a, expect: {}}", "tests/tests.yaml, entry 1: Object missing required field `best`"),
    (
        "- {given: a, expect: {best: []}}\n- {given: a, expect: {best: [], reject: {}}}",
        "tests/tests.yaml, entry 2: Object contains unknown field `reject`",
    ),
    (
        "- {given: a, pod: {label: {a: b}}, expect: {best: []}}",
        "tests/tests.yaml, entry 1: Object contains unknown field",
    ),
    ("- {given: a, expect: {best: [1]}}", "tests/tests.yaml, entry 1: Expected `str`, got `int`"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_tests_that_cannot_be_read_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "tests" / TESTS
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"entry|list") as caught:
        read_cases(path)
    assert str(caught.value).startswith(message)


WRONG = [
    {"best": ["n2"], "rejected": {"big": ["n1"]}, "scores": {"even": {"n2": 50}}},
    {"best": [], "rejected": {"big": ["n1"]}, "scores": {"even": {"n2": 50}}},
    {"best": ["n2"], "rejected": {}, "scores": {"even": {"n2": 50}}},
    {"best": ["n2"], "rejected": {"big": ["n1", "n2"]}, "scores": {"even": {"n2": 50}}},
    {"best": ["n2"], "rejected": {"big": ["n1"]}, "scores": {}},
    {"best": ["n2"], "rejected": {"big": ["n1"]}, "scores": {"even": {"n2": 51}}},
    {"best": ["n2"], "rejected": {"big": ["n1"]}, "scores": {"even": {"n2": 50}}, "reason": "0/2 nodes are available"},
    {"best": ["n2"], "rejected": {"big": ["n1"]}, "scores": {"even": {"n2": 50}}, "protected": ["default/a"]},
    {"best": ["n2"], "rejected": {"big": ["n1"]}, "scores": {"even": {"n2": 50}}, "nominated": {"n2": ["default/a"]}},
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_expectation_fails(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = "filters: [{name: big, require: node.allocatable.cpu > 2}]\nscores: [{name: even, value: 50}]"
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": given}}
        for name, given in (("n1", {"cpu": "2", "pods": "9"}), ("n2", {"cpu": "4", "pods": "9"}))
    ]
    given = {CLUSTER: nodes, POLICY: [as_policy(spec)]}
    monkeypatch.setattr("tests.examples.test_cases.documents", lambda _, name: given[name])
    path = tmp_path / TESTS
    path.write_text(f"- {{given: a pod, expect: {WRONG[number]}}}", "utf-8")
    [case] = read_cases(path)
    if number == 0:
        test_a_policy_does_what_its_tests_say("none", case)
    else:
        with pytest.raises(AssertionError):
            test_a_policy_does_what_its_tests_say("none", case)
