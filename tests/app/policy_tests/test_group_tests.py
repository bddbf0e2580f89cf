"""Tests of pod groups: what they can expect, what fails with reasons, steps, coverage and mistakes in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.errors import UsageError
from policysched.testing import run
from tests.app.policy_tests.folders import results, write_tests

SPEC = """\
filters:
- {name: ssd, require: 'node.labels["disk"] == "ssd"', message: no SSD}
"""
CLUSTER = """\
cluster:
  nodes:
  - {name: 'a*', count: 2, labels: {rack: a, disk: ssd}}
  - {name: 'b*', count: 2, labels: {rack: b, disk: ssd}}
  - {name: c1, labels: {rack: c, disk: hdd}}
  pods:
  - {name: low, node: a1, requests: {cpu: 3}, priority: -1}
"""
GANG = "{name: train, minCount: 4, pods: [{count: 4, requests: {cpu: 2}}]}"
GOOD = [
    "{result: Scheduled, placed: 4}",
    "{values: {rack: 2, kubernetes.io/hostname: 3}, perValue: {rack: 3, kubernetes.io/hostname: 2}}",
    "{members: {default/train-1: {fits: true}, 'default/train-*': {node: '[ab]*'}}}",
]
LARGE = "{name: train, minCount: 9, pods: [{count: 9, requests: {cpu: 2}}]}"
ROOMY = "{name: train, minCount: 4, pods: [{count: 4, requests: {cpu: 4}}]}"
BAD = [
    (GANG, "{result: Unschedulable}", "result", "Unschedulable", "Scheduled"),
    (GANG, "{placed: 3}", "placed", "3", "4"),
    (GANG, "{values: {rack: 1}}", "values.rack", "1", "2"),
    (GANG, "{perValue: {rack: 1}}", "perValue.rack", "at most 1", "3"),
    (GANG, "{reason: {contains: scheduled}}", "reason", "… scheduled …", "none"),
    (GANG, "{members: {default/train-1: {node: c1}}}", "members.default/train-1.node", "c1", ""),
    (GANG, "{members: {default/train-1: {fits: false}}}", "members.default/train-1.fits", "no", "yes"),
    (GANG, "{victims: [default/low]}", "victims", "default/low", "none"),
    (LARGE, "{result: Scheduled, victims: ['*/low']}", "result", "Scheduled", "Unschedulable"),
    (ROOMY, "{result: Unschedulable}", "victims", "none", "default/low"),
]


def _file(group: str, expect: str) -> str:
    return f"{CLUSTER}tests:\n- given: a gang\n  group: {group}\n  expect: {expect}\n"


@pytest.mark.parametrize("expect", GOOD)
def test_expectations_that_hold(tmp_path: Path, expect: str) -> None:
    [found] = results(tmp_path, _file(GANG, expect), SPEC)
    assert (found.told(), found.passed) == ([], True)


@pytest.mark.parametrize(("group", "expect", "field", "expected", "got"), BAD)
def test_expectations_that_do_not_hold(
    tmp_path: Path, group: str, expect: str, field: str, expected: str, got: str
) -> None:
    [found] = results(tmp_path, _file(group, expect), SPEC)
    [different] = [one for one in found.differences if one.field == f"tests[0].expect.{field}"]
    assert different.expected == expected
    assert different.got == got or not got


def test_a_difference_names_the_first_pod_without_a_node(tmp_path: Path) -> None:
    [found] = results(tmp_path, _file(LARGE, "{placed: 9, victims: []}"), SPEC)
    [different] = [one for one in found.differences if one.field.endswith("placed")]
    assert "minCount (9) cannot be satisfied" in different.reasons[0]
    assert different.reasons[1].startswith("default/train-")
    assert "policy policy/ssd: no SSD" in different.reasons[1]


def test_victims_and_reasons_of_members(tmp_path: Path) -> None:
    expect = """{result: Unschedulable, victims: [default/low], reason: {contains: preempting 1 victims},
             members: {default/train-4: {fits: false, reason: {contains: Insufficient cpu}}}}"""
    [found] = results(tmp_path, _file(ROOMY, expect), SPEC)
    assert found.told() == []


STEPS = """\
cluster:
  nodes: [{name: n1, labels: {disk: ssd}}]
tests:
- given: a gang that waits for a node
  steps:
  - group: {name: train, minCount: 3, pods: [{count: 3, requests: {cpu: 2}}]}
    expect: {result: Unschedulable, placed: 0}
  - add: {nodes: [{name: n2, labels: {disk: ssd}}]}
    group: {name: train, minCount: 3}
    expect: {placed: 3, perValue: {kubernetes.io/hostname: 2}}
  - pod: {name: web, requests: {cpu: 2}}
    expect: {result: Scheduled}
  - group: {name: train, minCount: 3, pods: [{name: late, requests: {cpu: 2}}]}
    expect: {placed: 0, members: {default/late: {reason: {contains: Insufficient cpu}}}}
"""


def test_members_stay_from_step_to_step(tmp_path: Path) -> None:
    [found] = results(tmp_path, STEPS, SPEC)
    assert found.told() == []


def test_victims_leave_and_the_group_gets_their_nodes(tmp_path: Path) -> None:
    steps = """\
cluster:
  nodes: [{name: n1, labels: {disk: ssd}}]
  pods: [{name: low, node: n1, requests: {cpu: 3}, priority: -1}]
tests:
- given: a gang that preempts
  steps:
  - group: {name: train, minCount: 2, pods: [{count: 2, requests: {cpu: 2}}]}
    expect: {result: Unschedulable, victims: [default/low]}
  - group: {name: train, minCount: 2}
    expect: {placed: 2, values: {kubernetes.io/hostname: 1}}
"""
    [found] = results(tmp_path, steps, SPEC)
    assert found.told() == []


def test_basic_groups_and_nodes_without_a_label(tmp_path: Path) -> None:
    group = "{name: some, pods: [{count: 3, requests: {cpu: 4}}]}"
    [found] = results(tmp_path, _file(group, "{result: Scheduled, placed: 3, values: {zone: 1}}"), SPEC)
    assert found.told() == []


def test_rules_that_groups_reach_are_covered(tmp_path: Path) -> None:
    path = write_tests(tmp_path, _file(GANG, "{placed: 4}"), SPEC)
    covered = run(path, coverage=True)
    assert covered.passed
    one = write_tests(tmp_path, "tests:\n- given: nothing\n  expect: {best: []}\n", SPEC)
    assert covered.covered > run(one, coverage=True).covered


WRONG = [
    ("{placed: 4, best: [a1]}", GANG, "`best` is an expectation about a single pod"),
    ("{members: {default/other: {fits: true}}}", GANG, "no pod of the group `default/other`"),
    ("{placed: 1}", "{name: train}", "group has no `pods`, and no pod of default/train is pending"),
    ("{placed: 1}", "{name: train, pods: [{name: a}, {name: a}]}", 'pod "a" is there twice'),
    ("{placed: 1}", "{name: train, minCount: 0}", "Expected `int` >= 1"),
]


@pytest.mark.parametrize(("expect", "group", "problem"), WRONG)
def test_mistakes_have_their_place(tmp_path: Path, expect: str, group: str, problem: str) -> None:
    try:
        [found] = results(tmp_path, _file(group, expect), SPEC)
    except UsageError as error:
        text = str(error)
    else:
        text = found.problem
    assert problem.lower() in text.lower()
    assert "tests.yaml:" in text


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ("pod: {}\n  group: {name: g}\n  expect: {placed: 1}", "step has both `pod` and `group`"),
        ("pod: {}\n  expect: {placed: 1}", "`placed` is an expectation about a pod group"),
        ("group: {name: g}\n  steps: [{pod: {}, expect: {best: []}}]", "move `group` into a step"),
    ],
)
def test_pods_and_groups_do_not_mix(tmp_path: Path, test: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        results(tmp_path, f"{CLUSTER}tests:\n- given: mixed\n  {test}\n", SPEC)
